"""Formats under their less common suffixes: macro-enabled files, templates and XHTML."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest

from rse_cli.adapters.readers import read_document

OFFICE = "application/vnd.openxmlformats-officedocument"
MACRO = "application/vnd.ms-{}.{}.macroEnabled{}.main+xml"
WORD, DECK, BOOK = "wordprocessingml.document", "presentationml.presentation", "spreadsheetml.sheet"


def save_as(thing: object, old: str, new: str) -> bytes:
    """Save an Office document with another content type for its main part, as programs do for such suffixes."""
    buffer, changed = io.BytesIO(), io.BytesIO()
    thing.save(buffer)  # type: ignore[attr-defined]
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(changed, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "[Content_Types].xml":
                assert f"{OFFICE}.{old}.main+xml".encode() in content
                content = content.replace(f"{OFFICE}.{old}.main+xml".encode(), new.encode())
            target.writestr(name, content)
    return changed.getvalue()


@pytest.mark.parametrize(
    ("suffix", "content_type"),
    [
        (".docm", MACRO.format("word", "document", "")),
        (".dotx", f"{OFFICE}.wordprocessingml.template.main+xml"),
        (".dotm", MACRO.format("word", "template", "")),
    ],
)
def test_macro_enabled_word_documents_and_templates_read_like_docx(suffix: str, content_type: str) -> None:
    document = docx.Document()
    document.add_heading("Pumps", 1)
    document.add_paragraph("They lift water.")
    name, read = read_document(Path(f"a{suffix}"), save_as(document, WORD, content_type))
    assert (name.split("/")[0], read.text) == ("docx", "Pumps\n\nThey lift water.\n")


def test_macro_enabled_presentations_read_like_pptx() -> None:
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "Pumps"  # type: ignore[union-attr]
    name, read = read_document(Path("a.PPTM"), save_as(deck, DECK, MACRO.format("powerpoint", "presentation", "")))
    assert (name.split("/")[0], read.text) == ("pptx", "Pumps\n")


@pytest.mark.parametrize(
    ("suffix", "content_type"),
    [
        (".xlsm", MACRO.format("excel", "sheet", "")),
        (".xltx", f"{OFFICE}.spreadsheetml.template.main+xml"),
        (".xltm", MACRO.format("excel", "template", "")),
    ],
)
def test_macro_enabled_workbooks_and_templates_read_like_xlsx(suffix: str, content_type: str) -> None:
    book = openpyxl.Workbook()
    book.worksheets[0].append(["Pump", 3])
    name, read = read_document(Path(f"a{suffix}"), save_as(book, BOOK, content_type))
    assert (name.split("/")[0], read.text) == ("xlsx", "Sheet\n\nPump | 3\n")


def test_xht_is_read_as_xhtml_in_which_an_empty_title_ends_itself() -> None:
    page = b'<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body><p>Pumps</p></body></html>'
    name, read = read_document(Path("a.xht"), page)
    assert (name.split("/")[0], read.text) == ("html", "Pumps\n")
