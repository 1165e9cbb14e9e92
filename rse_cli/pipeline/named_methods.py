"""Candidates to passages by the named methods of the field, beside `rse`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.average import compose_values, measure_density, measure_quality, select_average
from rse_cli.core.blocks import Blocks, pool_blocks, select_blocks, take_largest
from rse_cli.core.dsrag import RankedHit, select_dsrag
from rse_cli.core.dsrag_params import DsragParams
from rse_cli.core.hits import Hit, choose_retriever, measure_similarity, rank_rows, take_hits
from rse_cli.core.lexical import Floats, compute_idf, score_bm25, weigh_years
from rse_cli.core.method_params import (
    AverageParams,
    ParentParams,
    SentenceWindowParams,
    TopKParams,
    WindowParentParams,
)
from rse_cli.core.models import Chunk, Passage
from rse_cli.core.parents import mix_window_parent, vote_parents
from rse_cli.core.windows import find_narrow_hits, join_overlaps, settle_ends, widen_hits
from rse_cli.pipeline.retrieval import Retrieval
from rse_cli.pipeline.scoring import RERANKED, Scored
from rse_cli.pipeline.selecting import Material, Picked
from rse_cli.ports import KEY_BITS, Snapshot, make_key

DSRAG_HITS = 200  # blocks that dsRAG is fed per query, as published
LONG_SENTENCE = 8  # chunks, some 1,500 characters on average: a clause of a contract; a longer one is no prose


def select_by_dsrag(material: Material, params: DsragParams) -> Picked:
    """Choose segments as dsRAG published them, over blocks."""
    retrieval = material.retrieval
    if not len(retrieval.keys):
        return Picked((), {})
    ranked = []
    for query in range(len(retrieval.queries)):
        blocks, best, values = rank_blocks(retrieval, query, material.scored[query], params.similarity)
        if material.rerank is not None:
            scores = material.rerank(retrieval.queries[query].text, _list_runs(blocks, best))
            order = np.argsort(-scores, kind="stable")
            best, values = best[order], _put(values, best, scores)
        ranked.append(list_hits(blocks, best, values))
    selection = select_dsrag(ranked, params)
    passages = tuple(
        replace(
            _span_blocks(material.snapshot, retrieval, int(one.path), one.start_chunk, one.end_chunk),
            score=one.score,
            queries=(one.query,),
        )
        for one in selection.segments
    )
    return Picked(passages, {}, selection)


def rank_blocks(
    retrieval: Retrieval, query: int, scored: Scored, similarity: str
) -> tuple[Blocks, NDArray[np.int64], Floats]:
    """Return the blocks of all candidates, the best of them in order, and the value of each.

    Parameters
    ----------
    retrieval : Retrieval
        With at least one candidate.
    query : int
        Position of the query.
    scored : Scored
        What it makes of the candidates.
    similarity : str
        As in `DsragParams`; a query without a vector goes by relevance.
    """
    blocks = pool_candidates(retrieval, query)
    vector = retrieval.queries[query].vector
    if similarity == "cosine" and vector is not None:
        values = measure_similarity(blocks.vectors, vector)
    else:
        values = np.clip(take_largest(blocks, scored.relevance), 0.0, 1.0)
    return blocks, np.argsort(-values, kind="stable")[:DSRAG_HITS], values


def list_hits(blocks: Blocks, best: NDArray[np.int64], values: Floats) -> list[RankedHit]:
    """Return ranked blocks as `select_dsrag` takes them."""
    columns = (blocks.documents[best], blocks.numbers[best], blocks.chars[best], values[best])
    documents, numbers, chars, similarities = (column.tolist() for column in columns)
    return list(zip(map(str, documents), numbers, chars, similarities, strict=True))


def _put(values: Floats, at: NDArray[np.int64], scores: Floats) -> Floats:
    changed = values.copy()
    changed[at] = scores
    return changed


def _list_runs(blocks: Blocks, chosen: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the rows of each chosen block."""
    return list(zip(blocks.starts[chosen].tolist(), blocks.ends[chosen].tolist(), strict=True))


def _span_blocks(snapshot: Snapshot, retrieval: Retrieval, document: int, start: int, end: int) -> Passage:
    """Return the stretch of a document from one block to another; blocks without a hit were not fetched."""
    record = retrieval.records[document]
    rows = snapshot.evidence([make_key(document, ord_) for ord_ in range(record.n_chunks)])
    inside = np.flatnonzero((rows.blocks >= start) & (rows.blocks < end))
    first, last = int(inside[0]), int(inside[-1])
    return Passage(
        document, first, last + 1, int(rows.start_chars[first]), int(rows.start_chars[last] + rows.chars[last]), 0.0
    )


