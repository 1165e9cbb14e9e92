"""What the PDF reader makes of pages: reading order, rows, paragraphs, headings, and files that can't be read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rse_cli.adapters.readers.pdf import read_pdf
from rse_cli.adapters.readers.pdf_columns import find_gutter, order_regions
from rse_cli.adapters.readers.pdf_layout import lay_out_region
from rse_cli.adapters.readers.pdf_lines import Fragment
from rse_cli.adapters.readers.pdf_merged import Word, part_merged
from rse_cli.adapters.readers.pdf_words import Vocabulary, clean_text, join_lines
from rse_cli.errors import ReadError
from tests.pdf_pages import BALANCE, BOLD, LEFT, RIGHT, ROMAN, Pages, pages_of

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


def test_a_number_and_its_percent_sign_are_one_word_at_a_line_end():
    pages = (
        Pages()
        .add()
        .lines(72, 100, LEFT)
        .put(72, 172, "and the margin of the group was higher by")
        .put(72, 184, "5 %.")
    )
    assert pages.read().text.endswith("higher by 5 %.")


def test_words_cut_at_a_line_end_join_and_real_compounds_keep_their_hyphen():
    known = Vocabulary(frozenset({"writing", "under", "underwriting"}), frozenset({"long-term"}))
    assert join_lines(["the manage-", "ment of long-", "term debt"], known) == "the management of long-term debt"
    assert join_lines(["a non-", "GAAP measure of under-", "writing"], known) == "a non-GAAP measure of underwriting"
    assert (
        join_lines(["year-over-", "year, 2018-", "2019, soft\u00ad", "ware"], known)
        == "year-over-year, 2018-2019, software"
    )


@pytest.mark.parametrize("hyphen", ["-", "‐"])
def test_a_hyphen_after_a_word_that_begins_compounds_is_kept_unless_the_document_joins_it(hyphen):
    nothing = Vocabulary(frozenset(), frozenset())
    assert join_lines([f"our long{hyphen}", "term debt"], nothing) == f"our long{hyphen}term debt"
    assert join_lines([f"the twenty{hyphen}", "first"], nothing) == f"the twenty{hyphen}first"
    assert join_lines([f"a year{hyphen}", "book"], Vocabulary(frozenset({"yearbook"}), frozenset())) == "a yearbook"
    assert join_lines([f"the manage{hyphen}", "ment"], nothing) == "the management"


@pytest.mark.parametrize("hyphen", ["-", "‐", "\u00ad"])
def test_a_number_or_a_name_after_a_line_end_keeps_its_hyphen(hyphen):
    nothing, shown = Vocabulary(frozenset(), frozenset()), hyphen.replace("\u00ad", "-")
    assert join_lines([f"2019{hyphen}", "2020"], nothing) == f"2019{shown}2020"
    assert join_lines([f"COVID{hyphen}", "19"], nothing) == f"COVID{shown}19"
    assert join_lines([f"non{hyphen}", "GAAP"], nothing) == f"non{shown}GAAP"
    assert join_lines([f"5{hyphen}", "year"], nothing) == f"5{shown}year"


def test_a_soft_hyphen_between_digits_is_a_hyphen():
    assert clean_text("2019\u00ad2020 co\u00adop") == "2019-2020 coop"


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


def justify(pages, x, y, line, width):
    words = line.split()
    lengths = [pymupdf.get_text_length(word, ROMAN, 10) for word in words]
    for word, length in zip(words, lengths, strict=True):
        pages.put(x, y, word)
        x += length + (width - sum(lengths)) / (len(words) - 1)


@pytest.mark.parametrize("gutter", [5, 8, 20])
@pytest.mark.parametrize("is_justified", [False, True])
def test_columns_with_a_narrow_gutter_that_are_drawn_row_by_row_are_read_one_after_the_other(gutter, is_justified):
    width = max(pymupdf.get_text_length(line, ROMAN, 10) for line in LEFT + RIGHT)
    pages = Pages().add().put(72, 80, "A title across the page, which has more words than fit in one of its columns.")
    for row, lines in enumerate(zip(LEFT * 2, RIGHT * 2, strict=True)):
        for x, line in zip((72, 72 + width + gutter), lines, strict=True):
            if is_justified:
                justify(pages, x, 100 + 12 * row, line, width)
            else:
                pages.put(x, 100 + 12 * row, line)
    text = " ".join(pages.read().text.split())
    assert text.endswith(" ".join([*LEFT, *LEFT, *RIGHT, *RIGHT]))


def test_lines_of_one_column_are_not_parted_at_wide_spaces():
    words = [Word(20.0 * at, 20.0 * at + 14, "word") for at in range(12)]
    lines = [
        (
            Fragment(row, 0, 240, 10, 12.0 * row, 10, False, "word " * 12),
            tuple(replace(w, x0=w.x0 + row) for w in words),
        )
        for row in range(0, 200, 7)
    ]
    assert part_merged(lines) == [fragment for fragment, _ in lines]


@given(
    st.lists(
        st.tuples(
            st.floats(0, 600),
            st.floats(0, 800),
            st.lists(st.tuples(st.floats(0, 20), st.floats(1, 40)), min_size=1, max_size=9),
        ),
        max_size=20,
    )
)
def test_parting_loses_no_word(rows):
    lines = []
    for left, y, steps in rows:
        words, x = [], left
        for at, (gap, width) in enumerate(steps):
            words.append(Word(x + gap, x + gap + width, f"w{at}"))
            x = words[-1].x1
        text = " ".join(word.text for word in words)
        lines.append((Fragment(words[0].x0, y, words[-1].x1, y + 10, y + 8, 10, False, text), tuple(words)))
    parted = part_merged(lines)
    assert " ".join(one.text for one in parted) == " ".join(one.text for one, _ in lines)
    assert len(parted) >= len(lines)
