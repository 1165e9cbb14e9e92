"""The index in a LanceDB table: written through lancedb, read through lance, which starts six times faster.

The full-text index is made while the table is still empty, because a search without it would fall back on lance's
default tokenizer, which takes ``1.5`` apart. From then on rows that aren't indexed yet are found with its tokenizer.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rse_cli.adapters import store_rows
from rse_cli.adapters.manifest import (
    LOCK_SECONDS,
    TABLE_FOLDER,
    Manifest,
    StoredStatistics,
    is_same_index,
    lock_store,
    read_manifest,
    write_manifest,
)
from rse_cli.errors import StoreError
from rse_cli.ports import KEY_BITS, EvidenceRows, FileRecord, IndexedFile, Keys, Statistics, StoredChunk, Vectors

if TYPE_CHECKING:
    import lance
    import pyarrow as pa
    from lancedb.table import Table

TABLE_NAME = "chunks"

VECTOR_INDEX_ROWS = 5_000
"""Median of cold searches with an index and flat: 16 and 29 ms at 6,000 rows, 23 and 71 at 10,000, on a busy machine.
Building one takes 0.25 s there."""

PARTITION_ROWS = 8_192
"""Rows to a partition when the index is built, lance's own choice; rows added later go into those that are there."""

CROWDED = 4
"""Partitions that hold so many times too many rows: their centres were taken from a much smaller index, so rebuild."""

PROBED_PARTITIONS = 20
"""All partitions up to 160,000 rows; beyond, an unfiltered search is approximate."""

REFINE_FACTOR = 2
"""Twice as many rows are compared again by their exact vectors: recall 1.0 at rank 200 of 10,000 random vectors, 0.98
without. The distances of the index itself are no cosines at all, off by up to 0.9."""

UNINDEXED_ROWS = 1_000
"""Every full-text call scans rows that aren't indexed: 1 ms more for so many, 5 ms for 6,000."""

FRAGMENTS = 20
"""Every batch leaves a fragment that every read opens: at 53 a full-text call took 1.5 ms, at 23 0.9, at one 0.7."""

KEEP_SECONDS = 3600.0
"""How long a reader may go on with a version after a newer one was committed."""

UNUSED_PARTS = tuple(
    f"pyarrow._{part}" for part in ("s3fs", "gcsfs", "azurefs", "hdfs", "dataset_parquet", "parquet", "substrait")
)
"""Extension modules of pyarrow that load libraries of their own, and that reading a local table never touches."""

SCALAR_INDEXES = ("gid", "path", "text_hash")


