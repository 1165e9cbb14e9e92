"""Chosen passages grow, are completed, joined, rid of repeats, scored, ordered and cut, each step by itself."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rse_cli.adapters.readers import read_document
from rse_cli.core.annotation import choose_title, make_chunks
from rse_cli.core.models import Chunk, Passage
from rse_cli.core.ranking import (
    CompositeWeights,
    compute_fallback,
    keep_by_score,
    order_by_mmr,
    order_passages,
    score_composite,
)
from rse_cli.core.refine import complete_faq, cut_passages, expand_short, join_passages, limit_passages
from rse_cli.core.similar_text import collect_term_set, drop_duplicates, find_tables, fold_spaces, measure_overlap
from rse_cli.errors import UsageError
from tests import naive

ChunkMap = dict[tuple[int, int], Chunk]

# Few distinct scores make ties common, so that they are tested and not avoided.
SCORES = st.sampled_from([-1.0, 0.0, 0.5, 0.5, 1.0, 2.0])


def tile(lengths: list[int], document: int = 0) -> ChunkMap:
    """Chunks of the given lengths."""
    ends = list(itertools.accumulate(lengths))
    return {
        (document, at): Chunk(at, end - length, end, "x" * length)
        for at, (length, end) in enumerate(zip(lengths, ends, strict=True))
    }


def passage(start: int, end: int, score: float = 1.0, document: int = 0, **more: object) -> Passage:
    """A passage by its characters, chunks of 10 characters each."""
    return Passage(document, start // 10, -(-end // 10), start, end, score, **more)  # type: ignore[arg-type]


@st.composite
def tiled_passages(draw: st.DrawFn) -> tuple[list[Passage], ChunkMap]:
    """Any passages of two documents, which may begin and end inside chunks and overlap, with all chunks."""
    chunks: ChunkMap = {}
    passages = []
    for document in range(2):
        lengths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=12))
        chunks |= tile(lengths, document)
        for _ in range(draw(st.integers(0, 4))):
            start = draw(st.integers(0, sum(lengths) - 1))
            end = draw(st.integers(start + 1, sum(lengths)))
            touched = [
                ord_ for (of, ord_), c in chunks.items() if of == document and c.start_char < end and start < c.end_char
            ]
            queries = tuple(sorted(draw(st.sets(st.integers(0, 2), min_size=1))))
            hit = draw(st.sampled_from([None, *touched]))
            passages.append(Passage(document, min(touched), max(touched) + 1, start, end, draw(SCORES), queries, hit))
    return draw(st.permutations(passages)), chunks


def assert_sound(one: Passage, chunks: ChunkMap) -> None:
    """The passage's chunks are exactly those that its characters touch."""
    first, last = chunks[one.document, one.start_chunk], chunks[one.document, one.end_chunk - 1]
    assert first.start_char <= one.start_char < first.end_char
    assert last.start_char < one.end_char <= last.end_char


def index_file(name: str, text: str) -> tuple[ChunkMap, str]:
    """Chunks as an ingest makes them, and the document's text."""
    document = read_document(Path(name), text.encode())[1]
    chunks = make_chunks(document, choose_title(document, Path(name).stem))
    return {(0, chunk.ord): chunk for chunk in chunks}, document.text


def find_passage(chunks: ChunkMap, text: str, quote: str, score: float = 1.0) -> Passage:
    """The passage that is exactly `quote`."""
    start = text.index(quote)
    end = start + len(quote)
    touched = [ord_ for (_, ord_), chunk in chunks.items() if chunk.start_char < end and start < chunk.end_char]
    return Passage(0, min(touched), max(touched) + 1, start, end, score)


# Growing


def test_a_short_passage_grows_by_one_chunk_before_and_one_after_in_turn_until_it_is_long_enough() -> None:
    chunks = tile([100] * 9)
    [grown] = expand_short([Passage(0, 4, 5, 400, 500, 1.0)], chunks)
    assert (grown.start_chunk, grown.end_chunk, grown.start_char, grown.end_char) == (2, 6, 200, 600)


def test_a_passage_at_the_start_of_its_document_grows_only_after_itself() -> None:
    [grown] = expand_short([Passage(0, 0, 1, 0, 100, 1.0)], tile([100] * 9))
    assert (grown.start_char, grown.end_char) == (0, 400)


def test_a_passage_at_the_end_of_its_document_grows_only_before_itself() -> None:
    [grown] = expand_short([Passage(0, 8, 9, 800, 900, 1.0)], tile([100] * 9))
    assert (grown.start_char, grown.end_char) == (500, 900)


