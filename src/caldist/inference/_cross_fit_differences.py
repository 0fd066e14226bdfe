r"""Differences between models by splitting: no replicates, so that many rows cost a few passes.

In the notation of ``_differences``: for every function w of the family, found on other rows,
Ta0 ≥ ⟨w, ca0⟩, and Tb0 = ⟨wb0, cb0⟩ ≤ Tb - ⟨wb0, hb⟩. So with x the rows' values of e_a w(v_a),
each by functions that the row had no part in,

    Ta0 - Tb0 ≥ mean(x - e_b wb0(v_b)) - z · its standard error

where the mean is mean(x) - Tb once the sample's witness stands for the population's. Both models
share the rows, so what they have in common is in neither. Where the witness is not to be trusted,
because b is nearly calibrated, the error is at most that of x and the largest one of any function.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from caldist._util.types import Vector
from caldist.data import validate
from caldist.inference.cells import cells_of
from caldist.inference.cross_fit import split_values
from caldist.inference.differences import (
    LEAST,
    PARTS,
    Mean,
    Norms,
    PairedRows,
    independent_mean,
    unit_mean,
)
from caldist.inference.folds import FOLDS, Folds, deal
from caldist.inference.resampling import Resampler
from caldist.inference.sample import Units
from caldist.measures.base import Measure

_FAMILY = 60  # the random stream of the folds
_DEALINGS = 2
_CLEAR = 2.0  # standard errors by which a witness must stand out of the mean of the noise


class _Splits(Norms):
    """Differences by means over rows of what functions found on other rows make of them."""

    def __init__(self, measure: Measure[Any], units: Sequence[Units]) -> None:
        super().__init__(measure, units)
        self._found: dict[tuple[int, int], list[Mean]] = {}
        self._functions: dict[int, list[Vector] | None] = {}
        self._rates: dict[int, Vector] = {}

    @abstractmethod
    def _means(self, a: int, b: int) -> list[Mean]:
        """Return means of which the least limit is the lower limit of Ta0 - Tb0."""

    def _lower(self, a: int, b: int, delta: float) -> float:
        if (a, b) not in self._found:  # ends and p-value ask for the same
            self._found[a, b] = self._means(a, b)
        return min(mean.value - mean.margin(delta) for mean in self._found[a, b])

    def ends(self, a: int, b: int, delta: float) -> tuple[float, float]:
        """Return the ends of the interval, which fails with probability δ."""
        difference, most = self.values[a] - self.values[b], self._most(a, b, delta)
        low = min(self._lower(a, b, delta / PARTS), difference)
        high = max(-self._lower(b, a, delta / PARTS), difference)
        return max(low, 0.0 - most), min(high, most)

    def pvalue(self, a: int, b: int, closer: float = 0.0) -> float:
        """Return the least δ with 0 outside the interval; above 1 where there is none."""
        larger, other = (a, b) if self.values[a] > self.values[b] else (b, a)
        low, high = math.log(LEAST), math.log(0.5)
        if self._lower(larger, other, math.exp(high)) <= closer:
            return math.inf
        while high - low > 1e-9:
            middle = (low + high) / 2
            if self._lower(larger, other, math.exp(middle)) > closer:
                high = middle
            else:
                low = middle
        return PARTS * math.exp(high)

    def _witnesses(self, b: int) -> list[Vector] | None:
        """Return what the population's witness may be, at each unit; None for any function."""
        if b not in self._functions:  # all pairs of a model ask for the same
            self._functions[b] = self._candidates(b)
        functions = self._functions[b]
        if functions is None:
            return None
        return [function[self._units[b].place] for function in functions]

    def _candidates(self, b: int) -> list[Vector] | None:
        """Return what the population's witness may be, on the support."""
        units, norm = self._units[b], self._norms[b]
        noise = (norm.noise + _CLEAR * norm.bound) * units.largest_error
        if self.values[b] < noise:  # even its sign may be chance
            return None
        functions = norm.candidates(units.residual, noise)
        if functions is None:
            return None
        # Of a function and its negative the one that shows the residuals.
        return [
            math.copysign(1.0, float((units.residual * function).sum())) * function
            for function in functions
        ]

    def _rate(self, a: int) -> Vector:
        """Return the frequency of label 1 near each prediction of a model."""
        if a not in self._rates:
            self._rates[a] = cells_of(self._units[a]).rate
        return self._rates[a]


