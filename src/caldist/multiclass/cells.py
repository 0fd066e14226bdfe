r"""Upper limits of the distance of several classes: the cost of maps that are constant on cells.

For a fixed partition of the simplex with μ_c = E[y | c] the map κ(v) = μ_c(v) is exactly
calibrated, so the distance is at most its cost U = E TV(v, μ_c(v)). On a sample μ_c is estimated
without the row itself: that is independent of v_i and has mean μ_c, so by convexity the estimated
cost is at least U on average. Its error is that of one mean, with D_cj a slope of
m ↦ ½ E[|v_j - m| | c] near μ_cj and

    ψ = TV(v, μ_c) + ⟨D_c, y - μ_c⟩.

The slopes are those of secants over the error of the mean label, as in
:mod:`caldist.inference.cells`, for each class the one above or the one below, whichever make ψ
vary most.

Cells are the leaves of a tree that cuts the widest class in two where the parts vary least, made
from the predictions alone, so labels select nothing. (Halves would be cut where most rows are, and
most probabilities of a class are all but 0.) Of all prunings the one is taken that would cost least
if predictions were calibrated: for each class the spread of the predictions in a cell, and the
noise of its mean label. Two weights of the noise are tried, each with half the risk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from caldist._util.types import Integers, Vector
from caldist.data.class_rows import ClassRows, sums_by
from caldist.inference.cells import secants
from caldist.inference.limits import normal_quantile

_ALL = 6  # classes of which all choices of slopes are tried
_STARTS = 9  # choices from which others are looked for, for each of four orders
_NOISE = (1.0, 2.0)  # weights of the noise of mean labels
_PSEUDO = 0.02  # rows of any label in every cell: certain predictions may be wrong
_LEAST = 2  # rows of a cell
_CELLS = 4_096  # so many cells of equal size are never cut further
_ALONE = 1e-12  # the share of a cell that rounding may leave without a row


def upper_limit(rows: ClassRows, risk: float) -> float:
    """Return a number below which the distance lies, but for a probability ``risk``."""
    risk /= len(_NOISE)
    z, finite_sample_term = -normal_quantile(risk), math.log(1 / risk) * float(rows.share.max()) / 3
    limits = [1.0]
    for cell in partitions(rows):
        cost, error = cell_cost(rows, cell, z)
        limits.append(cost + z * error + finite_sample_term)
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


def cell_cost(rows: ClassRows, cell: Integers, z: float) -> tuple[float, float]:
    """Return the cost of the map to the cells' mean labels, each without the row, and its error.

    The error is that of a limit that lies ``z`` of it away.
    """
    k, share, label = rows.n_classes, rows.share, rows.label
    count = int(cell.max()) + 1
    own = cell * k + label
    received = np.bincount(own, share, count * k).reshape(count, k)
    mass, square = np.bincount(cell, share, count), np.bincount(cell, share**2, count)
    some = mass > 0
    mean = received / np.where(some, mass, 1.0)[:, None]
    rest = mass[cell] - share
    alone = rest <= _ALONE * mass[cell]
    rest = np.where(alone, 1.0, rest)
    cost, away = np.zeros(rows.n_rows), np.zeros(rows.n_rows)
    above, below = np.zeros((count, k)), np.zeros((count, k))
    effective_size = np.divide(mass**2, square, out=np.zeros(count), where=some)
    for j, v in enumerate(rows.columns()):
        true = label == j
        others = (received[cell, j] - share * true) / rest
        cost += 0.5 * np.abs(v - others)
        away += 0.5 * np.abs(v - mean[cell, j])
        rate = (effective_size * mean[:, j] + 1) / (effective_size + 2)
        seen = np.bincount(cell, share**2 * (true - mean[cell, j]) ** 2, count)
        reach = z * np.sqrt(np.maximum(seen, square * rate * (1 - rate)))
        reach = np.divide(reach, mass, out=np.zeros(count), where=some)
        slopes = secants(v, share, cell, mean[:, j], reach)
        above[:, j], below[:, j] = 0.5 * slopes[0], 0.5 * slopes[1]
    cost = np.where(alone, 1.0, cost)  # of a row alone: as far as can be
    away -= float(share @ away)
    sums = [
        sums_by(own, share**2 * power, count * k).reshape(count, k)
        for power in (1.0, away, away**2)
    ]
    variance = largest_squares(above, below, mean, sums)
    return float(share @ cost), math.sqrt(float(variance.sum()))


def largest_squares(above: Vector, below: Vector, mean: Vector, sums: Sequence[Vector]) -> Vector:
    """Return for each cell the largest sum of squares of ψ over all choices of its slopes.

    Each class has the one ``above`` its mean label or the one ``below``. ``sums`` are those over
    the rows of each cell and label of squared shares, and of these times what the distance from
    the mean label exceeds its mean by, and times its square. Up to ``_ALL`` classes all choices are
    tried. Of more, choices are improved class by class, from each of several to begin with: in
    trials with 9 to 14 classes that found the largest sum in all of 3,000 cells.
    """
    k = above.shape[1]
    zeroth, first, _ = sums
    if k <= _ALL:
        bits = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
        starts = [np.broadcast_to(choice.astype(bool), above.shape) for choice in bits]
        tried = [_squares(np.where(c, above, below), mean, sums) for c in starts]
        return np.asarray(np.max(tried, axis=0))
    own = np.divide(first, zeroth, out=np.zeros_like(first), where=zeroth > 0)
    found = np.zeros(above.shape[0])
    for key in ((above + below) / 2, above, below, mean * (above - below)):
        order = np.argsort(np.argsort(-key - own, axis=1, kind="stable"), axis=1) + 1
        for size in np.unique(np.linspace(0, k, _STARTS).astype(int)):
            found = np.maximum(found, _improved(order <= size, above, below, mean, sums))
    return found


def _improved(
    choice: Vector, above: Vector, below: Vector, mean: Vector, sums: Sequence[Vector]
) -> Vector:
    """Return the sum of squares of a choice, changed one class at a time while it grows."""
    zeroth, first, _ = sums
    total, mass = first.sum(axis=1), zeroth.sum(axis=1)
    choice = choice.copy()
    rows = np.arange(choice.shape[0])
    for _ in range(choice.shape[1]):
        slope = np.where(choice, above, below)
        step = np.where(choice, below, above) - slope
        middle = (mean * slope).sum(axis=1)
        weighed = (zeroth * slope).sum(axis=1)
        moved = mean * step  # of the middle, if one class changes
        gain = (
            2 * (first * step - moved * total[:, None])
            + zeroth * step * (2 * slope + step)
            - 2 * (moved * weighed[:, None] + (middle[:, None] + moved) * zeroth * step)
            + mass[:, None] * moved * (2 * middle[:, None] + moved)
        )
        best = gain.argmax(axis=1)
        better = gain[rows, best] > 1e-12 * mass
        if not better.any():
            break
        choice[rows[better], best[better]] ^= True
    return _squares(np.where(choice, above, below), mean, sums)


def _squares(slope: Vector, mean: Vector, sums: Sequence[Vector]) -> Vector:
    """Return the sum of squares of ψ in each cell for one choice of slopes."""
    zeroth, first, second = sums
    middle = (mean * slope).sum(axis=1)
    found = (
        second.sum(axis=1)
        + 2 * ((first * slope).sum(axis=1) - middle * first.sum(axis=1))
        + (zeroth * slope**2).sum(axis=1)
        - 2 * middle * (zeroth * slope).sum(axis=1)
        + middle**2 * zeroth.sum(axis=1)
    )
    return np.asarray(np.maximum(0.0, found))
