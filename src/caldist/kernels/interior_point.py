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

from caldist.kernels._checkpoint import checkpoint
from caldist.kernels.arrays import doubles


def solve(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    deep: cython.double,
    most: cython.Py_ssize_t,
    apart: cython.double,
    reach: cython.double,
    central: cython.double,
    r: cython.double[::1],
    m: cython.double[::1],
) -> int:
    """Write potentials ``r`` (2K) and calibrated masses ``m`` (K); return how many steps it took.

    It starts from potentials ``-deep`` and ends when the bounds of the ladder are at most ``apart``
    from each other, after ``most`` steps, or when rounding has spoilt a direction. No slack or
    multiplier loses more than the share ``reach`` in a step, and local steps leave slack times
    multiplier above the share ``central`` of the mean.
    """
    k: cython.Py_ssize_t = u.shape[0]
    steps: cython.Py_ssize_t = 0
    passed: cython.Py_ssize_t = 0
    work: cython.double[::1] = doubles(47 * k + 2)
    s: cython.double[::1] = work[: 4 * k]
    z: cython.double[::1] = work[4 * k : 5 * k]
    lam: cython.double[::1] = work[5 * k : 9 * k]
    stiff: cython.double[::1] = work[9 * k : 14 * k]
    factor: cython.double[::1] = work[14 * k : 25 * k]
    f: cython.double[::1] = work[25 * k : 27 * k]
    x: cython.double[::1] = work[27 * k : 29 * k]
    rise: cython.double[::1] = work[29 * k : 31 * k]
    depth: cython.double[::1] = work[31 * k : 32 * k]
    target: cython.double[::1] = work[32 * k : 37 * k]
    trial: cython.double[::1] = work[37 * k : 41 * k]
    masses: cython.double[::1] = work[41 * k : 42 * k]
    room: cython.double[::1] = work[42 * k : 47 * k]
    bounds: cython.double[::1] = work[47 * k :]
    with cython.nogil:
        bounds[0] = 0.0
        bounds[1] = 1.0
        _start(u, g, deep, r, s, z, lam, m)
        while steps < most and bounds[1] - bounds[0] > apart:
            mean = _direction(u, g, s, z, lam, m, stiff, factor, f, x, rise, depth, target)
            if mean <= 0.0:
                break
            bounds[1] = _move_masses(u, g, target, reach, trial, masses, lam, m)
            bounds[0] = _move_potentials(
                u, g, x, rise, depth, lam, m, reach, central * mean, room, trial, r, s, z
            )
            steps += 1
            passed += k
            if passed > 1 << 16:  # small problems are over before anybody waits
                passed = 0
                with cython.gil:
                    checkpoint()
    return steps


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _start(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    deep: cython.double,
    r: cython.double[::1],
    s: cython.double[::1],
    z: cython.double[::1],
    lam: cython.double[::1],
    m: cython.double[::1],
) -> cython.void:
    """Write a well-centred strictly feasible point: constant potentials ``-deep``."""
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    chain: cython.Py_ssize_t
    for i in range(k):
        z[i] = deep
        m[i] = 0.9 * (g[i] + g[k + i]) + 0.1 / k
    _balance(u, g, m)
    for chain in range(2):
        flow = 0.0
        for i in range(k):
            j = 2 * chain * k + i
            w = u[i] if chain == 1 else 1.0 - u[i]
            flow += w * m[i] - g[chain * k + i]
            r[chain * k + i] = -deep
            if i < k - 1:
                s[j] = u[i + 1] - u[i]
                s[k + j] = s[j]
                lam[j] = deep / k / s[j] + max(flow, 0.0)
                lam[k + j] = deep / k / s[j] + max(-flow, 0.0)
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
    total0 = 0.0
    total1 = 0.0
    used0 = 0.0
    used1 = 0.0
    t = 1.0
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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _direction(
    u: cython.const[cython.double][::1],
    g: cython.const[cython.double][::1],
    s: cython.const[cython.double][::1],
    z: cython.const[cython.double][::1],
    lam: cython.const[cython.double][::1],
    m: cython.const[cython.double][::1],
    stiff: cython.double[::1],
    factor: cython.double[::1],
    f: cython.double[::1],
    x: cython.double[::1],
    rise: cython.double[::1],
    depth: cython.double[::1],
    target: cython.double[::1],
) -> cython.double:
    """Write a predictor-corrector direction; return the mean product of slack and multiplier.

    Potentials change by ``x``, with differences ``rise`` along the chains and w . x = ``depth``.
    Multipliers head for ``target``: 4K of the edges, then K masses. ``stiff`` (5K), multipliers
    over slacks, ``factor`` (11K) and ``f`` (2K) are work space. Returns 0 when rounding has spoilt
    the direction.
    """
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    chain: cython.Py_ssize_t
    for j in range(4 * k):
        stiff[j] = lam[j] / s[j]
    for i in range(k):
        stiff[4 * k + i] = m[i] / z[i]
    for i in range(2 * k):
        f[i] = g[i]
    _factor(u, stiff, factor, f)
    _substitute(u, factor, f, x, rise, depth)
    mean = _targets(s, z, lam, m, stiff, rise, depth, target)
    for chain in range(2):
        left = 0.0
        for i in range(k):
            j = 2 * chain * k + i
            w = u[i] if chain == 1 else 1.0 - u[i]
            right = target[j] - target[k + j]
            f[chain * k + i] = g[chain * k + i] - w * target[4 * k + i] - left + right
            left = right
    _eliminate(factor, f)
    _substitute(u, factor, f, x, rise, depth)
    for chain in range(2):
        for i in range(k - 1):
            j = 2 * chain * k + i
            target[j] += stiff[j] * rise[chain * k + i]
            target[k + j] -= stiff[k + j] * rise[chain * k + i]
    for i in range(k):
        target[4 * k + i] += stiff[4 * k + i] * depth[i]
    return mean if _is_finite(x, rise, target) else 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_finite(
    x: cython.const[cython.double][::1],
    rise: cython.const[cython.double][::1],
    target: cython.const[cython.double][::1],
) -> cython.bint:
    """Return whether all numbers of a direction are, and far from the largest."""
    k: cython.Py_ssize_t = x.shape[0]
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t = 0
    for i in range(k):
        bad += not (abs(x[i]) + abs(rise[i]) < 1e300)
    for i in range(target.shape[0]):
        bad += not (abs(target[i]) < 1e300)
    return bad == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _factor(
    u: cython.const[cython.double][::1],
    stiff: cython.const[cython.double][::1],
    factor: cython.double[::1],
    f: cython.double[::1],
) -> cython.void:
    """Eliminate from left to right, and ``f`` with it, like ``_eliminate``.

    ``factor`` receives p, q, kappa, alpha, beta, c, sigma, 1/det(C + kappa w w^T + diag(p, q)) and
    the three numbers of the inverse of this matrix per node.
    """
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    alpha = 0.0
    sigma = 0.0
    delta = 0.0
    x0 = 0.0
    x1 = 0.0
    for i in range(k):
        kappa = stiff[4 * k + i]
        p = stiff[i] + stiff[k + i]  # of the last node, which has no edge to its right, 0
        q = stiff[2 * k + i] + stiff[3 * k + i]
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
        a = (q + bottom) * inverse
        b = (beta - alpha * c * (1.0 - c) - kappa * u[i] * (1.0 - u[i])) * inverse
        d = (p + top) * inverse
        factor[11 * i] = p
        factor[11 * i + 1] = q
        factor[11 * i + 2] = kappa
        factor[11 * i + 3] = alpha
        factor[11 * i + 4] = beta
        factor[11 * i + 5] = c
        factor[11 * i + 6] = sigma
        factor[11 * i + 7] = inverse
        factor[11 * i + 8] = a
        factor[11 * i + 9] = b
        factor[11 * i + 10] = d
        f[i] += x0
        f[k + i] += x1
        y0 = f[i]
        y1 = f[k + i]
        x0 = p * (a * y0 + b * y1)
        x1 = q * (b * y0 + d * y1)
        if i < k - 1:
            alpha = (delta * (p + q) + p * q * (alpha + kappa)) * inverse
            sigma = (delta * (u[i] * p - (1.0 - u[i]) * q) + p * q * sigma) * inverse + alpha * (
                u[i + 1] - u[i]
            )
            delta = p * q * delta * inverse


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _eliminate(factor: cython.const[cython.double][::1], f: cython.double[::1]) -> cython.void:
    """Add to the right-hand side ``f`` at each node what lies to the left of it."""
    k: cython.Py_ssize_t = f.shape[0] // 2
    i: cython.Py_ssize_t
    x0 = 0.0
    x1 = 0.0
    for i in range(k):
        f[i] += x0
        f[k + i] += x1
        y0 = f[i]
        y1 = f[k + i]
        x0 = factor[11 * i] * (factor[11 * i + 8] * y0 + factor[11 * i + 9] * y1)
        x1 = factor[11 * i + 1] * (factor[11 * i + 9] * y0 + factor[11 * i + 10] * y1)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _substitute(
    u: cython.const[cython.double][::1],
    factor: cython.const[cython.double][::1],
    f: cython.const[cython.double][::1],
    x: cython.double[::1],
    rise: cython.double[::1],
    depth: cython.double[::1],
) -> cython.void:
    """Solve for ``x`` from right to left; ``depth`` receives w . x."""
    k: cython.Py_ssize_t = u.shape[0]
    i: cython.Py_ssize_t
    x0 = 0.0
    x1 = 0.0
    for i in range(k - 1, -1, -1):
        p = factor[11 * i]
        q = factor[11 * i + 1]
        kappa = factor[11 * i + 2]
        alpha = factor[11 * i + 3]
        beta = factor[11 * i + 4]
        c = factor[11 * i + 5]
        sigma = factor[11 * i + 6]
        inverse = factor[11 * i + 7]
        w1 = u[i]
        w0 = 1.0 - w1
        y0 = f[i] + p * x0
        y1 = f[k + i] + q * x1
        x[i] = factor[11 * i + 8] * y0 + factor[11 * i + 9] * y1
        x[k + i] = factor[11 * i + 9] * y0 + factor[11 * i + 10] * y1
        xi = ((q * w0 + beta - sigma * c) * y0 + (p * w1 + beta + sigma * (1.0 - c)) * y1) * inverse
        depth[i] = xi
        t = x[k + i] - x[i]
        a = alpha * xi - sigma * t
        # A rise across an edge stiffer than its node comes from the force balance of the node.
        # Both are computed: which one it is, a processor guesses wrongly too often.
        b = ((1.0 - c) * a - beta * t + w0 * kappa * xi - f[i]) / max(p, 1e-300)
        rise[i] = b if p > alpha * (1.0 - c) * (1.0 - c) + beta + kappa * w0 * w0 else x0 - x[i]
        b = (c * a + beta * t + w1 * kappa * xi - f[k + i]) / max(q, 1e-300)
        rise[k + i] = b if q > alpha * c * c + beta + kappa * w1 * w1 else x1 - x[k + i]
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
    stiff: cython.const[cython.double][::1],
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
    total = 0.0
    kept = 0.0
    for block in range(4):
        for i in range(k - 1):
            j = block * k + i
            change = rise[(block // 2) * k + i]
            if block % 2 == 0:
                change = -change
            total += s[j] * lam[j]
            kept += stiff[j] * max(0.0, s[j] + change) * max(0.0, -change)
    for i in range(k):
        total += z[i] * m[i]
        kept += stiff[4 * k + i] * max(0.0, z[i] - depth[i]) * max(0.0, depth[i])
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
    room: cython.double[::1],
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
    e: cython.Py_ssize_t
    chain: cython.Py_ssize_t
    _attempt: cython.Py_ssize_t
    local: cython.bint = False
    blocked = 0.0
    gain = 0.0
    value = 0.0
    shallowest = 1.0
    # Divisions take most of the time, so they are made where they may change the result. The
    # millionth is for rounding.
    for chain in range(2):
        for i in range(k - 1):
            j = chain * k + i
            e = j + chain * k if rise[j] > 0.0 else j + chain * k + k
            if abs(rise[j]) > 0.999999 * blocked * s[e]:
                blocked = max(blocked, abs(rise[j]) / s[e])
    for i in range(k):
        if depth[i] > 0.999999 * blocked * z[i]:
            blocked = max(blocked, depth[i] / z[i])
    for j in range(2 * k):
        gain += g[j] * x[j]
    common = min(1.0, reach / blocked) if blocked > 0.0 else 1.0
    if common < 0.9 and gain > 0.0:
        for j in range(4 * k):
            room[j] = _usable(s[j], lam[j], reach, least)
        for i in range(k):
            room[4 * k + i] = _usable(z[i], m[i], reach, least)
        scale = 1.0
        for _attempt in range(3):
            won = scale * gain - _shorten(g, room, rise, depth, scale, cut)
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
    room: cython.const[cython.double][::1],
    rise: cython.const[cython.double][::1],
    depth: cython.const[cython.double][::1],
    scale: cython.double,
    cut: cython.double[::1],
) -> cython.double:
    """Write the least ``cut`` >= 0 that keeps a step ``scale * x - cut`` feasible; return g . cut.

    This is the Lipschitz lower envelope of the step: only neighbourhoods of blocking constraints
    are shortened, where a common step length would shorten everything. ``room`` says how far each
    slack may fall.
    """
    k: cython.Py_ssize_t = depth.shape[0]
    i: cython.Py_ssize_t
    a = 0.0
    b = 0.0
    lost = 0.0
    other = 0.0
    # Both chains at once: each has to wait for its last node, but not for the other chain.
    for i in range(k - 1, -1, -1):
        if i < k - 1:
            a -= room[k + i] + scale * rise[i]
            b -= room[3 * k + i] + scale * rise[k + i]
        least = max(0.0, scale * depth[i] - room[4 * k + i])
        a = max(a, least)
        b = max(b, least)
        cut[i] = a
        cut[k + i] = b
    for i in range(k):
        if i > 0:
            a = max(a + (scale * rise[i - 1] - room[i - 1]), cut[i])
            b = max(b + (scale * rise[k + i - 1] - room[2 * k + i - 1]), cut[k + i])
        cut[i] = a
        cut[k + i] = b
        lost += g[i] * a
        other += g[k + i] * b
    return lost + other


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _usable(
    slack: cython.double, multiplier: cython.double, reach: cython.double, least: cython.double
) -> cython.double:
    """Return how far a slack may fall: no lower than slack * multiplier = least, if above it."""
    # The multiplier may have become 0.
    return max(0.0, min(reach * slack, slack - least / max(multiplier, 1e-300)))


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
    cost = 0.0
    gain = 0.0
    common = 1.0
    upper = 0.0
    for block in range(4):
        for i in range(k - 1):
            j = block * k + i
            cost += (u[i + 1] - u[i]) * lam[j]
            gain += (u[i + 1] - u[i]) * (lam[j] - target[j])
            if reach * lam[j] < 1.000001 * common * (lam[j] - target[j]):
                common = min(common, reach * lam[j] / (lam[j] - target[j]))
    for i in range(k):
        j = 4 * k + i
        if reach * m[i] < 1.000001 * common * (m[i] - target[j]):
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
    carry = 0.0
    cost = 0.0
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
            trial[j] = flow
    for chain in range(2):
        for i in range(k - 1):
            j = 2 * chain * k + i
            up = lam[j] + scale * (target[j] - lam[j])
            down = lam[k + j] + scale * (target[k + j] - lam[k + j])
            lift = 0.5 * (trial[j] - (up - down))
            up += lift
            down -= lift
            lift = max(0.0, (1.0 - reach) * lam[j] - up, (1.0 - reach) * lam[k + j] - down)
            trial[j] = up + lift
            trial[k + j] = down + lift
    for i in range(k - 1):
        cost += (u[i + 1] - u[i]) * (trial[i] + trial[k + i] + trial[2 * k + i] + trial[3 * k + i])
    return cost
