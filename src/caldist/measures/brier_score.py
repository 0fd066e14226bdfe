"""The Brier score: the mean squared error of the predictions."""

from __future__ import annotations

from numpy.typing import ArrayLike

from caldist.data.joint import Joint

__all__ = ["brier_score", "brier_score_of"]


def brier_score(
    y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Return the Brier score.

    .. math:: \mathrm{Brier} = E\,(y - v)^2

    **What it means.** A proper score: in expectation no forecast beats the true probabilities. It
    measures calibration and sharpness together, so a calibrated predictor does not reach 0;
    :func:`caldist.corp` splits it into the two. 0 means that every prediction was certain and
    right, 1 that every one was certain and wrong. Some authors sum over both labels, which
    doubles it.

    **What it estimates.** The population's value, without bias, at rate 1/√n.

    **Cost.** O(n log n), a sort. Ties do not matter.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional

    References
    ----------
    Brier, "Verification of forecasts expressed in terms of probability", 1950.

    Examples
    --------
    >>> import caldist
    >>> caldist.brier_score([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.15625
    """
    return brier_score_of(Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight))


def brier_score_of(joint: Joint) -> float:
    """Return the Brier score of a joint distribution."""
    mass0, mass1 = joint.normalized()
    v = joint.prediction
    return float((mass0 * v**2 + mass1 * (1 - v) ** 2).sum())
