"""Where predictions are too high or too low: a scan over intervals with one error rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.results import Result
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import answering
from caldist.inference._grid import cells_of_equal_mass
from caldist.inference.null_distribution import drawing_error
from caldist.inference.resampling import order_rank
from caldist.inference.sample import Units, units_of

_BINS = 32  # intervals start and end at these quantiles of the predictions
_CELLS = 4096  # rows closer than this are drawn together
_BLOCK = 256  # draws held in memory row by row


@dataclass(frozen=True)
class Region(Result):
    """An interval of predictions whose mean label differs from their mean.

    Attributes
    ----------
    lower, upper
        The smallest and the largest prediction in it; of rounded ones the ends of their cells.
    gap
        Mean label minus mean prediction: negative where predictions are too high.
    share
        The share of the rows, or of their weight, within it.
    """

    lower: float
    upper: float
    gap: float
    share: float

    def __str__(self) -> str:
        way = "high" if self.too_high else "low"
        return (
            f"Predictions from {self.lower:.4g} to {self.upper:.4g}, {100 * self.share:.3g}% of "
            f"the rows, are too {way} by {abs(self.gap):.2g} on average"
        )

    @property
    def too_high(self) -> bool:
        """Whether the predictions exceed the frequency of label 1."""
        return self.gap < 0


@dataclass(frozen=True)
class Regions(Result, Sequence[Region]):
    """Where predictions are miscalibrated: a sequence of :class:`Region`, from low to high.

    Attributes
    ----------
    regions
        The regions themselves.
    confidence_level
        The confidence that every region holds predictions that are not calibrated.
    """

    regions: tuple[Region, ...]
    confidence_level: float

    def __len__(self) -> int:
        return len(self.regions)

    @overload
    def __getitem__(self, index: int) -> Region: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Region, ...]: ...
    def __getitem__(self, index: int | slice) -> Region | tuple[Region, ...]:
        return self.regions[index]

    def _lines(self) -> list[dict[str, Any]]:
        return [region.to_dict() for region in self.regions]

    def __str__(self) -> str:
        """Return a sentence for each region."""
        confidence = f"with {100 * self.confidence_level:g}% confidence"
        if not self.regions:
            return f"No region of predictions is shown to be miscalibrated, {confidence}"
        number = f"{len(self)} region{'s' if len(self) > 1 else ''}"
        head = f"Predictions are miscalibrated in {number}, {confidence}:"
        return "\n".join([head, *(f"- {region}" for region in self.regions)])


@answering
def miscalibrated_regions(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
    rng: validate.Rng = 0,
) -> Regions:
    r"""Find where predictions are too high or too low, with one error rate for all of it.

    Every interval between 33 quantiles of the predictions gets the standardised sum of its
    residuals; the largest over all intervals, under calibration, gives the critical value. Of
    the intervals beyond it the strongest that do not overlap are reported; neighbours that go the
    same way become one.

    **What it means.** With the given confidence *every* interval listed holds predictions that are
    not calibrated; ``gap`` is by how much, and which way, they are off on average in the sample. In
    an interval of calibrated predictions the sum of the residuals varies as in the draws, whatever
    the predictions elsewhere, so one critical value serves all. No region says that the data
    do not show where, not that nothing is wrong.

    **What it estimates.** The population, at the quantiles of the sample.

    **Cost.** O(n log n) and :math:`O(B\, m)` draws, m = min(n, 4096); m = n with weights or
    ``clusters``.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    confidence_level : float
    n_resamples : int
        Draws for the critical value: at least 1/(1 - confidence_level) - 1.
    sample_weight : array-like, optional
        Must not depend on the labels.
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        Rows that belong together: their labels may depend on each other in any way.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer; None draws a fresh seed.

    Returns
    -------
    Regions
        A sequence of :class:`Region`, from low predictions to high ones, with ``to_frame()``.

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> found = caldist.inference.miscalibrated_regions(demo.y_true, demo.y_prob["random_forest"])
    >>> [(region.too_high, round(region.lower, 1), round(region.upper, 1)) for region in found]
    [(True, 0.0, 0.5), (False, 0.5, 1.0)]
    >>> print(found)
    Predictions are miscalibrated in 2 regions, with 95% confidence:
    - Predictions from 0 to 0.48, 50.3% of the rows, are too high by 0.11 on average
    - Predictions from 0.49 to 1, 49.7% of the rows, are too low by 0.12 on average
    """
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    n_resamples = validate.check_count("n_resamples", n_resamples)
    generator = validate.generator(rng)
    order_rank(n_resamples, confidence_level)  # too few are refused
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    # What drawing labels from rounded predictions may miss is taken off the error rate.
    level = confidence_level + (0.0 if rows.cluster is not None else drawing_error(rows.joint))
    if n_resamples + 1 < 1 / max(1 - level, 1e-300) - 1e-9:
        return Regions((), confidence_level)  # the cells are too wide for any statement
    units = units_of(rows)
    bin_of = cells_of_equal_mass(units, _BINS)
    observed: Vector = np.bincount(bin_of, units.residual).astype(np.float64)
    drawn = _drawn(units, bin_of, n_resamples, generator)
    covariance: Vector
    if units.cluster is None:  # known exactly
        v = units.prediction
        variance = np.bincount(bin_of, units.squares * v * (1 - v))
        covariance = np.diag(variance).astype(np.float64, copy=False)
    else:  # from the draws and the data together, so that these are exchangeable with those
        drawn = np.vstack((observed, drawn))
        covariance = drawn.T @ drawn / len(drawn)
    blocks = (drawn[at : at + _BLOCK] for at in range(0, len(drawn), _BLOCK))
    largest = np.concatenate([_scores(block, covariance).max(axis=(1, 2)) for block in blocks])
    # Of B draws, or of these and the data: the same rank, and "beyond" is never the data itself.
    critical = np.sort(largest)[order_rank(n_resamples, level) - 1]
    score = _scores(observed[None], covariance)[0]
    found = tuple(
        _region(first, last, rows.joint, units, observed, bin_of)
        for first, last in _disjoint(score, critical, observed)
    )
    return Regions(found, confidence_level)


def _drawn(units: Units, bin_of: Integers, n_resamples: int, rng: np.random.Generator) -> Vector:
    """Draw the residual sums of the bins for labels that follow the predictions."""
    n_bins = int(bin_of[-1]) + 1
    drawn = np.empty((n_resamples, n_bins))
    place, share, count = units.drawn_units
    if units.cluster is None and (share == share[0]).all():
        v = units.prediction[place]
        return np.asarray(share[0] * _drawn_cells(v, count, bin_of, n_resamples, rng))
    if units.cluster is not None or (count == 1).all():
        draw = units.drawing_in(bin_of)
        for at in range(n_resamples):
            drawn[at] = draw(rng)
        return drawn
    v = units.prediction[place]
    for at in range(n_resamples):
        ones = rng.binomial(count, v)
        drawn[at] = np.bincount(bin_of[place], share * (ones - count * v), n_bins)
    return drawn


def _drawn_cells(
    v: Vector, count: Integers, bin_of: Integers, n_resamples: int, rng: np.random.Generator
) -> Vector:
    """Draw sums for rows of equal weight.

    Rows of one bin and one of 4,096 cells share their mean prediction. Their number of ones is then
    binomial, with the right mean and a variance that is too large by less than 1e-7 a row.
    """
    key = bin_of * (_CELLS + 1) + (v * _CELLS).astype(np.int64)
    new = np.flatnonzero(np.diff(key, prepend=-1))
    rows = np.add.reduceat(count, new)
    mean = np.minimum(np.add.reduceat(count * v, new) / rows, 1.0)
    starts = np.flatnonzero(np.diff(bin_of[new], prepend=-1))
    drawn = np.empty((n_resamples, starts.size))
    for at in range(0, n_resamples, _BLOCK):
        block = drawn[at : at + _BLOCK]
        ones = rng.binomial(rows, mean, (len(block), rows.size))
        np.add.reduceat(ones - rows * mean, starts, axis=1, out=block)
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
    first: int, last: int, joint: Joint, units: Units, observed: Vector, bin_of: Integers
) -> Region:
    inside = np.flatnonzero((bin_of >= first) & (bin_of < last))
    size = float(units.at_predictions(units.mass)[inside].sum())
    gap = float(observed[first:last].sum()) / size
    lower, upper = units.prediction[inside[0]], units.prediction[inside[-1]]
    if joint.grid is not None:  # the rows of a cell may be anywhere in it
        cell, width = joint.grid.cell, joint.grid.width
        lower, upper = cell[inside[0]] * width, min(1.0, (cell[inside[-1]] + 1) * width)
    return Region(float(lower), float(upper), gap, size)
