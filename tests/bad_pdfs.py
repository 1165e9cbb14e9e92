"""PDFs that are damaged, hostile or without text."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from pathlib import Path

BadFile = tuple[str, str, bytes]
"""Kind, name and content."""


def write_pdf(objects: dict[int, bytes], root: int = 1, extra: bytes = b"") -> bytes:
    """Write a PDF of numbered objects with a right table of references."""
    out = bytearray(b"%PDF-1.7\n")
    places = {}
    for number, content in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 %s \n" % (places.get(number, 0), b"n" if number in places else b"f")
    out += b"trailer\n<< /Size %d /Root %d 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, root, extra, start)
    return bytes(out)


def write_stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries, data)


def make_page(
    content: bytes, resources: bytes = b"<< /Font << /F1 5 0 R >> >>", entries: bytes = b""
) -> dict[int, bytes]:
    """Return the objects of a document of one page."""
    return {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources %s %s >>"
        % (resources, entries),
        4: content,
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }


TEXT = b"BT /F1 12 Tf 72 700 Td (A line of text to be found in a page of a file.) Tj ET\n"


def list_bad_pdfs(sample: Path) -> Iterator[BadFile]:
    """Yield bad PDFs, some made of the good one at `sample`."""
    good = sample.read_bytes()
    dice = random.Random(1)
    for part in (1, 5, 10, 25, 50, 75, 90, 95, 99):
        yield "truncated PDF", f"truncated {part}.pdf", good[: len(good) * part // 100]
    for number in range(16):
        data = bytearray(good)
        for _ in range(2**number):
            data[dice.randrange(len(data))] = dice.randrange(256)
        yield "PDF with wrong bytes", f"bytes {2**number}.pdf", bytes(data)
    for number, data in enumerate(_damage_references(good)):
        yield "PDF with wrong references", f"references {number}.pdf", data
    for name, objects in _list_loops().items():
        yield "PDF with loops", f"{name}.pdf", write_pdf(objects)
    for name, data in _list_bombs().items():
        yield "PDF bomb", f"{name}.pdf", data
    for name, objects in _list_absurd().items():
        yield "PDF with absurd values", f"{name}.pdf", write_pdf(objects)
    yield from _list_encrypted(good)
    yield from _list_textless()
    for name, data in {
        "header": b"%PDF-1.7\n",
        "header and end": b"%PDF-1.7\n%%EOF\n",
        "noise": b"%PDF-1.7\n" + dice.randbytes(20_000),
        "noise alone": dice.randbytes(20_000),
        "zeros": bytes(20_000),
        "text": b"no PDF at all, whatever its name says\n" * 20,
        "version": good.replace(b"%PDF-1.", b"%PDF-9.", 1),
        "no catalog": write_pdf({2: b"<< /Type /Pages /Kids [] /Count 0 >>"}, root=1),
        "no pages": write_pdf({1: b"<< /Type /Catalog >>"}),
        "text before": b"mail headers\n" * 50 + good,
        "text after": good + b"trailing noise\n" * 5000,
        "twice": good + good,
    }.items():
        yield "no real PDF", f"{name}.pdf", data


def _damage_references(good: bytes) -> Iterator[bytes]:
    yield good.replace(b"startxref", b"startxxxx")
    yield good.replace(b"endobj", b"endxxx")
    yield good.replace(b"endstream", b"endxxxxxx")
    yield good.replace(b"/Length", b"/Lengtg")
    yield good.replace(b"/Pages", b"/Pagez")
    yield good.replace(b"/Kids", b"/Kidz")
    yield good.replace(b"/Filter", b"/Filtre")
    yield good.replace(b" 0 R", b" 9 R")
    yield write_pdf(make_page(write_stream(TEXT)), extra=b"/Prev 9")
    yield write_pdf(make_page(write_stream(TEXT)), extra=b"/Prev 999999999999999999999")
    yield write_pdf(make_page(write_stream(TEXT))).replace(b"/Size 6", b"/Size 2147483647")
    yield write_pdf(make_page(write_stream(TEXT))).replace(b"/Length 72", b"/Length 999999999")


def _list_loops() -> dict[str, dict[int, bytes]]:
    page = make_page(write_stream(TEXT))
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /X 6 0 R >> /Font << /F1 5 0 R >> >>"
    chain = {10 + at: b"%d 0 R" % (11 + at) for at in range(5000)}
    return {
        "kids": page | {2: b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >>"},
        "parents": page | {2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 /Parent 2 0 R >>"},
        "many kids": page | {2: b"<< /Type /Pages /Kids [" + b"3 0 R " * 2000 + b"] /Count 2000 >>"},
        "false count": page | {2: b"<< /Type /Pages /Kids [3 0 R] /Count 2147483647 >>"},
        "negative count": page | {2: b"<< /Type /Pages /Kids [3 0 R] /Count -5 >>"},
        "form in itself": page
        | {
            3: page[3].replace(b"/Resources <<", b"/Resources << /XObject << /X 6 0 R >>"),
            4: write_stream(b"/X Do"),
            6: write_stream(TEXT + b"/X Do /X Do", form),
        },
        "outline": page
        | {
            1: b"<< /Type /Catalog /Pages 2 0 R /Outlines 7 0 R >>",
            7: b"<< /First 8 0 R /Last 8 0 R /Count 1 >>",
            8: b"<< /Title (again) /Next 8 0 R /First 8 0 R /Parent 7 0 R /Dest [3 0 R /Fit] >>",
        },
        "references": page | {4: b"4 0 R"},
        "chain of references": page | chain | {4: b"10 0 R"},
        "contents in itself": page | {4: b"[4 0 R 4 0 R]"},
        "font in itself": page | {5: b"<< /Type /Font /Subtype /Type0 /BaseFont /X /DescendantFonts [5 0 R] >>"},
        "deep arrays": page
        | {7: b"[" * 100_000 + b"]" * 100_000, 3: page[3].replace(b"/Type /Page ", b"/Type /Page /X 7 0 R ")},
        "deep content": page | {4: write_stream(b"[" * 100_000 + TEXT)},
        "many saves": page | {4: write_stream(b"q " * 200_000 + TEXT)},
    }


def _list_bombs() -> dict[str, bytes]:
    zeros = zlib.compress(b" " * 40_000_000, 1)
    twice = zlib.compress(zeros, 9)
    shown = zlib.compress(TEXT * 200_000, 1)
    one, two = b"/Filter /FlateDecode", b"/Filter [/FlateDecode /FlateDecode]"
    return {
        "spaces": write_pdf(make_page(write_stream(zeros, one))),
        "spaces twice": write_pdf(make_page(write_stream(twice, two))),
        "many filters": write_pdf(make_page(write_stream(zeros, b"/Filter [" + b"/FlateDecode " * 500 + b"]"))),
        "lines": write_pdf(make_page(write_stream(shown, one))),
        "run length": write_pdf(make_page(write_stream(b"\x81 " * 500_000, b"/Filter /RunLengthDecode"))),
    }


def _list_absurd() -> dict[str, dict[int, bytes]]:
    page = make_page(write_stream(TEXT))

    def box(values: bytes) -> dict[int, bytes]:
        return page | {3: page[3].replace(b"0 0 612 792", values)}

    def content(data: bytes) -> dict[int, bytes]:
        return page | {4: write_stream(data)}

    return {
        "box empty": box(b"0 0 0 0"),
        "box reversed": box(b"612 792 0 0"),
        "box huge": box(b"-1e38 -1e38 1e38 1e38"),
        "box words": box(b"(a) /b null true"),
        "box short": box(b"0 0"),
        "size huge": content(TEXT.replace(b"12 Tf", b"1e30 Tf")),
        "size nothing": content(TEXT.replace(b"12 Tf", b"0 Tf")),
        "size negative": content(TEXT.replace(b"12 Tf", b"-12 Tf")),
        "matrix flat": content(b"0 0 0 0 0 0 cm " + TEXT),
        "matrix huge": content(b"1e20 0 0 1e20 1e20 1e20 cm " + TEXT),
        "position far": content(TEXT.replace(b"72 700", b"1e15 -1e15")),
        "numbers long": content(TEXT.replace(b"72 700", b"9" * 5000 + b" 1")),
        "operators unknown": content(b"foo bar 1 2 3 baz " * 20_000 + TEXT),
        "string open": content(b"BT /F1 12 Tf 72 700 Td (never closed " + b"x" * 100_000),
        "no font": page | {3: page[3].replace(b"/F1 5 0 R", b"")},
        "font broken": page | {5: b"<< /Type /Font /Subtype /TrueType /FontDescriptor << /FontFile2 4 0 R >> >>"},
        "all over each other": content(TEXT * 3000),
        "rotated oddly": page | {3: page[3].replace(b"/Type /Page ", b"/Type /Page /Rotate 45 ")},
    }


def _list_encrypted(good: bytes) -> Iterator[BadFile]:
    import pymupdf

    for name in ("RC4_40", "RC4_128", "AES_128", "AES_256"):
        method = getattr(pymupdf, f"PDF_ENCRYPT_{'RC4_' if 'RC4' in name else 'AES_'}{name[4:]}")
        with pymupdf.open(stream=good, filetype="pdf") as document:
            yield "encrypted PDF", f"{name}.pdf", document.tobytes(encryption=method, user_pw="x", owner_pw="y")


def _list_textless() -> Iterator[BadFile]:
    picture = b"/Type /XObject /Subtype /Image /Width 2 /Height 2 /ColorSpace /DeviceGray /BitsPerComponent 8"
    scan = make_page(write_stream(b"612 0 0 792 0 0 cm /I Do"), b"<< /XObject << /I 6 0 R >> >>")
    yield "PDF without text", "scan.pdf", write_pdf(scan | {6: write_stream(b"\x00\x80\x80\xff", picture)})
    yield "PDF without text", "blank.pdf", write_pdf(make_page(write_stream(b"")))
    yield "PDF without text", "spaces.pdf", write_pdf(make_page(write_stream(b"BT /F1 12 Tf 72 700 Td (      ) Tj ET")))
    unmapped = b"<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Odd /Encoding /Identity-H /DescendantFonts [6 0 R] >>"
    descendant = (
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /ABCDEF+Odd /CIDSystemInfo "
        b"<< /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor 7 0 R >>"
    )
    descriptor = b"<< /Type /FontDescriptor /FontName /ABCDEF+Odd /Flags 4 /FontBBox [0 0 1000 1000] >>"
    codes = b"BT /F1 12 Tf 72 700 Td <" + b"".join(b"%04x" % code for code in range(0xE000, 0xE040)) + b"> Tj ET"
    yield (
        "PDF without Unicode",
        "unmapped.pdf",
        write_pdf(make_page(write_stream(codes)) | {5: unmapped, 6: descendant, 7: descriptor}),
    )
