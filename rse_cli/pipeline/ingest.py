"""Bring the index in line with the files: read what is new or changed, keep the vectors of known texts, drop the rest.

Every batch is one commit, so an interrupted run keeps what it finished and the next one goes on from there. While a
batch is encoded, the one before it is written and the one after it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from rse_cli.dataclass import dataclass
from rse_cli.pipeline.beside import Start, defer, make_ahead
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
from rse_cli.ports import Encoder, FileRecord, FoundFile, Store, Vectors
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


@dataclass(frozen=True, slots=True)
class _Batch:
    """What one commit is of: files to be stored with their vectors by hash, and records whose stamp alone is new."""

    files: Sequence[PreparedFile] = ()
    touched: Sequence[FileRecord] = ()
    vectors: Mapping[str, Vectors] = field(default_factory=dict)


def ingest_files(
    store: Store,
    encoder: Callable[[], Encoder],
    plan: Plan,
    read: Read,
    name_reader: Callable[[str], str],
    options: IngestOptions,
    watcher: Watcher,
    spread: Spread = map,
    start: Start = defer,
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
    start : callable
        Starts reading and encoding beside writing, perhaps in threads, which call `read`, `encoder` and `watcher` then.

    Returns
    -------
    Summary
        Files that vanish while the run goes on count as removed or are left out.
    """
    summary = Summary()
    _count_kept(summary, plan.unchanged)
    gone: list[str] = [record.path for record in plan.removed]
    read_one = partial(_read_file, read=read, name_reader=name_reader, chunk_chars=options.chunk_chars)
    batches = _read_batches(plan, partial(spread, read_one), options.breadth, gone, watcher)
    held = {record.path: record for _, record in plan.suspects}

    def encode(missing: Mapping[str, tuple[str, str]]) -> dict[str, Vectors]:
        weight = HEADER_WEIGHTS[options.headers]
        return encode_missing(missing, encoder(), weight, watcher.chunks_done, options.breadth)

    before = _Batch()
    for batch in make_ahead(batches, start):
        wait = _start_encoding(store, batch, before, encode, start, summary, watcher)
        _commit(store, before, held, summary)
        before = replace(batch, vectors=wait())
    _commit(store, before, held, summary)
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
) -> Iterator[_Batch]:
    """Yield what each commit is of; vanished files join `gone`."""
    touched: list[FileRecord] = []
    files: list[PreparedFile] = []
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
            files.append(prepared)
            watcher.chunks_found(len(prepared.chunks))
        n_chunks, n_files = sum(len(one.chunks) for one in files), len(files) + len(touched)
        if n_chunks >= BATCH_CHUNKS * breadth or n_files >= BATCH_FILES * breadth:
            yield _Batch(files, touched)
            touched, files = [], []
    if touched or files:
        yield _Batch(files, touched)


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


def _start_encoding(
    store: Store,
    batch: _Batch,
    before: _Batch,
    encode: Callable[[Mapping[str, tuple[str, str]]], dict[str, Vectors]],
    start: Start,
    summary: Summary,
    watcher: Watcher,
) -> Callable[[], Mapping[str, Vectors]]:
    """Start to encode the new texts of a batch; return what waits for all its vectors by hash.

    Those of known texts come from the index, or from the batch before, which may not be written yet.
    """
    hashes = [text_hash for file in batch.files for text_hash in file.text_hashes]
    known = {text_hash: before.vectors[text_hash] for text_hash in hashes if text_hash in before.vectors}
    known |= store.vectors(sorted(set(hashes) - set(known)))
    missing = list_missing(batch.files, known)
    summary.reused += len(hashes) - len(missing)
    summary.encoded += len(missing)
    watcher.chunks_done(len(hashes) - len(missing))
    return start(lambda: known | encode(missing)) if missing else lambda: known


def _commit(store: Store, batch: _Batch, held: Mapping[str, FileRecord], summary: Summary) -> None:
    """Write a batch, files whole; `held` are the records that the index had of files that were read, by path."""
    if batch.files:
        dimension = len(next(iter(batch.vectors.values()))) if batch.vectors else 0
        store.replace([attach_vectors(file, batch.vectors, dimension) for file in batch.files], [])
    if restamped := [record for record in batch.touched if held[record.path] != record]:
        store.touch(restamped)
    _count_kept(summary, batch.touched)
    _count_files(summary, held, batch.files)


def _count_kept(summary: Summary, records: Iterable[FileRecord]) -> None:
    for record in records:
        if record.status in PROBLEM_STATUSES:
            summary.skipped.append((record.path, explain(record)))
            continue
        summary.unchanged.append(record.path)
        if record.status in TEXTLESS_STATUSES:
            summary.textless.append(record)


def _count_files(summary: Summary, held: Mapping[str, FileRecord], files: Sequence[PreparedFile]) -> None:
    for record in (file.record for file in files):
        if record.status in PROBLEM_STATUSES:
            summary.skipped.append((record.path, explain(record)))
            continue
        (summary.changed if record.path in held else summary.new).append(record.path)
        if record.status in TEXTLESS_STATUSES:
            summary.textless.append(record)
