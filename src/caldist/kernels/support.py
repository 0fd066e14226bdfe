"""From rows to the support of a joint distribution: sorted distinct predictions with masses.

Residuals depend on (prediction, label) alone, so unweighted rows need no argsort: the predictions
of the two labels are sorted apart and merged here. Weighted rows come with their sorting order.
All passes are O(n).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython


def split_by_label(
    label: cython.const[cython.uchar][::1],
    prediction: cython.const[cython.double][::1],
    out: cython.double[::1],
) -> int:
    """Write the predictions of label 1 from the left of ``out``, the others from the right.

    Returns the number of ones. Adding 0.0 turns -0.0 into 0.0, so that the two tie.
    """
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = prediction.shape[0]
    left: cython.Py_ssize_t = 0
    right: cython.Py_ssize_t = n - 1
    one: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            # Write to both ends and move one of them: no branch to mispredict. The cell that is
            # not kept is still free, because left <= right here.
            one = label[i]
            out[left] = out[right] = prediction[i] + 0.0
            left += one
            right -= 1 - one
    return left


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _distribute(
    key: cython.p_longlong,
    order: cython.p_longlong,
    paired: cython.bint,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    work: cython.p_longlong,
    places: cython.p_longlong,
    end: cython.p_longlong,
    at: cython.Py_ssize_t,
) -> cython.void:
    """Put keys from one place to another into parts by their leading bits, and so on in each part.

    What is left in disorder are parts of at most 16 keys. The ends of the parts are kept from
    ``at`` on. Keys differ in 63 bits at most, of which each level takes at least 4 and at most 10.
    """
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    size: cython.Py_ssize_t = 4
    shift: cython.int = 0
    low: cython.longlong = key[start]
    high: cython.longlong = low
    for i in range(start, stop):
        low = min(low, key[i])
        high = max(high, key[i])
    while 2 << size < stop - start and size < 10:
        size += 1
    while (high - low) >> shift >= 1 << size:
        shift += 1
    size = 1 << size
    for k in range(at, at + size):
        end[k] = 0
    for i in range(start, stop):
        k = (key[i] - low) >> shift
        end[at + k] += 1
    i = start
    for k in range(at, at + size):
        i += end[k]
        end[k] = i - end[k]
    for i in range(start, stop):
        k = (key[i] - low) >> shift
        work[end[at + k]] = key[i]
        if paired:
            places[end[at + k]] = order[i]
        end[at + k] += 1
    for i in range(start, stop):
        key[i] = work[i]
        if paired:
            order[i] = places[i]
    if shift == 0:
        return
    for k in range(at, at + size):
        if end[k] - start > 16:
            _distribute(key, order, paired, start, end[k], work, places, end, at + size)
        start = end[k]


def sort_keys(
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    work: cython.longlong[::1],
    places: cython.longlong[::1],
    end: cython.longlong[::1],
) -> None:
    """Sort integers that are not negative, such as the bits of doubles that are not.

    ``order`` goes with them, equal keys in the order given; it may be empty. Parts by leading bits
    fit into the cache from the second level on. ``work`` and ``places`` are as long as ``key`` and
    ``order``; ``end`` has 8192 places.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    n: cython.Py_ssize_t = key.shape[0]
    x: cython.longlong
    at: cython.longlong = 0
    paired: cython.bint = order.shape[0] > 0
    keys: cython.p_longlong
    numbers: cython.p_longlong
    space: cython.p_longlong
    other: cython.p_longlong
    ends: cython.p_longlong
    if n < 2:
        return
    if cython.compiled:
        keys, space = cython.address(key[0]), cython.address(work[0])
        numbers = cython.address(order[0]) if paired else keys
        other = cython.address(places[0]) if paired else space
        ends = cython.address(end[0])
    else:
        keys, numbers, space, other, ends = key, order, work, places, end
    with cython.nogil:
        _distribute(keys, numbers, paired, 0, n, space, other, ends, 0)
        for i in range(1, n):
            x = keys[i]
            if keys[i - 1] <= x:
                continue
            j = i
            if paired:
                at = numbers[i]
            while j > 0 and keys[j - 1] > x:
                keys[j] = keys[j - 1]
                if paired:
                    numbers[j] = numbers[j - 1]
                j -= 1
            keys[j] = x
            if paired:
                numbers[j] = at


def merge_labels(
    one: cython.const[cython.double][::1],
    zero: cython.const[cython.double][::1],
    prediction: cython.double[::1],
    mass0: cython.double[::1],
    mass1: cython.double[::1],
) -> int:
    """Merge the sorted predictions of both labels into distinct ones with row counts.

    Returns how many there are.
    """
    i: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    n1: cython.Py_ssize_t = one.shape[0]
    n0: cython.Py_ssize_t = zero.shape[0]
    k: cython.Py_ssize_t = -1
    last: cython.double = -1.0
    x: cython.double
    from_one: cython.Py_ssize_t
    with cython.nogil:
        while i < n1 or j < n0:
            if j >= n0:
                from_one = 1
            elif i >= n1:
                from_one = 0
            else:
                from_one = one[i] <= zero[j]
            x = one[i] if from_one else zero[j]
            i += from_one
            j += 1 - from_one
            if x != last:
                k += 1
                last = x
                prediction[k] = x
                mass0[k] = 0.0
                mass1[k] = 0.0
            mass1[k] += from_one
            mass0[k] += 1 - from_one
    return k + 1


def merge_weighted(
    order: cython.const[cython.longlong][::1],
    value: cython.const[cython.double][::1],
    weight0: cython.const[cython.double][::1],
    weight1: cython.const[cython.double][::1],
    squared0: cython.const[cython.double][::1],
    squared1: cython.const[cython.double][::1],
    prediction: cython.double[::1],
    mass0: cython.double[::1],
    mass1: cython.double[::1],
    square0: cython.double[::1],
    square1: cython.double[::1],
) -> int:
    """Add up the weights of equal predictions, ``order`` being their sorting order.

    So are their squares, unless these arrays are empty. Rows without weight leave no trace. Returns
    the number of distinct predictions.
    """
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    k: cython.Py_ssize_t = -1
    last: cython.double = -1.0
    x: cython.double
    squares: cython.bint = squared0.shape[0] > 0
    with cython.nogil:
        for i in range(order.shape[0]):
            at = order[i]
            if weight0[at] + weight1[at] == 0.0:
                continue
            x = value[at] + 0.0
            if x != last:
                k += 1
                last = x
                prediction[k] = x
                mass0[k] = 0.0
                mass1[k] = 0.0
                if squares:
                    square0[k] = 0.0
                    square1[k] = 0.0
            mass0[k] += weight0[at]
            mass1[k] += weight1[at]
            if squares:
                square0[k] += squared0[at]
                square1[k] += squared1[at]
    return k + 1


def residual_masses(
    prediction: cython.const[cython.double][::1],
    mass0: cython.const[cython.double][::1],
    mass1: cython.const[cython.double][::1],
    total: cython.double,
    residual: cython.double[::1],
) -> None:
    """Write E[(y - v) 1(v = v_i)], the residual mass of each distinct prediction."""
    i: cython.Py_ssize_t
    v: cython.double
    with cython.nogil:
        for i in range(prediction.shape[0]):
            v = prediction[i]
            # Dividing first keeps the digits of masses close to the least positive number.
            residual[i] = mass1[i] / total * (1.0 - v) - mass0[i] / total * v
