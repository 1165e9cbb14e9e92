"""A flipped byte that changes what is read is found, the files it hit are named, and a repair mends those alone."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rse_cli.adapters.lance_faults import is_lance_fault
from rse_cli.adapters.lance_snapshot import hide_panics
from rse_cli.adapters.manifest import read_manifest
from rse_cli.adapters.store_check import Damage, find_damage
from rse_cli.adapters.store_folder import MANIFEST_NAME, TABLE_FOLDER
from rse_cli.errors import DamagedStoreError
from tests.conftest import Run
from tests.reliability.builds import check_against_fresh_build
from tests.reliability.conftest import Faults
from tests.reliability.driver import lower_thresholds, use_numpy_without_comparison
from tests.reliability.evolving import EvolvingFolder

KINDS = {"rows": "data", "a search index": "_indices", "deleted rows": "_deletions", "the version": "_versions"}


@pytest.fixture
def files(tmp_path: Path, model: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> EvolvingFolder:
    """A folder and its store, which has gone through some changes: pieces, deleted rows, indexes, a vector index."""
    lower_thresholds(lambda module, name, value: monkeypatch.setattr(f"{module}.{name}", value))
    monkeypatch.setattr("rse_cli.adapters.store_upkeep.WASTE", 9.0)
    monkeypatch.setattr("rse_cli.adapters.store_upkeep.FRAGMENTS", 99)
    use_numpy_without_comparison()
    (tmp_path / "docs").mkdir()
    folder = EvolvingFolder(tmp_path / "docs", random.Random(pytestconfig.option.seed))
    folder.grow(60)
    ingest(folder, model)
    for _ in range(4):
        folder.step()
        ingest(folder, model)
    return folder


def ingest(files: EvolvingFolder, model: Path) -> None:
    from rse_cli.cli.ingesting import IngestFlags, run_ingest

    run_ingest([files.root], IngestFlags(choice={"model": str(model)}, jobs=1, progress=False))


def look(store: Path) -> Damage | None:
    """Return what is found, None where the table can't be opened at all."""
    try:
        return find_damage(store, read_manifest(store))
    except DamagedStoreError:
        return None


def read_all(store: Path) -> dict[tuple[str, int], dict[str, Any]] | None:
    """Return every row by path and number, apart from the code that is tested; None if that fails."""
    import lance

    try:
        with hide_panics():
            table: pa.Table = lance.dataset(str(store / TABLE_FOLDER)).to_table()
            return {(row["path"], row["ord"]): row for row in table.to_pylist()}
    except BaseException as fault:
        if not is_lance_fault(fault):
            raise
        return None


@contextmanager
def flip(path: Path, dice: random.Random) -> Iterator[None]:
    """Change one bit of a file for a while; half of the time near its end, where it says what lies where."""
    data = path.read_bytes()
    at = dice.randrange(max(0, len(data) - 8000), len(data)) if dice.random() < 0.5 else dice.randrange(len(data))
    flipped = bytearray(data)
    flipped[at] ^= 1 << dice.randrange(8)
    path.write_bytes(flipped)
    try:
        yield
    finally:
        path.write_bytes(data)


def test_every_flipped_bit_that_changes_what_is_read_is_found_and_its_files_are_named(
    files: EvolvingFolder, faults: Faults, pytestconfig: pytest.Config
) -> None:
    store = files.root / ".rse"
    whole = look(store)
    before = read_all(store)
    assert whole is not None and whole.is_whole and before is not None
    assert whole.n_rows == len(before)
    for kind, folder in KINDS.items():
        places = sorted(path for path in (store / TABLE_FOLDER / folder).rglob("*") if "hint" not in path.name)
        places = [path for path in places if path.is_file()]
        assert places, f"nothing of {kind}"
        for _ in range(pytestconfig.option.kills * (5 if kind == "rows" else 1)):
            with flip(files.random.choice(places), files.random):
                after = read_all(store)
                if after == before and kind == "rows":
                    continue
                with faults.attempt("a bit is flipped", f"in {kind}"):
                    check_found(look(store), kind, before, after)
    assert look(store) == whole


def check_found(found: Damage | None, kind: str, before: dict[Any, Any], after: dict[Any, Any] | None) -> None:
    if found is None or found.beyond_repair:
        # The description of the version can't be read, or what it says can't be trusted.
        assert kind in ("the version", "deleted rows")
        return
    assert not found.is_whole
    if kind == "a search index":
        assert (found.files, len(found.indexes)) == ({}, 1)
    elif after is not None:
        hit = {path for path, ord_ in before if before[path, ord_] != after.get((path, ord_))}
        assert hit <= found.files.keys()
    else:
        assert found.fragments and not found.unnamed
        assert found.files.keys() <= {path for path, _ in before}


def test_a_manifest_with_another_number_is_found(files: EvolvingFolder, faults: Faults) -> None:
    path = files.root / ".rse" / MANIFEST_NAME
    text = path.read_text()
    with faults.attempt("a bit is flipped", "in the manifest"):
        path.write_text(text.replace('"n_chunks": ', '"n_chunks": 1'))
        found = look(files.root / ".rse")
        assert found is not None and found.beyond_repair


def test_a_repair_rebuilds_what_is_damaged_and_leaves_the_rest(
    files: EvolvingFolder, model: Path, faults: Faults, tmp_path: Path, pytestconfig: pytest.Config, rse: Run
) -> None:
    store, kept = files.root / ".rse", tmp_path / "kept"
    shutil.copytree(store, kept)
    done = 0
    while done < pytestconfig.option.kills // 5:
        shutil.rmtree(store)
        shutil.copytree(kept, store)
        folder = files.random.choice(("data", "data", "data", "_indices"))
        place = files.random.choice(sorted((store / TABLE_FOLDER / folder).rglob("*.lance")))
        keep = flip(place, files.random)
        keep.__enter__()
        found = look(store)
        assert found is not None
        if found.is_whole:
            continue
        done += 1
        with faults.attempt("a bit is flipped", "and a repair mends that alone"):
            repaired = rse("ingest", "--repair", "--json", cwd=files.root, env={"RSE_MODEL": str(model)})
            assert (repaired.code, repaired.json["changed"]) == (0, list(found.files)), repaired.stderr
            assert repaired.json["removed"] == []
            again = look(store)
            assert again is not None and again.is_whole
            check_against_fresh_build(files.root, store, model, tmp_path / "fresh")