def select_top_k(material: Material, params: TopKParams) -> Picked:
    """Return the best blocks."""
    passages: list[Passage] = []
    for query in range(len(material.retrieval.queries)):
        if len(material.retrieval.keys):
            blocks = pool_candidates(material.retrieval, query)
            ranked = _rank(material, query, blocks.vectors, blocks.counts, blocks.n_terms)
            if material.rerank is not None:
                best = ranked[0][:RERANKED]
                scores = material.rerank(material.retrieval.queries[query].text, _list_runs(blocks, best))
                ranked = _reorder(best, scores)
            passages += select_blocks(blocks, ranked, params.k, query)
    return Picked(_merge_equal(passages), {"retriever": material.retriever})


def select_sentence_windows(material: Material, params: SentenceWindowParams) -> Picked:
    """Return the best chunks with the sentences around them."""
    passages: list[Passage] = []
    for query in range(len(material.retrieval.queries)):
        hits = _find_hits(material, query, 2 * params.k)
        passages += widen_hits(hits, _fetch_around(material, hits, params.window), params.window, query)[: params.k]
    return Picked(_merge_equal(passages), {"retriever": material.retriever})


def select_parents(material: Material, params: ParentParams) -> Picked:
    """Return the sections of the best chunks."""
    passages: list[Passage] = []
    for query in range(len(material.retrieval.queries)):
        hits = _find_hits(material, query, 2 * params.k)
        passages += vote_parents(hits, _fetch_whole(material, hits), params.parent_chars, query)[: params.k]
    return Picked(_merge_equal(passages), {"retriever": material.retriever})


def select_window_parents(material: Material, params: WindowParentParams) -> Picked:
    """Return half sentence windows, half parents."""
    passages: list[Passage] = []
    for query in range(len(material.retrieval.queries)):
        hits = _find_hits(material, query, 2 * params.k)
        windows = widen_hits(hits, _fetch_around(material, hits, params.window), params.window, query)[: params.k]
        parents = vote_parents(hits, _fetch_whole(material, hits), params.parent_chars, query)[: params.k]
        passages += mix_window_parent(windows, parents, params.k)
    return Picked(_merge_equal(passages), {"retriever": material.retriever})


def select_by_average(material: Material, params: AverageParams) -> Picked:
    """Return segments of blocks whose mean similarity is high enough, in document order."""
    retrieval = material.retrieval
    passages: list[Passage] = []
    for query, asked in enumerate(retrieval.queries):
        if not len(retrieval.keys) or asked.vector is None:
            continue
        blocks = pool_candidates(retrieval, query)
        values = measure_similarity(blocks.vectors, asked.vector)
        if params.valuation == "composite":
            words = retrieval.words[query]
            idf = weigh_years(words.terms, compute_idf(words.terms, words.frequencies, retrieval.statistics.n_chunks))
            texts = read_blocks(material.snapshot, blocks)
            values = compose_values(values, measure_quality(texts), measure_density(blocks.counts, blocks.chars, idf))
        found = select_average(blocks, values, params, query)
        if params.reconstruct == "grow":
            hits = [
                Hit(one.document, ord_, one.score) for one in found for ord_ in (one.start_chunk, one.end_chunk - 1)
            ]
            found = join_overlaps(settle_ends(found, _fetch_whole(material, hits)))
        passages += found
    ordered = sorted(passages, key=lambda one: (retrieval.records[one.document].path, one.start_char))
    return Picked(_merge_equal(ordered), {})


NAMED_SELECTORS: dict[str, Callable[[Material, Any], Picked]] = {
    "dsrag": select_by_dsrag,
    "top-k": select_top_k,
    "sentence-window": select_sentence_windows,
    "parent": select_parents,
    "window-parent": select_window_parents,
    "average": select_by_average,
}


def pool_candidates(retrieval: Retrieval, query: int) -> Blocks:
    """Return the blocks of the candidates, with the counts of one query's terms.

    Parameters
    ----------
    retrieval : Retrieval
        The candidates.
    query : int
        Position of the query, from 0.
    """
    candidates = retrieval.candidates[query]
    return pool_blocks(
        candidates.documents,
        retrieval.blocks,
        candidates.ords,
        retrieval.start_chars,
        candidates.chars,
        candidates.vectors,
        candidates.counts,
        candidates.n_terms,
    )


