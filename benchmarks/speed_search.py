"""Cold queries beside the floor, ``inspect``, and the engine that selects segments."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from benchmarks.processes import BenchmarkError, find_model_folder, find_rse, make_environ, run_checked
from benchmarks.pseudo_text import make_question, read_sentences
from benchmarks.rounds import compare_pairs, describe_ratio, describe_runs, median_cpu, median_wall, run_in_turn
from benchmarks.tables import mark_most

HERE = Path(__file__).parent
N_ROUNDS = 7
INDEX_CHUNKS, WITH_INDEX = 50_000, "floor with the vector index"
MOST_OF_FLOOR, MOST_INSPECT, MOST_HELP = 1.5, 0.8, 0.2


def measure_cold(_: Path, work: Path) -> str:
    """Return the report on a synthetic store of 10,000 chunks."""
    return measure_store(work, 10_000, 0.5, inspect=True)


def find_synthetic(work: Path, n_chunks: int) -> Path:
    """Return the folder of a synthetic store, which is made where it isn't there yet."""
    folder = work / f"synthetic-{n_chunks}"
    command = [sys.executable, "-m", "benchmarks.synthetic", str(n_chunks), str(folder)]
    run_checked(command, HERE.parent, make_environ(work / "none"))
    return folder


def measure_store(work: Path, n_chunks: int, most_seconds: float, *, inspect: bool = False) -> str:
    """Return how long a cold query takes on a synthetic store, with the floor beside it."""
    folder, sentences, rng = (
        find_synthetic(work, n_chunks),
        read_sentences(HERE.parent / "sample_docs"),
        random.Random(),
    )
    store, model = str(folder / "store"), find_model_folder()
    commands = {
        "rse query --json": lambda _: [find_rse(), "query", "--store", store, "--json", make_question(sentences, rng)],
        "floor": lambda _: [sys.executable, str(HERE / "floor_query.py"), store, model],
    }
    if n_chunks >= INDEX_CHUNKS:
        commands[WITH_INDEX] = lambda _: [sys.executable, str(HERE / "floor_query.py"), store, model, "--index"]
    if inspect:
        commands["sentence-transformers and lancedb"] = lambda _: [
            sys.executable,
            str(HERE / "baseline_query.py"),
            store,
            model,
            make_question(sentences, rng),
        ]
        commands["rse inspect"] = lambda _: [find_rse(), "inspect", "--store", store, make_question(sentences, rng)]
        commands["rse --help"] = lambda _: [find_rse(), "--help"]
        commands["import typer"] = lambda _: [sys.executable, "-c", "import typer; print(typer.__name__)"]
    runs = run_in_turn(commands, N_ROUNDS, folder / "docs", make_environ(work / "none"))
    query = runs["rse query --json"]
    lines = [
        describe_runs(runs),
        "",
        f"- query, wall s: {mark_most(median_wall(query), most_seconds, 2)}; CPU s {median_cpu(query):.2f}",
        f"- times the floor, pair by pair: {mark_most(compare_pairs(query, runs['floor'], 'wall'), MOST_OF_FLOOR, 2)}; "
        f"of {describe_ratio(query, runs['floor'])}; in CPU time {compare_pairs(query, runs['floor'], 'cpu'):.2f}",
    ]
    if n_chunks >= INDEX_CHUNKS:
        lines.append(f"- times the {WITH_INDEX}, pair by pair: {describe_ratio(query, runs[WITH_INDEX])}")
    if inspect:
        script = runs["sentence-transformers and lancedb"]
        shown, told = runs["rse inspect"], runs["rse --help"]
        lines += [
            f"- the usual script takes {compare_pairs(script, query, 'wall'):.1f} times as long as the query",
            f"- inspect, wall s: {mark_most(median_wall(shown), MOST_INSPECT, 2)}; CPU s {median_cpu(shown):.2f}; "
            f"times the floor {compare_pairs(shown, runs['floor'], 'wall'):.2f}",
            f"- help, wall s: {mark_most(median_wall(told), MOST_HELP, 2)}; times the import of typer alone "
            f"{compare_pairs(told, runs['import typer'], 'wall'):.2f}",
        ]
    return "\n".join(lines)


def measure_engine(_: Path, work: Path) -> str:
    """Return the table of how long choosing segments takes; it is measured inside one process."""
    command = [sys.executable, "-m", "benchmarks.engine"]
    run = run_checked(command, HERE.parent, make_environ(work / "none"), codes=(0, 1))
    if not run.stdout:
        raise BenchmarkError("benchmarks.engine printed nothing")
    return run.stdout.decode().strip()
