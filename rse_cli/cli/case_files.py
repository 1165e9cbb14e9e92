"""Files of cases on the command line: read, doubted and encoded before anything is asked, then asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rse_cli.adapters.cases import scan_cases
from rse_cli.adapters.encoders.pool import count_jobs
from rse_cli.cli.case_progress import watch_cases
from rse_cli.cli.filtering import read_filters
from rse_cli.cli.output import make_visible_line, name_count, say
from rse_cli.cli.requesting import Plan
from rse_cli.cli.wiring import Index, count_threads, is_english_only, load_index_encoder, name_update
from rse_cli.core.cases import CaseFault, ResolvedCase, sort_faults
from rse_cli.pipeline.check import CaseResult, check_cases, encode_cases
from rse_cli.pipeline.expectations import find_expected
from rse_cli.pipeline.retrieval import Query
from rse_cli.ports import Snapshot
from rse_cli.timings import stage

LEAST_INTRUSIONS = 3
"""Fewer cases that a file comes first for may be chance."""


def read_expected(path: Path, snapshot: Snapshot) -> tuple[list[ResolvedCase], list[CaseFault]]:
    """Return the cases with what they expect, and the faults of both steps, so that all are told at once."""
    cases, faults = scan_cases(path)
    resolved, absent = find_expected(snapshot, cases)
    return resolved, sort_faults([*faults, *absent])


def say_faults(cases_file: str, faults: Sequence[CaseFault]) -> None:
    """Name every fault on stderr, as compilers do."""
    for fault in faults:
        say(make_visible_line(f"{cases_file}:{fault.line}: {fault.message}"))
    say(f"rse: {name_count(len(faults), 'fault')} in {make_visible_line(cases_file)}; nothing was asked")


def mention_doubts(index: Index, snapshot: Snapshot, cases_file: str) -> bool:
    """Say on stderr that the index is out of date, or holds the questions themselves; return whether it does."""
    from rse_cli.cli.sources import mention_changes

    mention_changes(index, snapshot, name_update(index.folder, index.root, index.manifest.sources))
    records = snapshot.files()
    place = Path(cases_file).resolve()
    held = {index.root / record.path for record in records}
    if place in held:
        say(f"rse: {make_visible_line(cases_file)} is in the index and matches its own queries: name it in .rseignore")
    return place in held


def mention_intruder(results: Sequence[CaseResult]) -> None:
    """Say on stderr which one file comes first for most cases though none of them expects it."""
    wanted = {span.path for result in results for span in result.expected}
    first = Counter(result.segments[0].path for result in results if result.segments)
    path, count = max(first.items(), key=lambda pair: pair[1], default=("", 0))
    if path not in wanted and count >= max(LEAST_INTRUSIONS, len(results) / 2):
        say(
            f"rse: {make_visible_line(path)} comes first in {count:,} of {name_count(len(results), 'case')}, and none "
            "expects it: if it holds the questions, as a report does, name it in .rseignore"
        )


@stage("encode")
def encode_expected(cases: Sequence[ResolvedCase], index: Index) -> list[tuple[Query, ...]]:
    """Encode all queries first, so that the model's memory is given back before the index is searched."""
    encoder = load_index_encoder(index, for_query=True)
    return encode_cases([one.case for one in cases], encoder, is_english_only(index.manifest), count_threads(index))


def ask_cases(cases: Sequence[ResolvedCase], index: Index, snapshot: Snapshot, plan: Plan) -> list[CaseResult]:
    """Return what each case finds, with a bar on stderr where that is a terminal."""
    queries = encode_expected(cases, index)
    paths = read_filters(plan.settings).choose_paths(snapshot)
    results = []
    with watch_cases(len(cases)) as advance:
        for result in check_cases(
            snapshot, cases, queries, lambda asked: plan.make_request(asked, paths), count_jobs()
        ):
            results.append(result)
            advance()
    return results
