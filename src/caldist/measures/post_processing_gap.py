"""The post-processing gap, pGap."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.products import dot
from caldist._util.types import Vector
from caldist.certificates import GapCertificate
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput
from caldist.kernels.loader import chain
from caldist.measures._rounding import around, residual_moves
from caldist.measures.base import NOT_A_NORM, Lacking, measure

MAX_SLOPE = 2.0
_LEAST = 1e-290  # a share that is less is taken for it, so that no weight is 0

_BETWEEN = Lacking(
    "no recipe with proved or measured coverage is known for it",
    "It lies between smCE² and 2 smCE: use measure='smooth_ce'.",
)


def _checked(max_slope: float) -> float:
    slope = validate.check_positive("max_slope", max_slope)
    if slope < 1:
        reason = (
            "it must be at least 1, or leaving the predictions as they are would not be allowed"
        )
        raise InvalidInput(argument="max_slope", value=max_slope, reason=reason)
    return slope


def fitted_map(joint: Joint, max_slope: float) -> Vector:
    """Return the best values for a joint's predictions, by slopes from 0 to ``max_slope``."""
    mass0, mass1 = joint.normalized()
    mass = np.maximum(np.add(mass0, mass1, out=mass0), _LEAST, out=mass0)
    target = np.divide(mass1, mass, out=mass1)
    most = np.diff(joint.prediction)
    most *= max_slope
    np.minimum(most, 1.0, out=most)  # values lie in [0, 1] by themselves
    fitted = np.empty_like(mass)
    chain.fit(mass, target, np.zeros_like(most), most, fitted)
    return np.clip(fitted, 0.0, 1.0, out=fitted)


def _gain(joint: Joint, fitted: Vector) -> float:
    """Return (y - v)² - (y - κ)² on average, each as the product of its sum and difference."""
    v, (mass0, mass1) = joint.prediction, joint.normalized()
    both = v + fitted
    mass0 *= both
    mass1 *= np.subtract(2, both, out=both)
    mass1 -= mass0
    return dot(np.subtract(fitted, v, out=both), mass1)


def certify_gap(joint: Joint, *, max_slope: float = MAX_SLOPE, **_: object) -> GapCertificate:
    """Prove pGap of a joint distribution."""
    max_slope = _checked(max_slope)
    fitted = fitted_map(joint, max_slope)
    gain = _gain(joint, fitted)
    value = max(0.0, gain)
    mass0, mass1 = joint.normalized()
    sums = np.cumsum(mass1 * (1 - fitted) - mass0 * fitted)
    step = np.diff(fitted)
    most = np.minimum(max_slope * np.diff(joint.prediction), 1.0)
    # Where a sum is positive a shorter step would help, and where it is negative a longer one.
    free = np.where(sums[:-1] > 0, step, step - most)
    end = max(fitted[-1], 1 - fitted[-1]) * abs(sums[-1])
    return GapCertificate.of(
        joint,
        value=value,
        lower=min(gain, value),
        upper=max(value, float(gain + 2 * (dot(sums[:-1], free) + end))),
        max_slope=max_slope,
        fitted=fitted,
    )


def _rounding_bounds(
    joint: Joint, value: float, *, max_slope: float = MAX_SLOPE
) -> tuple[float, float]:
    r"""Bound pGap.

    Write κ(v) = v + η(v). The slopes of η lie in [-1, L - 1], so with M = max(1, L - 1) it moves by
    at most M\|v - v'\|, and \|η\| ≤ 1. With e = y - v the gap is p = sup G(η) over these η, where
    G(η) = E[2 e η(v) - η(v)²].

    Gridded: cells' sums of e are exact but for r, so E[2 e η(v)] moves by at most 2 M a + 2 r with
    a = E[\|e\| \|v - v'\|]. With b² = E(v - v')² ≤ width · E\|v - v'\|, E[η²] moves by at most
    2 M b √E[η²] + M² b². At a best η the derivative of G(t η) at t = 1 is not negative (t = 0 is
    allowed), so E[e η] ≥ E[η²] and G ≥ E[η²]: √E[η²] ≤ √p. The best η of the cells on the rows, and
    the best η of the rows on the cells, give with k = 2 M a + 2 r + M² b²

        p ≥ p' - k - 2 M b √p',    p ≤ p' + k + 2 M b √p, so √p ≤ M b + √(M² b² + p' + k).

    Otherwise: (y - v)² - (y - κ(v))² has slope -2(y - v) + 2(y - κ)κ', of opposite signs and of
    at most 2 and 2 L, so p moves by at most 2 L E\|v - v'\|.
    """
    slope = _checked(max_slope)
    if joint.grid is None:
        return around(value, 2 * slope * joint.radius)
    steep = max(1.0, slope - 1)
    moved = steep * math.sqrt(joint.grid.width * joint.radius)
    first = 2 * steep * residual_moves(joint) + 2 * joint.grid.resolution + moved**2
    upper = (moved + math.sqrt(moved**2 + value + first)) ** 2
    return max(0.0, value - first - 2 * moved * math.sqrt(value)), upper


@measure(
    symbol="pGap",
    summary="what the best map with slopes up to {max_slope:g} takes off the Brier score",
    position=155,
    rounding=_rounding_bounds,
    no_interval=_BETWEEN,
    no_comparison=NOT_A_NORM,
    certify=certify_gap,
)
def post_processing_gap(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    max_slope: float = MAX_SLOPE,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return how much the best map with bounded slopes takes off the Brier score, exactly.

    .. math:: \mathrm{pGap} = E\,(y - v)^2 - \min_\kappa E\,(y - \kappa(v))^2

    over all maps with :math:`0 \le \kappa(u) - \kappa(v) \le L\,(u - v)` for :math:`u > v`, L being
    ``max_slope``.

    **What it means.** What recalibration can gain that keeps the order of the predictions and does
    not tell close ones apart. With L = 2 the maps are :math:`v + \eta(v)` with a 1-Lipschitz η, and
    :math:`\mathrm{smCE}^2 \le \mathrm{pGap} \le 2\,\mathrm{smCE}`: the gap is small if and only if
    the smooth calibration error is, and 0 if and only if the predictions are calibrated. It is a
    squared error: where all predictions are off by ε it is ε². It grows with L, towards the
    miscalibration of :func:`caldist.measures.corp`, which lets maps be as steep as they like.

    **What it estimates.** The population's value at rate 1/√n, from above on average, because the
    map is fitted to the labels that it is judged by.

    **Cost.** O(n log n) for a sort, and one pass forward and one back for the best map: about as
    much as the sort, O(n√n) in the worst case.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    max_slope : float
        The largest slope of a map, finite and at least 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Błasiok, Gopalan, Hu and Nakkiran, "When does optimizing a proper loss yield calibration?",
    2023.

    Examples
    --------
    >>> import caldist
    >>> caldist.measures.post_processing_gap([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.03125
    """
    max_slope = _checked(max_slope)
    joint = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label).joint
    return max(0.0, _gain(joint, fitted_map(joint, max_slope)))
