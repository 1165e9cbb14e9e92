"""Trials of the method `rse`: all cases answered with many sets of parameters, from cached evidence alone.

Cases with one query are laid end to end (`stack_cases`) and solved together (`batch_runs`); the others, and whatever
the batch can't hold, are answered one by one (`cached_cases.answer_case`). Both give what the pipeline would return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.batch_runs import BatchRuns, BrightRows, Fitted, Positions, fit_batch
from rse_cli.core.cached_cases import CachedCase, Outcome, answer_case, measure_answer
from rse_cli.core.lexical import Floats
from rse_cli.core.params import FILL_SEGMENT_COST, RseParams
from rse_cli.core.relevance import TOP_SHARE, measure_confidence
from rse_cli.core.segments import UNIT_CHARS
from rse_cli.core.stacked_cases import PIECES, Stack, stack_cases

NEAR = 0.03
"""The three best of most cases lie within this share of the best."""

FILL_FLOORS = (0.03, 0.06, 0.12, 0.24)
"""With `fill` the penalty starts at 0, where every row is bright; most answers are known to be too long at these."""

BATCH = 8
"""Trials solved at once: enough to share the cost of NumPy's calls, few enough to stay in the cache."""


@dataclass(frozen=True, slots=True)
class Bench:
    """All cases, ready for trials.

    Parameters
    ----------
    cases : tuple of CachedCase
        In the order of the file.
    stack : Stack or None
        Those that can be solved together.
    stacked, alone : tuple of int
        Positions of those, and of the others.
    fill : bool
        Whether the ceiling is used up.
    limit : int or None
        Most segments.
    """

    cases: tuple[CachedCase, ...]
    stack: Stack | None
    stacked: tuple[int, ...]
    alone: tuple[int, ...]
    fill: bool
    limit: int | None


def make_bench(cases: Sequence[CachedCase], fill: bool, limit: int | None = None) -> Bench:
    """Prepare cases for trials.

    Parameters
    ----------
    cases : sequence of CachedCase
        At least one.
    fill : bool
        As in `select_segments`.
    limit : int or None
        Most segments.
    """
    together = [at for at, case in enumerate(cases) if len(case.evidence) == 1 and len(case.starts)]
    if fill and limit is not None:
        together = []
    stack = stack_cases([cases[at] for at in together]) if together else None
    alone = tuple(sorted(set(range(len(cases))) - set(together)))
    return Bench(tuple(cases), stack, tuple(together), alone, fill, limit)


def run_trials(bench: Bench, trials: Sequence[RseParams]) -> Floats:
    """Answer every case with every set of parameters.

    Returns
    -------
    ndarray of shape (n_trials, n_cases, 5)
        Columns as in `Outcome`. With `fill` the rank of a passage is that of its runs before they were filled up.
    """
    outcomes = np.zeros((len(trials), len(bench.cases), len(Outcome._fields)))
    for number, params in enumerate(trials):
        for at in bench.alone:
            outcomes[number, at] = run_alone(bench, at, params)
    if bench.stack is not None:
        for at in range(0, len(trials), BATCH):
            some = trials[at : at + BATCH]
            outcomes[at : at + len(some), list(bench.stacked)] = _run_batch(bench, bench.stack, some)
    return outcomes


def run_alone(bench: Bench, at: int, params: RseParams) -> Outcome:
    """Answer one case as the pipeline does it."""
    case = bench.cases[at]
    return measure_answer(case.target, answer_case(case, params, bench.fill, bench.limit))


@dataclass(frozen=True, slots=True)
class _Lit:
    """One trial's bright rows, by row of the stack, with what each problem needs."""

    rows: BrightRows
    at: Positions
    highest: Floats
    best: Positions
    too_long_below: Floats
    answered: NDArray[np.bool_]


def _run_batch(bench: Bench, stack: Stack, trials: Sequence[RseParams]) -> Floats:
    m = len(stack.cases)
    lit = [_light(bench, stack, params, number * m) for number, params in enumerate(trials)]
    at = np.concatenate([one.at for one in lit])
    rows = BrightRows(*(np.concatenate([getattr(one.rows, name) for one in lit]) for name in BrightRows.__slots__))
    fill = bench.fill
    penalty = np.repeat([0.0 if fill else one.irrelevant_chunk_penalty for one in trials], m)
    cost = np.repeat([(FILL_SEGMENT_COST if fill else one.segment_cost) / UNIT_CHARS for one in trials], m)
    ceiling = np.repeat([float(one.max_chars) for one in trials], m)
    highest, best, below, answered = (
        np.concatenate([getattr(one, name) for one in lit])
        for name in ("highest", "best", "too_long_below", "answered")
    )
    fitted = fit_batch(rows, penalty, highest, cost, ceiling, below)
    outcomes = _measure_runs(stack, rows, at, fitted.runs, bench.limit, len(penalty))
    lone = np.flatnonzero(answered & (np.bincount(fitted.runs.problem, minlength=len(penalty)) == 0))
    for problem in lone.tolist():
        outcomes[problem] = _measure_row(stack, int(best[problem]), ceiling[problem])
    if fill:
        _fill_up(bench, stack, rows, at, fitted, best, ceiling, answered, outcomes, trials)
    outcomes[~answered] = 0.0
    return outcomes.reshape(len(trials), m, -1)


