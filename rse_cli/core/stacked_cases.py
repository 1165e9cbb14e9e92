"""Cases laid end to end as columns, so that one call of NumPy weighs the candidates of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.batch_runs import Positions
from rse_cli.core.cached_cases import CachedCase
from rse_cli.core.lexical import Floats
from rse_cli.core.shared_columns import join_columns
from rse_cli.dataclass import dataclass

PIECES = ("c0", "c1", "c4", "f0", "f4", "f12", "p1")
"""The pieces of evidence, in the order in which `combine_evidence` adds them up: cosines, then words."""

N_COSINES = 3

Numbers = NDArray[np.int32]
"""Columns of all rows are kept in half the memory; what a batch picks from them is computed with 64 bits."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Cases of one query each, laid end to end: n rows of m cases.

    Parameters
    ----------
    cases : tuple of CachedCase
        The cases, each with at least one row.
    evidence : tuple of 7 ndarray of shape (n,)
        The pieces of `PIECES`, those of the cases themselves where they lie end to end (`Shelf`).
    bounds : ndarray of shape (m + 1,)
        Where each case's rows begin.
    owners : ndarray of shape (n,)
        Number of each row's case.
    stretches : ndarray of shape (n,)
        Number of each row's stretch.
    chars : ndarray of shape (n,)
        Characters.
    char_sums, overlap_sums : ndarray of shape (n + 1,)
        Characters before each row, and all; the same of those that are expected.
    wanted : ndarray of shape (n,)
        Number of the expected document that the row lies in, −1 outside of those.
    tables, table_starts : ndarray
        Rows of tables, and where among them each table begins.
    doubtful : tuple of int
        Cases with words that the index doesn't know, whose confidence comes from another sum than their relevance.
    """

    cases: tuple[CachedCase, ...]
    evidence: tuple[Floats, ...]
    bounds: Positions
    owners: Numbers
    stretches: Numbers
    chars: Numbers
    char_sums: Floats
    overlap_sums: Floats
    wanted: Numbers
    tables: Positions
    table_starts: Positions
    doubtful: tuple[int, ...]

    @property
    def sizes(self) -> Positions:
        """Rows of each case."""
        return np.diff(self.bounds)

    def find_places(self, rows: Positions) -> Positions:
        """Return numbers of rows that differ by 1 within a stretch and by more between two."""
        places: Positions = rows + self.stretches[rows]
        return places

    def find_overlap(self, row: int) -> float:
        """Return how many of a row's characters are expected."""
        return float(self.overlap_sums[row + 1] - self.overlap_sums[row])


def stack_cases(cases: Sequence[CachedCase]) -> Stack:
    """Lay cases of one query, each with rows, end to end."""
    sizes = [len(case.starts) for case in cases]
    bounds = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    # A stretch begins where a row begins its own.
    opens = np.concatenate([case.starts == np.arange(len(case.starts)) for case in cases])
    stretches = np.cumsum(opens, dtype=np.int32)
    stretches -= 1
    tables = [_find_tables(case) for case in cases]
    offsets = np.cumsum([0, *(len(rows) for rows, _ in tables)])
    chars = join_columns([case.candidates.chars for case in cases])
    return Stack(
        cases=tuple(cases),
        evidence=tuple(join_columns([getattr(case.evidence[0], piece) for case in cases]) for piece in PIECES),
        bounds=bounds,
        owners=np.repeat(np.arange(len(cases), dtype=np.int32), sizes),
        stretches=stretches,
        chars=chars,
        char_sums=_sum_before(chars),
        overlap_sums=_sum_before(np.concatenate([case.find_overlaps() for case in cases])),
        wanted=np.concatenate([_number_wanted(case) for case in cases]),
        tables=np.concatenate([rows + at for (rows, _), at in zip(tables, bounds[:-1].tolist(), strict=True)]),
        doubtful=tuple(at for at, case in enumerate(cases) if case.known_shares[0] < 1),
        table_starts=np.concatenate([starts + at for (_, starts), at in zip(tables, offsets.tolist(), strict=False)]),
    )


def _sum_before(column: Numbers) -> Floats:
    sums: Floats = np.zeros(len(column) + 1)
    np.cumsum(column, out=sums[1:])
    return sums


def _find_tables(case: CachedCase) -> tuple[Positions, Positions]:
    """Return the rows of tables and where each table begins among them, as `spread_over_tables` tells them apart."""
    rows = np.flatnonzero(case.candidates.is_row)
    documents, ords = case.candidates.documents[rows], case.candidates.ords[rows]
    first = np.concatenate(([True], (np.diff(documents) != 0) | (np.diff(ords) > 2)))[: len(rows)]
    return rows, np.flatnonzero(first)


def _number_wanted(case: CachedCase) -> Numbers:
    numbers = np.full(len(case.starts), -1, np.int32)
    for number, document in enumerate(case.target.spans):
        numbers[case.candidates.documents == document] = number
    return numbers
