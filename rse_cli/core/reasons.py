"""Why runs of chunks or blocks were not chosen: what came next, and the rule that kept it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.dsrag_params import DsragParams
from rse_cli.core.lexical import Floats
from rse_cli.core.models import Run
from rse_cli.core.segments import price_chunks
from rse_cli.dataclass import dataclass

Code = Literal[
    "below_minimum",
    "below_confidence",
    "too_long",
    "over_budget",
    "over_limit",
    "over_document_end",
    "overlaps_better",
    "not_searched",
]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A run that was not chosen.

    Parameters
    ----------
    start, end : int
        Half-open positions.
    score : float
        What it would have been worth as a segment.
    code : Code
        The rule, for scripts.
    why : str
        The rule with its numbers, for readers.
    """

    start: int
    end: int
    score: float
    code: Code
    why: str


def find_maximal_runs(values: Floats) -> list[Run]:
    """Return the maximal scoring runs: each would lose by any cut or extension, none overlap.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite.

    Notes
    -----
    Ruzzo and Tompa, "A linear time algorithm for finding all maximal scoring subsequences", ISMB 1999.

    Examples
    --------
    >>> find_maximal_runs(np.array([2.0, -1.0, 3.0, -9.0, 1.0]))
    [Run(start=0, end=3, score=4.0), Run(start=4, end=5, score=1.0)]
    """
    kept: list[tuple[int, int, float, float]] = []  # start, end, sum before, sum up to the end
    total = 0.0
    for at, value in enumerate(values.tolist()):
        before, total = total, total + value
        if value <= 0:
            continue
        start = at
        while True:
            left = next((j for j in range(len(kept) - 1, -1, -1) if kept[j][2] < before), None)
            if left is None or kept[left][3] >= total:
                break
            start, before = kept[left][0], kept[left][2]
            del kept[left:]
        kept.append((start, at + 1, before, total))
    return [Run(start, end, end_sum - start_sum) for start, end, start_sum, end_sum in kept]


def explain_segments(
    relevance: Floats,
    chars: NDArray[np.int64],
    starts: NDArray[np.int64],
    taken: NDArray[np.bool_],
    penalties: tuple[float, float],
    cost: float,
    max_chars: int,
    most: int,
) -> list[Skipped]:
    """Say why the best runs and chunks were not among the segments of `rse`.

    Parameters
    ----------
    relevance, chars, starts : ndarray of shape (n,)
        As in `rse_cli.core.segments`.
    taken : ndarray of shape (n,)
        Rows that were chosen.
    penalties : (float, float)
        The penalty asked for, and the one that the ceiling raised it to.
    cost : float
        Cost of one segment.
    max_chars : int
        The ceiling.
    most : int
        Most returned: runs above the penalty, greatest score first, then the most relevant of the other rows.

    Examples
    --------
    >>> chars, starts = np.full(3, 100), np.array([0, 0, 2])
    >>> taken = np.array([True, False, False])
    >>> skipped = explain_segments(np.array([1.0, 0.01, 0.2]), chars, starts, taken, (0.1, 0.1), 0.3, 4000, 9)
    >>> [(one.start, one.end, one.code, one.why) for one in skipped]
    ... # doctest: +NORMALIZE_WHITESPACE
    [(2, 3, 'below_minimum', 'worth 0.10 before it pays 0.30 for a segment of its own'),
     (1, 2, 'below_minimum', 'relevance 0.010 is below the penalty 0.100')]
    """
    asked, used = penalties
    wanted, priced = price_chunks(relevance, chars, asked), price_chunks(relevance, chars, used)
    found = []
    for start, end in _find_stretches((wanted > 0) & ~taken, starts):
        worth, score = float(wanted[start:end].sum()), float(priced[start:end].sum() - cost)
        if used > asked and worth > cost:
            why = f"max_chars {max_chars:,} raised the penalty from {asked:.3f} to {used:.3f}"
            found.append(Skipped(start, end, score, "over_budget", why))
        else:
            why = f"worth {worth:.2f} before it pays {cost:.2f} for a segment of its own"
            found.append(Skipped(start, end, score, "below_minimum", why))
    below = np.flatnonzero((wanted <= 0) & ~taken)
    rows = [
        Skipped(
            row,
            row + 1,
            float(priced[row] - cost),
            "below_minimum",
            f"relevance {relevance[row]:.3f} is below the penalty {asked:.3f}",
        )
        for row in below[np.argsort(-relevance[below], kind="stable")].tolist()
    ]
    # By what they are worth; of the rows below the penalty a shorter one would be worth more, so these by relevance.
    found.sort(key=lambda one: -one.score)
    found += rows
    return found[:most]


