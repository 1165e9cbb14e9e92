"""`rse inspect`: the answer of `rse query` laid open, so that every number can be checked."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rse_cli.cli.bars import measure_bar
from rse_cli.cli.glyphs import UNICODE
from rse_cli.core.dsrag_params import DsragParams
from rse_cli.core.methods import METHODS
from rse_cli.core.reasons import explain_dsrag, explain_segments, find_maximal_runs
from tests.conftest import LAMP, PUMP, ROSES, Run

MAST = "What must I do before I climb the mast?"
CLEANING = "how do I clean the filter of the pump?"
METHODS_AND_PRESETS = [
    (method, preset) for method, one in METHODS.items() for preset in (list(one.presets) if one.presets else [None])
]


def choose(method: str, preset: str | None) -> list[str]:
    return ["--method", method, *(["--preset", preset] if preset else [])]


# The same answer


@pytest.mark.parametrize(("method", "preset"), METHODS_AND_PRESETS)
def test_its_segments_are_those_of_query(sample: Path, rse: Run, method: str, preset: str | None) -> None:
    flags = [*choose(method, preset), "--json"]
    asked, inspected = (rse(command, *flags, MAST, cwd=sample) for command in ("query", "inspect"))

    assert inspected.code == asked.code
    assert asked.json["segments"]
    assert inspected.json["segments"] == asked.json["segments"]
    assert inspected.json | asked.json == inspected.json


@pytest.mark.parametrize(
    "flags",
    [
        ["--max-chars", "300"],
        ["--max-chars", "700", "--fill"],
        ["--limit", "1", "how high is the mast?"],
        ["--method", "top-k", "--max-chars", "500", "--retriever", "lexical"],
        ["--method", "dsrag", "--set", "solver=exact", "--set", "minimum_value=0.2", "what does a member earn?"],
        ["--path", "manual.pdf", "--min-confidence", "0.9"],
        ["--type", "md", "--set", "irrelevant_chunk_penalty=0.3"],
    ],
)
def test_flags_shape_the_request_as_they_do_for_query(sample: Path, rse: Run, flags: list[str]) -> None:
    asked, inspected = (rse(command, *flags, "--json", MAST, cwd=sample) for command in ("query", "inspect"))

    assert inspected.code == asked.code
    assert inspected.json["segments"] == asked.json["segments"]
    assert check_scores(inspected.json) == len(asked.json["segments"])


# The arithmetic


def check_scores(found: dict[str, Any]) -> int:
    """Assert that each segment's score comes from its rows; return how many were checked."""
    checked = 0
    for document in found["documents"]:
        values = dict(zip(document["chunks"], document["values"], strict=True))
        for place, rest in zip(document["segments"], document["rests"], strict=True):
            segment = found["segments"][place]
            assert segment["path"] == document["path"]
            rows = [values[ord_] for ord_ in range(segment["start_chunk"], segment["end_chunk"]) if values.get(ord_) is not None]  # fmt: skip
            if found["score_is"] == "best value":
                assert segment["score"] == pytest.approx(max(rows, default=0.0) + rest, abs=1e-8)
            else:
                assert segment["score"] == pytest.approx(sum(rows) + rest - found["cost"], abs=1e-7)
            checked += 1
    return checked


@pytest.mark.parametrize(("method", "preset"), METHODS_AND_PRESETS)
def test_a_score_is_the_sum_of_its_rows_or_its_best_row(
    sample: Path, rse: Run, method: str, preset: str | None
) -> None:
    found = rse("inspect", *choose(method, preset), "--json", MAST, "how many days of leave?", cwd=sample).json

    assert check_scores(found) == len(found["segments"]) > 0
    assert (found["score_is"] == "best value") == (method in ("top-k", "sentence-window", "parent", "window-parent"))
    # Nothing beside rows and cost, but where segments of blocks for two queries were joined.
    if method != "average":
        assert not any(rest for document in found["documents"] for rest in document["rests"])