def _light(bench: Bench, stack: Stack, params: RseParams, offset: int) -> _Lit:
    """Weigh one trial and keep the rows that can begin or end a run."""
    sizes, starts = stack.sizes, stack.bounds[:-1]
    z = _combine(stack.evidence, params)
    highest_z = np.maximum.reduceat(z, starts)
    answered = np.array(
        [
            measure_confidence(top, case.lexical[0]) >= case.floors[0]
            for top, case in zip(highest_z.tolist(), stack.cases, strict=True)
        ]
    )
    z -= np.repeat(highest_z, sizes)
    relevance = np.exp(z, out=z)
    tops = _average_tops(stack, relevance)
    if len(stack.tables):
        best = np.maximum.reduceat(relevance[stack.tables], stack.table_starts)
        counts = np.diff(np.concatenate((stack.table_starts, [len(stack.tables)])))
        relevance[stack.tables] = np.maximum(relevance[stack.tables], params.table_share * np.repeat(best, counts))
    relevance /= np.repeat(tops, sizes)
    worth = np.concatenate(([0.0], np.cumsum(relevance * stack.chars)))
    chars = np.concatenate(([0.0], np.cumsum(stack.chars)))
    below = np.full(len(sizes), -np.inf)
    if bench.fill:
        below = _raise_floor(stack, relevance, params.max_chars)
        # Half of it, for the rows that fill an answer up.
        bright = np.flatnonzero(relevance > np.repeat(np.maximum(below / 2, 0.0), sizes))
    else:
        bright = np.flatnonzero(relevance > params.irrelevant_chunk_penalty)
    problem = np.searchsorted(stack.bounds, bright, side="right") - 1
    bright, problem = bright[answered[problem]], problem[answered[problem]]
    rows = BrightRows(
        problem + offset,
        stack.places[bright],
        stack.stretches[bright],
        relevance[bright],
        stack.chars[bright],
        worth[bright],
        worth[bright + 1],
        chars[bright],
        chars[bright + 1],
    )
    highest = np.maximum.reduceat(relevance, starts)
    return _Lit(rows, bright, highest, _find_first(stack, relevance, highest), below, answered)


def _combine(evidence: Floats, params: RseParams) -> Floats:
    """Return ``z`` as `combine_evidence` adds it up, but in place."""
    z: Floats = params.weight_c0 * evidence[0]
    part = np.empty_like(z)
    for piece, row in zip(PIECES[1:], evidence[1:], strict=True):
        z += np.multiply(row, getattr(params, f"weight_{piece}"), out=part)
    return z


def _average_tops(stack: Stack, p: Floats) -> Floats:
    """Return the mean of the three largest of each case, as `calibrate` takes it; the largest is 1."""
    sizes = stack.sizes
    near = np.flatnonzero(p > NEAR)
    owner = np.searchsorted(stack.bounds, near, side="right") - 1
    counts = np.bincount(owner, minlength=len(sizes))
    tops = np.empty(len(sizes))
    enough = counts >= TOP_SHARE
    for case in np.flatnonzero(~enough).tolist():
        part = p[stack.bounds[case] : stack.bounds[case + 1]]
        tops[case] = np.sort(part)[-TOP_SHARE:].mean()
    if enough.any():
        chosen = np.flatnonzero(enough[owner])
        values, cases = p[near[chosen]].copy(), owner[chosen]
        bounds = np.flatnonzero(np.concatenate(([True], np.diff(cases) != 0)))
        lengths = np.diff(np.concatenate((bounds, [len(cases)])))
        found = []
        for _ in range(TOP_SHARE):
            largest = np.maximum.reduceat(values, bounds)
            found.append(largest)
            equal = np.flatnonzero(values == np.repeat(largest, lengths))
            values[equal[np.concatenate(([True], np.diff(cases[equal]) != 0))]] = -np.inf
        # Smallest first, as a mean of the sorted values adds them.
        tops[enough] = ((found[2] + found[1]) + found[0]) / TOP_SHARE
    return tops


def _find_first(stack: Stack, relevance: Floats, highest: Floats) -> Positions:
    """Return the first row of greatest relevance of each case."""
    equal = np.flatnonzero(relevance == np.repeat(highest, stack.sizes))
    return equal[np.searchsorted(equal, stack.bounds[:-1])]


