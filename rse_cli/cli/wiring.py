"""Configuration to adapters: the one place that composes them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rse_cli.adapters.manifest import (
    Manifest,
    Source,
    find_store,
    locate_root,
    read_manifest,
)
from rse_cli.config import Settings, choose_store, load_settings
from rse_cli.core.chunking import CHUNKING_VERSION
from rse_cli.core.lexical import TERMS_VERSION
from rse_cli.core.params import list_parameters
from rse_cli.errors import StoreError

if TYPE_CHECKING:
    from rse_cli.adapters.discovery import Discovery, Selection
    from rse_cli.adapters.lancedb_store import LanceStore
    from rse_cli.pipeline.freshness import Staleness
    from rse_cli.pipeline.planning import Plan
    from rse_cli.ports import Encoder, FileRecord

TEXT_VERSION = CHUNKING_VERSION * 100 + TERMS_VERSION
"""What the manifest holds as the version of chunking: either of the two makes an index outdated."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index on disk: where it lies, the root of its paths, what it says of itself, and the open store."""

    folder: Path
    root: Path
    manifest: Manifest
    store: LanceStore


def open_index(flag: str | None) -> Index:
    """Open the index for reading.

    Raises
    ------
    StoreError
        If there is none, or it can't be read; says which command to run.
    """
    from rse_cli.adapters.lancedb_store import LanceStore

    folder = choose_store(flag, os.environ) or find_store(Path.cwd())
    if folder is None:
        raise StoreError("no index in this folder or above it: run `rse ingest` in the folder to be indexed")
    manifest = read_manifest(folder)
    if manifest.chunking.version != TEXT_VERSION:
        raise StoreError(f"{folder} was made by another version of rse: rebuild with `rse ingest --rebuild`")
    return Index(folder, locate_root(folder, manifest), manifest, LanceStore(folder, manifest))


def read_settings(root: Path | None, flags: Mapping[str, Any], *, check_model: bool = False) -> Settings:
    """Return the settings of flags, environment, project, user and defaults; a flag that is None was not given."""
    return load_settings(root, os.environ, flags, {"rse": list_parameters()}, check_model)


def make_selection(settings: Mapping[str, Any]) -> Selection:
    """Return which files the settings of ``[ingest]`` choose."""
    from rse_cli.adapters.discovery import Selection

    known = {field.name for field in fields(Selection)}
    values = {
        key: tuple(value) if isinstance(value, list) else value for key, value in settings.items() if key in known
    }
    return Selection(**values)


def load_index_encoder(index: Index, *, for_query: bool) -> Encoder:
    """Load the model of an index.

    Raises
    ------
    StoreError
        If the model on this machine is not the one of the index.
    """
    from rse_cli.adapters.encoders import load_encoder

    encoder = load_encoder(index.manifest.model.name, for_query=for_query, backend=index.manifest.backend)  # type: ignore[arg-type]
    if encoder.identity != index.manifest.model:
        raise StoreError(
            f"{index.folder} was made with another version of the model {index.manifest.model.name}: "
            "rebuild with `rse ingest --rebuild`"
        )
    return encoder


def is_english_only(manifest: Manifest) -> bool:
    """Whether the model of an index knows no CJK, so that its cosines would mislead there."""
    from rse_cli.adapters.encoders.model_files import DEFAULT_MODEL

    return manifest.model.name == DEFAULT_MODEL


def name_reader(path: str) -> str:
    """Return the name of a file's reader with its version, as the index records it."""
    from rse_cli.adapters.readers import find_reader

    spec = find_reader(Path(path))
    return f"{spec.name}/{spec.version}"


def survey_sources(index: Index, records: Sequence[FileRecord], confirm_bytes: int | None) -> Staleness:
    """Compare every path that was ever ingested, with the filters it was ingested with, with the index."""
    from rse_cli.pipeline.freshness import Staleness, measure_staleness

    found = Staleness((), (), ())
    for source in index.manifest.sources:
        discovery = discover_source(index, source)
        plan = plan_source(discovery, records, source)
        found = found.merge(measure_staleness(plan, name_reader, confirm_bytes))
    return found


def discover_source(index: Index, source: Source) -> Discovery:
    """Find the files of one ingested path as that ingest would; none if the path is gone."""
    from rse_cli.adapters.discovery import Discovery, discover_files

    path = index.root / source.path
    if not os.path.lexists(path):
        return Discovery((), (), ())
    return discover_files(index.root, [path], make_selection(source.selection), index.folder)


def plan_source(found: Discovery, records: Sequence[FileRecord], source: Source) -> Plan:
    """Return what an ingest of a source would do."""
    from rse_cli.pipeline.planning import plan_ingest

    return plan_ingest(found.files, records, [source.path], [path for path, _ in found.problems], name_reader)


def describe_selection(selection: Selection) -> dict[str, Any]:
    """Return a selection as the manifest keeps it."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(selection).items()}
