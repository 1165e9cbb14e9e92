"""Blocks are whole adjacent chunks of one section, and their columns are sums and means of their chunks'."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.core.blocks import Blocks, assign_blocks, pool_blocks, select_blocks, take_largest
from rse_cli.core.hits import rank_dense
from rse_cli.core.models import Chunk, Passage


def make_chunks(lengths: list[int], sections: list[str] | None = None) -> list[Chunk]:
    ends = list(itertools.accumulate(lengths))
    return [
        Chunk(ord_, end - length, end, "x" * length, section=sections[ord_] if sections else "")
        for ord_, (length, end) in enumerate(zip(lengths, ends, strict=True))
    ]


def pool(documents: list[int], numbers: list[int], ords: list[int], chars: list[int] | None = None) -> Blocks:
    """Blocks of rows whose vectors are one-hot, with row i holding i of the query's one term and one term in all."""
    n = len(ords)
    sizes = np.array(chars or [10] * n, dtype=np.int64)
    return pool_blocks(
        np.array(documents, dtype=np.int64),
        np.array(numbers, dtype=np.int64),
        np.array(ords, dtype=np.int64),
        np.array(ords, dtype=np.int64) * 10,
        sizes,
        np.eye(n, 6, dtype=np.float32),
        np.arange(n, dtype=np.int32)[:, None],
        np.ones(n, dtype=np.int64),
    )


CHUNKS = st.lists(st.tuples(st.integers(1, 500), st.sampled_from(["", "A", "B"])), max_size=60)


@given(CHUNKS, st.integers(1, 900), st.integers(1, 15))
def test_blocks_partition_a_document_into_the_longest_stretches_that_fit(
    shapes: list[tuple[int, str]], block_chars: int, most: int
) -> None:
    chunks = make_chunks([length for length, _ in shapes], [section for _, section in shapes])
    numbers = assign_blocks(chunks, block_chars, most)
    assert len(numbers) == len(chunks)
    assert numbers[:1] in ([], [0])
    assert all(after - before in (0, 1) for before, after in itertools.pairwise(numbers))
    groups = [list(group) for _, group in itertools.groupby(chunks, key=lambda chunk: numbers[chunk.ord])]
    for group in groups:
        assert len({chunk.section for chunk in group}) == 1
        assert len(group) <= most
        assert len(group) == 1 or group[-1].end_char - group[0].start_char <= block_chars
    for before, after in itertools.pairwise(groups):
        assert (
            before[0].section != after[0].section
            or len(before) == most
            or after[0].end_char - before[0].start_char > block_chars
        )


def test_a_section_begins_a_block() -> None:
    assert assign_blocks(make_chunks([100] * 4, ["A", "A", "A › B", "A"])) == [0, 0, 1, 2]


def test_a_block_fills_up_to_exactly_its_characters() -> None:
    assert assign_blocks(make_chunks([400, 400, 1])) == [0, 0, 1]


def test_a_chunk_longer_than_a_block_is_alone() -> None:
    assert assign_blocks(make_chunks([50, 900, 50, 60])) == [0, 1, 2, 2]


def test_a_block_of_tiny_chunks_lies_within_the_neighbours_of_each() -> None:
    assert assign_blocks(make_chunks([20] * 14)) == [0] * 13 + [1]


def test_a_block_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one character"):
        assign_blocks([], 0)


def test_rows_are_pooled_by_document_and_block() -> None:
    blocks = pool([5, 5, 5, 2], [3, 3, 4, 4], [7, 8, 9, 10], [10, 10, 30, 5])
    assert blocks.documents.tolist() == [5, 5, 2]
    assert blocks.numbers.tolist() == [3, 4, 4]
    assert list(zip(blocks.starts.tolist(), blocks.ends.tolist(), strict=True)) == [(0, 2), (2, 3), (3, 4)]
    assert list(zip(blocks.start_ords.tolist(), blocks.end_ords.tolist(), strict=True)) == [(7, 9), (9, 10), (10, 11)]
    assert blocks.start_chars.tolist() == [70, 90, 100]
    assert blocks.chars.tolist() == [20, 30, 5]
    assert blocks.counts.tolist() == [[1], [2], [3]]
    assert blocks.n_terms.tolist() == [2, 1, 1]
    assert blocks.of_rows.tolist() == [0, 0, 1, 2]


