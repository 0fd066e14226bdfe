r"""What moving the rows of a grid to a calibrated distribution costs at most.

``measures/_transport.py`` says why. Cells with rows are numbered j, edges of cells i;
``filled[j]`` is the edge that cell j begins at, and the next edge is the one that it ends at. Per
label, n are the masses of the cells and f the sums of the rows' fractions of their cells.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels._arrays import doubles, integers

if cython.compiled:
    from cython.cimports.libc.math import sqrt
else:
    from math import sqrt


def merge(
    cell: cython.const[cython.longlong][::1],
    calibrated: cython.const[cython.double][::1],
    calibrated_mass: cython.const[cython.double][::1],
    last: cython.longlong,
    node: cython.longlong[::1],
    filled: cython.longlong[::1],
    split: cython.double[::1],
) -> int:
    """Write the edges around cells with rows and around calibrated mass, and split that to them.

    ``cell`` and ``calibrated`` increase. Cell numbers go up to ``last``, which begins at 1 and does
    not end. Masses are split so that their mean stays. Returns how many edges there are.
    """
    i: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    cells: cython.Py_ssize_t = 2 * cell.shape[0]
    spots: cython.Py_ssize_t = 2 * calibrated.shape[0]
    count: cython.Py_ssize_t = 0
    number: cython.longlong
    other: cython.longlong
    before: cython.longlong = -1
    beyond: cython.longlong = last + 1
    share: cython.double
    with cython.nogil:
        while True:
            # An edge that was there already is passed over, also where two masses share a cell.
            number = beyond
            while j < cells:
                number = cell[j // 2] + (j & 1)
                if number > before and number <= last:
                    break
                number = beyond
                j += 1
            other = beyond
            while k < spots:
                other = int(min(calibrated[k // 2] * last, last - 1.0))
                other += k & 1
                if other > before:
                    break
                other = beyond
                k += 1
            number = min(number, other)
            if number == beyond:
                break
            node[count] = before = number
            split[count] = 0.0
            count += 1
        for j in range(cell.shape[0]):
            while node[i] < cell[j]:
                i += 1
            filled[j] = i
        i = 0
        for k in range(calibrated.shape[0]):
            number = int(min(calibrated[k] * last, last - 1.0))
            while node[i] < number:
                i += 1
            share = calibrated_mass[k] * (calibrated[k] * last - number)
            split[i] += calibrated_mass[k] - share
            split[i + 1] += share
    return count


def cost(
    edge: cython.const[cython.double][::1],
    filled: cython.const[cython.longlong][::1],
    n: cython.const[cython.double][::1],
    f: cython.const[cython.double][::1],
    second: cython.const[cython.double][::1],
    owned: cython.const[cython.double][::1],
    split: cython.const[cython.double][::1],
    gathered: cython.bint,
    flooring: cython.double,
) -> float:
    """Bound the cost of moving the rows to the masses that ``split`` has on the edges.

    ``n`` and ``f`` are those of label 0 and then of label 1, and so is ``second``, the sums of f².
    ``owned`` is the mass of each label, rows at v = 1 included. Where it is ``gathered``, as much
    of the goal as the rows of the label that stays allow comes to them.
    """
    nodes: cython.Py_ssize_t = edge.shape[0]
    cells: cython.Py_ssize_t = filled.shape[0]
    work: cython.double[::1] = doubles(3 * nodes + 5 * cells)
    left: cython.double[::1] = work[:nodes]
    share: cython.double[::1] = work[nodes : 2 * nodes]
    rest: cython.double[::1] = work[2 * nodes : 3 * nodes]
    taken: cython.double[::1] = work[3 * nodes : 3 * nodes + 2 * cells]
    inner: cython.double[::1] = work[3 * nodes + 2 * cells : 3 * nodes + 4 * cells]
    spread: cython.double[::1] = work[3 * nodes + 4 * cells :]
    number: cython.longlong[::1] = integers(nodes)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    at: cython.Py_ssize_t
    label: cython.Py_ssize_t
    stays: cython.Py_ssize_t
    result: cython.double = 0.0
    own: cython.double
    count: cython.double
    first: cython.double
    squares: cython.double
    low: cython.double
    high: cython.double
    mean: cython.double
    r0: cython.double
    r1: cython.double
    p0: cython.double
    p1: cython.double
    mixed: cython.double
    square: cython.double
    cross: cython.double
    width: cython.double
    steepest: cython.double
    sag: cython.double
    before: cython.double
    arrived: cython.double
    start: cython.double
    apart: cython.double
    moves: cython.bint
    with cython.nogil:
        for i in range(nodes):
            left[i] = share[i] = 0.0
            rest[i] = 1.0
            number[i] = -1
        for j in range(cells):
            number[filled[j]] = j
            taken[j] = taken[cells + j] = inner[j] = inner[cells + j] = spread[j] = 0.0
        if gathered:
            for j in range(cells):
                at = j + cells if edge[filled[j]] >= 0.5 else j
                left[filled[j]] += n[at] - f[at]
                left[filled[j] + 1] += f[at]
            for i in range(nodes):
                own = (1.0 - edge[i] if edge[i] < 0.5 else edge[i]) * split[i]
                if left[i] > 0.0 and edge[i] != 0.5:
                    share[i] = min(own / left[i], 1.0)
                if own > 0.0:
                    rest[i] = 1.0 - share[i] * left[i] / own
            for j in range(cells):
                i = filled[j]
                stays = edge[i] >= 0.5
                at = stays * cells + j
                count = n[at]
                first = f[at]
                squares = second[at]
                low = edge[i]
                high = edge[i + 1]
                # Shares r and companions p on both edges; sums of (1 - f)², f (1 - f) and f².
                r0 = share[i]
                r1 = share[i + 1]
                p0 = low / (1.0 - low) if low < 0.5 else (1.0 - low) / low
                p1 = high / (1.0 - high) if high < 0.5 else (1.0 - high) / high
                mixed = max(first - squares, 0.0)
                square = count - first - mixed
                cross = r0 * p1 + r1 * p0
                taken[at] = r0 * (count - first) + r1 * first
                inner[at] = r0 * square + r1 * mixed
                at = (1 - stays) * cells + j
                taken[at] = r0 * p0 * square + cross * mixed + r1 * p1 * squares
                inner[at] = r0 * p0 * (square - mixed / 2) + (cross + r1 * p1) * mixed / 2
                if count > 0.0:
                    spread[j] = (
                        max(r0, r1)
                        * max(p0, p1)
                        * (max(squares - first * first / count, 0.0) + count * flooring)
                    )
                # φ lies below its chord by at most φ'' H² f (1 - f)/2; sums of f³ are not known.
                width = high - low
                steepest = max(low if stays else 1.0 - high, 0.5)
                sag = mixed * max(r0, r1) * width * width / (steepest * steepest * steepest)
                result += 4 * sag
                result += 5 * width * (mixed * abs((r1 - r0) * (p1 - p0)) / 2 + sag)
            result += flooring
        for label in range(2):
            before = 0.0
            arrived = 0.0
            for i in range(nodes):
                own = edge[i] if label else 1.0 - edge[i]
                arrived += own * split[i] * rest[i]
                start = low = high = mean = before - arrived
                j = number[i]
                at = label * cells + j
                moves = False
                if j >= 0:
                    before += n[at]
                    arrived += taken[at]
                    mean += n[at] - f[at] - inner[at]
                    # Rows that stay take up at most their own mass: G - U rises in the cell.
                    high += n[at]
                    moves = (edge[i] >= 0.5) != label
                    if moves:
                        low -= taken[at]
                    else:
                        high -= taken[at]
                if i + 1 < nodes:
                    apart = abs(mean)
                    if low < 0.0 < high:
                        mixed = min(-(high - mean) * low, (mean - low) * high) / (high - low)
                        apart += 2 * max(mixed, 0.0)
                        if moves and n[at] > 0.0 and taken[at] > 0.0:
                            apart = min(
                                apart,
                                _within_cell(
                                    start,
                                    n[at],
                                    f[at],
                                    second[at],
                                    taken[at],
                                    inner[at],
                                    spread[j],
                                    flooring,
                                ),
                            )
                    result += (edge[i + 1] - edge[i]) * apart
            # Too little of a label at the goal: the rest goes to u = 0 or 1. Too much: all
            # calibrated mass is made smaller in proportion, and the rest of the other label goes.
            mean = owned[label] - arrived
            result += abs(mean)
            if mean < 0.0:
                if owned[label] > 0.0:
                    result -= 2 * mean * (owned[1 - label] / owned[label])
                else:
                    result = 1e300
    return result


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _within_cell(
    start: cython.double,
    n: cython.double,
    f: cython.double,
    second: cython.double,
    taken: cython.double,
    inner: cython.double,
    spread: cython.double,
    flooring: cython.double,
) -> cython.double:
    r"""Bound the mean of \|G - U\| over a cell in which the mass n leaves and ``taken`` arrives.

    Of n and ``taken`` the smaller stays in the cell: matched without regard to place, it goes as
    far as two independent draws are apart, at most the root of their variances and the square of
    the difference of their means. What is more has the shape of the larger, so that the chord
    bounds it. ``spread`` is at least ``taken`` times the variance of what arrives.
    """
    leaving: cython.double = 1.0 - f / n  # means of G/n and U/taken over the cell
    arriving: cython.double = inner / taken
    larger: cython.double = leaving if taken <= n else arriving
    variance: cython.double = max(second / n - (f / n) * (f / n), 0.0) + flooring + spread / taken
    difference: cython.double = leaving - arriving
    return (
        abs(start) * (1.0 - larger)
        + abs(start + n - taken) * larger
        + min(n, taken) * sqrt(variance + difference * difference)
    )
