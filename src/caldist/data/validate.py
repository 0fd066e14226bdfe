"""From what users pass to clean arrays, and every error message they meet on the way.

Nothing is clipped, guessed or dropped. Each message names the argument, the value found, its first
position and the remedy.
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
_MATRIX_REMEDY = (
    "Binary measures take the probability of label 1 as one column, for example y_prob[:, 1]. "
    "For several classes use caldist.multiclass, for example multiclass.classwise_distance, or "
    "reduce explicitly with caldist.top_label or caldist.one_vs_rest."
)


def first(mask: NDArray[np.bool_]) -> int:
    """Return the place of the first True."""
    return int(np.argmax(mask))


def show(value: object) -> str:
    """Return a value as it stands in messages."""
    text = str(value) if isinstance(value, np.generic) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class ValueAtError(ValueError):
    """A value that is refused, and its place: who knows more of it than a number says so.

    Attributes
    ----------
    name, at
        What the array is called, and the place in it.
    why
        What is wrong with it, and the remedy.
    others
        How many more there are, in words.
    """

    name: str = ""
    at: int = -1
    why: str = ""
    others: str = ""

    @classmethod
    def of(
        cls, name: str, array: NDArray[Any], at: int, why: str, others: str = ""
    ) -> ValueAtError:
        """Return the error for a value of an array."""
        error = cls(f"{name}[{at}] is {show(array[at])}{others}: {why}")
        error.name, error.at, error.why, error.others = name, at, why, others
        return error


def fail(
    name: str, array: NDArray[Any], bad: NDArray[np.bool_], why: str, error: type = ValueError
) -> NoReturn:
    """Raise for the first value that ``bad`` marks."""
    at = first(bad)
    count = int(np.count_nonzero(bad))
    others = "" if count == 1 else f" (the first of {count} such values)"
    found = ValueAtError.of(name, array, at, why, others)
    raise found if error is ValueError else error(str(found))


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real | np.bool_)


def _fail_not_numbers(values: object, array: NDArray[Any], name: str) -> NoReturn:
    """Explain why an array that NumPy could not read as real numbers is refused."""
    items = values if isinstance(values, list | tuple) else array
    remedy = f"{name} must hold real numbers: convert it, for example with numpy.asarray(…, float)."
    for at, item in enumerate(items):
        if isinstance(item, complex | np.complexfloating):
            remedy = f"{name} must hold real numbers, not complex ones: pass the real part."
        elif isinstance(item, str | bytes):
            remedy = f"{name} must hold numbers, not text: convert it to numbers first."
            if name == "y_true":
                remedy = remedy[:-1] + ", or say with pos_label which label counts as 1."
        elif item is None:
            remedy = f"{name} must not have missing values: drop or fill those rows first."
        elif _is_number(item):
            continue
        message = f"{name}[{at}] is {show(item)}: {remedy}"
        raise TypeError(message)
    message = (
        f"{name} is an array of Python objects (dtype {array.dtype}, {name}[0] is "
        f"{show(array.flat[0])}): {remedy}"
    )
    raise TypeError(message)


def real_array(values: object, name: str) -> NDArray[Any]:
    """Return ``values`` as an array of a real NumPy dtype, of any shape."""
    if type(values) is np.ndarray and values.dtype.kind in _NUMBER_KINDS:
        return _aligned(values)
    if isinstance(values, str | bytes | Mapping | AbstractSet) or values is None:
        refuse_several(values, name)
        message = (
            f"{name} is {show(values)}, of type {type(values).__name__}: "
            "pass a list, an array or a column of numbers."
        )
        raise TypeError(message)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        at = first(np.ma.getmaskarray(values).ravel())
        message = f"{name}[{at}] is masked: drop the masked rows first, with .compressed()."
        raise ValueError(message)
    values = readable(values, name)
    try:
        array = np.asarray(values)
    except ValueError as error:
        message = f"{name} cannot be read as an array of numbers ({error})."
        raise ValueError(message) from None
    except Exception as error:
        message = f"{name}, of type {type(values).__name__}, cannot be read as an array: {error}"
        raise TypeError(message) from error
    if array.dtype.kind not in _NUMBER_KINDS:
        if array.ndim == 0:
            message = (
                f"{name} is {show(values)}, of type {type(values).__name__}: "
                "pass a list, an array or a column of numbers."
            )
            raise TypeError(message)
        if array.size:
            _fail_not_numbers(values, array, name)
    return _aligned(array)


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers at addresses where compiled code may read them: a copy where they are not."""
    return array if array.flags.aligned else array.copy()


