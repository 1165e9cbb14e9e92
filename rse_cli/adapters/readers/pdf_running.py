"""Running headers, footers and page numbers: find what stands at one height on page after page. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rse_cli.adapters.readers.pdf_lines import Fragment, group_rows
from rse_cli.dataclass import dataclass

_ZONE = 0.15
"""Part of the page's height, at the top and at the bottom, in which running lines lie."""

_MIN_PAGES = 4
_MIN_SHARES = (0.2, 0.4)
"""Running lines stand on at least four pages, the outermost on a fifth of all (left and right pages and parts have
their own), further ones on two fifths: what comes below a header may be "(in millions)" under many titles."""

_BIN = 6.0
"""Points: the same line may sit this much higher or lower on another page."""

_PAGE_NUMBER = re.compile(r"[ivxlc]{1,6}|[A-Z]?-?\d[\d,]*", re.ASCII)
_Key = tuple[str, bool, int]


@dataclass(frozen=True, slots=True)
class PageText:
    """The fragments of one page in one direction, turned so that the text is upright, and the page's height then."""

    fragments: tuple[Fragment, ...]
    height: float


def drop_running_lines(pages: Sequence[PageText]) -> list[list[Fragment]]:
    """Return each page's fragments without its running header, footer and page number.

    Rows are tried from the page's edge inwards and go while all their fragments stand on enough other pages at
    the same height, with the same text but for digits; the first that stays ends the search.
    """
    seen: Counter[_Key] = Counter()
    for page in pages:
        near = {(text, top, b + d) for text, top, b in _edge_keys(page) for d in (-1, 0, 1)}
        seen.update(near)
    filled = sum(1 for page in pages if page.fragments)
    needed = [max(_MIN_PAGES, share * filled) for share in _MIN_SHARES]
    kept = []
    for page in pages:
        dropped: set[int] = set()
        for top in (True, False):
            zone = [f for f in page.fragments if (key := _make_key(f, page.height)) is not None and key[1] is top]
            rows = group_rows(zone)
            for i, row in enumerate(rows if top else rows[::-1]):
                pages_with = min(seen[key] for f in row if (key := _make_key(f, page.height)) is not None)
                if pages_with < needed[min(i, 1)]:
                    break
                dropped.update(id(f) for f in row)
        kept.append([f for f in page.fragments if id(f) not in dropped])
    return kept


def _edge_keys(page: PageText) -> set[_Key]:
    return {key for f in page.fragments if (key := _make_key(f, page.height)) is not None}


def _make_key(fragment: Fragment, height: float) -> _Key | None:
    """What running lines have in common: text without its digits, edge of the page, distance from that edge."""
    top = fragment.y1 < height / 2
    distance = fragment.baseline if top else height - fragment.baseline
    if distance > _ZONE * height:
        return None
    text = fragment.text.strip()
    text = "#" if _PAGE_NUMBER.fullmatch(text) else re.sub(r"\d[\d,.]*", "#", text.lower())
    return re.sub(r"\s+", " ", text), top, round(distance / _BIN)
