"""From rows to the support of a joint distribution: sorted distinct predictions with masses.

Residuals depend on (prediction, label) alone, so unweighted rows need no argsort: a row is one
integer made of both, its key, see :func:`place_keys`. Weighted rows come with their sorting order.
All passes are O(n).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

if cython.compiled:
    from cython.cimports.caldist.kernels._wide import bits_of, double_of
else:
    from caldist.kernels._bits import bits_of, double_of


def count_keys(
    prediction: cython.const[cython.double][::1],
    low: cython.longlong,
    shift: cython.int,
    count: cython.longlong[::1],
) -> None:
    """Count rows by the leading bits of their places, see :func:`place_keys`."""
    i: cython.Py_ssize_t
    last: cython.longlong = count.shape[0] - 1
    with cython.nogil:
        for i in range(prediction.shape[0]):
            count[min(max((_place(prediction[i]) - low) >> shift, 0), last)] += 1


def place_keys(
    label: cython.const[cython.uchar][::1],
    prediction: cython.const[cython.double][::1],
    low: cython.longlong,
    shift: cython.int,
    part: cython.const[cython.short][::1],
    end: cython.longlong[::1],
    key: cython.longlong[::1],
) -> bool:
    """Write the key of each row to the end of its part, which moves on.

    A key is twice the bits of a prediction, and its label: keys are in the order of predictions,
    and equal if both are. The sign is dropped, so that -0.0 and 0.0 tie. Which part a row belongs
    to is listed by what is left of its place, see :func:`place_of`, after subtracting ``low`` and
    shifting by ``shift``; what is below or above the list belongs to its first or its last.

    Returns False if a prediction is no probability. Nothing is written beyond the keys, whatever
    became of rows since they were counted.
    """
    i: cython.Py_ssize_t
    last: cython.longlong = part.shape[0] - 1
    to: cython.short
    size: cython.longlong = key.shape[0]
    unsigned: cython.longlong = 0x7FFFFFFFFFFFFFFF
    v: cython.double
    valid: cython.bint = True
    with cython.nogil:
        for i in range(prediction.shape[0]):
            v = prediction[i]
            valid = valid and v >= 0.0 and v <= 1.0
            to = part[min(max((_place(v) - low) >> shift, 0), last)]
            if end[to] < size:
                key[end[to]] = (bits_of(v) & unsigned) << 1 | (label[i] & 1)
            end[to] += 1
    return valid


def place_of(v: cython.double) -> int:
    """Return an integer that increases with a prediction, as finely near 1 as near 0."""
    return _place(v)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _place(v: cython.double) -> cython.longlong:
    half: cython.longlong = 0x3FE0000000000000  # the bits of 0.5
    below: cython.longlong = bits_of(abs(v))
    above: cython.longlong = 2 * half - bits_of(1.0 - v)
    return below + (above - below) * (below > half)  # no branch, which would be mistaken


def sort_parts(
    key: cython.longlong[::1],
    stop: cython.const[cython.longlong][::1],
    work: cython.longlong[::1],
    end: cython.longlong[::1],
) -> None:
    """Sort keys that lie in parts which are in order; ``stop`` says where each part ends.

    ``work`` is as long as ``key``, ``end`` has 8192 places.
    """
    k: cython.Py_ssize_t
    start: cython.Py_ssize_t = 0
    keys: cython.p_longlong
    space: cython.p_longlong
    ends: cython.p_longlong
    if key.shape[0] < 2:
        return
    if cython.compiled:
        keys, space = cython.address(key[0]), cython.address(work[0])
        ends = cython.address(end[0])
    else:
        keys, space, ends = key, work, end
    with cython.nogil:
        for k in range(stop.shape[0]):
            if stop[k] - start > 16:
                _distribute(keys, keys, False, start, stop[k], space, space, ends, 0)
            start = stop[k]
        _insert(keys, keys, False, key.shape[0])


def list_keys(
    key: cython.longlong[::1], mass0: cython.double[::1], mass1: cython.double[::1]
) -> int:
    """Put the distinct predictions of sorted keys, as their bits, in the place of the keys.

    With them go the rows of each label. Returns how many there are.
    """
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t = -1
    last: cython.longlong = -1
    x: cython.longlong
    one: cython.longlong
    with cython.nogil:
        for i in range(key.shape[0]):
            x = key[i] >> 1
            one = key[i] & 1
            if x != last:
                k += 1
                last = x
                key[k] = x
                mass0[k] = 1 - one
                mass1[k] = one
            else:
                mass1[k] += one
                mass0[k] += 1 - one
    return k + 1


def list_residuals(
    key: cython.longlong[::1], total: cython.double, residual: cython.double[::1]
) -> int:
    """Put the distinct predictions of sorted keys, as their bits, in the place of the keys.

    With them go the residual masses, see :func:`residual_masses`. Returns how many there are.
    """
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = key.shape[0]
    x: cython.longlong
    ones: cython.longlong
    start: cython.Py_ssize_t
    v: cython.double
    share: cython.double = 1.0 / total
    with cython.nogil:
        i = 0
        while i < n:
            x = key[i] >> 1
            ones = key[i] & 1
            start = i
            i += 1
            while i < n and key[i] >> 1 == x:
                ones += key[i] & 1
                i += 1
            key[k] = x
            v = double_of(x)
            if i - start == 1:  # the same without a division
                residual[k] = ones * share * (1.0 - v) - (1 - ones) * share * v
            else:
                residual[k] = ones / total * (1.0 - v) - (i - start - ones) / total * v
            k += 1
    return k


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

    ``order`` goes with them, equal keys in the order given. Parts by leading bits fit into the
    cache from the second level on. All are of one length but ``end``, which has 8192 places.
    """
    n: cython.Py_ssize_t = key.shape[0]
    keys: cython.p_longlong
    numbers: cython.p_longlong
    space: cython.p_longlong
    other: cython.p_longlong
    ends: cython.p_longlong
    if n < 2:
        return
    if cython.compiled:
        keys, space = cython.address(key[0]), cython.address(work[0])
        numbers, other = cython.address(order[0]), cython.address(places[0])
        ends = cython.address(end[0])
    else:
        keys, numbers, space, other, ends = key, order, work, places, end
    with cython.nogil:
        _distribute(keys, numbers, True, 0, n, space, other, ends, 0)
        _insert(keys, numbers, True, n)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _insert(
    key: cython.p_longlong,
    order: cython.p_longlong,
    paired: cython.bint,
    n: cython.Py_ssize_t,
) -> cython.void:
    """Sort keys of which each is at most 16 places from where it belongs."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    x: cython.longlong
    at: cython.longlong = 0
    for i in range(1, n):
        x = key[i]
        if key[i - 1] <= x:
            continue
        j = i
        if paired:
            at = order[i]
        while j > 0 and key[j - 1] > x:
            key[j] = key[j - 1]
            if paired:
                order[j] = order[j - 1]
            j -= 1
        key[j] = x
        if paired:
            order[j] = at


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
    the number of distinct predictions, or -1 where they do not increase in this order.
    """
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    k: cython.Py_ssize_t = -1
    last: cython.double = -1.0
    x: cython.double
    changed: cython.bint = False
    squares: cython.bint = squared0.shape[0] > 0
    with cython.nogil:
        for i in range(order.shape[0]):
            at = order[i]
            if weight0[at] + weight1[at] == 0.0:
                continue
            x = value[at] + 0.0
            if k < 0 or x != last:
                changed |= not x > last
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
    return -1 if changed else k + 1