def test_a_whole_document_that_is_short_is_the_passage() -> None:
    [grown] = expand_short([Passage(0, 1, 2, 100, 200, 1.0)], tile([100] * 3))
    assert (grown.start_char, grown.end_char) == (0, 300)


def test_a_neighbour_that_would_lead_above_the_most_is_left_out_and_the_other_side_goes_on() -> None:
    [grown] = expand_short([Passage(0, 1, 2, 800, 900, 1.0)], tile([800, 100, 100, 100, 100]))
    assert (grown.start_char, grown.end_char) == (800, 1200)


def test_a_passage_inside_a_chunk_grows_first_to_the_ends_of_that_chunk() -> None:
    [grown] = expand_short([Passage(0, 1, 2, 140, 160, 1.0)], tile([100] * 3), least=60, most=100)
    assert (grown.start_char, grown.end_char, grown.start_chunk, grown.end_chunk) == (100, 160, 1, 2)
    [grown] = expand_short([Passage(0, 1, 2, 140, 160, 1.0)], tile([100] * 3), least=61, most=100)
    assert (grown.start_char, grown.end_char, grown.start_chunk, grown.end_chunk) == (100, 200, 1, 2)


def test_a_passage_of_350_characters_stays_as_it_is() -> None:
    one = Passage(0, 1, 2, 100, 450, 1.0)
    assert expand_short([one], tile([100, 350, 100])) == (one,)


def test_growing_to_more_than_the_most_is_refused() -> None:
    with pytest.raises(ValueError, match="from 900 to at most 850"):
        expand_short([], {}, least=900)


@given(tiled_passages(), st.integers(1, 100), st.integers(0, 100))
def test_grown_passages_keep_what_they_had_and_never_exceed_the_most(
    drawn: tuple[list[Passage], ChunkMap], least: int, more: int
) -> None:
    passages, chunks = drawn
    most = least + more
    for before, after in zip(passages, expand_short(passages, chunks, least, most), strict=True):
        assert_sound(after, chunks)
        assert after.start_char <= before.start_char < before.end_char <= after.end_char
        assert (after.score, after.queries, after.hit) == (before.score, before.queries, before.hit)
        length = after.end_char - after.start_char
        assert after == before or length <= most
        if before.end_char - before.start_char >= least:
            assert after == before
        elif length < least:
            first, last = chunks[after.document, after.start_chunk], chunks[after.document, after.end_chunk - 1]
            back, on = after.start_char - first.start_char, last.end_char - after.end_char
            previous = chunks.get((after.document, after.start_chunk - 1))
            following = chunks.get((after.document, after.end_chunk))
            back = back or (len(previous.text) if previous else most)
            on = on or (len(following.text) if following else most)
            assert length + back > most
            assert length + on > most


@given(tiled_passages(), st.integers(2, 100))
def test_without_its_last_piece_a_grown_passage_would_be_too_short(
    drawn: tuple[list[Passage], ChunkMap], least: int
) -> None:
    passages, chunks = drawn
    for before, after in zip(passages, expand_short(passages, chunks, least, 10_000), strict=True):
        if after == before:
            continue
        first, last = chunks[after.document, after.start_chunk], chunks[after.document, after.end_chunk - 1]
        pieces = [
            first.end_char - after.start_char if after.start_char < before.start_char else 0,
            after.end_char - last.start_char if after.end_char > before.end_char else 0,
        ]
        assert after.end_char - after.start_char - max(pieces) < least


# Questions and their answers

FAQ = """# Questions

### Is my place windy enough?

You need at least four metres per second as a yearly mean at the height of the hub. Trees that lean are a good sign.

A measurement of three months with a logger is better.

#### The logger

We lend it for sixty euros and send you the evaluation, with a short letter that says what we think of the place.

### Can it stand on my roof?

No. We have never sold one for a roof.

## Prices

A turbine costs fourteen thousand euros.
"""


def test_a_question_that_is_a_heading_is_completed_to_the_end_of_its_section_with_subsections() -> None:
    chunks, text = index_file("faq.md", FAQ)
    asked = "### Is my place windy enough?\n\nYou need at least four metres per second as a yearly mean"
    [done] = complete_faq([find_passage(chunks, text, asked)], chunks)
    assert text[done.start_char : done.end_char] == text[text.index(asked) : text.index("### Can it")]
    assert_sound(done, chunks)


