"""Cases laid end to end as columns, so that one call of NumPy weighs the candidates of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rse_cli.core.batch_runs import Positions
from rse_cli.core.cached_cases import CachedCase
from rse_cli.core.lexical import Floats

PIECES = ("c0", "c1", "c4", "f0", "f4", "f12", "p1")
"""The pieces of evidence, in the order in which `combine_evidence` adds them up: cosines, then words."""

N_COSINES = 3


@dataclass(frozen=True, slots=True)
class Stack:
    """Cases of one query each, laid end to end: n rows of m cases.

    Parameters
    ----------
    cases : tuple of CachedCase
        The cases, each with at least one row.
    evidence : ndarray of shape (7, n)
        The pieces of `PIECES`.
    bounds : ndarray of shape (m + 1,)
        Where each case's rows begin.
    owners : ndarray of shape (n,)
        Number of each row's case.
    stretches, places : ndarray of shape (n,)
        Number of each row's stretch; `places` differ by 1 within one and by more between two.
    chars, overlaps : ndarray of shape (n,)
        Characters, and how many of them are expected.
    char_sums : ndarray of shape (n + 1,)
        Characters before each row, and all.
    wanted : ndarray of shape (n,)
        Number of the expected document that the row lies in, −1 outside of those.
    tables, table_starts : ndarray
        Rows of tables, and where among them each table begins.
    doubtful : tuple of int
        Cases with words that the index doesn't know, whose confidence comes from another sum than their relevance.
    """

    cases: tuple[CachedCase, ...]
    evidence: Floats
    bounds: Positions
    owners: Positions
    stretches: Positions
    places: Positions
    chars: Floats
    overlaps: Floats
    char_sums: Floats
    wanted: Positions
    tables: Positions
    table_starts: Positions
    doubtful: tuple[int, ...]

    @property
    def sizes(self) -> Positions:
        """Rows of each case."""
        return np.diff(self.bounds)


def stack_cases(cases: Sequence[CachedCase]) -> Stack:
    """Lay cases of one query, each with rows, end to end."""
    sizes = [len(case.starts) for case in cases]
    bounds = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    heads = np.concatenate([case.starts + at for case, at in zip(cases, bounds[:-1].tolist(), strict=True)])
    stretches = np.cumsum(np.concatenate(([True], np.diff(heads) != 0)), dtype=np.int64) - 1
    tables = [_find_tables(case) for case in cases]
    offsets = np.cumsum([0, *(len(rows) for rows, _ in tables)])
    chars = np.concatenate([case.candidates.chars for case in cases]).astype(np.float64)
    return Stack(
        cases=tuple(cases),
        evidence=np.array([np.concatenate([getattr(case.evidence[0], piece) for case in cases]) for piece in PIECES]),
        bounds=bounds,
        owners=np.repeat(np.arange(len(cases)), sizes),
        stretches=stretches,
        places=np.arange(bounds[-1]) + stretches,
        chars=chars,
        char_sums=np.concatenate(([0.0], np.cumsum(chars))),
        overlaps=np.concatenate([case.find_overlaps() for case in cases]).astype(np.float64),
        wanted=np.concatenate([_number_wanted(case) for case in cases]),
        tables=np.concatenate([rows + at for (rows, _), at in zip(tables, bounds[:-1].tolist(), strict=True)]),
        doubtful=tuple(at for at, case in enumerate(cases) if case.known_shares[0] < 1),
        table_starts=np.concatenate([starts + at for (_, starts), at in zip(tables, offsets.tolist(), strict=False)]),
    )


def _find_tables(case: CachedCase) -> tuple[Positions, Positions]:
    """Return the rows of tables and where each table begins among them, as `spread_over_tables` tells them apart."""
    rows = np.flatnonzero(case.candidates.is_row)
    documents, ords = case.candidates.documents[rows], case.candidates.ords[rows]
    first = np.concatenate(([True], (np.diff(documents) != 0) | (np.diff(ords) > 2)))[: len(rows)]
    return rows, np.flatnonzero(first)


def _number_wanted(case: CachedCase) -> Positions:
    numbers = np.full(len(case.starts), -1, np.int64)
    for number, document in enumerate(case.target.spans):
        numbers[case.candidates.documents == document] = number
    return numbers
