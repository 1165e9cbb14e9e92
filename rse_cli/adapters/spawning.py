"""Worker processes: spawned with a pipe, deaf to interrupts, and gone as soon as the process that started them is."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rse_cli.adapters.held_signals import hold_signals

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess


def start_worker(serve: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, Connection]:
    """Start a process that runs ``serve(connection, *arguments)``, and return it with our end of the pipe.

    It is spawned, not forked: a fork would inherit the locks of lance's threads, and the store's lock with them.

    Parameters
    ----------
    serve : callable
        A function of a module; it should call `detach_worker` first.
    *arguments
        What can be pickled.

    Raises
    ------
    OSError
        If the system has no room for another process.
    """
    from multiprocessing import get_context

    # Without it a worker would import what lies in the current folder: code of whoever wrote the folder.
    os.environ["PYTHONSAFEPATH"] = "1"
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, *arguments), daemon=True)
    with _hold_interrupts():
        process.start()
    theirs.close()
    return process, ours


def start_workers(count: int, serve: Callable[..., None], *arguments: Any) -> list[tuple[BaseProcess, Connection]]:
    """Start so many processes, or as many as the system has room for; see `start_worker`."""
    workers: list[tuple[BaseProcess, Connection]] = []
    try:
        for _ in range(count):
            workers.append(start_worker(serve, *arguments))
    except OSError:
        pass
    except BaseException:
        for worker in workers:
            end_worker(*worker)
        raise
    return workers


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Start the worker with interrupts blocked: one that came before `detach_worker` would print a traceback.

    Blocking is for the worker, which inherits it. Here Python would raise in the midst of what a worker must be told to
    start, so that it would print one too: what comes is raised afterwards.
    """
    from multiprocessing import resource_tracker

    with hold_signals():
        # Starting it unblocks SIGINT, so it has to run before the first worker is started.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def detach_worker() -> None:
    """Leave interrupts to the parent, and let the system end this process when the parent ends, however it ends.

    A worker that waits sees its pipe close, but one that is busy in a C library runs no Python. So the kernel is asked
    for a signal, deadly by default, when the parent's end of the pipe that multiprocessing started it with closes.
    """
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As the parent had it for `start_worker`.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = parent_process()
    if parent is not None and hasattr(signal, "SIGIO"):
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, fcntl.fcntl(parent.sentinel, fcntl.F_GETFL) | os.O_ASYNC)


def end_worker(process: BaseProcess, connection: Connection) -> None:
    """End a worker at once, whatever it does: it holds nothing that would need to be finished."""
    connection.close()
    process.kill()
    process.join()
    process.close()