def test_the_answer_to_the_last_question_of_a_section_ends_with_the_section() -> None:
    chunks, text = index_file("faq.md", FAQ)
    [done] = complete_faq([find_passage(chunks, text, "### Can it stand on my roof?")], chunks)
    assert text[done.start_char : done.end_char] == (
        "### Can it stand on my roof?\n\nNo. We have never sold one for a roof.\n\n"
    )


def test_a_passage_without_a_question_stays_as_it_is() -> None:
    chunks, text = index_file("faq.md", FAQ)
    one = find_passage(chunks, text, "A measurement of three months with a logger is better.")
    assert complete_faq([one, replace(one, score=9.0)], chunks) == (one, replace(one, score=9.0))


def test_half_a_question_is_none() -> None:
    chunks, text = index_file("faq.md", FAQ)
    one = find_passage(chunks, text, "place windy enough?\n\nYou need")
    assert complete_faq([one, replace(one, score=9.0)], chunks)[0] == one


@pytest.mark.parametrize(
    ("name", "text", "asked", "whole"),
    [
        (
            "a.txt",
            "Q: How long does it take?\nA: Two days, in winter four.\n\nQ: Who pays?\nA: You.\n",
            "Q: How long does it take?",
            "Q: How long does it take?\nA: Two days, in winter four.\n\n",
        ),
        (
            "a.txt",
            "Question: the return period\nAnswer: Thirty days.\nQuestion: the price\nAnswer: Five euros.\n",
            "Question: the return period",
            "Question: the return period\nAnswer: Thirty days.\n",
        ),
        ("a.txt", "**Q:** On sale? **A:** Yes.\n**Q:** Sold?\n", "**Q:** On sale?", "**Q:** On sale? **A:** Yes.\n"),
        (
            "a.txt",
            "Q: Is it loud?\nA: Listen for yourself.\nWhy?\nNobody believes figures.\nQ: Is it dear?\n",
            "Q: Is it loud?",
            "Q: Is it loud?\nA: Listen for yourself.\nWhy?\nNobody believes figures.\n",
        ),
        ("a.txt", "问：多久能到？\n答：两天。\n问：可以自取吗？\n答：可以。\n", "问：多久能到？", "问：多久能到？\n答：两天。\n"),
        ("a.txt", "多久能到？\n\n两天。\n\n可以自取吗？\n\n可以。\n", "多久能到？", "多久能到？\n\n两天。\n\n"),
        (
            "a.txt",
            "Who may rent it?\nWhoever is of age.\n\nWho may not?\nNobody else.\n",
            "Who may rent it?",
            "Who may rent it?\nWhoever is of age.\n\n",
        ),
        (
            "a.md",
            "**Is it safe?**\n\nYes.\n\n**Terms**\n\nTo be read.\n",
            "**Is it safe?**",
            "**Is it safe?**\n\nYes.\n\n",
        ),
        ("a.txt", "## Is it safe?\nYes.\n### How\nSo.\n## Terms\n", "## Is it safe?", "## Is it safe?\nYes.\n### How\nSo.\n"),
        (
            "a.md",
            "Safe?\n=====\n\n```\n# no heading\n```\n\nYes.\n\n# Terms\n\nx\n",
            "Safe?",
            "Safe?\n=====\n\n```\n# no heading\n```\n\nYes.\n\n",
        ),
        ("a.yaml", "- question: How long?\n  answer: Two days\n- question: Who\n  answer: Ann\n", "- question: How long?",
         "- question: How long?\n  answer: Two days\n"),
        (
            "a.html",
            "<h1>Help</h1><h2>Who are you?</h2><p>A shop.</p><h3>Since when</h3><p>1901.</p><h2>Terms</h2><p>x</p>",
            "Who are you?",
            "Who are you?\n\nA shop.\n\nSince when\n\n1901.\n\n",
        ),
        ("a.csv", "no,ask,say\n1,Who pays?,\"You,\nin cash\"\n2,When?,Now\n", "1,Who pays?,", "1,Who pays?,\"You,\nin cash\"\n"),
        ("a.csv", "no,question,answer\n1,Return period,Thirty days\n2,Price,Five\n", "1,Return period,",
         "1,Return period,Thirty days\n"),
        ("a.md", "| Ask | Say |\n|---|---|\n| How long? | Two days |\n| Who? | Ann |\n", "| How long? |",
         "| How long? | Two days |\n"),
        ("a.jsonl", '{"question": "How long?", "answer": "Two"}\n{"question": "Who?", "answer": "Ann"}\n',
         '{"question": "How long?"', '{"question": "How long?", "answer": "Two"}\n'),
    ],
)  # fmt: skip
def test_a_question_of_any_kind_is_completed_with_its_own_answer_only(
    name: str, text: str, asked: str, whole: str
) -> None:
    chunks, text = index_file(name, text)
    one = find_passage(chunks, text, asked)
    done, _ = complete_faq([one, Passage(1, 0, 1, 0, 5, 10.0)], chunks)
    assert text[done.start_char : done.end_char] == whole
    assert done.score == pytest.approx(1.2)
    assert_sound(done, chunks)


