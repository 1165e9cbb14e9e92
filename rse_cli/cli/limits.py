"""The limits of a check: from settings and flags to gates, and none on what doesn't exist or isn't measured."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from rse_cli.config import Settings
from rse_cli.config.kinds import LIMITS
from rse_cli.core.cases import ResolvedCase
from rse_cli.core.gates import COSTS, DEFAULT_GATES, METRIC_NAMES, PASSED, SILENT, Gate
from rse_cli.errors import UsageError


def make_gates(settings: Settings, drops: Mapping[str, float]) -> tuple[Gate, ...]:
    """Return the gates of the settings; the default one where there are none and no limits of drops either.

    Raises
    ------
    UsageError
        If a metric doesn't exist; all of them are named.
    """
    asked = [(bound, metric, limit) for bound in ("min", "max") for metric, limit in settings.check[bound].items()]
    _refuse_unknown((f"{bound} {metric}", metric) for bound, metric, _ in asked)
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
    try:
        drops: dict[str, float] = LIMITS.read(texts)
    except ValueError as fault:
        raise UsageError(f"--max-drop must be {LIMITS.expects}, not {', '.join(texts)}") from fault
    _refuse_unknown((f"--max-drop {metric}", metric) for metric in drops)
    costs = [metric for metric in drops if metric in COSTS]
    if costs:
        raise UsageError(f"--max-drop {costs[0]}: it is better the smaller it is; limit it by --max")
    return drops


def _refuse_unknown(named: Iterator[tuple[str, str]]) -> None:
    faults = []
    for place, metric in named:
        if metric not in METRIC_NAMES:
            near = difflib.get_close_matches(metric, METRIC_NAMES, 1)
            faults.append(f"{place}: " + (f"did you mean {near[0]}?" if near else f"one of {', '.join(METRIC_NAMES)}"))
    if faults:
        raise UsageError(f"no such metric: {'; '.join(faults)}")


def check_limits(gates: Sequence[Gate], drops: Mapping[str, float], cases: Sequence[ResolvedCase]) -> None:
    """Refuse limits on what no case measures: they would hold for ever.

    Raises
    ------
    UsageError
        Naming the metric.
    """
    asking, silent = any(one.spans for one in cases), any(not one.spans for one in cases)
    for metric in [*(gate.metric for gate in gates), *drops]:
        if metric == SILENT and not silent:
            raise UsageError(f"{metric} can't be limited: every case expects something")
        if metric not in (SILENT, PASSED) and not asking:
            raise UsageError(f"{metric} can't be limited: no case expects anything")