def real_vector(values: object, name: str) -> NDArray[Any]:
    """Return ``values`` as a non-empty one-dimensional array of a real dtype."""
    array = real_array(values, name)
    if array.ndim == 2 and min(array.shape) > 0:
        refuse_several(values, name)
        hint = f"Flatten it with numpy.ravel({name})." if 1 in array.shape else _MATRIX_REMEDY
        message = f"{name} has shape {array.shape}; it must be one-dimensional. {hint}"
        raise ValueError(message)
    if array.ndim != 1:
        message = (
            f"{name} has {array.ndim} dimensions (shape {array.shape}); it must be one-dimensional,"
            " with one value per row."
        )
        raise ValueError(message)
    if array.size == 0:
        message = f"{name} is empty: at least one row is needed."
        raise ValueError(message)
    return array


def _parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield views of some values at a time, which stay in the processor's cache."""
    return (array[start : start + _BLOCK] for start in range(0, array.size, _BLOCK))


def probabilities(values: object, name: str = "y_prob") -> Vector:
    """Return predictions as contiguous float64 in [0, 1]."""
    array = real_vector(values, name)
    if not all(part.min() >= 0 and part.max() <= 1 for part in _parts(array)):  # NaN fails both
        outside = ~((array >= 0) & (array <= 1))
        why = why_no_probability(array[outside], "apply the sigmoid first")
        fail(name, array, outside, why)
    return np.ascontiguousarray(array, dtype=np.float64)


def why_no_probability(outside: NDArray[Any], link: str) -> str:
    """Return why numbers are no probabilities, and the remedy, which is ``link`` for logits."""
    if np.isnan(outside[0]):
        return "drop or fill the rows without a prediction."
    if ((outside >= -_ROUNDED) & (outside <= 1 + _ROUNDED)).all():
        return (
            "a probability lies between 0 and 1, and nothing is clipped unasked. This is rounding: "
            "clip it, for example with numpy.clip(…, 0, 1)."
        )
    percent = ((outside >= 0) & (outside <= 100)).all()
    return (
        "a probability lies between 0 and 1. Nothing is clipped and logits are not guessed: if "
        + ("these are percentages, divide by 100; if they" if percent else "these")
        + f" are logits, {link}."
    )


def labels(
    values: object, name: str = "y_true", *, takes_pos_label: bool = True
) -> NDArray[np.uint8]:
    """Return labels as contiguous bytes 0 and 1; ``pos_label`` is advised where it is known."""
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
            _fail_label(name, array, bad, takes_pos_label=takes_pos_label)
    return ones.view(np.uint8)


def two_labels(values: object, pos_label: object, name: str = "y_true") -> NDArray[np.uint8]:
    """Return bytes 1 where any two labels are ``pos_label``, else 0."""
    if isinstance(pos_label, float) and math.isnan(pos_label):
        message = f"pos_label is {show(pos_label)}; it must be one of the two labels."
        raise ValueError(message)
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
        fail(name, array, missing, "drop the rows without a label.")
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
            why = (
                f"pos_label is {show(pos_label)}, which is none of the labels, such as "
                f"{' and '.join(map(show, found))}."
            )
            fail(name, array, ~ones, why)
    elif rest.size:
        different = np.asarray(others != others[0], bool)
    else:
        different = np.zeros(0, bool)
    if different.any():
        at = int(rest[first(different)])
        third = f", a third label beside {show(pos_label)} (pos_label) and {show(others[0])}"
        why = (
            "for several classes use caldist.multiclass, or reduce explicitly with "
            "caldist.top_label or caldist.one_vs_rest."
        )
        raise ValueAtError.of(name, array, at, why, third)
    return np.ascontiguousarray(ones).view(np.uint8)


