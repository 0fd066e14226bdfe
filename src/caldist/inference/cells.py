r"""Upper limits of the distance to calibration: the cost of maps that are constant on cells.

For a fixed partition into intervals with μ_c = E[y | c] the map κ(v) = μ_c(v) is exactly
calibrated, so the distance is at most its cost U = Σ_c E[|v - μ_c|; c]. On a sample μ_c is
estimated without the row itself: v_i is independent of that estimate, whose mean is μ_c, so by
convexity the estimated cost is at least U on average, for every law and sample size. Its error is
that of one mean, one-sided: with D_c a slope of m ↦ E[|v - m| | c] at the population's μ_c and
ψ = |v - μ_c| + D_c (y - μ_c),

    U - Û ≤ -(P_n - P) ψ + O(cells/n).

The sample's μ̂_c may lie where that slope is 0 while it is ±1 at μ_c, and where all rows are in one
or two cells nothing averages that out. So D_c is the slope of a secant, from μ̂_c to z standard
errors above it or below it, whichever makes ψ vary more. That is enough: the cost is convex in the
mean labels, so over the ellipsoid of z standard errors about μ̂ its supremum is at least U, but for
a probability 1 - Φ(z) (follow a subgradient at μ to the end of the ellipsoid), and in the ellipsoid
the cost nowhere exceeds what the secants say.

The cells come from the predictions alone, so labels select nothing. A second estimate merges
neighbouring cells as is best on two fifths of the rows, and pays for them on the other three. That
the smaller one of both needs no correction is measured, not proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from caldist.inference.folds import FOLDS, Folds
from caldist.inference.sample import Units
from caldist.kernels.arrays import prefix_sums
from caldist.kernels.loader import recalibration

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

_WIDTH = 3.0  # standard errors of a cell's mean label: the best is 2.8, and flat from 1.5 to 6
_ROUNDING = 1e-9  # of sums of equal weights
_ALONE = 1e-12  # the share of a cell that rounding may leave without a row


@dataclass(frozen=True)
class Cells:
    """Neighbouring predictions in cells that are made without looking at labels.

    Attributes
    ----------
    start
        The first prediction of each, by its index in the support.
    rate
        For each prediction the frequency of label 1 in its cell, one row of each label added: it
        protects limits where labels are rare.
    """

    units: Units
    start: Integers
    rate: Vector

    def upper(self, risk: float, z: float, folds: Folds) -> float:
        """Return a number below which the distance lies, but for a probability ``risk``."""
        finite_sample_term = math.log(1 / risk) / 3 * self.units.largest_share
        value, error = _cost(self.units, self.start, z)
        one = value + z * error + finite_sample_term
        value, error = self._merged(z, folds)
        return min(one, value + z * error + finite_sample_term, 1.0)

    def _merged(self, z: float, folds: Folds) -> tuple[float, float]:
        """Return the mean cost and error over pairs of folds, on which cells are merged."""
        edge = np.append(self.start, self.units.prediction.size)
        values, errors = [], []
        for pair in combinations(range(FOLDS), 2):
            train, test = folds.halves(pair)
            if train is None or test is None:
                return math.inf, 0.0
            start = _merge(train[0], edge)
            value, error = _cost(test[0], start, z)
            values.append(value)
            errors.append(error * math.sqrt(test[1]))
        # The mean of the errors, not the error of the mean: slopes of opposite sign would cancel.
        return float(np.mean(values)), float(np.mean(errors))


def cells_of(units: Units) -> Cells:
    """Cut the support into cells about as wide as three standard errors of their mean label."""
    v, mass = units.prediction, units.at_predictions(units.mass)
    start = cells_start(v, mass, units.squares * v * (1 - v))
    return Cells(units, start, label_rates(units, start))


def cells_start(prediction: Vector, mass: Vector, variance: Vector) -> Integers:
    """Return where the cells start, from the masses at predictions and what is their variance."""
    start = np.empty(prediction.size, dtype=np.int64)
    number = recalibration.cells(prediction, mass, variance, _WIDTH, start)
    return start[:number].copy()


def label_rates(units: Units, start: Integers) -> Vector:
    """Return for each prediction the frequency of label 1 in its cell, a row of each label more.

    Rows of unequal weight count by their weight, and for as many as have the same standard error:
    that is the same for rows and for their sums.
    """
    count = units.count.astype(np.float64)
    each = (count, count * units.label, units.mass, units.mass * units.label)
    rows, ones, mass, mass1 = (np.add.reduceat(units.at_predictions(part), start) for part in each)
    square = np.add.reduceat(units.squares, start)
    effective_size = np.divide(mass**2, square, out=rows.copy(), where=square > 0)
    unequal = effective_size < (1 - _ROUNDING) * rows
    ones[unequal] = effective_size[unequal] * mass1[unequal] / mass[unequal]
    rows[unequal] = effective_size[unequal]
    return np.repeat((ones + 1) / (rows + 2), np.diff(start, append=units.prediction.size))


def _merge(units: Units, edge: Integers) -> Integers:
    """Return where merged cells start that cost least on these rows."""
    mass = units.at_predictions(units.mass)
    ones = units.at_predictions(units.mass * units.label)
    sums = [prefix_sums(part) for part in (mass, ones, mass * units.prediction)]
    best, back = np.empty(edge.size), np.empty(edge.size, dtype=np.int64)
    recalibration.merge(units.prediction, sums[0], sums[1], sums[2], edge, best, back)
    at, starts = edge.size - 1, []
    while at > 0:
        at = int(back[at])
        starts.append(edge[at])
    return np.array(starts[::-1])


def _cost(units: Units, start: Integers, z: float) -> tuple[float, float]:
    """Return the cost of the map to the cells' mean labels, each without the row, and its error.

    The error is that of a limit that lies ``z`` of it away.
    """
    v, y = units.prediction[units.place], units.label.astype(np.float64)
    size = start.size
    cell = np.repeat(np.arange(size), np.diff(start, append=units.prediction.size))[units.place]
    mass = np.bincount(cell, units.mass, size)
    ones = np.bincount(cell, units.mass * y, size)
    mean = np.divide(ones, mass, out=np.zeros(size), where=mass > 0)
    own, own_ones = units.share, units.share * y
    part = None
    if units.cluster is not None:  # the row's whole cluster within the cell
        _, part = np.unique(cell * units.n_clusters + units.cluster, return_inverse=True)
        own, own_ones = (
            np.bincount(part, values)[part].astype(np.float64) for values in (own, own_ones)
        )
    rest = mass[cell] - own
    alone = rest <= _ALONE * mass[cell]
    others = np.where(v > 0.5, 0.0, 1.0)  # of a row alone: as far as can be
    np.divide(ones[cell] - own_ones, rest, out=others, where=~alone)
    value = float((units.mass * np.abs(v - np.clip(others, 0.0, 1.0))).sum())
    rate, off = label_rates(units, start), y - mean[cell]
    reach = z * np.sqrt(_variances(units, cell, part, off, rate, size))
    reach = np.divide(reach, mass, out=np.zeros(size), where=mass > 0)
    slopes = secants(v, units.mass, cell, mean, reach)
    steeper = np.where(np.abs(slopes[0]) > np.abs(slopes[1]), *slopes)
    away = np.abs(v - mean[cell])
    away -= float((units.mass * away).sum())
    if units.cluster is not None:
        # Errors of cells may go together: that of slopes with one sign can be the largest.
        error = max(
            math.sqrt(float((units.cluster_sums(units.share * influence) ** 2).sum()))
            for influence in (away + slope[cell] * off for slope in (*slopes, steeper))
        )
        if units.draws_labels:
            error = max(error, units.label_error(steeper[cell], rate))
        return value, error
    rate = rate[start]
    square = units.count * units.share**2
    more = np.bincount(cell, square, size) * np.maximum(0.0, rate * (1 - rate) - mean * (1 - mean))
    squares = (
        np.bincount(cell, square * (away + slope[cell] * off) ** 2, size) + slope**2 * more
        for slope in slopes
    )
    return value, math.sqrt(float(np.maximum(*squares).sum()))


def secants(v: Vector, mass: Vector, cell: Integers, mean: Vector, reach: Vector) -> list[Vector]:
    """Return the slopes of m ↦ E[|v - m| | c] over ``reach`` above the mean label and below it."""
    away = np.abs(v - mean[cell])
    whole = np.bincount(cell, mass, mean.size) * reach
    slopes = []
    for side in (1.0, -1.0):
        end = (mean + side * reach)[cell]
        rise = side * np.bincount(cell, mass * (np.abs(v - end) - away), mean.size)
        slopes.append(np.divide(rise, whole, out=np.zeros(mean.size), where=whole > 0))
    return slopes


def _variances(
    units: Units, cell: Integers, part: Integers | None, off: Vector, rate: Vector, size: int
) -> Vector:
    """Return those of the sums of labels in cells, from what labels miss the cells' means by.

    They are at least what :meth:`Units.label_error` says of labels of the frequency ``rate``.
    """
    deviation = units.label_deviation(rate)
    if part is None:
        square = units.count * units.share**2
        return np.maximum(*(np.bincount(cell, square * x**2, size) for x in (off, deviation)))
    inside = np.zeros(int(part.max()) + 1, dtype=np.int64)
    inside[part] = cell
    found, together = (
        np.bincount(inside, np.bincount(part, units.share * x) ** 2, size) for x in (off, deviation)
    )
    if units.draws_labels:
        alone = np.bincount(cell, (units.share * deviation) ** 2, size)
        found = np.maximum(found, alone + units.dependence * np.maximum(0.0, together - alone))
    return found.astype(np.float64)
