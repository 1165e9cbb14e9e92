"""Many texts on all cores: one process each, one BLAS thread each, the weights shared through their file.

A worker holds nothing but its end of a pipe, so it ends by itself when the ingest is killed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

import numpy as np

from rse_cli.adapters.spawning import detach_worker, end_worker, start_workers
from rse_cli.dataclass import dataclass
from rse_cli.errors import ModelError
from rse_cli.ports import Encoder, ModelIdentity, Vectors

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

# Starting a worker costs a quarter of a second, the time of so many texts.
WORTH_STARTING = 400
# Small enough that cores end together, large enough that texts of one length still meet.
PORTION = 64


@dataclass(slots=True)
class EncoderPool:
    """An encoder that spreads documents over processes; see `rse_cli.ports.Encoder`.

    Parameters
    ----------
    encoder : Encoder
        Does queries, and what is too little to be spread.
    name, backend : str
        What the workers load.
    jobs : int
        Processes, at least 1.
    """

    encoder: Encoder
    name: str
    backend: str
    jobs: int
    _workers: list[tuple[BaseProcess, Connection]] = field(default_factory=list)
    _seen: int = 0
    _is_closed: bool = False

    @property
    def identity(self) -> ModelIdentity:
        """The model's identity."""
        return self.encoder.identity

    def encode_queries(self, texts: Sequence[str]) -> tuple[Vectors, list[bool]]:
        """Encode queries here."""
        return self.encoder.encode_queries(texts)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode texts on all cores once there were enough of them.

        Raises
        ------
        ModelError
            If a worker dies, or is ended by another thread.
        """
        self._seen += len(texts)
        if self.jobs < 2 or self._seen < WORTH_STARTING:
            return self.encoder.encode_documents(texts)
        if self._is_closed:
            raise ModelError("encoding was given up")
        if not self._workers:
            self._workers = start_workers(self.jobs, _serve, self.name, self.backend)
        if not self._workers:
            return self.encoder.encode_documents(texts)
        portions = list_portions(texts, len(self._workers))
        vectors = np.zeros((len(texts), self.identity.dimension), np.float32)
        _spread(self._workers, texts, portions, vectors)
        return vectors

    def count_tokens(self, text: str) -> int:
        """Count tokens here."""
        return self.encoder.count_tokens(text)

    def close(self) -> None:
        """End the workers for good, whatever they encode for another thread."""
        self._is_closed = True
        for worker in self._workers:
            end_worker(*worker)
        self._workers = []


def list_portions(texts: Sequence[str], n_workers: int) -> list[list[int]]:
    """Return the places of `texts` in portions, long texts first: equal work for each worker, so that all end together.

    Examples
    --------
    >>> list_portions(["a", "cccc", "bb", "d"], 2)
    [[1], [2, 0, 3]]
    """
    order = np.array(sorted(range(len(texts)), key=lambda at: -len(texts[at])), np.int64)
    count = math.ceil(len(texts) / (PORTION * n_workers)) * n_workers
    done = np.cumsum([len(texts[at]) for at in order])
    edges = [np.searchsorted(done, done[-1] * number / count) + 1 for number in range(1, count)]
    return [portion.tolist() for portion in np.split(order, edges) if len(portion)]


def count_jobs() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _spread(
    workers: Sequence[tuple[BaseProcess, Connection]],
    texts: Sequence[str],
    portions: list[list[int]],
    vectors: Vectors,
) -> None:
    """Give each idle worker the next portion, and put its vectors where they belong."""
    from multiprocessing.connection import wait

    waiting = portions[::-1]
    busy: dict[Connection, list[int]] = {}
    idle = [connection for _, connection in workers]
    try:
        while waiting or busy:
            while waiting and idle:
                connection = idle.pop()
                busy[connection] = waiting.pop()
                connection.send([texts[at] for at in busy[connection]])
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                answer = connection.recv()
                if isinstance(answer, str):
                    raise ModelError(answer)
                vectors[busy.pop(connection)] = answer
                idle.append(connection)
    except (EOFError, OSError) as error:
        raise ModelError("an encoding process died (out of memory?): run it again with --jobs 1") from error


def _serve(connection: Connection, name: str, backend: str) -> None:
    """Encode what comes through the pipe until it closes."""
    detach_worker()
    from rse_cli.adapters.encoders import load_encoder

    try:
        encoder = load_encoder(name, for_query=True, backend=backend)  # type: ignore[arg-type]
        while True:
            texts = connection.recv()
            connection.send(encoder.encode_documents(texts))
    except (EOFError, OSError):
        return
    except ModelError as error:
        connection.send(str(error))
