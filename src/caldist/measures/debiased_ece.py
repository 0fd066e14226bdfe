"""The debiased binned calibration error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from caldist.data import validate
from caldist.data.joint import Joint
from caldist.measures._counted_rows import counted_joint, row_counts
from caldist.measures.base import measure
from caldist.measures.bins import Strategy, bin_starts


@measure(
    symbol="debiased ECE",
    summary="binned error of norm 2, with its bias taken off",
    position=240,
    flips=False,  # of equal predictions the first decides on their bin
)
def debiased_ece(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    squared: bool = False,
    sample_weight: None = None,
    pos_label: object = None,
) -> float:
    r"""Return the ℓ2 calibration error of binned predictions, with the bias taken off.

    .. math:: \mathcal{E}^2 = \sum_k \frac{n_k}{n} \Bigl[ (\bar y_k - \bar v_k)^2
              - \frac{\bar y_k (1 - \bar y_k)}{n_k - 1} \Bigr]

    over the bins with at least two rows, where bin k has :math:`n_k` rows with mean label
    :math:`\bar y_k` and mean prediction :math:`\bar v_k`. A bin with a single row adds 0, as in the
    authors' program: one row does not tell its variance.

    **What it means.** The plug-in sum of squares is too large, since each mean label is noisy. The
    second term estimates that noise and takes it off. As with every binned error, deviations of
    opposite sign cancel within a bin.

    **What it estimates.** The population's ℓ2 binned error on the same bins. It is unbiased when
    the predictions are constant within each bin; where calibrated ones vary, a bin's square is too
    low by their variance over n_k. The square can come out negative: the root is then 0, and
    ``squared=True`` returns it as it is.

    **Cost.** O(n log n), a sort.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint of rows without weights, not on a grid, stands for labels and predictions at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1. Equal predictions share a bin.
    n_bins : int
    strategy : "quantile" or "uniform"
        Bins as in :func:`caldist.binned_ece`: of equal mass as far as ties allow, the authors'
        default with 15 of them, or of equal width.
    squared : bool
        Return the square, which may be negative. Otherwise its root, 0 if negative.
    sample_weight : None
        Not defined: the correction counts rows.
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Kumar, Liang and Ma, "Verified uncertainty calibration", 2019, section 5.

    Examples
    --------
    >>> import caldist
    >>> y_true, y_prob = [0, 0, 0, 1, 0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5, 0.75, 0.75, 0.75, 0.75]
    >>> caldist.measures.debiased_ece(y_true, y_prob, n_bins=2, squared=True)
    -0.03125
    >>> caldist.measures.debiased_ece(y_true, y_prob, n_bins=2)
    0.0
    """
    n_bins = validate.check_count("n_bins", n_bins)
    validate.check_choice("strategy", strategy, ("uniform", "quantile"))
    squared = validate.check_flag("squared", squared)
    why = "the correction of a bin needs its number of rows"
    joint = counted_joint(y_true, y_prob, sample_weight, why, pos_label)
    count0, count1 = row_counts(joint)
    starts = bin_starts(joint.prediction, count0 + count1, n_bins, strategy)
    rows = np.add.reduceat(count0 + count1, starts)
    ones = np.add.reduceat(count1, starts)
    gap = np.add.reduceat(joint.residual(), starts)
    several = rows > 1
    rows, ones, gap = rows[several], ones[several], gap[several]
    # n_k/n times each of the two terms; gap is n_k/n times the mean deviation.
    noise = ones * ((rows - ones) / rows) / (rows - 1) / joint.total
    value = float((gap * gap * (joint.total / rows) - noise).sum())
    return value if squared else math.sqrt(max(0.0, value))
