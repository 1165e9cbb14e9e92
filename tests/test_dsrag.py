"""The published algorithm of dsRAG: its documents, values and segments, and two solvers that agree with oracles."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rse_cli.core import dsrag_exact, dsrag_greedy
from rse_cli.core.dsrag import relevant_segments, select_dsrag
from rse_cli.core.dsrag_exact import choose_exactly
from rse_cli.core.dsrag_greedy import bound_sums, pick_greedily
from rse_cli.core.dsrag_params import DSRAG_PRESETS, DsragParams, choose_dsrag_params
from rse_cli.errors import UsageError
from tests import naive

NO_DECAY = {"decay_rate": 1e300}  # exp(−rank/1e300) is exactly 1, so that values are what the test says

# Eighths and a tenth: eighths add without rounding and tie often, tenths tie only on paper.
GRID = st.sampled_from([-1.0, -0.5, -0.25, -0.1, 0.0, 0.1, 0.2, 0.25, 0.3, 0.5, 1.0])


@st.composite
def problems(draw: st.DrawFn, chunks: int = 12, queries: int = 3) -> dict[str, Any]:
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4).filter(lambda sizes: sum(sizes) <= chunks))
    row = st.lists(GRID, min_size=sum(sizes), max_size=sum(sizes))
    return {
        "values": draw(st.lists(row, min_size=1, max_size=queries)),
        "splits": list(itertools.accumulate(sizes)),
        "max_length": draw(st.integers(1, 6)),
        "budget": draw(st.integers(1, 12)),
        "minimum_value": draw(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.6])),
    }


def solve(solver: Any, problem: dict[str, Any]) -> list[tuple[int, int, int, float]]:
    picks = solver(**{**problem, "values": [np.array(row) for row in problem["values"]]})
    return [tuple(pick) for pick in picks]


# --- the greedy choice


@given(problems())
@settings(max_examples=400, deadline=None)
def test_the_greedy_choice_is_that_of_the_slow_oracle_ties_included(problem: dict[str, Any]) -> None:
    assert solve(pick_greedily, problem) == naive.dsrag_greedy(**problem)


@given(problems(), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_starts_measured_a_few_at_a_time_change_nothing(problem: dict[str, Any], batch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dsrag_greedy, "FIRST_BATCH", batch)
        patch.setattr(dsrag_greedy, "CELLS", 8)
        assert solve(pick_greedily, problem) == naive.dsrag_greedy(**problem)


@pytest.mark.parametrize("penalty", [0.0, 0.18])
def test_a_thousand_chunks_are_chosen_as_by_the_slow_oracle(penalty: float) -> None:
    rng = np.random.default_rng(3)
    splits = [400, 420, 1_000]
    values = np.where(rng.random((2, 1_000)) < 0.3, rng.choice([0.25, 0.5, 1.0], (2, 1_000)), 0.0) - penalty
    problem = {"values": values.tolist(), "splits": splits, "max_length": 6, "budget": 25, "minimum_value": 0.4}
    assert solve(pick_greedily, problem) == naive.dsrag_greedy(**problem)


@given(problems(), st.integers(1, 6))
def test_no_sum_of_a_start_exceeds_its_bound(problem: dict[str, Any], width: int) -> None:
    values, edges = np.array(problem["values"][0]), np.array(problem["splits"])
    starts = np.flatnonzero(values >= 0)
    sums = dsrag_greedy.add_in_sequence(values, starts, edges, width).max(axis=1)
    assert (sums <= bound_sums(values, starts, width)).all()


def test_a_segment_begins_and_ends_at_0_or_more_and_may_dip_inside() -> None:
    assert solve(
        pick_greedily,
        {"values": [[-0.1, 1.0, -0.5, 1.0, -0.1]], "splits": [5], "max_length": 5, "budget": 5, "minimum_value": 0.5},
    ) == [(0, 1, 4, 1.5)]


def test_of_equal_sums_the_lowest_start_wins_and_then_the_shortest() -> None:
    problem = {"values": [[0.0, 1.0, 0.0]], "splits": [3], "max_length": 3, "budget": 3, "minimum_value": 0.5}
    assert solve(pick_greedily, problem) == [(0, 0, 2, 1.0)]


def test_queries_take_turns_and_one_that_fails_is_out() -> None:
    values = [[1.0, -1.0, 0.25, -1.0, 0.75], [0.9, -1.0, -1.0, -1.0, 0.8]]
    problem = {"values": values, "splits": [5], "max_length": 1, "budget": 5, "minimum_value": 0.5}
    assert solve(pick_greedily, problem) == [(0, 0, 1, 1.0), (1, 4, 5, 0.8)]


def test_a_segment_never_reaches_into_the_next_document() -> None:
    problem = {"values": [[1.0, 1.0, 1.0]], "splits": [2, 3], "max_length": 3, "budget": 3, "minimum_value": 0.5}
    assert solve(pick_greedily, problem) == [(0, 0, 2, 2.0), (0, 2, 3, 1.0)]


def test_the_last_segment_is_shortened_to_what_the_budget_leaves() -> None:
    problem = {"values": [[1.0, 1.0, 0.5, 0.5]], "splits": [2, 4], "max_length": 2, "budget": 3, "minimum_value": 0.5}
    assert solve(pick_greedily, problem) == [(0, 0, 2, 2.0), (0, 2, 3, 0.5)]


# --- the exact choice


@given(problems(chunks=8, queries=2))
@settings(max_examples=300, deadline=None)
def test_the_exact_choice_reaches_the_best_total_of_all_choices(problem: dict[str, Any]) -> None:
    picks = solve(choose_exactly, problem)
    assert sum(pick[3] for pick in picks) == pytest.approx(naive.dsrag_best_total(**problem), abs=1e-9)


@given(problems())
@settings(max_examples=300, deadline=None)
def test_the_exact_choice_keeps_every_limit_and_is_never_below_the_greedy_one(problem: dict[str, Any]) -> None:
    picks = solve(choose_exactly, problem)
    for query, start, end, score in picks:
        row = problem["values"][query]
        assert row[start] >= 0 and row[end - 1] >= 0
        assert score == naive.add_up(row[start:end]) >= problem["minimum_value"]
        assert end - start <= problem["max_length"]
        assert not any(start < split < end for split in problem["splits"])
    spans = sorted((start, end) for _, start, end, _ in picks)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
    assert sum(end - start for start, end in spans) <= problem["budget"]
    assert picks == sorted(picks, key=lambda pick: (-pick[3], pick[1]))
    greedy = sum(pick[3] for pick in solve(pick_greedily, problem))
    assert sum(pick[3] for pick in picks) >= greedy - 1e-9


@given(problems())
@settings(deadline=None)
def test_candidates_listed_a_few_at_a_time_change_nothing(problem: dict[str, Any]) -> None:
    whole = solve(choose_exactly, problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dsrag_exact, "CELLS", 8)
        assert solve(choose_exactly, problem) == whole


def test_the_exact_choice_finds_more_where_the_budget_binds() -> None:
    row = [1.0, 1.0, -0.5, 1.25, 1.25, -0.5, 1.0, 1.0]
    problem = {"values": [row], "splits": [8], "max_length": 4, "budget": 4, "minimum_value": 0.5}
    assert solve(pick_greedily, problem) == [(0, 1, 5, 3.0)]
    assert solve(choose_exactly, problem) == [(0, 3, 5, 2.5), (0, 0, 2, 2.0)]


def test_the_exact_choice_is_empty_when_no_sum_reaches_the_minimum() -> None:
    problem = {"values": [[0.1, -1.0, 0.2]], "splits": [3], "max_length": 3, "budget": 3, "minimum_value": 0.25}
    assert solve(choose_exactly, problem) == []


def test_the_exact_choice_values_a_segment_by_the_query_that_likes_it_most() -> None:
    problem = {"values": [[0.5], [0.75]], "splits": [1], "max_length": 1, "budget": 1, "minimum_value": 0.5}
    assert solve(choose_exactly, problem) == [(1, 0, 1, 0.75)]


# --- from ranked hits to values


def test_documents_come_from_the_first_hits_in_order_and_reach_to_the_last_hit_of_any_query() -> None:
    ranked = [
        [("b", 0, 100, 0.9), ("c", 5, 100, 0.8), ("b", 4, 100, 0.7)],
        [("a", 1, 100, 0.9), ("b", 6, 100, 0.1), ("d", 0, 100, 0.1)],
    ]
    selection = select_dsrag(ranked, DsragParams(top_k_for_document_selection=1))
    assert (selection.documents, selection.splits) == (("b", "a"), (7, 9))


def test_a_value_decays_with_rank_and_hits_of_other_documents_keep_their_rank() -> None:
    ranked = [[("a", 0, 100, 1.0), ("other", 0, 100, 1.0), ("a", 1, 100, 0.5)]]
    params = DsragParams(decay_rate=2, irrelevant_chunk_penalty=0.25, top_k_for_document_selection=1)
    assert select_dsrag(ranked, params).values[0].tolist() == pytest.approx([0.75, math.exp(-1) * 0.5 - 0.25])


def test_values_grow_with_length_above_700_negative_ones_too_and_a_missing_length_counts_as_0() -> None:
    ranked = [[("a", 0, 1400, 0.75), ("a", 1, 1400, 0.0), ("a", 2, 699, 0.75), ("a", 4, None, 0.75)]]
    params = choose_dsrag_params("balanced", {**NO_DECAY, "irrelevant_chunk_penalty": 0.25})
    assert select_dsrag(ranked, params).values[0].tolist() == [1.0, -0.5, 0.5, -0.25, 0.5]
    params = choose_dsrag_params(
        "balanced", {**NO_DECAY, "irrelevant_chunk_penalty": 0.25, "chunk_length_adjustment": False}
    )
    assert select_dsrag(ranked, params).values[0].tolist() == [0.5, -0.25, 0.5, -0.25, 0.5]


def test_a_chunk_listed_twice_keeps_its_later_rank() -> None:
    ranked = [[("a", 0, 100, 1.0), ("a", 0, 1400, 0.75)]]
    params = choose_dsrag_params("balanced", {**NO_DECAY, "irrelevant_chunk_penalty": 0.25})
    assert select_dsrag(ranked, params).values[0].tolist() == [1.0]


def test_nothing_is_clipped() -> None:
    ranked = [[("a", 0, 100, 3.0), ("a", 1, 100, -2.0)]]
    params = choose_dsrag_params("balanced", {**NO_DECAY, "irrelevant_chunk_penalty": 0.5})
    assert select_dsrag(ranked, params).values[0].tolist() == [2.5, -2.5]


def test_each_further_query_extends_the_budget_even_one_without_hits() -> None:
    hits = [("a", chunk, 100, 1.0) for chunk in range(4)]
    params = {**NO_DECAY, "overall_max_length": 1, "overall_max_length_extension": 1}
    assert [one[1:3] for one in relevant_segments([hits], params)] == [(0, 1)]
    assert [one[1:3] for one in relevant_segments([hits, [], []], params)] == [(0, 3)]


def test_segments_name_their_document_their_chunks_there_and_their_query() -> None:
    ranked = [[("a", 9, 100, 0.1)], [("b", 2, 100, 1.0), ("b", 3, 100, 1.0)]]
    params = choose_dsrag_params("balanced", {**NO_DECAY, "irrelevant_chunk_penalty": 0.25})
    (segment,) = select_dsrag(ranked, params).segments
    assert (segment.path, segment.start_chunk, segment.end_chunk) == ("b", 2, 4)
    assert (segment.score, segment.query) == (1.5, 1)


@pytest.mark.parametrize("solver", ["greedy", "exact"])
@pytest.mark.parametrize("ranked", [[], [[]], [[], []], [[("a", 0, 100, 0.0)]]])
def test_without_hits_of_value_there_are_no_segments(ranked: list[list[Any]], solver: str) -> None:
    assert relevant_segments(ranked, {"solver": solver}) == []


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_documents_and_values_are_those_of_the_slow_oracle(data: st.DataObject) -> None:
    hit = st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.sampled_from([None, 0, 700, 1750]), st.floats(-1, 1))
    ranked = data.draw(st.lists(st.lists(hit, max_size=8), max_size=3))
    params = DsragParams(top_k_for_document_selection=data.draw(st.integers(1, 3)), decay_rate=5)
    documents, splits = naive.dsrag_documents(ranked, params.top_k_for_document_selection)
    selection = select_dsrag(ranked, params)
    assert (list(selection.documents), list(selection.splits)) == (documents, splits)
    expected = naive.dsrag_values(ranked, documents, splits, params.to_dict())
    assert [row.tolist() for row in selection.values] == [pytest.approx(row, abs=1e-12) for row in expected]


@pytest.mark.parametrize(
    ("hit", "fault"),
    [(("a", -1, 9, 0.5), "chunk index"), (("a", 0, 9, math.nan), "similarity"), (("a", 0, 9, math.inf), "similarity")],
)
def test_a_hit_that_makes_no_sense_is_refused(hit: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        relevant_segments([[hit]], {})


# --- parameters


def test_presets_are_the_published_ones() -> None:
    names = list(DsragParams().to_dict())[:8]
    assert {name: [preset.to_dict()[key] for key in names] for name, preset in DSRAG_PRESETS.items()} == {
        "precision": [15, 30, 5, 0.7, 0.2, 30, 10, True],
        "balanced": [15, 30, 5, 0.5, 0.18, 30, 10, True],
        "find_all": [40, 200, 0, 0.4, 0.18, 200, 200, True],
    }


def test_overrides_are_read_from_text_and_the_rest_comes_from_the_preset() -> None:
    params = choose_dsrag_params(
        "find_all", {"max_length": "7", "decay_rate": "12.5", "chunk_length_adjustment": "false", "solver": "exact"}
    )
    assert (params.max_length, params.decay_rate, params.chunk_length_adjustment) == (7, 12.5, False)
    assert (params.solver, params.overall_max_length) == ("exact", 200)


def test_partial_parameters_fill_from_balanced() -> None:
    assert choose_dsrag_params("balanced", {"max_length": 2}) == DsragParams(max_length=2)


def test_every_value_out_of_range_is_named() -> None:
    with pytest.raises(UsageError) as failure:
        choose_dsrag_params(
            "balanced",
            {
                "max_length": 0,
                "overall_max_length_extension": -1,
                "minimum_value": "nan",
                "irrelevant_chunk_penalty": 1.5,
                "decay_rate": 0,
                "similarity": "dot",
            },
        )
    assert str(failure.value).split("; ") == [
        "max_length must be at least 1, not 0",
        "overall_max_length_extension must be at least 0, not -1",
        "minimum_value must be finite, not nan",
        "similarity must be relevance or cosine, not 'dot'",
        "irrelevant_chunk_penalty must be at most 1, not 1.5",
        "decay_rate must be above 0, not 0",
    ]


def test_unknown_names_and_unreadable_values_are_named_together() -> None:
    with pytest.raises(UsageError) as failure:
        choose_dsrag_params(
            "balanced",
            {"max_lenght": 3, "max_chars": 9, "max_length": "2.5", "decay_rate": "x", "chunk_length_adjustment": 2},
        )
    assert str(failure.value).split("; ") == [
        "unknown parameter 'max_lenght' of method dsrag",
        "did you mean 'max_length'?",
        "unknown parameter 'max_chars' of method dsrag",
        "max_length must be a whole number, not '2.5'",
        "decay_rate must be a number, not 'x'",
        "chunk_length_adjustment must be true or false, not 2",
    ]


@pytest.mark.parametrize("value", [2.5, True, math.inf, None, [1]])
def test_only_whole_numbers_are_lengths(value: Any) -> None:
    with pytest.raises(UsageError, match="max_length must be a whole number"):
        choose_dsrag_params("balanced", {"max_length": value})


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown preset 'best': use precision, balanced, find_all"):
        choose_dsrag_params("best", {})
