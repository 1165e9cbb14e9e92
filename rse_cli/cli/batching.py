"""A batch of queries: processes answer portions of it, all from one version of the index; this one prints in order.

Threads get no further than one and a half cores, since half of an answer is Python.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rse_cli.adapters.encoders.pool import count_jobs
from rse_cli.adapters.spawning import detach_worker, end_worker, start_workers
from rse_cli.cli.asking import Asked
from rse_cli.cli.filtering import Filters
from rse_cli.cli.output import write_bytes
from rse_cli.cli.printing import encode_answer
from rse_cli.cli.querying import (
    QueryFlags,
    Setup,
    make_request,
    say_fallback,
    say_truncated,
    show_answer,
)
from rse_cli.cli.requesting import Plan
from rse_cli.cli.wiring import is_english_only, load_index_encoder, open_index
from rse_cli.dataclass import dataclass
from rse_cli.errors import RseError
from rse_cli.pipeline.batch import PORTION, answer_each, encode_groups, hold_for
from rse_cli.pipeline.beside import start_beside
from rse_cli.pipeline.query import Answer
from rse_cli.pipeline.retrieval import Query, encode_queries
from rse_cli.ports import Encoder
from rse_cli.timings import add_timings, is_timed, stage, start_timings, stop_timings

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from rse_cli.adapters.lance_snapshot import LanceSnapshot

WORTH_STARTING = 75
"""Queries a process: one starts in the time of some 30 of them."""

LOOK_SECONDS = 0.1
"""How often to see whether anything is left for processes that have not begun."""

MOST_PROCESSES = 8
"""Each holds model and index in memory: 400 MB at 10,000 chunks, 300 more at most
(`rse_cli.pipeline.batch.MOST_HELD`)."""


@dataclass(frozen=True, slots=True)
class Portion:
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


@dataclass(frozen=True, slots=True)
class Job:
    """How a process answers: a version of the index, and threads; `n_asked` queries are likely to come to it."""

    flags: QueryFlags
    plan: Plan
    filters: Filters
    version: int
    n_asked: int
    threads: int
    is_timed: bool


def answer_batch(asked: Sequence[Asked], flags: QueryFlags, setup: Setup) -> bool:
    """Print a line for each query, once all are answered; return whether anything was found.

    Raises
    ------
    RseError
        If any can't be answered; then nothing is printed.
    """
    snapshot = setup.index.store.snapshot()
    answered = list(_answer_portions(asked, flags, setup, snapshot))
    if not flags.refresh:
        from rse_cli.cli.sources import mention_changes

        # First, since it reads the index, which may be gone by now.
        mention_changes(setup.index, snapshot, "--refresh")
    lines: list[bytes] = [b""] * len(asked)
    for places, portion in answered:
        for at, line in zip(places, portion.lines, strict=True):
            lines[at] = line
    say_truncated(sum(portion.n_truncated for _, portion in answered), len(asked), setup.index)
    if any(portion.fell_back for _, portion in answered):
        say_fallback(flags)
    write_bytes(b"".join(lines))
    return any(portion.found for _, portion in answered)


def _answer_portions(
    asked: Sequence[Asked], flags: QueryFlags, setup: Setup, snapshot: LanceSnapshot
) -> Iterator[tuple[list[int], Portion]]:
    """Answer in this process and in helpers, each taking what is next; yield the places of queries with their answers.

    They end together: the longest queries go first.
    """
    # Pictures of pages are drawn by a library that one thread may use at a time.
    jobs = count_jobs() if flags.images is None else 1
    count = _count_processes(len(asked), jobs, flags, setup)
    job = Job(flags, setup.plan, setup.filters, snapshot.version, len(asked) // count, jobs // count, is_timed())
    order, size = sorted(range(len(asked)), key=lambda at: -sum(map(len, asked[at].queries))), PORTION * job.threads
    places = [order[at : at + size] for at in range(0, len(order), size)]
    portions = [[asked[at] for at in some] for some in places]
    waiting = deque(range(len(portions)))
    done: dict[int, Portion] = {}
    with _start_helpers(count - 1, job) as helpers:
        finish = start_beside(lambda: attend_helpers(helpers, portions, waiting, done))
        answer = _bind_answer(job, setup, snapshot)
        done |= {at: answer(portions[at]) for at in _take_each(waiting)}
        finish()
        # What a helper left that died.
        done |= {at: answer(portions[at]) for at in _take_each(waiting)}
    yield from ((places[at], portion) for at, portion in done.items())


def _count_processes(n_asked: int, jobs: int, flags: QueryFlags, setup: Setup) -> int:
    """Return how many processes are worth starting: other backends than numpy, and rerankers, use all cores alone."""
    if setup.index.manifest.backend != "numpy" or flags.refining.rerank is not None:
        return 1
    return max(min(jobs, MOST_PROCESSES, n_asked // WORTH_STARTING), 1)


def _take_each(waiting: deque[int]) -> Iterator[int]:
    """Yield what waits; others may take of it meanwhile."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()


