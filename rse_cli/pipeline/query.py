"""Queries to segments: retrieve, weigh, choose by a method, refine, deliver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from rse_cli.core.lexical import Floats
from rse_cli.core.methods import DEFAULT_METHOD, MethodParams
from rse_cli.core.models import Passage
from rse_cli.core.params import RseParams
from rse_cli.core.relevance import default_min_confidence
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.delivery import Segment, deliver_passages, fetch_chunks
from rse_cli.pipeline.refinement import Refined, Refinement, fit_passages, refine_passages
from rse_cli.pipeline.retrieval import Query, Retrieval, choose_documents, retrieve
from rse_cli.pipeline.scoring import Rerank, Scored, find_confident, score_candidates
from rse_cli.pipeline.selecting import Material, Picked, find_selector, select_rse
from rse_cli.ports import Reranker, Snapshot
from rse_cli.timings import stage

__all__ = ["Answer", "Request", "Segment", "Trace", "answer_request"]


CALIBRATED = ("rse", "hierarchical")
"""The methods that choose by calibrated relevance, and so have a floor of confidence of their own."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the index.

    Parameters
    ----------
    queries : tuple of Query
        From `encode_queries`.
    params : MethodParams
        Of the method.
    fill : bool
        Whether to use the ceiling up; method `rse` only.
    limit : int or None
        Most segments.
    min_confidence : float or None
        Floor of confidence, in [0, 1], below which nothing is returned; None takes the default one, which `rse` and
        `hierarchical` alone have; 0 turns it off.
    paths : tuple of str or None
        Documents to choose from; None for all.
    method : str
        A key of `METHODS`.
    max_chars : int or None
        Ceiling for methods that have none of their own: the last segment is cut at it.
    retriever : str
        What ranks hits for methods that take one.
    refinement : Refinement or None
        Steps after the choice; None joins neighbours, for `dsrag` does nothing.
    reranker : Reranker or None
        Scores candidates again before the choice.
    weigh_source : callable
        Path to the weight of its source, for the composite score.
    """

    queries: tuple[Query, ...]
    params: MethodParams
    fill: bool = False
    limit: int | None = None
    min_confidence: float | None = None
    paths: tuple[str, ...] | None = None
    method: str = DEFAULT_METHOD
    max_chars: int | None = None
    retriever: str = "hybrid"
    refinement: Refinement | None = None
    reranker: Reranker | None = None
    weigh_source: Callable[[str], float] = field(default=lambda _: 1.0)


@dataclass(frozen=True, slots=True)
class Trace:
    """All that an answer was made from, for inspection."""

    retrieval: Retrieval
    scored: tuple[Scored, ...]
    answered: tuple[int, ...]
    picked: Picked
    refined: Refined
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The segments for a request, best first, with what they rest on.

    Parameters
    ----------
    request : Request
        What was asked.
    segments : tuple of Segment
        In the order of the method, after refinement.
    confidence : float
        The greatest over the queries, in [0, 1].
    nearest_miss : Segment or None
        The best segment where nothing was found.
    used : mapping of str to object
        Parameters as they were used.
    trace : Trace
        How it came about.
    """

    request: Request
    segments: tuple[Segment, ...]
    confidence: float
    nearest_miss: Segment | None
    used: Mapping[str, Any]
    trace: Trace

    @property
    def n_candidates(self) -> int:
        """Chunks that were weighed."""
        return len(self.trace.retrieval.keys)


