"""What noise makes of a measure, and the statistic by which it tests calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.inference.resampling import Replicate
from caldist.inference.sample import FLIPS, LABELS, Units
from caldist.measures.base import Measure
from caldist.measures.cumulative import null_deviation, scaled_tail

_ROUNDING = 1e-12  # labels this close to none or all of a prediction's rows are


@dataclass(frozen=True)
class Statistic:
    """A function of residual masses, large where they speak against calibration.

    ``tail`` gives the p-value that its limit law has, for independent rows; None if that law is
    not known. ``unless_below``, where it exists, is the function with less work for values below
    its second argument, in whose place it may return anything below that.
    """

    of: Callable[[Vector], float]
    tail: Callable[[float], float] | None = None
    unless_below: Callable[[Vector, float], float] | None = None


def statistic_of(measure: Measure[Any], units: Units) -> Statistic:
    """Return the statistic by which a measure tests calibration, on the support of a sample."""
    if measure.facts.statistic is not None:
        law, tail = measure.facts.tail, None
        if law is not None and units.cluster is None:  # the law is that of independent rows
            tail = scaled_tail(law, null_deviation(units.prediction, units.squares))
        return Statistic(measure.facts.statistic, tail)
    if measure.facts.norm is not None:
        norm = measure.norm(units.prediction)
        return Statistic(norm, unless_below=norm.unless_below)
    return Statistic(_of_labels(measure, units))


def _of_labels(measure: Measure[Any], units: Units) -> Callable[[Vector], float]:
    """Return the measure of the joint distribution whose residual masses are given."""
    v, mass, rows = units.prediction, units.at_predictions(units.mass), None
    if units.heaviest is None and (units.share == units.share[0]).all():
        rows = units.n_rows  # masses are whole numbers of rows then
        mass = units.at_predictions(units.count.astype(np.float64))

    def of(c: Vector) -> float:
        ones = c + mass * v if rows is None else np.rint(c * rows + mass * v)
        ones[ones < _ROUNDING * mass] = 0.0
        ones = np.where(mass - ones < _ROUNDING * mass, mass, ones)
        return measure.of(Joint(v, mass - ones, ones, n_rows=rows))

    return of


def noise_of(measure: Measure[Any], units: Units, floor: float) -> dict[int, Replicate]:
    """Return replicates of what noise alone makes of a measure, by family of random streams.

    Those below the floor may be any number below it.
    """
    of_masses = measure.facts.noise
    if of_masses is not None:
        found: dict[int, Replicate] = {
            FLIPS: lambda rng: float(of_masses(units.prediction, units.flip_masses(rng)))
        }
        if units.draws_labels:
            found[LABELS] = lambda rng: noise_of_labels(measure, units, units.draw(rng))
        return found
    norm = measure.norm(units.prediction)
    found = {FLIPS: lambda rng: norm.unless_below(units.flip(rng), floor)}
    if units.draws_labels:
        found[LABELS] = lambda rng: norm.unless_below(units.draw(rng), floor)
    return found


def noise_of_labels(measure: Measure[Any], units: Units, ones: Vector) -> float:
    """Return what labels drawn anew make of a measure that is no norm.

    ``ones`` are their residual masses: more of label 1 than expected, and as many less of label 0.
    """
    assert measure.facts.noise is not None  # noqa: S101 -- only asked where it is known
    return float(measure.facts.noise(units.prediction, np.concatenate((-ones, ones))))
