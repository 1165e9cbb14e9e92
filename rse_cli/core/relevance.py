"""Evidence for candidate chunks, and the relevance that calibration makes of it.

Evidence is gathered over windows of ±k chunks that end with the document: cosines for meaning, BM25F for words,
proximity for phrases. A weighted sum ``z`` becomes relevance relative to the best candidates of the query.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import Floats, compute_idf, score_bm25, score_proximity, weigh_years
from rse_cli.core.params import RseParams
from rse_cli.dataclass import dataclass

WINDOW_WIDTHS = (0, 1, 4, 12)
"""Half-widths k of the windows whose mean lengths the index keeps."""

REACH = WINDOW_WIDTHS[-1]

CJK_QUERY_SHARE = 0.3  # from here on the English default model's cosines cost 2–5 points of recall
TOP_SHARE = 3  # relevance 1 is the mean of the three best: one outlier should not make all else irrelevant

# Floors of the strongest z (`find_strongest`). 5.1 loses 0.4 % of the answerable development questions of chunking-en
# and refuses 86 % of those asked of an index without their document; 5.4 would be 0.9 and 93 %, but other collections
# have lower sums. Queries without cosines: 2.2 loses none of reading-zh and refuses 7 %, where 4.0 would be 0.2 and
# 56 %; but in a small index, which knows few of a paraphrase's characters, answers have 2.4 and foreign questions 1–2.
FLOOR = 5.1
FLOOR_LEXICAL = 2.2
# Slope and middle of confidence: logistic regressions of the same two groups of questions, equally weighted.
CURVE = (2.35, 6.43)
CURVE_LEXICAL = (0.96, 7.35)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Chunks that may be answers, with their neighbours, as columns.

    Parameters
    ----------
    documents : ndarray of shape (n,)
        Number of each chunk's document; rows are sorted by document and ord.
    ords : ndarray of shape (n,)
        Position in the document.
    chars : ndarray of shape (n,)
        Characters.
    n_terms : ndarray of shape (n,)
        Terms without stop words.
    vectors : ndarray of shape (n, dimension)
        Unit vectors.
    counts : ndarray of shape (n, n_query_terms)
        Occurrences of the distinct query terms.
    fields : ndarray of shape (n, n_query_terms)
        1 where the document field holds the term.
    row_fields : ndarray of shape (n, n_query_terms)
        1 where the row field of the chunk's table holds the term.
    is_row : ndarray of shape (n,)
        Whether the chunk belongs to a run of table chunks.
    """

    documents: NDArray[np.int64]
    ords: NDArray[np.int64]
    chars: NDArray[np.int64]
    n_terms: NDArray[np.int64]
    vectors: NDArray[np.float32]
    counts: NDArray[np.int32]
    fields: NDArray[np.int32]
    row_fields: NDArray[np.int32]
    is_row: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The words of a query against the index.

    Parameters
    ----------
    terms : tuple of str
        Distinct terms that occur in the index.
    order : tuple of int
        The query's terms in order, as positions in `terms`.
    frequencies : tuple of int
        Chunks that hold each.
    n_unknown : int
        Distinct terms of the query that no chunk holds.
    """

    terms: tuple[str, ...]
    order: tuple[int, ...]
    frequencies: tuple[int, ...]
    n_unknown: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """Each piece of evidence per candidate, all of shape (n,): cosines in [-1, 1], the others in [0, 1].

    `rerank` holds the scores of a reranker, 0 for candidates that it didn't read; None without one.
    """

    c0: Floats
    c1: Floats
    c4: Floats
    f0: Floats
    f4: Floats
    f12: Floats
    p1: Floats
    rerank: Floats | None = None


def find_runs(documents: NDArray[np.int64], ords: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each row where its run of adjacent chunks starts and ends (half-open).

    Examples
    --------
    >>> starts, ends = find_runs(np.array([0, 0, 0, 1]), np.array([3, 4, 9, 0]))
    >>> starts.tolist(), ends.tolist()
    ([0, 0, 2, 3], [2, 2, 3, 4])
    """
    n = len(ords)
    breaks = np.flatnonzero((np.diff(documents) != 0) | (np.diff(ords) != 1)) + 1
    bounds = np.concatenate(([0], breaks, [n])).astype(np.int64)
    lengths = np.diff(bounds)
    return np.repeat(bounds[:-1], lengths), np.repeat(bounds[1:], lengths)


