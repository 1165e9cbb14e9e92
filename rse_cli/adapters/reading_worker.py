"""Reading in a process that can be killed: a file that loops, eats memory or crashes a library costs itself alone."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from rse_cli.adapters.readers import find_reader, is_binary_suffix, read_document
from rse_cli.adapters.spawning import detach_worker, end_worker, start_worker
from rse_cli.core.models import Document
from rse_cli.dataclass import dataclass
from rse_cli.errors import ReadError, RseError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

READ_SECONDS = 20.0
"""Six times what a PDF of 1,000 pages takes, twice what a spreadsheet of a million cells does."""

READ_BYTES = 1_000_000_000
"""Memory for one file: five times what a spreadsheet of two million cells takes."""

OWN_FORMATS = frozenset({"text", "markdown", "rst", "source", "csv", "jsonl", "json"})
"""Readers that are all Python of this package and take time in proportion to the file; all others are not trusted."""

OWN_BYTES = 1_000_000
"""Size up to which those are read without a worker: the slowest of many made to cost time took 2 s for so much."""

LIBRARY_BYTES = 150_000_000
"""What libraries take when a file first needs them: 60 MB for PDF, 100 for all together."""

START_SECONDS = 30.0
"""How long a worker may take to start and to begin with a file: 0.2 s, on a machine that is busy."""

GRACE_SECONDS = 5.0
"""How much later than the worker's own alarm clock it is ended from outside."""

WORN_BYTES = 500_000_000
"""What a worker may hold of the files it has read before it is replaced: libraries and fragments, 100 MB as a rule."""

_BEGUN = b"begun"
"""What a worker sends when it has a file."""

_GIVEN_UP = "reading was given up"
_KILLED = "the reader was killed, perhaps for want of memory"
_NOT_BEGUN = "no process came to read it"
_CRASHED = "the reader crashed"

Read = Callable[[Path, bytes], tuple[str, Document]]


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What reading one file may take.

    Parameters
    ----------
    seconds : float
        Time, more than 0.
    memory : int
        Bytes, beside what the reader takes when idle.
    """

    seconds: float = READ_SECONDS
    memory: int = READ_BYTES

    @property
    def of_time(self) -> str:
        """Why a file is given up that takes longer."""
        return f"took longer than {self.seconds:g} s"

    @property
    def of_memory(self) -> str:
        """Why a file is given up that needs more."""
        return f"needed more than {self._size}"

    def of_crash(self, how: str) -> str:
        """Why a file is given up whose reader crashed: many libraries end so when they are refused memory."""
        return f"{_CRASHED}{f' ({how})' if how else ''} within {self.seconds:g} s and {self._size}"

    @property
    def _size(self) -> str:
        units = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
        size = next((f"{self.memory / unit:g} {name}" for unit, name in units if self.memory >= unit), "")
        return size or f"{self.memory} bytes"

    def were_other(self, reason: str) -> bool:
        """Tell whether `reason`, for which a file could not be read, may not hold under these limits.

        Examples
        --------
        >>> [ReadLimits(60).were_other(f"took longer than {seconds} s") for seconds in (20, 60)]
        [True, False]
        """
        if reason.startswith(_CRASHED):
            return not reason.endswith(self.of_crash("").removeprefix(_CRASHED))
        limited = reason.startswith(("took longer than ", "needed more than "))
        return reason in (_KILLED, _NOT_BEGUN) or (limited and reason not in (self.of_time, self.of_memory))


@dataclass(slots=True)
class ReadingWorker:
    """Reads files, those of risky formats and large ones in a process of their own, which starts when it is needed.

    Parameters
    ----------
    limits : ReadLimits
        Per file, in the worker.
    reader : callable
        What the worker reads with; a function of a module.
    """

    limits: ReadLimits = field(default_factory=ReadLimits)
    reader: Read = read_document
    _worker: tuple[BaseProcess, Connection] | None = None
    _is_closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, path: Path, data: bytes) -> tuple[str, Document]:
        """Read `data`, the content of `path`; see `rse_cli.adapters.readers.read_document`.

        Raises
        ------
        ReadError
            If the file can't be indexed: also if it takes too long or too much memory, or the reader crashes.
        RseError
            If no worker can be started, or this was closed, perhaps by another thread.
        """
        if is_harmless(path, data):
            return read_document(path, data)
        answer = self._ask(path, data)
        if answer is None:
            answer = self._ask(path, data)
        if answer is None:
            raise ReadError("failed", _NOT_BEGUN)
        outcome = pickle.loads(answer)
        if isinstance(outcome, tuple):
            return outcome
        raise ReadError(outcome["status"], outcome["reason"])

    def close(self) -> None:
        """End the worker for good, whatever it reads for whichever thread."""
        self._is_closed = True
        self._end_worker()

    def _end_worker(self) -> None:
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            end_worker(*worker)

    def _ask(self, path: Path, data: bytes) -> bytes | None:
        """Send a file and return the answer; None if no worker began to read it, which is not the file's fault."""
        connection = self._start()
        try:
            if not _hand_over(connection, path, data):
                self._end_worker()
                return None
            if connection.poll(self.limits.seconds + GRACE_SECONDS):
                return connection.recv_bytes()
            fault = self.limits.of_time
        except (EOFError, OSError):
            if self._is_closed:
                raise RseError(_GIVEN_UP) from None
            fault = self._explain_end()
        except BaseException:
            # An interrupt: what the worker will answer must not be taken for the answer to a later question.
            self._end_worker()
            raise
        self._end_worker()
        raise ReadError("failed", fault)

    def _start(self) -> Connection:
        with self._lock:
            if self._is_closed:
                raise RseError(_GIVEN_UP)
            if self._worker is None:
                try:
                    self._worker = start_worker(_serve, self.limits, self.reader)
                except OSError as error:
                    raise RseError(f"can't start a process to read files in: {error.strerror or error}") from error
            return self._worker[1]

    def _explain_end(self) -> str:
        """Say why the worker is gone."""
        assert self._worker is not None
        process = self._worker[0]
        process.join(timeout=1)
        number = -(process.exitcode or 0)
        if number == signal.SIGALRM:
            return self.limits.of_time
        if number == signal.SIGKILL:
            return _KILLED
        return self.limits.of_crash(signal.Signals(number).name if number > 0 else "")


