"""Processes of `rse` that are watched, killed or signalled, and what they said they were doing."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPO = Path(__file__).parent.parent.parent

BESIDE = "reading and encoding"
"""The phase of threads beside the one that writes."""

State = dict[str, list[Any]]
"""What an index holds: content hash and modification time by path."""


@dataclass(slots=True)
class Victim:
    """A driven process and the events that it has told so far."""

    process: subprocess.Popen[bytes]
    pipe: int
    events: list[dict[str, Any]] = field(default_factory=list)
    stdout: bytes = b""
    stderr: bytes = b""
    _rest: bytes = b""

    def wait_for(self, is_moment: Callable[[dict[str, Any]], bool], seconds: float = 300) -> bool:
        """Wait for an event; False if the process ends without it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            at = len(self.events)
            goes_on = self._read(deadline - time.monotonic())
            if any(is_moment(event) for event in self.events[at:]):
                return True
            if not goes_on:
                return False
        raise TimeoutError(f"nothing for {seconds} s, after {self.events[-3:]}")

    def finish(self, seconds: float = 300) -> int:
        """Wait for the end, take what was written, and return the exit code."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            if time.monotonic() > deadline:
                self.process.kill()
                raise TimeoutError(f"still running after {seconds} s, after {self.events[-3:]}")
        os.close(self.pipe)
        self.stdout, self.stderr = self.process.communicate(timeout=seconds)
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        """Take the events that have come; False at the end of the pipe."""
        if not select.select([self.pipe], [], [], max(seconds, 0))[0]:
            return True
        data = os.read(self.pipe, 1 << 20)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.events += [json.loads(line) for line in lines]
        return bool(data)

    @property
    def phase(self) -> str:
        """What it was doing when the last event came; of what it did side by side, what changed the store."""
        open_phases: list[str] = []
        for event in self.events:
            if "enter" in event:
                open_phases.append(event["enter"])
            elif "leave" in event:
                open_phases.remove(event["leave"])
        inside = [phase for phase in open_phases if phase != "start"]
        if inside:
            return ([phase for phase in inside if phase != BESIDE] or inside)[-1]
        return "between" if open_phases else "before the start"

    def list_states(self, before: State) -> list[State]:
        """Return the states that the index may be in: all acknowledged changes, and perhaps the one under way."""
        state, under_way = dict(before), None
        for event in self.events:
            if "begin" in event:
                under_way = event["begin"]
            elif "end" in event and under_way is not None:
                state, under_way = apply_change(state, under_way), None
        return [state] if under_way is None else [state, apply_change(state, under_way)]


def apply_change(state: State, change: Mapping[str, Any]) -> State:
    kept = {path: value for path, value in state.items() if path not in change["drop"]}
    return kept | change["put"]


def start_victim(folder: Path, home: Path, arguments: Sequence[str | Path], aim: str = "") -> Victim:
    """Begin a driven `rse` in a session of its own, so that its workers can be found; see `driver` for `aim`."""
    from tests.conftest import clean_environment

    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.reliability.driver", str(theirs), aim, *map(str, arguments)],
        cwd=folder,
        env=clean_environment(home, {"PYTHONPATH": str(REPO), "OPENBLAS_NUM_THREADS": "1"}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(theirs,),
        start_new_session=True,
    )
    os.close(theirs)
    return Victim(process, ours)


def list_survivors(session: int, seconds: float = 1.0) -> list[int]:
    """Return the processes of a session that still run after some time."""
    deadline = time.monotonic() + seconds
    while (
        running := [pid for pid in list_processes() if find_session(pid) == session]
    ) and time.monotonic() < deadline:
        time.sleep(0.02)
    return running


def list_processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def find_session(pid: int) -> int | None:
    """Return the session of a process that runs; None for one that has ended."""
    try:
        state, _parent, _group, session, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state == "Z" else int(session)
