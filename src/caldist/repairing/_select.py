r"""Which map: the simplest whose out-of-fold loss is within half a standard error of the least.

Without a margin small samples are over-fitted, and calibrated models "repaired"; with a whole
standard error few rows keep the identity for too long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from caldist._util.types import Integers, Vector
from caldist.data.units import Units
from caldist.inference._dealing import FOLDS, Dealt, deal_evenly
from caldist.repairing._fits import CELLS, Candidate, Counts, Fit, fit_all

CANDIDATES = (
    *map(Candidate, ("identity", "shift", "temperature", "sigmoid", "soft", "beta")),
    *(Candidate(base, slack) for slack in (1.2, 1.5, 2.0, 3.0, 6.0) for base in ("soft", "beta")),
    Candidate("soft", math.inf),
)
"""Simplest first."""

SOFT = Candidate("soft")
FEW = 200  # rows, below which nothing is selected
_FOLD_CELLS = 1_024  # of fits that are only compared
_MARGIN = 0.5  # standard errors
_CERTAIN = 1e-12  # a prediction's distance from 0 and 1, so that losses can be compared


@dataclass(frozen=True)
class CandidateLoss:
    """How a candidate did out of folds.

    Attributes
    ----------
    log_loss
        Its mean log loss on rows that had no part in the fit, in nats; predictions of exactly 0 and
        1 count as 1e-12 away from them.
    excess
        By how much that is above the least of all candidates.
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


def fit_method(units: Units, candidates: Sequence[Candidate], rng: np.random.Generator) -> Chosen:
    """Choose among candidates, if there are several, and fit to all rows."""
    counts = Counts.of(units)
    cell = counts.cells(CELLS)
    merged = counts.merged(cell)
    losses: dict[str, CandidateLoss] = {}
    chosen = candidates[0]
    if len(candidates) > 1:
        if units.n_rows < FEW or not counts.has_both:
            chosen = SOFT
        else:
            chosen, losses = _selected(units, cell, merged.prediction, candidates, rng)
    return Chosen(fit_all(merged, [chosen])[0], losses)


def _selected(
    units: Units,
    cell: Integers,
    prediction: Vector,
    candidates: Sequence[Candidate],
    rng: np.random.Generator,
) -> tuple[Candidate, dict[str, CandidateLoss]]:
    dealt = deal_evenly(units, rng)
    losses = _Losses(dealt, cell, prediction)
    for fold in range(FOLDS):
        counts = losses.outside(fold)
        fits = fit_all(counts.merged(counts.cells(_FOLD_CELLS)), candidates)
        losses.add([fit(prediction) for fit in fits])
    mean = losses.means()
    best = int(np.argmin(mean))
    excess = [losses.excess(at, best) for at in range(len(candidates))]
    first = next(at for at, (more, error) in enumerate(excess) if more <= _MARGIN * error)
    return candidates[first], {
        candidate.name: CandidateLoss(float(mean[at]), *excess[at])
        for at, candidate in enumerate(candidates)
    }


class _Losses:
    """The losses of candidates, which depend on a row's fold, label and cell alone."""

    def __init__(self, dealt: Dealt, cell: Integers, prediction: Vector) -> None:
        self._units = dealt.units
        self._prediction = prediction
        shape = (FOLDS, 2, prediction.size)
        units, fold = dealt.units, dealt.fold[0]
        self._place = (fold * 2 + units.label) * prediction.size + cell[units.place]
        size = math.prod(shape)
        self._mass = np.bincount(self._place, units.mass, size).reshape(shape)
        squares = np.bincount(self._place, units.count * units.share**2, size)
        self._squares = squares.reshape(shape)
        self._rows = 1 / float(squares.sum())
        self._found: list[Vector] = []  # of each fold: candidates, labels, cells

    def outside(self, fold: int) -> Counts:
        """Return the rows of the other folds."""
        mass = (self._mass.sum(axis=0) - self._mass[fold]) * self._rows
        # What is left of a difference of sums is not there.
        mass = np.where(self._mass[np.arange(FOLDS) != fold].any(axis=0), mass, 0.0)
        return Counts(self._prediction, np.maximum(mass[0], 0), np.maximum(mass[1], 0)).there()

    def add(self, predictions: Sequence[Vector]) -> None:
        """Keep what fits to the other rows say of the next fold."""
        p = np.clip(np.array(predictions), _CERTAIN, 1 - _CERTAIN)
        self._found.append(np.stack((-np.log1p(-p), -np.log(p)), axis=1))

    def _loss(self, candidate: int) -> Vector:
        return np.array([fold[candidate] for fold in self._found])

    def means(self) -> Vector:
        """Return the mean loss of each candidate."""
        count = self._found[0].shape[0]
        return np.array([float((self._mass * self._loss(at)).sum()) for at in range(count)])

    def excess(self, candidate: int, best: int) -> tuple[float, float]:
        """Return by how much a candidate's loss is above another's, and the standard error."""
        difference = self._loss(candidate) - self._loss(best)
        mean = float((self._mass * difference).sum())
        if self._units.cluster is None:
            return mean, math.sqrt(float((self._squares * (difference - mean) ** 2).sum()))
        of_rows = difference.reshape(-1)[self._place]
        return mean, self._units.standard_error(of_rows)
