"""PDF -> document: text in reading order, pages, headings, table rows."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from rse_cli.adapters.readers.pdf_columns import find_gutter, find_known_gutters, order_regions
from rse_cli.adapters.readers.pdf_headings import Placed, choose_title, find_headings
from rse_cli.adapters.readers.pdf_layout import Paragraph, lay_out_region
from rse_cli.adapters.readers.pdf_lines import Fragment
from rse_cli.adapters.readers.pdf_merged import Word, Worded, part_merged
from rse_cli.adapters.readers.pdf_running import PageText, drop_running_lines
from rse_cli.adapters.readers.pdf_words import Vocabulary, clean_text, collect_words, join_lines
from rse_cli.core.models import Document
from rse_cli.errors import ReadError

_MAX_UNKNOWN = 0.3
"""Share of characters without a Unicode value above which a text is not worth indexing."""

_OUT_OF_MEMORY = re.compile(r"\b[mc]alloc\b|\brealloc\b|\ballocation\b|out of memory|cannot allocate", re.IGNORECASE)
"""Said where memory runs out: ``malloc (8192 bytes) failed`` in MuPDF's allocator."""

_BOLD_FLAG = 16
"""Bit 4 of a span's flags in MuPDF's structured text."""

_BOLD_NAMES = ("bold", "black", "heavy", "demi")

_UPRIGHT = (1, 0)
_Direction = tuple[int, int]


def read_pdf(path: Path, data: bytes) -> Document:
    """Read the text of a PDF.

    Parameters
    ----------
    path : Path
        Names the file; it is not opened.
    data : bytes
        Its content.

    Returns
    -------
    Document
        Reflowed text: a paragraph or table row a line, blank lines at wider gaps. Cells of a row are parted by
        two spaces. `page_starts` has one offset for each page; a page without text starts where the next one does.

    Raises
    ------
    ReadError
        ``encrypted`` if it needs a password, ``empty`` if no page has text, ``unreadable`` if more than 30 % of its
        characters have no Unicode value, ``failed`` if it is damaged.
    """
    document = open_pdf(data)
    try:
        pages = [_extract_page(document, number) for number in range(document.page_count)]
        outline = _read_outline(document)
        metadata = (document.metadata or {}).get("title") or ""
    finally:
        document.close()
    _check_text(pages)
    regions, vocabulary = _lay_out(pages)
    text, page_starts, placed = _compose(regions, vocabulary)
    return Document(
        text=text,
        title=choose_title(clean_text(metadata).strip(), path.stem, placed),
        headings=find_headings(placed, outline),
        page_starts=page_starts,
        atoms=tuple((part.start, part.start + len(part.text)) for part in placed if part.paragraph.is_row),
    )


@cache
def load_pymupdf() -> Any:
    """Import pymupdf and keep its messages, and those of MuPDF, off the streams: stdout is for results."""
    import pymupdf

    library: Any = pymupdf
    library.TOOLS.mupdf_display_errors(False)
    library.TOOLS.mupdf_display_warnings(False)
    library.set_messages(path=os.devnull)
    return library


def open_pdf(data: bytes) -> Any:
    """Open a PDF.

    Raises
    ------
    ReadError
        If it is no PDF, damaged, or needs a password.
    """
    pymupdf = load_pymupdf()
    try:
        document = pymupdf.open(stream=data, filetype="pdf")
        locked = document.needs_pass and not document.authenticate("")
        n_pages = 0 if locked else document.page_count
    except Exception as error:  # MuPDF raises its own types, RuntimeError and ValueError
        _check_memory(error)
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ReadError("failed", f"damaged PDF: {reason}") from error
    if locked:
        document.close()
        raise ReadError("encrypted", "needs a password")
    if n_pages == 0:
        document.close()
        raise ReadError("failed", "damaged PDF: it has no pages")
    return document


def _extract_page(document: Any, number: int) -> dict[_Direction, PageText]:
    """Extract the fragments of a page by direction of text; none if the page is damaged."""
    pymupdf = load_pymupdf()
    # Unknown characters must come out as U+FFFD, not as made-up codes, so that they can be counted.
    flags = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP
    try:
        page = document[number]
        parsed = page.get_textpage(flags=flags)
        content = page.get_text("dict", textpage=parsed)
        words = page.get_text("words", textpage=parsed)
    except Exception as error:  # one bad page must not cost the others
        _check_memory(error)
        return {}
    size = (content["width"], content["height"])
    groups: defaultdict[_Direction, dict[tuple[str, int, int], Worded]] = defaultdict(dict)
    words_of: defaultdict[tuple[int, int], list[Word]] = defaultdict(list)
    for x0, _, x1, _, text, block_number, line_number, _ in words:
        words_of[block_number, line_number].append(Word(x0, x1, text))
    for block in content["blocks"]:
        for at, line in enumerate(block.get("lines", ())):
            direction = _round_direction(line["dir"])
            fragment = _make_fragment(line, direction, size)
            if fragment:
                # Fat type is sometimes faked by printing twice with a slight shift.
                key = (fragment.text, round(fragment.x0 / 3), round(fragment.baseline / 3))
                # Only upright words lie where they say.
                known = tuple(words_of[block["number"], at]) if direction == _UPRIGHT else ()
                groups[direction].setdefault(key, (fragment, known))
    return {
        direction: PageText(tuple(part_merged(tuple(found.values()))), size[1] if direction[0] else size[0])
        for direction, found in groups.items()
    }


