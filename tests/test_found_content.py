"""What is read is what the walk found: nothing that was put in its place since leads out of the root."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rse_cli.adapters.discovery import discover_files
from rse_cli.adapters.found_files import Selection
from rse_cli.cli import ingesting
from rse_cli.pipeline.found_content import read_content
from rse_cli.ports import FoundFile
from tests.conftest import Run

SECRET = "The secret of the pump.\n"


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside of the root that mirrors what lies in it."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "deep").mkdir()
    for name in ("pump.md", "deep/roses.txt"):
        (folder / name).write_text(SECRET)
    return folder


def swap_file(docs: Path, outside: Path) -> str:
    (docs / "pump.md").unlink()
    (docs / "pump.md").symlink_to(outside / "pump.md")
    return "docs/pump.md"


def swap_folder(docs: Path, outside: Path) -> str:
    shutil.rmtree(docs / "deep")
    (docs / "deep").symlink_to(outside / "deep")
    return "docs/deep/roses.txt"


def swap_for_a_link_inside(docs: Path, _outside: Path) -> str:
    (docs / "pump.md").unlink()
    (docs / "pump.md").symlink_to("lamp.txt")
    return "docs/pump.md"


def swap_for_a_pipe(docs: Path, _outside: Path) -> str:
    (docs / "pump.md").unlink()
    os.mkfifo(docs / "pump.md")
    return "docs/pump.md"


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("swap", [swap_file, swap_folder, swap_for_a_link_inside, swap_for_a_pipe])
def test_a_file_swapped_between_the_walk_and_the_read_counts_as_gone(
    documents: Path,
    rse: Run,
    outside: Path,
    monkeypatch: pytest.MonkeyPatch,
    swap: Callable[[Path, Path], str],
    is_known: bool,
) -> None:
    docs = documents / "docs"
    if is_known:
        rse("ingest", "docs", cwd=documents)
        for path in (docs / "pump.md", docs / "deep" / "roses.txt"):
            path.write_text("Changed.\n")
    swapped: list[str] = []
    carry_out = ingesting.carry_out

    def swap_first(*arguments: object) -> object:
        swapped.append(swap(docs, outside))
        return carry_out(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ingesting, "carry_out", swap_first)
    done = rse("ingest", "docs", "--json", cwd=documents)

    assert (done.code, done.json["removed"]) == (0, swapped if is_known else [])
    assert swapped[0] not in done.json["new"] + done.json["changed"]
    shown = rse("query", "--min-confidence", "0", "secret of the pump", cwd=documents).text
    assert SECRET.strip() not in shown


def find_link(root: Path) -> FoundFile:
    return next(file for file in discover_files(root, [root], Selection(), root / ".rse").files if file.path == "a.md")


def test_a_link_is_read_as_the_file_that_it_led_to(tmp_path: Path, outside: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "b.md").write_text("Inside.\n")
    (tmp_path / "a.md").symlink_to(".hidden/b.md")
    found = find_link(tmp_path)
    assert read_content(found) == b"Inside.\n"

    (tmp_path / "a.md").unlink()
    (tmp_path / "a.md").symlink_to(outside / "pump.md")
    assert read_content(found) == b"Inside.\n"

    (tmp_path / ".hidden" / "b.md").unlink()
    (tmp_path / ".hidden" / "b.md").symlink_to(outside / "pump.md")
    with pytest.raises(FileNotFoundError):
        read_content(found)


def test_reading_leaves_no_file_open(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.md").write_text("Text.\n")
    found = discover_files(tmp_path, [tmp_path], Selection(), tmp_path / ".rse").files[0]
    before = os.listdir("/dev/fd")  # noqa: PTH208

    assert read_content(found) == b"Text.\n"
    (tmp_path / "a" / "b.md").unlink()
    with pytest.raises(FileNotFoundError):
        read_content(found)

    assert os.listdir("/dev/fd") == before  # noqa: PTH208
