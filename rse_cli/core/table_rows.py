"""What a stored chunk tells of the table that it is a row of."""

from __future__ import annotations

import re

from rse_cli.core.headers import HEADING_CHARS, SEPARATOR
from rse_cli.core.models import Chunk

_YEARS = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_WIDE_SPACE = re.compile(r"\t|\S {2,}\S")  # between cells; in a header white space is folded
_CELL_MARK = re.compile(r"[|,;，；]")
# In the cells of a file nothing stands after a comma; in a title of prose a space does.
_FILE_CELL_MARK = re.compile(r"\||[,;](?=\S)")


def read_column_row(chunk: Chunk) -> str:
    """Return the row that names the columns of a chunk's table, an empty string for chunks outside tables.

    It is the last part of a header that is neither title nor heading, and has cells or two years, or stands above cells
    kept apart by white space. In a file of rows it is the title as well, being the first line.

    Examples
    --------
    >>> row = "price, stock"
    >>> read_column_row(Chunk(4, 90, 93, "5,9", section="Parts", header="List › Parts › price, stock"))
    'price, stock'
    >>> read_column_row(Chunk(4, 90, 93, "Oil", section="Parts", header="List › Parts"))
    ''
    >>> read_column_row(Chunk(4, 90, 98, "bolt   5", header="List › Part Price"))
    'Part Price'
    >>> read_column_row(Chunk(4, 90, 93, "5,9", header="price,stock"))
    'price,stock'
    """
    title, _, rest = chunk.header.partition(SEPARATOR)
    last = rest.rpartition(SEPARATOR)[2]
    headings = chunk.section.split(SEPARATOR)
    if not last and not chunk.section:
        return title if _is_file_of_rows(title, chunk.text) else ""
    if not last or last == title or last in (headings[0][:HEADING_CHARS], headings[-1][:HEADING_CHARS]):
        return ""
    apart = _CELL_MARK.search(last) or _WIDE_SPACE.search(chunk.text)
    return last if apart or len(_YEARS.findall(last)) > 1 else ""


def _is_file_of_rows(title: str, text: str) -> bool:
    """Whether a chunk's first line has the marks between cells that its file's first line has.

    White space is folded in a title, so a title without marks may have had tabs. Later lines may lie in a quoted cell.
    """
    marks = _FILE_CELL_MARK.findall(title) or ["\t"]
    line = text.strip().partition("\n")[0].rstrip()
    return line.count(marks[0]) >= len(marks)


def identify_table(chunk: Chunk) -> tuple[str, ...] | None:
    """Return what the rows of one table of a document have in common, None for a chunk outside tables.

    Examples
    --------
    >>> identify_table(Chunk(1, 0, 5, "5 6 7", row_terms=("price",)))
    ('price',)
    """
    if chunk.row_terms is not None:
        return chunk.row_terms
    columns = read_column_row(chunk)
    return (columns,) if columns else None
