"""Why nothing was found, on one line that says what to change."""

from __future__ import annotations

from rse_cli.cli.filtering import Filters
from rse_cli.cli.output import make_visible_line
from rse_cli.cli.render import locate_segment
from rse_cli.pipeline.query import Answer, Segment
from rse_cli.ports import Snapshot

_QUOTE_CHARS = 60


def describe_miss(answer: Answer, filters: Filters, snapshot: Snapshot) -> str:
    """Return the line for an answer without segments: what held them back, and the nearest miss where there is one.

    Parameters
    ----------
    answer : Answer
        Without segments.
    filters : Filters
        That chose its documents.
    snapshot : Snapshot
        The index that it came from.
    """
    return f"nothing found{_explain(answer, filters, snapshot)}"


def _explain(answer: Answer, filters: Filters, snapshot: Snapshot) -> str:
    trace, request = answer.trace, answer.request
    miss = answer.nearest_miss
    if miss is None:
        return f": {_explain_emptiness(answer, filters, snapshot)}"
    if not trace.answered:
        advice = "--min-confidence 0 shows it"
        return f" (confidence {answer.confidence:.2f}); nearest miss: {_quote(miss)}; {advice}"
    if trace.refined.best_refused is not None:
        floor = getattr(request.refinement, "min_score", 0.0)
        return f": no segment reaches --min-score {floor:g}, the best has {trace.refined.best_refused:.3g}"
    if "minimum_value" in answer.used:
        least = answer.used["minimum_value"]
        return f": no segment of {request.method} reaches minimum_value {least:g}; --set minimum_value=… lowers it"
    if request.retriever == "lexical":
        return f": {_explain_words(request.paths is not None)}"
    return f"; nearest miss: {_quote(miss)}"


def _explain_emptiness(answer: Answer, filters: Filters, snapshot: Snapshot) -> str:
    """Say why there was no chunk to choose from."""
    paths = answer.request.paths
    if not answer.trace.retrieval.statistics.n_chunks:
        return "the index holds no text"
    if paths == ():
        return filters.explain_nothing(snapshot)
    return _explain_words(paths is not None)


def _explain_words(filtered: bool) -> str:
    return "no word of the query occurs in " + ("the files that the filters leave" if filtered else "the index")


def _quote(segment: Segment) -> str:
    words = " ".join(make_visible_line(segment.text[:200]).replace("␊", " ").split())
    quote = words if len(words) <= _QUOTE_CHARS else words[: _QUOTE_CHARS - 1].rstrip() + "…"
    return f"{locate_segment(segment)} “{quote}”"
