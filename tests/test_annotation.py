"""What a chunk is stored with: section, header, lines, pages, table; and the terms that tell its document apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.adapters.readers import read_document
from rse_cli.core.annotation import choose_title, collect_field_terms, make_chunks
from rse_cli.core.models import Chunk, Document, Heading


def read(name: str, text: str) -> tuple[Document, str]:
    _, document = read_document(Path(name), text.encode())
    return document, choose_title(document, Path(name).stem)


def chunk_text(name: str, text: str) -> list[Chunk]:
    return make_chunks(*read(name, text))


def find_chunk(chunks: list[Chunk], text: str) -> Chunk:
    (found,) = [chunk for chunk in chunks if text in chunk.text]
    return found


GUIDE = """# Pump guide

It lifts water.

## Care

Oil it.

### Winter

Drain it.

## Parts

Ask us.

# Index

None.
"""


def test_sections_nest_and_the_title_is_left_out() -> None:
    chunks = chunk_text("guide.md", GUIDE)
    assert [(chunk.section, chunk.header) for chunk in chunks] == [
        ("", "Pump guide"),
        ("Care", "Pump guide › Care"),
        ("Care › Winter", "Pump guide › Care › Winter"),
        ("Parts", "Pump guide › Parts"),
        ("Index", "Pump guide › Index"),
    ]


def test_a_header_names_title_first_and_nearest_heading_but_not_those_between() -> None:
    chunks = chunk_text("a.md", "---\ntitle: Manual\n---\n# One\n## Two\n### Three\n#### Four\nText.\n")
    assert find_chunk(chunks, "Text.").section == "One › Two › Three › Four"
    assert find_chunk(chunks, "Text.").header == "Manual › One › Four"


def test_a_heading_of_a_skipped_level_still_nests_and_a_higher_one_ends_it() -> None:
    headings = (Heading(0, 3, "Deep"), Heading(5, 2, "Wide"), Heading(10, 3, "In"))
    chunks = make_chunks(Document("deep.wide.in.", headings=headings), "T")
    assert [chunk.section for chunk in chunks] == ["Deep", "Wide", "Wide › In"]


def test_one_heading_is_named_once_though_it_is_first_and_nearest() -> None:
    assert chunk_text("a.md", "---\ntitle: Manual\n---\n# One\nText.\n")[-1].header == "Manual › One"


def test_headings_are_cut_at_60_characters_in_headers_and_whole_in_sections() -> None:
    first, nearest = "F" * 70, "N" * 70
    headings = (Heading(0, 1, first), Heading(4, 2, nearest))
    chunk = make_chunks(Document("one.two.", headings=headings), "T")[-1]
    assert chunk.header == f"T › {'F' * 60} › {'N' * 60}"
    assert chunk.section == f"{first} › {nearest}"


def test_a_title_longer_than_80_characters_is_still_recognised_in_its_heading() -> None:
    title = "word " * 30
    chunks = chunk_text("a.md", f"# {title}\n\nText.\n")
    assert chunks[0].header == title[:80]
    assert chunks[0].section == ""


def test_the_nearest_heading_reaches_6000_characters_and_the_first_level_to_the_end() -> None:
    text = "A.\nB.\n" + "".join(f"{'x' * 99}\n" for _ in range(70))
    document = Document(text, headings=(Heading(0, 1, "A"), Heading(3, 2, "B")))
    chunks = make_chunks(document, "T")
    headers = {chunk.start_char: chunk.header for chunk in chunks}
    assert headers[5_906] == "T › A › B"
    assert headers[6_006] == "T › A"
    assert {chunk.section for chunk in chunks[1:]} == {"A › B"}


def test_the_nearest_heading_is_named_exactly_6000_characters_on() -> None:
    for before, header in ((6_000, "T › A › B"), (6_001, "T › A")):
        text = "x" * before + "\nNow this."
        headings = (Heading(0, 1, "A"), Heading(0, 2, "B"))
        document = Document(text, headings=headings, atoms=((0, before),), breaks=(before,))
        assert {chunk.start_char: chunk.header for chunk in make_chunks(document, "T")}[before] == header


@pytest.mark.parametrize(
    ("title", "text", "chosen"),
    [
        ("Own", "First line\n", "Own"),
        ("  Own \n title ", "First line\n", "Own title"),
        ("  ", "First line\n", "First line"),
        (None, "\n \n---\n***\n_\nFirst   line\nSecond\n", "First line"),
        (None, "\r\n\r\nFirst\r\nSecond\r\n", "First"),
        (None, "First\rSecond\r", "First"),
        (None, "检索\n", "检索"),
        (None, "---\n***\n", "stem"),
        (None, "", "stem"),
        ("T" * 90, "", "T" * 80),
        (None, "L" * 90, "L" * 80),
    ],
)
def test_the_title_is_the_documents_own_else_its_first_line_with_words_else_the_stem(
    title: str | None, text: str, chosen: str
) -> None:
    assert choose_title(Document(text, title=title), "stem") == chosen


def test_the_document_field_holds_title_file_name_and_the_first_2_percent() -> None:
    text = "alpha beta " + "filler " * 77
    assert len(text) == 550
    assert collect_field_terms(Document(text, "The Title"), "acme_2018_10-K") == (
        "10k", "2018", "acm", "alpha", "beta", "titl",
    )  # fmt: skip


def test_the_document_field_takes_600_characters_at_most() -> None:
    text = "alpha " * 99 + "beta " + "filler " * 10_000
    assert len(text) * 0.02 > 1_000
    terms = collect_field_terms(Document(text), "x")
    assert "beta" in terms
    assert "filler" not in terms


def test_white_space_before_the_text_costs_the_document_field_nothing() -> None:
    assert "alpha" in collect_field_terms(Document("\n" * 400 + "alpha " * 60), "x")


def test_pages_are_those_of_the_text_and_not_of_the_white_space_around_it() -> None:
    pages = ["\n\n", "Second page. ", "Third page.\n", "  \n", "Fifth page."]
    starts = tuple(sum(map(len, pages[:at])) for at in range(len(pages)))
    chunks = make_chunks(Document("".join(pages), page_starts=starts), "T")
    assert [(chunk.text, chunk.start_page, chunk.end_page) for chunk in chunks] == [
        ("\n\nSecond page. ", 2, 2),
        ("Third page.\n  \n", 3, 3),
        ("Fifth page.", 5, 5),
    ]
    assert all(chunk.start_line is chunk.end_line is None for chunk in chunks)


def test_a_page_without_text_at_the_place_of_the_next_one_is_no_chunks_page() -> None:
    chunks = make_chunks(Document("One. Three.", page_starts=(0, 5, 5)), "T")
    assert [(chunk.start_page, chunk.end_page) for chunk in chunks] == [(1, 1), (3, 3)]


def test_a_document_without_pages_has_none() -> None:
    assert chunk_text("a.md", GUIDE)[0].start_page is None


LONG = "This sentence is longer than the sixty characters that make a chunk of its own."


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_those_of_the_file_without_the_blank_ones_around(end: str) -> None:
    text = end.join(["", "", LONG, "", "", LONG, LONG, ""])
    document = Document(text, verbatim=True)
    chunks = make_chunks(document, "T")
    assert "".join(chunk.text for chunk in chunks) == text
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(3, 3), (6, 6), (7, 7)]


def test_a_chunk_of_several_lines_has_its_first_and_its_last() -> None:
    chunks = chunk_text("a.md", "# A\n\n```\nfirst\nlast\n```\n\nEnd.\n")
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(1, 8)]


@given(st.text(st.sampled_from("ab. \n\r")), st.booleans())
def test_the_lines_of_a_chunk_are_those_grep_counts(text: str, wrapped: bool) -> None:
    for chunk in make_chunks(Document(text, verbatim=True, wrapped=wrapped), "T", 80):
        first = chunk.start_char + len(chunk.text) - len(chunk.text.lstrip())
        last = chunk.start_char + len(chunk.text.rstrip()) - 1
        assert chunk.start_line == text.count("\n", 0, first) + 1
        assert chunk.end_line == text.count("\n", 0, last) + 1


PRICES = """# Prices

