"""Blocks: adjacent chunks of one section, the unit of the classic methods, as sums and means of their chunks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import Floats
from rse_cli.core.models import Chunk, Passage
from rse_cli.dataclass import dataclass

BLOCK_CHARS = 800  # what the classic methods are usually run with: about 200 tokens
MOST_CHUNKS = 13  # a hit comes with its 12 neighbours on either side, which then hold its whole block


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of candidate rows, as columns; blocks are in the order of the rows.

    Parameters
    ----------
    documents : ndarray of shape (n_blocks,)
        Number of each block's document.
    numbers : ndarray of shape (n_blocks,)
        Number of the block in its document, from 0.
    starts, ends : ndarray of shape (n_blocks,)
        Half-open rows.
    start_ords, end_ords : ndarray of shape (n_blocks,)
        Half-open chunks of the document.
    start_chars : ndarray of shape (n_blocks,)
        Where each begins in the document's text.
    chars : ndarray of shape (n_blocks,)
        Characters.
    vectors : ndarray of shape (n_blocks, dimension)
        Means of the chunks' vectors weighted by characters, of unit length.
    counts : ndarray of shape (n_blocks, n_query_terms)
        Occurrences of the distinct query terms.
    n_terms : ndarray of shape (n_blocks,)
        Terms without stop words.
    of_rows : ndarray of shape (n_rows,)
        For each row, the position of its block in these columns.
    """

    documents: NDArray[np.int64]
    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    start_ords: NDArray[np.int64]
    end_ords: NDArray[np.int64]
    start_chars: NDArray[np.int64]
    chars: NDArray[np.int64]
    vectors: NDArray[np.float32]
    counts: NDArray[np.int64]
    n_terms: NDArray[np.int64]
    of_rows: NDArray[np.int64]


def assign_blocks(chunks: Sequence[Chunk], block_chars: int = BLOCK_CHARS, most_chunks: int = MOST_CHUNKS) -> list[int]:
    """Return the number of each chunk's block: whole chunks of one section, joined in order while they fit.

    Parameters
    ----------
    chunks : sequence of Chunk
        All chunks of a document, in order.
    block_chars : int
        Most characters of a block, at least 1; a longer chunk is a block by itself.
    most_chunks : int
        Most chunks of a block, at least 1.

    Returns
    -------
    list of int
        From 0, ascending by at most 1.

    Raises
    ------
    ValueError
        If a limit is below 1.

    Examples
    --------
    >>> chunks = [Chunk(0, 0, 4, "One."), Chunk(1, 4, 8, "Two."), Chunk(2, 8, 13, "Three", section="Next")]
    >>> assign_blocks(chunks)
    [0, 0, 1]
    """
    if block_chars < 1 or most_chunks < 1:
        raise ValueError("a block holds at least one character of one chunk")
    numbers: list[int] = []
    first = 0
    for at, chunk in enumerate(chunks):
        head = chunks[first]
        fits = chunk.end_char - head.start_char <= block_chars and at - first < most_chunks
        if at and not (fits and chunk.section == head.section):
            first = at
        numbers.append(numbers[-1] + (first == at) if numbers else 0)
    return numbers


def pool_blocks(
    documents: NDArray[np.int64],
    blocks: NDArray[np.int64],
    ords: NDArray[np.int64],
    start_chars: NDArray[np.int64],
    chars: NDArray[np.int64],
    vectors: NDArray[np.float32],
    counts: NDArray[np.int32],
    n_terms: NDArray[np.int64],
) -> Blocks:
    """Pool candidate rows into their blocks.

    Parameters
    ----------
    documents, blocks, ords : ndarray of shape (n_rows,)
        Document number, block number and position of each chunk; rows of a document are together, sorted by `ords`.
    start_chars, chars, n_terms : ndarray of shape (n_rows,)
        Where each chunk begins, its characters, and its terms.
    vectors : ndarray of shape (n_rows, dimension)
        Unit vectors.
    counts : ndarray of shape (n_rows, n_query_terms)
        Occurrences of the query's terms.

    Returns
    -------
    Blocks

    Notes
    -----
    A block of which only some chunks are among the rows, as at the edge of a hit's neighbours, is pooled from these. If
    they lie apart, each stretch of adjacent chunks becomes a row of its own with the same number, so that a block is
    always one stretch of text.

    Examples
    --------
    >>> pooled = pool_blocks(
    ...     np.array([7, 7, 7]), np.array([0, 0, 1]), np.arange(3), np.array([0, 10, 40]), np.array([10, 30, 20]),
    ...     np.array([[1, 0], [0, 0], [0, 1]], np.float32), np.array([[1], [2], [0]], np.int32), np.array([2, 5, 3]),
    ... )  # fmt: skip
    >>> pooled.chars.tolist(), pooled.counts.tolist(), pooled.vectors.tolist(), pooled.of_rows.tolist()
    ([40, 20], [[3], [0]], [[1.0, 0.0], [0.0, 1.0]], [0, 0, 1])
    """
    n = len(ords)
    opens = np.ones(n, dtype=np.bool_)
    opens[1:] = (np.diff(documents) != 0) | (np.diff(blocks) != 0) | (np.diff(ords) != 1)
    starts = np.flatnonzero(opens).astype(np.int64)
    ends = np.append(starts[1:], n).astype(np.int64) if n else starts
    return Blocks(
        documents=documents[starts],
        numbers=blocks[starts],
        starts=starts,
        ends=ends,
        start_ords=ords[starts],
        end_ords=ords[ends - 1] + 1,
        start_chars=start_chars[starts],
        chars=_sum_blocks(chars, starts),
        vectors=_pool_vectors(vectors, chars, starts, ends),
        counts=_sum_blocks(counts, starts),
        n_terms=_sum_blocks(n_terms, starts),
        of_rows=np.cumsum(opens, dtype=np.int64) - 1,
    )


