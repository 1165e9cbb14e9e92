"""What a tuning for two metrics found, as text or JSON: the Pareto front as a table and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rse_cli.cli.output import dump_json, write_bytes, write_result
from rse_cli.cli.tuning_report import FOUND_IN_HEADINGS, SCHEMA_VERSION, describe_trial, format_mean, show_parameter
from rse_cli.pipeline.tuning_front import Front, FrontPoint

if TYPE_CHECKING:
    from rse_cli.cli.tuning_run import Tuning


def report_front(front: Front, tuning: Tuning, *, as_json: bool) -> None:
    """Print the Pareto front of two metrics, as a table and a plot."""
    names = [goal.metric for goal in front.goals]
    if as_json:
        document = {
            "schema_version": SCHEMA_VERSION,
            "maximise": [goal.metric for goal in front.goals if goal.bound == "min"],
            "minimise": [goal.metric for goal in front.goals if goal.bound == "max"],
            "cases": front.n_cases,
            "held_out": front.n_held_out,
            "generated": tuning.generated,
            "trials": front.n_trials,
            "seed": tuning.asked.seed,
            "by_document": front.by_document,
            "current": _describe_point(front.current, names),
            "front": [_describe_point(one, names) for one in front.points],
        }
        write_bytes(dump_json(document))
        return
    from rse_cli.cli.scatter import choose_marks, draw_front

    by = "documents" if front.by_document else "cases"
    lines = [
        f"{front.n_cases - front.n_held_out:,} cases to choose by, {front.n_held_out:,} held out, split by {by}; "
        f"{front.n_trials:,} settings tried",
        "means over cases, shares in percent:",
        "",
        *_render_front(front, names),
        "",
        *draw_front([one.training for one in front.points], front.current.training, names, choose_marks()),
        "",
        "Choose a point by a limit: "
        f"rse tune --maximise {names[0]} --at-{'most' if front.goals[1].bound == 'max' else 'least'} {names[1]}=…",
    ]
    if tuning.generated:
        lines += ["", FOUND_IN_HEADINGS]
    write_result("\n".join(lines) + "\n")


def _describe_point(point: FrontPoint, names: Sequence[str]) -> dict[str, Any]:
    return describe_trial(point.trial) | {
        "training": dict(zip(names, point.training, strict=True)),
        "held_out": dict(zip(names, point.held_out, strict=True)),
    }


SHOWN_POINTS = 12
"""Rows of the table; a longer front is thinned evenly."""


def _render_front(front: Front, names: Sequence[str]) -> list[str]:
    points = list(front.points)
    if len(points) > SHOWN_POINTS:
        points = [points[round(at * (len(points) - 1) / (SHOWN_POINTS - 1))] for at in range(SHOWN_POINTS)]
    head = ("", *(f"{name}, {where}" for where in ("chosen by", "held out") for name in names))
    rows = [
        (
            label,
            *(
                format_mean(name, value)
                for pair in (one.training, one.held_out)
                for name, value in zip(names, pair, strict=True)
            ),
        )
        for label, one in [*((str(at), one) for at, one in enumerate(points, start=1)), ("current", front.current)]
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    table = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    tried = [one.trial.params.to_dict() for one in (*points, front.current)]
    details = [
        " ".join(
            [
                f"{at}: {one.trial.method}",
                *(
                    f"{name}={show_parameter(value)}"
                    for name, value in one.trial.params.to_dict().items()
                    if any(other.get(name) != value for other in tried)
                ),
            ]
        )
        for at, one in enumerate(points, start=1)
    ]
    return [*table, "", *details]
