"""Headings and title of a PDF: from its outline, and from type that stands out against the body. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from rse_cli.adapters.readers.pdf_layout import Paragraph
from rse_cli.adapters.readers.pdf_lines import CELL_GAP
from rse_cli.core.models import Heading
from rse_cli.dataclass import dataclass

_Style = tuple[bool, float, bool, bool]
"""What ranks a heading by its type: item of a report, size (0 for items), bold, capitals."""

_MAX_LEVEL = 6
_LARGE = 1.12
"""Type this much larger than the body is a heading's: 11 points over 10 may be a lead paragraph, 12 is not."""

_ITEM = re.compile(r"^(?:part\s+[IVX]+\b|item\s+\d{1,2}[A-C]?\b)", re.IGNORECASE)
"""Parts and items of statutory reports are their outermost divisions, though often set like any subheading."""

_BARE_TYPE = re.compile(
    r"^(?:(?:form\s*)?(?:10-?[kq]|8-?k|20-?f|6-?k|def ?14a)(?:/a)?|(?:(?:annual|quarterly) )?report|document"
    r"|(?:powerpoint )?presentation|slide 1|united states(?: of america)?|(?:u\.?s\.? )?securities and exchange"
    r" commission)$",
    re.IGNORECASE,
)
_FILE_NAME = re.compile(r"\.(?:pdf|docx?|html?|indd|qxd|xlsx?|pptx?|rtf|txt|tex|dvi|ps|fm|xml|p65|pmd)$|[\\/]", re.I)


@dataclass(frozen=True, slots=True)
class Placed:
    """A paragraph in the document's text: where it begins, its page (0-based) and its text on one line."""

    start: int
    page: int
    paragraph: Paragraph
    text: str


def find_body_size(placed: Sequence[Placed]) -> float:
    """Return the font size of most characters of prose, in half points; of all text if there is no prose."""
    sizes: Counter[float] = Counter()
    for part in placed:
        if not part.paragraph.is_row:
            sizes[round(part.paragraph.size * 2) / 2] += len(part.text)
    sizes = sizes or Counter(round(part.paragraph.size * 2) / 2 for part in placed)
    return max(sizes, key=lambda size: (sizes[size], -size)) if sizes else 0.0


def find_headings(placed: Sequence[Placed], outline: Sequence[tuple[int, str, int]]) -> tuple[Heading, ...]:
    """Find headings by the outline and by type.

    Parameters
    ----------
    placed : sequence of Placed
        All paragraphs, in order.
    outline : sequence of (int, str, int)
        Level (from 1), title and page (0-based) of the document's bookmarks.

    Returns
    -------
    tuple of Heading
        With at least three bookmarks that match a line of their page, these keep the outline's levels and
        headings by type stand below them; else headings by type alone.
    """
    levels = _rank_by_type(placed)
    texts = {part.start: part.text for part in placed}
    listed = _match_outline(placed, outline)
    if len(listed) >= 3:
        depth = max(level for level, _ in listed.values())
        levels = {start: level + depth for start, level in levels.items()}
        levels |= {start: level for start, (level, _) in listed.items()}
        texts |= {start: title for start, (_, title) in listed.items()}
    return tuple(Heading(start, min(levels[start], _MAX_LEVEL), texts[start]) for start in sorted(levels))


def _match_outline(placed: Sequence[Placed], outline: Sequence[tuple[int, str, int]]) -> dict[int, tuple[int, str]]:
    """Map the start of each paragraph that a bookmark names to the bookmark's level and title."""
    by_page: dict[int, list[tuple[str, int]]] = {}
    for part in placed:
        if len(part.text) <= 200:
            by_page.setdefault(part.page, []).append((_fold(part.text), part.start))
    found: dict[int, tuple[int, str]] = {}
    for level, title, page in outline:
        wanted = _fold(title)
        lines = by_page.get(page, [])
        matches = [(rank, start) for line, start in lines if (rank := _rank_match(line, wanted)) and start not in found]
        hit = min(matches, default=None)
        if hit is not None:
            found[hit[1]] = (max(1, level), " ".join(title.split()))
    return found


