"""``rse status``: what the index holds, and whether it is up to date."""

from __future__ import annotations

from typing import Annotated

import typer

from rse_cli.cli.timing_flag import Timings


def status(
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="The index; default: RSE_STORE, else the nearest .rse/ above.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if the index is out of date.")] = False,
    timings: Timings = False,  # noqa: ARG001
) -> int:
    """Show files, chunks, model, size, failures, and what has changed since the index was made."""
    from rse_cli.cli.summary import measure_status, report_status

    found = measure_status(store)
    report_status(found, as_json=json)
    return 1 if exit_code and found.staleness.count else 0
