"""The exact choice of `dsrag`: the greatest total under the limits of the greedy one, by dynamic programming.

What may be chosen is the same: segments inside one document, of at most `max_length` chunks, whose first and last
values are 0 or more for one of the queries and whose sum for it is at least `minimum_value`; no two overlap, and
together they have at most `budget` chunks. A segment counts with the query that values it most. Turns are not kept, so
the total is never below the greedy one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rse_cli.core.dsrag_greedy import CELLS, Pick, Positions, add_in_sequence, bound_sums, limit_width
from rse_cli.core.lexical import Floats
from rse_cli.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Segments worth choosing, one for each span, by end and then start: arrays of one length."""

    starts: Positions
    ends: Positions
    sums: Floats
    queries: Positions


def choose_exactly(
    values: Sequence[Floats], splits: Sequence[int], max_length: int, budget: int, minimum_value: float
) -> list[Pick]:
    """Return the segments of the greatest total value.

    Parameters
    ----------
    values, splits, max_length, budget, minimum_value
        As in `pick_greedily`.

    Returns
    -------
    list of Pick
        By score, highest first, ties by start. Of equal totals one with the fewest chunks; sums of 0 are left out.

    Notes
    -----
    ``best[e, b] = max(best[e−1, b], best[s, b − (e−s)] + sum(s, e))`` over the candidates ``[s, e)``, where `e`
    runs over their ends and `b` over budgets. Time grows with candidates · budget, memory with ends · budget.

    Examples
    --------
    >>> row = np.array([1.0, 1.0, -0.5, 1.25, 1.25, -0.5, 1.0, 1.0])
    >>> [pick[1:] for pick in choose_exactly([row], [8], 4, 4, 0.5)]
    [(3, 5, 2.5), (0, 2, 2.0)]
    """
    width = limit_width(splits, max_length, budget)
    if not width:
        return []
    found = _list_candidates(values, np.array(splits, dtype=np.int64), width, minimum_value)
    picks = [
        Pick(int(found.queries[at]), int(found.starts[at]), int(found.ends[at]), float(found.sums[at]))
        for at in _choose_candidates(found, width, min(budget, _count_covered(found)))
    ]
    return sorted(picks, key=lambda pick: (-pick.score, pick.start))


def _list_candidates(values: Sequence[Floats], edges: Positions, width: int, minimum_value: float) -> _Candidates:
    """Return every segment that a best choice can need, valued by the query that values it most."""
    none = np.zeros(0, dtype=np.int64)
    parts = [(none, none, np.zeros(0), none)]
    for query, row in enumerate(values):
        parts.extend(
            (*record, np.full(len(record[0]), query)) for record in _list_records(row, edges, width, minimum_value)
        )
    starts, ends, sums, queries = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((queries, -sums, starts, ends))
    starts, ends = starts[order], ends[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(starts) != 0) | (np.diff(ends) != 0)
    return _Candidates(starts[first], ends[first], sums[order][first], queries[order][first])


def _list_records(
    values: Floats, edges: Positions, width: int, minimum_value: float
) -> Iterator[tuple[Positions, Positions, Floats]]:
    """Yield one query's candidates: segments that are worth more than each of their own beginnings and ends.

    A beginning whose sum is 0 or less can be cut off, and so can an end without which the sum is as great: what is left
    is worth no less (adding in sequence is monotone, rounding included), is shorter and overlaps no more.
    """
    rows = np.flatnonzero(values > 0)
    rows = rows[bound_sums(values, rows, width) >= minimum_value]
    step = max(1, CELLS // width)
    for low in range(0, len(rows), step):
        batch = rows[low : low + step]
        sums = add_in_sequence(values, batch, edges, width)
        keep = sums >= minimum_value
        keep[:, 1:] &= sums[:, 1:] > np.maximum.accumulate(sums, axis=1)[:, :-1]
        keep[:, 1:] &= np.minimum.accumulate(sums, axis=1)[:, :-1] > 0
        at, last = np.nonzero(keep)
        yield batch[at], batch[at] + last + 1, sums[at, last]


def _count_covered(found: _Candidates) -> int:
    """Return how many chunks lie in some candidate: no choice has more."""
    depth = np.zeros(int(found.ends.max(initial=0)) + 1, dtype=np.int64)
    np.add.at(depth, found.starts, 1)
    np.add.at(depth, found.ends, -1)
    return int((np.cumsum(depth) > 0).sum())


def _choose_candidates(found: _Candidates, width: int, budget: int) -> list[int]:
    """Return the candidates of the greatest total of sums that don't overlap and have at most `budget` chunks.

    Row `e` of the table answers for the chunks up to the e-th distinct end; `width` columns of −∞ before budget 0 let a
    candidate that is longer than the budget be looked up as well.
    """
    lengths = found.ends - found.starts
    stops, firsts = np.unique(found.ends, return_index=True)
    before = np.searchsorted(stops, found.starts, side="right")
    table = np.full((len(stops) + 1, width + budget + 1), -np.inf)
    table[0, width:] = 0.0
    columns = np.arange(width, width + budget + 1)
    edges = [*firsts.tolist(), len(lengths)]
    for row in range(1, len(stops) + 1):
        here = slice(edges[row - 1], edges[row])
        totals = table[before[here, None], columns - lengths[here, None]] + found.sums[here, None]
        table[row, width:] = np.maximum(table[row - 1, width:], totals.max(axis=0))
    chosen: list[int] = []
    row, column = len(stops), width + int(table[-1, width:].argmax())
    while row:
        if table[row, column] == table[row - 1, column]:
            row -= 1
            continue
        here = slice(edges[row - 1], edges[row])
        totals = table[before[here], column - lengths[here]] + found.sums[here]
        at = edges[row - 1] + int(totals.argmax())
        chosen.append(at)
        row, column = int(before[at]), column - int(lengths[at])
    return chosen