def _protected(mean: Mean, units: Units, slope: Vector, rate: Vector) -> Mean:
    """Return a mean whose error is at least that for labels of the frequency nearby.

    ``slope`` is what label 1 adds to the value of each unit, ``rate`` that frequency at each
    prediction. It protects rare labels.
    """
    if not units.draws_labels:
        return mean
    floor = units.label_error(slope, rate)
    return replace(mean, error=max(mean.error, floor))


class PairedSplits(_Splits):
    """Models on the same rows."""

    def __init__(
        self,
        rows: PairedRows,
        measure: Measure[Any],
        resampler: Resampler,
    ) -> None:
        self._rows = rows
        mask = rows.mask
        part, share = rows.part[mask], rows.share[mask]
        label = rows.label[mask].astype(np.int64)
        clustered = rows.models[0].cluster is not None
        super().__init__(
            measure,
            [
                Units(
                    prediction=model.joint.prediction,
                    residual=model.joint.residual(),
                    place=validate.positions(model.joint.prediction, model.prediction[mask]),
                    label=label,
                    count=np.broadcast_to(np.int64(1), label.shape),
                    share=share,
                    mass=share,
                    cluster=part if clustered else None,
                    n_clusters=rows.n_parts if clustered else 0,
                )
                for model in rows.models
            ],
        )
        folds = resampler.stream(_FAMILY).integers(0, FOLDS, (_DEALINGS, rows.n_parts))[:, part]
        self._crossed = [split_values(measure, Folds(units, folds)) for units in self._units]

    def _means(self, a: int, b: int) -> list[Mean]:
        value, slope = self._crossed[a]
        witnesses, units = self._witnesses(b), self._units[b]
        if witnesses is None:
            mean = _protected(self._rows.mean(value), self._units[a], slope, self._rate(a))
            most = self._norms[b].bound * units.largest_error
            return [replace(mean, value=mean.value - self.values[b], error=mean.error + most)]
        return [
            _protected(
                self._rows.mean(value - units.error * w), self._units[a], slope - w, self._rate(a)
            )
            for w in witnesses
        ]

    def _same(self, a: int, b: int) -> bool:
        return self._rows.same(a, b)

    def _mean(self, a: int, b: int, of_a: Vector, of_b: Vector) -> Mean:
        first, second = (
            units.error * witness[units.place]
            for units, witness in ((self._units[a], of_a), (self._units[b], of_b))
        )
        return self._rows.mean(first - second)


class IndependentSplits(_Splits):
    """Samples that are independent of each other."""

    def __init__(self, units: Sequence[Units], measure: Measure[Any], resampler: Resampler) -> None:
        super().__init__(measure, units)
        self._alone = []
        for at, part in enumerate(units):
            folds = deal(part, resampler.stream(_FAMILY + at), _DEALINGS)
            value, slope = split_values(measure, folds)
            mean, rate = unit_mean(folds.units, value), cells_of(folds.units).rate
            self._alone.append(_protected(mean, folds.units, slope, rate))

    def _means(self, a: int, b: int) -> list[Mean]:
        witnesses, units = self._witnesses(b), self._units[b]
        if witnesses is None:
            bound = self._norms[b].bound
            most = Mean(self.values[b], bound * units.largest_error, bound * units.largest_share)
            return [self._alone[a].minus(most)]
        return [
            self._alone[a].minus(
                _protected(unit_mean(units, units.error * w), units, w, self._rate(b))
            )
            for w in witnesses
        ]

    def _same(self, a: int, b: int) -> bool:
        return a == b

    def _mean(self, a: int, b: int, of_a: Vector, of_b: Vector) -> Mean:
        return independent_mean((self._units[a], self._units[b]), (of_a, of_b))
