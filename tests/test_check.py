"""`rse check` as a job sees it: its screens byte for byte, its exit codes, and its reports as others read them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.cli.cache_key import make_cache_key
from rse_cli.cli.github import escape_data, escape_property, locate_in_workspace
from rse_cli.cli.junit import clean_xml
from rse_cli.core.bootstrap import bootstrap_mean
from rse_cli.core.comparison import Measured, compare_checks, match_cases
from rse_cli.core.gates import Gate, average_measures, format_value, judge_each, judge_means
from tests.conftest import Result, Run, clean_environment

REPOSITORY = Path(__file__).parent.parent

CASES = """\
- id: cleaning
  query: how do I clean the filter of the pump?
  expect:
    - path: docs/pump.md
      text: Clean the filter of the pump every spring with warm water
- id: winter
  query: what must I do before the first frost?
  expect:
    - path: docs/pump.md
      lines: [7, 9]
- id: lens
  query: ["where was the lens of the lighthouse ground?"]
  expect:
    - path: docs/deep/roses.txt
- id: typhoon
  query: quarterly earnings of a telephone company in Brazil
  expect: []
"""

WIDE = CASES.replace("docs/deep/roses.txt", "docs/lamp.txt")


def write(folder: Path, text: str = CASES, name: str = "cases.yaml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def check(rse: Run, folder: Path, *flags: str | Path, cases: str = CASES, **options: Any) -> Result:
    return rse("check", write(folder, cases), *flags, cwd=folder, **options)


# The screen


def test_the_screen_has_the_worst_case_first_then_totals_and_verdicts(indexed: Path, rse: Run) -> None:
    done = check(rse, indexed)

    assert (done.code, done.stderr) == (1, "")
    assert done.text == (
        "      found  recall  precision  chars  case\n"
        "FAIL  no       0.00       0.00     92  lens: where was the lens of the lighthouse ground?"
        "  instead: docs/lamp.txt:1-2\n"
        "ok    yes      1.00       0.21    269  cleaning: how do I clean the filter of the pump?\n"
        "ok    yes      1.00       0.30    326  winter: what must I do before the first frost?\n"
        "ok    no          –          –      0  typhoon: quarterly earnings of a telephone company in Brazil\n"
        "\n"
        "4 cases · found 2 of 3 · rightly silent 1 of 1 · rse/balanced\n"
        "recall 0.67 · precision 0.17 · iou 0.17 · hit 0.67 · document_recall 0.67 · mrr 0.67 · chars 229 · spans 1.00"
        " · empty 0.00\n"
        "\n"
        "FAIL  passed 0.75, min 1.00\n"
    )


def test_limits_on_means_decide_alone_and_what_is_missed_is_a_warning(indexed: Path, rse: Run) -> None:
    done = check(rse, indexed, "--min", "hit=0.6", "--min", "recall=0.66", "--max", "chars=300")

    assert done.code == 0
    assert done.text.splitlines()[1].startswith("warn  no       0.00")
    assert done.text.endswith("\n\nok    hit 0.67, min 0.60\nok    recall 0.67, min 0.66\nok    chars 229, max 300\n")


def test_each_holds_every_case_to_the_limits_given_and_to_no_other(indexed: Path, rse: Run) -> None:
    done = check(rse, indexed, "--each", "--min", "recall=0.9", "--max", "chars=300", cases=WIDE)

    assert done.code == 1
    assert done.text.splitlines()[1] == (
        "FAIL  yes      1.00       0.30    326  winter: what must I do before the first frost?  [chars 326, max 300]"
    )
    assert done.text.endswith(
        "\n\nok    each recall min 0.90, worst 1.00\nFAIL  each chars max 300, worst 326; 1 case misses it\n"
    )
    speaking = "- query: how do I clean the filter of the pump?\n  expect: []\n"
    done = check(rse, indexed, "--each", "--min", "recall=0.9", cases=WIDE + speaking)
    assert done.code == 0
    assert done.text.splitlines()[1].startswith("warn  yes         –          –    269  case-5: how do I clean")
    done = check(rse, indexed, "--each", "--min", "recall=0.9", "--min", "silent=1", cases=WIDE + speaking)
    assert done.code == 1
    assert done.text.endswith("FAIL  each silent min 1.00, worst 0.00; 1 case misses it\n")


def test_on_a_terminal_rows_are_cut_and_coloured(indexed: Path, rse_terminal: Run) -> None:
    write(indexed)
    done = rse_terminal("check", "cases.yaml", cwd=indexed, columns=60)

    # Before it came the bar, which is gone from the screen.
    shown = done.text[done.text.index("      found") :].splitlines()
    assert shown[1] == "\x1b[31mFAIL\x1b[0m  no       0.00       0.00     92  lens: where was the…"
    assert [len(re.sub("\x1b[^m]*m", "", line)) for line in shown[1:5]] == [59, 60, 59, 60]
    assert shown[-1] == "\x1b[31mFAIL\x1b[0m  passed 0.75, min 1.00"


def test_what_a_query_holds_never_drives_the_terminal(indexed: Path, rse: Run) -> None:
    done = check(rse, indexed, cases='- query: "frost \\e[31m \\u202e"\n  expect: [{path: docs/pump.md}]\n')
    assert "case-1: frost ␛[31m <U+202E>\n" in done.text


# Exit codes


@pytest.mark.parametrize(
    ("flags", "cases", "code"),
    [
        ((), WIDE, 0),
        ((), CASES, 1),
        (("--min", "hit=0.6"), CASES, 0),
        (("--min", "hit=0.7"), CASES, 1),
        (("--min", "recall=0.1", "--max", "chars=10"), WIDE, 1),
        (("--min", "silent=1"), CASES, 0),
        (("--each", "--min", "hit=0"), CASES, 0),
        (("--each", "--min", "hit=1"), CASES, 1),
        (("--method", "top-k"), WIDE, 1),  # it always finds something
        (("--min-confidence", "1"), WIDE, 1),
        (("--preset", "precision"), WIDE, 0),
        (("--set", "segment_cost=1"), WIDE, 0),
        (("--min", "recal=1"), WIDE, 2),
        (("--min", "recall=high"), WIDE, 2),
        (("--min", "recall"), WIDE, 2),
        (("--min", "silent=1"), CASES[: CASES.index("- id: typhoon")], 2),
        (("--max", "chars=1"), CASES[CASES.index("- id: typhoon") :], 2),
        (("--max-drop", "recall=0.1"), WIDE, 2),
        (("--baseline", "none.json"), WIDE, 2),
        (("--method", "none"), WIDE, 2),
        (("--junit", "none/junit.xml"), WIDE, 2),
        (("--store", "none"), WIDE, 2),
        ((), "- query: q\n", 2),
        ((), WIDE.replace("every spring", "every autumn"), 2),
        ((), WIDE.replace("id: lens", "id: winter"), 2),
        ((), WIDE.replace("docs/lamp.txt", "docs/lamp.md"), 2),
        ((), WIDE.replace("expect:", "expects:", 1), 2),
        ((), "", 2),
    ],
)
def test_the_exit_code_agrees(indexed: Path, rse: Run, flags: tuple[str, ...], cases: str, code: int) -> None:
    done = check(rse, indexed, *flags, cases=cases)
    assert done.code == code, done.text + done.stderr
    assert bool(done.stdout) == (code < 2)
    assert (code == 1) == ("FAIL" in done.text)
    assert bool(done.stderr) == (code == 2)


def test_an_unknown_metric_is_refused_with_the_nearest(indexed: Path, rse: Run) -> None:
    assert check(rse, indexed, "--min", "recal=1").stderr == "rse: min recal: no such metric; did you mean recall?\n"
    assert check(rse, indexed, "--max", "xyz=1").stderr == (
        "rse: max xyz: no such metric; there are recall, precision, iou, hit, document_recall, mrr, chars, spans, empty, "
        "silent, passed\n"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--min", "recall=abc"), "--min must be limits by metric, such as recall=0.9, not 'recall=abc'"),
        (
            ("--min", "hit=1", "--min", "recall", "--max", "chars=long"),
            "--min must be limits by metric, such as recall=0.9, not 'recall'; "
            "--max must be limits by metric, such as recall=0.9, not 'chars=long'",
        ),
        (("--min", "recall=80"), "min recall: recall is a share from 0 to 1, not 80; did you mean recall=0.8?"),
        (("--min", "hit=-0.5"), "min hit: hit is a share from 0 to 1, not -0.5"),
        (
            ("--max", "spans=-1", "--min", "passed=900"),
            "min passed: passed is a share from 0 to 1, not 900; max spans: spans is never below 0",
        ),
        (
            ("--baseline", "cases.yaml", "--max-drop", "recall=2"),
            "--max-drop recall: recall is a share from 0 to 1, not 2; did you mean recall=0.02?",
        ),
        (
            ("--baseline", "cases.yaml", "--max-drop", "hit", "--max-drop", "mrr=x"),
            "--max-drop must be limits by metric, such as recall=0.9, not 'hit'; "
            "--max-drop must be limits by metric, such as recall=0.9, not 'mrr=x'",
        ),
    ],
)
def test_a_limit_that_no_value_can_meet_or_that_is_no_number_is_refused(
    indexed: Path, rse: Run, flags: tuple[str, ...], message: str
) -> None:
    done = check(rse, indexed, *flags)
    assert (done.code, done.stdout, done.stderr) == (2, b"", f"rse: {message}\n")


def test_without_a_file_of_cases_it_says_how_to_get_one(indexed: Path, rse: Run) -> None:
    done = rse("check", cwd=indexed)
    assert (done.code, done.stderr) == (
        2,
        "rse: give a file of cases, or --init to write a first one: rse check cases.yaml\n",
    )


def test_every_fault_is_told_before_any_query_runs(indexed: Path, rse: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a query ran")

    monkeypatch.setattr("rse_cli.pipeline.batch.answer_request", refuse)
    monkeypatch.setattr("rse_cli.cli.case_files.load_index_encoder", refuse)
    cases = CASES.replace("every spring", "every autumn").replace("id: lens", "id: winter") + "  colour: red\n"
    done = check(rse, indexed, "--json", cases=cases.replace("docs/deep/roses.txt", "docs/rose.txt"))

    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr == (
        "cases.yaml:4: cleaning “how do I clean the filter of the pump?”: the quote “Clean the filter of the pump every "
        "autumn with warm water” is not in docs/pump.md; its first 7 words are (line 5), up to “autumn”\n"
        "cases.yaml:11: the id 'winter' is taken by the case in line 6\n"
        "cases.yaml:14: winter “where was the lens of the lighthouse ground?”: docs/rose.txt is not in the index; did you "
        "mean docs/deep/roses.txt?\n"
        "cases.yaml:18: unknown key 'colour'; a case has id, query, expect and generated\n"
        "rse: 4 faults in cases.yaml; nothing was asked\n"
    )


def test_what_a_case_with_a_fault_expects_is_looked_up_all_the_same(indexed: Path, rse: Run) -> None:
    done = check(
        rse,
        indexed,
        cases="- id: a\n"
        "  expect:\n"
        "    - path: docs/pump.md\n"
        "      lines: [1, 99]\n"
        "- query: q\n"
        "  expect:\n"
        "    - path: docs/pump.md\n"
        "      lines: [98, 99]\n"
        "      text: no such words\n"
        "    - path: docs/none.md\n"
        "      lines: [3, 2]\n",
    )
    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr == (
        "cases.yaml:1: no query\n"
        "cases.yaml:3: a: docs/pump.md has 13 lines, so no line 99\n"
        "cases.yaml:7: a place is named in one way, not by text and lines\n"
        "cases.yaml:7: case-2 “q”: docs/pump.md has 13 lines, so no line 99\n"
        "cases.yaml:7: case-2 “q”: the quote “no such words” is not in docs/pump.md\n"
        "cases.yaml:10: case-2 “q”: docs/none.md is not in the index; did you mean docs/pump.md?\n"
        "cases.yaml:11: lines must be [first, last], from 1, not [3, 2]\n"
        "rse: 7 faults in cases.yaml; nothing was asked\n"
    )


# Settings


def test_the_projects_file_holds_limits_and_settings_and_flags_go_over_them(indexed: Path, rse: Run) -> None:
    (indexed / "rse.toml").write_text(
        '[check]\nmin = { hit = 0.6 }\nmax = { chars = 100 }\n[query]\npreset = "precision"\n', encoding="utf-8"
    )
    done = check(rse, indexed)
    assert (done.code, done.text.splitlines()[-2:]) == (1, ["ok    hit 0.67, min 0.60", "FAIL  chars 115, max 100"])
    assert "rse/precision" in done.text

    done = check(rse, indexed, "--max", "chars=200", "--min", "recall=0.5")
    assert done.code == 0
    assert done.text.splitlines()[-3:] == [
        "ok    hit 0.67, min 0.60",
        "ok    recall 0.67, min 0.50",
        "ok    chars 115, max 200",
    ]


def test_a_limit_in_the_projects_file_that_is_no_number_is_refused_with_its_line(indexed: Path, rse: Run) -> None:
    (indexed / "rse.toml").write_text('[check]\neach = true\nmin = { hit = "all" }\n', encoding="utf-8")
    done = check(rse, indexed)
    assert (done.code, done.stderr) == (
        2,
        "rse: rse.toml line 3: min must be limits by metric, such as recall=0.9, not { hit = 'all' }\n",
    )


def test_documents_left_out_by_the_projects_file_are_not_found(indexed: Path, rse: Run) -> None:
    (indexed / "rse.toml").write_text('[query]\ntype = "txt"\n', encoding="utf-8")
    done = check(rse, indexed, cases=WIDE)
    assert "found 1 of 3" in done.text


def test_an_index_that_is_out_of_date_or_holds_the_cases_is_mentioned(indexed: Path, rse: Run) -> None:
    (indexed / "docs" / "lamp.txt").write_text("Another lamp.\n", encoding="utf-8")
    assert check(rse, indexed).stderr == "rse: 1 file changed since the index was made (rse ingest docs updates it)\n"
    write(indexed / "docs")
    assert rse("ingest", cwd=indexed).code == 0
    done = rse("check", "docs/cases.yaml", cwd=indexed)
    assert done.stderr == ("rse: docs/cases.yaml is in the index and matches its own queries: name it in .rseignore\n")


# JSON and baselines


def test_a_file_of_questions_that_answers_most_cases_is_mentioned(indexed: Path, rse: Run) -> None:
    questions = "\n\n".join(str(case["query"]) for case in yaml.safe_load(CASES))
    (indexed / "docs" / "report.txt").write_text(questions)
    assert rse("ingest", "docs", cwd=indexed).code == 0

    assert check(rse, indexed).stderr == (
        "rse: docs/report.txt comes first in 4 of 4 cases, and none expects it: if it holds the questions, as a report "
        "does, name it in .rseignore\n"
    )


def test_the_json_document_says_all_there_is(indexed: Path, rse: Run) -> None:
    document = check(rse, indexed, "--json").json

    assert document["schema_version"] == 1
    assert {key: document[key] for key in ("passed", "method", "preset", "model", "each", "baseline")} == {
        "passed": False,
        "method": "rse",
        "preset": "balanced",
        "model": "all-MiniLM-L6-v2",
        "each": False,
        "baseline": None,
    }
    assert document["gates"] == [
        {"bound": "min", "metric": "passed", "limit": 1.0, "value": 0.75, "passed": False, "failures": []}
    ]
    assert document["means"]["hit"] == pytest.approx(2 / 3)
    lens = document["cases"][2]
    assert lens["expected"] == [{"path": "docs/deep/roses.txt", "start_char": 0, "end_char": 59}]
    assert [(one["path"], one["start_char"], one["end_char"]) for one in lens["segments"]] == [("docs/lamp.txt", 0, 92)]
    assert (lens["passed"], lens["reasons"], lens["line"]) == (False, ["nothing expected was found"], 11)
    assert document["cases"][3]["metrics"] == {"silent": 1.0, "passed": 1.0}
    assert check(rse, indexed, "--json").json == document


def test_a_baseline_names_what_got_worse_and_a_drop_fails(indexed: Path, rse: Run) -> None:
    (indexed / "before.json").write_bytes(check(rse, indexed, "--json", cases=WIDE).stdout)
    done = check(rse, indexed, "--baseline", "before.json", "--max-drop", "recall=0.02", "--min", "hit=0.5")

    assert done.code == 1
    assert done.text.split("\n\n", 2)[2] == (
        "against the baseline: better 0 · worse 1 · equal 3 · new 0 · gone 0\n"
        "  worse   lens: where was the lens of the lighthouse ground?  recall 1.00 → 0.00\n"
        "  recall -0.333 (95 % interval -1.000 to +0.000)\n"
        "  precision -0.333 (95 % interval -1.000 to +0.000)\n"
        "  hit -0.333 (95 % interval -1.000 to +0.000)\n"
        "  chars +0 (95 % interval +0 to +0)\n"
        "  silent +0.000 (95 % interval +0.000 to +0.000)\n"
        "  passed -0.250 (95 % interval -0.750 to +0.000)\n"
        "\n"
        "ok    hit 0.67, min 0.50\n"
        "FAIL  recall dropped by 0.33, max 0.02\n"
    )
    worse = check(rse, indexed, "--baseline", "before.json", "--max-drop", "recall=0.5")
    assert (worse.code, worse.text.splitlines()[-1]) == (0, "ok    recall dropped by 0.33, max 0.50")
    same = check(rse, indexed, "--baseline", "before.json", "--max-drop", "recall=0", cases=WIDE)
    assert (same.code, same.text.splitlines()[-1]) == (0, "ok    recall dropped by 0.00, max 0.00")
    assert "-0.00" not in same.text
    (indexed / "before.json").write_bytes(check(rse, indexed, "--json").stdout)
    better = check(rse, indexed, "--baseline", "before.json", "--max-drop", "recall=0", cases=WIDE)
    assert (better.code, better.text.splitlines()[-1]) == (0, "ok    recall rose by 0.33, max drop 0.00")
    assert "  better  lens: where was the lens of the lighthouse ground?  recall 0.00 → 1.00\n" in better.text


def test_an_unchanged_mean_whose_last_digits_were_rounded_away_did_not_drop(indexed: Path, rse: Run) -> None:
    # A third, as a baseline keeps it: 0.333333333.
    cases = WIDE.replace("lines: [7, 9]", "start_char: 0\n      end_char: 300")
    document = check(rse, indexed, "--json", cases=cases).json
    for one in document["cases"]:
        one["metrics"] = {name: value - 4e-10 for name, value in one["metrics"].items()}
    (indexed / "before.json").write_text(json.dumps(document), encoding="utf-8")
    done = check(rse, indexed, "--baseline", "before.json", "--max-drop", "recall=0", cases=cases)
    assert (done.code, done.text.splitlines()[-1]) == (0, "ok    recall dropped by 0.00, max 0.00")
    assert "better 0 · worse 0 · equal 4" in done.text


def test_a_baseline_that_is_none_or_of_other_cases_is_refused(indexed: Path, rse: Run) -> None:
    (indexed / "before.json").write_text('{"cases": [{"id": 3}]}', encoding="utf-8")
    done = check(rse, indexed, "--baseline", "before.json")
    assert done.stderr == ("rse: before.json is no baseline: make one with `rse check … --json > before.json`\n")
    other = {"cases": [{"id": "x", "query": ["y"], "metrics": {"recall": 1.0}}]}
    (indexed / "before.json").write_text(json.dumps(other), encoding="utf-8")
    done = check(rse, indexed, "--baseline", "before.json")
    assert done.stderr == "rse: before.json has none of the cases in cases.yaml\n"
    done = check(rse, indexed, "--baseline", "before.json", "--max-drop", "chars=3")
    assert done.stderr == "rse: --max-drop chars: it is better the smaller it is; limit it by --max\n"


def make(name: str, *queries: str, **measures: float) -> Measured:
    return Measured(name, queries, measures)


def test_a_case_is_the_same_by_its_queries_then_by_an_id_that_somebody_gave() -> None:
    before = [make("a", "x"), make("case-2", "y"), make("case-3", "z")]
    now = [make("b", "x"), make("case-2", "w"), make("case-1", "z"), make("a", "new")]
    pairs, new, gone = match_cases(now, before)
    assert [(one.id, other.id) for one, other in pairs] == [("b", "a"), ("case-1", "case-3")]
    assert (new, gone) == (("case-2", "a"), ("case-2",))


def test_cases_with_the_same_query_are_told_apart_by_their_ids() -> None:
    before = [make("a", "x"), make("b", "x")]
    pairs, _, _ = match_cases([make("b", "x"), make("a", "x")], before)
    assert [other.id for _, other in pairs] == ["b", "a"]


def test_a_comparison_lists_changes_greatest_first() -> None:
    before = [make(name, name, recall=0.5) for name in "abcd"]
    now = [
        make("a", "a", recall=0.6),
        make("b", "b", recall=0.9),
        make("c", "c", recall=0.1),
        make("d", "d", recall=0.5),
    ]
    found = compare_checks(now, before)
    assert [one.id for one in found.better] == ["b", "a"]
    assert [one.id for one in found.worse] == ["c"]
    assert found.n_equal == 1
    assert found.differences["recall"].mean == pytest.approx(0.025)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_a_bootstrap_interval_lies_within_the_values_and_is_the_same_each_time(values: list[float]) -> None:
    low, high = bootstrap_mean(values, resamples=200)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    assert (low, high) == bootstrap_mean(values, resamples=200)


def test_a_bootstrap_interval_is_as_wide_as_the_normal_one() -> None:
    # Half the width of the normal interval: 1.96 · 0.5 / √400 = 0.049.
    low, high = bootstrap_mean([0.0, 1.0] * 200)
    assert low == pytest.approx(0.451, abs=0.005)
    assert high == pytest.approx(0.549, abs=0.005)


# Gates


def test_a_mean_that_differs_in_its_last_digits_keeps_to_the_limit() -> None:
    mean = average_measures([{"recall": 0.9, "passed": 1.0}] * 10)["recall"]
    assert mean != 0.9
    assert judge_means([Gate("min", "recall", 0.9)], {"recall": mean})[0].passed


def test_a_value_is_printed_with_the_digits_that_tell_it_from_its_limit() -> None:
    assert format_value(0.8999, 0.9) == "0.8999"
    assert format_value(3999.6, 4000) == "3,999.6"
    assert format_value(0.9 - 1e-12, 0.9) == "0.90"


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        ("0.999", "FAIL  recall 0.67, min 0.999"),
        ("0.5", "ok    recall 0.67, min 0.50"),
        ("0.6666", "0.6667, min 0.6666"),
    ],
)
def test_a_limit_is_printed_as_it_was_given(indexed: Path, rse: Run, limit: str, verdict: str) -> None:
    assert check(rse, indexed, "--min", f"recall={limit}").text.endswith(f"{verdict}\n")


def test_with_each_a_case_is_held_to_the_limits_on_what_it_has() -> None:
    measures = {"a": {"chars": 10.0, "passed": 1.0}, "b": {"silent": 0.0, "passed": 0.0}}
    gates = [Gate("max", "chars", 20), Gate("min", "silent", 1), Gate("min", "passed", 1)]
    verdicts = judge_each(gates, measures)
    assert [(one.gate.metric, one.passed, one.failures) for one in verdicts] == [
        ("chars", True, ()),
        ("silent", False, ("b",)),
        ("passed", False, ("b",)),
    ]


# JUnit

AWKWARD = "\x00\x01\x1b[31m \"'<b>&amp;]]> \u202e\ufffe 🎐 é\t"

AWKWARD_CASES = [
    {"id": "a<\"'&>\x07", "query": AWKWARD, "expect": [{"path": "docs/lamp.txt"}]},
    {
        "id": "long",
        "query": "how do I clean the filter of the pump? " * 250 + "🎐 end",
        "expect": [{"path": "docs/pump.md"}],
    },
    {"id": "nothing", "query": "frost before winter", "expect": []},
]


def test_junit_has_one_testcase_a_case_whatever_its_text_holds(indexed: Path, rse: Run) -> None:
    (indexed / "cases.jsonl").write_text("\n".join(map(json.dumps, AWKWARD_CASES)), encoding="utf-8")
    done = rse("check", "cases.jsonl", "--junit", "junit.xml", cwd=indexed)
    assert done.code == 1

    assert xml.dom.minidom.parse(str(indexed / "junit.xml")).documentElement.tagName == "testsuites"
    root = ElementTree.parse(indexed / "junit.xml").getroot()
    suites = root.findall("testsuite")
    cases = root.findall(".//testcase")
    assert len(suites) == 1
    assert [(one.get("name"), one.get("file"), one.get("line")) for one in cases] == [
        ("a<\"'&>␇", "cases.jsonl", "1"),
        ("long", "cases.jsonl", "2"),
        ("nothing", "cases.jsonl", "3"),
    ]
    failed = [one for one in cases if one.find("failure") is not None]
    assert root.get("tests") == suites[0].get("tests") == "3"
    assert root.get("failures") == suites[0].get("failures") == str(len(failed))
    assert [one.get("name") for one in failed] == ["a<\"'&>␇", "nothing"]
    text = failed[0].findtext("failure") or ""
    assert text.startswith(
        "query: ␀␁␛[31m \"'<b>&amp;]]> <U+202E>? 🎐 é\t\nexpected: docs/lamp.txt characters 0 to 92\n"
    )
    assert len(AWKWARD_CASES[1]["query"]) == 9_755
    assert "🎐 end" in (cases[1].findtext("system-out") or "")
    assert "FAIL  passed 0.33, min 1.00" in (suites[0].findtext("system-out") or "")


def test_a_report_of_an_earlier_check_does_not_stand_for_one_that_could_not_run(indexed: Path, rse: Run) -> None:
    assert check(rse, indexed, "--junit", "report.xml").code == 1
    (indexed / "notes.xml").write_text("<notes/>")

    for name in ("report.xml", "notes.xml"):
        assert check(rse, indexed, "--junit", name, cases=CASES.replace("pump.md", "pumps.md")).code == 2

    assert not (indexed / "report.xml").exists()
    assert (indexed / "notes.xml").read_text() == "<notes/>"


def test_junit_agrees_with_the_exit_code_where_limits_allow_a_miss(indexed: Path, rse: Run) -> None:
    assert check(rse, indexed, "--junit", "junit.xml", "--min", "hit=0.5").code == 0
    root = ElementTree.parse(indexed / "junit.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("4", "0", "1")
    (skipped,) = (one for one in root.iter("testcase") if one.find("skipped") is not None)
    assert skipped.find("skipped").get("message") == (  # type: ignore[union-attr]
        "nothing expected was found: where was the lens of the lighthouse ground?"
    )


@given(st.text(st.characters()))
def test_any_text_is_valid_xml_once_cleaned(text: str) -> None:
    element = ElementTree.Element("a", {"b": clean_xml(text)})
    element.text = clean_xml(text)
    read = ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8"))
    assert read.get("b") == clean_xml(text)


# GitHub


def parse_annotations(text: str) -> list[tuple[str, dict[str, str], str]]:
    """As the runner does: ``::name key=value,key=value::message``."""
    found = []
    for line in text.splitlines():
        if match := re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line):
            pairs = dict(pair.split("=", 1) for pair in match[2].split(","))
            found.append((match[1], pairs, re.sub("%(25|0D|0A)", lambda m: chr(int(m[1], 16)), match[3])))
    return found


def test_a_case_that_fails_is_annotated_with_file_and_line(indexed: Path, rse: Run) -> None:
    done = check(rse, indexed, "--github", env={"GITHUB_WORKSPACE": str(indexed.parent)})
    file = f"{indexed.name}/cases.yaml"
    assert parse_annotations(done.text) == [
        (
            "error",
            {"file": file, "line": "11", "title": "rse check"},
            "lens: “where was the lens of the lighthouse ground?”: nothing expected was found; instead: docs/lamp.txt:1-2",
        )
    ]
    done = check(rse, indexed, "--github", "--min", "hit=0.5", "--json")
    assert json.loads(done.stdout)["passed"]
    assert [one[0] for one in parse_annotations(done.stderr)] == ["warning"]


def test_at_most_ten_cases_are_annotated_then_their_number(indexed: Path, rse: Run) -> None:
    cases = "".join(f"- {{query: lens of the lamp {n}, expect: [{{path: docs/pump.md}}]}}\n" for n in range(13))
    done = check(rse, indexed, "--github", cases=cases)
    assert [one[1]["line"] for one in parse_annotations(done.text)] == [str(n) for n in range(1, 11)]
    assert done.text.endswith("\n3 more\n")


def test_means_that_miss_a_limit_while_every_case_is_found_are_annotated(indexed: Path, rse: Run) -> None:
    done = check(rse, indexed, "--github", "--max", "chars=10", cases=WIDE)
    assert parse_annotations(done.text) == [
        ("error", {"file": "cases.yaml", "line": "1", "title": "rse check"}, "chars 229, max 10.00")
    ]


def test_faults_in_the_cases_are_annotated_on_stderr(indexed: Path, rse: Run) -> None:
    done = check(rse, indexed, "--github", cases="- query: q\n  expect: [{path: a%b.md}]\n")
    assert (done.code, done.stdout) == (2, b"")
    assert "::error file=cases.yaml,line=2,title=rse check::case-1 “q”: a%25b.md is not in the index\n" in done.stderr


def test_a_command_in_a_query_stays_a_message(indexed: Path, rse: Run) -> None:
    cases = '- {id: "x", query: "50 %\\n::set-output name=a::b\\r\\n", expect: [{path: docs/pump.md}]}\n'
    done = check(rse, indexed, "--github", cases=cases)
    lines = [line for line in done.text.splitlines() if line.startswith("::")]
    assert len(lines) == 1
    assert lines[0].startswith("::error file=cases.yaml,line=1,title=rse check::x: “50 %25 ::set-output name=a::b”")


def test_properties_and_messages_are_escaped_as_documented() -> None:
    assert escape_data("a%b\r\nc:d,e") == "a%25b%0D%0Ac:d,e"
    assert escape_property("a%b\r\nc:d,e") == "a%25b%0D%0Ac%3Ad%2Ce"


def test_a_file_outside_the_workspace_keeps_its_path(tmp_path: Path) -> None:
    assert locate_in_workspace("/elsewhere/c.yaml", {"GITHUB_WORKSPACE": str(tmp_path)}) == "/elsewhere/c.yaml"
    assert locate_in_workspace(f"{tmp_path}/a/c.yaml", {"GITHUB_WORKSPACE": str(tmp_path)}) == "a/c.yaml"


def test_the_step_summary_names_the_faults_of_a_file_that_could_not_be_asked(
    indexed: Path, rse: Run, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    cases = "- {id: a, query: one, expect: [{path: gone.md}]}\n- {id: a, query: <b>, expect: []}\n"
    done = check(rse, indexed, "--github", cases=cases, env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert (done.code, done.stdout) == (2, b"")
    head, _, *lines = summary.read_text(encoding="utf-8").splitlines()
    assert head == "### rse check could not run: cases.yaml"
    assert [line.partition(":")[0] for line in lines] == ["- line 1", "- line 2"]
    assert "gone.md" in lines[0]


def test_the_step_summary_is_added_to_and_holds_no_markup_of_queries(indexed: Path, rse: Run, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    cases = CASES.replace("where was the lens", "<img src=x> | [lens](http://x)")
    check(rse, indexed, "--github", cases=cases, env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert summary.read_text(encoding="utf-8") == (
        "before\n"
        "### rse check failed: cases.yaml\n"
        "\n"
        "- ❌ passed 0.75, min 1.00\n"
        "\n"
        "4 cases · found 2 of 3 · rightly silent 1 of 1 · rse/balanced  \n"
        "recall 0.67 · precision 0.17 · iou 0.17 · hit 0.67 · document&#95;recall 0.67 · mrr 0.67 · chars 229 · "
        "spans 1.00 · empty 0.00  \n"
        "\n"
        "| line | case | query | why | instead |\n"
        "|---|---|---|---|---|\n"
        "| 11 | lens | &#60;img src=x&#62; &#124; &#91;lens&#93;(http://x) of the lighthouse ground? | "
        "nothing expected was found | docs/lamp.txt:1-2 |\n"
        "\n"
    )


# --init


def test_init_writes_cases_that_can_be_checked_and_never_over_a_file(indexed: Path, rse: Run) -> None:
    done = rse("check", "--init", cwd=indexed)
    assert (done.code, done.text) == (
        0,
        "cases.yaml: 3 cases about 1 document, all found by rse/balanced (recall 1.00 · precision 0.73 · chars 194)\n",
    )
    assert done.stderr == "rse: keep it out of the index, where it would match its own queries: name it in .rseignore\n"
    written = (indexed / "cases.yaml").read_text(encoding="utf-8")
    assert written.split("\n\n", 1)[1].startswith(
        '- id: "pump-cleaning"\n'
        '  query: "Cleaning"\n'
        "  expect:\n"
        '    - path: "docs/pump.md"\n'
        "      lines: [3, 5]\n"
        "  generated: true\n"
        "\n"
    )
    done = rse("check", "cases.yaml", cwd=indexed)
    assert (done.code, done.stderr) == (0, "")
    assert "3 cases · found 3 of 3 · generated 3 · rse/balanced" in done.text
    done = rse("check", "--init", cwd=indexed)
    assert done.code == 2
    assert done.stderr == "rse: cases.yaml exists and may hold cases: give another name, or remove it\n"
    assert (indexed / "cases.yaml").read_text(encoding="utf-8") == written


def test_init_writes_json_lines_under_such_a_name(indexed: Path, rse: Run) -> None:
    done = rse("check", "--init", "first.jsonl", "--json", cwd=indexed)
    document = done.json
    assert document.pop("means")["passed"] == 1.0
    assert document == {"schema_version": 1, "file": "first.jsonl", "cases": 3, "documents": 1, "not_found": []}
    lines = (indexed / "first.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[1]) == {
        "id": "pump-storage",
        "query": "Storage",
        "expect": [{"path": "docs/pump.md", "lines": [7, 9]}],
        "generated": True,
    }


RIGGING = "# The boat\n\n## Rigging\n\nThe mast is held by three wires. Tighten them once a year, never in the cold.\n"


def test_a_file_from_init_passes_and_what_is_not_found_is_told_and_kept_as_comments(indexed: Path, rse: Run) -> None:
    (indexed / "docs" / "boat.md").write_text(RIGGING, encoding="utf-8")
    assert rse("ingest", cwd=indexed).code == 0
    (indexed / "rse.toml").write_text('[query]\npath = "docs/pump.md"\n', encoding="utf-8")
    done = rse("check", "--init", cwd=indexed)
    assert (done.code, done.text.split(" (")[0]) == (
        0,
        "cases.yaml: 3 cases about 1 document, all found by rse/balanced",
    )
    assert done.stderr.splitlines()[1:] == [
        "rse: 1 heading doesn't find its section by rse/balanced; the file holds it as comments:",
        "  docs/boat.md:3-5: Rigging",
    ]
    assert rse("check", "cases.yaml", cwd=indexed).code == 0
    written = (indexed / "cases.yaml").read_text(encoding="utf-8")
    commented = (
        "\n\n"
        "# Not found by rse/balanced when this file was made: reword each as it would be asked, see why by `rse inspect`,\n"
        "# or have the document say what its heading promises; then take its `# ` away.\n"
        "#\n"
        '# - id: "boat-rigging"\n'
        '#   query: "Rigging"\n'
        "#   expect:\n"
        '#     - path: "docs/boat.md"\n'
        "#       lines: [3, 5]\n"
        "#   generated: true\n"
    )
    assert written.endswith(commented)
    (indexed / "cases.yaml").write_text(
        written.replace("\n# - id", "\n- id").replace("\n#   ", "\n  "), encoding="utf-8"
    )
    assert "found 3 of 4" in rse("check", "cases.yaml", cwd=indexed).text

    listed = rse("check", "--init", "first.jsonl", "--json", cwd=indexed)
    assert listed.json["not_found"] == [
        {"query": "Rigging", "expect": [{"path": "docs/boat.md", "lines": [3, 5]}]},
    ]
    assert "and nothing was written of it:" in listed.stderr


def test_init_that_finds_nothing_writes_nothing(indexed: Path, rse: Run) -> None:
    done = rse("check", "--init", "--min-confidence", "1", cwd=indexed)
    assert (done.code, done.stdout) == (1, b"")
    assert done.stderr.startswith("rse: 3 headings don't find their sections by rse/balanced, and nothing was written")
    assert not (indexed / "cases.yaml").exists()


def test_init_without_a_heading_writes_nothing(tmp_path: Path, rse: Run) -> None:
    (tmp_path / "a.txt").write_text("no heading here, only a sentence that goes on for a while.\n", encoding="utf-8")
    assert rse("ingest", cwd=tmp_path).code == 0
    done = rse("check", "--init", cwd=tmp_path)
    assert (done.code, done.stdout) == (1, b"")
    assert not (tmp_path / "cases.yaml").exists()


# The sample, as `make demo-check` and a job run it


def find_demo_flags() -> list[str]:
    """The gates of `make demo-check`."""
    recipe = (REPOSITORY / "Makefile").read_text(encoding="utf-8").split("\ndemo-check:")[1].split("\n\n")[0]
    return re.findall(r"--(?:min|max) \S+", recipe)


def test_the_sample_passes_the_gates_of_make_demo_check(sample: Path, rse: Run) -> None:
    flags = [part for flag in find_demo_flags() for part in flag.split()]
    assert len(flags) == 8
    done = rse("check", "cases.yaml", "--store", ".rse", *flags, cwd=sample)
    assert done.code == 0, done.text


def test_a_missing_key_paragraph_fails_the_check_with_its_query_file_and_line(
    sample: Path, tmp_path: Path, rse: Run
) -> None:
    folder = tmp_path / "sample"
    shutil.copytree(sample, folder)
    lines = (folder / "handbook.md").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("A missing telephone, laptop or key card")]
    assert len(kept) == len(lines) - 1
    (folder / "handbook.md").write_text("".join(kept), encoding="utf-8")
    assert rse("ingest", "--store", ".rse", cwd=folder).code == 0
    done = rse("check", "cases.yaml", "--store", ".rse", "--github", cwd=folder)

    assert done.code == 2
    cases = (folder / "cases.yaml").read_text(encoding="utf-8").splitlines()
    line = cases.index("    - path: handbook.md", cases.index("- id: stolen-laptop")) + 1
    ((level, place, message),) = parse_annotations(done.stderr)
    assert (level, place["file"], place["line"]) == ("error", "cases.yaml", str(line))
    assert message.startswith(
        "stolen-laptop “My work computer was stolen on the train, who has to know a…”: "
        "the quote “A missing telephone, laptop or key card is reported at once…” is not in handbook.md"
    )


def test_a_missing_answer_of_a_case_without_a_quote_fails_the_gates(indexed: Path, rse: Run) -> None:
    assert check(rse, indexed, cases=WIDE).code == 0
    (indexed / "docs" / "lamp.txt").write_text("This page is being written anew. Please come back.\n", encoding="utf-8")
    assert rse("ingest", "docs", cwd=indexed).code == 0
    done = check(rse, indexed, "--github", cases=WIDE)
    assert done.code == 1
    ((level, place, message),) = parse_annotations(done.text)
    assert (level, place["file"], place["line"]) == ("error", "cases.yaml", "11")
    assert message.startswith("lens: “where was the lens of the lighthouse ground?”: nothing expected was found")


def test_a_job_on_an_unchanged_folder_imports_no_torch(sample: Path, home: Path, tmp_path: Path) -> None:
    # As from a cache: the files were checked out anew, so their times differ and they are read again.
    folder = tmp_path / "sample"
    shutil.copytree(sample, folder, copy_function=shutil.copyfile)
    script = (
        "import sys\n"
        "from rse_cli.cli.main import run\n"
        "assert run(['ingest', '--store', '.rse']) == 0\n"
        "assert run(['check', 'cases.yaml', '--store', '.rse', '--min', 'hit=0', '--junit', 'j.xml', '--github']) == 0\n"
        "assert 'lance' in sys.modules\n"
        "print(*sorted({'torch', 'sentence_transformers', 'transformers'} & sys.modules.keys()), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=clean_environment(home),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "unchanged 19" in done.stdout
    assert done.stderr == "\n"


# The action


def test_the_key_of_a_cached_index_names_model_and_chunking_alone(tmp_path: Path) -> None:
    plain = make_cache_key(tmp_path)
    assert re.fullmatch(r"rse-\d+-\d+-300-normal-all-MiniLM-L6-v2", plain)
    (tmp_path / "rse.toml").write_text("[ingest]\nchunk_chars = 200\n[check]\nmin = { hit = 1 }\n", encoding="utf-8")
    assert make_cache_key(tmp_path) == plain.replace("-300-", "-200-")


def test_the_action_runs_what_exists(indexed: Path, home: Path) -> None:
    """Its own shell steps, with the environment of this run in place of the one that it would install."""
    action = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
    steps = {step.get("name"): step for step in action["runs"]["steps"]}
    (indexed / "temp").mkdir()
    (indexed / "temp" / "rse").symlink_to(sys.prefix)
    write(indexed, WIDE)
    write(indexed, "cases.yaml\n/temp/\n", ".rseignore")
    shutil.rmtree(indexed / ".rse")
    output = indexed / "output.txt"
    runner = {
        "RUNNER_TEMP": str(indexed / "temp"),
        "RUNNER_OS": "Linux",
        "GITHUB_OUTPUT": str(output),
        "GITHUB_RUN_ID": "7",
    }
    inputs = {"FOLDER": ".", "CASES": "cases.yaml", "JUNIT": "junit.xml", "ARGS": "--min hit=1\n --max chars=400"}
    for name in ("Name the index", "Bring the index up to date", "Check"):
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", steps[name]["run"]],
            cwd=indexed,
            env=clean_environment(home, runner | inputs),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert "ok    chars" in done.stdout
    assert (indexed / "junit.xml").exists()
    base, full = (line.partition("=")[2] for line in output.read_text(encoding="utf-8").splitlines())
    assert base == f"{make_cache_key(indexed)}-Linux-."
    assert full == f"{base}-7"
