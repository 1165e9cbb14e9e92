"""One file's bytes to the rows that the index stores of it, all but the vectors of new texts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

import numpy as np

from rse_cli.core.annotation import choose_title, collect_field_terms, make_chunks
from rse_cli.core.lexical import measure_windows, split_terms
from rse_cli.core.models import Chunk, Document
from rse_cli.core.relevance import WINDOW_WIDTHS
from rse_cli.core.summaries import choose_summary, compose_summary, pool_summary
from rse_cli.dataclass import dataclass
from rse_cli.errors import ReadError
from rse_cli.pipeline.planning import hash_content
from rse_cli.ports import MAX_CHUNKS_PER_FILE, Encoder, FileRecord, FoundFile, IndexedFile, Vectors
from rse_cli.timings import stage

HEADER_WEIGHTS = {"normal": 0.3, "strong": 1.0, "none": 0.0}
"""Share of the header in a chunk's vector. 0.3 costs other collections nothing; 1.0 gains 3–8 points of recall on
annual reports and loses up to 5 elsewhere."""

Read = Callable[[Path, bytes], tuple[str, Document]]


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """A file read and cut into chunks, waiting for its vectors."""

    record: FileRecord
    chunks: tuple[Chunk, ...] = ()
    terms: tuple[str, ...] = ()
    text_hashes: tuple[str, ...] = ()


def hash_text(header: str, text: str) -> str:
    """Return the hash under which the vector of a text with its header is found again."""
    return hashlib.sha256(f"{header}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def prepare_file(file: FoundFile, data: bytes, reader: str, read: Read, chunk_chars: int) -> PreparedFile:
    """Read a file and cut it into chunks; a file that can't be read becomes a record that says why."""
    record = FileRecord(file.path, file.stamp, hash_content(data), "failed", reader=reader)
    path = PurePosixPath(file.path)
    try:
        _, document = read(file.location, data)
        title = choose_title(document, path.stem)
        chunks = make_chunks(document, title, chunk_chars)
        if len(chunks) > MAX_CHUNKS_PER_FILE:
            raise ReadError("failed", f"{len(chunks):,} chunks are more than an index holds of one file")
        if not chunks:
            raise ReadError("empty", "no text")
    except ReadError as fault:
        return PreparedFile(replace(record, status=fault.status, reason=fault.reason))  # type: ignore[arg-type]
    terms = [split_terms(chunk.text) for chunk in chunks]
    return PreparedFile(
        replace(
            record,
            status="indexed",
            title=title,
            n_chunks=len(chunks),
            n_chars=len(document.text),
            field_terms=collect_field_terms(document, path.stem),
            window_lengths=measure_windows([len(words) for words in terms], WINDOW_WIDTHS),
        ),
        tuple(chunks),
        tuple(" ".join(words) for words in terms),
        tuple(hash_text(chunk.header, chunk.text) for chunk in chunks),
    )


def list_missing(files: Sequence[PreparedFile], known: Mapping[str, Vectors]) -> dict[str, tuple[str, str]]:
    """Return header and text by hash for the chunks of `files` whose vectors are not `known`."""
    return {
        text_hash: (chunk.header, chunk.text)
        for file in files
        for text_hash, chunk in zip(file.text_hashes, file.chunks, strict=True)
        if text_hash not in known
    }


@stage("encode")
def encode_missing(
    missing: Mapping[str, tuple[str, str]],
    encoder: Encoder,
    header_weight: float,
    advance: Callable[[int], None],
    breadth: int = 1,
) -> dict[str, Vectors]:
    """Return vectors ``normalise(e_text + weight · e_header)`` by hash; each distinct header is encoded once.

    Parameters
    ----------
    missing : mapping of str to (str, str)
        Header and text by hash.
    encoder : Encoder
        The model.
    header_weight : float
        At least 0.
    advance : callable
        Told how many more texts are done.
    breadth : int
        How many times more texts to give to the encoder at once than one machine needs.
    """
    texts = [text for _, text in missing.values()]
    headers = list(dict.fromkeys(header for header, _ in missing.values())) if header_weight else []
    encoded = _encode_in_steps(texts + headers, encoder, advance, len(texts), breadth)
    vectors, of_headers = np.split(encoded, [len(texts)])
    if headers:
        positions = {header: at for at, header in enumerate(headers)}
        rows = [positions[header] for header, _ in missing.values()]
        vectors = vectors + np.float32(header_weight) * of_headers[rows]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return dict(zip(missing, vectors, strict=True))


ENCODE_STEP = 768  # texts between two updates of the progress bar: a batch of one machine and its headers


def _encode_in_steps(
    texts: Sequence[str], encoder: Encoder, advance: Callable[[int], None], n_counted: int, breadth: int
) -> Vectors:
    """Return the vectors of `texts`, of which the first `n_counted` count as progress.

    Steps are equally large: cores wait for each other at the end of each.
    """
    parts = [np.zeros((0, encoder.identity.dimension), np.float32)]
    n_steps = math.ceil(len(texts) / (ENCODE_STEP * breadth))
    edges = [len(texts) * step // n_steps for step in range(n_steps + 1)] if texts else []
    for start, end in pairwise(edges):
        parts.append(encoder.encode_documents(texts[start:end]))
        advance(max(0, min(end, n_counted) - start))
    return np.concatenate(parts)


def attach_vectors(file: PreparedFile, vectors: Mapping[str, Vectors], dimension: int) -> IndexedFile:
    """Return the file ready to be stored."""
    rows = [vectors[text_hash] for text_hash in file.text_hashes]
    if not rows:
        return IndexedFile(file.record, (), (), (), np.zeros((0, dimension), np.float32))
    stacked = np.stack(rows)
    record = replace(file.record, summary=compose_summary(file.chunks, choose_summary(file.chunks, stacked)))
    # The whole document, not its summary alone: that ranked the sample's documents better (MRR 0.74 against 0.59).
    chars = np.array([len(chunk.text) for chunk in file.chunks])
    whole = pool_summary(stacked, chars, range(len(chars)))
    return IndexedFile(record, file.chunks, file.terms, file.text_hashes, stacked, whole)
