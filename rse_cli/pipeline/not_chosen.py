"""The best chunks and segments that an answer left out, each with the rule that kept it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.reasons import Skipped, explain_dsrag, explain_segments
from rse_cli.core.segments import UNIT_CHARS
from rse_cli.core.selection import Selection
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.query import Answer
from rse_cli.pipeline.weighing import (
    Weighed,
    find_penalties,
    get_rse_params,
)
from rse_cli.ports import KEY_BITS


@dataclass(frozen=True, slots=True)
class NotChosen:
    """Chunks ``[start_chunk, end_chunk)`` of a document that were not chosen for a query.

    `score` is what they would have been worth as a segment, `code` the rule that kept them out and `why` the same with
    its numbers.
    """

    path: str
    start_chunk: int
    end_chunk: int
    query: int
    score: float
    code: str
    why: str


def find_not_chosen(answer: Answer, weighed: Weighed, most: int) -> list[NotChosen]:
    """Return the best of what is not in the answer.

    Parameters
    ----------
    answer : Answer
        From `answer_request`.
    weighed : Weighed
        From `weigh_candidates`.
    most : int
        Most entries, shared by the queries; what the method chose and a limit dropped comes before.
    """
    if not len(answer.trace.retrieval.keys):
        return []
    explain = {"rse": _explain_segments, "hierarchical": _explain_segments, "dsrag": _explain_dsrag}.get(
        answer.request.method, _explain_hits
    )
    share = max(1, most // len(answer.request.queries))
    found = list(_explain_dropped(answer))
    for query in range(len(answer.request.queries)):
        found += list(islice(explain(answer, weighed, query, share), share))
    # Two queries may miss the same.
    return list({(one.path, one.start_chunk, one.end_chunk): one for one in reversed(found)}.values())[::-1]


def _explain_dropped(answer: Answer) -> Iterator[NotChosen]:
    """What the method picked, but the limit or the ceiling dropped, or cut off."""
    request, records = answer.request, answer.trace.retrieval.records
    refined = {(one.document, one.start_char) for one in answer.trace.refined.passages}
    for one in answer.trace.picked.passages:
        path = records[one.document].path
        kept = [
            other
            for other in answer.trace.passages
            if one.document == other.document and one.start_char < other.end_char and other.start_char < one.end_char
        ]
        if kept and (last := max(other.end_chunk for other in kept)) < one.end_chunk:
            why = f"was chosen, but its segment was cut at max_chars {request.max_chars or 0:,}"
            yield NotChosen(path, last, one.end_chunk, one.queries[0], one.score, "over_budget", why)
        if not kept:
            cut = (one.document, one.start_char) in refined
            code, why = "over_limit", f"was chosen, but comes after the limit of {request.limit}"
            if cut or request.limit is None:
                code, why = "over_budget", f"was chosen, but comes after max_chars {request.max_chars or 0:,}"
            yield NotChosen(path, one.start_chunk, one.end_chunk, one.queries[0], one.score, code, why)


def _find_taken(answer: Answer) -> NDArray[np.bool_]:
    """Rows that lie in a passage that the method picked."""
    retrieval = answer.trace.retrieval
    taken = np.zeros(len(retrieval.keys), dtype=np.bool_)
    documents, ords = retrieval.keys >> KEY_BITS, (retrieval.keys & ((1 << KEY_BITS) - 1)) - 1
    for one in answer.trace.picked.passages:
        taken |= (documents == one.document) & (ords >= one.start_chunk) & (ords < one.end_chunk)
    return taken


def _place(answer: Answer, query: int, first: int, last: int, skipped: Skipped) -> NotChosen:
    """Turn rows `first` to `last` of the retrieval into chunks of their document."""
    retrieval = answer.trace.retrieval
    document = int(retrieval.keys[first]) >> KEY_BITS
    start, end = ((int(retrieval.keys[row]) & ((1 << KEY_BITS) - 1)) - 1 for row in (first, last))
    path = retrieval.records[document].path
    return NotChosen(path, start, end + 1, query, skipped.score, skipped.code, skipped.why)


def _explain_segments(answer: Answer, weighed: Weighed, query: int, most: int) -> Iterator[NotChosen]:
    trace, params = answer.trace, get_rse_params(answer)
    scored = trace.scored[query]
    selection = trace.picked.trace
    cost = selection.segment_cost / UNIT_CHARS if isinstance(selection, Selection) else weighed.cost
    skipped = explain_segments(
        scored.relevance,
        trace.retrieval.candidates[query].chars,
        trace.retrieval.starts,
        _find_taken(answer),
        find_penalties(answer)[query],
        cost,
        params.max_chars,
        most,
    )
    refused = query not in trace.answered
    for one in skipped:
        placed = _place(answer, query, one.start, one.end - 1, one)
        why = f"the query's confidence {scored.confidence:.2f} is below the floor"
        yield (
            NotChosen(placed.path, placed.start_chunk, placed.end_chunk, query, one.score, "below_confidence", why)
            if refused
            else placed
        )


def _explain_dsrag(answer: Answer, _: Weighed, query: int, most: int) -> Iterator[NotChosen]:
    """The best runs of blocks, then the best blocks that lie in none of these."""
    from rse_cli.core.dsrag import DsragSelection
    from rse_cli.core.dsrag_params import DsragParams
    from rse_cli.pipeline.weighing_named import find_length_factors, rank_dsrag_blocks

    selection, params = answer.trace.picked.trace, answer.request.params
    if not isinstance(selection, DsragSelection) or not isinstance(params, DsragParams):
        return
    firsts = dict(zip(selection.documents, (0, *selection.splits), strict=False))
    chosen = [(firsts[one.path] + one.start_chunk, firsts[one.path] + one.end_chunk) for one in selection.segments]
    blocks, order, similarity = rank_dsrag_blocks(answer, query)
    positions = [
        firsts[document] + number if (document := str(found)) in firsts else -1
        for found, number in zip(blocks.documents.tolist(), blocks.numbers.tolist(), strict=True)
    ]
    rows = {
        position: (int(blocks.starts[at]), int(blocks.ends[at]) - 1)
        for at, position in enumerate(positions)
        if position >= 0
    }
    n_queries = len(answer.request.queries)
    runs = explain_dsrag(selection.values[query], selection.splits, chosen, params, n_queries, most)
    yield from (_place_run(answer, query, one, rows) for one in runs)
    shown = {position for start, end in chosen for position in range(start, end)}
    shown |= {position for one in runs for position in range(one.start, one.end)}
    for rank, at in enumerate(order.tolist()):
        if positions[at] in shown:
            continue
        if positions[at] >= 0:
            score = float(selection.values[query][positions[at]])
        else:
            score = float(np.exp(-rank / params.decay_rate) * similarity[at] - params.irrelevant_chunk_penalty)
            score *= find_length_factors(blocks.chars[at : at + 1], params).item()
        skipped = Skipped(
            positions[at],
            positions[at] + 1,
            score,
            "below_minimum",
            f"worth {score:.2f} by itself: rank {rank}, similarity {similarity[at]:.2f}",
        )
        if positions[at] < 0:
            why = f"no block of its document is among the first {params.top_k_for_document_selection}"
            skipped = replace(skipped, code="not_searched", why=why)
        yield _place(answer, query, int(blocks.starts[at]), int(blocks.ends[at]) - 1, skipped)


def _place_run(answer: Answer, query: int, run: Skipped, rows: Mapping[int, tuple[int, int]]) -> NotChosen:
    """Turn blocks into chunks. A run begins and ends with hits; one over two documents is shown as far as the first."""
    keys = answer.trace.retrieval.keys
    inside = [rows[position] for position in range(run.start, run.end) if position in rows]
    first = inside[0][0]
    last = max(end for _, end in inside if keys[end] >> KEY_BITS == keys[first] >> KEY_BITS)
    return _place(answer, query, first, last, run)


def _explain_hits(answer: Answer, weighed: Weighed, query: int, _: int) -> Iterator[NotChosen]:
    """For the methods that rank chunks or blocks, and for `average`."""
    from rse_cli.pipeline.weighing_named import count_hits_taken

    numbers, taken = weighed.numbers[query], _find_taken(answer)
    by_average = answer.request.method == "average"
    scores = numbers["value" if by_average else "score"]
    order = np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable")
    n_taken = count_hits_taken(answer)
    for row in order.tolist():
        if taken[row] or not weighed.heads[row] or np.isnan(scores[row]):
            continue
        score = float(scores[row])
        code = "over_budget"
        if by_average:
            params = answer.request.params
            least, most_blocks = getattr(params, "minimum_value", 0.0), getattr(params, "overall_max_length", 0)
            why = f"value {score:.2f}, but better segments fill the {most_blocks} blocks"
            if score < least:
                code, why = "below_minimum", f"value {score:.2f} is below minimum_value {least:.2f}"
        else:
            rank = int(numbers["rank"][row])
            unit = "blocks" if weighed.by_blocks else "hits"
            why = f"rank {rank}, and the best {n_taken} {unit} are looked at"
            if rank < n_taken:
                why = f"rank {rank}, but its passage comes after the best {getattr(answer.request.params, 'k', 0)}"
        last = row
        while weighed.by_blocks and last + 1 < len(taken) and not weighed.heads[last + 1]:
            last += 1
        yield _place(answer, query, row, last, Skipped(row, last + 1, score, code, why))  # type: ignore[arg-type]