def answer_request(snapshot: Snapshot, request: Request) -> Answer:
    """Answer from one version of the index.

    Parameters
    ----------
    snapshot : Snapshot
        The index.
    request : Request
        Queries, method and parameters.

    Returns
    -------
    Answer
        Without segments where no query reaches the floor of confidence.
    """
    paths = request.paths
    if request.method == "hierarchical":
        paths = choose_documents(snapshot, request.queries, getattr(request.params, "documents"), paths)  # noqa: B009
    retrieval = retrieve(snapshot, request.queries, paths)
    weights = request.params if isinstance(request.params, RseParams) else RseParams()
    rerank = _bind_reranker(snapshot, retrieval, request)
    evidence_rerank = rerank if request.method in CALIBRATED else None
    scored = tuple(score_candidates(retrieval, at, weights, evidence_rerank) for at in range(len(request.queries)))
    floors = [_find_floor(request, at) for at in range(len(request.queries))]
    answered = tuple(find_confident(scored, floors))
    material = Material(snapshot, retrieval, scored, answered, request.retriever, request.fill, rerank)
    with stage("segments"):
        silent = not answered and request.method not in CALIBRATED
    picked = Picked((), {}) if silent else find_selector(request.method)(material, request.params)
    confidence = max((one.confidence for one in scored), default=0.0)
    refined, passages, segments = _finish(snapshot, retrieval, picked.passages, request, confidence)
    miss = None if segments else _find_miss(material, request)
    used = request.params.to_dict() | dict(picked.used)
    trace = Trace(retrieval, scored, answered, picked, refined, passages)
    return Answer(request, segments, confidence, miss, used, trace)


def _find_floor(request: Request, at: int) -> float:
    if request.min_confidence is not None:
        return request.min_confidence
    if request.method not in CALIBRATED:
        return 0.0
    return default_min_confidence(request.queries[at].lexical)


def _bind_reranker(snapshot: Snapshot, retrieval: Retrieval, request: Request) -> Rerank | None:
    """Return the reranker over candidate rows: it reads header and text."""
    if request.reranker is None:
        return None
    reranker = request.reranker

    def rerank(query: str, runs: Sequence[tuple[int, int]]) -> Floats:
        keys = [[int(key) for key in retrieval.keys[start:end]] for start, end in runs]
        chunks = {one.key: one.chunk for one in snapshot.chunks([key for run in keys for key in run])}
        texts = ["".join([f"{chunks[run[0]].header}\n", *(chunks[key].text for key in run)]) for run in keys]
        scores: Floats = np.asarray(reranker.score(query, texts), dtype=np.float64)
        return scores

    return rerank


@stage("segments")
def _finish(
    snapshot: Snapshot,
    retrieval: Retrieval,
    passages: Sequence[Passage],
    request: Request,
    confidence: float,
) -> tuple[Refined, tuple[Passage, ...], tuple[Segment, ...]]:
    """Refine, cut at the ceiling and deliver."""
    refinement = request.refinement
    if refinement is None:
        refinement = Refinement(join=request.method != "dsrag", limit=request.limit)
    chunks = fetch_chunks(snapshot, retrieval.records, passages, refinement.reach)
    paths = {number: record.path for number, record in retrieval.records.items()}

    def score_by_model(ones: Sequence[Passage]) -> list[float]:
        if request.reranker is None:
            return [confidence] * len(ones)
        texts = [segment.text for segment in deliver_passages(ones, retrieval.records, chunks)]
        scores = np.array([request.reranker.score(query.text, texts) for query in request.queries])
        return [float(score) for score in scores.max(axis=0)]

    refined = refine_passages(passages, chunks, paths, refinement, score_by_model, request.weigh_source)
    fitted = fit_passages(refined.passages, request.max_chars, chunks)
    return refined, fitted, deliver_passages(fitted, retrieval.records, chunks)


def _find_miss(material: Material, request: Request) -> Segment | None:
    """Return the best segment without a floor of confidence."""
    retrieval = material.retrieval
    if not len(retrieval.keys):
        return None
    everything = Material(
        material.snapshot, retrieval, material.scored, tuple(range(len(material.scored))), fill=material.fill
    )
    params = request.params if isinstance(request.params, RseParams) else RseParams()
    best = select_rse(everything, params).passages[:1]
    return deliver_passages(best, retrieval.records, fetch_chunks(material.snapshot, retrieval.records, best))[0]
