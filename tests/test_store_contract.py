"""What every store promises, asked of the one in memory and of LanceDB."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rse_cli.adapters import (
    lance_fragments,
    lance_searches,
    lance_snapshot,
    panics,
    store_columns,
    store_rows,
    store_upkeep,
)
from rse_cli.adapters.lancedb_store import LanceStore
from rse_cli.adapters.manifest import ChunkingIdentity, create_manifest, read_manifest
from rse_cli.adapters.store_readers import READERS_NAME
from rse_cli.core.models import Chunk
from rse_cli.errors import DamagedStoreError, StoreError
from rse_cli.ports import KEY_BITS, FileRecord, FileStamp, IndexedFile, ModelIdentity, Statistics, Store, make_key
from tests.fake_store import FakeStore

DIMENSION = 8
MODEL = ModelIdentity("tiny", "0" * 64, DIMENSION, "mean", 256)
NASTY = ["it's.md", 'say "hi".md', "100%_.md", "new\nline.md", "日本/😀.md", "back\\slash.md", "a;--.md", "a/b c.md"]


def make_lance(tmp_path: Path) -> LanceStore:
    folder = tmp_path / ".rse"
    manifest = create_manifest(folder, tmp_path, MODEL, "numpy", ChunkingIdentity(1, 300, "normal"))
    return LanceStore(folder, manifest, lock_seconds=1)


@pytest.fixture(params=["fake", "lance", "lance, rows written side by side"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "fake":
        return FakeStore(DIMENSION)
    store = make_lance(tmp_path)
    store.scatter_with(scatter_in_threads if "side by side" in request.param else None)
    return store


def scatter_in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """What a cluster does: what goes there and comes back is pickled."""

    def call(sent: bytes) -> bytes:
        do, item = pickle.loads(sent)
        return pickle.dumps(do(item))

    with ThreadPoolExecutor(2) as pool:
        yield from map(pickle.loads, pool.map(call, [pickle.dumps((function, item)) for item in items]))


def point(*weights: float) -> np.ndarray:
    """A unit vector with these first coordinates."""
    vector = np.zeros(DIMENSION, np.float32)
    vector[: len(weights)] = weights
    return vector / np.linalg.norm(vector)


def indexed(path: str, *words: str, vectors: Sequence[np.ndarray] | None = None) -> IndexedFile:
    """A file with one chunk for each of `words`, whose terms are the words themselves."""
    starts = np.cumsum([0, *(len(text) for text in words)])
    chunks = [Chunk(i, int(starts[i]), int(starts[i + 1]), text) for i, text in enumerate(words)]
    rng = np.random.default_rng(len(path))
    drawn = [point(*rng.standard_normal(DIMENSION)) for _ in words] if vectors is None else vectors
    return IndexedFile(
        record=FileRecord(
            path,
            FileStamp(int(starts[-1]), 1_700_000_000_123_456_789, 1),
            hashlib.sha256("".join(words).encode()).hexdigest(),
            "indexed" if words else "empty",
            summary=" ".join(words),
            n_chunks=len(words),
            n_chars=int(starts[-1]),
            window_lengths=tuple(k * len(words) + 1 for k in range(4)),
        ),
        chunks=chunks,
        terms=list(words),
        text_hashes=[hashlib.sha256(text.encode()).hexdigest() for text in words],
        vectors=np.array(drawn, np.float32).reshape(-1, DIMENSION),
    )


def put(store: Store, *files: IndexedFile, removed: Sequence[str] = ()) -> None:
    with store.lock():
        store.replace(files, removed)


def list_texts(store: Store) -> dict[str, list[str]]:
    """Every file's chunk texts, read through head rows and keys."""
    snapshot = store.snapshot()
    found: dict[str, list[str]] = {record.path: [] for record in snapshot.files()}
    for number in range(50):
        for stored in snapshot.chunks([(number << KEY_BITS) + i for i in range(20)]):
            found[stored.path].append(stored.chunk.text)
    return found


def find_number(store: Store, path: str) -> int:
    return next(n for n, record in store.snapshot().heads(range(50)).items() if record.path == path)


