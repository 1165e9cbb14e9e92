"""What ``rse ingest`` and ``--refresh`` do: open or make the index, compare it with the files, carry the plan out."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from rse_cli.adapters.found_files import BY_RULE
from rse_cli.adapters.manifest import (
    ChunkingIdentity,
    Manifest,
    Source,
    add_sources,
    create_manifest,
    read_manifest,
)
from rse_cli.adapters.reading_worker import ReadLimits
from rse_cli.cli.consent import check_consent, named_model, remember_choice
from rse_cli.cli.engines import start_engine
from rse_cli.cli.placing import Place, find_place, mention_other_index, refuse_names
from rse_cli.cli.progress import watch_ingest, watch_maintenance
from rse_cli.cli.sources import (
    Survey,
    describe_selection,
    list_left_out,
    make_selection,
    plan_survey,
    survey_index,
    survey_paths,
    survey_sources,
)
from rse_cli.cli.verifying import Finding
from rse_cli.cli.wiring import (
    TEXT_VERSION,
    Index,
    announce_wait,
    check_version,
    choose_limits,
    name_reader,
    name_rebuild,
    open_for_writing,
    read_settings,
)
from rse_cli.config import Settings
from rse_cli.dataclass import dataclass
from rse_cli.errors import StoreError
from rse_cli.pipeline.freshness import measure_staleness
from rse_cli.pipeline.ingest import (
    PROBLEM_STATUSES,
    TEXTLESS_STATUSES,
    IngestOptions,
    Summary,
    explain,
    ingest_files,
)
from rse_cli.pipeline.planning import UNREAD, Plan
from rse_cli.ports import FileRecord, StorePlace


@dataclass(frozen=True, slots=True)
class IngestFlags:
    """The command line of an ingest.

    Parameters
    ----------
    choice : mapping
        Flags that are settings too, None where not given.
    store : str or None
        ``--store``.
    jobs : int or None
        Processes that encode; None for one a core.
    engine : str
        What does the work; see `check_engine`.
    rebuild, dry_run, progress, verbose : bool
        As the flags; `progress` is off with ``--quiet``.
    """

    choice: Mapping[str, Any] = field(default_factory=dict)
    store: str | None = None
    jobs: int | None = None
    engine: str = "local"
    rebuild: bool = False
    dry_run: bool = False
    progress: bool = True
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an ingest did or, after a dry run, would do.

    Parameters
    ----------
    folder : Path or Bucket
        The index.
    root : Path
        What its paths are relative to.
    summary : Summary
        Files by what became of them.
    dry_run : bool
        Whether nothing was done.
    failed : tuple of str
        Those of the skipped files that could not be read, not those that a rule left out; ``--strict`` is about them.
    repaired : tuple of Finding or None
        After a repair what was damaged and is whole again.
    """

    folder: StorePlace
    root: Path
    summary: Summary
    dry_run: bool
    failed: tuple[str, ...] = ()
    repaired: tuple[Finding, ...] | None = None


def run_ingest(paths: Sequence[Path], flags: IngestFlags) -> IngestResult:
    """Bring the index of `paths` up to date; without paths, of the current folder or, to rebuild, of its sources.

    Raises
    ------
    RseError
        If a path is missing, or the index is another's; nothing is changed then.
    """
    gc.enable()
    place = find_place(paths, flags.store, rebuild=flags.rebuild)
    refuse_names(place)
    anew = flags.rebuild or not place.exists
    settings = read_settings(place.root, flags.choice, check_model=anew)
    limits = choose_limits(settings)
    known: list[FileRecord] = []
    if not anew:
        index = _open_existing(place, settings)
        known = _list_known(index, limits)
    survey = _survey(place, paths, flags, settings, known)
    if flags.progress:
        mention_other_index(place)
    if flags.dry_run:
        return _conclude(place, _foresee(survey, known), survey, dry_run=True)
    if anew:
        index = _create(place, settings, flags.rebuild)
    with index.store.lock():
        # First, so that an index whose making was interrupted knows what it lacks.
        add_sources(place.folder, survey.sources)
        # Before it is read anew, which may be much.
        known.clear()
        known = _list_known(index, limits)
        summary = carry_out(index, plan_survey(survey, known), flags, limits)
    return _conclude(place, settle_summary(summary, survey, known), survey, dry_run=False)


def _conclude(place: Place, summary: Summary, survey: Survey, *, dry_run: bool) -> IngestResult:
    by_rule = {path for path, _ in survey.found.oversize} | {
        path for path, reason in survey.found.problems if reason in BY_RULE
    }
    failed = tuple(path for path, _ in summary.skipped if path not in by_rule)
    return IngestResult(place.folder, place.root, summary, dry_run, failed)


def _list_known(index: Index, limits: ReadLimits) -> list[FileRecord]:
    """Return what the index holds; files that were given up under other limits count as never read."""
    return [
        replace(record, content_hash=UNREAD) if limits.were_other(record.reason) else record
        for record in index.store.snapshot().files()
    ]


def _survey(
    place: Place, paths: Sequence[Path], flags: IngestFlags, settings: Settings, known: Sequence[FileRecord]
) -> Survey:
    """Find the files of an ingest. A rebuild without paths is of all that the index held, wherever it is called."""
    selection = make_selection(settings.ingest)
    if not (flags.rebuild and place.exists) or paths:
        return survey_paths(place.root, place.folder, paths or [Path()], selection, known)
    if place.manifest is None or not place.manifest.sources:
        return survey_paths(place.root, place.folder, [place.root], selection, known)
    told = {key: value for key, value in describe_selection(selection).items() if _is_flag(settings, key)}
    sources = [Source(source.path, {**source.selection, **told}) for source in place.manifest.sources]
    return survey_sources(place.root, place.folder, sources)


