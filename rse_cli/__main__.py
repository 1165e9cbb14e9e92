"""The entry point: settings that must precede numpy, the exit codes, and a fast end."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    # One thread answers one query fastest, and numpy reads this when it is first imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from rse_cli.cli.main import run

    code = run(sys.argv[1:])
    # Interpreter shutdown and the threads of lance cost 0.1 s that nobody needs.
    os._exit(code)


if __name__ == "__main__":
    main()
