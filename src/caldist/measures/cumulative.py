"""What the measures of cumulative differences share: extremes within cells, and limit laws.

Under calibration the cumulative differences, divided by their standard deviation, become a Brownian
motion W on [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.measures._rounding import label_means


def null_deviation(v: Vector, q: Vector, function: Vector | float = 1.0) -> float:
    """Return the standard deviation of Σ c_i f(v_i) when the labels are Bernoulli(v)."""
    return math.sqrt(float((q * function**2 * v * (1 - v)).sum()))


def normal_tail(x: float) -> float:
    """Return P(Z >= x), Z standard normal."""
    return 0.5 * math.erfc(x / math.sqrt(2))


def scaled_tail(law: Callable[[float], float], scale: float) -> Callable[[float], float]:
    """Return the tail of scale · X from that of X; a scale of 0 means that X must be 0."""
    return lambda value: law(value / scale) if scale > 0 else float(value <= 0)


def extremes(joint: Joint) -> tuple[float, float, float]:
    """Bound the prefix sums of residuals from above and below, and say how much they are off by."""
    if joint.grid is None:
        mass0, mass1 = joint.normalized()
        highest = float((mass1 * (1 - joint.prediction)).sum())
        lowest = -float((mass0 * joint.prediction).sum())
        return highest, lowest, joint.radius
    (_, count0, mean0), (_, count1, mean1) = label_means(joint.grid)
    positive, negative = count1 * (1 - mean1) / joint.total, count0 * mean0 / joint.total
    before = np.concatenate(([0.0], np.cumsum(positive - negative)[:-1]))
    highest, lowest = float((before + positive).max()), float((before - negative).min())
    return highest, lowest, joint.grid.resolution
