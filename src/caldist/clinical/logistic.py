"""Cox's line: the log odds of the label as a line of the log odds of the prediction.

Notation: ℓ = logit v, π = 1/(1 + exp(−a − bℓ)), shares that add up to 1. A prediction of 0 with
label 0, and of 1 with label 1, has likelihood 1 on every line with b > 0: such rows drop out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caldist._util.products import dot, gram
from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.errors import InvalidInput
from caldist.inference.sample import Units

_STEPS = 200  # of Newton's method, which needs about ten
_CONVERGED = 1e-14
_PART = 1 << 16  # predictions that are looked at together


def sigmoid(x: Vector) -> Vector:
    """Return 1/(1 + exp(−x)) without overflow; 0 and 1 at the infinities."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1 + small))


def logit(v: Vector) -> Vector:
    """Return the log odds; infinite at 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(v) - np.log1p(-v))


@dataclass(frozen=True, eq=False)
class Counts:
    """The shares of label 0 and label 1 at each log odds that is finite, increasing."""

    log_odds: Vector
    share0: Vector
    share1: Vector

    @classmethod
    def of(cls, joint: Joint) -> Counts:
        """Leave out predictions of 0 and 1 that came true, and refuse those that did not."""
        v, total = joint.prediction, joint.total
        for value, mass, label in ((0.0, joint.mass1, 1), (1.0, joint.mass0, 0)):
            if (mass[v == value] > 0).any():
                raise InvalidInput(
                    argument="y_prob",
                    reason=f"is exactly {value:g} in a row of label {label}: its log odds are "
                    "infinite, so that no intercept and no slope explain it",
                    remedy="Leave such rows out, or move predictions off 0 and 1 yourself, for "
                    "example with numpy.clip(y_prob, 1e-6, 1 - 1e-6).",
                )
        keep = (v > 0) & (v < 1) & (joint.mass0 + joint.mass1 > 0)
        counts = cls(logit(v[keep]), joint.mass0[keep] / total, joint.mass1[keep] / total)
        counts._check()
        return counts

    def _check(self) -> None:
        """Raise where the likelihood has no maximum."""
        for label, share in ((1, self.share1), (0, self.share0)):
            if not share.any():
                raise InvalidInput(
                    argument="y_true",
                    reason=f"has no row of label {label} with a prediction strictly between 0 and "
                    "1: the calibration intercept would be infinite",
                    remedy="Both labels are needed.",
                )
        if self.log_odds[0] == self.log_odds[-1]:  # to the last digit, if not the predictions
            raise InvalidInput(
                argument="y_prob",
                reason="has the same value in every row, but a calibration slope needs two "
                "different predictions",
                remedy="Compare the mean of y_true with it instead.",
            )
        zeros, ones = (self.log_odds[share > 0] for share in (self.share0, self.share1))
        for low, high, direction in ((zeros, ones, "above"), (ones, zeros, "below")):
            if low[-1] <= high[0]:
                raise InvalidInput(
                    argument="y_prob",
                    reason=f"separates the labels: every row of label 1 is predicted {direction}, "
                    "or level with, every row of label 0, so that the calibration slope would be "
                    "infinite",
                    remedy="More rows are needed.",
                )

    def in_the_large(self) -> float:
        """Return a of the line with b = 1: the offset that makes the mean right."""
        share, wanted = self.share0 + self.share1, float(self.share1.sum())
        middle = math.log(wanted / float(self.share0.sum()))
        low, high = middle - float(self.log_odds[-1]), middle - float(self.log_odds[0])
        a = (low + high) / 2
        for _ in range(_STEPS):
            excess, lean = -wanted, 0.0
            for part in _parts(share.size):
                fitted = sigmoid(a + self.log_odds[part])
                excess += dot(share[part], fitted)
                lean += dot(share[part], fitted * (1 - fitted))
            low, high = (low, a) if excess > 0 else (a, high)
            new = a - excess / lean if lean > 0 else math.nan
            if not low <= new <= high:
                new = (low + high) / 2
            if abs(new - a) <= _CONVERGED * (1 + abs(a)):
                return float(new)
            a = new
        return float(a)

    def line(self) -> tuple[float, float]:
        """Return a and b of the line of largest likelihood."""
        share = self.share0 + self.share1
        total = float(share.sum())
        centre = dot(share, self.log_odds) / total
        square = sum(
            dot(share[part], (self.log_odds[part] - centre) ** 2) for part in _parts(share.size)
        )
        scale = math.sqrt(square / total)
        rate = float(self.share1.sum()) / total
        scaled = _Scaled(self, centre, scale)
        theta = np.array([math.log(rate / (1 - rate)), 0.0])
        best = scaled.likelihood(theta)
        for _ in range(_STEPS):
            step = scaled.step(theta)
            size, found = 1.0, -math.inf
            while size > _CONVERGED:  # half steps, where a whole one overshoots
                found = scaled.likelihood(theta + size * step)
                if found >= best - 1e-15 * abs(best):
                    break
                size /= 2
            theta = theta + size * step
            best = max(best, found)
            if np.abs(size * step).max() < _CONVERGED * (1 + np.abs(theta).max()):
                break
        slope = float(theta[1]) / scale
        return float(theta[0]) - slope * centre, slope

    def gain(self, intercept: float, slope: float) -> float:
        """Return by how much the line's mean log likelihood exceeds that of the predictions."""
        as_it_is = _Scaled(self, 0.0, 1.0)
        return as_it_is.likelihood(np.array([intercept, slope])) - as_it_is.likelihood(
            np.array([0.0, 1.0])
        )


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Counts at x = (ℓ − centre)/scale, some at a time: what is made of all would fill memory."""

    counts: Counts
    centre: float
    scale: float

    def _each(self) -> Iterator[tuple[Vector, Vector, Vector]]:
        counts = self.counts
        for part in _parts(counts.log_odds.size):
            x = (counts.log_odds[part] - self.centre) / self.scale
            yield x, counts.share0[part], counts.share1[part]

    def step(self, theta: Vector) -> Vector:
        """Return Newton's step towards the largest likelihood, from a and b."""
        gradient, moments = np.zeros(2), np.zeros((2, 2))
        for x, share0, share1 in self._each():
            share, fitted = share0 + share1, sigmoid(theta[0] + theta[1] * x)
            missed = share1 - share * fitted
            gradient += missed.sum(), dot(missed, x)
            moments += _moments(share * fitted * (1 - fitted), x)
        return np.asarray(np.linalg.solve(moments, gradient))

    def likelihood(self, theta: Vector) -> float:
        """Return the mean log likelihood of a and b."""
        found = 0.0
        for x, share0, share1 in self._each():
            eta = theta[0] + theta[1] * x
            both = np.log1p(np.exp(-np.abs(eta)))
            found -= dot(share1, both + np.maximum(-eta, 0.0))
            found -= dot(share0, both + np.maximum(eta, 0.0))
        return found


