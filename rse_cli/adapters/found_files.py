"""What a walk takes: the files that can be indexed, and the reasons why others can't."""

# Strings and os.path, since a Path for each file would cost more than the walk.
# ruff: noqa: PTH114, PTH116, PTH118, PTH119

from __future__ import annotations

import os
import stat
from dataclasses import field
from pathlib import Path

from rse_cli.adapters.given_paths import make_printable
from rse_cli.adapters.ignore import Choice
from rse_cli.dataclass import dataclass
from rse_cli.ports import FileStamp, FoundFile

STORE_MARKS = frozenset({"manifest.json", "chunks.lance"})
"""What a folder holds that is a store under any name."""

NEVER_INDEXED = frozenset({".git", ".rse"})
"""Names whose content is no document, whatever the rules and flags say."""

SETTINGS_FILE = "rse.toml"
"""In the root: what `rse` is told, not what it is told about, and writing it must not make the index out of date."""

LINK_OUT = "a link out of the indexed folder"
SPECIAL_FILE = "not a file: a pipe, socket or device"
BELONGS_TO_STORE = "belongs to a store or to git"
HOLDS_SETTINGS = "the settings of rse, not a document"
LINK_TO_IGNORED = "a link to an ignored file"

BY_RULE = frozenset({LINK_OUT, SPECIAL_FILE, BELONGS_TO_STORE, HOLDS_SETTINGS, LINK_TO_IGNORED})
"""Reasons for leaving something out that are no failure to read it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What `rse ingest` was asked for.

    Parameters
    ----------
    include : tuple of str
        Globs (see `compile_globs`); when given, only files that they accept.
    exclude : tuple of str
        Globs of files and folders to leave out, even when they are named themselves.
    hidden : bool
        Also files and folders whose name begins with a dot.
    no_ignore : bool
        Don't read ``.gitignore`` and ``.rseignore``.
    max_size : int
        Bytes; larger files are reported and left out.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hidden: bool = False
    no_ignore: bool = False
    max_size: int = 50_000_000


@dataclass(frozen=True, slots=True)
class Walk:
    """What holds for a whole walk, and what it has found so far."""

    root: str
    store: str
    selection: Selection
    choice: Choice
    files: dict[str, FoundFile] = field(default_factory=dict)
    links: dict[str, FoundFile] = field(default_factory=dict)
    oversize: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def locate(self, path: str) -> str:
        """Return where a path of the index lies on disk."""
        return os.path.join(self.root, path) if path else self.root

    def report(self, location: str, reason: str) -> None:
        """Note why something on disk is left out."""
        self.problems[make_printable(os.path.relpath(location, self.root))] = reason


def is_store(walk: Walk, path: str) -> bool:
    """Tell whether a folder is a store, or git's, or has such a name."""
    location = walk.locate(path)
    if location == walk.store or (path and os.path.basename(path) in NEVER_INDEXED):
        return True
    return all(os.path.lexists(os.path.join(location, mark)) for mark in STORE_MARKS)


def take_file(walk: Walk, path: str) -> None:
    """Take a file that passed all rules, or say why it can't be indexed; nothing is opened."""
    location = target = walk.locate(path)
    try:
        info = os.lstat(location)
        is_link = stat.S_ISLNK(info.st_mode)
        if is_link:
            target = os.path.realpath(location)
            info = os.stat(target)
    except OSError as error:
        if os.path.islink(location):
            walk.report(location, f"a broken link: {error.strerror}")
        elif not isinstance(error, FileNotFoundError | NotADirectoryError):
            walk.report(location, f"can't be read: {error.strerror}")
        return
    if not _check_kind(walk, location, target, info.st_mode):
        return
    if info.st_size > walk.selection.max_size:
        walk.oversize[path] = info.st_size
        return
    stamp = FileStamp(info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    if is_link:
        walk.links[path] = FoundFile(path, Path(location), stamp, os.path.relpath(target, walk.root))
    else:
        walk.files[path] = FoundFile(path, Path(location), stamp)


def _check_kind(walk: Walk, location: str, target: str, mode: int) -> bool:
    """Tell whether this is, or links to, a file that can be indexed; report it if a user would wonder."""
    inside = target == walk.root or target.startswith(walk.root.rstrip("/") + "/")
    if not inside:
        walk.report(location, LINK_OUT)
    elif not is_utf8(location[len(walk.root) :]):
        walk.report(location, "the name is not UTF-8")
    elif stat.S_ISREG(mode):
        return target == location or not any(
            is_store(walk, folder) for folder in list_above(os.path.relpath(target, walk.root))
        )
    elif not stat.S_ISDIR(mode):
        walk.report(location, SPECIAL_FILE)
    return False


def add_links(walk: Walk) -> None:
    """Add the links whose target was not found itself, one for each target, so that no text is indexed twice."""
    targets = set(walk.files)
    for path in sorted(walk.links):
        target = walk.links[path].target
        if target not in targets:
            targets.add(target)
            walk.files[path] = walk.links[path]


def list_above(path: str) -> list[str]:
    """List the folders above a path, from the root ("") down."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts))] if path else []


def is_utf8(name: str) -> bool:
    """Tell whether a name from the disk can be written as UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