class LanceSnapshot:
    """One version of the table; see `rse_cli.ports.Snapshot`.

    Parameters
    ----------
    dataset : lance.LanceDataset or None
        The table at one version; None where nothing was ever committed.
    manifest : Manifest
        For the dimension, and the statistics if they are of that version.
    """

    def __init__(self, dataset: lance.LanceDataset | None, manifest: Manifest) -> None:
        self._dataset = dataset
        self._manifest = manifest

    def statistics(self) -> Statistics:
        """Return the manifest's numbers if they are of this version, else add the head rows up."""
        stored = self._manifest.statistics
        if self._dataset is not None and stored is not None and stored.table_version == self._dataset.version:
            return Statistics(stored.n_chunks, stored.mean_lengths)
        return store_rows.add_up(self.summaries().values())

    def files(self) -> list[FileRecord]:
        """Return every head row, sorted by path."""
        records = store_rows.read_records(self._scan(store_rows.HEAD_COLUMNS, filter="ord = -1"))
        return sorted((record for _, record in records), key=lambda record: record.path)

    def summaries(self) -> dict[str, store_rows.FileSummary]:
        """Return what a writer must know of every file, by path."""
        return store_rows.read_summaries(self._scan(store_rows.SUMMARY_COLUMNS, filter="ord = -1"))

    def heads(self, documents: Sequence[int]) -> dict[int, FileRecord]:
        """Return head rows by document number; numbers that no file has are left out."""
        keys = np.unique(np.asarray(documents, np.int64)) << KEY_BITS
        return dict(store_rows.read_records(self._select(store_rows.HEAD_COLUMNS, keys)))

    def nearest(self, vector: Vectors, k: int, paths: Sequence[str] | None) -> tuple[Keys, NDArray[np.float64]]:
        """Return keys and cosines of the `k` nearest chunks among `paths`, best first, ties by key."""
        if k < 1 or (paths is not None and not paths):
            return np.zeros(0, np.int64), np.zeros(0)
        import pyarrow as pa

        query = {
            "column": "vector",
            # As an Arrow array: for a numpy one, pyarrow would import numpy.ma (15 ms).
            "q": pa.array(np.asarray(vector, np.float32).ravel()),
            "k": k,
            "metric": "cosine",
            "refine_factor": REFINE_FACTOR,
            # With `nprobes`, a filter would apply inside the probed partitions alone: 1 file in 400 lost 80 % of its
            # chunks. `minimum_nprobes` without a maximum searches all partitions.
            "nprobes" if paths is None else "minimum_nprobes": PROBED_PARTITIONS,
        }
        table = self._scan(
            ("gid", "_distance"), nearest=query, prefilter=True, filter=None if paths is None else filter_paths(paths)
        )
        keys, distances = table["gid"].to_numpy(), table["_distance"].to_numpy().astype(np.float64)
        order = np.lexsort((keys, distances))
        return keys[order], 1.0 - distances[order]

    def matching(self, terms: Sequence[str], k: int, paths: Sequence[str] | None) -> Keys:
        """Return keys of the `k` chunks among `paths` that BM25 ranks highest for any of `terms`, ties by key."""
        if k < 1 or not terms or (paths is not None and not paths):
            return np.zeros(0, np.int64)
        table = self._scan(
            ("gid", "_score"),
            full_text_query=match_terms(terms),
            limit=k,
            prefilter=True,
            filter=None if paths is None else filter_paths(paths),
        )
        keys: Keys = table["gid"].to_numpy()
        return keys[np.lexsort((keys, -table["_score"].to_numpy()))]

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return for each term how many chunks hold it, those not indexed yet included."""
        if self._dataset is None:
            return [0] * len(terms)
        with explain_failure(self._dataset.uri):
            return [
                self._dataset.scanner(full_text_query=match_terms([term]), columns=[], with_row_id=True).count_rows()
                for term in terms
            ]

    def evidence(self, keys: Sequence[int]) -> EvidenceRows:
        """Return the columns that scoring reads for those of `keys` that are chunks, sorted by key."""
        table = self._select(store_rows.EVIDENCE_COLUMNS, keep_chunk_keys(keys))
        return store_rows.read_evidence(table, self._manifest.model.dimension)

    def chunks(self, keys: Sequence[int]) -> list[StoredChunk]:
        """Return those of `keys` that are chunks, sorted by key."""
        return store_rows.read_chunks(self._select(store_rows.CHUNK_COLUMNS, keep_chunk_keys(keys)))

    def vectors(self, text_hashes: Sequence[str]) -> dict[str, Vectors]:
        """Return the vector of one chunk for each of `text_hashes` that the index holds."""
        if not text_hashes:
            return {}
        found = self._scan(("gid", "text_hash"), filter=f"text_hash IN ({quote_texts(set(text_hashes))})")
        # Boilerplate repeats a hash thousands of times: fetch one vector of each.
        by_hash = dict(zip(found["text_hash"].to_pylist(), found["gid"].to_pylist(), strict=True))
        rows = self.evidence(list(by_hash.values()))
        return {text_hash: rows.vectors[np.searchsorted(rows.keys, key)] for text_hash, key in by_hash.items()}

    def _select(self, columns: Iterable[str], keys: Keys) -> pa.Table:
        """Return the rows with `keys`, found by the index on ``gid``.

        Cold, 20 ms for 2,700 of 10,000 rows and 34 for 3,900 of 100,000. By row ids, for which all keys must be read
        first, it takes 15 and 33; by `take` with positions 97.
        """
        chosen = ",".join(map(str, keys.tolist()))
        return self._scan(columns, filter=f"gid IN ({chosen})" if chosen else "false")

    def _scan(self, columns: Iterable[str], **options: Any) -> pa.Table:
        if self._dataset is None or options.get("filter") == "false":
            return store_rows.make_empty_table(columns, self._manifest.model.dimension)
        with explain_failure(self._dataset.uri):
            return self._dataset.to_table(columns=list(columns), **options)


class LanceStore:
    """The store in a folder; see `rse_cli.ports.Store`.

    Parameters
    ----------
    folder : Path
        A folder with a manifest.
    manifest : Manifest
        As read when the command began; a writer refuses to go on when another process changed it.
    lock_seconds : float
        How long a writer waits for another one.
    """

    def __init__(self, folder: Path, manifest: Manifest, lock_seconds: float = LOCK_SECONDS) -> None:
        self._folder = folder
        self._manifest = manifest
        self._lock_seconds = lock_seconds
        self._held = False
        self._summaries: dict[str, store_rows.FileSummary] = {}

    def snapshot(self) -> LanceSnapshot:
        """Return the newest committed version; an index without a commit has no files."""
        manifest = read_manifest(self._folder)
        if not is_same_index(manifest, self._manifest):
            raise StoreError(f"another process rebuilt the store {self._folder}: run the command again")
        return LanceSnapshot(_open_dataset(self._folder), manifest)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the index for writing. Every writing method takes the lock by itself where it isn't held.

        Raises
        ------
        StoreError
            If another process holds it too long, or has rebuilt the index for another model or root.
        """
        if self._held:
            yield
            return
        with lock_store(self._folder, self._lock_seconds):
            self._held = True
            try:
                self._summaries = self.snapshot().summaries()
                yield
            finally:
                self._held = False

    def replace(self, files: Sequence[IndexedFile], removed: Sequence[str]) -> None:
        """In one commit, put `files` in place of what their paths held, and drop `removed` paths.

        Raises
        ------
        ValueError
            If a file is given twice or is not fit for the table; nothing is written then.
        StoreError
            If the table can't be written.
        """
        for file in files:
            store_rows.validate_file(file, self._manifest.model.dimension)
        paths = [file.record.path for file in files]
        if len(set(paths)) < len(paths):
            raise ValueError("a file is given twice")
        with self.lock():
            outdated = sorted({*paths, *removed} & self._summaries.keys())
            if not files and not outdated:
                return
            first = 1 + max((summary.number for summary in self._summaries.values()), default=-1)
            fresh = (path for path in paths if path not in self._summaries)
            numbers = {path: number for number, path in enumerate(fresh, first)}
            numbers |= {path: self._summaries[path].number for path in paths if path in self._summaries}
            rows = store_rows.build_rows(files, [numbers[path] for path in paths], self._manifest.model.dimension)
            with explain_failure(self._folder):
                self._merge(rows, outdated)
            for path in outdated:
                del self._summaries[path]
            for file in files:
                self._summaries[file.record.path] = store_rows.summarise_record(file.record, numbers[file.record.path])
            self._store_statistics()

    def touch(self, records: Sequence[FileRecord]) -> None:
        """In one commit, replace the head rows of files whose chunks stay.

        Raises
        ------
        ValueError
            If a file isn't in the index, or its number of chunks would change.
        StoreError
            If the table can't be written.
        """
        if not records:
            return
        with self.lock():
            for record in records:
                known = self._summaries.get(record.path)
                if known is None or known.n_chunks != record.n_chunks:
                    raise ValueError(f"{record.path}: no such file with {record.n_chunks} chunks in the index")
            numbers = [self._summaries[record.path].number for record in records]
            rows = store_rows.build_head_rows(records, numbers, self._manifest.model.dimension)
            with explain_failure(self._folder):
                self._merge(rows, [])
            for record, number in zip(records, numbers, strict=True):
                self._summaries[record.path] = store_rows.summarise_record(record, number)
            self._store_statistics()

    def vectors(self, text_hashes: Sequence[str]) -> dict[str, Vectors]:
        """Return vectors already in the index, by hash."""
        return self.snapshot().vectors(text_hashes)

    def maintain(self) -> None:
        """Bring the search indexes up to date and drop versions that no reader can still hold.

        Raises
        ------
        StoreError
            If the table can't be written.
        """
        with self.lock():
            if _open_dataset(self._folder) is None:
                return
            with explain_failure(self._folder):
                table = _open_table(self._folder, self._manifest.model.dimension)
                _update_indexes(table, self._folder)
                _drop_versions(self._folder)
            self._store_statistics()

    def _merge(self, rows: pa.Table, outdated: Sequence[str]) -> None:
        """Commit `rows`; every other row of the paths `outdated` goes in the same commit."""
        table = _open_table(self._folder, self._manifest.model.dimension)
        if not rows.num_rows:
            table.delete(filter_paths(outdated))
            return
        merge = table.merge_insert("gid").when_matched_update_all().when_not_matched_insert_all()
        if outdated:
            # This clause reads the whole table (0.2 s at 100,000 rows), so it stays out where nothing can go.
            merge = merge.when_not_matched_by_source_delete(filter_paths(outdated))
        # Head rows have no vector; every other vector was checked.
        merge.execute(rows, on_bad_vectors="null")

    def _store_statistics(self) -> None:
        dataset = _open_dataset(self._folder)
        if dataset is not None:
            totals = store_rows.add_up(self._summaries.values())
            stored = StoredStatistics(dataset.version, totals.n_chunks, totals.mean_lengths)
            write_manifest(self._folder, dataclasses.replace(read_manifest(self._folder), statistics=stored))


