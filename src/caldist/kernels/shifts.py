r"""The random-shift interval calibration error, exactly, in O(n).

Notation: v the sorted distinct predictions, c their residual masses, e the bin width. As the shift
r sweeps [0, e) and j runs over the integers, r + je sweeps the line once, so

    RintCE(e) = (1/e) * integral over t of |sum of c_i with v_i in [t, t + e)|.

The integrand changes where the window's right end meets a point (t = v_i - e) and where its left
end passes one (t = v_i): a merge of two sorted lists. The window's sum is a difference of prefix
sums, so rounding does not accumulate along the sweep.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython


def random_interval_ce(
    v: cython.const[cython.double][::1],
    s: cython.const[cython.double][::1],
    e: cython.double,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
) -> float:
    """Return the part of RintCE(e) that points pass from the ``first`` on, before the ``last``.

    ``s`` are the prefix sums of the residuals. From 0 to n it is all of it.
    """
    n: cython.Py_ssize_t = v.shape[0]
    left: cython.Py_ssize_t = first  # points that the window's left end has passed
    right: cython.Py_ssize_t = 1  # points that its right end has met
    enters: cython.bint
    # An event at v_i - e or v_i is kept as (v_i, lag), lag being e or 0: v_i - e itself would lose
    # the digits that matter when e is small.
    point: cython.double
    lag: cython.double
    before: cython.double = v[0]
    lag_before: cython.double = e
    value: cython.double = 0.0
    with cython.nogil:
        if 0 < first < last:
            right = _met(v, first, e)
            before = v[first - 1]
            lag_before = 0.0
            if right == first:
                right += 1
                before = v[first]
                lag_before = e
        while left < last:
            # Both are read, and one is taken: which is next cannot be foretold.
            point = v[right if right < n else n - 1]
            enters = right < n and point - v[left] < e
            point = point if enters else v[left]
            lag = e if enters else 0.0
            value += abs(s[right] - s[left]) * ((point - before) + (lag_before - lag))
            before = point
            lag_before = lag
            right += enters
            left += 1 - enters
            if left == right and right < n:  # the window is empty until the next point enters
                before = v[right]
                lag_before = e
                right += 1
    return value / e


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _met(
    v: cython.const[cython.double][::1], passed: cython.Py_ssize_t, e: cython.double
) -> cython.Py_ssize_t:
    """Return how many points the right end has met when the left end passes one."""
    low: cython.Py_ssize_t = passed
    high: cython.Py_ssize_t = v.shape[0]
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if v[middle] - v[passed - 1] < e:
            low = middle + 1
        else:
            high = middle
    return low
