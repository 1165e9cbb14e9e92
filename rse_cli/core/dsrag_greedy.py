"""The greedy choice of `dsrag`: the queries take turns, each takes the best segment that is still free.

Sums are added in sequence from a segment's first chunk, as the published code adds them, so equal sums are equal here
too. Adding all of them would take n · width steps; prefix sums of the positive values bound the best sum of each start
from above, and only starts whose bound reaches the best sum found are measured.

A segment ends before the next *edge* after its start: the end of its document, or the first chunk of a taken segment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import Floats
from rse_cli.dataclass import dataclass

Positions = NDArray[np.int64]

FIRST_BATCH = 64  # starts measured at first: enough that the best one is nearly always among them
CELLS = 1 << 20  # most sums in memory at once: 8 MB, about what stays near the processor


class Pick(NamedTuple):
    """Chunks ``[start, end)`` of the documents laid end to end, picked for a query, with their sum of values."""

    query: int
    start: int
    end: int
    score: float


@dataclass(slots=True)
class _Search:
    """What is known of one query's best segments.

    ``bounds[i]`` is the best sum of the segments that begin at ``starts[i]``, reached first at ``ends[i]``; while
    ``ends[i]`` is 0 or too far, the sum is no greater than that. Taken starts have −∞.
    """

    values: Floats
    starts: Positions
    bounds: Floats
    ends: Positions


def limit_width(splits: Sequence[int], max_length: int, budget: int) -> int:
    """Return the most chunks that a segment can have: no more than the longest document.

    Examples
    --------
    >>> limit_width([2, 5], 15, 30)
    3
    """
    return max(0, min(max_length, budget, max((b - a for a, b in pairwise([0, *splits])), default=0)))


def bound_sums(values: Floats, starts: Positions, width: int) -> Floats:
    """Return what no sum of up to `width` values from each start exceeds, rounding of either sum included.

    `starts` are all positions of a value above 0 (of 0 too, if wanted), in order.
    """
    sums = np.concatenate(([0.0], np.cumsum(values[starts])))
    # A running sum of n numbers is off by at most n·ε/2 of the total; two of them and the segment's own make 1.5.
    slack = 4 * len(sums) * np.finfo(np.float64).eps * sums[-1]
    bounds: Floats = sums[np.searchsorted(starts, starts + width)] - sums[:-1] + slack
    return bounds


def add_in_sequence(values: Floats, starts: Positions, edges: Positions, width: int) -> Floats:
    """Return the sums of the first 1, 2, …, `width` values from each start, −∞ past the next of the sorted `edges`.

    Examples
    --------
    >>> add_in_sequence(np.array([1.0, 2.0, 4.0]), np.array([0, 1]), np.array([2, 3]), 3).tolist()
    [[1.0, 3.0, -inf], [2.0, -inf, -inf]]
    """
    steps = np.arange(width)
    sums: Floats = np.cumsum(values[np.minimum(starts[:, None] + steps, len(values) - 1)], axis=1)
    room = edges[np.searchsorted(edges, starts, side="right")] - starts
    sums[steps >= room[:, None]] = -np.inf
    return sums


def pick_greedily(
    values: Sequence[Floats], splits: Sequence[int], max_length: int, budget: int, minimum_value: float
) -> list[Pick]:
    """Return the segments that the queries pick in turn.

    Parameters
    ----------
    values : sequence of ndarray of shape (n_chunks,)
        Per query, the value of each chunk of the documents laid end to end; finite.
    splits : sequence of int
        Exclusive ends of the documents.
    max_length : int
        Most chunks of a segment, at least 1.
    budget : int
        Most chunks of all segments together.
    minimum_value : float
        Least sum; the first query's visit that finds none ends its turns.

    Returns
    -------
    list of Pick
        In the order picked. On a tie the lowest start wins, then the shortest.

    Examples
    --------
    >>> pick_greedily([np.array([1.0, -0.25, 0.5, 2.0])], [3, 4], 5, 4, 0.5)
    [Pick(query=0, start=3, end=4, score=2.0), Pick(query=0, start=0, end=3, score=1.25)]
    """
    width = limit_width(splits, max_length, budget)
    if not width:
        return []
    searches = [_open_search(each, width) for each in values]
    edges = np.array(splits, dtype=np.int64)
    waiting, picks, left = deque(range(len(values))), [], budget
    while waiting and left:
        query = waiting.popleft()
        found = _find_best(searches[query], edges, min(width, left), minimum_value)
        if found is None:
            continue
        waiting.append(query)
        start, end, score = found
        for search in searches:
            _take_chunks(search, start, end, width)
        edges = np.insert(edges, np.searchsorted(edges, start), start)
        left -= end - start
        picks.append(Pick(query, start, end, score))
    return picks


def _open_search(values: Floats, width: int) -> _Search:
    """Begin with the chunks of value 0 or more, none of them measured."""
    starts = np.flatnonzero(values >= 0)
    return _Search(values, starts, bound_sums(values, starts, width), np.zeros_like(starts))


def _find_best(search: _Search, edges: Positions, width: int, minimum_value: float) -> tuple[int, int, float] | None:
    """Return start, end and sum of the best free segment of at most `width` chunks, if it is worth `minimum_value`.

    The end needs no test of its sign: the sum with a negative last value is no greater than the sum without it, and of
    equal sums the shortest is taken.
    """
    measured = (search.ends > 0) & (search.ends - search.starts <= width)
    floor = max(minimum_value, float(search.bounds[measured].max(initial=-np.inf)))
    open_rows = np.flatnonzero(~measured & (search.bounds >= floor))
    size = FIRST_BATCH
    while len(open_rows):
        size = min(size, max(1, CELLS // width))
        if len(open_rows) > size:
            open_rows = open_rows[np.argpartition(-search.bounds[open_rows], size)]
        batch, open_rows = open_rows[:size], open_rows[size:]
        sums = add_in_sequence(search.values, search.starts[batch], edges, width)
        lengths = sums.argmax(axis=1)
        search.bounds[batch] = sums[np.arange(len(batch)), lengths]
        search.ends[batch] = search.starts[batch] + lengths + 1
        floor = max(floor, float(search.bounds[batch].max()))
        open_rows = open_rows[search.bounds[open_rows] >= floor]
        size *= 4
    if not len(search.starts):
        return None
    best = int(search.bounds.argmax())  # what isn't measured is below the floor
    if search.bounds[best] < minimum_value:
        return None
    return int(search.starts[best]), int(search.ends[best]), float(search.bounds[best])


def _take_chunks(search: _Search, start: int, end: int, width: int) -> None:
    """Make the chunks [start, end) unusable and forget the segments that held some of them."""
    low, inner, high = np.searchsorted(search.starts, (start - width, start, end))
    search.bounds[inner:high] = -np.inf
    ends = search.ends[low:high]
    ends[ends > start] = 0
