"""``python -m rse_cli.cli.cache_key [FOLDER]``: the key under which a job may keep the index of a folder.

An index can be brought up to date as long as model and chunking are the same, so the key names these and no file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rse_cli.adapters.manifest import FORMAT_VERSION
from rse_cli.cli.wiring import TEXT_VERSION, read_settings
from rse_cli.errors import RseError


def make_cache_key(folder: Path) -> str:
    """Return the key for a folder with its ``rse.toml``: letters, digits, points and hyphens only.

    Raises
    ------
    RseError
        If the settings can't be read.
    """
    ingest = read_settings(folder, {}, check_model=True).ingest
    parts = ("rse", FORMAT_VERSION, TEXT_VERSION, ingest["chunk_chars"], ingest["headers"], ingest["model"])
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(map(str, parts)))[:300]


def main(arguments: Sequence[str]) -> int:
    """Print the key of the folder given, else of the current one."""
    try:
        print(make_cache_key(Path(arguments[0] if arguments else ".").resolve()))
    except RseError as fault:
        print(f"rse: {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
