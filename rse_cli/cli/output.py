"""Where text goes: results to stdout, everything else to stderr; what a terminal may be sent."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from rse_cli.errors import RseError

# C0 but for tab and line end, DEL, C1, and what reorders or hides text: bidi controls, zero-width characters, tags.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def make_visible(text: str) -> str:
    r"""Return `text` with controls and bidi marks as pictures or escapes, so that no file drives the terminal.

    Line ends become ``\n``; tabs stay.

    Examples
    --------
    >>> make_visible("a\r\nb\x1b[31m\u202ec")
    'a\nb␛[31m<U+202E>c'
    """
    return _HIDDEN.sub(_picture, text.replace("\r\n", "\n"))


def make_visible_line(text: str) -> str:
    r"""Return `text` for one line: as `make_visible`, with line ends and tabs as pictures too.

    Examples
    --------
    >>> make_visible_line("a\nb")
    'a␊b'
    """
    return re.sub("[\t\n]", _picture, make_visible(text))


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"


def name_count(count: int, noun: str) -> str:
    """Return how many there are of something.

    Examples
    --------
    >>> name_count(1, "chunk"), name_count(2_000, "chunk")
    ('1 chunk', '2,000 chunks')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def say(message: str) -> None:
    """Write a line to stderr; a closed stderr is no reason to fail."""
    with suppress(OSError, ValueError):
        sys.stderr.write(encode_for(sys.stderr, make_visible(message)) + "\n")
        sys.stderr.flush()


def write_result(text: str) -> None:
    """Write text to stdout in its own encoding; what that lacks is escaped."""
    with _explain_failure():
        sys.stdout.write(encode_for(sys.stdout, text))


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout as they are: JSON is UTF-8, and file names are what the system says."""
    with _explain_failure():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


@contextmanager
def _explain_failure() -> Iterator[None]:
    """Turn a full disk or the like into one line; a reader that has gone is no failure."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise RseError(f"can't write the output: {fault.strerror or fault}") from fault


def encode_for(stream: TextIO, text: str) -> str:
    """Return `text` with escapes for what the stream's encoding lacks."""
    encoding = stream.encoding or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def dump_json(document: Mapping[str, Any], *, line: bool = False) -> bytes:
    """Return a document as JSON in UTF-8 with a line end; on one line for JSON lines.

    What `make_visible` shows otherwise is escaped: read back it is the same, but no terminal obeys it, and no reader
    that takes U+2028 for a line end is misled.

    Raises
    ------
    ValueError
        If a number is not finite: no reader of JSON would take it.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=None if line else 2)
    return _HIDDEN.sub(_escape, text).encode("utf-8", "replace") + b"\n"


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match.group()).strip('"')


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can show more than plain lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colour(stream: TextIO) -> bool:
    """Whether colour is welcome there: a terminal, and no ``NO_COLOR``."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def flush_streams() -> None:
    """Flush both streams, as the process ends without the interpreter's own shutdown."""
    with _explain_failure():
        sys.stdout.flush()
    with suppress(OSError, ValueError):
        sys.stderr.flush()


def discard_stdout() -> None:
    """Point stdout nowhere after its reader has gone, so that no later flush complains."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