class TestReplace:
    def test_a_replaced_file_holds_its_new_chunks_alone(self, store: Store) -> None:
        put(store, indexed("a", "one", "two", "three"))
        put(store, indexed("a", "four"))
        assert list_texts(store) == {"a": ["four"]}

    def test_a_replaced_file_can_grow(self, store: Store) -> None:
        put(store, indexed("a", "one"))
        put(store, indexed("a", "four", "five", "six"))
        assert list_texts(store) == {"a": ["four", "five", "six"]}

    def test_other_files_are_untouched(self, store: Store) -> None:
        put(store, indexed("a", "one"), indexed("b", "two", "three"))
        put(store, indexed("a", "four"))
        assert list_texts(store) == {"a": ["four"], "b": ["two", "three"]}

    def test_removed_paths_go_in_the_same_commit(self, store: Store) -> None:
        put(store, indexed("a", "one"), indexed("b", "two"), indexed("c", "three"))
        put(store, indexed("d", "four"), removed=["a", "c"])
        assert list_texts(store) == {"b": ["two"], "d": ["four"]}

    def test_paths_are_removed_without_new_files(self, store: Store) -> None:
        put(store, indexed("a", "one"), indexed("b", "two"))
        put(store, removed=["a", "never there"])
        assert list_texts(store) == {"b": ["two"]}

    def test_removing_what_was_never_there_changes_nothing(self, store: Store) -> None:
        put(store, removed=["a"])
        assert list_texts(store) == {}

    def test_a_path_both_given_and_removed_stays(self, store: Store) -> None:
        put(store, indexed("a", "one"))
        put(store, indexed("a", "two"), removed=["a"])
        assert list_texts(store) == {"a": ["two"]}

    def test_a_file_without_chunks_has_a_head_row(self, store: Store) -> None:
        put(store, indexed("a", "one"))
        put(store, indexed("a"))
        assert list_texts(store) == {"a": []}
        assert store.snapshot().files()[0].status == "empty"

    def test_a_path_keeps_its_number_while_it_lives(self, store: Store) -> None:
        put(store, indexed("a", "one"), indexed("b", "two"))
        number = find_number(store, "a")
        put(store, indexed("c", "three"), indexed("a", "four"), removed=["b"])
        assert find_number(store, "a") == number
        assert find_number(store, "c") != number

    def test_a_new_path_never_shares_a_number(self, store: Store) -> None:
        for path in "abcdef":
            put(store, indexed(path, path))
        put(store, removed=["b", "d"])
        put(store, indexed("g", "g"), indexed("h", "h"))
        assert list_texts(store) == {p: [p] for p in "acefgh"}

    @pytest.mark.parametrize("path", NASTY)
    def test_any_path_can_be_replaced_and_removed(self, store: Store, path: str) -> None:
        put(store, indexed(path, "one", "two"), indexed("other", "x"))
        put(store, indexed(path, "three"))
        assert list_texts(store) == {path: ["three"], "other": ["x"]}
        put(store, removed=[path])
        assert list_texts(store) == {"other": ["x"]}

    @pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0, 2.0])
    def test_vectors_that_are_not_finite_and_of_unit_length_are_refused(self, store: Store, bad: float) -> None:
        put(store, indexed("a", "one"))
        vector = np.zeros(DIMENSION, np.float32)
        vector[0] = bad
        with pytest.raises(ValueError, match="unit length"):
            put(store, indexed("b", "two", vectors=[vector]))
        assert list_texts(store) == {"a": ["one"]}

    def test_a_file_given_twice_is_refused(self, store: Store) -> None:
        with pytest.raises(ValueError, match="twice"):
            put(store, indexed("a", "one"), indexed("a", "two"))


class TestTouch:
    def test_a_touched_file_has_a_new_head_row_and_its_old_chunks(self, store: Store) -> None:
        file = indexed("it's", "one", "two")
        put(store, file, indexed("b", "three"))
        stamp = FileStamp(7, 8, 9)
        with store.lock():
            store.touch([dataclasses.replace(file.record, stamp=stamp)])
        assert [record.stamp for record in store.snapshot().files()] == [indexed("b", "three").record.stamp, stamp]
        assert list_texts(store) == {"b": ["three"], "it's": ["one", "two"]}

    def test_an_unknown_file_cannot_be_touched(self, store: Store) -> None:
        with pytest.raises(ValueError, match="no such file"), store.lock():
            store.touch([indexed("a", "one").record])


class TestRoundTrip:
    def test_every_field_of_a_chunk_comes_back(self, store: Store) -> None:
        chunk = Chunk(0, 0, 8, 'q"\0\n日本😀x', 3, 4, 5, 6, "A › B", "T › A", ("10k", "日", "日本"))
        bare = Chunk(1, 8, 9, "y", row_terms=())
        file = indexed("a", "12345678", "y")
        put(store, dataclasses.replace(file, chunks=[chunk, bare]))
        number = find_number(store, "a")
        found = store.snapshot().chunks([(number << KEY_BITS) + 2, (number << KEY_BITS) + 1])
        assert [stored.chunk for stored in found] == [chunk, bare]
        assert [stored.key & 3 for stored in found] == [1, 2]

    def test_every_field_of_a_head_row_comes_back(self, store: Store) -> None:
        record = FileRecord(
            "a", FileStamp(1, 2**62, 3), "ff", "encrypted", "it's locked", "pdf 1", "Title", 0, 0, ("10k", "日本")
        )
        put(store, dataclasses.replace(indexed("a"), record=record))
        assert store.snapshot().files() == [record]
        assert list(store.snapshot().heads([0, 1, 2, 7]).values()) == [record]

    def test_the_vector_of_a_document_comes_back_and_outlives_a_touch(self, store: Store) -> None:
        put(store, dataclasses.replace(indexed("b", "x"), document_vector=point(0, 1)), indexed("c"))
        put(store, dataclasses.replace(indexed("a", "y"), document_vector=point(1, 0)))
        with store.lock():
            store.touch([indexed("a", "y").record])
        numbers, vectors = store.snapshot().document_vectors()
        assert numbers.tolist() == [0, 2]
        assert vectors == pytest.approx(np.stack([point(0, 1), point(1, 0)]))


