"""Make the binary documents of the sample from ``sources/``: PDF, DOCX, PPTX, XLSX and EPUB.

Usage: ``python sample_docs/make_binaries.py [FOLDER]``; without a folder the committed files are replaced.
The same sources give the same content; dates and identifiers are fixed, so that a rebuild changes no more than it must.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCES = HERE / "sources"
sys.path.insert(0, str(SOURCES))  # `print_pdf` lies among the sources, and whoever loads this file may be elsewhere

from print_pdf import save_pdf  # noqa: E402

MADE = datetime(2026, 2, 1, 12, 0, 0, tzinfo=UTC)  # any fixed moment: files must not carry the day they were made
NO_BREAK = "\u00a0"
A5 = (0, 0, 420, 595)
A4 = (0, 0, 595, 842)


def read_yaml(name: str) -> Any:
    """Load a file of `sources/`."""
    import yaml

    return yaml.safe_load((SOURCES / name).read_text(encoding="utf-8"))


def make_manual(path: Path) -> None:
    """The product manual: A5, with one chapter in two columns."""
    names = ("manual-1.html", "manual-2.html", "manual-columns.html", "manual-back.html")
    first, second, columns, back = ((SOURCES / name).read_text(encoding="utf-8") for name in names)
    parts = [(first + second, 1), (columns, 2), (back, 1)]
    save_pdf(path, A5, parts, "Dunlin 3: product manual", "Dunlin 3 · Product manual · Seventh edition")


def make_report(path: Path) -> None:
    """An annual report: figures and prose of one year in the template that all years share."""
    data = read_yaml(f"{path.stem}.yaml")
    fields = {}
    for name, value in data.items():
        if name.endswith("_rows"):
            fields[name] = "\n".join(render_row(row) for row in value)
        elif "\n" in value:
            fields[name] = "\n".join(f"<p>{text}</p>" for text in value.strip().split("\n\n"))
        else:
            fields[name] = value
    html = (SOURCES / "report.html").read_text(encoding="utf-8").format(**fields)
    year = data["year"]
    # Every part begins on a new page: a table that runs over a page's end loses rows in MuPDF's layout.
    parts = [(part, 1) for part in html.split("<!-- page -->")]
    save_pdf(path, A4, parts, f"Annual report {year}", f"Tarnholm Windworks · Annual report {year}")


def render_row(cells: list[str]) -> str:
    """One row of a table of figures; totals are set bold."""
    bold = cells[0].startswith(("Total", "Net result", "Operating result", "Cash from", "Change in cash"))
    mark = "b" if bold else "span"
    first, *figures = (f"<{mark}>{cell.replace(' %', NO_BREAK + '%')}</{mark}>" for cell in cells)
    return f"<tr><td>{first}</td>" + "".join(f'<td class="n">{figure}</td>' for figure in figures) + "</tr>"


def make_minutes(path: Path) -> None:
    """Minutes of a board meeting, with two tables."""
    import docx

    data = read_yaml("minutes.yaml")
    document = docx.Document()
    set_properties(document.core_properties, data["title"])
    document.add_heading(data["title"], level=0)
    document.add_paragraph(data["intro"])
    add_table(document, data["attendance"])
    for item in data["items"]:
        document.add_heading(item["heading"], level=1)
        for text in item["body"]:
            paragraph = document.add_paragraph()
            paragraph.add_run(text).bold = text.startswith("Decision:")
    document.add_heading("Actions", level=1)
    add_table(document, data["actions"])
    save_zip(path, document.save)


def add_table(document: Any, rows: list[list[str]]) -> None:
    """A table with a ruled grid, its first row bold."""
    table = document.add_table(rows=len(rows), cols=len(rows[0]), style="Table Grid")
    for i, row in enumerate(rows):
        for j, text in enumerate(row):
            table.cell(i, j).paragraphs[0].add_run(text).bold = i == 0


def make_slides(path: Path) -> None:
    """Slides of a training, with bullets, one table, and speaker's notes."""
    import pptx
    from pptx.util import Inches

    slides = read_yaml("slides.yaml")
    deck = pptx.Presentation()
    set_properties(deck.core_properties, slides[0]["title"])
    for i, data in enumerate(slides):
        slide = deck.slides.add_slide(deck.slide_layouts[0 if i == 0 else 5 if "table" in data else 1])
        slide.shapes.title.text = data["title"]
        if "table" in data:
            rows = data["table"]
            area = (Inches(0.6), Inches(2), Inches(8.8), Inches(3))
            table = slide.shapes.add_table(len(rows), len(rows[0]), *area).table
            for r, row in enumerate(rows):
                for c, text in enumerate(row):
                    table.cell(r, c).text = text
        else:
            slide.placeholders[1].text = "\n".join(data["bullets"])
        slide.notes_slide.notes_text_frame.text = data["notes"]
    save_zip(path, deck.save)


