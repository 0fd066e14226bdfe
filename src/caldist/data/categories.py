"""Labels of rows, of any hashable kind, as numbers."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from caldist._util.invalid import InvalidInput, InvalidType
from caldist._util.numbers import short
from caldist._util.tensors import readable
from caldist._util.types import Integers, Vector
from caldist.data import validate

_MISSING_REMEDY = "Give rows without a label one of their own, or drop them."
_BINS = 4  # of numbers, with about as many rows in each
_TRIED = 4096  # texts that show whether there are few
_MEASURED = 20  # different numbers with fractions, from which on they are no labels


def cluster_codes(clusters: object, size: int) -> tuple[Integers, int]:
    """Return a number for each row's cluster, from 0 in the order of first rows, and their count.

    The numbers do not depend on what the clusters are called.
    """
    names, code = number_labels(clusters, size, "clusters")
    first = np.unique(code, return_index=True)[1]
    return np.argsort(np.argsort(first))[code], len(names)


def number_labels(values: object, size: int, name: str) -> tuple[list[Any], Integers]:
    """Return the distinct labels and, for each row, the number of its label.

    ``name`` is the argument that the labels came as.
    """
    # A list stays as it is: NumPy would turn [1, "a", nan] into text.
    if isinstance(values, list | tuple):
        array = np.fromiter(values, dtype=object)
    else:
        array = np.asarray(readable(values, name))
    if array.ndim == 0:  # text, a dict, a set or None
        reason = "it must hold one label for each row"
        raise InvalidType(argument=name, value=values, reason=reason)
    if array.ndim != 1:
        raise InvalidInput(argument=name, reason=_shaped(array))
    validate.check_size(name, array.size, "y_prob", size)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        at = validate.first(np.ma.getmaskarray(values))
        raise InvalidInput(argument=name, index=at, reason="is masked", remedy=_MISSING_REMEDY)
    if array.dtype.kind == "O":
        return _number_objects(array, name)
    if array.dtype.kind in "fcmM":
        missing = np.isnat(array) if array.dtype.kind in "mM" else np.isnan(array)
        if missing.any():
            _fail_missing(name, validate.first(missing), array)
    if array.dtype.kind in "US" and _is_repeated(array):
        return _number_texts(array.tolist())
    if array.dtype.kind in "iu" and array.size > 0:
        low, high = int(array.min()), int(array.max())
        if high - low <= 2 * array.size:
            return _number_integers(array, low, high)
    names, code = np.unique(array, return_inverse=True)
    return names.tolist(), code.astype(np.int64)


def refuse_measurements(values: object, name: str) -> None:
    """Raise for numbers with fractions, most of which stand alone: as labels they make no groups.

    ``name`` is the argument that they came as.
    """
    numbers, broken, distinct = _numbers(values)
    if broken.any() and (distinct > _MEASURED or 1 < distinct == numbers.size):
        at = validate.first(broken)
        raise InvalidInput(
            argument=name,
            index=at,
            value=float(numbers[at]),
            reason=f"one of {distinct} different measurements, each of which would be a sub-group",
            remedy="Put them into bins first, for example with numpy.digitize(…), or turn them "
            "into text.",
        )


def is_measured(values: object, *, repeated: bool = False) -> bool:
    """Whether values are numbers of which there are too many to be a sub-group each.

    Those that may stand for many rows each, ``repeated``, need not stand alone.
    """
    numbers, broken, distinct = _numbers(values)
    alone = not repeated and broken.any() and 1 < distinct == numbers.size
    return distinct > _MEASURED or bool(alone)


def bin_numbers(
    values: object, size: int, name: str, rows: Vector | None = None
) -> tuple[list[str], Integers]:
    """Put numbers into bins of about equally many rows; return the bins' labels and each number's.

    A label says what lies in the bin, from the least number to the largest. ``rows`` is how many
    rows each number stands for, 1 by default.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise InvalidInput(argument=name, reason=_shaped(numbers))
    validate.check_size(name, numbers.size, "y_prob", size)
    bad = ~np.isfinite(numbers)
    if bad.any():
        _fail_missing(name, validate.first(bad), numbers)
    level = np.arange(1, _BINS) / _BINS
    if rows is None:
        edges = np.unique(np.quantile(numbers, level, method="inverted_cdf"))
    else:
        order = np.argsort(numbers, kind="stable")
        below = np.cumsum(rows[order])
        edges = np.unique(numbers[order][np.searchsorted(below, level * below[-1])])
    _, code = np.unique(np.searchsorted(edges, numbers, side="left"), return_inverse=True)
    labels = []
    for at in range(int(code.max()) + 1):
        part = numbers[code == at]
        low, high = short(float(part.min()), 4), short(float(part.max()), 4)
        labels.append(low if low == high else f"{low} to {high}")
    if len(set(labels)) < len(labels):  # four digits do not tell them apart
        labels = [f"{label} (bin {at + 1})" for at, label in enumerate(labels)]
    return labels, code.astype(np.int64)


