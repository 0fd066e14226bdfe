r"""What rounding of the predictions can do to each measure.

A joint with a ``radius`` lists predictions v' for true ones v. Two cases:

- gridded: v' is the mean of its cell, so the residual sum of each cell is exact and only its place
  has moved. The bounds use E[|e| |v - v'|], e = y - v the residual. A grid with sums of squares
  has bounds of second order too (:mod:`caldist.measures._second_order`), and the better end counts.
- otherwise all that is known is E|v - v'| <= radius.

Every function takes the joint and the measure's value on it, and returns what the value on the true
predictions lies between. A measure without such a function moves without bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from caldist.data.grid import Grid
from caldist.data.joint import Joint
from caldist.data.within_cells import WithinCells
from caldist.measures import _second_order
from caldist.measures.lower_distance import TOLERANCE, certify_lower
from caldist.measures.random_interval_ce import DEFAULT_WIDTH, random_interval_ce_of

__all__ = [
    "Bounds",
    "around",
    "better_of",
    "kernel_bounds",
    "lower_distance_bounds",
    "random_interval_bound",
    "random_interval_bounds",
    "random_interval_range",
    "residual_moves",
    "residual_rounding",
    "smooth_bounds",
    "surrogate_interval_bounds",
    "within_cells_of",
]

Bounds = Callable[[Joint, float], tuple[float, float]]


def residual_moves(joint: Joint) -> float:
    """Bound E[|e| |v - v'|] of a gridded joint."""
    assert joint.grid is not None  # noqa: S101 -- only called for gridded joints
    grid = joint.grid
    move0, move1 = grid.moves
    low = grid.cell * grid.width
    # |e| is v <= the cell's upper end for label 0, and 1 - v <= 1 - its lower end for label 1.
    return float(((low + grid.width) * move0 + (1 - low) * move1).sum()) / joint.total


def residual_rounding(joint: Joint) -> float:
    """Bound how far the residuals themselves are off: E|e - e'| summed over cells."""
    return joint.radius if joint.grid is None else joint.grid.resolution


def around(value: float, bound: float) -> tuple[float, float]:
    """Return the interval of half-width ``bound``, cut at 0."""
    return max(0.0, value - bound), value + bound


def within_cells_of(joint: Joint) -> WithinCells | None:
    """Return what is known inside the cells; None where that is not enough for second order."""
    return None if joint.grid is None else joint.grid.within_cells


def better_of(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Return what two valid intervals have in common; rounding must not turn it over."""
    lower = max(first[0], second[0])
    return lower, max(lower, min(first[1], second[1]))


def smooth_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound smCE: a 1-Lipschitz w changes by at most |v - v'| at a residual |e|."""
    moved = joint.radius if joint.grid is None else residual_moves(joint)
    bounds = around(value, moved + residual_rounding(joint))
    profile = within_cells_of(joint)
    return bounds if profile is None else better_of(bounds, _second_order.smooth_ce(profile))


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
    bounds = around(value, moved + residual_rounding(joint))
    if grid.within_cells is None:
        return bounds
    return better_of(bounds, _second_order.laplace(grid.within_cells, grid.width))


def random_interval_range(joint: Joint, width: float) -> tuple[float, float]:
    """Bound RintCE: a point changes its bin with chance at most |v - v'|/width."""
    moved = joint.radius if joint.grid is None else residual_moves(joint)
    value = random_interval_ce_of(joint, width=width)
    bounds = around(value, 2 / width * moved + residual_rounding(joint))
    profile = within_cells_of(joint)
    if profile is None:
        return bounds
    return better_of(bounds, _second_order.random_interval(profile, width))


def random_interval_bounds(joint: Joint, _value: float) -> tuple[float, float]:
    """Bound RintCE at its default width."""
    return random_interval_range(joint, DEFAULT_WIDTH)


def random_interval_bound(joint: Joint, width: float) -> float:
    """Bound how far RintCE of the joint is from that of the true predictions."""
    value = random_interval_ce_of(joint, width=width)
    lower, upper = random_interval_range(joint, width)
    return max(value - lower, upper - value)


def surrogate_interval_bounds(joint: Joint, _value: float) -> tuple[float, float]:
    """Bound SintCE by bounding the RintCE(2^-k) in its infimum.

    RintCE(2^-k) does not decrease with k. So a lower bound at K also holds for all finer widths,
    and SintCE is at least the least of it and of the bounds on RintCE(2^-k) + 2^-k up to K.
    """
    profile = within_cells_of(joint)
    floor = lower = 0.0
    coarser = math.inf
    sums = {}
    for k in range(60 if joint.grid is None else joint.grid.bits + 1):
        width = 2.0**-k
        least, most = (
            random_interval_range(joint, width)
            if profile is None
            else _second_order.dyadic_interval(profile, width)
        )
        floor = max(floor, least)
        coarser = min(coarser, floor + width)
        lower = max(lower, min(coarser, floor))
        sums[width] = most + width
        if floor >= coarser or most - least >= max(floor, width):
            break
    if profile is None:
        return lower, min(sums.values())
    # What cells leave open is worked out for the few widths that can be the best.
    upper = math.inf
    for width in sorted(sums, key=lambda width: sums[width]):
        if sums[width] >= upper:
            break
        upper = min(upper, random_interval_range(joint, width)[1] + width)
    return lower, upper


def lower_distance_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound ldCE: it moves by at most E|v - v'|, and the value is known to its tolerance."""
    lower, upper = around(value, joint.radius)
    bounds = lower, upper + TOLERANCE
    if joint.grid is None:
        return bounds
    certificate = certify_lower(_on_edges(joint.grid), tol=TOLERANCE)
    return better_of(bounds, _second_order.lower_distance(joint.grid, certificate))


def _on_edges(grid: Grid) -> Joint:
    """Return the rows shared between the edges of their cells so that each label's mean stays."""
    (count0, first0, _), (count1, first1, _) = grid.fractions()
    edge = np.concatenate((grid.cell, np.minimum(grid.cell + 1, 2**grid.bits))) * grid.width
    mass0, mass1 = (
        np.concatenate((count - first, first))
        for count, first in ((count0, first0), (count1, first1))
    )
    return Joint.from_masses(edge, mass0, mass1)
