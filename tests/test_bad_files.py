"""Damaged and hostile files: a run goes on, says which it skipped and why, and takes nothing from elsewhere.

A few of each kind; `make test-reliability` reads all of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import Result, Run
from tests.make_bad_files import list_bad_files, write_bad_files
from tests.reliability.store_checks import find_faults, read_rows
from tests.tiny_models import write_model

SLOW = ("bomb", "repeated")
"""Kinds that cost seconds each."""


@pytest.fixture(scope="module")
def bad_folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Path]]]:
    folder = tmp_path_factory.mktemp("bad")
    made = write_bad_files(folder, lambda kind, at: at == 0 and not any(word in kind for word in SLOW))
    (folder / "good.md").write_text("# Timetable\n\nThe ferry to the island leaves at nine.\n")
    return folder, made


def ingest_bad(run: Run, folder: Path, store: Path, model: Path, *flags: str) -> Result:
    return run("ingest", "--store", store, "--model", model, "--jobs", "1", *flags, cwd=folder)


def test_a_run_over_bad_files_ends_well_and_says_what_it_skipped(
    bad_folder: tuple[Path, dict[str, list[Path]]], tmp_path: Path, rse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, made = bad_folder
    monkeypatch.setattr("rse_cli.adapters.encoders.choose_backend", lambda _name: "numpy")
    model = write_model(tmp_path / "model")

    done = ingest_bad(rse, folder, tmp_path / "store", model)
    again = ingest_bad(rse, folder, tmp_path / "store", model, "--json")

    check_run(done, tmp_path / "store", made)
    assert (again.code, again.stderr) == (0, "")
    assert (again.json["new"], again.json["changed"], again.json["removed"]) == ([], [], [])
    assert len(again.json["skipped"]) == done.stderr.count("\nskipped ") + done.stderr.startswith("skipped ")
    found = rse(
        "query", "when does the ferry leave for the island", "--json", "--store", tmp_path / "store", cwd=folder
    )
    assert "good.md" in [segment["path"] for segment in found.json["segments"]]


def check_run(done: Result, store: Path, made: Mapping[str, list[Path]]) -> None:
    """Require one line on stdout, one a skipped file on stderr, and every other file whole in the store."""
    assert done.code == 0, done.stderr
    assert done.text.startswith("new ")
    assert done.text.count("\n") == 1
    assert all(line.startswith(("skipped ", "empty ")) for line in done.stderr.splitlines())
    assert "Traceback" not in done.stderr
    rows = read_rows(store)
    assert find_faults(rows) == []
    heads = [row for row in rows if row["ord"] == -1]
    assert len(heads) > sum(map(len, made.values())) / 2
    assert all(len(row["reason"].splitlines()) <= 1 for row in heads)
    check_nothing_from_elsewhere(rows)


def check_nothing_from_elsewhere(rows: list[dict[str, object]]) -> None:
    text = json.dumps([row["text"] for row in rows])
    assert Path("/etc/passwd").read_text().splitlines()[0] not in text
    assert json.dumps(os.uname().nodename) not in [json.dumps(str(row["text"]).strip()) for row in rows]


def test_there_are_hundreds_of_bad_files_of_many_kinds_and_always_the_same() -> None:
    first, second = hash_bad_files(), hash_bad_files()

    assert len(first) >= 300
    assert len({kind for kind, _ in first}) >= 25
    assert first == second


def hash_bad_files() -> dict[tuple[str, str], int]:
    """Encryption is salted, so files that need a password are left out."""
    return {(kind, name): hash(data) for kind, name, data in list_bad_files() if kind != "encrypted PDF"}


@cache
def find_bad_file(kind: str, name: str) -> bytes:
    return next(data for k, n, data in list_bad_files() if (k, n) == (kind, name))


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("encrypted PDF", "AES_256.pdf", "encrypted: needs a password"),
        ("PDF without text", "scan.pdf", "no text; scanned? run OCR first"),
        (
            "PDF without Unicode",
            "unmapped.pdf",
            "unreadable: 100% of its characters have no Unicode value; run OCR first",
        ),
        ("DOCX bomb", "zeros.docx", "a part unpacks to over 200 times its size"),
        ("XLSX with entities", "outside file.xlsx", "holds a document type, which no Office file has"),
        ("locked PPTX", "password.pptx", "encrypted: needs a password"),
        ("locked DOCX", "encrypted package.docx", "encrypted: needs a password"),
    ],
)
def test_the_reason_says_what_is_wrong(
    tmp_path: Path, rse: Run, monkeypatch: pytest.MonkeyPatch, kind: str, name: str, reason: str
) -> None:
    monkeypatch.setattr("rse_cli.adapters.encoders.choose_backend", lambda _name: "numpy")
    model = write_model(tmp_path / "model")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / name).write_bytes(find_bad_file(kind, name))

    done = ingest_bad(rse, tmp_path / "docs", tmp_path / "store", model)

    assert done.code == 0
    # A scan is no failure, but somebody who means to search it must know.
    assert done.stderr == f"{'empty' if kind == 'PDF without text' else 'skipped'} {name}: {reason}\n"
