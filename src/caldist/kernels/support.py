"""From rows to the support of a joint distribution: sorted distinct predictions with masses.

Residuals depend on (prediction, label) alone, so unweighted rows need no argsort: the predictions
of the two labels are sorted apart and merged here. Weighted rows come with their sorting order.
All passes are O(n).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython


def split_by_label(
    label: cython.const[cython.uchar][::1],
    prediction: cython.const[cython.double][::1],
    out: cython.double[::1],
) -> int:
    """Write the predictions of label 1 from the left of ``out``, the others from the right.

    Returns the number of ones. Adding 0.0 turns -0.0 into 0.0, so that the two tie.
    """
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = prediction.shape[0]
    left: cython.Py_ssize_t = 0
    right: cython.Py_ssize_t = n - 1
    one: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            # Write to both ends and move one of them: no branch to mispredict. The cell that is
            # not kept is still free, because left <= right here.
            one = label[i]
            out[left] = out[right] = prediction[i] + 0.0
            left += one
            right -= 1 - one
    return left


def merge_labels(
    one: cython.const[cython.double][::1],
    zero: cython.const[cython.double][::1],
    prediction: cython.double[::1],
    mass0: cython.double[::1],
    mass1: cython.double[::1],
) -> int:
    """Merge the sorted predictions of both labels into distinct ones with row counts.

    Returns how many there are.
    """
    i: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    n1: cython.Py_ssize_t = one.shape[0]
    n0: cython.Py_ssize_t = zero.shape[0]
    k: cython.Py_ssize_t = -1
    last: cython.double = -1.0
    x: cython.double
    from_one: cython.Py_ssize_t
    with cython.nogil:
        while i < n1 or j < n0:
            if j >= n0:
                from_one = 1
            elif i >= n1:
                from_one = 0
            else:
                from_one = one[i] <= zero[j]
            x = one[i] if from_one else zero[j]
            i += from_one
            j += 1 - from_one
            if x != last:
                k += 1
                last = x
                prediction[k] = x
                mass0[k] = 0.0
                mass1[k] = 0.0
            mass1[k] += from_one
            mass0[k] += 1 - from_one
    return k + 1


def merge_weighted(
    order: cython.const[cython.longlong][::1],
    value: cython.const[cython.double][::1],
    weight0: cython.const[cython.double][::1],
    weight1: cython.const[cython.double][::1],
    squared0: cython.const[cython.double][::1],
    squared1: cython.const[cython.double][::1],
    prediction: cython.double[::1],
    mass0: cython.double[::1],
    mass1: cython.double[::1],
    square0: cython.double[::1],
    square1: cython.double[::1],
) -> int:
    """Add up the weights of equal predictions, ``order`` being their sorting order.

    So are their squares, unless these arrays are empty. Rows without weight leave no trace. Returns
    the number of distinct predictions.
    """
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    k: cython.Py_ssize_t = -1
    last: cython.double = -1.0
    x: cython.double
    squares: cython.bint = squared0.shape[0] > 0
    with cython.nogil:
        for i in range(order.shape[0]):
            at = order[i]
            if weight0[at] + weight1[at] == 0.0:
                continue
            x = value[at] + 0.0
            if x != last:
                k += 1
                last = x
                prediction[k] = x
                mass0[k] = 0.0
                mass1[k] = 0.0
                if squares:
                    square0[k] = 0.0
                    square1[k] = 0.0
            mass0[k] += weight0[at]
            mass1[k] += weight1[at]
            if squares:
                square0[k] += squared0[at]
                square1[k] += squared1[at]
    return k + 1


def residual_masses(
    prediction: cython.const[cython.double][::1],
    mass0: cython.const[cython.double][::1],
    mass1: cython.const[cython.double][::1],
    total: cython.double,
    residual: cython.double[::1],
) -> None:
    """Write E[(y - v) 1(v = v_i)], the residual mass of each distinct prediction."""
    i: cython.Py_ssize_t
    v: cython.double
    with cython.nogil:
        for i in range(prediction.shape[0]):
            v = prediction[i]
            # Dividing first keeps the digits of masses close to the least positive number.
            residual[i] = mass1[i] / total * (1.0 - v) - mass0[i] / total * v
