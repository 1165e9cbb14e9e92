"""Pages of a PDF as pictures: rendered to PNG, and how much of a page is picture in the first place."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from rse_cli.adapters.readers.pdf import load_pymupdf, open_pdf
from rse_cli.errors import ReadError, RseError

PageKind = Literal["text", "picture", "empty"]

DEFAULT_DPI = 150
"""What models that read pages are mostly given: a letter page is 1,275 × 1,650 pixels, small print stays legible."""

MOSTLY_PICTURE = 0.5
"""Share of a page covered by images above which it is better shown than quoted."""

_POINTS_PER_INCH = 72
_MAX_PIXELS = 36_000_000
"""A0 at 150 dpi, 110 MB while it is rendered; a page may claim to be 5 m wide."""

_GRID = 400
"""Cells a side on which covered area is counted, whose error is below half a percent."""

_FEW_LETTERS = 16
"""Of letters and digits: a page number, or the stamp of an archive over a scan."""

_STEM_CHARS = 50
"""At four bytes each, and with what is added, below the 255 bytes that file systems give a name."""

_HASH_CHARS = 8

_Result = TypeVar("_Result")


def is_pdf(path: Path) -> bool:
    """Tell by its first 1,024 bytes, where the format has its mark, whether a file is a PDF; False if unreadable."""
    try:
        # A pipe would block when opened.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return b"%PDF-" in file.read(1024)
    except OSError:
        return False


def render_pages(
    path: Path, pages: Sequence[int], folder: Path, *, dpi: int = DEFAULT_DPI, document: str | None = None
) -> list[Path]:
    """Render pages of a PDF to PNG files.

    Parameters
    ----------
    path : Path
        The PDF; that it lies inside the root is for the caller to see to.
    pages : sequence of int
        1-based.
    folder : Path
        Where the pictures go; made if need be. A picture of the same name is replaced.
    dpi : int
        Pixels per inch, at least 1; lower for a page that would have more than 36 million pixels.
    document : str, optional
        The document's id, which gives the name; by default `path` as given.

    Returns
    -------
    list of Path
        One file a page, in the order of `pages`, named ``<stem>-<hash of the id>-p<page>.png``: the same for the same
        document, different for equal names in different folders. Each is complete or not there.

    Raises
    ------
    ReadError
        If the PDF is damaged, needs a password, or has no such page.
    RseError
        If a picture can't be written.
    """
    name = _name_pictures(path.as_posix() if document is None else document)
    with closing(_open_file(path)) as pdf:
        _check_pages(pdf, pages)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            written = []
            for page in pages:
                target = folder / f"{name}-p{page}.png"
                _write_whole(target, _visit_page(pdf, page, lambda one: _render(one, dpi)))
                written.append(target)
        except OSError as error:
            raise RseError(f"can't write page images to {folder}: {error.strerror or error}") from error
    return written


def measure_pictures(path: Path, pages: Sequence[int]) -> list[float]:
    """Return for each page the share of its area that images cover; overlapping ones count once.

    Parameters
    ----------
    path : Path
        The PDF.
    pages : sequence of int
        1-based.

    Returns
    -------
    list of float
        In [0, 1], within 0.01; 0 for a damaged page. Drawings of lines and areas don't count, nor do images outside
        the page.

    Raises
    ------
    ReadError
        If the PDF is damaged, needs a password, or has no such page.
    """
    with closing(_open_file(path)) as pdf:
        _check_pages(pdf, pages)
        return [_visit_page(pdf, page, _measure_page, 0.0) for page in pages]


def describe_pages(path: Path) -> list[PageKind]:
    """Return for each page what it holds.

    Parameters
    ----------
    path : Path
        The PDF.

    Returns
    -------
    list of str
        ``text`` if it has letters or digits, save for fewer than 16 on a page that is mostly picture; else ``picture``
        if anything is painted; else ``empty``, as is a damaged page.

    Raises
    ------
    ReadError
        If the PDF is damaged or needs a password.
    """
    with closing(_open_file(path)) as pdf:
        return [_visit_page(pdf, page, _describe_page, "empty") for page in range(1, pdf.page_count + 1)]


def _open_file(path: Path) -> Any:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReadError("unreadable", error.strerror or str(error)) from error
    return open_pdf(data)


def _check_pages(pdf: Any, pages: Sequence[int]) -> None:
    for page in pages:
        if not 1 <= page <= pdf.page_count:
            raise ReadError("failed", f"has no page {page}, but {pdf.page_count}")


def _visit_page(pdf: Any, page: int, visit: Callable[[Any], _Result], if_damaged: _Result | None = None) -> _Result:
    """Return what `visit` makes of a page; for a damaged one `if_damaged`, or a failure of ours if that is None."""
    try:
        return visit(pdf[page - 1])
    except Exception as error:  # MuPDF raises its own types, RuntimeError and ValueError
        if if_damaged is not None:
            return if_damaged
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ReadError("failed", f"damaged page {page}: {reason}") from error


def _render(page: Any, dpi: int) -> bytes:
    """Return a page as PNG."""
    pymupdf = load_pymupdf()
    zoom = dpi / _POINTS_PER_INCH
    zoom *= min(1.0, math.sqrt(_MAX_PIXELS / max(1.0, abs(page.rect.width * page.rect.height) * zoom * zoom)))
    picture: bytes = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), alpha=False).tobytes("png")
    return picture


def _measure_page(page: Any) -> float:
    """Return the covered share, counted on a grid."""
    x0, y0, x1, y1 = page.rect
    covered = np.zeros((_GRID, _GRID), dtype=bool)
    if x1 <= x0 or y1 <= y0:
        return 0.0
    for image in page.get_image_info():
        left, top, right, bottom = image["bbox"]
        columns = _to_cells((left - x0) / (x1 - x0), (right - x0) / (x1 - x0))
        rows = _to_cells((top - y0) / (y1 - y0), (bottom - y0) / (y1 - y0))
        covered[rows, columns] = True
    return float(covered.mean())


def _to_cells(start: float, end: float) -> slice:
    first, last = (round(min(1.0, max(0.0, at)) * _GRID) for at in (start, end))
    return slice(first, last)


def _describe_page(page: Any) -> PageKind:
    letters = sum(map(str.isalnum, page.get_text()))
    if letters >= _FEW_LETTERS or (letters and _measure_page(page) <= MOSTLY_PICTURE):
        return "text"
    # What is painted, in MuPDF's words: "fill-path", "stroke-path", "fill-image", "fill-shade", …
    painted = any(not kind.endswith("-text") for kind, _ in page.get_bboxlog())
    return "picture" if painted or letters else "empty"


def _name_pictures(document: str) -> str:
    """Return the beginning of a file name that is safe everywhere and tells documents apart."""
    stem = re.sub(r"[^\w.-]+", "_", Path(document).stem)[:_STEM_CHARS].strip("._-") or "page"
    digest = hashlib.sha256(document.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{stem}-{digest[:_HASH_CHARS]}"


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is complete or not there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
