"""What is asked: queries from the command line, standard input, or a batch of them in a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError, describe_json_fault


@dataclass(frozen=True, slots=True)
class Asked:
    """One line of a batch, or the queries of the command line, answered together."""

    queries: tuple[str, ...]
    id: Any = None


def read_asked(texts: Sequence[str], batch: str | None) -> list[Asked]:
    """Return what is asked: the lines of a batch, or the texts together, of which ``-`` stands for standard input.

    Raises
    ------
    UsageError
        If a file can't be read, a text is empty, or lines of the batch can't be used; all of them are named.
    """
    if batch is not None:
        return parse_batch(_read_text(batch), "standard input" if batch == "-" else batch)
    texts = [_read_text("-").strip() if text == "-" else text for text in texts]
    if not all(text.strip() for text in texts):
        raise UsageError("a query is empty")
    return [Asked(tuple(map(_clean, texts)))]


def _read_text(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as fault:
        raise UsageError(f"can't read {name}: {fault.strerror or fault}") from fault
    return data.decode("utf-8-sig", "replace")


def _clean(text: str) -> str:
    """Return an argument without the surrogates that stand for bytes that aren't UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def parse_batch(text: str, name: str) -> list[Asked]:
    """Return the queries of a batch: plain lines, or JSON lines with ``query`` and an optional ``id``.

    Blank lines are passed over. A line that begins with ``{`` is JSON; a blank query there finds nothing.

    Raises
    ------
    UsageError
        Naming the file and every line that is not JSON, or without a query.
    """
    asked: list[Asked] = []
    faults: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            asked.append(Asked((line.strip(),)))
            continue
        try:
            asked.append(_parse_case(json.loads(line)))
        except json.JSONDecodeError as fault:
            faults.append(f"{name} line {number}: {describe_json_fault(fault)}")
        except ValueError as fault:
            faults.append(f"{name} line {number}: {fault}")
        except RecursionError:
            faults.append(f"{name} line {number}: nested too deeply")
    if faults:
        raise UsageError("; ".join(faults[:10]) + (f"; and {len(faults) - 10} more" if len(faults) > 10 else ""))
    if not asked:
        raise UsageError(f"{name} holds no query")
    return asked


def _parse_case(case: Any) -> Asked:
    queries = case.get("query")
    # In a file of cases a blank query is a case that finds nothing, not a reason to answer none of the others.
    blank = isinstance(queries, str) and not queries.strip()
    queries = [queries] if isinstance(queries, str) else queries
    if blank:
        queries = [""]
    elif not isinstance(queries, list) or not queries or not all(map(_says_something, queries)):
        raise ValueError("no query")
    try:
        json.dumps(case.get("id"), allow_nan=False)
    except ValueError as fault:
        raise ValueError("the id holds a number that JSON has no way to write") from fault
    return Asked(tuple(one.encode("utf-8", "replace").decode() for one in queries), case.get("id"))


def _says_something(query: Any) -> bool:
    return isinstance(query, str) and bool(query.strip())
