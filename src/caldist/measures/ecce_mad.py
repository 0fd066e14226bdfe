"""The largest cumulative difference, ECCE-MAD."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caldist.data.joint import Joint

__all__ = ["ecce_mad", "ecce_mad_of"]


def ecce_mad(
    y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None
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
    :func:`caldist.ecce_range` stays the same.

    **What it estimates.** The population's value, at rate 1/√n. At perfect calibration a sample
    shows about √(E[v(1 - v)]/n) times the largest absolute value of a Brownian motion, 1.25 on
    average.

    **Cost.** O(n log n): a sort and one pass.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu, "Metrics of calibration for probabilistic
    predictions", 2022.

    Examples
    --------
    >>> import caldist
    >>> caldist.ecce_mad([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.0625
    """
    return ecce_mad_of(Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight))


def ecce_mad_of(joint: Joint) -> float:
    """Return the ECCE-MAD of a joint distribution."""
    sums = joint.prefix_sums()
    return float(np.abs(sums).max())
