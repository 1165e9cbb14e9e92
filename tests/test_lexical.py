"""What counts as a term, what a term weighs, and how well a window of chunks covers the terms of a query."""

from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.core.lexical import (
    STOP_WORDS,
    _expand_word,
    compute_idf,
    count_terms,
    find_term_spans,
    measure_cjk_share,
    measure_windows,
    score_bm25,
    score_proximity,
    split_query_terms,
    split_terms,
    weigh_years,
)
from tests import naive


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Pumps pumped pumping", ["pump", "pump", "pump"]),
        ("the state of the art", ["state", "art"]),
        ("10-K", ["10k"]),
        ("Forms 10-K and 8-K/A", ["form", "10k", "8k"]),
        ("x10-K", ["x10", "k"]),
        ("10-KB", ["10", "kb"]),
        ("FY2018", ["fy2018", "2018"]),
        ("2020Q4", ["2020q4", "2020", "q4"]),
        ("fy2019q1", ["fy2019q1", "2019", "q1"]),
        ("2018", ["2018"]),
        ("fy18", ["fy18"]),
        ("2025-01-17T02:20:00Z", ["2025", "01", "17", "02", "20", "00z"]),
        ("3018Q4", ["3018q4"]),
        ("$32,765", ["32765"]),
        ("1,234,567.89", ["1234567.89"]),
        ("1,23", ["1,23"]),
        ("1.5 and 1,5", ["1.5", "1,5"]),
        ("v1.2.3.", ["v1.2.3"]),
        ("in 2018, 30", ["2018", "30"]),
        ("snake_case", ["snake", "case"]),
        ("don't company's", ["don", "t", "compani", "s"]),
        ("don’t", ["don", "t"]),
        ("", []),
        ("?! … — $", []),
    ],
)
def test_words_are_stemmed_and_numbers_and_periods_are_brought_to_one_form(text: str, terms: list[str]) -> None:
    assert split_terms(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("检索结果", ["检", "索", "结", "果", "检索", "索结", "结果"]),
        ("字", ["字"]),
        ("使用rse检索", ["使", "用", "使用", "rse", "检", "索", "检索"]),
        ("检索，结果。", ["检", "索", "检索", "结", "果", "结果"]),
        ("カメラ", ["カ", "メ", "ラ", "カメ", "メラ"]),
        ("한국", ["한", "국", "한국"]),
        ("2020年", ["2020", "年"]),
    ],
)
def test_cjk_gives_each_character_and_each_pair_of_neighbours(text: str, terms: list[str]) -> None:
    assert split_terms(text) == terms


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("ＦＹ２０１８", "FY2018"),
        ("１０-Ｋ", "10-K"),
        ("３２，７６５", "32,765"),
        ("ｶﾒﾗ", "カメラ"),
        ("ﬁnding", "finding"),
        ("cafe\u0301", "café"),
        ("CAFÉ", "café"),
        ("\u1112\u1161\u11ab", "한"),
    ],
)
def test_other_forms_of_a_character_give_the_same_terms(written: str, plain: str) -> None:
    assert split_terms(written) == split_terms(plain)


def test_accents_are_kept() -> None:
    assert split_terms("résumé resume") == ["résumé", "resum"]


def test_every_stop_word_gives_no_term_in_any_case() -> None:
    assert split_terms(" ".join(STOP_WORDS) + " " + " ".join(STOP_WORDS).upper()) == []


@given(st.text())
def test_terms_can_be_joined_by_spaces_and_split_again(text: str) -> None:
    terms = split_terms(text)
    assert " ".join(terms).split() == terms


@given(st.text(), st.text())
def test_terms_of_two_lines_are_those_of_each(first: str, second: str) -> None:
    assert split_terms(f"{first}\n{second}") == split_terms(first) + split_terms(second)


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_english_gives_the_same_terms_beside_other_scripts(text: str) -> None:
    assert split_terms(f"{text}\n检") == [*split_terms(text), "检"]


