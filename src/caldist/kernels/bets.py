r"""Mixtures of bets on bounded payoffs, from their sums.

A payoff x >= -1 with mean at most d satisfies E exp(rate x - cost x^2) <= exp(rate d) for every
rate in [0, 1) and cost = -log(1 - rate) - rate. With sums S of x and Q of x^2 the wealth
of the bets is

    m(S, Q) = sum_l weight_l exp(rate_l S - cost_l Q),

and that of a bank of payoffs the sum over its members of share_k m(S_k - n d, Q_k).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

if cython.compiled:
    from cython.cimports.libc.math import exp, log, sqrt
else:
    from math import exp, log, sqrt


def bank_values(
    gain: cython.const[cython.double][::1],
    square: cython.const[cython.double][::1],
    rows: cython.const[cython.double][::1],
    distance: cython.double,
    log_share: cython.const[cython.double][::1],
    rate: cython.const[cython.double][::1],
    cost: cython.const[cython.double][::1],
    log_weight: cython.const[cython.double][::1],
    out: cython.double[::1],
) -> None:
    """Write the log wealth of each window; ``gain`` and ``square`` hold a bank for each."""
    s: cython.Py_ssize_t
    with cython.nogil:
        for s in range(out.shape[0]):
            out[s] = _bank(
                gain, square, s * log_share.shape[0], rows[s] * distance,
                log_share, rate, cost, log_weight,
            )  # fmt: skip


def lower_end(
    gain: cython.const[cython.double][::1],
    square: cython.const[cython.double][::1],
    rows: cython.double,
    log_share: cython.const[cython.double][::1],
    rate: cython.const[cython.double][::1],
    cost: cython.const[cython.double][::1],
    log_weight: cython.const[cython.double][::1],
    threshold: cython.double,
) -> float:
    """Return the largest distance in [0, 1] against which the log wealth reaches the threshold."""
    low = 0.0
    high = 1.0
    with cython.nogil:
        if _bank(gain, square, 0, 0.0, log_share, rate, cost, log_weight) >= threshold:
            while high - low > 1e-9:
                middle = 0.5 * (low + high)
                if (
                    _bank(gain, square, 0, rows * middle, log_share, rate, cost, log_weight)
                    >= threshold
                ):
                    low = middle
                else:
                    high = middle
    return low


def boundary(
    square: cython.double,
    rate: cython.const[cython.double][::1],
    cost: cython.const[cython.double][::1],
    log_weight: cython.const[cython.double][::1],
    threshold: cython.double,
) -> float:
    """Return the S with log m(S, ``square``) = ``threshold``, from above."""
    low = 0.0
    high = 64.0 + 8.0 * sqrt((square + 1.0) * (threshold + 4.0))
    with cython.nogil:
        while _mixture(high, square, rate, cost, log_weight) < threshold:
            low = high
            high *= 2.0
        while high - low > 1e-13 * high + 1e-12:
            middle = 0.5 * (low + high)
            if _mixture(middle, square, rate, cost, log_weight) >= threshold:
                high = middle
            else:
                low = middle
    return high


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bank(
    gain: cython.const[cython.double][::1],
    square: cython.const[cython.double][::1],
    at: cython.Py_ssize_t,
    allowed: cython.double,
    log_share: cython.const[cython.double][::1],
    rate: cython.const[cython.double][::1],
    cost: cython.const[cython.double][::1],
    log_weight: cython.const[cython.double][::1],
) -> cython.double:
    """Return the log wealth of a bank after ``allowed`` was taken off every gain."""
    k: cython.Py_ssize_t
    top = 0.0
    total = 0.0
    for k in range(log_share.shape[0]):
        value = log_share[k] + _mixture(
            gain[at + k] - allowed, square[at + k], rate, cost, log_weight
        )
        if k == 0 or value > top:
            total = total * exp(top - value) + 1.0 if k > 0 else 1.0
            top = value
        else:
            total += exp(value - top)
    return top + log(total)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _mixture(
    gain: cython.double,
    square: cython.double,
    rate: cython.const[cython.double][::1],
    cost: cython.const[cython.double][::1],
    log_weight: cython.const[cython.double][::1],
) -> cython.double:
    """Return log m(gain, square)."""
    l: cython.Py_ssize_t
    top = log_weight[0] + rate[0] * gain - cost[0] * square
    total = 0.0
    for l in range(1, rate.shape[0]):
        top = max(top, log_weight[l] + rate[l] * gain - cost[l] * square)
    for l in range(rate.shape[0]):
        value = log_weight[l] + rate[l] * gain - cost[l] * square - top
        if value > -45.0:
            total += exp(value)
    return top + log(total)