def filter_paths(paths: Sequence[str]) -> str:
    """Return the filter for rows of `paths`, at least one."""
    return f"path IN ({quote_texts(paths)})"


def quote_texts(texts: Iterable[str]) -> str:
    """Return `texts` as literals of a filter, in which only ``'`` needs doubling."""
    return ",".join("'" + text.replace("'", "''") + "'" for text in sorted(texts))


def keep_chunk_keys(keys: Sequence[int]) -> Keys:
    """Return the distinct keys of chunks among `keys`, without those of head rows."""
    distinct = np.unique(np.asarray(keys, np.int64))
    chunk_keys: Keys = distinct[(distinct & ((1 << KEY_BITS) - 1)) != 0]
    return chunk_keys


def match_terms(terms: Sequence[str]) -> Any:
    """Return the full-text query for any of `terms`; as an object, so that no term is read as syntax."""
    from lance.query import MatchQuery

    return MatchQuery(" ".join(terms), "terms")


@contextmanager
def explain_failure(place: Path | str) -> Iterator[None]:
    """Turn what lance and lancedb raise into one line."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        hint = "run the command again" if "not found" in str(error).lower() else "rebuild with `rse ingest --rebuild`"
        raise StoreError(f"the store {place} failed: {lines[0][:200]}: {hint}") from error


def _silence_logs() -> None:
    """Keep both libraries, which log to stderr at will, quiet unless the user asks."""
    os.environ.setdefault("LANCE_LOG", "error")
    os.environ.setdefault("LANCEDB_LOG", "error")
    os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")


def _import_lance() -> Any:
    """Import lance without the parts of pyarrow that only remote or Parquet files need: 10 MB of a query's memory."""
    _silence_logs()
    if "lance" not in sys.modules:
        absent = [name for name in UNUSED_PARTS if name not in sys.modules]
        # What is None there can't be imported, which pyarrow takes for a build without that part.
        sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
        try:
            import lance
        finally:
            for name in absent:
                del sys.modules[name]
    import lance

    return lance