def _rank_match(line: str, title: str) -> int:
    """How well a line fits a bookmark's title, 1 best, 0 not at all."""
    if not title or not line:
        return 0
    if line == title:
        return 1
    if len(title) >= 4 and line.startswith(title):
        return 2
    return 3 if len(line) >= 8 and (title.startswith(line) or title.endswith(line)) else 0


def _fold(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def _rank_by_type(placed: Sequence[Placed]) -> dict[int, int]:
    """Map the start of each heading by type to its level: items first, then by size, bold and capitals."""
    body = find_body_size(placed)
    chars = sum(len(part.text) for part in placed)
    bold_body = sum(len(part.text) for part in placed if part.paragraph.bold) > 0.5 * chars
    styles: dict[int, _Style] = {}
    for i, part in enumerate(placed):
        style = _find_style(part, body, bold_body)
        if style and not (i and placed[i - 1].paragraph.is_row and not part.paragraph.gap and style[1] <= body):
            styles[part.start] = style
    return _rank_styles(styles, placed)


def _rank_styles(styles: dict[int, _Style], placed: Sequence[Placed]) -> dict[int, int]:
    """Give each style the level after all greater ones that recur: a cover's type must not enclose the whole report."""
    pages = {part.start: part.page for part in placed}
    long = placed[-1].page >= 3 if placed else False
    seen: defaultdict[_Style, set[int]] = defaultdict(set)
    for start, style in styles.items():
        seen[style].add(pages[start] if long else start)
    ranks: dict[_Style, int] = {}
    level = 1
    for style in sorted(seen, reverse=True):
        ranks[style] = level
        level += len(seen[style]) >= 2
    return {start: ranks[style] for start, style in styles.items()}


def _find_style(part: Placed, body: float, bold_body: bool) -> _Style | None:
    """Return the style of a heading, or None if the paragraph is not one."""
    text, paragraph = part.text, part.paragraph
    letters = sum(map(str.isalpha, text))
    short = len(paragraph.lines) <= 3 and len(text) <= 120 and len(text.split()) <= 16
    if paragraph.is_row or CELL_GAP in text or not short or letters < 3:
        return None
    item = _ITEM.match(text) is not None
    if not (text[0].isupper() or text[0].isdigit()) or text.endswith((":", ",", ";")):
        return None
    if text.endswith(".") and not item and len(text.split()) > 6:
        return None
    size = max(body, round(paragraph.size * 2) / 2)
    large = paragraph.size >= _LARGE * body
    bold = paragraph.bold and not bold_body and paragraph.size >= 0.9 * body
    capitals = text.isupper() and letters >= 8
    if not (large or bold or (paragraph.gap and (item or (capitals and paragraph.size >= 0.9 * body)))):
        return None
    # Parts come before items in the text and enclose them, but an item is what a reader looks up: one level for both.
    return (True, 0.0, False, False) if item else (False, size if large else body, bold, capitals)


def choose_title(metadata: str, stem: str, placed: Sequence[Placed]) -> str | None:
    """Return the title that the metadata give, else the largest type on the first page, else None.

    Titles that programs put in by themselves, file names and bare document types ("10-K") don't count.
    """
    title = " ".join(metadata.split())
    # A word with digits and no space is the name that a filing system gave: "d12345d10k", "0000066740-19-000004".
    numbered = " " not in title and any(map(str.isdigit, title))
    if _is_title(title) and not numbered and title != stem and not re.match(r"Microsoft \w+ - ", title):
        return title
    body = find_body_size(placed)
    first = [part for part in placed if part.page == 0 and part.paragraph.size >= 1.3 * body]
    usable = [part for part in first if _is_title(part.text) and len(part.text) <= 150 and not part.paragraph.is_row]
    if not usable:
        return None
    largest = max(part.paragraph.size for part in usable)
    start = next(i for i, part in enumerate(placed) if part in usable and part.paragraph.size == largest)
    lines = []
    for part in placed[start : start + 3]:
        if abs(part.paragraph.size - largest) > 0.5 or part not in usable:
            break
        lines.append(part.text)
    return " ".join(lines)


def _is_title(text: str) -> bool:
    if len(text) < 4 or sum(map(str.isalpha, text)) < 3:
        return False
    return not (
        text.lower().startswith("untitled") or _ITEM.match(text) or _BARE_TYPE.match(text) or _FILE_NAME.search(text)
    )