@pytest.mark.parametrize(
    "text",
    [
        "Q1: Net sales rose by five per cent.\n\nMore text follows here.\n",
        "He went on to ask his friends, and all of them asked themselves,\nwas it ever so?\nThey never knew.\n",
        "This is an essay. It wonders. What is it all about?\nNobody can tell.\n",
        "pattern = compile('(a,b)*?')\nother = 1\n",
        "is_open = 1 = 2 ?\nother\n",
        "???\n\nMore.\n",
        "Can you tell me?",
    ],
)
def test_what_only_looks_like_a_question_or_has_no_answer_changes_nothing(text: str) -> None:
    chunks, text = index_file("a.txt", text)
    passages = [find_passage(chunks, text, text.split("\n\n")[0]), Passage(1, 0, 1, 0, 5, 10.0)]
    assert complete_faq(passages, chunks) == tuple(passages)


def test_an_answer_is_completed_by_at_most_two_thousand_characters_in_whole_chunks() -> None:
    text = "Why is it so?\n\n" + "This is one of the many reasons that there are for it. " * 100
    chunks, text = index_file("a.txt", text)
    [done] = complete_faq([find_passage(chunks, text, "Why is it so?")], chunks)
    assert 1_700 < done.end_char - len("Why is it so?") <= 2_000
    assert done.end_char == chunks[0, done.end_chunk - 1].end_char


def test_a_passage_that_goes_on_beyond_the_answer_is_not_shortened() -> None:
    chunks, text = index_file("faq.md", FAQ)
    one = find_passage(chunks, text, text[text.index("### Can it") :])
    [done] = complete_faq([one], chunks)
    assert (done.start_char, done.end_char, done.end_chunk) == (one.start_char, one.end_char, one.end_chunk)


def test_an_answer_ends_where_the_fetched_chunks_end() -> None:
    chunks, text = index_file("faq.md", FAQ)
    one = find_passage(chunks, text, "### Is my place windy enough?")
    fetched = {key: chunk for key, chunk in chunks.items() if key[1] < one.end_chunk}
    [done] = complete_faq([one], fetched)
    assert (done.end_chunk, done.end_char) == (one.end_chunk, chunks[0, one.end_chunk - 1].end_char)


def test_a_question_with_its_answer_is_raised_though_nothing_is_added() -> None:
    chunks, text = index_file("a.txt", "Q: Who pays?\nA: You.\n")
    done, _ = complete_faq([Passage(0, 0, 1, 0, len(text), 2.0), Passage(1, 0, 1, 0, 5, 10.0)], chunks, 1.5)
    assert (done.start_char, done.end_char, done.score) == (0, len(text), 3.0)


def test_no_score_is_raised_above_the_best_nor_lowered_where_it_is_negative() -> None:
    chunks, text = index_file("a.txt", "Q: Who pays?\nA: You.\n")
    one = Passage(0, 0, 1, 0, len(text), 2.0)
    assert [done.score for done in complete_faq([one, replace(one, document=1, score=2.1)], chunks)] == [2.1, 2.1]
    assert [done.score for done in complete_faq([replace(one, score=-2.0), one], chunks)] == [-2.0, 2.0]


def test_a_boost_that_lowers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        complete_faq([], {}, 0.9)


LINES = st.sampled_from(
    [
        "Q: Who?",
        "A: Ann.",
        "Why so?",
        "## Is it?",
        "# Part",
        "",
        "| a? | b |",
        "问：多久？",
        "Some prose that goes on. " * 9,
    ]
)


