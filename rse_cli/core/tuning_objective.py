"""What a search is after: metrics by name, what is maximised, the limits to keep, and the Pareto front of two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.cached_cases import Target
from rse_cli.core.gates import COSTS, PASSED, SILENT, Gate
from rse_cli.core.lexical import Floats
from rse_cli.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """Outcomes of many answers as columns that broadcast against each other; `wanted` of a case is never 0."""

    chars: Floats
    overlap: Floats
    spans: Floats
    documents: Floats
    reciprocal_rank: Floats
    wanted: Floats
    wanted_documents: Floats


def _divide(one: Floats, other: Floats) -> Floats:
    """Return the quotient, 0 where nothing was retrieved."""
    quotient: Floats = np.where(one > 0, one / np.maximum(other, 1e-300), 0.0)
    return quotient


def _weigh_recall(beta: float) -> Callable[[Counts], Floats]:
    """Return F of recall and precision, recall counting `beta` times: ``(1 + β²)·both / (β²·wanted + retrieved)``."""
    return lambda one: _divide((1 + beta**2) * one.overlap, beta**2 * one.wanted + one.chars)


MEASURES: Mapping[str, Callable[[Counts], Floats]] = {
    "recall": lambda one: one.overlap / one.wanted,
    "precision": lambda one: _divide(one.overlap, one.chars),
    "iou": lambda one: one.overlap / (one.wanted + one.chars - one.overlap),
    "f1": _weigh_recall(1),
    "f2": _weigh_recall(2),
    "hit": lambda one: (one.overlap > 0).astype(np.float64),
    "document_recall": lambda one: one.documents / one.wanted_documents,
    "mrr": lambda one: one.reciprocal_rank,
    "chars": lambda one: one.chars,
    "spans": lambda one: one.spans,
    "empty": lambda one: (one.chars == 0).astype(np.float64),
}
"""By name, the metric of each case that expects something; spelled as in `gates.METRICS`, with F1 and F2 beside."""

OBJECTIVES = tuple(name for name in MEASURES if name not in COSTS)
"""What can be maximised."""

METRICS = (*MEASURES, SILENT, PASSED)

SLACK = 0.05
"""Held out, a limit may be missed by a twentieth: as far as the mean length of some hundred answers varies."""


def measure_outcomes(name: str, outcomes: Floats, targets: Sequence[Target]) -> Floats:
    """Return a metric per trial and case, NaN where a case doesn't have it.

    Parameters
    ----------
    name : str
        One of `METRICS`.
    outcomes : ndarray of shape (n_trials, n_cases, 5)
        From `run_trials`.
    targets : sequence of Target
        Per case.

    Returns
    -------
    ndarray of shape (n_trials, n_cases)

    Examples
    --------
    >>> outcome = np.array([[[40.0, 10.0, 1.0, 1.0, 0.5]]])
    >>> [float(measure_outcomes(name, outcome, [Target({0: [(0, 20)]})])[0, 0]) for name in ("recall", "iou")]
    [0.5, 0.2]
    """
    wanted = np.array([float(one.chars) for one in targets])
    silent = wanted == 0
    if name == SILENT:
        return np.where(silent, (outcomes[..., 0] == 0).astype(np.float64), np.nan)
    if name == PASSED:
        return np.where(silent, outcomes[..., 0] == 0, outcomes[..., 1] > 0).astype(np.float64)
    chars, overlap, spans, documents, reciprocal_rank = np.moveaxis(outcomes, -1, 0)
    counts = Counts(
        chars,
        overlap,
        spans,
        documents,
        reciprocal_rank,
        wanted=np.where(silent, 1.0, wanted),
        wanted_documents=np.array([float(max(len(one.spans), 1)) for one in targets]),
    )
    return np.where(silent, np.nan, MEASURES[name](counts))


@dataclass(frozen=True, slots=True)
class Objective:
    """What is maximised, and the limits that the means must keep to.

    Parameters
    ----------
    maximise : str
        One of `OBJECTIVES`.
    limits : tuple of Gate
        On means over cases.
    """

    maximise: str
    limits: tuple[Gate, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics that matter."""
        return tuple(dict.fromkeys((self.maximise, *(gate.metric for gate in self.limits))))


Table = Mapping[str, Floats]
"""By metric an array of shape (n_trials, n_cases)."""


def average_cases(table: Table, name: str, cases: NDArray[np.bool_]) -> Floats:
    """Return the mean of a metric over the chosen cases that have it; 0 if none has."""
    values = table[name][:, cases]
    held = ~np.isnan(values)
    means: Floats = np.where(held, values, 0.0).sum(axis=1) / np.maximum(held.sum(axis=1), 1)
    return means


def measure_excess(table: Table, limits: Sequence[Gate], cases: NDArray[np.bool_]) -> Floats:
    """Return by how much each trial misses its limits, as a share of them, summed; 0 where all are kept."""
    excess: Floats = np.zeros(len(next(iter(table.values()))))
    for gate in limits:
        if np.isnan(table[gate.metric][:, cases]).all():
            continue
        means = average_cases(table, gate.metric, cases)
        missed = means - gate.limit if gate.bound == "max" else gate.limit - means
        # 1e-9 as in `Gate.admits`.
        excess = excess + np.where(missed > 1e-9, missed / max(abs(gate.limit), 1e-3), 0.0)
    return excess


def score_trials(table: Table, objective: Objective, cases: NDArray[np.bool_]) -> Floats:
    """Return one number per trial to be made large: the mean of what is maximised, less the excess over the limits.

    A limit missed by a tenth costs 0.1 and a step more than any trial that keeps to it could lose, so that no miss pays
    for itself; among those that miss, smaller excess and larger mean are both worth something.

    Examples
    --------
    >>> table = {"recall": np.array([[0.6], [0.9]]), "chars": np.array([[100.0], [220.0]])}
    >>> objective = Objective("recall", (Gate("max", "chars", 200),))
    >>> score_trials(table, objective, np.array([True])).round(6).tolist()
    [0.6, -0.2]
    """
    excess = measure_excess(table, objective.limits, cases)
    means = average_cases(table, objective.maximise, cases)
    scores: Floats = means - excess - (excess > 0)
    return scores


def find_front(values: Floats, signs: tuple[int, int] = (1, 1)) -> list[int]:
    """Return the rows that no other row beats in one column without losing in the other, best first column first.

    Parameters
    ----------
    values : ndarray of shape (n, 2)
        Two figures per trial.
    signs : (int, int)
        1 where large is good, −1 where small is.

    Examples
    --------
    >>> find_front(np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.4], [0.2, 0.9]]))
    [0, 1, 3]
    """
    good = values * np.array(signs)
    order = np.lexsort((np.arange(len(good)), -good[:, 1], -good[:, 0]))
    front, best = [], -np.inf
    for row in order.tolist():
        if good[row, 1] > best:
            best = good[row, 1]
            front.append(row)
    return front
