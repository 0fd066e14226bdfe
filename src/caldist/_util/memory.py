"""Memory that was freed, given back to the system."""

from __future__ import annotations

import sys


def give_back() -> None:
    """Hand memory that is free back to the system, where the C library would keep it.

    That of Linux keeps what large arrays have left behind, for each thread by itself: after a phase
    of long vectors a process may hold twice what it needs. Elsewhere there is nothing to do.
    """
    if sys.platform != "linux":
        return
    import ctypes  # slow to import

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # not every C library has it
    if trim is not None:
        trim(0)
