"""An answer holds exact slices of the files, fits its ceiling, comes best first, and is empty rather than wrong."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rse_cli.adapters.readers import read_document
from rse_cli.core.params import RseParams, choose_params
from rse_cli.pipeline.preparation import attach_vectors, encode_missing, list_missing, prepare_file
from rse_cli.pipeline.query import Answer, Request, Segment, answer_request
from rse_cli.pipeline.retrieval import encode_queries
from rse_cli.ports import FileStamp, FoundFile
from tests.fake_encoder import DIMENSION, FakeEncoder
from tests.fake_store import FakeStore


def build(files: dict[str, str]) -> FakeStore:
    """Index files one by one in the order given."""
    store, encoder = FakeStore(DIMENSION), FakeEncoder()
    for path, text in files.items():
        found = FoundFile(path, Path(path), FileStamp(1, 1, 1))
        file = prepare_file(found, text.encode(), "reader/1", read_document, 300)
        vectors = encode_missing(list_missing([file], {}), encoder, 0.3, lambda _: None)
        store.replace([attach_vectors(file, vectors, DIMENSION)], [])
    return store


def ask(
    store: FakeStore, *texts: str, english_only: bool = True, params: RseParams | None = None, **options: Any
) -> Answer:
    """Ask without a floor of confidence, which was measured for a real model, unless one is given."""
    queries = encode_queries(texts, FakeEncoder(), english_only)
    options = {"min_confidence": 0.0} | options
    return answer_request(store.snapshot(), Request(queries, params or RseParams(), **options))


def describe(answer: Answer) -> tuple[Any, ...]:
    return answer.segments, answer.confidence, answer.nearest_miss, answer.n_candidates


NOTHING = ((), 0.0, None, 0)


def spans(answer: Answer) -> list[tuple[str, int, int]]:
    return [(one.path, one.start_chunk, one.end_chunk) for one in answer.segments]


def shown(answer: Answer) -> int:
    return sum(len(segment.text) for segment in answer.segments)


SUBJECTS = ("pump", "valve", "gear", "seal", "oil", "motor", "belt", "fuse")


def tell(subject: str, about: str = "It is described here in words that no other paragraph would use for it") -> str:
    return f"The {subject} matters. {about}, {subject} {subject}.\n\n"


MANUAL = "# Manual\n\n" + "".join(tell(subject) for subject in SUBJECTS)
GUIDE = "Guide to the mast\n\nClimb the mast only with a harness, and check the harness before you climb it.\n"
FILES = {"manual.md": MANUAL, "guide.txt": GUIDE}


def test_an_answer_is_the_chunk_that_fits_the_query_best() -> None:
    answer = ask(build(FILES), "harness for the mast")
    best = answer.segments[0]
    assert best.path == "guide.txt"
    assert best.text == GUIDE[best.start_char : best.end_char]
    assert "harness" in best.text


def test_a_segment_says_where_it_is() -> None:
    store = build({"a.md": "# Manual\n\n## Care\n\n" + tell("pump") + tell("valve")})
    (segment,) = ask(store, "valve", params=choose_params("precision", {"max_chars": 110})).segments
    text = "# Manual\n\n## Care\n\n" + tell("pump") + tell("valve")
    start = text.index("The valve")
    assert segment == Segment(
        path="a.md",
        title="Manual",
        section="Care",
        queries=(0,),
        score=segment.score,
        start_chunk=2,
        end_chunk=3,
        start_char=start,
        end_char=min(start + 110, len(text)),
        start_line=7,
        end_line=7,
        start_page=None,
        end_page=None,
        header="Manual › Care",
        columns="",
        summary=" ".join((tell("pump") + tell("valve")).split()),
        text=text[start : start + 110],
    )


# Documents of a few paragraphs about few subjects, with line ends of both kinds and files of one content, so that ties,
# bridges and cuts are common.
DOCUMENTS = st.dictionaries(
    st.sampled_from(["a.md", "b.md", "c.txt", "d/a.md", "e.txt"]),
    st.tuples(st.lists(st.sampled_from(SUBJECTS), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"])).map(
        lambda made: made[1].join(["# Title", "", *"".join(map(tell, made[0])).split("\n")])
    ),
    min_size=1,
)
QUERIES = st.lists(st.sampled_from([*SUBJECTS, "pump valve", "words for it", "unknown", "?!"]), min_size=1, max_size=3)
PARAMS = st.builds(
    lambda preset, max_chars: choose_params(preset, {"max_chars": max_chars}),
    st.sampled_from(["precision", "balanced", "find_all"]),
    st.sampled_from([1, 7, 60, 150, 400, 1_000, 4_000]),
)


def number_line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


@given(DOCUMENTS, QUERIES, PARAMS, st.booleans())
@settings(deadline=None, max_examples=150)
def test_every_answer_keeps_the_contract(
    files: dict[str, str], queries: list[str], params: RseParams, fill: bool
) -> None:
    answer = ask(build(files), *queries, params=params, fill=fill)
    assert answer.segments
    for one in answer.segments:
        text = files[one.path]
        assert one.text == text[one.start_char : one.end_char]
        assert 0 <= one.start_chunk < one.end_chunk
        assert set(one.queries) <= set(range(len(queries)))
        assert one.queries
        if one.text.strip():
            first = one.start_char + len(one.text) - len(one.text.lstrip())
            assert one.start_line == number_line(text, first)
            assert one.end_line == number_line(text, one.start_char + len(one.text.rstrip()) - 1)
    total = shown(answer)
    assert total <= params.max_chars
    assert not fill or total == min(params.max_chars, sum(map(len, files.values())))
    order = [(-one.score, one.path, one.start_char) for one in answer.segments]
    assert order == sorted(order)
    places = sorted((one.path, one.start_char, one.end_char) for one in answer.segments)
    assert all(a[0] != b[0] or a[2] < b[1] for a, b in itertools.pairwise(places))


@given(DOCUMENTS, QUERIES, PARAMS, st.booleans(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_the_order_in_which_files_were_indexed_changes_nothing(
    files: dict[str, str], queries: list[str], params: RseParams, fill: bool, random: Any
) -> None:
    paths = list(files)
    random.shuffle(paths)
    first = ask(build(files), *queries, params=params, fill=fill)
    second = ask(build({path: files[path] for path in paths}), *queries, params=params, fill=fill)
    assert describe(first) == describe(second)


@pytest.mark.parametrize("n", [3, 7, 13])
def test_equal_segments_come_by_path(n: int) -> None:
    names = [f"{number:02}.md" for number in range(n)]
    store = build(dict.fromkeys(reversed(names), MANUAL))
    found = [one.path for one in ask(store, "seal", params=RseParams(max_chars=100_000)).segments]
    assert found == sorted(found)
    assert len({one.score for one in ask(store, "seal").segments}) == 1


def test_adjacent_chunks_that_fit_become_one_segment() -> None:
    text = "".join(tell(subject) for subject in ("gear", "pump", "pump", "pump", "oil"))
    (segment,) = ask(build({"a.txt": text}), "pump", params=choose_params("precision", {})).segments
    assert (segment.start_chunk, segment.end_chunk) == (1, 4)
    assert segment.text == "".join([tell("pump")] * 3)


def test_limit_keeps_the_best_segments() -> None:
    store = build({f"{number}.md": tell("pump") + tell(SUBJECTS[number]) for number in range(5)})
    whole = ask(store, "pump")
    assert len(whole.segments) > 2
    assert ask(store, "pump", limit=2).segments == whole.segments[:2]
    assert ask(store, "pump", limit=99).segments == whole.segments


def test_a_filter_chooses_documents_before_ranking() -> None:
    store = build(FILES | {"other.md": tell("belt")})
    answer = ask(store, "harness for the mast", paths=("manual.md", "other.md"), params=RseParams(max_chars=200))
    assert {one.path for one in answer.segments} <= {"manual.md", "other.md"}
    assert answer.segments
    assert ask(store, "harness", paths=("nowhere.md",)).segments == ()


def test_a_filter_that_no_document_passes_finds_nothing_and_is_sure_of_it() -> None:
    answer = ask(build(FILES), "harness", paths=())
    assert describe(answer) == ((), 0.0, None, 0)


def test_below_the_floor_there_is_no_answer_but_the_nearest_miss() -> None:
    store = build(FILES)
    asked = "quantum chromodynamics of unrelated galaxies"
    answer = ask(store, asked, min_confidence=None)
    assert answer.segments == ()
    assert answer.trace.answered == ()
    assert answer.nearest_miss == ask(store, asked).segments[0]
    assert ask(store, asked).nearest_miss is None


def test_the_floor_is_what_it_is_set_to() -> None:
    store = build(FILES)
    confidence = ask(store, "pump").confidence
    assert 0 < confidence < 1
    assert ask(store, "pump", min_confidence=confidence).segments
    assert ask(store, "pump", min_confidence=float(np.nextafter(confidence, 1))).segments == ()


def test_a_sure_answer_passes_the_default_floor() -> None:
    answer = ask(build(FILES), "Climb the mast only with a harness", min_confidence=None)
    assert answer.confidence > 0.9
    assert answer.segments[0].path == "guide.txt"


def test_of_several_queries_only_the_sure_ones_are_answered() -> None:
    unknown = "quantum chromodynamics of unrelated galaxies"
    answer = ask(build(FILES), unknown, "Climb the mast only with a harness", min_confidence=None)
    assert {query for one in answer.segments for query in one.queries} == {1}
    assert isinstance(answer.used["irrelevant_chunk_penalty"], float)
    assert answer.confidence > 0.9


def test_every_query_gets_its_share() -> None:
    files = {"a.txt": "".join(map(tell, ["pump"] * 8)), "b.txt": "".join(map(tell, ["fuse"] * 8))}
    answer = ask(build(files), "pump", "fuse", params=RseParams(max_chars=800))
    share = {one.queries: len(one.text) for one in answer.segments}
    assert set(share) == {(0,), (1,)}
    assert all(length <= 400 for length in share.values())


def test_queries_that_ask_for_the_same_share_its_segment() -> None:
    (first, *_) = ask(build(FILES), "harness mast", "mast harness").segments
    assert first.queries == (0, 1)


def test_a_query_asked_twice_is_answered_as_if_asked_once() -> None:
    store = build(FILES)
    once, twice = ask(store, "valve"), ask(store, "valve", "valve", params=RseParams(max_chars=8_000))
    assert spans(once) == spans(twice)


CHINESE = {
    "a.md": "# 手册\n\n"
    + "检索系统把文档切成许多小块，然后为每一块打分。" * 3
    + "\n\n"
    + "今天天气很好，我们去公园。" * 5,
    "b.md": "Nothing Chinese is in this file, which is about pumps and valves and how to oil them.\n",
}


def test_a_chinese_query_drops_the_cosines_of_an_english_model() -> None:
    store = build(CHINESE)
    asked = encode_queries(["检索系统", "pump"], FakeEncoder(), english_only=True)
    assert [query.lexical for query in asked] == [True, False]
    answer = ask(store, "检索系统")
    assert "检索系统" in answer.segments[0].text
    assert {one.path for one in answer.segments} == {"a.md"}


def test_a_chinese_query_to_another_model_keeps_them() -> None:
    (asked,) = encode_queries(["检索系统"], FakeEncoder(), english_only=False)
    assert asked.vector is not None
    assert {one.path for one in ask(build(CHINESE), "检索系统", english_only=False, fill=True).segments} == {
        "a.md",
        "b.md",
    }


@pytest.mark.parametrize(
    ("text", "lexical"),
    [("检索 abcd", True), ("检 abc", False), ("检检检 abcdefg", True), ("检", True), ("42?", False)],
)
def test_a_query_is_chinese_from_30_percent_of_its_letters(text: str, lexical: bool) -> None:
    assert encode_queries([text], FakeEncoder(), english_only=True)[0].lexical is lexical


def test_a_chinese_query_that_shares_no_character_finds_nothing() -> None:
    answer = ask(build(CHINESE), "龘")
    assert describe(answer) == ((), 0.0, None, 0)


def test_a_long_query_says_that_it_was_cut() -> None:
    assert [one.truncated for one in encode_queries(["word " * 65, "word"], FakeEncoder(), True)] == [True, False]


@pytest.mark.parametrize("text", ["?!", "…", "whom we", "$", "\u200b"])
def test_a_query_without_words_is_answered_by_meaning_alone(text: str) -> None:
    answer = ask(build(FILES), text)
    assert answer.segments
    assert 0 < answer.confidence < 0.5
    assert ask(build(FILES), text, min_confidence=None).segments == ()


def test_a_query_of_words_that_no_chunk_holds_is_answered_by_meaning_alone() -> None:
    assert ask(build(FILES), "zyzzyva").segments
    assert ask(build(FILES), "zyzzyva", min_confidence=None).segments == ()


@pytest.mark.parametrize("texts", [("pump",), ("检索",), ("?",), ("pump", "valve")])
@pytest.mark.parametrize("fill", [False, True])
def test_an_empty_index_answers_nothing(texts: tuple[str, ...], fill: bool) -> None:
    assert describe(ask(build({}), *texts, fill=fill)) == ((), 0.0, None, 0)


def test_an_index_of_files_without_text_answers_nothing() -> None:
    assert ask(build({"a.md": " \n", "b.md": ""}), "pump").segments == ()


def test_a_segment_cut_by_the_ceiling_ends_in_the_line_of_its_last_character() -> None:
    lines = [f"pump line {number}\n" for number in range(1, 21)]
    text = "```\n" + "".join(lines) + "```\n"
    store = build({"a.md": text})
    for max_chars in range(1, len(text) + 1):
        (segment,) = ask(store, "pump line", params=RseParams(max_chars=max_chars), fill=True).segments
        assert segment.text == text[:max_chars]
        assert segment.end_line == text[:max_chars].rstrip().count("\n") + 1


def test_a_ceiling_of_one_character_shows_one() -> None:
    for fill in (False, True):
        answer = ask(build(FILES), "pump", "valve", params=RseParams(max_chars=1), fill=fill)
        assert shown(answer) == 1


def test_a_huge_ceiling_shows_everything_with_fill() -> None:
    answer = ask(build(FILES), "pump", params=RseParams(max_chars=10**12), fill=True)
    assert [one.text for one in sorted(answer.segments, key=lambda one: one.path)] == [GUIDE, MANUAL]


def test_neighbours_of_hits_are_candidates_and_other_documents_are_not() -> None:
    many = "".join(tell(subject) for subject in ["motor"] * 30)
    store = build({"a.txt": many, "b.txt": tell("龘龘")})
    answer = ask(store, "龘")
    assert answer.n_candidates == 1


def test_a_hit_in_one_row_of_a_table_brings_the_whole_table() -> None:
    rows = [
        f"{name} expenses of the group and all subsidiaries  {n}  {n + 1}  {n + 2}\n"
        for n, name in enumerate(["Marketing", "Research", "Personnel", "Restructuring"], 10)
    ]
    text = "".join([tell("gear"), tell("seal"), *rows, "\n", tell("oil"), tell("belt")])
    answer = ask(build({"a.txt": text}), "restructuring", params=choose_params("precision", {}))
    best = answer.segments[0]
    assert best.text.startswith("Marketing")
    assert best.text.rstrip().endswith(rows[-1].rstrip())


def test_asking_again_gives_the_same_answer() -> None:
    store = build(FILES)
    assert describe(ask(store, "pump")) == describe(ask(store, "pump"))
