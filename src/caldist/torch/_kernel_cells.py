r"""kCE² with the Laplace kernel and its gradient within a tolerance, without a sort.

Notation: v predictions, y labels, m = 1/n the mass of a row, c = m (y - v) residuals, h the
bandwidth; of a cell, x its middle, r half its width, o = v - x, N its rows.

The gradient is 2 (c D - m P), with P the sum of c e^(-|v - v'|/h) around a row and D its slope.
Rows are counted in cells and take P and D from the middle of theirs. A cell adds to the rows above
it Σ c e^(o/h) = C + C₁/h and to those below it C - C₁/h, up to the second order in r/h, where C and
C₁ are Σ c and Σ c o. The order of the rows inside a cell is not known, which changes D by Σ|c|/h at
most. This and everything else is bounded by sums over the cells (``Sums``), and where the bound is
above the tolerance the rows are sorted after all.

Cells follow the data, so that none has much mass, and the bits of the predictions, so that equal
ones stay together. The floats of [0, 1] are cut into stretches of 2^15 neighbours. A stretch is
halved as often as a sample of the rows asks for, down to single floats if need be; in those
nothing is unknown. A prediction that the sample has thrice, the largest one in its stretch, is
marked: it has a cell to itself, between those of its neighbours below and above. On a GPU rows of
one cell would wait for each other, so that a mark with many rows has copies of its sums.

The functions here are for the CPU, where the sort is faster. They say what ``_triton_cells`` does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from caldist import _kernels
from caldist.torch import _checks
from caldist.torch._cells_layout import (
    CELLS,
    FINER,
    FLOATS,
    MANY,
    NO_MARK,
    ONE,
    PLACE_BITS,
    PLACES,
    ROUNDED,
    ROUNDING,
    SAMPLE,
    SPARED,
    STRETCH,
    STRETCHES,
    Plan,
)

try:
    from caldist.torch import _triton_cells
except ImportError:  # no Triton on this machine: the rows are sorted
    _triton_cells = None  # type: ignore[assignment]

FEWEST = 2**23  # rows for which cells are faster than a sort, on a GPU
MOST = 2**28  # rows that a sum can count


class Sums(NamedTuple):
    """What is known of value and gradient: sums over the cells, the gradient in units of 2m.

    Attributes
    ----------
    value, value_error
        kCE², and by how much it can be off.
    square
        Of the gradient's norm, with every row in the middle of its cell.
    middle
        The square of how much that changes the norm.
    slopes, potentials
        The squares of how much errors of D and of P can change the gradient.
    rounding
        The square of what rounding is in proportion to.
    """

    value: float
    value_error: float
    square: float
    middle: float
    slopes: float
    potentials: float
    rounding: float

    def errors(self) -> tuple[float, float]:
        """Return by how much gradient and value can be off, in proportion to them; inf: unknown."""
        if not all(map(math.isfinite, self)):
            return math.inf, math.inf
        error = math.sqrt(self.slopes) + math.sqrt(self.potentials)
        error += ROUNDING * math.sqrt(self.rounding)
        norm = math.sqrt(self.square) - math.sqrt(self.middle)
        # In proportion to what the exact ones are at least.
        pairs = (error, norm), (self.value_error, abs(self.value))
        gradient, value = (off / (size - off) if size > off else math.inf for off, size in pairs)
        return gradient, value


def pay(prob: Tensor, weight: Tensor | None) -> bool:
    """Return whether cells are faster than a sort: for many rows of one problem on a GPU."""
    n = prob.shape[-1]
    plain = prob.is_cuda and prob.dtype == torch.float32 and weight is None and prob.numel() == n
    return _triton_cells is not None and plain and FEWEST <= n < MOST


def squared_in_cells(
    prob: Tensor,
    label: Tensor,
    bandwidth: float,
    tol: float,
    *,
    unbiased: bool,
    with_gradient: bool,
) -> tuple[Tensor, Tensor] | None:
    """Return kCE² of one problem, and the gradient of its rows; None if not within tol.

    Predictions are float32, at least SAMPLE of them. On the CPU they are vectors.
    """
    prob, label = prob.contiguous(), label.contiguous()
    if prob.is_cuda:
        return _triton_cells.squared(
            prob, label, bandwidth, tol, unbiased=unbiased, with_gradient=with_gradient
        )
    _checks.check_binary_values(prob[None], label[None], None)
    plan = planned(prob)
    table = counted(prob, label, plan)
    sums, pairs = solved(table, plan, len(prob), bandwidth, unbiased=unbiased)
    if max(sums.errors()) > tol:
        return None
    scale = len(prob) / (len(prob) - 1) if unbiased else 1.0
    value = prob.new_full((), scale * sums.value)
    if not with_gradient:
        return value, prob.new_empty(0)
    return value, gradient(prob, label, plan, pairs, unbiased=unbiased)


# -- the cells -----------------------------------------------------------------------------------


def planned(prob: Tensor) -> Plan:
    """Share cells out among the stretches as a sample of the rows is."""
    chosen = torch.arange(SAMPLE) * len(prob) // SAMPLE
    bits = _bits(prob[chosen]).sort().values
    at = bits >> STRETCH
    thrice = torch.where(bits[2:] == bits[:-2], bits[2:], -1)
    mark = bits.new_full((STRETCHES,), -1).scatter_reduce_(0, at[2:], thrice, "amax")
    mark[mark < 0] = NO_MARK
    marked = bits == mark[at]
    others, alike = (torch.bincount(at[part], minlength=STRETCHES) for part in (~marked, marked))
    halvings = torch.where(others > 0, _log2(others) + FINER, 0).clamp_(max=STRETCH)
    size = (1 << halvings) + 2 * (mark != NO_MARK)
    stretch = (size.cumsum(0) - size) * 16 + STRETCH - halvings
    doublings = _log2(alike) - SPARED
    number = torch.where(alike >= MANY, 1 << doublings.clamp(min=0), 0)
    copies = torch.where(number > 0, (number.cumsum(0) - number) * 16 + doublings, -1)
    return Plan(stretch | mark << 32, copies)


def _bits(prob: Tensor) -> Tensor:
    """Return the bits of predictions, which order like them; what is no prediction is made one."""
    return (prob.view(torch.int32).long() & (2**31 - 1)).clamp_(max=ONE)


def _log2(count: Tensor) -> Tensor:
    """Return the logarithm, rounded down; of 0 as well."""
    return torch.frexp(count.clamp(min=1).double()).exponent.long() - 1


def _unpacked(stretch: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first cell, the bits in which floats of a cell differ, and the mark."""
    return (stretch & (2**32 - 1)) >> 4, stretch & 15, stretch >> 32


