"""What happens to passages after a method chose them: growing, completing, joining, dropping, ordering, cutting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from rse_cli.core.models import Chunk, Passage
from rse_cli.core.refine import FAQ_BOOST, complete_faq, cut_passages, expand_short, join_passages, limit_passages
from rse_cli.dataclass import dataclass

if TYPE_CHECKING:
    from rse_cli.core.ranking import CompositeWeights

AROUND = 12  # chunks on either side that growing to 850 characters may need
AROUND_FAQ = 70  # an answer may go on for 2,000 characters, in Chinese about 70 chunks


@dataclass(frozen=True, slots=True)
class Refinement:
    """Which steps to take; the order is fixed.

    Parameters
    ----------
    expand_short : bool
        Grow passages below 350 characters.
    complete_faq : bool
        Complete a question with its answer.
    faq_boost : float
        What that multiplies the score with, at most up to the best.
    join : bool
        Make passages that touch or overlap one.
    dedupe : bool
        Drop passages that say the same as a better one.
    composite : CompositeWeights or None
        Weights of a score made of confidence or reranker, method and source.
    min_score : float or None
        Drop passages below it.
    fallback : bool
        Whether a `min_score` that leaves nothing is lowered once.
    mmr : float or None
        Trade-off between score (1) and variety (0).
    limit : int or None
        Most passages.
    """

    expand_short: bool = False
    complete_faq: bool = False
    faq_boost: float = FAQ_BOOST
    join: bool = True
    dedupe: bool = False
    composite: CompositeWeights | None = None
    min_score: float | None = None
    fallback: bool = True
    mmr: float | None = None
    limit: int | None = None

    @property
    def reach(self) -> int:
        """How many chunks around a passage the steps may look at."""
        return AROUND_FAQ if self.complete_faq else AROUND if self.expand_short else 0

    def to_dict(self) -> dict[str, float]:
        """Return the parameters of the steps that are taken, by name."""
        boost = {"faq_boost": self.faq_boost} if self.complete_faq else {}
        weights = {} if self.composite is None else asdict(self.composite)
        rest = {"min_score": self.min_score, "mmr": self.mmr}
        return boost | weights | {name: value for name, value in rest.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Refined:
    """Passages after refinement, and how they came about.

    Parameters
    ----------
    passages : tuple of Passage
        In their last order.
    steps : tuple of str
        That were taken.
    fell_back : bool
        Whether the floor of scores was lowered.
    best_refused : float or None
        The best score where the floor left nothing.
    """

    passages: tuple[Passage, ...]
    steps: tuple[str, ...]
    fell_back: bool = False
    best_refused: float | None = None


def refine_passages(
    passages: Sequence[Passage],
    chunks: Mapping[tuple[int, int], Chunk],
    paths: Mapping[int, str],
    refinement: Refinement,
    model_scores: Callable[[Sequence[Passage]], list[float]],
    weigh_source: Callable[[str], float],
) -> Refined:
    """Take the steps of a refinement.

    Parameters
    ----------
    passages : sequence of Passage
        In the method's order.
    chunks : mapping of (int, int) to Chunk
        Of the passages and ``refinement.reach`` around them, by document and ord.
    paths : mapping of int to str
        Paths by document number.
    refinement : Refinement
        What to do.
    model_scores : callable
        Passages to the reranker's scores, or to the confidence, in [0, 1].
    weigh_source : callable
        Path to weight.
    """
    now, steps = tuple(passages), []
    if refinement.expand_short:
        now = expand_short(now, chunks)
        steps.append("expand_short")
    if refinement.complete_faq:
        from rse_cli.core.ranking import order_passages

        now = order_passages(complete_faq(now, chunks, refinement.faq_boost), paths)
        steps.append("complete_faq")
    if refinement.join:
        now = join_passages(now)
        steps.append("join")
    if refinement.dedupe:
        from rse_cli.core.similar_text import drop_duplicates, find_tables

        now = drop_duplicates(now, _read_texts(now, chunks), tables=find_tables(now, chunks))
        steps.append("dedupe")
    rescored = _rescore(Refined(now, ()), chunks, paths, refinement, model_scores, weigh_source, steps)
    now = rescored.passages
    if refinement.limit is not None:
        now = limit_passages(now, refinement.limit)
        steps.append("limit")
    return replace(rescored, passages=now, steps=tuple(steps))


def _rescore(
    refined: Refined,
    chunks: Mapping[tuple[int, int], Chunk],
    paths: Mapping[int, str],
    refinement: Refinement,
    model_scores: Callable[[Sequence[Passage]], list[float]],
    weigh_source: Callable[[str], float],
    steps: list[str],
) -> Refined:
    if refinement.composite is None and refinement.min_score is None and refinement.mmr is None:
        return refined
    now, fell_back, best_refused = refined.passages, False, None
    from rse_cli.core.ranking import keep_by_score, order_by_mmr, order_passages, score_composite

    if refinement.composite is not None and now:
        sources = [weigh_source(paths[one.document]) for one in now]
        bases = [one.score for one in now]
        now = order_passages(score_composite(now, model_scores(now), bases, sources, refinement.composite), paths)
        steps.append("composite")
    if refinement.min_score is not None:
        kept, fell_back = keep_by_score(now, refinement.min_score, refinement.fallback)
        best_refused = None if kept else max((one.score for one in now), default=None)
        now = kept
        steps.append("min_score")
    if refinement.mmr is not None:
        now = order_by_mmr(now, _read_texts(now, chunks), refinement.mmr)
        steps.append("mmr")
    return Refined(now, (), fell_back, best_refused)


def fit_passages(
    passages: Sequence[Passage], max_chars: int | None, chunks: Mapping[tuple[int, int], Chunk]
) -> tuple[Passage, ...]:
    """Keep passages in order up to a ceiling, the last one cut at it."""
    return tuple(passages) if max_chars is None else cut_passages(passages, max_chars, chunks)


def _read_texts(passages: Sequence[Passage], chunks: Mapping[tuple[int, int], Chunk]) -> list[str]:
    texts = []
    for one in passages:
        parts = [chunks[one.document, ord_] for ord_ in range(one.start_chunk, one.end_chunk)]
        whole = "".join(part.text for part in parts)
        texts.append(whole[one.start_char - parts[0].start_char : one.end_char - parts[0].start_char])
    return texts
