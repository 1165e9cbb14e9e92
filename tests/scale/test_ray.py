"""An ingest on workers of Ray, in a local cluster: the same index, whoever is killed on the way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import clean_environment
from tests.reliability.store_checks import find_faults, list_differences, read_rows
from tests.scale.bucket_server import REPO

SENTENCES = (
    "The keeper of lighthouse number {} winds its clockwork every evening at six.",
    "Her log of the year {} counts eleven wrecks, three of them at night.",
    "Whoever relieves her finds {} litres of oil in the lower store.",
)


def start_rse(root: Path, home: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "rse_cli", *map(str, arguments)],
        cwd=root,
        env=clean_environment(home, {"PYTHONPATH": str(REPO)}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_rse(root: Path, home: Path, *arguments: str | Path) -> tuple[int, str, str]:
    process = start_rse(root, home, *arguments)
    stdout, stderr = process.communicate(timeout=500)
    return process.returncode, stdout, stderr


def list_workers(home: Path) -> list[int]:
    """The processes of our own cluster that are at a task, which Ray puts into their names."""
    return [pid for pid in list_cluster(home) if read_process(pid, "cmdline").startswith("ray::_call")]


def list_cluster(home: Path) -> list[int]:
    """All processes that have our home."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if f"\0HOME={home}\0" in f"\0{read_process(pid, 'environ')}" and pid != os.getpid()]


def read_process(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def wait_until(holds: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


def write_files(root: Path, count: int) -> None:
    """Files of 30 chunks each, no two of which are the same."""
    root.mkdir()
    for at in range(count):
        lines = [SENTENCES[i % 3].format(at * 1_000 + i) for i in range(30)]
        (root / f"{at}.txt").write_text("\n".join(lines))


def test_the_index_is_the_one_of_a_local_ingest_though_a_worker_is_killed(tmp_path: Path, home: Path) -> None:
    root = tmp_path / "docs"
    write_files(root, 40)
    (root / "broken.pdf").write_bytes(b"%PDF-1.4 of nothing")
    (root / "page.html").write_text("<h1>Harbour</h1><p>The harbour master keeps the log.</p>")
    by_ray, local = tmp_path / "ray", tmp_path / "local"

    ingest = start_rse(root, home, "ingest", "--engine", "ray", "--jobs", "2", "--store", by_ray)
    wait_until(lambda: read_rows(by_ray) and list_workers(home), ingest)
    os.kill(list_workers(home)[0], signal.SIGKILL)
    stdout, stderr = ingest.communicate(timeout=500)

    assert ingest.returncode == 0, stderr
    assert (ingest.returncode, stdout, stderr) == run_rse(root, home, "ingest", "--store", local)
    assert list_differences(by_ray, local) == []
    assert find_faults(read_rows(by_ray)) == []


def test_a_killed_driver_leaves_its_last_commit_and_the_next_ingest_goes_on_from_there(
    tmp_path: Path, home: Path
) -> None:
    root = tmp_path / "docs"
    write_files(root, 40)
    by_ray, local = tmp_path / "ray", tmp_path / "local"

    ingest = start_rse(root, home, "ingest", "--engine", "ray", "--jobs", "2", "--store", by_ray)
    wait_until(lambda: read_rows(by_ray), ingest)
    ingest.kill()
    ingest.communicate()

    rows = read_rows(by_ray)
    assert rows and find_faults(rows) == []
    n_kept = len({row["path"] for row in rows})
    code, stdout, _ = run_rse(root, home, "ingest", "--store", by_ray)
    assert (code, stdout) == (0, f"new {40 - n_kept} · changed 0 · unchanged {n_kept} · removed 0 · skipped 0\n")
    assert run_rse(root, home, "ingest", "--store", local)[0] == 0
    assert list_differences(by_ray, local) == []
    deadline = time.monotonic() + 180
    while list_cluster(home) and time.monotonic() < deadline:
        time.sleep(1)
    assert list_cluster(home) == []


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [
        (signal.SIGINT, 130, "rse: interrupted; what was finished is kept\n"),
        (signal.SIGTERM, 143, "rse: terminated; what was finished is kept\n"),
    ],
)
def test_a_signal_ends_an_ingest_in_one_line_with_what_was_committed(
    tmp_path: Path, home: Path, number: int, code: int, line: str
) -> None:
    root, store = tmp_path / "docs", tmp_path / "store"
    write_files(root, 60)
    ingest = start_rse(root, home, "ingest", "--engine", "ray", "--jobs", "2", "--store", store)
    wait_until(lambda: read_rows(store), ingest)

    ingest.send_signal(number)
    stdout, stderr = ingest.communicate(timeout=60)

    assert (ingest.returncode, stdout, stderr) == (code, "", line)
    rows = read_rows(store)
    assert rows and find_faults(rows) == []


def measure_encoding(root: Path, home: Path, store: Path, jobs: int) -> float:
    """Return how many chunks were encoded a second of that stage."""
    code, stdout, stderr = run_rse(
        root, home, "ingest", "--engine", "ray", "--jobs", str(jobs), "--store", store, "--json", "--timings"
    )
    assert code == 0, stderr
    seconds = re.search(r"encode ([0-9.]+)", stderr)
    assert seconds, stderr
    return float(json.loads(stdout)["stats"]["encoded"] / float(seconds[1]))


@pytest.mark.skipif(os.getloadavg()[0] > 1, reason="other processes are at work")
def test_two_workers_encode_at_least_1_6_times_as_much_as_one(tmp_path: Path, home: Path) -> None:
    root = tmp_path / "docs"
    write_files(root, 100)

    one, two = (measure_encoding(root, home, tmp_path / str(jobs), jobs) for jobs in (1, 2))

    assert two >= 1.6 * one, (one, two)
