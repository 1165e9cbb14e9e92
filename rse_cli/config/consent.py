"""The models from outside a project that the user has named, so that an index may go on using what they chose for it.

An index comes along when a folder is cloned or unpacked, and says which model it was made with. It may not make `rse`
open a folder elsewhere, unless this user has once named that folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_MAX_BYTES = 1_000_000


def locate_consents(environ: Mapping[str, str]) -> Path | None:
    """Return the file of the models named so far, one a line, or None without a home.

    A relative ``XDG_STATE_HOME`` counts as none, as the XDG Base Directory Specification asks.
    """
    base = environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):
        base = f"{environ['HOME']}/.local/state" if environ.get("HOME") else ""
    return Path(base) / "rse" / "models" if base else None


def remember_model(environ: Mapping[str, str], name: str) -> None:
    """Note a model that the user has named; where that can't be written, they will be asked to name it again."""
    path = locate_consents(environ)
    if path is None or "\n" in name or was_named(environ, name):
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(os.fsencode(name) + b"\n")


def was_named(environ: Mapping[str, str], name: str) -> bool:
    """Tell whether the user has named a model before."""
    path = locate_consents(environ)
    if path is None:
        return False
    with suppress(OSError), path.open("rb") as file:
        return os.fsencode(name) in file.read(_MAX_BYTES).split(b"\n")
    return False
