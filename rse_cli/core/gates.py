"""What a check measures by name, the limits that it must keep to, and the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Literal

from rse_cli.core.metrics import Score
from rse_cli.dataclass import dataclass

METRICS: Mapping[str, Callable[[Score], float]] = {
    "recall": lambda score: score.recall,
    "precision": lambda score: score.precision,
    "iou": lambda score: score.iou,
    "hit": lambda score: score.hit,
    "document_recall": lambda score: score.document_recall,
    "mrr": lambda score: score.reciprocal_rank,
    "chars": lambda score: score.chars,
    "spans": lambda score: score.n_spans,
    "empty": lambda score: score.empty,
}
"""By name, what is measured of a case that expects something; the mean over such cases is gated."""

SILENT = "silent"
"""1 for a case that expects nothing and finds nothing, else 0; over cases that expect nothing."""

PASSED = "passed"
"""`hit` and `silent` in one, over all cases."""

METRIC_NAMES = (*METRICS, SILENT, PASSED)

COSTS = ("chars", "spans", "empty")
"""What is better the smaller it is."""

COUNTS = ("chars", "spans")
"""What counts something; all else is a share in [0, 1], of one case and in the mean."""

Bound = Literal["min", "max", "max_drop"]

TOLERANCE = 1e-9
"""The mean of ten times 0.9 is 0.9 but for its last digits."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit that a metric must keep to.

    Parameters
    ----------
    bound : str
        ``min``, ``max``, or ``max_drop``: on how far the mean lies below that of a former check.
    metric : str
        One of `METRIC_NAMES`.
    limit : float
        Inclusive.
    """

    bound: Bound
    metric: str
    limit: float

    def admits(self, value: float) -> bool:
        """Whether a value keeps to the limit."""
        if self.bound == "min":
            return value >= self.limit - TOLERANCE
        return value <= self.limit + TOLERANCE


DEFAULT_GATES = (Gate("min", PASSED, 1.0),)
"""Where none is asked for, every case has to pass."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a gate holds.

    Parameters
    ----------
    gate : Gate
        Which.
    value : float
        The mean, or with gates for each case the worst value.
    passed : bool
        Whether all is well.
    failures : tuple of str
        With gates for each case, the ids of those that miss it.
    """

    gate: Gate
    value: float
    passed: bool
    failures: tuple[str, ...] = ()


def measure_case(score: Score | None, n_spans: int) -> dict[str, float]:
    """Return the metrics of one case by name.

    Parameters
    ----------
    score : Score or None
        None for a case that expects nothing.
    n_spans : int
        Segments found.

    Examples
    --------
    >>> measure_case(None, 2)
    {'silent': 0.0, 'passed': 0.0}
    """
    if score is None:
        silent = float(n_spans == 0)
        return {SILENT: silent, PASSED: silent}
    return {name: measure(score) for name, measure in METRICS.items()} | {PASSED: score.hit}


def average_measures(measures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over the cases that have it, in the order of `METRIC_NAMES`.

    Examples
    --------
    >>> average_measures([{"hit": 1.0, "passed": 1.0}, {"silent": 0.0, "passed": 0.0}])
    {'hit': 1.0, 'silent': 0.0, 'passed': 0.5}
    """
    held = {name: [one[name] for one in measures if name in one] for name in METRIC_NAMES}
    return {name: sum(values) / len(values) for name, values in held.items() if values}


def judge_means(gates: Sequence[Gate], means: Mapping[str, float]) -> list[Verdict]:
    """Return the verdict of each gate on the means; one whose metric no case has is left out.

    Examples
    --------
    >>> [verdict.passed for verdict in judge_means([Gate("min", "hit", 0.9)], {"hit": 0.8})]
    [False]
    """
    return [
        Verdict(gate, means[gate.metric], gate.admits(means[gate.metric])) for gate in gates if gate.metric in means
    ]


def judge_each(gates: Sequence[Gate], measures: Mapping[str, Mapping[str, float]]) -> list[Verdict]:
    """Return the verdict of each gate on every case that has its metric.

    A case that expects nothing has no metric but `SILENT` and `PASSED`: other gates say nothing of it.

    Parameters
    ----------
    gates : sequence of Gate
        Limits.
    measures : mapping of str to mapping
        By id of the case its metrics by name.

    Examples
    --------
    >>> judge_each([Gate("min", "recall", 0.5)], {"a": {"recall": 0.4}, "b": {"recall": 1.0}})[0].failures
    ('a',)
    """
    verdicts = []
    for gate in gates:
        values = {name: one[gate.metric] for name, one in measures.items() if gate.metric in one}
        if values:
            failures = tuple(name for name, value in values.items() if not gate.admits(value))
            worst = min(values.values()) if gate.bound == "min" else max(values.values())
            verdicts.append(Verdict(gate, worst, not failures, failures))
    return verdicts


def collect_failures(
    verdicts: Sequence[Verdict], measures: Mapping[str, Mapping[str, float]], *, each: bool
) -> dict[str, list[str]]:
    """Return by id the cases that fail, with why: nothing right was found, or with `each` a gate was missed.

    Examples
    --------
    >>> collect_failures([], {"a": {"hit": 0.0, "passed": 0.0}}, each=False)
    {'a': ['nothing expected was found']}
    """
    failures: dict[str, list[str]] = {}
    for name, one in measures.items():
        if one[PASSED] < 1:
            failures[name] = ["something was found" if SILENT in one else "nothing expected was found"]
    if each:
        for verdict in verdicts:
            gate = verdict.gate
            for name in verdict.failures:
                said = gate.bound == "min" and gate.metric in (PASSED, SILENT, "hit") and name in failures
                if not said:
                    value = measures[name][gate.metric]
                    reason = f"{gate.metric} {format_value(value, gate.limit)}, {gate.bound} {format_limit(gate.limit)}"
                    failures.setdefault(name, []).append(reason)
    return failures


def format_value(value: float, beside: float | None = None) -> str:
    """Return a number as messages show it, with as many digits as tell it apart from a limit beside it.

    What rounds to zero has no sign.

    Examples
    --------
    >>> format_value(2207.5), format_value(0.5), format_value(0.89996, 0.9), format_value(3), format_value(-1e-12)
    ('2,208', '0.50', '0.89996', '3.00', '0.00')
    """
    digits = 0 if abs(value) >= 100 else 2
    text = f"{value:z,.{digits}f}"
    apart = beside is not None and abs(value - beside) > TOLERANCE
    while apart and digits < 9 and text == f"{beside:z,.{digits}f}":
        digits += 1
        text = f"{value:z,.{digits}f}"
    return text


def format_limit(limit: float) -> str:
    """Return a limit as it was given, with the digits that values have at least: a rounded one would be another limit.

    Examples
    --------
    >>> format_limit(0.9), format_limit(0.999), format_limit(4000), format_limit(1e-7)
    ('0.90', '0.999', '4,000', '0.0000001')
    """
    # The shortest decimal number that is this float, without an exponent.
    whole, _, decimals = f"{Decimal(repr(limit)):,f}".partition(".")
    decimals = decimals.rstrip("0").ljust(0 if abs(limit) >= 100 else 2, "0")
    return f"{whole}.{decimals}" if decimals else whole
