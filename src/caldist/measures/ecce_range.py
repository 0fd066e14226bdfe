"""The range of the cumulative differences, ECCE-R."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.measures.base import measure
from caldist.measures.cumulative import extremes, normal_tail


def _rounding_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound ECCE-R, by the same extremes as ECCE-MAD."""
    highest, lowest, slack = extremes(joint)
    lower = value if joint.grid is not None else abs(float(joint.residual().sum()))
    return max(0.0, lower - 2 * slack), max(value, highest - lowest) + 2 * slack


def range_tail(x: float) -> float:
    r"""Return P(max W - min W >= x), the limit law of ECCE-R.

    .. math:: 8 \sum_{k \ge 1} (-1)^{k - 1} k \, \bar\Phi(k x)
              = 1 - \frac{8}{\pi^2} \sum_{j = 1, 3, \dots} \Big(\frac1{j^2} + \frac{\pi^2}{x^2}\Big)
              e^{-j^2 \pi^2 / (2 x^2)}

    The first sum integrates Feller's density. The second integrates, over where the range lies, the
    probability (4/π) Σ_j sin(jπu/x)/j exp(-j²π²/2x²) of staying between -u and x - u.
    """
    if x <= 0.04:  # what is missing to 1 is less than the least double
        return 1.0
    if x >= 2:
        return 8 * sum((-1.0) ** (k - 1) * k * normal_tail(k * x) for k in range(1, 8))
    inside = sum(
        (1 / j**2 + (math.pi / x) ** 2) * math.exp(-((j * math.pi / x) ** 2) / 2)
        for j in range(1, 12, 2)
    )
    return 1 - 8 / math.pi**2 * inside


def _range(c: Vector) -> float:
    prefix = np.cumsum(c)
    return max(0.0, float(prefix.max())) - min(0.0, float(prefix.min()))


@measure(
    symbol="ECCE-R",
    summary="range of the cumulative differences",
    position=140,
    shown_in=("evaluate",),
    rounding=_rounding_bounds,
    statistic=_range,
    tail=range_tail,
)
def ecce_range(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the range of the cumulative differences of labels and predictions.

    .. math:: \mathrm{ECCE\text{-}R} = \max_t S(t) - \min_t S(t), \qquad
              S(t) = E[(y - v)\,1(v \le t)]

    Maximum and minimum include S = 0, before the first prediction. The residuals of equal
    predictions are added up first, so the order of ties does not matter.

    **What it means.** The largest bias over all rows with predictions in one interval. It lies
    between ECCE-MAD and twice that, and is at most the ECE.

    **What it estimates.** The population's value, at rate 1/√n. At perfect calibration a sample
    shows about √(E[v(1 - v)]/n) times the range of a Brownian motion, 1.6 on average.

    **Cost.** O(n log n): a sort and one pass.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu, "Metrics of calibration for probabilistic
    predictions", 2022.

    Examples
    --------
    >>> import caldist
    >>> caldist.measures.ecce_range([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.0625
    >>> caldist.measures.ecce_range([1, 0], [0.25, 0.5])
    0.375
    """
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return float(np.ptp(rows.residuals.sums()))
