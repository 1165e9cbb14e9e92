"""The paths that a command was given: where they lie, and which folder holds them all."""

# os.path, since realpath and commonpath have no equal in pathlib.
# ruff: noqa: PTH100, PTH110, PTH112, PTH118, PTH120

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rse_cli.errors import UsageError


def choose_root(paths: Sequence[Path], cwd: Path) -> Path:
    """Choose the root of a new store when no folder above has one.

    Parameters
    ----------
    paths : sequence of Path
        What is to be indexed, relative to `cwd` or absolute; none: `cwd` itself.
    cwd : Path
        The current folder.

    Returns
    -------
    Path
        `cwd` if all paths lie in it, else the deepest folder that holds them all; a single folder is itself. Links are
        resolved, but for a link to a file, which lies where it stands.
    """
    here = os.path.realpath(cwd)
    folders = []
    for path in paths:
        place, is_folder = resolve_place(os.path.join(here, path))
        folders.append(place if is_folder else os.path.dirname(place))
    common = os.path.commonpath(folders) if folders else here
    return Path(here if os.path.commonpath([common, here]) == here else common)


def place_paths(root: str, paths: Sequence[Path]) -> list[tuple[str, bool]]:
    """Find the given paths in the root.

    Parameters
    ----------
    root : str
        The root, resolved.
    paths : sequence of Path
        Relative to the current folder or absolute.

    Returns
    -------
    list of (str, bool)
        For each distinct one its path from the root ("" for the root) and whether it is a folder.

    Raises
    ------
    UsageError
        If some don't exist, or some lie outside the root; all of them are named.
    """
    missing = [make_printable(str(path)) for path in paths if not os.path.exists(path)]
    if missing:
        raise UsageError(f"no such file or folder: {', '.join(missing)}")
    places = {resolve_place(os.path.abspath(path)): path for path in paths}
    inside = root.rstrip("/") + "/"
    outside = [make_printable(str(path)) for (at, _), path in places.items() if not f"{at}/".startswith(inside)]
    if outside:
        raise UsageError(f"outside the indexed folder {make_printable(root)}: {', '.join(outside)}")
    return [(place[len(inside) :], is_folder) for place, is_folder in places]


def make_printable(path: str) -> str:
    """Return a path with ``\\\\x`` escapes for bytes that aren't UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def resolve_place(path: str) -> tuple[str, bool]:
    """Resolve a path that was given: a folder to what it links to, a file only up to its own name.

    Parameters
    ----------
    path : str
        Absolute; it need not exist.

    Returns
    -------
    (str, bool)
        Where it lies, and whether it is a folder.
    """
    if os.path.isdir(path):
        return os.path.realpath(path), True
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name), False
