"""What ``rse query`` does: read queries, answer each from one snapshot, print in the format asked for."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from rse_cli.cli.asking import Asked, read_asked
from rse_cli.cli.filtering import Filters, read_filters
from rse_cli.cli.output import make_visible, make_visible_line, say, write_bytes
from rse_cli.cli.printing import Output, Shown, encode_answer, print_answer
from rse_cli.cli.requesting import Refining, describe_fallback, plan_requests
from rse_cli.cli.wiring import Index, count_threads, is_english_only, load_index_encoder, open_index, read_settings
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
    requests = [plan.make_request(one, paths if any(query.text for query in one) else ()) for one in queries]

    def show(at: int, answer: Answer) -> Shown:
        model, images = index.manifest.model.name, _illustrate(answer, index, flags)
        return Shown(asked[at], answer, plan.method, plan.preset, model, images, flags.refining.rerank)

    if flags.batch is not None:
        found = _answer_batch(snapshot, requests, show, flags)
    else:
        shown = show(0, answer_request(snapshot, requests[0]))
        found = bool(shown.answer.segments)
    if not flags.refresh:
        from rse_cli.cli.sources import mention_changes

        mention_changes(index, snapshot, "--refresh")
    if flags.batch is None:
        _explain(shown.answer, flags, filters, snapshot)
        _print(shown, flags, count_tokens)
    return 0 if found else 1


def _answer_batch(
    snapshot: Snapshot, requests: Sequence[Request], show: Callable[[int, Answer], Shown], flags: QueryFlags
) -> bool:
    """Print a line for each request, once all are answered; return whether anything was found."""
    from rse_cli.adapters.encoders.pool import count_jobs
    from rse_cli.pipeline.batch import answer_each

    def write(at: int, answer: Answer) -> tuple[bytes, bool, bool]:
        return encode_answer(show(at, answer), line=True), bool(answer.segments), answer.trace.refined.fell_back

    # Page images are drawn by a library that one thread may use at a time.
    jobs = count_jobs() if flags.images is None else 1
    lines, found, fell_back = zip(*answer_each(snapshot, requests, write, jobs), strict=True)
    if any(fell_back):
        _say_fallback(flags)
    write_bytes(b"".join(lines))
    return any(found)


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


@stage("encode")
def _encode(
    asked: Sequence[Asked], index: Index, keep: bool
) -> tuple[list[tuple[Query, ...]], Callable[[str], int] | None]:
    """Encode all queries first, so that the model's 90 MB are given back before the index is read.

    With `keep`, also return what counts tokens.
    """
    encoder = load_index_encoder(index, for_query=True)
    english_only = is_english_only(index.manifest)
    if len(asked) > 1 and index.manifest.backend == "numpy":
        from rse_cli.pipeline.batch import encode_groups

        queries = encode_groups([one.queries for one in asked], encoder, english_only, count_threads(index))
    else:
        # Other backends pad what goes together, and a batch must give what each query gives alone.
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


def _explain(answer: Answer, flags: QueryFlags, filters: Filters, snapshot: Snapshot) -> None:
    """Say on stderr why nothing was found, and that a floor was lowered."""
    if answer.trace.refined.fell_back:
        _say_fallback(flags)
    if not answer.segments:
        from rse_cli.cli.misses import describe_miss

        say(f"rse: {describe_miss(answer, filters, snapshot)}")


def _say_fallback(flags: QueryFlags) -> None:
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
