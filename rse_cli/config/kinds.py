"""What a setting can be: how it is read from TOML or a flag, and from the text of a variable or ``--set``."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable
from itertools import islice
from typing import Any

from rse_cli.dataclass import dataclass

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}
"""Decimal units as in SI, binary ones as in IEC 80000-13."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value.

    Parameters
    ----------
    expects : str
        What to write after "must be".
    read : callable
        Takes a value of any type and returns the setting.
    parse : callable
        The same for a text.
    merge : bool
        Whether a stronger value is added to a weaker one, name by name, instead of taking its place.
    names : tuple of str
        What a choice is between.

    `read` and `parse` raise `ValueError` for what they don't expect.
    """

    expects: str
    read: Callable[[Any], Any]
    parse: Callable[[str], Any]
    merge: bool = False
    names: tuple[str, ...] = ()


def make_whole(least: int | None = None) -> Kind:
    """Return the kind of whole numbers, from `least` up."""

    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or (least is not None and value < least):
            raise ValueError(value)
        return value

    expects = "a whole number" + ("" if least is None else f" of at least {least}")
    return Kind(expects, read, lambda text: read(int(text)))


def make_number(least: float = -math.inf, most: float = math.inf) -> Kind:
    """Return the kind of finite numbers in [least, most]."""

    def read(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(value)
        if not (math.isfinite(value) and least <= value <= most):
            raise ValueError(value)
        return float(value)

    expects = "a number" if least == -math.inf else f"a number from {least} to {most}"
    return Kind(expects, read, lambda text: read(float(text)))


def make_choice(*names: str) -> Kind:
    """Return the kind that is one of some names."""

    def read(value: Any) -> str:
        if value not in names:
            raise ValueError(value)
        return str(value)

    return Kind(f"{', '.join(names[:-1])} or {names[-1]}", read, read, names=names)


def _read_text(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError(value)
    return value


def _read_texts(value: Any) -> tuple[str, ...]:
    """Take one text for a list of one."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple):
        raise ValueError(value)
    return tuple(_read_text(each) for each in values)


def _read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)
    return value


def _parse_flag(text: str) -> bool:
    """Take what git takes for a boolean variable."""
    word = text.lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError(text)


def _read_limits(value: Any) -> dict[str, float]:
    """Take names with numbers: a table of a file, or the texts ``name=number`` of a flag."""
    if isinstance(value, dict):
        return {name: NUMBER.read(limit) for name, limit in value.items()}
    if not isinstance(value, list | tuple):
        raise ValueError(value)
    limits = {}
    for text in value:
        name, equals, limit = _read_text(text).partition("=")
        if not equals:
            raise ValueError(text)
        limits[name.strip()] = NUMBER.parse(limit)
    return limits


def _read_size(value: Any) -> int:
    """Take bytes, or a text with a unit."""
    if isinstance(value, str):
        match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([KMG]I?)?B?", value.strip().upper())
        if not match:
            raise ValueError(value)
        value = int(float(match[1]) * _UNITS[match[2] or ""])
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(value)
    return value


def show_value(value: Any) -> str:
    """Return a value as TOML writes it, shortened where it is long.

    Examples
    --------
    >>> show_value("high"), show_value({"hit": "all"}), show_value([1, True])
    ("'high'", "{ hit = 'all' }", '[1, true]')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict) and value:
        pairs = [f"{name} = {show_value(one)}" for name, one in islice(value.items(), _SHOWN)]
        return f"{{ {', '.join([*pairs, '…'] if len(value) > _SHOWN else pairs)} }}"
    if isinstance(value, list | tuple) and value:
        texts = [show_value(one) for one in value[:_SHOWN]]
        return f"[{', '.join([*texts, '…'] if len(value) > _SHOWN else texts)}]"
    return reprlib.repr(value)


_SHOWN = 6
"""Values of a list or a table in a message."""

WHOLE = make_whole()
NUMBER = make_number()
TEXT = Kind("a text", _read_text, _read_text)
TEXTS = Kind("a list of texts", _read_texts, lambda text: _read_texts([part.strip() for part in text.split(",")]))
FLAG = Kind("true or false", _read_flag, _parse_flag)
LIMITS = Kind(
    "limits by metric, such as recall=0.9", _read_limits, lambda text: _read_limits(text.split(",")), merge=True
)
SIZE = Kind("a number of bytes, or a text such as 50MB", _read_size, _read_size)
