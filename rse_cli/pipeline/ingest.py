"""Bring the index in line with the files: read what is new or changed, keep the vectors of known texts, drop the rest.

Every batch is one commit, so an interrupted run keeps what it finished and the next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial

from rse_cli.dataclass import dataclass
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

Waiting = tuple[FoundFile, FileRecord | None]
"""A file to be read, with what the index holds of it."""

Outcome = PreparedFile | FileRecord | None
"""The file as it is to be stored, its record with a new stamp if nothing else is new, or None if it is gone."""

Spread = Callable[[Callable[[Waiting], Outcome], Sequence[Waiting]], Iterable[Outcome]]
"""Does what `map` does."""

PROBLEM_STATUSES = ("encrypted", "unreadable", "failed")
TEXTLESS_STATUSES = ("empty", "binary")


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What is fixed when a store is made, and how wide the work is spread.

    Parameters
    ----------
    chunk_chars : int
        Longest chunk.
    headers : str
        How much of the header goes into a chunk's vector: a key of `HEADER_WEIGHTS`.
    breadth : int
        How many times larger batches are than those of one machine, so that many workers have enough to do.
    """

    chunk_chars: int
    headers: str
    breadth: int = 1


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
    spread: Spread = map,
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
    spread : callable
        Does what `map` does, perhaps in other processes: then `read` and `name_reader` have to be fit to be sent there.

    Returns
    -------
    Summary
        Files that vanish while the run goes on count as removed or are left out.
    """
    summary = Summary()
    _count_kept(summary, plan.unchanged)
    held = {record for _, record in plan.suspects}
    gone: list[str] = [record.path for record in plan.removed]
    read_one = partial(_read_file, read=read, name_reader=name_reader, chunk_chars=options.chunk_chars)
    for touched, batch in _read_batches(plan, partial(spread, read_one), options.breadth, gone, watcher):
        if batch:
            _store_batch(store, encoder, batch, options, summary, watcher)
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
    plan: Plan,
    read_all: Callable[[Sequence[Waiting]], Iterable[Outcome]],
    breadth: int,
    gone: list[str],
    watcher: Watcher,
) -> Iterator[tuple[list[FileRecord], list[PreparedFile]]]:
    """Yield per commit the records whose stamp alone changed and the files to be stored; vanished ones join `gone`."""
    touched: list[FileRecord] = []
    batch: list[PreparedFile] = []
    waiting: list[Waiting] = sorted(
        [*plan.suspects, *((file, None) for file in plan.new)], key=lambda pair: pair[0].path
    )
    for (file, record), prepared in zip(waiting, read_all(waiting), strict=True):
        watcher.file_done(file.path)
        if prepared is None:
            if record is not None:
                gone.append(file.path)
        elif isinstance(prepared, FileRecord):
            touched.append(prepared)
        else:
            batch.append(prepared)
            watcher.chunks_found(len(prepared.chunks))
        n_chunks, n_files = sum(len(one.chunks) for one in batch), len(batch) + len(touched)
        if n_chunks >= BATCH_CHUNKS * breadth or n_files >= BATCH_FILES * breadth:
            yield touched, batch
            touched, batch = [], []
    if touched or batch:
        yield touched, batch


@stage("read")
def _read_file(waiting: Waiting, read: Read, name_reader: Callable[[str], str], chunk_chars: int) -> Outcome:
    """Read a file and cut it into chunks, unless nothing but its stamp is new."""
    file, record = waiting
    reader = name_reader(file.path)
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
    options: IngestOptions,
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
        weight = HEADER_WEIGHTS[options.headers]
        vectors |= encode_missing(missing, encoder(), weight, watcher.chunks_done, options.breadth)
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
