"""Rows that a solver can fear: families of the tests, ties, extremes, weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from strategies import EXTREMES, FAMILIES, family

Instance = dict[str, Any]


def draw_rows(rng: np.random.Generator, most: int) -> Instance:
    """Return labels, predictions and perhaps weights of 1 to ``most`` rows."""
    size = int(rng.integers(1, most + 1))
    y_true, y_prob = family(str(rng.choice(FAMILIES)), size, rng)
    moved = rng.random(size) < rng.choice([0.0, 0.3])
    y_prob = np.where(moved, rng.choice(EXTREMES, size), y_prob)
    kind = rng.integers(3)
    weight = None
    if kind == 1:
        weight = rng.integers(0, 4, size).astype(float)
        weight[0] = max(weight[0], 1.0)  # some row counts
    elif kind == 2:
        weight = 10.0 ** rng.uniform(-6, 6, size)
    return {"y_true": y_true, "y_prob": y_prob, "sample_weight": weight}
