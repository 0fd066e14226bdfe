"""How fine a grid has to be for a value within a tolerance: tried, not assumed.

Rows go onto a grid in one pass, and the measure says what that leaves certain. If it is too little,
what was found says how many bits more are needed. Where they are too many, sorting is as cheap.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from caldist.data.grid import MAX_BITS
from caldist.data.joint import Joint
from caldist.data.rows import Rows

Enclosure = tuple[float, float | None, float | None]

_FEWEST_BITS = 8
_ROWS_PER_CELL = 15  # with fewer the cells cost as much as the rows
_CHEAP = 2**14  # cells that cost less than the pass over rows that are enough for a grid
_ORDER = 2.2  # of the first guess: bounds are mostly of second order, and a little better
_SPARE_BITS = 2  # near calibration some are of first order; they cost less than a second pass
_FREE = 64  # rows per cell from which on they do


def enclose(rows: Rows, tol: float, of: Callable[[Joint], Enclosure]) -> Enclosure | None:
    """Return what is certain on the coarsest grid tried that leaves at most ``tol`` open.

    ``of`` encloses the value of the rows behind a gridded joint. None where rows are too few for a
    grid, or where one that is fine enough would have too many cells: sort them instead.
    """
    most = int(rows.size / _ROWS_PER_CELL)
    bits = max(_FEWEST_BITS, math.ceil(5 - math.log2(min(tol, 1.0)) / 2))
    bits = max(bits, min(bits + _SPARE_BITS, int(math.log2(max(rows.size, 1) / _FREE))))
    order, last = _ORDER, (0, math.inf)
    while bits <= MAX_BITS and (joint := rows.cells(bits, most)) is not None:
        found = of(joint)
        _, lower, upper = found
        if lower is None or upper is None:
            return None
        open_ = upper - lower
        if open_ <= tol:
            return found
        if last[0] > 0:
            order = math.log2(last[1] / open_) / (bits - last[0])
        # Where few cells have rows, finer ones cost nothing; and one that has all shows no order.
        step = int(math.log2(min(most, _CHEAP) / joint.prediction.size))
        if order > 0:
            step = max(step, math.ceil(math.log2(open_ / tol) / order))
        if step < 1 or bits == MAX_BITS:
            return None
        last, bits = (bits, open_), min(bits + step, MAX_BITS)
    return None
