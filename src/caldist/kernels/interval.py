"""Interval calibration error: the best grouping of sorted points into intervals, exactly.

Notation: n points; position j stands for the gap after the first j points; S and P are the sums of
residuals and of masses of the first j points; D[j] is the least cost of grouping them,

    D[j] = min over i < j of  D[i] + |S[j] - S[i]| + (P[j] - P[i]) (v[j-1] - v[i]).

Two methods share the work. `interval_search` is close to linear on ordinary data, with no
guarantee; it counts its steps, and when they exceed a multiple of the points done, `interval_safe`
takes over from there, in O(n log² n) whatever the data. Space is O(n).

Both stop early if asked whether the cost is below a limit, and it is not. Whatever j is the first
end of a group beyond the positions done, that group costs at least what its width did at the next
position. Once D[i] and that reach the limit for every i done, so does all that follows.
"""

from __future__ import annotations

from math import inf

import numpy as np

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels._buffers import doubles, integers

# Relative, so that the compiled kernel calls compiled ones and the plain kernel plain ones.
from .interval_safe import solve as solve_safely
from .interval_search import search


def _prefix_sums(values: cython.const[cython.double][::1]) -> memoryview:
    total = np.zeros(values.shape[0] + 1)
    np.cumsum(values, out=total[1:])
    return memoryview(total)


def _read_off(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    residual: cython.const[cython.double][::1],
    previous: cython.const[cython.longlong][::1],
    first: cython.longlong[::1],
) -> tuple[float, int]:
    """Follow `previous` back from the last point; write the groups' first points, sum the cost."""
    n: cython.Py_ssize_t = v.shape[0]
    groups: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    j: cython.Py_ssize_t = n
    value: cython.double = 0.0
    bias: cython.double
    weight: cython.double
    with cython.nogil:
        while j > 0:
            bias = 0.0
            weight = 0.0
            for i in range(previous[j], j):
                bias += residual[i]
                weight += mass[i]
            value += abs(bias) + weight * (v[j - 1] - v[previous[j]])
            j = previous[j]
            groups += 1
            first[n - groups] = j
        for k in range(groups):
            first[k] = first[n - groups + k]
    return value, groups


def _partition(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    residual: cython.const[cython.double][::1],
    allowance: float,
    limit: float,
    first: cython.longlong[::1],
) -> tuple[float, int]:
    """Search as far as the allowance goes and do the rest safely."""
    n = v.shape[0]
    S = _prefix_sums(residual)
    P = _prefix_sums(mass)
    D = doubles(n + 1)
    previous = integers(n + 1)
    done = search(v, S, P, allowance, limit, D, previous)
    if 0 <= done < n:
        order = np.argsort(S).astype(np.int64, copy=False)
        if not solve_safely(v, S, P, memoryview(order), done, limit, D, previous):
            done = -1
    if done < 0:
        return inf, 0
    return _read_off(v, mass, residual, previous, first)


def fast_partition(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    residual: cython.const[cython.double][::1],
    limit: float,
    first: cython.longlong[::1],
) -> tuple[float, int]:
    """Do as `interval_partition` does, by search alone."""
    return _partition(v, mass, residual, inf, limit, first)


def safe_partition(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    residual: cython.const[cython.double][::1],
    limit: float,
    first: cython.longlong[::1],
) -> tuple[float, int]:
    """Do as `interval_partition` does, with nothing but the first block found by search."""
    return _partition(v, mass, residual, -1.0, limit, first)


def interval_partition(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    residual: cython.const[cython.double][::1],
    limit: float,
    first: cython.longlong[::1],
) -> tuple[float, int]:
    """Minimise the sum over contiguous groups of |sum of residuals| + mass * width.

    Write the index of the first point of each group into `first`, in increasing order; return the
    cost of that grouping and the number of groups. If the cost is at least `limit`, this may be
    infinity and 0 instead.
    """
    # The safe method takes about as long as 300 evaluations of the cost for each point.
    return _partition(v, mass, residual, 300.0, limit, first)
