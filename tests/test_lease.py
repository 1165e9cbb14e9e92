"""The lease of an object store: of many writers one holds it, by conditional puts alone and no common clock."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field

import pytest

from rse_cli.adapters.lease import LEASE_NAME, LEASE_SECONDS, STALE_SECONDS, ChangedObjectError, Lease, Stored
from rse_cli.errors import StoreError

ME = f"process {os.getpid()} on {socket.gethostname()}"


@dataclass
class FakeObjects:
    """Objects in memory, and a clock that moves when somebody sleeps."""

    ignores_none_match: bool = False
    ignores_match: bool = False
    loses_answers: bool = False
    now: float = 0.0
    held: dict[str, tuple[bytes, int, float]] = field(default_factory=dict)
    n_puts: int = 0

    def get(self, name: str) -> Stored | None:
        if name not in self.held:
            return None
        content, tag, since = self.held[name]
        return Stored(content, tag, self.now - since)

    def put(self, name: str, content: bytes, replaced: int | None) -> int:
        present = self.held[name][1] if name in self.held else None
        ignored = self.ignores_none_match if replaced is None else self.ignores_match
        if replaced != present and not ignored:
            raise ChangedObjectError
        self.n_puts += 1
        self.held[name] = (content, self.n_puts, self.now)
        if self.loses_answers:
            raise ChangedObjectError
        return self.n_puts

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def make_lease(objects: FakeObjects) -> Lease:
    return Lease(objects, "s3://bucket/index", clock=lambda: objects.now, sleep=objects.sleep)


def test_a_lease_is_free_again_when_its_holder_is_done() -> None:
    objects = FakeObjects()

    for _ in range(2):
        with make_lease(objects).hold(timeout=0) as was_left:
            assert not was_left
            assert json.loads(objects.held[LEASE_NAME][0])["holder"] == ME
        assert json.loads(objects.held[LEASE_NAME][0])["holder"] is None


def test_a_writer_that_waits_says_for_whom_and_gives_up_in_time() -> None:
    objects = FakeObjects()
    make_lease(objects).acquire(timeout=0)
    said: list[str] = []

    with pytest.raises(StoreError) as fault:
        make_lease(objects).acquire(10, said.append)

    assert str(fault.value) == f"the store s3://bucket/index is being written by {ME}: try again later"
    assert said == [f"waiting for {ME}, which is writing to the store s3://bucket/index"]
    assert objects.now == 10


def test_a_lease_that_nobody_renews_is_taken_over_when_its_time_is_over() -> None:
    objects = FakeObjects()
    make_lease(objects).acquire(timeout=0)
    objects.now = 7

    assert make_lease(objects).acquire(timeout=60)

    # Watched from the beginning: when it was last renewed, only a common clock could tell.
    assert objects.now == 7 + LEASE_SECONDS


def test_a_lease_that_was_left_long_ago_is_taken_over_at_once() -> None:
    objects = FakeObjects()
    make_lease(objects).acquire(timeout=0)
    objects.now = STALE_SECONDS

    assert make_lease(objects).acquire(timeout=0)
    assert objects.now == STALE_SECONDS


def test_a_lease_that_is_renewed_is_never_taken_over() -> None:
    objects = FakeObjects()
    holder = make_lease(objects)
    holder.acquire(timeout=0)
    waiting = make_lease(objects)

    def sleep(seconds: float) -> None:
        objects.now += seconds
        holder.confirm()

    waiting.sleep = sleep
    with pytest.raises(StoreError, match="try again later"):
        waiting.acquire(timeout=10 * LEASE_SECONDS)


def test_a_writer_that_lost_its_lease_is_told_before_it_commits() -> None:
    objects = FakeObjects()
    frozen = make_lease(objects)
    frozen.acquire(timeout=0)
    make_lease(objects).acquire(timeout=60)

    for _ in range(2):
        with pytest.raises(StoreError) as fault:
            frozen.confirm()
        assert str(fault.value) == (
            f"{ME} has taken over the store s3://bucket/index, as this process was not heard of for 20 seconds; "
            "what was finished before is kept: run the command again"
        )


def test_a_writer_that_lost_its_lease_leaves_the_other_one_alone() -> None:
    objects = FakeObjects()
    taken = b""

    with make_lease(objects).hold(timeout=0):
        make_lease(objects).acquire(timeout=60)
        taken = objects.held[LEASE_NAME][0]

    assert objects.held[LEASE_NAME][0] == taken


def test_of_two_that_see_an_expired_lease_one_gets_it() -> None:
    objects = FakeObjects()
    make_lease(objects).acquire(timeout=0)
    first, second = make_lease(objects), make_lease(objects)

    def let_the_other_one_in(seconds: float) -> None:
        objects.now += seconds
        if objects.now >= LEASE_SECONDS:
            second.sleep = objects.sleep
            assert first.acquire(timeout=60)

    objects.now = 0.1
    second.sleep = let_the_other_one_in
    with pytest.raises(StoreError, match="try again later"):
        second.acquire(timeout=LEASE_SECONDS + 10)
    first.confirm()


def test_a_put_whose_answer_was_lost_counts() -> None:
    objects = FakeObjects(loses_answers=True)
    lease = make_lease(objects)

    assert not lease.acquire(timeout=0)
    lease.confirm()


@pytest.mark.parametrize(
    ("objects", "header"),
    [(FakeObjects(ignores_none_match=True), "If-None-Match"), (FakeObjects(ignores_match=True), "If-Match")],
    ids=["if-none-match", "if-match"],
)
def test_a_store_that_ignores_conditions_is_refused(objects: FakeObjects, header: str) -> None:
    with pytest.raises(StoreError) as fault, make_lease(objects).hold(timeout=0):
        pytest.fail("nobody may write there")

    assert str(fault.value) == (
        f"s3://bucket/index is not safe to write to: its server ignores {header}, so that two writers would lose each "
        "other's rows without a word; use one with conditional writes"
    )


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"holder": "x", "seconds": null}'])
def test_a_lease_that_cannot_be_read_is_waited_for_like_any_other(content: bytes) -> None:
    objects = FakeObjects()
    objects.put(LEASE_NAME, content, None)

    with pytest.raises(StoreError, match="is being written by another process: try again later"):
        make_lease(objects).acquire(timeout=LEASE_SECONDS - 1)
    assert make_lease(objects).acquire(timeout=LEASE_SECONDS)