class TestNearest:
    def test_chunks_come_best_first_with_their_cosine(self, store: Store) -> None:
        put(store, indexed("a", "x", "y", "z", vectors=[point(1, 1), point(1), point(-1)]))
        keys, cosines = store.snapshot().nearest(point(1), 10, None)
        assert [key & 7 for key in keys.tolist()] == [2, 1, 3]
        assert cosines == pytest.approx([1, 0.5**0.5, -1], abs=1e-6)

    def test_head_rows_are_never_found(self, store: Store) -> None:
        put(store, *(indexed(path, "w") for path in "abcde"), indexed("empty"))
        keys, _ = store.snapshot().nearest(point(1), 100, None)
        assert len(keys) == 5
        assert all(key & ((1 << KEY_BITS) - 1) for key in keys.tolist())

    @pytest.mark.parametrize("path", NASTY)
    def test_paths_filter_before_the_best_k_are_taken(self, store: Store, path: str) -> None:
        put(store, indexed("near", *"abcdefgh", vectors=[point(1)] * 8), indexed(path, "far", vectors=[point(-1)]))
        keys, cosines = store.snapshot().nearest(point(1), 2, [path, "no such file"])
        assert [key >> KEY_BITS for key in keys.tolist()] == [find_number(store, path)]
        assert cosines == pytest.approx([-1], abs=1e-6)

    def test_no_paths_give_no_chunks(self, store: Store) -> None:
        put(store, indexed("a", "x"))
        assert len(store.snapshot().nearest(point(1), 5, [])[0]) == 0

    def test_chunks_added_later_are_found_at_once(self, store: Store) -> None:
        put(store, indexed("a", "x", vectors=[point(0, 1)]))
        store.maintain()
        put(store, indexed("b", "y", vectors=[point(1)]))
        keys, _ = store.snapshot().nearest(point(1), 1, None)
        assert keys.tolist() == [(find_number(store, "b") << KEY_BITS) + 1]


class TestMatching:
    def test_chunks_with_any_of_the_terms_are_found(self, store: Store) -> None:
        put(store, indexed("a", "cat dog", "dog", "bird", "cat fish"))
        found = store.snapshot().matching(["cat", "bird"], 10, None)
        assert sorted(key & 7 for key in found.tolist()) == [1, 3, 4]

    def test_a_chunk_with_more_of_the_terms_comes_first(self, store: Store) -> None:
        put(store, indexed("a", "cat x x", "cat dog x", "dog x x", "x x x"))
        assert store.snapshot().matching(["cat", "dog"], 1, None).tolist()[0] & 7 == 2

    @pytest.mark.parametrize("n_files", [4, 40])
    def test_of_chunks_that_score_alike_those_with_the_lowest_keys_are_taken(self, store: Store, n_files: int) -> None:
        for number in range(n_files):
            put(store, indexed(f"{number:02}", "cat", "dog", "cat"))
            if number == n_files // 2:
                store.maintain()
        # With the lowest keys in the last rows.
        put(store, indexed("00", "cat", "dog", "cat"))
        # Until then rows beside the index have statistics of their own.
        store.maintain()
        snapshot = store.snapshot()
        keys = sorted(find_number(store, f"{n:02}") << KEY_BITS | slot for n in range(n_files) for slot in (1, 3))
        for k in (1, 2, 5, 30):
            assert snapshot.matching(["cat"], k, None).tolist() == keys[:k]
            assert snapshot.hold().matching(["cat"], k, None).tolist() == keys[:k]
        assert snapshot.matching(["cat"], 2, ["02", "03"]).tolist() == [key for key in keys if key >> KEY_BITS == 2]

    @pytest.mark.parametrize("maintained", [False, True])
    @pytest.mark.parametrize("term", ["10k", "1.5", "日", "日本", "r" * 100, "the", "running", "or", "x:y", "(", '"a"'])
    def test_terms_are_matched_whole_and_literally(self, store: Store, term: str, maintained: bool) -> None:
        put(store, indexed("a", term, f"before {term} after", f"x{term}", f"{term}x", "10 k 1 5 run AND x"))
        if maintained:
            store.maintain()
        assert sorted(key & 7 for key in store.snapshot().matching([term], 10, None).tolist()) == [1, 2]
        assert store.snapshot().document_frequencies([term, term + term]) == [2, 0]

    @pytest.mark.parametrize("path", NASTY)
    def test_paths_filter_before_the_best_k_are_taken(self, store: Store, path: str) -> None:
        put(store, indexed("near", *["cat"] * 8), indexed(path, "cat and many other words beside it"))
        found = store.snapshot().matching(["cat"], 2, [path])
        assert [key >> KEY_BITS for key in found.tolist()] == [find_number(store, path)]

    def test_chunks_added_later_are_found_at_once(self, store: Store) -> None:
        put(store, indexed("a", "cat"))
        store.maintain()
        put(store, indexed("b", "cat"), indexed("c", "dog"))
        assert len(store.snapshot().matching(["cat"], 10, None)) == 2

    def test_removed_chunks_are_no_longer_found(self, store: Store) -> None:
        put(store, indexed("a", "cat"), indexed("b", "cat"))
        store.maintain()
        put(store, indexed("a", "dog"), removed=["b"])
        snapshot = store.snapshot()
        assert (snapshot.matching(["cat"], 10, None).tolist(), snapshot.document_frequencies(["cat", "dog"])) == (
            [],
            [0, 1],
        )


