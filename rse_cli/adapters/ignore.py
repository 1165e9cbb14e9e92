"""Ignore files, and the globs of flags, which follow the same rules.

``.rseignore`` wins over ``.gitignore``, the deepest file over those above it, the last rule over those before it.
"""

# Strings and os.path, since a Path for each file would cost more than the walk.
# ruff: noqa: PTH116, PTH118, PTH123

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import lru_cache

from rse_cli.adapters.wildmatch import RuleSet, parse_rules
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError

RULE_FILES = (".gitignore", ".rseignore")

_MAX_RULE_BYTES = 1_000_000
"""Far above any ignore file written by hand; a larger one is an accident that would take seconds to compile."""


@dataclass(frozen=True, slots=True)
class Globs:
    """Globs of a flag, where the last one that fits a path or a folder above it decides.

    Parameters
    ----------
    rules : RuleSet
        In the order given.
    start : bool
        What holds for a path that no glob fits.
    """

    rules: RuleSet
    start: bool

    def advance(self, above: int, path: str, name: str, is_folder: bool) -> int:
        """Return the last rule for an entry, given the last one (or -1) for the folder above it."""
        return max(above, self.rules.find_last_match(path, name, is_folder))

    def accepts(self, rule: int) -> bool:
        """Tell whether the rule that came last lets an entry in."""
        return self.start if rule < 0 else not self.rules.negative[rule]


def compile_globs(globs: Sequence[str], others_pass: bool = True) -> Globs | None:
    """Compile the globs of ``--include``, ``--exclude`` or ``--path``.

    They are gitignore patterns relative to the root: ``*.md`` at any depth, ``docs/**`` or ``docs/`` for all below
    that folder, ``/a.md`` only at the top. A leading ``!`` takes away again; the last glob that fits decides.

    Parameters
    ----------
    globs : sequence of str
        As given; a leading ``./`` is dropped.
    others_pass : bool
        Whether globs that all begin with ``!`` accept everything else.

    Returns
    -------
    Globs or None
        None without globs.

    Raises
    ------
    UsageError
        If a glob is empty or can match nothing, such as one with a set that never ends.
    """
    cleaned = [re.sub(r"^(!?)(?:\./)+(?=.)", r"\1/", glob) for glob in globs]
    # A `#` begins a comment in a file but a name in a flag.
    cleaned = [f"\\{glob}" if glob.startswith("#") else glob for glob in cleaned]
    for given, glob in zip(globs, cleaned, strict=True):
        if parse_rules([glob]) is None:
            raise UsageError(f"the glob {given!r} can match nothing")
    rules = parse_rules(cleaned)
    return Globs(rules, others_pass and all(rules.negative)) if rules else None


Fits = tuple[int, int]
"""The last glob of ``--include``, and of ``--exclude``, that fits an entry or a folder above it; -1 for none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The globs of ``--include`` and ``--exclude``; None for the first lets all in, for the second keeps none out."""

    include: Globs | None
    exclude: Globs | None

    def advance(self, above: Fits, path: str, name: str, is_folder: bool) -> Fits:
        """Return the globs that fit an entry, given those that fit the folder above it."""
        include = self.include.advance(above[0], path, name, is_folder) if self.include else -1
        exclude = self.exclude.advance(above[1], path, name, is_folder) if self.exclude else -1
        return include, exclude

    def accepts(self, fits: Fits) -> bool:
        """Tell whether a file gets in."""
        included = self.include is None or self.include.accepts(fits[0])
        return included and not (self.exclude and self.exclude.accepts(fits[1]))

    def prunes(self, fits: Fits) -> bool:
        """Tell whether a folder is excluded with all below it, which no glob with ``!`` could bring back."""
        return self.exclude is not None and self.exclude.accepts(fits[1]) and not any(self.exclude.rules.negative)


