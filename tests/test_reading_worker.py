"""Reading in a worker: what a file can do there, it does to itself alone."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from rse_cli.adapters import reading_worker, spawning
from rse_cli.adapters.readers import read_document
from rse_cli.adapters.reading_worker import OWN_BYTES, ReadingWorker, ReadLimits, is_harmless
from rse_cli.config import KEYS
from rse_cli.core.models import Document
from rse_cli.errors import ReadError, RseError
from rse_cli.pipeline.beside import lend_threads
from tests.bad_pdfs import TEXT, make_page, write_pdf, write_stream

SAMPLE = Path(__file__).parent.parent / "sample_docs"

held: list[bytes] = []


def misbehave(path: Path, data: bytes) -> tuple[str, Document]:
    """A reader that does what the content says, and reads it where that is nothing it knows."""
    text = ACTS.get(data.decode(), data.decode)()
    return path.name, Document(text=str(text))


def loop() -> None:
    while True:
        pass


def raise_fault(fault: Exception) -> None:
    raise fault


def print_everywhere() -> None:
    print("to stdout", flush=True)
    print("to stderr", file=sys.stderr, flush=True)
    os.write(1, b"from C to stdout\n")
    os.write(2, b"from C to stderr\n")


ACTS: dict[str, Callable[[], object]] = {
    "loop": loop,
    # Holds the interpreter's lock, as most libraries do.
    "loop in C": lambda: ctypes.PyDLL(None).sleep(60),
    "eat memory": lambda: held.append(bytes(400_000_000)),
    "keep memory": lambda: held.append(b"x" * 90_000_000),
    "abort": os.abort,
    "segfault": lambda: ctypes.string_at(0),
    "exit": lambda: os._exit(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "raise": lambda: raise_fault(ValueError("no reader should")),
    "refuse": lambda: raise_fault(ReadError("encrypted", "needs a password")),
    "print": print_everywhere,
    "pid": os.getpid,
    "surrogate": lambda: "\ud800x\0",
    "read stdin": lambda: repr(sys.stdin.read() + os.read(0, 10).decode()),
}


@pytest.fixture(scope="module")
def limits() -> ReadLimits:
    return ReadLimits(seconds=0.5, memory=100_000_000)


@pytest.fixture(scope="module")
def worker(limits: ReadLimits) -> Iterator[ReadingWorker]:
    """A worker that any test may wreck."""
    one = ReadingWorker(limits, misbehave)
    yield one
    one.close()


def ask(worker: ReadingWorker, act: str) -> str:
    return worker.read(Path("x.pdf"), act.encode())[1].text


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("loop", "took longer than 0.5 s"),
        ("loop in C", "took longer than 0.5 s"),
        ("eat memory", "needed more than 100 MB"),
        ("abort", "the reader crashed (SIGABRT) within 0.5 s and 100 MB"),
        ("segfault", "the reader crashed (SIGSEGV) within 0.5 s and 100 MB"),
        ("kill", "the reader was killed, perhaps for want of memory"),
        ("exit", "the reader crashed within 0.5 s and 100 MB"),
        ("raise", "the reader crashed within 0.5 s and 100 MB"),
    ],
)
def test_a_file_that_harms_its_reader_fails_alone(worker: ReadingWorker, act: str, reason: str) -> None:
    with pytest.raises(ReadError) as fault:
        ask(worker, act)

    assert (fault.value.status, fault.value.reason) == ("failed", reason)
    assert ask(worker, "the next file") == "the next file"


def test_a_fault_of_the_reader_arrives_as_it_is(worker: ReadingWorker) -> None:
    with pytest.raises(ReadError) as fault:
        ask(worker, "refuse")

    assert (fault.value.status, fault.value.reason) == ("encrypted", "needs a password")


def test_one_worker_reads_many_files_and_gives_back_the_path_as_it_is(worker: ReadingWorker) -> None:
    first = ask(worker, "pid")
    odd = Path(os.fsdecode(b"\xff\n'.pdf"))

    assert worker.read(odd, b"x") == (odd.name, Document(text="x"))
    assert ask(worker, "pid") == first != str(os.getpid())


def test_a_worker_that_is_killed_while_idle_costs_no_file(worker: ReadingWorker) -> None:
    os.kill(int(ask(worker, "pid")), signal.SIGKILL)
    time.sleep(0.05)

    assert ask(worker, "x") == "x"


def test_memory_that_earlier_files_left_does_not_count_against_a_file(limits: ReadLimits) -> None:
    pids = set()
    with closing(ReadingWorker(limits, misbehave)) as worker:
        for _ in range(8):
            ask(worker, "keep memory")
            pids.add(ask(worker, "pid"))

    # 500 MB are enough for one process to keep.
    assert len(pids) == 2


def test_closing_ends_what_another_thread_reads_and_no_worker_is_started_after_it() -> None:
    with lend_threads() as start, closing(ReadingWorker(ReadLimits(seconds=60), misbehave)) as worker:
        pid = int(ask(worker, "pid"))
        wait = start(lambda: ask(worker, "loop"))
        time.sleep(0.05)

    for read in (wait, lambda: ask(worker, "x")):
        with pytest.raises(RseError, match="reading was given up"):
            read()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_nothing_that_is_printed_in_the_worker_is_seen(
    worker: ReadingWorker, capfd: pytest.CaptureFixture[str]
) -> None:
    ask(worker, "print")

    assert ask(worker, "read stdin") == "''"
    assert capfd.readouterr() == ("", "")


def test_a_worker_starts_with_the_first_file_that_needs_it() -> None:
    worker = ReadingWorker()

    assert worker.read(Path("a.md"), b"# A\n\nText.\n")[0] == "markdown/1"
    assert worker._worker is None
    worker.close()


@pytest.mark.parametrize(
    ("name", "size", "harmless"),
    [
        ("a.md", 10, True),
        ("Makefile", OWN_BYTES, True),
        ("a.unknown", OWN_BYTES, True),
        ("a.csv", OWN_BYTES + 1, False),
        ("a.pdf", 0, False),
        ("a.DOCX", 10, False),
        ("a.html", 10, False),
        ("a.ipynb", 10, False),
        ("a.zip", OWN_BYTES + 1, True),
    ],
)
def test_formats_of_foreign_libraries_and_large_files_go_to_the_worker(name: str, size: int, harmless: bool) -> None:
    assert is_harmless(Path(name), bytes(size)) == harmless


def test_documents_are_the_same_as_without_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_worker, "OWN_FORMATS", frozenset())
    worker = ReadingWorker()
    seen = set()
    try:
        for path in sorted(SAMPLE.rglob("*")):
            if not path.is_file() or ".rse" in path.parts:
                continue
            data = path.read_bytes()
            try:
                expected = read_document(path, data)
            except ReadError as fault:
                with pytest.raises(ReadError) as other:
                    worker.read(path, data)
                assert (other.value.status, other.value.reason) == (fault.status, fault.reason)
            else:
                assert worker.read(path, data) == expected
                seen.add(expected[0].partition("/")[0])
    finally:
        worker.close()
    assert seen >= {"markdown", "csv", "html", "pdf", "docx", "pptx", "xlsx"}


def test_a_pdf_for_which_memory_runs_out_is_given_up_and_not_read_by_half() -> None:
    # MuPDF reports a want of memory like any fault of a page, and a page with a fault is left out.
    page = make_page(write_stream(TEXT * 40_000))
    worker = ReadingWorker(ReadLimits(memory=30_000_000))
    try:
        with pytest.raises(ReadError, match=r"^needed more than 30 MB$"):
            worker.read(Path("x.pdf"), write_pdf(page))
    finally:
        worker.close()


def test_text_with_lone_surrogates_comes_back_whole(worker: ReadingWorker) -> None:
    assert ask(worker, "surrogate") == "\ud800x\0"


PARENT = """
import sys, threading, time
from pathlib import Path
from rse_cli.adapters.reading_worker import ReadingWorker, ReadLimits
from tests.test_reading_worker import misbehave

