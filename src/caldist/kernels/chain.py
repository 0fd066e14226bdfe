r"""Least squares on a chain whose steps are bounded, exactly.

Minimise sum_i w_i (x_i - t_i)^2 over low_i <= x_{i+1} - x_i <= high_i. An upper bound may be
infinite: with lower bounds of 0 and no upper ones this is isotonic regression.

Let f_i(x) be the least cost of the first i terms with x_i = x, and z_i where it is least. Half its
derivative is increasing, continuous and piecewise linear. From i to i + 1 the part left of z_i
moves by low_i, the part right of it by high_i, and w (x - t) is added. So two stacks hold where the
derivative bends, to the left and to the right of z_i, nearest on top; z moves outwards over their
tops until the derivative is 0, and what it passes changes stacks. Then, from the end, x_i is z_i
clipped to what x_{i+1} allows.

A step may pass nearly all bends, and passes many where predictions lie close together. So bends
lie in chunks, in the order of their positions, and a chunk that is passed whole changes stacks as
it is: the sums of its bends, and of bend times position, give the derivative at its far end. All
chunks but the topmost ones are at least half full. With room for c bends in a chunk a step costs
O(c) and what the chunks cost that it passes, n / c at most. Where predictions are spread a step
passes about n^(1/3) bends, where all lie in a narrow range √n, and 64 is a good c. Data can be made
that pass half of all bends at every step. So where more than c chunks a step are passed, all
starts anew with chunks four times as large, until c is √n: O(n√n) in the worst case.

Positions are relative to the sums of the lower bounds, so that the left part never moves. Those in
a chunk are relative to its shift, those of the right stack to one common offset also, which returns
to 0 when it exceeds the range of the targets: rounding is relative to that range. The sums of a
chunk are updated a few times and then made anew. Slopes are sums of weights, with the rounding of
the largest of these.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels.arrays import doubles, integers


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _room(
    side: cython.Py_ssize_t,
    capacity: cython.Py_ssize_t,
    at: cython.double[::1],
    bend: cython.double[::1],
    first: cython.longlong[::1],
    last: cython.longlong[::1],
    stack: cython.longlong[::1],
    height: cython.longlong[::1],
    spare: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Return a chunk on top of a stack that has room towards z: the old top, or a new one.

    ``height[2]`` counts the spare chunks.
    """
    most: cython.Py_ssize_t = first.shape[0]
    c: cython.Py_ssize_t
    k: cython.Py_ssize_t
    size: cython.Py_ssize_t
    start: cython.Py_ssize_t
    if height[side] > 0:
        c = stack[side * most + height[side] - 1]
        size = last[c] - first[c]
        if 2 * size < capacity:  # it slides to its other end
            if side == 0:
                start = c * capacity
                for k in range(size):
                    at[start + k] = at[first[c] + k]
                    bend[start + k] = bend[first[c] + k]
            else:
                start = (c + 1) * capacity - size
                for k in range(size - 1, -1, -1):
                    at[start + k] = at[first[c] + k]
                    bend[start + k] = bend[first[c] + k]
            first[c] = start
            last[c] = start + size
            return c
    height[2] -= 1
    c = spare[height[2]]
    first[c] = last[c] = c * capacity if side == 0 else (c + 1) * capacity
    stack[side * most + height[side]] = c
    height[side] += 1
    return c


