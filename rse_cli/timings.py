"""Where the time of a command goes: stages that are measured only when asked for.

Any layer may name a stage; nothing but this module looks at the clock. A stage inside another one is taken out of it,
so that the stages of one thread add up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

from rse_cli.dataclass import dataclass

_BEGAN = time.perf_counter()


@dataclass(slots=True)
class _Ledger:
    """Seconds by stage, in the order in which stages first began."""

    began: float
    seconds: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    open: threading.local = field(default_factory=threading.local)


_ledgers: list[_Ledger] = []


def start_timings() -> None:
    """Measure from now on; what came before, the start of Python and the imports, counts as ``import``."""
    _ledgers[:] = [_Ledger(_BEGAN)]


def is_timed() -> bool:
    """Tell whether stages are measured."""
    return bool(_ledgers)


def add_timings(seconds: Mapping[str, float]) -> None:
    """Add the stages of another process, from its `stop_timings`."""
    for ledger in _ledgers:
        with ledger.lock:
            for name, took in seconds.items():
                if name != "rest":
                    ledger.seconds[name] = ledger.seconds.get(name, 0.0) + took


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Count what happens inside, without the stages inside that, towards a stage; also a decorator.

    Examples
    --------
    >>> start_timings()
    >>> with stage("fetch"):
    ...     with stage("search"):
    ...         pass
    >>> list(stop_timings()[1])
    ['import', 'fetch', 'search', 'rest']
    >>> stop_timings()
    (0.0, {})
    """
    if not _ledgers:
        yield
        return
    ledger = _ledgers[0]
    started = time.perf_counter()
    with ledger.lock:
        ledger.seconds.setdefault("import", started - ledger.began)
        ledger.seconds.setdefault(name, 0.0)
    inner = getattr(ledger.open, "inner", 0.0)
    ledger.open.inner = 0.0
    try:
        yield
    finally:
        took = time.perf_counter() - started
        with ledger.lock:
            ledger.seconds[name] += took - ledger.open.inner
        ledger.open.inner = inner + took


def stop_timings() -> tuple[float, dict[str, float]]:
    """Stop measuring; return the seconds of the whole, and of each stage with ``rest`` for what belongs to none.

    Stages of threads or processes side by side can add up to more than the whole; then there is no rest.
    """
    if not _ledgers:
        return 0.0, {}
    ledger = _ledgers.pop()
    total = time.perf_counter() - ledger.began
    rest = total - sum(ledger.seconds.values())
    return total, ledger.seconds | ({"rest": rest} if rest > 0 else {})
