"""A check on GitHub: annotations as workflow commands, and a step summary in Markdown.

The form of the commands is documented under "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rse_cli.cli.check_report import describe_verdict, render_totals
from rse_cli.cli.checked import Checked, describe_instead, sort_worst_first
from rse_cli.cli.output import make_visible_line
from rse_cli.core.cases import CaseFault, shorten
from rse_cli.errors import RseError

MOST_ANNOTATIONS = 10
"""GitHub shows so many of a step, and drops the rest without a word."""

MOST_ROWS = 100
"""Cases in the step summary, which may have 1 MiB."""

_QUERY_CHARS = 200


def annotate_check(checked: Checked) -> str:
    """Return an annotation for each case that fails, worst first: errors if the check failed, else warnings."""
    level = "warning" if checked.passed else "error"
    found = [
        (
            result.case.line,
            f"{result.case.id}: {_quote(result.case.queries)}: {'; '.join(checked.failures[result.case.id])}"
            + (f"; instead: {instead}" if (instead := describe_instead(result)) else ""),
        )
        for result in sort_worst_first(checked)
        if result.case.id in checked.failures
    ]
    # No case to blame: the means are too low, though all are found.
    if not found:
        found = [(1, describe_verdict(one, checked.each)) for one in checked.verdicts if not one.passed]
    return "".join(_annotate(level, checked.cases_file, found))


def annotate_faults(cases_file: str, faults: Sequence[CaseFault]) -> str:
    """Return an annotation for each fault in a file of cases."""
    return "".join(_annotate("error", cases_file, [(fault.line, fault.message) for fault in faults]))


def _annotate(level: str, cases_file: str, found: Sequence[tuple[int, str]]) -> Iterator[str]:
    file = escape_property(locate_in_workspace(cases_file, os.environ))
    for line, message in found[:MOST_ANNOTATIONS]:
        yield f"::{level} file={file},line={line},title=rse check::{escape_data(make_visible_line(message))}\n"
    if len(found) > MOST_ANNOTATIONS:
        yield f"{len(found) - MOST_ANNOTATIONS:,} more\n"


def escape_data(text: str) -> str:
    r"""Return the message of a workflow command.

    Examples
    --------
    >>> escape_data("50 %\nof it")
    '50 %25%0Aof it'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Return a property of a workflow command.

    Examples
    --------
    >>> escape_property("a,b:c.yaml")
    'a%2Cb%3Ac.yaml'
    """
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def locate_in_workspace(path: str, environ: Mapping[str, str]) -> str:
    """Return a path as annotations name files: relative to the checked out repository, where it lies in it."""
    workspace = environ.get("GITHUB_WORKSPACE")
    place = os.path.realpath(path)
    base = os.path.realpath(workspace) if workspace else str(Path.cwd())
    return os.path.relpath(place, base) if Path(place).is_relative_to(base) else path


def write_summary(text: str, environ: Mapping[str, str]) -> None:
    """Add Markdown to the step's summary, if there is one.

    Raises
    ------
    RseError
        If it can't be written.
    """
    place = environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    try:
        with Path(place).open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as fault:
        raise RseError(f"can't write the step summary {place}: {fault.strerror or fault}") from fault


def render_faults(cases_file: str, faults: Sequence[CaseFault]) -> str:
    """Return the faults of a file of cases in Markdown."""
    lines = [f"### rse check could not run: {_escape_markdown(cases_file)}", ""]
    lines += [f"- line {fault.line}: {_escape_markdown(fault.message)}" for fault in faults[:MOST_ROWS]]
    if len(faults) > MOST_ROWS:
        lines.append(f"- {len(faults) - MOST_ROWS:,} more")
    return "\n".join([*lines, ""])


def render_summary(checked: Checked) -> str:
    """Return the check in Markdown: verdicts, totals, and a table of the cases that fail, worst first."""
    state = "passed" if checked.passed else "failed"
    lines = [f"### rse check {state}: {_escape_markdown(checked.cases_file)}", ""]
    lines += [
        f"- {'✅' if verdict.passed else '❌'} {_escape_markdown(describe_verdict(verdict, checked.each))}"
        for verdict in checked.verdicts
    ]
    lines += ["", *(f"{_escape_markdown(line)}  " for line in render_totals(checked)), ""]
    failed = [result for result in sort_worst_first(checked) if result.case.id in checked.failures]
    if failed:
        lines += ["| line | case | query | why | instead |", "|---|---|---|---|---|"]
    for result in failed[:MOST_ROWS]:
        case = result.case
        cells = (
            str(case.line),
            case.id,
            shorten(" + ".join(case.queries), _QUERY_CHARS),
            "; ".join(checked.failures[case.id]),
            describe_instead(result),
        )
        lines.append(f"| {' | '.join(map(_escape_markdown, cells))} |")
    if len(failed) > MOST_ROWS:
        lines += ["", f"{len(failed) - MOST_ROWS:,} more"]
    return "\n".join(lines) + "\n\n"


def _quote(queries: Sequence[str]) -> str:
    return f"“{shorten(' + '.join(queries), _QUERY_CHARS)}”"


def _escape_markdown(text: str) -> str:
    """Return `text` on one line, so that nothing in it is markup, a link, a mention or HTML."""
    shown = make_visible_line(text[:2_000])
    return "".join(f"&#{ord(one)};" if one in "\\`*_[]<>|~&@#$" else one for one in shown)
