"""What is written to the table: files as Arrow rows, for each its head row and its chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rse_cli.core.models import Chunk
from rse_cli.ports import KEY_BITS, MAX_CHUNKS_PER_FILE, FileRecord, IndexedFile, Vectors

if TYPE_CHECKING:
    import pyarrow as pa

WINDOW_SIZES = (0, 1, 4, 12)
"""The k of the ±k windows that BM25 reads, in the order of `FileRecord.window_lengths`."""

NORM_TOLERANCE = 1e-3
"""float32 sums of 384 squares round by about 1e-6; a vector that nobody normalised is off by far more."""


def build_schema(dimension: int) -> pa.Schema:
    """Return the columns of the table for vectors of `dimension` numbers.

    Head rows hold nulls in the columns of chunks, so that neither search ever finds them, and the other way round.
    """
    import pyarrow as pa

    numbers = ("start_char", "end_char", "start_line", "end_line", "start_page", "end_page", "block")
    texts = ("text", "terms", "row_terms", "section", "header", "text_hash")
    head_texts = ("content_hash", "status", "reason", "reader", "title", "summary", "field_terms")
    head_numbers = ("size", "mtime_ns", "ctime_ns", "n_chunks", "n_chars")
    return pa.schema(
        [
            pa.field("gid", pa.int64(), nullable=False),
            pa.field("path", pa.string(), nullable=False),
            pa.field("ord", pa.int32(), nullable=False),
            *(pa.field(name, pa.int64()) for name in numbers),
            *(pa.field(name, pa.string()) for name in texts),
            pa.field("vector", pa.list_(pa.float32(), dimension)),
            pa.field("document_vector", pa.list_(pa.float32(), dimension)),
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
    vectors, document_vectors = [], []
    for file, number in zip(files, numbers, strict=True):
        rows.append(_describe_record(file.record, number))
        vectors += [np.zeros((1, dimension), np.float32), np.asarray(file.vectors, np.float32).reshape(-1, dimension)]
        document_vectors += [file.document_vector, *[None] * len(file.chunks)]
        columns = zip(file.chunks, file.terms, file.text_hashes, vectors[-1], strict=True)
        rows.extend(
            _describe_chunk(file.record.path, number, chunk)
            | {"terms": terms, "text_hash": text_hash, "digest": digest_row(file.record.path, chunk.text, vector)}
            for chunk, terms, text_hash, vector in columns
        )
    stacked = np.concatenate(vectors) if vectors else np.zeros((0, dimension), np.float32)
    return _build_table(rows, stacked, document_vectors)


def build_head_rows(
    records: Sequence[FileRecord], numbers: Sequence[int], document_vectors: Sequence[Vectors | None], dimension: int
) -> pa.Table:
    """Return the head rows of `records`, which have the document `numbers`, with the schema of `build_schema`."""
    rows = [_describe_record(record, number) for record, number in zip(records, numbers, strict=True)]
    return _build_table(rows, np.zeros((len(rows), dimension), np.float32), document_vectors)


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


def digest_row(path: str, text: str, vector: Vectors | None) -> bytes:
    """Return the SHA-256 by which damage to a row can be told: over its path, text and vector bits."""
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass") + b"\0" + text.encode("utf-8", "surrogatepass"))
    if vector is not None:
        digest.update(b"\0" + np.ascontiguousarray(vector, "<f4").tobytes())
    return digest.digest()


def _build_table(
    rows: Sequence[dict[str, Any]], vectors: Vectors, document_vectors: Sequence[Vectors | None]
) -> pa.Table:
    """Turn `rows` into columns; `vectors` has a row for each of them, which for head rows counts as null."""
    import pyarrow as pa

    schema = build_schema(vectors.shape[1])
    is_head = np.array([row["ord"] == -1 for row in rows], bool)
    of_heads = np.zeros_like(vectors)
    for at, document_vector in enumerate(document_vectors):
        if document_vector is not None:
            of_heads[at] = document_vector
    absent = np.array([document_vector is None for document_vector in document_vectors], bool)
    lists = {"vector": (vectors, is_head), "document_vector": (of_heads, absent)}
    return pa.Table.from_arrays(
        [
            pa.FixedSizeListArray.from_arrays(
                pa.array(lists[field.name][0].ravel()), type=field.type, mask=pa.array(lists[field.name][1])
            )
            if field.name in lists
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
        "summary": record.summary,
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
        "block": chunk.block,
    }
