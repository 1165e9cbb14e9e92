"""An ingest that is killed at any moment loses nothing that it acknowledged, and leaves nothing by half."""

from __future__ import annotations

import random
import shutil
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.reliability.builds import check_against_fresh_build
from tests.reliability.conftest import Faults
from tests.reliability.evolving import EvolvingFolder
from tests.reliability.store_checks import find_faults, list_state, read_rows
from tests.reliability.victims import State, Victim, list_survivors, start_victim

QUOTAS = {
    "table creation": 10,
    "commit": 10,
    "index build": 10,
    "optimize": 10,
    "cleanup": 3,
    "manifest": 5,
    "reading and encoding": 5,
}
"""Kills wanted inside each phase, of 100."""

SHARE_OF_NEW_STORES = {"table creation": 1.0, "index build": 0.7}
"""How often the store is made anew before a kill in a phase that a new store goes through."""


@dataclass(slots=True)
class KillLoop:
    """A folder that evolves, its store, and the kills so far."""

    files: EvolvingFolder
    model: Path
    home: Path
    random: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def store(self) -> Path:
        return self.files.root / ".rse"

    def choose_phase(self, wanted: int) -> str:
        """Return a phase whose quota isn't met, or any."""
        short = [phase for phase, quota in QUOTAS.items() if self.kills[phase] < quota * wanted / 100]
        return self.random.choice(short or list(QUOTAS))

    def kill_once(self, phase: str, *flags: str) -> Victim | None:
        """Start an ingest and kill it inside a phase, if that comes; None if it came to its end."""
        jobs = self.random.choice(("1", "1", "1", "2"))
        usual = sorted(self.seconds.get(phase, [0.02]))
        # Beyond the phase's end now and then, so that moments between phases have their share.
        delay = self.random.uniform(0, 1.2 * usual[len(usual) // 2])
        aim = f"{phase}:{self.random.choice((1, 1, 1, 2, 3))}:{delay}"
        arguments = ["ingest", "--model", self.model, "--jobs", jobs, "--quiet", *flags]
        victim = start_victim(self.files.root, self.home, arguments, aim)
        code = victim.finish()
        self.note_times(victim)
        assert code in (0, -signal.SIGKILL), victim.stderr.decode()
        return victim if code else None

    def note_times(self, victim: Victim) -> None:
        """Remember how long phases take, so that kills are spread over all of them."""
        entered: dict[str, float] = {}
        for event in victim.events:
            if "enter" in event:
                entered[event["enter"]] = event["at"]
            elif event.get("leave") in entered:
                self.seconds.setdefault(event["leave"], []).append(event["at"] - entered.pop(event["leave"]))


@pytest.fixture
def loop(tmp_path: Path, home: Path, model: Path, pytestconfig: pytest.Config) -> KillLoop:
    dice = random.Random(pytestconfig.option.seed)
    (tmp_path / "docs").mkdir()
    return KillLoop(EvolvingFolder(tmp_path / "docs", dice), model, home, dice)


def test_a_killed_ingest_loses_nothing_and_the_next_one_mends_all(
    loop: KillLoop, faults: Faults, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    wanted = pytestconfig.option.kills
    loop.files.grow(30)
    while sum(loop.kills.values()) < wanted:
        aim = loop.choose_phase(wanted)
        if loop.random.random() < SHARE_OF_NEW_STORES.get(aim, 0.05):
            shutil.rmtree(loop.store, ignore_errors=True)
        for _ in range(loop.random.choice((1, 1, 2, 3))):
            loop.files.step()
            before = list_state(read_rows(loop.store))
            victim = loop.kill_once(aim)
            if victim is None:
                continue
            loop.kills[victim.phase] += 1
            with faults.attempt("SIGKILL during ingest", victim.phase):
                check_after_kill(loop, victim, before)
        with faults.attempt("the run after the kills", "ends equal to a fresh build"):
            finish_and_compare(loop, tmp_path / "fresh")
    assert_quotas(loop, wanted)


def test_a_killed_rebuild_leaves_the_old_index_or_the_beginning_of_a_new_one(
    loop: KillLoop, faults: Faults, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    loop.files.grow(30)
    for phase in loop.random.choices(("emptying", "emptying", "manifest", "commit"), k=pytestconfig.option.kills // 10):
        finish_and_compare(loop, tmp_path / "fresh")
        before = list_state(read_rows(loop.store))
        victim = loop.kill_once(phase, "--rebuild")
        if victim is None:
            continue
        with faults.attempt("SIGKILL during ingest --rebuild", victim.phase):
            check_after_kill(loop, victim, before, {})
            finish_and_compare(loop, tmp_path / "fresh")


def check_after_kill(loop: KillLoop, victim: Victim, *before: State) -> None:
    assert victim.stdout == b""
    rows = read_rows(loop.store)
    assert find_faults(rows) == []
    assert list_state(rows) in [state for each in before for state in victim.list_states(each)]
    assert list_survivors(victim.process.pid) == []


def finish_and_compare(loop: KillLoop, fresh: Path) -> None:
    victim = start_victim(loop.files.root, loop.home, ["ingest", "--model", loop.model, "--jobs", "1"])
    code = victim.finish()
    loop.note_times(victim)
    assert code == 0, victim.stderr.decode()
    assert b"Traceback" not in victim.stderr
    check_against_fresh_build(loop.files.root, loop.store, loop.model, fresh)


def assert_quotas(loop: KillLoop, wanted: int) -> None:
    """Of 100 kills at least 10 fall into each of the phases in which a store changes shape."""
    for phase in ("table creation", "commit", "index build", "optimize"):
        assert loop.kills[phase] >= 10 * wanted // 100, loop.kills
