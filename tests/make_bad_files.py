"""Writes hundreds of damaged and hostile files, always the same: ``python -m tests.make_bad_files FOLDER``."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bad_archives import list_bad_archives
from tests.bad_pdfs import BadFile, list_bad_pdfs
from tests.bad_texts import list_bad_texts

SAMPLE = Path(__file__).parent.parent / "sample_docs"

NAMES = (
    "quote ' and \" double.txt",
    "line\nend.txt",
    "carriage\rreturn.txt",
    "tab\tname.txt",
    "\x1b[31mred\x07.txt",
    "emoji \U0001f6a2.txt",
    "灯塔.txt",
    "e\u0301.txt",
    "\u00e9.txt",
    "right \u202etxt.fdp",
    "-rf.txt",
    "--help.txt",
    " leading and trailing .txt",
    "a'; DROP TABLE chunks; --.txt",
    "back\\slash.txt",
    "star*[x]?.txt",
    "%s %d {0}.txt",
    "$(HOME) `id`.txt",
    "x" * 250 + ".txt",
    "NAME.TXT",
    "name.txt",
    os.fsdecode(b"not utf-8 \xff\xfe.txt"),
    os.fsdecode(b"cut \xe7\x81.txt"),
)


def list_bad_files() -> Iterator[BadFile]:
    """Yield kind, name and content of every bad file."""
    samples = {suffix: min(SAMPLE.rglob(f"*.{suffix}")) for suffix in ("docx", "pptx", "xlsx")}
    yield from list_bad_pdfs(min(SAMPLE.rglob("*.pdf")))
    yield from list_bad_archives(samples)
    yield from list_bad_texts()
    for name in NAMES:
        yield "odd name", name, f"A file whose name is {os.fsencode(name)!r}.\n".encode()


def write_bad_files(root: Path, wanted: Callable[[str, int], bool] = lambda _kind, _at: True) -> dict[str, list[Path]]:
    """Write the files whose kind, and number among its kind, are `wanted`; return the paths by kind."""
    made: dict[str, list[Path]] = {}
    counts: dict[str, int] = {}
    for kind, name, data in list_bad_files():
        counts[kind] = at = counts.get(kind, -1) + 1
        if not wanted(kind, at):
            continue
        folder = root / kind.replace(" ", "-").replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        made.setdefault(kind, []).append(folder / name)
    made["no plain file"] = make_odd_places(root / "no-plain-file")
    return made


def make_odd_places(folder: Path) -> list[Path]:
    """Make what looks like files to read and is not: links that lead nowhere, in circles or out, pipes, sockets."""
    folder.mkdir(parents=True)
    links = {
        "nowhere.txt": "missing.txt",
        "itself.txt": "itself.txt",
        "one.txt": "two.txt",
        "two.txt": "one.txt",
        "outside.txt": "/etc/hostname",
        "up.txt": "../../../../../../../etc/hostname",
        "endless.txt": "/dev/zero",
        "terminal.txt": "/dev/stdin",
        "folder": "..",
        "process.txt": "/proc/self/mem",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe.txt")
    (folder / "folder.pdf").mkdir()
    # A socket's path has at most 108 bytes, so it is bound from inside.
    here = Path.cwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket.txt")
    finally:
        os.chdir(here)
    return [folder / name for name in (*links, "pipe.txt", "socket.txt") if name != "folder"]


if __name__ == "__main__":
    made = write_bad_files(Path(sys.argv[1]))
    print(f"{sum(map(len, made.values()))} files of {len(made)} kinds")
