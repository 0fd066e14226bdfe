"""Measures against oracles that share no code with them: programs, brute force, dense sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import caldist
import oracles
from fuzz.rows import Instance, draw_rows

MOST = 7  # rows, few enough for all partitions
SPACING = 0.01  # of the grid of the linear program, which it raises by half its square


def draw(rng: np.random.Generator) -> Instance:
    """Return a few rows, and a width of bins."""
    return draw_rows(rng, MOST) | {"width": float(rng.choice([0.03, 0.1, 0.25, 1.0]))}


def check(instance: Instance) -> None:
    """Compare each measure that has an oracle with it."""
    rows = instance["y_true"], instance["y_prob"]
    weight = instance["sample_weight"]
    v, g0, g1 = oracles.distribution(*rows, weight)
    c, mass = oracles.residuals(v, g0, g1), g0 + g1

    def near(measure: Callable[..., float], expected: float, within: float, **options: Any) -> None:
        value = measure(*rows, sample_weight=weight, **options)
        assert abs(value - expected) <= within, f"{measure} is {value!r}, not {expected!r}"

    near(caldist.smooth_ce, float(oracles.smooth_ce_rational(v, c)), 1e-14)
    near(caldist.ece, float(np.abs(c).sum()), 1e-12)
    near(caldist.interval_ce, oracles.interval_brute(v, g0, g1), 1e-14)
    width = instance["width"]
    near(caldist.random_interval_ce, oracles.random_interval(v, c, width), 1e-12, width=width)
    dense = oracles.kernel_squared(v, c, lambda a, b: np.exp(-np.abs(a - b)))
    near(caldist.kernel_ce, dense, 1e-13, squared=True)
    near(caldist.upper_distance, oracles.partition_brute(v, mass, g1, order=1), 1e-13)
    grid = np.unique(np.concatenate((v, np.linspace(0, 1, round(1 / SPACING) + 1))))
    program = oracles.lower_distance_lp(v, g0, g1, grid)
    room = SPACING**2 / 4
    near(caldist.lower_distance, program - room, room + 2e-6)
