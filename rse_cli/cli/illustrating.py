"""Pages of segments as pictures, for ``--return page-images`` and ``--return dynamic``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rse_cli.cli.output import say
from rse_cli.core.spelling import suggest_name
from rse_cli.errors import ReadError, UsageError
from rse_cli.pipeline.query import Answer, Segment

RETURNS = ("text", "page-images", "dynamic")


def render_answer(answer: Answer, root: Path, kind: str, folder: Path) -> list[list[str]]:
    """Render the pages of each segment of a PDF.

    Parameters
    ----------
    answer : Answer
        Its segments.
    root : Path
        What their paths are relative to.
    kind : str
        ``page-images`` for every page, ``dynamic`` for those of segments with a page that is mostly picture.
    folder : Path
        Where the pictures go.

    Returns
    -------
    list of list of str
        Per segment the paths of its pictures, none for documents without pages.
    """
    return [_render_segment(segment, root, kind, folder) for segment in answer.segments]


def _render_segment(segment: Segment, root: Path, kind: str, folder: Path) -> list[str]:
    from rse_cli.adapters.page_images import MOSTLY_PICTURE, is_pdf, measure_pictures, render_pages

    path = root / segment.path
    if segment.start_page is None or segment.end_page is None:
        return []
    # A path of the index is only as good as the index: nothing outside of the root is opened.
    if not path.resolve().is_relative_to(root.resolve()) or not is_pdf(path):
        return []
    pages: Sequence[int] = range(segment.start_page, segment.end_page + 1)
    try:
        if kind == "dynamic" and max(measure_pictures(path, pages)) <= MOSTLY_PICTURE:
            return []
        return [str(picture) for picture in render_pages(path, pages, folder, document=segment.path)]
    except ReadError as fault:
        # The file has gone or changed since it was indexed; the text is still there.
        say(f"rse: no picture of {segment.path}: {fault.reason}")
        return []


def check_return(kind: str, folder: str | None) -> None:
    """Refuse an unknown kind, or pictures without a folder.

    Raises
    ------
    UsageError
        Saying what is missing.
    """
    if kind not in RETURNS:
        raise UsageError(f"--return takes {', '.join(RETURNS)}, not {kind!r}{suggest_name(kind, RETURNS)}")
    if (kind == "text") != (folder is None):
        raise UsageError("--return page-images and dynamic go with --images DIR")
