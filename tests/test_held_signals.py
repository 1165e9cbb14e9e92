"""Signals that wait while something must not be stopped in the middle."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from rse_cli.adapters.held_signals import hold_signals
from tests.conftest import Run


def test_a_signal_is_raised_at_the_end() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), hold_signals():
        signal.raise_signal(signal.SIGINT)
        done.append("all")
    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_in_another_thread_nothing_is_held() -> None:
    faults: list[BaseException] = []

    def hold() -> None:
        try:
            with hold_signals():
                pass
        except ValueError as fault:
            faults.append(fault)

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    assert not faults


def test_an_interruption_while_the_first_points_are_drawn_ends_tune(
    sample: Path, rse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rse_cli.cli import tuning_run

    drawn = []

    def draw(*arguments: int) -> None:
        signal.raise_signal(signal.SIGINT)
        drawn.append(arguments)

    monkeypatch.setattr(tuning_run, "draw_points", draw)
    done = rse("tune", "cases.yaml", "--trials", "64", cwd=sample)
    assert (done.code, done.stdout, done.stderr.splitlines()[-1]) == (130, b"", "rse: interrupted")
    assert drawn == [(1, 1, 0)]
