"""A check as lines for reading: a row a case, worst first, then totals and verdicts. Pure but for the width."""

from __future__ import annotations

from collections.abc import Iterator

from rse_cli.cli.checked import Checked, describe_instead, sort_worst_first
from rse_cli.cli.output import make_visible_line, name_count
from rse_cli.core.cases import shorten
from rse_cli.core.comparison import Change, Comparison
from rse_cli.core.gates import METRICS, TOLERANCE, Verdict, format_limit, format_value
from rse_cli.pipeline.check import CaseResult

QUERY_CHARS = 60
"""What tells a query from others; the whole of it is in the file and in --json."""

SHOWN_CHANGES = 10
"""Cases that got worse, and better, that are named; --json names all."""

DIFFERENCES = ("recall", "precision", "hit", "chars", "silent", "passed")
"""Metrics whose difference from the baseline is printed, beside those that are gated."""

_COLOURS = {"ok": 32, "warn": 33, "FAIL": 31}


def render_check(checked: Checked, *, colour: bool = False, width: int | None = None) -> str:
    """Return the whole report.

    Parameters
    ----------
    checked : Checked
        The check.
    colour : bool
        Whether verdicts are coloured.
    width : int or None
        Cells after which rows are cut; None leaves them whole.
    """
    lines = ["      found  recall  precision  chars  case"]
    lines += [_render_row(result, checked, colour, width) for result in sort_worst_first(checked)]
    lines += ["", *render_totals(checked)]
    if checked.comparison is not None:
        lines += ["", *_render_comparison(checked.comparison, [one.gate.metric for one in checked.verdicts])]
    lines += ["", *(_render_verdict(verdict, checked.each, colour) for verdict in checked.verdicts)]
    return "\n".join(lines) + "\n"


def _render_row(result: CaseResult, checked: Checked, colour: bool, width: int | None) -> str:
    measures = result.measures
    numbers = [f"{measures[name]:.2f}" if name in measures else "–" for name in ("recall", "precision")]
    chars = sum(one.end_char - one.start_char for one in result.segments)
    # Of a case that expects nothing it says whether anything was found.
    found = "yes" if measures.get("hit", float(bool(result.segments))) else "no"
    row = f"{found:<5}  {numbers[0]:>6}  {numbers[1]:>9}  {chars:>5,}  {describe_case(result)}"
    instead = describe_instead(result)
    if instead:
        row += f"  instead: {instead}"
    # Reasons beyond "not found", which the row shows: limits that the case misses.
    others = [one for one in checked.failures.get(result.case.id, ()) if "found" not in one]
    if others:
        row += f"  [{'; '.join(others)}]"
    if width is not None:
        row = _cut(row, width - 6)
    word = "ok" if result.case.id not in checked.failures else "warn" if checked.passed else "FAIL"
    return f"{_mark(word, colour)}  {row}".rstrip()


def describe_case(result: CaseResult) -> str:
    """Return the id of a case and the head of its query."""
    case = result.case
    query = make_visible_line(shorten(" + ".join(case.queries), QUERY_CHARS))
    return f"{make_visible_line(shorten(case.id, QUERY_CHARS))}: {query}{' (generated)' if case.generated else ''}"


def _mark(word: str, colour: bool) -> str:
    return f"\x1b[{_COLOURS[word]}m{word:<4}\x1b[0m" if colour else f"{word:<4}"


def _cut(text: str, width: int) -> str:
    """Return a text of at most `width` cells."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def render_totals(checked: Checked) -> list[str]:
    """Return the lines that sum a check up: what was found, and the mean of every metric."""
    means, results = checked.means, checked.results
    asking = [one for one in results if one.expected]
    silent = [one for one in results if not one.expected]
    generated = sum(one.case.generated for one in results)
    parts = [name_count(len(results), "case")]
    if asking:
        parts.append(f"found {sum(one.measures['hit'] == 1 for one in asking):,} of {len(asking):,}")
    if silent:
        parts.append(f"rightly silent {sum(one.measures['silent'] == 1 for one in silent):,} of {len(silent):,}")
    if generated:
        parts.append(f"generated {generated:,}")
    truncated = sum(one.truncated for one in results)
    if truncated:
        parts.append(f"truncated {truncated:,}")
    lines = [" · ".join([*parts, checked.label])]
    if asking:
        lines.append(" · ".join(f"{name} {format_value(means[name])}" for name in METRICS))
    return lines


def _render_verdict(verdict: Verdict, each: bool, colour: bool) -> str:
    return f"{_mark('ok' if verdict.passed else 'FAIL', colour)}  {describe_verdict(verdict, each)}"


def describe_verdict(verdict: Verdict, each: bool) -> str:
    """Return a gate with its value: ``recall 0.69, min 0.90``."""
    gate = verdict.gate
    value, limit = format_value(verdict.value, gate.limit), format_limit(gate.limit)
    if gate.bound == "max_drop" and verdict.value < -TOLERANCE:
        return f"{gate.metric} rose by {format_value(-verdict.value)}, max drop {limit}"
    if gate.bound == "max_drop":
        return f"{gate.metric} dropped by {value}, max {limit}"
    if not each:
        return f"{gate.metric} {value}, {gate.bound} {limit}"
    count = len(verdict.failures)
    missed = f"; {count:,} case{' misses' if count == 1 else 's miss'} it" if count else ""
    return f"each {gate.metric} {gate.bound} {limit}, worst {value}{missed}"


def _render_comparison(comparison: Comparison, gated: list[str]) -> Iterator[str]:
    """Yield what changed since the baseline."""
    yield (
        f"against the baseline: better {len(comparison.better):,} · worse {len(comparison.worse):,} · "
        f"equal {comparison.n_equal:,} · new {len(comparison.new):,} · gone {len(comparison.gone):,}"
    )
    for word, changes in (("worse", comparison.worse), ("better", comparison.better)):
        for change in changes[:SHOWN_CHANGES]:
            yield f"  {word:<6}  {_describe_change(change)}"
        if len(changes) > SHOWN_CHANGES:
            yield f"  {word:<6}  {len(changes) - SHOWN_CHANGES:,} more"
    for name, one in comparison.differences.items():
        if name in DIFFERENCES or name in gated:
            digits = 0 if name == "chars" else 3
            mean, low, high = (_sign(value, digits) for value in (one.mean, one.low, one.high))
            yield f"  {name} {mean} (95 % interval {low} to {high})"


def _sign(value: float, digits: int) -> str:
    """Return a difference with its sign; what rounds to zero is positive."""
    return f"{value:+z,.{digits}f}"


def _describe_change(change: Change) -> str:
    query = make_visible_line(shorten(" + ".join(change.queries), QUERY_CHARS))
    return (
        f"{make_visible_line(shorten(change.id, QUERY_CHARS))}: {query}  "
        f"{change.metric} {change.before:.2f} → {change.after:.2f}"
    )
