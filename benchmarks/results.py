"""All benchmarks of speed, written to ``benchmarks/RESULTS.md``, each part under a heading of its own.

Run with ``make bench`` (and ``make bench-size`` for a hundred thousand and a million chunks), or
``python -m benchmarks.results --only batch``: then only the sections named are measured again, and the others stay as
the file holds them. What is compared runs interleaved. Besides wall clock every table has CPU seconds, user and system
time of a process with its children, which say more on a machine that is busy.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from benchmarks import speed_batch, speed_check, speed_encoding, speed_ingest, speed_search, speed_size
from benchmarks.processes import BenchmarkError

RESULTS = Path(__file__).parent / "RESULTS.md"

PARTS: dict[str, tuple[str, Callable[[Path, Path], str]]] = {
    "encoding": ("Bulk encoding", speed_encoding.measure),
    "ingest": ("Ingest of chunking-en", speed_ingest.measure_whole),
    "nothing": ("Nothing to do", speed_ingest.measure_nothing),
    "cold": ("Cold commands at 10,000 chunks", speed_search.measure_cold),
    "batch": ("A batch of queries", speed_batch.measure),
    "check": ("A check of 1,000 cases", speed_check.measure),
    "tune": ("A search of 2,000 trials", speed_check.measure_tune),
    "engine": ("Segment selection", speed_search.measure_engine),
    "100k": ("100,000 chunks", speed_size.measure_100k),
    "1m": ("1,000,000 chunks", speed_size.measure_1m),
}
LARGE = ("100k", "1m")
LIBRARIES = ("numpy", "pylance", "lancedb", "pyarrow", "tokenizers", "typer", "sentence-transformers", "torch")


def main() -> int:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(prog="benchmarks.results", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=[*PARTS], help="measure this part; repeatable")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of questions")
    args = parser.parse_args()
    wanted = args.only or [name for name in PARTS if name not in LARGE]
    # Stores of synthetic chunks are found again by their names.
    work = Path(tempfile.gettempdir()) / f"rse-bench-{os.getuid()}"
    work.mkdir(mode=0o700, exist_ok=True)
    sections = read_sections(RESULTS, describe_machine())
    for name in wanted:
        title, measure = PARTS[name]
        print(f"bench: {name}", file=sys.stderr, flush=True)
        try:
            sections[title] = f"{describe_load()}\n\n{measure(args.data.resolve(), work)}"
        except BenchmarkError as fault:
            print(f"bench: {name}: {fault}", file=sys.stderr)
            return 2
        write_sections(RESULTS, sections)
    return 0


def read_sections(path: Path, machine: str) -> dict[str, str]:
    """Return the sections of a former run by title: none where it was on another machine, or of other versions."""
    if not path.exists():
        return {}
    head, *parts = re.split(r"^## (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if machine not in head:
        print(f"bench: {path.name} is of another machine or other versions, and begun anew", file=sys.stderr)
        return {}
    return {title: body.strip() for title, body in zip(parts[::2], parts[1::2], strict=True)}


def write_sections(path: Path, sections: dict[str, str]) -> None:
    """Write the file, the sections in the order of `PARTS`."""
    bodies = [f"## {title}\n\n{sections[title]}\n" for title, _ in PARTS.values() if title in sections]
    path.write_text("\n".join([f"# Speed\n\n{describe_machine()}\n", *bodies]), encoding="utf-8")


def describe_machine() -> str:
    """Return what the figures were measured on: processor, memory, versions."""
    model, memory = platform.processor() or platform.machine(), ""
    if Path("/proc/cpuinfo").exists():
        names = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        model = names[0] if names else model
    if hasattr(os, "sysconf"):
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory"
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    kernels = os.environ.get("OPENBLAS_CORETYPE")
    forced = f" OPENBLAS_CORETYPE={kernels} is set." if kernels else ""
    return (
        f"Written by `make bench` and `make bench-size`. {model}, {os.cpu_count()} cores{memory}, {platform.system()}, "
        f"Python {platform.python_version()}; {versions}.{forced} Times are medians with the least and the greatest; "
        "CPU seconds are user and system time with children."
    )


def describe_load() -> str:
    """Return a line on how busy the machine is: above its number of cores, wall clock is not to be trusted."""
    load = os.getloadavg()[0]
    busy = " (more than its cores: read the CPU seconds, not wall clock)" if load > (os.cpu_count() or 1) else ""
    return f"Load of the machine at the beginning: {load:.1f}{busy}."


if __name__ == "__main__":
    sys.exit(main())
