"""SIGINT and SIGTERM end an ingest within two seconds, with the finished work kept and one line said."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.reliability.builds import check_against_fresh_build
from tests.reliability.conftest import Faults
from tests.reliability.evolving import EvolvingFolder
from tests.reliability.store_checks import find_faults, list_state, read_rows
from tests.reliability.victims import State, Victim, list_survivors, start_victim

SIGNALS = {
    signal.SIGINT: (130, "rse: interrupted; what was finished is kept\n"),
    signal.SIGTERM: (143, "rse: terminated; what was finished is kept\n"),
}

MOMENTS = ("start", "reading and encoding", "table creation", "index build", "commit", "optimize", "manifest")


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("to_all", [False, True], ids=["to rse", "to all its processes"])
def test_a_signal_ends_an_ingest_soon_and_keeps_what_was_finished(
    tmp_path: Path,
    home: Path,
    model: Path,
    faults: Faults,
    pytestconfig: pytest.Config,
    number: signal.Signals,
    to_all: bool,
) -> None:
    dice = random.Random(pytestconfig.option.seed)
    (tmp_path / "docs").mkdir()
    files = EvolvingFolder(tmp_path / "docs", dice)
    files.grow(60)
    for moment in MOMENTS:
        files.step()
        before = list_state(read_rows(files.root / ".rse"))
        victim = start_victim(files.root, home, ["ingest", "--model", model, "--jobs", "2"])
        victim.wait_for(lambda event, moment=moment: event.get("enter") == moment)
        time.sleep(dice.uniform(0, 0.3))
        if victim.process.poll() is not None:
            victim.finish()
            continue
        with faults.attempt(f"{number.name} {'to all processes' if to_all else 'to rse'}", "ends within 2 s"):
            check_end(victim, number, to_all, files.root / ".rse", before)
    last = start_victim(files.root, home, ["ingest", "--model", model])
    assert last.finish() == 0
    check_against_fresh_build(files.root, files.root / ".rse", model, tmp_path / "fresh")


def check_end(victim: Victim, number: signal.Signals, to_all: bool, store: Path, before: State) -> None:
    """A terminal sends Ctrl-C to all processes of a command, `kill` to one."""
    begin = time.monotonic()
    (os.killpg if to_all else os.kill)(victim.process.pid, number)
    code = victim.finish()
    seconds = time.monotonic() - begin
    if code == 0:
        # It was done before the signal came to be seen.
        assert victim.stdout.startswith(b"new ")
    else:
        assert (code, victim.stderr.decode()) == SIGNALS[number]
        assert victim.stdout == b""
    assert seconds < 2
    assert list_survivors(victim.process.pid) == []
    rows = read_rows(store)
    assert find_faults(rows) == []
    assert list_state(rows) in victim.list_states(before)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_ends_an_ingest_that_encodes_with_the_default_model_on_all_cores(
    tmp_path: Path, home: Path, faults: Faults, number: signal.Signals
) -> None:
    files = EvolvingFolder(tmp_path, random.Random(1))
    files.grow(400)
    victim = start_victim(tmp_path, home, ["ingest"])
    victim.wait_for(lambda event: event.get("leave") == "manifest" and len(victim.list_states({})[0]) > 0)
    time.sleep(0.5)
    with faults.attempt(f"{number.name} while all cores encode", "ends within 2 s"):
        check_end(victim, number, True, tmp_path / ".rse", {})
