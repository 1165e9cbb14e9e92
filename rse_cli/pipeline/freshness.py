"""How far the files have moved on since the index was made."""

from __future__ import annotations

from collections.abc import Callable

from rse_cli.dataclass import dataclass
from rse_cli.pipeline.found_content import read_content
from rse_cli.pipeline.planning import UNREAD, Plan, hash_content
from rse_cli.ports import FoundFile

# A checkout gives every file a new stamp; reading them back tells what really changed, up to this much.
CONFIRM_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Staleness:
    """Paths whose files are new, changed or gone since the index was made."""

    new: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def count(self) -> int:
        """Files that an ingest would touch."""
        return len(self.new) + len(self.changed) + len(self.removed)

    def merge(self, other: Staleness) -> Staleness:
        """Return both together, each path once."""
        return Staleness(
            tuple(sorted({*self.new, *other.new})),
            tuple(sorted({*self.changed, *other.changed})),
            tuple(sorted({*self.removed, *other.removed})),
        )


def measure_staleness(plan: Plan, name_reader: Callable[[str], str], confirm_bytes: int | None) -> Staleness:
    """Return what an ingest would find changed.

    Parameters
    ----------
    plan : Plan
        The files found against the index.
    name_reader : callable
        Path to the reader's name with its version.
    confirm_bytes : int or None
        How much to read of files with another stamp but the same size, to see whether their content changed; beyond it
        they count as changed. None reads all.
    """
    left = confirm_bytes
    changed = []
    for file, record in plan.suspects:
        same_kind = record.reader == name_reader(file.path) and record.stamp.size == file.stamp.size
        if same_kind and (left is None or file.stamp.size <= left):
            left = None if left is None else left - file.stamp.size
            if _hash_file(file) == record.content_hash:
                continue
        changed.append(file.path)
    return Staleness(
        tuple(file.path for file in plan.new), tuple(changed), tuple(record.path for record in plan.removed)
    )


def _hash_file(file: FoundFile) -> str:
    try:
        return hash_content(read_content(file))
    except OSError:
        return UNREAD
