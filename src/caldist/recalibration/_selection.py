r"""Which map: the simplest whose out-of-fold loss is within half a standard error of the least.

Without a margin small samples are over-fitted, and calibrated models recalibrated; with a whole
standard error few rows keep the identity for too long.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from caldist._util.cached import cached_property
from caldist._util.results import Result
from caldist._util.types import Integers, Vector
from caldist.inference.folds import FOLDS, Folds, deal_evenly
from caldist.inference.sample import Units
from caldist.recalibration._fits import CELLS, COMPARED, Candidate, Counts, Fit, fit_all

CANDIDATES = (
    *map(Candidate, ("identity", "shift", "temperature", "sigmoid", "soft", "beta")),
    *(Candidate(base, slack) for slack in (1.2, 1.5, 2.0, 3.0, 6.0) for base in ("soft", "beta")),
    Candidate("soft", math.inf),
)
"""Simplest first."""

SOFT = Candidate("soft")
FEW = 75  # rows, below which nothing is selected
_FOLD_CELLS = 1_024  # of fits that are only compared
_MARGIN = 0.5  # standard errors
_CERTAIN = 1e-12  # a prediction's distance from 0 and 1, so that losses can be compared


@dataclass(frozen=True)
class CandidateLoss(Result):
    """The cross-validated loss of a candidate.

    Attributes
    ----------
    log_loss
        Its mean log loss on rows that had no part in the fit, in nats; predictions of exactly 0 and
        1 count as 1e-12 away from them.
    excess
        By how much it is above the least of all candidates.
    standard_error
        Of the excess.
    """

    log_loss: float
    excess: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class Chosen:
    """A fitted map, and what others would have been."""

    fit: Fit
    candidates: dict[str, CandidateLoss]


class Selection:
    """Candidates, fitted to all rows or to those outside a fold, the best of them by other folds.

    Rows are dealt into folds once. Those outside a fold are compared on the four other folds, so a
    fit to what is outside two folds serves both of them.
    """

    def __init__(
        self, units: Units, candidates: Sequence[Candidate], rng: np.random.Generator
    ) -> None:
        counts = Counts.of(units)
        self._all, self._candidates, self._rng = units, candidates, rng
        self._cell = counts.cells(CELLS)
        self._merged = counts.merged(self._cell)
        self._mapped: dict[frozenset[int], Vector] = {}

    def chosen(self, without: int | None = None) -> Chosen | None:
        """Choose among the candidates, if there are several, and fit to the rows outside a fold.

        None where no rows are.
        """
        counts, rows = self._merged, self._all.n_rows
        if without is not None:
            inside = self.folds.fold[0] != without
            counts, rows = self._outside({without}), int(self.folds.units.count[inside].sum())
        if counts.prediction.size == 0:
            return None
        losses: dict[str, CandidateLoss] = {}
        chosen = self._candidates[0]
        if len(self._candidates) > 1:
            if rows < FEW or not counts.has_both or self._folds(without).size < 2:
                chosen = SOFT
            else:
                chosen, losses = self._compared(without)
        return Chosen(fit_all(counts, [chosen])[0], losses)

    @cached_property
    def folds(self) -> Folds:
        """The rows in folds."""
        return deal_evenly(self._all, self._rng)

    @cached_property
    def _place(self) -> Integers:
        """Where each unit is in an array of folds, labels and cells."""
        units, cells = self.folds.units, self._merged.prediction.size
        return np.asarray((self.folds.fold[0] * 2 + units.label) * cells + self._cell[units.place])

    def _sums(self, values: Vector) -> Vector:
        """Return the sum of one value for each unit over folds, labels and cells."""
        shape = (FOLDS, 2, self._merged.prediction.size)
        found = np.bincount(self._place, values, math.prod(shape))
        return found.astype(np.float64).reshape(shape)

    @cached_property
    def _mass(self) -> Vector:
        return self._sums(self.folds.units.mass)

    @cached_property
    def _squares(self) -> Vector:
        return self._sums(self.folds.units.count * self.folds.units.share**2)

    def _outside(self, folds: Collection[int]) -> Counts:
        """Return the rows that are in no such fold."""
        others = [fold for fold in range(FOLDS) if fold not in folds]
        zeros, ones = self._mass[others].sum(axis=0) / self._squares.sum()
        return Counts(self._merged.prediction, zeros, ones).there()

    def _predictions(self, folds: frozenset[int]) -> Vector:
        """Return what candidates that were fitted outside folds say of each cell."""
        if folds not in self._mapped:
            counts = self._outside(folds)
            fits = fit_all(counts.merged(counts.cells(_FOLD_CELLS)), self._candidates, COMPARED)
            p = np.array([fit(self._merged.prediction) for fit in fits])
            self._mapped[folds] = np.clip(p, _CERTAIN, 1 - _CERTAIN)
        return self._mapped[folds]

    def _folds(self, without: int | None) -> Integers:
        """Return the other folds that have rows; where clusters are few, some have none."""
        return np.array(
            [k for k in np.flatnonzero(self._mass.any(axis=(1, 2))) if k != without], dtype=np.int64
        )

    def _compared(self, without: int | None) -> tuple[Candidate, dict[str, CandidateLoss]]:
        """Return the candidate to take, and how all did."""
        folds = self._folds(without)
        away = set() if without is None else {without}
        place, found = [], []
        for fold in folds:
            label, cell = np.nonzero(self._mass[fold])
            p = self._predictions(frozenset({int(fold), *away}))[:, cell]
            found.append(-np.log(np.where(label == 1, p, 1 - p)))
            place.append((fold * 2 + label) * self._merged.prediction.size + cell)
        loss, at = np.concatenate(found, axis=1), np.concatenate(place)
        total = float(self._mass[folds].sum())
        mass = self._mass.reshape(-1)[at] / total
        mean = (loss * mass).sum(axis=1)
        best = int(np.argmin(mean))
        excess = [self._excess(own - loss[best], at, mass, total) for own in loss]
        first = next(i for i, (more, error) in enumerate(excess) if more <= _MARGIN * error)
        return self._candidates[first], {
            candidate.name: CandidateLoss(float(mean[i]), *excess[i])
            for i, candidate in enumerate(self._candidates)
        }

    def _excess(
        self, difference: Vector, at: Integers, mass: Vector, total: float
    ) -> tuple[float, float]:
        """Return the mean of a difference of losses, and its standard error."""
        mean = float((mass * difference).sum())
        if self._all.cluster is None:
            squares = self._squares.reshape(-1)[at]
            return mean, math.sqrt(float((squares * (difference - mean) ** 2).sum())) / total
        everywhere = np.full(self._mass.size, mean)
        everywhere[at] = difference
        # Rows of other folds are at the mean, and so add nothing.
        return mean, self.folds.units.standard_error(everywhere[self._place]) / total
