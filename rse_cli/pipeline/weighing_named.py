"""What the named methods, beside `rse`, thought of each candidate; see `rse_cli.pipeline.weighing`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.average import compose_values, measure_density, measure_quality, weigh_values
from rse_cli.core.blocks import Blocks, take_largest
from rse_cli.core.dsrag import REFERENCE_CHARS, DsragSelection
from rse_cli.core.dsrag_params import DsragParams
from rse_cli.core.hits import choose_retriever, measure_similarity, rank_lexical, rank_rows
from rse_cli.core.lexical import Floats, score_bm25
from rse_cli.core.method_params import AverageParams, TopKParams
from rse_cli.core.window_words import weigh_terms
from rse_cli.pipeline.named_methods import DSRAG_HITS, pool_candidates, read_blocks
from rse_cli.pipeline.query import Answer
from rse_cli.pipeline.weighing import Numbers, Weighed, rank_values
from rse_cli.ports import Snapshot


def weigh_named(snapshot: Snapshot, answer: Answer) -> Weighed:
    """Return what a method other than `rse` and `hierarchical` made of the candidates."""
    return _WEIGHERS.get(answer.request.method, _weigh_hits)(snapshot, answer)


def rank_dsrag_blocks(answer: Answer, query: int) -> tuple[Blocks, NDArray[np.int64], Floats]:
    """Return the blocks, the positions of those that `dsrag` was fed in rank order, and every block's similarity."""
    retrieval, params = answer.trace.retrieval, answer.request.params
    blocks = pool_candidates(retrieval, query)
    vector = retrieval.queries[query].vector
    if isinstance(params, DsragParams) and params.similarity == "cosine" and vector is not None:
        similarity = measure_similarity(blocks.vectors, vector)
    else:
        similarity = np.clip(take_largest(blocks, answer.trace.scored[query].relevance), 0.0, 1.0)
    return blocks, np.argsort(-similarity, kind="stable")[:DSRAG_HITS], similarity


def look_up_values(selection: DsragSelection, document: int, blocks: NDArray[np.int64]) -> Floats:
    """Return the values that `dsrag` gave blocks of a document, ``(n_queries, n)``; nan where it wasn't searched."""
    values = np.full((len(selection.values), len(blocks)), np.nan)
    if str(document) in selection.documents:
        at = selection.documents.index(str(document))
        start, end = (0, *selection.splits)[at], selection.splits[at]
        inside = blocks < end - start
        for query, found in enumerate(selection.values):
            values[query, inside] = found[start + blocks[inside]]
    return values


