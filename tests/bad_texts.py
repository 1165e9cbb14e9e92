"""Text files that are no text, in odd encodings, or made to cost time: HTML, JSON, notebooks, Markdown, code."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from tests.bad_pdfs import BadFile

LONG = 300_000
"""Characters of what repeats one thing: enough that quadratic time would take minutes."""

REPEATED = {
    "spaces": " ",
    "tabs": "\t",
    "lines": "\n",
    "dots": ".",
    "hashes": "#",
    "stars": "*",
    "underscores": "_",
    "backticks": "`",
    "brackets": "[",
    "parentheses": "(",
    "links": "[a](",
    "pictures": "![",
    "quotes": ">",
    "nested quotes": "> ",
    "bullets": "- ",
    "numbers": "1. ",
    "pipes": "|",
    "cells": "|-",
    "dashes": "-",
    "equals": "=",
    "tildes": "~",
    "angles": "<",
    "tags": "<a ",
    "comments": "<!--",
    "ampersands": "&",
    "entities": "&#x",
    "commas": "1,",
    "digits": "1",
    "letters": "a",
    "capitals": "A b ",
    "apostrophes": "'",
    "double quotes": '"',
    "colons": ":",
    "directives": ".. a::\n",
    "indented": " a\n",
    "carriage returns": "\r",
    "backslashes": "\\",
    "dollars": "$",
    "braces": "{",
    "accents": "e\u0301",
    "stacked accents": "\u0301",
    "flags": "\U0001f1e9\U0001f1ea",
    "families": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "ideographs": "灯塔的灯每十秒转一圈",
    "hyphens": "\u00ad",
    "right to left": "\u202eabc\u202c",
}


def list_bad_texts() -> Iterator[BadFile]:
    """Yield bad files of every text format."""
    for label, piece in REPEATED.items():
        repeated = (piece * (LONG // len(piece))).encode()
        for suffix in ("md", "txt"):
            yield f"one thing repeated in .{suffix}", f"{label}.{suffix}", repeated
    for label in (
        "spaces",
        "parentheses",
        "commas",
        "double quotes",
        "braces",
        "directives",
        "equals",
        "letters",
        "indented",
    ):
        piece = REPEATED[label]
        for suffix in ("rst", "py", "csv", "json", "html", "js"):
            yield f"one thing repeated in .{suffix}", f"{label}.{suffix}", (piece * (LONG // len(piece))).encode()
    yield from _list_encodings()
    yield from _list_pages()
    yield from _list_json()
    yield from _list_notebooks()
    yield from _list_tables()
    yield from _list_code()
    yield from _list_disguised()
    for suffix in ("md", "txt", "pdf", "docx", "pptx", "xlsx", "epub", "html", "csv", "json", "ipynb", "py", "rst"):
        yield "empty file", f"empty.{suffix}", b""
    for suffix in ("md", "txt", "html", "csv", "json", "ipynb", "py"):
        yield "white space alone", f"white.{suffix}", b" \n\t\r\n\xc2\xa0\n" * 20


def _list_encodings() -> Iterator[BadFile]:
    text = "The lamp turns once in ten seconds. 灯塔 Ümläut €\n" * 20
    surrogates = "a\ud800b\udfffc \udc80 end of the line\n" * 20
    dice = random.Random(2)
    for label, data in {
        "UTF-16 without mark": text.encode("utf-16-le"),
        "UTF-16 odd": text.encode("utf-16")[:-1],
        "UTF-16 surrogates": b"\xff\xfe" + surrogates.encode("utf-16-le", "surrogatepass"),
        "UTF-8 surrogates": surrogates.encode("utf-8", "surrogatepass"),
        "UTF-32": text.encode("utf-32"),
        "UTF-32 beyond": b"\xff\xfe\0\0" + b"\xff\xff\xff\x7f" * 20,
        "mark alone": b"\xef\xbb\xbf",
        "two marks": b"\xef\xbb\xbf\xef\xbb\xbf" + text.encode(),
        "overlong": b"\xc0\xaf\xe0\x80\xaf\xf0\x80\x80\xaf " * 200,
        "cut": text.encode()[:-30] + b"\xe7\x81",
        "mixed": text.encode() + "Grüße aus Köln\n".encode("latin-1") * 10 + text.encode("gbk", "replace"),
        "GBK": ("灯塔的灯每十秒转一圈。" * 40).encode("gbk"),
        "Shift JIS": ("灯台の灯は十秒に一度回る。" * 40).encode("shift_jis"),
        "EBCDIC": ("The lamp turns once. " * 40).encode("cp500"),
        "UTF-7": ("+AGE-b+ZeVnLIqe- " * 60).encode(),
        "noise": dice.randbytes(50_000).replace(b"\0", b"\1"),
        "high noise": bytes(dice.randrange(128, 256) for _ in range(50_000)),
        "NUL late": text.encode() * 30 + b"\0\0\0" + text.encode(),
        "no characters": ("\ufffe\uffff\ufdd0\U0010ffff" * 500).encode(),
        "controls": bytes(range(1, 32)) * 200,
        "terminal": b"\x1b[2J\x1b]0;owned\x07\x1b[31mred\x9b5n text\n" * 50,
        "private": ("\ue000\uf8ff\U000f0000 text " * 300).encode(),
    }.items():
        yield "odd encoding", f"{label}.txt", data
        if label.startswith(("UTF", "GBK", "noise", "controls")):
            yield "odd encoding", f"{label}.html", b"<meta charset=utf-7><p>" + data


def _list_pages() -> Iterator[BadFile]:
    for label, data in {
        "deep divs": b"<div>" * 100_000 + b"deep text",
        "deep mixed": b"<b><i><p><ul><li><table><tr><td>" * 10_000 + b"deep text",
        "deep lists": b"<ul><li>item " * 20_000,
        "deep tables": b"<table><tr><td>cell " * 10_000,
        "closed only": b"</div></p></b>" * 50_000 + b"text",
        "open comment": b"<p>before<!-- never closed " + b"x" * 500_000,
        "open script": b"<p>before<script>" + b"var x = '<p>';" * 50_000,
        "open tag": b"<p>before<a href='" + b"x" * 500_000,
        "attributes": b"<p " + b" ".join(b"a%d=1" % at for at in range(100_000)) + b">text</p>",
        "long attribute": b'<p title="' + b"x" * 1_500_000 + b'">text</p>',
        "wide table": b"<table><tr>" + b"<td>1" * 50_000 + b"</table>",
        "spans": b"<table>" + b"<tr><td colspan=1000000000 rowspan=1000000000>1<td>2" * 50 + b"</table>",
        "negative spans": b'<table><tr><td colspan=-5 rowspan="x">1<td>2</table>',
        "entities": b"<p>" + b"&#99999999999;&#xD800;&#0;&unknown;&amp" * 10_000,
        "wrong charset": b"<meta charset='no such thing'><p>text \xff\xfe</p>",
        "charset of UTF-16": b"<meta charset=utf-16><p>plain text after all</p>",
        "file entity": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l SYSTEM "file:///etc/passwd">]><p>&l; text</p>',
        "entity bomb": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
        b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><p>&c; text</p>',
        "NULs": b"<p>te\0xt</p>" * 100,
        "frames": b"<frameset><frame src='file:///etc/passwd'><iframe src='http://127.0.0.1:9/'></iframe></frameset>",
        "text alone": b"no markup at all",
        "headings": b"<h1>" * 20_000 + b"text",
    }.items():
        yield "odd HTML", f"{label}.html", data
        if label in ("deep divs", "deep mixed", "attributes", "file entity", "entity bomb", "NULs"):
            yield "odd XHTML", f"{label}.xhtml", data


def _list_json() -> Iterator[BadFile]:
    for label, data in {
        "deep lists": b"[" * 100_000 + b"]" * 100_000,
        "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "open": b'{"a": [1, 2, {"b": "text that goes on',
        "numbers": b"[1e999, -1e999, NaN, Infinity, " + b"9" * 10_000 + b"]",
        "surrogates": rb'["\ud800", "\udc00\ud800", "\u0000 text"]',
        "same keys": b'{"a": 1, "a": 2, "a": "text"}',
        "comma": b'{"a": "text",}',
        "comments": b'// note\n{"a": "text"} /* more */',
        "many": b"".join(b'{"n": %d, "text": "line"}' % at for at in range(2000)),
        "scalar": b'"only a text"',
        "null": b"null",
        "long key": b'{"' + b"k" * 300_000 + b'": 1}',
        "wide": json.dumps({f"key {at}": at for at in range(20_000)}).encode(),
    }.items():
        yield "odd JSON", f"{label}.json", data
        yield "odd JSON lines", f"{label}.jsonl", data + b"\n" + data[:2000] + b"\n"


def _list_notebooks() -> Iterator[BadFile]:
    cell = {"cell_type": "code", "source": ["print(1)\n"], "outputs": [{"output_type": "stream", "text": ["1\n"]}]}
    for label, book in {
        "a list": [1, 2, 3],
        "no cells": {"nbformat": 4},
        "cells a text": {"nbformat": 4, "cells": "text"},
        "cells of numbers": {"nbformat": 4, "cells": [1, None, "x", [cell]]},
        "source a number": {"nbformat": 4, "cells": [{**cell, "source": 5}]},
        "source mixed": {"nbformat": 4, "cells": [{**cell, "source": ["a", 1, None, ["b"]]}]},
        "outputs an object": {"nbformat": 4, "cells": [{**cell, "outputs": {"a": 1}}]},
        "output data": {
            "nbformat": 4,
            "cells": [{**cell, "outputs": [{"data": {"text/plain": {"x": 1}, "image/png": 3}}]}],
        },
        "no such format": {"nbformat": 99, "cells": [cell]},
        "format a text": {"nbformat": "four", "cells": [cell]},
        "long output": {
            "nbformat": 4,
            "cells": [{**cell, "outputs": [{"output_type": "stream", "text": "x" * 500_000}]}],
        },
        "terminal": {"nbformat": 4, "cells": [{**cell, "source": "\x1b[31m" * 20_000}]},
    }.items():
        yield "odd notebook", f"{label}.ipynb", json.dumps(book).encode()
    yield "odd notebook", "cut.ipynb", json.dumps({"nbformat": 4, "cells": [cell] * 50}).encode()[:-40]
    yield "odd notebook", "deep.ipynb", b'{"nbformat": 4, "cells": ' + b"[" * 50_000


def _list_tables() -> Iterator[BadFile]:
    for label, data in {
        "open quote": b'a,b\n1,"never closed\n' + b"2,3\n" * 20_000,
        "quotes": b'a,b\n"""""",""""\n' * 5000,
        "wide": b",".join(b"column %d" % at for at in range(20_000)) + b"\n" + b"1," * 20_000 + b"\n",
        "ragged": b"\n".join(b"x," * (at % 200) for at in range(2000)),
        "long cell": b"a,b\n" + b"x" * 500_000 + b",1\n",
        "carriage returns": b"a,b\r1,2\r3,4\r" * 1000,
        "mixed separators": b"a;b,c\td|e\n1;2,3\t4|5\n" * 500,
        "controls": b"a,b\n\x01,\x02\x0b\x0c\n\x1c,\x85\n" * 100,
        "formulas": b"a,b\n=cmd|' /C calc'!A0,@SUM(1)\n" * 100,
        "head alone": b"name,value",
    }.items():
        yield "odd CSV", f"{label}.csv", data