def fit(
    weight: cython.const[cython.double][::1],
    target: cython.const[cython.double][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    fitted: cython.double[::1],
) -> None:
    """Write the minimiser into ``fitted``.

    Weights are positive, ``low`` and ``high`` have one bound for each of the n - 1 steps, low is
    finite and not above high. About 100 bytes of work space for each of the n terms.
    """
    capacity: cython.Py_ssize_t = 64
    while not _fits(weight, target, low, high, fitted, capacity):
        capacity *= 4


@cython.cfunc
def _fits(
    weight: cython.const[cython.double][::1],
    target: cython.const[cython.double][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    fitted: cython.double[::1],
    capacity: cython.Py_ssize_t,
) -> cython.bint:
    """Write the minimiser into ``fitted``, or return False where larger chunks are better."""
    n: cython.Py_ssize_t = weight.shape[0]
    half: cython.Py_ssize_t = capacity // 2
    most: cython.Py_ssize_t = 4 * n // capacity + 4  # chunks: half full but for two, 2n bends
    at: cython.double[::1] = doubles(most * capacity)
    bend: cython.double[::1] = doubles(most * capacity)
    # Chunk c holds the bends from first[c] up to last[c].
    first: cython.longlong[::1] = integers(most)
    last: cython.longlong[::1] = integers(most)
    shift: cython.double[::1] = doubles(most)
    total: cython.double[::1] = doubles(most)
    moment: cython.double[::1] = doubles(most)
    summed: cython.longlong[::1] = integers(most)  # how often both may still be updated; 0: wrong
    stack: cython.longlong[::1] = integers(2 * most)  # left, then right; the nearest chunk on top
    height: cython.longlong[::1] = integers(3)
    spare: cython.longlong[::1] = integers(most)
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    c: cython.Py_ssize_t
    to: cython.Py_ssize_t
    size: cython.Py_ssize_t
    passed: cython.Py_ssize_t
    move: cython.Py_ssize_t
    start: cython.Py_ssize_t
    into: cython.Py_ssize_t
    updates: cython.Py_ssize_t = 64
    chunks: cython.Py_ssize_t = 0  # passed whole
    last_try: cython.bint = capacity * capacity >= n
    source: cython.Py_ssize_t
    side: cython.Py_ssize_t
    sides: cython.Py_ssize_t
    whole: cython.bint
    lowest = 0.0  # the sum of the lower bounds
    offset = 0.0  # of the right stack
    top = target[0]
    bottom = target[0]
    z = target[0]
    slope = weight[0]
    fitted[0] = z
    with cython.nogil:
        for c in range(most):
            spare[c] = most - 1 - c
        height[0] = height[1] = 0
        height[2] = most
        for i in range(1, n):
            lowest += low[i - 1]
            t = target[i] - lowest
            top = max(top, t)
            bottom = min(bottom, t)
        lowest = 0.0
        for i in range(1, n):
            lowest += low[i - 1]
            far = z + (high[i - 1] - low[i - 1])
            sides = 2
            if far >= top:  # no bend from there on is ever reached
                while height[1] > 0:
                    height[1] -= 1
                    spare[height[2]] = stack[most + height[1]]
                    height[2] += 1
                offset = 0.0
                sides = 1
            else:
                offset += high[i - 1] - low[i - 1]
                if offset > top - bottom:
                    # Chunks that are still within reach were filled since the last time.
                    move = 0
                    for k in range(height[1]):
                        c = stack[most + k]
                        if at[first[c]] + (shift[c] + offset) > top:
                            spare[height[2]] = c
                            height[2] += 1
                        else:
                            shift[c] += offset
                            stack[most + move] = c
                            move += 1
                    height[1] = move
                    offset = 0.0
            for side in range(sides):
                p = z if side == 0 else far - offset
                c = stack[side * most + height[side] - 1] if height[side] > 0 else -1
                if c < 0 or (
                    last[c] == (c + 1) * capacity if side == 0 else first[c] == c * capacity
                ):
                    c = _room(side, capacity, at, bend, first, last, stack, height, spare)
                if first[c] == last[c]:
                    shift[c] = p
                    total[c] = moment[c] = 0.0
                    summed[c] = updates
                if side == 0:
                    k = last[c]
                    last[c] += 1
                    bend[k] = -slope
                else:
                    first[c] -= 1
                    k = first[c]
                    bend[k] = slope
                at[k] = p - shift[c]
                total[c] += bend[k]
                moment[c] += bend[k] * at[k]
                summed[c] -= summed[c] > 0
            slope = weight[i]
            t = target[i] - lowest
            if t > far:
                source = 1
                sign = 1.0
                z = far
            elif t < z:
                source = 0
                sign = -1.0
            else:
                z = t
                fitted[i] = target[i]
                continue
            value = slope * (z - t)
            while height[source] > 0:
                c = stack[source * most + height[source] - 1]
                size = last[c] - first[c]
                delta = shift[c] + offset if source == 1 else shift[c]
                whole = False
                if summed[c] > 0:
                    p = at[last[c] - 1] if source == 1 else at[first[c]]
                    further = value + slope * (p + delta - z) + sign * (total[c] * p - moment[c])
                    whole = sign * further < 0.0
                if whole:
                    slope += sign * total[c]
                    z = p + delta
                    value = further
                    passed = size
                else:
                    passed = 0
                    k = first[c] if source == 1 else last[c] - 1
                    while passed < size:
                        p = at[k] + delta
                        further = value + slope * (p - z)
                        if sign * further >= 0.0:
                            break
                        slope += sign * bend[k]
                        z = p
                        value = further
                        passed += 1
                        k += 1 if source == 1 else -1
                    if passed == 0:
                        break
                    if passed == size >= half:
                        bends = moments = 0.0
                        for k in range(first[c], last[c]):
                            bends += bend[k]
                            moments += bend[k] * at[k]
                        total[c] = bends
                        moment[c] = moments
                        summed[c] = updates
                # What was passed goes to the other stack, as single bends or as a chunk.
                side = 1 - source
                move = passed
                whole = passed == size >= half
                if whole:
                    move = 0
                    if height[side] > 0:
                        to = stack[side * most + height[side] - 1]
                        k = last[to] - first[to]
                        if k < half:  # it is filled up before another one covers it
                            move = size if k + size <= capacity else half - k
                while move > 0:
                    to = stack[side * most + height[side] - 1] if height[side] > 0 else -1
                    if to < 0 or (
                        last[to] == (to + 1) * capacity if side == 0 else first[to] == to * capacity
                    ):
                        to = _room(side, capacity, at, bend, first, last, stack, height, spare)
                    if first[to] == last[to]:
                        shift[to] = z - offset if side == 1 else z
                        total[to] = moment[to] = 0.0
                        summed[to] = updates
                    if side == 0:
                        size = min(move, (to + 1) * capacity - last[to])
                        start = first[c]
                        into = last[to]
                        first[c] += size
                        last[to] += size
                    else:
                        size = min(move, first[to] - to * capacity)
                        last[c] -= size
                        first[to] -= size
                        start = last[c]
                        into = first[to]
                    p = delta - (shift[to] + offset if side == 1 else shift[to])
                    bends = moments = 0.0
                    for k in range(size):
                        at[into + k] = at[start + k] + p
                        bend[into + k] = bend[start + k]
                        bends += bend[start + k]
                        moments += bend[start + k] * at[start + k]
                    total[c] -= bends
                    moment[c] -= moments
                    summed[c] -= summed[c] > 0
                    total[to] += bends
                    moment[to] += moments + bends * p
                    summed[to] -= summed[to] > 0
                    move -= size
                if first[c] == last[c]:
                    height[source] -= 1
                    spare[height[2]] = c
                    height[2] += 1
                elif whole:
                    chunks += 1
                    shift[c] += offset if source == 1 else -offset
                    height[source] -= 1
                    stack[side * most + height[side]] = c
                    height[side] += 1
                else:
                    break
            slope = max(slope, weight[i])  # it is never below, but for rounding
            z -= value / slope
            fitted[i] = z + lowest
            if chunks > capacity * (i + capacity) and not last_try:
                return False
        for i in range(n - 2, -1, -1):
            p = fitted[i + 1] - high[i]
            far = fitted[i + 1] - low[i]
            fitted[i] = min(max(fitted[i], p), far)
    return True
