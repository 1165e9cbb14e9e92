"""What comes with somebody else's folder, an index or settings, reads nothing elsewhere and writes nothing elsewhere."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result, Run
from tests.tiny_models import write_model

READING = (["query", "the filter of the pump"], ["inspect", "the filter of the pump"], ["status"])
WRITING = (["ingest"], ["ingest", "--rebuild"], ["query", "--refresh", "the filter of the pump"])


def edit_manifest(store: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((store / "manifest.json").read_text())
    change(manifest)
    (store / "manifest.json").write_text(json.dumps(manifest))


def is_refused(done: Result, line: str) -> bool:
    return (done.code, done.stdout, done.stderr) == (2, b"", f"rse: {line}\n")


# Links


@pytest.mark.parametrize("arguments", [*READING, *WRITING])
@pytest.mark.parametrize(
    "name", ["lock", "manifest.json.new", ".gitignore", "manifest.json", "chunks.lance", "chunks.lance/data"]
)
def test_a_store_that_holds_a_link_is_refused_and_what_it_names_stays_as_it_is(
    indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory, name: str, arguments: list[str]
) -> None:
    victim = tmp_path_factory.mktemp("home") / "victim"
    place = indexed / ".rse" / name
    if place.is_dir():
        shutil.move(place, victim)
    else:
        victim.write_text("precious\n")
        place.unlink(missing_ok=True)
    place.symlink_to(victim)
    before = list_files(victim)

    done = rse(*arguments, cwd=indexed)

    assert is_refused(done, f"{indexed}/.rse holds a link, {place.name}, as no index does: delete that folder")
    assert list_files(victim) == before


@pytest.mark.parametrize("arguments", [READING[0], WRITING[0]])
@pytest.mark.parametrize("name", ["lock", "manifest.json", "chunks.lance/pipe"])
def test_a_pipe_in_a_store_does_not_block(indexed: Path, rse: Run, name: str, arguments: list[str]) -> None:
    place = indexed / ".rse" / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)

    done = rse(*arguments, cwd=indexed)

    assert is_refused(
        done, f"{indexed}/.rse holds a pipe or device, {place.name}, as no index does: delete that folder"
    )


def list_files(place: Path) -> list[tuple[str, int]]:
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    return [(str(path), path.stat().st_mtime_ns) for path in files]


@pytest.mark.parametrize("arguments", [*READING, *WRITING])
def test_a_store_that_may_not_be_looked_into_is_named_itself(
    indexed: Path, rse: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    lstat = Path.lstat

    def refuse(path: Path) -> os.stat_result:
        if path.parent == indexed / ".rse":
            raise PermissionError(13, "Permission denied", str(path))
        return lstat(path)

    # Root, who runs the tests in a container, may look into any folder.
    monkeypatch.setattr(Path, "lstat", refuse)

    assert is_refused(rse(*arguments, cwd=indexed), f"can't read the store {indexed}/.rse: Permission denied")


def test_links_in_a_store_that_was_never_finished_are_refused_too(documents: Path, rse: Run, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("")
    (documents / ".rse").mkdir()
    (documents / ".rse" / ".gitignore").symlink_to(victim)

    assert rse("ingest", cwd=documents).code == 2
    assert victim.read_text() == ""


@pytest.mark.parametrize("arguments", [*READING, *WRITING])
def test_a_store_that_is_a_link_is_refused_unless_it_is_named(
    indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory, arguments: list[str]
) -> None:
    cloned = tmp_path_factory.mktemp("cloned")
    (cloned / ".rse").symlink_to(indexed / ".rse")

    done = rse(*arguments, cwd=cloned)

    assert is_refused(
        done, f"{cloned}/.rse is a link to {indexed}/.rse: if that is meant, name it with --store {cloned}/.rse"
    )
    assert rse("status", "--store", ".rse", cwd=cloned).code == 0


# The root


@pytest.mark.parametrize("arguments", [*READING, *WRITING])
def test_an_index_that_reaches_out_of_its_folder_is_refused_unless_it_is_named(
    indexed: Path, rse: Run, tmp_path_factory: pytest.TempPathFactory, arguments: list[str]
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "secret.txt").write_text("A secret.\n")
    edit_manifest(indexed / ".rse", lambda manifest: manifest.update(root=str(elsewhere)))

    done = rse(*arguments, cwd=indexed)

    assert is_refused(
        done, f"{indexed}/.rse says that it indexes {elsewhere}: if that is meant, name it with --store {indexed}/.rse"
    )
    assert rse("status", "--json", "--store", indexed / ".rse", cwd=indexed).json["root"] == str(elsewhere)


@pytest.mark.parametrize("path", ["../elsewhere", "/etc", "docs/../../elsewhere"])
@pytest.mark.parametrize("arguments", [["status"], ["query", "a secret"], *WRITING[1:]])
def test_sources_of_an_index_that_lie_outside_of_its_root_are_not_read(
    indexed: Path, rse: Run, path: str, arguments: list[str]
) -> None:
    (indexed.parent / "elsewhere").mkdir(exist_ok=True)
    (indexed.parent / "elsewhere" / "secret.txt").write_text("A secret of the kingdom.\n")
    edit_manifest(indexed / ".rse", lambda manifest: manifest["sources"][0].update(path=path))

    done = rse(*arguments, cwd=indexed)

    assert (done.code, done.stdout) == (2, b"")
    assert done.stderr.startswith(f"rse: outside the indexed folder {indexed}: ")


@pytest.mark.parametrize(
    "selection",
    [{"include": 5}, {"exclude": [1]}, {"hidden": "yes"}, {"max_size": "many"}, {"max_size": None}, []],
)
def test_a_selection_that_makes_no_sense_is_a_damaged_index(indexed: Path, rse: Run, selection: object) -> None:
    edit_manifest(indexed / ".rse", lambda manifest: manifest["sources"][0].update(selection=selection))

    done = rse("status", cwd=indexed)

    assert is_refused(done, f"{indexed}/.rse is not a store, or a damaged one: rebuild with `rse ingest --rebuild`")


# The model


@pytest.fixture
def model(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model outside of every project."""
    monkeypatch.setattr("rse_cli.adapters.encoders.choose_backend", lambda _name: "numpy")
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def cloned(documents: Path, model: Path, rse: Run) -> Path:
    """A folder that somebody else has indexed with that model."""
    somebody = {"HOME": str(documents.parent / "somebody")}
    assert rse("ingest", "docs", "--model", model, cwd=documents, env=somebody).code == 0
    return documents


