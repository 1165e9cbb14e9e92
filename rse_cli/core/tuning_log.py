"""What a search has tried, and how each case came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.cached_cases import Target
from rse_cli.core.lexical import Floats
from rse_cli.core.methods import MethodParams
from rse_cli.core.search_space import Point
from rse_cli.core.tuning_objective import Objective, Table, measure_outcomes, score_trials
from rse_cli.dataclass import dataclass

Evaluate = Callable[[str, Sequence[MethodParams]], Floats]
"""Method and parameters to outcomes of shape (n_trials, n_cases, 5)."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Trial:
    """A method with parameters that was tried; `point` is where in its space, None for what was given."""

    method: str
    params: MethodParams
    point: Point | None = None


@dataclass(slots=True)
class Log:
    """All that was tried, and how each case came out: it grows while a search runs.

    Parameters
    ----------
    evaluate : callable
        Answers all cases.
    targets : sequence of Target
        Per case.
    metrics : tuple of str
        What is kept of each trial.
    watch : callable
        Called with this log after every batch.
    is_over : callable
        Whether time is up.
    objective : Objective or None
        What the search is after, once that is settled; for those who watch.
    """

    evaluate: Evaluate
    targets: Sequence[Target]
    metrics: tuple[str, ...]
    watch: Callable[[Log], None] = field(default=lambda _: None)
    is_over: Callable[[], bool] = field(default=lambda: False)
    trials: list[Trial] = field(default_factory=list)
    values: dict[str, list[Floats]] = field(default_factory=dict)
    objective: Objective | None = None

    def add(self, trials: Sequence[Trial]) -> range:
        """Try some parameters of one method, and return their numbers."""
        outcomes = self.evaluate(trials[0].method, [one.params for one in trials])
        measured = {name: measure_outcomes(name, outcomes, self.targets) for name in self.metrics}
        # Nothing is kept of a batch that was interrupted.
        for name in self.metrics:
            self.values.setdefault(name, []).extend(measured[name])
        begun = len(self.trials)
        self.trials.extend(trials)
        self.watch(self)
        return range(begun, len(self.trials))

    def tabulate(self, numbers: Sequence[int]) -> Table:
        """Return the metrics of some trials, arrays of shape (n_trials, n_cases)."""
        return {name: np.array([rows[number] for number in numbers]) for name, rows in self.values.items()}

    def score(self, numbers: Sequence[int], objective: Objective, cases: Mask) -> Floats:
        """Return what some trials are worth on some cases."""
        return score_trials(self.tabulate(numbers), objective, cases)

    def find_best(self, numbers: Sequence[int], objective: Objective, cases: Mask) -> int:
        """Return the best of some trials on some cases; the first of equals."""
        return numbers[int(np.argmax(self.score(numbers, objective, cases)))]
