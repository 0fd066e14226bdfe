"""T-Cal: a debiased estimate of the squared calibration error, and its test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.results import Result
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.errors import answering
from caldist.measures._counted_rows import counted_joint, row_counts
from caldist.measures.bins import bin_starts

_CHUNK = 1 << 20  # labels drawn at a time
_ROUNDING = 1e-12  # a resample this close below the statistic ties with it


@dataclass(frozen=True)
class TCal(Result):
    """The result of :func:`caldist.measures.t_cal`.

    Attributes
    ----------
    statistic
        The debiased estimate of the squared ℓ2 calibration error; it may be negative.
    pvalue
        The p-value of the hypothesis that the predictions are perfectly calibrated.
    n_bins
        How many bins of equal width were used.
    """

    statistic: float
    pvalue: float
    n_bins: int

    def __str__(self) -> str:
        return (
            f"p = {self.pvalue:.3g} for labels at least this far from predictions that are "
            f"calibrated (T-Cal, {self.n_bins} bins, squared error {self.statistic:.4g})"
        )


@answering
def t_cal(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int | None = None,
    n_resamples: int = 999,
    rng: validate.Rng = 0,
    sample_weight: None = None,
    pos_label: object = None,
) -> TCal:
    r"""Test perfect calibration by the debiased plug-in estimate of the squared ℓ2 error.

    .. math:: T = \frac1n \sum_k \frac{1}{n_k} \sum_{i \ne j \in I_k} (y_i - v_i)(y_j - v_j)

    over bins of equal width, the last one closed; bin k has :math:`n_k` rows.

    **What it means.** The pairs of a row with itself are left out, so T has mean 0 when the
    predictions are perfectly calibrated. Deviations of opposite sign cancel within a bin. The test
    detects deviations that change little from bin to bin.

    **What it estimates.** The population's squared ℓ2 calibration error, where the frequency is a
    smooth function of the prediction. The p-value is exact for every sample size: the predictions
    stay, labels y* are drawn with the predicted probabilities, and
    p = (1 + #{T* ≥ T})/(B + 1) for B draws. The paper draws predictions too; with the predictions
    fixed nothing has to be assumed of them.

    **Cost.** O(n log n), a sort, and O(B n) for the draws: a Monte Carlo test needs them, and they
    are far more than a sort. Equal predictions are drawn together.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint of rows without weights, not on a grid, stands for labels and predictions at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    n_bins : int, optional
        By default the paper's ⌊n^(2/(4s + 1))⌋ for the smoothness s = 1, a Lipschitz frequency:
        n^0.4 bins.
    n_resamples : int
        B above.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer; None draws a fresh seed.
    sample_weight : None
        Not defined: the estimate counts rows and the test draws a label for each.
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    Returns
    -------
    TCal
        ``statistic``, ``pvalue`` and ``n_bins``.

    References
    ----------
    Lee, Huang, Hassani and Dobriban, "T-Cal: an optimal test for the calibration of predictive
    models", 2022.

    Examples
    --------
    >>> import caldist
    >>> found = caldist.measures.t_cal([1, 1, 1, 1], [0.5] * 4, n_bins=1, n_resamples=99)
    >>> found.statistic
    0.1875
    >>> caldist.measures.t_cal([0, 1], [0.0, 1.0])
    TCal(statistic=0.0, pvalue=1.0, n_bins=1)
    """
    if n_bins is not None:
        n_bins = validate.check_count("n_bins", n_bins)
    n_resamples = validate.check_count("n_resamples", n_resamples)
    generator = validate.generator(rng)
    why = "the estimate counts rows and the test draws a label for each"
    joint = counted_joint(y_true, y_prob, sample_weight, why, pos_label)
    count0, count1 = row_counts(joint)
    count = count0 + count1
    if n_bins is None:
        n_bins = int(float(count.sum()) ** 0.4 + 1e-9)  # 32 rows have 4 bins in spite of rounding
    starts = bin_starts(joint.prediction, count, n_bins, "uniform")
    observed = float(_statistic(joint.prediction, count, starts, count1[None, :])[0])
    exceeding = 0
    step = max(1, _CHUNK // count.size)
    for done in range(0, n_resamples, step):
        ones = _draw(joint.prediction, count, min(step, n_resamples - done), generator)
        drawn = _statistic(joint.prediction, count, starts, ones)
        exceeding += int(np.count_nonzero(drawn >= observed - _ROUNDING))
    return TCal(observed, (1 + exceeding) / (n_resamples + 1), n_bins)


def _draw(v: Vector, count: Integers, times: int, rng: np.random.Generator) -> Integers:
    """Draw how many of the rows at each prediction have label 1, a row per draw."""
    ones = np.empty((times, v.size), dtype=np.int64)
    single = count == 1  # comparing a uniform number is many times faster than a binomial draw
    ones[:, single] = rng.random((times, int(single.sum()))) < v[single]
    several = ~single
    if several.any():
        ones[:, several] = rng.binomial(count[several], v[several], (times, int(several.sum())))
    return ones


def _statistic(v: Vector, count: Integers, starts: NDArray[np.intp], ones: Integers) -> Vector:
    """Return T for each row of ``ones``."""
    residual = np.add.reduceat(ones - count * v, starts, axis=1)
    own = np.add.reduceat(ones * (1 - 2 * v) + count * v**2, starts, axis=1)
    rows = np.add.reduceat(count, starts)
    value: Vector = ((residual**2 - own) / rows).sum(axis=1) / count.sum()
    return value
