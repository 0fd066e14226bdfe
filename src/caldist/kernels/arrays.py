"""Arrays that the kernels and those who call them make: work space, and prefix sums.

A ``memoryview`` is what compiled code wants and what plain Python reads fastest: its items are
Python numbers, not NumPy scalars, so nothing overflows or warns.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)


def doubles(size: int) -> memoryview:
    """Return ``size`` uninitialised float64 numbers."""
    return memoryview(np.empty(size, dtype=np.float64))


def integers(size: int) -> memoryview:
    """Return ``size`` uninitialised int64 numbers."""
    return memoryview(np.empty(size, dtype=np.int64))


def prefix_sums(values: NDArray[Number]) -> NDArray[Number]:
    """Return 0 and the sums of the first 1, 2, … values, in their own type."""
    terms = np.asarray(values)
    sums = np.zeros(terms.size + 1, dtype=terms.dtype)
    np.cumsum(terms, out=sums[1:])
    return sums
