"""The laws that samples are drawn from, with the population that each of them has.

A law maps a uniform number u to a prediction v(u) and to the frequency E[y | u] of label 1. Rows
are independent draws of u, or clusters of rows whose labels are drawn together.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caldist import Joint

__all__ = ["ATOMS", "LAWS", "PAIRS", "Law", "Pair", "Sample", "bump", "shift", "sine", "stream"]

Vector = NDArray[np.float64]
Function = Callable[[Vector], Vector]

ATOMS = 20_000  # of the discretised population
CLUSTER_ROWS = 5
_UNEQUAL = 20.0, 1.5  # the mean size of unequal clusters, and the deviation of its logarithm
_SHARED = 0.5  # of a cluster's rows take their label from the cluster's own random number


@dataclass(frozen=True)
class Sample:
    """Rows of a law; ``y_other`` only where a second model predicts the same labels."""

    y_true: NDArray[np.int64]
    y_prob: Vector
    clusters: NDArray[np.int64] | None
    y_other: Vector | None = None


@dataclass(frozen=True)
class Law:
    """A distribution of predictions and labels.

    Attributes
    ----------
    name
        How tables and files call it.
    text
        What it is.
    prediction, frequency
        v(u) and E[y | u].
    calibrated
        Whether E[y | v] = v.
    clustered
        Whether rows come in clusters with dependent labels.
    unequal
        Whether clusters have log-normal sizes, instead of five rows each.
    """

    name: str
    text: str
    prediction: Function
    frequency: Function
    calibrated: bool = False
    clustered: bool = False
    unequal: bool = False

    def population(self, atoms: int = ATOMS) -> Joint:
        """Return the law at the midpoints of that many equal pieces of u."""
        return population(self.prediction, self.frequency, atoms)

    def events(self, n: int) -> float:
        """Return the expected number of the rarer label among n rows."""
        rate = float(self.frequency(midpoints(ATOMS)).mean())
        return n * min(rate, 1 - rate)

    def draw(self, n: int, rng: np.random.Generator) -> Sample:
        """Draw n rows."""
        u, y_true, clusters = _rows(
            self.frequency, n, rng, clustered=self.clustered, unequal=self.unequal
        )
        return Sample(y_true, self.prediction(u), clusters)


@dataclass(frozen=True)
class Pair:
    """Two models that predict the same labels."""

    name: str
    text: str
    first: Function
    second: Function
    frequency: Function
    clustered: bool = False

    def populations(self, atoms: int = ATOMS) -> tuple[Joint, Joint]:
        """Return the laws of both at the midpoints of that many equal pieces of u."""
        return (
            population(self.first, self.frequency, atoms),
            population(self.second, self.frequency, atoms),
        )

    def events(self, n: int) -> float:
        """Return the expected number of the rarer label among n rows."""
        return Law(self.name, self.text, self.first, self.frequency).events(n)

    def draw(self, n: int, rng: np.random.Generator) -> Sample:
        """Draw n rows."""
        u, y_true, clusters = _rows(self.frequency, n, rng, clustered=self.clustered)
        return Sample(y_true, self.first(u), clusters, self.second(u))


def stream(seed: int, *words: str | int) -> np.random.Generator:
    """Return the random stream of that name: the same whatever else runs, in any order."""
    numbers = [word if isinstance(word, int) else zlib.crc32(word.encode()) for word in words]
    return np.random.default_rng([seed, *numbers])


def midpoints(atoms: int) -> Vector:
    return (np.arange(atoms) + 0.5) / atoms


def population(prediction: Function, frequency: Function, atoms: int) -> Joint:
    """Return the joint distribution of v(u) and y for u at midpoints."""
    u = midpoints(atoms)
    rate = frequency(u)
    return Joint.from_masses(prediction(u), 1 - rate, rate)


def _rows(
    frequency: Function, n: int, rng: np.random.Generator, *, clustered: bool, unequal: bool = False
) -> tuple[Vector, NDArray[np.int64], NDArray[np.int64] | None]:
    u, threshold = rng.random(n), rng.random(n)
    clusters = None
    if clustered:
        clusters = _unequal(n, rng) if unequal else np.arange(n) // CLUSTER_ROWS
        common = rng.random(clusters[-1] + 1)[clusters]
        threshold = np.where(rng.random(n) < _SHARED, common, threshold)
    return u, (threshold < frequency(u)).astype(np.int64), clusters


def _unequal(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    mean, deviation = _UNEQUAL
    size = mean * np.exp(deviation * rng.normal(size=n) - deviation**2 / 2)
    return np.repeat(np.arange(n), np.maximum(1, size.astype(np.int64)))[:n]


# -- functions of u ----------------------------------------------------------------------------


def identity(u: Vector) -> Vector:
    return u


def polarised(u: Vector) -> Vector:
    """Return the quantiles of Beta(0.3, 0.3)."""
    from scipy.special import betaincinv

    return np.asarray(betaincinv(0.3, 0.3, u))


def rare(u: Vector) -> Vector:
    """Return the quantiles of Beta(0.5, 49.5), whose mean is 0.01."""
    from scipy.special import betaincinv

    return np.asarray(betaincinv(0.5, 49.5, u))


def few(u: Vector) -> Vector:
    """Return the quantiles of Beta(0.5, 9.5), whose mean is 0.05."""
    from scipy.special import betaincinv

    return np.asarray(betaincinv(0.5, 9.5, u))


def constant(value: float) -> Function:
    return lambda u: np.full_like(u, value)


def between(low: float, high: float) -> Function:
    """Return predictions spread evenly from ``low`` to ``high``."""
    return lambda u: low + (high - low) * u


def either(low: float, high: float) -> Function:
    """Return one of two predictions, each for half of the rows."""
    return lambda u: np.where(u < 0.5, low, high)


def tied(u: Vector) -> Vector:
    """Return 0.1, 0.3, 0.5, 0.7 or 0.9."""
    return np.floor(5 * u) / 5 + 0.1


def temperature(strength: float) -> Function:
    """Return predictions whose logits are those of u times ``strength``."""
    return lambda u: u**strength / (u**strength + (1 - u) ** strength)


def shift(amount: float) -> Function:
    """Return frequencies whose logits are those of u plus ``amount``."""
    odds = np.exp(amount)
    return lambda u: odds * u / (odds * u + 1 - u)


def bump(height: float) -> Function:
    """Return frequencies that exceed u near 0.6, at most by ``height``, and are u elsewhere."""
    return lambda u: u + height * np.maximum(0.0, 1 - ((u - 0.6) / 0.1) ** 2) ** 2


def sine(amount: float) -> Function:
    """Return frequencies that swing about u three times."""
    return lambda u: u + amount * np.sin(6 * np.pi * u) * 4 * u * (1 - u)


def times(factor: float, function: Function) -> Function:
    return lambda u: np.minimum(factor * function(u), 1.0)


def alternating(u: Vector) -> Vector:
    """Return frequencies 0.06 above and below the tied predictions in turn."""
    return tied(u) + 0.06 * (1 - 2 * (np.floor(5 * u) % 2))


LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law("uniform", "calibrated, v uniform", identity, identity, calibrated=True),
        Law("polarised", "calibrated, v ~ Beta(0.3, 0.3)", polarised, polarised, calibrated=True),
        Law(
            "constant", "calibrated, v = 0.3 for all rows",
            constant(0.3), constant(0.3), calibrated=True,
        ),
        Law("mild", "logits too large by a factor 1.25", temperature(1.25), identity),
        Law("strong", "logits too large by a factor 3", temperature(3.0), identity),
        Law("shift", "logits too small by 0.4", identity, shift(0.4)),
        Law("bump", "too low by up to 0.25 near 0.6, calibrated elsewhere", identity, bump(0.25)),
        Law("ties", "five predictions, 0.06 too low and too high in turn", tied, alternating),
        Law("rare", "calibrated, 1% positives, v ~ Beta(0.5, 49.5)", rare, rare, calibrated=True),
        Law("rare doubled", "1% positives, predictions twice too large", times(2, rare), rare),
        Law(
            "clusters", "calibrated, clusters of five rows with dependent labels",
            identity, identity, calibrated=True, clustered=True,
        ),
        Law(
            "clusters shifted", "clusters of five rows, logits too small by 0.4",
            identity, shift(0.4), clustered=True,
        ),
        Law(
            "rare clusters", "calibrated, v ~ Beta(0.5, 9.5), unequal clusters, about 20 rows each",
            few, few, calibrated=True, clustered=True, unequal=True,
        ),
        Law(
            "unequal clusters", "logits too small by 0.4, unequal clusters, about 20 rows each",
            identity, shift(0.4), clustered=True, unequal=True,
        ),
        # Near one mean label: all rows are in one cell, and its edge is nearer than the noise.
        Law(
            "narrow", "v uniform on 0.465 to 0.535, all labels with frequency 0.535",
            between(0.465, 0.535), constant(0.535),
        ),
        Law(
            "few atoms", "two predictions, 0.27 and 0.33, all labels with frequency 0.255",
            either(0.27, 0.33), constant(0.255),
        ),
    )
}  # fmt: skip

PAIRS: dict[str, Pair] = {
    pair.name: pair
    for pair in (
        Pair("both calibrated", "the truth, and the truth in five bins", identity, tied, identity),
        Pair(
            "nearly calibrated", "logits times 1.1 and divided by 1.1",
            temperature(1.1), temperature(1 / 1.1), identity,
        ),
        Pair("one calibrated", "the truth, and logits times 3", identity, temperature(3), identity),
        Pair("opposite shifts", "logits plus and minus 0.3", shift(0.3), shift(-0.3), identity),
        Pair(
            "different kinds", "logits plus 0.2, and logits times 1.5",
            shift(0.2), temperature(1.5), identity,
        ),
        Pair("rare pair", "1% positives, the truth halved and doubled",
             times(0.5, rare), times(2, rare), rare),
        Pair(
            "clustered pair", "clusters of five rows, the truth, and logits plus 0.4",
            identity, shift(0.4), identity, clustered=True,
        ),
    )
}  # fmt: skip
