"""The C allocator of this process, kept from giving memory back to the system while something is timed."""

from __future__ import annotations

import ctypes
import sys

# Parameters of glibc's `mallopt`, and how many bytes lie freed before they are given back or mapped on their own.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_TRIMMED, _MAPPED = 1 << 30, 32 << 20


def keep_freed_memory() -> bool:
    """Has freed memory stay with the process; False where the allocator has no such switch.

    Tensors of a megabyte lie at the end of the heap. Whether each step gives that end back and gets it anew depends on
    which small object happens to lie behind it: 10 to 300 page faults a step, up to 9 % of a step of 12 ms, on either
    side of a comparison.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _MAPPED)) and bool(mallopt(_TRIM_THRESHOLD, _TRIMMED))
