"""The right to write to an object store: a lease, which is an object there, in place of a lock on a file.

Whoever makes the object holds the lease, puts it again every few seconds, and marks it as free in the end. Every put
asks that the object be as this process last saw it, so that of two processes at once one succeeds.

The clocks of two machines differ, so nobody compares an hour of another's: a lease is over once somebody has seen it
unchanged for as long as it lasts, by their own clock.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Any, Protocol

from rse_cli.adapters.store_lock import PATIENT_SECONDS
from rse_cli.dataclass import dataclass
from rse_cli.errors import StoreError

LEASE_NAME = "lease.json"

LEASE_SECONDS = 20.0
"""How long the others wait for a writer that is not heard of: four renewals may fail, as while a network is away."""

RENEW_SECONDS = 5.0

POLL_SECONDS = 0.5
"""How often a waiting writer looks: a request each."""

STALE_SECONDS = 300.0
"""An object that was last put so long ago, by the store's clock and ours, needs no watching: clocks that keep time at
all differ less."""


class ChangedObjectError(Exception):
    """A put was refused, since the object is not as it was said to be."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it was read: its content, the tag by which a put names this state of it, and its age in seconds."""

    content: bytes
    tag: Any
    age: float


class Objects(Protocol):
    """What a lease needs of an object store."""

    def get(self, name: str) -> Stored | None:
        """Return an object, None where there is none."""
        ...

    def put(self, name: str, content: bytes, replaced: Any) -> Any:
        """Put an object in place of the one with the tag `replaced`, where None stands for none; return its tag.

        Raises
        ------
        ChangedObjectError
            If another one is there, or none; nothing is changed then.
        """
        ...


@dataclass(slots=True)
class Lease:
    """The lease of one store, as one process sees it.

    Parameters
    ----------
    objects : Objects
        The store.
    store : str
        How messages name it.
    clock, sleep : callable
        The time in seconds, and waiting for some.
    """

    objects: Objects
    store: str
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _count: int = 0
    _tag: Any = None
    _lost_to: str | None = None
    _one_at_a_time: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def hold(self, timeout: float, announce: Callable[[str], None] = lambda _: None) -> Iterator[bool]:
        """Hold the lease, renewed by a thread; yields whether it was taken from a writer that is not heard of.

        Parameters
        ----------
        timeout : float
            Seconds to wait for another writer.
        announce : callable
            Told once, in a line, which process is waited for.

        Raises
        ------
        StoreError
            If another process still holds it after `timeout`, which is named; or if the store does not keep what a
            put asks for, so that nobody can hold anything.
        """
        was_left = self.acquire(timeout, announce)
        done = threading.Event()
        try:
            self.test_store()
            renewal = threading.Thread(target=self._keep_renewing, args=[done], daemon=True)
            renewal.start()
            try:
                yield was_left
            finally:
                done.set()
                renewal.join()
        finally:
            # Where this can't be said, the others wait for the lease to be over.
            with suppress(ChangedObjectError, StoreError):
                self._put(is_free=True)

    def acquire(self, timeout: float, announce: Callable[[str], None] = lambda _: None) -> bool:
        """Wait for the lease; see `hold`."""
        began = self.clock()
        seen, seen_since, announced = None, began, False
        while True:
            stored = self.objects.get(LEASE_NAME)
            now = self.clock()
            if stored is None or stored.tag != seen:
                seen, seen_since = stored and stored.tag, now
            known = _read_lease(stored)
            is_free = stored is None or known["holder"] is None
            is_over = stored is not None and (now - seen_since >= known["seconds"] or stored.age >= STALE_SECONDS)
            if is_free or is_over:
                self._tag = seen
                with suppress(ChangedObjectError):
                    self._put()
                    return not is_free
                continue
            waited = now - began
            if waited >= timeout:
                raise StoreError(f"the store {self.store} is being written by {known['holder']}: try again later")
            if waited >= PATIENT_SECONDS and not announced:
                announce(f"waiting for {known['holder']}, which is writing to the store {self.store}")
                announced = True
            self.sleep(POLL_SECONDS)

    def test_store(self) -> None:
        """See that puts are refused which have to be.

        Raises
        ------
        StoreError
            If one is not.
        """
        self._expect_refusal("If-None-Match", None)
        outdated = self._tag
        self.confirm()
        self._expect_refusal("If-Match", outdated)

    def _expect_refusal(self, header: str, tag: Any) -> None:
        """Put what must not be put; all that could be written over is our own lease."""
        with suppress(ChangedObjectError):
            self._tag = self.objects.put(LEASE_NAME, self._describe(), tag)
            raise StoreError(
                f"{self.store} is not safe to write to: its server ignores {header}, so that two writers would lose "
                "each other's rows without a word; use one with conditional writes"
            )

    def confirm(self) -> None:
        """Renew the lease, which fails if another process has taken it.

        Raises
        ------
        StoreError
            If it has.
        """
        with self._one_at_a_time:
            if self._lost_to is None:
                try:
                    self._put()
                except ChangedObjectError:
                    self._lost_to = _read_lease(self.objects.get(LEASE_NAME))["holder"] or "another process"
            if self._lost_to is not None:
                raise StoreError(
                    f"{self._lost_to} has taken over the store {self.store}, as this process was not heard of for "
                    f"{LEASE_SECONDS:.0f} seconds; what was finished before is kept: run the command again"
                )

    def _keep_renewing(self, done: threading.Event) -> None:
        while not done.wait(RENEW_SECONDS):
            # Lost, or the store can't be reached: whoever wants to write next is told.
            with suppress(StoreError):
                self.confirm()

    def _put(self, *, is_free: bool = False) -> None:
        """Put the lease as it is now in place of the one last seen."""
        with self._one_at_a_time:
            content = self._describe(is_free=is_free)
            try:
                self._tag = self.objects.put(LEASE_NAME, content, self._tag)
            except ChangedObjectError:
                # A put that arrived, whose answer did not, is tried again and refused for what it has done itself.
                stored = self.objects.get(LEASE_NAME)
                if stored is None or stored.content != content:
                    raise
                self._tag = stored.tag

    def _describe(self, *, is_free: bool = False) -> bytes:
        """Return a content that was never put before: many stores make tags from contents."""
        self._count += 1
        holder = None if is_free else f"process {os.getpid()} on {socket.gethostname()}"
        lease = {"holder": holder, "seconds": LEASE_SECONDS, "token": self._token, "count": self._count}
        return json.dumps(lease).encode()


def _read_lease(stored: Stored | None) -> dict[str, Any]:
    """Return what a lease says; one that can't be read is somebody's whom nobody knows."""
    unknown = {"holder": "another process", "seconds": LEASE_SECONDS}
    try:
        data = json.loads(stored.content) if stored else {}
        return unknown | {"holder": data["holder"], "seconds": float(data["seconds"])}
    except (ValueError, KeyError, TypeError):
        return unknown
