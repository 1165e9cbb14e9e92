"""Answers are scored over the characters of the union of their spans."""

from __future__ import annotations

import itertools
from dataclasses import asdict

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rse_cli.core.metrics import DocumentSpan, Score, average_scores, measure_overlap, score_spans, union_spans
from tests import naive

SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda pair: (pair[0], sum(pair))), max_size=6)
# Two documents and short texts make overlaps, touching ends and repeats common.
LOCATED = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 12), st.integers(0, 6)).map(
        lambda one: (one[0], one[1], one[1] + one[2])
    ),
    max_size=6,
)


def score(expected: list[tuple[str, int, int]], retrieved: list[tuple[str, int, int]]) -> Score:
    return score_spans([DocumentSpan(*one) for one in expected], [DocumentSpan(*one) for one in retrieved])


@given(LOCATED, LOCATED)
def test_every_metric_agrees_with_sets_of_characters(
    expected: list[tuple[str, int, int]], retrieved: list[tuple[str, int, int]]
) -> None:
    assume(any(start < end for _, start, end in expected))
    assert asdict(score(expected, retrieved)) == pytest.approx(naive.span_scores(expected, retrieved))


@given(SPANS)
def test_a_union_has_the_same_characters_in_order_with_gaps_between(spans: list[tuple[int, int]]) -> None:
    united = union_spans(spans)
    assert {at for span in united for at in range(*span)} == {at for span in spans for at in range(*span)}
    assert all(start < end for start, end in united)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(united))


@given(SPANS, SPANS)
def test_overlap_counts_the_characters_in_both_whichever_comes_first(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    both = {at for span in one for at in range(*span)} & {at for span in other for at in range(*span)}
    assert measure_overlap(union_spans(one), union_spans(other)) == len(both)
    assert measure_overlap(union_spans(other), union_spans(one)) == len(both)


@given(LOCATED, LOCATED)
def test_returning_more_never_lowers_recall(
    expected: list[tuple[str, int, int]], retrieved: list[tuple[str, int, int]]
) -> None:
    assume(any(start < end for _, start, end in expected))
    assert score(expected, retrieved).recall >= score(expected, retrieved[:-1]).recall


def test_one_long_span_can_meet_several_expected_ones() -> None:
    assert measure_overlap([(0, 100)], [(10, 20), (30, 40), (95, 105)]) == 25


def test_an_exact_answer_scores_one() -> None:
    found = score([("a.md", 10, 30)], [("a.md", 10, 30)])
    assert found == Score(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, chars=20.0, n_spans=1.0, empty=0.0)


def test_an_empty_answer_scores_zero_everywhere() -> None:
    assert score([("a.md", 10, 30)], []) == Score(0, 0, 0, 0, 0, 0, chars=0, n_spans=0, empty=1)


def test_a_passage_returned_twice_counts_once() -> None:
    found = score([("a.md", 0, 10)], [("a.md", 0, 10), ("a.md", 5, 10), ("a.md", 0, 10)])
    assert (found.precision, found.chars, found.n_spans) == (1.0, 10.0, 1.0)


def test_the_same_offsets_in_another_document_are_no_hit() -> None:
    found = score([("a.md", 0, 10)], [("b.md", 0, 10)])
    assert (found.hit, found.document_recall, found.reciprocal_rank, found.empty) == (0.0, 0.0, 0.0, 0.0)


def test_the_right_document_counts_even_where_the_passage_is_wrong() -> None:
    found = score([("a.md", 0, 10), ("b.md", 0, 10)], [("a.md", 50, 60)])
    assert (found.hit, found.document_recall) == (0.0, 0.5)


def test_expecting_nothing_has_no_recall() -> None:
    with pytest.raises(ValueError, match="nothing is expected"):
        score([], [("a.md", 0, 10)])
    with pytest.raises(ValueError, match="nothing is expected"):
        score([("a.md", 3, 3)], [])


def test_a_span_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not a span: \[5, 3\) of a\.md"):
        DocumentSpan("a.md", 5, 3)


def test_an_average_takes_every_case_alike_however_long_its_spans() -> None:
    short, long = score([("a", 0, 1)], [("a", 0, 1)]), score([("a", 0, 900)], [])
    assert average_scores([short, long]).recall == 0.5
    with pytest.raises(ValueError, match="no scores"):
        average_scores([])
