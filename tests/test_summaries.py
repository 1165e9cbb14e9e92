"""A summary is made of a document's own chunks: near the whole, the lead favoured, without tables and headings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.core.models import Chunk
from rse_cli.core.summaries import SUMMARY_CHARS, choose_summary, compose_summary, pool_summary


def make_chunks(*texts: str, header: str = "Pumps", section: str = "", rows: tuple[int, ...] = ()) -> list[Chunk]:
    chunks, at = [], 0
    for ord_, text in enumerate(texts):
        row_terms = ("sale",) if ord_ in rows else None
        chunks.append(Chunk(ord_, at, at + len(text), text, header=header, section=section, row_terms=row_terms))
        at += len(text)
    return chunks


def lean(*cosines: float) -> np.ndarray:
    """Unit vectors that share their first direction by these cosines and are else all different."""
    vectors = np.zeros((len(cosines), len(cosines) + 1), np.float32)
    vectors[:, 0] = cosines
    for row, cosine in enumerate(cosines):
        vectors[row, row + 1] = np.sqrt(1 - cosine**2)
    return vectors


SENTENCE = "Number {} of the sentences in this document has its own words. "


def test_the_chunks_nearest_the_mean_are_taken_in_document_order() -> None:
    chunks = make_chunks(*[SENTENCE.format(i) for i in range(6)])
    assert choose_summary(chunks, lean(0.1, 0.1, 0.1, 0.9, 0.95, 0.9)) == (3, 4, 5)


def test_the_lead_is_favoured_among_chunks_about_as_near() -> None:
    chunks = make_chunks(*[SENTENCE.format(i) for i in range(6)])
    assert choose_summary(chunks, lean(0.6, 0.6, 0.6, 0.6, 0.6, 0.6)) == (0, 1, 2)


def test_longer_chunks_weigh_more_in_the_mean() -> None:
    short = [f"A short chunk on subject {i}. " for i in range(5)]
    long = [
        f"Chunk {i} is long and says a lot about the one subject that most of this document is about, as one can see."
        for i in range(3)
    ]
    vectors = np.repeat(np.eye(2, dtype=np.float32), [5, 3], axis=0)
    assert choose_summary(make_chunks(*short, *long), vectors) == (5, 6, 7)


def test_rows_of_tables_headings_and_figures_are_left_out() -> None:
    chunks = make_chunks(
        "# Pumps\n",
        "## Care and repair\n---\n",
        "Sales of pumps in many places 12 13 14\n",
        "| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | eleven numbers here |\n",
        "Short one.\n",
        "A pump lifts water from a well.\n",
        section="Care and repair",
        rows=(2,),
    )
    assert choose_summary(chunks, lean(0.9, 0.9, 0.9, 0.9, 0.9, 0.2)) == (5,)


def test_a_document_of_nothing_but_table_rows_still_has_a_summary() -> None:
    assert choose_summary(make_chunks("1 2 3\n", "4 5 6\n", rows=(0, 1)), lean(0.5, 0.9)) == (0, 1)


def test_a_document_that_is_only_its_title_is_its_own_summary() -> None:
    chunks = make_chunks("# Pumps\n")
    assert choose_summary(chunks, lean(1.0)) == (0,)
    assert compose_summary(chunks, (0,)) == "# Pumps"


def test_repeated_text_is_taken_once() -> None:
    texts = [
        "Confidential, for the members only. ",
        "Pumps lift water out of wells. ",
        "Confidential, for the members only. ",
    ]
    assert choose_summary(make_chunks(*texts), lean(0.9, 0.2, 0.9)) == (0, 1)


def test_a_chunk_that_no_longer_fits_gives_way_to_a_shorter_one() -> None:
    texts = ["a sentence of words " * 14, "another line of words " * 10, "a short remark at the end"]
    assert choose_summary(make_chunks(*texts), lean(0.9, 0.8, 0.1)) == (0, 2)


def test_a_single_long_chunk_is_cut_at_a_space() -> None:
    chunks = make_chunks("def call(): return something " * 30)
    assert choose_summary(chunks, lean(1.0)) == (0,)
    line = compose_summary(chunks, (0,))
    assert line == ("def call(): return something " * 30)[:395] + "…"


def test_a_summary_is_one_line_without_headings_and_marks_of_lists() -> None:
    chunks = make_chunks(
        "# Pumps\n\nA pump\nlifts water. \n", "- Oil it,\n- then **run** it.\n", "```\nx = 1\n```\n", "> Well said.\n"
    )
    assert compose_summary(chunks, (0, 1, 3)) == "A pump lifts water. Oil it, then **run** it. … Well said."


def test_chinese_chunks_are_eligible() -> None:
    chunks = make_chunks("目录\n", "本指南写给风力发电机的用户，包括选址、安装、使用和保养。")
    assert choose_summary(chunks, lean(0.9, 0.5)) == (1,)


def test_the_vector_is_the_weighted_mean_of_the_chosen_chunks() -> None:
    vectors = np.array([[1, 0], [0, -1], [0, 1]], np.float32)
    assert pool_summary(vectors, np.array([30, 9, 40]), (0, 2)).tolist() == pytest.approx([0.6, 0.8])


def test_chunks_that_cancel_out_give_the_first_ones_vector() -> None:
    vectors = np.array([[1, 0], [-1, 0]], np.float32)
    assert pool_summary(vectors, np.array([7, 7]), (0, 1)).tolist() == [1, 0]


def test_a_document_without_chunks_is_refused() -> None:
    with pytest.raises(ValueError, match="without chunks"):
        choose_summary([], np.zeros((0, 2), np.float32))


@given(st.lists(st.text(min_size=1, max_size=250), min_size=1, max_size=8), st.integers(0, 9))
def test_any_document_has_a_summary_of_one_to_three_chunks_on_one_line(texts: list[str], seed: int) -> None:
    chunks = make_chunks(*texts)
    vectors = np.random.default_rng(seed).normal(size=(len(texts), 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ords = choose_summary(chunks, vectors)
    assert 1 <= len(ords) <= 3
    assert list(ords) == sorted(set(ords))
    line = compose_summary(chunks, ords)
    assert len(line) <= SUMMARY_CHARS
    assert len(line.splitlines()) <= 1
    pooled = pool_summary(vectors, np.array([len(text) for text in texts]), ords)
    assert np.linalg.norm(pooled) == pytest.approx(1, abs=1e-5)
