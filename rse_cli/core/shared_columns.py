"""Cached cases whose columns are parts of common ones, so that what is laid end to end is not held twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.cached_cases import CachedCase
from rse_cli.core.relevance import Evidence

PIECES = tuple(one.name for one in fields(Evidence) if one.name != "rerank")
ROWS = ("documents", "ords", "chars", "is_row")
PLACES = ("starts", "start_chars")


def share_columns(cases: list[CachedCase]) -> tuple[CachedCase, ...]:
    """Return the cases with each column a part of one that all share; those that are solved together come first in it.

    The list is emptied, and each column's former arrays are given up as soon as they are joined: never is more than one
    column held twice.

    Parameters
    ----------
    cases : list of CachedCase
        In the order of the file, which the result keeps. Evidence of a reranker is kept as it is.
    """
    order = sorted(range(len(cases)), key=lambda at: not cases[at].is_simple)
    held = {name: [getattr(one, name) for at in order for one in cases[at].evidence] for name in PIECES}
    held |= {name: [getattr(cases[at].candidates, name) for at in order] for name in ROWS}
    held |= {name: [getattr(cases[at], name) for at in order] for name in PLACES}
    bare = [_strip(case) for case in cases]
    cases.clear()
    shared = {name: _join_parts(held.pop(name)) for name in (*PIECES, *ROWS, *PLACES)}
    found: dict[int, CachedCase] = {}
    for at in order:
        case = bare[at]
        evidence = tuple(replace(one, **{name: next(shared[name]) for name in PIECES}) for one in case.evidence)
        candidates = replace(case.candidates, **{name: next(shared[name]) for name in ROWS})
        places = {name: next(shared[name]) for name in PLACES}
        found[at] = replace(case, evidence=evidence, candidates=candidates, **places)
    return tuple(found[at] for at in range(len(bare)))


def _strip(case: CachedCase) -> CachedCase:
    """Return a case without its columns."""
    none: Any = np.zeros(0)
    return replace(
        case,
        evidence=tuple(replace(one, **dict.fromkeys(PIECES, none)) for one in case.evidence),
        candidates=replace(case.candidates, **dict.fromkeys(ROWS, none)),
        **dict.fromkeys(PLACES, none),
    )


def _join_parts(parts: list[NDArray[Any]]) -> Any:
    """Return an iterator over the same arrays, now views of a common one."""
    sizes = [len(one) for one in parts]
    joined = np.concatenate(parts) if parts else np.zeros(0)
    bounds = np.cumsum([0, *sizes]).tolist()
    return (joined[start:end] for start, end in pairwise(bounds))


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
