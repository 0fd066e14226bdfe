r"""Likelihood ratios of fixed experts against calibration: sums of a batch, values of windows.

An expert moves the log-odds of cell k by delta(k), fixed in advance. A row with prediction v and
label y multiplies its wealth by e^{delta y}/(1 + v (e^delta - 1)), which has mean 1 if y has
probability v. So the logarithm of the wealth is a sum over rows. In a cell log(1 + v c) is concave
in v, and rows may be replaced by their mean prediction: the sum only becomes smaller.

Notation. A batch has, for each of its increasing cells, the reference number ``cell``, the mean
prediction v, floored by at most ``step``, the rows ``count`` and the ``ones``. The sums are laid
out as leaf by leaf the D shifts, then the slopes (one for each exponent and offset), then the waves
(for each frequency the sizes b, each with its sign + and -).

Factors of few rows are multiplied and their logarithm taken once for FACTORS of them: each lies
between e^-6 and e^6, so that the product stays in the range of floats.

What is done for every expert or leaf is done in loops without branches over plain arrays, which
``_wide.pxd`` has compiled for wider registers, too.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels.arrays import doubles, integers

if cython.compiled:
    from cython.cimports.caldist.kernels._wide import exponential, fetch
    from cython.cimports.libc.math import exp, log
else:
    from math import exp, log

    from caldist.kernels._exponential import exponential


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def pointer(array: cython.double[::1]) -> cython.p_double:
    """Return where an array begins; in plain Python, the array."""
    return cython.address(array[0]) if cython.compiled else array


def expert_sums(
    cell: cython.const[cython.longlong][::1],
    v: cython.const[cython.double][::1],
    count: cython.const[cython.double][::1],
    ones: cython.const[cython.double][::1],
    step: cython.double,
    line: cython.const[cython.double][::1],
    W: cython.Py_ssize_t,
    shift: cython.const[cython.double][::1],
    tilt: cython.const[cython.double][::1],
    offset: cython.const[cython.double][::1],
    size: cython.const[cython.double][::1],
    most: cython.double,
    out: cython.double[::1],
) -> None:
    """Add the sums of a batch to ``out``.

    ``line`` holds for each reference cell its leaf, its log-odds, the W waves of size 1, factors
    of the odds: of the slopes without offset, then of the waves of the least size. All of it in
    one line, and no more, because a batch meets few of the cells, and reading costs more than
    arithmetic. A slope adds its ``tilt`` times the log-odds and its ``offset``; each ``size`` of
    the waves is twice the one before. No expert adds more than ``most``.
    """
    D: cython.Py_ssize_t = shift.shape[0]
    O: cython.Py_ssize_t = offset.shape[0]
    B: cython.Py_ssize_t = size.shape[0]
    T: cython.Py_ssize_t = tilt.shape[0]
    stride: cython.Py_ssize_t = 2 + T + 2 * W
    waves: cython.Py_ssize_t = W * B
    experts: cython.Py_ssize_t = D + T * O + 2 * waves
    # Shifts, slopes, waves with the sign +, then those with -.
    product: cython.double[::1] = doubles(experts)
    factor: cython.double[::1] = doubles(experts)
    # e^delta of each, of the waves for the sign + alone.
    odds: cython.double[::1] = doubles(experts - waves)
    fixed: cython.double[::1] = doubles(O)
    # Of labels 1, and of those times the slope, for each tilt; then for the waves' two signs.
    linear: cython.double[::1] = doubles(2 * T + 2 * W)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    a: cython.Py_ssize_t
    f: cython.Py_ssize_t
    k: cython.Py_ssize_t
    at: cython.Py_ssize_t
    times: cython.Py_ssize_t
    used: cython.Py_ssize_t = 0
    here: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t = out.shape[0] - experts + D
    widest = 0.0
    labels = 0.0
    low = exp(-most)
    high = exp(most)
    with cython.nogil:
        for j in range(D):
            odds[j] = exp(shift[j])
        for j in range(O):
            fixed[j] = exp(offset[j])
            widest = max(widest, abs(offset[j]))
        for j in range(experts):
            product[j] = 1.0
        for j in range(linear.shape[0]):
            linear[j] = 0.0
        for i in range(cell.shape[0]):
            k = cell[i]
            n = count[i]
            y = ones[i]
            # What flooring may have taken from v counts against experts that gain by a small v.
            p = v[i]
            q = p + step
            times = 0
            if n == 1.0 or n == 2.0 or n == 3.0:
                times = 1 if n == 1.0 else 2 if n == 2.0 else 3
            at = k * stride
            if cython.compiled and i + 8 < cell.shape[0]:
                fetch(cython.address(line[cell[i + 8] * stride]))
            if line[at] != here:
                for j in range(D):
                    out[here * D + j] += shift[j] * labels
                _flush(product, D, here, D, T * O, waves, out)
                labels = 0.0
                here = int(line[at])
            if used + times > 100:
                _flush(product, experts, here, D, T * O, waves, out)
                used = 0
            used += times
            labels += y
            f = D
            for a in range(T):
                x = tilt[a] * line[at + 1]
                g = line[at + 2 + W + a]
                for j in range(O):
                    odds[f + j] = g * fixed[j]
                if abs(x) + widest <= most:
                    linear[2 * a] += y
                    linear[2 * a + 1] += y * x
                else:
                    for j in range(O):
                        out[first + a * O + j] += y * min(max(x + offset[j], -most), most)
                        odds[f + j] = min(max(odds[f + j], low), high)
                f += O
            for a in range(W):
                x = line[at + 2 + a]
                linear[2 * T + 2 * a] += y * x
                linear[2 * T + 2 * a + 1] += (n - y) * x
                e = line[at + 2 + W + T + a]
                for _ in range(B):
                    odds[f] = e
                    e *= e
                    f += 1
            _factors(pointer(odds), f, waves, p, q, pointer(factor))
            if times == 0:
                for j in range(experts):
                    out[_place(j, here, D, T * O, waves, first)] -= n * log(factor[j])
            else:
                _multiply(pointer(factor), experts, times, pointer(product))
        for j in range(D):
            out[here * D + j] += shift[j] * labels
        _flush(product, experts, here, D, T * O, waves, out)
        for a in range(T):
            for j in range(O):
                out[first + a * O + j] += linear[2 * a + 1] + offset[j] * linear[2 * a]
        for a in range(W):
            for j in range(B):
                at = first + T * O + 2 * (a * B + j)
                out[at] += linear[2 * T + 2 * a] * size[j]
                out[at + 1] += linear[2 * T + 2 * a + 1] * size[j]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _factors(
    odds: cython.p_double,
    plain: cython.Py_ssize_t,
    waves: cython.Py_ssize_t,
    low: cython.double,
    high: cython.double,
    factor: cython.p_double,
) -> cython.void:
    """Write 1 + v (e^delta - 1) of the ``plain`` experts, and e^delta times that of -delta.

    The latter is for the last ``waves`` of them, once more. v is whichever end makes it larger.
    """
    j: cython.Py_ssize_t
    for j in range(plain):
        e = odds[j]
        factor[j] = 1.0 + (high if e > 1.0 else low) * (e - 1.0)
    for j in range(waves):
        e = odds[plain - waves + j]
        factor[plain + j] = e + (high if e < 1.0 else low) * (1.0 - e)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _multiply(
    factor: cython.p_double,
    size: cython.Py_ssize_t,
    times: cython.Py_ssize_t,
    product: cython.p_double,
) -> cython.void:
    """Multiply products by their factors, up to three times."""
    j: cython.Py_ssize_t
    for j in range(size):
        product[j] *= factor[j]
    if times > 1:
        for j in range(size):
            product[j] *= factor[j]
    if times > 2:
        for j in range(size):
            product[j] *= factor[j]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _place(
    j: cython.Py_ssize_t,
    here: cython.Py_ssize_t,
    D: cython.Py_ssize_t,
    slopes: cython.Py_ssize_t,
    waves: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Return where the sum of an expert lies: waves are + and - in turn there."""
    if j < D:
        return here * D + j
    j -= D
    if j < slopes:
        return first + j
    j -= slopes
    return first + slopes + (2 * j if j < waves else 2 * (j - waves) + 1)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _flush(
    product: cython.double[::1],
    experts: cython.Py_ssize_t,
    here: cython.Py_ssize_t,
    D: cython.Py_ssize_t,
    slopes: cython.Py_ssize_t,
    waves: cython.Py_ssize_t,
    out: cython.double[::1],
) -> cython.void:
    """Take the logarithms of the first products off their sums."""
    first: cython.Py_ssize_t = out.shape[0] - product.shape[0] + D
    j: cython.Py_ssize_t
    for j in range(experts):
        if product[j] != 1.0:
            out[_place(j, here, D, slopes, waves, first)] -= log(product[j])
            product[j] = 1.0


