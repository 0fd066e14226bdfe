"""Interval calibration error: the best grouping of sorted points into intervals, exactly.

Notation: n points; position j stands for the gap after the first j points; S and P are the sums of
residuals and of masses of the first j points; D[j] is the least cost of grouping them,

    D[j] = min over i < j of  D[i] + |S[j] - S[i]| + w(i, j),
    w(i, j) = (P[j] - P[i]) (v[j-1] - v[i]).

Two methods share the work. A search is close to linear on ordinary data, with no guarantee; it
counts its steps, and when they exceed a multiple of the points done, a safe method takes over from
there, in O(n log² n) whatever the data. Space is O(n).

Both stop early if asked whether the cost is below a limit, and it is not. Whatever j is the first
end of a group beyond the positions done, that group costs at least what its width did at the next
position. Once D[i] and that reach the limit for every i done, so does all that follows.

**The search** takes targets j in blocks of 32. For a whole block most candidates i can be dropped
at once, because of two facts about a candidate i and a newer one r. (a) w(i, j) - w(r, j) does not
decrease with j. (b) |x - S[i]| - |x - S[r]| is monotone in x. So r is as good as i in the whole
block if it is so with w taken at the block's first target and x at both ends of the block's range
of S; for i to be as good as r, w is taken at the last target. Candidates with S below the range (or
above it) form a class in which x cancels: there the best candidate moves forward with j, from the
best one at the first target to the best one at the last. Old candidates are the leaves of a binary
tree whose nodes bound D[i] - S[i], D[i] + S[i] and S[i]: the same tests drop whole subtrees.

**The safe method** solves positions in leaves of a fixed size from left to right. Once the
positions before m are known, they act on later ones in whole rectangles: [m - h, m) acts on
[m, m + h), where h is the largest power of two (times the leaf) that divides m. Each pair of
positions from different leaves meets in exactly one such rectangle. Inside a rectangle a sweep over
S in increasing order meets each target after the candidates with S[i] <= S[j], for which the cost
is (D[i] - S[i]) + w(i, j) + S[j]. By (a) two candidates change places at most once. That is all
that a Li Chao tree over the targets needs, so inserting a candidate or asking for the best one
costs O(log h). A second sweep in decreasing order does the candidates with S[i] >= S[j].
"""

from __future__ import annotations

from math import inf

