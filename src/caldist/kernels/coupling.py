r"""Couplings of rows with calibrated predictions, by Bregman projections.

Row i sends the share π_im to the groups m of its arcs, and the share π_ic to the corner of its own
class, which is calibrated already. Notation: u_m the prediction of group m, y_i the class of row i,
G_mj the mass of class j that group m receives, b_mj the multipliers,

    π_im ∝ K_im b_{m, y_i},  K_im = exp(-TV(v_i, u_m)/ε), row by row,
    b_mj *= t_m u_mj / G_mj,  t_m = exp Σ_j u_mj log(G_mj / u_mj),

the second being the Kullback-Leibler projection of G_m on the multiples of u_m.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

if cython.compiled:
    from cython.cimports.libc.math import exp, log
else:
    from math import exp, log


def arc_distances(
    v: cython.const[cython.double][:, ::1],
    centre: cython.const[cython.double][:, ::1],
    arc: cython.const[cython.longlong][:, ::1],
    distance: cython.double[:, ::1],
) -> None:
    """Write the total variation distance of each row to the groups of its arcs."""
    i: cython.Py_ssize_t
    a: cython.Py_ssize_t
    j: cython.Py_ssize_t
    m: cython.Py_ssize_t
    with cython.nogil:
        for i in range(arc.shape[0]):
            for a in range(arc.shape[1]):
                m = arc[i, a]
                d = 0.0
                for j in range(v.shape[1]):
                    d += abs(v[i, j] - centre[m, j])
                distance[i, a] = 0.5 * d


def affinities(
    distance: cython.const[cython.double][:, ::1],
    corner: cython.const[cython.double][::1],
    epsilon: cython.double,
    affinity: cython.double[:, ::1],
) -> None:
    """Write K of the arcs and, in the last column, of the corner, the largest of a row being 1."""
    i: cython.Py_ssize_t
    a: cython.Py_ssize_t
    arcs: cython.Py_ssize_t = distance.shape[1]
    with cython.nogil:
        for i in range(distance.shape[0]):
            least = corner[i]
            for a in range(arcs):
                least = min(least, distance[i, a])
            for a in range(arcs):
                affinity[i, a] = exp((least - distance[i, a]) / epsilon)
            affinity[i, arcs] = exp((least - corner[i]) / epsilon)


def shares(
    label: cython.const[cython.longlong][::1],
    weight: cython.const[cython.double][::1],
    arc: cython.const[cython.longlong][:, ::1],
    affinity: cython.const[cython.double][:, ::1],
    multiplier: cython.const[cython.double][:, ::1],
    share: cython.double[:, ::1],
    received: cython.double[:, ::1],
) -> None:
    """Write the shares of all rows, the corner's last, and add up what the groups receive."""
    i: cython.Py_ssize_t
    a: cython.Py_ssize_t
    m: cython.Py_ssize_t
    y: cython.Py_ssize_t
    arcs: cython.Py_ssize_t = arc.shape[1]
    with cython.nogil:
        for m in range(received.shape[0]):
            for y in range(received.shape[1]):
                received[m, y] = 0.0
        for i in range(arc.shape[0]):
            y = label[i]
            total = affinity[i, arcs]
            share[i, arcs] = total
            for a in range(arcs):
                share[i, a] = affinity[i, a] * multiplier[arc[i, a], y]
                total += share[i, a]
            total = 1.0 / total
            for a in range(arcs):
                share[i, a] *= total
                received[arc[i, a], y] += weight[i] * share[i, a]
            share[i, arcs] *= total


def project(
    centre: cython.const[cython.double][:, ::1],
    received: cython.const[cython.double][:, ::1],
    most: cython.double,
    multiplier: cython.double[:, ::1],
) -> None:
    """Change the multipliers so that groups would receive classes in the proportions of u_m.

    They stay between 1/most and most. A group that receives none of a class that it needs gets no
    more of the others.
    """
    m: cython.Py_ssize_t
    j: cython.Py_ssize_t
    with cython.nogil:
        for m in range(centre.shape[0]):
            t = 0.0
            for j in range(centre.shape[1]):
                if centre[m, j] > 0.0:
                    if received[m, j] > 1e-300:
                        t += centre[m, j] * log(received[m, j] / centre[m, j])
                    else:
                        t += centre[m, j] * log(1e-300)
            t = exp(t)
            for j in range(centre.shape[1]):
                if centre[m, j] > 0.0 and received[m, j] > 1e-300:
                    b = multiplier[m, j] * (t * centre[m, j] / received[m, j])
                    multiplier[m, j] = min(max(b, 1.0 / most), most)
                elif centre[m, j] <= 0.0:
                    multiplier[m, j] = 0.0
