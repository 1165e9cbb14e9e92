"""What ``ingest`` and ``status`` report, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rse_cli.adapters.manifest import Manifest
from rse_cli.adapters.store_files import open_files
from rse_cli.cli.ingesting import IngestResult
from rse_cli.cli.output import dump_json, make_visible_line, say, write_bytes, write_result
from rse_cli.cli.sources import list_left_out, measure_changes, survey_index
from rse_cli.cli.verifying import describe_findings
from rse_cli.cli.wiring import name_update, open_index
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.freshness import Staleness
from rse_cli.pipeline.ingest import PROBLEM_STATUSES, TEXTLESS_STATUSES, explain, is_scan
from rse_cli.ports import FileRecord, StorePlace
from rse_cli.timings import stage

SCHEMA_VERSION = 1
COUNTED = ("new", "changed", "unchanged", "removed", "skipped")


@stage("render")
def report_ingest(result: IngestResult, *, as_json: bool, quiet: bool, verbose: bool, strict: bool) -> None:
    """Print what an ingest did: one line on stdout, what was skipped on stderr; if that is an error, always."""
    summary = result.summary
    if as_json:
        write_bytes(dump_json(_describe_ingest(result)))
        return
    if not quiet:
        _print_summary(result, verbose)
    if strict or not quiet:
        for path, reason in summary.skipped:
            say(f"skipped {make_visible_line(path)}: {make_visible_line(reason)}")
    if not quiet:
        fresh = {*summary.new, *summary.changed}
        for record in _sort_records(summary.textless):
            # A scan is said once, when it is read.
            if verbose or (is_scan(record) and record.path in fresh):
                say(f"{record.status} {make_visible_line(record.path)}: {make_visible_line(record.reason)}")


def _print_summary(result: IngestResult, verbose: bool) -> None:
    summary = result.summary
    counts = " · ".join(f"{name} {len(getattr(summary, name)):,}" for name in COUNTED)
    write_result(f"{'would be: ' if result.dry_run else ''}{counts}\n")
    for finding in result.repaired or ():
        write_result(f"repaired   {make_visible_line(finding.path or finding.reason)}\n")
    if result.dry_run and (summary.new or summary.changed):
        say("rse: a dry run does not try to read these: some may turn out to be unreadable and be skipped")
    if result.dry_run or verbose:
        for name in ("new", "changed", "removed"):
            for path in getattr(summary, name):
                (write_result if result.dry_run else say)(f"{name} {make_visible_line(path)}" + "\n" * result.dry_run)


def _describe_ingest(result: IngestResult) -> dict[str, Any]:
    summary = result.summary
    lists = {name: sorted(getattr(summary, name)) for name in ("new", "changed", "removed")}
    return {
        "schema_version": SCHEMA_VERSION,
        "store": str(result.folder),
        "root": str(result.root),
        "dry_run": result.dry_run,
        **lists,
        "unchanged": len(summary.unchanged),
        "skipped": [{"path": path, "reason": reason} for path, reason in summary.skipped],
        "textless": _describe_records(_sort_records(summary.textless)),
        "stats": {"encoded": summary.encoded, "reused": summary.reused},
        **({} if result.repaired is None else {"repaired": describe_findings(result.repaired)}),
    }


@dataclass(frozen=True, slots=True)
class Status:
    """What an index holds, and how far the files have moved on.

    `left_out` has by path what an ingest would skip without opening it, with the reason. `settled` is whether the last
    ingest came to its end, `waiting` how many rows the vector index lacks (None: there is none, as small indexes are
    searched without).
    """

    folder: StorePlace
    root: Path
    manifest: Manifest
    records: tuple[FileRecord, ...]
    n_bytes: int
    staleness: Staleness
    left_out: dict[str, str]
    settled: bool
    waiting: int | None


def measure_status(store: str | None) -> Status:
    """Look at the index and at the files that it was made from."""
    index = open_index(store)
    snapshot = index.store.snapshot()
    records = tuple(snapshot.files())
    n_bytes = open_files(index.folder).measure()
    survey = survey_index(index)
    staleness = measure_changes(survey, records, confirm_bytes=None)
    return Status(
        index.folder,
        index.root,
        index.manifest,
        records,
        n_bytes,
        staleness,
        list_left_out(survey, records),
        snapshot.is_settled(),
        snapshot.count_waiting(),
    )


@stage("render")
def report_status(status: Status, *, as_json: bool, verbose: bool = False) -> None:
    """Print the state of the index, with the files that have no text where `verbose`; scans are always named."""
    if as_json:
        write_bytes(dump_json(_describe_status(status)))
        return
    model, chunking = status.manifest.model, status.manifest.chunking
    counts = _count_files(status.records)
    others = "".join(f" · {name} {count:,}" for name, count in counts.items() if name != "indexed" and count)
    rows = [
        ("root", str(status.root)),
        ("store", f"{status.folder} ({_format_bytes(status.n_bytes)})"),
        ("files", f"{len(status.records):,}{others}"),
        ("chunks", f"{sum(record.n_chunks for record in status.records):,}"),
        ("characters", f"{sum(record.n_chars for record in status.records):,}"),
        ("model", f"{model.name} ({model.dimension} dimensions, {status.manifest.backend})"),
        ("chunking", f"at most {chunking.chunk_chars} characters, headers {chunking.headers}"),
        *([] if _is_plain(status) else [("search", _format_search(status))]),
        ("changed", _format_staleness(status)),
    ]
    for name, value in rows:
        write_result(f"{name:<11}{make_visible_line(value)}\n")
    for record in _list_failures(status.records):
        write_result(f"{'failed':<11}{make_visible_line(record.path)}: {make_visible_line(explain(record))}\n")
    for path, reason in sorted(status.left_out.items()):
        write_result(f"{'skipped':<11}{make_visible_line(path)}: {make_visible_line(reason)}\n")
    for record in _list_textless(status.records):
        if verbose or is_scan(record):
            write_result(f"{record.status:<11}{make_visible_line(record.path)}: {make_visible_line(record.reason)}\n")


def _describe_status(status: Status) -> dict[str, Any]:
    model, chunking = status.manifest.model, status.manifest.chunking
    return {
        "schema_version": SCHEMA_VERSION,
        "store": str(status.folder),
        "root": str(status.root),
        "format_version": status.manifest.format_version,
        "model": model.name,
        "dimension": model.dimension,
        "backend": status.manifest.backend,
        "chunk_chars": chunking.chunk_chars,
        "headers": chunking.headers,
        "files": len(status.records),
        "files_by_status": _count_files(status.records),
        "chunks": sum(record.n_chunks for record in status.records),
        "chars": sum(record.n_chars for record in status.records),
        "bytes": status.n_bytes,
        "failures": _describe_records(_list_failures(status.records)),
        "textless": _describe_records(_list_textless(status.records)),
        "skipped": [{"path": path, "reason": reason} for path, reason in sorted(status.left_out.items())],
        "search_index": {
            "kind": "flat" if status.waiting is None else "vector",
            "waiting": status.waiting or 0,
            "stale": not status.settled,
        },
        "stale": status.staleness.count > 0,
        "new": list(status.staleness.new),
        "changed": list(status.staleness.changed),
        "removed": list(status.staleness.removed),
    }


def _is_plain(status: Status) -> bool:
    """Whether there is nothing to say of the search indexes: they are up to date, and there is none for vectors."""
    return status.settled and status.waiting is None


def _format_search(status: Status) -> str:
    if not status.settled:
        return (
            "the last ingest did not finish its search indexes: answers are complete, but slower; run "
            f"`{_name_update(status)}`"
        )
    # Fewer than an ingest cares to index are compared one by one.
    return "vector index" + (f", {status.waiting:,} chunks beside it" if status.waiting else ", up to date")


def _count_files(records: Sequence[FileRecord]) -> dict[str, int]:
    names = ("indexed", *TEXTLESS_STATUSES, *PROBLEM_STATUSES)
    return {name: sum(record.status == name for record in records) for name in names}


def _list_failures(records: Sequence[FileRecord]) -> list[FileRecord]:
    return [record for record in records if record.status in PROBLEM_STATUSES]


def _list_textless(records: Sequence[FileRecord]) -> list[FileRecord]:
    return [record for record in records if record.status in TEXTLESS_STATUSES]


def _sort_records(records: Sequence[FileRecord]) -> list[FileRecord]:
    return sorted(records, key=lambda record: record.path)


def _describe_records(records: Sequence[FileRecord]) -> list[dict[str, str]]:
    return [{"path": record.path, "status": record.status, "reason": record.reason} for record in records]


def _format_staleness(status: Status) -> str:
    staleness = status.staleness
    if not staleness.count:
        return "nothing since the index was made"
    counts = f"new {len(staleness.new):,} · changed {len(staleness.changed):,} · removed {len(staleness.removed):,}"
    return f"{counts} since the index was made; run `{_name_update(status)}`"


def _name_update(status: Status) -> str:
    return name_update(status.folder, status.root, status.manifest.sources)


def _format_bytes(count: int) -> str:
    size, unit = float(count), "B"
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
