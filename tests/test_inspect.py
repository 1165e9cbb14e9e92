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


def check_arithmetic(lines: Sequence[str]) -> dict[str, float]:
    """Assert that both sides of every equation in sentences are equal; return what each name stands for."""
    found: dict[str, float] = {}
    for clause in itertools.chain.from_iterable(re.split(r"[:;,] |\.$", line.strip()) for line in lines):
        name, *sides = clause.split(" = ")
        sides = [side for side in [name, *sides] if re.fullmatch(r"[\d.+−·/()√ ]*(exp\()?[\d.+−·/()√ ]+", side)]
        values = [
            eval(side.replace("−", "-").replace("·", "*").replace("√", "math.sqrt").replace("exp", "math.exp"))
            for side in sides
        ]
        for left, right in itertools.pairwise(values):
            assert left == pytest.approx(right, abs=2e-3), clause
        if len(values) > 1:
            found[name.removeprefix("so ")] = values[-1]
    return found


@pytest.mark.parametrize("query", [MAST, "桅杆怎么放倒？", "How many vacation days?"])
def test_one_chunk_is_explained_so_that_its_sums_can_be_checked(sample: Path, rse: Run, query: str) -> None:
    inspected = rse("inspect", "--json", query, cwd=sample).json
    best = inspected["segments"][0]
    document = next(one for one in inspected["documents"] if one["path"] == best["path"])
    for ord_ in (best["start_chunk"], best["end_chunk"] - 1):
        lines = rse("inspect", "--json", "--chunk", f"{best['path']}#{ord_}", query, cwd=sample).json["explanation"]
        found = check_arithmetic(lines)

        numbers = {name: column[document["chunks"].index(ord_)] for name, column in document["numbers"][0].items()}
        # A sum without a single word has no terms to write out.
        assert {"z", "p", "relevance", "value"} <= found.keys()
        assert {name for name in ("f0", "f4", "f12", "p1") if numbers[name]} <= found.keys()
        for name in found.keys() & numbers.keys():
            assert found[name] == pytest.approx(numbers[name], abs=1e-4)
        total, cost = re.findall(r"= ([\d.]+), the sum of its rows, − ([\d.]+) for a segment", lines[-1])[0]
        assert float(total) - float(cost) == pytest.approx(best["score"], abs=2e-4)


def test_words_of_the_title_count_though_the_chunk_holds_none_of_its_own(sample: Path, rse: Run) -> None:
    lines = rse("inspect", "--json", "--chunk", "handbook.md#71", MAST, cwd=sample).json["explanation"]

    assert "  None of its own words match." in lines
    assert "  The document's name or beginning holds mast, which counts once more in f0, f4 and f12." in lines
    assert check_arithmetic(lines)["f0"] > 0


def test_an_explanation_in_ascii_keeps_its_arithmetic(sample: Path, rse_process: Run) -> None:
    done = rse_process(
        "inspect", "--chunk", "guide-zh.md#3", "桅杆怎么放倒？", cwd=sample, env={"PYTHONIOENCODING": "ascii"}
    )
    shown = " ".join(done.stdout.decode("ascii").split())

    assert "- 0.0750) * 43/100" in shown and "sqrt(" in shown
    assert 'of them: "\\u4e0b\\u9762' in shown


@pytest.mark.parametrize("columns", [40, 120])
def test_a_chunk_is_quoted_whole(sample: Path, rse: Run, columns: int) -> None:
    done = rse("inspect", "--chunk", "guide-zh.md#3", "桅杆怎么放倒？", cwd=sample, env={"COLUMNS": str(columns)})

    assert "“下面的规定来自十多年的现场经验，每一条背后都有一次事故，或者一次差一点发生的事故。”" in re.sub(
        r"\n +", "", done.text
    )
    assert max(map(cell_len, done.text.split("\n"))) <= columns


def test_a_chunk_is_named_as_a_document_is(sample: Path, rse: Run) -> None:
    whole = rse("inspect", "--chunk", "api/client.py#0", MAST, cwd=sample)

    assert whole.code == 0
    assert rse("inspect", "--chunk", "./api/client.py#0", MAST, cwd=sample).text == whole.text
    assert rse("inspect", "--chunk", "client.py#0", MAST, cwd=sample / "api").text == whole.text
    assert rse("inspect", "--chunk", f"{sample / 'api/client.py'}#0", MAST, cwd=sample).text == whole.text


@pytest.mark.parametrize("method", METHODS)
def test_every_method_explains_a_chunk_of_its_answer_and_one_outside(sample: Path, rse: Run, method: str) -> None:
    best = rse("query", "--json", "--method", method, MAST, cwd=sample).json["segments"][0]
    inside = rse("inspect", "--method", method, "--chunk", f"{best['path']}#{best['start_chunk']}", MAST, cwd=sample)
    outside = rse("inspect", "--method", method, "--chunk", "handbook.md#68", MAST, cwd=sample)

    assert "It is in segment 1" in " ".join(inside.text.split())
    assert "It is in no segment" in outside.text or "It is in segment" in outside.text


