"""What lance raises, and what becomes of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rse_cli.adapters.lance_faults import explain_failure
from rse_cli.errors import DamagedStoreError, Terminated
from tests.conftest import clean_environment

ONE_SEARCH_FAILS = """
import sys, threading, time
from rse_cli.__main__ import main
from rse_cli.adapters.lance_snapshot import LanceSnapshot
from rse_cli.adapters.panics import hide_panics
from rse_cli.errors import StoreError

inside = threading.Event()

def go_on_for_long(*arguments):
    with hide_panics():
        inside.set()
        time.sleep(60)

def fail(*arguments):
    inside.wait()
    raise StoreError("the words are lost")

LanceSnapshot.nearest, LanceSnapshot.document_frequencies = go_on_for_long, fail
sys.argv = ["rse", "query", "anchor"]
main()
"""


@pytest.mark.parametrize("signalled", [KeyboardInterrupt, Terminated])
def test_a_signal_while_lance_works_is_no_damage(signalled: type[BaseException]) -> None:
    with pytest.raises(signalled), explain_failure(Path("store")):
        raise OSError(f"External error: {signalled.__name__}: , /registry/lance/src/scanner.rs:10:1")


def test_another_fault_of_lance_is_damage() -> None:
    told = "the store store failed: External error: page 3 is short"
    with pytest.raises(DamagedStoreError, match=told), explain_failure(Path("store")):
        raise OSError("External error: page 3 is short, /registry/lance/src/scanner.rs:10:1")


def test_a_search_that_fails_is_reported_while_another_one_is_inside_lance(indexed_once: Path, home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ONE_SEARCH_FAILS],
        cwd=indexed_once,
        env=clean_environment(home, {"PYTHONPATH": str(Path(__file__).parents[1])}),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "rse: the words are lost\n")
