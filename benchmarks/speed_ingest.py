"""A whole ingest beside what encoding alone costs, and an ingest that has nothing, or one file, to do."""

from __future__ import annotations

import json
import shutil
import statistics
from pathlib import Path

from benchmarks import speed_encoding
from benchmarks.memory import N_PARAGRAPHS, name_file, write_files
from benchmarks.processes import find_rse, make_environ, run_checked
from benchmarks.pseudo_text import read_sentences
from benchmarks.rounds import describe_runs, describe_spread, median_cpu, median_ratio, median_wall, run_in_turn
from benchmarks.tables import mark_most

MOST_SHARE = 0.6
MOST_NOTHING, MOST_CHANGED = 2.0, 3.0
SIZES = (1_000, 5_000)
N_ROUNDS = 3


def measure_whole(data: Path, work: Path) -> str:
    """Return the report on chunking-en; the store stays for other parts."""
    docs, store, environ = data / "chunking-en" / "docs", work / "en", make_environ(work / "none")
    command = [find_rse(), "ingest", ".", "--store", str(store), "--json"]
    runs, per_chunk, floors = [], [], []
    for _ in range(N_ROUNDS):
        shutil.rmtree(store, ignore_errors=True)
        runs.append(run_checked(command, docs, environ, watch=True))
        # Right after it, as the machine may be another half an hour later.
        found = speed_encoding.run_comparison(docs, 1, environ)
        per_chunk += [seconds / speed_encoding.N_CHUNKS for seconds in found["sentence-transformers cpu of all"]]
        floors += [seconds / speed_encoding.N_CHUNKS for seconds in found["floor cpu"]]
    n_chunks = json.loads(runs[0].stdout)["stats"]["encoded"]
    shares = [run.cpu / (one * n_chunks) for run, one in zip(runs, per_chunk, strict=True)]
    floor = median_ratio(floors, per_chunk)
    return "\n".join(
        [
            f"`rse ingest` of {n_chunks:,} distinct chunks (reading, encoding, writing and search indexes) and the "
            "encoding of every n-th of them by sentence-transformers, on all cores as by default, in turn, "
            f"{N_ROUNDS} rounds. What is repeated is encoded once, and counts once on both sides.",
            "",
            describe_runs({"rse ingest": runs}),
            "",
            f"- sentence-transformers: {describe_spread([one * 1000 for one in per_chunk])} CPU ms a chunk, so "
            f"{statistics.median(per_chunk) * n_chunks:.1f} s for all",
            f"- whole ingest, share of those CPU seconds: {mark_most(statistics.median(shares), MOST_SHARE, 2)}, of "
            f"{describe_spread(shares)}; what no encoder in numpy can do without: {floor:.2f}",
        ]
    )


def measure_nothing(_: Path, work: Path) -> str:
    """Return the report on folders of small files where nothing, or one file, has changed."""
    environ, reports, peaks = make_environ(work / "none"), [], []
    for n_files in SIZES:
        folder = work / f"files-{n_files}-{N_PARAGRAPHS}"
        docs, store = folder / "docs", folder / "store"
        if not (store / "manifest.json").exists():
            write_files(docs, n_files, read_sentences(Path(__file__).parent.parent / "sample_docs"))
        ingest = [find_rse(), "ingest", ".", "--store", str(store), "--json"]
        run_checked(ingest, docs, environ)

        def change(number: int, docs: Path = docs, n_files: int = n_files, ingest: list[str] = ingest) -> list[str]:
            place = docs / name_file(n_files // 2)
            place.write_text(f"{place.read_text(encoding='utf-8')}\nSheet {number} was added.\n", encoding="utf-8")
            return ingest

        runs = {
            f"{n_files:,} files, {name}": run_in_turn(
                {name: command}, N_ROUNDS, docs, environ, warm_up=False, watch=True
            )[name]
            for name, command in (("nothing to do", lambda _, ingest=ingest: ingest), ("one changed", change))
        }
        reports.append((n_files, runs))
        peaks.append(max(run.peak for found in runs.values() for run in found))
    (nothing, changed) = reports[-1][1].values()
    rows = {name: found for _, runs in reports for name, found in runs.items()}
    extra = (peaks[-1] - peaks[0]) / (SIZES[-1] - SIZES[0])
    return "\n".join(
        [
            describe_runs(rows),
            "",
            f"- nothing to do, wall s: {mark_most(median_wall(nothing), MOST_NOTHING, 2)}; "
            f"CPU s {median_cpu(nothing):.2f}",
            f"- one changed, wall s: {mark_most(median_wall(changed), MOST_CHANGED, 2)}; "
            f"CPU s {median_cpu(changed):.2f}",
            f"- memory of one more file: {extra / 1000:.1f} kB",
        ]
    )
