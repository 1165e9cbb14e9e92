"""What ``rse inspect`` does: ask as ``rse query`` does, lay the answer open, and draw it."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from rse_cli.cli.asking import Asked, read_asked
from rse_cli.cli.filtering import Filters, read_filters
from rse_cli.cli.output import dump_json, say, write_bytes
from rse_cli.cli.requesting import Plan, Refining, plan_requests
from rse_cli.cli.wiring import Index, is_english_only, load_index_encoder, open_index, read_settings
from rse_cli.config import Settings
from rse_cli.core.cases import ResolvedCase
from rse_cli.core.methods import METHODS
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError
from rse_cli.pipeline.comparison import Contender
from rse_cli.pipeline.query import Answer, answer_request
from rse_cli.pipeline.retrieval import Query, encode_queries
from rse_cli.ports import Snapshot
from rse_cli.timings import stage

MOST_DRAWN = 5  # documents with a segment; an answer of `find_all` may touch dozens
DRAWN_WITHOUT = 3  # documents where nothing was found: near misses enough


@dataclass(frozen=True, slots=True)
class Drawing:
    """How much is drawn: ``--documents``, ``--all``, ``--around`` and ``--explain``."""

    documents: int | None = None
    unfold: bool = False
    around: int = 2
    explain: bool = False


@dataclass(frozen=True, slots=True)
class InspectFlags:
    """The command line of an inspection; `settings` holds the flags that are settings too, None where not given."""

    texts: tuple[str, ...] = ()
    store: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    drawing: Drawing = field(default_factory=Drawing)
    chunk: str | None = None
    compare: tuple[str, ...] = ()
    cases: str | None = None
    case_id: str | None = None
    document: str | None = None
    text: bool = False
    pages: bool = False
    svg: str | None = None
    html: str | None = None
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Inspected:
    """An answer with all that is drawn of it.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the index that was asked.
    asked : Asked
        The queries as given.
    contenders : tuple of Contender
        The answer, then those of ``--compare``.
    case : ResolvedCase or None
        With its expected spans.
    model : str
        The model of the index.
    root : Path
        What paths are relative to.
    filters : Filters
        That chose the documents.
    """

    snapshot: Snapshot
    asked: Asked
    contenders: tuple[Contender, ...]
    case: ResolvedCase | None
    model: str
    root: Path
    filters: Filters

    @property
    def answer(self) -> Answer:
        """The answer that is laid open."""
        return self.contenders[0].answer


def run_inspect(flags: InspectFlags) -> int:
    """Inspect, print, and return the exit code: 0 when anything was found, else 1.

    Raises
    ------
    RseError
        Before anything is printed.
    """
    # As a query, it lives for half a second.
    gc.disable()
    _check_flags(flags)
    index = open_index(flags.store)
    if flags.document is not None:
        from rse_cli.cli.listing import print_document

        return print_document(index, flags)
    inspected = _ask(index, flags)
    if flags.as_json:
        from rse_cli.cli.inspect_json import describe_inspection

        with stage("render"):
            if flags.svg is not None or flags.html is not None:
                from rse_cli.cli.drawing import draw_lines, keep_drawn

                keep_drawn(lambda width, glyphs: draw_lines(inspected, flags, width, glyphs), flags)
            write_bytes(dump_json(describe_inspection(inspected, flags)))
    else:
        from rse_cli.cli.drawing import print_inspection

        print_inspection(inspected, flags)
    if not inspected.answer.segments:
        from rse_cli.cli.misses import describe_miss

        say(f"rse: {describe_miss(inspected.answer, inspected.filters, inspected.snapshot)}")
    return 0 if inspected.answer.segments else 1


def _check_flags(flags: InspectFlags) -> None:
    faults = []
    if flags.document is not None:
        if flags.texts or flags.cases or flags.compare or flags.chunk:
            faults.append("--document lists a document; it takes no query")
        if flags.text and flags.pages:
            faults.append("give --text or --pages, not both")
        if flags.text and (flags.svg is not None or flags.html is not None):
            faults.append("--svg and --html keep a picture, and --text draws none")
    else:
        if (flags.cases is None) != (flags.case_id is None):
            faults.append("--cases FILE and --id ID go together")
        if flags.texts and flags.cases is not None:
            faults.append("give a query or a case, not both")
        if not flags.texts and flags.cases is None:
            faults.append('give a query: rse inspect "how do I …", or --document PATH')
        faults += [f"--{name} goes with --document" for name in ("text", "pages") if getattr(flags, name)]
    if flags.chunk is not None and not flags.chunk.rpartition("#")[2].isdecimal():
        faults.append(f"--chunk takes PATH#NUMBER, not {flags.chunk!r}")
    if flags.chunk is not None and flags.compare:
        faults.append("give --chunk or --compare, not both")
    if flags.drawing.explain and (flags.compare or flags.cases is not None):
        faults.append("--explain goes with one method's picture, not with --compare or --cases")
    if faults:
        raise UsageError("; ".join(faults))


def _ask(index: Index, flags: InspectFlags) -> Inspected:
    """Ask exactly as ``rse query`` does, with each method."""
    case = _read_case(flags)
    asked = read_asked(flags.texts, None)[0] if case is None else Asked(case.case.queries, case.case.id)
    settings = read_settings(index.root, flags.settings)
    plans = [plan_requests(settings, Refining()), *(_plan_contender(settings, one) for one in flags.compare)]
    filters = read_filters(settings)
    queries = _encode(asked, index)
    snapshot = index.store.snapshot()
    paths = filters.choose_paths(snapshot)
    if case is not None:
        from rse_cli.pipeline.expectations import resolve_cases

        case = resolve_cases(snapshot, [case.case])[0]
    contenders = [
        Contender(one.method, one.preset, answer_request(snapshot, one.make_request(queries, paths))) for one in plans
    ]
    from rse_cli.cli.sources import mention_changes

    mention_changes(index, snapshot, "rse ingest")
    return Inspected(snapshot, asked, tuple(contenders), case, index.manifest.model.name, index.root, filters)


def _read_case(flags: InspectFlags) -> ResolvedCase | None:
    """Return the case of ``--cases`` and ``--id``, not resolved yet."""
    if flags.cases is None:
        return None
    from rse_cli.adapters.cases import read_cases

    cases = {case.id: case for case in read_cases(Path(flags.cases))}
    if flags.case_id not in cases:
        import difflib

        near = difflib.get_close_matches(str(flags.case_id), list(cases)[:5_000], 1)
        raise UsageError(
            f"{flags.cases} has no case {flags.case_id!r}" + (f"; did you mean {near[0]!r}?" if near else "")
        )
    return ResolvedCase(cases[flags.case_id], ())


def _plan_contender(settings: Settings, named: str) -> Plan:
    """Return the plan of ``METHOD[:PRESET]``: with ceilings, floor and paths of the first, but not its --set."""
    method, _, preset = named.partition(":")
    query = settings.query | {"method": method, "fill": settings.query["fill"] and method == "rse"}
    sources = dict(settings.sources)
    sources["query", "preset"] = "--compare" if preset else "default"
    query |= {"preset": preset} if preset else {}
    if method in METHODS and not METHODS[method].takes_retriever:
        sources["query", "retriever"] = "default"
    # The first method's --set is meant for it alone, also where the second is the same with another preset.
    methods = {
        name: {key: value for key, value in keys.items() if sources.get((name, key)) != "--set"}
        for name, keys in settings.methods.items()
    }
    return plan_requests(replace(settings, query=query, sources=sources, methods=methods), Refining())


@stage("encode")
def _encode(asked: Asked, index: Index) -> tuple[Query, ...]:
    """Encode first, so that the model's 90 MB are given back before the index is read."""
    encoder = load_index_encoder(index, for_query=True)
    queries = encode_queries(asked.queries, encoder, is_english_only(index.manifest))
    if any(query.truncated for query in queries):
        say(
            f"rse: a query is longer than the model's {encoder.identity.max_tokens} tokens; beyond them only the words "
            "count, not the meaning"
        )
    return queries


def count_documents(inspected: Inspected, drawing: Drawing) -> int:
    """Return how many documents are drawn: those with a segment, up to five, unless the user says."""
    if drawing.documents is not None:
        return drawing.documents
    held = len({one.document for one in inspected.answer.trace.passages})
    return min(held, MOST_DRAWN) or DRAWN_WITHOUT


def list_candidate_paths(root: Path, given: str) -> Sequence[str]:
    """Return the ids that a path on the command line may stand for: itself, or one relative to the root."""
    found = [given.removeprefix("./")]
    # Outside of the root, or no name that a file can have.
    with suppress(OSError, ValueError, RuntimeError):
        found.append(Path(given).resolve().relative_to(root.resolve()).as_posix())
    return found
