"""What the README shows works: its `rse` commands run, its files of settings are read."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from rse_cli.cli.wiring import read_settings
from tests.conftest import SAMPLE, Run

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def list_commands() -> list[str]:
    """The `rse` commands of console blocks, without comments and what they are piped into."""
    blocks = re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ rse ")]
    return list(dict.fromkeys(re.sub(r"\s+(#|\|).*", "", line) for line in lines))


@pytest.fixture(scope="module")
def folder(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An indexed copy of the sample, with the names that the README speaks of."""
    copy = tmp_path_factory.mktemp("readme") / "sample"
    shutil.copytree(sample, copy, symlinks=True)
    (copy / "docs").mkdir()
    (copy / "docs" / "mast.md").write_text("# Masts\n\nClimb with a harness.\n", encoding="utf-8")
    return copy


def test_the_readme_shows_commands() -> None:
    assert len(list_commands()) >= 12


@pytest.mark.parametrize("command", list_commands())
def test_a_command_of_the_readme_runs(folder: Path, rse: Run, command: str) -> None:
    arguments = shlex.split(command)[1:]
    if ">" in arguments:
        arguments, target = arguments[: arguments.index(">")], arguments[-1]
        done = rse(*arguments, cwd=folder)
        (folder / target).write_bytes(done.stdout)
    else:
        done = rse(*arguments, cwd=folder)
    # A question in general words may find nothing, and files were added: neither is an error.
    assert done.code in (0, 1), done.stderr


def test_the_settings_of_the_readme_are_read(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(\[ingest\].*?)```", README, flags=re.DOTALL)
    (tmp_path / "rse.toml").write_text(example, encoding="utf-8")
    settings = read_settings(tmp_path, {})
    assert settings.ingest["max_size"] == 20_000_000
    assert settings.query["preset"] == "precision"
    assert settings.methods["rse"] == {"segment_cost": 40}


def test_the_sample_lies_where_the_readme_says() -> None:
    assert (SAMPLE / "cases.yaml").exists()
