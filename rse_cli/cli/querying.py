"""What ``rse query`` does: read queries, answer each from one snapshot, print in the format asked for."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rse_cli.adapters.ignore import compile_path_filter
from rse_cli.cli.output import dump_json, has_colour, is_terminal, say, write_bytes, write_result
from rse_cli.cli.wiring import Index, is_english_only, load_index_encoder, open_index, read_settings, survey_sources
from rse_cli.config import Settings
from rse_cli.core.params import RseParams, choose_params
from rse_cli.errors import UsageError
from rse_cli.pipeline.query import Answer, Request, answer_request
from rse_cli.pipeline.retrieval import Query, encode_queries
from rse_cli.ports import Snapshot

SCHEMA_VERSION = 1
METHOD = "rse"


@dataclass(frozen=True, slots=True)
class Output:
    """How answers are printed; at most one of the formats."""

    json: bool = False
    jsonl: bool = False
    plain: bool = False
    files_only: bool = False
    null: bool = False


@dataclass(frozen=True, slots=True)
class QueryFlags:
    """The command line of a query; `settings` are flags that are settings too, None where not given."""

    texts: tuple[str, ...] = ()
    batch: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    store: str | None = None
    refresh: bool = False
    output: Output = field(default_factory=Output)


@dataclass(frozen=True, slots=True)
class Asked:
    """One line of a batch, or the queries of the command line, answered together."""

    queries: tuple[str, ...]
    id: Any = None


def run_query(flags: QueryFlags) -> int:
    """Answer, print, and return the exit code: 0 when anything was found, else 1.

    Raises
    ------
    RseError
        Before anything is printed.
    """
    # A query lives for half a second and makes no cycles worth collecting.
    gc.disable()
    _check_flags(flags)
    asked = _read_asked(flags)
    index = _open_fresh(flags)
    settings = read_settings(index.root, flags.settings)
    params = _choose_params(settings)
    passes = compile_path_filter(settings.query["path"], settings.query["type"])
    queries = _encode(asked, index)
    snapshot = index.store.snapshot()
    paths = None
    if settings.query["path"] or settings.query["type"]:
        paths = tuple(record.path for record in snapshot.files() if passes(record.path))
    answers = [answer_request(snapshot, _make_request(one, params, settings, paths)) for one in queries]
    if not flags.refresh:
        _mention_changes(index, snapshot)
    _print_answers(flags, asked, answers, settings.query["preset"], index.manifest.model.name)
    return 0 if any(answer.segments for answer in answers) else 1


def _check_flags(flags: QueryFlags) -> None:
    formats = {"--json": flags.output.json, "--plain": flags.output.plain, "-l": flags.output.files_only}
    chosen = [name for name, given in (*formats.items(), ("--jsonl", flags.output.jsonl)) if given]
    faults = []
    if flags.batch is not None and flags.texts:
        faults.append("give queries or --batch, not both")
    if flags.batch is None and not flags.texts:
        faults.append('give a query: rse query "how do I …"')
    if len(chosen) > 1:
        faults.append(f"give one of {', '.join(chosen)}")
    if flags.batch is not None and any(formats.values()):
        faults.append("--batch prints JSON lines (--jsonl)")
    if flags.output.null and not flags.output.files_only:
        faults.append("-0 goes with -l")
    if faults:
        raise UsageError("; ".join(faults))


def _read_asked(flags: QueryFlags) -> list[Asked]:
    """Return what is asked, or raise one error that names every line that can't be used."""
    if flags.batch is not None:
        return parse_batch(_read_text(flags.batch))
    texts = tuple(_read_text("-") if text == "-" else text for text in flags.texts)
    if not all(text.strip() for text in texts):
        raise UsageError("a query is empty")
    return [Asked(tuple(map(_clean, texts)))]


