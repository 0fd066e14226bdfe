"""Independent ways to the same numbers: linear programs, brute force, dense sums.

None of this shares code with the package; each works on (v, g0, g1): sorted distinct predictions
and normalised masses.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def distribution(y_true, y_prob, sample_weight=None):
    """Return (v, g0, g1) by plain Python."""
    weight = np.ones(len(y_prob)) if sample_weight is None else np.asarray(sample_weight, float)
    table = {}
    for y, v, w in zip(y_true, y_prob, weight, strict=True):
        if w > 0:
            table.setdefault(float(v) + 0.0, [0.0, 0.0])[int(y)] += float(w)
    v = np.array(sorted(table))
    g = np.array([table[x] for x in sorted(table)]) / weight.sum()
    return v, g[:, 0], g[:, 1]


def row_weights(y_true, sample_weight):
    return np.ones(y_true.size) if sample_weight is None else sample_weight


def uniform_bins(p, n_bins):
    """Return the bin of equal width that each row falls into."""
    edges = [k / n_bins for k in range(n_bins)]
    return [sum(edge <= v for edge in edges) - 1 for v in p]


def groups(bins):
    """Return the rows of each bin that has some."""
    bins = np.array(bins)
    return [np.flatnonzero(bins == k) for k in np.unique(bins)]


def residuals(v, g0, g1):
    return g1 * (1 - v) - g0 * v


def solve_lp(objective, **constraints):
    """Minimise by HiGHS at its tightest tolerances."""
    result = linprog(
        objective,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        **constraints,
    )
    assert result.status == 0, result.message
    return result.fun


def smooth_ce_lp(v, c):
    """The paper's linear program: maximise sum c w over 1-Lipschitz w into [-1, 1]."""
    n = v.size
    if n == 1:
        return abs(c[0])
    step = sparse.diags([-np.ones(n), np.ones(n - 1)], [0, 1], shape=(n - 1, n))
    return -solve_lp(
        -c,
        A_ub=sparse.vstack([step, -step]),
        b_ub=np.tile(np.diff(v), 2),
        bounds=(-1, 1),
    )


def smooth_ce_rational(v, c):
    """SmCE in exact rational arithmetic by dynamic programming over piecewise linear functions.

    F_i(x) = max of sum_{j<=i} c_j w_j with w_i = x is concave and piecewise linear; the step to the
    next point is a sup over |x - x'| <= d, clipped to [-1, 1]. Breakpoints are kept as a list.
    """
    v = [Fraction(float(x)) for x in v]
    c = [Fraction(float(x)) for x in c]
    points = [(Fraction(-1), -c[0]), (Fraction(1), c[0])]
    for (left, right), slope in zip(pairwise(v), c[1:], strict=True):
        d = right - left
        best = max(value for _, value in points)
        top = [x for x, value in points if value == best]
        low, high = top[0], top[-1]
        moved = [(x - d, value) for x, value in points if x <= low]
        moved += [(x + d, value) for x, value in points if x >= high]
        points = [(x, value + slope * x) for x, value in _clip(moved)]
    return max(value for _, value in points)


def _clip(points):
    """Restrict a piecewise linear function to [-1, 1]."""

    def at(x):
        for (a, fa), (b, fb) in pairwise(points):
            if a <= x <= b:
                return fa if a == b else fa + (fb - fa) * (x - a) / (b - a)
        raise AssertionError

    one = Fraction(1)
    inner = [(x, value) for x, value in points if -1 < x < 1]
    return [(-one, at(-one)), *inner, (one, at(one))]


def kernel_squared(v, c, kernel):
    """The dense double sum."""
    return float(c @ kernel(v[:, None], v[None, :]) @ c)


def random_interval(v, c, width):
    """Integrate over the shift: the integrand is constant between its jumps."""
    jumps = np.unique(np.concatenate((v % width, [0.0, width])))
    total = 0.0
    for a, b in pairwise(jumps):
        shift = (a + b) / 2
        bins = np.floor((v - shift) / width)
        total += (b - a) * sum(abs(c[bins == k].sum()) for k in np.unique(bins))
    return total / width


def contiguous_partitions(n):
    """Yield all lists of (first, past-last) that cut range(n) into contiguous groups."""
    for cuts in range(1 << (n - 1)):
        edges = [0, *(i + 1 for i in range(n - 1) if cuts >> i & 1), n]
        yield list(pairwise(edges))