def _find_stretches(wanted: NDArray[np.bool_], starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return maximal runs of adjacent rows that are wanted."""
    spans: list[tuple[int, int]] = []
    for row in np.flatnonzero(wanted).tolist():
        if spans and spans[-1][1] == row and starts[row] == starts[row - 1]:
            spans[-1] = (spans[-1][0], row + 1)
        else:
            spans.append((row, row + 1))
    return spans


def explain_dsrag(
    values: Floats,
    splits: Sequence[int],
    chosen: Sequence[tuple[int, int]],
    params: DsragParams,
    n_queries: int,
    most: int,
) -> list[Skipped]:
    """Say why the best runs of one query's values were not among the segments of `dsrag`.

    Parameters
    ----------
    values : ndarray of shape (n_blocks,)
        The query's value of each block, documents laid end to end.
    splits : sequence of int
        Exclusive ends of the documents.
    chosen : sequence of (int, int)
        The segments of all queries, half-open.
    params : DsragParams
        The limits.
    n_queries : int
        How many queries share the budget.
    most : int
        Most runs returned, greatest sum first.

    Examples
    --------
    >>> values = np.array([0.9, 0.6, -0.2, 0.3])
    >>> skipped = explain_dsrag(values, [1, 4], [(0, 1)], DsragParams(minimum_value=0.8), 1, 9)
    >>> [(one.start, one.end, one.code) for one in skipped]
    [(0, 4, 'over_document_end'), (1, 4, 'below_minimum')]
    """
    runs = {(run.start, run.end): run for run in find_maximal_runs(values)}
    free = values.copy()
    for start, end in chosen:
        free[start:end] = -np.inf
    first = 0
    for split in splits:
        for start, end in _find_stretches(np.isfinite(free[first:split]), np.zeros(split - first, np.int64)):
            for run in find_maximal_runs(values[first + start : first + end]):
                at = first + start + run.start
                runs.setdefault((at, at + run.end - run.start), Run(at, at + run.end - run.start, run.score))
        first = split
    budget = params.overall_max_length + (n_queries - 1) * params.overall_max_length_extension
    left = budget - sum(end - start for start, end in chosen)
    found = [
        _judge_run(run, splits, chosen, params, left, budget) for span, run in runs.items() if span not in set(chosen)
    ]
    found.sort(key=lambda one: (-one.score, one.start, one.end))
    return found[:most]


def _judge_run(
    run: Run,
    splits: Sequence[int],
    chosen: Sequence[tuple[int, int]],
    params: DsragParams,
    left: int,
    budget: int,
) -> Skipped:
    """Name the first rule that a run breaks, in the order in which a reader would ask."""
    length = run.end - run.start
    code: Code
    if run.score < params.minimum_value:
        code, why = "below_minimum", f"worth {run.score:.2f}, and minimum_value is {params.minimum_value:.2f}"
    elif any(run.start < split < run.end for split in splits):
        code, why = "over_document_end", "runs over the end of its document into the next"
    elif length > params.max_length:
        code, why = "too_long", f"{length} blocks, and max_length is {params.max_length}"
    elif any(start < run.end and run.start < end for start, end in chosen):
        code, why = "overlaps_better", "overlaps a segment that was chosen before it"
    else:
        code, why = "over_budget", f"{length} blocks, when {max(left, 0)} of {budget} were left"
    return Skipped(run.start, run.end, run.score, code, why)
