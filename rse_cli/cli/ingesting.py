"""What ``rse ingest`` and ``--refresh`` do: open or make the index, compare it with the files, carry the plan out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rse_cli.adapters.discovery import Discovery, discover_files
from rse_cli.adapters.given_paths import choose_root
from rse_cli.adapters.lancedb_store import LanceStore
from rse_cli.adapters.manifest import (
    MANIFEST_NAME,
    STORE_NAME,
    ChunkingIdentity,
    Source,
    add_sources,
    create_manifest,
    find_store,
    locate_root,
    read_manifest,
)
from rse_cli.cli.progress import watch_ingest
from rse_cli.cli.wiring import (
    TEXT_VERSION,
    Index,
    describe_selection,
    discover_source,
    load_index_encoder,
    make_selection,
    name_reader,
    plan_source,
    read_settings,
)
from rse_cli.config import Settings, choose_store
from rse_cli.errors import StoreError
from rse_cli.pipeline.ingest import IngestOptions, Summary, explain, ingest_files
from rse_cli.pipeline.planning import Plan, plan_ingest
from rse_cli.ports import FileRecord


@dataclass(frozen=True, slots=True)
class IngestFlags:
    """The command line of an ingest.

    Parameters
    ----------
    choice : mapping
        Flags that are settings too, None where not given.
    store : str or None
        ``--store``.
    rebuild, dry_run, progress, verbose : bool
        As the flags; `progress` is off with ``--quiet``.
    """

    choice: Mapping[str, Any] = field(default_factory=dict)
    store: str | None = None
    rebuild: bool = False
    dry_run: bool = False
    progress: bool = True
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an ingest did or, after a dry run, would do.

    Parameters
    ----------
    folder, root : Path
        The index and what its paths are relative to.
    summary : Summary
        Files by what became of them.
    dry_run : bool
        Whether nothing was done.
    """

    folder: Path
    root: Path
    summary: Summary
    dry_run: bool


def run_ingest(paths: Sequence[Path], flags: IngestFlags) -> IngestResult:
    """Bring the index of `paths` up to date.

    Raises
    ------
    RseError
        If a path is missing, or the index is another's; nothing is changed then.
    """
    here = Path.cwd()
    base = choose_root(paths, here)
    folder = choose_store(flags.store, os.environ) or find_store(base) or base / STORE_NAME
    exists = (folder / MANIFEST_NAME).exists()
    root = _find_root(folder, base, exists, flags.rebuild)
    settings = read_settings(root, flags.choice, check_model=not exists or flags.rebuild)
    selection = make_selection(settings.ingest)
    known: list[FileRecord] = []
    if exists and not flags.rebuild:
        index = _open_existing(folder, settings)
        known = index.store.snapshot().files()
    given, scopes = _place_paths(root, paths, known)
    found = discover_files(root, given, selection, folder) if given else Discovery((), (), ())
    if flags.dry_run:
        plan = _plan(found, known, scopes)
        return IngestResult(folder, root, _foresee(plan, found), dry_run=True)
    if not exists or flags.rebuild:
        index = _create(folder, root, settings, flags.rebuild)
    with index.store.lock():
        plan = _plan(found, index.store.snapshot().files(), scopes)
        summary = _carry_out(index, plan, flags)
        add_sources(folder, [Source(scope, describe_selection(selection)) for scope in scopes])
    summary.skipped += _list_skipped(found)
    summary.skipped.sort()
    return IngestResult(folder, root, summary, dry_run=False)


def _find_root(folder: Path, base: Path, exists: bool, rebuild: bool) -> Path:
    """Return the root of an existing index, else of a new one; a rebuild keeps the root where it can be read."""
    if exists:
        try:
            return locate_root(folder, read_manifest(folder))
        except StoreError:
            if not rebuild:
                raise
    return folder.resolve().parent if folder.name == STORE_NAME else base


