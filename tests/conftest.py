"""Runs the command line as its users do: as a process, on a pseudo-terminal, and, where speed counts, in this one."""

from __future__ import annotations

import gc
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# As `rse_cli.__main__` does, and before numpy loads: on a busy machine two threads take ten times as long as one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A law holds or doesn't, however busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A shell that starts the tests in the background has them ignore Ctrl-C, which all that they start inherits.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SAMPLE = Path(__file__).parent.parent / "sample_docs"

PUMP = """# Pump manual

## Cleaning

Clean the filter of the pump every spring with warm water, and let it dry in the shade before you put it back. Never use soap on the seal.

## Storage

Drain the pump before the first frost. Keep it dry, above freezing, and away from rats.

## Warranty

The warranty lasts two years from the date on the invoice.
"""

LAMP = "The lamp of the lighthouse turns once in ten seconds.\nIts lens was ground in Paris in 1862.\n"

ROSES = "Roses want sun.\nPrune them in March, above an outward bud.\n"


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8")

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def jsonl(self) -> list[Any]:
        return [json.loads(line) for line in self.stdout.splitlines()]


Run = Callable[..., Result]


def clean_environment(home: Path, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without settings of whoever runs the tests."""
    foreign = ("RSE_", "XDG_CONFIG_HOME", "NO_COLOR", "COLUMNS", "LINES", "_RSE_", "FORCE_COLOR", "PYTHONHASHSEED")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    return {**kept, "HOME": str(home), "TERM": "xterm", **(given or {})}


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home without a configuration."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def rse(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """`rse(*arguments, cwd=…, stdin=…, env=…)` in this process, which spares its start; off a terminal."""

    def run(*arguments: str | Path, cwd: Path, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Result:
        return run_here(monkeypatch, [str(one) for one in arguments], cwd, stdin, clean_environment(home, env))

    yield run
    gc.enable()


def run_here(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], cwd: Path, stdin: bytes, env: dict[str, str]
) -> Result:
    from rse_cli.cli.main import run

    out, err = io.BytesIO(), io.BytesIO()
    terminate = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch:
        patch.chdir(cwd)
        for key in os.environ.keys() - env.keys():
            patch.delenv(key)
        for key, value in env.items():
            patch.setenv(key, value)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8", write_through=True))
        patch.setattr(sys, "stderr", io.TextIOWrapper(err, encoding="utf-8", write_through=True))
        code = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        result = Result(code, out.getvalue(), err.getvalue().decode("utf-8"))
    signal.signal(signal.SIGTERM, terminate)
    return result


@pytest.fixture(scope="session")
def start_rse(home: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """`start_rse(*arguments, cwd=…, env=…)` begins ``python -m rse_cli`` with pipes."""

    def start(
        *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-m", "rse_cli", *map(str, arguments)]
        return subprocess.Popen(command, cwd=cwd, env=clean_environment(home, env), **(pipes | options))

    return start


@pytest.fixture(scope="session")
def rse_process(start_rse: Callable[..., subprocess.Popen[bytes]]) -> Run:
    """`rse_process(*arguments, cwd=…, stdin=…, env=…)` as a process of its own, off a terminal."""

    def run(*arguments: str | Path, cwd: Path, stdin: bytes = b"", **options: Any) -> Result:
        with start_rse(*arguments, cwd=cwd, **options) as process:
            out, err = process.communicate(stdin, timeout=300)
        return Result(process.returncode, out or b"", (err or b"").decode("utf-8"))

    return run


@pytest.fixture(scope="session")
def rse_terminal(home: Path) -> Run:
    """`rse_terminal(*arguments, cwd=…, columns=…, env=…)` on a pseudo-terminal; both streams are in `stdout`."""

    def run(*arguments: str | Path, cwd: Path, columns: int = 80, env: Mapping[str, str] | None = None) -> Result:
        master, slave = pty.openpty()
        environment = clean_environment(home, {"COLUMNS": str(columns), **(env or {})})
        command = [sys.executable, "-m", "rse_cli", *map(str, arguments)]
        with subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=slave, stdout=slave, stderr=slave, close_fds=True
        ) as process:
            os.close(slave)
            shown = b"".join(iter(lambda: read_terminal(master), b""))
        os.close(master)
        return Result(process.returncode, shown.replace(b"\r\n", b"\n"), "")

    return run


def read_terminal(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:
        # Linux says so when the last writer has gone.
        return b""


@pytest.fixture(scope="session")
def indexed_once(tmp_path_factory: pytest.TempPathFactory, rse_process: Run) -> Path:
    """A folder with three documents under ``docs`` and their index; for reading only."""
    folder = tmp_path_factory.mktemp("indexed")
    write_documents(folder)
    assert rse_process("ingest", "docs", cwd=folder).code == 0
    return folder


def write_documents(folder: Path) -> None:
    (folder / "docs" / "deep").mkdir(parents=True)
    (folder / "docs" / "pump.md").write_text(PUMP, encoding="utf-8")
    (folder / "docs" / "lamp.txt").write_text(LAMP, encoding="utf-8")
    (folder / "docs" / "deep" / "roses.txt").write_text(ROSES, encoding="utf-8")


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder with three documents under ``docs``, not indexed yet."""
    write_documents(tmp_path)
    return tmp_path


@pytest.fixture
def indexed(indexed_once: Path, tmp_path: Path) -> Path:
    """A copy of the indexed folder that a test may change."""
    shutil.copytree(indexed_once, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory, rse_process: Run) -> Path:
    """A copy of the sample documents with their index; for reading only."""
    folder = tmp_path_factory.mktemp("sample") / "sample_docs"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns(".rse"))
    done = rse_process("ingest", "--json", cwd=folder)
    assert done.code == 0, done.stderr
    return folder
