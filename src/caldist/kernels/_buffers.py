"""Work space for kernels.

A ``memoryview`` is what compiled code wants and what plain Python reads fastest: its items are
Python numbers, not NumPy scalars, so nothing overflows or warns.
"""

from __future__ import annotations

import numpy as np


def doubles(size: int) -> memoryview:
    """Return ``size`` uninitialised float64 numbers."""
    return memoryview(np.empty(size, dtype=np.float64))


def integers(size: int) -> memoryview:
    """Return ``size`` uninitialised int64 numbers."""
    return memoryview(np.empty(size, dtype=np.int64))
