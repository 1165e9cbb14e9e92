"""Answers as rich text and as plain lines. Pure: a function of the answer and the width."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rse_cli.cli.output import make_visible, make_visible_line, name_count
from rse_cli.core.lexical import find_term_spans
from rse_cli.pipeline.query import Answer, Segment

if TYPE_CHECKING:
    from rich.text import Text

INDENT = "  "
SAID_CHARS = 60  # of a summary: what a text that holds them says itself
DEFAULT_WIDTH = 100  # of a summary where there is no terminal: nothing else is cut there


def locate_segment(segment: Segment) -> str:
    """Return where a segment lies: ``path:12-18`` by lines, ``path p. 3-4`` by pages, else the path.

    Parameters
    ----------
    segment : Segment
        A segment of an answer.
    """
    path = make_visible_line(segment.path)
    if segment.start_line is not None:
        return f"{path}:{_format_range(segment.start_line, segment.end_line)}"
    if segment.start_page is not None:
        return f"{path} p. {_format_range(segment.start_page, segment.end_page)}"
    return path


def _format_range(first: int, last: int | None) -> str:
    return str(first) if last in (None, first) else f"{first}-{last}"


def describe_answer(answer: Answer, method: str) -> str:
    """Return the line that closes an answer: ``2 segments · 1,310 characters · confidence 0.97 · rse/balanced``."""
    chars = sum(len(segment.text) for segment in answer.segments)
    return (
        f"{name_count(len(answer.segments), 'segment')} · {name_count(chars, 'character')} · "
        f"confidence {answer.confidence:.2f} · {method}"
    )


def render_methods() -> str:
    """Return the table of methods: what each does, when to use it, and its parameters with their defaults."""
    from rse_cli.core.methods import METHODS

    lines = []
    for name, method in METHODS.items():
        lines += [name, f"  {method.does}", f"  {method.suits}"]
        if method.presets:
            lines.append(f"  presets: {', '.join(method.presets)}")
        values = ", ".join(f"{key}={value}" for key, value in method.params().to_dict().items())
        lines += [f"  {values}", ""]
    return "\n".join(lines[:-1]) + "\n"


def measure_width() -> int:
    """Return the terminal's width in cells, ``COLUMNS`` first, 80 where there is none."""
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def print_segments(
    answer: Answer, *, colour: bool, width: int | None, headers: bool = True, images: Sequence[Sequence[str]] = ()
) -> str:
    """Return all segments as the text that goes to stdout, with a blank line between two.

    The pictures of a segment's pages stand after its text, a path on a line.
    """
    from io import StringIO

    from rich.console import Console

    buffer = StringIO()
    console = Console(
        file=buffer,
        force_terminal=colour,
        color_system="standard" if colour else None,
        width=10_000,
        legacy_windows=False,
    )
    for at, text in enumerate(render_segments(answer, width, headers=headers)):
        buffer.write("\n" if at else "")
        console.print(text, soft_wrap=True, end="", highlight=False, markup=False, emoji=False)
        for path in images[at] if images else ():
            buffer.write(f"{INDENT}{make_visible_line(path)}\n")
    return buffer.getvalue()


def render_segments(answer: Answer, width: int | None, *, headers: bool = True) -> list[Text]:
    """Return each segment as a text of its heading line and its passage, matching terms marked.

    Parameters
    ----------
    answer : Answer
        What was found.
    width : int or None
        Cells to wrap passages to; None leaves lines as they are.
    """
    texts, described = [], set[str]()
    for segment in answer.segments:
        terms = [answer.request.queries[at].terms for at in segment.queries]
        summary = "" if segment.path in described else segment.summary
        described.add(segment.path)
        texts.append(render_segment(segment, terms, width, headers=headers, summary=summary))
    return texts


def render_segment(
    segment: Segment, terms: Sequence[Sequence[str]], width: int | None, *, headers: bool = True, summary: str = ""
) -> Text:
    """Return one segment: where it lies, its title, section and score, what surrounds it, then its text, indented."""
    from rich.text import Text

    head = Text(end="")
    if headers:
        head.append(locate_segment(segment), style="bold magenta")
        if names := name_segment(segment):
            head.append(f"  {make_visible_line(names)}", style="cyan")
        head.append(f"  {segment.score:.2f}\n", style="dim")
        for line in describe_surroundings(segment, summary, (width or DEFAULT_WIDTH) - len(INDENT)):
            head.append(f"{INDENT}{make_visible_line(line)}\n", style="dim italic")
    body = Text(make_visible(segment.text).strip("\n").rstrip())
    wanted = {term for query in terms for term in query}
    for start, end in find_term_spans(body.plain, wanted):
        body.stylize("bold yellow", start, end)
    for line in wrap_passage(body, width):
        head.append(INDENT if line.plain else "")
        head.append_text(line)
        head.append("\n")
    return head


def name_segment(segment: Segment) -> str:
    """Return title and section; a title that the first line of the text says is left out."""
    from rse_cli.core.context import join_names

    first_line = " ".join(segment.text.lstrip().partition("\n")[0].split())
    return segment.section if segment.title and segment.title in first_line else join_names(segment)


def describe_surroundings(segment: Segment, summary: str, width: int) -> list[str]:
    """Return what a reader of the text alone can't know, a line each: the document's summary, a table's columns.

    Parameters
    ----------
    segment : Segment
        What is shown below.
    summary : str
        Of its document, empty to leave it out; so it is too where the text begins as it does.
    width : int
        Cells of a line; a longer summary is cut.
    """
    lines = []
    begin = summary.partition(" … ")[0][:SAID_CHARS]
    if begin and begin not in " ".join(segment.text.split()):
        line = f"Summary: {summary}"
        lines.append(line if len(line) <= width else line[: width - 1].rstrip() + "…")
    if segment.columns:
        lines.append(f"Columns: {segment.columns}")
    return lines


def wrap_passage(body: Text, width: int | None) -> list[Text]:
    """Split a passage into lines, wrapped to `width` less the indent where one is given."""
    from rich.console import Console

    lines = list(body.split("\n", allow_blank=True))
    if width is None:
        return lines
    measure = Console(width=width, color_system=None, legacy_windows=False)
    parts = [part for line in lines for part in (line.wrap(measure, width - len(INDENT)) if line.plain else [line])]
    for part in parts:
        part.rstrip()
    return parts


def render_plain(answer: Answer) -> str:
    """Return the lines of each segment as ``path:line: text``, for documents with pages as ``path:p3-4: text``."""
    lines = []
    for segment in answer.segments:
        path = make_visible_line(segment.path)
        # `start_line` is that of the first line with words, so white space before it is left out.
        for offset, line in enumerate(make_visible(segment.text.lstrip()).rstrip().split("\n")):
            place = ""
            if segment.start_line is not None:
                place = f"{segment.start_line + offset}:"
            elif segment.start_page is not None:
                place = f"p{_format_range(segment.start_page, segment.end_page)}:"
            if line.strip():
                lines.append(f"{path}:{place} {line}")
    return "\n".join(lines) + "\n" if lines else ""
