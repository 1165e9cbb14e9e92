"""A folder and a store of any size without encoding: pseudo text, and vectors near those of real sentences.

Run ``python -m benchmarks.synthetic CHUNKS FOLDER``. The folder then holds ``docs/``, whose files are what the rows
say, so that a query also compares files and index as it does for anyone, and ``store/``, which was written through the
store's own adapter and maintained as after an ingest. ``FOLDER/made.json`` says how long that took. A store that is
there already is left as it is.

Each chunk is a spliced sentence. Its vector is the mean of those of the two sentences it was made of, moved by noise of
length `NOISE`, so that cosines between chunks spread as those of text do instead of gathering around 0.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pseudo_text import make_heading, read_sentences

CHUNKS_PER_FILE = 200  # about 26 kB
ROWS_PER_COMMIT = 50_000
NOISE = 0.6
LEAST_CHARS = 60


def main() -> int:
    """Make the folder."""
    parser = argparse.ArgumentParser(prog="benchmarks.synthetic", description=__doc__.splitlines()[0])
    parser.add_argument("chunks", type=int)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    if not (args.folder / "made.json").exists():
        made = make_synthetic(args.chunks, args.folder)
        (args.folder / "made.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print((args.folder / "made.json").read_text(encoding="utf-8"), end="")
    return 0


def make_synthetic(n_chunks: int, folder: Path) -> dict[str, Any]:
    """Write documents and store; return counts and the seconds that rows and search indexes took."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rse_cli.adapters.encoders import load_encoder
    from rse_cli.adapters.encoders.model_files import DEFAULT_MODEL
    from rse_cli.adapters.found_files import Selection
    from rse_cli.adapters.lancedb_store import LanceStore
    from rse_cli.adapters.manifest import ChunkingIdentity, Source, add_sources, create_manifest
    from rse_cli.cli.sources import describe_selection
    from rse_cli.cli.wiring import TEXT_VERSION

    docs, store_folder = folder / "docs", folder / "store"
    docs.mkdir(parents=True, exist_ok=True)
    encoder = load_encoder(DEFAULT_MODEL, for_query=True)
    sentences = read_sentences(Path(__file__).parent.parent / "sample_docs")
    bases = encoder.encode_documents(sentences)
    manifest = create_manifest(
        store_folder, docs, encoder.identity, "numpy", ChunkingIdentity(TEXT_VERSION, 300, "normal"), rebuild=True
    )
    store = LanceStore(store_folder, manifest)
    started = time.perf_counter()
    n_files = 0
    with store.lock():
        add_sources(store_folder, [Source("", describe_selection(Selection()))])
        for files in make_files(docs, n_chunks, sentences, bases):
            store.replace(files, [])
            n_files += len(files)
            say(f"{n_files * CHUNKS_PER_FILE:,} of {n_chunks:,} chunks")
        written = time.perf_counter()
        say("search indexes")
        store.maintain()
    return {
        "chunks": n_files * CHUNKS_PER_FILE,
        "files": n_files,
        "rows_seconds": round(written - started, 1),
        "index_seconds": round(time.perf_counter() - written, 1),
    }


def make_files(docs: Path, n_chunks: int, sentences: Sequence[str], bases: Any) -> Iterator[list[Any]]:
    """Yield files with rows for one commit each; their text is written to `docs`."""
    import numpy as np

    rng, noise = random.Random(n_chunks), np.random.default_rng(n_chunks)
    batch: list[Any] = []
    for number in range(-(-n_chunks // CHUNKS_PER_FILE)):
        pairs = [_splice(sentences, rng) for _ in range(CHUNKS_PER_FILE)]
        first, second = (bases[[pair[at] for pair in pairs]] for at in (0, 1))
        moved = noise.normal(size=first.shape).astype(np.float32)
        vectors = (first + second) / 2 + NOISE * moved / np.linalg.norm(moved, axis=1, keepdims=True)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        title = make_heading(sentences, rng)
        batch.append(_make_file(docs, number, title, [text for _, _, text in pairs], vectors))
        if len(batch) * CHUNKS_PER_FILE >= ROWS_PER_COMMIT:
            yield batch
            batch = []
    if batch:
        yield batch


def _splice(sentences: Sequence[str], rng: random.Random) -> tuple[int, int, str]:
    """Return two positions, and the first part of one sentence with the last part of the other, as long as a chunk."""
    while True:
        one, other = rng.randrange(len(sentences)), rng.randrange(len(sentences))
        first, last = sentences[one].split(), sentences[other].split()
        words = first[: rng.randint(2, len(first) - 1)] + last[rng.randint(1, len(last) - 2) :]
        text = " ".join(words)
        if len(text) >= LEAST_CHARS:
            return one, other, f"{text}\n"


def _make_file(docs: Path, number: int, title: str, texts: Sequence[str], vectors: Any) -> Any:
    """Write one file and return what the store holds of it."""
    from rse_cli.cli.wiring import name_reader
    from rse_cli.core.lexical import measure_windows, split_terms
    from rse_cli.core.models import Chunk
    from rse_cli.core.relevance import WINDOW_WIDTHS
    from rse_cli.pipeline.preparation import hash_text
    from rse_cli.ports import FileRecord, FileStamp, IndexedFile

    path = f"{number // 100:03}/{number:05}.txt"
    place = docs / path
    place.parent.mkdir(exist_ok=True)
    data = "".join(texts).encode()
    place.write_bytes(data)
    found = place.stat()
    chunks, terms, at = [], [], 0
    for ord_, text in enumerate(texts):
        chunks.append(
            Chunk(ord_, at, at + len(text), text, start_line=ord_ + 1, end_line=ord_ + 1, header=title, block=ord_ // 5)
        )
        terms.append(split_terms(text))
        at += len(text)
    mean = vectors.mean(axis=0)
    record = FileRecord(
        path,
        FileStamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns),
        hashlib.sha256(data).hexdigest(),
        "indexed",
        reader=name_reader(path),
        title=title,
        n_chunks=len(chunks),
        n_chars=at,
        field_terms=tuple(dict.fromkeys(split_terms(title))),
        window_lengths=measure_windows([len(words) for words in terms], WINDOW_WIDTHS),
    )
    hashes = [hash_text(title, text) for text in texts]
    return IndexedFile(
        record, chunks, [" ".join(words) for words in terms], hashes, vectors, mean / (mean**2).sum() ** 0.5
    )


def say(text: str) -> None:
    """Print progress to stderr."""
    print(f"synthetic: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
