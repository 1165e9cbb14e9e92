"""Reads every row of a store, apart from the code that is tested, and says what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rse_cli.adapters.manifest import read_manifest
from rse_cli.adapters.store_files import locate_table, open_files
from rse_cli.adapters.store_folder import MANIFEST_NAME
from rse_cli.adapters.store_rows import digest_rows
from rse_cli.ports import KEY_BITS, StorePlace, make_key
from tests.reliability.victims import State

Rows = list[dict[str, Any]]

NOT_COMPARED = ("gid", "mtime_ns", "ctime_ns", "digest", "vector", "document_vector")
"""Numbers are given out in the order of arrival, stamps are the files', digests hold vectors, which may round."""


def read_rows(store: StorePlace) -> Rows:
    """Return all rows of the newest version; none where nothing was ever committed."""
    import lance

    if not open_files(store).holds(MANIFEST_NAME):
        return []
    read_manifest(store)
    address, options = locate_table(store)
    try:
        table = lance.dataset(address, storage_options=options).to_table()
    except ValueError as fault:
        if "was not found" in str(fault):
            # A kill inside the table's creation leaves a folder without a version.
            return []
        raise
    rows: Rows = table.to_pylist()
    return [row | {"sound": row["digest"] == digest} for row, digest in zip(rows, digest_rows(table), strict=True)]


def list_state(rows: Rows) -> State:
    """Return what the head rows say of the files."""
    return {row["path"]: [row["content_hash"], row["mtime_ns"]] for row in rows if row["ord"] == -1}


def find_faults(rows: Rows) -> list[str]:
    """Say what is wrong: files there twice, in part or without a head, chunks that don't tile, damaged rows."""
    faults = []
    heads = {row["gid"] >> KEY_BITS: row for row in rows if row["ord"] == -1}
    chunks: dict[int, Rows] = {}
    for row in rows:
        if row["ord"] != -1:
            chunks.setdefault(row["gid"] >> KEY_BITS, []).append(row)
    if len({row["gid"] for row in rows}) < len(rows):
        faults.append("a row is there twice")
    if len({head["path"] for head in heads.values()}) < sum(row["ord"] == -1 for row in rows):
        faults.append("a file is there twice")
    faults += [f"chunks without a head: {chunks[number][0]['path']}" for number in chunks.keys() - heads.keys()]
    for number, head in heads.items():
        faults += [f"{head['path']}: {fault}" for fault in _find_file_faults(number, head, chunks.get(number, []))]
    return faults


def _find_file_faults(number: int, head: dict[str, Any], chunks: Rows) -> list[str]:
    chunks = sorted(chunks, key=lambda row: row["ord"])
    faults = []
    if head["n_chunks"] != len(chunks) or [row["ord"] for row in chunks] != list(range(len(chunks))):
        faults.append(f"has {len(chunks)} chunks of {head['n_chunks']}")
    if (head["status"] == "indexed") != bool(chunks):
        faults.append(f"is {head['status']} with {len(chunks)} chunks")
    starts = [0, *(row["end_char"] for row in chunks)]
    if [row["start_char"] for row in chunks] != starts[:-1] or starts[-1] != head["n_chars"]:
        faults.append("its chunks don't tile it")
    for row in [head, *chunks]:
        if row["gid"] != make_key(number, row["ord"]) or row["path"] != head["path"]:
            faults.append(f"row {row['ord']} belongs elsewhere")
        if not row["sound"]:
            faults.append(f"row {row['ord']} has another digest")
    for row in chunks:
        vector = np.array(row["vector"], np.float32)
        if len(row["text"]) != row["end_char"] - row["start_char"] or abs(np.linalg.norm(vector) - 1) > 1e-3:
            faults.append(f"chunk {row['ord']} is damaged")
    return faults


def list_differences(one: StorePlace, other: StorePlace) -> list[str]:
    """Say in what two stores differ, but for stamps, numbers, and vectors within 1e-5."""
    first, second = _key_rows(read_rows(one)), _key_rows(read_rows(other))
    differences = [f"only in one: {key}" for key in sorted(first.keys() ^ second.keys())]
    for key in sorted(first.keys() & second.keys()):
        a, b = first[key], second[key]
        differences += [
            f"{key}: {name} {a[name]!r} or {b[name]!r}" for name in a if name not in NOT_COMPARED and a[name] != b[name]
        ]
        for name in ("vector", "document_vector"):
            if (a[name] is None) != (b[name] is None) or (
                a[name] and np.abs(np.subtract(a[name], b[name])).max() > 1e-5
            ):
                differences.append(f"{key}: another {name}")
    statistics = [read_manifest(store).statistics for store in (one, other)]
    if [each and (each.n_chunks, each.mean_lengths) for each in statistics[:1]] != [
        each and (each.n_chunks, each.mean_lengths) for each in statistics[1:]
    ]:
        differences.append(f"statistics {statistics}")
    return differences


def _key_rows(rows: Rows) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["path"], row["ord"]): row for row in rows}
