"""How many threads to use: one setting for sorting, searching and resampling."""

from __future__ import annotations

import os

_VARIABLE = "CALDIST_NUM_THREADS"


def thread_count() -> int:
    """Return how many threads a computation may use.

    That is the environment variable ``CALDIST_NUM_THREADS`` where it is set, and otherwise the
    number of cores that this process may use. It changes no result.
    """
    wanted = os.environ.get(_VARIABLE, "").strip()
    if wanted:
        if not wanted.isdecimal() or int(wanted) == 0:
            message = f"{_VARIABLE} is {wanted!r}; it must be a positive number of threads."
            raise ValueError(message)
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
