"""Lines of a PDF table -> rows: heads, cells and labels of several lines become one. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from rse_cli.adapters.readers.pdf_lines import Cell, Line, is_amount
from rse_cli.adapters.readers.pdf_words import Vocabulary, join_lines

_OPEN_LABEL = re.compile(r"(?:[,–—-]|\b(?:and|or|of|in|for|from|to|the|on|by|with|at|per|net|before|less|\(used))$")
_PERIOD = re.compile(r"(?:^|[\s,.])(?:FY|CY)?(?:19|20)\d\d(?:\s?(?:\([^()]{1,12}\)|[*†‡A-E]))?$")
"""How the lowest line of a column's head ends: "2018", "FY2018", "March 31, 2019", "2017 (restated)"."""

_PERIOD_HEAD = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?:[a-z]{1,6})?\b"
    r"|\b(?:months?|weeks?|quarters?|years?|fiscal|ended|ending|as of)\b(?!-)",
    re.IGNORECASE,
)
"""What the lines above it say, so that no title above a table is taken for one."""

_HEAD_STEP = 1.8
"""Em between the lines of a head: a rule between them takes half a line."""

_OVERHANG = 3.0
"""Em that a head may stick out of its columns on either side: "Years ended December 31," over two narrow years."""

_CELL_STEP = 1.4
"""Em between the lines of one cell."""

_NEAR = 6
"""Lines above and below in which a row's distance is looked for: cells seldom have more."""

_INDENT = 6.0
"""Em that the lines of one label may begin apart: more is text of something else that stands beside the table."""

_ALIGNED = 2.0
"""Points by which cells of one column may differ at their edge."""


def join_heads(lines: Sequence[Line]) -> list[Line]:
    """Join column heads of several lines that end in years: "Three Months Ended" over "March 31, 2019  March 31, 2018".

    A head over one column goes before what stands there, a head over several before the first of them.
    """
    joined: list[Line] = []
    for line in lines:
        current = line
        while joined and (both := _stack_heads(joined[-1], current)):
            joined.pop()
            current = both
        joined.append(current)
    return joined


def _stack_heads(above: Line, below: Line) -> Line | None:
    """Return both lines as one if `above` heads the years of `below`, else None."""
    own_label = below.cells[:1] if not _PERIOD.search(below.cells[0].text) or len(below.cells[0].text) > 60 else ()
    periods = below.cells[len(own_label) :]
    if len(periods) < 2 or not 0 < below.top - above.baseline <= _HEAD_STEP * max(above.size, below.size):
        return None
    if above.bold and not below.bold:  # a title
        return None
    if not all(_PERIOD.search(cell.text) for cell in periods):
        return None
    labels = tuple(cell for cell in above.cells if cell.x1 < periods[0].x0 and not _PERIOD_HEAD.search(cell.text))
    heads = above.cells[len(labels) :]
    if len(labels) > 1 or not heads or not all(_PERIOD_HEAD.search(cell.text) for cell in heads):
        return None
    groups = _share_columns(heads, periods, _OVERHANG * below.size)
    if groups is None:
        return None
    cells = _join_label(labels, own_label)
    for head, (first, *others) in zip(heads, groups, strict=True):
        right = first.x1 if others else max(head.x1, first.x1)
        cells += [Cell(f"{head.text} {first.text}", min(head.x0, first.x0), right), *others]
    return replace(below, cells=tuple(cells), top=above.top, bold=above.bold and below.bold, is_row=True)


def _share_columns(heads: Sequence[Cell], columns: Sequence[Cell], overhang: float) -> list[list[Cell]] | None:
    """Give each column to the head whose middle is nearest; None if a head gets none or stands beside its own."""
    middles = [(head.x0 + head.x1) / 2 for head in heads]
    groups: list[list[Cell]] = [[] for _ in heads]
    for column in columns:
        middle = (column.x0 + column.x1) / 2
        groups[min(range(len(heads)), key=lambda i: abs(middles[i] - middle))].append(column)
    for head, group in zip(heads, groups, strict=True):
        if not group or head.x0 < group[0].x0 - overhang or head.x1 > group[-1].x1 + overhang:
            return None
    return groups


