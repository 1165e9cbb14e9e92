"""The best runs are found exactly, fit their ceiling, and add up to their scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rse_cli.core.params import RseParams
from rse_cli.core.segments import (
    choose_runs,
    choose_runs_on,
    count_chars,
    find_ground,
    fit_runs,
    narrow_ground,
    price_chunks,
)
from rse_cli.core.selection import Selection, select_segments
from tests import naive

# Halves and whole numbers make ties common, so that they are tested and not avoided.
VALUES = st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5]), max_size=9)


def make_starts(breaks: list[bool]) -> np.ndarray:
    """Starts of stretches: a True begins a new one."""
    starts, current = [], 0
    for at, opens in enumerate(breaks):
        current = at if opens else current
        starts.append(current)
    return np.array(starts, dtype=np.int64)


@given(VALUES, st.data(), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
@settings(max_examples=300)
def test_runs_reach_the_best_total_of_all_ways_to_choose(values: list[float], data: st.DataObject, cost: float) -> None:
    starts = make_starts(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    runs = choose_runs(np.array(values), starts, cost)
    assert sum(run.score for run in runs) == pytest.approx(naive.best_total(values, starts.tolist(), cost))
    assert all(run.score == pytest.approx(sum(values[run.start : run.end]) - cost) for run in runs)
    assert all(run.score > 0 for run in runs)
    assert all(starts[run.start] == starts[run.end - 1] for run in runs)
    assert all(before.end <= after.start for before, after in itertools.pairwise(runs))
    assert all(values[run.start] > 0 and values[run.end - 1] > 0 for run in runs)


def test_a_dip_is_bridged_only_while_a_second_segment_would_cost_more() -> None:
    values, starts = np.array([1.0, -0.4, 1.0]), np.zeros(3, int)
    assert [(run.start, run.end) for run in choose_runs(values, starts, 0.5)] == [(0, 3)]
    assert [(run.start, run.end) for run in choose_runs(values, starts, 0.3)] == [(0, 1), (2, 3)]


def test_on_a_tie_one_longer_segment_is_preferred_to_two() -> None:
    runs = choose_runs(np.array([1.0, -0.5, 1.0]), np.zeros(3, int), 0.5)
    assert [(run.start, run.end) for run in runs] == [(0, 3)]


def test_a_run_never_crosses_into_another_document() -> None:
    runs = choose_runs(np.array([1.0, 1.0]), np.array([0, 1]), 0.0)
    assert [(run.start, run.end) for run in runs] == [(0, 1), (1, 2)]


EIGHTHS = st.sampled_from([0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0])


@given(
    st.lists(st.tuples(EIGHTHS, st.sampled_from([100, 200, 300]), st.booleans()), max_size=14),
    EIGHTHS,
    EIGHTHS,
    EIGHTHS,
)
@settings(max_examples=500)
def test_rows_that_no_run_holds_at_a_penalty_are_not_missed_at_a_greater_one(
    rows: list[tuple[float, int, bool]], one: float, other: float, cost: float
) -> None:
    relevance, chars = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], dtype=np.int64)
    starts = make_starts([row[2] for row in rows])
    low, high = sorted((one, other))
    ground = find_ground(relevance, chars, starts, low, cost)
    for penalty, narrowed in ((low, ground), (high, ground), (high, narrow_ground(ground, high))):
        assert choose_runs_on(narrowed, penalty) == choose_runs(price_chunks(relevance, chars, penalty), starts, cost)


RELEVANCE = st.lists(st.sampled_from([0.0, 0.05, 0.1, 0.5, 0.5, 1.0, 1.2]), min_size=1, max_size=12)


def select(relevances: list[list[float]], lengths: list[int], fill: bool = False, **overrides: float) -> Selection:
    chars = np.array(lengths, dtype=np.int64)
    arrays = [np.array(relevance) for relevance in relevances]
    return select_segments(arrays, chars, np.zeros(len(lengths), np.int64), RseParams(**overrides), fill)  # type: ignore[arg-type]


def spans(selection: Selection) -> list[tuple[int, int]]:
    return sorted((choice.start, choice.end) for choice in selection.choices)


def shown(selection: Selection, lengths: list[int]) -> int:
    return sum(sum(lengths[one.start : one.end - 1]) + one.last_chars for one in selection.choices)


@given(RELEVANCE, st.data(), st.integers(1, 2_000), st.booleans())
def test_the_ceiling_is_never_exceeded_and_exactly_reached_with_fill(
    relevance: list[float], data: st.DataObject, max_chars: int, fill: bool
) -> None:
    lengths = data.draw(st.lists(st.integers(1, 300), min_size=len(relevance), max_size=len(relevance)))
    selection = select([relevance], lengths, fill, max_chars=max_chars)
    total = shown(selection, lengths)
    assert total <= max_chars
    assert total == min(max_chars, sum(lengths)) or not fill
    assert selection.choices


@given(RELEVANCE, RELEVANCE, st.integers(100, 2_000), st.booleans())
def test_segments_of_several_queries_never_overlap_or_touch(
    first: list[float], second: list[float], max_chars: int, fill: bool
) -> None:
    size = min(len(first), len(second))
    selection = select([first[:size], second[:size]], [100] * size, fill, max_chars=max_chars)
    found = spans(selection)
    whole = [one for one in selection.choices if one.last_chars == 100]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(found))
    assert len(whole) < 2 or fill or all(a[1] < b[0] for a, b in itertools.pairwise(found))


def test_the_score_of_a_segment_is_the_sum_of_its_values_less_the_cost() -> None:
    selection = select([[1.0, 0.5, 0.0, 0.0]], [200, 100, 100, 100])
    (choice,) = selection.choices
    assert (choice.start, choice.end) == (0, 2)
    assert choice.score == pytest.approx((1.0 - 0.075) * 2 + (0.5 - 0.075) - 0.3)
    assert choice.score == pytest.approx(selection.values[0:2].sum() - 0.3)


def test_segments_come_best_first() -> None:
    selection = select([[0.6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]], [200] * 8)
    assert [(choice.start, choice.end) for choice in selection.choices] == [(7, 8), (0, 1)]


def test_too_long_an_answer_raises_the_penalty_until_it_fits() -> None:
    selection = select([[1.0, 0.9, 0.3, 0.2, 0.1]], [100] * 5, max_chars=200)
    assert spans(selection) == [(0, 2)]
    assert selection.penalties[0] > 0.2


def test_a_best_chunk_longer_than_the_ceiling_is_cut_at_it() -> None:
    selection = select([[0.1, 1.0]], [100, 400], max_chars=150)
    assert [(one.start, one.end, one.last_chars) for one in selection.choices] == [(1, 2, 150)]


def test_a_tiny_ceiling_still_gives_something() -> None:
    assert select([[1.0]], [10], max_chars=1).choices[0].last_chars == 1


def test_every_query_gets_its_share_of_the_ceiling() -> None:
    strong, weak = [1.0] * 6 + [0.0] * 6, [0.0] * 6 + [1.0] * 6
    selection = select([strong, weak], [100] * 12, max_chars=600)
    assert {query for one in selection.choices for query in one.queries} == {0, 1}


def test_what_a_modest_query_leaves_goes_to_the_other() -> None:
    wide, narrow = [1.0] * 8 + [0.0] * 4, [0.0] * 11 + [1.0]
    selection = select([wide, narrow], [100] * 12, max_chars=900)
    assert spans(selection) == [(0, 8), (11, 12)]


def test_adjacent_segments_of_two_queries_join_and_name_both() -> None:
    selection = select([[1.0, 0.0], [0.0, 1.0]], [200, 200])
    assert [(one.start, one.end, one.queries) for one in selection.choices] == [(0, 2, (0, 1))]


def test_fill_adds_the_most_relevant_chunks_that_are_left_and_cuts_the_last() -> None:
    selection = select([[1.0, 0.0, 0.02, 0.0, 0.01]], [100] * 5, fill=True, max_chars=250)
    assert [(one.start, one.end, one.last_chars) for one in sorted(selection.choices, key=lambda one: one.start)] == [
        (0, 1, 100),
        (2, 3, 100),
        (4, 5, 50),
    ]


def test_the_largest_answer_that_fits_is_kept() -> None:
    relevance, chars = np.array([1.0, 0.9, 0.8]), np.array([100, 100, 100])
    ground, sums = find_ground(relevance, chars, np.zeros(3, int), 0.0, 0.0), np.array([0, 100, 200, 300])
    runs, _ = fit_runs(ground, choose_runs_on(ground, 0.0), sums, 0.0, 250)
    assert count_chars(runs, sums) == 200
    assert price_chunks(relevance, chars, 0.5).tolist() == pytest.approx([0.5, 0.4, 0.3])


def test_the_penalty_is_sought_up_to_the_greatest_relevance_though_no_run_holds_it() -> None:
    relevance, chars, starts = np.array([1.0, 0.7, 0.6]), np.array([10, 100, 100]), np.arange(3)
    ground, sums = find_ground(relevance, chars, starts, 0.0, 0.3), np.array([0, 10, 110, 210])
    runs, penalty = fit_runs(ground, choose_runs_on(ground, 0.0), sums, 0.0, 100)
    assert ground.rows.tolist() == [1, 2]
    assert ([(run.start, run.end) for run in runs], penalty) == ([(1, 2)], 1229 / 4096)