def _list_code() -> Iterator[BadFile]:
    for label, data in {
        "signs": b"x = " + b"-" * 200_000 + b"1\n",
        "attributes": b"x = a" + b".b" * 100_000 + b"\n",
        "calls": b"x = f" + b"(1)" * 100_000 + b"\n",
        "sums": b"x = 1" + b" + 1" * 100_000 + b"\n",
        "branches": b"if a:\n    pass\n" + b"elif a:\n    pass\n" * 20_000,
        "indentation": b"".join(b" " * at + b"if a:\n" for at in range(700)),
        "decorators": b"@a\n" * 100_000 + b"def f(): pass\n",
        "open string": b'x = """never closed\n' + b"line\n" * 50_000,
        "NUL": b"x = 1\n" * 3000 + b"y = '\0'\n",
        "functions": b"def f(): pass\n" * 20_000,
        "form feeds": b"\x0cdef f():\n    return 1\n" * 2000,
        "old Python": b"print 'hello'\nexec 'x' in y\n" * 200,
        "wrong coding": b"# -*- coding: no-such-codec -*-\nx = '\xff'\n",
    }.items():
        yield "odd Python", f"{label}.py", data


def _list_disguised() -> Iterator[BadFile]:
    pieces = {
        "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(500),
        "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(range(256)) * 20,
        "gif": b"GIF89a" + bytes(300),
        "elf": b"\x7fELF\x02\x01\x01" + bytes(500),
        "zip": b"PK\x03\x04" + bytes(200),
        "gzip": b"\x1f\x8b\x08\0" + bytes(range(256)) * 10,
        "sqlite": b"SQLite format 3\0" + bytes(2000),
        "pdf": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n" + b"1 0 obj\n<<>>\nendobj\n" * 50,
        "html": b"<!DOCTYPE html><html><body><p>A page under another name.</p></body></html>",
        "rtf": rb"{\rtf1\ansi\deff0 {\fonttbl {\f0 Times;}} A text of another kind.}",
    }
    for label, data in pieces.items():
        for suffix in ("txt", "md", "pdf", "docx", "xlsx", "html", "csv", ""):
            yield (
                f"another format as .{suffix}" if suffix else "another format without suffix",
                f"{label} as{'.' * bool(suffix)}{suffix}",
                data,
            )
