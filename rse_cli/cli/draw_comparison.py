"""Answers side by side: which documents and rows are drawn, with the columns of each method and of what is expected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.text import Text

from rse_cli.cli.captions import render_hidden
from rse_cli.cli.comparing import EXPECTED, Column, ComparedDocument, render_comparison, render_standings
from rse_cli.cli.folding import Fold, fold_rows
from rse_cli.cli.glyphs import Glyphs
from rse_cli.cli.inspecting import MOST_DRAWN, Drawing, Inspected
from rse_cli.cli.output import make_visible_line, name_count
from rse_cli.core.metrics import DocumentSpan
from rse_cli.pipeline.comparison import compare_answers
from rse_cli.pipeline.inspect import fetch_shown
from rse_cli.pipeline.listing import find_numbers
from rse_cli.ports import make_key


def draw_comparison(inspected: Inspected, drawing: Drawing, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the table, then the columns on the chunks of every document that any of the answers touches."""
    contenders, expected = inspected.contenders, inspected.case.spans if inspected.case else ()
    letters = [name_letter(at) for at in range(len(contenders))]
    lines = render_standings(compare_answers(contenders, expected), letters, width, glyphs)
    if inspected.case is not None:
        name = make_visible_line(inspected.case.case.id)
        found = f"{EXPECTED} is what case {name} expects" if expected else "the case expects nothing"
        lines.append(Text(found, "dim"))
    paths = list(dict.fromkeys(
        [one.path for contender in contenders for one in contender.answer.segments] + [one.path for one in expected]
    ))  # fmt: skip
    shown = paths[: drawing.documents or MOST_DRAWN]
    numbers = find_numbers(inspected.snapshot, shown)
    documents = [_draw_document(inspected, path, numbers[path], letters, drawing) for path in shown]
    lines += render_comparison(documents, width, glyphs)
    hidden = len(paths) - len(shown)
    if hidden:
        lines += [Text(""), *render_hidden(f"{name_count(hidden, 'more document')} (--documents N)", width, glyphs)]
    return lines


def name_letter(at: int) -> str:
    """Return the letter of a column; E is for what is expected.

    Examples
    --------
    >>> [name_letter(at) for at in (0, 3, 4, 24, 25)]
    ['A', 'D', 'F', 'Z', 'AA']
    """
    letters = "ABCDFGHIJKLMNOPQRSTUVWXYZ"
    return letters[at % 25] * (at // 25 + 1)


def _draw_document(
    inspected: Inspected, path: str, number: int, letters: Sequence[str], drawing: Drawing
) -> ComparedDocument:
    columns = [
        Column(
            letter,
            [
                (one.start_chunk, one.end_chunk, place)
                for place, one in enumerate(contender.answer.segments)
                if one.path == path
            ],
        )
        for letter, contender in zip(letters, inspected.contenders, strict=True)
    ]
    n_chunks = next(
        (
            contender.answer.trace.retrieval.records[number].n_chunks
            for contender in inspected.contenders
            if number in contender.answer.trace.retrieval.records
        ),
        0,
    )
    if inspected.case is not None:
        wanted = [one for one in inspected.case.spans if one.path == path]
        n_chunks = n_chunks or inspected.snapshot.heads([number])[number].n_chunks
        columns.append(Column(EXPECTED, _find_chunks(inspected, number, n_chunks, wanted)))
    spans = [(start, end) for column in columns for start, end, _ in column.spans]
    rows: list[int | Fold] = list(range(n_chunks))
    if not drawing.unfold:
        rows = fold_rows(np.full(n_chunks, np.nan), spans, 0.0, drawing.around)
    fetched = fetch_shown(inspected.snapshot, [(number, row) for row in rows if not isinstance(row, Fold)])
    return ComparedDocument(path, columns, rows, {ord_: chunk for (_, ord_), chunk in fetched.items()})


def _find_chunks(
    inspected: Inspected, number: int, n_chunks: int, spans: Sequence[DocumentSpan]
) -> list[tuple[int, int, int]]:
    """Return the chunks that expected characters touch."""
    if not spans:
        return []
    starts = inspected.snapshot.evidence([make_key(number, ord_) for ord_ in range(n_chunks)]).start_chars
    return [
        (
            int(np.searchsorted(starts, one.start_char, side="right")) - 1,
            int(np.searchsorted(starts, one.end_char, side="left")),
            place,
        )
        for place, one in enumerate(spans)
        if one.end_char > one.start_char
    ]
