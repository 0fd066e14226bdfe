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

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from caldist._util.products import dot
from caldist._util.types import Vector
from caldist.data.grid import PLACE_BITS, Grid
from caldist.data.within_cells import folding_excess

_FLOORING = 64 * 2.0**-PLACE_BITS  # its effect on what is gathered, generously


@dataclass(frozen=True, eq=False)
class _Goal:
    """Calibrated mass on edges and, per cell, gathered at the rows of one label.

    ``mass``, ``taken`` and ``mean`` are pairs, for labels 0 and 1: the mass on each edge, that
    gathered in each cell, and the mean over the cell of its running sum. ``stays`` says in which
    cells the rows of label 1 stay; in the others those of label 0 do. What is not known of the
    running sums changes the cost by at most ``error``.
    """

    mass: tuple[Vector, Vector]
    taken: tuple[Vector, Vector]
    mean: tuple[Vector, Vector]
    stays: NDArray[np.bool_]
    error: float


def transport_bound(grid: Grid, calibrated: Vector, calibrated_mass: Vector) -> float:
    """Bound the cost of moving the rows, 1 in total, to a calibrated distribution."""
    edges = 2**grid.bits
    inside = grid.cell < edges
    cell = grid.cell[inside]
    scaled = calibrated * edges
    at = np.minimum(np.floor(scaled), edges - 1)
    share = calibrated_mass * (scaled - at)
    spot = np.concatenate((at, at + 1)).astype(np.int64)
    node = np.sort(np.concatenate((grid.cell, cell + 1, spot)), kind="stable")
    node = node[np.flatnonzero(np.diff(node, prepend=-1))]
    target = np.searchsorted(node, spot)
    split = np.bincount(target, np.concatenate((calibrated_mass - share, share)), node.size)
    edge, filled = node * grid.width, np.searchsorted(node, cell)
    nothing = np.zeros(cell.size)
    goal = _Goal(
        ((1 - edge) * split, edge * split),
        (nothing, nothing),
        (nothing, nothing),
        cell >= edges // 2,
        0.0,
    )
    total = float(grid.count0.sum() + grid.count1.sum())
    sums = [(count / total, first / total) for count, first, _ in grid.fractions()]
    cost = _cost(edge, filled, inside, sums, goal)
    if grid.square0 is None or grid.square1 is None:
        return cost
    squares = np.where(goal.stays, grid.square1[inside], grid.square0[inside])
    second = squares * 2.0**-PLACE_BITS / total
    gathered = _gather(edge, filled, [(n[inside], f[inside]) for n, f in sums], second, goal)
    return min(cost, _cost(edge, filled, inside, sums, gathered))


def _gather(
    edge: Vector,
    filled: NDArray[np.int64],
    sums: list[tuple[Vector, Vector]],
    second: Vector,
    goal: _Goal,
) -> _Goal:
    """Undo the split to edges for as much of the goal as the rows of the label that stays allow."""
    count, first = (np.where(goal.stays, *parts) for parts in zip(sums[1], sums[0], strict=True))
    low = edge < 0.5
    own = np.where(low, *goal.mass)
    left = np.bincount(filled, count - first, edge.size)
    left += np.bincount(filled + 1, first, edge.size)
    share = np.divide(own, left, out=np.zeros(edge.size), where=(left > 0) & (edge != 0.5))
    np.minimum(share, 1.0, out=share)
    rest = 1 - np.divide(share * left, own, out=np.zeros(edge.size), where=own > 0)
    company = np.where(
        low, edge / np.where(low, 1 - edge, 1.0), (1 - edge) / np.where(low, 1, edge)
    )
    # Shares r and companions p on the two edges; sums of (1 - f)², f (1 - f) and f².
    r0, r1, p0, p1 = share[filled], share[filled + 1], company[filled], company[filled + 1]
    mixed = np.maximum(first - second, 0.0)
    square = count - first - mixed
    stay = r0 * (count - first) + r1 * first
    stay_mean = r0 * square + r1 * mixed
    cross = r0 * p1 + r1 * p0
    join = r0 * p0 * square + cross * mixed + r1 * p1 * second
    join_mean = r0 * p0 * (square - mixed / 2) + (cross + r1 * p1) * mixed / 2
    # φ lies below its chord by at most φ'' H² f (1 - f)/2, and sums of f³ are not known.
    width = edge[filled + 1] - edge[filled]
    steepest = np.where(goal.stays, edge[filled], 1 - edge[filled + 1])
    sag = mixed * np.maximum(r0, r1) * width**2 / np.maximum(steepest, 0.5) ** 3
    cubic = mixed * np.abs((r1 - r0) * (p1 - p0)) / 2
    error = 4 * float(sag.sum()) + 3 * dot(width, cubic + sag) + _FLOORING
    return replace(
        goal,
        mass=(goal.mass[0] * rest, goal.mass[1] * rest),
        taken=(np.where(goal.stays, join, stay), np.where(goal.stays, stay, join)),
        mean=(
            np.where(goal.stays, join_mean, stay_mean),
            np.where(goal.stays, stay_mean, join_mean),
        ),
        error=error,
    )


def _cost(
    edge: Vector,
    filled: NDArray[np.int64],
    inside: NDArray[np.bool_],
    sums: list[tuple[Vector, Vector]],
    goal: _Goal,
) -> float:
    """Add up ∫|G - U| for both labels, and what it takes to make their totals agree."""
    length = np.diff(edge)
    cost = goal.error
    owned = [float(count.sum()) for count, _ in sums]
    for label, (count, first) in enumerate(sums):
        stays = goal.stays == (label == 1)
        have, take = np.zeros(edge.size), np.zeros(edge.size)
        have[filled], take[filled] = count[inside], goal.taken[label]
        arrived = np.cumsum(goal.mass[label] + take)
        start = np.cumsum(have) - have - (arrived - take)
        mean, low, high = start.copy(), start.copy(), start + have
        mean[filled] += (count - first)[inside] - goal.mean[label]
        # Rows that stay take up at most their own mass: G - U rises within the cell.
        high[filled] -= np.where(stays, goal.taken[label], 0.0)
        low[filled] -= np.where(stays, 0.0, goal.taken[label])
        excess = folding_excess(mean, low, high, np.zeros(edge.size))
        cost += dot(length, (np.abs(mean) + excess)[:-1])
        # Too little of a label at the goal: the rest goes to u = 0 or 1. Too much: all calibrated
        # mass is made smaller in proportion, and the rest of the other label goes there.
        missing = owned[label] - float(arrived[-1])
        cost += abs(missing)
        if missing < 0:
            cost -= 2 * missing * (owned[1 - label] / owned[label]) if owned[label] else -math.inf
    return cost
