"""What speaks for a chunk, how it becomes relevance, and how sure it is that anything answers at all."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rse_cli.core.params import RseParams
from rse_cli.core.relevance import (
    FLOOR,
    FLOOR_LEXICAL,
    Balance,
    Candidates,
    Evidence,
    QueryTerms,
    balance_relevance,
    calibrate,
    combine_evidence,
    default_min_confidence,
    find_runs,
    find_strongest,
    gather_evidence,
    measure_confidence,
    measure_known_share,
    order_query_terms,
    spread_over_tables,
)
from tests import naive

TERMS = ("pump", "oil", "2018")
DIMENSION = 6


def make_candidates(places: list[tuple[int, int]], seed: int = 0, n_terms: int = len(TERMS)) -> Candidates:
    """Random chunks at (document, ord)."""
    rng = np.random.default_rng(seed)
    n = len(places)
    vectors = rng.normal(size=(n, DIMENSION))
    return Candidates(
        documents=np.array([document for document, _ in places], np.int64),
        ords=np.array([ord_ for _, ord_ in places], np.int64),
        chars=rng.integers(1, 400, n),
        n_terms=rng.integers(0, 60, n),
        vectors=(vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32),
        counts=(rng.integers(0, 4, (n, n_terms)) * rng.integers(0, 2, (n, n_terms))).astype(np.int32),
        fields=rng.integers(0, 2, (n, n_terms)).astype(np.int32),
        row_fields=rng.integers(0, 2, (n, n_terms)).astype(np.int32),
        is_row=rng.integers(0, 2, n).astype(np.bool_),
    )


# Several documents, each with some of its first 30 chunks: windows meet gaps and ends of documents.
PLACES = st.lists(st.sets(st.integers(0, 29), max_size=25), min_size=1, max_size=4).map(
    lambda documents: [(number, ord_) for number, ords in enumerate(documents) for ord_ in sorted(ords)]
)
WORDS = QueryTerms(TERMS, (0, 1, 2, 0), (7, 30, 2))
MEANS = {0: 21.0, 1: 60.0, 4: 170.0, 12: 400.0}
N_CHUNKS = 90
PIECES = ("c0", "c1", "c4", "f0", "f4", "f12", "p1")
QUERY = np.full(DIMENSION, DIMENSION**-0.5, np.float32)


@given(PLACES, st.integers(0, 1000))
@settings(deadline=None, max_examples=60)
def test_evidence_is_that_of_the_design_over_windows_that_end_at_gaps_and_documents(
    places: list[tuple[int, int]], seed: int
) -> None:
    rows = make_candidates(places, seed)
    found = gather_evidence(QUERY, WORDS, rows, N_CHUNKS, MEANS)
    frequencies = dict(zip(TERMS, WORDS.frequencies, strict=True))
    query = [TERMS[at] for at in WORDS.order]
    documents, ords = rows.documents.tolist(), rows.ords.tolist()
    for at in range(len(places)):
        windows = {k: naive.window(ords, documents, at, k) for k in (0, 1, 4, 12)}
        lengths = {k: int(sum(rows.n_terms[row] for row in windows[k])) for k in windows}
        counts = {k: [int(sum(rows.counts[row, t] for row in windows[k])) for t in range(3)] for k in windows}
        fields = [int(rows.fields[at, t] + rows.row_fields[at, t]) for t in range(3)]
        for k, cosines in ((0, found.c0), (1, found.c1), (4, found.c4)):
            wanted = naive.mean_cosine(QUERY, rows.vectors, rows.chars.tolist(), windows[k])
            assert cosines[at] == pytest.approx(wanted, abs=1e-5)
        for k, scores in ((0, found.f0), (4, found.f4), (12, found.f12)):
            occurrences = {term: counts[k][t] + fields[t] for t, term in enumerate(TERMS)}
            assert scores[at] == pytest.approx(
                naive.bm25f(occurrences, lengths[k], MEANS[k], frequencies, N_CHUNKS), abs=1e-12
            )
        near = {term: counts[1][t] for t, term in enumerate(TERMS)}
        assert found.p1[at] == pytest.approx(
            naive.proximity(query, near, lengths[1], MEANS[1], frequencies, N_CHUNKS), abs=1e-12
        )


@given(PLACES, st.integers(0, 1000))
@settings(deadline=None, max_examples=30)
def test_without_a_vector_only_words_count(places: list[tuple[int, int]], seed: int) -> None:
    rows = make_candidates(places, seed)
    whole, words = (gather_evidence(query, WORDS, rows, N_CHUNKS, MEANS) for query in (QUERY, None))
    assert not words.c0.any() and not words.c1.any() and not words.c4.any()
    assert all(np.array_equal(getattr(whole, name), getattr(words, name)) for name in ("f0", "f4", "f12", "p1"))


def test_without_known_words_only_the_vector_counts() -> None:
    rows = make_candidates([(0, 0), (0, 1)], n_terms=0)
    found = gather_evidence(QUERY, QueryTerms((), (), ()), rows, N_CHUNKS, MEANS)
    assert found.c0.all()
    assert not any(getattr(found, name).any() for name in ("f0", "f4", "f12", "p1"))


@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 1000))
@settings(deadline=None, max_examples=60)
@example(size=1, before=1, seed=410)  # the columns of one row are added in another order than those of two
def test_a_document_has_the_same_evidence_to_the_last_bit_whatever_lies_around_it(
    size: int, before: int, seed: int
) -> None:
    alone = make_candidates([(1, ord_) for ord_ in range(size)], seed)
    others = make_candidates([(0, ord_) for ord_ in range(before)], seed + 1)
    both = Candidates(*(np.concatenate((getattr(others, name), getattr(alone, name))) for name in Candidates.__slots__))
    small = gather_evidence(QUERY, WORDS, alone, N_CHUNKS, MEANS)
    large = gather_evidence(QUERY, WORDS, both, N_CHUNKS, MEANS)
    for name in PIECES:
        assert getattr(small, name).tolist() == getattr(large, name)[before:].tolist()


def test_runs_of_adjacent_chunks_end_at_gaps_and_at_documents() -> None:
    starts, ends = find_runs(np.array([4, 4, 4, 2, 2]), np.array([0, 1, 3, 4, 5]))
    assert starts.tolist() == [0, 0, 2, 3, 3]
    assert ends.tolist() == [2, 2, 3, 5, 5]
    assert [len(part) for part in find_runs(np.zeros(0, np.int64), np.zeros(0, np.int64))] == [0, 0]


def test_the_weights_are_those_of_the_design() -> None:
    one, zero = np.ones(1), np.zeros(1)
    z = {
        weighed: combine_evidence(
            Evidence(**{name: one if name == weighed else zero for name in PIECES}), RseParams(), Balance()
        ).item()
        for weighed in PIECES
    }
    assert z == {"c0": 3, "c1": 3, "c4": 2, "f0": 5, "f4": 4, "f12": 2, "p1": 1.5}


def test_a_reranker_is_one_more_piece_of_evidence() -> None:
    zeros = {name: np.zeros(2) for name in PIECES}
    reranked = Evidence(**zeros, rerank=np.array([1.0, 0.5]))
    assert combine_evidence(reranked, RseParams(weight_rerank=4), Balance()).tolist() == [4, 2]


Z = st.lists(st.floats(-20, 20), min_size=1, max_size=30)


@given(Z)
def test_the_best_three_relevances_average_one(z: list[float]) -> None:
    relevance = calibrate(np.array(z))
    assert sum(sorted(relevance)[-3:]) / min(3, len(z)) == pytest.approx(1)
    assert all(0 < r <= 3 for r in relevance)


@given(Z)
def test_more_evidence_is_more_relevance(z: list[float]) -> None:
    relevance = calibrate(np.array(z))
    for (a, ra), (b, rb) in itertools.combinations(zip(z, relevance, strict=True), 2):
        assert (a >= b) == (ra >= rb) or math.isclose(a, b, abs_tol=1e-9)


@given(Z, st.integers(-9, 9))
def test_relevance_depends_on_differences_alone(z: list[float], shift: int) -> None:
    assert calibrate(np.array(z) + shift) == pytest.approx(calibrate(np.array(z)))


def test_relevance_of_one_two_and_no_candidates() -> None:
    assert calibrate(np.array([-4.0])).tolist() == [1.0]
    e = math.exp(-1)
    assert calibrate(np.array([2.0, 1.0])).tolist() == pytest.approx([2 / (1 + e), 2 * e / (1 + e)])
    assert calibrate(np.zeros(0)).tolist() == []


def spread(relevance: list[float], places: list[tuple[int, int]], rows: list[bool], share: float) -> list[float]:
    candidates = make_candidates(places)
    flagged = Candidates(
        *(np.array(rows) if name == "is_row" else getattr(candidates, name) for name in Candidates.__slots__)
    )
    found: list[float] = spread_over_tables(np.array(relevance), flagged, share).tolist()
    return found


def test_a_hit_on_one_row_lifts_all_rows_of_its_table() -> None:
    places = [(0, ord_) for ord_ in range(5)]
    assert spread([0.1, 0.2, 0.1, 1.0, 0.7], places, [True] * 5, 0.5) == [0.5, 0.5, 0.5, 1.0, 0.7]


def test_a_table_goes_on_over_one_other_chunk_which_is_not_lifted() -> None:
    places = [(0, ord_) for ord_ in range(5)]
    rows = [True, False, True, False, False]
    assert spread([1.0, 0.1, 0.1, 0.1, 0.1], places, rows, 0.5) == [1.0, 0.1, 0.5, 0.1, 0.1]


def test_a_table_ends_after_two_other_chunks_and_with_its_document() -> None:
    assert spread([1.0, 0.1], [(0, 0), (0, 3)], [True, True], 0.5) == [1.0, 0.1]
    assert spread([1.0, 0.1], [(0, 0), (1, 1)], [True, True], 0.5) == [1.0, 0.1]


def test_table_share_zero_lifts_nothing_and_one_levels_the_table() -> None:
    places = [(0, 0), (0, 1)]
    assert spread([1.0, 0.1], places, [True, True], 0.0) == [1.0, 0.1]
    assert spread([1.0, 0.1], places, [True, True], 1.0) == [1.0, 1.0]
    assert spread([1.0, 0.1], places, [False, False], 1.0) == [1.0, 0.1]


@pytest.mark.parametrize("lexical", [False, True])
@given(z=st.lists(st.floats(-100, 100), min_size=2, max_size=2))
def test_confidence_lies_between_0_and_1_and_grows_with_the_evidence(lexical: bool, z: list[float]) -> None:
    low, high = (measure_confidence(one, lexical) for one in sorted(z))
    assert 0 <= low <= high <= 1


def test_no_candidate_at_all_is_confidence_0() -> None:
    assert measure_confidence(-math.inf, lexical=False) == 0
    assert measure_confidence(-math.inf, lexical=True) == 0


def test_the_floor_is_a_sum_of_evidence_of_5_1_and_2_2_without_cosines() -> None:
    assert (FLOOR, FLOOR_LEXICAL) == (5.1, 2.2)
    for floor, lexical in ((5.1, False), (2.2, True)):
        assert measure_confidence(floor - 0.01, lexical) < default_min_confidence(lexical)
        assert measure_confidence(floor, lexical) >= default_min_confidence(lexical)


def test_words_speak_for_an_answer_only_as_far_as_the_index_knows_the_query() -> None:
    evidence = Evidence(*(np.array([value]) for value in (0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0)))
    assert find_strongest(evidence, RseParams(), 1.0, lexical=False) == pytest.approx(4.0 + 12.5)
    assert find_strongest(evidence, RseParams(), 0.25, lexical=False) == pytest.approx(4.0 + 12.5 / 2)
    assert find_strongest(evidence, RseParams(), 0.25, lexical=True) == pytest.approx(20.5 / 4)
    assert measure_known_share(QueryTerms(("long",), (0,), (10,), n_unknown=4), 1_000) < 0.2
    assert measure_known_share(QueryTerms((), (), ()), 1_000) == 1.0


def test_words_of_a_query_that_the_index_knows_in_part_leave_their_weight_to_meaning() -> None:
    balance = balance_relevance(RseParams(), 0.5, lexical=False)
    assert balance.words == pytest.approx(balance.cosines / 2)
    assert 8.0 * balance.cosines + 12.5 * balance.words == pytest.approx(20.5)


def test_without_cosines_words_get_all_weight_so_that_the_sum_keeps_its_scale() -> None:
    balance = balance_relevance(RseParams(), 0.5, lexical=True)
    assert (balance.cosines, 12.5 * balance.words) == (0.0, pytest.approx(20.5))


def test_where_nothing_weighs_anything_the_balance_stays_finite() -> None:
    silent = RseParams(weight_f0=0, weight_f4=0, weight_f12=0, weight_p1=0)
    assert balance_relevance(silent, 1.0, lexical=True) == Balance(0.0, 1.0)
    assert balance_relevance(RseParams(weight_c0=0, weight_c1=0, weight_c4=0), 0.0, lexical=False) == Balance(1.0, 0.0)


def test_terms_that_no_chunk_holds_are_left_out_and_their_neighbours_become_neighbours() -> None:
    words = order_query_terms(["oil", "zz", "pump", "oil"], {"oil": 3, "pump": 1, "zz": 0})
    assert words == QueryTerms(("oil", "pump"), (0, 1, 0), (3, 1), n_unknown=1)
    assert order_query_terms([], {}) == QueryTerms((), (), ())
