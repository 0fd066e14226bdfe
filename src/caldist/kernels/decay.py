r"""Exponentially decaying sums around every row, in O(n), for the Laplace kernel.

Notation: v the sorted predictions, equal ones allowed, c a number per row, h the bandwidth. For
each row i

    below_i = sum over v_j < v_i of c_j exp(-(v_i - v_j)/h),
    equal_i = sum over v_j = v_i of c_j,
    above_i = sum over v_j > v_i of c_j exp(-(v_j - v_i)/h).

A recursion carries each sum from one run of equal predictions to the next. Every factor is at most
1, so that nothing overflows at any bandwidth. The three sums are kept apart because the kernel's
slope has opposite signs on the two sides and is 0 between equal predictions.
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


def decaying_sums(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    h: cython.double,
    below: cython.double[::1],
    equal: cython.double[::1],
    above: cython.double[::1],
) -> None:
    """Write the three sums of every row."""
    n: cython.Py_ssize_t = v.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    start: cython.Py_ssize_t = 0
    carried: cython.double = 0.0
    tied: cython.double = 0.0
    decay: cython.double
    with cython.nogil:
        while start < n:
            if start > 0:
                # Until the way back, this place of ``above`` keeps the factor of the gap.
                decay = exp((v[start - 1] - v[start]) / h)
                above[start] = decay
                carried = decay * (carried + tied)
            tied = 0.0
            i = start
            while i < n and v[i] == v[start]:
                tied += c[i]
                below[i] = carried
                i += 1
            for j in range(start, i):
                equal[j] = tied
            start = i
        carried = 0.0
        start = n - 1
        while start >= 0:
            i = start
            while i > 0 and v[i - 1] == v[start]:
                i -= 1
            decay = above[i] if i > 0 else 0.0
            for j in range(i, start + 1):
                above[j] = carried
            carried = decay * (carried + equal[i])
            start = i - 1
