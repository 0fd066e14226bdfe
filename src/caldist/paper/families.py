"""What the paper's figures draw from, the temperature family, and domains to take ratios on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caldist.paper.witnesses import Domain

__all__ = ["random_domain", "ratio_two", "sample", "temper", "temperature_family"]

Vector = NDArray[np.float64]
Labels = NDArray[np.int64]


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


def ratio_two(delta: float, gap: float) -> Domain:
    """Return mass 1 - δ at δ with label 0 and mass δ at δ + gap with label 1."""
    prediction = np.array([delta, delta + gap])
    return Domain(np.array([0.0, 1.0]), prediction, np.array([1 - delta, delta]))


def random_domain(rng: np.random.Generator) -> Domain:
    """Return two to eight points with random predictions, mean labels and masses."""
    size = int(rng.integers(2, 9))
    spread = 10 ** rng.uniform(-1.5, 0)  # predictions close together are the hard cases
    prediction = 0.5 + spread * (rng.random(size) - 0.5)
    mean = rng.random(size) if rng.random() < 0.5 else rng.integers(0, 2, size).astype(float)
    return Domain(mean, prediction, rng.dirichlet(np.ones(size)))
