"""The classic methods: rankings, sentence windows, parents, the naive average, and the table that names them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rse_cli.core.annotation import make_chunks
from rse_cli.core.average import (
    choose_average_runs,
    compose_values,
    find_block_stretches,
    grow_regions,
    measure_density,
    measure_quality,
    select_average,
    weigh_values,
)
from rse_cli.core.blocks import Blocks, pool_blocks
from rse_cli.core.hits import Hit, fuse_ranks, measure_similarity, rank_dense, rank_lexical, rank_rows, take_hits
from rse_cli.core.method_params import AverageParams, SentenceWindowParams, TopKParams
from rse_cli.core.methods import METHODS, choose_method_params
from rse_cli.core.models import Chunk, Document, Passage
from rse_cli.core.parents import build_parents, mix_window_parent, vote_parents
from rse_cli.core.windows import join_overlaps, settle_ends, split_sentences, widen_hits
from rse_cli.errors import UsageError
from tests import naive


def cut(text: str, *ends: int, section: str = "") -> list[Chunk]:
    """Chunks of `text` that end at `ends` and at its end."""
    bounds = [0, *ends, len(text)]
    return [Chunk(i, a, b, text[a:b], section=section) for i, (a, b) in enumerate(itertools.pairwise(bounds))]


def join(*texts: str, sections: str = "") -> list[Chunk]:
    """Chunks of these texts, with one letter of `sections` each."""
    ends = list(itertools.accumulate(map(len, texts)))
    return [
        Chunk(i, end - len(text), end, text, section=sections[i : i + 1])
        for i, (text, end) in enumerate(zip(texts, ends, strict=True))
    ]


def spans(passages: list[Passage]) -> list[tuple[int, int, int]]:
    return [(passage.document, passage.start_char, passage.end_char) for passage in passages]


# Rankings


def test_a_dense_ranking_holds_all_rows_and_ties_go_by_row() -> None:
    assert rank_dense(np.array([-0.5, 0.5, 0.5, 0.9])).tolist() == [3, 1, 2, 0]


def test_a_lexical_ranking_leaves_out_rows_without_a_match() -> None:
    assert rank_lexical(np.array([0.0, 0.2, 0.4, 0.2])).tolist() == [2, 1, 3]


RANKING = st.lists(st.integers(0, 12), unique=True, max_size=10)


@given(st.lists(RANKING, max_size=4), st.integers(0, 60))
def test_fused_ranks_agree_with_exact_fractions_ties_included(rankings: list[list[int]], k: int) -> None:
    rows, scores = fuse_ranks([np.array(ranking, dtype=np.int64) for ranking in rankings], k)
    expected = naive.fuse(rankings, k)
    assert scores.tolist() == pytest.approx([float(score) for _, score in expected], rel=1e-12)
    exact = dict(expected)
    assert {*rows.tolist()} == {*exact}
    for (a, b), (score_a, score_b) in zip(itertools.pairwise(rows.tolist()), itertools.pairwise(scores), strict=True):
        assert exact[a] >= exact[b] or score_a == pytest.approx(score_b, rel=1e-12)
        assert score_a > score_b or a < b


def test_the_same_ranks_in_another_order_are_a_tie() -> None:
    rankings = [[1, 9, 2, 5], [9, 2, 1, 5], [2, 1, 9, 5]]
    rows, scores = fuse_ranks([np.array(ranking) for ranking in rankings])
    assert rows.tolist() == [1, 2, 9, 5]
    assert len(set(scores[:3].tolist())) == 1


def test_the_first_rank_is_one_and_k_is_sixty() -> None:
    assert fuse_ranks([np.array([7])])[1].tolist() == [1 / 61]


def test_each_retriever_ranks_by_its_own_evidence() -> None:
    similarity, bm25 = np.array([0.9, 0.1, 0.5]), np.array([0.0, 0.6, 0.3])
    assert rank_rows("dense", similarity, bm25)[0].tolist() == [0, 2, 1]
    assert rank_rows("dense", similarity, bm25)[1].tolist() == [0.9, 0.5, 0.1]
    assert rank_rows("lexical", similarity, bm25)[0].tolist() == [1, 2]
    rows, scores = rank_rows("hybrid", similarity, bm25)
    assert rows.tolist() == [1, 2, 0]
    assert scores.tolist() == pytest.approx([1 / 61 + 1 / 63, 2 / 62, 1 / 61])


def test_a_query_without_a_vector_is_ranked_by_words_or_refused() -> None:
    bm25 = np.array([0.0, 0.6])
    assert rank_rows("hybrid", None, bm25)[0].tolist() == [1]
    with pytest.raises(ValueError, match="without a vector"):
        rank_rows("dense", None, bm25)
    with pytest.raises(ValueError, match="can't rank by 'sparse'"):
        rank_rows("sparse", None, bm25)


def test_equal_vectors_have_equal_similarity_wherever_they_stand() -> None:
    generator = np.random.default_rng(1)
    vector, query = generator.normal(size=(2, 384)).astype(np.float32)
    assert len(set(measure_similarity(np.tile(vector, (101, 1)), query).tolist())) == 1


def test_hits_are_the_first_ranked_rows() -> None:
    ranked = np.array([2, 0, 1]), np.array([0.9, 0.5, 0.1])
    documents, ords = np.array([4, 4, 6]), np.array([10, 11, 0])
    assert take_hits(ranked, documents, ords, 2) == [Hit(6, 0, 0.9), Hit(4, 10, 0.5)]
    assert take_hits((np.zeros(0, np.int64), np.zeros(0)), documents, ords, 2) == []


# Sentence windows

TEXTS = st.text(alphabet=st.sampled_from("ab .!?\n\r。 "), max_size=120) | st.text(max_size=60)


@given(TEXTS, st.booleans())
def test_sentences_tile_any_text(text: str, wrapped: bool) -> None:
    sentences = split_sentences(text, wrapped)
    assert "".join(text[start:end] for start, end in sentences) == text
    assert all(start < end for start, end in sentences)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(sentences))
    assert all(text[start:end].strip() for start, end in sentences) or not text.strip()


def test_a_sentence_ends_where_a_chunk_may_end() -> None:
    text = 'He said "No." Then left!\nA line\n第一句。第二句。'
    assert [text[a:b] for a, b in split_sentences(text)] == [
        'He said "No." ', "Then left!\n", "A line\n", "第一句。", "第二句。"
    ]  # fmt: skip


PROSE = "A one. B two. C three. D four. E five. F six. "


def test_a_hit_is_returned_with_the_sentences_around_it() -> None:
    chunks = {3: cut(PROSE, 14, 31)}
    passages = widen_hits([Hit(3, 1, 0.5)], chunks, 1)
    assert passages == [Passage(3, 0, 3, 7, 39, 0.5, (0,), 1)]
    assert PROSE[7:39] == "B two. C three. D four. E five. "


def test_a_window_of_none_is_the_hit_in_whole_sentences() -> None:
    chunks = {3: cut(PROSE, 14, 31)}
    assert widen_hits([Hit(3, 1, 0.5)], chunks, 0) == [Passage(3, 1, 2, 14, 31, 0.5, (0,), 1)]
    text = "One long sentence that is cut, here, into pieces. Then another."
    assert spans(widen_hits([Hit(0, 1, 1.0)], {0: cut(text, 31, 37, 50)}, 0)) == [(0, 0, 50)]


def test_a_window_ends_with_the_document() -> None:
    assert spans(widen_hits([Hit(3, 0, 0.5)], {3: cut(PROSE, 14, 31)}, 99)) == [(3, 0, len(PROSE))]


def test_a_window_ends_with_the_adjacent_chunks_that_are_known() -> None:
    chunks = cut(PROSE, 7, 14, 23, 31)
    assert spans(widen_hits([Hit(0, 1, 0.5)], {0: [*chunks[:2], *chunks[3:]]}, 9)) == [(0, 0, 14)]


def test_windows_that_overlap_or_repeat_are_joined_with_the_best_score() -> None:
    chunks = {3: cut(PROSE, 7, 14, 23, 31), 5: cut(PROSE, 23)}
    hits = [Hit(3, 2, 0.9), Hit(5, 0, 0.8), Hit(3, 1, 0.7), Hit(3, 2, 0.6)]
    passages = widen_hits(hits, chunks, 1, query=2)
    assert passages == [Passage(3, 0, 4, 0, 31, 0.9, (2,), 2), Passage(5, 0, 2, 0, 31, 0.8, (2,), 0)]


def test_windows_that_only_touch_stay_apart_and_ties_keep_the_order_of_hits() -> None:
    chunks = {3: cut(PROSE, 7, 14)}
    hits = [Hit(3, 1, 0.5), Hit(3, 0, 0.5)]
    assert spans(widen_hits(hits, chunks, 0)) == [(3, 7, 14), (3, 0, 7)]


def test_a_hit_outside_the_given_chunks_is_an_error() -> None:
    with pytest.raises(ValueError, match="chunk 9 is not among"):
        widen_hits([Hit(3, 9, 0.5)], {3: cut(PROSE)}, 1)


def test_wrapped_prose_is_widened_by_sentences_and_not_by_lines() -> None:
    line = "This sentence was wrapped by hand at some sixty-odd characters\nand ends here in its second line. \n"
    document = Document(line * 6, wrapped=True)
    chunks = make_chunks(document, "T")
    passages = widen_hits([Hit(0, 2, 1.0)], {0: chunks}, 1)
    assert document.text[passages[0].start_char : passages[0].end_char] == line * 3


SHAPES = st.lists(st.sampled_from(["Aa. ", "B b. C. ", "d, ", "e\n", "F.\n\n", "长句。"]), min_size=1, max_size=12)


@given(SHAPES, st.data(), st.integers(0, 4))
@settings(max_examples=200)
def test_windows_hold_their_hits_with_as_many_sentences_as_there_are(
    texts: list[str], data: st.DataObject, window: int
) -> None:
    chunks = join(*texts)
    text = "".join(texts)
    ords = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=4))
    hits = [Hit(0, ord_, 1.0 - rank / 9) for rank, ord_ in enumerate(ords)]
    passages = widen_hits(hits, {0: chunks}, window)
    sentences = split_sentences(text)
    wanted: set[int] = set()
    for hit in hits:
        chunk = chunks[hit.ord]
        touched = [i for i, (a, b) in enumerate(sentences) if a < chunk.end_char and b > chunk.start_char]
        wide = range(max(touched[0] - window, 0), min(touched[-1] + window + 1, len(sentences)))
        wanted |= {at for i in wide for at in range(*sentences[i])}
    found = [at for passage in passages for at in range(passage.start_char, passage.end_char)]
    assert sorted(found) == sorted(wanted)
    assert [passage.score for passage in passages] == sorted((passage.score for passage in passages), reverse=True)
    for passage in passages:
        held = [c.ord for c in chunks if c.start_char < passage.end_char and c.end_char > passage.start_char]
        assert list(range(passage.start_chunk, passage.end_chunk)) == held
        assert passage.hit in held


def test_joining_unites_queries_and_never_joins_documents() -> None:
    first, second = Passage(0, 0, 2, 0, 9, 0.5, (1,), 0), Passage(0, 0, 1, 2, 4, 0.7, (0,), 1)
    other = Passage(1, 0, 1, 0, 9, 0.6)
    assert join_overlaps([first, other, second]) == [Passage(0, 0, 2, 0, 9, 0.7, (0, 1), 1), other]


def test_ends_move_out_to_the_paragraph_when_it_is_near() -> None:
    chunks = join("Above.\n\n", "First, ", "then this, ", "then that.\n", "\n", "Below.")
    settled = settle_ends([Passage(0, 2, 3, 15, 26, 1.0)], {0: chunks})
    assert settled == [Passage(0, 1, 5, 8, 38, 1.0)]


def test_ends_move_to_the_sentence_when_the_paragraph_is_long() -> None:
    far = "Another sentence of this long paragraph. " * 10
    chunks = join(far, "First, ", "then this, ", "then that. ", far)
    settled = settle_ends([Passage(0, 2, 3, 417, 428, 1.0)], {0: chunks})
    assert [(p.start_chunk, p.end_chunk, p.start_char, p.end_char) for p in settled] == [(1, 4, 410, 439)]


def test_ends_stay_in_a_wall_of_text() -> None:
    chunks = join("word " * 100, "middle ", "word " * 100)
    passage = Passage(0, 1, 2, 500, 507, 1.0)
    assert settle_ends([passage], {0: chunks}) == [passage]


# Parents


def test_parents_are_sections() -> None:
    chunks = join("a.", "b.", "c.", "d.", sections="AAB")
    assert build_parents(chunks, 100) == [(0, 2), (2, 3), (3, 4)]


def test_a_long_section_is_cut_at_the_last_blank_line_within_reach() -> None:
    texts = ["One. ", "Two.\n\n", "Three.\r\n\r\n", "Four. ", "Five.\n", "Six."]
    assert build_parents(join(*texts), 30) == [(0, 3), (3, 6)]


def test_without_a_blank_line_it_is_cut_at_a_line_end_and_else_anywhere() -> None:
    assert build_parents(join("One. ", "Two.\r\n", "Three. ", "Four. "), 20) == [(0, 2), (2, 4)]
    assert build_parents(join("One. ", "Two. ", "Three. ", "Four. "), 20) == [(0, 3), (3, 4)]


def test_a_chunk_longer_than_a_parent_is_one_alone() -> None:
    assert build_parents(join("a" * 50, "b" * 5, "c" * 5), 10) == [(0, 1), (1, 3)]


@given(
    st.lists(st.tuples(st.sampled_from(["aa. ", "bbb.\n", "c.\n \n", "dddddddd"]), st.sampled_from("AB")), max_size=20),
    st.integers(1, 40),
)
def test_parents_tile_any_document_within_its_sections(shapes: list[tuple[str, str]], parent_chars: int) -> None:
    chunks = join(*(text for text, _ in shapes), sections="".join(section for _, section in shapes))
    parents = build_parents(chunks, parent_chars)
    assert [ord_ for start, end in parents for ord_ in range(start, end)] == list(range(len(chunks)))
    for start, end in parents:
        assert len({chunk.section for chunk in chunks[start:end]}) == 1
        assert end == start + 1 or chunks[end - 1].end_char - chunks[start].start_char <= parent_chars
    # A parent ends before its limit only where a line ends: chunks without line ends fill it.
    for (start, end), (after, _) in itertools.pairwise(parents):
        bare = not any("\n" in chunk.text or "\r" in chunk.text for chunk in chunks[start : end + 1])
        same = chunks[start].section == chunks[after].section
        assert not (bare and same) or chunks[after].end_char - chunks[start].start_char > parent_chars


def test_each_parent_comes_once_with_its_best_childs_score() -> None:
    chunks = {2: join("a.", "b.", "c.", sections="AAB"), 7: join("d.")}
    hits = [Hit(2, 1, 0.9), Hit(7, 0, 0.8), Hit(2, 0, 0.7), Hit(2, 2, 0.6)]
    assert vote_parents(hits, chunks, 4_000, query=1) == [
        Passage(2, 0, 2, 0, 4, 0.9, (1,), 1),
        Passage(7, 0, 1, 0, 2, 0.8, (1,), 0),
        Passage(2, 2, 3, 4, 6, 0.6, (1,), 2),
    ]


def test_a_voter_outside_the_given_chunks_is_an_error() -> None:
    with pytest.raises(ValueError, match="chunk 5 is not among"):
        vote_parents([Hit(2, 5, 0.9)], {2: join("a.")}, 4_000)


def place(document: int, start: int, end: int, score: float) -> Passage:
    return Passage(document, start, end, start, end, score)


def test_window_parent_takes_half_of_each_and_the_odd_one_is_a_window() -> None:
    windows = [place(document, 0, 2, 0.9 - document / 10) for document in range(5)]
    parents = [place(document, 1, 9, 0.85 - document / 10) for document in range(5)]
    mixed = mix_window_parent(windows, parents, 5)
    assert [(p.document, p.start_char) for p in mixed] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]


def test_window_parent_of_one_is_the_best_window() -> None:
    assert mix_window_parent([place(0, 2, 4, 0.9)], [place(0, 0, 9, 0.9)], 1) == [place(0, 2, 4, 0.9)]
    assert mix_window_parent([], [place(0, 0, 9, 0.9)], 1) == [place(0, 0, 9, 0.9)]


def test_a_window_inside_a_parent_gives_way_and_its_place_is_filled() -> None:
    windows = [place(0, 2, 4, 0.9), place(1, 2, 4, 0.8), place(2, 2, 4, 0.7)]
    parents = [place(0, 0, 9, 0.9), place(1, 0, 9, 0.8)]
    assert mix_window_parent(windows, parents, 2) == [place(0, 0, 9, 0.9), place(1, 2, 4, 0.8)]
    assert mix_window_parent(windows, parents, 4) == [place(0, 0, 9, 0.9), place(1, 0, 9, 0.8), place(2, 2, 4, 0.7)]


PLACES = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(1, 4), st.sampled_from([0.2, 0.5, 0.9])), max_size=7
).map(lambda rows: sorted((place(d, a, a + n, s) for d, a, n, s in rows), key=lambda p: -p.score))


@given(PLACES, PLACES, st.integers(1, 8))
def test_mixed_passages_are_best_first_never_nested_and_as_many_as_there_can_be(
    windows: list[Passage], parents: list[Passage], k: int
) -> None:
    mixed = mix_window_parent(windows, parents, k)
    assert len(mixed) <= k
    assert bool(mixed) == bool(windows or parents)
    assert [p.score for p in mixed] == sorted((p.score for p in mixed), reverse=True)

    def inside(inner: Passage, outer: Passage) -> bool:
        chars = range(outer.start_char, outer.end_char + 1)
        return inner.document == outer.document and inner.start_char in chars and inner.end_char in chars

    assert not any(a is not b and inside(a, b) for a in mixed for b in mixed)
    if len(mixed) < k:
        assert all(any(inside(p, kept) for kept in mixed) for p in [*windows, *parents])


# The naive average


def make_blocks(documents: list[int], numbers: list[int]) -> Blocks:
    """Blocks of one chunk of 10 characters each."""
    n = len(documents)
    ords = np.array(numbers, dtype=np.int64)
    ones = np.ones(n, np.int64)
    return pool_blocks(
        np.array(documents, dtype=np.int64), ords, ords, ords * 10, ones * 10,
        np.ones((n, 1), np.float32), np.zeros((n, 0), np.int32), ones,
    )  # fmt: skip


def test_a_value_below_a_fifth_counts_a_tenth() -> None:
    assert weigh_values(np.array([0.19, 0.2, 0.21, -0.3])).tolist() == pytest.approx([0.019, 0.2, 0.21, -0.03])


def test_segments_come_in_document_order_with_their_totals() -> None:
    blocks = make_blocks([4, 4, 4, 4, 2, 2], [0, 1, 2, 3, 0, 1])
    found = select_average(blocks, np.array([0.3, 0.0, 0.0, 0.0, 0.9, 0.1]), AverageParams(), query=1)
    assert [(p.document, p.start_chunk, p.end_chunk, p.start_char, p.end_char) for p in found] == [
        (4, 0, 1, 0, 10), (2, 0, 2, 0, 20)
    ]  # fmt: skip
    assert [p.score for p in found] == pytest.approx([0.3, 0.91])
    assert found[0].queries == (1,)


def test_a_segment_bridges_blocks_while_its_mean_is_high_enough() -> None:
    ends = np.full(5, 5)
    values = np.array([0.5, 0.0, 0.5, 0.0, 0.0])
    assert choose_average_runs(values, ends, AverageParams(minimum_value=0.25)) == [(0, 3)]
    assert choose_average_runs(values, ends, AverageParams(minimum_value=0.5)) == [(0, 1), (2, 3)]


def test_a_segment_never_leaves_its_stretch_of_known_blocks() -> None:
    blocks = make_blocks([0, 0, 0, 1], [0, 1, 3, 0])
    assert find_block_stretches(blocks).tolist() == [2, 2, 3, 4]
    found = select_average(blocks, np.full(4, 0.5), AverageParams())
    assert [(p.document, p.start_chunk, p.end_chunk) for p in found] == [(0, 0, 2), (0, 3, 4), (1, 0, 1)]


def test_lengths_are_bounded_for_each_segment_and_in_all() -> None:
    values, ends = np.full(60, 0.5), np.full(60, 60)
    assert choose_average_runs(values, ends, AverageParams()) == [(0, 20), (20, 30)]


GRID = st.lists(st.sampled_from([-0.25, 0.0, 0.125, 0.25, 0.25, 0.5, 1.0]), max_size=12)


@given(GRID, st.data(), st.integers(1, 6), st.integers(1, 9), st.sampled_from([0.0, 0.125, 0.25, 0.5]))
@settings(max_examples=300)
def test_the_average_chooses_as_the_naive_rule_does_round_by_round(
    values: list[float], data: st.DataObject, max_length: int, overall: int, minimum: float
) -> None:
    breaks = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    documents = list(itertools.accumulate(map(int, breaks)))
    blocks = make_blocks(documents, list(range(len(values))))
    ends = find_block_stretches(blocks)
    assert ends.tolist() == [max(i for i, other in enumerate(documents) if other == one) + 1 for one in documents]
    params = AverageParams(max_length=max_length, overall_max_length=overall, minimum_value=minimum)
    expected = naive.average_runs(values, ends.tolist(), max_length, overall, minimum)
    assert choose_average_runs(np.array(values), ends, params) == expected


def test_quality_is_the_share_of_letters_and_digits_in_proper_sentences() -> None:
    assert measure_quality(["Oil it 2 times. ", "no end", "Yes! no end", "“好的。”"]).tolist() == pytest.approx(
        [11 / 12, 0, 3 / 9, 2 / 5]
    )


def test_density_is_the_share_of_idf_covered_per_hundred_characters() -> None:
    counts, chars = np.array([[3, 0], [1, 1], [1, 1], [0, 0]]), np.array([400, 200, 20, 20])
    assert measure_density(counts, chars, np.array([3.0, 1.0])).tolist() == [0.1875, 0.5, 1.0, 0.0]
    assert measure_density(np.zeros((1, 0), int), np.array([100]), np.zeros(0)).tolist() == [0.0]


@given(st.text(max_size=80), st.integers(0, 5), st.integers(1, 2000))
def test_quality_and_density_lie_between_zero_and_one(text: str, count: int, chars: int) -> None:
    assert 0 <= measure_quality([text])[0] <= 1
    assert 0 <= measure_density(np.array([[count, 1]]), np.array([chars]), np.array([0.7, 0.1]))[0] <= 1


def test_composite_values_are_half_similarity_and_the_rest_quality_and_density() -> None:
    assert compose_values(np.array([0.8, 0.0]), np.array([0.0, 1.0]), np.array([0.0, 1.0])).tolist() == [0.4, 0.5]


GROW = AverageParams(reconstruct="grow")


def test_regions_grow_while_the_neighbour_keeps_half_of_the_peak() -> None:
    values = np.array([0.3, 0.5, 0.45, 0.9, 0.44, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert grow_regions(values, np.full(10, 10), GROW) == [(1, 4)]
    blocks = make_blocks([0] * 10, list(range(10)))
    assert [(p.start_chunk, p.end_chunk) for p in select_average(blocks, values, GROW)] == [(1, 4)]


def test_regions_that_come_to_overlap_are_joined() -> None:
    values = np.concatenate([[0.9, 0.5, 0.5, 0.8], np.full(16, 0.01)])
    assert grow_regions(values, np.full(20, 20), GROW) == [(0, 4)]


def test_regions_stay_in_their_stretch() -> None:
    values = np.concatenate([[0.8, 0.8, 0.8], np.full(17, 0.01)])
    assert grow_regions(values, np.array([2, 2, *[20] * 18]), GROW) == [(0, 2), (2, 3)]


def test_regions_keep_to_the_limits() -> None:
    values, ends = np.array([0.6, 0.9, 0.8, 0.7] + [0.01] * 4), np.full(8, 8)
    assert grow_regions(values, ends, AverageParams(reconstruct="grow", max_length=2)) == [(1, 3)]
    two = np.array([0.9, 0.8, 0.0, 0.95] + [0.0] * 6)
    assert grow_regions(two, np.full(10, 10), AverageParams(reconstruct="grow", overall_max_length=1)) == [(3, 4)]
    assert grow_regions(np.full(3, 0.1), np.full(3, 3), GROW) == []
    assert grow_regions(np.zeros(0), np.zeros(0, int), GROW) == []


@given(GRID, st.integers(1, 4), st.integers(1, 8))
def test_grown_regions_are_disjoint_and_within_all_limits(values: list[float], most: int, overall: int) -> None:
    ends = np.full(len(values), len(values))
    params = AverageParams(reconstruct="grow", max_length=most, overall_max_length=overall)
    found = grow_regions(np.array(values), ends, params)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(found))
    assert all(end - start <= most and sum(values[start:end]) / (end - start) >= 0.2 for start, end in found)
    assert sum(end - start for start, end in found) <= overall


@pytest.mark.parametrize("reconstruct", ["runs", "grow"])
def test_no_blocks_give_no_segments(reconstruct: str) -> None:
    assert select_average(make_blocks([], []), np.zeros(0), AverageParams(reconstruct=reconstruct)) == []


# The table of methods


def test_the_table_names_the_eight_methods() -> None:
    assert list(METHODS) == [
        "rse", "dsrag", "top-k", "sentence-window", "parent", "hierarchical", "window-parent", "average"
    ]  # fmt: skip
    assert [name for name, method in METHODS.items() if method.presets] == ["rse", "dsrag"]
    assert [name for name, method in METHODS.items() if method.takes_retriever] == [
        "top-k", "sentence-window", "parent", "window-parent"
    ]  # fmt: skip
    for method in METHODS.values():
        assert "\n" not in method.does + method.suits
        assert method.does.endswith(".")


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_every_method_can_be_set_as_a_text(name: str) -> None:
    params = choose_method_params(name, None, {})
    assert choose_method_params(name, None, {key: str(value) for key, value in params.to_dict().items()}) == params


def test_defaults_are_those_of_the_table() -> None:
    assert {
        name: choose_method_params(name, None, {}).to_dict()
        for name, method in METHODS.items()
        if not method.presets
    } == {
        "top-k": {"k": 5},
        "sentence-window": {"k": 5, "window": 5},
        "parent": {"k": 5, "parent_chars": 4000},
        "hierarchical": {"documents": 10},
        "window-parent": {"k": 5, "window": 5, "parent_chars": 4000},
        "average": {
            "max_length": 20, "overall_max_length": 30, "minimum_value": 0.2,
            "valuation": "similarity", "reconstruct": "runs",
        },
    }  # fmt: skip


def test_a_preset_is_the_base_of_its_overrides_and_balanced_the_default() -> None:
    assert choose_method_params("rse", "precision", {"segment_cost": 9}).to_dict()["max_chars"] == 2000
    assert choose_method_params("dsrag", None, {"max_length": 4}).to_dict()["minimum_value"] == 0.5
    assert choose_method_params("dsrag", "find_all", {}).to_dict()["max_length"] == 40


@pytest.mark.parametrize(
    ("method", "preset", "overrides", "message"),
    [
        ("topk", None, {}, "unknown method 'topk'; did you mean 'top-k'?"),
        ("top-k", "balanced", {}, "the method top-k has no presets; leave --preset out, or change it with --set"),
        ("dsrag", "recall", {}, "unknown preset 'recall' of method dsrag: use precision, balanced, find_all"),
        ("parent", None, {"window": 1}, "unknown parameter 'window' of method parent; it belongs to sentence-window, window-parent"),
        ("parent", None, {"parent_char": 1}, "unknown parameter 'parent_char' of method parent; did you mean 'parent_chars'?"),
        ("top-k", None, {"segment_costs": 1}, "unknown parameter 'segment_costs' of method top-k; did you mean 'segment_cost'?"),
        ("top-k", None, {"xyzzy": 1}, "unknown parameter 'xyzzy' of method top-k; it has k"),
        ("top-k", None, {"k": "2.5"}, "k must be a whole number, not '2.5'"),
        ("top-k", None, {"k": 2.5}, "k must be a whole number, not 2.5"),
        ("top-k", None, {"k": True}, "k must be a whole number, not True"),
        ("average", None, {"minimum_value": "high"}, "minimum_value must be a number, not 'high'"),
        ("average", None, {"minimum_value": "nan"}, "minimum_value must be a number from 0 to 1, not nan"),
        ("dsrag", None, {"chunk_length_adjustment": "maybe"}, "chunk_length_adjustment must be true or false, not 'maybe'"),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_refused_with_the_way_out(
    method: str, preset: str | None, overrides: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError) as error:
        choose_method_params(method, preset, overrides)
    assert str(error.value) == message


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(UsageError) as error:
        choose_method_params("average", None, {"k": 1, "max_length": "x", "minimum_value": 2, "valuation": "best"})
    assert str(error.value) == (
        "unknown parameter 'k' of method average; it belongs to top-k, sentence-window, parent, window-parent; "
        "max_length must be a whole number, not 'x'; minimum_value must be a number from 0 to 1, not 2.0; "
        "valuation must be similarity or composite, not 'best'"
    )


def test_parameters_out_of_range_cannot_be_made() -> None:
    with pytest.raises(UsageError, match="k must be a whole number of at least 1, not 0"):
        TopKParams(k=0)
    with pytest.raises(UsageError, match="window must be a whole number of at least 0, not -1"):
        SentenceWindowParams(window=-1)