def _parts(size: int) -> list[slice]:
    return [slice(first, first + _PART) for first in range(0, size, _PART)]


def _moments(weight: Vector, x: Vector) -> NDArray[np.float64]:
    cross = dot(weight, x)
    return np.array([[float(weight.sum()), cross], [cross, dot(weight, x**2)]])


def variance_of_line(
    units: Units, log_odds: Vector, intercept: float, slope: float | None
) -> float:
    """Return the variance of the slope, whatever the true curve is: a sandwich.

    ``log_odds`` are those of the support. Without a slope it is that of the intercept with b = 1.
    """
    size = 1 if slope is None else 2
    bread, meat = np.zeros((size, size)), np.zeros((size, size))
    centre, scale = _centre_and_scale(units, log_odds)
    for part in units.parts():
        x, error, fitted = _unit_scores(
            part, log_odds, intercept, 1.0 if slope is None else slope, centre, scale
        )
        x = x[:size]
        bread += gram(x * (part.mass * fitted * (1 - fitted)), x)
        meat += score_covariance(part, x * error)
    inverse = np.linalg.inv(bread)
    return float((inverse @ meat @ inverse)[-1, -1]) / (1.0 if slope is None else scale**2)


def score_test(units: Units, log_odds: Vector) -> float:
    """Return the score statistic of a = 0 and b = 1, with two degrees of freedom.

    Its covariance is that of independent labels drawn from the predictions; with clusters it is
    estimated from the sums over each.
    """
    x, error, fitted = _unit_scores(units, log_odds, 0.0, 1.0, *_centre_and_scale(units, log_odds))
    score = (x * error) @ units.mass
    if units.cluster is None:
        covariance = gram(x * (units.count * units.share**2 * fitted * (1 - fitted)), x)
    else:
        covariance = score_covariance(units, x * error)
    return float(score @ np.linalg.solve(covariance, score))


def _centre_and_scale(units: Units, log_odds: Vector) -> tuple[float, float]:
    """Return mean and standard deviation of the log odds that are finite.

    In (ℓ − mean)/deviation sums of squares stay regular, however close predictions lie.
    """
    share = units.at_predictions(units.mass)
    finite = np.isfinite(log_odds)
    share, log_odds = share[finite], log_odds[finite]
    total = float(share.sum())
    centre = dot(share, log_odds) / total
    return centre, math.sqrt(dot(share, (log_odds - centre) ** 2) / total)


def _unit_scores(
    units: Units, log_odds: Vector, intercept: float, slope: float, centre: float, scale: float
) -> tuple[NDArray[np.float64], Vector, Vector]:
    """Return (1, (ℓ − centre)/scale) of each unit, its residual y − π, and π.

    All are zero where ℓ is infinite.
    """
    at = log_odds[units.place]
    finite = np.isfinite(at)
    at = np.where(finite, at, 0.0)
    fitted = np.where(finite, sigmoid(intercept + slope * at), 0.0)
    error = np.where(finite, units.label - fitted, 0.0)
    x = np.where(finite, (at - centre) / scale, 0.0)
    return np.stack((np.ones_like(at), x)), error, fitted


def score_covariance(units: Units, score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance of the sum of scores of rows, a column for each unit."""
    if units.cluster is None:
        return np.asarray(gram(score * (units.count * units.share**2), score))
    sums = np.stack([units.cluster_sums(units.share * row) for row in score])
    return np.asarray(sums @ sums.T)
