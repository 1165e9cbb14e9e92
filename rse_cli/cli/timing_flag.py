"""The flag ``--timings``, the same for every command, and what it prints."""

from __future__ import annotations

from typing import Annotated

import typer

from rse_cli.cli.output import say
from rse_cli.timings import start_timings, stop_timings


def _start(wanted: bool) -> None:
    if wanted:
        start_timings()


Timings = Annotated[bool, typer.Option("--timings", help="Say on stderr where the time went.", callback=_start)]


def report_timings() -> None:
    """Say on one line of stderr how long each stage took, in seconds; nothing without ``--timings``."""
    total, seconds = stop_timings()
    if seconds:
        stages = ", ".join(f"{name} {one:.3f}" for name, one in seconds.items())
        say(f"rse: {total:.3f} s: {stages}")
