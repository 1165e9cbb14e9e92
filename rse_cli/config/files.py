"""Settings files: where the user's lies, and reading one without trusting it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rse_cli.dataclass import dataclass

_MAX_FILE_BYTES = 1_000_000
"""No settings written by hand come near; parsing this much takes half a second."""

_DEEP_KEY = re.compile(
    r"""(?<![\w-]) (?: (?: [\w-]++ | "(?:\\.|[^"\\\n])*+" | '[^'\n]*+' ) [ \t]*+ \. [ \t]*+ ){32}""", re.VERBOSE
)
"""32 names joined by dots. The memory of tomllib grows by the square of that depth: a file of 400 kB takes 100 GB."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file as read: how messages name it, its content, and the line of each section and key."""

    label: str
    content: dict[str, Any]
    lines: dict[str, int]

    def name_place(self, *names: str) -> str:
        """Name the file and, if it can be found, the line of a section or key."""
        line = self.lines.get(".".join(names))
        return f"{self.label} line {line}" if line else self.label


def locate_user_file(environ: Mapping[str, str]) -> Path | None:
    """Return where the user's file would lie, or None without a home.

    A relative ``XDG_CONFIG_HOME`` counts as none, as the XDG Base Directory Specification asks.
    """
    base = environ.get("XDG_CONFIG_HOME", "")
    if not base.startswith("/"):
        base = f"{environ['HOME']}/.config" if environ.get("HOME") else ""
    return Path(base) / "rse" / "config.toml" if base else None


def read_file(path: Path, label: str, root: Path | None, faults: list[str]) -> SettingsFile | None:
    """Read a settings file that may not exist; with a root given, only one that lies in it."""
    try:
        if root and path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
            faults.append(f"{label} links to a file outside the project, which is not read")
            return None
        # A pipe or device would block when opened.
        if not stat.S_ISREG(path.stat().st_mode):
            faults.append(f"{label} is not a file")
            return None
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        # In a folder that can't be entered, as another user's home, there may be no file at all: git does the same.
        if not os.access(path.parent, os.X_OK):
            return None
        faults.append(f"{label} can't be read: {error.strerror}")
        return None
    except (OSError, RuntimeError) as error:
        faults.append(f"{label} can't be read: {getattr(error, 'strerror', None) or error}")
        return None
    if len(data) > _MAX_FILE_BYTES:
        faults.append(f"{label} has more than {_MAX_FILE_BYTES:,} bytes")
        return None
    return _parse_file(data, label, faults)


def _parse_file(data: bytes, label: str, faults: list[str]) -> SettingsFile | None:
    """Parse TOML, or say in which line it breaks."""
    import tomllib

    try:
        text = data.decode("utf-8-sig")
        if _DEEP_KEY.search(text):
            raise RecursionError
        return SettingsFile(label, tomllib.loads(text), _index_lines(text))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        faults.append(f"{label} line {line}: not UTF-8")
    except RecursionError:
        faults.append(f"{label}: nested too deeply")
    except ValueError as error:
        reason, _, place = str(error).partition(" (at ")
        place = (
            place.rstrip(")") if place.startswith("line") else f"at the {place.rstrip(')')}" if place else "is no TOML"
        )
        faults.append(f"{label} {place}: {reason[:1].lower()}{reason[1:]}")
    return None


def _index_lines(text: str) -> dict[str, int]:
    """Find the line of each ``section`` and ``section.key``: the parser keeps none. A guess, for messages only."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(r"\s*\[\s*[\"']?([^\[\]\"']+?)[\"']?\s*\]", line):
            section = header[1]
            lines.setdefault(section, number)
        elif key := re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*=", line):
            lines.setdefault(f"{section}.{key[1]}".removeprefix("."), number)
    return lines