def _raise_floor(stack: Stack, relevance: Floats, max_chars: int) -> Floats:
    """Return for `fill` the greatest penalty of each case that is known to make too long an answer, else −inf.

    A row whose value exceeds the cost of a run is in every best answer: alone it would add to it.
    """
    near = np.flatnonzero(relevance > FILL_FLOORS[0])
    owner = np.searchsorted(stack.bounds, near, side="right") - 1
    near_relevance, chars = relevance[near], stack.chars[near]
    found = np.full(len(stack.cases), -np.inf)
    for floor in FILL_FLOORS:
        certain = (near_relevance - floor) * chars > FILL_SEGMENT_COST
        held = np.bincount(owner[certain], weights=chars[certain], minlength=len(found))
        found[held > max_chars] = floor
    return found


def _measure_row(stack: Stack, row: int, ceiling: float) -> Outcome:
    """Return the outcome of the best chunk alone, cut at the ceiling."""
    chars = min(stack.chars[row], ceiling)
    overlap = _overlap_start(stack, row, int(chars))
    return Outcome(float(chars), overlap, 1.0, float(stack.wanted[row] >= 0), float(overlap > 0))


def _overlap_start(stack: Stack, row: int, chars: int) -> float:
    """Return how many of a row's first characters are expected."""
    whole = stack.overlaps[row]
    if whole in (0.0, stack.chars[row]):
        return float(min(whole, chars))
    case = int(np.searchsorted(stack.bounds, row, side="right")) - 1
    return float(stack.cases[case].overlap_start(row - int(stack.bounds[case]), chars))


def _measure_runs(stack: Stack, rows: BrightRows, at: Positions, runs: BatchRuns, limit: int | None, n: int) -> Floats:
    """Return outcomes of shape (n_problems, 5) of whole runs."""
    outcomes = np.zeros((n, len(Outcome._fields)))
    order = np.lexsort((runs.first, -runs.score, runs.problem))
    problem, first, last = runs.problem[order], runs.first[order], runs.last[order]
    counts = np.bincount(problem, minlength=n)
    rank = np.arange(len(problem)) - (np.cumsum(counts) - counts)[problem]
    if limit is not None:
        kept = np.flatnonzero(rank < limit)
        problem, first, last, rank = problem[kept], first[kept], last[kept], rank[kept]
    sums = np.concatenate(([0.0], np.cumsum(stack.overlaps)))
    overlap = sums[at[last] + 1] - sums[at[first]]
    chars = rows.chars_after[last] - rows.chars_before[first]
    for column, weights in enumerate((chars, overlap, None)):
        outcomes[:, column] = np.bincount(problem, weights=weights, minlength=n)
    wanted = stack.wanted[at[first]]
    inside = np.flatnonzero(wanted >= 0)
    pairs = np.unique(np.stack((problem[inside], wanted[inside])), axis=1)
    outcomes[:, 3] = np.bincount(pairs[0], minlength=n)
    found = np.flatnonzero(overlap > 0)
    np.maximum.at(outcomes[:, 4], problem[found], 1 / (rank[found] + 1))
    return outcomes


def _fill_up(
    bench: Bench,
    stack: Stack,
    rows: BrightRows,
    at: Positions,
    fitted: Fitted,
    best: Positions,
    ceiling: Floats,
    answered: NDArray[np.bool_],
    outcomes: Floats,
    trials: Sequence[RseParams],
) -> None:
    """Add the most relevant rows that no run holds, the last one cut, where the bright ones suffice."""
    n = len(ceiling)
    kept = np.zeros(len(at) + 1, np.int64)
    np.add.at(kept, fitted.runs.first, 1)
    np.add.at(kept, fitted.runs.last + 1, -1)
    loose = np.flatnonzero(np.cumsum(kept[:-1]) == 0)
    lone = np.bincount(fitted.runs.problem, minlength=n) == 0
    loose = loose[~(lone[rows.problem[loose]] & (at[loose] == best[rows.problem[loose]]))]
    # Rows far below the penalty are never reached: the answer at it is nearly full.
    loose = loose[rows.relevance[loose] > fitted.penalty[rows.problem[loose]] / 4]
    order = loose[np.lexsort((loose, -rows.relevance[loose], rows.problem[loose]))]
    owner, chars = rows.problem[order], rows.chars[order]
    total = np.cumsum(chars)
    counts = np.bincount(owner, minlength=n)
    before_first = np.concatenate(([0.0], total))[np.cumsum(counts) - counts]
    left = ceiling - outcomes[:, 0]
    taken = np.clip(left[owner] - (total - chars - before_first[owner]), 0.0, chars)
    added = np.bincount(owner, weights=taken, minlength=n)
    part = np.where(taken == chars, stack.overlaps[at[order]], 0.0)
    for cut in np.flatnonzero((taken > 0) & (taken < chars)).tolist():
        part[cut] = _overlap_start(stack, int(at[order[cut]]), int(taken[cut]))
    outcomes[:, 0] += added
    outcomes[:, 1] += np.bincount(owner, weights=part, minlength=n)
    for problem in np.flatnonzero(answered & (outcomes[:, 0] != ceiling)).tolist():
        number, case = divmod(problem, len(stack.cases))
        outcomes[problem] = run_alone(bench, bench.stacked[case], trials[number])
