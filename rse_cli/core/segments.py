"""Values per chunk to the best segments, exactly.

What a segment is worth (`price_chunks`) is kept apart from how the best ones are found (`choose_runs`). All positions
are rows of the candidate arrays; a run never crosses from one stretch of adjacent chunks into another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import Floats
from rse_cli.core.models import Run
from rse_cli.dataclass import dataclass

BISECTIONS = 12  # narrows the penalty to 1/4096 of its range

MANY_ROWS = 5_000
"""From so many on the bisection gains by leaving out what a greater penalty makes worthless; fewer are done sooner."""

UNIT_CHARS = 100
"""Relevance and penalty are prices per 100 characters."""


def price_chunks(relevance: Floats, chars: NDArray[np.int64], penalty: float) -> Floats:
    """Return the value of each chunk: ``(relevance − penalty) · characters / 100``.

    Examples
    --------
    >>> price_chunks(np.array([1.0, 0.0]), np.array([200, 100]), 0.25).tolist()
    [1.5, -0.25]
    """
    values: Floats = (relevance - penalty) * chars / UNIT_CHARS
    return values


def choose_runs(values: Floats, starts: NDArray[np.int64], cost: float) -> list[Run]:
    """Return the disjoint runs that maximise ``Σ values − cost · (number of runs)``, exactly.

    ``in[u] = max(in[u−1], out[u−1] − cost) + v_u``, ``out[u] = max(out[u−1], in[u])``; ``in`` starts at −∞ in each
    stretch, ``out`` carries over. Neighbours of one sign are taken together first, as a run of the best kind begins and
    ends with the values of its sign: that leaves a few steps for each positive stretch.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite.
    starts : ndarray of shape (n,)
        For each row, where its stretch of adjacent chunks starts (`find_runs`).
    cost : float
        Cost of one run, at least 0.

    Returns
    -------
    list of Run
        In order of position; each score is the sum of the run's values less `cost`, and positive.

    Examples
    --------
    >>> choose_runs(np.array([2.0, -0.25, 1.0, -3.0, 1.0]), np.zeros(5, int), 0.5)
    [Run(start=0, end=3, score=2.25), Run(start=4, end=5, score=0.5)]
    """
    spans = _choose_spans(values, starts, cost)
    return [Run(start, end, float(values[start:end].sum() - cost)) for start, end in spans]


def _choose_spans(values: Floats, starts: NDArray[np.int64], cost: float) -> list[tuple[int, int]]:
    if not len(values):
        return []
    bounds = _group_signs(values, starts)
    sums = np.add.reduceat(values, bounds).tolist()
    stretch = starts[bounds].tolist()
    best_out, best_in = 0.0, -np.inf
    opened = -1
    links: list[tuple[int, int, int]] = []  # (first group, last group, link before): runs as a linked list
    out_link = in_link = -1
    for group, value in enumerate(sums):
        if group and stretch[group] != stretch[group - 1]:
            best_in = -np.inf
        if value > 0 and best_out - cost > best_in:
            best_in, opened, in_link = best_out - cost, group, out_link
        best_in += value
        if best_in > best_out:
            best_out = best_in
            links.append((opened, group, in_link))
            out_link = len(links) - 1
    edges = [*bounds.tolist(), len(values)]
    spans: list[tuple[int, int]] = []
    while out_link >= 0:
        first, last, out_link = links[out_link]
        spans.append((edges[first], edges[last + 1]))
    return spans[::-1]


def _group_signs(values: Floats, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where groups begin of neighbours in one stretch that are all above 0, or all not."""
    positive = values > 0
    is_new = (positive[1:] != positive[:-1]) | (starts[1:] != starts[:-1])
    return np.flatnonzero(np.concatenate(([True], is_new)))[: len(values)]


def count_chars(runs: list[Run], sums: NDArray[np.int64]) -> int:
    """Return the characters in `runs`; `sums` are prefix sums of the chunks' characters, 0 first."""
    return sum(int(sums[run.end] - sums[run.start]) for run in runs)


@dataclass(frozen=True, slots=True)
class Ground:
    """The rows that a run can hold at some penalty; at a greater one it holds no others. Columns of shape (n,).

    Parameters
    ----------
    rows : ndarray of int
        Ascending.
    relevance, chars : ndarray
        Of each.
    parts : ndarray of int
        Equal for rows that one run may hold together.
    cost : float
        Of one run.
    highest : float
        The greatest relevance of all rows, those left out too.
    """

    rows: NDArray[np.int64]
    relevance: Floats
    chars: NDArray[np.int64]
    parts: NDArray[np.int64]
    cost: float
    highest: float


