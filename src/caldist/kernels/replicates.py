r"""What a resampling replicate needs between its random numbers and a norm, in O(n), no sorting.

Notation: a unit u is ``count[u]`` rows that share a prediction, a label and a weight. It lies at
``place[u]`` of the support and each of its rows has size ``size[u]``; ``out`` is the sum over the
units of each place. A sign flip multiplies every row, or every cluster of rows, by an independent
+1 or -1, and costs one random bit. The sum of k signs is 2 Binomial(k, 1/2) - k, so units of
many rows come with that sum drawn beforehand.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

if cython.compiled:
    from cython.cimports.libc.math import exp
else:
    from math import exp


def flip_rows(
    bits: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    size: cython.const[cython.double][::1],
    count: cython.const[cython.longlong][::1],
    out: cython.double[::1],
) -> None:
    """Write the sums of the sizes after a sign flip of each row, one bit a row."""
    u: cython.Py_ssize_t
    i: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    ones: cython.Py_ssize_t
    with cython.nogil:
        for u in range(out.shape[0]):
            out[u] = 0.0
        for u in range(place.shape[0]):
            ones = 0
            stop = i + count[u]
            while i < stop:
                ones += bits[i >> 3] >> (i & 7) & 1
                i += 1
            out[place[u]] += size[u] * (2 * ones - count[u])


def flip_groups(
    bits: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    size: cython.const[cython.double][::1],
    group: cython.const[cython.longlong][::1],
    out: cython.double[::1],
) -> None:
    """Write the sums of the sizes after a sign flip of each group, bit g being that of group g."""
    u: cython.Py_ssize_t
    g: cython.Py_ssize_t
    with cython.nogil:
        for u in range(out.shape[0]):
            out[u] = 0.0
        for u in range(place.shape[0]):
            g = group[u]
            out[place[u]] += size[u] * (2 * (bits[g >> 3] >> (g & 7) & 1) - 1)


def collect(
    factor: cython.const[cython.double][::1],
    place: cython.const[cython.longlong][::1],
    size: cython.const[cython.double][::1],
    out: cython.double[::1],
) -> None:
    """Write the sums of the sizes, each times the factor of its unit."""
    u: cython.Py_ssize_t
    with cython.nogil:
        for u in range(out.shape[0]):
            out[u] = 0.0
        for u in range(place.shape[0]):
            out[place[u]] += size[u] * factor[u]


def draw_labels(
    uniform: cython.const[cython.double][::1],
    place: cython.const[cython.longlong][::1],
    size: cython.const[cython.double][::1],
    count: cython.const[cython.longlong][::1],
    prediction: cython.const[cython.double][::1],
    out: cython.double[::1],
) -> None:
    """Write the residual masses of labels drawn from the predictions, one uniform number a row."""
    u: cython.Py_ssize_t
    i: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    ones: cython.Py_ssize_t
    p: cython.double
    with cython.nogil:
        for u in range(out.shape[0]):
            out[u] = 0.0
        for u in range(place.shape[0]):
            p = prediction[place[u]]
            ones = 0
            stop = i + count[u]
            while i < stop:
                ones += uniform[i] < p
                i += 1
            out[place[u]] += size[u] * (ones - count[u] * p)


def label_deviation(
    v: cython.const[cython.double][::1], change: cython.const[cython.double][::1]
) -> float:
    r"""Return the bound on the change of ldCE when the masses of the labels change.

    ``change`` holds the changes of the masses of label 0 at v_1, ..., v_n, then those of label 1.
    With D_y(A) the change of label y on the set A, it is the integral over t in [0, 1] of
    |D_1(v <= t)| + |D_0(v > t)|.
    """
    n: cython.Py_ssize_t = v.shape[0]
    i: cython.Py_ssize_t
    below: cython.double = 0.0
    above: cython.double = 0.0
    value: cython.double
    d: cython.double
    with cython.nogil:
        for i in range(n):
            above += change[i]
        value = v[0] * abs(above)
        for i in range(n):
            d = (v[i + 1] if i + 1 < n else 1.0) - v[i]
            above -= change[i]
            below += change[n + i]
            # Beyond the last prediction nothing of label 0 is left; rounding may leave an ulp.
            value += d * (abs(below) + (abs(above) if i + 1 < n else 0.0))
    return value


def smooth_ce_bound(
    v: cython.const[cython.double][::1], c: cython.const[cython.double][::1]
) -> float:
    """Return an upper bound on smCE: the cost of one monotone curve, not of the best.

    In the notation of the kernel ``smooth`` the curve is the running maximum of the prefix sums,
    clipped to [0, T]. There is nothing to branch on, which makes it many times as fast.
    """
    n: cython.Py_ssize_t = v.shape[0]
    i: cython.Py_ssize_t
    total: cython.double = 0.0
    sign: cython.double
    prefix: cython.double = 0.0
    curve: cython.double = 0.0
    value: cython.double
    with cython.nogil:
        for i in range(n):
            total += c[i]
        sign = 1.0 if total >= 0.0 else -1.0
        total *= sign
        value = total
        for i in range(n - 1):
            prefix += sign * c[i]
            curve = max(curve, min(prefix, total))
            value += (v[i + 1] - v[i]) * abs(prefix - curve)
    return value


def laplace_potential(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    h: cython.double,
    out: cython.double[::1],
) -> None:
    """Write sum_j c_j exp(-|v_i - v_j|/h) for each i: what is left of i, then what is right."""
    n: cython.Py_ssize_t = v.shape[0]
    i: cython.Py_ssize_t
    carried: cython.double = 0.0
    with cython.nogil:
        for i in range(n):
            if i > 0:
                carried = exp((v[i - 1] - v[i]) / h) * (carried + c[i - 1])
            out[i] = carried + c[i]
        carried = 0.0
        for i in range(n - 2, -1, -1):
            carried = exp((v[i] - v[i + 1]) / h) * (carried + c[i + 1])
            out[i] += carried
