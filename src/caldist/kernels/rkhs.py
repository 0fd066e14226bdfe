r"""Kernel calibration errors, exactly, in O(n): kCE^2 = sum_ij c_i c_j K(v_i, v_j).

Notation: v the sorted distinct predictions, c their residual masses, h the bandwidth.

Laplace, K = exp(-|u - v|/h): a recursion carries a = sum_{j<i} c_j exp(-(v_i - v_j)/h).

Gaussian, K = exp(-((u - v)/h)^2): cells of width h, the local coordinate x in [-1/2, 1/2] counted
in bandwidths from the cell's centre. For two cells whose centres are D bandwidths apart,

    exp(-(D + x' - x)^2) = e^{-D^2} sum_k (2^k/k!) [e^{-x^2 + 2Dx} x^k] [e^{-x'^2 - 2Dx'} x'^k],

so the pair costs one product of moments. TERMS = 15 of them leave less than 2^-15/15! ~ 2e-17 of
each pair, and cells more than REACH = 6 apart less than e^{-36}. A ring of the last REACH + 1
cells is all that is kept.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels._buffers import doubles

if cython.compiled:
    from cython.cimports.libc.math import exp, floor
else:
    from math import exp, floor


def laplace_squared(
    v: cython.const[cython.double][::1], c: cython.const[cython.double][::1], h: cython.double
) -> float:
    """Return kCE^2 of the Laplace kernel."""
    i: cython.Py_ssize_t
    carried: cython.double = 0.0
    value: cython.double = 0.0
    with cython.nogil:
        for i in range(v.shape[0]):
            if i > 0:
                carried = exp((v[i - 1] - v[i]) / h) * (carried + c[i - 1])
            value += c[i] * (c[i] + 2.0 * carried)
    return value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _pair(
    moment: cython.double[::1],
    earlier: cython.Py_ssize_t,
    later: cython.Py_ssize_t,
    distance: cython.Py_ssize_t,
) -> cython.double:
    """Return sum_ij c_i c_j K over an earlier and a later cell ``distance`` bandwidths apart."""
    k: cython.Py_ssize_t
    factor: cython.double = exp(-1.0 * distance * distance)
    total: cython.double = 0.0
    rising: cython.Py_ssize_t = (earlier * 13 + 6 + distance) * 15
    falling: cython.Py_ssize_t = (later * 13 + 6 - distance) * 15
    for k in range(15):
        total += factor * moment[rising + k] * moment[falling + k]
        factor *= 2.0 / (k + 1)
    return total


def gaussian_squared(
    v: cython.const[cython.double][::1], c: cython.const[cython.double][::1], h: cython.double
) -> float:
    """Return kCE^2 of the Gaussian kernel."""
    n: cython.Py_ssize_t = v.shape[0]
    terms: cython.Py_ssize_t = 15
    reach: cython.Py_ssize_t = 6
    ring: cython.Py_ssize_t = reach + 1
    # moment[(slot * 13 + 6 + D) * 15 + k] = sum over the slot's cell of c e^{-x^2 + 2Dx} x^k
    moment: cython.double[::1] = doubles(7 * 13 * 15)
    cell_of: cython.double[::1] = doubles(7)
    start: cython.double = v[0]
    span: cython.double = floor((v[n - 1] - start) / h)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    at: cython.Py_ssize_t
    slot: cython.Py_ssize_t = -1
    used: cython.Py_ssize_t = 0
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    cell: cython.double
    x: cython.double
    step: cython.double
    scale: cython.double
    term: cython.double
    gap: cython.double
    value: cython.double = 0.0
    with cython.nogil:
        # With a single cell only D = 0 is ever asked for.
        high = reach if span > reach else (0 if span < 0.0 else int(span))
        low = -high
        for i in range(n + 1):
            cell = floor((v[i] - start) / h) if i < n else -1.0
            if slot < 0 or cell != cell_of[slot]:
                if slot >= 0:  # the current cell is complete: pair it with itself and the ring
                    value += _pair(moment, slot, slot, 0)
                    for j in range(1, used):
                        at = (slot + ring - j) % ring
                        gap = cell_of[slot] - cell_of[at]
                        if gap > reach:
                            break
                        value += 2.0 * _pair(moment, at, slot, int(gap))
                if i == n:
                    break
                slot = (slot + 1) % ring
                used = used + 1 if used < ring else ring
                cell_of[slot] = cell
                for k in range((slot * 13 + 6 + low) * terms, (slot * 13 + 7 + high) * terms):
                    moment[k] = 0.0
            x = (v[i] - start) / h - cell - 0.5
            step = exp(2.0 * x)
            scale = c[i] * exp(-x * x + 2.0 * low * x)
            for j in range(low, high + 1):
                at = (slot * 13 + 6 + j) * terms
                term = scale
                for k in range(terms):
                    moment[at + k] += term
                    term *= x
                scale *= step
    return value
