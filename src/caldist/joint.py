"""``Joint``: the finite distribution of (prediction, label) that every measure speaks of."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _grid, _validate
from caldist._files import write_atomically
from caldist._grid import Grid
from caldist._kernels import support

__all__ = ["Joint"]

Vector = NDArray[np.float64]

_FORMAT = "caldist-joint-1"
_THREADED_SORT = 100_000  # rows from which a second thread repays its start


@dataclass(frozen=True, eq=False, repr=False)
class Joint:
    """The joint distribution of predictions and labels, on finitely many predictions.

    Build one with :meth:`from_arrays`, :meth:`from_masses` or :meth:`from_cells`; merge parts with
    ``+``; evaluate all measures on it with :func:`caldist.evaluate`.

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

    def __post_init__(self) -> None:
        for name in ("prediction", "mass0", "mass1"):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.ndim != 1:
                message = f"{name} is not a float64 vector: use Joint.from_masses."
                raise TypeError(message)
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        v, sizes = self.prediction, {self.prediction.size, self.mass0.size, self.mass1.size}
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
            return cls(*_sort_rows(label, prediction), n_rows=label.size)
        weight1 = weight * label
        return cls(*_sort_masses(prediction, weight - weight1, weight1), n_rows=label.size)

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
        return cls(*_sort_masses(value, label0, label1), n_rows=n_rows, radius=radius)

    @classmethod
    def from_cells(
        cls,
        cell: ArrayLike,
        count0: ArrayLike,
        count1: ArrayLike,
        place0: ArrayLike,
        place1: ArrayLike,
        *,
        bits: int = 16,
    ) -> Joint:
        """Read the result of a GROUP BY on a grid of 2^bits cells.

        ``cell`` is floor(v 2^bits), in any order and with repetitions; ``count0`` and ``count1``
        are the rows of each label in it, ``place0`` and ``place1`` the sums over those rows of
        floor((v 2^bits - cell) 2^31).
        """
        bits = _check_bits(bits)
        return cls._from_grid(_grid.from_sums(bits, cell, count0, count1, place0, place1))

    @classmethod
    def _from_grid(cls, grid: Grid) -> Joint:
        count0, count1 = (np.asarray(count, np.float64) for count in (grid.count0, grid.count1))
        total = float(count0.sum() + count1.sum())
        move0, move1 = grid.moves()
        return cls(
            grid.centres(),
            count0,
            count1,
            n_rows=round(total) if grid.is_integer else None,
            radius=float(move0.sum() + move1.sum()) / total,
            grid=grid,
        )

    def coarsen(self, bits: int) -> Joint:
        """Return the joint on a grid of 2^bits cells: smaller, mergeable, with a wider radius."""
        bits = _check_bits(bits)
        if self.grid is not None:
            if bits > self.grid.bits:
                message = f"bits is {bits}, but this joint has only {self.grid.bits}."
                raise ValueError(message)
            return self._from_grid(self.grid.coarsen(bits))
        if self.radius > 0:
            message = "a joint with a radius but no grid cannot be put on a grid."
            raise ValueError(message)
        return self._from_grid(_grid.from_masses(self.prediction, self.mass0, self.mass1, bits))

    def __add__(self, other: object) -> Joint:
        """Return the distribution of the rows of both."""
        if not isinstance(other, Joint):
            return NotImplemented
        if self.grid is not None and other.grid is not None and self.grid.bits == other.grid.bits:
            return self._from_grid(self.grid + other.grid)
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
            *_sort_masses(
                *(
                    np.concatenate((getattr(self, name), getattr(other, name)))
                    for name in ("prediction", "mass0", "mass1")
                )
            ),
            n_rows=(self.n_rows or 0) + (other.n_rows or 0) if known else None,
            radius=share * self.radius + (1 - share) * other.radius,
        )

    # -- reading it --------------------------------------------------------------------------

    @property
    def total(self) -> float:
        """The total mass."""
        return float(self.mass0.sum() + self.mass1.sum())

    def normalized(self) -> tuple[Vector, Vector]:
        """Return the masses of label 0 and label 1, divided by the total."""
        total = self.total
        return self.mass0 / total, self.mass1 / total

    def residual(self) -> Vector:
        """Return E[(y - v) 1(v = v_i)] for each prediction v_i."""
        out = np.empty_like(self.prediction)
        support.residual_masses(self.prediction, self.mass0, self.mass1, self.total, out)
        return out

    def prefix_sums(self) -> Vector:
        """Return 0 and the sums of the first 1, 2, … residuals: E[(y - v) 1(v <= v_i)]."""
        sums = np.empty(self.prediction.size + 1)
        sums[0] = 0.0
        np.cumsum(self.residual(), out=sums[1:])
        return sums

    def __eq__(self, other: object) -> bool:
        """Whether both have the same predictions, masses, row count and radius, to the bit."""
        if not isinstance(other, Joint):
            return NotImplemented
        return (
            np.array_equal(self.prediction, other.prediction)
            and np.array_equal(self.mass0, other.mass0)
            and np.array_equal(self.mass1, other.mass1)
            and (self.n_rows, self.radius) == (other.n_rows, other.radius)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        rows = "" if self.n_rows is None else f", n_rows={self.n_rows}"
        radius = "" if self.radius == 0 else f", radius={self.radius:.3g}"
        return f"Joint({self.prediction.size} predictions, total={self.total:g}{rows}{radius})"

    # -- keeping it --------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a ``.npz`` file, whole or not at all."""
        if self.grid is None:
            content = {name: getattr(self, name) for name in ("prediction", "mass0", "mass1")}
            content["radius"] = np.float64(self.radius)
            content["n_rows"] = np.int64(-1 if self.n_rows is None else self.n_rows)
        else:
            names = ("cell", "count0", "count1", "place0", "place1")
            content = dict(zip(names, self.grid.arrays(), strict=True))
            content["bits"] = np.int64(self.grid.bits)

        def write(file: IO[bytes]) -> None:
            np.savez(file, format=np.str_(_FORMAT), **content)

        write_atomically(Path(path), write)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Joint:
        """Read what :meth:`save` wrote; a damaged or foreign file is a ``ValueError``."""
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
                content = {name: archive[name] for name in archive.files}
        except FileNotFoundError:
            raise
        except Exception as error:
            message = f"{os.fspath(path)!r} is not a saved joint, or it is damaged: {error}"
            raise ValueError(message) from error
        found = str(content.pop("format", "no format"))
        if found != _FORMAT:
            message = f"{os.fspath(path)!r} has format {found!r}; this version reads {_FORMAT!r}."
            raise ValueError(message)
        try:
            if "bits" in content:
                return cls.from_cells(bits=int(content.pop("bits")), **content)
            rows = int(content.pop("n_rows"))
            return cls.from_masses(
                n_rows=None if rows < 0 else rows,
                radius=float(content.pop("radius")),
                **content,
            )
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            message = f"{os.fspath(path)!r} is not a valid joint: {error}"
            raise ValueError(message) from error


def _check_bits(bits: int) -> int:
    bits = _validate.check_count("bits", bits)
    if bits > _grid.MAX_BITS:
        message = f"bits is {bits}; it must be at most {_grid.MAX_BITS}."
        raise ValueError(message)
    return bits


def _sort_rows(label: NDArray[np.uint8], prediction: Vector) -> tuple[Vector, Vector, Vector]:
    """Return distinct predictions with row counts per label.

    The two labels are sorted apart, in two threads when large: sorting values is twice as fast as
    finding a sorting order, and NumPy sorts without holding the interpreter's lock.
    """
    n = prediction.size
    rows = np.empty(n)
    ones = support.split_by_label(label, prediction, rows)
    if n >= _THREADED_SORT:
        helper = threading.Thread(target=rows[:ones].sort)
        helper.start()
        rows[ones:].sort()
        helper.join()
    else:
        rows[:ones].sort()
        rows[ones:].sort()
    out = np.empty(n), np.empty(n), np.empty(n)
    return _trimmed(out, support.merge_labels(rows[:ones], rows[ones:], *out))


def _sort_masses(prediction: Vector, mass0: Vector, mass1: Vector) -> tuple[Vector, Vector, Vector]:
    """Return distinct predictions with the sums of their masses, leaving out empty ones."""
    n = prediction.size
    out = np.empty(n), np.empty(n), np.empty(n)
    order = np.argsort(prediction, kind="stable")
    return _trimmed(out, support.merge_weighted(order, prediction, mass0, mass1, *out))


def _trimmed(out: tuple[Vector, Vector, Vector], size: int) -> tuple[Vector, Vector, Vector]:
    """Cut the arrays to size, giving memory back when it is worth it."""
    first, second, third = (
        array[:size].copy() if 2 * size < array.size else array[:size] for array in out
    )
    return first, second, third
