r"""Differences between models on the same rows: interval ends and p-values for any pair of them.

Notation: c the residual masses of a model, T = ‖c‖ its measure, c0 and T0 those of the population,
w0 the witness of c0, h = c - c0. For two models a and b on the same rows

    (Ta - Ta0) - (Tb - Tb0) ≤ ‖ha‖ - ⟨wb0, hb⟩,

because a norm obeys the triangle inequality and Tb ≥ ⟨wb0, cb⟩ = Tb0 + ⟨wb0, hb⟩. Random signs,
one for each row and shared by all models, give the law of the right side, also where a model is
calibrated and Ta itself is far from normal. Besides, |Ta0 - Tb0| ≤ ‖ca0 - cb0‖, whose upper end is
that of a mean: close models have a short interval, whatever their common error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist.inference._limits import FLIPS, normal_quantile, warn_if_few
from caldist.inference._norms import make_norm
from caldist.inference._resampling import (
    Resampler,
    Sample,
    group_codes,
    order_statistic,
    random_bits,
)

__all__ = ["PARTS", "Differences", "LossDifferences", "NormDifferences", "PairedRows"]

Vector = NDArray[np.float64]

# Each end, and the bound on the size of the difference, may fail with a third of the total.
PARTS = 3
_LEAST = 1e-300  # below which no p-value is looked for


class PairedRows:
    """Labels with the predictions of several models, and means over them.

    ``part`` numbers the independent parts: the rows, or the clusters of rows.
    """

    def __init__(
        self,
        label: NDArray[np.uint8],
        predictions: Sequence[Vector],
        weight: Vector | None,
        part: NDArray[np.int64] | None,
    ) -> None:
        n = label.size
        self.label = label
        self.predictions = predictions
        self.weight = weight
        self.clustered = part is not None
        self.part = np.arange(n) if part is None else part
        self.share = np.full(n, 1 / n) if weight is None else weight / weight.sum()

    @classmethod
    def from_arrays(
        cls,
        y_true: ArrayLike,
        named: Mapping[str, ArrayLike],
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> PairedRows:
        """Check what users pass; ``named`` has the predictions by the names of the arguments."""
        label, predictions = _validate.named_inputs(y_true, named)
        weight = None if sample_weight is None else _validate.weights(sample_weight, label.size)
        part = None if groups is None else group_codes(groups, label.size)[0]
        return cls(label, predictions, weight, part)

    def warn_if_few(self, stacklevel: int) -> None:
        """Warn where there are too few rows of a label, or clusters, to depend on an interval."""
        groups = self.part if self.clustered else None
        sample = Sample.from_arrays(
            self.label, self.predictions[0], sample_weight=self.weight, groups=groups
        )
        warn_if_few(sample, stacklevel + 1)

    def mean(self, value: Vector) -> Mean:
        """Return the mean of a value of each row."""
        mean = float(self.share @ value)
        parts = np.bincount(self.part, self.share * value)
        deviations = np.bincount(self.part, self.share * (value - mean))
        return Mean(mean, math.sqrt(float(deviations @ deviations)), float(np.abs(parts).max()))


@dataclass(frozen=True)
class Mean:
    """A mean with its standard error and the largest absolute contribution of one part to it."""

    value: float
    error: float
    largest: float

    def margin(self, delta: float) -> float:
        """Return how far the expectation lies above, at most, with probability 1 - δ.

        The second term, Bernstein's, makes up for the skewness that rare labels bring.
        """
        return math.log(1 / delta) / 3 * self.largest - normal_quantile(delta) * self.error


class Differences(Protocol):
    """What all pairs of models can be asked."""

    values: list[float]

    def ends(self, a: int, b: int, delta: float) -> tuple[float, float]:
        """Return the ends of the interval, which fails with probability δ."""

    def pvalue(self, a: int, b: int) -> float:
        """Return the least δ with 0 outside the interval; above 1 where there is none."""


class NormDifferences:
    """Differences of a measure that is a norm of the residual masses."""

    def __init__(
        self, rows: PairedRows, measure: str, options: dict[str, Any], resampler: Resampler
    ) -> None:
        self._rows = rows
        self._measure, self._options = measure, options
        self._samples = [
            Sample.from_arrays(rows.label, v, sample_weight=rows.weight, groups=rows.part)
            for v in rows.predictions
        ]
        models = []
        for sample in self._samples:
            norm = make_norm(measure, sample.prediction, **options)
            # Residuals that all vanish have no witness: any function may be the population's.
            witnesses = norm.witnesses(sample.residual) if sample.residual.any() else None
            models.append((sample, norm, witnesses))
        self.values = [norm(sample.residual) for sample, norm, _ in models]
        self._bound = max(norm.bound for _, norm, _ in models)
        n_parts = int(rows.part.max()) + 1

        def replicate(rng: np.random.Generator) -> list[tuple[float, float]]:
            bits = random_bits(rng, n_parts)  # the same for all models
            draw = []
            for sample, norm, witnesses in models:
                masses = sample.flip_groups(bits)
                size = norm(masses)
                draw.append(
                    (size, -size if witnesses is None else float((witnesses @ masses).min()))
                )
            return draw

        draws = resampler.run(replicate, family=FLIPS, size=rows.label.size * len(models))
        self._size, self._along = draws[..., 0], draws[..., 1]

    def ends(self, a: int, b: int, delta: float) -> tuple[float, float]:
        """Return the ends of the interval, which fails with probability δ."""
        level = 1 - delta / PARTS
        difference = self.values[a] - self.values[b]
        down = float(order_statistic(self._excess(a, b), level))
        up = float(order_statistic(self._excess(b, a), level))
        most = min(self._largest_difference(a, b, delta / PARTS), self._bound)
        # The difference itself is inside, however few the replicates.
        low, high = difference - max(down, 0.0), difference + max(up, 0.0)
        return max(low, 0.0 - most), min(high, most)

    def pvalue(self, a: int, b: int) -> float:
        """Return the least δ with 0 outside the interval; above 1 where there is none."""
        difference = self.values[a] - self.values[b]
        if difference == 0:
            return math.inf
        excess = self._excess(a, b) if difference > 0 else self._excess(b, a)
        beyond = int(np.count_nonzero(excess >= abs(difference)))
        return PARTS * (1 + beyond) / (1 + excess.size)

    def _excess(self, a: int, b: int) -> Vector:
        """Return draws of how far the sample's difference can lie above the population's."""
        return np.asarray(self._size[:, a] - self._along[:, b])

    def _largest_difference(self, a: int, b: int, delta: float) -> float:
        """Return the upper end of the interval for ‖ca - cb‖, on the support of both."""
        rows, first, second = self._rows, self._samples[a], self._samples[b]
        if np.array_equal(rows.predictions[a], rows.predictions[b]):
            return 0.0
        support = np.union1d(first.prediction, second.prediction)
        masses = np.zeros(support.size)
        masses[np.searchsorted(support, first.prediction)] += first.residual
        masses[np.searchsorted(support, second.prediction)] -= second.residual
        if not masses.any():  # by chance, and without a witness
            return math.inf
        # Of both signs always the same, so that exchanging the models mirrors the interval.
        masses *= np.sign(masses[np.flatnonzero(masses)[0]])
        norm = make_norm(self._measure, support, **self._options)
        places = [np.searchsorted(support, rows.predictions[k]) for k in (a, b)]
        errors = [rows.label - rows.predictions[k] for k in (a, b)]
        return norm(masses) + max(
            rows.mean(errors[0] * witness[places[0]] - errors[1] * witness[places[1]]).margin(delta)
            for witness in norm.witnesses(masses)
        )


class LossDifferences:
    """Differences of the Brier score, the mean of (y - v)²."""

    def __init__(self, rows: PairedRows) -> None:
        self._rows = rows
        self._losses = [(rows.label - v) ** 2 for v in rows.predictions]
        self.values = [rows.mean(loss).value for loss in self._losses]

    def _difference(self, a: int, b: int) -> Mean:
        return self._rows.mean(self._losses[a] - self._losses[b])

    def ends(self, a: int, b: int, delta: float) -> tuple[float, float]:
        """Return the ends of the interval, which fails with probability δ."""
        difference = self.values[a] - self.values[b]
        margin = self._difference(a, b).margin(delta / 2)
        return max(difference - margin, -1.0), min(difference + margin, 1.0)

    def pvalue(self, a: int, b: int) -> float:
        """Return the least δ with 0 outside the interval; above 1 where there is none."""
        size = abs(self.values[a] - self.values[b])
        mean = self._difference(a, b)
        if size <= mean.margin(0.5):
            return math.inf
        inside, outside = math.log(_LEAST), 0.0
        while outside - inside > 1e-12:
            middle = (inside + outside) / 2
            if size <= mean.margin(math.exp(middle) / 2):
                inside = middle
            else:
                outside = middle
        return math.exp(outside)
