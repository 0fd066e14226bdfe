r"""Bounds of second order: what a grid with sums of squares leaves certain about each measure.

Notation as in :mod:`caldist.data.within_cells`: the residuals of the rows are deposited linearly on
the edges of their cells, and S is their running sum. Every function returns the two ends of an
interval that contains the value on the rows. Flooring of the sums is charged to it.
"""

from __future__ import annotations

import math

import numpy as np

from caldist._util.products import dot
from caldist.data.grid import PLACE_BITS, Grid
from caldist.data.within_cells import WithinCells, folding_excess
from caldist.kernels.loader import laplace as laplace_kernel
from caldist.kernels.loader import smooth
from caldist.measures import _passes

Interval = tuple[float, float]

_UNIT = 2.0**-PLACE_BITS
_SECOND_DERIVATIVE = 4 / math.sqrt(2 * math.pi * math.e)  # of the normal density, its L1 norm


def smooth_ce(within: WithinCells) -> Interval:
    r"""Enclose smCE.

    Below: a Lipschitz function on the edges, continued linearly, is one on the rows. Above: smCE is
    \|T\| plus the least of ∫\|S - x\| over monotone x, and an x that is best for the deposit will
    do. In a cell the integral exceeds \|∫(S - x)\| only if S can cross x there.
    """
    curve = np.empty(within.node.size)
    value = float(smooth.smooth_ce(within.node, within.deposit, curve))
    crossing = folding_excess(within.mean, within.low, within.high, curve[:-1])
    excess = dot(within.length, np.minimum(crossing, 2 * within.bend))
    return value - within.slack, value + excess + within.slack


def laplace(within: WithinCells, width: float) -> Interval:
    r"""Enclose kCE of the Laplace kernel of bandwidth 1.

    With c the residuals, d their deposit and Δ = c - d, ‖c‖² = ‖d‖² + 2⟨Δ, h⟩ + ‖Δ‖², h being d
    smoothed by the kernel. Within a cell h'' = h, so h is largest in size at an edge and within
    \|h\| H² f (1 - f)/2 of its chord, and Δ does not see the chord. The primitive of Δ is S less
    its mean, and ‖Δ‖² at most twice the integral of its square.
    """
    node, deposit = within.node, within.deposit
    squared = _passes.laplace_squared(node, deposit, 1.0)
    potential = np.empty_like(node)
    laplace_kernel.sums(node, deposit, 1.0, potential, np.empty(0), np.empty(0))
    # Flooring moves a residual of size 1 at most by a unit of the cell, or adds one to it.
    slack = width * _UNIT + 4 * math.sqrt(2 * width) * _UNIT
    smoothed = np.abs(potential) + slack
    cross = width**2 * dot(np.maximum(smoothed[:-1], smoothed[1:]), within.bend)
    own = 2 * float(within.variance().sum())
    lower, upper = math.sqrt(max(0.0, squared - cross)), math.sqrt(max(0.0, squared) + cross + own)
    return lower - slack, upper + slack


