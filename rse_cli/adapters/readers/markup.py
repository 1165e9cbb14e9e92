"""Markup, HTML or XHTML: from bytes to a list of events.

The parser reports events to a list in place of building a tree, because libxml2 cuts trees off at a depth of 2,048
(256 by default), and every reader here is a loop over that list: 300,000 nested elements take 0.2 s and lose nothing.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Mapping
from dataclasses import field
from html.entities import html5

from rse_cli.adapters.readers.decode import decode
from rse_cli.adapters.readers.legacy import decode_legacy
from rse_cli.dataclass import dataclass

Event = tuple[str, str, Mapping[str, str]]
"""``("start", tag, attributes)``, ``("end", tag, {})`` or ``("text", characters, {})``."""

_NO_ATTRIBUTES: Mapping[str, str] = {}

# How far browsers look for a declared encoding (HTML standard, "prescan a byte stream"), and some more.
_PRESCAN_BYTES = 4096
_CHARSET = re.compile(rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
# Python's codecs for its own literals: no character sets, and they warn of what they don't know.
_NO_CHARSETS = frozenset({"unicode-escape", "raw-unicode-escape"})
# Names that mean a larger character set on the web than in Python (Encoding standard, "names and labels").
_WEB_CODECS = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932",
               "euc_kr": "cp949", "big5": "big5hkscs", "iso8859-9": "cp1254", "tis-620": "cp874"}  # fmt: skip


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
    name = "" if name in _NO_CHARSETS else name
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
        return decode_legacy(data, _WEB_CODECS.get(name, name))
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
