"""Parameters of the methods without presets, with their ranges; one spelling for field, flag and configuration key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError

VALUATIONS = ("similarity", "composite")
RECONSTRUCTIONS = ("runs", "grow")


def _find_faults(params: object, least: Mapping[str, int]) -> list[str]:
    """Say what is wrong with the whole numbers of `params`, given the least value of each."""
    return [
        f"{name} must be a whole number of at least {low}, not {value!r}"
        for name, low in least.items()
        if not isinstance(value := getattr(params, name), int) or isinstance(value, bool) or value < low
    ]


def _refuse(faults: list[str]) -> None:
    if faults:
        raise UsageError("; ".join(faults))


@dataclass(frozen=True, slots=True)
class TopKParams:
    """What the method `top-k` can be told.

    Parameters
    ----------
    k : int
        Blocks returned, at least 1.

    Raises
    ------
    UsageError
        If a value lies outside its range.

    Examples
    --------
    >>> TopKParams().k
    5
    """

    k: int = 5

    def __post_init__(self) -> None:
        _refuse(_find_faults(self, {"k": 1}))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SentenceWindowParams:
    """What the method `sentence-window` can be told.

    Parameters
    ----------
    k : int
        Passages returned, at least 1; twice as many hits are looked at.
    window : int
        Sentences before a hit's first and after its last, at least 0.

    Raises
    ------
    UsageError
        If a value lies outside its range; every fault is named.

    Examples
    --------
    >>> SentenceWindowParams(window=-1)
    Traceback (most recent call last):
    rse_cli.errors.UsageError: window must be a whole number of at least 0, not -1
    """

    k: int = 5
    window: int = 5

    def __post_init__(self) -> None:
        _refuse(_find_faults(self, {"k": 1, "window": 0}))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ParentParams:
    """What the method `parent` can be told.

    Parameters
    ----------
    k : int
        Parents returned, at least 1; twice as many hits vote.
    parent_chars : int
        Most characters of a parent, at least 1; sections above it are cut at ends of paragraphs.

    Raises
    ------
    UsageError
        If a value lies outside its range; every fault is named.

    Examples
    --------
    >>> ParentParams().to_dict()
    {'k': 5, 'parent_chars': 4000}
    """

    k: int = 5
    parent_chars: int = 4_000  # about 1,000 tokens

    def __post_init__(self) -> None:
        _refuse(_find_faults(self, {"k": 1, "parent_chars": 1}))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class HierarchicalParams:
    """What the method `hierarchical` can be told.

    Parameters
    ----------
    documents : int
        Documents searched, those with the nearest summaries, at least 1.

    Raises
    ------
    UsageError
        If a value lies outside its range.

    Examples
    --------
    >>> HierarchicalParams().documents
    10
    """

    documents: int = 10

    def __post_init__(self) -> None:
        _refuse(_find_faults(self, {"documents": 1}))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class WindowParentParams:
    """What the method `window-parent` can be told.

    Parameters
    ----------
    k : int
        Passages returned, at least 1: half of them windows, rounded up, half parents.
    window : int
        As in `SentenceWindowParams`.
    parent_chars : int
        As in `ParentParams`.

    Raises
    ------
    UsageError
        If a value lies outside its range; every fault is named.

    Examples
    --------
    >>> WindowParentParams().to_dict()
    {'k': 5, 'window': 5, 'parent_chars': 4000}
    """

    k: int = 5
    window: int = 5
    parent_chars: int = 4_000

    def __post_init__(self) -> None:
        _refuse(_find_faults(self, {"k": 1, "window": 0, "parent_chars": 1}))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AverageParams:
    """What the method `average` can be told.

    Parameters
    ----------
    max_length : int
        Most blocks in a segment, at least 1.
    overall_max_length : int
        Most blocks in the answer, at least 1.
    minimum_value : float
        Least mean value of a segment, in [0, 1].
    valuation : {"similarity", "composite"}
        What a block is worth: its cosine, or a weighted sum of cosine, content quality and information density.
    reconstruct : {"runs", "grow"}
        How segments are made: the runs of greatest total, or regions grown from peaks.

    Raises
    ------
    UsageError
        If a value lies outside its range; every fault is named.

    Examples
    --------
    >>> AverageParams(valuation="best")
    Traceback (most recent call last):
    rse_cli.errors.UsageError: valuation must be similarity or composite, not 'best'
    """

    max_length: int = 20
    overall_max_length: int = 30
    minimum_value: float = 0.2
    valuation: str = "similarity"
    reconstruct: str = "runs"

    def __post_init__(self) -> None:
        faults = _find_faults(self, {"max_length": 1, "overall_max_length": 1})
        if not (math.isfinite(self.minimum_value) and 0 <= self.minimum_value <= 1):
            faults.append(f"minimum_value must be a number from 0 to 1, not {self.minimum_value}")
        for name, choices in (("valuation", VALUATIONS), ("reconstruct", RECONSTRUCTIONS)):
            if getattr(self, name) not in choices:
                faults.append(f"{name} must be {' or '.join(choices)}, not {getattr(self, name)!r}")
        _refuse(faults)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)
