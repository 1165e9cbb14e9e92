"""What surrounds each chunk: its section, header, lines, pages and table; and the document's own field of terms."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rse_cli.core.blocks import assign_blocks
from rse_cli.core.chunking import DEFAULT_CHUNK_CHARS, Span, split_document
from rse_cli.core.headers import HEADING_CHARS, SEPARATOR, TITLE_CHARS
from rse_cli.core.lexical import split_terms
from rse_cli.core.models import Chunk, Document, Heading
from rse_cli.core.tables import collect_row_terms, find_column_row, find_table_runs, is_table_text

HEADING_REACH = 6_000  # a heading further back than three pages says little about a chunk
# The head of a document names its subject. 2 % of short documents and 600 characters of long ones were equal or
# better than a flat 600.
FIELD_CHARS = 600
FIELD_SHARE = 0.02

_BLANK_OR_RULE = re.compile(r"[\W_]*")


def make_chunks(document: Document, title: str, chunk_chars: int = DEFAULT_CHUNK_CHARS) -> list[Chunk]:
    """Return the chunks of a document with all that is stored beside their text.

    Parameters
    ----------
    document : Document
        What a reader made of a file.
    title : str
        From `choose_title`.
    chunk_chars : int
        Longest chunk, see `split_document`.

    Returns
    -------
    list of Chunk
        They tile the text.

    Examples
    --------
    >>> text = "# Pump\\nIt lifts.\\n# Care\\nOil it."
    >>> document = Document(text, "Pump", (Heading(0, 1, "Pump"), Heading(17, 1, "Care")))
    >>> [(chunk.start_char, chunk.section, chunk.header) for chunk in make_chunks(document, "Pump")]
    [(0, '', 'Pump'), (17, 'Care', 'Pump › Care')]
    """
    text, spans = document.text, split_document(document, chunk_chars)
    paths = list(_walk_sections(document.headings, spans, title))
    lines = list(_number_lines(text, spans)) if document.verbatim else [(None, None)] * len(spans)
    groups = list(_walk_groups(document, spans))
    flags = [is_table_text(text[start:end]) for start, end in spans]
    rows = _assign_row_terms(text, spans, flags, paths)
    chunks = []
    for ord_, (start, end) in enumerate(spans):
        is_row = flags[ord_] or groups[ord_] is not None
        column_row = find_column_row(text, start, groups[ord_]) if is_row else ""
        pages = _number_pages(document.page_starts, text, start, end)
        chunks.append(
            Chunk(
                ord=ord_,
                start_char=start,
                end_char=end,
                text=text[start:end],
                start_line=lines[ord_][0],
                end_line=lines[ord_][1],
                start_page=pages[0],
                end_page=pages[1],
                section=SEPARATOR.join(heading.text for heading in paths[ord_]),
                header=_compose_header(title, paths[ord_], start, column_row),
                row_terms=rows[ord_],
            )
        )
    return [replace(chunk, block=block) for chunk, block in zip(chunks, assign_blocks(chunks), strict=True)]


def choose_title(document: Document, stem: str) -> str:
    """Return the document's own title, else its first line with words (80 characters), else the file's stem.

    Examples
    --------
    >>> choose_title(Document("\\n---\\nPump manual\\n"), "pm-3")
    'Pump manual'
    """
    if document.title and document.title.strip():
        return " ".join(document.title.split())[:TITLE_CHARS]
    for line in re.split(r"[\r\n]+", document.text[:4_000]):
        if not _BLANK_OR_RULE.fullmatch(line):
            return " ".join(line.split())[:TITLE_CHARS]
    return stem[:TITLE_CHARS]


def collect_field_terms(document: Document, stem: str) -> tuple[str, ...]:
    """Return the distinct terms of the document field: title, file name, and the document's first characters.

    The first ``min(600, 2 %)`` characters count: they tell apart documents made from one template.

    Examples
    --------
    >>> collect_field_terms(Document("Annual report. " * 20, "Acme"), "acme_2018_10K")
    ('10k', '2018', 'acm', 'annual')
    """
    head = document.text.lstrip()[: min(FIELD_CHARS, int(FIELD_SHARE * len(document.text)))]
    parts = (document.title or "", stem, head)
    return tuple(sorted({term for part in parts for term in split_terms(part)}))


def _walk_sections(headings: Sequence[Heading], spans: Sequence[Span], title: str) -> Iterator[tuple[Heading, ...]]:
    """Yield for each chunk the headings above it, outermost first; a heading that repeats the title is left out."""
    path: list[Heading] = []
    at = 0
    for _, end in spans:
        while at < len(headings) and headings[at].start_char < end:
            heading = headings[at]
            path = [*(above for above in path if above.level < heading.level), heading]
            at += 1
        yield tuple(heading for heading in path if heading.text and heading.text[:TITLE_CHARS] != title)


def _number_lines(text: str, spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield first and last line of each chunk, counting ``\\n`` as ``grep -n`` does, trailing white space left out."""
    line = 1
    for start, end in spans:
        body = text[start:end]
        lead = len(body) - len(body.lstrip())
        first = line + body.count("\n", 0, lead)
        yield first, line + body.count("\n", 0, len(body.rstrip()))
        line += body.count("\n")


