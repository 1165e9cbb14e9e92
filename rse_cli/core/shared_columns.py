"""Cached cases whose columns are parts of common ones, so that what is laid end to end is not held twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.cached_cases import CachedCase
from rse_cli.core.relevance import Evidence

PIECES = tuple(one.name for one in fields(Evidence) if one.name != "rerank")
ROWS = ("documents", "ords", "chars", "is_row")
PLACES = ("starts", "start_chars")
NAMES = (*PIECES, *ROWS, *PLACES)


class Column:
    """An array that grows at its end.

    Examples
    --------
    >>> column = Column()
    >>> column.append(np.array([1, 2]))
    >>> column.append(np.array([3]))
    >>> column.close().tolist()
    [1, 2, 3]
    """

    __slots__ = ("_held", "_values")

    def __init__(self) -> None:
        self._values: NDArray[Any] | None = None
        self._held = 0

    def append(self, part: NDArray[Any]) -> None:
        """Add an array of the same kind as those before."""
        if self._values is None:
            self._values = np.zeros(0, part.dtype)
        end = self._held + len(part)
        if end > len(self._values):
            # In place: the system moves large arrays without a copy. Nothing else refers to it yet.
            self._values.resize(int(GROWTH * end), refcheck=False)
        self._values[self._held : end] = part
        self._held = end

    def close(self) -> NDArray[Any]:
        """Return what was added, and nothing more; nothing can be added afterwards."""
        values = np.zeros(0) if self._values is None else self._values
        values.resize(self._held, refcheck=False)
        return values


GROWTH = 1.2
"""How far a column grows beyond what it needs: a fifth of the memory at worst, and few moves."""


class Shelf:
    """Takes cases one by one, and gives them back with each column a part of one that all share.

    Cases that are solved together share one set of columns, end to end; the others have another.
    """

    def __init__(self) -> None:
        self._columns = {simple: {name: Column() for name in NAMES} for simple in (True, False)}
        self._bare: list[CachedCase] = []
        self._sizes: list[int] = []

    def add(self, case: CachedCase) -> None:
        """Copy the columns of a case; nothing of its own is kept."""
        columns = self._columns[case.is_simple]
        for name in PIECES:
            for one in case.evidence:
                columns[name].append(getattr(one, name))
        for name in ROWS:
            columns[name].append(getattr(case.candidates, name))
        for name in PLACES:
            columns[name].append(getattr(case, name))
        self._bare.append(_strip(case))
        self._sizes.append(len(case.starts))

    def close(self) -> tuple[CachedCase, ...]:
        """Return the cases in the order in which they came; no other can be added."""
        shared = {
            simple: {name: _Reader(column.close()) for name, column in columns.items()}
            for simple, columns in self._columns.items()
        }
        cases = []
        for bare, size in zip(self._bare, self._sizes, strict=True):
            readers = shared[len(bare.evidence) == 1 and size > 0]
            cases.append(
                replace(
                    bare,
                    evidence=tuple(
                        replace(one, **{name: readers[name].take(size) for name in PIECES}) for one in bare.evidence
                    ),
                    candidates=replace(bare.candidates, **{name: readers[name].take(size) for name in ROWS}),
                    **{name: readers[name].take(size) for name in PLACES},
                )
            )
        return tuple(cases)


class _Reader:
    """Hands a column out part by part."""

    __slots__ = ("_at", "_column")

    def __init__(self, column: NDArray[Any]) -> None:
        self._column = column
        self._at = 0

    def take(self, size: int) -> Any:
        self._at += size
        return self._column[self._at - size : self._at]


def _strip(case: CachedCase) -> CachedCase:
    """Return a case without its columns."""
    none: Any = np.zeros(0)
    return replace(
        case,
        evidence=tuple(replace(one, **dict.fromkeys(PIECES, none)) for one in case.evidence),
        candidates=replace(case.candidates, **dict.fromkeys(ROWS, none)),
        **dict.fromkeys(PLACES, none),
    )


def join_columns(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays end to end: a view where they lie so in memory already, else a copy.

    Examples
    --------
    >>> column = np.arange(5)
    >>> np.shares_memory(join_columns([column[1:3], column[3:5]]), column)
    True
    >>> join_columns([column[3:5], column[1:3]]).tolist()
    [3, 4, 1, 2]
    """
    base = parts[0].base
    begins = [_find_address(one) for one in parts]
    ends = [begin + one.nbytes for begin, one in zip(begins, parts, strict=True)]
    adjacent = begins[1:] == ends[:-1] and all(one.base is base and one.flags.c_contiguous for one in parts)
    if not isinstance(base, np.ndarray) or base.ndim != 1 or base.dtype != parts[0].dtype or not adjacent:
        return np.concatenate(parts)
    first = (begins[0] - _find_address(base)) // base.itemsize
    return base[first : first + sum(map(len, parts))]


def _find_address(column: NDArray[Any]) -> int:
    address: int = column.__array_interface__["data"][0]
    return address