def _round_direction(direction: tuple[float, float]) -> _Direction:
    x, y = direction
    return (1 if x > 0 else -1, 0) if abs(x) >= abs(y) else (0, 1 if y > 0 else -1)


def _make_fragment(line: dict[str, Any], direction: _Direction, size: tuple[float, float]) -> Fragment | None:
    spans = [span for span in line["spans"] if span["text"]]
    text = clean_text("".join(span["text"] for span in spans)).strip()
    if not text.strip("\u00ad "):
        return None
    main = max(spans, key=lambda span: len(span["text"].strip()))
    inked = [span for span in spans if any(map(str.isalnum, span["text"]))]
    x0, y0, x1, y1 = _turn_upright(line["bbox"], direction, size)
    baseline = _turn_upright((*main["origin"], *main["origin"]), direction, size)[1]
    return Fragment(x0, y0, x1, y1, baseline, main["size"], bool(inked) and all(map(_is_bold, inked)), text)


def _is_bold(span: dict[str, Any]) -> bool:
    return bool(span["flags"] & _BOLD_FLAG) or any(name in span["font"].lower() for name in _BOLD_NAMES)


def _turn_upright(
    box: tuple[float, float, float, float], direction: _Direction, size: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Turn a box with its page so that text that runs in `direction` runs to the right."""
    x0, y0, x1, y1 = box
    width, height = size
    if direction == (0, -1):
        return height - y1, x0, height - y0, x1
    if direction == (0, 1):
        return y0, width - x1, y1, width - x0
    if direction == (-1, 0):
        return width - x1, height - y1, width - x0, height - y0
    return box


def _read_outline(document: Any) -> list[tuple[int, str, int]]:
    try:
        return [(level, clean_text(title), page - 1) for level, title, page, *_ in document.get_toc(simple=True)]
    except Exception as error:  # a damaged outline is no reason to lose the text
        _check_memory(error)
        return []


def _check_memory(error: Exception) -> None:
    """Raise `MemoryError` where want of memory is behind an error, which then says nothing about the file."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or _OUT_OF_MEMORY.search(str(cause)):
            raise MemoryError from error
        # PyMuPDF's own C code ends in a SystemError about the real one.
        cause = cause.__cause__ or cause.__context__


def _check_text(pages: list[dict[_Direction, PageText]]) -> None:
    texts = [f.text for page in pages for part in page.values() for f in part.fragments]
    chars = sum(map(len, texts))
    if chars == 0:
        raise ReadError("empty", "no text; scanned? run OCR first")
    unknown = sum(text.count("\ufffd") for text in texts) / chars
    if unknown > _MAX_UNKNOWN:
        raise ReadError("unreadable", f"{unknown:.0%} of its characters have no Unicode value; run OCR first")


def _lay_out(pages: list[dict[_Direction, PageText]]) -> tuple[list[list[list[Paragraph]]], Vocabulary]:
    """Return for each page its regions in reading order, each a list of paragraphs."""
    vocabulary = collect_words(f.text for page in pages for part in page.values() for f in part.fragments)
    directions = sorted({d for page in pages for d in page}, key=lambda d: (d != _UPRIGHT, d))
    blank = PageText((), 1.0)
    kept = {d: drop_running_lines([page.get(d, blank) for page in pages]) for d in directions}
    gutters = {d: [find_gutter(page) for page in kept[d]] for d in directions}
    known = {d: find_known_gutters(gutters[d]) for d in directions}
    laid_out = []
    for number in range(len(pages)):
        order = sorted(directions, key=lambda d: -sum(len(f.text) for f in kept[d][number]))
        regions = [r for d in order for r in order_regions(kept[d][number], gutters[d][number], known[d])]
        laid_out.append([lay_out_region(region, vocabulary) for region in regions])
    return laid_out, vocabulary


def _compose(pages: list[list[list[Paragraph]]], vocabulary: Vocabulary) -> tuple[str, tuple[int, ...], list[Placed]]:
    """Write the document's text and say where its pages and paragraphs begin."""
    placed: list[Placed] = []
    parts: list[str] = []
    length = 0
    starts: list[int | None] = [None] * len(pages)
    for number, regions in enumerate(pages):
        for paragraph, begins in ((p, i == 0) for region in regions for i, p in enumerate(region)):
            line = join_lines(paragraph.lines, vocabulary)
            if begins and placed and _goes_on_in(placed[-1], paragraph, line):
                last = placed.pop()
                separator, start, page = "", last.start, last.page
                merged = join_lines((last.text, line), vocabulary)
                length -= len(parts.pop())
                at = start + len(merged) - len(line)
            else:
                separator = ("\n\n" if paragraph.gap else "\n") if placed else ""
                length += len(separator)
                parts.append(separator)
                at = start = length
                page, merged = number, line
            placed.append(Placed(start, page, paragraph, merged))
            parts.append(merged)
            length += len(merged)
            if starts[number] is None:
                starts[number] = at
    filled: list[int] = []
    for start_of_page in reversed(starts):
        filled.append(start_of_page if start_of_page is not None else (filled[-1] if filled else length))
    return "".join(parts), (0, *filled[-2::-1]), placed


def _goes_on_in(last: Placed, paragraph: Paragraph, line: str) -> bool:
    """Say whether the paragraph `last` goes on with the first one of the next column or page."""
    if paragraph.is_row or not last.paragraph.open_end or abs(paragraph.size - last.paragraph.size) > 0.5:
        return False
    return line[0].islower() and (last.text[-1].isalnum() or last.text[-1] in ",-")
