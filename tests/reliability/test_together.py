"""Several processes at one store: no row is lost or doubled, and no reader ever fails."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import clean_environment
from tests.reliability.builds import check_against_fresh_build
from tests.reliability.conftest import Faults
from tests.reliability.evolving import EvolvingFolder
from tests.reliability.store_checks import list_state, read_rows
from tests.reliability.victims import REPO, Victim, start_victim


@pytest.fixture
def files(tmp_path: Path, pytestconfig: pytest.Config) -> EvolvingFolder:
    root = tmp_path / "docs"
    root.mkdir()
    return EvolvingFolder(root, random.Random(pytestconfig.option.seed))


def ingest_together(
    files: EvolvingFolder, home: Path, model: Path, scopes: Sequence[str]
) -> list[tuple[int, bytes, str]]:
    """Ingest folders at once, each in a process of its own, and return what each left."""
    victims = [start_victim(files.root, home, ["ingest", scope, "--model", model, "--jobs", "1"]) for scope in scopes]
    return [(victim.finish(), victim.stdout, victim.stderr.decode()) for victim in victims]


def make_folders(files: EvolvingFolder, names: Sequence[str]) -> list[EvolvingFolder]:
    parts = [EvolvingFolder(files.root / name, files.random) for name in names]
    for part in parts:
        part.root.mkdir()
        part.grow(20)
    return parts


def is_quiet(stderr: str) -> bool:
    """Whether nothing was said but who was waited for, and which broken JSON was skipped."""
    return all(line.startswith(("rse: waiting for process ", "skipped ")) for line in stderr.splitlines())


def test_four_ingests_of_different_folders_into_a_new_store_lose_and_double_no_row(
    files: EvolvingFolder, home: Path, model: Path, faults: Faults, tmp_path: Path
) -> None:
    parts = make_folders(files, "abcd")
    for at in range(4):
        with faults.attempt("four ingests at once", "into a new store" if not at else "into the same store"):
            done = ingest_together(files, home, model, "abcd")
            assert [code for code, _, _ in done] == [0, 0, 0, 0], done
            assert all(is_quiet(stderr) for _, _, stderr in done), done
            check_against_fresh_build(files.root, files.root / ".rse", model, tmp_path / "fresh")
        for part in parts:
            part.step()


def test_two_first_ingests_of_the_same_folder_make_one_index(
    files: EvolvingFolder, home: Path, model: Path, faults: Faults, tmp_path: Path
) -> None:
    files.grow(20)
    for _ in range(4):
        with faults.attempt("two first ingests at once", "of the same folder"):
            done = ingest_together(files, home, model, [".", "."])
            assert [code for code, _, _ in done] == [0, 0], done
            assert all(is_quiet(stderr) for _, _, stderr in done), done
            check_against_fresh_build(files.root, files.root / ".rse", model, tmp_path / "fresh")
        (files.root / ".rse").rename(tmp_path / f"old {time.monotonic_ns()}")


def test_queries_beside_ingests_never_fail(
    files: EvolvingFolder, home: Path, model: Path, faults: Faults, tmp_path: Path
) -> None:
    files.grow(30)
    assert start_victim(files.root, home, ["ingest", "--model", model]).finish() == 0
    writers: list[Victim] = []
    readers: list[subprocess.Popen[bytes]] = []
    answers = 0
    while len(writers) < 6 or readers:
        if len(writers) < 6 and (not writers or writers[-1].process.poll() is not None):
            files.step()
            writers.append(start_victim(files.root, home, ["ingest", "--model", model, "--jobs", "1"]))
        if len(writers) < 6 and len(readers) < 2:
            readers.append(start_query(files.root, home, files.write_sentence()[:20]))
        for reader in [one for one in readers if one.poll() is not None]:
            readers.remove(reader)
            with faults.attempt("queries beside an ingest", "answers, from one state of the index"):
                check_answer(reader)
            answers += 1
        time.sleep(0.01)
    ends = [(writer.finish(), writer.stderr.decode()) for writer in writers]
    assert all(code == 0 and is_quiet(stderr) for code, stderr in ends), ends
    assert answers >= 6
    check_against_fresh_build(files.root, files.root / ".rse", model, tmp_path / "fresh")


def start_query(root: Path, home: Path, query: str) -> subprocess.Popen[bytes]:
    environment = clean_environment(home, {"PYTHONPATH": str(REPO)})
    command = [sys.executable, "-m", "rse_cli", "query", query, "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, **pipes)


def check_answer(reader: subprocess.Popen[bytes]) -> None:
    out, err = reader.communicate()
    assert reader.returncode in (0, 1), err
    # Files change all the time, which a query mentions.
    assert all(b" changed since the index was made" in line or b"nothing found" in line for line in err.splitlines()), (
        err
    )
    for segment in json.loads(out)["segments"]:
        assert len(segment["text"]) == segment["end_char"] - segment["start_char"]


def test_a_killed_writer_leaves_the_lock_to_the_one_that_waits(
    files: EvolvingFolder, home: Path, model: Path, faults: Faults, tmp_path: Path
) -> None:
    files.grow(40)
    first = start_victim(files.root, home, ["ingest", "--model", model, "--jobs", "2"])
    first.wait_for(lambda event: event.get("enter") == "commit")
    with faults.attempt("a writer is killed while another waits", "the other goes on"):
        second = start_victim(files.root, home, ["ingest", "--model", model, "--jobs", "1"])
        second.wait_for(lambda event: event.get("enter") == "start")
        first.process.kill()
        first.finish()
        assert second.finish() == 0, second.stderr
        check_against_fresh_build(files.root, files.root / ".rse", model, tmp_path / "fresh")


def test_a_writer_that_waits_too_long_names_the_other_and_gives_up(
    files: EvolvingFolder, home: Path, model: Path, faults: Faults
) -> None:
    files.grow(5)
    assert start_victim(files.root, home, ["ingest", "--model", model]).finish() == 0
    before = list_state(read_rows(files.root / ".rse"))
    script = (
        "import sys, time; from pathlib import Path; from rse_cli.adapters.store_lock import lock_store\n"
        "with lock_store(Path('.rse'), 0): print('held', flush=True); time.sleep(60)"
    )
    files.step()
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=files.root,
        env=clean_environment(home, {"PYTHONPATH": str(REPO)}),
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with faults.attempt("a writer holds the lock for long", "the other gives up with exit code 2"):
            waiting = start_victim(files.root, home, ["ingest", "--model", model, "--lock-timeout", "1.5"])
            assert (waiting.finish(), waiting.stdout) == (2, b"")
            assert waiting.stderr.decode().splitlines() == [
                f"rse: waiting for process {holder.pid}, which is writing to the store {files.root}/.rse",
                f"rse: the store {files.root}/.rse is being written by process {holder.pid}: try again later",
            ]
        holder.kill()
    assert list_state(read_rows(files.root / ".rse")) == before
