"""An inspected answer to the screen, and to files: which rows are drawn, their text, and where the lines go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rse_cli.cli import captions
from rse_cli.cli.folding import Fold, fold_rows
from rse_cli.cli.glyphs import UNICODE, Glyphs, choose_glyphs, show_line, show_name
from rse_cli.cli.inspecting import Inspected, InspectFlags, count_documents, list_candidate_paths
from rse_cli.cli.numbers import Table, choose_names
from rse_cli.cli.output import has_colour, name_count, write_result
from rse_cli.cli.picture import Sheet, Style, render_picture
from rse_cli.cli.render import measure_width
from rse_cli.errors import UsageError
from rse_cli.pipeline.inspect import DocumentView, Inspection, fetch_shown, inspect_answer
from rse_cli.timings import stage

if TYPE_CHECKING:
    from rich.text import Text

MOST_EXPLAINED = 1 << 30  # with --chunk any chunk may be asked for, so every reason is kept


@stage("render")
def print_inspection(inspected: Inspected, flags: InspectFlags) -> None:
    """Print an inspected answer, and write it to the files asked for."""
    print_drawn(lambda width, glyphs: draw_lines(inspected, flags, width, glyphs), flags)


def print_drawn(draw: Callable[[int, Glyphs], Sequence[Text]], flags: InspectFlags) -> None:
    """Print what `draw` makes of a width and signs; first write it to the files asked for."""
    keep_drawn(draw, flags)
    write_lines(draw(measure_width(), choose_glyphs(sys.stdout)))


def keep_drawn(draw: Callable[[int, Glyphs], Sequence[Text]], flags: InspectFlags) -> None:
    """Write what `draw` makes to the files asked for, in UTF-8 whatever stdout is."""
    if flags.svg is None and flags.html is None:
        return
    from rse_cli.cli.exporting import export_picture

    width = measure_width()
    export_picture(draw(width, UNICODE), width, svg=flags.svg, html=flags.html)


def write_lines(lines: Sequence[Text]) -> None:
    """Write lines to stdout, coloured where that is welcome."""
    if not has_colour(sys.stdout):
        # A console has nothing to do here, and takes 20 ms to import and print.
        write_result("".join(f"{line.plain}\n" for line in lines))
        return
    from io import StringIO

    from rich.console import Console

    buffer = StringIO()
    console = Console(file=buffer, force_terminal=True, color_system="standard", width=10_000, legacy_windows=False)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)
    write_result(buffer.getvalue())


def draw_lines(inspected: Inspected, flags: InspectFlags, width: int, glyphs: Glyphs) -> list[Text]:
    """Return all lines of the screen."""
    from rich.text import Text

    answer, label = inspected.answer, inspected.contenders[0].label
    lines = captions.render_summary(answer, label, width, glyphs)
    if flags.chunk is not None:
        return [*lines, Text(""), *_draw_chunk(inspected, flags.chunk, width, glyphs)]
    if flags.compare or inspected.case is not None:
        from rse_cli.cli.draw_comparison import draw_comparison

        return [*lines, Text(""), *draw_comparison(inspected, flags.drawing, width, glyphs)]
    inspection = inspect_answer(inspected.snapshot, answer, count_documents(inspected, flags.drawing))
    sheets = [_make_sheet(inspected, inspection, view, flags) for view in inspection.documents]
    table = None
    if flags.drawing.explain and sheets:
        table = Table(choose_names(sheets[0].view), len(answer.request.queries), inspection.match_terms)
    weighed = inspection.weighed
    picture = render_picture(sheets, Style(width, glyphs, weighed.adds_up, weighed.floor, table))
    lines += [Text(""), *picture] if picture else []
    hidden = inspection.n_documents - len(sheets)
    if hidden > 0:
        more = f"{name_count(hidden, 'more document')} with a candidate (--documents N)"
        lines += [Text(""), *captions.render_hidden(more, width, glyphs)]
    skipped = captions.render_not_chosen(inspection.not_chosen, len(answer.request.queries), width, glyphs)
    lines += [Text(""), *skipped] if skipped else []
    return [*lines, Text(""), *captions.render_reading(answer.request.method, width, glyphs)]


def _make_sheet(inspected: Inspected, inspection: Inspection, view: DocumentView, flags: InspectFlags) -> Sheet:
    """Choose the rows of a document, and fetch their text."""
    spans = [(mark.start_chunk, mark.end_chunk) for mark in view.marks]
    rows: list[int | Fold] = list(range(view.n_chunks))
    if not flags.drawing.unfold:
        rows = fold_rows(view.values, spans, inspection.weighed.floor, flags.drawing.around)
    wanted = [(view.number, row) for row in rows if not isinstance(row, Fold)]
    chunks = fetch_shown(inspected.snapshot, wanted)
    return Sheet(view, rows, {ord_: chunk for (_, ord_), chunk in chunks.items()})


def explain_named_chunk(inspected: Inspected, named: str, glyphs: Glyphs = UNICODE) -> list[str]:
    """Return what is to be said of the chunk that ``PATH#N`` names.

    Raises
    ------
    UsageError
        If there is no such document or chunk.
    """
    from rse_cli.cli.explaining import explain_chunk, localise
    from rse_cli.pipeline.listing import list_document

    given, _, number = named.rpartition("#")
    listing = list_document(inspected.snapshot, list_candidate_paths(inspected.root, given))
    path, ord_ = listing.record.path, int(number)
    if ord_ >= len(listing.chunks):
        count = name_count(len(listing.chunks), "chunk")
        raise UsageError(f"{path} has {count}, counted from 0, so no chunk {ord_:,}")
    chunk = listing.chunks[ord_]
    lines = [
        f"Chunk {ord_} of {show_name(path, glyphs)} holds characters {chunk.start_char:,} to {chunk.end_char:,}, "
        f"{len(chunk.text):,} of them: “{show_line(chunk.text, glyphs)}”"
    ]
    inspection = inspect_answer(inspected.snapshot, inspected.answer, most_skipped=MOST_EXPLAINED)
    view = next((view for view in inspection.documents if view.path == path), None)
    if view is None:
        lines.append("None of its document's chunks was weighed: none is among the nearest by meaning or by words.")
    else:
        lines += explain_chunk(inspection, view, ord_, glyphs)
    return [localise(line, glyphs) for line in lines]


def _draw_chunk(inspected: Inspected, named: str, width: int, glyphs: Glyphs) -> list[Text]:
    from rich.text import Text

    lines = []
    for sentence in explain_named_chunk(inspected, named, glyphs):
        indent = len(sentence) - len(sentence.lstrip())
        words = show_name(sentence.strip(), glyphs).split(" ")
        lines += [
            Text(" " * (indent if at == 0 else indent + 2) + line)
            for at, line in enumerate(_wrap(words, width - indent - 2))
        ]
    return lines


def _wrap(words: Sequence[str], width: int) -> list[str]:
    """Return words on lines of at most `width` cells."""
    from rich.cells import cell_len, chop_cells

    lines: list[str] = []
    for word in words:
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
            continue
        # Scripts without spaces are one word.
        pieces = chop_cells(word, width) if cell_len(word) > width else [word]
        lines += pieces
    return lines
