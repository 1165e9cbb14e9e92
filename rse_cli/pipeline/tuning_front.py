"""Settings that trade two metrics against each other, and how they do on cases that they weren't chosen by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.folds import split_folds
from rse_cli.core.gates import Gate
from rse_cli.core.lexical import Floats
from rse_cli.core.methods import MethodParams
from rse_cli.core.tuning import Plan, search_front
from rse_cli.core.tuning_log import Log, Trial
from rse_cli.core.tuning_objective import Objective, find_front
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.evidence_cache import Cache
from rse_cli.pipeline.tune import Asked, make_spaces


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """A setting that no other beats in both metrics: its means on the cases it was chosen by, and on the others."""

    trial: Trial
    training: tuple[float, float]
    held_out: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Front:
    """The Pareto front of two metrics.

    Parameters
    ----------
    goals : (Gate, Gate)
        Metrics and which way is better; the limits mean nothing.
    points : tuple of FrontPoint
        Best in the first metric first.
    current : FrontPoint
        The setting as it is.
    n_cases, n_held_out, n_trials : int
        Counts.
    by_document : bool
        Whether the held-out cases are about other documents.
    """

    goals: tuple[Gate, Gate]
    points: tuple[FrontPoint, ...]
    current: FrontPoint
    n_cases: int
    n_held_out: int
    n_trials: int
    by_document: bool


def trace_front(
    cache: Cache,
    methods: Mapping[str, MethodParams],
    given: Trial,
    goals: tuple[Gate, Gate],
    asked: Asked,
    log: Log,
) -> Front:
    """Search for the settings that trade two metrics best, on some cases, and measure them on the others.

    Parameters
    ----------
    cache, methods, given, asked, log
        As in `tune_cases`; the limits of the objective hold.
    goals : (Gate, Gate)
        Two metrics, ``min`` for one to be made large, ``max`` for one to be made small.
    """
    folds, by_document = split_folds(cache.targets, 2, asked.seed)
    chosen_by = folds == 0
    [current] = log.add([given])
    limits = asked.objective.limits
    log.objective = objective = Objective(goals[0].metric, limits)
    plan = Plan(asked.trials, asked.seed, folds)
    numbers = search_front(log, make_spaces(cache, methods, asked.fill), current, goals, limits, plan, chosen_by)
    kept = [
        number
        for number, score in zip(numbers, log.score(numbers, objective, chosen_by).tolist(), strict=True)
        if score >= 0
    ]

    def measure(cases: NDArray[np.bool_], some: Sequence[int]) -> Floats:
        return np.array(
            [[float(np.nanmean(log.values[goal.metric][number][cases])) for goal in goals] for number in some]
        )

    def describe(number: int) -> FrontPoint:
        trained, held_out = (tuple(measure(cases, [number])[0].tolist()) for cases in (chosen_by, ~chosen_by))
        return FrontPoint(log.trials[number], (trained[0], trained[1]), (held_out[0], held_out[1]))

    signs = tuple(1 if goal.bound == "min" else -1 for goal in goals)
    values = measure(chosen_by, kept) if kept else np.zeros((0, 2))
    front = [kept[row] for row in find_front(values, (signs[0], signs[1]))]
    return Front(
        goals,
        tuple(map(describe, front)),
        describe(current),
        len(folds),
        int((~chosen_by).sum()),
        len(log.trials),
        by_document,
    )
