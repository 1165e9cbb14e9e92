"""How far a file of cases is, on stderr where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rse_cli.cli.output import is_terminal
from rse_cli.cli.progress_bars import draw_counts


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
    with draw_counts() as progress:
        task = progress.add_task(name, total=total, note="")
        yield lambda count, text: progress.update(task, advance=count, note=text)
