"""Parameters of the method `rse`: one spelling for field, flag and configuration key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from rse_cli.core.spelling import suggest_name
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError

_SHARES = ("irrelevant_chunk_penalty", "table_share")
_MOST = 1_000_000  # of weights, and of a segment's cost: more than decides everything, and sums stay far from overflow


@dataclass(frozen=True, slots=True)
class RseParams:
    """What the method `rse` can be told.

    Parameters
    ----------
    irrelevant_chunk_penalty : float
        Relevance that 100 characters must exceed to add to a segment's score, in [0, 1].
    segment_cost : float
        What one more segment costs, in characters at relevance 1; at least 0.
    max_chars : int
        Ceiling of the answer in characters, at least 1.
    weight_c0, weight_c1, weight_c4 : float
        Weights of the cosine over the chunk alone, ±1 and ±4 chunks.
    weight_f0, weight_f4, weight_f12 : float
        Weights of BM25F over the chunk alone, ±4 and ±12 chunks.
    weight_p1 : float
        Weight of the proximity of neighbouring query terms within ±1 chunk.
    weight_rerank : float
        Weight of a reranker's score in [0, 1], where there is one.
    table_share : float
        Share of a table's best relevance that all its rows get, in [0, 1].

    Raises
    ------
    UsageError
        If a value lies outside its range; every fault is named.

    Examples
    --------
    >>> RseParams().irrelevant_chunk_penalty
    0.075
    """

    irrelevant_chunk_penalty: float = 0.075
    segment_cost: float = 30.0
    max_chars: int = 4_000
    weight_c0: float = 3.0
    weight_c1: float = 3.0
    weight_c4: float = 2.0
    weight_f0: float = 5.0
    weight_f4: float = 4.0
    weight_f12: float = 2.0
    weight_p1: float = 1.5
    weight_rerank: float = 6.0  # as much as the strongest evidence: half of what separates a hit from a near miss
    table_share: float = 0.5

    def __post_init__(self) -> None:
        faults = []
        # Not `asdict`, which copies deeply: a search makes thousands.
        for name in self.__slots__:
            value = getattr(self, name)
            least = 1 if name == "max_chars" else 0
            most = 1 if name in _SHARES else math.inf if name == "max_chars" else _MOST
            if not (math.isfinite(value) and value >= least):
                faults.append(f"{name} must be a finite number of at least {least}, not {value}")
            elif value > most:
                faults.append(f"{name} must be at most {most:,}, not {value}")
        if faults:
            raise UsageError("; ".join(faults))

    def to_dict(self) -> dict[str, float | int]:
        """Return the parameters by name."""
        return asdict(self)


# Few sure passages; the usual answer; all there is. Chosen by hand on the development questions of three collections;
# 0.075 against 0.07 gained 0.4 points of precision and lost no recall.
PRESETS: dict[str, RseParams] = {
    "precision": RseParams(irrelevant_chunk_penalty=0.4, segment_cost=30, max_chars=2_000),
    "balanced": RseParams(irrelevant_chunk_penalty=0.075, segment_cost=30, max_chars=4_000),
    "find_all": RseParams(irrelevant_chunk_penalty=0.02, segment_cost=30, max_chars=8_000),
}

FILL_SEGMENT_COST = 8.0  # with the length given, cheaper segments find more; 8 won at every budget


def list_parameters() -> dict[str, type]:
    """Return the name and type of every parameter of `rse`.

    Examples
    --------
    >>> list_parameters()["max_chars"]
    <class 'int'>
    """
    return {name: type(value) for name, value in RseParams().to_dict().items()}


def choose_params(preset: str, overrides: Mapping[str, Any]) -> RseParams:
    """Return the parameters of a preset with some of them replaced.

    Parameters
    ----------
    preset : str
        A key of `PRESETS`.
    overrides : mapping
        Values by name; texts are converted.

    Raises
    ------
    UsageError
        If the preset or a name is unknown (names the nearest known one), or a value can't be read.

    Examples
    --------
    >>> choose_params("precision", {"max_chars": "900"}).max_chars
    900
    """
    if preset not in PRESETS:
        raise UsageError(f"unknown preset {preset!r}: use {', '.join(PRESETS)}{suggest_name(preset, PRESETS)}")
    known, faults, values = list_parameters(), [], {}
    for name, value in overrides.items():
        if name not in known:
            faults.append(f"unknown parameter {name!r} of method rse{suggest_name(name, known)}")
            continue
        try:
            values[name] = _convert(value, known[name])
        except (TypeError, ValueError, OverflowError):
            kind = "a whole number" if known[name] is int else "a number"
            faults.append(f"{name} must be {kind}, not {value!r}")
    if faults:
        raise UsageError("; ".join(faults))
    return replace(PRESETS[preset], **values)


def _convert(value: Any, kind: type) -> Any:
    """Return `value` as a number of `kind`; neither a truth nor a fraction passes for a whole number."""
    converted = kind(value)
    if isinstance(value, bool) or (isinstance(value, float) and converted != value):
        raise ValueError(value)
    return converted
