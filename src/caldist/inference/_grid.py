"""Many rows on a grid that is fine enough: a statement then costs what that of a summary costs.

Statements from a gridded joint are true of the rows behind it, their ends being moved outwards by
the certified effect of rounding. So it only has to be seen that this is little.
"""

from __future__ import annotations

import numpy as np

from caldist._util.types import Integers
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.data.units import Units
from caldist.measures._bins import equal_mass_starts

MANY = 100_000  # different predictions from which a grid is cheaper than rows
SHARE = 0.01  # of an interval's width, or of a level, that rounding may take


def many_predictions(rows: Rows) -> Joint | None:
    """Return the joint of rows that a grid would be cheaper for; None if there is none.

    Rounded ones are as cheap as they get. The joint of rows in clusters does not know these.
    """
    joint = rows.joint
    if rows.cluster is not None or joint.radius > 0 or joint.prediction.size < MANY:
        return None
    return joint


def on_grid(rows: Rows) -> Rows | None:
    """Return rows of many different predictions on a grid, and None for others."""
    return None if many_predictions(rows) is None else rows.coarse


def cells_of_equal_mass(units: Units, number: int) -> Integers:
    """Return for each prediction the number of its cell: 0, 1, … without gaps.

    The cells hold about equal weight, so that the mean distance within them is at most one part in
    twice their number, wherever the predictions lie.
    """
    rows = units.at_predictions(units.count * (units.share / units.share.max()))
    start = equal_mass_starts(rows, number)
    return np.repeat(np.arange(start.size), np.diff(start, append=rows.size))
