"""The classical tests of calibration, and the laws that their statistics follow in large samples.

Spiegelhalter's and Hosmer and Lemeshow's statistics are functions of the residual masses c on the
sorted distinct predictions v, as those of the measures are; q is the sum of the squared row weights
at each prediction, the weights adding up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from caldist._util.types import Vector
from caldist.inference.noise import Statistic
from caldist.inference.sample import Units
from caldist.measures.bins import equal_mass_starts
from caldist.measures.cumulative import null_deviation

OfMasses = Callable[[Vector], float]

_RISK_GROUPS = 10  # "deciles of risk"


def spiegelhalter(v: Vector, deviation: float) -> OfMasses:
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


def hosmer_lemeshow(v: Vector, q: Vector, mass: Vector) -> tuple[OfMasses, int]:
    r"""Return the function c -> H of Hosmer and Lemeshow's test, and its degrees of freedom.

    .. math:: H = \sum_g \frac{(\sum_{i \in g} c_i)^2}{\bar v_g (1 - \bar v_g) \sum_{i \in g} q_i}

    over ten groups of equal mass, \bar v the mean prediction of a group. Without weights this is
    the textbook's (O - E)^2 / (E (1 - E/n)), summed. ``mass`` may have any scale; numbers of rows
    are compared exactly.

    The degrees of freedom are the number of groups, because the predictions are taken as they are:
    the usual two less are for a logistic regression on the rows it was fitted to. Ties may leave
    fewer than ten groups. A group whose predictions are all 0 or all 1 cannot vary and does not
    count; an impossible label in it makes H infinite.
    """
    starts = equal_mass_starts(mass, _RISK_GROUPS)
    mean = np.add.reduceat(mass * v, starts) / np.add.reduceat(mass, starts)
    variance = np.add.reduceat(q, starts) * mean * (1 - mean)
    certain = variance <= 0

    def statistic(c: Vector) -> float:
        square = np.add.reduceat(c, starts) ** 2
        if certain.any() and square[certain].any():
            return math.inf
        return float((square[~certain] / variance[~certain]).sum())

    return statistic, int(np.count_nonzero(~certain))


def two_sided_normal_tail(x: float) -> float:
    """Return P(|Z| >= x), Z standard normal."""
    return math.erfc(x / math.sqrt(2))


def chi_squared_tail(x: float, degrees: int) -> float:
    """Return P(X >= x), X chi-squared; without degrees of freedom X is 0."""
    if degrees == 0:
        return float(x <= 0)
    if degrees % 2 == 0:  # as many arrivals of a Poisson process at most: a finite sum
        term = total = math.exp(-x / 2)
        for k in range(1, degrees // 2 if term > 0 else 0):
            term *= x / 2 / k
            total += term
        return min(total, 1.0)
    from scipy.special import chdtrc  # importing scipy is slow

    return float(chdtrc(degrees, x))


# -- the tests of these names ----------------------------------------------------------------


def _spiegelhalter(units: Units) -> Statistic:
    v = units.prediction
    slope = 1 - 2 * v
    deviation = null_deviation(v, units.squares, slope)
    if units.cluster is None:
        return Statistic(spiegelhalter(v, deviation), two_sided_normal_tail)
    own = units.cluster_sums(units.share * units.error * slope[units.place])
    return Statistic(spiegelhalter(v, math.sqrt(float((own**2).sum()))))


def _hosmer_lemeshow(units: Units) -> Statistic:
    # Relative to the largest weight, so that rows of equal weight are whole numbers.
    rows = units.at_predictions(units.count * (units.share / units.share.max()))
    of, degrees = hosmer_lemeshow(units.prediction, units.squares, rows)
    if units.cluster is not None:  # the limit law is that of independent rows
        return Statistic(of)
    return Statistic(of, lambda value: chi_squared_tail(value, degrees))


CLASSICAL: dict[str, Callable[[Units], Statistic]] = {
    "spiegelhalter": _spiegelhalter,
    "hosmer_lemeshow": _hosmer_lemeshow,
}