def merge(
    first: cython.const[cython.double][::1],
    second: cython.const[cython.double][::1],
    both: cython.double[::1],
    of_first: cython.longlong[::1],
    of_second: cython.longlong[::1],
) -> int:
    """Write all numbers of two increasing vectors into ``both``, and the place of each among them.

    Returns how many there are, a number of both counting once.
    """
    i: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = first.shape[0]
    m: cython.Py_ssize_t = second.shape[0]
    x: cython.double
    with cython.nogil:
        while i < n or j < m:
            x = first[i] if j >= m or (i < n and first[i] <= second[j]) else second[j]
            both[k] = x
            if i < n and first[i] == x:
                of_first[i] = k
                i += 1
            if j < m and second[j] == x:
                of_second[j] = k
                j += 1
            k += 1
    return k


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


def total(values: cython.const[cython.double][::1]) -> float:
    """Return the sum of values, from the first to the last."""
    i: cython.Py_ssize_t
    added: cython.double = 0.0
    with cython.nogil:
        for i in range(values.shape[0]):
            added += values[i]
    return added


def running_sums(
    values: cython.const[cython.double][::1], added: cython.double, sums: cython.double[::1]
) -> None:
    """Write what there is after adding the first, the second, … value to ``added``."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(values.shape[0]):
            added += values[i]
            sums[i] = added
