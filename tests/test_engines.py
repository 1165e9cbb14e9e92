"""Which engines an ingest has; what workers of Ray do is tested by `make test-scale`."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from rse_cli.adapters.ray_engine import check_address
from rse_cli.errors import RseError
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


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_a_cluster_that_does_not_answer_is_one_line(form: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = form.format(taken.getsockname()[1])
        # Bound, but it doesn't listen.
        with pytest.raises(
            RseError, match=f"^no Ray cluster answers at {address}: .*: start it, or correct RAY_ADDRESS$"
        ):
            check_address(address)


def test_an_address_that_answers_or_is_of_another_form_is_left_to_ray() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_address(f"127.0.0.1:{server.getsockname()[1]}")
    check_address("auto")