def interval_brute(v, g0, g1):
    """IntCE over all contiguous groups."""
    c, mass = residuals(v, g0, g1), g0 + g1
    return min(
        sum(abs(c[i:j].sum()) + mass[i:j].sum() * (v[j - 1] - v[i]) for i, j in groups)
        for groups in contiguous_partitions(v.size)
    )


def interval_program(v, g0, g1):
    """IntCE by the quadratic dynamic program."""
    c, mass = residuals(v, g0, g1), g0 + g1
    s = np.concatenate(([0.0], np.cumsum(c)))
    p = np.concatenate(([0.0], np.cumsum(mass)))
    best = np.zeros(v.size + 1)
    for j in range(1, v.size + 1):
        i = np.arange(j)
        best[j] = np.min(best[:j] + np.abs(s[j] - s[i]) + (p[j] - p[i]) * (v[j - 1] - v[i]))
    return best[-1]


def lower_distance_lp(v, g0, g1, grid):
    """The paper's primal: couplings of (u, v, y), u on a grid that contains 0 and 1."""
    n, m = v.size, grid.size
    cost = np.tile(np.abs(grid[:, None] - v[None, :]).ravel(), 2)  # (y, u, v)
    ones = sparse.csr_matrix(np.ones((1, m)))
    marginal = sparse.block_diag([sparse.kron(ones, sparse.eye(n))] * 2)
    row = sparse.kron(sparse.eye(m), np.ones((1, n)))
    calibrated = sparse.hstack([-sparse.diags(grid) @ row, sparse.diags(1 - grid) @ row])
    return solve_lp(
        cost,
        A_eq=sparse.vstack([marginal, calibrated]).tocsc(),
        b_eq=np.concatenate((g0, g1, np.zeros(m))),
        bounds=(0, None),
    )


def lower_distance_dual_lp(v, g0, g1, grid):
    """The reduced dual on a grid that contains the predictions, 0 and 1."""
    m = grid.size
    step = sparse.diags([-np.ones(m), np.ones(m - 1)], [0, 1], shape=(m - 1, m))
    lipschitz = sparse.block_diag([step, step])
    fair = sparse.hstack([sparse.diags(1 - grid), sparse.diags(grid)])
    at = np.searchsorted(grid, v)
    objective = np.zeros(2 * m)
    objective[at] = -g0
    objective[m + at] = -g1
    d = np.tile(np.diff(grid), 2)
    return -solve_lp(
        objective,
        A_ub=sparse.vstack([lipschitz, -lipschitz, fair]).tocsc(),
        b_ub=np.concatenate((d, d, np.zeros(m))),
        bounds=(None, None),
    )


def set_partitions(items):
    """Yield all partitions of a list into groups."""
    if not items:
        yield []
        return
    first, *rest = items
    for partition in set_partitions(rest):
        yield [[first], *partition]
        for i, group in enumerate(partition):
            yield [*partition[:i], [first, *group], *partition[i + 1 :]]


def partition_brute(place, mass, ones, order):
    """The least sum of mass |place - mean label of its group|^order over all partitions."""
    costs = {}

    def cost(group):
        key = tuple(group)
        if key not in costs:
            mean = ones[group].sum() / mass[group].sum()
            costs[key] = float(mass[group] @ np.abs(place[group] - mean) ** order)
        return costs[key]

    return min(
        sum(cost(group) for group in partition)
        for partition in set_partitions(list(range(place.size)))
    )


# What a measure is of one row with residual r = y - v: |r|, except for these. A text is the reason
# why it is not defined.
_ONE_ROW = {
    "averaged_two_bin_ce": lambda y, v: (y - v) ** 2,  # at every threshold
    "brier_score": lambda y, v: (y - v) ** 2,
    "debiased_ece": lambda y, v: 0.0,  # one row does not tell its variance
    "log_loss": lambda y, v: math.inf if v == 1 - y else -math.log(v if y else 1 - v),
    "mmce": lambda y, v: abs((y == (v > 0.5)) - max(v, 1 - v)),
    "normalized_cross_entropy": lambda y, v: f"y_true is {y} .*log_loss",
    "post_processing_gap": lambda y, v: (y - v) ** 2,  # the row goes to its label
}


def one_row(measure, y, v):
    """Return the closed form of a measure on one row."""
    name = measure.name if set(measure.options) <= {"tol"} else str(measure)
    known = _ONE_ROW.get(name, lambda y, v: abs(y - v))
    return known(y, v)
