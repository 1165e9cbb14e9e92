"""An answer laid open: per document the value of each chunk, the segments drawn over them, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import Floats
from rse_cli.core.models import Chunk
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.not_chosen import NotChosen, find_not_chosen
from rse_cli.pipeline.query import CALIBRATED, Answer
from rse_cli.pipeline.weighing import Numbers, Weighed, weigh_candidates
from rse_cli.ports import KEY_BITS, Snapshot, make_key

__all__ = ["DocumentView", "Inspection", "Mark", "NotChosen", "fetch_shown", "inspect_answer"]

MOST_SKIPPED = 8
"""Of what was not chosen: enough for the near misses, and still on one screen with the picture."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A segment over the chunks of its document.

    Parameters
    ----------
    place : int
        Its position among the segments of the answer.
    start_chunk, end_chunk : int
        Half-open chunks.
    start_char, end_char : int
        Half-open characters.
    score : float
        As in the answer.
    cost : float
        What a segment costs, taken off the sum of its rows.
    rest : float
        What the score holds beside the rows and the cost, or above the best row: of a segment that was cut at the
        ceiling, or joined with another.
    """

    place: int
    start_chunk: int
    end_chunk: int
    start_char: int
    end_char: int
    score: float
    cost: float = 0.0
    rest: float = 0.0


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document as the method saw it; all arrays hold one number a chunk, nan (−1 for whole numbers) where none.

    Parameters
    ----------
    number : int
        Its document number.
    path, title : str
        As in the index.
    values : ndarray of shape (n_chunks,)
        What the row of the chunk counts; for methods that weigh blocks, the block's value on its first chunk.
    levels : ndarray of shape (n_chunks,)
        The value of the chunk or of the block that holds it.
    owners : ndarray of shape (n_chunks,)
        The query whose value it is.
    rows : ndarray of shape (n_chunks,)
        The row of the retrieval.
    numbers : tuple of mapping
        Per query, what values are made of.
    marks : tuple of Mark
        Its segments, in order of position.
    """

    number: int
    path: str
    title: str
    values: Floats
    levels: Floats
    owners: NDArray[np.int64]
    rows: NDArray[np.int64]
    numbers: tuple[Numbers, ...]
    marks: tuple[Mark, ...]

    @property
    def n_chunks(self) -> int:
        """Chunks in the document."""
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Inspection:
    """An answer laid open.

    Parameters
    ----------
    answer : Answer
        The answer itself.
    weighed : Weighed
        Values of all candidates.
    documents : tuple of DocumentView
        Those asked for, best first.
    n_documents : int
        Documents with a candidate.
    not_chosen : tuple of NotChosen
        What came next, and why it stayed out.
    """

    answer: Answer
    weighed: Weighed
    documents: tuple[DocumentView, ...]
    n_documents: int
    not_chosen: tuple[NotChosen, ...]

    def match_terms(self, view: DocumentView, chunk: int, query: int) -> tuple[str, ...]:
        """Return the terms of a query that a chunk holds itself."""
        row, retrieval = int(view.rows[chunk]), self.answer.trace.retrieval
        if row < 0:
            return ()
        counts = retrieval.candidates[query].counts[row].tolist()
        return tuple(term for term, count in zip(retrieval.words[query].terms, counts, strict=True) if count)


def inspect_answer(
    snapshot: Snapshot, answer: Answer, most_documents: int | None = None, most_skipped: int = MOST_SKIPPED
) -> Inspection:
    """Lay an answer open.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the index that was asked.
    answer : Answer
        From `answer_request`; its segments are taken as they are.
    most_documents : int or None
        Documents laid open; None for all with a candidate.
    most_skipped : int
        Runs listed that were not chosen.
    """
    weighed = weigh_candidates(snapshot, answer)
    ranked = rank_documents(answer, weighed)
    views = tuple(_view_document(snapshot, answer, weighed, number) for number in ranked[:most_documents])
    return Inspection(answer, weighed, views, len(ranked), tuple(find_not_chosen(answer, weighed, most_skipped)))


def rank_documents(answer: Answer, weighed: Weighed) -> list[int]:
    """Return the numbers of all documents with a candidate: by their first segment, then by their greatest value."""
    numbers = answer.trace.retrieval.keys >> KEY_BITS
    distinct, positions = np.unique(numbers, return_inverse=True)
    best = np.full(len(distinct), -np.inf)
    np.maximum.at(best, positions, np.where(np.isnan(weighed.values), -np.inf, weighed.values))
    others = [int(distinct[at]) for at in np.argsort(-best, kind="stable")]
    return list(dict.fromkeys([one.document for one in answer.trace.passages] + others))


