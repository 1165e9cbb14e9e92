"""The limits of a check: from settings and flags to gates, and none on what doesn't exist or isn't measured."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rse_cli.config import Settings
from rse_cli.config.kinds import LIMITS
from rse_cli.core.cases import ResolvedCase
from rse_cli.core.gates import COSTS, COUNTS, DEFAULT_GATES, METRIC_NAMES, PASSED, SILENT, Gate
from rse_cli.core.spelling import find_nearest
from rse_cli.errors import UsageError


def make_gates(settings: Settings, drops: Mapping[str, float]) -> tuple[Gate, ...]:
    """Return the gates of the settings; the default one where there are none and no limits of drops either.

    Raises
    ------
    UsageError
        If a metric doesn't exist, or its limit is none that it could reach; all of them are named.
    """
    asked = [(bound, metric, limit) for bound in ("min", "max") for metric, limit in settings.check[bound].items()]
    refuse_limits((f"{bound} {metric}", metric, limit) for bound, metric, limit in asked)
    return tuple(Gate(bound, metric, limit) for bound, metric, limit in asked) or (() if drops else DEFAULT_GATES)


def parse_drops(texts: Sequence[str], *, has_baseline: bool) -> dict[str, float]:
    """Return the limits of ``--max-drop`` by metric.

    Raises
    ------
    UsageError
        If one can't be read, or there is nothing to compare with.
    """
    if texts and not has_baseline:
        raise UsageError("--max-drop goes with --baseline")
    drops = read_limits("--max-drop", texts, METRIC_NAMES)
    costs = [metric for metric in drops if metric in COSTS]
    if costs:
        raise UsageError(f"--max-drop {costs[0]}: it is better the smaller it is; limit it by --max")
    return drops


def read_limits(flag: str, texts: Sequence[str], known: Collection[str]) -> dict[str, float]:
    """Return the limits ``metric=number`` of a flag by metric.

    Raises
    ------
    UsageError
        Naming each that can't be read, or else each whose metric isn't known or can't be limited so.
    """
    limits: dict[str, float] = {}
    faults = []
    for text in texts:
        try:
            limits |= LIMITS.read([text])
        except ValueError:
            faults.append(f"{flag} must be {LIMITS.expects}, not {text!r}")
    if faults:
        raise UsageError("; ".join(faults))
    refuse_limits(((f"{flag} {metric}", metric, limit) for metric, limit in limits.items()), known)
    return limits


def refuse_limits(named: Iterable[tuple[str, str, float]], known: Collection[str] = METRIC_NAMES) -> None:
    """Raise a UsageError that names every limit on no known metric, or on a value that its metric never has.

    Parameters
    ----------
    named : iterable of (str, str, float)
        What a message calls the limit, its metric, and the number.
    known : collection of str
        Metrics.
    """
    faults = [f"{place}: {fault}" for place, metric, limit in named if (fault := _find_fault(metric, limit, known))]
    if faults:
        raise UsageError("; ".join(faults))


def _find_fault(metric: str, limit: float, known: Collection[str]) -> str:
    if metric not in known:
        near = find_nearest(metric, known)
        return "no such metric; " + (f"did you mean {near}?" if near else f"there are {', '.join(known)}")
    if metric in COUNTS:
        return "" if limit >= 0 else f"{metric} is never below 0"
    if 0 <= limit <= 1:
        return ""
    meant = f"; did you mean {metric}={limit / 100:g}?" if 2 <= limit <= 100 else ""
    return f"{metric} is a share from 0 to 1, not {limit:g}{meant}"


def check_limits(gates: Sequence[Gate], drops: Mapping[str, float], cases: Sequence[ResolvedCase]) -> None:
    """Refuse limits on what no case measures: they would hold for ever.

    Raises
    ------
    UsageError
        Naming the metrics.
    """
    asking, silent = any(one.spans for one in cases), any(not one.spans for one in cases)
    faults = []
    for metric in dict.fromkeys([*(gate.metric for gate in gates), *drops]):
        if metric == SILENT and not silent:
            faults.append(f"{metric} can't be limited: every case expects something")
        if metric not in (SILENT, PASSED) and not asking:
            faults.append(f"{metric} can't be limited: no case expects anything")
    if faults:
        raise UsageError("; ".join(faults))
