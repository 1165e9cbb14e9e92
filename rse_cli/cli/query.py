"""``rse query``: answer from the index."""

from __future__ import annotations

from typing import Annotated

import typer

from rse_cli.cli.timing_flag import Timings


def _show_methods(wanted: bool) -> None:
    if wanted:
        from rse_cli.cli.render import render_methods

        typer.echo(render_methods(), nl=False)
        raise typer.Exit


def query(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="Queries; several are answered together; - reads stdin."),
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR|URL", help="The index; default: RSE_STORE, else the nearest .rse/ above.")
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
    method: Annotated[
        str | None, typer.Option("--method", "-m", metavar="NAME", help="How to choose (rse); see --list-methods.")
    ] = None,
    list_methods: Annotated[  # noqa: ARG001
        bool,
        typer.Option("--list-methods", help="Print the methods and exit.", callback=_show_methods, is_eager=True),
    ] = False,
    retriever: Annotated[
        str | None, typer.Option(metavar="NAME", help="What finds hits: dense, lexical or hybrid (default).")
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
    rerank: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Score candidates again with this cross-encoder.")
    ] = None,
    expand_short: Annotated[bool, typer.Option("--expand-short", help="Grow segments below 350 characters.")] = False,
    complete_faq: Annotated[bool, typer.Option("--complete-faq", help="Complete questions by their answers.")] = False,
    dedupe: Annotated[bool, typer.Option("--dedupe", help="Drop segments that repeat a better one.")] = False,
    composite: Annotated[
        bool, typer.Option("--composite", help="Score by confidence or reranker, method and source together.")
    ] = False,
    min_score: Annotated[float | None, typer.Option(metavar="X", help="Drop segments below this score.")] = None,
    no_fallback: Annotated[bool, typer.Option("--no-fallback", help="Never lower --min-score.")] = False,
    mmr: Annotated[
        float | None,
        typer.Option(metavar="X", help="Order by score (1) against variety (0)."),
    ] = None,
    returns: Annotated[
        str,
        typer.Option("--return", metavar="KIND", help="text, page-images, or dynamic: text or images."),
    ] = "text",
    images: Annotated[str | None, typer.Option(metavar="DIR", help="Where pictures of pages go.")] = None,
    batch: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Answer a file of queries (lines or JSONL, - for stdin) as JSONL."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print JSON on one line for each query of a batch.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines as path:line: text.")] = False,
    files_only: Annotated[bool, typer.Option("--files-only", "-l", help="Print paths alone, best first.")] = False,
    null: Annotated[bool, typer.Option("--null", "-0", help="End paths of -l with NUL.")] = False,
    format: Annotated[
        str | None, typer.Option(metavar="NAME", help="text, json, jsonl, plain, files or context (for a prompt).")
    ] = None,
    no_header: Annotated[bool, typer.Option("--no-header", help="Leave out where each segment lies.")] = False,
    max_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Most tokens of --format context.")] = 12_000,
    answer: Annotated[bool, typer.Option("--answer", help="Let a language model answer (OPENAI_BASE_URL).")] = False,
    llm: Annotated[str | None, typer.Option(metavar="MODEL", help="The language model of --answer.")] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Bring the index up to date first.")] = False,
    timings: Timings = False,  # noqa: ARG001
) -> int:
    """Find the passages that answer: runs of adjacent chunks, best first.

    Exit code 0: something found; 1: nothing; 2: an error.
    """
    from rse_cli.cli.printing import Output, choose_format
    from rse_cli.cli.querying import QueryFlags, run_query
    from rse_cli.cli.requesting import Refining

    switches = {"json": json, "jsonl": jsonl, "plain": plain, "files": files_only}
    flags = QueryFlags(
        texts=tuple(texts or ()),
        batch=batch,
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
        store=store,
        refresh=refresh,
        refining=Refining(
            expand_short, complete_faq, dedupe, composite, min_score, no_fallback=no_fallback, mmr=mmr, rerank=rerank
        ),
        output=Output(choose_format(format, switches, batch is not None), null, not no_header, max_tokens),
        returns=returns,
        images=images,
        answer=answer,
        llm=llm,
    )
    return run_query(flags)
