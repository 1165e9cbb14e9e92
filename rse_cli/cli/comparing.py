"""Methods side by side: their segments in parallel columns on the same chunks, and a table of what they hold. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from rse_cli.cli.folding import Fold
from rse_cli.cli.glyphs import Glyphs, fit, pad, show_line, show_name
from rse_cli.cli.output import name_count
from rse_cli.core.models import Chunk
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.comparison import Standing

EXPECTED = "E"


@dataclass(frozen=True, slots=True)
class Column:
    """The chunks of one method's segments in a document: half-open, with the segment's position in the answer."""

    letter: str
    spans: Sequence[tuple[int, int, int]]

    def draw(self, start: int, end: int, glyphs: Glyphs) -> str:
        """Return the sign for chunks ``[start, end)``: the segment's number, counted from 1, on its first row."""
        for first, stop, place in self.spans:
            if first < end and start < stop:
                opens = first >= start and self.letter != EXPECTED
                return str(place + 1) if opens else glyphs.mark
        return ""


@dataclass(frozen=True, slots=True)
class ComparedDocument:
    """A document to draw: a column a method, its rows, and the text of those that are no folds."""

    path: str
    columns: Sequence[Column]
    rows: Sequence[int | Fold]
    chunks: Mapping[int, Chunk]


def render_comparison(documents: Sequence[ComparedDocument], width: int, glyphs: Glyphs) -> list[Text]:
    """Return the columns of all documents on their chunks."""
    lines: list[Text] = []
    for one in documents:
        lines += [Text(""), Text(fit(show_name(one.path, glyphs), width, glyphs), "bold magenta")]
        index = max([len(str(row)) for row in one.rows if not isinstance(row, Fold)] + [3])
        cells = [max(2, *(len(str(place + 1)) for _, _, place in column.spans), 2) for column in one.columns]
        head = "".join(f" {column.letter:<{size}}" for column, size in zip(one.columns, cells, strict=True))
        lines.append(Text(f"{'':>{index}}{head}".rstrip(), "dim"))
        for row in one.rows:
            start, end = (row.start, row.end) if isinstance(row, Fold) else (row, row + 1)
            signs = [column.draw(start, end, glyphs) for column in one.columns]
            line = Text.assemble((f"{glyphs.fold if isinstance(row, Fold) else row:>{index}}", "dim"))
            for sign, size, column in zip(signs, cells, one.columns, strict=True):
                line.append(f" {sign:<{size}}", "bold green" if column.letter == EXPECTED else "bold yellow")
            folded = isinstance(row, Fold)
            words = name_count(end - start, "chunk") if folded else show_line(one.chunks[row].text, glyphs)
            line.append(f" {fit(words, width - line.cell_len - 1, glyphs)}", "none" if any(signs) else "dim")
            lines.append(line)
    return lines


def render_standings(standings: Sequence[Standing], letters: Sequence[str], width: int, glyphs: Glyphs) -> list[Text]:
    """Return the table: segments, characters, documents, share in common with the first; recall, precision, IoU."""
    tables = [_tabulate(standings, letters, width, glyphs, short=short) for short in (False, True)]
    # What the methods are compared by goes last.
    layouts = [(tables[0], "  "), (tables[1], "  "), (tables[1], " ")]
    layouts += [([row[:4] + row[at:] for row in tables[1]], " ") for at in (5, 6)]
    for rows, gap in layouts:
        sizes = [max(Text(cell).cell_len for cell in column) for column in zip(*rows, strict=True)]
        if sum(sizes) + len(gap) * (len(sizes) - 1) <= width:
            break
    lines = [
        gap.join(pad(cell, size, right=at > 1) for at, (cell, size) in enumerate(zip(row, sizes, strict=True)))
        for row in rows
    ]
    return [Text(fit(line, width, glyphs), "none" if at else "dim") for at, line in enumerate(lines)]


def _tabulate(
    standings: Sequence[Standing], letters: Sequence[str], width: int, glyphs: Glyphs, *, short: bool
) -> list[list[str]]:
    """Return the cells of the table, its head first."""
    scored = any(one.score is not None for one in standings)
    head = ["", "method", "segments", "characters", "documents", "in common"]
    head += ["recall", "precision", "IoU"] if scored else []
    if short:
        head = ["", "method", "segm", "chars", "docs", "common"] + (["rec", "prec", "IoU"] if scored else [])
    rows = [head]
    for letter, one in zip(letters, standings, strict=True):
        cells = [letter, fit(one.label, max(8, width // 4), glyphs), f"{one.n_segments:,}", f"{one.chars:,}"]
        cells += [f"{one.n_documents:,}", f"{one.in_common:.0%}"]
        if scored:
            score = one.score
            cells += [f"{score.recall:.2f}", f"{score.precision:.2f}", f"{score.iou:.2f}"] if score else [""] * 3
        rows.append(cells)
    return rows
