"""From rows in any order to distinct, increasing predictions with the mass of each label."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caldist import _validate
from caldist._kernels import COMPILED, sums, support
from caldist._util.threads import even_parts, in_threads, thread_count
from caldist._util.types import Integers, Vector
from caldist.data.residuals import Residuals

Columns = dict[str, Any]  # vectors by the names of a joint's fields

_FEW = 200  # rows up to which NumPy is as quick
_PLACES = 8 * 1024  # that the kernel keeps the ends of parts in
_ROWS_PER_THREAD = 100_000  # from which a thread repays its start
_STRETCHES = 8192  # by leading bits, that are put together to parts
_PARTS = 1024  # that threads sort
_SAMPLE = 4096  # rows that tell which bits lead
_FAR = 200  # one in so many is in the first stretch, one in the last: 0 and 1 are far from others
_ROWS_PER_PART = 2**15  # that are in the cache while NumPy sorts them
_MANY = 20_000  # rows for which it is worth while to see who sorts faster
_TRIED = 4096  # keys that show who sorts faster
_GROUPS = 4  # of parts for each thread, as some take longer
_INTERRUPTIBLE = 2**24  # rows that one thread sorts in parts too: Ctrl-C need not wait


def sort_rows(label: NDArray[np.uint8], prediction: Vector) -> Columns:
    """Return distinct predictions of valid rows with the number of rows of each label."""
    key = np.empty(prediction.size, dtype=np.int64)
    masses = np.empty(key.size), np.empty(key.size)
    size = _sort(_Rows(0, label, prediction), key, masses, support.list_keys)
    if size is None:
        _validate.refuse_changed()
    return _trimmed((key.view(np.float64), *masses), size)


def sort_residuals(label: NDArray[Any], prediction: NDArray[Any], kind: int) -> Residuals | None:
    """Return distinct predictions with their residual masses, or None where a row is not valid.

    ``kind`` is how :class:`sums.Reader` reads the labels.
    """
    key = np.empty(prediction.size, dtype=np.int64)
    mass = np.empty(key.size)

    def list_residuals(key: Integers, mass: Vector) -> int:
        return int(support.list_residuals(key, float(prediction.size), mass))

    size = _sort(_Rows(kind, label, prediction), key, (mass,), list_residuals)
    if size is None:
        return None
    for array in (key, mass):
        array.flags.writeable = False  # functions of the user's may be called with them
    return Residuals(key[:size].view(np.float64), mass[:size])


class _Rows(NamedTuple):
    """Labels and predictions, which are checked when they are read."""

    kind: int
    label: NDArray[Any]
    prediction: NDArray[Any]

    def read(self, first: int, last: int) -> Any:
        rows = slice(first, last)
        return sums.Reader(self.kind, self.label[rows], self.prediction[rows], None, 1.0, False)


def _sort(
    rows: _Rows, key: Integers, out: tuple[Vector, ...], listing: Callable[..., int]
) -> int | None:
    """Sort the keys of rows and list what is distinct in their place, and in ``out``.

    Returns how much that is, or None where a row is not valid. Many rows are put into parts by the
    leading bits of their predictions, which threads then sort: that takes as long as the number of
    threads says, and gives the same result.
    """
    threads = min(thread_count(), key.size // _ROWS_PER_THREAD)
    if COMPILED and (threads > 1 or key.size > _INTERRUPTIBLE):
        return _sort_in_threads(rows, key, out, listing, max(threads, 1))
    if not COMPILED:  # rows were checked, and NumPy is faster than a loop
        np.bitwise_or(np.abs(rows.prediction).view(np.int64) << 1, rows.label, out=key)
    else:
        part, end = np.zeros(1, dtype=np.int16), np.zeros(1, dtype=np.int64)
        if not sums.place_keys(rows.read(0, key.size), 0, 62, part, end, key):
            return None
    _sort_keys(key, np.array([key.size]), out[0].view(np.int64))
    return listing(key, *out)


def _sort_keys(key: Integers, stop: Integers, work: Integers) -> None:
    """Sort keys that lie in parts."""
    if not COMPILED or key.size < _FEW:
        key.sort()
    elif key.size < _MANY or not _numpy_is_faster():
        support.sort_parts(key, stop, work, np.empty(_PLACES, dtype=np.int64))
    else:
        for start, end in pairwise((0, *stop.tolist())):
            key[start:end].sort()


@cache
def _numpy_is_faster() -> bool:
    """Whether NumPy sorts integers faster than the kernel here: seen, as processors do not tell.

    With the vector instructions of some it takes half of the time, on others four times as long.
    """
    given = np.arange(_TRIED) * 0x1E3779B97F4A7C15 & 2**62 - 1  # in no order
    stop, work, end = np.array([_TRIED]), np.empty_like(given), np.empty(_PLACES, dtype=np.int64)
    ways: tuple[Callable[[Integers], None], ...] = (
        lambda key: support.sort_parts(key, stop, work, end),
        lambda key: key.sort(),
    )
    taken = [math.inf, math.inf]
    for _ in range(3):
        for number, way in enumerate(ways):
            key = given.copy()
            start = time.perf_counter()
            way(key)
            taken[number] = min(taken[number], time.perf_counter() - start)
    return taken[1] < taken[0]


def _sort_in_threads(
    rows: _Rows, key: Integers, out: tuple[Vector, ...], listing: Callable[..., int], threads: int
) -> int | None:
    """Sort rows in parts, and list them."""
    n = key.size
    low, shift = _leading_bits(rows.prediction)
    ends = even_parts(n, threads)
    count = np.zeros((threads, _STRETCHES), dtype=np.int64)

    def count_keys(i: int) -> bool:
        return bool(sums.count_keys(rows.read(*ends[i]), low, shift, count[i]))

    def place_keys(i: int) -> bool:
        return bool(sums.place_keys(rows.read(*ends[i]), low, shift, part, end[i], key))

    def sort_keys(parts: tuple[int, int]) -> tuple[int, int]:
        stop = last[slice(*parts)]
        start = int(last[parts[0] - 1]) if parts[0] > 0 else 0
        here = slice(start, int(stop[-1]))
        _sort_keys(key[here], stop - start, out[0][here].view(np.int64))
        return start, listing(key[here], *(column[here] for column in out))

    if not all(in_threads(count_keys, range(threads), threads)):
        return None
    # Parts of about as many rows, each of some stretches.
    parts = min(_PARTS, n // _ROWS_PER_PART) if _numpy_is_faster() else _PARTS
    parts = max(parts, _GROUPS * threads)
    each = count.sum(axis=0)
    part = np.minimum((np.cumsum(each) - each) * parts // n, parts - 1).astype(np.int16)
    of_part = np.array([np.bincount(part, row, parts) for row in count]).astype(np.int64)
    # Part by part, and in each the rows of one thread after those of the one before.
    end = (np.cumsum(of_part.T) - of_part.T.ravel()).reshape(parts, threads).T.copy()
    wanted = end + of_part
    if not all(in_threads(place_keys, range(threads), threads)):
        return None
    if not np.array_equal(end, wanted):
        _validate.refuse_changed()
    last = end[-1]  # of each part
    even = np.linspace(0, n, _GROUPS * threads + 1)[1:-1]
    group = np.unique([0, *np.searchsorted(last, even), last.size]).tolist()
    size = 0
    for start, more in in_threads(sort_keys, pairwise(group), threads):
        if size < start:  # closed up where predictions are equal
            for column in (key, *out):
                column[size : size + more] = column[start : start + more]
        size += more
    return size


def _leading_bits(prediction: NDArray[Any]) -> tuple[int, int]:
    """Return what to subtract from places, and how many bits to leave out, for the stretches."""
    sample = np.sort(prediction[:: max(1, prediction.size // _SAMPLE)])
    far = sample.size // _FAR
    low, high = (sums.place_of(float(sample[at])) for at in (far, -1 - far))
    return low, max(0, (high - low).bit_length() - (_STRETCHES - 1).bit_length())


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
        _validate.refuse_changed()
    return _trimmed(out, size)


def sorting_order(prediction: Vector) -> NDArray[np.int64]:
    """Return which row comes first, second, …, equal predictions in the order of the rows."""
    n = prediction.size
    if not COMPILED or n < _FEW:
        return np.argsort(prediction, kind="stable")
    key = (prediction + 0.0).view(np.int64)  # -0.0 is 0.0
    if key.min() < 0:  # which the kernel takes for granted
        _validate.refuse_changed()
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
