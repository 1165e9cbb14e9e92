"""Whatever a file holds, a reader gives a document that can be cut into chunks, or says in one line why not.

``FUZZ_EXAMPLES=1000 pytest tests/test_reader_fuzz.py`` tries so many files of each format; findings go to `SEEDS`.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rse_cli.adapters import reading_worker
from rse_cli.adapters.readers import READERS, find_reader, read_document
from rse_cli.adapters.reading_worker import OWN_FORMATS, ReadingWorker, ReadLimits
from rse_cli.core.annotation import choose_title, collect_field_terms, make_chunks
from rse_cli.core.lexical import split_terms
from rse_cli.core.models import FileStatus
from rse_cli.errors import ReadError
from tests.bad_archives import BOOK, read_zip, write_zip

SAMPLE = Path(__file__).parent.parent / "sample_docs"

FORMATS = tuple(reader.suffixes[0] for reader in READERS)

SEEDS: tuple[tuple[str, bytes], ...] = (
    # A run of full stops took time in proportion to the square of its length.
    (".txt", b"." * 300_000),
)
"""Findings of this test and of others, each with what was wrong."""

PIECES = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\t", b"<", b">", b"<!--", b"]]>", b"<![CDATA[", b"&#xD800;", b"&amp",
    b"</p>", b"<table><tr><td colspan=99999>", b"<?xml?>", b"<!DOCTYPE x [", b"```", b"---\n", b"# ", b"> ", b"| a | b |\n",
    b"|---|---|\n", b"[x]: ", b"![", b"*" * 50, b'"', b"'", b"{", b"}", b"[", b"]", b"1e999", b"NaN", b"\\u0000", b"\\ud800",
    b' val="-1"', b' xml:space="preserve"', b"<a/>", b' r:id="rId99"', b"obj", b"endobj", b"stream\n", b"/Kids [3 0 R]", b"99999999999", b"-1", b"PK\x03\x04", b"PK\x05\x06", b"\xe7\x81\xaf",
    "灯塔。".encode(), "e\u0301".encode(), "\u202e".encode(), b"def f():\n", b".. note::\n", b"=====\n",
)  # fmt: skip
"""What means something in one of the formats."""


@cache
def load_seeds(suffix: str) -> tuple[bytes, ...]:
    """Return good files of a format."""
    found = [path.read_bytes() for path in sorted(SAMPLE.rglob(f"*{suffix}")) if ".rse" not in path.parts]
    if suffix == ".epub":
        found.append(write_zip(BOOK))
    plain = b"# A title\n\nA line of text, and another: one, two.\n\n- a point\n"
    return tuple(sorted((data for data in found if len(data) < 300_000), key=len)[:3]) or (plain,)


@st.composite
def draw_file(draw: st.DrawFn, suffix: str) -> bytes:
    """A good file of a format with changes here and there; in a container, mostly inside one of its parts."""
    data = draw(st.sampled_from(load_seeds(suffix)))
    if data.startswith(b"PK") and draw(st.integers(0, 3)):
        parts = read_zip(data)
        name = draw(st.sampled_from([name for name in parts if name.endswith(("xml", "rels", "opf"))]))
        return write_zip({**parts, name: draw(draw_changed(parts[name]))}, zipfile.ZIP_STORED)
    return draw(draw_changed(data))


@st.composite
def draw_changed(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes that are cut, repeated, overwritten and mixed with `PIECES`."""
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, len(data)))
        to = min(len(data), at + draw(st.sampled_from((0, 1, 4, 30, 1000))))
        piece = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=8), st.just(data[at:to] * 3)))
        data = data[:at] + piece + data[to:]
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


@pytest.fixture(scope="module")
def worker() -> Iterator[ReadingWorker]:
    one = ReadingWorker(ReadLimits(seconds=20, memory=400_000_000))
    yield one
    one.close()


@pytest.mark.parametrize("suffix", FORMATS)
def test_any_file_is_read_or_refused_in_one_line(
    suffix: str, worker: ReadingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A crash in a library must not end the tests.
    monkeypatch.setattr(reading_worker, "OWN_FORMATS", frozenset())

    @given(draw_file(suffix))
    @settings(
        max_examples=int(os.environ.get("FUZZ_EXAMPLES", "12")),
        deadline=None,
        derandomize="FUZZ_EXAMPLES" not in os.environ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def read_any(data: bytes) -> None:
        check_reading(worker, Path(f"a{suffix}"), data)

    for kind, data in SEEDS:
        if kind == suffix:
            read_any = example(data)(read_any)
    read_any()


def check_own_reader(path: Path, data: bytes) -> None:
    """What our own readers refuse they refuse on purpose; libraries may raise anything."""
    try:
        read_document(path, data)
    except ReadError as fault:
        assert fault.__cause__ is None, repr(fault.__cause__)


def check_reading(worker: ReadingWorker, path: Path, data: bytes) -> None:
    if find_reader(path).name in OWN_FORMATS:
        check_own_reader(path, data)
    try:
        _, document = worker.read(path, data)
    except ReadError as fault:
        assert fault.status in get_args(FileStatus)
        assert fault.status != "indexed"
        assert len(fault.reason.splitlines()) == 1
        assert not fault.reason.startswith(
            ("took longer", "needed more", "the reader crashed", "the reader was killed")
        )
        return
    chunks = make_chunks(document, choose_title(document, path.stem), 300)
    assert "".join(chunk.text for chunk in chunks) == document.text
    collect_field_terms(document, path.stem)
    for chunk in chunks:
        split_terms(chunk.text)
        assert chunk.text == document.text[chunk.start_char : chunk.end_char]