if __name__ == "__main__":
    worker = ReadingWorker(ReadLimits(seconds=60), misbehave)
    print(worker.read(Path("x.pdf"), b"pid")[1].text, flush=True)
    if sys.argv[1]:
        worker.read(Path("x.pdf"), sys.argv[1].encode())
    time.sleep(60)
"""


@pytest.mark.parametrize("act", ["", "loop", "loop in C"])
def test_a_worker_ends_with_its_killed_parent(tmp_path: Path, act: str) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    repo = Path(__file__).parent.parent
    with subprocess.Popen(
        [sys.executable, script, act], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(repo)}
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        time.sleep(0.2)
        assert is_running(pid)
        parent.kill()
        deadline = time.monotonic() + 30
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.02)

    assert not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        # A killed process whose new parent has not asked for it yet is no longer running.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_limits_are_those_of_the_settings() -> None:
    defaults = KEYS["ingest"]

    assert ReadLimits() == ReadLimits(defaults["read_timeout"].default, defaults["read_memory"].default)


@pytest.mark.parametrize(
    ("reason", "retry"),
    [
        ("took longer than 20 s", True),
        ("took longer than 30 s", False),
        ("needed more than 1 GB", True),
        ("needed more than 2.5 GB", False),
        ("the reader was killed, perhaps for want of memory", True),
        ("no process came to read it", True),
        ("the reader crashed", True),
        ("the reader crashed within 20 s and 2.5 GB", True),
        ("the reader crashed (SIGSEGV) within 30 s and 1 GB", True),
        ("the reader crashed (SIGSEGV) within 30 s and 2.5 GB", False),
        ("damaged PDF: it has no pages", False),
    ],
)
def test_a_file_that_met_a_limit_is_worth_reading_again_under_another(reason: str, retry: bool) -> None:
    assert ReadLimits(seconds=30, memory=2_500_000_000).were_other(reason) == retry


@pytest.mark.parametrize(
    ("memory", "shown"), [(10, "10 bytes"), (1_500, "1.5 KB"), (30_000_000, "30 MB"), (2_500_000_000, "2.5 GB")]
)
def test_a_limit_of_memory_is_said_in_units_that_can_be_read(memory: int, shown: str) -> None:
    assert ReadLimits(memory=memory).of_memory == f"needed more than {shown}"


def test_an_interrupt_waits_until_a_worker_was_told_all_it_needs() -> None:
    """Another thread takes the signal, as those of libraries do, for which Python then raises in this one."""
    done, end = [], threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt), spawning._hold_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
            done.append("told")
    finally:
        end.set()
        thread.join()
    assert done == ["told"]


FIRST_WORKER = """
import signal, sys
from rse_cli.adapters.spawning import start_worker
from tests.test_reading_worker import tell_mask

if __name__ == "__main__":
    process, connection = start_worker(tell_mask)
    print(connection.recv())
"""


def tell_mask(connection: Connection) -> None:
    connection.send(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))


def test_the_first_worker_of_a_process_too_starts_deaf_to_interrupts(tmp_path: Path) -> None:
    script = tmp_path / "first.py"
    script.write_text(FIRST_WORKER)
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
