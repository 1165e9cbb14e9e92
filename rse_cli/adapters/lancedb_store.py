"""Writing the index: one LanceDB table, made and indexed through lancedb, which takes a second to start; rows are
committed and read back through lance.

The full-text index is made while the table is still empty, because a search without it would fall back on lance's
default tokenizer, which takes ``1.5`` apart. From then on rows that aren't indexed yet are found with its tokenizer.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rse_cli.adapters import store_columns, store_rows
from rse_cli.adapters.lance_faults import explain_failure
from rse_cli.adapters.lance_searches import filter_keys, filter_paths
from rse_cli.adapters.lance_snapshot import LanceSnapshot, open_dataset, silence_logs
from rse_cli.adapters.manifest import Manifest, StoredStatistics, is_same_index, read_manifest, write_manifest
from rse_cli.adapters.store_files import open_files
from rse_cli.adapters.store_lock import LOCK_SECONDS
from rse_cli.adapters.store_readers import enter_as_reader, leave_as_reader
from rse_cli.errors import DamagedStoreError, StoreError
from rse_cli.ports import KEY_BITS, Bucket, FileRecord, IndexedFile, StorePlace, Vectors
from rse_cli.timings import stage

if TYPE_CHECKING:
    import lance
    import pyarrow as pa
    from lancedb.table import Table

    from rse_cli.adapters.lance_fragments import Scatter

TABLE_NAME = "chunks"

SCALAR_INDEXES = ("gid", "path", "text_hash")


class LanceStore:
    """The store in a folder or an object store; see `rse_cli.ports.Store`.

    Parameters
    ----------
    folder : Path or Bucket
        A store with a manifest.
    manifest : Manifest
        As read when the command began; a writer refuses to go on when another process changed it.
    lock_seconds : float
        How long a writer waits for another one.
    announce : callable
        Told in a line which process is waited for, after a while.
    """

    def __init__(
        self,
        folder: StorePlace,
        manifest: Manifest,
        lock_seconds: float = LOCK_SECONDS,
        announce: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._manifest = manifest
        self._lock_seconds = lock_seconds
        self._announce = announce
        self._held = False
        self._scatter: Scatter | None = None
        self._summaries: dict[str, store_columns.FileSummary] | None = None

    def snapshot(self, version: int | None = None) -> LanceSnapshot:
        """Return a committed version, the newest where none is named; an index without a commit has no files."""
        manifest = read_manifest(self._folder)
        if not is_same_index(manifest, self._manifest):
            raise StoreError(f"another process rebuilt the store {self._folder}: run the command again")
        # Before the table is opened, so that what it opens is there as long as it is read.
        entry = enter_as_reader(self._folder)
        dataset = open_dataset(self._folder, version or None)
        if dataset is None and manifest.statistics is not None:
            leave_as_reader(entry)
            raise DamagedStoreError(
                f"the store {self._folder} failed: its table is gone", str(self._folder), "--rebuild"
            )
        snapshot = LanceSnapshot(self._folder, dataset, manifest)
        weakref.finalize(snapshot, leave_as_reader, entry)
        return snapshot

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
        with open_files(self._folder).lock(self._lock_seconds, self._announce):
            self._held = True
            try:
                # Refuses an index that was rebuilt meanwhile.
                self.snapshot()
                self._summaries = None
                yield
            finally:
                self._held = False

    def _list_summaries(self) -> dict[str, store_columns.FileSummary]:
        """Return what the index holds of every file, by path; read once while the lock is held, if at all."""
        if self._summaries is None:
            self._summaries = self.snapshot().summaries()
        return self._summaries

    def scatter_with(self, scatter: Scatter | None) -> None:
        """Let other processes write the rows of files from now on; None for this one alone."""
        self._scatter = scatter

    @stage("write")
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
            summaries = self._list_summaries()
            outdated = sorted({*paths, *removed} & summaries.keys())
            if not files and not outdated:
                return
            first = 1 + max((summary.number for summary in summaries.values()), default=-1)
            fresh = (path for path in paths if path not in summaries)
            numbers = {path: number for number, path in enumerate(fresh, first)}
            numbers |= {path: summaries[path].number for path in paths if path in summaries}
            rows = store_rows.build_rows(files, [numbers[path] for path in paths], self._manifest.model.dimension)
            with explain_failure(self._folder):
                self._commit(rows, filter_paths(outdated) if outdated else None)
            for path in outdated:
                del summaries[path]
            for file in files:
                summaries[file.record.path] = store_columns.summarise_record(file.record, numbers[file.record.path])
            self._store_statistics()

    @stage("write")
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
            summaries = self._list_summaries()
            for record in records:
                known = summaries.get(record.path)
                if known is None or known.n_chunks != record.n_chunks:
                    raise ValueError(f"{record.path}: no such file with {record.n_chunks} chunks in the index")
            numbers = [summaries[record.path].number for record in records]
            rows = store_rows.build_head_rows(
                records, numbers, self._find_document_vectors(numbers), self._manifest.model.dimension
            )
            with explain_failure(self._folder):
                self._commit(rows, filter_keys([number << KEY_BITS for number in numbers]))
            for record, number in zip(records, numbers, strict=True):
                summaries[record.path] = store_columns.summarise_record(record, number)
            self._store_statistics()

    def _find_document_vectors(self, numbers: Sequence[int]) -> list[Vectors | None]:
        """Return what the index holds, as a head row is written whole."""
        known, vectors = self.snapshot().document_vectors()
        held = dict(zip(known.tolist(), vectors, strict=True))
        return [held.get(number) for number in numbers]

    def vectors(self, text_hashes: Sequence[str]) -> dict[str, Vectors]:
        """Return vectors already in the index, by hash."""
        return self.snapshot().vectors(text_hashes)

    @stage("index")
    def maintain(self) -> None:
        """Bring the search indexes up to date and drop versions that no reader can still hold.

        Raises
        ------
        StoreError
            If the table can't be written.
        """
        from rse_cli.adapters.store_seal import seal_table
        from rse_cli.adapters.store_upkeep import drop_versions, update_indexes

        with self.lock():
            if open_dataset(self._folder) is None:
                return
            with explain_failure(self._folder):
                self._open_for_commit()
                update_indexes(self._folder, lambda: _open_table(self._folder, self._manifest.model.dimension))
                drop_versions(self._folder)
                seal_table(self._folder)
            self._store_statistics(settled=True)

    def _commit(self, rows: pa.Table, outdated: str | None) -> None:
        """Commit rows none of whose keys a row has that the filter `outdated` leaves; those that it finds go."""
        from rse_cli.adapters.lance_fragments import commit_fragments

        dataset = self._open_for_commit()
        if rows.num_rows:
            commit_fragments(self._folder, dataset, rows, outdated, self._scatter)
        else:
            dataset.delete(outdated)

    def _open_for_commit(self) -> lance.LanceDataset:
        """Open the newest version, and only then see that the lock is held: who takes it from now on fences this out.

        See `rse_cli.adapters.bucket_files.fence_table`.
        """
        dataset = open_dataset(self._folder)
        if dataset is None or not _list_indexed(dataset) >= {"terms", *SCALAR_INDEXES}:
            dataset = _open_table(self._folder, self._manifest.model.dimension).to_lance()
        open_files(self._folder).confirm_lock()
        return dataset

    def _store_statistics(self, *, settled: bool = False) -> None:
        dataset = open_dataset(self._folder)
        if dataset is not None:
            totals = store_columns.add_up(self._list_summaries().values())
            stored = StoredStatistics(dataset.version, totals.n_chunks, totals.mean_lengths, settled)
            write_manifest(self._folder, dataclasses.replace(read_manifest(self._folder), statistics=stored))


def _list_indexed(dataset: lance.LanceDataset) -> set[str]:
    """Return the columns that have an index."""
    return {name for index in dataset.describe_indices() for name in index.field_names}


def _open_table(folder: StorePlace, dimension: int) -> Table:
    """Open the newest version for writing, with every index that must be there before rows are."""
    silence_logs()
    import lancedb
    from lancedb.index import FTS, BTree

    options = dict(folder.options) if isinstance(folder, Bucket) else None
    connection = lancedb.connect(str(folder), storage_options=options)
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
