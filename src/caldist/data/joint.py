"""``Joint``: the finite distribution of (prediction, label) that every measure speaks of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._kernels import support
from caldist.data import files
from caldist.data import grid as _grid
from caldist.data.grid import Grid
from caldist.data.sorting import sort_masses, sort_rows

__all__ = ["INVALID", "Joint"]

Vector = NDArray[np.float64]

# Why rows of a table were left out.
INVALID = ("missing label", "bad label", "missing prediction", "bad prediction", "bad weight")


@dataclass(frozen=True, eq=False, repr=False)
class Joint:
    """The joint distribution of predictions and labels, on finitely many predictions.

    Build one with :meth:`from_arrays`, :meth:`from_masses` or :meth:`from_cells`; merge parts with
    ``+``; add batches of rows with :meth:`update`; evaluate all measures on it with
    :func:`caldist.evaluate`.

    Attributes
    ----------
    prediction
        The distinct predictions, increasing, in [0, 1].
    mass0, mass1
        The mass of label 0 and of label 1 at each prediction: row counts or sums of weights, not
        normalised.
    n_rows
        How many rows it was made of; None where only masses were given.
    radius
        A bound on the mean distance E|v - v'| between the predictions and those listed here: 0 for
        exact data, positive for rounded predictions.
    grid
        The integer sums of a gridded joint, else None.
    invalid
        How many rows of a table were left out, by reason; empty where none were.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "invalid", _check_invalid(self.invalid))
        for name in ("prediction", "mass0", "mass1"):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.ndim != 1:
                message = f"{name} is not a float64 vector: use Joint.from_masses."
                raise TypeError(message)
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        v, sizes = self.prediction, {self.prediction.size, self.mass0.size, self.mass1.size}
        if sizes == {0} and self.grid is not None:
            return
        if len(sizes) > 1 or v.size == 0 or not (v[0] >= 0 and v[-1] <= 1):
            message = "prediction, mass0 and mass1 do not belong together: use Joint.from_masses."
            raise ValueError(message)
        if not (v[1:] > v[:-1]).all() or not (self.mass0.min() >= 0 and self.mass1.min() >= 0):
            message = "prediction must increase and masses not be negative: use Joint.from_masses."
            raise ValueError(message)

    # -- making one --------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls, y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> Joint:
        """Collect rows of label, prediction and optional weight. O(n log n)."""
        label, prediction, weight = _validate.binary_inputs(y_true, y_prob, sample_weight)
        if weight is None:
            return cls(*sort_rows(label, prediction), n_rows=label.size)
        weight1 = weight * label
        return cls(*sort_masses(prediction, weight - weight1, weight1), n_rows=label.size)

    @classmethod
    def from_masses(
        cls,
        prediction: ArrayLike,
        mass0: ArrayLike,
        mass1: ArrayLike,
        *,
        n_rows: int | None = None,
        radius: float = 0.0,
    ) -> Joint:
        """Take predictions, in any order, with the mass of label 0 and of label 1 at each.

        Pass ``radius`` where the predictions have been rounded: half the rounding step bounds it.
        """
        value = _validate.probabilities(prediction, "prediction")
        label0 = _validate.masses(mass0, "mass0", value.size, "prediction")
        label1 = _validate.masses(mass1, "mass1", value.size, "prediction")
        _validate.check_total("mass0 + mass1", label0, label1)
        if n_rows is not None:
            n_rows = _validate.check_count("n_rows", n_rows)
        radius = _validate.check_nonnegative("radius", radius)
        if radius > 1:
            message = f"radius is {radius}; predictions in [0, 1] move by at most 1."
            raise ValueError(message)
        return cls(*sort_masses(value, label0, label1), n_rows=n_rows, radius=radius)

    @classmethod
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
    ) -> Joint:
        """Read the result of a GROUP BY on a grid of 2^bits cells.

        ``cell`` is floor(v 2^bits), in any order and with repetitions; ``count0`` and ``count1``
        are the rows of each label in it. With f = v 2^bits - cell, ``place0`` and ``place1`` are
        the sums over those rows of floor(f 2^31), ``square0`` and ``square1`` those of
        floor(f f 2^31). Without squares the bounds of :func:`caldist.evaluate` are wider.
        """
        bits = _check_bits(bits)
        sums = (cell, count0, count1, place0, place1, square0, square1)
        return cls._from_grid(_grid.from_sums(bits, *sums))

    @classmethod
    def empty(cls, bits: int = 16) -> Joint:
        """Return a gridded joint of no rows: the start of :meth:`update` and of sums.

        Examples
        --------
        >>> import caldist
        >>> joint = caldist.Joint.empty()
        >>> joint.update([0, 1], [0.2, 0.9]).update([1], [0.9]).n_rows
        3
        """
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
            n_rows=round(total) if grid.is_integer else None,
            radius=float(move0.sum() + move1.sum()) / total if total > 0 else 0.0,
            grid=grid,
            invalid=invalid or {},
        )

    def coarsen(self, bits: int) -> Joint:
        """Return the joint on a grid of 2^bits cells: smaller, mergeable, with a wider radius."""
        bits = _check_bits(bits)
        if self.grid is not None:
            if bits > self.grid.bits:
                message = f"bits is {bits}, but this joint has only {self.grid.bits}."
                raise ValueError(message)
            return self._from_grid(self.grid.coarsen(bits), self.invalid)
        if self.radius > 0:
            message = "a joint with a radius but no grid cannot be put on a grid."
            raise ValueError(message)
        grid = _grid.from_masses(self.prediction, self.mass0, self.mass1, bits)
        return self._from_grid(grid, self.invalid)

    def __add__(self, other: object) -> Joint:
        """Return the distribution of the rows of both."""
        if not isinstance(other, Joint):
            return NotImplemented
        invalid = {
            reason: self.invalid.get(reason, 0) + other.invalid.get(reason, 0) for reason in INVALID
        }
        if self.grid is not None and other.grid is not None and self.grid.bits == other.grid.bits:
            return self._from_grid(self.grid + other.grid, invalid)
        if self.grid is not None or other.grid is not None:
            have, has = (
                "no grid" if part.grid is None else f"{part.grid.bits} bits"
                for part in (self, other)
            )
            message = (
                f"joints with different grids ({have}, {has}) do not add up: bring both to the "
                "same grid with .coarsen(bits)."
            )
            raise ValueError(message)
        parts = (self.mass0, self.mass1, other.mass0, other.mass1)
        _validate.check_total("the sum of both joints", *parts)
        share = self.total / (self.total + other.total)
        known = self.n_rows is not None and other.n_rows is not None
        return Joint(
            *sort_masses(
                *(
                    np.concatenate((getattr(self, name), getattr(other, name)))
                    for name in ("prediction", "mass0", "mass1")
                )
            ),
            n_rows=(self.n_rows or 0) + (other.n_rows or 0) if known else None,
            radius=share * self.radius + (1 - share) * other.radius,
            invalid=invalid,
        )

    def update(
        self, y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> Joint:
        """Add rows to this joint, in place, and return it.

        A gridded joint takes them onto its grid, in O(rows + cells), and any division of rows into
        batches, in any order, gives the same bits as all at once. An exact one merges them. Arrays
        handed out earlier stay as they were. Rows that are refused leave the joint unchanged.
        """
        if self.grid is None:
            new = self + Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight)
        else:
            rows = _validate.binary_inputs(y_true, y_prob, sample_weight)
            grid = self.grid + _grid.from_rows(*rows, self.grid.bits)
            new = self._from_grid(grid, self.invalid)
        for name in (item.name for item in fields(self)):
            object.__setattr__(self, name, getattr(new, name))
        return self

    # -- reading it --------------------------------------------------------------------------

    @property
    def total(self) -> float:
        """The total mass; 0 for the empty joint."""
        return float(self.mass0.sum() + self.mass1.sum())

    def _positive_total(self) -> float:
        if self.prediction.size == 0:
            message = "the joint has no rows: add some with .update(y_true, y_prob)."
            raise ValueError(message)
        return self.total

    def normalized(self) -> tuple[Vector, Vector]:
        """Return the masses of label 0 and label 1, divided by the total."""
        total = self._positive_total()
        return self.mass0 / total, self.mass1 / total

    def residual(self) -> Vector:
        """Return E[(y - v) 1(v = v_i)] for each prediction v_i."""
        total = self._positive_total()
        out = np.empty_like(self.prediction)
        support.residual_masses(self.prediction, self.mass0, self.mass1, total, out)
        return out

    def prefix_sums(self) -> Vector:
        """Return 0 and the sums of the first 1, 2, … residuals: E[(y - v) 1(v <= v_i)]."""
        sums = np.empty(self.prediction.size + 1)
        sums[0] = 0.0
        np.cumsum(self.residual(), out=sums[1:])
        return sums

    def __eq__(self, other: object) -> bool:
        """Whether all attributes are the same, to the bit; squares where both keep them."""
        if not isinstance(other, Joint):
            return NotImplemented
        return (
            np.array_equal(self.prediction, other.prediction)
            and np.array_equal(self.mass0, other.mass0)
            and np.array_equal(self.mass1, other.mass1)
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
        grid = self.grid
        if grid is None:
            content = {name: getattr(self, name) for name in ("prediction", "mass0", "mass1")}
            content["radius"] = np.float64(self.radius)
            content["n_rows"] = np.int64(-1 if self.n_rows is None else self.n_rows)
        else:
            content = {**grid.arrays(), "bits": np.int64(grid.bits)}
        content["invalid"] = np.array([self.invalid.get(reason, 0) for reason in INVALID])
        files.write(path, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Joint:
        """Read what :meth:`save` wrote; a damaged or foreign file is a ``ValueError``."""
        content = files.read(path)
        try:
            counts = content.pop("invalid", np.zeros(len(INVALID), np.int64))
            invalid = dict(zip(INVALID, counts.tolist(), strict=True))
            if "bits" not in content:
                rows = int(content.pop("n_rows"))
                joint = cls.from_masses(
                    n_rows=None if rows < 0 else rows,
                    radius=float(content.pop("radius")),
                    **content,
                )
            elif content["cell"].size == 0:
                joint = cls.empty(int(content["bits"]))
            else:
                joint = cls.from_cells(bits=int(content.pop("bits")), **content)
            return replace(joint, invalid=invalid)
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            message = f"{os.fspath(path)!r} is not a valid joint: {error}"
            raise ValueError(message) from error


def _check_invalid(invalid: Mapping[str, int]) -> Mapping[str, int]:
    """Return the positive counts in the order of INVALID, read-only."""
    for reason in invalid:
        _validate.check_choice("invalid", reason, INVALID)
    counts = {
        reason: _validate.check_count(f"invalid[{reason!r}]", invalid.get(reason, 0), minimum=0)
        for reason in INVALID
    }
    return MappingProxyType({reason: count for reason, count in counts.items() if count})


def _check_bits(bits: int) -> int:
    bits = _validate.check_count("bits", bits)
    if bits > _grid.MAX_BITS:
        message = f"bits is {bits}; it must be at most {_grid.MAX_BITS}."
        raise ValueError(message)
    return bits