def _fail_label(
    name: str, array: NDArray[Any], bad: NDArray[np.bool_], *, takes_pos_label: bool
) -> NoReturn:
    found = float(array[first(bad)])
    if math.isnan(found):
        why = "drop the rows without a label."
    elif 0 < found < 1:
        why = (
            "a label is 0 or 1. A fractional label y is two rows, label 1 with weight y and label "
            "0 with weight 1 - y (sample_weight)."
        )
    elif found == -1 and bool(np.isin(array, (-1, 1)).all()):
        why = f"a label is 0 or 1. Labels -1 and 1 become 0 and 1 with ({name} == 1)"
        why += ", or pass pos_label=1." if takes_pos_label else "."
    elif 1 < found < math.inf and bool(np.all(np.floor(array) == array)):
        why = (
            "a label is 0 or 1. For several classes use caldist.multiclass, or reduce explicitly "
            "with caldist.top_label or caldist.one_vs_rest."
        )
    else:
        why = "a label is 0 or 1."
    fail(name, array, bad, why)


def masses(values: object, name: str, size: int, other: str) -> Vector:
    """Return finite nonnegative numbers, as many as ``other`` has, as contiguous float64."""
    array = real_vector(values, name)
    check_size(name, array.size, other, size)
    if not np.isfinite(array).all():
        fail(name, array, ~np.isfinite(array), "it must be a finite number.")
    if array.min() < 0:
        fail(name, array, array < 0, "it must not be negative.")
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
        why = (
            f"the largest weight must lie between {LEAST_LARGEST:g} and {MOST_LARGEST:g} here: "
            "divide the weights by their maximum, those of joints to be merged by the same number."
        )
        fail(name, values, values == largest, why)


def check_ratios(name: str, values: NDArray[Any]) -> None:
    """Raise for a weight that is positive and below ``LEAST_RATIO`` times the largest one."""
    largest = values.max(initial=0)
    small = values < LEAST_RATIO * largest
    if small.any() and (small := small & (values > 0)).any():
        why = (
            f"a weight is 0 or at least {LEAST_RATIO:g} times the largest one, which is "
            f"{show(largest)}. Only ratios of weights matter, and this one is too small to change "
            "any result: make it 0, or leave it out."
        )
        fail(name, values, small, why)


def check_total(name: str, *parts: NDArray[Any]) -> None:
    """Raise unless some mass is positive."""
    if not any(part.any() for part in parts):
        message = f"{name} is 0 everywhere, from {name}[0] on: no row would count."
        raise ValueError(message)


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
        message = (
            f"{name} has {size} values and {other} has {expected}: they must have the same length, "
            "one value per row."
        )
        raise ValueError(message)


