"""Points of two metrics drawn with characters."""

from __future__ import annotations

import sys
from collections.abc import Sequence

COLUMNS, ROWS = 56, 14
"""Fits beside its labels into 80 columns, and with a table on a screen of 40 lines."""

Pair = tuple[float, float]


def draw_front(
    points: Sequence[Pair], current: Pair, names: Sequence[str], marks: tuple[str, str] = ("●", "○")
) -> list[str]:
    """Return a plot of the first metric over the second as lines; the current setting is marked apart.

    Examples
    --------
    >>> lines = draw_front([(0.9, 3000.0), (0.5, 1000.0)], (0.6, 2500.0), ["recall", "chars"])
    >>> lines[0].split(), lines[1].endswith("●"), lines[-1].split()
    (['recall', '●', 'front', '○', 'current'], True, ['1,000', 'chars', '3,000'])
    """
    mark, here = marks
    ys, xs = zip(*points, current, strict=True)
    low_y, high_y, low_x, high_x = min(ys), max(ys), min(xs), max(xs)
    grid = [[" "] * COLUMNS for _ in range(ROWS)]
    for (y, x), sign in [*((point, mark) for point in points), (current, here)]:
        row = round((high_y - y) / ((high_y - low_y) or 1.0) * (ROWS - 1))
        column = round((x - low_x) / ((high_x - low_x) or 1.0) * (COLUMNS - 1))
        grid[row][column] = sign
    top, bottom = _format(names[0], high_y), _format(names[0], low_y)
    margin = max(len(top), len(bottom))
    labels = [top, *[""] * (ROWS - 2), bottom]
    left, right = _format(names[1], low_x), _format(names[1], high_x)
    rule = " " * (COLUMNS - len(left) - len(right))
    return [
        f"{names[0]}  {mark} front  {here} current",
        *(f"{label:>{margin}} |{''.join(row)}".rstrip() for label, row in zip(labels, grid, strict=True)),
        f"{'':>{margin}} +{'-' * COLUMNS}",
        f"{'':>{margin}}  {left}{names[1].center(len(rule))}{right}",
    ]


def choose_marks() -> tuple[str, str]:
    """Return the marks of points and of the current setting that stdout can show."""
    try:
        "●○".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "*", "o"
    return "●", "○"


def _format(metric: str, value: float) -> str:
    return f"{value:,.0f}" if metric == "chars" else f"{value:.2f}" if metric == "spans" else f"{100 * value:.1f}"
