"""What the PDF reader makes of pages: reading order, rows, paragraphs, headings, and files that can't be read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rse_cli.adapters.readers.pdf import read_pdf
from rse_cli.adapters.readers.pdf_columns import find_gutter, order_regions
from rse_cli.adapters.readers.pdf_layout import lay_out_region
from rse_cli.adapters.readers.pdf_lines import Fragment, build_line, group_rows
from rse_cli.adapters.readers.pdf_words import Vocabulary, clean_text, join_lines
from rse_cli.core.models import Document
from rse_cli.errors import ReadError

ROMAN, BOLD = "tiro", "tibo"
LEFT = (
    "Net sales grew in every region of the world",
    "because demand for safety products was strong",
    "and prices rose. Currency took back a part of",
    "the growth, above all in Europe and in Brazil.",
    "Organic growth was highest in the industrial",
    "segment, where new products made the gain.",
)
RIGHT = (
    "Operating margins improved on lower costs of",
    "raw materials and on productivity, less what",
    "was spent on new plants. The effective rate of",
    "income tax fell with the reform of the federal",
    "law, which also brought a charge that will be",
    "paid over eight years, as the law allows us.",
)
BALANCE = (
    ("Years ended December 31", "2018", "2017", "2016"),
    ("Net sales", "32,765", "31,657", "30,109"),
    ("Gain on sale of businesses", "(547)", "(586)", "(111)"),
    ("Effective tax rate", "23.4%", "35.5%", "28.3%"),
)


class Pages:
    """Draws a PDF."""

    def __init__(self) -> None:
        self.pdf = pymupdf.open()

    def add(self, width: float = 612, height: float = 792) -> Pages:
        self.page = self.pdf.new_page(width=width, height=height)
        return self

    def put(self, x: float, y: float, text: str, size: float = 10, font: str = ROMAN, *, rotate: int = 0) -> Pages:
        if text.isascii():
            self.page.insert_text((x, y), text, fontsize=size, fontname=font, rotate=rotate)
        else:
            writer = pymupdf.TextWriter(self.page.rect)
            writer.append((x, y), text, font=pymupdf.Font(font), fontsize=size)
            writer.write_text(self.page)
        return self

    def right(self, x: float, y: float, text: str, size: float = 10) -> Pages:
        return self.put(x - pymupdf.get_text_length(text, ROMAN, size), y, text, size)

    def lines(self, x: float, y: float, lines: tuple[str, ...], leading: float = 12) -> Pages:
        for i, line in enumerate(lines):
            self.put(x, y + i * leading, line)
        return self

    def table(self, x: float, y: float, rows: tuple[tuple[str, ...], ...], first: float, step: float = 70) -> Pages:
        """Labels at `x`, numbers right-aligned at ``x + first`` and every `step` after it, with $ in the second row."""
        for i, (label, *numbers) in enumerate(rows):
            self.put(x, y + 12 * i, label)
            for j, number in enumerate(numbers):
                self.right(x + first + step * j, y + 12 * i, number)
                if i == 1:
                    self.put(x + first + step * j - 50, y + 12 * i, "$")
        return self

    def read(self, name: str = "report.pdf") -> Document:
        return read_pdf(Path(name), self.pdf.tobytes())


def pages_of(document: Document) -> list[str]:
    ends = (*document.page_starts[1:], len(document.text))
    return [document.text[a:b].strip() for a, b in zip(document.page_starts, ends, strict=True)]


TABLE_TEXT = """Years ended December 31  2018  2017  2016
Net sales  $ 32,765  $ 31,657  $ 30,109
Gain on sale of businesses  (547)  (586)  (111)
Effective tax rate  23.4%  35.5%  28.3%"""


def test_a_table_reads_row_by_row_and_every_row_is_an_atom():
    document = Pages().add().table(72, 100, BALANCE, first=250).read()
    assert document.text == TABLE_TEXT
    assert [document.text[a:b] for a, b in document.atoms] == TABLE_TEXT.split("\n")
    assert document.page_starts == (0,)
    assert not document.verbatim
    assert not document.wrapped


def test_two_columns_read_left_then_right_below_a_full_width_title_and_above_a_full_width_table():
    pages = Pages().add().put(60, 80, "Review of the results of operations and of the financial condition", 16, BOLD)
    pages.lines(60, 110, LEFT).lines(318, 110, RIGHT).table(60, 220, BALANCE, first=280)
    assert pages.read().text == "\n\n".join(
        [
            "Review of the results of operations and of the financial condition",
            " ".join(LEFT),
            " ".join(RIGHT),
            TABLE_TEXT,
        ]
    )


def test_columns_whose_baselines_differ_and_whose_first_lines_are_indented_stay_apart():
    pages = Pages().add().put(72, 100, LEFT[0][:37]).lines(60, 112, LEFT[1:])
    pages.put(330, 105, RIGHT[0][:35]).lines(318, 117, RIGHT[1:])
    text = pages.read().text
    assert text == f"{' '.join([LEFT[0][:37], *LEFT[1:]])}\n\n{' '.join([RIGHT[0][:35], *RIGHT[1:]])}"


def test_three_columns_read_one_after_the_other():
    words = (
        ("Alpha", "Apple", "Amber", "Aspen"),
        ("Bravo", "Berry", "Birch", "Brick"),
        ("Cargo", "Cedar", "Coral", "Crisp"),
    )
    narrow = [tuple(f"{word} and more text of it" for word in column) for column in words]
    pages = Pages().add()
    for x, column in zip((60, 230, 400), narrow, strict=True):
        pages.lines(x, 100, column)
    assert pages.read().text == "\n\n".join(" ".join(column) for column in narrow)


def test_a_short_right_column_is_known_by_the_gutter_of_other_pages():
    pages = Pages()
    for _ in range(3):
        pages.add().lines(60, 200, LEFT).lines(318, 200, RIGHT)
    pages.add().lines(60, 200, LEFT).lines(318, 200, (RIGHT[0], "raw materials."))
    assert pages_of(pages.read())[-1] == f"{' '.join(LEFT)}\n\n{RIGHT[0]} raw materials."


def test_a_small_table_inside_a_column_stays_in_its_column():
    rows = (
        ("(in millions)", "2018", "2017"),
        ("Net sales", "765", "657"),
        ("Cost of sales", "482", "455"),
        ("Income", "207", "192"),
    )
    pages = Pages().add().lines(60, 100, LEFT + RIGHT).lines(318, 100, RIGHT).table(318, 184, rows, first=150, step=60)
    text = pages.read().text
    assert text.startswith(" ".join(LEFT + RIGHT))
    assert text.endswith(
        "(in millions)  2018  2017\nNet sales  $ 765  $ 657\nCost of sales  482  455\nIncome  207  192"
    )


def test_long_labels_with_a_column_of_words_are_a_table_and_not_two_columns():
    rows = (
        "Medium-term note due in March of the year 2021|Fixed|2.30%|598",
        "Eurobond due in September of the year 2020|Floating|0.00%|359",
        "Convertible notes, net of the discount|Fixed|(0.40)|252",
        "Floating rate bonds of the county authority|Floating|1.10%|27",
        "Other borrowings|Various|0.02|74",
    )
    pages = Pages().add()
    for i, row in enumerate(rows):
        label, kind, rate, amount = row.split("|")
        pages.put(72, 100 + 12 * i, label).put(320, 100 + 12 * i, kind)
        pages.right(430, 100 + 12 * i, rate).right(500, 100 + 12 * i, amount)
    assert pages.read().text == "\n".join(row.replace("|", "  ") for row in rows)


def test_labels_of_several_lines_join_their_numbers():
    pages = Pages().add()
    pages.put(72, 100, "Selling, general and").put(80, 112, "administrative expenses").right(400, 112, "7,602").right(
        470, 112, "6,626"
    )
    pages.put(72, 124, "Loss on hedges, net of").right(400, 124, "(12)").right(470, 124, "(9)").put(
        80, 136, "tax of $2 and $1"
    )
    pages.put(72, 148, "Operating activities:").put(72, 160, "Net income").right(400, 160, "5,363").right(
        470, 160, "4,869"
    )
    assert pages.read().text.split("\n") == [
        "Selling, general and administrative expenses  7,602  6,626",
        "Loss on hedges, net of tax of $2 and $1  (12)  (9)",
        "Operating activities:",
        "Net income  5,363  4,869",
    ]


def test_parts_of_a_number_set_apart_come_together_and_dot_leaders_go():
    pages = Pages().add()
    pages.put(72, 100, "Net loss . . . . . . . . . . . . . . . . .").put(300, 100, "$").put(330, 100, "(1,234").put(
        362, 100, ")"
    )
    pages.put(72, 112, "Margin..................................").put(330, 112, "12.5").put(352, 112, "%").put(
        400, 112, "—"
    )
    assert pages.read().text == "Net loss  $ (1,234)\nMargin  12.5%  —"


def test_wrapped_prose_is_one_line_and_paragraphs_end_at_indents_short_lines_and_bullets():
    pages = Pages().add().lines(72, 100, LEFT[:2]).put(72, 124, "and prices rose.")
    pages.put(72, 136, LEFT[4]).put(72, 148, LEFT[5][:30]).put(84, 160, RIGHT[0]).put(72, 172, RIGHT[1])
    pages.put(72, 184, "• " + RIGHT[2]).put(80, 196, "income").put(72, 208, "• Lower costs").put(
        72, 240, "After a gap."
    )
    assert pages.read().text.split("\n") == [
        f"{LEFT[0]} {LEFT[1]} and prices rose.",
        f"{LEFT[4]} {LEFT[5][:30]}",
        f"{RIGHT[0]} {RIGHT[1]}",
        f"• {RIGHT[2]} income",
        "• Lower costs",
        "",
        "After a gap.",
    ]


def test_prose_that_lists_years_is_not_a_table():
    lines = (
        "Credit lines with draw periods scheduled to end in",
        "2012, 2013, 2014, 2015 and 2016 amounted to about",
        "$306 million, $44 million, $60 million and so on.",
    )
    document = Pages().add().lines(72, 100, lines).read()
    assert document.text == " ".join(lines)
    assert document.atoms == ()


def test_words_cut_at_a_line_end_join_and_real_compounds_keep_their_hyphen():
    known = Vocabulary(frozenset({"writing", "under", "underwriting"}), frozenset({"long-term"}))
    assert join_lines(["the manage-", "ment of long-", "term debt"], known) == "the management of long-term debt"
    assert join_lines(["a non-", "GAAP measure of under-", "writing"], known) == "a non-GAAP measure of underwriting"
    assert (
        join_lines(["year-over-", "year, 2018-", "2019, soft\u00ad", "ware"], known)
        == "year-over-year, 2018-2019, software"
    )


def test_a_word_cut_at_a_line_end_joins_on_the_page():
    pages = Pages().add().put(72, 100, "The rates for the securities of the govern-").put(72, 112, "ment rose.")
    assert pages.read().text == "The rates for the securities of the government rose."


def test_ligatures_spaces_and_controls_are_repaired():
    assert (
        clean_text("of\ufb01ce \ufb02ow e\ufb00ort su\ufb03x ba\ufb04e fa\ufb06")
        == "office flow effort suffix baffle fast"
    )
    assert clean_text("Net\u00a0sales\u2009up co\u00adop\x00\x07\u200b") == "Net sales up coop"
    assert clean_text("a\ud800b") == "a\ufffdb"
    assert clean_text("\uf0b7 item") == "• item"
    assert clean_text("T a b l e  o f  items") == "Table  o f  items"


def test_running_headers_footers_and_page_numbers_are_dropped():
    pages = Pages()
    for number in range(1, 7):
        pages.add().put(72, 40, "NORTHWIND INDUSTRIES, INC.", 8).put(300, 760, str(number), 8)
        pages.put(450 if number % 2 else 72, 760, "2018 Form 10-K", 8)
        pages.put(72, 80, f"Section {'ABCDEF'[number - 1]} starts here.").put(
            72, 740, f"Last words {'ABCDEF'[number - 1]}."
        )
    assert pages_of(pages.read()) == [f"Section {c} starts here.\n\nLast words {c}." for c in "ABCDEF"]


def test_three_pages_are_too_few_to_call_a_line_running():
    pages = Pages()
    for number in range(1, 4):
        pages.add().put(72, 40, "NORTHWIND", 8).put(72, 300, f"Body {number}")
    assert pages_of(pages.read()) == [f"NORTHWIND\n\nBody {n}" for n in (1, 2, 3)]


def test_a_sentence_that_goes_on_overleaf_stays_whole_and_its_page_starts_inside():
    pages = (
        Pages().add().lines(72, 700, LEFT[:2]).add().put(72, 100, "and prices rose in 2018.").put(72, 130, "New text.")
    )
    document = pages.read()
    assert document.text == f"{LEFT[0]} {LEFT[1]} and prices rose in 2018.\n\nNew text."
    assert document.text[document.page_starts[1] :].startswith("and prices rose")


def test_an_empty_page_starts_where_the_next_one_does():
    document = Pages().add().add().put(72, 100, "Second.").add().add().put(72, 100, "Fourth.").add().read()
    assert document.text == "Second.\n\nFourth."
    assert document.page_starts == (0, 0, 9, 9, 16)


def test_a_sideways_table_reads_as_if_upright_and_other_directions_come_after_the_main_one():
    pages = Pages().add()
    for i, (label, *numbers) in enumerate(BALANCE):
        pages.put(100 + 12 * i, 700, label, rotate=90)
        for j, number in enumerate(numbers):
            length = pymupdf.get_text_length(number, ROMAN, 10)
            pages.put(100 + 12 * i, 450 - 70 * j + length, number, rotate=90)
    pages.put(72, 760, "Upright note")
    assert pages.read().text == TABLE_TEXT.replace("$ ", "") + "\n\nUpright note"


def test_a_landscape_page_by_rotation_reads_upright():
    pages = Pages().add()
    for i, line in enumerate(LEFT):
        pages.put(100 + 12 * i, 700, line, rotate=90)
    pages.page.set_rotation(90)
    assert pages.read().text == " ".join(LEFT)


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


def failure_of(data: bytes) -> tuple[str, str]:
    with pytest.raises(ReadError) as caught:
        read_pdf(Path("a.pdf"), data)
    return caught.value.status, caught.value.reason


def encrypt(user: str) -> bytes:
    pages = Pages().add().put(72, 100, "Secret")
    return pages.pdf.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="owner", user_pw=user)


def test_a_file_with_a_user_password_is_encrypted_and_one_without_opens():
    assert failure_of(encrypt("user")) == ("encrypted", "needs a password")
    assert read_pdf(Path("a.pdf"), encrypt("")).text == "Secret"


def test_a_file_of_pictures_is_empty():
    pages = Pages().add()
    pages.page.draw_rect((10, 10, 100, 100), fill=(1, 0, 0))
    assert failure_of(pages.pdf.tobytes()) == ("empty", "no text; scanned? run OCR first")


def test_a_font_without_unicode_values_is_unreadable():
    pages = Pages().add()
    pages.page.insert_font(fontname="F0", fontbuffer=pymupdf.Font("helv").buffer)
    pages.put(72, 100, "Net sales", font="F0")
    pages.pdf.xref_set_key(pages.page.get_fonts()[0][0], "ToUnicode", "null")
    status, reason = failure_of(pages.pdf.tobytes())
    assert status == "unreadable"
    assert "no Unicode value" in reason


@pytest.mark.parametrize(
    "data", [b"", b"no pdf at all", b"%PDF-1.7\n", b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n"]
)
def test_a_broken_file_fails_with_one_line_and_nothing_on_the_streams(data: bytes, capfd: pytest.CaptureFixture[str]):
    status, reason = failure_of(data)
    assert status == "failed"
    assert reason
    assert "\n" not in reason
    assert capfd.readouterr() == ("", "")


def test_a_damaged_page_costs_only_itself(capfd: pytest.CaptureFixture[str]):
    pages = Pages().add().put(72, 100, "First.").add().put(72, 100, "Second.").add().put(72, 100, "Third.")
    pages.pdf.xref_set_key(pages.pdf[1].xref, "Type", "/Nothing")
    pages.pdf.update_stream(pages.pdf[1].get_contents()[0], b"BT /F0 12 Tf <<<< ( (((")
    document = pages.read()
    assert document.text == "First.\n\nThird."
    assert document.page_starts == (0, 8, 8)
    assert capfd.readouterr() == ("", "")


pieces = st.builds(
    lambda x, y, size, bold, text: Fragment(x, y - size, x + 0.5 * size * len(text), y + 2, y, size, bold, text),
    st.integers(0, 60).map(lambda n: 10.0 * n),
    st.integers(1, 60).map(lambda n: 6.0 * n),
    st.sampled_from([6.0, 9.0, 10.0, 14.0]),
    st.booleans(),
    st.sampled_from(
        [
            "Net sales",
            "$",
            "1,234",
            "(5",
            ")",
            "%",
            "—",
            "of the year and of the one before",
            "•",
            "Item 7.",
            "tax-",
            "a",
        ]
    ),
)


@given(st.lists(pieces, max_size=60))
@settings(max_examples=60, deadline=None)
def test_layout_loses_no_character_and_repeats_none(fragments: list[Fragment]):
    regions = order_regions(fragments, find_gutter(fragments))
    assert Counter(map(id, fragments)) == Counter(id(f) for region in regions for f in region)
    text = "".join(line for region in regions for paragraph in lay_out_region(region) for line in paragraph.lines)
    assert Counter("".join(f.text for f in fragments).replace(" ", "")) == Counter(text.replace(" ", ""))


def test_a_raised_note_belongs_to_its_row():
    rows = group_rows([
        Fragment(72, 90, 112, 102, 100, 10, False, "Net sales"),
        Fragment(113, 88, 120, 95, 94, 6, False, "(1)"),
        Fragment(300, 90, 325, 102, 100, 10, False, "5,000"),
    ])  # fmt: skip
    assert [build_line(row).text for row in rows] == ["Net sales(1)  5,000"]