def find_ground(
    relevance: Floats, chars: NDArray[np.int64], starts: NDArray[np.int64], penalty: float, cost: float
) -> Ground:
    """Leave out the rows that no run holds at this penalty or a greater one.

    No run crosses a gap that loses more than a second run costs, and none lies where all values above 0 between two
    such gaps don't make up for its cost. Both stay so when the penalty grows, as values only fall. A few rows in a
    hundred are left, so that the bisection of the penalty takes next to no time.

    Parameters
    ----------
    relevance, chars, starts
        As in `price_chunks` and `choose_runs`.
    penalty : float
        Least penalty per 100 characters.
    cost : float
        Cost of one run.

    Examples
    --------
    >>> ground = find_ground(np.array([0.9, 0.0, 0.0, 0.3, 0.9]), np.full(5, 100), np.zeros(5, int), 0.2, 0.3)
    >>> ground.rows.tolist(), ground.parts.tolist()
    ([0, 3, 4], [0, 1, 1])
    """
    values, highest = price_chunks(relevance, chars, penalty), float(relevance.max(initial=-np.inf))
    bounds = _group_signs(values, starts)
    sums = np.add.reduceat(values, bounds) if len(values) else values
    tops = np.flatnonzero(sums > 0)
    if not len(tops):
        nothing = np.zeros(0, np.int64)
        return Ground(nothing, relevance[:0], chars[:0], nothing, cost, highest)
    # Between two neighbours of one stretch that are above 0 lies one group that is not.
    is_cut = (starts[bounds[tops[1:]]] != starts[bounds[tops[:-1]]]) | (-sums[tops[1:] - 1] > cost)
    firsts = np.flatnonzero(np.concatenate(([True], is_cut)))
    lasts = np.concatenate((firsts[1:], [len(tops)])) - 1
    is_worth_it = np.add.reduceat(sums[tops], firsts) > cost
    ends = np.concatenate((bounds[1:], [len(values)]))
    begin, end = bounds[tops[firsts[is_worth_it]]], ends[tops[lasts[is_worth_it]]]
    lengths = end - begin
    parts = np.repeat(np.arange(len(begin)), lengths)
    rows = np.arange(len(parts)) + np.repeat(begin - (np.cumsum(lengths) - lengths), lengths)
    return Ground(rows, relevance[rows], chars[rows], parts, cost, highest)


def narrow_ground(ground: Ground, penalty: float) -> Ground:
    """Leave out what no run holds at a greater penalty."""
    inner = find_ground(ground.relevance, ground.chars, ground.parts, penalty, ground.cost)
    return Ground(ground.rows[inner.rows], inner.relevance, inner.chars, inner.parts, inner.cost, ground.highest)


def choose_runs_on(ground: Ground, penalty: float) -> list[Run]:
    """Return the best runs at a penalty no less than that of `ground`, see `choose_runs`."""
    found = choose_runs(price_chunks(ground.relevance, ground.chars, penalty), ground.parts, ground.cost)
    return [Run(int(ground.rows[run.start]), int(ground.rows[run.end - 1]) + 1, run.score) for run in found]


def fit_runs(
    ground: Ground, runs: list[Run], sums: NDArray[np.int64], penalty: float, max_chars: int
) -> tuple[list[Run], float]:
    """Return the best runs of at most `max_chars` characters, and the penalty that makes them fit.

    If the best runs at `penalty` are too long, the penalty is bisected 12 times in ``[penalty, max relevance]`` and the
    largest answer that fits is kept. If none does, there are no runs.

    Parameters
    ----------
    ground : Ground
        Where they lie.
    runs : list of Run
        The best at `penalty`.
    sums : ndarray of int
        Prefix sums of the characters of all rows, 0 first.
    penalty : float
        Least penalty per 100 characters, that of `ground`.
    max_chars : int
        Ceiling.

    Examples
    --------
    >>> chars = np.full(3, 100)
    >>> ground = find_ground(np.array([1.0, 0.5, 0.9]), chars, np.zeros(3, int), 0.1, 0.0)
    >>> sums = np.concatenate(([0], np.cumsum(chars)))
    >>> runs, penalty = fit_runs(ground, choose_runs_on(ground, 0.1), sums, 0.1, 100)
    >>> [(run.start, run.end) for run in runs], round(penalty, 3)
    ([(0, 1)], 0.9)
    """
    if count_chars(runs, sums) <= max_chars:
        return runs, penalty
    low, high = penalty, ground.highest
    best_chars, best_penalty = 0, high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        narrower = narrow_ground(ground, middle) if len(ground.rows) > MANY_ROWS else ground
        spans = _choose_spans(price_chunks(narrower.relevance, narrower.chars, middle), narrower.parts, narrower.cost)
        rows = narrower.rows
        chars = sum(int(sums[rows[end - 1] + 1] - sums[rows[start]]) for start, end in spans)
        if chars > max_chars:
            low, ground = middle, narrower
            continue
        high = middle
        if chars >= best_chars:
            best_chars, best_penalty = chars, middle
    return choose_runs_on(ground, best_penalty), best_penalty