@given(st.lists(LINES, min_size=1, max_size=14).map("\n".join), st.data(), st.sampled_from(["a.md", "a.txt"]))
@settings(max_examples=150)
def test_completing_only_adds_after_the_end_and_is_done_at_once(text: str, data: st.DataObject, name: str) -> None:
    chunks, text = index_file(name, "Some words.\n" + text)
    start = data.draw(st.integers(0, len(chunks) - 1))
    end = data.draw(st.integers(start + 1, len(chunks)))
    one = Passage(0, start, end, chunks[0, start].start_char, chunks[0, end - 1].end_char, 1.0)
    [done] = complete_faq([one], chunks)
    assert_sound(done, chunks)
    assert done.start_char == one.start_char
    assert one.end_char <= done.end_char <= one.end_char + 2_000
    assert done.score == 1.0


# Joining


def test_passages_that_touch_or_overlap_become_one_with_the_best_score_and_all_queries() -> None:
    passages = [
        passage(40, 60, 1.0, queries=(0,), hit=4),
        passage(0, 20, 2.0, queries=(2,)),
        passage(60, 90, 3.0, queries=(1,), hit=7),
        passage(55, 65, 0.5, queries=(0,)),
    ]
    assert join_passages(passages) == (
        passage(0, 20, 2.0, queries=(2,)),
        Passage(0, 4, 9, 40, 90, 3.0, (0, 1), hit=7),
    )


def test_passages_of_different_documents_or_with_a_gap_stay_apart() -> None:
    passages = [passage(10, 20), passage(21, 30), passage(20, 21, document=1)]
    assert join_passages(passages) == tuple(passages)


@given(tiled_passages())
@example(([], {}))
def test_joining_keeps_every_character_leaves_no_two_in_touch_and_is_idempotent(
    drawn: tuple[list[Passage], ChunkMap],
) -> None:
    passages, chunks = drawn
    joined = join_passages(passages)
    spans = [(one.document, one.start_char, one.end_char) for one in joined]
    assert len(spans) == len(set(spans))
    assert set(spans) == naive.joined_stretches([(one.document, one.start_char, one.end_char) for one in passages])
    assert join_passages(joined) == joined
    places = []
    for one in joined:
        assert_sound(one, chunks)
        members = [
            at
            for at, each in enumerate(passages)
            if each.document == one.document and one.start_char <= each.start_char < one.end_char
        ]
        best = min(members, key=lambda at: (-passages[at].score, at))
        places.append(best)
        assert (one.score, one.hit) == (passages[best].score, passages[best].hit)
        assert set(one.queries) == {query for at in members for query in passages[at].queries}
    assert places == sorted(places)


# Duplicates

PUMP = "Oil the pump every week, clean its filter, and write both down in the log of the station."


def test_a_text_that_another_contains_is_dropped_whatever_its_white_space() -> None:
    passages = [passage(0, 9, 2.0), passage(0, 9, 1.0, document=1)]
    assert drop_duplicates(passages, ["Before all: " + PUMP, PUMP.replace(" ", "\n ")]) == (passages[0],)


def test_the_better_one_stays_also_where_it_is_the_shorter() -> None:
    passages = [passage(0, 9, 1.0), passage(0, 9, 2.0, document=1)]
    assert drop_duplicates(passages, ["Before all: " + PUMP, PUMP]) == (passages[1],)


def test_of_equals_the_first_stays_and_answers_the_queries_of_both() -> None:
    passages = [passage(0, 9, queries=(1,)), passage(0, 9, document=1, queries=(0,))]
    assert drop_duplicates(passages, [PUMP, PUMP]) == (passage(0, 9, queries=(0, 1)),)


def test_texts_with_most_words_in_common_are_duplicates_and_others_are_not() -> None:
    passages = [passage(0, 9, 2.0), passage(0, 9, 1.0, document=1), passage(0, 9, 0.5, document=2)]
    texts = [PUMP, PUMP.replace("week", "month"), "Oil the gate of the lock and clean the station."]
    assert [len(collect_term_set(text)) for text in texts] == [11, 11, 5]
    assert measure_overlap(*map(collect_term_set, texts[:2])) == 10 / 11
    assert measure_overlap(*map(collect_term_set, texts[::2])) == 0.6
    assert drop_duplicates(passages, texts) == (passages[0], passages[2])
    assert drop_duplicates(passages, texts, threshold=0.92) == tuple(passages)
    assert drop_duplicates(passages, texts, threshold=0.6) == (passages[0],)


