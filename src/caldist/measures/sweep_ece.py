"""The calibration error with a swept number of bins, ECE_sweep."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._util.types import Integers
from caldist.data.joint import Joint
from caldist.kernels._arrays import prefix_sums
from caldist.measures._bins import bin_starts
from caldist.measures._counted_rows import counted_joint, row_counts
from caldist.measures._measure import measure

_CHUNK = 1 << 17  # bins looked at together


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
    between, each number of bins up to b* costs as many comparisons as it has bins between the first
    label 1 and the last label 0, or as there are falls from one prediction to the next, whichever
    is less. On samples made to last, with and without ties, the sum stayed below 2 n.

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
    >>> caldist.sweep_ece([0, 1, 0, 1], [0.25, 0.5, 0.625, 0.75])
    0.15625
    >>> caldist.sweep_ece([0, 0, 1, 1], [0.25, 0.5, 0.625, 0.75])
    0.34375
    """
    _validate.check_choice("norm", norm, (1, 2))
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
    """Return b*, the number of bins at which the sweep ends."""
    n = int(count.sum())
    falls = np.flatnonzero(ones[:-1] * count[1:] > ones[1:] * count[:-1])
    if falls.size == 0:  # bins of a rising sequence rise
        return n
    rows = Counted(prefix_sums(count), prefix_sums(ones))
    # Before the first label 1 and after the last label 0 nothing can fall.
    first = int(np.argmax(ones > 0))
    last = count.size - 1 - int(np.argmax((count > ones)[::-1]))
    zone = int(rows.before[last + 1] - rows.before[first])
    low = 2
    while low <= n:
        in_zone = low * zone // n + 3
        # At most twice as many bins, so that the estimate holds within a factor of two.
        high = min(n + 1, 2 * low, low + max(1, _CHUNK // min(in_zone, falls.size)))
        number = np.arange(low, high)
        if in_zone <= falls.size:
            broken = rows.broken_between(number, first, last)
        else:
            broken = rows.broken_at(number, falls)
        if broken.size:
            return int(broken.min()) - 1
        low = high
    return n


class Counted(NamedTuple):
    """How many rows, and rows of label 1, come before each prediction and in all."""

    before: Integers
    ones_before: Integers

    def bin_of(self, number: Integers, at: Integers | int) -> Integers:
        """Return the bin that a prediction has among ``number`` bins."""
        place: Integers = number * self.before[at] // self.before[-1]
        return place

    def start(self, number: Integers, k: Integers) -> Integers:
        """Return the first prediction of bin k or later: k n/number rows or more before it."""
        rows: Integers = -(-k * self.before[-1] // number)
        return np.searchsorted(self.before[:-1], rows)

    def falls(self, start: Integers, middle: Integers, end: Integers) -> NDArray[np.bool_]:
        """Whether the frequency falls from start:middle to middle:end; never if one is empty."""
        rows, ones = self
        left = (ones[middle] - ones[start]) * (rows[end] - rows[middle])
        right = (ones[end] - ones[middle]) * (rows[middle] - rows[start])
        falls: NDArray[np.bool_] = left > right
        return falls

    def broken_between(self, number: Integers, first: int, last: int) -> Integers:
        """Return the numbers of bins whose order breaks, comparing all bins of two predictions."""
        k = self.bin_of(number, first)
        edges = self.bin_of(number, last) - k + 2
        number = np.repeat(number, edges)
        k = np.repeat(k - (np.cumsum(edges) - edges), edges) + np.arange(number.size)
        start = self.start(number, k)
        new = np.append(True, (start[1:] > start[:-1]) | (number[1:] > number[:-1]))
        start, number = start[new], number[new]  # without empty bins
        falls = self.falls(start[:-2], start[1:-1], start[2:])
        broken: Integers = number[2:][falls & (number[2:] == number[:-2])]
        return broken

    def broken_at(self, number: Integers, falls: Integers) -> Integers:
        """Return the numbers of bins whose order breaks, looking where single predictions fall.

        Two neighbouring bins without a fall from one prediction to the next cannot fall. So it is
        enough to compare the bin of each such prediction with its neighbours.
        """
        at = np.tile(falls, number.size)
        number = np.repeat(number, falls.size)
        k = self.bin_of(number, at)
        start, end = self.start(number, k), self.start(number, k + 1)
        previous = self.start(number, self.bin_of(number, np.maximum(start - 1, 0)))
        inside = np.minimum(end, self.before.size - 2)
        following = self.start(number, self.bin_of(number, inside) + 1)
        falling = self.falls(previous, start, end) | self.falls(start, end, following)
        broken: Integers = number[falling]
        return broken
