"""The true distance to calibration of a finite domain, dCE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.numbers import least, most
from caldist._util.products import dot
from caldist._util.results import Result
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.errors import InvalidInput, ToleranceError, answering
from caldist.kernels.loader import partition
from caldist.measures import _partitions
from caldist.measures.lower_distance import TOLERANCE, certify_lower
from caldist.measures.upper_distance import upper_distance

_LARGEST_ORDER = 16  # beyond it powers of small distances vanish
_LEAST = 2.0**-960  # of a point's share: parts of less lose digits, and vanish
_LATTICE = 200  # points with labels 0 and 1 for which the lattice is still quick


@dataclass(frozen=True)
class DistanceBounds(Result):
    """Bounds on the true distance to calibration; ``exact`` when they are one value."""

    lower: float
    upper: float
    exact: bool

    def __str__(self) -> str:
        if self.exact:
            return f"The true distance to calibration is {self.lower:.4g}."
        return (
            f"The true distance to calibration is at least {least(self.lower)} and at most "
            f"{most(self.upper)}."
        )


@answering
def true_distance(
    y_mean: ArrayLike, y_prob: ArrayLike, *, mass: ArrayLike | None = None, order: float = 1
) -> float:
    r"""Return the distance to calibration of a predictor on a finite domain, exactly.

    .. math:: \mathrm{dCE}_p(f) = \min_g \; (E\,|f(x) - g(x)|^p)^{1/p}

    over all predictors g that are perfectly calibrated on the domain.

    **What it means.** The ground truth that all other measures bound. Unlike them it needs the
    domain: which predictions belong to one and the same x. Each x is given by E[y|x], f(x) and its
    mass. Pass a sample with its labels as ``y_mean`` to treat every row as an x of its own.

    **What it estimates.** The domain that is given. On a sample it does not estimate the
    population's distance, since a sample's labels look certain.

    **Cost.** NP-hard in general. Exact up to 17 points (12 where kernels are not compiled) by
    dynamic programming over subsets, and, for labels 0 and 1 of equal mass, to 200 by a shortest
    path. Beyond, see :func:`true_distance_bounds`.

    Parameters
    ----------
    y_mean : array-like in [0, 1]
        E[y|x] for each x.
    y_prob : array-like in [0, 1]
        The prediction f(x) for each x.
    mass : array-like, optional
        The mass of each x; equal by default.
    order : float
        The exponent p, from 1 to 16.

    Raises
    ------
    caldist.errors.ToleranceError
        If the domain is too large for an exact answer; it carries valid bounds.

    Examples
    --------
    Two points with certain labels, predicted just below and above one half. Predicting one half for
    both is calibrated and a small step away:

    >>> import caldist
    >>> caldist.measures.true_distance([0, 1], [0.4375, 0.5625])
    0.0625
    """
    bounds = true_distance_bounds(y_mean, y_prob, mass=mass, order=order)
    if not bounds.exact:
        message = (
            f"y_mean has too many points for an exact answer. The true distance is between "
            f"{bounds.lower!r} and {bounds.upper!r}: see caldist.measures.true_distance_bounds."
        )
        raise ToleranceError(message, bounds.lower, bounds.upper)
    return bounds.upper


@answering
def true_distance_bounds(
    y_mean: ArrayLike, y_prob: ArrayLike, *, mass: ArrayLike | None = None, order: float = 1
) -> DistanceBounds:
    """Return certain bounds on the true distance to calibration of a finite domain of any size.

    Both are the exact value where :func:`true_distance` can find it. Beyond, the lower distance
    bounds it from below. From above it is bounded by the upper distance and, for labels 0 and 1 of
    equal mass, by the lower distance's coupling rounded to whole points, which is closer the more
    points there are.

    Parameters
    ----------
    y_mean : array-like in [0, 1]
        E[y|x] for each x.
    y_prob : array-like in [0, 1]
        The prediction f(x) for each x.
    mass : array-like, optional
        The mass of each x; equal by default.
    order : float
        The exponent p, from 1 to 16.

    Examples
    --------
    >>> import numpy as np, caldist
    >>> p = (np.arange(1000) + 0.5) / 1000
    >>> bounds = caldist.measures.true_distance_bounds(p > 0.25, p)
    >>> round(bounds.lower, 4), round(bounds.upper, 4), bounds.exact
    (0.25, 0.25, False)
    """
    mean, value, share = _check(y_mean, y_prob, mass)
    order = validate.check_positive("order", order)
    if not 1 <= order <= _LARGEST_ORDER:
        reason = f"it must be between 1 and {_LARGEST_ORDER}"
        raise InvalidInput(argument="order", value=order, reason=reason)
    k = value.size
    certain = bool(np.all((mean == 0) | (mean == 1)) and np.all(share == share[0]))
    if k > _partitions.DYNAMIC and certain and order == 1 and k <= _LATTICE:
        total = partition.lattice_distance(np.sort(value[mean == 1]), np.sort(value[mean == 0]))
        return DistanceBounds(total / k, total / k, exact=True)
    if k <= _partitions.DYNAMIC:
        group = _partitions.best_groups(value, share, share * mean, order)
        distance = _group_distance(value, mean, share, group, order)
        return DistanceBounds(distance, distance, exact=True)
    joint = Joint.from_masses(value, share * (1 - mean), share * mean)
    below = certify_lower(joint, tol=TOLERANCE)
    upper = upper_distance(joint)
    if certain:
        rounded = _rounded_coupling(
            np.sort(value[mean == 1]), np.sort(value[mean == 0]),
            below.calibrated, below.calibrated_mass,
        )  # fmt: skip
        upper = min(upper, rounded)
    # In every order p: dCE_1 <= dCE_p and (dCE_p)^p <= dCE_1.
    return DistanceBounds(below.lower, max(below.lower, upper ** (1 / order)), exact=False)


def _check(
    y_mean: ArrayLike, y_prob: ArrayLike, mass: ArrayLike | None
) -> tuple[Vector, Vector, Vector]:
    value = validate.probabilities(y_prob)
    mean = validate.probabilities(y_mean, "y_mean")
    validate.check_size("y_mean", mean.size, "y_prob", value.size)
    if mass is None:
        return mean, value, np.full(value.size, 1 / value.size)
    share = validate.weights(mass, value.size, "mass")
    share = share / share.sum()
    kept = share >= _LEAST  # others move the distance by less than its rounding, or are 0
    return mean[kept], value[kept], share[kept]


def _group_distance(
    value: Vector, mean: Vector, share: Vector, group: NDArray[np.int64], order: float
) -> float:
    target = np.bincount(group, share * mean) / np.bincount(group, share)
    return float(dot(share, np.abs(value - target[group]) ** order) ** (1 / order))


def _rounded_coupling(one: Vector, zero: Vector, u: Vector, m: Vector) -> float:
    """Return the cost of a calibrated predictor that follows a coupling, with whole points.

    The coupling's targets are merged into 1, 2, 4, … classes of similar mass, and each class gets
    as many of the sorted ones and zeros as the coupling sends there, rounded.
    """
    n = one.size + zero.size
    share = np.cumsum(m) / m.sum()
    ones, zeros = np.cumsum(u * m), np.cumsum((1 - u) * m)
    best = np.inf
    classes = 1
    while classes <= 2 * n:
        end = np.searchsorted(share, np.arange(1, classes) / classes)
        cut1 = np.concatenate(([0], np.rint(ones[end] * n).astype(int), [one.size]))
        cut0 = np.concatenate(([0], np.rint(zeros[end] * n).astype(int), [zero.size]))
        cut1, cut0 = np.minimum(cut1, one.size), np.minimum(cut0, zero.size)
        size1, size0 = np.diff(cut1), np.diff(cut0)
        target = size1 / np.maximum(1, size1 + size0)
        cost = np.abs(one - np.repeat(target, size1)).sum()
        cost += np.abs(zero - np.repeat(target, size0)).sum()
        best = min(best, float(cost) / n)
        classes *= 2
    return best
