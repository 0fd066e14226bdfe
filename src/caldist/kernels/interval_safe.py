"""Interval calibration error in O(n log² n) time and O(n) space, whatever the data.

Notation: n points; position j stands for the gap after the first j points; S and P are the sums of
residuals and of masses of the first j points; D[j] is the least cost of grouping them,

    D[j] = min over i < j of  D[i] + |S[j] - S[i]| + (P[j] - P[i]) (v[j-1] - v[i]).

Positions are solved in leaves of a fixed size from left to right. Once the positions before m are
known, they act on later ones in whole rectangles: [m - h, m) acts on [m, m + h), where h is the
largest power of two (times the leaf) that divides m. Each pair of positions from different leaves
meets in exactly one such rectangle.

Inside a rectangle a sweep over S in increasing order meets each target after the candidates with
S[i] <= S[j], for which the cost is (D[i] - S[i]) + (P[j] - P[i]) (v[j-1] - v[i]) + S[j]. The
difference of two such costs, the older candidate's less the newer one's, does not decrease with j:
two candidates change places at most once. That is all that a Li Chao tree over the targets
needs, so inserting a candidate or asking for the best one costs O(log h). A second sweep in
decreasing order does the candidates with S[i] >= S[j].
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
def _cost(
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    key: cython.const[cython.double][::1],
) -> cython.double:
    """Cost of ending a group at j that began at i, but for the term that only depends on j."""
    return key[i] + (P[j] - P[i]) * (v[j - 1] - v[i])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _insert(
    candidate: cython.Py_ssize_t,
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    key: cython.const[cython.double][::1],
    owner: cython.longlong[::1],
) -> cython.void:
    """Offer a candidate to the tree over the targets [low, high); a node is its middle target."""
    middle: cython.Py_ssize_t
    rival: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        rival = owner[middle]
        if rival < 0:
            owner[middle] = candidate
            return
        if _cost(candidate, middle, v, P, key) < _cost(rival, middle, v, P, key):
            owner[middle] = candidate
            candidate, rival = rival, candidate
        # The loser in the middle can only win on one side: the newer one later, the older earlier.
        if candidate > rival:
            if _cost(candidate, high - 1, v, P, key) >= _cost(rival, high - 1, v, P, key):
                return
            low = middle + 1
        else:
            if _cost(candidate, low, v, P, key) >= _cost(rival, low, v, P, key):
                return
            high = middle


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _best(
    target: cython.Py_ssize_t,
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    key: cython.const[cython.double][::1],
    owner: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Return the cheapest candidate of the tree for one target, or -1 when there is none."""
    best: cython.Py_ssize_t = -1
    middle: cython.Py_ssize_t
    rival: cython.Py_ssize_t
    least: cython.double = 0.0
    cost: cython.double
    while low < high:
        middle = (low + high) // 2
        rival = owner[middle]
        if rival < 0:  # nodes fill from the root, so nothing lies below
            return best
        cost = _cost(rival, target, v, P, key)
        if best < 0 or cost < least:
            best = rival
            least = cost
        if target == middle:
            return best
        if target < middle:
            high = middle
        else:
            low = middle + 1
    return best


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sweep(
    start: cython.Py_ssize_t,
    middle: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    sign: cython.double,
    order: cython.const[cython.longlong][::1],
    v: cython.const[cython.double][::1],
    S: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    key: cython.double[::1],
    owner: cython.longlong[::1],
    D: cython.double[::1],
    previous: cython.longlong[::1],
) -> cython.void:
    """Let [start, middle) act on [middle, stop); sign 1: S[i] <= S[j], sign -1: S[i] >= S[j]."""
    t: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    best: cython.Py_ssize_t
    entered: cython.Py_ssize_t = 0
    cost: cython.double
    for t in range(middle, stop):
        owner[t] = -1
    for t in range(start, middle):
        key[t] = D[t] - sign * S[t]
    for t in range(middle, stop):
        j = order[t] if sign > 0.0 else order[middle + stop - 1 - t]
        while entered < middle - start:
            i = order[start + entered] if sign > 0.0 else order[middle - 1 - entered]
            if sign * S[i] > sign * S[j]:
                break
            _insert(i, middle, stop, v, P, key, owner)
            entered += 1
        best = _best(j, middle, stop, v, P, key, owner)
        if best >= 0:
            cost = _cost(best, j, v, P, key) + sign * S[j]
            if cost < D[j]:
                D[j] = cost
                previous[j] = best


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _split(
    start: cython.Py_ssize_t,
    middle: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    order: cython.longlong[::1],
    spare: cython.longlong[::1],
) -> cython.void:
    """Turn [start, stop) sorted by S into its two halves, each sorted by S."""
    t: cython.Py_ssize_t
    left: cython.Py_ssize_t = start
    right: cython.Py_ssize_t = middle
    for t in range(start, stop):
        spare[t] = order[t]
    for t in range(start, stop):
        if spare[t] < middle:
            order[left] = spare[t]
            left += 1
        else:
            order[right] = spare[t]
            right += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _merge(
    start: cython.Py_ssize_t,
    middle: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    S: cython.const[cython.double][::1],
    order: cython.longlong[::1],
    spare: cython.longlong[::1],
) -> cython.void:
    """Undo `_split`."""
    t: cython.Py_ssize_t
    left: cython.Py_ssize_t = start
    right: cython.Py_ssize_t = middle
    for t in range(start, stop):
        spare[t] = order[t]
    for t in range(start, stop):
        if right == stop or (left < middle and S[spare[left]] <= S[spare[right]]):
            order[t] = spare[left]
            left += 1
        else:
            order[t] = spare[right]
            right += 1


