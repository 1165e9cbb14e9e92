"""Cold start: whole processes on a store of 10,000 chunks, beside the usual script and beside the floor.

Run with ``make bench-cold`` or ``python -m benchmarks.cold [--runs N]``. The store is made once, in two minutes, in the
folder for temporary files, and found again by its name. Each round runs every command once with one question that was
never asked before, first `rse`, then the script, the next round the other way round, so that whatever else the machine
does meets both. Files are in the page cache: one round goes ahead uncounted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.processes import (
    BenchmarkError,
    Run,
    describe_machine,
    find_model_folder,
    find_rse,
    make_environ,
    own_peak,
    run_checked,
    run_measured,
)
from benchmarks.pseudo_text import make_question, read_sentences, write_document
from benchmarks.rounds import compare_pairs
from benchmarks.tables import format_table, mark_least, mark_most

HERE = Path(__file__).parent
N_CHUNKS = 10_000
SENTENCES_PER_FILE = 50
FIRST_FILES = 230  # a little too few, so that the count ends close above what is wanted

MOST_SECONDS, MOST_HELP_SECONDS, LEAST_RATIO, MOST_MEGABYTES = 0.5, 0.2, 10, 300
MEGABYTE = 1_000_000


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.cold", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15, help="rounds that count (15)")
    args = parser.parse_args()
    try:
        if args.runs < 1:
            raise BenchmarkError("--runs must be at least 1")
        print(measure_cold(args.runs))
    except BenchmarkError as fault:
        print(f"bench-cold: {fault}", file=sys.stderr)
        return 2
    return 0


def measure_cold(n_runs: int) -> str:
    """Return the report."""
    sentences = read_sentences(HERE.parent / "sample_docs")
    # Named after all that decides the text, so that another version makes another store.
    digest = hashlib.sha256("\n".join([*sentences, str(SENTENCES_PER_FILE)]).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"rse-bench-cold-{os.getuid()}-{digest}"
    environ = make_environ(folder / "no-settings")
    n_chunks = make_store(folder, sentences, environ)
    before = describe_machine()
    runs = run_rounds(make_commands(folder / "store"), n_runs, sentences, folder, environ)
    head = f"{n_chunks:,} chunks, {n_runs} rounds. Before: {before}. After: {describe_machine()}."
    return "\n\n".join([head, describe_runs(runs), describe_targets(runs)])


def make_store(folder: Path, sentences: Sequence[str], environ: Mapping[str, str]) -> int:
    """Make the store, or go on with one that is there, until it holds enough chunks; return how many."""
    docs, store = folder / "docs", folder / "store"
    docs.mkdir(mode=0o700, parents=True, exist_ok=True)
    if store.exists() and run_measured([find_rse(), "status", "--store", str(store)], docs, environ).code:
        shutil.rmtree(store)  # made by another version of rse
    n_files, n_chunks = FIRST_FILES, 0
    while n_chunks < N_CHUNKS:
        for number in range(n_files):
            path = docs / f"{number:04}.md"
            if not path.exists():
                path.write_text(write_document(sentences, SENTENCES_PER_FILE, random.Random(number)), encoding="utf-8")
        say(f"index {n_files} files in {folder}")
        run_checked([find_rse(), "ingest", ".", "--store", str(store), "--quiet"], docs, environ)
        status = run_checked([find_rse(), "status", "--store", str(store), "--json"], docs, environ)
        n_chunks = json.loads(status.stdout)["chunks"]
        n_files = math.ceil(n_files * N_CHUNKS / n_chunks) + 1
    return n_chunks


def make_commands(store: Path) -> dict[str, Callable[[str], list[str]]]:
    """Return by name what makes a command line of a question."""
    rse, place, model = find_rse(), str(store), find_model_folder()
    return {
        "rse query --json": lambda question: [rse, "query", "--store", place, "--json", question],
        "sentence-transformers + lancedb": lambda question: [
            sys.executable,
            str(HERE / "baseline_query.py"),
            place,
            model,
            question,
        ],
        "floor: imports, tokens, one flat search": lambda _: [
            sys.executable,
            str(HERE / "floor_query.py"),
            place,
            model,
        ],
        "rse --help": lambda _: [rse, "--help"],
    }


def run_rounds(
    commands: Mapping[str, Callable[[str], list[str]]],
    n_runs: int,
    sentences: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
) -> dict[str, list[Run]]:
    """Run all commands in turn, forwards and backwards, and return the runs that count by name."""
    rng = random.Random()  # other questions every time: none was asked before
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(n_runs + 1):
        question = make_question(sentences, rng)
        for name in list(commands) if number % 2 else list(commands)[::-1]:
            # A question may well find nothing: rse then ends with 1, after the same work.
            run = run_checked(
                commands[name](question), folder, environ, codes=(0, 1) if name.endswith("--json") else (0,)
            )
            if number:
                runs[name].append(run)
        say(f"round {number} of {n_runs}")
    return runs


def describe_runs(runs: Mapping[str, Sequence[Run]]) -> str:
    """Return the table of medians and ranges."""
    rows = [
        [
            name,
            *describe_spread([run.wall for run in found]),
            *describe_spread([run.cpu for run in found]),
            f"{max(run.peak for run in found) / MEGABYTE:,.0f}",
        ]
        for name, found in runs.items()
    ]
    return format_table(["process", "wall s", "min–max", "CPU s", "min–max", "peak MB"], rows)


def describe_spread(values: Sequence[float]) -> tuple[str, str]:
    """Return the median, and the least and greatest.

    Examples
    --------
    >>> describe_spread([0.5, 0.25, 1.0])
    ('0.50', '0.25–1.00')
    """
    return f"{statistics.median(values):.2f}", f"{min(values):.2f}–{max(values):.2f}"


def describe_targets(runs: Mapping[str, Sequence[Run]]) -> str:
    """Return a line for each target."""
    rse, script, _, usage = runs.values()
    if own_peak() > min(run.peak for run in usage):
        raise BenchmarkError("this process is larger than what it measures, so peaks mean nothing")
    seconds, help_seconds = (statistics.median(run.wall for run in found) for found in (rse, usage))
    ratios = [other.wall / one.wall for one, other in zip(rse, script, strict=True)]
    ratio, cpu_ratio = (compare_pairs(script, rse, how) for how in ("wall", "cpu"))
    peak = max(run.peak for run in rse)
    return "\n".join(
        [
            f"- query, median wall seconds: {mark_most(seconds, MOST_SECONDS, 3)}",
            f"- the script takes so many times as long, pair by pair: {mark_least(ratio, LEAST_RATIO)}, "
            f"from {min(ratios):.1f} to {max(ratios):.1f}; in CPU time {cpu_ratio:.1f}",
            f"- help, median wall seconds: {mark_most(help_seconds, MOST_HELP_SECONDS, 3)}",
            f"- query, peak megabytes: {mark_most(peak / MEGABYTE, MOST_MEGABYTES, 0)}; {peak / 2**20:.0f} MiB",
        ]
    )


def say(text: str) -> None:
    """Print progress to stderr."""
    print(f"bench-cold: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
