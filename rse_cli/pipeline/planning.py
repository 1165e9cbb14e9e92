"""What an ingest has to do: the files found against the files indexed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from rse_cli.dataclass import dataclass
from rse_cli.ports import FileRecord, FoundFile

UNREAD = ""
"""Content hash of a file that could not be opened. It is tried again in every run: what kept it shut, permissions of
the user or too many open files, leaves no trace in its stamp."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The files to read, to keep and to drop.

    Parameters
    ----------
    new : tuple of FoundFile
        Not in the index.
    suspects : tuple of (FoundFile, FileRecord)
        In the index with another stamp or reader, or never opened; reading tells whether their content changed.
    unchanged : tuple of FileRecord
        Same stamp, same reader.
    removed : tuple of FileRecord
        Indexed under the given paths, but no longer found there.
    """

    new: tuple[FoundFile, ...]
    suspects: tuple[tuple[FoundFile, FileRecord], ...]
    unchanged: tuple[FileRecord, ...]
    removed: tuple[FileRecord, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to be done."""
        return not (self.new or self.suspects or self.removed)


def plan_ingest(
    found: Sequence[FoundFile],
    records: Sequence[FileRecord],
    scopes: Sequence[str],
    unreadable: Sequence[str],
    name_reader: Callable[[str], str],
) -> Plan:
    """Compare the files found under `scopes` with the index.

    Parameters
    ----------
    found : sequence of FoundFile
        What discovery found.
    records : sequence of FileRecord
        What the index holds.
    scopes : sequence of str
        The given paths, relative to the root; an empty string is the root itself.
    unreadable : sequence of str
        Folders and files that could not be looked at: what the index holds of them stays.
    name_reader : callable
        Path to the reader's name with its version; another name means that the file is read again.

    Returns
    -------
    Plan
        Sorted by path.
    """
    known = {record.path: record for record in records}
    new, suspects, unchanged = [], [], []
    for file in found:
        record = known.pop(file.path, None)
        if record is None:
            new.append(file)
        elif record.stamp != file.stamp or record.reader != name_reader(file.path) or record.content_hash == UNREAD:
            suspects.append((file, record))
        else:
            unchanged.append(record)
    removed = [
        record
        for path, record in known.items()
        if any(map(_holds(path), scopes)) and not any(map(_holds(path), unreadable))
    ]
    return Plan(
        tuple(sorted(new, key=lambda file: file.path)),
        tuple(sorted(suspects, key=lambda pair: pair[0].path)),
        tuple(unchanged),
        tuple(sorted(removed, key=lambda record: record.path)),
    )


def _holds(path: str) -> Callable[[str], bool]:
    return lambda scope: not scope or path == scope or path.startswith(scope + "/")


def hash_content(data: bytes) -> str:
    """Return the SHA-256 of `data` in hex."""
    return hashlib.sha256(data).hexdigest()
