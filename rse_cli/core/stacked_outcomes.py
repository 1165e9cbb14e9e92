"""What the answers of a batch are worth: runs, the best chunk alone, and what fills an answer up, as outcomes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.batch_runs import BatchRuns, BrightRows, Fitted, Positions
from rse_cli.core.cached_cases import Outcome
from rse_cli.core.lexical import Floats
from rse_cli.core.selection import fill_rows
from rse_cli.core.stacked_cases import Stack

TIE = 1e-9
"""Scores of runs are known to about 1e-12: closer ones, such as those of equal texts, may come in another order."""


def measure_row(stack: Stack, row: int, ceiling: float) -> Outcome:
    """Return the outcome of one row alone, cut at the ceiling."""
    chars = min(float(stack.chars[row]), ceiling)
    overlap = _overlap_start(stack, row, int(chars))
    return Outcome(float(chars), overlap, 1.0, float(stack.wanted[row] >= 0), float(overlap > 0))


def _overlap_start(stack: Stack, row: int, chars: int) -> float:
    """Return how many of a row's first characters are expected."""
    whole = stack.find_overlap(row)
    if whole in (0.0, float(stack.chars[row])):
        return float(min(whole, chars))
    case = int(stack.owners[row])
    return float(stack.cases[case].overlap_start(row - int(stack.bounds[case]), chars))


def measure_runs(
    stack: Stack, rows: BrightRows, at: Positions, runs: BatchRuns, limit: int | None, n: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the outcomes of whole runs, and of which problems the order is in doubt.

    Parameters
    ----------
    stack : Stack
        The cases.
    rows, at : BrightRows and ndarray of shape (n,)
        The bright rows, and which of the stack each is.
    runs : BatchRuns
        What was chosen.
    limit : int or None
        Most runs.
    n : int
        Problems.

    Returns
    -------
    (ndarray of shape (n_problems, 5), ndarray of bool, shape (n_problems,))
    """
    outcomes = np.zeros((n, len(Outcome._fields)))
    order = np.lexsort((runs.first, -runs.score, runs.problem))
    problem, first, last = runs.problem[order], runs.first[order], runs.last[order]
    tied = np.zeros(n, np.bool_)
    tied[problem[1:][(np.diff(problem) == 0) & (-np.diff(runs.score[order]) < TIE)]] = True
    counts = np.bincount(problem, minlength=n)
    rank = np.arange(len(problem)) - (np.cumsum(counts) - counts)[problem]
    if limit is not None:
        kept = np.flatnonzero(rank < limit)
        problem, first, last, rank = problem[kept], first[kept], last[kept], rank[kept]
    overlap = stack.overlap_sums[at[last] + 1] - stack.overlap_sums[at[first]]
    chars = rows.chars_after[last] - rows.chars_before[first]
    for column, weights in enumerate((chars, overlap, None)):
        outcomes[:, column] = np.bincount(problem, weights=weights, minlength=n)
    wanted = stack.wanted[at[first]].astype(np.int64)
    inside = np.flatnonzero(wanted >= 0)
    pairs = np.unique(np.stack((problem[inside], wanted[inside])), axis=1)
    outcomes[:, 3] = np.bincount(pairs[0], minlength=n)
    found = np.flatnonzero(overlap > 0)
    np.maximum.at(outcomes[:, 4], problem[found], 1 / (rank[found] + 1))
    return outcomes, tied


def fill_up(
    stack: Stack, rows: BrightRows, at: Positions, fitted: Fitted, best: Positions, ceiling: Floats, outcomes: Floats
) -> None:
    """Add the most relevant rows that no run holds, the last one cut: characters and overlap change.

    Parameters
    ----------
    stack : Stack
        The cases.
    rows, at : BrightRows and ndarray of shape (n,)
        The bright rows, and which of the stack each is.
    fitted : Fitted
        The runs.
    best : ndarray of shape (n_problems,)
        The row of the stack that is shown where there is no run.
    ceiling : ndarray of shape (n_problems,)
        Characters. Where the bright rows don't suffice, the answer stays shorter.
    outcomes : ndarray of shape (n_problems, 5)
        Of the runs or the best row.
    """
    n = len(ceiling)
    kept = np.zeros(len(at) + 1, np.int64)
    np.add.at(kept, fitted.runs.first, 1)
    np.add.at(kept, fitted.runs.last + 1, -1)
    loose = np.flatnonzero(np.cumsum(kept[:-1]) == 0)
    lone = np.bincount(fitted.runs.problem, minlength=n) == 0
    loose = loose[~(lone[rows.problem[loose]] & (at[loose] == best[rows.problem[loose]]))]
    # Rows far below the penalty are hardly reached: the answer at it is nearly full.
    loose = loose[rows.relevance[loose] > fitted.penalty[rows.problem[loose]] / 2]
    order = loose[np.lexsort((-rows.relevance[loose], rows.problem[loose]))]
    owner, chars = rows.problem[order], rows.chars[order]
    total = np.cumsum(chars)
    counts = np.bincount(owner, minlength=n)
    before_first = np.concatenate(([0.0], total))[np.cumsum(counts) - counts]
    left = ceiling - outcomes[:, 0]
    taken = np.clip(left[owner] - (total - chars - before_first[owner]), 0.0, chars)
    wanted = stack.overlap_sums[at[order] + 1] - stack.overlap_sums[at[order]]
    part = np.where(taken == chars, wanted, 0.0)
    for cut in np.flatnonzero((taken > 0) & (taken < chars)).tolist():
        part[cut] = _overlap_start(stack, int(at[order[cut]]), int(taken[cut]))
    outcomes[:, 0] += np.bincount(owner, weights=taken, minlength=n)
    outcomes[:, 1] += np.bincount(owner, weights=part, minlength=n)


def fill_alone(
    stack: Stack, relevance: Floats, case: int, spans: Sequence[tuple[int, int]], best: int, ceiling: int
) -> tuple[float, float]:
    """Return characters and overlap of one answer that is filled up from all rows of its case.

    Parameters
    ----------
    stack : Stack
        The cases.
    relevance : ndarray of shape (n,)
        Of all rows under the trial.
    case : int
        Which case.
    spans : sequence of (int, int)
        Half-open rows of the stack that its runs hold.
    best : int
        The row that is shown where there is no run.
    ceiling : int
        Characters.
    """
    begin, end = stack.bounds[case], stack.bounds[case + 1]
    chars = stack.chars[begin:end].astype(np.int64)
    kept = np.zeros(end - begin, np.int64)
    for first, last in spans:
        kept[first - begin : last - begin] = chars[first - begin : last - begin]
    if not spans:
        kept[best - begin] = min(int(chars[best - begin]), ceiling)
    fill_rows(kept, relevance[begin:end], chars, ceiling)
    shown = np.flatnonzero(kept)
    return float(kept.sum()), sum(_overlap_start(stack, int(begin + row), int(kept[row])) for row in shown)
