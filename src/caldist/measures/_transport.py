r"""What moving the rows of a grid to a calibrated distribution costs at most.

Rows of label y are moved to calibrated mass of label y in order, at the cost ∫\|G - U\|, G and U
the running masses of the rows and of their goal. Within a cell G is known only by its sums, but
where G - U has one sign, its integral is all that counts. Where it may change, mass that is matched
within the cell goes at most as far as two independent draws are apart.

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
from caldist._util.threads import in_threads
from caldist._util.types import Vector
from caldist.data.grid import PLACE_BITS, Grid

_FLOORING = 64 * 2.0**-PLACE_BITS  # its effect on what is gathered, generously
_MANY = 2**13  # cells from which on a thread repays its start


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
    n, f, *second = (
        np.concatenate([part[:inside] for part in parts if part is not None])
        for parts in zip(*grid.fractions(total), strict=True)
        if parts[0] is not None
    )

    def cost(squares: Vector | None) -> float:
        known = (f, False, 0.0) if squares is None else (squares, True, _FLOORING)
        second, gathered, flooring = known
        return float(transport.cost(edge, filled, n, f, second, owned, split, gathered, flooring))

    return min(in_threads(cost, [None, *second], None if inside >= _MANY else 1))
