"""The seal: digests of the files that hold no rows, so that damage to them can be told, and whose rows lie where.

Rows carry their own digests. Search indexes, lists of deleted rows and the description of the newest version carry
none, and a flipped bit there hides rows, or shows what was deleted, without an error. Lance never changes a file in
place, so each is hashed once. Where a file of rows can't be read at all, only the seal knows whose they were.

A store whose manifest says that it is settled has been sealed, so that a seal that is missing there is damage too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field

from rse_cli.adapters.lance_snapshot import open_dataset
from rse_cli.adapters.manifest import digest_data
from rse_cli.adapters.store_files import open_files
from rse_cli.adapters.store_folder import SEAL_NAME, TABLE_FOLDER
from rse_cli.dataclass import dataclass
from rse_cli.ports import StorePlace

INDEXES, DELETIONS, VERSIONS = "_indices", "_deletions", "_versions"

HINT_NAME = "latest_version_hint.json"
"""The one file that lance writes over; a wrong hint costs time alone."""


@dataclass(frozen=True, slots=True)
class BrokenSeal:
    """What differs from the seal, as paths inside the table's folder, sorted.

    Parameters
    ----------
    indexes : tuple of str
        Files of search indexes: made anew from the rows.
    records : tuple of str
        Files that say which rows there are: without them no row can be trusted.
    is_lost : bool
        Whether the seal itself is missing, damaged or an older one, so that of the search indexes nothing is known.
    """

    indexes: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class _Seal:
    """Version of the table, 0 if there is no seal to be read, digests by file, and paths by fragment."""

    version: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[int, list[str]] = field(default_factory=dict)


def seal_table(store: StorePlace) -> None:
    """Write down the digests of all files but those of rows, and the paths in those, at the newest version.

    Parameters
    ----------
    store : Path or Bucket
        The store, locked by the caller.

    Raises
    ------
    OSError
        If a file can't be read or the seal not be written.
    """
    dataset = open_dataset(store)
    if dataset is None:
        return
    known = _read_seal(store).files
    kept = open_files(store)
    names = sorted(name for folder in (INDEXES, DELETIONS, VERSIONS) for name in kept.list_table(folder))
    files = {
        name: known.get(name) or kept.digest(f"{TABLE_FOLDER}/{name}")
        for name in names
        if not name.endswith(f"/{HINT_NAME}")
    }
    paths = {
        str(fragment.fragment_id): fragment.to_table(columns=["path"])["path"].unique().to_pylist()
        for fragment in dataset.get_fragments()
    }
    seal = {"table_version": dataset.version, "files": files, "paths": paths}
    text = json.dumps(seal | {"digest": digest_data(seal)}, indent=1, ensure_ascii=False) + "\n"
    kept.replace(SEAL_NAME, text.encode())


def check_seal(store: StorePlace, version: int, sealed: int) -> BrokenSeal:
    """Compare the files with the seal.

    Parameters
    ----------
    store : Path or Bucket
        The store.
    version : int
        The version of the table that is looked at. Where the seal is of another one, as after a kill, files that are
        gone count for nothing, and those that are new can't be told.
    sealed : int
        The version that must have been sealed, 0 if none need have been.
    """
    seal = _read_seal(store)
    kept = open_files(store)
    broken = []
    for name, digest in seal.files.items():
        try:
            if kept.digest(f"{TABLE_FOLDER}/{name}") != digest:
                broken.append(name)
        except OSError:
            if seal.version == version:
                broken.append(name)
    indexes = tuple(name for name in broken if name.startswith(INDEXES))
    records = tuple(name for name in broken if not name.startswith(INDEXES))
    # A newer seal is that of a writer who came since the version was opened.
    return BrokenSeal(indexes, records, is_lost=seal.version < sealed)


def read_fragment_paths(store: StorePlace) -> Mapping[int, list[str]]:
    """Return whose rows lay in each fragment when the seal was written."""
    return _read_seal(store).paths


def _read_seal(store: StorePlace) -> _Seal:
    """Return what was written down; a seal that is missing or damaged says nothing."""
    try:
        data = json.loads(open_files(store).read(SEAL_NAME))
        if data.pop("digest") != digest_data(data):
            return _Seal()
        paths = {int(fragment): list(paths) for fragment, paths in data["paths"].items()}
        return _Seal(int(data["table_version"]), dict(data["files"]), paths)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return _Seal()
