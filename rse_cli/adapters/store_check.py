"""Looking for damage: the digest of every row, the chain of chunks of every file, and the seal of all else.

Rows are read in batches, once in order and once one by one, as a query reads them. What is kept is a few numbers for
each file, so that memory does not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rse_cli.adapters.freed_blocks import return_freed_blocks
from rse_cli.adapters.lance_faults import is_lance_fault
from rse_cli.adapters.lance_snapshot import open_dataset
from rse_cli.adapters.manifest import Manifest, is_manifest_whole
from rse_cli.adapters.panics import hide_panics
from rse_cli.adapters.store_folder import TABLE_FOLDER
from rse_cli.adapters.store_readers import enter_as_reader, leave_as_reader
from rse_cli.adapters.store_rows import digest_rows
from rse_cli.adapters.store_seal import check_seal, read_fragment_paths
from rse_cli.dataclass import dataclass
from rse_cli.ports import KEY_BITS, StorePlace
from rse_cli.timings import stage

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

BATCH_ROWS = 512
"""1.5 MB of rows with vectors of 384 numbers; four times as many are read in three quarters of the time, and take 65 MB
more, as lance decodes every column in parallel."""

BUFFER_BYTES = 32_000_000
"""What lance may read ahead; by default it is 2 GB."""

CHANGED, INCOMPLETE, UNREADABLE = "not as it was written", "not all of its rows are there", "can't be read"

Numbers = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Damage:
    """What is wrong with an index.

    Parameters
    ----------
    n_files, n_rows : int
        How much was looked at and found whole or not.
    files : mapping of str to str
        Paths of damaged files and what is wrong with each, sorted.
    rows : tuple of int
        Ids of damaged rows; whose they are, their own columns can't be trusted to say.
    fragments : tuple of int
        Pieces of the table that can't be read at all.
    unnamed : int
        Rows of such pieces whose files can't be told.
    indexes : tuple of str
        Search indexes, by their files.
    is_seal_lost : bool
        Whether the search indexes can't be checked, as the seal of all files but those of rows is gone.
    beyond_repair : str
        What makes every row doubtful, empty if nothing does.
    """

    n_files: int = 0
    n_rows: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[int, ...] = ()
    fragments: tuple[int, ...] = ()
    unnamed: int = 0
    indexes: tuple[str, ...] = ()
    is_seal_lost: bool = False
    beyond_repair: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        parts = (self.files, self.rows, self.fragments, self.indexes, self.is_seal_lost, self.beyond_repair)
        return not any(parts)


@dataclass(slots=True)
class _Chain:
    """The rows of one document so far: sums that only the whole chain of chunks gives, and its head row."""

    path: str = ""
    n_rows: int = 0
    n_heads: int = 0
    n_chunks: int = 0
    order: int = 0
    links: int = 0
    expected: tuple[int, int, int] = (0, 0, 0)

    def add(self, other: _Chain) -> None:
        self.path = self.path or other.path
        self.n_rows += other.n_rows
        self.n_heads += other.n_heads
        self.n_chunks += other.n_chunks
        self.order = (self.order + other.order) % 2**64
        self.links = (self.links + other.links) % 2**64
        self.expected = max(self.expected, other.expected)

    def is_whole(self) -> bool:
        return self.n_heads == 1 and (self.n_chunks, self.order, self.links) == self.expected


@dataclass(slots=True)
class _Tally:
    """What is known of the documents, by number, and of damaged rows: id, number and path as read."""

    chains: dict[int, _Chain] = field(default_factory=dict)
    damaged: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, other: _Tally) -> None:
        for number, chain in other.chains.items():
            self.chains.setdefault(number, _Chain()).add(chain)
        self.damaged += other.damaged


@stage("verify")
def find_damage(store: StorePlace, manifest: Manifest) -> Damage:
    """Read all of an index and say what is damaged.

    Parameters
    ----------
    store : Path or Bucket
        The store.
    manifest : Manifest
        As read from it.

    Raises
    ------
    StoreError
        If the table can't be opened.
    """
    if not is_manifest_whole(store):
        return Damage(beyond_repair="its manifest is not as it was written")
    return_freed_blocks()
    entry = enter_as_reader(store)
    try:
        dataset = open_dataset(store)
        if dataset is None:
            lost = manifest.statistics is not None
            return Damage(beyond_repair="its table is gone" if lost else "")
        stored = manifest.statistics
        sealed = dataset.version if stored and stored.settled and stored.table_version == dataset.version else 0
        seal = check_seal(store, dataset.version, sealed)
        if seal.records:
            return Damage(beyond_repair=f"{TABLE_FOLDER}/{seal.records[0]} is not as it was written")
        with hide_panics():
            damage = _check_rows(dataset, read_fragment_paths(store))
        return replace(damage, indexes=seal.indexes, is_seal_lost=seal.is_lost)
    finally:
        leave_as_reader(entry)


def _check_rows(dataset: lance.LanceDataset, paths_of_fragments: Mapping[int, Sequence[str]]) -> Damage:
    whole = _Tally()
    files: dict[str, str] = {}
    n_rows, unnamed, broken, position = 0, 0, [], 0
    for fragment in dataset.get_fragments():
        live = fragment.physical_rows - fragment.num_deletions
        tally = _Tally()
        try:
            for batch in _read_batches(dataset, fragment, position):
                _count_batch(tally, *batch)
        except BaseException as fault:
            if not is_lance_fault(fault):
                raise
            broken.append(fragment.fragment_id)
            names = paths_of_fragments.get(fragment.fragment_id, [])
            files |= dict.fromkeys(names, UNREADABLE)
            unnamed += live if not names else 0
        else:
            whole.add(tally)
        n_rows += live
        position += live
    paths = {number: chain.path for number, chain in whole.chains.items()}
    # The seal may be older than a file's rows, which then lie elsewhere.
    for chain in whole.chains.values():
        if chain.is_whole():
            files.pop(chain.path, None)
        else:
            files.setdefault(chain.path, INCOMPLETE)
    files |= {paths.get(number, path): CHANGED for _, number, path in whole.damaged}
    return Damage(
        n_files=len({*paths.values(), *files}),
        n_rows=n_rows,
        files=dict(sorted(files.items())),
        rows=tuple(row for row, _, _ in whole.damaged),
        fragments=tuple(broken),
        unnamed=unnamed,
    )


def _read_batches(
    dataset: lance.LanceDataset, fragment: lance.LanceFragment, position: int
) -> Iterator[tuple[pa.Table, NDArray[np.bool_]]]:
    """Yield the rows of a fragment, whose first is the table's row `position`, and for each whether it is sound."""
    import pyarrow as pa

    names = dataset.schema.names
    scanner = dataset.scanner(
        fragments=[fragment],
        with_row_id=True,
        batch_size=BATCH_ROWS,
        batch_readahead=1,
        io_buffer_size=BUFFER_BYTES,
    )
    for batch in scanner.to_batches():
        table = pa.Table.from_batches([batch])
        columns = table.select(names)
        sound = np.array([a == b for a, b in zip(digest_rows(columns), table["digest"].to_pylist(), strict=True)], bool)
        if sound.all():
            # Reading single rows follows other notes in the file than reading it through.
            again = dataset.take(list(range(position, position + table.num_rows)), columns=names)
            if not again.equals(columns):
                pairs = zip(digest_rows(again), table["digest"].to_pylist(), strict=True)
                sound = np.array([a == b for a, b in pairs], bool)
        position += table.num_rows
        yield table, sound


