"""What a tuning found, as text or JSON: figures, parameters, the verdict, and the front of two metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rse_cli.cli.output import dump_json, make_visible_line, say, write_bytes, write_result
from rse_cli.core.gates import Gate
from rse_cli.core.tuning_log import Log, Trial
from rse_cli.pipeline.tune import Tuned
from rse_cli.pipeline.tuning_front import Front, FrontPoint
from rse_cli.pipeline.tuning_verdict import Estimate, Figure

if TYPE_CHECKING:
    from rse_cli.cli.tuning_run import Tuning

SCHEMA_VERSION = 1

FOUND_IN_HEADINGS = (
    "The cases were made from headings: they ask in the words of the documents, which people seldom do. Take a gain "
    "here as a gain on such questions, and check it on a few that were really asked."
)

AS_NUMBERS = ("chars", "spans")
"""Metrics that are no shares."""


def report_tuned(found: Tuned, tuning: Tuning, written: str | None, *, as_json: bool) -> None:
    """Print the result of a search for one metric."""
    if as_json:
        write_bytes(dump_json(_describe_tuned(found, tuning, written)))
        return
    lines = [
        f"{found.n_cases:,} cases, {_describe_folds(found)}; {found.n_trials:,} settings tried",
        f"maximise {found.objective.maximise}{_describe_limits(found.objective.limits)}",
        "means over cases [95 % interval], shares in percent:",
        "",
        *_render_figures(found.figures),
        "",
    ]
    if changes := _render_params(found):
        lines += [*changes, ""]
    if found.current.params != found.given.params:
        penalty = getattr(found.current.params, "irrelevant_chunk_penalty", 0.0)
        lines.insert(
            -1, f"current: as it is set, but with irrelevant_chunk_penalty {penalty:.3g} to keep to the limits"
        )
    if found.refused:
        lines.append(f"Not recommended: {found.refused}. Nothing was written.")
    else:
        lines.append(f"Recommended: its held-out gain in {found.objective.maximise} is above the noise.")
        lines.append(f"Written to {written}." if written else "Give --write to put it into rse.toml.")
    if tuning.generated:
        lines += ["", FOUND_IN_HEADINGS]
    write_result("\n".join(lines) + "\n")


def _describe_folds(found: Tuned) -> str:
    held = "documents" if found.by_document else "cases"
    return f"{found.n_folds} parts held out in turn, split by {held}"


def _describe_limits(limits: Sequence[Gate]) -> str:
    """Return limits as they are given: shares as shares."""
    return "".join(f", {gate.metric} {_sign(gate)} {gate.limit:,.6g}" for gate in limits)


def _sign(gate: Gate) -> str:
    return "≤" if gate.bound == "max" else "≥"


def _render_figures(figures: Sequence[Figure]) -> list[str]:
    """Return a table of means with 95 % intervals."""
    head = ("", "current", "tuned, as trained", "tuned, held out", "gain held out")
    rows = [
        (
            figure.metric,
            *(_format_estimate(figure.metric, one) for one in (figure.current, figure.training, figure.held_out)),
            _format_estimate(figure.metric, figure.gain, signed=True),
        )
        for figure in figures
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(widths[0]) if at == 0 else cell.rjust(widths[at]) for at, cell in enumerate(row)).rstrip()
        for row in (head, *rows)
    ]


def _format_estimate(metric: str, one: Estimate, *, signed: bool = False) -> str:
    mean, low, high = (_format(metric, value, signed=signed) for value in (one.mean, one.low, one.high))
    return f"{mean} [{low}, {high}]"


def _format(metric: str, value: float, *, signed: bool = False) -> str:
    """Return a share in percent, a count as it is."""
    sign = "+" if signed else ""
    if metric == "chars":
        return f"{value:{sign},.0f}"
    return f"{value:{sign}.2f}" if metric in AS_NUMBERS else f"{100 * value:{sign}.1f}"


def _render_params(found: Tuned) -> list[str]:
    """Return the parameters that change, and the method if it does."""
    lines = [f"method  {found.given.method} → {found.best.method}"] if found.given.method != found.best.method else []
    before = found.given.params.to_dict() if found.given.method == found.best.method else {}
    changes = [(name, before.get(name), value) for name, value in found.best.params.to_dict().items()]
    changes = [one for one in changes if one[1] != one[2]]
    width = max((len(name) for name, _, _ in changes), default=0)
    for name, old, new in changes:
        lines.append(f"{name:<{width}}  " + (f"{_show(old)} → {_show(new)}" if old is not None else _show(new)))
    return lines


def _show(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _describe_tuned(found: Tuned, tuning: Tuning, written: str | None) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "maximise": [found.objective.maximise],
        "limits": [{"bound": one.bound, "metric": one.metric, "limit": one.limit} for one in found.objective.limits],
        "cases": found.n_cases,
        "generated": tuning.generated,
        "trials": found.n_trials,
        "seed": tuning.asked.seed,
        "folds": found.n_folds,
        "by_document": found.by_document,
        "given": _describe_trial(found.given),
        "current": _describe_trial(found.current),
        "best": _describe_trial(found.best),
        "by_fold": [_describe_trial(one) for one in found.by_fold],
        "figures": {figure.metric: _describe_figure(figure) for figure in found.figures},
        "recommended": not found.refused,
        "reason": found.refused or None,
        "written": written,
    }


def _describe_trial(trial: Trial) -> dict[str, Any]:
    return {"method": trial.method, "params": trial.params.to_dict()}


def _describe_figure(figure: Figure) -> dict[str, list[float]]:
    return {
        name: [one.mean, one.low, one.high]
        for name in ("current", "training", "held_out", "gain")
        for one in [getattr(figure, name)]
    }


def describe_remarks(found: Tuned, tuning: Tuning, cases: str | None, flags: Sequence[str]) -> list[str]:
    """Return the lines of comment that go into the settings file with the values."""
    source = make_visible_line(cases) if cases else "cases made from headings"
    limits = _describe_limits(found.objective.limits)
    beside = f", with --{', --'.join(flags)}" if flags else ""
    lines = [
        f"{found.objective.maximise}{limits} on {found.n_cases:,} cases of {source}, seed {tuning.asked.seed}{beside}",
        "mean [95 % interval], shares in percent: before, held out, gain held out",
    ]
    for figure in found.figures:
        cells = [_format_estimate(figure.metric, one) for one in (figure.current, figure.held_out)]
        gain = _format_estimate(figure.metric, figure.gain, signed=True)
        lines.append(f"{figure.metric} {cells[0]}, {cells[1]}, {gain}")
    return lines


def report_interrupted(log: Log, *, as_json: bool) -> None:
    """Print the best setting so far: it was not tried on held-out cases."""
    objective = log.objective
    if objective is None or not log.trials:
        say("rse: nothing was tried yet")
        return
    everything = np.ones(len(log.targets), np.bool_)
    numbers = range(len(log.trials))
    best = log.find_best(numbers, objective, everything)
    means = {name: float(np.nanmean(rows[best])) for name, rows in log.values.items()}
    trial = log.trials[best]
    if as_json:
        document = {
            "schema_version": SCHEMA_VERSION,
            "interrupted": True,
            "maximise": [objective.maximise],
            "trials": len(log.trials),
            "best": _describe_trial(trial),
            "means": means,
        }
        write_bytes(dump_json(document))
        return
    figures = ", ".join(f"{name} {_format(name, value)}" for name, value in means.items())
    lines = [f"Interrupted after {len(log.trials):,} settings. Best so far, not held out: {figures}"]
    lines += [f"{name} = {_show(value)}" for name, value in trial.params.to_dict().items()]
    write_result("\n".join([*lines, "Nothing was written."]) + "\n")


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
    return _describe_trial(point.trial) | {
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
                _format(name, value)
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
                    f"{name}={_show(value)}"
                    for name, value in one.trial.params.to_dict().items()
                    if any(other.get(name) != value for other in tried)
                ),
            ]
        )
        for at, one in enumerate(points, start=1)
    ]
    return [*table, "", *details]
