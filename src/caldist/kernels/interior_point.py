"""The ladder's linear program by an interior-point method; notation as in the module ``ladder``.

Next to the calibrated distribution m the multipliers are, per edge, the mass F = lambda+ - lambda-
that crosses it: F_i = sum_{k<=i} (w_k m_k - g_k), at cost d |F|, d being the gaps between nodes.
Slacks: s+ = d - (r_{i+1} - r_i), s- = d + (r_{i+1} - r_i), z = -w . r.

A Newton step solves (sum kappa w w^T + graph Laplacian with stiffness p, q) x = f, kappa = m/z and
p, q = lambda+/s+ + lambda-/s- on the edges of the two chains. The elimination runs from left to
right. What lies to the left of a node acts on it as the 2x2 matrix

    C = alpha a a^T + beta n n^T,   a = (1 - c, c),  n = (-1, 1),

kept as alpha, sigma = alpha (u - c) and delta = alpha beta = det C. In these terms alpha and delta
are sums of nonnegative terms: stiff edges cause no cancellation. The back substitution returns
w . x and the rises x_{i+1} - x_i, each formed without subtracting nearly equal numbers.

Potentials r and calibrated masses m stay strictly feasible, so that each iterate bounds the
ladder's optimum from both sides. A common step length would be held up for dozens of iterations by
a few edges among thousands. Steps are therefore local where that gains more: potentials take the
full step except near blocking constraints, masses hand what they cannot give to the next node.
Local steps have no proof of convergence, only a test of progress; where it fails, the common step
length is used. The bounds are valid in either case.

Arrays with one entry per edge constraint have length 4K: label 0 rising, label 0 falling, label 1
rising, label 1 falling; the last entry of each block is unused. Directions and steps cost O(K).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython


def start(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    depth: cython.double,
    r: cython.double[::1],
    s: cython.double[::1],
    z: cython.double[::1],
    lam: cython.double[::1],
    m: cython.double[::1],
) -> None:
    """Write a well-centred strictly feasible point: constant potentials ``-depth``."""
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    chain: cython.Py_ssize_t
    w: cython.double
    flow: cython.double
    with cython.nogil:
        for i in range(k):
            z[i] = depth
            m[i] = 0.9 * (g[i] + g[k + i]) + 0.1 / k
        _balance(u, g, m)
        for chain in range(2):
            flow = 0.0
            for i in range(k):
                j = 2 * chain * k + i
                w = u[i] if chain == 1 else 1.0 - u[i]
                flow += w * m[i] - g[chain * k + i]
                r[chain * k + i] = -depth
                if i < k - 1:
                    s[j] = u[i + 1] - u[i]
                    s[k + j] = s[j]
                    lam[j] = depth / k / s[j] + max(flow, 0.0)
                    lam[k + j] = depth / k / s[j] + max(-flow, 0.0)
                else:
                    s[j] = s[k + j] = 1.0
                    lam[j] = lam[k + j] = 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _balance(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    m: cython.double[::1],
) -> cython.void:
    """Scale ``m`` so that neither label is exceeded, and put what is missing at u = 0 and u = 1."""
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    total0: cython.double = 0.0
    total1: cython.double = 0.0
    used0: cython.double = 0.0
    used1: cython.double = 0.0
    t: cython.double = 1.0
    for i in range(k):
        total0 += g[i]
        total1 += g[k + i]
        used0 += (1.0 - u[i]) * m[i]
        used1 += u[i] * m[i]
    if used0 > total0:
        t = total0 / used0
    if used1 * t > total1:
        t = total1 / used1
    if t < 1.0:
        for i in range(k):
            m[i] *= t
    m[0] += max(0.0, total0 - t * used0)
    m[k - 1] += max(0.0, total1 - t * used1)


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


def move(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    x: cython.const[cython.double][::1],
    rise: cython.const[cython.double][::1],
    depth: cython.const[cython.double][::1],
    target: cython.const[cython.double][::1],
    reach: cython.double,
    least: cython.double,
    r: cython.double[::1],
    s: cython.double[::1],
    z: cython.double[::1],
    lam: cython.double[::1],
    m: cython.double[::1],
    work: cython.double[::1],
    bounds: cython.double[::1],
) -> None:
    """Step in place; ``bounds`` receives the lower and the upper bound of the ladder.

    No slack or multiplier loses more than the share ``reach``; local steps of the potentials leave
    the product of slack and multiplier above ``least`` where it is. ``work`` has length 5K.
    """
    k: cython.Py_ssize_t = u.shape[0]
    trial: cython.double[::1] = work[: 4 * k]
    masses: cython.double[::1] = work[4 * k :]
    with cython.nogil:
        bounds[1] = _move_masses(u, g, target, reach, trial, masses, lam, m)
        bounds[0] = _move_potentials(u, g, x, rise, depth, lam, m, reach, least, trial, r, s, z)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _move_potentials(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    x: cython.const[cython.double][::1],
    rise: cython.const[cython.double][::1],
    depth: cython.const[cython.double][::1],
    lam: cython.const[cython.double][::1],
    m: cython.const[cython.double][::1],
    reach: cython.double,
    least: cython.double,
    cut: cython.double[::1],
    r: cython.double[::1],
    s: cython.double[::1],
    z: cython.double[::1],
) -> cython.double:
    """Step the potentials; return the resulting lower bound.

    Raising all potentials by the least slack ``z`` is still feasible and counts into the bound.
    """
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    chain: cython.Py_ssize_t
    _attempt: cython.Py_ssize_t
    local: cython.bint = False
    blocked: cython.double = 0.0
    gain: cython.double = 0.0
    common: cython.double
    scale: cython.double
    won: cython.double
    step: cython.double
    value: cython.double = 0.0
    shallowest: cython.double = 1.0
    for chain in range(2):
        for i in range(k - 1):
            j = chain * k + i
            blocked = max(blocked, rise[j] / s[j + chain * k], -rise[j] / s[j + chain * k + k])
    for i in range(k):
        blocked = max(blocked, depth[i] / z[i])
    for j in range(2 * k):
        gain += g[j] * x[j]
    common = min(1.0, reach / blocked) if blocked > 0.0 else 1.0
    if common < 0.9 and gain > 0.0:
        scale = 1.0
        for _attempt in range(3):
            won = scale * gain - _shorten(g, s, z, lam, m, rise, depth, scale, reach, least, cut)
            if won >= max(1.05 * common, 0.3 * scale) * gain:
                local = True
                break
            scale *= 0.4
    if not local:
        scale = common
        for j in range(2 * k):
            cut[j] = 0.0
    # The bounds of 99% are for rounding errors in slacks far smaller than the cuts.
    for chain in range(2):
        for i in range(k - 1):
            j = chain * k + i
            step = scale * rise[j] - (cut[j + 1] - cut[j])
            s[j + chain * k] -= min(step, 0.99 * s[j + chain * k])
            s[j + chain * k + k] += max(step, -0.99 * s[j + chain * k + k])
    for j in range(2 * k):
        r[j] += scale * x[j] - cut[j]
        value += g[j] * r[j]
    for i in range(k):
        step = scale * depth[i] - ((1.0 - u[i]) * cut[i] + u[i] * cut[k + i])
        z[i] -= min(step, 0.99 * z[i])
        shallowest = min(shallowest, z[i])
    return value + shallowest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _shorten(
    g: cython.const[cython.double][::1],
    s: cython.const[cython.double][::1],
    z: cython.const[cython.double][::1],
    lam: cython.const[cython.double][::1],
    m: cython.const[cython.double][::1],
    rise: cython.const[cython.double][::1],
    depth: cython.const[cython.double][::1],
    scale: cython.double,
    reach: cython.double,
    least: cython.double,
    cut: cython.double[::1],
) -> cython.double:
    """Write the least ``cut`` >= 0 that keeps a step ``scale * x - cut`` feasible; return g . cut.

    This is the Lipschitz lower envelope of the step: only neighbourhoods of blocking constraints
    are shortened, where a common step length would shorten everything.
    """
    k: cython.Py_ssize_t = z.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    e: cython.Py_ssize_t
    chain: cython.Py_ssize_t
    b: cython.double
    lost: cython.double = 0.0
    for chain in range(2):
        b = 0.0
        for i in range(k - 1, -1, -1):
            j = chain * k + i
            if i < k - 1:
                e = j + chain * k + k
                b -= _usable(s[e], lam[e], reach, least) + scale * rise[j]
            b = max(0.0, b, scale * depth[i] - _usable(z[i], m[i], reach, least))
            cut[j] = b
        for i in range(k):
            j = chain * k + i
            if i > 0:
                e = j + chain * k - 1
                b += scale * rise[j - 1] - _usable(s[e], lam[e], reach, least)
                b = max(b, cut[j])
            cut[j] = b
            lost += g[j] * b
    return lost


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _usable(
    slack: cython.double, multiplier: cython.double, reach: cython.double, least: cython.double
) -> cython.double:
    """Return how far a slack may fall: no lower than slack * multiplier = least, if above it."""
    if slack * multiplier <= least:  # also where the multiplier has become 0
        return 0.0
    return max(0.0, min(reach * slack, slack - least / multiplier))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _move_masses(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    target: cython.const[cython.double][::1],
    reach: cython.double,
    trial: cython.double[::1],
    masses: cython.double[::1],
    lam: cython.double[::1],
    m: cython.double[::1],
) -> cython.double:
    """Step the masses and multipliers; return the resulting upper bound."""
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    block: cython.Py_ssize_t
    _attempt: cython.Py_ssize_t
    local: cython.bint = False
    cost: cython.double = 0.0
    gain: cython.double = 0.0
    common: cython.double = 1.0
    scale: cython.double
    won: cython.double
    upper: cython.double = 0.0
    for block in range(4):
        for i in range(k - 1):
            j = block * k + i
            cost += (u[i + 1] - u[i]) * lam[j]
            gain += (u[i + 1] - u[i]) * (lam[j] - target[j])
            if target[j] < lam[j]:
                common = min(common, reach * lam[j] / (lam[j] - target[j]))
    for i in range(k):
        j = 4 * k + i
        if target[j] < m[i]:
            common = min(common, reach * m[i] / (m[i] - target[j]))
    if common < 0.9 and gain > 0.0:
        scale = 1.0
        for _attempt in range(3):
            won = cost - _try_masses(u, g, lam, m, target, scale, reach, trial, masses)
            if won >= max(1.05 * common, 0.3 * scale) * gain:
                local = True
                break
            scale *= 0.4
    if not local:
        _try_masses(u, g, lam, m, target, common, reach, trial, masses)
    for i in range(k):
        m[i] = masses[i]
    for block in range(4):
        for i in range(k - 1):
            lam[block * k + i] = trial[block * k + i]
    for i in range(k - 1):
        upper += (u[i + 1] - u[i]) * (
            abs(lam[i] - lam[k + i]) + abs(lam[2 * k + i] - lam[3 * k + i])
        )
    return upper


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _try_masses(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    lam: cython.const[cython.double][::1],
    m: cython.const[cython.double][::1],
    target: cython.const[cython.double][::1],
    scale: cython.double,
    reach: cython.double,
    trial: cython.double[::1],
    masses: cython.double[::1],
) -> cython.double:
    """Write masses and multipliers ``scale`` of the way to their targets; return their cost.

    A mass that would fall too low hands the difference to the next node. The flows are summed
    anew, and the change they need is shared between the two multipliers of an edge.
    """
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    chain: cython.Py_ssize_t
    want: cython.double
    carry: cython.double = 0.0
    flow: cython.double
    up: cython.double
    down: cython.double
    lift: cython.double
    w: cython.double
    cost: cython.double = 0.0
    for i in range(k):
        want = m[i] + scale * (target[4 * k + i] - m[i]) - carry
        masses[i] = max(want, (1.0 - reach) * m[i])
        carry = masses[i] - want
    _balance(u, g, masses)
    for chain in range(2):
        flow = 0.0
        for i in range(k - 1):
            j = 2 * chain * k + i
            w = u[i] if chain == 1 else 1.0 - u[i]
            flow += w * masses[i] - g[chain * k + i]
            up = lam[j] + scale * (target[j] - lam[j])
            down = lam[k + j] + scale * (target[k + j] - lam[k + j])
            lift = 0.5 * (flow - (up - down))
            up += lift
            down -= lift
            lift = max(0.0, (1.0 - reach) * lam[j] - up, (1.0 - reach) * lam[k + j] - down)
            trial[j] = up + lift
            trial[k + j] = down + lift
            cost += (u[i + 1] - u[i]) * (trial[j] + trial[k + j])
    return cost
