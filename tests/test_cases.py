"""A file of cases is read as JSON lines or YAML, and every fault in it is told with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.adapters import cases as files
from rse_cli.adapters.cases import read_cases, scan_cases
from rse_cli.core.cases import Case, Expectation
from rse_cli.errors import CasesError, UsageError


def write(folder: Path, text: str | bytes, name: str = "cases.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def find_faults(folder: Path, text: str | bytes, name: str = "cases.yaml") -> list[str]:
    return [f"{fault.line}: {fault.message}" for fault in scan_cases(write(folder, text, name))[1]]


YAML = """\
# Questions.
- id: cleaning
  query: How do I clean it?
  expect:
    - path: ./docs/pump.md
      start_char: 3
      end_char: 9
    - path: docs/lamp.txt
      text: |
        turns once
        in ten seconds
- query: [frost, "storage in winter"]
  generated: true
  expect: [{path: docs/pump.md, lines: [7, 9]}, {path: manual.pdf, pages: [5, 4, 5]}, {path: notes.txt}]

- {query: 2024-01-01, expect: []}
"""

CASES = [
    Case(
        "cleaning",
        ("How do I clean it?",),
        (
            Expectation("docs/pump.md", 5, chars=(3, 9)),
            Expectation("docs/lamp.txt", 8, text="turns once\nin ten seconds\n"),
        ),
        2,
    ),
    Case(
        "case-2",
        ("frost", "storage in winter"),
        (
            Expectation("docs/pump.md", 14, lines=(7, 9)),
            Expectation("manual.pdf", 14, pages=(4, 5)),
            Expectation("notes.txt", 14),
        ),
        12,
        generated=True,
    ),
    Case("case-3", ("2024-01-01",), (), 16),
]


def test_yaml_gives_cases_with_the_lines_they_begin_at(tmp_path: Path) -> None:
    assert read_cases(write(tmp_path, YAML)) == CASES


def test_json_lines_give_the_same_cases_one_a_line(tmp_path: Path) -> None:
    text = (
        "\ufeff"
        '{"id": "cleaning", "query": "How do I clean it?", "expect": [{"path": "a.md", "start_char": 3, "end_char": 9}]}\n'
        "\n"
        '{"query": ["frost", "winter"], "expect": []}\r\n'
    )
    assert read_cases(write(tmp_path, text, "cases.jsonl")) == [
        Case("cleaning", ("How do I clean it?",), (Expectation("a.md", 1, chars=(3, 9)),), 1),
        Case("case-2", ("frost", "winter"), (), 3),
    ]


def test_without_a_known_ending_a_brace_tells_json_lines_from_yaml(tmp_path: Path) -> None:
    assert read_cases(write(tmp_path, '{"query": "q", "expect": []}', "cases"))[0].queries == ("q",)
    assert read_cases(write(tmp_path, "- {query: q, expect: []}", "cases"))[0].queries == ("q",)
    assert read_cases(write(tmp_path, '[{"query": "q", "expect": []}]', "cases.json"))[0].queries == ("q",)


@pytest.mark.parametrize("name", ["cases.yaml", "cases.jsonl"])
def test_all_faults_are_told_at_once_each_with_its_line(tmp_path: Path, name: str) -> None:
    faulty: list[dict[str, Any]] = [
        {"id": "a", "query": "q", "expects": []},
        {"id": "a", "query": "q", "expect": [{"path": "x", "lines": [3, 2]}]},
        {"id": 7, "query": "", "expect": "x"},
        {"query": [], "expect": [{"text": "quote"}, {"path": "/etc/passwd"}, "x.md"]},
        {"query": ["q", 1], "expect": [{"path": "x", "text": " "}, {"path": "x", "start_char": 4}]},
        {"id": "a", "expect": [], "generated": "yes"},
        {"query": "q", "expect": [{"path": "x", "start_char": 4, "end_char": 4}, {"path": "x", "lines": [1]}]},
        {"query": "q", "expect": [{"path": "x", "pages": [0]}, {"path": "x", "pages": [1], "text": "t"}]},
        {"query": "q", "expect": [{"path": "x", "star_char": 1, "end_char": -1}]},
    ]
    lines = [json.dumps(one) for one in faulty]
    text = "\n".join(lines if name.endswith("l") and "json" in name else [f"- {line}" for line in lines])
    assert find_faults(tmp_path, text, name) == [
        "1: no expect; `expect: []` says that nothing should be found",
        "1: unknown key 'expects'; did you mean 'expect'?",
        "2: lines must be [first, last], from 1, not [3, 2]",
        "2: the id 'a' is taken by the case in line 1",
        "3: expect must be a list of places, empty where nothing should be found, not 'x'",
        "3: id must be a text (put it in quotes), not 7",
        "3: query must be a text or a list of texts, none of them empty, not an empty text",
        "4: a place has the keys path, start_char, end_char, text, lines and pages, not 'x.md'",
        "4: a place without a path",
        "4: path must be a path relative to the root of the index, not '/etc/passwd'",
        "4: query must be a text or a list of texts, none of them empty, not a list",
        "5: query must be a text or a list of texts, none of them empty, not a list",
        "5: start_char and end_char go together",
        "5: text must be a text with words, not an empty text",
        "6: generated must be true or false, not 'yes'",
        "6: no query",
        "6: the id 'a' is taken by the case in line 1",
        "7: end_char 4 isn't after start_char 4",
        "7: lines must be [first, last], from 1, not [1]",
        "8: a place is named in one way, not by text and pages",
        "8: pages must be a list of page numbers, from 1, not [0]",
        "9: end_char must be a whole number from 0, not -1",
        "9: start_char and end_char go together",
        "9: unknown key 'star_char'; did you mean 'start_char'?",
    ]


def test_in_yaml_a_fault_has_the_line_of_its_key(tmp_path: Path) -> None:
    text = "- id: a\n  query: q\n  expect:\n    - path: x\n      lines:\n        - 1\n        - a\n  colour: red\n"
    assert find_faults(tmp_path, text) == [
        "5: lines must be [first, last], from 1, not a list",
        "8: unknown key 'colour'; a case has id, query, expect and generated",
    ]


def test_a_number_or_a_boolean_is_no_text(tmp_path: Path) -> None:
    assert find_faults(tmp_path, "- query: yes\n  expect: []\n- query: 12\n  expect: []\n- query:\n  expect: []\n") == [
        "1: query must be a text or a list of texts, none of them empty, not true",
        "3: query must be a text or a list of texts, none of them empty, not 12",
        "5: query must be a text or a list of texts, none of them empty, not nothing",
    ]


def test_a_true_is_no_position(tmp_path: Path) -> None:
    text = '{"query": "q", "expect": [{"path": "x", "start_char": false, "end_char": true}]}'
    assert find_faults(tmp_path, text, "c.jsonl") == [
        "1: end_char must be a whole number from 0, not true",
        "1: start_char must be a whole number from 0, not false",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- query: &a q\n  expect: []\n- query: *a\n  expect: []", "1: anchors are not read: drop &a"),
        ("- query: *a\n", "1: aliases are not read: write out what *a stands for"),
        (
            "- query: !!python/object:os.system x\n",
            "1: tags are not read: drop tag:yaml.org,2002:python/object:os.system",
        ),
        (
            "\n- query: q\n  expect: []\n---\n- query: q\n",
            "4: a second YAML document (---): put all cases into one list",
        ),
        ("query: q\n", "1: the file must be a list of cases: each begins with `- `"),
        ("just a text", "1: the file must be a list of cases: each begins with `- `"),
        ("- " + "[" * 50 + "]" * 50, "1: nested too deeply"),
        ("- query: q\n  expect: [}\n", "2: not YAML: did not find expected node content"),
        ("- query: q\n  query: r\n  expect: []\n", "2: the key 'query' is given twice"),
        ("- 3\n", "1: a case has the keys id, query, expect and generated, not 3"),
        ("- q\n", "1: a case has the keys id, query, expect and generated, not 'q'"),
        ("", "1: no cases"),
        ("[]", "1: no cases"),
        (b"- query: q\n  expect: []\n- query: \xff\n", "3: not UTF-8"),
    ],
)
def test_what_yaml_can_do_beyond_cases_is_refused(tmp_path: Path, text: str | bytes, fault: str) -> None:
    assert find_faults(tmp_path, text) == [fault]


@pytest.mark.parametrize("in_c", [True, False])
def test_a_control_character_in_yaml_is_a_fault_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_c: bool
) -> None:
    if not in_c:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    faults = find_faults(tmp_path, "- query: 泵泵泵泵\n  expect: []\n- query: \x01\n  expect: []\n\n\n\n")
    assert faults == ["3: a character that YAML doesn't allow: U+0001"]


def test_ten_lines_of_aliases_never_become_gigabytes(tmp_path: Path) -> None:
    lines = ["- &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    assert find_faults(tmp_path, "\n".join(lines)) == ["1: anchors are not read: drop &a0"]


def test_yaml_nested_a_hundred_thousand_times_is_refused_at_once(tmp_path: Path) -> None:
    (fault,) = find_faults(tmp_path, "- " + "[" * 100_000)
    # The parser in C has a limit of its own.
    assert fault in ("1: nested too deeply", "1: not YAML: exceeded maximum nesting depth")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"query": "q"', "2: not JSON: expecting ',' delimiter at column 14"),
        ('{"query": "q", "query": "r", "expect": []}', "2: not JSON: the key 'query' is given twice"),
        ('{"query": NaN, "expect": []}', "2: not JSON: NaN is no number in JSON"),
        ('{"query": ' + "[" * 200_000, "2: nested too deeply"),
        ("[1]", "2: a case has the keys id, query, expect and generated, not [1]"),
    ],
)
def test_a_line_that_is_no_json_is_a_fault_and_the_others_are_read(tmp_path: Path, line: str, fault: str) -> None:
    path = write(tmp_path, f'{{"query": "a", "expect": []}}\n{line}\n{{"query": "b", "expect": []}}\n', "cases.jsonl")
    cases, faults = scan_cases(path)
    assert [case.queries for case in cases] == [("a",), ("b",)]
    assert [f"{one.line}: {one.message}" for one in faults] == [fault]


def test_half_of_a_surrogate_pair_becomes_a_question_mark(tmp_path: Path) -> None:
    path = write(tmp_path, '{"query": "a\\ud800b", "expect": []}', "cases.jsonl")
    assert read_cases(path)[0].queries == ("a?b",)


def test_faults_are_raised_together_with_file_and_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "- query: q\n- expect: []\n")
    with pytest.raises(CasesError) as caught:
        read_cases(path)
    assert caught.value.faults == (
        (1, "no expect; `expect: []` says that nothing should be found"),
        (2, "no query"),
    )
    assert str(caught.value) == (
        f"{path} line 1: no expect; `expect: []` says that nothing should be found; {path} line 2: no query"
    )


def test_a_file_that_is_missing_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"can't read .*none.yaml: No such file or directory"):
        read_cases(tmp_path / "none.yaml")
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 10_000_000)
    path = write(tmp_path, b"# " + b"x" * 10_000_000)
    with pytest.raises(UsageError, match=r"has more than 10 MB: split it"):
        read_cases(path)


def test_more_cases_than_a_day_can_answer_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_CASES", 2)
    assert find_faults(tmp_path, "- {query: q, expect: []}\n" * 4) == ["3: more than 2 cases: split the file"]


# YAML allows no control characters as they are, not even C1.
TEXTS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"]), min_size=1, max_size=20)
QUERIES = st.lists(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cases")


@given(QUERIES)
def test_any_queries_come_back_from_json_lines(folder: Path, queries: list[list[str]]) -> None:
    text = "\n".join(json.dumps({"query": texts, "expect": []}) for texts in queries)
    assert [list(case.queries) for case in read_cases(write(folder, text, "cases.jsonl"))] == queries


@given(QUERIES)
def test_any_queries_come_back_from_yaml(folder: Path, queries: list[list[str]]) -> None:
    text = yaml.safe_dump([{"query": texts, "expect": []} for texts in queries], allow_unicode=True)
    assert [list(case.queries) for case in read_cases(write(folder, text))] == queries


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("a.md"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "query", "expect", "path", "text", "lines", "pages", "start_char", "end_char", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.binary(max_size=80) | VALUES.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(["c.jsonl", "c.yaml"]),
)
def test_any_file_gives_cases_or_faults_each_on_one_line(folder: Path, data: bytes, name: str) -> None:
    try:
        cases, faults = scan_cases(write(folder, data, name))
    except UsageError as fault:
        assert len(str(fault).splitlines()) == 1
        return
    assert faults or all(case.queries for case in cases)
    assert all(isinstance(query, str) for case in cases for query in case.queries)
    lines = data.count(b"\n") + data.count(b"\r") + 1
    assert all(1 <= fault.line <= lines + 1 and len(fault.message.splitlines()) == 1 for fault in faults)


@given(VALUES.filter(lambda value: isinstance(value, dict)))
def test_whatever_a_case_holds_it_is_read_alike_from_json_and_yaml(folder: Path, value: dict[str, Any]) -> None:
    text = json.dumps(value, allow_nan=True)

    from_json = scan_cases(write(folder, text, "c.jsonl"))
    from_yaml = scan_cases(write(folder, f"- {text}", "c.yaml"))

    assert bool(from_json[1]) == bool(from_yaml[1])
    if not from_json[1]:
        assert from_json[0] == from_yaml[0]
