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
    """Return the part of RintCE(e) before the events from the ``first`` on, up to the ``last``.

    ``s`` are the prefix sums of the residuals. From 0 to 2n it is all of it. Which event is next
    depends on the one before, so that most of the time goes by waiting: four sweeps side by side,
    each of a quarter of the events, take little longer than one.
    """
    left: cython.Py_ssize_t[4]  # points that a window's left end has passed
    right: cython.Py_ssize_t[4]  # points that its right end has met
    # An event at v_i - e or v_i is kept as (v_i, lag), lag being e or 0: v_i - e itself would lose
    # the digits that matter when e is small.
    before: cython.double[4]
    lag: cython.double[4]
    value: cython.double[4]
    k: cython.Py_ssize_t
    each: cython.Py_ssize_t = (last - first) // 4
    if not cython.compiled:
        left, right = [0] * 4, [0] * 4
        before, lag, value = [0.0] * 4, [0.0] * 4, [0.0] * 4
    if first == last:
        return 0.0
    with cython.nogil:
        for k in range(4):
            left[k] = _passed(v, first + k * each, e)
            right[k] = first + k * each - left[k]
            before[k] = v[right[k] - 1 if right[k] > 0 else 0]
            lag[k] = e
            value[k] = 0.0
            if left[k] > 0 and before[k] - v[left[k] - 1] < e:  # the last event was a leaving
                before[k] = v[left[k] - 1]
                lag[k] = 0.0
        while left[0] + right[0] < first + each:
            for k in range(4):
                _step(v, s, e, k, left, right, before, lag, value)
        while left[3] + right[3] < last:
            _step(v, s, e, 3, left, right, before, lag, value)
    return (value[0] + value[1] + value[2] + value[3]) / e


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _step(
    v: cython.const[cython.double][::1],
    s: cython.const[cython.double][::1],
    e: cython.double,
    k: cython.Py_ssize_t,
    left: cython.pointer[cython.Py_ssize_t],
    right: cython.pointer[cython.Py_ssize_t],
    before: cython.p_double,
    lag: cython.p_double,
    value: cython.p_double,
) -> cython.void:
    """Go on to the next event of the k-th sweep."""
    n: cython.Py_ssize_t = v.shape[0]
    # Both are read, and one is taken: which is next cannot be foretold, so there is no branch.
    entering = v[right[k] if right[k] < n else n - 1]
    leaving = v[left[k]]
    enters: cython.Py_ssize_t = (right[k] < n) & (entering - leaving < e)
    point = v[left[k] + enters * (right[k] - left[k])]
    later = enters * e
    value[k] += abs(s[right[k]] - s[left[k]]) * ((point - before[k]) + (lag[k] - later))
    before[k] = point
    lag[k] = later
    right[k] += enters
    left[k] += 1 - enters


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _passed(
    v: cython.const[cython.double][::1], events: cython.Py_ssize_t, e: cython.double
) -> cython.Py_ssize_t:
    """Return how many points the left end has passed after some events.

    It passes v_l after l others, and after the right end has met all that are less than e above.
    """
    n: cython.Py_ssize_t = v.shape[0]
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = min(n, events)
    middle: cython.Py_ssize_t
    met: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        met = events - 1 - middle
        if met >= n or v[met] - v[middle] >= e:
            low = middle + 1
        else:
            high = middle
    return low
