"""Reading the index: one version of its table through lance, which starts six times faster than lancedb."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rse_cli.adapters import store_columns
from rse_cli.adapters.code_pages import release_code_pages
from rse_cli.adapters.lance_faults import explain_failure
from rse_cli.adapters.lance_searches import (
    EXACT_CHUNKS,
    filter_keys,
    filter_paths,
    is_tied,
    is_undecided,
    match_terms,
    quote_texts,
    rank_matching,
    rank_nearest,
    search_terms,
    search_vectors,
)
from rse_cli.adapters.manifest import Manifest
from rse_cli.adapters.panics import hide_panics
from rse_cli.adapters.store_files import locate_table
from rse_cli.core.distinct import find_distinct
from rse_cli.ports import KEY_BITS, EvidenceRows, FileRecord, Keys, Statistics, StoredChunk, StorePlace, Vectors
from rse_cli.timings import stage

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

    from rse_cli.adapters.held_snapshot import HeldSnapshot

UNUSED_PARTS = tuple(
    f"pyarrow._{part}" for part in ("s3fs", "gcsfs", "azurefs", "hdfs", "dataset_parquet", "parquet", "substrait")
)
"""Extension modules of pyarrow that load libraries of their own, and that reading a local table never touches."""

ROWS_AT_A_TIME = 1_024
"""Lance keeps what it read rows with: 18 MB for 5,000 head rows among 15,000 rows that are read at once, 3 in parts.
Parts of 256 would take twice the CPU time."""

MORE_TIED = 8
"""Times as many chunks are asked for where equal scores leave open which are the best."""

Row = TypeVar("Row")


class LanceSnapshot:
    """One version of the table; see `rse_cli.ports.Snapshot`.

    Parameters
    ----------
    folder : Path or Bucket
        The store.
    dataset : lance.LanceDataset or None
        The table at one version; None where nothing was ever committed.
    manifest : Manifest
        For the dimension, and the statistics if they are of that version.
    """

    def __init__(self, folder: StorePlace, dataset: lance.LanceDataset | None, manifest: Manifest) -> None:
        self._folder = folder
        self._dataset = dataset
        self._manifest = manifest
        self._searched = False

    in_memory = False

    @property
    def version(self) -> int:
        """The table's version; 0 where nothing was ever committed."""
        return self._dataset.version if self._dataset is not None else 0

    @stage("fetch")
    def hold(self) -> HeldSnapshot:
        """Return the same version with its chunks in memory."""
        from rse_cli.adapters.held_snapshot import hold_table

        chunks = self._scan(store_columns.HELD_COLUMNS, filter="ord >= 0")
        heads = self._scan(store_columns.HEAD_COLUMNS, filter="ord = -1")
        with self._explain():
            return hold_table(self, heads, chunks, self._manifest.model.dimension)

    @stage("fetch")
    def statistics(self) -> Statistics:
        """Return the manifest's numbers if they are of this version, else add the head rows up."""
        stored = self._manifest.statistics
        if self._dataset is not None and stored is not None and stored.table_version == self._dataset.version:
            return Statistics(stored.n_chunks, stored.mean_lengths)
        return store_columns.add_up(self.summaries().values())

    def is_settled(self) -> bool:
        """Tell whether the last run came to its end, so that the search indexes are up to date."""
        stored = self._manifest.statistics
        if self._dataset is None:
            return True
        return stored is not None and stored.settled and stored.table_version == self._dataset.version

    def count_waiting(self) -> int | None:
        """Return how many rows the vector index doesn't hold yet; None where there is no such index."""
        if self._dataset is None:
            return None
        with self._explain():
            names = [index.name for index in self._dataset.describe_indices() if index.field_names == ["vector"]]
            return int(self._dataset.stats.index_stats(names[0])["num_unindexed_rows"]) if names else None

    @stage("fetch")
    def files(self) -> list[FileRecord]:
        """Return every head row, sorted by path."""
        records = self._read_heads(store_columns.HEAD_COLUMNS, store_columns.read_records)
        return sorted((record for _, record in records), key=lambda record: record.path)

    @stage("fetch")
    def summaries(self) -> dict[str, store_columns.FileSummary]:
        """Return what a writer must know of every file, by path."""
        return dict(self._read_heads(store_columns.SUMMARY_COLUMNS, store_columns.read_summaries))

    @stage("fetch")
    def heads(self, documents: Sequence[int]) -> dict[int, FileRecord]:
        """Return head rows by document number; numbers that no file has are left out."""
        keys = find_distinct(np.asarray(documents, np.int64)) << KEY_BITS
        return dict(store_columns.read_records(self._select(store_columns.HEAD_COLUMNS, keys)))

    @stage("fetch")
    def document_vectors(self) -> tuple[Keys, Vectors]:
        """Return the numbers of all documents that have chunks, ascending, and their vectors."""
        table = self._scan(("gid", "document_vector"), filter="document_vector IS NOT NULL").sort_by("gid")
        numbers: Keys = table["gid"].to_numpy() >> KEY_BITS
        return numbers, self._read_vectors(table, "document_vector")

    @stage("search")
    def nearest(self, vector: Vectors, k: int, paths: Sequence[str] | None) -> tuple[Keys, NDArray[np.float64]]:
        """Return keys and cosines of the `k` nearest chunks among `paths`, best first, ties by key."""
        table = self._search_vectors(vector, k, paths)
        # Without an index, head rows, which have no vector, come last.
        keys = table["gid"].to_numpy()
        keys, cosines = rank_nearest(vector, keys[is_chunk_key(keys)], self._read_vectors(table, "vector"))
        if is_undecided(cosines, k) and (paths is not None or self.statistics().n_chunks <= EXACT_CHUNKS):
            keys, cosines = rank_nearest(vector, *self._read_all_vectors(paths))
        return keys[:k], cosines[:k]

    def _search_vectors(self, vector: Vectors, k: int, paths: Sequence[str] | None) -> pa.Table:
        """Return keys and vectors of the rows among which the `k` nearest chunks are."""
        search = search_vectors(vector, k, paths, self.statistics().n_chunks)
        # Unless it is asked for by name, the distance is added all the same, with a warning.
        table = self._scan(("gid", "vector", "_distance"), **search)
        if not self._searched:
            self._searched = True
            release_code_pages("lance.abi3")
        return table

    @stage("search")
    def matching(self, terms: Sequence[str], k: int, paths: Sequence[str] | None) -> Keys:
        """Return keys of the `k` chunks among `paths` that BM25 ranks highest for any of `terms`, ties by key."""
        table = self.search_terms(terms, k, paths, ("gid",))
        return rank_matching(table["gid"].to_numpy(), table["_score"].to_numpy(), k)

    def search_terms(
        self, terms: Sequence[str], k: int, paths: Sequence[str] | None, columns: Sequence[str]
    ) -> pa.Table:
        """Return `columns` and ``_score`` of the chunks that BM25 ranks as high for any of `terms` as the `k`-th."""
        limit = k and k + 1
        while True:
            table = self._scan((*columns, "_score"), **search_terms(terms, limit, paths))
            if not is_tied(table["_score"].to_numpy(), k, limit):
                return table
            limit *= MORE_TIED

    @stage("search")
    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return for each term how many chunks hold it, those not indexed yet included."""
        if self._dataset is None:
            return [0] * len(terms)
        with self._explain():
            return [
                self._dataset.scanner(full_text_query=match_terms([term]), columns=[], with_row_id=True).count_rows()
                for term in terms
            ]

    @stage("fetch")
    def evidence(self, keys: Sequence[int] | Keys) -> EvidenceRows:
        """Return the columns that scoring reads for those of `keys` that are chunks, sorted by key."""
        table = self._select(store_columns.EVIDENCE_COLUMNS, keep_chunk_keys(keys))
        with self._explain():
            return store_columns.read_evidence(table, self._manifest.model.dimension)

    @stage("fetch")
    def chunks(self, keys: Sequence[int]) -> list[StoredChunk]:
        """Return those of `keys` that are chunks, sorted by key."""
        return store_columns.read_chunks(self._select(store_columns.CHUNK_COLUMNS, keep_chunk_keys(keys)))

    @stage("fetch")
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
        return self._scan(columns, filter=filter_keys(keys.tolist()))

    def _scan(self, columns: Iterable[str], **options: Any) -> pa.Table:
        if self._dataset is None or options.get("filter") == "false":
            return store_columns.make_empty_table(columns, self._manifest.model.dimension)
        with self._explain():
            return self._dataset.to_table(columns=list(columns), **options)

    def _read_heads(self, columns: Iterable[str], read: Callable[[pa.Table], Iterable[Row]]) -> list[Row]:
        """Return what `read` makes of all head rows, few of which are in memory as Arrow has them."""
        if self._dataset is None:
            return []
        import pyarrow as pa

        with self._explain():
            batches = self._dataset.to_batches(columns=list(columns), filter="ord = -1", batch_size=ROWS_AT_A_TIME)
            return [row for batch in batches for row in read(pa.Table.from_batches([batch]))]

    def _read_all_vectors(self, paths: Sequence[str] | None) -> tuple[Keys, Vectors]:
        """Return keys and vectors of all chunks of `paths`."""
        chosen = "ord >= 0" if paths is None else f"ord >= 0 AND {filter_paths(paths)}"
        table = self._scan(("gid", "vector"), filter=chosen)
        return table["gid"].to_numpy(), self._read_vectors(table, "vector")

    def _read_vectors(self, table: pa.Table, column: str) -> Vectors:
        with self._explain():
            return store_columns.read_vectors(table, column, self._manifest.model.dimension)

    @contextmanager
    def _explain(self) -> Iterator[None]:
        with hide_panics(), explain_failure(self._folder, "--repair", self._is_newest):
            yield

    def _is_newest(self) -> bool:
        """Tell whether nothing was committed since, so that nobody has dropped any file of this version."""
        newest = open_dataset(self._folder)
        return newest is not None and self._dataset is not None and _identify(newest) == _identify(self._dataset)


def _identify(dataset: lance.LanceDataset) -> tuple[int, set[str]]:
    """Return a version with its files, as a table that is rebuilt counts its versions anew."""
    files = {file.path for fragment in dataset.get_fragments() for file in fragment.data_files()}
    return dataset.version, files


@stage("fetch")
def open_dataset(folder: StorePlace, version: int | None = None) -> lance.LanceDataset | None:
    """Open a version, the newest where none is named; None where no commit was made, or a kill left half a table."""
    location, options = locate_table(folder)
    if isinstance(folder, Path) and not Path(location).is_dir():
        return None
    lance = import_lance()
    # Which version is the newest was asked a moment before it is opened: by then it may have been dropped.
    with explain_failure(folder, is_newest=lambda: False):
        try:
            return lance.dataset(location, version, storage_options=options)
        except ValueError as error:
            if "was not found" in str(error):
                return None
            raise


@stage("import")
def import_lance() -> Any:
    """Import lance without the parts of pyarrow that only remote or Parquet files need: 10 MB of a query's memory."""
    silence_logs()
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


def silence_logs() -> None:
    """Keep both libraries, which log to stderr at will, quiet unless the user asks."""
    os.environ.setdefault("LANCE_LOG", "error")
    os.environ.setdefault("LANCEDB_LOG", "error")
    os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")


def keep_chunk_keys(keys: Sequence[int] | Keys) -> Keys:
    """Return the distinct keys of chunks among `keys`, without those of head rows."""
    distinct = find_distinct(np.asarray(keys, np.int64))
    return distinct[is_chunk_key(distinct)]


def is_chunk_key(keys: Keys) -> NDArray[np.bool_]:
    """Tell which keys are those of chunks, not of head rows."""
    return np.asarray((keys & ((1 << KEY_BITS) - 1)) != 0)
