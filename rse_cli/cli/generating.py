"""What ``rse check --init`` writes: a file of cases made from the headings of the index."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rse_cli.adapters.cases import is_yaml
from rse_cli.cli.output import dump_json, make_visible_line, say, write_bytes, write_result
from rse_cli.cli.wiring import Index
from rse_cli.core.cases import Case, Expectation
from rse_cli.errors import UsageError
from rse_cli.pipeline.generated_cases import generate_cases

MOST_CASES = 200
"""What can be read through in an hour, to keep what people would ask and to reword it as they would."""

SCHEMA_VERSION = 1

_HEAD = """\
# Made by `rse check --init` from the headings of the index: each asks for a heading and expects its section.
# People seldom ask in the words of a heading, so these cases flatter: reword them as they would be asked, drop
# `generated: true` from those, and replace `lines`, which shift when the document changes, by a quote (`text: …`).
"""

_UNWRITABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What JSON leaves as it is and YAML doesn't allow, or takes for a line end."""


def write_generated_cases(index: Index, place: Path, *, as_json: bool) -> int:
    """Write cases for the headings of an index, YAML or by its name JSON lines, to a file that must not exist.

    Raises
    ------
    UsageError
        If the file exists or can't be written.
    """
    cases = generate_cases(index.store.snapshot(), MOST_CASES)
    if not cases:
        say("rse: no heading in the index has a text under it: write cases by hand")
        return 1
    render = render_yaml if is_yaml(place) else render_lines
    try:
        with place.open("x", encoding="utf-8", newline="\n") as file:
            file.write(render(cases))
    except FileExistsError as fault:
        raise UsageError(f"{place} exists and may hold cases: give another name, or remove it") from fault
    except OSError as fault:
        raise UsageError(f"can't write {place}: {fault.strerror or fault}") from fault
    documents = len({one.path for case in cases for one in case.expect})
    if as_json:
        counts = {"file": str(place), "cases": len(cases), "documents": documents}
        write_bytes(dump_json({"schema_version": SCHEMA_VERSION, **counts}))
    else:
        write_result(f"{make_visible_line(str(place))}: {len(cases):,} cases about {documents:,} documents\n")
    if place.resolve().is_relative_to(index.root):
        say("rse: keep it out of the index, where it would match its own queries: name it in .rseignore")
    return 0


def render_yaml(cases: Sequence[Case]) -> str:
    """Return cases as YAML, texts in double quotes."""
    lines = [_HEAD]
    for case in cases:
        lines += [f"- id: {_quote(case.id)}", f"  query: {_quote(case.queries[0])}", "  expect:"]
        for one in case.expect:
            first, *others = _describe(one).items()
            lines.append(f"    - {first[0]}: {_quote(first[1])}")
            lines += [f"      {key}: {_quote(value)}" for key, value in others]
        lines += ["  generated: true", ""]
    return "\n".join(lines[:-1]) + "\n"


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
