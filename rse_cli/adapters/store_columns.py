"""What is read from the table: which columns, and the records, chunks and evidence that are made of them."""

from __future__ import annotations

from collections.abc import Iterable
from sys import intern
from typing import TYPE_CHECKING

import numpy as np

from rse_cli.adapters.store_rows import WINDOW_SIZES, are_unit_vectors, build_schema
from rse_cli.core.models import Chunk
from rse_cli.core.term_columns import TermTexts
from rse_cli.dataclass import dataclass
from rse_cli.ports import KEY_BITS, EvidenceRows, FileRecord, FileStamp, Statistics, StoredChunk, Vectors

if TYPE_CHECKING:
    import pyarrow as pa

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
    "summary",
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
    "block",
)
HELD_COLUMNS = (*CHUNK_COLUMNS, "terms", "vector", "_rowid")
"""Those of chunks and of evidence, and what searches find rows by."""
EVIDENCE_COLUMNS = ("gid", "start_char", "end_char", "block", "terms", "row_terms", "vector")
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
                reader=intern(row["reader"]),
                title=row["title"],
                summary=row["summary"],
                n_chunks=row["n_chunks"],
                n_chars=row["n_chars"],
                # Files share most of their terms, 3 kB of each.
                field_terms=tuple(map(intern, row["field_terms"].split())),
                window_lengths=tuple(row["window_lengths"]),
            ),
        )
        for row in table.to_pylist()
    ]


def read_summaries(table: pa.Table) -> list[tuple[str, FileSummary]]:
    """Return path and summary of every row of `table`, which has `SUMMARY_COLUMNS`, in the table's order."""
    return [
        (row["path"], FileSummary(row["gid"] >> KEY_BITS, row["n_chunks"], tuple(row["window_lengths"])))
        for row in table.to_pylist()
    ]


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
    row_terms = table["row_terms"].to_pylist()
    return EvidenceRows(
        keys=table["gid"].to_numpy(),
        chars=table["end_char"].to_numpy() - table["start_char"].to_numpy(),
        start_chars=table["start_char"].to_numpy(),
        blocks=table["block"].to_numpy(),
        terms=TermTexts(table["terms"].to_pylist()),
        row_terms=TermTexts([text or "" for text in row_terms]),
        is_row=np.array([text is not None for text in row_terms], dtype=np.bool_),
        vectors=read_vectors(table, "vector", dimension),
    )


def read_vectors(table: pa.Table, column: str, dimension: int) -> Vectors:
    """Return a column of vectors, without its nulls, as an array of shape ``(n_rows, dimension)``.

    Raises
    ------
    ValueError
        If one can't have been written so: a flipped bit of an exponent makes a vector outweigh all others.
    """
    parts = [part.flatten().to_numpy(zero_copy_only=False) for part in table[column].chunks]
    flat = np.concatenate(parts) if parts else np.zeros(0, np.float32)
    vectors = flat.reshape(-1, dimension)
    if not are_unit_vectors(vectors):
        raise ValueError("a vector is damaged: it is not of unit length")
    return vectors


def make_empty_table(columns: Iterable[str], dimension: int) -> pa.Table:
    """Return a table without rows, which may have the columns that searches add."""
    import pyarrow as pa

    added = [("_distance", pa.float32()), ("_score", pa.float32()), ("_rowid", pa.uint64())]
    known = {field.name: field for field in (*build_schema(dimension), *(pa.field(*one) for one in added))}
    return pa.schema([known[name] for name in columns]).empty_table()


def _split_terms(joined: str | None) -> tuple[str, ...] | None:
    return None if joined is None else tuple(joined.split())