def _join_label(above: Sequence[Cell], below: Sequence[Cell]) -> list[Cell]:
    """Join the label cells of two lines of heads, such as "(in thousands," and "except per share data)"."""
    parts = [*above, *below]
    if not parts:
        return []
    return [Cell(" ".join(part.text for part in parts), min(p.x0 for p in parts), max(p.x1 for p in parts))]


def join_cells(lines: Sequence[Line], vocabulary: Vocabulary | None = None) -> list[Line]:
    """Give the cells of a row their further lines: what stands close below, in the same columns, and goes on with them.

    Without `vocabulary`, a word cut at a line end keeps its hyphen.
    """
    rights: dict[int, float] = {}
    for cell in (cell for line in lines if len(line.cells) > 1 for cell in line.cells):
        column = round(cell.x0 / _ALIGNED)
        rights[column] = max(cell.x1, rights.get(column, 0.0))
    joined: list[Line] = []
    last: dict[int, Cell] = {}  # of each cell of the last row its lowest line
    for i, line in enumerate(lines):
        places = _find_places(joined[-1], line) if joined else []
        pairs = [(last[at], cell) for at, cell in zip(places, line.cells, strict=False)]
        goes_on = all(_is_full(above, cell, rights, line.size) for above, cell in pairs)
        if not places or not goes_on or (0 in places and not _is_tight(lines, i)):
            joined.append(line)
            last = dict(enumerate(line.cells))
            continue
        row = joined[-1]
        cells = list(row.cells)
        for at, cell in zip(places, line.cells, strict=True):
            text = _join_texts(cells[at].text, cell.text, vocabulary)
            cells[at] = Cell(text, cells[at].x0, max(cells[at].x1, cell.x1))
            last[at] = cell
        joined[-1] = replace(row, cells=tuple(cells), baseline=line.baseline)
    return joined


def _is_full(above: Cell, below: Cell, rights: Mapping[int, float], size: float) -> bool:
    """Say whether the first word of `below` had no room in the cell above; `rights`: right edges of columns."""
    if _OPEN_LABEL.search(above.text):
        return True
    column = round(above.x0 / _ALIGNED)
    right = max(rights.get(column + near, 0.0) for near in (-1, 0, 1))
    word = len(below.text.split(" ", 1)[0]) + 0.5
    return above.x1 + word * (below.x1 - below.x0) / max(1, len(below.text)) >= right - 0.3 * size


def _is_tight(lines: Sequence[Line], at: int) -> bool:
    """Say whether a line stands closer to the one above than rows of this table do, near it."""
    step = lines[at].top - lines[at - 1].baseline
    near = lines[max(0, at - _NEAR) : at + _NEAR]
    steps = [b.top - a.baseline for a, b in pairwise(near) if len(a.cells) > 1 or len(b.cells) > 1]
    return any(1.15 * step < other < 4 * lines[at].size for other in steps)


def _find_places(row: Line, below: Line) -> list[int]:
    """Return which cells of `row` the cells of `below` continue; none if they don't, or only its label goes on."""
    if len(row.cells) < 2 or not 0 < below.top - row.baseline <= _CELL_STEP * row.size or row.bold != below.bold:
        return []
    starts = [cell.x0 for cell in row.cells]
    places = [
        next((i for i, x0 in enumerate(starts) if abs(cell.x0 - x0) <= _ALIGNED), -1)
        for cell in below.cells
        if not is_amount(cell.text)
    ]
    if len(places) < len(below.cells) or -1 in places or places == [0] or len(set(places)) < len(places):
        return []
    unfinished = [
        cell.text[0].islower() or _OPEN_LABEL.search(row.cells[at].text) is not None
        for at, cell in zip(places, below.cells, strict=True)
    ]
    if places[0] == 0:
        return places if unfinished[0] and 2 * sum(unfinished) > len(places) else []
    return places if len(places) == 1 or 2 * sum(unfinished) >= len(places) else []


