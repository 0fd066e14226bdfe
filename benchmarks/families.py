"""The data that are timed: families of labels and predictions, easy and hard.

A family makes n rows from a seed of its own, so the same name and n always give the same rows.
All rows come in random order. Labels are int64 and predictions float64, as users have them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """Rows to measure."""

    y_true: NDArray[np.int64]
    y_prob: Vector
    sample_weight: Vector | None = None


@dataclass(frozen=True)
class Family:
    """A recipe for rows; ``only`` names the measures it is for, unless it is for all of them."""

    name: str
    recipe: Callable[[int, np.random.Generator], Sample]
    only: tuple[str, ...] = ()
    weighted: bool = False

    def make(self, n: int) -> Sample:
        """Return n rows, the same ones each time."""
        return self.recipe(n, np.random.default_rng([n, zlib.crc32(self.name.encode())]))


def _draw(probability: Vector, y_prob: Vector, rng: np.random.Generator) -> Sample:
    """Draw each label with the probability given."""
    return Sample((rng.random(y_prob.size) < probability).astype(np.int64), y_prob)


def _beta(exponent: float) -> Callable[[int, np.random.Generator], Sample]:
    """Return D_β: too confident for β > 1, too timid for β < 1, calibrated for β = 1."""

    def recipe(n: int, rng: np.random.Generator) -> Sample:
        frequency = rng.random(n)
        for_one, for_zero = frequency**exponent, (1 - frequency) ** exponent
        return _draw(frequency, for_one / (for_one + for_zero), rng)

    return recipe


def _calibrated(n: int, rng: np.random.Generator) -> Sample:
    y_prob = rng.beta(0.3, 0.3, n)
    return _draw(y_prob, y_prob, rng)


def _one_sided(n: int, rng: np.random.Generator) -> Sample:
    y_prob = rng.random(n)
    return _draw(y_prob / 2, y_prob, rng)


def _oscillating(n: int, rng: np.random.Generator) -> Sample:
    y_prob = rng.random(n)
    return _draw(y_prob + 0.6 * np.sin(40 * y_prob) * y_prob * (1 - y_prob), y_prob, rng)


def _narrow(n: int, rng: np.random.Generator) -> Sample:
    y_prob = 0.5 + 1e-2 * (rng.random(n) - 0.5)
    return _draw(y_prob, y_prob, rng)


def _clusters(n: int, rng: np.random.Generator) -> Sample:
    centre = rng.random(max(1, round(n**0.5)))
    y_prob = np.clip(rng.choice(centre, n) + 1e-6 * (rng.random(n) - 0.5), 0, 1)
    return _draw(y_prob, y_prob, rng)


def _tied(n: int, rng: np.random.Generator) -> Sample:
    y_prob = np.round(rng.random(n), 2)
    return _draw(y_prob, y_prob, rng)


def _following(rising: NDArray[np.bool_], y_prob: Vector, rng: np.random.Generator) -> Sample:
    """Label sorted predictions so that the prefix sums of the residuals rise where asked, or fall.

    One step in ten goes against the direction, which makes the path rough as well.
    """
    step = 0.9 * np.where(rising, 1 - y_prob, -y_prob)
    ones = np.floor(np.cumsum(step) + np.cumsum(y_prob) + 0.5)
    y_true = np.diff(ones, prepend=0.0).astype(np.int64)
    order = rng.permutation(y_prob.size)
    return Sample(y_true[order], y_prob[order])


def _sawtooth(n: int, rng: np.random.Generator) -> Sample:
    """Return prefix sums that climb in ever longer teeth: they fall deep into a priority queue."""
    y_prob = np.sort(0.5 + 1e-2 * (rng.random(n) - 0.5))
    # Teeth of 16, 26, 36, ... rows; 5k² + 11k rows in the first k of them.
    row = np.arange(n)
    tooth = np.floor((np.sqrt(121 + 20 * row) - 11) / 10)
    within = row - (5 * tooth**2 + 11 * tooth)
    return _following(within < 0.7 * (16 + 10 * tooth), y_prob, rng)


def _zigzag(n: int, rng: np.random.Generator) -> Sample:
    """Return prefix sums that swing between the same heights: old groupings stay rivals."""
    y_prob = np.sort(0.5 + 1e-3 * (rng.random(n) - 0.5))
    period = max(2, round(3 * n**0.5))
    return _following(np.arange(n) % period < period / 2, y_prob, rng)


def _scattered(n: int, rng: np.random.Generator) -> Sample:
    """Return weights that make the prefix sums of the residuals jump about at random."""
    y_prob = np.sort(0.5 + 1e-5 * (rng.random(n) - 0.5))
    jump = np.diff(rng.permutation(n) + 0.5, prepend=0.0)
    order = rng.permutation(n)
    return Sample((jump > 0).astype(np.int64)[order], y_prob[order], np.abs(jump)[order])


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("beta=0.3", _beta(0.3)),
        Family("beta=1", _beta(1)),
        Family("beta=3", _beta(3)),
        Family("beta=0.1", _beta(0.1), only=("lower_distance", "upper_distance")),
        Family("beta=10", _beta(10), only=("lower_distance", "upper_distance")),
        Family("calibrated", _calibrated),
        Family("one-sided", _one_sided),
        Family("oscillating", _oscillating),
        Family("narrow", _narrow),
        Family("clusters", _clusters),
        Family("tied", _tied),
        Family("sawtooth", _sawtooth),
        Family("zigzag", _zigzag),
        Family("scattered", _scattered, only=("interval_ce",), weighted=True),
    )
}
