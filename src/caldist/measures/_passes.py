"""Passes over many sorted predictions, in parts that threads share.

There are as many parts whatever the number of threads, so that it changes no bit.
"""

from __future__ import annotations

import math

from caldist._kernels import laplace, shifts
from caldist._util.threads import even_parts, in_threads
from caldist._util.types import Vector

_POINTS = 2**16  # in a part


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
