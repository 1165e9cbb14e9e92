"""`rse ingest` as its users see it: what it prints, which files it takes, and what it leaves behind."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rse_cli.adapters.reading_worker import ReadingWorker
from rse_cli.cli.output import make_visible_line
from rse_cli.core.models import Document
from rse_cli.errors import ReadError
from tests.conftest import Run

NO_FILES = "new 0 · changed 0 · unchanged 0 · removed 0 · skipped 0\n"


def indexed_paths(rse: Run, folder: Path, *flags: str) -> list[str]:
    """What a first ingest of a folder takes."""
    return list(rse("ingest", "--dry-run", "--json", *flags, cwd=folder).json["new"])


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every file of the store but the lock, which every writer touches."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}


# What it prints


def test_a_first_ingest_prints_one_line(documents: Path, rse: Run) -> None:
    done = rse("ingest", "docs", cwd=documents)

    assert (done.code, done.text, done.stderr) == (
        0,
        "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 0\n",
        "",
    )


def test_a_second_ingest_finds_everything_unchanged_and_writes_nothing(indexed: Path, rse: Run) -> None:
    rse("ingest", "docs", cwd=indexed)
    before = read_tree(indexed / ".rse")

    done = rse("ingest", "docs", cwd=indexed)

    assert done.text == "new 0 · changed 0 · unchanged 3 · removed 0 · skipped 0\n"
    assert read_tree(indexed / ".rse") == before


def test_new_edited_and_deleted_files_are_counted_apart(indexed: Path, rse: Run) -> None:
    write(indexed, {"docs/new.md": "Something new.", "docs/pump.md": "# Pump\n\nAll is different now.\n"})
    (indexed / "docs" / "lamp.txt").unlink()

    done = rse("ingest", "docs", cwd=indexed)

    assert done.text == "new 1 · changed 1 · unchanged 1 · removed 1 · skipped 0\n"
    assert rse("query", "lens of the lighthouse", "--min-confidence", "0", "-l", cwd=indexed).text.count("lamp") == 0


def test_a_file_that_was_only_touched_is_unchanged(indexed: Path, rse: Run) -> None:
    os.utime(indexed / "docs" / "pump.md", (1, 1))

    assert rse("ingest", "--dry-run", cwd=indexed).text == (
        "would be: new 0 · changed 0 · unchanged 3 · removed 0 · skipped 0\n"
    )
    assert rse("ingest", cwd=indexed).text == "new 0 · changed 0 · unchanged 3 · removed 0 · skipped 0\n"


def test_a_newly_ignored_file_goes(indexed: Path, rse: Run) -> None:
    write(indexed, {"docs/.gitignore": "*.txt\n"})

    assert rse("ingest", "docs", cwd=indexed).text == "new 0 · changed 0 · unchanged 1 · removed 2 · skipped 0\n"


def test_only_files_under_the_given_paths_go(indexed: Path, rse: Run) -> None:
    (indexed / "docs" / "lamp.txt").unlink()

    assert rse("ingest", "docs/deep", cwd=indexed).text == "new 0 · changed 0 · unchanged 1 · removed 0 · skipped 0\n"
    assert rse("ingest", "docs", cwd=indexed).text == "new 0 · changed 0 · unchanged 2 · removed 1 · skipped 0\n"


def test_a_moved_file_keeps_its_vectors(indexed: Path, rse: Run) -> None:
    (indexed / "docs" / "pump.md").rename(indexed / "docs" / "water.md")

    done = rse("ingest", "--json", cwd=indexed)

    assert done.json["new"] == ["docs/water.md"]
    assert done.json["removed"] == ["docs/pump.md"]
    assert done.json["stats"] == {"encoded": 0, "reused": 4}


def test_editing_one_paragraph_encodes_only_its_chunks_anew(indexed: Path, rse: Run) -> None:
    pump = indexed / "docs" / "pump.md"
    pump.write_text(pump.read_text().replace("two years", "five years"))

    assert rse("ingest", "--json", cwd=indexed).json["stats"] == {"encoded": 1, "reused": 3}


def test_a_dry_run_names_what_would_be_done_and_makes_nothing(documents: Path, rse: Run) -> None:
    done = rse("ingest", "docs", "--dry-run", cwd=documents)

    assert done.text == (
        "would be: new 3 · changed 0 · unchanged 0 · removed 0 · skipped 0\n"
        "new docs/deep/roses.txt\n"
        "new docs/lamp.txt\n"
        "new docs/pump.md\n"
    )
    assert not (documents / ".rse").exists()


def test_a_dry_run_says_what_it_can_not_know(documents: Path, rse: Run) -> None:
    write(documents, {"docs/bad.pdf": "not a PDF"})
    dry, done = rse("ingest", "--dry-run", cwd=documents), rse("ingest", cwd=documents)

    assert dry.text.startswith("would be: new 4 · changed 0 · unchanged 0 · removed 0 · skipped 0\n")
    assert (
        dry.stderr == "rse: a dry run does not try to read these: some may turn out to be unreadable and be skipped\n"
    )
    assert done.text == "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 1\n"
    assert rse("ingest", "--dry-run", cwd=documents).stderr == done.stderr


def test_a_dry_run_leaves_an_index_as_it_is(indexed: Path, rse: Run) -> None:
    write(indexed, {"docs/new.md": "Something new.", "docs/pump.md": "Changed."})
    (indexed / "docs" / "lamp.txt").unlink()
    before = read_tree(indexed / ".rse")

    done = rse("ingest", "-n", cwd=indexed)

    assert done.text == (
        "would be: new 1 · changed 1 · unchanged 1 · removed 1 · skipped 0\n"
        "new docs/new.md\n"
        "changed docs/pump.md\n"
        "removed docs/lamp.txt\n"
    )
    assert read_tree(indexed / ".rse") == before


def test_json_prints_one_document_that_is_the_same_each_time(documents: Path, rse: Run) -> None:
    write(documents, {"docs/bad.pdf": "not a PDF"})
    first = rse("ingest", "--json", cwd=documents)
    second = rse("ingest", "--json", cwd=documents)
    third = rse("ingest", "--json", cwd=documents)

    assert first.json == {
        "schema_version": 1,
        "store": str(documents / ".rse"),
        "root": str(documents),
        "dry_run": False,
        "new": ["docs/deep/roses.txt", "docs/lamp.txt", "docs/pump.md"],
        "changed": [],
        "removed": [],
        "unchanged": 0,
        "skipped": [{"path": "docs/bad.pdf", "reason": "damaged PDF: Failed to open stream"}],
        "textless": [],
        "stats": {"encoded": 6, "reused": 0},
    }
    assert second.json == first.json | {"new": [], "unchanged": 3, "stats": {"encoded": 0, "reused": 0}}
    assert third.stdout == second.stdout
    assert first.stderr == ""


def test_quiet_prints_nothing(documents: Path, rse: Run) -> None:
    write(documents, {"bad.pdf": "not a PDF"})

    done = rse("ingest", "--quiet", cwd=documents)

    assert (done.code, done.stdout, done.stderr) == (0, b"", "")


def test_verbose_names_every_file_on_stderr_as_it_is_read(documents: Path, rse: Run) -> None:
    done = rse("ingest", "docs", "--verbose", cwd=documents)

    assert done.text == "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 0\n"
    assert done.stderr == (
        "docs/deep/roses.txt\ndocs/lamp.txt\ndocs/pump.md\nnew docs/deep/roses.txt\nnew docs/lamp.txt\nnew docs/pump.md\n"
    )


def test_a_bar_is_drawn_on_a_terminal_and_wiped_off_at_the_end(documents: Path, rse_terminal: Run) -> None:
    shown = rse_terminal("ingest", "docs", cwd=documents).text

    assert "files " in shown and "3/3" in shown
    assert "chunks " in shown and "6/6" in shown and "/s " in shown
    assert shown.endswith("\x1b[2Knew 3 · changed 0 · unchanged 0 · removed 0 · skipped 0\n")


@pytest.mark.parametrize(("flags", "env"), [(["--quiet"], {}), ([], {"TERM": "dumb"})])
def test_no_bar_is_drawn_where_it_is_not_wanted(
    documents: Path, rse_terminal: Run, flags: list[str], env: dict[str, str]
) -> None:
    shown = rse_terminal("ingest", "docs", *flags, cwd=documents, env=env).text

    assert shown == ("" if flags else "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 0\n")


# Files that can't be read


def test_a_file_that_cannot_be_read_is_skipped_with_its_reason(documents: Path, rse: Run) -> None:
    write(documents, {"docs/bad.pdf": "not a PDF"})

    first = rse("ingest", cwd=documents)
    second = rse("ingest", cwd=documents)

    assert (first.code, first.text, first.stderr) == (
        0,
        "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 1\n",
        "skipped docs/bad.pdf: damaged PDF: Failed to open stream\n",
    )
    assert (second.text, second.stderr) == (
        "new 0 · changed 0 · unchanged 3 · removed 0 · skipped 1\n",
        first.stderr,
    )
    assert rse("ingest", "--dry-run", cwd=documents).text == (
        "would be: new 0 · changed 0 · unchanged 3 · removed 0 · skipped 1\n"
    )


def test_a_skipped_file_is_tried_again_when_it_changes(documents: Path, rse: Run) -> None:
    import pymupdf

    write(documents, {"docs/report.pdf": "not a PDF"})
    rse("ingest", cwd=documents)
    with pymupdf.open() as pdf:
        pdf.new_page().insert_text((72, 72), "Herring sales rose by a third.")
        pdf.save(documents / "docs" / "report.pdf")

    assert rse("ingest", cwd=documents).text == "new 0 · changed 1 · unchanged 3 · removed 0 · skipped 0\n"
    assert rse("query", "herring sales", "-l", cwd=documents).text == "docs/report.pdf\n"


@pytest.mark.parametrize("flags", [["--strict"], ["--strict", "--quiet"]])
def test_strict_exits_with_2_after_the_summary(documents: Path, rse: Run, flags: list[str]) -> None:
    write(documents, {"docs/bad.pdf": "not a PDF"})

    done = rse("ingest", *flags, cwd=documents)

    assert done.code == 2
    assert done.text == ("" if "--quiet" in flags else "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 1\n")
    assert done.stderr == "skipped docs/bad.pdf: damaged PDF: Failed to open stream\n"


def test_strict_exits_with_0_where_all_could_be_read(documents: Path, rse: Run) -> None:
    assert rse("ingest", "--strict", cwd=documents).code == 0


def test_binary_files_are_no_failures_and_no_text(documents: Path, rse: Run) -> None:
    (documents / "docs" / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (documents / "docs" / "blob").write_bytes(bytes(range(256)) * 8)

    done = rse("ingest", "--strict", cwd=documents)
    status = rse("status", "--json", cwd=documents).json

    assert (done.code, done.stderr) == (0, "")
    assert status["files_by_status"] == {
        "indexed": 3,
        "empty": 0,
        "binary": 2,
        "encrypted": 0,
        "unreadable": 0,
        "failed": 0,
    }
    assert status["chunks"] == 6
    reasons = {"docs/blob": "has NUL bytes, so it is not text", "docs/photo.png": ".png files hold no text"}
    again = rse("ingest", "--verbose", cwd=documents)
    assert again.stderr == "".join(f"binary {path}: {reason}\n" for path, reason in reasons.items())
    assert {one["path"]: one["reason"] for one in rse("ingest", "--json", cwd=documents).json["textless"]} == reasons


# Which files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(
        tmp_path,
        {
            "a.md": "Text a.",
            "b.txt": "Text b.",
            "big.txt": "word " * 1000,
            ".secret.md": "Hidden.",
            "drafts/c.md": "Text c.",
            "build/d.md": "Text d.",
            ".gitignore": "/build/\n",
            "drafts/.rseignore": "e.md\n",
            "drafts/e.md": "Text e.",
        },
    )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], ["a.md", "b.txt", "big.txt", "drafts/c.md"]),
        (["--include", "*.md"], ["a.md", "drafts/c.md"]),
        (["--include", "*.md", "--include", "b.*"], ["a.md", "b.txt", "drafts/c.md"]),
        (["--exclude", "drafts/"], ["a.md", "b.txt", "big.txt"]),
        (["--include", "*.md", "--exclude", "drafts/"], ["a.md"]),
        (["--hidden", "--exclude", "*ignore"], [".secret.md", "a.md", "b.txt", "big.txt", "drafts/c.md"]),
        (["--no-ignore"], ["a.md", "b.txt", "big.txt", "build/d.md", "drafts/c.md", "drafts/e.md"]),
        (["--max-size", "1KB"], ["a.md", "b.txt", "drafts/c.md"]),
    ],
)
def test_filters_choose_files(tree: Path, rse: Run, flags: list[str], expected: list[str]) -> None:
    assert indexed_paths(rse, tree, *flags) == expected


def test_a_file_above_the_size_cap_is_reported(tree: Path, rse: Run) -> None:
    done = rse("ingest", "--max-size", "1KB", cwd=tree)

    assert done.text == "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 1\n"
    assert done.stderr == "skipped big.txt: 5,000 bytes are more than --max-size\n"


def test_links_are_not_followed_out_of_the_root(tmp_path: Path, rse: Run) -> None:
    write(tmp_path, {"outside/secret.md": "A secret.", "root/a.md": "Text a."})
    (tmp_path / "root" / "file.md").symlink_to(tmp_path / "outside" / "secret.md")
    (tmp_path / "root" / "folder").symlink_to(tmp_path / "outside")

    done = rse("ingest", cwd=tmp_path / "root")

    assert done.text == "new 1 · changed 0 · unchanged 0 · removed 0 · skipped 2\n"
    assert done.stderr == (
        "skipped file.md: a link out of the indexed folder\nskipped folder: a link out of the indexed folder\n"
    )


def test_what_a_link_brought_in_goes_once_it_is_ignored_or_leads_out(
    documents: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.txt"
    outside.write_text("A secret.\n")
    write(documents, {"docs/.plans/plan.md": "The plan.\n", "docs/.plans/other.md": "Another plan.\n"})
    for name in ("plan", "other"):
        (documents / "docs" / f"{name}.md").symlink_to(f".plans/{name}.md")
    first = rse("ingest", "docs", "--json", cwd=documents).json

    write(documents, {"docs/.gitignore": "/.plans/plan.md\n"})
    (documents / "docs" / "other.md").unlink()
    (documents / "docs" / "other.md").symlink_to(outside)
    second = rse("ingest", "docs", "--json", cwd=documents).json

    assert {"docs/plan.md", "docs/other.md"} < set(first["new"])
    assert second["removed"] == ["docs/other.md", "docs/plan.md"]
    assert second["skipped"] == [
        {"path": "docs/other.md", "reason": "a link out of the indexed folder"},
        {"path": "docs/plan.md", "reason": "a link to an ignored file"},
    ]


def test_a_store_never_indexes_itself_nor_another_one(indexed: Path, rse: Run) -> None:
    rse("ingest", "--store", "other-store", "docs", cwd=indexed)

    assert (indexed / "other-store" / "manifest.json").exists()
    assert indexed_paths(rse, indexed, "--hidden", "--no-ignore", "--rebuild") == [
        "docs/deep/roses.txt",
        "docs/lamp.txt",
        "docs/pump.md",
    ]


def test_a_store_hides_itself_from_git(indexed: Path) -> None:
    assert (indexed / ".rse" / ".gitignore").read_text() == "*\n"


def test_the_settings_of_the_project_hold_unless_a_flag_says_otherwise(tree: Path, rse: Run) -> None:
    write(tree, {"rse.toml": '[ingest]\nexclude = ["*.txt", "*.toml"]\n'})

    assert indexed_paths(rse, tree) == ["a.md", "drafts/c.md"]
    assert indexed_paths(rse, tree, "--exclude", "drafts/", "--include", "*.txt") == ["b.txt", "big.txt"]


# Where


def test_ingest_then_query_works_in_one_folder(documents: Path, rse: Run) -> None:
    rse("ingest", "docs", cwd=documents)

    assert rse("query", "how is the filter cleaned?", "-l", cwd=documents).text == "docs/pump.md\n"


def test_the_store_is_found_from_any_folder_below(indexed: Path, rse: Run) -> None:
    below = indexed / "docs" / "deep"
    write(below, {"new.md": "Something new."})

    done = rse("ingest", "--json", cwd=below)

    assert done.json["store"] == str(indexed / ".rse")
    assert done.json["new"] == ["docs/deep/new.md"]
    assert not (below / ".rse").exists()
    assert rse("query", "how is the filter cleaned?", "-l", cwd=below).text == "docs/pump.md\n"


@pytest.mark.parametrize(
    ("cwd", "paths", "root"),
    [
        ("a", [], "a"),
        ("a", ["x", "y"], "a"),
        ("a/x", [".."], "a"),
        ("b", ["../a/x"], "a/x"),
        ("b", ["../a/x", "../a/y"], "a"),
        ("b", ["../a/x/1.md"], "a/x"),
        ("b", ["../a/x", "."], ""),
    ],
)
def test_the_root_of_a_new_store_holds_all_paths(
    tmp_path: Path, rse: Run, cwd: str, paths: list[str], root: str
) -> None:
    write(tmp_path, {"a/x/1.md": "One.", "a/y/2.md": "Two.", "b/3.md": "Three."})

    done = rse("ingest", *paths, "--json", cwd=tmp_path / cwd)

    assert (done.json["root"], done.json["store"]) == (str(tmp_path / root), str(tmp_path / root / ".rse"))
    assert (tmp_path / root / ".rse" / "manifest.json").exists()


def test_an_index_in_a_folder_above_takes_the_files_below_it(tmp_path: Path, rse: Run) -> None:
    write(tmp_path, {"1.md": "One.", "a/x/2.md": "Two."})
    rse("ingest", "1.md", cwd=tmp_path)

    assert rse("ingest", "x", "--json", cwd=tmp_path / "a").json["root"] == str(tmp_path)


@pytest.mark.parametrize("how", ["flag", "environment", "both"])
def test_the_store_can_lie_elsewhere(
    documents: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory, how: str
) -> None:
    store, other = tmp_path_factory.mktemp("elsewhere") / ".rse", tmp_path_factory.mktemp("other") / "store"
    flags = [] if how == "environment" else ["--store", str(store)]
    env = {"flag": {}, "environment": {"RSE_STORE": str(store)}, "both": {"RSE_STORE": str(other)}}[how]

    done = rse("ingest", "--json", *flags, cwd=documents, env=env)

    assert (done.json["store"], done.json["root"]) == (str(store), str(documents))
    assert not (documents / ".rse").exists()
    assert not other.exists()
    assert rse("query", "filter of the pump", "-l", *flags, cwd=documents, env=env).text == "docs/pump.md\n"


def test_a_named_store_is_not_looked_for_above(
    indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = tmp_path_factory.mktemp("elsewhere") / "store"

    done = rse("ingest", "--json", "--store", store, cwd=indexed / "docs" / "deep")

    assert (done.json["root"], done.json["new"]) == (str(indexed / "docs" / "deep"), ["roses.txt"])


# Bad input changes nothing


@pytest.mark.parametrize(
    ("paths", "named"),
    [
        (["nowhere"], "nowhere"),
        (["docs", "nowhere", "docs/never.md"], "nowhere, docs/never.md"),
        (["two\nlines"], "two␊lines"),
        (["x" * 300], "x" * 300),
        (["docs/pump.md/below"], "docs/pump.md/below"),
    ],
)
def test_a_missing_path_is_one_line_and_nothing_is_made(
    documents: Path, rse: Run, paths: list[str], named: str
) -> None:
    done = rse("ingest", *paths, cwd=documents)

    assert (done.code, done.stdout, done.stderr) == (2, b"", f"rse: no such file or folder: {named}\n")
    assert not (documents / ".rse").exists()


def test_a_missing_path_leaves_an_index_as_it_is(indexed: Path, rse: Run) -> None:
    write(indexed, {"docs/new.md": "Something new."})
    before = read_tree(indexed / ".rse")

    assert rse("ingest", "docs", "nowhere", cwd=indexed).code == 2
    assert read_tree(indexed / ".rse") == before


def test_a_path_outside_the_root_is_refused(indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")

    done = rse("ingest", "--store", indexed / ".rse", other, cwd=indexed)

    assert (done.code, done.stderr) == (2, f"rse: outside the indexed folder {indexed}: {other}\n")


@pytest.mark.parametrize("gone", ["docs/deep", "docs/deep/roses.txt"])
def test_a_deleted_path_given_again_leaves_the_index(indexed: Path, rse: Run, gone: str) -> None:
    (indexed / "docs" / "deep" / "roses.txt").unlink()
    (indexed / "docs" / "deep").rmdir()

    assert rse("ingest", gone, cwd=indexed).text == "new 0 · changed 0 · unchanged 0 · removed 1 · skipped 0\n"
    again = rse("ingest", gone, cwd=indexed)
    assert (again.code, again.stderr) == (2, f"rse: no such file or folder: {gone}\n")


MISMATCHES = [
    (["--chunk-chars", "200"], "the index has chunk_chars 300, not 200 (--chunk-chars)"),
    (["--headers", "strong"], "the index has headers normal, not strong (--headers)"),
    (["--model", "some-model"], "the index has model all-MiniLM-L6-v2, not some-model (--model)"),
    (
        ["--chunk-chars", "200", "--headers", "none"],
        "the index has chunk_chars 300, not 200 (--chunk-chars); the index has headers normal, not none (--headers)",
    ),
]


@pytest.mark.parametrize(("flags", "reason"), MISMATCHES)
def test_what_is_fixed_in_an_index_is_refused_otherwise(indexed: Path, rse: Run, flags: list[str], reason: str) -> None:
    before = read_tree(indexed / ".rse")

    done = rse("ingest", *flags, cwd=indexed)

    command = f"rse ingest --rebuild {' '.join(flags)}"
    assert (done.code, done.stdout, done.stderr) == (2, b"", f"rse: {reason}: rebuild with `{command}`\n")
    assert read_tree(indexed / ".rse") == before


def run_named_command(rse: Run, stderr: str, cwd: Path, **options: Any) -> str:
    """Run the command between the backticks of an error."""
    command = shlex.split(stderr.split("`")[1])
    assert command[:3] == ["rse", "ingest", "--rebuild"]
    done = rse(*command[1:], cwd=cwd, **options)
    assert done.code == 0, done.stderr
    return done.text


def test_the_named_command_rebuilds_all_that_the_index_held(indexed: Path, rse: Run) -> None:
    write(indexed, {"other/never-asked-for.md": "Not part of the index."})
    below = indexed / "docs" / "deep"

    refused = rse("ingest", "--chunk-chars", "200", "--headers", "strong", cwd=below)

    assert run_named_command(rse, refused.stderr, below) == (
        "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 0\n"
    )
    status = rse("status", "--json", cwd=below).json
    assert (status["chunk_chars"], status["headers"], status["files"]) == (200, "strong", 3)
    assert status["stale"] is False
    assert rse("query", "filter of the pump", "-l", cwd=below).text == "docs/pump.md\n"


def test_the_named_command_names_a_store_that_is_not_found_from_here(
    indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")

    refused = rse("ingest", indexed / "docs", "--store", indexed / ".rse", "--chunk-chars", "90", cwd=elsewhere)

    assert refused.stderr == (
        "rse: the index has chunk_chars 300, not 90 (--chunk-chars): rebuild with "
        f"`rse ingest --rebuild --chunk-chars 90 --store {indexed}/.rse`\n"
    )
    assert run_named_command(rse, refused.stderr, elsewhere) == (
        "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 0\n"
    )
    assert list(elsewhere.iterdir()) == []


def test_a_setting_of_the_project_that_disagrees_is_named_with_its_line(indexed: Path, rse: Run) -> None:
    write(indexed, {"rse.toml": "[ingest]\n\nchunk_chars = 120\n"})

    refused = rse("ingest", "docs", cwd=indexed)

    assert refused.stderr == (
        "rse: the index has chunk_chars 300, not 120 (rse.toml line 3): rebuild with `rse ingest --rebuild`\n"
    )
    run_named_command(rse, refused.stderr, indexed)
    assert rse("status", "--json", cwd=indexed).json["chunk_chars"] == 120


def test_a_rebuild_keeps_what_was_fixed_and_the_filters(documents: Path, rse: Run) -> None:
    rse("ingest", "docs", "--exclude", "*.txt", "--chunk-chars", "120", "--headers", "none", cwd=documents)

    done = rse("ingest", "--rebuild", cwd=documents)

    assert done.text == "new 1 · changed 0 · unchanged 0 · removed 0 · skipped 0\n"
    status = rse("status", "--json", cwd=documents).json
    assert (status["chunk_chars"], status["headers"], status["new"]) == (120, "none", [])
    assert rse("ingest", "--rebuild", "--exclude", "*.md", cwd=documents).text.startswith("new 2 ")


def test_a_rebuild_with_paths_drops_all_else(indexed: Path, rse: Run) -> None:
    assert rse("ingest", "--rebuild", "docs/deep", cwd=indexed).text == (
        "new 1 · changed 0 · unchanged 0 · removed 0 · skipped 0\n"
    )
    assert rse("status", "--json", cwd=indexed).json["files"] == 1


def test_a_path_ingested_with_filters_of_its_own_keeps_them(documents: Path, rse: Run) -> None:
    rse("ingest", "docs", "--exclude", "*.txt", cwd=documents)
    rse("ingest", "docs/deep", cwd=documents)

    status = rse("status", "--json", cwd=documents).json
    assert (status["files"], status["stale"]) == (2, False)
    rse("query", "--refresh", "roses", cwd=documents)
    assert rse("status", "--json", cwd=documents).json["files"] == 2


def test_a_model_that_is_not_on_this_machine_is_one_line(documents: Path, rse: Run) -> None:
    done = rse("ingest", "--model", "no-such-model", cwd=documents)

    assert (done.code, done.stdout, done.stderr.count("\n")) == (2, b"", 1)
    assert done.stderr.startswith("rse: ") and "no-such-model" in done.stderr
    assert not (documents / ".rse").exists()


def test_a_damaged_manifest_is_refused_and_the_named_command_mends_it(indexed: Path, rse: Run) -> None:
    (indexed / ".rse" / "manifest.json").write_text('{"format_version": 1, "root"')

    for command in (["ingest"], ["query", "pump"], ["status"]):
        done = rse(*command, cwd=indexed)
        assert (done.code, done.stdout) == (2, b"")
        assert done.stderr == (
            f"rse: {indexed}/.rse is not a store, or a damaged one: rebuild with `rse ingest --rebuild`\n"
        )
    assert run_named_command(rse, done.stderr, indexed / "docs" / "deep").startswith("new 3 ")
    assert rse("query", "filter of the pump", "-l", cwd=indexed).text == "docs/pump.md\n"


def test_a_store_of_another_version_is_refused_and_the_named_command_mends_it(indexed: Path, rse: Run) -> None:
    manifest = indexed / ".rse" / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"chunking": content["chunking"] | {"version": 1}}))

    for command in (["ingest"], ["query", "pump"], ["status"]):
        done = rse(*command, cwd=indexed)
        assert (done.code, done.stdout) == (2, b"")
        assert done.stderr == (
            f"rse: {indexed}/.rse was made by another version of rse: rebuild with `rse ingest --rebuild`\n"
        )
    assert run_named_command(rse, done.stderr, indexed).startswith("new 3 ")


def test_a_folder_with_other_files_does_not_become_a_store(documents: Path, rse: Run) -> None:
    done = rse("ingest", "--store", "docs", cwd=documents)

    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr == "rse: docs holds other files (deep): give --store a new or empty folder\n"
    assert sorted(path.name for path in (documents / "docs").iterdir()) == ["deep", "lamp.txt", "pump.md"]


def test_a_file_does_not_become_a_store(documents: Path, rse: Run) -> None:
    done = rse("ingest", "--store", "docs/lamp.txt", cwd=documents)

    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr.count("\n") == 1 and "docs/lamp.txt" in done.stderr
    assert (documents / "docs" / "lamp.txt").read_text().startswith("The lamp")


# Other writers, and ends before the end


def test_a_store_held_too_long_by_another_process_is_refused(indexed: Path, rse: Run) -> None:
    with (indexed / ".rse" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        at_once = rse("ingest", "--lock-timeout", "0", cwd=indexed)
        later = rse("ingest", "--lock-timeout", "1.2", cwd=indexed)

    refusal = f"rse: the store {indexed}/.rse is being written by process 4711: try again later\n"
    assert (at_once.code, at_once.stdout, at_once.stderr) == (2, b"", refusal)
    waiting = f"rse: waiting for process 4711, which is writing to the store {indexed}/.rse\n"
    assert (later.code, later.stdout, later.stderr) == (2, b"", waiting + refusal)


def test_maintenance_that_was_interrupted_is_made_up_for_by_the_next_run(
    documents: Path, rse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rse_cli.adapters.lancedb_store import LanceStore
    from rse_cli.adapters.manifest import read_manifest

    def interrupt(_store: LanceStore) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LanceStore, "maintain", interrupt)
        first = rse("ingest", "docs", cwd=documents)
    store = LanceStore(documents / ".rse", read_manifest(documents / ".rse"))
    settled_then = store.snapshot().is_settled()
    again = rse("ingest", "docs", cwd=documents)

    assert (first.code, settled_then) == (130, False)
    assert again.text == "new 0 · changed 0 · unchanged 3 · removed 0 · skipped 0\n"
    assert store.snapshot().is_settled()


def test_an_ingest_waits_for_another_one_and_goes_on(
    indexed: Path, start_rse: Callable[..., subprocess.Popen[bytes]]
) -> None:
    write(indexed, {"docs/new.md": "Something new."})
    with (indexed / ".rse" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = start_rse("ingest", cwd=indexed)
        assert process.stderr is not None
        said = process.stderr.readline().decode()
        assert process.poll() is None
    out, err = process.communicate(timeout=300)

    assert said == f"rse: waiting for process unknown, which is writing to the store {indexed}/.rse\n"
    assert (process.returncode, err) == (0, b"")
    assert out.decode() == "new 1 · changed 0 · unchanged 3 · removed 0 · skipped 0\n"


def test_a_query_is_answered_while_another_process_writes(indexed: Path, rse: Run) -> None:
    with (indexed / ".rse" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert rse("query", "filter of the pump", "-l", cwd=indexed).text == "docs/pump.md\n"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """More files than one batch takes, quick to encode as they are alike, then one that takes several seconds."""
    for number in range(512):
        (tmp_path / f"a{number:03}.md").write_text(
            "# Note\n\nThis short note is the same in every file of the folder.\n"
        )
    lines = [
        f"Line {number} of the long file tells of {number * 7919 % 997} geese that fly south.\n"
        for number in range(2_500)
    ]
    (tmp_path / "z.txt").write_text("".join(lines))
    return tmp_path


def stop_in_last_batch(
    process: subprocess.Popen[bytes], number: int, is_time: Callable[[], bool] = lambda: True
) -> tuple[int, bytes, str]:
    """Send a signal to an ingest with ``--verbose`` once it has read the last file and it `is_time`."""
    assert process.stderr is not None
    for line in process.stderr:
        if line == b"z.txt\n":
            break
    while not is_time():
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err.decode()


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGINT, 130, "rse: interrupted; what was finished is kept\n"),
        (signal.SIGTERM, 143, "rse: terminated; what was finished is kept\n"),
        (signal.SIGKILL, -9, ""),
    ],
)
def test_an_interrupted_ingest_keeps_finished_batches_and_the_next_goes_on(
    large: Path, rse: Run, start_rse: Callable[..., subprocess.Popen[bytes]], number: int, code: int, message: str
) -> None:
    process = start_rse("ingest", "--verbose", cwd=large)

    def has_first_batch() -> bool:
        # Sooner than `status`, while which the last batch may end as well.
        return bool(json.loads((large / ".rse" / "manifest.json").read_text())["statistics"])

    assert stop_in_last_batch(process, number, has_first_batch) == (code, b"", message)
    status = rse("status", "--json", cwd=large).json
    assert (status["files"], status["new"], status["stale"]) == (512, ["z.txt"], True)
    if number == signal.SIGKILL:
        (large / "z.txt").write_text("Only a line about geese is left here now.\n")
        assert rse("ingest", cwd=large).text == "new 1 · changed 0 · unchanged 512 · removed 0 · skipped 0\n"


def test_a_first_ingest_killed_before_its_first_batch_leaves_an_index_of_0_files(
    large: Path, rse: Run, start_rse: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start_rse("ingest", "--verbose", "z.txt", cwd=large)

    assert stop_in_last_batch(process, signal.SIGKILL)[0] == -9
    status = rse("status", "--json", cwd=large)
    assert (status.code, status.json["files"], status.json["new"]) == (0, 0, ["z.txt"])
    query = rse("query", "geese", cwd=large)
    assert (query.code, query.stdout) == (1, b"")
    assert query.stderr == (
        "rse: 1 file changed since the index was made (--refresh updates it)\n"
        "rse: nothing found: the index holds no text\n"
    )


def test_a_folder_above_the_indexed_one_gets_an_index_of_its_own_and_that_is_said(indexed: Path, rse: Run) -> None:
    inner = indexed / "docs" / "deep"
    rse("ingest", "--store", inner / ".rse", cwd=inner)
    (indexed / ".rse").rename(indexed / "away")

    done = rse("ingest", "..", cwd=inner)

    assert (done.code, done.text) == (0, "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 0\n")
    assert done.stderr == (
        f"rse: a new index at {indexed}/docs/.rse, as what is given lies outside the indexed folder {inner}\n"
    )
    assert rse("ingest", "..", cwd=inner).stderr == ""


def test_a_file_that_took_too_long_is_read_again_when_the_limit_changes(
    documents: Path, rse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    original = ReadingWorker.read

    def read(worker: ReadingWorker, path: Path, data: bytes) -> tuple[str, Document]:
        reads.append(path.name)
        if path.name == "lamp.txt" and worker.limits.seconds < 50:
            raise ReadError("failed", worker.limits.of_time)
        return original(worker, path, data)

    monkeypatch.setattr(ReadingWorker, "read", read)

    assert rse("ingest", cwd=documents).stderr == "skipped docs/lamp.txt: took longer than 20 s\n"
    reads.clear()
    assert rse("ingest", cwd=documents).text == "new 0 · changed 0 · unchanged 2 · removed 0 · skipped 1\n"
    assert reads == []
    done = rse("ingest", "--read-timeout", "60", cwd=documents)
    assert (done.text, done.stderr) == ("new 0 · changed 1 · unchanged 2 · removed 0 · skipped 0\n", "")
    assert reads == ["lamp.txt"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("new\nline", "no index can lie in {}/.rse, whose name has control characters: name another --store"),
        (
            b"not utf-8 \xff".decode("utf-8", "surrogateescape"),
            "the name of {} is not UTF-8, so that no index can hold it: ",
        ),
    ],
)
def test_a_folder_whose_name_no_index_can_hold_is_refused_before_anything_is_written(
    tmp_path: Path, rse: Run, name: str, reason: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "a.md").write_text("The anchor holds.")

    done = rse("ingest", cwd=folder)

    assert (done.code, done.stdout) == (2, b"")
    shown = make_visible_line(reason.format(folder)).encode("utf-8", "backslashreplace").decode()
    assert done.stderr.startswith(f"rse: {shown}")
    assert len(done.stderr.splitlines()) == 1
    assert [one.name for one in folder.iterdir()] == ["a.md"]


def test_a_missing_path_outside_the_index_is_one_line(tmp_path: Path, rse: Run) -> None:
    (tmp_path / "a.md").write_text("The anchor holds.")
    assert rse("ingest", cwd=tmp_path).code == 0

    done = rse("ingest", "/nowhere/x", cwd=tmp_path)

    assert (done.code, done.stdout, done.stderr) == (2, b"", "rse: no such file or folder: /nowhere/x\n")


def test_from_a_folder_below_the_command_that_is_named_brings_all_up_to_date(tmp_path: Path, rse: Run) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.md").write_text("The anchor holds.")
    assert rse("ingest", cwd=tmp_path).code == 0
    (tmp_path / "b" / "one.md").write_text("The anchor drags.")

    assert (
        "changed 1 · removed 0 since the index was made; run `rse ingest ..`" in rse("status", cwd=tmp_path / "a").text
    )
    assert rse("ingest", "..", cwd=tmp_path / "a").code == 0
    assert "nothing since the index was made" in rse("status", cwd=tmp_path / "a").text
