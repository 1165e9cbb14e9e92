"""Headings and title of a PDF: from its type, its outline and its metadata."""

from __future__ import annotations

import pytest

from tests.pdf_pages import BALANCE, BOLD, LEFT, RIGHT, Pages


def write_report() -> Pages:
    pages = Pages().add().put(72, 90, "Item 7. Management’s Discussion", 10, BOLD).lines(72, 120, LEFT)
    pages.put(72, 220, "Liquidity", 12, BOLD).lines(72, 240, RIGHT).put(72, 340, "Credit lines", 10, BOLD).lines(
        72, 360, LEFT
    )
    return pages.add().put(72, 90, "Item 8. Financial Statements", 10, BOLD).lines(72, 120, RIGHT)


def test_headings_come_from_type_with_the_items_of_a_report_outermost():
    document = write_report().read()
    assert [(h.level, h.text) for h in document.headings] == [
        (1, "Item 7. Management’s Discussion"),
        (2, "Liquidity"),
        (2, "Credit lines"),
        (1, "Item 8. Financial Statements"),
    ]
    assert all(document.text.startswith(h.text, h.start_char) for h in document.headings)


def test_an_outline_gives_the_levels_and_headings_by_type_stand_below_it():
    pages = write_report()
    pages.pdf.set_toc(
        [[1, "Item 7. Management’s Discussion", 1], [2, "LIQUIDITY", 1], [1, "Item 8. Financial Statements", 2]]
    )
    assert [(h.level, h.text) for h in pages.read().headings] == [
        (1, "Item 7. Management’s Discussion"),
        (2, "LIQUIDITY"),
        (4, "Credit lines"),
        (1, "Item 8. Financial Statements"),
    ]


def test_bold_rows_and_captions_inside_a_table_are_not_headings():
    pages = (
        Pages()
        .add()
        .put(72, 80, "Consolidated Balance Sheets", 10, BOLD)
        .lines(72, 100, LEFT)
        .table(72, 200, BALANCE, first=250)
    )
    pages.put(72, 248, "Assets", 10, BOLD).put(72, 260, "Cash").right(322, 260, "2,853").right(392, 260, "3,053")
    assert [h.text for h in pages.read().headings] == ["Consolidated Balance Sheets"]


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ("Northwind Annual Report 2018", "Northwind Annual Report 2018"),
        ("untitled", "Northwind Industries, Inc."),
        ("Microsoft Word - final.docx", "Northwind Industries, Inc."),
        ("d12345d10k.htm", "Northwind Industries, Inc."),
        ("10-K", "Northwind Industries, Inc."),
        ("", "Northwind Industries, Inc."),
    ],
)
def test_the_title_is_that_of_the_metadata_if_it_is_one_else_the_largest_type_of_page_one(metadata: str, title: str):
    pages = (
        Pages().add().put(72, 60, "FORM 10-K", 24).put(72, 100, "Northwind Industries, Inc.", 18).lines(72, 140, LEFT)
    )
    pages.pdf.set_metadata({"title": metadata})
    assert pages.read().title == title


def test_without_a_title_there_is_none():
    assert Pages().add().lines(72, 100, LEFT).read().title is None
