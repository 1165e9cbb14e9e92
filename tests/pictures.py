"""A small synthetic answer to draw: two documents with made-up values, so that every screen can be reviewed by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import StringIO

import numpy as np
from rich.console import Console
from rich.text import Text

from rse_cli.cli.folding import Fold, fold_rows
from rse_cli.cli.glyphs import UNICODE, Glyphs
from rse_cli.cli.numbers import Table
from rse_cli.cli.picture import Sheet, Style, render_picture
from rse_cli.core.models import Chunk
from rse_cli.pipeline.inspect import DocumentView, Mark

NAN = math.nan

PUMP = (
    "# Pump manual\n\n",
    "Clean the filter of the pump every spring with warm water, and let it dry in the shade. ",
    "Never use soap on the seal.\n",
    "\x1b[31mRed\x1b[0m text, a\ttab and \u202ebidi.\n",
    "泵站每年春天清洗过滤器，然后在阴凉处晾干，再装回原处，不要在密封件上使用肥皂。\n",
    "Drain the pump before the first frost.\n",
)
PUMP_VALUES = (-0.25, 2.0, 0.5, -0.0625, 1.0, -0.75)
LAMP_VALUES = (NAN,) * 3 + (-0.5, -0.375, -0.25, 0.125, -0.5) + (NAN,) * 4
N_LAMP = len(LAMP_VALUES)


def make_view(
    path: str,
    title: str,
    values: Sequence[float],
    marks: Sequence[Mark] = (),
    number: int = 0,
    numbers: dict[str, Sequence[float]] | None = None,
) -> DocumentView:
    held = np.array(values)
    owners = np.where(np.isnan(held), -1, 0)
    columns = {name: np.array(column) for name, column in (numbers or {}).items()}
    return DocumentView(number, path, title, held, held, owners, owners, (columns,), tuple(marks))


def make_chunks(texts: Sequence[str], *, pages: bool = False) -> dict[int, Chunk]:
    chunks, at = {}, 0
    for ord_, text in enumerate(texts):
        place = {"start_page": ord_ // 4 + 1, "end_page": ord_ // 4 + 1} if pages else {}
        lines = {} if pages else {"start_line": 2 * ord_ + 1, "end_line": 2 * ord_ + 1}
        chunks[ord_] = Chunk(ord_, at, at + len(text), text, **place, **lines)
        at += len(text)
    return chunks


PUMP_NUMBERS = {
    "rank": (3, 0, 2, 4, 1, 5),
    "c0": (0.125, 0.75, 0.5, -0.0625, 1.0, 0.0),
    "f0": (0.25, 1.0, 0.125, 0.0, 0.5, 0.0625),
    "relevance": (0.02, 1.4, 0.8, 0.01, 0.8, 0.0),
    "penalty": (0.075,) * 6,
    "value": PUMP_VALUES,
}


def make_sheets() -> list[Sheet]:
    """A document with a segment of three chunks and one of a single chunk, and one without any."""
    marks = (
        Mark(0, 1, 4, 15, 200, 2.1375, cost=0.3),
        Mark(1, 4, 5, 200, 240, 0.7, cost=0.3),
    )
    pump = make_view("docs/pump.md", "Pump manual", PUMP_VALUES, marks, 0, PUMP_NUMBERS)
    lamp_numbers = {
        name: [column[0] if not math.isnan(v) else NAN for v in LAMP_VALUES] for name, column in PUMP_NUMBERS.items()
    }
    lamp = make_view("docs/lamp.pdf", "The lamp of the lighthouse", LAMP_VALUES, (), 1, lamp_numbers)
    lamp_rows = fold_rows(lamp.values, [], 0.0, 1)
    lamp_chunks = make_chunks([f"The lamp turns for the time number {n}. " for n in range(N_LAMP)], pages=True)
    return [
        Sheet(pump, fold_rows(pump.values, [(1, 4), (4, 5)], 0.0, 1), make_chunks(PUMP)),
        Sheet(lamp, lamp_rows, {row: lamp_chunks[row] for row in lamp_rows if not isinstance(row, Fold)}),
    ]


def draw(width: int, glyphs: Glyphs = UNICODE, *, explain: bool = False, sheets: Sequence[Sheet] | None = None) -> str:
    """The screen without colour."""
    table = None
    if explain:
        table = Table(
            [name for name in PUMP_NUMBERS if name != "value"], 1, lambda view, chunk, query: ["pump"] * (chunk % 2)
        )
    lines = render_picture(make_sheets() if sheets is None else sheets, Style(width, glyphs, table=table))
    return "".join(f"{line.plain}\n" for line in lines)


def paint(lines: Sequence[Text]) -> str:
    """What a terminal is sent."""
    buffer = StringIO()
    console = Console(file=buffer, force_terminal=True, color_system="standard", width=10_000, legacy_windows=False)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    return buffer.getvalue()
