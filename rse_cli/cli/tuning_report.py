"""What a tuning for one metric found, as text or JSON: figures, parameters and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rse_cli.cli.output import dump_json, make_visible_line, name_count, say, write_bytes, write_result
from rse_cli.core.gates import COUNTS, SILENT, Gate
from rse_cli.core.tuning_log import Log, Trial
from rse_cli.pipeline.tune import Tuned
from rse_cli.pipeline.tuning_verdict import Estimate, Figure

if TYPE_CHECKING:
    from rse_cli.cli.tuning_run import Tuning

SCHEMA_VERSION = 1

FOUND_IN_HEADINGS = (
    "The cases were made from headings: they ask in the words of the documents, which people seldom do. Take a gain "
    "here as a gain on such questions, and check it on a few that were really asked."
)


def report_tuned(found: Tuned, tuning: Tuning, written: str | None, *, as_json: bool) -> None:
    """Print the result of a search for one metric."""
    if as_json:
        write_bytes(dump_json(_describe_tuned(found, tuning, written)))
        return
    lines = [
        f"{found.n_cases:,} cases, {_describe_folds(found)}; {found.n_trials:,} settings tried",
        _describe_goal(found, tuning),
        *_list_methods(found.given, tuning),
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
        lines += _mention_silence(found)
    if tuning.generated:
        lines += ["", FOUND_IN_HEADINGS]
    write_result("\n".join(lines) + "\n")


def _describe_folds(found: Tuned) -> str:
    held = "documents" if found.by_document else "cases"
    return f"{found.n_folds} parts held out in turn, split by {held}"


def _list_methods(given: Trial, tuning: Tuning) -> list[str]:
    """Return a line where methods other than the current one are tried."""
    if list(tuning.methods) == [given.method]:
        return []
    return [f"methods tried: {', '.join(tuning.methods)}; current: {given.method}"]


def _describe_goal(found: Tuned, tuning: Tuning) -> str:
    """Return what is maximised with its limits, and where a limit comes from that nobody gave."""
    origin = "" if found.objective.limits == tuning.goals.limits else " (as now, for want of a limit)"
    return f"maximise {found.objective.maximise}{_describe_limits(found.objective.limits)}{origin}"


def _mention_silence(found: Tuned) -> list[str]:
    """Return a line where cases that expect nothing begin to find something, unless a limit speaks of them."""
    [silent] = [one for one in found.figures if one.metric == SILENT] or [None]
    if silent is None or SILENT in found.objective.metrics or silent.gain.mean >= 0:
        return []
    now, held_out = (format_mean(SILENT, one.mean) for one in (silent.current, silent.held_out))
    return [
        f"Mind: of the cases that expect nothing, {held_out} % find nothing, held out; now it is {now} %. "
        f"--at-least silent={math.floor(1_000 * silent.current.mean) / 1_000:g} makes that a limit."
    ]


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
    mean, low, high = (format_mean(metric, value, signed=signed) for value in (one.mean, one.low, one.high))
    return f"{mean} [{low}, {high}]"


def format_mean(metric: str, value: float, *, signed: bool = False) -> str:
    """Return a share in percent, a count as it is."""
    sign = "+z" if signed else "z"
    if metric == "chars":
        return f"{value:{sign},.0f}"
    return f"{value:{sign}.2f}" if metric in COUNTS else f"{100 * value:{sign}.1f}"


def _render_params(found: Tuned) -> list[str]:
    """Return the parameters that change, and the method if it does."""
    lines = [f"method  {found.given.method} → {found.best.method}"] if found.given.method != found.best.method else []
    before = found.given.params.to_dict() if found.given.method == found.best.method else {}
    changes = [(name, before.get(name), value) for name, value in found.best.params.to_dict().items()]
    changes = [one for one in changes if one[1] != one[2]]
    width = max((len(name) for name, _, _ in changes), default=0)
    for name, old, new in changes:
        change = show_parameter(new) if old is None else f"{show_parameter(old)} → {show_parameter(new)}"
        lines.append(f"{name:<{width}}  {change}")
    return lines


def show_parameter(value: object) -> str:
    """Return the value of a parameter, numbers with six digits."""
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _describe_tuned(found: Tuned, tuning: Tuning, written: str | None) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "maximise": [found.objective.maximise],
        "limits": [
            {"bound": one.bound, "metric": one.metric, "limit": one.limit, "given": one in tuning.goals.limits}
            for one in found.objective.limits
        ],
        "methods": list(tuning.methods),
        "cases": found.n_cases,
        "generated": tuning.generated,
        "trials": found.n_trials,
        "seed": tuning.asked.seed,
        "folds": found.n_folds,
        "by_document": found.by_document,
        "given": describe_trial(found.given),
        "current": describe_trial(found.current),
        "best": describe_trial(found.best),
        "by_fold": [describe_trial(one) for one in found.by_fold],
        "figures": {figure.metric: _describe_figure(figure) for figure in found.figures},
        "recommended": not found.refused,
        "reason": found.refused or None,
        "written": written,
    }


def describe_trial(trial: Trial) -> dict[str, Any]:
    """Return a method with its parameters for the JSON document."""
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
            "best": describe_trial(trial),
            "means": means,
        }
        write_bytes(dump_json(document))
        return
    figures = ", ".join(f"{name} {format_mean(name, value)}" for name, value in means.items())
    lines = [f"Interrupted after {name_count(len(log.trials), 'setting')}. Best so far, not held out: {figures}"]
    lines += [f"method = {trial.method}"]
    lines += [f"{name} = {show_parameter(value)}" for name, value in trial.params.to_dict().items()]
    write_result("\n".join([*lines, "Nothing was written."]) + "\n")
