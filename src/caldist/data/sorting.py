"""From rows in any order to distinct, increasing predictions with the mass of each label."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist._kernels import COMPILED, support
from caldist._util.threads import even_parts, in_threads, thread_count
from caldist._util.types import Integers, Vector

Columns = dict[str, Any]  # vectors by the names of a joint's fields

_FEW = 200  # rows up to which NumPy is as quick
_PLACES = 8 * 1024  # that the kernel keeps the ends of parts in
_ROWS_PER_THREAD = 100_000  # from which a thread repays its start
_PARTS = 1024  # by leading bits, that threads sort
_MANY = 20_000  # rows for which it is worth while to see who sorts faster
_TRIED = 4096  # keys that show who sorts faster
_GROUPS = 4  # of parts for each thread, as some take longer
_SAMPLE = 4096  # rows that tell which bits lead


def sort_rows(label: NDArray[np.uint8], prediction: Vector) -> Columns:
    """Return distinct predictions with row counts per label.

    Many rows are put into parts by the leading bits of their predictions, which threads then sort:
    that takes as long as the number of threads says, and gives the same result.
    """
    n = prediction.size
    key, bits = np.empty(n, dtype=np.int64), prediction.view(np.int64)
    out = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)
    threads = min(thread_count(), n // _ROWS_PER_THREAD)
    if threads > 1 and COMPILED:
        size = _sort_in_threads(label, bits, key, out, threads)
    else:
        support.place_keys(label, bits, 0, 62, np.zeros(1, dtype=np.int64), key)
        _sort_keys(key, np.array([n]), out[0])
        size = support.list_keys(key, *out)
    return _trimmed((out[0].view(np.float64), *out[1:]), size)


def _sort_keys(key: Integers, stop: Integers, work: Integers) -> None:
    """Sort keys that lie in parts."""
    if COMPILED and key.size >= _FEW and (key.size < _MANY or not _numpy_is_faster()):
        support.sort_parts(key, stop, work, np.empty(_PLACES, dtype=np.int64))
    else:
        key.sort()


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
    label: NDArray[np.uint8],
    bits: Integers,
    key: Integers,
    out: tuple[Integers, Vector, Vector],
    threads: int,
) -> int:
    """Sort rows in parts, and list them; return how many distinct predictions there are."""
    n = bits.size
    sample = (bits[:: max(1, n // _SAMPLE)] & np.iinfo(np.int64).max) << 1
    low, high = int(sample.min()), int(sample.max())
    shift = max(0, (high - low).bit_length() - (_PARTS - 1).bit_length())
    rows = [slice(*ends) for ends in even_parts(n, threads)]
    count = np.zeros((threads, _PARTS), dtype=np.int64)

    def count_keys(i: int) -> None:
        support.count_keys(label[rows[i]], bits[rows[i]], low, shift, count[i])

    def place_keys(i: int) -> None:
        support.place_keys(label[rows[i]], bits[rows[i]], low, shift, end[i], key)

    def sort_keys(parts: tuple[int, int]) -> tuple[int, int]:
        stop = last[slice(*parts)]
        start = int(last[parts[0] - 1]) if parts[0] > 0 else 0
        here = slice(start, int(stop[-1]))
        _sort_keys(key[here], stop - start, out[0][here])
        return start, support.list_keys(key[here], *(column[here] for column in out))

    in_threads(count_keys, range(threads), threads)
    # Part by part, and in each the rows of one thread after those of the one before.
    end = (np.cumsum(count.T) - count.T.ravel()).reshape(_PARTS, threads).T.copy()
    in_threads(place_keys, range(threads), threads)
    last = end[-1]  # of each part
    even = np.linspace(0, n, _GROUPS * threads + 1)[1:-1]
    group = np.unique([0, *np.searchsorted(last, even), _PARTS]).tolist()
    listed = in_threads(sort_keys, pairwise(group), threads)
    size = 0
    for start, more in listed:  # closed up where predictions are equal
        if size < start:
            for column in out:
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
