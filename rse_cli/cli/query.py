"""``rse query``: answer from the index."""

from __future__ import annotations

from typing import Annotated

import typer


def query(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="Queries; several are answered together; - reads stdin."),
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="The index; default: RSE_STORE, else the nearest .rse/ above.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="precision, balanced (default) or find_all.")
    ] = None,
    max_chars: Annotated[int | None, typer.Option(metavar="N", help="At most so many characters.")] = None,
    fill: Annotated[bool | None, typer.Option("--fill", help="Use the ceiling up with the next best.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", metavar="N", help="At most so many segments.")] = None,
    min_confidence: Annotated[
        float | None, typer.Option(metavar="X", help="Below this, nothing is found (0 to 1; 0 turns it off).")
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Only documents that match; repeatable.")
    ] = None,
    type: Annotated[
        list[str] | None, typer.Option("--type", "-t", metavar="EXT", help="Only files with this ending; repeatable.")
    ] = None,
    set: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Set a parameter of the method; repeatable.")
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Answer a file of queries (lines or JSONL, - for stdin) as JSONL."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print JSON on one line for each query of a batch.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines as path:line: text.")] = False,
    files_only: Annotated[bool, typer.Option("--files-only", "-l", help="Print paths alone, best first.")] = False,
    null: Annotated[bool, typer.Option("--null", "-0", help="End paths of -l with NUL.")] = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="Bring the index up to date first.")] = False,
) -> int:
    """Find the passages that answer: runs of adjacent chunks, best first.

    Exit code 0: something found; 1: nothing; 2: an error.
    """
    from rse_cli.cli.querying import Output, QueryFlags, run_query

    flags = QueryFlags(
        texts=tuple(texts or ()),
        batch=batch,
        settings={
            "preset": preset,
            "max_chars": max_chars,
            "fill": fill,
            "limit": limit,
            "min_confidence": min_confidence,
            "path": path,
            "type": type,
            "set": set,
        },
        store=store,
        refresh=refresh,
        output=Output(json=json, jsonl=jsonl, plain=plain, files_only=files_only, null=null),
    )
    return run_query(flags)
