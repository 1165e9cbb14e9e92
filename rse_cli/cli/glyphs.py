"""What the picture is drawn with: signs of Unicode, or of ASCII where stdout takes no others, and text cut to cells."""

from __future__ import annotations

import codecs
import math
import re
from typing import TextIO

from rse_cli.cli.output import make_visible
from rse_cli.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """A set of signs, each one cell wide.

    Parameters
    ----------
    right, left : str
        Parts of a cell filled from the left, for bars that grow to the right, and from the right; the smallest first,
        the full cell last. Those from the right come from Symbols for Legacy Computing (Unicode 13): block elements
        have only eighths from the left.
    levels : str
        Heights of the strip: a value that speaks against its chunk, then seven that speak for it.
    under : str
        Underlines a chosen span.
    zero, fold, top, side, bottom, mark, same : str
        The zero line, a fold, the bracket of a segment, a chosen chunk in a comparison, a row of the block above.
    minus, dash, dots, sep, quotes : str
        In numbers, in ranges, where text was cut, between facts, around a query.
    """

    right: str
    left: str
    levels: str
    under: str
    zero: str
    fold: str
    top: str
    side: str
    bottom: str
    mark: str
    same: str
    minus: str
    dash: str
    dots: str
    sep: str
    quotes: str

    @property
    def ascii(self) -> bool:
        """Whether all text must be ASCII."""
        return self.minus == "-"


UNICODE = Glyphs(
    right="▏▎▍▌▋▊▉█",
    left="▕🮇🮈▐🮉🮊🮋█",
    levels="▁▂▃▄▅▆▇█",
    under="▔",
    zero="│",
    fold="⋮",
    top="┐",
    side="│",
    bottom="┘",
    mark="┃",
    same="″",
    minus="−",
    dash="–",
    dots="…",
    sep=" · ",
    quotes="“”",
)

ASCII = Glyphs(
    right=":#",
    left=":#",
    levels="_.:-=+*#",
    under="^",
    zero="|",
    fold=":",
    top="\\",
    side="|",
    bottom="/",
    mark="#",
    same='"',
    minus="-",
    dash="-",
    dots="...",
    sep=" | ",
    quotes='""',
)


def choose_glyphs(stream: TextIO) -> Glyphs:
    """Return the signs that a stream's encoding can carry."""
    try:
        return UNICODE if codecs.lookup(stream.encoding or "ascii").name.startswith("utf") else ASCII
    except LookupError:
        return ASCII


def show_line(text: str, glyphs: Glyphs) -> str:
    r"""Return text for one line: white space folded, controls visible, for ASCII everything else escaped.

    Examples
    --------
    >>> show_line("a\n\tb\x1b[0m – ü", ASCII)
    'a b<U+001B>[0m \\u2013 \\xfc'
    """
    if not glyphs.ascii:
        return " ".join(make_visible(text).split())
    # The picture of a control would be escaped in its turn, to something that names another character.
    visible = "".join(f"<U+{ord(one):04X}>" if len(make_visible(one)) != 1 or _is_control(one) else one for one in text)
    return " ".join(visible.split()).encode("ascii", "backslashreplace").decode()


def _is_control(character: str) -> bool:
    return (ord(character) < 0x20 and character not in "\t\n\r\x0b\x0c") or character == "\x7f"


def show_name(text: str, glyphs: Glyphs) -> str:
    """Return a path for one line: as `show_line`, but with its white space as it is."""
    from rse_cli.cli.output import make_visible_line

    line = make_visible_line(text)
    return line.encode("ascii", "backslashreplace").decode() if glyphs.ascii else line


def fit(text: str, width: int, glyphs: Glyphs) -> str:
    """Return text cut to at most `width` cells, with dots where something is missing.

    Examples
    --------
    >>> fit("检索结果", 6, UNICODE), fit("short", 5, UNICODE)
    ('检索…', 'short')
    """
    from rich.cells import cell_len

    # No character is narrower than a cell but marks that combine: a long line needn't be measured whole.
    text = text[: 4 * max(width, 0) + 64]
    if cell_len(text) <= width:
        return text
    room = width - len(glyphs.dots)
    if room < 0:
        return glyphs.dots[: max(width, 0)]
    kept, used = [], 0
    for character in text:
        used += cell_len(character)
        if used > room:
            break
        kept.append(character)
    return "".join(kept).rstrip() + glyphs.dots


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return text filled with spaces to `width` cells, on its left with `right`."""
    from rich.cells import cell_len

    room = " " * max(0, width - cell_len(text))
    return room + text if right else text + room


def fix_minus(text: str) -> str:
    """Return text with a proper minus before numbers, but not for the hyphens of words.

    Examples
    --------
    >>> fix_minus("worth -0.02 in top-5")
    'worth −0.02 in top-5'
    """
    return re.sub(r"(?<!\S)-(?=\d)", UNICODE.minus, text)


def format_number(value: float, decimals: int, glyphs: Glyphs, *, signed: bool = False) -> str:
    """Return a number with a proper minus; nan as nothing.

    Examples
    --------
    >>> format_number(-0.5, 2, UNICODE), format_number(0.5, 2, UNICODE, signed=True), format_number(-0.0001, 2, UNICODE)
    ('−0.50', '+0.50', '−0.00')
    """
    if math.isnan(value):
        return ""
    text = f"{value:+.{decimals}f}" if signed else f"{value:.{decimals}f}"
    return text.replace("-", glyphs.minus)
