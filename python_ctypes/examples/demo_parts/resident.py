"""The resident memory of this process."""

from __future__ import annotations

import ctypes
import os

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_M_MMAP_THRESHOLD = -3  # of malloc.h
_THRESHOLD_BYTES = 256 << 10


def resident_bytes() -> int:
    """The memory of this process that is in RAM."""
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[1]) * _PAGE_BYTES


def return_freed_arrays() -> None:
    """Have malloc give large blocks back to the system when they are freed.

    By itself glibc's malloc keeps ever larger ones for itself, one thread's apart from another's:
    then resident memory tells how malloc was used, not how much memory is in use.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)
