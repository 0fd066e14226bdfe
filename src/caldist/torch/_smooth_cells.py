r"""smCE within a tolerance, without a sort: rows are moved to the centres of equal cells.

Notation: v predictions, m masses that sum to 1, c = m (y - v) residuals, x(v) the centre of the
cell of v.

Only the places of the rows move; their residuals stay as they are. For every 1-Lipschitz w the sum
Σ c w(v) changes by at most what it costs to carry the residuals there, and so does the error:

1. to the centres of fine cells, row by row, Σ |c| |v - x(v)|;
2. from there to the centres of wide cells, in which residuals of both signs meet on the way: over
   each gap between fine cells the sum of what is carried across counts, not its parts.

The second costs little where predictions are nearly calibrated, so that few wide cells do. A
function that is best on them, drawn straight between their centres, is 1-Lipschitz itself, and on
the rows it is at most twice that cost short of the best. The gradient is that of its sum, Σ c w(v).

Rows are read in a few passes where they are; only sums of wide cells go to the CPU, which solves,
and three numbers for each come back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caldist._kernels import smooth
from caldist._util.types import Vector
from caldist.torch._sums import cell_sums

# Fine cells in a wide one, the most first.
MERGED = (256, 128, 64, 32, 16, 8, 4, 2)


@dataclass(frozen=True)
class Cells:
    """Rows in cells.

    Attributes
    ----------
    cell, offset, residual
        Of each row: its cell, where it lies from the centre, c.
    sums
        Of the residuals in each cell.
    cost
        By how much smCE on the cells can differ from that of the rows.
    """

    cell: Tensor
    offset: Tensor
    residual: Tensor
    sums: Tensor
    cost: float


def in_cells(v: Tensor, residual: Tensor, tol: float) -> Cells | None:
    """Return as few cells as ``tol`` allows; None if fine ones would be more than half the rows."""
    size = residual.abs()
    # Rows lie a quarter of a cell from its centre in the mean and half of one at most, so that this
    # costs a quarter of the tolerance as a rule, and never more than half of it.
    count = _round_up(1.02 * float(size.sum()) / tol)
    if 2 * count > v.numel():
        return None
    place = v * count
    cell = place.long().clamp_(max=count - 1)
    cost = float(size @ place.sub_(cell).sub_(0.5).abs_()) / count
    [sums] = cell_sums(cell, residual, count=count)
    return _widened(v, residual, cell, sums, cost, tol)


def _round_up(count: float) -> int:
    return MERGED[0] * max(1, math.ceil(count / MERGED[0]))


def _widened(
    v: Tensor, residual: Tensor, cell: Tensor, sums: Tensor, cost: float, tol: float
) -> Cells:
    """Merge as many fine cells as the rest of the tolerance allows."""
    upto = sums.cumsum(0)
    for merged in MERGED:
        more = float(_carried(upto, merged))
        if cost + more <= tol:
            cell >>= merged.bit_length() - 1
            sums, cost = sums.view(-1, merged).sum(1), cost + more
            break
    offset = (v * len(sums)).sub_(cell).sub_(0.5).div_(len(sums))
    return Cells(cell, offset, residual, sums, cost)


def _carried(upto: Tensor, merged: int) -> Tensor:
    """Return what it costs to carry the residuals of fine cells to the centres of wide ones.

    From both ends towards the centre: over each gap what lies beyond it, a difference of prefix
    sums. The centre lies in the middle of a gap, of which both sides carry over one half.
    """
    half = merged // 2
    inside = upto.view(-1, merged)
    end = inside[:, -1:]
    start = torch.nn.functional.pad(end[:-1], (0, 0, 1, 0))
    left, right = (inside[:, :half] - start).abs_(), (end - inside[:, half - 1 : -1]).abs_()
    middle = left[:, -1].sum() + right[:, 0].sum()
    return (left.sum() + right.sum() - middle / 2) / len(upto)


def solve(cells: Cells, mass: Tensor, *, with_gradient: bool) -> tuple[float, Tensor]:
    """Return smCE on the cells and the gradient of each row; without one if it is not wanted."""
    sums = cells.sums.cpu().numpy()
    occupied = sums != 0  # the others neither gain nor lose
    if not occupied.any():
        return 0.0, torch.zeros_like(cells.residual)
    knot, residual = (np.flatnonzero(occupied) + 0.5) / sums.size, sums[occupied]
    if not with_gradient:
        return smooth.smooth_ce(knot, residual, np.empty(0)), cells.residual.new_empty(0)
    curve, witness = np.empty_like(knot), np.empty_like(knot)
    value = smooth.smooth_ce(knot, residual, curve)
    smooth.witness(knot, residual, curve, witness)
    table = torch.from_numpy(_function(occupied, knot, witness)).to(cells.cell.device)
    height, left, right = table[:, cells.cell]
    slope = torch.where(cells.offset < 0, left, right)
    height = height.addcmul_(slope, cells.offset).mul_(mass)
    return value, slope.mul_(cells.residual).sub_(height)


def _function(occupied: NDArray[np.bool_], knot: Vector, witness: Vector) -> Vector:
    """Return the height at the centre of each cell, and the slopes left and right of it."""
    slope = np.zeros(knot.size + 1)  # before the first knot and after the last one it is constant
    np.divide(np.diff(witness), np.diff(knot), out=slope[1:-1])
    np.clip(slope, -1.0, 1.0, out=slope)  # rounding
    upto = np.cumsum(occupied)  # knots below each centre, or at it
    near = np.maximum(upto - 1, 0)
    centre = (np.arange(occupied.size) + 0.5) / occupied.size
    height = witness[near] + slope[upto] * (centre - knot[near])
    return np.stack([height, slope[upto - occupied], slope[upto]])
