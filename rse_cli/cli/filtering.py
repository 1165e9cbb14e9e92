"""The documents to choose from: ``--path`` and ``--type``, or the same keys of a settings file."""

from __future__ import annotations

from collections.abc import Sequence

from rse_cli.adapters.ignore import compile_path_filter
from rse_cli.config import Settings
from rse_cli.dataclass import dataclass
from rse_cli.ports import Snapshot


@dataclass(frozen=True, slots=True)
class Filters:
    """What keeps documents out.

    Parameters
    ----------
    globs, types : tuple of str
        Of ``--path`` and ``--type``.
    globs_source, types_source : str
        Where they come from: the flag, a variable, or the line of a file.
    """

    globs: tuple[str, ...]
    types: tuple[str, ...]
    globs_source: str = "--path"
    types_source: str = "--type"

    def choose_paths(self, snapshot: Snapshot) -> tuple[str, ...] | None:
        """Return the documents that pass; None for all."""
        if not self.globs and not self.types:
            return None
        passes = compile_path_filter(self.globs, self.types)
        return tuple(record.path for record in snapshot.files() if passes(record.path))

    def explain_nothing(self, snapshot: Snapshot) -> str:
        """Say which filter no indexed file passes."""
        paths = [record.path for record in snapshot.files()]
        by_glob, by_type = _name_filter(self.globs_source, self.globs), _name_filter(self.types_source, self.types)
        if self.globs and not any(map(compile_path_filter(self.globs, ()), paths)):
            return f"no indexed file matches {by_glob}"
        if self.types and not any(map(compile_path_filter((), self.types), paths)):
            return f"no indexed file matches {by_type}"
        return f"no indexed file matches both {by_glob} and {by_type}"


def read_filters(settings: Settings) -> Filters:
    """Return the filters of a command.

    Raises
    ------
    UsageError
        If a glob can match nothing, or a type is empty or holds a slash.
    """
    query, sources = settings.query, settings.sources
    compile_path_filter(query["path"], query["type"])
    return Filters(query["path"], query["type"], sources["query", "path"], sources["query", "type"])


def _name_filter(source: str, values: Sequence[str]) -> str:
    """Return ``--type md``, or for a file ``type md (rse.toml line 3)``."""
    flag = source if source.startswith("--") else ""
    return f"{flag} {', '.join(values)}" if flag else f"{', '.join(values)} ({source})"