def is_harmless(path: Path, data: bytes) -> bool:
    """Tell whether a file may be read without a worker.

    Examples
    --------
    >>> [is_harmless(Path(name), b"x") for name in ("a.md", "a.pdf", "a.png")]
    [True, False, True]
    """
    if is_binary_suffix(path):
        # Refused by its name alone.
        return True
    return find_reader(path).name in OWN_FORMATS and len(data) <= OWN_BYTES


def _hand_over(connection: Connection, path: Path, data: bytes) -> bool:
    """Send a file, and tell whether the worker has begun with it."""
    try:
        connection.send_bytes(os.fsencode(path))
        connection.send_bytes(data)
        return connection.poll(START_SECONDS) and connection.recv_bytes() == _BEGUN
    except (EOFError, OSError):
        return False


def _serve(connection: Connection, limits: ReadLimits, reader: Read) -> None:
    """Read what comes through the pipe until it closes."""
    detach_worker()
    _silence_streams()
    with suppress(EOFError, OSError):
        while _measure_data() < WORN_BYTES:
            path = Path(os.fsdecode(connection.recv_bytes()))
            data = connection.recv_bytes()
            # By default this signal ends the process, whatever library it is in, and even where the parent is gone.
            signal.setitimer(signal.ITIMER_REAL, limits.seconds)
            connection.send_bytes(_BEGUN)
            answer = _read_within(limits, reader, path, data)
            del data
            connection.send_bytes(answer)
            signal.setitimer(signal.ITIMER_REAL, 0)


def _silence_streams() -> None:
    """Send to nowhere what libraries print: stdout is for results, and some print a page for every fault."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _read_within(limits: ReadLimits, reader: Read, path: Path, data: bytes) -> bytes:
    """Return the pickled outcome: reader name and document, or status and reason."""
    try:
        with _limit_memory(limits.memory):
            return pickle.dumps(reader(path, data), pickle.HIGHEST_PROTOCOL)
    except ReadError as error:
        status, reason = error.status, error.reason
    except MemoryError:
        status, reason = "failed", limits.of_memory
    return pickle.dumps({"status": status, "reason": reason})


@contextmanager
def _limit_memory(memory: int) -> Iterator[None]:
    """Let this process have `memory` bytes more than it has and needs, where the system can enforce that."""
    import resource

    kind = resource.RLIMIT_DATA
    before = resource.getrlimit(kind)
    wanted = _measure_data() + LIBRARY_BYTES + memory
    allowed = min((limit for limit in before if limit != resource.RLIM_INFINITY), default=wanted)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (min(wanted, allowed), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


def _measure_data() -> int:
    """Return the bytes of private memory that Linux counts against the limit; 0 elsewhere."""
    try:
        # Field 6 of proc(5)'s statm: data and stack, in pages.
        pages = int(Path("/proc/self/statm").read_bytes().split()[5])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
