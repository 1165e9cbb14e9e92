"""The search over parameters: scrambled Sobol points over the whole space, then local refinement, all from one seed.

What a set of parameters is worth is somebody else's business (`Evaluate`), so that the search is the same for evidence
of an index and for made-up evidence with a planted optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.gates import Gate
from rse_cli.core.lexical import Floats
from rse_cli.core.search_space import Point, SearchSpace
from rse_cli.core.tuning_log import Log, Mask, Trial
from rse_cli.core.tuning_objective import Objective, average_cases
from rse_cli.dataclass import dataclass

EXPLORED = 0.5
"""Share of the trials that are Sobol points; the rest refines. A third and two thirds found the same optima."""

BROOD = 16
"""Points tried at once around the best: two a dimension of the method `rse`."""

WIDE, NARROW = 0.12, 0.008
"""Spread of the points around the best, at first and when a start is given up, in the unit cube."""

GROW, SHRINK = 1.3, 0.7
"""What the spread is multiplied with after a success and after a failure: steady at about one success in three."""

MOVED = 0.4
"""Chance that a dimension is moved: most steps that help change a few parameters."""

KEPT = 0.5
"""Share of the gain of the best that what is settled on must keep: with few cases all is within the noise."""


def draw_points(n_dimensions: int, n: int, seed: int) -> list[Point]:
    """Return the first scrambled Sobol points of the unit cube, at least `n`, as many as the next power of two.

    Their balance holds for powers of two only (Owen, 1998; `scipy.stats.qmc.Sobol`).

    Examples
    --------
    >>> len(draw_points(3, 5, 0))
    8
    """
    from scipy.stats import qmc

    sampler = qmc.Sobol(n_dimensions, scramble=True, seed=seed)
    return [tuple(map(float, point)) for point in sampler.random_base2(max(n - 1, 1).bit_length())]


def explore_space(log: Log, space: SearchSpace, n: int, seed: int) -> list[int]:
    """Try points all over a space, and return their numbers.

    Parameters
    ----------
    log : Log
        Gets the trials.
    space : SearchSpace
        Where choices alone make fewer than `n` points, all of them are tried.
    n : int
        About how many: rounded down to a power of two.
    seed : int
        Of the points.
    """
    points = _list_choices(space, n) or draw_points(len(space.dimensions), 1 << max(n.bit_length() - 1, 0), seed)
    tried: list[int] = []
    for at in range(0, len(points), BROOD):
        if tried and log.is_over():
            break
        tried += log.add([_make_trial(space, point) for point in points[at : at + BROOD]])
    return tried


def _explore_all(log: Log, spaces: Sequence[SearchSpace], plan: Plan) -> list[int]:
    """Try points of every space, of choices alone first: what they leave of their share goes to the others."""
    order = sorted(range(len(spaces)), key=lambda at: not spaces[at].is_grid)
    left, known = int(plan.trials * EXPLORED), []
    for rank, at in enumerate(order):
        tried = explore_space(log, spaces[at], left // (len(order) - rank), plan.seed + at)
        left -= len(tried)
        known += tried
    return known


def _make_trial(space: SearchSpace, point: Point) -> Trial:
    return Trial(space.method, space.decode(point), point)


def _list_choices(space: SearchSpace, most: int) -> list[Point]:
    """Return every point of a space of choices, or none if there are more than `most` or other dimensions."""
    sizes = [len(one.choices) for one in space.dimensions]
    if not all(sizes) or np.prod(sizes) > most:
        return []
    return [tuple((at + 0.5) / size for at, size in zip(place, sizes, strict=True)) for place in np.ndindex(*sizes)]


def refine_best(
    log: Log, space: SearchSpace, known: Sequence[int], objective: Objective, cases: Mask, budget: int, seed: int
) -> list[int]:
    """Search around the best trials of a space, and return the numbers of the new ones.

    Each round tries a brood of points around the best; their spread grows when one is better, else it shrinks. When it
    has become narrow, the search begins again at the next best of the known trials.

    Parameters
    ----------
    log : Log
        Gets the trials.
    space : SearchSpace
        With a dimension that isn't a choice, else there is nothing to refine.
    known : sequence of int
        Trials to begin at; only those of the space count.
    objective : Objective
        What is maximised.
    cases : ndarray of bool, shape (n_cases,)
        The cases that count.
    budget : int
        Trials.
    seed : int
        Of the steps.
    """
    starts = [number for number in known if log.trials[number].method == space.method]
    order = np.argsort(-log.score(starts, objective, cases), kind="stable")
    starts = [starts[at] for at in order.tolist()]
    if not starts or space.is_grid:
        return []
    rng = np.random.default_rng(seed)
    tried: list[int] = []
    best, spread, last = starts.pop(0), WIDE, None
    worth = log.score([best], objective, cases)[0]
    while len(tried) < budget and not log.is_over():
        here = np.array(log.trials[best].point or space.encode(log.trials[best].params))
        points = _scatter(here, spread, last, min(BROOD, budget - len(tried)), rng)
        brood = log.add([_make_trial(space, point) for point in points])
        tried += brood
        scores = log.score(brood, objective, cases)
        if scores.max() > worth:
            best, worth = brood[int(np.argmax(scores))], scores.max()
            last, spread = np.array(log.trials[best].point) - here, min(spread * GROW, 2 * WIDE)
            continue
        last, spread = None, spread * SHRINK
        if spread < NARROW and starts:
            best, spread = starts.pop(0), WIDE
            worth = log.score([best], objective, cases)[0]
    return tried


def _scatter(here: Floats, spread: float, last: Floats | None, n: int, rng: np.random.Generator) -> list[Point]:
    """Return points around a place, the first one a further step where the last one led."""
    moved = rng.random((n, len(here))) < MOVED
    moved[np.arange(n), rng.integers(len(here), size=n)] = True
    points = here + np.where(moved, rng.normal(0.0, spread, (n, len(here))), 0.0)
    if last is not None:
        points[0] = here + last
    return [tuple(map(float, point)) for point in np.clip(points, 0.0, 1.0)]


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to search, and with what.

    Parameters
    ----------
    trials : int
        About how many sets of parameters are tried, at least 1.
    seed : int
        All that is random follows from it.
    folds : ndarray of shape (n_cases,)
        Number of each case's fold.
    """

    trials: int
    seed: int
    folds: NDArray[np.int64]

    @property
    def n_folds(self) -> int:
        """Folds."""
        return int(self.folds.max()) + 1


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to, as numbers of trials in its log.

    Parameters
    ----------
    current : int
        The current setting, made to keep to the limits where it can.
    best : int
        The best on all cases.
    by_fold : tuple of int
        Per fold the best on the cases outside of it: what the search would have chosen without having seen it.
    """

    current: int
    best: int
    by_fold: tuple[int, ...]


Settle = Callable[[Log, SearchSpace, Sequence[int], Sequence[int], Objective, Mask], int]
"""Log, space of the best trial, trials of the exploration, all trials, objective and cases to the chosen trial."""


def search_best(
    log: Log, spaces: Sequence[SearchSpace], current: int, objective: Objective, plan: Plan, settle: Settle
) -> Found:
    """Search for the best parameters on all cases, and for each fold on the others.

    The folds share the points of the exploration, which know of no case; each is refined with its own cases alone.

    Parameters
    ----------
    log : Log
        Holds the trial `current`, and gets all others.
    spaces : sequence of SearchSpace
        One per method.
    current : int
        The current setting, of one of the spaces or of another method.
    objective : Objective
        What is maximised.
    plan : Plan
        Trials, seed and folds.
    settle : callable
        Chooses, such as `settling.settle_best`.
    """
    explored = [current, *_explore_all(log, spaces, plan)]
    everything = np.ones(len(plan.folds), np.bool_)
    n_searches = plan.n_folds + 1
    budget = max(plan.trials - len(explored) + 1, 0) // n_searches
    by_space = {space.method: space for space in spaces}
    # The current setting may be of a method that isn't tried.
    inside = [one for one in explored if log.trials[one].method in by_space]
    bests = []
    for number, cases in enumerate([everything, *(plan.folds != fold for fold in range(plan.n_folds))]):
        # Choices alone can't be refined, however good they are.
        starts = [one for one in inside if not by_space[log.trials[one].method].is_grid] or inside
        space = by_space[log.trials[log.find_best(starts, objective, cases)].method]
        tried = refine_best(log, space, explored, objective, cases, budget, plan.seed + 1_000 * (number + 1))
        known = [*explored, *tried]
        chosen = by_space.get(log.trials[log.find_best(known, objective, cases)].method, space)
        settled, best = settle(log, chosen, explored, known, objective, cases), log.find_best(known, objective, cases)
        before, after, most = log.score([current, settled, best], objective, cases).tolist()
        bests.append(settled if after - before >= KEPT * (most - before) else best)
    return Found(current, bests[0], tuple(bests[1:]))


def search_front(
    log: Log,
    spaces: Sequence[SearchSpace],
    current: int,
    goals: tuple[Gate, Gate],
    limits: tuple[Gate, ...],
    plan: Plan,
    cases: Mask,
) -> list[int]:
    """Search for settings that trade two metrics against each other, and return the numbers of all trials.

    Parameters
    ----------
    log, spaces, current, plan
        As in `search_best`.
    goals : (Gate, Gate)
        Bounds ``min`` for a metric that should be large, ``max`` for one that should be small; limits are ignored. The
        first must be one to be made large.
    limits : tuple of Gate
        Limits to keep.
    cases : ndarray of bool, shape (n_cases,)
        The cases that count.
    """
    known = [current, *_explore_all(log, spaces, plan)]
    by_space = {space.method: space for space in spaces}
    seconds = average_cases(log.tabulate(known), goals[1].metric, cases)
    budget = max(plan.trials - len(known) + 1, 0) // len(LEVELS)
    for number, level in enumerate(LEVELS):
        gate = Gate(goals[1].bound, goals[1].metric, float(np.quantile(seconds, level)))
        objective = Objective(goals[0].metric, (*limits, gate))
        start = log.find_best([one for one in known if log.trials[one].method in by_space], objective, cases)
        space = by_space[log.trials[start].method]
        known += refine_best(log, space, known, objective, cases, budget, plan.seed + 1_000 * (number + 1))
    return known


LEVELS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85)
"""Where along the second metric a front is refined: quantiles of what the exploration found."""
