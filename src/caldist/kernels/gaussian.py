r"""Sums of the Gaussian kernel K(u, v) = exp(-((u - v)/h)^2), to rounding, in O(n).

Notation: v the sorted predictions, c a number for each, h the bandwidth. Predictions are put into
cells one bandwidth wide. With s the offset of a prediction from the centre of its cell, in
bandwidths, and D the number of cells from the first of two centres to the second,

    exp(-(D + s' - s)^2) = sum_{a, b} s^a/a! (-s')^b/b! g_{a+b}(D),    g_k(t) = H_k(t) exp(-t^2),

with the Hermite polynomials H. So a cell acts through its moments, the sums of c s^a/a!, and meets
another one as the coefficients of a polynomial in s'. With 25 - D^2/5 moments and as many
coefficients less than 2e-17 of a pair is left out; here they are even numbers, and two more for
second derivatives. Cells more than 6 apart are at least 6 bandwidths apart, where the kernel is
below e^{-36} = 2e-16.

Cells come and go as the predictions do, so that a ring of 13 is all that is kept; each has room for
28 moments. Where two cells hold few pairs, these are summed one by one, which is faster.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels.arrays import doubles, integers

if cython.compiled:
    from cython.cimports.libc.math import exp, floor
else:
    from math import exp, floor


def hermite(t: cython.double, g: cython.double[::1]) -> None:
    """Write g_k(t) = H_k(t) exp(-t^2) for as many k as there is room for, two at least."""
    _hermite(t, 0, g.shape[0], g)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _hermite(
    t: cython.double, at: cython.Py_ssize_t, count: cython.Py_ssize_t, g: cython.double[::1]
) -> cython.void:
    k: cython.Py_ssize_t
    g[at] = exp(-t * t)
    g[at + 1] = 2.0 * t * g[at]
    for k in range(1, count - 1):
        g[at + k + 1] = 2.0 * t * g[at + k] - 2.0 * k * g[at + k - 1]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _tabulate(
    v: cython.const[cython.double][::1], h: cython.double, g: cython.double[::1]
) -> cython.void:
    """Write 1/k!, and from place 28 + 56 (6 + D) on g_k(D), for the D that two cells can have."""
    k: cython.Py_ssize_t
    most = floor(v[v.shape[0] - 1] / h) - floor(v[0] / h)
    g[0] = 1.0
    for k in range(1, 28):
        g[k] = g[k - 1] / k
    for k in range(-6, 7):
        if -most <= k <= most:
            _hermite(k, 28 + 56 * (6 + k), 56, g)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _gather(
    slot: cython.Py_ssize_t,
    i: cython.Py_ssize_t,
    terms: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    h: cython.double,
    g: cython.const[cython.double][::1],
    cell: cython.double[::1],
    row: cython.longlong[::1],
    moment: cython.double[::1],
) -> cython.Py_ssize_t:
    """Write number, rows and moments of the cell that begins at row i; return the row after it."""
    a: cython.Py_ssize_t
    at: cython.Py_ssize_t = 28 * slot
    number = floor(v[i] / h)
    cell[slot] = number
    row[2 * slot] = i
    for a in range(terms):
        moment[at + a] = 0.0
    while i < v.shape[0]:
        x = v[i] / h - number
        if x >= 1.0:
            break
        x -= 0.5
        term = c[i]
        for a in range(terms):
            moment[at + a] += term
            term *= x
        i += 1
    row[2 * slot + 1] = i
    for a in range(terms):
        moment[at + a] *= g[a]
    return i


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _receive(
    slot: cython.Py_ssize_t,
    distance: cython.Py_ssize_t,
    share: cython.double,
    terms: cython.Py_ssize_t,
    g: cython.const[cython.double][::1],
    moment: cython.const[cython.double][::1],
    coefficient: cython.double[::1],
) -> cython.void:
    """Add a share of what a cell sends to one that lies ``distance`` cells beyond it."""
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    at: cython.Py_ssize_t = 28 + 56 * (6 + distance)
    terms -= 2 * (distance * distance // 10)
    for a in range(0, terms, 2):
        even = share * moment[28 * slot + a]
        odd = share * moment[28 * slot + a + 1]
        for b in range(terms):
            coefficient[b] += even * g[at + a + b] + odd * g[at + a + b + 1]


def squared(
    v: cython.const[cython.double][::1], c: cython.const[cython.double][::1], h: cython.double
) -> float:
    """Return sum_ij c_i c_j K(v_i, v_j)."""
    n: cython.Py_ssize_t = v.shape[0]
    terms: cython.Py_ssize_t = 26
    g: cython.double[::1] = doubles(28 + 13 * 56)
    cell: cython.double[::1] = doubles(13)
    row: cython.longlong[::1] = integers(2 * 13)
    moment: cython.double[::1] = doubles(13 * 28)
    coefficient: cython.double[::1] = doubles(28)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    other: cython.Py_ssize_t
    start: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    cells: cython.Py_ssize_t = 0
    value = 0.0
    with cython.nogil:
        _tabulate(v, h, g)
        while start < n:
            slot = cells % 13
            stop = _gather(slot, start, terms, v, c, h, g, cell, row, moment)
            for k in range(terms):
                coefficient[k] = 0.0
            half = 0.0
            for k in range(min(cells + 1, 7)):  # the cell itself, then those before it
                other = (cells - k) % 13
                if cell[slot] - cell[other] > 6.0:
                    break
                share = 0.5 if k == 0 else 1.0
                if (stop - start) * (row[2 * other + 1] - row[2 * other]) > 16:
                    _receive(
                        other, int(cell[slot] - cell[other]), share, terms, g, moment, coefficient
                    )
                    continue
                for i in range(start, stop):
                    for j in range(row[2 * other], row[2 * other + 1]):
                        gap = (v[i] - v[j]) / h
                        half += share * c[i] * c[j] * exp(-gap * gap)
            for k in range(terms):
                gap = coefficient[k] * moment[28 * slot + k]
                half += gap if k % 2 == 0 else -gap
            value += 2.0 * half
            start = stop
            cells += 1
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _evaluate(
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
    h: cython.double,
    number: cython.double,
    coefficient: cython.const[cython.double][::1],
    out: cython.double[::1],
) -> cython.void:
    """Add the polynomial of a cell at its rows."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for i in range(start, stop):
        x = v[i] / h - number - 0.5
        y = x * x
        z = y * y
        p = q = r = s = 0.0  # four polynomials in x^4, which processors evaluate side by side
        for k in range(24, -1, -4):
            p = p * z + coefficient[k]
            q = q * z + coefficient[k + 1]
            r = r * z + coefficient[k + 2]
            s = s * z + coefficient[k + 3]
        out[i] += (p + x * q) + y * (r + x * s)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _differentiate(h: cython.double, coefficient: cython.double[::1]) -> cython.void:
    """Replace a polynomial by its derivative in v."""
    k: cython.Py_ssize_t
    for k in range(1, 28):
        coefficient[k - 1] = k * coefficient[k] / h
    coefficient[27] = 0.0


