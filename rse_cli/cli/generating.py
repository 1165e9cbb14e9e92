"""What ``rse check --init`` writes: a file of cases made from the headings of the index."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rse_cli.adapters.cases import is_yaml
from rse_cli.cli.case_files import ask_cases
from rse_cli.cli.output import dump_json, make_visible_line, name_count, say, write_bytes, write_result
from rse_cli.cli.requesting import Plan
from rse_cli.cli.wiring import Index
from rse_cli.core.cases import Case, Expectation, shorten
from rse_cli.core.gates import PASSED, average_measures, format_value
from rse_cli.errors import UsageError
from rse_cli.pipeline.check import CaseResult
from rse_cli.pipeline.expectations import find_expected
from rse_cli.pipeline.generated_cases import generate_cases

MOST_CASES = 200
"""What can be read through in an hour, to keep what people would ask and to reword it as they would."""

SCHEMA_VERSION = 1

_HEAD = """\
# Made by `rse check --init` from the headings of the index: each asks for a heading and expects its section.
# People seldom ask in the words of a heading, so these cases flatter: reword them as they would be asked, drop
# `generated: true` from those, and replace `lines`, which shift when the document changes, by a quote (`text: …`).
"""

_MISSED = """\
# Not found by {label} when this file was made: reword each as it would be asked, see why by `rse inspect`,
# or have the document say what its heading promises; then take its `# ` away.
#"""

SHOWN_MISSED = 10
"""Headings that are named on stderr; YAML and --json hold all."""

_UNWRITABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What JSON leaves as it is and YAML doesn't allow, or takes for a line end."""


def write_generated_cases(index: Index, plan: Plan, place: Path, *, as_json: bool) -> int:
    """Write cases for the headings of an index, YAML or by its name JSON lines, to a file that must not exist.

    They are asked as `plan` says, so that the file passes as it is: those that don't find their section are named, and
    stand in YAML as comments.

    Raises
    ------
    UsageError
        If the file exists or can't be written.
    """
    # Before the work; opening it excludes another writer.
    if os.path.lexists(place):
        raise _refuse(place)
    snapshot = index.store.snapshot()
    resolved, _ = find_expected(snapshot, generate_cases(snapshot, MOST_CASES))
    cases = [one for one in resolved if one.spans]
    if not cases:
        say("rse: no heading in the index has a text under it: write cases by hand")
        return 1
    results = ask_cases(cases, index, snapshot, plan)
    found = [one for one in results if one.measures[PASSED] == 1]
    missed = [one.case for one in results if one.measures[PASSED] < 1]
    if found:
        _write(place, [one.case for one in found], missed, plan.label)
        _report(place, found, missed, plan.label, as_json=as_json)
        if place.resolve().is_relative_to(index.root):
            say("rse: keep it out of the index, where it would match its own queries: name it in .rseignore")
    if missed:
        _name_missed(missed, plan.label, "comments" if found and is_yaml(place) else "")
    return 0 if found else 1


def _write(place: Path, found: Sequence[Case], missed: Sequence[Case], label: str) -> None:
    text = render_yaml(found, missed, label) if is_yaml(place) else render_lines(found)
    try:
        with place.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError as fault:
        raise _refuse(place) from fault
    except OSError as fault:
        raise UsageError(f"can't write {place}: {fault.strerror or fault}") from fault


def _refuse(place: Path) -> UsageError:
    return UsageError(f"{place} exists and may hold cases: give another name, or remove it")


def _report(place: Path, found: Sequence[CaseResult], missed: Sequence[Case], label: str, *, as_json: bool) -> None:
    """Print what was written, with the means from which limits can be chosen."""
    documents = len({one.path for result in found for one in result.case.expect})
    means = average_measures([one.measures for one in found])
    if as_json:
        counts = {"file": str(place), "cases": len(found), "documents": documents}
        more = {"means": {name: round(value, 9) for name, value in means.items()}}
        left_out = [{"query": one.queries[0], "expect": [_describe(each) for each in one.expect]} for one in missed]
        write_bytes(dump_json({"schema_version": SCHEMA_VERSION, **counts, **more, "not_found": left_out}))
        return
    shown = " · ".join(f"{name} {format_value(means[name])}" for name in ("recall", "precision", "chars"))
    write_result(
        f"{make_visible_line(str(place))}: {name_count(len(found), 'case')} about {name_count(documents, 'document')}, "
        f"all found by {label} ({shown})\n"
    )


def _name_missed(missed: Sequence[Case], label: str, where: str) -> None:
    """Say which headings don't find their section, so that nobody takes the file for all there is."""
    one_alone = len(missed) == 1
    who = "1 heading doesn't find its section" if one_alone else f"{len(missed):,} headings don't find their sections"
    them = "it" if one_alone else "them"
    kept = f"; the file holds {them} as {where}" if where else f", and nothing was written of {them}"
    say(f"rse: {who} by {label}{kept}:")
    for one in missed[:SHOWN_MISSED]:
        say(f"  {make_visible_line(f'{_name_place(one.expect[0])}: {shorten(one.queries[0], 80)}')}")
    if len(missed) > SHOWN_MISSED:
        say(f"  {len(missed) - SHOWN_MISSED:,} more")


def _name_place(one: Expectation) -> str:
    return f"{one.path}:{one.lines[0]}-{one.lines[1]}" if one.lines else one.path


def render_yaml(cases: Sequence[Case], missed: Sequence[Case] = (), label: str = "") -> str:
    """Return cases as YAML, texts in double quotes, and as comments those that don't find their section."""
    lines = [_HEAD, *_render_cases(cases)]
    if missed:
        lines += [_MISSED.format(label=label)]
        lines += [f"# {line}".rstrip() for line in _render_cases(missed)]
    return "\n".join(lines[:-1]) + "\n"


def _render_cases(cases: Sequence[Case]) -> Iterator[str]:
    for case in cases:
        yield from (f"- id: {_quote(case.id)}", f"  query: {_quote(case.queries[0])}", "  expect:")
        for one in case.expect:
            first, *others = _describe(one).items()
            yield f"    - {first[0]}: {_quote(first[1])}"
            yield from (f"      {key}: {_quote(value)}" for key, value in others)
        yield from ("  generated: true", "")


def render_lines(cases: Sequence[Case]) -> str:
    """Return cases as JSON lines."""
    documents = [
        {"id": case.id, "query": case.queries[0], "expect": [_describe(one) for one in case.expect], "generated": True}
        for case in cases
    ]
    return "".join(f"{_quote(document)}\n" for document in documents)


def _describe(one: Expectation) -> dict[str, Any]:
    if one.lines is not None:
        return {"path": one.path, "lines": list(one.lines)}
    start, end = one.chars or (0, 0)
    return {"path": one.path, "start_char": start, "end_char": end}


def _quote(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _UNWRITABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
