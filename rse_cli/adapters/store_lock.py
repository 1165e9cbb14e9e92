"""The store's lock: one process writes at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rse_cli.errors import ClosedStoreError, StoreError

LOCK_NAME = "lock"

LOCK_SECONDS = 60.0
"""How long a writer waits for another: enough for a small ingest to end, not for somebody to think that all hangs."""

PATIENT_SECONDS = 1.0
"""How long a writer waits without a word: most of what a user would read would be over before it was read."""

POLL_SECONDS = 0.1
"""How often a waiting writer tries again: short beside an ingest, long beside a system call."""


@contextmanager
def lock_store(store: Path, timeout: float, announce: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Hold the store at `store` for writing; the system releases the lock when the process ends, however it ends.

    Parameters
    ----------
    store : Path
        An existing folder.
    timeout : float
        Seconds to wait for another writer.
    announce : callable
        Told once, in a line, which process is waited for.

    Raises
    ------
    StoreError
        If the lock file can't be opened (`ClosedStoreError` where writing is not allowed), or another process still
        holds it after `timeout`; names that process.
    """
    try:
        # Python makes descriptors that started programs don't inherit, so no worker keeps the lock alive.
        descriptor = os.open(store / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        kind = ClosedStoreError if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) else StoreError
        raise kind(f"can't write the store {store}: {error.strerror or error}") from error
    try:
        _wait_for_lock(descriptor, store, timeout, announce)
        # For a message of others only: a full disk is no reason to stop here.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, store: Path, timeout: float, announce: Callable[[str], None]) -> None:
    began = time.monotonic()
    announced = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = time.monotonic() - began
            if waited >= timeout:
                holder = _name_holder(descriptor)
                raise StoreError(f"the store {store} is being written by {holder}: try again later") from None
            if waited >= PATIENT_SECONDS and not announced:
                announce(f"waiting for {_name_holder(descriptor)}, which is writing to the store {store}")
                announced = True
            time.sleep(POLL_SECONDS)
        except OSError as error:
            raise StoreError(f"can't lock the store {store}: {error.strerror or error}") from error
        else:
            return


def _name_holder(descriptor: int) -> str:
    """Return who holds the lock, as that process wrote it down."""
    return f"process {os.pread(descriptor, 20, 0).decode('ascii', 'replace').strip() or 'unknown'}"
