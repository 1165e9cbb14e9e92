"""Rows in order of preference, by meaning, by words or both, and the best of them as hits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import Floats
from rse_cli.dataclass import dataclass

Rows = NDArray[np.int64]

RETRIEVERS = ("hybrid", "dense", "lexical")
FUSION_K = 60  # fixed in a pilot of Cormack, Clarke and Büttcher 2009, and the common choice since


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk returned for a query.

    Parameters
    ----------
    document : int
        Number of its document.
    ord : int
        Its position in the document.
    score : float
        How well it ranks; higher is better.
    """

    document: int
    ord: int
    score: float


def measure_similarity(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> Floats:
    """Return the cosine of unit `vectors` with a unit query; equal vectors tie wherever they stand, unlike with BLAS.

    Examples
    --------
    >>> measure_similarity(np.array([[1, 0], [0, 1]], np.float32), np.array([0, 1], np.float32)).tolist()
    [0.0, 1.0]
    """
    products: Floats = np.einsum("ij,j->i", vectors, query).astype(np.float64)
    return products


def rank_dense(similarity: Floats) -> Rows:
    """Return all rows by similarity, greatest first, ties by row.

    Examples
    --------
    >>> rank_dense(np.array([0.1, 0.5, 0.5])).tolist()
    [1, 2, 0]
    """
    return np.argsort(-similarity, kind="stable").astype(np.int64)


def rank_lexical(bm25: Floats) -> Rows:
    """Return the rows that match a term, by BM25, greatest first, ties by row.

    Examples
    --------
    >>> rank_lexical(np.array([0.1, 0.0, 0.5])).tolist()
    [2, 0]
    """
    order = np.argsort(-bm25, kind="stable").astype(np.int64)
    return order[bm25[order] > 0]


def fuse_ranks(rankings: Sequence[Rows], k: int = FUSION_K) -> tuple[Rows, Floats]:
    """Join rankings by reciprocal rank fusion.

    Parameters
    ----------
    rankings : sequence of ndarray
        Rows, best first, each at most once in a ranking; they need not hold the same rows.
    k : int
        The larger, the less the first ranks stand out; at least 0.

    Returns
    -------
    rows : ndarray of shape (n,)
        Every row of any ranking, best first, ties by row.
    scores : ndarray of shape (n,)
        ``Σ 1/(k + rank)`` over the rankings that hold the row, ranks counted from 1.

    Notes
    -----
    Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods",
    SIGIR 2009.

    Examples
    --------
    >>> rows, scores = fuse_ranks([np.array([3, 1]), np.array([1, 2])])
    >>> rows.tolist(), scores.round(4).tolist()
    ([1, 3, 2], [0.0325, 0.0164, 0.0161])
    """
    found = [ranking for ranking in rankings if len(ranking)]
    if not found:
        return np.zeros(0, np.int64), np.zeros(0)
    rows = np.unique(np.concatenate(found)).astype(np.int64)
    shares = np.zeros((len(found), len(rows)))
    for share, ranking in zip(shares, found, strict=True):
        share[np.searchsorted(rows, ranking)] = 1.0 / (k + 1 + np.arange(len(ranking)))
    # Sorted before they are summed, so that the same ranks in another order make the same bits: a tie.
    scores: Floats = np.sort(shares, axis=0).sum(axis=0)
    order = np.argsort(-scores, kind="stable")
    return rows[order], scores[order]


def choose_retriever(retriever: str, lexical: bool) -> str:
    """Return the retriever that ranks a query: without cosines words do the work of ``dense``.

    Examples
    --------
    >>> choose_retriever("dense", lexical=True), choose_retriever("hybrid", lexical=True)
    ('lexical', 'hybrid')
    """
    return "lexical" if lexical and retriever == "dense" else retriever


def rank_rows(retriever: str, similarity: Floats | None, bm25: Floats) -> tuple[Rows, Floats]:
    """Rank rows, chunks or blocks, by one of `RETRIEVERS`.

    Parameters
    ----------
    retriever : {"hybrid", "dense", "lexical"}
        Reciprocal rank fusion of both rankings, or one of them.
    similarity : ndarray of shape (n,) or None
        Cosines; None for a query without a vector, which `hybrid` then ranks by words alone.
    bm25 : ndarray of shape (n,)
        Scores that are 0 where no term matches.

    Returns
    -------
    rows, scores : ndarray of shape (m,)
        Best first, ties by row. The score is the similarity, the BM25 or the fused one.

    Raises
    ------
    ValueError
        If the retriever is unknown, or ``dense`` without `similarity`.

    Examples
    --------
    >>> rank_rows("lexical", None, np.array([0.0, 0.2, 0.4]))
    (array([2, 1]), array([0.4, 0.2]))
    """
    if retriever not in RETRIEVERS or (retriever == "dense" and similarity is None):
        raise ValueError(f"can't rank by {retriever!r}" + (" without a vector" if retriever in RETRIEVERS else ""))
    lexical = rank_lexical(bm25)
    if retriever == "lexical":
        return lexical, bm25[lexical]
    if similarity is None:
        return fuse_ranks([lexical])
    dense = rank_dense(similarity)
    return fuse_ranks([dense, lexical]) if retriever == "hybrid" else (dense, similarity[dense])


def take_hits(ranked: tuple[Rows, Floats], documents: Rows, ords: Rows, most: int) -> list[Hit]:
    """Return the first `most` ranked rows as hits, best first.

    Examples
    --------
    >>> take_hits((np.array([1, 0]), np.array([0.9, 0.2])), np.array([4, 4]), np.array([7, 8]), 1)
    [Hit(document=4, ord=8, score=0.9)]
    """
    rows, scores = ranked[0][:most], ranked[1][:most]
    columns = (documents[rows].tolist(), ords[rows].tolist(), scores.tolist())
    return [Hit(document, ord_, score) for document, ord_, score in zip(*columns, strict=True)]
