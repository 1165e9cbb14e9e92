"""Distinct numbers, as `numpy.unique` returns them, which imports `numpy.ma` for it: 10 ms of a query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def find_distinct(values: Integers) -> Integers:
    """Return the distinct values, ascending.

    Examples
    --------
    >>> find_distinct(np.array([5, 2, 5])).tolist(), find_distinct(np.array([], np.int64)).tolist()
    ([2, 5], [])
    """
    ordered = np.sort(values, axis=None)
    distinct: Integers = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return distinct


def number_distinct(values: Integers) -> tuple[Integers, Integers]:
    """Return the distinct values, ascending, and for each of `values` its place among them.

    Examples
    --------
    >>> [part.tolist() for part in number_distinct(np.array([5, 2, 5]))]
    [[2, 5], [1, 0, 1]]
    """
    distinct = find_distinct(values)
    places: Integers = np.searchsorted(distinct, values)
    return distinct, places
