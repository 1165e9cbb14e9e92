"""Files of cases: JSON lines or YAML, read without trusting them, every fault with its line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rse_cli.core.case_rules import Located, make_cases
from rse_cli.core.cases import Case, CaseFault, sort_faults
from rse_cli.errors import CasesError, UsageError, describe_json_fault

MAX_FILE_BYTES = 64_000_000
"""5,000 queries of 10,000 characters are 50 MB; no file written by hand comes near."""

MAX_CASES = 100_000
"""A day's work at a second each: a longer file is a mistake, and would take a gigabyte in memory."""


def read_cases(path: Path) -> list[Case]:
    """Read a file of cases: YAML if its name says so or it doesn't begin with ``{``, else JSON lines.

    Raises
    ------
    UsageError
        If the file can't be read at all.
    CasesError
        With every fault in it.
    """
    cases, faults = scan_cases(path)
    if faults:
        raise CasesError([(fault.line, fault.message) for fault in faults], str(path))
    return cases


def scan_cases(path: Path) -> tuple[list[Case], list[CaseFault]]:
    """Return the cases of a file as far as they can be understood, and every fault in it, in order of lines.

    Raises
    ------
    UsageError
        If the file can't be read at all.
    """
    faults: list[CaseFault] = []
    try:
        text = _read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = fault.object.count(b"\n", 0, fault.start) + 1
        return [], [CaseFault(line, "not UTF-8")]
    if is_yaml(path, text):
        from rse_cli.adapters.yaml_cases import parse_yaml

        values = parse_yaml(text, faults)
    else:
        values = _parse_lines(text, faults)
    cases = make_cases(_limit(values, faults), faults)
    if not cases and not faults:
        faults.append(CaseFault(1, "no cases"))
    return cases, sort_faults(faults)


def is_yaml(path: Path, text: str = "") -> bool:
    """Whether a file of cases is YAML: by its name, else by how its text begins."""
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return True
    return suffix not in (".jsonl", ".ndjson") and text.lstrip()[:1] != "{"


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as fault:
        raise UsageError(f"can't read {path}: {fault.strerror or fault}") from fault
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{path} has more than {MAX_FILE_BYTES // 1_000_000} MB: split it")
    return data


def _limit(values: Iterator[Located], faults: list[CaseFault]) -> Iterator[Located]:
    for number, value in enumerate(values):
        if number == MAX_CASES:
            faults.append(CaseFault(value.line, f"more than {MAX_CASES:,} cases: split the file"))
            return
        yield value


def _parse_lines(text: str, faults: list[CaseFault]) -> Iterator[Located]:
    """Yield the value of each line that isn't blank; a line that is no JSON is a fault."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield _locate(json.loads(line, object_pairs_hook=_make_object, parse_constant=_refuse), number)
        except json.JSONDecodeError as fault:
            faults.append(CaseFault(number, describe_json_fault(fault)))
        except RecursionError:
            faults.append(CaseFault(number, "nested too deeply"))
        except ValueError as fault:
            faults.append(CaseFault(number, f"not JSON: {fault}"))


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for at, name in enumerate(names) if name in names[:at])
        raise ValueError(f"the key {double[:40]!r} is given twice")
    return fields


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number in JSON")


def _locate(value: Any, line: int) -> Located:
    if isinstance(value, list):
        return Located([_locate(one, line) for one in value], line)
    if isinstance(value, dict):
        return Located({name: _locate(one, line) for name, one in value.items()}, line)
    return Located(value, line)
