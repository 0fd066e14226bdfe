"""The best partition of a few points into groups, exactly.

A group is replaced by its mean label; what that costs is known for each of the 2^k subsets. Up to
DYNAMIC points a dynamic program over subsets finds the best partition. Up to INTEGER points it is a
set partitioning problem: column generation solves the linear relaxation over all subsets at once,
and an integer program over the few subsets that can still be part of a better partition finishes.
"""

from __future__ import annotations

import numpy as np

from caldist._kernels import COMPILED, partition
from caldist._util.types import Integers, Vector

DYNAMIC = 17 if COMPILED else 12  # 0.1 s
INTEGER = 20

# The solvers' tolerances are absolute, 1e-7 and 1e-6: the partition to beat is scaled to cost this.
_SCALE = 1e4
_NEGLIGIBLE = 1e-5  # reduced costs above minus this are left to the bound, as are tolerances
_PROVED = 1e-5  # a partition that costs at most this much more than the bound is the best
_NEW_COLUMNS = 100  # added to the linear program at a time
# Limits that, unlike one on time, give the same answer everywhere.
_ROUNDS = 40  # of adding columns; some six are usual, and weights of many sizes may need hundreds
_MOST_COLUMNS = 5_000  # that the integer program is given
_NODES = 200  # of its search tree
_LEAST = 1e-200  # a cost that nobody can tell from 0, and too small to be scaled


def best_groups(
    place: Vector, mass: Vector, ones: Vector, start: Integers, order: float = 1.0
) -> tuple[Integers, bool]:
    """Return the group of each point in the best partition found, and whether it is the best.

    ``place`` is where the points are, ``ones`` the part of their ``mass`` with label 1, ``order``
    the exponent p of the cost mass * |place - mean label|^p; ``start`` is a partition to beat.
    """
    cost = _subset_costs(place, mass, ones, order)
    k = place.size
    if k <= DYNAMIC:
        sets = np.empty(k, dtype=np.int64)
        partition.best_partition(cost, sets, k)
        return _numbered(sets), True
    return _by_integer_program(cost, k, start)


def _subset_costs(place: Vector, mass: Vector, ones: Vector, order: float) -> Vector:
    """Return the cost of every subset, indexed by its bits."""
    weight, one = _subset_sums(mass), _subset_sums(ones)
    mean = np.divide(one, weight, out=np.zeros_like(one), where=weight > 0)
    cost = np.zeros_like(mean)
    member = np.arange(mean.size)
    for i in range(place.size):
        inside = (member >> i & 1).astype(bool)
        cost[inside] += mass[i] * np.abs(place[i] - mean[inside]) ** order
    return cost


def _subset_sums(values: Vector) -> Vector:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate((sums, sums + value))
    return sums


def _numbered(sets: Integers) -> Integers:
    return np.unique(sets, return_inverse=True)[1].astype(np.int64)


def _by_integer_program(cost: Vector, k: int, start: Integers) -> tuple[Integers, bool]:
    """Solve the set partitioning problem, or keep ``start`` where that takes too long."""
    from scipy import sparse  # slow to import, rarely needed
    from scipy.optimize import Bounds, LinearConstraint, linprog, milp

    bits = 1 << np.arange(k)
    initial = np.array([bits[start == g].sum() for g in np.unique(start)])
    if cost[initial].sum() < _LEAST:
        return start, True
    # A subset that alone costs more than a known partition is in no better one, however much more.
    cost = np.minimum(cost * (_SCALE / cost[initial].sum()), 2 * _SCALE)

    def rows(columns: Integers) -> sparse.csc_matrix:
        return sparse.csc_matrix((columns[None, :] >> np.arange(k)[:, None] & 1).astype(float))

    columns = np.unique(np.concatenate((bits, initial, _contiguous(k))))
    for _ in range(_ROUNDS):
        relaxed = linprog(cost[columns], A_eq=rows(columns), b_eq=np.ones(k), method="highs")
        if relaxed.status != 0:
            return start, False
        price = relaxed.eqlin.marginals
        reduced = cost - _subset_sums(price)
        reduced[0] = 0.0
        fresh = reduced.copy()
        fresh[columns] = 0.0
        worst = np.argpartition(fresh, _NEW_COLUMNS)[:_NEW_COLUMNS]
        worst = worst[fresh[worst] < -_NEGLIGIBLE]
        if worst.size == 0:
            break
        columns = np.union1d(columns, worst)
    # Whatever the prices, a partition costs at least their sum plus k times the least reduced cost,
    # and a subset whose reduced cost exceeds what is left up to `start` is in no better partition.
    left = float(cost[initial].sum() - price.sum() - k * min(0.0, reduced.min()))
    if left <= _PROVED:
        return start, True
    useful = np.flatnonzero(reduced <= left)
    useful = useful[useful > 0]
    if useful.size > _MOST_COLUMNS:
        return start, False
    useful = np.union1d(useful, initial)
    result = milp(
        cost[useful],
        constraints=LinearConstraint(rows(useful), 1, 1),
        integrality=np.ones(useful.size),
        bounds=Bounds(0, 1),
        options={"node_limit": _NODES, "mip_rel_gap": 0.0},
    )
    if result.status != 0:
        return start, False
    sets = np.zeros(k, dtype=np.int64)
    for chosen in useful[result.x > 0.5]:
        sets[(chosen >> np.arange(k) & 1).astype(bool)] = chosen
    return _numbered(sets), True


def _contiguous(k: int) -> Integers:
    """Return all runs of neighbouring points as bit sets."""
    return np.array([(1 << j) - (1 << i) for i in range(k) for j in range(i + 1, k + 1)])
