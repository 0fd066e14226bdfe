r"""The integral of |f| over a grid, from f, its slope and its primitive at the grid's points.

Notation: S the primitive, f = S', g = f', at the ends 0 and 1 of a cell of width 1; x a place in
it. Between neighbouring zeros of f the integral of |f| is |ΔS|, so only cells with a zero need more
than the difference of S. A zero is found on the cubic that f, g at both ends determine, and S there
on the quintic. S is stationary at a zero, so its place need not be exact.
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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _zero(
    low: cython.double,
    high: cython.double,
    f0: cython.double,
    g0: cython.double,
    a2: cython.double,
    a3: cython.double,
) -> cython.double:
    """Return the zero in [low, high] of a cubic that is monotone there; low if there is none."""
    _step: cython.Py_ssize_t
    middle = low
    value = f0 + low * (g0 + low * (a2 + low * a3))
    positive: cython.bint = value > 0.0
    value = f0 + high * (g0 + high * (a2 + high * a3))
    if positive == (value > 0.0):
        return low
    x = high
    for _step in range(40):
        # Newton's step where it stays inside, otherwise the middle.
        slope = g0 + x * (2.0 * a2 + 3.0 * a3 * x)
        middle = x - value / slope if slope != 0.0 else low
        if not low < middle < high:
            middle = 0.5 * (low + high)
        if abs(middle - x) <= 1e-10:
            return middle
        x = middle
        value = f0 + x * (g0 + x * (a2 + x * a3))
        if positive == (value > 0.0):
            low = x
        else:
            high = x
    return x


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _within(
    change: cython.double,
    f0: cython.double,
    f1: cython.double,
    g0: cython.double,
    g1: cython.double,
) -> cython.double:
    """Integrate |f| over a cell in which f may change its sign; S grows by ``change`` in it.

    Between the turning points of the cubic it is monotone, so each of the three parts has at most
    one zero.
    """
    a2 = 3.0 * (f1 - f0) - 2.0 * g0 - g1
    a3 = 2.0 * (f0 - f1) + g0 + g1
    b3 = 10.0 * change - 6.0 * f0 - 4.0 * f1 - 1.5 * g0 + 0.5 * g1
    b4 = -15.0 * change + 8.0 * f0 + 7.0 * f1 + 1.5 * g0 - g1
    b5 = 6.0 * change - 3.0 * f0 - 3.0 * f1 - 0.5 * g0 + 0.5 * g1
    root = sqrt(max(a2 * a2 - 3.0 * g0 * a3, 0.0))
    far = -(a2 + root) if a2 >= 0.0 else -(a2 - root)
    first = far / (3.0 * a3) if a3 != 0.0 else 0.0
    second = g0 / far if far != 0.0 else 0.0
    before: cython.double = 0.0
    primitive: cython.double
    total: cython.double = 0.0
    low = 0.0
    part: cython.Py_ssize_t
    first = first if 0.0 < first < 1.0 else 0.0
    second = second if 0.0 < second < 1.0 else 0.0
    if first > second:
        first, second = second, first
    for part in range(3):
        high = first if part == 0 else second if part == 1 else 1.0
        x = _zero(low, high, f0, g0, a2, a3)
        primitive = x * (f0 + x * (0.5 * g0 + x * (b3 + x * (b4 + x * b5))))
        total += abs(primitive - before)
        before = primitive
        x = high
        primitive = x * (f0 + x * (0.5 * g0 + x * (b3 + x * (b4 + x * b5))))
        total += abs(primitive - before)
        before = primitive
        low = high
    return total


def absolute_integral(
    primitive: cython.const[cython.double][:],
    value: cython.const[cython.double][:],
    slope: cython.const[cython.double][:],
) -> float:
    """Return the integral of |f| from the first point of the grid to the last."""
    i: cython.Py_ssize_t
    total: cython.double = 0.0
    change: cython.double
    f0: cython.double
    f1: cython.double
    with cython.nogil:
        for i in range(value.shape[0] - 1):
            change = primitive[i + 1] - primitive[i]
            f0 = value[i]
            f1 = value[i + 1]
            # f may also touch 0 twice inside a cell if it turns towards 0 from both ends.
            if (f0 > 0.0) != (f1 > 0.0) or (f0 * slope[i] < 0.0 and f1 * slope[i + 1] > 0.0):
                total += _within(change, f0, f1, slope[i], slope[i + 1])
            else:
                total += abs(change)
    return total
