"""Parameters of the method `dsrag`: the published presets, their ranges, and how they are overridden."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from rse_cli.core.spelling import suggest_name
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError


@dataclass(frozen=True, slots=True)
class DsragParams:
    """What the method `dsrag` can be told. The defaults are the preset `balanced`.

    Parameters
    ----------
    max_length : int
        Most chunks in one segment, at least 1.
    overall_max_length : int
        Most chunks in the answer to one query, at least 1.
    overall_max_length_extension : int
        Chunks that each further query adds to that, at least 0.
    minimum_value : float
        Least sum of values that makes a segment, at least 0.
    irrelevant_chunk_penalty : float
        What is taken off every chunk's relevance, in [0, 1].
    decay_rate : float
        Ranks over which relevance falls to 1/e, above 0.
    top_k_for_document_selection : int
        How many of each query's first hits name the documents searched, at least 1.
    chunk_length_adjustment : bool
        Whether values grow with the chunk's length above 700 characters.
    solver : {"greedy", "exact"}
        The published greedy choice, or the choice of the greatest total.
    similarity : {"relevance", "cosine"}
        What the caller ranks by and passes in; it doesn't change what is done here.

    Raises
    ------
    UsageError
        If a value lies outside its range; every fault is named.

    Examples
    --------
    >>> DsragParams().max_length
    15
    >>> DsragParams(max_length=0, solver="best")
    Traceback (most recent call last):
    rse_cli.errors.UsageError: max_length must be at least 1, not 0; solver must be greedy or exact, not 'best'
    """

    max_length: int = 15
    overall_max_length: int = 30
    overall_max_length_extension: int = 5
    minimum_value: float = 0.5
    irrelevant_chunk_penalty: float = 0.18
    decay_rate: float = 30.0
    top_k_for_document_selection: int = 10
    chunk_length_adjustment: bool = True
    solver: str = "greedy"
    similarity: str = "relevance"

    def __post_init__(self) -> None:
        faults = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in CHOICES:
                if value not in CHOICES[field.name]:
                    faults.append(f"{field.name} must be {' or '.join(CHOICES[field.name])}, not {value!r}")
            elif not math.isfinite(value):
                faults.append(f"{field.name} must be finite, not {value}")
            elif value < LEAST.get(field.name, 0):
                faults.append(f"{field.name} must be at least {LEAST.get(field.name, 0)}, not {value}")
        if self.irrelevant_chunk_penalty > 1:
            faults.append(f"irrelevant_chunk_penalty must be at most 1, not {self.irrelevant_chunk_penalty}")
        if self.decay_rate == 0:
            faults.append("decay_rate must be above 0, not 0")
        if faults:
            raise UsageError("; ".join(faults))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)


CHOICES = {"solver": ("greedy", "exact"), "similarity": ("relevance", "cosine")}

# A segment of no chunk, a budget of no chunk and a search in no document are all empty answers; the rest starts at 0.
LEAST = {"max_length": 1, "overall_max_length": 1, "top_k_for_document_selection": 1}

# As published by dsRAG; `precision` and `balanced` differ in two values only.
DSRAG_PRESETS: dict[str, DsragParams] = {
    "precision": DsragParams(minimum_value=0.7, irrelevant_chunk_penalty=0.2),
    "balanced": DsragParams(),
    "find_all": DsragParams(
        max_length=40,
        overall_max_length=200,
        overall_max_length_extension=0,
        minimum_value=0.4,
        decay_rate=200.0,
        top_k_for_document_selection=200,
    ),
}

SWITCHES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
"""How a text says yes or no."""


def list_dsrag_parameters() -> dict[str, type]:
    """Return the name and type of every parameter of `dsrag`.

    Examples
    --------
    >>> list_dsrag_parameters()["decay_rate"]
    <class 'float'>
    """
    return {name: type(value) for name, value in DsragParams().to_dict().items()}


def choose_dsrag_params(preset: str, overrides: Mapping[str, Any]) -> DsragParams:
    """Return the parameters of a preset with some of them replaced.

    Parameters
    ----------
    preset : str
        A key of `DSRAG_PRESETS`; overrides that come without a preset are meant to fill from ``balanced``.
    overrides : mapping
        Values by name; texts are converted.

    Raises
    ------
    UsageError
        If the preset or a name is unknown (names the nearest known one), or a value can't be read; every fault is
        named.

    Examples
    --------
    >>> choose_dsrag_params("balanced", {"max_length": "4", "chunk_length_adjustment": "no"}).max_length
    4
    """
    if preset not in DSRAG_PRESETS:
        names = ", ".join(DSRAG_PRESETS)
        raise UsageError(f"unknown preset {preset!r}: use {names}{suggest_name(preset, DSRAG_PRESETS)}")
    known, faults, values = list_dsrag_parameters(), [], {}
    for name, value in overrides.items():
        if name not in known:
            faults.append(f"unknown parameter {name!r} of method dsrag{suggest_name(name, known)}")
            continue
        try:
            values[name] = _READERS[known[name]](value)
        except (KeyError, OverflowError, TypeError, ValueError):
            faults.append(f"{name} must be {_EXPECTS[known[name]]}, not {value!r}")
    if faults:
        raise UsageError("; ".join(faults))
    return replace(DSRAG_PRESETS[preset], **values)


def _read_whole(value: Any) -> int:
    """Take a whole number; ``int`` alone would cut 2.5 to 2 in silence."""
    whole = int(value)
    if isinstance(value, bool) or (not isinstance(value, str) and whole != value):
        raise ValueError(value)
    return whole


def _read_number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError(value)
    return float(value)


def _read_switch(value: Any) -> bool:
    return value if isinstance(value, bool) else SWITCHES[str(value).strip().lower()]


_READERS: dict[type, Callable[[Any], Any]] = {int: _read_whole, float: _read_number, bool: _read_switch, str: str}
_EXPECTS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
