"""Retrieved spans against expected spans, over characters.

Everything counts characters of the union, so that a passage returned twice gains nothing and a boundary one word off
costs one word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from rse_cli.core.chunking import Span
from rse_cli.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DocumentSpan:
    """Characters ``[start_char, end_char)`` of a document, expected or retrieved.

    Raises
    ------
    ValueError
        If the span is negative or ends before it starts.
    """

    path: str
    start_char: int
    end_char: int

    def __post_init__(self) -> None:
        if not 0 <= self.start_char <= self.end_char:
            raise ValueError(f"not a span: [{self.start_char}, {self.end_char}) of {self.path}")


@dataclass(frozen=True, slots=True)
class Score:
    """How well one answer, or the average of several, meets what was expected.

    Parameters
    ----------
    recall : float
        Share of the expected characters that were retrieved, in [0, 1] like all shares below.
    precision : float
        Share of the retrieved characters that were expected.
    iou : float
        Characters in both, divided by characters in either.
    hit : float
        Whether anything expected was retrieved.
    document_recall : float
        Share of the expected documents of which anything was retrieved.
    reciprocal_rank : float
        One divided by the 1-based rank of the first passage that holds anything expected.
    chars : float
        Characters retrieved.
    n_spans : float
        Stretches of text retrieved; passages that touch or overlap make one.
    empty : float
        Whether nothing was retrieved.
    """

    recall: float
    precision: float
    iou: float
    hit: float
    document_recall: float
    reciprocal_rank: float
    chars: float
    n_spans: float
    empty: float


def union_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the same characters as sorted spans that neither overlap nor touch; empty spans vanish.

    Examples
    --------
    >>> union_spans([(5, 7), (0, 2), (2, 4), (6, 6), (6, 9)])
    [(0, 4), (5, 9)]
    """
    united: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(united[-1][1], end))
        else:
            united.append((start, end))
    return united


def measure_overlap(one: Sequence[Span], other: Sequence[Span]) -> int:
    """Return how many characters lie in both of two unions from `union_spans`.

    Examples
    --------
    >>> measure_overlap([(0, 4), (8, 12)], [(2, 9)])
    3
    """
    total = at = 0
    for start, end in one:
        while at < len(other) and other[at][1] <= start:
            at += 1
        ahead = at
        while ahead < len(other) and other[ahead][0] < end:
            total += min(end, other[ahead][1]) - max(start, other[ahead][0])
            ahead += 1
    return total


def score_spans(expected: Sequence[DocumentSpan], retrieved: Sequence[DocumentSpan]) -> Score:
    """Score one answer.

    ``recall = |E ∩ R| / |E|``, ``precision = |E ∩ R| / |R|`` and ``IoU = |E ∩ R| / |E ∪ R|`` over the sets E and R of
    characters. An answer without characters scores 0 everywhere.

    Parameters
    ----------
    expected : sequence of DocumentSpan
        At least one character. A case that expects nothing has no recall: it is met when the answer is empty.
    retrieved : sequence of DocumentSpan
        Best first.

    Raises
    ------
    ValueError
        If `expected` holds no character.

    Examples
    --------
    >>> score = score_spans([DocumentSpan("a", 0, 10)], [DocumentSpan("b", 0, 5), DocumentSpan("a", 5, 20)])
    >>> score.recall, score.precision, score.iou, score.reciprocal_rank, score.chars
    (0.5, 0.25, 0.2, 0.5, 20.0)
    """
    wanted, found = _unite_by_path(expected), _unite_by_path(retrieved)
    n_wanted, n_found = _count_chars(wanted), _count_chars(found)
    if not n_wanted:
        raise ValueError("nothing is expected, so there is no recall")
    n_both = sum(measure_overlap(spans, found.get(path, [])) for path, spans in wanted.items())
    return Score(
        recall=n_both / n_wanted,
        precision=n_both / n_found if n_found else 0.0,
        iou=n_both / (n_wanted + n_found - n_both),
        hit=float(n_both > 0),
        document_recall=len(wanted.keys() & found.keys()) / len(wanted),
        reciprocal_rank=_reciprocate_rank(wanted, retrieved),
        chars=float(n_found),
        n_spans=float(sum(map(len, found.values()))),
        empty=float(not n_found),
    )


def average_scores(scores: Sequence[Score]) -> Score:
    """Return the mean of every number over cases.

    Raises
    ------
    ValueError
        If there are no scores.

    Examples
    --------
    >>> full = score_spans([DocumentSpan("a", 0, 4)], [DocumentSpan("a", 0, 4)])
    >>> none = score_spans([DocumentSpan("a", 0, 4)], [])
    >>> average_scores([full, none]).recall
    0.5
    """
    if not scores:
        raise ValueError("no scores to average")
    return Score(
        **{field.name: sum(getattr(one, field.name) for one in scores) / len(scores) for field in fields(Score)}
    )


def _unite_by_path(passages: Sequence[DocumentSpan]) -> dict[str, list[Span]]:
    """Return the union of spans of each document that has any characters."""
    spans: dict[str, list[Span]] = {}
    for one in passages:
        spans.setdefault(one.path, []).append((one.start_char, one.end_char))
    united = {path: union_spans(found) for path, found in spans.items()}
    return {path: found for path, found in united.items() if found}


def _count_chars(spans: dict[str, list[Span]]) -> int:
    return sum(end - start for found in spans.values() for start, end in found)


def _reciprocate_rank(wanted: dict[str, list[Span]], retrieved: Sequence[DocumentSpan]) -> float:
    for rank, one in enumerate(retrieved, start=1):
        if measure_overlap([(one.start_char, one.end_char)], wanted.get(one.path, [])):
            return 1 / rank
    return 0.0
