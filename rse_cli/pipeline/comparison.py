"""Answers of several methods to the same queries, measured against the first, and against what was expected."""

from __future__ import annotations

from collections.abc import Sequence

from rse_cli.core.chunking import Span
from rse_cli.core.metrics import DocumentSpan, Score, measure_overlap, score_spans, union_spans
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.query import Answer


@dataclass(frozen=True, slots=True)
class Contender:
    """An answer with the name of the method and preset that it comes from."""

    method: str
    preset: str | None
    answer: Answer

    @property
    def label(self) -> str:
        """Method and preset as they are printed: ``rse/balanced``, ``top-k``."""
        return self.method if self.preset is None else f"{self.method}/{self.preset}"


@dataclass(frozen=True, slots=True)
class Standing:
    """How an answer stands beside the first.

    Parameters
    ----------
    label : str
        Method and preset.
    n_segments, chars, n_documents : int
        What was returned; characters of the union.
    in_common : float
        Characters that it and the first answer both hold, as a share of those that either holds; 1 if both are empty.
    score : Score or None
        Against what was expected, where something was.
    """

    label: str
    n_segments: int
    chars: int
    n_documents: int
    in_common: float
    score: Score | None


def compare_answers(contenders: Sequence[Contender], expected: Sequence[DocumentSpan]) -> list[Standing]:
    """Return how each answer stands; the first is what the others are compared with.

    Parameters
    ----------
    contenders : sequence of Contender
        At least one.
    expected : sequence of DocumentSpan
        Empty where nothing is known.
    """
    united = [unite_spans(list_spans(one.answer)) for one in contenders]
    return [
        Standing(
            one.label,
            len(one.answer.segments),
            _count(spans),
            len(spans),
            _share(united[0], spans),
            score_spans(expected, list_spans(one.answer)) if expected else None,
        )
        for one, spans in zip(contenders, united, strict=True)
    ]


def list_spans(answer: Answer) -> list[DocumentSpan]:
    """Return the characters of an answer, best first."""
    return [DocumentSpan(one.path, one.start_char, one.end_char) for one in answer.segments]


def unite_spans(spans: Sequence[DocumentSpan]) -> dict[str, list[Span]]:
    """Return the union of spans by document."""
    found: dict[str, list[Span]] = {}
    for one in spans:
        found.setdefault(one.path, []).append((one.start_char, one.end_char))
    return {path: union_spans(held) for path, held in found.items()}


def _count(spans: dict[str, list[Span]]) -> int:
    return sum(end - start for held in spans.values() for start, end in held)


def _share(one: dict[str, list[Span]], other: dict[str, list[Span]]) -> float:
    both = sum(measure_overlap(spans, other.get(path, [])) for path, spans in one.items())
    either = _count(one) + _count(other) - both
    return both / either if either else 1.0
