"""A check of 1,000 cases at 10,000 chunks, and a search of 2,000 trials over 235 cases."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.processes import find_rse, make_environ, run_checked
from benchmarks.rounds import describe_runs, median_cpu, median_wall, run_in_turn
from benchmarks.speed_batch import find_store, read_cases
from benchmarks.tables import mark_most

N_CASES, N_ROUNDS = 1_000, 3
MOST_SECONDS = 30


def measure(data: Path, work: Path) -> str:
    """Return the report."""
    store, cases = find_store(data, work), read_cases(data)
    lines = []
    for number in range(N_CASES):
        copy, at = divmod(number, len(cases))
        query = f"{cases[at]['query']}{' Briefly.' * copy}"
        lines.append(json.dumps({"id": str(number), "query": query, "expect": cases[at]["expect"]}))
    place = work / "cases.jsonl"
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")
    runs = run_in_turn(
        {
            f"rse check of {N_CASES:,} cases": lambda _: [
                find_rse(),
                "check",
                str(place),
                "--store",
                str(store),
                "--json",
            ]
        },
        N_ROUNDS,
        work,
        make_environ(work / "none"),
        warm_up=False,
    )
    (found,) = runs.values()
    return "\n".join(
        [
            describe_runs(runs),
            "",
            f"- wall s: {mark_most(median_wall(found), MOST_SECONDS, 1)}; CPU s {median_cpu(found):.1f}",
        ]
    )


def measure_tune(data: Path, work: Path) -> str:
    """Return the table of ``make bench-tune``, which checks as well what is found."""
    command = [sys.executable, "-m", "benchmarks.tune", "--data", str(data)]
    run = run_checked(command, Path(__file__).parent.parent, make_environ(work / "none"))
    return run.stdout.decode().partition("\n\n")[2].strip()
