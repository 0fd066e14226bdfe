r"""What rounding of the predictions can do: what the bounds of all measures are made from.

A joint with a ``radius`` lists predictions v' for true ones v. Two cases:

- gridded: v' is the mean of its cell, so the residual sum of each cell is exact and only its place
  has moved. The bounds use E[|e| |v - v'|], e = y - v the residual. A grid with sums of squares
  has bounds of second order too (:mod:`caldist.measures._second_order`), and the better end counts.
- otherwise all that is known is E|v - v'| <= radius.

A measure's own bounds stand beside it. A measure without any moves without bound.
"""

from __future__ import annotations

import numpy as np

from caldist._util.types import Vector
from caldist.data.grid import PLACE_BITS, Grid
from caldist.data.joint import Joint
from caldist.data.within_cells import WithinCells


def residual_moves(joint: Joint) -> float:
    """Bound E[|e| |v - v'|] of a gridded joint."""
    return float(moves_in_cells(joint).sum())


def moves_in_cells(joint: Joint) -> Vector:
    """Bound E[|e| |v - v'|] of a gridded joint, per cell."""
    assert joint.grid is not None  # noqa: S101 -- only called for gridded joints
    grid = joint.grid
    move0, move1 = grid.spreads
    low = grid.cell * grid.width
    # |e| is v <= the cell's upper end for label 0, and 1 - v <= 1 - its lower end for label 1.
    return ((low + grid.width) * move0 + (1 - low) * move1) / joint.total


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


def label_means(grid: Grid) -> list[tuple[int, Vector, Vector]]:
    """Return (label, count, mean prediction) per cell; the mean of no rows is the cell's start."""
    result = []
    for label, count, place in ((0, grid.count0, grid.place0), (1, grid.count1, grid.place1)):
        mean = np.divide(place, count, out=np.zeros(count.size), where=count > 0)
        mean = (grid.cell + mean * 2.0**-PLACE_BITS) * grid.width
        result.append((label, np.asarray(count, np.float64), mean))
    return result