def _bind_answer(job: Job, setup: Setup, snapshot: LanceSnapshot) -> Callable[[Sequence[Asked]], Portion]:
    """Return what answers a portion; each line is what the query gives alone, byte for byte."""
    encoder, is_english = load_index_encoder(setup.index, for_query=True), is_english_only(setup.index.manifest)
    held = hold_for(snapshot, job.n_asked)
    # Once, as it reads and matches every path of the index.
    paths = setup.filters.choose_paths(held)

    def answer(asked: Sequence[Asked]) -> Portion:
        queries = _encode(asked, encoder, is_english, job.threads, setup)

        def write(at: int, answer: Answer) -> tuple[bytes, bool, bool]:
            shown = show_answer(asked[at], answer, job.flags, setup)
            return encode_answer(shown, line=True), bool(answer.segments), answer.trace.refined.fell_back

        requests = [make_request(one, setup, paths) for one in queries]
        answers = answer_each(held, requests, write, job.threads)
        lines, found, fell_back = zip(*answers, strict=True)
        return Portion([*lines], any(found), any(fell_back), sum(query.truncated for one in queries for query in one))

    return answer


@stage("encode")
def _encode(
    asked: Sequence[Asked], encoder: Encoder, english_only: bool, threads: int, setup: Setup
) -> list[tuple[Query, ...]]:
    if setup.index.manifest.backend == "numpy":
        return encode_groups([one.queries for one in asked], encoder, english_only, threads)
    # Other backends pad what goes together, and a batch must give what each query gives alone.
    return [encode_queries(one.queries, encoder, english_only) for one in asked]


@contextmanager
def _start_helpers(count: int, job: Job) -> Iterator[list[Connection]]:
    """Start processes that answer portions; whatever they do at the end, they are ended."""
    workers = start_workers(count, _serve, job)
    try:
        yield [connection for _, connection in workers]
    finally:
        for worker in workers:
            end_worker(*worker)


def attend_helpers(
    helpers: Sequence[Connection],
    portions: Sequence[Sequence[Asked]],
    waiting: deque[int],
    done: dict[int, Portion],
) -> None:
    """Give each helper the next portion that waits, until none is left, and keep what comes back.

    The portion of a helper that dies waits again.

    Raises
    ------
    RseError
        What a helper couldn't answer for; then nothing waits any more.
    """
    from multiprocessing.connection import wait

    given: dict[Any, int | None] = {}
    starting, ending = set(helpers), set[Any]()
    # One that has not begun is not waited for when there is nothing left for it.
    while given or ending or (starting and waiting):
        for helper in wait([*starting, *given, *ending], LOOK_SECONDS):
            at = given.pop(helper, None)
            starting.discard(helper)
            try:
                said = helper.recv()
                if isinstance(said, RseError):
                    waiting.clear()
                    raise said
                if helper in ending:
                    ending.remove(helper)
                    add_timings(said)
                    continue
                if at is not None:
                    done[at] = said
                at = next(_take_each(waiting), None)
                if at is None:
                    ending.add(helper)
                else:
                    given[helper] = at
                helper.send(None if at is None else portions[at])
            except (EOFError, OSError):
                given.pop(helper, None)
                ending.discard(helper)
                if at is not None:
                    waiting.append(at)


def _serve(connection: Connection, job: Job) -> None:
    """Say that it is ready, answer the portions that come through the pipe, and after the last, None, send timings."""
    detach_worker()
    gc.disable()
    if job.is_timed:
        start_timings()
    try:
        setup = Setup(open_index(job.flags.store), job.plan, job.filters)
        answer = _bind_answer(job, setup, setup.index.store.snapshot(job.version))
        connection.send(None)
        while (asked := connection.recv()) is not None:
            connection.send(answer(asked))
        connection.send(stop_timings()[1])
    except (EOFError, OSError, MemoryError):
        return
    except RseError as fault:
        connection.send(fault)
