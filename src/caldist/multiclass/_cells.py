r"""Upper limits of the distance of several classes: the cost of maps that are constant on cells.

For a fixed partition of the simplex with μ_c = E[y | c] the map κ(v) = μ_c(v) is exactly
calibrated, so the distance is at most its cost U = E TV(v, μ_c(v)). On a sample μ_c is estimated
without the row itself: that is independent of v_i and has mean μ_c, so by convexity the estimated
cost is at least U on average. Its error is that of one mean, with
D_cj = ½ E[sign(μ_cj - v_j) | c] and

    ψ = TV(v, μ_c) + ⟨D_c, y - μ_c⟩.

Cells are the leaves of a tree that cuts the widest class in two where the parts vary least, made
from the predictions alone, so labels select nothing. (Halves would be cut where most rows are, and
most probabilities of a class are all but 0.) Several sizes of leaves are tried, each with its part
of the risk.
"""

from __future__ import annotations

import math

import numpy as np

from caldist._util.types import Integers, Vector
from caldist.data.class_rows import ClassRows, sums_by
from caldist.inference._limits import normal_quantile

_LEAVES = (32, 128, 512, 2_048)  # rows of a leaf; and one leaf for all
_ALONE = 1e-12  # the share of a cell that rounding may leave without a row


def upper_limit(rows: ClassRows, risk: float) -> float:
    """Return a number below which the distance lies, but for a probability ``risk``."""
    sizes = [size for size in _LEAVES if 2 * size <= rows.n_rows]
    risk /= len(sizes) + 1
    z, extra = -normal_quantile(risk), math.log(1 / risk) * float(rows.share.max()) / 3
    limits = [1.0]
    cells = [np.zeros(rows.n_rows, dtype=np.int64), *(leaves(rows.dense, s) for s in sizes)]
    for cell in cells:
        cost, error = cell_cost(rows, cell)
        limits.append(cost + z * error + extra)
    return min(limits)


def leaves(dense: Vector, size: int) -> Integers:
    """Return the leaf of each row in a tree, of ``size`` rows or more unless equal rows say no."""
    cell = np.zeros(dense.shape[0], dtype=np.int64)
    waiting, number = [np.arange(dense.shape[0])], 0
    while waiting:
        rows = waiting.pop()
        part = dense[rows]
        spread = np.abs(part - part.mean(axis=0)).mean(axis=0)
        column = part[:, int(spread.argmax())]
        # Rounding of the mean gives equal rows a spread.
        if rows.size < 2 * size or column.min() == column.max():
            cell[rows] = number
            number += 1
            continue
        left = column < _cut(column, size)
        waiting += [rows[left], rows[~left]]
    return cell


def _cut(values: Vector, least: int) -> float:
    """Return where two parts vary least, of at least so many rows each if ties allow that."""
    v = np.sort(values)
    before = np.arange(1, v.size)
    away = np.cumsum(v - v.mean())[:-1]
    between = np.where(v[1:] > v[:-1], away**2 / (before * (v.size - before)), -1.0)
    allowed = slice(least - 1, v.size - least)
    if between[allowed].max() < 0:
        allowed = slice(0, v.size - 1)
    return float(v[allowed.start + 1 + int(between[allowed].argmax())])


def cell_cost(rows: ClassRows, cell: Integers) -> tuple[float, float]:
    """Return the cost of the map to the cells' mean labels, each without the row, and its error."""
    k, share, label = rows.n_classes, rows.share, rows.label
    count = int(cell.max()) + 1
    received = np.bincount(cell * k + label, share, count * k).reshape(count, k)
    mass = np.bincount(cell, share, count)
    mean = received / np.maximum(mass, 1e-300)[:, None]
    rest = mass[cell] - share
    alone = rest <= _ALONE * mass[cell]
    rest = np.where(alone, 1.0, rest)
    cost, psi = np.zeros(rows.n_rows), np.zeros(rows.n_rows)
    for j, v in enumerate(rows.columns()):
        true = label == j
        others = (received[cell, j] - share * true) / rest
        cost += 0.5 * np.abs(v - others)
        apart = mean[cell, j] - v
        slope = sums_by(cell, share * 0.5 * np.sign(apart), count)
        slope /= np.maximum(mass, 1e-300)
        psi += 0.5 * np.abs(apart) + slope[cell] * (true - mean[cell, j])
    cost = np.where(alone, 1.0, cost)  # of a row alone: as far as can be
    value = float(share @ cost)
    centred = psi - float(share @ psi)
    return value, math.sqrt(float(share**2 @ centred**2))
