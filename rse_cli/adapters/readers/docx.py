"""Word documents (DOCX), read from the parts of the package with lxml.

Not with python-docx: it refuses macro-enabled files, templates, Strict Open XML and files with a dangling relationship,
and its paragraphs hide text in content controls, insertions and text boxes, which would have to be walked anyway.
Elements are told apart by their local names, which Strict and Transitional Open XML share.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from rse_cli.adapters.readers.archive import (
    Element,
    check_archive,
    find_child,
    get_attribute,
    list_relations,
    local_name,
    parse_xml,
    refuse_doctypes,
    report_broken,
)
from rse_cli.adapters.readers.building import Cell, TextBuilder, describe_picture, fold_spaces, lay_out_rows
from rse_cli.core.models import Document
from rse_cli.dataclass import dataclass
from rse_cli.errors import ReadError

# Containers whose content stands in the text as if they weren't there; insertions are accepted, deletions not.
_TRANSPARENT = frozenset({"sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag", "AlternateContent", "Choice"})
# What a paragraph holds beside its text: properties, deletions, the older copy of a drawing, field codes, ruby.
_NOT_TEXT = frozenset({
    "pPr", "rPr", "del", "moveFrom", "delText", "Fallback", "instrText", "fldData", "sdtPr", "rt", "annotation",
    "annotation-xml",
})  # fmt: skip
# Words for runs of characters without text of their own.
_CHARACTERS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# Word keeps the built-in names in English, whatever the language of the program.
_CODE_STYLES = frozenset({"html preformatted", "source code", "code", "code block", "preformatted text", "macro"})
# Titles that programs and templates give by themselves.
_IDLE_TITLES = frozenset({"word document", "document", "untitled", "title", "microsoft word", "normal"})


@dataclass(frozen=True, slots=True)
class _Style:
    """What a paragraph style says about structure: `level` 0 is no heading."""

    level: int = 0
    is_title: bool = False
    is_list: bool = False
    is_code: bool = False
    is_contents: bool = False


def read_docx(path: Path, data: bytes) -> Document:  # noqa: ARG001
    """Read a Word document.

    Parameters
    ----------
    path : Path
        Not looked at.
    data : bytes
        The file's content.

    Returns
    -------
    Document
        Body, then footnotes and endnotes, tracked changes accepted; headers, footers, comments and the table of
        contents are left out. Titled by its properties, else by the first paragraph in the style Title.

    Raises
    ------
    ReadError
        If the file needs a password, is broken or has no text.
    """
    archive = check_archive(data, "DOCX")
    builder = TextBuilder()
    with report_broken("DOCX"):
        refuse_doctypes(archive)
        package = dict(reversed(list_relations(archive, "")))
        main = package.get("officeDocument", "word/document.xml")
        body = find_child(parse_xml(archive.read(main)), "body")
        if body is None:
            raise ReadError("failed", "not a valid DOCX file: no body")
        parts = dict(list_relations(archive, main))
        styles = _read_styles(parse_xml(archive.read(parts["styles"]))) if "styles" in parts else {}
        title = _read_title(archive, package.get("core-properties"))
        styled_title = _append_blocks(builder, body, styles)
        for kind in ("footnotes", "endnotes"):
            if kind in parts:
                _append_notes(builder, parse_xml(archive.read(parts[kind])), styles)
    return builder.document(title or styled_title)


def _read_title(archive: zipfile.ZipFile, part: str | None) -> str | None:
    """Return the title in the core properties, if somebody gave one."""
    if part is None:
        return None
    title = fold_spaces(getattr(find_child(parse_xml(archive.read(part)), "title"), "text", None) or "")
    return title if title and title.lower() not in _IDLE_TITLES else None


def _read_styles(root: Element) -> dict[str, _Style]:
    """Return the paragraph styles by id, with what they inherit."""
    elements = {get_attribute(style, "styleId") or "": style for style in root if local_name(style) == "style"}
    return {style_id: _read_style(style_id, elements) for style_id in elements}


def _read_style(style_id: str, elements: dict[str, Element]) -> _Style:
    """Follow a style to those that it is based on, the nearest word winning."""
    level: int | None = None
    is_title = is_list = is_code = is_contents = False
    seen: set[str] = set()
    while style_id in elements and style_id not in seen:
        seen.add(style_id)
        style = elements[style_id]
        name = (get_attribute(find_child(style, "name"), "val") or "").lower()
        if level is None:
            heading = re.fullmatch(r"heading ?([1-9])", name)
            outline = get_attribute(find_child(style, "pPr", "outlineLvl"), "val")
            level = 1 if name == "title" else int(heading[1]) if heading else _read_outline(outline)
        is_title |= name == "title"
        is_list |= find_child(style, "pPr", "numPr") is not None
        is_code |= name in _CODE_STYLES
        is_contents |= re.fullmatch(r"toc( ?[1-9]| heading)", name) is not None
        style_id = get_attribute(find_child(style, "basedOn"), "val") or ""
    return _Style(level or 0, is_title, is_list, is_code, is_contents)


def _read_outline(outline: str | None) -> int | None:
    """Return the heading level of an outline level: 0 to 8 are headings, 9 is body text."""
    if outline is None or not outline.isdecimal():
        return None
    return int(outline) + 1 if int(outline) < 9 else 0


def _append_blocks(builder: TextBuilder, container: Element, styles: dict[str, _Style]) -> str | None:
    """Append the paragraphs and tables in `container`; return the first text in the style Title."""
    title = None
    code: list[str] = []
    for block in _iterate_blocks(container):
        style = styles.get(get_attribute(find_child(block, "pPr", "pStyle"), "val") or "", _Style())
        if not style.is_code:
            builder.add_code("\n".join(code))
            code.clear()
        if local_name(block) == "tbl":
            _append_table(builder, block, styles)
            continue
        boxes: list[Element] = []
        text = _gather_text(block, boxes)
        if style.is_code:
            code.append(text)
        else:
            _append_paragraph(builder, text, block, style)
        if style.is_title:
            title = title or fold_spaces(text)
        for box in boxes:
            box_title = _append_blocks(builder, box, styles)
            title = title or box_title
    builder.add_code("\n".join(code))
    return title


def _append_paragraph(builder: TextBuilder, text: str, paragraph: Element, style: _Style) -> None:
    """Append a paragraph as what its properties and style make it."""
    properties = find_child(paragraph, "pPr")
    level = _read_outline(get_attribute(find_child(properties, "outlineLvl"), "val"))
    numbering = find_child(properties, "numPr")
    # A number id of 0 takes a paragraph out of its style's list.
    number_id = get_attribute(find_child(numbering, "numId"), "val")
    if style.is_contents:
        return
    if style.level if level is None else level:
        builder.add_heading(text, level or style.level)
    elif number_id != "0" and (numbering is not None or style.is_list):
        depth = get_attribute(find_child(numbering, "ilvl"), "val") or "0"
        builder.add_item(text, int(depth) + 1 if depth.isdecimal() else 1)
    else:
        builder.add_paragraph(text)


def _iterate_blocks(container: Element, wanted: frozenset[str] = frozenset({"p", "tbl"})) -> Iterator[Element]:
    """Yield the wanted elements in order, through content controls and insertions."""
    stack = [container]
    while stack:
        element = stack.pop()
        name = local_name(element)
        if element is not container and name in wanted:
            yield element
        elif element is container or (name in _TRANSPARENT and not _is_filler(element)):
            stack.extend(reversed(element))


def _is_filler(element: Element) -> bool:
    """Whether a content control holds a table of contents, or only the prompt to fill it in."""
    properties = find_child(element, "sdtPr")
    gallery = get_attribute(find_child(properties, "docPartObj", "docPartGallery"), "val")
    return gallery == "Table of Contents" or find_child(properties, "showingPlcHdr") is not None


def _gather_text(block: Element, boxes: list[Element]) -> str:
    """Return the text of a paragraph or cell, its paragraphs on lines; text boxes in it go to `boxes`."""
    pieces: list[str] = []
    stack = [block]
    while stack:
        element = stack.pop()
        name = local_name(element)
        if name == "t":
            pieces.append(element.text or "")
        elif name in _CHARACTERS:
            pieces.append(_CHARACTERS[name])
        elif name == "docPr":
            pieces.append(describe_picture(get_attribute(element, "descr")))
        elif name == "txbxContent":
            boxes.append(element)
        elif name in _NOT_TEXT or (name == "r" and _is_hidden(element)) or (name == "sdt" and _is_filler(element)):
            continue
        else:
            if name == "p" and pieces:
                pieces.append("\n")
            stack.extend(reversed(element))
    return "".join(pieces)


def _is_hidden(run: Element) -> bool:
    """Whether a run is formatted as hidden."""
    vanish = find_child(run, "rPr", "vanish")
    return vanish is not None and get_attribute(vanish, "val") not in ("0", "false", "off")


def _append_table(builder: TextBuilder, table: Element, styles: dict[str, _Style]) -> None:
    """Append a table by rows, tables in its cells flattened; a table of one cell is a box around its content."""
    rows: list[list[Cell]] = []
    boxes: list[Element] = []
    cells: list[Element] = []
    for row in _iterate_blocks(table, frozenset({"tr"})):
        properties = find_child(row, "trPr")
        if find_child(properties, "del") is not None:
            continue
        skipped = _read_count(find_child(properties, "gridBefore"), default=0)
        rows.append([Cell("")] * skipped)
        for cell in _iterate_blocks(row, frozenset({"tc"})):
            merge = find_child(cell, "tcPr", "vMerge")
            is_covered = merge is not None and get_attribute(merge, "val") != "restart"
            span = _read_count(find_child(cell, "tcPr", "gridSpan"), default=1)
            rows[-1].append(Cell("" if is_covered else _gather_text(cell, boxes), max(1, span)))
            cells.append(cell)
    if len(cells) == 1:
        _append_blocks(builder, cells[0], styles)
        return
    builder.add_table(lay_out_rows(rows))
    for box in boxes:
        _append_blocks(builder, box, styles)


def _read_count(element: Element | None, default: int) -> int:
    """Return the number in an element's ``val``, at most the 63 columns that Word allows."""
    value = get_attribute(element, "val") or ""
    return min(int(value), 63) if value.isdecimal() else default


def _append_notes(builder: TextBuilder, root: Element, styles: dict[str, _Style]) -> None:
    """Append footnotes or endnotes, without the separators that the same part holds."""
    for note in root:
        if get_attribute(note, "type") in (None, "normal"):
            _append_blocks(builder, note, styles)
