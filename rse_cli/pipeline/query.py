"""Queries to segments by the method `rse`: retrieve, weigh, choose, deliver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rse_cli.core.lexical import Floats
from rse_cli.core.params import RseParams
from rse_cli.core.relevance import (
    Evidence,
    calibrate,
    combine_evidence,
    default_min_confidence,
    gather_evidence,
    measure_confidence,
    spread_over_tables,
)
from rse_cli.core.selection import Choice, Selection, select_segments
from rse_cli.pipeline.retrieval import Query, Retrieval, retrieve
from rse_cli.ports import KEY_BITS, Snapshot


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the index.

    Parameters
    ----------
    queries : tuple of Query
        From `encode_queries`.
    params : RseParams
        Of the method.
    fill : bool
        Whether to use the ceiling up.
    limit : int or None
        Most segments.
    min_confidence : float or None
        Floor of confidence, in [0, 1]; None takes the method's own, 0 turns it off.
    paths : tuple of str or None
        Documents to choose from; None for all.
    """

    queries: tuple[Query, ...]
    params: RseParams
    fill: bool = False
    limit: int | None = None
    min_confidence: float | None = None
    paths: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """What one query makes of the candidates: evidence, ``z``, relevance, and confidence in the answer as a whole."""

    evidence: Evidence
    z: Floats
    relevance: Floats
    confidence: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of adjacent chunks of one document, as it is shown.

    Spans of chunks and characters are half-open and 0-based, lines and pages inclusive and 1-based. `queries` are the
    positions of the queries that it answers.
    """

    path: str
    title: str
    section: str
    queries: tuple[int, ...]
    score: float
    start_chunk: int
    end_chunk: int
    start_char: int
    end_char: int
    start_line: int | None
    end_line: int | None
    start_page: int | None
    end_page: int | None
    header: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The segments for a request, best first, with what they rest on.

    Parameters
    ----------
    request : Request
        What was asked.
    segments : tuple of Segment
        Best first.
    confidence : float
        The greatest over the queries, in [0, 1].
    nearest_miss : Segment or None
        The best segment where all queries fell below the floor.
    n_candidates : int
        Chunks that were weighed.
    penalties : tuple of float
        Per query that was answered, the penalty that made the answer fit.
    segment_cost : float
        The cost of a segment used, in characters.
    """

    request: Request
    segments: tuple[Segment, ...]
    confidence: float
    nearest_miss: Segment | None
    n_candidates: int
    penalties: tuple[float, ...]
    segment_cost: float


def answer_request(snapshot: Snapshot, request: Request) -> Answer:
    """Answer from one version of the index.

    Parameters
    ----------
    snapshot : Snapshot
        The index.
    request : Request
        Queries and parameters.

    Returns
    -------
    Answer
        Without segments where no query reaches the floor of confidence.
    """
    retrieval = retrieve(snapshot, request.queries, request.paths)
    scored = [score_candidates(retrieval, at, request.params) for at in range(len(request.queries))]
    confident = [at for at, one in enumerate(scored) if one.confidence >= _floor(request, at)]
    selection = select_answer(retrieval, scored, confident, request)
    choices = selection.choices[: request.limit]
    miss = None
    if not choices and len(retrieval.keys):
        everything = list(range(len(scored)))
        miss = deliver(snapshot, retrieval, select_answer(retrieval, scored, everything, request).choices[:1])[0]
    return Answer(
        request,
        deliver(snapshot, retrieval, choices),
        max(one.confidence for one in scored),
        miss,
        len(retrieval.keys),
        selection.penalties,
        selection.segment_cost,
    )


def _floor(request: Request, at: int) -> float:
    lexical = request.queries[at].lexical
    return default_min_confidence(lexical) if request.min_confidence is None else request.min_confidence


def score_candidates(retrieval: Retrieval, query: int, params: RseParams) -> Scored:
    """Return what one query makes of the candidates."""
    asked, statistics = retrieval.queries[query], retrieval.statistics
    candidates = retrieval.candidates[query]
    evidence = gather_evidence(
        asked.vector, retrieval.words[query], candidates, statistics.n_chunks, statistics.mean_lengths
    )
    z = combine_evidence(evidence, params)
    relevance = spread_over_tables(calibrate(z), candidates, params.table_share)
    return Scored(evidence, z, relevance, measure_confidence(float(z.max(initial=-np.inf)), asked.lexical))


def select_answer(
    retrieval: Retrieval, scored: Sequence[Scored], confident: Sequence[int], request: Request
) -> Selection:
    """Choose segments for the queries that may be answered; their numbers are those of the request."""
    if not confident or not len(retrieval.keys):
        return Selection((), (), request.params.segment_cost, np.zeros(len(retrieval.keys)))
    chars = retrieval.candidates[0].chars
    relevances = [scored[at].relevance for at in confident]
    selection = select_segments(relevances, chars, retrieval.starts, request.params, request.fill)
    choices = tuple(
        Choice(one.start, one.end, one.score, tuple(confident[at] for at in one.queries), one.last_chars)
        for one in selection.choices
    )
    return Selection(choices, selection.penalties, selection.segment_cost, selection.values)


def deliver(snapshot: Snapshot, retrieval: Retrieval, choices: Sequence[Choice]) -> tuple[Segment, ...]:
    """Return the chosen rows as segments with their text."""
    keys = [int(key) for choice in choices for key in retrieval.keys[choice.start : choice.end]]
    stored = {chunk.key: chunk for chunk in snapshot.chunks(keys)}
    segments = []
    for choice in choices:
        chunks = [stored[int(key)].chunk for key in retrieval.keys[choice.start : choice.end]]
        first, last = chunks[0], chunks[-1]
        cut = len(last.text) - choice.last_chars
        text = "".join(chunk.text for chunk in chunks)[: -cut or None]
        record = retrieval.records[int(retrieval.keys[choice.start]) >> KEY_BITS]
        end_line = last.end_line
        if cut and last.start_line is not None:
            shown = last.text[: choice.last_chars]
            lead = len(last.text) - len(last.text.lstrip())
            end_line = last.start_line + shown.rstrip().count("\n", lead)
        segments.append(
            Segment(
                path=record.path,
                title=record.title,
                section=first.section,
                queries=choice.queries,
                score=choice.score,
                start_chunk=first.ord,
                end_chunk=last.ord + 1,
                start_char=first.start_char,
                end_char=last.end_char - cut,
                start_line=first.start_line,
                end_line=end_line,
                start_page=first.start_page,
                end_page=last.end_page,
                header=first.header,
                text=text,
            )
        )
    return tuple(segments)
