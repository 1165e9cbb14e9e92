"""Print HTML as the PDF files of the sample, with running header, page numbers and outline."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STYLES = Path(__file__).parent / "print.css"


def place_story(writer: Any, mediabox: tuple[float, ...], html: str, columns: int) -> None:
    """Flow HTML over as many pages as it takes, in one or more columns."""
    import pymupdf

    width, height = mediabox[2], mediabox[3]
    margin, gutter = width * 0.11, 18.0
    column = (width - 2 * margin - gutter * (columns - 1)) / columns
    story = pymupdf.Story(html=html, user_css=STYLES.read_text(encoding="utf-8"))
    more = 1
    while more:
        device = writer.begin_page(pymupdf.Rect(mediabox))
        for i in range(columns):
            left = margin + i * (column + gutter)
            more, _ = story.place(pymupdf.Rect(left, 54, left + column, height - 54))
            story.draw(device)
            if not more:
                break
        writer.end_page()


def save_pdf(path: Path, mediabox: tuple[float, ...], parts: list[tuple[str, int]], title: str, header: str) -> None:
    """Write a PDF whose parts begin on new pages, with running header, page numbers and outline.

    Parameters
    ----------
    path : Path
        The file to write.
    mediabox : tuple of float
        Page rectangle in points.
    parts : list of (str, int)
        HTML and number of columns.
    title, header : str
        The document's title, and the line at the top of every page but the first.
    """
    import pymupdf

    buffer = io.BytesIO()
    writer = pymupdf.DocumentWriter(buffer)
    for html, columns in parts:
        place_story(writer, mediabox, html, columns)
    writer.close()
    document = pymupdf.open("pdf", buffer)
    outline = []
    for number, page in enumerate(document, start=1):
        for level, heading in find_headings(page):
            outline.append([level, heading, number])
        if number > 1:
            draw_furniture(page, header, number)
    document.set_toc(outline)
    document.set_metadata({"title": title, "author": "Tarnholm Windworks", "creationDate": "D:20260201120000Z"})
    document.subset_fonts()
    document.save(path, garbage=4, deflate=True, no_new_id=True)


def find_headings(page: Any) -> Iterator[tuple[int, str]]:
    """Numbered chapters of a page, by the size of their type."""
    for block in page.get_text("dict")["blocks"]:
        spans = [span for line in block.get("lines", []) for span in line["spans"]]
        text = unicodedata.normalize("NFKC", " ".join(span["text"].strip() for span in spans))
        if spans and abs(spans[0]["size"] - 14) < 0.5 and re.match(r"\d+ ", text):
            yield 1, text


def draw_furniture(page: Any, header: str, number: int) -> None:
    """Running header, a rule below it, and the page number."""
    width, height = page.rect.width, page.rect.height
    margin = width * 0.11
    page.insert_text((margin, 36), header, fontname="helv", fontsize=7.5, color=(0.35, 0.35, 0.35))
    page.draw_line((margin, 41), (width - margin, 41), color=(0.6, 0.6, 0.6), width=0.5)
    page.insert_text((width / 2 - 5, height - 30), str(number), fontname="helv", fontsize=8)
