"""Files, chunks and head rows as Arrow columns, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rse_cli.core.models import Chunk
from rse_cli.ports import (
    KEY_BITS,
    MAX_CHUNKS_PER_FILE,
    EvidenceRows,
    FileRecord,
    FileStamp,
    IndexedFile,
    Statistics,
    StoredChunk,
    Vectors,
)

if TYPE_CHECKING:
    import pyarrow as pa

WINDOW_SIZES = (0, 1, 4, 12)
"""The k of the ±k windows that BM25 reads, in the order of `FileRecord.window_lengths`."""

NORM_TOLERANCE = 1e-3
"""float32 sums of 384 squares round by about 1e-6; a vector that nobody normalised is off by far more."""

HEAD_COLUMNS = (
    "gid",
    "path",
    "size",
    "mtime_ns",
    "ctime_ns",
    "content_hash",
    "status",
    "reason",
    "reader",
    "title",
    "n_chunks",
    "n_chars",
    "field_terms",
    "window_lengths",
)
CHUNK_COLUMNS = (
    "gid",
    "path",
    "ord",
    "start_char",
    "end_char",
    "text",
    "start_line",
    "end_line",
    "start_page",
    "end_page",
    "section",
    "header",
    "row_terms",
)
EVIDENCE_COLUMNS = ("gid", "start_char", "end_char", "terms", "row_terms", "vector")
SUMMARY_COLUMNS = ("gid", "path", "n_chunks", "window_lengths")


@dataclass(frozen=True, slots=True)
class FileSummary:
    """What a writer must know of a file.

    Parameters
    ----------
    number : int
        Its document number.
    n_chunks : int
        Its chunks.
    window_lengths : tuple of int
        See `FileRecord`.
    """

    number: int
    n_chunks: int
    window_lengths: tuple[int, ...]


def build_schema(dimension: int) -> pa.Schema:
    """Return the columns of the table for vectors of `dimension` numbers.

    Head rows hold nulls in the columns of chunks, so that neither search ever finds them, and the other way round.
    """
    import pyarrow as pa

    numbers = ("start_char", "end_char", "start_line", "end_line", "start_page", "end_page")
    texts = ("text", "terms", "row_terms", "section", "header", "text_hash")
    head_texts = ("content_hash", "status", "reason", "reader", "title", "field_terms")
    head_numbers = ("size", "mtime_ns", "ctime_ns", "n_chunks", "n_chars")
    return pa.schema(
        [
            pa.field("gid", pa.int64(), nullable=False),
            pa.field("path", pa.string(), nullable=False),
            pa.field("ord", pa.int32(), nullable=False),
            *(pa.field(name, pa.int64()) for name in numbers),
            *(pa.field(name, pa.string()) for name in texts),
            pa.field("vector", pa.list_(pa.float32(), dimension)),
            pa.field("digest", pa.binary()),
            *(pa.field(name, pa.int64()) for name in head_numbers),
            *(pa.field(name, pa.string()) for name in head_texts),
            pa.field("window_lengths", pa.list_(pa.int64(), len(WINDOW_SIZES))),
        ]
    )


def build_rows(files: Sequence[IndexedFile], numbers: Sequence[int], dimension: int) -> pa.Table:
    """Lay `files` out as rows: for each its head row, then its chunks.

    Parameters
    ----------
    files : sequence of IndexedFile
        See `validate_file`, which every file must pass.
    numbers : sequence of int
        Their document numbers.
    dimension : int
        Numbers in a vector.

    Returns
    -------
    pyarrow.Table
        With the schema of `build_schema`.
    """
    rows: list[dict[str, Any]] = []
    vectors = []
    for file, number in zip(files, numbers, strict=True):
        rows.append(_describe_record(file.record, number))
        vectors += [np.zeros((1, dimension), np.float32), np.asarray(file.vectors, np.float32).reshape(-1, dimension)]
        columns = zip(file.chunks, file.terms, file.text_hashes, vectors[-1], strict=True)
        rows.extend(
            _describe_chunk(file.record.path, number, chunk)
            | {"terms": terms, "text_hash": text_hash, "digest": digest_row(file.record.path, chunk.text, vector)}
            for chunk, terms, text_hash, vector in columns
        )
    return _build_table(rows, np.concatenate(vectors) if vectors else np.zeros((0, dimension), np.float32))


def build_head_rows(records: Sequence[FileRecord], numbers: Sequence[int], dimension: int) -> pa.Table:
    """Return the head rows of `records`, which have the document `numbers`, with the schema of `build_schema`."""
    rows = [_describe_record(record, number) for record, number in zip(records, numbers, strict=True)]
    return _build_table(rows, np.zeros((len(rows), dimension), np.float32))


def validate_file(file: IndexedFile, dimension: int) -> None:
    """Refuse what the table would take silently and answer wrongly for.

    Raises
    ------
    ValueError
        If counts disagree, chunks aren't numbered 0, 1, …, there are too many, or a vector is not finite, not of
        unit length or not of `dimension` numbers.
    """
    name, n = file.record.path, len(file.chunks)
    if n > MAX_CHUNKS_PER_FILE:
        raise ValueError(f"{name}: more than {MAX_CHUNKS_PER_FILE} chunks")
    if not n == len(file.terms) == len(file.text_hashes) == len(file.vectors) == file.record.n_chunks:
        raise ValueError(f"{name}: chunks, terms, hashes, vectors and n_chunks disagree")
    if [chunk.ord for chunk in file.chunks] != list(range(n)):
        raise ValueError(f"{name}: chunks are not numbered from 0")
    if n:
        vectors = np.asarray(file.vectors, np.float32)
        if vectors.shape != (n, dimension):
            raise ValueError(f"{name}: vectors of shape {vectors.shape}, expected {(n, dimension)}")
        norms = np.linalg.norm(vectors, axis=1)
        # Written so that NaN fails as well.
        if not np.all(np.abs(norms - 1) < NORM_TOLERANCE):
            raise ValueError(f"{name}: a vector is not finite and of unit length")


def read_records(table: pa.Table) -> list[tuple[int, FileRecord]]:
    """Return document number and record of every row of `table`, which has `HEAD_COLUMNS`, in the table's order."""
    return [
        (
            row["gid"] >> KEY_BITS,
            FileRecord(
                path=row["path"],
                stamp=FileStamp(row["size"], row["mtime_ns"], row["ctime_ns"]),
                content_hash=row["content_hash"],
                status=row["status"],
                reason=row["reason"],
                reader=row["reader"],
                title=row["title"],
                n_chunks=row["n_chunks"],
                n_chars=row["n_chars"],
                field_terms=tuple(row["field_terms"].split()),
                window_lengths=tuple(row["window_lengths"]),
            ),
        )
        for row in table.to_pylist()
    ]


