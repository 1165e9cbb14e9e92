"""Taking damage out of an index, so that an ingest can put what is missing in its place."""

from __future__ import annotations

from collections.abc import Sequence

from rse_cli.adapters.lance_faults import explain_failure
from rse_cli.adapters.lance_searches import filter_paths
from rse_cli.adapters.lance_snapshot import open_dataset
from rse_cli.adapters.panics import hide_panics
from rse_cli.adapters.store_check import Damage
from rse_cli.ports import StorePlace

STEP = 500
"""Paths or rows that one condition names."""


def remove_damage(store: StorePlace, damage: Damage) -> None:
    """Drop pieces of the table that can't be read, all rows of damaged files, and damaged search indexes.

    The caller holds the store's lock. A kill in between leaves files that are in part or not at all there, which the
    next look finds.

    Parameters
    ----------
    store : Path or Bucket
        The store.
    damage : Damage
        As found in the newest version; none that is beyond repair.

    Raises
    ------
    StoreError
        If the table can't be written.
    """
    with hide_panics(), explain_failure(store):
        _drop_fragments(store, damage.fragments)
        dataset = open_dataset(store)
        if dataset is None:
            return
        if damage.indexes or damage.rows or damage.is_seal_lost:
            # An index says where rows were by what they held, so a damaged row would not be found by it. Without the
            # seal any of them may be damaged.
            for name in [index.name for index in dataset.describe_indices()]:
                dataset.drop_index(name)
        paths = list(damage.files)
        conditions = [filter_paths(paths[at : at + STEP]) for at in range(0, len(paths), STEP)]
        rows = list(map(str, damage.rows))
        conditions += [f"_rowid IN ({','.join(rows[at : at + STEP])})" for at in range(0, len(rows), STEP)]
        for condition in conditions:
            dataset.delete(condition)


def _drop_fragments(store: StorePlace, fragments: Sequence[int]) -> None:
    """Commit a version without some pieces; no row of them need be read for that."""
    if not fragments:
        return
    import lance

    dataset = open_dataset(store)
    assert dataset is not None
    operation = lance.LanceOperation.Delete([], fragments, "true")
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)