def _read_text(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as fault:
        raise UsageError(f"can't read {name}: {fault.strerror or fault}") from fault
    return data.decode("utf-8-sig", "replace")


def _clean(text: str) -> str:
    """Return an argument without the surrogates that stand for bytes that aren't UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def parse_batch(text: str) -> list[Asked]:
    """Return the queries of a batch: plain lines, or JSON lines with ``query`` and an optional ``id``.

    Blank lines are passed over. A line that begins with ``{`` is JSON.

    Raises
    ------
    UsageError
        Naming every line that is not JSON, or without a query.
    """
    asked: list[Asked] = []
    faults: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            asked.append(Asked((line.strip(),)))
            continue
        try:
            asked.append(_parse_case(json.loads(line)))
        except ValueError as fault:
            faults.append(f"line {number}: {fault}")
    if faults:
        raise UsageError("; ".join(faults[:10]) + (f"; and {len(faults) - 10} more" if len(faults) > 10 else ""))
    if not asked:
        raise UsageError("the batch holds no query")
    return asked


def _parse_case(case: Any) -> Asked:
    queries = case.get("query")
    queries = [queries] if isinstance(queries, str) else queries
    if not isinstance(queries, list) or not queries or not all(isinstance(one, str) and one.strip() for one in queries):
        raise ValueError("no query")
    return Asked(tuple(one.encode("utf-8", "replace").decode() for one in queries), case.get("id"))


def _open_fresh(flags: QueryFlags) -> Index:
    """Open the index, after an incremental ingest of its sources with ``--refresh``."""
    if flags.refresh:
        from rse_cli.cli.ingesting import refresh_index

        refresh_index(open_index(flags.store))
    return open_index(flags.store)


def _choose_params(settings: Settings) -> RseParams:
    """Return the preset's parameters under those of ``[rse]`` and ``--set``, and the ceiling of ``--max-chars``."""
    overrides = dict(settings.methods[METHOD])
    ceiling, place = settings.query["max_chars"], settings.sources["query", "max_chars"]
    set_directly = settings.sources.get((METHOD, "max_chars")) == "--set"
    if ceiling is not None and (place == "--max-chars" or not set_directly):
        overrides["max_chars"] = ceiling
    return choose_params(settings.query["preset"], overrides)


def _encode(asked: Sequence[Asked], index: Index) -> list[tuple[Query, ...]]:
    """Encode all queries first, so that the model's 90 MB are given back before the index is read."""
    encoder = load_index_encoder(index, for_query=True)
    english_only = is_english_only(index.manifest)
    queries = [encode_queries(one.queries, encoder, english_only) for one in asked]
    cut = sum(query.truncated for one in queries for query in one)
    if cut:
        which = "the query is" if len(asked) == cut == 1 else f"{cut:,} queries are"
        limit = encoder.identity.max_tokens
        say(f"rse: {which} longer than the model's {limit} tokens; beyond them only the words count, not the meaning")
    return queries


def _make_request(
    queries: tuple[Query, ...], params: RseParams, settings: Settings, paths: tuple[str, ...] | None
) -> Request:
    return Request(
        queries,
        params,
        fill=settings.query["fill"],
        limit=settings.query["limit"],
        min_confidence=settings.query["min_confidence"],
        paths=paths,
    )


def _mention_changes(index: Index, snapshot: Snapshot) -> None:
    """Say on stderr how many files have changed since the index was made."""
    from rse_cli.pipeline.freshness import CONFIRM_BYTES

    count = survey_sources(index, snapshot.files(), confirm_bytes=CONFIRM_BYTES).count
    if count:
        say(f"rse: {count:,} file{'' if count == 1 else 's'} changed since the index was made (--refresh updates it)")


def _print_answers(
    flags: QueryFlags, asked: Sequence[Asked], answers: Sequence[Answer], preset: str, model: str
) -> None:
    for answer in answers:
        if not answer.segments and flags.batch is None:
            _say_nothing_found(answer)
    if flags.batch is not None or flags.output.json or flags.output.jsonl:
        documents = [
            describe_answer_json(one, answer, preset, model) for one, answer in zip(asked, answers, strict=True)
        ]
        write_bytes(b"".join(dump_json(document, line=not flags.output.json) for document in documents))
    elif flags.output.files_only:
        paths = dict.fromkeys(segment.path for answer in answers for segment in answer.segments)
        end = b"\0" if flags.output.null else b"\n"
        write_bytes(b"".join(os.fsencode(path) + end for path in paths))
    else:
        _print_readable(flags, answers[0], f"{METHOD}/{preset}")


def _print_readable(flags: QueryFlags, answer: Answer, method: str) -> None:
    from rse_cli.cli import render

    if flags.output.plain:
        write_result(render.render_plain(answer))
        return
    if not answer.segments:
        return
    on_terminal = is_terminal(sys.stdout)
    write_result(
        render.print_segments(
            answer, colour=has_colour(sys.stdout), width=render.measure_width() if on_terminal else None
        )
    )
    if on_terminal:
        say(render.describe_answer(answer, method))


def _say_nothing_found(answer: Answer) -> None:
    from rse_cli.cli.render import describe_miss

    say(f"rse: {describe_miss(answer)}")


def describe_answer_json(asked: Asked, answer: Answer, preset: str, model: str) -> dict[str, Any]:
    """Return the document of ``--json``: the contract with scripts. Fields are added, never renamed."""
    document: dict[str, Any] = {"schema_version": SCHEMA_VERSION}
    if asked.id is not None:
        document["id"] = asked.id
    return document | {
        "queries": list(asked.queries),
        "method": METHOD,
        "preset": preset,
        "params": _describe_params(answer),
        "model": model,
        "truncated": any(query.truncated for query in answer.request.queries),
        "confidence": round(answer.confidence, 6),
        "segments": [asdict(segment) | {"score": round(segment.score, 9)} for segment in answer.segments],
        "stats": {
            "chars": sum(len(segment.text) for segment in answer.segments),
            "candidates": answer.n_candidates,
        },
    }


def _describe_params(answer: Answer) -> dict[str, Any]:
    """Return the parameters as they were used: the ceiling may have raised the penalty, each query's by itself."""
    found = list(answer.penalties)
    penalty = found[0] if len(found) == 1 else found or answer.request.params.irrelevant_chunk_penalty
    used = {"irrelevant_chunk_penalty": penalty, "segment_cost": answer.segment_cost}
    return answer.request.params.to_dict() | used | {"fill": answer.request.fill}
