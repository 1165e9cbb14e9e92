"""Whole ingests in this process, with which a driven one is compared."""

from __future__ import annotations

import shutil
from pathlib import Path

from rse_cli.adapters.manifest import read_manifest
from tests.reliability.driver import use_numpy_without_comparison
from tests.reliability.store_checks import find_faults, list_differences, read_rows


def check_against_fresh_build(root: Path, store: Path, model: Path, place: Path) -> None:
    """Require that a store holds exactly what one that is made now does."""
    from rse_cli.cli.ingesting import IngestFlags, run_ingest

    use_numpy_without_comparison()
    shutil.rmtree(place, ignore_errors=True)
    run_ingest([root], IngestFlags(choice={"model": str(model)}, store=str(place), jobs=1, progress=False))
    problems = [*find_faults(read_rows(store)), *list_differences(store, place)]
    assert not problems, problems[:5]
    statistics = read_manifest(store).statistics
    assert statistics is not None and statistics.settled, "maintenance was left undone"
    shutil.rmtree(place)