def _numbers(values: object) -> tuple[Vector, NDArray[np.bool_], int]:
    """Return values as numbers, which of them have fractions, and how many differ; none if text."""
    array = np.array(values, object) if isinstance(values, list | tuple) else np.asarray(values)
    if array.dtype.kind == "O":
        whole = all(isinstance(x, int | float) and not isinstance(x, bool) for x in array.ravel())
        array = array if whole else np.zeros(0)
    numbers = array.astype(np.float64) if array.dtype.kind in "iufO" else np.zeros(0)
    broken = np.isfinite(numbers) & (numbers != np.floor(numbers))
    return numbers, broken, np.unique(array if array.dtype.kind in "iu" else numbers).size


def _is_repeated(array: NDArray[Any]) -> bool:
    """Whether some of the labels, here and there, show that most come again and again."""
    some = array[:: max(1, -(-array.size // _TRIED))].tolist()
    return 2 * len(set(some)) <= len(some)


def _number_texts(texts: list[Any]) -> tuple[list[Any], Integers]:
    """Return few texts, and the number of each row's: NumPy would sort all of them."""
    names = sorted(set(texts))
    number = {name: at for at, name in enumerate(names)}
    return names, np.fromiter(map(number.__getitem__, texts), np.int64, len(texts))


def _number_integers(array: NDArray[Any], low: int, high: int) -> tuple[list[Any], Integers]:
    """Return close integers and the number of each row's, by a table of those that are there."""
    wide = array if array.dtype.kind == "u" else array.astype(np.int64)
    place = (wide - wide.dtype.type(low)).astype(np.int64)
    there = np.bincount(place, minlength=high - low + 1) > 0
    names = [low + at for at in np.flatnonzero(there).tolist()]
    return names, (np.cumsum(there) - 1)[place]


def _number_objects(array: NDArray[Any], name: str) -> tuple[list[Any], Integers]:
    number: dict[Any, int] = {}
    code = np.empty(array.size, dtype=np.int64)
    for at, item in enumerate(array):
        try:
            known = number.get(item)
        except TypeError:
            reason = "a label must be hashable"
            raise InvalidType(argument=name, index=at, value=item, reason=reason) from None
        if known is None:
            if _is_missing(item):
                _fail_missing(name, at, array)
            known = number[item] = len(number)
        code[at] = known
    return list(number), code


def _is_missing(item: object) -> bool:
    if item is None:
        return True
    try:
        return bool(item != item)  # noqa: PLR0124 -- only NaN and NaT differ from themselves
    except (TypeError, ValueError):
        return True  # pandas.NA has no truth value


def _shaped(array: NDArray[Any]) -> str:
    return f"has shape {array.shape}, but it must be one-dimensional, a label per row"


def _fail_missing(name: str, at: int, array: NDArray[Any]) -> NoReturn:
    reason = "a row without a label belongs to no group"
    raise InvalidInput(
        argument=name, index=at, value=array[at], reason=reason, remedy=_MISSING_REMEDY
    )
