"""What the pipeline asks of the outside world: readers, encoders and the store, as protocols over plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.models import Chunk, Document, FileStatus
from rse_cli.core.term_columns import TermColumn
from rse_cli.dataclass import dataclass

if TYPE_CHECKING:
    from rse_cli.core.context import Prompt

Vectors = NDArray[np.float32]
Keys = NDArray[np.int64]

KEY_BITS = 20
"""A chunk's key is ``document number << 20 | ord + 1``; slot 0 is the file's head row. 2^20 chunks are 150 MB."""

MAX_CHUNKS_PER_FILE = (1 << KEY_BITS) - 2


def make_key(document: int, ord_: int) -> int:
    """Return the key of a chunk."""
    return document << KEY_BITS | ord_ + 1


@dataclass(frozen=True, slots=True)
class Bucket:
    """A store in an object store.

    Parameters
    ----------
    address : str
        ``s3://bucket/prefix``, ``gs://…`` or ``az://…``, without a slash at the end.
    options : tuple of (str, str)
        What is needed to get there, named as Lance names it, where the environment doesn't say it.
    """

    address: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.address


StorePlace = Path | Bucket
"""Where a store lies: a folder, or a place in an object store."""


class Reader(Protocol):
    """Turns the bytes of one file into a document."""

    def __call__(self, path: Path, data: bytes) -> Document:
        """Read `data`, the content of `path`.

        Raises
        ------
        ReadError
            If the file can't be indexed; says why.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What must agree between the model of an index and the model of a query.

    Parameters
    ----------
    name : str
        As given to ``--model``.
    weights : str
        SHA-256 over the header and size of the weights file, or over the files' hashes for other layouts.
    dimension : int
        Length of a vector.
    pooling : str
        ``mean`` or ``cls``, or ``model`` where the library decides.
    max_tokens : int
        Longest input, special tokens included.
    query_prompt, document_prompt : str
        What the model wants before each text.
    """

    name: str
    weights: str
    dimension: int
    pooling: str
    max_tokens: int
    query_prompt: str = ""
    document_prompt: str = ""


class Encoder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def identity(self) -> ModelIdentity:
        """What an index must have been made with to be asked with this encoder."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> tuple[Vectors, list[bool]]:
        """Return unit vectors, ``(len(texts), dimension)``, and for each text whether it was cut at the limit."""
        ...

    def count_tokens(self, text: str) -> int:
        """Return how many tokens `text` has for the model, without prompt and special tokens."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of shape ``(len(texts), dimension)``; a text over the limit is the mean of its pieces."""
        ...


class Reranker(Protocol):
    """Reads query and text together and says how well they fit."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return scores in [0, 1], shape ``(len(texts),)``; higher is better."""
        ...


