r"""What a resampling replicate needs between its random numbers and a norm, in O(n), no sorting.

Notation: a unit u is ``count[u]`` rows that share a prediction, a label and a weight. It lies at
``place[u]`` of the support and each of its rows has size ``size[u]``; ``out`` is the sum over the
units of each place. A sign flip multiplies every row, or every cluster of rows, by an independent
+1 or -1, and costs one random bit. The sum of k signs is 2 Binomial(k, 1/2) - k, so units of
many rows come with that sum drawn beforehand.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython


def flip_rows(
    bits: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    size: cython.const[cython.double][::1],
    count: cython.const[cython.longlong][::1],
    out: cython.double[::1],
) -> None:
    """Write the sums of the sizes after a sign flip of each row, one bit a row."""
    u: cython.Py_ssize_t
    i: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    ones: cython.Py_ssize_t
    with cython.nogil:
        for u in range(out.shape[0]):
            out[u] = 0.0
        for u in range(place.shape[0]):
            ones = 0
            stop = i + count[u]
            while i < stop:
                ones += bits[i >> 3] >> (i & 7) & 1
                i += 1
            out[place[u]] += size[u] * (2 * ones - count[u])


def flip_clusters(
    bits: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    size: cython.const[cython.double][::1],
    cluster: cython.const[cython.longlong][::1],
    out: cython.double[::1],
) -> None:
    """Write the sums of the sizes after a sign flip of each cluster; its bit has its number."""
    u: cython.Py_ssize_t
    g: cython.Py_ssize_t
    with cython.nogil:
        for u in range(out.shape[0]):
            out[u] = 0.0
        for u in range(place.shape[0]):
            g = cluster[u]
            out[place[u]] += size[u] * (2 * (bits[g >> 3] >> (g & 7) & 1) - 1)


def flip_clusters_in(
    bits: cython.const[cython.uchar][::1],
    size: cython.const[cython.double][::1],
    cluster: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    out: cython.double[::1],
) -> None:
    """Write the same for cells, the k-th of which has the units from ``start[k]`` on.

    Sums of every other unit do not wait for each other.
    """
    k: cython.Py_ssize_t
    u: cython.Py_ssize_t
    last: cython.Py_ssize_t
    g: cython.Py_ssize_t
    h: cython.Py_ssize_t
    with cython.nogil:
        for k in range(out.shape[0]):
            even = odd = 0.0
            u = start[k]
            last = start[k + 1]
            while u + 2 <= last:
                g = cluster[u]
                h = cluster[u + 1]
                even += size[u] * (2 * (bits[g >> 3] >> (g & 7) & 1) - 1)
                odd += size[u + 1] * (2 * (bits[h >> 3] >> (h & 7) & 1) - 1)
                u += 2
            if u < last:
                g = cluster[u]
                even += size[u] * (2 * (bits[g >> 3] >> (g & 7) & 1) - 1)
            out[k] = even + odd


def draw_clusters_in(
    uniform: cython.const[cython.double][::1],
    own: cython.const[cython.double][::1],
    together: cython.const[cython.double][::1],
    share: cython.const[cython.double][::1],
    v: cython.const[cython.double][::1],
    cluster: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    out: cython.double[::1],
) -> None:
    """Write residual masses of labels that are 1 where a random number is below v.

    It is that of the row's cluster, or the row's own one, if there is one, from the ``together`` of
    its cell on.
    """
    k: cython.Py_ssize_t
    u: cython.Py_ssize_t
    last: cython.Py_ssize_t
    even: cython.double
    odd: cython.double
    number: cython.double
    with cython.nogil:
        for k in range(out.shape[0] if own.shape[0] else 0):
            even = 0.0
            for u in range(start[k], start[k + 1]):
                number = uniform[cluster[u]]
                if own[u] >= together[k]:
                    number = (own[u] - together[k]) / (1 - together[k])
                even += share[u] * ((number < v[u]) - v[u])
            out[k] = even
        for k in range(0 if own.shape[0] else out.shape[0]):
            even = odd = 0.0
            u = start[k]
            last = start[k + 1]
            while u + 2 <= last:
                even += share[u] * ((uniform[cluster[u]] < v[u]) - v[u])
                odd += share[u + 1] * ((uniform[cluster[u + 1]] < v[u + 1]) - v[u + 1])
                u += 2
            if u < last:
                even += share[u] * ((uniform[cluster[u]] < v[u]) - v[u])
            out[k] = even + odd


def collect(
    factor: cython.const[cython.double][::1],
    place: cython.const[cython.longlong][::1],
    size: cython.const[cython.double][::1],
    out: cython.double[::1],
) -> None:
    """Write the sums of the sizes, each times the factor of its unit."""
    u: cython.Py_ssize_t
    with cython.nogil:
        for u in range(out.shape[0]):
            out[u] = 0.0
        for u in range(place.shape[0]):
            out[place[u]] += size[u] * factor[u]


def draw_labels(
    uniform: cython.const[cython.double][::1],
    place: cython.const[cython.longlong][::1],
    size: cython.const[cython.double][::1],
    count: cython.const[cython.longlong][::1],
    prediction: cython.const[cython.double][::1],
    out: cython.double[::1],
) -> None:
    """Write the residual masses of labels drawn from the predictions, one uniform number a row."""
    u: cython.Py_ssize_t
    i: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    ones: cython.Py_ssize_t
    with cython.nogil:
        for u in range(out.shape[0]):
            out[u] = 0.0
        for u in range(place.shape[0]):
            p = prediction[place[u]]
            ones = 0
            stop = i + count[u]
            while i < stop:
                ones += uniform[i] < p
                i += 1
            out[place[u]] += size[u] * (ones - count[u] * p)


def sums_of_signs(
    words: cython.const[cython.uint][::1],
    count: cython.const[cython.longlong][::1],
    out: cython.double[::1],
) -> None:
    """Write sums of so many random signs, each unit with words of 32 of its own."""
    u: cython.Py_ssize_t
    i: cython.Py_ssize_t = 0
    left: cython.longlong
    ones: cython.longlong
    word: cython.uint
    with cython.nogil:
        for u in range(out.shape[0]):
            ones = 0
            left = count[u]
            while left > 0:
                word = words[i]
                if left < 32:
                    word = word >> (32 - left)
                ones += _bits(word)
                left -= 32
                i += 1
            out[u] = 2 * ones - count[u]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _bits(x: cython.uint) -> cython.longlong:
    """Return how many of 32 bits are 1, by adding neighbours up."""
    x = x - (x >> 1 & 0x55555555)
    x = (x & 0x33333333) + (x >> 2 & 0x33333333)
    x = x + (x >> 4) & 0x0F0F0F0F
    x = x + (x >> 8)
    x = x + (x >> 16)
    return x & 63


def count_ones(
    label: cython.const[cython.uchar][::1],
    start: cython.const[cython.longlong][::1],
    out: cython.double[::1],
) -> None:
    """Write how many labels are 1 in each cell, the k-th from ``start[k]`` on.

    ``start`` has one entry more than there are cells, the number of labels.
    """
    k: cython.Py_ssize_t
    i: cython.Py_ssize_t
    ones: cython.Py_ssize_t
    with cython.nogil:
        for k in range(out.shape[0]):
            ones = 0
            for i in range(start[k], start[k + 1]):
                ones += label[i]
            out[k] = ones


def weigh_ones(
    label: cython.const[cython.uchar][::1],
    share: cython.const[cython.double][::1],
    start: cython.const[cython.longlong][::1],
    out: cython.double[::1],
) -> None:
    """Write the share of the rows with label 1 in each cell, the k-th from ``start[k]`` on.

    Sums of four rows apart do not wait for each other.
    """
    k: cython.Py_ssize_t
    i: cython.Py_ssize_t
    last: cython.Py_ssize_t
    with cython.nogil:
        for k in range(out.shape[0]):
            a = b = c = d = 0.0
            i = start[k]
            last = start[k + 1]
            while i + 4 <= last:
                a += share[i] * label[i]
                b += share[i + 1] * label[i + 1]
                c += share[i + 2] * label[i + 2]
                d += share[i + 3] * label[i + 3]
                i += 4
            while i < last:
                a += share[i] * label[i]
                i += 1
            out[k] = (a + b) + (c + d)


def label_deviation(
    v: cython.const[cython.double][::1], change: cython.const[cython.double][::1]
) -> float:
    r"""Return the bound on the change of ldCE when the masses of the labels change.

    ``change`` holds the changes of the masses of label 0 at v_1, ..., v_n, then those of label 1.
    With D_y(A) the change of label y on the set A, it is the integral over t in [0, 1] of
    |D_1(v <= t)| + |D_0(v > t)|.
    """
    n: cython.Py_ssize_t = v.shape[0]
    i: cython.Py_ssize_t
    below: cython.double = 0.0
    above: cython.double = 0.0
    value: cython.double
    d: cython.double
    with cython.nogil:
        for i in range(n):
            above += change[i]
        value = v[0] * abs(above)
        for i in range(n):
            d = (v[i + 1] if i + 1 < n else 1.0) - v[i]
            above -= change[i]
            below += change[n + i]
            # Beyond the last prediction nothing of label 0 is left; rounding may leave an ulp.
            value += d * (abs(below) + (abs(above) if i + 1 < n else 0.0))
    return value
