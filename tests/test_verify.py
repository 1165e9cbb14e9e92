"""`rse status --verify` and `rse ingest --repair` as their users see them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rse_cli.adapters.manifest import read_manifest, write_manifest
from tests.conftest import Run

DATA = ".rse/chunks.lance/data"


def change_text(folder: Path, old: bytes, new: bytes) -> None:
    """Put one text in the place of another of the same length, wherever it stands in the rows."""
    hit = [path for path in (folder / DATA).iterdir() if old in path.read_bytes()]
    assert hit and len(old) == len(new)
    for path in hit:
        path.write_bytes(path.read_bytes().replace(old, new))


def cut_rows(folder: Path) -> None:
    """Leave half of each file of rows."""
    for path in (folder / DATA).iterdir():
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def change_vector(folder: Path, number: float) -> None:
    """Put a number in the place of the greatest of a chunk of the pump's manual."""
    import lance

    rows = lance.dataset(str(folder / ".rse" / "chunks.lance")).to_table(["vector"], "text LIKE '%warm water%'")
    old = np.array(rows["vector"][0].as_py(), np.float32)
    new = old.copy()
    new[np.argmax(np.abs(old))] = number
    hit = [path for path in (folder / DATA).iterdir() if old.tobytes() in path.read_bytes()]
    assert hit
    for path in hit:
        path.write_bytes(path.read_bytes().replace(old.tobytes(), new.tobytes()))


def test_a_whole_index_is_counted(indexed: Path, rse: Run) -> None:
    done = rse("status", "--verify", cwd=indexed)

    assert (done.code, done.text, done.stderr) == (0, "verified   9 rows of 3 files, all whole\n", "")


def test_a_damaged_file_is_named_with_the_command_that_mends_it_and_that_works(indexed: Path, rse: Run) -> None:
    change_text(indexed, b"warm water", b"warm wafer")

    found = rse("status", "--verify", cwd=indexed / "docs")

    assert (found.code, found.text) == (
        1,
        "damaged    docs/pump.md: not as it was written\nverified   9 rows of 3 files, 1 damaged\n",
    )
    assert found.stderr == f"rse: {indexed}/.rse is damaged: run `rse ingest --repair`\n"

    repaired = rse("ingest", "--repair", cwd=indexed / "docs")

    assert (repaired.code, repaired.text, repaired.stderr) == (
        0,
        "new 0 · changed 1 · unchanged 2 · removed 0 · skipped 0\nrepaired   docs/pump.md\n",
        "",
    )
    assert rse("status", "--verify", cwd=indexed).code == 0
    assert "warm water" in rse("query", "how do I clean the filter of the pump?", cwd=indexed).text


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_chain_may_go_on_in_the_next_batch(
    indexed: Path, rse: Run, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr("rse_cli.adapters.store_check.BATCH_ROWS", rows)
    assert rse("status", "--verify", cwd=indexed).text == "verified   9 rows of 3 files, all whole\n"

    change_text(indexed, b"warm water", b"warm wafer")
    assert rse("status", "--verify", cwd=indexed).text == (
        "damaged    docs/pump.md: not as it was written\nverified   9 rows of 3 files, 1 damaged\n"
    )


def test_the_same_as_json(indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    whole = rse("status", "--verify", "--json", "--store", indexed / ".rse", cwd=elsewhere)

    assert (whole.code, whole.json) == (
        0,
        {
            "schema_version": 1,
            "store": str(indexed / ".rse"),
            "root": str(indexed),
            "whole": True,
            "files": 3,
            "rows": 9,
            "damaged": [],
            "remedy": None,
        },
    )

    change_text(indexed, b"in Paris", b"in Pazis")
    found = rse("status", "--verify", "--json", "--store", indexed / ".rse", cwd=elsewhere)

    assert (found.code, found.json["whole"], found.json["damaged"], found.json["remedy"]) == (
        1,
        False,
        [{"path": "docs/lamp.txt", "reason": "not as it was written"}],
        f"rse ingest --repair --store {indexed}/.rse",
    )


def test_rows_that_cannot_be_read_are_named_and_repaired(indexed: Path, rse: Run) -> None:
    cut_rows(indexed)

    asked = rse("query", "filter of the pump", cwd=indexed)
    assert (asked.code, asked.stdout, asked.stderr.count("\n")) == (2, b"", 1)
    assert asked.stderr.endswith(": repair with `rse ingest --repair`\n")

    found = rse("status", "--verify", cwd=indexed)
    assert (found.code, found.text) == (
        1,
        "damaged    docs/deep/roses.txt: can't be read\n"
        "damaged    docs/lamp.txt: can't be read\n"
        "damaged    docs/pump.md: can't be read\n"
        "verified   9 rows of 3 files, 3 damaged\n",
    )

    assert rse("ingest", "--repair", cwd=indexed).text == (
        "new 0 · changed 3 · unchanged 0 · removed 0 · skipped 0\n"
        "repaired   docs/deep/roses.txt\n"
        "repaired   docs/lamp.txt\n"
        "repaired   docs/pump.md\n"
    )
    assert rse("query", "-l", "filter of the pump", cwd=indexed).text == "docs/pump.md\n"
    assert rse("status", "--verify", cwd=indexed).code == 0


def test_a_lost_file_of_rows_is_one_line_and_repaired(indexed: Path, rse: Run) -> None:
    for path in (indexed / DATA).iterdir():
        path.unlink()

    assert rse("status", "--verify", cwd=indexed).code == 1
    assert rse("ingest", "--repair", cwd=indexed).code == 0
    assert rse("status", "--verify", cwd=indexed).text == "verified   9 rows of 3 files, all whole\n"


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 3e38, -1e20, 2.0, 0.0])
def test_a_vector_that_nobody_can_have_written_stops_whoever_reads_it_until_it_is_repaired(
    indexed: Path, rse: Run, number: float
) -> None:
    change_vector(indexed, number)
    batch = indexed / "batch.txt"
    batch.write_text("filter of the pump\nlens of the lamp\n")

    for arguments in (["query", "filter of the pump"], ["query", "--batch", batch], ["inspect", "filter of the pump"]):
        asked = rse(*arguments, cwd=indexed)
        assert (asked.code, asked.stdout, asked.stderr) == (
            2,
            b"",
            f"rse: the store {indexed}/.rse failed: a vector is damaged: it is not of unit length: "
            "repair with `rse ingest --repair`\n",
        )

    assert rse("ingest", "--repair", cwd=indexed).code == 0
    assert rse("query", "-l", "filter of the pump", cwd=indexed).text == "docs/pump.md\n"


