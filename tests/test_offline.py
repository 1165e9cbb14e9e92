"""Nothing in `rse` but ``--answer`` opens a network connection: behind a fence, the first attempt ends the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import clean_environment
from tests.no_network import IS_AVAILABLE

pytestmark = pytest.mark.skipif(not IS_AVAILABLE, reason="no fence for this system")

PROJECT = Path(__file__).parent.parent


def run_fenced(folder: Path, home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `rse` behind the fence, with the variables gone that forbid downloads."""
    online = {
        key: value for key, value in clean_environment(home).items() if not key.startswith(("HF_", "TRANSFORMERS_"))
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.no_network", *map(str, arguments)],
        cwd=folder,
        # Without LOGNAME torch asks the system's name service, over a socket of the file system.
        env={
            **online,
            "LOGNAME": "somebody",
            "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_fence_ends_whoever_connects(home: Path) -> None:
    reach = "socket.socket().connect(('127.0.0.1', 9))"
    script = (
        "import socket, subprocess, sys; from tests.no_network import forbid_network; forbid_network()\n"
        "socket.socketpair()\n"
        f"print(subprocess.run([sys.executable, '-c', \"import socket; {reach}\"]).returncode, flush=True)\n"
        f"{reach}\n"
        "print('alive')"
    )

    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.returncode) == (f"-{signal.SIGSYS}\n", -signal.SIGSYS), done.stderr


def test_ingest_and_query_open_no_connection(documents: Path, home: Path) -> None:
    (documents / "docs" / "page.html").write_text(
        "<!DOCTYPE html SYSTEM 'http://example.com/x.dtd'><p><img src='http://example.com/x.png'>The quay.</p>"
    )

    made = run_fenced(documents, home, "ingest")
    found = run_fenced(documents, home, "query", "the filter of the pump", "-l")
    seen = run_fenced(documents, home, "inspect", "the filter of the pump")
    absent = run_fenced(documents, home, "ingest", "--store", "other", "--model", "nobody/nothing")

    assert (made.returncode, made.stdout, made.stderr) == (
        0,
        "new 4 · changed 0 · unchanged 0 · removed 0 · skipped 0\n",
        "",
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "docs/pump.md\n", "")
    assert seen.returncode == 0, seen.stderr
    assert absent.returncode == 2
    assert absent.stderr.startswith("rse: no model nobody/nothing on this machine: ")
