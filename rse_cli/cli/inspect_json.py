"""The document of ``rse inspect --json``: that of ``rse query``, with every number that the picture is drawn from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from rse_cli.cli.inspecting import Inspected, InspectFlags
from rse_cli.cli.printing import Shown, describe_answer_json
from rse_cli.pipeline.comparison import Contender, Standing, compare_answers
from rse_cli.pipeline.inspect import DocumentView, Inspection, inspect_answer
from rse_cli.pipeline.query import CALIBRATED
from rse_cli.pipeline.weighing import find_penalties


def describe_inspection(inspected: Inspected, flags: InspectFlags) -> dict[str, Any]:
    """Return the document: fields are added, never renamed.

    ``documents`` holds one array for each number, a place a chunk in ``chunks``; null where a chunk has none. Values
    are rounded as scores are, so that they add up.
    """
    inspection = inspect_answer(inspected.snapshot, inspected.answer, flags.drawing.documents)
    weighed, answer = inspection.weighed, inspected.answer
    document = _describe_answer(inspected, inspected.contenders[0]) | {
        "score_is": "sum of values less cost" if weighed.adds_up else "best value",
        "cost": weighed.cost,
        "words": [list(found.terms) for found in answer.trace.retrieval.words],
        "documents": [_describe_view(inspection, view) for view in inspection.documents],
        "not_chosen": [asdict(one) | {"score": round(one.score, 9)} for one in inspection.not_chosen],
    }
    if answer.request.method in CALIBRATED:
        document["penalties"] = [{"asked": asked, "used": used} for asked, used in find_penalties(answer)]
    if flags.compare or inspected.case is not None:
        expected = inspected.case.spans if inspected.case is not None else ()
        standings = compare_answers(inspected.contenders, expected)
        document["compare"] = [
            _describe_answer(inspected, one) | _describe_standing(standing)
            for one, standing in zip(inspected.contenders, standings, strict=True)
        ]
        if inspected.case is not None:
            document["case"] = inspected.case.case.id
            document["expected"] = [asdict(one) for one in expected]
    if flags.chunk is not None:
        from rse_cli.cli.drawing import explain_named_chunk

        document["explanation"] = explain_named_chunk(inspected, flags.chunk)
    return document


def _describe_answer(inspected: Inspected, one: Contender) -> dict[str, Any]:
    return describe_answer_json(Shown(inspected.asked, one.answer, one.method, one.preset, inspected.model))


def _describe_standing(standing: Standing) -> dict[str, Any]:
    found: dict[str, Any] = {
        "chars": standing.chars,
        "documents": standing.n_documents,
        "in_common": round(standing.in_common, 6),
    }
    if standing.score is not None:
        found |= {name: round(getattr(standing.score, name), 6) for name in ("recall", "precision", "iou")}
    return found


def _describe_view(inspection: Inspection, view: DocumentView) -> dict[str, Any]:
    known = np.flatnonzero((view.rows >= 0) | ~np.isnan(view.levels))
    n_queries = len(view.numbers)
    return {
        "path": view.path,
        "title": view.title,
        "n_chunks": view.n_chunks,
        "segments": [mark.place for mark in view.marks],
        "rests": [round(mark.rest, 9) for mark in view.marks],
        "chunks": known.tolist(),
        "values": _list_numbers(view.values[known], 9),
        "levels": _list_numbers(view.levels[known], 9),
        "queries": view.owners[known].tolist(),
        "numbers": [
            {name: _list_numbers(column[known], 9) for name, column in numbers.items()} for numbers in view.numbers
        ],
        "terms": [
            [list(inspection.match_terms(view, chunk, query)) for chunk in known.tolist()] for query in range(n_queries)
        ],
    }


def _list_numbers(values: Iterable[float], digits: int) -> list[float | None]:
    return [None if math.isnan(value) else round(float(value), digits) for value in values]
