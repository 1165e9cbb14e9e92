"""Whatever happens to the files between runs, an ingest ends in what a fresh build would give, and does no more work."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rse_cli.adapters.readers import find_reader, read_document
from rse_cli.core.models import Document
from rse_cli.errors import ReadError
from rse_cli.pipeline import ingest, preparation
from rse_cli.pipeline.beside import Start, defer, lend_threads
from rse_cli.pipeline.ingest import IngestOptions, Summary, Watcher, ingest_files
from rse_cli.pipeline.planning import Plan, plan_ingest
from rse_cli.ports import FileRecord, FileStamp, FoundFile
from tests.fake_encoder import DIMENSION, FakeEncoder, encode
from tests.fake_store import FakeStore

ZERO = FileStamp(0, 0, 0)
# Each is a chunk of its own: longer than 60 characters, and two are longer than 300.
PARAGRAPHS = [f"{word} " * 30 + f"closes paragraph {word}.\n\n" for word in ("pump", "valve", "gear", "seal", "oil")]


def join(*places: int) -> str:
    return "".join(PARAGRAPHS[place] for place in places)


class Files:
    """A folder whose files all have stamps of their own, however fast they are written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._clock = itertools.count(1)

    def write(self, path: str, content: str | bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.touch(path)

    def touch(self, path: str) -> None:
        os.utime(self.root / path, ns=(0, next(self._clock) * 10**9))

    def move(self, path: str, other: str) -> None:
        (self.root / other).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).replace(self.root / other)

    def swap(self, path: str, other: str) -> None:
        self.move(path, "aside")
        self.move(other, path)
        self.move("aside", other)

    def delete(self, path: str) -> None:
        (self.root / path).unlink()

    def list(self, scope: str = "") -> list[FoundFile]:
        found = []
        for location in sorted(path for path in self.root.rglob("*") if path.is_file()):
            path = location.relative_to(self.root).as_posix()
            if not scope or path.startswith(scope + "/"):
                stat = location.stat()
                found.append(FoundFile(path, location, FileStamp(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)))
        return found


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def name_reader(path: str) -> str:
    spec = find_reader(Path(path))
    return f"{spec.name}/{spec.version}"


def make_plan(files: Files, store: FakeStore, scope: str = "") -> Plan:
    return plan_ingest(files.list(scope), store.snapshot().files(), [scope], [], name_reader)


def carry_out(
    plan: Plan,
    store: FakeStore,
    encoder: FakeEncoder | None = None,
    headers: str = "normal",
    read: Callable[[Path, bytes], tuple[str, Document]] = read_document,
    watcher: Watcher = Watcher(),  # noqa: B008
    start: Start = defer,
) -> Summary:
    """Without an encoder, nothing may need encoding."""

    def load() -> FakeEncoder:
        assert encoder is not None, "a model was loaded though no text is new"
        return encoder

    return ingest_files(store, load, plan, read, name_reader, IngestOptions(300, headers), watcher, start=start)


def run(files: Files, store: FakeStore, encoder: FakeEncoder | None = None, **options: Any) -> Summary:
    return carry_out(make_plan(files, store), store, encoder, **options)


def contents(store: FakeStore) -> dict[str, Any]:
    """All that a store holds, but for stamps and document numbers."""
    return {
        path: (replace(file.record, stamp=ZERO), file.chunks, file.terms, file.text_hashes, file.vectors.tolist())
        for path, (_, file) in store._files.items()
    }


def build_fresh(files: Files) -> FakeStore:
    store = FakeStore(DIMENSION)
    run(files, store, FakeEncoder())
    return store


class CountingStore(FakeStore):
    """Remembers its commits: paths put, paths removed, paths touched."""

    def __init__(self) -> None:
        super().__init__(DIMENSION)
        self.commits: list[tuple[str, list[str]]] = []

    def replace(self, files: Sequence[Any], removed: Sequence[str]) -> None:
        super().replace(files, removed)
        self.commits += [("put", [file.record.path for file in files])] if files else []
        self.commits += [("remove", list(removed))] if removed else []

    def touch(self, records: Sequence[FileRecord]) -> None:
        super().touch(records)
        self.commits.append(("touch", [record.path for record in records]))


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


