"""Work on the workers of Ray: a local cluster on loopback, or the one that RAY_ADDRESS names.

Workers read files, encode texts and write fragments; this process alone commits, so a worker that dies costs time and
nothing else: Ray does its tasks again elsewhere.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rse_cli.adapters.encoders.pool import list_portions
from rse_cli.adapters.held_signals import hold_signals
from rse_cli.adapters.reading_worker import ReadingWorker, ReadLimits
from rse_cli.core.models import Document
from rse_cli.dataclass import dataclass
from rse_cli.errors import RseError
from rse_cli.ports import Encoder, ModelIdentity, Vectors

if TYPE_CHECKING:
    from typing import Literal

AHEAD = 4
"""Tasks that wait for each worker: enough that none is idle while a batch is committed."""

RETRIES = 5
"""How often a task is done again whose worker died. A file that kills its reader does so in a process of its own."""

OBJECT_BYTES = 500_000_000
"""Memory for what goes between processes, texts and vectors. By default it is a third of the machine's."""


CONNECT_SECONDS = 10
"""How long another machine may take to answer."""


SIGNAL_SECONDS = 0.2
"""How long a signal may wait."""


@dataclass(frozen=True, slots=True)
class RayEngine:
    """Does work on all workers of a cluster.

    Parameters
    ----------
    n_workers : int
        Cores of the cluster.
    is_own : bool
        Whether the cluster is of this machine, and ends with this process.
    """

    n_workers: int
    is_own: bool

    def spread(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Do what `map` does; see `rse_cli.pipeline.ingest.Spread`.

        Raises
        ------
        RseError
            What `function` raises; or if workers die again and again.
        """
        import ray

        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_call)
        with hold_signals():
            sent = ray.put(function)
        waiting: deque[Any] = deque()
        for item in items:
            with hold_signals():
                waiting.append(task.remote(sent, item))
            if len(waiting) >= AHEAD * self.n_workers:
                yield _take(waiting.popleft())
        while waiting:
            yield _take(waiting.popleft())


@dataclass(frozen=True, slots=True)
class RayEncoder:
    """An encoder that spreads documents over workers; see `rse_cli.ports.Encoder`.

    Parameters
    ----------
    encoder : Encoder
        Does queries here.
    name, backend : str
        What the workers load: the same model has to be on their machines.
    engine : RayEngine
        The workers.
    """

    encoder: Encoder
    name: str
    backend: Literal["numpy", "sentence-transformers"]
    engine: RayEngine

    @property
    def identity(self) -> ModelIdentity:
        """The model's identity."""
        return self.encoder.identity

    def encode_queries(self, texts: Sequence[str]) -> tuple[Vectors, list[bool]]:
        """Encode queries here."""
        return self.encoder.encode_queries(texts)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode texts on all workers.

        Raises
        ------
        RseError
            If a worker has another model of that name, or workers die again and again.
        """
        portions = list_portions(texts, self.engine.n_workers)
        encode = partial(_encode, self.identity, self.name, self.backend)
        vectors = np.zeros((len(texts), self.identity.dimension), np.float32)
        parts = self.engine.spread(encode, [[texts[at] for at in portion] for portion in portions])
        for portion, part in zip(portions, parts, strict=True):
            vectors[portion] = part
        return vectors

    def count_tokens(self, text: str) -> int:
        """Count tokens here."""
        return self.encoder.count_tokens(text)


@dataclass(frozen=True, slots=True)
class RayReader:
    """Reads a file within limits, wherever it is called; see `ReadingWorker.read`."""

    limits: ReadLimits

    def __call__(self, path: Path, data: bytes) -> tuple[str, Document]:
        """Read `data`, the content of `path`."""
        return _keep_reading_worker(self.limits).read(path, data)


def import_ray() -> Any:
    """Import Ray, for a local cluster on loopback where no other one is named.

    Raises
    ------
    RseError
        If it isn't there.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "RAY_ADDRESS" not in os.environ:
        # Without this, Ray listens on the network: it calls a cluster of one machine what other systems must use.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # By default its workers give way to everything else.
        os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        import ray
    except ImportError as error:
        raise RseError("--engine ray needs the extra `ray`: run `pip install 'rse-cli[ray]'`") from error
    return ray


@contextmanager
def start_ray(jobs: int) -> Iterator[RayEngine]:
    """Join the cluster that RAY_ADDRESS names, or start one on loopback, which ends with this process.

    Parameters
    ----------
    jobs : int
        Workers of a new cluster.

    Raises
    ------
    RseError
        If no cluster answers, or none can be started.
    """
    ray = import_ray()
    address = os.environ.get("RAY_ADDRESS")
    # Lance warns of each fork; Ray's are followed by another program at once.
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    own: dict[str, Any] = {"num_cpus": jobs, "include_dashboard": False, "object_store_memory": OBJECT_BYTES}
    # Ray prints what becomes of its workers on stdout, which is for results.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        terminate = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **({} if address else own))
        except (OSError, RuntimeError, ValueError) as error:
            raise RseError(f"can't start Ray: {str(error).splitlines()[0]}") from error
        # Ray puts its own in place.
        signal.signal(signal.SIGTERM, terminate)
        try:
            yield RayEngine(max(1, int(ray.cluster_resources().get("CPU", 1))), is_own=not address)
        finally:
            ray.shutdown()


def check_address(address: str) -> None:
    """See that something answers where a cluster should be: Ray itself goes on trying for minutes, and logs it.

    Raises
    ------
    RseError
        If nothing does. An address of another form than ``host:port`` is left to Ray.
    """
    place = re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:(\d{1,5})", address)
    if place is None:
        return
    try:
        socket.create_connection((place[1], int(place[2])), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as fault:
        reason = getattr(fault, "strerror", None) or fault
        raise RseError(f"no Ray cluster answers at {address}: {reason}: start it, or correct RAY_ADDRESS") from fault


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _take(reference: Any) -> Any:
    """Return what a task made, or raise what it raised.

    Signals wait while Ray works: what they raise inside of it comes out as an error of Ray's own.
    """
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        while True:
            with hold_signals():
                if ray.wait([reference], timeout=SIGNAL_SECONDS)[0]:
                    return ray.get(reference)
    except RayTaskError as error:
        raise error.cause from error
    except RayError as error:
        raise RseError(f"workers of Ray failed: {str(error).splitlines()[0]}") from error


def _encode(identity: ModelIdentity, name: str, backend: Any, texts: Sequence[str]) -> Vectors:
    encoder = _keep_encoder(name, backend)
    if encoder.identity != identity:
        raise RseError(f"a worker of Ray has another version of the model {name}")
    return encoder.encode_documents(texts)


@cache
def _keep_encoder(name: str, backend: Any) -> Encoder:
    """Load a model once for all tasks of a worker."""
    from rse_cli.adapters.encoders import load_encoder

    return load_encoder(name, for_query=True, backend=backend)


@cache
def _keep_reading_worker(limits: ReadLimits) -> ReadingWorker:
    """Keep a process to read in, once for all tasks of a worker; it ends with that."""
    return ReadingWorker(limits)
