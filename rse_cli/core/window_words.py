"""The words of a query around one chunk: what BM25F and proximity are made of, for inspection."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import K1, PROXIMITY_K1, B, Floats, compute_idf, find_pairs, weigh_years
from rse_cli.core.relevance import Candidates, QueryTerms, find_runs
from rse_cli.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class WindowWords:
    """Occurrences of a query's terms in a window, and its length.

    Parameters
    ----------
    occurrences : ndarray of shape (n_query_terms,)
        With 1 more for each field that holds the term, where fields count.
    length, mean_length : int, float
        Terms in the window, and on average over the index.
    k1 : float
        How soon more occurrences count less.
    """

    occurrences: NDArray[np.int64]
    length: int
    mean_length: float
    k1: float

    @property
    def norm(self) -> float:
        """What is added to the occurrences in the divisor: ``k1·(1 − b + b·L/mean L)``."""
        return self.k1 * (1 - B + B * self.length / max(self.mean_length, 1.0))


def read_window(
    candidates: Candidates, row: int, k: int, mean_length: float, *, proximity: bool = False
) -> WindowWords:
    """Return the words within ±k chunks of a row, which end with its stretch of adjacent chunks.

    Parameters
    ----------
    candidates : Candidates
        With the counts of one query.
    row : int
        Position of the chunk.
    k : int
        Chunks on either side, at least 0.
    mean_length : float
        Mean terms of such windows over the index.
    proximity : bool
        Whether for proximity, which counts no fields.

    Examples
    --------
    >>> zeros, ones = np.zeros((3, 1), np.int32), np.ones((3, 1), np.int32)
    >>> held = Candidates(
    ...     np.zeros(3, int), np.arange(3), np.full(3, 9), np.array([4, 5, 6]), np.zeros((3, 2), np.float32),
    ...     ones, ones, zeros, np.zeros(3, bool),
    ... )  # fmt: skip
    >>> read_window(held, 0, 1, 8.0)
    WindowWords(occurrences=array([3]), length=9, mean_length=8.0, k1=0.8)
    """
    starts, ends = find_runs(candidates.documents, candidates.ords)
    window = slice(max(row - k, int(starts[row])), min(row + k + 1, int(ends[row])))
    occurrences = candidates.counts[window].sum(axis=0, dtype=np.int64)
    if not proximity:
        occurrences = occurrences + candidates.fields[row] + candidates.row_fields[row]
    return WindowWords(
        occurrences, int(candidates.n_terms[window].sum()), mean_length, PROXIMITY_K1 if proximity else K1
    )


def weigh_terms(words: QueryTerms, n_chunks: int) -> Floats:
    """Return what each term of a query weighs in BM25F: its idf, years more."""
    return weigh_years(words.terms, compute_idf(words.terms, words.frequencies, n_chunks))


def weigh_pairs(words: QueryTerms, n_chunks: int) -> list[tuple[int, int, float]]:
    """Return the pairs of neighbouring terms, as positions in ``words.terms``, each with the smaller idf of the two.

    Examples
    --------
    >>> [(a, b, round(weight, 2)) for a, b, weight in weigh_pairs(QueryTerms(("oil", "pump"), (0, 1, 0), (3, 1)), 9)]
    [(0, 1, 1.05)]
    """
    idf = compute_idf(words.terms, words.frequencies, n_chunks)
    return [(a, b, float(min(idf[a], idf[b]))) for a, b in find_pairs(words.order)]
