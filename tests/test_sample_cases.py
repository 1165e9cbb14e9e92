"""The questions of `sample_docs/cases.yaml` find what they should, and those without an answer find nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from rse_cli.adapters.readers import read_document
from rse_cli.core.metrics import DocumentSpan, Score, average_scores, score_spans
from rse_cli.core.models import Document
from tests.conftest import SAMPLE, Run

CASES: list[dict[str, Any]] = yaml.safe_load((SAMPLE / "cases.yaml").read_text(encoding="utf-8"))
ANSWERABLE = [case["id"] for case in CASES if case["expect"]]


def find_quote(text: str, quote: str) -> tuple[int, int]:
    """The only place of a quote, white space folded."""
    places = list(re.finditer(r"\s+".join(map(re.escape, quote.split())), text))
    assert len(places) == 1, quote
    return places[0].span()


def find_lines(text: str, first: int, last: int) -> tuple[int, int]:
    """The characters of lines, 1-based and inclusive."""
    starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    return starts[first - 1], starts[last]


def find_page(document: Document, page: int) -> tuple[int, int]:
    """The characters of a page, 1-based."""
    return document.page_starts[page - 1], [*document.page_starts, len(document.text)][page]


def resolve(expected: dict[str, Any]) -> list[DocumentSpan]:
    """The spans that an expectation names, in the text that `rse` extracts."""
    path = expected["path"]
    _, document = read_document(Path(path), (SAMPLE / path).read_bytes())
    if "text" in expected:
        found = [find_quote(document.text, expected["text"])]
    elif "lines" in expected:
        found = [find_lines(document.text, *expected["lines"])]
    else:
        found = [find_page(document, page) for page in expected["pages"]]
    return [DocumentSpan(path, start, end) for start, end in found]


@dataclass(frozen=True)
class Answered:
    """The answers by case, and how they score."""

    documents: dict[str, Any]
    scores: dict[str, Score]

    @property
    def mean(self) -> Score:
        return average_scores([self.scores[case] for case in ANSWERABLE])


def answer_cases(rse_process: Run, folder: Path, *flags: str | int) -> Answered:
    lines = "".join(json.dumps({"id": case["id"], "query": case["query"]}) + "\n" for case in CASES)
    done = rse_process("query", "--batch", "-", "--jsonl", *flags, cwd=folder, stdin=lines.encode())
    assert done.code == 0, done.stderr
    documents = {one["id"]: one for one in done.jsonl}
    scores = {}
    for case in CASES:
        if not case["expect"]:
            continue
        found = [
            DocumentSpan(one["path"], one["start_char"], one["end_char"]) for one in documents[case["id"]]["segments"]
        ]
        scores[case["id"]] = score_spans([span for one in case["expect"] for span in resolve(one)], found)
    return Answered(documents, scores)


@pytest.fixture(scope="module")
def balanced(sample: Path, rse_process: Run) -> Answered:
    return answer_cases(rse_process, sample)


def name_cases(*, answerable: bool) -> list[str]:
    return [case["id"] for case in CASES if bool(case["expect"]) == answerable]


@pytest.mark.parametrize("case", name_cases(answerable=True))
def test_every_question_with_an_answer_hits_it(balanced: Answered, case: str) -> None:
    assert balanced.scores[case].hit == 1


@pytest.mark.parametrize("case", name_cases(answerable=False))
def test_a_question_without_an_answer_finds_nothing(balanced: Answered, case: str) -> None:
    assert balanced.documents[case]["segments"] == []


def test_the_usual_answer_holds_most_of_what_is_expected(balanced: Answered) -> None:
    # Measured: recall 0.89, precision 0.25, 2,664 characters in 2.5 segments.
    assert balanced.mean.recall >= 0.85
    assert balanced.mean.chars <= 2_800
    assert balanced.mean.n_spans <= 3


def test_the_right_document_comes_first_for_most_questions(balanced: Answered) -> None:
    # Measured: 14 of 20 first, 0.725.
    assert balanced.mean.reciprocal_rank >= 0.7


def test_a_word_that_no_document_holds_leaves_the_answer_to_meaning(rse_process: Run, sample: Path) -> None:
    # "many" and "days" alone would find a warranty of five years.
    first = rse_process("query", "--json", "how many vacation days", cwd=sample).json["segments"][0]
    assert first["path"] == "policies/leave.rst"
    assert "28 working days of leave a year" in first["text"]
