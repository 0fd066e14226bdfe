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
difference of the two means. For a single candidate y is known, and the two halves moved there as
if each were one point bound the cost better. A candidate is also dropped if it may be better by at
most eps (P[j] - P[i]): as the masses of the groups sum to 1, this loses at most eps in all.

More than half of the candidates never enter the tree, because of a newer one k with
E[k] + |S[k] - S[i]| <= E[i]. It is at least as good for every j, as C(k, j) <= C(i, j) + |S[k] -
S[i]|: leave the points from k on at the mean label of the larger group. Then their labels are off
by at most |S[k] - S[i]| plus the cost of the points before k, which is saved.

The search is close to linear in the number of cuts when labels follow the predictions. Under a
steady bias many candidates nearly tie, and it becomes quadratic.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels.arrays import doubles, integers


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
def _deviates(
    k: cython.Py_ssize_t,
    t: cython.Py_ssize_t,
    limit: cython.double,
    p: cython.const[cython.double][::1],
    w: cython.const[cython.double][::1],
) -> cython.bint:
    """Say if the points between cuts k and t make any group that has them cost over a limit.

    Here and below, the bounds are compared times a mass, which saves divisions.
    """
    middle: cython.Py_ssize_t = (k + t) // 2
    left = p[middle] - p[k]
    right = p[t] - p[middle]
    return (w[t] - w[middle]) * left - (w[middle] - w[k]) * right > limit * max(left, right)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _halves_cost(
    k: cython.Py_ssize_t,
    t: cython.Py_ssize_t,
    limit: cython.double,
    p: cython.const[cython.double][::1],
    w: cython.const[cython.double][::1],
    s: cython.const[cython.double][::1],
) -> cython.bint:
    """Say if the halves of the group between cuts k and t, as one point each, cost over a limit."""
    middle: cython.Py_ssize_t = (k + t) // 2
    mass = p[t] - p[k]
    ones = (s[t] - s[k]) + (w[t] - w[k])
    left = (p[middle] - p[k]) * ones - (w[middle] - w[k]) * mass
    right = (p[t] - p[middle]) * ones - (w[t] - w[middle]) * mass
    return abs(left) + abs(right) > limit * mass


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
    w: cython.const[cython.double][::1],
    s: cython.const[cython.double][::1],
    E: cython.double[::1],
    previous: cython.longlong[::1],
    candidate: cython.const[cython.longlong][::1],
    guess: cython.longlong[::1],
) -> cython.void:
    """Improve E[t] by the candidates from newest to oldest."""
    m: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for m in range(newest, oldest - 1, -1):
        k = candidate[m]
        limit = E[t] - eps * (p[t] - p[k]) - E[k]
        if abs(s[t] - s[k]) >= limit or _halves_cost(k, t, limit, p, w, s):
            continue
        cost = E[k] + _cost(cut[k], cut[t], v, P, V, B, guess)
        if cost < E[t]:
            E[t] = cost
            previous[t] = k


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _admit(
    t: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    eps: cython.double,
    p: cython.const[cython.double][::1],
    s: cython.const[cython.double][::1],
    E: cython.const[cython.double][::1],
    candidate: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Add t to the candidates, drop those from `first` on that it beats, return how many remain."""
    m: cython.Py_ssize_t
    k: cython.Py_ssize_t
    kept: cython.Py_ssize_t = first
    for m in range(first, count):
        k = candidate[m]
        if E[t] + abs(s[t] - s[k]) > E[k] + eps * (p[t] - p[k]):
            candidate[kept] = k
            kept += 1
    candidate[kept] = t
    return kept + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_leaf(
    number: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    s: cython.const[cython.double][::1],
    E: cython.const[cython.double][::1],
    candidate: cython.const[cython.longlong][::1],
    bound: cython.double[::1],
) -> cython.void:
    """Enter 16 candidates into the tree; bounds: least E - S, least E + S, least E."""
    m: cython.Py_ssize_t
    k: cython.Py_ssize_t = candidate[16 * number]
    node: cython.Py_ssize_t = size + number
    down = E[k] - s[k]
    up = E[k] + s[k]
    least = E[k]
    for m in range(16 * number + 1, 16 * number + 16):
        k = candidate[m]
        down = min(down, E[k] - s[k])
        up = min(up, E[k] + s[k])
        least = min(least, E[k])
    bound[3 * node] = down
    bound[3 * node + 1] = up
    bound[3 * node + 2] = least
    while node & 1:  # the right child completes its parent
        node //= 2
        for m in range(3):
            bound[3 * node + m] = min(bound[6 * node + m], bound[6 * node + 3 + m])


def best_grouping(
    v: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    V: cython.const[cython.double][::1],
    B: cython.const[cython.double][::1],
    cut: cython.const[cython.longlong][::1],
    eps: cython.double,
    first: cython.longlong[::1],
) -> tuple[float, int]:
    """Minimise the cost over the groupings with boundaries in `cut`, to within eps.

    `cut` increases from 0 to n; P ends with 1. Write the index of the first point of each group
    into `first`, in increasing order; return the cost of that grouping and its size.
    """
    cuts: cython.Py_ssize_t = cut.shape[0]
    size: cython.Py_ssize_t = 1
    t: cython.Py_ssize_t
    node: cython.Py_ssize_t
    leaf: cython.Py_ssize_t
    leaves: cython.Py_ssize_t
    rest: cython.Py_ssize_t
    depth: cython.Py_ssize_t
    newest: cython.Py_ssize_t
    k: cython.Py_ssize_t
    entered: cython.Py_ssize_t = 0  # leaves in the tree
    count: cython.Py_ssize_t = 1  # candidates
    groups: cython.Py_ssize_t = 0
    while size * 16 < cuts:
        size *= 2
    # P, V and S at the cuts only, where the search reads them over and over.
    p: cython.double[::1] = doubles(cuts)
    w: cython.double[::1] = doubles(cuts)
    s: cython.double[::1] = doubles(cuts)
    E: cython.double[::1] = doubles(cuts)
    previous: cython.longlong[::1] = integers(cuts)
    candidate: cython.longlong[::1] = integers(cuts)
    bound: cython.double[::1] = doubles(6 * size)
    stack: cython.longlong[::1] = integers(2 * 64)
    guess: cython.longlong[::1] = integers(1)
    with cython.nogil:
        for t in range(cuts):
            p[t] = P[cut[t]]
            w[t] = V[cut[t]]
            s[t] = B[cut[t]] - V[cut[t]]
        E[0] = 0.0
        previous[0] = 0
        candidate[0] = 0
        guess[0] = 0
        for t in range(1, cuts):
            # What was best for the cut before is a good start; it also breaks ties in favour of
            # fewer groups.
            previous[t] = previous[t - 1]
            E[t] = E[previous[t]] + _cost(cut[previous[t]], cut[t], v, P, V, B, guess)
            _scan(
                count - 1, 16 * entered, t, eps,
                cut, v, P, V, B, p, w, s, E, previous, candidate, guess,
            )  # fmt: skip
            rest = entered
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
                    k = candidate[newest]
                    limit = E[t] - eps * (p[t] - p[k])
                    if bound[3 * node] + s[t] >= limit or bound[3 * node + 1] - s[t] >= limit:
                        continue
                    if _deviates(k, t, limit - bound[3 * node + 2], p, w):
                        continue
                    if leaves == 1:
                        _scan(
                            newest, 16 * leaf, t, eps,
                            cut, v, P, V, B, p, w, s, E, previous, candidate, guess,
                        )  # fmt: skip
                        continue
                    leaves //= 2
                    stack[depth + 1] = leaves
                    stack[depth + 2] = leaf + leaves
                    stack[depth + 3] = leaves
                    depth += 4
            count = _admit(t, 16 * entered, count, eps, p, s, E, candidate)
            # Only the older half of 32 makes a leaf: those that are beaten mostly are so before.
            if count == 16 * entered + 32:
                _add_leaf(entered, size, s, E, candidate, bound)
                entered += 1
        t = cuts - 1
        while t > 0:
            t = previous[t]
            groups += 1
            first[first.shape[0] - groups] = cut[t]
        for t in range(groups):
            first[t] = first[first.shape[0] - groups + t]
    return E[cuts - 1], groups
