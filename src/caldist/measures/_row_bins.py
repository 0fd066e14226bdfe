"""Bins of whole rows, for the measures that count rows and so have no weighted form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caldist.data.joint import Joint
from caldist.measures.binned_ece import Strategy

__all__ = ["bin_starts", "refuse_weights", "row_counts"]

Vector = NDArray[np.float64]
Counts = NDArray[np.int64]


def refuse_weights(sample_weight: object, why: str) -> None:
    """Raise if weights were given, and say why there is no weighted form."""
    if sample_weight is not None:
        message = f"sample_weight was given, but {why}: leave sample_weight out."
        raise ValueError(message)


def row_counts(joint: Joint) -> tuple[Counts, Counts]:
    """Return the rows of label 0 and of label 1 at each prediction, as integers."""
    for name in ("mass0", "mass1"):
        mass = getattr(joint, name)
        broken = mass != np.rint(mass)
        if broken.any():
            at = int(np.argmax(broken))
            message = (
                f"joint.{name}[{at}] is {mass[at]}: this measure counts rows, so the masses must "
                "be whole numbers. Make the joint without weights."
            )
            raise ValueError(message)
    return joint.mass0.astype(np.int64), joint.mass1.astype(np.int64)


def bin_starts(
    prediction: Vector, count: Counts, n_bins: int, strategy: Strategy
) -> NDArray[np.intp]:
    """Return the place of the first prediction of each bin that is not empty.

    The bins are those of :func:`caldist.binned_ece`, found in time and memory that do not depend on
    how many there are.
    """
    if strategy == "uniform":
        # Bin k starts at the double nearest to k/n; v*n may round across it, by one bin at most.
        place = np.floor(prediction * n_bins)
        place -= place / n_bins > prediction
        place += (place + 1) / n_bins <= prediction
        place = np.minimum(place, n_bins - 1)
    else:
        rows = int(count.sum())
        below = np.cumsum(count) - count
        place = below * min(n_bins, rows) // rows  # beyond that every prediction is a bin
    return np.concatenate(([0], np.flatnonzero(np.diff(place)) + 1))
