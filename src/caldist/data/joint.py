"""``Joint``: the finite distribution of (prediction, label) that every measure speaks of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.cached import cached_property
from caldist._util.invalid import InvalidInput, InvalidType, clause_of
from caldist._util.threads import in_threads
from caldist._util.types import Vector
from caldist.data import files, validate
from caldist.data import grid as _grid
from caldist.data.grid import Grid
from caldist.data.residuals import Residuals, parts_of
from caldist.data.sorting import sort_masses, sort_rows
from caldist.errors import answering
from caldist.kernels.loader import support

_ARRAYS = ("prediction", "mass0", "mass1", "weight_square0", "weight_square1")

_CHECKED = "Use Joint.from_masses."
_MOST_ROWS = 2**53  # that a float64 counts

# Why rows of a table were left out.
INVALID = ("missing label", "bad label", "missing prediction", "bad prediction", "bad weight")


@dataclass(frozen=True, eq=False, repr=False)
class Joint:
    """The joint distribution of predictions and labels, on finitely many predictions.

    Build one with :meth:`from_arrays`, :meth:`from_masses`, :meth:`from_cells`,
    :func:`caldist.summarize` or, batch by batch, :class:`caldist.Accumulator`; merge parts with
    ``+`` or ``sum``. It stands in the place of labels and predictions wherever these are taken:
    ``caldist.smooth_ce(joint)``, ``caldist.report(joint)``. It is a value: nothing changes it.

    Attributes
    ----------
    prediction
        The distinct predictions, increasing, in [0, 1].
    mass0, mass1
        The mass of label 0 and of label 1 at each prediction: row counts or sums of weights, not
        normalised.
    n_rows
        How many rows it was made of, whatever their weights; None where only masses were given.
    radius
        A bound on the mean distance E|v - v'| between the predictions and those listed here: 0 for
        exact data, positive for rounded predictions.
    grid
        The integer sums of a gridded joint, else None.
    invalid
        How many rows of a table were left out, by reason; empty where none were.
    weight_square0, weight_square1
        The sums of the squared weights at each prediction, from which standard errors are made;
        None where rows have no weights, or where only masses were given.

    Examples
    --------
    >>> import caldist
    >>> joint = caldist.Joint.from_arrays([0, 1, 1], [0.2, 0.2, 0.9])
    >>> joint.prediction, joint.mass0, joint.mass1
    (array([0.2, 0.9]), array([1., 0.]), array([1., 1.]))
    """

    prediction: Vector
    mass0: Vector
    mass1: Vector
    n_rows: int | None = None
    radius: float = 0.0
    grid: Grid | None = None
    invalid: Mapping[str, int] = field(default_factory=dict)
    weight_square0: Vector | None = None
    weight_square1: Vector | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "invalid", _check_invalid(self.invalid))
        if self.n_rows is not None and self.n_rows > _MOST_ROWS:
            raise InvalidInput(
                argument="n_rows",
                value=self.n_rows,
                reason="beyond 2^53 rows masses, which are float64, do not count them exactly",
                remedy="Keep parts of the joint in joints of their own.",
            )
        for name in _ARRAYS:
            array = getattr(self, name)
            if array is None and name in _ARRAYS[3:]:
                continue
            if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.ndim != 1:
                reason = "is not a float64 vector"
                raise InvalidType(argument=name, reason=reason, remedy=_CHECKED)
            # A copy of what somebody may change, and of what compiled code cannot read.
            if array.flags.writeable or not (array.flags.aligned and array.flags.c_contiguous):
                array = array.copy()
                array.flags.writeable = False
            view = array.view()
            object.__setattr__(self, name, view)
        arrays = [getattr(self, name) for name in _ARRAYS]
        v, sizes = self.prediction, {array.size for array in arrays if array is not None}
        if sizes == {0} and self.grid is not None:
            return
        if len(sizes) > 1 or v.size == 0 or not (v[0] >= 0 and v[-1] <= 1):
            reason = "does not lie in [0, 1], or is not as long as the masses"
            raise InvalidInput(argument="prediction", reason=reason, remedy=_CHECKED)
        if not (v[1:] > v[:-1]).all() or not (self.mass0.min() >= 0 and self.mass1.min() >= 0):
            reason = "does not increase, or has negative masses"
            raise InvalidInput(argument="prediction", reason=reason, remedy=_CHECKED)
        with np.errstate(over="ignore"):
            total = self.total
        if not 0 < total < np.inf:
            reason = f"adds up to {total}, not to a positive finite number"
            raise InvalidInput(
                argument="mass0 + mass1", reason=reason, remedy="Rescale the masses."
            )

    # -- making one --------------------------------------------------------------------------

    @classmethod
    @answering
    def from_arrays(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
    ) -> Joint:
        """Collect rows of label, prediction and optional weight. O(n log n).

        With ``pos_label``, the value that counts as label 1, labels may be any two values.
        """
        rows = validate.binary_inputs(y_true, y_prob, sample_weight, pos_label=pos_label)
        if sample_weight is not None:
            validate.check_largest("sample_weight", np.asarray(sample_weight))
        return cls._of_rows(*rows)

    @classmethod
    def _of_rows(
        cls,
        label: NDArray[np.uint8],
        prediction: Vector,
        weight: Vector | None,
        order: NDArray[np.int64] | None = None,
    ) -> Joint:
        """Collect rows that were checked, ``order`` being their sorting order if it is known."""
        if weight is None and order is None:
            return cls._of_counts(sort_rows(label, prediction), label.size)
        ones = label.astype(np.float64)
        if weight is None:
            return cls(**sort_masses(prediction, 1 - ones, ones, order=order), n_rows=label.size)
        masses = (weight - weight * ones, weight * ones)
        squares = (masses[0] * masses[0], masses[1] * masses[1])
        return cls(**sort_masses(prediction, *masses, *squares, order=order), n_rows=label.size)

    @classmethod
    def _of_counts(cls, columns: dict[str, Any], n_rows: int) -> Joint:
        """Take numbers of rows that were counted here, so that nothing has to be checked."""
        if n_rows == 0:
            return cls(**columns, n_rows=n_rows)
        joint: Joint = object.__new__(cls)
        for item in fields(cls):
            if item.default is not MISSING:
                object.__setattr__(joint, item.name, item.default)
        known = {"invalid": _check_invalid({}), "total": float(n_rows), "counts_rows": True}
        vars(joint).update(columns, n_rows=n_rows, **known)
        return joint

    @classmethod
    @answering
    def from_masses(
        cls,
        prediction: ArrayLike,
        mass0: ArrayLike,
        mass1: ArrayLike,
        *,
        n_rows: int | None = None,
        radius: float = 0.0,
        weight_square0: ArrayLike | None = None,
        weight_square1: ArrayLike | None = None,
    ) -> Joint:
        """Take predictions, in any order, with the mass of label 0 and of label 1 at each.

        Masses alone do not say how many rows there are, so that nothing can be said of the
        population behind them: pass ``n_rows`` too. If it is the sum of the masses, every row has
        weight 1; otherwise pass the sums of the squared weights. Pass ``radius`` where the
        predictions have been rounded: half the rounding step bounds it.
        """
        value = validate.probabilities(prediction, "prediction")
        label0 = validate.masses(mass0, "mass0", value.size, "prediction")
        label1 = validate.masses(mass1, "mass1", value.size, "prediction")
        validate.check_total("mass0 + mass1", label0, label1)
        validate.check_largest("mass0 or mass1", np.maximum(label0, label1))
        if n_rows is not None:
            n_rows = validate.check_count("n_rows", n_rows)
        radius = validate.check_nonnegative("radius", radius)
        if radius > 1:
            reason = "predictions in [0, 1] move by at most 1"
            raise InvalidInput(argument="radius", value=radius, reason=reason)
        validate.check_pair("weight_square", weight_square0, weight_square1)
        squares = [
            validate.masses(values, f"weight_square{label}", value.size, "prediction")
            for label, values in enumerate((weight_square0, weight_square1))
            if values is not None
        ]
        if squares:
            _check_squares((label0, label1), squares, n_rows)
        return cls(**sort_masses(value, label0, label1, *squares), n_rows=n_rows, radius=radius)

    @classmethod
    @answering
    def from_cells(
        cls,
        cell: ArrayLike,
        count0: ArrayLike,
        count1: ArrayLike,
        place0: ArrayLike,
        place1: ArrayLike,
        square0: ArrayLike | None = None,
        square1: ArrayLike | None = None,
        *,
        bits: int = 16,
        weight_square0: ArrayLike | None = None,
        weight_square1: ArrayLike | None = None,
        n_rows: int | None = None,
    ) -> Joint:
        """Read the result of a GROUP BY on a grid of 2^bits cells.

        ``cell`` is floor(v 2^bits), in any order and with repetitions; ``count0`` and ``count1``
        are the rows of each label in it. With f = v 2^bits - cell, ``place0`` and ``place1`` are
        the sums over those rows of floor(f 2^31), ``square0`` and ``square1`` those of
        floor(f f 2^31). Without squares the bounds of :func:`caldist.evaluate` are wider.

        Rows with weights w add w instead of 1 to the counts, and w times as much to the other
        sums. ``weight_square0`` and ``weight_square1`` are then the sums of w², and ``n_rows`` the
        number of rows: with these a confidence interval can be had. Without them integers are
        taken for numbers of rows, and floating-point numbers for sums of unknown weights.
        """
        bits = _check_bits(bits)
        if n_rows is not None:
            n_rows = validate.check_count("n_rows", n_rows)
        sums = (cell, count0, count1, place0, place1, square0, square1)
        weights = (weight_square0, weight_square1)
        return cls._from_grid(_grid.from_sums(bits, *sums, *weights, n_rows))

    @classmethod
    def empty(cls, bits: int = 16) -> Joint:
        """Return a gridded joint of no rows: what is added to it comes out."""
        return cls._from_grid(_grid.empty(_check_bits(bits)))

    @classmethod
    def _from_grid(cls, grid: Grid, invalid: Mapping[str, int] | None = None) -> Joint:
        count0, count1 = (np.asarray(count, np.float64) for count in (grid.count0, grid.count1))
        total = float(count0.sum() + count1.sum())
        move0, move1 = grid.moves
        return cls(
            grid.centres(),
            count0,
            count1,
            n_rows=grid.n_rows,
            radius=float(move0.sum() + move1.sum()) / total if total > 0 else 0.0,
            grid=grid,
            invalid=invalid or {},
            weight_square0=grid.weight_square0,
            weight_square1=grid.weight_square1,
        )

    def coarsen(self, bits: int) -> Joint:
        """Return the joint on a grid of 2^bits cells: smaller, mergeable, with a wider radius."""
        bits = _check_bits(bits)
        if self.grid is not None:
            if bits > self.grid.bits:
                reason = f"this joint has only {self.grid.bits}"
                raise InvalidInput(argument="bits", value=bits, reason=reason)
            return self._from_grid(self.grid.coarsen(bits), self.invalid)
        if self.radius > 0:
            raise InvalidInput(
                argument="joint",
                reason="has predictions that were rounded by an unknown amount each (a radius but "
                "no grid), so that it cannot be put on a grid",
                remedy="Make it on a grid, with caldist.summarize or .coarsen(bits).",
            )
        counted = self.counts_rows and self.weight_square0 is None
        grid = _grid.from_masses(
            self.prediction,
            (self.mass0, self.mass1),
            None if counted else self._weight_squares(),
            self.n_rows,
            bits,
            counted=counted,
        )
        return self._from_grid(grid, self.invalid)

    def __add__(self, other: object) -> Joint:
        """Return the distribution of the rows of both."""
        if not isinstance(other, Joint):
            return NotImplemented
        invalid = {
            reason: self.invalid.get(reason, 0) + other.invalid.get(reason, 0) for reason in INVALID
        }
        if self.grid is not None and other.grid is not None and self.grid.bits == other.grid.bits:
            joint = self._from_grid(self.grid + other.grid, invalid)
            validate.check_masses("the sum of both joints", joint.mass0 + joint.mass1)
            return joint
        if self.grid is not None or other.grid is not None:
            have, has = (
                "no grid" if part.grid is None else f"{part.grid.bits} bits"
                for part in (self, other)
            )
            raise InvalidInput(
                argument="the sum of both joints",
                reason=f"needs the same grid in both, but they have different grids ({have}, "
                f"{has})",
                remedy="Bring both to the same grid with .coarsen(bits).",
            )
        share = self.total / (self.total + other.total)
        known = self.n_rows is not None and other.n_rows is not None
        columns = [
            np.concatenate((getattr(self, name), getattr(other, name))) for name in _ARRAYS[:3]
        ]
        # A row without weights has weight 1. Where those of one part are unknown, so are the sums.
        mine, others = self._weight_squares(), other._weight_squares()
        counted = self.counts_rows and other.counts_rows
        if not counted and mine is not None and others is not None:
            columns += [np.concatenate(pair) for pair in zip(mine, others, strict=True)]
        merged = sort_masses(*columns)
        validate.check_masses("the sum of both joints", merged["mass0"] + merged["mass1"])
        return Joint(
            **merged,
            n_rows=(self.n_rows or 0) + (other.n_rows or 0) if known else None,
            radius=share * self.radius + (1 - share) * other.radius,
            invalid=invalid,
        )

    def __radd__(self, other: object) -> Joint:
        """Add to 0, where ``sum`` starts."""
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    # -- reading it --------------------------------------------------------------------------

    @cached_property
    def total(self) -> float:
        """The total mass; 0 for the empty joint."""
        return float(self.mass0.sum() + self.mass1.sum())

    @cached_property
    def counts_rows(self) -> bool:
        """Whether every row has weight 1, so that the masses are numbers of rows.

        Weights w of n rows are all 1 if and only if Σw = n = Σw² (Cauchy and Schwarz).
        """
        if self.n_rows != self.total or (self.grid is not None and self._has_unknown_weights()):
            return False
        squares = [part for part in (self.weight_square0, self.weight_square1) if part is not None]
        whole = all(np.array_equal(mass, np.floor(mass)) for mass in (self.mass0, self.mass1))
        return whole and (not squares or sum(float(part.sum()) for part in squares) == self.n_rows)

    def _has_unknown_weights(self) -> bool:
        assert self.grid is not None  # noqa: S101 -- only asked of gridded joints
        return not self.grid.is_integer and self.weight_square0 is None

    def _weight_squares(self) -> tuple[Vector, Vector] | None:
        if self.counts_rows:
            return self.mass0, self.mass1
        if self.weight_square0 is None or self.weight_square1 is None:
            return None
        return self.weight_square0, self.weight_square1

    def _positive_total(self) -> float:
        if self.prediction.size == 0:
            reason, remedy = "has no rows", "At least one is needed."
            if self.n_rows:
                reason = f"has {self.n_rows} rows, all of weight 0"
                remedy = "Give a positive weight to the rows that count."
            raise InvalidInput(argument="joint", reason=reason, remedy=remedy)
        return self.total

    def normalized(self) -> tuple[Vector, Vector]:
        """Return the masses of label 0 and label 1, divided by the total."""
        total = self._positive_total()
        return self.mass0 / total, self.mass1 / total

    def residual(self) -> Vector:
        """Return E[(y - v) 1(v = v_i)] for each prediction v_i."""
        total = self._positive_total()
        out = np.empty_like(self.prediction)
        in_threads(
            lambda part: support.residual_masses(
                self.prediction[part], self.mass0[part], self.mass1[part], total, out[part]
            ),
            parts_of(out.size),
        )
        return out

    def prefix_sums(self) -> Vector:
        """Return 0 and the sums of the first 1, 2, … residuals: E[(y - v) 1(v <= v_i)]."""
        return Residuals.of(self).sums()

    def __eq__(self, other: object) -> bool:
        """Whether both summarise the same, to the bit.

        Squares of places, which some grids keep to sharpen bounds, are not compared.
        """
        if not isinstance(other, Joint):
            return NotImplemented
        return (
            all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS[:3])
            and _same(
                self._weight_squares(), other._weight_squares()
            )  # no weights are weights of 1
            and (self.n_rows, self.radius) == (other.n_rows, other.radius)
            and (self.grid, self.invalid) == (other.grid, other.invalid)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        rows = "" if self.n_rows is None else f", n_rows={self.n_rows}"
        radius = "" if self.radius == 0 else f", radius={self.radius:.3g}"
        invalid = f", invalid={dict(self.invalid)}" if self.invalid else ""
        size = self.prediction.size
        return f"Joint({size} predictions, total={self.total:g}{rows}{radius}{invalid})"

    def __reduce__(self) -> tuple[type[Joint], tuple[Any, ...]]:
        """Copy and unpickle through the constructor, so that everything stays read-only."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return Joint, (*(values | {"invalid": dict(self.invalid)}).values(),)

    # -- keeping it --------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a ``.npz`` file, whole or not at all."""
        files.write(path, self._content())

    def _content(self) -> dict[str, Any]:
        """Return the arrays of a file."""
        names = self.grid.arrays() if self.grid is not None else _ARRAYS
        source = self if self.grid is None else self.grid
        content = {name: getattr(source, name) for name in names}
        content = {name: array for name, array in content.items() if array is not None}
        if self.grid is None:
            content["radius"] = np.float64(self.radius)
        else:
            content["bits"] = np.int64(self.grid.bits)
        content["n_rows"] = np.int64(-1 if self.n_rows is None else self.n_rows)
        content["invalid"] = np.array([self.invalid.get(reason, 0) for reason in INVALID])
        return content

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Joint:
        """Read what :meth:`save` wrote; a damaged or foreign file is an ``InvalidInput``."""
        content = files.read(path)
        try:
            return cls._from_content(content)
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            reason = f"is not a valid joint: {clause_of(error)}"
            raise InvalidInput(argument=os.fspath(path), reason=reason) from error

    @classmethod
    def _from_content(cls, content: Mapping[str, Any]) -> Joint:
        """Check the arrays of a file."""
        content = dict(content)
        invalid = dict(zip(INVALID, content.pop("invalid").tolist(), strict=True))
        rows = int(content.pop("n_rows"))
        n_rows = None if rows < 0 else rows
        if "bits" not in content:
            radius = float(content.pop("radius"))
            joint = cls.from_masses(n_rows=n_rows, radius=radius, **content)
        elif content["cell"].size == 0:
            joint = cls._from_grid(_grid.empty(_check_bits(int(content["bits"])), n_rows or 0))
        else:
            joint = cls.from_cells(bits=int(content.pop("bits")), n_rows=n_rows, **content)
        return replace(joint, invalid=invalid)


