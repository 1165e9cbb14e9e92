"""The machine fails: a full disk, a store that can't be written or read, a home that is missing, a store that goes.

Each ends with one line that names the path and exit code 2, and the store can still be read.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.conftest import Result, clean_environment
from tests.reliability.builds import check_against_fresh_build
from tests.reliability.conftest import Faults
from tests.reliability.evolving import EvolvingFolder
from tests.reliability.store_checks import find_faults, list_state, read_rows
from tests.reliability.victims import REPO, start_victim

DEFAULT_MODEL = Path("all-MiniLM-L6-v2")


@pytest.fixture
def files(tmp_path: Path, home: Path, pytestconfig: pytest.Config) -> EvolvingFolder:
    """A folder with its index."""
    # Others may enter, for the tests of what they may not do.
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    root = tmp_path / "docs"
    root.mkdir()
    folder = EvolvingFolder(root, random.Random(pytestconfig.option.seed))
    folder.grow(30)
    # The default model, which asks for nobody's consent.
    assert start_victim(root, home, ["ingest"]).finish() == 0
    return folder


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """`mount(*arguments)` gives a place where something is mounted, or skips the test where that is not allowed."""
    places: list[Path] = []

    def mount_at(*arguments: str | Path) -> Path:
        place = tmp_path / f"mounted {len(places)}"
        place.mkdir()
        command = ["mount", *map(str, arguments), str(place)]
        try:
            done = subprocess.run(command, capture_output=True, check=False)
        except FileNotFoundError:
            pytest.skip("no command `mount`")
        if done.returncode:
            pytest.skip("may not mount anything here")
        places.append(place)
        return place

    yield mount_at
    for place in places:
        subprocess.run(["umount", str(place)], check=True)


def run_rse(
    folder: Path,
    home: Path,
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
    prefix: Sequence[str] = (),
) -> Result:
    """Run a command as its users do: after `before` in its process, or by another command."""
    environment = clean_environment(home, {"PYTHONPATH": str(REPO), **(env or {})})
    command = [*prefix, sys.executable, "-m", "rse_cli", *map(str, arguments)]
    done = subprocess.run(
        command,
        cwd=folder,
        env={key: value for key, value in environment.items() if value},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=before,
        timeout=120,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr.decode())


def check_refusal(done: Result, *named: str | Path) -> None:
    """Require one line that names what it is about, and nothing else."""
    assert (done.code, done.stdout, done.stderr.count("\n")) == (2, b"", 1), (done.code, done.stderr)
    assert done.stderr.startswith("rse: ") and all(str(name) in done.stderr for name in named), done.stderr


def check_answers(folder: Path, home: Path, *flags: str | Path, prefix: Sequence[str] = ()) -> Result:
    done = run_rse(folder, home, "query", "the anchor and the buoy", "--json", *flags, prefix=prefix)
    assert done.code in (0, 1), done.stderr
    assert "segments" in done.json
    return done


@pytest.fixture
def nobody(tmp_path: Path, home: Path) -> Sequence[str]:
    """What runs a command as somebody who owns nothing; skips the test where that can't be done."""
    prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    try:
        done = run_rse(tmp_path, home, "--version", prefix=prefix)
    except OSError:
        pytest.skip("no command `setpriv`")
    if done.code:
        pytest.skip("only root may become somebody else, who must be able to run Python")
    return prefix


def test_a_full_disk_ends_an_ingest_with_what_was_finished_kept(
    files: EvolvingFolder, home: Path, model: Path, faults: Faults, mount: Callable[..., Path], tmp_path: Path
) -> None:
    disk = mount("-t", "tmpfs", "-o", "size=4m", "tmpfs")
    store = disk / "store"
    begin = ["ingest", "--store", store, "--model", model, "--jobs", "1"]
    for free in (0, 4_000, 30_000, 100_000, 200_000, 400_000):
        shutil.rmtree(store, ignore_errors=True)
        assert start_victim(files.root, home, begin).finish() == 0
        before = list_state(read_rows(store))
        files.step()
        ballast = disk / "ballast"
        place = os.statvfs(disk)
        ballast.write_bytes(bytes(max(0, place.f_bavail * place.f_frsize - free)))
        with faults.attempt("the disk is full", "while an index is updated"):
            victim = start_victim(files.root, home, ["ingest", "--store", store, "--jobs", "1"])
            code = victim.finish()
            if code:
                check_refusal(Result(code, victim.stdout, victim.stderr.decode()), store, "No space left on device")
            rows = read_rows(store)
            assert find_faults(rows) == []
            assert list_state(rows) in victim.list_states(before)
            check_answers(files.root, home, "--store", store)
            ballast.unlink()
            assert start_victim(files.root, home, ["ingest", "--store", store, "--jobs", "1"]).finish() == 0
            check_against_fresh_build(files.root, store, model, tmp_path / "fresh")


