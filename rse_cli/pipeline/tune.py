"""Tuning: cached cases to a setting, with what it is worth on cases that it wasn't chosen by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.cached_cases import Outcome
from rse_cli.core.folds import split_folds
from rse_cli.core.gates import SILENT, Gate
from rse_cli.core.lexical import Floats
from rse_cli.core.methods import MethodParams
from rse_cli.core.search_space import SearchSpace, make_space
from rse_cli.core.settling import raise_penalty, settle_best
from rse_cli.core.tuning import Found, Plan, search_best
from rse_cli.core.tuning_log import Evaluate, Log, Trial
from rse_cli.core.tuning_objective import Objective
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.cached_answers import make_evaluate
from rse_cli.pipeline.evidence_cache import Cache
from rse_cli.pipeline.tuning_verdict import Figure, judge_gain, make_figures
from rse_cli.timings import stage


@dataclass(frozen=True, slots=True)
class Asked:
    """What a tuning is after.

    Parameters
    ----------
    objective : Objective
        What is maximised, and the limits.
    trials, seed, folds : int
        How long to search, the seed of all that is random, and how many parts are held out in turn.
    fill : bool
        Whether answers use their ceiling up.
    jobs : int
        Threads.
    """

    objective: Objective
    trials: int = 2_000
    seed: int = 0
    folds: int = 5
    fill: bool = False
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a tuning came to.

    Parameters
    ----------
    objective : Objective
        What was maximised, with the limit on length if none was asked for.
    given, current, best : Trial
        The setting as it is; the same made to keep to the limits; the tuned one.
    by_fold : tuple of Trial
        Per fold what was chosen without it.
    figures : tuple of Figure
        Per metric; what is maximised comes first.
    n_cases, n_trials : int
        Counts.
    by_document : bool
        Whether the cases of one document were held out together.
    n_folds : int
        Folds.
    refused : str
        Why the tuned setting is not recommended; empty if it is.
    """

    objective: Objective
    given: Trial
    current: Trial
    best: Trial
    by_fold: tuple[Trial, ...]
    figures: tuple[Figure, ...]
    n_cases: int
    n_trials: int
    by_document: bool
    n_folds: int
    refused: str


def make_spaces(cache: Cache, methods: Mapping[str, MethodParams], fill: bool) -> list[SearchSpace]:
    """Return what is varied of each method, given the cases."""
    tables = any(case.candidates.is_row.any() for case in cache.evidence)
    several = any(len(case.evidence) > 1 for case in cache.evidence) or any(
        len(hits) > 1 for case in cache.ranked for hits in case.ranked.values()
    )
    return [make_space(name, base, tables=tables, fill=fill, several=several) for name, base in methods.items()]


def open_log(
    cache: Cache, asked: Asked, metrics: Sequence[str], watch: Callable[[Log], None], is_over: Callable[[], bool]
) -> tuple[Log, Evaluate]:
    """Return an empty log over the cases of a cache, and what answers them exactly."""
    held = {SILENT} if any(one.chars == 0 for one in cache.targets) else set()
    names = tuple(dict.fromkeys((*asked.objective.metrics, *metrics, "chars", *held)))
    fast, exact = make_evaluate(cache, asked.fill, asked.jobs, names)
    return Log(fast, cache.targets, names, watch, is_over), exact


@stage("trials")
def tune_cases(
    cache: Cache, methods: Mapping[str, MethodParams], given: Trial, asked: Asked, log: Log, exact: Evaluate
) -> Tuned:
    """Search, and judge what was found on held-out cases.

    Parameters
    ----------
    cache : Cache
        The cases.
    methods : mapping of str to MethodParams
        The methods to try with their current parameters.
    given : Trial
        The setting as it is, of one of these methods or of another.
    asked : Asked
        What is wanted.
    log : Log
        From `open_log`; holds what was tried if the search is interrupted.
    exact : callable
        From `open_log`.
    """
    folds, by_document = split_folds(cache.targets, asked.folds, asked.seed)
    everything = np.ones(len(cache.targets), np.bool_)
    [number] = log.add([given])
    # With `fill` the length is given.
    objective = asked.objective if asked.fill else keep_length(log, number, asked.objective)
    log.objective = objective
    current = raise_penalty(log, number, objective, everything)
    spaces = make_spaces(cache, methods, asked.fill)
    found = search_best(log, spaces, current, objective, Plan(asked.trials, asked.seed, folds), settle_best)
    outcomes = _answer_found(log, found, folds, exact)
    figures = make_figures(objective, outcomes, cache.targets)
    trial = log.trials
    return Tuned(
        objective=objective,
        given=given,
        current=trial[found.current],
        best=trial[found.best],
        by_fold=tuple(trial[one] for one in found.by_fold),
        figures=figures,
        n_cases=len(cache.targets),
        n_trials=len(trial),
        by_document=by_document,
        n_folds=int(folds.max()) + 1,
        refused=judge_gain(objective, figures, unchanged=found.best == found.current),
    )


LENGTHY = ("recall", "hit", "document_recall")
"""What grows with every character returned."""


def keep_length(log: Log, given: int, objective: Objective) -> Objective:
    """Where longer answers alone would win and no limit is asked for, limit them to the length that they have now.

    A setting that finds nothing has no length to keep.
    """
    length = float(np.nanmean(log.values["chars"][given]))
    if objective.limits or objective.maximise not in LENGTHY or length == 0:
        return objective
    return Objective(objective.maximise, (Gate("max", "chars", length),))


def _answer_found(log: Log, found: Found, folds: NDArray[np.int64], exact: Evaluate) -> tuple[Floats, Floats, Floats]:
    """Return the outcomes of the current setting, the best one, and per case of what was chosen without it."""

    def answer(number: int) -> Floats:
        outcomes: Floats = exact(log.trials[number].method, [log.trials[number].params])[0]
        return outcomes

    held_out = np.zeros((len(folds), len(Outcome._fields)))
    for fold, number in enumerate(found.by_fold):
        held_out[folds == fold] = answer(number)[folds == fold]
    return answer(found.current), answer(found.best), held_out
