"""Passes over many sorted predictions, in parts that threads share.

There are as many parts whatever the number of threads, so that it changes no bit.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from caldist._kernels import laplace, shifts, smooth
from caldist._util.threads import even_parts, in_threads
from caldist._util.types import Vector

_POINTS = 2**16  # in a part
_STEPS = 2**14  # of a regression, from which on it is split at a level
_LEVELS, _SHARED = 8, 3  # how often; and how often before threads go on with a part each
_CLIPPED, _NOT_CLIPPED = (
    0.05,
    0.95,
)  # shares of keys between the bounds that splitting is no use for


def _parts(size: int) -> list[tuple[int, int]]:
    return even_parts(size, max(1, size // _POINTS))


def random_interval_ce(prediction: Vector, sums: Vector, width: float) -> float:
    """Return RintCE from increasing predictions and the prefix sums of their residuals."""
    found = in_threads(
        lambda part: float(shifts.random_interval_ce(prediction, sums, width, *part)),
        _parts(prediction.size),
    )
    return sum(found)


def laplace_squared(prediction: Vector, mass: Vector, bandwidth: float) -> float:
    """Return the sum of mass times mass times the Laplace kernel over all pairs."""
    parts = _parts(prediction.size)
    found = in_threads(
        lambda part: laplace.stretch(prediction[slice(*part)], mass[slice(*part)], bandwidth),
        parts,
    )
    value, carried, last = 0.0, 0.0, 0.0  # the last prediction, and what has come there
    for (start, stop), (inside, after, before, reach) in zip(parts, found, strict=True):
        if start > 0:
            carried *= math.exp((last - float(prediction[start])) / bandwidth)
        value += inside + 2 * carried * before
        carried = carried * reach + after
        last = float(prediction[stop - 1]) if stop > start else last
    return value


class _Regression(NamedTuple):
    """Steps from first up to last, the sum before them, and between what the curve lies."""

    first: int
    last: int
    prefix: float
    low: float
    high: float


def smooth_ce(prediction: Vector, mass: Vector) -> float:
    """Return smCE of masses at increasing predictions.

    A regression of many steps is split at the middle of its bounds, and its parts again: keys
    beyond the bounds are clipped, so that fewer have to be queued.
    """
    if prediction.size < 2 * _POINTS:
        return float(smooth.smooth_ce(prediction, mass, np.empty(0)))
    total = float(mass.sum())
    sign = 1.0 if total >= 0 else -1.0

    def halves(part: _Regression, depth: int) -> list[_Regression]:
        first, last, prefix, low, high = part
        middle = (low + high) / 2
        if depth == _LEVELS or last - first < _STEPS or not low < middle < high:
            return [part]
        levels = (low, middle, high)
        at, before, inside = smooth.split(prediction, mass, first, last, prefix, sign, *levels)
        share = inside / (last - first)
        if share < _CLIPPED or (share > _NOT_CLIPPED and depth > 0):
            return [part]
        return [
            _Regression(first, at, prefix, low, middle),
            _Regression(at, last, before, middle, high),
        ]

    def costs(part: _Regression, depth: int) -> list[float]:
        pieces = halves(part, depth)
        if len(pieces) == 1:
            first, last, prefix, low, high = part
            cost = smooth.regress(prediction, mass, first, last, prefix, sign, low, high)
            return [float(cost)]
        return [cost for piece in pieces for cost in costs(piece, depth + 1)]

    whole: list[_Regression] = []  # no use to split them further
    parts = [_Regression(0, prediction.size - 1, 0.0, 0.0, abs(total))]
    for depth in range(_SHARED):
        found = in_threads(partial(halves, depth=depth), parts)
        whole += [part for part, *others in found if not others]
        parts = [half for pair in found if len(pair) > 1 for half in pair]
    tasks = [(part, _LEVELS) for part in whole] + [(part, _SHARED) for part in parts]
    each = in_threads(lambda task: costs(*task), tasks)
    return abs(total) + math.fsum(cost for part in each for cost in part)
