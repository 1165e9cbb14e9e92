"""``rse check``: do the cases still find what they should?"""

from __future__ import annotations

from typing import Annotated

import typer

from rse_cli.cli.timing_flag import Timings


def check(
    cases: Annotated[
        str | None, typer.Argument(metavar="[CASES]", help="A file of cases, YAML or JSON lines.", show_default=False)
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR|URL", help="The index; default: RSE_STORE, else the nearest .rse/ above.")
    ] = None,
    min: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=X", help="The mean must be at least X: recall=0.9, hit=1; repeatable."),
    ] = None,
    max: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=X", help="The mean must be at most X: chars=4000; repeatable.")
    ] = None,
    each: Annotated[bool | None, typer.Option("--each", help="Hold every case to the limits, not the mean.")] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Compare with the --json of a former check.")
    ] = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=X", help="The mean may drop by X below the baseline: recall=0.02; repeatable."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="precision, balanced (default) or find_all.")
    ] = None,
    max_chars: Annotated[int | None, typer.Option(metavar="N", help="At most so many characters an answer.")] = None,
    fill: Annotated[bool | None, typer.Option("--fill", help="Use the ceiling up with the next best.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", metavar="N", help="At most so many segments.")] = None,
    min_confidence: Annotated[
        float | None, typer.Option(metavar="X", help="Below this, nothing is found (0 to 1; 0 turns it off).")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", "-m", metavar="NAME", help="How to choose (rse); see query --list-methods."),
    ] = None,
    retriever: Annotated[
        str | None, typer.Option(metavar="NAME", help="What finds hits: dense, lexical or hybrid (default).")
    ] = None,
    set: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Set a parameter of the method; repeatable.")
    ] = None,
    rerank: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Score candidates again with this cross-encoder.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    junit: Annotated[str | None, typer.Option(metavar="FILE", help="Write JUnit XML, one testcase a case.")] = None,
    github: Annotated[
        bool, typer.Option("--github", help="Annotate the cases that fail, and write a step summary.")
    ] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Write a first file of cases (cases.yaml): headings that find their section.")
    ] = False,
    timings: Timings = False,  # noqa: ARG001
) -> int:
    """Answer a file of cases, print the worst first, and say whether the limits hold.

    Metrics: recall, precision, iou, hit, document_recall, mrr, chars, spans and empty over the cases that expect
    something; silent over those that expect nothing; passed over all. No limit holds beyond those given, with --each
    neither; without any, every case must pass.
    Exit code 0: the limits hold; 1: one doesn't; 2: it could not be tried, such as for a fault in the file.
    """
    from rse_cli.cli.checking import CheckFlags, run_check, run_init

    flags = CheckFlags(
        cases=cases,
        store=store,
        settings={
            "min": min,
            "max": max,
            "each": each,
            "preset": preset,
            "max_chars": max_chars,
            "fill": fill,
            "limit": limit,
            "min_confidence": min_confidence,
            "method": method,
            "retriever": retriever,
            "set": set,
        },
        baseline=baseline,
        max_drop=tuple(max_drop or ()),
        rerank=rerank,
        as_json=json,
        junit=junit,
        github=github,
    )
    return run_init(flags) if init else run_check(flags)
