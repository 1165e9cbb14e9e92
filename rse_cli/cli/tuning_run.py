"""What ``rse tune`` does: read cases, retrieve each once, search, report, and write what is recommended."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from rse_cli.adapters.held_signals import hold_signals
from rse_cli.cli.case_files import encode_expected, mention_doubts, read_expected, say_faults
from rse_cli.cli.case_progress import watch_cases
from rse_cli.cli.filtering import read_filters
from rse_cli.cli.limits import check_limits
from rse_cli.cli.output import make_visible_line, say
from rse_cli.cli.requesting import Plan, Refining, collect_overrides, plan_requests
from rse_cli.cli.tuning_goals import Goals, read_goals
from rse_cli.cli.tuning_progress import watch_search
from rse_cli.cli.wiring import Index, open_index, read_settings
from rse_cli.config import PROJECT_FILE, Settings
from rse_cli.core.cases import CaseFault, ResolvedCase
from rse_cli.core.methods import METHODS, MethodParams, choose_method_params
from rse_cli.core.tuning import draw_points
from rse_cli.core.tuning_log import Trial
from rse_cli.core.tuning_objective import Objective
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError
from rse_cli.pipeline.evidence_cache import Cache, CacheBuilder
from rse_cli.pipeline.expectations import find_expected
from rse_cli.pipeline.tune import Asked, Tuned, open_log, tune_cases
from rse_cli.pipeline.tuning_front import Front, trace_front
from rse_cli.ports import Snapshot

LEAST_CASES = 10
"""Below this an interval means nothing, and five folds hold two cases each."""

MOST_JOBS = 2
"""Threads: NumPy works outside of the interpreter's lock for about two thirds of the time, so a third gains little."""

FOLDS = 5
"""Four fifths of the cases choose: ten folds take twice as long and hold hardly more."""

EXIT_ERROR, EXIT_INTERRUPTED = 2, 130


@dataclass(frozen=True, slots=True)
class TuneFlags:
    """The command line of a tuning; see ``rse tune --help``. `settings` are flags that are settings too."""

    cases: str | None = None
    store: str | None = None
    from_headings: bool = False
    maximise: tuple[str, ...] = ()
    minimise: tuple[str, ...] = ()
    at_most: tuple[str, ...] = ()
    at_least: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    trials: int = 2_000
    time: float | None = None
    folds: int | None = None
    seed: int = 0
    write: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Tuning:
    """A search ready to run.

    Parameters
    ----------
    goals : Goals
        What is wanted.
    asked : Asked
        The same for the pipeline.
    methods : mapping of str to MethodParams
        What is tried.
    given : Trial
        The current setting.
    cache : Cache
        The cases.
    generated : bool
        Whether the cases were made up by a program.
    """

    goals: Goals
    asked: Asked
    methods: Mapping[str, MethodParams]
    given: Trial
    cache: Cache
    generated: bool


def run_tune(flags: TuneFlags) -> int:
    """Tune, report, and return the exit code: 0, or 130 if the search was interrupted.

    Raises
    ------
    RseError
        If it can't be carried out; nothing is printed on stdout then.
    """
    gc.enable()
    from rse_cli.cli.tuning_front_report import report_front
    from rse_cli.cli.tuning_report import report_interrupted, report_tuned

    goals = read_goals(flags.maximise, flags.minimise, flags.at_most, flags.at_least)
    _check_flags(flags, goals)
    index = open_index(flags.store)
    settings = read_settings(index.root, flags.settings)
    plan = plan_requests(settings, Refining())
    methods = _choose_methods(flags, settings, plan)
    _check_settings(flags, goals, index, plan, methods)
    snapshot = index.store.snapshot()
    cases, faults = _read_cases(flags, snapshot)
    if faults:
        say_faults(str(flags.cases), faults)
        return EXIT_ERROR
    _check_cases(flags, goals, cases)
    if flags.cases is not None:
        mention_doubts(index, snapshot, flags.cases)
    tuning = _prepare(flags, goals, index, plan, methods, cases)
    with hold_signals():
        # Scipy reads a table at the first point, where an interruption would be swallowed and leave half of it.
        draw_points(1, 1, flags.seed)
    with watch_search(flags.trials) as watch:
        log, exact = open_log(
            tuning.cache, tuning.asked, [goal.metric for goal in goals.metrics], watch, _limit_time(flags.time)
        )
        try:
            found: Tuned | Front
            if len(goals.metrics) == 2:
                pair = (goals.metrics[0], goals.metrics[1])
                found = trace_front(tuning.cache, tuning.methods, tuning.given, pair, tuning.asked, log)
            else:
                found = tune_cases(tuning.cache, tuning.methods, tuning.given, tuning.asked, log, exact)
        except KeyboardInterrupt:
            interrupted = True
        else:
            interrupted = False
    if interrupted:
        report_interrupted(log, as_json=flags.as_json)
        return EXIT_INTERRUPTED
    if isinstance(found, Front):
        report_front(found, tuning, as_json=flags.as_json)
        return 0
    written = _write(flags, index, tuning, found) if flags.write and not found.refused else None
    report_tuned(found, tuning, written, as_json=flags.as_json)
    return 0


def _check_flags(flags: TuneFlags, goals: Goals) -> None:
    faults = []
    if flags.cases is None and not flags.from_headings:
        faults.append("give a file of cases, or --from-headings: rse tune cases.yaml")
    if flags.cases is not None and flags.from_headings:
        faults.append("give a file of cases, or --from-headings, not both")
    if len(goals.metrics) == 2:
        if flags.write:
            faults.append("--write goes with one metric: choose a point of the front by --maximise and --at-most")
        if flags.folds is not None:
            faults.append(
                "--folds goes with one metric: a front is chosen by one half of the cases, and held out on the other"
            )
    for name in flags.methods:
        if name not in METHODS:
            choose_method_params(name, None, {})
    if faults:
        raise UsageError("; ".join(faults))