USING = (["query", "frost", "--min-confidence", "0"], ["inspect", "frost"])


@pytest.mark.parametrize("arguments", [*USING, ["query", "--refresh", "frost"], ["ingest"], ["ingest", "--rebuild"]])
def test_a_model_elsewhere_that_only_the_index_names_is_not_loaded(
    cloned: Path, model: Path, rse: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the model was opened")

    (cloned / "docs" / "new.md").write_text("Something new.\n")
    monkeypatch.setattr("rse_cli.adapters.encoders.find_model", refuse)

    done = rse(*arguments, cwd=cloned)

    assert is_refused(
        done,
        f"{cloned}/.rse was made with the model in {model}, outside of {cloned}: if you trust it, "
        f"set RSE_MODEL={model}, or name the index with --store {cloned}/.rse",
    )
    assert rse("status", cwd=cloned).code == 0


def test_the_settings_of_the_folder_are_no_consent(cloned: Path, model: Path, rse: Run) -> None:
    (cloned / "rse.toml").write_text(f"[ingest]\nmodel = '{model}'\n")

    assert rse(*USING[0], cwd=cloned).code == 2


@pytest.mark.parametrize("arguments", USING)
def test_the_user_consents_by_naming_the_index_or_its_model(
    cloned: Path, model: Path, rse: Run, tmp_path: Path, arguments: list[str]
) -> None:
    config = tmp_path / "home" / ".config" / "rse" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[ingest]\ntrusted_models = ['{model}']\n")

    assert rse(*arguments, "--store", ".rse", cwd=cloned).code == 0
    assert rse(*arguments, cwd=cloned, env={"RSE_MODEL": str(model)}).code == 0
    assert rse(*arguments, cwd=cloned, env={"HOME": str(tmp_path / "home")}).code == 0


def test_a_model_that_the_user_has_named_once_needs_no_further_consent(
    documents: Path, model: Path, rse: Run, tmp_path: Path
) -> None:
    env = {"HOME": str(tmp_path / "home")}
    assert rse("ingest", "docs", "--model", model, cwd=documents, env=env).code == 0
    shutil.move(documents / ".rse", tmp_path / "kept")
    shutil.move(tmp_path / "kept", documents / ".rse")

    assert (tmp_path / "home/.local/state/rse/models").read_text() == f"{model}\n"
    assert rse(*USING[0], cwd=documents, env=env).code == 0
    assert rse("ingest", "docs", cwd=documents, env=env).code == 0
    assert rse("ingest", "docs", "--model", model, cwd=documents, env=env).code == 0
    assert (tmp_path / "home/.local/state/rse/models").read_text() == f"{model}\n"


def test_without_a_home_the_model_is_named_again(documents: Path, model: Path, rse: Run) -> None:
    nowhere = {"HOME": ""}
    assert rse("ingest", "docs", "--model", model, cwd=documents, env=nowhere).code == 0

    assert rse(*USING[0], cwd=documents, env=nowhere).code == 2
    assert rse(*USING[0], cwd=documents, env=nowhere | {"RSE_MODEL": str(model)}).code == 0


def test_a_model_inside_the_folder_needs_no_consent(documents: Path, rse: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rse_cli.adapters.encoders.choose_backend", lambda _name: "numpy")
    inside = write_model(documents / "models" / "tiny")
    assert rse("ingest", "docs", "--model", inside, cwd=documents).code == 0

    assert rse(*USING[0], cwd=documents, env={"HOME": str(documents / "nobody")}).code == 0


def test_nothing_is_taken_out_of_an_index_whose_model_may_not_be_loaded(cloned: Path, model: Path, rse: Run) -> None:
    for path in (cloned / ".rse" / "chunks.lance" / "data").iterdir():
        path.write_bytes(path.read_bytes()[:-1000])
    damaged = list_files(cloned / ".rse" / "chunks.lance")

    assert rse("ingest", "--repair", cwd=cloned).code == 2
    assert list_files(cloned / ".rse" / "chunks.lance") == damaged
    assert rse("ingest", "--repair", "--model", model, cwd=cloned).text.startswith("new 0 · changed 3 ")