import numpy as np

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels.arrays import doubles, integers, prefix_sums


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _width(
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
) -> cython.double:
    """Return w(i, j)."""
    return (P[j] - P[i]) * (v[j - 1] - v[i])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _keyed(
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    key: cython.const[cython.double][::1],
) -> cython.double:
    """Return w(i, j) and what the candidate i brings along."""
    return key[i] + _width(i, j, v, P)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _cost(
    i: cython.Py_ssize_t,
    j: cython.Py_ssize_t,
    x: cython.double,
    v: cython.const[cython.double][::1],
    S: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    D: cython.const[cython.double][::1],
) -> cython.double:
    """Cost of a last group from i to j, were S[j] equal to x."""
    return D[i] + abs(x - S[i]) + _width(i, j, v, P)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _class(s: cython.double, low: cython.double, high: cython.double) -> cython.Py_ssize_t:
    """0: never above the block's range of S; 1: never below; -1: neither."""
    return 0 if s <= low else 1 if s >= high else -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _compete(
    i: cython.Py_ssize_t,
    head: cython.Py_ssize_t,
    tail: cython.Py_ssize_t,
    low: cython.double,
    high: cython.double,
    v: cython.const[cython.double][::1],
    S: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    D: cython.const[cython.double][::1],
    best: cython.longlong[::1],
    least: cython.double[::1],
) -> cython.bint:
    """Note i if it is the best of its class at the first or last target; False: it has no class."""
    kind: cython.Py_ssize_t = _class(S[i], low, high)
    if kind < 0:
        return False
    cost = _cost(i, head, S[head], v, S, P, D)
    if cost < least[2 * kind]:
        least[2 * kind] = cost
        best[2 * kind] = i
    cost = _cost(i, tail, S[tail], v, S, P, D)
    if cost < least[2 * kind + 1]:
        least[2 * kind + 1] = cost
        best[2 * kind + 1] = i
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _explore(
    number: cython.Py_ssize_t,
    head: cython.Py_ssize_t,
    tail: cython.Py_ssize_t,
    low: cython.double,
    high: cython.double,
    size: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
    S: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    D: cython.const[cython.double][::1],
    bound: cython.const[cython.double][::1],
    stack: cython.longlong[::1],
    best: cython.longlong[::1],
    least: cython.double[::1],
    rival: cython.double[::1],
    chosen: cython.longlong[::1],
    work: cython.double[::1],
) -> cython.Py_ssize_t:
    """Complete `best` over the first `number` leaves; collect promising candidates of no class.

    Candidates come newest first, so that any one seen may serve to drop the later ones. Two do: the
    best so far, and the best so far with S in the same quarter of the range, which is more alike.
    Return the number collected.
    """
    block: cython.Py_ssize_t = 32
    i: cython.Py_ssize_t
    node: cython.Py_ssize_t
    leaf: cython.Py_ssize_t
    leaves: cython.Py_ssize_t
    newest: cython.Py_ssize_t
    kind: cython.Py_ssize_t
    part: cython.Py_ssize_t
    depth: cython.Py_ssize_t
    rest: cython.Py_ssize_t = number
    count: cython.Py_ssize_t = 0
    at_head = 0.0
    at_tail = 0.0
    best_low = _cost(head - 1, head, low, v, S, P, D)
    best_high = _cost(head - 1, head, high, v, S, P, D)
    half = (low + high) / 2
    first_quarter = (low + half) / 2
    last_quarter = (half + high) / 2
    while rest > 0:  # the complete subtrees are the binary digits of `number`, newest first
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
            newest = (leaf + leaves) * block - 1
            work[0] += 4.0
            width_cost = _width(newest, head, v, P)
            at_low = max(bound[4 * node] + low, bound[4 * node + 1] - low) + width_cost
            at_high = max(bound[4 * node] + high, bound[4 * node + 1] - high) + width_cost
            if at_low >= best_low and at_high >= best_high:
                continue
            kind = -1
            if bound[4 * node + 3] >= -low:
                kind = 0
                at_head = bound[4 * node] + S[head]
                at_tail = bound[4 * node] + S[tail]
            elif bound[4 * node + 2] >= high:
                kind = 1
                at_head = bound[4 * node + 1] - S[head]
                at_tail = bound[4 * node + 1] - S[tail]
            if kind >= 0:
                at_head += width_cost
                at_tail += _width(newest, tail, v, P)
                if at_head >= least[2 * kind] and at_tail >= least[2 * kind + 1]:
                    continue
            if leaves > 1:
                leaves //= 2
                stack[depth + 1] = leaves
                stack[depth + 2] = leaf + leaves
                stack[depth + 3] = leaves
                depth += 4
                continue
            work[0] += 32.0
            for i in range(newest, newest - block, -1):
                at_low = _cost(i, head, low, v, S, P, D)
                at_high = _cost(i, head, high, v, S, P, D)
                if at_low >= best_low and at_high >= best_high:
                    continue
                if at_low + at_high < best_low + best_high:
                    best_low = at_low
                    best_high = at_high
                part = 2 * ((S[i] > first_quarter) + (S[i] > half) + (S[i] > last_quarter))
                if at_low >= rival[part] and at_high >= rival[part + 1]:
                    continue
                if at_low + at_high < rival[part] + rival[part + 1]:
                    rival[part] = at_low
                    rival[part + 1] = at_high
                if _compete(i, head, tail, low, high, v, S, P, D, best, least):
                    continue
                chosen[count] = i
                count += 1
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_classes(
    count: cython.Py_ssize_t,
    head: cython.Py_ssize_t,
    tail: cython.Py_ssize_t,
    low: cython.double,
    high: cython.double,
    v: cython.const[cython.double][::1],
    S: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    D: cython.const[cython.double][::1],
    best: cython.const[cython.longlong][::1],
    chosen: cython.longlong[::1],
    work: cython.double[::1],
) -> cython.Py_ssize_t:
    """Add those of each class that may be best within the block; return how many are chosen now."""
    i: cython.Py_ssize_t
    kind: cython.Py_ssize_t
    first: cython.Py_ssize_t
    last: cython.Py_ssize_t
    for kind in range(2):
        first = best[2 * kind]
        if first < 0:
            continue
        last = max(best[2 * kind + 1], first)  # smaller only if both are equally good throughout
        work[0] += last - first
        last_at_head = _cost(last, head, S[head], v, S, P, D)
        first_at_tail = _cost(first, tail, S[tail], v, S, P, D)
        for i in range(first, min(last + 1, head - 1)):  # head - 1 belongs to the block itself
            if _class(S[i], low, high) != kind:
                continue
            if i < last and _cost(i, head, S[head], v, S, P, D) >= last_at_head:
                continue
            if first < i < last and _cost(i, tail, S[tail], v, S, P, D) >= first_at_tail:
                continue
            chosen[count] = i
            count += 1
    work[0] += 32.0 * count
    return count


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _offer(
    i: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    v: cython.const[cython.double][::1],
    S: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    D: cython.double[::1],
    previous: cython.longlong[::1],
    trial: cython.double[::1],
) -> cython.void:
    """Offer the candidate i to the targets first to last."""
    j: cython.Py_ssize_t
    index: cython.longlong = i
    origin: cython.longlong
    d = D[i]
    s = S[i]
    p = P[i]
    start = v[i]
    # Each loop makes one choice, so that compilers do several targets at once; two choices in one
    # loop become a branch.
    for j in range(first, last + 1):
        cost = d + abs(S[j] - s) + (P[j] - p) * (v[j - 1] - start)
        trial[j - first] = cost
        origin = previous[j]
        previous[j] = index if cost < D[j] else origin
    for j in range(first, last + 1):
        cost = trial[j - first]
        least = D[j]
        D[j] = cost if cost < least else least


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_leaf(
    number: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    S: cython.const[cython.double][::1],
    D: cython.const[cython.double][::1],
    bound: cython.double[::1],
) -> cython.void:
    """Enter a finished block into the tree; bounds: least D - S, D + S, S and -S."""
    block: cython.Py_ssize_t = 32
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    node: cython.Py_ssize_t = size + number
    down = D[number * block] - S[number * block]
    up = D[number * block] + S[number * block]
    low = S[number * block]
    high = low
    for i in range(number * block + 1, (number + 1) * block):
        down = min(down, D[i] - S[i])
        up = min(up, D[i] + S[i])
        low = min(low, S[i])
        high = max(high, S[i])
    bound[4 * node] = down
    bound[4 * node + 1] = up
    bound[4 * node + 2] = low
    bound[4 * node + 3] = -high
    while node & 1:  # the right child completes its parent
        node //= 2
        for k in range(4):
            bound[4 * node + k] = min(bound[8 * node + k], bound[8 * node + 4 + k])


