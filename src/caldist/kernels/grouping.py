"""The best grouping of sorted points into contiguous groups that are moved to their mean label.

Notation: P, V and B are the sums over the first points of the mass, of mass times v, and of the
mass with label 1; S = B - V. A group of the points i to j - 1 has the mean label
y = (B[j] - B[i]) / (P[j] - P[i]) and costs C(i, j), the sum of mass |v - y| over its points. Prefix
sums and the number of points below y give it in O(log n). E[j] = min over i < j of E[i] + C(i, j),
where i and j run over the given cuts.

For each j the candidates i are searched newest first in a binary tree with 16 at each leaf. Two
bounds drop subtrees. First, C(i, j) >= |S[j] - S[i]|, and a node knows its least E - S and E + S.
Second, C(i, j) is at least the mean absolute deviation of the group, which only grows with the
group; and if the group is halved at any point, that is at least the smaller mass times the
difference of the two means. A candidate is also dropped if it may be better by at most
eps (P[j] - P[i]): as the masses of the groups sum to 1, this loses at most eps in all.

The search is close to linear in the number of cuts when labels follow the predictions. Under a
steady bias many candidates nearly tie, and it becomes quadratic.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels._buffers import doubles, integers


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _locate(
    y: cython.double,
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    guess: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
) -> cython.Py_ssize_t:
    """Return the first index in [low, high) whose v exceeds y, or high; start from a guess."""
    step: cython.Py_ssize_t = 1
    middle: cython.Py_ssize_t
    guess = min(max(guess, low), high - 1)
    if v[guess] > y:
        high = guess
        while high - step >= low and v[high - step] > y:
            high -= step
            step *= 2
        low = max(low, high - step)
    else:
        low = guess + 1
        while low + step <= high and v[low + step - 1] <= y:
            low += step
            step *= 2
        high = min(high, low + step - 1)
    while low < high:
        middle = (low + high) // 2
        if v[middle] > y:
            high = middle
        else:
            low = middle + 1
    return low


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _cost(
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    V: cython.const[cython.double][::1],
    B: cython.const[cython.double][::1],
    guess: cython.longlong[::1],
) -> cython.double:
    """Return C(i, j); guess[0] is where the mean label was found last, mostly not far away."""
    y: cython.double
    q: cython.Py_ssize_t
    if P[j] <= P[i]:
        return 0.0
    y = (B[j] - B[i]) / (P[j] - P[i])
    if y <= v[i] or y >= v[j - 1]:
        return abs((B[j] - B[i]) - (V[j] - V[i]))
    q = _locate(y, i, j, guess[0], v)
    guess[0] = q
    return y * (2.0 * P[q] - P[i] - P[j]) - (2.0 * V[q] - V[i] - V[j])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _deviation(
    k: cython.Py_ssize_t,
    t: cython.Py_ssize_t,
    p: cython.const[cython.double][::1],
    w: cython.const[cython.double][::1],
) -> cython.double:
    """Bound from below the cost of any group that contains the points between cuts k and t."""
    middle: cython.Py_ssize_t = (k + t) // 2
    left: cython.double = p[middle] - p[k]
    right: cython.double = p[t] - p[middle]
    if left <= 0.0 or right <= 0.0:
        return 0.0
    return min(left, right) * ((w[t] - w[middle]) / right - (w[middle] - w[k]) / left)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scan(
    newest: cython.Py_ssize_t,
    oldest: cython.Py_ssize_t,
    t: cython.Py_ssize_t,
    eps: cython.double,
    cut: cython.const[cython.longlong][::1],
    v: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    V: cython.const[cython.double][::1],
    B: cython.const[cython.double][::1],
    p: cython.const[cython.double][::1],
    s: cython.const[cython.double][::1],
    E: cython.double[::1],
    previous: cython.longlong[::1],
    guess: cython.longlong[::1],
) -> cython.void:
    """Improve E[t] by the candidates from newest to oldest."""
    k: cython.Py_ssize_t
    cost: cython.double
    for k in range(newest, oldest - 1, -1):
        if E[k] + abs(s[t] - s[k]) >= E[t] - eps * (p[t] - p[k]):
            continue
        cost = E[k] + _cost(cut[k], cut[t], v, P, V, B, guess)
        if cost < E[t]:
            E[t] = cost
            previous[t] = k


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_leaf(
    number: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    s: cython.const[cython.double][::1],
    E: cython.const[cython.double][::1],
    bound: cython.double[::1],
) -> cython.void:
    """Enter 16 finished cuts into the tree; bounds: least E - S, least E + S, least E."""
    k: cython.Py_ssize_t
    node: cython.Py_ssize_t = size + number
    down: cython.double = E[16 * number] - s[16 * number]
    up: cython.double = E[16 * number] + s[16 * number]
    least: cython.double = E[16 * number]
    for k in range(16 * number + 1, 16 * number + 16):
        down = min(down, E[k] - s[k])
        up = min(up, E[k] + s[k])
        least = min(least, E[k])
    bound[3 * node] = down
    bound[3 * node + 1] = up
    bound[3 * node + 2] = least
    while node & 1:  # the right child completes its parent
        node //= 2
        for k in range(3):
            bound[3 * node + k] = min(bound[6 * node + k], bound[6 * node + 3 + k])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_off(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    mass1: cython.const[cython.double][::1],
    cut: cython.const[cython.longlong][::1],
    previous: cython.const[cython.longlong][::1],
    first: cython.longlong[::1],
    value: cython.double[::1],
) -> cython.Py_ssize_t:
    """Write the groups' first points, sum their cost directly, return their number."""
    n: cython.Py_ssize_t = v.shape[0]
    t: cython.Py_ssize_t = cut.shape[0] - 1
    groups: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    i: cython.Py_ssize_t
    total: cython.double
    ones: cython.double
    value[0] = 0.0
    while t > 0:
        start = cut[previous[t]]
        total = 0.0
        ones = 0.0
        for i in range(start, cut[t]):
            total += mass[i]
            ones += mass1[i]
        if total > 0.0:
            for i in range(start, cut[t]):
                value[0] += mass[i] * abs(v[i] - ones / total)
        groups += 1
        first[n - groups] = start
        t = previous[t]
    for i in range(groups):
        first[i] = first[n - groups + i]
    return groups


