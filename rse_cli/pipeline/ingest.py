"""Bring the index in line with the files: read what is new or changed, keep the vectors of known texts, drop the rest.

Every batch is one commit, so an interrupted run keeps what it finished and the next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from rse_cli.pipeline.found_content import read_content
from rse_cli.pipeline.planning import UNREAD, Plan, hash_content
from rse_cli.pipeline.preparation import (
    HEADER_WEIGHTS,
    PreparedFile,
    Read,
    attach_vectors,
    encode_missing,
    list_missing,
    prepare_file,
)
from rse_cli.ports import Encoder, FileRecord, FoundFile, Store
from rse_cli.timings import stage

# A few seconds of encoding: little is lost when a run is killed, and a commit costs 25 ms to 1 s.
BATCH_CHUNKS = 512
BATCH_FILES = 512

PROBLEM_STATUSES = ("encrypted", "unreadable", "failed")
TEXTLESS_STATUSES = ("empty", "binary")


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What is fixed when a store is made.

    Parameters
    ----------
    chunk_chars : int
        Longest chunk.
    headers : str
        How much of the header goes into a chunk's vector: a key of `HEADER_WEIGHTS`.
    """

    chunk_chars: int
    headers: str


@dataclass(slots=True)
class Summary:
    """What an ingest did, as lists of paths, each path in one of them; `skipped` pairs them with the reason.

    `encoded` and `reused` count vectors. `textless` are the records of the files, among the new, changed and unchanged
    ones, that have nothing to be found by.
    """

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    textless: list[FileRecord] = field(default_factory=list)
    encoded: int = 0
    reused: int = 0


@dataclass(frozen=True, slots=True)
class Watcher:
    """Callbacks of a run: how many files and chunks are done."""

    file_done: Callable[[str], None] = lambda _: None
    chunks_found: Callable[[int], None] = lambda _: None
    chunks_done: Callable[[int], None] = lambda _: None


def ingest_files(
    store: Store,
    encoder: Callable[[], Encoder],
    plan: Plan,
    read: Read,
    name_reader: Callable[[str], str],
    options: IngestOptions,
    watcher: Watcher,
) -> Summary:
    """Carry out a plan.

    Parameters
    ----------
    store : Store
        Locked by the caller.
    encoder : callable
        Gives the model; called only when a text needs a new vector.
    plan : Plan
        From `plan_ingest`.
    read : callable
        Path and bytes to reader name and document; raises `ReadError`.
    name_reader : callable
        Path to the reader's name with its version.
    options : IngestOptions
        As the store was made.
    watcher : Watcher
        Told of progress.

    Returns
    -------
    Summary
        Files that vanish while the run goes on count as removed or are left out.
    """
    summary = Summary()
    _count_kept(summary, plan.unchanged)
    held = {record for _, record in plan.suspects}
    gone: list[str] = [record.path for record in plan.removed]
    for touched, batch in _read_batches(plan, read, name_reader, options.chunk_chars, gone, watcher):
        if batch:
            _store_batch(store, encoder, batch, HEADER_WEIGHTS[options.headers], summary, watcher)
        if restamped := [record for record in touched if record not in held]:
            store.touch(restamped)
        _count_kept(summary, touched)
        _count_batch(summary, plan, batch)
    if gone:
        store.replace([], gone)
        summary.removed += gone
    return summary


def explain(record: FileRecord) -> str:
    """Return why a file has no chunks, as ``status: reason``."""
    return record.reason if record.status == "failed" else f"{record.status}: {record.reason}"


def is_scan(record: FileRecord) -> bool:
    """Tell whether a file has pages but no text on them, which is for the user to mend."""
    return record.status == "empty" and "OCR" in record.reason


def _read_batches(
    plan: Plan, read: Read, name_reader: Callable[[str], str], chunk_chars: int, gone: list[str], watcher: Watcher
) -> Iterator[tuple[list[FileRecord], list[PreparedFile]]]:
    """Yield per commit the records whose stamp alone changed and the files to be stored; vanished ones join `gone`."""
    touched: list[FileRecord] = []
    batch: list[PreparedFile] = []
    waiting: list[tuple[FoundFile, FileRecord | None]] = [*plan.suspects, *((file, None) for file in plan.new)]
    for file, record in sorted(waiting, key=lambda pair: pair[0].path):
        reader = name_reader(file.path)
        prepared = _read_file(file, record, reader, read, chunk_chars)
        watcher.file_done(file.path)
        if prepared is None:
            if record is not None:
                gone.append(file.path)
        elif isinstance(prepared, FileRecord):
            touched.append(prepared)
        else:
            batch.append(prepared)
            watcher.chunks_found(len(prepared.chunks))
        if sum(len(one.chunks) for one in batch) >= BATCH_CHUNKS or len(batch) + len(touched) >= BATCH_FILES:
            yield touched, batch
            touched, batch = [], []
    if touched or batch:
        yield touched, batch


@stage("read")
def _read_file(
    file: FoundFile, record: FileRecord | None, reader: str, read: Read, chunk_chars: int
) -> PreparedFile | FileRecord | None:
    """Return the prepared file, its record with a new stamp if nothing else is new, or None if it is gone."""
    try:
        data = read_content(file)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as fault:
        reason = f"can't be read: {fault.strerror or fault}"
        failure = FileRecord(file.path, file.stamp, UNREAD, "failed", reason, reader)
        return failure if failure == record else PreparedFile(failure)
    if record is not None and record.reader == reader and record.content_hash == hash_content(data):
        return replace(record, stamp=file.stamp)
    return prepare_file(file, data, reader, read, chunk_chars)


def _store_batch(
    store: Store,
    encoder: Callable[[], Encoder],
    batch: list[PreparedFile],
    header_weight: float,
    summary: Summary,
    watcher: Watcher,
) -> None:
    """Commit files whole, with vectors from the index where the text is known."""
    wanted = sorted({text_hash for file in batch for text_hash in file.text_hashes})
    vectors = store.vectors(wanted)
    missing = list_missing(batch, vectors)
    summary.reused += sum(len(file.text_hashes) for file in batch) - len(missing)
    summary.encoded += len(missing)
    watcher.chunks_done(sum(len(file.text_hashes) for file in batch) - len(missing))
    if missing:
        vectors |= encode_missing(missing, encoder(), header_weight, watcher.chunks_done)
    dimension = len(next(iter(vectors.values()))) if vectors else 0
    store.replace([attach_vectors(file, vectors, dimension) for file in batch], [])


def _count_kept(summary: Summary, records: Iterable[FileRecord]) -> None:
    for record in records:
        if record.status in PROBLEM_STATUSES:
            summary.skipped.append((record.path, explain(record)))
            continue
        summary.unchanged.append(record.path)
        if record.status in TEXTLESS_STATUSES:
            summary.textless.append(record)


def _count_batch(summary: Summary, plan: Plan, batch: list[PreparedFile]) -> None:
    known = {record.path for _, record in plan.suspects}
    for record in (file.record for file in batch):
        if record.status in PROBLEM_STATUSES:
            summary.skipped.append((record.path, explain(record)))
            continue
        (summary.changed if record.path in known else summary.new).append(record.path)
        if record.status in TEXTLESS_STATUSES:
            summary.textless.append(record)
