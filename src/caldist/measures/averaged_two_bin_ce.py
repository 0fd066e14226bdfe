"""The averaged two-bin calibration error, ATB."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.measures import _second_order
from caldist.measures._rounding import (
    around,
    better_of,
    residual_moves,
    residual_rounding,
    within_cells_of,
)
from caldist.measures.base import measure


def _rounding_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound ATB.

    With A(t) the change of S(t) by the moves, whose integral is at most E[|e| |v - v'|], and r that
    of the residuals, both bins change by at most |A| + r; as |S| + |T - S| <= 1, the sum of squares
    changes by at most twice that.
    """
    moved = joint.radius if joint.grid is None else residual_moves(joint)
    bounds = around(value, 2 * (moved + residual_rounding(joint)))
    within = within_cells_of(joint)
    return bounds if within is None else better_of(bounds, _second_order.averaged_two_bin(within))


@measure(
    symbol="ATB",
    summary="squared bias of two bins, averaged over the threshold",
    position=150,
    shown_in=("evaluate",),
    rounding=_rounding_bounds,
)
def averaged_two_bin_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the averaged two-bin calibration error, exactly.

    .. math:: \mathrm{ATB} = \int_0^1 S(t)^2 + (T - S(t))^2 \, dt, \qquad
              S(t) = E[(y - v)\,1(v \le t)], \quad T = E[y - v]

    A threshold t cuts the predictions into two bins; the squared bias of both is averaged over a
    uniform t. Equal predictions are never cut apart.

    **What it means.** It is 0 if and only if the predictions are perfectly calibrated. It is a
    square: its root, which is not taken here, is on the scale of the other measures, and the value
    itself is related quadratically to the smooth calibration error. It is perfectly truthful:
    predicting the true probabilities minimises its expectation on a random sample, so nobody
    looks more calibrated by predicting something else. The proof needs the square.

    **What it estimates.** The population's value. At perfect calibration a sample shows
    E[v(1 - v)]/n on average.

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
    Hartline, Hu and Wu, "A Perfectly Truthful Calibration Measure", 2025.

    Examples
    --------
    >>> import caldist
    >>> caldist.measures.averaged_two_bin_ce([1], [0.5])
    0.25
    >>> caldist.measures.averaged_two_bin_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.00390625
    """
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    residuals = rows.residuals
    sums = residuals.sums()
    width = np.diff(residuals.prediction, prepend=0.0, append=1.0)  # S is constant in between
    return float((width * (sums**2 + (sums[-1] - sums) ** 2)).sum())