def sums(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    h: cython.double,
    value: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
) -> None:
    """Write sum_j c_j K(v_i, v_j) for each i, and its derivatives in v_i that have room."""
    n: cython.Py_ssize_t = v.shape[0]
    slopes: cython.bint = first.shape[0] > 0
    curvatures: cython.bint = second.shape[0] > 0
    terms: cython.Py_ssize_t = 28 if curvatures else 26
    g: cython.double[::1] = doubles(28 + 13 * 56)
    cell: cython.double[::1] = doubles(13)
    row: cython.longlong[::1] = integers(2 * 13)
    moment: cython.double[::1] = doubles(13 * 28)
    coefficient: cython.double[::1] = doubles(28)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    other: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    gathered: cython.Py_ssize_t = 0
    cells: cython.Py_ssize_t = 0
    done: cython.Py_ssize_t = 0
    with cython.nogil:
        _tabulate(v, h, g)
        while done < cells or gathered < n:
            slot = done % 13
            while gathered < n and (done == cells or v[gathered] / h < cell[slot] + 7.0):
                gathered = _gather(cells % 13, gathered, terms, v, c, h, g, cell, row, moment)
                cells += 1
            start = row[2 * slot]
            stop = row[2 * slot + 1]
            for i in range(start, stop):
                value[i] = 0.0
                if slopes:
                    first[i] = 0.0
                if curvatures:
                    second[i] = 0.0
            for k in range(28):
                coefficient[k] = 0.0
            for k in range(max(0, done - 6), cells):
                other = k % 13
                if cell[slot] - cell[other] > 6.0:
                    continue
                if (stop - start) * (row[2 * other + 1] - row[2 * other]) > 16:
                    _receive(
                        other, int(cell[slot] - cell[other]), 1.0, terms, g, moment, coefficient
                    )
                    continue
                for i in range(start, stop):
                    for j in range(row[2 * other], row[2 * other + 1]):
                        gap = (v[i] - v[j]) / h
                        near = c[j] * exp(-gap * gap)
                        value[i] += near
                        if slopes:
                            first[i] -= 2.0 * gap * near / h
                        if curvatures:
                            second[i] += (4.0 * gap * gap - 2.0) * near / h / h
            for k in range(terms):
                coefficient[k] *= g[k] if k % 2 == 0 else -g[k]
            _evaluate(start, stop, v, h, cell[slot], coefficient, value)
            if slopes:
                _differentiate(h, coefficient)
                _evaluate(start, stop, v, h, cell[slot], coefficient, first)
            if curvatures:
                _differentiate(h, coefficient)
                _evaluate(start, stop, v, h, cell[slot], coefficient, second)
            done += 1
