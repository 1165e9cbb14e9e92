"""The text of a document built block by block, with the offsets of headings, pages and atoms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from rse_cli.core.models import Document, Heading
from rse_cli.dataclass import dataclass
from rse_cli.errors import ReadError

# Controls, soft hyphens, zero-width characters, bidi controls and lone surrogates have no place in extracted text.
# The joiners U+200C and U+200D spell words in the scripts from Arabic to Sinhala, so they stay after those letters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
    "|(?<![\u0600-\u0dff])[\u200c\u200d]"
)

# A longer "heading" is a paragraph in a heading's clothes; no heading of the sample corpora passes 200 characters.
MAX_HEADING_CHARS = 300

# Alternative texts that name the kind of picture or its file, or that a program guessed, say nothing to a reader.
_IDLE_ALT = re.compile(
    r"(?i)(an? |the )?(image|img|picture|photo|icon|logo|spacer|avatar|figure|banner|thumbnail|graphic|chart|diagram)"
    r"[\s_-]*\d*|\S+\.(png|jpe?g|gif|svg|webp|bmp|tiff?|emf|wmf)|.*automatically generated.*|\W*|\d+"
)


def clean_text(text: str) -> str:
    """Drop what can't be seen from `text`, make line ends ``\\n`` and no-break spaces plain."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ").replace("\u202f", " ")
    return _INVISIBLE.sub("", text)


def fold_spaces(text: str) -> str:
    """Clean `text` and put one space for each run of white space, line ends included.

    Examples
    --------
    >>> fold_spaces(" co\\xadop\\u200b \\n now\\xa0")
    'coop now'
    """
    return " ".join(clean_text(text).split())


def fold_lines(text: str) -> str:
    """Fold the spaces of each line of `text` and drop its empty lines."""
    return "\n".join(line for line in map(fold_spaces, text.split("\n")) if line)


