"""What ``rse query`` does: read queries, answer each from one snapshot, print in the format asked for."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rse_cli.cli.asking import Asked, read_asked
from rse_cli.cli.filtering import Filters, read_filters
from rse_cli.cli.output import make_visible_line, say
from rse_cli.cli.printing import Output, Shown, print_answers
from rse_cli.cli.requesting import Refining, describe_fallback, plan_requests
from rse_cli.cli.wiring import Index, is_english_only, load_index_encoder, open_index, read_settings
from rse_cli.errors import AnswerError, ClosedStoreError, UsageError
from rse_cli.pipeline.query import Answer, answer_request
from rse_cli.pipeline.retrieval import Query, encode_queries
from rse_cli.ports import Snapshot


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
    index = _open_fresh(flags)
    settings = read_settings(index.root, flags.settings)
    plan = plan_requests(settings, flags.refining)
    filters = read_filters(settings)
    queries, count_tokens = _encode(asked, index, keep=flags.answer or flags.output.format == "context")
    snapshot = index.store.snapshot()
    paths = filters.choose_paths(snapshot)
    answers = [
        answer_request(snapshot, plan.make_request(one, paths if any(query.text for query in one) else ()))
        for one in queries
    ]
    if not flags.refresh:
        from rse_cli.cli.sources import mention_changes

        mention_changes(index, snapshot, "--refresh")
    model = index.manifest.model.name
    shown = [
        Shown(
            one,
            answer,
            plan.method,
            plan.preset,
            model,
            _illustrate(answer, index, flags),
            flags.refining.rerank,
        )
        for one, answer in zip(asked, answers, strict=True)
    ]
    _explain(answers, flags, filters, snapshot)
    _print(shown, flags, count_tokens)
    return 0 if any(answer.segments for answer in answers) else 1


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


def _open_fresh(flags: QueryFlags) -> Index:
    """Open the index, after an incremental ingest of its sources with ``--refresh``."""
    if flags.refresh:
        from rse_cli.cli.ingesting import refresh_index

        try:
            refresh_index(open_index(flags.store))
        except ClosedStoreError as fault:
            say(f"rse: {make_visible_line(str(fault))}; this answers from the index as it is")
    return open_index(flags.store)


def _encode(
    asked: Sequence[Asked], index: Index, keep: bool
) -> tuple[list[tuple[Query, ...]], Callable[[str], int] | None]:
    """Encode all queries first, so that the model's 90 MB are given back before the index is read.

    With `keep`, also return what counts tokens.
    """
    encoder = load_index_encoder(index, for_query=True)
    english_only = is_english_only(index.manifest)
    queries = [encode_queries(one.queries, encoder, english_only) for one in asked]
    cut = sum(query.truncated for one in queries for query in one)
    if cut:
        which = "the query is" if len(asked) == cut == 1 else f"{cut:,} queries are"
        limit = encoder.identity.max_tokens
        say(f"rse: {which} longer than the model's {limit} tokens; beyond them only the words count, not the meaning")
    return queries, encoder.count_tokens if keep else None


def _illustrate(answer: Answer, index: Index, flags: QueryFlags) -> list[list[str]]:
    if flags.images is None:
        return []
    from rse_cli.cli.illustrating import render_answer

    return render_answer(answer, index.root, flags.returns, Path(flags.images))


def _explain(answers: Sequence[Answer], flags: QueryFlags, filters: Filters, snapshot: Snapshot) -> None:
    """Say on stderr why nothing was found, and that a floor was lowered."""
    if any(answer.trace.refined.fell_back for answer in answers) and flags.refining.min_score is not None:
        say(f"rse: {describe_fallback(flags.refining.min_score)}")
    if flags.batch is None and not answers[0].segments:
        from rse_cli.cli.misses import describe_miss

        say(f"rse: {describe_miss(answers[0], filters, snapshot)}")


def _print(shown: Sequence[Shown], flags: QueryFlags, count_tokens: Callable[[str], int] | None) -> None:
    if count_tokens is None or not shown[0].answer.segments:
        print_answers(shown, flags.output)
        return
    from rse_cli.cli.answering import ask_language_model, format_answer_context, print_stream
    from rse_cli.cli.output import flush_streams, write_result

    context = format_answer_context(shown[0], flags.output, count_tokens)
    if flags.answer and flags.output.format == "json":
        try:
            answer = "".join(ask_language_model(shown[0], context, flags.llm))
        except AnswerError:
            print_answers(shown, flags.output, {"answer": None})
            flush_streams()
            raise
        print_answers(shown, flags.output, {"answer": answer})
        return
    # With an answer the segments carry the numbers that it cites.
    write_result(context.rstrip("\n") + "\n")
    if flags.answer:
        write_result("\n")
        flush_streams()
        print_stream(ask_language_model(shown[0], context, flags.llm))
