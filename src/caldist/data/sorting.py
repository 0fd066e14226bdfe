"""From rows in any order to distinct, increasing predictions with the mass of each label.

Residuals depend on (prediction, label) alone, so unweighted rows need no argsort: a row is one
integer made of both, its key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist._util.threads import in_threads, thread_count
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.residuals import Residuals
from caldist.kernels.arrays import prefix_sums
from caldist.kernels.loader import support

Columns = dict[str, Any]  # vectors by the names of a joint's fields

_ROWS_PER_THREAD = 100_000  # from which a thread repays its start
_INTERRUPTIBLE = 2**22  # keys that are sorted at once: for more, Ctrl-C would have to wait
_LARGEST = 0x7FE0000000000001  # the key of a prediction of 1 with label 1


def sort_rows(label: NDArray[np.uint8], prediction: Vector) -> Columns:
    """Return distinct predictions of valid rows with the number of rows of each label."""
    key = _keys(label, prediction)
    masses = np.empty(key.size), np.empty(key.size)
    size = _sort(key, masses, support.list_keys)
    return _trimmed((key.view(np.float64), *masses), size)


def sort_residuals(label: NDArray[np.uint8], prediction: Vector) -> Residuals:
    """Return distinct predictions of valid rows with their residual masses."""
    key = _keys(label, prediction)
    mass = np.empty(key.size)

    def list_residuals(part: Integers, mass: Vector) -> int:
        return int(support.list_residuals(part, float(key.size), mass))

    size = _sort(key, (mass,), list_residuals)
    for array in (key, mass):
        array.flags.writeable = False  # functions of the user's may be called with them
    return Residuals(key[:size].view(np.float64), mass[:size])


def _keys(label: NDArray[np.uint8], prediction: Vector) -> Integers:
    """Return twice the bits of each prediction, and the label."""
    key = np.abs(prediction).view(np.int64)  # -0.0 is 0.0
    key <<= 1
    key |= label
    return key


def _sort(key: Integers, out: tuple[Vector, ...], listing: Callable[..., int]) -> int:
    """Sort keys and list what is distinct in their place, and in ``out``; return how much it is.

    Many are halved until threads share the work, and until Ctrl-C need not wait for a part.
    """
    parts, threads = [key], min(thread_count(), key.size // _ROWS_PER_THREAD)
    while len(parts) < threads or parts[-1].size > _INTERRUPTIBLE:
        in_threads(lambda part: part.partition(part.size // 2), parts)
        parts = [half for part in parts for half in np.array_split(part, [part.size // 2])]
    in_threads(lambda part: part.sort(), parts)
    if key.size > 0 and not 0 <= key[0] <= key[-1] <= _LARGEST:
        validate.refuse_changed()
    # Each part from the first key of a prediction on.
    starts = [int(np.searchsorted(key, part[0] & -2)) for part in parts[1:]]

    def list_part(ends: tuple[int, int]) -> tuple[int, int]:
        here = slice(*ends)
        return ends[0], listing(key[here], *(column[here] for column in out))

    size = 0
    for start, more in in_threads(list_part, pairwise([0, *starts, key.size])):
        if size < start:  # closed up where predictions are equal
            for column in (key, *out):
                column[size : size + more] = column[start : start + more]
        size += more
    return size


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
    size = support.merge_weighted(order, prediction, *columns, *out, *none)
    if size < 0:
        validate.refuse_changed()
    return _trimmed(out, size)


def sorting_order(prediction: Vector) -> Integers:
    """Return which row comes first, second, …, equal predictions in the order of the rows."""
    order: Integers = np.argsort(prediction)
    increasing = np.diff(prediction[order]) > 0
    if increasing.all():
        return order
    rank = prefix_sums(increasing.astype(np.int64)) * order.size
    return np.sort(rank + order) - rank


def merging_order(values: Vector) -> NDArray[np.int64]:
    """Return the sorting order of two runs, one after the other, that increase each. O(n)."""
    return np.argsort(values, kind="stable")  # which finds the runs, and merges them


def merged(first: Vector, second: Vector) -> tuple[Vector, Integers, Integers]:
    """Return all numbers of two increasing vectors, and where those of each are among them."""
    both = np.empty(first.size + second.size)
    of_first, of_second = (np.empty(part.size, dtype=np.int64) for part in (first, second))
    size = support.merge(first, second, both, of_first, of_second)
    return both[:size], of_first, of_second


_NAMES = ("prediction", "mass0", "mass1", "weight_square0", "weight_square1")


def _trimmed(out: Sequence[Vector], size: int) -> Columns:
    """Cut the arrays to size, giving memory back when it is worth it, and name them."""
    kept = [array[:size].copy() if 2 * size < array.size else array for array in out]
    for array in kept:
        array.flags.writeable = False  # nobody else has them, so that a joint need not copy
    return {name: array[:size] for name, array in zip(_NAMES, kept, strict=False)}
