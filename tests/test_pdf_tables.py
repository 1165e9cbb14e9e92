"""What the PDF reader makes of tables: rows, labels, cells and heads of several lines, and text beside them."""

from __future__ import annotations

import pytest

from rse_cli.adapters.readers.pdf_lines import Fragment, build_line, group_rows
from tests.pdf_pages import BALANCE, LEFT, RIGHT, Pages


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


def test_a_raised_note_belongs_to_its_row():
    rows = group_rows([
        Fragment(72, 90, 112, 102, 100, 10, False, "Net sales"),
        Fragment(113, 88, 120, 95, 94, 6, False, "(1)"),
        Fragment(300, 90, 325, 102, 100, 10, False, "5,000"),
    ])  # fmt: skip
    assert [build_line(row).text for row in rows] == ["Net sales(1)  5,000"]


def test_spaces_inside_numbers_go_in_rows_and_stay_in_prose():
    prose = "The radius is 60 % of the height, and 5 % were lost in 2018 ( 4 of 80 )."
    pages = Pages().add().put(72, 100, prose).put(72, 140, "Tax rate 23.4 % 35.5 % 28.3 %")
    pages.put(72, 152, "Change ( 5 ) ( 7 ) 8")
    assert pages.read().text == f"{prose}\n\nTax rate 23.4% 35.5% 28.3%\nChange (5) (7) 8"


def draw_heads(rows: tuple[tuple[tuple[float, str], ...], ...]) -> Pages:
    """Lines of column heads 12 points apart above one row of numbers."""
    pages = Pages().add()
    for i, row in enumerate(rows):
        for x, text in row:
            pages.put(x, 100 + 12 * i, text)
    below = 104 + 12 * len(rows)
    pages.put(72, below, "Net sales")
    for x, number in ((325, "1,234"), (385, "1,100"), (465, "3,500"), (525, "3,300")):
        pages.right(x, below, number)
    return pages


NET_SALES = "Net sales  1,234  1,100  3,500  3,300"


@pytest.mark.parametrize(
    ("rows", "head"),
    [
        (
            (
                ((300, "March 31,"), (360, "March 31,"), (440, "June 30,"), (500, "June 30,")),
                ((305, "2019"), (365, "2018"), (445, "2019"), (505, "2018")),
            ),
            "March 31, 2019  March 31, 2018  June 30, 2019  June 30, 2018",
        ),
        (
            (
                ((310, "Three Months Ended"), (445, "Nine Months Ended")),
                ((305, "September 30,"), (445, "September 30,")),
                ((72, "(in thousands)"), (300, "2019"), (360, "2018"), (440, "2019"), (500, "2018")),
            ),
            "(in thousands)  Three Months Ended September 30, 2019  2018  Nine Months Ended September 30, 2019  2018",
        ),
        (
            (
                ((72, "(Millions,"), (360, "Years Ended December 31,")),
                ((72, "except per share)"), (305, "2018"), (365, "2017"), (445, "2016"), (505, "2015")),
            ),
            "(Millions, except per share)  Years Ended December 31, 2018  2017  2016  2015",
        ),
        (
            (((300, "Three Months Ended"),), ((290, "March 31, 2019"), (365, "March 31, 2018"))),
            "Three Months Ended March 31, 2019  March 31, 2018",
        ),
    ],
)
def test_heads_of_several_lines_join_above_their_columns_and_the_years_stand_in_one_line(
    rows: tuple[tuple[tuple[float, str], ...], ...], head: str
):
    document = draw_heads(rows).read()
    assert document.text == f"{head}\n{NET_SALES}"
    assert [document.text[a:b] for a, b in document.atoms] == [head, NET_SALES]


@pytest.mark.parametrize(
    "above",
    [
        ((72, "Results of the year"),),  # stands above the labels
        ((200, "Consolidated Statements of Income and of the Financial Year"),),  # sticks out of the columns
        ((310, "Net sales by region"),),  # says no period
        ((305, "12"), (365, "15"), (445, "March"), (505, "May")),  # holds numbers
    ],
)
def test_what_stands_above_years_without_being_their_head_stays_a_line_of_its_own(above: tuple[tuple[float, str], ...]):
    years = ((305, "2018"), (365, "2017"), (445, "2016"), (505, "2015"))
    text = draw_heads((above, years)).read().text
    assert text.split("\n") == ["  ".join(part for _, part in above), "2018  2017  2016  2015", NET_SALES]


def test_a_balance_sheet_keeps_parentheses_dashes_and_indented_labels():
    rows = (
        (72, "Assets", ()),
        (82, "Cash and cash equivalents", ("2,853", "3,053")),
        (82, "Accounts receivable — net of allowances", ()),
        (92, "of $95 and $103", ("5,020", "4,911")),
        (82, "Deferred income taxes", ("—", "—")),
        (72, "Treasury stock, at cost", ("(29,626)", "(25,887)")),
    )
    pages = Pages().add()
    for i, (x, label, numbers) in enumerate(rows):
        y = 100 + 12 * i
        pages.put(x, y, label)
        for right, number in zip((440, 520), numbers, strict=False):
            # Closing parentheses hang outside the column of digits.
            pages.right(right, y, number.removesuffix(")"))
            if number.endswith(")"):
                pages.put(right + 0.5, y, ")")
            if i == 1:
                pages.put(right - 60, y, "$")
    assert pages.read().text.split("\n") == [
        "Assets",
        "Cash and cash equivalents  $ 2,853  $ 3,053",
        "Accounts receivable — net of allowances of $95 and $103  5,020  4,911",
        "Deferred income taxes  —  —",
        "Treasury stock, at cost  (29,626)  (25,887)",
    ]


