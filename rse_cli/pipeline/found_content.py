"""Reading a found file, and no other that was put in its place since."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack

from rse_cli.ports import FoundFile

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
"""On Linux a folder that may be entered but not listed can be gone through too."""

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""A pipe opens at once; that it is none is seen afterwards."""


def read_content(file: FoundFile) -> bytes:
    """Return the bytes of a file, going down from the root without following a link.

    Parameters
    ----------
    file : FoundFile
        As the walk found it: where it was a link, with what that led to.

    Raises
    ------
    FileNotFoundError
        If it is gone; also if it, or a folder above it, is a link or anything else by now: the next walk looks at that.
    OSError
        If it can't be read.
    """
    root = str(file.location).removesuffix(file.path) or "."
    *folders, name = (file.target or file.path).split("/")
    with ExitStack() as opened:
        place = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
        opened.callback(os.close, place)
        for folder in folders:
            place = _open_step(folder, _FOLDER, place)
            opened.callback(os.close, place)
        place = _open_step(name, _FILE, place)
        opened.callback(os.close, place)
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise FileNotFoundError(file.path)
        with open(place, "rb", closefd=False) as content:
            return content.read()


def _open_step(name: str, flags: int, place: int) -> int:
    """Open an entry of a folder that is open."""
    try:
        return os.open(name, flags, dir_fd=place)
    except OSError:
        if stat.S_ISLNK(os.lstat(name, dir_fd=place).st_mode):
            raise FileNotFoundError(name) from None
        raise