def _number_pages(page_starts: Sequence[int], text: str, start: int, end: int) -> tuple[int | None, int | None]:
    """Return first and last page of a chunk; white space around it may lie on blank pages."""
    if not page_starts:
        return None, None
    body = text[start:end]
    first, last = start + len(body) - len(body.lstrip()), start + len(body.rstrip()) - 1
    return bisect_right(page_starts, first), bisect_right(page_starts, last)


def _walk_groups(document: Document, spans: Sequence[Span]) -> Iterator[int | None]:
    """Yield for each chunk where the reader's table begins that its first row belongs to; a row is a one-line atom."""
    text, atoms = document.text, document.atoms
    at, group = 0, 0
    row_group: int | None = None  # of the atom before `at`, None where that is no row but a code fence
    for start, end in spans:
        found = row_group if at and start < atoms[at - 1][1] else None
        while at < len(atoms) and atoms[at][0] < end:
            atom_start, atom_end = atoms[at]
            if not at or not _goes_on(text, atoms[at - 1], atoms[at]):
                group = atom_start
            row_group = group if "\n" not in text[atom_start:atom_end].strip() else None
            found = row_group if found is None else found
            at += 1
        yield found


def _goes_on(text: str, before: Span, atom: Span) -> bool:
    """Whether an atom belongs to the table of the one before it.

    A blank line ends a table whose cells stand between bars; in a PDF the rows of one table may stand wide apart.
    """
    row_end = before[0] + len(text[before[0] : before[1]].rstrip())
    between = text[row_end : atom[0]]
    return not between.strip() and ("|" not in text[slice(*atom)] or len(between.strip(" \t").splitlines()) < 2)


def _assign_row_terms(
    text: str, spans: Sequence[Span], flags: Sequence[bool], paths: Sequence[tuple[Heading, ...]]
) -> list[tuple[str, ...] | None]:
    rows: list[tuple[str, ...] | None] = [None] * len(spans)
    for run in find_table_runs(flags):
        path = paths[run[0]]
        terms = collect_row_terms(text, spans, run, path[-1].text if path else "")
        for ord_ in range(*run):
            rows[ord_] = terms if flags[ord_] else None
    return rows


def _compose_header(title: str, path: Sequence[Heading], start: int, column_row: str) -> str:
    """Return ``title › first-level heading › nearest heading › column row``, without repeats."""
    parts = [title]
    if path:
        parts.append(path[0].text[:HEADING_CHARS])
        if start - path[-1].start_char <= HEADING_REACH:
            parts.append(path[-1].text[:HEADING_CHARS])
    parts.append(column_row)
    return SEPARATOR.join(dict.fromkeys(part for part in parts if part))
