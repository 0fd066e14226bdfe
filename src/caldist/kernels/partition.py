r"""Small exact partition problems: subsets, and the lattice of two sorted sequences.

``best_partition`` splits k points into groups of least total cost, the cost of every subset being
given: the best partition of a set S has a group T that contains the lowest point of S. O(3^k).

``lattice_distance`` is the distance to calibration of points of equal mass with labels 0 and 1 and
nothing that ties points together. Optimal groups are then consecutive in the sorted ones and in the
sorted zeros, so a partition is a path through the lattice of (ones used, zeros used). O(n1^2 n0^2).

``improve`` moves single points between groups while that lowers the cost.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels.arrays import doubles, integers


def best_partition(
    cost: cython.const[cython.double][::1], group: cython.longlong[::1], k: cython.Py_ssize_t
) -> float:
    """Return the least cost of a partition of k points; write its groups as bit sets.

    ``group[i]`` is the group that contains point i.
    """
    best: cython.double[::1] = doubles(1 << k)
    choice: cython.longlong[::1] = integers(1 << k)
    i: cython.Py_ssize_t
    whole: cython.longlong
    lowest: cython.longlong
    rest: cython.longlong
    part: cython.longlong
    with cython.nogil:
        best[0] = 0.0
        for i in range(1, best.shape[0]):
            whole = i
            lowest = whole & -whole
            rest = whole ^ lowest
            part = rest
            least = cost[whole]
            choice[i] = whole
            while part > 0:
                part = (part - 1) & rest
                candidate = cost[part | lowest] + best[rest ^ part]
                if candidate < least:
                    least = candidate
                    choice[i] = part | lowest
            best[i] = least
        whole = best.shape[0] - 1
        while whole > 0:
            part = choice[whole]
            for i in range(k):
                if (part >> i) & 1:
                    group[i] = part
            whole ^= part
    return best[best.shape[0] - 1]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _distance_to(
    target: cython.double,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    split: cython.Py_ssize_t,
    prefix: cython.const[cython.double][::1],
) -> cython.double:
    """Return the sum of |x - target| over sorted x[first:last]; ``split`` of all x lie below."""
    middle: cython.Py_ssize_t = split
    if middle < first:
        middle = first
    if middle > last:
        middle = last
    return (
        target * (2 * middle - first - last) + prefix[last] + prefix[first] - 2.0 * prefix[middle]
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _count_below(x: cython.const[cython.double][::1], target: cython.double) -> cython.Py_ssize_t:
    """Return how many of the sorted x are less than ``target``."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = x.shape[0]
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) >> 1
        if x[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


def lattice_distance(
    one: cython.const[cython.double][::1], zero: cython.const[cython.double][::1]
) -> float:
    """Return the least sum of |v - ybar of its group| over all partitions."""
    n1: cython.Py_ssize_t = one.shape[0]
    n0: cython.Py_ssize_t = zero.shape[0]
    width: cython.Py_ssize_t = n0 + 1
    prefix1: cython.double[::1] = doubles(n1 + 1)
    prefix0: cython.double[::1] = doubles(n0 + 1)
    # How many ones and zeros lie below p/(p+q), for every size p, q of a group.
    below1: cython.longlong[::1] = integers((n1 + 1) * width)
    below0: cython.longlong[::1] = integers((n1 + 1) * width)
    best: cython.double[::1] = doubles((n1 + 1) * width)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    p: cython.Py_ssize_t
    q: cython.Py_ssize_t
    at: cython.Py_ssize_t
    with cython.nogil:
        prefix1[0] = prefix0[0] = 0.0
        for i in range(n1):
            prefix1[i + 1] = prefix1[i] + one[i]
        for j in range(n0):
            prefix0[j + 1] = prefix0[j] + zero[j]
        for p in range(n1 + 1):
            for q in range(n0 + 1):
                if p + q == 0:
                    continue
                target = (1.0 * p) / (p + q)
                below1[p * width + q] = _count_below(one, target)
                below0[p * width + q] = _count_below(zero, target)
        best[0] = 0.0
        for i in range(n1 + 1):
            for j in range(n0 + 1):
                if i + j == 0:
                    continue
                least = 1.0 + i + j
                for p in range(i + 1):
                    for q in range(j + 1):
                        if p + q == 0:
                            continue
                        candidate = best[(i - p) * width + j - q]
                        if candidate >= least:
                            continue
                        at = p * width + q
                        target = (1.0 * p) / (p + q)
                        candidate += _distance_to(target, i - p, i, below1[at], prefix1)
                        candidate += _distance_to(target, j - q, j, below0[at], prefix0)
                        if candidate < least:
                            least = candidate
                best[i * width + j] = least
    return best[(n1 + 1) * width - 1]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _group_cost(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    ones: cython.const[cython.double][::1],
    group: cython.longlong[::1],
    which: cython.longlong,
) -> cython.double:
    """Return the sum of mass |v - ybar| over one group."""
    i: cython.Py_ssize_t
    weight: cython.double = 0.0
    one: cython.double = 0.0
    cost: cython.double = 0.0
    for i in range(v.shape[0]):
        if group[i] == which:
            weight += mass[i]
            one += ones[i]
    if weight <= 0.0:
        return 0.0
    for i in range(v.shape[0]):
        if group[i] == which:
            cost += mass[i] * abs(v[i] - one / weight)
    return cost


def improve(
    v: cython.const[cython.double][::1],
    mass: cython.const[cython.double][::1],
    ones: cython.const[cython.double][::1],
    group: cython.longlong[::1],
    groups: cython.Py_ssize_t,
    rounds: cython.Py_ssize_t,
) -> None:
    """Move single points to the group where they cost least, for at most so many rounds.

    ``group`` holds numbers below ``groups``; unused ones among them let a point stand alone.
    """
    cost: cython.double[::1] = doubles(groups)
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    own: cython.Py_ssize_t
    best: cython.Py_ssize_t
    moved: cython.bint
    with cython.nogil:
        for k in range(groups):
            cost[k] = _group_cost(v, mass, ones, group, k)
        moved = True
        while moved and rounds > 0:
            rounds -= 1
            moved = False
            for i in range(v.shape[0]):
                own = group[i]
                best = own
                group[i] = -1
                without = _group_cost(v, mass, ones, group, own)
                largest = 1e-15
                for k in range(groups):
                    if k == own:
                        continue
                    group[i] = k
                    gain = cost[own] - without + cost[k] - _group_cost(v, mass, ones, group, k)
                    if gain > largest:
                        largest = gain
                        best = k
                group[i] = best
                if best != own:
                    cost[own] = without
                    cost[best] = _group_cost(v, mass, ones, group, best)
                    moved = True