def make_budget(path: Path) -> None:
    """The budget for 2026: four sheets, with formulas and the results that a spreadsheet program stores beside them."""
    import openpyxl
    from openpyxl.styles import Font

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in read_yaml("budget.yaml").items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for cell in sheet[1]:
            cell.font = Font(bold=True)
        sheet.column_dimensions["A"].width = 44
    set_properties(book.properties, "Budget 2026")
    save_zip(path, book.save)
    store_results(path)


def store_results(path: Path) -> None:
    """Put the results of the differences ``=Cn-Bn`` into the first sheet; openpyxl writes formulas without results."""
    import openpyxl

    summary = openpyxl.load_workbook(path).worksheets[0]

    def fill(match: re.Match[bytes]) -> bytes:
        row = int(match[1])
        return b"<f>C%d-B%d</f><v>%d</v>" % (row, row, summary.cell(row, 3).value - summary.cell(row, 2).value)

    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    entries[sheet] = re.sub(rb"<f>C(\d+)-B\d+</f><v ?(?:/>|></v>)", fill, entries[sheet])
    write_entries(path, entries)


def make_epub(path: Path) -> None:
    """A small book in five chapters, as an EPUB 3."""
    title = "A Year of Wind on Skarvholm"
    chapters = {file.stem: file.read_text(encoding="utf-8") for file in sorted((SOURCES / "epub").glob("*.xhtml"))}
    headings = {key: text.split("<h1>")[1].split("</h1>")[0] for key, text in chapters.items()}
    links = "".join(f'<li><a href="{key}.xhtml">{heading}</a></li>' for key, heading in headings.items())
    entries = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (SOURCES / "epub" / "container.xml").read_text(encoding="utf-8"),
        "OEBPS/content.opf": render_package(title, list(chapters)),
        "OEBPS/nav.xhtml": render_xhtml(title, f'<nav epub:type="toc"><h1>Contents</h1><ol>{links}</ol></nav>'),
        **{f"OEBPS/{key}.xhtml": render_xhtml(headings[key], "\n" + text) for key, text in chapters.items()},
    }
    write_entries(path, {name: text.encode() for name, text in entries.items()})


def render_xhtml(title: str, body: str) -> str:
    """A page of the book."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">'
        f"<head><title>{title}</title></head><body>{body}</body></html>\n"
    )


def render_package(title: str, chapters: list[str]) -> str:
    """The book's list of files and their reading order."""
    kind = 'media-type="application/xhtml+xml"'
    items = "".join(f'<item id="c{key}" href="{key}.xhtml" {kind}/>' for key in chapters)
    spine = "".join(f'<itemref idref="c{key}"/>' for key in chapters)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:identifier id="id">urn:tarnholm:skarvholm</dc:identifier><dc:title>{title}</dc:title>'
        '<dc:language>en</dc:language><meta property="dcterms:modified">2026-02-01T12:00:00Z</meta></metadata>'
        f'<manifest><item id="nav" href="nav.xhtml" {kind} properties="nav"/>{items}</manifest>'
        f"<spine>{spine}</spine></package>\n"
    )


def set_properties(properties: Any, title: str) -> None:
    """Fixed title, author and dates."""
    properties.title = title
    properties.creator = properties.author = properties.lastModifiedBy = properties.last_modified_by = (
        "Tarnholm Windworks"
    )
    properties.created = properties.modified = MADE.replace(tzinfo=None)


def save_zip(path: Path, save: Callable[[io.BytesIO], object]) -> None:
    """Save an Office file with fixed dates on its entries and in its properties."""
    buffer = io.BytesIO()
    save(buffer)
    with zipfile.ZipFile(buffer) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    stamp = MADE.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    core = entries["docProps/core.xml"]  # openpyxl writes the present moment there, whatever it is told
    entries["docProps/core.xml"] = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", stamp, core)
    write_entries(path, entries)


def write_entries(path: Path, entries: dict[str, bytes]) -> None:
    """Write a ZIP file in the given order, the EPUB's `mimetype` uncompressed as its standard asks."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name, MADE.timetuple()[:6])
            info.compress_type = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(info, content)


MAKERS: dict[str, Callable[[Path], None]] = {
    "manual.pdf": make_manual,
    "report-2024.pdf": make_report,
    "report-2025.pdf": make_report,
    "minutes.docx": make_minutes,
    "slides.pptx": make_slides,
    "budget.xlsx": make_budget,
    "skarvholm.epub": make_epub,
}


def make_all(folder: Path) -> None:
    """Write every binary document of the sample into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MAKERS.items():
        make(folder / name)


if __name__ == "__main__":
    make_all(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