class Answerer(Protocol):
    """A language model that answers a prompt."""

    def stream(self, prompt: Prompt) -> Iterator[str]:
        """Yield the answer as it comes.

        Raises
        ------
        AnswerError
            If the model can't be asked, or gives no whole answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells without reading a file that it is the one indexed before."""

    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The head row of a file.

    Parameters
    ----------
    path : str
        Relative to the root, POSIX form.
    stamp : FileStamp
        The file as it was read.
    content_hash : str
        SHA-256 of its bytes, in hex.
    status : FileStatus
        What became of it.
    reason : str
        Why it has no chunks, else empty.
    reader : str
        Name of the reader, with its version.
    title : str
        The document's title, or what stands for it.
    n_chunks, n_chars : int
        Chunks and characters indexed.
    field_terms : tuple of str
        Distinct terms of the document field.
    window_lengths : tuple of int
        Sums over the chunks of the terms within ±0, ±1, ±4, ±12, for the mean lengths of BM25.
    summary : str
        A few of its sentences, on one line.
    """

    path: str
    stamp: FileStamp
    content_hash: str
    status: FileStatus
    reason: str = ""
    reader: str = ""
    title: str = ""
    n_chunks: int = 0
    n_chars: int = 0
    field_terms: tuple[str, ...] = ()
    window_lengths: tuple[int, ...] = (0, 0, 0, 0)
    summary: str = ""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """One file ready to be stored: its head row and its chunks.

    Parameters
    ----------
    record : FileRecord
        The head row.
    chunks : sequence of Chunk
        All chunks, in order.
    terms : sequence of str
        Per chunk, its terms joined by spaces.
    text_hashes : sequence of str
        Per chunk, the hash of header and text under which its vector is found again.
    vectors : ndarray of shape (n_chunks, dimension)
        Finite, of unit length.
    document_vector : ndarray of shape (dimension,) or None
        The document as a whole, of unit length; None without chunks.
    """

    record: FileRecord
    chunks: Sequence[Chunk]
    terms: Sequence[str]
    text_hashes: Sequence[str]
    vectors: Vectors
    document_vector: Vectors | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of the whole index that BM25 needs.

    Parameters
    ----------
    n_chunks : int
        All chunks.
    mean_lengths : mapping of int to float
        For k = 0, 1, 4, 12 the mean number of terms within ±k chunks.
    """

    n_chunks: int
    mean_lengths: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class EvidenceRows:
    """The columns of chunks that scoring reads, sorted by key.

    Parameters
    ----------
    keys : ndarray of shape (n,)
        Chunk keys, ascending.
    chars, start_chars, blocks : ndarray of shape (n,)
        Characters of each chunk, where it starts, and the number of its block.
    terms : TermColumn
        Terms of each chunk.
    row_terms : TermColumn
        Terms of the table that each chunk is a row of; none for other chunks.
    is_row : ndarray of bool, shape (n,)
        Whether each chunk is a row of a table.
    vectors : ndarray of shape (n, dimension)
        Unit vectors.
    """

    keys: Keys
    chars: NDArray[np.int64]
    start_chars: NDArray[np.int64]
    blocks: NDArray[np.int64]
    terms: TermColumn
    row_terms: TermColumn
    is_row: NDArray[np.bool_]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as the store gives it back for display."""

    key: int
    path: str
    chunk: Chunk


class Snapshot(Protocol):
    """One version of the index; everything read from it agrees."""

    @property
    def in_memory(self) -> bool:
        """Whether little is won by asking for two things at once."""
        ...

    def hold(self) -> HeldSnapshot:
        """The same version with its chunks in memory, which many queries and threads can share."""
        ...

    def statistics(self) -> Statistics:
        """Numbers of the whole index."""
        ...

    def files(self) -> list[FileRecord]:
        """Every head row, sorted by path."""
        ...

    def heads(self, documents: Sequence[int]) -> dict[int, FileRecord]:
        """Head rows by document number."""
        ...

    def document_vectors(self) -> tuple[Keys, Vectors]:
        """Numbers of all documents that have chunks, ascending, and their vectors, ``(n_documents, dimension)``."""
        ...

    def nearest(self, vector: Vectors, k: int, paths: Sequence[str] | None) -> tuple[Keys, NDArray[np.float64]]:
        """The `k` chunks of greatest cosine among `paths` (None: all), best first, and their similarity."""
        ...

    def matching(self, terms: Sequence[str], k: int, paths: Sequence[str] | None) -> Keys:
        """The `k` best chunks by full text for any of `terms` among `paths` (None: all), best first."""
        ...

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """For each term, how many chunks of the whole index hold it."""
        ...

    def evidence(self, keys: Sequence[int] | Keys) -> EvidenceRows:
        """Those of `keys` that exist (head rows and gaps are ignored), sorted by key."""
        ...

    def chunks(self, keys: Sequence[int]) -> list[StoredChunk]:
        """Those of `keys` that exist, sorted by key."""
        ...


class HeldSnapshot(Snapshot, Protocol):
    """One version of the index in memory."""

    def search_ahead(self, vectors: Vectors, terms: Sequence[tuple[str, ...]], k: int) -> None:
        """Have at hand what `nearest` and `matching` find among all paths for these, with this `k`."""
        ...


class Store(Protocol):
    """The index on disk."""

    def snapshot(self) -> Snapshot:
        """The newest committed version."""
        ...

    def lock(self) -> AbstractContextManager[None]:
        """Hold the index for writing; readers go on undisturbed."""
        ...

    def replace(self, files: Sequence[IndexedFile], removed: Sequence[str]) -> None:
        """In one commit, put `files` in place of what their paths held, and drop `removed` paths."""
        ...

    def touch(self, records: Sequence[FileRecord]) -> None:
        """In one commit, replace the head rows of files whose chunks stay."""
        ...

    def vectors(self, text_hashes: Sequence[str]) -> dict[str, Vectors]:
        """Vectors already in the index, by hash."""
        ...

    def maintain(self) -> None:
        """Bring the search indexes up to date and drop old versions."""
        ...


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to index: its path from the root, where it lies, its stamp, and for a link the path that it leads to."""

    path: str
    location: Path
    stamp: FileStamp
    target: str = ""
