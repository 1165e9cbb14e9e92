"""A document of the index by its path: its number and all its chunks."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import PurePosixPath

from rse_cli.core.models import Chunk
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError
from rse_cli.ports import FileRecord, Snapshot, make_key

MOST_COMPARED = 5_000
"""Paths that a misspelled one is compared with: each takes 20 µs, and a tenth of a second is soon enough."""


@dataclass(frozen=True, slots=True)
class Listing:
    """An indexed document: its head row, its number (None without chunks), and its chunks in order."""

    record: FileRecord
    number: int | None
    chunks: tuple[Chunk, ...]

    @property
    def text(self) -> str:
        """The whole text, which the chunks tile."""
        return "".join(chunk.text for chunk in self.chunks)


def list_document(snapshot: Snapshot, paths: Sequence[str]) -> Listing:
    """Return the document that the first of `paths` that is indexed names.

    Parameters
    ----------
    snapshot : Snapshot
        The index.
    paths : sequence of str
        Ids to try, in order; at least one.

    Raises
    ------
    UsageError
        If none is in the index; names the nearest.
    """
    records = {record.path: record for record in snapshot.files()}
    path = next((one for one in paths if one in records), None)
    if path is None:
        namesakes = sorted(known for known in records if PurePosixPath(known).name == PurePosixPath(paths[0]).name)
        near = namesakes or difflib.get_close_matches(paths[0], sorted(records)[:MOST_COMPARED], 1)
        raise UsageError(f"{paths[0]} is not in the index" + (f"; did you mean {near[0]}?" if near else ""))
    number = find_numbers(snapshot, [path]).get(path)
    if number is None:
        return Listing(records[path], None, ())
    keys = [make_key(number, ord_) for ord_ in range(records[path].n_chunks)]
    return Listing(records[path], number, tuple(stored.chunk for stored in snapshot.chunks(keys)))


def find_numbers(snapshot: Snapshot, paths: Sequence[str]) -> dict[str, int]:
    """Return the document numbers of those paths that have chunks."""
    wanted = set(paths)
    if not wanted:
        return {}
    numbers, _ = snapshot.document_vectors()
    heads = snapshot.heads(numbers.tolist())
    return {record.path: number for number, record in heads.items() if record.path in wanted}
