"""What a method thought of each candidate: its value, and the numbers that the value was made of, for inspection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import Floats
from rse_cli.core.params import FILL_SEGMENT_COST, RseParams
from rse_cli.core.segments import UNIT_CHARS, price_chunks
from rse_cli.core.selection import Selection
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.query import CALIBRATED, Answer
from rse_cli.ports import Snapshot

Numbers = Mapping[str, Floats]
"""Columns by name, in the order of their arithmetic; nan where a row has no such number."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a method made of the candidates, as rows of the retrieval.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The value of the chunk, or of the block that holds it; nan where the method gave none.
    heads : ndarray of shape (n,)
        Whether the row's value counts: for methods that weigh blocks, only on the first row of each.
    owners : ndarray of shape (n,)
        The query whose value it is.
    numbers : tuple of mapping
        Per query, what values are made of.
    by_blocks : bool
        Whether the method weighs blocks.
    adds_up : bool
        Whether a segment's score is the sum of its rows less `cost`; else it is that of its best row.
    cost : float
        What a segment costs.
    floor : float
        Values at or below it speak against a chunk.
    """

    values: Floats
    heads: NDArray[np.bool_]
    owners: NDArray[np.int64]
    numbers: tuple[Numbers, ...]
    by_blocks: bool = False
    adds_up: bool = True
    cost: float = 0.0
    floor: float = 0.0


def weigh_candidates(snapshot: Snapshot, answer: Answer) -> Weighed:
    """Return what the method of an answer made of the candidates.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the index that was asked.
    answer : Answer
        From `answer_request`.

    Notes
    -----
    The value of a row is, for `rse` and `hierarchical`, ``(relevance − penalty)·characters/100`` at the penalty used;
    for `dsrag` and `average` that of its block; for `top-k` the score of the block if it is among the k best; for
    `sentence-window`, `parent` and `window-parent` the score of the chunk if it is among the 2k hits looked at.
    """
    if answer.request.method in CALIBRATED:
        return _weigh_segments(answer)
    from rse_cli.pipeline.weighing_named import weigh_named

    return weigh_named(snapshot, answer)


def rank_values(keys: Floats) -> Floats:
    """Return the 0-based rank of each row, greatest first."""
    ranks = np.empty(len(keys))
    ranks[np.argsort(-keys, kind="stable")] = np.arange(len(keys))
    return ranks


def find_penalties(answer: Answer) -> list[tuple[float, float]]:
    """Return for each query the penalty asked for, and the one that was used to fit the ceiling.

    For `rse` and `hierarchical`. A query that wasn't answered has the one asked for.
    """
    selection = answer.trace.picked.trace
    asked = 0.0 if answer.request.fill else get_rse_params(answer).irrelevant_chunk_penalty
    used = (
        dict(zip(answer.trace.answered, selection.penalties, strict=True)) if isinstance(selection, Selection) else {}
    )
    return [(asked, used.get(query, asked)) for query in range(len(answer.request.queries))]


def get_rse_params(answer: Answer) -> RseParams:
    """Return the parameters that segments were chosen with; `hierarchical` has none of its own for that."""
    return answer.request.params if isinstance(answer.request.params, RseParams) else RseParams()


def count_kept(answer: Answer) -> NDArray[np.int64]:
    """Return the characters of each row, fewer for one that the ceiling of `rse` cuts."""
    selection = answer.trace.picked.trace
    kept = answer.trace.retrieval.candidates[0].chars.copy()
    for choice in selection.choices if isinstance(selection, Selection) else ():
        kept[choice.end - 1] = choice.last_chars
    return kept


def _weigh_segments(answer: Answer) -> Weighed:
    """Weigh for `rse` and `hierarchical`."""
    trace, kept = answer.trace, count_kept(answer)
    selection = trace.picked.trace
    numbers: list[Numbers] = []
    for one, (_asked, penalty) in zip(trace.scored, find_penalties(answer), strict=True):
        pieces = {each.name: getattr(one.evidence, each.name) for each in fields(one.evidence)}
        numbers.append(
            {"rank": rank_values(one.relevance)}
            | {name: piece for name, piece in pieces.items() if piece is not None}
            | {
                "z": one.z,
                "relevance": one.relevance,
                "penalty": np.full(len(kept), penalty),
                "value": price_chunks(one.relevance, kept, penalty),
            }
        )
    priced = np.array([one["value"] for one in numbers])
    params = get_rse_params(answer)
    cost = FILL_SEGMENT_COST if answer.request.fill else params.segment_cost
    values = selection.values if isinstance(selection, Selection) else priced.max(axis=0)
    heads = np.ones(len(kept), dtype=np.bool_)
    owners = np.argmin(np.abs(priced - values), axis=0)
    return Weighed(values, heads, owners, tuple(numbers), cost=cost / UNIT_CHARS)
