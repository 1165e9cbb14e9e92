"""Markdown: headings, front matter, and the fences and table rows that stay whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from rse_cli.adapters.readers.decode import decode
from rse_cli.adapters.readers.plain import LIST_ITEM, Line, is_wrapped, iterate_lines
from rse_cli.core.models import Document, Heading
from rse_cli.dataclass import dataclass

_LONGEST_LINE = 1000
"""Characters of a line that are looked at, so that no pattern meets an endless line."""

_LONGEST_SETEXT = 300
"""Characters of a paragraph that an underline makes a heading; under a longer one the line is meant as a rule."""

_LONGEST_COMMENT = 10_000
"""Characters in which an HTML comment must close; one that never does would hide the rest of the text."""

_FENCE = re.compile(r"([ \t]*)((?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?:(`{3,})[^`]*$|(~{3,}))")
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FRONT_TITLE = re.compile(r"(?m)^title[ \t]*[:=][ \t]*(\S.*?)[ \t\r]*$(?:\n?[ \t]+(\S.*?)[ \t\r]*$)?")
_FOLDED = {">", ">-", ">+", "|", "|-", "|+"}

_INLINE = (
    (re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>"), ""),
    (re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])"), r"\1"),
    (re.compile(r"(`+)([^`]+)\1"), r"\2"),
    (re.compile(r"(\*{1,3}|~~)(?=\S)([^*~]+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<!\w)(_{1,3})(?=\S)([^_]+?)(?<=\S)\1(?!\w)"), r"\2"),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
    (re.compile(r"[ \t]*\{[#.][^{}]*\}[ \t]*$"), ""),
)
"""Markup inside a heading and what it leaves: HTML tags, links and images, code, emphasis, escapes, ``{#anchors}``."""


@dataclass(slots=True)
class Outline:
    """What is found in a Markdown text: headings, and spans to hold whole."""

    title: str | None = None
    headings: list[Heading] = field(default_factory=list)
    atoms: list[tuple[int, int]] = field(default_factory=list)


def read_markdown(path: Path, data: bytes) -> Document:  # noqa: ARG001
    """Read Markdown: verbatim, titled by its front matter or its first level-1 heading.

    Parameters
    ----------
    path : Path
        Not looked at.
    data : bytes
        The file.

    Returns
    -------
    Document
        Its atoms are the front matter, code fences and rows of pipe tables, line ends included.
    """
    text = decode(data)
    outline = find_outline(text)
    return Document(
        text=text,
        title=outline.title,
        headings=tuple(outline.headings),
        atoms=tuple(outline.atoms),
        verbatim=True,
        wrapped=is_wrapped(text),
    )


def find_outline(text: str) -> Outline:
    r"""Find title, headings and atoms of a Markdown text.

    Parameters
    ----------
    text : str
        The text; CommonMark with pipe tables and front matter.

    Returns
    -------
    Outline
        With offsets into `text`.

    Examples
    --------
    >>> outline = find_outline("# **Set** [up](x.md) #\n\n```\n# no heading\n```\n")
    >>> outline.headings, outline.atoms
    ([Heading(start_char=0, level=1, text='Set up')], [(24, 45)])
    """
    outline = Outline()
    lines = list(iterate_lines(text))
    at = _read_front_matter(text, lines, outline)
    paragraph = at  # the first line of the paragraph that line `at` goes on with; `at` itself if there is none
    is_held = False
    while at < len(lines):
        start, end, after = lines[at]
        shown = text[start : min(end, start + _LONGEST_LINE)]
        first = shown.lstrip()[:1]
        past = at + 1
        if ("```" in shown or "~~~" in shown) and (fence := _FENCE.match(shown)):
            past = _find_fence_end(text, lines, at, fence)
            outline.atoms.append((start, lines[past - 1][2]))
        elif first == "#" and (heading := _match_atx(shown, start)):
            outline.headings += [heading] if heading.text else []
        elif first == "<" and shown.lstrip().startswith("<!--"):
            past = _find_comment_end(text, lines, at)
        elif paragraph < at and first and first in "|:-" and _is_table(text, lines[at - 1], lines[at]):
            outline.atoms.append((lines[at - 1][0], after))
            past = _find_table_end(text, lines, at + 1)
            outline.atoms += [(row[0], row[2]) for row in lines[at + 1 : past]]
        elif paragraph < at and (rule := _SETEXT.match(shown)):
            outline.headings += _match_setext(text, lines[paragraph], lines[at - 1], 1 if rule[1][0] == "=" else 2)
        elif first and not is_held and _is_paragraph(shown, first, goes_on=paragraph < at):
            at = past
            continue
        else:  # the lines below a list item or a quotation belong to it until a blank one
            is_held = bool(first)
        at = paragraph = past
    if outline.title is None:
        outline.title = next((heading.text for heading in outline.headings if heading.level == 1), None)
    return outline


def _read_front_matter(text: str, lines: Sequence[Line], outline: Outline) -> int:
    """Add the block between ``---`` (or ``+++``) at the top, if there is one, and return the first line after it."""
    mark = text[: lines[0][1]].rstrip() if lines and lines[0][1] <= 10 else ""
    if mark not in {"---", "+++"}:
        return 0
    closing = {mark, "..."} if mark == "---" else {mark}
    at = next((at for at in range(1, len(lines)) if text[slice(*lines[at][:2])].rstrip() in closing), None)
    if at is None:
        return 0
    start, _, after = lines[at]
    block = text[lines[0][2] : start]
    if mark == "---" and ":" not in block:  # two rules, not front matter
        return 0
    if match := _FRONT_TITLE.search(block):
        title = match[2] or "" if match[1] in _FOLDED else match[1]
        outline.title = _unquote(title) or None
    outline.atoms.append((0, after))
    return at + 1


def _unquote(value: str) -> str:
    """Return a YAML or TOML string without its quotes, or a bare one without its comment."""
    if value[:1] in {'"', "'"}:
        end = value.rfind(value[0])
        return value[1 : end if end > 0 else None].replace('\\"', '"').replace("''", "'").strip()
    return value.split(" #", 1)[0].strip()


def _find_fence_end(text: str, lines: Sequence[Line], at: int, fence: re.Match[str]) -> int:
    """Return the line after the fence that line `at` opens: after its close, or where its list item or the text end."""
    mark = fence[3] or fence[4]
    is_in_list = bool(fence[2]) or len(fence[1].expandtabs(4)) > 3
    for past in range(at + 1, len(lines)):
        start, end, _ = lines[past]
        shown = text[start : min(end, start + _LONGEST_LINE)]
        bare = shown.strip()
        if bare.startswith(mark) and bare.count(mark[0]) == len(bare):
            return past + 1
        if is_in_list and bare and not shown.startswith(("  ", "\t")):
            return past
    return len(lines)


def _find_comment_end(text: str, lines: Sequence[Line], at: int) -> int:
    """Return the line after the HTML comment that line `at` opens; an unclosed one is only this line."""
    end = text.find("-->", lines[at][0], lines[at][0] + _LONGEST_COMMENT)
    past = at + 1
    while past < len(lines) and lines[past][0] <= end:
        past += 1
    return past


def _match_atx(shown: str, start: int) -> Heading | None:
    """Return the heading that a line beginning with ``#`` is, perhaps without text."""
    match = _ATX.match(shown)
    if match is None:
        return None
    inside = shown[match.end() :].strip()
    bare = inside.rstrip("#")
    if bare != inside and (not bare or bare[-1] in " \t"):
        inside = bare
    return Heading(start, len(match[1]), strip_markup(inside))


def _match_setext(text: str, top: Line, bottom: Line, level: int) -> list[Heading]:
    """Return the heading that the lines `top` to `bottom` are above an underline."""
    if bottom[1] - top[0] > _LONGEST_SETEXT:
        return []
    shown = strip_markup(text[top[0] : bottom[1]])
    return [Heading(top[0], level, shown)] if shown else []


def _is_table(text: str, header: Line, delimiter: Line) -> bool:
    """Return whether a line with cells is followed by a row of dashes with as many bars."""
    dashes = text[delimiter[0] : delimiter[1]].strip()
    if set(dashes) - set("|:- \t") or "|" not in dashes or "-" not in dashes:
        return False
    return "|" in text[header[0] : header[1]] and all(":" not in cell.strip(" \t:") for cell in dashes.split("|"))


def _find_table_end(text: str, lines: Sequence[Line], at: int) -> int:
    """Return the first line from `at` that is no row: one without a bar."""
    while at < len(lines) and text.find("|", lines[at][0], lines[at][1]) >= 0:
        at += 1
    return at


def _is_paragraph(shown: str, first: str, goes_on: bool) -> bool:
    """Return whether a line is text that an underline below it would make a heading."""
    if goes_on:
        return first != ">" and not LIST_ITEM.match(shown)
    return first != ">" and not shown.startswith(("    ", "\t")) and not LIST_ITEM.match(shown)


def strip_markup(text: str) -> str:
    """Return the text of a heading on one line, without links, emphasis, code marks, tags and escapes.

    Parameters
    ----------
    text : str
        One heading; a thousand characters at most are looked at.

    Returns
    -------
    str
        With single spaces.

    Examples
    --------
    >>> strip_markup("**Set** `up` [the _tool_](https://x.y/z) {#setup}")
    'Set up the tool'
    """
    text = text[:_LONGEST_LINE]
    for pattern, kept in _INLINE:
        text = pattern.sub(kept, text)
    return " ".join(text.split())
