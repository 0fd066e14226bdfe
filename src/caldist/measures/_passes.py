"""Passes over many sorted predictions, in parts that threads share.

There are as many parts whatever the number of threads, so that it changes no bit.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from caldist._util.threads import in_threads
from caldist._util.types import Vector
from caldist.data.residuals import Residuals, parts_of
from caldist.kernels.loader import laplace, shifts, smooth, support

_MANY = 2**17  # predictions, from which on threads repay their start
_STEPS = 2**14  # of a regression, from which on it is split at levels
_ROUNDS = 4  # of splitting, each at three levels
_LARGE = 2**18  # steps that are split in any case, so that threads share them
# Shares of keys between the bounds for which splitting is no use.
_CLIPPED, _NOT_CLIPPED = 0.05, 0.95

_Ends = tuple[int, int, float]  # the first and the last of some steps, and the sum before them


def random_interval_ce(prediction: Vector, sums: Vector, width: float) -> float:
    """Return RintCE from increasing predictions and the prefix sums of their residuals."""
    found = in_threads(
        lambda part: float(
            shifts.random_interval_ce(prediction, sums, width, 2 * part.start, 2 * part.stop)
        ),
        parts_of(prediction.size),
    )
    return sum(found)


def laplace_squared(prediction: Vector, mass: Vector, bandwidth: float) -> float:
    """Return the sum of mass times mass times the Laplace kernel over all pairs."""
    parts = parts_of(prediction.size)
    found = in_threads(lambda part: laplace.stretch(prediction[part], mass[part], bandwidth), parts)
    value, carried, last = 0.0, 0.0, 0.0  # the last prediction, and what has come there
    for part, (inside, after, before, reach) in zip(parts, found, strict=True):
        if part.start > 0:
            carried *= math.exp((last - float(prediction[part.start])) / bandwidth)
        value += inside + 2 * carried * before
        carried = carried * reach + after
        last = float(prediction[part.stop - 1]) if part.stop > part.start else last
    return value


@dataclass(frozen=True)
class _Regression:
    """Steps from first up to last, the sum before them, and between what the curve lies."""

    first: int
    last: int
    prefix: float
    low: float
    high: float

    @property
    def size(self) -> int:
        """How many steps there are."""
        return self.last - self.first

    @property
    def levels(self) -> Vector:
        """The bounds of the curve, and three levels in between."""
        return np.linspace(self.low, self.high, 5)

    @property
    def is_wide(self) -> bool:
        """Whether there are numbers between the bounds."""
        return bool((np.diff(self.levels) > 0).all())


class _Part:
    """What a part of the steps of a regression says of how to split it."""

    def __init__(self, residuals: Residuals, of: _Regression, sign: float, ends: _Ends) -> None:
        self.cost, self.most, self.before = np.empty(3), np.empty(3), np.empty(3)
        self.at = np.empty(3, dtype=np.int64)
        found = (self.cost, self.most, self.before, self.at)
        self.inside = int(smooth.split(*residuals, *ends, sign, of.levels, *found))


def smooth_ce(prediction: Vector, mass: Vector) -> float:
    """Return smCE of masses at increasing predictions.

    A regression of many steps is split at three levels between its bounds, and its pieces again:
    keys beyond the bounds are clipped, so that fewer have to be queued.
    """
    if prediction.size < _MANY:
        return float(smooth.smooth_ce(prediction, mass, np.empty(0)))
    residuals = Residuals(prediction, mass)
    parts = parts_of(mass.size)
    sums = in_threads(lambda part: float(support.total(mass[part])), parts)
    *before, total = itertools.accumulate(sums, initial=0.0)
    sign = 1.0 if total >= 0 else -1.0
    starts = [part.start for part in parts]

    def ends_of(piece: _Regression) -> list[_Ends]:
        inner = slice(bisect_right(starts, piece.first), bisect_left(starts, piece.last))
        first = [piece.first, *starts[inner]]
        return list(
            zip(first, [*first[1:], piece.last], [piece.prefix, *before[inner]], strict=True)
        )

    def split(pieces: Sequence[_Regression]) -> Iterator[tuple[list[_Regression], float]]:
        tasks = [(piece, ends) for piece in pieces for ends in ends_of(piece)]
        found = in_threads(lambda task: _Part(residuals, task[0], sign, task[1]), tasks)
        by_piece = defaultdict(list)
        for (piece, _), part in zip(tasks, found, strict=True):
            by_piece[piece].append(part)
        return (_split(piece, by_piece[piece]) for piece in pieces)

    def again(piece: _Regression, share: float) -> bool:
        most = 1.0 if piece.size > _LARGE else _NOT_CLIPPED
        return piece.size >= _STEPS and _CLIPPED < share <= most and piece.is_wide

    whole = _Regression(0, prediction.size - 1, 0.0, 0.0, abs(total))
    share = sum(0 < sign * value < whole.high for value in before) / len(before)  # of a sample
    found = [(whole, share)]
    done: list[_Regression] = []
    for _ in range(_ROUNDS):
        done += [piece for piece, share in found if not again(piece, share)]
        pieces = [piece for piece, share in found if again(piece, share)]
        found = [(piece, share) for smaller, share in split(pieces) for piece in smaller]
    done += [piece for piece, _ in found]
    costs = in_threads(
        lambda piece: float(
            smooth.regress(
                *residuals, piece.first, piece.last, piece.prefix, sign, piece.low, piece.high
            )
        ),
        sorted(done, key=lambda piece: -piece.size),
    )
    return abs(total) + math.fsum(costs)


def _split(piece: _Regression, parts: Sequence[_Part]) -> tuple[list[_Regression], float]:
    """Return the pieces of a piece, and the share of its keys that lie between its bounds."""
    edges = [(piece.first, piece.prefix)]
    for k in range(3):
        edge, most, cost = edges[-1], 0.0, 0.0  # a higher level is not met before a lower one
        for part in parts:
            if cost + part.most[k] > most:
                most = cost + part.most[k]
                edge = max(edges[-1], (int(part.at[k]), float(part.before[k])))
            cost += part.cost[k]
        edges.append(edge)
    edges.append((piece.last, math.nan))
    smaller = [
        _Regression(first, last, prefix, low, high)
        for ((first, prefix), (last, _)), (low, high) in zip(
            pairwise(edges), pairwise(piece.levels.tolist()), strict=True
        )
        if first < last
    ]
    return smaller, sum(part.inside for part in parts) / piece.size