def _sum_blocks(values: NDArray[np.int64] | NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(starts):
        return np.zeros((0, *values.shape[1:]), np.int64)
    sums: NDArray[np.int64] = np.add.reduceat(values.astype(np.int64), starts, axis=0)
    return sums


def _pool_vectors(
    vectors: NDArray[np.float32], chars: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Length-weighted means of unit length; summed in a fixed order, so that equal blocks have equal bits."""
    total = np.zeros((len(starts), vectors.shape[1]), np.float32)
    sizes = ends - starts
    for step in range(int(sizes.max(initial=0))):
        held = np.flatnonzero(sizes > step)
        rows = starts[held] + step
        total[held] += vectors[rows] * chars[rows, None].astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", total, total))
    pooled: NDArray[np.float32] = total / np.maximum(norms, np.float32(1e-12))[:, None]
    return pooled


def take_largest(blocks: Blocks, values: Floats) -> Floats:
    """Return for each block the largest value of its rows: the relevance of a block is that of its best chunk.

    Parameters
    ----------
    blocks : Blocks
        From `pool_blocks`.
    values : ndarray of shape (n_rows,)
        One value per row.

    Returns
    -------
    ndarray of shape (n_blocks,)

    Examples
    --------
    >>> at, one, none = np.arange(3), np.ones(3, np.int64), np.zeros((3, 0), np.int32)
    >>> blocks = pool_blocks(one, np.array([0, 0, 1]), at, at, one, np.ones((3, 1), np.float32), none, one)
    >>> take_largest(blocks, np.array([0.2, 0.9, 0.4])).tolist()
    [0.9, 0.4]
    """
    if not len(blocks.starts):
        return np.zeros(0)
    largest: Floats = np.maximum.reduceat(values, blocks.starts)
    return largest


def select_blocks(blocks: Blocks, ranked: tuple[NDArray[np.int64], Floats], k: int, query: int = 0) -> list[Passage]:
    """Return the k best blocks as passages: the method `top-k`.

    Parameters
    ----------
    blocks : Blocks
        From `pool_blocks`.
    ranked : (ndarray of shape (m,), ndarray of shape (m,))
        Positions of blocks, best first, and their scores; from `rank_rows` over the columns of `blocks`.
    k : int
        Most passages, at least 0.
    query : int
        Position of the query.

    Returns
    -------
    list of Passage
        Best first, in the order of `ranked`.

    Examples
    --------
    >>> at, one, none = np.arange(3), np.ones(3, np.int64), np.zeros((3, 0), np.int32)
    >>> blocks = pool_blocks(one, np.array([0, 0, 1]), at, at, one, np.ones((3, 1), np.float32), none, one)
    >>> ranked = np.array([1, 0]), np.array([0.8, 0.5])
    >>> [(p.start_chunk, p.end_chunk, p.score) for p in select_blocks(blocks, ranked, 1)]
    [(2, 3, 0.8)]
    """
    order, scores = ranked
    return [
        make_block_passage(blocks, at, at + 1, score, query)
        for at, score in zip(order[:k].tolist(), scores[:k].tolist(), strict=True)
    ]


def make_block_passage(blocks: Blocks, start: int, end: int, score: float, query: int = 0) -> Passage:
    """Return blocks ``[start, end)``, adjacent ones of one document, as one passage.

    Examples
    --------
    >>> at, one, none = np.arange(2), np.ones(2, np.int64), np.zeros((2, 0), np.int32)
    >>> blocks = pool_blocks(one, at, at, at, one, np.ones((2, 1), np.float32), none, one)
    >>> make_block_passage(blocks, 0, 2, 1.5)
    Passage(document=1, start_chunk=0, end_chunk=2, start_char=0, end_char=2, score=1.5, queries=(0,), hit=None)
    """
    last = end - 1
    return Passage(
        document=int(blocks.documents[start]),
        start_chunk=int(blocks.start_ords[start]),
        end_chunk=int(blocks.end_ords[last]),
        start_char=int(blocks.start_chars[start]),
        end_char=int(blocks.start_chars[last] + blocks.chars[last]),
        score=score,
        queries=(query,),
    )
