"""Smooth curves through labels: loess and lowess as R has them, as linear maps of residuals.

A smoother is linear in what it smooths, and both reproduce straight lines. So the calibration curve
minus the diagonal is the smoother applied to the residuals y − v: a few coefficients, each the mean
of a function of the prediction times the residual, and a curve between them. From these functions
follow standard errors that respect weights and clusters.

Notation: x the distinct predictions, m their masses, h the half width of a window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from caldist._util.products import dot
from caldist._util.types import Vector
from caldist.kernels.arrays import prefix_sums

SmootherName = Literal["loess", "lowess"]

_LOESS_SPAN, _LOESS_CELL, _LOESS_MARGIN = 0.75, 0.2, 0.005  # the defaults of loess in R
_LOWESS_SPAN, _LOWESS_STEP = 2 / 3, 0.01  # those of lowess; the step is a share of the range
_INNER, _OUTER = 0.001, 0.999  # lowess: shares of h within which the weight is 1, beyond which 0
_ROUNDING = 1e-9
_QUADRATIC = 3  # predictions that a parabola goes through
_HALVINGS = 80


@dataclass(frozen=True, eq=False)
class Smoother:
    """A linear smoother: coefficients at nodes, and a curve between them.

    Attributes
    ----------
    node
        Where local curves are fitted, increasing.
    width
        h at each node.
    inverse
        For each coefficient the numbers that make its function out of 1, t and t² times the
        window's weight, t = (x − node)/h.
    place
        The node of each coefficient. With ``slopes`` all values come first, then all slopes.
    slopes
        Whether the curve between nodes is the cubic of values and slopes, or a straight line.
    """

    node: Vector
    width: Vector
    inverse: NDArray[np.float64]
    place: NDArray[np.int64]
    slopes: bool

    def functions(self, x: Vector) -> NDArray[np.float64]:
        """Return each coefficient's function at each prediction, of shape (coefficients, x)."""
        found = np.empty((self.place.size, x.size))
        for place in range(self.node.size):  # a value and a slope share a window
            window = self._window(place, x)
            for at in np.flatnonzero(self.place == place).tolist():
                found[at] = self._function(at, *window)
        return found

    def function(self, at: int, x: Vector) -> Vector:
        """Return the function of one coefficient at each prediction."""
        return self._function(at, *self._window(int(self.place[at]), x))

    def _window(self, place: int, x: Vector) -> tuple[Vector, Vector]:
        return _window(x, self.node[place], self.width[place], cut=not self.slopes)

    def _function(self, at: int, t: Vector, weight: Vector) -> Vector:
        one, linear, square = self.inverse[at]
        return np.asarray(weight * (one + t * (linear + t * square)))

    def curve(self, coefficient: NDArray[np.float64], x: Vector) -> NDArray[np.float64]:
        """Return the curve of coefficients, a column for each curve, at predictions."""
        if self.node.size == 1:
            return np.repeat(coefficient[:1], x.size, axis=0)
        left = np.clip(np.searchsorted(self.node, x, side="right") - 1, 0, self.node.size - 2)
        step = (self.node[left + 1] - self.node[left])[:, None]
        u = (x - self.node[left])[:, None] / step
        if not self.slopes:
            return np.asarray((1 - u) * coefficient[left] + u * coefficient[left + 1])
        value, slope = coefficient[: self.node.size], coefficient[self.node.size :]
        levels = (1 - u) ** 2 * (1 + 2 * u) * value[left] + u**2 * (3 - 2 * u) * value[left + 1]
        leanings = u * (1 - u) ** 2 * slope[left] - u**2 * (1 - u) * slope[left + 1]
        return np.asarray(levels + step * leanings)


def smoother_of(name: SmootherName, x: Vector, mass: Vector, n_rows: int) -> Smoother:
    """Return the smoother of predictions with masses, of so many rows.

    A window holds a share of the rows. Rows with weights count as much as their weights, in units
    of the mean weight. Up to three predictions are not smoothed: the curve goes through the rates.
    """
    if x.size <= _QUADRATIC:
        return _rates(x, mass)
    return _loess(x, mass, n_rows) if name == "loess" else _lowess(x, mass, n_rows)


def _loess(x: Vector, mass: Vector, n_rows: int) -> Smoother:
    """Local parabolas at the corners of a tree of cells, and cubics between (Cleveland, Grosse)."""
    below = prefix_sums(mass)
    unit = below[-1] / n_rows
    node = _corners(x, below / unit, n_rows)
    reach = math.floor(n_rows * _LOESS_SPAN + 1e-5) * unit
    width = _reach(x, below, node, reach)
    inverse = np.empty((2 * node.size, 3))
    for at in range(node.size):
        width[at] = max(width[at], _holding(x, node[at]))
        t, weight = _window(x, node[at], width[at], cut=False)
        weight *= mass
        sums = [float(weight.sum())]
        for _ in range(4):
            weight *= t
            sums.append(float(weight.sum()))
        moments = np.array([sums[k : k + 3] for k in range(3)])
        solved = np.linalg.pinv(moments, rcond=1e-14, hermitian=True)
        inverse[at], inverse[node.size + at] = solved[0], solved[1] / width[at]
    return Smoother(node, width, inverse, np.tile(np.arange(node.size), 2), slopes=True)