@pytest.mark.parametrize(
    ("text", "share"),
    [("", 0.0), ("42 !", 0.0), ("plain", 0.0), ("检索", 1.0), ("检索 ab", 0.5), ("检 1,000,000", 1.0)],
)
def test_the_share_of_cjk_counts_letters_alone(text: str, share: float) -> None:
    assert measure_cjk_share(text) == share


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Pumps, pumped: pumpkin", "pump", ["Pumps", "pumped"]),
        ("The Form 10-K of FY2018", "10-k 2018", ["10-K", "FY2018"]),
        ("cost $32,765 or 32765", "32765", ["32,765", "32765"]),
        ("检索结果 is found", "索 found", ["索", "found"]),
        ("ＰＵＭＰ and cafe\u0301", "pump café", ["ＰＵＭＰ", "cafe\u0301"]),
        ("İstanbul pump", "pump", ["pump"]),
        ("of the in", "the", []),
    ],
)
def test_words_that_stand_for_a_term_are_marked_as_they_are_written(text: str, query: str, marked: list[str]) -> None:
    spans = find_term_spans(text, set(split_terms(query)))
    assert [text[start:end] for start, end in spans] == marked


@given(st.text())
def test_marks_are_in_order_and_do_not_overlap(text: str) -> None:
    ends = [at for span in find_term_spans(text, set(split_terms(text))) for at in span]
    assert ends == sorted(ends)
    assert not ends or (ends[0] >= 0 and ends[-1] <= len(text))


def test_idf_is_that_of_robertson_and_never_negative() -> None:
    assert compute_idf(["rare", "common", "everywhere"], [1, 50, 100], 100).tolist() == pytest.approx(
        [math.log(1 + 99.5 / 1.5), math.log(1 + 50.5 / 50.5), math.log(1 + 0.5 / 100.5)]
    )
    assert compute_idf([], [], 100).shape == (0,)


@pytest.mark.parametrize(
    ("term", "factor"),
    [("2018", 1.5), ("1999", 1.5), ("fy2018", 1.5), ("1899", 1), ("2100", 1), ("20181", 1), ("2018q4", 1), ("fi", 1)],
)
def test_a_year_counts_one_and_a_half_times(term: str, factor: float) -> None:
    assert weigh_years([term], np.array([2.0])).tolist() == [2.0 * factor]


def test_terms_are_counted_per_text_and_only_whole() -> None:
    counts = count_terms(["gear gearbox gear", "", None, "oil"], ["oil", "gear"])
    assert counts.tolist() == [[0, 2], [0, 0], [0, 0], [1, 0]]
    assert count_terms(["gear"], []).shape == (1, 0)


TERMS = ("pump", "2018", "fy2019", "oil")
COUNTS = st.lists(st.integers(0, 5), min_size=4, max_size=4)


@given(
    st.lists(st.tuples(COUNTS, st.integers(0, 400)), min_size=1, max_size=6),
    st.floats(1, 300),
    st.lists(st.integers(1, 50), min_size=4, max_size=4),
    st.integers(50, 10_000),
)
def test_bm25f_is_the_formula_of_the_design(
    windows: list[tuple[list[int], int]], mean: float, frequencies: list[int], n_chunks: int
) -> None:
    idf = weigh_years(TERMS, compute_idf(TERMS, frequencies, n_chunks))
    occurrences = np.array([counts for counts, _ in windows], np.float64)
    lengths = np.array([length for _, length in windows], np.float64)
    found = score_bm25(occurrences, lengths, mean, idf)
    by_term = dict(zip(TERMS, frequencies, strict=True))
    for score, (counts, length) in zip(found, windows, strict=True):
        wanted = naive.bm25f(dict(zip(TERMS, counts, strict=True)), length, mean, by_term, n_chunks)
        assert score == pytest.approx(wanted)
        assert 0 <= score <= 1


