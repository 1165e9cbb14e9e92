"""Upkeep of a table after writes: search indexes that keep up with it, few pieces, and no version that nobody reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rse_cli.adapters.lance_searches import PARTITION_ROWS
from rse_cli.adapters.lance_snapshot import open_dataset
from rse_cli.adapters.store_readers import exclude_readers
from rse_cli.ports import StorePlace

if TYPE_CHECKING:
    import lance
    from lancedb.table import Table

VECTOR_INDEX_ROWS = 5_000
"""Median of cold searches with an index and flat: 16 and 29 ms at 6,000 rows, 23 and 71 at 10,000, on a busy machine.
Building one takes 0.25 s there."""

CROWDED = 4
"""Partitions that hold so many times too many rows: their centres were taken from a much smaller index, so rebuild."""

UNINDEXED_ROWS = 1_000
"""Every full-text call scans rows that aren't indexed: 1 ms more for so many, 5 ms for 6,000."""

FRAGMENTS = 20
"""Every batch leaves a fragment that every read opens: at 53 a full-text call took 1.5 ms, at 23 0.9, at one 0.7."""

WASTE = 0.1
"""Share of the table that fragments and deleted rows may take for nothing. Joining costs in proportion to the table, so
that a small one is joined after few updates and a large one seldom. In small updates a small index grew to
at most 1.29 times a fresh one, with 0.15 to 1.47."""

KEEP_SECONDS = 3600.0
"""How long readers may go on with a version after a newer one was committed; without readers it goes at once."""


def update_indexes(folder: StorePlace, open_table: Callable[[], Table]) -> None:
    """Build the vector index once it pays, and bring all indexes up to date once searches feel it.

    Parameters
    ----------
    folder : Path or Bucket
        A store with a table.
    open_table : callable
        Opens its newest version with lancedb, for what lance doesn't do.
    """
    dataset = _reopen(folder)
    indexes = {index.name: index.field_names for index in dataset.describe_indices()}
    if _wants_vector_index(dataset, [name for name, columns in indexes.items() if columns == ["vector"]]):
        from lancedb.index import IvfSq

        kind = IvfSq(distance_type="cosine", target_partition_size=PARTITION_ROWS)
        open_table().create_index("vector", config=kind)
    if _is_scattered(dataset):
        # Only pieces that the same indexes hold are joined.
        _reopen(folder).optimize.optimize_indices()
        # Ten years keep all versions: `drop_versions` knows better which have readers.
        open_table().optimize(cleanup_older_than=timedelta(days=3650))
    elif any(dataset.stats.index_stats(name)["num_unindexed_rows"] > UNINDEXED_ROWS for name in indexes):
        # A new piece of index beside the old one: 55 ms at 100,000 rows, where merging them takes a second.
        _reopen(folder).optimize.optimize_indices(num_indices_to_merge=0)


def _is_scattered(dataset: lance.LanceDataset) -> bool:
    """Tell whether the table lies in too many pieces, or takes much more room than its rows."""
    fragments = dataset.get_fragments()
    sizes = [sum(file.file_size_bytes or 0 for file in fragment.metadata.files) for fragment in fragments]
    rows = [fragment.physical_rows for fragment in fragments]
    # The largest piece takes least for a row: a small one has 31 columns too, and less to compress.
    joined = max(zip(rows, sizes, strict=True), default=(0, 0))
    needed = dataset.count_rows() * joined[1] / max(joined[0], 1)
    return len(fragments) > FRAGMENTS or needed < (1 - WASTE) * sum(sizes)


def _wants_vector_index(dataset: lance.LanceDataset, present: Sequence[str]) -> bool:
    """Tell whether the table has grown to need a vector index, or a new one in place of the one `present`."""
    rows = dataset.count_rows()
    if not present:
        return rows >= VECTOR_INDEX_ROWS
    # An index whose rows have all been replaced is empty, and says nothing of partitions.
    pieces = dataset.stats.index_stats(present[0])["indices"]
    partitions = max((piece.get("num_partitions", 0) for piece in pieces), default=0)
    return bool(rows > CROWDED * PARTITION_ROWS * partitions)


def drop_versions(folder: StorePlace) -> None:
    """Drop all old versions where nobody reads, else those that were superseded `KEEP_SECONDS` ago.

    A version's own age says nothing: last week's may have been the newest until a moment ago and have readers.
    """
    with exclude_readers(folder) as is_alone:
        dataset = _reopen(folder)
        versions: list[Any] = dataset.versions()
        if is_alone:
            if len(versions) > 1:
                dataset.cleanup_old_versions(older_than=timedelta(0))
            return
        now = time.time()
        ages = [now - version["timestamp"].timestamp() for version in versions]
        settled = [age for age in ages if age >= KEEP_SECONDS]
        if len(settled) > 1:
            # The youngest of them was the newest when the time began. A second more keeps it while the call starts.
            dataset.cleanup_old_versions(older_than=timedelta(seconds=min(settled) + 1))


def _reopen(folder: StorePlace) -> lance.LanceDataset:
    """Open the newest version of a table that is there."""
    dataset = open_dataset(folder)
    assert dataset is not None
    return dataset
