"""The words of the domain as frozen dataclasses, with their invariants.

Indices of chunks and characters are 0-based and half-open; lines and pages are 1-based and inclusive.
"""

from __future__ import annotations

from typing import Literal

from rse_cli.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document.

    Parameters
    ----------
    start_char : int
        Where the heading's line begins in the document's text.
    level : int
        1 for the outermost level.
    text : str
        The heading without its markup, on one line.

    Raises
    ------
    ValueError
        If `start_char` is negative or `level` is below 1.
    """

    start_char: int
    level: int
    text: str

    def __post_init__(self) -> None:
        if self.start_char < 0 or self.level < 1:
            raise ValueError(f"not a heading: {self}")


@dataclass(frozen=True, slots=True)
class Document:
    """What a reader makes of one file.

    Parameters
    ----------
    text : str
        The decoded file itself for text formats (`verbatim`), else the extracted text.
    title : str or None
        The title that the document gives itself; None lets the caller take its first line or file name.
    headings : tuple of Heading
        In order of `start_char`.
    page_starts : tuple of int
        Where each page begins in `text`, the first at 0; empty for formats without pages.
    atoms : tuple of (int, int)
        Half-open spans that a chunk should hold whole: code fences, table rows. Sorted, disjoint.
    breaks : tuple of int
        Offsets at which a chunk must begin besides headings, such as a definition in source code. Sorted.
    verbatim : bool
        Whether `text` is the decoded file, so that its offsets and lines are the file's own.
    wrapped : bool
        Whether single line ends are only the wrapping of prose, so that a sentence may go on over them.

    Raises
    ------
    ValueError
        If positions are unsorted, overlap, or lie outside the text.

    Examples
    --------
    >>> Document(text="# A\\nB.\\n", title="A", headings=(Heading(0, 1, "A"),)).page_starts
    ()
    """

    text: str
    title: str | None = None
    headings: tuple[Heading, ...] = ()
    page_starts: tuple[int, ...] = ()
    atoms: tuple[tuple[int, int], ...] = ()
    breaks: tuple[int, ...] = ()
    verbatim: bool = False
    wrapped: bool = False

    def __post_init__(self) -> None:
        bounds = [at for span in self.atoms for at in span]
        for name, positions in (
            ("headings", [h.start_char for h in self.headings]),
            ("page_starts", list(self.page_starts)),
            ("atoms", bounds),
            ("breaks", list(self.breaks)),
        ):
            if positions != sorted(positions):
                raise ValueError(f"{name} are not in order")
            if positions and not 0 <= positions[0] <= positions[-1] <= len(self.text):
                raise ValueError(f"{name} lie outside the text")
        if self.page_starts and self.page_starts[0] != 0:
            raise ValueError("the first page starts at 0")


@dataclass(frozen=True, slots=True)
class Chunk:
    """The atomic unit of the index.

    Parameters
    ----------
    ord : int
        Position among the document's chunks.
    start_char, end_char : int
        Half-open span in the document's text; `text` is exactly that slice.
    text : str
        The chunk's text.
    start_line, end_line : int or None
        Lines of the file, for verbatim documents.
    start_page, end_page : int or None
        Pages, for documents that have them.
    section : str
        The path of headings above the chunk, joined by `` › ``.
    header : str
        What is embedded beside the text: title, first-level heading, nearest heading, for table rows the column row.
    row_terms : tuple of str or None
        For a chunk of a run of table chunks: the terms of the run's row field. None elsewhere.
    block : int
        Number of the block that the chunk belongs to, see `rse_cli.core.blocks`.

    Raises
    ------
    ValueError
        If the span is empty or does not have the text's length.
    """

    ord: int
    start_char: int
    end_char: int
    text: str
    start_line: int | None = None
    end_line: int | None = None
    start_page: int | None = None
    end_page: int | None = None
    section: str = ""
    header: str = ""
    row_terms: tuple[str, ...] | None = None
    block: int = 0

    def __post_init__(self) -> None:
        if self.end_char <= self.start_char or len(self.text) != self.end_char - self.start_char:
            raise ValueError(
                f"chunk {self.ord} spans [{self.start_char}, {self.end_char}) but has {len(self.text)} characters"
            )


@dataclass(frozen=True, slots=True)
class Run:
    """Candidate chunks ``[start, end)`` chosen together, by position in the candidate arrays, with their score."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of one document that a method chose, before it is shown.

    Parameters
    ----------
    document : int
        Number of the document.
    start_chunk, end_chunk : int
        The chunks that it touches, half-open.
    start_char, end_char : int
        Half-open span in the document's text, inside those chunks; it may begin or end inside a chunk.
    score : float
        What it is worth; higher is better, on the method's own scale.
    queries : tuple of int
        Positions of the queries that it answers, ascending.
    hit : int or None
        The chunk that was found, for methods that grow a passage around one.

    Raises
    ------
    ValueError
        If a span is empty.
    """

    document: int
    start_chunk: int
    end_chunk: int
    start_char: int
    end_char: int
    score: float
    queries: tuple[int, ...] = (0,)
    hit: int | None = None

    def __post_init__(self) -> None:
        if self.end_chunk <= self.start_chunk or self.end_char <= self.start_char:
            raise ValueError(f"an empty passage: {self}")


FileStatus = Literal["indexed", "empty", "binary", "encrypted", "unreadable", "failed"]
"""What became of a file: ``indexed`` has chunks, ``empty`` no text, ``binary`` is no document."""
