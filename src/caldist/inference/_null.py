"""Statistics under perfect calibration: the predictions stay, the labels are drawn anew.

Every statistic is a function of the residual masses on the support. The values of B replicates and
the observed one are exchangeable under calibration, whatever the statistic, so its rank among them
gives an exact p-value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caldist.data.joint import Joint
from caldist.inference import _classical
from caldist.inference._norms import make_norm
from caldist.inference._resampling import Resampler, Sample
from caldist.measures.registry import MEASURES

__all__ = [
    "CLUSTERED",
    "NAMES",
    "Statistic",
    "make_statistic",
    "null_ranks",
    "null_values",
    "ranks",
    "sums",
]

Vector = NDArray[np.float64]

NAMES = (*MEASURES, "spiegelhalter", "hosmer_lemeshow")

# The statistics that make sense of residual masses which no labels have: whole clusters' residuals
# with their signs flipped.
CLUSTERED = (
    "smooth_ce",
    "kernel_ce",
    "random_interval_ce",
    "ecce_mad",
    "ecce_range",
    "spiegelhalter",
    "hosmer_lemeshow",
)

_FAMILY = 40  # the random streams of these draws
_ROUNDING = 1e-12  # values this close count as equal: sums in another order differ by less


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


def make_statistic(name: str, sample: Sample) -> Statistic:
    """Return the statistic of this name on the support of a sample."""
    v = sample.prediction
    if name in {"smooth_ce", "kernel_ce", "random_interval_ce"}:
        norm = make_norm(name, v)
        return Statistic(norm, unless_below=norm.unless_below)
    mass, square = (
        sums(sample.place, sample.count * size, v.size) for size in (sample.share, sample.share**2)
    )
    found = _classical_statistic(name, sample, mass, square)
    if found is None:
        return Statistic(_of_labels(name, v, mass))
    # The limit laws are those of independent rows.
    return found if sample.group is None else Statistic(found.of)


def _classical_statistic(
    name: str, sample: Sample, mass: Vector, square: Vector
) -> Statistic | None:
    v = sample.prediction
    if name == "ecce_mad":
        scale = _classical.null_deviation(v, square)
        return Statistic(_largest, _scaled(_classical.largest_tail, scale))
    if name == "ecce_range":
        scale = _classical.null_deviation(v, square)
        return Statistic(_range, _scaled(_classical.range_tail, scale))
    if name == "spiegelhalter":
        slope = 1 - 2 * v
        deviation = _classical.null_deviation(v, square, slope)
        if sample.group is not None:
            own = sample.group_sums(sample.share * sample.error * slope[sample.place])
            deviation = math.sqrt(float((own**2).sum()))
        return Statistic(_classical.spiegelhalter(v, deviation), _classical.two_sided_normal_tail)
    if name == "hosmer_lemeshow":
        of, degrees = _classical.hosmer_lemeshow(v, square, mass)
        return Statistic(of, lambda value: _classical.chi_squared_tail(value, degrees))
    return None


def sums(place: NDArray[np.int64], values: Vector, size: int) -> Vector:
    """Return the sum of the values at each place."""
    return np.bincount(place, weights=values, minlength=size).astype(np.float64, copy=False)


def _scaled(law: Callable[[float], float], scale: float) -> Callable[[float], float]:
    """Return the tail of scale · X from that of X; a scale of 0 means that X must be 0."""
    return lambda value: law(value / scale) if scale > 0 else float(value <= 0)


def _largest(c: Vector) -> float:
    return float(np.abs(np.cumsum(c)).max())


def _range(c: Vector) -> float:
    prefix = np.cumsum(c)
    return max(0.0, float(prefix.max())) - min(0.0, float(prefix.min()))


def _of_labels(name: str, v: Vector, mass: Vector) -> Callable[[Vector], float]:
    """Return a measure of the joint distribution whose residual masses are given."""
    measure = MEASURES[name].of_joint

    def of(c: Vector) -> float:
        ones = c + mass * v
        ones[ones < _ROUNDING * mass] = 0.0
        ones = np.where(mass - ones < _ROUNDING * mass, mass, ones)
        return measure(Joint(v, mass - ones, ones))

    return of


def null_values(
    sample: Sample, of: Callable[[Vector], Sequence[float]], resampler: Resampler
) -> Vector:
    """Return the statistics of the sample, then of each replicate, a row each.

    Independent rows get new labels. Clusters get a common random sign for their residuals, because
    nobody knows how the labels within one depend on each other.
    """
    draw = sample.draw if sample.group is None else sample.flip
    drawn = resampler.run(lambda rng: of(draw(rng)), family=_FAMILY, size=sample.n_rows)
    return np.vstack((np.array([of(sample.residual)], dtype=np.float64), drawn))


def null_ranks(
    sample: Sample, statistics: Sequence[Statistic], resampler: Resampler
) -> tuple[Vector, NDArray[np.int64]]:
    """Return the values of the statistics of the sample, and :func:`ranks` of all rows."""
    if len(statistics) == 1 and (unless_below := statistics[0].unless_below) is not None:
        # Only the rank of the sample is asked for, and nothing of the values below it.
        floor = float(_floor(np.array(statistics[0].of(sample.residual))))
        values = null_values(sample, lambda c: [unless_below(c, floor)], resampler)
    else:
        values = null_values(sample, lambda c: [part.of(c) for part in statistics], resampler)
    return values[0], np.column_stack([ranks(column) for column in values.T])


def ranks(values: Vector) -> NDArray[np.int64]:
    """Return for each value how many values, itself included, are at least as large.

    Values that differ by rounding count as equal, which can only raise a p-value.
    """
    return values.size - np.searchsorted(np.sort(values), _floor(values), side="left")


def _floor(values: Vector) -> Vector:
    """Return what a value must reach to count as equal."""
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.asarray(values - _ROUNDING * (np.abs(finite) + 1e-3))
