"""A batch of queries, on chunking-en, beside the usual script: vector search alone, of all queries in one process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.processes import BenchmarkError, find_model_folder, find_rse, make_environ, run_checked
from benchmarks.rounds import describe_runs, median_cpu, median_wall, run_in_turn
from benchmarks.tables import mark_least

COPIES, N_ROUNDS, N_ALONE = 4, 3, 5
LEAST_RATE = 100


def find_store(data: Path, work: Path) -> Path:
    """Return the store of chunking-en, which is made where it isn't there yet."""
    store = work / "en"
    run_checked(
        [find_rse(), "ingest", ".", "--store", str(store), "-q"],
        data / "chunking-en" / "docs",
        make_environ(work / "none"),
    )
    return store


def read_cases(data: Path) -> list[dict[str, object]]:
    """Return the questions of chunking-en."""
    text = (data / "chunking-en" / "cases-dev.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def measure(data: Path, work: Path) -> str:
    """Return the report; some lines are compared with the answers that their queries give alone."""
    store, environ = find_store(data, work), make_environ(work / "none")
    cases = read_cases(data)
    # Other words in each copy, so that nothing is asked twice.
    queries = [f"{case['query']}{' Briefly.' * copy}" for copy in range(COPIES) for case in cases]
    files = {}
    for name, some in (("all", queries), ("one", queries[:1])):
        files[name] = work / f"batch-{name}"
        files[name].write_text("\n".join(some) + "\n", encoding="utf-8")

    def ask(name: str) -> list[str]:
        return [find_rse(), "query", "--store", str(store), "--batch", str(files[name])]

    script = [sys.executable, str(Path(__file__).parent / "baseline_query.py"), str(store), find_model_folder()]
    runs = run_in_turn(
        {
            f"{len(queries):,} queries": lambda _: ask("all"),
            "sentence-transformers and lancedb": lambda _: [*script, "--batch", str(files["all"])],
            "1 query": lambda _: ask("one"),
        },
        N_ROUNDS,
        work,
        environ,
        warm_up=False,
    )
    many, other, one = runs.values()
    lines = many[0].stdout.splitlines(keepends=True)
    for at in range(0, len(queries), len(queries) // N_ALONE):
        alone = run_checked(
            [find_rse(), "query", "--store", str(store), "--jsonl", queries[at]], work, environ, codes=(0, 1)
        )
        if alone.stdout != lines[at]:
            raise BenchmarkError(f"query {at} of the batch gave another answer than alone")
    # Apart, as watching takes time.
    peak = run_checked(ask("all"), work, environ, watch=True).peak
    rate = len(queries) / median_wall(many)
    per_query = (median_cpu(many) - median_cpu(one)) / (len(queries) - 1)
    return "\n".join(
        [
            describe_runs(runs),
            "",
            f"- queries a second, start included: {mark_least(rate, LEAST_RATE, 0)}; CPU ms of one more query "
            f"{per_query * 1000:.1f}",
            f"- times as fast as the usual script, which finds no words and returns chunks: "
            f"{median_wall(other) / median_wall(many):.1f}",
            f"- memory of all its processes together: {peak / 1e6:,.0f} MB",
            f"- {N_ALONE} of its lines compared with the query alone: the same bytes",
        ]
    )
