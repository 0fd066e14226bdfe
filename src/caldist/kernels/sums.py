r"""Sums over rows as they come, in one pass that checks them too.

A :class:`Reader` gives the rows in blocks of 512: labels y, predictions v and weights w as doubles.
Weights are multiplied by a power of two, so that products keep their digits. A block with a value
that is no label, probability or weight ends the pass, which then returns False. Whoever asked says
what is wrong.

The order of the rows does not matter, to the last bit: a sum is kept with what rounding took off it
(Knuth's TwoSum), so that it is known to 32 digits, of which 16 are given back. So are products with
weights (Dekker), and a row of weight 2 is two rows. Moments of rows are sums of integers.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels._arrays import doubles, integers

if cython.compiled:
    from cython.cimports.libc.math import exp, log
else:
    from math import exp, log


@cython.cclass
class Reader:
    """Rows in blocks.

    ``label`` holds what ``kind`` says: 0, 1 and 2 are integers of 1, 4 and 8 bytes, 3 and 4 floats
    of 4 and 8. ``prediction`` holds floats, ``weight`` doubles or None. These are ``counted`` where
    they are numbers of rows, and the scale is 1. Arrays may have strides.
    """

    label1: cython.const[cython.uchar][:]
    label4: cython.const[cython.int][:]
    label8: cython.const[cython.longlong][:]
    label_single: cython.const[cython.float][:]
    label_double: cython.const[cython.double][:]
    single: cython.const[cython.float][:]
    double: cython.const[cython.double][:]
    weight: cython.const[cython.double][:]
    scale: cython.double
    weighted: cython.bint
    counted: cython.bint
    kind: cython.int
    wide: cython.bint
    size: cython.Py_ssize_t
    done: cython.Py_ssize_t
    y: cython.double[::1]
    v: cython.double[::1]
    w: cython.double[::1]
    term: cython.double[::1]
    rest: cython.double[::1]

    def __init__(
        self, kind: int, label: Any, prediction: Any, weight: Any, scale: float, counted: int
    ) -> None:
        block: cython.double[::1] = doubles(5 * 512)
        self.kind = kind
        if kind == 0:
            self.label1 = label
        elif kind == 1:
            self.label4 = label
        elif kind == 2:
            self.label8 = label
        elif kind == 3:
            self.label_single = label
        else:
            self.label_double = label
        self.wide = prediction.itemsize == 8
        if self.wide:
            self.double = prediction
        else:
            self.single = prediction
        self.scale = scale
        self.counted = counted
        self.weighted = weight is not None
        if self.weighted:
            self.weight = weight
        self.size = prediction.shape[0]
        self.done = 0
        self.y = block[:512]
        self.v = block[512:1024]
        self.w = block[1024:1536]
        self.term = block[1536:2048]
        self.rest = block[2048:]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def next(self) -> cython.Py_ssize_t:
        """Read the next rows. Returns how many: 0 at the end, -1 where a value is not valid."""
        start: cython.Py_ssize_t = self.done
        count: cython.Py_ssize_t = min(512, self.size - start)
        if self.kind == 0:
            _read1(self.label1, start, count, self.y)
        elif self.kind == 1:
            _read4(self.label4, start, count, self.y)
        elif self.kind == 2:
            _read8(self.label8, start, count, self.y)
        elif self.kind == 3:
            _read_single(self.label_single, start, count, self.y)
        else:
            _read_double(self.label_double, start, count, self.y)
        if self.wide:
            _read_double(self.double, start, count, self.v)
        else:
            _read_single(self.single, start, count, self.v)
        self.done = start + count
        if _faults(self.y, self.v, count, self.term) != 0.0:
            return -1
        if self.weighted:
            _read_double(self.weight, start, count, self.w)
            if _negative(self.w, count, self.term) != 0.0:
                return -1
        return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read1(
    values: cython.const[cython.uchar][:],
    start: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    out: cython.double[::1],
) -> cython.void:
    i: cython.Py_ssize_t
    for i in range(count):
        out[i] = values[start + i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read4(
    values: cython.const[cython.int][:],
    start: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    out: cython.double[::1],
) -> cython.void:
    i: cython.Py_ssize_t
    for i in range(count):
        out[i] = values[start + i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read8(
    values: cython.const[cython.longlong][:],
    start: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    out: cython.double[::1],
) -> cython.void:
    i: cython.Py_ssize_t
    for i in range(count):
        out[i] = values[start + i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_single(
    values: cython.const[cython.float][:],
    start: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    out: cython.double[::1],
) -> cython.void:
    i: cython.Py_ssize_t
    for i in range(count):
        out[i] = values[start + i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_double(
    values: cython.const[cython.double][:],
    start: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    out: cython.double[::1],
) -> cython.void:
    i: cython.Py_ssize_t
    for i in range(count):
        out[i] = values[start + i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _faults(
    y: cython.const[cython.double][::1],
    v: cython.const[cython.double][::1],
    count: cython.Py_ssize_t,
    term: cython.double[::1],
) -> cython.double:
    """Return 0 if every y is 0 or 1 and every v in [0, 1], otherwise anything else.

    For y and v like that y² = y and v (v - 1) <= 0, and for no others, not even by rounding.
    Arithmetic is done on several rows at once; comparisons are not.
    """
    i: cython.Py_ssize_t
    x: cython.double
    for i in range(count):
        x = v[i] * (v[i] - 1.0)
        term[i] = abs(y[i] * y[i] - y[i]) + (x + abs(x))
    return _sum(term, count)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _negative(
    w: cython.const[cython.double][::1], count: cython.Py_ssize_t, term: cython.double[::1]
) -> cython.double:
    """Return 0 if every w is finite and not negative, otherwise anything else."""
    i: cython.Py_ssize_t
    for i in range(count):
        term[i] = abs(w[i]) - w[i]
    return _sum(term, count)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _rest_of_product(a: cython.double, b: cython.double, product: cython.double) -> cython.double:
    """Return what rounding took off a b, for numbers that are not huge."""
    c: cython.double = 134217729.0 * a
    d: cython.double = 134217729.0 * b
    a1: cython.double = c - (c - a)
    b1: cython.double = d - (d - b)
    a2: cython.double = a - a1
    b2: cython.double = b - b1
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _weigh(reader: Reader, count: cython.Py_ssize_t, term: cython.double[::1]) -> cython.void:
    """Multiply the terms of a block by the weights, if any; what rounding took is the rest."""
    i: cython.Py_ssize_t
    product: cython.double
    scale: cython.double = reader.scale
    w: cython.double[::1] = reader.w
    rest: cython.double[::1] = reader.rest
    if reader.weighted:
        for i in range(count):
            w[i] *= scale
            product = w[i] * term[i]
            rest[i] = _rest_of_product(w[i], term[i], product)
            term[i] = product
    else:
        for i in range(count):
            rest[i] = 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _pad(count: cython.Py_ssize_t, term: cython.double[::1]) -> cython.Py_ssize_t:
    """Write zeros after the terms of a block, up to a power of two, which is returned."""
    i: cython.Py_ssize_t
    size: cython.Py_ssize_t = 1
    while size < count:
        size *= 2
    for i in range(count, size):
        term[i] = 0.0
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sum(term: cython.double[::1], count: cython.Py_ssize_t) -> cython.double:
    """Return the sum of the terms of a block, which are written over, in pairs."""
    i: cython.Py_ssize_t
    half: cython.Py_ssize_t = _pad(count, term)
    while half > 1:
        half //= 2
        for i in range(half):
            term[i] += term[half + i]
    return term[0]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_all(
    reader: Reader, count: cython.Py_ssize_t, at: cython.Py_ssize_t, total: cython.double[::1]
) -> cython.void:
    """Add the terms of a block, in pairs, to the sum at a place and its rest."""
    i: cython.Py_ssize_t
    a: cython.double
    b: cython.double
    c: cython.double
    d: cython.double
    term: cython.double[::1] = reader.term
    rest: cython.double[::1] = reader.rest
    half: cython.Py_ssize_t = _pad(count, term)
    for i in range(count, half):
        rest[i] = 0.0
    while half > 1:
        half //= 2
        for i in range(half):
            a = term[i]
            b = term[half + i]
            c = a + b
            d = c - a
            term[i] = c
            rest[i] += rest[half + i] + ((a - (c - d)) + (b - d))
    _add(term[0], at, total)
    total[at + 1] += rest[0]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _add(x: cython.double, at: cython.Py_ssize_t, total: cython.double[::1]) -> cython.void:
    """Add to the sum at a place, and what rounding takes off to the place after it."""
    a: cython.double = total[at]
    c: cython.double = a + x
    d: cython.double = c - a
    total[at] = c
    total[at + 1] += (a - (c - d)) + (x - d)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _add_product(
    weight: cython.double, x: cython.double, at: cython.Py_ssize_t, total: cython.double[::1]
) -> cython.void:
    """Add a product, and what rounding takes off to the place after it."""
    product: cython.double = weight * x
    _add(product, at, total)
    if weight != 1.0:
        total[at + 1] += _rest_of_product(weight, x, product)


def squares(reader: Reader, total: cython.double[::1]) -> bool:
    """Add Σ w (y - v)² to ``total[0]``, and what rounding took to ``total[1]``."""
    term: cython.double[::1] = reader.term
    y: cython.double[::1] = reader.y
    v: cython.double[::1] = reader.v
    i: cython.Py_ssize_t
    count: cython.Py_ssize_t
    with cython.nogil:
        while True:
            count = reader.next()
            if count <= 0:
                break
            for i in range(count):
                term[i] = (y[i] - v[i]) * (y[i] - v[i])
            _weigh(reader, count, term)
            _add_all(reader, count, 0, total)
    return count == 0


def logarithms(reader: Reader, total: cython.double[::1]) -> bool:
    """Add -Σ w ln(probability of y) to ``total[0]``, what rounding took to ``total[1]``.

    ``total[2]`` counts rows with weight whose label had the probability 0; they are left out.
    1 - v is rounded, by r: ln(1 - v) = ln(1 - v - r) + r/(1 - v - r) to the last digit.
    """
    term: cython.double[::1] = reader.term
    y: cython.double[::1] = reader.y
    v: cython.double[::1] = reader.v
    w: cython.double[::1] = reader.w
    i: cython.Py_ssize_t
    count: cython.Py_ssize_t
    zero: cython.double
    x: cython.double
    with cython.nogil:
        while True:
            count = reader.next()
            if count <= 0:
                break
            for i in range(count):
                zero = 1.0 - y[i]
                x = y[i] * v[i] + zero * (1.0 - v[i])
                if x > 0.0:
                    term[i] = -log(x) - zero * ((1.0 - x) - v[i]) / x
                else:
                    term[i] = 0.0
                    if not reader.weighted or w[i] > 0.0:
                        total[2] += 1.0
            _weigh(reader, count, term)
            _add_all(reader, count, 0, total)
    return count == 0


def labels(reader: Reader, total: cython.double[::1]) -> bool:
    """Add Σ w (1 - y) to ``total[0]``, Σ w y to ``total[2]``, rounding to the places after."""
    term: cython.double[::1] = reader.term
    y: cython.double[::1] = reader.y
    w: cython.double[::1] = reader.w
    i: cython.Py_ssize_t
    label: cython.Py_ssize_t
    count: cython.Py_ssize_t
    with cython.nogil:
        while True:
            count = reader.next()
            if count <= 0:
                break
            for label in range(2):
                for i in range(count):
                    reader.rest[i] = 0.0
                    term[i] = y[i] if label else 1.0 - y[i]
                    if reader.weighted:
                        term[i] *= reader.scale * w[i]
                _add_all(reader, count, 2 * label, total)
    return count == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _gather(
    part: cython.double[::1], copies: cython.Py_ssize_t, total: cython.double[::1]
) -> cython.void:
    """Add several sums of each cell, each with its rest, to one."""
    i: cython.Py_ssize_t
    for i in range(part.shape[0] // 2):
        _add(part[2 * i], 2 * (i // copies), total)
        total[2 * (i // copies) + 1] += part[2 * i + 1]


def bins(
    reader: Reader,
    edge: cython.const[cython.double][::1],
    uniform: cython.bint,
    gap: cython.double[::1],
    mass: cython.double[::1],
) -> bool:
    """Add Σ w (y - v) and Σ w of each bin, with what rounding took after each.

    Bin k begins at ``edge[k]``. Rows before the first edge belong to the first bin, rows after the
    last one to the last. ``uniform`` edges are k/n, rounded. Without room for it there is no mass.
    """
    n: cython.Py_ssize_t = edge.shape[0] - 1
    copies: cython.Py_ssize_t = (
        4 if n <= 1024 else 1
    )  # rows of one bin need not wait for each other
    wanted: cython.bint = mass.shape[0] > 0
    part: cython.double[::1] = doubles(2 * copies * n * (1 + wanted))
    gaps: cython.double[::1] = part[: 2 * copies * n]
    masses: cython.double[::1] = part[2 * copies * n :]
    place: cython.double[::1] = reader.term
    rest: cython.double[::1] = reader.rest
    y: cython.double[::1] = reader.y
    v: cython.double[::1] = reader.v
    w: cython.double[::1] = reader.w
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    half: cython.Py_ssize_t
    left: cython.Py_ssize_t
    count: cython.Py_ssize_t
    last: cython.double = n - 1.0
    weighted: cython.bint = reader.weighted
    with cython.nogil:
        for i in range(part.shape[0]):
            part[i] = 0.0
        while True:
            count = reader.next()
            if count <= 0:
                break
            for i in range(count):
                y[i] -= v[i]
                place[i] = min(v[i] * n, last)
            _weigh(reader, count, y)
            for i in range(count):
                if uniform:
                    # Bin k starts at the double nearest to k/n; v n may round across it.
                    k = int(place[i])
                    k -= v[i] < edge[k]
                    k += (v[i] >= edge[k + 1]) & (k < n - 1)
                else:
                    k = 0
                    left = n
                    while left > 1:
                        half = left // 2
                        k += half * (edge[k + half] <= v[i])
                        left -= half
                k = 2 * (copies * k + (i & (copies - 1)))
                _add(y[i], k, gaps)
                if weighted:
                    gaps[k + 1] += rest[i]
                if wanted:
                    _add(w[i] if weighted else 1.0, k, masses)
        _gather(gaps, copies, gap)
        _gather(masses, copies, mass)
    return count == 0


def soft_bins(
    reader: Reader,
    n: cython.Py_ssize_t,
    temperature: cython.double,
    gap: cython.double[::1],
    mass: cython.double[::1],
) -> bool:
    """Add Σ w u_k(v) (y - v) and Σ w u_k(v) for each of n soft bins, with what rounding took.

    With the nearest centre at the distance d from v, and the others at d - m h, the membership in
    these is exp(-(m - 1) m h²/T) exp((2d - h) h/T)^m times that in the nearest.
    """
    part: cython.double[::1] = doubles(2 * n)
    curve: cython.double[::1] = part[:n]
    member: cython.double[::1] = part[n:]
    y: cython.double[::1] = reader.y
    v: cython.double[::1] = reader.v
    w: cython.double[::1] = reader.w
    h: cython.double = 1.0 / n
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    count: cython.Py_ssize_t
    d: cython.double
    ratio: cython.double
    power: cython.double
    total: cython.double
    share: cython.double
    weight: cython.double
    with cython.nogil:
        for k in range(n):
            curve[k] = exp(-(k - 1.0) * k * (h * h / temperature)) if k > 1 else 1.0
        while True:
            count = reader.next()
            if count <= 0:
                break
            for i in range(count):
                k = int(min(v[i] * n, n - 1.0))
                d = v[i] - (k + 0.5) / n
                low = high = k
                member[k] = total = power = 1.0
                ratio = exp(min((2.0 * d - h) * h / temperature, 0.0))
                for m in range(1, n - k):
                    power *= ratio
                    member[k + m] = power * curve[m]
                    if member[k + m] < 1e-300:
                        break
                    total += member[k + m]
                    high = k + m
                power = 1.0
                ratio = exp(min((-2.0 * d - h) * h / temperature, 0.0))
                for m in range(1, k + 1):
                    power *= ratio
                    member[k - m] = power * curve[m]
                    if member[k - m] < 1e-300:
                        break
                    total += member[k - m]
                    low = k - m
                share = 1.0 / total
                d = share * (y[i] - v[i])
                weight = reader.scale * w[i] if reader.weighted else 1.0
                for k in range(low, high + 1):
                    _add_product(weight, d * member[k], 2 * k, gap)
                    _add_product(weight, share * member[k], 2 * k, mass)
    return count == 0


def moments(
    reader: Reader,
    cells: cython.Py_ssize_t,
    high: cython.double[::1],
    low: cython.double[::1],
) -> bool:
    """Add Σ w (y - v) x^m for m < 10 and each of some cells of equal width, as ``high + low``.

    x is the distance of v from the centre of its cell, in cells; the moments of a cell lie next to
    each other. The terms of rows that are counted are cut off to multiples of 2^-46 and added up as
    integers, 2^16 rows at a time. In multiples of 2^-23 and of 2^-46 doubles hold the sums of 2^30
    rows. Sums of weights are taken over as many rows, too, so that no digits are lost.
    """
    whole: cython.longlong[::1] = integers(0 if reader.weighted else 10 * cells)
    part: cython.double[::1] = doubles(10 * cells if reader.weighted else 0)
    y: cython.double[::1] = reader.y
    v: cython.double[::1] = reader.v
    w: cython.double[::1] = reader.w
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t
    at: cython.Py_ssize_t
    count: cython.Py_ssize_t
    rows: cython.Py_ssize_t = 0
    number: cython.longlong
    cut: cython.longlong
    coarse: cython.double = 2.0**-23
    fine: cython.double = 2.0**-46
    last: cython.double = cells - 1.0
    scale: cython.double = reader.scale
    integral: cython.bint = reader.counted or not reader.weighted
    x: cython.double
    even: cython.double
    odd: cython.double
    square: cython.double
    with cython.nogil:
        for i in range(part.shape[0]):
            part[i] = 0.0
        for i in range(whole.shape[0]):
            whole[i] = 0
        while True:
            count = reader.next()
            if count <= 0 or rows >= 65536:
                for i in range(part.shape[0]):
                    high[i] += part[i]
                    part[i] = 0.0
                for i in range(whole.shape[0]):
                    number = whole[i] >> 23
                    high[i] += coarse * number
                    low[i] += fine * (whole[i] - (number << 23))
                    whole[i] = 0
                rows = 0
            if count <= 0:
                break
            for i in range(count):
                y[i] -= v[i]
                y[i] *= 70368744177664.0 if integral else scale * w[i]
            for i in range(count):
                x = v[i] * cells
                at = int(min(x, last))
                x -= at + 0.5
                at *= 10
                even = y[i]
                odd = even * x
                square = x * x
                if not reader.weighted:
                    for m in range(0, 10, 2):
                        whole[at + m] += int(even)
                        whole[at + m + 1] += int(odd)
                        even *= square
                        odd *= square
                elif not integral:
                    for m in range(0, 10, 2):
                        part[at + m] += even
                        part[at + m + 1] += odd
                        even *= square
                        odd *= square
                else:
                    for m in range(10):
                        cut = int(even)
                        number = cut >> 23
                        high[at + m] += coarse * w[i] * number
                        low[at + m] += fine * w[i] * (cut - (number << 23))
                        x = even
                        even = odd
                        odd = x * square
            rows += count
    return count == 0


def cells(
    reader: Reader,
    bits: cython.Py_ssize_t,
    shift: cython.Py_ssize_t,
    start: cython.const[cython.longlong][::1],
    count: cython.longlong[::1],
) -> bool:
    """Add, per cell of 2^-bits and label, 1, floor(f 2^31) and floor(f f 2^31).

    f is the fraction of its cell at which v lies. The six sums of a cell lie next to each other,
    and its place among the cells is that of the block of 2^shift cells that it is in, ``start``,
    and its own in the block. A block without rows need not have a place.
    """
    y: cython.double[::1] = reader.y
    v: cython.double[::1] = reader.v
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    number: cython.Py_ssize_t
    rows: cython.Py_ssize_t
    last: cython.longlong = (1 << shift) - 1
    scale: cython.double = 1 << bits
    unit: cython.double = 2147483648.0
    cell: cython.longlong
    f: cython.double
    with cython.nogil:
        while True:
            rows = reader.next()
            if rows <= 0:
                break
            for i in range(rows):
                f = v[i] * scale  # exact: a power of two
                cell = int(f)
                f -= cell
                number = start[cell >> shift] + (cell & last)
                at = int(y[i])
                at = 6 * number + 3 * at
                count[at] += 1
                count[at + 1] += int(f * unit)
                count[at + 2] += int(f * f * unit)
    return rows == 0


def weighted_cells(
    reader: Reader,
    bits: cython.Py_ssize_t,
    shift: cython.Py_ssize_t,
    start: cython.const[cython.longlong][::1],
    total: cython.double[::1],
) -> bool:
    """Add the same as :func:`cells`, each row times its scaled weight."""
    y: cython.double[::1] = reader.y
    v: cython.double[::1] = reader.v
    w: cython.double[::1] = reader.w
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    number: cython.Py_ssize_t
    rows: cython.Py_ssize_t
    last: cython.longlong = (1 << shift) - 1
    scale: cython.double = 1 << bits
    unit: cython.double = 2147483648.0
    cell: cython.longlong
    part: cython.longlong
    f: cython.double
    weight: cython.double
    with cython.nogil:
        while True:
            rows = reader.next()
            if rows <= 0:
                break
            for i in range(rows):
                f = v[i] * scale
                cell = int(f)
                f -= cell
                number = start[cell >> shift] + (cell & last)
                at = int(y[i])
                at = 6 * number + 3 * at
                weight = reader.scale * w[i]
                total[at] += weight
                part = int(f * unit)
                total[at + 1] += weight * part
                part = int(f * f * unit)
                total[at + 2] += weight * part
    return rows == 0
