"""What ``rse ingest --repair`` does: take what is damaged out of an index, and read those files again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rse_cli.cli.consent import remember_choice
from rse_cli.cli.ingesting import IngestFlags, IngestResult, carry_out, settle_summary
from rse_cli.cli.output import say
from rse_cli.cli.sources import Survey, plan_survey, survey_index
from rse_cli.cli.verifying import list_findings
from rse_cli.cli.wiring import (
    Index,
    announce_wait,
    choose_limits,
    load_index_encoder,
    open_for_writing,
    open_index,
    read_settings,
)
from rse_cli.config import Settings
from rse_cli.errors import DamagedStoreError, StoreError, UsageError
from rse_cli.pipeline.planning import Plan

if TYPE_CHECKING:
    from rse_cli.adapters.store_check import Damage
    from rse_cli.ports import FileRecord


def run_repair(paths: Sequence[Path], flags: IngestFlags) -> IngestResult:
    """Find what is damaged in an index and rebuild that alone; files that changed meanwhile wait for the next ingest.

    Raises
    ------
    RseError
        If there is no index, its files or its model are gone, or it can't be repaired; says what to do.
    """
    if paths or flags.rebuild or flags.dry_run:
        raise UsageError("--repair is of a whole index: give it no paths, and neither --rebuild nor --dry-run")
    index = open_index(flags.store)
    settings = read_settings(index.root, flags.choice)
    if not index.root.is_dir():
        raise StoreError(f"the indexed folder {index.root} is gone: nothing can be read again")
    remember_choice(index.root, settings)
    damage = _take_out_damage(index, settings)
    if damage.is_whole:
        say("rse: nothing is damaged")
    index = replace(index, store=open_for_writing(index.folder, index.manifest, settings))
    survey = survey_index(index)
    with index.store.lock():
        known = index.store.snapshot().files()
        plan = _narrow_plan(survey, known, damage)
        summary = carry_out(index, plan, flags, choose_limits(settings))
    rebuilt = {file.path for file in plan.new}
    gone = damage.files.keys() - rebuilt - dict(survey.found.problems).keys()
    done = replace(summary, changed=sorted([*summary.changed, *summary.new]), new=[], removed=sorted(gone))
    failed = tuple(path for path, _ in summary.skipped if path in rebuilt)
    settled = settle_summary(done, survey, known)
    missing = {*gone, *dict(settled.skipped)}
    repaired = tuple(finding for finding in list_findings(damage) if finding.path not in missing)
    return IngestResult(index.folder, index.root, settled, False, failed, repaired)


def _take_out_damage(index: Index, settings: Settings) -> Damage:
    from rse_cli.adapters.store_check import find_damage
    from rse_cli.adapters.store_files import open_files
    from rse_cli.adapters.store_repair import remove_damage

    with open_files(index.folder).lock(settings.ingest["lock_timeout"], announce_wait):
        damage = find_damage(index.folder, index.manifest)
        if damage.beyond_repair:
            raise DamagedStoreError(f"{index.folder} can't be repaired: {damage.beyond_repair}", str(index.folder))
        if damage.files or damage.unnamed:
            # Before anything is taken out that could not be put back without it.
            load_index_encoder(index, for_query=True)
        if not damage.is_whole:
            remove_damage(index.folder, damage)
    return damage


def _narrow_plan(survey: Survey, known: Sequence[FileRecord], damage: Damage) -> Plan:
    """Return the plan to read what was damaged; where that has no name, whatever the index doesn't hold."""
    plan = plan_survey(survey, known)
    wanted = tuple(file for file in plan.new if damage.unnamed or file.path in damage.files)
    return Plan(wanted, (), (*plan.unchanged, *(record for _, record in plan.suspects), *plan.removed), ())
