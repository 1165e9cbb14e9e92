"""Lines of one column of a PDF page -> paragraphs and table rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from rse_cli.adapters.readers.pdf_lines import Fragment, Line, build_line, close_up, group_rows
from rse_cli.adapters.readers.pdf_tables import join_cells, join_heads, join_labels, mark_rows
from rse_cli.adapters.readers.pdf_words import Vocabulary
from rse_cli.dataclass import dataclass

_BULLET = re.compile(r"^(?:[•●○■□▪◦▶➢✓]\s?|[*–—-]\s|\((?:\d{1,2}|[a-z]|[ivx]{1,4})\)\s|(?:\d{1,2}|[a-z])[.)]\s)")
_HANGING = re.compile(r"^\(?\d{1,3}(?:\.\d{1,3})*[.)]?\s|^\(?[ivx]{1,5}[.)]\s")
_NUMBERED = re.compile(r"\b(?:item|items|note|notes|part|section|no\.|nos\.|rule|exhibit|level|page)$", re.IGNORECASE)


_PARAGRAPH_STEP = 1.25
"""Lines this many times their usual distance apart are in different paragraphs: half a line's space is common there."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A reflowed paragraph, a heading or a table row.

    Parameters
    ----------
    lines : tuple of str
        The texts of its lines; `join_lines` makes one line of them.
    size : float
        Font size.
    bold, is_row : bool
        As in `Line`.
    gap : bool
        Whether white space of more than a line's distance, or a new column, stands before it.
    open_end : bool
        Whether its last line was full, so that it may go on in the next column or page.
    """

    lines: tuple[str, ...]
    size: float
    bold: bool
    is_row: bool
    gap: bool
    open_end: bool


def lay_out_region(fragments: Iterable[Fragment], vocabulary: Vocabulary | None = None) -> list[Paragraph]:
    """Turn the fragments of one column, or of a page without columns, into paragraphs and table rows.

    `vocabulary` decides whether words cut at a line end inside a table keep their hyphen; without it all do.
    """
    lines = [line for line in map(build_line, group_rows(fragments)) if line.text.strip()]
    return reflow(join_labels(mark_rows(join_cells(join_heads(lines), vocabulary)), vocabulary))


def reflow(lines: Sequence[Line]) -> list[Paragraph]:
    """Join the lines of one column into paragraphs; table rows and lines of several cells stay alone."""
    leading = _typical_leading(lines)
    rights = _right_edges(lines, leading)
    paragraphs: list[Paragraph] = []
    part: list[Line] = []
    before: Line | None = None
    for line, right in zip(lines, [0.0, *rights], strict=False):
        if part and not _goes_on(part, line, right, leading):
            paragraphs.append(_close(part, before, right, leading))
            before, part = part[-1], []
        part.append(line)
    if part:
        paragraphs.append(_close(part, before, rights[-1], leading))
    return paragraphs


def _typical_leading(lines: Sequence[Line]) -> float:
    """The distance of baselines inside paragraphs, in em: the median over steps that can be one."""
    steps = [(b.top - a.baseline) / b.size for a, b in pairwise(lines)]
    steps = [step for step in steps if 0.8 < step < 2.2]
    return median(steps) if steps else 1.2


def _right_edges(lines: Sequence[Line], leading: float) -> list[float]:
    """For each line the right edge of its measure: of its block if that has four lines of prose, else of the column."""
    column = max((line.x1 for line in lines if len(line.cells) == 1), default=0.0)
    edges: list[float] = []
    block: list[Line] = []
    for i, line in enumerate(lines):
        block.append(line)
        following = lines[i + 1] if i + 1 < len(lines) else None
        if following is None or following.top - line.baseline > _PARAGRAPH_STEP * leading * line.size:
            prose = [part.x1 for part in block if not part.is_row and len(part.cells) == 1]
            edges.extend([max(prose) if len(prose) >= 4 else column] * len(block))
            block = []
    return edges


def _goes_on(part: Sequence[Line], line: Line, right: float, leading: float) -> bool:
    """Say whether `line` continues the paragraph whose lines are `part`."""
    last = part[-1]
    if last.is_row or line.is_row or len(last.cells) > 1 or len(line.cells) > 1:
        return False
    close = 0 < line.top - last.baseline <= _PARAGRAPH_STEP * leading * line.size + 0.5
    if not close or not 0.9 < line.size / last.size < 1.1:
        return False
    if _BULLET.match(line.text) and not _NUMBERED.search(last.text):
        return False
    lower = line.text[0].islower()
    full = _is_full(last, line, right)
    if lower and full:
        return True
    unfinished = last.text[-1].isalnum() or last.text[-1] in ",-‐\u00ad"
    return last.bold == line.bold and _keeps_edge(part, line) and (full or (lower and unfinished))


def _keeps_edge(part: Sequence[Line], line: Line) -> bool:
    """Say whether `line` begins where the next line of the paragraph should: no new indent, no return from one."""
    shift = (line.x0 - part[-1].x0) / line.size
    if len(part) == 1:
        hanging = _BULLET.match(part[0].text) or _HANGING.match(part[0].text)
        return -5 <= shift <= 0.7 or (shift > 0 and hanging is not None)
    return abs(shift) <= 0.7


def _is_full(line: Line, following: Line, right: float) -> bool:
    """Say whether the next line's first word would not have fitted on `line`: then the line end is only wrapping."""
    per_char = (following.x1 - following.x0) / max(1, len(following.text))
    word = len(close_up(following.text).split(" ", 1)[0])
    return line.x1 + (word + 0.5) * per_char > right - 0.3 * line.size


def _close(part: Sequence[Line], before: Line | None, right: float, leading: float) -> Paragraph:
    """Make a paragraph of `part`, which stands below the line `before` or, without one, at the top of its column."""
    first, last = part[0], part[-1]
    step = _PARAGRAPH_STEP * leading * max(first.size, before.size) + 0.5 if before else 0.0
    return Paragraph(
        lines=tuple(line.text for line in part),
        size=first.size,
        bold=all(line.bold for line in part),
        is_row=first.is_row,
        gap=before is None or first.top - before.baseline > step,
        open_end=not first.is_row and last.x1 > right - 6 * last.size,
    )
