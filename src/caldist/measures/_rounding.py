r"""What rounding of the predictions can do to each measure.

A joint with a ``radius`` lists predictions v' for true ones v. Two cases:

- gridded: v' is the mean of its cell, so the residual sum of each cell is exact and only its place
  has moved. The bounds use E[|e| |v - v'|], e = y - v the residual.
- otherwise all that is known is E|v - v'| <= radius.

Every function takes the joint and the measure's value on it, and returns what the value on the true
predictions lies between. A measure without such a function moves without bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from caldist.joint import Joint
from caldist.measures.lower_distance import TOLERANCE
from caldist.measures.random_interval_ce import DEFAULT_WIDTH, random_interval_ce_of

__all__ = [
    "Bounds",
    "around",
    "kernel_bounds",
    "lower_distance_bounds",
    "random_interval_bounds",
    "residual_moves",
    "residual_rounding",
    "smooth_bounds",
    "surrogate_interval_bounds",
]

Bounds = Callable[[Joint, float], tuple[float, float]]


def residual_moves(joint: Joint) -> float:
    """Bound E[|e| |v - v'|] of a gridded joint."""
    assert joint.grid is not None  # noqa: S101 -- only called for gridded joints
    grid = joint.grid
    move0, move1 = grid.moves()
    low = grid.cell * grid.width
    # |e| is v <= the cell's upper end for label 0, and 1 - v <= 1 - its lower end for label 1.
    return float(((low + grid.width) * move0 + (1 - low) * move1).sum()) / joint.total


def residual_rounding(joint: Joint) -> float:
    """Bound how far the residuals themselves are off: E|e - e'| summed over cells."""
    return joint.radius if joint.grid is None else joint.grid.resolution


def around(value: float, bound: float) -> tuple[float, float]:
    """Return the interval of half-width ``bound``, cut at 0."""
    return max(0.0, value - bound), value + bound


def smooth_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound smCE: a 1-Lipschitz w changes by at most |v - v'| at a residual |e|."""
    moved = joint.radius if joint.grid is None else residual_moves(joint)
    return around(value, moved + residual_rounding(joint))


def kernel_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound the Laplace kCE of bandwidth 1.

    Gridded: the moves within the cells are a measure of total 0 whose primitive M vanishes outside
    them. Its squared norm is at most 2 times the integral of M^2, and within a cell |M| is at most
    the sum A of |e| on either side of the centre, so at most 2 max(left, right) A^2 a cell.
    Otherwise the paper's Lemma: kCE moves by at most 2 sqrt(2 E|v - v'|).
    """
    if joint.grid is None:
        return around(value, 2 * math.sqrt(2 * joint.radius))
    grid = joint.grid
    low = grid.cell * grid.width
    high = low + grid.width
    side = np.maximum(joint.prediction - low, high - joint.prediction)
    size = (joint.mass0 * high + joint.mass1 * (1 - low)) / joint.total  # of |e|, from above
    moved = math.sqrt(2 * float((side * size) @ size))
    return around(value, moved + residual_rounding(joint))


def _random_interval_bound(joint: Joint, width: float) -> float:
    """Bound the change of RintCE: a point changes its bin with chance at most |v - v'|/width."""
    moved = joint.radius if joint.grid is None else residual_moves(joint)
    return 2 / width * moved + residual_rounding(joint)


def random_interval_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound RintCE at its default width."""
    return around(value, _random_interval_bound(joint, DEFAULT_WIDTH))


def surrogate_interval_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound SintCE by bounding the RintCE(2^-k) in its infimum.

    RintCE(2^-k) does not decrease with k. So a lower bound at K also holds for all finer widths,
    and SintCE is at least the least of it and of the bounds on RintCE(2^-k) + 2^-k up to K.
    """
    floor = lower = 0.0
    coarser = upper = math.inf
    for k in range(60):
        width = 2.0**-k
        error = random_interval_ce_of(joint, width=width)
        bound = _random_interval_bound(joint, width)
        floor = max(floor, error - bound)
        coarser = min(coarser, floor + width)
        lower = max(lower, min(coarser, floor))
        upper = min(upper, error + bound + width)
        if bound >= max(error, width):
            break
    return min(lower, value), max(upper, value)


def lower_distance_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound ldCE: it moves by at most E|v - v'|, and the value is known to its tolerance."""
    lower, upper = around(value, joint.radius)
    return lower, upper + TOLERANCE