def gather_evidence(
    query: NDArray[np.float32] | None,
    words: QueryTerms,
    candidates: Candidates,
    n_chunks: int,
    mean_lengths: Mapping[int, float],
) -> Evidence:
    """Return every piece of evidence for every candidate.

    Parameters
    ----------
    query : ndarray of shape (dimension,) or None
        Unit vector; None drops the cosines, which are then 0.
    words : QueryTerms
        The query's terms.
    candidates : Candidates
        Windows end where a run of adjacent candidates ends, so callers add neighbours up to ±12 chunks.
    n_chunks : int
        Chunks in the index.
    mean_lengths : mapping of int to float
        Mean terms of the windows of ±0, ±1, ±4, ±12 chunks over the index.

    Returns
    -------
    Evidence
    """
    starts, ends = find_runs(candidates.documents, candidates.ords)
    at = np.arange(len(starts))

    def accumulate(values: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int64]:
        return np.concatenate((np.zeros((1, *values.shape[1:]), np.int64), np.cumsum(values, axis=0, dtype=np.int64)))

    def spread(sums: NDArray[np.int64], k: int) -> Floats:
        windows: Floats = (sums[np.minimum(at + k + 1, ends)] - sums[np.maximum(at - k, starts)]).astype(np.float64)
        return windows

    if query is None:
        c0 = c1 = c4 = np.zeros(len(at))
    else:
        c0, c1, c4 = _window_cosines(query, candidates, starts, (0, 1, 4))
    plain = compute_idf(words.terms, words.frequencies, n_chunks)
    idf = weigh_years(words.terms, plain)
    extra = candidates.fields + candidates.row_fields
    counts, n_terms = accumulate(candidates.counts), accumulate(candidates.n_terms)
    f0, f4, f12 = (score_bm25(spread(counts, k) + extra, spread(n_terms, k), mean_lengths[k], idf) for k in (0, 4, 12))
    near, length = spread(counts, 1), spread(n_terms, 1)
    p1 = score_proximity(near, length, mean_lengths[1], plain, words.order)
    return Evidence(c0, c1, c4, f0, f4, f12, p1)


def _window_cosines(
    query: NDArray[np.float32],
    candidates: Candidates,
    starts: NDArray[np.int64],
    widths: Sequence[int],
) -> list[Floats]:
    """Cosine of the query with the mean of the vectors within ±k chunks, weighted by characters, for ascending k."""
    # Runs are laid out with zero rows between, so that every window is a few shifted adds of whole slices.
    reach = widths[-1]
    places = np.arange(len(starts)) + reach * np.cumsum(np.arange(len(starts)) == starts)
    laid = np.zeros((len(starts) and places[-1] + 1 + reach, len(query)), dtype=np.float32)
    laid[places] = candidates.vectors * candidates.chars[:, None].astype(np.float32)
    n = max(len(laid) - 2 * reach, 0)
    total = laid[reach : reach + n].copy()
    cosines: list[Floats] = []
    for step in range(reach + 1):
        # Adds in a fixed order, and no BLAS, whose sums differ with a row's place: a window has the same bits whatever
        # candidates lie around it, so that equal chunks tie.
        if step:
            total += laid[reach - step : reach - step + n]
            total += laid[reach + step : reach + step + n]
        if step in widths:
            norms = np.sqrt(np.einsum("ij,ij->i", total, total))
            products = np.einsum("ij,j->i", total, query)
            windows = (products / np.maximum(norms, np.float32(1e-12))).astype(np.float64)
            cosines.append(windows[places - reach])
    return cosines