def test_a_full_disk_ends_a_first_ingest(
    files: EvolvingFolder, home: Path, model: Path, faults: Faults, mount: Callable[..., Path], tmp_path: Path
) -> None:
    disk = mount("-t", "tmpfs", "-o", "size=4m", "tmpfs")
    for free in (0, 4_000, 12_000, 20_000, 40_000, 80_000):
        store = disk / f"store {free}"
        place = os.statvfs(disk)
        (disk / "ballast").write_bytes(bytes(max(0, place.f_bavail * place.f_frsize - free)))
        with faults.attempt("the disk is full", "while an index is made"):
            done = run_rse(files.root, home, "ingest", "--store", store, "--model", model)
            if done.code:
                check_refusal(done, store, "No space left on device")
            (disk / "ballast").unlink()
            assert start_victim(files.root, home, ["ingest", "--store", store, "--model", model]).finish() == 0
            check_against_fresh_build(files.root, store, model, tmp_path / "fresh")
        shutil.rmtree(store)


def test_a_limit_on_the_size_of_files_is_one_line(
    files: EvolvingFolder, home: Path, faults: Faults, tmp_path: Path
) -> None:
    for most in (0, 300, 2_000, 20_000):
        files.step()
        before = list_state(read_rows(files.root / ".rse"))
        with faults.attempt("files may not grow", f"above {most:,} bytes"):
            done = run_rse(
                files.root,
                home,
                "ingest",
                before=lambda most=most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
            )
            check_refusal(done, files.root / ".rse", "File too large")
            assert list_state(read_rows(files.root / ".rse")) == before
            check_answers(files.root, home)
    assert start_victim(files.root, home, ["ingest"]).finish() == 0
    check_against_fresh_build(files.root, files.root / ".rse", DEFAULT_MODEL, tmp_path / "fresh")