def read_summaries(table: pa.Table) -> dict[str, FileSummary]:
    """Return what `table`, which has `SUMMARY_COLUMNS`, says of every file, by path."""
    return {
        row["path"]: FileSummary(row["gid"] >> KEY_BITS, row["n_chunks"], tuple(row["window_lengths"]))
        for row in table.to_pylist()
    }


def summarise_record(record: FileRecord, number: int) -> FileSummary:
    """Return what a writer must know of a file with the document `number`."""
    return FileSummary(number, record.n_chunks, record.window_lengths)


def add_up(summaries: Iterable[FileSummary]) -> Statistics:
    """Return the statistics of an index with these files; means are 0 where there is no chunk."""
    n_chunks, totals = 0, [0] * len(WINDOW_SIZES)
    for summary in summaries:
        n_chunks += summary.n_chunks
        totals = [total + length for total, length in zip(totals, summary.window_lengths, strict=True)]
    return Statistics(n_chunks, {k: total / max(n_chunks, 1) for k, total in zip(WINDOW_SIZES, totals, strict=True)})


def read_chunks(table: pa.Table) -> list[StoredChunk]:
    """Return the rows of `table`, which has `CHUNK_COLUMNS`, sorted by key."""
    rows = sorted(table.to_pylist(), key=lambda row: row["gid"])
    return [
        StoredChunk(
            row.pop("gid"),
            row.pop("path"),
            Chunk(row_terms=_split_terms(row.pop("row_terms")), **row),
        )
        for row in rows
    ]


