"""The published algorithm of dsRAG: ranked hits to segments, to the letter.

The documents of the best hits are laid end to end; each query gives every chunk a value that decays with its rank;
the best segments are chosen within a budget of chunks (`dsrag_greedy` as published, `dsrag_exact` for the greatest
total).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

import numpy as np

from rse_cli.core.dsrag_exact import choose_exactly
from rse_cli.core.dsrag_greedy import Positions, pick_greedily
from rse_cli.core.dsrag_params import DsragParams, choose_dsrag_params
from rse_cli.core.lexical import Floats
from rse_cli.dataclass import dataclass

REFERENCE_CHARS = 700  # as published: chunks up to this length keep their value, longer ones gain in proportion

RankedHit = tuple[str, int, int | None, float]
"""Document, 0-based chunk, the chunk's characters (None if unknown) and similarity."""


@dataclass(frozen=True, slots=True)
class DsragSegment:
    """Chunks ``[start_chunk, end_chunk)`` of a document, their sum of values, and the query that chose them."""

    path: str
    start_chunk: int
    end_chunk: int
    score: float
    query: int


@dataclass(frozen=True, slots=True)
class DsragSelection:
    """The segments and all that they were chosen from.

    Parameters
    ----------
    documents : tuple of str
        The documents searched, in order of first appearance among the first hits.
    splits : tuple of int
        Where each document ends, exclusive, when their chunks are laid end to end.
    values : tuple of ndarray of shape (n_chunks,)
        Per query, the value of each of these chunks.
    segments : tuple of DsragSegment
        In the order picked (greedy), or by score, highest first (exact).
    """

    documents: tuple[str, ...]
    splits: tuple[int, ...]
    values: tuple[Floats, ...]
    segments: tuple[DsragSegment, ...]


@dataclass(frozen=True, slots=True)
class _Hits:
    """One query's hits in rank order as arrays; `documents` holds ids."""

    documents: list[str]
    chunks: Positions
    lengths: Floats
    similarities: Floats


def relevant_segments(
    ranked: Sequence[Sequence[RankedHit]], params: Mapping[str, Any]
) -> list[tuple[str, int, int, float]]:
    """Return the best segments as ``(doc_id, chunk_start, chunk_end, score)``, `chunk_end` exclusive.

    Parameters
    ----------
    ranked : sequence of sequence of (doc_id, chunk_index, chunk_length, similarity)
        One list for each query, best first.
    params : mapping
        Fields of `DsragParams` by name; missing ones are filled from ``balanced``.

    Raises
    ------
    UsageError
        If a parameter is unknown or out of range.
    ValueError
        If a chunk index is negative or a similarity isn't finite.

    Examples
    --------
    >>> relevant_segments([[("a.md", 3, 400, 1.0), ("b.md", 0, 1400, 0.0)]], {"irrelevant_chunk_penalty": 0.25})
    [('a.md', 3, 4, 0.75)]
    """
    selection = select_dsrag(ranked, choose_dsrag_params("balanced", params))
    return [(one.path, one.start_chunk, one.end_chunk, one.score) for one in selection.segments]


def select_dsrag(ranked: Sequence[Sequence[RankedHit]], params: DsragParams) -> DsragSelection:
    """Return the best segments with the documents, splits and values that they were chosen from.

    Parameters
    ----------
    ranked, params
        As in `relevant_segments`. The answer to q queries has at most
        ``overall_max_length + (q − 1) · overall_max_length_extension`` chunks.

    Raises
    ------
    ValueError
        If a chunk index is negative or a similarity isn't finite.

    Examples
    --------
    >>> selection = select_dsrag([[("b", 0, 9, 0.9)], [("a", 1, 9, 0.9), ("b", 2, 9, 0.1)]], DsragParams())
    >>> selection.documents, selection.splits
    (('b', 'a'), (3, 5))
    """
    queries = [_read_hits(hits) for hits in ranked]
    documents = _choose_documents(queries, params.top_k_for_document_selection)
    numbers = {document: number for number, document in enumerate(documents)}
    owners = [np.fromiter(map(numbers.get, hits.documents, repeat(-1)), np.int64) for hits in queries]
    sizes = np.zeros(len(documents), dtype=np.int64)
    for hits, owner in zip(queries, owners, strict=True):
        np.maximum.at(sizes, owner[owner >= 0], hits.chunks[owner >= 0] + 1)
    splits = np.cumsum(sizes)
    values = tuple(
        _value_chunks(*pair, splits - sizes, int(sizes.sum()), params) for pair in zip(queries, owners, strict=True)
    )
    choose = choose_exactly if params.solver == "exact" else pick_greedily
    budget = params.overall_max_length + (len(queries) - 1) * params.overall_max_length_extension
    segments = []
    for query, start, end, score in choose(values, splits.tolist(), params.max_length, budget, params.minimum_value):
        number = int(np.searchsorted(splits, start, side="right"))
        first = int(splits[number] - sizes[number])
        segments.append(DsragSegment(documents[number], start - first, end - first, score, query))
    return DsragSelection(documents, tuple(splits.tolist()), values, tuple(segments))


def _read_hits(hits: Sequence[RankedHit]) -> _Hits:
    """Return one query's hits as arrays."""
    read = _Hits(
        [hit[0] for hit in hits],
        np.fromiter(map(itemgetter(1), hits), np.int64, len(hits)),
        np.array([hit[2] or 0 for hit in hits], dtype=np.float64),
        np.fromiter(map(itemgetter(3), hits), np.float64, len(hits)),
    )
    if (read.chunks < 0).any():
        raise ValueError("a chunk index is negative")
    if not np.isfinite(read.similarities).all():
        raise ValueError("a similarity is not a finite number")
    return read


def _choose_documents(queries: Sequence[_Hits], top_k: int) -> tuple[str, ...]:
    """Return the documents of each query's first `top_k` hits, in order of first appearance."""
    return tuple(dict.fromkeys(document for hits in queries for document in hits.documents[:top_k]))


def _value_chunks(hits: _Hits, owner: Positions, firsts: Positions, n_chunks: int, params: DsragParams) -> Floats:
    """Return a query's value of each chunk: ``exp(−rank/decay_rate)·similarity − penalty``, adjusted for length.

    `owner` is the number of each hit's document, −1 where that isn't searched; such hits keep their rank. A chunk that
    wasn't hit has similarity 0 and length 0. Of a chunk hit twice the later hit counts: NumPy assigns in order.
    """
    ranks = np.arange(len(owner))
    with np.errstate(over="ignore"):  # a decay of next to nothing: −∞ is what it comes to, and exp(−∞) is 0
        decay = np.exp(-ranks / params.decay_rate)
    worth = decay * hits.similarities - params.irrelevant_chunk_penalty
    if params.chunk_length_adjustment:
        worth *= np.maximum(hits.lengths, REFERENCE_CHARS) / REFERENCE_CHARS
    values = np.full(n_chunks, -params.irrelevant_chunk_penalty)
    kept = owner >= 0
    values[firsts[owner[kept]] + hits.chunks[kept]] = worth[kept]
    return values
