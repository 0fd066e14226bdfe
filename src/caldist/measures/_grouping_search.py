"""Search for the best contiguous grouping of many predictions.

The kernel finds the best grouping with boundaries among given cuts. For few predictions every place
is a cut and the result is exact. For many, cuts are placed where the prefix sums of the residuals
are extreme within small bins, since groups that begin and end there cancel most; bins are split
until that hardly helps any more. Then the boundaries may move a little. Last, if every prediction
is better off on its own, as can be when each has many labels, that is returned. The result is a
real grouping, so its cost is an upper bound; it is mostly within 0.5% of the best contiguous one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from caldist._util.types import Vector
from caldist.kernels.arrays import prefix_sums
from caldist.kernels.loader import grouping

Indices = NDArray[np.int64]

ALL_CUTS = 4096
"""Up to this many predictions the search is exact, in at most some 30 ms."""

MANY = 65536
"""Beyond this many predictions not every place is tried as a cut."""

LEVELS = ((256, 0.0), (1024, 0.003), (4096, 0.0075), (16384, 0.015), (32768, 0.015))
"""Numbers of bins, each with the relative gain over the level before that makes it worthwhile to go
on. Finer levels together gain about a third of it, as a rule; a small gain from coarse levels can
be chance, and the next level is cheap."""

TOLERANCE = 0.0005
"""What the kernel may lose, relative to the value, to save work."""

MOVES = np.array([0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64])


def search(
    prediction: Vector,
    mass0: Vector,
    mass1: Vector,
    progress: Callable[[float, float], None] | None = None,
) -> tuple[float, Indices]:
    """Return the cost of a contiguous grouping and the index of the first point of each group.

    The cost is the mean distance from the predictions to the mean labels of their groups.
    ``progress`` is called with 0 and the best cost so far after each level.
    """
    n = prediction.size
    total = mass0.sum() + mass1.sum()
    mass, ones = (mass0 + mass1) / total, mass1 / total
    masses, moments, labels = (prefix_sums(part) for part in (mass, mass * prediction, ones))

    def solve(cut: Indices, eps: float) -> tuple[float, Indices]:
        first = np.empty(cut.size, dtype=np.int64)
        value, groups = grouping.best_grouping(prediction, masses, moments, labels, cut, eps, first)
        return value, first[:groups].copy()

    if n <= ALL_CUTS:
        return solve(np.arange(n + 1), 0.0)
    single = float(np.abs(ones - mass * prediction).sum())
    del mass, ones  # of many rows they are much
    cuts = _nested_cuts(masses[1:], (labels - moments)[1:])
    best = (np.inf, np.arange(0))
    for cut, (_, worthwhile) in zip(cuts, LEVELS, strict=False):
        value, first = solve(cut, TOLERANCE * min(best[0], 1.0))
        gain = best[0] - value
        if gain > 0.0:
            best = value, first
        if progress is not None:
            progress(0.0, best[0])
        if gain <= worthwhile * value:
            break
    moved = (best[1][:, None] + np.concatenate((-MOVES, MOVES))).ravel()
    cut = np.unique(np.concatenate(([0, n], np.clip(moved, 0, n))))
    best = min(best, solve(cut, TOLERANCE * best[0]), key=lambda solution: solution[0])
    return best if best[0] <= single else (single, np.arange(n))


def _nested_cuts(weight: Vector, residual: Vector) -> list[Indices]:
    """Return ever more cuts: for each number of bins their ends and extremes.

    A cut at j lies after j points; `weight` and `residual` hold the sums over the first 1, ..., n.
    The extremes within a bin are among those within its parts, so each level is found in the next.
    Bins of less than four points give way to all cuts, or to nothing if these are very many.
    """
    n = weight.size
    cut = np.arange(1, n + 1)
    levels = [np.arange(n + 1)] if n <= MANY else []
    for bins in reversed([bins for bins, _ in LEVELS if 4 * bins < n]):
        chosen = _extremes(weight, residual, bins)
        weight, residual, cut = weight[chosen], residual[chosen], cut[chosen]
        levels.append(np.append(0, cut))
    return levels[::-1]


def _extremes(weight: Vector, residual: Vector, bins: int) -> NDArray[np.bool_]:
    """Mark where the residual is extreme within bins of equal mass, and the ends of the bins."""
    inner = np.searchsorted(weight, np.arange(1, bins) / bins * weight[-1])
    start = np.unique(np.append(0, np.minimum(inner, weight.size - 1)))
    label = np.repeat(np.arange(start.size), np.diff(start, append=weight.size))
    chosen = np.zeros(weight.size, dtype=bool)
    chosen[start] = chosen[-1] = True
    for extreme in (np.minimum, np.maximum):
        hit = np.flatnonzero(residual == extreme.reduceat(residual, start)[label])
        chosen[hit[np.diff(label[hit], prepend=-1) > 0]] = True  # the first of each bin
    return chosen
