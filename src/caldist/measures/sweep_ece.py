"""The calibration error with a swept number of bins, ECE_sweep."""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Integers
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.kernels.arrays import prefix_sums
from caldist.measures._counted_rows import counted_joint, row_counts
from caldist.measures.base import measure
from caldist.measures.bins import bin_starts


@measure(
    symbol="sweep ECE",
    summary="binned error of as many bins as keep the frequencies in order",
    position=250,
    flips=False,  # of equal predictions the first decides on their bin
)
def sweep_ece(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    norm: float = 1,
    sample_weight: None = None,
    pos_label: object = None,
) -> float:
    r"""Return the calibration error on as many bins of equal mass as keep it monotone.

    .. math:: \mathrm{ECE}_{\mathrm{sweep}} = \Bigl( \sum_{k=1}^{b^*} \frac{n_k}{n}
              |\bar y_k - \bar v_k|^p \Bigr)^{1/p}, \qquad
              b^* = \max\{b \le n : \bar y_1 \le \dots \le \bar y_{b'} \text{ for all } b' \le b\}

    where b' bins of equal mass have the mean labels :math:`\bar y_1, \dots, \bar y_{b'}`.

    **What it means.** A binned error that chooses the number of bins from the data. A frequency
    that rises with the prediction is assumed; where more bins break it, noise is taken to be the
    reason and the sweep ends. As with every binned error, 0 does not mean calibrated.

    **What it estimates.** The population's ECE when the frequency is a rising function of the
    prediction, with less bias than a fixed number of bins. Otherwise it describes the sample.

    **Cost.** O(n log n) on ordinary samples, which end the sweep early, and on separated ones. In
    between, each number of bins up to b* costs as many comparisons, each of some microseconds, as
    there are bins with a prediction from which the frequency falls to the next. On samples made to
    last, with and without ties, there were fewer than 2 n.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint of rows without weights, not on a grid, stands for labels and predictions at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1. Equal predictions share a bin, that of the first of
        them; a bin that this leaves empty is left out.
    norm : 1 or 2
        The exponent p.
    sample_weight : None
        Not defined: the sweep ends at one row a bin.
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer, "Mitigating bias in calibration error estimation", 2022.

    Examples
    --------
    >>> import caldist
    >>> caldist.measures.sweep_ece([0, 1, 0, 1], [0.25, 0.5, 0.625, 0.75])
    0.15625
    >>> caldist.measures.sweep_ece([0, 0, 1, 1], [0.25, 0.5, 0.625, 0.75])
    0.34375
    """
    validate.check_choice("norm", norm, (1, 2))
    why = "the sweep goes up to as many bins as there are rows"
    joint = counted_joint(y_true, y_prob, sample_weight, why, pos_label)
    count0, count1 = row_counts(joint)
    count = count0 + count1
    starts = bin_starts(joint.prediction, count, _bins_reached(count, count1), "quantile")
    gap = np.abs(np.add.reduceat(joint.residual(), starts))
    if norm == 1:
        return float(gap.sum())
    share = np.add.reduceat(count, starts) / joint.total
    return math.sqrt(float((gap * (gap / share)).sum()))


def _bins_reached(count: Integers, ones: Integers) -> int:
    """Return b*, the number of bins at which the sweep ends.

    The frequency falls from a bin to the next only if it falls from a prediction to the next within
    them. So it is enough to compare the bins of such predictions with their neighbours.
    """
    before, ones_before = prefix_sums(count).data, prefix_sums(ones).data
    n = before[-1]

    def start(number: int, k: int) -> int:
        """Return the first prediction of bin k or later: k n/number rows or more before it."""
        return bisect_left(before, -(-k * n // number), hi=count.size)

    def falls(first: int, middle: int, end: int) -> bool:
        """Whether the frequency falls from first:middle to middle:end; never if one is empty."""
        left = (ones_before[middle] - ones_before[first]) * (before[end] - before[middle])
        right = (ones_before[end] - ones_before[middle]) * (before[middle] - before[first])
        return left > right

    falling = np.flatnonzero(ones[:-1] * count[1:] > ones[1:] * count[:-1]).data
    if len(falling) == 0:  # bins of a rising sequence rise
        return n
    for number in range(2, n + 1):
        at = 0
        while at < len(falling):
            k = number * before[falling[at]] // n
            first, end = start(number, k), start(number, k + 1)
            previous = start(number, number * before[max(first - 1, 0)] // n)
            following = start(number, number * before[end] // n + 1)
            if falls(previous, first, end) or falls(first, end, following):
                return number - 1
            at = bisect_left(falling, end, lo=at + 1)
    return n
