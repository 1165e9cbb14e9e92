"""``rse tune``: parameters chosen by cases instead of taste."""

from __future__ import annotations

from typing import Annotated

import typer

from rse_cli.cli.timing_flag import Timings


def tune(
    cases: Annotated[
        str | None, typer.Argument(metavar="[CASES]", help="A file of cases, YAML or JSON lines.", show_default=False)
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR|URL", help="The index; default: RSE_STORE, else the nearest .rse/ above.")
    ] = None,
    from_headings: Annotated[
        bool, typer.Option("--from-headings", help="Tune on cases made from the headings of the index.")
    ] = False,
    maximise: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC", help="recall (default), precision, iou, f1, f2, hit …; two draw their front."),
    ] = None,
    minimise: Annotated[
        list[str] | None, typer.Option(metavar="METRIC", help="chars or spans, beside one --maximise: their front.")
    ] = None,
    at_most: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=X", help="Keep the mean at most X: chars=2000; repeatable.")
    ] = None,
    at_least: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=X", help="Keep the mean at least X: hit=0.9; repeatable.")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", "-m", metavar="NAME", help="Try this method; repeatable; default: the current one alone."
        ),
    ] = None,
    preset: Annotated[str | None, typer.Option(metavar="NAME", help="Where the current setting starts from.")] = None,
    max_chars: Annotated[int | None, typer.Option(metavar="N", help="At most so many characters an answer.")] = None,
    fill: Annotated[bool | None, typer.Option("--fill", help="Answers use that up, as in query.")] = None,
    set: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Set a parameter of the current method; repeatable.")
    ] = None,
    trials: Annotated[int, typer.Option(metavar="N", min=16, help="About how many sets of parameters to try.")] = 2_000,
    time: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="Stop the search after that long.")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Parts that are held out in turn; default: 5.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed gives the same result.")] = 0,
    write: Annotated[
        bool, typer.Option("--write", help="Put a setting that is recommended into the project's rse.toml.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    timings: Timings = False,  # noqa: ARG001
) -> int:
    """Search for parameters that answer a file of cases better, and say what they are worth on cases held out.

    Each case is retrieved once; what is tried after that needs no index. A setting is recommended only if its gain on
    held-out cases over the current one, which query uses now, is above the noise. Where recall, hit or document_recall
    is maximised without any limit, answers may get no longer than now, on average (chars ≤ N in the report). Cases that
    expect nothing count in silent and passed alone: --at-least silent=1 keeps them so. Exit code 0, recommended or not;
    2: an error; 130: interrupted, with the best so far printed.
    """
    from rse_cli.cli.tuning_run import TuneFlags, run_tune

    flags = TuneFlags(
        cases=cases,
        store=store,
        from_headings=from_headings,
        maximise=tuple(maximise or ()),
        minimise=tuple(minimise or ()),
        at_most=tuple(at_most or ()),
        at_least=tuple(at_least or ()),
        methods=tuple(method or ()),
        settings={"preset": preset, "max_chars": max_chars, "fill": fill, "set": set},
        trials=trials,
        time=time,
        folds=folds,
        seed=seed,
        write=write,
        as_json=json,
    )
    return run_tune(flags)