def test_vectors_are_means_weighted_by_characters_and_of_unit_length() -> None:
    blocks = pool([0, 0], [0, 0], [0, 1], [30, 40])
    assert blocks.vectors[0].tolist() == pytest.approx([0.6, 0.8, 0, 0, 0, 0])


def test_parts_of_a_block_that_lie_apart_are_blocks_of_their_own() -> None:
    blocks = pool([0, 0, 0], [2, 2, 2], [10, 11, 15])
    assert blocks.numbers.tolist() == [2, 2]
    assert blocks.end_ords.tolist() == [12, 16]


def test_no_rows_give_no_blocks() -> None:
    blocks = pool([], [], [])
    assert blocks.chars.tolist() == blocks.of_rows.tolist() == take_largest(blocks, np.zeros(0)).tolist() == []
    assert blocks.counts.shape == (0, 1)
    assert blocks.vectors.shape == (0, 6)


ROWS = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 3)), min_size=1, max_size=30)


@given(ROWS)
def test_pooling_agrees_with_a_loop_over_rows(steps: list[tuple[bool, bool, int]]) -> None:
    documents, numbers, ords = [0], [0], [0]
    for new_document, new_block, gap in steps:
        documents.append(documents[-1] + new_document)
        numbers.append(0 if new_document else numbers[-1] + new_block)
        ords.append(0 if new_document else ords[-1] + gap)
    n = len(ords)
    generator = np.random.default_rng(n)
    chars = generator.integers(1, 300, n)
    vectors = generator.normal(size=(n, 4)).astype(np.float32)
    counts = generator.integers(0, 3, (n, 2)).astype(np.int32)
    blocks = pool_blocks(
        np.array(documents), np.array(numbers), np.array(ords), np.array(ords) * 7, chars, vectors, counts, chars // 9
    )
    for block in range(len(blocks.chars)):
        rows = range(int(blocks.starts[block]), int(blocks.ends[block]))
        assert len({(documents[row], numbers[row], ords[row] - row) for row in rows}) == 1
        assert all(blocks.of_rows[row] == block for row in rows)
        mean = sum(float(chars[row]) * vectors[row].astype(np.float64) for row in rows)
        assert blocks.vectors[block] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
        assert blocks.chars[block] == sum(chars[row] for row in rows)
        assert blocks.counts[block].tolist() == sum(counts[row] for row in rows).tolist()
        assert blocks.n_terms[block] == sum(chars[row] // 9 for row in rows)
    assert blocks.starts.tolist()[1:] == blocks.ends.tolist()[:-1]


def test_the_relevance_of_a_block_is_that_of_its_best_chunk() -> None:
    assert take_largest(pool([0, 0, 0], [0, 0, 1], [0, 1, 2]), np.array([0.1, -0.5, -0.2])).tolist() == [0.1, -0.2]


def test_top_k_returns_the_best_blocks_in_order_and_ties_by_position() -> None:
    blocks = pool([4, 4, 4, 9], [0, 0, 1, 0], [0, 1, 2, 0], [10, 10, 15, 20])
    similarity = np.array([0.5, 0.7, 0.7])
    rows = rank_dense(similarity)
    assert select_blocks(blocks, (rows, similarity[rows]), 2, query=1) == [
        Passage(4, 2, 3, 20, 35, 0.7, (1,)),
        Passage(9, 0, 1, 0, 20, 0.7, (1,)),
    ]
    assert len(select_blocks(blocks, (rows, similarity[rows]), 9)) == 3
