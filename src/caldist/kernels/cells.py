r"""Moments of sorted rows in cells, and polynomials of the cells back at the rows, in O(n).

Notation: x_i the offset of row i from the centre of its cell, c_i a number per row, start[k] the
first row of cell k, with the number of rows at the end; T terms for each cell, stored one cell
after the other. The Gaussian kernel is sums over neighbouring cells in between.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython


def moments(
    x: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    start: cython.const[cython.longlong][::1],
    moment: cython.double[::1],
) -> None:
    """Write sum_i c_i x_i^a / a! over each cell, for a < T."""
    cells: cython.Py_ssize_t = start.shape[0] - 1
    terms: cython.Py_ssize_t = moment.shape[0] // cells
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    a: cython.Py_ssize_t
    at: cython.Py_ssize_t
    term: cython.double
    factorial: cython.double
    with cython.nogil:
        for k in range(cells):
            at = k * terms
            for a in range(terms):
                moment[at + a] = 0.0
            for i in range(start[k], start[k + 1]):
                term = c[i]
                for a in range(terms):
                    moment[at + a] += term
                    term *= x[i]
            factorial = 1.0
            for a in range(1, terms):
                factorial *= a
                moment[at + a] /= factorial


def polynomials(
    x: cython.const[cython.double][::1],
    start: cython.const[cython.longlong][::1],
    coefficient: cython.const[cython.double][::1],
    value: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
) -> None:
    """Write each row's value of its cell's polynomial, and the derivatives that have room."""
    cells: cython.Py_ssize_t = start.shape[0] - 1
    terms: cython.Py_ssize_t = coefficient.shape[0] // cells
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    a: cython.Py_ssize_t
    p: cython.double
    d: cython.double
    e: cython.double
    with cython.nogil:
        for k in range(cells):
            for i in range(start[k], start[k + 1]):
                p = 0.0
                d = 0.0
                e = 0.0
                for a in range((k + 1) * terms - 1, k * terms - 1, -1):
                    e = e * x[i] + d
                    d = d * x[i] + p
                    p = p * x[i] + coefficient[a]
                value[i] = p
                if first.shape[0] > 0:
                    first[i] = d
                if second.shape[0] > 0:
                    second[i] = 2.0 * e