@pytest.mark.parametrize(
    ("command", "lost"),
    [
        (["query", "filter of the pump"], "data/*.lance"),
        (["query", "filter of the pump"], "_indices/*/*"),
        (["inspect", "filter of the pump"], "data/*.lance"),
        (["ingest"], "data/*.lance"),
        (["ingest", "docs"], "data/*.lance"),
    ],
)
def test_a_lost_file_of_the_newest_version_is_to_be_repaired_not_tried_again(
    indexed: Path, rse: Run, command: list[str], lost: str
) -> None:
    (indexed / "docs" / "pump.md").write_text("# Pump\n\nClean the filter of the pump.\n")
    for path in (indexed / ".rse" / "chunks.lance").glob(lost):
        path.unlink()

    done = rse(*command, cwd=indexed)

    assert (done.code, done.stdout, done.stderr) == (
        2,
        b"",
        f"rse: the store {indexed}/.rse failed: a file of its table is missing: repair with `rse ingest --repair`\n",
    )
    assert rse("ingest", "--repair", cwd=indexed).code == 0
    assert rse("query", "-l", "filter of the pump", cwd=indexed).text == "docs/pump.md\n"


def test_a_store_whose_name_says_not_found_is_not_taken_for_one_that_lacks_a_file(indexed: Path, rse: Run) -> None:
    store = indexed / "not found"
    (indexed / ".rse").rename(store)
    for path in (store / "chunks.lance" / "data").iterdir():
        path.write_bytes(path.read_bytes()[:100])

    asked = rse("query", "filter of the pump", "--store", store, cwd=indexed)

    assert asked.code == 2
    assert "is missing" not in asked.stderr
    assert asked.stderr.endswith(f": repair with `rse ingest --repair --store '{store}'`\n")


