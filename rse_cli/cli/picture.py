"""The picture of an answer: a row a chunk, with a bar for its value, and brackets for segments. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rich.text import Text

from rse_cli.cli.bars import Scale, draw_bar, make_scale
from rse_cli.cli.folding import Fold
from rse_cli.cli.glyphs import Glyphs, fit, format_number, pad, show_line, show_name
from rse_cli.cli.numbers import Table
from rse_cli.cli.output import name_count
from rse_cli.cli.strip import draw_strip
from rse_cli.core.models import Chunk
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.inspect import DocumentView, Mark

LEAST_WORDS = 16  # fewer cells tell nothing of a chunk
BARS_BESIDE_NUMBERS = 110  # cells from which on `--explain` has room for both


@dataclass(frozen=True, slots=True)
class Sheet:
    """A document to draw: its rows, and the text of those that are no folds."""

    view: DocumentView
    rows: Sequence[int | Fold]
    chunks: Mapping[int, Chunk]


@dataclass(frozen=True, slots=True)
class Style:
    """How to draw.

    Parameters
    ----------
    width : int
        Cells of a line.
    glyphs : Glyphs
        Signs.
    adds_up : bool
        Whether a segment's score is the sum of its rows.
    floor : float
        Values up to it have the least height in the strip.
    table : Table or None
        The columns of ``--explain``.
    """

    width: int
    glyphs: Glyphs
    adds_up: bool = True
    floor: float = 0.0
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class _Layout:
    """Cells of each column; `decimals` of the values."""

    index: int
    place: int
    number: int
    lanes: int
    words: int
    decimals: int
    scale: Scale | None


def render_picture(sheets: Sequence[Sheet], style: Style) -> list[Text]:
    """Return the lines of all documents, with a blank line between two; none is wider than the style's width."""
    layout, no_room = _lay_out(sheets, style), []
    while style.table is not None and _measure_line(layout, style) > style.width and len(style.table.names) > 1:
        # From the right but for the last two, relevance and penalty: what is made of the evidence says most.
        names = list(style.table.names)
        no_room.insert(0, names.pop(max(len(names) - 3, 1)))
        style = replace(style, table=replace(style.table, names=names))
        layout = _lay_out(sheets, style)
    highest = max((_find_highest(sheet) for sheet in sheets), default=0.0)
    lines: list[Text] = []
    for sheet in sheets:
        lines += [Text("")] if lines else []
        lines.append(_render_title(sheet.view, style))
        spans = [(mark.start_chunk, mark.end_chunk) for mark in sheet.view.marks]
        heights, under = draw_strip(sheet.view.levels, spans, highest, style.width, style.glyphs, style.floor)
        lines += [Text(heights, "cyan"), *([Text(under, "bold yellow")] if under else [])]
        if style.table is not None:
            lines.append(_render_head(layout, style))
        lines += _render_rows(sheet, layout, style)
    if no_room:
        said = f"{style.glyphs.fold} no room for {' '.join(no_room)}"
        lines += [Text(""), Text(fit(said, style.width, style.glyphs), "dim")]
    return lines


def _measure_line(layout: _Layout, style: Style) -> int:
    """Return the cells of a row without its bar and its words."""
    table = style.table.width if style.table is not None else 0
    place = layout.place + 1 if layout.place else 0
    return layout.index + place + table + 1 + layout.number + 1 + layout.lanes


def _find_highest(sheet: Sheet) -> float:
    return max((value for value in sheet.view.levels.tolist() if not math.isnan(value)), default=0.0)


def choose_decimals(values: Sequence[float]) -> int:
    """Return how many decimals tell values apart: more for the small scores of fused ranks.

    Examples
    --------
    >>> choose_decimals([3.2, -0.1]), choose_decimals([0.0328])
    (2, 4)
    """
    return 2 if max((abs(value) for value in values if not math.isnan(value)), default=1.0) >= 0.1 else 4


