"""An index that is updated often stays about as large as a fresh one, and no reader loses what it opened."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rse_cli.adapters import store_upkeep
from rse_cli.adapters.store_folder import TABLE_FOLDER
from tests.conftest import clean_environment
from tests.reliability.conftest import Faults
from tests.reliability.driver import use_numpy_without_comparison
from tests.reliability.evolving import EvolvingFolder
from tests.reliability.victims import REPO

MOST = 1.5
"""How often as large as a fresh index an updated one may be."""


def ingest(files: EvolvingFolder, model: Path, store: Path) -> None:
    from rse_cli.cli.ingesting import IngestFlags, run_ingest

    use_numpy_without_comparison()
    flags = IngestFlags(choice={"model": str(model)}, store=str(store), jobs=1, progress=False)
    run_ingest([files.root], flags)


def measure(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def files(tmp_path: Path, pytestconfig: pytest.Config) -> EvolvingFolder:
    (tmp_path / "docs").mkdir()
    folder = EvolvingFolder(tmp_path / "docs", random.Random(pytestconfig.option.seed))
    folder.grow(30)
    return folder


def test_small_updates_leave_no_waste(
    files: EvolvingFolder, model: Path, faults: Faults, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    store, fresh = tmp_path / "store", tmp_path / "fresh"
    ingest(files, model, store)
    for at in range(1, 2 * pytestconfig.option.kills + 1):
        files.random.choice((files.edit, files.append, files.touch, files.add, files.delete))()
        ingest(files, model, store)
        if at % 20 == 0:
            ingest(files, model, fresh)
            with faults.attempt("20 small updates", f"the index is at most {MOST} times a fresh one"):
                assert measure(store) <= MOST * measure(fresh)
            shutil.rmtree(fresh)


def test_what_a_query_opened_stays_until_it_ends(
    files: EvolvingFolder, model: Path, faults: Faults, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_upkeep, "FRAGMENTS", 1)
    store = tmp_path / "store"
    ingest(files, model, store)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from rse_cli.adapters.lancedb_store import LanceStore\n"
        "from rse_cli.adapters.manifest import read_manifest\n"
        "from rse_cli.ports import make_key\n"
        "folder = Path(sys.argv[1])\n"
        "snapshot = LanceStore(folder, read_manifest(folder)).snapshot()\n"
        "for _ in sys.stdin:\n"
        "    files = [(file.path, file.content_hash) for file in snapshot.files()]\n"
        "    keys = [make_key(number, ord_) for number in range(99) for ord_ in range(99)]\n"
        "    texts = [stored.chunk.text for stored in snapshot.chunks(keys)]\n"
        "    print(hash((*files, *texts, tuple(snapshot.document_frequencies(['anchor', 'buoy'])))), flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(store)],
        env=clean_environment(home, {"PYTHONPATH": str(REPO), "PYTHONHASHSEED": "0"}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdin is not None and reader.stdout is not None

        def ask() -> str:
            assert reader.stdin is not None and reader.stdout is not None
            print(file=reader.stdin, flush=True)
            return reader.stdout.readline()

        first = ask()
        assert first
        for _ in range(10):
            files.step()
            ingest(files, model, store)
            with faults.attempt("old versions are dropped beside a query", "it reads on"):
                assert ask() == first
        reader.stdin.close()
    held = measure(store / TABLE_FOLDER / "data")
    files.step()
    ingest(files, model, store)
    with faults.attempt("old versions are dropped beside a query", "they go when it has ended"):
        assert measure(store / TABLE_FOLDER / "data") < held