def _fail_if_swapped(y_true: object, y_prob: object, names: tuple[str, str], remedy: str) -> None:
    """Raise when the labels hold probabilities and the predictions labels."""
    true_name, prob_name = names
    try:
        first = real_vector(y_true, true_name)
        probabilities(first, true_name)
        holds = "text" if _is_text(y_prob) else "only 0 and 1"
        if holds != "text":
            labels(y_prob, prob_name)
    except (TypeError, ValueError):
        return
    fail(
        true_name,
        first,
        (first > 0) & (first < 1),
        f"{true_name} and {prob_name} look swapped, since {prob_name} holds {holds}. {remedy}",
    )


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
) -> tuple[NDArray[np.uint8], list[Vector]]:
    """Return clean labels and columns of predictions, which messages call by their keys.

    ``remedy`` says what to do where labels and predictions look swapped. With ``pos_label`` the
    labels may be any two values, if that is an option of the function that asks.
    """
    try:
        if pos_label is None:
            label = labels(y_true, true_name, takes_pos_label=takes_pos_label)
        else:
            label = two_labels(y_true, pos_label, true_name)
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
        message = "y_prob is an empty dict: at least one model is needed."
        raise ValueError(message)
    for name in y_prob:
        if not isinstance(name, str):
            message = f"y_prob has the key {show(name)}; the name of a model must be a text."
            raise TypeError(message)
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
        message = (
            "y_prob is None: pass the predictions, or a caldist.Joint alone in place of labels and "
            "predictions."
        )
        raise TypeError(message)
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
    message = f"{name} is {show(value)}; it must be one of {listed}."
    raise ValueError(message)


def check_goes_with(
    name: str, value: object, other: str, found: object, allowed: Collection[object]
) -> None:
    """Raise for an option that goes with some values of another only."""
    if found not in allowed:
        listed = " or ".join(f"{other}={choice!r}" for choice in allowed)
        message = (
            f"{name} is {show(value)}, which goes with {listed} only; {other} is {found!r}: leave "
            f"{name} out."
        )
        raise ValueError(message)


def check_flag(name: str, value: object) -> bool:
    """Return a true Boolean."""
    if type(value) is bool:
        return value
    if not isinstance(value, bool | np.bool_):
        message = f"{name} is {show(value)}; it must be True or False."
        raise TypeError(message)
    return bool(value)


def check_count(name: str, value: object, minimum: int = 1, maximum: int = 2**53) -> int:
    """Return an integer between ``minimum`` and ``maximum``."""
    if type(value) is int and minimum <= value <= maximum:
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        message = f"{name} is {show(value)}; it must be an integer."
        raise TypeError(message)
    count = int(value)
    if count < minimum:
        message = f"{name} is {show(value)}; it must be at least {minimum}."
        raise ValueError(message)
    if count > maximum:
        message = f"{name} is {show(value)}; it must be at most {maximum}."
        raise ValueError(message)
    return count


def _real_number(name: str, value: object) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        message = f"{name} is {show(value)}; it must be a real number."
        raise TypeError(message)
    try:
        return float(value)
    except OverflowError:
        message = f"{name} is {show(value)}; that is too large."
        raise ValueError(message) from None


def check_positive(name: str, value: object) -> float:
    """Return a positive number, far from where its powers and inverse leave the range of floats."""
    number = _real_number(name, value)
    if not 0 < number < math.inf:
        message = f"{name} is {show(value)}; it must be positive and finite."
        raise ValueError(message)
    if not 1e-200 <= number <= 1e200:
        message = f"{name} is {show(value)}; it must lie between 1e-200 and 1e200."
        raise ValueError(message)
    return number


def check_nonnegative(name: str, value: object) -> float:
    """Return a finite number that is not negative."""
    number = _real_number(name, value)
    if not 0 <= number < math.inf:
        message = f"{name} is {show(value)}; it must be finite and not negative."
        raise ValueError(message)
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
    percent = f" For {number:g}% pass {number / 100:g}." if 1 < number < 100 else ""
    message = f"{name} is {show(value)}; it must {between}.{percent}"
    raise ValueError(message)


def generator(rng: object) -> np.random.Generator:
    """Return a random generator from an integer seed, a generator or None."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None or (
        isinstance(rng, numbers.Integral) and not isinstance(rng, bool) and int(rng) >= 0
    ):
        return np.random.default_rng(cast("int | None", rng))
    message = (
        f"rng is {show(rng)}; it must be a nonnegative integer seed, a numpy.random.Generator or "
        "None."
    )
    raise TypeError(message)
