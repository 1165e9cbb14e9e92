"""Which files are indexed: a walk below the given paths, as ripgrep does it, with the reasons for what is left out."""

# Strings and os.path, since a Path for each file would cost more than the walk.
# ruff: noqa: PTH118, PTH119, PTH120

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rse_cli.adapters.found_files import (
    BELONGS_TO_STORE,
    HOLDS_SETTINGS,
    LINK_TO_IGNORED,
    NEVER_INDEXED,
    SETTINGS_FILE,
    STORE_MARKS,
    Selection,
    Walk,
    add_links,
    is_store,
    is_utf8,
    list_above,
    take_file,
)
from rse_cli.adapters.given_paths import place_paths
from rse_cli.adapters.ignore import RULE_FILES, Choice, Fits, IgnoreRules, compile_globs, enter_folder
from rse_cli.dataclass import dataclass
from rse_cli.ports import FoundFile, StorePlace

__all__ = ["Discovery", "Selection", "discover_files"]


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a walk found.

    Parameters
    ----------
    files : tuple of FoundFile
        Sorted by path.
    oversize : tuple of (str, int)
        Path and bytes of files above `Selection.max_size`, sorted.
    problems : tuple of (str, str)
        Printable path and reason, sorted: unreadable folders, broken links and links out of the root, special files,
        names that aren't UTF-8.
    """

    files: tuple[FoundFile, ...]
    oversize: tuple[tuple[str, int], ...]
    problems: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to scan: its path ("" for the root), the rules from above it, and the globs that fit it."""

    path: str
    rules: IgnoreRules
    fits: Fits


def discover_files(root: Path, paths: Sequence[Path], selection: Selection, store: StorePlace) -> Discovery:
    """Find the files to index below the given paths.

    Parameters
    ----------
    root : Path
        What the found paths are relative to.
    paths : sequence of Path
        Files and folders in `root`, relative to the current folder or absolute; none: the root itself.
    selection : Selection
        Filters.
    store : Path or Bucket
        The store; its folder is left out wherever it lies, as is any other store's.

    Returns
    -------
    Discovery
        The same for the same tree, in whatever order `paths` come.

    Raises
    ------
    UsageError
        If paths don't exist or lie outside the root (all of them are named), or a glob can match nothing.

    Notes
    -----
    A path given is walked or indexed even if it is hidden or ignored, but not if `exclude` says so. Below it, the
    last matching rule of the deepest ``.rseignore`` decides, then that of the deepest ``.gitignore``, then
    ``.git/info/exclude``; a rule with ``!`` also brings back a hidden name. The ignore files of folders above count
    too, up to the one that holds ``.git``, else up to the root; in a repository inside another one only its own
    ``.gitignore`` files do. Below an ignored folder nothing can be brought back.

    Links to folders are not followed. A link to a file in the root is followed, unless that file is found itself or
    is ignored or excluded. The settings file of the root is no document.
    """
    walk = Walk(
        root=os.path.realpath(root),
        store=os.path.realpath(store) if isinstance(store, Path) else "",
        selection=selection,
        choice=Choice(compile_globs(selection.include), compile_globs(selection.exclude, others_pass=False)),
    )
    for path, is_folder in place_paths(walk.root, paths or [root]):
        folder = path if is_folder else path.rpartition("/")[0]
        if any(is_store(walk, above) for above in (*list_above(folder), folder)):
            walk.report(walk.locate(path), BELONGS_TO_STORE)
        elif path == SETTINGS_FILE:
            walk.report(walk.locate(path), HOLDS_SETTINGS)
        elif is_folder:
            _walk_folder(walk, _descend_to(walk, folder))
        else:
            # A file that was named itself: only the globs can keep it out.
            fits = walk.choice.advance(_descend_to(walk, folder).fits, path, os.path.basename(path), False)
            if walk.choice.accepts(fits):
                take_file(walk, path)
    add_links(walk)
    return Discovery(
        files=tuple(walk.files[path] for path in sorted(walk.files)),
        oversize=tuple(sorted(walk.oversize.items())),
        problems=tuple(sorted(walk.problems.items())),
    )


