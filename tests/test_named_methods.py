"""Every method answers through one interface, on one index, with the same fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rse_cli.cli.asking import Asked
from rse_cli.cli.printing import Shown, describe_answer_json
from rse_cli.core.methods import METHODS, choose_method_params
from rse_cli.core.ranking import CompositeWeights
from rse_cli.pipeline.query import Answer, Request, answer_request
from rse_cli.pipeline.refinement import Refinement
from rse_cli.pipeline.retrieval import encode_queries
from tests.fake_encoder import FakeEncoder
from tests.fake_store import FakeStore
from tests.test_query_pipeline import build, tell

SUBJECTS = ("pump", "valve", "gear", "seal", "oil", "motor", "belt", "fuse", "lamp", "mast", "rope", "hook")
FILES = {
    "manual.md": "# Manual\n\n" + "".join(f"## The {one}\n\n{tell(one)}{tell(one)}" for one in SUBJECTS),
    "garden.md": "# Garden\n\nRoses want sun, and water in the morning. Prune them in March above an outward bud.\n",
    "sea.txt": "The tide comes twice a day. It is high when the moon stands south, and low six hours later.\n" * 3,
}


@pytest.fixture(scope="module")
def store() -> FakeStore:
    return build(FILES)


def ask(store: FakeStore, *texts: str, method: str = "rse", **options: Any) -> Answer:
    options.setdefault("params", choose_method_params(method, None, options.pop("set", {})))
    queries = encode_queries(texts, FakeEncoder(), english_only=True)
    return answer_request(store.snapshot(), Request(queries, method=method, **({"min_confidence": 0.0} | options)))


def spans(answer: Answer) -> list[tuple[str, int, int]]:
    return [(one.path, one.start_char, one.end_char) for one in answer.segments]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_with_the_same_fields_and_exact_slices(store: FakeStore, method: str) -> None:
    answer = ask(store, "the gear", method=method)
    document = describe_answer_json(Shown(Asked(("the gear",)), answer, method, None, "tiny"))
    plain = describe_answer_json(Shown(Asked(("the gear",)), ask(store, "the gear"), "rse", None, "tiny"))
    assert document.keys() == plain.keys()
    assert all(one.keys() == plain["segments"][0].keys() for one in document["segments"])
    assert document["params"].keys() >= choose_method_params(method, None, {}).to_dict().keys()
    assert answer.segments or method == "average"
    for segment in answer.segments:
        assert segment.text == FILES[segment.path][segment.start_char : segment.end_char]


@pytest.mark.parametrize("method", METHODS)
def test_no_method_exceeds_a_ceiling(store: FakeStore, method: str) -> None:
    options: dict[str, Any] = {"set": {"max_chars": 100}} if method == "rse" else {"max_chars": 100}
    answer = ask(store, "the gear and the valve", method=method, **options)
    assert sum(len(one.text) for one in answer.segments) <= 100
    for segment in answer.segments:
        assert segment.text == FILES[segment.path][segment.start_char : segment.end_char]


@pytest.mark.parametrize("method", METHODS)
def test_filtered_documents_are_never_returned(store: FakeStore, method: str) -> None:
    answer = ask(store, "the gear", method=method, paths=("sea.txt", "garden.md"))
    assert "manual.md" not in {one.path for one in answer.segments}


@pytest.mark.parametrize("method", METHODS)
def test_several_queries_name_the_segments_that_answer_them(store: FakeStore, method: str) -> None:
    answer = ask(store, "prune roses in March", "the tide and the moon", method=method)
    answered = {query for one in answer.segments for query in one.queries}
    assert answered <= {0, 1}
    assert answered == {0, 1} or method == "average"


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_index_and_an_odd_query_answer_nothing_for_any_method(store: FakeStore, method: str) -> None:
    assert ask(build({}), "gear", method=method).segments == ()
    assert ask(build({}), "?", method=method).segments == ()
    ask(store, "检索", method=method)


def test_top_k_returns_k_blocks_by_the_retriever(store: FakeStore) -> None:
    refinement = Refinement(join=False)
    answer = ask(store, "the gear", method="top-k", retriever="lexical", set={"k": 1}, refinement=refinement)
    (segment,) = answer.segments
    assert "The gear matters" in segment.text
    assert len(segment.text) <= 800
    assert answer.used["retriever"] == "lexical"


def test_sentence_window_adds_the_sentences_around_a_hit(store: FakeStore) -> None:
    narrow = ask(store, "the gear", method="sentence-window", retriever="lexical", set={"k": 1, "window": 0})
    wide = ask(store, "the gear", method="sentence-window", retriever="lexical", set={"k": 1, "window": 2})
    (inner,), (outer,) = narrow.segments, wide.segments
    assert outer.start_char <= inner.start_char < inner.end_char <= outer.end_char
    assert len(outer.text) > len(inner.text)


@pytest.mark.parametrize(("window", "found"), [(0, [15]), (1, [14, 15, 16]), (5, list(range(10, 21)))])
def test_sentence_window_holds_whole_sentences_however_long_they_are(window: int, found: list[int]) -> None:
    sentences = [
        f"Clause {at} says that " + f"the lessee of lot {at} shall keep the premises, " * 25 + "always. "
        for at in range(30)
    ]
    sentences[15] = sentences[15].replace("always", "xylophone")
    store = build({"lease.txt": "".join(sentences)})

    (segment,) = ask(
        store, "xylophone", method="sentence-window", retriever="lexical", set={"k": 1, "window": window}
    ).segments

    assert segment.text == "".join(sentences[at] for at in found)


def test_parent_returns_the_section_of_the_hit(store: FakeStore) -> None:
    (segment,) = ask(store, "the gear", method="parent", retriever="lexical", set={"k": 1}).segments
    section = FILES["manual.md"][segment.start_char : segment.end_char]
    assert section.startswith("## The gear\n")
    assert section.count("##") == 1


def test_window_parent_with_one_still_returns_one(store: FakeStore) -> None:
    assert len(ask(store, "the gear", method="window-parent", set={"k": 1}).segments) == 1


def test_hierarchical_answers_from_the_nearest_documents_only(store: FakeStore) -> None:
    texts = "prune roses in March"
    found = {one.path for one in ask(store, texts, method="hierarchical", set={"documents": 1}).segments}
    assert len(found) == 1


def test_dsrag_adds_no_neighbours_and_joins_nothing(store: FakeStore) -> None:
    answer = ask(store, "the gear", "the valve", method="dsrag")
    assert answer.trace.refined.steps == ()
    assert answer.used["decay_rate"] == 30


def test_the_limit_keeps_the_first(store: FakeStore) -> None:
    whole = ask(store, "the gear", method="top-k", refinement=Refinement(join=False))
    cut = ask(store, "the gear", method="top-k", refinement=Refinement(join=False, limit=2))
    assert spans(cut) == spans(whole)[:2]


class ByWord:
    """A reranker that wants one word, and remembers what it was given."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.texts: list[str] = []

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        return np.array([0.9 if self.word in text else 0.1 for text in texts])


@pytest.mark.parametrize("method", [name for name in METHODS if name != "average"])
def test_a_reranker_changes_which_chunks_are_chosen(store: FakeStore, method: str) -> None:
    reranker = ByWord("fuse")
    params: dict[str, Any] = {"set": {"weight_rerank": 30}} if method == "rse" else {}
    answer = ask(store, "what matters here", method=method, reranker=reranker, **params)
    assert "fuse" in answer.segments[0].text
    assert all(text.startswith(("Manual", "Garden", "The tide")) for text in reranker.texts), "header and text are read"


def test_refinement_is_recorded_in_its_order(store: FakeStore) -> None:
    refinement = Refinement(
        expand_short=True, dedupe=True, composite=CompositeWeights(), min_score=0.99, mmr=0.5, limit=1
    )
    answer = ask(store, "the gear", method="top-k", refinement=refinement)
    assert answer.trace.refined.steps == ("expand_short", "join", "dedupe", "composite", "min_score", "mmr", "limit")
    assert len(answer.segments) <= 1
