r"""Sums over rows as they come, in one pass that checks them too.

A :class:`Reader` gives the rows in blocks of 512: labels y, predictions v and weights w as doubles,
zeros after the last row. Weights are multiplied by a power of two, so that products keep their
digits. A block with a value that is no label, probability or weight ends the pass, which then
returns False. Whoever asked says what is wrong.

The order of the rows does not matter, to the last bit: a sum is kept with what rounding took off it
(Knuth's TwoSum), so that it is known to 32 digits, of which 16 are given back. So are products with
weights (Dekker), and a row of weight 2 is two rows. Moments of rows are sums of integers.

What is done with every row is done in loops without branches over plain arrays, 64 sums side by
side: there compilers do several rows at once. ``_wide.pxd`` has some of the functions compiled for
wider registers, too. The same operations are done everywhere, one by one in plain Python, and so
all processors give the same bits. Logarithms are made here for the same reason.

What sorts rows reads them here too, once to see how many go where, and once to put them there.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels._arrays import doubles, integers

if cython.compiled:
    from cython.cimports.caldist.kernels._wide import exponent, mantissa
    from cython.cimports.libc.math import exp
    from cython.cimports.libc.stdlib import free, malloc
else:
    from math import exp, frexp

    def mantissa(x: float) -> float:
        """Return the m from 0.7071 to 1.4142 with x = m 2^k, for x from 2^-1022 on."""
        half = frexp(x)[0]
        return 2.0 * half if half < 0.7071065902709961 else half

    def exponent(x: float) -> float:
        """Return that k."""
        half, power = frexp(x)
        return power - 1.0 if half < 0.7071065902709961 else float(power)


@cython.cclass
class Reader:
    """Rows in blocks.

    ``label`` holds what ``kind`` says: 0, 1 and 2 are integers of 1, 4 and 8 bytes, 3 and 4 floats
    of 4 and 8. ``prediction`` holds floats, ``weight`` doubles or None. These are ``counted`` where
    they are numbers of rows, and the scale is 1. Arrays may have strides.
    """

    label1: cython.pointer[cython.const[cython.uchar]]
    label4: cython.pointer[cython.const[cython.int]]
    label8: cython.pointer[cython.const[cython.longlong]]
    label_single: cython.pointer[cython.const[cython.float]]
    label_double: cython.pointer[cython.const[cython.double]]
    single: cython.pointer[cython.const[cython.float]]
    double: cython.pointer[cython.const[cython.double]]
    weight: cython.pointer[cython.const[cython.double]]
    held: object
    scale: cython.double
    weighted: cython.bint
    counted: cython.bint
    kind: cython.int
    wide: cython.bint
    size: cython.Py_ssize_t
    done: cython.Py_ssize_t
    label_step: cython.Py_ssize_t
    step: cython.Py_ssize_t
    weight_step: cython.Py_ssize_t
    y: cython.p_double
    v: cython.p_double
    w: cython.p_double
    term: cython.p_double
    rest: cython.p_double
    part: cython.p_double
    piece: cython.p_double
    bins: cython.p_double
    place: cython.int[512]

    def __init__(
        self, kind: int, label: Any, prediction: Any, weight: Any, scale: float, counted: int
    ) -> None:
        self.kind = kind
        self.held = (label, prediction, weight)
        self.wide = prediction.itemsize == 8
        self.scale = scale
        self.counted = counted
        self.weighted = weight is not None
        self.size = prediction.shape[0]
        self.done = 0
        self.label_step = self.step = self.weight_step = 1
        if cython.compiled:
            self._find(label, prediction, weight)
        else:
            self.label1 = self.label4 = self.label8 = label
            self.label_single = self.label_double = label
            self.single = self.double = prediction
            self.weight = weight
            self.y, self.v, self.w = doubles(512), doubles(512), doubles(512)
            self.term, self.rest, self.part = doubles(512), doubles(512), doubles(384)
            self.piece, self.bins, self.place = doubles(256), doubles(1024), integers(512)
        _clear(self.rest, 0, 512)
        _clear(self.part, 0, 384)

    def __dealloc__(self):
        free(self.y)

    @cython.cfunc
    def _find(self, label: object, prediction: object, weight: object):
        """Find room, and where the arrays lie, which ``held`` keeps there; not in plain Python."""
        bytes_: cython.const[cython.uchar][:]
        words: cython.const[cython.int][:]
        longs: cython.const[cython.longlong][:]
        singles: cython.const[cython.float][:]
        numbers: cython.const[cython.double][:]
        self.y = cython.cast(cython.p_double, malloc(8 * 4264))
        if not self.y:
            raise MemoryError
        self.v = self.y + 520  # not 4096 bytes apart, which some processors mistake for the same
        self.w = self.v + 520
        self.term = self.w + 520
        self.rest = self.term + 520
        self.part = self.rest + 520
        self.piece = self.part + 384
        self.bins = self.piece + 256
        if self.size == 0:
            return
        if self.kind == 0:
            bytes_ = label
            self.label1 = cython.address(bytes_[0])
            self.label_step = bytes_.strides[0]
        elif self.kind == 1:
            words = label
            self.label4 = cython.address(words[0])
            self.label_step = words.strides[0] // 4
        elif self.kind == 2:
            longs = label
            self.label8 = cython.address(longs[0])
            self.label_step = longs.strides[0] // 8
        elif self.kind == 3:
            singles = label
            self.label_single = cython.address(singles[0])
            self.label_step = singles.strides[0] // 4
        else:
            numbers = label
            self.label_double = cython.address(numbers[0])
            self.label_step = numbers.strides[0] // 8
        if self.wide:
            numbers = prediction
            self.double = cython.address(numbers[0])
            self.step = numbers.strides[0] // 8
        else:
            singles = prediction
            self.single = cython.address(singles[0])
            self.step = singles.strides[0] // 4
        if self.weighted:
            numbers = weight
            self.weight = cython.address(numbers[0])
            self.weight_step = numbers.strides[0] // 8

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def next(self) -> cython.Py_ssize_t:
        """Read the next rows. Returns how many: 0 at the end, -1 where a value is not valid."""
        start: cython.Py_ssize_t = self.done
        count: cython.Py_ssize_t = min(512, self.size - start)
        step: cython.Py_ssize_t = self.label_step
        wrong: cython.bint
        if self.kind == 0:
            wrong = _bytes(self.label1, start, step, count, self.y) != 0
        elif self.kind == 1:
            wrong = _words(self.label4, start, step, count, self.y) != 0
        elif self.kind == 2:
            wrong = _integers(self.label8, start, step, count, self.y) != 0
        elif self.kind == 3:
            wrong = _single_labels(self.label_single, start, step, count, self.y) != 0
        else:
            wrong = _double_labels(self.label_double, start, step, count, self.y) != 0
        if self.wide:
            wrong |= _doubles(self.double, start, self.step, count, 1.0, self.v) != 0
        else:
            wrong |= _singles(self.single, start, self.step, count, 1.0, self.v) != 0
        if self.weighted:
            step = self.weight_step
            wrong |= _doubles(self.weight, start, step, count, 1.7976931348623157e308, self.w) != 0
        self.done = start + count
        if wrong:
            return -1
        _clear(self.y, count, 512)
        _clear(self.v, count, 512)
        _clear(self.w, count, 512)
        return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _clear(out: cython.p_double, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> cython.void:
    """Write zeros."""
    i: cython.Py_ssize_t
    for i in range(start, stop):
        out[i] = 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bytes(
    values: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    out: cython.p_double,
) -> cython.longlong:
    """Read labels. Returns 0 if each is 0 or 1, otherwise anything else; so do the next ones."""
    i: cython.Py_ssize_t
    x: cython.longlong
    found: cython.longlong = 0
    for i in range(count):
        x = values[(start + i) * step]
        found |= x & -2
        out[i] = 1.0 if x & 1 else 0.0
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _words(
    values: cython.pointer[cython.const[cython.int]],
    start: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    out: cython.p_double,
) -> cython.longlong:
    i: cython.Py_ssize_t
    x: cython.longlong
    found: cython.longlong = 0
    for i in range(count):
        x = values[(start + i) * step]
        found |= x & -2
        out[i] = 1.0 if x & 1 else 0.0
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _integers(
    values: cython.pointer[cython.const[cython.longlong]],
    start: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    out: cython.p_double,
) -> cython.longlong:
    i: cython.Py_ssize_t
    x: cython.longlong
    found: cython.longlong = 0
    for i in range(count):
        x = values[(start + i) * step]
        found |= x & -2
        out[i] = 1.0 if x & 1 else 0.0
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _single_labels(
    values: cython.pointer[cython.const[cython.float]],
    start: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    out: cython.p_double,
) -> cython.longlong:
    i: cython.Py_ssize_t
    x: cython.double
    found: cython.longlong = 0
    for i in range(count):
        x = values[(start + i) * step]
        found += (x != 0.0) & (x != 1.0)
        out[i] = x
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _double_labels(
    values: cython.pointer[cython.const[cython.double]],
    start: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    out: cython.p_double,
) -> cython.longlong:
    i: cython.Py_ssize_t
    x: cython.double
    found: cython.longlong = 0
    for i in range(count):
        x = values[(start + i) * step]
        found += (x != 0.0) & (x != 1.0)
        out[i] = x
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _singles(
    values: cython.pointer[cython.const[cython.float]],
    start: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    largest: cython.double,
    out: cython.p_double,
) -> cython.longlong:
    """Read numbers. Returns how many do not lie between 0 and the largest allowed."""
    i: cython.Py_ssize_t
    x: cython.double
    found: cython.longlong = 0
    for i in range(count):
        x = values[(start + i) * step]
        found += 1 - ((x >= 0.0) & (x <= largest))
        out[i] = x
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _doubles(
    values: cython.pointer[cython.const[cython.double]],
    start: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    largest: cython.double,
    out: cython.p_double,
) -> cython.longlong:
    i: cython.Py_ssize_t
    x: cython.double
    found: cython.longlong = 0
    for i in range(count):
        x = values[(start + i) * step]
        found += 1 - ((x >= 0.0) & (x <= largest))
        out[i] = x
    return found


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
def _weigh(
    w: cython.p_double,
    scale: cython.double,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    term: cython.p_double,
    rest: cython.p_double,
) -> cython.void:
    """Multiply terms of a block, and their rests, by the weights, which are scaled."""
    i: cython.Py_ssize_t
    product: cython.double
    for i in range(start, stop):
        w[i] *= scale
        product = w[i] * term[i]
        rest[i] = w[i] * rest[i] + _rest_of_product(w[i], term[i], product)
        term[i] = product


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_all(
    term: cython.p_double,
    rest: cython.p_double,
    count: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    part: cython.p_double,
) -> cython.void:
    """Add the terms of a block to 64 sums at a place, their rests to the 64 numbers after them.

    After the last term of a block there are zeros.
    """
    start: cython.Py_ssize_t
    i: cython.Py_ssize_t
    a: cython.double
    c: cython.double
    d: cython.double
    x: cython.double
    for start in range(0, count, 64):
        for i in range(64):
            x = term[start + i]
            a = part[at + i]
            c = a + x
            d = c - a
            part[at + i] = c
            part[at + 64 + i] += rest[start + i] + ((a - (c - d)) + (x - d))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _collect(
    part: cython.p_double,
    at: cython.Py_ssize_t,
    place: cython.Py_ssize_t,
    total: cython.double[::1],
) -> cython.void:
    """Add up the 64 sums at a place."""
    i: cython.Py_ssize_t
    for i in range(64):
        _add(part[at + i], place, total)
        total[place + 1] += part[at + 64 + i]


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
@cython.nogil
@cython.exceptval(check=False)
def _squares(
    y: cython.p_double, v: cython.p_double, count: cython.Py_ssize_t, term: cython.p_double
) -> cython.void:
    i: cython.Py_ssize_t
    for i in range(count):
        term[i] = (y[i] - v[i]) * (y[i] - v[i])


def squares(reader: Reader, total: cython.double[::1]) -> bool:
    """Add Σ w (y - v)² to 64 numbers in ``total``, each with what rounding took after it.

    They are left apart, so that whoever adds them up can round once: a mean of a few rows can lie
    halfway between two doubles but for what is below its 32nd digit.
    """
    i: cython.Py_ssize_t
    count: cython.Py_ssize_t
    with cython.nogil:
        while True:
            count = reader.next()
            if count <= 0:
                break
            _squares(reader.y, reader.v, 512, reader.term)
            if reader.weighted:
                _clear(reader.rest, 0, 512)
                _weigh(reader.w, reader.scale, 0, 512, reader.term, reader.rest)
            _add_all(reader.term, reader.rest, count, 0, reader.part)
        for i in range(64):
            _add(reader.part[i], 2 * i, total)
            total[2 * i + 1] += reader.part[64 + i]
    return count == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _likelihoods(
    y: cython.p_double,
    v: cython.p_double,
    count: cython.Py_ssize_t,
    high: cython.p_double,
    low: cython.p_double,
) -> cython.longlong:
    """Write the probability x of y, rounded, and e/x for the rest e of it.

    Returns how often it is 0, and writes 1 there.
    """
    i: cython.Py_ssize_t
    x: cython.double
    e: cython.double
    zero: cython.double
    zeros: cython.longlong = 0
    for i in range(count):
        zero = 1.0 - y[i]
        x = y[i] * v[i] + zero * (1.0 - v[i])
        e = zero * ((1.0 - x) - v[i])
        zeros += x == 0.0
        x = 1.0 if x == 0.0 else x
        high[i] = x
        low[i] = e / x
    return zeros


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _losses(count: cython.Py_ssize_t, high: cython.p_double, low: cython.p_double) -> cython.void:
    """Write -ln(x) - e/x, which is -ln(x + e) to the last digit, over x and e/x, in two parts.

    With x = m 2^k and f = m - 1, s = f/(2 + f) the logarithm is
    k ln 2 + f - (f²/2 - s (f²/2 + p(s²))), where 2 artanh(s) = 2s + s p(s²). The p here, of degree
    8, is off by less than 1e-19. ln 2 has two parts, of which the first times k is exact. All but
    f²/2 and what is smaller is kept to 32 digits: the result is off by less than half of its last.
    """
    i: cython.Py_ssize_t
    x: cython.double
    k: cython.double
    f: cython.double
    s: cython.double
    z: cython.double
    p: cython.double
    q: cython.double
    h: cython.double
    t: cython.double
    c: cython.double
    rest: cython.double
    for i in range(count):
        x = 18014398509481984.0 * high[i]  # 2^54: not too small, unless it was 0
        f = mantissa(x) - 1.0
        s = f / (2.0 + f)
        z = s * s
        h = z * z
        p = (0.6666666666666666 + z * 0.4000000000000088) + h * (
            0.28571428570803603 + z * 0.22222222391716365
        )
        q = (0.18181795639871368 + z * 0.15386239717040148) + h * (
            0.13268772757685765 + z * 0.13086630131998783
        )
        p = z * (p + (h * h) * q)
        h = 0.5 * f * f
        h -= s * (h + p)
        t = f - h
        rest = (f - t) - h
        k = exponent(x) - 54.0
        h = 0.693147180559663 * k
        c = h + t
        rest += ((h - c) + t) + (low[i] + 2.8235290563031577e-13 * k)
        t = c + rest
        high[i] = -t
        low[i] = -((c - t) + rest)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_labels(reader: Reader, count: cython.Py_ssize_t, total: cython.double[::1]) -> cython.void:
    """Add the weights, which are scaled, of the rows of each label; or how many there are."""
    i: cython.Py_ssize_t
    label: cython.Py_ssize_t
    ones: cython.longlong = 0
    if not reader.weighted:
        for i in range(count):
            ones += reader.y[i] != 0.0
        total[3] += count - ones
        total[5] += ones
        return
    _clear(reader.rest, 0, 512)
    for label in range(2):
        for i in range(512):
            reader.term[i] = reader.w[i] * (reader.y[i] if label else 1.0 - reader.y[i])
        _add_all(reader.term, reader.rest, count, 128 * (1 + label), reader.part)


def logarithms(reader: Reader, total: cython.double[::1]) -> bool:
    """Add -Σ w ln(probability of y) to ``total[0]``, what rounding took to ``total[1]``.

    ``total[2]`` counts rows with weight whose label had the probability 0; they are left out. If
    there is room for it, Σ w (1 - y) and Σ w y follow, each with what rounding took.
    """
    i: cython.Py_ssize_t
    count: cython.Py_ssize_t
    zeros: cython.longlong
    with cython.nogil:
        while True:
            count = reader.next()
            if count <= 0:
                break
            zeros = _likelihoods(reader.y, reader.v, 512, reader.term, reader.rest)
            _losses(512, reader.term, reader.rest)
            if reader.weighted:
                if zeros > 0:
                    zeros = 0
                    for i in range(count):
                        if reader.w[i] > 0.0 and reader.v[i] == 1.0 - reader.y[i]:
                            zeros += 1
                _weigh(reader.w, reader.scale, 0, 512, reader.term, reader.rest)
            total[2] += zeros
            _add_all(reader.term, reader.rest, count, 0, reader.part)
            if total.shape[0] > 3:
                _add_labels(reader, count, total)
        _collect(reader.part, 0, 0, total)
        if total.shape[0] > 3:
            _collect(reader.part, 128, 3, total)
            _collect(reader.part, 256, 5, total)
    return count == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _uniform_places(
    v: cython.p_double, count: cython.Py_ssize_t, n: cython.double, place: cython.p_int
) -> cython.void:
    """Find bins of equal width. Bin k starts at the double nearest to k/n.

    The integer next to v n, which adding 2^52 finds, is that bin or the one after it, however the
    product was rounded.
    """
    i: cython.Py_ssize_t
    k: cython.double
    for i in range(count):
        k = (v[i] * n + 4503599627370496.0) - 4503599627370496.0
        k -= 1.0 if k / n > v[i] else 0.0
        k = k if k < n else n - 1.0
        place[i] = int(k)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _step(
    v: cython.p_double, count: cython.Py_ssize_t, edge: cython.double, step: cython.p_double
) -> cython.void:
    """Count an edge for the rows at it or after it."""
    i: cython.Py_ssize_t
    for i in range(count):
        step[i] += 1.0 if edge <= v[i] else 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _places(
    v: cython.p_double,
    count: cython.Py_ssize_t,
    edge: cython.const[cython.double][::1],
    step: cython.p_double,
    place: cython.p_int,
) -> cython.void:
    """Find bins by their edges: of a few all are looked at, otherwise half of those left."""
    i: cython.Py_ssize_t
    k: cython.int
    half: cython.int
    left: cython.int
    if edge.shape[0] <= 33:
        _clear(step, 0, 512)
        for i in range(1, edge.shape[0] - 1):
            _step(v, 512, edge[i], step)
        for i in range(count):
            place[i] = int(step[i])
        return
    for i in range(count):
        k = 0
        left = edge.shape[0] - 1
        while left > 1:
            half = left // 2
            k += half * (edge[k + half] <= v[i])
            left -= half
        place[i] = k


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _cut(
    y: cython.p_double, v: cython.p_double, start: cython.Py_ssize_t, piece: cython.p_double
) -> cython.longlong:
    """Cut y - v of 128 rows into multiples of 2^-41 and of 2^-83, and drop the rest.

    Returns how many are so small that this is felt, but not 0.
    """
    i: cython.Py_ssize_t
    d: cython.double
    high: cython.double
    tiny: cython.longlong = 0
    for i in range(128):
        d = y[start + i] - v[start + i]
        tiny += (abs(d) < 2.0**-33) & (d != 0.0)
        high = (d + 3072.0) - 3072.0
        piece[2 * i] = high
        piece[2 * i + 1] = ((d - high) + 1.5 * 2.0**-31) - 1.5 * 2.0**-31
    return tiny


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scatter(
    place: cython.p_int,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    piece: cython.p_double,
    sums: cython.p_double,
) -> cython.void:
    """Add to the bins, of which there are four copies: rows of one need not wait for each other."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    high: cython.double
    low: cython.double
    for i in range(start, stop):
        k = place[i]
        k = 8 * k + 2 * (i & 3)
        high = sums[k] + piece[2 * (i - start)]
        low = sums[k + 1] + piece[2 * (i - start) + 1]
        sums[k] = high
        sums[k + 1] = low


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _gather(n: cython.Py_ssize_t, sums: cython.p_double, gap: cython.double[::1]) -> cython.void:
    """Add the four copies of n bins to one; they are 0 then."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for k in range(n):
        i = 8 * k
        _add((sums[i] + sums[i + 2]) + (sums[i + 4] + sums[i + 6]), 2 * k, gap)
        _add((sums[i + 1] + sums[i + 3]) + (sums[i + 5] + sums[i + 7]), 2 * k, gap)
    _clear(sums, 0, 8 * n)


def bins(
    reader: Reader,
    n: cython.Py_ssize_t,
    edge: cython.const[cython.double][::1],
    gap: cython.double[::1],
    mass: cython.double[::1],
) -> bool:
    """Add Σ w (y - v) and Σ w of each of n bins, with what rounding took after each.

    Bin k begins at ``edge[k]``, or without edges at k/n, rounded. Rows before the first edge belong
    to the first bin, rows after the last one to the last. Without room for it there is no mass.

    Where there are no weights and few bins, y - v is cut into two pieces, sums of 4096 of which are
    exact. Where terms are too small for that, they are added up like those with weights.
    """
    weighted: cython.bint = reader.weighted
    few: cython.bint = n <= 128 and not weighted
    sums: cython.p_double = reader.bins
    place: cython.p_int = reader.place
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    count: cython.Py_ssize_t
    rows: cython.Py_ssize_t = 0
    with cython.nogil:
        if few:
            _clear(sums, 0, 8 * n)
        while True:
            count = reader.next()
            if count <= 0:
                break
            if edge.shape[0] == 0:
                _uniform_places(reader.v, 512, n, place)
            else:
                _places(reader.v, count, edge, reader.term, place)
            for start in range(0, count, 128):
                stop = min(start + 128, count)
                if few and _cut(reader.y, reader.v, start, reader.piece) == 0:
                    _scatter(place, start, stop, reader.piece, sums)
                    continue
                for i in range(start, stop):
                    reader.term[i] = reader.y[i] - reader.v[i]
                    reader.rest[i] = 0.0
                if weighted:
                    _weigh(reader.w, reader.scale, start, stop, reader.term, reader.rest)
                for i in range(start, stop):
                    _add(reader.term[i], 2 * place[i], gap)
                    gap[2 * place[i] + 1] += reader.rest[i]
            if mass.shape[0] > 0:
                for i in range(count):
                    _add(reader.w[i] if weighted else 1.0, 2 * place[i], mass)
            rows += 512
            if few and rows == 4096:
                _gather(n, sums, gap)
                rows = 0
        if few:
            _gather(n, sums, gap)
    return count == 0


def magnitude(total: cython.double[::1]) -> float:
    """Return the sum of the absolute values of sums, which have their rests after them."""
    i: cython.Py_ssize_t
    a: cython.double = 0.0
    c: cython.double
    d: cython.double
    x: cython.double
    rest: cython.double = 0.0
    for i in range(total.shape[0] // 2):
        x = abs(total[2 * i] + total[2 * i + 1])
        c = a + x
        d = c - a
        rest += (a - (c - d)) + (x - d)
        a = c
    return a + rest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _spread(
    member: cython.p_double,
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    factor: cython.double,
    weight: cython.double,
    total: cython.p_double,
    rest: cython.p_double,
) -> cython.void:
    """Add the factor times the memberships from one bin to another, times the weight."""
    k: cython.Py_ssize_t
    a: cython.double
    c: cython.double
    d: cython.double
    x: cython.double
    product: cython.double
    if weight == 1.0:
        for k in range(low, high):
            x = factor * member[k]
            a = total[k]
            c = a + x
            d = c - a
            total[k] = c
            rest[k] += (a - (c - d)) + (x - d)
    else:
        for k in range(low, high):
            x = factor * member[k]
            product = weight * x
            a = total[k]
            c = a + product
            d = c - a
            total[k] = c
            rest[k] += ((a - (c - d)) + (product - d)) + _rest_of_product(weight, x, product)


def soft_bins(
    reader: Reader,
    n: cython.Py_ssize_t,
    temperature: cython.double,
    gap: cython.double[::1],
    mass: cython.double[::1],
) -> bool:
    """Add Σ w u_k(v) (y - v) and Σ w u_k(v) for each of n soft bins; what rounding took after all.

    With the nearest centre at the distance d from v, and the others at d - m h, the membership in
    these is exp(-(m - 1) m h²/T) exp((2d - h) h/T)^m times that in the nearest.
    """
    room: cython.double[::1] = doubles(2 * n)
    curve: cython.p_double
    member: cython.p_double
    gaps: cython.p_double
    gap_rests: cython.p_double
    masses: cython.p_double
    mass_rests: cython.p_double
    y: cython.p_double = reader.y
    v: cython.p_double = reader.v
    w: cython.p_double = reader.w
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
    whole: cython.double
    share: cython.double
    weight: cython.double
    if cython.compiled:
        curve = cython.address(room[0])
        member = cython.address(room[n])
        gaps = cython.address(gap[0])
        gap_rests = cython.address(gap[n])
        masses = cython.address(mass[0])
        mass_rests = cython.address(mass[n])
    else:
        curve, member = room[:n], room[n:]
        gaps, gap_rests = gap[:n], gap[n:]
        masses, mass_rests = mass[:n], mass[n:]
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
                member[k] = whole = power = 1.0
                ratio = exp(min((2.0 * d - h) * h / temperature, 0.0))
                for m in range(1, n - k):
                    power *= ratio
                    member[k + m] = power * curve[m]
                    if member[k + m] < 1e-300:
                        break
                    whole += member[k + m]
                    high = k + m
                power = 1.0
                ratio = exp(min((-2.0 * d - h) * h / temperature, 0.0))
                for m in range(1, k + 1):
                    power *= ratio
                    member[k - m] = power * curve[m]
                    if member[k - m] < 1e-300:
                        break
                    whole += member[k - m]
                    low = k - m
                share = 1.0 / whole
                weight = reader.scale * w[i] if reader.weighted else 1.0
                _spread(member, low, high + 1, share * (y[i] - v[i]), weight, gaps, gap_rests)
                _spread(member, low, high + 1, share, weight, masses, mass_rests)
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
    y: cython.p_double = reader.y
    v: cython.p_double = reader.v
    w: cython.p_double = reader.w
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
    mass: cython.double[::1],
) -> bool:
    """Add, per cell of 2^-bits and label, 1, floor(f 2^31) and floor(f f 2^31) to ``count``.

    f is the fraction of its cell at which v lies. Rows with weights are added to ``mass`` instead,
    each times its weight, which is scaled. The six sums of a cell lie next to each other, and its
    place among the cells is that of the block of 2^shift cells that it is in, ``start``, and its
    own in the block. A row with weight in a block without a place, -1, ends the pass like
    a bad value.
    """
    y: cython.p_double = reader.y
    v: cython.p_double = reader.v
    w: cython.p_double = reader.w
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    rows: cython.Py_ssize_t
    last: cython.longlong = (1 << shift) - 1
    scale: cython.double = 1 << bits
    unit: cython.double = 2147483648.0
    cell: cython.longlong
    first: cython.longlong
    second: cython.longlong
    f: cython.double
    weight: cython.double
    with cython.nogil:
        while True:
            rows = reader.next()
            if rows <= 0:
                break
            for i in range(rows):
                f = v[i] * scale  # exact: a power of two
                cell = int(f)
                f -= cell
                first = int(f * unit)
                second = int(f * f * unit)
                if start[cell >> shift] < 0:
                    if reader.weighted and w[i] == 0:
                        continue  # which gives no block a place
                    rows = -1
                    break
                at = int(y[i])
                at = 3 * at + 6 * (start[cell >> shift] + (cell & last))
                if reader.weighted:
                    weight = reader.scale * w[i]
                    mass[at] += weight
                    mass[at + 1] += weight * first
                    mass[at + 2] += weight * second
                else:
                    count[at] += 1
                    count[at + 1] += first
                    count[at + 2] += second
            if rows < 0:
                break
    return rows == 0
