"""The terms of many chunks as a column that queries count in: as texts, or as postings where many queries count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import count_terms
from rse_cli.dataclass import dataclass


class TermColumn(Protocol):
    """Terms of chunks, a row each."""

    def count(self, terms: Sequence[str]) -> NDArray[np.int32]:
        """How often each row holds each term, shape ``(n_rows, len(terms))``."""
        ...

    def lengths(self) -> NDArray[np.int64]:
        """How many terms each row has, shape ``(n_rows,)``."""
        ...

    def take(self, order: NDArray[np.int64]) -> TermColumn:
        """The rows at these positions, in this order."""
        ...


@dataclass(frozen=True, slots=True)
class TermTexts:
    """Terms joined by spaces, a text for each row.

    Examples
    --------
    >>> column = TermTexts(["gear box gear", ""])
    >>> column.count(["gear", "oil"]).tolist(), column.lengths().tolist()
    ([[2, 0], [0, 0]], [3, 0])
    """

    texts: Sequence[str]

    def count(self, terms: Sequence[str]) -> NDArray[np.int32]:
        """Return how often each row holds each term, shape ``(n_rows, len(terms))``."""
        return count_terms(self.texts, terms)

    def lengths(self) -> NDArray[np.int64]:
        """Return how many terms each row has, shape ``(n_rows,)``."""
        return np.array([text.count(" ") + 1 if text else 0 for text in self.texts], dtype=np.int64)

    def take(self, order: NDArray[np.int64]) -> TermTexts:
        """Return the rows at these positions, in this order."""
        return TermTexts([self.texts[row] for row in order.tolist()])


@dataclass(frozen=True, slots=True)
class Postings:
    """Where each term occurs.

    Parameters
    ----------
    columns : dict of str to int
        Number of each distinct term.
    starts : ndarray of shape (n_distinct + 1,)
        Where the occurrences of each term start in `rows`.
    rows : ndarray of shape (n_occurrences,)
        The row of each occurrence, ascending within a term.
    row_lengths : ndarray of shape (n_rows,)
        Terms of each row.
    """

    columns: dict[str, int]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    row_lengths: NDArray[np.int64]

    def find(self, term: str) -> NDArray[np.int32]:
        """Return the row of each occurrence of a term, ascending.

        Examples
        --------
        >>> build_postings(["gear box gear", "box"]).find("gear").tolist()
        [0, 0]
        """
        column = self.columns.get(term)
        return self.rows[:0] if column is None else self.rows[self.starts[column] : self.starts[column + 1]]

    def count_rows(self, term: str) -> int:
        """Return how many rows hold a term.

        Examples
        --------
        >>> build_postings(["gear box gear", "box"]).count_rows("gear")
        1
        """
        found = self.find(term)
        return 1 + int(np.count_nonzero(np.diff(found))) if len(found) else 0


def build_postings(texts: Sequence[str]) -> Postings:
    """Return the postings of texts of terms joined by spaces.

    Examples
    --------
    >>> postings = build_postings(["gear box gear", "", "box"])
    >>> postings.columns, postings.starts.tolist(), postings.rows.tolist(), postings.row_lengths.tolist()
    ({'gear': 0, 'box': 1}, [0, 2, 4], [0, 0, 0, 2], [3, 0, 1])
    """
    columns: dict[str, int] = {}
    split = [text.split(" ") if text else [] for text in texts]
    numbers = np.array([columns.setdefault(term, len(columns)) for terms in split for term in terms], dtype=np.int64)
    lengths = np.array([len(terms) for terms in split], dtype=np.int64)
    rows = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)[np.argsort(numbers, kind="stable")]
    starts = np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=len(columns))))).astype(np.int64)
    return Postings(columns, starts, rows, lengths)


def post_terms(texts: Sequence[str]) -> PostedTerms:
    """Return texts of terms joined by spaces as postings.

    Examples
    --------
    >>> post_terms(["gear box gear", "oil"]).count(["gear"]).tolist()
    [[2], [0]]
    """
    return PostedTerms(build_postings(texts), np.arange(len(texts)))


@dataclass(frozen=True, slots=True)
class PostedTerms:
    """Some rows of postings, each at most once.

    Parameters
    ----------
    postings : Postings
        Of all rows.
    rows : ndarray of shape (n,)
        Which of them, in any order.

    Examples
    --------
    >>> column = PostedTerms(build_postings(["gear box gear", "", "box"]), np.array([2, 0]))
    >>> column.count(["gear", "box"]).tolist(), column.lengths().tolist()
    ([[0, 1], [2, 1]], [1, 3])
    """

    postings: Postings
    rows: NDArray[np.int64]

    def count(self, terms: Sequence[str]) -> NDArray[np.int32]:
        """Return how often each row holds each term, shape ``(n_rows, len(terms))``."""
        counts = np.zeros((len(self.rows), len(terms)), dtype=np.int32)
        places = np.full(len(self.postings.row_lengths), -1, dtype=np.int64)
        places[self.rows] = np.arange(len(self.rows))
        for column, term in enumerate(terms):
            found = places[self.postings.find(term)]
            counts[:, column] = np.bincount(found[found >= 0], minlength=len(self.rows))
        return counts

    def lengths(self) -> NDArray[np.int64]:
        """Return how many terms each row has, shape ``(n_rows,)``."""
        return self.postings.row_lengths[self.rows]

    def take(self, order: NDArray[np.int64]) -> PostedTerms:
        """Return the rows at these positions, in this order."""
        return PostedTerms(self.postings, self.rows[order])
