"""Office files and e-books that are damaged or hostile: zip containers with XML inside."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bad_pdfs import BadFile

EPOCH = (2020, 1, 1, 0, 0, 0)

PARTS = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide1.xml",
    "xlsx": "xl/worksheets/sheet1.xml",
    "epub": "OEBPS/text.xhtml",
}
"""The part with the text."""

BOOK = {
    "mimetype": b"application/epub+zip",
    "META-INF/container.xml": b'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">'
    b'<rootfiles><rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles>'
    b"</container>",
    "OEBPS/content.opf": b'<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
    b'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A book</dc:title></metadata>'
    b'<manifest><item id="t" href="text.xhtml" media-type="application/xhtml+xml"/></manifest>'
    b'<spine><itemref idref="t"/></spine></package>',
    "OEBPS/text.xhtml": b'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>The text of the book.</p></body></html>',
}

OLE = bytes.fromhex("d0cf11e0a1b11ae1")


def write_zip(parts: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Write a container; the same for the same parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in parts.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = method
            archive.writestr(info, data)
    return out.getvalue()


def read_zip(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def list_bad_archives(samples: Mapping[str, Path]) -> Iterator[BadFile]:
    """Yield bad files of each format, made of the good ones in `samples`, by suffix without the dot."""
    books: dict[str, dict[str, bytes]] = {kind: read_zip(path.read_bytes()) for kind, path in samples.items()}
    for kind, parts in {**books, "epub": BOOK}.items():
        name = kind.upper()
        good = write_zip(parts)
        yield from _list_damaged(kind, name, good)
        yield from _list_hostile_xml(kind, name, parts)
        yield from _list_incomplete(kind, name, parts)
        yield from _list_bombs(kind, name, parts)
        yield from _list_locked(kind, name, good)
    yield from _list_odd_sheets(books["xlsx"])
    yield from _list_odd_books()


def _list_damaged(kind: str, name: str, good: bytes) -> Iterator[BadFile]:
    dice = random.Random(kind)
    for part in (0, 20, 60, 95, 99):
        yield f"truncated {name}", f"truncated {part}.{kind}", good[: len(good) * part // 100]
    for count in (1, 10, 100, 1000):
        data = bytearray(good)
        for _ in range(count):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        yield f"{name} with wrong bytes", f"bits {count}.{kind}", bytes(data)


def _list_hostile_xml(kind: str, name: str, parts: Mapping[str, bytes]) -> Iterator[BadFile]:
    part = PARTS[kind]
    body = parts[part].partition(b"?>")[2] if parts[part].startswith(b"<?xml") else parts[part]
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + b"".join(
        b'<!ENTITY %c "&%c;&%c;&%c;&%c;&%c;&%c;&%c;&%c;&%c;&%c;">' % (at, *[at - 1] * 10)
        for at in range(ord("b"), ord("m"))
    )
    for label, doctype, entity in (
        ("entity bomb", bomb + b"]>", b"&l;"),
        ("outside file", b'<!DOCTYPE x [<!ENTITY l SYSTEM "file:///etc/passwd">]>', b"&l;"),
        ("outside address", b'<!DOCTYPE x [<!ENTITY l SYSTEM "http://127.0.0.1:9/x">]>', b"&l;"),
        ("outside parameters", b'<!DOCTYPE x [<!ENTITY % l SYSTEM "http://127.0.0.1:9/x"> %l;]>', b""),
    ):
        at = body.find(b">") + 1
        hostile = b'<?xml version="1.0"?>' + doctype + body[:at] + entity + body[at:]
        yield f"{name} with entities", f"{label}.{kind}", write_zip({**parts, part: hostile})
    for label, data in (
        ("deep", b"<a>" * 100_000 + b"x" + b"</a>" * 100_000),
        ("open", body[: len(body) // 2]),
        ("no XML", b"no XML at all"),
        ("empty", b""),
        ("NULs", body.replace(b" ", b"\0")),
        ("other root", b"<other><p>Text that is nowhere expected.</p></other>"),
        ("long attribute", b'<a b="' + b"x" * 2_000_000 + b'"/>'),
    ):
        yield f"{name} with broken XML", f"{label}.{kind}", write_zip({**parts, part: data})


def _list_incomplete(kind: str, name: str, parts: Mapping[str, bytes]) -> Iterator[BadFile]:
    for part in list(parts)[:6]:
        left = {other: data for other, data in parts.items() if other != part}
        yield f"incomplete {name}", f"without {part.replace('/', ' ')}.{kind}", write_zip(left)
    yield f"incomplete {name}", f"nothing.{kind}", write_zip({})


def _list_bombs(kind: str, name: str, parts: Mapping[str, bytes]) -> Iterator[BadFile]:
    spaces = b" " * 12_000_000
    yield f"{name} bomb", f"zeros.{kind}", write_zip({**parts, "media/zeros.bin": bytes(12_000_000)})
    yield f"{name} bomb", f"text.{kind}", write_zip({**parts, PARTS[kind]: parts[PARTS[kind]] + spaces})
    yield f"{name} bomb", f"many parts.{kind}", write_zip({**parts, **{f"x/{at}": b"" for at in range(12_000)}})
    # The directory says that a part is small; unpacked it would be large.
    lying = bytearray(write_zip({**parts, "media/zeros.bin": bytes(12_000_000)}))
    entry = lying.rfind(b"media/zeros.bin") - 46
    struct.pack_into("<I", lying, entry + 24, 100)
    yield f"{name} bomb", f"lying.{kind}", bytes(lying)


def _list_locked(kind: str, name: str, good: bytes) -> Iterator[BadFile]:
    locked = bytearray(good)
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = locked.find(magic)
        while place >= 0:
            locked[place + at] |= 1
            place = locked.find(magic, place + 4)
    yield f"locked {name}", f"password.{kind}", bytes(locked)
    yield (
        f"locked {name}",
        f"encrypted package.{kind}",
        OLE + bytes(1000) + "EncryptedPackage".encode("utf-16-le") + bytes(3000),
    )
    yield f"locked {name}", f"before 2007.{kind}", OLE + bytes(4000)


def _list_odd_sheets(book: Mapping[str, bytes]) -> Iterator[BadFile]:
    space = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    for label, rows in {
        "far cell": b'<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>far</t></is></c></row>',
        "beyond the last": b'<row r="99999999"><c r="ZZZZ99999999"><v>1</v></c></row>',
        "no such text": b'<row r="1"><c r="A1" t="s"><v>999999</v></c></row>',
        "no number": b'<row r="1"><c r="A1"><v>one</v></c><c r="B1"><v>1e999</v></c></row>',
        "odd names": b'<row r="x"><c r="1A"><v>1</v></c><c r=""><v>2</v></c></row>',
        "dates": b'<row r="1"><c r="A1" t="d"><v>not-a-date</v></c><c r="B1" t="d"><v>99999-99-99</v></c></row>',
        "rows backwards": b'<row r="5"><c r="A5"><v>5</v></c></row><row r="1"><c r="A1"><v>1</v></c></row>',
        "wide": b'<row r="1">' + b"<c><v>1</v></c>" * 20_000 + b"</row>",
    }.items():
        sheet = b"<worksheet %s><sheetData>%s</sheetData></worksheet>" % (space, rows)
        yield "odd XLSX", f"{label}.xlsx", write_zip({**book, PARTS["xlsx"]: sheet})
    merged = b'<worksheet %s><sheetData/><mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells></worksheet>' % space
    yield "odd XLSX", "merged.xlsx", write_zip({**book, PARTS["xlsx"]: merged})


def _list_odd_books() -> Iterator[BadFile]:
    package = BOOK["OEBPS/content.opf"]
    for label, opf in {
        "outside": package.replace(b"text.xhtml", b"../../../../etc/passwd"),
        "absolute": package.replace(b"text.xhtml", b"/etc/passwd"),
        "address": package.replace(b"text.xhtml", b"http://127.0.0.1:9/x.xhtml"),
        "itself": package.replace(b"text.xhtml", b"content.opf"),
        "a thousand times": package.replace(b'<itemref idref="t"/>', b'<itemref idref="t"/>' * 1000),
        "no spine": package.replace(b'<itemref idref="t"/>', b""),
        "no such item": package.replace(b'idref="t"', b'idref="u"'),
    }.items():
        yield "odd EPUB", f"{label}.epub", write_zip({**BOOK, "OEBPS/content.opf": opf})
    container = BOOK["META-INF/container.xml"].replace(b"OEBPS/content.opf", b"../../secret.opf")
    yield "odd EPUB", "outside container.epub", write_zip({**BOOK, "META-INF/container.xml": container})
