"""YAML to values with lines, from the parser's events: nothing is constructed but texts, numbers and lists of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rse_cli.core.case_rules import Located
from rse_cli.core.cases import CaseFault

MAX_DEPTH = 16
"""A case is 5 deep. A guard against files made to exhaust the stack."""


class _RefusalError(Exception):
    """The file can't be read on from here."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def parse_yaml(text: str, faults: list[CaseFault]) -> Iterator[Located]:
    """Yield the items of the one list that a YAML file holds, while it is read.

    Aliases, anchors and tags are refused: a case needs none, and ten lines of aliases can stand for gigabytes.

    Parameters
    ----------
    text : str
        The file.
    faults : list of CaseFault
        Gets what stops the reading, and keys given twice.
    """
    import yaml

    # The parser in C is ten times as fast; distributions without it have the one in Python.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from _read_items(yaml.parse(text, Loader=loader), faults)
    except _RefusalError as fault:
        faults.append(CaseFault(fault.line, str(fault)))
    except yaml.reader.ReaderError:
        # The parsers count in bytes or in characters, and name the culprit each in its own way.
        found = yaml.reader.Reader.NON_PRINTABLE.search(text)
        line = text.count("\n", 0, found.start()) + 1 if found else 1
        name = f": U+{ord(found[0]):04X}" if found else ""
        faults.append(CaseFault(line, f"a character that YAML doesn't allow{name}"))
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        faults.append(CaseFault(mark.line + 1 if mark else 1, f"not YAML: {fault.problem or fault.context}"))
    except yaml.YAMLError as fault:
        faults.append(CaseFault(1, f"not YAML: {' '.join(str(fault).split())}"))


def _read_items(events: Iterator[Any], faults: list[CaseFault]) -> Iterator[Located]:
    import yaml

    n_documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            n_documents += 1
            if n_documents > 1:
                raise _RefusalError(_find_line(event), "a second YAML document (---): put all cases into one list")
        elif isinstance(event, yaml.SequenceStartEvent):
            _refuse_extras(event)
            for item in events:
                if isinstance(item, yaml.SequenceEndEvent):
                    break
                yield _build(item, events, faults, depth=1)
        elif isinstance(event, yaml.NodeEvent) and getattr(event, "value", None) != "":
            raise _RefusalError(_find_line(event), "the file must be a list of cases: each begins with `- `")


def _build(event: Any, events: Iterator[Any], faults: list[CaseFault], depth: int) -> Located:
    import yaml

    line = _find_line(event)
    _refuse_extras(event)
    if isinstance(event, yaml.ScalarEvent):
        return Located(_read_scalar(event), line)
    if depth > MAX_DEPTH:
        raise _RefusalError(line, "nested too deeply")
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        for item in events:
            if isinstance(item, yaml.SequenceEndEvent):
                break
            items.append(_build(item, events, faults, depth + 1))
        return Located(items, line)
    fields: dict[str, Located] = {}
    for key in events:
        if isinstance(key, yaml.MappingEndEvent):
            break
        name, key_line = _build(key, events, faults, depth + 1).value, _find_line(key)
        value = _build(next(events), events, faults, depth + 1).value
        if not isinstance(name, str):
            name = str(name) if not isinstance(name, list | dict) else "?"
        if name in fields:
            faults.append(CaseFault(key_line, f"the key {name[:40]!r} is given twice"))
        fields[name] = Located(value, key_line)
    return Located(fields, line)


def _refuse_extras(event: Any) -> None:
    """Refuse aliases, anchors and tags."""
    import yaml

    line = _find_line(event)
    if isinstance(event, yaml.AliasEvent):
        raise _RefusalError(line, f"aliases are not read: write out what *{event.anchor} stands for")
    if event.anchor is not None:
        raise _RefusalError(line, f"anchors are not read: drop &{event.anchor}")
    if event.tag not in (None, "!"):
        raise _RefusalError(line, f"tags are not read: drop {event.tag}")


def _find_line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _read_scalar(event: Any) -> Any:
    """Return a scalar as YAML 1.1 reads it where it is a number, a boolean or nothing, else as it stands."""
    import yaml

    if not event.implicit[0]:
        return event.value
    tag = yaml.resolver.Resolver().resolve(yaml.ScalarNode, event.value, (True, False))
    kind = tag.rpartition(":")[2]
    if kind not in ("int", "float", "bool", "null"):
        return event.value
    try:
        return yaml.constructor.SafeConstructor().construct_object(yaml.ScalarNode(tag, event.value))
    except ValueError:
        # A number of thousands of digits.
        return event.value
