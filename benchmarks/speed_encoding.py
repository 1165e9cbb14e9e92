"""Bulk encoding beside sentence-transformers' default ``encode``, in one process, in turn, on the same chunks.

``python -m benchmarks.speed_encoding FOLDER ROUNDS`` measures and prints JSON; the runner starts it as a process of its
own, because it loads torch.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.processes import make_environ, run_checked
from benchmarks.rounds import describe_spread, median_ratio
from benchmarks.tables import format_table, mark_least

if TYPE_CHECKING:
    from rse_cli.adapters.encoders.numpy_bert import NumpyBert

N_CHUNKS, N_ROUNDS, N_JOBS = 400, 3, 2
LEAST_RATIO, LEAST_COSINE = 2, 0.9999


def measure(data: Path, work: Path) -> str:
    """Return the report."""
    found = run_comparison(data / "chunking-en" / "docs", N_ROUNDS, make_environ(work / "none"))
    rows = [
        [name, *(describe_spread([N_CHUNKS / one for one in found[f"{name} {how}"]]) for how in ("cpu", "wall"))]
        for name in ("rse", "sentence-transformers")
    ]
    ratios = {how: median_ratio(found[f"sentence-transformers {how}"], found[f"rse {how}"]) for how in ("cpu", "wall")}
    floors = {how: median_ratio(found[f"sentence-transformers {how}"], found[f"floor {how}"]) for how in ratios}
    alone = {how: describe_spread([N_CHUNKS / one for one in found[f"floor {how}"]]) for how in ratios}
    header = ["encoder", "chunks a CPU second, 1 thread", f"chunks a second, {N_JOBS} threads"]
    return "\n".join(
        [
            f"{N_CHUNKS} chunks of chunking-en, {found['chars']:.0f} characters on average, {N_ROUNDS} rounds.",
            "",
            format_table(header, rows),
            "",
            f"- CPU, so many times sentence-transformers: {mark_least(ratios['cpu'], LEAST_RATIO, 2)}",
            f"- wall clock on {N_JOBS} threads, so many times: {mark_least(ratios['wall'], LEAST_RATIO, 2)}",
            "- matrix products, exponentials and divisions alone, which no encoder in numpy can do without: "
            f"{alone['cpu']} chunks a CPU second, {floors['cpu']:.2f} times sentence-transformers; "
            f"{alone['wall']} chunks a second on {N_JOBS} threads, {floors['wall']:.2f} times",
            f"- least cosine with sentence-transformers: {mark_least(found['cosine'], LEAST_COSINE, 7)}",
            f"- largest difference of a vector's numbers alone and in a batch: {found['apart']:.1g}; of a query's "
            f"{found['queries']:g}",
        ]
    )


def run_comparison(docs: Path, n_rounds: int, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what `compare` finds, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed_encoding", str(docs), str(n_rounds)]
    found: dict[str, Any] = json.loads(run_checked(command, Path(__file__).parent.parent, environ).stdout)
    return found


def read_chunks(docs: Path) -> list[str]:
    """Return the texts of all chunks of a folder of Markdown files, as an ingest would encode them."""
    from rse_cli.adapters.readers import read_document
    from rse_cli.core.annotation import choose_title, make_chunks

    texts = []
    for path in sorted(docs.iterdir()):
        document = read_document(path, path.read_bytes())[1]
        texts += [chunk.text for chunk in make_chunks(document, choose_title(document, path.stem), 300)]
    return texts


def compare(docs: Path, n_rounds: int) -> dict[str, Any]:
    """Encode by both in turn and return the seconds, and how far the vectors are apart."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    import torch
    from sentence_transformers import SentenceTransformer

    from rse_cli.adapters.encoders import load_encoder
    from rse_cli.adapters.encoders.model_files import DEFAULT_MODEL, find_model
    from rse_cli.adapters.encoders.pool import EncoderPool

    every = read_chunks(docs)
    texts = every[:: len(every) // N_CHUNKS][:N_CHUNKS]
    ours = load_encoder(DEFAULT_MODEL, for_query=False)
    theirs = SentenceTransformer(str(find_model(DEFAULT_MODEL)), device="cpu")
    pool = EncoderPool(ours, DEFAULT_MODEL, "numpy", N_JOBS)
    pool.encode_documents(texts)  # starts the workers
    names = ("rse", "sentence-transformers")
    found: dict[str, Any] = {f"{name} {how}": [] for name in names for how in ("cpu", "wall")}
    found |= {"floor cpu": [], "floor wall": [], "sentence-transformers cpu of all": []}
    for _ in range(n_rounds):
        torch.set_num_threads(1)
        for name, encode in zip(names, (ours.encode_documents, theirs.encode), strict=True):
            started = time.process_time()
            encode(texts)
            found[f"{name} cpu"].append(time.process_time() - started)
        found["floor cpu"].append(time_floor(ours, texts))
        torch.set_num_threads(N_JOBS)
        for name, encode in zip(names, (pool.encode_documents, theirs.encode), strict=True):
            started, used = time.perf_counter(), time.process_time()
            encode(texts)
            found[f"{name} wall"].append(time.perf_counter() - started)
        found["sentence-transformers cpu of all"].append(time.process_time() - used)
        started = time.perf_counter()
        with ThreadPoolExecutor(N_JOBS) as threads:
            list(threads.map(lambda part: time_floor(ours, part), [texts[at::N_JOBS] for at in range(N_JOBS)]))
        found["floor wall"].append(time.perf_counter() - started)
    pool.close()
    expected = np.asarray(theirs.encode(texts, normalize_embeddings=True))
    vectors = ours.encode_documents(texts)
    some = texts[::10]
    alone = np.concatenate([ours.encode_documents([text]) for text in some])
    asked = np.concatenate([ours.encode_queries([text])[0] for text in some])
    return found | {
        "chars": float(np.mean([len(text) for text in texts])),
        "cosine": float(np.einsum("ij,ij->i", vectors, expected).min()),
        "apart": float(np.abs(vectors[::10] - alone).max()),
        "queries": float(np.abs(ours.encode_queries(some)[0] - asked).max()),
    }


def time_floor(encoder: NumpyBert, texts: list[str]) -> float:
    """Return the CPU seconds of what no encoder in numpy does without, for these texts.

    That is the matrix products, and an exponential and a division for each number of softmax and gelu. What comes on
    top: biases, the polynomial in gelu, greatest scores, residuals, two normalisations a layer, pooling, tokens.
    """
    import numpy as np

    from rse_cli.adapters.encoders.bert_forward import BLOCK_FLOATS, BLOCK_ROWS, GROUP_SCORES
    from rse_cli.adapters.encoders.wordpiece import encode_texts

    lengths = Counter(len(tokens) for tokens in encode_texts(encoder.tokenizer, texts))
    n_tokens = sum(length * count for length, count in lengths.items())
    model = encoder.network.model
    heads = model.n_heads, model.width // model.n_heads
    narrow, wide = (np.ones((BLOCK_ROWS, width), np.float32) for width in (model.width, model.inner_width))
    in_cache = np.ones(BLOCK_FLOATS, np.float32)
    started = time.process_time()
    for layer in encoder.network.layers:
        for _ in range(0, n_tokens, BLOCK_ROWS):
            for weight in (layer.query.weight, layer.key, layer.value, layer.attended.weight):
                np.matmul(narrow, weight.T)
            np.matmul(narrow, layer.inner.weight.T, out=wide)
            for _ in range(0, wide.size, BLOCK_FLOATS):
                np.divide(in_cache, np.exp(in_cache, out=in_cache), out=in_cache)
            np.matmul(wide, layer.outer.weight.T)
    weights = (time.process_time() - started) * n_tokens / (-(-n_tokens // BLOCK_ROWS) * BLOCK_ROWS)
    started = time.process_time()
    for length, count in lengths.items():
        most = max(1, GROUP_SCORES // (heads[0] * length * length))
        for done in range(0, count, most):
            part = np.ones((min(most, count - done), heads[0], length, heads[1]), np.float32)
            for _ in encoder.network.layers:
                scores = np.matmul(part, part.transpose(0, 1, 3, 2))
                np.divide(scores, np.exp(scores, out=scores), out=scores)
                np.matmul(scores, part)
    return weights + time.process_time() - started


if __name__ == "__main__":
    print(json.dumps(compare(Path(sys.argv[1]), int(sys.argv[2]))))
