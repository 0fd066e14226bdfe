"""Bins of equal width and of equal mass: one rule for each, for measures and tests alike."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from caldist._util.types import Vector
from caldist.kernels.arrays import prefix_sums

Strategy = Literal["uniform", "quantile"]

_EXACT = 2.0**53  # up to here every whole number is a double
_EPSILON = 2.0**-52  # a sum of n numbers that are not negative is off by at most n times that


def equal_mass_starts(mass: NDArray[Any], n_bins: int) -> NDArray[np.intp]:
    """Return the place of the first point of each bin that is not empty.

    Bin k starts at the least point with at least the share k/n_bins of the mass below it. Whole
    masses, as numbers of rows are, are compared as integers: k n rows against n_bins times those
    below. Sums of others are rounded, and a share that is k/n_bins up to that counts as k/n_bins:
    equal weights make the bins that numbers of rows make. Time and memory do not depend on
    ``n_bins``.
    """
    total = float(mass.sum())
    if total <= _EXACT and (mass == np.rint(mass)).all():
        below = prefix_sums(mass.astype(np.int64))
        rows = int(below[-1])
        n_bins = min(n_bins, rows)  # with more, every point is a bin all the same
        if rows * n_bins >= 2**63:
            below = below.astype(object)
        place = below[:-1] * n_bins // rows
    else:
        below = prefix_sums(mass)
        share = below[:-1] * n_bins / below[-1]
        nearest = np.rint(share)
        rounded = np.abs(share - nearest) <= mass.size * _EPSILON * share
        place = np.where(rounded, nearest, np.floor(share))
    return np.append(0, np.flatnonzero(place[1:] != place[:-1]) + 1)


def bin_starts(
    prediction: Vector, mass: NDArray[Any], n_bins: int, strategy: Strategy
) -> NDArray[np.intp]:
    """Return the place of the first prediction of each bin of a strategy that is not empty."""
    if strategy == "quantile":
        return equal_mass_starts(mass, n_bins)
    # Bin k starts at the double nearest to k/n; v*n may round across it, by one bin at most.
    place = np.floor(prediction * n_bins)
    place -= place / n_bins > prediction
    place += (place + 1) / n_bins <= prediction
    place = np.minimum(place, n_bins - 1)
    return np.append(0, np.flatnonzero(np.diff(place)) + 1)
