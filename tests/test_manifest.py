"""The store's folder: what is made, what is refused and with which words, and who may write."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rse_cli.adapters.manifest import (
    ChunkingIdentity,
    Manifest,
    StoredStatistics,
    create_manifest,
    is_manifest_whole,
    locate_root,
    read_manifest,
    write_manifest,
)
from rse_cli.adapters.store_folder import find_store
from rse_cli.adapters.store_lock import lock_store
from rse_cli.errors import StoreError
from rse_cli.ports import ModelIdentity

MODEL = ModelIdentity("all-MiniLM-L6-v2", "53aa", 384, "mean", 256, "query: ")
CHUNKING = ChunkingIdentity(1, 300, "normal")


def make(store: Path, root: Path, model: ModelIdentity = MODEL, rebuild: bool = False) -> Manifest:
    return create_manifest(store, root, model, "numpy", CHUNKING, rebuild=rebuild)


def test_a_new_store_holds_a_manifest_and_hides_itself_from_git(tmp_path: Path) -> None:
    make(tmp_path / ".rse", tmp_path)
    assert (tmp_path / ".rse/.gitignore").read_text() == "*\n"
    assert len(content := json.loads((tmp_path / ".rse/manifest.json").read_text())) == 8
    assert is_manifest_whole(tmp_path / ".rse") and len(content.pop("digest")) == 64
    assert content == {
        "root": "..",
        "model": {
            "name": "all-MiniLM-L6-v2",
            "weights": "53aa",
            "dimension": 384,
            "pooling": "mean",
            "max_tokens": 256,
            "query_prompt": "query: ",
            "document_prompt": "",
        },
        "backend": "numpy",
        "chunking": {"version": 1, "chunk_chars": 300, "headers": "normal"},
        "statistics": None,
        "sources": [],
        "format_version": 2,
    }


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    manifest = make(tmp_path / ".rse", tmp_path)
    assert read_manifest(tmp_path / ".rse") == manifest
    statistics = StoredStatistics(7, 10, {0: 12.5, 1: 30.25, 4: 80.0, 12: 200.125})
    changed = dataclasses.replace(manifest, statistics=statistics)
    write_manifest(tmp_path / ".rse", changed)
    assert read_manifest(tmp_path / ".rse") == changed


def test_a_manifest_that_says_something_else_than_was_written_is_told(tmp_path: Path) -> None:
    path = tmp_path / ".rse/manifest.json"
    make(tmp_path / ".rse", tmp_path)
    text = path.read_text()
    for old, new in (("384", "385"), ('"53aa"', '"53ab"'), ('"root"', '"boot"'), ("{", "["), ('"digest"', '"digits"')):
        path.write_text(text.replace(old, new, 1))
        assert not is_manifest_whole(tmp_path / ".rse")
    path.write_text(text.replace("\n", "\n\n"))
    assert is_manifest_whole(tmp_path / ".rse")


class TestRoot:
    def test_a_store_inside_its_root_moves_with_it(self, tmp_path: Path) -> None:
        make(tmp_path / "old/deep/.rse", tmp_path / "old")
        (tmp_path / "old").rename(tmp_path / "new")
        store = tmp_path / "new/deep/.rse"
        assert locate_root(store, read_manifest(store)) == (tmp_path / "new").resolve()

    def test_a_store_elsewhere_names_its_root_in_full(self, tmp_path: Path) -> None:
        (tmp_path / "docs").mkdir()
        manifest = make(tmp_path / "store", tmp_path / "docs")
        assert manifest.root == str((tmp_path / "docs").resolve())
        assert locate_root(tmp_path / "store", manifest) == (tmp_path / "docs").resolve()


class TestFinding:
    def test_the_nearest_ancestor_with_a_store_wins(self, tmp_path: Path) -> None:
        for folder in (tmp_path / ".rse", tmp_path / "a/.rse", tmp_path / "a/b/c"):
            folder.mkdir(parents=True)
        assert find_store(tmp_path / "a/b/c") == (tmp_path / "a/.rse").resolve()
        assert find_store(tmp_path / "a") == (tmp_path / "a/.rse").resolve()

    def test_a_file_of_that_name_is_no_store(self, tmp_path: Path) -> None:
        (tmp_path / ".rse").mkdir()
        (tmp_path / "a").mkdir()
        (tmp_path / "a/.rse").write_text("")
        assert find_store(tmp_path / "a") == (tmp_path / ".rse").resolve()


class TestRefusals:
    def test_a_missing_store_names_the_command_that_makes_one(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError) as caught:
            read_manifest(tmp_path / "x")
        assert str(caught.value) == f"no index at {tmp_path / 'x'}: run `rse ingest --store {tmp_path / 'x'}`"

    def test_a_folder_without_a_manifest_has_no_index(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match=r"^no index at .*: run `rse ingest --store .*`$"):
            read_manifest(tmp_path)

    def test_a_file_is_not_a_store(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("hello")
        with pytest.raises(StoreError, match="not a store but a file"):
            read_manifest(tmp_path / "x")
        with pytest.raises(StoreError, match="can't make a store"):
            make(tmp_path / "x", tmp_path)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b"\xff\xfe\x00",
            b"{}",
            b'{"format_version": 2}',
            b'{"format_version": 2, "root": 3, "backend": "numpy", "model": {}, "chunking": {}, "statistics": null}',
            b'{"format_version": 2, "root": "..", "backend": "numpy", "model": [], "chunking": {}, "statistics": null}',
        ],
    )
    def test_any_other_content_is_one_line_that_says_how_to_mend_it(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "manifest.json").write_bytes(content)
        with pytest.raises(
            StoreError, match=r"^.* is not a store, or a damaged one: rebuild with `rse ingest --rebuild`$"
        ):
            read_manifest(tmp_path)

    def test_a_store_of_another_version_says_so(self, tmp_path: Path) -> None:
        make(tmp_path / ".rse", tmp_path)
        path = tmp_path / ".rse/manifest.json"
        path.write_text(path.read_text().replace('"format_version": 2', '"format_version": 3, "new": []'))
        with pytest.raises(StoreError, match="made by another version of rse: rebuild with `rse ingest --rebuild`"):
            read_manifest(tmp_path / ".rse")

    def test_a_folder_with_other_files_never_becomes_a_store(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.md").write_text("years of work")
        with pytest.raises(StoreError, match=r"holds other files \(thesis.md\)"):
            make(tmp_path, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.md"]

    def test_somebody_elses_gitignore_is_kept(self, tmp_path: Path) -> None:
        (tmp_path / ".gitignore").write_text("build/\n")
        with pytest.raises(StoreError, match=r"\.gitignore"):
            make(tmp_path, tmp_path)
        assert (tmp_path / ".gitignore").read_text() == "build/\n"


class TestCreating:
    def test_what_a_kill_left_is_taken_over(self, tmp_path: Path) -> None:
        store = tmp_path / ".rse"
        (store / "chunks.lance/data").mkdir(parents=True)
        (store / ".gitignore").write_text("")
        (store / "lock").write_text("123\n")
        (store / "manifest.json.new").write_text('{"form')
        assert make(store, tmp_path) == read_manifest(store)
        assert not (store / "chunks.lance").exists()

    def test_whoever_comes_second_joins_the_same_index(self, tmp_path: Path) -> None:
        manifest = make(tmp_path / ".rse", tmp_path)
        filled = dataclasses.replace(manifest, statistics=StoredStatistics(3, 1, {0: 1.0}))
        write_manifest(tmp_path / ".rse", filled)
        (tmp_path / ".rse/chunks.lance").mkdir()
        assert make(tmp_path / ".rse", tmp_path) == filled
        assert (tmp_path / ".rse/chunks.lance").exists()

    def test_whoever_comes_second_with_another_model_is_refused(self, tmp_path: Path) -> None:
        make(tmp_path / ".rse", tmp_path)
        with pytest.raises(StoreError, match="another index"):
            make(tmp_path / ".rse", tmp_path, dataclasses.replace(MODEL, name="other"))
        assert read_manifest(tmp_path / ".rse").model == MODEL

    def test_a_rebuild_drops_the_table_whatever_the_manifest_says(self, tmp_path: Path) -> None:
        make(tmp_path / ".rse", tmp_path)
        (tmp_path / ".rse/chunks.lance/data").mkdir(parents=True)
        (tmp_path / ".rse/manifest.json").write_text("{")
        manifest = make(tmp_path / ".rse", tmp_path, dataclasses.replace(MODEL, name="other"), rebuild=True)
        assert read_manifest(tmp_path / ".rse") == manifest
        assert not (tmp_path / ".rse/chunks.lance").exists()

    def test_a_failed_write_leaves_the_old_manifest_and_no_draft(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        manifest = make(tmp_path / ".rse", tmp_path)

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "replace", fail)
        with pytest.raises(StoreError, match=r"can't write the store .*: No space left on device"):
            write_manifest(tmp_path / ".rse", dataclasses.replace(manifest, backend="other"))
        assert read_manifest(tmp_path / ".rse") == manifest
        assert sorted(path.name for path in (tmp_path / ".rse").iterdir()) == [".gitignore", "lock", "manifest.json"]


class TestLock:
    def test_a_second_writer_waits_and_then_names_the_holder(self, tmp_path: Path) -> None:
        with lock_store(tmp_path, 0):
            began = time.monotonic()
            with pytest.raises(StoreError, match=f"by process {os.getpid()}: try again"), lock_store(tmp_path, 0.2):
                pytest.fail("two writers at once")
            assert time.monotonic() - began >= 0.2

    def test_the_lock_is_free_again_after_use_and_after_an_error(self, tmp_path: Path) -> None:
        with lock_store(tmp_path, 0):
            pass
        with pytest.raises(RuntimeError), lock_store(tmp_path, 0):
            raise RuntimeError
        with lock_store(tmp_path, 0):
            assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"

    def test_a_killed_holder_releases_the_lock(self, tmp_path: Path) -> None:
        code = (
            "import sys, time; from pathlib import Path; from rse_cli.adapters.store_lock import lock_store\n"
            "with lock_store(Path(sys.argv[1]), 0): print('held', flush=True); time.sleep(60)"
        )
        with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(StoreError, match=f"process {holder.pid}:"), lock_store(tmp_path, 0):
                pytest.fail("two writers at once")
            holder.kill()
            holder.wait()
            with lock_store(tmp_path, 5):
                pass

    def test_started_programs_do_not_inherit_the_lock(self, tmp_path: Path) -> None:
        with lock_store(tmp_path, 0):
            worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
        try:
            # Two seconds, since a program that starts lets go of descriptors a moment after it began.
            with lock_store(tmp_path, 2):
                assert worker.poll() is None
        finally:
            worker.communicate(b"\n")

    def test_a_store_that_is_not_there_cannot_be_locked(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="can't write the store"), lock_store(tmp_path / "x", 0):
            pytest.fail("locked nothing")