| Part | Price |
|---|---|
| Pump with a long label that fills a chunk of its own | 5 |
| Valve with a long label that fills a chunk of its own | 7 |

| City | People |
|---|---|
| Bonn with a long label that fills a chunk of its own | 300 |
| Köln with a long label that fills a chunk of its own | 900 |
"""


def test_rows_of_a_pipe_table_carry_its_column_names() -> None:
    chunks = chunk_text("prices.md", PRICES)
    assert find_chunk(chunks, "Pump").header == "Prices"  # its chunk holds the column names
    assert find_chunk(chunks, "Valve").header == "Prices › | Part | Price |"


def test_a_table_after_a_blank_line_has_column_names_of_its_own() -> None:
    assert find_chunk(chunk_text("prices.md", PRICES), "Köln").header == "Prices › | City | People |"


def test_rows_of_a_csv_file_carry_its_first_row() -> None:
    rows = "".join(f"pump number {n} with a long name of its own that fills,{n}\n" for n in range(200))
    chunks = chunk_text("parts.csv", "name,price\n" + rows)
    assert chunks[-1].start_char > 4_000
    assert chunks[-1].header == "name,price"
    assert chunks[-1].section == ""


def test_rows_of_a_pdf_table_that_stand_wide_apart_are_one_table() -> None:
    rows = ["Segment  Share of all", *(f"Region {n} with a long label that fills a chunk  {n}" for n in range(3))]
    text = "\n\n".join(rows)
    atoms = tuple((text.index(row), text.index(row) + len(row)) for row in rows)
    chunks = make_chunks(Document(text, page_starts=(0,), atoms=atoms), "T")
    assert chunks[-1].header == "T › Segment Share of all"


def test_the_pieces_of_a_long_code_fence_are_no_rows() -> None:
    code = "".join(f"value_{n} = compute({n})\n" for n in range(400))
    chunks = chunk_text("a.md", f"# Code\n\nIn 2018 and 2019.\n\n```python\n{code}```\n")
    assert len(chunks) > 3
    assert {chunk.header for chunk in chunks} == {"Code"}


REPORT = """Acme annual report