class TestDocumentFrequencies:
    def test_chunks_are_counted_once_however_often_they_hold_the_term(self, store: Store) -> None:
        put(store, indexed("a", "cat cat cat", "dog", "cat dog"))
        assert store.snapshot().document_frequencies(["cat", "dog", "bird"]) == [2, 2, 0]

    def test_the_count_is_exact_above_any_limit_and_for_rows_not_indexed_yet(self, store: Store) -> None:
        put(store, *(indexed(f"f{i}", *["cat dog"] * 150) for i in range(8)))
        store.maintain()
        put(store, indexed("g", "cat", "cat", "dog"), removed=["f0"])
        assert store.snapshot().document_frequencies(["cat", "dog"]) == [1052, 1051]


class TestEvidence:
    def test_columns_come_sorted_by_key_without_gaps_and_head_rows(self, store: Store) -> None:
        a = indexed("a", "one", "three")
        table = [dataclasses.replace(a.chunks[0], row_terms=("x", "y")), a.chunks[1]]
        put(store, dataclasses.replace(a, chunks=table), indexed("b", "four"))
        first, second = find_number(store, "a") << KEY_BITS, find_number(store, "b") << KEY_BITS
        rows = store.snapshot().evidence(
            [second + 1, second, first + 9, first + 2, first + 1, first + 1, 77 << KEY_BITS]
        )
        assert rows.keys.tolist() == sorted([first + 1, first + 2, second + 1])
        assert rows.chars.tolist() == [3, 5, 4]
        assert rows.terms.count(["one", "four"]).tolist() == [[1, 0], [0, 0], [0, 1]]
        assert rows.is_row.tolist() == [True, False, False]
        assert rows.row_terms.count(["x", "z"]).tolist() == [[1, 0], [0, 0], [0, 0]]
        np.testing.assert_array_equal(rows.vectors, [*a.vectors, *indexed("b", "four").vectors])

    def test_keys_can_be_an_array(self, store: Store) -> None:
        put(store, indexed("a", "one"))
        key = (find_number(store, "a") << KEY_BITS) + 1
        assert store.snapshot().evidence(np.array([key, key + 1])).keys.tolist() == [key]