# What may happen to a folder between two runs. Paths and contents come from small pools, so that texts move between
# files, files take each other's names, and folders and formats change.
PATHS = st.sampled_from(["a.md", "b.md", "c.txt", "sub/a.md", "sub/d.csv", "sub/deep/e.md"])
CONTENTS = (
    st.lists(st.integers(0, len(PARAGRAPHS) - 1), max_size=5).map(lambda places: "# Title\n\n" + join(*places))
    | st.lists(st.integers(0, len(PARAGRAPHS) - 1), max_size=3).map(lambda places: join(*places))
    | st.sampled_from(["", "\n \n", b"\0binary\0", "name,price\npump,5\nvalve,7\n", "检索结果。" * 30])
)
CHANGES = st.one_of(
    st.tuples(st.just("write"), PATHS, CONTENTS),
    st.tuples(st.sampled_from(["move", "swap", "copy"]), PATHS, PATHS),
    st.tuples(st.sampled_from(["delete", "touch", "insert"]), PATHS),
    st.tuples(st.sampled_from(["ingest", "ingest", "ingest sub"])),
    st.tuples(st.just("interrupt"), st.integers(0, 4)),
)


def change(files: Files, store: FakeStore, what: str, *details: Any) -> None:
    paths = [detail for detail in details[: 1 if what == "write" else 2] if isinstance(detail, str)]
    exist = [(files.root / path).exists() for path in paths]
    if what == "write":
        files.write(*details)
    elif what == "ingest":
        run(files, store, FakeEncoder())
    elif what == "ingest sub":
        carry_out(make_plan(files, store, "sub"), store, FakeEncoder())
    elif what == "interrupt":
        with contextlib.suppress(KeyboardInterrupt):
            run(files, store, FakeEncoder(fail_after=details[0]))
    elif not all(exist) and not (what in ("move", "copy") and exist[0]):
        return
    elif what == "copy":
        files.write(paths[1], (files.root / paths[0]).read_bytes())
    elif what == "insert":
        text = (files.root / paths[0]).read_bytes()
        files.write(paths[0], text[: len(text) // 2] + b"\n\nInserted. " + text[len(text) // 2 :])
    elif what != "swap" or paths[0] != paths[1]:
        {"move": files.move, "swap": files.swap, "delete": files.delete, "touch": files.touch}[what](*paths)


@given(st.lists(CHANGES, max_size=14), st.sampled_from([1, 3, 1_024]))
@settings(deadline=None, max_examples=120)
def test_an_incremental_ingest_ends_in_what_a_fresh_build_gives(
    changes: list[tuple[Any, ...]], batch_chunks: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "BATCH_CHUNKS", batch_chunks)
        files, store = Files(Path(folder)), FakeStore(DIMENSION)
        for one in changes:
            change(files, store, *one)
        run(files, store, FakeEncoder())
        assert contents(store) == contents(build_fresh(files))
        assert make_plan(files, store).is_empty


def test_a_first_run_indexes_everything(files: Files, store: CountingStore) -> None:
    files.write("a.md", "# One\n\n" + join(0, 1))
    files.write("sub/b.txt", join(2))
    summary = run(files, store, FakeEncoder())
    assert summary == Summary(new=["a.md", "sub/b.txt"], encoded=3, reused=0)
    record = store.snapshot().files()[0]
    assert (record.path, record.status, record.title, record.reader) == ("a.md", "indexed", "One", "markdown/1")
    assert (record.n_chunks, record.n_chars) == (2, len("# One\n\n" + join(0, 1)))


def test_a_vector_is_the_texts_plus_a_share_of_the_headers(files: Files) -> None:
    files.write("a.md", "# One\n\n" + join(0))
    text, header = encode("# One\n\n" + join(0)), encode("One")
    for headers, share in (("normal", 0.3), ("strong", 1.0), ("none", 0.0)):
        store, encoder = FakeStore(DIMENSION), FakeEncoder()
        run(files, store, encoder, headers=headers)
        wanted = text + np.float32(share) * header
        (vector,) = contents(store)["a.md"][4]
        assert vector == pytest.approx((wanted / np.linalg.norm(wanted)).tolist(), abs=1e-6)
        assert ("One" in encoder.texts) == (share > 0)


def test_a_second_run_reads_nothing_and_commits_nothing(
    files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a.md", join(0, 1))
    files.write("empty.md", "")
    run(files, store, FakeEncoder())
    store.commits.clear()
    monkeypatch.setattr(ingest, "read_content", lambda file: pytest.fail(f"{file.path} was read"))
    empty = [record for record in store.snapshot().files() if record.path == "empty.md"]
    assert run(files, store) == Summary(unchanged=["a.md", "empty.md"], textless=empty)
    assert store.commits == []


def test_an_edit_encodes_the_new_chunk_and_its_header_alone(files: Files, store: CountingStore) -> None:
    files.write("a.md", "# One\n\n" + join(0, 1, 2))
    run(files, store, FakeEncoder())
    files.write("a.md", "# One\n\n" + join(0, 3, 2))
    encoder = FakeEncoder()
    assert run(files, store, encoder) == Summary(changed=["a.md"], encoded=1, reused=2)
    assert encoder.texts == [join(3), "One"]


def test_text_put_in_front_of_the_rest_encodes_itself_alone(files: Files, store: CountingStore) -> None:
    files.write("a.md", "---\ntitle: T\n---\n" + join(0, 1))
    run(files, store, FakeEncoder())
    files.write("a.md", "---\ntitle: T\n---\n" + join(4, 0, 1))
    encoder = FakeEncoder()
    assert run(files, store, encoder).reused == 1
    assert [text for text in encoder.texts if "pump" in text] == [join(0)]  # it had the front matter in its chunk


def test_a_new_heading_encodes_what_stands_below_it(files: Files, store: CountingStore) -> None:
    files.write("a.md", "# One\n\n" + join(0) + "## Old\n\n" + join(1, 2))
    run(files, store, FakeEncoder())
    files.write("a.md", "# One\n\n" + join(0) + "## New\n\n" + join(1, 2))
    encoder = FakeEncoder()
    assert run(files, store, encoder).reused == 1
    assert encoder.texts == ["## New\n\n" + join(1), join(2), "One › New"]


def test_a_touched_file_encodes_nothing_and_gets_its_new_stamp(files: Files, store: CountingStore) -> None:
    files.write("a.md", join(0))
    run(files, store, FakeEncoder())
    files.touch("a.md")
    store.commits.clear()
    assert run(files, store) == Summary(unchanged=["a.md"])
    assert store.commits == [("touch", ["a.md"])]
    assert store.snapshot().files()[0].stamp == files.list()[0].stamp
    assert make_plan(files, store).is_empty


def test_another_version_of_a_reader_reads_its_files_anew_and_encodes_what_differs(
    files: Files, store: CountingStore
) -> None:
    files.write("a.md", join(0))
    files.write("b.txt", join(1))

    def name_newer(path: str) -> str:
        return name_reader(path).replace("markdown/1", "markdown/2")

    run(files, store, FakeEncoder())
    plan = plan_ingest(files.list(), store.snapshot().files(), [""], [], name_newer)
    assert [file.path for file, _ in plan.suspects] == ["a.md"]
    summary = ingest_files(
        store,
        lambda: pytest.fail("no text is new"),
        plan,
        read_document,
        name_newer,
        IngestOptions(300, "normal"),
        Watcher(),
    )
    assert summary == Summary(changed=["a.md"], unchanged=["b.txt"], reused=1)
    assert [record.reader for record in store.snapshot().files()] == ["markdown/2", "text/1"]


def test_moved_copied_and_swapped_files_keep_their_vectors(files: Files, store: CountingStore) -> None:
    files.write("a.md", "# One\n\n" + join(0, 1))
    files.write("b.md", "# Two\n\n" + join(2, 3))
    run(files, store, FakeEncoder())
    files.swap("a.md", "b.md")
    files.write("copy/b.md", (files.root / "b.md").read_text())
    assert run(files, store) == Summary(new=["copy/b.md"], changed=["a.md", "b.md"], reused=6)
    files.move("a.md", "sub/deep/c.md")
    assert run(files, store) == Summary(
        new=["sub/deep/c.md"], unchanged=["b.md", "copy/b.md"], removed=["a.md"], reused=2
    )
    assert contents(store) == contents(build_fresh(files))


def test_a_text_twice_in_a_run_is_encoded_once(files: Files, store: CountingStore) -> None:
    files.write("a.md", "# One\n\n" + join(0, 1))
    files.write("b.md", "# One\n\n" + join(0, 1))
    encoder = FakeEncoder()
    assert run(files, store, encoder).encoded == 2
    assert len(encoder.texts) == 3


def test_a_deleted_file_goes_though_the_run_was_told_of_other_paths_only_when_it_lies_below(
    files: Files, store: CountingStore
) -> None:
    for path in ("a.md", "sub/b.md", "subway.md"):
        files.write(path, join(0))
    run(files, store, FakeEncoder())
    for path in ("a.md", "sub/b.md", "subway.md"):
        files.delete(path)
    assert carry_out(make_plan(files, store, "sub"), store).removed == ["sub/b.md"]
    assert list(contents(store)) == ["a.md", "subway.md"]


def test_files_without_text_are_recorded_without_chunks(files: Files, store: CountingStore) -> None:
    files.write("blank.md", " \n\n")
    files.write("image.png", b"\x89PNG")
    files.write("nul.txt", b"GIF89a" + bytes(4))
    summary = run(files, store)
    assert [(one.path, one.status, one.reason, one.n_chunks) for one in store.snapshot().files()] == [
        ("blank.md", "empty", "no text", 0),
        ("image.png", "binary", ".png files hold no text", 0),
        ("nul.txt", "binary", "has NUL bytes, so it is not text", 0),
    ]
    records = list(store.snapshot().files())
    assert summary == Summary(new=["blank.md", "image.png", "nul.txt"], textless=records)
    assert run(files, store) == Summary(unchanged=["blank.md", "image.png", "nul.txt"], textless=records)


def test_a_file_that_loses_its_text_loses_its_chunks(files: Files, store: CountingStore) -> None:
    files.write("a.md", join(0))
    run(files, store, FakeEncoder())
    files.write("a.md", "")
    assert run(files, store).changed == ["a.md"]
    assert store.snapshot().statistics().n_chunks == 0


def fail_reading(path: Path, data: bytes) -> tuple[str, Document]:
    if b"broken" in data:
        raise ReadError("encrypted", "needs a password")
    return read_document(path, data)


def test_a_file_that_no_reader_can_read_is_skipped_with_its_reason_and_tried_again_when_it_changes(
    files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a.md", "broken")
    files.write("b.md", join(0))
    summary = run(files, store, FakeEncoder(), read=fail_reading)
    assert summary == Summary(new=["b.md"], skipped=[("a.md", "encrypted: needs a password")], encoded=1)
    with monkeypatch.context() as patch:
        patch.setattr(ingest, "read_content", lambda file: pytest.fail(f"{file.path} was read"))
        again = run(files, store, read=fail_reading)
    assert again == Summary(unchanged=["b.md"], skipped=[("a.md", "encrypted: needs a password")])
    files.touch("a.md")
    assert run(files, store, read=fail_reading) == again
    files.write("a.md", join(1))
    assert run(files, store, FakeEncoder(), read=fail_reading).changed == ["a.md"]


class Shut:
    """Makes files impossible to open, for root too."""

    def __init__(self, patch: pytest.MonkeyPatch, *names: str) -> None:
        self.names = set(names)
        read_content = ingest.read_content

        def read(file: FoundFile) -> bytes:
            if file.location.name in self.names:
                raise PermissionError(13, "Permission denied", str(file.location))
            return read_content(file)

        patch.setattr(ingest, "read_content", read)


def test_a_file_that_cannot_be_opened_is_skipped_and_indexed_once_it_can(
    files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut = Shut(monkeypatch, "a.md")
    files.write("a.md", join(0))
    skipped = [("a.md", "can't be read: Permission denied")]
    assert run(files, store) == Summary(skipped=skipped)
    store.commits.clear()
    assert run(files, store) == Summary(skipped=skipped)
    assert store.commits == []
    shut.names.clear()
    assert run(files, store, FakeEncoder()).changed == ["a.md"]
    assert contents(store) == contents(build_fresh(files))


def test_an_indexed_file_that_can_no_longer_be_opened_loses_its_chunks(
    files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a.md", join(0))
    run(files, store, FakeEncoder())
    files.touch("a.md")
    Shut(monkeypatch, "a.md")
    assert run(files, store).skipped == [("a.md", "can't be read: Permission denied")]
    assert contents(store) == contents(build_fresh(files))


def test_a_file_that_vanishes_while_the_run_goes_on_is_left_out_or_removed(files: Files, store: CountingStore) -> None:
    files.write("old.md", join(0))
    run(files, store, FakeEncoder())
    files.touch("old.md")
    files.write("new.md", join(1))
    files.write("sub/new.md", join(1))
    files.write("stays.md", join(2))
    plan = make_plan(files, store)
    files.delete("old.md")
    files.delete("new.md")
    files.delete("sub/new.md")
    (files.root / "sub").rmdir()
    (files.root / "sub").write_text("a file now")
    (files.root / "new.md").mkdir()
    summary = carry_out(plan, store, FakeEncoder())
    assert summary == Summary(new=["stays.md"], removed=["old.md"], encoded=1)
    assert list(contents(store)) == ["stays.md"]


def test_a_file_that_changes_while_the_run_goes_on_is_read_again_in_the_next(
    files: Files, store: CountingStore
) -> None:
    files.write("a.md", join(0))
    plan = make_plan(files, store)
    files.write("a.md", join(1))
    carry_out(plan, store, FakeEncoder())
    assert not make_plan(files, store).is_empty
    assert run(files, store) == Summary(unchanged=["a.md"])
    assert contents(store) == contents(build_fresh(files))


def test_every_batch_is_a_commit_of_whole_files(
    files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "BATCH_CHUNKS", 2)
    for name, places in (("a", (0,)), ("b", (1, 2, 3)), ("c", (4,)), ("d", (0,)), ("e", (1,))):
        files.write(f"{name}.md", join(*places))
    run(files, store, FakeEncoder())
    assert store.commits == [("put", ["a.md", "b.md"]), ("put", ["c.md", "d.md"]), ("put", ["e.md"])]


def test_batches_grow_with_the_breadth_of_the_work_and_files_may_be_read_elsewhere(
    files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "BATCH_CHUNKS", 1)
    for place, name in enumerate("abcde"):
        files.write(f"{name}.md", join(place))
    sent: list[str] = []

    def spread(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        sent.extend(file.path for file, _ in items)
        return [function(item) for item in items]

    options = IngestOptions(300, "normal", breadth=2)
    ingest_files(store, FakeEncoder, make_plan(files, store), read_document, name_reader, options, Watcher(), spread)

    assert sent == ["a.md", "b.md", "c.md", "d.md", "e.md"]
    assert store.commits == [("put", ["a.md", "b.md"]), ("put", ["c.md", "d.md"]), ("put", ["e.md"])]
    assert contents(store) == contents(build_fresh(files))


def test_many_small_files_are_a_batch_too(files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "BATCH_FILES", 2)
    for name in "abc":
        files.write(f"{name}.md", "")
    run(files, store)
    assert store.commits == [("put", ["a.md", "b.md"]), ("put", ["c.md"])]


def test_while_a_batch_is_encoded_the_one_before_is_written_and_the_one_after_is_read(
    files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "BATCH_CHUNKS", 1)
    for place, name in enumerate("abc"):
        files.write(f"{name}.md", join(place))
    is_written, is_read = threading.Event(), threading.Event()

    class Waiting(FakeEncoder):
        def encode_documents(self, texts: Sequence[str]) -> Any:
            if "valve" in texts[0]:
                assert is_written.wait(10)
                assert is_read.wait(10)
            return super().encode_documents(texts)

    def read(path: Path, data: bytes) -> tuple[str, Document]:
        if path.name == "c.md":
            is_read.set()
        return read_document(path, data)

    replace_files = store.replace

    def write(put: Sequence[Any], removed: Sequence[str]) -> None:
        replace_files(put, removed)
        is_written.set()

    monkeypatch.setattr(store, "replace", write)
    with lend_threads() as start:
        run(files, store, Waiting(), read=read, start=start)

    assert store.commits == [("put", ["a.md"]), ("put", ["b.md"]), ("put", ["c.md"])]


def test_threads_end_in_the_index_and_the_summary_that_one_thing_after_another_gives(
    files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "BATCH_CHUNKS", 1)
    # The second file begins with the text of the first, which is known before it is written.
    for name, places in (("a", (0,)), ("b", (0, 1)), ("c", (1,)), ("d", (2,)), ("e", (0,))):
        files.write(f"{name}/note.txt", join(*places))
    one_by_one, encoder, other = CountingStore(), FakeEncoder(), FakeEncoder()
    expected = run(files, one_by_one, encoder)
    with lend_threads() as start:
        assert run(files, store, other, start=start) == expected

    assert (store.commits, contents(store)) == (one_by_one.commits, contents(one_by_one))
    assert other.texts == encoder.texts
    assert (expected.encoded, expected.reused) == (4, 2)


@pytest.mark.parametrize("start_of", [lambda: contextlib.nullcontext(defer), lend_threads])
@pytest.mark.parametrize("done", [0, 1, 2])
def test_an_interrupted_run_keeps_its_finished_batches_and_the_next_goes_on_from_there(
    files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch, done: int, start_of: Callable[[], Any]
) -> None:
    monkeypatch.setattr(ingest, "BATCH_CHUNKS", 1)
    for place, name in enumerate("abc"):
        files.write(f"{name}.md", join(place))
    with pytest.raises(KeyboardInterrupt), start_of() as start:
        run(files, store, FakeEncoder(fail_after=done), start=start)
    assert list(contents(store)) == [f"{name}.md" for name in "abc"[:done]]
    encoder = FakeEncoder()
    assert run(files, store, encoder).encoded == 3 - done
    assert contents(store) == contents(build_fresh(files))


def test_an_interrupted_update_leaves_the_old_state_of_what_it_did_not_finish(
    files: Files, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "BATCH_CHUNKS", 1)
    for name in "abc":
        files.write(f"{name}.md", f"# {name}\n\n" + join(0))
    run(files, store, FakeEncoder())
    before = contents(store)
    files.write("a.md", "# a\n\n" + join(1))
    files.write("b.md", "# b\n\n" + join(2))
    files.delete("c.md")
    with pytest.raises(KeyboardInterrupt):
        run(files, store, FakeEncoder(fail_after=1))
    after = contents(store)
    assert after["a.md"] != before["a.md"]
    assert (after["b.md"], after["c.md"]) == (before["b.md"], before["c.md"])


def test_texts_and_headers_are_encoded_together_in_equal_steps_and_texts_alone_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preparation, "ENCODE_STEP", 4)
    encoder, done, sizes = FakeEncoder(), [], []
    monkeypatch.setattr(
        encoder, "encode_documents", lambda texts: sizes.append(len(texts)) or encoder.encode_queries(texts)[0]
    )
    missing = {str(at): (f"header {at}", f"text {at}") for at in range(5)}

    vectors = preparation.encode_missing(missing, encoder, 1.0, done.append)

    assert (sizes, done) == ([3, 3, 4], [3, 2, 0])
    expected = encode("text 3") + encode("header 3")
    assert np.allclose(vectors["3"], expected / np.linalg.norm(expected))


def test_a_watcher_is_told_of_every_file_and_every_chunk(files: Files, store: CountingStore) -> None:
    files.write("a.md", join(0, 1))
    run(files, store, FakeEncoder())
    files.write("a.md", join(0, 2))
    files.write("b.md", join(3))
    files.write("c.md", "")
    done: list[str] = []
    found: list[int] = []
    encoded: list[int] = []
    run(files, store, FakeEncoder(), watcher=Watcher(done.append, found.append, encoded.append))
    assert done == ["a.md", "b.md", "c.md"]
    assert sum(found) == sum(encoded) == 3