def mark_rows(lines: Sequence[Line]) -> list[Line]:
    """Mark lines of several cells as rows if they stand in the columns of a row above or below."""
    marked = list(lines)
    for order in (range(1, len(marked)), range(len(marked) - 2, -1, -1)):
        step = -1 if order.step > 0 else 1
        for i in order:
            line, other = marked[i], marked[i + step]
            if other.is_row and not line.is_row and len(line.cells) > 1 and _share_an_edge(line, other):
                marked[i] = replace(line, is_row=True)
    return marked


def _share_an_edge(line: Line, row: Line) -> bool:
    """Say whether both begin alike, and every further cell of `line` begins or ends where a cell of `row` does."""
    if abs(line.x0 - row.x0) > _INDENT * row.size or abs(line.top - row.top) > 3 * row.size:
        return False
    return all(
        any(abs(cell.x0 - other.x0) <= _ALIGNED or abs(cell.x1 - other.x1) <= _ALIGNED for other in row.cells[1:])
        for cell in line.cells[1:]
    )


def join_labels(lines: Sequence[Line], vocabulary: Vocabulary | None = None) -> list[Line]:
    """Give a table row the lines of its label that stand above, below or half a line above and below its numbers.

    Without `vocabulary`, a word cut at a line end keeps its hyphen.
    """
    joined: list[Line] = []
    for line in lines:
        current = line
        while joined and _leads_into(joined[-1], current):
            above, label = joined.pop(), current.cells[0]
            rest = current.cells if is_amount(label.text) else current.cells[1:]
            text = above.text if rest is current.cells else _join_texts(above.text, label.text, vocabulary)
            current = replace(
                current, cells=(Cell(text, above.x0, max(above.x1, label.x1)), *rest), top=above.top, is_row=True
            )
            if rest is line.cells:
                break
        if joined and _trails_after(joined[-1], current):
            row = joined.pop()
            head = row.cells[0]
            merged = Cell(_join_texts(head.text, current.text, vocabulary), head.x0, max(head.x1, current.x1))
            current = replace(row, cells=(merged, *row.cells[1:]), baseline=current.baseline)
        joined.append(current)
    return joined


def _leads_into(above: Line, row: Line) -> bool:
    """Say whether `above` is the first part of the label of `row`."""
    step = row.top - above.baseline
    if not row.is_row or above.is_row or len(above.cells) > 1 or step > 1.5 * row.size or above.bold != row.bold:
        return False
    label = row.cells[0].text
    if is_amount(label):
        # Numbers centred beside a label of two lines stand half a line below the first.
        return step < 0.9 * row.size and above.x1 <= row.x0
    if len(row.cells) < 2 or above.x1 > row.cells[1].x0 or above.text.endswith((":", ".", ";")):
        return False
    if abs(above.x0 - row.x0) > _INDENT * row.size:
        return False
    return label[0].islower() or _OPEN_LABEL.search(above.text) is not None


def _trails_after(row: Line, below: Line) -> bool:
    """Say whether `below` is the last part of the label of `row`."""
    if not row.is_row or below.is_row or len(row.cells) < 2 or len(below.cells) > 1:
        return False
    step = below.top - row.baseline
    head = row.cells[0].text
    if step > 1.5 * row.size or below.x1 > row.cells[1].x0 or is_amount(head) or head.endswith(":"):
        return False
    if abs(below.x0 - row.x0) > _INDENT * row.size:
        return False
    return below.text[0].islower() or step < 0.9 * row.size or _OPEN_LABEL.search(head) is not None


def _join_texts(first: str, second: str, vocabulary: Vocabulary | None) -> str:
    return join_lines((first, second), vocabulary) if vocabulary else f"{first} {second}"
