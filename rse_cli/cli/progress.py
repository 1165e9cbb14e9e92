"""The progress of an ingest on stderr: a bar on a terminal, a line a file with ``--verbose``, else nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rse_cli.cli.output import is_terminal, make_visible_line, say
from rse_cli.cli.progress_bars import draw_bars, draw_counts
from rse_cli.pipeline.ingest import Watcher
from rse_cli.pipeline.planning import Plan


@contextmanager
def watch_maintenance(*, show: bool) -> Iterator[None]:
    """Show on a terminal that the search indexes are being built, and for how long: minutes at a million chunks."""
    if not show or not is_terminal(sys.stderr):
        yield
        return
    from rich.progress import TimeElapsedColumn

    with draw_bars(TimeElapsedColumn()) as progress:
        progress.add_task("search indexes", total=None)
        yield


@contextmanager
def watch_ingest(plan: Plan, *, show: bool, verbose: bool) -> Iterator[Watcher]:
    """Give the callbacks that show how far an ingest is.

    Parameters
    ----------
    plan : Plan
        What will be done.
    show : bool
        Whether a bar may be drawn; it is only where stderr is a terminal.
    verbose : bool
        Whether to name every file.
    """

    def name_file(path: str) -> None:
        if verbose:
            say(make_visible_line(path))

    if not show or not is_terminal(sys.stderr) or plan.is_empty:
        yield Watcher(file_done=name_file)
        return
    with draw_counts() as progress:
        files = progress.add_task("files ", total=len(plan.new) + len(plan.suspects), note="")
        chunks = progress.add_task("chunks", total=0, note="")

        def finish_file(path: str) -> None:
            name_file(path)
            progress.advance(files)

        def find_chunks(count: int) -> None:
            progress.update(chunks, total=(progress.tasks[chunks].total or 0) + count)

        def finish_chunks(count: int) -> None:
            progress.advance(chunks, count)
            speed = progress.tasks[chunks].speed
            progress.update(chunks, note=f"{speed:,.0f}/s" if speed else "")

        yield Watcher(finish_file, find_chunks, finish_chunks)
