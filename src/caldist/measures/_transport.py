r"""What moving the rows of a grid to a calibrated distribution costs at most.

Rows of label y are moved to calibrated mass of label y in order, at the cost ∫\|G - U\|, G and U
the running masses of the rows and of their goal. Within a cell G is known only by its sums, but
where G - U has one sign, its integral is all that counts.

Calibrated mass at u may be split between the two edges around u so that its mean stays: it stays
calibrated. Where the rows of one label have no reason to move, edges are a poor goal for them.
There the split is undone: these rows stay where they are, and the other label comes to them. Below
1/2 rows of label 0 stay, and φ(v) = v/(1 - v) of label 1 comes to each; above 1/2 rows of label 1,
with φ(v) = (1 - v)/v. A row at the fraction f of its cell takes the share 1 - f of what the rows
have left on the cell's first edge, and the share f of what they have left on the second.
"""

from __future__ import annotations

import numpy as np

from caldist._kernels import transport
from caldist._util.types import Vector
from caldist.data.grid import PLACE_BITS, Grid

_FLOORING = 64 * 2.0**-PLACE_BITS  # its effect on what is gathered, generously


def transport_bound(grid: Grid, calibrated: Vector, calibrated_mass: Vector) -> float:
    """Bound the cost of moving the rows, 1 in total, to a calibrated distribution.

    ``calibrated`` increases.
    """
    edges = 2**grid.bits
    size = 2 * (grid.cell.size + calibrated.size)
    node, filled = np.empty(size, np.int64), np.empty(grid.cell.size, np.int64)
    split = np.empty(size)
    size = transport.merge(grid.cell, calibrated, calibrated_mass, edges, node, filled, split)
    edge, split = node[:size] * grid.width, split[:size]
    total = float(grid.count0.sum() + grid.count1.sum())
    owned = np.array([float(grid.count0.sum()), float(grid.count1.sum())]) / total
    inside = grid.cell.size - int(grid.cell[-1] == edges)  # rows at v = 1 are in no cell
    filled = filled[:inside]
    n, f = (
        np.concatenate([part[:inside] for part in parts])
        for parts in zip(*((n / total, f / total) for n, f, _ in grid.fractions()), strict=True)
    )
    cost = float(transport.cost(edge, filled, n, f, f, owned, split, False, 0.0))
    if grid.square0 is None or grid.square1 is None:
        return cost
    stays = grid.cell[:inside] >= edges // 2
    squares = np.where(stays, grid.square1[:inside], grid.square0[:inside])
    second = squares * (2.0**-PLACE_BITS / total)
    gathered = transport.cost(edge, filled, n, f, second, owned, split, True, _FLOORING)
    return min(cost, float(gathered))
