"""The Kolmogorov-Smirnov calibration error."""

from __future__ import annotations

from numpy.typing import ArrayLike

from caldist.data.joint import Joint
from caldist.measures._measure import measure
from caldist.measures.ecce_mad import ecce_mad


@measure(
    symbol="KS",
    summary="largest difference of the distributions of labels and predictions: ECCE-MAD",
    position=210,
    rounding=ecce_mad.facts.rounding,
    statistic=ecce_mad.facts.statistic,
    flips=False,
)
def ks_error(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
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
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

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
    return ecce_mad(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
