"""Bars on one scale: a value as a length to the right of the zero line, or to its left, in eighths of a cell."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rse_cli.cli.glyphs import Glyphs
from rse_cli.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Cells on either side of the zero line, which has a cell of its own, and the value of one cell.

    Raises
    ------
    ValueError
        If a cell is worth nothing.
    """

    left: int
    right: int
    unit: float

    def __post_init__(self) -> None:
        if not (self.unit > 0 and math.isfinite(self.unit)):
            raise ValueError(f"a cell can't be worth {self.unit}")

    @property
    def width(self) -> int:
        """Cells of a bar with the zero line."""
        return self.left + 1 + self.right


def make_scale(values: Iterable[float], width: int) -> Scale:
    """Return the scale on which all values fit into `width` cells.

    Parameters
    ----------
    values : iterable of float
        Of every row of the screen; nan is passed over.
    width : int
        Cells, at least 3.

    Examples
    --------
    >>> make_scale([-1.0, 3.0], 9)
    Scale(left=2, right=6, unit=0.5)
    """
    found = [value for value in values if not math.isnan(value)]
    low, high = min([0.0, *found]), max([0.0, *found])
    cells = width - 1
    if low == high:
        return Scale(0, cells, 1.0)
    left = 0
    if low < 0:
        left = cells if high == 0 else min(max(round(cells * -low / (high - low)), 1), cells - 1)
    right = cells - left
    unit = max(-low / left if left else 0.0, high / right if right else 0.0)
    # The smallest numbers vanish when they are divided.
    return Scale(left, right, unit or 1.0)


def draw_bar(value: float, scale: Scale, glyphs: Glyphs) -> tuple[str, str, str]:
    """Return what stands to the left of the zero line, the line, and what stands to its right.

    The length is ``|value| / unit`` cells, rounded to the parts of a cell that the glyphs have.

    Examples
    --------
    >>> from rse_cli.cli.glyphs import ASCII, UNICODE
    >>> draw_bar(-0.25, Scale(2, 2, 0.5), UNICODE), draw_bar(0.9, Scale(2, 2, 0.5), ASCII)
    ((' ▐', '│', '  '), ('  ', '|', '##'))
    """
    parts = len(glyphs.right)
    length = 0 if math.isnan(value) else round(abs(value) / scale.unit * parts)
    full, part = divmod(length, parts)
    to_left = value < 0
    steps = glyphs.left if to_left else glyphs.right
    tip = steps[part - 1] if part else ""
    bar = tip + steps[-1] * full if to_left else steps[-1] * full + tip
    left = bar if to_left else ""
    right = "" if to_left else bar
    return left.rjust(scale.left), glyphs.zero, right.ljust(scale.right)


def measure_bar(bar: str, glyphs: Glyphs) -> float:
    """Return the length of a drawn bar in cells.

    Examples
    --------
    >>> from rse_cli.cli.glyphs import UNICODE
    >>> measure_bar("██▌", UNICODE), measure_bar(" ▐█", UNICODE)
    (2.5, 1.5)
    """
    parts = len(glyphs.right)
    sizes = {" ": 0, **{sign: at + 1 for steps in (glyphs.right, glyphs.left) for at, sign in enumerate(steps)}}
    return sum(sizes[sign] for sign in bar) / parts
