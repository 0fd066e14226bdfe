"""The logarithmic loss, or cross-entropy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.measures.base import measure

_LEAST = 5e-324  # the least positive number


def _loss(label: Vector, prediction: Vector) -> Vector:
    """Return -ln(probability of the label).

    1 - v is rounded. What that took off, relative to it, is what it takes off its logarithm.
    """
    zero = 1 - label
    chance = np.abs(zero - prediction)
    rest = zero * ((1 - chance) - prediction)
    rest /= np.maximum(chance, _LEAST)
    with np.errstate(divide="ignore"):  # of the probability 0
        loss = np.log(chance)
    loss += rest
    return np.subtract(0.0, loss, out=loss)  # no negative zero


@measure(
    symbol="log-loss",
    summary="mean logarithmic loss: calibration and sharpness together",
    position=220,
    shown_in=("recalibration",),
    called="log loss",
    ceiling=math.inf,
)
def log_loss(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the mean logarithmic loss, in nats.

    .. math:: \mathrm{LL} = -E\,[\,y \ln v + (1 - y) \ln(1 - v)\,]

    **What it means.** A proper score, like :func:`caldist.brier_score`, that charges a prediction
    by the surprise at its label. A certain prediction that fails (0 for label 1, or 1 for label
    0) is infinitely surprising: one such row with weight makes the result ``inf``. That is the
    value, not an overflow. Libraries that return a finite number have moved the prediction away
    from 0 and 1 by some amount, and the number then depends on that amount; nothing is moved
    here. A certain prediction that holds costs nothing.

    **What it estimates.** The population's value, without bias, where that is finite.

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
    Good, "Rational decisions", 1952.

    Examples
    --------
    >>> import caldist
    >>> round(caldist.log_loss([0, 1], [0.25, 0.75]), 6)
    0.287682
    >>> caldist.log_loss([0, 1], [0.0, 0.75]) < 0.15
    True
    >>> caldist.log_loss([1, 1], [0.0, 0.75])
    inf
    """
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return rows.mean(_loss)
