"""The name that was meant: what a message about an unknown name suggests."""

from __future__ import annotations

from collections.abc import Iterable


def find_nearest(name: str, known: Iterable[str], nearness: float = 0.6) -> str | None:
    """Return the known name that `name` is most like, or None where none has that share of letters in common with it.

    Case doesn't count, nor does a dash for an underscore.

    Examples
    --------
    >>> find_nearest("Find-all", ["precision", "find_all"])
    'find_all'
    >>> find_nearest("colour", ["precision", "find_all"]) is None
    True
    """
    import difflib

    spellings = {_fold(each): each for each in known}
    near = difflib.get_close_matches(_fold(name), spellings, 1, nearness)
    return spellings[near[0]] if near else None


def suggest_name(name: object, known: Iterable[str]) -> str:
    """Return what a message about an unknown name ends with: a question, or nothing where no known name is near.

    Examples
    --------
    >>> suggest_name("balancd", ["precision", "balanced"])
    "; did you mean 'balanced'?"
    >>> suggest_name(7, ["precision", "balanced"])
    ''
    """
    near = find_nearest(name, known) if isinstance(name, str) else None
    return f"; did you mean {near!r}?" if near else ""


def _fold(name: str) -> str:
    return name.replace("-", "_").lower()
