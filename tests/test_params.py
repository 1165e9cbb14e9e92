"""The parameters of the method `rse`: presets, ranges, and errors that name every fault."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rse_cli.core.params import PRESETS, RseParams, choose_params, list_parameters
from rse_cli.errors import UsageError


def fail(preset: str, overrides: dict[str, Any]) -> str:
    with pytest.raises(UsageError) as caught:
        choose_params(preset, overrides)
    return str(caught.value)


@pytest.mark.parametrize(
    ("preset", "penalty", "max_chars"), [("precision", 0.4, 2000), ("balanced", 0.075, 4000), ("find_all", 0.02, 8000)]
)
def test_presets_differ_in_penalty_and_ceiling_alone(preset: str, penalty: float, max_chars: int) -> None:
    params = choose_params(preset, {})
    assert params == RseParams(irrelevant_chunk_penalty=penalty, max_chars=max_chars)
    assert params.segment_cost == 30


def test_balanced_is_the_default() -> None:
    assert RseParams() == PRESETS["balanced"]


def test_values_are_read_from_texts_and_keep_their_types() -> None:
    params = choose_params("balanced", {"max_chars": "900", "segment_cost": "12", "weight_p1": 2})
    assert (params.max_chars, params.segment_cost, params.weight_p1) == (900, 12.0, 2.0)
    assert {name: type(value) for name, value in params.to_dict().items()} == list_parameters()


def test_overriding_a_preset_leaves_the_preset_alone() -> None:
    choose_params("precision", {"segment_cost": 1})
    assert PRESETS["precision"].segment_cost == 30


def test_an_unknown_preset_names_the_known_ones() -> None:
    assert fail("best", {}) == "unknown preset 'best': use precision, balanced, find_all"


def test_an_unknown_parameter_names_the_nearest_known_one() -> None:
    assert fail("balanced", {"segment_costs": 1}) == (
        "unknown parameter 'segment_costs' of method rse; did you mean 'segment_cost'?"
    )
    assert fail("balanced", {"zzz": 1}) == "unknown parameter 'zzz' of method rse"


@pytest.mark.parametrize("value", ["many", "1.5", "", None, 1.5, True, float("inf"), float("nan"), [1]])
def test_a_whole_number_is_nothing_else(value: object) -> None:
    assert fail("balanced", {"max_chars": value}) == f"max_chars must be a whole number, not {value!r}"


@pytest.mark.parametrize("value", ["much", "", None, False, [1.0]])
def test_a_number_is_nothing_else(value: object) -> None:
    assert fail("balanced", {"segment_cost": value}) == f"segment_cost must be a number, not {value!r}"


def test_a_whole_number_written_with_a_point_is_one() -> None:
    assert choose_params("balanced", {"max_chars": 900.0}).max_chars == 900


@pytest.mark.parametrize("name", list_parameters())
def test_no_parameter_is_negative(name: str) -> None:
    least = 1 if name == "max_chars" else 0
    assert re.fullmatch(
        rf"{name} must be a finite number of at least {least}, not -1(\.0)?", fail("balanced", {name: -1})
    )


@pytest.mark.parametrize("name", [name for name, kind in list_parameters().items() if kind is float])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_no_parameter_is_infinite_or_no_number(name: str, value: str) -> None:
    assert fail("balanced", {name: value}) == f"{name} must be a finite number of at least 0, not {value}"


@pytest.mark.parametrize("name", ["irrelevant_chunk_penalty", "table_share"])
def test_shares_are_at_most_1(name: str) -> None:
    assert fail("balanced", {name: 1.01}) == f"{name} must be at most 1, not 1.01"
    assert choose_params("balanced", {name: 1}).to_dict()[name] == 1
    assert choose_params("balanced", {name: 0}).to_dict()[name] == 0


def test_the_ceiling_is_at_least_one_character() -> None:
    assert fail("balanced", {"max_chars": 0}) == "max_chars must be a finite number of at least 1, not 0"
    assert choose_params("balanced", {"max_chars": 1}).max_chars == 1


def test_every_fault_is_named_at_once() -> None:
    assert re.fullmatch("max_chars .*; unknown parameter 'x'.*", fail("balanced", {"max_chars": "x", "x": 1}))
    assert fail("balanced", {"table_share": 2, "weight_c0": -1}).count("; ") == 1
