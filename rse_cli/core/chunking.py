"""A document's text to chunks: half-open spans that tile it, with no gap and no overlap.

Sentences are joined up to at least `MIN_CHARS` and split above `chunk_chars`; CJK characters count twice. A chunk never
crosses a heading, a page or a break that the reader set; code fences and table rows stay whole up to `ATOM_FACTOR`
times `chunk_chars`.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from rse_cli.core.lexical import measure_cjk_share
from rse_cli.core.models import Document

CHUNKING_VERSION = 2
"""Raised whenever the same document gives other chunks."""

Span = tuple[int, int]

MIN_CHARS = 60  # shorter sentences say too little for a vector of their own; 60 won among 40–120
DEFAULT_CHUNK_CHARS = 300  # about 75 tokens, where precision still gains; 300 won among 200–500
ATOM_FACTOR = 8  # a table row or code fence is worth more whole than small, up to a page of code (2,400 characters)
CJK_SHARE = 0.3
CJK_SAMPLE = 20_000
CJK_FACTOR = 2  # a Chinese, Japanese or Korean character says about as much as two to three letters, and is a token
WRAPPED_LINE_CHARS = 50  # in wrapped prose a line below this ends its paragraph: an address, a verse, a caption

# From the first mark of a run on, and without going back, as a line of 300,000 dots would else take hours.
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’»)\]]*+\s++|[。！？]+[\"'”’」』）)\]]*\s*|(?:\r\n?|\n)\s*")
_LIST_START = re.compile(r"(?:[-*+•–>|#:.]|\d{1,3}[.)]|[a-zA-Z][.)])[ \t]|[|#>=~`]")
_CLOSED_BEFORE_WRAP = re.compile(r"[:;|]\s*$")
_SEPARATORS = (("\n",), ("; ", "；"), (", ", "，", "、"), (" ", "\t", "\u3000"))
VIRAMA = 9
"""Canonical combining class of the sign that joins consonants."""

_JOINERS = "\u200d\ufe0e\ufe0f"


def split_document(document: Document, chunk_chars: int = DEFAULT_CHUNK_CHARS) -> list[Span]:
    """Return the spans of a document's chunks.

    Parameters
    ----------
    document : Document
        Text with its headings, pages, breaks and atoms.
    chunk_chars : int
        Longest chunk, save for atoms. At least 80.

    Returns
    -------
    list of (int, int)
        Half-open, in order; together they tile the text. Empty for a text of white space.

    Raises
    ------
    ValueError
        If `chunk_chars` is below 80.

    Examples
    --------
    >>> text = "One. This sentence is joined to it as it is short. Sixty is passed. " + "Long " * 50 + "end."
    >>> split_document(Document(text))
    [(0, 68), (68, 322)]
    """
    if chunk_chars < 80:
        raise ValueError("chunk_chars is at least 80")
    if not document.text.strip():
        return []
    factor = CJK_FACTOR if measure_cjk_share(document.text[:CJK_SAMPLE]) >= CJK_SHARE else 1
    limit, least = chunk_chars // factor, MIN_CHARS // factor
    spans: list[Span] = []
    for start, end in _split_regions(document):
        spans += _join_units(document.text, _split_units(document, start, end, limit), limit, least)
    return _absorb_blank(document.text, spans)


def _split_regions(document: Document) -> Iterator[Span]:
    """Yield the stretches between headings, pages and breaks: no chunk crosses one."""
    inner = {*(heading.start_char for heading in document.headings), *document.page_starts, *document.breaks}
    bounds = sorted({0, len(document.text), *inner})
    yield from itertools.pairwise(bounds)


def _split_units(document: Document, start: int, end: int, chunk_chars: int) -> Iterator[Span]:
    """Yield sentences, pieces of long sentences, and atoms, tiling ``[start, end)``."""
    at = start
    first = max(0, bisect_right(document.atoms, (start, start)) - 1)
    for index in range(first, len(document.atoms)):
        atom_start, atom_end = document.atoms[index]
        if atom_start >= end:
            break
        atom_start, atom_end = max(atom_start, at), min(atom_end, end)
        if atom_end <= atom_start:
            continue
        yield from _split_prose(document, at, atom_start, chunk_chars)
        after = atom_end
        while after < end and document.text[after].isspace():
            after += 1
        limit = chunk_chars * ATOM_FACTOR
        yield from (
            [(atom_start, after)] if atom_end - atom_start <= limit else _cut(document.text, atom_start, after, limit)
        )
        at = after
    yield from _split_prose(document, at, end, chunk_chars)


def _split_prose(document: Document, start: int, end: int, chunk_chars: int) -> Iterator[Span]:
    text, at = document.text, start
    for stop in find_sentence_ends(text, start, end, document.wrapped):
        yield from _cut(text, at, stop, chunk_chars)
        at = stop
    if at < end:
        yield from _cut(text, at, end, chunk_chars)


def find_sentence_ends(text: str, start: int, end: int, wrapped: bool = False) -> Iterator[int]:
    """Yield where sentences end between `start` and `end`: after their white space, before the next one.

    Parameters
    ----------
    text : str
        Any text.
    start, end : int
        Half-open span to look at; `end` itself is not yielded.
    wrapped : bool
        Whether single line ends may be only the wrapping of prose.

    Examples
    --------
    >>> list(find_sentence_ends("One. Two?\\nThree", 0, 15))
    [5, 10]
    """
    for match in _SENTENCE_END.finditer(text, start, end):
        if match.end() >= end:
            break
        if wrapped and text[match.start()] in "\r\n" and _continues(text, match):
            continue
        yield match.end()


def _continues(text: str, line_end: re.Match[str]) -> bool:
    """Whether prose goes on over a line end of a wrapped document."""
    if len(line_end.group().splitlines()) > 1 or _LIST_START.match(text, line_end.end()):
        return False
    at = line_end.start()
    line_start = max(text.rfind("\n", 0, at), text.rfind("\r", max(0, at - 200), at)) + 1
    return at - line_start >= WRAPPED_LINE_CHARS and not _CLOSED_BEFORE_WRAP.search(text, max(line_start, at - 3), at)


def _cut(text: str, start: int, end: int, limit: int) -> Iterator[Span]:
    """Yield pieces of at most `limit` characters of about one length, cut at the best separator near their ends."""
    stop = start + len(text[start:end].rstrip())
    while stop - start > limit:
        pieces = -(-(stop - start) // limit)
        ideal = (stop - start) // pieces
        cut = _find_cut(text, start + ideal // 2, start + min(limit, ideal + ideal // 4), start)
        yield start, cut
        start = cut
    yield start, end


def _find_cut(text: str, low: int, high: int, start: int) -> int:
    for separators in _SEPARATORS:
        found = max(text.rfind(separator, low, high) + len(separator) for separator in separators)
        if found > low:
            return found
    cut = high
    while cut > start + 1 and _is_inside_character(text, cut):
        cut -= 1
    return cut if cut > start + 1 else high


def _is_inside_character(text: str, at: int) -> bool:
    """Whether a cut at `at` would part a base from its marks, an emoji from its modifiers, or CR from LF.

    In short what UAX 29 says of extended grapheme clusters: a letter after a virama, too, belongs to the one before.
    """
    after, before = text[at], text[at - 1]
    return (
        after in _JOINERS
        or before == "\u200d"
        or unicodedata.combining(after) > 0
        or unicodedata.category(after) in ("Mn", "Me", "Mc")
        or unicodedata.combining(before) == VIRAMA
        or after in "\u0e33\u0eb3"  # Thai and Lao AM, a vowel and a mark in one
        or "\u1160" <= after <= "\u11ff"  # vowels and finals of a Hangul syllable in parts
        or "\ud7b0" <= after <= "\ud7ff"
        or "\U000e0020" <= after <= "\U000e007f"  # the tags of a flag
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or ("\U0001f1e6" <= after <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff")
        or (before == "\r" and after == "\n")
    )


def _join_units(text: str, units: Iterable[Span], chunk_chars: int, least: int) -> Iterator[Span]:
    """Join units until a chunk holds `least` characters; a short rest goes to the chunk before it where it fits."""
    joined: list[Span] = []
    for start, end in units:
        if joined:
            before, at = joined[-1]
            length = len(text[before:at].rstrip())
            over = at - before + len(text[start:end].rstrip()) > chunk_chars
            if length < least and (not over or end - start > chunk_chars):
                joined[-1] = (before, end)
                continue
        joined.append((start, end))
    if len(joined) > 1:
        (before, _), (start, end) = joined[-2:]
        if len(text[start:end].rstrip()) < least and len(text[before:end].rstrip()) <= chunk_chars:
            joined[-2:] = [(before, end)]
    yield from joined


def _absorb_blank(text: str, spans: list[Span]) -> list[Span]:
    """Give spans of white space to the chunk before them, or the first to the one after it."""
    kept: list[Span] = []
    pending: int | None = None
    for start, end in spans:
        if not text[start:end].isspace():
            kept.append((start if pending is None else pending, end))
            pending = None
        elif kept:
            kept[-1] = (kept[-1][0], end)
        else:
            pending = start if pending is None else pending
    return kept
