"""The picture, as a reader sees it: whole screens reviewed by hand, and laws that hold for any values."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from rse_cli.cli.bars import draw_bar, make_scale, measure_bar
from rse_cli.cli.captions import render_not_chosen
from rse_cli.cli.exporting import export_picture
from rse_cli.cli.folding import Fold, fold_rows
from rse_cli.cli.glyphs import ASCII, UNICODE, fit, show_line
from rse_cli.cli.numbers import Table
from rse_cli.cli.picture import Sheet, Style, render_picture
from rse_cli.cli.strip import draw_strip
from rse_cli.pipeline.inspect import Mark
from rse_cli.pipeline.not_chosen import NotChosen
from tests.pictures import NAN, draw, make_chunks, make_sheets, make_view, paint

NUMBERS = st.floats(-50, 50, allow_subnormal=False) | st.just(NAN)


# Whole screens


def test_a_screen_of_60_cells() -> None:
    assert draw(60) == (
        "docs/pump.md  Pump manual  2 segments · 6 chunks\n"
        "▁█▄▁▅▁\n"
        " ▔▔▔▔\n"
        "  0 :1    🮇█│           −0.25   # Pump manual\n"
        "  1 :3      │██████████ +2.00 ┐ Clean the filter of the pum…\n"
        "  2 :5      │██▌        +0.50 │ Never use soap on the seal.\n"
        "  3 :7     🮇│           −0.06 │ ␛[31mRed␛[0m text, a tab an…\n"
        "          ▐█│           −0.30 ┘ segment_cost · score 2.14\n"
        "  4 :9      │█████      +1.00 ┐ 泵站每年春天清洗过滤器，然…\n"
        "          ▐█│           −0.30 ┘ segment_cost · score 0.70\n"
        "  5 :11 🮊███│           −0.75   Drain the pump before the f…\n"
        "\n"
        "docs/lamp.pdf  The lamp of the lighthouse  12 chunks\n"
        "   ▁▁▁▂▁\n"
        "  ⋮ 5 chunks, best −0.38\n"
        "  5 p2    🮇█│           −0.25   The lamp turns for the time…\n"
        "  6 p2      │▋          +0.12   The lamp turns for the time…\n"
        "  7 p2   ▐██│           −0.50   The lamp turns for the time…\n"
        "  ⋮ 4 chunks\n"
    )


def test_a_screen_of_80_cells() -> None:
    assert draw(80) == (
        "docs/pump.md  Pump manual  2 segments · 6 chunks\n"
        "▁█▄▁▅▁\n"
        " ▔▔▔▔\n"
        "  0 :1     🮉█│               −0.25   # Pump manual\n"
        "  1 :3       │█████████████▍ +2.00 ┐ Clean the filter of the pump every spring…\n"
        "  2 :5       │███▍           +0.50 │ Never use soap on the seal.\n"
        "  3 :7      🮈│               −0.06 │ ␛[31mRed␛[0m text, a tab and <U+202E>bidi.\n"
        "           ██│               −0.30 ┘ segment_cost · score 2.14 · segment 1\n"
        "  4 :9       │██████▋        +1.00 ┐ 泵站每年春天清洗过滤器，然后在阴凉处晾干，…\n"
        "           ██│               −0.30 ┘ segment_cost · score 0.70 · segment 2\n"
        "  5 :11 █████│               −0.75   Drain the pump before the first frost.\n"
        "\n"
        "docs/lamp.pdf  The lamp of the lighthouse  12 chunks\n"
        "   ▁▁▁▂▁\n"
        "  ⋮ 5 chunks, best −0.38\n"
        "  5 p2     🮉█│               −0.25   The lamp turns for the time number 5.\n"
        "  6 p2       │▉              +0.12   The lamp turns for the time number 6.\n"
        "  7 p2   🮈███│               −0.50   The lamp turns for the time number 7.\n"
        "  ⋮ 4 chunks\n"
    )


def test_a_screen_of_120_cells() -> None:
    assert draw(120, sheets=make_sheets()[:1]) == (
        "docs/pump.md  Pump manual  2 segments · 6 chunks\n"
        "▁█▄▁▅▁\n"
        " ▔▔▔▔\n"
        "  0 :1       🮉██│                      −0.25   # Pump manual\n"
        "  1 :3          │█████████████████████ +2.00 ┐ Clean the filter of the pump every spring with warm water, and let it dr…\n"
        "  2 :5          │█████▎                +0.50 │ Never use soap on the seal.\n"
        "  3 :7         🮉│                      −0.06 │ ␛[31mRed␛[0m text, a tab and <U+202E>bidi.\n"
        "            ▕███│                      −0.30 ┘ segment_cost · score 2.14 · segment 1 · 185 characters\n"
        "  4 :9          │██████████▌           +1.00 ┐ 泵站每年春天清洗过滤器，然后在阴凉处晾干，再装回原处，不要在密封件上使用…\n"
        "            ▕███│                      −0.30 ┘ segment_cost · score 0.70 · segment 2 · 40 characters\n"
        "  5 :11 🮋███████│                      −0.75   Drain the pump before the first frost.\n"
    )


def test_a_screen_in_ascii_escapes_the_documents_too() -> None:
    assert draw(80, ASCII) == (
        "docs/pump.md  Pump manual  2 segments | 6 chunks\n"
        "_#-_=_\n"
        " ^^^^\n"
        "  0 :1     :#|               -0.25   # Pump manual\n"
        "  1 :3       |#############: +2.00 \\ Clean the filter of the pump every sprin...\n"
        "  2 :5       |###:           +0.50 | Never use soap on the seal.\n"
        "  3 :7      :|               -0.06 | <U+001B>[31mRed<U+001B>[0m text, a tab a...\n"
        "           ##|               -0.30 / segment_cost | score 2.14 | segment 1\n"
        "  4 :9       |######:        +1.00 \\ \\u6cf5\\u7ad9\\u6bcf\\u5e74\\u6625\\u5929\\u6e...\n"
        "           ##|               -0.30 / segment_cost | score 0.70 | segment 2\n"
        "  5 :11 #####|               -0.75   Drain the pump before the first frost.\n"
        "\n"
        "docs/lamp.pdf  The lamp of the lighthouse  12 chunks\n"
        "   ___._\n"
        "  : 5 chunks, best -0.38\n"
        "  5 p2     :#|               -0.25   The lamp turns for the time number 5.\n"
        "  6 p2       |#              +0.12   The lamp turns for the time number 6.\n"
        "  7 p2   :###|               -0.50   The lamp turns for the time number 7.\n"
        "  : 4 chunks\n"
    )


def test_a_screen_with_the_numbers() -> None:
    assert draw(60, explain=True, sheets=make_sheets()[:1]) == (
        "docs/pump.md  Pump manual  2 segments · 6 chunks\n"
        "▁█▄▁▅▁\n"
        " ▔▔▔▔\n"
        "    rank  c0  f0  rel  pen value\n"
        "  0    3 .12 .25 .020 .075 −0.25   # Pump manual\n"
        "  1    0 .75 1.0 1.40 .075 +2.00 ┐ [pump] Clean the filter…\n"
        "  2    2 .50 .12 .800 .075 +0.50 │ Never use soap on the se…\n"
        "  3    4 −.1 .00 .010 .075 −0.06 │ [pump] ␛[31mRed␛[0m text…\n"
        "                           −0.30 ┘ segment_cost · score 2.14\n"
        "  4    1 1.0 .50 .800 .075 +1.00 ┐ 泵站每年春天清洗过滤器，…\n"
        "                           −0.30 ┘ segment_cost · score 0.70\n"
        "  5    5 .00 .06 .000 .075 −0.75   [pump] Drain the pump be…\n"
    )


def test_in_colour_bars_brackets_and_paths_stand_out() -> None:
    screen = paint(render_picture(make_sheets()[:1], Style(60, UNICODE))).split("\n")

    assert screen[:3] == [
        "\x1b[1;35mdocs/pump.md\x1b[0m  Pump manual\x1b[2m  2 segments · 6 chunks\x1b[0m",
        "\x1b[36m▁█▄▁▅▁\x1b[0m",
        "\x1b[1;33m ▔▔▔▔\x1b[0m",
    ]
    assert screen[3] == (
        "\x1b[2m  0\x1b[0m\x1b[2m :1 \x1b[0m \x1b[31m  🮇█\x1b[0m\x1b[2m│\x1b[0m\x1b[32m          \x1b[0m"
        "\x1b[31m −0.25\x1b[0m\x1b[1;33m  \x1b[0m\x1b[2m # Pump manual\x1b[0m"
    )
    assert screen[4] == (
        "\x1b[2m  1\x1b[0m\x1b[2m :3 \x1b[0m \x1b[31m    \x1b[0m\x1b[2m│\x1b[0m\x1b[32m██████████\x1b[0m"
        "\x1b[32m +2.00\x1b[0m\x1b[1;33m ┐\x1b[0m Clean the filter of the pum…"
    )


# Single features


def test_segments_that_share_a_chunk_have_brackets_side_by_side() -> None:
    marks = (Mark(0, 0, 2, 0, 15, 1.0), Mark(1, 1, 3, 17, 30, 0.5))
    view = make_view("a.md", "", (1.0, 0.5, 0.25), marks)
    texts = ("One, and so on. ", "Two, and so on. ", "Three, and so on.")

    assert draw(60, sheets=[Sheet(view, [0, 1, 2], make_chunks(texts))]).split("\n")[3:] == [
        "  0 :1 │██████████████ +1.00 ┐  One, and so on.",
        "  1 :3 │███████        +0.50 │┐ Two, and so on.",
        "       │                     ┘│ score 1.00 · segment 1",
        "  2 :5 │███▌           +0.25  │ Three, and so on.",
        "       │                      ┘ score 0.50 · segment 2",
        "",
    ]


def test_a_score_that_holds_more_than_its_rows_says_so() -> None:
    mark = Mark(0, 0, 1, 0, 9, 1.5, cost=0.25, rest=0.75)
    view = make_view("a.md", "", (1.0,), (mark,))

    assert draw(60, sheets=[Sheet(view, [0], make_chunks(("One.",)))]).split("\n")[3:6] == [
        "  0 :1    │███████████ +1.00 ┐ One.",
        "          │████████▎   +0.75 │ cut off, still in the score",
        "       🮊██│            −0.25 ┘ segment_cost · score 1.50",
    ]


def test_a_fold_inside_a_segment_keeps_its_bracket_and_says_what_it_adds() -> None:
    values = (1.0, *(-0.125,) * 8, 1.0)
    view = make_view("a.md", "", values, (Mark(0, 0, 10, 0, 90, 1.0),))
    rows = fold_rows(view.values, [(0, 10)], 0.0, 1)
    lines = draw(60, sheets=[Sheet(view, rows, make_chunks(["Some words. "] * 10))]).split("\n")

    assert lines[5].startswith("  ⋮ 6 chunks, best −0.12, together −0.75") and lines[5].endswith(" │")


def test_where_little_room_is_left_the_score_stays() -> None:
    screens = {width: next(line.partition("┘")[2] for line in draw(width, sheets=make_sheets()[:1]).split("\n") if "┘" in line) for width in (40, 60, 80, 120)}  # fmt: skip

    assert screens == {
        40: " score 2.14",
        60: " segment_cost · score 2.14",
        80: " segment_cost · score 2.14 · segment 1",
        120: " segment_cost · score 2.14 · segment 1 · 185 characters",
    }


def test_columns_without_room_are_named_below() -> None:
    screen = draw(30, explain=True, sheets=make_sheets()[:1])

    assert "rank  c0  rel  pen value" in screen
    assert "⋮ no room for f0" in screen.split("\n")
    assert max(map(cell_len, screen.split("\n"))) <= 30


def test_terms_are_escaped_and_measured_as_the_text_is() -> None:
    table = Table(["c0"], 1, lambda view, chunk, query: ["泵站", "过滤"])
    lines = render_picture(make_sheets(), Style(60, ASCII, table=table))

    assert all(line.plain.isascii() and len(line.plain) <= 60 for line in lines)
    assert any("[\\u6cf5\\u7ad9" in line.plain for line in lines)


def test_small_scores_have_four_decimals() -> None:
    view = make_view("a.md", "", (0.0328, 0.0161))

    assert "+0.0328" in draw(60, sheets=[Sheet(view, [0, 1], make_chunks(("One.", "Two.")))])


def test_what_was_not_chosen_has_its_reason_beside_or_below() -> None:
    entries = [
        NotChosen("docs/pump.md", 5, 6, 0, -0.375, "below_minimum", "relevance 0.010 is below the penalty 0.075"),
        NotChosen("a/b.md", 3, 6, 0, 0.25, "over_budget", "max_chars 40 raised the penalty from 0.075 to 0.210"),
    ]

    assert [line.plain for line in render_not_chosen(entries, 1, 80, UNICODE)] == [
        "Not chosen",
        "  docs/pump.md#5   −0.38  relevance 0.010 is below the penalty 0.075",
        "  a/b.md#3–5       +0.25  max_chars 40 raised the penalty from 0.075 to 0.210",
    ]
    assert [line.plain for line in render_not_chosen(entries, 1, 60, ASCII)] == [
        "Not chosen",
        "  docs/pump.md#5   -0.38",
        "    relevance 0.010 is below the penalty 0.075",
        "  a/b.md#3-5       +0.25",
        "    max_chars 40 raised the penalty from 0.075 to 0.210",
    ]


def test_text_is_cut_by_cells_not_by_characters() -> None:
    assert fit("泵站每年", 5, UNICODE) == "泵站…"
    assert fit("泵站每年", 8, UNICODE) == "泵站每年"
    assert fit("abc", 2, ASCII) == ".."


def test_controls_are_seen_in_ascii_under_their_own_number() -> None:
    assert show_line("\x1b[2J\x07 \x85\u202e \x1c é\n", ASCII) == "<U+001B>[2J<U+0007> <U+0085><U+202E> <U+001C> \\xe9"


# Laws


@given(st.lists(NUMBERS, min_size=1, max_size=30), st.integers(3, 60))
def test_bars_are_proportional_to_values_within_an_eighth_of_a_cell(values: list[float], width: int) -> None:
    scale = make_scale(values, width)
    for value in values:
        left, zero, right = draw_bar(value, scale, UNICODE)
        assert (len(left), zero, len(right)) == (scale.left, "│", scale.right)
        size = 0.0 if math.isnan(value) else abs(value) / scale.unit
        assert abs(measure_bar(left if value < 0 else right, UNICODE) - size) <= 1 / 16 + 1e-9
        assert (right if value < 0 else left).strip() == ""


@given(st.lists(NUMBERS, min_size=1, max_size=30), st.integers(3, 60))
def test_the_longest_bar_uses_its_side_up(values: list[float], width: int) -> None:
    scale = make_scale(values, width)
    known = [value for value in values if value and not math.isnan(value)]
    sizes = [abs(value) / scale.unit / (scale.left if value < 0 else scale.right) for value in known]
    assert scale.width == width
    assert not sizes or math.isclose(max(sizes), 1.0)


def test_context_may_be_wider_than_any_document() -> None:
    values = np.array([-1.0, 1.0, -1.0, -1.0])

    assert fold_rows(values, [], 0.0, 10**30) == fold_rows(values, [], 0.0, 4) == [0, 1, 2, 3]


@given(st.lists(NUMBERS, max_size=60), st.integers(0, 5), st.data())
def test_rows_and_folds_cover_every_chunk_once_and_hide_nothing_that_matters(
    values: list[float], around: int, data: st.DataObject
) -> None:
    n = len(values)
    spans = []
    if n:
        start = data.draw(st.integers(0, n - 1))
        spans = [(start, data.draw(st.integers(start + 1, n)))]
    rows = fold_rows(np.array(values), spans, 0.0, around)
    covered = [ord_ for row in rows for ord_ in (range(row.start, row.end) if isinstance(row, Fold) else [row])]
    assert covered == list(range(n))
    for fold in (row for row in rows if isinstance(row, Fold)):
        held = values[fold.start : fold.end]
        assert fold.end - fold.start > 1
        assert not any(value > 0 for value in held)
        assert not any(start in range(fold.start, fold.end) for span in spans for start in (span[0], span[1] - 1))
        assert fold.total == pytest.approx(sum(value for value in held if not math.isnan(value)))


@given(st.lists(NUMBERS, min_size=1, max_size=300), st.integers(1, 80))
def test_the_strip_shows_the_best_of_what_each_cell_stands_for(values: list[float], width: int) -> None:
    best = max((value for value in values if not math.isnan(value)), default=0.0)
    heights, under = draw_strip(np.array(values), [(len(values) - 1, len(values))], best, width, UNICODE)
    assert len(heights) <= min(width, len(values))
    assert len(under) == min(width, len(values))
    assert (best > 0) == ("█" in heights)


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=80).filter(str.strip)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(NUMBERS, TEXTS), min_size=1, max_size=12),
    st.integers(60, 130),
    st.sampled_from([UNICODE, ASCII]),
    st.booleans(),
    TEXTS,
)
def test_no_line_is_wider_than_the_screen_and_none_drives_it(
    rows: list[tuple[float, str]], width: int, glyphs: object, explain: bool, path: str
) -> None:
    values, texts = [value for value, _ in rows], [text for _, text in rows]
    numbers = {name: [value] * len(rows) for name, value in (("rank", 1.0), ("c0", 0.5), ("f0", 0.25), ("relevance", 1.0), ("penalty", 0.1))}  # fmt: skip
    view = make_view(path, path, values, (Mark(0, 0, len(rows), 0, 1, 1.0, cost=0.3),), numbers=numbers)
    screen = draw(width, glyphs, explain=explain, sheets=[Sheet(view, list(range(len(rows))), make_chunks(texts))])  # type: ignore[arg-type]
    assert not any(ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0 for sign in screen.replace("\n", ""))
    assert "\u202e" not in screen and "\u2028" not in screen
    for line in screen.split("\n"):
        assert cell_len(line) <= width
    if glyphs is ASCII:
        assert screen.isascii()


# Files


def test_files_need_nothing_else_and_draw_the_left_bars_with_common_signs(tmp_path: Path) -> None:
    lines = render_picture(make_sheets(), Style(80, UNICODE))
    export_picture(lines, 80, svg=str(tmp_path / "a.svg"), html=str(tmp_path / "a.html"))
    svg, html = (tmp_path / "a.svg").read_text("utf-8"), (tmp_path / "a.html").read_text("utf-8")

    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    for text in (svg, html):
        assert "url(http" not in text and "src=" not in text and "<link" not in text
        assert not set("▕🮇🮈▐🮉🮊🮋") & set(text)
        assert "Clean" in text and "泵站每年" in text


def test_an_eighth_from_the_right_is_its_complement_in_reverse(tmp_path: Path) -> None:
    export_picture([Text("🮇█│", "red")], 60, svg=None, html=str(tmp_path / "a.html"))

    html = (tmp_path / "a.html").read_text("utf-8")
    # A quarter of the cell is the text's colour: three quarters are painted over it in the colour of the page.
    assert "background-color: #800000" in html and ">▊<" in html
