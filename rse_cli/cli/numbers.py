"""The columns of ``--explain``: rank, evidence with the terms that matched, and what the method makes of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rse_cli.cli.glyphs import Glyphs
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.inspect import DocumentView

SHORT_NAMES = {
    "relevance": "rel",
    "penalty": "pen",
    "similarity": "sim",
    "length_factor": "len",
    "quality": "qual",
    "density": "dens",
}
"""What heads a column, where that is not its name."""

HIDDEN = ("z", "value", "dense_rank", "lexical_rank")
"""`z` is the sum of the columns before it, ranks follow from what they rank, and every picture shows the value."""

_WIDTHS = {"rank": 4, "relevance": 4, "penalty": 4, "score": 5, "decay": 5}


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of numbers.

    Parameters
    ----------
    names : sequence of str
        Keys of `DocumentView.numbers`.
    n_queries : int
        With several queries a first column says whose numbers a row holds.
    match_terms : callable
        Document, chunk and query to the terms that the chunk holds.
    """

    names: Sequence[str]
    n_queries: int
    match_terms: Callable[[DocumentView, int, int], Sequence[str]]

    @property
    def head(self) -> str:
        """The names over the columns."""
        owner = "  q" if self.n_queries > 1 else ""
        return owner + "".join(f" {SHORT_NAMES.get(name, name):>{measure_column(name)}}" for name in self.names)

    @property
    def width(self) -> int:
        """Cells of all columns."""
        return len(self.head)

    def format_row(self, view: DocumentView, chunk: int, glyphs: Glyphs) -> tuple[str, str]:
        """Return the numbers of a chunk for the query whose value it has, and the terms that matched."""
        query = int(view.owners[chunk])
        if query < 0:
            return "", ""
        owner = f" {query:>2}" if self.n_queries > 1 else ""
        cells = [(name, float(view.numbers[query][name][chunk])) for name in self.names]
        numbers = "".join(f" {format_cell(name, value, glyphs):>{measure_column(name)}}" for name, value in cells)
        return owner + numbers, " ".join(self.match_terms(view, chunk, query))


def choose_names(view: DocumentView) -> list[str]:
    """Return the columns to show."""
    return [name for name in (view.numbers[0] if view.numbers else {}) if name not in HIDDEN]


def measure_column(name: str) -> int:
    """Return the cells of a column."""
    return max(_WIDTHS.get(name, 3), len(SHORT_NAMES.get(name, name)))


def format_cell(name: str, value: float, glyphs: Glyphs) -> str:
    """Return a number in as few cells as it needs: without the 0 before the point.

    Examples
    --------
    >>> from rse_cli.cli.glyphs import UNICODE
    >>> [format_cell("c0", one, UNICODE) for one in (0.524, -0.08, 1.0)], format_cell("rank", 3.0, UNICODE)
    (['.52', '−.1', '1.0'], '3')
    """
    if math.isnan(value):
        return ""
    if name == "rank":
        return f"{value:.0f}"
    cells = measure_column(name)
    for decimals in range(cells - 1, 0, -1):
        text = f"{value:.{decimals}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{decimals}f}"
        if text.startswith(("1.", "-1.")) and abs(value) < 1:
            text = f"{value:.1f}"
        if len(text) <= cells:
            return text.replace("-", glyphs.minus)
    return f"{value:.0f}".replace("-", glyphs.minus)
