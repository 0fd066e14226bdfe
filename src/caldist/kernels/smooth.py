r"""The smooth calibration error, exactly, in O(n log n).

Notation: v the sorted distinct predictions, c their residual masses, S_i = c_1 + ... + c_i,
T = S_n, d_i = v_{i+1} - v_i. By linear programming duality

    smCE = |T| + min over monotone x from 0 to T of sum_i d_i |S_i - x_i|,

a weighted L1 isotonic regression of the prefix sums clipped to [0, T]. One pass solves it with a
priority queue of weighted keys: step i pushes the key S_i with weight 2 d_i and takes weight d_i
off the largest keys, paying for the way down to S_i.

Neighbouring prefix sums are close, so a new key nearly always lands close to the largest one. The
queue is therefore a sorted stack, into which a key is inserted if it belongs within the eight
topmost, and a binary heap for the few that belong deeper: O(log n) a step whatever the data do.
Two keys need no queue: weight at 0, the least key, is never missed, and weight at T, the greatest,
is one number.

Many steps can be split at levels first: before some step the best x is at most that, and then at
least. Each side is a regression of its own, between 0 and the level or the level and T.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels.arrays import doubles


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _heap_push(
    key: cython.double[::1],
    weight: cython.double[::1],
    size: cython.Py_ssize_t,
    a: cython.double,
    w: cython.double,
) -> cython.void:
    """Insert (a, w) into the max-heap of ``size`` items."""
    i: cython.Py_ssize_t = size
    parent: cython.Py_ssize_t
    while i > 0:
        parent = (i - 1) >> 1
        if key[parent] >= a:
            break
        key[i] = key[parent]
        weight[i] = weight[parent]
        i = parent
    key[i] = a
    weight[i] = w


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _heap_drop(
    key: cython.double[::1], weight: cython.double[::1], size: cython.Py_ssize_t
) -> cython.void:
    """Remove the root of the max-heap of ``size`` items."""
    i: cython.Py_ssize_t = 0
    child: cython.Py_ssize_t
    last: cython.Py_ssize_t = size - 1
    a = key[last]
    w = weight[last]
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and key[child + 1] > key[child]:
            child += 1
        if key[child] <= a:
            break
        key[i] = key[child]
        weight[i] = weight[child]
        i = child
    key[i] = a
    weight[i] = w


def smooth_ce(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    curve: cython.double[::1],
) -> float:
    """Return smCE; fill ``curve``, where it has length n and not 0, with the dual curve.

    ``curve[i]`` is the optimal x between v_i and v_{i+1}, and ``curve[n-1]`` is T.
    """
    n: cython.Py_ssize_t = v.shape[0]
    work: cython.double[::1] = doubles(4 * n)
    with cython.nogil:
        value = _smooth_ce(
            v, c, curve, 0, n, work[:n], work[n : 2 * n], work[2 * n : 3 * n], work[3 * n :]
        )
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _smooth_ce(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    curve: cython.double[::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    stack_key: cython.double[::1],
    stack_weight: cython.double[::1],
    heap_key: cython.double[::1],
    heap_weight: cython.double[::1],
) -> cython.double:
    """Return smCE of the predictions from ``first`` up to ``last``; the rest is work space."""
    i: cython.Py_ssize_t
    total = 0.0
    for i in range(first, last):
        total += c[i]
    sign = 1.0 if total >= 0.0 else -1.0
    total *= sign
    value = total + _regress(
        v, c, curve, first, last - 1, 0.0, sign, 0.0, total,
        stack_key, stack_weight, heap_key, heap_weight,
    )  # fmt: skip
    if curve.shape[0] > 0:
        # The tops of the queue become the best curve: what is taken off later is not above it.
        top = total
        curve[last - 1] = total
        for i in range(last - 1, first - 1, -1):
            top = curve[i] if curve[i] < top else top
            curve[i] = sign * top
    return value


def split(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    prefix: cython.double,
    sign: cython.double,
    level: cython.const[cython.double][::1],
    cost: cython.double[::1],
    most: cython.double[::1],
    before: cython.double[::1],
    at: cython.longlong[::1],
) -> int:
    """Find the step before which some best x is at most a level, and from which at least.

    Steps go from ``first`` up to ``last``, and ``prefix`` is the sum of what comes before. Moving
    x_i up from the level costs d_i if sign S_i is not above it, and gains d_i otherwise. An end of
    steps which moves up together is best where that costs least: if it was not so for some x,
    moving what is on the wrong side of the level to it would cost nothing. That is the step ``at``
    which the costs have added up to the ``most``, and what is ``before`` it adds up to that.

    So for ``level[1]``, ``level[2]`` and ``level[3]``, with the ``cost`` of all steps. Returns how
    many keys lie between ``level[0]`` and ``level[4]``.
    """
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    inside: cython.Py_ssize_t = 0
    low = level[0]
    level1 = level[1]
    level2 = level[2]
    level3 = level[3]
    high = level[4]
    cost1 = 0.0
    cost2 = 0.0
    cost3 = 0.0
    most1 = 0.0
    most2 = 0.0
    most3 = 0.0
    with cython.nogil:
        for k in range(3):
            before[k] = prefix
            at[k] = first
        for i in range(first, last):
            d = v[i + 1] - v[i]
            prefix += c[i]
            a = sign * prefix
            inside += (a > low) & (a < high)
            cost1 += d if a <= level1 else -d
            cost2 += d if a <= level2 else -d
            cost3 += d if a <= level3 else -d
            if cost1 > most1:
                most1 = cost1
                at[0] = i + 1
                before[0] = prefix
            if cost2 > most2:
                most2 = cost2
                at[1] = i + 1
                before[1] = prefix
            if cost3 > most3:
                most3 = cost3
                at[2] = i + 1
                before[2] = prefix
        cost[0] = cost1
        cost[1] = cost2
        cost[2] = cost3
        most[0] = most1
        most[1] = most2
        most[2] = most3
    return inside


def regress(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    prefix: cython.double,
    sign: cython.double,
    low: cython.double,
    high: cython.double,
) -> float:
    """Return the least cost of a monotone x between ``low`` and ``high``, over some steps."""
    n: cython.Py_ssize_t = last - first
    work: cython.double[::1] = doubles(4 * n)
    with cython.nogil:
        value = _regress(
            v, c, work[:0], first, last, prefix, sign, low, high,
            work[:n], work[n : 2 * n], work[2 * n : 3 * n], work[3 * n :],
        )  # fmt: skip
    return value


def smooth_ce_of_each(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    start: cython.const[cython.longlong][::1],
    out: cython.double[::1],
) -> None:
    """Write smCE of each of several samples side by side, the k-th from ``start[k]`` on.

    ``start`` has one entry more than there are samples, the length of v.
    """
    most: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    for k in range(out.shape[0]):
        most = max(most, start[k + 1] - start[k])
    work: cython.double[::1] = doubles(4 * most)
    keys: cython.double[::1] = work[:most]
    weights: cython.double[::1] = work[most : 2 * most]
    deep_keys: cython.double[::1] = work[2 * most : 3 * most]
    deep_weights: cython.double[::1] = work[3 * most :]
    none: cython.double[::1] = work[:0]
    with cython.nogil:
        for k in range(out.shape[0]):
            out[k] = _smooth_ce(
                v, c, none, start[k], start[k + 1], keys, weights, deep_keys, deep_weights
            )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _regress(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    curve: cython.double[::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    prefix: cython.double,
    sign: cython.double,
    low: cython.double,
    high: cython.double,
    stack_key: cython.double[::1],
    stack_weight: cython.double[::1],
    heap_key: cython.double[::1],
    heap_weight: cython.double[::1],
) -> cython.double:
    """Return the least sum of d_i |sign S_i - x_i| of monotone x from ``low`` to ``high``.

    Steps go from ``first`` up to ``last``, and ``prefix`` is the sum of what comes before. The tops
    of the queue go into ``curve``; the rest is work space.
    """
    depth: cython.Py_ssize_t = 8
    stack: cython.Py_ssize_t = 0
    heap: cython.Py_ssize_t = 0
    ceiling = 0.0  # the weight at the key ``high``
    keep_curve: cython.bint = curve.shape[0] > 0
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    value = 0.0
    from_heap: cython.bint

    for i in range(first, last):
        d = v[i + 1] - v[i]
        prefix += c[i]
        a = sign * prefix
        if a >= high:
            value += d * (a - high)
            ceiling += d
            top = high
        else:
            if a < low:
                value += d * (low - a)
                a = low
            left = d
            top = a
            if ceiling > 0.0:
                taken = left if left < ceiling else ceiling
                value += taken * (high - a)
                ceiling -= taken
                left -= taken
                if ceiling > 0.0:
                    top = high
            while left > 0.0:
                from_heap = heap > 0 and (stack == 0 or heap_key[0] > stack_key[stack - 1])
                if from_heap:
                    if heap_key[0] <= a:
                        break
                    taken = left if left < heap_weight[0] else heap_weight[0]
                    value += taken * (heap_key[0] - a)
                    heap_weight[0] -= taken
                    if heap_weight[0] <= 0.0:
                        _heap_drop(heap_key, heap_weight, heap)
                        heap -= 1
                else:
                    if stack == 0 or stack_key[stack - 1] <= a:
                        break
                    taken = left if left < stack_weight[stack - 1] else stack_weight[stack - 1]
                    value += taken * (stack_key[stack - 1] - a)
                    stack_weight[stack - 1] -= taken
                    if stack_weight[stack - 1] <= 0.0:
                        stack -= 1
                left -= taken
            if a > low:
                # What larger keys did not give comes off the new one: 2d - left of it stay.
                j = stack
                while j > 0 and stack_key[j - 1] > a and stack - j < depth:
                    j -= 1
                if j > 0 and stack_key[j - 1] > a:
                    _heap_push(heap_key, heap_weight, heap, a, 2.0 * d - left)
                    heap += 1
                elif j > 0 and stack_key[j - 1] == a:
                    stack_weight[j - 1] += 2.0 * d - left
                else:
                    for k in range(stack, j, -1):
                        stack_key[k] = stack_key[k - 1]
                        stack_weight[k] = stack_weight[k - 1]
                    stack_key[j] = a
                    stack_weight[j] = 2.0 * d - left
                    stack += 1
            if keep_curve and ceiling == 0.0:
                if stack > 0 and stack_key[stack - 1] > top:
                    top = stack_key[stack - 1]
                if heap > 0 and heap_key[0] > top:
                    top = heap_key[0]
        if keep_curve:
            curve[i] = top
    return value


def smooth_ce_bound(
    v: cython.const[cython.double][::1], c: cython.const[cython.double][::1]
) -> float:
    """Return an upper bound on smCE: the cost of one monotone curve, not of the best.

    The curve is the running maximum of the prefix sums, clipped to [0, T]. There is nothing to
    branch on, which makes it many times as fast.
    """
    n: cython.Py_ssize_t = v.shape[0]
    i: cython.Py_ssize_t
    total: cython.double = 0.0
    prefix: cython.double = 0.0
    curve: cython.double = 0.0
    value: cython.double
    with cython.nogil:
        for i in range(n):
            total += c[i]
        sign = 1.0 if total >= 0.0 else -1.0
        total *= sign
        value = total
        for i in range(n - 1):
            prefix += sign * c[i]
            curve = max(curve, min(prefix, total))
            value += (v[i + 1] - v[i]) * abs(prefix - curve)
    return value


def witness(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    curve: cython.const[cython.double][::1],
    w: cython.double[::1],
) -> None:
    """Write a 1-Lipschitz w into [-1, 1] with sum_i c_i w_i = smCE, from the dual curve."""
    n: cython.Py_ssize_t = v.shape[0]
    work: cython.double[::1] = doubles(3 * n)
    with cython.nogil:
        _witness(v, c, curve, work[:n], work[n : 2 * n], work[2 * n :], w)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _witness(
    v: cython.const[cython.double][::1],
    c: cython.const[cython.double][::1],
    curve: cython.const[cython.double][::1],
    low: cython.double[::1],
    high: cython.double[::1],
    slope: cython.double[::1],
    w: cython.double[::1],
) -> cython.void:
    """Write the witness of a curve.

    Optimality asks, in the sign of T, for w = 1 where the curve x jumps, and for a step of -d_i
    where S_i > x_i and +d_i where S_i < x_i; elsewhere a step is free in [-d_i, d_i]. A pass
    forward finds the interval of values that the past allows, one back picks values within it.
    """
    n: cython.Py_ssize_t = v.shape[0]
    i: cython.Py_ssize_t
    total = 0.0
    prefix = 0.0
    before = 0.0
    least = -1.0
    most = 1.0
    for i in range(n):
        total += c[i]
    sign = 1.0 if total >= 0.0 else -1.0
    for i in range(n):
        prefix += c[i]
        x = sign * curve[i]
        if x > before:
            least = most = 1.0
        before = x
        low[i] = least
        high[i] = most
        if i == n - 1:
            break
        d = v[i + 1] - v[i]
        # The curve takes its values from these same sums, so equality is exact.
        slope[i] = -1.0 if sign * prefix > x else (1.0 if sign * prefix < x else 0.0)
        if slope[i] == 0.0:
            least -= d
            most += d
        else:
            least += slope[i] * d
            most += slope[i] * d
        least = max(least, -1.0)
        most = min(most, 1.0)
    # Of all optimal witnesses take one close to 0: it speaks only where it must.
    x = min(max(0.0, low[n - 1]), high[n - 1])
    w[n - 1] = sign * x
    for i in range(n - 2, -1, -1):
        x -= slope[i] * (v[i + 1] - v[i])
        if slope[i] == 0.0:
            # Any value that the next one can be reached from, again close to 0.
            d = v[i + 1] - v[i]
            low[i] = max(low[i], x - d)
            high[i] = min(high[i], x + d)
            x = 0.0
        x = min(max(x, low[i]), high[i])
        w[i] = sign * x
