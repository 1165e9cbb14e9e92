"""The flags that say what a tuning is after, checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from rse_cli.cli.limits import read_limits
from rse_cli.core.gates import COSTS, COUNTS, Gate
from rse_cli.core.spelling import find_nearest
from rse_cli.core.tuning_objective import METRICS, OBJECTIVES
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError

MINIMISED = COUNTS

DEFAULT = "recall"


@dataclass(frozen=True, slots=True)
class Goals:
    """What is wanted.

    Parameters
    ----------
    metrics : tuple of Gate
        One or two: ``min`` for a metric to be made large, ``max`` for one to be made small; the limits mean nothing.
    limits : tuple of Gate
        Limits on means.
    """

    metrics: tuple[Gate, ...]
    limits: tuple[Gate, ...]


def read_goals(
    maximise: Sequence[str], minimise: Sequence[str], at_most: Sequence[str], at_least: Sequence[str]
) -> Goals:
    """Return what the flags ask for.

    Raises
    ------
    UsageError
        If a metric is unknown or can't be used so, a limit can't be read, or there are more than two metrics.

    Examples
    --------
    >>> read_goals(["f1"], [], ["chars=2000"], []).limits
    (Gate(bound='max', metric='chars', limit=2000.0),)
    """
    large, small = _split(maximise), _split(minimise)
    _refuse_unknown("--maximise", large, OBJECTIVES)
    _refuse_unknown("--minimise", small, MINIMISED)
    if small and not large:
        raise UsageError("--minimise goes with one --maximise; to find short answers, limit them: --at-most chars=2000")
    large = large or [DEFAULT]
    named = [*large, *small]
    if len(named) > 2 or len({*named}) < len(named):
        raise UsageError(f"give one metric, or two different ones, not {', '.join(named)}")
    metrics = (*(Gate("min", name, 0.0) for name in large), *(Gate("max", name, 0.0) for name in small))
    limits = (*_read_limits("--at-most", at_most, "max"), *_read_limits("--at-least", at_least, "min"))
    return Goals(metrics, limits)


def _split(texts: Iterable[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",")]


def _refuse_unknown(flag: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            near = find_nearest(name, known)
            hint = f"did you mean {near}?" if near else f"one of {', '.join(known)}"
            if flag == "--maximise" and name in COSTS:
                hint = f"it is better the smaller it is; limit it: --at-most {name}=…"
                hint += f", or draw a front: --minimise {name}" if name in MINIMISED else ""
            raise UsageError(f"{flag} {name}: {hint}")


def _read_limits(flag: str, texts: Sequence[str], bound: Literal["min", "max"]) -> list[Gate]:
    return [Gate(bound, metric, limit) for metric, limit in read_limits(flag, texts, METRICS).items()]