def fetch_shown(snapshot: Snapshot, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Chunk]:
    """Return chunks by document number and ord."""
    keys = [make_key(document, ord_) for document, ord_ in wanted]
    return {(stored.key >> KEY_BITS, stored.chunk.ord): stored.chunk for stored in snapshot.chunks(keys)}


def _view_document(snapshot: Snapshot, answer: Answer, weighed: Weighed, number: int) -> DocumentView:
    retrieval = answer.trace.retrieval
    record = retrieval.records[number]
    at = np.flatnonzero((retrieval.keys >> KEY_BITS) == number)
    ords = (retrieval.keys[at] & ((1 << KEY_BITS) - 1)) - 1

    def lay_out(column: Floats) -> Floats:
        dense = np.full(record.n_chunks, np.nan)
        dense[ords] = column[at]
        return dense

    rows, owners = np.full((2, record.n_chunks), -1, dtype=np.int64)
    rows[ords], owners[ords] = at, weighed.owners[at]
    levels = lay_out(weighed.values)
    numbers = tuple({name: lay_out(column) for name, column in one.items()} for one in weighed.numbers)
    if answer.request.method not in (*CALIBRATED, "dsrag"):
        _give_to_owners(answer, number, numbers, levels, owners)
    heads = np.zeros(record.n_chunks, dtype=np.bool_)
    heads[ords] = weighed.heads[at]
    if answer.request.method == "dsrag":
        levels, owners, heads = _weigh_all_blocks(snapshot, answer, number, record.n_chunks)
    values = np.where(heads, levels, np.nan)
    marks = _mark_segments(answer, weighed, number, values)
    return DocumentView(number, record.path, record.title, values, levels, owners, rows, numbers, marks)


def _give_to_owners(
    answer: Answer, number: int, numbers: Sequence[Numbers], levels: Floats, owners: NDArray[np.int64]
) -> None:
    """Inside a segment, put the values of the queries that it answers in place of the greatest over all queries."""
    for one in answer.trace.passages:
        if one.document == number:
            span = slice(one.start_chunk, one.end_chunk)
            found = np.array([numbers[query]["value"][span] for query in one.queries])
            best = np.where(np.isnan(found), -np.inf, found).argmax(axis=0)
            levels[span] = found[best, np.arange(found.shape[1])]
            owners[span] = np.where(owners[span] < 0, -1, np.array(one.queries)[best])


def _weigh_all_blocks(
    snapshot: Snapshot, answer: Answer, number: int, n_chunks: int
) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """Return levels, owners and heads for `dsrag`, which gives blocks without a hit a value too."""
    from rse_cli.core.dsrag import DsragSelection
    from rse_cli.pipeline.weighing_named import choose_owners, look_up_values

    selection = answer.trace.picked.trace
    assert isinstance(selection, DsragSelection)
    blocks = snapshot.evidence([make_key(number, ord_) for ord_ in range(n_chunks)]).blocks
    levels, owners = choose_owners(look_up_values(selection, number, blocks), number, blocks, selection)
    heads = np.concatenate(([True], np.diff(blocks) != 0))
    return levels, np.where(np.isnan(levels), -1, owners), heads


def _mark_segments(answer: Answer, weighed: Weighed, number: int, values: Floats) -> tuple[Mark, ...]:
    marks = []
    for place, one in enumerate(answer.trace.passages):
        if one.document != number:
            continue
        rows = values[one.start_chunk : one.end_chunk]
        rows, cost = rows[~np.isnan(rows)], weighed.cost if weighed.adds_up else 0.0
        rest = one.score - (float(rows.sum()) - cost if weighed.adds_up else float(rows.max(initial=-np.inf)))
        # Sums in another order differ in the last bits; a segment without a row has lost the one that gave its score.
        rest = 0.0 if abs(rest) <= 1e-9 else rest if np.isfinite(rest) else one.score
        marks.append(Mark(place, one.start_chunk, one.end_chunk, one.start_char, one.end_char, one.score, cost, rest))
    return tuple(sorted(marks, key=lambda mark: (mark.start_chunk, mark.start_char)))
