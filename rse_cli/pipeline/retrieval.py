"""Queries to candidates: the best chunks by vector and by full text with their neighbours, from one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.distinct import find_distinct, number_distinct
from rse_cli.core.lexical import count_terms, measure_cjk_share, split_query_terms
from rse_cli.core.relevance import CJK_QUERY_SHARE, REACH, Candidates, QueryTerms, find_runs, order_query_terms
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.beside import run_now, start_beside
from rse_cli.ports import KEY_BITS, Encoder, EvidenceRows, FileRecord, Keys, Snapshot, Statistics, Vectors
from rse_cli.timings import stage

LEAST_HITS, MOST_HITS = 50, 200
CHUNKS_PER_HIT = 200


@dataclass(frozen=True, slots=True)
class Query:
    """A query as the index sees it.

    Parameters
    ----------
    text : str
        As asked.
    vector : ndarray of shape (dimension,) or None
        None where cosines are left out: a CJK query to a model of English.
    terms : tuple of str
        In order, with repeats.
    truncated : bool
        Whether the model cut it.
    """

    text: str
    vector: Vectors | None
    terms: tuple[str, ...]
    truncated: bool

    @property
    def lexical(self) -> bool:
        """Whether only words count."""
        return self.vector is None


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What scoring needs, as rows sorted by path and ord.

    Parameters
    ----------
    queries : tuple of Query
        As asked.
    words : tuple of QueryTerms
        Per query, its terms against the index.
    candidates : tuple of Candidates
        Per query, the same rows with that query's counts.
    keys : ndarray of shape (n,)
        Chunk keys of the rows.
    records : dict of int to FileRecord
        Head rows by document number.
    starts : ndarray of shape (n,)
        Where each row's stretch of adjacent chunks starts.
    start_chars, blocks : ndarray of shape (n,)
        Where each chunk starts in its document, and the number of its block.
    statistics : Statistics
        Of the index.
    """

    queries: tuple[Query, ...]
    words: tuple[QueryTerms, ...]
    candidates: tuple[Candidates, ...]
    keys: Keys
    records: dict[int, FileRecord]
    starts: NDArray[np.int64]
    start_chars: NDArray[np.int64]
    blocks: NDArray[np.int64]
    statistics: Statistics


def encode_queries(texts: Sequence[str], encoder: Encoder, english_only: bool) -> tuple[Query, ...]:
    """Return the queries with vectors and terms.

    Parameters
    ----------
    texts : sequence of str
        Queries.
    encoder : Encoder
        The model of the index.
    english_only : bool
        Whether the model knows no CJK; queries with at least 30 % CJK letters then go without a vector.
    """
    vectors, truncated = encoder.encode_queries(texts)
    return tuple(
        Query(
            text,
            None if english_only and measure_cjk_share(text) >= CJK_QUERY_SHARE else vector,
            tuple(split_query_terms(text)),
            cut,
        )
        for text, vector, cut in zip(texts, vectors, truncated, strict=True)
    )


@stage("search")
def retrieve(snapshot: Snapshot, queries: tuple[Query, ...], paths: Sequence[str] | None) -> Retrieval:
    """Gather the candidates of all queries from one snapshot.

    Parameters
    ----------
    snapshot : Snapshot
        One version of the index.
    queries : tuple of Query
        From `encode_queries`.
    paths : sequence of str or None
        Documents to choose from; None for all. The numbers of BM25 are those of the whole index.
    """
    statistics = snapshot.statistics()
    hits_wanted = count_hits(statistics.n_chunks)
    # Words and vectors are searched side by side: 30 ms less of a cold query's 600.
    begin = run_now if snapshot.in_memory else start_beside
    nearest = [
        begin(partial(snapshot.nearest, query.vector, hits_wanted, paths))
        for query in queries
        if query.vector is not None
    ]
    words = find_words(snapshot, queries)
    hits = [snapshot.matching(found.terms, hits_wanted, paths) for found in words if found.terms]
    hits += [wait()[0] for wait in nearest]
    documents = find_distinct(np.concatenate(hits) >> KEY_BITS) if hits else np.zeros(0, np.int64)
    heads = begin(partial(snapshot.heads, documents.tolist()))
    rows = snapshot.evidence(_add_neighbours(hits))
    records = heads()
    numbers = rows.keys >> KEY_BITS
    rows = _sort_by_path(rows, numbers, records)
    numbers, ords = rows.keys >> KEY_BITS, (rows.keys & ((1 << KEY_BITS) - 1)) - 1
    starts = find_runs(numbers, ords)[0] if len(ords) else np.zeros(0, np.int64)
    candidates = tuple(_make_candidates(rows, numbers, ords, records, found.terms) for found in words)
    return Retrieval(queries, words, candidates, rows.keys, records, starts, rows.start_chars, rows.blocks, statistics)


