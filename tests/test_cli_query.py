"""`rse query` as its users see it: its views byte for byte, its filters and ceilings, and what it says of nothing."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from rse_cli.adapters import spawning
from rse_cli.cli import batching
from rse_cli.core.methods import METHODS
from rse_cli.core.params import PRESETS
from rse_cli.errors import DamagedStoreError
from tests.conftest import LAMP, PUMP, Run

CLEANING = "how do I clean the filter of the pump?"


# The view for reading


def test_the_view_off_a_terminal_has_place_section_score_and_text(indexed_once: Path, rse: Run) -> None:
    done = rse("query", CLEANING, cwd=indexed_once)

    assert (done.code, done.stderr) == (0, "")
    assert done.text == (
        "docs/pump.md:1-9  3.69\n"
        "  # Pump manual\n"
        "\n"
        "  ## Cleaning\n"
        "\n"
        "  Clean the filter of the pump every spring with warm water, and let it dry in the shade before you put it back. "
        "Never use soap on the seal.\n"
        "\n"
        "  ## Storage\n"
        "\n"
        "  Drain the pump before the first frost. Keep it dry, above freezing, and away from rats.\n"
    )


def test_segments_are_apart_by_a_blank_line(indexed_once: Path, rse: Run) -> None:
    done = rse("query", "frost", "lens of the lighthouse", cwd=indexed_once)

    assert done.text == (
        "docs/pump.md:7-13  Pump manual › Storage  2.49\n"
        "  Summary: Clean the filter of the pump every spring with warm water, and let it dry in the shade b…\n"
        "  ## Storage\n"
        "\n"
        "  Drain the pump before the first frost. Keep it dry, above freezing, and away from rats.\n"
        "\n"
        "  ## Warranty\n"
        "\n"
        "  The warranty lasts two years from the date on the invoice.\n"
        "\n"
        "docs/lamp.txt:1-2  2.39\n"
        "  The lamp of the lighthouse turns once in ten seconds.\n"
        "  Its lens was ground in Paris in 1862.\n"
    )


def test_on_a_terminal_it_is_coloured_marked_wrapped_and_summed_up(indexed_once: Path, rse_terminal: Run) -> None:
    done = rse_terminal("query", CLEANING, cwd=indexed_once)

    assert done.code == 0
    assert done.text == (
        "\x1b[1;35mdocs/pump.md:1-9\x1b[0m\x1b[2m  3.69\x1b[0m\n"
        "  # \x1b[1;33mPump\x1b[0m manual\n"
        "\n"
        "  ## \x1b[1;33mCleaning\x1b[0m\n"
        "\n"
        "  \x1b[1;33mClean\x1b[0m the \x1b[1;33mfilter\x1b[0m of the \x1b[1;33mpump\x1b[0m "
        "every spring with warm water, and let it dry in\n"
        "  the shade before you put it back. Never use soap on the seal.\n"
        "\n"
        "  ## Storage\n"
        "\n"
        "  Drain the \x1b[1;33mpump\x1b[0m before the first frost. Keep it dry, above freezing, and away\n"
        "  from rats.\n"
        "1 segment · 269 characters · confidence 1.00 · rse/balanced\n"
    )
    section = rse_terminal("query", "frost", "--preset", "precision", cwd=indexed_once).text.split("\n")[0]
    assert section == "\x1b[1;35mdocs/pump.md:7-9\x1b[0m\x1b[36m  Pump manual › Storage\x1b[0m\x1b[2m  2.12\x1b[0m"


def test_no_color_leaves_the_wrapping(indexed_once: Path, rse_terminal: Run) -> None:
    done = rse_terminal("query", CLEANING, cwd=indexed_once, columns=50, env={"NO_COLOR": "1"})

    assert done.text == (
        "docs/pump.md:1-9  3.69\n"
        "  # Pump manual\n"
        "\n"
        "  ## Cleaning\n"
        "\n"
        "  Clean the filter of the pump every spring with\n"
        "  warm water, and let it dry in the shade before\n"
        "  you put it back. Never use soap on the seal.\n"
        "\n"
        "  ## Storage\n"
        "\n"
        "  Drain the pump before the first frost. Keep it\n"
        "  dry, above freezing, and away from rats.\n"
        "1 segment · 269 characters · confidence 1.00 · rse/balanced\n"
    )


def test_a_dumb_terminal_gets_plain_lines(indexed_once: Path, rse: Run, rse_terminal: Run) -> None:
    done = rse_terminal("query", CLEANING, cwd=indexed_once, columns=50, env={"TERM": "dumb"})

    assert done.text == rse("query", CLEANING, cwd=indexed_once).text


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory, rse_process: Run) -> Path:
    """Documents whose names and texts would drive a terminal."""
    folder = tmp_path_factory.mktemp("odd")
    text = "Zebras gallop over the savannah.\n\x1b[31mred\x1b[0m \u202etfel\u202c \x9b1m\u2028 zebra\ttab\n"
    for name in ("a\x1b[31m.md", "b\u202egnp.md", "c\nd.md"):
        (folder / name).write_text(text, encoding="utf-8")
    assert rse_process("ingest", cwd=folder).code == 0
    return folder


def test_controls_in_names_and_texts_are_made_visible(odd: Path, rse: Run) -> None:
    done = rse("query", "zebra savannah", "--limit", "1", cwd=odd)

    assert done.text == (
        "a␛[31m.md:1-2  0.33\n"
        "  Zebras gallop over the savannah.\n"
        "  ␛[31mred␛[0m <U+202E>tfel<U+202C> <U+009B>1m<U+2028> zebra    tab\n"
    )
    plain = rse("query", "zebra savannah", "--plain", cwd=odd).text.splitlines()
    assert plain[4:] == [
        "c␊d.md:1: Zebras gallop over the savannah.",
        "c␊d.md:2: ␛[31mred␛[0m <U+202E>tfel<U+202C> <U+009B>1m<U+2028> zebra\ttab",
    ]


def test_context_is_exact_for_a_model_and_visible_on_a_terminal(odd: Path, rse: Run, rse_terminal: Run) -> None:
    question = ("query", "zebra savannah", "--format", "context")

    assert set(rse(*question, cwd=odd).text) > set("\x1b\x9b\u202e")
    shown = rse_terminal(*question, cwd=odd).text
    assert not set(shown) & set("\x1b\x9b\u202e\u202c\u2028")
    assert "␛[31mred␛[0m <U+202E>tfel<U+202C> <U+009B>1m" in shown


def test_json_has_names_and_texts_exactly(odd: Path, rse: Run) -> None:
    done = rse("query", "zebra savannah", "--json", cwd=odd)

    for segment in done.json["segments"]:
        assert segment["text"] == (odd / segment["path"]).read_bytes().decode()
    assert {segment["path"] for segment in done.json["segments"]} == {"a\x1b[31m.md", "b\u202egnp.md", "c\nd.md"}
    assert not set(done.text) & set("\x1b\x9b\u202e\u202c\u2028")


def test_paths_are_exact_for_programs_and_visible_for_people(odd: Path, rse: Run, rse_terminal: Run) -> None:
    assert rse("query", "zebra savannah", "-l", "-0", cwd=odd).stdout.split(b"\0") == [
        b"a\x1b[31m.md",
        "b\u202egnp.md".encode(),
        b"c\nd.md",
        b"",
    ]
    assert rse_terminal("query", "zebra savannah", "-l", cwd=odd).text == "a␛[31m.md\nb<U+202E>gnp.md\nc␊d.md\n"


def test_an_error_shows_controls_too(documents: Path, rse: Run) -> None:
    done = rse("query", "x", "--preset", "\x1b[31m\nred", cwd=documents)

    assert (done.code, done.stderr.count("\n")) == (2, 1)
    assert "\x1b" not in done.stderr


# Other formats


def test_plain_prints_lines_as_grep_does(indexed_once: Path, rse: Run) -> None:
    assert rse("query", CLEANING, "--plain", cwd=indexed_once).text == (
        "docs/pump.md:1: # Pump manual\n"
        "docs/pump.md:3: ## Cleaning\n"
        "docs/pump.md:5: Clean the filter of the pump every spring with warm water, and let it dry in the shade before "
        "you put it back. Never use soap on the seal.\n"
        "docs/pump.md:7: ## Storage\n"
        "docs/pump.md:9: Drain the pump before the first frost. Keep it dry, above freezing, and away from rats.\n"
    )


def test_plain_and_the_view_name_pages_where_there_are_no_lines(sample: Path, rse: Run) -> None:
    flags = ["--path", "manual.pdf", "--limit", 1]

    view = rse("query", "setting up a lithium battery", *flags, cwd=sample).text.split("\n")
    plain = rse("query", "setting up a lithium battery", "--plain", *flags, cwd=sample).text.split("\n")

    assert view[0].startswith(
        "manual.pdf p. 5-6  Dunlin 3: product manual › 7 The TC-4 controller › 7.1 Setting up a lithium battery  "
    )
    assert view[1].startswith("  Summary: Read chapters 1 and 6 before anybody touches the mast. ")
    assert view[2] == "  7.1 Setting up a lithium battery"
    assert plain[0] == "manual.pdf:p5-6: 7.1 Setting up a lithium battery"


def test_files_only_prints_each_path_once_best_first(indexed_once: Path, rse: Run) -> None:
    done = rse("query", "frost", "lens of the lighthouse", "-l", cwd=indexed_once)

    assert done.text == "docs/pump.md\ndocs/lamp.txt\n"


def keep_documented(value: Any, documented: Any) -> Any:
    """A document without the fields that were added since; those documented must keep their names and kinds."""
    if isinstance(documented, dict):
        return {key: keep_documented(value[key], one) for key, one in documented.items()}
    if isinstance(documented, list) and documented and isinstance(documented[0], dict):
        return [keep_documented(one, documented[0]) for one in value]
    return value


def test_json_is_the_documented_document(indexed_once: Path, rse: Run) -> None:
    done = rse("query", "lens of the lighthouse", "--json", cwd=indexed_once)

    confidence, score = done.json["confidence"], done.json["segments"][0]["score"]
    documented = {
        "schema_version": 1,
        "queries": ["lens of the lighthouse"],
        "method": "rse",
        "preset": "balanced",
        "params": PRESETS["balanced"].to_dict() | {"fill": False},
        "model": "all-MiniLM-L6-v2",
        "truncated": False,
        "confidence": confidence,
        "segments": [
            {
                "path": "docs/lamp.txt",
                "title": "The lamp of the lighthouse turns once in ten seconds.",
                "section": "",
                "queries": [0],
                "score": score,
                "start_chunk": 0,
                "end_chunk": 1,
                "start_char": 0,
                "end_char": 92,
                "start_line": 1,
                "end_line": 2,
                "start_page": None,
                "end_page": None,
                "header": "The lamp of the lighthouse turns once in ten seconds.",
                "text": LAMP,
            }
        ],
        "stats": {"chars": 92, "candidates": 6},
    }
    assert keep_documented(done.json, documented) == documented
    assert [key for key in done.json if key in documented] == list(documented)
    assert 0.99 < confidence <= 1 and 2 < score < 3


def test_several_texts_are_answered_together(indexed_once: Path, rse: Run) -> None:
    done = rse("query", "frost", "lens of the lighthouse", "--json", cwd=indexed_once).json

    assert done["queries"] == ["frost", "lens of the lighthouse"]
    assert [(one["path"], one["queries"]) for one in done["segments"]] == [
        ("docs/pump.md", [0]),
        ("docs/lamp.txt", [1]),
    ]


def test_a_dash_reads_the_query_from_stdin(indexed_once: Path, rse: Run) -> None:
    done = rse("query", "-", "--json", cwd=indexed_once, stdin=b"lens of the\nlighthouse\n")

    assert done.json["queries"] == ["lens of the\nlighthouse"]
    assert done.json["segments"][0]["path"] == "docs/lamp.txt"


# A batch


BATCH = (
    b"lens of the lighthouse\n"
    b"\n"
    b'{"query": "when is the pump drained?", "id": 7, "expect": [{"path": "docs/pump.md"}]}\r\n'
    b'{"query": ["roses in March", "opera"], "id": {"set": ["a", null]}}\n'
    b'{"query": "opera in Vienna"}'
)


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_a_batch_is_answered_in_order_with_ids_echoed(indexed: Path, rse: Run, how: str) -> None:
    (indexed / "batch").write_bytes(BATCH)
    batch = "batch" if how == "file" else "-"

    done = rse("query", "--batch", batch, "--jsonl", cwd=indexed, stdin=BATCH)

    assert (done.code, len(done.jsonl)) == (0, 4)
    assert [one.get("id", "none") for one in done.jsonl] == ["none", 7, {"set": ["a", None]}, "none"]
    assert [one["queries"] for one in done.jsonl] == [
        ["lens of the lighthouse"],
        ["when is the pump drained?"],
        ["roses in March", "opera"],
        ["opera in Vienna"],
    ]
    assert [[segment["path"] for segment in one["segments"]] for one in done.jsonl] == [
        ["docs/lamp.txt"],
        ["docs/pump.md"],
        ["docs/deep/roses.txt"],
        [],
    ]


def test_a_line_of_a_batch_is_the_document_of_the_query_alone(indexed_once: Path, rse: Run) -> None:
    alone = rse("query", "lens of the lighthouse", "--json", cwd=indexed_once)
    batch = rse("query", "--batch", "-", cwd=indexed_once, stdin=b"lens of the lighthouse\nroses in March\n")

    assert batch.jsonl[0] == alone.json
    assert (
        rse("query", "lens of the lighthouse", "--jsonl", cwd=indexed_once).stdout == batch.stdout.splitlines(True)[0]
    )


def test_a_batch_gives_digit_for_digit_what_each_query_gives_alone(sample: Path, rse: Run) -> None:
    queries = [
        "What must I do before I climb the mast?",
        "mast",
        "Which offer for the new Whimbrel mould did the board choose?",
        "如何检索",
        "how many days of leave are there",
        "opera in Vienna",
        "revenue of 2024 and 2025 by quarter",
        "who wrote the incident report, and what did the harbour master say of it when he was asked in spring?",
    ]

    batch = rse("query", "--batch", "-", cwd=sample, stdin="\n".join(queries).encode())

    alone = [rse("query", "--jsonl", query, cwd=sample).stdout for query in queries]
    assert batch.stdout.splitlines(keepends=True) == alone


def test_processes_answer_a_batch_as_one_does(sample: Path, rse: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [f"What must I do before I climb the mast on day {day}?" for day in range(7)] + ["opera", "word " * 600]
    alone = rse("query", "--batch", "-", cwd=sample, stdin="\n".join(queries).encode())
    monkeypatch.setattr(batching, "WORTH_STARTING", 2)
    monkeypatch.setattr(batching, "PORTION", 2)
    monkeypatch.setattr(batching, "count_jobs", lambda: 3)

    shared = rse("query", "--batch", "-", "--timings", cwd=sample, stdin="\n".join(queries).encode())

    assert [line["queries"] for line in shared.jsonl] == [[query.strip()] for query in queries]
    assert shared.stdout == alone.stdout
    told, timings = shared.stderr.splitlines()
    assert told == alone.stderr.rstrip("\n")
    assert told.startswith("rse: one query is longer than the model's 256 tokens")
    assert "encode" in timings


@pytest.mark.parametrize(("said", "left"), [([], [0, 1]), ([None], [1, 0]), ([None, "an answer"], [1])])
def test_the_portion_of_a_process_that_dies_waits_again(said: list[str | None], left: list[int]) -> None:
    ours, theirs = Pipe()
    done: dict[int, batching.Portion] = {}
    waiting = deque([0, 1])
    for one in said:
        theirs.send(one if one is None else batching.Portion([one.encode()], True, False, 0))
    threading.Timer(0.1, theirs.close).start()

    batching.attend_helpers([ours], [[], []], waiting, done)

    assert ([*waiting], [*done]) == (left, [0] if len(said) == 2 else [])


def test_a_process_that_has_not_begun_is_not_waited_for_when_nothing_is_left() -> None:
    ours, _ = Pipe()

    batching.attend_helpers([ours], [], deque(), {})


def test_what_a_process_cannot_answer_for_is_its_fault_and_nothing_waits_any_more() -> None:
    ours, theirs = Pipe()
    theirs.send(DamagedStoreError("the store failed", "/some/.rse", "--repair"))
    waiting = deque([0])

    with pytest.raises(DamagedStoreError, match="the store failed: repair with `rse ingest --repair`") as raised:
        batching.attend_helpers([ours], [[]], waiting, {})
    assert (raised.value.folder, raised.value.flag, [*waiting]) == ("/some/.rse", "--repair", [])


def test_a_batch_is_answered_where_no_process_can_be_started(
    indexed_once: Path, rse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(batching, "WORTH_STARTING", 1)
    monkeypatch.setattr(batching, "count_jobs", lambda: 2)
    monkeypatch.setattr(spawning, "start_worker", refuse)

    done = rse("query", "--batch", "-", cwd=indexed_once, stdin=b"lens of the lighthouse\nroses in March\n")

    assert (done.code, done.stderr, len(done.jsonl)) == (0, "", 2)


def test_a_batch_whose_index_is_gone_at_its_end_prints_nothing(
    indexed: Path, rse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend = batching.attend_helpers

    def delete(*arguments: Any) -> None:
        attend(*arguments)
        shutil.rmtree(indexed / ".rse")

    monkeypatch.setattr(batching, "attend_helpers", delete)
    done = rse("query", "--batch", "-", cwd=indexed, stdin=b"lens of the lighthouse\n")

    assert (done.code, done.stdout) == (2, b"")
    assert len(done.stderr.splitlines()) == 1


def test_a_batch_exits_with_1_only_where_nothing_was_found_at_all(indexed_once: Path, rse: Run) -> None:
    done = rse("query", "--batch", "-", cwd=indexed_once, stdin=b"opera in Vienna\nbisque recipe\n")

    assert (done.code, done.stderr) == (1, "")
    assert [one["segments"] for one in done.jsonl] == [[], []]


def test_every_line_of_a_batch_that_cannot_be_used_is_named(indexed_once: Path, rse: Run) -> None:
    lines = [
        "fine",
        '{"text": 1}',
        "{not json",
        '{"query": []}',
        '{"query": ["a", 2]}',
        '{"query": "a", "id": NaN}',
        '{"query": "a", "id": 1e999}',
        '{"query": ' + "[" * 100_000,
        '{"query": "a',
    ]

    done = rse("query", "--batch", "-", cwd=indexed_once, stdin="\n".join(lines).encode())

    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr == (
        "rse: standard input line 2: no query; "
        "standard input line 3: not JSON: expecting property name enclosed in double quotes at column 2; "
        "standard input line 4: no query; "
        "standard input line 5: no query; "
        "standard input line 6: the id holds a number that JSON has no way to write; "
        "standard input line 7: the id holds a number that JSON has no way to write; "
        "standard input line 8: nested too deeply; "
        "standard input line 9: not JSON: unterminated string starting at column 11\n"
    )


def test_a_blank_query_in_a_file_of_cases_finds_nothing_and_stops_no_other(indexed_once: Path, rse: Run) -> None:
    done = rse(
        "query",
        "--batch",
        "-",
        cwd=indexed_once,
        stdin=b'{"id": 7, "query": ""}\n{"query": "the filter of the pump"}\n',
    )

    blank, other = done.jsonl
    assert done.code == 0
    assert (blank["id"], blank["queries"], blank["segments"], blank["confidence"]) == (7, [""], [], 0.0)
    assert other["segments"]


@pytest.mark.parametrize(
    ("batch", "reason"),
    [("nowhere.txt", "can't read nowhere.txt: No such file or directory"), ("docs", "can't read docs: Is a directory")],
)
def test_a_batch_that_cannot_be_read_is_one_line(indexed_once: Path, rse: Run, batch: str, reason: str) -> None:
    done = rse("query", "--batch", batch, cwd=indexed_once)

    assert (done.code, done.stdout, done.stderr) == (2, b"", f"rse: {reason}\n")


def test_a_batch_without_a_query_is_one_line(indexed_once: Path, tmp_path: Path, rse: Run) -> None:
    (tmp_path / "blank.txt").write_text("\n\n")

    piped = rse("query", "--batch", "-", cwd=indexed_once, stdin=b"\n\n")
    named = rse("query", "--batch", tmp_path / "blank.txt", cwd=indexed_once)

    assert piped.stderr == "rse: standard input holds no query\n"
    assert named.stderr == f"rse: {tmp_path / 'blank.txt'} holds no query\n"


def test_a_fault_in_a_batch_names_its_file_and_line(indexed_once: Path, tmp_path: Path, rse: Run) -> None:
    (tmp_path / "asked.jsonl").write_text('{"query": "the pump"}\n{"query": 1}\n')

    done = rse("query", "--batch", tmp_path / "asked.jsonl", cwd=indexed_once)

    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr == f"rse: {tmp_path / 'asked.jsonl'} line 2: no query\n"


# A prompt


def test_a_budget_that_holds_no_segment_is_an_error_that_says_how_much_it_takes(indexed_once: Path, rse: Run) -> None:
    asked = ("query", "the filter of the pump", "--format", "context", "--max-tokens")

    done = rse(*asked, "3", cwd=indexed_once)

    said = "rse: --max-tokens 3 is too few: where the first segment lies takes (\\d+), or less with --no-header\n"
    least = re.fullmatch(said, done.stderr)
    assert (done.code, done.stdout) == (2, b"")
    assert least
    assert rse(*asked, str(int(least[1]) - 1), cwd=indexed_once).code == 2
    enough = rse(*asked, least[1], cwd=indexed_once)
    assert (enough.code, enough.stderr) == (0, "")
    assert enough.text.startswith("[1] docs/pump.md:")


# What is chosen


def spans(document: Any) -> list[tuple[str, int, int]]:
    return [(one["path"], one["start_char"], one["end_char"]) for one in document["segments"]]


def test_presets_go_from_few_sure_passages_to_all_there_is(sample: Path, rse: Run) -> None:
    chars = [
        rse("query", "safe climbing and rescue", "--preset", preset, "--json", cwd=sample).json["stats"]["chars"]
        for preset in ("precision", "balanced", "find_all")
    ]

    assert 0 < chars[0] < chars[1] < chars[2] <= 8000


@pytest.mark.parametrize("ceiling", [1, 10, 300, 1000])
def test_max_chars_is_never_exceeded(sample: Path, rse: Run, ceiling: int) -> None:
    done = rse("query", "safe climbing and rescue", "--max-chars", ceiling, "--json", cwd=sample).json

    assert 0 < done["stats"]["chars"] <= ceiling
    assert done["stats"]["chars"] == sum(len(one["text"]) for one in done["segments"])


@pytest.mark.parametrize("ceiling", [1, 10, 300, 1000])
def test_fill_uses_the_ceiling_up_exactly(sample: Path, rse: Run, ceiling: int) -> None:
    done = rse("query", "safe climbing and rescue", "--max-chars", ceiling, "--fill", "--json", cwd=sample).json

    assert done["stats"]["chars"] == ceiling
    assert done["params"]["fill"] is True


def test_limit_keeps_the_best_segments(sample: Path, rse: Run) -> None:
    every = rse("query", "battery", "--preset", "find_all", "--json", cwd=sample).json
    two = rse("query", "battery", "--preset", "find_all", "-n", 2, "--json", cwd=sample).json

    assert len(every["segments"]) > 2
    assert two["segments"] == every["segments"][:2]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--path", "docs/deep/"], {"docs/deep/roses.txt"}),
        (["--path", "*.md"], {"docs/pump.md"}),
        (["--type", "txt"], {"docs/lamp.txt", "docs/deep/roses.txt"}),
        (["--type", ".md", "--type", "txt"], {"docs/pump.md", "docs/lamp.txt", "docs/deep/roses.txt"}),
        (["--type", "txt", "--path", "docs/*.txt"], {"docs/lamp.txt"}),
    ],
)
def test_filters_come_before_ranking(indexed_once: Path, rse: Run, flags: list[str], expected: set[str]) -> None:
    done = rse(
        "query", "light", "--max-chars", 9999, "--fill", "--min-confidence", 0, "--json", *flags, cwd=indexed_once
    )

    assert {one["path"] for one in done.json["segments"]} == expected


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["pump", "--path", "*.zip"], ": no indexed file matches --path *.zip"),
        (["pump", "--type", "zip", "-t", "exe"], ": no indexed file matches --type zip, exe"),
        (["pump", "--path", "*.md", "--type", "zip"], ": no indexed file matches --type zip"),
        (["pump", "--path", "*.md", "--type", "txt"], ": no indexed file matches both --path *.md and --type txt"),
        (["量子力学计算"], ": no word of the query occurs in the index"),
        (["量子力学计算", "-t", "md"], ": no word of the query occurs in the files that the filters leave"),
        (["pump", "--min-score", "99"], ": no segment reaches --min-score 99, the best has 1.03"),
        (
            ["pump", "--method", "dsrag", "--set", "minimum_value=9"],
            ": no segment of dsrag reaches minimum_value 9; --set minimum_value=… lowers it",
        ),
        (
            ["zzzz", "--method", "top-k", "--retriever", "lexical"],
            ": no word of the query occurs in the index",
        ),
    ],
)
def test_nothing_found_says_what_held_it_back(indexed_once: Path, rse: Run, arguments: list[str], reason: str) -> None:
    done = rse("query", *arguments, cwd=indexed_once)

    assert (done.code, done.stdout, done.stderr) == (1, b"", f"rse: nothing found{reason}\n")


def test_a_filter_of_a_settings_file_is_named_by_its_line(indexed: Path, rse: Run) -> None:
    rse("ingest", cwd=indexed)
    (indexed / "rse.toml").write_text("[query]\ntype = ['zip']\n")

    done = rse("query", "pump", cwd=indexed)

    assert done.code == 1
    assert done.stderr.endswith("rse: nothing found: no indexed file matches zip (rse.toml line 2)\n")


@pytest.mark.parametrize(
    "setting",
    [
        "top_k_for_document_selection=99999999999999999999999",
        "max_length=99999999999999999999999",
        "overall_max_length_extension=99999999999999999999999",
        "decay_rate=1e-320",
        "decay_rate=1e308",
    ],
)
@pytest.mark.parametrize("solver", ["greedy", "exact"])
def test_dsrag_takes_numbers_beyond_any_index(indexed_once: Path, rse: Run, setting: str, solver: str) -> None:
    done = rse(
        "query", "pump", "--method", "dsrag", "--set", setting, "--set", f"solver={solver}", "-l", cwd=indexed_once
    )

    assert (done.code, done.stdout, done.stderr) == (0, b"docs/pump.md\n", "")


def test_set_changes_one_parameter(indexed_once: Path, rse: Run) -> None:
    done = rse(
        "query",
        CLEANING,
        "--set",
        "irrelevant_chunk_penalty=0.5",
        "--set",
        "segment_cost=1",
        "--json",
        cwd=indexed_once,
    )

    assert (done.json["params"]["irrelevant_chunk_penalty"], done.json["params"]["segment_cost"]) == (0.5, 1.0)


def test_flag_environment_and_files_set_the_same_keys(indexed: Path, rse: Run, home: Path) -> None:
    def preset(*flags: str, **env: str) -> str:
        return str(rse("query", CLEANING, "--json", *flags, cwd=indexed, env=env).json["preset"])

    assert preset() == "balanced"
    (indexed / "user" / "rse").mkdir(parents=True)
    (indexed / "user" / "rse" / "config.toml").write_text('[query]\npreset = "find_all"\n')
    user = {"XDG_CONFIG_HOME": str(indexed / "user")}
    assert preset(**user) == "find_all"
    (indexed / "rse.toml").write_text('[query]\npreset = "precision"\n')
    assert preset(**user) == "precision"
    assert preset(RSE_PRESET="balanced", **user) == "balanced"
    assert preset("--preset", "find_all", RSE_PRESET="balanced", **user) == "find_all"


@pytest.mark.parametrize("how", ["flag", "set", "environment", "file"])
def test_the_ceiling_can_be_set_everywhere(indexed: Path, rse: Run, how: str) -> None:
    flags = {"flag": ["--max-chars", "40"], "set": ["--set", "max_chars=40"]}.get(how, [])
    env = {"RSE_MAX_CHARS": "40"} if how == "environment" else {}
    if how == "file":
        (indexed / "rse.toml").write_text("[query]\nmax_chars = 40\n")

    assert rse("query", CLEANING, "--json", *flags, cwd=indexed, env=env).json["params"]["max_chars"] == 40


# Nothing found


def test_nothing_found_is_exit_code_1_with_the_nearest_miss_on_stderr(indexed_once: Path, rse: Run) -> None:
    done = rse("query", "opera in Vienna", cwd=indexed_once)

    assert (done.code, done.stdout) == (1, b"")
    assert done.stderr == (
        "rse: nothing found (confidence 0.00); nearest miss: docs/lamp.txt:1-2 "
        "“The lamp of the lighthouse turns once in ten seconds. Its l…”; --min-confidence 0 shows it\n"
    )


def test_nothing_found_is_a_full_document_in_json(indexed_once: Path, rse: Run) -> None:
    done = rse("query", "opera in Vienna", "--json", cwd=indexed_once)

    assert (done.code, done.json["segments"], done.json["stats"]["chars"]) == (1, [], 0)
    assert 0 <= done.json["confidence"] < 0.5


def test_min_confidence_moves_the_floor(indexed_once: Path, rse: Run) -> None:
    off = rse("query", "opera in Vienna", "--min-confidence", "0", "-l", cwd=indexed_once)
    sure = rse("query", CLEANING, "--min-confidence", "1", cwd=indexed_once)

    assert (off.code, off.text) == (0, "docs/lamp.txt\n")
    assert (sure.code, sure.stdout) == (1, b"")


@pytest.mark.parametrize("method", ["dsrag", "top-k", "sentence-window", "parent", "window-parent", "average"])
def test_a_floor_that_is_asked_for_holds_for_every_method(indexed_once: Path, rse: Run, method: str) -> None:
    found = rse("query", "opera in Vienna", "-m", method, "--json", cwd=indexed_once)
    held = rse("query", "opera in Vienna", "-m", method, "--json", "--min-confidence", "0.5", cwd=indexed_once)

    assert (held.code, held.json["segments"]) == (1, [])
    assert found.code == 0


def test_a_query_of_no_words_finds_nothing(indexed_once: Path, rse: Run) -> None:
    assert rse("query", "?!", cwd=indexed_once).code == 1


# Wrong use: one line on stderr, exit code 2, nothing on stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], 'give a query: rse query "how do I …"'),
        ([""], "a query is empty"),
        (["pump", " \n"], "a query is empty"),
        (["-"], "a query is empty"),
        (["x", "--batch", "f"], "give queries or --batch, not both"),
        (["x", "--json", "--plain"], "give one format, not json and plain"),
        (["x", "-l", "--jsonl"], "give one format, not files and jsonl"),
        (["--batch", "f", "--plain"], "--batch prints JSON lines (--jsonl)"),
        (["x", "-0"], "-0 goes with -l"),
        (["x", "--preset", "best"], "--preset must be precision, balanced or find_all, not 'best'"),
        (["x", "--preset", "balancd"], "--preset must be precision, balanced or find_all, not 'balancd'; did you mean 'balanced'?"),
        (["x", "--preset", "find-all"], "--preset must be precision, balanced or find_all, not 'find-all'; did you mean 'find_all'?"),
        (["x", "--retriever", "lexica"], "--retriever must be dense, lexical or hybrid, not 'lexica'; did you mean 'lexical'?"),
        (["x", "--format", "jsn"], "--format takes text, json, jsonl, plain, files, context, not 'jsn'; did you mean 'json'?"),
        (["x", "--return", "pageimages"], "--return takes text, page-images, dynamic, not 'pageimages'; did you mean 'page-images'?"),
        (["x", "--answer"], "--answer needs a language model: name it with --llm"),
        (["x", "--min-score", "nan"], "--min-score must be a finite number, not nan"),
        (["x", "--min-score", "1e400", "--mmr", "nan"], "--mmr must lie in [0, 1], not nan; --min-score must be a finite number, not inf"),
        (["x", "--max-chars", "0"], "--max-chars must be a whole number of at least 1, not 0"),
        (["x", "--limit", "0"], "--limit must be a whole number of at least 1, not 0"),
        (["x", "--min-confidence", "2"], "--min-confidence must be a number from 0 to 1, not 2.0"),
        (["x", "--min-confidence", "nan"], "--min-confidence must be a number from 0 to 1, not nan"),
        (["x", "--set", "segment_cots=1"], "--set: the method rse has no parameter 'segment_cots'; did you mean 'segment_cost'?"),
        (["x", "--set", "segment_cost"], "--set takes key=value, not 'segment_cost'"),
        (["x", "--set", "segment_cost=many"], "--set: segment_cost must be a number, not 'many'"),
        (["x", "--set", "segment_cost=-1"], "segment_cost must be a finite number of at least 0, not -1.0"),
        (["x", "--set", "irrelevant_chunk_penalty=2"], "irrelevant_chunk_penalty must be at most 1, not 2.0"),
        (["x", "--set", "segment_cost=1e308"], "segment_cost must be at most 1,000,000, not 1e+308"),
        (["x", "--set", "weight_c0=1e7"], "weight_c0 must be at most 1,000,000, not 10000000.0"),
        (["x", "--method", "dsrag", "--set", "decay_rate=0"], "decay_rate must be above 0, not 0"),
        (["x", "--method", "parent", "--set", "window=3"], "--set: the method parent has no parameter 'window'; it belongs to sentence-window, window-parent"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line(indexed_once: Path, rse: Run, arguments: list[str], reason: str) -> None:
    done = rse("query", *arguments, cwd=indexed_once)

    assert (done.code, done.stdout, done.stderr) == (2, b"", f"rse: {reason}\n")


def test_an_unknown_key_of_a_file_is_named_with_the_nearest(indexed: Path, rse: Run) -> None:
    (indexed / "rse.toml").write_text("[query]\npresets = 'precision'\n")

    done = rse("query", "pump", cwd=indexed)

    assert (done.code, done.stderr) == (
        2,
        "rse: rse.toml line 2: unknown key 'presets' in [query]; did you mean 'preset'?\n",
    )


def test_an_unknown_method_is_refused(indexed_once: Path, rse: Run) -> None:
    done = rse("query", "pump", cwd=indexed_once, env={"RSE_METHOD": "magic"})

    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr.startswith("rse: unknown method 'magic': use rse, ")
    assert done.stderr.count("\n") == 1


def test_a_query_before_any_ingest_says_which_command_to_run(documents: Path, rse: Run) -> None:
    done = rse("query", "pump", cwd=documents)

    assert (done.code, done.stdout, done.stderr) == (
        2,
        b"",
        "rse: no index in this folder or above it: run `rse ingest` in the folder to be indexed\n",
    )


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        ("nowhere", "no index at nowhere: run `rse ingest --store nowhere`"),
        ("docs", "no index at docs: run `rse ingest --store docs`"),
        ("docs/lamp.txt", "docs/lamp.txt is not a store but a file: give --store a folder"),
    ],
)
def test_a_store_that_is_none_is_one_line(documents: Path, rse: Run, store: str, reason: str) -> None:
    done = rse("query", "pump", "--store", store, cwd=documents)

    assert (done.code, done.stdout, done.stderr) == (2, b"", f"rse: {reason}\n")


def change_model(folder: Path, **changes: Any) -> None:
    manifest = folder / ".rse" / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"model": content["model"] | changes}))


def test_an_index_of_other_weights_is_refused_with_the_command_that_mends_it(
    indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    change_model(indexed, weights="0" * 64)

    done = rse("query", "pump", cwd=indexed)
    from_elsewhere = rse("query", "pump", "--store", indexed / ".rse", cwd=tmp_path_factory.mktemp("elsewhere"))

    reason = f"rse: {indexed}/.rse was made with another version of the model all-MiniLM-L6-v2: rebuild with "
    assert (done.code, done.stdout, done.stderr) == (2, b"", f"{reason}`rse ingest --rebuild`\n")
    assert from_elsewhere.stderr == f"{reason}`rse ingest --rebuild --store {indexed}/.rse`\n"
    assert rse("ingest", "--rebuild", cwd=indexed).code == 0
    assert rse("query", CLEANING, "-l", cwd=indexed).text == "docs/pump.md\n"


def test_an_index_of_a_model_that_is_not_here_is_one_line(indexed: Path, rse: Run) -> None:
    change_model(indexed, name="no-such-model")

    done = rse("query", "pump", cwd=indexed)

    assert (done.code, done.stdout, done.stderr.count("\n")) == (2, b"", 1)
    assert "no-such-model" in done.stderr


# Freshness


def test_one_line_says_how_many_files_have_changed(indexed: Path, rse: Run) -> None:
    (indexed / "docs" / "new.md").write_text("Something new.")
    (indexed / "docs" / "lamp.txt").unlink()
    (indexed / "docs" / "pump.md").write_text(PUMP + "More.\n")
    os.utime(indexed / "docs" / "deep" / "roses.txt", (1, 1))

    done = rse("query", CLEANING, "-l", cwd=indexed)

    assert (done.text, done.stderr) == (
        "docs/pump.md\n",
        "rse: 3 files changed since the index was made (--refresh updates it)\n",
    )


def test_refresh_brings_the_index_up_to_date_first(indexed: Path, rse: Run) -> None:
    (indexed / "docs" / "lamp.txt").write_text(LAMP + "\nThe keeper's name was Ottilie Brandt.\n")

    stale = rse("query", "Ottilie Brandt the keeper", "--plain", cwd=indexed)
    fresh = rse("query", "Ottilie Brandt the keeper", "--refresh", "--plain", cwd=indexed)
    later = rse("query", "Ottilie Brandt the keeper", "--plain", cwd=indexed)

    assert "Ottilie" not in stale.text
    assert "docs/lamp.txt:4: The keeper's name was Ottilie Brandt.\n" in fresh.text
    assert (fresh.code, fresh.stderr) == (0, "")
    assert (later.stdout, later.stderr) == (fresh.stdout, "")


def test_refresh_knows_the_filters_of_the_ingest(documents: Path, rse: Run) -> None:
    rse("ingest", "docs", "--exclude", "lamp.*", cwd=documents)
    (documents / "elsewhere.md").write_text("Not part of what was ingested.")
    (documents / "docs" / "new.md").write_text("Part of it.")

    rse("query", "pump", "--refresh", cwd=documents)

    assert rse("status", "--json", cwd=documents).json["files"] == 3
    assert rse("status", "--json", cwd=documents).json["stale"] is False


# Pipes and processes


@pytest.mark.parametrize("flags", [["--plain"], ["--json"], []])
def test_a_reader_that_goes_away_is_no_error(
    sample: Path, start_rse: Callable[..., subprocess.Popen[bytes]], flags: list[str]
) -> None:
    process = start_rse("query", "battery", "--max-chars", 30_000, "--fill", *flags, cwd=sample, bufsize=0)
    assert process.stdout and process.stderr
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        # Smaller than the answer, so that writing it fails once the reader has gone.
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    assert len(process.stdout.read(1)) == 1
    process.stdout.close()

    assert (process.stderr.read(), process.wait(60)) == (b"", 0)


def test_a_moved_folder_keeps_its_index(indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    moved = tmp_path_factory.mktemp("moved") / "folder"
    shutil.move(indexed, moved)

    done = rse("query", CLEANING, "-l", cwd=moved)

    assert (done.text, done.stderr) == ("docs/pump.md\n", "")


# Texts


def test_every_text_is_the_slice_of_its_file_and_its_lines_hold_it(sample: Path, rse: Run) -> None:
    queries = "\n".join(
        ["climbing the mast", "leave and holidays", "battery", "年假", "retry", "M12", "invoice", "2025"]
    )
    suffixes = (".md", ".txt", ".py", ".csv", ".jsonl", ".rst")
    checked: set[str] = set()

    for flags in ([], ["--max-chars", 700, "--fill"], *(["--type", suffix] for suffix in suffixes)):
        done = rse("query", "--batch", "-", "--min-confidence", 0, *flags, cwd=sample, stdin=queries.encode())
        for segment in (segment for one in done.jsonl for segment in one["segments"]):
            if segment["start_line"] is None:
                continue
            with (sample / segment["path"]).open(encoding="utf-8", newline="") as file:
                content = file.read()
            assert segment["text"] == content[segment["start_char"] : segment["end_char"]]
            lead = segment["start_char"] + len(segment["text"]) - len(segment["text"].lstrip())
            tail = segment["start_char"] + len(segment["text"].rstrip())
            assert segment["start_line"] == content.count("\n", 0, lead) + 1
            assert segment["end_line"] == content.count("\n", 0, tail) + 1
            checked.add(Path(segment["path"]).suffix)

    assert checked >= set(suffixes)


# What a reader of the text alone can't know


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, rse_process: Run) -> Path:
    """One long table in each of four formats; the rows asked for are far below the names of the columns."""
    folder = tmp_path_factory.mktemp("tables")
    names = [
        first + last for first in ("Al", "Bren", "Cor", "Dun", "El", "Far") for last in ("ston", "wick", "ford", "by")
    ]
    rows = [(name, 13 * at % 97 + 3, 7 * at % 31 + 1) for at, name in enumerate(names)]
    markdown = "".join(f"| {name} | {granite} | {slate} |\n" for name, granite, slate in rows)
    cells = "".join(f"<tr><td>{name}</td><td>{copper}</td><td>{tin}</td></tr>" for name, copper, tin in rows)
    simple = "".join(f"{name:<11} {ships:<10} {sailed}\n" for name, ships, sailed in rows)
    rule = "=========== ========== =======\n"
    texts = {
        "quarries.md": f"# Quarries\n\n## Output\n\n| Place | Granite t | Slate t |\n|---|---|---|\n{markdown}",
        "mines.html": f"<h1>Mines</h1><table><tr><th>Place</th><th>Copper t</th><th>Tin t</th></tr>{cells}</table>",
        "mills.csv": "Place,Wool t,Flax t\n" + "".join(f"{name},{wool},{flax}\n" for name, wool, flax in rows),
        "docks.rst": f"Docks\n=====\n\n{rule}Place       Arrivals   Sailed\n{rule}{simple}{rule}",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    assert rse_process("ingest", cwd=folder).code == 0
    return folder


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        ("quarries.md", "| Place | Granite t | Slate t |"),
        ("mines.html", "Place | Copper t | Tin t"),
        ("mills.csv", "Place,Wool t,Flax t"),
        ("docks.rst", "Place Arrivals Sailed"),
    ],
)
def test_rows_far_below_are_shown_with_the_names_of_their_columns(
    tables: Path, rse: Run, path: str, columns: str
) -> None:
    asked = ["query", "Farwick", "--path", path, "--max-chars", "60", "--min-confidence", "0"]

    (segment,) = rse(*asked, "--json", cwd=tables).json["segments"]
    assert "Farwick" in segment["text"] and columns not in " ".join(segment["text"].split())
    assert segment["columns"] == columns
    assert f"\n  Columns: {columns}\n" in rse(*asked, cwd=tables).text
    assert f"\nColumns: {columns}\n" in rse(*asked, "--format", "context", cwd=tables).text
    assert "Columns:" not in rse(*asked, "--no-header", cwd=tables).text
    assert "Columns:" not in rse(*asked, "--format", "context", "--no-header", cwd=tables).text


def test_a_segment_that_holds_the_names_of_its_columns_does_not_repeat_them(tables: Path, rse: Run) -> None:
    (segment,) = rse(
        "query", "output of quarries", "--path", "quarries.md", "--min-confidence", "0", "--json", cwd=tables
    ).json["segments"]

    assert "| Place | Granite t | Slate t |" in segment["text"]
    assert segment["columns"] == ""


# Steps after the choice, as they are told


def test_every_method_and_step_has_the_same_fields(indexed_once: Path, rse: Run) -> None:
    steps = [
        "--expand-short",
        "--complete-faq",
        "--dedupe",
        "--composite",
        "--min-score",
        "0",
        "--mmr",
        "0.5",
        "-n",
        "3",
    ]
    plain = rse("query", CLEANING, "--json", cwd=indexed_once).json
    assert (plain["refinement"], plain["refinement_params"], plain["reranker"]) == (["join"], {}, None)
    for method in METHODS:
        done = rse("query", CLEANING, "--json", "--method", method, *steps, cwd=indexed_once).json
        assert (list(done), list(done["segments"][0])) == (list(plain), list(plain["segments"][0]))
        joined = [] if method == "dsrag" else ["join"]
        assert done["refinement"] == [
            "expand_short",
            "complete_faq",
            *joined,
            "dedupe",
            "composite",
            "min_score",
            "mmr",
            "limit",
        ]
        assert done["refinement_params"] == {
            "faq_boost": 1.2,
            "weight_model": 0.6,
            "weight_base": 0.3,
            "weight_source": 0.1,
            "weight_prior": 0.05,
            "min_score": 0.0,
            "mmr": 0.5,
        }


def test_weights_of_the_composite_score_come_from_a_file_a_variable_or_set(indexed: Path, rse: Run) -> None:
    rse("ingest", cwd=indexed)
    (indexed / "rse.toml").write_text("[refine]\nweight_model = 0\nweight_base = 0\nfaq_boost = 2\n")
    asked = ["query", "pump", "--composite", "--complete-faq", "--json", "--set", "weight_prior=0"]

    done = rse(*asked, cwd=indexed, env={"RSE_WEIGHT_SOURCE": "0.25"}).json

    assert done["refinement_params"] == {
        "faq_boost": 2.0,
        "weight_model": 0.0,
        "weight_base": 0.0,
        "weight_source": 0.25,
        "weight_prior": 0.0,
    }
    assert {one["score"] for one in done["segments"]} == {0.25}
    wrong = rse("query", "pump", "--set", "weight_modle=1", cwd=indexed)
    assert (wrong.code, wrong.stdout) == (2, b"")
    assert "--set: the method rse has no parameter 'weight_modle'; did you mean 'weight_model'?" in wrong.stderr


def test_each_of_several_queries_has_its_own_confidence(indexed_once: Path, rse: Run) -> None:
    together = rse("query", CLEANING, "zebra crossings of Vienna", "--json", cwd=indexed_once).json
    alone = [rse("query", one, "--json", cwd=indexed_once).json["confidence"] for one in together["queries"]]

    assert together["confidences"] == alone
    assert together["confidence"] == max(alone) > min(alone)


def test_ties_fall_by_path_whatever_the_method(tmp_path: Path, rse: Run) -> None:
    for name in ("b.md", "a.md", "c.md"):
        (tmp_path / name).write_text("The kettle boils water in three minutes.\n")
    assert rse("ingest", cwd=tmp_path).code == 0
    for method in METHODS:
        done = rse(
            "query", "kettle boils water", "--method", method, "--json", "--min-confidence", "0", cwd=tmp_path
        ).json
        assert [one["path"] for one in done["segments"]] == ["a.md", "b.md", "c.md"], method
        one = rse("query", "kettle boils water", "-m", method, "-n", "1", "-l", "--min-confidence", "0", cwd=tmp_path)
        assert one.text == "a.md\n", method
