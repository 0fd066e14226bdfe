"""From rows to the support of a joint distribution: sorted distinct predictions with masses.

Residuals depend on (prediction, label) alone, so unweighted rows need no argsort: a row is one
integer, made of both. Weighted rows come with their sorting order. All passes are O(n).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython


def count_keys(
    label: cython.const[cython.uchar][::1],
    bits: cython.const[cython.longlong][::1],
    low: cython.longlong,
    shift: cython.int,
    count: cython.longlong[::1],
) -> None:
    """Count the keys of rows by their leading bits, see :func:`place_keys`."""
    i: cython.Py_ssize_t
    last: cython.longlong = count.shape[0] - 1
    unsigned: cython.longlong = 0x7FFFFFFFFFFFFFFF
    part: cython.longlong
    with cython.nogil:
        for i in range(label.shape[0]):
            part = (((bits[i] & unsigned) << 1 | label[i]) - low) >> shift
            count[min(max(part, 0), last)] += 1


def place_keys(
    label: cython.const[cython.uchar][::1],
    bits: cython.const[cython.longlong][::1],
    low: cython.longlong,
    shift: cython.int,
    end: cython.longlong[::1],
    key: cython.longlong[::1],
) -> None:
    """Write the key of each row to the end of its part, which moves on.

    A key is twice the bits of a prediction, and its label: keys are in the order of predictions,
    and equal if both are. The sign is dropped, so that -0.0 and 0.0 tie. A part has the keys that
    are the same after subtracting ``low`` and shifting by ``shift``; what is below or above all
    parts goes to the first or the last.
    """
    i: cython.Py_ssize_t
    last: cython.longlong = end.shape[0] - 1
    unsigned: cython.longlong = 0x7FFFFFFFFFFFFFFF
    part: cython.longlong
    x: cython.longlong
    with cython.nogil:
        for i in range(label.shape[0]):
            x = (bits[i] & unsigned) << 1 | label[i]
            part = min(max((x - low) >> shift, 0), last)
            key[end[part]] = x
            end[part] += 1


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
    key: cython.const[cython.longlong][::1],
    bits: cython.longlong[::1],
    mass0: cython.double[::1],
    mass1: cython.double[::1],
) -> int:
    """Write the distinct predictions of sorted keys, as their bits, with the rows of each label.

    Returns how many there are. No two of the four arrays overlap.
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
                bits[k] = x
                mass0[k] = 1 - one
                mass1[k] = one
            else:
                mass1[k] += one
                mass0[k] += 1 - one
    return k + 1


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


def residual_sums(
    prediction: cython.const[cython.double][::1],
    mass0: cython.const[cython.double][::1],
    mass1: cython.const[cython.double][::1],
    total: cython.double,
    sums: cython.double[::1],
) -> None:
    """Write 0 and the sums of the first 1, 2, … residual masses."""
    i: cython.Py_ssize_t
    v: cython.double
    added: cython.double = 0.0
    with cython.nogil:
        sums[0] = 0.0
        for i in range(prediction.shape[0]):
            v = prediction[i]
            added += mass1[i] / total * (1.0 - v) - mass0[i] / total * v
            sums[i + 1] = added
