"""The best runs of many small problems at once: `segments.fit_runs`, vectorised over cases and trials.

A *problem* is one case under one trial: its rows, a penalty, the cost of a run and a ceiling. Only rows whose relevance
exceeds the least penalty can begin or end a run (they are *bright*), so nothing else is held; what lies between two of
them is known from prefix sums. Sums are differences of prefix sums, so that they agree with `segments` to about 1e-12,
and choices agree but for ties that close.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import Floats
from rse_cli.core.segments import BISECTIONS, UNIT_CHARS
from rse_cli.dataclass import dataclass

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BrightRows:
    """Rows that can begin or end a run, as columns of shape (n,), sorted by problem and place.

    Parameters
    ----------
    problem : ndarray of int
        Ascending.
    place : ndarray of int
        Differs by 1 for adjacent rows of one stretch, by more between stretches.
    stretch : ndarray of int
        Equal for rows of one stretch.
    relevance, chars : ndarray of float
        Of the row.
    worth_before, worth_after : ndarray of float
        Sum of relevance times characters over the rows of the problem before this one, and with it.
    chars_before, chars_after : ndarray of float
        Sum of characters likewise.
    """

    problem: Positions
    place: Positions
    stretch: Positions
    relevance: Floats
    chars: Floats
    worth_before: Floats
    worth_after: Floats
    chars_before: Floats
    chars_after: Floats


@dataclass(frozen=True, slots=True)
class BatchRuns:
    """Runs of many problems: the bright rows that each begins and ends with, its problem and its score."""

    problem: Positions
    first: Positions
    last: Positions
    score: Floats


@dataclass(frozen=True, slots=True)
class _Groups:
    """Adjacent bright rows taken together, sorted by their number within the problem, then by column.

    A column is a problem; those with most groups come first, so that step g of the recurrence is a slice.
    """

    first: Positions
    last: Positions
    worth: Floats
    chars: Floats
    gap_worth: Floats
    gap_chars: Floats
    ends: Positions
    widths: list[int]
    columns: Positions


@dataclass(frozen=True, slots=True)
class Problems:
    """What the best runs are asked for, all of shape (n_problems,).

    Parameters
    ----------
    penalty, highest, cost, max_chars : ndarray
        Least penalty, greatest relevance, cost of a run and ceiling.
    """

    penalty: Floats
    highest: Floats
    cost: Floats
    max_chars: Floats


@dataclass(frozen=True, slots=True)
class Fitted:
    """The best runs of the problems asked for within their ceilings, and the penalty at which they fit.

    `settled` says for each problem whether the rows sufficed; only then its runs mean something.
    """

    runs: BatchRuns
    penalty: Floats
    settled: NDArray[np.bool_]


def fit_batch(rows: BrightRows, problems: Problems, floor: Floats, asked: Positions) -> Fitted:
    """Return the best runs of problems within their ceilings, as `fit_runs` does for one.

    A greater penalty never makes the best answer longer. So where the penalties of the bisection stay at or above
    `floor`, the rows below it aren't needed: one of them made too long an answer, and so would the least penalty.

    Parameters
    ----------
    rows : BrightRows
        Of the problems asked for, all that have a relevance above the floor.
    problems : Problems
        All, asked for or not.
    floor : ndarray of shape (n_problems,)
        At least the least penalty.
    asked : ndarray of int
        The problems to solve.
    """
    penalty, cost, max_chars = problems.penalty, problems.cost, problems.max_chars
    n = len(penalty)
    settled = np.zeros(n, np.bool_)
    settled[asked] = True
    chars = np.full(n, np.inf)
    whole = asked[floor[asked] <= penalty[asked]]
    chars[whole] = _measure(rows, _find_bright(rows.relevance, rows.problem, penalty, whole), penalty, cost, whole)
    todo = asked[chars[asked] > max_chars[asked]]
    best_penalty = penalty.copy()
    low, high, best_chars = penalty.copy(), problems.highest.copy(), np.zeros(n)
    best_penalty[todo] = high[todo]
    held = _find_bright(rows.relevance, rows.problem, penalty, todo)
    relevance, problem = rows.relevance[held], rows.problem[held]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = middle[todo] < floor[todo]
        settled[todo[below]] = False
        todo = todo[~below]
        if not len(todo):
            break
        bright = held[_find_bright(relevance, problem, middle, todo)]
        chars = _measure(rows, bright, middle, cost, todo)
        fits = chars <= max_chars[todo]
        better = fits & (chars >= best_chars[todo])
        best_chars[todo[better]], best_penalty[todo[better]] = chars[better], middle[todo[better]]
        high[todo[fits]], low[todo[~fits]] = middle[todo[fits]], middle[todo[~fits]]
        kept = np.flatnonzero(relevance > low[problem])
        held, relevance, problem = held[kept], relevance[kept], problem[kept]
    return Fitted(_find_runs(rows, best_penalty, cost, n), best_penalty, settled)


def _find_bright(relevance: Floats, problem: Positions, penalty: Floats, problems: Positions) -> Positions:
    """Return the rows of some problems whose relevance exceeds the penalty."""
    threshold = np.full(len(penalty), np.inf)
    threshold[problems] = penalty[problems]
    return np.flatnonzero(relevance > threshold[problem])


def _measure(rows: BrightRows, bright: Positions, penalty: Floats, cost: Floats, problems: Positions) -> Floats:
    """Return the characters of the best answer of some problems, given their bright rows."""
    n = len(penalty)
    groups = _group(rows, bright, penalty, n)
    columns = groups.columns
    best_in, best_out = np.full(n, -np.inf), np.zeros(n)
    chars_in, chars_out = np.zeros(n), np.zeros(n)
    price = cost[columns]
    at = 0
    for width in groups.widths:
        step = slice(at, at + width)
        at += width
        into, out, opened = best_in[:width], best_out[:width], best_out[:width] - price[:width]
        into += groups.gap_worth[step]
        take = opened > into
        np.copyto(into, opened, where=take)
        into += groups.worth[step]
        chars_in[:width] += groups.gap_chars[step]
        np.copyto(chars_in[:width], chars_out[:width], where=take)
        chars_in[:width] += groups.chars[step]
        better = into > out
        np.copyto(out, into, where=better)
        np.copyto(chars_out[:width], chars_in[:width], where=better)
    chars = np.zeros(n)
    chars[columns] = chars_out
    return chars[problems]


def _find_runs(rows: BrightRows, penalty: Floats, cost: Floats, n: int) -> BatchRuns:
    """Return the best runs of all problems at given penalties."""
    groups = _group(rows, np.flatnonzero(rows.relevance > penalty[rows.problem]), penalty, n)
    takes, betters = _solve(groups, cost, n)
    # Backwards: outside a run until a group that improved the answer ends one; inside until the group that opened it.
    inside = np.zeros(n, np.bool_)
    begins, ends = np.zeros(len(groups.first), np.bool_), np.zeros(len(groups.first), np.bool_)
    at = len(groups.first)
    for width in reversed(groups.widths):
        step = slice(at - width, at)
        at -= width
        within = inside[:width]
        ends[step] = betters[step] & ~within
        within |= betters[step]
        begins[step] = takes[step] & within
        within &= ~takes[step]
    return _collect_runs(rows, groups, begins, ends, penalty, cost)


def _solve(groups: _Groups, cost: Floats, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each group whether a run would rather begin at it, and whether ending one there is best so far."""
    best_in, best_out = np.full(n, -np.inf), np.zeros(n)
    price = cost[groups.columns]
    takes, betters = np.zeros(len(groups.first), np.bool_), np.zeros(len(groups.first), np.bool_)
    at = 0
    for width in groups.widths:
        step = slice(at, at + width)
        at += width
        into, out, opened = best_in[:width], best_out[:width], best_out[:width] - price[:width]
        into += groups.gap_worth[step]
        take = opened > into
        np.copyto(into, opened, where=take)
        into += groups.worth[step]
        better = into > out
        np.copyto(out, into, where=better)
        takes[step], betters[step] = take, better
    return takes, betters


