"""Where the work of an ingest is done: in processes of this machine, or by workers of Ray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache

from rse_cli.adapters.lance_fragments import Scatter
from rse_cli.adapters.reading_worker import ReadingWorker, ReadLimits
from rse_cli.cli.wiring import Index, lend_encoder, load_index_encoder
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError
from rse_cli.pipeline.beside import Start, defer, lend_threads
from rse_cli.pipeline.ingest import Spread
from rse_cli.pipeline.preparation import Read
from rse_cli.ports import Bucket, Encoder

WORKERS_A_BATCH = 4
"""A batch of one machine is eight portions of texts: two for each of so many workers."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What an ingest is done with: the model, lent when first asked for, a reader, and a `map`; see `ingest_files`.

    `scatter` lets workers write rows, where they reach the store. `start` lets things be done side by side.
    """

    load: Callable[[], Encoder]
    read: Read
    spread: Spread = map
    breadth: int = 1
    scatter: Scatter | None = None
    start: Start = defer


def check_engine(name: str) -> None:
    """Refuse an engine that there isn't, before anything is done.

    Raises
    ------
    RseError
        Naming those that there are, what to install, or the cluster that doesn't answer.
    """
    if name not in ("local", "ray"):
        raise UsageError(f"--engine must be local or ray, not {name!r}")
    if name == "ray":
        from rse_cli.adapters.ray_engine import check_address, import_ray

        import_ray()
        check_address(os.environ.get("RAY_ADDRESS", ""))


@contextmanager
def start_engine(name: str, index: Index, jobs: int | None, limits: ReadLimits) -> Iterator[Engine]:
    """Start what does the work of an ingest, and end it afterwards.

    Parameters
    ----------
    name : str
        See `check_engine`.
    index : Index
        Whose model.
    jobs : int or None
        Processes; None for one a core.
    limits : ReadLimits
        Per file.
    """
    if name == "local":
        # At the end the processes are ended first, then the threads that wait for them.
        with lend_threads() as start, lend_encoder(index, jobs) as load, closing(ReadingWorker(limits)) as worker:
            yield Engine(load, worker.read, start=start)
        return
    from rse_cli.adapters.encoders.pool import count_jobs
    from rse_cli.adapters.ray_engine import RayEncoder, RayReader, start_ray

    with start_ray(jobs or count_jobs()) as ray:

        @cache
        def load() -> Encoder:
            encoder = load_index_encoder(index, for_query=False)
            return RayEncoder(encoder, index.manifest.model.name, index.manifest.backend, ray)

        breadth = max(1, ray.n_workers // WORKERS_A_BATCH)
        # Workers of another cluster may be on machines that have no such folder, or another one.
        scatter = ray.spread if ray.is_own or isinstance(index.folder, Bucket) else None
        yield Engine(load, RayReader(limits), ray.spread, breadth, scatter)