def random_interval(within: WithinCells, width: float) -> Interval:
    r"""Enclose RintCE: the integral of \|D\|/width, D(t) = S(t + width) - S(t).

    The deposit's D, here d, is constant on the pieces between edges and edges shifted by the width.
    With s its sign, ∫\|D\| >= ∫ s D, where the difference of S from its mean matters only in cells
    in which s changes. And \|D\| = s D on all pieces where D cannot change its sign.

    On the others \|D\| - s D is twice what x = s (d - D) has above \|d\|. As x <= r, by the range
    of S, that is at most 2 (r - \|d\|), and at most 2 (1 - \|d\|/r) times the positive part of x.
    The integral of this part is at most half the deviations of the two cells, in each of which
    S - mean integrates to 0.
    """
    node = within.node
    ends = within.sums()
    move = np.concatenate(([0.0], within.deviation(), [0.0]))
    above = np.concatenate(([0.0], within.high - within.mean, [0.0]))
    below = np.concatenate(([0.0], within.mean - within.low, [0.0]))
    place = np.concatenate((node - width, node))
    order = np.argsort(place, kind="stable")
    length = np.diff(place[order])
    entering = order < node.size
    passed = np.flatnonzero(length > 0)
    right = np.cumsum(entering)[passed]
    left = passed + 1 - right
    length = length[passed]
    difference = ends[right] - ends[left]
    positive = difference > 0
    change = positive[1:] != positive[:-1]
    turning = float(
        move[right[1:][change & (right[1:] == right[:-1])]].sum()
        + move[left[1:][change & (left[1:] == left[:-1])]].sum()
    )
    error = dot(length, np.abs(difference))
    reach = np.where(positive, below[right] + above[left], above[right] + below[left])
    unsure = np.flatnonzero((reach >= np.abs(difference)) & (reach > 0))
    right, left, length, reach = right[unsure], left[unsure], length[unsure], reach[unsure]
    beyond = reach - np.abs(difference[unsure])
    crossing = np.minimum(2 * length * beyond, beyond / reach * (move[right] + move[left]))
    # Where a piece is a whole cell on both sides, the mean of D is known too.
    size = np.concatenate(([0.0], np.where(within.bend > 0, within.length, 0.0), [0.0]))
    whole = (length >= size[right]) & (length >= size[left])
    low = np.concatenate(([0.0], within.low, ends[-1:]))
    high = np.concatenate(([0.0], within.high, ends[-1:]))
    folded = folding_excess(
        difference[unsure], low[right] - high[left], high[right] - low[left], np.zeros(unsure.size)
    )
    crossing[whole] = np.minimum(crossing, length * folded)[whole]
    turning += within.slack
    return (error - turning) / width, (error + turning + float(crossing.sum())) / width


def dyadic_interval(within: WithinCells, width: float) -> Interval:
    """Bound RintCE from below by that of the deposit; the other end is the same without cells.

    For widths that are whole numbers of cells D has the deposit's D as its mean in every cell, and
    the integral of a size is at least the size of the integral.
    """
    error = _passes.random_interval_ce(within.node, within.sums(), width)
    return error - within.slack / width, error


def averaged_two_bin(within: WithinCells) -> Interval:
    """Enclose ATB: the integral of S² is that of the squared means plus the variance in cells."""
    node, mean = within.node, within.mean
    total = float(within.deposit.sum())
    value = dot(within.length, mean**2 + (total - mean) ** 2)
    value += (node[0] + 1 - node[-1]) * total**2
    return value - within.slack, value + 2 * float(within.variance().sum()) + within.slack


def smoothing_change(within: WithinCells, width: float) -> tuple[float, float]:
    """Bound how far the L1 norm of the deposit smoothed by a Gaussian is from that of the rows.

    Returns a and b, for at most a/σ² + b/σ at every width σ: a Gaussian differs from its chord over
    a cell by the second derivative times H² f (1 - f)/2, and flooring moves rows by a unit.
    """
    bend = float(within.bend.sum())
    return _SECOND_DERIVATIVE * width**2 / 2 * bend, within.slack


def brier(grid: Grid, total: float) -> Interval:
    """Enclose the Brier score, of which only flooring is unknown."""
    width = grid.width
    start = grid.cell * width
    value = below = above = 0.0
    for label, (count, first, second) in enumerate(grid.fractions()):
        assert second is not None  # noqa: S101 -- only called for grids with squares
        gap = label - start  # of which v takes width f
        value += float((count * gap**2 - 2 * gap * width * first + width**2 * second).sum())
        slope = float((2 * np.abs(gap) * count).sum()) * width * _UNIT
        below, above = (below, above + slope) if label == 0 else (below + slope, above)
        above += 2 * width**2 * _UNIT * float(count.sum())
    return (value - below) / total, (value + above) / total