@dataclass(frozen=True, slots=True)
class Balance:
    """Factors of the weights of cosines and of those of words, both at least 0."""

    cosines: float = 1.0
    words: float = 1.0


def balance_relevance(params: RseParams, known_share: float, lexical: bool) -> Balance:
    """Return how much cosines and words say of a query that the index knows in part.

    Words count by `known_share`, without cosines they alone; then both grow so that the weights still add up to the
    same and relevance falls off as steeply. "How many vacation days" of a policy on leave is answered by its meaning
    then, not by chunks with "many" and "days"; on chunking-en, where 17 % of the questions have unknown words, nothing
    is lost (recall 87.5 in 2,000 characters, 77.9 in 1,000). On reading-zh, which has no cosines, the usual answer is
    half as long, at 2 points of recall.

    Examples
    --------
    >>> balance_relevance(RseParams(), 1.0, lexical=False), balance_relevance(RseParams(), 1.0, lexical=True)
    (Balance(cosines=1.0, words=1.0), Balance(cosines=0.0, words=1.64))
    """
    cosines, words = sum_weights(params)
    heard = words if lexical else cosines + known_share * words
    factor = (cosines + words) / heard if heard else 1.0
    return Balance(0.0, factor) if lexical else Balance(factor, factor * known_share)


def balance_confidence(params: RseParams, known_share: float, lexical: bool) -> Balance:
    """Return how much cosines and words say about whether there is an answer.

    BM25 is normalised over the terms that the index knows, so one common word can look like a full match. Words are
    damped by ``√known_share``, where they stand alone by ``known_share``: that raised the area under the ROC curve of
    answerable against unanswerable development questions from 0.992 to 0.998 in English and from 0.959 to 0.978 in
    Chinese.

    Examples
    --------
    >>> balance_confidence(RseParams(), 0.25, lexical=False)
    Balance(cosines=1.0, words=0.5)
    """
    if lexical:
        return Balance(0.0, known_share * balance_relevance(params, known_share, lexical).words)
    return Balance(1.0, math.sqrt(known_share))


def sum_weights(params: RseParams) -> tuple[float, float]:
    """Return the sum of the weights of cosines and that of words."""
    return (
        params.weight_c0 + params.weight_c1 + params.weight_c4,
        params.weight_f0 + params.weight_f4 + params.weight_f12 + params.weight_p1,
    )


def combine_evidence(evidence: Evidence, params: RseParams, balance: Balance) -> Floats:
    """Return ``z``: the weighted sum of cosines and that of words, each times its factor, and of a reranker's scores.

    Examples
    --------
    >>> found = Evidence(*(np.array([value]) for value in (0.5, 0, 0, 0.2, 0, 0, 0)))
    >>> combine_evidence(found, RseParams(), Balance()).tolist()
    [2.5]
    """
    z = balance.cosines * combine_cosines(evidence, params) + balance.words * combine_words(evidence, params)
    return z if evidence.rerank is None else z + params.weight_rerank * evidence.rerank


def combine_cosines(evidence: Evidence, params: RseParams) -> Floats:
    """Return the weighted sum of the cosines."""
    return params.weight_c0 * evidence.c0 + params.weight_c1 * evidence.c1 + params.weight_c4 * evidence.c4


def combine_words(evidence: Evidence, params: RseParams) -> Floats:
    """Return the weighted sum of the evidence of words."""
    return (
        params.weight_f0 * evidence.f0
        + params.weight_f4 * evidence.f4
        + params.weight_f12 * evidence.f12
        + params.weight_p1 * evidence.p1
    )


