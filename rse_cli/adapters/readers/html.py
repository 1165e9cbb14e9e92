"""HTML, however broken: the text that a browser would show, in blocks.

The parser reports events to a list in place of building a tree, because libxml2 cuts trees off at a depth of 2,048
(256 by default), and everything here is a loop over that list: 300,000 nested elements take 0.2 s and lose nothing.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html.entities import html5
from pathlib import Path

from rse_cli.adapters.readers.archive import report_broken
from rse_cli.adapters.readers.building import Cell, TextBuilder, describe_picture, fold_spaces, lay_out_rows
from rse_cli.adapters.readers.decode import decode
from rse_cli.core.models import Document

Event = tuple[str, str, Mapping[str, str]]
"""``("start", tag, attributes)``, ``("end", tag, {})`` or ``("text", characters, {})``."""

_NO_ATTRIBUTES: Mapping[str, str] = {}

# How far browsers look for a declared encoding (HTML standard, "prescan a byte stream"), and some more.
_PRESCAN_BYTES = 4096
_CHARSET = re.compile(rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
# Names that mean a larger character set on the web than in Python (Encoding standard, "names and labels").
_WEB_CODECS = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932",
               "euc_kr": "cp949", "big5": "big5hkscs", "iso8859-9": "cp1254", "tis-620": "cp874"}  # fmt: skip

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


def decode_markup(data: bytes) -> str:
    """Decode by byte order mark, as UTF-8 if valid, by the declared encoding, or by detection, in this order."""
    start = data[:_PRESCAN_BYTES]
    for mark, codec in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if data.startswith(mark):
            return data[len(mark) if codec == "utf-8" else 0 :].decode(codec, "replace")
    if b"\0" in start:
        return decode(data)
    declared = _CHARSET.search(start)
    try:
        name = codecs.lookup(declared[1].decode("ascii")).name if declared else ""
    except LookupError:
        name = ""
    # ISO-2022 shifts between character sets by escapes and so is valid UTF-8 as well.
    if not name.startswith("iso2022"):
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
    # A declaration that could be read as ASCII isn't UTF-16, whatever it says; nor is it UTF-8, as it isn't valid.
    if not name or name.startswith("utf"):
        return decode(data)
    try:
        return data.decode(_WEB_CODECS.get(name, name), "replace")
    except (LookupError, UnicodeError):
        # Python's codecs that are no character sets, such as rot13 and idna.
        return decode(data)


@dataclass(slots=True)
class _EventLog:
    """A parser target that lists what the parser reports; comments and instructions are left out."""

    events: list[Event] = field(default_factory=list)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.events.append(
            ("start", tag.rpartition("}")[2].lower(), dict(attributes) if attributes else _NO_ATTRIBUTES)
        )

    def end(self, tag: str) -> None:
        self.events.append(("end", _fold_tag(tag), _NO_ATTRIBUTES))

    def data(self, text: str) -> None:
        self.events.append(("text", text, _NO_ATTRIBUTES))

    def close(self) -> list[Event]:
        return self.events


@functools.lru_cache(maxsize=1024)
def _fold_tag(tag: str) -> str:
    """Return a tag in lower case without its namespace; one string per tag saves most of the memory of the list."""
    return tag.rpartition("}")[2].lower()


def parse_markup(text: str, as_xml: bool) -> list[Event]:
    """Parse HTML into events, without entities of its own, external files or network.

    Parameters
    ----------
    text : str
        The decoded page.
    as_xml : bool
        Whether to parse as XML where it is well-formed: an empty ``<title/>`` would swallow the page as HTML.

    Returns
    -------
    list of Event
        Balanced starts and ends, and text.
    """
    from lxml import etree

    data = text.replace("\0", "").encode("utf-8", "replace")
    if not data.strip():
        return []
    if as_xml and b"<!ENTITY" not in data:
        try:
            # The HTML entities are declared in a file that is never loaded, so they are put in by name here.
            plain = re.sub(r"&(\w+;)", _replace_entity, re.sub(r"^\s*<\?xml[^>]*\?>", "", text))
            xml_parser = etree.XMLParser(target=_EventLog(), resolve_entities=False, no_network=True, load_dtd=False)
            return list(etree.fromstring(plain.encode("utf-8", "replace"), xml_parser))
        except etree.XMLSyntaxError:
            pass
    parser = etree.HTMLParser(target=_EventLog(), encoding="utf-8", no_network=True, huge_tree=True)
    parser.feed(data)
    return list(parser.close())


def _replace_entity(match: re.Match[str]) -> str:
    """Return the character of a named entity, unless XML knows it itself."""
    if match[1] in ("amp;", "lt;", "gt;", "quot;", "apos;"):
        return match[0]
    return html5.get(match[1], match[0])


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