def test_values_follow_from_relevance_penalty_and_characters(sample: Path, rse: Run) -> None:
    found = rse("inspect", "--json", MAST, cwd=sample).json
    listed = rse("inspect", "--json", "--document", "handbook.md", cwd=sample).json
    chars = {one["chunk"]: one["end_char"] - one["start_char"] for one in listed["chunks"]}
    document = next(one for one in found["documents"] if one["path"] == "handbook.md")
    numbers = document["numbers"][0]

    for at, ord_ in enumerate(document["chunks"]):
        expected = (numbers["relevance"][at] - found["params"]["irrelevant_chunk_penalty"]) * chars[ord_] / 100
        assert document["values"][at] == pytest.approx(expected, abs=1e-7)
    weights = [found["params"][f"weight_{name}"] for name in ("c0", "c1", "c4", "f0", "f4", "f12", "p1")]
    pieces = np.array([numbers[name] for name in ("c0", "c1", "c4", "f0", "f4", "f12", "p1")])
    assert np.array(numbers["z"]) == pytest.approx(np.array(weights) @ pieces, abs=1e-6)


def test_values_of_dsrag_follow_from_rank_similarity_decay_and_length(sample: Path, rse: Run) -> None:
    found = rse("inspect", "--json", "--method", "dsrag", MAST, cwd=sample).json
    checked = 0
    for document in found["documents"]:
        numbers = document["numbers"][0]
        for at, level in enumerate(document["levels"]):
            rank, similarity, factor = (numbers[name][at] for name in ("rank", "similarity", "length_factor"))
            if level is None or rank is None:
                continue
            expected = (math.exp(-rank / found["params"]["decay_rate"]) * similarity - 0.18) * factor
            assert level == pytest.approx(expected, abs=1e-7)
            checked += 1
    assert checked > 100


def test_the_bars_of_the_screen_are_proportional_to_the_values(sample: Path, rse: Run) -> None:
    screen = rse("inspect", MAST, cwd=sample, env={"COLUMNS": "120"}).text
    found = rse("inspect", "--json", MAST, cwd=sample).json
    values = {(one["path"], ord_): value for one in found["documents"] for ord_, value in zip(one["chunks"], one["values"], strict=True)}  # fmt: skip
    drawn: list[tuple[float, float]] = []
    path = ""
    for line in screen.split("\n"):
        if re.match(r"\S.*  \S.* chunks$", line):
            path = line.split("  ")[0]
        row = re.match(r" *(\d+) [:p]\d+ +([▕🮇🮈▐🮉🮊🮋█]*)│([▏▎▍▌▋▊▉█]*) +([+−]\d)", line)
        if row:
            value = values[path, int(row[1])]
            assert (value < 0) == (row[4][0] == "−")
            drawn.append((value, measure_bar(row[2] if value < 0 else row[3], UNICODE)))
    longest = max(drawn, key=lambda pair: pair[1])
    assert len(drawn) > 15 and longest[1] > 10
    for value, cells in drawn:
        assert abs(cells - abs(value) * longest[1] / longest[0]) <= 1 / 8


