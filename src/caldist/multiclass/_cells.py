r"""Upper limits of the distance of several classes: the cost of maps that are constant on cells.

For a fixed partition of the simplex with μ_c = E[y | c] the map κ(v) = μ_c(v) is exactly
calibrated, so the distance is at most its cost U = E TV(v, μ_c(v)). On a sample μ_c is estimated
without the row itself: that is independent of v_i and has mean μ_c, so by convexity the estimated
cost is at least U on average. Its error is that of one mean, with
D_cj = ½ E[sign(μ_cj - v_j) | c] and

    ψ = TV(v, μ_c) + ⟨D_c, y - μ_c⟩.

Cells are the leaves of a tree that cuts the widest class in two where the parts vary least, made
from the predictions alone, so labels select nothing. (Halves would be cut where most rows are, and
most probabilities of a class are all but 0.) Of all prunings the one is taken that would cost least
if predictions were calibrated: for each class the spread of the predictions in a cell, and the
noise of its mean label. Two weights of the noise are tried, each with half the risk.
"""

from __future__ import annotations

import math

import numpy as np

from caldist._util.types import Integers, Vector
from caldist.data.class_rows import ClassRows, sums_by
from caldist.inference._limits import normal_quantile

_NOISE = (1.0, 2.0)  # weights of the noise of mean labels
_PSEUDO = 0.02  # rows of any label in every cell: certain predictions may be wrong
_LEAST = 2  # rows of a cell
_CELLS = 4_096  # so many cells of equal size are never cut further
_ALONE = 1e-12  # the share of a cell that rounding may leave without a row


def upper_limit(rows: ClassRows, risk: float) -> float:
    """Return a number below which the distance lies, but for a probability ``risk``."""
    risk /= len(_NOISE)
    z, extra = -normal_quantile(risk), math.log(1 / risk) * float(rows.share.max()) / 3
    limits = [1.0]
    for cell in partitions(rows):
        cost, error = cell_cost(rows, cell)
        limits.append(cost + z * error + extra)
    return min(limits)


def partitions(rows: ClassRows) -> list[Integers]:
    """Return the cell of each row, for each weight of the noise."""
    dense, share = rows.dense, rows.share
    nodes, first = _tree(dense, max(_LEAST, rows.n_rows // _CELLS))
    costs = np.zeros((len(nodes), len(_NOISE)))
    for at, node in enumerate(nodes):
        part, weight = dense[node], share[node]
        mass = float(weight.sum())
        if mass == 0:
            continue
        mean = weight @ part / mass
        spread = weight @ np.abs(part - mean) / mass
        squares = float(weight @ weight) / mass**2
        noise = 2 / math.pi * squares * (mean * (1 - mean) + _PSEUDO * squares)
        costs[at] = [mass * float(np.sqrt(spread**2 + a**2 * noise).sum()) for a in _NOISE]
    return [_pruned(rows.n_rows, nodes, first, cost) for cost in costs.T]


def leaves(dense: Vector, size: int) -> Integers:
    """Return the leaf of each row in a tree, of ``size`` rows or more unless equal rows say no."""
    nodes, first = _tree(dense, size)
    ends = [node for node, child in zip(nodes, first, strict=True) if not child]
    cell = np.zeros(dense.shape[0], dtype=np.int64)
    for number, node in enumerate(ends):
        cell[node] = number
    return cell


def _tree(dense: Vector, least: int) -> tuple[list[Integers], list[int]]:
    """Return the rows of each node, parents first, and its first child; 0 for none."""
    nodes, first = [np.arange(dense.shape[0])], []
    for rows in nodes:  # which grows
        part = dense[rows]
        spread = np.abs(part - part.mean(axis=0)).mean(axis=0)
        column = part[:, int(spread.argmax())]
        # Rounding of the mean gives equal rows a spread.
        if rows.size < 2 * least or column.min() == column.max():
            first.append(0)
            continue
        first.append(len(nodes))
        left = column < _cut(column, least)
        nodes += [rows[left], rows[~left]]
    return nodes, first


def _pruned(n_rows: int, nodes: list[Integers], first: list[int], cost: Vector) -> Integers:
    """Return the cells of the cheapest pruning of a tree."""
    best, cut = cost.copy(), np.zeros(cost.size, dtype=bool)
    for at in reversed(range(cost.size)):  # children come after their parents
        if first[at]:
            children = best[first[at]] + best[first[at] + 1]
            cut[at] = children < best[at]
            best[at] = min(best[at], children)
    cell = np.zeros(n_rows, dtype=np.int64)
    waiting, number = [0], 0
    while waiting:
        at = waiting.pop()
        if cut[at]:
            waiting += [first[at], first[at] + 1]
        else:
            cell[nodes[at]] = number
            number += 1
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