def _count_batch(tally: _Tally, table: pa.Table, sound: NDArray[np.bool_]) -> None:
    """Add the rows of a batch to what is known of their documents."""
    for at in np.flatnonzero(~sound):
        row = table.slice(at, 1)
        number, path = row["gid"][0].as_py() >> KEY_BITS, _list_texts(row["path"])[0]
        tally.damaged.append((row["_rowid"][0].as_py(), number, path))
    table = table.filter(sound)
    if not table.num_rows:
        return
    of_rows, first, place = np.unique(table["gid"].to_numpy() >> KEY_BITS, return_index=True, return_inverse=True)
    ords = table["ord"].to_numpy()
    is_chunk = ords >= 0
    starts, ends = (table[name].fill_null(0).to_numpy() for name in ("start_char", "end_char"))
    order, links = np.zeros((2, len(of_rows)), np.uint64)
    np.add.at(order, place[is_chunk], _scatter(ords[is_chunk]))
    np.add.at(links, place[is_chunk], _scatter(starts[is_chunk]) - _scatter(ends[is_chunk]))
    n_rows = np.bincount(place, minlength=len(of_rows))
    n_chunks = np.bincount(place[is_chunk], minlength=len(of_rows))
    paths = table["path"].take(first).to_pylist()
    for at, number in enumerate(of_rows.tolist()):
        n = int(n_rows[at] - n_chunks[at])
        chain = _Chain(paths[at], int(n_rows[at]), n, int(n_chunks[at]), int(order[at]), int(links[at]))
        tally.chains.setdefault(number, _Chain()).add(chain)
    heads = table.filter(~is_chunk).select(["gid", "n_chunks", "n_chars"]).to_pylist()
    for head in heads:
        tally.chains[head["gid"] >> KEY_BITS].expected = _expect_chain(head["n_chunks"], head["n_chars"])


def _expect_chain(n_chunks: int, n_chars: int) -> tuple[int, int, int]:
    """Return count, order and links of a whole chain: starts and ends cancel out but for the first and the last."""
    order = int(_scatter(np.arange(n_chunks)).sum(dtype=np.uint64))
    outer = _scatter(np.array([0, n_chars if n_chunks else 0]))
    return n_chunks, order, (outer[:1] - outer[1:]).item()


def _scatter(values: NDArray[np.int64]) -> Numbers:
    """Return a well-mixed number for each value, so that wrong sums don't cancel out (splitmix64 by Vigna)."""
    mixed = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _list_texts(column: pa.ChunkedArray) -> list[str]:
    """Return texts that may be damaged."""
    import pyarrow as pa

    return [(text or b"").decode("utf-8", "replace") for text in column.cast(pa.binary()).to_pylist()]
