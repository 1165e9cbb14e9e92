"""``rse status --verify``: read all of an index and say what is damaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rse_cli.cli.output import dump_json, make_visible_line, say, write_bytes, write_result
from rse_cli.cli.printing import SCHEMA_VERSION
from rse_cli.cli.wiring import Index, name_ingest, open_index
from rse_cli.dataclass import dataclass

if TYPE_CHECKING:
    from rse_cli.adapters.store_check import Damage


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is damaged: a file by its path, or a part of the index (then `path` is None)."""

    path: str | None
    reason: str


def verify_index(store: str | None, *, as_json: bool) -> int:
    """Check every row and file of an index, print what was found, and return 0 if all is whole, else 1.

    Raises
    ------
    RseError
        If the index can't be opened.
    """
    from rse_cli.adapters.store_check import find_damage

    index = open_index(store)
    damage = find_damage(index.folder, index.manifest)
    if as_json:
        write_bytes(dump_json(_describe_damage(index, damage)))
    else:
        _print_damage(damage)
    if not damage.is_whole:
        say(f"rse: {make_visible_line(str(index.folder))} is damaged: run `{_name_remedy(index, damage)}`")
    return 0 if damage.is_whole else 1


def list_findings(damage: Damage) -> list[Finding]:
    """Return all that is damaged, files first."""
    found = [Finding(path, reason) for path, reason in damage.files.items()]
    if damage.unnamed:
        found.append(Finding(None, f"{damage.unnamed:,} rows that can't be read, of files that can't be told"))
    if damage.indexes:
        count = len(damage.indexes)
        found.append(Finding(None, f"{count:,} file{'' if count == 1 else 's'} of the search indexes"))
    if damage.is_seal_lost:
        found.append(Finding(None, "the seal, by which the search indexes are checked"))
    if damage.beyond_repair:
        found.append(Finding(None, damage.beyond_repair))
    return found


def describe_findings(findings: Sequence[Finding]) -> list[dict[str, str | None]]:
    """Return findings as JSON holds them; `path` is null for a part of the index."""
    return [{"path": finding.path, "reason": finding.reason} for finding in findings]


def _print_damage(damage: Damage) -> None:
    for finding in list_findings(damage):
        where = f"{finding.path}: " if finding.path is not None else ""
        write_result(f"damaged    {make_visible_line(where + finding.reason)}\n")
    counts = f"{damage.n_rows:,} rows of {damage.n_files:,} file{'' if damage.n_files == 1 else 's'}"
    state = "all whole" if damage.is_whole else f"{len(damage.files):,} damaged"
    write_result(f"verified   {counts}, {state}\n")


def _describe_damage(index: Index, damage: Damage) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "store": str(index.folder),
        "root": str(index.root),
        "whole": damage.is_whole,
        "files": damage.n_files,
        "rows": damage.n_rows,
        "damaged": describe_findings(list_findings(damage)),
        "remedy": None if damage.is_whole else _name_remedy(index, damage),
    }


def _name_remedy(index: Index, damage: Damage) -> str:
    return name_ingest(index.folder, "--rebuild" if damage.beyond_repair else "--repair")
