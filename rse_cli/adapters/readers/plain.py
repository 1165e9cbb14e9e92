"""Plain text: lines, headings that stand alone, and whether the text is hard-wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from rse_cli.adapters.readers.decode import decode
from rse_cli.core.models import Document, Heading

Line = tuple[int, int, int]
"""Start, end without the line end, end with it."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
LIST_ITEM = re.compile(r"[ \t]{0,12}(?:[-*+•–]|\(?(?:\d{1,9}|[A-Za-z])[.)])(?:[ \t]|$)")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")

_WRAP_SAMPLE = 20_000
"""Lines looked at to tell whether a text is wrapped: its wrapping doesn't change after a book's length."""

_LONGEST_RUN = 3
"""Headings in a row without text between them (title, subtitle, chapter); more are a list with blank lines."""

_TIGHT = 1.5
"""How many times longer the line right below a heading is: the first line of a wrapped paragraph or of a verse is about
as long as its second, so it stays text."""


def iterate_lines(text: str) -> Iterator[Line]:
    r"""Yield every line of `text` as (start, end without its line end, end with it).

    Lines end at ``\n``, ``\r\n`` and ``\r`` only, unlike `str.splitlines`: form feeds and U+2028 are text. Nothing is
    yielded after a line end that ends the text.

    Examples
    --------
    >>> list(iterate_lines("a\r\nb\x0c\n\rc"))
    [(0, 1, 3), (3, 5, 6), (6, 6, 7), (7, 8, 8)]
    """
    start = 0
    if "\r" in text:
        for match in _LINE_END.finditer(text):
            yield start, match.start(), match.end()
            start = match.end()
    else:
        while (at := text.find("\n", start)) >= 0:
            yield start, at, at + 1
            start = at + 1
    if start < len(text):
        yield start, len(text), len(text)


def is_wrapped(text: str) -> bool:
    r"""Return whether single line ends in the prose of `text` are only its wrapping.

    Counted are lines that another line of the same paragraph follows, without list items, headings, table rows, quotes
    and code. The text is wrapped if at least 60 % of them have 50 to 100 characters: what editors and mail programs
    wrap at, while verse is shorter and a paragraph on one line is longer.

    Parameters
    ----------
    text : str
        Plain text, Markdown or reStructuredText.

    Returns
    -------
    bool
        False where no line counts.

    Examples
    --------
    >>> line = "A line of prose that its editor has broken at about seventy columns\n"
    >>> is_wrapped(line * 3), is_wrapped("Roses are red\nViolets are blue\nSugar is sweet\n")
    (True, False)
    """
    counted = fitting = 0
    is_fenced = False
    previous = ""
    for start, end, _ in islice(iterate_lines(text), _WRAP_SAMPLE):
        line = text[start : min(end, start + 200)]
        if _FENCE.match(line):
            is_fenced, previous = not is_fenced, ""
        elif is_fenced or not line.strip():
            previous = ""
        else:
            if previous and not LIST_ITEM.match(line) and line[0] not in "#|>":
                counted += 1
                fitting += 50 <= len(previous) <= 100
            previous = line.rstrip() if _is_prose(line) else ""
    return counted > 0 and fitting >= 0.6 * counted


def _is_prose(line: str) -> bool:
    """Return whether a line is neither list item, heading, table row, quote, comment nor indented code."""
    is_marked = line.startswith(("    ", "\t", "#", "|", ">", "<", "..", "+-"))
    return not (is_marked or LIST_ITEM.match(line) or is_rule(line))


def is_rule(line: str) -> bool:
    """Return whether a line is one punctuation character repeated at least three times, such as an underline.

    Examples
    --------
    >>> is_rule("-----  "), is_rule("--=--"), is_rule("aaaa")
    (True, False, False)
    """
    line = line.rstrip()
    return len(line) >= 3 and not line[0].isalnum() and not line[0].isspace() and line.count(line[0]) == len(line)


def read_plain(path: Path, data: bytes) -> Document:  # noqa: ARG001
    """Read plain text: verbatim, with underlined headings and those that stand alone.

    Parameters
    ----------
    path : Path
        Not looked at.
    data : bytes
        The file.

    Returns
    -------
    Document
        Titled only by a heading underlined at its top.
    """
    text = decode(data)
    headings, title = find_headings(text)
    return Document(text=text, title=title, headings=headings, verbatim=True, wrapped=is_wrapped(text))


def find_headings(text: str) -> tuple[tuple[Heading, ...], str | None]:
    r"""Find the headings of a plain text.

    A heading stands after a blank line or at the start. It is underlined with ``=`` (level 1) or ``-`` (level 2), or it
    has 3 to 80 characters and at most 12 words, starts with a capital or digit, doesn't end in punctuation, has no
    Chinese, Japanese or Korean and no ``|`` in it, and is followed by a blank line or by a clearly longer one. Runs of
    more than three such lines are lists.

    Returns
    -------
    tuple of headings, and str or None
        The title is the first heading if it is underlined and nothing stands before it.

    Examples
    --------
    >>> find_headings("Manual\n======\n\nSetting up\n\nPlug it in. Wait.\n")[1]
    'Manual'
    >>> [h.text for h in find_headings("Manual\n======\n\nSetting up\n\nPlug it in. Wait.\n")[0]]
    ['Manual', 'Setting up']
    """
    headings: list[Heading] = []
    run: list[Heading] = []
    title = None
    for at, (is_last, lines) in enumerate(_iterate_paragraphs(text)):
        heading = _match_heading(text, lines, is_last)
        is_underlined = heading is not None and len(lines) > 1 and is_rule(_show(text, lines[1]))
        if heading is not None and not is_underlined:
            run.append(heading)
        if heading is None or len(lines) > 1:
            headings += run if len(run) <= _LONGEST_RUN else []
            run = []
        if heading is not None and is_underlined:
            headings.append(heading)
            title = heading.text if at == 0 else title
    return tuple(headings), title


def _iterate_paragraphs(text: str) -> Iterator[tuple[bool, list[Line]]]:
    """Yield whether it is the last, and the first two lines, of every run of lines that aren't blank."""
    paragraph: list[Line] = []
    is_inside = False
    for line in iterate_lines(text):
        start, end, _ = line
        if start == end or text[start:end].isspace():
            is_inside = False
        elif not is_inside:
            if paragraph:
                yield False, paragraph
            paragraph, is_inside = [line], True
        elif len(paragraph) < 2:
            paragraph.append(line)
    if paragraph:
        yield True, paragraph


def _match_heading(text: str, lines: list[Line], is_last: bool) -> Heading | None:
    """Return the heading that the first line of a paragraph is, if it is one."""
    line = _show(text, lines[0])
    words = line.split()
    if not 3 <= len(line) <= 80 or len(words) > 12 or _CJK.search(line):
        return None
    below = _show(text, lines[1]) if len(lines) > 1 else ""
    if is_rule(below) and below[0] in "=-" and not is_rule(line):
        return Heading(lines[0][0], 1 if below[0] == "=" else 2, line)
    last = line.rstrip(")]\"'’”%")[-1:]
    if not (line[0].isupper() or line[0].isdecimal()) or not last.isalnum() or "|" in line:
        return None
    if LIST_ITEM.match(line) and not line[0].isdecimal():
        return None
    if (below and len(below) < _TIGHT * len(line)) or (is_last and not below):
        return None
    return Heading(lines[0][0], 1, line)


def _show(text: str, line: Line) -> str:
    """Return a line without the white space around it; of an endless line, no more than tells it from a heading."""
    return text[line[0] : min(line[1], line[0] + 400)].strip()
