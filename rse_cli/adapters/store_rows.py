"""What is written to the table: files as Arrow rows, for each its head row and its chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
            # Of no fixed length: a null of a fixed one takes the room of a vector, which doubled the index.
            pa.field("document_vector", pa.list_(pa.float32())),
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
        columns = zip(file.chunks, file.terms, file.text_hashes, strict=True)
        rows.extend(
            _describe_chunk(file.record.path, number, chunk) | {"terms": terms, "text_hash": text_hash}
            for chunk, terms, text_hash in columns
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
        if not are_unit_vectors(vectors):
            raise ValueError(f"{name}: a vector is not finite and of unit length")


def are_unit_vectors(vectors: Vectors) -> bool:
    """Tell whether all rows are finite and of unit length, without a copy of what may be a whole index."""
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        # Written so that NaN fails as well.
        return bool(np.all(np.abs(norms - 1) < NORM_TOLERANCE))


def digest_rows(table: pa.Table) -> list[bytes]:
    """Return for each row the SHA-256 by which damage to it can be told: over all its columns but `digest` itself.

    Parameters
    ----------
    table : pyarrow.Table
        Rows with the schema of `build_schema`, with or without the column `digest`.

    Notes
    -----
    A row is hashed as its numbers and its lengths of texts and lists (-1 for null), each as eight bytes, and then the
    texts in UTF-8 and the lists' items, column by column in the order of their names: no two rows give the same bytes.
    """
    import pyarrow as pa

    numbers: list[NDArray[np.int64]] = []
    contents: list[Sequence[bytes]] = []
    for name in sorted(set(table.column_names) - {"digest"}):
        column = table[name]
        present = np.asarray(column.is_valid())
        if pa.types.is_integer(column.type):
            numbers += [present.astype(np.int64), column.cast(pa.int64()).fill_null(0).to_numpy()]
            continue
        parts = _cut_texts(column) if pa.types.is_string(column.type) else _cut_lists(column, present)
        numbers.append(np.array([-1 if part is None else len(part) for part in parts], np.int64))
        contents.append([part or b"" for part in parts])
    fixed = np.ascontiguousarray(np.column_stack(numbers), "<i8")
    return [
        hashlib.sha256(b"".join((row.tobytes(), *parts))).digest() for row, *parts in zip(fixed, *contents, strict=True)
    ]


def _cut_texts(column: pa.ChunkedArray) -> list[bytes | None]:
    import pyarrow as pa

    texts: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return texts


def _cut_lists(column: pa.ChunkedArray, present: NDArray[np.bool_]) -> list[bytes | None]:
    """Return the items of each list as bytes, None for a null."""
    import pyarrow.compute as pc

    held = column.drop_null()
    lengths = pc.list_value_length(held).to_numpy()
    chunks = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in held.chunks]
    items = np.concatenate(chunks) if chunks else np.zeros(0, np.float32)
    raw = items.astype(items.dtype.newbyteorder("<"), copy=False).tobytes()
    ends = np.cumsum(lengths, dtype=np.int64) * items.itemsize
    cuts = iter(zip(ends - lengths * items.itemsize, ends, strict=True))
    return [raw[slice(*next(cuts))] if there else None for there in present]


def _build_table(
    rows: Sequence[dict[str, Any]], vectors: Vectors, document_vectors: Sequence[Vectors | None]
) -> pa.Table:
    """Turn `rows` into columns; `vectors` has a row for each of them, which for head rows counts as null."""
    import pyarrow as pa

    schema = build_schema(vectors.shape[1])
    is_head = pa.array(np.array([row["ord"] == -1 for row in rows], bool))
    lists = {
        "vector": lambda kind: pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), type=kind, mask=is_head),
        "document_vector": lambda kind: pa.array(document_vectors, kind),
    }
    table = pa.Table.from_arrays(
        [
            lists[field.name](field.type)
            if field.name in lists
            else pa.array([row.get(field.name) for row in rows], field.type)
            for field in schema
        ],
        schema=schema,
    )
    at = schema.get_field_index("digest")
    return table.set_column(at, schema.field(at), pa.array(digest_rows(table), pa.binary()))


def _describe_record(record: FileRecord, number: int) -> dict[str, Any]:
    return {
        "gid": number << KEY_BITS,
        "path": record.path,
        "ord": -1,
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