def best_grouping(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    mass1: cython.const[cython.double][::1],
    cut: cython.const[cython.longlong][::1],
    eps: cython.double,
    first: cython.longlong[::1],
) -> tuple[float, int]:
    """Minimise the cost over the groupings with boundaries in `cut`, to within eps.

    `cut` increases from 0 to n; the masses sum to 1. Write the index of the first point of each
    group into `first`, in increasing order; return the cost of that grouping and its size.
    """
    n: cython.Py_ssize_t = v.shape[0]
    cuts: cython.Py_ssize_t = cut.shape[0]
    size: cython.Py_ssize_t = 1
    i: cython.Py_ssize_t
    t: cython.Py_ssize_t
    node: cython.Py_ssize_t
    leaf: cython.Py_ssize_t
    leaves: cython.Py_ssize_t
    rest: cython.Py_ssize_t
    depth: cython.Py_ssize_t
    newest: cython.Py_ssize_t
    groups: cython.Py_ssize_t
    limit: cython.double
    while size * 16 < cuts:
        size *= 2
    P: cython.double[::1] = doubles(n + 1)
    V: cython.double[::1] = doubles(n + 1)
    B: cython.double[::1] = doubles(n + 1)
    # P, V and S at the cuts only, where the search reads them over and over.
    p: cython.double[::1] = doubles(cuts)
    w: cython.double[::1] = doubles(cuts)
    s: cython.double[::1] = doubles(cuts)
    E: cython.double[::1] = doubles(cuts)
    previous: cython.longlong[::1] = integers(cuts)
    bound: cython.double[::1] = doubles(6 * size)
    stack: cython.longlong[::1] = integers(2 * 64)
    guess: cython.longlong[::1] = integers(1)
    value: cython.double[::1] = doubles(1)
    with cython.nogil:
        P[0] = V[0] = B[0] = 0.0
        for i in range(n):
            P[i + 1] = P[i] + mass[i]
            V[i + 1] = V[i] + mass[i] * v[i]
            B[i + 1] = B[i] + mass1[i]
        for t in range(cuts):
            p[t] = P[cut[t]]
            w[t] = V[cut[t]]
            s[t] = B[cut[t]] - V[cut[t]]
        E[0] = 0.0
        previous[0] = 0
        guess[0] = 0
        for t in range(1, cuts):
            # What was best for the cut before is a good start; it also breaks ties in favour of
            # fewer groups.
            previous[t] = previous[t - 1]
            E[t] = E[previous[t]] + _cost(cut[previous[t]], cut[t], v, P, V, B, guess)
            rest = (t - 1) // 16
            _scan(t - 1, 16 * rest, t, eps, cut, v, P, V, B, p, s, E, previous, guess)
            while rest > 0:  # the complete subtrees are the binary digits of `rest`, newest first
                leaves = rest & -rest
                rest -= leaves
                stack[0] = rest
                stack[1] = leaves
                depth = 2
                while depth > 0:
                    depth -= 2
                    leaf = stack[depth]
                    leaves = stack[depth + 1]
                    node = (size + leaf) // leaves
                    newest = 16 * (leaf + leaves) - 1
                    limit = E[t] - eps * (p[t] - p[newest])
                    if bound[3 * node] + s[t] >= limit or bound[3 * node + 1] - s[t] >= limit:
                        continue
                    if bound[3 * node + 2] + _deviation(newest, t, p, w) >= limit:
                        continue
                    if leaves == 1:
                        _scan(newest, 16 * leaf, t, eps, cut, v, P, V, B, p, s, E, previous, guess)
                        continue
                    leaves //= 2
                    stack[depth + 1] = leaves
                    stack[depth + 2] = leaf + leaves
                    stack[depth + 3] = leaves
                    depth += 4
            if t % 16 == 15 and t + 1 < cuts:
                _add_leaf(t // 16, size, s, E, bound)
        groups = _read_off(v, mass, mass1, cut, previous, first, value)
    return value[0], groups
