"""The manifest: what a store says about itself, replaced in one step."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rse_cli.adapters.found_files import Selection
from rse_cli.adapters.store_files import open_files
from rse_cli.adapters.store_folder import MANIFEST_NAME, STORE_NAME
from rse_cli.adapters.store_lock import LOCK_SECONDS
from rse_cli.dataclass import dataclass
from rse_cli.errors import DamagedStoreError, StoreError
from rse_cli.ports import ModelIdentity, StorePlace

FORMAT_VERSION = 2
"""Raised when a store written by an older version can't be read any more."""


@dataclass(frozen=True, slots=True)
class ChunkingIdentity:
    """How texts were cut: what must agree between two ingests.

    Parameters
    ----------
    version : int
        Version of the chunking rules.
    chunk_chars : int
        Characters above which a chunk is split.
    headers : str
        How strongly a header weighs in a chunk's vector.
    """

    version: int
    chunk_chars: int
    headers: str


@dataclass(frozen=True, slots=True)
class StoredStatistics:
    """The statistics of one version of the table, kept so that a query need not add them up.

    Parameters
    ----------
    table_version : int
        The version they were taken from; they say nothing about any other.
    n_chunks : int
        All chunks.
    mean_lengths : mapping of int to float
        For each k the mean number of terms within ±k chunks.
    settled : bool
        Whether the search indexes of that version are up to date; a run that is killed before leaves that to the next.
    """

    table_version: int
    n_chunks: int
    mean_lengths: Mapping[int, float]
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A path that was ingested, with the filters of that time, so that the same files can be looked at again.

    Parameters
    ----------
    path : str
        Relative to the root, POSIX form; empty for the root itself.
    selection : mapping of str to object
        The filters by name, as JSON holds them.
    """

    path: str
    selection: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a store says about itself.

    Parameters
    ----------
    root : str
        The folder that paths are relative to: relative to the store where the store lies inside it, else absolute.
    model : ModelIdentity
        The model of the vectors.
    backend : str
        What encodes for it: ``numpy`` or ``sentence-transformers``.
    chunking : ChunkingIdentity
        How the texts were cut.
    statistics : StoredStatistics or None
        None before the first commit.
    sources : tuple of Source
        What was ingested, sorted by path; none lies inside another.
    format_version : int
        See `FORMAT_VERSION`.
    """

    root: str
    model: ModelIdentity
    backend: str
    chunking: ChunkingIdentity
    statistics: StoredStatistics | None = None
    sources: tuple[Source, ...] = ()
    format_version: int = FORMAT_VERSION


def locate_root(store: StorePlace, manifest: Manifest) -> Path:
    """Return the absolute folder that the paths in the store at `store` are relative to."""
    return (store.resolve() / manifest.root if isinstance(store, Path) else Path(manifest.root)).resolve()


def describe_root(store: StorePlace, root: Path) -> str:
    """Return `root` as a manifest holds it: relative to a store inside it, so that both can move together."""
    root = root.resolve()
    if not isinstance(store, Path):
        return str(root)
    store = store.resolve()
    return Path(os.path.relpath(root, store)).as_posix() if store.is_relative_to(root) else str(root)


def create_manifest(
    store: StorePlace,
    root: Path,
    model: ModelIdentity,
    backend: str,
    chunking: ChunkingIdentity,
    *,
    rebuild: bool = False,
    timeout: float = LOCK_SECONDS,
    announce: Callable[[str], None] = lambda _: None,
) -> Manifest:
    """Begin an empty index: make the store's folder and its manifest, under the lock.

    Parameters
    ----------
    store : Path
        A new or empty folder, or what a store (even a half-made one) left.
    root : Path
        The folder that paths will be relative to.
    model, backend, chunking
        See `Manifest`.
    rebuild : bool
        Whether an index that is there already is dropped.
    timeout, announce
        See `lock_store`.

    Returns
    -------
    Manifest
        As the store holds it: where another process was faster with the same index, that one's.

    Raises
    ------
    StoreError
        If the folder holds anything that isn't a store's, can't be written or locked, or without `rebuild` holds
        another index.
    """
    files = open_files(store)
    files.prepare()
    manifest = Manifest(describe_root(store, root), model, backend, chunking)
    with files.lock(timeout, announce):
        if files.holds(MANIFEST_NAME) and not rebuild:
            present = read_manifest(store)
            if not is_same_index(present, manifest):
                raise StoreError(f"another index was made at {store}: run the command again")
            return present
        # In this order a kill in between leaves an empty index, never a table under a manifest of another model, nor a
        # manifest that counts the rows of a table which is gone.
        with suppress(StoreError):
            write_manifest(store, replace(read_manifest(store), statistics=None))
        files.discard_table()
        write_manifest(store, manifest)
    return manifest


