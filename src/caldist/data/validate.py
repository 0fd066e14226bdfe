"""Turn what users pass into clean arrays, or raise an error that says what is wrong with it.

Nothing is clipped, guessed or dropped. Each error names the argument, the value found, its first
index and the remedy.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from caldist._util.invalid import Invalid, InvalidInput, InvalidType, show
from caldist._util.tensors import readable
from caldist._util.types import Integers, Vector
from caldist.errors import column_names, refuse_several, refuse_table

Rng: TypeAlias = "int | np.random.Generator | None"  # text, as numpy.random loads slowly

_NUMBER_KINDS = "buif"
LEAST_RATIO = 1e-100  # of a weight to the largest one: its square is still far from underflow
LEAST_LARGEST, MOST_LARGEST = 1e-50, 1e100  # of weights, whose squares are floats and add up
_ROUNDED = 1e-6  # by how much single precision may miss 0 and 1
_SIMPLE = (str, int)
_BLOCK = 2**16  # values
_ORDER = "The order is (y_true, y_prob)."
_CLASSES_REMEDY = (
    "For several classes use caldist.multiclass, or reduce them with multiclass.top_label or "
    "multiclass.one_vs_rest."
)
_MATRIX_REMEDY = (
    "Binary measures take the probability of label 1 as one column, for example y_prob[:, 1]. "
    "For several classes use caldist.multiclass, for example multiclass.classwise_distance, or "
    "reduce explicitly with multiclass.top_label or multiclass.one_vs_rest."
)


def first(mask: NDArray[np.bool_]) -> int:
    """Return the index of the first True."""
    return int(np.argmax(mask))


def fail(
    name: str,
    array: NDArray[Any],
    bad: NDArray[np.bool_],
    reason: str,
    remedy: str = "",
    error: type[Invalid] = InvalidInput,
) -> NoReturn:
    """Raise for the first value that ``bad`` marks."""
    at = first(bad)
    count = int(np.count_nonzero(bad))
    if count > 1:
        reason += f" (the first of {count} such values)"
    raise error(argument=name, index=at, value=array[at], reason=reason, remedy=remedy)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real | np.bool_)


def _fail_not_numbers(values: object, array: NDArray[Any], name: str) -> NoReturn:
    """Explain why an array that NumPy could not read as real numbers is refused."""
    items = values if isinstance(values, list | tuple) and array.ndim == 1 else array.ravel()
    reason = "it must be a real number"
    for at, item in enumerate(items):
        if isinstance(item, complex | np.complexfloating):
            remedy = "Pass the real part."
        elif isinstance(item, str | bytes):
            remedy = "Convert text to numbers first."
            if name == "y_true":
                remedy = "Convert text to numbers, or say with pos_label which label counts as 1."
        elif item is None:
            remedy = "Drop or fill the rows with missing values first."
        elif _is_number(item):
            continue
        else:
            remedy = "Convert it, for example with numpy.asarray(…, float)."
        index = tuple(map(int, np.unravel_index(at, array.shape))) if array.ndim > 1 else at
        raise InvalidType(argument=name, index=index, value=item, reason=reason, remedy=remedy)
    raise InvalidType(
        argument=name,
        reason=f"is an array of Python objects (dtype {array.dtype}), {show(array.flat[0])} first",
        remedy="Convert it to numbers, for example with numpy.asarray(…, float).",
    )


def real_array(values: object, name: str) -> NDArray[Any]:
    """Return ``values`` as an array of a real NumPy dtype, of any shape."""
    if type(values) is np.ndarray and values.dtype.kind in _NUMBER_KINDS:
        return _aligned(values)
    if isinstance(values, str | bytes | Mapping | AbstractSet) or values is None:
        refuse_several(values, name)
        _fail_no_column(values, name)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidInput(
            argument=name,
            index=first(np.ma.getmaskarray(values).ravel()),
            reason="is masked",
            remedy="Drop the masked rows first, with .compressed().",
        )
    values = readable(values, name)
    try:
        array = np.asarray(values)
    except ValueError as error:
        reason = f"cannot be read as an array of numbers ({error})"
        raise InvalidInput(argument=name, reason=reason) from None
    except Exception as error:
        reason = f"of type {type(values).__name__} cannot be read as an array ({error})"
        raise InvalidType(argument=name, reason=reason) from error
    if array.dtype.kind not in _NUMBER_KINDS:
        if array.ndim == 0:
            _fail_no_column(values, name)
        if array.size:
            _fail_not_numbers(values, array, name)
    return _aligned(array)


def _fail_no_column(values: object, name: str) -> NoReturn:
    raise InvalidType(
        argument=name,
        value=values,
        reason=f"a column of numbers is needed, not a {type(values).__name__}",
        remedy="Pass a list, an array or a column of numbers.",
    )


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers at addresses where compiled code may read them: a copy where they are not."""
    return array if array.flags.aligned else array.copy()