def _corners(x: Vector, rows: Vector, n_rows: int) -> Vector:
    """Return the ends of the cells: each is cut at its middle row until it has few rows.

    ``rows`` are the rows up to each prediction, from 0 on. Rows of one prediction stay together.
    """
    few = math.floor(n_rows * _LOESS_SPAN * _LOESS_CELL + _ROUNDING) + _ROUNDING
    margin = _LOESS_MARGIN * (x[-1] - x[0])
    ends = [x[0] - margin, x[-1] + margin]
    cells = [(0, x.size)]
    while cells:
        first, last = cells.pop()
        if rows[last] - rows[first] <= few or last - first == 1:
            continue
        middle = math.floor((rows[first] + rows[last] + 1) / 2 + _ROUNDING)
        distance = np.abs(rows[first + 1 : last] - middle)
        # Of two cuts that are as near, the later one.
        cut = last - 1 - int(np.argmin(distance[::-1]))
        ends.append(x[cut - 1])
        cells += [(first, cut), (cut, last)]
    return np.unique(ends)


def _lowess(x: Vector, mass: Vector, n_rows: int) -> Smoother:
    """Local lines a hundredth of the range apart, without robust steps, and lines between."""
    below = prefix_sums(mass)
    reach = math.floor(n_rows * _LOWESS_SPAN + 1e-7) * below[-1] / n_rows
    span = x[-1] - x[0]
    chosen = [0]
    while chosen[-1] < x.size - 1:
        last = chosen[-1]
        beyond = int(np.searchsorted(x, x[last] + _LOWESS_STEP * span, side="right"))
        chosen.append(max(last + 1, beyond - 1))
    node = x[chosen]
    width = _reach(x, below, node, reach)
    inverse = np.zeros((node.size, 3))
    for at in range(node.size):
        t, weight = _window(x, node[at], width[at], cut=True)
        share = weight * mass
        total = share.sum()
        mean = dot(share, t) / total
        variance = dot(share, (t - mean) ** 2) / total
        lean = 0.0
        if math.sqrt(variance) * (width[at] or 1.0) > _INNER * span:
            lean = -mean / variance
        inverse[at, :2] = (1 - lean * mean) / total, lean / total
    return Smoother(node, width, inverse, np.arange(node.size), slopes=False)


def _rates(x: Vector, mass: Vector) -> Smoother:
    """Return the curve through the rate at each prediction."""
    inverse = np.zeros((x.size, 3))
    inverse[:, 0] = 1 / mass
    return Smoother(x, np.zeros(x.size), inverse, np.arange(x.size), slopes=False)


def _window(x: Vector, node: Any, width: Any, *, cut: bool) -> tuple[Vector, Vector]:
    """Return t = (x − node)/h and the tricube weights; ``cut`` as lowess rounds them off."""
    t = x - node
    t /= width or 1.0
    distance = np.abs(t)
    inside = np.minimum(distance, 1.0, out=None if cut else distance)
    weight = inside * inside
    weight *= inside
    np.subtract(1, weight, out=weight)
    np.multiply(weight, weight, out=inside)
    weight *= inside
    if cut:
        weight = np.where(distance <= _INNER, 1.0, np.where(distance <= _OUTER, weight, 0.0))
        if not width:
            weight = (distance == 0).astype(np.float64)
    return t, weight


def _reach(x: Vector, below: Vector, node: Vector, mass: float) -> Vector:
    """Return the least distance from each node within which there is so much mass."""
    low, high = np.zeros(node.size), np.maximum(np.abs(x[0] - node), np.abs(x[-1] - node))
    enough = mass * (1 - _ROUNDING)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        first = np.searchsorted(x, node - middle, side="left")
        last = np.searchsorted(x, node + middle, side="right")
        reached = below[last] - below[first] >= enough
        high = np.where(reached, middle, high)
        low = np.where(reached, low, middle)
    return np.asarray(high)


def _holding(x: Vector, node: float) -> float:
    """Return the distance to the fourth nearest prediction, within which three lie."""
    nearest = np.searchsorted(x, node)
    around = x[max(0, nearest - 4) : nearest + 4]
    return float(np.sort(np.abs(around - node))[_QUADRATIC])
