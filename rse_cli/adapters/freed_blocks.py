"""Giving freed blocks of memory back to the system at once.

glibc maps large blocks apart and gives them back when they are freed, but each that is freed raises the size from
which it does so, up to 32 MB. Below that, freed blocks stay, scattered over the heaps of lance's threads: reading
200,000 rows through in batches grew to 628 MB, and to 350 MB with the size held.
"""

from __future__ import annotations

_M_MMAP_THRESHOLD = -3  # of glibc's malloc.h
_MAPPED_BYTES = 131_072
"""What glibc itself begins with."""


def return_freed_blocks() -> None:
    """Hold the size from which blocks are mapped apart; where that can't be done, nothing happens."""
    import ctypes

    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    if choose is not None:
        choose(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
