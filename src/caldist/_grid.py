"""A grid of cells with integer sums: the summary that merges to the bit in any order.

With ``bits`` = b a prediction v falls into cell floor(v 2^b), of width 2^-b; v = 1 has cell 2^b to
itself. Its place within the cell is kept as the integer floor((v 2^b - cell) 2^31), and each cell
accumulates, per label, the number of rows and the sum of their places. Integer sums do not depend
on the order of addition, so any partition of the rows, merged in any order, gives the same
numbers. With weights the sums are of floating point.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist import _validate

__all__ = ["MAX_BITS", "ROWS_PER_CELL", "Grid", "from_masses", "from_sums"]

MAX_BITS = 30
PLACE_BITS = 31
ROWS_PER_CELL = 2**32  # beyond it a sum of places could pass 2^63

Vector = NDArray[np.float64]
Sums = NDArray[Any]  # int64, or float64 with weights


@dataclass(frozen=True, eq=False)
class Grid:
    """Sums per cell. ``cell`` is increasing, and only cells with rows are listed."""

    bits: int
    cell: NDArray[np.int64]
    count0: Sums
    count1: Sums
    place0: Sums
    place1: Sums

    def __post_init__(self) -> None:
        if self.is_integer and int((self.count0 + self.count1).max()) > ROWS_PER_CELL:
            message = f"a cell would hold more than {ROWS_PER_CELL} rows: use more bits."
            raise ValueError(message)
        if not all(np.isfinite(part).all() for part in self.arrays()):
            message = "the weights of a cell add up to too much: divide them by their maximum."
            raise ValueError(message)
        for array in self.arrays():
            array.flags.writeable = False

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays in the order of their fields."""
        return tuple(getattr(self, field.name) for field in fields(self)[1:])

    @property
    def width(self) -> float:
        """The width of a cell."""
        return 2.0**-self.bits

    @property
    def resolution(self) -> float:
        """What flooring the place within a cell loses at most."""
        return self.width * 2.0**-PLACE_BITS

    @property
    def is_integer(self) -> bool:
        """Whether the sums are of integers: no row had a weight."""
        return self.count0.dtype.kind == "i"

    def centres(self) -> Vector:
        """Return the mean prediction of each cell."""
        place = (self.place0 + self.place1) / (self.count0 + self.count1)
        return np.asarray((self.cell + place * 2.0**-PLACE_BITS) * self.width)

    def moves(self) -> tuple[Vector, Vector]:
        """Bound, per cell and for labels 0 and 1, the sum of |v - centre| over the rows.

        |v - centre| is convex in v, so within the cell it lies below its chord, and the mean of
        the chord is its value at the label's mean.
        """
        centre = self.centres() / self.width - self.cell
        inside = self.cell < 2**self.bits  # v = 1 has not moved
        bounds = []
        for count, place in ((self.count0, self.place0), (self.count1, self.place1)):
            mean = np.divide(place, count, out=np.zeros(count.size), where=count > 0)
            mean *= 2.0**-PLACE_BITS
            chord = (1 - mean) * centre + mean * (1 - centre)
            bounds.append(np.where(inside, count * (chord * self.width + self.resolution), 0.0))
        return bounds[0], bounds[1]

    def __add__(self, other: Grid) -> Grid:
        """Merge two summaries of the same grid."""
        pairs = zip(self.arrays(), other.arrays(), strict=True)
        return _collect(self.bits, *(np.concatenate(pair) for pair in pairs))

    def coarsen(self, bits: int) -> Grid:
        """Return the summary on cells that are 2^(self.bits - bits) times as wide.

        The place within a wide cell is that of the narrow cell plus the place within it, scaled;
        it is floored again, once per narrow cell.
        """
        shift = self.bits - bits
        cell = self.cell >> shift
        start = (self.cell - (cell << shift)) << (PLACE_BITS - shift)
        moved = (
            count * start + (place >> shift if self.is_integer else place / 2**shift)
            for count, place in ((self.count0, self.place0), (self.count1, self.place1))
        )
        return _collect(bits, cell, self.count0, self.count1, *moved)


def _collect(bits: int, cell: NDArray[np.int64], *sums: Sums) -> Grid:
    """Add up the sums of equal cells."""
    order = np.argsort(cell, kind="stable")
    cell = cell[order]
    start = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
    return Grid(bits, cell[start], *(np.add.reduceat(part[order], start) for part in sums))


def from_masses(prediction: Vector, mass0: Vector, mass1: Vector, bits: int) -> Grid:
    """Summarise a finite distribution; integer masses give integer sums."""
    scaled = prediction * 2.0**bits  # exact: a power of two
    cell = np.floor(scaled)
    place = np.floor((scaled - cell) * 2.0**PLACE_BITS).astype(np.int64)
    kind: type = np.int64 if _are_counts(mass0) and _are_counts(mass1) else np.float64
    count0: Sums = mass0.astype(kind)
    count1: Sums = mass1.astype(kind)
    with np.errstate(over="ignore"):  # an infinite sum is refused with the cell it is in
        places = count0 * place, count1 * place
        return _collect(bits, cell.astype(np.int64), count0, count1, *places)


def from_sums(
    bits: int, cell: object, count0: object, count1: object, place0: object, place1: object
) -> Grid:
    """Check sums that somebody else has made, for example a database, and collect them."""
    number = _validate.real_vector(cell, "cell")
    bad = ~((number >= 0) & (number <= 2**bits) & (np.floor(number) == number))
    if bad.any():
        at = int(np.argmax(bad))
        message = (
            f"cell[{at}] is {number[at]}: with {bits} bits a cell is an integer from 0 to "
            f"{2**bits}."
        )
        raise ValueError(message)
    sums = {}
    given = {"count0": count0, "count1": count1, "place0": place0, "place1": place1}
    for name, values in given.items():
        array = _validate.real_vector(values, name)
        checked = _validate.masses(array, name, number.size, "cell")
        integer = array.dtype.kind in "iu"
        limit = ROWS_PER_CELL * (1.0 if name.startswith("count") else 2.0**PLACE_BITS)
        if integer and checked.max() > limit:
            at = int(np.argmax(checked > limit))
            message = f"{name}[{at}] is {array[at]}: a cell has at most {ROWS_PER_CELL} rows."
            raise ValueError(message)
        sums[name] = array.astype(np.int64) if integer and checked.max() < 2**63 else checked
    if any(part.dtype.kind == "f" for part in sums.values()):  # weights
        sums = {name: part.astype(np.float64) for name, part in sums.items()}
    _validate.check_total("count0 + count1", sums["count0"], sums["count1"])
    # The largest place in a cell; the cell of v = 1 has only one.
    largest = np.where(number == 2**bits, 0.0, 2.0**PLACE_BITS - 1)
    for label in "01":
        excess = sums[f"place{label}"] > sums[f"count{label}"] * largest
        if excess.any():
            at = int(np.argmax(excess))
            message = (
                f"place{label}[{at}] is {sums[f'place{label}'][at]}, more than {largest[at]:.0f} "
                f"for each of the {sums[f'count{label}'][at]} rows: the sums do not belong "
                "together."
            )
            raise ValueError(message)
    keep = sums["count0"] + sums["count1"] > 0
    kept = (part[keep] for part in sums.values())
    return _collect(bits, number.astype(np.int64)[keep], *kept)


def _are_counts(mass: Vector) -> bool:
    return bool(np.all(mass == np.floor(mass)) and mass.max() <= ROWS_PER_CELL)
