"""Inner products of long vectors without BLAS, whose threads would wake and go on spinning."""

from __future__ import annotations

from typing import Any

import numpy as np

from caldist._util.types import Vector


def dot(first: Vector, second: Vector) -> float:
    """Return the inner product of two vectors, in one pass and without a copy."""
    return float(np.einsum("i,i->", first, second))


def gram(first: Any, second: Any) -> Any:
    """Return the inner products of the rows of two matrices of few rows."""
    return np.einsum("ij,kj->ik", first, second)
