"""Signals that wait while something must not be stopped in the middle."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hold_signals() -> Iterator[None]:
    """Keep SIGINT and SIGTERM until the end, where they are raised; in another thread than the main one do nothing.

    Blocking them would not do: another thread may take the signal, and Python raises in the main one all the same.
    """
    come: list[int] = []
    held = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    handlers = {number: signal.signal(number, lambda number, _frame: come.append(number)) for number in held}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in come:
            signal.raise_signal(number)