def _lay_out(sheets: Sequence[Sheet], style: Style) -> _Layout:
    shown = [(sheet, row) for sheet in sheets for row in sheet.rows if not isinstance(row, Fold)]
    values = [float(sheet.view.values[row]) for sheet, row in shown]
    extra = [value for sheet in sheets for mark in sheet.view.marks for value in (-mark.cost, mark.rest)]
    decimals = choose_decimals(values)
    number = max([len(format_number(one, decimals, style.glyphs, signed=True)) for one in [*values, *extra]] + [5])
    index = max([len(str(row)) for _, row in shown] + [3])
    place = max([len(_name_place(sheet.chunks[row])) for sheet, row in shown] + [0])
    lanes = max([max(_assign_lanes(sheet.view.marks).values(), default=0) for sheet in sheets] + [0]) + 1
    table = style.table.width if style.table is not None else 0
    if table and style.width < 80:
        place = 0
    left = style.width - (index + (place + 1 if place else 0) + table + 1 + number + 1 + lanes + 1)
    bar = 0 if table and style.width < BARS_BESIDE_NUMBERS else min(max(10, style.width // 4), left - LEAST_WORDS - 1)
    scale = make_scale([*values, *extra], bar) if bar >= 3 else None
    words = left - (bar + 1 if scale else 0)
    return _Layout(index, place, number, lanes, max(0, words), decimals, scale)


def _name_place(chunk: Chunk) -> str:
    if chunk.start_line is not None:
        return f":{chunk.start_line}"
    return f"p{chunk.start_page}" if chunk.start_page is not None else ""


def _assign_lanes(marks: Sequence[Mark]) -> dict[int, int]:
    """Return a column for each segment, by place: two segments that share a chunk get different ones."""
    ends: list[int] = []
    lanes = {}
    for mark in marks:
        lane = next((lane for lane, end in enumerate(ends) if end <= mark.start_chunk), len(ends))
        ends[lane : lane + 1] = [mark.end_chunk]
        lanes[mark.place] = lane
    return lanes


def _render_title(view: DocumentView, style: Style) -> Text:
    count = len(view.marks)
    facts = [name_count(count, "segment")] if count else []
    facts.append(name_count(view.n_chunks, "chunk"))
    tail = style.glyphs.sep.join(facts)
    room = style.width - len(tail) - 2
    path = fit(show_name(view.path, style.glyphs), room, style.glyphs)
    title = fit(show_line(view.title, style.glyphs), room - Text(path).cell_len - 2, style.glyphs)
    return Text.assemble((path, "bold magenta"), f"  {title}" if title else "", (f"  {tail}", "dim"))


def _render_head(layout: _Layout, style: Style) -> Text:
    assert style.table is not None
    place = f" {'':{layout.place}}" if layout.place else ""
    bar = " " * (layout.scale.width + 1) if layout.scale else ""
    head = f"{'':>{layout.index}}{place}{style.table.head}{bar} {'value':>{layout.number}}"
    return Text(head.rstrip(), "dim")


def _render_rows(sheet: Sheet, layout: _Layout, style: Style) -> Iterator[Text]:
    marks, lanes = sheet.view.marks, _assign_lanes(sheet.view.marks)
    for row in sheet.rows:
        start, end = (row.start, row.end) if isinstance(row, Fold) else (row, row + 1)
        bracket = [" "] * layout.lanes
        for mark in marks:
            if mark.start_chunk < end and start < mark.end_chunk:
                bracket[lanes[mark.place]] = style.glyphs.top if start == mark.start_chunk else style.glyphs.side
        if isinstance(row, Fold):
            yield _render_fold(row, "".join(bracket), layout, style)
        else:
            yield from _render_chunk(sheet, row, "".join(bracket), layout, style)
        for mark in marks:
            if mark.end_chunk == end:
                yield from _render_close(mark, bracket, lanes[mark.place], layout, style)


def _measure_words(layout: _Layout, style: Style) -> int:
    """Return the cells for words: in their column, else on a line of their own."""
    return layout.words if layout.words >= LEAST_WORDS else style.width - layout.index - 1


def _fit_facts(facts: Sequence[str], most: int, room: int, glyphs: Glyphs) -> str:
    """Return as many facts as have room, the one at `most` before all others."""
    for start, end in [(0, len(facts) - cut) for cut in range(len(facts) - most)] + [(most, most + 1)]:
        said = glyphs.sep.join(facts[start:end])
        if len(said) <= room:
            break
    return said


def _compose(
    layout: _Layout, style: Style, index: str, place: str, table: str, value: float, bracket: str, words: str, dim: bool
) -> Iterator[Text]:
    """Put the columns of one line together; without room for words these go on a line of their own."""
    line = Text.assemble((f"{index:>{layout.index}}", "dim"))
    if layout.place:
        line.append(f" {pad(place, layout.place)}", "dim")
    if style.table is not None:
        line.append(pad(table, style.table.width))
    if layout.scale is not None:
        left, zero, right = draw_bar(value, layout.scale, style.glyphs)
        line.append(" ")
        line.append(left, "red")
        line.append(zero, "dim")
        line.append(right, "green")
    number = format_number(value, layout.decimals, style.glyphs, signed=True)
    line.append(f" {number:>{layout.number}}", "red" if value < 0 else "green")
    line.append(f" {bracket}", "bold yellow")
    narrow = layout.words < LEAST_WORDS
    if not narrow:
        line.append(f" {fit(words, layout.words, style.glyphs)}", "dim" if dim else "none")
    line.rstrip()
    yield line
    if narrow:
        indent = " " * (layout.index + 1)
        yield Text(indent + fit(words, style.width - len(indent), style.glyphs), "dim")


def _render_chunk(sheet: Sheet, row: int, bracket: str, layout: _Layout, style: Style) -> Iterator[Text]:
    view, chunk = sheet.view, sheet.chunks[row]
    value = float(view.values[row])
    words = show_line(chunk.text[:1000], style.glyphs)
    same = f"{style.glyphs.same} " if math.isnan(value) and not math.isnan(view.levels[row]) else ""
    dim = not bracket.strip()
    table, terms = "", ""
    if style.table is not None:
        table, terms = style.table.format_row(view, row, style.glyphs)
    words = same + (f"[{show_line(terms, style.glyphs)}] {words}" if terms else words)
    yield from _compose(layout, style, str(row), _name_place(chunk), table, value, bracket, words, dim)


def _render_fold(fold: Fold, bracket: str, layout: _Layout, style: Style) -> Text:
    glyphs = style.glyphs
    words = name_count(fold.end - fold.start, "chunk")
    if not math.isnan(fold.best):
        words += f", best {format_number(fold.best, layout.decimals, glyphs)}"
    if bracket.strip() and style.adds_up and not math.isnan(fold.best):
        words += f", together {format_number(fold.total, layout.decimals, glyphs)}"
    room = style.width - layout.lanes - 2
    # In line with the brackets of the rows, but where the words need that room.
    table = style.table.width if style.table is not None else 0
    before = layout.index + (layout.place + 1 if layout.place else 0) + table
    before += (layout.scale.width + 1 if layout.scale else 0) + 1 + layout.number
    head = f"{glyphs.fold:>{layout.index}} "
    drawn = head + fit(words, room - len(head), glyphs)
    line = Text.assemble((pad(drawn, before), "dim"), (f" {bracket}", "bold yellow"))
    line.rstrip()
    return line


def _render_close(mark: Mark, bracket: list[str], lane: int, layout: _Layout, style: Style) -> Iterator[Text]:
    """Draw the end of a segment: what it costs, and its score. Opened brackets go on as sides."""
    glyphs = style.glyphs
    for at, sign in enumerate(bracket):
        bracket[at] = glyphs.side if sign == glyphs.top else sign
    empty = " " * (style.table.width if style.table is not None else 0)
    if mark.rest and style.adds_up:
        words = "cut off, still in the score" if mark.rest > 0 else "joined, not in the score"
        yield from _compose(layout, style, "", "", empty, mark.rest, "".join(bracket), words, False)
    bracket[lane] = glyphs.bottom
    score = format_number(mark.score, layout.decimals, glyphs)
    words = [
        f"score {score}" if style.adds_up else f"score {score}, {'of a row cut off' if mark.rest else 'its best row'}"
    ]
    words = (["segment_cost"] if mark.cost else []) + words
    score_at = len(words) - 1
    words += [f"segment {mark.place + 1}", name_count(mark.end_char - mark.start_char, "character")]
    cost = -mark.cost if mark.cost else math.nan
    said = _fit_facts(words, score_at, _measure_words(layout, style), glyphs)
    yield from _compose(layout, style, "", "", empty, cost, "".join(bracket), said, False)
    bracket[lane] = " "