def _search(
    v: cython.const[cython.double][::1],
    S: cython.const[cython.double][::1],
    P: cython.const[cython.double][::1],
    allowance: cython.double,
    limit: cython.double,
    D: cython.double[::1],
    previous: cython.longlong[::1],
) -> int:
    """Write D[j] and in previous[j] where the last group begins; return the last j done.

    It is less than n if the work exceeds `allowance` evaluations of the cost for each point, and
    -1 if D[n] turns out to be at least `limit`.
    """
    n: cython.Py_ssize_t = v.shape[0]
    block: cython.Py_ssize_t = 32
    size: cython.Py_ssize_t = 1
    done: cython.Py_ssize_t = 0
    oldest: cython.Py_ssize_t = 0  # from here on groups may cost less than the limit
    number: cython.Py_ssize_t
    head: cython.Py_ssize_t
    tail: cython.Py_ssize_t
    count: cython.Py_ssize_t
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    infinity: cython.double = inf
    while size * block < n:
        size *= 2
    bound: cython.double[::1] = doubles(8 * size)
    stack: cython.longlong[::1] = integers(2 * 64)
    chosen: cython.longlong[::1] = integers(n + 1)
    # For both classes in turn, the best candidate at the first and at the last target of the block.
    best: cython.longlong[::1] = integers(4)
    least: cython.double[::1] = doubles(4)
    rival: cython.double[::1] = doubles(8)
    trial: cython.double[::1] = doubles(block)
    work: cython.double[::1] = doubles(1)
    with cython.nogil:
        work[0] = 0.0
        for i in range(n + 1):
            D[i] = infinity
            previous[i] = 0
        D[0] = 0.0
        for number in range((n + block - 1) // block):
            head = number * block + 1
            tail = min(head + block - 1, n)
            low = high = S[head]
            for i in range(head + 1, tail + 1):
                low = min(low, S[i])
                high = max(high, S[i])
            for k in range(4):
                best[k] = -1
                least[k] = infinity
            for k in range(8):
                rival[k] = infinity
            # Start from two candidates that tend to be good: most subtrees then fail at once.
            _compete(head - 1, head, tail, low, high, v, S, P, D, best, least)
            _compete(previous[head - 1], head, tail, low, high, v, S, P, D, best, least)
            count = _explore(
                number, head, tail, low, high, size,
                v, S, P, D, bound, stack, best, least, rival, chosen, work,
            )  # fmt: skip
            count = _add_classes(count, head, tail, low, high, v, S, P, D, best, chosen, work)
            for k in range(count):
                _offer(chosen[k], head, tail, v, S, P, D, previous, trial)
            for i in range(head - 1, tail):
                _offer(i, i + 1, tail, v, S, P, D, previous, trial)
            done = tail
            if tail < n:
                _add_leaf(number, size, S, D, bound)
                while oldest <= done and _keyed(oldest, done + 1, v, P, D) >= limit:
                    oldest += 1
                if oldest > done:
                    done = -1
                    break
            if work[0] > allowance * (done + 1024.0):
                break
    return done


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
        if _keyed(candidate, middle, v, P, key) < _keyed(rival, middle, v, P, key):
            owner[middle] = candidate
            candidate, rival = rival, candidate
        # The loser in the middle can only win on one side: the newer one later, the older earlier.
        if candidate > rival:
            if _keyed(candidate, high - 1, v, P, key) >= _keyed(rival, high - 1, v, P, key):
                return
            low = middle + 1
        else:
            if _keyed(candidate, low, v, P, key) >= _keyed(rival, low, v, P, key):
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
    least = 0.0
    while low < high:
        middle = (low + high) // 2
        rival = owner[middle]
        if rival < 0:  # nodes fill from the root, so nothing lies below
            return best
        cost = _keyed(rival, target, v, P, key)
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
            cost = _keyed(best, j, v, P, key) + sign * S[j]
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


def _solve_safely(
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
                    cost = _cost(i, j, S[j], v, S, P, D)
                    if cost < D[j]:
                        D[j] = cost
                        previous[j] = i
            start = stop
            while oldest < start <= n and _keyed(oldest, start, v, P, D) >= limit:
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


def _read_off(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    residual: cython.const[cython.double][::1],
    previous: cython.const[cython.longlong][::1],
    first: cython.longlong[::1],
) -> tuple[float, int]:
    """Follow `previous` back from the last point; write the groups' first points, sum the cost."""
    n: cython.Py_ssize_t = v.shape[0]
    groups: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    j: cython.Py_ssize_t = n
    value: cython.double = 0.0
    bias: cython.double
    weight: cython.double
    with cython.nogil:
        while j > 0:
            bias = 0.0
            weight = 0.0
            for i in range(previous[j], j):
                bias += residual[i]
                weight += mass[i]
            value += abs(bias) + weight * (v[j - 1] - v[previous[j]])
            j = previous[j]
            groups += 1
            first[n - groups] = j
        for k in range(groups):
            first[k] = first[n - groups + k]
    return value, groups


def _partition(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    residual: cython.const[cython.double][::1],
    allowance: float,
    limit: float,
    first: cython.longlong[::1],
) -> tuple[float, int]:
    """Search as far as the allowance goes and do the rest safely.

    An allowance below 0 leaves the search its first block.
    """
    n = v.shape[0]
    S = memoryview(prefix_sums(residual))
    P = memoryview(prefix_sums(mass))
    D = doubles(n + 1)
    previous = integers(n + 1)
    done = _search(v, S, P, allowance, limit, D, previous)
    if 0 <= done < n:
        order = np.argsort(S).astype(np.int64, copy=False)
        if not _solve_safely(v, S, P, memoryview(order), done, limit, D, previous):
            done = -1
    if done < 0:
        return inf, 0
    return _read_off(v, mass, residual, previous, first)


def interval_partition(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    residual: cython.const[cython.double][::1],
    limit: float,
    first: cython.longlong[::1],
) -> tuple[float, int]:
    """Minimise the sum over contiguous groups of |sum of residuals| + mass * width.

    Write the index of the first point of each group into `first`, in increasing order; return the
    cost of that grouping and the number of groups. If the cost is at least `limit`, this may be
    infinity and 0 instead.
    """
    # The safe method takes about as long as 300 evaluations of the cost for each point.
    return _partition(v, mass, residual, 300.0, limit, first)
