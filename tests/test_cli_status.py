"""`rse status` as its users see it: the whole screen, the same as JSON, and when an index is out of date."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run


def mask_size(text: str) -> str:
    """The size of the store depends on the version of its format alone."""
    return re.sub(r"\([\d.,]+ [KM]B\)", "(SIZE)", text)


def test_the_whole_screen(indexed: Path, rse: Run) -> None:
    done = rse("status", cwd=indexed / "docs" / "deep")

    assert (done.code, done.stderr) == (0, "")
    assert mask_size(done.text) == (
        f"root       {indexed}\n"
        f"store      {indexed}/.rse (SIZE)\n"
        "files      3\n"
        "chunks     6\n"
        "characters 492\n"
        "model      all-MiniLM-L6-v2 (384 dimensions, numpy)\n"
        "chunking   at most 300 characters, headers normal\n"
        "changed    nothing since the index was made\n"
    )


def test_the_screen_is_the_same_on_a_terminal(indexed: Path, rse: Run, rse_terminal: Run) -> None:
    assert rse_terminal("status", cwd=indexed, columns=40).text == rse("status", cwd=indexed).text


def test_what_has_no_text_is_counted_and_failures_are_listed(documents: Path, rse: Run) -> None:
    (documents / "docs" / "bad.pdf").write_text("not a PDF")
    (documents / "docs" / "two\nlines\x1b[31m.pdf").write_text("not a PDF either")
    (documents / "docs" / "empty.md").touch()
    (documents / "docs" / "photo.png").write_bytes(b"\x89PNG\0")
    rse("ingest", cwd=documents)

    lines = rse("status", cwd=documents).text.splitlines()
    more = rse("status", "-v", cwd=documents).text.splitlines()

    assert lines[2] == "files      7 · empty 1 · binary 1 · failed 2"
    assert lines[8:] == [
        "failed     docs/bad.pdf: damaged PDF: Failed to open stream",
        "failed     docs/two␊lines␛[31m.pdf: damaged PDF: Failed to open stream",
    ]
    assert more == [
        *lines,
        "empty      docs/empty.md: no text",
        "binary     docs/photo.png: .png files hold no text",
    ]


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of folders that may not be entered, whoever runs the tests."""
    names: set[str] = set()

    def close(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(path: Any = ".", *rest: Any, **options: Any) -> Any:
            place = Path(os.fsdecode(path)) if isinstance(path, str | bytes | Path) else Path()
            if names & {*place.parts[:-1], *(place.parts if name == "scandir" else ())}:
                raise PermissionError(13, "Permission denied", path)
            return function(path, *rest, **options)

        return refuse

    for name in ("scandir", "lstat", "stat"):
        monkeypatch.setattr(os, name, close(name, getattr(os, name)))
    return names


def test_a_folder_that_became_unreadable_is_named_and_the_index_keeps_its_files(
    indexed: Path, rse: Run, closed: set[str]
) -> None:
    closed.add("deep")
    (indexed / "docs" / "out.md").symlink_to(Path(__file__))
    (indexed / "docs" / "big.txt").write_text("x" * 2000)
    lines = [
        "docs/big.txt: 2,000 bytes are more than --max-size",
        "docs/deep: the folder can't be read: Permission denied; the index keeps 1 file of before",
        "docs/out.md: a link out of the indexed folder",
    ]

    for flags in (["--dry-run"], []):
        done = rse("ingest", "docs", "--max-size", "1KB", *flags, cwd=indexed)
        assert (done.code, done.stderr) == (0, "".join(f"skipped {line}\n" for line in lines))
        assert done.text.endswith("new 0 · changed 0 · unchanged 2 · removed 0 · skipped 3\n")

    status = rse("status", cwd=indexed).text
    assert status.endswith(
        "changed    nothing since the index was made\n" + "".join(f"skipped    {line}\n" for line in lines)
    )
    assert [one["path"] for one in rse("status", "--json", cwd=indexed).json["skipped"]] == [
        "docs/big.txt",
        "docs/deep",
        "docs/out.md",
    ]
    closed.clear()
    assert rse("query", "-l", "prune roses in March", cwd=indexed).text == "docs/deep/roses.txt\n"


@pytest.mark.parametrize("name", ["docs", "deep"])
def test_a_root_or_source_that_became_unreadable_loses_nothing(
    documents: Path, rse: Run, closed: set[str], name: str
) -> None:
    store = documents / "store"
    rse("ingest", "--store", store, cwd=documents / "docs")
    rse("ingest", "--store", store, "deep", cwd=documents / "docs")
    closed.add(name)

    rse("query", "--refresh", "--store", store, "roses", cwd=documents)
    seen = rse("status", "--json", "--store", store, cwd=documents).json

    assert (seen["files"], seen["removed"]) == (3, [])
    assert [one["path"] for one in seen["skipped"]] == {"docs": [".", "deep"], "deep": ["deep"]}[name]


def test_a_scan_is_named_with_what_to_do(documents: Path, rse: Run) -> None:
    write_scan(documents / "docs" / "scan.pdf")

    first = rse("ingest", "docs", cwd=documents)
    second = rse("ingest", "docs", cwd=documents)

    assert (first.code, first.stderr) == (0, "empty docs/scan.pdf: no text; scanned? run OCR first\n")
    assert (second.code, second.stderr) == (0, "")
    assert rse("status", cwd=documents).text.endswith("\nempty      docs/scan.pdf: no text; scanned? run OCR first\n")
    assert rse("status", "--json", cwd=documents).json["textless"] == [
        {"path": "docs/scan.pdf", "status": "empty", "reason": "no text; scanned? run OCR first"}
    ]


def write_scan(path: Path) -> None:
    import pymupdf

    with pymupdf.open() as pdf:
        pdf.new_page().draw_rect((72, 72, 300, 300), fill=(0, 0, 0))
        pdf.save(path)


def test_json_is_one_document(documents: Path, rse: Run) -> None:
    (documents / "docs" / "bad.pdf").write_text("not a PDF")
    rse("ingest", "docs", "--chunk-chars", "250", "--headers", "strong", cwd=documents)
    (documents / "docs" / "new.md").write_text("Something new.")
    (documents / "docs" / "pump.md").write_text("# Pump\n\nChanged.\n")
    (documents / "docs" / "lamp.txt").unlink()

    done = rse("status", "--json", cwd=documents)

    assert done.json == {
        "schema_version": 1,
        "store": str(documents / ".rse"),
        "root": str(documents),
        "format_version": 2,
        "model": "all-MiniLM-L6-v2",
        "dimension": 384,
        "backend": "numpy",
        "chunk_chars": 250,
        "headers": "strong",
        "files": 4,
        "files_by_status": {"indexed": 3, "empty": 0, "binary": 0, "encrypted": 0, "unreadable": 0, "failed": 1},
        "chunks": 6,
        "chars": 492,
        "bytes": sum(path.stat().st_size for path in (documents / ".rse").rglob("*") if path.is_file()),
        "failures": [{"path": "docs/bad.pdf", "status": "failed", "reason": "damaged PDF: Failed to open stream"}],
        "textless": [],
        "skipped": [],
        "search_index": {"kind": "flat", "waiting": 0, "stale": False},
        "stale": True,
        "new": ["docs/new.md"],
        "changed": ["docs/pump.md"],
        "removed": ["docs/lamp.txt"],
    }
    assert rse("status", "--json", cwd=documents).stdout == done.stdout


def test_an_index_whose_search_indexes_were_left_unfinished_says_so_until_the_next_ingest(
    indexed: Path, rse: Run
) -> None:
    manifest = indexed / ".rse" / "manifest.json"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace('"settled": true', '"settled": false'), encoding="utf-8")

    assert rse("status", cwd=indexed).text.splitlines()[7] == (
        "search     the last ingest did not finish its search indexes: answers are complete, but slower; run `rse ingest docs`"
    )
    assert rse("status", "--json", cwd=indexed).json["search_index"]["stale"]
    rse("ingest", "docs", cwd=indexed)
    assert not rse("status", "--json", cwd=indexed).json["search_index"]["stale"]


