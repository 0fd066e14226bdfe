"""The largest cumulative difference, ECCE-MAD."""

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
    """Bound ECCE-MAD.

    Gridded: the prefix sums at the edges of cells are known, and inside a cell they rise by at most
    its positive residuals and fall by at most its negative ones. Otherwise the order of the
    predictions is not known, which leaves the sum of all residuals below and the larger one of
    their positive and negative parts above.
    """
    highest, lowest, slack = extremes(joint)
    lower = value if joint.grid is not None else abs(float(joint.residual().sum()))
    return max(0.0, lower - slack), max(value, highest, -lowest) + slack


def largest_tail(x: float) -> float:
    r"""Return P(max \|W\| >= x), the limit law of ECCE-MAD.

    .. math:: 4 \sum_{k \ge 0} (-1)^k \bar\Phi((2k + 1) x)
              = 1 - \frac4\pi \sum_{k \ge 0} \frac{(-1)^k}{2k + 1} e^{-(2k + 1)^2 \pi^2 / (8 x^2)}

    The first sum, by reflections, is exact in the tail; the second, by eigenfunctions, near 0.
    """
    if x <= 0.04:  # what is missing to 1 is less than the least double
        return 1.0
    if x >= 1:
        return 4 * sum((-1.0) ** k * normal_tail((2 * k + 1) * x) for k in range(6))
    inside = sum(
        (-1.0) ** k / (2 * k + 1) * math.exp(-(((2 * k + 1) * math.pi / x) ** 2) / 8)
        for k in range(6)
    )
    return 1 - 4 / math.pi * inside


def _largest(c: Vector) -> float:
    return float(np.abs(np.cumsum(c)).max())


@measure(
    symbol="ECCE-MAD",
    summary="largest cumulative difference of labels and predictions",
    position=130,
    shown_in=("evaluate",),
    rounding=_rounding_bounds,
    flips=False,
    statistic=_largest,
    tail=largest_tail,
)
def ecce_mad(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the largest cumulative difference of labels and predictions.

    .. math:: \mathrm{ECCE\text{-}MAD} = \max_t |S(t)|, \qquad S(t) = E[(y - v)\,1(v \le t)]

    The maximum includes S = 0, before the first prediction. The residuals of equal predictions
    are added up before the maximum is taken, so the order of ties does not matter; the original
    breaks ties by the order of the rows, or at random.

    **What it means.** The largest bias over all rows with predictions up to some threshold. It is
    0 if and only if the predictions are perfectly calibrated. Small moves of the predictions
    can change it much, when they change the order. Exchanging the labels changes it too, unless
    the mean prediction is right, because thresholds then count from the other end;
    :func:`caldist.measures.ecce_range` stays the same. It is also called the Kolmogorov-Smirnov
    (KS) calibration error, :math:`\max_t |E[v\,1(v \le t)] - E[y\,1(v \le t)]|`: the literature on
    neural networks has it under that name, of the confidence in one class, for example from
    :func:`caldist.multiclass.top_label`. The two were proposed independently.

    **What it estimates.** The population's value, at rate 1/√n. At perfect calibration a sample
    shows about √(E[v(1 - v)]/n) times the largest absolute value of a Brownian motion, 1.25 on
    average.

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
    predictions", 2022. Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu and Hartley, "Calibration of
    neural networks using splines", 2021.

    Examples
    --------
    >>> import caldist
    >>> caldist.measures.ecce_mad([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.0625
    """
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return float(np.abs(rows.residuals.sums()).max())
