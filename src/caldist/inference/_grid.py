"""Cells of many rows, for tests and regions, which simulate labels."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from caldist import _validate
from caldist._util.types import Integers
from caldist.data.units import Units
from caldist.measures._bins import equal_mass_starts

GridOption: TypeAlias = Literal["auto"] | None

MANY = 100_000  # different predictions from which a grid is cheaper than rows


def check_grid(grid: object) -> None:
    """Raise unless it is "auto", or None for the rows."""
    _validate.check_choice("grid", grid, ("auto", None))


def cells_of_equal_mass(units: Units, number: int) -> Integers:
    """Return for each prediction the number of its cell: 0, 1, … without gaps.

    The cells hold about equal weight, so that the mean distance within them is at most one part in
    twice their number, wherever the predictions lie.
    """
    rows = units.at_predictions(units.count * (units.share / units.share.max()))
    start = equal_mass_starts(rows, number)
    return np.repeat(np.arange(start.size), np.diff(start, append=rows.size))
