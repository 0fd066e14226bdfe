"""The best partition of a few points into groups, exactly.

A group is replaced by its mean label; what that costs is known for each of the 2^k subsets, and a
dynamic program over subsets finds the best partition.
"""

from __future__ import annotations

import numpy as np

from caldist._util.types import Integers, Vector
from caldist.kernels.loader import COMPILED, partition

DYNAMIC = 17 if COMPILED else 12  # points: 0.1 s


def best_groups(place: Vector, mass: Vector, ones: Vector, order: float = 1.0) -> Integers:
    """Return the group of each of at most DYNAMIC points in the best partition.

    ``place`` is where the points are, ``ones`` the part of their ``mass`` with label 1, ``order``
    the exponent p of the cost mass * |place - mean label|^p.
    """
    sets = np.empty(place.size, dtype=np.int64)
    partition.best_partition(_subset_costs(place, mass, ones, order), sets, place.size)
    return np.unique(sets, return_inverse=True)[1].astype(np.int64)


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
