"""Models that run in sentence-transformers, whose libraries can download: with files at hand they open no connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.no_network import IS_AVAILABLE
from tests.reliability.conftest import Faults
from tests.test_offline import run_fenced
from tests.tiny_models import write_model


@pytest.mark.skipif(not IS_AVAILABLE, reason="no fence for this system")
@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_model_in_a_folder_opens_no_connection(documents: Path, home: Path, faults: Faults, pooling: str) -> None:
    """The first is compared with sentence-transformers, the second runs in it."""
    model = write_model(documents.parent / f"model-{pooling}", pooling=pooling)
    with faults.attempt("network", f"every connection forbidden, {pooling} pooling"):
        made = run_fenced(documents, home, "ingest", "docs", "--model", model)
        found = run_fenced(documents, home, "query", "frost", "--min-confidence", "0", "-l")

        assert (made.returncode, made.stderr) == (0, "")
        assert (found.returncode, found.stderr) == (0, "")