def real_vector(values: object, name: str) -> NDArray[Any]:
    """Return ``values`` as a non-empty one-dimensional array of a real dtype."""
    array = real_array(values, name)
    if array.ndim == 2 and min(array.shape) > 0:
        refuse_several(values, name)
        hint = f"Flatten it with numpy.ravel({name})." if 1 in array.shape else _MATRIX_REMEDY
        reason = f"has shape {array.shape}, but it must be one-dimensional"
        raise InvalidInput(argument=name, reason=reason, remedy=hint)
    if array.ndim != 1:
        raise InvalidInput(
            argument=name,
            reason=f"has {array.ndim} dimensions (shape {array.shape}), but it must have one",
            remedy="Pass one value per row.",
        )
    if array.size == 0:
        raise InvalidInput(argument=name, reason="is empty", remedy="Pass at least one row.")
    return array


def _parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield views of some values at a time, which stay in the processor's cache."""
    return (array[start : start + _BLOCK] for start in range(0, array.size, _BLOCK))


def probabilities(values: object, name: str = "y_prob") -> Vector:
    """Return predictions as contiguous float64 in [0, 1]."""
    array = real_vector(values, name)
    if not all(part.min() >= 0 and part.max() <= 1 for part in _parts(array)):  # NaN fails both
        outside = ~((array >= 0) & (array <= 1))
        fail(name, array, outside, *why_no_probability(array[outside], "apply the sigmoid first"))
    return np.ascontiguousarray(array, dtype=np.float64)


def why_no_probability(outside: NDArray[Any], link: str) -> tuple[str, str]:
    """Return why numbers are no probabilities, and the remedy, which is ``link`` for logits."""
    if np.isnan(outside[0]):
        return "a prediction is missing", "Drop or fill the rows without a prediction."
    reason = "a probability lies between 0 and 1"
    if ((outside >= -_ROUNDED) & (outside <= 1 + _ROUNDED)).all():
        return reason, (
            "Nothing is clipped unless you do it. This is a rounding error: clip it, for example "
            "with numpy.clip(…, 0, 1)."
        )
    if ((outside >= 0) & (outside <= 100)).all():
        return reason, f"If these are percentages, divide by 100; if they are logits, {link}."
    return reason, f"If these are logits, {link}: caldist does not guess."


def labels(
    values: object,
    name: str = "y_true",
    *,
    takes_pos_label: bool = True,
    option: str = "pos_label",
) -> NDArray[np.uint8]:
    """Return labels as contiguous bytes 0 and 1; ``option`` is advised where it is known."""
    array = real_vector(values, name)
    ones = np.empty(array.size, dtype=np.bool_)
    for part, one in zip(_parts(array), _parts(ones), strict=True):
        np.equal(part, 1, out=one)
        if array.dtype.kind == "f":
            valid = (one | (part == 0)).all()
        else:
            valid = 0 <= np.bitwise_or.reduce(part) <= 1
        if not valid:
            bad = (array != 1) & (array != 0)
            _fail_label(name, array, bad, option if takes_pos_label else "")
    return ones.view(np.uint8)


