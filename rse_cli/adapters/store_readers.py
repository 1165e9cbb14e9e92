"""Who reads: a lock that readers share, so that a writer drops old versions at once when there are none.

Readers never wait for a writer's work: the lock is held against them only while old versions are dropped.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rse_cli.ports import StorePlace

READERS_NAME = "readers"

ENTRY_SECONDS = 5.0
"""How long a reader waits for versions to be dropped: 10 ms as a rule."""

POLL_SECONDS = 0.002


def enter_as_reader(store: StorePlace) -> int | None:
    """Note that this process reads the store, until the descriptor that is returned is closed.

    Parameters
    ----------
    store : Path or Bucket
        An existing folder, or an object store.

    Returns
    -------
    int or None
        None where the file can be neither opened nor made, as in a read-only store, which nobody cleans; where
        dropping takes too long; or in an object store, where old versions go by their age alone.
    """
    if not isinstance(store, Path):
        return None
    try:
        descriptor = os.open(store / READERS_NAME, os.O_RDONLY | os.O_CREAT, 0o666)
    except OSError:
        return None
    deadline = time.monotonic() + ENTRY_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if not isinstance(error, BlockingIOError) or time.monotonic() > deadline:
                os.close(descriptor)
                return None
            time.sleep(POLL_SECONDS)
        else:
            return descriptor


def leave_as_reader(entry: int | None) -> None:
    """Close what `enter_as_reader` returned."""
    if entry is not None:
        os.close(entry)


@contextmanager
def exclude_readers(store: StorePlace) -> Iterator[bool]:
    """Keep readers out, and tell whether there are none; they can enter again afterwards.

    The caller holds the store's lock.
    """
    if not isinstance(store, Path):
        yield False
        return
    try:
        descriptor = os.open(store / READERS_NAME, os.O_RDONLY | os.O_CREAT, 0o666)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