def _choose_methods(flags: TuneFlags, settings: Settings, plan: Plan) -> dict[str, MethodParams]:
    """Return the methods to try with the parameters that they have now."""
    names = flags.methods or (plan.method,)
    if "hierarchical" in names:
        raise UsageError("there is nothing to tune in the method hierarchical: it weighs as rse does by default")
    if plan.method == "hierarchical":
        raise UsageError(
            "the current method is hierarchical, with which nothing can be compared here: set another in rse.toml, or "
            "by RSE_METHOD"
        )
    return {
        name: plan.params
        if name == plan.method
        else choose_method_params(name, None, collect_overrides(settings, name))
        for name in names
    }


def _check_settings(
    flags: TuneFlags, goals: Goals, index: Index, plan: Plan, methods: Mapping[str, MethodParams]
) -> None:
    """Refuse what flags and settings together make pointless, and a file that can't be written in the end."""
    others = [name for name in methods if name != "rse"]
    if plan.settings.query["fill"] and others:
        raise UsageError(f"--fill goes with the method rse, not with {others[0]}")
    if plan.settings.query["fill"] and any(one.metric == "chars" for one in (*goals.metrics, *goals.limits)):
        raise UsageError("with --fill every answer has --max-chars characters: leave chars out")
    if flags.write:
        from rse_cli.config.editing import check_writable

        check_writable(index.root / PROJECT_FILE)


def _read_cases(flags: TuneFlags, snapshot: Snapshot) -> tuple[list[ResolvedCase], list[CaseFault]]:
    """Return the cases with what they expect, and every fault of their file."""
    if flags.cases is not None:
        return read_expected(Path(flags.cases), snapshot)
    from rse_cli.pipeline.generated_cases import generate_cases

    return find_expected(snapshot, generate_cases(snapshot, MOST_GENERATED))


def _check_cases(flags: TuneFlags, goals: Goals, cases: Sequence[ResolvedCase]) -> None:
    """Refuse too few cases, and limits on what none of them measures.

    Raises
    ------
    UsageError
        Saying which.
    """
    asking = sum(bool(one.spans) for one in cases)
    if asking < LEAST_CASES:
        source = "the headings of the index make" if flags.cases is None else f"{flags.cases} has"
        some = f"{asking} case{'s' if asking != 1 else ''} that expect{'' if asking != 1 else 's'} something"
        raise UsageError(f"{source} {some}; it takes {LEAST_CASES} to tell luck from gain")
    check_limits(goals.limits, {}, cases)


MOST_GENERATED = 500
"""Twice as many narrow an interval by a third and take twice as long."""


def _prepare(
    flags: TuneFlags,
    goals: Goals,
    index: Index,
    plan: Plan,
    methods: Mapping[str, MethodParams],
    cases: Sequence[ResolvedCase],
) -> Tuning:
    """Retrieve every case once."""
    queries = encode_expected(cases, index)
    snapshot = index.store.snapshot()
    request = plan.make_request((), read_filters(plan.settings).choose_paths(snapshot))
    measured = {plan.method: plan.params, **methods}
    builder = CacheBuilder(snapshot, request, measured, plan.settings.query["max_chars"])
    with watch_cases(len(cases)) as advance:
        cache = builder.build(cases, queries, advance)
    asked = Asked(
        objective=Objective(goals.metrics[0].metric, goals.limits),
        trials=flags.trials,
        seed=flags.seed,
        folds=FOLDS if flags.folds is None else flags.folds,
        fill=bool(plan.settings.query["fill"]),
        jobs=MOST_JOBS,
    )
    generated = all(one.case.generated for one in cases)
    return Tuning(goals, asked, methods, Trial(plan.method, plan.params), cache, generated)


def _limit_time(seconds: float | None) -> Callable[[], bool]:
    begun = time.monotonic()
    return lambda: seconds is not None and time.monotonic() - begun >= seconds


def _write(flags: TuneFlags, index: Index, tuning: Tuning, found: Tuned) -> str:
    """Put the recommended values into the project's file, and return its path."""
    from rse_cli.cli.tuning_report import describe_remarks
    from rse_cli.config.editing import write_values
    from rse_cli.pipeline.tune import make_spaces

    path = index.root / PROJECT_FILE
    [space] = [
        one for one in make_spaces(tuning.cache, tuning.methods, tuning.asked.fill) if one.method == found.best.method
    ]
    remarks = describe_remarks(found, tuning, flags.cases, _name_flags(flags))
    if found.best.method != read_settings(index.root, {}).query["method"]:
        write_values(path, "query", {"method": found.best.method})
    write_values(path, found.best.method, space.pick(found.best.params), remarks)
    if any(one.startswith("set") for one in _name_flags(flags)):
        say("rse: values of --set that were not tuned are not written")
    return make_visible_line(str(path))


def _name_flags(flags: TuneFlags) -> list[str]:
    """Return the flags that the figures hold with, and that no file keeps."""
    named = []
    for key, value in flags.settings.items():
        if value is not None and value not in ((), []):
            texts = [f"{key.replace('_', '-')} {one}" for one in (value if isinstance(value, list) else [value])]
            named += [text.removesuffix(" True") for text in texts]
    return named
