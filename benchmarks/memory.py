"""Memory and time of `ingest` on 5,000 small files, of running it again, of a query on what it made, and of a check.

Run with ``make bench-memory`` or ``python -m benchmarks.memory [--files N]``. The files are put together from few
paragraphs under few titles, so that most chunks find their vector in the index and encoding takes a minute or two, not
ten: the share that was encoded is reported. Everything else, from reading to rows and search indexes, is done in full.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.processes import (
    BenchmarkError,
    Run,
    describe_machine,
    find_rse,
    make_environ,
    own_peak,
    run_checked,
)
from benchmarks.pseudo_text import make_heading, make_question, read_sentences, splice_sentence
from benchmarks.tables import format_table, mark_most

N_PARAGRAPHS, N_TITLES = 48, 20
PARAGRAPHS_PER_FILE = 5  # of three sentences: about 1.5 kB
FILES_PER_FOLDER = 100

MOST_MEGABYTES = {"ingest": 2_000, "query": 300, "status": 400}
MEGABYTE = 1_000_000


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=5_000, help="files to index (5000)")
    args = parser.parse_args()
    try:
        if args.files < 1:
            raise BenchmarkError("--files must be at least 1")
        with tempfile.TemporaryDirectory(prefix="rse-memory-") as folder:
            print(measure_memory(args.files, Path(folder)))
    except BenchmarkError as fault:
        print(f"bench-memory: {fault}", file=sys.stderr)
        return 2
    return 0


def measure_memory(n_files: int, folder: Path) -> str:
    """Return the report."""
    sentences = read_sentences(Path(__file__).parent.parent / "sample_docs")
    environ = make_environ(folder / "no-settings")
    docs, store = folder / "docs", folder / "store"
    n_bytes = write_files(docs, n_files, sentences)
    before = describe_machine()
    ingest = [find_rse(), "ingest", ".", "--store", str(store), "--json"]
    runs: dict[str, Run] = {}
    runs["ingest, new"] = run_step("first ingest", ingest, docs, environ)
    stats = json.loads(runs["ingest, new"].stdout)["stats"]
    runs["ingest, nothing changed"] = run_step("again", ingest, docs, environ)
    expect_count(runs["ingest, nothing changed"], "unchanged", n_files)
    changed = docs / name_file(n_files // 2)
    changed.write_text(
        changed.read_text(encoding="utf-8") + "\nThe spare mast leans on the boathouse.\n", encoding="utf-8"
    )
    runs["ingest, one file changed"] = run_step("one changed", ingest, docs, environ)
    expect_count(runs["ingest, one file changed"], "changed", 1)
    question = make_question(sentences, random.Random(n_files))
    ask = [find_rse(), "query", "--store", str(store), "--json", question]
    runs["query --json"] = run_checked(ask, docs, environ, codes=(0, 1))
    verify = [find_rse(), "status", "--verify", "--store", str(store)]
    runs["status --verify"] = run_step("verify", verify, docs, environ)
    status = json.loads(run_checked([find_rse(), "status", "--store", str(store), "--json"], docs, environ).stdout)
    head = [
        f"{n_files:,} files, {n_bytes / MEGABYTE:.1f} MB; {status['chunks']:,} chunks, {stats['encoded']:,} encoded;",
        f"store {status['bytes'] / MEGABYTE:.0f} MB.",
        f"Before: {before}. After: {describe_machine()}.",
    ]
    return "\n\n".join([" ".join(head), describe_runs(runs)])


def write_files(docs: Path, n_files: int, sentences: list[str]) -> int:
    """Write the files, no two alike, and return their size in bytes."""
    rng = random.Random(0)
    paragraphs = [" ".join(splice_sentence(sentences, rng) for _ in range(3)) for _ in range(N_PARAGRAPHS)]
    titles = [make_heading(sentences, rng) for _ in range(N_TITLES)]
    total = 0
    for number in range(n_files):
        path = docs / name_file(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [f"# {rng.choice(titles)}", *rng.sample(paragraphs, PARAGRAPHS_PER_FILE), f"Sheet {number}."]
        total += path.write_bytes(("\n\n".join(parts) + "\n").encode())
    return total


def name_file(number: int) -> str:
    """Return a file's path below the documents."""
    return f"{number // FILES_PER_FOLDER:03}/{number:05}.md"


def run_step(label: str, command: list[str], docs: Path, environ: Mapping[str, str]) -> Run:
    """Run one command and say so."""
    print(f"bench-memory: {label}", file=sys.stderr, flush=True)
    return run_checked(command, docs, environ, watch=True)


def expect_count(run: Run, name: str, wanted: int) -> None:
    """Raise `BenchmarkError` if an ingest didn't do what is being measured."""
    found = json.loads(run.stdout)[name]
    count = found if isinstance(found, int) else len(found)
    if count != wanted:
        raise BenchmarkError(f"{count} files {name} where {wanted} were expected")


def describe_runs(runs: Mapping[str, Run]) -> str:
    """Return the table, the peaks against their targets."""
    if own_peak() > min(run.peak for run in runs.values()):
        raise BenchmarkError("this process is larger than what it measures, so peaks mean nothing")
    rows = []
    for name, run in runs.items():
        most = MOST_MEGABYTES[re.split(r"\W", name)[0]]
        peak = f"{mark_most(run.peak / MEGABYTE, most, 0)}; {run.peak / 2**20:,.0f} MiB"
        rows.append([name, f"{run.wall:.2f}", f"{run.cpu:.2f}", peak])
    return format_table(["process", "wall s", "CPU s", "peak MB"], rows)


if __name__ == "__main__":
    sys.exit(main())
