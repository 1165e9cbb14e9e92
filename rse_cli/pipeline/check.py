"""Cases against an index: each is answered, measured and forgotten, so that thousands fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from rse_cli.core.cases import Case, ResolvedCase
from rse_cli.core.gates import measure_case
from rse_cli.core.metrics import DocumentSpan, score_spans
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.batch import answer_each, encode_groups
from rse_cli.pipeline.delivery import Segment
from rse_cli.pipeline.query import Answer, Request
from rse_cli.pipeline.retrieval import Query
from rse_cli.ports import Encoder, Snapshot


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What a case found.

    Parameters
    ----------
    case : Case
        Which.
    expected : tuple of DocumentSpan
        What should be found.
    segments : tuple of Segment
        What was, best first, without texts.
    nearest_miss : Segment or None
        The best segment where nothing was found, without its text.
    confidence : float
        Of the answer, in [0, 1].
    truncated : bool
        Whether the model cut a query.
    measures : mapping of str to float
        Metrics by name, see `rse_cli.core.gates`.
    """

    case: Case
    expected: tuple[DocumentSpan, ...]
    segments: tuple[Segment, ...]
    nearest_miss: Segment | None
    confidence: float
    truncated: bool
    measures: Mapping[str, float]


def encode_cases(cases: Sequence[Case], encoder: Encoder, english_only: bool, jobs: int = 1) -> list[tuple[Query, ...]]:
    """Return the queries of each case, all encoded together.

    Parameters
    ----------
    cases : sequence of Case
        Whose queries.
    encoder : Encoder
        The model of the index.
    english_only : bool
        See `encode_queries`.
    jobs : int
        Threads.
    """
    return encode_groups([case.queries for case in cases], encoder, english_only, jobs)


def check_cases(
    snapshot: Snapshot,
    cases: Sequence[ResolvedCase],
    queries: Sequence[tuple[Query, ...]],
    make_request: Callable[[tuple[Query, ...]], Request],
    jobs: int = 1,
) -> Iterator[CaseResult]:
    """Yield what each case found, in order; of an answer only places and measures are kept.

    Parameters
    ----------
    snapshot : Snapshot
        One version of the index.
    cases : sequence of ResolvedCase
        What should be found.
    queries : sequence of tuple of Query
        Per case, from `encode_cases`.
    make_request : callable
        Queries to a request.
    jobs : int
        Threads.
    """
    requests = [make_request(asked) for asked in queries]
    yield from answer_each(snapshot, requests, lambda at, answer: _measure_answer(cases[at], answer), jobs)


def _measure_answer(resolved: ResolvedCase, answer: Answer) -> CaseResult:
    found = [DocumentSpan(one.path, one.start_char, one.end_char) for one in answer.segments]
    score = score_spans(resolved.spans, found) if resolved.spans else None
    return CaseResult(
        case=resolved.case,
        expected=resolved.spans,
        segments=tuple(map(_drop_text, answer.segments)),
        nearest_miss=None if answer.nearest_miss is None else _drop_text(answer.nearest_miss),
        confidence=answer.confidence,
        truncated=any(query.truncated for query in answer.request.queries),
        measures=measure_case(score, len(found)),
    )


def _drop_text(segment: Segment) -> Segment:
    return replace(segment, text="", summary="", header="")