def two_labels(
    values: object, pos_label: object, name: str = "y_true", option: str = "pos_label"
) -> NDArray[np.uint8]:
    """Return bytes 1 where any two labels are ``pos_label``, else 0."""
    if isinstance(pos_label, float) and math.isnan(pos_label):
        reason = "it must be one of the two labels"
        raise InvalidInput(argument=option, value=pos_label, reason=reason)
    values = readable(values, name)
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        real_vector(np.zeros(array.shape), name)  # says what is wrong with the shape
    if array.dtype.kind not in "biufUS":
        array = np.asarray(values, dtype=object)
        missing = np.array([item is None or item != item for item in array], dtype=bool)  # noqa: PLR0124 -- NaN
    else:
        missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.size, bool)
    if missing.any():
        fail(name, array, missing, "a label is missing", "Drop the rows without a label.")
    kind = array.dtype.kind
    text = isinstance(pos_label, str | bytes)
    alike = kind == "O" or (kind in "US") == text
    ones = np.asarray(array == pos_label, bool) if alike else np.zeros(array.size, bool)
    rest = np.flatnonzero(~ones)
    others = array[rest]
    if rest.size and not ones.any():
        different = np.asarray(others != others[0], bool)
        if different.any() or not alike:
            found = [*others[:1].tolist(), *others[different][:1].tolist()]
            reason = (
                f"no label is {option}, {show(pos_label)}; labels are, for example, "
                f"{' and '.join(map(show, found))}"
            )
            fail(name, array, ~ones, reason, f"Pass as {option} the label that counts as 1.")
    elif rest.size:
        different = np.asarray(others != others[0], bool)
    else:
        different = np.zeros(0, bool)
    if different.any():
        at = int(rest[first(different)])
        raise InvalidInput(
            argument=name,
            index=at,
            value=array[at],
            reason=f"a third label next to {show(pos_label)} ({option}) and {show(others[0])}",
            remedy=_CLASSES_REMEDY,
        )
    return np.ascontiguousarray(ones).view(np.uint8)


def _fail_label(name: str, array: NDArray[Any], bad: NDArray[np.bool_], option: str) -> NoReturn:
    found = float(array[first(bad)])
    reason, remedy = "a label is 0 or 1", "Make each label 0 or 1."
    if math.isnan(found):
        reason, remedy = "a label is missing", "Drop the rows without a label."
    elif 0 < found < 1:
        remedy = (
            "A fractional label y is two rows, label 1 with weight y and label 0 with weight 1 - y "
            "(sample_weight)."
        )
    elif found == -1 and bool(np.isin(array, (-1, 1)).all()):
        remedy = f"Labels -1 and 1 become 0 and 1 with ({name} == 1)"
        remedy += f", or pass {option}=1." if option else "."
    elif 1 < found < math.inf and bool(np.all(np.floor(array) == array)):
        remedy = _CLASSES_REMEDY
    fail(name, array, bad, reason, remedy)


def masses(values: object, name: str, size: int, other: str) -> Vector:
    """Return finite nonnegative numbers, as many as ``other`` has, as contiguous float64."""
    array = real_vector(values, name)
    check_size(name, array.size, other, size)
    if not np.isfinite(array).all():
        fail(name, array, ~np.isfinite(array), "it must be a finite number")
    if array.min() < 0:
        fail(name, array, array < 0, "it must not be negative")
    return np.ascontiguousarray(array, dtype=np.float64)


def weights(values: object, size: int, name: str = "sample_weight") -> Vector:
    """Return row weights, of which only ratios matter: finite, nonnegative, not all zero.

    Those whose squares would leave the range of floats are multiplied by a power of two, which
    changes no ratio. A joint, which merges with others, keeps the unit of its weights:
    :func:`check_largest` says what that may be.
    """
    result = masses(values, name, size, "y_prob")
    check_total(name, result)
    check_ratios(name, result)
    largest = float(result.max())
    if LEAST_LARGEST <= largest <= MOST_LARGEST:
        return result
    return np.ldexp(result, -math.frexp(largest)[1])


def check_masses(name: str, values: NDArray[Any]) -> None:
    """Raise unless masses can be merged with others: their unit and their ratios are usual ones."""
    check_largest(name, values)
    check_ratios(name, values)


def check_largest(name: str, values: NDArray[Any]) -> None:
    """Raise unless the largest weight is such that squares and sums of weights are usual floats."""
    largest = float(values.max(initial=0))
    if largest > 0 and not LEAST_LARGEST <= largest <= MOST_LARGEST:
        reason = f"the largest weight must lie between {LEAST_LARGEST:g} and {MOST_LARGEST:g} here"
        remedy = "Divide the weights by their maximum, those of joints to be merged by one number."
        fail(name, values, values == largest, reason, remedy)


def check_ratios(name: str, values: NDArray[Any]) -> None:
    """Raise for a weight that is positive and below ``LEAST_RATIO`` times the largest one."""
    largest = values.max(initial=0)
    small = values < LEAST_RATIO * largest
    if small.any() and (small := small & (values > 0)).any():
        reason = (
            f"a weight is 0 or at least {LEAST_RATIO:g} times the largest one, which is "
            f"{show(largest)}"
        )
        remedy = "It is too small to change any result: make it 0, or leave the row out."
        fail(name, values, small, reason, remedy)


