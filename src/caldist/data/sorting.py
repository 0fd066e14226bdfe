"""From rows in any order to distinct, increasing predictions with the mass of each label."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from caldist._kernels import support

__all__ = ["sort_masses", "sort_rows"]

Vector = NDArray[np.float64]

_THREADED_SORT = 100_000  # rows from which a second thread repays its start


def sort_rows(label: NDArray[np.uint8], prediction: Vector) -> tuple[Vector, Vector, Vector]:
    """Return distinct predictions with row counts per label.

    The two labels are sorted apart, in two threads when large: sorting values is twice as fast as
    finding a sorting order, and NumPy sorts without holding the interpreter's lock.
    """
    n = prediction.size
    rows = np.empty(n)
    ones = support.split_by_label(label, prediction, rows)
    if n >= _THREADED_SORT:
        helper = threading.Thread(target=rows[:ones].sort)
        helper.start()
        rows[ones:].sort()
        helper.join()
    else:
        rows[:ones].sort()
        rows[ones:].sort()
    out = np.empty(n), np.empty(n), np.empty(n)
    return _trimmed(out, support.merge_labels(rows[:ones], rows[ones:], *out))


def sort_masses(prediction: Vector, mass0: Vector, mass1: Vector) -> tuple[Vector, Vector, Vector]:
    """Return distinct predictions with the sums of their masses, leaving out empty ones."""
    n = prediction.size
    out = np.empty(n), np.empty(n), np.empty(n)
    order = np.argsort(prediction, kind="stable")
    return _trimmed(out, support.merge_weighted(order, prediction, mass0, mass1, *out))


def _trimmed(out: tuple[Vector, Vector, Vector], size: int) -> tuple[Vector, Vector, Vector]:
    """Cut the arrays to size, giving memory back when it is worth it."""
    first, second, third = (
        array[:size].copy() if 2 * size < array.size else array[:size] for array in out
    )
    return first, second, third
