"""A grid of cells with integer sums: the summary that merges to the bit in any order.

With ``bits`` = b a prediction v falls into cell floor(v 2^b), of width 2^-b; v = 1 has cell 2^b to
itself. With f = v 2^b - cell its fraction of the cell, its place is the integer floor(f 2^31) and
its square floor(f f 2^31), f f being the product in double precision. Each cell accumulates, per
label, the number of rows and the sums of their places and squares. Integer sums do not depend on
the order of addition, so any partition of the rows, merged in any order, gives the same numbers.
With weights the sums are of floating point.

What flooring loses is bounded: a place is at most one unit too small per row, a square at most two
(one when it is made, one by coarsening).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist import _validate
from caldist.data.within_cells import WithinCells

__all__ = ["MAX_BITS", "ROWS_PER_CELL", "Grid", "empty", "from_masses", "from_rows", "from_sums"]

MAX_BITS = 30
PLACE_BITS = 31
ROWS_PER_CELL = 2**32  # beyond it a sum of places could pass 2^63
_UNIT = 2.0**PLACE_BITS
_BLOCK = 2**15  # rows whose intermediate arrays stay in the processor's cache
_FEW_CELLS = 2**18  # from there on cells without rows are worth avoiding

Vector = NDArray[np.float64]
Cells = NDArray[np.int64]
Sums = NDArray[Any]  # int64, or float64 with weights


@dataclass(frozen=True, eq=False)
class Grid:
    """Sums per cell. ``cell`` is increasing, and only cells with rows are listed.

    The sums of squares are None where they were not kept: bounds are then of first order.
    """

    bits: int
    cell: Cells
    count0: Sums
    count1: Sums
    place0: Sums
    place1: Sums
    square0: Sums | None = None
    square1: Sums | None = None

    def __post_init__(self) -> None:
        if self.is_integer and (self.count0 + self.count1).max(initial=0) > ROWS_PER_CELL:
            message = f"a cell would hold more than {ROWS_PER_CELL} rows: use more bits."
            raise ValueError(message)
        if not all(np.isfinite(part).all() for part in self.arrays().values()):
            message = "the weights of a cell add up to too much: divide them by their maximum."
            raise ValueError(message)
        for array in self.arrays().values():
            array.flags.writeable = False

    def __reduce__(self) -> tuple[type[Grid], tuple[Any, ...]]:
        """Copy and unpickle through the constructor, so that arrays stay read-only."""
        return Grid, (self.bits, *self.arrays().values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, in the order of their fields."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self)[1:])
        return {name: array for name, array in named if array is not None}

    @property
    def width(self) -> float:
        """The width of a cell."""
        return 2.0**-self.bits

    @property
    def resolution(self) -> float:
        """What flooring the place within a cell loses at most."""
        return self.width / _UNIT

    @property
    def is_integer(self) -> bool:
        """Whether the sums are of integers: no row had a weight."""
        return self.count0.dtype.kind == "i"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        # Of the same rows one may have kept squares and the other not.
        mine, others = self.arrays(), other.arrays()
        return self.bits == other.bits and all(
            np.array_equal(mine[name], others[name]) for name in mine.keys() & others.keys()
        )

    __hash__ = None  # type: ignore[assignment]

    def centres(self) -> Vector:
        """Return the mean prediction of each cell."""
        place = (self.place0 + self.place1) / (self.count0 + self.count1)
        centre = (self.cell + place / _UNIT) * self.width
        # With many bits the mean can round up into the next cell.
        return np.asarray(np.minimum(centre, np.nextafter((self.cell + 1) * self.width, 0.0)))

    def fractions(self) -> list[tuple[Vector, Vector, Vector | None]]:
        """Return, for labels 0 and 1, the count and the sums of f and of f² in each cell.

        As they were floored: too small by at most one unit of 2^-31 a row, two for f².
        """
        result = []
        for label in "01":
            count, place, square = (
                getattr(self, name + label) for name in ("count", "place", "square")
            )
            second = None if square is None else square / _UNIT
            result.append((np.asarray(count, np.float64), place / _UNIT, second))
        return result

    @cached_property
    def moves(self) -> tuple[Vector, Vector]:
        """Bound, per cell and for labels 0 and 1, the sum of |v - centre| over the rows.

        |v - centre| is convex in v, so within the cell it lies below its chord, and the mean of
        the chord is its value at the label's mean.
        """
        centre = self.centres() / self.width - self.cell
        inside = self.cell < 2**self.bits  # v = 1 has not moved
        bounds = []
        for count, first, _ in self.fractions():
            chord = (count - first) * centre + first * (1 - centre)
            bounds.append(np.where(inside, chord * self.width + count * self.resolution, 0.0))
        return bounds[0], bounds[1]

    @cached_property
    def within_cells(self) -> WithinCells | None:
        """What is known of the residuals inside the cells; None without squares."""
        if self.square0 is None or self.square1 is None:
            return None
        total = float(self.count0.sum() + self.count1.sum())
        (n0, f0), (n1, f1) = ((n / total, f / total) for n, f, _ in self.fractions())
        q0, q1 = self.square0 / _UNIT / total, self.square1 / _UNIT / total
        width, unit = self.width, 1 / _UNIT
        start = self.cell * width
        inside = self.cell < 2**self.bits  # at v = 1 everything lies on the edge itself
        rise, fall = n1 * (1 - start) - width * f1, n0 * start + width * f0
        right = np.where(inside, (1 - start) * f1 - start * f0 - width * (q1 + q0), 0.0)
        # Neighbouring cells share an edge.
        new = np.concatenate(([True], self.cell[1:] != self.cell[:-1] + 1))
        at = np.arange(start.size) + np.cumsum(new) - 1
        size = int(at[-1]) + 1 + int(inside[-1])
        node, deposit = np.zeros(size), np.zeros(size)
        node[at], deposit[at] = start, rise - fall - right
        node[at[inside] + 1] = start[inside] + width
        deposit[at[inside] + 1] += right[inside]
        mean = np.cumsum(deposit)[:-1]
        low, high, bend = mean.copy(), mean.copy(), np.zeros(size - 1)
        before = np.cumsum(rise - fall) - (rise - fall)
        # Of S: flooring of places. Of its mean also that of the deposit of the cell itself.
        error = 4 * self.resolution + (2 + 6 * width) * unit * (n0 + n1)
        filled = at[inside]
        low[filled] = np.minimum(mean[filled], (before - fall)[inside]) - error[inside]
        high[filled] = np.maximum(mean[filled], (before + rise)[inside]) + error[inside]
        spread = (1 - start) * (f1 - q1) + (start + width) * (f0 - q0)
        bend[filled] = (np.maximum(spread, 0.0) + unit * (n0 + n1))[inside]
        return WithinCells(
            node, deposit, np.diff(node), mean, low, high, bend, 20 * self.resolution
        )

    def __add__(self, other: Grid) -> Grid:
        """Merge two summaries of the same grid; squares stay where both have them."""
        mine, others = self.arrays(), other.arrays()
        return _collect(
            self.bits,
            *(np.concatenate((mine[name], others[name])) for name in mine if name in others),
        )

    def coarsen(self, bits: int) -> Grid:
        """Return the summary on cells that are 2^(self.bits - bits) times as wide.

        Halving the number of cells turns f into (o + f)/2, o being 0 or 1, and its square into
        (o + 2 o f + f²)/4. The sums are floored once per cell and halving: with at most n and 2n
        units too few before, at most n/2 + 1/2 <= n and (2n + 2n)/4 + 3/4 <= 2n units after.
        """
        cell = self.cell
        sums = self.arrays()
        del sums["cell"]
        for _ in range(self.bits - bits):
            odd = cell & 1
            cell = cell >> 1
            for label in "01":
                count, place = sums[f"count{label}"], sums[f"place{label}"]
                square = sums.get(f"square{label}")
                if self.is_integer:
                    sums[f"place{label}"] = odd * (count << (PLACE_BITS - 1)) + (place >> 1)
                    if square is not None:
                        carry = (2 * (odd & place) + (square & 3)) >> 2
                        kept = (count << (PLACE_BITS - 2)) + (place >> 1)
                        sums[f"square{label}"] = odd * kept + (square >> 2) + carry
                else:
                    sums[f"place{label}"] = (odd * count * _UNIT + place) / 2
                    if square is not None:
                        sums[f"square{label}"] = (odd * (count * _UNIT + 2 * place) + square) / 4
        return _collect(bits, cell, *sums.values())


def empty(bits: int) -> Grid:
    """Return the summary of no rows."""
    return Grid(bits, *(np.empty(0, np.int64) for _ in range(7)))


def _collect(bits: int, cell: Cells, *sums: Sums) -> Grid:
    """Add up the sums of equal cells."""
    if cell.size == 0:
        return Grid(bits, cell, *sums)
    order = np.argsort(cell, kind="stable")
    cell = cell[order]
    start = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
    with np.errstate(over="ignore"):  # an infinite sum is refused with the cell it is in
        return Grid(bits, cell[start], *(np.add.reduceat(part[order], start) for part in sums))


def from_rows(
    label: NDArray[np.uint8] | int, prediction: Vector, weight: Vector | None, bits: int
) -> Grid:
    """Summarise rows in O(rows + cells); weights that are integers count rows.

    ``label`` may be one number for all rows.
    """
    dense = 2**bits <= max(_FEW_CELLS, prediction.size)
    listed = np.arange(2**bits + 1) if dense else np.unique(np.floor(prediction * 2.0**bits))
    kind: type = np.int64 if weight is None or _are_counts(weight) else np.float64
    sums: list[Sums] = [np.zeros(2 * listed.size, kind) for _ in range(3)]
    count, place, square = sums
    with np.errstate(over="ignore"):
        for start in range(0, prediction.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            scaled = prediction[block] * 2.0**bits  # exact: a power of two
            cell = np.floor(scaled)
            fraction = scaled - cell
            at = cell.astype(np.int64) if dense else np.searchsorted(listed, cell)
            at = 2 * at + (label if isinstance(label, int) else label[block])
            mass: Sums | int = 1 if weight is None else weight[block].astype(kind)
            np.add.at(count, at, mass)
            np.add.at(place, at, mass * np.floor(fraction * _UNIT).astype(kind))
            np.add.at(square, at, mass * np.floor(fraction * fraction * _UNIT).astype(kind))
    keep = np.flatnonzero(count[0::2] + count[1::2] > 0)
    by_label = (part[number::2][keep] for part in sums for number in (0, 1))
    return Grid(bits, listed[keep].astype(np.int64), *by_label)


def from_masses(prediction: Vector, mass0: Vector, mass1: Vector, bits: int) -> Grid:
    """Summarise a finite distribution; integer masses give integer sums."""
    return from_rows(0, prediction, mass0, bits) + from_rows(1, prediction, mass1, bits)


def from_sums(
    bits: int,
    cell: object,
    count0: object,
    count1: object,
    place0: object,
    place1: object,
    square0: object = None,
    square1: object = None,
) -> Grid:
    """Check sums that somebody else has made, for example a database, and collect them."""
    if (square0 is None) != (square1 is None):
        message = "square0 and square1 go together: pass both or neither."
        raise ValueError(message)
    number = _validate.real_vector(cell, "cell")
    bad = ~((number >= 0) & (number <= 2**bits) & (np.floor(number) == number))
    if bad.any():
        why = f"with {bits} bits a cell is an integer from 0 to {2**bits}."
        _validate.fail("cell", number, bad, why)
    given = {"count0": count0, "count1": count1, "place0": place0, "place1": place1}
    if square0 is not None:
        given |= {"square0": square0, "square1": square1}
    sums = {name: _checked_sum(values, name, number.size) for name, values in given.items()}
    if any(part.dtype.kind == "f" for part in sums.values()):  # weights
        sums = {name: part.astype(np.float64) for name, part in sums.items()}
    _validate.check_total("count0 + count1", sums["count0"], sums["count1"])
    for label in "01":
        _check_consistent(bits, number, sums, label)
    keep = sums["count0"] + sums["count1"] > 0
    return _collect(bits, number.astype(np.int64)[keep], *(part[keep] for part in sums.values()))


def _checked_sum(values: object, name: str, size: int) -> Sums:
    """Return nonnegative sums as int64 where they are integers, else as float64."""
    array = _validate.real_vector(values, name)
    checked = _validate.masses(array, name, size, "cell")
    if array.dtype.kind not in "iu":
        return checked
    limit = ROWS_PER_CELL if name.startswith("count") else ROWS_PER_CELL * 2**PLACE_BITS - 1
    if (excess := array > limit).any():
        _validate.fail(name, array, excess, f"a cell has at most {ROWS_PER_CELL} rows.")
    return array.astype(np.int64)


def _check_consistent(bits: int, cell: Vector, sums: dict[str, Sums], label: str) -> None:
    """Raise unless places and squares can be those of as many rows."""
    count, place = sums[f"count{label}"], sums[f"place{label}"]
    apart = "the sums do not belong together."
    rounded = count.dtype.kind == "f"  # sums of weights are
    slack = 1e-9 if rounded else 0.0
    # A fraction is less than 1, and 0 in the cell of v = 1.
    largest = np.where(cell == 2**bits, 0.0, np.maximum(count * _UNIT - (not rounded), 0.0))
    if (excess := place > largest * (1 + slack)).any():
        at = _validate.first(excess)
        why = f"more than {largest[at]:.0f} for {count[at]} rows in cell {cell[at]}: {apart}"
        _validate.fail(f"place{label}", place, excess, why)
    square = sums.get(f"square{label}")
    if square is None:
        return
    if (excess := square > place * (1 + slack)).any():
        why = f"more than place{label}, but a square of a fraction is at most the fraction: {apart}"
        _validate.fail(f"square{label}", square, excess, why)
    mean = np.divide(place, count, out=np.zeros(count.size), where=count > 0)
    # The mean of squares is at least the square of the mean; flooring loses up to two units a row.
    lacking = square + (2 + 1e-5) * count < place * (mean / _UNIT) * (1 - 1e-9)
    if lacking.any():
        why = f"too few for place{label} over count{label} rows: {apart}"
        _validate.fail(f"square{label}", square, lacking, why)


def _are_counts(mass: Vector) -> bool:
    return bool(np.all(mass == np.floor(mass)) and mass.max() <= ROWS_PER_CELL)
