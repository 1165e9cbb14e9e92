"""Configuration to adapters: the one place that composes them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rse_cli.adapters.manifest import Manifest, Source, locate_root, read_manifest
from rse_cli.adapters.store_folder import find_store, refuse_links
from rse_cli.cli.consent import check_consent
from rse_cli.cli.output import make_visible_line, say
from rse_cli.config import Settings, choose_store, load_settings
from rse_cli.core.chunking import CHUNKING_VERSION
from rse_cli.core.lexical import TERMS_VERSION
from rse_cli.core.methods import list_method_keys
from rse_cli.dataclass import dataclass
from rse_cli.errors import StoreError, UsageError
from rse_cli.ports import StorePlace

if TYPE_CHECKING:
    from rse_cli.adapters.lancedb_store import LanceStore
    from rse_cli.adapters.reading_worker import ReadLimits
    from rse_cli.ports import Encoder

TEXT_VERSION = CHUNKING_VERSION * 100 + TERMS_VERSION
"""What the manifest holds as the version of chunking: either of the two makes an index outdated."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index: where it lies, the root of its paths, what it says of itself, and the open store.

    `is_trusted` says that the user has named it or its model; else it may have come with somebody else's folder.
    """

    folder: StorePlace
    root: Path
    manifest: Manifest
    store: LanceStore
    is_trusted: bool


def open_index(flag: str | None) -> Index:
    """Open the index for reading.

    Raises
    ------
    StoreError
        If there is none, or it can't be read; says which command to run.
    """
    from rse_cli.adapters.lancedb_store import LanceStore

    named = choose_store(flag, os.environ)
    folder = named or find_store(locate_current_folder())
    if folder is None:
        raise StoreError("no index in this folder or above it: run `rse ingest` in the folder to be indexed")
    if isinstance(folder, Path):
        refuse_links(folder, was_found=named is None)
    manifest = check_version(folder, read_manifest(folder))
    root = choose_index_root(folder, manifest, was_found=named is None)
    return Index(folder, root, manifest, LanceStore(folder, manifest), is_trusted=named is not None)


def choose_index_root(folder: StorePlace, manifest: Manifest, *, was_found: bool) -> Path:
    """Return the root of an index: a store that came with a folder may not reach out of it, as a named one may.

    Raises
    ------
    StoreError
        If it does.
    """
    root = locate_root(folder, manifest)
    if was_found and isinstance(folder, Path) and root != folder.resolve().parent:
        raise StoreError(f"{folder} says that it indexes {root}: if that is meant, name it with --store {folder}")
    return root


def locate_current_folder() -> Path:
    """Return the current folder.

    Raises
    ------
    UsageError
        If it was deleted.
    """
    try:
        return Path.cwd()
    except FileNotFoundError as fault:
        raise UsageError("the current folder was deleted: change to another one") from fault


def check_version(folder: StorePlace, manifest: Manifest) -> Manifest:
    """Return a manifest whose texts were cut as this version cuts them.

    Raises
    ------
    StoreError
        If they were not.
    """
    if manifest.chunking.version != TEXT_VERSION:
        raise StoreError(f"{folder} was made by another version of rse: rebuild with `{name_rebuild(folder)}`")
    return manifest


def name_rebuild(folder: StorePlace, flags: Sequence[str] = ()) -> str:
    """Return the command that rebuilds an index; it names the store where it would not be found from here."""
    return name_ingest(folder, "--rebuild", *flags)


def name_ingest(folder: StorePlace, *flags: str) -> str:
    """Return a command for an index; it names the store where it would not be found from here."""
    found = choose_store(None, os.environ) or find_store(locate_current_folder())
    here = found is not None and _resolve(found) == _resolve(folder)
    return shlex.join(["rse", "ingest", *flags, *([] if here else ["--store", str(folder)])])


def name_update(folder: StorePlace, root: Path, sources: Sequence[Source]) -> str:
    """Return the command that brings an index up to date from the current folder, where it may see less than all."""
    here = locate_current_folder().resolve()
    # os.path, since Path.relative_to can't go up before Python 3.12.
    paths = [os.path.relpath((root / source.path).resolve(), here) for source in sources]
    return name_ingest(folder, *([] if paths == ["."] else paths))


def _resolve(place: StorePlace) -> StorePlace:
    return place.resolve() if isinstance(place, Path) else place


def read_settings(root: Path | None, flags: Mapping[str, Any], *, check_model: bool = False) -> Settings:
    """Return the settings of flags, environment, project, user and defaults; a flag that is None was not given."""
    return load_settings(root, os.environ, flags, list_method_keys(), check_model)


def choose_limits(settings: Settings) -> ReadLimits:
    """Return what reading one file may take."""
    from rse_cli.adapters.reading_worker import ReadLimits

    return ReadLimits(settings.ingest["read_timeout"], settings.ingest["read_memory"])


def open_for_writing(folder: StorePlace, manifest: Manifest, settings: Settings) -> LanceStore:
    """Open the store of an index, to wait for other writers as long as the settings say."""
    from rse_cli.adapters.lancedb_store import LanceStore

    return LanceStore(folder, manifest, settings.ingest["lock_timeout"], announce_wait)


def announce_wait(message: str) -> None:
    """Say which other writer is waited for."""
    say(f"rse: {make_visible_line(message)}")


def load_index_encoder(index: Index, *, for_query: bool) -> Encoder:
    """Load the model of an index.

    Raises
    ------
    StoreError
        If the model on this machine is not the one of the index, or lies where only the index says so.
    """
    from rse_cli.adapters.encoders import load_encoder

    if not index.is_trusted:
        check_consent(index.folder, index.root, index.manifest.model.name, read_settings(index.root, {}))
    encoder = load_encoder(index.manifest.model.name, for_query=for_query, backend=index.manifest.backend)  # type: ignore[arg-type]
    if encoder.identity != index.manifest.model:
        raise StoreError(
            f"{index.folder} was made with another version of the model {index.manifest.model.name}: "
            f"rebuild with `{name_rebuild(index.folder)}`"
        )
    return encoder


def count_threads(index: Index) -> int:
    """Return how many threads may share the model of an index: other backends than numpy have threads of their own."""
    from rse_cli.adapters.encoders.pool import count_jobs

    return count_jobs() if index.manifest.backend == "numpy" else 1


@contextmanager
def lend_encoder(index: Index, jobs: int | None) -> Iterator[Callable[[], Encoder]]:
    """Lend the model of an index for an ingest, on all cores; it is loaded when first asked for.

    Parameters
    ----------
    index : Index
        Whose model.
    jobs : int or None
        Processes; None for one a core.
    """
    from rse_cli.adapters.encoders.pool import EncoderPool, count_jobs

    pools: list[EncoderPool] = []

    def load() -> Encoder:
        if not pools:
            encoder = load_index_encoder(index, for_query=False)
            # Other backends have threads of their own.
            spread = (jobs or count_jobs()) if index.manifest.backend == "numpy" else 1
            pools.append(EncoderPool(encoder, index.manifest.model.name, index.manifest.backend, spread))
        return pools[0]

    try:
        yield load
    finally:
        for pool in pools:
            pool.close()


def is_english_only(manifest: Manifest) -> bool:
    """Whether the model of an index knows no CJK, so that its cosines would mislead there."""
    from rse_cli.adapters.encoders.model_files import DEFAULT_MODEL

    return manifest.model.name == DEFAULT_MODEL


def name_reader(path: str) -> str:
    """Return the name of a file's reader with its version, as the index records it."""
    from rse_cli.adapters.readers import find_reader

    spec = find_reader(Path(path))
    return f"{spec.name}/{spec.version}"
