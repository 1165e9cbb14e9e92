"""Excel workbooks (XLSX, XLSM): each sheet a heading and its rows, with the values that Excel saved last."""

from __future__ import annotations

import datetime
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rse_cli.adapters.readers.archive import check_archive, refuse_doctypes, report_broken
from rse_cli.adapters.readers.building import TextBuilder, fold_spaces
from rse_cli.core.models import Document
from rse_cli.errors import ReadError

# About 100 MB of text: more is a database, and what it holds is not found by reading.
MAX_CELLS = 2_000_000
# openpyxl fills gaps with empty cells, so a stray cell in the last column costs 16,384; this is about a second of them.
MAX_PLACES = 50_000_000
# The last row of a sheet in Excel; a damaged row number must not make a billion empty rows.
MAX_ROWS = 1_048_576

# Titles that programs and templates give by themselves.
_IDLE_TITLES = frozenset({"workbook", "untitled", "title", "book1", "sheet1", "microsoft excel"})


def read_xlsx(path: Path, data: bytes) -> Document:  # noqa: ARG001
    """Read a workbook.

    Parameters
    ----------
    path : Path
        Not looked at.
    data : bytes
        The file's content.

    Returns
    -------
    Document
        Each sheet that has values, hidden ones too: its name as a heading, then each row as an atom. Empty rows part
        tables. Formulas show their saved value, or nothing.

    Raises
    ------
    ReadError
        If the file needs a password, is broken, has no text, or more than two million cells.
    """
    archive = check_archive(data, "XLSX")
    builder = TextBuilder()
    with report_broken("XLSX"), warnings.catch_warnings():
        # openpyxl warns of every extension that it would not write back.
        warnings.simplefilter("ignore")
        refuse_doctypes(archive)
        import openpyxl

        workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
        left = [MAX_CELLS, MAX_PLACES]
        for sheet in workbook.worksheets:
            heading = sheet.title
            for table in _iterate_tables(sheet, left):
                builder.add_heading(heading, 1)
                heading = ""
                builder.add_table(table)
        title = fold_spaces(workbook.properties.title or "")
    return builder.document(title if title.lower() not in _IDLE_TITLES else None)


def _iterate_tables(sheet: Any, left: list[int]) -> Iterator[list[list[str]]]:
    """Yield the runs of rows between empty rows; `left` counts down the cells and places that may still come."""
    # The size that a file states may be wrong, and openpyxl would stop there.
    sheet.reset_dimensions()
    rows: list[list[str]] = []
    for row in sheet.iter_rows(max_row=MAX_ROWS):
        cells = [_show_value(cell) for cell in row]
        left[0] -= sum(map(bool, cells))
        left[1] -= 1 + len(cells)
        if min(left) < 0:
            raise ReadError("failed", f"more than {MAX_CELLS:,} cells, or spread too far")
        if any(cells):
            rows.append(cells)
        elif rows:
            yield rows
            rows = []
    if rows:
        yield rows


def _show_value(cell: Any) -> str:
    """Return a cell's value as text: dates in ISO form, numbers with the 15 digits that Excel keeps."""
    value = cell.value
    if value is None or cell.data_type == "e":
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        # A share of 0.253 is shown, and asked for, as 25.3%.
        return show_number(value * 100) + "%" if "%" in cell.number_format else show_number(value)
    if isinstance(value, datetime.datetime):
        has_time = value.time() != datetime.time()
        return value.replace(microsecond=0).isoformat(" ") if has_time else value.date().isoformat()
    if isinstance(value, datetime.time):
        return value.replace(microsecond=0).isoformat()
    return fold_spaces(str(value))


def show_number(value: float) -> str:
    """Return a number without the noise of binary fractions.

    Examples
    --------
    >>> show_number(0.1 + 0.2), show_number(1200.0), show_number(12345678901234567890)
    ('0.3', '1200', '12345678901234567890')
    """
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.15g}"
