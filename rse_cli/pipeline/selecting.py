"""Candidates to passages: what a method is given, what it returns, and the method `rse`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rse_cli.core.models import Passage
from rse_cli.core.params import RseParams
from rse_cli.core.selection import Selection, select_segments
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.retrieval import Retrieval
from rse_cli.pipeline.scoring import Rerank, Scored
from rse_cli.ports import KEY_BITS, Snapshot

if TYPE_CHECKING:
    from rse_cli.core.dsrag import DsragSelection


@dataclass(frozen=True, slots=True)
class Material:
    """All that a method may choose from.

    Parameters
    ----------
    snapshot : Snapshot
        For whole documents and texts.
    retrieval : Retrieval
        The candidates.
    scored : tuple of Scored
        Per query.
    answered : tuple of int
        The queries that are confident enough to be answered.
    retriever : str
        What ranks hits: ``dense``, ``lexical`` or ``hybrid``.
    fill : bool
        Whether `rse` uses the ceiling up.
    rerank : callable or None
        A reranker.
    """

    snapshot: Snapshot
    retrieval: Retrieval
    scored: tuple[Scored, ...]
    answered: tuple[int, ...]
    retriever: str = "hybrid"
    fill: bool = False
    rerank: Rerank | None = None


@dataclass(frozen=True, slots=True)
class Picked:
    """What a method chose.

    Parameters
    ----------
    passages : tuple of Passage
        In the method's order.
    used : mapping of str to object
        Parameters that differ from those asked for, such as a penalty raised to fit the ceiling.
    trace : Selection, DsragSelection or None
        What the method weighed, for inspection.
    """

    passages: tuple[Passage, ...]
    used: Mapping[str, Any]
    trace: Selection | DsragSelection | None = None


def select_rse(material: Material, params: RseParams) -> Picked:
    """Choose segments by relevance, exactly, within the ceiling."""
    retrieval = material.retrieval
    if not material.answered or not len(retrieval.keys):
        return Picked((), {"fill": material.fill})
    chars = retrieval.candidates[0].chars
    relevances = [material.scored[at].relevance for at in material.answered]
    selection = select_segments(relevances, chars, retrieval.starts, params, material.fill)
    numbers, ords = retrieval.keys >> KEY_BITS, (retrieval.keys & ((1 << KEY_BITS) - 1)) - 1
    passages = tuple(
        Passage(
            document=int(numbers[one.start]),
            start_chunk=int(ords[one.start]),
            end_chunk=int(ords[one.end - 1]) + 1,
            start_char=int(retrieval.start_chars[one.start]),
            end_char=int(retrieval.start_chars[one.end - 1]) + one.last_chars,
            score=one.score,
            queries=tuple(material.answered[at] for at in one.queries),
        )
        for one in selection.choices
    )
    found = selection.penalties
    penalty = found[0] if len(found) == 1 else list(found)
    used = {"irrelevant_chunk_penalty": penalty, "segment_cost": selection.segment_cost, "fill": material.fill}
    return Picked(passages, used, selection)


def find_selector(method: str) -> Callable[[Material, Any], Picked]:
    """Return what chooses passages for a method; others than `rse` are imported when they are asked for."""
    if method == "rse":
        return select_rse
    if method == "hierarchical":
        return lambda material, _: select_rse(material, RseParams())
    from rse_cli.pipeline.named_methods import NAMED_SELECTORS

    return NAMED_SELECTORS[method]
