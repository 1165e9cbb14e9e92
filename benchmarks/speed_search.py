"""Cold queries beside the floor, ``inspect``, and the engine that selects segments."""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path

from benchmarks.processes import BenchmarkError, find_model_folder, find_rse, make_environ, run_checked
from benchmarks.pseudo_text import make_question, read_sentences
from benchmarks.rounds import describe_runs, median_cpu, median_wall, run_in_turn
from benchmarks.tables import mark_most

HERE = Path(__file__).parent
N_ROUNDS = 7
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
    if inspect:
        commands["rse inspect"] = lambda _: [find_rse(), "inspect", "--store", store, make_question(sentences, rng)]
        commands["rse --help"] = lambda _: [find_rse(), "--help"]
    runs = run_in_turn(commands, N_ROUNDS, folder / "docs", make_environ(work / "none"))
    query, floor = runs["rse query --json"], runs["floor"]
    ratios = {
        how: statistics.median(getattr(one, how) / getattr(least, how) for one, least in zip(query, floor, strict=True))
        for how in ("wall", "cpu")
    }
    lines = [
        describe_runs(runs),
        "",
        f"- query, wall s: {mark_most(median_wall(query), most_seconds, 2)}; CPU s {median_cpu(query):.2f}",
        f"- times the floor, pair by pair: {mark_most(ratios['wall'], MOST_OF_FLOOR, 2)}; "
        f"in CPU time {ratios['cpu']:.2f}",
    ]
    if inspect:
        lines.append(
            f"- inspect, wall s: {mark_most(median_wall(runs['rse inspect']), MOST_INSPECT, 2)}; "
            f"CPU s {median_cpu(runs['rse inspect']):.2f}"
        )
        lines.append(f"- help, wall s: {mark_most(median_wall(runs['rse --help']), MOST_HELP, 2)}")
    return "\n".join(lines)


def measure_engine(_: Path, work: Path) -> str:
    """Return the table of the method `dsrag`; it is measured inside one process."""
    command = [sys.executable, "-m", "benchmarks.engine"]
    run = run_checked(command, HERE.parent, make_environ(work / "none"), codes=(0, 1))
    if not run.stdout:
        raise BenchmarkError("benchmarks.engine printed nothing")
    return run.stdout.decode().strip()
