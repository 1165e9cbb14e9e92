"""``rse inspect``: see why these segments, chunk by chunk."""

from __future__ import annotations

from typing import Annotated

import typer

from rse_cli.cli.timing_flag import Timings


def inspect(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY...", help="Queries; several are answered together; - reads stdin."),
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR|URL", help="The index; default: RSE_STORE, else the nearest .rse/ above.")
    ] = None,
    method: Annotated[str | None, typer.Option("--method", "-m", metavar="NAME", help="How to choose (rse).")] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="precision, balanced (default) or find_all.")
    ] = None,
    set: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Set a parameter of the method; repeatable.")
    ] = None,
    max_chars: Annotated[int | None, typer.Option(metavar="N", help="At most so many characters.")] = None,
    fill: Annotated[bool | None, typer.Option("--fill", help="Use the ceiling up with the next best.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", metavar="N", help="At most so many segments.")] = None,
    min_confidence: Annotated[
        float | None, typer.Option(metavar="X", help="Below this, nothing is found (0 to 1; 0 turns it off).")
    ] = None,
    retriever: Annotated[
        str | None, typer.Option(metavar="NAME", help="What finds hits: dense, lexical or hybrid (default).")
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Only documents that match; repeatable.")
    ] = None,
    type: Annotated[
        list[str] | None, typer.Option("--type", "-t", metavar="EXT", help="Only files with this ending; repeatable.")
    ] = None,
    documents: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Draw so many documents, also those without a segment.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Draw every chunk: fold nothing.")] = False,
    around: Annotated[int, typer.Option(metavar="N", min=0, help="Rows of context around what matters (2).")] = 2,
    explain: Annotated[bool, typer.Option("--explain", help="Add the numbers that values are made of.")] = False,
    chunk: Annotated[
        str | None, typer.Option(metavar="PATH#N", help="Explain one chunk in full sentences, with the arithmetic.")
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(metavar="METHOD[:PRESET]", help="Set another method beside it; repeatable."),
    ] = None,
    cases: Annotated[str | None, typer.Option(metavar="FILE", help="With --id: a case, for query and spans.")] = None,
    id: Annotated[str | None, typer.Option("--id", metavar="ID", help="The case of --cases.")] = None,
    document: Annotated[
        str | None, typer.Option(metavar="PATH", help="List the chunks of a document instead of asking.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="With --document: print its text as indexed.")] = False,
    pages: Annotated[
        bool, typer.Option("--pages", help="With --document: say which page is text, picture or empty.")
    ] = False,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Write the picture as SVG too.")] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write the picture as HTML too.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document with all numbers.")] = False,
    timings: Timings = False,  # noqa: ARG001
) -> int:
    """See why these segments: every chunk's value as a bar, and what was chosen, and why the rest was not.

    Exit code 0: something found; 1: nothing; 2: an error.
    """
    from rse_cli.cli.inspecting import Drawing, InspectFlags, run_inspect

    flags = InspectFlags(
        texts=tuple(texts or ()),
        store=store,
        settings={
            "preset": preset,
            "max_chars": max_chars,
            "fill": fill,
            "limit": limit,
            "min_confidence": min_confidence,
            "method": method,
            "retriever": retriever,
            "path": path,
            "type": type,
            "set": set,
        },
        drawing=Drawing(documents, all, around, explain),
        chunk=chunk,
        compare=tuple(compare or ()),
        cases=cases,
        case_id=id,
        document=document,
        text=text,
        pages=pages,
        svg=svg,
        html=html,
        as_json=json,
    )
    return run_inspect(flags)