def describe_picture(alt: str | None) -> str:
    """Return ``[alt]`` for an alternative text that says something, else an empty string.

    Examples
    --------
    >>> describe_picture("Sales by region"), describe_picture("image1.png"), describe_picture(None)
    ('[Sales by region]', '', '')
    """
    text = fold_spaces(alt or "")
    return "" if _IDLE_ALT.fullmatch(text) else f"[{text}]"


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell: its text, and how many columns and rows it covers."""

    text: str
    columns: int = 1
    rows: int = 1


def lay_out_rows(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """Give each cell its column: a merged cell shows its text once, in its first place.

    Parameters
    ----------
    rows : sequence of sequence of Cell
        The cells as the file lists them, those covered by others left out.

    Returns
    -------
    list of list of str
        The rows with empty strings in covered places.

    Examples
    --------
    >>> lay_out_rows([[Cell("Region", rows=2), Cell("2019", columns=2)], [Cell("Q1"), Cell("Q2")]])
    [['Region', '2019', ''], ['', 'Q1', 'Q2']]
    """
    # Spans may be absurd (a rowspan of 65534 in every row): past this many covered places they are ignored.
    spare = 1000 + 20 * sum(map(len, rows))
    covered: dict[int, int] = {}
    table: list[list[str]] = []
    for number, row in enumerate(rows):
        line: list[str] = []
        below: dict[int, int] = {}
        for cell in row:
            while covered.get(len(line), 0):
                line.append("")
            width = max(1, min(cell.columns, spare))
            spare -= width - 1
            height = min(cell.rows, len(rows) - number)
            if height > 1 and height * width <= spare:
                spare -= height * width
                below.update({len(line) + at: height for at in range(width)})
            line += [cell.text] + [""] * (width - 1)
        table.append(line)
        covered = {at: left - 1 for at, left in {**covered, **below}.items() if left > 1}
    return table


@dataclass(slots=True)
class TextBuilder:
    """The text of a document as it grows.

    Blocks stand apart by an empty line; the items of a list and the rows of a table follow one another line by line.
    """

    _pieces: list[str] = field(default_factory=list)
    _length: int = 0
    _last: str = ""
    _headings: list[Heading] = field(default_factory=list)
    _atoms: list[tuple[int, int]] = field(default_factory=list)
    _page_starts: list[int] = field(default_factory=list)

    def _append(self, kind: str, text: str) -> int:
        """Append a block and return where it starts."""
        together = kind == self._last and kind in ("item", "row")
        separator = "" if self._last in ("", "page") else "\n" if together else "\n\n"
        start = self._length + len(separator)
        self._pieces += (separator, text)
        self._length = start + len(text)
        self._last = kind
        return start

    def add_paragraph(self, text: str) -> None:
        """Add a paragraph; line ends in `text` are kept, other white space is folded. Nothing is added for no text."""
        if folded := fold_lines(text):
            self._append("paragraph", folded)

    def add_item(self, text: str, depth: int = 1) -> None:
        """Add an item of a list, `depth` 1 for the outermost."""
        if folded := fold_spaces(text):
            # Deep nesting is mostly broken markup; the indent need not follow it.
            self._append("item", "  " * min(depth - 1, 8) + "- " + folded)

    def add_heading(self, text: str, level: int) -> None:
        """Add a heading on a line of its own; `level` 1 is the outermost."""
        folded = fold_spaces(text)
        if len(folded) > MAX_HEADING_CHARS:
            self._append("paragraph", folded)
        elif folded:
            self._headings.append(Heading(self._append("heading", folded), max(1, level), folded))

    def add_table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add a table, each row an atom on one line, cells joined by `` | ``; empty rows and columns are left out."""
        folded = [[fold_spaces(cell) for cell in row] for row in rows]
        filled = sorted({at for row in folded for at, cell in enumerate(row) if cell})
        for row in folded:
            if any(row):
                self._add_atom(
                    "row", " | ".join(row[at] if at < len(row) else "" for at in filled).rstrip(" |").lstrip()
                )
        if any(map(any, folded)):
            self._last = "table"

    def add_code(self, text: str) -> None:
        """Add a block of code as an atom, with its line ends and spaces; empty lines around it are left out."""
        code = clean_text(text).rstrip()
        indent = len(code) - len(code.lstrip())
        if code:
            self._add_atom("code", code[code.rfind("\n", 0, indent) + 1 :])

    def _add_atom(self, kind: str, text: str) -> None:
        """Append a block that a chunk should hold whole, with its line end."""
        start = self._append(kind, text)
        self._atoms.append((start, self._length + 1))

    def start_page(self) -> None:
        """Begin a page; what is added next stands on it."""
        if self._last not in ("", "page"):
            self._pieces.append("\n\n")
            self._length += 2
        self._last = "page" if self._length else ""
        self._page_starts.append(self._length)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added yet."""
        return not self._length

    def extend(self, other: TextBuilder) -> None:
        """Add the blocks of a builder without pages."""
        if other.is_empty:
            return
        start = self._append("document", "".join(other._pieces))
        self._headings += [Heading(start + h.start_char, h.level, h.text) for h in other._headings]
        self._atoms += [(start + first, start + end) for first, end in other._atoms]

    def first_heading(self) -> str | None:
        """Return the text of the first heading of level 1, if there is one."""
        return next((heading.text for heading in self._headings if heading.level == 1), None)

    def document(self, title: str | None = None) -> Document:
        """Finish the document.

        Parameters
        ----------
        title : str or None
            The title that the file gives itself.

        Returns
        -------
        Document
            Its text ends with a line end.

        Raises
        ------
        ReadError
            If there is no text, with the status ``empty``.
        """
        text = "".join(self._pieces)
        if not text.strip():
            raise ReadError("empty", "no text")
        return Document(
            text=text + "\n",
            title=fold_spaces(title or "") or None,
            headings=tuple(self._headings),
            page_starts=tuple(self._page_starts),
            atoms=tuple(self._atoms),
        )
