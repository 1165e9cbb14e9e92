"""Time of choosing segments, over the number of chunks: by `rse` from relevance, by `dsrag` from ranked hits.

Run with ``python -m benchmarks.engine``; it exits 1 when a limit is exceeded. ``--published dsrag/rse.py`` times the
published code beside it, from a file that the project doesn't hold: https://github.com/D-Star-AI/dsRAG.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rounds import median_ratio
from benchmarks.tables import format_table, mark_most
from rse_cli.core.dsrag import RankedHit, relevant_segments
from rse_cli.core.dsrag_params import DSRAG_PRESETS
from rse_cli.core.params import RseParams
from rse_cli.core.selection import select_segments

SIZES = (12_500, 25_000, 50_000, 100_000, 200_000)
LIMIT_SIZE = 50_000
QUERIES = 5
DOCUMENTS = 50
HITS = 200  # what the command line feeds per query
ROUNDS = 15  # a median of fewer moved by more than a tenth
PUBLISHED_ROUNDS = 3
RSE_LIMIT = 10  # ms at 50,000 chunks
CLUSTER = 8  # hits of one query come in runs, as they do in documents; the mean run has this many


@dataclass(frozen=True, slots=True)
class Case:
    """A setting to time: `limit` in ms at 50,000 chunks, or None; `ranks_all` ranks every chunk, not 200."""

    name: str
    limit: float | None
    changes: dict[str, float | str]
    ranks_all: bool = False
    preset: str = "find_all"


CASES = (
    Case("find_all", 10, {}),
    Case("find_all, penalty 0", 100, {"irrelevant_chunk_penalty": 0.0}),
    Case("find_all, penalty 0, minimum_value 0", None, {"irrelevant_chunk_penalty": 0.0, "minimum_value": 0.0}),
    Case("balanced", None, {}, preset="balanced"),
    Case("find_all, exact", None, {"solver": "exact"}),
    Case("balanced, exact", None, {"solver": "exact"}, preset="balanced"),
    Case("find_all, all chunks ranked", None, {}, ranks_all=True),
    Case("find_all, penalty 0, all chunks ranked", None, {"irrelevant_chunk_penalty": 0.0}, ranks_all=True),
)


def make_ranked(n_chunks: int, n_hits: int, seed: int = 0) -> list[list[RankedHit]]:
    """Return hits of 5 queries in 50 documents that have `n_chunks` chunks together, each hit at its end."""
    rng = np.random.default_rng(seed)
    size = n_chunks // DOCUMENTS
    lengths = rng.integers(50, 1_000, n_chunks)
    ranked: list[list[RankedHit]] = []
    for _ in range(QUERIES):
        ends = np.arange(size - 1, n_chunks, size)
        starts = rng.choice(n_chunks, n_hits // CLUSTER + 1, replace=False)
        near = (starts[:, None] + np.arange(CLUSTER)).ravel() % n_chunks
        chunks = np.unique(np.concatenate((ends, near, np.arange(n_chunks if n_hits >= n_chunks else 0))))
        rest = rng.permutation(chunks[~np.isin(chunks, ends)])[: n_hits - DOCUMENTS]
        order = rng.permutation(np.concatenate((ends, rest)))
        similarities = np.sort(rng.uniform(0.2, 1.0, len(order)))[::-1]
        ranked.append(
            [
                (f"{at // size}.md", int(at % size), int(lengths[at]), float(similarity))
                for at, similarity in zip(order, similarities, strict=True)
            ]
        )
    return ranked


def prepare_dsrag(case: Case, n_chunks: int) -> Callable[[], Sequence[object]]:
    """Return what chooses segments from ranked hits."""
    ranked = make_ranked(n_chunks, n_chunks if case.ranks_all else HITS)
    params = DSRAG_PRESETS[case.preset].to_dict() | case.changes
    return lambda: relevant_segments(ranked, params)


def prepare_rse(n_chunks: int, *, fill: bool) -> Callable[[], Sequence[object]]:
    """Return what chooses segments from the relevance of `n_chunks` candidates to each query.

    As in queries of 25,000 candidates: half of them below 0.015, 3 in 100 above the penalty, the answers in runs.
    """
    rng = np.random.default_rng(0)
    chars, starts = rng.integers(50, 300, n_chunks), np.arange(n_chunks) // (n_chunks // DOCUMENTS)
    relevances = rng.beta(1, 45, (QUERIES, n_chunks))
    for relevance in relevances:
        near = (rng.choice(n_chunks, HITS // CLUSTER, replace=False)[:, None] + np.arange(CLUSTER)).ravel() % n_chunks
        relevance[near] = rng.uniform(0.3, 1.0, len(near))
    return lambda: select_segments(list(relevances), chars, starts, RseParams(), fill).choices


def time_case(select: Callable[[], Sequence[object]]) -> tuple[list[float], int]:
    """Return the times in ms and the number of segments."""
    rounds = [time_once(select) for _ in range(ROUNDS)]
    return [took for took, _ in rounds], len(rounds[0][1])


def time_once(select: Callable[[], Sequence[Any]]) -> tuple[float, Sequence[Any]]:
    """Return the time of a call in ms, and its result."""
    begun = time.perf_counter()
    found = select()
    return (time.perf_counter() - begun) * 1_000, found


def load_published(path: Path) -> Callable[[list[list[RankedHit]], dict[str, Any]], Sequence[Any]]:
    """Return what answers as `relevant_segments` does, by the published code in a file."""
    spec = importlib.util.spec_from_file_location("published_rse", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise SystemExit(f"bench: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def select(ranked: list[list[RankedHit]], params: dict[str, Any]) -> Sequence[Any]:
        # Its own form of hits; it measures the text of a chunk and reads nothing else of it.
        results = [
            [
                {
                    "metadata": {"doc_id": document, "chunk_index": ord_, "chunk_text": "x" * length},
                    "similarity": similarity,
                }
                for document, ord_, length, similarity in hits
            ]
            for hits in ranked
        ]
        splits, starts, documents = module.get_meta_document(results, params["top_k_for_document_selection"])
        values = module.get_relevance_values(
            results, splits[-1], starts, documents, params["irrelevant_chunk_penalty"], params["decay_rate"]
        )
        ceiling = params["overall_max_length"] + (len(ranked) - 1) * params["overall_max_length_extension"]
        segments, _ = module.get_best_segments(values, splits, params["max_length"], ceiling, params["minimum_value"])
        return segments

    return select


def compare_published(path: Path, n_chunks: int = LIMIT_SIZE) -> str:
    """Return the table of both, in turn, at the presets."""
    published, ranked, rows = load_published(path), make_ranked(n_chunks, HITS), []
    for preset in ("balanced", "find_all"):
        params = DSRAG_PRESETS[preset].to_dict()
        ours, theirs = [], []
        for _ in range(PUBLISHED_ROUNDS):
            ours.append(time_once(lambda params=params: relevant_segments(ranked, params)))
            theirs.append(time_once(lambda params=params: published(ranked, params)))
        times = [statistics.median(took for took, _ in runs) for runs in (ours, theirs)]
        ratio = median_ratio([took for took, _ in theirs], [took for took, _ in ours])
        counts = [f"{len(runs[0][1])}" for runs in (ours, theirs)]
        rows.append([preset, *(f"{took:,.1f}" for took in times), f"{ratio:,.0f}", *counts])
    header = [f"{n_chunks:,} chunks", "ms", "published: ms", "times", "segments", "published: segments"]
    return format_table(header, rows)


def main() -> int:
    """Print one row a case; return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="benchmarks.engine", description=__doc__.splitlines()[0])
    parser.add_argument("--published", type=Path, metavar="FILE", help="dsrag/rse.py, to be timed beside this")
    args = parser.parse_args()
    if args.published is not None:
        print(compare_published(args.published))
        return 0
    cases = [
        ("rse", RSE_LIMIT, partial(prepare_rse, fill=False)),
        ("rse, fill", None, partial(prepare_rse, fill=True)),
        *((f"dsrag, {case.name}", case.limit, partial(prepare_dsrag, case)) for case in CASES),
    ]
    rows, failed = [], False
    for name, limit, prepare in cases:
        times = {size: time_case(prepare(size)) for size in SIZES}
        medians = {size: statistics.median(took) for size, (took, _) in times.items()}
        cells = [f"{medians[size]:,.1f}" for size in SIZES]
        if limit is not None:
            failed |= medians[LIMIT_SIZE] > limit
            cells[SIZES.index(LIMIT_SIZE)] = mark_most(medians[LIMIT_SIZE], limit)
        took, n_segments = times[LIMIT_SIZE]
        rows.append([name, *cells, f"{min(took):,.1f}–{max(took):,.1f}", str(n_segments)])
    header = [f"{QUERIES} queries: ms", *(f"{n:,} chunks" for n in SIZES), "min–max at 50,000", "segments at 50,000"]
    print(format_table(header, rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