def solve(
    v: cython.const[cython.double][::1],
    S: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    order: cython.longlong[::1],
    done: cython.Py_ssize_t,
    limit: cython.double,
    D: cython.double[::1],
    previous: cython.longlong[::1],
) -> bool:
    """Complete D[j] and previous[j], the start of the last group before j, given up to `done`.

    `order` holds the positions 0 to n in increasing order of S; it is rearranged. All of D beyond
    `done` must be upper bounds, and may be infinite. Return False if D[n] turned out to be at least
    `limit` and the rest is left undone.
    """
    n: cython.Py_ssize_t = v.shape[0]
    leaf: cython.Py_ssize_t = 32
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    start: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    half: cython.Py_ssize_t = leaf
    oldest: cython.Py_ssize_t = 0  # from here on groups may cost less than the limit
    cost: cython.double
    key: cython.double[::1] = doubles(n + 1)
    owner: cython.longlong[::1] = integers(n + 1)
    spare: cython.longlong[::1] = integers(n + 1)
    with cython.nogil:
        while 2 * half <= n:
            half *= 2
        while start <= n:
            while half >= leaf:  # `half`: half the size of the largest rectangle still unsplit
                if start + half <= n:
                    _split(start, start + half, min(start + 2 * half, n + 1), order, spare)
                half //= 2
            stop = min(start + leaf, n + 1)
            for i in range(start, stop):
                for j in range(max(i, done) + 1, stop):
                    cost = D[i] + abs(S[j] - S[i]) + (P[j] - P[i]) * (v[j - 1] - v[i])
                    if cost < D[j]:
                        D[j] = cost
                        previous[j] = i
            start = stop
            while oldest < start <= n and _cost(oldest, start, v, P, D) >= limit:
                oldest += 1
            if oldest == start <= n:
                break
            if start <= n:
                half = leaf
                while start % (2 * half) == 0:
                    _merge(start - 2 * half, start - half, start, S, order, spare)
                    half *= 2
                stop = min(start + half, n + 1)
                if stop > done + 1:
                    _sweep(start - half, start, stop, 1.0, order, v, S, P, key, owner, D, previous)
                    _sweep(start - half, start, stop, -1.0, order, v, S, P, key, owner, D, previous)
                half //= 2
    return start > n
