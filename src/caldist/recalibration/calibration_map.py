"""``CalibrationMap``: a monotone map of predictions as a small table."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.atomic_files import write_atomically
from caldist._util.brief import LongText
from caldist._util.frames import frame
from caldist._util.invalid import show
from caldist._util.results import Result, plain
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.files import open_to_read
from caldist.errors import InvalidInput, InvalidType
from caldist.recalibration import sql

FORMAT = "caldist-map-1"
_MOST = 1_000_000  # knots, far beyond what a table is for


class CalibrationMap(Result):
    r"""A nondecreasing map of probabilities: linear between knots, constant beyond them.

    .. math:: \kappa(v) = y_i + \frac{y_{i+1} - y_i}{x_{i+1} - x_i}(v - x_i),
              \quad x_i \le v \le x_{i+1}

    **What it means.** What :func:`caldist.recalibrate` fits, and what its statement is about. The
    table is all there is: NumPy, SQL, another language or a phone evaluate the same few numbers. It
    is continuous, so a score that was rounded to 32 bits moves by at most its slope times
    :math:`2^{-24}`, and where ``y`` increases strictly the ranking of rows stays as it was, as far
    as float64 tells values apart.

    **Cost.** A binary search among the knots for each value.

    Parameters
    ----------
    x : array-like in [0, 1]
        The knots, increasing strictly.
    y : array-like in [0, 1]
        The values at the knots, not decreasing.
    provenance : mapping, optional
        Where it comes from, in terms of strings, numbers, lists and mappings.

    Attributes
    ----------
    x, y
        The table, read-only float64.
    provenance
        What was given, read-only. It has no part in ``==``, which compares the tables.

    Examples
    --------
    >>> from caldist.recalibration import CalibrationMap
    >>> halved = CalibrationMap([0, 1], [0, 0.5])
    >>> halved([0.2, 0.5])
    array([0.1 , 0.25])
    >>> halved(0.5)
    0.25
    >>> halved.inverse(0.25)
    (0.5, 0.5)
    >>> print(halved.to_sql("score"))
    CASE WHEN "score" >= 0 AND "score" <= 1 THEN 0.0e0 + ("score" - 0.0e0) / 1.0e0 * 0.5e0 END
    """

    __slots__ = ("provenance", "x", "y")
    x: Vector
    y: Vector
    provenance: Mapping[str, Any]

    def __init__(
        self, x: ArrayLike, y: ArrayLike, *, provenance: Mapping[str, Any] | None = None
    ) -> None:
        knots, values = _fractions(x, "x"), _fractions(y, "y")
        validate.check_size("y", values.size, "x", knots.size)
        if knots.size > _MOST:
            reason = f"has {knots.size:,} knots, but a table has at most {_MOST:,}"
            raise InvalidInput(argument="x", reason=reason)
        _refuse(knots, "x", np.diff(knots) <= 0, "knots must increase strictly", "Sort them.")
        _refuse(values, "y", np.diff(values) < 0, "values of a monotone map must not decrease")
        object.__setattr__(self, "x", _frozen(knots))
        object.__setattr__(self, "y", _frozen(values))
        object.__setattr__(self, "provenance", _plain_provenance(provenance))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        message = f"{name} cannot be set: a CalibrationMap is a value, make another one."
        raise AttributeError(message)

    def __delattr__(self, name: str) -> NoReturn:
        message = f"{name} cannot be deleted: a CalibrationMap is a value."
        raise AttributeError(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.x, self.y, dict(self.provenance))

    def __eq__(self, other: object) -> bool:
        """Whether both tables are the same, to the bit."""
        if not isinstance(other, CalibrationMap):
            return NotImplemented
        return np.array_equal(self.x, other.x) and np.array_equal(self.y, other.y)

    def __hash__(self) -> int:
        return hash((self.x.tobytes(), self.y.tobytes()))

    def __repr__(self) -> str:
        ends = f"{self.x[0]:.4g} -> {self.y[0]:.4g}, {self.x[-1]:.4g} -> {self.y[-1]:.4g}"
        return f"CalibrationMap({self.x.size} knots, {ends})"

    def __str__(self) -> str:
        x, y = self.x, self.y
        if x.size == 1:
            return f"Everything becomes {y[0]:.4g}."
        return (
            f"{x[0]:.4g} becomes {y[0]:.4g} and {x[-1]:.4g} becomes {y[-1]:.4g}, linear between "
            f"{x.size:,} knots."
        )

    # -- the map -------------------------------------------------------------------------------

    @property
    def is_strict(self) -> bool:
        """Whether it increases strictly from the first knot to the last, so that no ties arise."""
        return bool((np.diff(self.y) > 0).all())

    @property
    def is_identity(self) -> bool:
        """Whether it leaves every probability as it is."""
        whole = self.x[0] == 0 and self.x[-1] == 1
        return bool(whole and np.array_equal(self.x, self.y))

    def __call__(self, y_prob: ArrayLike) -> Any:
        """Return the mapped probabilities, in float64 and in the shape given; of a number a float.

        Whatever NumPy reads as numbers is taken, also columns of frames and tensors in main memory
        without gradients. Values outside of [0, 1] and NaN are refused.
        """
        array = validate.real_array(y_prob, "y_prob")
        if array.ndim == 0:
            return float(mapped(self, validate.probabilities(array.reshape(1), "y_prob"))[0])
        if array.size == 0:
            return np.empty(array.shape)
        flat = validate.probabilities(array.reshape(-1), "y_prob")
        return mapped(self, flat).reshape(array.shape)

    def inverse(self, value: ArrayLike) -> tuple[Any, Any]:
        """Return the least and the largest score that are mapped to a value.

        They are the same, up to rounding, where the map increases strictly. A rule on recalibrated
        probabilities, at least ``value``, is the rule on scores, at least the first of the two.

        Parameters
        ----------
        value : float, or array-like
            Between the first and the last value of the table.
        """
        array = validate.real_array(value, "value")
        wanted = validate.probabilities(array.reshape(-1), "value")
        outside = (wanted < self.y[0]) | (wanted > self.y[-1])
        if outside.any():
            why = f"no score is mapped to it: values lie between {self.y[0]} and {self.y[-1]}"
            validate.fail("value", wanted, outside, why)
        ends = self._preimage(wanted)
        if array.ndim == 0:
            return float(ends[0][0]), float(ends[1][0])
        return ends[0].reshape(array.shape), ends[1].reshape(array.shape)

    def _preimage(self, value: Vector) -> tuple[Vector, Vector]:
        x, y = self.x, self.y
        last = x.size - 1
        ends = []
        for side, flat in (("left", 0.0), ("right", 1.0)):
            after = np.searchsorted(y, value, side=side)  # type: ignore[call-overload]
            low = np.clip(after - 1, 0, last)
            high = np.clip(after, 0, last)
            rise = y[high] - y[low]
            part = np.divide(value - y[low], rise, out=np.zeros(value.size), where=rise > 0)
            score = np.minimum(x[low] + part * (x[high] - x[low]), x[high])
            beyond = after > last if flat else after == 0  # constant from there on
            ends.append(np.where(beyond, flat, score))
        return ends[0], ends[1]

    # -- taking it elsewhere -------------------------------------------------------------------

    def _lines(self) -> list[dict[str, Any]]:
        return [{"x": x, "y": y} for x, y in zip(self.x.tolist(), self.y.tolist(), strict=True)]

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the table as a data frame with the columns ``x`` and ``y``.

        Parameters
        ----------
        library : "pandas" or "polars"
            What the data frame is made by.
        """
        return frame({"x": self.x, "y": self.y}, library)

    def to_sql(self, column: str, *, dialect: str = "ansi") -> str:
        """Return the map as an SQL expression of a column.

        It is NULL where the score is missing, NaN or outside of [0, 1]. What an engine computes is
        within 1e-9 of what this object returns.

        Parameters
        ----------
        column : str
            The name of the column with the scores; it is quoted.
        dialect : "ansi", "bigquery", "mysql", "spark" or "sqlserver"
            How names are quoted. "ansi" runs in DuckDB, SQLite, PostgreSQL, Snowflake and others.
        """
        return LongText(sql.expression(self.x, self.y, column, dialect))

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        return {
            "format": FORMAT,
            "x": self.x.tolist(),
            "y": self.y.tolist(),
            "provenance": plain(self.provenance),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, whole or not at all.

        Its schema is ``caldist/recalibration/map.schema.json``. Numbers are written so that they
        are read back to the bit.
        """
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"

        def write(file: IO[bytes]) -> None:
            file.write(text.encode())

        write_atomically(Path(path), write)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CalibrationMap:
        """Read what :meth:`save` wrote; a damaged or foreign file is an ``InvalidInput``."""
        with open_to_read(path, "a saved map") as file:
            text = file.read()
        try:
            content = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
            return cls._from_content(content)
        except (TypeError, ValueError, KeyError, RecursionError, OverflowError) as error:
            reason = f"is not a valid map: {str(error).rstrip('.')}"
            raise InvalidInput(argument=repr(os.fspath(path)), reason=reason) from error

    @classmethod
    def _from_content(cls, content: Any) -> CalibrationMap:
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            found = content.get("format") if isinstance(content, dict) else content
            raise InvalidInput(argument="format", value=found, reason=f"it must be {FORMAT!r}")
        unknown = set(content) - {"format", "x", "y", "provenance"}
        if unknown:
            raise InvalidInput(argument=repr(min(unknown)), reason="is an unknown key")
        for name in ("x", "y"):
            _check_numbers(name, content.get(name))
        provenance = content.get("provenance", {})
        if not isinstance(provenance, dict):
            reason = "it must be an object"
            raise InvalidType(argument="provenance", value=provenance, reason=reason)
        return cls(content["x"], content["y"], provenance=provenance)


def _unpickled(x: Vector, y: Vector, provenance: Mapping[str, Any]) -> CalibrationMap:
    return CalibrationMap(x, y, provenance=provenance)


def _frozen(values: Vector) -> Vector:
    """Return a copy that nobody can make writable again, without negative zeros."""
    return np.frombuffer((values + 0.0).tobytes(), dtype=np.float64)


def _refuse(values: Vector, name: str, bad: NDArray[np.bool_], why: str, remedy: str = "") -> None:
    if bad.any():
        at = validate.first(bad)
        reason = f"it comes after {show(values[at])}, and {why}"
        raise InvalidInput(
            argument=name, index=at + 1, value=values[at + 1], reason=reason, remedy=remedy
        )


def _plain_provenance(provenance: Mapping[str, Any] | None) -> Mapping[str, Any]:
    content = {} if provenance is None else provenance
    if not isinstance(content, Mapping):
        reason = "it must be a mapping"
        raise InvalidType(argument="provenance", value=content, reason=reason)
    try:
        copied = json.loads(json.dumps(plain(content), allow_nan=False))
    except (TypeError, ValueError) as error:
        reason = f"cannot be written as JSON ({error})"
        raise InvalidInput(argument="provenance", reason=reason) from None
    return MappingProxyType(copied)


def _no_number(name: str) -> NoReturn:
    raise InvalidInput(argument=name, reason="stands in it, and is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise InvalidInput(argument=repr(twice), reason="is a key that stands twice in it")
    return found


def _check_numbers(name: str, values: object) -> None:
    """Raise unless a value of a file is a list of numbers; true and false are none."""
    if not isinstance(values, list):
        raise InvalidType(argument=name, value=values, reason="it must be a list of numbers")
    for at, value in enumerate(values):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1:
            reason = "it must be a number in [0, 1]"
            raise InvalidInput(argument=name, index=at, value=value, reason=reason)


def mapped(table: CalibrationMap, v: Vector) -> Vector:
    """Return the values of predictions that were checked.

    They are never above the next knot's, so that rounding keeps the order.
    """
    x, y = table.x, table.y
    if x.size == 1:
        return np.full(v.size, y[0])
    at = np.clip(np.searchsorted(x, v, side="right") - 1, 0, x.size - 2)
    part = (np.clip(v, x[0], x[-1]) - x[at]) / np.diff(x)[at]
    value = y[at] + part * np.diff(y)[at]
    return np.where(v >= x[-1], y[-1], np.minimum(value, y[at + 1]))


def _fractions(values: ArrayLike, name: str) -> Vector:
    array = validate.real_vector(values, name)
    outside = ~((array >= 0) & (array <= 1))
    if outside.any():
        why = "a table maps probabilities to probabilities, between 0 and 1"
        validate.fail(name, array, outside, why)
    return np.ascontiguousarray(array, dtype=np.float64)
