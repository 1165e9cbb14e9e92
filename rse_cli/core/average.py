"""The method `average`: the naive rule of tutorials, segments of blocks whose mean value is high enough."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.blocks import Blocks, make_block_passage
from rse_cli.core.lexical import Floats
from rse_cli.core.method_params import AverageParams
from rse_cli.core.models import Passage
from rse_cli.core.windows import split_sentences

LEAST_VALUE, SHARE_BELOW = 0.2, 0.1  # "a value below 0.2 counts a tenth"
SIMILARITY_WEIGHT, QUALITY_WEIGHT, DENSITY_WEIGHT = 0.5, 0.3, 0.2
DENSITY_CHARS = 100
REGION_PERCENTILE = 90
KEPT_SHARE = 0.5  # of its peak, for a neighbour to join a region

_PROPER_END = re.compile(r"[.!?。！？][\"'”’»)\]」』）*_]*\s*\Z")

Spans = list[tuple[int, int]]


def measure_quality(texts: Sequence[str]) -> Floats:
    """Return the content quality of texts, in [0, 1].

    ``quality = (letters and digits in sentences that end properly) / (characters but white space)``, where a sentence
    ends properly with ``. ! ? 。 ！ ？``, closing quotes and brackets allowed after it. Prose has about 0.95, headings,
    lists of links, tables and code close to 0.

    Examples
    --------
    >>> measure_quality(["Oil it. Now", "| a | b |", ""]).round(2).tolist()
    [0.56, 0.0, 0.0]
    """
    return np.array([_measure_quality(text) for text in texts], dtype=np.float64)


def _measure_quality(text: str) -> float:
    proper = sum(
        sum(map(str.isalnum, text[start:end]))
        for start, end in split_sentences(text, wrapped=True)
        if _PROPER_END.search(text, start, end)
    )
    return proper / max(sum(not character.isspace() for character in text), 1)


def measure_density(counts: NDArray[np.int64], chars: NDArray[np.int64], idf: Floats) -> Floats:
    """Return the information density of blocks, in [0, 1].

    ``density = (Σ idf of the query's terms that occur / Σ idf of all its terms) / max(1, chars/100)``: the share of the
    query's idf weight covered per 100 characters; 0 where no term weighs anything.

    Parameters
    ----------
    counts : ndarray of shape (n_blocks, n_query_terms)
        Occurrences of the distinct query terms.
    chars : ndarray of shape (n_blocks,)
        Characters.
    idf : ndarray of shape (n_query_terms,)
        Weights of the terms.

    Examples
    --------
    >>> measure_density(np.array([[2, 0], [1, 1]]), np.array([50, 200]), np.array([1.0, 3.0])).tolist()
    [0.25, 0.5]
    """
    total = float(idf.sum())
    covered = np.einsum("ij,j->i", (counts > 0).astype(np.float64), idf)
    density: Floats = covered / (total if total > 0 else 1.0) / np.maximum(chars / DENSITY_CHARS, 1.0)
    return density


def compose_values(similarity: Floats, quality: Floats, density: Floats) -> Floats:
    """Return the values of ``valuation=composite``: ``0.5·similarity + 0.3·quality + 0.2·density``.

    Examples
    --------
    >>> compose_values(np.array([0.6]), np.array([1.0]), np.array([0.5])).round(2).tolist()
    [0.7]
    """
    return SIMILARITY_WEIGHT * similarity + QUALITY_WEIGHT * quality + DENSITY_WEIGHT * density


def select_average(blocks: Blocks, values: Floats, params: AverageParams, query: int = 0) -> list[Passage]:
    """Choose segments of blocks by the naive rule: the method `average`.

    Parameters
    ----------
    blocks : Blocks
        From `pool_blocks`.
    values : ndarray of shape (n_blocks,)
        Cosines, or the values of `compose_values`.
    params : AverageParams
        Limits, and how segments are made.
    query : int
        Position of the query.

    Returns
    -------
    list of Passage
        In the order of `blocks`: by document, then position. The score is the sum of values.

    Notes
    -----
    A value below 0.2 counts a tenth of itself. With ``reconstruct=runs`` segments of adjacent blocks of one document
    are taken by their sum of values, greatest first (ties: the earlier, then the shorter), if their mean is at least
    `minimum_value`, if they hold at most `max_length` blocks and no block that is taken, and if all taken blocks
    together stay within `overall_max_length`. For ``reconstruct=grow`` see `grow_regions`; its passages are to be
    given to `settle_ends` and `join_overlaps`.

    Examples
    --------
    >>> from rse_cli.core.blocks import pool_blocks
    >>> one, none = np.ones(4, np.int64), np.zeros((4, 0), np.int32)
    >>> vectors = np.ones((4, 1), np.float32)
    >>> blocks = pool_blocks(one, np.arange(4), np.arange(4), np.arange(4), one, vectors, none, one)
    >>> found = select_average(blocks, np.array([0.1, 0.5, 0.1, 0.3]), AverageParams())
    >>> [(p.start_chunk, p.end_chunk, round(p.score, 2)) for p in found]
    [(0, 4, 0.82)]
    """
    weighed = weigh_values(values)
    stretches = find_block_stretches(blocks)
    choose = grow_regions if params.reconstruct == "grow" else choose_average_runs
    spans = choose(weighed, stretches, params)
    return [make_block_passage(blocks, start, end, float(sum(weighed[start:end])), query) for start, end in spans]


def weigh_values(values: Floats) -> Floats:
    """Return values with those below 0.2 at a tenth.

    Examples
    --------
    >>> weigh_values(np.array([0.2, 0.1, -0.1])).round(3).tolist()
    [0.2, 0.01, -0.01]
    """
    return np.where(values < LEAST_VALUE, SHARE_BELOW * values, values)


def find_block_stretches(blocks: Blocks) -> NDArray[np.int64]:
    """Return for each block where its stretch ends: blocks that follow one another in one document without a gap.

    Examples
    --------
    >>> from rse_cli.core.blocks import pool_blocks
    >>> one, none = np.ones(3, np.int64), np.zeros((3, 0), np.int32)
    >>> vectors = np.ones((3, 1), np.float32)
    >>> blocks = pool_blocks(one, np.array([0, 1, 5]), np.array([0, 1, 9]), np.arange(3), one, vectors, none, one)
    >>> find_block_stretches(blocks).tolist()
    [2, 2, 3]
    """
    n = len(blocks.starts)
    gap = (np.diff(blocks.documents) != 0) | (blocks.start_ords[1:] != blocks.end_ords[:-1])
    ends = np.append(np.flatnonzero(gap) + 1, n)
    return ends[np.searchsorted(ends, np.arange(n), side="right")].astype(np.int64)


def choose_average_runs(values: Floats, stretch_ends: NDArray[np.int64], params: AverageParams) -> Spans:
    """Return the runs of ``reconstruct=runs`` as half-open spans of blocks, in order; see `select_average`.

    Parameters
    ----------
    values : ndarray of shape (n_blocks,)
        From `weigh_values`.
    stretch_ends : ndarray of shape (n_blocks,)
        From `find_block_stretches`.
    params : AverageParams
        Limits.

    Examples
    --------
    >>> values, ends = np.array([0.6, 0.0, 0.1, 0.9, 0.1]), np.full(5, 5)
    >>> choose_average_runs(values, ends, AverageParams(minimum_value=0.5, overall_max_length=2))
    [(2, 4)]
    """
    left = params.overall_max_length
    starts, ends, totals = _list_runs(values, stretch_ends, min(params.max_length, left), params.minimum_value)
    order = np.lexsort((ends, starts, -totals))
    starts, ends = starts[order], ends[order]
    chosen: Spans = []
    # What is passed over once, for overlap or length, stays out: so one sorted list serves all rounds.
    while left > 0 and len(starts):
        start, end = int(starts[0]), int(ends[0])
        chosen.append((start, end))
        left -= end - start
        free = ((ends <= start) | (starts >= end)) & (ends - starts <= left)
        starts, ends = starts[free], ends[free]
    return sorted(chosen)


def _list_runs(
    values: Floats, stretch_ends: NDArray[np.int64], most: int, minimum_value: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return every run inside a stretch of at most `most` blocks with mean ≥ `minimum_value`: start, end, total."""
    at = np.arange(len(values))
    totals = np.zeros(len(values))
    starts, ends, sums = [at[:0]], [at[:0]], [totals[:0]]
    for length in range(1, min(most, len(values)) + 1):
        # Summed from left to right, as a reader would, so that equal runs tie.
        at = at[at + length <= stretch_ends[at]]
        totals[at] += values[at + length - 1]
        good = at[totals[at] / length >= minimum_value]
        starts.append(good)
        ends.append(good + length)
        sums.append(totals[good])
    return np.concatenate(starts), np.concatenate(ends), np.concatenate(sums)


def grow_regions(values: Floats, stretch_ends: NDArray[np.int64], params: AverageParams) -> Spans:
    """Return the regions of ``reconstruct=grow`` as half-open spans of blocks, in order.

    Parameters
    ----------
    values : ndarray of shape (n_blocks,)
        From `weigh_values`.
    stretch_ends : ndarray of shape (n_blocks,)
        From `find_block_stretches`.
    params : AverageParams
        Limits.

    Returns
    -------
    list of (int, int)

    Notes
    -----
    A region is a run of adjacent blocks with positive values at or above the 90th percentile of all values. It is
    extended on either side while the neighbour's value is at least half of the region's peak. Regions that overlap are
    joined; one above `max_length` blocks is cut to its stretch of that length with the greatest sum. Those with a mean
    of at least `minimum_value` are taken by their sum, greatest first, while they fit into `overall_max_length`.

    Examples
    --------
    >>> values, ends = np.array([0.1, 0.5, 0.9, 0.6, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1]), np.full(10, 10)
    >>> grow_regions(values, ends, AverageParams())
    [(1, 4)]
    """
    if not len(values):
        return []
    high = (values >= np.percentile(values, REGION_PERCENTILE)) & (values > 0)
    joined: Spans = []
    for start, end in _find_high_runs(high, stretch_ends):
        first, last = _extend_region(values, stretch_ends, start, end)
        while joined and first < joined[-1][1]:
            before = joined.pop()
            first, last = min(first, before[0]), max(last, before[1])
        joined.append((first, last))
    cut = [_cut_region(values, start, end, params.max_length) for start, end in joined]
    totals = {span: float(sum(values[span[0] : span[1]])) for span in cut}
    chosen: Spans = []
    left = params.overall_max_length
    for start, end in sorted(cut, key=lambda span: (-totals[span], span)):
        if totals[start, end] / (end - start) >= params.minimum_value and end - start <= left:
            chosen.append((start, end))
            left -= end - start
    return sorted(chosen)


def _find_high_runs(high: NDArray[np.bool_], stretch_ends: NDArray[np.int64]) -> Spans:
    spans: Spans = []
    for at in np.flatnonzero(high).tolist():
        if spans and spans[-1][1] == at and stretch_ends[at - 1] > at:
            spans[-1] = (spans[-1][0], at + 1)
        else:
            spans.append((at, at + 1))
    return spans


def _extend_region(values: Floats, stretch_ends: NDArray[np.int64], start: int, end: int) -> tuple[int, int]:
    floor = KEPT_SHARE * float(values[start:end].max())
    while start > 0 and stretch_ends[start - 1] == stretch_ends[start] and values[start - 1] >= floor:
        start -= 1
    while end < stretch_ends[start] and values[end] >= floor:
        end += 1
    return start, end


def _cut_region(values: Floats, start: int, end: int, most: int) -> tuple[int, int]:
    if end - start <= most:
        return start, end
    best = max(range(start, end - most + 1), key=lambda first: (float(sum(values[first : first + most])), -first))
    return best, best + most
