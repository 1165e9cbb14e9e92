"""The entry point: settings that must precede numpy, the exit codes, and a fast end."""

from __future__ import annotations

import gc
import os
import sys

STDERR = 2


def main() -> None:
    """Run the command line and end the process with its exit code."""
    # Modules are no garbage (20 ms of a query); commands that live for longer turn it on again.
    gc.disable()
    # Numpy reads this when it is first imported. One thread answers one query fastest, processes use the other cores,
    # and with more threads the bits of a product depend on what else is computed with it.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _distrust_current_folder()
    _replace_closed_streams()
    _keep_stderr()
    try:
        from rse_cli.cli.main import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # While modules were loading; later ones are reported where they arrive.
        code = 130
    # Interpreter shutdown and the threads of lance cost 0.1 s that nobody needs.
    os._exit(code)


def _distrust_current_folder() -> None:
    """Import nothing from the folder that is indexed, in this process (``python -m``) or in those that it starts."""
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        here = {"", os.getcwd()}  # noqa: PTH109
    except FileNotFoundError:
        here = {""}
    # A checkout that this program runs from stays: its workers must find it again.
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    sys.path[:] = [entry for entry in sys.path if entry == own or entry not in here]


def _replace_closed_streams() -> None:
    """Open the null device for a standard stream that was closed, so that no file gets its number and its output.

    A closed stdout can't be written, so that results that go nowhere are an error, as in other tools.
    """
    for name, mode, flags in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _keep_stderr() -> None:
    """Give messages a descriptor of their own, because 2 leads nowhere while a thread is inside lance.

    See `rse_cli.adapters.panics`. A command that fails or is interrupted says so while another thread is at work.
    """
    if sys.stderr.fileno() == STDERR:
        own, old = os.dup(STDERR), sys.stderr
        sys.stderr = open(own, "w", buffering=1, encoding=old.encoding, errors=old.errors)  # noqa: SIM115, PTH123


if __name__ == "__main__":
    main()