def test_chinese_texts_are_compared_by_characters_and_pairs() -> None:
    passages = [passage(0, 9, 2.0), passage(0, 9, 1.0, document=1), passage(0, 9, 0.5, document=2)]
    texts = ["每周给水泵加油一次并清洗过滤器", "每周给水泵加油一次，并清洗过滤器！", "塔杆每年检查一次"]
    assert drop_duplicates(passages, texts) == (passages[0], passages[2])


def test_rows_of_one_table_are_no_duplicates_of_each_other() -> None:
    csv = "year,pumps,gates,price\n" + "".join(f"{year},11,12,13\n" for year in range(2001, 2021))
    chunks, text = index_file("a.csv", csv)
    passages = [find_passage(chunks, text, f"{year},11,12,13\n", year / 1_000) for year in (2010, 2015)]
    texts = ["2010 11 12 13", "2015 11 12 13"]
    tables = find_tables(passages, chunks)
    assert tables[0] == tables[1] is not None
    assert drop_duplicates(passages, texts, 0.7) == (passages[1],)
    assert drop_duplicates(passages, texts, 0.7, tables) == tuple(passages)
    elsewhere = [tables[0], (1, *tables[1][1:])]  # type: ignore[index]
    assert drop_duplicates(passages, texts, 0.7, elsewhere) == (passages[1],)


def test_rows_of_words_are_rows_by_the_names_of_their_columns() -> None:
    rows = "".join(f"| {name} | lifts the water of the pond |\n" for name in ("Old pump", "New pump", "Spare pump"))
    chunks, text = index_file(
        "a.md", f"# List\n\n| Name | Use |\n|---|---|\n{rows}\nMore of it is told elsewhere.\n\n## Next\n\nProse.\n"
    )
    passages = [find_passage(chunks, text, quote) for quote in ("| New pump", "| Spare pump", "Prose.")]
    assert find_tables(passages, chunks) == [(0, ("| Name | Use |",)), (0, ("| Name | Use |",)), None]


def test_a_file_of_rows_is_a_table_and_prose_with_commas_in_its_title_is_none() -> None:
    rows = "name\tuse\n" + "".join(f"pump {at}\tlifts the water of the pond\n" for at in range(9))
    chunks, text = index_file("a.tsv", rows)
    assert find_tables([find_passage(chunks, text, "pump 8")], chunks) == [(0, ("name use",))]
    chunks, text = index_file("a.txt", "Oil, water and gas\n\n" + "Of oil, water, and gas we tell much more. " * 9)
    assert find_tables([find_passage(chunks, text, "Of oil")], chunks) == [None]


def test_a_passage_of_rows_and_prose_or_of_chunks_that_were_not_fetched_is_no_row() -> None:
    chunks = {
        (0, 0): Chunk(0, 0, 5, "1 2 3", row_terms=("price",)),
        (0, 1): Chunk(1, 5, 9, "text"),
        (0, 2): Chunk(2, 9, 14, "1 2 3", row_terms=("size",)),
    }
    spans = [(0, 1), (0, 2), (2, 3), (2, 4)]
    passages = [Passage(0, start, end, start, end, 1.0) for start, end in spans]
    assert find_tables(passages, chunks) == [(0, ("price",)), None, (0, ("size",)), None]


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.1, float("nan")])
def test_an_overlap_outside_its_range_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="overlap of duplicates"):
        drop_duplicates([], [], threshold)


def test_a_text_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="one text"):
        drop_duplicates([passage(0, 9)], [])


WORDS = st.lists(st.sampled_from(["pump", "gate", "oil", "lock", "泵站"]), max_size=4).map(" ".join)


@given(st.lists(st.tuples(WORDS, SCORES), max_size=7), st.sampled_from([0.5, 0.85, 1.0]))
def test_what_is_kept_has_no_duplicates_what_is_dropped_has_a_better_one_and_it_is_idempotent(
    drawn: list[tuple[str, float]], threshold: float
) -> None:
    passages = [passage(0, 9, score, document=at) for at, (_, score) in enumerate(drawn)]
    texts = [text for text, _ in drawn]

    def is_same(one: Passage, other: Passage) -> bool:
        a, b = texts[one.document], texts[other.document]
        overlap = measure_overlap(collect_term_set(a), collect_term_set(b))
        return fold_spaces(a) in fold_spaces(b) or fold_spaces(b) in fold_spaces(a) or overlap >= threshold

    kept = drop_duplicates(passages, texts, threshold)
    assert set(kept) <= set(passages)
    assert [one.document for one in kept] == sorted(one.document for one in kept)
    assert not any(is_same(*pair) for pair in itertools.combinations(kept, 2))
    for dropped in set(passages) - set(kept):
        rank = (-dropped.score, dropped.document)
        assert any(is_same(dropped, one) and (-one.score, one.document) < rank for one in kept)
    assert drop_duplicates(kept, [texts[one.document] for one in kept], threshold) == kept


