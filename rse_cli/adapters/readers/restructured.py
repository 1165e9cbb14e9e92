"""reStructuredText: section titles, and the literal blocks, directives and table rows that stay whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rse_cli.adapters.readers.decode import decode
from rse_cli.adapters.readers.plain import Line, is_rule, is_wrapped, iterate_lines
from rse_cli.core.models import Document, Heading

_LONGEST_LINE = 1000
"""Characters of a line that are looked at, so that no pattern meets an endless line."""

_DIRECTIVE = re.compile(r"[ \t]*\.\. +(?:\|[^|]+\| +)?([\w:.+-]+?) ?::(?=\s|$)")
# fmt: off
_PROSE_DIRECTIVES = frozenset({
    "note", "warning", "tip", "hint", "important", "caution", "danger", "attention", "error", "admonition",
    "seealso", "todo", "topic", "sidebar", "rubric", "epigraph", "highlights", "pull-quote", "compound",
    "container", "class", "only", "versionadded", "versionchanged", "deprecated", "centered", "tabs", "tab",
    "tab-item", "tab-set", "dropdown", "card", "grid", "glossary", "function", "method", "attribute", "data",
    "exception", "module",
})
# fmt: on
"""Directives whose content is prose like that around them, after docutils and Sphinx, also with a domain
(``py:function``); the others hold code, tables, lists of files or options."""

_GRID_BORDER = re.compile(r"[ \t]*\+(?:[-=]+\+)+[ \t]*$")
_SIMPLE_BORDER = re.compile(r"[ \t]*=+(?: +=+)+[ \t]*$")
_INLINE = (
    (re.compile(r":[\w:+-]+:(?=`)"), ""),
    (re.compile(r"`([^`<]*?)\s*<[^`>]*>`_{0,2}"), r"\1"),
    (re.compile(r"(`{1,2})([^`]+)\1_{0,2}"), r"\2"),
    (re.compile(r"(\*{1,2})(?=\S)([^*]+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"\|([^|\s][^|]*)\|_{0,2}"), r"\1"),
    (re.compile(r"(?<=\w)_{1,2}(?!\w)"), ""),
    (re.compile(r"\\(.)"), r"\1"),
)
"""Markup inside a title and what it leaves: roles, links, literals, emphasis, substitutions, references, escapes."""


def read_restructured(path: Path, data: bytes) -> Document:  # noqa: ARG001
    """Read reStructuredText: verbatim, titled by its first section of the outermost level.

    Parameters
    ----------
    path : Path
        Not looked at.
    data : bytes
        The file.

    Returns
    -------
    Document
        Its atoms are literal blocks, directives that hold no prose, doctests and table rows, line ends included.
    """
    text = decode(data)
    headings, atoms = find_structure(text)
    title = next((heading.text for heading in headings if heading.level == 1), None)
    return Document(text=text, title=title, headings=headings, atoms=atoms, verbatim=True, wrapped=is_wrapped(text))


def find_structure(text: str) -> tuple[tuple[Heading, ...], tuple[tuple[int, int], ...]]:
    r"""Find the section titles and atoms of a reStructuredText.

    A title is a line with an underline at least as long, or three characters, of one punctuation character, and perhaps
    a like overline. Levels follow the order in which the styles (character, with or without overline) first appear.

    Returns
    -------
    tuple of headings and tuple of spans
        A heading starts at its overline if it has one.

    Examples
    --------
    >>> find_structure("Guide\n=====\n\nRun::\n\n  make\n\nEnd.\n")
    ((Heading(start_char=0, level=1, text='Guide'),), ((20, 27),))
    """
    lines = list(iterate_lines(text))
    headings: list[Heading] = []
    atoms: list[tuple[int, int]] = []
    styles: list[str] = []
    at = 0
    is_blank_before = True
    while at < len(lines):
        shown = _show(text, lines[at])
        past = at + 1
        if not shown:
            pass
        elif is_blank_before and (found := _match_title(text, lines, at)):
            past, style, title = found
            if style not in styles:
                styles.append(style)
            headings.append(Heading(lines[at][0], styles.index(style) + 1, title))
        elif _GRID_BORDER.match(shown):
            past = _add_rows(text, lines, at, _GRID_BORDER, atoms)
        elif is_blank_before and _SIMPLE_BORDER.match(shown):
            past = _add_simple_rows(text, lines, at, atoms)
        elif is_blank_before and shown.startswith(">>>"):
            past = _find_blank(text, lines, at)
            atoms.append((lines[at][0], lines[past - 1][2]))
        elif directive := _DIRECTIVE.match(shown):
            if not _is_prose_directive(directive[1]):
                past = _find_block_end(text, lines, at)
                atoms.append((lines[at][0], lines[past - 1][2]))
        elif shown.endswith("::") and not shown.lstrip().startswith(".. "):
            past = _find_block_end(text, lines, at)
            block = next((line for line in lines[at + 1 : past] if _show(text, line)), None)
            if block:
                atoms.append((block[0], lines[past - 1][2]))
        is_blank_before = not shown or past > at + 1
        at = past
    return tuple(headings), tuple(atoms)


def _show(text: str, line: Line) -> str:
    """Return the part of a line that is looked at, without the white space at its end."""
    return text[line[0] : min(line[1], line[0] + _LONGEST_LINE)].rstrip()


def _match_title(text: str, lines: Sequence[Line], at: int) -> tuple[int, str, str] | None:
    """Return the line after the section title at line `at`, its style and its text, if there is one."""
    top, middle, bottom = (_show(text, line) for line in [*lines[at : at + 3], (0, 0, 0), (0, 0, 0)][:3])
    if is_rule(top) and middle.strip() and top == bottom and not is_rule(middle):
        return at + 3, top[0] * 2, strip_roles(middle)
    is_short = len(middle) < min(len(top), 4)
    if is_rule(middle) and not is_rule(top) and not top[0].isspace() and not is_short and not top.startswith(".. "):
        return at + 2, middle[0], strip_roles(top)
    return None


def _is_prose_directive(name: str) -> bool:
    """Return whether the content of a directive is prose."""
    return name.rsplit(":", 1)[-1] in _PROSE_DIRECTIVES


def _find_blank(text: str, lines: Sequence[Line], at: int) -> int:
    """Return the first blank line from `at`, or the end."""
    while at < len(lines) and _show(text, lines[at]):
        at += 1
    return at


def _find_block_end(text: str, lines: Sequence[Line], at: int) -> int:
    """Return the line after the block that is indented deeper than line `at`, blank lines at its end left out."""
    indent = _indent(text, lines[at])
    past = end = at + 1
    while past < len(lines):
        if _show(text, lines[past]):
            if _indent(text, lines[past]) <= indent:
                break
            end = past + 1
        past += 1
    return end


def _indent(text: str, line: Line) -> int:
    """Return the columns before the first character of a line."""
    shown = _show(text, line).expandtabs(8)
    return len(shown) - len(shown.lstrip())


def _add_rows(text: str, lines: Sequence[Line], at: int, border: re.Pattern[str], atoms: list[tuple[int, int]]) -> int:
    """Add each row of the grid table at line `at` with the border below it, the first with both; return the end."""
    start = lines[at][0]
    past = at + 1
    while past < len(lines) and (shown := _show(text, lines[past]).lstrip())[:1] in {"|", "+"} and shown:
        past += 1
        if border.match(shown):
            atoms.append((start, lines[past - 1][2]))
            start = lines[past - 1][2]
    return past


def _add_simple_rows(text: str, lines: Sequence[Line], at: int, atoms: list[tuple[int, int]]) -> int:
    """Add each row of the simple table at line `at`, the header with its borders, and return the table's end."""
    borders = [at]
    past = at + 1
    rows: list[tuple[int, int]] = []
    indent = _indent(text, lines[at])
    while past < len(lines) and len(borders) < 3:
        shown = _show(text, lines[past])
        if _SIMPLE_BORDER.match(shown):
            borders.append(past)
            is_last = past + 1 == len(lines) or not _show(text, lines[past + 1])
            if len(borders) == 2 and not is_last:  # what stands between the first two borders is the header
                rows = [(lines[at][0], lines[past][2])]
            elif rows:
                rows[-1] = (rows[-1][0], lines[past][2])
            if is_last:
                atoms += rows
                return past + 1
        elif shown and rows and _indent(text, lines[past]) > indent:  # an empty first column continues the row
            rows[-1] = (rows[-1][0], lines[past][2])
        elif shown:
            rows.append((lines[past][0] if rows else lines[at][0], lines[past][2]))
        past += 1
    return at + 1


def strip_roles(text: str) -> str:
    """Return the text of a title without roles, links, literals, emphasis and escapes.

    Examples
    --------
    >>> strip_roles("The :class:`Store` and ``rse`` *now*, see `docs <https://x.y>`_")
    'The Store and rse now, see docs'
    """
    for pattern, kept in _INLINE:
        text = pattern.sub(kept, text)
    return " ".join(text.split())
