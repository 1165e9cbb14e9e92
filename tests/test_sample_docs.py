"""The sample is what its cases say it is, and its binary documents are what their script makes."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

SAMPLE = Path(__file__).parent.parent / "sample_docs"
BINARIES = {
    "manual.pdf",
    "report-2024.pdf",
    "report-2025.pdf",
    "minutes.docx",
    "slides.pptx",
    "budget.xlsx",
    "skarvholm.epub",
}


def load_cases() -> list[dict[str, Any]]:
    cases = yaml.safe_load((SAMPLE / "cases.yaml").read_text(encoding="utf-8"))
    assert isinstance(cases, list)
    return cases


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_binaries", SAMPLE / "make_binaries.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expectations(*, key: str) -> Iterator[tuple[str, str, Any]]:
    for case in load_cases():
        for expected in case["expect"]:
            if key in expected:
                yield case["id"], expected["path"], expected[key]


def fold(text: str) -> str:
    return " ".join(text.split())


def pages_of(path: Path) -> list[str]:
    import pymupdf

    with pymupdf.open(path) as document:
        return [page.get_text() for page in document]


def content_of(path: Path) -> list[str]:
    """Paragraphs, cells or pages of a document, in order."""
    import docx
    import openpyxl
    import pptx

    if path.suffix == ".pdf":
        return pages_of(path)
    if path.suffix == ".docx":
        document = docx.Document(str(path))
        cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
        return [paragraph.text for paragraph in document.paragraphs] + cells
    if path.suffix == ".xlsx":
        book = openpyxl.load_workbook(path)
        return [
            str(cell) for sheet in book for row in sheet.iter_rows(values_only=True) for cell in (sheet.title, *row)
        ]
    if path.suffix == ".pptx":
        slides = pptx.Presentation(str(path)).slides
        tables = [shape.table for slide in slides for shape in slide.shapes if shape.has_table]
        frames = [shape.text_frame.text for slide in slides for shape in slide.shapes if shape.has_text_frame]
        notes = [slide.notes_slide.notes_text_frame.text for slide in slides]
        return frames + notes + [cell.text for table in tables for row in table.rows for cell in row.cells]
    with zipfile.ZipFile(path) as archive:
        return [f"{name}\n{archive.read(name).decode()}" for name in archive.namelist()]


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("binaries")
    load_script().make_all(folder)
    return folder


def test_there_are_twenty_answerable_cases_and_four_that_have_no_answer() -> None:
    cases = load_cases()

    assert sum(bool(case["expect"]) for case in cases) == 20
    assert sum(case["expect"] == [] for case in cases) == 4


def test_every_case_has_an_id_of_its_own_and_a_query() -> None:
    cases = load_cases()

    assert len({case["id"] for case in cases}) == len(cases)
    assert all(case["query"].strip() for case in cases)
    assert all(set(case) == {"id", "query", "expect"} for case in cases)


def test_every_expectation_names_one_place_in_a_file_of_the_sample() -> None:
    for case in load_cases():
        for expected in case["expect"]:
            assert (SAMPLE / expected["path"]).is_file(), case["id"]
            assert len(set(expected) & {"text", "lines", "pages"}) == 1, case["id"]


def test_every_quote_occurs_exactly_once_in_its_document() -> None:
    quotes = list(expectations(key="text"))

    assert len(quotes) == 18
    for case, path, quote in quotes:
        file = SAMPLE / path
        text = "\n".join(content_of(file)) if file.name in BINARIES else file.read_text(encoding="utf-8")
        if file.suffix == ".html":
            text = re.sub("<[^>]+>", "", text)
        assert fold(text).count(fold(quote)) == 1, case


def test_lines_and_pages_of_cases_hold_what_they_are_named_for() -> None:
    lines = {
        case: (SAMPLE / path).read_text("utf-8").splitlines()[a - 1 : b]
        for case, path, (a, b) in expectations(key="lines")
    }
    pages = {
        case: fold(" ".join(pages_of(SAMPLE / path)[p - 1] for p in ps)) for case, path, ps in expectations(key="pages")
    }

    assert [line.split(",")[0] for line in lines["washer-part"]] == ["D3-0417", "D3-0418"]
    assert [json.loads(line)["time"][11:16] for line in lines["night-of-the-accident"]] == [
        "02:20",
        "02:58",
        "03:11",
        "03:11",
        "03:12",
        "03:25",
    ]
    assert "Setting up a lithium battery" in pages["lithium-setup"]
    assert "Release the brake and watch one full charge" in pages["lithium-setup"]
    assert "Net result 594 356" in pages["profit-2024"]
    assert "second mould for Whimbrel blades (640 thousand)" in pages["where-cash-went-2025"]


def test_eight_answers_are_longer_than_any_chunk() -> None:
    longest_chunk = 300

    assert len({case for case, _, quote in expectations(key="text") if len(fold(quote)) > longest_chunk + 100}) >= 8


def test_the_script_makes_all_binaries_and_they_are_small(rebuilt: Path) -> None:
    assert {file.name for file in rebuilt.iterdir()} == BINARIES
    assert sum((SAMPLE / name).stat().st_size for name in BINARIES) < 600_000


@pytest.mark.parametrize("name", sorted(BINARIES))
def test_a_rebuilt_binary_has_the_content_of_the_committed_one(rebuilt: Path, name: str) -> None:
    content = content_of(rebuilt / name)

    assert content == content_of(SAMPLE / name)
    assert sum(map(len, content)) > 1_000


@pytest.mark.parametrize("name", ["minutes.docx", "slides.pptx", "budget.xlsx", "skarvholm.epub"])
def test_a_second_build_gives_the_same_bytes(rebuilt: Path, tmp_path: Path, name: str) -> None:
    load_script().MAKERS[name](tmp_path / name)

    assert (tmp_path / name).read_bytes() == (rebuilt / name).read_bytes()


def test_the_budget_holds_the_results_of_its_formulas() -> None:
    import openpyxl

    summary = openpyxl.load_workbook(SAMPLE / "budget.xlsx", data_only=True)["Summary"]

    assert [row[3] - (row[2] - row[1]) for row in summary.iter_rows(min_row=2, values_only=True)] == [0] * 12


def test_no_figure_of_a_report_is_lost_between_source_and_pdf() -> None:
    for year in ("2024", "2025"):
        source = yaml.safe_load((SAMPLE / "sources" / f"report-{year}.yaml").read_text(encoding="utf-8"))
        rows = [row for name, rows in source.items() if name.endswith("_rows") for row in rows]
        text = fold(" ".join(pages_of(SAMPLE / f"report-{year}.pdf")))
        assert [row for row in rows if fold(" ".join(row)) not in text] == []
        assert len(rows) == 53


def test_the_figures_of_the_reports_add_up() -> None:
    for year in ("2024", "2025"):
        source = yaml.safe_load((SAMPLE / "sources" / f"report-{year}.yaml").read_text(encoding="utf-8"))
        revenue, cash, income, balance = (
            [[parse_figure(cell) for cell in row[1:]] for row in source[f"{name}_rows"]]
            for name in ("revenue", "cash", "income", "balance")
        )
        for column in range(2):
            assert sum(row[column] for row in revenue[:-1]) == revenue[-1][column]
            assert sum(row[column] for row in income[:6]) == income[6][column]
            assert income[6][column] + income[7][column] == income[8][column]
            assert income[8][column] + income[9][column] == income[10][column]
            assert sum(row[column] for row in balance[:4]) == balance[4][column]
            assert sum(row[column] for row in balance[5:10]) == balance[10][column]
        assert sum(row[0] for row in cash[:6]) == cash[6][0]
        assert sum(row[0] for row in cash[6:-1]) == cash[-1][0] == balance[3][0] - balance[3][1]


def parse_figure(cell: str) -> int:
    value = int(re.sub(r"[(),]", "", cell))
    return -value if cell.startswith("(") else value


def test_the_data_files_have_the_rows_they_promise() -> None:
    with (SAMPLE / "data" / "parts.csv").open(encoding="utf-8", newline="") as file:
        parts = list(csv.DictReader(file))
    events = [json.loads(line) for line in (SAMPLE / "data" / "events.jsonl").read_text("utf-8").splitlines()]

    assert len(parts) == 60
    assert all(None not in part and None not in part.values() for part in parts)
    assert len({part["part_no"] for part in parts}) == 60
    assert len(events) == 40


def test_the_texts_are_long_enough_for_answers_to_span_chunks() -> None:
    handbook, chinese, faq, notes = (
        (SAMPLE / name).read_text("utf-8") for name in ("handbook.md", "guide-zh.md", "faq.md", "notes.txt")
    )

    assert len(handbook) >= 25_000
    assert len(chinese) >= 4_000
    assert len(re.findall(r"^### .*\?$", faq, re.MULTILINE)) >= 30
    assert max(map(len, notes.splitlines())) <= 72


def test_what_makes_and_asks_the_sample_is_ignored() -> None:
    patterns = (SAMPLE / ".rseignore").read_text("utf-8").split("\n")

    assert {"make_binaries.py", "/sources/", "cases.yaml"} <= set(patterns)
