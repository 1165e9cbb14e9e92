"""One task beside another, in threads: calls to the store and waiting for processes leave the interpreter to others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Protocol, TypeVar

Result = TypeVar("Result")

JOIN_SECONDS = 0.5
"""How long to wait for a task that was given up. A process that it waits for is gone by then; what it does itself is
left alone, and ends with the command."""


class Start(Protocol):
    """Starts a task and returns what waits for its result, or raises what it raised."""

    def __call__(self, task: Callable[[], Result]) -> Callable[[], Result]:
        """Start `task`."""
        ...


def start_beside(task: Callable[[], Result]) -> Callable[[], Result]:
    """Start a task in a thread of its own; see `Start`.

    Examples
    --------
    >>> wait = start_beside(lambda: 1 + 1)
    >>> wait()
    2
    """
    return _start_thread(task)[1]


def _start_thread(task: Callable[[], Result]) -> tuple[threading.Thread, Callable[[], Result]]:
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

    return thread, wait


def run_now(task: Callable[[], Result]) -> Callable[[], Result]:
    """Do the same without a thread, where the task takes no longer than to start one.

    Examples
    --------
    >>> run_now(lambda: 1 + 1)()
    2
    """
    result = task()
    return lambda: result


def defer(task: Callable[[], Result]) -> Callable[[], Result]:
    """Do it when it is waited for, beside nothing; see `Start`.

    Examples
    --------
    >>> defer(lambda: 1 + 1)()
    2
    """
    return task


@contextmanager
def lend_threads() -> Iterator[Start]:
    """Lend a `Start` whose tasks have ended at the end, if what they wait for has.

    Examples
    --------
    >>> with lend_threads() as start:
    ...     start(lambda: 1 + 1)()
    2
    """
    threads: list[threading.Thread] = []

    def start(task: Callable[[], Result]) -> Callable[[], Result]:
        threads[:] = [thread for thread in threads if thread.is_alive()]
        thread, wait = _start_thread(task)
        threads.append(thread)
        return wait

    try:
        yield start
    finally:
        for thread in threads:
            thread.join(JOIN_SECONDS)


def make_ahead(items: Iterator[Result], start: Start) -> Iterator[Result]:
    """Yield `items`, each of which is made while the one before it is in use.

    Examples
    --------
    >>> list(make_ahead(iter([1, 2, 3]), start_beside))
    [1, 2, 3]
    """

    def take() -> list[Result]:
        return list(islice(items, 1))

    taken = start(take)()
    while taken:
        wait = start(take)
        yield taken[0]
        taken = wait()