def _located(prob: Tensor, plan: Plan) -> tuple[Tensor, Tensor]:
    """Return the cell of each row, and its place in the cell."""
    bits = _bits(prob)
    at, low = bits >> STRETCH, bits & FLOATS
    first, width, mark = _unpacked(plan.stretch[at])
    cell = first + (low >> width) + (bits >= mark).long() + (bits > mark).long()
    place = (low & ((1 << width) - 1)) >> (width - PLACE_BITS).clamp(min=0)
    return cell, place


def counted(prob: Tensor, label: Tensor, plan: Plan) -> Tensor:
    """Return for each cell and label the number of rows and the sum of their places, packed."""
    cell, place = _located(prob, plan)
    table = torch.zeros(2 * CELLS, dtype=torch.int64)
    return table.index_add_(0, 2 * cell + label.long(), place + (1 << PLACES))


def solved(table: Tensor, plan: Plan, n: int, h: float, *, unbiased: bool) -> tuple[Sums, Tensor]:
    """Return the sums, and P and D of each cell as float32, packed."""
    packed = table.view(-1, 2)
    cell = packed.any(dim=1).nonzero().squeeze(1)
    n0, n1 = (packed[cell] >> PLACES).double().T
    places0, places1 = (packed[cell] & ((1 << PLACES) - 1)).double().T
    x, r, begin, unit, step = _places(cell, plan)
    m, rows = 1 / n, n0 + n1
    own = m if unbiased else 0.0  # the pair of a row with itself, left out
    # Places are rounded down to steps of several floats: by half a step in the mean, more or less.
    off = torch.where(r > 0, unit * (step - 1) / 2, 0.0)
    o0, o1 = (
        torch.where(r > 0, unit * step * places + number * (begin + off - x), 0.0)
        for places, number in ((places0, n0), (places1, n1))
    )
    c = m * (n1 * (1 - x) - o1 - n0 * x - o0)
    size = m * (n1 * (1 - x) - o1 + n0 * x + o0 + rows * off)
    first = m * ((1 - x) * o1 - x * o0) / h
    apart = r / h
    second = apart.square() / 2 * apart.exp()
    total = float((size * second + m * rows * (off * (1 + 1 / h) + r.square() / h)).sum()) + ROUNDED
    below, above = _beside(x, c + first, h)[0], _beside(x, c - first, h)[1]
    P, D = below + c + above, (above - below) / h  # noqa: N806
    # By how much P and D of a row may differ from these.
    slope = total / h + apart / h * ((P - c).abs() + total) + second / h
    slope0, slope1 = (
        slope + torch.where(r > 0, (size - m * (away - r)).clamp(min=0) / h, 0.0)
        for away in (x, 1 - x)  # of a row from its label: its own residual is no other's
    )
    potential = total + r * (D.abs() + total / h) + second + 2 * size * apart + m * rows * off
    near0, near1 = -x * (D + own) - P, (1 - x) * (D + own) - P
    sums = (
        c * P - own * m * (n0 * x.square() + n1 * (1 - x).square()),
        size * potential + m * rows * (off * P.abs() + 2 * own * r),
        n0 * near0.square() + n1 * near1.square(),
        rows * (r * (D.abs() + own)).square(),
        n0 * ((x + r) * slope0).square() + n1 * ((1 - x + r) * slope1).square(),
        rows * potential.square(),
        rows * (D.abs() + P.abs() + own).square(),
    )
    pairs = torch.zeros(CELLS, dtype=torch.int64)
    pairs[cell] = torch.stack((P, D), dim=1).float().view(torch.int64).squeeze(1)
    return Sums(*(float(part.sum()) for part in sums)), pairs


