"""The lower distance to calibration on a ladder of nodes: the nodes, and Newton directions.

Nodes u_0 = 0 < ... < u_{K-1} = 1 with gaps d carry label-0 and label-1 masses g. They are far fewer
than the predictions v, whose masses g0, g1 reach them through hat functions: a point between two
nodes is shared so that its mean stays. Then sum g0 r0(v) + g1 r1(v) = sum g r for all potentials r
that are linear between nodes, and the ladder finds the best of these: two chains, one per label,

    maximise sum g r  with  |r_{i+1} - r_i| <= d_i on each chain, w_i . r_i <= 0,  w = (1-u, u).

Its multipliers are a calibrated distribution m >= 0 on the nodes (label masses w m) and, per edge,
the mass F = lambda+ - lambda- that crosses it: F_i = sum_{k<=i} (w_k m_k - g_k), at cost d |F|.
Slacks: s+ = d - (r_{i+1} - r_i), s- = d + (r_{i+1} - r_i), z = -w . r.

A Newton step solves (sum kappa w w^T + graph Laplacian with stiffness p, q) x = f, kappa = m/z and
p, q = lambda+/s+ + lambda-/s- on the edges of the two chains. The elimination runs from left to
right. What lies to the left of a node acts on it as the 2x2 matrix

    C = alpha a a^T + beta n n^T,   a = (1 - c, c),  n = (-1, 1),

kept as alpha, sigma = alpha (u - c) and delta = alpha beta = det C. In these terms alpha and delta
are sums of nonnegative terms: stiff edges cause no cancellation. The back substitution returns
w . x and the rises x_{i+1} - x_i, each formed without subtracting nearly equal numbers.

Arrays of both chains have length 2K (label 1 at offset K); those with one entry per edge constraint
have length 4K (label 0 rising, label 0 falling, label 1 rising, label 1 falling; the last entry of
each block is unused). The data are read in O(n + K); a direction costs O(K).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython


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
    total: cython.double
    first: cython.double
    node: cython.double
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
    last: cython.double = u[k - 1]
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
    t: cython.double
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


def direction(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    s: cython.const[cython.double][::1],
    z: cython.const[cython.double][::1],
    lam: cython.const[cython.double][::1],
    m: cython.const[cython.double][::1],
    factor: cython.double[::1],
    f: cython.double[::1],
    x: cython.double[::1],
    rise: cython.double[::1],
    depth: cython.double[::1],
    target: cython.double[::1],
) -> float:
    """Write a predictor-corrector direction; return the mean product of slack and multiplier.

    Potentials change by ``x``, with differences ``rise`` along the chains and w . x = ``depth``.
    Multipliers head for ``target``: 4K of the edges, then K masses. ``factor`` (8K) and ``f`` (2K)
    are work space. Returns 0 when rounding has spoilt the direction.
    """
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    chain: cython.Py_ssize_t
    w: cython.double
    left: cython.double
    right: cython.double
    mean: cython.double
    size: cython.double = 0.0
    with cython.nogil:
        _factor(u, s, z, lam, m, factor)
        for i in range(2 * k):
            f[i] = g[i]
        _solve(u, factor, f, x, rise, depth)
        mean = _targets(s, z, lam, m, rise, depth, target)
        for chain in range(2):
            left = 0.0
            for i in range(k):
                j = 2 * chain * k + i
                w = u[i] if chain == 1 else 1.0 - u[i]
                right = target[j] - target[k + j] if i < k - 1 else 0.0
                f[chain * k + i] = g[chain * k + i] - w * target[4 * k + i] - left + right
                left = right
        _solve(u, factor, f, x, rise, depth)
        for chain in range(2):
            for i in range(k - 1):
                j = 2 * chain * k + i
                target[j] += lam[j] / s[j] * rise[chain * k + i]
                target[k + j] -= lam[k + j] / s[k + j] * rise[chain * k + i]
        for i in range(k):
            target[4 * k + i] += factor[8 * i + 2] * depth[i]
        for i in range(2 * k):
            size += abs(x[i]) + abs(rise[i])
        for i in range(5 * k):
            size += abs(target[i])
    return mean if size < 1e300 else 0.0  # also for NaN


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _factor(
    u: cython.const[cython.double][::1],
    s: cython.const[cython.double][::1],
    z: cython.const[cython.double][::1],
    lam: cython.const[cython.double][::1],
    m: cython.const[cython.double][::1],
    factor: cython.double[::1],
) -> cython.void:
    """Eliminate from left to right.

    ``factor`` receives p, q, kappa, alpha, beta, c, sigma and 1/det(C + kappa w w^T + diag(p, q))
    per node.
    """
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    p: cython.double
    q: cython.double
    kappa: cython.double
    beta: cython.double
    c: cython.double
    top: cython.double
    bottom: cython.double
    inverse: cython.double
    alpha: cython.double = 0.0
    sigma: cython.double = 0.0
    delta: cython.double = 0.0
    for i in range(k):
        kappa = m[i] / z[i]
        p = q = 0.0
        if i < k - 1:
            p = lam[i] / s[i] + lam[k + i] / s[k + i]
            q = lam[2 * k + i] / s[2 * k + i] + lam[3 * k + i] / s[3 * k + i]
        beta = 0.0
        c = u[i]
        if alpha > 0.0:
            beta = delta / alpha
            c = u[i] - sigma / alpha
            delta += kappa * (beta + sigma * (sigma / alpha))
        top = alpha * (1.0 - c) * (1.0 - c) + beta + kappa * (1.0 - u[i]) * (1.0 - u[i])
        bottom = alpha * c * c + beta + kappa * u[i] * u[i]
        inverse = delta + top * q + bottom * p + p * q
        inverse = 1.0 / inverse if inverse > 0.0 else 0.0
        factor[8 * i] = p
        factor[8 * i + 1] = q
        factor[8 * i + 2] = kappa
        factor[8 * i + 3] = alpha
        factor[8 * i + 4] = beta
        factor[8 * i + 5] = c
        factor[8 * i + 6] = sigma
        factor[8 * i + 7] = inverse
        if i < k - 1:
            alpha = (delta * (p + q) + p * q * (alpha + kappa)) * inverse
            sigma = (delta * (u[i] * p - (1.0 - u[i]) * q) + p * q * sigma) * inverse + alpha * (
                u[i + 1] - u[i]
            )
            delta = p * q * delta * inverse


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _solve(
    u: cython.const[cython.double][::1],
    factor: cython.const[cython.double][::1],
    f: cython.double[::1],
    x: cython.double[::1],
    rise: cython.double[::1],
    depth: cython.double[::1],
) -> cython.void:
    """Solve for ``x`` with right-hand side ``f`` (overwritten); ``depth`` receives w . x."""
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    p: cython.double
    q: cython.double
    kappa: cython.double
    alpha: cython.double
    beta: cython.double
    c: cython.double
    sigma: cython.double
    inverse: cython.double
    w0: cython.double
    w1: cython.double
    y0: cython.double
    y1: cython.double
    t: cython.double
    b: cython.double
    a: cython.double
    xi: cython.double
    x0: cython.double = 0.0
    x1: cython.double = 0.0
    for i in range(k):
        p = factor[8 * i]
        q = factor[8 * i + 1]
        c = factor[8 * i + 5]
        f[i] += x0
        f[k + i] += x1
        y0 = f[i]
        y1 = f[k + i]
        t = factor[8 * i + 3] * (c * y0 - (1.0 - c) * y1)
        b = factor[8 * i + 4] * (y0 + y1)
        a = factor[8 * i + 2] * (u[i] * y0 - (1.0 - u[i]) * y1)
        x0 = p * ((q * y0 + c * t + b + u[i] * a) * factor[8 * i + 7])
        x1 = q * ((p * y1 - (1.0 - c) * t + b - (1.0 - u[i]) * a) * factor[8 * i + 7])
    x0 = x1 = 0.0
    for i in range(k - 1, -1, -1):
        p = factor[8 * i]
        q = factor[8 * i + 1]
        kappa = factor[8 * i + 2]
        alpha = factor[8 * i + 3]
        beta = factor[8 * i + 4]
        c = factor[8 * i + 5]
        sigma = factor[8 * i + 6]
        inverse = factor[8 * i + 7]
        w1 = u[i]
        w0 = 1.0 - w1
        y0 = f[i] + p * x0
        y1 = f[k + i] + q * x1
        t = alpha * (c * y0 - (1.0 - c) * y1)
        b = beta * (y0 + y1)
        a = kappa * (w1 * y0 - w0 * y1)
        x[i] = (q * y0 + c * t + b + w1 * a) * inverse
        x[k + i] = (p * y1 - (1.0 - c) * t + b - w0 * a) * inverse
        xi = ((q * w0 + beta - sigma * c) * y0 + (p * w1 + beta + sigma * (1.0 - c)) * y1) * inverse
        depth[i] = xi
        t = x[k + i] - x[i]
        a = alpha * xi - sigma * t
        # A rise across an edge stiffer than its node comes from the force balance of the node.
        if p > alpha * (1.0 - c) * (1.0 - c) + beta + kappa * w0 * w0:
            rise[i] = ((1.0 - c) * a - beta * t + w0 * kappa * xi - f[i]) / p
        else:
            rise[i] = x0 - x[i]
        if q > alpha * c * c + beta + kappa * w1 * w1:
            rise[k + i] = (c * a + beta * t + w1 * kappa * xi - f[k + i]) / q
        else:
            rise[k + i] = x1 - x[k + i]
        x0 = x[i]
        x1 = x[k + i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _targets(
    s: cython.const[cython.double][::1],
    z: cython.const[cython.double][::1],
    lam: cython.const[cython.double][::1],
    m: cython.const[cython.double][::1],
    rise: cython.const[cython.double][::1],
    depth: cython.const[cython.double][::1],
    target: cython.double[::1],
) -> cython.double:
    """Write (centring goal - second-order term) / slack of all constraints; return mean s lambda.

    ``rise`` and ``depth`` are the predictor's. The goal is the share of the mean product that the
    constraints on which the predictor closes in would keep, and at least a fifth.
    """
    k: cython.Py_ssize_t = z.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    block: cython.Py_ssize_t
    change: cython.double
    product: cython.double
    second: cython.double
    total: cython.double = 0.0
    kept: cython.double = 0.0
    mean: cython.double
    goal: cython.double
    for block in range(4):
        for i in range(k - 1):
            j = block * k + i
            change = rise[(block // 2) * k + i]
            if block % 2 == 0:
                change = -change
            total += s[j] * lam[j]
            kept += lam[j] / s[j] * max(0.0, s[j] + change) * max(0.0, -change)
    for i in range(k):
        total += z[i] * m[i]
        kept += m[i] / z[i] * max(0.0, z[i] - depth[i]) * max(0.0, depth[i])
    mean = total / (5 * k - 4)
    goal = mean * min(1.0, max(0.2, kept / total))
    for block in range(4):
        for i in range(k - 1):
            j = block * k + i
            change = rise[(block // 2) * k + i]
            if block % 2 == 0:
                change = -change
            product = s[j] * lam[j]
            second = -change * lam[j] * (1.0 + change / s[j])
            target[j] = (goal - min(product, max(-product, second))) / s[j]
        target[block * k + k - 1] = 0.0
    for i in range(k):
        product = z[i] * m[i]
        second = depth[i] * m[i] * (1.0 - depth[i] / z[i])
        target[4 * k + i] = (goal - min(product, max(-product, second))) / z[i]
    return mean
