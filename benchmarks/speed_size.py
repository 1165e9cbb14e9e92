"""A hundred thousand and a million chunks: cold queries, the vector index against flat search, recall among strangers.

``python -m benchmarks.speed_size recall STORE DATA N`` and ``... mix FOLDER SOURCE`` are run as processes of their own,
because they load numpy and lance.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.processes import find_rse, make_environ, run_checked
from benchmarks.speed_batch import find_store
from benchmarks.speed_search import find_synthetic, measure_store
from benchmarks.tables import mark_least, mark_most

HERE = Path(__file__).parent
N_CHUNKS_MIXED, N_CHUNKS_LARGE = 100_000, 1_000_000
K = 200
LEAST_RECALL, MOST_LOST = 0.98, 1.0


def measure_100k(data: Path, work: Path) -> str:
    """Return the report on 100,000 chunks, with chunking-en mixed in for recall."""
    lines = [measure_store(work, N_CHUNKS_MIXED, 0.8), report_index(data, work, N_CHUNKS_MIXED, 59)]
    lines.append(report_mixed(data, work))
    return "\n".join(lines)


def measure_1m(data: Path, work: Path) -> str:
    """Return the report on a million chunks."""
    return "\n".join([measure_store(work, N_CHUNKS_LARGE, 1.5), report_index(data, work, N_CHUNKS_LARGE, 20)])


def report_index(data: Path, work: Path, n_chunks: int, n_queries: int) -> str:
    """Return how long the store took, and how the vector index compares with flat search."""
    folder = find_synthetic(work, n_chunks)
    made = json.loads((folder / "made.json").read_text(encoding="utf-8"))
    command = [
        sys.executable,
        "-m",
        "benchmarks.speed_size",
        "recall",
        str(folder / "store"),
        str(data),
        str(n_queries),
    ]
    found = json.loads(run_checked(command, HERE.parent, make_environ(work / "none")).stdout)
    return "\n".join(
        [
            f"- vector index, recall at rank {K} against flat search, {n_queries} queries: "
            f"{mark_least(found['recall'], LEAST_RECALL, 4)}, least {found['least']:.3f}; "
            f"{found['index_ms']:.0f} CPU ms a warm search, flat {found['flat_ms']:.0f}",
            f"- made in {made['rows_seconds']:.0f} s (rows) and {made['index_seconds']:.0f} s (search indexes) of wall "
            "clock",
        ]
    )


def measure_recall(store: Path, data: Path, n_queries: int) -> dict[str, float]:
    """Compare the search that `rse` makes with a flat one, on questions of chunking-en."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import lance
    import numpy as np
    import pyarrow as pa

    from rse_cli.adapters.encoders import load_encoder
    from rse_cli.adapters.encoders.model_files import DEFAULT_MODEL
    from rse_cli.adapters.lance_snapshot import LanceSnapshot, open_dataset
    from rse_cli.adapters.manifest import read_manifest

    text = (data / "chunking-en" / "cases-dev.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line)["query"] for line in text[:: len(text) // n_queries]][:n_queries]
    vectors = load_encoder(DEFAULT_MODEL, for_query=True).encode_queries(questions)[0]
    snapshot = LanceSnapshot(store, open_dataset(store), read_manifest(store))
    dataset = lance.dataset(str(store / "chunks.lance"))
    started = time.process_time()
    found = [snapshot.nearest(vector, K, None)[1] for vector in vectors]
    between = time.process_time()
    recalls = []
    for vector, cosines in zip(vectors, found, strict=True):
        nearest = {"column": "vector", "q": pa.array(vector.tolist(), pa.float32()), "k": K, "metric": "cosine"}
        flat = dataset.to_table(columns=["_distance"], nearest=nearest | {"use_index": False})
        # By cosine, so that chunks that tie at the last rank count as each other.
        recalls.append(float(np.mean(cosines >= 1 - flat["_distance"].to_numpy().max() - 1e-6)))
    each = 1000 / len(vectors)
    return {
        "recall": float(np.mean(recalls)),
        "least": min(recalls),
        "index_ms": (between - started) * each,
        "flat_ms": (time.process_time() - between) * each,
    }


def report_mixed(data: Path, work: Path) -> str:
    """Return what the recall of chunking-en loses when it is asked among 100,000 other chunks."""
    alone, folder, environ = find_store(data, work), work / "mixed", make_environ(work / "none")
    if not (folder / "mixed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(find_synthetic(work, N_CHUNKS_MIXED) / "store", folder / "store")
        mix = [sys.executable, "-m", "benchmarks.speed_size", "mix", str(folder), str(alone)]
        run_checked(mix, HERE.parent, environ)
        (folder / "mixed").touch()
    cases = str(data / "chunking-en" / "cases-dev.jsonl")
    recalls = {}
    for name, store in (("alone", alone), ("mixed", folder / "store")):
        run = run_checked([find_rse(), "check", cases, "--store", str(store), "--json"], folder, environ, codes=(0, 1))
        recalls[name] = 100 * json.loads(run.stdout)["means"]["recall"]
    lost = recalls["alone"] - recalls["mixed"]
    return (
        f"- recall of `query` on chunking-en: {recalls['alone']:.1f} alone, {recalls['mixed']:.1f} among "
        f"{N_CHUNKS_MIXED:,} others; points lost: {mark_most(lost, MOST_LOST, 2)}"
    )


def mix_store(folder: Path, source: Path) -> None:
    """Add every file of the store `source` to that of `folder`, with the vectors that it has there."""
    from rse_cli.adapters.lance_snapshot import LanceSnapshot, open_dataset
    from rse_cli.adapters.lancedb_store import LanceStore
    from rse_cli.adapters.manifest import read_manifest
    from rse_cli.core.term_columns import TermTexts
    from rse_cli.pipeline.preparation import hash_text
    from rse_cli.ports import IndexedFile, make_key

    snapshot = LanceSnapshot(source, open_dataset(source), read_manifest(source))
    numbers, wholes = snapshot.document_vectors()
    files: list[Any] = []
    for number, record in sorted(snapshot.heads(numbers.tolist()).items()):
        keys = [make_key(number, ord_) for ord_ in range(record.n_chunks)]
        rows, chunks = snapshot.evidence(keys), [one.chunk for one in snapshot.chunks(keys)]
        assert isinstance(rows.terms, TermTexts)
        hashes = [hash_text(chunk.header, chunk.text) for chunk in chunks]
        whole = wholes[numbers.tolist().index(number)]
        files.append(IndexedFile(record, chunks, rows.terms.texts, hashes, rows.vectors, whole))
    store = LanceStore(folder / "store", read_manifest(folder / "store"))
    with store.lock():
        store.replace(files, [])
        store.maintain()


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    if kind == "recall":
        print(json.dumps(measure_recall(Path(rest[0]), Path(rest[1]), int(rest[2]))))
    else:
        mix_store(Path(rest[0]), Path(rest[1]))
