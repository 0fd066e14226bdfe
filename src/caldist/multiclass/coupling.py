r"""An upper bound of the lower distance of several classes: an explicit coupling, recalibrated.

*Any* shares π_im ≥ 0 of row i to group m, Σ_m π_im = 1, become calibrated when every group's
prediction is the mean label that it receives. Their cost Σ π_im TV(v_i, ȳ_m) is then an upper bound
of ldCE_k, certain whatever found the shares. Here Bregman projections find them (see the kernel
``coupling``), and groups move towards the labels that they receive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caldist._util.types import Integers, Vector
from caldist.data.class_rows import ClassRows
from caldist.kernels.loader import coupling
from caldist.multiclass.smooth import in_chunks, nearest

_EPSILONS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.0025)
_FINE = (0.2, 0.14, 0.1, 0.07, 0.05, 0.035, 0.025, 0.018, 0.012, 0.009, 0.006, 0.0045, 0.003, 0.002)
_FEW = 3_000  # rows up to which these gain more than they cost
_ITERATIONS = 25
_FLOOR = 1e-3  # probabilities of a group below this are 0: it would want a little of every class
_MOST = 1e80  # of a multiplier
_ROWS = (2_000, 300, 40)  # groups that begin at rows, at three scales
_SCALES = (4, 16, 64, 256)  # neighbours whose labels and predictions are averaged
_ANCHORS = 1_000
_ARCS = (10, 60)  # of a row to the groups of one scale, at least and at most
_ALL_ARCS = 200_000  # of all rows to the groups of one scale
_POOL = 20_000  # rows that neighbours are looked for among
_LEAST = 1e-12  # shares below this go to the row's largest


@dataclass(frozen=True, eq=False)
class Shares:
    """Which share of a row goes to which group; those of a row add up to 1.

    ``target`` is the mean label that each group receives, ``cost`` what the moves cost.
    """

    row: Integers
    group: Integers
    share: Vector
    target: Vector
    cost: float


def couple(rows: ClassRows, rng: np.random.Generator | None = None) -> Shares:
    """Find shares of small cost."""
    dense, label, k = rows.dense, rows.label, rows.n_classes
    rng = np.random.default_rng(0) if rng is None else rng
    centre, arc = _groups(rows, rng)
    # Classes that no arc brings to a group cannot be wanted there.
    brought = np.zeros(centre.shape, dtype=bool)
    brought[arc.ravel(), np.repeat(label, arc.shape[1])] = True
    centre = _normalised(np.where(brought, centre, 0.0), brought)
    corner = 1 - rows.own
    distance, affinity = np.empty(arc.shape), np.empty((arc.shape[0], arc.shape[1] + 1))
    share, received = np.empty(affinity.shape), np.empty(centre.shape)
    multiplier = np.where(centre > 0, 1.0, 0.0)
    best, best_cost, before = _alone(rows), float(rows.share @ corner), 0.0
    _arc_distances(dense, centre, arc, distance)
    for epsilon in _FINE if rows.n_rows <= _FEW else _EPSILONS:
        if before:
            with np.errstate(divide="ignore", over="ignore"):
                scaled = np.exp(np.clip(np.log(multiplier) * (before / epsilon), -180.0, 180.0))
            multiplier = np.where(multiplier > 0, scaled, 0.0)
        before = epsilon
        coupling.affinities(distance, corner, epsilon, affinity)
        for _ in range(_ITERATIONS):
            coupling.shares(label, rows.share, arc, affinity, multiplier, share, received)
            coupling.project(centre, received, _MOST, multiplier)
        mass = received.sum(axis=1)
        live = mass > 1e-12
        mean = np.divide(received, mass[:, None], out=centre.copy(), where=live[:, None])
        _arc_distances(dense, mean, arc, distance)
        cost = float(rows.share @ ((share[:, :-1] * distance).sum(axis=1) + share[:, -1] * corner))
        if cost < best_cost:
            best, best_cost = (arc, share.copy()), cost
        moved = mass > 1e-3 / rows.n_rows
        centre[moved] = 0.5 * (centre[moved] + mean[moved])
        _arc_distances(dense, centre, arc, distance)
    return _collect(rows, *best, centre.shape[0], k)


def _alone(rows: ClassRows) -> tuple[Integers, Vector]:
    """Every row goes to the corner of its class."""
    return np.zeros((rows.n_rows, 1), dtype=np.int64), np.tile([0.0, 1.0], (rows.n_rows, 1))


def _groups(rows: ClassRows, rng: np.random.Generator) -> tuple[Vector, Integers]:
    """Return where groups begin, and the groups that rows have arcs to."""
    dense, n, k = rows.dense, rows.n_rows, rows.n_classes
    order = rng.permutation(n)
    centres: list[Vector] = []
    arcs: list[Integers] = []

    def add(centre: Vector, few: int) -> None:
        centre = np.where(centre < _FLOOR, 0.0, centre)
        centre /= centre.sum(axis=1, keepdims=True)
        which, _ = nearest(dense, centre, few)
        arcs.append(which + sum(part.shape[0] for part in centres))
        centres.append(centre)

    few = min(_ARCS[1], max(_ARCS[0], _ALL_ARCS // n))
    for count in _ROWS:
        add(dense[order[:count]], few)
    pool = order[:_POOL]
    near_rows, near_label = dense[pool], rows.label[pool]
    for scale in _SCALES:
        if scale > n // 2:
            break
        count = min(_ANCHORS, max(2 * pool.size // scale, 20), pool.size)
        anchors = rng.choice(pool.size, count, replace=False)
        which, _ = nearest(near_rows[anchors], near_rows, scale)
        means = np.zeros((count, k))
        for step in range(which.shape[1]):
            means += 0.5 / which.shape[1] * near_rows[which[:, step]]
            means[np.arange(count), near_label[which[:, step]]] += 0.5 / which.shape[1]
        add(means, few)
    return np.vstack(centres), np.ascontiguousarray(np.hstack(arcs))


def _normalised(centre: Vector, brought: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Vector:
    total = centre.sum(axis=1, keepdims=True)
    even = brought / np.maximum(brought.sum(axis=1, keepdims=True), 1)
    even[:, 0] += even.sum(axis=1) == 0
    return np.ascontiguousarray(np.where(total > 0, centre / np.where(total > 0, total, 1.0), even))


def _arc_distances(dense: Vector, centre: Vector, arc: Integers, distance: Vector) -> None:
    def work(rows: slice) -> None:
        coupling.arc_distances(dense[rows], centre, arc[rows], distance[rows])

    in_chunks(work, dense.shape[0])


def _collect(rows: ClassRows, arc: Integers, share: Vector, groups: int, k: int) -> Shares:
    """Write shares as triples, leaving out small ones; the corners become groups of their own."""
    group = np.hstack((arc, groups + rows.label[:, None]))
    kept = share > _LEAST
    kept[np.arange(rows.n_rows), share.argmax(axis=1)] = True
    at = np.nonzero(kept)
    row = at[0].astype(np.int64)
    used, number = np.unique(group[at], return_inverse=True)
    values = share[at]
    values = values / np.bincount(row, values, rows.n_rows)[row]
    return recalibrated(rows, row, number.reshape(-1).astype(np.int64), values, used.size, k)


def recalibrated(
    rows: ClassRows, row: Integers, group: Integers, share: Vector, groups: int, k: int
) -> Shares:
    """Give every group the mean label that it receives, and add up the cost."""
    mass = rows.share[row] * share
    received = np.bincount(group * k + rows.label[row], mass, groups * k).reshape(groups, k)
    total = received.sum(axis=1, keepdims=True)
    target = np.divide(received, total, out=np.zeros_like(received), where=total > 0)
    cost = 0.0
    for start in range(0, row.size, 100_000):
        part = slice(start, start + 100_000)
        apart = np.abs(rows.dense[row[part]] - target[group[part]]).sum(axis=1)
        cost += 0.5 * float(mass[part] @ apart)
    return Shares(row, group, share, target, cost)
