r"""Sums of the Laplace kernel K(u, v) = exp(-|u - v|/h), exactly, in O(n).

Notation: v the sorted predictions, c a number for each, h the bandwidth. A recursion carries

    sum over v_j < v_i of c_j exp(-(v_i - v_j)/h)

from one prediction to the next, and the way back does the same for v_j > v_i. Every factor is at
most 1, so that nothing overflows at any bandwidth.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels.arrays import doubles

if cython.compiled:
    from cython.cimports.caldist.kernels._wide import exponential
    from cython.cimports.libc.math import exp
else:
    from math import exp

    from caldist.kernels._exponential import exponential


def stretch(
    v: cython.const[cython.double][::1], c: cython.const[cython.double][::1], h: cython.double
) -> tuple[float, float, float, float]:
    """Return sum_ij c_i c_j K(v_i, v_j), the predictions being distinct, and how it goes on.

    After it: sum_j c_j K(v_j, v_n), sum_j c_j K(v_1, v_j) and K(v_1, v_n). So the sum over two
    stretches follows from that of each.
    """
    n: cython.Py_ssize_t = v.shape[0]
    decay: cython.double[::1] = doubles(512)
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t = 1
    stop: cython.Py_ssize_t
    before = 0.0
    value = 0.0
    reach = 1.0
    carried = 0.0
    if n > 0:
        before = c[0]
        carried = c[0]
        value = c[0] * c[0]
    with cython.nogil:
        while start < n:
            stop = min(n, start + 512)
            if cython.compiled:
                _decays(cython.address(v[start]), stop - start, h, cython.address(decay[0]))
            else:
                for i in range(start, stop):
                    decay[i - start] = exponential(max((v[i - 1] - v[i]) / h, -700.0))
            for i in range(start, stop):
                carried *= decay[i - start]
                reach *= decay[i - start]
                value += c[i] * (c[i] + 2.0 * carried)
                before += c[i] * reach
                carried += c[i]
            start = stop
    return value, carried, before, reach


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _decays(
    v: cython.pointer[cython.const[cython.double]],
    size: cython.Py_ssize_t,
    h: cython.double,
    decay: cython.p_double,
) -> cython.void:
    """Write exp(-(v_i - v_j)/h) of predictions and those before them; not in plain Python."""
    i: cython.Py_ssize_t
    for i in range(size):
        decay[i] = exponential(max((v[i - 1] - v[i]) / h, -700.0))


def sums(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    h: cython.double,
    value: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
) -> None:
    """Write sum_j c_j K(v_i, v_j) for each i, and its derivatives in v_i that have room.

    Predictions may be equal: they have slope and curvature 0 on each other, as automatic
    differentiation of |u - v| gives.
    """
    n: cython.Py_ssize_t = v.shape[0]
    slopes: cython.bint = first.shape[0] > 0
    curvatures: cython.bint = second.shape[0] > 0
    # Into each run of equal predictions, at its first one, until the way back.
    decay: cython.double[::1] = first if slopes else doubles(n)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    start: cython.Py_ssize_t = 0
    below = 0.0
    equal = 0.0
    above = 0.0
    with cython.nogil:
        while start < n:
            decay[start] = exp((v[start - 1] - v[start]) / h) if start > 0 else 0.0
            below = decay[start] * (below + equal)
            equal = 0.0
            i = start
            while i < n and v[i] == v[start]:
                equal += c[i]
                value[i] = below
                i += 1
            start = i
        start = n - 1
        while start >= 0:
            i = start
            while i > 0 and v[i - 1] == v[start]:
                i -= 1
            equal = 0.0
            for j in range(i, start + 1):
                equal += c[j]
            below = value[i]
            factor = decay[i]
            for j in range(i, start + 1):
                value[j] = below + equal + above
                if slopes:
                    first[j] = (above - below) / h
                if curvatures:
                    second[j] = (above + below) / h / h
            above = factor * (above + equal)
            start = i - 1
