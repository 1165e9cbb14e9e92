"""Environment variables of our own: which there are, and which one somebody meant who misspelt it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rse_cli.core.spelling import find_nearest

PREFIX = "RSE_"
STORE_VARIABLE = "RSE_STORE"

_NEARNESS = 0.8
"""Of a misspelt name to the one that was meant: one letter in five may be wrong. Other programs may use the prefix too,
so a name that is like none of ours is left alone."""


def name_variable(key: str) -> str:
    """Return the variable that sets a key.

    Examples
    --------
    >>> name_variable("max_chars")
    'RSE_MAX_CHARS'
    """
    return PREFIX + key.upper()


def list_misspelt(environ: Mapping[str, str], known: Iterable[str]) -> list[str]:
    """Return a fault for each variable that is nearly one of ours.

    Parameters
    ----------
    environ : mapping
        The environment; an empty variable counts as none.
    known : iterable of str
        The names of our variables.

    Examples
    --------
    >>> list_misspelt({"RSE_PRESSET": "precision", "RSE_ELSEWHERE": "1"}, ["RSE_PRESET", "RSE_LIMIT"])
    ["RSE_PRESSET: unknown variable; did you mean 'RSE_PRESET'?"]
    """
    bare = {name.removeprefix(PREFIX): name for name in known}
    faults = []
    for name in sorted(environ):
        upper = name.upper()
        if not environ[name] or not upper.startswith(PREFIX) or name in bare.values():
            continue
        near = find_nearest(upper.removeprefix(PREFIX), bare, _NEARNESS)
        if near:
            faults.append(f"{name}: unknown variable; did you mean {bare[near]!r}?")
    return faults
