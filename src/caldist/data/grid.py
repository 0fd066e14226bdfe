"""A grid of cells with integer sums: the summary that merges to the bit in any order.

With ``bits`` = b a prediction v falls into cell floor(v 2^b), of width 2^-b; v = 1 has cell 2^b to
itself. With f = v 2^b - cell its fraction of the cell, its place is the integer floor(f 2^31) and
its square floor(f f 2^31), f f being the product in double precision. Each cell accumulates, per
label, the number of rows and the sums of their places and squares. Integer sums do not depend on
the order of addition, so any partition of the rows, merged in any order, gives the same numbers.
With weights, whatever their values, the sums are of floating point, and those of the squared
weights and the number of rows are kept beside them: what a mean's standard error needs.

What flooring loses is bounded: a place is at most one unit too small per row, a square at most two
(one when it is made, one by coarsening).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist._util.brief import Brief
from caldist._util.cached import cached_property
from caldist._util.invalid import InvalidInput
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.within_cells import WithinCells

MAX_BITS = 30
PLACE_BITS = 31
ROWS_PER_CELL = 2**32  # beyond it a sum of places could pass 2^63
_UNIT = 2.0**PLACE_BITS
_EXACT_BITS = 52  # cells and places below this many together add up without rounding
_BLOCK = 2**15  # rows whose intermediate arrays stay in the processor's cache
_CELLS_PER_ROW = 4  # with more of them those without rows are worth avoiding
_SQUARES = ("square0", "square1")
_ROUNDED = 1e-9  # what sums of weights may be off by, relative to their size
_FLOORED = 2 / _UNIT + _ROUNDED  # what a row's square may be off by

Cells = NDArray[np.int64]
Sums = NDArray[Any]  # int64, or float64 with weights


@dataclass(frozen=True, eq=False)
class Grid(Brief):
    """Sums per cell. ``cell`` is increasing, and only cells with rows are listed.

    ``square0`` and ``square1``, of the squared places, are None where they were not kept: bounds
    are then of first order. ``weight_square0`` and ``weight_square1``, of the squared weights, are
    None where rows have no weights, or where these were not kept. ``n_rows`` is None if unknown.
    """

    bits: int
    cell: Cells
    count0: Sums
    count1: Sums
    place0: Sums
    place1: Sums
    square0: Sums | None = None
    square1: Sums | None = None
    weight_square0: Vector | None = None
    weight_square1: Vector | None = None
    n_rows: int | None = None

    def __post_init__(self) -> None:
        if self.is_integer:
            if (self.count0 + self.count1).max(initial=0) > ROWS_PER_CELL:
                raise InvalidInput(
                    argument="bits",
                    value=self.bits,
                    reason=f"a cell would hold more than {ROWS_PER_CELL} rows",
                    remedy="Use more bits.",
                )
            object.__setattr__(self, "n_rows", int(self.count0.sum() + self.count1.sum()))
        for array in self.arrays().values():
            array.flags.writeable = False

    def __reduce__(self) -> tuple[type[Grid], tuple[Any, ...]]:
        """Copy and unpickle through the constructor, so that arrays stay read-only."""
        return Grid, tuple(getattr(self, field.name) for field in fields(self))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that there are by name, in the order of their fields."""
        named = ((name, getattr(self, name)) for name in _ARRAYS)
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
        # The squares of places say nothing of the rows that the other sums do not: they sharpen
        # bounds. Comparing them where both have them would not be transitive.
        mine, others = (
            {name: part for name, part in grid.arrays().items() if name not in _SQUARES}
            for grid in (self._weighted(), other._weighted())  # no weights are weights of 1
        )
        return (
            (self.bits, self.n_rows) == (other.bits, other.n_rows)
            and mine.keys() == others.keys()
            and all(np.array_equal(part, others[name]) for name, part in mine.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def centres(self) -> Vector:
        """Return the mean prediction of each cell."""
        return self._centres

    @cached_property
    def _centres(self) -> Vector:
        place = (self.place0 + self.place1) / (self.count0 + self.count1)
        centre = np.asarray((self.cell + place / _UNIT) * self.width)
        if self.bits + PLACE_BITS > _EXACT_BITS:  # the mean can round up into the next cell
            np.minimum(centre, np.nextafter((self.cell + 1) * self.width, 0.0), out=centre)
        centre.flags.writeable = False
        return centre

    def fractions(self, total: float = 1.0) -> list[tuple[Vector, Vector, Vector | None]]:
        """Return, for labels 0 and 1, the count and the sums of f and of f² in each cell.

        As they were floored: too small by at most one unit of 2^-31 a row, two for f². All are
        divided by ``total``.
        """
        result = []
        for label in "01":
            count, place, square = (
                getattr(self, name + label) for name in ("count", "place", "square")
            )
            second = None if square is None else square / _UNIT / total
            result.append((count / total, place / _UNIT / total, second))
        return result

    @cached_property
    def moves(self) -> tuple[Vector, Vector]:
        """Bound, per cell and for labels 0 and 1, the sum of ``|v - centre|`` over the rows.

        ``|v - centre|`` is convex in v, so within the cell it lies below its chord, and the mean of
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
    def spreads(self) -> tuple[Vector, Vector]:
        """Bound the same as :attr:`moves`, where squares are known by the rows' variance, too.

        Rows of a cell that all have one prediction have not moved, and that is seen here.
        """
        if self.square0 is None or self.square1 is None:
            return self.moves
        centre = self.centres() / self.width - self.cell
        bounds = []
        for move, (count, first, second) in zip(self.moves, self.fractions(), strict=True):
            assert second is not None  # noqa: S101 -- squares are there
            squares = second - centre * (2 * first - centre * count) + _FLOORED * count
            # Cauchy and Schwarz; the product of two tiny weights would vanish.
            root = np.sqrt(count) * np.sqrt(np.maximum(squares, 0.0))
            bounds.append(np.minimum(move, root * self.width))
        return bounds[0], bounds[1]

    @cached_property
    def scatter(self) -> float:
        """Bound the standard error of the mean of what rounding took off predictions, v - centre.

        It is √Σw²(v - centre)²/Σw, in a cell at most its width for each row.
        """
        total = float(self.count0.sum() + self.count1.sum())
        if total == 0:
            return 0.0
        if not self.is_integer:
            if self.weight_square0 is None or self.weight_square1 is None:
                return self.width
            squares = float(self.weight_square0.sum() + self.weight_square1.sum())
            return self.width * min(1.0, math.sqrt(squares) / total)
        inside = self.cell < 2**self.bits  # v = 1 has not moved
        centre = self.centres() / self.width - self.cell
        sums = 0.0
        for count, first, second in self.fractions():
            if second is None:
                sums += float(count[inside].sum())
            else:
                squares_of = second - centre * (2 * first - centre * count) + _FLOORED * count
                sums += float(np.maximum(squares_of, 0.0)[inside].sum())
        return self.width * math.sqrt(sums) / total

    def edges(self) -> tuple[Vector, Cells, NDArray[np.bool_]]:
        """Return the edges of cells with rows, at which each cell begins, and if it is inside.

        The cell of v = 1 has no inside: everything lies on the edge itself.
        """
        inside = self.cell < 2**self.bits
        # Neighbouring cells share an edge.
        new = np.concatenate(([True], self.cell[1:] != self.cell[:-1] + 1))
        at = np.arange(self.cell.size) + np.cumsum(new) - 1
        node = np.zeros(int(at[-1]) + 1 + int(inside[-1]))
        node[at] = self.cell * self.width
        node[at[inside] + 1] = (self.cell[inside] + 1) * self.width
        return node, at, inside

    @cached_property
    def within_cells(self) -> WithinCells | None:
        """What is known of the residuals inside the cells; None without squares."""
        if self.square0 is None or self.square1 is None:
            return None
        total = float(self.count0.sum() + self.count1.sum())
        (n0, f0, q0), (n1, f1, q1) = self.fractions(total)
        assert q0 is not None  # noqa: S101 -- squares are there
        assert q1 is not None  # noqa: S101
        width, unit = self.width, 1 / _UNIT
        start = self.cell * width
        node, at, inside = self.edges()
        rise, fall = n1 * (1 - start) - width * f1, n0 * start + width * f0
        right = np.where(inside, (1 - start) * f1 - start * f0 - width * (q1 + q0), 0.0)
        deposit = np.zeros(node.size)
        deposit[at] = rise - fall - right
        deposit[at[inside] + 1] += right[inside]
        mean = np.cumsum(deposit)[:-1]
        low, high, bend = mean.copy(), mean.copy(), np.zeros(node.size - 1)
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
        """Merge two summaries; squares stay where both have them.

        The other one may have finer cells, of which several are then in one.
        """
        if self.is_integer != other.is_integer:
            return self._weighted() + other._weighted()
        mine, others = self.arrays(), other._halved(self.bits)
        rows = None if self.n_rows is None or other.n_rows is None else self.n_rows + other.n_rows
        if self.cell.size < others["cell"].size:
            sums = {
                name: np.concatenate((part, others[name]))
                for name, part in mine.items()
                if name in others
            }
            return _collect(self.bits, rows, sums)
        sums = _with_room({name: part for name, part in mine.items() if name in others}, others)
        at = np.searchsorted(sums["cell"], others["cell"])
        for name, part in sums.items():
            if name != "cell":
                np.add.at(part, at, others[name])
        return Grid(self.bits, **sums, n_rows=rows)

    def _weighted(self) -> Grid:
        """Return the same rows with weights, each 1 if it had none."""
        if not self.is_integer:
            return self
        sums = self.arrays()
        cell = sums.pop("cell")
        sums = {name: part.astype(np.float64) for name, part in sums.items()}
        squares = {f"weight_square{label}": sums[f"count{label}"] for label in "01"}
        return Grid(self.bits, cell, **sums, **squares, n_rows=self.n_rows)

    @cached_property
    def drawing_error(self) -> float:
        r"""Bound what labels drawn from the cells' means have to do with those from predictions.

        The number of ones among the rows of a cell is Poisson-binomial if the labels follow the
        predictions, and binomial if they follow the mean. The total variation distance of the two
        laws is at most :math:`(1 - p^{n+1} - q^{n+1}) \sum (p_i - p)^2 / ((n + 1) p q)` (Ehm,
        "Binomial approximation to the Poisson binomial distribution", 1991), and over all cells at
        most the sum. Every test on drawn labels is off its level by no more.

        Rows with weights are drawn as those of equal weight that have the same standard error; of
        these it speaks. It is 1 where their number is not known.
        """
        rows = self._effective_rows()
        if rows is None:
            return 1.0
        count = (self.count0 + self.count1).astype(np.float64)
        first = (self.place0 + self.place1) / _UNIT
        mean = first / count
        spread = mean * (1 - mean)  # of f, at most
        if self.square0 is not None and self.square1 is not None:
            second = (self.square0 + self.square1) / _UNIT / count + 2 / _UNIT
            spread = np.clip(second - mean**2, 0.0, spread)
        spread = np.where(self.cell < 2**self.bits, spread + 2 / _UNIT, 0.0)
        p = self.centres()
        variance = p * (1 - p)
        bound = np.zeros_like(p)  # where all rows have the same label
        np.divide(spread * self.width**2, variance, out=bound, where=variance > 0)
        rare = np.minimum(p, 1 - p)
        bound *= rows / (rows + 1) * -np.expm1((rows + 1) * np.log1p(-rare))
        # Flooring moves a mean by at most the resolution, rounding by less than 2^-52: at most as
        # large a share of the labels comes out differently.
        return float(min(1.0, bound.sum() + rows.sum() * (self.resolution + 2.0**-52)))

    def _effective_rows(self) -> Vector | None:
        """Return the number of rows in each cell; with weights (Σw)²/Σw², None if unknown."""
        count = np.asarray(self.count0 + self.count1, np.float64)
        if self.is_integer:
            return count
        if self.weight_square0 is None or self.weight_square1 is None:
            return None
        rows = np.ones_like(count)
        share = (self.weight_square0 + self.weight_square1) / count
        np.divide(count, share, out=rows, where=share > 0)  # squares of tiny weights are 0
        return rows

    def coarsen(self, bits: int) -> Grid:
        """Return the summary on cells that are 2^(self.bits - bits) times as wide."""
        return _collect(bits, self.n_rows, self._halved(bits))

    def _halved(self, bits: int) -> dict[str, Sums]:
        """Return the sums in terms of wider cells, of which a cell may be listed several times.

        Halving the number of cells turns f into (o + f)/2, o being 0 or 1, and its square into
        (o + 2 o f + f²)/4. The sums are floored once per cell and halving: with at most n and 2n
        units too few before, at most n/2 + 1/2 <= n and (2n + 2n)/4 + 3/4 <= 2n units after.
        """
        sums = self.arrays()
        cell = sums.pop("cell")
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
                    continue
                sums[f"place{label}"] = (odd * count * _UNIT + place) / 2
                if square is not None:
                    sums[f"square{label}"] = (odd * (count * _UNIT + 2 * place) + square) / 4
        return {"cell": cell, **sums}


_ARRAYS = tuple(field.name for field in fields(Grid)[1:-1])


def empty(bits: int, n_rows: int = 0) -> Grid:
    """Return the summary of no rows, or of ``n_rows`` that all have weight 0."""
    names = ["count", "place", "square", *(["weight_square"] if n_rows else [])]
    kind: type = np.float64 if n_rows else np.int64
    sums: dict[str, Any] = {name + label: np.empty(0, kind) for name in names for label in "01"}
    return Grid(bits, np.empty(0, np.int64), **sums, n_rows=n_rows)


def _with_room(sums: dict[str, Sums], others: dict[str, Sums]) -> dict[str, Sums]:
    """Return copies of the sums of many cells, with zeros for those that only others have."""
    cell, more = sums["cell"], others["cell"]
    at = np.searchsorted(cell, more)
    new = more[cell.take(at, mode="clip") != more]
    if new.size == 0:
        return {name: part.copy() for name, part in sums.items()}
    new = new[np.concatenate(([True], new[1:] != new[:-1]))]
    place = np.arange(cell.size) + np.searchsorted(new, cell)
    room = {name: np.zeros(cell.size + new.size, part.dtype) for name, part in sums.items()}
    for name, part in sums.items():
        room[name][place] = part
    room["cell"][np.searchsorted(cell, new) + np.arange(new.size)] = new
    return room


def _collect(bits: int, n_rows: int | None, sums: dict[str, Sums]) -> Grid:
    """Add up the sums of equal cells."""
    cell = sums["cell"]
    if cell.size:
        if (cell[1:] < cell[:-1]).any():
            order = np.argsort(cell, kind="stable")
            sums = {name: part[order] for name, part in sums.items()}
            cell = sums["cell"]
        start = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
        added = {name: np.add.reduceat(part, start) for name, part in sums.items()}
        sums = {**added, "cell": cell[start]}
    return Grid(bits, **sums, n_rows=n_rows)


def from_rows(
    label: NDArray[np.uint8], prediction: Vector, weight: Vector | None, bits: int
) -> Grid:
    """Summarise rows in O(rows + cells)."""
    if weight is None:
        return _summed(bits, label, prediction, {"count": None}, prediction.size)
    masses: dict[str, Sums | None] = {"count": weight, "weight_square": weight * weight}
    return _summed(bits, label, prediction, masses, prediction.size)


def from_masses(
    prediction: Vector,
    mass: tuple[Vector, Vector],
    weight_square: tuple[Vector, Vector] | None,
    n_rows: int | None,
    bits: int,
    *,
    counted: bool,
) -> Grid:
    """Summarise a finite distribution; ``counted`` says that its masses are numbers of rows."""
    parts = []
    for label in (0, 1):
        masses: dict[str, Sums | None] = {
            "count": mass[label].astype(np.int64) if counted else mass[label]
        }
        if weight_square is not None:
            masses["weight_square"] = weight_square[label]
        rows = n_rows if label == 0 else None if n_rows is None else 0
        parts.append(_summed(bits, label, prediction, masses, rows))
    return parts[0] + parts[1]


def _summed(
    bits: int,
    label: NDArray[np.uint8] | int,
    prediction: Vector,
    masses: dict[str, Sums | None],
    n_rows: int | None,
) -> Grid:
    """Add up, per cell and label, masses and their places and squares; ``label`` may be one.

    The ``count`` of each row is None for 1.
    """
    dense = 2**bits <= _CELLS_PER_ROW * prediction.size
    listed = np.arange(2**bits + 1) if dense else np.unique(np.floor(prediction * 2.0**bits))
    given = masses["count"]
    kind: type = np.int64 if given is None or given.dtype.kind == "i" else np.float64
    names = ["count", "place", "square", *(name for name in masses if name != "count")]
    sums: dict[str, Sums] = {
        name: np.zeros(2 * listed.size, np.float64 if name == "weight_square" else kind)
        for name in names
    }
    for start in range(0, prediction.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        scaled = prediction[block] * 2.0**bits  # exact: a power of two
        cell = np.floor(scaled)
        fraction = scaled - cell
        at = cell.astype(np.int64) if dense else np.searchsorted(listed, cell)
        at = 2 * at + (label if isinstance(label, int) else label[block])
        mass: Sums | int = 1 if given is None else given[block]
        np.add.at(sums["count"], at, mass)
        np.add.at(sums["place"], at, mass * np.floor(fraction * _UNIT).astype(kind))
        np.add.at(sums["square"], at, mass * np.floor(fraction * fraction * _UNIT).astype(kind))
        for name in names[3:]:
            np.add.at(sums[name], at, masses[name][block])  # type: ignore[index]
    keep = np.flatnonzero(sums["count"][0::2] + sums["count"][1::2] > 0)
    by_label = {
        f"{name}{number}": part[number::2][keep] for name, part in sums.items() for number in (0, 1)
    }
    return Grid(bits, listed[keep].astype(np.int64), **by_label, n_rows=n_rows)


def from_sums(
    bits: int,
    cell: object,
    count0: object,
    count1: object,
    place0: object,
    place1: object,
    square0: object = None,
    square1: object = None,
    weight_square0: object = None,
    weight_square1: object = None,
    n_rows: int | None = None,
) -> Grid:
    """Check sums that somebody else has made, for example a database, and collect them."""
    optional = {
        "square": (square0, square1),
        "weight_square": (weight_square0, weight_square1),
    }
    for name, (first, second) in optional.items():
        validate.check_pair(name, first, second)
    number = validate.real_vector(cell, "cell")
    bad = ~((number >= 0) & (number <= 2**bits) & (np.floor(number) == number))
    if bad.any():
        why = f"with {bits} bits a cell is an integer from 0 to {2**bits}"
        validate.fail("cell", number, bad, why)
    given = {"count0": count0, "count1": count1, "place0": place0, "place1": place1}
    for name, pair in optional.items():
        if pair[0] is not None:
            given |= {f"{name}{label}": pair[label] for label in (0, 1)}
    arrays = {name: validate.real_vector(values, name) for name, values in given.items()}
    counted = weight_square0 is None and all(part.dtype.kind in "iu" for part in arrays.values())
    sums = {
        name: _checked_sum(part, name, number.size, counted=counted)
        for name, part in arrays.items()
    }
    validate.check_total("count0 + count1", sums["count0"], sums["count1"])
    validate.check_masses("count0 + count1", sums["count0"] + sums["count1"])
    if counted and n_rows is not None:
        _check_rows(n_rows, int(sums["count0"].sum() + sums["count1"].sum()))
    for label in "01":
        _check_consistent(bits, number, sums, label)
        if weight_square0 is not None:
            _check_weight_squares(sums, label, n_rows)
    keep = sums["count0"] + sums["count1"] > 0
    kept = {name: part[keep] for name, part in sums.items()}
    return _collect(bits, n_rows, {"cell": number.astype(np.int64)[keep], **kept})


def _checked_sum(array: NDArray[Any], name: str, size: int, *, counted: bool) -> Sums:
    """Return nonnegative sums, as int64 if they are ``counted`` from rows, else as float64."""
    checked = validate.masses(array, name, size, "cell")
    if not counted:
        return checked
    limit = ROWS_PER_CELL if name.startswith("count") else ROWS_PER_CELL * 2**PLACE_BITS - 1
    if (excess := array > limit).any():
        validate.fail(name, array, excess, f"a cell has at most {ROWS_PER_CELL} rows")
    return array.astype(np.int64)


def _check_rows(n_rows: int, counted: int) -> None:
    if n_rows != counted:
        raise InvalidInput(
            argument="n_rows",
            value=n_rows,
            reason=f"count0 and count1 add up to {counted} rows",
            remedy="Leave it out, or pass weight_square0 and weight_square1 too if they are sums "
            "of weights.",
        )


def _check_weight_squares(sums: dict[str, Sums], label: str, n_rows: int | None) -> None:
    """Raise unless there can be weights with these sums and sums of squares."""
    count, square = sums[f"count{label}"], sums[f"weight_square{label}"]
    apart = "the sums do not belong together"
    largest = count * count
    if (excess := square > largest * (1 + _ROUNDED)).any():
        why = f"more than the square of count{label}, the sum of the weights: {apart}"
        validate.fail(f"weight_square{label}", square, excess, why)
    if n_rows is None:
        return
    if (lacking := n_rows * square < largest * (1 - _ROUNDED)).any():
        why = f"too few for {n_rows} rows whose weights add up to count{label}: {apart}"
        validate.fail(f"weight_square{label}", square, lacking, why)


def _check_consistent(bits: int, cell: Vector, sums: dict[str, Sums], label: str) -> None:
    """Raise unless places and squares can be those of as many rows."""
    count, place = sums[f"count{label}"], sums[f"place{label}"]
    apart = "the sums do not belong together"
    rounded = count.dtype.kind == "f"  # sums of weights are
    slack = _ROUNDED if rounded else 0.0
    # A fraction is less than 1, and 0 in the cell of v = 1.
    largest = np.where(cell == 2**bits, 0.0, np.maximum(count * _UNIT - (not rounded), 0.0))
    bound = largest * (1 + slack)
    if (excess := place > bound).any():
        at = validate.first(excess)
        why = f"more than {largest[at]:.0f} for {count[at]} rows in cell {cell[at]}: {apart}"
        validate.fail(f"place{label}", place, excess, why)
    square = sums.get(f"square{label}")
    if square is None:
        return
    if (excess := square > place * (1 + slack)).any():
        why = f"more than place{label}, but a square of a fraction is at most the fraction: {apart}"
        validate.fail(f"square{label}", square, excess, why)
    mean = np.divide(place, count, out=np.zeros(count.size), where=count > 0)
    # The mean of squares is at least the square of the mean; flooring loses up to two units a row.
    lacking = square + (2 + 1e-5) * count < place * (mean / _UNIT) * (1 - 1e-9)
    if lacking.any():
        why = f"too few for place{label} over count{label} rows: {apart}"
        validate.fail(f"square{label}", square, lacking, why)