def test_a_column_of_remarks_stays_with_its_rows_where_some_have_none():
    rows = (
        "Quantity|Value|Remark",
        "Rated power|3.2 kW|at 11 m/s",
        "Rotor diameter|3.9 m|three blades, upwind",
        "Swept area|11.9 m²|",
        "Cut-in wind speed|2.8 m/s|charging begins at 3.1 m/s",
        "Furling begins|14 m/s|tail hinge inclined by 12°",
        "Mass without mast|71 kg|rotor 13 kg, generator 38.5 kg",
        "Sound at 50 m, 6 m/s|38 dB(A)|",
        "Temperature range|−30 to 45 °C|below −20 °C with arctic grease",
    )
    pages = Pages().add()
    for i, row in enumerate(rows):
        for x, cell in zip((61, 172, 252), row.split("|"), strict=True):
            pages.put(x, 131 + 16.4 * i, cell)
    document = pages.read()
    expected = [row.rstrip("|").replace("|", "  ") for row in rows]
    assert document.text.split("\n") == expected
    assert [document.text[a:b] for a, b in document.atoms] == expected


FAULTS = (
    ("17", ("Brake resistor too", "hot"), ("Clear snow, leaves or nests off the fins. Check", "100 mm around it are free.")),
    ("21", ("No rotor speed",), ("Look at the white sensor wire, which mice like.", "Measure 5 V between white and brown.")),
    ("33", ("Brake takes longer", "than 4 s"), ("Have the resistor and the relay tested.",)),
    ("52", ("Battery lost while", "turning"), ("Check the fuse. The generator was over-", "loaded: measure its winding.")),
)  # fmt: skip


def draw_faults(between: float) -> Pages:
    """A table of wrapped cells whose rows stand `between` points further apart than lines."""
    pages, y = Pages().add(), 100.0
    for number, meaning, action in FAULTS:
        pages.put(60, y, number).lines(90, y, meaning).lines(190, y, action)
        y += 12 * max(len(meaning), len(action)) + between
    return pages


def test_wrapped_cells_join_and_their_row_is_one_line():
    assert draw_faults(between=6).read().text.split("\n") == [
        "17  Brake resistor too hot  Clear snow, leaves or nests off the fins. Check 100 mm around it are free.",
        "21  No rotor speed  Look at the white sensor wire, which mice like. Measure 5 V between white and brown.",
        "33  Brake takes longer than 4 s  Have the resistor and the relay tested.",
        "52  Battery lost while turning  Check the fuse. The generator was overloaded: measure its winding.",
    ]


def test_rows_of_lower_case_words_are_not_taken_for_wrapped_cells():
    rows = ("rm|remove files", "mv|move or rename files", "chmod|change the mode of files", "ls|list the folder")
    pages = Pages().add()
    for i, row in enumerate(rows):
        command, effect = row.split("|")
        pages.put(72, 100 + 12 * i, command).put(150, 100 + 12 * i, effect)
    assert pages.read().text.split("\n") == [row.replace("|", "  ") for row in rows]


FULL = (
    "Net sales grew in every region of the world because demand for safety products was strong and prices rose all over",
)
GROWTH = (
    ("Growth", "2018", "2017"),
    ("Volume", "2.1%", "4.0%"),
    ("Price", "1.1%", "(0.1)%"),
    ("Total", "3.2%", "3.9%"),
)


@pytest.mark.parametrize("offset", [0, 3, 6])
def test_text_set_around_a_small_table_reads_whole_before_it(offset: int):
    pages = Pages().add().lines(60, 100, FULL * 3).lines(60, 136, LEFT[2:]).lines(60, 184, FULL * 3)
    for i, (label, *numbers) in enumerate(GROWTH):
        y = 133 + offset + 12 * i
        pages.put(330, y, label)
        for right, number in zip((460, 510), numbers, strict=True):
            pages.right(right, y, number)
    assert pages.read().text.split("\n\n") == [
        " ".join(FULL * 3 + LEFT[2:]),
        "\n".join("  ".join(row) for row in GROWTH),
        " ".join(FULL * 3),
    ]


def test_tables_side_by_side_keep_each_number_behind_its_label():
    pages = Pages().add()
    for x, rows in ((60, GROWTH), (318, (("Region", "2018", "2017"), *BALANCE[2:]))):
        for i, (label, *numbers) in enumerate(rows):
            pages.put(x, 100 + 12 * i, label)
            for right, number in zip((x + 170, x + 220), numbers, strict=False):
                pages.right(right, 100 + 12 * i, number)
    assert pages.read().text.split("\n") == [
        "Growth  2018  2017  Region  2018  2017",
        "Volume  2.1%  4.0%  Gain on sale of businesses  (547)  (586)",
        "Price  1.1%  (0.1)%  Effective tax rate  23.4%  35.5%",
        "Total  3.2%  3.9%",
    ]


def test_footnotes_below_a_table_are_paragraphs():
    pages = Pages().add().table(72, 100, BALANCE, first=250)
    pages.put(72, 160, "(a) Includes $12 million of restructuring charges of the fourth quarter, of", 8)
    pages.put(84, 170, "which $4 million was paid.", 8).put(72, 182, "(b) Amounts may not add because of rounding.", 8)
    assert pages.read().text.split("\n")[-2:] == [
        "(a) Includes $12 million of restructuring charges of the fourth quarter, of which $4 million was paid.",
        "(b) Amounts may not add because of rounding.",
    ]
