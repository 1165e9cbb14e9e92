"""The store's folder: what it holds, and how it is found and made."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from rse_cli.adapters.store_lock import LOCK_NAME
from rse_cli.adapters.store_readers import READERS_NAME
from rse_cli.errors import StoreError

STORE_NAME = ".rse"
"""The folder that a root holds, as ``.git`` does."""

TABLE_FOLDER = "chunks.lance"
MANIFEST_NAME = "manifest.json"
DRAFT_ENDING = ".new"
"""One name for all writers, since they hold the lock; what a kill leaves is written over."""

DISCARDED_NAME = "discarded"
"""What a table is called while its files are deleted."""

SEAL_NAME = "seal.json"
"""Digests of the table's files, but for those of rows."""

IGNORE_NAME = ".gitignore"
IGNORE_TEXT = "*\n"

OWN_NAMES = frozenset(
    {
        MANIFEST_NAME,
        f"{MANIFEST_NAME}{DRAFT_ENDING}",
        LOCK_NAME,
        READERS_NAME,
        SEAL_NAME,
        f"{SEAL_NAME}{DRAFT_ENDING}",
        IGNORE_NAME,
        TABLE_FOLDER,
        DISCARDED_NAME,
    }
)


def find_store(start: Path) -> Path | None:
    """Return the ``.rse`` folder of `start` or of its nearest ancestor that has one, as git finds its own.

    Parameters
    ----------
    start : Path
        A folder, or a file in one.

    Returns
    -------
    Path or None
        None where no ancestor holds a store.
    """
    here = start.resolve()
    return next((f / STORE_NAME for f in (here, *here.parents) if (f / STORE_NAME).is_dir()), None)


def refuse_links(store: Path, *, was_found: bool) -> None:
    """Refuse a store that leads elsewhere: no index holds a link, so one that does was made to read or write there.

    Nor does any hold a pipe or a device, which would block whoever opens it.

    Parameters
    ----------
    store : Path
        The folder, which need not exist.
    was_found : bool
        Whether it was looked for, not named by the user, so that it may be no link itself either.

    Raises
    ------
    StoreError
        Naming the first of them, or that the folder can't be read.
    """
    if was_found and store.is_symlink():
        raise StoreError(f"{store} is a link to {store.resolve()}: if that is meant, name it with --store {store}")
    waiting = [store / name for name in sorted(OWN_NAMES)]
    while waiting:
        place = waiting.pop()
        try:
            mode = place.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise StoreError(f"can't read the store {store}: {error.strerror or error}") from error
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            kind = "a link" if stat.S_ISLNK(mode) else "a pipe or device"
            raise StoreError(f"{store} holds {kind}, {place.name}, as no index does: delete that folder")
        try:
            with os.scandir(place) as entries:
                waiting += [Path(entry) for entry in entries if not entry.is_file(follow_symlinks=False)]
        except OSError:
            # A file; or what is said where it is used; or what another writer has dropped meanwhile.
            continue


def prepare_folder(store: Path) -> None:
    """Make the store's folder with its ``.gitignore``, so that it can be locked.

    Raises
    ------
    StoreError
        If the folder holds anything that isn't a store's, or can't be made.
    """
    try:
        store.mkdir(parents=True, exist_ok=True)
        foreign = sorted(p.name for p in store.iterdir() if p.name not in OWN_NAMES)
        ignore = store / IGNORE_NAME
        if ignore.exists() and ignore.read_text(encoding="utf-8", errors="replace") not in ("", IGNORE_TEXT):
            foreign.append(IGNORE_NAME)
        if foreign:
            # A `.gitignore` of `*` in somebody's own folder would hide their work from git.
            raise StoreError(f"{store} holds other files ({foreign[0]}): give --store a new or empty folder")
        ignore.write_text(IGNORE_TEXT, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"can't make a store at {store}: {error.strerror or error}") from error


def discard_table(store: Path) -> None:
    """Drop the table in one step: a kill while its files are deleted leaves no table, not one that lacks some.

    The caller holds the lock.

    Raises
    ------
    StoreError
        If the files can't be deleted.
    """
    table, discarded = store / TABLE_FOLDER, store / DISCARDED_NAME
    try:
        # Names of files in the next table may be the same.
        (store / SEAL_NAME).unlink(missing_ok=True)
        if discarded.exists():
            shutil.rmtree(discarded)
        if table.exists():
            table.rename(discarded)
            shutil.rmtree(discarded)
    except OSError as error:
        raise StoreError(f"can't empty the store {store}: {error.strerror or error}") from error