def read_evidence(table: pa.Table, dimension: int) -> EvidenceRows:
    """Return the rows of `table`, which has `EVIDENCE_COLUMNS`, sorted by key; vectors are never turned into lists."""
    table = table.sort_by("gid")
    return EvidenceRows(
        keys=table["gid"].to_numpy(),
        chars=table["end_char"].to_numpy() - table["start_char"].to_numpy(),
        terms=table["terms"].to_pylist(),
        row_terms=table["row_terms"].to_pylist(),
        vectors=read_vectors(table, dimension),
    )


def read_vectors(table: pa.Table, dimension: int) -> Vectors:
    """Return the column ``vector``, free of nulls, as an array of shape ``(n_rows, dimension)``."""
    parts = [part.flatten().to_numpy(zero_copy_only=False) for part in table["vector"].chunks]
    flat = np.concatenate(parts) if parts else np.zeros(0, np.float32)
    return flat.reshape(-1, dimension)


def make_empty_table(columns: Iterable[str], dimension: int) -> pa.Table:
    """Return a table without rows, which may have the columns that searches add."""
    import pyarrow as pa

    scores = [pa.field("_distance", pa.float32()), pa.field("_score", pa.float32())]
    known = {field.name: field for field in (*build_schema(dimension), *scores)}
    return pa.schema([known[name] for name in columns]).empty_table()


def digest_row(path: str, text: str, vector: Vectors | None) -> bytes:
    """Return the SHA-256 by which damage to a row can be told: over its path, text and vector bits."""
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass") + b"\0" + text.encode("utf-8", "surrogatepass"))
    if vector is not None:
        digest.update(b"\0" + np.ascontiguousarray(vector, "<f4").tobytes())
    return digest.digest()


def _build_table(rows: Sequence[dict[str, Any]], vectors: Vectors) -> pa.Table:
    """Turn `rows` into columns; `vectors` has a row for each of them, which for head rows counts as null."""
    import pyarrow as pa

    schema = build_schema(vectors.shape[1])
    is_head = pa.array(np.array([row["ord"] == -1 for row in rows], bool))
    return pa.Table.from_arrays(
        [
            pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), type=field.type, mask=is_head)
            if field.name == "vector"
            else pa.array([row.get(field.name) for row in rows], field.type)
            for field in schema
        ],
        schema=schema,
    )


def _describe_record(record: FileRecord, number: int) -> dict[str, Any]:
    return {
        "gid": number << KEY_BITS,
        "path": record.path,
        "ord": -1,
        "digest": digest_row(record.path, record.content_hash, None),
        "size": record.stamp.size,
        "mtime_ns": record.stamp.mtime_ns,
        "ctime_ns": record.stamp.ctime_ns,
        "content_hash": record.content_hash,
        "status": record.status,
        "reason": record.reason,
        "reader": record.reader,
        "title": record.title,
        "n_chunks": record.n_chunks,
        "n_chars": record.n_chars,
        "field_terms": " ".join(record.field_terms),
        "window_lengths": record.window_lengths,
    }


def _describe_chunk(path: str, number: int, chunk: Chunk) -> dict[str, Any]:
    return {
        "gid": number << KEY_BITS | chunk.ord + 1,
        "path": path,
        "ord": chunk.ord,
        "start_char": chunk.start_char,
        "end_char": chunk.end_char,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "start_page": chunk.start_page,
        "end_page": chunk.end_page,
        "text": chunk.text,
        "row_terms": None if chunk.row_terms is None else " ".join(chunk.row_terms),
        "section": chunk.section,
        "header": chunk.header,
    }


def _split_terms(joined: str | None) -> tuple[str, ...] | None:
    return None if joined is None else tuple(joined.split())
