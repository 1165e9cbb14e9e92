"""Chunks tile any document, keep whole what should stay whole, and end where sentences end."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rse_cli.core.chunking import MIN_CHARS, split_document
from rse_cli.core.models import Document, Heading

TEXTS = st.text(alphabet=st.sampled_from("ab .!?\n\r\t。；，検索\u0301\U0001f600\u200d|#-1"), max_size=400) | st.text()


def pieces(text: str, chunk_chars: int = 80, **layout: object) -> list[str]:
    document = Document(text, **layout)  # type: ignore[arg-type]
    return [text[start:end] for start, end in split_document(document, chunk_chars)]


@given(TEXTS, st.integers(80, 400), st.booleans(), st.data())
def test_chunks_tile_any_text_with_any_layout(text: str, chunk_chars: int, wrapped: bool, data: st.DataObject) -> None:
    positions = st.lists(st.integers(0, len(text)), max_size=6).map(sorted)
    bounds = data.draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True).map(sorted))
    document = Document(
        text,
        headings=tuple(Heading(at, 1, "h") for at in data.draw(positions)),
        page_starts=(0, *data.draw(positions)),
        atoms=tuple(zip(bounds[::2], bounds[1::2], strict=False)),
        breaks=tuple(data.draw(positions)),
        wrapped=wrapped,
    )
    spans = split_document(document, chunk_chars)
    assert "".join(text[start:end] for start, end in spans) == (text if text.strip() else "")
    assert all(start < end for start, end in spans)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(spans))
    assert all(text[start:end].strip() for start, end in spans)


@given(TEXTS, st.integers(80, 400))
@example("word " * 100, 80)
@example("字" * 1000, 80)
def test_no_chunk_of_prose_is_longer_than_asked(text: str, chunk_chars: int) -> None:
    spans = split_document(Document(text), chunk_chars)
    bodies = [text[start:end].strip() for start, end in spans]
    assert all(len(body) <= chunk_chars + 2 for body in bodies)


@given(TEXTS)
def test_only_the_last_chunk_of_a_stretch_is_short(text: str) -> None:
    bodies = [piece.strip() for piece in pieces(text, 400)]
    # A short chunk remains only where joining it would make its neighbour too long.
    for before, after in itertools.pairwise(bodies):
        assert len(before) >= MIN_CHARS or len(before) + len(after) + 2 > 400 or len(after) > 300


def test_a_chunk_ends_after_a_sentence_and_its_closing_quotes() -> None:
    first = 'He said: "This sentence alone is longer than the sixty characters that it takes." '
    assert (
        pieces(first + "Then he left the room without any other word, and nobody followed him there.", 300)[0] == first
    )


def test_short_sentences_are_joined_up_to_sixty_characters() -> None:
    text = "One. Two. Three. Four. Five. Six. Seven. Eight. Nine. Ten. Eleven. Twelve. Thirteen. Fourteen."
    assert pieces(text) == [text[:67], text[67:]]


def test_chinese_sentences_end_without_white_space() -> None:
    text = "检索系统把文档切成许多小块，然后为每一块打分，最后选出相邻的若干块作为答案，这样得到的段落既完整又不冗长，读者一看就明白其中的意思了。第二句话在这里开始，它也有足够的长度可以单独成为一块，因为它说的是另外一件完全不同的事情，与前面没有关系。"
    assert [piece[-1] for piece in pieces(text, 300)] == ["。", "。"]


def test_a_heading_begins_a_chunk() -> None:
    text = "Short.\n# Next\nMore."
    assert pieces(text, headings=(Heading(7, 1, "Next"),)) == ["Short.\n", "# Next\nMore."]


def test_a_page_begins_a_chunk() -> None:
    assert pieces("One.\nTwo.\n", page_starts=(0, 5)) == ["One.\n", "Two.\n"]


def test_a_code_fence_stays_whole_though_it_is_longer_than_a_chunk() -> None:
    fence = "```\n" + "print('a line of code. with a stop')\n" * 6 + "```\n"
    text = "Run this:\n\n" + fence + "\nDone, and now this sentence has to be long enough to stand by itself."
    start = text.index("```")
    assert pieces(text, atoms=((start, start + len(fence)),))[0] == "Run this:\n\n" + fence + "\n"


def test_a_table_row_is_never_cut_at_its_full_stops() -> None:
    row = "| a. b. c. d | " + "cell with a stop. and more; and, so on | " * 4 + "\n"
    text = row * 2
    assert pieces(text, atoms=((0, len(row) - 1), (len(row), 2 * len(row) - 1))) == [row, row]


def test_an_atom_beyond_eight_chunks_is_cut_at_a_line_end() -> None:
    fence = "x = 1  # a line\n" * 90
    parts = pieces(fence, atoms=((0, len(fence)),))
    assert len(parts) > 1
    assert all(part.endswith("\n") and len(part) <= 640 for part in parts)


def test_a_long_sentence_is_cut_at_its_best_separator_into_even_pieces() -> None:
    text = "a first clause of some fifty characters, more or less; and a second clause that is about as long as it."
    assert pieces(text) == [
        "a first clause of some fifty characters, more or less; ",
        "and a second clause that is about as long as it.",
    ]


@pytest.mark.parametrize(
    "character",
    [
        "e\u0301",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f44d\U0001f3fd",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # the flag of England
        "\u1112\u1161\u11ab",  # han in parts, as macOS writes names
        "\u0e19\u0e49\u0e33",  # Thai nam, which ends with AM
        "\u0915\u094d\u0937\u093f",  # Devanagari kshi
    ],
)
def test_no_cut_falls_inside_a_character(character: str) -> None:
    text = character * 100
    for piece in pieces(text):
        assert piece == character * (len(piece) // len(character))


def test_wrapped_prose_goes_on_over_line_ends_but_not_over_paragraphs_or_lists() -> None:
    text = (
        "This paragraph was wrapped by hand at some sixty-odd characters and\n"
        "goes on in the next line before it ends, as prose in files does.\n"
        "\n"
        "- an item of a list that is long enough to be a chunk of its own, it is\n"
        "- another item of that list that is long enough to be a chunk, it is\n"
    )
    assert [piece.count("\n") for piece in pieces(text, 300, wrapped=True)] == [3, 1, 1]
    assert [piece.count("\n") for piece in pieces(text, 300)] == [1, 2, 1, 1]


def test_a_text_of_white_space_has_no_chunks() -> None:
    assert split_document(Document(" \n\t\n")) == []


def test_chunk_chars_below_eighty_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 80"):
        split_document(Document("a"), 79)