def test_one_chunk_is_explained_so_that_its_sums_can_be_checked(sample: Path, rse: Run) -> None:
    best = rse("query", "--json", MAST, cwd=sample).json["segments"][0]
    place = f"{best['path']}#{best['start_chunk']}"
    lines = rse("inspect", "--json", "--chunk", place, MAST, cwd=sample).json["explanation"]
    text = "\n".join(lines)

    def find(pattern: str) -> list[float]:
        match = re.search(pattern.replace("N", r"(-?\d+\.?\d*)"), text)
        assert match, pattern
        return [float(one) for one in match.groups()]

    sums = re.search(r"z = (.*) = (-?[\d.]+)\.$", text, re.M)
    assert sums
    products = [float(a) * float(b) for a, b in (one.split("·") for one in sums[1].split(" + "))]
    assert sum(products) == pytest.approx(float(sums[2]), abs=2e-3)
    z, highest, p, mean = find(r"p = exp\(N − N\) = N; the best three average N,")
    assert math.exp(z - highest) == pytest.approx(p, abs=1e-3)
    numerator, divisor, relevance = find("relevance = N / N = N")
    assert (numerator, divisor) == (p, mean)
    assert numerator / divisor == pytest.approx(relevance, abs=2e-3)
    *_, penalty, chars, value = find(r"value = \(N − N\) · N/100 = N")
    assert (relevance - penalty) * chars / 100 == pytest.approx(value, abs=2e-3)
    total, cost = find(r"= N, the sum of its rows, − N for a segment")
    assert total - cost == pytest.approx(best["score"], abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_explains_a_chunk_of_its_answer_and_one_outside(sample: Path, rse: Run, method: str) -> None:
    best = rse("query", "--json", "--method", method, MAST, cwd=sample).json["segments"][0]
    inside = rse("inspect", "--method", method, "--chunk", f"{best['path']}#{best['start_chunk']}", MAST, cwd=sample)
    outside = rse("inspect", "--method", method, "--chunk", "handbook.md#68", MAST, cwd=sample)

    assert "It is in segment 1" in " ".join(inside.text.split())
    assert "It is in no segment" in outside.text or "It is in segment" in outside.text


def test_a_chunk_that_was_no_candidate_says_so(sample: Path, rse: Run) -> None:
    found = rse("inspect", "--json", "--documents", "100", MAST, cwd=sample).json
    known = {one["path"]: set(one["chunks"]) for one in found["documents"]}
    missing = next(ord_ for ord_ in range(261) if ord_ not in known["handbook.md"])
    done = rse("inspect", "--chunk", f"handbook.md#{missing}", MAST, cwd=sample)

    assert "was not weighed" in done.text


# Why not


def test_maximal_runs_are_found() -> None:
    assert [(run.start, run.end, run.score) for run in find_maximal_runs(np.array([1.0, -2.0, 4.0, -1.0, 2.0, -9.0, 3.0]))] == [
        (0, 1, 1.0),
        (2, 5, 5.0),
        (6, 7, 3.0),
    ]  # fmt: skip


@given(st.lists(st.integers(-4, 4), max_size=14))
def test_no_run_beats_the_best_maximal_one(values: list[int]) -> None:
    runs = find_maximal_runs(np.array(values, dtype=float))
    spans = [(start, end) for start in range(len(values)) for end in range(start + 1, len(values) + 1)]
    best = max((sum(values[start:end]) for start, end in spans), default=0)
    assert max((run.score for run in runs), default=0.0) == max(best, 0)
    assert all(sum(values[run.start : run.end]) == run.score > 0 for run in runs)
    assert all(one.end <= other.start for one, other in itertools.pairwise(runs))


def judge(values: Sequence[float], splits: Sequence[int], chosen: Sequence[tuple[int, int]], **limits: Any) -> dict[tuple[int, int], str]:  # fmt: skip
    found = explain_dsrag(np.array(values), splits, chosen, DsragParams(**limits), 1, 99)
    return {(one.start, one.end): one.code for one in found}


def test_dsrag_leaves_out_what_is_worth_too_little() -> None:
    assert judge([0.9, -0.5, 0.4], [3], [(0, 1)], minimum_value=0.5) == {(2, 3): "below_minimum"}


def test_dsrag_leaves_out_what_is_too_long_and_what_overlaps_a_better_one() -> None:
    assert judge([0.9, 0.9, 0.9], [3], [(0, 2)], max_length=2) == {(0, 3): "too_long", (2, 3): "over_budget"}
    assert judge([0.9, 0.9, 0.9], [3], [(1, 2)], max_length=3)[0, 3] == "overlaps_better"


def test_dsrag_leaves_out_what_the_budget_has_no_room_for() -> None:
    assert judge([0.9, -1.0, 0.8], [3], [(0, 1)], overall_max_length=1) == {(2, 3): "over_budget"}


def test_dsrag_leaves_out_what_runs_over_the_end_of_a_document() -> None:
    assert judge([0.6, 0.6], [1, 2], [(0, 1), (1, 2)])[0, 2] == "over_document_end"


def test_rse_tells_the_ceiling_from_the_price_of_a_segment() -> None:
    relevance, chars, starts = np.array([1.0, 0.5, 0.2]), np.full(3, 100), np.arange(3)
    taken = np.array([True, False, False])
    found = explain_segments(relevance, chars, starts, taken, (0.1, 0.45), 0.3, 100, 9)

    assert [(one.start, one.code, one.why) for one in found] == [
        (1, "over_budget", "max_chars 100 raised the penalty from 0.100 to 0.450"),
        (2, "below_minimum", "worth 0.10 before it pays 0.30 for a segment of its own"),
    ]


def test_what_a_limit_drops_is_named_first(sample: Path, rse: Run) -> None:
    every = rse("query", "--json", "--method", "top-k", MAST, cwd=sample).json["segments"]
    entry = rse("inspect", "--json", "--method", "top-k", "-n", "1", MAST, cwd=sample).json["not_chosen"][0]

    assert (entry["path"], entry["code"]) == (every[1]["path"], "over_limit")
    assert entry["why"] == "was chosen, but comes after the limit of 1"


def test_nothing_that_was_chosen_is_listed_as_not_chosen(sample: Path, rse: Run) -> None:
    for method in METHODS:
        found = rse("inspect", "--json", "--method", method, MAST, cwd=sample).json
        held = {
            (one["path"], ord_) for one in found["segments"] for ord_ in range(one["start_chunk"], one["end_chunk"])
        }
        for one in found["not_chosen"]:
            chunks = {(one["path"], ord_) for ord_ in range(one["start_chunk"], one["end_chunk"])}
            assert not chunks & held or one["code"] in ("too_long", "overlaps_better", "over_document_end")
        assert found["not_chosen"]


def test_below_the_floor_the_picture_shows_what_came_near(indexed_once: Path, rse: Run) -> None:
    done = rse("inspect", "who won the chess olympiad in 1972?", cwd=indexed_once)
    found = rse("inspect", "--json", "who won the chess olympiad in 1972?", cwd=indexed_once)

    assert (done.code, found.code) == (1, 1)
    assert "nothing found" in done.stderr
    assert found.json["segments"] == []
    assert {one["code"] for one in found.json["not_chosen"]} == {"below_confidence"}
    assert "is below the floor" in done.text


# The screen


def test_the_screen_of_a_small_index(indexed_once: Path, rse: Run) -> None:
    done = rse("inspect", "--documents", "1", CLEANING, cwd=indexed_once, env={"COLUMNS": "100"})

    assert (done.code, done.stderr) == (0, "")
    lines = done.text.split("\n")
    assert lines[0] == "“how do I clean the filter of the pump?”"
    assert lines[1].startswith("rse/balanced · confidence 1.00 · 1 segment · 269 characters · ")
    assert lines[2] == "irrelevant_chunk_penalty 0.075 · segment_cost 30 · max_chars 4,000"
    assert lines[4].startswith("docs/pump.md  Pump manual  1 segment · ")
    assert [line for line in lines if "segment_cost · score 3.69 · segment 1 · 269 characters" in line]
    assert lines[-2] == "value = (relevance − penalty) · characters/100; score = sum of its rows − segment_cost/100"


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("flags", [[], ["--explain"], ["--all"], ["--compare", "top-k"], ["--chunk", "guide-zh.md#3"]])
def test_columns_is_the_width_in_a_pipe_too(sample: Path, rse: Run, columns: int, flags: list[str]) -> None:
    done = rse("inspect", *flags, "--documents", "4", "桅杆怎么放倒？", MAST, cwd=sample, env={"COLUMNS": str(columns)})

    widths = [cell_len(line) for line in done.text.split("\n")]
    assert max(widths) <= columns
    assert max(widths) > columns - 12


def test_without_columns_or_a_terminal_it_is_80_wide(sample: Path, rse: Run) -> None:
    assert rse("inspect", MAST, cwd=sample).text == rse("inspect", MAST, cwd=sample, env={"COLUMNS": "80"}).text


def test_a_terminal_gets_colour_and_no_color_leaves_the_signs(indexed_once: Path, rse: Run, rse_terminal: Run) -> None:
    coloured = rse_terminal("inspect", CLEANING, cwd=indexed_once).text
    plain = rse_terminal("inspect", CLEANING, cwd=indexed_once, env={"NO_COLOR": "1"}).text

    assert "\x1b[" in coloured and "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain == rse("inspect", CLEANING, cwd=indexed_once).text


def test_stdout_that_is_not_utf_8_gets_ascii_alone(sample: Path, rse_process: Run) -> None:
    done = rse_process("inspect", "--documents", "3", "桅杆怎么放倒？", cwd=sample, env={"PYTHONIOENCODING": "latin-1"})

    assert done.stdout.isascii()
    assert b"\\u6845" in done.stdout
    assert max(map(len, done.stdout.split(b"\n"))) <= 80


def test_no_document_drives_the_terminal(tmp_path: Path, rse: Run) -> None:
    text = "Zebras gallop over the savannah.\n\x1b[31mred\x1b[0m \u202etfel\u202c \x9b1m\u2028 zebra\ttab\n"
    (tmp_path / "a\x1b[31m.md").write_text(text, encoding="utf-8")
    rse("ingest", cwd=tmp_path)
    for flags in (["zebra"], ["--explain", "zebra"], ["--compare", "top-k", "zebra"], ["--document", "a\x1b[31m.md"]):
        shown = rse("inspect", *flags, cwd=tmp_path).text
        assert not set("\x1b\x9b\u202e\u202c\u2028\t") & set(shown)
        assert "␛[31m" in shown


def test_all_unfolds_and_around_sets_the_context(sample: Path, rse: Run) -> None:
    def count(*flags: str) -> tuple[int, int]:
        shown = rse("inspect", "--documents", "1", *flags, MAST, cwd=sample).text
        return len(re.findall(r"^ *\d+ :\d+ ", shown, re.M)), len(re.findall(r"⋮ [\d,]+ chunks", shown))

    assert count("--all") == (261, 0)
    none, some = count("--around", "0"), count()
    assert none[0] < some[0] < 261
    assert some[1] > 0


def test_documents_are_counted_best_first(sample: Path, rse: Run) -> None:
    def list_paths(*flags: str) -> list[str]:
        return re.findall(r"^(\S+)  .* chunks?$", rse("inspect", *flags, MAST, cwd=sample).text, re.M)

    segments = rse("query", "--json", MAST, cwd=sample).json["segments"]
    assert list_paths() == list(dict.fromkeys(one["path"] for one in segments))
    assert list_paths("--documents", "5")[: len(list_paths())] == list_paths()
    assert len(list_paths("--documents", "5")) == 5


# Side by side


def test_compared_methods_have_the_segments_that_they_have_alone(sample: Path, rse: Run) -> None:
    found = rse("inspect", "--json", "--max-chars", "2000", "--set", "segment_cost=10", "--compare", "top-k", "--compare", "dsrag:precision", "--compare", "rse:find_all", MAST, cwd=sample).json  # fmt: skip
    alone = [
        rse("query", "--json", "--max-chars", "2000", *flags, MAST, cwd=sample).json["segments"]
        for flags in (["--set", "segment_cost=10"], choose("top-k", None), choose("dsrag", "precision"), choose("rse", "find_all"))
    ]  # fmt: skip

    assert [one["segments"] for one in found["compare"]] == alone
    assert found["segments"] == alone[0]
    sets = [{(s["path"], c) for s in segments for c in range(s["start_char"], s["end_char"])} for segments in alone]
    for one, held in zip(found["compare"], sets, strict=True):
        assert one["in_common"] == pytest.approx(len(held & sets[0]) / len(held | sets[0]), abs=1e-6)
        assert one["chars"] == len(held)


def test_a_case_draws_what_is_expected_and_scores_every_method(indexed_once: Path, tmp_path: Path, rse: Run) -> None:
    cases = tmp_path / "cases.jsonl"
    quote = "Never use soap on the seal."
    cases.write_text(
        json.dumps({"id": "soap", "query": CLEANING, "expect": [{"path": "docs/pump.md", "text": quote}]}) + "\n"
    )
    found = rse("inspect", "--json", "--cases", cases, "--id", "soap", "--compare", "top-k", cwd=indexed_once).json
    shown = rse("inspect", "--cases", cases, "--id", "soap", "--compare", "top-k", cwd=indexed_once).text

    start = PUMP.index(quote)
    assert found["expected"] == [{"path": "docs/pump.md", "start_char": start, "end_char": start + len(quote)}]
    first = found["compare"][0]
    assert (first["recall"], first["precision"]) == (1.0, pytest.approx(len(quote) / 269, abs=1e-6))
    assert shown.split("\n")[4:7] == [
        "   method        segm  chars  docs  common   rec  prec   IoU",
        "A  rse/balanced     1    269     1    100%  1.00  0.10  0.10",
        shown.split("\n")[6],
    ]
    assert shown.split("\n")[6].startswith("B  top-k ")
    assert "E is what case soap expects" in shown
    rows = [line[:12] for line in shown[shown.index("docs/pump.md") :].split("\n")[1:6]]
    assert rows == ["    A  B  E", "  0 1  1    ", "  1 ┃  ┃  ┃ ", "  2 ┃  ┃    ", "  3    ┃    "]


def test_a_case_that_expects_nothing_has_no_recall(indexed_once: Path, tmp_path: Path, rse: Run) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text("- id: none\n  query: who won the chess olympiad?\n  expect: []\n")
    done = rse("inspect", "--cases", cases, "--id", "none", cwd=indexed_once)

    assert done.code == 1
    assert "the case expects nothing" in done.text and "recall" not in done.text


# Documents


def test_the_text_of_a_document_is_what_was_indexed(indexed_once: Path, rse: Run) -> None:
    assert rse("inspect", "--document", "docs/pump.md", "--text", cwd=indexed_once).text == PUMP
    assert rse("inspect", "--document", "lamp.txt", "--text", cwd=indexed_once / "docs").text == LAMP
    assert rse("inspect", "--document", "./docs/deep/roses.txt", "--text", cwd=indexed_once).text == ROSES


def test_a_document_is_listed_by_its_chunks(indexed_once: Path, rse: Run) -> None:
    assert rse("inspect", "--document", "docs/lamp.txt", cwd=indexed_once).text == (
        "docs/lamp.txt\n"
        "The lamp of the lighthouse turns once in ten seconds. · 1 chunk · 92 characters…\n"
        "  0  0–92  :1–2  The lamp of the lighthouse turns once in ten seconds. Its lens…\n"
    )


def test_offsets_of_an_extracted_document_count_in_the_text_that_is_printed(sample: Path, rse: Run) -> None:
    text = rse("inspect", "--document", "manual.pdf", "--text", cwd=sample).text
    found = rse("query", "--json", "--path", "manual.pdf", MAST, cwd=sample).json["segments"]

    assert found
    assert all(text[one["start_char"] : one["end_char"]] == one["text"] for one in found)


def test_pages_say_what_they_hold(sample: Path, rse: Run) -> None:
    done = rse("inspect", "--json", "--pages", "--document", "manual.pdf", cwd=sample).json

    assert [one["page"] for one in done["pages"]] == list(range(1, len(done["pages"]) + 1))
    assert {one["holds"] for one in done["pages"]} <= {"text", "picture", "empty"}
    assert rse("inspect", "--pages", "--document", "faq.md", cwd=sample).text == "no pages\n"


# Wrong use


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], 'give a query: rse inspect "how do I …", or --document PATH'),
        (["--text", "q"], "--text goes with --document"),
        (["--document", "docs/pump.md", "q"], "--document lists a document; it takes no query"),
        (["--document", "pump.md"], "pump.md is not in the index; did you mean docs/pump.md?"),
        (["--chunk", "docs/pump.md", "q"], "--chunk takes PATH#NUMBER, not 'docs/pump.md'"),
        (["--chunk", "docs/pump.md#99", "q"], "docs/pump.md has 4 chunks, counted from 0, so no chunk 99"),
        (["--cases", "x.jsonl", "q"], "--cases FILE and --id ID go together; give a query or a case, not both"),
        (["--compare", "topk", "q"], "unknown method 'topk'; did you mean 'top-k'?"),
        (["--compare", "top-k:best", "q"], "the method top-k has no presets"),
    ],
)
def test_wrong_use_is_one_line_and_prints_nothing(indexed_once: Path, rse: Run, flags: list[str], message: str) -> None:
    done = rse("inspect", *flags, cwd=indexed_once)

    assert (done.code, done.stdout) == (2, b"")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_picture_that_cannot_be_written_is_an_error(indexed_once: Path, rse: Run) -> None:
    done = rse("inspect", "--svg", "/nowhere/a.svg", CLEANING, cwd=indexed_once)

    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr == "rse: can't write /nowhere/a.svg: No such file or directory\n"


def test_an_index_without_a_candidate_draws_nothing(indexed_once: Path, rse: Run) -> None:
    for method in METHODS:
        done = rse("inspect", "--method", method, "--path", "nothing/", CLEANING, cwd=indexed_once)
        assert done.code == 1, done.stderr
        assert "0 candidates" in done.text
