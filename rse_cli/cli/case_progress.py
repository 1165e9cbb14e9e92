"""How far a file of cases is, on stderr where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rse_cli.cli.output import has_colour, is_terminal


@contextmanager
def watch_cases(total: int) -> Iterator[Callable[[], None]]:
    """Give what is called after each case: it moves a bar on stderr where that is a terminal."""
    with open_bar("cases", total) as advance:
        yield lambda: advance(1, "")


@contextmanager
def open_bar(name: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Give what moves a bar on by a count and says something beside it."""
    if not is_terminal(sys.stderr):
        yield lambda _count, _text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr, no_color=not has_colour(sys.stderr))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[best]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=total, best="")
        yield lambda count, text: progress.update(task, advance=count, best=text)
