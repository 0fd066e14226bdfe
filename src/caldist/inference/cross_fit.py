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

from caldist.inference.folds import FOLDS, Folds
from caldist.measures.base import Measure

Vector = NDArray[np.float64]

_PART = 1 << 16  # units that are looked at together


def split_values(measure: Measure[Any], folds: Folds) -> tuple[Vector, Vector]:
    """Return, for each unit, what duals of other rows make of it, and what label 1 adds to that."""
    units, size = folds.units, folds.units.prediction.size
    duals = [_duals(measure, folds, at) for at in range(len(folds.fold))]
    value, slope = np.zeros(units.place.size), np.zeros(units.place.size)
    for fold, each in zip(folds.fold, duals, strict=True):
        every = each.sum(axis=0)  # on a row the dual of its own fold is taken off again
        rise, whole = each[:, size:] - each[:, :size], every[size:] - every[:size]
        for first in range(0, value.size, _PART):  # of many, copies would fill memory
            part = slice(first, first + _PART)
            own, place = fold[part], units.place[part]
            at = place + size * units.label[part]
            value[part] -= each[own, at]
            value[part] += every[at]
            slope[part] -= rise[own, place]
            slope[part] += whole[place]
    return value, slope


def _duals(measure: Measure[Any], folds: Folds, dealing: int) -> NDArray[np.float64]:
    """Return the dual from each fold of a dealing, for label 0 and then for label 1, as shares."""
    units, fold, masses = folds.units, folds.fold[dealing], folds.masses[dealing]
    size = units.prediction.size
    key = np.multiply(fold, 2 * size, dtype=np.int64)
    key += units.place
    for first in range(0, key.size, _PART):
        part = slice(first, first + _PART)
        key[part] += size * units.label[part]
    trained = np.bincount(key, units.mass, FOLDS * 2 * size).reshape(FOLDS, 2, size)
    found = np.zeros((FOLDS, 2 * size))
    for k in range(FOLDS):
        if 0 < masses[k] < 1:
            zero, one = measure.dual(units.prediction, trained[k, 0], trained[k, 1])
            found[k, :size], found[k, size:] = zero, one
            found[k] *= 1 / (1 - masses[k]) / FOLDS / len(folds.fold)
    return found


def split_mean(measure: Measure[Any], folds: Folds, rate: Vector) -> tuple[float, float]:
    """Return the mean of duals over rows that had no part in them, and its standard error.

    ``rate`` is the frequency of label 1 near each prediction: the error is at least what it would
    be for labels of that frequency, which protects rare ones.
    """
    units = folds.units
    value, slope = split_values(measure, folds)
    mean = float((units.mass * value).sum())  # BLAS would wake its threads
    error = units.standard_error(value)
    return mean, max(error, units.label_error(slope, rate)) if units.draws_labels else error
