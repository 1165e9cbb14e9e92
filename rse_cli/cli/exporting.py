"""The picture as SVG and HTML, each one file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from rse_cli.cli.glyphs import UNICODE
from rse_cli.errors import RseError

_FONT_FACE = re.compile(r"@font-face\s*{[^}]*}\s*")

# Few fonts have eighths of a block from the right, so a file shows what is left of the cell, in reverse.
_REVERSED = {ord(sign): UNICODE.right[6 - at] for at, sign in enumerate(UNICODE.left[:-1])}


def export_picture(lines: Sequence[Text], width: int, *, svg: str | None, html: str | None) -> None:
    """Write lines to the files asked for.

    Raises
    ------
    RseError
        If a file can't be written.
    """
    console = Console(
        file=StringIO(), record=True, width=width, color_system="truecolor", force_terminal=True, legacy_windows=False
    )
    for line in lines:
        console.print(reverse_eighths(line), no_wrap=True, crop=True, highlight=False, markup=False, emoji=False)
    if html is not None:
        _write(html, console.export_html(inline_styles=True, clear=False))
    if svg is not None:
        _write(svg, _strip_fonts(console.export_svg(title="rse inspect", clear=False)))


def reverse_eighths(line: Text) -> Text:
    """Return a line whose eighths from the right are drawn as their complement in reverse.

    Examples
    --------
    >>> reverse_eighths(Text("🮇█")).markup
    '[reverse]▊[/reverse]█'
    """
    plain = line.plain
    places = [at for at, sign in enumerate(plain) if ord(sign) in _REVERSED]
    if not places:
        return line
    changed = line.copy()
    changed.plain = plain.translate(_REVERSED)
    # Setting the text drops styles beyond its end only; its length is the same.
    for at in places:
        changed.stylize("reverse", at, at + 1)
    return changed


def _strip_fonts(svg: str) -> str:
    """Leave out the fonts that a viewer would download."""
    return _FONT_FACE.sub("", svg)


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as fault:
        raise RseError(f"can't write {name}: {fault.strerror or fault}") from fault
