"""`rse tune` as its users see it: its screens, what it writes, its exit codes, and Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rse_cli.cli.wiring import open_index
from rse_cli.config.editing import edit_text
from rse_cli.pipeline.generated_cases import generate_cases
from tests.conftest import Result, Run, read_terminal

BAD = """\
# Ours
[query]
preset = "balanced"   # as everywhere

[rse]
weight_c0 = 0.0
weight_c1 = 0.0
weight_c4 = 0.0  # no meaning
weight_f0 = 0
weight_f4 = 0
weight_f12 = 3
irrelevant_chunk_penalty = 0.6
"""


MACHINES = ("pump", "crane", "lathe", "winch", "kiln", "press")

SECTIONS = {
    "Cleaning": "Wipe the {0} with a dry cloth after each shift. Once a month wash its housing with warm water and mild "
    "soap, and let it dry in the shade. Never point a hose at the bearings of the {0}.",
    "Storage": "Drain all oil before the first frost. Put the {0} on wooden blocks under a roof, cover it with canvas, "
    "and turn its shaft by hand every second week so that the seals stay soft.",
    "Repair": "Only a fitter opens the gearbox. Order parts by the number on the plate of the {0}. A cracked housing is "
    "never welded: it goes back to the works.",
    "Warranty": "The maker replaces what breaks within two years of the invoice. Wear of belts and brushes isn't covered, "
    "nor is a {0} that ran without oil.",
}

QUESTIONS = {
    "Cleaning": "How do I wash the {0}?",
    "Storage": "What must I do with the {0} before winter?",
    "Repair": "Who may open the gearbox of the {0}?",
    "Warranty": "How long is the {0} covered if it breaks?",
}


def write_machines(folder: Path) -> None:
    """Six manuals that differ in little but the name of the machine, and their cases; two find nothing."""
    cases = []
    for machine in MACHINES:
        sections = [f"## {name}\n\n{text.format(machine)}\n" for name, text in SECTIONS.items()]
        (folder / f"{machine}.md").write_text("\n".join([f"# The {machine}\n", *sections]))
        cases += [
            {
                "query": QUESTIONS[name].format(machine),
                "expect": [{"path": f"{machine}.md", "text": text.format(machine)}],
            }
            for name, text in SECTIONS.items()
        ]
    cases += [{"query": text, "expect": []} for text in ("quarterly earnings of a bank", "poems about the sea")]
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory, rse_process: Run) -> Path:
    folder = tmp_path_factory.mktemp("machines")
    write_machines(folder)
    (folder / ".rseignore").write_text("cases.jsonl\nrse.toml\n")
    assert rse_process("ingest", cwd=folder).code == 0
    return folder


@pytest.fixture
def folder(machines: Path, tmp_path: Path) -> Path:
    """A copy of the indexed manuals that a test may change."""
    shutil.copytree(machines, tmp_path / "machines")
    return tmp_path / "machines"


def tune(rse: Run, folder: Path, *flags: str, cases: str = "cases.jsonl") -> Result:
    return rse("tune", cases, *flags, cwd=folder)


# The screens


def test_the_screen_has_figures_parameters_and_the_verdict(folder: Path, rse: Run) -> None:
    done = tune(rse, folder, "--trials", "64", "--maximise", "f1")
    assert (done.code, done.stderr) == (0, "")
    assert done.text == (
        "26 cases, 5 parts held out in turn, split by documents; 69 settings tried\n"
        "maximise f1\n"
        "means over cases [95 % interval], shares in percent:\n"
        "\n"
        "                        current     tuned, as trained       tuned, held out         gain held out\n"
        "f1            44.8 [39.8, 49.7]     82.9 [77.6, 88.2]     82.9 [77.6, 88.2]  +38.1 [+32.1, +44.9]\n"
        "recall       94.8 [87.9, 100.0]     89.6 [82.7, 96.5]     89.6 [82.7, 96.5]    -5.2 [-10.4, +0.0]\n"
        "precision     30.0 [26.0, 34.1]     81.4 [75.1, 87.6]     81.4 [75.1, 87.6]  +51.4 [+43.2, +59.5]\n"
        "iou           29.7 [25.6, 33.9]     72.9 [65.0, 80.7]     72.9 [65.0, 80.7]  +43.2 [+35.7, +51.2]\n"
        "hit        100.0 [100.0, 100.0]  100.0 [100.0, 100.0]  100.0 [100.0, 100.0]     +0.0 [+0.0, +0.0]\n"
        "chars            551 [501, 605]        196 [163, 230]        196 [163, 230]     -355 [-428, -289]\n"
        "silent     100.0 [100.0, 100.0]  100.0 [100.0, 100.0]  100.0 [100.0, 100.0]     +0.0 [+0.0, +0.0]\n"
        "\n"
        "irrelevant_chunk_penalty  0.075 → 0.495\n"
        "segment_cost              30 → 87.4\n"
        "weight_c0                 3 → 3.44\n"
        "weight_c1                 3 → 0.138\n"
        "weight_c4                 2 → 1.9\n"
        "weight_f0                 5 → 4.86\n"
        "weight_f4                 4 → 1.26\n"
        "weight_f12                2 → 3.7\n"
        "weight_p1                 1.5 → 9.43\n"
        "\n"
        "Recommended: its held-out gain in f1 is above the noise.\n"
        "Give --write to put it into rse.toml.\n"
    )


def test_where_nothing_better_is_found_the_screen_says_so(folder: Path, rse: Run) -> None:
    done = tune(rse, folder, "--trials", "32")
    assert (done.code, done.stderr) == (0, "")
    assert done.text == (
        "26 cases, 5 parts held out in turn, split by documents; 52 settings tried\n"
        "maximise recall, chars ≤ 551 (as now, for want of a limit)\n"
        "means over cases [95 % interval], shares in percent:\n"
        "\n"
        "                        current     tuned, as trained       tuned, held out       gain held out\n"
        "recall       94.8 [87.9, 100.0]    94.8 [87.9, 100.0]  100.0 [100.0, 100.0]  +5.2 [+0.0, +12.1]\n"
        "chars            551 [501, 605]        551 [501, 605]        560 [508, 616]        +9 [-9, +33]\n"
        "precision     30.0 [26.0, 34.1]     30.0 [26.0, 34.1]     31.5 [27.3, 35.8]   +1.5 [+0.3, +3.0]\n"
        "iou           29.7 [25.6, 33.9]     29.7 [25.6, 33.9]     31.5 [27.3, 35.8]   +1.9 [+0.4, +3.8]\n"
        "hit        100.0 [100.0, 100.0]  100.0 [100.0, 100.0]  100.0 [100.0, 100.0]   +0.0 [+0.0, +0.0]\n"
        "silent     100.0 [100.0, 100.0]  100.0 [100.0, 100.0]  100.0 [100.0, 100.0]   +0.0 [+0.0, +0.0]\n"
        "\n"
        "Not recommended: on all cases together nothing better than the current setting was found. Nothing was written.\n"
    )


def test_the_current_setting_is_that_of_query_whatever_methods_are_tried_and_lost_silence_is_told(
    folder: Path, rse: Run
) -> None:
    done = tune(rse, folder, "--trials", "32", "--method", "average", "--method", "parent", "--maximise", "f1")
    assert (done.code, done.stderr) == (0, "")
    assert done.text == (
        "26 cases, 5 parts held out in turn, split by documents; 17 settings tried\n"
        "maximise f1\n"
        "methods tried: average, parent; current: rse\n"
        "means over cases [95 % interval], shares in percent:\n"
        "\n"
        "                        current   tuned, as trained     tuned, held out            gain held out\n"
        "f1            44.8 [39.8, 49.7]   83.9 [71.9, 95.9]   74.6 [61.2, 86.2]     +29.9 [+18.3, +40.8]\n"
        "recall       94.8 [87.9, 100.0]  87.5 [75.0, 100.0]  87.5 [75.0, 100.0]       -7.3 [-23.3, +6.9]\n"
        "precision     30.0 [26.0, 34.1]   80.7 [69.0, 92.1]   67.4 [53.6, 79.3]     +37.4 [+25.3, +48.8]\n"
        "iou           29.7 [25.6, 33.9]   80.7 [69.0, 92.1]   67.4 [53.6, 79.3]     +37.7 [+25.8, +49.3]\n"
        "hit        100.0 [100.0, 100.0]  87.5 [75.0, 100.0]  87.5 [75.0, 100.0]      -12.5 [-25.0, +0.0]\n"
        "chars            551 [501, 605]      159 [134, 180]      207 [166, 247]        -344 [-424, -265]\n"
        "silent     100.0 [100.0, 100.0]      0.0 [0.0, 0.0]      0.0 [0.0, 0.0]  -100.0 [-100.0, -100.0]\n"
        "\n"
        "method  rse → parent\n"
        "k             1\n"
        "parent_chars  2000\n"
        "\n"
        "Recommended: its held-out gain in f1 is above the noise.\n"
        "Give --write to put it into rse.toml.\n"
        "Mind: of the cases that expect nothing, 0.0 % find nothing, held out; now it is 100.0 %. "
        "--at-least silent=1 makes that a limit.\n"
    )
    limited = tune(
        rse, folder, "--trials", "32", "--method", "parent", "--maximise", "f1", "--at-least", "silent=1", "--json"
    )
    assert limited.json["recommended"] is False


@pytest.mark.parametrize("goal", ["--maximise=recall,iou", "--maximise=f1"])
def test_a_current_method_that_is_not_tried_is_still_compared_with(folder: Path, rse: Run, goal: str) -> None:
    (folder / "rse.toml").write_text('[query]\nmethod = "average"\n')
    document = tune(rse, folder, "--trials", "32", "--method", "rse", "--max-chars", "500", goal, "--json").json
    assert document["current"]["method"] == "average"
    if goal == "--maximise=f1":
        assert (document["given"]["method"], document["best"]["method"]) == ("average", "rse")
        assert document["best"]["params"]["max_chars"] == 500
    else:
        assert {one["method"] for one in document["front"]} == {"rse"}


def test_the_front_of_two_metrics_is_a_table_and_a_plot(folder: Path, rse: Run) -> None:
    done = tune(rse, folder, "--trials", "32", "--maximise", "recall", "--minimise", "chars")
    assert (done.code, done.stderr) == (0, "")
    assert done.text == (
        "13 cases to choose by, 13 held out, split by documents; 29 settings tried\n"
        "means over cases, shares in percent:\n"
        "\n"
        "         recall, chosen by  chars, chosen by  recall, held out  chars, held out\n"
        "      1              100.0               569              96.5              560\n"
        "      2               96.5               558              93.1              544\n"
        "      3               93.0               548              93.1              544\n"
        "      4               89.6               161              89.6              162\n"
        "      5               78.2               153              78.3              142\n"
        "current               96.5               558              93.1              544\n"
        "\n"
        "1: rse irrelevant_chunk_penalty=0.0274 segment_cost=6.98 weight_c0=8.68 weight_c1=4.54 weight_c4=1.58 weight_f0=1.69 weight_f4=0.2 weight_f12=3.24 weight_p1=2.14\n"
        "2: rse irrelevant_chunk_penalty=0.075 segment_cost=30 weight_c0=3 weight_c1=3 weight_c4=2 weight_f0=5 weight_f4=4 weight_f12=2 weight_p1=1.5\n"
        "3: rse irrelevant_chunk_penalty=0.075 segment_cost=30 weight_c0=3 weight_c1=3 weight_c4=0.738 weight_f0=5 weight_f4=2.6 weight_f12=2 weight_p1=1.5\n"
        "4: rse irrelevant_chunk_penalty=0.579 segment_cost=75.5 weight_c0=1.02 weight_c1=0.00995 weight_c4=4.57 weight_f0=10.7 weight_f4=3.33 weight_f12=2.5 weight_p1=11.4\n"
        "5: rse irrelevant_chunk_penalty=0.423 segment_cost=111 weight_c0=10.5 weight_c1=0.469 weight_c4=0.00522 weight_f0=1.69 weight_f4=0.0244 weight_f12=7.07 weight_p1=9.01\n"
        "\n"
        "recall  ● front  ○ current\n"
        "100.0 |                                                       ●\n"
        "      |\n"
        "      |                                                      ○\n"
        "      |\n"
        "      |                                                    ●\n"
        "      |\n"
        "      | ●\n"
        "      |\n"
        "      |\n"
        "      |\n"
        "      |\n"
        "      |\n"
        "      |\n"
        " 78.2 |●\n"
        "      +--------------------------------------------------------\n"
        "       153                      chars                       569\n"
        "\n"
        "Choose a point by a limit: rse tune --maximise recall --at-most chars=…\n"
    )


def test_on_a_terminal_a_bar_shows_the_best_so_far(folder: Path, rse_terminal: Run) -> None:
    done = rse_terminal("tune", "cases.jsonl", "--trials", "32", cwd=folder, columns=100)
    assert done.code == 0
    assert re.search(r"trials .*best recall \d\.\d{4}", done.text)
    assert "Recommended" in done.text or "Not recommended" in done.text


# What is written


def test_a_recommended_setting_is_written_and_used_and_all_else_in_the_file_stays(folder: Path, rse: Run) -> None:
    (folder / "rse.toml").write_text(BAD)
    before = rse("check", "cases.jsonl", "--json", cwd=folder).json["means"]
    tuned = tune(rse, folder, "--trials", "64", "--json", "--write").json
    assert tuned["recommended"] is True
    assert tuned["written"] == str(folder / "rse.toml")

    text = (folder / "rse.toml").read_text()
    for line in ("# Ours", 'preset = "balanced"   # as everywhere'):
        assert line in text.splitlines()
    assert re.search(r"^weight_c4 = [\d.]+  # no meaning$", text, re.MULTILINE)
    remarks = [line for line in text.splitlines() if line.startswith("# rse tune: ")]
    assert remarks[0] == "# rse tune: recall on 26 cases of cases.jsonl, seed 0"
    assert remarks[2].startswith("# rse tune: recall 0.0 [0.0, 0.0], ")

    written = tomllib.loads(text)["rse"]
    assert written.items() <= tuned["best"]["params"].items()
    after = rse("check", "cases.jsonl", "--json", cwd=folder).json
    assert after["params"] == tuned["best"]["params"]
    for metric, (mean, _, _) in ((name, one["training"]) for name, one in tuned["figures"].items()):
        assert after["means"][metric] == pytest.approx(mean)
    assert before["recall"] == 0.0
    for command in (("query", "--json"), ("inspect", "--json")):
        asked = rse(*command, "How do I wash the crane?", cwd=folder).json
        assert written.items() <= asked["params"].items()


def test_a_second_writing_replaces_the_figures_of_the_first() -> None:
    once = edit_text(BAD, "rse", {"segment_cost": 58.4}, ["figures", "of May"])
    twice = edit_text(once, "rse", {"segment_cost": 61.0}, ["figures of June"])
    assert [line for line in twice.splitlines() if line.startswith("# rse tune")] == ["# rse tune: figures of June"]
    assert tomllib.loads(twice)["rse"]["segment_cost"] == 61.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        BAD,
        BAD.replace("\n", "\r\n"),
        BAD.rstrip("\n"),
        "rse.segment_cost = 9\n",
        "rse = { segment_cost = 9 } # inline\n",
        '[rse] # "why"\nsegment_cost = 9 # cheap\n[check]\nmin = { hit = 0.9 }\n',
        'x = """\n[rse]\n"""\n[rse]\nsegment_cost = 9\n',
    ],
)
def test_writing_changes_the_values_alone(text: str) -> None:
    values = {"segment_cost": 58.4, "weight_c0": 2.0}
    changed = edit_text(text, "rse", values, ["why"])
    expected = tomllib.loads(text)
    expected["rse"] = expected.get("rse", {}) | values
    assert tomllib.loads(changed) == expected
    assert re.findall("#[^\r\n]*", changed.replace("# rse tune: why", "", 1)) == re.findall("#[^\r\n]*", text)
    assert ("\r\n" in changed) == ("\r\n" in text)
    assert "\n" not in changed.replace("\r\n", "") or "\r\n" not in text


def test_within_the_noise_nothing_is_written(folder: Path, rse: Run) -> None:
    (folder / "rse.toml").write_text("# nothing yet\n")
    done = tune(rse, folder, "--trials", "32", "--write")
    assert done.code == 0
    assert done.text.splitlines()[-1].startswith("Not recommended: ")
    assert done.text.endswith(". Nothing was written.\n")
    assert (folder / "rse.toml").read_text() == "# nothing yet\n"


def test_another_method_is_written_with_its_name(folder: Path, rse: Run) -> None:
    (folder / "rse.toml").write_text('[query]\nmethod = "average" # for now\n')
    done = tune(rse, folder, "--method", "average", "--method", "rse", "--maximise", "f1", "--trials", "64", "--write")
    assert "\n\nmethod  average → rse\n" in done.text
    text = (folder / "rse.toml").read_text()
    assert text.startswith('[query]\nmethod = "rse" # for now\n\n[rse]\n# rse tune: f1 on 26 cases of ')
    assert tomllib.loads(text)["rse"].keys() > {"segment_cost", "weight_c0"}


@pytest.mark.parametrize("cost", ["58.4", "58"])
@pytest.mark.parametrize("command", [("query",), ("inspect",), ("check",)])
def test_a_cost_with_a_fraction_is_accepted_from_the_projects_file(
    folder: Path, rse: Run, command: tuple[str, ...], cost: str
) -> None:
    (folder / "rse.toml").write_text(f"[rse]\nsegment_cost = {cost}\n")
    done = rse(*command, "cases.jsonl" if command == ("check",) else "crane", "--json", cwd=folder)
    assert done.code in (0, 1), done.stderr
    assert done.json["params"]["segment_cost"] == float(cost)


# Exit codes


MANY = "".join(f"- query: q{at}\n  expect: [{{path: pump.md}}]\n" for at in range(10))


@pytest.mark.parametrize(
    ("flags", "cases", "code", "message"),
    [
        (("--trials", "16"), None, 0, ""),
        (("--trials", "16", "--maximise", "f1,mrr"), None, 0, ""),
        (("--trials", "5000", "--time", "0"), None, 0, ""),
        (("--trials", "16", "--fill", "--max-chars", "500"), None, 0, ""),
        (("--trials", "16", "--at-least", "silent=1", "--maximise", "f2", "--method", "dsrag"), None, 0, ""),
        ((), MANY[: MANY.index("- query: q9")], 2, "cases.yaml has 9 cases that expect something; it takes 10"),
        ((), MANY.replace("pump.md", "none.md", 1), 2, "cases.yaml:2: case-1 “q0”: none.md is not in the index"),
        ((), MANY.replace("query: q3", "querry: q3"), 2, "unknown key 'querry'"),
        (("--at-least", "silent=1"), MANY, 2, "silent can't be limited: every case expects something"),
        (("--store", "none"), None, 2, "none"),
    ],
)
def test_the_exit_code_agrees(
    folder: Path, rse: Run, flags: tuple[str, ...], cases: str | None, code: int, message: str
) -> None:
    if cases is not None:
        (folder / "cases.yaml").write_text(cases)
    done = tune(rse, folder, *flags, cases="cases.jsonl" if cases is None else "cases.yaml")
    assert done.code == code, done.stderr
    assert bool(done.stdout) == (code == 0)
    assert message in done.stderr if message else done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a file of cases, or --from-headings: rse tune cases.yaml"),
        (("cases.jsonl", "--from-headings"), "give a file of cases, or --from-headings, not both"),
        (("cases.jsonl", "--maximise", "recal"), "--maximise recal: did you mean recall?"),
        (
            ("cases.jsonl", "--maximise", "chars"),
            "--maximise chars: it is better the smaller it is; limit it: --at-most chars=…, or draw a front: "
            "--minimise chars",
        ),
        (
            ("cases.jsonl", "--minimise", "chars"),
            "--minimise goes with one --maximise; to find short answers, limit them: --at-most chars=2000",
        ),
        (
            ("cases.jsonl", "--maximise", "recall,iou", "--minimise", "chars"),
            "give one metric, or two different ones, not recall, iou, chars",
        ),
        (
            ("cases.jsonl", "--maximise", "f1,f1"),
            "give one metric, or two different ones, not f1, f1",
        ),
        (("cases.jsonl", "--at-most", "chars"), "--at-most must be limits by metric, such as recall=0.9, not 'chars'"),
        (("cases.jsonl", "--at-most", "charz=9"), "--at-most charz: no such metric; did you mean chars?"),
        (
            ("cases.jsonl", "--at-least", "hit=90", "--at-least", "f1=1.5"),
            "--at-least hit: hit is a share from 0 to 1, not 90; did you mean hit=0.9?; "
            "--at-least f1: f1 is a share from 0 to 1, not 1.5",
        ),
        (
            ("cases.jsonl", "--maximise", "recall,iou", "--write"),
            "--write goes with one metric: choose a point of the front by --maximise and --at-most",
        ),
        (
            ("cases.jsonl", "--maximise", "recall,iou", "--folds", "3"),
            "--folds goes with one metric: a front is chosen by one half of the cases, and held out on the other",
        ),
        (
            ("cases.jsonl", "--method", "rze"),
            "unknown method 'rze'; did you mean 'rse'?",
        ),
        (
            ("cases.jsonl", "--method", "hierarchical"),
            "there is nothing to tune in the method hierarchical: it weighs as rse does by default",
        ),
        (
            ("cases.jsonl", "--fill", "--method", "rse", "--method", "top-k"),
            "--fill goes with the method rse, not with top-k",
        ),
        (
            ("cases.jsonl", "--fill", "--at-most", "chars=900"),
            "with --fill every answer has --max-chars characters: leave chars out",
        ),
        (
            ("cases.jsonl", "--trials", "2"),
            "Invalid value for '--trials': 2 is not in the range x>=16 (see rse tune --help)",
        ),
    ],
)
def test_flags_that_do_not_go_together_are_refused_before_any_work(
    folder: Path, rse: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("cases were read")

    monkeypatch.setattr("rse_cli.cli.tuning_run.read_expected", refuse)
    monkeypatch.setattr("rse_cli.cli.tuning_run.encode_expected", refuse)
    done = rse("tune", *arguments, cwd=folder)
    assert (done.code, done.stdout, done.stderr) == (2, b"", f"rse: {message}\n")


def test_a_file_that_can_not_be_written_is_refused_before_any_work(folder: Path, rse: Run) -> None:
    (folder / "rse.toml").symlink_to(folder / "none" / "rse.toml")
    done = tune(rse, folder, "--write")
    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr.startswith("rse: can't write ")


# The same again


def test_two_runs_with_one_seed_agree_to_the_last_digit(folder: Path, rse: Run, rse_process: Run) -> None:
    here = tune(rse, folder, "--trials", "48", "--seed", "3", "--json")
    there = rse_process("tune", "cases.jsonl", "--trials", "48", "--seed", "3", "--json", cwd=folder)
    assert here.code == there.code == 0
    assert here.stdout == there.stdout
    other = tune(rse, folder, "--trials", "48", "--seed", "4", "--json")
    assert other.json["by_fold"] != here.json["by_fold"]


def test_the_json_document_says_all_there_is(folder: Path, rse: Run) -> None:
    document = tune(rse, folder, "--trials", "16", "--json", "--at-most", "chars=2000").json
    assert document["schema_version"] == 1
    assert document["maximise"] == ["recall"]
    assert document["limits"] == [
        {"bound": "max", "metric": "chars", "limit": 2000.0, "given": True},
    ]
    assert document["methods"] == ["rse"]
    assert (document["cases"], document["seed"], document["folds"], document["by_document"]) == (26, 0, 5, True)
    assert set(document["figures"]["recall"]) == {"current", "training", "held_out", "gain"}
    assert len(document["by_fold"]) == 5
    assert document["given"]["params"]["max_chars"] == 4000
    assert {"recommended", "reason", "written", "generated", "best", "current", "trials"} <= document.keys()


# Ctrl-C


@pytest.mark.parametrize("goals", [("--write",), ("--maximise", "recall,iou")])
def test_ctrl_c_reports_the_best_so_far_and_exits_130(
    folder: Path, start_rse: Callable[..., subprocess.Popen[bytes]], goals: tuple[str, ...]
) -> None:
    (folder / "rse.toml").write_text(BAD)
    arguments = ("tune", "cases.jsonl", "--trials", "1000000", "--json", *goals)
    master, slave = pty.openpty()
    with start_rse(*arguments, cwd=folder, stderr=slave, env={"COLUMNS": "100"}) as process:
        os.close(slave)
        shown = b""
        while not re.search(rb"best recall \d", shown):
            assert select.select([master], [], [], 60)[0], shown
            more = read_terminal(master)
            assert more, shown
            shown += more
        process.send_signal(signal.SIGINT)
        while read_terminal(master):
            pass
        out, _ = process.communicate(timeout=60)
    os.close(master)
    document = json.loads(out)
    assert process.returncode == 130
    assert document["interrupted"] is True
    assert document["trials"] > 0
    assert document["means"]["recall"] > 0
    assert document["best"]["method"] == "rse"
    assert (folder / "rse.toml").read_text() == BAD


def test_an_interrupted_search_is_told_in_words_too(folder: Path, rse: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from rse_cli.core import tuning

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "refine_best", interrupt)
    done = tune(rse, folder, "--trials", "32", "--at-most", "chars=2000")
    assert done.code == 130
    lines = done.text.splitlines()
    assert re.fullmatch(r"Interrupted after \d+ settings?\. Best so far, not held out: recall \d.*", lines[0])
    assert lines[1] == "method = rse"
    assert any(re.fullmatch(r"weight_c0 = [\d.]+", line) for line in lines)
    assert done.stderr == "rse: interrupted\n"
    assert lines[-1] == "Nothing was written."


# Generated cases


def test_headings_make_cases_and_the_report_says_how_far_to_trust_them(folder: Path, rse: Run) -> None:
    done = rse("tune", "--from-headings", "--trials", "16", "--folds", "2", cwd=folder)
    assert done.code == 0
    assert done.text.endswith(
        "\n\nThe cases were made from headings: they ask in the words of the documents, which people seldom do. Take a "
        "gain here as a gain on such questions, and check it on a few that were really asked.\n"
    )
    assert rse("tune", "--from-headings", "--trials", "16", "--folds", "2", "--json", cwd=folder).json["generated"]


def test_a_generated_case_asks_for_a_heading_and_expects_its_section(folder: Path) -> None:
    cases = generate_cases(open_index(str(folder / ".rse")).store.snapshot())
    asked = {case.queries[0]: case.expect for case in cases}
    assert sorted(asked) == sorted(f"{name} (The {machine})" for name in SECTIONS for machine in MACHINES)
    assert all(case.generated for case in cases)
    for query, [place] in asked.items():
        name, machine = query.removesuffix(")").split(" (The ")
        assert place.path == f"{machine}.md"
        assert place.lines
        shown = (folder / place.path).read_text().splitlines()[place.lines[0] - 1 : place.lines[1]]
        assert "\n".join(shown).strip() == f"## {name}\n\n{SECTIONS[name].format(machine)}"