def window_values(
    total: cython.const[cython.double][::1],
    start: cython.const[cython.double][::1],
    stride: cython.Py_ssize_t,
    D: cython.Py_ssize_t,
    leaves: cython.Py_ssize_t,
    levels: cython.Py_ssize_t,
    slopes: cython.Py_ssize_t,
    prior: cython.const[cython.double][::1],
    log_tree: cython.double,
    idle: cython.double,
    root_idle: cython.double,
    stop: cython.double,
    out: cython.double[::1],
) -> None:
    r"""Write, for each window from a start, the log values of the four families.

    ``start`` holds ``stride`` sums for each start, of which the first are laid out as ``total``.
    ``prior`` has the log weights of the experts: of the first ``levels`` shifts on all leaves, of
    the ``slopes`` and of the waves; ``log_tree`` is that of the tree. With B the sums of a node
    over its leaves,

        local = p + (1 - p) mean_d e^{B_d},  w = stop local + (1 - stop) w_left w_right,

    p = ``idle`` but ``root_idle`` at the root; w = local at a leaf. The tree's value is w(root).
    """
    # Shift by shift the leaves, in the order in which the children of node i of a level of w nodes
    # are i and i + w: loops over nodes then run along the arrays.
    sums: cython.double[::1] = doubles(D * leaves)
    power: cython.double[::1] = doubles(D * leaves)
    value: cython.double[::1] = doubles(leaves)
    mean: cython.double[::1] = doubles(leaves)
    place: cython.longlong[::1] = integers(leaves)
    leaf: cython.double[::1] = doubles(D)
    experts: cython.double[::1] = doubles(prior.shape[0])
    s: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    at: cython.Py_ssize_t
    width: cython.Py_ssize_t = 1
    first: cython.Py_ssize_t = leaves * D
    with cython.nogil:
        place[0] = 0
        while width < leaves:
            for i in range(width):
                j = width - 1 - i
                place[2 * j + 1] = place[j] + width
                place[2 * j] = place[j]
            width *= 2
        for s in range(out.shape[0] // 4):
            at = s * stride
            gains = 0.0
            for j in range(levels):
                experts[j] = prior[j]
            for i in range(leaves):
                top = 0.0
                for j in range(D):
                    leaf[j] = total[i * D + j] - start[at + i * D + j]
                    top = max(top, leaf[j])
                gains += top
                for j in range(levels):
                    experts[j] += leaf[j]
                for j in range(D):
                    sums[j * leaves + place[i]] = leaf[j]
            if gains < 600.0:
                tree = log(
                    _tree(
                        pointer(sums),
                        gains,
                        pointer(power),
                        pointer(mean),
                        pointer(value),
                        D,
                        leaves,
                        idle,
                        root_idle,
                        stop,
                    )
                )
            else:
                tree = _log_tree(sums, value, D, leaves, idle, root_idle, stop)
            for j in range(levels, prior.shape[0]):
                i = first + j - levels
                experts[j] = prior[j] + total[i] - start[at + i]
            out[4 * s] = _log_sum(experts, 0, levels)
            out[4 * s + 1] = _log_sum(experts, levels, levels + slopes)
            out[4 * s + 2] = _log_sum(experts, levels + slopes, prior.shape[0])
            out[4 * s + 3] = log_tree + tree


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _tree(
    sums: cython.p_double,
    gains: cython.double,
    power: cython.p_double,
    mean: cython.p_double,
    value: cython.p_double,
    D: cython.Py_ssize_t,
    leaves: cython.Py_ssize_t,
    idle: cython.double,
    root_idle: cython.double,
    stop: cython.double,
) -> cython.double:
    """Return w(root), where no product of gains leaves the range of floats.

    e^B of a node is the product of those of its children, and no product is above e^``gains``. What
    is below e^-(gains + 45) is taken for 0: times that it would still be nothing beside p.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    at: cython.Py_ssize_t
    width: cython.Py_ssize_t = leaves
    least = -gains - 45.0
    for i in range(D * leaves):
        x = exponential(max(sums[i], -700.0))
        power[i] = x if sums[i] > least else 0.0
    while width >= 1:
        p = idle if width > 1 else root_idle
        share = (1.0 - p) / D
        for i in range(width):
            mean[i] = 0.0
        for j in range(D):
            at = j * leaves
            if width < leaves:
                for i in range(at, at + width):
                    x = power[i] * power[i + width]
                    power[i] = x if x >= 1e-280 else 0.0
            for i in range(width):
                mean[i] += power[at + i]
        if width == leaves:
            for i in range(width):
                value[i] = p + share * mean[i]
        else:
            for i in range(width):
                x = stop * (p + share * mean[i])
                value[i] = x + (1.0 - stop) * value[i] * value[i + width]
        width //= 2
    return value[0]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _log_tree(
    node: cython.double[::1],
    value: cython.double[::1],
    D: cython.Py_ssize_t,
    leaves: cython.Py_ssize_t,
    idle: cython.double,
    root_idle: cython.double,
    stop: cython.double,
) -> cython.double:
    """Return log w(root), whatever the sums of the leaves are, which ``node`` loses."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    width: cython.Py_ssize_t = leaves
    while width >= 1:
        for i in range(width):
            if width < leaves:
                for j in range(D):
                    node[j * leaves + i] += node[j * leaves + i + width]
            stay = _local(node, i, leaves, D, idle if width > 1 else root_idle)
            if width < leaves:
                split = log(1.0 - stop) + value[i] + value[i + width]
                stay = _log_add(log(stop) + stay, split)
            value[i] = stay
        width //= 2
    return value[0]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _local(
    sums: cython.double[::1],
    at: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    D: cython.Py_ssize_t,
    p: cython.double,
) -> cython.double:
    """Return log(p + (1 - p) mean_d e^{B_d}), with the B_d ``step`` apart."""
    j: cython.Py_ssize_t
    top = 0.0
    total = 0.0
    for j in range(D):
        top = max(top, sums[at + j * step])
    for j in range(D):
        if sums[at + j * step] - top > -45.0:
            total += exp(sums[at + j * step] - top)
    return top + log(p * exp(-top) + (1.0 - p) / D * total)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _log_sum(
    terms: cython.double[::1], first: cython.Py_ssize_t, last: cython.Py_ssize_t
) -> cython.double:
    """Return the logarithm of the sum of e^term."""
    j: cython.Py_ssize_t
    top = terms[first]
    total = 0.0
    for j in range(first, last):
        top = max(top, terms[j])
    for j in range(first, last):
        if terms[j] - top > -45.0:
            total += exp(terms[j] - top)
    return top + log(total)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _log_add(a: cython.double, b: cython.double) -> cython.double:
    """Return log(e^a + e^b)."""
    if a < b:
        return b + log(1.0 + exp(a - b))
    return a + log(1.0 + exp(b - a))
