"""Predictors on finite domains: the paper's instances, and seeded collections of others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from caldist._util.cached import cached_property
from caldist.data.joint import Joint
from caldist.kernels.loader import COMPILED
from caldist.measures.true_distance import true_distance

__all__ = [
    "Domain",
    "calibrated",
    "cancelling_bin",
    "cancelling_cubic",
    "cancelling_sides",
    "distances",
    "domains",
    "fair_coin",
    "gaussian_wave",
    "interval_jump",
    "large",
    "pairs",
    "quadratic_gap",
    "rare_certainty",
    "tight_gap",
    "two_points",
]

Vector = NDArray[np.float64]

_RANDOM = 200 if COMPILED else 6  # random instances of each kind
_LARGE = 20_000 if COMPILED else 300
_SEED = 2023


@dataclass(frozen=True, eq=False)
class Domain:
    """A finite domain: for each x its mean label E[y|x], prediction f(x) and mass."""

    y_mean: Vector
    y_prob: Vector
    mass: Vector

    @cached_property
    def joint(self) -> Joint:
        """The distribution of predictions and labels, without the domain."""
        return Joint.from_masses(
            self.y_prob, self.mass * (1 - self.y_mean), self.mass * self.y_mean
        )

    def moved(self, y_prob: Vector) -> Domain:
        """Return another predictor on the same domain."""
        return Domain(self.y_mean, y_prob, self.mass)

    def distance_to(self, other: Domain) -> float:
        """Return E|f - g| for a predictor on the same domain."""
        return float(self.mass @ np.abs(self.y_prob - other.y_prob))

    def distance(self) -> float:
        """Return the true distance to calibration."""
        return true_distance(self.y_mean, self.y_prob, mass=self.mass)


# -- the paper's instances -------------------------------------------------------------------------


def two_points(eps: float) -> Domain:
    """Return predictions ½ - ε and ½ + ε with certain labels 0 and 1; calibrated at ε = 0."""
    return Domain(np.array([0.0, 1.0]), np.array([0.5 - eps, 0.5 + eps]), np.full(2, 0.5))


def quadratic_gap(alpha: float) -> tuple[Domain, Domain]:
    """Return two domains on which one predictor has the same predictions and labels.

    Its true distance to calibration is 4α² on the first and α on the second.
    """
    mass = np.array([alpha, 0.5 - alpha, 0.5 - alpha, alpha])
    prediction = 0.5 + alpha * np.array([1, 1, -1, -1])
    first = Domain(np.array([0.0, 0.5, 0.5, 1.0]), prediction, mass)
    return first, Domain(1 - prediction, prediction, mass)


def tight_gap(alpha: float, beta: float) -> Domain:
    """Return the first domain of the quadratic gap, the rare predictions moved out by β."""
    first, _ = quadratic_gap(alpha)
    return first.moved(first.y_prob + beta * np.array([1, 0, 0, -1]))


def interval_jump(eps: float, *, moving: bool = False) -> Domain:
    """Return the four points on which intCE jumps at ε = 0.

    The paper lets E[y|x] move with ε; so does ``moving``. Otherwise it stays where ε = 0 puts it,
    so that only the predictor moves.
    """
    alpha, beta = 1 / 6, 1 / 48
    prediction = 0.5 + np.array([-beta, -eps, eps, beta])
    centre = prediction if moving else 0.5 + np.array([-beta, 0, 0, beta])
    return Domain(centre + alpha * np.array([1, -1, 2, -2]), prediction, np.full(4, 0.25))


def gaussian_wave(eps: float, nodes: int = 4000) -> Domain:
    """Return v uniform on [¼, ¾] with E[y - v|v] = cos(t/ε) exp(-t²/ε)/4 at t = v - ½."""
    t = ((np.arange(nodes) + 0.5) / nodes - 0.5) / 2
    mean = 0.5 + t + np.cos(t / eps) * np.exp(-(t**2) / eps) / 4
    return Domain(mean, 0.5 + t, np.full(nodes, 1 / nodes))


# -- others ----------------------------------------------------------------------------------------


def fair_coin() -> Domain:
    """Return the prediction ½ for a fair coin: perfectly calibrated."""
    return Domain(np.array([0.5]), np.array([0.5]), np.array([1.0]))


def cancelling_bin() -> Domain:
    """Return two predictions in the bin [0.4, 0.45) with opposite errors of 0.34375."""
    return Domain(np.array([0.75, 0.09375]), np.array([0.40625, 0.4375]), np.full(2, 0.5))


def cancelling_sides() -> Domain:
    """Return 0.25 and 0.75 where the frequencies are 0 and 0.5: one confidence, errors ±0.25."""
    return Domain(np.array([0.0, 0.5]), np.array([0.25, 0.75]), np.full(2, 0.5))


def cancelling_cubic() -> Domain:
    """Return four equally spaced predictions with errors 1, -3, 3, -1: orthogonal to 1, v, v²."""
    prediction = np.array([0.125, 0.375, 0.625, 0.875])
    return Domain(prediction + np.array([1, -3, 3, -1]) / 16, prediction, np.full(4, 0.25))


def rare_certainty(rank: int | None) -> Domain:
    """Return fair coins with masses ½, ¼, …, all predicted as ½ but one of mass 2^-rank, as 0."""
    prediction = np.full(40, 0.5)
    if rank is not None:
        prediction[rank - 1] = 0
    return Domain(np.full(40, 0.5), prediction, 0.5 ** np.minimum(np.arange(1, 41), 39))


# -- collections -----------------------------------------------------------------------------------


def large() -> Domain:
    """Return many predictions, overconfident ones, with certain labels."""
    rng = np.random.default_rng(_SEED)
    f = rng.random(_LARGE)
    label = (rng.random(_LARGE) < f).astype(float)
    return Domain(label, f**2 / (f**2 + (1 - f) ** 2), np.full(_LARGE, 1 / _LARGE))


@cache
def domains() -> tuple[Domain, ...]:
    """Return the instances above at several sizes, and random ones, half of them near calibrated.

    All have at most eight points, so that the true distance is exact.
    """
    rng = np.random.default_rng(_SEED)
    hard = [two_points(eps) for eps in (0.1, 1e-3, 1e-6)]
    hard += [domain for alpha in (0.02, 0.2) for domain in quadratic_gap(alpha)]
    hard += [tight_gap(0.05, 0.025), tight_gap(0.2, 1e-6), interval_jump(0), interval_jump(1e-6)]
    hard += [fair_coin(), cancelling_bin(), cancelling_sides(), cancelling_cubic()]
    near = [_nudged(_random_calibrated(rng), rng) for _ in range(_RANDOM // 2)]
    return (*hard, *near, *(_random(rng) for _ in range(_RANDOM - len(near))))


@cache
def distances() -> tuple[float, ...]:
    """Return the true distances to calibration of :func:`domains`."""
    return tuple(domain.distance() for domain in domains())


@cache
def pairs() -> tuple[tuple[Domain, Domain], ...]:
    """Return pairs of predictors on one domain, at all distances; among them all jumps above."""
    rng = np.random.default_rng(_SEED)
    hard = [(two_points(eps), two_points(0)) for eps in (0.1, 1e-3, 1e-6)]
    hard += [(interval_jump(eps), interval_jump(0)) for eps in (1e-2, 1e-6)]
    hard += [(tight_gap(0.1, beta), tight_gap(0.1, 0)) for beta in (1e-2, 1e-6)]
    starts = (_random(rng) for _ in range(_RANDOM))
    return (*hard, *((start, _nudged(start, rng)) for start in starts))


@cache
def calibrated() -> tuple[Domain, ...]:
    """Return perfectly calibrated predictors."""
    rng = np.random.default_rng(_SEED)
    return (fair_coin(), two_points(0), *(_random_calibrated(rng) for _ in range(_RANDOM)))


def _random(rng: np.random.Generator) -> Domain:
    """Return two to six points, their predictions often close together."""
    size = int(rng.integers(2, 7))
    prediction = 0.5 + 10 ** rng.uniform(-1.5, 0) * (rng.random(size) - 0.5)
    mean = rng.random(size) if rng.random() < 0.5 else rng.integers(0, 2, size).astype(float)
    mean[0] = rng.random()  # so that both labels occur
    return Domain(mean, prediction, rng.dirichlet(np.ones(size)))


def _random_calibrated(rng: np.random.Generator) -> Domain:
    """Return a domain whose points are grouped at random, each predicted as its group's mean."""
    start = _random(rng)
    group = rng.integers(0, 3, start.mass.size)
    total = np.bincount(group, start.mass, 3)
    ones = np.bincount(group, start.mass * start.y_mean, 3)
    frequency = np.divide(ones, total, out=np.zeros(3), where=total > 0)
    return start.moved(frequency[group].clip(0, 1))


def _nudged(domain: Domain, rng: np.random.Generator) -> Domain:
    """Move each prediction a little, by amounts between 1e-6 and 1."""
    step = 10 ** rng.uniform(-6, 0) * rng.uniform(-1, 1, domain.mass.size)
    return domain.moved((domain.y_prob + step).clip(0, 1))