class TestHolding:
    def test_what_is_held_is_what_the_snapshot_gives(self, store: Store) -> None:
        files = [indexed("b", "one", "one two", "two"), indexed("a", "three", "one"), indexed("empty")]
        table = [dataclasses.replace(files[1].chunks[0], row_terms=("x", "y")), files[1].chunks[1]]
        put(store, files[0], dataclasses.replace(files[1], chunks=table), files[2])
        snapshot = store.snapshot()
        held = snapshot.hold()
        held.search_ahead(np.array([point(1.0)]), [("one",), ()], 5)
        numbers = [find_number(store, path) for path in ("a", "b", "empty")]
        keys = [number << KEY_BITS | slot for number in numbers for slot in (0, 1, 2, 3, 9)][::-1]
        terms = ["one", "two", "three", "x", "absent"]
        mine, given = held.evidence(keys), snapshot.evidence(keys)
        for name in ("keys", "chars", "start_chars", "blocks", "is_row", "vectors"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(given, name))
        for one, other in (
            (mine.terms, given.terms),
            (mine.terms.take(BACK), given.terms.take(BACK)),
            (mine.row_terms, given.row_terms),
        ):
            np.testing.assert_array_equal(one.count(terms), other.count(terms))
            np.testing.assert_array_equal(one.lengths(), other.lengths())
        assert held.chunks(keys) == snapshot.chunks(keys)
        assert held.evidence([]).keys.tolist() == held.chunks([]) == []
        assert held.heads([*numbers, 99]) == snapshot.heads([*numbers, 99])
        assert (held.files(), held.statistics()) == (snapshot.files(), snapshot.statistics())
        assert held.document_frequencies(terms) == snapshot.document_frequencies(terms) == [3, 2, 1, 0, 0]
        for paths in (None, ["b"], ["absent"], []):
            for some, k in ((["one"], 5), (["one"], 2), (["two", "one"], 5), ([], 5)):
                assert held.matching(some, k, paths).tolist() == snapshot.matching(some, k, paths).tolist()
            for x, k in ((1.0, 0), (1.0, 2), (1.0, 5), (2.0, 2)):
                found, expected = held.nearest(point(x), k, paths), snapshot.nearest(point(x), k, paths)
                assert [each.tolist() for each in found] == [each.tolist() for each in expected]

    @pytest.mark.parametrize("n_equal", [4, 40])
    def test_equal_vectors_at_the_last_rank_are_told_apart_by_key(self, store: Store, n_equal: int) -> None:
        put(store, indexed("b", *["other"] * n_equal, vectors=[point(1.0)] * n_equal))
        put(store, indexed("a", *["same"] * n_equal, vectors=[point(1.0)] * n_equal))
        snapshot = store.snapshot()
        held = snapshot.hold()
        held.search_ahead(np.array([point(1.0)]), [], 2)
        for paths in (None, ["a"]):
            first = (find_number(store, "a" if paths else "b") << KEY_BITS) + 1
            assert snapshot.nearest(point(1.0), 2, paths)[0].tolist() == [first, first + 1]
            assert held.nearest(point(1.0), 2, paths)[0].tolist() == [first, first + 1]

    def test_an_empty_index_is_held_too(self, store: Store) -> None:
        held = store.snapshot().hold()
        held.search_ahead(np.array([point(1.0)]), [("one",)], 5)
        assert (held.files(), held.statistics().n_chunks, held.document_frequencies(["one"])) == ([], 0, [0])
        assert held.evidence([1, 2]).keys.tolist() == held.chunks([1, 2]) == []


BACK = np.array([4, 2, 0, 1, 3])


class TestStatistics:
    def test_they_are_the_sums_over_the_files_divided_by_the_chunks(self, store: Store) -> None:
        kept, changed, gone = indexed("a", "x", "y"), indexed("b", "x"), indexed("c", "x", "y", "z")
        put(store, kept, changed, gone)
        changed = indexed("b", "v", "w", "x", "y")
        put(store, changed, removed=["c"])
        store.maintain()
        statistics = store.snapshot().statistics()
        assert statistics.n_chunks == 6
        assert dict(statistics.mean_lengths) == {0: 2 / 6, 1: (3 + 5) / 6, 4: (5 + 9) / 6, 12: (7 + 13) / 6}

    def test_an_empty_index_has_no_chunks_and_means_of_zero(self, store: Store) -> None:
        statistics = store.snapshot().statistics()
        assert (statistics.n_chunks, dict(statistics.mean_lengths)) == (0, {0: 0, 1: 0, 4: 0, 12: 0})


class TestVectors:
    def test_they_are_found_by_the_hash_of_their_text(self, store: Store) -> None:
        a, b = indexed("a", "one", "two"), indexed("b", "two", "three", vectors=[point(1), point(2, 1)])
        put(store, a)
        put(store, b)
        found = store.vectors([a.text_hashes[0], b.text_hashes[1], "it's unknown"])
        assert sorted(found) == sorted([a.text_hashes[0], b.text_hashes[1]])
        np.testing.assert_array_equal(found[a.text_hashes[0]], a.vectors[0])
        np.testing.assert_array_equal(found[b.text_hashes[1]], b.vectors[1])

    def test_a_hash_that_many_chunks_share_is_found_once(self, store: Store) -> None:
        file = indexed("a", "same", "same", "same", vectors=[point(1)] * 3)
        put(store, file)
        np.testing.assert_array_equal(store.vectors(file.text_hashes)[file.text_hashes[0]], point(1))

    def test_nothing_is_found_for_no_hashes_or_in_an_empty_index(self, store: Store) -> None:
        assert store.vectors(["x"]) == {}
        assert store.vectors([]) == {}


class TestSnapshots:
    def test_a_snapshot_stays_as_it_was_while_files_are_replaced(self, store: Store) -> None:
        put(store, indexed("a", "cat", "dog"))
        before = store.snapshot()
        put(store, indexed("a", "bird"), indexed("b", "cat"))
        store.maintain()
        assert [record.path for record in before.files()] == ["a"]
        assert before.document_frequencies(["cat", "bird"]) == [1, 0]
        assert len(before.nearest(point(1), 10, None)[0]) == 2
        assert before.statistics().n_chunks == 2

    @pytest.mark.parametrize("prepare", [lambda _: None, lambda store: put(store, indexed("e"), indexed("f"))])
    def test_an_index_without_chunks_answers_with_nothing(self, store: Store, prepare: Callable[[Store], None]) -> None:
        prepare(store)
        store.maintain()
        snapshot = store.snapshot()
        keys, cosines = snapshot.nearest(point(1), 10, None)
        assert (keys.tolist(), cosines.tolist()) == ([], [])
        assert len(snapshot.nearest(point(1), 10, ["e"])[0]) == 0
        assert snapshot.matching(["cat"], 10, None).tolist() == []
        assert snapshot.matching([], 10, None).tolist() == []
        assert snapshot.document_frequencies(["cat", "dog"]) == [0, 0]
        assert len(snapshot.evidence([1, 2]).keys) == 0
        assert snapshot.chunks([1]) == []
        assert snapshot.heads([99]) == {}


