"""Two checks of the same cases: which got better or worse, and whether the means differ by more than chance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rse_cli.core.bootstrap import bootstrap_mean
from rse_cli.core.gates import METRIC_NAMES, SILENT, TOLERANCE, Gate, Verdict
from rse_cli.dataclass import dataclass

_NUMBERED = re.compile(r"case-\d+")
"""Ids given by position, which say nothing about which case it was."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A case with its metrics by name."""

    id: str
    queries: tuple[str, ...]
    measures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Change:
    """A case that got better or worse: in recall, or, where nothing is expected, in silence."""

    id: str
    queries: tuple[str, ...]
    metric: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of a metric now less the mean before, over the cases of both, with its 95 % interval."""

    mean: float
    low: float
    high: float
    n_cases: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A check beside a former one.

    Parameters
    ----------
    better, worse : tuple of Change
        The greatest change first.
    n_equal : int
        Cases of both that did not change.
    new, gone : tuple of str
        Ids of cases that only this check or only the former has.
    differences : mapping of str to Difference
        By metric.
    """

    better: tuple[Change, ...]
    worse: tuple[Change, ...]
    n_equal: int
    new: tuple[str, ...]
    gone: tuple[str, ...]
    differences: Mapping[str, Difference]


def compare_checks(now: Sequence[Measured], before: Sequence[Measured]) -> Comparison:
    """Compare the cases of two checks.

    Parameters
    ----------
    now, before : sequence of Measured
        A case is the same if its queries are, else if its id is, unless that only numbers it.

    Examples
    --------
    >>> one = compare_checks([Measured("a", ("q",), {"recall": 0.5})], [Measured("a", ("q",), {"recall": 1.0})])
    >>> one.worse[0].before, one.worse[0].after, one.differences["recall"].mean
    (1.0, 0.5, -0.5)
    """
    pairs, new, gone = match_cases(now, before)
    changes = [change for pair in pairs if (change := _find_change(*pair)) is not None]
    better = sorted((one for one in changes if one.after > one.before), key=lambda one: one.before - one.after)
    worse = sorted((one for one in changes if one.after < one.before), key=lambda one: one.after - one.before)
    differences = {}
    for name in METRIC_NAMES:
        held = [
            one.measures[name] - other.measures[name]
            for one, other in pairs
            if name in one.measures and name in other.measures
        ]
        if held:
            differences[name] = Difference(sum(held) / len(held), *bootstrap_mean(held), len(held))
    return Comparison(tuple(better), tuple(worse), len(pairs) - len(changes), new, gone, differences)


def match_cases(
    now: Sequence[Measured], before: Sequence[Measured]
) -> tuple[list[tuple[Measured, Measured]], tuple[str, ...], tuple[str, ...]]:
    """Return the pairs of the same case, in the order of `now`, and the ids that only one side has.

    Examples
    --------
    >>> a, b, c = Measured("case-1", ("x",), {}), Measured("case-1", ("y",), {}), Measured("case-2", ("x",), {})
    >>> pairs, new, gone = match_cases([a], [b, c])
    >>> pairs[0][1].id, new, gone
    ('case-2', (), ('case-1',))
    """
    left = dict(enumerate(before))
    by_queries: dict[tuple[str, ...], list[int]] = {}
    by_id: dict[str, int] = {}
    for at, one in left.items():
        by_queries.setdefault(one.queries, []).append(at)
        by_id.setdefault(one.id, at)
    found: dict[int, Measured] = {}
    for position, one in enumerate(now):
        same = [at for at in by_queries.get(one.queries, ()) if at in left]
        if same:
            found[position] = left.pop(next((at for at in same if before[at].id == one.id), same[0]))
    for position, one in enumerate(now):
        if position not in found and by_id.get(one.id) in left and not _NUMBERED.fullmatch(one.id):
            found[position] = left.pop(by_id[one.id])
    pairs = [(now[position], found[position]) for position in sorted(found)]
    new = tuple(one.id for position, one in enumerate(now) if position not in found)
    return pairs, new, tuple(one.id for one in left.values())


def judge_drops(limits: Mapping[str, float], comparison: Comparison) -> list[Verdict]:
    """Return for each metric whether its mean dropped by no more than its limit.

    Metrics that no case of both checks has are left out.
    """
    verdicts = []
    for metric, limit in limits.items():
        if metric in comparison.differences:
            gate = Gate("max_drop", metric, limit)
            drop = -comparison.differences[metric].mean
            verdicts.append(Verdict(gate, drop, drop <= limit + TOLERANCE))
    return verdicts


def _find_change(now: Measured, before: Measured) -> Change | None:
    for metric in ("recall", SILENT):
        if metric in now.measures and metric in before.measures:
            change = Change(now.id, now.queries, metric, before.measures[metric], now.measures[metric])
            return change if abs(change.after - change.before) > TOLERANCE else None
    return None
