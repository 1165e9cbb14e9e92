"""Where an ingest goes: the index that is there, or the place and root of a new one."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rse_cli.adapters.given_paths import choose_root
from rse_cli.adapters.manifest import Manifest, read_manifest
from rse_cli.adapters.store_files import open_files
from rse_cli.adapters.store_folder import MANIFEST_NAME, STORE_NAME, find_store, refuse_links
from rse_cli.cli.output import make_visible_line, say
from rse_cli.cli.wiring import choose_index_root, locate_current_folder
from rse_cli.config import choose_store
from rse_cli.dataclass import dataclass
from rse_cli.errors import StoreError
from rse_cli.ports import Bucket, StorePlace

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an index lies or will lie, its root, and what is there already; None also where that can't be read.

    `was_found` says that it was looked for, not named by the user: it may have come with somebody else's folder.
    """

    folder: StorePlace
    root: Path
    exists: bool
    manifest: Manifest | None
    was_found: bool


def find_place(paths: Sequence[Path], store: str | None, *, rebuild: bool) -> Place:
    """Find the index, or where a new one belongs; a rebuild keeps the root where it can be read."""
    base = choose_root(paths, locate_current_folder())
    named = choose_store(store, os.environ)
    folder = named or find_store(base) or base / STORE_NAME
    was_found = named is None
    if isinstance(folder, Path):
        refuse_links(folder, was_found=was_found)
    try:
        exists = open_files(folder).holds(MANIFEST_NAME)
    except OSError as fault:
        raise StoreError(f"can't read the store {folder}: {fault.strerror or fault}") from fault
    manifest = _read_known(folder, rebuild=rebuild) if exists else None
    if manifest is not None:
        root = choose_index_root(folder, manifest, was_found=was_found)
        if isinstance(folder, Bucket) and not root.is_dir():
            raise StoreError(f"{folder} indexes {root}, which is not on this machine: ingest where it is")
        return Place(folder, root, exists, manifest, was_found)
    # A new store that was named says nothing about the root, whatever it is called.
    at_home = isinstance(folder, Path) and folder.name == STORE_NAME and (exists or was_found)
    return Place(folder, folder.resolve().parent if at_home else base, exists, None, was_found)


def _read_known(folder: StorePlace, *, rebuild: bool) -> Manifest | None:
    """Read the manifest; a rebuild takes that of another format too, or none where it can't be read."""
    try:
        return read_manifest(folder)
    except StoreError:
        if not rebuild:
            raise
    with suppress(StoreError):
        return read_manifest(folder, any_version=True)
    return None


def refuse_names(place: Place) -> None:
    """Refuse a new index that its library or its manifest could not name.

    Raises
    ------
    StoreError
        Says what to do.
    """
    if place.exists:
        return
    for path in (place.root, place.folder):
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise StoreError(f"the name of {path} is not UTF-8, so that no index can hold it: rename it") from None
    if isinstance(place.folder, Path) and _CONTROL.search(str(place.folder.resolve())):
        raise StoreError(f"no index can lie in {place.folder}, whose name has control characters: name another --store")


def mention_other_index(place: Place) -> None:
    """Say that a new index is made beside the one that is found from here, which `git add` would refuse."""
    found = find_store(locate_current_folder())
    if found is None or place.exists or place.folder == found or not place.was_found:
        return
    where = make_visible_line(str(place.folder))
    say(f"rse: a new index at {where}, as what is given lies outside the indexed folder {found.parent}")
