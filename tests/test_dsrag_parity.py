"""`dsrag` answers as the published algorithm: recorded cases are replayed, every intermediate result included.

``python -m tests.test_dsrag_parity`` writes the project's own cases anew, from the slow oracle.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from rse_cli.core.dsrag import relevant_segments, select_dsrag
from rse_cli.core.dsrag_params import DSRAG_PRESETS, choose_dsrag_params
from tests import naive

OWN_CASES = Path(__file__).parent / "data" / "rse_parity_small.jsonl"
SHARED = Path(os.environ.get("RSE_SHARED") or Path(__file__).parents[2] / "shared")
SHARED_CASES = SHARED / "data" / "rse-parity"

PUBLISHED_KEYS = (
    "max_length",
    "overall_max_length",
    "minimum_value",
    "irrelevant_chunk_penalty",
    "overall_max_length_extension",
    "decay_rate",
    "top_k_for_document_selection",
    "chunk_length_adjustment",
)


def read_cases(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_ranked(case: dict[str, Any]) -> list[list[Any]]:
    return [[tuple(hit) for hit in hits] for hits in case["ranked"]]


def assert_same(case: dict[str, Any]) -> None:
    """Documents, splits, segments and their order exactly; values and scores within 1e-9."""
    ranked, params = read_ranked(case), case["params"]
    selection = select_dsrag(ranked, choose_dsrag_params("balanced", params))
    assert list(selection.documents) == case["documents"]
    assert list(selection.splits) == case["splits"]
    assert [row.tolist() for row in selection.values] == [pytest.approx(row, rel=0, abs=1e-9) for row in case["values"]]
    expected = [(one["doc_id"], one["chunk_start"], one["chunk_end"]) for one in case["segments"]]
    found = [one[:3] for one in relevant_segments(ranked, params)]
    assert found == expected if case.get("tie_free", True) else sorted(found) == sorted(expected)
    scores = {one[:3]: one[3] for one in relevant_segments(ranked, params)}
    assert [scores[one] for one in expected] == pytest.approx(case["scores"], rel=0, abs=1e-9)


@pytest.mark.parametrize("name", ["cases.jsonl", "quirks.jsonl"])
def test_every_shared_case_gives_the_published_answer(name: str) -> None:
    path = SHARED_CASES / name
    if not path.is_file():
        pytest.skip(f"no {path}; set RSE_SHARED to the folder that holds data/rse-parity")
    cases = read_cases(path)
    assert cases
    for case in cases:
        assert_same(case)


@pytest.mark.parametrize("case", read_cases(OWN_CASES), ids=lambda case: case["case"])
def test_every_case_of_our_own_gives_the_recorded_answer(case: dict[str, Any]) -> None:
    assert_same(case)


@pytest.mark.parametrize("case", read_cases(OWN_CASES), ids=lambda case: case["case"])
def test_the_slow_oracle_still_gives_the_recorded_answer(case: dict[str, Any]) -> None:
    answer = answer_slowly(read_ranked(case), case["params"])
    assert (answer["documents"], answer["splits"]) == (case["documents"], case["splits"])
    assert answer["segments"] == case["segments"]
    assert answer["scores"] == pytest.approx(case["scores"], rel=0, abs=1e-9)


def test_our_own_cases_cover_presets_quirks_and_empty_answers() -> None:
    cases = read_cases(OWN_CASES)
    presets = [{key: preset.to_dict()[key] for key in PUBLISHED_KEYS} for preset in DSRAG_PRESETS.values()]
    assert all(any(case["params"] == preset for case in cases) for preset in presets)
    assert any(not hits for case in cases for hits in case["ranked"])
    assert any(len({tuple(hit[:2]) for hit in hits}) < len(hits) for case in cases for hits in case["ranked"])
    assert any(hit[2] is None for case in cases for hits in case["ranked"] for hit in hits)
    assert any(not case["segments"] for case in cases)
    assert any(case["params"]["irrelevant_chunk_penalty"] == 0 and case["segments"] for case in cases)


def answer_slowly(ranked: list[list[Any]], params: dict[str, Any]) -> dict[str, Any]:
    """What the slow oracle makes of ranked hits, in the format of the recorded cases."""
    documents, splits = naive.dsrag_documents(ranked, params["top_k_for_document_selection"])
    values = naive.dsrag_values(ranked, documents, splits, params)
    budget = params["overall_max_length"] + (len(ranked) - 1) * params["overall_max_length_extension"]
    segments, scores = [], []
    for _, start, end, score in naive.dsrag_greedy(
        values, splits, params["max_length"], budget, params["minimum_value"]
    ):
        number = next(at for at, split in enumerate(splits) if start < split)
        first = splits[number - 1] if number else 0
        segments.append({"doc_id": documents[number], "chunk_start": start - first, "chunk_end": end - first})
        scores.append(score)
    return {
        "documents": documents,
        "splits": splits,
        "values": [[round(value, 12) for value in row] for row in values],
        "segments": segments,
        "scores": scores,
    }


def make_ranked(rng: random.Random) -> list[list[Any]]:
    """Hits of 1–4 queries in 5 documents of 4–14 chunks, in runs; some lists empty, some chunks listed twice."""
    sizes = {f"notes/{name}.md": rng.randint(4, 14) for name in "abcde"}
    ranked = []
    for _ in range(rng.randint(1, 4)):
        hits: list[Any] = []
        similarity = rng.uniform(0.6, 1.0)
        n_hits = rng.choice([0, 10, 30])
        while len(hits) < n_hits:
            document = rng.choice(sorted(sizes))
            start = rng.randrange(sizes[document])
            for chunk in range(start, min(start + rng.randint(1, 5), sizes[document])):
                similarity -= rng.uniform(0, 0.03)
                hits.append([document, chunk, rng.choice([None, 0, 90, 699, 700, 701, 1600]), round(similarity, 6)])
        ranked.append(hits)
    return ranked


def make_cases(count: int = 24, seed: int = 7) -> list[dict[str, Any]]:
    """Every preset in turn, then parameters at random, penalty 0 among them."""
    rng = random.Random(seed)
    presets = [preset.to_dict() for preset in DSRAG_PRESETS.values()]
    cases = []
    for number in range(count):
        params: dict[str, Any] = {key: presets[number % 3][key] for key in PUBLISHED_KEYS}
        if number >= 9:
            params |= {
                "max_length": rng.choice([1, 2, 5, 15]),
                "overall_max_length": rng.choice([1, 3, 10, 30]),
                "minimum_value": rng.choice([0.0, 0.1, 0.5]),
                "irrelevant_chunk_penalty": rng.choice([0.0, 0.1, 0.3]),
                "decay_rate": rng.choice([5.0, 30.0, 200.0]),
                "top_k_for_document_selection": rng.choice([1, 3, 10]),
                "chunk_length_adjustment": rng.random() < 0.7,
            }
        ranked = make_ranked(rng)
        cases.append({"case": f"own-{number}", "params": params, "ranked": ranked})
        cases[-1] |= answer_slowly(ranked, params)
    return cases


if __name__ == "__main__":
    lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in make_cases()]
    OWN_CASES.write_text("".join(lines), encoding="utf-8")