def find_words(snapshot: Snapshot, queries: Sequence[Query]) -> tuple[QueryTerms, ...]:
    """Return the terms of each query that the index knows."""
    distinct = list(dict.fromkeys(term for query in queries for term in query.terms))
    frequencies = dict(zip(distinct, snapshot.document_frequencies(distinct), strict=True))
    return tuple(order_query_terms(query.terms, frequencies) for query in queries)


def choose_documents(
    snapshot: Snapshot, queries: Sequence[Query], most: int, paths: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the paths of the documents whose vectors are nearest to any of the queries, at most `most` for each.

    A query without a vector takes the documents of its best chunks by full text.
    """
    numbers, vectors = snapshot.document_vectors()
    names = {number: record.path for number, record in snapshot.heads(numbers.tolist()).items()}
    allowed = set(names.values()) if paths is None else set(paths)
    chosen: dict[str, None] = {}
    for query in queries:
        if query.vector is not None:
            order = numbers[np.argsort(-(vectors @ query.vector), kind="stable")].tolist()
        else:
            order = (snapshot.matching(query.terms, MOST_HITS, paths) >> KEY_BITS).tolist()
        found = [names[number] for number in dict.fromkeys(order) if names[number] in allowed]
        chosen |= dict.fromkeys(found[:most])
    return tuple(chosen)


def count_hits(n_chunks: int) -> int:
    """Return how many chunks to take by vector and by full text each.

    At 10,000 chunks 50, 100 and 200 give the same answers; in a larger index more near misses crowd the top.

    Examples
    --------
    >>> count_hits(10_000), count_hits(30_000), count_hits(1_000_000)
    (50, 150, 200)
    """
    return min(max(n_chunks // CHUNKS_PER_HIT, LEAST_HITS), MOST_HITS)


def _add_neighbours(hits: Sequence[Keys]) -> Keys:
    """Return the keys of hits and of up to ±12 chunks of the same document, existing or not."""
    if not hits:
        return np.zeros(0, np.int64)
    around = np.concatenate(hits)[:, None] + np.arange(-REACH, REACH + 1)
    same = (around >> KEY_BITS) == (np.concatenate(hits)[:, None] >> KEY_BITS)
    keys = find_distinct(around[same])
    return keys[(keys & ((1 << KEY_BITS) - 1)) > 0]


@stage("score")
def _sort_by_path(rows: EvidenceRows, numbers: Keys, records: dict[int, FileRecord]) -> EvidenceRows:
    """Order rows by path and ord, so that ties fall alike whatever order the files were indexed in."""
    ranks = {number: rank for rank, number in enumerate(sorted(records, key=lambda number: records[number].path))}
    if all(a <= b for a, b in pairwise(ranks[number] for number in sorted(ranks))):
        # Files are numbered by path when a folder is first indexed: nothing to move, no vectors to copy.
        return rows
    order = np.lexsort((rows.keys, np.array([ranks[number] for number in numbers.tolist()], dtype=np.int64)))
    return EvidenceRows(
        rows.keys[order],
        rows.chars[order],
        rows.start_chars[order],
        rows.blocks[order],
        rows.terms.take(order),
        rows.row_terms.take(order),
        rows.is_row[order],
        rows.vectors[order],
    )


@stage("score")
def _make_candidates(
    rows: EvidenceRows, numbers: Keys, ords: Keys, records: dict[int, FileRecord], terms: Sequence[str]
) -> Candidates:
    distinct, positions = number_distinct(numbers)
    fields = count_terms([" ".join(records[number].field_terms) for number in distinct.tolist()], terms)
    return Candidates(
        documents=numbers,
        ords=ords,
        chars=rows.chars,
        n_terms=rows.terms.lengths(),
        vectors=rows.vectors,
        counts=rows.terms.count(terms),
        fields=fields[positions],
        row_fields=np.minimum(rows.row_terms.count(terms), 1),
        is_row=rows.is_row,
    )
