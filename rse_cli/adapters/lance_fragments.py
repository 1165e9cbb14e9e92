"""Rows that are written beside the table as fragments, perhaps by several processes, made visible by one commit.

A merge, lance's own way to replace rows, reads the whole table: 160 MB more at 240,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rse_cli.adapters.lance_snapshot import import_lance
from rse_cli.adapters.store_files import locate_table
from rse_cli.ports import StorePlace

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

Scatter = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Does what `map` does, in other processes that reach the store: function and items have to be fit to be sent there."""

FRAGMENT_ROWS = 512
"""Least rows of one of several fragments: what a commit of one machine holds, so that a larger one has more of them."""


def commit_fragments(
    place: StorePlace,
    dataset: lance.LanceDataset,
    rows: pa.Table,
    outdated: str | None,
    scatter: Scatter | None = None,
) -> None:
    """Write `rows` side by side; one commit makes them visible and drops the rows that `outdated` describes.

    Parameters
    ----------
    place : Path or Bucket
        The store.
    dataset : lance.LanceDataset
        The version to go on from. Another writer's commit on top of it that can't be joined with this one is an error.
    rows : pyarrow.Table
        At least one; none whose key a row has that isn't `outdated`.
    outdated : str or None
        A filter.
    scatter : callable or None
        See `Scatter`; None writes one fragment here, as every fragment is opened by every reader. What a process that
        died had written is no part of the table; a later cleanup drops it.
    """
    lance = import_lance()
    rows = rows.cast(dataset.schema)
    n_parts = max(1, rows.num_rows // FRAGMENT_ROWS) if scatter else 1
    edges = [rows.num_rows * number // n_parts for number in range(n_parts + 1)]
    parts = [rows.slice(start, end - start) for start, end in pairwise(edges)]
    fresh = [fragment for part in (scatter or map)(partial(_write_part, place), parts) for fragment in part]
    removed, reduced = _drop_rows(dataset, outdated)
    operation: Any = lance.LanceOperation.Append(fresh)
    if removed or reduced:
        operation = lance.LanceOperation.Update(
            removed_fragment_ids=removed, updated_fragments=reduced, new_fragments=fresh
        )
    location, options = locate_table(place)
    lance.LanceDataset.commit(location, operation, read_version=dataset.version, storage_options=options)


def _write_part(place: StorePlace, part: pa.Table) -> list[Any]:
    """Write rows beside the table and return what a commit needs to know of them."""
    import_lance()
    from lance.fragment import write_fragments

    location, options = locate_table(place)
    written: list[Any] = write_fragments(part, location, mode="append", storage_options=options)
    return written


def _drop_rows(dataset: lance.LanceDataset, outdated: str | None) -> tuple[list[int], list[Any]]:
    """Mark rows as deleted; return the fragments of which nothing is left, and what is left of others."""
    removed, reduced = [], []
    for fragment in dataset.get_fragments() if outdated else ():
        if not fragment.count_rows(outdated):
            continue
        left = fragment.delete(outdated)
        if left is None:
            removed.append(fragment.fragment_id)
        else:
            reduced.append(left)
    return removed, reduced
