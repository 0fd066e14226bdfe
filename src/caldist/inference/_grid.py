"""Cells of many rows, for tests and regions, which simulate labels."""

from __future__ import annotations

import numpy as np

from caldist._util.types import Integers
from caldist.inference.sample import Units
from caldist.measures.bins import equal_mass_starts

MANY = 100_000  # different predictions from which a grid is cheaper than rows


def cells_of_equal_mass(units: Units, number: int) -> Integers:
    """Return for each prediction the number of its cell: 0, 1, … without gaps.

    The cells hold about equal weight, so that the mean distance within them is at most one part in
    twice their number, wherever the predictions lie.
    """
    rows = units.at_predictions(units.count * (units.share / units.share.max()))
    start = equal_mass_starts(rows, number)
    return np.repeat(np.arange(start.size), np.diff(start, append=rows.size))
