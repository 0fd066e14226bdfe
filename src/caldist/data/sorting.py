"""From rows in any order to distinct, increasing predictions with the mass of each label."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist._kernels import COMPILED, support
from caldist._util.threads import thread_count
from caldist._util.types import Vector

Columns = dict[str, Any]  # vectors by the names of a joint's fields

_FEW = 200  # rows up to which NumPy is as quick
_PLACES = 8 * 1024  # that the kernel keeps the ends of parts in
_THREADED_SORT = 100_000  # rows from which a second thread repays its start


def sort_rows(label: NDArray[np.uint8], prediction: Vector) -> Columns:
    """Return distinct predictions with row counts per label.

    The two labels are sorted apart, in two threads when large: sorting values is twice as fast as
    finding a sorting order, and is done without holding the interpreter's lock.
    """
    n = prediction.size
    rows = np.empty(n)
    out = np.empty(n), np.empty(n), np.empty(n)
    ones = support.split_by_label(label, prediction, rows)
    if n >= _THREADED_SORT and thread_count() > 1:
        helper = threading.Thread(target=_sort, args=(rows[:ones], out[0][:ones]))
        helper.start()
        _sort(rows[ones:], out[0][ones:])
        helper.join()
    else:
        _sort(rows[:ones], out[0][:ones])
        _sort(rows[ones:], out[0][ones:])
    return _trimmed(out, support.merge_labels(rows[:ones], rows[ones:], *out))


def _sort(values: Vector, work: Vector) -> None:
    """Sort numbers that are not negative: their bits are in the same order as they are.

    On the machine of the benchmarks that takes a quarter of the time that NumPy takes.
    """
    if COMPILED and values.size >= _FEW:
        none, end = np.empty(0, dtype=np.int64), np.empty(_PLACES, dtype=np.int64)
        support.sort_keys(values.view(np.int64), none, work.view(np.int64), none, end)
    else:
        values.sort()


def sort_masses(
    prediction: Vector,
    mass0: Vector,
    mass1: Vector,
    *squares: Vector,
    order: NDArray[np.int64] | None = None,
) -> Columns:
    """Return distinct predictions with the sums of their masses, leaving out empty ones.

    ``squares``, those of the weights behind mass0 and mass1, are added up in the same way.
    """
    if order is None:
        order = sorting_order(prediction)
    out = [np.empty(prediction.size) for _ in range(3 + len(squares))]
    none = [] if squares else [np.empty(0), np.empty(0)]
    columns = (mass0, mass1, *squares, *none)
    return _trimmed(out, support.merge_weighted(order, prediction, *columns, *out, *none))


def sorting_order(prediction: Vector) -> NDArray[np.int64]:
    """Return which row comes first, second, …, equal predictions in the order of the rows."""
    n = prediction.size
    if not COMPILED or n < _FEW:
        return np.argsort(prediction, kind="stable")
    key = (prediction + 0.0).view(np.int64)  # -0.0 is 0.0
    order = np.arange(n, dtype=np.int64)
    work, places, end = (np.empty(size, dtype=np.int64) for size in (n, n, _PLACES))
    support.sort_keys(key, order, work, places, end)
    return order


def merging_order(values: Vector) -> NDArray[np.int64]:
    """Return the sorting order of two runs, one after the other, that increase each. O(n)."""
    return np.argsort(values, kind="stable")  # which finds the runs, and merges them


_NAMES = ("prediction", "mass0", "mass1", "weight_square0", "weight_square1")


def _trimmed(out: Sequence[Vector], size: int) -> Columns:
    """Cut the arrays to size, giving memory back when it is worth it, and name them."""
    kept = [array[:size].copy() if 2 * size < array.size else array for array in out]
    for array in kept:
        array.flags.writeable = False  # nobody else has them, so that a joint need not copy
    return {name: array[:size] for name, array in zip(_NAMES, kept, strict=False)}
