"""Many requests to one version of the index: what they share is read once, and threads answer them side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from rse_cli.pipeline.query import Answer, Request, answer_request
from rse_cli.pipeline.retrieval import Query, count_hits, encode_queries, find_words
from rse_cli.ports import Encoder, HeldSnapshot, Snapshot

CHUNKS_PER_REQUEST = 1_000
"""Reading the whole index takes about as long as what it saves a request for so many of its chunks."""

MOST_HELD = 150_000
"""Chunks: 2 kB each in memory."""

PORTION = 64
"""Queries that are encoded or searched together: enough to read the weights seldom and to find in the processor's
caches what lance works with (1.1 ms a search of 10,000 chunks; 3.5 where each is followed by other work), few enough
that threads end together."""

Digest = TypeVar("Digest")


def encode_groups(
    groups: Sequence[Sequence[str]], encoder: Encoder, english_only: bool, jobs: int
) -> list[tuple[Query, ...]]:
    """Return the queries of each group, all encoded together.

    Parameters
    ----------
    groups : sequence of sequence of str
        Queries that are asked together.
    encoder : Encoder
        The model of the index; threads share it.
    english_only : bool
        See `encode_queries`.
    jobs : int
        Threads.
    """
    # By length, so that what is encoded together is alike.
    texts = sorted({text for group in groups for text in group}, key=lambda text: (len(text), text))
    portions = [texts[at : at + PORTION] for at in range(0, len(texts), PORTION)]
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        parts = pool.map(lambda portion: encode_queries(portion, encoder, english_only), portions)
        found = {query.text: query for part in parts for query in part}
    return [tuple(found[text] for text in group) for group in groups]


def hold_for(snapshot: Snapshot, n_requests: int) -> Snapshot:
    """Return the same version in memory where so many requests are worth it, else as it is."""
    n_chunks = snapshot.statistics().n_chunks
    is_worth_it = n_chunks <= min(n_requests * CHUNKS_PER_REQUEST, MOST_HELD)
    return snapshot.hold() if is_worth_it and not snapshot.in_memory else snapshot


def _search_ahead(held: HeldSnapshot, requests: Sequence[Request], jobs: int) -> None:
    k = count_hits(held.statistics().n_chunks)
    queries = [query for request in requests if request.paths is None for query in request.queries]

    def search(portion: Sequence[Query]) -> None:
        vectors = [query.vector for query in portion if query.vector is not None]
        held.search_ahead(np.array(vectors, np.float32), [found.terms for found in find_words(held, portion)], k)

    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        list(pool.map(search, [queries[at : at + PORTION] for at in range(0, len(queries), PORTION)]))


def answer_each(
    snapshot: Snapshot, requests: Sequence[Request], digest: Callable[[int, Answer], Digest], jobs: int
) -> Iterator[Digest]:
    """Answer requests by themselves and yield what `digest` makes of each, in order.

    Parameters
    ----------
    snapshot : Snapshot
        One version of the index.
    requests : sequence of Request
        What is asked.
    digest : callable
        Position and answer to what is kept of it; an answer with its trace takes a megabyte or more. Threads call it.
    jobs : int
        Threads; a reranker is asked by one.
    """
    held = hold_for(snapshot, len(requests))
    if held.in_memory:
        _search_ahead(held.hold(), requests, jobs)

    def answer(at: int) -> Digest:
        return digest(at, answer_request(held, requests[at]))

    if jobs < 2 or len(requests) < 2 or any(request.reranker is not None for request in requests):
        yield from map(answer, range(len(requests)))
        return
    pool = ThreadPoolExecutor(jobs)
    try:
        yield from pool.map(answer, range(len(requests)))
    finally:
        # Whoever interrupts the command doesn't wait for the rest of the batch.
        pool.shutdown(wait=False, cancel_futures=True)