def is_same_index(one: Manifest, other: Manifest) -> bool:
    """Tell whether both manifests are of one index, whatever its state."""
    return replace(one, statistics=None, sources=()) == replace(other, statistics=None, sources=())


def add_sources(store: StorePlace, sources: Sequence[Source]) -> None:
    """Note what was ingested; a source takes the place of those at its path and below.

    The caller holds the lock.
    """
    manifest = read_manifest(store)
    kept = [
        old
        for old in manifest.sources
        if not any(not new.path or old.path == new.path or old.path.startswith(f"{new.path}/") for new in sources)
    ]
    together = tuple(sorted([*kept, *sources], key=lambda source: source.path))
    if together != manifest.sources:
        write_manifest(store, replace(manifest, sources=together))


def read_manifest(store: StorePlace, *, any_version: bool = False) -> Manifest:
    """Read what the store at `store` says about itself.

    Parameters
    ----------
    store : Path
        The folder.
    any_version : bool
        Whether to read also what another version wrote, to make it anew.

    Raises
    ------
    StoreError
        If there is no store, it isn't one, or another version made it; says what to run.
    """
    try:
        content = open_files(store).read(MANIFEST_NAME)
    except (FileNotFoundError, NotADirectoryError):
        if isinstance(store, Path) and store.exists() and not store.is_dir():
            raise StoreError(f"{store} is not a store but a file: give --store a folder") from None
        where = "" if isinstance(store, Path) and store.name == STORE_NAME else f" --store {store}"
        raise StoreError(f"no index at {store}: run `rse ingest{where}`") from None
    except OSError as error:
        raise StoreError(f"can't read the store {store}: {error.strerror or error}") from error
    try:
        data = json.loads(content)
        version = data["format_version"]
        if any_version or version == FORMAT_VERSION:
            return _parse_manifest(data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedStoreError(f"{store} is not a store, or a damaged one", str(store)) from error
    raise DamagedStoreError(f"{store} was made by another version of rse", str(store))


def is_manifest_whole(store: StorePlace) -> bool:
    """Tell whether the manifest says what was written, by its own digest."""
    try:
        data = json.loads(open_files(store).read(MANIFEST_NAME))
        return bool(data.pop("digest") == digest_data(data))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def digest_data(data: Mapping[str, Any]) -> str:
    """Return the digest of what a file of the store holds as JSON."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def write_manifest(store: StorePlace, manifest: Manifest) -> None:
    """Put `manifest` in place in one step: a reader sees the old one or the new one, a kill leaves one of them.

    Every writer must hold the lock.

    Raises
    ------
    StoreError
        If the folder can't be written.
    """
    # Through JSON, which turns the numbers that are keys into texts.
    data = json.loads(json.dumps(asdict(manifest)))
    text = json.dumps(data | {"digest": digest_data(data)}, indent=1, ensure_ascii=False) + "\n"
    try:
        open_files(store).replace(MANIFEST_NAME, text.encode())
    except OSError as error:
        raise StoreError(f"can't write the store {store}: {error.strerror or error}") from error


def _parse_manifest(data: dict[str, Any]) -> Manifest:
    """Build a manifest from JSON; anything that doesn't fit raises one of the errors that a bad mapping raises."""
    root, backend = data["root"], data["backend"]
    if not isinstance(root, str) or not isinstance(backend, str):
        raise TypeError("root and backend are texts")
    model = ModelIdentity(**_expect_mapping(data["model"]))
    chunking = ChunkingIdentity(**_expect_mapping(data["chunking"]))
    if not isinstance(model.dimension, int) or model.dimension < 1:
        raise ValueError("a vector has at least one dimension")
    statistics = None
    if data["statistics"] is not None:
        stored = _expect_mapping(data["statistics"])
        means = {int(k): float(v) for k, v in _expect_mapping(stored["mean_lengths"]).items()}
        settled = stored.get("settled") is True
        statistics = StoredStatistics(int(stored["table_version"]), int(stored["n_chunks"]), means, settled)
    sources = tuple(Source(str(one["path"]), _check_selection(one["selection"])) for one in data.get("sources", ()))
    return Manifest(root, model, backend, chunking, statistics, sources)


def _check_selection(value: object) -> dict[str, Any]:
    """Return filters whose values are what a `Selection` takes; those that this version doesn't know are kept."""
    selection = _expect_mapping(value)
    for key, default in asdict(Selection()).items():
        given = selection.get(key, default)
        if isinstance(default, tuple):
            fits = isinstance(given, list | tuple) and all(isinstance(glob, str) for glob in given)
        else:
            fits = type(given) is type(default)
        if not fits:
            raise TypeError(f"{key} is none")
    return selection


def _expect_mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("not a mapping")
    return value
