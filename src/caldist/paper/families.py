"""The paper's distributions: the temperature family and the instances of its lemmas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import caldist

__all__ = [
    "Domain",
    "gaussian_instance",
    "interval_jump",
    "quadratic_gap",
    "random_domain",
    "ratio_two",
    "sample",
    "temper",
    "temperature_family",
    "tight_gap",
    "two_points",
]

Vector = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Domain:
    """A finite domain: for each x its mean label E[y|x], prediction f(x) and mass."""

    y_mean: Vector
    y_prob: Vector
    mass: Vector

    def measure(self, function: Callable[..., float], **options: Any) -> float:
        """Apply a measure: each x becomes a row of label 0 and one of label 1, with weights."""
        label = np.repeat([0, 1], self.y_prob.size)
        weight = np.concatenate((self.mass * (1 - self.y_mean), self.mass * self.y_mean))
        return function(label, np.tile(self.y_prob, 2), sample_weight=weight, **options)

    def joint(self) -> caldist.Joint:
        """Return the distribution of predictions and labels, without the domain."""
        return caldist.Joint.from_masses(
            self.y_prob, self.mass * (1 - self.y_mean), self.mass * self.y_mean
        )

    def true_distance(self) -> float:
        """Return dCE, for which the domain is needed."""
        return caldist.true_distance(self.y_mean, self.y_prob, mass=self.mass)


def temper(f: Vector, temperature: float) -> Vector:
    """Return f^β / (f^β + (1 - f)^β) with β = 1/temperature."""
    beta = 1 / temperature
    return np.asarray(f**beta / (f**beta + (1 - f) ** beta), np.float64)


def sample(temperature: float, n_rows: int, rng: np.random.Generator) -> tuple[Labels, Vector]:
    """Draw labels and predictions: f uniform, y Bernoulli(f), the prediction f tempered."""
    f = rng.random(n_rows)
    label = (rng.random(n_rows) < f).astype(np.int64)
    return label, temper(f, temperature)


def temperature_family(temperature: float, nodes: int) -> Domain:
    """Return the population that :func:`sample` draws from, at the midpoints of equal cells."""
    f = (np.arange(nodes) + 0.5) / nodes
    return Domain(f, temper(f, temperature), np.full(nodes, 1 / nodes))


def two_points(eps: float) -> Domain:
    """Return predictions ½ - ε and ½ + ε with certain labels 0 and 1."""
    return Domain(np.array([0.0, 1.0]), np.array([0.5 - eps, 0.5 + eps]), np.full(2, 0.5))


def quadratic_gap(alpha: float) -> tuple[Domain, Domain]:
    """Return two domains {00, 01, 10, 11} that differ in E[y|x] but not in predictions."""
    mass = np.array([alpha, 0.5 - alpha, 0.5 - alpha, alpha])
    prediction = 0.5 + alpha * np.array([1, 1, -1, -1])
    first = np.array([0.0, 0.5, 0.5, 1.0])
    second = 0.5 - alpha * np.array([1, 1, -1, -1])
    return Domain(first, prediction, mass), Domain(second, prediction, mass)


def tight_gap(alpha: float) -> Domain:
    """Return the first domain of the quadratic gap with its predictions moved apart by α/2."""
    first, _ = quadratic_gap(alpha)
    prediction = 0.5 + alpha * np.array([1.5, 1, -1, -1.5])
    return Domain(first.y_mean, prediction, first.mass)


def interval_jump(eps: float, *, fixed: bool = False) -> Domain:
    """Return the instance on which intCE jumps at ε = 0; ``fixed`` keeps E[y|x] at its limit."""
    alpha, beta = 1 / 6, 1 / 48
    prediction = 0.5 + np.array([-beta, -eps, eps, beta])
    centre = 0.5 + np.array([-beta, 0, 0, beta]) if fixed else prediction
    mean = centre + alpha * np.array([1, -1, 2, -2])
    return Domain(mean, prediction, np.full(4, 0.25))


def ratio_two(delta: float, gap: float) -> Domain:
    """Return mass 1 - δ at δ with label 0 and mass δ at δ + gap with label 1."""
    prediction = np.array([delta, delta + gap])
    return Domain(np.array([0.0, 1.0]), prediction, np.array([1 - delta, delta]))


def gaussian_instance(eps: float, nodes: int) -> Domain:
    """Return v uniform on [¼, ¾] with E[y - v|v] = cos(t/ε) exp(-t²/ε)/4 at t = v - ½."""
    t = ((np.arange(nodes) + 0.5) / nodes - 0.5) / 2
    mean = 0.5 + t + np.cos(t / eps) * np.exp(-(t**2) / eps) / 4
    return Domain(mean, 0.5 + t, np.full(nodes, 1 / nodes))


def random_domain(rng: np.random.Generator) -> Domain:
    """Return two to eight points with random predictions, mean labels and masses."""
    size = int(rng.integers(2, 9))
    spread = 10 ** rng.uniform(-1.5, 0)  # predictions close together are the hard cases
    prediction = 0.5 + spread * (rng.random(size) - 0.5)
    mean = rng.random(size) if rng.random() < 0.5 else rng.integers(0, 2, size).astype(float)
    return Domain(mean, prediction, rng.dirichlet(np.ones(size)))
