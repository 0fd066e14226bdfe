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
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels._arrays import doubles

if cython.compiled:
    from cython.cimports.libc.math import exp, log
else:
    from math import exp, log


def expert_sums(
    cell: cython.const[cython.longlong][::1],
    v: cython.const[cython.double][::1],
    count: cython.const[cython.double][::1],
    ones: cython.const[cython.double][::1],
    step: cython.double,
    leaf: cython.const[cython.longlong][::1],
    tilt: cython.const[cython.double][::1],
    wave: cython.const[cython.double][::1],
    shift: cython.const[cython.double][::1],
    offset: cython.const[cython.double][::1],
    size: cython.const[cython.double][::1],
    most: cython.double,
    out: cython.double[::1],
) -> None:
    """Add the sums of a batch to ``out``.

    For each reference cell ``leaf`` is its leaf; ``tilt`` and ``wave`` hold, for one exponent or
    frequency after the other, what an expert of it with offset 0 or size 1 adds to the log-odds.
    No expert adds more than ``most``.
    """
    D: cython.Py_ssize_t = shift.shape[0]
    O: cython.Py_ssize_t = offset.shape[0]
    B: cython.Py_ssize_t = size.shape[0]
    K: cython.Py_ssize_t = leaf.shape[0]
    T: cython.Py_ssize_t = tilt.shape[0] // K
    W: cython.Py_ssize_t = wave.shape[0] // K
    first: cython.Py_ssize_t = out.shape[0] - T * O - 2 * W * B
    experts: cython.Py_ssize_t = D + T * O + 2 * W * B
    product: cython.double[::1] = doubles(experts)
    odds: cython.double[::1] = doubles(D + O)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    k: cython.Py_ssize_t
    times: cython.Py_ssize_t
    used: cython.Py_ssize_t = 0
    here: cython.Py_ssize_t = 0
    n: cython.double
    y: cython.double
    x: cython.double
    e: cython.double
    low: cython.double = exp(-most)
    high: cython.double = exp(most)
    with cython.nogil:
        for j in range(D):
            odds[j] = exp(shift[j])
        for j in range(O):
            odds[D + j] = exp(offset[j])
        for j in range(experts):
            product[j] = 1.0
        for i in range(cell.shape[0]):
            k = cell[i]
            n = count[i]
            y = ones[i]
            times = 0
            if n == 1.0 or n == 2.0 or n == 3.0:
                times = 1 if n == 1.0 else 2 if n == 2.0 else 3
            if used + times > 100 or (used > 0 and leaf[k] != here):
                _flush(product, here, D, first, out)
                used = 0
            here = leaf[k]
            used += times
            for j in range(D):
                out[here * D + j] += shift[j] * y
                _multiply(v[i], step, odds[j], n, times, j, here * D + j, product, out)
            b = first
            for a in range(T):
                x = tilt[a * K + k]
                e = exp(x)
                for j in range(O):
                    out[b] += y * min(max(x + offset[j], -most), most)
                    _multiply(
                        v[i], step, min(max(e * odds[D + j], low), high), n, times,
                        D + b - first, b, product, out,
                    )  # fmt: skip
                    b += 1
            for a in range(W):
                x = wave[a * K + k]
                for j in range(B):
                    e = exp(x * size[j])
                    out[b] += y * (x * size[j])
                    _multiply(v[i], step, e, n, times, D + b - first, b, product, out)
                    out[b + 1] -= y * (x * size[j])
                    _multiply(v[i], step, 1.0 / e, n, times, D + b + 1 - first, b + 1, product, out)
                    b += 2
        if used > 0:
            _flush(product, here, D, first, out)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _multiply(
    v: cython.double,
    step: cython.double,
    odds: cython.double,
    n: cython.double,
    times: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    into: cython.Py_ssize_t,
    product: cython.double[::1],
    out: cython.double[::1],
) -> cython.void:
    """Take n rows' factor 1 + v (odds - 1) into a product, or its logarithm off the sum."""
    factor: cython.double
    # What flooring may have taken from v counts against experts that gain by a small v.
    if odds > 1.0:
        factor = 1.0 + (v + step) * (odds - 1.0)
    else:
        factor = 1.0 + v * (odds - 1.0)
    if times == 0:
        out[into] -= n * log(factor)
    else:
        product[at] *= factor
        if times > 1:
            product[at] *= factor
        if times > 2:
            product[at] *= factor


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _flush(
    product: cython.double[::1],
    here: cython.Py_ssize_t,
    D: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    out: cython.double[::1],
) -> cython.void:
    """Take the logarithms of the products off their sums."""
    j: cython.Py_ssize_t
    for j in range(product.shape[0]):
        out[here * D + j if j < D else first + j - D] -= log(product[j])
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
    sums: cython.double[::1] = doubles(leaves * D)
    value: cython.double[::1] = doubles(leaves)
    experts: cython.double[::1] = doubles(prior.shape[0])
    s: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    width: cython.Py_ssize_t
    base: cython.Py_ssize_t
    first: cython.Py_ssize_t = leaves * D
    p: cython.double
    stay: cython.double
    split: cython.double
    with cython.nogil:
        for s in range(out.shape[0] // 4):
            base = s * stride
            for i in range(first):
                sums[i] = total[i] - start[base + i]
            for i in range(leaves):
                value[i] = _local(sums, i * D, D, idle)
            width = leaves // 2
            while width >= 1:
                p = idle if width > 1 else root_idle
                for i in range(width):
                    for j in range(D):
                        sums[i * D + j] = sums[2 * i * D + j] + sums[(2 * i + 1) * D + j]
                    stay = log(stop) + _local(sums, i * D, D, p)
                    split = log(1.0 - stop) + value[2 * i] + value[2 * i + 1]
                    value[i] = _log_add(stay, split)
                width //= 2
            for j in range(levels):
                experts[j] = prior[j] + sums[j]
            for j in range(prior.shape[0] - levels):
                experts[levels + j] = prior[levels + j] + total[first + j] - start[base + first + j]
            out[4 * s] = _log_sum(experts, 0, levels)
            out[4 * s + 1] = _log_sum(experts, levels, levels + slopes)
            out[4 * s + 2] = _log_sum(experts, levels + slopes, prior.shape[0])
            out[4 * s + 3] = log_tree + value[0]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _local(
    sums: cython.double[::1], at: cython.Py_ssize_t, D: cython.Py_ssize_t, p: cython.double
) -> cython.double:
    """Return log(p + (1 - p) mean_d e^{B_d})."""
    j: cython.Py_ssize_t
    top: cython.double = 0.0
    total: cython.double = 0.0
    for j in range(D):
        top = max(top, sums[at + j])
    for j in range(D):
        if sums[at + j] - top > -45.0:
            total += exp(sums[at + j] - top)
    return top + log(p * exp(-top) + (1.0 - p) / D * total)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _log_sum(
    terms: cython.double[::1], first: cython.Py_ssize_t, last: cython.Py_ssize_t
) -> cython.double:
    """Return the logarithm of the sum of e^term."""
    j: cython.Py_ssize_t
    top: cython.double = terms[first]
    total: cython.double = 0.0
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
