"""Where predictions are too high or too low: a scan over intervals with one error rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist.data.categories import group_codes
from caldist.inference._resampling import order_rank

__all__ = ["Region", "miscalibrated_regions"]

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

_BINS = 32  # intervals start and end at these quantiles of the predictions
_CELLS = 4096  # rows closer than this are drawn together
_BLOCK = 256  # draws held in memory row by row


@dataclass(frozen=True)
class Region:
    """An interval of predictions whose mean label differs from their mean.

    Attributes
    ----------
    low, high
        The smallest and the largest prediction in it.
    gap
        Mean label minus mean prediction: negative where predictions are too high.
    share
        The share of the rows, or of their weight, within it.
    """

    low: float
    high: float
    gap: float
    share: float

    @property
    def too_high(self) -> bool:
        """Whether the predictions exceed the frequency of label 1."""
        return self.gap < 0


def miscalibrated_regions(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rng: _validate.Rng = None,
) -> list[Region]:
    r"""Find where predictions are too high or too low, with one error rate for all of it.

    Every interval between 33 quantiles of the predictions gets the standardised sum of its
    residuals; the largest over all intervals, under calibration, gives the critical value. Of
    the intervals beyond it the strongest that do not overlap are reported; neighbours that go the
    same way become one.

    **What it means.** With the given confidence *every* interval listed holds predictions that are
    not calibrated; ``gap`` is by how much, and which way, they are off on average in the sample. In
    an interval of calibrated predictions the sum of the residuals varies as in the draws, whatever
    the predictions elsewhere, so one critical value serves all. An empty list says that the data
    do not show where, not that nothing is wrong.

    **What it estimates.** The population, at the quantiles of the sample.

    **Cost.** O(n log n) and :math:`O(B\, m)` draws, m = min(n, 4096); m = n with weights or
    ``groups``.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    confidence_level : float
    n_resamples : int
        Draws for the critical value: at least 1/(1 - confidence_level) - 1.
    sample_weight : array-like, optional
        Must not depend on the labels.
    groups : array-like, optional
        Rows that belong together: their labels may depend on each other in any way.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    list of Region
        From low predictions to high ones.

    Examples
    --------
    >>> import numpy as np
    >>> from caldist.inference import miscalibrated_regions
    >>> p = np.linspace(0.01, 0.99, 2000)
    >>> y = np.random.default_rng(0).random(2000) < np.where(p > 0.7, p - 0.2, p)
    >>> [region] = miscalibrated_regions(y, p, rng=0)
    >>> region.too_high, round(region.low, 1), round(region.high, 1)
    (True, 0.7, 1.0)
    """
    label, prediction, weight = _validate.binary_inputs(y_true, y_prob, sample_weight)
    confidence_level = _validate.check_fraction("confidence_level", confidence_level)
    n_resamples = _validate.check_count("n_resamples", n_resamples)
    generator = _validate.generator(rng)
    rank = order_rank(n_resamples, confidence_level)
    cluster = None if groups is None else group_codes(groups, label.size)[0]
    if weight is not None:
        kept = weight > 0
        label, prediction, weight = label[kept], prediction[kept], weight[kept]
        cluster = None if cluster is None else cluster[kept]
    share = np.full(label.size, 1 / label.size) if weight is None else weight / weight.sum()
    bin_of = _bins(prediction)
    residual = share * (label - prediction)
    observed: Vector = np.asarray(np.bincount(bin_of, residual), dtype=np.float64)
    if weight is None and cluster is None:
        drawn = _drawn_labels(prediction, bin_of, n_resamples, generator)
    else:
        drawn = _drawn_rows(cluster, prediction, share, bin_of, n_resamples, generator)
    covariance = drawn.T @ drawn / n_resamples
    if cluster is None:  # known exactly
        variance = np.bincount(bin_of, share**2 * prediction * (1 - prediction))
        covariance = np.diag(variance.astype(np.float64))
    blocks = (drawn[at : at + _BLOCK] for at in range(0, n_resamples, _BLOCK))
    largest = np.concatenate([_scores(block, covariance).max(axis=(1, 2)) for block in blocks])
    critical = np.sort(largest)[rank - 1]
    score = _scores(observed[None], covariance)[0]
    return [
        _region(first, last, prediction, share, observed, bin_of)
        for first, last in _disjoint(score, critical, observed)
    ]


def _bins(prediction: Vector) -> NDArray[np.intp]:
    """Return for each row the number of its bin: 0, 1, … without gaps, equal predictions together.

    The bins hold about equally many rows.
    """
    edges = np.unique(np.quantile(prediction, np.arange(1, _BINS) / _BINS, method="lower"))
    _, bin_of = np.unique(np.searchsorted(edges, prediction), return_inverse=True)
    return np.asarray(bin_of)


def _drawn_labels(
    prediction: Vector, bin_of: NDArray[np.intp], n_resamples: int, rng: np.random.Generator
) -> Vector:
    """Draw the residual sums of the bins for labels that follow the predictions.

    Rows of one bin and one of 4,096 cells share their mean prediction. Their number of ones is then
    binomial, with the right mean and a variance that is too large by less than 1e-7 a row.
    """
    key = bin_of * (_CELLS + 1) + (prediction * _CELLS).astype(np.int64)
    _, cell_of, count = np.unique(key, return_inverse=True, return_counts=True)
    mean = np.minimum(np.bincount(cell_of, prediction) / count, 1.0)
    bin_of_cell = np.zeros(count.size, np.intp)
    bin_of_cell[cell_of] = bin_of
    starts = np.flatnonzero(np.diff(bin_of_cell, prepend=-1))
    drawn = np.empty((n_resamples, starts.size))
    for at in range(0, n_resamples, _BLOCK):
        block = drawn[at : at + _BLOCK]
        ones = rng.binomial(count, mean, (len(block), count.size))
        np.add.reduceat(ones - count * mean, starts, axis=1, out=block)
    return drawn / prediction.size


def _drawn_rows(
    cluster: Integers | None,
    prediction: Vector,
    share: Vector,
    bin_of: NDArray[np.intp],
    n_resamples: int,
    rng: np.random.Generator,
) -> Vector:
    """Draw the residual sums of the bins row by row, with their weights.

    A row has label 1 where a uniform number is below its prediction. One number decides a whole
    cluster, whose labels then depend as much as they can. Neither normal numbers nor flipped signs
    of clusters would do: in a narrow range near 0 or 1 residuals are far from symmetric.
    """
    n_bins = int(bin_of.max()) + 1
    n_parts = prediction.size if cluster is None else int(cluster.max()) + 1
    drawn = np.empty((n_resamples, n_bins))
    for at in range(n_resamples):
        uniform = rng.random(n_parts)
        ones = (uniform if cluster is None else uniform[cluster]) < prediction
        drawn[at] = np.bincount(bin_of, share * (ones - prediction), n_bins)
    return drawn


def _scores(sums: Vector, covariance: Vector) -> Vector:
    """Return |standardised sum| of every interval of bins, for each row of ``sums``.

    Entry [i, first, last] is of the bins from ``first`` up to ``last``, which is not in it.
    """
    prefix = np.pad(np.cumsum(sums, axis=1), ((0, 0), (1, 0)))
    total = np.abs(prefix[:, None, :] - prefix[:, :, None])
    square = np.pad(covariance.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    diagonal = np.diag(square)
    deviation = np.sqrt(np.maximum(diagonal[None, :] - square - square.T + diagonal[:, None], 0.0))
    # Predictions of exactly 0 and 1 leave no room: any residual there is beyond every level.
    impossible = np.where(total > 1e-12, np.inf, 0.0)
    possible = np.broadcast_to(deviation > 1e-12, total.shape)
    scores = np.divide(total, deviation, out=impossible, where=possible)
    return np.triu(scores)


def _disjoint(score: Vector, critical: float, observed: Vector) -> list[tuple[int, int]]:
    """Return the strongest intervals beyond the critical value that do not overlap, in order.

    Neighbours of the same sign become one: what is true of both is true of their union.
    """
    first, last = np.nonzero(score > critical)
    chosen: list[tuple[int, int]] = []
    for at in np.argsort(-score[first, last], kind="stable"):
        low, high = int(first[at]), int(last[at])
        if all(high <= start or stop <= low for start, stop in chosen):
            chosen.append((low, high))
    joined: list[tuple[int, int]] = []
    for low, high in sorted(chosen):
        start, stop = joined[-1] if joined else (0, -1)
        same_sign = (observed[low:high].sum() > 0) == (observed[start:stop].sum() > 0)
        if stop == low and same_sign:
            joined[-1] = start, high
        else:
            joined.append((low, high))
    return joined


def _region(
    first: int,
    last: int,
    prediction: Vector,
    share: Vector,
    observed: Vector,
    bin_of: NDArray[np.intp],
) -> Region:
    inside = (bin_of >= first) & (bin_of < last)
    size = float(share[inside].sum())
    gap = float(observed[first:last].sum()) / size
    return Region(float(prediction[inside].min()), float(prediction[inside].max()), gap, size)
