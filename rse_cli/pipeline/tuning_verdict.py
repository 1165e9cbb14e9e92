"""What a tuned setting is worth: means with intervals, and whether to recommend it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rse_cli.core.bootstrap import bootstrap_mean
from rse_cli.core.cached_cases import Target
from rse_cli.core.gates import SILENT, format_value
from rse_cli.core.lexical import Floats
from rse_cli.core.tuning_objective import SLACK, Objective, measure_outcomes
from rse_cli.dataclass import dataclass

REPORTED = ("recall", "precision", "iou", "hit", "chars", SILENT)
"""What is reported beside what was asked for."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over cases and the 95 % bootstrap interval in which it lies."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric: of the current setting, of the tuned one where it was chosen, of what is chosen without the case.

    `gain` is `held_out` less `current`, case by case.
    """

    metric: str
    current: Estimate
    training: Estimate
    held_out: Estimate
    gain: Estimate


def make_figures(
    objective: Objective, outcomes: tuple[Floats, Floats, Floats], targets: Sequence[Target]
) -> tuple[Figure, ...]:
    """Return the figures of what is maximised, of what is limited, and of `REPORTED`, as far as the cases have them.

    Parameters
    ----------
    objective : Objective
        What was maximised.
    outcomes : tuple of ndarray of shape (n_cases, 5)
        Of the current setting, of the tuned one, and per case of what was chosen without it.
    targets : sequence of Target
        Per case.
    """
    figures = []
    for name in dict.fromkeys((*objective.metrics, *REPORTED)):
        current, training, held_out = (measure_outcomes(name, one[None], targets)[0] for one in outcomes)
        has = ~np.isnan(current)
        if has.any():
            columns = (current[has], training[has], held_out[has], (held_out - current)[has])
            figures.append(Figure(name, *map(_estimate, columns)))
    return tuple(figures)


def _estimate(values: Floats) -> Estimate:
    return Estimate(float(values.mean()), *bootstrap_mean(values))


def judge_gain(objective: Objective, figures: Sequence[Figure], *, unchanged: bool) -> str:
    """Say why the tuned setting is not recommended, or return an empty text.

    Parameters
    ----------
    objective : Objective
        What was maximised.
    figures : sequence of Figure
        That metric first.
    unchanged : bool
        Whether nothing better than the current setting was found.
    """
    if unchanged:
        return "on all cases together nothing better than the current setting was found"
    by_name = {one.metric: one for one in figures}
    for gate in objective.limits:
        figure = by_name.get(gate.metric)
        if figure is None:
            continue
        slack = abs(gate.limit) * SLACK + 1e-9
        value = figure.held_out.mean
        if (value > gate.limit + slack) if gate.bound == "max" else (value < gate.limit - slack):
            sign = "≤" if gate.bound == "max" else "≥"
            shown = format_value(value, gate.limit)
            return f"held out it misses {gate.metric} {sign} {gate.limit:,.6g}: {shown}"
    gain = by_name[objective.maximise].gain
    if gain.low <= 0:
        return f"its held-out gain in {objective.maximise} is within the noise"
    return ""