# Scores


def test_a_composite_score_is_the_weighted_sum_times_the_prior() -> None:
    passages = [passage(0, 100), passage(990, 999, document=1), passage(500, 504, document=2)]
    scored = score_composite(passages, [0.5, 0.9, 0.2], [10.0, 30.0, 15.0], [1.0, 0.0, 0.5])
    assert [one.score for one in scored] == pytest.approx(
        [
            (0.6 * 0.5 + 0.3 * 0.0 + 0.1 * 1.0) * 1.05,
            (0.6 * 0.9 + 0.3 * 1.0 + 0.1 * 0.0) * 1.01,
            (0.6 * 0.2 + 0.3 * 0.25 + 0.1 * 0.5) * (1 + 5 / 505),
        ]
    )


def test_the_base_is_normalised_per_query_and_the_best_of_several_counts() -> None:
    passages = [
        passage(0, 9, queries=(0,)),
        passage(0, 9, queries=(0, 1)),
        passage(0, 9, queries=(1,)),
        passage(0, 9, queries=(2,)),
    ]
    weights = CompositeWeights(weight_model=0, weight_base=1, weight_source=0, weight_prior=0)
    scored = score_composite(passages, [0.0] * 4, [1.0, 3.0, 5.0, 0.1], [1.0] * 4, weights)
    assert [one.score for one in scored] == [0.0, 1.0, 1.0, 1.0]


def test_sources_of_great_weight_raise_a_score_to_the_clamp_and_no_further() -> None:
    [one] = score_composite([passage(0, 9)], [0.5], [1.0], [50.0])
    assert one.score == 1.05


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10_000),
            st.integers(1, 5_000),
            st.floats(0, 1),
            st.floats(-1e9, 1e9),
            st.floats(0, 10),
            st.sets(st.integers(0, 2), min_size=1),
        ),
        max_size=8,
    ),
    st.floats(0, 1),
)
def test_composite_scores_lie_between_0_and_1_plus_the_prior(
    drawn: list[tuple[int, int, float, float, float, set[int]]], prior: float
) -> None:
    passages = [passage(start, start + length, queries=tuple(sorted(q))) for start, length, _, _, _, q in drawn]
    models, bases, sources = ([one[at] for one in drawn] for at in (2, 3, 4))
    scored = score_composite(passages, models, bases, sources, CompositeWeights(weight_prior=prior))
    assert all(0 <= one.score <= 1 + prior for one in scored)
    assert [replace(one, score=1.0) for one in scored] == passages


def test_weights_outside_their_range_are_refused_all_at_once() -> None:
    with pytest.raises(
        UsageError,
        match=r"^weight_base must be .* not -1; weight_source must be .* not nan; weight_prior must be at most 1",
    ):
        CompositeWeights(weight_base=-1, weight_source=float("nan"), weight_prior=1.5)


@pytest.mark.parametrize("models", [[], [0.5, 0.5], [float("nan")], [float("inf")]])
def test_a_part_without_one_finite_number_per_passage_is_refused(models: list[float]) -> None:
    with pytest.raises(ValueError, match="finite number"):
        score_composite([passage(0, 9)], models, [1.0], [1.0])


def test_passages_that_reach_the_least_score_are_kept() -> None:
    passages = [passage(0, 9, 0.5), passage(0, 9, 0.49, document=1), passage(0, 9, 0.9, document=2)]
    assert keep_by_score(passages, 0.5, fallback=True) == ((passages[0], passages[2]), False)


def test_when_none_reaches_it_those_near_it_are_kept_once_and_it_is_said() -> None:
    passages = [passage(0, 9, 0.5), passage(0, 9, 0.69, document=1), passage(0, 9, 0.7, document=2)]
    assert keep_by_score(passages, 1.0, fallback=True) == ((passages[2],), True)
    assert keep_by_score(passages, 1.0, fallback=False) == ((), False)


def test_the_lower_floor_is_never_below_0_3() -> None:
    assert compute_fallback(0.4) == 0.3
    assert keep_by_score([passage(0, 9, 0.29)], 0.4, fallback=True) == ((), False)
    assert keep_by_score([passage(0, 9, 0.3)], 0.4, fallback=True) == ((passage(0, 9, 0.3),), True)


