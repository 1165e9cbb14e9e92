"""How far a search is, on stderr where that is a terminal: a bar with the best so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rse_cli.cli.case_progress import open_bar
from rse_cli.core.tuning_log import Log


@contextmanager
def watch_search(total: int) -> Iterator[Callable[[Log], None]]:
    """Give what is called after each batch: the bar shows the best so far, on all cases."""
    import numpy as np

    seen, best = 0, -np.inf

    with open_bar("trials", total) as bar:

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