def compile_path_filter(globs: Sequence[str], types: Sequence[str]) -> Callable[[str], bool]:
    """Make the filter of ``--path`` and ``--type``.

    Parameters
    ----------
    globs : sequence of str
        As for `compile_globs`; a path passes if they accept it. None given: all pass.
    types : sequence of str
        Endings of file names with or without the dot, in any case; a path passes with any of them.

    Returns
    -------
    callable
        Takes a path relative to the root in POSIX form, tells whether it passes.

    Raises
    ------
    UsageError
        If a glob can match nothing, or a type is empty or holds a slash.

    Examples
    --------
    >>> passes = compile_path_filter(["docs/", "!docs/old/"], ["md"])
    >>> [passes(path) for path in ("docs/a.md", "docs/a.txt", "docs/old/a.md", "a.md")]
    [True, False, False, False]
    """
    compiled = compile_globs(globs)
    endings = tuple("." + kind.lower().removeprefix(".") for kind in types)
    for given, ending in zip(types, endings, strict=True):
        if len(ending) == 1 or "/" in ending or "*" in ending:
            raise UsageError(f"{given!r} is no type of file: give the ending of its name, such as md")
    folders: dict[str, int] = {"": -1}

    def last_rule_of_folder(globs: Globs, folder: str) -> int:
        if folder not in folders:
            above, _, name = folder.rpartition("/")
            folders[folder] = globs.advance(last_rule_of_folder(globs, above), folder, name, True)
        return folders[folder]

    def passes(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if endings and not name.lower().endswith(endings):
            return False
        return compiled is None or compiled.accepts(
            compiled.advance(last_rule_of_folder(compiled, folder), path, name, False)
        )

    return passes


@dataclass(frozen=True, slots=True)
class _Layer:
    """The rules of one ignore file; they see a path as ``prefix + path[skip:]``, relative to their own folder."""

    rules: RuleSet
    prefix: str
    skip: int


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The ignore files that count in one folder, the deepest first: `own` are ``.rseignore``, `git` the others."""

    own: tuple[_Layer, ...] = ()
    git: tuple[_Layer, ...] = ()

    def judge(self, path: str, name: str, is_folder: bool) -> bool | None:
        """Tell whether an entry of the folder is ignored; None if no rule speaks of it."""
        for layer in (*self.own, *self.git):
            rule = layer.rules.find_last_match(layer.prefix + path[layer.skip :], name, is_folder)
            if rule >= 0:
                return not layer.rules.negative[rule]
        return None


def enter_folder(
    rules: IgnoreRules,
    location: str,
    names: Collection[str],
    *,
    prefix: str,
    skip: int,
    report: Callable[[str, str], None],
) -> IgnoreRules:
    """Add the ignore files of a folder to the rules that come from above.

    Parameters
    ----------
    rules : IgnoreRules
        Those of the folder above. In a folder with ``.git`` no ``.gitignore`` from above counts.
    location : str
        The folder on disk.
    names : collection of str
        The names in it, at least those of `RULE_FILES` and ``.git``.
    prefix, skip : str and int
        How a path of the index becomes relative to this folder: ``prefix + path[skip:]``.
    report : callable
        Takes the location of an ignore file that can't be used, and why.

    Returns
    -------
    IgnoreRules
        The rules for the folder's entries.
    """
    own, git = rules.own, rules.git
    if ".git" in names:
        exclude = _read_rules(os.path.join(_find_git_folder(location), "info", "exclude"), report)
        git = (_Layer(exclude, prefix, skip),) if exclude else ()
    if ".gitignore" in names and (found := _read_rules(os.path.join(location, ".gitignore"), report)):
        git = (_Layer(found, prefix, skip), *git)
    if ".rseignore" in names and (found := _read_rules(os.path.join(location, ".rseignore"), report)):
        own = (_Layer(found, prefix, skip), *own)
    return rules if own is rules.own and git is rules.git else IgnoreRules(own, git)


def _read_rules(location: str, report: Callable[[str, str], None]) -> RuleSet | None:
    """Read an ignore file, or report why it can't be."""
    try:
        # A pipe or device of that name would block when opened.
        if not stat.S_ISREG(os.stat(location).st_mode):
            return None
        with open(location, "rb") as file:
            data = file.read(_MAX_RULE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        report(location, f"its rules don't apply: {error.strerror}")
        return None
    if len(data) > _MAX_RULE_BYTES:
        report(location, f"its rules don't apply: it has more than {_MAX_RULE_BYTES:,} bytes")
        return None
    return _parse_rule_file(data)


@lru_cache(maxsize=256)
def _parse_rule_file(data: bytes) -> RuleSet | None:
    """Decode as git does: the bytes of a name as they are, and both kinds of line ends."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return parse_rules([line.removesuffix("\r") for line in text.split("\n")])


def _find_git_folder(location: str) -> str:
    """Return the folder that holds ``info/exclude``: in worktrees and submodules ``.git`` is a file that names it."""
    folder = os.path.join(location, ".git")
    # A submodule's folder has no `commondir` and is itself the one.
    # A ValueError is a NUL in a name.
    with suppress(OSError, ValueError):
        if stat.S_ISREG(os.stat(folder).st_mode):
            folder = os.path.join(location, _read_line(folder).removeprefix("gitdir:").strip())
            folder = os.path.join(folder, _read_line(os.path.join(folder, "commondir")))
    return folder


def _read_line(location: str) -> str:
    if not stat.S_ISREG(os.stat(location).st_mode):
        raise IsADirectoryError(location)
    with open(location, encoding="utf-8", errors="surrogateescape") as file:
        return file.readline(4096).strip()
