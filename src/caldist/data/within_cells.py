r"""What the sums of a grid say about the residuals inside its cells.

S(t) is the sum of the residuals e = y - v of all rows with v <= t, divided by the total mass. At
the edges of cells it is known. Within a cell [a, b] of width H, positive residuals P and negative
ones N raise and lower it, so it stays between S(a) - N and S(a) + P.

Depositing each residual on the two edges around it, e (1 - f) on a and e f on b, f = (v - a)/H,
keeps totals and first moments. It needs the sums of f and f². A function that is linear in each
cell has the same mean under the deposit as under the rows, and the running sum of the deposit is,
in each cell, the mean of S over it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caldist._util.types import Vector


@dataclass(frozen=True, eq=False)
class WithinCells:
    r"""The deposited residuals and the range of S, on the stretches between the edges.

    A stretch is a cell with rows or a gap between such cells, where S is constant.

    Attributes
    ----------
    node, deposit
        The edges of cells with rows, and the residual deposited on each.
    length, mean, low, high
        Per stretch: its length, the mean of S, and what S lies between. Flooring has been charged
        to ``low`` and ``high``.
    bend
        Per stretch: a bound on the sum of \|e\| f (1 - f).
    slack
        Flooring leaves integrals of S and of \|S - x\| over [0, 1] off by no more.
    """

    node: Vector
    deposit: Vector
    length: Vector
    mean: Vector
    low: Vector
    high: Vector
    bend: Vector
    slack: float

    def sums(self) -> Vector:
        """Return the running sums of the deposit: before the first edge, between, and after."""
        return np.concatenate(([0.0], self.mean, [float(self.deposit.sum())]))

    def deviation(self) -> Vector:
        r"""Bound the integral of \|S - mean\| over each stretch.

        By the chord over [low, high]; and by the functions W of slope ±1 that attain it, which
        differ from their chord over the cell by at most 2 H f (1 - f).
        """
        spread = folding_excess(self.mean, self.low, self.high, self.mean)
        return np.asarray(self.length * np.minimum(spread, 2 * self.bend))

    def variance(self) -> Vector:
        """Bound the integral of (S - mean)² over each stretch."""
        return np.asarray(self.length * (self.high - self.mean) * (self.mean - self.low))


def folding_excess(mean: Vector, low: Vector, high: Vector, level: Vector) -> Vector:
    r"""Bound E\|X - level\| - \|mean - level\| for X between ``low`` and ``high``.

    \|X - level\| lies below its chord, whose mean depends on X only through its mean. There is
    no excess where X stays on one side of the level.
    """
    width = high - low
    excess: Vector = 2 * np.minimum((high - mean) * (level - low), (mean - low) * (high - level))
    np.divide(excess, width, out=excess, where=width > 0)
    return np.maximum(excess, 0.0, out=excess)
