"""HTML, however broken: the text that a browser would show, in blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from rse_cli.adapters.readers.archive import report_broken
from rse_cli.adapters.readers.building import Cell, TextBuilder, describe_picture, fold_spaces, lay_out_rows
from rse_cli.adapters.readers.markup import Event, decode_markup, parse_markup
from rse_cli.core.models import Document
from rse_cli.dataclass import dataclass

_UNSEEN = frozenset({
    "head", "script", "style", "template", "noscript", "svg", "canvas", "audio", "video", "object", "embed",
    "iframe", "select", "datalist", "textarea", "rt", "rp", "annotation",
})  # fmt: skip
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "p", "pre",
    "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "xmp",
})  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_CODE = frozenset({"pre", "listing", "xmp"})
# What can't stand in a heading: its start ends one that was left open.
_NOT_IN_HEADING = frozenset({"p", "ul", "ol", "dl", "table", "pre", "section", "article", *_HEADINGS})
# Marks that documentation tools and wikis put beside headings and code: permalinks, edit links, line numbers.
_NOISE_CLASSES = frozenset({"headerlink", "mw-editsection", "linenos", "lineno"})
# Roles that stand for an element (HTML-ARIA), and parts of a page's controls, which go as navigation does.
_BOILERPLATE_ROLES = {"navigation": "nav", "banner": "header", "contentinfo": "footer", "complementary": "aside",
                      "menu": "nav", "menubar": "nav", "search": "nav", "toolbar": "nav"}  # fmt: skip
_SPACES = re.compile(r"[ \t\n\r\f]+")
_HIDING_STYLE = re.compile(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden")
_IDLE_TITLES = frozenset({"untitled", "untitled document", "document", "title", "index", "home", "new page"})


def read_html(path: Path, data: bytes) -> Document:
    """Read a web page.

    Parameters
    ----------
    path : Path
        The file's name; ``.xhtml`` is tried as XML first.
    data : bytes
        The file's content.

    Returns
    -------
    Document
        The visible text. Navigation, headers, footers and asides are left out where ``<main>`` or ``<article>`` holds
        most of what remains. Titled by ``<title>``, else by its first ``<h1>``.

    Raises
    ------
    ReadError
        If there is no text.
    """
    builder = TextBuilder()
    with report_broken("HTML"):
        text = decode_markup(data)
        as_xml = path.suffix.lower() in (".xhtml", ".xht") or text.lstrip().startswith("<?xml")
        events = parse_markup(text, as_xml=as_xml)
        append_markup(builder, events)
    return builder.document(find_title(events) or builder.first_heading())


def find_title(events: list[Event]) -> str | None:
    """Return the text of the first ``<title>`` if it says something."""
    starts = (at for at, (kind, tag, _) in enumerate(events) if kind == "start" and tag == "title")
    pieces: list[str] = []
    for kind, value, _ in events[next(starts, len(events)) :]:
        if kind == "end":
            break
        if kind == "text":
            pieces.append(value)
    title = fold_spaces("".join(pieces))
    return title if title.lower() not in _IDLE_TITLES else None


def append_markup(builder: TextBuilder, events: list[Event]) -> None:
    """Append the visible text of a page to `builder`."""
    visible = list(_drop_elements(events, _is_unseen))
    content, main_chars = _drop_boilerplate(visible)
    if 2 * main_chars < sum(len(value.strip()) for kind, value, _ in content if kind == "text"):
        content = visible
    walk = _Walk(builder, _find_layout_tables(content))
    for at, (kind, value, attributes) in enumerate(content):
        if kind == "text":
            walk.take_text(value)
        elif kind == "start":
            walk.enter(at, value, attributes)
        else:
            walk.leave(value)
    walk.finish_block()


def _is_unseen(tag: str, attributes: Mapping[str, str]) -> bool:
    """Whether a browser doesn't show the element, or shows it beside the text only."""
    if tag in _UNSEEN or (tag == "dialog" and "open" not in attributes):
        return True
    if not attributes:
        return False
    if "hidden" in attributes and attributes["hidden"] != "until-found":
        return True
    return bool(_HIDING_STYLE.search(attributes.get("style", ""))) or not _NOISE_CLASSES.isdisjoint(
        attributes.get("class", "").split()
    )


def _drop_elements(events: list[Event], unwanted: Callable[[str, Mapping[str, str]], bool]) -> Iterator[Event]:
    """Yield the events outside unwanted elements."""
    depth = 0
    for event in events:
        kind, value, attributes = event
        if depth:
            depth += (kind == "start") - (kind == "end")
        elif kind == "start" and unwanted(value, attributes):
            depth = 1
        else:
            yield event


def _drop_boilerplate(events: list[Event]) -> tuple[list[Event], int]:
    """Leave out navigation, and headers, footers and asides around the main content; count the text of the latter."""
    kept: list[Event] = []
    main_chars = dropped = main = 0
    for event in events:
        kind, value, attributes = event
        step = (kind == "start") - (kind == "end")
        if kind == "start":
            role = attributes.get("role", "")
            part = _BOILERPLATE_ROLES.get(role, value)
            if dropped or part == "nav" or (part in ("header", "footer", "aside") and not main):
                dropped += 1
            elif main or value in ("main", "article") or role == "main":
                main += 1
        if not dropped:
            kept.append(event)
            if main and kind == "text":
                main_chars += len(value.strip())
        if step < 0:
            if dropped:
                dropped -= 1
            elif main:
                main -= 1
    return kept, main_chars


