"""``rse inspect --document``: a document's chunks, its text as indexed, and its pages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rse_cli.cli.glyphs import Glyphs, fit, pad, show_line, show_name
from rse_cli.cli.inspecting import InspectFlags, list_candidate_paths
from rse_cli.cli.output import dump_json, make_visible, name_count, say, write_bytes, write_result
from rse_cli.cli.printing import SCHEMA_VERSION
from rse_cli.cli.wiring import Index
from rse_cli.core.models import Chunk
from rse_cli.errors import ReadError
from rse_cli.pipeline.listing import Listing, list_document
from rse_cli.timings import stage

if TYPE_CHECKING:
    from rich.text import Text


@stage("render")
def print_document(index: Index, flags: InspectFlags) -> int:
    """Print what is asked of a document; 0, or 1 if it has no text.

    Raises
    ------
    RseError
        If it is not in the index.
    """
    snapshot = index.store.snapshot()
    listing = list_document(snapshot, list_candidate_paths(index.root, str(flags.document)))

    def draw(width: int, glyphs: Glyphs) -> list[Text]:
        if flags.pages:
            return render_pages(list_pages(index, listing), width, glyphs)
        return render_listing(listing, width, glyphs)

    if flags.as_json:
        from rse_cli.cli.drawing import keep_drawn

        keep_drawn(draw, flags)
        write_bytes(dump_json(describe_document(index, listing, flags)))
    elif flags.text:
        _print_text(listing)
    else:
        from rse_cli.cli.drawing import print_drawn

        print_drawn(draw, flags)
    if not listing.chunks:
        record = listing.record
        say(f"rse: {record.path} has no text in the index ({record.reason or record.status})")
    return 0 if listing.chunks else 1


def _print_text(listing: Listing) -> None:
    """Print the text as indexed, byte for byte; a terminal gets control characters made visible."""
    if sys.stdout.isatty():
        write_result(make_visible(listing.text))
    else:
        write_bytes(listing.text.encode("utf-8", "replace"))


def describe_document(index: Index, listing: Listing, flags: InspectFlags) -> dict[str, Any]:
    """Return the document of ``--document --json``."""
    record = listing.record
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "path": record.path,
        "title": record.title,
        "status": record.status,
        "reason": record.reason,
        "reader": record.reader,
        "summary": record.summary,
        "n_chunks": record.n_chunks,
        "n_chars": record.n_chars,
        "chunks": [_describe_chunk(chunk) for chunk in listing.chunks],
    }
    if flags.text:
        document["text"] = listing.text
    if flags.pages:
        document["pages"] = [{"page": page, "holds": kind} for page, kind in list_pages(index, listing)]
    return document


def _describe_chunk(chunk: Chunk) -> dict[str, Any]:
    return {
        "chunk": chunk.ord,
        "start_char": chunk.start_char,
        "end_char": chunk.end_char,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "start_page": chunk.start_page,
        "end_page": chunk.end_page,
        "block": chunk.block,
        "section": chunk.section,
        "header": chunk.header,
        "text": chunk.text,
    }


def list_pages(index: Index, listing: Listing) -> list[tuple[int, str]]:
    """Return for each page whether it is text, picture or empty.

    A PDF is looked at again; of other documents with pages, those without a chunk are empty.
    """
    path = index.root / listing.record.path
    held = {
        page
        for chunk in listing.chunks
        if chunk.start_page is not None and chunk.end_page is not None
        for page in range(chunk.start_page, chunk.end_page + 1)
    }
    if path.resolve().is_relative_to(index.root.resolve()) and path.suffix.lower() == ".pdf":
        from rse_cli.adapters.page_images import describe_pages

        try:
            return list(enumerate(map(str, describe_pages(path)), start=1))
        except ReadError as fault:
            say(f"rse: {listing.record.path} can't be read any more ({fault.reason}); these are the pages with text")
    return [(page, "text" if page in held else "empty") for page in range(1, max(held, default=0) + 1)]


def render_pages(pages: Sequence[tuple[int, str]], width: int, glyphs: Glyphs) -> list[Text]:
    """Return runs of pages that hold the same: ``1–3 text``; one line where there are no pages."""
    from rich.text import Text

    if not pages:
        return [Text("no pages")]
    runs: list[tuple[int, int, str]] = []
    for page, kind in pages:
        if runs and runs[-1][2] == kind:
            runs[-1] = (runs[-1][0], page, kind)
        else:
            runs.append((page, page, kind))
    names = [str(first) if first == last else f"{first}{glyphs.dash}{last}" for first, last, _ in runs]
    size = max(map(len, names))
    return [Text(fit(f"{name:>{size}}  {kind}", width, glyphs)) for name, (_, _, kind) in zip(names, runs, strict=True)]


def render_listing(listing: Listing, width: int, glyphs: Glyphs) -> list[Text]:
    """Return a line a chunk: offsets, lines or pages, first words; above them the document, and each heading."""
    from rich.text import Text

    record = listing.record
    facts = [name_count(record.n_chunks, "chunk"), name_count(record.n_chars, "character"), record.reader]
    lines = [
        Text(fit(show_name(record.path, glyphs), width, glyphs), "bold magenta"),
        Text(fit(glyphs.sep.join(filter(None, [show_line(record.title, glyphs), *facts])), width, glyphs), "dim"),
    ]
    places = [name_place(chunk, glyphs) for chunk in listing.chunks]
    offsets = [f"{chunk.start_char}{glyphs.dash}{chunk.end_char}" for chunk in listing.chunks]
    sizes = [
        max([len(str(len(places))), 3]),
        max(map(len, offsets), default=0),
        max(map(len, places), default=0),
    ]
    section = ""
    for chunk, offset, place in zip(listing.chunks, offsets, places, strict=True):
        if chunk.section != section:
            section = chunk.section
            shown = show_line(section.replace(" › ", " > ") if glyphs.ascii else section, glyphs)
            lines.append(Text(fit(f"{'':>{sizes[0]}} {shown}", width, glyphs), "cyan"))
        line = Text.assemble((f"{chunk.ord:>{sizes[0]}}  {pad(offset, sizes[1])}", "dim"))
        line.append(f"  {pad(place, sizes[2])}" if sizes[2] else "", "dim")
        line.append(f"  {fit(show_line(chunk.text, glyphs), width - line.cell_len - 2, glyphs)}", "none")
        line.rstrip()
        lines.append(line)
    return lines


def name_place(chunk: Chunk, glyphs: Glyphs) -> str:
    """Return the lines or pages of a chunk: ``:3–5``, ``p2``."""
    sign, first, last = (
        (":", chunk.start_line, chunk.end_line)
        if chunk.start_line is not None
        else ("p", chunk.start_page, chunk.end_page)
    )
    if first is None:
        return ""
    return f"{sign}{first}" if last in (None, first) else f"{sign}{first}{glyphs.dash}{last}"
