"""What an ingest has to do, told from names and stamps alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.pipeline.planning import Plan, plan_ingest
from rse_cli.ports import FileRecord, FileStamp, FoundFile


def find(path: str, stamp: int = 1) -> FoundFile:
    return FoundFile(path, Path("/root") / path, FileStamp(10, stamp, stamp))


def record(path: str, stamp: int = 1, reader: str = "text/1") -> FileRecord:
    return FileRecord(path, FileStamp(10, stamp, stamp), "hash", "indexed", reader=reader)


def plan(
    found: list[FoundFile],
    records: list[FileRecord],
    scopes: tuple[str, ...] = ("",),
    unreadable: tuple[str, ...] = (),
) -> Plan:
    return plan_ingest(found, records, scopes, unreadable, lambda path: "text/1")


def paths(plan: Plan) -> tuple[list[str], list[str], list[str], list[str]]:
    return (
        [file.path for file in plan.new],
        [file.path for file, _ in plan.suspects],
        [one.path for one in plan.unchanged],
        [one.path for one in plan.removed],
    )


def test_files_are_new_suspect_unchanged_or_removed() -> None:
    found = [find("new"), find("edited", 2), find("same")]
    records = [record("same"), record("gone"), record("edited")]
    assert paths(plan(found, records)) == (["new"], ["edited"], ["same"], ["gone"])


def test_with_nothing_to_do_a_plan_is_empty() -> None:
    assert plan([], []).is_empty
    assert plan([find("a")], [record("a")]).is_empty
    assert not plan([find("a")], []).is_empty
    assert not plan([], [record("a")]).is_empty
    assert not plan([find("a", 2)], [record("a")]).is_empty


@pytest.mark.parametrize(
    "stamp", [FileStamp(11, 1, 1), FileStamp(10, 2, 1), FileStamp(10, 1, 2), FileStamp(10, 0, 1), FileStamp(10, 1, 0)]
)
def test_any_other_stamp_even_an_older_one_makes_a_file_suspect(stamp: FileStamp) -> None:
    assert paths(plan([replace(find("a"), stamp=stamp)], [record("a")]))[1] == ["a"]


def test_two_swapped_files_are_both_suspect() -> None:
    assert paths(plan([find("a", 2), find("b", 1)], [record("a", 1), record("b", 2)]))[1] == ["a", "b"]


def test_a_file_that_another_reader_would_read_is_suspect() -> None:
    assert paths(plan([find("a")], [record("a", reader="text/0")]))[1] == ["a"]
    assert paths(plan([find("a")], [record("a", reader="markdown/1")]))[1] == ["a"]


def test_a_file_that_could_not_be_opened_is_tried_again() -> None:
    unread = replace(record("a"), content_hash="", status="failed", reason="can't be read: Permission denied")
    assert paths(plan([find("a")], [unread]))[1] == ["a"]


def test_a_file_that_was_read_in_vain_is_not_tried_again() -> None:
    assert paths(plan([find("a")], [replace(record("a"), status="failed", reason="damaged PDF")]))[2] == ["a"]


def test_only_what_lies_under_the_given_paths_is_removed() -> None:
    records = [record("a/x"), record("a/b/x"), record("ab/x"), record("b"), record("a.md")]
    assert paths(plan([], records, scopes=("a",)))[3] == ["a/b/x", "a/x"]
    assert paths(plan([], records, scopes=("b", "a/b")))[3] == ["a/b/x", "b"]
    assert paths(plan([], records, scopes=()))[3] == []
    assert paths(plan([], records, scopes=("",)))[3] == ["a.md", "a/b/x", "a/x", "ab/x", "b"]


def test_what_the_index_holds_of_a_folder_that_cannot_be_looked_at_stays() -> None:
    records = [record("a/shut/x"), record("a/shut/deep/x"), record("a/shutter"), record("a/x")]
    assert paths(plan([], records, unreadable=("a/shut",)))[3] == ["a/shutter", "a/x"]


def test_files_outside_the_given_paths_are_left_alone() -> None:
    assert paths(plan([find("a/x")], [record("b/x"), record("a/x")], scopes=("a",))) == ([], [], ["a/x"], [])


NAMES = st.sampled_from(["a", "b", "a/a", "a/b", "ab", "b/a"])


@given(st.dictionaries(NAMES, st.integers(1, 2)), st.dictionaries(NAMES, st.integers(1, 2)), st.sets(NAMES, max_size=2))
def test_every_path_has_one_fate_and_fates_are_sorted(
    disk: dict[str, int], index: dict[str, int], scopes: set[str]
) -> None:
    made = plan([find(*one) for one in disk.items()], [record(*one) for one in index.items()], tuple(scopes), ())
    fates = paths(made)
    listed = [path for fate in fates for path in fate]
    assert len(listed) == len(set(listed))
    assert set(listed) >= set(disk)
    assert set(listed) <= set(disk) | set(index)
    assert [sorted(fate) for fate in (fates[0], fates[1], fates[3])] == [fates[0], fates[1], fates[3]]