def _find_layout_tables(events: list[Event]) -> set[int]:
    """Return where tables begin that only arrange a page: they hold tables, headings, code or several paragraphs."""
    layout: set[int] = set()
    open_tables: list[int] = []
    paragraphs = 0
    for at, (kind, tag, attributes) in enumerate(events):
        if kind == "end" and tag == "table" and open_tables:
            open_tables.pop()
        elif kind == "start":
            paragraphs = 0 if tag in ("table", "td", "th") else paragraphs + (tag == "p")
            if open_tables and (tag == "table" or tag in _HEADINGS or tag in _CODE or paragraphs > 2):
                layout.add(open_tables[-1])
            if tag == "table":
                open_tables.append(at)
                if attributes.get("role") in ("presentation", "none"):
                    layout.add(at)
    return layout


@dataclass(slots=True)
class _Walk:
    """Where the walk over a page stands: the block being gathered, and the elements that decide what it becomes."""

    builder: TextBuilder
    layout_tables: set[int]
    pieces: list[str] = field(default_factory=list)
    rows: list[list[Cell]] | None = None
    cell: Cell | None = None
    heading: int = 0
    code: int = 0
    lists: int = 0
    is_item: bool = False

    def take_text(self, text: str) -> None:
        """Gather text, its white space folded outside code."""
        self.pieces.append(text if self.code else _SPACES.sub(" ", text))

    def enter(self, at: int, tag: str, attributes: Mapping[str, str]) -> None:
        """Take the start of an element."""
        if tag == "br":
            self.pieces.append("\n")
        elif tag == "img":
            self.pieces.append(describe_picture(attributes.get("alt")))
        if tag not in _BLOCKS:
            return
        if self.heading and tag in _NOT_IN_HEADING and "".join(self.pieces).strip():
            self._finish_heading()
        self.finish_block()
        if tag in _CODE:
            self.code += 1
        elif self.code or self.cell:
            return
        elif tag in _HEADINGS:
            self.heading = _HEADINGS[tag]
        elif tag in _LISTS:
            self.lists += 1
        elif tag == "li":
            self.is_item = True
        elif tag == "table":
            self.rows = None if at in self.layout_tables else []
        elif tag == "tr" and self.rows is not None:
            self.rows.append([])
        elif tag in ("td", "th") and self.rows is not None:
            self.cell = Cell("", _read_span(attributes, "colspan"), _read_span(attributes, "rowspan"))

    def leave(self, tag: str) -> None:
        """Take the end of an element."""
        if tag not in _BLOCKS:
            return
        if tag in _CODE and self.code:
            self.code -= 1
            if not self.code:
                self.builder.add_code("".join(self.pieces))
                self.pieces.clear()
        elif tag in ("td", "th") and self.cell:
            self._finish_cell(self.cell)
        elif tag in _HEADINGS and self.heading:
            self._finish_heading()
        self.finish_block()
        if self.code or self.cell:
            return
        if tag in _LISTS:
            self.lists -= 1
        elif tag == "li":
            self.is_item = False
        elif tag == "table" and self.rows is not None:
            self.builder.add_table(lay_out_rows(self.rows))
            self.rows = None

    def finish_block(self) -> None:
        """End the block gathered so far; within a heading, a cell or code it is only a gap."""
        if self.code:
            if self.pieces and not self.pieces[-1].endswith("\n"):
                self.pieces.append("\n")
            return
        if self.heading or self.cell:
            if self.pieces and self.pieces[-1] != " ":
                self.pieces.append(" ")
            return
        if not self.pieces:
            return
        for paragraph in re.split(r"\n\s*\n", "".join(self.pieces)):
            if self.is_item and paragraph.strip():
                self.builder.add_item(paragraph, max(1, self.lists))
                self.is_item = False
            else:
                self.builder.add_paragraph(paragraph)
        self.pieces.clear()

    def _finish_heading(self) -> None:
        # Permalinks after a heading's text, as documentation tools put them.
        self.builder.add_heading(re.sub(r"(\s*[¶§]|\s+#)$", "", fold_spaces("".join(self.pieces))), self.heading)
        self.pieces.clear()
        self.heading = 0

    def _finish_cell(self, cell: Cell) -> None:
        assert self.rows is not None
        if not self.rows:
            self.rows.append([])
        self.rows[-1].append(Cell("".join(self.pieces), cell.columns, cell.rows))
        self.pieces.clear()
        self.cell = None


def _read_span(attributes: Mapping[str, str], name: str) -> int:
    """Return a colspan or rowspan within what browsers take (HTML standard, "algorithm for processing rows")."""
    digits = re.match(r"\s*(\d{1,5})", attributes.get(name, ""))
    return min(max(1, int(digits[1])), 1000) if digits else 1