def _open_dataset(folder: Path) -> lance.LanceDataset | None:
    """Open the newest version for reading; None where no commit was made, or a kill left half a table."""
    location = folder / TABLE_FOLDER
    if not location.is_dir():
        return None
    lance = _import_lance()
    with explain_failure(folder):
        try:
            return lance.dataset(str(location))
        except ValueError as error:
            if "was not found" in str(error):
                return None
            raise


def _open_table(folder: Path, dimension: int) -> Table:
    """Open the newest version for writing, with every index that must be there before rows are."""
    _silence_logs()
    import lancedb
    from lancedb.index import FTS, BTree

    connection = lancedb.connect(str(folder))
    try:
        table = connection.open_table(TABLE_NAME)
    except ValueError:
        # Also where a kill left half a table, which creating it again mends.
        table = connection.create_table(TABLE_NAME, schema=store_rows.build_schema(dimension))
    present = {column for index in table.list_indices() for column in index.columns}
    if "terms" not in present:
        words = FTS(
            base_tokenizer="whitespace",
            lower_case=False,
            ascii_folding=False,
            stem=False,
            remove_stop_words=False,
            max_token_length=None,
        )
        table.create_index("terms", config=words)
    for column in SCALAR_INDEXES:
        if column not in present:
            table.create_index(column, config=BTree())
    return table


