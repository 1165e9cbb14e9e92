"""What lies beside a store's table, and who may write: the same questions to a folder and to an object store."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Protocol

from rse_cli.adapters import store_folder
from rse_cli.adapters.store_folder import DRAFT_ENDING, TABLE_FOLDER
from rse_cli.adapters.store_lock import lock_store
from rse_cli.dataclass import dataclass
from rse_cli.ports import Bucket, StorePlace


class StoreFiles(Protocol):
    """A store but for its table, which is Lance's own matter."""

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises
        ------
        OSError
            If it can't be read; `FileNotFoundError` if there is none.
        StoreError
            If the store can't be reached.
        """
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Put a file in place in one step. The caller holds the lock.

        Raises
        ------
        OSError, StoreError
            If it can't be written; `StoreError` also if another process has done so since it was read.
        """
        ...

    def holds(self, name: str) -> bool:
        """Tell whether there is such a file."""
        ...

    def lock(self, timeout: float, announce: Callable[[str], None]) -> AbstractContextManager[object]:
        """Hold the store for writing; see `store_lock.lock_store`."""
        ...

    def confirm_lock(self) -> None:
        """See that the lock is still held, right before what must not happen without it.

        Raises
        ------
        StoreError
            If it was lost.
        """
        ...

    def prepare(self) -> None:
        """Make what the lock needs; see `store_folder.prepare_folder`."""
        ...

    def discard_table(self) -> None:
        """Drop the table; see `store_folder.discard_table`."""
        ...

    def list_table(self, folder: str) -> list[str]:
        """Return the files in a folder of the table, as paths inside the table."""
        ...

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a file; raises what `read` raises."""
        ...

    def measure(self) -> int:
        """Return the bytes that the store takes."""
        ...


def open_files(store: StorePlace) -> StoreFiles:
    """Return the files of a store."""
    if isinstance(store, Path):
        return FolderFiles(store)
    from rse_cli.adapters.bucket_files import open_bucket

    return open_bucket(store)


def locate_table(store: StorePlace) -> tuple[str, dict[str, str] | None]:
    """Return the address of a store's table and what Lance needs to get there."""
    if isinstance(store, Bucket):
        return f"{store.address}/{TABLE_FOLDER}", dict(store.options)
    return str(store / TABLE_FOLDER), None


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """A store in a folder, whose lock the system keeps."""

    folder: Path

    def read(self, name: str) -> bytes:
        """See `StoreFiles`."""
        return (self.folder / name).read_bytes()

    def replace(self, name: str, content: bytes) -> None:
        """See `StoreFiles`."""
        draft = self.folder / f"{name}{DRAFT_ENDING}"
        try:
            draft.write_bytes(content)
            draft.replace(self.folder / name)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def holds(self, name: str) -> bool:
        """See `StoreFiles`."""
        return (self.folder / name).exists()

    def lock(self, timeout: float, announce: Callable[[str], None]) -> AbstractContextManager[object]:
        """See `StoreFiles`."""
        return lock_store(self.folder, timeout, announce)

    def confirm_lock(self) -> None:
        """The system takes a lock from nobody who lives."""

    def prepare(self) -> None:
        """See `StoreFiles`."""
        store_folder.prepare_folder(self.folder)

    def discard_table(self) -> None:
        """See `StoreFiles`."""
        store_folder.discard_table(self.folder)

    def list_table(self, folder: str) -> list[str]:
        """See `StoreFiles`."""
        table = self.folder / TABLE_FOLDER
        return [path.relative_to(table).as_posix() for path in (table / folder).rglob("*") if path.is_file()]

    def digest(self, name: str) -> str:
        """See `StoreFiles`."""
        with (self.folder / name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def measure(self) -> int:
        """See `StoreFiles`; another process may drop some files meanwhile."""
        total = 0
        for place, _, names in os.walk(self.folder):
            for name in names:
                with suppress(OSError):
                    total += (Path(place) / name).lstat().st_size
        return total
