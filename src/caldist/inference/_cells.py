r"""Upper limits of the distance to calibration: the cost of maps that are constant on cells.

For a fixed partition into intervals with μ_c = E[y | c] the map κ(v) = μ_c(v) is exactly
calibrated, so the distance is at most its cost U = Σ_c E[|v - μ_c|; c]. On a sample μ_c is
estimated without the row itself: v_i is independent of that estimate, whose mean is μ_c, so by
convexity the estimated cost is at least U on average, for every law and sample size. Its error is
that of one mean, one-sided: with D_c a slope of m ↦ E[|v - m| | c] at μ_c and
ψ = |v - μ_c| + D_c (y - μ_c),

    U - Û ≤ -(P_n - P) ψ + O(cells/n).

The cells come from the predictions alone, so labels select nothing. A second estimate merges
neighbouring cells as is best on two fifths of the rows, and pays for them on the other three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from caldist._kernels import recalibration
from caldist.data.units import Units
from caldist.inference._dealing import FOLDS, Dealt
from caldist.kernels._arrays import prefix_sums

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

    def upper(self, risk: float, z: float, dealt: Dealt) -> float:
        """Return a number below which the distance lies, but for a probability ``risk``."""
        extra = math.log(1 / risk) / 3 * self.units.largest_share
        value, error = _cost(self.units, self.start)
        one = value + z * error + extra
        value, error = self._merged(dealt)
        return min(one, value + z * error + extra, 1.0)

    def _merged(self, dealt: Dealt) -> tuple[float, float]:
        """Return the mean cost and error over pairs of folds, on which cells are merged."""
        edge = np.append(self.start, self.units.prediction.size)
        values, errors = [], []
        for pair in combinations(range(FOLDS), 2):
            train, test = dealt.halves(pair)
            if train is None or test is None:
                return math.inf, 0.0
            start = _merge(train[0], edge)
            value, error = _cost(test[0], start)
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
    worth = np.divide(mass**2, square, out=rows.copy(), where=square > 0)
    unequal = worth < (1 - _ROUNDING) * rows
    ones[unequal] = worth[unequal] * mass1[unequal] / mass[unequal]
    rows[unequal] = worth[unequal]
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


def _cost(units: Units, start: Integers) -> tuple[float, float]:
    """Return the cost of the map to the cells' mean labels, each without the row, and its error."""
    v, y = units.prediction[units.place], units.label.astype(np.float64)
    size = start.size
    cell = np.repeat(np.arange(size), np.diff(start, append=units.prediction.size))[units.place]
    mass = np.bincount(cell, units.mass, size)
    ones = np.bincount(cell, units.mass * y, size)
    mean = np.divide(ones, mass, out=np.zeros(size), where=mass > 0)
    own, own_ones = units.share, units.share * y
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
    # Where a prediction equals the mean, the slope has two values: the steeper one counts.
    middle = mean[cell]
    slopes = [
        np.bincount(cell, units.mass * np.where(below, 1.0, -1.0), size)
        for below in (v <= middle, v < middle)
    ]
    slope = np.where(np.abs(slopes[0]) > np.abs(slopes[1]), *slopes)
    slope = np.divide(slope, mass, out=np.zeros(size), where=mass > 0)
    influence = np.abs(v - middle) + slope[cell] * (y - middle)
    influence -= float((units.mass * influence).sum())
    near = label_rates(units, start)
    if units.cluster is not None:
        error = math.sqrt(float((units.cluster_sums(units.share * influence) ** 2).sum()))
        if units.draws_labels:
            error = max(error, units.label_error(slope[cell], near))
        return value, error
    rate = near[start]
    more = slope**2 * np.maximum(0.0, rate * (1 - rate) - mean * (1 - mean))
    square = units.count * units.share**2
    return value, math.sqrt(float((square * (influence**2 + more[cell])).sum()))
