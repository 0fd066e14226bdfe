r"""Differences between models: interval ends and p-values for any pair of them.

Notation: c the residual masses of a model, T = ‖c‖ its measure, c0 and T0 those of the population,
w0 the witness of c0, h = c - c0. For two models a and b

    (Ta - Ta0) - (Tb - Tb0) ≤ ‖ha‖ - ⟨wb0, hb⟩,

because a norm obeys the triangle inequality and Tb ≥ ⟨wb0, cb⟩ = Tb0 + ⟨wb0, hb⟩. Random signs give
the law of the right side, also where a model is calibrated and Ta itself is far from normal: one
for each row, shared by all models on the same rows, and signs of their own for samples that are
independent of each other. Besides, |Ta0 - Tb0| ≤ ‖ca0 - cb0‖, whose upper end is that of a mean:
close models have a short interval, whatever their common error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from caldist._util.products import dot
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.rows import Rows
from caldist.data.sorting import merged
from caldist.inference.limits import normal_quantile
from caldist.inference.resampling import Resampler, order_statistic
from caldist.inference.sample import FLIPS, Units, random_bits, row_units
from caldist.measures.base import Measure
from caldist.measures.norms import Norm

# Each end, and the bound on the size of the difference, may fail with a third of the total.
PARTS = 3
LEAST = 1e-300  # below which no p-value is looked for


class PairedRows:
    """The predictions of several models on the same rows, and means over these."""

    def __init__(self, models: Sequence[Rows]) -> None:
        first = models[0]
        self.models = models
        self.label = first.label
        size = self.label.size
        # The independent parts: the rows, or the clusters of rows.
        self.part = np.arange(size) if first.cluster is None else first.cluster
        self.n_parts = size if first.cluster is None else first.n_clusters
        weight = first.weight
        self.share = np.full(size, 1 / size) if weight is None else weight / weight.sum()
        # A row without weight counts nowhere, and its prediction may lie beyond the support.
        self.mask = slice(None) if weight is None else weight > 0

    def same(self, a: int, b: int) -> bool:
        """Return whether two models make the same predictions."""
        return np.array_equal(self.models[a].prediction, self.models[b].prediction)

    def mean(self, value: Vector) -> Mean:
        """Return the mean of a value of each row that counts."""
        share, part = self.share[self.mask], self.part[self.mask]
        mean = dot(share, value)
        parts, deviations = share * value, share * (value - mean)
        if self.models[0].cluster is not None:
            parts, deviations = np.bincount(part, parts), np.bincount(part, deviations)
        return Mean(mean, math.sqrt(dot(deviations, deviations)), float(np.abs(parts).max()))


@dataclass(frozen=True)
class Mean:
    """A mean with its standard error and the largest absolute contribution of one part to it."""

    value: float
    error: float
    largest_share: float

    def margin(self, delta: float) -> float:
        """Return how far the expectation lies above, at most, with probability 1 - δ.

        The second term, Bernstein's, makes up for the skewness that rare labels bring.
        """
        return math.log(1 / delta) / 3 * self.largest_share - normal_quantile(delta) * self.error

    def minus(self, other: Mean) -> Mean:
        """Return the difference to the mean of a sample that is independent of this one."""
        error = math.hypot(self.error, other.error)
        return Mean(self.value - other.value, error, max(self.largest_share, other.largest_share))


class Differences(Protocol):
    """What all pairs of models can be asked."""

    values: list[float]

    def ends(self, a: int, b: int, delta: float) -> tuple[float, float]:
        """Return the ends of the interval, which fails with probability δ."""

    def pvalue(self, a: int, b: int, closer: float = 0.0) -> float:
        """Return the least δ with 0 outside the interval; above 1 where there is none."""


class Norms(ABC):
    """Differences of a measure that is a norm of the residual masses."""

    def __init__(self, measure: Measure[Any], units: Sequence[Units]) -> None:
        self._measure, self._units = measure, units
        self._norms = [measure.norm(part.prediction) for part in units]
        self.values = [norm(part.residual) for norm, part in zip(self._norms, units, strict=True)]
        self._bound = max(norm.bound for norm in self._norms)

    @abstractmethod
    def ends(self, a: int, b: int, delta: float) -> tuple[float, float]:
        """Return the ends of the interval, which fails with probability δ."""

    @abstractmethod
    def pvalue(self, a: int, b: int, closer: float = 0.0) -> float:
        """Return the least δ with 0 outside the interval; above 1 where there is none.

        The difference is taken to be ``closer`` to 0, which is what rounding may have hidden.
        """

    def _most(self, a: int, b: int, delta: float) -> float:
        """Return the upper end of the interval for ‖ca - cb‖, on the support of both."""
        first, second = self._units[a], self._units[b]
        if self._same(a, b):
            return 0.0
        both, of_first, of_second = merged(first.prediction, second.prediction)
        masses = np.zeros(both.size)
        masses[of_first] += first.residual
        masses[of_second] -= second.residual
        if not masses.any():  # by chance, and without a witness
            return self._bound
        # Of both signs always the same, so that exchanging the models mirrors the interval.
        masses *= np.sign(masses[np.argmax(masses != 0)])
        norm: Norm = self._measure.norm(both)
        value, witnesses = norm.attained(masses)
        margins = (
            self._mean(a, b, witness[of_first], witness[of_second]).margin(delta / PARTS)
            for witness in witnesses
        )
        return min(value + max(margins), self._bound)

    @abstractmethod
    def _same(self, a: int, b: int) -> bool:
        """Whether two models make the same predictions for the same rows."""

    @abstractmethod
    def _mean(self, a: int, b: int, of_a: Vector, of_b: Vector) -> Mean:
        """Return the mean of e_a w(v_a) - e_b w(v_b), w being given on the support of each."""


class _Signs(Norms):
    """Differences by replicates: the noise of random signs."""

    def _draw(
        self, resampler: Resampler, flips: Callable[[np.random.Generator], list[Vector]]
    ) -> None:
        """Keep, for each replicate and model, ‖h‖ and the least ⟨w, h⟩ over its witnesses."""
        # Residuals that all vanish have no witness: any function may be the population's.
        every = [
            norm.witnesses(part.residual) if part.residual.any() else None
            for norm, part in zip(self._norms, self._units, strict=True)
        ]

        def replicate(rng: np.random.Generator) -> list[tuple[float, float]]:
            draw = []
            for masses, norm, witnesses in zip(flips(rng), self._norms, every, strict=True):
                size = norm(masses)
                along = -size if witnesses is None else float((witnesses @ masses).min())
                draw.append((size, along))
            return draw

        size = sum(part.n_rows for part in self._units)
        draws = resampler.run(replicate, family=FLIPS, size=size)
        self._size, self._along = draws[..., 0], draws[..., 1]

    def ends(self, a: int, b: int, delta: float) -> tuple[float, float]:
        """Return the ends of the interval, which fails with probability δ."""
        level = 1 - delta / PARTS
        difference = self.values[a] - self.values[b]
        down = float(order_statistic(self._excess(a, b), level))
        up = float(order_statistic(self._excess(b, a), level))
        most = self._most(a, b, delta)
        # The difference itself is inside, however few the replicates.
        low, high = difference - max(down, 0.0), difference + max(up, 0.0)
        return max(low, 0.0 - most), min(high, most)

    def pvalue(self, a: int, b: int, closer: float = 0.0) -> float:
        """Return the least δ with 0 outside the interval; above 1 where there is none."""
        difference = self.values[a] - self.values[b]
        size = abs(difference) - closer
        if size <= 0:
            return math.inf
        excess = self._excess(a, b) if difference > 0 else self._excess(b, a)
        beyond = int(np.count_nonzero(excess >= size))
        return PARTS * (1 + beyond) / (1 + excess.size)

    def _excess(self, a: int, b: int) -> Vector:
        """Return draws of how far the sample's difference can lie above the population's."""
        return np.asarray(self._size[:, a] - self._along[:, b])


class PairedNorms(_Signs):
    """Models on the same rows: they share the signs."""

    def __init__(self, rows: PairedRows, measure: Measure[Any], resampler: Resampler) -> None:
        self._rows = rows
        super().__init__(
            measure, [row_units(model, rows.part, rows.n_parts) for model in rows.models]
        )
        self._places: dict[int, Integers] = {}

        def flips(rng: np.random.Generator) -> list[Vector]:
            bits = random_bits(rng, rows.n_parts)
            return [part.flip_clusters(bits) for part in self._units]

        self._draw(resampler, flips)

    def _same(self, a: int, b: int) -> bool:
        return self._rows.same(a, b)

    def _mean(self, a: int, b: int, of_a: Vector, of_b: Vector) -> Mean:
        parts = []
        for k, witness in ((a, of_a), (b, of_b)):
            v = self._rows.models[k].prediction[self._rows.mask]
            if k not in self._places:
                self._places[k] = validate.positions(self._units[k].prediction, v)
            error = self._rows.label[self._rows.mask] - v
            parts.append(error * witness[self._places[k]])
        return self._rows.mean(parts[0] - parts[1])


class IndependentNorms(_Signs):
    """Samples that are independent of each other: each has signs of its own."""

    def __init__(self, units: Sequence[Units], measure: Measure[Any], resampler: Resampler) -> None:
        super().__init__(measure, units)
        self._draw(resampler, lambda rng: [part.flip(rng) for part in units])

    def _same(self, a: int, b: int) -> bool:
        return a == b

    def _mean(self, a: int, b: int, of_a: Vector, of_b: Vector) -> Mean:
        return independent_mean((self._units[a], self._units[b]), (of_a, of_b))


def independent_mean(samples: tuple[Units, Units], witnesses: tuple[Vector, Vector]) -> Mean:
    """Return the difference of the means of e w(v) of samples, w being given on their supports."""
    one, other = (
        unit_mean(units, units.error * witness[units.place])
        for units, witness in zip(samples, witnesses, strict=True)
    )
    return one.minus(other)


def unit_mean(units: Units, value: Vector) -> Mean:
    """Return the mean of a value of each unit."""
    largest_share = float(np.abs(units.share * value).max())
    if units.heaviest is not None:
        largest_share = units.heaviest * float(np.abs(value).max())
    if units.cluster is not None:
        largest_share = float(np.abs(units.cluster_sums(units.share * value)).max())
    return Mean(dot(units.mass, value), units.standard_error(value), largest_share)


class Means:
    """Differences of a measure that is the mean of a loss, between 0 and 1."""

    def __init__(
        self, loss: Callable[[Vector, Vector], Vector], rows: PairedRows | Sequence[Units]
    ) -> None:
        self._rows = rows
        self._losses: list[Vector] = []
        self._alone: list[Mean] = []
        if isinstance(rows, PairedRows):
            label = rows.label[rows.mask].astype(np.float64)
            self._losses = [loss(label, model.prediction[rows.mask]) for model in rows.models]
            self._alone = [rows.mean(values) for values in self._losses]
        else:
            for units in rows:
                label = units.label.astype(np.float64)
                self._losses.append(loss(label, units.prediction[units.place]))
                self._alone.append(unit_mean(units, self._losses[-1]))
        self.values = [mean.value for mean in self._alone]

    def _difference(self, a: int, b: int) -> Mean:
        if isinstance(self._rows, PairedRows):
            return self._rows.mean(self._losses[a] - self._losses[b])
        return self._alone[a].minus(self._alone[b])

    def ends(self, a: int, b: int, delta: float) -> tuple[float, float]:
        """Return the ends of the interval, which fails with probability δ."""
        difference = self.values[a] - self.values[b]
        margin = self._difference(a, b).margin(delta / 2)
        return max(difference - margin, -1.0), min(difference + margin, 1.0)

    def pvalue(self, a: int, b: int, closer: float = 0.0) -> float:
        """Return the least δ with 0 outside the interval; above 1 where there is none."""
        size = abs(self.values[a] - self.values[b]) - closer
        mean = self._difference(a, b)
        if size <= mean.margin(0.5):
            return math.inf
        inside, outside = math.log(LEAST), 0.0
        while outside - inside > 1e-12:
            middle = (inside + outside) / 2
            if size <= mean.margin(math.exp(middle) / 2):
                inside = middle
            else:
                outside = middle
        return math.exp(outside)
