"""One call to the store beside another: they leave the interpreter to others while they work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def start_beside(task: Callable[[], Result]) -> Callable[[], Result]:
    """Start a task in a thread of its own and return what waits for its result, or raises what it raised.

    Examples
    --------
    >>> wait = start_beside(lambda: 1 + 1)
    >>> wait()
    2
    """
    results: list[Result] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            results.append(task())
        except BaseException as fault:
            faults.append(fault)

    # A command that is interrupted doesn't wait for it.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait() -> Result:
        thread.join()
        if faults:
            raise faults[0]
        return results[0]

    return wait


def run_now(task: Callable[[], Result]) -> Callable[[], Result]:
    """Do the same without a thread, where the task takes no longer than to start one.

    Examples
    --------
    >>> run_now(lambda: 1 + 1)()
    2
    """
    result = task()
    return lambda: result
