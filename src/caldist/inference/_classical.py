"""The classical tests of calibration, and the laws that their statistics follow in large samples.

Spiegelhalter's and Hosmer and Lemeshow's statistics are functions of the residual masses c on the
sorted distinct predictions v, as the measures are; q is the sum of the squared row weights at each
prediction, the weights adding up to 1. The cumulative differences (ECCE) become, divided by their
standard deviation, a Brownian motion W on [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "RISK_GROUPS",
    "chi_squared_tail",
    "hosmer_lemeshow",
    "largest_tail",
    "null_deviation",
    "range_tail",
    "risk_groups",
    "spiegelhalter",
    "two_sided_normal_tail",
]

Vector = NDArray[np.float64]
Statistic = Callable[[Vector], float]

RISK_GROUPS = 10  # "deciles of risk"


def null_deviation(v: Vector, q: Vector, function: Vector | float = 1.0) -> float:
    """Return the standard deviation of Σ c_i f(v_i) when the labels are Bernoulli(v)."""
    return math.sqrt(float((q * function**2 * v * (1 - v)).sum()))


def spiegelhalter(v: Vector, deviation: float) -> Statistic:
    r"""Return the function c -> \|z\| of Spiegelhalter's two-sided test.

    .. math:: z = \frac{1}{s} \sum_i c_i (1 - 2 v_i), \qquad
              s^2 = \sum_i q_i (1 - 2 v_i)^2 v_i (1 - v_i)

    It compares the Brier score with its mean under calibration. ``deviation`` is s, or what takes
    its place for clustered rows. Where the predictions are all 0, 1/2 or 1 the score is constant:
    z is then 0, or infinite if a label is impossible.
    """
    slope = 1 - 2 * v

    def statistic(c: Vector) -> float:
        size = abs(float((c * slope).sum()))
        if size == 0:
            return 0.0
        return size / deviation if deviation > 0 else math.inf

    return statistic


def risk_groups(mass: Vector, groups: int = RISK_GROUPS) -> NDArray[np.intp]:
    """Return where each group of equal mass starts; equal predictions stay together."""
    total = float(mass.sum())
    place = np.floor((np.cumsum(mass) - mass) * groups / total)
    return np.concatenate(([0], np.flatnonzero(np.diff(place)) + 1))


def hosmer_lemeshow(v: Vector, q: Vector, mass: Vector) -> tuple[Statistic, int]:
    r"""Return the function c -> H of Hosmer and Lemeshow's test, and its degrees of freedom.

    .. math:: H = \sum_g \frac{(\sum_{i \in g} c_i)^2}{\bar v_g (1 - \bar v_g) \sum_{i \in g} q_i}

    over ten groups of equal mass, \bar v the mean prediction of a group. Without weights this is
    the textbook's (O - E)^2 / (E (1 - E/n)), summed.

    The degrees of freedom are the number of groups, because the predictions are taken as they are:
    the usual two less are for a logistic regression on the rows it was fitted to. Ties may leave
    fewer than ten groups. A group whose predictions are all 0 or all 1 cannot vary and does not
    count; an impossible label in it makes H infinite.
    """
    starts = risk_groups(mass)
    mean = np.add.reduceat(mass * v, starts) / np.add.reduceat(mass, starts)
    variance = np.add.reduceat(q, starts) * mean * (1 - mean)
    certain = variance <= 0

    def statistic(c: Vector) -> float:
        square = np.add.reduceat(c, starts) ** 2
        if certain.any() and square[certain].any():
            return math.inf
        return float((square[~certain] / variance[~certain]).sum())

    return statistic, int(np.count_nonzero(~certain))


# -- laws ------------------------------------------------------------------------------------


def _normal_tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))


def two_sided_normal_tail(x: float) -> float:
    """Return P(|Z| >= x), Z standard normal."""
    return math.erfc(x / math.sqrt(2))


def chi_squared_tail(x: float, degrees: int) -> float:
    """Return P(X >= x), X chi-squared; without degrees of freedom X is 0."""
    if degrees == 0:
        return float(x <= 0)
    from scipy.special import chdtrc  # importing scipy is slow

    return float(chdtrc(degrees, x))


def largest_tail(x: float) -> float:
    r"""Return P(max \|W\| >= x), the limit law of ECCE-MAD.

    .. math:: 4 \sum_{k \ge 0} (-1)^k \bar\Phi((2k + 1) x)
              = 1 - \frac4\pi \sum_{k \ge 0} \frac{(-1)^k}{2k + 1} e^{-(2k + 1)^2 \pi^2 / (8 x^2)}

    The first sum, by reflections, is exact in the tail; the second, by eigenfunctions, near 0.
    """
    if x <= 0:
        return 1.0
    if x >= 1:
        return 4 * sum((-1.0) ** k * _normal_tail((2 * k + 1) * x) for k in range(6))
    inside = sum(
        (-1.0) ** k / (2 * k + 1) * math.exp(-(((2 * k + 1) * math.pi / x) ** 2) / 8)
        for k in range(6)
    )
    return 1 - 4 / math.pi * inside


def range_tail(x: float) -> float:
    r"""Return P(max W - min W >= x), the limit law of ECCE-R.

    .. math:: 8 \sum_{k \ge 1} (-1)^{k - 1} k \, \bar\Phi(k x)
              = 1 - \frac{8}{\pi^2} \sum_{j = 1, 3, \dots} \Big(\frac1{j^2} + \frac{\pi^2}{x^2}\Big)
              e^{-j^2 \pi^2 / (2 x^2)}

    The first sum integrates Feller's density. The second integrates, over where the range lies, the
    probability (4/π) Σ_j sin(jπu/x)/j exp(-j²π²/2x²) of staying between -u and x - u.
    """
    if x <= 0:
        return 1.0
    if x >= 2:
        return 8 * sum((-1.0) ** (k - 1) * k * _normal_tail(k * x) for k in range(1, 8))
    inside = sum(
        (1 / j**2 + (math.pi / x) ** 2) * math.exp(-((j * math.pi / x) ** 2) / 2)
        for j in range(1, 12, 2)
    )
    return 1 - 8 / math.pi**2 * inside