def _open_existing(folder: Path, settings: Settings) -> Index:
    """Open an index, unless what is asked for is fixed differently in it."""
    manifest = read_manifest(folder)
    if manifest.chunking.version != TEXT_VERSION:
        raise StoreError(f"{folder} was made by another version of rse: rebuild with `rse ingest --rebuild`")
    stored = {
        "model": manifest.model.name,
        "chunk_chars": manifest.chunking.chunk_chars,
        "headers": manifest.chunking.headers,
    }
    from rse_cli.adapters.encoders.model_files import canonical_name

    faults = []
    for key, value in stored.items():
        asked = settings.ingest[key]
        asked = canonical_name(asked) if key == "model" else asked
        source = settings.sources["ingest", key]
        if source != "default" and asked != value:
            faults.append(f"the index has {key} {value}, not {asked} ({source})")
    if faults:
        flags = " ".join(
            f"--{key.replace('_', '-')} {settings.ingest[key]}"
            for key in stored
            if settings.sources["ingest", key].startswith("--")
        )
        raise StoreError(f"{'; '.join(faults)}: rebuild with `{f'rse ingest --rebuild {flags}'.strip()}`")
    return Index(folder, locate_root(folder, manifest), manifest, LanceStore(folder, manifest))


def _create(folder: Path, root: Path, settings: Settings, rebuild: bool) -> Index:
    from rse_cli.adapters.encoders import choose_backend, load_encoder

    name = settings.ingest["model"]
    backend = choose_backend(name)
    identity = load_encoder(name, for_query=False, backend=backend).identity
    chunking = ChunkingIdentity(TEXT_VERSION, settings.ingest["chunk_chars"], settings.ingest["headers"])
    manifest = create_manifest(folder, root, identity, backend, chunking, rebuild=rebuild)
    return Index(folder, root, manifest, LanceStore(folder, manifest))


def _place_paths(root: Path, paths: Sequence[Path], known: Sequence[FileRecord]) -> tuple[list[Path], list[str]]:
    """Return the paths that exist, and all scopes relative to the root; a path that is gone may still be indexed."""
    given, scopes = [], []
    for path in paths:
        absolute = path.absolute()
        resolved = absolute.resolve() if absolute.is_dir() else absolute.parent.resolve() / absolute.name
        scope = resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else None
        scope = "" if scope == "." else scope
        gone = not path.exists() and scope is not None
        if gone and any(record.path == scope or record.path.startswith(f"{scope}/") for record in known):
            scopes.append(str(scope))
            continue
        # A path that doesn't exist or lies outside goes on to discovery, which names all of them at once.
        given.append(path)
        if scope is not None:
            scopes.append(scope)
    return given, scopes


def _plan(found: Discovery, known: Sequence[FileRecord], scopes: Sequence[str]) -> Plan:
    return plan_ingest(found.files, known, scopes, [path for path, _ in found.problems], name_reader)


def _carry_out(index: Index, plan: Plan, flags: IngestFlags) -> Summary:
    from rse_cli.adapters.readers import read_document

    chunking = index.manifest.chunking
    options = IngestOptions(chunking.chunk_chars, chunking.headers)
    encoders: list[Any] = []

    def load() -> Any:
        # Loaded at the first text without a vector: a run with nothing new needs no model.
        encoders.extend([] if encoders else [load_index_encoder(index, for_query=False)])
        return encoders[0]

    with watch_ingest(plan, show=flags.progress, verbose=flags.verbose) as watcher:
        summary = ingest_files(index.store, load, plan, read_document, name_reader, options, watcher)
    if not plan.is_empty:
        index.store.maintain()
    return summary


def refresh_index(index: Index) -> None:
    """Ingest again every path that was ever ingested, with the filters of that time."""
    flags = IngestFlags(progress=True)
    with index.store.lock():
        for source in index.manifest.sources:
            found = discover_source(index, source)
            _carry_out(index, plan_source(found, index.store.snapshot().files(), source), flags)


def _list_skipped(found: Discovery) -> list[tuple[str, str]]:
    oversize = [(path, f"{size:,} bytes are more than --max-size") for path, size in found.oversize]
    return [*oversize, *found.problems]


def _foresee(plan: Plan, found: Discovery) -> Summary:
    """Return what a run would do, as far as can be told without reading files."""
    skipped = [(record.path, explain(record)) for record in plan.unchanged if record.status not in ("indexed", "empty")]
    return Summary(
        new=[file.path for file in plan.new],
        changed=[file.path for file, _ in plan.suspects],
        unchanged=[record.path for record in plan.unchanged],
        removed=[record.path for record in plan.removed],
        skipped=sorted(skipped + _list_skipped(found)),
    )
