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
    v: cython.const[cython.double][::1], s: cython.const[cython.double][::1], e: cython.double
) -> float:
    """Return RintCE(e) from the predictions and the prefix sums of the residuals."""
    n: cython.Py_ssize_t = v.shape[0]
    right: cython.Py_ssize_t = 1  # points that the window's right end has met
    left: cython.Py_ssize_t = 0  # points that its left end has passed
    enters: cython.Py_ssize_t
    # An event at v_i - e or v_i is kept as (v_i, lag), lag being e or 0: v_i - e itself would lose
    # the digits that matter when e is small.
    point: cython.double
    lag: cython.double = e
    last: cython.double
    last_lag: cython.double = e
    value: cython.double = 0.0
    with cython.nogil:
        last = v[0]
        while left < n:
            enters = right < n and v[right] - v[left] < e
            if enters:
                point = v[right]
                lag = e
            else:
                point = v[left]
                lag = 0.0
            value += abs(s[right] - s[left]) * ((point - last) + (last_lag - lag))
            last = point
            last_lag = lag
            right += enters
            left += 1 - enters
            if left == right and right < n:  # the window is empty until the next point enters
                last = v[right]
                last_lag = e
                right += 1
    return value / e
