"""Whole processes, measured from outside: wall and CPU time, and peak memory."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB elsewhere (getrusage(2))

WATCH_SECONDS = 0.1  # a peak that is shorter is caught by the kernel for the process itself, not for its children


class BenchmarkError(Exception):
    """Something a benchmark needs is missing, or a measured command failed; the message is one line."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished process.

    Parameters
    ----------
    code : int
        Its exit code.
    stdout, stderr : bytes
        What it wrote.
    wall, cpu : float
        Seconds; CPU is user and system time of all threads and of children it waited for.
    peak : int
        Largest resident set in bytes; with its children at the time, where it was watched.
    """

    code: int
    stdout: bytes
    stderr: bytes
    wall: float
    cpu: float
    peak: int


def run_measured(command: Sequence[str], cwd: Path, environ: Mapping[str, str], *, watch: bool = False) -> Run:
    """Run a command to its end and measure it.

    The peak of a child begins with that of this process, whose memory it shares until it is replaced (execve(2)), so
    callers that report memory must stay small themselves: no numpy.

    Parameters
    ----------
    command, cwd, environ
        As for `subprocess.Popen`.
    watch : bool
        Whether to add up the memory of the whole tree of processes meanwhile (Linux), for commands that start others.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=cwd, env=dict(environ), stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        peak_tree = _watch_tree(process.pid) if watch else 0
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Run(
            process.returncode,
            out.read(),
            err.read(),
            wall,
            usage.ru_utime + usage.ru_stime,
            max(usage.ru_maxrss * MAXRSS_UNIT, peak_tree),
        )


def _watch_tree(pid: int) -> int:
    """Return the largest sum of memory of a process and its descendants until it ends; 0 where /proc is missing."""
    largest = 0
    if sys.platform != "linux":
        return largest
    ended = os.pidfd_open(pid)
    while not select.select([ended], [], [], WATCH_SECONDS)[0]:
        largest = max(largest, sum(_read_pss(one) for one in _list_tree(pid)))
    os.close(ended)
    return largest


def _list_tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, children.read_text().split())
    return found


def _read_pss(pid: int) -> int:
    """Return the bytes of a process, each page that it shares divided by the number of processes that share it."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def run_checked(
    command: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    codes: Sequence[int] = (0,),
    *,
    watch: bool = False,
) -> Run:
    """Run a command that must end with one of `codes`.

    Raises
    ------
    BenchmarkError
        With the last line that it wrote to stderr.
    """
    run = run_measured(command, cwd, environ, watch=watch)
    if run.code not in codes:
        last = run.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["nothing on stderr"]
        raise BenchmarkError(f"{' '.join(command[:3])} … ended with {run.code}: {last[0]}")
    return run


def find_rse() -> str:
    """Return the ``rse`` of the environment that runs the benchmark.

    Raises
    ------
    BenchmarkError
        If it isn't installed there.
    """
    script = Path(sys.executable).parent / "rse"
    if not script.is_file():
        raise BenchmarkError(f"no rse beside {sys.executable}: run `make install`")
    return str(script)


def find_model_folder() -> str:
    """Return the folder of the default model."""
    find = "from rse_cli.adapters.encoders import model_files as m; print(m.find_model(m.DEFAULT_MODEL))"
    return run_checked([sys.executable, "-c", find], Path(__file__).parent, os.environ).stdout.decode().strip()


def make_environ(settings_home: Path) -> dict[str, str]:
    """Return the environment without what would change results: the user's settings and ``RSE_*`` variables."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("RSE_")}
    return environ | {"XDG_CONFIG_HOME": str(settings_home), "HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}


def describe_machine() -> str:
    """Return one line on what the figures were measured on."""
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    kernels = os.environ.get("OPENBLAS_CORETYPE")
    forced = f", OPENBLAS_CORETYPE={kernels}" if kernels else ""
    return f"{os.cpu_count()} cores, load {load}, Python {sys.version.split()[0]}{forced}"


def own_peak() -> int:
    """Return the peak memory of this process in bytes: below this, no child's figure means anything."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_UNIT
