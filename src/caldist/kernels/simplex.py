"""Rows of probabilities as points of the simplex: distances, Lipschitz functions, draws.

Distances are total variation, half the sum of the absolute differences. Centres come transposed, a
row for each class, so that the inner loops go over neighbouring numbers.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels.arrays import doubles


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _distances(
    v: cython.const[cython.double][:, ::1],
    i: cython.Py_ssize_t,
    centre: cython.const[cython.double][:, ::1],
    distance: cython.double[::1],
) -> cython.void:
    """Write the distances of row i to all centres."""
    m: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for m in range(centre.shape[1]):
        distance[m] = 0.0
    for j in range(centre.shape[0]):
        x = 0.5 * v[i, j]
        for m in range(centre.shape[1]):
            distance[m] += abs(x - 0.5 * centre[j, m])


def nearest(
    v: cython.const[cython.double][:, ::1],
    centre: cython.const[cython.double][:, ::1],
    which: cython.longlong[:, ::1],
    distance: cython.double[:, ::1],
) -> None:
    """Write the numbers of the nearest centres of each row, nearest first, and their distances."""
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t
    at: cython.Py_ssize_t
    n: cython.Py_ssize_t = v.shape[0]
    size: cython.Py_ssize_t = centre.shape[1]
    few: cython.Py_ssize_t = which.shape[1]
    filled: cython.Py_ssize_t
    work: cython.double[::1] = doubles(size)
    with cython.nogil:
        for i in range(n):
            _distances(v, i, centre, work)
            filled = 0
            for m in range(size):
                d = work[m]
                if filled == few and d >= distance[i, few - 1]:
                    continue
                at = filled if filled < few else few - 1
                while at > 0 and distance[i, at - 1] > d:
                    distance[i, at] = distance[i, at - 1]
                    which[i, at] = which[i, at - 1]
                    at -= 1
                distance[i, at] = d
                which[i, at] = m
                if filled < few:
                    filled += 1


def lipschitz(
    v: cython.const[cython.double][:, ::1],
    centre: cython.const[cython.double][:, ::1],
    height: cython.const[cython.double][:, ::1],
    value: cython.double[:, ::1],
) -> None:
    """Write f_j(v_i) = max(-1, min(1, min_m height[m, j] + TV(v_i, u_m))) for all rows and classes.

    Such a function is 1-Lipschitz and between -1 and 1, whatever the heights are.
    """
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t
    j: cython.Py_ssize_t
    n: cython.Py_ssize_t = v.shape[0]
    size: cython.Py_ssize_t = centre.shape[1]
    k: cython.Py_ssize_t = height.shape[1]
    work: cython.double[::1] = doubles(size)
    with cython.nogil:
        for i in range(n):
            _distances(v, i, centre, work)
            for j in range(k):
                value[i, j] = 1.0
            for m in range(size):
                d = work[m]
                for j in range(k):
                    z = height[m, j] + d
                    x = value[i, j]
                    value[i, j] = z if z < x else x
            for j in range(k):
                if value[i, j] < -1.0:
                    value[i, j] = -1.0


def draw(
    v: cython.const[cython.double][:, ::1],
    uniform: cython.const[cython.double][::1],
    label: cython.longlong[::1],
) -> None:
    """Write a class for each row, drawn with its probabilities.

    What rounding leaves over goes to the last class that has any.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    n: cython.Py_ssize_t = v.shape[0]
    k: cython.Py_ssize_t = v.shape[1]
    last: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            x = uniform[i]
            last = 0
            for j in range(k):
                if v[i, j] > 0.0:
                    last = j
                    x -= v[i, j]
                    if x < 0.0:
                        break
            label[i] = last
