"""The range of the cumulative differences, ECCE-R."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caldist.data.joint import Joint

__all__ = ["ecce_range", "ecce_range_of"]


def ecce_range(
    y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None
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
    >>> caldist.ecce_range([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.0625
    >>> caldist.ecce_range([1, 0], [0.25, 0.5])
    0.375
    """
    return ecce_range_of(Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight))


def ecce_range_of(joint: Joint) -> float:
    """Return the ECCE-R of a joint distribution."""
    sums = joint.prefix_sums()
    return float(np.ptp(sums))
