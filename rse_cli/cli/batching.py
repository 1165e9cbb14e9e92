"""A batch of queries: processes answer a share each, all from one version of the index, and this one prints in order.

Threads get no further than one and a half cores, since half of an answer is Python.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rse_cli.adapters.encoders.pool import count_jobs
from rse_cli.adapters.spawning import detach_worker, end_worker, start_worker
from rse_cli.cli.asking import Asked
from rse_cli.cli.output import write_bytes
from rse_cli.cli.printing import encode_answer
from rse_cli.cli.querying import (
    QueryFlags,
    Setup,
    make_requests,
    prepare_query,
    say_fallback,
    say_truncated,
    show_answer,
)
from rse_cli.cli.wiring import is_english_only, load_index_encoder
from rse_cli.dataclass import dataclass
from rse_cli.errors import RseError, StoreError
from rse_cli.pipeline.batch import answer_each, encode_groups
from rse_cli.pipeline.query import Answer
from rse_cli.pipeline.retrieval import Query, encode_queries
from rse_cli.timings import add_timings, is_timed, stage, start_timings, stop_timings

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from rse_cli.adapters.lance_snapshot import LanceSnapshot

SHARE = 75
"""Queries: a process starts in the time of some 30 of them."""

MOST_PROCESSES = 8
"""Each holds the index in memory, up to 300 MB of it (`rse_cli.pipeline.batch.MOST_HELD`)."""


@dataclass(frozen=True, slots=True)
class Share:
    """What came of some queries.

    Parameters
    ----------
    lines : list of bytes
        An answer each, as it is printed.
    found, fell_back : bool
        Whether any query found something, and whether any lowered a floor.
    n_truncated : int
        Queries that the model cut.
    """

    lines: list[bytes]
    found: bool
    fell_back: bool
    n_truncated: int


def answer_batch(asked: Sequence[Asked], flags: QueryFlags, setup: Setup) -> bool:
    """Print a line for each query, once all are answered; return whether anything was found.

    Raises
    ------
    RseError
        If any can't be answered; then nothing is printed.
    """
    snapshot = setup.index.store.snapshot()
    # Pictures of pages are drawn by a library that one thread may use at a time.
    jobs = count_jobs() if flags.images is None else 1
    count = _count_processes(len(asked), jobs, flags, setup)
    threads = jobs // count
    with _start_helpers(count - 1) as helpers:
        for at, helper in enumerate(helpers, start=1):
            helper.send((asked[at::count], flags, snapshot.version, threads, is_timed()))
        shares = [answer_share(asked[::count], flags, setup, snapshot, threads), *map(receive_share, helpers)]
    say_truncated(sum(share.n_truncated for share in shares), len(asked), setup.index)
    if any(share.fell_back for share in shares):
        say_fallback(flags)
    write_bytes(b"".join(shares[at % count].lines[at // count] for at in range(len(asked))))
    if not flags.refresh:
        from rse_cli.cli.sources import mention_changes

        mention_changes(setup.index, snapshot, "--refresh")
    return any(share.found for share in shares)


def _count_processes(n_asked: int, jobs: int, flags: QueryFlags, setup: Setup) -> int:
    """Return how many processes are worth starting: other backends than numpy, and rerankers, use all cores alone."""
    if setup.index.manifest.backend != "numpy" or flags.refining.rerank is not None:
        return 1
    return max(min(jobs, MOST_PROCESSES, n_asked // SHARE), 1)


def answer_share(
    asked: Sequence[Asked], flags: QueryFlags, setup: Setup, snapshot: LanceSnapshot, threads: int
) -> Share:
    """Answer some queries of a batch; each line is what the query gives alone, byte for byte."""
    queries = _encode(asked, setup, threads)

    def write(at: int, answer: Answer) -> tuple[bytes, bool, bool]:
        shown = show_answer(asked[at], answer, flags, setup)
        return encode_answer(shown, line=True), bool(answer.segments), answer.trace.refined.fell_back

    answers = answer_each(snapshot, make_requests(queries, setup, snapshot), write, threads)
    lines, found, fell_back = zip(*answers, strict=True)
    return Share([*lines], any(found), any(fell_back), sum(query.truncated for one in queries for query in one))


@stage("encode")
def _encode(asked: Sequence[Asked], setup: Setup, threads: int) -> list[tuple[Query, ...]]:
    index = setup.index
    encoder, english_only = load_index_encoder(index, for_query=True), is_english_only(index.manifest)
    if index.manifest.backend == "numpy":
        return encode_groups([one.queries for one in asked], encoder, english_only, threads)
    # Other backends pad what goes together, and a batch must give what each query gives alone.
    return [encode_queries(one.queries, encoder, english_only) for one in asked]


@contextmanager
def _start_helpers(count: int) -> Iterator[list[Connection]]:
    """Start processes that wait for a share; whatever they do at the end, they are ended."""
    workers = [start_worker(_serve) for _ in range(count)]
    try:
        yield [connection for _, connection in workers]
    finally:
        for worker in workers:
            end_worker(*worker)


def receive_share(helper: Connection) -> Share:
    """Wait for what a process made of its share.

    Raises
    ------
    RseError
        If it couldn't answer, or died.
    """
    try:
        share, seconds = helper.recv()
    except (EOFError, OSError) as error:
        raise StoreError("a process that answers the batch died (out of memory?): split the batch") from error
    if isinstance(share, str):
        raise RseError(share)
    assert isinstance(share, Share)
    add_timings(seconds)
    return share


def _serve(connection: Connection) -> None:
    """Answer the share that comes through the pipe."""
    detach_worker()
    gc.disable()
    try:
        asked, flags, version, threads, timed = connection.recv()
        if timed:
            start_timings()
        setup = prepare_query(flags)
        share = answer_share(asked, flags, setup, setup.index.store.snapshot(version), threads)
        connection.send((share, stop_timings()[1]))
    except (EOFError, OSError):
        return
    except RseError as fault:
        connection.send((str(fault), {}))