@pytest.mark.parametrize("retriever", ["hybrid", "dense", "lexical"])
@pytest.mark.parametrize("query", [MAST, "桅杆怎么放倒？"])
def test_the_score_of_a_block_is_the_value_of_its_rows_whatever_ranks_it(
    sample: Path, rse: Run, query: str, retriever: str
) -> None:
    found = rse("inspect", "--json", "--method", "top-k", "--retriever", retriever, query, cwd=sample).json
    assert {rest for one in found["documents"] for rest in one["rests"]} == {0.0}


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


def test_what_is_worth_most_comes_first_and_of_the_rest_what_is_most_relevant() -> None:
    relevance, chars = np.array([0.3, 0.2, 0.09, 0.05]), np.array([10, 200, 1, 300])
    found = explain_segments(relevance, chars, np.arange(4), np.zeros(4, bool), (0.1, 0.1), 0.3, 4000, 9)

    assert [(one.start, round(one.score, 3)) for one in found] == [(1, -0.1), (0, -0.28), (2, -0.3), (3, -0.45)]


def test_blocks_that_dsrag_left_out_are_worth_what_the_picture_says(sample: Path, rse: Run) -> None:
    found = rse("inspect", "--json", "-m", "dsrag", "--preset", "precision", "raise the mast", cwd=sample).json
    levels = {
        (one["path"], ord_): level
        for one in found["documents"]
        for ord_, level in zip(one["chunks"], one["levels"], strict=True)
    }
    factors = {
        (one["path"], ord_): factor
        for one in found["documents"]
        for ord_, factor in zip(one["chunks"], one["numbers"][0]["length_factor"], strict=True)
    }
    alone = [one for one in found["not_chosen"] if "by itself" in one["why"]]

    assert any(factors[one["path"], one["start_chunk"]] > 1 for one in alone)
    for one in alone:
        assert one["score"] == pytest.approx(levels[one["path"], one["start_chunk"]], abs=1e-8)


@pytest.mark.parametrize("method", ["average", "parent"])
def test_what_the_ceiling_cut_off_says_so(sample: Path, rse: Run, method: str) -> None:
    flags = ["--method", method, "--max-chars", "200", MAST]
    kept = rse("query", "--json", *flags, cwd=sample).json["segments"][-1]
    whole = rse("query", "--json", "--method", method, MAST, cwd=sample).json["segments"]
    longer = next(one for one in whole if (one["path"], one["start_char"]) == (kept["path"], kept["start_char"]))
    place = f"{kept['path']}#{longer['end_chunk'] - 1}"

    assert kept["end_chunk"] < longer["end_chunk"]
    explained = rse("inspect", "--chunk", place, *flags, cwd=sample).text
    assert "It is in no segment: was chosen, but its segment was cut at max_chars 200." in " ".join(explained.split())


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


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
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


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_at_any_width_recall_precision_and_iou_are_whole(sample: Path, rse: Run, columns: int) -> None:
    flags = ["--cases", "cases.yaml", "--id", "alarm-at-night", "--compare", "sentence-window"]
    lines = rse("inspect", *flags, cwd=sample, env={"COLUMNS": str(columns)}).text.split("\n")
    first = next(at for at, line in enumerate(lines) if " method " in line)
    scores = rse("inspect", "--json", *flags, cwd=sample).json["compare"]

    for line, score in zip(lines[first + 1 : first + 3], scores, strict=True):
        assert line.split()[-3:] == [f"{score[name]:.2f}" for name in ("recall", "precision", "iou")]
        assert len(line) <= columns


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
        (
            ["--document", "docs/pump.md", "--text", "--svg", "a.svg"],
            "--svg and --html keep a picture, and --text draws none",
        ),
        (
            ["--explain", "--compare", "top-k", "q"],
            "--explain goes with one method's picture, not with --compare or --cases",
        ),
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


@pytest.mark.parametrize("flags", [[CLEANING], ["--document", "docs/pump.md"]])
def test_the_picture_is_kept_beside_json_too(indexed_once: Path, tmp_path: Path, rse: Run, flags: list[str]) -> None:
    files = [tmp_path / name for name in ("alone.svg", "beside.svg")]
    plain = rse("inspect", "--svg", files[0], *flags, cwd=indexed_once)
    both = rse("inspect", "--json", "--svg", files[1], *flags, cwd=indexed_once)

    assert plain.code == both.code == 0
    assert both.json == rse("inspect", "--json", *flags, cwd=indexed_once).json
    # The export names its styles by a number of its own, made from the content.
    assert files[0].read_text(encoding="utf-8") == files[1].read_text(encoding="utf-8")


def test_context_beyond_any_document_is_no_fault(indexed_once: Path, rse: Run) -> None:
    done = rse("inspect", "--around", str(10**30), CLEANING, cwd=indexed_once)

    assert (done.code, done.stderr) == (0, "")
    assert "chunks, best" not in done.text
    assert done.text == rse("inspect", "--all", CLEANING, cwd=indexed_once).text


def test_an_index_without_a_candidate_draws_nothing(indexed_once: Path, rse: Run) -> None:
    for method in METHODS:
        done = rse("inspect", "--method", method, "--path", "nothing/", CLEANING, cwd=indexed_once)
        assert done.code == 1, done.stderr
        assert "0 candidates" in done.text
