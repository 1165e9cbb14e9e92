"""Runs `rse` in this process and tells on a pipe what it is doing, so that a kill can be aimed and its moment known.

Each line on the pipe is JSON: ``{"enter": phase}`` and ``{"leave": phase}`` around the calls of lancedb and lance that
change the store, ``{"begin": change}`` and ``{"end": true}`` around what must be one step. Thresholds are lowered, so
that a small folder makes the store do what a large one does.

A kill is aimed by ``phase:occurrence:delay``: a thread sends SIGKILL so many seconds after the phase began that many
times. Phases take milliseconds, so a signal from outside would mostly come too late.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

SMALL = {
    # A vector index learns from at least 256 rows.
    "rse_cli.adapters.store_upkeep": {"VECTOR_INDEX_ROWS": 256, "UNINDEXED_ROWS": 20, "FRAGMENTS": 2, "KEEP_SECONDS": 1.0},
    "rse_cli.pipeline.ingest": {"BATCH_CHUNKS": 60, "BATCH_FILES": 12},
    "rse_cli.adapters.encoders.pool": {"WORTH_STARTING": 50},
}  # fmt: skip

PHASES = (
    ("table creation", "lancedb.db", "LanceDBConnection", "create_table"),
    ("commit", "rse_cli.adapters.lance_fragments", None, "commit_fragments"),
    ("commit", "lance.dataset", "LanceDataset", "delete"),
    ("index build", "lancedb.table", "LanceTable", "create_index"),
    ("index build", "lance.dataset", "DatasetOptimizer", "optimize_indices"),
    ("optimize", "lancedb.table", "LanceTable", "optimize"),
    ("cleanup", "lance.dataset", "LanceDataset", "cleanup_old_versions"),
    ("emptying", "rse_cli.adapters.store_folder", None, "discard_table"),
    ("manifest", "rse_cli.adapters.manifest", None, "write_manifest"),
    ("manifest", "rse_cli.adapters.lancedb_store", None, "write_manifest"),
    ("reading and encoding", "rse_cli.pipeline.ingest", None, "_read_file"),
    ("reading and encoding", "rse_cli.pipeline.ingest", None, "encode_missing"),
)


def run_driven(pipe: int, aim: str, arguments: list[str]) -> None:
    """Run a command line with its phases told on `pipe`; ends the process."""
    from rse_cli.adapters.lance_snapshot import silence_logs

    silence_logs()
    lower_thresholds(lambda module, name, value: setattr(import_module(module), name, value))
    use_numpy_without_comparison()
    for phase, module, owner, name in PHASES:
        place = import_module(module)
        announce_phase(pipe, getattr(place, owner) if owner else place, name, phase)
    announce_changes(pipe)
    if aim:
        phase, occurrence, delay = aim.split(":")
        hooks.append(aim_kill(phase, int(occurrence), float(delay)))
    tell(pipe, {"enter": "start"})
    sys.argv = ["rse", *arguments]
    from rse_cli.__main__ import main

    main()


def lower_thresholds(change: Callable[[str, str, float], None]) -> None:
    """Let `change` set each threshold, given as module, name and value."""
    for module, values in SMALL.items():
        for name, value in values.items():
            assert hasattr(import_module(module), name), f"{module}.{name} is gone: mend this driver"
            change(module, name, value)


def use_numpy_without_comparison() -> None:
    """Spare the tiny model its comparison with sentence-transformers, whose import takes longer than all else."""
    from rse_cli.adapters import encoders

    encoders.choose_backend = lambda _name: "numpy"


hooks: list[Callable[[str], None]] = []

telling = threading.RLock()
"""Threads tell side by side; a signal may interrupt the main one while it tells."""


def aim_kill(phase: str, occurrence: int, delay: float) -> Callable[[str], None]:
    """Return what is to be told of each phase that begins."""
    left = [occurrence]

    def kill_later() -> None:
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGKILL)

    def count(entered: str) -> None:
        left[0] -= entered == phase
        if entered == phase and left[0] == 0:
            threading.Thread(target=kill_later, daemon=True).start()

    return count


def announce_phase(pipe: int, owner: Any, name: str, phase: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def announced(*arguments: Any, **options: Any) -> Any:
        tell(pipe, {"enter": phase})
        for hook in hooks:
            hook(phase)
        try:
            return original(*arguments, **options)
        finally:
            tell(pipe, {"leave": phase})

    setattr(owner, name, announced)


def announce_changes(pipe: int) -> None:
    """Tell what each change of the store will hold before it begins, and when it is acknowledged."""
    from rse_cli.adapters.lancedb_store import LanceStore

    def announce(original: Callable[..., None], describe: Callable[..., dict[str, Any]]) -> Callable[..., None]:
        def announced(store: Any, *arguments: Any) -> None:
            tell(pipe, {"begin": describe(*arguments)})
            original(store, *arguments)
            tell(pipe, {"end": True})

        return announced

    def describe_records(records: Any) -> dict[str, list[Any]]:
        return {record.path: [record.content_hash, record.stamp.mtime_ns] for record in records}

    LanceStore.replace = announce(  # type: ignore[method-assign]
        LanceStore.replace,
        lambda files, removed: {
            "put": describe_records([file.record for file in files]),
            "drop": sorted(removed),
        },
    )
    LanceStore.touch = announce(  # type: ignore[method-assign]
        LanceStore.touch, lambda records: {"put": describe_records(records), "drop": []}
    )


def tell(pipe: int, event: dict[str, Any]) -> None:
    """Write an event in one go, shorter than PIPE_BUF or not."""
    with telling:
        line = json.dumps(event | {"at": time.monotonic()}).encode() + b"\n"
        while line:
            line = line[os.write(pipe, line) :]


if __name__ == "__main__":
    run_driven(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