def calibrate(z: Floats) -> Floats:
    """Return relevance: ``p = exp(z − max z)``, divided by the mean of its three largest (of all, if fewer).

    Returns
    -------
    ndarray of shape (n,)
        Positive; the best three average 1.

    Examples
    --------
    >>> calibrate(np.array([2.0, 2.0, 2.0, 1.0])).round(3).tolist()
    [1.0, 1.0, 1.0, 0.368]
    """
    if not len(z):
        return z
    p = np.exp(z - z.max())
    relevance: Floats = p / np.sort(p)[-TOP_SHARE:].mean()
    return relevance


def spread_over_tables(relevance: Floats, candidates: Candidates, share: float) -> Floats:
    """Raise each row of a table to `share` of the table's best relevance, so that a hit on one row keeps it together.

    Rows of one table lie in one document with at most one other chunk between neighbours.
    """
    rows = np.flatnonzero(candidates.is_row)
    if not len(rows):
        return relevance
    documents, ords = candidates.documents[rows], candidates.ords[rows]
    first = np.concatenate(([True], (np.diff(documents) != 0) | (np.diff(ords) > 2)))
    best = np.maximum.reduceat(relevance[rows], np.flatnonzero(first))
    raised = relevance.copy()
    raised[rows] = np.maximum(relevance[rows], share * best[np.cumsum(first) - 1])
    return raised


def measure_known_share(words: QueryTerms, n_chunks: int) -> float:
    """Return the share of the query's idf that lies in terms of the index, in [0, 1]; 1 for a query without terms.

    Examples
    --------
    >>> round(measure_known_share(QueryTerms(("oil",), (0,), (1,), 1), 10), 3)
    0.392
    """
    known = float(compute_idf(words.terms, words.frequencies, n_chunks).sum())
    unknown = words.n_unknown * float(compute_idf(["?"], [0], n_chunks)[0])
    return known / (known + unknown) if known + unknown > 0 else 1.0


def find_strongest(evidence: Evidence, params: RseParams, known_share: float, lexical: bool) -> float:
    """Return the largest ``z`` as far as it speaks for an answer (`balance_confidence`), −inf without candidates.

    Parameters
    ----------
    evidence : Evidence
        Of all candidates, without a reranker's.
    params : RseParams
        Weights.
    known_share : float
        From `measure_known_share`.
    lexical : bool
        Whether the cosines were left out.
    """
    z = combine_evidence(evidence, params, balance_confidence(params, known_share, lexical))
    return float(z.max(initial=-np.inf))


def measure_confidence(max_z: float, lexical: bool) -> float:
    """Return in [0, 1] how sure it is that the index answers at all: a logistic function of the largest ``z``.

    Parameters
    ----------
    max_z : float
        Largest weighted sum of evidence; −inf where there is no candidate.
    lexical : bool
        Whether the cosines were left out.

    Examples
    --------
    >>> measure_confidence(6.43, lexical=False)
    0.5
    """
    slope, middle = CURVE_LEXICAL if lexical else CURVE
    return 1 / (1 + math.exp(-slope * (max_z - middle))) if max_z > -100 else 0.0


def default_min_confidence(lexical: bool) -> float:
    """Return the confidence at the floor below which `rse` returns nothing."""
    return measure_confidence(FLOOR_LEXICAL if lexical else FLOOR, lexical)


def order_query_terms(terms: Sequence[str], frequencies: Mapping[str, int]) -> QueryTerms:
    """Return the query's terms that occur in the index.

    Examples
    --------
    >>> order_query_terms(["oil", "pump", "oil", "zz"], {"oil": 3, "pump": 1, "zz": 0})
    QueryTerms(terms=('oil', 'pump'), order=(0, 1, 0), frequencies=(3, 1), n_unknown=1)
    """
    kept = [term for term in terms if frequencies[term] > 0]
    distinct = tuple(dict.fromkeys(kept))
    position = {term: at for at, term in enumerate(distinct)}
    return QueryTerms(
        distinct,
        tuple(position[term] for term in kept),
        tuple(frequencies[term] for term in distinct),
        len(set(terms)) - len(distinct),
    )