class TestLanceStore:
    """What only a store on disk can get wrong."""

    @pytest.fixture
    def lance_store(self, tmp_path: Path) -> LanceStore:
        return make_lance(tmp_path)

    def test_another_process_opens_the_version_that_a_snapshot_is_of(self, lance_store: LanceStore) -> None:
        put(lance_store, indexed("a", "cat", "dog"))
        held = lance_store.snapshot()
        put(lance_store, indexed("a", "bird"), indexed("b", "cat"))
        lance_store.maintain()

        same, newest = lance_store.snapshot(held.version), lance_store.snapshot()

        assert same.version == held.version < newest.version
        assert [record.path for record in same.files()] == ["a"]
        assert same.document_frequencies(["cat", "bird"]) == [1, 0]
        assert same.statistics().n_chunks == 2

    def test_another_process_sees_what_was_committed(self, lance_store: LanceStore, tmp_path: Path) -> None:
        put(lance_store, indexed("a", "one"))
        other = LanceStore(tmp_path / ".rse", read_manifest(tmp_path / ".rse"))
        put(other, indexed("b", "two"))
        put(lance_store, indexed("a", "three"))
        assert list_texts(other) == {"a": ["three"], "b": ["two"]}

    def test_half_a_table_is_an_empty_index_and_is_mended(self, lance_store: LanceStore, tmp_path: Path) -> None:
        (tmp_path / ".rse/chunks.lance/data").mkdir(parents=True)
        assert lance_store.snapshot().files() == []
        put(lance_store, indexed("a", "one"))
        assert list_texts(lance_store) == {"a": ["one"]}

    def test_a_commit_is_one_fragment_unless_others_write_with_it(
        self, lance_store: LanceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lance_fragments, "FRAGMENT_ROWS", 2)
        put(lance_store, indexed("a", "one", "two", "three", "four"))  # and the head row
        lance_store.scatter_with(map)
        put(lance_store, indexed("b", "one", "two", "three", "four"))
        fragments = lance_snapshot.open_dataset(tmp_path / ".rse").get_fragments()
        assert [fragment.count_rows() for fragment in fragments] == [5, 2, 3]

    @pytest.mark.parametrize("outdated", [None, "path IN ('a')"])
    def test_rows_written_side_by_side_stay_out_once_another_writer_has_fenced_this_one_out(
        self, lance_store: LanceStore, tmp_path: Path, outdated: str | None
    ) -> None:
        put(lance_store, indexed("a", "one"), indexed("b", "two"))
        begun = lance_snapshot.open_dataset(tmp_path / ".rse")
        rows = store_rows.build_rows([indexed("c", "three")], [2], DIMENSION)
        lance_snapshot.open_dataset(tmp_path / ".rse").restore()
        with pytest.raises(OSError, match="conflict"):
            lance_fragments.commit_fragments(tmp_path / ".rse", begun, rows, outdated)
        assert list_texts(lance_store) == {"a": ["one"], "b": ["two"]}

    def test_a_table_that_is_gone_is_damage_and_no_empty_index(self, lance_store: LanceStore, tmp_path: Path) -> None:
        put(lance_store, indexed("a", "one"))
        for manifest in (tmp_path / ".rse/chunks.lance/_versions").iterdir():
            manifest.unlink()
        with pytest.raises(DamagedStoreError, match="its table is gone"):
            lance_store.snapshot()

    def test_statistics_of_another_version_are_added_up_again(self, lance_store: LanceStore, tmp_path: Path) -> None:
        put(lance_store, indexed("a", "one"))
        outdated = (tmp_path / ".rse/manifest.json").read_bytes()
        put(lance_store, indexed("b", "two", "three"))
        (tmp_path / ".rse/manifest.json").write_bytes(outdated)
        assert lance_store.snapshot().statistics().n_chunks == 3

    def test_the_manifest_holds_the_statistics_of_the_newest_version(
        self, lance_store: LanceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(lance_store, indexed("a", "one"))
        lance_store.maintain()
        snapshot = lance_store.snapshot()
        monkeypatch.setattr(lance_snapshot.LanceSnapshot, "summaries", lambda self: pytest.fail("read head rows"))
        assert snapshot.statistics().n_chunks == 1

    def test_a_vector_index_answers_as_the_flat_search_does_for_old_and_new_rows(
        self, lance_store: LanceStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rng = np.random.default_rng(0)
        vectors = [point(*rng.standard_normal(DIMENSION)) for _ in range(600)]
        files = [indexed(f"f{i}", *["w"] * 100, vectors=vectors[100 * i : 100 * i + 100]) for i in range(6)]
        slow = FakeStore(DIMENSION)
        for half in (files[:5], files[5:]):
            put(slow, *half)
            put(lance_store, *half)
            monkeypatch.setattr(store_upkeep, "VECTOR_INDEX_ROWS", 500)
            lance_store.maintain()
        query = point(*rng.standard_normal(DIMENSION))
        for paths in (None, ["f3"], ["f5"], ["f4", "f5"]):
            expected = slow.snapshot().nearest(query, 50, paths)
            keys, cosines = lance_store.snapshot().nearest(query, 50, paths)
            assert keys.tolist() == expected[0].tolist()
            np.testing.assert_allclose(cosines, expected[1], atol=1e-6)

    @pytest.mark.parametrize(("n_chunks", "probes"), [(9_000, 20), (100_000, 20), (1_000_000, 82), (10_000_000, 814)])
    def test_the_partitions_searched_grow_with_the_index(
        self, lance_store: LanceStore, monkeypatch: pytest.MonkeyPatch, n_chunks: int, probes: int
    ) -> None:
        monkeypatch.setattr(lance_snapshot.LanceSnapshot, "statistics", lambda _: Statistics(n_chunks, {}))
        asked: list[int] = []

        def scan(_: object, columns: Sequence[str], **options: Any) -> Any:
            asked.append(options["nearest"]["nprobes"])
            return store_columns.make_empty_table(columns, DIMENSION)

        monkeypatch.setattr(lance_snapshot.LanceSnapshot, "_scan", scan)
        lance_store.snapshot().nearest(point(1.0), 5, None)
        assert asked == [probes]

    def test_filters_reach_every_partition_of_a_vector_index(
        self, lance_store: LanceStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(store_upkeep, "VECTOR_INDEX_ROWS", 500)
        monkeypatch.setattr(store_upkeep, "PARTITION_ROWS", 20)
        monkeypatch.setattr(lance_searches, "PROBED_PARTITIONS", 1)
        rng = np.random.default_rng(0)
        vectors = [point(*rng.standard_normal(DIMENSION)) for _ in range(600)]
        files = [indexed(f"f{i}", *["w"] * 10, vectors=vectors[10 * i : 10 * i + 10]) for i in range(60)]
        slow = FakeStore(DIMENSION)
        put(slow, *files)
        put(lance_store, *files)
        lance_store.maintain()
        assert len(lance_store.snapshot().nearest(point(1), 600, None)[0]) < 600  # one partition of many
        for path in ("f0", "f30", "f59"):
            expected = slow.snapshot().nearest(point(1), 10, [path])
            assert lance_store.snapshot().nearest(point(1), 10, [path])[0].tolist() == expected[0].tolist()

    def test_a_vector_index_of_a_much_smaller_table_is_built_again(
        self, lance_store: LanceStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(store_upkeep, "VECTOR_INDEX_ROWS", 300)
        built = []
        for i, partition_rows in enumerate([8192, 8192, 100]):
            monkeypatch.setattr(store_upkeep, "PARTITION_ROWS", partition_rows)
            put(lance_store, *(indexed(f"{i} {j}", *["w"] * 100) for j in range(3)))
            lance_store.maintain()
            built.append({path.name for path in (tmp_path / ".rse/chunks.lance/_indices").iterdir()})
        assert (len(built[0]), len(built[1] - built[0]), len(built[2] - built[1])) == (5, 0, 1)

    def test_many_small_commits_are_joined_and_still_answer(
        self, lance_store: LanceStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(store_upkeep, "FRAGMENTS", 4)
        for i in range(6):
            put(lance_store, indexed(f"f{i}", f"word{i}", "cat"))
        lance_store.maintain()
        assert lance_store.snapshot().document_frequencies(["cat", "word3"]) == [6, 1]
        assert list_texts(lance_store) == {f"f{i}": [f"word{i}", "cat"] for i in range(6)}
        fragments = list((tmp_path / ".rse/chunks.lance/data").glob("*.lance"))
        assert len(fragments) == 1

    def test_what_a_reader_opened_stays_while_it_reads(self, lance_store: LanceStore, tmp_path: Path) -> None:
        put(lance_store, indexed("a", "one"))
        old = lance_store.snapshot()
        put(lance_store, indexed("a", "two"))
        lance_store.maintain()
        assert [text for chunk in old.chunks([make_key(0, 0)]) for text in [chunk.chunk.text]] == ["one"]
        assert len(list((tmp_path / ".rse/chunks.lance/data").glob("*.lance"))) == 2
        del old
        lance_store.maintain()
        assert len(list((tmp_path / ".rse/chunks.lance/data").glob("*.lance"))) == 1
        assert list_texts(lance_store) == {"a": ["two"]}

    def test_beside_readers_a_version_goes_when_a_newer_one_has_been_there_for_long(
        self, lance_store: LanceStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        put(lance_store, indexed("a", "one"))
        time.sleep(1.2)  # more than the second of margin
        old = lance_store.snapshot()
        put(lance_store, indexed("a", "two"))
        lance_store.maintain()
        assert len(old.nearest(point(1), 5, None)[0]) == 1
        monkeypatch.setattr(store_upkeep, "KEEP_SECONDS", 0.0)
        lance_store.maintain()
        assert list_texts(lance_store) == {"a": ["two"]}
        assert len(list((tmp_path / ".rse/chunks.lance/data").glob("*.lance"))) == 1
        with pytest.raises(StoreError, match="run the command again"):
            old.nearest(point(1), 5, None)

    def test_a_reader_enters_where_nothing_can_be_written(self, lance_store: LanceStore, tmp_path: Path) -> None:
        put(lance_store, indexed("a", "one"))
        (tmp_path / ".rse" / READERS_NAME).unlink(missing_ok=True)
        (tmp_path / ".rse" / READERS_NAME).mkdir()
        assert list_texts(lance_store) == {"a": ["one"]}
        lance_store.maintain()
        assert list_texts(lance_store) == {"a": ["one"]}

    def test_an_index_rebuilt_meanwhile_is_refused(self, lance_store: LanceStore, tmp_path: Path) -> None:
        put(lance_store, indexed("a", "one"))
        other = dataclasses.replace(MODEL, name="other")
        create_manifest(tmp_path / ".rse", tmp_path, other, "numpy", ChunkingIdentity(1, 300, "normal"), rebuild=True)
        with pytest.raises(StoreError, match="run the command again"):
            put(lance_store, indexed("a", "two"))

    def test_a_version_whose_table_was_rebuilt_with_as_many_versions_is_no_damage(
        self, lance_store: LanceStore, tmp_path: Path
    ) -> None:
        put(lance_store, indexed("a", "one"))
        old = lance_store.snapshot()
        manifest = read_manifest(tmp_path / ".rse")
        create_manifest(tmp_path / ".rse", tmp_path, MODEL, "numpy", manifest.chunking, rebuild=True)
        put(lance_store, indexed("a", "two"))
        assert lance_store.snapshot().version == old.version
        with pytest.raises(StoreError, match="run the command again"):
            old.files()

    def test_a_table_whose_files_are_gone_is_one_line(self, lance_store: LanceStore, tmp_path: Path) -> None:
        put(lance_store, indexed("a", "one"))
        for file in (tmp_path / ".rse/chunks.lance/data").iterdir():
            file.unlink()
        with pytest.raises(DamagedStoreError, match=r"a file of its table is missing: repair with"):
            lance_store.snapshot().files()
        with pytest.raises(DamagedStoreError, match=r"a file of its table is missing: repair with"):
            put(lance_store, indexed("a", "two"))

    def test_neither_library_writes_to_the_terminal(
        self, lance_store: LanceStore, capfd: pytest.CaptureFixture
    ) -> None:
        put(lance_store, indexed("a", "cat"))
        lance_store.maintain()
        lance_store.snapshot().nearest(point(1), 5, None)
        lance_store.snapshot().matching(["cat"], 5, None)
        assert capfd.readouterr() == ("", "")

    def test_reading_never_imports_lancedb_which_takes_a_second(self, lance_store: LanceStore, tmp_path: Path) -> None:
        put(lance_store, indexed("a", "cat"))
        code = (
            "import sys; from pathlib import Path\n"
            "from rse_cli.adapters.lancedb_store import LanceStore\n"
            "from rse_cli.adapters.manifest import read_manifest\n"
            "assert 'lance' not in sys.modules and 'pyarrow' not in sys.modules\n"
            "folder = Path(sys.argv[1]); snapshot = LanceStore(folder, read_manifest(folder)).snapshot()\n"
            "print(snapshot.matching(['cat'], 5, None), snapshot.statistics().n_chunks, 'lancedb' in sys.modules)"
        )
        run = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / ".rse")], capture_output=True, text=True, check=True
        )
        assert (run.stdout, run.stderr) == ("[1] 1 False\n", "")


def test_threads_that_silence_stderr_side_by_side_give_it_back(capfd: pytest.CaptureFixture[str]) -> None:
    first, second = panics.hide_panics(), panics.hide_panics()
    first.__enter__()
    second.__enter__()
    os.write(2, b"a panic\n")
    first.__exit__(None, None, None)
    os.write(2, b"another panic\n")
    second.__exit__(None, None, None)
    os.write(2, b"a message\n")
    assert capfd.readouterr().err == "a message\n"
