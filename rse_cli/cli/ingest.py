"""``rse ingest``: bring the index in line with the files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rse_cli.cli.timing_flag import Timings


def ingest(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]...", help="Files and folders; default: the current folder.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR|URL", help="The index; default: RSE_STORE, else the nearest .rse/ above.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Only files that match; repeatable.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Leave these out; repeatable.")] = None,
    hidden: Annotated[bool | None, typer.Option("--hidden", help="Also names that begin with a dot.")] = None,
    no_ignore: Annotated[bool | None, typer.Option("--no-ignore", help="Don't read .gitignore and .rseignore.")] = None,
    max_size: Annotated[str | None, typer.Option(metavar="SIZE", help="Leave out larger files (50MB).")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME|DIR", help="Model of a new index, by name or folder (all-MiniLM-L6-v2).")
    ] = None,
    chunk_chars: Annotated[int | None, typer.Option(metavar="N", help="Longest chunk of a new index (300).")] = None,
    headers: Annotated[
        str | None, typer.Option(metavar="KIND", help="Weight of headings in a new index: normal, strong or none.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes that encode (cores).")
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="What reads and encodes: local, or ray for the cluster at RAY_ADDRESS.")
    ] = "local",
    read_timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Give up a file that takes longer to read (20).")
    ] = None,
    read_memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Give up a file that needs more memory to read (1GB).")
    ] = None,
    lock_timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Wait so long for another ingest to end (60).")
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Drop the index and make it anew.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Read again the files that are damaged in it.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 2 if a file can't be read.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only say what would be done.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name every file on stderr.")] = False,
    timings: Timings = False,  # noqa: ARG001
) -> int:
    """Index files and folders, or bring the index up to date: unchanged files cost next to nothing."""
    from rse_cli.cli.engines import check_engine
    from rse_cli.cli.ingesting import IngestFlags, run_ingest
    from rse_cli.cli.repairing import run_repair
    from rse_cli.cli.summary import report_ingest

    check_engine(engine)
    flags = IngestFlags(
        choice={
            "include": include,
            "exclude": exclude,
            "hidden": hidden,
            "no_ignore": no_ignore,
            "max_size": max_size,
            "model": model,
            "chunk_chars": chunk_chars,
            "headers": headers,
            "read_timeout": read_timeout,
            "read_memory": read_memory,
            "lock_timeout": lock_timeout,
        },
        store=store,
        rebuild=rebuild,
        jobs=jobs,
        engine=engine,
        dry_run=dry_run,
        progress=not quiet,
        verbose=verbose,
    )
    result = run_repair(paths or [], flags) if repair else run_ingest(paths or [], flags)
    report_ingest(result, as_json=json, quiet=quiet, verbose=verbose, strict=strict)
    return 2 if strict and result.failed else 0
