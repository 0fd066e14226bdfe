r"""Lower limits by splitting: duals from one fifth of the rows, evaluated on the other four.

A measure that is a supremum T = sup_w E[ψ_w], over functions ψ_w of a row, is at least E[ψ_w] for
every w, whatever the law and however w was found on other rows. So the mean of ψ_w over rows that
had no part in w, less the error of that one mean, is a lower limit. It is averaged over the five
folds and over two dealings.

Training on one fifth and testing on four is the other way round than usual. Where several w are
nearly best, or none is good, the mean over folds is not normal; with a large training part it
misses twice as often as it says, with a small one never more often.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist.inference._dealing import FOLDS, Dealt
from caldist.measures._measure import Measure

Vector = NDArray[np.float64]

_PART = 1 << 16  # units that are looked at together


def split_values(measure: Measure[Any], dealt: Dealt) -> tuple[Vector, Vector]:
    """Return, for each unit, what duals of other rows make of it, and what label 1 adds to that."""
    units, times = dealt.units, len(dealt.fold)
    size = units.prediction.size
    value, slope = np.zeros(units.place.size), np.zeros(units.place.size)
    for fold, masses in zip(dealt.fold, dealt.masses, strict=True):
        duals = np.zeros(2 * size)  # of all folds; on a row that of its own is taken off again
        for k in range(FOLDS):
            own = np.flatnonzero(fold == k)
            if masses[k] <= 0 or masses[k] >= 1:
                continue
            place = units.place[own]
            at = place + size * units.label[own]
            trained = np.asarray(np.bincount(at, units.mass[own], 2 * size), np.float64)
            dual = np.concatenate(measure.dual(units.prediction, trained[:size], trained[size:]))
            dual *= 1 / (1 - masses[k]) / FOLDS / times
            duals += dual
            value[own] -= dual[at]
            slope[own] -= dual[size + place] - dual[place]
        rise = duals[size:] - duals[:size]
        for first in range(0, value.size, _PART):  # or a copy of each would be made on the way
            part = slice(first, first + _PART)
            place = units.place[part]
            value[part] += duals[place + size * units.label[part]]
            slope[part] += rise[place]
    return value, slope


def split_mean(measure: Measure[Any], dealt: Dealt, rate: Vector) -> tuple[float, float]:
    """Return the mean of duals over rows that had no part in them, and its standard error.

    ``rate`` is the frequency of label 1 near each prediction: the error is at least what it would
    be for labels of that frequency, which protects rare ones.
    """
    units = dealt.units
    value, slope = split_values(measure, dealt)
    mean = float((units.mass * value).sum())  # BLAS would wake its threads
    error = units.standard_error(value)
    if units.cluster is not None:
        return mean, error
    return mean, max(error, units.label_error(slope, rate))
