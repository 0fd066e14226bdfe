"""The Kolmogorov-Smirnov calibration error."""

from __future__ import annotations

from numpy.typing import ArrayLike

from caldist.data.joint import Joint
from caldist.measures.ecce_mad import ecce_mad, ecce_mad_of

__all__ = ["ks_error", "ks_error_of"]


def ks_error(
    y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Return the Kolmogorov-Smirnov calibration error.

    .. math:: \mathrm{KS} = \max_t |E[v\,1(v \le t)] - E[y\,1(v \le t)]|

    **What it means.** It is the number that :func:`caldist.ecce_mad` returns, under the name by
    which the literature on neural networks knows it. There v is the confidence in one class, for
    example from :func:`caldist.top_label`. The two were proposed independently.

    **What it estimates.** As :func:`caldist.ecce_mad`.

    **Cost.** O(n log n): a sort and one pass.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu and Hartley, "Calibration of neural networks
    using splines", 2021.

    Examples
    --------
    >>> import caldist
    >>> caldist.ks_error([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.0625
    """
    return ecce_mad(y_true, y_prob, sample_weight=sample_weight)


def ks_error_of(joint: Joint) -> float:
    """Return the KS error of a joint distribution, its ECCE-MAD."""
    return ecce_mad_of(joint)