def _places(cell: Tensor, plan: Plan) -> tuple[Tensor, ...]:
    """Return the middles of cells, half their widths, and what their places are counted in.

    The latter are the first float of the cell, as it was before a mark cut it, the distance of its
    floats, and how many of them share a place.
    """
    at = torch.searchsorted(_unpacked(plan.stretch)[0], cell, right=True) - 1
    first, width, mark = _unpacked(plan.stretch[at])
    number = cell - first
    cut = (mark & FLOATS) >> width  # the cell that the mark cuts in three
    parts = (number > cut).long() + (number > cut + 1).long()
    parts = torch.where(mark == NO_MARK, 0, parts)
    begin = (number - parts) << width
    low, high = begin, begin + (1 << width) - 1
    here = (mark != NO_MARK) & (number - parts == cut)
    mark = mark & FLOATS
    low = torch.where(here & (parts > 0), mark + parts - 1, low)
    high = torch.where(here & (parts < 2), mark + parts - 1, high)
    unit = torch.ldexp(
        torch.ones_like(at, dtype=torch.float64), (at >> (23 - STRETCH)).clamp(min=1) - 150
    )
    base = (at << STRETCH).int().view(torch.float32).double()
    step = (1 << (width - PLACE_BITS).clamp(min=0)).double()
    half = (unit * (high - low) / 2).clamp(min=0)
    return base + unit * (low + high) / 2, half, base + unit * begin, unit, step


def _beside(x: Tensor, c: Tensor, h: float) -> tuple[Tensor, Tensor]:
    """Return the sums of c e^(-|x - x'|/h) over the cells below each and over those above it."""
    value, slope = np.empty(len(x)), np.empty(len(x))
    _kernels.laplace.sums(x.numpy(), c.numpy(), h, value, slope, np.empty(0))
    others, difference = torch.from_numpy(value) - c, h * torch.from_numpy(slope)
    return (others - difference) / 2, (others + difference) / 2


def gradient(prob: Tensor, label: Tensor, plan: Plan, pairs: Tensor, *, unbiased: bool) -> Tensor:
    """Return the gradient of each row."""
    n = len(prob)
    cell, _ = _located(prob, plan)
    P, D = pairs[cell].view(torch.float32).view(-1, 2).double().T  # noqa: N806
    own = 1 / n if unbiased else 0.0
    scale = 2 / (n - 1) if unbiased else 2 / n
    residual: Tensor = label.double() - prob.double()
    return residual.mul_(D + own).sub_(P).mul_(scale).to(prob.dtype)