def test_a_damaged_file_that_is_gone_leaves_the_index(indexed: Path, rse: Run) -> None:
    change_text(indexed, b"in Paris", b"in Pazis")
    (indexed / "docs" / "lamp.txt").unlink()

    assert rse("ingest", "--repair", cwd=indexed).text == "new 0 · changed 0 · unchanged 2 · removed 1 · skipped 0\n"
    assert rse("status", "--verify", cwd=indexed).text == "verified   7 rows of 2 files, all whole\n"


def test_a_repair_leaves_files_that_changed_to_the_next_ingest(indexed: Path, rse: Run) -> None:
    change_text(indexed, b"in Paris", b"in Pazis")
    (indexed / "docs" / "pump.md").write_text("# Pump\n\nIt was sold.\n")
    (indexed / "docs" / "new.md").write_text("Nothing of this is indexed.\n")

    done = rse("ingest", "--repair", "--json", cwd=indexed).json

    assert (done["new"], done["changed"], done["removed"], done["unchanged"]) == ([], ["docs/lamp.txt"], [], 2)
    status = rse("status", "--json", cwd=indexed).json
    assert (status["new"], status["changed"]) == (["docs/new.md"], ["docs/pump.md"])


def test_nothing_to_repair_is_said(indexed: Path, rse: Run) -> None:
    done = rse("ingest", "--repair", cwd=indexed)

    assert (done.code, done.stderr) == (0, "rse: nothing is damaged\n")
    assert done.text == "new 0 · changed 0 · unchanged 3 · removed 0 · skipped 0\n"


