"""Lines of two columns that a library has taken for one, since the gutter is narrow: parted again. Pure.

A library joins what is drawn one after the other on a baseline unless there is a wide gap. A page that is drawn row by
row then has lines that run across its columns. What gives them away is that words begin at one edge in line after line,
each after a gap that is wider than a word space.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rse_cli.adapters.readers.pdf_lines import Fragment
from rse_cli.adapters.readers.pdf_words import clean_text
from rse_cli.dataclass import dataclass

_EDGE = 3.0
"""Points by which the left edges of one column's lines may differ, as for `find_gutter`."""

_LEAST_GAP = 0.42
"""Of the font size: a word space is a quarter, and below 0.4 `order_regions` takes nothing for a gutter."""

_LEAST_LINES = 8
"""In fewer lines of justified prose wide spaces come to stand below each other by chance."""

_MAX_CROSSING = 0.1
"""Lines across the gutter, as a share of those that are parted: a heading, or what the columns are interrupted by."""

_MAX_PARTS = 4
"""Columns of prose on one page."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word on a line, and where it begins and ends."""

    x0: float
    x1: float
    text: str


Worded = tuple[Fragment, tuple[Word, ...]]


def part_merged(lines: Sequence[Worded]) -> list[Fragment]:
    """Part the lines that run across a gutter.

    Parameters
    ----------
    lines : sequence of (Fragment, tuple of Word)
        All lines of a page in one direction, each with its words from left to right.

    Returns
    -------
    list of Fragment
        In the same order, each parted line as its parts; where no gutter is found, as they were.
    """
    parted = list(lines)
    for _ in range(_MAX_PARTS - 1):
        edge = _find_edge(parted)
        if edge is None:
            break
        parted = [part for line in parted for part in _part(line, edge)]
    return [fragment for fragment, _ in parted]


def _find_edge(lines: Sequence[Worded]) -> float | None:
    """Return the edge at which most lines have a word after a wide gap, if hardly any line between them runs across."""
    inside = [(words[at].x0, row, True) for row, (one, words) in enumerate(lines) for at in _list_gaps(one, words)]
    # Where the left column is ragged, only its longest lines are merged: the others show the edge by themselves.
    starts = sorted([*inside, *((one.x0, row, False) for row, (one, _) in enumerate(lines))])
    best: frozenset[int] = frozenset()
    edge = None
    near: Counter[int] = Counter()
    end = 0
    for x, row, is_inside in starts:
        while end < len(starts) and starts[end][0] <= x + _EDGE:
            near[starts[end][1]] += 1
            end += 1
        if is_inside and len(near) > len(best):
            best, edge = frozenset(near), x
        near[row] -= 1
        if not near[row]:
            del near[row]
    if edge is None or len(best) < _LEAST_LINES:
        return None
    top, bottom = (choose(lines[row][0].baseline for row in best) for choose in (min, max))
    crossing = sum(
        row not in best and one.x0 < edge - _EDGE and one.x1 > edge and top <= one.baseline <= bottom
        for row, (one, _) in enumerate(lines)
    )
    return edge if crossing <= _MAX_CROSSING * len(best) else None


def _list_gaps(line: Fragment, words: Sequence[Word]) -> list[int]:
    """Return the indices of words after a gap; a line of few words is no line of prose in columns."""
    if len(words) < 6:
        return []
    return [at for at in range(1, len(words)) if words[at].x0 - words[at - 1].x1 >= _LEAST_GAP * line.size]


def _part(line: Worded, edge: float) -> list[Worded]:
    fragment, words = line
    at = next((at for at in _list_gaps(fragment, words) if edge <= words[at].x0 <= edge + _EDGE), None)
    if at is None:
        return [line]
    sides = words[:at], words[at:]
    return [
        (replace(fragment, x0=side[0].x0, x1=side[-1].x1, text=clean_text(" ".join(word.text for word in side))), side)
        for side in sides
    ]
