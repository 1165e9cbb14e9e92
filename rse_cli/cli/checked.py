"""The outcome of a check: what all its reports are made of, and its JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rse_cli.cli.render import locate_segment
from rse_cli.core.comparison import Comparison
from rse_cli.core.gates import Verdict
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.check import CaseResult
from rse_cli.pipeline.delivery import Segment

SCHEMA_VERSION = 1

SEGMENT_FIELDS = (
    "path", "section", "score", "start_chunk", "end_chunk", "start_char", "end_char", "start_line", "end_line",
    "start_page", "end_page",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checked:
    """A check that was carried out.

    Parameters
    ----------
    cases_file : str
        As given.
    method, preset : str, str or None
        How the cases were answered.
    params : mapping
        Of the method.
    model : str
        The model of the index.
    each : bool
        Whether every case is held to the limits.
    results : tuple of CaseResult
        In the order of the file.
    means : mapping of str to float
        By metric.
    verdicts : tuple of Verdict
        In the order that gates were given in, those on the baseline last.
    failures : mapping of str to list of str
        By id the cases that fail, with the reasons.
    comparison : Comparison or None
        With the baseline.
    """

    cases_file: str
    method: str
    preset: str | None
    params: Mapping[str, Any]
    model: str
    each: bool
    results: tuple[CaseResult, ...]
    means: Mapping[str, float]
    verdicts: tuple[Verdict, ...]
    failures: Mapping[str, list[str]]
    comparison: Comparison | None = None

    @property
    def passed(self) -> bool:
        """Whether every gate holds."""
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def label(self) -> str:
        """Method and preset as they are printed."""
        return self.method if self.preset is None else f"{self.method}/{self.preset}"


def sort_worst_first(checked: Checked) -> list[CaseResult]:
    """Return the results, failed ones first, then by recall and precision; ties in the order of the file."""

    def badness(result: CaseResult) -> tuple[bool, float, float, float]:
        measures = result.measures
        recall = measures.get("recall", measures["passed"])
        return result.case.id not in checked.failures, measures["passed"], recall, measures.get("precision", 1.0)

    return sorted(checked.results, key=badness)


def describe_instead(result: CaseResult) -> str:
    """Return what came in place of what was expected, or an empty text where that came."""
    if result.measures["passed"] == 1:
        return ""
    if result.segments:
        more = len(result.segments) - 1
        return locate_segment(result.segments[0]) + (f" and {more} more" if more else "")
    if result.nearest_miss is None:
        return "nothing"
    return f"nothing; nearest miss {locate_segment(result.nearest_miss)}, confidence {result.confidence:.2f}"


def describe_check_json(checked: Checked) -> dict[str, Any]:
    """Return the document of ``--json``, which ``--baseline`` reads. Fields are added, never renamed."""
    return {
        "schema_version": SCHEMA_VERSION,
        "cases_file": checked.cases_file,
        "passed": checked.passed,
        "method": checked.method,
        "preset": checked.preset,
        "params": dict(checked.params),
        "model": checked.model,
        "each": checked.each,
        "means": {name: round(value, 9) for name, value in checked.means.items()},
        "gates": [
            {
                "bound": verdict.gate.bound,
                "metric": verdict.gate.metric,
                "limit": verdict.gate.limit,
                "value": round(verdict.value, 9),
                "passed": verdict.passed,
                "failures": list(verdict.failures),
            }
            for verdict in checked.verdicts
        ],
        "baseline": None if checked.comparison is None else _describe_comparison(checked.comparison),
        "cases": [_describe_result(result, checked.failures.get(result.case.id, ())) for result in checked.results],
    }


def _describe_result(result: CaseResult, reasons: Sequence[str]) -> dict[str, Any]:
    case, miss = result.case, result.nearest_miss
    return {
        "id": case.id,
        "line": case.line,
        "query": list(case.queries),
        "generated": case.generated,
        "passed": not reasons,
        "reasons": list(reasons),
        "found": bool(result.segments),
        "metrics": {name: round(value, 9) for name, value in result.measures.items()},
        "confidence": round(result.confidence, 6),
        "truncated": result.truncated,
        "expected": [asdict(span) for span in result.expected],
        "segments": [_describe_segment(segment) for segment in result.segments],
        "nearest_miss": None if miss is None else _describe_segment(miss),
    }


def _describe_segment(segment: Segment) -> dict[str, Any]:
    fields = {name: getattr(segment, name) for name in SEGMENT_FIELDS}
    return fields | {"score": round(segment.score, 9)}


def _describe_comparison(comparison: Comparison) -> dict[str, Any]:
    changes = {
        name: [
            {"id": one.id, "metric": one.metric, "before": one.before, "after": one.after}
            for one in getattr(comparison, name)
        ]
        for name in ("better", "worse")
    }
    return changes | {
        "equal": comparison.n_equal,
        "new": list(comparison.new),
        "gone": list(comparison.gone),
        "differences": {
            name: {
                "mean": round(one.mean, 9),
                "low": round(one.low, 9),
                "high": round(one.high, 9),
                "cases": one.n_cases,
            }
            for name, one in comparison.differences.items()
        },
    }