def test_a_vector_index_is_named_with_the_chunks_that_it_lacks(
    indexed: Path, rse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rse_cli.adapters.store_upkeep.VECTOR_INDEX_ROWS", 1)
    (indexed / "docs" / "more.txt").write_text("\n\n".join(f"Oar {n} lies in the shed." * 3 for n in range(300)))
    rse("ingest", "docs", cwd=indexed)
    assert "search     vector index, up to date\n" in rse("status", cwd=indexed).text

    (indexed / "docs" / "one.txt").write_text("The spare mast leans on the boathouse.")
    rse("ingest", "docs", cwd=indexed)
    assert "search     vector index, 2 chunks beside it\n" in rse("status", cwd=indexed).text
    assert rse("status", "--json", cwd=indexed).json["search_index"] == {"kind": "vector", "waiting": 2, "stale": False}


def last_line(rse: Run, folder: Path) -> str:
    return rse("status", cwd=folder).text.splitlines()[7]


def test_an_index_is_stale_when_content_changed_not_when_a_file_was_touched(indexed: Path, rse: Run) -> None:
    pump = indexed / "docs" / "pump.md"
    os.utime(pump, (1, 1))
    assert last_line(rse, indexed) == "changed    nothing since the index was made"

    pump.write_text(pump.read_text().replace("spring", "autumn"))
    (indexed / "docs" / "lamp.txt").unlink()
    assert last_line(rse, indexed) == (
        "changed    new 0 · changed 1 · removed 1 since the index was made; run `rse ingest docs`"
    )

    rse("ingest", "docs", cwd=indexed)
    assert last_line(rse, indexed) == "changed    nothing since the index was made"


def test_files_that_were_never_asked_for_do_not_make_it_stale(indexed: Path, rse: Run) -> None:
    (indexed / "notes.md").write_text("Beside the folder that was ingested.")
    (indexed / "docs" / ".hidden.md").write_text("Hidden.")
    (indexed / "docs" / "photo.png").write_bytes(b"\x89PNG\0")
    (indexed / "docs" / ".rseignore").write_text("*.png\n")

    assert rse("status", "--exit-code", cwd=indexed).code == 0


def test_writing_the_settings_does_not_make_it_stale(documents: Path, rse: Run) -> None:
    rse("ingest", cwd=documents)
    (documents / "rse.toml").write_text("[query]\npreset = 'precision'\n")

    assert rse("status", "--exit-code", cwd=documents).code == 0
    assert rse("ingest", cwd=documents).text == "new 0 · changed 0 · unchanged 3 · removed 0 · skipped 0\n"
    named = rse("ingest", "rse.toml", cwd=documents)
    assert named.text == "new 0 · changed 0 · unchanged 0 · removed 0 · skipped 1\n"
    assert named.stderr == "skipped rse.toml: the settings of rse, not a document\n"


def test_a_file_that_became_ignored_makes_it_stale(indexed: Path, rse: Run) -> None:
    (indexed / "docs" / ".gitignore").write_text("lamp.txt\n")

    assert rse("status", "--json", cwd=indexed).json["removed"] == ["docs/lamp.txt"]


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_exit_code_tells_whether_it_is_stale(indexed: Path, rse: Run, flags: list[str]) -> None:
    assert rse("status", "--exit-code", *flags, cwd=indexed).code == 0

    (indexed / "docs" / "new.md").write_text("Something new.")

    assert rse("status", "--exit-code", *flags, cwd=indexed).code == 1
    assert rse("status", *flags, cwd=indexed).code == 0


def test_a_store_can_be_named(indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    here = rse("status", "--json", cwd=indexed)

    assert rse("status", "--json", "--store", indexed / ".rse", cwd=elsewhere).stdout == here.stdout
    assert rse("status", "--json", cwd=elsewhere, env={"RSE_STORE": str(indexed / ".rse")}).stdout == here.stdout


def test_without_an_index_it_says_which_command_to_run(documents: Path, rse: Run) -> None:
    done = rse("status", cwd=documents)

    assert (done.code, done.stdout, done.stderr) == (
        2,
        b"",
        "rse: no index in this folder or above it: run `rse ingest` in the folder to be indexed\n",
    )


def test_a_store_that_was_killed_before_it_was_one_says_what_to_run_and_that_works(documents: Path, rse: Run) -> None:
    (documents / ".rse").mkdir()
    (documents / ".rse" / "lock").touch()

    done = rse("status", cwd=documents)

    assert (done.code, done.stdout, done.stderr) == (2, b"", f"rse: no index at {documents}/.rse: run `rse ingest`\n")
    assert rse("ingest", cwd=documents).text == "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 0\n"


def test_a_root_that_is_gone_leaves_all_files_removed(
    documents: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = tmp_path_factory.mktemp("elsewhere") / "store"
    rse("ingest", "--store", store, cwd=documents / "docs")
    (documents / "docs").rename(documents / "renamed")

    status = rse("status", "--json", "--store", store, cwd=documents)

    assert (status.code, status.json["stale"]) == (0, True)
    assert status.json["removed"] == ["deep/roses.txt", "lamp.txt", "pump.md"]