def _rank(
    material: Material,
    query: int,
    vectors: NDArray[np.float32],
    counts: NDArray[np.int64] | NDArray[np.int32],
    n_terms: NDArray[np.int64],
) -> tuple[NDArray[np.int64], Floats]:
    """Rank chunks or blocks by the retriever."""
    asked, words = material.retrieval.queries[query], material.retrieval.words[query]
    idf = weigh_years(words.terms, compute_idf(words.terms, words.frequencies, material.retrieval.statistics.n_chunks))
    # The mean over the candidates: the index keeps no mean length of blocks.
    bm25 = score_bm25(counts.astype(np.float64), n_terms.astype(np.float64), float(n_terms.mean()), idf)
    similarity = None if asked.vector is None else measure_similarity(vectors, asked.vector)
    return rank_rows(choose_retriever(material.retriever, asked.lexical), similarity, bm25)


def _reorder(rows: NDArray[np.int64], scores: Floats) -> tuple[NDArray[np.int64], Floats]:
    order = np.argsort(-scores, kind="stable")
    return rows[order], scores[order]


def _find_hits(material: Material, query: int, most: int) -> list[Hit]:
    """Return the best chunks by the retriever, or by the reranker among them."""
    candidates = material.retrieval.candidates[query]
    if not len(candidates.ords):
        return []
    ranked = _rank(material, query, candidates.vectors, candidates.counts, candidates.n_terms)
    if material.rerank is not None:
        best = ranked[0][:RERANKED]
        runs = [(row, row + 1) for row in best.tolist()]
        ranked = _reorder(best, material.rerank(material.retrieval.queries[query].text, runs))
    return take_hits(ranked, candidates.documents, candidates.ords, most)


def _fetch_around(material: Material, hits: Sequence[Hit], window: int) -> dict[int, list[Chunk]]:
    """Return the chunks around hits by document, enough for `window` sentences on either side.

    A chunk mostly ends with a sentence; where sentences go on over several chunks, more are fetched.
    """
    n_chunks = {hit.document: material.retrieval.records[hit.document].n_chunks for hit in hits}
    keys = _list_around(hits, window + 1, n_chunks)
    chunks = _group(material.snapshot, keys)
    narrow = find_narrow_hits(hits, chunks, window, n_chunks)
    if narrow:
        keys += _list_around(narrow, (window + 1) * LONG_SENTENCE, n_chunks)
        chunks = _group(material.snapshot, keys)
    return chunks


def _list_around(hits: Sequence[Hit], around: int, n_chunks: Mapping[int, int]) -> list[int]:
    """Return the keys of hits and of `around` chunks on either side, as far as the documents go."""
    return [
        make_key(hit.document, ord_)
        for hit in hits
        for ord_ in range(max(0, hit.ord - around), min(n_chunks[hit.document], hit.ord + around + 1))
    ]


def _fetch_whole(material: Material, hits: Sequence[Hit]) -> dict[int, list[Chunk]]:
    """Return all chunks of the documents that have a hit."""
    documents = sorted({hit.document for hit in hits})
    keys = [
        make_key(document, ord_)
        for document in documents
        for ord_ in range(material.retrieval.records[document].n_chunks)
    ]
    return _group(material.snapshot, keys)


def _group(snapshot: Snapshot, keys: Sequence[int]) -> dict[int, list[Chunk]]:
    grouped: dict[int, list[Chunk]] = {}
    for stored in snapshot.chunks(sorted(set(keys))):
        grouped.setdefault(stored.key >> KEY_BITS, []).append(stored.chunk)
    return grouped


def read_blocks(snapshot: Snapshot, blocks: Blocks) -> list[str]:
    """Return the text of each block.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the index that the candidates come from.
    blocks : Blocks
        From `pool_candidates`.
    """
    spans = list(zip(blocks.documents.tolist(), blocks.start_ords.tolist(), blocks.end_ords.tolist(), strict=True))
    keys = [make_key(document, ord_) for document, start, end in spans for ord_ in range(start, end)]
    texts = {stored.key: stored.chunk.text for stored in snapshot.chunks(keys)}
    return ["".join(texts[make_key(document, ord_)] for ord_ in range(start, end)) for document, start, end in spans]


def _merge_equal(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Make passages of the same span one, with all its queries and the best score, in the place of the first."""
    merged: dict[tuple[int, int, int], Passage] = {}
    for one in passages:
        place = (one.document, one.start_char, one.end_char)
        known = merged.get(place)
        if known is None:
            merged[place] = one
        else:
            queries = tuple(sorted({*known.queries, *one.queries}))
            merged[place] = replace(known, queries=queries, score=max(known.score, one.score))
    return tuple(merged.values())
