"""Counts faults tried and survived, and writes the table of them at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.tiny_models import write_model

HEADING = """# What an index survives

Faults done to `rse` on purpose, and how many of them it survived: the store opened, every acknowledged file was there
whole and no file by half, the next run ended equal to a fresh build, and one line said what was wrong where something
was. Written by `make test-reliability`.

| kind | fault | tried | survived |
|---|---|---:|---:|
"""


@dataclass(slots=True)
class Faults:
    """Counts of [tried, survived] by kind and fault, in the order of their first appearance."""

    counts: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    @contextmanager
    def attempt(self, kind: str, fault: str) -> Iterator[None]:
        """Count what happens inside: it survived if nothing is raised."""
        count = self.counts.setdefault((kind, fault), [0, 0])
        count[0] += 1
        yield
        count[1] += 1

    def render(self) -> str:
        rows = [
            f"| {kind} | {fault} | {tried} | {survived} |" for (kind, fault), (tried, survived) in self.counts.items()
        ]
        tried, survived = (sum(count[at] for count in self.counts.values()) for at in (0, 1))
        return HEADING + "\n".join([*rows, f"| **all** | | **{tried}** | **{survived}** |"]) + "\n"


COUNTED = pytest.StashKey[Faults]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=20, help="How often to kill an ingest.")
    parser.addoption("--seed", type=int, default=0, help="What the dice begin with.")
    parser.addoption("--report", type=Path, help="Where to write the table of faults.")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COUNTED] = Faults()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    faults = config.stash[COUNTED]
    if not faults.counts:
        return
    terminalreporter.section("faults tried and survived")
    terminalreporter.write_line(
        faults.render()[len(HEADING) - len("| kind | fault | tried | survived |\n|---|---|---:|---:|\n") :]
    )
    if config.option.report:
        config.option.report.write_text(faults.render(), encoding="utf-8")


@pytest.fixture
def faults(pytestconfig: pytest.Config) -> Faults:
    return pytestconfig.stash[COUNTED]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model so small that encoding takes no time."""
    return write_model(tmp_path_factory.mktemp("model") / "tiny")
