"""What a case may hold: values with their lines to cases, every fault noted."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Callable, Collection, Iterable
from typing import Any

from rse_cli.core.cases import Case, CaseFault, Expectation, shorten
from rse_cli.dataclass import dataclass

CASE_KEYS = ("id", "query", "expect", "generated")
EXPECTATION_KEYS = ("path", "start_char", "end_char", "text", "lines", "pages")

_NAMES = {
    type(None): "nothing",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "keys",
}


@dataclass(frozen=True, slots=True)
class Located:
    """A value of a file with the line, 1-based, where it begins.

    Parameters
    ----------
    value : object
        A text, a number, a boolean, None, a list of `Located`, or a dict of str to `Located`.
    line : int
        Of the key, for a value that has one.
    """

    value: Any
    line: int


def make_cases(values: Iterable[Located], faults: list[CaseFault]) -> list[Case]:
    """Return a case for each value that has keys; what is wrong with any of them is added to `faults`.

    A case with a fault is returned as far as it can be understood, so that what it expects is looked up all the same.

    Parameters
    ----------
    values : iterable of Located
        One a case, in the order of the file.
    faults : list of CaseFault
        Is added to.
    """
    cases: list[Case] = []
    lines: dict[str, int] = {}
    for number, value in enumerate(values, start=1):
        case = _make_case(value, number, faults)
        if case is None:
            continue
        if case.id in lines:
            faults.append(CaseFault(case.line, f"the id {case.id!r} is taken by the case in line {lines[case.id]}"))
        lines.setdefault(case.id, case.line)
        cases.append(case)
    return cases


def _make_case(value: Located, number: int, faults: list[CaseFault]) -> Case | None:
    fields = value.value
    if not isinstance(fields, dict):
        faults.append(CaseFault(value.line, f"a case has the keys {_list_names(CASE_KEYS)}, not {_describe(fields)}"))
        return None
    _note_unknown(fields, CASE_KEYS, "a case", faults)
    name = _take(fields, "id", _read_text, "a text (put it in quotes)", faults)
    generated = _take(fields, "generated", _read_flag, "true or false", faults) or False
    if "query" not in fields:
        faults.append(CaseFault(value.line, "no query"))
    queries = _take(fields, "query", _read_queries, "a text or a list of texts, none of them empty", faults) or ()
    if "expect" not in fields:
        faults.append(CaseFault(value.line, "no expect; `expect: []` says that nothing should be found"))
    entries = _take(fields, "expect", _read_list, "a list of places, empty where nothing should be found", faults) or []
    expect = [one for entry in entries for one in _make_expectations(entry, faults)]
    return Case(name or f"case-{number}", queries, tuple(expect), value.line, generated)


def _make_expectations(value: Located, faults: list[CaseFault]) -> list[Expectation]:
    """Return the expectation; of a place with a fault each way to name it that can be looked up, or its path alone."""
    fields = value.value
    if not isinstance(fields, dict):
        faults.append(
            CaseFault(value.line, f"a place has the keys {_list_names(EXPECTATION_KEYS)}, not {_describe(fields)}")
        )
        return []
    _note_unknown(fields, EXPECTATION_KEYS, "a place", faults)
    if "path" not in fields:
        faults.append(CaseFault(value.line, "a place without a path"))
    path = _take(fields, "path", _read_path, "a path relative to the root of the index", faults)
    start = _take(fields, "start_char", _read_position, "a whole number from 0", faults)
    end = _take(fields, "end_char", _read_position, "a whole number from 0", faults)
    text = _take(fields, "text", _read_text, "a text with words", faults)
    lines = _take(fields, "lines", _read_lines, "[first, last], from 1", faults)
    pages = _take(fields, "pages", _read_pages, "a list of page numbers, from 1", faults) or ()
    if ("start_char" in fields) != ("end_char" in fields):
        faults.append(CaseFault(value.line, "start_char and end_char go together"))
    elif start is not None and end is not None and end <= start:
        faults.append(CaseFault(value.line, f"end_char {end} isn't after start_char {start}"))
        start = end = None
    ways = [name for name in ("start_char", "text", "lines", "pages") if name in fields]
    if len(ways) > 1:
        faults.append(CaseFault(value.line, f"a place is named in one way, not by {' and '.join(ways)}"))
    if path is None:
        return []
    found = [Expectation(path, value.line, chars=(start, end))] if start is not None and end is not None else []
    found += [Expectation(path, value.line, text=text)] if text is not None else []
    found += [Expectation(path, value.line, lines=lines)] if lines is not None else []
    found += [Expectation(path, value.line, pages=pages)] if pages else []
    return found or [Expectation(path, value.line)]


def _take(
    fields: dict[str, Located], key: str, read: Callable[[Any], Any], expects: str, faults: list[CaseFault]
) -> Any:
    """Return what a key holds, or None if it isn't there or can't be read."""
    if key not in fields:
        return None
    try:
        return read(fields[key].value)
    except ValueError:
        faults.append(CaseFault(fields[key].line, f"{key} must be {expects}, not {_describe(fields[key].value)}"))
        return None


def _note_unknown(fields: dict[str, Located], known: Collection[str], what: str, faults: list[CaseFault]) -> None:
    for key, value in fields.items():
        if key not in known:
            near = difflib.get_close_matches(key.lower()[:100], known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"{what} has {_list_names(known)}"
            faults.append(CaseFault(value.line, f"unknown key {shorten(key, 40)!r}; {hint}"))


def _read_text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(value)
    # Half of a surrogate pair, which JSON can name, fits into no encoding.
    return value.encode("utf-8", "replace").decode()


def _read_path(value: Any) -> str:
    path = posixpath.normpath(_read_text(value))
    if path.startswith(("/", "../")) or path in (".", ".."):
        raise ValueError(value)
    return path


def _read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)
    return value


def _read_list(value: Any) -> list[Located]:
    if not isinstance(value, list):
        raise ValueError(value)
    return value


def _read_queries(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else [one.value for one in _read_list(value)]
    if not texts:
        raise ValueError(value)
    return tuple(map(_read_text, texts))


def _read_position(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(value)
    return value


def _read_numbers(value: Any) -> tuple[int, ...]:
    numbers = tuple(_read_position(one.value) for one in _read_list(value))
    if not numbers or min(numbers) < 1:
        raise ValueError(value)
    return numbers


def _read_lines(value: Any) -> tuple[int, int]:
    numbers = _read_numbers(value)
    if len(numbers) != 2 or numbers[1] < numbers[0]:
        raise ValueError(value)
    return numbers[0], numbers[1]


def _read_pages(value: Any) -> tuple[int, ...]:
    return tuple(sorted(set(_read_numbers(value))))


def _describe(value: Any) -> str:
    """Return a value as a message names it, without what it holds where that is a list or keys."""
    if isinstance(value, str):
        return repr(shorten(value, 40)) if value.strip() else "an empty text"
    if isinstance(value, list) and all(isinstance(one.value, int | float) for one in value[:5]) and value:
        return shorten(f"[{', '.join(str(one.value) for one in value[:5])}{', …' if len(value) > 5 else ''}]", 60)
    if isinstance(value, int | float):
        return str(value).lower()
    return _NAMES.get(type(value), "a value of that kind")


def _list_names(names: Collection[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}"