def _check_squares(
    masses: tuple[Vector, Vector], squares: list[Vector], n_rows: int | None
) -> None:
    """Raise unless sums of squared weights can be those of weights with these sums."""
    for label, (mass, square) in enumerate(zip(masses, squares, strict=True)):
        if (excess := square > mass * mass * (1 + 1e-9)).any():
            why = f"more than the square of mass{label}, which no weights with that sum have"
            validate.fail(f"weight_square{label}", square, excess, why)
    total = float(masses[0].sum() + masses[1].sum())
    least = 0.0 if n_rows is None else total**2 / n_rows
    if float(squares[0].sum() + squares[1].sum()) < least * (1 - 1e-9):
        raise InvalidInput(
            argument="weight_square0 + weight_square1",
            reason=f"adds up to less than {least:.6g}, the least that {n_rows} weights with the "
            f"sum {total:.6g} can have",
            remedy="Pass the sums of the squared weights of the same rows.",
        )


def _same(first: tuple[Vector, Vector] | None, second: tuple[Vector, Vector] | None) -> bool:
    if first is None or second is None:
        return first is second
    return all(np.array_equal(*pair) for pair in zip(first, second, strict=True))


def _check_invalid(invalid: Mapping[str, int]) -> Mapping[str, int]:
    """Return the positive counts in the order of INVALID, read-only."""
    for reason in invalid:
        validate.check_choice("invalid", reason, INVALID)
    counts = {
        reason: validate.check_count(f"invalid[{reason!r}]", invalid.get(reason, 0), minimum=0)
        for reason in INVALID
    }
    return MappingProxyType({reason: count for reason, count in counts.items() if count})


def _check_bits(bits: int) -> int:
    return validate.check_count("bits", bits, maximum=_grid.MAX_BITS)
