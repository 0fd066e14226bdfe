"""A map as a small table: the longest chords that stay within a tolerance of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from caldist._util.types import Vector

KNOTS = 256  # of a table, at most
TOLERANCE = 0.01  # of κ(1 - κ)
_BUILT = 0.95  # of the tolerance, the rest for what lies between the points of the grid
_FINEST = 1e-6  # tolerance
_SPACING = 0.02  # of the grid, in logits
_LARGEST = 1 - 2.0**-53
_LEAST = 1e-300
_COARSEST = 2.0**60  # where even one chord is within the tolerance
_LOOK = 64  # points ahead, at first


def grid(margins: tuple[float, float], points: Vector) -> Vector:
    """Return points between 0 and 1: even, even in logits down to the margins, and those given."""
    low, high = (_near(max(margin, _LEAST)) for margin in margins)
    return np.unique(np.concatenate((low, 1 - high, np.linspace(0, 1, 2001), points)))


def _near(margin: float) -> Vector:
    """Return distances from an end."""
    depth = np.log(0.5) - np.log(margin)
    far = np.exp(np.linspace(np.log(margin), np.log(0.5), int(depth / _SPACING) + 2))
    return np.concatenate((np.linspace(0, margin, 65), far))


def tabulate(
    function: Callable[[Vector], Vector], x: Vector, *, strict: bool, finest: bool = False
) -> tuple[Vector, Vector]:
    """Return knots and values: within 1% of κ(1 - κ), or as near as 256 knots allow.

    ``x`` are points from 0 to 1 between which the function is smooth. Strict ones get values that
    increase strictly, away from 0 and 1. ``finest`` uses as many knots as there may be.
    """
    value = np.maximum.accumulate(function(x))
    if strict:
        value = np.clip(value, _LEAST, _LARGEST)
    width = value * (1 - value)
    tolerance = _FINEST if finest else _BUILT * TOLERANCE
    while True:
        chosen = _fan(x, value, tolerance * width)
        if chosen.size <= KNOTS or tolerance > _COARSEST:
            break
        tolerance *= 2.0 if finest else 1.25
    chosen = chosen if chosen.size <= KNOTS else chosen[[0, -1]]
    knots, values = x[chosen], value[chosen]
    if strict:
        # Of values that tie the last stays at the upper end, the first anywhere else.
        first = np.append(True, np.diff(values) > 0)
        if not first[-1]:
            first[np.flatnonzero(first)[-1]] = False
            first[-1] = True
            first[0] = True
        knots, values = knots[first], values[first]
    return knots, values


def _fan(x: Vector, value: Vector, tolerance: Vector) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the ends of the longest chords, greedily from the left."""
    chosen, at, last = [0], 0, x.size - 1
    while at < last:
        best, ahead = at + 1, _LOOK
        while True:
            end = min(last, at + ahead)
            width = x[at + 1 : end + 1] - x[at]
            rise = value[at + 1 : end + 1] - value[at]
            allowed = tolerance[at + 1 : end + 1]
            with np.errstate(over="ignore"):  # the least numbers are closer than slopes can say
                low = np.maximum.accumulate((rise - allowed) / width)
                high = np.minimum.accumulate((rise + allowed) / width)
                slope = rise / width
            good = np.flatnonzero((low <= slope) & (slope <= high))
            if good.size:
                best = at + 1 + int(good[-1])
            if end == last or low[-1] > high[-1]:
                break
            ahead *= 2
        chosen.append(best)
        at = best
    return np.array(chosen)
