"""Which chunks of a document get a row of their own, and which are folded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rse_cli.core.lexical import Floats
from rse_cli.dataclass import dataclass

AROUND = 2  # rows of context on either side of what matters: enough to see where a segment could have gone on


@dataclass(frozen=True, slots=True)
class Fold:
    """Chunks ``[start, end)`` that are drawn as one line: the best value among them, and their sum."""

    start: int
    end: int
    best: float
    total: float


def fold_rows(values: Floats, spans: Sequence[tuple[int, int]], floor: float, around: int = AROUND) -> list[int | Fold]:
    """Return the chunks to draw in order, runs that don't matter folded.

    What matters: a value above the floor, and the ends of segments.

    Parameters
    ----------
    values : ndarray of shape (n_chunks,)
        nan where a chunk has none.
    spans : sequence of (int, int)
        Half-open chunks of the segments.
    floor : float
        Values up to it may be folded.
    around : int
        Rows of context on either side of what matters, at least 0.

    Examples
    --------
    >>> fold_rows(np.array([-1.0, -2.0, -3.0, 1.0, -1.0]), [(3, 4)], 0.0, around=1)
    [Fold(start=0, end=2, best=-1.0, total=-3.0), 2, 3, 4]
    """
    n = len(values)
    around = min(around, n)  # more overflows
    matters = np.nan_to_num(values, nan=-np.inf) > floor
    for start, end in spans:
        matters[[start, end - 1]] = True
    reach = np.concatenate(([0], np.cumsum(matters)))
    at = np.arange(n)
    shown = reach[np.minimum(at + around + 1, n)] > reach[np.maximum(at - around, 0)]
    rows: list[int | Fold] = []
    bounds = [0, *(np.flatnonzero(np.diff(shown)) + 1).tolist(), n] if n else []
    for start, end in pairwise(bounds):
        # A fold of one row would hide it to gain nothing.
        if shown[start] or end - start == 1:
            rows += range(start, end)
            continue
        # A fold ends where a segment begins or ends, so that it lies inside or outside; those rows are always shown.
        held = values[start:end]
        known = held[~np.isnan(held)]
        best = float(known.max()) if len(known) else float("nan")
        rows.append(Fold(start, end, best, float(known.sum())))
    return rows
