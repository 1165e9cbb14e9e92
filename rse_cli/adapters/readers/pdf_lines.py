"""Fragments of text on a PDF page -> lines and table rows. Pure: numbers and strings only.

Lengths are in points, `y` grows downwards; an em is the font size at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, takewhile

from rse_cli.dataclass import dataclass

CELL_GAP = "  "
"""What stands between two cells of a row, so that columns stay visible in plain text."""

_NUMERIC = re.compile(r"^[(<]?[$€£¥]?[(+–-]?[$€£¥]?\.?\d(?:[\d,.]*\d)?[)%]*$|^[—–-]+$")
_CURRENCY = re.compile(r"^[(]?(?:US|C|A)?[$€£¥][(]?$|^\($")
_APART = re.compile(r"(?<=[\d)]) (?=[)%]+(?:[ .,;:]|$))|(?<= \() (?=\d)")
_CLOSING = re.compile(r"^[)%]+$")
_LEADERS = re.compile(r"(?:\s?[.…·_]){4,}\s?")
_MARKER = re.compile(
    r"^(?:[•●○■□▪◦▶➢✓*–—-]|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})[.)]|\(?\d{1,2}(?:\.\d{1,2}){1,3}[.)]?"
    r"|(?i:item|note|part|section|exhibit|article|schedule)\s+[\w.]{1,6}[.:)]?)$"
)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of text on one baseline without a wide gap inside: what a PDF library calls a line."""

    x0: float
    y0: float
    x1: float
    y1: float
    baseline: float
    size: float
    bold: bool
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """Text of a line between two wide gaps, and where it begins and ends."""

    text: str
    x0: float
    x1: float


@dataclass(frozen=True, slots=True)
class Line:
    """All fragments on one baseline of one column.

    Parameters
    ----------
    cells : tuple of Cell
        From left to right, one or more.
    top, baseline : float
        Baselines of its first and last line: they differ in a row whose label has several lines.
    size : float
        Font size of most of its characters.
    bold : bool
        Whether all of it is bold.
    is_row : bool
        Whether it is a row of a table rather than prose.
    """

    cells: tuple[Cell, ...]
    top: float
    baseline: float
    size: float
    bold: bool
    is_row: bool

    @property
    def text(self) -> str:
        """The cells' texts with their gaps."""
        return CELL_GAP.join(cell.text for cell in self.cells)

    @property
    def x0(self) -> float:
        """Where the first cell begins."""
        return self.cells[0].x0

    @property
    def x1(self) -> float:
        """Where the last cell ends."""
        return self.cells[-1].x1


@lru_cache(maxsize=1 << 14)  # every token is asked about ten times: for rows, cells and columns
def is_numeric(token: str) -> bool:
    """Say whether a token is a number, an amount, a percentage or the dash that stands for nil.

    Examples
    --------
    >>> [is_numeric(t) for t in ("$1,234", "(5.6)%", "—", "Q1", "10-K")]
    [True, True, True, False, False]
    """
    return _NUMERIC.match(token) is not None


def is_amount(text: str) -> bool:
    """Say whether a cell holds nothing but numbers and currency signs, unlike "December 31, 2018" or "Sales (1)"."""
    return all(is_numeric(token) or _CURRENCY.match(token) for token in text.split())


def group_rows(fragments: Iterable[Fragment]) -> list[list[Fragment]]:
    """Group fragments that share a baseline, top to bottom; inside a row by `x0`.

    A raised or lowered note (smaller, at least half of its height beside the row) belongs to the row.
    """
    rows: list[list[Fragment]] = []
    mains: list[Fragment] = []  # of each row the fragment of the largest type
    for piece in sorted(fragments, key=lambda f: (f.baseline, f.x0)):
        for i in range(len(rows) - 1, max(-1, len(rows) - 4), -1):
            if piece.baseline - mains[i].baseline < mains[i].size + piece.size and _share_baseline(mains[i], piece):
                rows[i].append(piece)
                mains[i] = piece if piece.size > mains[i].size else mains[i]
                break
        else:
            rows.append([piece])
            mains.append(piece)
    for row in rows:
        row.sort(key=lambda f: f.x0)
    return rows


def _share_baseline(one: Fragment, other: Fragment) -> bool:
    small, large = (one, other) if one.size <= other.size else (other, one)
    # 0.3 em: half of the tightest leading in use is 0.5 em, rounding of positions stays below 0.1 em.
    if abs(one.baseline - other.baseline) <= 0.3 * small.size:
        return True
    if small.size >= 0.8 * large.size:
        return False
    beside = min(one.y1, other.y1) - max(one.y0, other.y0)
    apart = max(one.x0, other.x0) - min(one.x1, other.x1)
    return beside >= 0.6 * (small.y1 - small.y0) and apart < 0.5 * large.size