def _update_indexes(table: Table, folder: Path) -> None:
    """Build the vector index once it pays, and bring all indexes up to date once searches feel it."""
    import lance
    from lancedb.index import IvfSq

    dataset = lance.dataset(str(folder / TABLE_FOLDER))
    indexes = list(table.list_indices())
    if _wants_vector_index(dataset, [index.name for index in indexes if index.columns == ["vector"]]):
        table.create_index("vector", config=IvfSq(distance_type="cosine", target_partition_size=PARTITION_ROWS))
    if len(dataset.get_fragments()) > FRAGMENTS:
        # Ten years keep all versions: `_drop_versions` knows better which have readers.
        table.optimize(cleanup_older_than=timedelta(days=3650))
    elif any((index.num_unindexed_rows or 0) > UNINDEXED_ROWS for index in indexes):
        # A new piece of index beside the old one: 55 ms at 100,000 rows, where merging them takes a second.
        lance.dataset(str(folder / TABLE_FOLDER)).optimize.optimize_indices(num_indices_to_merge=0)


def _wants_vector_index(dataset: lance.LanceDataset, present: Sequence[str]) -> bool:
    """Tell whether the table has grown to need a vector index, or a new one in place of the one `present`."""
    rows = dataset.count_rows()
    if not present:
        return rows >= VECTOR_INDEX_ROWS
    partitions = dataset.stats.index_stats(present[0])["indices"][0]["num_partitions"]
    return bool(rows > CROWDED * PARTITION_ROWS * partitions)


def _drop_versions(folder: Path) -> None:
    """Drop the versions that were superseded `KEEP_SECONDS` ago.

    A version's own age says nothing: last week's may have been the newest until a moment ago and have readers.
    """
    import lance

    dataset = lance.dataset(str(folder / TABLE_FOLDER))
    now = time.time()
    stamps: list[Any] = [version["timestamp"] for version in dataset.versions()]
    ages = [now - stamp.timestamp() for stamp in stamps]
    settled = [age for age in ages if age >= KEEP_SECONDS]
    if len(settled) > 1:
        # The youngest of them was the newest when the time began. A second more keeps it while the call starts.
        dataset.cleanup_old_versions(older_than=timedelta(seconds=min(settled) + 1))