def _is_flag(settings: Settings, key: str) -> bool:
    return settings.sources["ingest", key].startswith("--")


def _open_existing(place: Place, settings: Settings) -> Index:
    """Open an index, unless what is asked for is fixed differently in it."""
    manifest = check_version(place.folder, read_manifest(place.folder))
    faults, flags = [], []
    for key, value in _list_fixed(manifest).items():
        asked, source = settings.ingest[key], settings.sources["ingest", key]
        if key == "model":
            from rse_cli.adapters.encoders.model_files import canonical_name

            asked = canonical_name(asked)
        if source != "default" and asked != value:
            faults.append(f"the index has {key} {value}, not {asked} ({source})")
        if _is_flag(settings, key):
            flags += [f"--{key.replace('_', '-')}", str(settings.ingest[key])]
    if faults:
        raise StoreError(f"{'; '.join(faults)}: rebuild with `{name_rebuild(place.folder, flags)}`")
    remember_choice(place.root, settings)
    return _make_index(place, manifest, settings)


def _list_fixed(manifest: Manifest) -> dict[str, Any]:
    """Return what is fixed when an index is made, by setting."""
    return {
        "model": manifest.model.name,
        "chunk_chars": manifest.chunking.chunk_chars,
        "headers": manifest.chunking.headers,
    }


def _create(place: Place, settings: Settings, rebuild: bool) -> Index:
    """Begin an empty index; one that is rebuilt stays as it was where nothing else is asked for."""
    from rse_cli.adapters.encoders import choose_backend, load_encoder

    fixed = {key: settings.ingest[key] for key in ("model", "chunk_chars", "headers")}
    if place.manifest is not None:
        old = _list_fixed(place.manifest)
        fixed |= {key: value for key, value in old.items() if settings.sources["ingest", key] == "default"}
        if place.was_found:
            check_consent(place.folder, place.root, fixed["model"], settings)
    backend = choose_backend(fixed["model"])
    identity = load_encoder(fixed["model"], for_query=False, backend=backend).identity
    remember_choice(place.root, settings)
    chunking = ChunkingIdentity(TEXT_VERSION, fixed["chunk_chars"], fixed["headers"])
    manifest = create_manifest(
        place.folder,
        place.root,
        identity,
        backend,
        chunking,
        rebuild=rebuild,
        timeout=settings.ingest["lock_timeout"],
        announce=announce_wait,
    )
    return _make_index(place, manifest, settings)


def _make_index(place: Place, manifest: Manifest, settings: Settings) -> Index:
    store = open_for_writing(place.folder, manifest, settings)
    is_trusted = not place.was_found or named_model(settings) == manifest.model.name
    return Index(place.folder, place.root, manifest, store, is_trusted)


def carry_out(index: Index, plan: Plan, flags: IngestFlags, limits: ReadLimits) -> Summary:
    """Do what is planned, and bring the search indexes up to date. The caller holds the lock."""
    chunking = index.manifest.chunking
    with (
        watch_ingest(plan, show=flags.progress, verbose=flags.verbose) as watcher,
        start_engine(flags.engine, index, flags.jobs, limits) as engine,
    ):
        index.store.scatter_with(engine.scatter)
        options = IngestOptions(chunking.chunk_chars, chunking.headers, engine.breadth)
        summary = ingest_files(
            index.store, engine.load, plan, engine.read, name_reader, options, watcher, engine.spread, engine.start
        )
        index.store.scatter_with(None)
    # Also where a run before was killed when only this was left to do.
    if not plan.is_empty or not index.store.snapshot().is_settled():
        with watch_maintenance(show=flags.progress):
            index.store.maintain()
    return summary


def refresh_index(index: Index) -> None:
    """Ingest again every path that was ever ingested, with the filters of that time."""
    limits = choose_limits(read_settings(index.root, {}))
    with index.store.lock():
        survey = survey_index(index)
        carry_out(index, plan_survey(survey, _list_known(index, limits)), IngestFlags(progress=True), limits)


def settle_summary(summary: Summary, survey: Survey, known: Sequence[FileRecord]) -> Summary:
    """Add what discovery left out, so that every file counts once: a file with a problem is skipped, not unchanged."""
    skipped = dict(summary.skipped) | list_left_out(survey, known)
    return replace(
        summary,
        unchanged=[path for path in summary.unchanged if path not in skipped],
        skipped=sorted(skipped.items()),
    )


def _foresee(survey: Survey, known: Sequence[FileRecord]) -> Summary:
    """Return what a run would do, as far as can be told without reading new files."""
    plan = plan_survey(survey, known)
    changes = measure_staleness(plan, name_reader, confirm_bytes=None)
    changed = set(changes.changed)
    same = [*plan.unchanged, *(record for file, record in plan.suspects if file.path not in changed)]
    return settle_summary(
        Summary(
            new=list(changes.new),
            changed=list(changes.changed),
            unchanged=sorted(record.path for record in same),
            removed=list(changes.removed),
            skipped=[(record.path, explain(record)) for record in same if record.status in PROBLEM_STATUSES],
            textless=[record for record in same if record.status in TEXTLESS_STATUSES],
        ),
        survey,
        known,
    )
