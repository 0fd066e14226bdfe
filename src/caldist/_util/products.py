"""Inner products of long vectors without BLAS.

Its threads would wake and go on spinning, and what it returns depends on the processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from caldist._util.types import Vector

_BLOCK = 1 << 16  # what stays in the cache


def dot(first: Vector, second: Vector) -> float:
    """Return the inner product of two vectors: to the bit the same on every processor."""
    total = 0.0
    for start in range(0, first.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        total += float((first[part] * second[part]).sum())  # pairwise
    return total


def gram(first: Any, second: Any) -> Any:
    """Return the inner products of the rows of two matrices of few rows."""
    return np.einsum("ij,kj->ik", first, second)
