"""What passages are worth beside each other, and the order that follows: composite score, floor, diversity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from rse_cli.core.models import Passage
from rse_cli.core.similar_text import collect_term_set, measure_jaccard
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError

Passages = tuple[Passage, ...]

# When nothing reaches the floor, 70 % of it is still near; below 0.3 a passage is noise whatever the floor was.
FALLBACK_SHARE = 0.7
LEAST_FALLBACK = 0.3


@dataclass(frozen=True, slots=True)
class CompositeWeights:
    """What the parts of a composite score count.

    Parameters
    ----------
    weight_model : float
        Weight of the model's score (a reranker's, or the confidence).
    weight_base : float
        Weight of the retriever's score, normalised per query.
    weight_source : float
        Weight of the source's own weight.
    weight_prior : float
        How far the prior may move a score, as a share of it, in [0, 1].

    Raises
    ------
    UsageError
        If a weight lies outside its range; every fault is named.

    Examples
    --------
    >>> CompositeWeights(weight_source=0.2)
    CompositeWeights(weight_model=0.6, weight_base=0.3, weight_source=0.2, weight_prior=0.05)
    """

    weight_model: float = 0.6
    weight_base: float = 0.3
    weight_source: float = 0.1
    weight_prior: float = 0.05

    def __post_init__(self) -> None:
        faults = [
            f"{field.name} must be a finite number of at least 0, not {value}"
            for field in fields(self)
            if not (math.isfinite(value := getattr(self, field.name)) and value >= 0)
        ]
        if self.weight_prior > 1:
            faults.append(f"weight_prior must be at most 1, not {self.weight_prior}")
        if faults:
            raise UsageError("; ".join(faults))


def score_composite(
    passages: Sequence[Passage],
    model_scores: Sequence[float],
    base_scores: Sequence[float],
    source_weights: Sequence[float],
    weights: CompositeWeights | None = None,
) -> Passages:
    """Return the passages with composite scores, in the order given.

    Parameters
    ----------
    passages : sequence of Passage
        In any order.
    model_scores : sequence of float
        Per passage, in [0, 1]: the reranker's score, or the confidence.
    base_scores : sequence of float
        Per passage, the retriever's score on any scale.
    source_weights : sequence of float
        Per passage, at least 0; 1 where nothing is said about its source.
    weights : CompositeWeights, optional
        What the parts count.

    Returns
    -------
    tuple of Passage
        With scores in [0, 1 + ``weights.weight_prior``].

    Raises
    ------
    ValueError
        If there isn't one finite number per passage.

    Notes
    -----
    ``clamp(model_w·model + base_w·base + source_w·source, 0, 1) · prior`` with
    ``prior = 1 + clamp(1 − start/(end + 1), ±prior_w)``, start and end being the passage's characters: the start of a
    document and long passages gain up to 5 %, a short passage far from the start gains less. `base` is
    ``(s − min)/(max − min)`` over the passages of a query, 1 where they are equal or one alone; a passage that answers
    several queries has the best of its values.

    Examples
    --------
    >>> late, early = Passage(0, 9, 10, 9_900, 9_999, 0.0), Passage(1, 0, 5, 0, 800, 0.0)
    >>> [round(one.score, 4) for one in score_composite([late, early], [0.9, 0.5], [2.0, 6.0], [1.0, 1.0])]
    [0.6464, 0.735]
    """
    weights = weights or CompositeWeights()
    for scores in (model_scores, base_scores, source_weights):
        if len(scores) != len(passages) or not all(map(math.isfinite, scores)):
            raise ValueError("a composite score needs one finite number per passage and part")
    bases = _normalise_per_query(passages, base_scores)
    scored = []
    for passage, model, base, source in zip(passages, model_scores, bases, source_weights, strict=True):
        total = weights.weight_model * model + weights.weight_base * base + weights.weight_source * source
        prior = compute_prior(passage.start_char, passage.end_char, weights.weight_prior)
        scored.append(replace(passage, score=_clamp(total, 0.0, 1.0) * prior))
    return tuple(scored)


def compute_prior(start_char: int, end_char: int, bound: float) -> float:
    """Return ``1 + clamp(1 − start/(end + 1), ±bound)``.

    Examples
    --------
    >>> compute_prior(0, 300, 0.05), compute_prior(9_900, 9_999, 0.05)
    (1.05, 1.01)
    """
    return 1 + _clamp(1 - start_char / (end_char + 1), -bound, bound)


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def normalise_scores(scores: Sequence[float]) -> list[float]:
    """Return scores on [0, 1] by ``(s − min)/(max − min)``; all 1 where they are equal.

    Examples
    --------
    >>> normalise_scores([2.0, 6.0, 3.0]), normalise_scores([4.0])
    ([0.0, 1.0, 0.25], [1.0])
    """
    if not scores:
        return []
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _normalise_per_query(passages: Sequence[Passage], scores: Sequence[float]) -> list[float]:
    best = [0.0] * len(passages)
    for query in {query for passage in passages for query in passage.queries}:
        members = [at for at, passage in enumerate(passages) if query in passage.queries]
        for at, score in zip(members, normalise_scores([scores[at] for at in members]), strict=True):
            best[at] = max(best[at], score)
    return best


def compute_fallback(threshold: float) -> float:
    """Return the floor that is tried when nothing reaches `threshold`: ``max(0.3, 0.7 · threshold)``.

    Examples
    --------
    >>> compute_fallback(0.5), compute_fallback(0.1)
    (0.35, 0.3)
    """
    return max(LEAST_FALLBACK, FALLBACK_SHARE * threshold)


def keep_by_score(passages: Sequence[Passage], threshold: float, fallback: bool) -> tuple[Passages, bool]:
    """Keep the passages that reach a score, or those near it when none does.

    Parameters
    ----------
    passages : sequence of Passage
        In any order.
    threshold : float
        The least score.
    fallback : bool
        Whether to try once more with `compute_fallback`, over all passages, when nothing is left.

    Returns
    -------
    tuple of Passage
        In the order given.
    bool
        Whether they are there by the lower floor only.

    Examples
    --------
    >>> keep_by_score([Passage(0, 0, 1, 0, 9, 0.6)], 0.8, fallback=True)[1]
    True
    >>> keep_by_score([Passage(0, 0, 1, 0, 9, 0.6)], 0.8, fallback=False)
    ((), False)
    """
    kept = tuple(passage for passage in passages if passage.score >= threshold)
    if kept or not fallback:
        return kept, False
    floor = compute_fallback(threshold)
    near = tuple(passage for passage in passages if passage.score >= floor)
    return near, bool(near)


def order_by_mmr(passages: Sequence[Passage], texts: Sequence[str], trade_off: float) -> Passages:
    """Order passages by maximal marginal relevance: each next one is good and unlike those before it.

    Parameters
    ----------
    passages : sequence of Passage
        In the order that decides ties.
    texts : sequence of str
        Their texts.
    trade_off : float
        λ in [0, 1]: 1 orders by score alone, 0 by difference alone.

    Returns
    -------
    tuple of Passage
        All of them, their scores unchanged.

    Raises
    ------
    ValueError
        If `trade_off` lies outside [0, 1] or texts and passages differ in number.

    Notes
    -----
    Next is the greatest ``λ·score − (1 − λ)·max Jaccard(term sets) with those chosen`` (Carbonell and Goldstein 1998),
    scores normalised to [0, 1].

    Examples
    --------
    >>> passages = [Passage(document, 0, 1, 0, 9, score) for document, score in ((0, 3.0), (1, 2.9), (2, 2.0))]
    >>> texts = ["oil the pump", "oil pumps", "call the desk"]
    >>> [passage.document for passage in order_by_mmr(passages, texts, 0.3)]
    [0, 2, 1]
    """
    if not 0 <= trade_off <= 1:
        raise ValueError(f"the trade-off of MMR lies between 0 and 1, not at {trade_off}")
    if len(texts) != len(passages):
        raise ValueError("MMR needs one text per passage")
    scores = normalise_scores([passage.score for passage in passages])
    terms = [collect_term_set(text) for text in texts]
    nearest = [0.0] * len(passages)
    left = list(range(len(passages)))
    order: list[int] = []
    while left:
        best = max(left, key=lambda at: trade_off * scores[at] - (1 - trade_off) * nearest[at])
        left.remove(best)
        order.append(best)
        for at in left:
            nearest[at] = max(nearest[at], measure_jaccard(terms[best], terms[at]))
    return tuple(passages[at] for at in order)


def order_passages(passages: Sequence[Passage], paths: Mapping[int, str]) -> Passages:
    """Order passages by score, highest first; ties by path, then position.

    Parameters
    ----------
    passages : sequence of Passage
        In any order.
    paths : mapping of int to str
        The path of each document.

    Examples
    --------
    >>> tied = [Passage(0, 4, 5, 40, 50, 1.0), Passage(1, 0, 1, 0, 9, 1.0), Passage(0, 1, 2, 9, 20, 1.0)]
    >>> [(one.document, one.start_chunk) for one in order_passages(tied, {0: "b.md", 1: "a.md"})]
    [(1, 0), (0, 1), (0, 4)]
    """
    return tuple(sorted(passages, key=lambda one: (-one.score, paths[one.document], one.start_char, one.end_char)))
