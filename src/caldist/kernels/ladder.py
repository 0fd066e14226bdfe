"""The lower distance to calibration on a ladder of nodes: data to nodes, and nodes to proofs.

Nodes u_0 = 0 < ... < u_{K-1} = 1 carry label-0 and label-1 masses g. They are far fewer than the
predictions v, whose masses g0, g1 reach them through hat functions: a point between two nodes is
shared so that its mean stays. Then sum g0 r0(v) + g1 r1(v) = sum g r for all potentials r that are
linear between nodes, and the ladder finds the best of these: two chains, one per label,

    maximise sum g r  with  |r_{i+1} - r_i| <= u_{i+1} - u_i on each chain, w_i . r_i <= 0,

where w = (1-u, u). Its multipliers m >= 0 are a calibrated distribution on the nodes, with label
masses w m. The kernel ``interior_point`` solves it. Arrays of both chains have length 2K, label 1
at offset K.

Lower bound: the ladder's value holds for the data up to the violation of (1-u) r0 + u r1 <= 0
between nodes, of second order in their distance.

Upper bound: the calibrated masses of the nodes are spread over the data. Where label-1 mass stays
in place the best calibrated distribution is g1/v at each v; where label-0 mass stays in place it is
g0/(1-v). Each node uses one of the two shapes, times its hat function, and what exceeds the shape
stays together as an atom. The mean of a shape is not quite its node, so a node can keep only one of
the two flows of the ladder. It keeps that of the label in place, where an error costs. The error of
the other flow (``drift``) is of second order and costs nothing as long as that flow keeps its sign;
later nodes of the other kind, and atoms by their place, take it back. Whatever is left is put at 0
and 1. All functions are O(n + K).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels.arrays import doubles


def choose_nodes(
    v: cython.const[cython.double][::1],
    g0: cython.const[cython.double][::1],
    g1: cython.const[cython.double][::1],
    width: cython.double,
    moment: cython.double,
    widest: cython.double,
    narrowest: cython.double,
    u: cython.double[::1],
) -> int:
    """Write the nodes of a ladder into ``u`` and return their number, at most n + 2 + 1/widest.

    A cell of neighbouring predictions is at most ``width`` wide, and its mass times its width at
    most ``moment``; its node is its mean. Predictions of a cell with three or fewer are nodes
    themselves: so few have no density to follow. Gaps between nodes end up between ``narrowest``
    and ``widest``.
    """
    n: cython.Py_ssize_t = v.shape[0]
    i: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    e: cython.Py_ssize_t
    k: cython.Py_ssize_t = 1
    with cython.nogil:
        u[0] = 0.0
        while i < n:
            total = first = 0.0
            j = i
            while j < n and v[j] - v[i] <= width:
                if (total + g0[j] + g1[j]) * (v[j] - v[i]) > moment:
                    break
                total += g0[j] + g1[j]
                first += (g0[j] + g1[j]) * (v[j] - v[i])
                j += 1
            if j - i > 3 and total > 0.0:
                node = v[i] + first / total
                if node - u[k - 1] >= narrowest and 1.0 - node >= narrowest:
                    k = _append_node(u, k, node, widest)
            else:
                for e in range(i, j):
                    if v[e] - u[k - 1] >= narrowest and 1.0 - v[e] >= narrowest:
                        k = _append_node(u, k, v[e], widest)
            i = j
        k = _append_node(u, k, 1.0, widest)
    return k


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _append_node(
    u: cython.double[::1],
    k: cython.Py_ssize_t,
    node: cython.double,
    widest: cython.double,
) -> cython.Py_ssize_t:
    """Append ``node``, with even steps up to it; return the new size."""
    last = u[k - 1]
    parts: cython.Py_ssize_t = 1
    i: cython.Py_ssize_t
    while parts * widest < node - last:
        parts += 1
    for i in range(1, parts):
        u[k] = last + (node - last) * i / parts
        k += 1
    u[k] = node
    return k + 1


def deposit(
    v: cython.const[cython.double][::1],
    g0: cython.const[cython.double][::1],
    g1: cython.const[cython.double][::1],
    u: cython.const[cython.double][::1],
    g: cython.double[::1],
) -> None:
    """Share the masses between the nodes: label 0 into g[:K], label 1 into g[K:]."""
    n: cython.Py_ssize_t = v.shape[0]
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(2 * k):
            g[i] = 0.0
        for i in range(n):
            while j < k - 2 and v[i] >= u[j + 1]:
                j += 1
            t = (v[i] - u[j]) / (u[j + 1] - u[j])
            g[j] += (1.0 - t) * g0[i]
            g[j + 1] += t * g0[i]
            g[k + j] += (1.0 - t) * g1[i]
            g[k + j + 1] += t * g1[i]


def trivial_bounds(
    v: cython.const[cython.double][::1],
    g0: cython.const[cython.double][::1],
    g1: cython.const[cython.double][::1],
    out: cython.double[::1],
) -> None:
    """Write the label totals, E v - E y, E|v - y| and E|v - E y| into ``out``.

    The sums are taken in blocks: one running sum of 10^7 terms loses ten digits after the point.
    """
    n: cython.Py_ssize_t = v.shape[0]
    i: cython.Py_ssize_t
    block: cython.Py_ssize_t
    total0: cython.double = 0.0
    total1 = 0.0
    moved0 = 0.0
    moved1 = 0.0
    together: cython.double = 0.0
    a: cython.double
    b: cython.double
    c: cython.double
    d: cython.double
    with cython.nogil:
        for block in range(0, n, 1024):
            a = b = c = d = 0.0
            for i in range(block, min(n, block + 1024)):
                a += g0[i]
                b += g1[i]
                c += g0[i] * v[i]
                d += g1[i] * (1.0 - v[i])
            total0 += a
            total1 += b
            moved0 += c
            moved1 += d
        c = total1 / (total0 + total1)
        for block in range(0, n, 1024):
            a = 0.0
            for i in range(block, min(n, block + 1024)):
                a += (g0[i] + g1[i]) * abs(v[i] - c)
            together += a
        out[0] = total0
        out[1] = total1
        out[2] = moved0 - moved1
        out[3] = moved0 + moved1
        out[4] = together


def prove_lower(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    r: cython.double[::1],
) -> float:
    """Make the potentials a proof, in place, and return the bound they prove.

    The Lipschitz lower envelope first, then a shift by the largest value of (1-u) r0 + u r1, which
    between two nodes is a quadratic.
    """
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    chain: cython.Py_ssize_t
    worst = -2.0
    value = 0.0
    with cython.nogil:
        for chain in range(2):
            for i in range(1, k):
                j = chain * k + i
                r[j] = min(r[j], r[j - 1] + (u[i] - u[i - 1]))
            for i in range(k - 2, -1, -1):
                j = chain * k + i
                r[j] = min(r[j], r[j + 1] + (u[i + 1] - u[i]))
        for i in range(k):
            here = (1.0 - u[i]) * r[i] + u[i] * r[k + i]
            worst = max(worst, here)
            if i < k - 1:
                # here + slope t + bend t (t - 1), t from 0 to 1 across the gap
                d = u[i + 1] - u[i]
                slope = (1.0 - u[i + 1]) * r[i + 1] + u[i + 1] * r[k + i + 1] - here
                bend = d * ((r[k + i + 1] - r[k + i]) - (r[i + 1] - r[i]))
                if bend < 0.0 and abs(slope) < -bend:
                    d = 0.5 * (1.0 - slope / bend)
                    worst = max(worst, here + slope * d + bend * d * (d - 1.0))
        for i in range(2 * k):
            r[i] -= worst
            value += g[i] * r[i]
    return value


def interpolate(
    v: cython.const[cython.double][::1],
    u: cython.const[cython.double][::1],
    r0: cython.const[cython.double][::1],
    r1: cython.const[cython.double][::1],
    out0: cython.double[::1],
    out1: cython.double[::1],
) -> None:
    """Write the potentials at increasing v, linear between the nodes."""
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(v.shape[0]):
            while j < k - 2 and v[i] >= u[j + 1]:
                j += 1
            d = u[j + 1] - u[j]
            out0[i] = (r0[j + 1] - r0[j]) / d * (v[i] - u[j]) + r0[j]
            out1[i] = (r1[j + 1] - r1[j]) / d * (v[i] - u[j]) + r1[j]


def spread(
    v: cython.const[cython.double][::1],
    g0: cython.const[cython.double][::1],
    g1: cython.const[cython.double][::1],
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    m: cython.const[cython.double][::1],
    r: cython.const[cython.double][::1],
    support: cython.double[::1],
    mass: cython.double[::1],
) -> tuple[int, float]:
    """Write a calibrated distribution on the data near the nodes' ``m``; return its size and cost.

    ``support`` and ``mass`` have room for n + K numbers.
    """
    k: cython.Py_ssize_t = u.shape[0]
    size: cython.Py_ssize_t
    kind: cython.double[::1] = doubles(k)
    shape: cython.double[::1] = doubles(k)
    moment: cython.double[::1] = doubles(k)
    atom: cython.double[::1] = doubles(k)
    place: cython.double[::1] = doubles(k)
    cost: cython.double[::1] = doubles(1)
    with cython.nogil:
        _choose_kinds(u, r, kind)
        _gather_shapes(v, g0, g1, u, kind, shape, moment)
        _assign_masses(u, g, m, kind, shape, moment, atom, place)
        size = _write_masses(v, g0, g1, u, kind, shape, atom, place, support, mass, cost)
    return size, cost[0]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _choose_kinds(
    u: cython.const[cython.double][::1],
    r: cython.const[cython.double][::1],
    kind: cython.double[::1],
) -> cython.void:
    """Write 1 where label-1 mass stays in place and 0 where label-0 mass does.

    A label whose potential is as steep as allowed is on the move. Where neither is, the errors that
    one kind leaves in the flow of the other label are u : 1-u in size.
    """
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for j in range(k):
        room0 = room1 = 0.0
        for i in range(max(0, j - 1), min(k - 1, j + 1)):
            room0 += u[i + 1] - u[i] - abs(r[i + 1] - r[i])
            room1 += u[i + 1] - u[i] - abs(r[k + i + 1] - r[k + i])
        kind[j] = 1.0 if u[j] * room1 > (1.0 - u[j]) * room0 else 0.0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _density(
    v: cython.double, g0: cython.double, g1: cython.double, u: cython.double, kind: cython.double
) -> cython.double:
    """Return the shape of a node's spread at v, kept finite next to 0 and 1."""
    if kind == 1.0:
        return g1 / max(v, 0.25 * u)
    return g0 / max(1.0 - v, 0.25 * (1.0 - u))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _gather_shapes(
    v: cython.const[cython.double][::1],
    g0: cython.const[cython.double][::1],
    g1: cython.const[cython.double][::1],
    u: cython.const[cython.double][::1],
    kind: cython.const[cython.double][::1],
    shape: cython.double[::1],
    moment: cython.double[::1],
) -> cython.void:
    """Write the mass and the first moment of each node's shape; the end nodes have none."""
    n: cython.Py_ssize_t = v.shape[0]
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for j in range(k):
        shape[j] = moment[j] = 0.0
    j = 0
    for i in range(n):
        while j < k - 2 and v[i] >= u[j + 1]:
            j += 1
        t = (v[i] - u[j]) / (u[j + 1] - u[j])
        if j > 0:
            a = (1.0 - t) * _density(v[i], g0[i], g1[i], u[j], kind[j])
            shape[j] += a
            moment[j] += a * v[i]
        if j < k - 2:
            a = t * _density(v[i], g0[i], g1[i], u[j + 1], kind[j + 1])
            shape[j + 1] += a
            moment[j + 1] += a * v[i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _assign_masses(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    m: cython.const[cython.double][::1],
    kind: cython.const[cython.double][::1],
    shape: cython.double[::1],
    moment: cython.const[cython.double][::1],
    atom: cython.double[::1],
    place: cython.double[::1],
) -> cython.void:
    """Turn ``shape`` into the factor of each node's shape; write the atoms and their places."""
    k: cython.Py_ssize_t = u.shape[0]
    j: cython.Py_ssize_t
    t = 1.0
    drift0 = 0.0
    drift1 = 0.0
    used0 = 0.0
    used1 = 0.0
    total0 = 0.0
    total1 = 0.0
    for j in range(k):
        total0 += g[j]
        total1 += g[k + j]
        want0 = (1.0 - u[j]) * m[j]
        want1 = u[j] * m[j]
        drift0 -= want0
        drift1 -= want1
        # take back the drift of earlier nodes, a little at a time
        want0 = min(2.0 * want0, max(0.5 * want0, -drift0))
        want1 = min(2.0 * want1, max(0.5 * want1, -drift1))
        mean = moment[j] / shape[j] if shape[j] > 1e-100 else 0.0
        if 0.0 < mean < 1.0:
            a = want1 / mean if kind[j] == 1.0 else want0 / (1.0 - mean)
            if a > 2.0 * shape[j]:
                a = shape[j]  # mass that comes from elsewhere: the rest is an atom
            shape[j] = a / shape[j]
            want0 -= (1.0 - mean) * a
            want1 -= mean * a
            drift0 += (1.0 - mean) * a
            drift1 += mean * a
            used0 += (1.0 - mean) * a
            used1 += mean * a
        else:
            shape[j] = 0.0
        place[j] = u[j]
        atom[j] = 0.0
        if (want1 if kind[j] == 1.0 else want0) > 1e-18:
            if 0 < j < k - 1:
                want0 = max(0.0, want0)
                want1 = max(0.0, want1)
                mean = want1 / (want0 + want1)
                place[j] = min(0.5 * (u[j] + u[j + 1]), max(0.5 * (u[j - 1] + u[j]), mean))
            if kind[j] == 1.0:
                atom[j] = want1 / place[j]
            elif place[j] < 1.0:
                atom[j] = want0 / (1.0 - place[j])
            drift0 += (1.0 - place[j]) * atom[j]
            drift1 += place[j] * atom[j]
            used0 += (1.0 - place[j]) * atom[j]
            used1 += place[j] * atom[j]
    if used0 > total0:
        t = total0 / used0
    if used1 * t > total1:
        t = total1 / used1
    for j in range(k):
        shape[j] *= t
        atom[j] *= t
    atom[0] += max(0.0, total0 - t * used0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write_masses(
    v: cython.const[cython.double][::1],
    g0: cython.const[cython.double][::1],
    g1: cython.const[cython.double][::1],
    u: cython.const[cython.double][::1],
    kind: cython.const[cython.double][::1],
    shape: cython.const[cython.double][::1],
    atom: cython.const[cython.double][::1],
    place: cython.const[cython.double][::1],
    support: cython.double[::1],
    mass: cython.double[::1],
    cost: cython.double[::1],
) -> cython.Py_ssize_t:
    """Merge spread and atoms from left to right, summing the cost of the flows; return the size."""
    n: cython.Py_ssize_t = v.shape[0]
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t = 0  # the next prediction
    j: cython.Py_ssize_t = 0  # the node at or before the present point
    q: cython.Py_ssize_t = 0  # the next atom
    size: cython.Py_ssize_t = 0
    here: cython.double
    last: cython.double = 0.0
    flow0: cython.double = 0.0
    flow1: cython.double = 0.0
    total: cython.double = 0.0
    while i < n or q < k:
        here = v[i] if i < n else 1.0
        if q < k and place[q] < here:
            here = place[q]
        while j < k - 1 and here >= u[j + 1]:
            j += 1
        total += (here - last) * (abs(flow0) + abs(flow1))
        last = here
        put = 0.0
        if i < n and v[i] == here:
            t = (here - u[j]) / (u[j + 1] - u[j]) if j < k - 1 else 0.0
            if shape[j] > 0.0:
                put = (1.0 - t) * shape[j] * _density(here, g0[i], g1[i], u[j], kind[j])
            if t > 0.0 and shape[j + 1] > 0.0:
                put += t * shape[j + 1] * _density(here, g0[i], g1[i], u[j + 1], kind[j + 1])
            flow0 -= g0[i]
            flow1 -= g1[i]
            i += 1
        while q < k and place[q] == here:
            put += atom[q]
            q += 1
        if here == 1.0:
            put = max(0.0, -flow1)  # whatever label 1 still lacks
        if put > 0.0:
            support[size] = here
            mass[size] = put
            size += 1
            flow0 += (1.0 - here) * put
            flow1 += here * put
    # What label 0 lacks is a rounding error; at 0 it can be put right at a cost of at most itself.
    if size > 0 and support[0] == 0.0 and mass[0] > flow0:
        mass[0] -= flow0
    cost[0] = total + 2.0 * (abs(flow0) + abs(flow1))
    return size