def test_damaged_search_indexes_are_made_anew_and_no_file_is_read_again(indexed: Path, rse: Run) -> None:
    for path in (indexed / ".rse" / "chunks.lance" / "_indices").rglob("*.lance"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")

    found = rse("status", "--verify", cwd=indexed)
    assert found.code == 1
    damaged = re.fullmatch(
        r"damaged    (\d+ files of the search indexes)\nverified   9 rows of 3 files, .*\n", found.text
    )
    assert damaged

    assert rse("ingest", "--repair", cwd=indexed).text == (
        f"new 0 · changed 0 · unchanged 3 · removed 0 · skipped 0\nrepaired   {damaged[1]}\n"
    )
    assert rse("status", "--verify", cwd=indexed).code == 0
    assert rse("query", "-l", "filter of the pump", cwd=indexed).text == "docs/pump.md\n"


@pytest.mark.parametrize("left", [None, b"", b"{}", b'{"table_version": 99, "files": {}, "paths": {}, "digest": ""}'])
def test_a_settled_index_without_its_seal_is_damaged_and_sealed_anew(
    indexed: Path, rse: Run, left: bytes | None
) -> None:
    seal = indexed / ".rse" / "seal.json"
    seal.unlink()
    if left is not None:
        seal.write_bytes(left)

    found = rse("status", "--verify", cwd=indexed)
    assert (found.code, found.text) == (
        1,
        "damaged    the seal, by which the search indexes are checked\nverified   9 rows of 3 files, 0 damaged\n",
    )
    assert found.stderr == f"rse: {indexed}/.rse is damaged: run `rse ingest --repair`\n"

    repaired = rse("ingest", "--repair", "--json", cwd=indexed)
    assert (repaired.code, repaired.json["changed"], repaired.json["unchanged"]) == (0, [], 3)
    assert repaired.json["repaired"] == [{"path": None, "reason": "the seal, by which the search indexes are checked"}]
    assert rse("status", "--verify", cwd=indexed).text == "verified   9 rows of 3 files, all whole\n"
    assert rse("query", "-l", "filter of the pump", cwd=indexed).text == "docs/pump.md\n"


def test_an_older_seal_is_none_of_a_settled_index(indexed: Path, rse: Run) -> None:
    seal = indexed / ".rse" / "seal.json"
    old = seal.read_bytes()
    (indexed / "docs" / "new.md").write_text("One more file.\n")
    assert rse("ingest", "docs", cwd=indexed).code == 0
    seal.write_bytes(old)

    assert rse("status", "--verify", cwd=indexed).code == 1
    assert rse("ingest", "--repair", cwd=indexed).code == 0
    assert rse("status", "--verify", cwd=indexed).code == 0


def test_an_index_whose_first_ingest_was_killed_before_it_was_sealed_is_whole(indexed: Path, rse: Run) -> None:
    (indexed / ".rse" / "seal.json").unlink()
    manifest = read_manifest(indexed / ".rse")
    assert manifest.statistics is not None
    unsettled = replace(manifest.statistics, settled=False)
    write_manifest(indexed / ".rse", replace(manifest, statistics=unsettled))

    assert rse("status", "--verify", cwd=indexed).text == "verified   9 rows of 3 files, all whole\n"
    assert rse("ingest", "docs", cwd=indexed).code == 0
    assert (indexed / ".rse" / "seal.json").exists()


@pytest.mark.parametrize("folder", ["_versions", "."])
def test_what_only_a_rebuild_mends_says_so_and_that_works(indexed: Path, rse: Run, folder: str) -> None:
    table = indexed / ".rse" / "chunks.lance"
    if folder == ".":
        table.rename(indexed / "gone")
    for path in (table / folder).glob("*.manifest"):
        path.write_bytes(path.read_bytes()[:-10])

    for command in (["status", "--verify"], ["ingest", "--repair"]):
        done = rse(*command, cwd=indexed)
        assert done.code == (1 if command[0] == "status" and folder == "." else 2)
        assert "Traceback" not in done.stderr
        assert done.stderr.endswith(" `rse ingest --rebuild`\n")

    assert rse("ingest", "--rebuild", cwd=indexed).text.startswith("new 3 ")
    assert rse("status", "--verify", cwd=indexed).code == 0


def test_a_manifest_that_says_something_else_is_found(indexed: Path, rse: Run) -> None:
    path = indexed / ".rse" / "manifest.json"
    content = json.loads(path.read_text())
    content["statistics"]["mean_lengths"]["4"] += 1
    path.write_text(json.dumps(content))

    done = rse("status", "--verify", cwd=indexed)

    assert (done.code, done.stderr) == (1, f"rse: {indexed}/.rse is damaged: run `rse ingest --rebuild`\n")


def test_a_store_of_another_format_is_refused_and_rebuilt_with_its_root_sources_and_model(
    indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = tmp_path_factory.mktemp("elsewhere") / "store"
    rse("ingest", "--store", store, "--chunk-chars", "250", "deep", cwd=indexed / "docs")
    path = store / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": 1}))

    for command in (["status", "--verify"], ["status"], ["query", "roses"], ["ingest"], ["ingest", "--repair"]):
        done = rse(*command, "--store", store, cwd=indexed)
        assert (done.code, done.stdout) == (2, b"")
        assert done.stderr == (
            f"rse: {store} was made by another version of rse: rebuild with `rse ingest --rebuild --store {store}`\n"
        )

    rebuilt = rse("ingest", "--rebuild", "--store", store, cwd=indexed)
    assert rebuilt.text == "new 1 · changed 0 · unchanged 0 · removed 0 · skipped 0\n"
    status = rse("status", "--json", "--store", store, cwd=indexed).json
    assert (status["root"], status["chunk_chars"], status["format_version"]) == (str(indexed / "docs"), 250, 2)


@pytest.mark.parametrize("flags", [["docs"], ["--rebuild"], ["--dry-run"]])
def test_a_repair_is_of_the_whole_index(indexed: Path, rse: Run, flags: list[str]) -> None:
    done = rse("ingest", "--repair", *flags, cwd=indexed)

    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr.startswith("rse: --repair is of a whole index")


def test_verify_and_exit_code_exclude_each_other(indexed: Path, rse: Run) -> None:
    assert rse("status", "--verify", "--exit-code", cwd=indexed).code == 2


def test_without_its_files_nothing_is_taken_out(
    documents: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = tmp_path_factory.mktemp("elsewhere") / "store"
    rse("ingest", "--store", store, cwd=documents / "docs")
    (documents / "docs").rename(documents / "away")

    done = rse("ingest", "--repair", "--store", store, cwd=documents)

    assert (done.code, done.stderr) == (
        2,
        f"rse: the indexed folder {documents}/docs is gone: nothing can be read again\n",
    )
