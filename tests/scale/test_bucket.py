"""One index in an object store, written and read by several processes at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from rse_cli.adapters.bucket_files import open_bucket
from rse_cli.adapters.lease import LEASE_NAME
from rse_cli.adapters.store_folder import MANIFEST_NAME
from rse_cli.ports import Bucket
from tests.conftest import clean_environment
from tests.reliability.store_checks import find_faults, list_differences, read_rows
from tests.scale.bucket_server import BUCKET, KEYS, REPO, run_bucket_server, run_unsafe_server

ADDRESS = f"s3://{BUCKET}/team/index"

WRITERS, ROUNDS, FILES = 3, 2, 50


@dataclass(frozen=True)
class Rse:
    """Runs `rse` as a process in a folder, with its index in a bucket on a server."""

    root: Path
    home: Path
    server: str

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        where = {"AWS_ENDPOINT_URL": self.server, "AWS_ALLOW_HTTP": "true", **KEYS, "RSE_STORE": ADDRESS}
        return subprocess.Popen(
            [sys.executable, "-m", "rse_cli", *arguments],
            cwd=self.root,
            env=clean_environment(self.home, {"PYTHONPATH": str(REPO), "OPENBLAS_NUM_THREADS": "1", **where}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        stdout, stderr = process.communicate(timeout=300)
        return process.returncode, stdout, stderr

    @property
    def bucket(self) -> Bucket:
        """The store, as this process reaches it."""
        options = {key.lower(): value for key, value in KEYS.items()}
        return Bucket(ADDRESS, (*options.items(), ("aws_endpoint_url", self.server), ("aws_allow_http", "true")))

    def read_lease(self) -> dict[str, str | None]:
        try:
            return dict(json.loads(open_bucket(self.bucket).read(LEASE_NAME)))
        except FileNotFoundError:
            return {"holder": None}

    def wait_for_holder(self, process: subprocess.Popen[str]) -> None:
        """Wait until a process is writing and has committed something."""
        deadline = time.monotonic() + 120
        while not str(self.read_lease()["holder"]).startswith(f"process {process.pid} ") or not read_rows(self.bucket):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture
def rse(tmp_path: Path, home: Path) -> Iterator[Rse]:
    root = tmp_path / "docs"
    root.mkdir()
    with run_bucket_server(home) as server:
        yield Rse(root, home, server)


def write_files(folder: Path, count: int, first: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    for at in range(first, first + count):
        text = f"The keeper of lighthouse number {at} of {folder.name} winds its clockwork every evening at six."
        (folder / f"{at}.txt").write_text(text)


def test_three_writers_and_two_readers_lose_no_row_that_was_acknowledged(rse: Rse) -> None:
    (rse.root / "first.txt").write_text("The harbour master keeps the first log.")
    assert rse.run("ingest", "first.txt")[0] == 0
    are_done = threading.Event()

    def write(writer: int) -> list[str]:
        acknowledged = []
        for at in range(ROUNDS):
            write_files(rse.root / f"writer {writer}", FILES, at * FILES)
            code, stdout, stderr = rse.run("ingest", f"writer {writer}", "--json", "--lock-timeout", "300")
            assert code == 0, stderr
            acknowledged += json.loads(stdout)["new"]
        return acknowledged

    def read() -> list[int]:
        codes = []
        while not are_done.is_set():
            code, _, stderr = rse.run("query", "Who keeps the log of the harbour?", "--min-confidence", "0")
            assert code == 0, stderr
            codes.append(code)
        return codes

    with ThreadPoolExecutor(WRITERS + 2) as threads:
        readers = [threads.submit(read) for _ in range(2)]
        try:
            acknowledged = [path for paths in threads.map(write, range(WRITERS)) for path in paths]
        finally:
            are_done.set()

    rows = read_rows(rse.bucket)
    assert len(acknowledged) == len(set(acknowledged)) == WRITERS * ROUNDS * FILES == 300
    assert {row["path"] for row in rows if row["ord"] == 0} == {"first.txt", *acknowledged}
    assert find_faults(rows) == []
    assert all(reader.result() for reader in readers)


def test_the_index_is_the_one_that_a_folder_holds(rse: Rse, tmp_path: Path) -> None:
    write_files(rse.root, 30)
    place = str(tmp_path / "local")

    assert rse.run("ingest")[0] == rse.run("ingest", "--store", place)[0] == 0
    (rse.root / "3.txt").write_text("The third keeper has retired.")
    (rse.root / "4.txt").unlink()
    assert rse.run("ingest")[0] == rse.run("ingest", "--store", place)[0] == 0

    assert list_differences(rse.bucket, Path(place)) == []
    for command in (["query", "Which keeper has retired?", "--json"], ["inspect", "--document", "3.txt", "--json"]):
        assert rse.run(*command) == rse.run(*command, "--store", place)
    assert rse.run("status", "--verify") == (0, "verified   58 rows of 29 files, all whole\n", "")
    assert rse.run("ingest", "--rebuild")[:2] == (0, "new 29 · changed 0 · unchanged 0 · removed 0 · skipped 0\n")
    assert list_differences(rse.bucket, Path(place)) == []


def test_the_lease_of_a_killed_writer_is_taken_over(rse: Rse) -> None:
    write_files(rse.root / "many", 3_000)
    write_files(rse.root / "few", 3)
    victim = rse.start("ingest", "many", "--jobs", "1")
    rse.wait_for_holder(victim)
    victim.kill()
    victim.communicate()

    code, stdout, stderr = rse.run("ingest", "few")

    assert (code, stdout) == (0, "new 3 · changed 0 · unchanged 0 · removed 0 · skipped 0\n")
    assert stderr.startswith(f"rse: waiting for process {victim.pid} on ")
    assert rse.read_lease()["holder"] is None
    rows = read_rows(rse.bucket)
    assert find_faults(rows) == []
    assert {row["path"].split("/")[0] for row in rows} == {"many", "few"}


def test_a_writer_that_was_frozen_while_another_took_over_commits_nothing_more(rse: Rse) -> None:
    write_files(rse.root / "many", 3_000)
    write_files(rse.root / "few", 3)
    frozen = rse.start("ingest", "many", "--jobs", "1")
    rse.wait_for_holder(frozen)
    frozen.send_signal(signal.SIGSTOP)
    try:
        assert rse.run("ingest", "few")[0] == 0
        rows = read_rows(rse.bucket)
    finally:
        frozen.send_signal(signal.SIGCONT)
        stdout, stderr = frozen.communicate(timeout=300)

    assert (frozen.returncode, stdout) == (2, "")
    assert "took it over" in stderr or "has taken over the store" in stderr or "another process changed" in stderr
    assert read_rows(rse.bucket) == rows
    assert find_faults(rows) == []


def test_a_server_that_ignores_conditions_is_refused_before_anything_is_written(rse: Rse) -> None:
    write_files(rse.root, 3)
    with run_unsafe_server(rse.server) as unsafe:
        refused = Rse(rse.root, rse.home, unsafe).run("ingest")

    assert refused == (
        2,
        "",
        f"rse: {ADDRESS} is not safe to write to: its server ignores If-None-Match, so that two writers would lose "
        "each other's rows without a word; use one with conditional writes\n",
    )
    assert not open_bucket(rse.bucket).holds(MANIFEST_NAME)
    assert read_rows(rse.bucket) == []
