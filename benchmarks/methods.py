"""Recall of every method at the same number of characters, and what each returns of its own accord.

Run with ``make bench-methods DATA=FOLDER`` or ``python -m benchmarks.methods --data FOLDER``. The folder holds
``chunking-en`` with ``docs/`` and ``cases-dev.jsonl``. About four minutes on two cores.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.processes import BenchmarkError, describe_machine, make_environ
from benchmarks.quality import Collection, ask, check_data, prepare_collection, score_answers
from benchmarks.tables import format_table

BUDGETS = (1000, 2000, 4000)

# Characters that a hit brings on these documents (5 hits, measured); so many hits are asked for as fill the budget.
HIT_CHARS = {"top-k": 730, "sentence-window": 1_570, "parent": 2_990, "window-parent": 2_250}

# Per row: the flags at a budget, and those of the method as it is.
METHODS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rse/balanced": (("--fill",), ()),
    "hierarchical": (("-m", "hierarchical"), ("-m", "hierarchical")),
    "dsrag/balanced": (("-m", "dsrag"), ("-m", "dsrag")),
    "dsrag, raw cosine": (
        ("-m", "dsrag", "--set", "similarity=cosine"),
        ("-m", "dsrag", "--set", "similarity=cosine"),
    ),
    "top-k, hybrid": (("-m", "top-k"), ("-m", "top-k")),
    "top-k, dense": (("-m", "top-k", "--retriever", "dense"), ("-m", "top-k", "--retriever", "dense")),
    "sentence-window": (("-m", "sentence-window"), ("-m", "sentence-window")),
    "parent": (("-m", "parent"), ("-m", "parent")),
    "window-parent": (("-m", "window-parent"), ("-m", "window-parent")),
    "average": (("-m", "average"), ("-m", "average")),
}


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.methods", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with chunking-en")
    args = parser.parse_args()
    try:
        check_data(args.data)
        with tempfile.TemporaryDirectory(prefix="rse-methods-") as folder:
            environ = make_environ(Path(folder) / "no-settings")
            collection = prepare_collection(args.data / "chunking-en", Path(folder) / "chunking-en", environ)
            print(f"Measured on {describe_machine()}.\n")
            print(compare_methods(collection, environ))
    except BenchmarkError as fault:
        print(f"bench-methods: {fault}", file=sys.stderr)
        return 2
    return 0


def count_hits(flags: Sequence[str], budget: int) -> tuple[str, ...]:
    """Return the flag for as many hits as fill the budget, none for methods that take no number of hits."""
    method = flags[1] if flags[0] == "-m" else "rse"
    return ("--set", f"k={math.ceil(budget / HIT_CHARS[method])}") if method in HIT_CHARS else ()


def compare_methods(collection: Collection, environ: Mapping[str, str]) -> str:
    """Return the table: recall in at most each budget, then recall, precision, characters and segments without one."""
    rows = []
    for name, (at_budget, alone) in METHODS.items():
        recalls = []
        for budget in BUDGETS:
            flags = ("--max-chars", str(budget), *at_budget, *count_hits(at_budget, budget))
            answers = ask(collection.store, collection.cases, environ, *flags)
            recalls.append(f"{100 * score_answers(collection, answers).recall:.1f}")
        own = score_answers(collection, ask(collection.store, collection.cases, environ, *alone))
        rows.append(
            [
                name,
                *recalls,
                f"{100 * own.recall:.1f}",
                f"{100 * own.precision:.1f}",
                f"{own.chars:,.0f}",
                f"{own.n_spans:.1f}",
            ]
        )
    header = ["method", *(f"recall at {budget:,}" for budget in BUDGETS), "recall", "precision", "chars", "segments"]
    return format_table(header, rows)


if __name__ == "__main__":
    sys.exit(main())