# Order


def test_a_repeat_of_the_best_comes_after_something_new() -> None:
    passages = [passage(0, 9, score, document=at) for at, score in enumerate([3.0, 2.9, 1.5, 1.0])]
    texts = [PUMP, PUMP, "Open the gate of the lock at dawn.", "Count the fish."]
    assert [one.document for one in order_by_mmr(passages, texts, 0.55)] == [0, 2, 1, 3]
    assert [one.document for one in order_by_mmr(passages, texts, 0.0)] == [0, 2, 3, 1]
    assert order_by_mmr(passages, texts, 1.0) == tuple(passages)


@given(st.lists(st.tuples(WORDS, SCORES), max_size=7), st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]))
def test_mmr_is_what_its_definition_says(drawn: list[tuple[str, float]], trade_off: float) -> None:
    passages = [passage(0, 9, score, document=at) for at, (_, score) in enumerate(drawn)]
    texts = [text for text, _ in drawn]
    order = [one.document for one in order_by_mmr(passages, texts, trade_off)]
    assert order == naive.mmr_order([score for _, score in drawn], list(map(collect_term_set, texts)), trade_off)
    if trade_off == 1:
        assert order == sorted(range(len(drawn)), key=lambda at: -drawn[at][1])


@pytest.mark.parametrize("trade_off", [-0.1, 1.1, float("nan")])
def test_a_trade_off_outside_its_range_is_refused(trade_off: float) -> None:
    with pytest.raises(ValueError, match="trade-off"):
        order_by_mmr([], [], trade_off)


def test_passages_are_ordered_by_score_then_path_then_position() -> None:
    passages = [passage(50, 60, 1.0), passage(0, 9, 1.0), passage(0, 9, 1.0, document=1), passage(70, 80, 2.0)]
    ordered = order_passages(passages, {0: "b.md", 1: "a/z.md"})
    assert ordered == (passages[3], passages[2], passages[1], passages[0])


# Limits


def test_a_limit_keeps_the_first_in_the_order_given() -> None:
    passages = [passage(0, 9, 1.0), passage(20, 29, 3.0), passage(40, 49, 2.0)]
    assert limit_passages(passages, 2) == (passages[0], passages[1])
    assert limit_passages(passages, 9) == tuple(passages)
    assert limit_passages(passages, 0) == ()
    with pytest.raises(ValueError, match="limit"):
        limit_passages(passages, -1)


def test_the_passage_that_crosses_the_ceiling_is_cut_there_and_ends_with_the_chunk_that_it_still_touches() -> None:
    chunks = tile([10] * 9)
    passages = [passage(60, 90, hit=6), passage(0, 50, hit=4), passage(55, 60)]
    assert cut_passages(passages, 55, chunks) == (passages[0], Passage(0, 0, 3, 0, 25, 1.0, hit=None))
    assert cut_passages(passages, 50, chunks) == (passages[0], Passage(0, 0, 2, 0, 20, 1.0, hit=None))
    assert cut_passages(passages, 75, chunks) == (passages[0], Passage(0, 0, 5, 0, 45, 1.0, hit=4))
    assert cut_passages(passages, 30, chunks) == (passages[0],)
    assert cut_passages(passages, 29, chunks) == (Passage(0, 6, 9, 60, 89, 1.0, hit=6),)
    assert cut_passages(passages, 0, chunks) == ()
    assert cut_passages(passages, 85, {}) == tuple(passages)


def test_a_negative_ceiling_is_refused() -> None:
    with pytest.raises(ValueError, match="ceiling"):
        cut_passages([], -1, {})


@given(tiled_passages(), st.integers(0, 400))
def test_a_cut_answer_holds_exactly_the_ceiling_or_all_there_is(
    drawn: tuple[list[Passage], ChunkMap], max_chars: int
) -> None:
    passages, chunks = drawn
    kept = cut_passages(passages, max_chars, chunks)
    total = sum(one.end_char - one.start_char for one in passages)
    assert sum(one.end_char - one.start_char for one in kept) == min(total, max_chars)
    assert kept[:-1] == tuple(passages[: len(kept)])[:-1]
    for before, after in zip(passages, kept, strict=False):
        assert_sound(after, chunks)
        assert (after.document, after.start_char) == (before.document, before.start_char)
        assert after.hit is None or after.start_chunk <= after.hit < after.end_chunk