def _group(rows: BrightRows, bright: Positions, penalty: Floats, n: int) -> _Groups:
    """Take adjacent bright rows of one stretch together, and lay the groups out step by step."""
    if not len(bright):
        none, nothing = np.zeros(0, np.int64), np.zeros(0)
        return _Groups(none, none, nothing, nothing, nothing, nothing, none, [], np.arange(n))
    places, problems = rows.place[bright], rows.problem[bright]
    opens = np.flatnonzero(np.concatenate(([True], (np.diff(places) != 1) | (np.diff(problems) != 0))))
    first, last = bright[opens], bright[np.concatenate((opens[1:], [len(bright)])) - 1]
    owner = problems[opens]
    price = penalty[owner]
    chars = rows.chars_after[last] - rows.chars_before[first]
    worth = (rows.worth_after[last] - rows.worth_before[first] - price * chars) / UNIT_CHARS
    gap_chars, gap_worth = np.zeros(len(first)), np.full(len(first), -np.inf)
    joined = np.flatnonzero((rows.stretch[first[1:]] == rows.stretch[last[:-1]]) & (owner[1:] == owner[:-1]))
    after, before = first[joined + 1], last[joined]
    gap_chars[joined + 1] = rows.chars_before[after] - rows.chars_after[before]
    gap_worth[joined + 1] = (
        rows.worth_before[after] - rows.worth_after[before] - price[joined + 1] * gap_chars[joined + 1]
    ) / UNIT_CHARS
    counts = np.bincount(owner, minlength=n)
    columns = np.argsort(-counts, kind="stable")
    column_of = np.empty(n, np.int64)
    column_of[columns] = np.arange(n)
    number = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
    order = np.lexsort((column_of[owner], number))
    widths = np.bincount(number).tolist()
    return _Groups(
        first[order],
        last[order],
        worth[order],
        chars[order],
        gap_worth[order],
        gap_chars[order],
        owner[order],
        widths,
        columns,
    )


def _collect_runs(
    rows: BrightRows, groups: _Groups, begins: NDArray[np.bool_], ends: NDArray[np.bool_], penalty: Floats, cost: Floats
) -> BatchRuns:
    """Pair where runs begin with where they end: both in the order of rows."""
    first, last = np.sort(groups.first[begins]), np.sort(groups.last[ends])
    owner = rows.problem[first]
    chars = rows.chars_after[last] - rows.chars_before[first]
    worth = rows.worth_after[last] - rows.worth_before[first] - penalty[owner] * chars
    return BatchRuns(owner, first, last, worth / UNIT_CHARS - cost[owner])
