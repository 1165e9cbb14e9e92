"""Trials of the method `rse`: all cases answered with many sets of parameters, from cached evidence alone.

Cases with one query are laid end to end (`stack_cases`) and solved together (`batch_runs`); the others, and whatever
the batch can't hold, are answered one by one (`cached_cases.answer_case`). Both give what the pipeline would return.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rse_cli.core.batch_runs import BrightRows, Fitted, Positions, Problems, fit_batch
from rse_cli.core.cached_cases import CachedCase, Outcome, answer_case, measure_answer
from rse_cli.core.lexical import Floats
from rse_cli.core.params import FILL_SEGMENT_COST, RseParams
from rse_cli.core.segments import UNIT_CHARS
from rse_cli.core.stacked_cases import Stack, stack_cases
from rse_cli.core.stacked_outcomes import fill_alone, fill_up, measure_row, measure_runs
from rse_cli.core.stacked_relevance import Weighed, light_rows, weigh_rows
from rse_cli.dataclass import dataclass

FILL_SHARES = (1 / 16, 1 / 128, 1 / 1024, 0.0)
"""With `fill` the penalty starts at 0, where every row is bright. Rows above a share of the best suffice mostly."""

BATCH, BATCH_ROWS = 8, 2_000_000
"""Trials solved at once, and rows that they may hold: enough to share the cost of NumPy's calls, few enough for the
cache, and for the memory when there are thousands of cases."""


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
    ranked : bool
        Whether the order of segments matters.
    """

    cases: tuple[CachedCase, ...]
    stack: Stack | None
    stacked: tuple[int, ...]
    alone: tuple[int, ...]
    fill: bool
    limit: int | None
    ranked: bool

    @property
    def batch(self) -> int:
        """Trials solved at once."""
        n_rows = 1 if self.stack is None else int(self.stack.bounds[-1])
        return max(1, min(BATCH, BATCH_ROWS // n_rows))


def make_bench(cases: Sequence[CachedCase], fill: bool, limit: int | None = None, *, ranked: bool = True) -> Bench:
    """Prepare cases for trials.

    Parameters
    ----------
    cases : sequence of CachedCase
        At least one.
    fill : bool
        As in `select_segments`.
    limit : int or None
        Most segments.
    ranked : bool
        Whether the reciprocal rank must be exact where segments tie; with a limit it always is.
    """
    together = [at for at, case in enumerate(cases) if case.is_simple]
    if fill and limit is not None:
        together = []
    stack = stack_cases([cases[at] for at in together]) if together else None
    alone = tuple(sorted(set(range(len(cases))) - set(together)))
    return Bench(tuple(cases), stack, tuple(together), alone, fill, limit, ranked or limit is not None)


def run_trials(bench: Bench, trials: Sequence[RseParams]) -> Floats:
    """Answer every case with every set of parameters.

    Returns
    -------
    ndarray of shape (n_trials, n_cases, 5)
        Columns as in `Outcome`. With `fill` spans, documents and ranks are those of the runs alone.
    """
    outcomes = np.zeros((len(trials), len(bench.cases), len(Outcome._fields)))
    for number, params in enumerate(trials):
        for at in bench.alone:
            outcomes[number, at] = run_alone(bench, at, params)
    if bench.stack is not None:
        for at in range(0, len(trials), bench.batch):
            some = trials[at : at + bench.batch]
            outcomes[at : at + len(some), list(bench.stacked)] = _run_batch(bench, bench.stack, some)
    return outcomes


def run_alone(bench: Bench, at: int, params: RseParams) -> Outcome:
    """Answer one case as the pipeline does it."""
    case = bench.cases[at]
    return measure_answer(case.target, answer_case(case, params, bench.fill, bench.limit))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some trials of all stacked cases: problem ``number · m + case`` is one of the m cases under one of them."""

    trials: Sequence[RseParams]
    weighed: Sequence[Weighed]
    problems: Problems
    best: Positions


def _run_batch(bench: Bench, stack: Stack, trials: Sequence[RseParams]) -> Floats:
    m, fill = len(stack.cases), bench.fill
    weighed = [weigh_rows(stack, params) for params in trials]
    highest, best, answered = (
        np.concatenate([getattr(one, name) for one in weighed]) for name in ("highest", "best", "answered")
    )
    problems = Problems(
        penalty=np.repeat([0.0 if fill else one.irrelevant_chunk_penalty for one in trials], m),
        highest=highest,
        cost=np.repeat([(FILL_SEGMENT_COST if fill else one.segment_cost) / UNIT_CHARS for one in trials], m),
        max_chars=np.repeat([float(one.max_chars) for one in trials], m),
    )
    batch = _Batch(trials, weighed, problems, best)
    outcomes = np.zeros((len(highest), len(Outcome._fields)))
    left = np.flatnonzero(answered)
    for share in FILL_SHARES if fill else (0.0,):
        floor = np.maximum(problems.penalty, share * highest)
        shown = np.full(len(highest), np.inf)
        # Half of it, for the rows that fill an answer up.
        shown[left] = floor[left] / 2 if fill else floor[left]
        rows, at = light_rows(stack, weighed, shown)
        fitted = fit_batch(rows, problems, floor, left)
        outcomes[fitted.settled] = _measure_fitted(bench, stack, batch, rows, at, fitted)[fitted.settled]
        left = left[~fitted.settled[left]]
    return outcomes.reshape(len(trials), m, -1)


def _measure_fitted(
    bench: Bench, stack: Stack, batch: _Batch, rows: BrightRows, at: Positions, fitted: Fitted
) -> Floats:
    """Return the outcomes of the problems that are settled."""
    m, runs, ceiling, best = len(stack.cases), fitted.runs, batch.problems.max_chars, batch.best
    outcomes, tied = measure_runs(stack, rows, at, runs, bench.limit, len(ceiling))
    lone = fitted.settled & (np.bincount(runs.problem, minlength=len(ceiling)) == 0)
    for problem in np.flatnonzero(lone).tolist():
        outcomes[problem] = measure_row(stack, int(best[problem]), ceiling[problem])
    if bench.fill:
        fill_up(stack, rows, at, fitted, best, ceiling, outcomes)
        for problem in np.flatnonzero(fitted.settled & (outcomes[:, 0] != ceiling)).tolist():
            number, case = divmod(problem, m)
            held = slice(*np.searchsorted(runs.problem, (problem, problem + 1)))
            spans = list(zip(at[runs.first[held]].tolist(), (at[runs.last[held]] + 1).tolist(), strict=True))
            relevance = batch.weighed[number].relevance
            outcomes[problem, :2] = fill_alone(stack, relevance, case, spans, int(best[problem]), int(ceiling[problem]))
    elif bench.ranked:
        for problem in np.flatnonzero(fitted.settled & tied).tolist():
            number, case = divmod(problem, m)
            outcomes[problem] = run_alone(bench, bench.stacked[case], batch.trials[number])
    return outcomes
