"""How far a tuning is, on stderr where that is a terminal: a bar with the best so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rse_cli.core.tuning_log import Log


@contextmanager
def watch_cases(total: int) -> Iterator[Callable[[], None]]:
    """Give what is called after each case: it moves a bar on stderr where that is a terminal."""
    with _open_bar("cases", total) as bar:
        yield lambda: bar(1, "")


@contextmanager
def watch_search(total: int) -> Iterator[Callable[[Log], None]]:
    """Give what is called after each batch: the bar shows the best so far, on all cases."""
    import numpy as np

    seen, best = 0, -np.inf

    with _open_bar("trials", total) as bar:

        def watch(log: Log) -> None:
            nonlocal seen, best
            new = range(seen, len(log.trials))
            seen = len(log.trials)
            if log.objective is None:
                bar(len(new), "")
                return
            scores = log.score(new, log.objective, np.ones(len(log.targets), np.bool_))
            best = max(best, float(scores.max()))
            bar(len(new), f"best {log.objective.maximise} {best:.4f}" if best >= 0 else "limits not met yet")

        yield watch


@contextmanager
def _open_bar(name: str, total: int) -> Iterator[Callable[[int, str], None]]:
    import sys

    from rse_cli.cli.output import has_colour, is_terminal

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