def check_total(name: str, *parts: NDArray[Any]) -> None:
    """Raise unless some mass is positive."""
    if not any(part.any() for part in parts):
        remedy = "Give a positive weight to the rows that count."
        raise InvalidInput(
            argument=name, index=0, value=parts[0][0], reason="all weights are 0", remedy=remedy
        )


def positions(support: NDArray[Any], values: NDArray[Any]) -> Integers:
    """Return the index of each value in the support, which was made of the same values before."""
    place = np.searchsorted(support, values)
    if place.max(initial=-1) >= support.size or not np.array_equal(support[place], values):
        refuse_changed()
    return place


def refuse_changed() -> NoReturn:
    """Raise where arrays that were checked before hold something else now."""
    message = (
        "y_true, y_prob or sample_weight changed while it was read: pass a copy that no thread "
        "writes to."
    )
    raise RuntimeError(message)


def check_size(name: str, size: int, other: str, expected: int) -> None:
    """Raise unless a column has as many values as another."""
    if size != expected:
        raise InvalidInput(
            argument=name,
            reason=f"has {size} values and {other} has {expected}",
            remedy="Pass columns of the same length, one value per row.",
        )


def _fail_if_swapped(y_true: object, y_prob: object, names: tuple[str, str], remedy: str) -> None:
    """Raise when the labels hold probabilities and the predictions labels."""
    true_name, prob_name = names
    try:
        found = probabilities(y_true, true_name)
        holds = "text" if _is_text(y_prob) else "only 0 and 1"
        if holds != "text":
            labels(y_prob, prob_name)
    except (TypeError, ValueError):
        return
    at = first((found > 0) & (found < 1))
    reason = f"{true_name} and {prob_name} look swapped, since {prob_name} holds {holds}"
    raise InvalidInput(argument=true_name, index=at, value=found[at], reason=reason, remedy=remedy)


