"""How many files an ingest would touch, without touching any."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rse_cli.pipeline.freshness import Staleness, measure_staleness
from rse_cli.pipeline.planning import Plan
from rse_cli.pipeline.preparation import hash_content
from rse_cli.ports import FileRecord, FileStamp, FoundFile

OLD, NEW = 1, 2


def write(folder: Path, name: str, content: bytes) -> FoundFile:
    path = folder / name
    path.write_bytes(content)
    return FoundFile(name, path, FileStamp(len(content), NEW, NEW))


def record(name: str, content: bytes) -> FileRecord:
    return FileRecord(name, FileStamp(len(content), OLD, OLD), hash_content(content), "indexed", reader="text/1")


def suspect(*pairs: tuple[FoundFile, FileRecord], confirm_bytes: int | None = None) -> Staleness:
    return measure_staleness(Plan((), pairs, (), ()), lambda path: "text/1", confirm_bytes)


def test_new_and_removed_files_count_and_unchanged_ones_do_not() -> None:
    plan = Plan((FoundFile("n", Path("n"), FileStamp(1, 1, 1)),), (), (record("u", b"u"),), (record("r", b"r"),))
    found = measure_staleness(plan, lambda path: "text/1", None)
    assert found == Staleness(("n",), (), ("r",))
    assert found.count == 2


def test_a_touched_file_of_the_same_content_has_not_changed(tmp_path: Path) -> None:
    assert suspect((write(tmp_path, "a", b"same"), record("a", b"same"))).count == 0


def test_a_file_of_other_content_has_changed(tmp_path: Path) -> None:
    assert suspect((write(tmp_path, "a", b"edit"), record("a", b"same"))).changed == ("a",)


def test_a_file_of_another_size_has_changed_and_is_not_read(tmp_path: Path) -> None:
    longer = replace(write(tmp_path, "a", b"same"), stamp=FileStamp(5, NEW, NEW))
    assert suspect((longer, record("a", b"same"))).changed == ("a",)


def test_a_file_with_another_reader_has_changed(tmp_path: Path) -> None:
    old = replace(record("a", b"same"), reader="text/0")
    assert suspect((write(tmp_path, "a", b"same"), old)).changed == ("a",)


@pytest.mark.parametrize(
    ("confirm_bytes", "changed"), [(None, ()), (8, ()), (7, ("b",)), (3, ("a", "b")), (0, ("a", "b"))]
)
def test_no_more_is_read_than_allowed_and_the_rest_counts_as_changed(
    tmp_path: Path, confirm_bytes: int | None, changed: tuple[str, ...]
) -> None:
    pairs = [(write(tmp_path, name, b"same"), record(name, b"same")) for name in "ab"]
    assert suspect(*pairs, confirm_bytes=confirm_bytes).changed == changed


def test_a_file_that_can_no_longer_be_opened_has_changed(tmp_path: Path) -> None:
    gone = FoundFile("a", tmp_path / "a", FileStamp(4, NEW, NEW))
    assert suspect((gone, record("a", b"same"))).changed == ("a",)


def test_a_file_that_still_cannot_be_opened_has_not(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    shut = FoundFile("a", tmp_path / "a", FileStamp(4, OLD, OLD))
    unread = replace(record("a", b"same"), content_hash="", status="failed")
    assert suspect((shut, unread)).count == 0


def test_a_file_that_can_be_opened_at_last_has_changed(tmp_path: Path) -> None:
    unread = replace(record("a", b"same"), content_hash="", status="failed")
    assert suspect((write(tmp_path, "a", b"same"), unread)).changed == ("a",)


def test_paths_found_from_two_sources_count_once() -> None:
    first = Staleness(("b", "a"), ("c",), ())
    assert first.merge(Staleness(("a",), (), ("d",))) == Staleness(("a", "b"), ("c",), ("d",))
