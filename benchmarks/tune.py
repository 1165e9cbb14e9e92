"""What a search from bad parameters finds on questions with known answers, and how long it takes.

Run with ``make bench-tune DATA=FOLDER`` or ``python -m benchmarks.tune --data FOLDER [--seeds N] [--trials N]``. The
folder holds ``chunking-en`` with ``docs/`` and ``cases-dev.jsonl``. The search begins at parameters that find little,
and never tries the shipped defaults; what it finds is measured on cases that it wasn't chosen by, beside the defaults.
About four minutes on two cores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.processes import BenchmarkError, describe_machine, make_environ
from benchmarks.quality import prepare_collection
from benchmarks.tables import format_table, mark_most
from rse_cli.core.gates import Gate
from rse_cli.core.params import RseParams
from rse_cli.core.settling import raise_penalty
from rse_cli.core.tuning_log import Trial
from rse_cli.core.tuning_objective import Objective, measure_outcomes
from rse_cli.pipeline.evidence_cache import Cache, CacheBuilder
from rse_cli.pipeline.query import Request
from rse_cli.pipeline.tune import Asked, open_log, tune_cases
from rse_cli.pipeline.tuning_verdict import Figure

CHARS = 2_000
MOST_BEHIND, MOST_SECONDS = 1.0, 60.0  # points of recall, and seconds for 2,000 trials of 235 cases on two cores

DEFAULTS = RseParams()
BAD = RseParams(
    irrelevant_chunk_penalty=0.5,
    segment_cost=150.0,
    weight_c0=0.5,
    weight_c1=0.0,
    weight_c4=0.0,
    weight_f0=0.0,
    weight_f4=0.5,
    weight_f12=10.0,
    weight_p1=8.0,
    table_share=0.9,
)
"""Far from the defaults in every weight: its recall is about half of theirs."""


@dataclass(frozen=True, slots=True)
class Mode:
    """How long an answer may be: on average, or every one exactly."""

    name: str
    fill: bool
    objective: Objective
    max_chars: int


MODES = (
    Mode(f"mean of at most {CHARS:,}", False, Objective("recall", (Gate("max", "chars", CHARS),)), DEFAULTS.max_chars),
    Mode(f"exactly {CHARS:,} (fill)", True, Objective("recall"), CHARS),
)


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.tune", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with chunking-en")
    parser.add_argument("--seeds", type=int, default=1, help="searches of each kind")
    parser.add_argument("--trials", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=2, help="threads")
    args = parser.parse_args()
    try:
        source = args.data / "chunking-en"
        if not (source / "cases-dev.jsonl").exists():
            raise BenchmarkError(f"missing: {source} (give the folder with make bench-tune DATA=FOLDER)")
        with tempfile.TemporaryDirectory(prefix="rse-tune-") as folder:
            collection = prepare_collection(source, Path(folder) / source.name, make_environ(Path(folder) / "none"))
            cache = build_cache(collection.store, source / "cases-dev.jsonl")
        rows = [
            measure_search(cache, mode, seed, args.trials, args.jobs) for mode in MODES for seed in range(args.seeds)
        ]
    except BenchmarkError as fault:
        print(f"bench-tune: {fault}", file=sys.stderr)
        return 2
    head = ["characters", "seed", "defaults", "at first", "held out", "behind", "chars held out", "tried", "s", "CPU s"]
    print(f"Measured on {describe_machine()}; {len(cache.targets)} questions, {args.jobs} threads.\n")
    print(format_table(head, rows))
    return 0


def build_cache(store: Path, cases_file: Path) -> Cache:
    """Retrieve every case once."""
    from rse_cli.adapters.cases import scan_cases
    from rse_cli.cli.wiring import is_english_only, load_index_encoder, open_index
    from rse_cli.pipeline.check import encode_cases
    from rse_cli.pipeline.expectations import resolve_cases

    say("retrieve")
    index = open_index(str(store))
    cases, faults = scan_cases(cases_file)
    if faults:
        raise BenchmarkError(f"{cases_file}:{faults[0].line}: {faults[0].message}")
    snapshot = index.store.snapshot()
    resolved = resolve_cases(snapshot, cases)
    queries = encode_cases(cases, load_index_encoder(index, for_query=True), is_english_only(index.manifest))
    return CacheBuilder(snapshot, Request((), DEFAULTS), {"rse": DEFAULTS}).build(resolved, queries)


def measure_search(cache: Cache, mode: Mode, seed: int, trials: int, jobs: int) -> list[str]:
    """Search once, and return the row of the table."""
    say(f"{mode.name}, seed {seed}")
    asked = Asked(mode.objective, trials=trials, seed=seed, fill=mode.fill, jobs=jobs)
    log, exact = open_log(cache, asked, (), lambda _: None, lambda: False)
    given = Trial("rse", replace(BAD, max_chars=mode.max_chars))
    begun, begun_cpu = time.perf_counter(), time.process_time()
    tuned = tune_cases(cache, {"rse": given.params}, given, asked, log, exact)
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - begun_cpu
    refuse_defaults(log.trials)
    figures = {one.metric: one for one in tuned.figures}
    defaults = measure_defaults(cache, mode, asked)
    behind = 100 * (defaults - figures["recall"].held_out.mean)
    return [
        mode.name,
        f"{seed}",
        f"{100 * defaults:.1f}",
        describe(figures["recall"], "current"),
        describe(figures["recall"], "held_out"),
        mark_most(behind, MOST_BEHIND, 1),
        f"{figures['chars'].held_out.mean:,.0f}",
        f"{len(log.trials):,}",
        mark_most(seconds, MOST_SECONDS, 0),
        f"{cpu_seconds:.0f}",
    ]


def describe(figure: Figure, part: str) -> str:
    """Return a mean in percent with its interval."""
    one = getattr(figure, part)
    return f"{100 * one.mean:.1f} [{100 * one.low:.1f}, {100 * one.high:.1f}]"


def refuse_defaults(trials: Sequence[Trial]) -> None:
    """Raise `BenchmarkError` if the shipped weights were among what was tried."""
    names = [name for name in DEFAULTS.to_dict() if name.startswith("weight_") and name != "weight_rerank"]
    shipped = [getattr(DEFAULTS, name) for name in names]
    if any([getattr(one.params, name) for name in names] == shipped for one in trials):
        raise BenchmarkError("the shipped defaults were tried: the search must find its own")


def measure_defaults(cache: Cache, mode: Mode, asked: Asked) -> float:
    """Return the recall of the shipped defaults, their penalty raised until they keep to the same length."""
    log, exact = open_log(cache, asked, (), lambda _: None, lambda: False)
    given = replace(DEFAULTS, max_chars=mode.max_chars)
    [number] = log.add([Trial("rse", given)])
    everything = np.ones(len(cache.targets), np.bool_)
    kept = raise_penalty(log, number, mode.objective, everything)
    outcomes = exact("rse", [log.trials[kept].params])
    return float(np.nanmean(measure_outcomes("recall", outcomes, cache.targets)))


def say(text: str) -> None:
    """Print progress to stderr."""
    print(f"bench-tune: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
