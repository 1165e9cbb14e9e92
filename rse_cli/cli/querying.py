"""What ``rse query`` does: read queries, answer each from one snapshot, print in the format asked for."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from rse_cli.cli.asking import Asked, read_asked
from rse_cli.cli.filtering import Filters, read_filters
from rse_cli.cli.output import make_visible, make_visible_line, say
from rse_cli.cli.printing import Output, Shown, print_answer
from rse_cli.cli.requesting import Plan, Refining, describe_fallback, plan_requests
from rse_cli.cli.wiring import Index, is_english_only, load_index_encoder, open_index, read_settings
from rse_cli.dataclass import dataclass
from rse_cli.errors import AnswerError, ClosedStoreError, UsageError
from rse_cli.pipeline.query import Answer, Request, answer_request
from rse_cli.pipeline.retrieval import Query, encode_queries
from rse_cli.ports import Snapshot
from rse_cli.timings import stage


@dataclass(frozen=True, slots=True)
class QueryFlags:
    """The command line of a query.

    Parameters
    ----------
    texts : tuple of str
        Queries.
    batch : str or None
        A file of queries.
    settings : mapping
        Flags that are settings too, None where not given.
    store : str or None
        ``--store``.
    refresh : bool
        Whether to bring the index up to date first.
    refining : Refining
        Steps after the choice.
    output : Output
        How to print.
    returns, images : str, str or None
        ``--return`` and ``--images``.
    answer : bool
        Whether to ask a language model.
    llm : str or None
        Which.
    """

    texts: tuple[str, ...] = ()
    batch: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    store: str | None = None
    refresh: bool = False
    refining: Refining = field(default_factory=Refining)
    output: Output = field(default_factory=Output)
    returns: str = "text"
    images: str | None = None
    answer: bool = False
    llm: str | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """An open index, and how it is asked."""

    index: Index
    plan: Plan
    filters: Filters


def run_query(flags: QueryFlags) -> int:
    """Answer, print, and return the exit code: 0 when anything was found, else 1.

    Raises
    ------
    RseError
        Before anything is printed; `AnswerError` after the segments.
    """
    # A query lives for half a second and makes no cycles worth collecting.
    gc.disable()
    _check_flags(flags)
    asked = read_asked(flags.texts, flags.batch)
    if flags.refresh:
        _refresh(flags.store)
    setup = prepare_query(flags)
    if flags.batch is not None:
        from rse_cli.cli.batching import answer_batch

        found = answer_batch(asked, flags, setup)
    else:
        found = _answer_one(asked[0], flags, setup)
    return 0 if found else 1


def prepare_query(flags: QueryFlags) -> Setup:
    """Open the index and read how it is to be asked.

    Raises
    ------
    RseError
        If there is no index, or a setting can't be used.
    """
    index = open_index(flags.store)
    settings = read_settings(index.root, flags.settings)
    return Setup(index, plan_requests(settings, flags.refining), read_filters(settings))


def _answer_one(asked: Asked, flags: QueryFlags, setup: Setup) -> bool:
    """Print the answer; return whether anything was found."""
    index = setup.index
    # The model's 90 MB are given back before the index is read.
    queries, count_tokens = _encode(asked, index, keep=flags.answer or flags.output.format == "context")
    say_truncated(sum(query.truncated for query in queries), 1, index)
    snapshot = index.store.snapshot()
    request = make_request(queries, setup, setup.filters.choose_paths(snapshot))
    shown = show_answer(asked, answer_request(snapshot, request), flags, setup)
    if not flags.refresh:
        from rse_cli.cli.sources import mention_changes

        mention_changes(index, snapshot, "--refresh")
    _explain(shown.answer, flags, setup.filters, snapshot)
    _print(shown, flags, count_tokens)
    return bool(shown.answer.segments)


def make_request(queries: tuple[Query, ...], setup: Setup, paths: tuple[str, ...] | None) -> Request:
    """Return the request for queries that are answered together; where all are blank, nothing is chosen from."""
    return setup.plan.make_request(queries, paths if any(query.text for query in queries) else ())


def show_answer(asked: Asked, answer: Answer, flags: QueryFlags, setup: Setup) -> Shown:
    """Return an answer with all that is printed of it; draws its page images where they are asked for."""
    plan, model = setup.plan, setup.index.manifest.model.name
    images = _illustrate(answer, setup.index, flags)
    return Shown(asked, answer, plan.method, plan.preset, model, images, flags.refining.rerank)


def _check_flags(flags: QueryFlags) -> None:
    faults = []
    if flags.batch is not None and flags.texts:
        faults.append("give queries or --batch, not both")
    if flags.batch is None and not flags.texts:
        faults.append('give a query: rse query "how do I …"')
    if flags.batch is not None and flags.output.format != "jsonl":
        faults.append("--batch prints JSON lines (--jsonl)")
    if flags.output.null and flags.output.format != "files":
        faults.append("-0 goes with -l")
    if flags.answer and (flags.batch is not None or flags.output.format not in ("text", "json", "context")):
        faults.append("--answer goes with one question, as text or --json")
    if flags.answer and not flags.llm:
        faults.append("--answer needs a language model: name it with --llm")
    if flags.llm is not None and not flags.answer:
        faults.append("--llm goes with --answer")
    if faults:
        raise UsageError("; ".join(faults))
    from rse_cli.cli.illustrating import check_return

    check_return(flags.returns, flags.images)


def _refresh(store: str | None) -> None:
    """Bring the index up to date by an incremental ingest of its sources."""
    from rse_cli.cli.ingesting import refresh_index

    try:
        refresh_index(open_index(store))
    except ClosedStoreError as fault:
        say(f"rse: {make_visible_line(str(fault))}; this answers from the index as it is")


@stage("encode")
def _encode(asked: Asked, index: Index, keep: bool) -> tuple[tuple[Query, ...], Callable[[str], int] | None]:
    """Return the queries encoded and, with `keep`, what counts tokens."""
    encoder = load_index_encoder(index, for_query=True)
    queries = encode_queries(asked.queries, encoder, is_english_only(index.manifest))
    return queries, encoder.count_tokens if keep else None


def say_truncated(n_truncated: int, n_asked: int, index: Index) -> None:
    """Say how many queries the model cut."""
    if not n_truncated:
        return
    one = "the query is" if n_asked == 1 else "one query is"
    which = one if n_truncated == 1 else f"{n_truncated:,} queries are"
    limit = index.manifest.model.max_tokens
    say(f"rse: {which} longer than the model's {limit} tokens; beyond them only the words count, not the meaning")


def _illustrate(answer: Answer, index: Index, flags: QueryFlags) -> list[list[str]]:
    if flags.images is None:
        return []
    from rse_cli.cli.illustrating import render_answer

    return render_answer(answer, index.root, flags.returns, Path(flags.images))


def _explain(answer: Answer, flags: QueryFlags, filters: Filters, snapshot: Snapshot) -> None:
    """Say on stderr why nothing was found, and that a floor was lowered."""
    if answer.trace.refined.fell_back:
        say_fallback(flags)
    if not answer.segments:
        from rse_cli.cli.misses import describe_miss

        say(f"rse: {describe_miss(answer, filters, snapshot)}")


def say_fallback(flags: QueryFlags) -> None:
    """Say that a floor was lowered."""
    if flags.refining.min_score is not None:
        say(f"rse: {describe_fallback(flags.refining.min_score)}")


def _print(shown: Shown, flags: QueryFlags, count_tokens: Callable[[str], int] | None) -> None:
    if count_tokens is None or not shown.answer.segments:
        print_answer(shown, flags.output)
        return
    from rse_cli.cli.answering import ask_language_model, format_answer_context, print_stream
    from rse_cli.cli.output import flush_streams, write_result

    context = format_answer_context(shown, flags.output, count_tokens)
    if flags.answer and flags.output.format == "json":
        try:
            answer = "".join(ask_language_model(shown, context, flags.llm))
        except AnswerError:
            print_answer(shown, flags.output, {"answer": None})
            flush_streams()
            raise
        print_answer(shown, flags.output, {"answer": answer})
        return
    # With an answer the segments carry the numbers that it cites.
    # A model is to read the text as it is, a terminal must not obey it.
    write_result((make_visible(context) if sys.stdout.isatty() else context).rstrip("\n") + "\n")
    if flags.answer:
        write_result("\n")
        flush_streams()
        print_stream(ask_language_model(shown, context, flags.llm))
