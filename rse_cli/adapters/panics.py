"""What lance prints by itself when damaged data stops one of its threads goes nowhere."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class _Silence:
    """Whether stderr goes nowhere: for all threads alike, from the first that asks to the last that ends."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.kept = -1

    def begin(self) -> None:
        with self.lock:
            self.depth += 1
            if self.depth > 1:
                return
            with suppress(OSError):  # stderr may be closed
                self.kept = os.dup(2)
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 2)
                os.close(nowhere)

    def end(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0 and self.kept >= 0:
                os.dup2(self.kept, 2)
                os.close(self.kept)
                self.kept = -1


_silence = _Silence()


@contextmanager
def hide_panics() -> Iterator[None]:
    """Send to nowhere what lance's own threads print when damaged data stops them; the failure itself is raised."""
    _silence.begin()
    try:
        yield
    finally:
        _silence.end()
