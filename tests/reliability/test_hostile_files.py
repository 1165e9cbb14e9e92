"""Every damaged and hostile file there is: none stops a run."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Result
from tests.make_bad_files import write_bad_files
from tests.reliability.conftest import Faults
from tests.reliability.store_checks import list_state, read_rows
from tests.reliability.victims import start_victim
from tests.test_bad_files import check_run


def test_no_bad_file_stops_a_run(tmp_path: Path, home: Path, model: Path, faults: Faults) -> None:
    """A file survived if the store or the report says what became of it."""
    root, store = tmp_path / "bad", tmp_path / "store"
    made = write_bad_files(root)
    victim = start_victim(root, home, ["ingest", "--store", store, "--model", model, "--read-timeout", "5"])
    code = victim.finish(seconds=1800)
    done = Result(code, victim.stdout, victim.stderr.decode())
    check_run(done, store, made)
    known = list_state(read_rows(store))
    for kind, paths in made.items():
        for path in paths:
            with faults.attempt("bad file", kind):
                relative = path.relative_to(root).as_posix()
                assert relative in known or is_reported(relative, done.stderr)


def is_reported(path: str, stderr: str) -> bool:
    """Names are shown with their controls made visible, so that only what comes before them can be looked for."""
    plain = path.encode("ascii", "replace").decode().split("?")[0].split("\n")[0].split("\x1b")[0].split("\t")[0]
    return f"skipped {plain}" in stderr
