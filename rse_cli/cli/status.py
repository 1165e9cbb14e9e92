"""``rse status``: what the index holds, and whether it is up to date."""

from __future__ import annotations

from typing import Annotated

import typer

from rse_cli.cli.timing_flag import Timings


def status(
    store: Annotated[
        str | None, typer.Option(metavar="DIR|URL", help="The index; default: RSE_STORE, else the nearest .rse/ above.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name the files without text, with the reason.")
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if the index is out of date.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every row and say which files are damaged; then exit with 1.")
    ] = False,
    timings: Timings = False,  # noqa: ARG001
) -> int:
    """Show files, chunks, model, size, failures, and what has changed since the index was made."""
    if verify:
        from rse_cli.cli.verifying import verify_index
        from rse_cli.errors import UsageError

        if exit_code:
            raise UsageError("--verify and --exit-code look at different things: give one of them")
        return verify_index(store, as_json=json)
    from rse_cli.cli.summary import measure_status, report_status

    found = measure_status(store)
    report_status(found, as_json=json, verbose=verbose)
    return 1 if exit_code and found.staleness.count else 0
