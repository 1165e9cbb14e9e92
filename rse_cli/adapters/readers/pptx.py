"""PowerPoint decks (PPTX): one page per slide, its shapes in reading order, then its notes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rse_cli.adapters.readers.archive import check_archive, local_name, parse_xml, refuse_doctypes, report_broken
from rse_cli.adapters.readers.building import Cell, TextBuilder, describe_picture, fold_spaces, lay_out_rows
from rse_cli.core.models import Document

# Shapes whose tops differ by less than a quarter of an inch stand side by side. In EMU, 914,400 to the inch.
_ROW_EMU = 228_600
# Placeholders that repeat on every slide (PP_PLACEHOLDER: date, slide number, footer, header).
_REPEATED = frozenset({16, 13, 15, 14})
# Placeholders whose paragraphs are bulleted unless they say otherwise (object, body, vertical body, vertical object).
_BULLETED = frozenset({7, 2, 6, 17})
# Titles that programs and templates give by themselves.
_IDLE_TITLES = frozenset(
    {"powerpoint presentation", "presentation", "untitled", "title", "slide 1", "microsoft powerpoint"}
)


def read_pptx(path: Path, data: bytes) -> Document:  # noqa: ARG001
    """Read a deck of slides.

    Parameters
    ----------
    path : Path
        Not looked at.
    data : bytes
        The file's content.

    Returns
    -------
    Document
        Each slide, hidden ones too, is a page, headed by its title or else ``Slide N``. Titled by its properties, else
        by the first slide's title.

    Raises
    ------
    ReadError
        If the file needs a password, is broken or has no text.
    """
    archive = check_archive(data, "PPTX")
    builder = TextBuilder()
    with report_broken("PPTX"):
        refuse_doctypes(archive)
        import pptx

        deck = pptx.Presentation(io.BytesIO(data))
        title = fold_spaces(deck.core_properties.title or "")
        if title.lower() in _IDLE_TITLES:
            title = ""
        for number, slide in enumerate(deck.slides, 1):
            builder.start_page()
            slide_title = _append_slide(builder, slide, number)
            title = title or (slide_title if number == 1 else "")
    return builder.document(title)


def _append_slide(builder: TextBuilder, slide: Any, number: int) -> str:
    """Append a slide's title, shapes and notes; return the title."""
    title_shape = slide.shapes.title
    title = fold_spaces(title_shape.text_frame.text) if title_shape is not None else ""
    title_id = title_shape.shape_id if title_shape is not None else None
    content = TextBuilder()
    for shape in _iterate_shapes(slide.shapes):
        if shape.shape_id != title_id:
            _append_shape(content, shape)
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    notes_text = notes.text if notes is not None else ""
    if notes_text.strip():
        content.add_paragraph("Notes: " + notes_text)
    if title or not content.is_empty:
        builder.add_heading(title or f"Slide {number}", 1)
        builder.extend(content)
    return title


def _iterate_shapes(shapes: Iterable[Any]) -> Iterator[Any]:
    """Yield shapes from top to bottom, those side by side from left to right, the members of a group together."""
    rows: list[list[Any]] = []
    top = 0
    for shape in sorted(shapes, key=lambda shape: shape.top or 0):
        if not rows or (shape.top or 0) - top >= _ROW_EMU:
            rows.append([])
            top = shape.top or 0
        rows[-1].append(shape)
    for row in rows:
        for shape in sorted(row, key=lambda shape: shape.left or 0):
            if hasattr(shape, "shapes"):
                yield from _iterate_shapes(shape.shapes)
            else:
                yield shape


def _append_shape(builder: TextBuilder, shape: Any) -> None:
    """Append what a shape says."""
    kind = shape.placeholder_format.type if shape.is_placeholder else None
    if kind in _REPEATED:
        return
    if getattr(shape, "has_table", False):
        _append_table(builder, shape.table)
    elif getattr(shape, "has_chart", False):
        # python-pptx knows most kinds of charts, not all; a slide says more than its chart.
        with suppress(ValueError, KeyError, AttributeError, NotImplementedError):
            _append_chart(builder, shape.chart)
    elif shape.has_text_frame:
        paragraphs = [paragraph for paragraph in shape.text_frame.paragraphs if paragraph.text.strip()]
        for paragraph in paragraphs:
            _append_paragraph(builder, paragraph, kind in _BULLETED and len(paragraphs) > 1)
    elif local_name(shape.element) == "pic":
        builder.add_paragraph(describe_picture(shape.element.nvPicPr.cNvPr.get("descr")))
    else:
        with suppress(KeyError):  # the diagram's part is missing
            _append_diagram(builder, shape)


def _append_paragraph(builder: TextBuilder, paragraph: Any, is_bulleted: bool) -> None:
    """Append a paragraph of a text frame, as an item where it has a bullet."""
    # python-pptx gives line breaks as vertical tabs.
    text = paragraph.text.replace("\v", "\n")
    marks = {local_name(child) for child in (paragraph._p.pPr if paragraph._p.pPr is not None else ())}
    if marks & {"buChar", "buAutoNum", "buBlip"} or (is_bulleted and "buNone" not in marks):
        builder.add_item(text, paragraph.level + 1)
    else:
        builder.add_paragraph(text)


def _append_table(builder: TextBuilder, table: Any) -> None:
    """Append a table; a merged cell shows its text once."""
    builder.add_table(
        lay_out_rows(
            [[Cell("" if cell.is_spanned else cell.text_frame.text) for cell in row.cells] for row in table.rows]
        )
    )


def _append_chart(builder: TextBuilder, chart: Any) -> None:
    """Append a chart's title and its data as a table, one row per series."""
    if chart.has_title and chart.chart_title.has_text_frame:
        builder.add_paragraph(chart.chart_title.text_frame.text)
    for plot in chart.plots:
        names = [str(category) for category in plot.categories]
        values = [[_show_value(value) for value in series.values] for series in plot.series]
        series_names = [series.name or "" for series in plot.series]
        builder.add_table([["", *names], *([name, *row] for name, row in zip(series_names, values, strict=True))])


def _show_value(value: float | None) -> str:
    """Return a charted number with the 15 digits that Office keeps."""
    return "" if value is None else f"{value:.15g}"


def _append_diagram(builder: TextBuilder, shape: Any) -> None:
    """Append the texts of a SmartArt diagram, which lie in a part of their own."""
    for element in shape.element.iter():
        if local_name(element) == "relIds":
            relation = next((value for key, value in element.attrib.items() if key.endswith("}dm")), None)
            data = parse_xml(shape.part.related_part(relation).blob)
            for paragraph in (element for element in data.iter() if local_name(element) == "p"):
                builder.add_item("".join(t.text or "" for t in paragraph.iter() if local_name(t) == "t"))