@given(
    st.lists(st.tuples(COUNTS, st.integers(0, 400)), min_size=1, max_size=6),
    st.floats(1, 300),
    st.lists(st.integers(1, 50), min_size=4, max_size=4),
    st.integers(50, 10_000),
    st.lists(st.integers(0, 3), max_size=8),
)
def test_proximity_is_the_formula_of_the_design(
    windows: list[tuple[list[int], int]], mean: float, frequencies: list[int], n_chunks: int, query: list[int]
) -> None:
    occurrences = np.array([counts for counts, _ in windows], np.float64)
    lengths = np.array([length for _, length in windows], np.float64)
    found = score_proximity(occurrences, lengths, mean, compute_idf(TERMS, frequencies, n_chunks), query)
    by_term = dict(zip(TERMS, frequencies, strict=True))
    words = [TERMS[at] for at in query]
    for score, (counts, length) in zip(found, windows, strict=True):
        wanted = naive.proximity(words, dict(zip(TERMS, counts, strict=True)), length, mean, by_term, n_chunks)
        assert score == pytest.approx(wanted)
        assert 0 <= score <= 1


def test_a_query_without_known_terms_scores_nothing() -> None:
    nothing, lengths = np.zeros((2, 0)), np.array([5.0, 7.0])
    assert score_bm25(nothing, lengths, 6.0, np.zeros(0)).tolist() == [0, 0]
    assert score_proximity(nothing, lengths, 6.0, np.zeros(0), []).tolist() == [0, 0]


def test_one_term_repeated_has_no_neighbours() -> None:
    assert score_proximity(np.array([[2.0]]), np.array([5.0]), 5.0, np.array([1.0]), [0, 0, 0]).tolist() == [0]


@given(st.integers(1, 300), st.integers(1, 12), st.data())
def test_equal_windows_score_equal_to_the_last_bit_wherever_they_stand(n: int, terms: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    occurrences = np.tile(rng.integers(0, 9, terms).astype(np.float64), (n, 1))
    lengths, idf = np.full(n, 40.0), rng.random(terms) + 0.1
    assert len(set(score_bm25(occurrences, lengths, 33.0, idf).tolist())) == 1
    assert len(set(score_proximity(occurrences, lengths, 33.0, idf, list(range(terms))).tolist())) == 1


@given(st.lists(st.integers(0, 60), max_size=40), st.lists(st.integers(0, 50), min_size=1, max_size=4))
def test_window_lengths_are_summed_over_windows_that_end_with_the_document(
    lengths: list[int], widths: list[int]
) -> None:
    wanted = tuple(sum(sum(lengths[max(0, at - k) : at + k + 1]) for at in range(len(lengths))) for k in widths)
    assert measure_windows(lengths, widths) == wanted


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("灯塔是谁建的？", ["灯", "塔", "灯塔", "建"]),
        ("燈塔是誰建的？", ["燈", "塔", "燈塔", "建"]),
        ("为什么休假要申请", ["休", "假", "要", "申", "请", "休假", "假要", "要申", "申请"]),
        ("的", []),
        ("What is the lamp?", ["lamp"]),
    ],
)
def test_question_words_of_a_chinese_query_are_no_terms(query: str, terms: list[str]) -> None:
    assert split_query_terms(query) == terms


def test_question_words_stay_terms_of_documents() -> None:
    assert "什么" in split_terms("什么是灯塔")


def test_threads_may_be_the_first_to_stem_at_once() -> None:
    script = (
        "import threading\n"
        "from rse_cli.core.stemming import stem_word\n"
        "gate, stems = threading.Barrier(8), []\n"
        "def stem():\n"
        "    gate.wait()\n"
        "    stems.append(stem_word('gears'))\n"
        "threads = [threading.Thread(target=stem) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "import snowballstemmer\n"
        "print(stems == ['gear'] * 8, snowballstemmer.stemmer('french').stemWord('continuation'))\n"
    )
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("True continu\n", "")


def test_threads_stem_side_by_side_as_one_does_alone() -> None:
    words = [f"{start}{end}" for start in ("relat", "condit", "nation", "hope") for end in ("ional", "ing", "fulness")]
    texts = [" ".join(f"{word}{'abcdefgh'[number % 8] * (number // 8)}s" for word in words) for number in range(200)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(split_terms, texts))
    finally:
        sys.setswitchinterval(interval)
    _expand_word.cache_clear()
    assert found == [split_terms(text) for text in texts]