def choose_owners(
    values: Floats, document: int, blocks: NDArray[np.int64], selection: DsragSelection
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the value of each row and the query it is of: the one that chose it, else that of the greatest."""
    owners = np.where(np.isnan(values), -np.inf, values).argmax(axis=0)
    for one in selection.segments:
        if one.path == str(document):
            owners[(blocks >= one.start_chunk) & (blocks < one.end_chunk)] = one.query
    return values[owners, np.arange(len(owners))], owners


def find_length_factors(chars: NDArray[np.int64], params: DsragParams) -> Floats:
    """Return what `dsrag` multiplies the value of a block by for its length."""
    factors: Floats = np.maximum(chars, REFERENCE_CHARS) / REFERENCE_CHARS
    return factors if params.chunk_length_adjustment else np.ones(len(chars))


def _weigh_dsrag(_: Snapshot, answer: Answer) -> Weighed:
    retrieval, params, selection = answer.trace.retrieval, answer.request.params, answer.trace.picked.trace
    n = len(retrieval.keys)
    if not isinstance(selection, DsragSelection) or not isinstance(params, DsragParams):
        return _weigh_nothing(len(retrieval.queries))
    numbers: list[Numbers] = []
    documents = retrieval.candidates[0].documents
    values, owners = np.full(n, np.nan), np.zeros(n, np.int64)
    each = np.full((len(retrieval.queries), n), np.nan)
    for document in np.unique(documents).tolist():
        rows = np.flatnonzero(documents == document)
        found = look_up_values(selection, document, retrieval.blocks[rows])
        each[:, rows] = found
        values[rows], owners[rows] = choose_owners(found, document, retrieval.blocks[rows], selection)
    heads = np.zeros(n, dtype=np.bool_)
    for query in range(len(retrieval.queries)):
        blocks, order, similarity = rank_dsrag_blocks(answer, query)
        rank = np.full(len(similarity), np.nan)
        rank[order] = np.arange(len(order))
        columns = {
            "rank": rank,
            "similarity": np.where(np.isnan(rank), 0.0, similarity),
            "decay": np.exp(-rank / params.decay_rate),
            "penalty": np.full(len(rank), params.irrelevant_chunk_penalty),
            "length_factor": find_length_factors(blocks.chars, params),
        }
        counting = _find_counting(blocks, rank)[blocks.of_rows]
        numbers.append({name: column[counting] for name, column in columns.items()} | {"value": each[query]})
        heads[blocks.starts] = True
    return Weighed(values, heads, owners, tuple(numbers), by_blocks=True)


def _find_counting(blocks: Blocks, rank: Floats) -> NDArray[np.int64]:
    """Return for each block which one's numbers count: of a block that was fed in several parts, the last ranked."""
    n = len(rank)
    opens = np.ones(n, dtype=np.bool_)
    opens[1:] = (np.diff(blocks.documents) != 0) | (np.diff(blocks.numbers) != 0)
    group = np.cumsum(opens) - 1
    last = np.append(np.flatnonzero(opens)[1:], n) - 1
    order = np.lexsort((np.nan_to_num(rank, nan=-1.0), group))
    counting: NDArray[np.int64] = order[last][group].astype(np.int64)
    return counting


def _weigh_average(snapshot: Snapshot, answer: Answer) -> Weighed:
    retrieval, params = answer.trace.retrieval, answer.request.params
    n = len(retrieval.keys)
    assert isinstance(params, AverageParams)
    heads = np.zeros(n, dtype=np.bool_)
    numbers: list[Numbers] = []
    for query, asked in enumerate(retrieval.queries):
        blocks = pool_candidates(retrieval, query)
        heads[blocks.starts] = True
        if asked.vector is None:
            numbers.append({"similarity": np.full(n, np.nan), "value": np.full(n, np.nan)})
            continue
        similarity = measure_similarity(blocks.vectors, asked.vector)
        columns, worth = {"similarity": similarity}, similarity
        if params.valuation == "composite":
            idf = weigh_terms(retrieval.words[query], retrieval.statistics.n_chunks)
            columns["quality"] = measure_quality(read_blocks(snapshot, blocks))
            columns["density"] = measure_density(blocks.counts, blocks.chars, idf)
            worth = compose_values(similarity, columns["quality"], columns["density"])
        columns["value"] = weigh_values(worth)
        numbers.append({name: column[blocks.of_rows] for name, column in columns.items()})
    values, owners = _take_greatest(np.array([one["value"] for one in numbers]))
    return Weighed(values, heads, owners, tuple(numbers), by_blocks=True, floor=params.minimum_value)


def count_hits_taken(answer: Answer) -> int:
    """Return how many hits a method looks at for each query: `top-k` the k best blocks, others twice k chunks."""
    k: int = getattr(answer.request.params, "k", 0)
    return k if isinstance(answer.request.params, TopKParams) else 2 * k


def _weigh_hits(_: Snapshot, answer: Answer) -> Weighed:
    """Weigh for the methods that take hits: `top-k`, `sentence-window`, `parent` and `window-parent`."""
    retrieval = answer.trace.retrieval
    n = len(retrieval.keys)
    numbers: list[Numbers] = []
    by_blocks = answer.request.method == "top-k"
    heads = np.full(n, not by_blocks)
    for query, asked in enumerate(retrieval.queries):
        candidates = retrieval.candidates[query]
        blocks = pool_candidates(retrieval, query)
        units = blocks if by_blocks else candidates
        spread = blocks.of_rows if by_blocks else np.arange(n)
        heads[blocks.starts] |= by_blocks
        n_units = len(units.chars)
        similarity = None if asked.vector is None or not n else measure_similarity(units.vectors, asked.vector)
        mean = float(units.n_terms.mean()) if n else 0.0
        idf = weigh_terms(retrieval.words[query], retrieval.statistics.n_chunks)
        bm25 = score_bm25(units.counts.astype(np.float64), units.n_terms.astype(np.float64), mean, idf)
        retriever = choose_retriever(answer.request.retriever, asked.lexical)
        order, scores = rank_rows(retriever, similarity, bm25)
        rank, score, value = (np.full(n_units, np.nan) for _ in range(3))
        rank[order], score[order] = np.arange(len(order)), scores
        taken = order[: count_hits_taken(answer)]
        value[taken] = scores[: len(taken)]
        columns = {"rank": rank, "similarity": similarity if similarity is not None else np.full(n_units, np.nan)}
        columns |= {"dense_rank": np.full(n_units, np.nan), "bm25": bm25, "lexical_rank": np.full(n_units, np.nan)}
        if similarity is not None:
            columns["dense_rank"] = rank_values(similarity)
        matching = rank_lexical(bm25)
        columns["lexical_rank"][matching] = np.arange(len(matching))
        columns |= {"score": score, "value": value}
        numbers.append({name: column[spread] for name, column in columns.items()})
    values, owners = _take_greatest(np.array([one["value"] for one in numbers]))
    return Weighed(values, heads, owners, tuple(numbers), by_blocks=by_blocks, adds_up=False)


def _take_greatest(values: Floats) -> tuple[Floats, NDArray[np.int64]]:
    owners = np.where(np.isnan(values), -np.inf, values).argmax(axis=0)
    return values[owners, np.arange(values.shape[1])], owners


def _weigh_nothing(n_queries: int) -> Weighed:
    empty = np.zeros(0)
    return Weighed(empty, np.zeros(0, np.bool_), np.zeros(0, np.int64), tuple({} for _ in range(n_queries)))


_WEIGHERS: dict[str, Callable[[Snapshot, Answer], Weighed]] = {"dsrag": _weigh_dsrag, "average": _weigh_average}
