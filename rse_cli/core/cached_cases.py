"""What one case needs to be answered again with other parameters, without the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.chunking import Span
from rse_cli.core.lexical import Floats
from rse_cli.core.metrics import measure_overlap, union_spans
from rse_cli.core.params import RseParams
from rse_cli.core.relevance import (
    Candidates,
    Evidence,
    balance_relevance,
    calibrate,
    combine_evidence,
    find_strongest,
    measure_confidence,
    spread_over_tables,
)
from rse_cli.core.selection import Selection, select_segments
from rse_cli.dataclass import dataclass


class Place(NamedTuple):
    """Characters ``[start_char, end_char)`` of a document, by its number."""

    document: int
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class Target:
    """The characters that a case expects, as a union per document; none where nothing should be found.

    Parameters
    ----------
    spans : mapping of int to sequence of (int, int)
        By document number, from `union_spans`.
    group : str
        Cases of one group are held out together: those that expect the same document.
    """

    spans: Mapping[int, Sequence[Span]]
    group: str = ""

    @property
    def chars(self) -> int:
        """Characters expected."""
        return sum(end - start for spans in self.spans.values() for start, end in spans)

    def overlap(self, place: Place) -> int:
        """Return how many of a place's characters are expected."""
        return measure_overlap([(place.start_char, place.end_char)], self.spans.get(place.document, ()))


class Outcome(NamedTuple):
    """One answer beside its target, all in characters but for the last three.

    `documents` counts the expected documents of which anything was retrieved; `reciprocal_rank` is that of the first
    passage that holds anything expected, 0 without one.
    """

    chars: float
    overlap: float
    n_spans: float
    documents: float
    reciprocal_rank: float


NOTHING = Outcome(0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class CachedCase:
    """The evidence of a case, rows as in the retrieval.

    Parameters
    ----------
    target : Target
        What it should find.
    evidence : tuple of Evidence
        Per query.
    lexical : tuple of bool
        Per query, whether it went without cosines.
    known_shares : tuple of float
        Per query, how much of it the index knows, for `find_strongest`.
    floors : tuple of float
        Per query, the confidence below which it is not answered.
    candidates : Candidates
        Documents, ords, characters and tables of the rows; the other columns may be empty.
    starts, start_chars : ndarray of shape (n,)
        Where each row's stretch starts, and where each chunk starts in its document.

    Of whole numbers 32 bits are kept: no document has so many chunks or characters.
    """

    target: Target
    evidence: tuple[Evidence, ...]
    lexical: tuple[bool, ...]
    known_shares: tuple[float, ...]
    floors: tuple[float, ...]
    candidates: Candidates
    starts: NDArray[np.int32]
    start_chars: NDArray[np.int32]

    @property
    def is_simple(self) -> bool:
        """Whether it has one query and any row, so that it can be solved together with others."""
        return len(self.evidence) == 1 and len(self.starts) > 0

    def find_overlaps(self) -> NDArray[np.int32]:
        """Return for each row how many of its characters are expected."""
        found = np.zeros(len(self.starts), np.int32)
        ends = self.start_chars + self.candidates.chars
        for document, spans in self.target.spans.items():
            rows = np.flatnonzero(self.candidates.documents == document)
            for start, end in spans:
                inside = np.minimum(ends[rows], end) - np.maximum(self.start_chars[rows], start)
                found[rows] += np.maximum(inside, 0)
        return found

    def overlap_start(self, row: int, chars: int) -> int:
        """Return how many of a row's first characters are expected."""
        start = int(self.start_chars[row])
        return self.target.overlap(Place(int(self.candidates.documents[row]), start, start + chars))


def answer_case(case: CachedCase, params: RseParams, fill: bool, limit: int | None = None) -> list[Place]:
    """Return what the method `rse` returns for a case with some parameters, as the pipeline does it.

    Parameters
    ----------
    case : CachedCase
        The case.
    params : RseParams
        The parameters.
    fill : bool
        As in `select_segments`.
    limit : int or None
        Most segments.
    """
    balances = (
        balance_relevance(params, share, lexical)
        for share, lexical in zip(case.known_shares, case.lexical, strict=True)
    )
    scored = [
        combine_evidence(evidence, params, balance) for evidence, balance in zip(case.evidence, balances, strict=True)
    ]
    answered = [
        z
        for z, evidence, lexical, share, floor in zip(
            scored, case.evidence, case.lexical, case.known_shares, case.floors, strict=True
        )
        if measure_confidence(find_strongest(evidence, params, share, lexical), lexical) >= floor
    ]
    if not answered or not len(case.starts):
        return []
    relevances = [spread_over_tables(calibrate(z), case.candidates, params.table_share) for z in answered]
    chars, starts = case.candidates.chars.astype(np.int64), case.starts.astype(np.int64)
    selection = select_segments(relevances, chars, starts, params, fill)
    return _locate(case, selection)[:limit]


def _locate(case: CachedCase, selection: Selection) -> list[Place]:
    return [
        Place(
            int(case.candidates.documents[one.start]),
            int(case.start_chars[one.start]),
            int(case.start_chars[one.end - 1]) + one.last_chars,
        )
        for one in selection.choices
    ]


def measure_answer(target: Target, places: Sequence[Place]) -> Outcome:
    """Return how an answer meets a target; places that overlap count once.

    Examples
    --------
    >>> measure_answer(Target({7: [(0, 10)]}), [Place(3, 0, 5), Place(7, 5, 20)])
    Outcome(chars=20, overlap=5, n_spans=2, documents=1, reciprocal_rank=0.5)
    """
    spans: dict[int, list[Span]] = {}
    for one in places:
        spans.setdefault(one.document, []).append((one.start_char, one.end_char))
    united = {document: union_spans(found) for document, found in spans.items()}
    ranks = (1 / rank for rank, one in enumerate(places, start=1) if target.overlap(one))
    return Outcome(
        chars=sum(end - start for found in united.values() for start, end in found),
        overlap=sum(measure_overlap(found, target.spans.get(document, ())) for document, found in united.items()),
        n_spans=sum(map(len, united.values())),
        documents=len(target.spans.keys() & united.keys()),
        reciprocal_rank=next(ranks, 0.0),
    )


def stack_outcomes(outcomes: Sequence[Sequence[Outcome]]) -> Floats:
    """Return outcomes as an array of shape (n_trials, n_cases, 5), columns as in `Outcome`."""
    stacked: Floats = np.array(outcomes, dtype=np.float64)
    return stacked
