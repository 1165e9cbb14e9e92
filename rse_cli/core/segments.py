"""Values per chunk to the best segments, exactly.

What a segment is worth (`price_chunks`) is kept apart from how the best ones are found (`choose_runs`). All positions
are rows of the candidate arrays; a run never crosses from one stretch of adjacent chunks into another.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import Floats
from rse_cli.core.models import Run

BISECTIONS = 12  # narrows the penalty to 1/4096 of its range

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
    if not len(values):
        return []
    positive = values > 0
    bounds = np.flatnonzero(np.concatenate(([True], (positive[1:] != positive[:-1]) | (starts[1:] != starts[:-1]))))
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
    runs: list[Run] = []
    while out_link >= 0:
        first, last, out_link = links[out_link]
        start, end = edges[first], edges[last + 1]
        runs.append(Run(start, end, float(values[start:end].sum() - cost)))
    return runs[::-1]


def count_chars(runs: list[Run], sums: NDArray[np.int64]) -> int:
    """Return the characters in `runs`; `sums` are prefix sums of the chunks' characters, 0 first."""
    return sum(int(sums[run.end] - sums[run.start]) for run in runs)


def fit_runs(
    relevance: Floats, chars: NDArray[np.int64], starts: NDArray[np.int64], penalty: float, cost: float, max_chars: int
) -> tuple[list[Run], float]:
    """Return the best runs of at most `max_chars` characters, and the penalty that makes them fit.

    If the answer at `penalty` is too long, the penalty is bisected 12 times in ``[penalty, max relevance]`` and the
    largest answer that fits is kept. If none does, there are no runs.

    Parameters
    ----------
    relevance, chars, starts
        As in `price_chunks` and `choose_runs`.
    penalty : float
        Least penalty per 100 characters.
    cost : float
        Cost of one run.
    max_chars : int
        Ceiling.

    Examples
    --------
    >>> runs, penalty = fit_runs(np.array([1.0, 0.5, 0.9]), np.full(3, 100), np.zeros(3, int), 0.1, 0.0, 100)
    >>> [(run.start, run.end) for run in runs], round(penalty, 3)
    ([(0, 1)], 0.9)
    """
    if not len(relevance):
        return [], penalty
    sums = np.concatenate(([0], np.cumsum(chars)))

    def solve(at: float) -> list[Run]:
        return choose_runs(price_chunks(relevance, chars, at), starts, cost)

    runs = solve(penalty)
    if count_chars(runs, sums) <= max_chars:
        return runs, penalty
    return _bisect_penalty(solve, lambda found: count_chars(found, sums), penalty, float(relevance.max()), max_chars)


def _bisect_penalty(
    solve: Callable[[float], list[Run]], measure: Callable[[list[Run]], int], low: float, high: float, max_chars: int
) -> tuple[list[Run], float]:
    best: list[Run] = []
    best_chars, best_penalty = 0, high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        found = solve(middle)
        chars = measure(found)
        if chars > max_chars:
            low = middle
            continue
        high = middle
        if chars >= best_chars:
            best, best_chars, best_penalty = found, chars, middle
    return best, best_penalty
