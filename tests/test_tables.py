"""Which chunks are rows of a table, which rows belong together, and what names their columns."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.core.tables import collect_row_terms, find_column_row, find_table_runs, is_table_text


@pytest.mark.parametrize(
    "text",
    [
        "Net sales $ 32,765 $ 31,657 30,109",
        "Cost of sales (16,682) (16,001) (15,040)",
        "Margin 49.1% 49.5% 50.0%",
        "Dividends — — 5",
        "Other - - -",
        "| Bonn | 300,000 | 141 | 1.5 |",
        "Loss $(5.2) €(1) ¥900",
        "–3 −4 -5",
        "1 2 3 a b c d e f g h i j",  # 3 of 13 are 23 %
    ],
)
def test_rows_of_numbers_are_table_text(text: str) -> None:
    assert is_table_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "Net sales 32,765 31,657",  # two numbers
        "1 2 3 a b c d e f g h i j k",  # 3 of 14 are 21 %
        "12/31/2018 5x 3-4 v1.2 a1",
        "In 2018 we sold 3 of 5 plants that had made losses for many years.",
        "- apples\n- pears\n- plums\n- cherries",
        "  – eins\n  – zwei\n  – drei",
        "1. Open\n2. Close\n3. Lock",
        "1) Open\n2) Close\n3) Lock",
        "|---|---|---|",
        "",
    ],
)
def test_prose_lists_and_rules_are_not(text: str) -> None:
    assert not is_table_text(text)


def test_a_dash_before_a_number_is_a_cell_even_where_a_line_begins() -> None:
    assert is_table_text("- 5 7 Sales")
    assert is_table_text("12. Bonds 5 6 7")


@pytest.mark.parametrize(
    ("flags", "runs"),
    [
        ("", []),
        ("x", []),
        ("xx", [(0, 2)]),
        ("x.x", [(0, 3)]),
        ("x..x", []),
        (".xx..xx.", [(1, 3), (5, 7)]),
        ("xx.x..x", [(0, 4)]),
    ],
)
def test_two_or_more_rows_with_at_most_one_other_chunk_between_are_one_table(
    flags: str, runs: list[tuple[int, int]]
) -> None:
    assert find_table_runs([flag == "x" for flag in flags]) == runs


@given(st.lists(st.booleans(), max_size=40))
def test_runs_begin_and_end_with_rows_and_lie_apart(flags: list[bool]) -> None:
    runs = find_table_runs(flags)
    assert all(flags[start] and flags[end - 1] and end - start > 1 for start, end in runs)
    assert all(after[0] - before[1] >= 2 for before, after in itertools.pairwise(runs))
    assert all(any(flags[at : at + 2]) for start, end in runs for at in range(start, end - 1))


def test_the_row_field_holds_heading_caption_and_first_row() -> None:
    pieces = ["Too far. ", "Segments. ", "Europe. ", "In millions. ", "Sales 1 2 3. ", "Costs 4 5 6."]
    ends = list(itertools.accumulate(map(len, pieces)))
    spans = list(zip([0, *ends], ends, strict=False))
    terms = collect_row_terms("".join(pieces), spans, (4, 6), "Results")
    assert terms == ("1", "2", "3", "europ", "million", "result", "sale", "segment")


def test_the_caption_reaches_300_characters_back_within_its_three_chunks() -> None:
    pieces = ["far " * 20, "near " * 60, "1 2 3"]
    spans = [(0, 80), (80, 380), (380, 385)]
    assert collect_row_terms("".join(pieces), spans, (2, 3), "") == ("1", "2", "3", "near")
    assert collect_row_terms("x" + "".join(pieces)[1:80] + "1 2 3", [(0, 80), (80, 85)], (1, 2), "") == (
        "1",
        "2",
        "3",
        "far",
        "xar",
    )


def test_a_run_at_the_start_has_no_caption() -> None:
    assert collect_row_terms("Sales 1 2 3. Costs 4 5 6.", [(0, 13), (13, 25)], (0, 2), "") == ("1", "2", "3", "sale")


def test_the_first_row_of_the_readers_table_names_the_columns() -> None:
    text = "| Name | Price |\n|---|---|\n| Pump | 5 |\n"
    assert find_column_row(text, text.index("| Pump"), 0) == "| Name | Price |"
    ruled = "====  =====\nName  Price\n====  =====\nPump  5\n"
    assert find_column_row(ruled, ruled.index("Pump"), 0) == "Name Price"
    assert find_column_row(text, 0, 0) == ""


def test_a_first_row_of_numbers_names_nothing() -> None:
    text = "4 | 5 | 6\n1 | 2 | 3\n"
    assert find_column_row(text, 10, 0) == ""


def test_without_a_readers_table_the_nearest_line_with_two_years_names_the_columns() -> None:
    text = "2014  2013\nYears ended   2018 2017\nSales  5  4\nCosts  3  2\n"
    assert find_column_row(text, text.index("Costs"), None) == "Years ended 2018 2017"


@pytest.mark.parametrize(
    "line", ["Year 2018", "32,018 and 2,018.5", "20181 20171", "x" * 160 + " 2018 2017", "1,2018 3.2017"]
)
def test_one_year_a_number_or_a_long_line_is_no_row_of_years(line: str) -> None:
    text = f"{line}\nSales 5 4\n"
    assert find_column_row(text, text.index("Sales"), None) == ""


@pytest.mark.parametrize(("between", "found"), [(3_989, "2018 2017"), (3_990, "")])
def test_the_row_of_years_lies_at_most_4000_characters_back(between: int, found: str) -> None:
    text = "2018 2017\n" + "x" * between + "\nSales 5 4"
    assert find_column_row(text, text.index("Sales"), None) == found


@pytest.mark.parametrize("group", [0, None])
def test_a_column_row_is_cut_at_80_characters(group: int | None) -> None:
    text = "c" * 85 + " 2018 2017\nSales 5 4\n"
    assert find_column_row(text, text.index("Sales"), group) == "c" * 80


def test_line_ends_of_other_systems_are_left_out() -> None:
    text = "2018  2017\r\nSales 5 4\r\n"
    assert find_column_row(text, 12, None) == "2018 2017"
    assert find_column_row("Name,Price\r\nPump,5\r\n", 12, 0) == "Name,Price"
