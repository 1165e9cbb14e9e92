"""CSV, JSON lines and JSON: verbatim, every record whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rse_cli.adapters.readers.decode import decode
from rse_cli.adapters.readers.plain import Line, iterate_lines
from rse_cli.core.models import Document

_DELIMITERS = ",;\t|"

_LONGEST_RECORD = 100
"""Lines that one quoted field may go over; a quote that stays open longer is a stray one."""


def read_csv(path: Path, data: bytes) -> Document:
    """Read comma- or otherwise separated values: each record is one atom, its line end included.

    Parameters
    ----------
    path : Path
        ``.tsv`` and ``.tab`` are separated by tabs; for others the header row tells.
    data : bytes
        The file.

    Returns
    -------
    Document
        Verbatim, without title and headings.
    """
    text = decode(data)
    delimiter = "\t" if path.suffix.lower() in {".tsv", ".tab"} else guess_delimiter(text)
    return Document(text=text, atoms=tuple(iterate_records(text, delimiter)), verbatim=True)


def read_jsonl(path: Path, data: bytes) -> Document:  # noqa: ARG001
    """Read JSON lines: each line that isn't blank is one atom. The JSON itself is not parsed."""
    text = decode(data)
    atoms = ((start, after) for start, end, after in iterate_lines(text) if not _is_blank(text, start, end))
    return Document(text=text, atoms=tuple(atoms), verbatim=True)


def read_json(path: Path, data: bytes) -> Document:  # noqa: ARG001
    """Read JSON as the text that it is."""
    return Document(text=decode(data), verbatim=True)


def guess_delimiter(text: str) -> str:
    r"""Return the delimiter that is most frequent outside quotes in the first line of `text` that isn't blank.

    Examples
    --------
    >>> guess_delimiter('name;"price, net";unit\n1,5;2,5;3,5\n'), guess_delimiter("one column\n")
    (';', ',')
    """
    for start, end, _ in iterate_lines(text):
        if not _is_blank(text, start, end):
            bare = "".join(text[start:end].split('"')[::2])
            return max(_DELIMITERS, key=bare.count)
    return ","


def iterate_records(text: str, delimiter: str) -> Iterator[tuple[int, int]]:
    r"""Yield the span of each record, line end included; a quoted field may hold line ends.

    Parameters
    ----------
    text : str
        The file.
    delimiter : str
        One character. A quote counts only where a field begins, so that inches in a text do no harm.

    Examples
    --------
    >>> list(iterate_records('a,b\n1,"x\ny"\n\n5",z', ","))
    [(0, 4), (4, 12), (13, 17)]
    """
    held: list[Line] = []
    is_open = False
    for line in iterate_lines(text):
        held.append(line)
        is_open = _leaves_quote_open(text[line[0] : line[1]], delimiter, is_open)
        if not is_open:
            if len(held) > 1 or not _is_blank(text, line[0], line[1]):
                yield held[0][0], line[2]
            held.clear()
        elif len(held) >= _LONGEST_RECORD:
            yield from ((start, after) for start, end, after in held if not _is_blank(text, start, end))
            held.clear()
            is_open = False
    yield from ((start, after) for start, end, after in held if not _is_blank(text, start, end))


def _leaves_quote_open(line: str, delimiter: str, is_open: bool) -> bool:
    """Return whether a quoted field is still open at the end of `line`, given whether one was at its start."""
    if '"' not in line:
        return is_open
    at = 0
    while True:
        if is_open:
            at = line.find('"', at)
            if at < 0:
                return True
            is_open = line.startswith('"', at + 1)  # a doubled quote is a quote in the field
            at += 2 if is_open else 1
        elif line.startswith('"', at) and (at == 0 or line[at - 1] == delimiter):
            is_open = True
            at += 1
        else:
            at = line.find(delimiter, at) + 1
            if at == 0:
                return False


def _is_blank(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` has nothing but white space."""
    return start == end or text[start:end].isspace()