def _is_text(values: object) -> bool:
    """Return whether a column holds text, going by its first value."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or len(values) == 0:
        return False
    return isinstance(np.asarray(readable(values, "y_prob")).flat[0], str)


def named_inputs(
    y_true: object,
    predictions: Mapping[str, object],
    *,
    true_name: str = "y_true",
    remedy: str = _ORDER,
    pos_label: object = None,
    takes_pos_label: bool = True,
    option: str = "pos_label",
) -> tuple[NDArray[np.uint8], list[Vector]]:
    """Return clean labels and columns of predictions, which messages call by their keys.

    ``remedy`` says what to do where labels and predictions look swapped. With ``pos_label`` the
    labels may be any two values, if that is an option of the function that asks, called ``option``.
    """
    try:
        if pos_label is None:
            label = labels(y_true, true_name, takes_pos_label=takes_pos_label, option=option)
        else:
            label = two_labels(y_true, pos_label, true_name, option)
    except ValueError:
        for name, values in predictions.items():
            _fail_if_swapped(y_true, values, (true_name, name), remedy)
        raise
    clean = [probabilities(values, name) for name, values in predictions.items()]
    for name, prediction in zip(predictions, clean, strict=True):
        check_size(true_name, label.size, name, prediction.size)
    return label, clean


def called(y_prob: Mapping[Any, object]) -> dict[str, object]:
    """Return the predictions of models that were passed by their names, as messages call them."""
    if not y_prob:
        remedy = "Pass at least one model, {name: predictions}."
        raise InvalidInput(argument="y_prob", reason="is an empty dict", remedy=remedy)
    for name in y_prob:
        if not isinstance(name, str):
            reason = f"has the key {show(name)}, but the name of a model must be a string"
            raise InvalidType(argument="y_prob", reason=reason)
    return {f"y_prob[{name!r}]": values for name, values in y_prob.items()}


def binary_inputs(
    y_true: object,
    y_prob: object,
    sample_weight: object = None,
    *,
    remedy: str = _ORDER,
    pos_label: object = None,
    takes_pos_label: bool = True,
) -> tuple[NDArray[np.uint8], Vector, Vector | None]:
    """Return clean labels, predictions and weights (None where there are none)."""
    if y_prob is None:
        if isinstance(y_true, str | os.PathLike) or len(column_names(y_true)) > 1:
            refuse_table(y_true)
        raise InvalidType(
            argument="y_prob",
            value=None,
            reason="predictions are needed",
            remedy="Pass them, or a caldist.Joint alone in place of labels and predictions.",
        )
    label, [prediction] = named_inputs(
        y_true,
        {"y_prob": y_prob},
        remedy=remedy,
        pos_label=pos_label,
        takes_pos_label=takes_pos_label,
    )
    if sample_weight is None:
        return label, prediction, None
    return label, prediction, weights(sample_weight, prediction.size)


def check_choice(name: str, value: object, choices: Collection[object]) -> None:
    """Raise unless ``value`` is one of the choices."""
    if type(value) in _SIMPLE and value in choices:
        return
    known = isinstance(value, str | numbers.Real | None) and not isinstance(value, bool | np.bool_)
    if known and value in choices:
        return
    listed = ", ".join(repr(choice) for choice in choices)
    raise InvalidInput(argument=name, value=value, reason=f"it must be one of {listed}")


def check_goes_with(
    name: str, value: object, other: str, found: object, allowed: Collection[object]
) -> None:
    """Raise for an option that goes with some values of another only."""
    if found not in allowed:
        listed = " or ".join(f"{other}={choice!r}" for choice in allowed)
        raise InvalidInput(
            argument=name,
            value=value,
            reason=f"it goes with {listed} only, but {other} is {found!r}",
            remedy=f"Leave {name} out.",
        )


def check_pair(name: str, first: object, second: object) -> None:
    """Raise unless the columns of label 0 and label 1 are both given, or neither."""
    if (first is None) != (second is None):
        missing, given = (f"{name}0", f"{name}1") if first is None else (f"{name}1", f"{name}0")
        raise InvalidInput(
            argument=missing,
            value=None,
            reason=f"it goes with {given}, which was given",
            remedy="Pass both or neither.",
        )


def check_flag(name: str, value: object) -> bool:
    """Return a true Boolean."""
    if type(value) is bool:
        return value
    if not isinstance(value, bool | np.bool_):
        raise InvalidType(argument=name, value=value, reason="it must be True or False")
    return bool(value)


def check_count(name: str, value: object, minimum: int = 1, maximum: int = 2**53) -> int:
    """Return an integer between ``minimum`` and ``maximum``."""
    if type(value) is int and minimum <= value <= maximum:
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise InvalidType(argument=name, value=value, reason="it must be an integer")
    count = int(value)
    if count < minimum:
        raise InvalidInput(argument=name, value=value, reason=f"it must be at least {minimum}")
    if count > maximum:
        raise InvalidInput(argument=name, value=value, reason=f"it must be at most {maximum}")
    return count


def _real_number(name: str, value: object) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise InvalidType(argument=name, value=value, reason="it must be a real number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidInput(argument=name, value=value, reason="that is too large") from None


def check_positive(name: str, value: object) -> float:
    """Return a positive number, far from where its powers and inverse leave the range of floats."""
    number = _real_number(name, value)
    if not 0 < number < math.inf:
        raise InvalidInput(argument=name, value=value, reason="it must be positive and finite")
    if not 1e-200 <= number <= 1e200:
        raise InvalidInput(
            argument=name, value=value, reason="it must lie between 1e-200 and 1e200"
        )
    return number


def check_nonnegative(name: str, value: object) -> float:
    """Return a finite number that is not negative."""
    number = _real_number(name, value)
    if not 0 <= number < math.inf:
        raise InvalidInput(argument=name, value=value, reason="it must be finite and not negative")
    return number


def check_fraction(name: str, value: object) -> float:
    """Return a number strictly between 0 and 1."""
    return check_limit(name, value)


def check_limit(
    name: str, value: object, *, ceiling: float = 1.0, allow_zero: bool = False
) -> float:
    """Return a limit for values between 0 and ``ceiling``: one that can be met and can be missed.

    A limit of 0 is allowed where it asks for significant miscalibration, and nothing has to be
    below it.
    """
    number = _real_number(name, value)
    if 0 < number < ceiling or (allow_zero and number == 0):
        return number
    end = f"{ceiling:g}" if math.isfinite(ceiling) else "infinity"
    between = (
        f"be at least 0 and below {end}" if allow_zero else f"lie strictly between 0 and {end}"
    )
    percent = f"For {number:g}% pass {number / 100:g}." if 1 < number < 100 else ""
    reason = f"it must {between}"
    raise InvalidInput(argument=name, value=value, reason=reason, remedy=percent)


def generator(rng: object) -> np.random.Generator:
    """Return a random generator from an integer seed, a generator or None."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None or (
        isinstance(rng, numbers.Integral) and not isinstance(rng, bool) and int(rng) >= 0
    ):
        return np.random.default_rng(cast("int | None", rng))
    reason = "it must be a nonnegative integer seed, a numpy.random.Generator or None"
    raise InvalidType(argument="rng", value=rng, reason=reason)
