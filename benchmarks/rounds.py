"""Commands that are run in turn, round after round, and the table that comes of it."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.processes import Run, run_checked
from benchmarks.tables import format_table

Command = Callable[[int], list[str]]
"""Number of the round to a command line."""


def run_in_turn(
    commands: Mapping[str, Command],
    n_rounds: int,
    folder: Path,
    environ: Mapping[str, str],
    *,
    warm_up: bool = True,
    watch: bool = False,
) -> dict[str, list[Run]]:
    """Run all commands forwards and backwards in turn; one round goes ahead uncounted where `warm_up`."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(n_rounds + warm_up):
        for name in list(commands) if number % 2 else list(commands)[::-1]:
            # A query or a check that finds nothing ends with 1, after the same work.
            run = run_checked(commands[name](number), folder, environ, codes=(0, 1), watch=watch)
            if number >= warm_up:
                runs[name].append(run)
        print(f"bench: round {number} of {n_rounds}", file=sys.stderr, flush=True)
    return runs


def describe_runs(runs: Mapping[str, Sequence[Run]]) -> str:
    """Return the table of medians with least and greatest."""
    rows = [
        [
            name,
            describe_spread([run.wall for run in found]),
            describe_spread([run.cpu for run in found]),
            f"{max(run.peak for run in found) / 1e6:,.0f}",
        ]
        for name, found in runs.items()
    ]
    return format_table(["command", "wall s (min–max)", "CPU s (min–max)", "peak MB"], rows)


def describe_spread(values: Sequence[float]) -> str:
    """Return the median, and the least and greatest.

    Examples
    --------
    >>> describe_spread([0.5, 0.25, 1.0])
    '0.50 (0.25–1.00)'
    """
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def median_ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """Return how many times as large the first are, the median of pairs of one round each.

    Examples
    --------
    >>> median_ratio([2.0, 3.0, 8.0], [1.0, 2.0, 2.0])
    2.0
    """
    return statistics.median(one / other for one, other in zip(values, others, strict=True))


def compare_pairs(runs: Sequence[Run], others: Sequence[Run], how: str) -> float:
    """Return the same of the ``wall`` or ``cpu`` seconds of runs."""
    return median_ratio([getattr(run, how) for run in runs], [getattr(run, how) for run in others])


def describe_ratio(runs: Sequence[Run], others: Sequence[Run]) -> str:
    """Return the median of the ratios of wall seconds with the least and greatest."""
    return describe_spread([one.wall / other.wall for one, other in zip(runs, others, strict=True)])


def median_cpu(runs: Sequence[Run]) -> float:
    """Return the median of the CPU seconds."""
    return statistics.median(run.cpu for run in runs)


def median_wall(runs: Sequence[Run]) -> float:
    """Return the median of the wall clock."""
    return statistics.median(run.wall for run in runs)
