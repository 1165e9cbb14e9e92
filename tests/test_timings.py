"""Stages add up: what lies inside another stage is taken out of it, thread by thread."""

from __future__ import annotations

import threading

import pytest

from rse_cli import timings
from rse_cli.timings import add_timings, stage, start_timings, stop_timings


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, for the test to set."""
    now = [0.0]
    monkeypatch.setattr(timings.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(timings, "_BEGAN", 0.0)
    return now


def test_a_stage_inside_another_one_is_taken_out_of_it(clock: list[float]) -> None:
    start_timings()
    clock[0] = 1.0
    with stage("segments"):
        clock[0] = 3.0
        with stage("fetch"):
            clock[0] = 7.0
        with stage("fetch"):
            clock[0] = 7.5
        clock[0] = 8.0
    clock[0] = 9.0

    assert stop_timings() == (9.0, {"import": 1.0, "segments": 2.5, "fetch": 4.5, "rest": 1.0})


def test_a_stage_that_raises_is_counted(clock: list[float]) -> None:
    @stage("read")
    def fail() -> None:
        clock[0] += 2.0
        raise ValueError

    start_timings()
    for _ in range(2):
        with pytest.raises(ValueError):
            fail()

    assert stop_timings() == (4.0, {"import": 0.0, "read": 4.0})


def test_a_stage_of_another_thread_is_not_taken_out(clock: list[float]) -> None:
    def work() -> None:
        with stage("search"):
            clock[0] += 3.0

    start_timings()
    with stage("fetch"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert stop_timings() == (3.0, {"import": 0.0, "fetch": 3.0, "search": 3.0})


def test_the_stages_of_another_process_are_added_without_its_rest(clock: list[float]) -> None:
    start_timings()
    with stage("search"):
        clock[0] += 3.0
    add_timings({"import": 0.5, "search": 1.0, "score": 2.0, "rest": 4.0})

    assert stop_timings() == (3.0, {"import": 0.5, "search": 4.0, "score": 2.0})


def test_nothing_is_measured_that_was_not_asked_for() -> None:
    with stage("fetch"):
        pass

    assert stop_timings() == (0.0, {})