def build_line(row: Sequence[Fragment]) -> Line:
    """Join the fragments of one row (sorted by `x0`) into cells.

    Gaps over 1 em part cells (0.6 em beside a number); a currency sign keeps to its number, a closing
    parenthesis and a percent sign follow theirs without a space.
    """
    pieces = [cell for fragment in row for cell in _split_leaders(fragment)]
    size = max(row, key=lambda f: len(f.text)).size
    even = _is_justified(pieces, size)
    cells = pieces[:1]
    for piece in pieces[1:]:
        last = cells[-1]
        glue = " " if even else _choose_glue(last, piece, size)
        if glue == CELL_GAP:
            cells.append(piece)
        else:
            cells[-1] = Cell(last.text + glue + piece.text, last.x0, max(last.x1, piece.x1))
    cells = [cell for cell in cells if cell.text] or cells[:1]
    if len(cells) == 2 and _MARKER.match(cells[0].text) and not is_numeric(cells[1].text):
        cells = [Cell(f"{cells[0].text} {cells[1].text}", cells[0].x0, cells[1].x1)]
    texts = [close_up(cell.text) for cell in cells]
    is_row = _is_row(texts)
    if is_row:
        cells = [replace(cell, text=text) for cell, text in zip(cells, texts, strict=True)]
    bold = all(f.bold for f in row if any(map(str.isalnum, f.text)))
    baseline = max(row, key=lambda f: (f.size, len(f.text))).baseline
    return Line(tuple(cells), baseline, baseline, size, bold, is_row)


def _split_leaders(fragment: Fragment) -> list[Cell]:
    """Cut a fragment at dot leaders and at runs of spaces."""
    parts = re.split(r"\s{3,}", _LEADERS.sub("   ", fragment.text).strip())
    per_char = (fragment.x1 - fragment.x0) / max(1, len(fragment.text))
    cells, at = [], 0
    for part in filter(None, parts):
        at = fragment.text.find(part, at)
        end = at + len(part)
        text = re.sub(r"\s+", " ", part)
        cells.append(Cell(text, fragment.x0 + at * per_char, fragment.x0 + end * per_char))
        at = end
    return cells or [Cell("", fragment.x0, fragment.x1)]


def _is_justified(pieces: Sequence[Cell], size: float) -> bool:
    """Say whether the gaps are those of stretched prose: many, equal, narrow, and between words."""
    gaps = [b.x0 - a.x1 for a, b in pairwise(pieces)]
    words = sum(not is_numeric(piece.text) for piece in pieces)
    return len(gaps) >= 3 and max(gaps) < 2.5 * size and max(gaps) - min(gaps) < 0.25 * size and words > len(gaps) // 2


def close_up(text: str) -> str:
    """Take out the spaces inside "12.5 %" and "( 5 )": in a row they are one number, in prose the author's choice."""
    return _APART.sub("", text) if "%" in text or "(" in text or ")" in text else text


def _choose_glue(last: Cell, piece: Cell, size: float) -> str:
    gap = piece.x0 - last.x1
    if not last.text or not piece.text:
        return CELL_GAP if gap > size and last.text else ""
    tail = close_up(last.text).rsplit(" ", 1)[-1]
    if _CLOSING.match(piece.text) and (tail[-1].isdigit() or tail[-1] in ")%—–-"):
        return ""
    if _CURRENCY.match(tail) and (piece.text[0].isdigit() or piece.text[0] in "(—–-."):
        return "" if tail.endswith("(") else " "
    numeric = is_numeric(tail) or is_numeric(close_up(piece.text).split(" ", 1)[0]) or _CURRENCY.match(piece.text)
    if gap > (0.6 if numeric else 1.0) * size:
        return CELL_GAP
    return " " if gap > 0.12 * size else ""


def _is_row(cells: Sequence[str]) -> bool:
    """Say whether a line reads as a table row: by its wide gaps and numbers, or by numbers alone."""
    tokens = [token for cell in cells for token in cell.split()]
    numbers = sum(map(is_numeric, tokens))
    if len(cells) == 1:
        # A tight table sets its numbers a space apart; prose that lists numbers has commas or words between.
        last = list(takewhile(lambda token: is_numeric(token) or _CURRENCY.match(token), reversed(tokens)))
        trailing = sum(map(is_numeric, last))
        return trailing >= 3 or (trailing == 2 and trailing >= 0.5 * len(tokens))
    return len(cells) >= 3 or numbers >= 2 or is_numeric(cells[-1].split()[-1] if cells[-1].split() else "")
