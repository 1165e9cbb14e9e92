"""Passages to segments: the text, lines, pages and section that a reader is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rse_cli.core.models import Chunk, Passage
from rse_cli.dataclass import dataclass
from rse_cli.ports import FileRecord, Snapshot, make_key


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of adjacent chunks of one document, as it is shown.

    Spans of chunks and characters are half-open and 0-based, lines and pages inclusive and 1-based. `queries` are the
    positions of the queries that it answers, `summary` is the document's, `columns` the row that names the columns of a
    table in whose midst the segment begins, at most 80 characters.
    """

    path: str
    title: str
    section: str
    queries: tuple[int, ...]
    score: float
    start_chunk: int
    end_chunk: int
    start_char: int
    end_char: int
    start_line: int | None
    end_line: int | None
    start_page: int | None
    end_page: int | None
    header: str
    columns: str
    summary: str
    text: str


def fetch_chunks(
    snapshot: Snapshot, records: Mapping[int, FileRecord], passages: Sequence[Passage], around: int = 0
) -> dict[tuple[int, int], Chunk]:
    """Return the chunks of passages, and up to `around` more on either side, by document and ord."""
    wanted = {
        make_key(one.document, ord_)
        for one in passages
        for ord_ in range(max(0, one.start_chunk - around), min(records[one.document].n_chunks, one.end_chunk + around))
    }
    numbers = {records[one.document].path: one.document for one in passages}
    return {(numbers[stored.path], stored.chunk.ord): stored.chunk for stored in snapshot.chunks(sorted(wanted))}


def deliver_passages(
    passages: Sequence[Passage], records: Mapping[int, FileRecord], chunks: Mapping[tuple[int, int], Chunk]
) -> tuple[Segment, ...]:
    """Return passages as segments with their exact text.

    Parameters
    ----------
    passages : sequence of Passage
        In order.
    records : mapping of int to FileRecord
        Head rows by document number.
    chunks : mapping of (int, int) to Chunk
        At least the chunks of the passages, by document and ord.
    """
    return tuple(_deliver(passage, records[passage.document], chunks) for passage in passages)


def _deliver(passage: Passage, record: FileRecord, chunks: Mapping[tuple[int, int], Chunk]) -> Segment:
    parts = [chunks[passage.document, ord_] for ord_ in range(passage.start_chunk, passage.end_chunk)]
    first, last = parts[0], parts[-1]
    whole = "".join(part.text for part in parts)
    text = whole[passage.start_char - first.start_char : passage.end_char - first.start_char]
    start_line, end_line = _number_lines(first, whole, passage)
    return Segment(
        path=record.path,
        title=record.title,
        section=first.section,
        queries=passage.queries,
        score=passage.score,
        start_chunk=passage.start_chunk,
        end_chunk=passage.end_chunk,
        start_char=passage.start_char,
        end_char=passage.end_char,
        start_line=start_line,
        end_line=end_line,
        start_page=first.start_page,
        end_page=last.end_page,
        header=first.header,
        columns=_name_columns(first, text),
        summary=record.summary,
        text=text,
    )


def _name_columns(first: Chunk, text: str) -> str:
    """Return the names of a table's columns where the text doesn't hold them."""
    from rse_cli.core.table_rows import read_column_row

    row = read_column_row(first)
    return "" if row in " ".join(text.split()) else row


def _number_lines(first: Chunk, whole: str, passage: Passage) -> tuple[int | None, int | None]:
    """Return the lines of the first and last character that is no white space."""
    if first.start_line is None:
        return None, None
    anchor = len(first.text) - len(first.text.lstrip())
    start, end = passage.start_char - first.start_char, passage.end_char - first.start_char
    shown = whole[start:end]
    first_shown = start + len(shown) - len(shown.lstrip())
    start_line = first.start_line + whole.count("\n", anchor, max(anchor, first_shown))
    last_shown = start + len(shown.rstrip())
    return start_line, start_line + whole.count("\n", first_shown, last_shown)