Results of operations
The following table shows our results in millions of dollars for three years.

Years ended December 31   2018   2017   2016
Net sales of the company and its many subsidiaries  32,765  31,657  30,109
Cost of sales of all consolidated subsidiaries  (16,682)  (16,001)  (15,040)
Selling, general and administrative expenses together  7,602  6,626  6,222

We expect sales to grow by a few percent in the coming year, as new plants open.
"""


def test_rows_below_a_row_of_years_carry_the_years_and_share_a_row_field() -> None:
    heading = Heading(REPORT.index("Results"), 1, "Results of operations")
    chunks = make_chunks(Document(REPORT, headings=(heading,)), "Acme")
    costs = find_chunk(chunks, "Cost of sales")
    assert costs.header == "Acme › Results of operations › Years ended December 31 2018 2017 2016"
    assert costs.row_terms is not None
    assert {"million", "dollar", "2018", "oper"} <= set(costs.row_terms)
    assert find_chunk(chunks, "Selling").row_terms == costs.row_terms
    prose = find_chunk(chunks, "We expect")
    assert prose.row_terms is None
    assert "2018" not in prose.header


def test_lists_are_no_tables() -> None:
    items = "".join(f"- {word} of the season\n" for word in ("apples", "pears", "plums", "figs", "dates", "nuts"))
    chunks = chunk_text("a.md", f"# Fruit\n\nIn 2018 and 2019.\n\n{items}\n1. Open\n2. Close\n3. Lock\n")
    assert {chunk.row_terms for chunk in chunks} == {None}
    assert {chunk.header for chunk in chunks} == {"Fruit"}


@given(st.text(st.sampled_from("a1 .|\n#-$"), max_size=300), st.data())
def test_chunks_tile_the_text_and_carry_headers_that_begin_with_the_title(text: str, data: st.DataObject) -> None:
    bounds = data.draw(st.lists(st.integers(0, len(text)), max_size=8, unique=True).map(sorted))
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=4).map(sorted))
    document = Document(
        text,
        headings=tuple(Heading(at, 1 + at % 3, f"h{at}") for at in places),
        atoms=tuple(zip(bounds[::2], bounds[1::2], strict=False)),
        verbatim=True,
    )
    chunks = make_chunks(document, "Title", 80)
    assert "".join(chunk.text for chunk in chunks) == (text if text.strip() else "")
    assert [chunk.ord for chunk in chunks] == list(range(len(chunks)))
    assert all(chunk.header.startswith("Title") for chunk in chunks)
