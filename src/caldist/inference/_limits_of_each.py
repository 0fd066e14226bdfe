"""Limits by splitting, of many samples side by side: what :class:`Limits` has for each of them.

The arrays of all samples lie one after the other, so that NumPy and the kernels are called once for
many samples and not for each. Only sums are taken sample by sample: NumPy adds numbers in an order
that depends on how many there are, and the limits of a sample shall be to the bit those that it has
alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist._util.cached import cached_property
from caldist._util.types import Integers, Vector
from caldist.data.rows import Rows
from caldist.data.units import Units, one_after_the_other
from caldist.inference._cells import cells_start, label_rates
from caldist.inference._dealing import FOLDS, are_dealt_one_by_one, deal_rows, ordered_units
from caldist.inference._limits import DEALING, normal_quantile
from caldist.inference._resampling import Resampler
from caldist.kernels._arrays import prefix_sums
from caldist.measures._measure import Measure

_LARGE = 1 << 14  # rows from which a sample is as quick alone
_TOGETHER = 1 << 16  # rows that are looked at together; of more, copies would fill memory

Ends = tuple[Vector, Vector, Vector]


def are_made_together(measure: Measure[Any]) -> bool:
    """Whether a measure has limits for many samples at once."""
    facts = measure.facts
    if facts.interval is not None:
        return False
    return facts.norms is not None if measure.is_norm else facts.loss is not None


def limits_together(
    parts: Sequence[Rows], risk: float, resampler: Resampler
) -> Iterator[tuple[list[int], LimitsOfEach]]:
    """Give limits of some samples at a time, with their numbers; not of those better alone.

    These are large ones, predictions that were rounded, clusters, and few predictions of many rows.
    """
    some: list[int] = []
    units: list[Units] = []
    rows = 0
    for at, part in enumerate(parts):
        own = part.units
        if own.cluster is not None or own.n_rows > _LARGE or not are_dealt_one_by_one(own):
            continue
        if part.is_summary and part.joint.radius > 0:
            continue
        if rows + own.n_rows > _TOGETHER:
            yield some, LimitsOfEach.of(units, risk, resampler)
            some, units, rows = [], [], 0
        some.append(at)
        units.append(ordered_units(part))
        rows += own.n_rows
    if some:
        yield some, LimitsOfEach.of(units, risk, resampler)


@dataclass(frozen=True, eq=False)
class LimitsOfEach:
    """What the limits of samples of independent rows are made from.

    Attributes
    ----------
    units
        Their units, on the supports one after the other.
    support, start
        The first place of each sample's support and its first unit, and their numbers.
    largest
        1/n of each, as the largest share of a row.
    alike
        Whether the rows of each have equal weights.
    """

    units: Units
    support: Integers
    start: Integers
    largest: Vector
    alike: NDArray[np.bool_]
    risk: float  # δ
    resampler: Resampler

    @classmethod
    def of(cls, units: Sequence[Units], risk: float, resampler: Resampler) -> LimitsOfEach:
        """Put samples side by side."""
        return cls(
            one_after_the_other(units),
            prefix_sums(np.array([part.prediction.size for part in units])),
            prefix_sums(np.array([part.place.size for part in units])),
            np.array([part.largest_share for part in units]),
            np.array([part.are_alike for part in units]),
            risk,
            resampler,
        )

    @cached_property
    def _z(self) -> float:
        return -normal_quantile(self.risk / 2)

    @cached_property
    def _extra(self) -> Vector:
        return math.log(2 / self.risk) * self.largest / 3

    def of_norm(self, measure: Measure[Any]) -> Ends:
        """Return the values of a norm of the residual masses with their lower and upper limits."""
        units, norms = self.units, measure.norms(self.units.prediction, self.support)
        mean, error = self.split_means(measure)
        extra = norms.bound * self._extra
        reached = []
        for function in norms.witnesses(units.residual):
            w = function[units.place]
            error_of_mean = np.maximum(
                self._sample.standard_error(units.error * w),
                self._sample.label_error(w, self._rate),
            )
            attained = np.abs(_sums(units.residual * function, self.support))
            reached.append(attained + self._z * error_of_mean)
        upper = extra + np.maximum.reduce(reached)
        return norms(units.residual), mean - self._z * error - extra, upper

    def split_means(self, measure: Measure[Any]) -> tuple[Vector, Vector]:
        """Return means of duals over rows that had no part in them, and their standard errors."""
        return self._rows.split_means(measure)

    def of_mean(self, loss: Callable[[Vector, Vector], Vector]) -> Vector:
        """Return how far the population's means of a loss may be on each side."""
        units = self.units
        losses = loss(units.label.astype(np.float64), units.prediction[units.place])
        return self._extra + self._z * self._sample.standard_error(losses)

    @cached_property
    def _sample(self) -> _Sample:
        units = self.units
        return _Sample(units.place, units.count, units.share, units.mass, self.start)

    @cached_property
    def _rate(self) -> Vector:
        """For each prediction the frequency of label 1 near it, see :class:`Cells`."""
        units, support = self.units, self.support
        v, mass = units.prediction, units.at_predictions(units.mass)
        variance = units.squares * v * (1 - v)
        start = np.concatenate(
            [
                first + cells_start(v[first:last], mass[first:last], variance[first:last])
                for first, last in pairwise(support.tolist())
            ]
        )
        return label_rates(units, start)

    @cached_property
    def _rows(self) -> _Dealt:
        """The single rows, dealt into folds: each sample as if it were alone."""
        units, count = self.units, self.units.count
        index = np.repeat(np.arange(count.size), count)
        rows = np.add.reduceat(count, self.start[:-1])
        # Samples of the same size are dealt alike, by the same stream.
        dealt = {
            size: deal_rows(self.resampler.stream(DEALING), size)
            for size in np.unique(rows).tolist()
        }
        fold = np.concatenate([dealt[size] for size in rows.tolist()], axis=1)
        share = units.share[index]
        alike = np.repeat(self.alike, rows)
        mass = np.where(alike, share, units.mass[index] * (1 / count[index]))
        one = np.broadcast_to(np.int64(1), index.shape)
        sample = _Sample(units.place[index], one, share, mass, prefix_sums(rows))
        return _Dealt(self, sample, units.label[index], fold)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Rows or units of many samples, and errors of means over each."""

    place: Integers
    count: Integers
    share: Vector
    mass: Vector
    start: Integers

    def means(self, function: Vector) -> Vector:
        """Return the mean of a function of the rows over each sample."""
        return _sums(self.mass * function, self.start)

    def standard_error(self, function: Vector) -> Vector:
        """Return the standard error of these means, see :meth:`Units.standard_error`."""
        deviation = function - np.repeat(self.means(function), np.diff(self.start))
        deviation *= self.share
        deviation **= 2
        deviation *= self.count
        return np.sqrt(_sums(deviation, self.start))

    def label_error(self, slope: Vector, rate: Vector) -> Vector:
        """Return that of labels of a frequency, see :meth:`Units.label_error`."""
        square = self.share * slope
        square **= 2
        square *= self.count
        square *= (rate * (1 - rate))[self.place]
        return np.sqrt(_sums(square, self.start))


@dataclass(frozen=True, eq=False)
class _Dealt:
    """Single rows of many samples in folds; see the module ``_split``."""

    limits: LimitsOfEach
    rows: _Sample
    label: Integers
    fold: NDArray[np.int8]

    def split_means(self, measure: Measure[Any]) -> tuple[Vector, Vector]:
        """Return means of duals over rows that had no part in them, and their standard errors."""
        rows, support = self.rows, self.limits.support
        size = int(support[-1])
        value, slope = np.zeros(rows.place.size), np.zeros(rows.place.size)
        own = rows.place + size * self.label
        sample = np.repeat(np.arange(support.size - 1), np.diff(rows.start))
        for fold in self.fold.astype(np.int64):
            key = fold * (2 * size) + own
            factors = self._factors(fold, sample)
            trained = _bins(key, rows.mass, (FOLDS, 2, size))
            each = self._duals(measure, trained, factors > 0)
            each *= np.tile(np.repeat(factors, np.diff(support), axis=1), 2)
            every = each.sum(axis=0)
            rise, whole = each[:, size:] - each[:, :size], every[size:] - every[:size]
            value -= each.ravel()[key]
            value += every[own]
            slope -= rise.ravel()[fold * size + rows.place]
            slope += whole[rows.place]
        error = np.maximum(
            rows.standard_error(value),
            rows.label_error(slope, self.limits._rate),  # noqa: SLF001 -- a part of it
        )
        return rows.means(value), error

    def _duals(self, measure: Measure[Any], trained: Vector, some: NDArray[np.bool_]) -> Vector:
        """Return the dual from each fold, for label 0 and then for label 1.

        ``trained`` has the masses of both labels in each fold; ``some`` says in which folds of
        which samples a dual is asked for, elsewhere it may be anything.
        """
        v, support = self.limits.units.prediction, self.limits.support
        zeros, ones = trained.swapaxes(0, 1)
        if measure.facts.norms is not None:
            witness = measure.norms(v, support).witness(ones * (1 - v) - zeros * v)
            return np.concatenate((-v * witness, (1 - v) * witness), axis=1)
        found = np.zeros_like(trained)
        ends = support.tolist()
        for fold, at in zip(*(numbers.tolist() for numbers in np.nonzero(some)), strict=True):
            part = slice(ends[at], ends[at + 1])
            found[fold, :, part] = measure.dual(v[part], zeros[fold, part], ones[fold, part])
        return found.reshape(FOLDS, -1)

    def _factors(self, fold: Integers, sample: Integers) -> Vector:
        """Return what the dual from a fold counts in each sample; 0 where it has no other rows."""
        samples = self.limits.largest.size
        mass = _bins(sample * FOLDS + fold, self.rows.mass, (samples, FOLDS)).T
        factor = np.zeros_like(mass)
        some = (mass > 0) & (mass < 1)
        factor[some] = 1 / (1 - mass[some]) / FOLDS / len(self.fold)
        return factor


def _bins(key: Integers, values: Vector, shape: tuple[int, ...]) -> Vector:
    """Return the sums of values by their key."""
    added = np.bincount(key, values, math.prod(shape))
    return added.astype(np.float64, copy=False).reshape(shape)


def _sums(values: Vector, start: Integers) -> Vector:
    """Return the sum over each sample."""
    ends = start.tolist()
    return np.array([np.add.reduce(values[first:last]) for first, last in pairwise(ends)])
