"""The classic ways over the same index, to compare with: the best blocks by cosine, by BM25, and by both.

A block is adjacent whole chunks of one section up to so many characters; its vector is the mean of theirs, weighted by
characters and of unit length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.blocks import assign_blocks
from rse_cli.core.lexical import compute_idf, count_terms, score_bm25, split_terms
from rse_cli.core.metrics import DocumentSpan
from rse_cli.core.term_columns import TermTexts
from rse_cli.ports import EvidenceRows, Snapshot, StoredChunk, make_key

FUSION_K = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """All chunks of an index, in order, with what scoring reads of them."""

    stored: Sequence[StoredChunk]
    rows: EvidenceRows


@dataclass(frozen=True, slots=True)
class Blocks:
    """What can be ranked: spans, unit vectors of shape (n_blocks, dimension), and terms joined by spaces."""

    spans: Sequence[DocumentSpan]
    vectors: NDArray[np.float32]
    terms: Sequence[str]


def read_chunks(snapshot: Snapshot) -> Chunks:
    """Return every chunk of an index that was made at once, so that its documents are numbered from 0."""
    heads = snapshot.heads(range(len(snapshot.files())))
    keys = [make_key(number, at) for number, record in sorted(heads.items()) for at in range(record.n_chunks)]
    return Chunks(snapshot.chunks(keys), snapshot.evidence(keys))


def join_blocks(chunks: Chunks, block_chars: int) -> Blocks:
    """Return the blocks of at most `block_chars` characters."""
    groups: list[list[int]] = []
    for _, members in groupby(range(len(chunks.stored)), key=lambda at: chunks.stored[at].path):
        rows = list(members)
        numbers = assign_blocks([chunks.stored[at].chunk for at in rows], block_chars)
        for _, pairs in groupby(zip(numbers, rows, strict=True), key=lambda pair: pair[0]):
            groups.append([at for _, at in pairs])
    weighted = chunks.rows.vectors * chunks.rows.chars[:, None].astype(np.float32)
    sums = np.add.reduceat(weighted, [group[0] for group in groups])
    assert isinstance(chunks.rows.terms, TermTexts)
    texts = chunks.rows.terms.texts
    terms = [" ".join(texts[at] for at in group if texts[at]) for group in groups]
    spans = [_span(chunks.stored[group[0]], chunks.stored[group[-1]]) for group in groups]
    return Blocks(spans, sums / np.linalg.norm(sums, axis=1, keepdims=True), terms)


def _span(first: StoredChunk, last: StoredChunk) -> DocumentSpan:
    return DocumentSpan(first.path, first.chunk.start_char, last.chunk.end_char)


@dataclass(frozen=True, slots=True)
class WordIndex:
    """How often the distinct terms of all queries occur in each block, and how long the blocks are."""

    columns: dict[str, int]
    counts: NDArray[np.int32]
    lengths: NDArray[np.float64]


def index_words(blocks: Blocks, queries: Sequence[str]) -> WordIndex:
    """Count the terms of all queries in every block."""
    distinct = sorted({term for query in queries for term in split_terms(query)})
    lengths = np.array([text.count(" ") + 1 if text else 0 for text in blocks.terms], dtype=np.float64)
    return WordIndex({term: at for at, term in enumerate(distinct)}, count_terms(blocks.terms, distinct), lengths)


def rank_by_cosine(blocks: Blocks, vector: NDArray[np.float32]) -> list[int]:
    """Return blocks by cosine, best first."""
    order: list[int] = np.argsort(-(blocks.vectors @ vector), kind="stable").tolist()
    return order


def rank_by_words(words: WordIndex, query: str) -> list[int]:
    """Return the blocks that share a term with the query by BM25 over blocks, best first."""
    columns = [words.columns[term] for term in dict.fromkeys(split_terms(query))]
    counts = words.counts[:, columns]
    frequencies = (counts > 0).sum(axis=0)
    kept = np.flatnonzero(frequencies)
    idf = compute_idf([str(column) for column in kept], frequencies[kept].tolist(), len(counts))
    scores = score_bm25(counts[:, kept].astype(np.float64), words.lengths, float(words.lengths.mean()), idf)
    return [at for at in np.argsort(-scores, kind="stable").tolist() if scores[at] > 0]


def fuse_ranks(*rankings: Sequence[int]) -> list[int]:
    """Return the blocks of all rankings by ``Σ 1 / (60 + rank)``, ranks from 1, best first.

    Examples
    --------
    >>> fuse_ranks([7, 8, 9], [9, 7])
    [7, 9, 8]
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, block in enumerate(ranking, start=1):
            scores[block] = scores.get(block, 0.0) + 1 / (FUSION_K + rank)
    return sorted(scores, key=lambda block: (-scores[block], block))


def cut_spans(spans: Sequence[DocumentSpan], max_chars: int) -> list[DocumentSpan]:
    """Return the first spans that make exactly `max_chars` characters, the last one cut; they are disjoint.

    Examples
    --------
    >>> cut_spans([DocumentSpan("a", 0, 6), DocumentSpan("b", 0, 6)], 10)
    [DocumentSpan(path='a', start_char=0, end_char=6), DocumentSpan(path='b', start_char=0, end_char=4)]
    """
    kept: list[DocumentSpan] = []
    left = max_chars
    for one in spans:
        if left <= 0:
            break
        kept.append(DocumentSpan(one.path, one.start_char, min(one.end_char, one.start_char + left)))
        left -= kept[-1].end_char - kept[-1].start_char
    return kept
