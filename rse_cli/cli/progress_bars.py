"""Bars on stderr, for a terminal alone: whoever draws them has asked whether it is one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rse_cli.cli.output import has_colour

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


def draw_bars(*columns: ProgressColumn) -> Progress:
    """Return bars with a name before them and columns behind, which go when they are done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(file=sys.stderr, no_color=not has_colour(sys.stderr))
    return Progress(TextColumn("{task.description}"), BarColumn(), *columns, console=console, transient=True)


def draw_counts() -> Progress:
    """Return bars that count, with a note behind (the field `note` of a task) and the time left."""
    from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn

    return draw_bars(MofNCompleteColumn(), TextColumn("{task.fields[note]}"), TimeRemainingColumn())
