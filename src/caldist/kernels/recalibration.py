"""Maps to calibrated predictions that are constant on cells: cutting, merging and pooling them.

Notation: v the increasing predictions, S the prefix sums of their mass, Y of the mass of label 1, V
of mass times prediction. A cell from a up to b costs C(a, b) = Σ mass |v - μ|, μ the frequency of
label 1 in it.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

if cython.compiled:
    from cython.cimports.libc.math import sqrt
else:
    from math import sqrt


def cells(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    variance: cython.const[cython.double][::1],
    factor: cython.double,
    start: cython.longlong[::1],
) -> int:
    """Write where cells start that are as wide as ``factor`` standard errors of their mean label.

    A cell ends before its mass times its width exceeds ``factor`` times the root of its variance.
    Returns how many there are.
    """
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = v.shape[0]
    count: cython.Py_ssize_t = 1
    first = v[0]
    total = mass[0]
    noise = variance[0]
    start[0] = 0
    with cython.nogil:
        for i in range(1, n):
            total += mass[i]
            noise += variance[i]
            if total * (v[i] - first) > factor * sqrt(noise):
                start[count] = i
                count += 1
                first = v[i]
                total = mass[i]
                noise = variance[i]
    return count


def merge(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    ones: cython.const[cython.double][::1],
    moment: cython.const[cython.double][::1],
    edge: cython.const[cython.longlong][::1],
    best: cython.double[::1],
    back: cython.longlong[::1],
) -> None:
    """Find the cheapest way to merge neighbouring cells, ``edge`` being where they start and end.

    ``mass``, ``ones`` and ``moment`` are prefix sums S, Y and V. ``best[j]`` is the least cost of
    the first j cells, and their last merged one begins with cell ``back[j]``. O(m² log n).
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    m: cython.Py_ssize_t = edge.shape[0] - 1
    with cython.nogil:
        best[0] = 0.0
        back[0] = 0
        for j in range(1, m + 1):
            b = edge[j]
            best[j] = -1.0
            for i in range(j):
                a = edge[i]
                cost = best[i]
                if mass[b] > mass[a]:
                    mean = (ones[b] - ones[a]) / (mass[b] - mass[a])
                    low = a
                    high = b
                    while low < high:  # the first prediction that is not below the mean
                        middle = (low + high) // 2
                        if v[middle] < mean:
                            low = middle + 1
                        else:
                            high = middle
                    cost += mean * (2 * mass[low] - mass[a] - mass[b])
                    cost += moment[a] + moment[b] - 2 * moment[low]
                if best[j] < 0 or cost < best[j] - 1e-15:
                    best[j] = cost
                    back[j] = i


def pool(
    mean: cython.double[::1],
    mass: cython.double[::1],
    start: cython.longlong[::1],
) -> int:
    """Write where the blocks of the best increasing fit start; return how many there are.

    ``mean`` is the frequency of label 1 at each prediction and ``mass`` its weight; both are
    overwritten, their first entries by those of the blocks. A block takes in what follows as long
    as that is not above it, then the blocks before it that are not below it. O(n).
    """
    n: cython.Py_ssize_t = mean.shape[0]
    i: cython.Py_ssize_t = 0  # the next prediction
    k: cython.Py_ssize_t = 0  # the next block
    first: cython.Py_ssize_t
    with cython.nogil:
        while i < n:
            first = i
            level = mean[i]
            weight = mass[i]
            i += 1
            if k > 0 and mean[k - 1] >= level:
                k -= 1
                first = start[k]
                total = mass[k] * mean[k] + weight * level
                weight += mass[k]
                level = total / weight
                while i < n and level >= mean[i]:
                    total += mass[i] * mean[i]
                    weight += mass[i]
                    level = total / weight
                    i += 1
                while k > 0 and mean[k - 1] >= level:
                    k -= 1
                    first = start[k]
                    total += mass[k] * mean[k]
                    weight += mass[k]
                    level = total / weight
            start[k] = first
            mean[k] = level
            mass[k] = weight
            k += 1
    return k
