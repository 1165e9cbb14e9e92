"""What a search over parameters may vary: points of the unit cube to parameters of a method, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from rse_cli.core.dsrag_params import CHOICES, DsragParams
from rse_cli.core.methods import MethodParams
from rse_cli.core.params import RseParams
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError

Point = tuple[float, ...]

DIGITS = 3  # significant digits: what a file shows is what was measured, and a fourth digit changes no figure


@dataclass(frozen=True, slots=True)
class Dimension:
    """One parameter and the values that are tried.

    Parameters
    ----------
    name : str
        A field of the method's parameters.
    low, high : float
        Range; above 0 for ``log``.
    scale : {"linear", "square", "log"}
        How the unit interval is laid over the range: ``square`` gives half of it to the lowest quarter.
    whole : bool
        Whether only whole numbers make sense.
    choices : tuple
        Values to choose from, in place of a range.

    Examples
    --------
    >>> Dimension("weight_c0", 0.0, 12.0, "square").decode(0.5)
    3.0
    >>> Dimension("max_length", 1, 64, "log", whole=True).decode(0.5)
    8
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    scale: Literal["linear", "square", "log"] = "linear"
    whole: bool = False
    choices: tuple[Any, ...] = ()

    def decode(self, at: float) -> Any:
        """Return the value at a place of [0, 1], rounded to three significant digits."""
        if self.choices:
            return self.choices[min(int(at * len(self.choices)), len(self.choices) - 1)]
        if self.scale == "log":
            value = self.low * (self.high / self.low) ** at
        else:
            value = self.low + (self.high - self.low) * (at * at if self.scale == "square" else at)
        value = min(max(round_digits(value), self.low), self.high)
        return round(value) if self.whole else float(value)

    def encode(self, value: Any) -> float:
        """Return the place of a value in [0, 1]; values outside the range are moved to its ends."""
        if self.choices:
            at = self.choices.index(value) if value in self.choices else self._find_nearest(value)
            return (at + 0.5) / len(self.choices)
        held = min(max(float(value), self.low), self.high)
        if self.scale == "log":
            return math.log(held / self.low) / math.log(self.high / self.low)
        share = (held - self.low) / (self.high - self.low)
        return math.sqrt(share) if self.scale == "square" else share

    def _find_nearest(self, value: float) -> int:
        return min(range(len(self.choices)), key=lambda at: abs(self.choices[at] - value))


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The parameters of one method that a search varies; the others stay as in `base`."""

    method: str
    base: MethodParams
    dimensions: tuple[Dimension, ...]

    def decode(self, point: Sequence[float]) -> MethodParams:
        """Return the parameters at a point of the unit cube."""
        values = {one.name: one.decode(at) for one, at in zip(self.dimensions, point, strict=True)}
        return replace(self.base, **values)

    @property
    def is_grid(self) -> bool:
        """Whether there are choices alone."""
        return all(one.choices for one in self.dimensions)

    def encode(self, params: MethodParams) -> Point:
        """Return the point nearest to some parameters."""
        return tuple(one.encode(getattr(params, one.name)) for one in self.dimensions)

    def pick(self, params: MethodParams) -> dict[str, Any]:
        """Return the values of the varied parameters by name."""
        return {one.name: getattr(params, one.name) for one in self.dimensions}


def round_digits(value: float, digits: int = DIGITS) -> float:
    """Return a number rounded to significant digits.

    Examples
    --------
    >>> round_digits(0.074862), round_digits(1234.5), round_digits(0.0)
    (0.0749, 1230.0, 0.0)
    """
    return 0.0 if value == 0 else round(value, digits - 1 - math.floor(math.log10(abs(value))))


# Weights: four times the shipped ones are far in the region where one piece decides alone. Penalties: the presets span
# 0.02 to 0.4. Costs: 200 characters are more than a chunk.
_WEIGHTS = tuple(
    Dimension(f"weight_{piece}", 0.0, 12.0, "square") for piece in ("c0", "c1", "c4", "f0", "f4", "f12", "p1")
)
_PENALTY = Dimension("irrelevant_chunk_penalty", 0.005, 0.8, "log")
_COST = Dimension("segment_cost", 0.0, 200.0, "square")
_TABLES = Dimension("table_share")

# Around the published presets, which have 15 and 40, 30 and 200, 0.4 to 0.7, 30 and 200, 10 and 200.
_DSRAG = (
    Dimension("max_length", 1, 60, "log", whole=True),
    Dimension("overall_max_length", 1, 200, "log", whole=True),
    Dimension("minimum_value", 0.0, 2.0, "square"),
    _PENALTY,
    Dimension("decay_rate", 2.0, 1000.0, "log"),
    Dimension("top_k_for_document_selection", 1, 200, "log", whole=True),
    Dimension("chunk_length_adjustment", choices=(False, True)),
    Dimension("solver", choices=CHOICES["solver"]),
    Dimension("similarity", choices=CHOICES["similarity"]),
)
_DSRAG_SEVERAL = Dimension("overall_max_length_extension", 0, 50, "linear", whole=True)

GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "top-k": {"k": (1, 2, 3, 4, 5, 6, 8, 10, 15, 20)},
    "sentence-window": {"k": (1, 2, 3, 5, 8, 12), "window": (0, 1, 2, 3, 5)},
    "parent": {"k": (1, 2, 3, 5), "parent_chars": (500, 1_000, 2_000, 4_000)},
    "window-parent": {"k": (2, 3, 5, 8), "window": (1, 3, 5), "parent_chars": (1_000, 4_000)},
    "average": {"minimum_value": (0.1, 0.2, 0.3, 0.4), "max_length": (2, 5, 20), "overall_max_length": (3, 10, 30)},
}
"""Values of the methods that read whole documents: each answers once per case and point, and every point is tried."""


def make_space(
    method: str, base: MethodParams, *, tables: bool = True, fill: bool = False, several: bool = False
) -> SearchSpace:
    """Return what is varied of a method.

    Parameters
    ----------
    method : str
        A key of `METHODS` other than ``hierarchical``.
    base : MethodParams
        The current parameters of the method.
    tables : bool
        Whether any candidate lies in a table, so that `table_share` matters.
    fill : bool
        Whether the ceiling is used up: then penalty and cost don't matter.
    several : bool
        Whether any case asks several queries at once.

    Raises
    ------
    UsageError
        If the method's parameters can't be searched.

    Examples
    --------
    >>> [one.name for one in make_space("rse", RseParams(), tables=False).dimensions][-2:]
    ['irrelevant_chunk_penalty', 'segment_cost']
    """
    if isinstance(base, RseParams) and method == "rse":
        prices = () if fill else (_PENALTY, _COST)
        return SearchSpace(method, base, _WEIGHTS + prices + ((_TABLES,) if tables else ()))
    if isinstance(base, DsragParams):
        return SearchSpace(method, base, _DSRAG + ((_DSRAG_SEVERAL,) if several else ()))
    if method in GRIDS:
        return SearchSpace(method, base, tuple(Dimension(name, choices=ones) for name, ones in GRIDS[method].items()))
    raise UsageError(f"nothing to tune in the method {method}: use rse, dsrag, {', '.join(GRIDS)}")
