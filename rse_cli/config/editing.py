"""Values put into a project's settings file: everything else in it, comments included, stays as it was."""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rse_cli.errors import ConfigError

MARK = "# rse tune:"
"""Begins the comment lines that belong to written values, so that the next writing replaces them."""


def write_values(path: Path, section: str, values: Mapping[str, Any], remarks: Sequence[str] = ()) -> None:
    """Put values under a section of a settings file, which is made if it doesn't exist.

    Parameters
    ----------
    path : Path
        The file; replaced in one step.
    section : str
        The name of a table.
    values : mapping of str to object
        By key; those that are there already are replaced in their place.
    remarks : sequence of str
        Lines of comment under the section's heading; those of an earlier writing are dropped.

    Raises
    ------
    ConfigError
        If the file can't be read or written.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    except OSError as fault:
        raise ConfigError(f"can't read {path}: {fault.strerror or fault}") from fault
    text = data.decode("utf-8-sig")
    mark = "\ufeff" if data.startswith(b"\xef\xbb\xbf") else ""
    _replace(path, (mark + edit_text(text, section, values, remarks)).encode())


def check_writable(path: Path) -> None:
    """Refuse a settings file that `write_values` could not replace.

    Raises
    ------
    ConfigError
        If it is no file, or its folder can't be written to.
    """
    place = path.resolve()
    if place.exists() and not place.is_file():
        raise ConfigError(f"can't write {path}: it is no file")
    if not os.access(place.parent, os.W_OK):
        raise ConfigError(f"can't write {path}: its folder can't be written to")


def edit_text(text: str, section: str, values: Mapping[str, Any], remarks: Sequence[str] = ()) -> str:
    """Return the text of a settings file with values under a section.

    Examples
    --------
    >>> print(edit_text("# mine\\n[rse]\\nsegment_cost = 9 # cheap\\n", "rse", {"segment_cost": 30.0}, ["why"]), end="")
    # mine
    [rse]
    # rse tune: why
    segment_cost = 30.0 # cheap
    """
    import tomlkit

    document = tomlkit.parse(text)
    if section not in document:
        if text.strip():
            document.add(tomlkit.nl())
        document.add(section, tomlkit.table())
    table = document[section]
    for key, value in values.items():
        table[key] = value  # type: ignore[index]
    written = tomlkit.dumps(document)
    if "\r\n" in text and not re.search(r"(?<!\r)\n", text):
        # tomlkit ends the lines that it adds with a line feed alone.
        written = re.sub(r"(?<!\r)\n", "\r\n", written)
    return _put_remarks(written, section, remarks)


def _put_remarks(text: str, section: str, remarks: Sequence[str]) -> str:
    """Put comment lines under a section's heading, and drop those of an earlier writing."""
    ending = "\r\n" if "\r\n" in text else "\n"
    content = tomllib.loads(text)
    added = "".join(f"{MARK} {one}{ending}" for one in remarks)
    for heading in re.finditer(
        rf"(?m)^[ \t]*\[[ \t]*{re.escape(section)}[ \t]*\][ \t]*(?:#[^\r\n]*)?\r?(?:\n|\Z)", text
    ):
        before, after = text[: heading.end()], text[heading.end() :]
        if not before.endswith("\n"):
            before += ending
        old = re.match(rf"(?:[ \t]*{re.escape(MARK)}[^\n]*(?:\n|\Z))*", after)
        changed = before + added + after[old.end() if old else 0 :]
        # A line that only looks like the heading, inside a text, would change what the file says.
        with suppress(tomllib.TOMLDecodeError):
            if tomllib.loads(changed) == content:
                return changed
    # The section is written in another way, such as by dotted keys.
    return added + re.sub(rf"(?m)\A(?:{re.escape(MARK)}[^\n]*\n)*", "", text)


def _replace(path: Path, data: bytes) -> None:
    """Replace a file in one step; a link stays one."""
    place = path.resolve()
    made = ""
    try:
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o666 & ~_read_umask()
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}-", delete=False) as file:
            made = file.name
            file.write(data)
        Path(made).chmod(mode)
        Path(made).replace(place)
    except OSError as fault:
        if made:
            Path(made).unlink(missing_ok=True)
        raise ConfigError(f"can't write {path}: {fault.strerror or fault}") from fault


def _read_umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
