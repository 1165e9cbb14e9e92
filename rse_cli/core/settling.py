"""From many trials to the one that is chosen: the middle of those that win on small draws of the cases.

The very best of two thousand trials owes some of its lead to luck with these cases. On another draw another one wins;
the middle of the winners owes less. They are drawn among the trials of the exploration, which lie evenly: those of the
refinement crowd where the luck was. On chunking-en, held out by documents, this was 1.1 to 1.6 points of recall better
than the very best at exactly 2,000 characters, and 0.5 to 0.8 better than winners among all trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rse_cli.core.dsrag_params import DsragParams
from rse_cli.core.params import RseParams
from rse_cli.core.search_space import Point, SearchSpace
from rse_cli.core.tuning_log import Log, Mask, Trial
from rse_cli.core.tuning_objective import Objective

DRAWS = 200
"""100 gave the same within a tenth of a point."""

DRAWN = 0.25
"""Share of the cases in a draw: 0.2 and 0.3 were equal, 0.1 and 1 worse."""

ERRORS = 3.0
"""Standard errors by which the middle may fall behind the best: so far ahead by luck alone is the best of a thousand.
Beyond that the middle lies between two good regions."""

STEPS = 10
"""Halvings of the way to the greatest penalty, to keep to a limit."""

PENALTY = "irrelevant_chunk_penalty"


def settle_best(
    log: Log, space: SearchSpace, explored: Sequence[int], tried: Sequence[int], objective: Objective, cases: Mask
) -> int:
    """Return the middle of the explored trials that win on draws of the cases, or the best one if that is worse.

    Parameters
    ----------
    log : Log
        Gets a few more trials.
    space : SearchSpace
        The best trial's own.
    explored : sequence of int
        Trials that lie all over the space: their winners are drawn.
    tried : sequence of int
        All trials.
    objective : Objective
        What is maximised.
    cases : ndarray of bool, shape (n_cases,)
        The cases that count.
    """
    best = log.find_best(tried, objective, cases)
    point = log.trials[best].point
    scores = log.score(tried, objective, cases)
    if point is None or scores.max() < 0 or all(one.choices for one in space.dimensions):
        return best
    members = [
        number
        for number, score in zip(explored, log.score(explored, objective, cases).tolist(), strict=True)
        if score >= 0 and _is_near(log, space, best, number)
    ]
    if not members:
        return best
    points = np.array([log.trials[number].point for number in _draw_winners(log, members, objective, cases)])
    middle = [
        own if one.choices else float(mean)
        for own, mean, one in zip(point, points.mean(axis=0), space.dimensions, strict=True)
    ]
    found = _keep_limits(log, space, tuple(middle), objective, cases)
    return found if found is not None and _is_equal(log, best, found, objective, cases) else best


def _draw_winners(log: Log, members: Sequence[int], objective: Objective, cases: Mask) -> list[int]:
    """Return the best trial on each draw of the cases, with replacement."""
    values = np.array([log.values[objective.maximise][number] for number in members])[:, cases]
    held = ~np.isnan(values[0])
    values = values[:, held]
    n = values.shape[1]
    rng = np.random.default_rng(n)
    weights = rng.multinomial(max(round(DRAWN * n), 1), np.full(n, 1 / n), size=DRAWS)
    # No BLAS, whose sums depend on the machine: two runs agree to the last digit.
    means = np.einsum("mc,dc->dm", values, weights.astype(np.float64))
    return [members[at] for at in means.argmax(axis=1).tolist()]


def _is_near(log: Log, space: SearchSpace, best: int, number: int) -> bool:
    """Whether two trials are of one method and agree in what is a choice, which has no middle."""
    one, other = log.trials[best], log.trials[number]
    return (
        other.point is not None
        and one.method == other.method
        and all(
            getattr(one.params, each.name) == getattr(other.params, each.name)
            for each in space.dimensions
            if each.choices
        )
    )


def _is_equal(log: Log, best: int, number: int, objective: Objective, cases: Mask) -> bool:
    """Whether a trial falls behind by at most some standard errors of the difference, case by case."""
    rows = log.values[objective.maximise]
    difference = (rows[best] - rows[number])[cases]
    difference = difference[~np.isnan(difference)]
    if len(difference) < 2:
        return False
    error = float(difference.std(ddof=1)) / math.sqrt(len(difference))
    return float(difference.mean()) <= ERRORS * error + 1e-12


def _keep_limits(log: Log, space: SearchSpace, point: Point, objective: Objective, cases: Mask) -> int | None:
    """Try a point, with a higher penalty if it misses a limit, and return the first trial that keeps to all."""
    [number] = log.add([Trial(space.method, space.decode(point), point)])
    if log.score([number], objective, cases)[0] >= 0:
        return number
    names = [one.name for one in space.dimensions]
    if PENALTY not in names:
        return None
    at = names.index(PENALTY)
    low, high, kept = point[at], 1.0, None
    for _ in range(STEPS):
        middle = (low + high) / 2
        moved = (*point[:at], middle, *point[at + 1 :])
        [number] = log.add([Trial(space.method, space.decode(moved), moved)])
        if log.score([number], objective, cases)[0] >= 0:
            kept, high = number, middle
        else:
            low = middle
    return kept


def raise_penalty(log: Log, number: int, objective: Objective, cases: Mask) -> int:
    """Return a trial, or where it misses a limit the same with its penalty raised just until it doesn't.

    A setting that answers at twice the length has the greater recall: without this, nothing shorter could be compared.
    """
    given = log.trials[number]
    if not isinstance(given.params, RseParams | DsragParams) or log.score([number], objective, cases)[0] >= 0:
        return number
    # 0 has no logarithm.
    low, high, kept = max(given.params.irrelevant_chunk_penalty, 1e-3), 1.0, number
    for _ in range(STEPS + 4):
        middle = math.sqrt(low * high)
        [tried] = log.add([Trial(given.method, replace(given.params, irrelevant_chunk_penalty=middle))])
        if log.score([tried], objective, cases)[0] >= 0:
            kept, high = tried, middle
        else:
            low = middle
    return kept