def _descend_to(walk: Walk, path: str) -> _Folder:
    """Collect what the folders above a given one say about its entries; that they ignore it does not count."""
    rules = IgnoreRules()
    fits = (-1, -1)
    for location in _list_git_folders_above(walk.root):
        rules = _read_rules_of(walk, rules, location, prefix=os.path.relpath(walk.root, location) + "/")
    for folder in list_above(path):
        rules = _read_rules_of(walk, rules, walk.locate(folder), skip=len(folder) + 1 if folder else 0)
    for folder in (*list_above(path), path)[1:]:
        fits = walk.choice.advance(fits, folder, os.path.basename(folder), True)
    return _Folder(path, rules, fits)


def _is_ignored(walk: Walk, path: str) -> bool:
    """Tell whether rules or globs keep out a file that a link names; that it is hidden is no reason of its own."""
    rules, fits = _descend_to(walk, "").rules, (-1, -1)
    above = list_above(path)
    for folder, entry in zip(above, [*above[1:], path], strict=True):
        name, is_folder = os.path.basename(entry), entry != path
        rules = _read_rules_of(walk, rules, walk.locate(folder), skip=len(folder) + 1 if folder else 0)
        fits = walk.choice.advance(fits, entry, name, is_folder)
        if rules.judge(entry, name, is_folder):
            return True
    return walk.choice.exclude is not None and walk.choice.exclude.accepts(fits[1])


def _read_rules_of(walk: Walk, rules: IgnoreRules, location: str, prefix: str = "", skip: int = 0) -> IgnoreRules:
    """Enter a folder above a given one, whose entries are not listed."""
    if walk.selection.no_ignore:
        return rules
    names = {name for name in (".git", *RULE_FILES) if os.path.lexists(os.path.join(location, name))}
    return enter_folder(rules, location, names, prefix=prefix, skip=skip, report=walk.report)


def _list_git_folders_above(root: str) -> list[str]:
    """List the folders above the root from the one that holds ``.git`` down; none if the root is that folder."""
    above = []
    folder = root
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return []
        above.append(parent)
        folder = parent
    return above[::-1]


def _walk_folder(walk: Walk, top: _Folder) -> None:
    """Scan a folder and all below it, without recursion, so that depth has no limit."""
    waiting = [top]
    while waiting:
        waiting += _scan_folder(walk, waiting.pop())


def _scan_folder(walk: Walk, folder: _Folder) -> list[_Folder]:
    """Take the files of one folder and return the folders in it to go on with."""
    location = walk.locate(folder.path)
    try:
        with os.scandir(location) as listing:
            entries = list(listing)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        walk.report(location, f"the folder can't be read: {error.strerror}")
        return []
    names = {entry.name for entry in entries}
    if names >= STORE_MARKS:
        return []
    base = f"{folder.path}/" if folder.path else ""
    rules = folder.rules
    if not walk.selection.no_ignore:
        rules = enter_folder(rules, location, names, prefix="", skip=len(base), report=walk.report)
    never = NEVER_INDEXED if folder.path else NEVER_INDEXED | {SETTINGS_FILE}
    found = [_take_entry(walk, folder, rules, base, entry) for entry in entries if entry.name not in never]
    return [below for below in found if below]


def _take_entry(walk: Walk, folder: _Folder, rules: IgnoreRules, base: str, entry: os.DirEntry[str]) -> _Folder | None:
    """Apply the rules to one entry: take a file, return a folder, pass over the rest."""
    name = entry.name
    path = base + name
    try:
        is_folder = entry.is_dir(follow_symlinks=False)
    except OSError as error:
        walk.report(entry.path, f"can't be read: {error.strerror}")
        return None
    ignored = rules.judge(path, name, is_folder)
    if ignored or (ignored is None and name[0] == "." and not walk.selection.hidden):
        return None
    fits = walk.choice.advance(folder.fits, path, name, is_folder)
    if not is_folder:
        if walk.choice.accepts(fits):
            take_file(walk, path)
            if path in walk.links and _is_ignored(walk, walk.links[path].target):
                del walk.links[path]
                walk.report(entry.path, LINK_TO_IGNORED)
        return None
    if entry.path == walk.store or walk.choice.prunes(fits):
        return None
    if not is_utf8(name):
        walk.report(entry.path, "the name is not UTF-8")
        return None
    return _Folder(path, rules, fits)
