"""The Brier score."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.measures import _second_order
from caldist.measures._rounding import around, label_means
from caldist.measures.base import Worst, measure


def _loss(label: Vector, prediction: Vector) -> Vector:
    gap = np.asarray(label - prediction)
    gap *= gap
    return gap


def _rounding_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound the Brier score.

    Gridded: per cell and label the count and the sum of v are known, so only the sum of v² is not.
    It is least when all rows of a label sit at their mean m, and largest when they sit at the ends
    a and b of the cell, by (m - a)(b - m) a row. With the sums of squares it is known but for
    flooring. Otherwise (y - v)² changes by at most 2|v - v'|.
    """
    if joint.grid is None:
        return around(value, 2 * joint.radius)
    grid = joint.grid
    if grid.square0 is not None:
        return _second_order.brier(grid, joint.total)
    low = grid.cell * grid.width
    lower = spread = 0.0
    for label, count, mean in label_means(grid):
        lower += float((count * (label - mean) ** 2).sum())
        spread += float((count * (mean - low) * (low + grid.width - mean)).sum())
    lower, upper = lower / joint.total, (lower + spread) / joint.total
    slack = 2 * grid.resolution
    return min(value, max(0.0, lower - slack)), max(value, upper + slack)


@measure(
    symbol="Brier",
    summary="mean squared error: calibration and sharpness together",
    position=160,
    shown_in=("evaluate", "measure", "report", "report table", "groups", "recalibration"),
    called="Brier score",
    rounding=_rounding_bounds,
    loss=_loss,
    worst=Worst(bias=0.0, reach=1.0),
)
def brier_score(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the Brier score.

    .. math:: \mathrm{Brier} = E\,(y - v)^2

    **What it means.** A proper score: in expectation no forecast beats the true probabilities. It
    measures calibration and sharpness together, so a calibrated predictor does not reach 0;
    :func:`caldist.measures.corp` splits it into the two. 0 means that every prediction was certain
    and right, 1 that every one was certain and wrong. Some authors sum over both labels, which
    doubles it.

    **What it estimates.** The population's value, without bias, at rate 1/√n.

    **Cost.** O(n), without a sort.

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
    Brier, "Verification of forecasts expressed in terms of probability", 1950.

    Examples
    --------
    >>> import caldist
    >>> caldist.brier_score([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.15625
    """
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return rows.mean(_loss)
