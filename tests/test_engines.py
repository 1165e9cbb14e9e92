"""Which engines an ingest has; what workers of Ray do is tested by `make test-scale`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import Run


def test_an_engine_that_there_is_not_is_refused(rse: Run, tmp_path: Path) -> None:
    refused = rse("ingest", "--engine", "dask", cwd=tmp_path)

    assert (refused.code, refused.stdout) == (2, b"")
    assert refused.stderr == "rse: --engine must be local or ray, not 'dask'\n"


def test_without_the_extra_a_line_says_what_to_install_and_no_index_is_made(
    rse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)

    refused = rse("ingest", "--engine", "ray", cwd=tmp_path)

    assert (refused.code, refused.stdout) == (2, b"")
    assert refused.stderr == "rse: --engine ray needs the extra `ray`: run `pip install 'rse-cli[ray]'`\n"
    assert list(tmp_path.iterdir()) == []
