r"""What rounding of the predictions can do to the measures of earlier literature.

As in :mod:`caldist.measures._rounding`: a joint with a ``radius`` lists predictions v' for true
ones v, either gridded, so that counts and sums per cell and label are known, or with nothing but
E|v - v'| <= radius. Every function takes the joint and the measure's value on it, and returns what
the value on the true predictions lies between.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from caldist.data.grid import PLACE_BITS, Grid
from caldist.data.joint import Joint
from caldist.measures import _second_order
from caldist.measures._reflected_gaussian import SmoothedNorm
from caldist.measures._rounding import (
    around,
    better_of,
    residual_moves,
    residual_rounding,
    within_cells_of,
)

__all__ = [
    "averaged_two_bin_bounds",
    "brier_bounds",
    "ecce_mad_bounds",
    "ecce_range_bounds",
    "kernel_smoothed_bounds",
]

Vector = NDArray[np.float64]

_TOLERANCE = 1e-10  # to which smECE is computed
_BISECTIONS = 60


def brier_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound the Brier score.

    Gridded: per cell and label the count and the sum of v are known, so only the sum of v² is not.
    It is least when all rows of a label sit at their mean m, and largest when they sit at the ends
    a and b of the cell, by (m - a)(b - m) a row. With the sums of squares it is known but for
    flooring. Otherwise (y - v)² changes by at most 2|v - v'|.
    """
    if joint.grid is None:
        return around(value, 2 * joint.radius)
    grid = joint.grid
    if grid.square0 is not None:
        return _second_order.brier(grid, joint.total)
    low = grid.cell * grid.width
    lower = spread = 0.0
    for label, count, mean in _label_means(grid):
        lower += float((count * (label - mean) ** 2).sum())
        spread += float((count * (mean - low) * (low + grid.width - mean)).sum())
    lower, upper = lower / joint.total, (lower + spread) / joint.total
    slack = 2 * grid.resolution
    return min(value, max(0.0, lower - slack)), max(value, upper + slack)


def ecce_mad_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound ECCE-MAD.

    Gridded: the prefix sums at the edges of cells are known, and inside a cell they rise by at most
    its positive residuals and fall by at most its negative ones. Otherwise the order of the
    predictions is not known, which leaves the sum of all residuals below and the larger one of
    their positive and negative parts above.
    """
    highest, lowest, slack = _extremes(joint)
    lower = value if joint.grid is not None else abs(float(joint.residual().sum()))
    return max(0.0, lower - slack), max(value, highest, -lowest) + slack


def ecce_range_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound ECCE-R, by the same extremes as ECCE-MAD."""
    highest, lowest, slack = _extremes(joint)
    lower = value if joint.grid is not None else abs(float(joint.residual().sum()))
    return max(0.0, lower - 2 * slack), max(value, highest - lowest) + 2 * slack


def averaged_two_bin_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound ATB.

    With A(t) the change of S(t) by the moves, whose integral is at most E[|e| |v - v'|], and r that
    of the residuals, both bins change by at most |A| + r; as |S| + |T - S| <= 1, the sum of squares
    changes by at most twice that.
    """
    moved = joint.radius if joint.grid is None else residual_moves(joint)
    bounds = around(value, 2 * (moved + residual_rounding(joint)))
    profile = within_cells_of(joint)
    return bounds if profile is None else better_of(bounds, _second_order.averaged_two_bin(profile))


def kernel_smoothed_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound smECE.

    A Gaussian of width σ that moves by d changes by √(2/π) d/σ in L1. So the norms at width σ
    differ by at most b/σ + r, b = √(2/π) E[|e| |v - v'|] and r the change of the residuals. The
    norm of the residuals deposited on edges differs by at most a/σ² + b/σ + r, with a and b of
    second order.
    """
    moved = joint.radius if joint.grid is None else residual_moves(joint)
    change = residual_rounding(joint) + _TOLERANCE
    bounds = _around_fixed_point(value, 0.0, math.sqrt(2 / math.pi) * moved, change)
    profile = within_cells_of(joint)
    if joint.grid is None or profile is None or value < joint.grid.width:
        return bounds
    low, high = max(bounds[0], value / 2), min(bounds[1], 2 * value)
    norm = SmoothedNorm(profile.node, profile.deposit, low, high)
    # As the norm does not increase, its fixed point lies between any width and the norm there:
    # close together after one step of the secant method.
    start = norm(value) - value
    middle = min(max(value + start / 2, low), high)
    rest = norm(middle) - middle
    slope = (rest - start) / (middle - value) if middle != value else -1.0
    width = min(max(value - start / slope, low), high) if slope < 0 else value
    found = norm(width)
    quadratic, linear = _second_order.smoothing_change(profile, joint.grid.width)
    lower, _ = _around_fixed_point(min(width, found), quadratic, linear, change)
    _, upper = _around_fixed_point(max(width, found), quadratic, linear, change)
    return better_of(bounds, (lower, upper))


def _around_fixed_point(
    value: float, quadratic: float, linear: float, constant: float
) -> tuple[float, float]:
    """Bound the fixed point of norms whose own one is ``value``.

    They differ from those at width σ by at most g(σ) = quadratic/σ² + linear/σ + constant. As
    the norms do not increase with σ, a fixed point s + x has x <= g(s + x), and s - x has
    x <= g(s).
    """

    def change(width: float) -> float:
        return (quadratic / width + linear) / width + constant

    lower = value - change(value) if value > 0 else 0.0
    below, above = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (below + above) / 2
        below, above = (middle, above) if middle <= change(value + middle) else (below, middle)
    return max(0.0, lower), value + above


def _label_means(grid: Grid) -> list[tuple[int, Vector, Vector]]:
    """Return (label, count, mean prediction) per cell; the mean of no rows is the cell's start."""
    result = []
    for label, count, place in ((0, grid.count0, grid.place0), (1, grid.count1, grid.place1)):
        mean = np.divide(place, count, out=np.zeros(count.size), where=count > 0)
        mean = (grid.cell + mean * 2.0**-PLACE_BITS) * grid.width
        result.append((label, np.asarray(count, np.float64), mean))
    return result


def _extremes(joint: Joint) -> tuple[float, float, float]:
    """Bound the prefix sums of residuals from above and below, and say how much they are off by."""
    if joint.grid is None:
        mass0, mass1 = joint.normalized()
        highest = float((mass1 * (1 - joint.prediction)).sum())
        lowest = -float((mass0 * joint.prediction).sum())
        return highest, lowest, joint.radius
    (_, count0, mean0), (_, count1, mean1) = _label_means(joint.grid)
    positive, negative = count1 * (1 - mean1) / joint.total, count0 * mean0 / joint.total
    before = np.concatenate(([0.0], np.cumsum(positive - negative)[:-1]))
    highest, lowest = float((before + positive).max()), float((before - negative).min())
    return highest, lowest, joint.grid.resolution
