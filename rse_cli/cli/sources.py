"""The sources of an index, which are the paths that were ingested with their filters: their files, and what changed."""

# os.path, since Path.exists raises for names that no file can have.
# ruff: noqa: PTH100, PTH110

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rse_cli.adapters.discovery import Discovery, discover_files
from rse_cli.adapters.found_files import BY_RULE, Selection
from rse_cli.adapters.given_paths import resolve_place
from rse_cli.adapters.manifest import Source
from rse_cli.cli.output import name_count, say
from rse_cli.cli.wiring import Index, name_reader
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.planning import Plan, plan_ingest
from rse_cli.timings import stage

if TYPE_CHECKING:
    from rse_cli.pipeline.freshness import Staleness
    from rse_cli.ports import FileRecord, FoundFile, Snapshot, StorePlace


@dataclass(frozen=True, slots=True)
class Survey:
    """The files found under some sources."""

    sources: tuple[Source, ...]
    found: Discovery


def make_selection(settings: Mapping[str, Any]) -> Selection:
    """Return which files the settings of ``[ingest]``, or a source, choose."""
    known = {field.name for field in fields(Selection)}
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in settings.items() if key in known
    }
    return Selection(**values)


def describe_selection(selection: Selection) -> dict[str, Any]:
    """Return a selection as the manifest keeps it."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(selection).items()}


@stage("find")
def survey_paths(
    root: Path, folder: StorePlace, paths: Sequence[Path], selection: Selection, known: Sequence[FileRecord]
) -> Survey:
    """Find the files below given paths; one that is gone is fine where the index holds something of it.

    Parameters
    ----------
    root : Path
        What paths are relative to, resolved.
    folder : Path or Bucket
        The store.
    paths : sequence of Path
        As given, at least one.
    selection : Selection
        Filters.
    known : sequence of FileRecord
        What the index holds.

    Raises
    ------
    UsageError
        If a path is missing or lies outside the root; all of them are named.
    """
    given, scopes = [], []
    for path in paths:
        scope = _place_path(root, path)
        if scope is not None:
            scopes.append(scope)
        gone = scope is not None and not os.path.exists(path) and not _explain_closed(path)
        # A path that is missing for good, or lies outside, goes on to discovery, which names all of them at once.
        if not (gone and any(_lies_in(record.path, str(scope)) for record in known)):
            given.append(path)
    found = discover_files(root, given, selection, folder) if given else Discovery((), (), ())
    described = describe_selection(selection)
    return Survey(tuple(Source(scope, described) for scope in dict.fromkeys(scopes)), found)


@stage("find")
def survey_sources(root: Path, folder: StorePlace, sources: Sequence[Source]) -> Survey:
    """Find the files of sources as their own ingests would. What lies in a deeper source is left to that one."""
    files: dict[str, FoundFile] = {}
    oversize: dict[str, int] = {}
    problems: dict[str, str] = {}
    for source in sources:
        inner = [other.path for other in sources if other != source and _lies_in(other.path, source.path)]
        path = root / source.path
        if not os.path.lexists(path):
            if reason := _explain_closed(path) or _explain_absent(root, folder):
                problems[source.path] = reason
            continue
        found = discover_files(root, [path], make_selection(source.selection), folder)
        files |= {file.path: file for file in found.files if not _lies_in_any(file.path, inner)}
        oversize |= {name: size for name, size in found.oversize if not _lies_in_any(name, inner)}
        problems |= {name: reason for name, reason in found.problems if not _lies_in_any(name, inner)}
    return Survey(
        tuple(sources),
        Discovery(
            tuple(files[name] for name in sorted(files)),
            tuple(sorted(oversize.items())),
            tuple(sorted(problems.items())),
        ),
    )


def _explain_absent(root: Path, folder: StorePlace) -> str | None:
    """Say that a machine lacks the files of an index that many share; None where they are here, or were deleted."""
    return None if isinstance(folder, Path) or root.is_dir() else "not on this machine"


def plan_survey(survey: Survey, records: Sequence[FileRecord]) -> Plan:
    """Return what an ingest of the surveyed files has to do."""
    found = survey.found
    scopes = [source.path for source in survey.sources]
    return plan_ingest(found.files, records, scopes, _list_unreadable(found), name_reader)


def list_left_out(survey: Survey, records: Sequence[FileRecord]) -> dict[str, str]:
    """Return by path why something was left out, and that the index keeps what it holds of what can't be looked at."""
    found = survey.found
    left_out = {path: f"{size:,} bytes are more than --max-size" for path, size in found.oversize}
    unreadable = set(_list_unreadable(found))
    for path, reason in found.problems:
        scope = _name_scope(path)
        kept = sum(_lies_in(record.path, scope) for record in records) if scope in unreadable else 0
        left_out[path] = f"{reason}; the index keeps {name_count(kept, 'file')} of before" if kept else reason
    return left_out


def _list_unreadable(found: Discovery) -> list[str]:
    return [_name_scope(path) for path, reason in found.problems if reason not in BY_RULE]


def _name_scope(problem: str) -> str:
    """Return the path of a problem as a scope, where the root has no name."""
    return "" if problem == "." else problem


@stage("find")
def survey_index(index: Index) -> Survey:
    """Find the files of every path that was ever ingested, with the filters it was ingested with."""
    return survey_sources(index.root, index.folder, index.manifest.sources)


@stage("compare")
def measure_changes(survey: Survey, records: Sequence[FileRecord], confirm_bytes: int | None) -> Staleness:
    """Compare the files of an index with what it holds.

    Parameters
    ----------
    survey : Survey
        The files.
    records : sequence of FileRecord
        What the index holds.
    confirm_bytes : int or None
        See `measure_staleness`.
    """
    from rse_cli.pipeline.freshness import measure_staleness

    return measure_staleness(plan_survey(survey, records), name_reader, confirm_bytes)


def mention_changes(index: Index, snapshot: Snapshot, mend: str) -> None:
    """Say on stderr how many files have changed since the index was made, and what mends that."""
    from rse_cli.pipeline.freshness import CONFIRM_BYTES

    count = measure_changes(survey_index(index), snapshot.files(), confirm_bytes=CONFIRM_BYTES).count
    if count:
        say(f"rse: {name_count(count, 'file')} changed since the index was made ({mend} updates it)")


def _place_path(root: Path, path: Path) -> str | None:
    """Return a path relative to the root, "" for the root itself; None if it lies outside."""
    place = Path(resolve_place(os.path.abspath(path))[0])
    if not place.is_relative_to(root):
        return None
    return "" if place == root else place.relative_to(root).as_posix()


def _explain_closed(path: Path) -> str:
    """Return why a path can't be looked at, empty where it is there, or gone for good."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ""
    except OSError as fault:
        return f"can't be read: {fault.strerror}"
    return ""


def _lies_in_any(path: str, scopes: Sequence[str]) -> bool:
    return any(_lies_in(path, scope) for scope in scopes)


def _lies_in(path: str, scope: str) -> bool:
    return not scope or path == scope or path.startswith(f"{scope}/")