def test_a_read_only_index_answers_and_says_that_it_can_not_be_updated(
    files: EvolvingFolder, home: Path, faults: Faults, mount: Callable[..., Path]
) -> None:
    files.step()
    place = mount("--bind", files.root)
    done = subprocess.run(["mount", "-o", "remount,bind,ro", str(place)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("may not mount anything read-only here")
    reason = f"can't write the store {place}/.rse: Read-only file system"
    with faults.attempt("the store is read-only", "query answers"):
        check_answers(place, home)
        assert run_rse(place, home, "status").code == 0
        assert run_rse(place, home, "status", "--verify").code == 0
    with faults.attempt("the store is read-only", "query --refresh answers and warns"):
        warned = check_answers(place, home, "--refresh")
        assert warned.stderr.startswith(f"rse: {reason}; this answers from the index as it is\n")
    with faults.attempt("the store is read-only", "ingest is refused"):
        for flags in ([], ["--repair"]):
            assert run_rse(place, home, "ingest", *flags).stderr == f"rse: {reason}\n"
        check_refusal(run_rse(place, home, "ingest", "--rebuild"), place / ".rse", "Read-only file system")
        check_refusal(run_rse(place, home, "ingest", "--store", place / "new"), place / "new", "Read-only file system")


def test_a_store_of_somebody_else_answers_and_can_not_be_changed(
    files: EvolvingFolder, home: Path, faults: Faults, nobody: Sequence[str]
) -> None:
    files.step()
    store = files.root / ".rse"
    before = list_state(read_rows(store))
    with faults.attempt("no permission", "to write: query answers"):
        check_answers(files.root, home, prefix=nobody)
        warned = check_answers(files.root, home, "--refresh", prefix=nobody)
        assert f"can't write the store {store}: Permission denied" in warned.stderr
    with faults.attempt("no permission", "to write: ingest is refused"):
        for flags in ([], ["--rebuild"], ["--repair"], ["--store", files.root / "new"]):
            refused = run_rse(files.root, home, "ingest", *flags, prefix=nobody)
            check_refusal(refused, flags[-1] if len(flags) > 1 else store, "Permission denied")
    assert list_state(read_rows(store)) == before


@pytest.mark.parametrize("part", [".", "manifest.json", "chunks.lance", "chunks.lance/data", "chunks.lance/_versions"])
def test_a_store_that_may_not_be_read_is_named(
    files: EvolvingFolder, home: Path, faults: Faults, nobody: Sequence[str], part: str
) -> None:
    store = files.root / ".rse"
    (store / part).chmod(0)
    for arguments in (["query", "anchor"], ["status"], ["status", "--verify"], ["ingest"], ["inspect", "anchor"]):
        if (arguments, part) == (["status", "--verify"], "chunks.lance/data"):
            continue
        with faults.attempt("no permission", f"to read: {arguments[0]} is refused"):
            refused = run_rse(files.root, home, *arguments, prefix=nobody)
            check_refusal(refused, store, "ermission denied")
            assert f"the store {store}" in refused.stderr


def test_a_missing_home_is_no_failure(files: EvolvingFolder, home: Path, faults: Faults) -> None:
    for name, value in (("is not set", ""), ("does not exist", "/nonexistent"), ("is a file", str(Path(__file__)))):
        with faults.attempt("the home", name):
            done = run_rse(files.root, home, "query", "anchor", "--json", env={"HOME": value})
            assert done.code in (0, 1) and "segments" in done.json
            assert run_rse(files.root, home, "ingest", env={"HOME": value}).code == 0


def test_a_home_of_somebody_else_is_no_failure(
    files: EvolvingFolder, faults: Faults, nobody: Sequence[str], tmp_path: Path
) -> None:
    (tmp_path / "theirs" / ".config" / "rse").mkdir(parents=True)
    (tmp_path / "theirs").chmod(0o700)
    with faults.attempt("the home", "may not be entered"):
        check_answers(files.root, tmp_path / "theirs", prefix=nobody)


def test_a_store_that_is_deleted_under_a_query_is_one_line(files: EvolvingFolder, home: Path, faults: Faults) -> None:
    """The query stops at each step of its way, and the store goes meanwhile."""
    script = (
        "import shutil, sys\n"
        "from rse_cli.adapters.lance_snapshot import LanceSnapshot\n"
        "step = sys.argv[1]\n"
        "original = getattr(LanceSnapshot, step)\n"
        "def delete_first(*arguments):\n"
        "    shutil.rmtree('.rse', ignore_errors=True)\n"
        "    return original(*arguments)\n"
        "setattr(LanceSnapshot, step, delete_first)\n"
        "from rse_cli.__main__ import main\n"
        "sys.argv = ['rse', 'query', 'the anchor and the buoy', '--json']\n"
        # As a command ends: one search may still be at work in its thread when the other has failed.
        "main()\n"
    )
    kept = files.root.parent / "kept"
    shutil.copytree(files.root / ".rse", kept)
    for step in ("nearest", "matching", "document_frequencies", "evidence", "heads", "chunks", "files"):
        with faults.attempt("the store is deleted under a query", f"before {step}"):
            done = subprocess.run(
                [sys.executable, "-c", script, step],
                cwd=files.root,
                env=clean_environment(home, {"PYTHONPATH": str(REPO)}),
                capture_output=True,
                check=False,
            )
            result = Result(done.returncode, done.stdout, done.stderr.decode())
            if result.code == 2:
                check_refusal(result, files.root / ".rse")
            else:
                # What it had opened was enough.
                assert result.code in (0, 1) and "segments" in result.json
        shutil.rmtree(files.root / ".rse", ignore_errors=True)
        shutil.copytree(kept, files.root / ".rse")
