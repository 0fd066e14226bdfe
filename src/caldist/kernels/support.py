"""From rows to the support of a joint distribution: sorted distinct predictions with masses.

Residuals depend on (prediction, label) alone, so unweighted rows need no argsort: a row is one
integer made of both, its key. Weighted rows come with their sorting order.
All passes are O(n).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

if cython.compiled:
    from cython.cimports.caldist.kernels._wide import double_of
else:
    from caldist.kernels._bits import double_of


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
