"""What each query makes of the candidates: evidence, relevance, and confidence in the answer as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rse_cli.core.lexical import Floats
from rse_cli.core.params import RseParams
from rse_cli.core.relevance import (
    Balance,
    Evidence,
    balance_relevance,
    calibrate,
    combine_evidence,
    find_strongest,
    gather_evidence,
    measure_confidence,
    measure_known_share,
    spread_over_tables,
)
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.retrieval import Retrieval
from rse_cli.timings import stage

RERANKED = 50  # what a cross-encoder reads in a second or two; the evidence puts the answer among them

Rerank = Callable[[str, Sequence[tuple[int, int]]], Floats]
"""Query and half-open runs of candidate rows, a chunk or a block each, to scores in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What one query makes of the candidates, rows as in the retrieval.

    Parameters
    ----------
    evidence : Evidence
        Each piece by itself.
    balance : Balance
        How much cosines and words said.
    z : ndarray of shape (n,)
        Their weighted sum.
    relevance : ndarray of shape (n,)
        Calibrated: the best three average 1.
    confidence : float
        In [0, 1], from the largest ``z`` without the reranker, whose scale it doesn't know.
    """

    evidence: Evidence
    balance: Balance
    z: Floats
    relevance: Floats
    confidence: float


@stage("score")
def score_candidates(retrieval: Retrieval, query: int, params: RseParams, rerank: Rerank | None = None) -> Scored:
    """Score the candidates for one query.

    Parameters
    ----------
    retrieval : Retrieval
        The candidates.
    query : int
        Position of the query.
    params : RseParams
        Weights of the evidence.
    rerank : callable or None
        Scores the best candidates again; becomes one more piece of evidence.
    """
    asked, statistics = retrieval.queries[query], retrieval.statistics
    candidates = retrieval.candidates[query]
    evidence = gather_evidence(
        asked.vector, retrieval.words[query], candidates, statistics.n_chunks, statistics.mean_lengths
    )
    share = measure_known_share(retrieval.words[query], statistics.n_chunks)
    balance = balance_relevance(params, share, asked.lexical)
    z = combine_evidence(evidence, params, balance)
    confidence = measure_confidence(find_strongest(evidence, params, share, asked.lexical), asked.lexical)
    if rerank is not None and len(z):
        best = np.sort(np.argsort(-z, kind="stable")[:RERANKED])
        reranked = np.zeros(len(z))
        reranked[best] = rerank(asked.text, [(row, row + 1) for row in best.tolist()])
        evidence = replace(evidence, rerank=reranked)
        z = combine_evidence(evidence, params, balance)
    relevance = spread_over_tables(calibrate(z), candidates, params.table_share)
    return Scored(evidence, balance, z, relevance, confidence)


def find_confident(scored: Sequence[Scored], floors: Sequence[float]) -> list[int]:
    """Return the queries whose confidence reaches their floor."""
    return [at for at, (one, floor) in enumerate(zip(scored, floors, strict=True)) if one.confidence >= floor]
