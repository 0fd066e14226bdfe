r"""Least squares on a chain whose steps are bounded, exactly.

Minimise sum_i w_i (x_i - t_i)^2 over low_i <= x_{i+1} - x_i <= high_i. An upper bound may be
infinite: with lower bounds of 0 and no upper ones this is isotonic regression.

Let f_i(x) be the least cost of the first i terms with x_i = x, and z_i where it is least. Its
derivative is increasing, continuous and piecewise linear. From i to i + 1 the part left of z_i
moves by low_i, the part right of it by high_i, and 2 w (x - t) is added. So two stacks hold where
the derivative bends, to the left and to the right of z_i, nearest on top, with one lazy offset
each, and z moves outwards over their tops until the derivative is 0. Then, from the end,
x_i = z_i clipped to what x_{i+1} allows.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels._arrays import doubles


def fit(
    weight: cython.const[cython.double][::1],
    target: cython.const[cython.double][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    fitted: cython.double[::1],
) -> None:
    """Write the minimiser into ``fitted``.

    Weights are positive, ``low`` and ``high`` have one bound for each of the n - 1 steps, low is
    finite and not above high.
    """
    n: cython.Py_ssize_t = weight.shape[0]
    left_at: cython.double[::1] = doubles(2 * n)
    left_bend: cython.double[::1] = doubles(2 * n)
    right_at: cython.double[::1] = doubles(2 * n)
    right_bend: cython.double[::1] = doubles(2 * n)
    left: cython.Py_ssize_t = 0
    right: cython.Py_ssize_t = 0
    left_shift: cython.double = 0.0
    right_shift: cython.double = 0.0
    i: cython.Py_ssize_t
    z: cython.double = target[0]
    t: cython.double
    slope: cython.double = weight[0]
    value: cython.double
    further: cython.double
    at: cython.double
    near: cython.double
    far: cython.double
    bounded: cython.bint
    fitted[0] = z
    with cython.nogil:
        for i in range(1, n):
            left_shift += low[i - 1]
            near = z + low[i - 1]
            left_at[left] = near - left_shift
            left_bend[left] = -slope
            left += 1
            far = z + high[i - 1]
            bounded = far - far == 0.0
            if bounded:
                right_shift += high[i - 1]
                right_at[right] = far - right_shift
                right_bend[right] = slope
                right += 1
            else:
                right = 0
                right_shift = 0.0
            slope = weight[i]
            t = target[i]
            if bounded and t > far:
                z = far
                value = slope * (z - t)
                while right > 0:
                    at = right_at[right - 1] + right_shift
                    further = value + slope * (at - z)
                    if further >= 0.0:
                        break
                    right -= 1
                    left_at[left] = at - left_shift
                    left_bend[left] = right_bend[right]
                    left += 1
                    slope += right_bend[right]
                    # A slope is never below the last weight; rounding could make it so.
                    slope = max(slope, weight[i])
                    z = at
                    value = further
                z -= value / slope
            elif t < near:
                z = near
                value = slope * (z - t)
                while left > 0:
                    at = left_at[left - 1] + left_shift
                    further = value + slope * (at - z)
                    if further <= 0.0:
                        break
                    left -= 1
                    right_at[right] = at - right_shift
                    right_bend[right] = left_bend[left]
                    right += 1
                    slope -= left_bend[left]
                    slope = max(slope, weight[i])
                    z = at
                    value = further
                z -= value / slope
            else:
                z = t
            fitted[i] = z
        for i in range(n - 2, -1, -1):
            near = fitted[i + 1] - high[i]
            far = fitted[i + 1] - low[i]
            fitted[i] = min(max(fitted[i], near), far)
