"""Figures to Markdown: tables, and marks that say whether a target was met."""

from __future__ import annotations

from collections.abc import Sequence


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, the first column to the left, the others to the right, padded to be read as it is.

    Examples
    --------
    >>> print(format_table(["method", "recall"], [["rse", "64.1"], ["top-k", "7.5"]]))
    | method | recall |
    |--------|-------:|
    | rse    |   64.1 |
    | top-k  |    7.5 |
    """
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|".join("-" * (width + 2) if at == 0 else "-" * (width + 1) + ":" for at, width in enumerate(widths))
    return "\n".join([line(header), f"|{rule}|", *map(line, rows)])


def mark_least(value: float, target: float, digits: int = 1) -> str:
    """Return a figure that should reach a target, with what came of it.

    Examples
    --------
    >>> mark_least(62.03, 62), mark_least(61.9, 62)
    ('62.0 (≥ 62: ok)', '61.9 (≥ 62: BELOW)')
    """
    verdict = "ok" if value >= target else "BELOW"
    return f"{value:,.{digits}f} (≥ {target:,g}: {verdict})"


def mark_most(value: float, target: float, digits: int = 1) -> str:
    """Return a figure that should not exceed a target, with what came of it.

    Examples
    --------
    >>> mark_most(2322.4, 2450, 0), mark_most(0.61, 0.5, 2)
    ('2,322 (≤ 2,450: ok)', '0.61 (≤ 0.5: ABOVE)')
    """
    verdict = "ok" if value <= target else "ABOVE"
    return f"{value:,.{digits}f} (≤ {target:,g}: {verdict})"
