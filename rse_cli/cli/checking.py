"""What ``rse check`` does: read cases, find what they expect, answer, judge, report."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from rse_cli.cli.case_files import ask_cases, mention_doubts, mention_intruder, read_expected, say_faults
from rse_cli.cli.checked import Checked, describe_check_json
from rse_cli.cli.limits import check_limits, make_gates, parse_drops
from rse_cli.cli.output import dump_json, say, write_bytes, write_result
from rse_cli.cli.requesting import Plan, Refining, plan_requests
from rse_cli.cli.wiring import open_index, read_settings
from rse_cli.core.cases import CaseFault, ResolvedCase
from rse_cli.core.comparison import Comparison, Measured, compare_checks, judge_drops, match_cases
from rse_cli.core.gates import Gate, average_measures, collect_failures, judge_each, judge_means
from rse_cli.dataclass import dataclass
from rse_cli.errors import RseError, UsageError
from rse_cli.pipeline.check import CaseResult
from rse_cli.timings import stage


@dataclass(frozen=True, slots=True)
class CheckFlags:
    """The command line of a check.

    Parameters
    ----------
    cases : str or None
        The file of cases.
    store : str or None
        ``--store``.
    settings : mapping
        Flags that are settings too, None where not given.
    baseline : str or None
        The JSON of a former check.
    max_drop : tuple of str
        ``metric=number`` each.
    rerank : str or None
        A cross-encoder.
    as_json, github : bool
        How to report.
    junit : str or None
        Where JUnit XML goes.
    """

    cases: str | None
    store: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    baseline: str | None = None
    max_drop: tuple[str, ...] = ()
    rerank: str | None = None
    as_json: bool = False
    junit: str | None = None
    github: bool = False


def run_check(flags: CheckFlags) -> int:
    """Check, report, and return the exit code: 0 if all gates hold, 1 if one doesn't, 2 for faults in the cases.

    Raises
    ------
    RseError
        If the check can't be carried out; nothing is printed on stdout then.
    """
    gc.enable()
    if flags.cases is None:
        raise UsageError("give a file of cases, or --init to write a first one: rse check cases.yaml")
    if flags.junit is not None:
        from rse_cli.cli.junit import remove_report

        remove_report(Path(flags.junit))
    index = open_index(flags.store)
    settings = read_settings(index.root, flags.settings)
    drops = parse_drops(flags.max_drop, has_baseline=flags.baseline is not None)
    gates = make_gates(settings, drops)
    plan = plan_requests(settings, Refining(rerank=flags.rerank))
    snapshot = index.store.snapshot()
    cases, faults = read_expected(Path(flags.cases), snapshot)
    if faults:
        return _report_faults(flags, faults)
    before = _read_baseline(flags, cases)
    check_limits(gates, drops, cases)
    is_told = mention_doubts(index, snapshot, flags.cases)
    results = ask_cases(cases, index, snapshot, plan)
    if not is_told:
        mention_intruder(results)
    checked = judge(flags, plan, index.manifest.model.name, tuple(results), gates, drops, before)
    report(checked, flags)
    return 0 if checked.passed else 1


def _report_faults(flags: CheckFlags, faults: Sequence[CaseFault]) -> int:
    """Name every fault on stderr and return the exit code."""
    say_faults(str(flags.cases), faults)
    if flags.github:
        from rse_cli.cli.github import annotate_faults, render_faults, write_summary

        write_summary(render_faults(str(flags.cases), faults), os.environ)
        # GitHub reads commands from both streams, and stdout is empty after an error.
        say(annotate_faults(str(flags.cases), faults).rstrip("\n"))
    return 2


def _read_baseline(flags: CheckFlags, cases: Sequence[ResolvedCase]) -> list[Measured] | None:
    if flags.baseline is None:
        return None
    from rse_cli.cli.baseline import read_baseline

    before = read_baseline(flags.baseline)
    if not match_cases([Measured(one.case.id, one.case.queries, {}) for one in cases], before)[0]:
        raise UsageError(f"{flags.baseline} has none of the cases in {flags.cases}")
    return before


def judge(
    flags: CheckFlags,
    plan: Plan,
    model: str,
    results: tuple[CaseResult, ...],
    gates: Sequence[Gate],
    drops: Mapping[str, float],
    before: Sequence[Measured] | None,
) -> Checked:
    """Return means, verdicts and comparison of what was found."""
    each = plan.settings.check["each"]
    by_id = {result.case.id: result.measures for result in results}
    means = average_measures(list(by_id.values()))
    verdicts = judge_each(gates, by_id) if each else judge_means(gates, means)
    comparison: Comparison | None = None
    if before is not None:
        now = [Measured(one.case.id, one.case.queries, one.measures) for one in results]
        comparison = compare_checks(now, before)
        verdicts = [*verdicts, *judge_drops(drops, comparison)]
    return Checked(
        cases_file=str(flags.cases),
        method=plan.method,
        preset=plan.preset,
        params=plan.params.to_dict(),
        model=model,
        each=each,
        results=results,
        means=means,
        verdicts=tuple(verdicts),
        failures=collect_failures(verdicts, by_id, each=each),
        comparison=comparison,
    )


@stage("render")
def report(checked: Checked, flags: CheckFlags) -> None:
    """Write the files asked for, then print: a file that can't be written leaves stdout empty."""
    import sys

    if flags.junit is not None:
        from rse_cli.cli.junit import build_junit

        try:
            Path(flags.junit).write_bytes(build_junit(checked))
        except OSError as fault:
            raise RseError(f"can't write {flags.junit}: {fault.strerror or fault}") from fault
    annotations = ""
    if flags.github:
        from rse_cli.cli.github import annotate_check, render_summary, write_summary

        write_summary(render_summary(checked), os.environ)
        annotations = annotate_check(checked)
    if flags.as_json:
        write_bytes(dump_json(describe_check_json(checked)))
        if annotations:
            say(annotations.rstrip("\n"))
        return
    from rse_cli.cli.check_report import render_check
    from rse_cli.cli.output import has_colour, is_terminal
    from rse_cli.cli.render import measure_width

    width = measure_width() if is_terminal(sys.stdout) else None
    write_result(render_check(checked, colour=has_colour(sys.stdout), width=width) + annotations)


def run_init(flags: CheckFlags) -> int:
    """Write a first file of cases and return the exit code: 1 if no heading of the index finds its section."""
    from rse_cli.cli.generating import write_generated_cases

    gc.enable()
    index = open_index(flags.store)
    plan = plan_requests(read_settings(index.root, flags.settings), Refining(rerank=flags.rerank))
    return write_generated_cases(index, plan, Path(flags.cases or "cases.yaml"), as_json=flags.as_json)
