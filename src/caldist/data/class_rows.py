"""Several classes: ``ClassRows``, a matrix of probabilities checked once, and its summaries."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.cached import cached_property
from caldist._util.invalid import InvalidInput, InvalidType, show
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.categories import number_labels
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import column_names, is_list_of_models, refuse_several

Classes = Sequence[Hashable]

# Rows of a probability matrix may miss a sum of 1 by this much: what half precision or a file with
# three decimals loses. No sum of two or three decimals lies so near to the limit that rounding
# decides: 0.99 is beyond.
ROW_SUM_TOLERANCE = 7.5e-3

EXACT_SUM = 1e-12  # what the sum of a row of double precision may miss 1 by; more is divided out
_SAME = 1e-9  # by how much, in proportion, totals of summaries of the same rows may differ
_BINARY = "For one column of probabilities use the binary measures directly."
_BLOCK = 16  # columns that are taken from a matrix at once


class ClassRows:
    """A sample with several classes: labels, and a row of probabilities for each.

    The matrix stays as it was given, in its own precision. Rows whose sum misses 1 by more than
    rounding are divided by it, column by column as they are asked for.

    Attributes
    ----------
    label
        The number of each row's class.
    names
        What the classes are called, in the order of the columns.
    weight
        The weights of the rows, or None.
    """

    def __init__(
        self,
        label: Integers,
        matrix: NDArray[Any],
        names: list[Any],
        weight: Vector | None = None,
    ) -> None:
        self.label, self.names, self.weight = label, names, weight
        self._matrix = matrix
        total = _row_sums(matrix)
        off = np.abs(total - 1) > EXACT_SUM
        self._total = np.where(off, total, 1.0) if off.any() else None

    @classmethod
    def of(
        cls,
        y_true: ArrayLike | ClassRows,
        y_prob: ArrayLike | None = None,
        *,
        classes: Classes | None = None,
        normalize: bool = False,
        sample_weight: ArrayLike | None = None,
    ) -> ClassRows:
        """Check labels and a matrix of probabilities."""
        if isinstance(y_true, ClassRows):
            return y_true
        if isinstance(y_true, Joint) or isinstance(y_prob, Joint):
            argument = "y_true" if isinstance(y_true, Joint) else "y_prob"
            raise InvalidType(
                argument=argument,
                reason="is a Joint, which has one column of predictions",
                remedy="Pass labels and a matrix, or use the function of the same name for two "
                "classes.",
            )
        if _are_summaries(y_true):
            raise InvalidType(
                argument="y_true",
                reason="holds a Joint for each class, and these do not hold the single rows that "
                "this needs",
                remedy="Pass labels and a matrix. multiclass.classwise_distance and "
                "classwise_table take joints, and caldist.report.",
            )
        if y_prob is None:
            remedy = "Pass a matrix, with a row per example and a column per class."
            reason = "predictions are needed"
            raise InvalidType(argument="y_prob", value=None, reason=reason, remedy=remedy)
        hint = "For other labels pass classes=[…], in the order of the columns."
        label, matrix, names = labelled_matrix(y_true, y_prob, classes, hint, normalize=normalize)
        weight = None
        if sample_weight is not None:
            weight = validate.weights(sample_weight, matrix.shape[0])
        return cls(label, matrix, names, weight)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.label.size

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self._matrix.shape[1])

    @cached_property
    def share(self) -> Vector:
        """The weight of each row, divided by that of all."""
        if self.weight is None:
            return np.full(self.n_rows, 1 / self.n_rows)
        return np.asarray(self.weight / self.weight.sum())

    @cached_property
    def dense(self) -> Vector:
        """The matrix in double precision, rows summing to 1; a copy only where that changes it."""
        matrix = np.ascontiguousarray(self._matrix, dtype=np.float64)
        return matrix if self._total is None else matrix / self._total[:, None]

    @cached_property
    def own(self) -> Vector:
        """The probability of each row's own class."""
        own = self._matrix[np.arange(self.n_rows), self.label].astype(np.float64)
        return own if self._total is None else own / self._total

    @cached_property
    def mean_residual(self) -> Vector:
        """E[y_j - v_j] of each class j."""
        seen = np.bincount(self.label, self.share, self.n_classes)
        share = self.share if self._total is None else self.share / self._total
        if self._matrix.dtype == np.float64:
            return np.asarray(seen - share @ self._matrix)
        return np.array([seen[j] - self.share @ v for j, v in enumerate(self.columns())])

    def columns(self) -> Iterator[Vector]:
        """Give the probabilities of each class, as contiguous numbers of double precision."""
        for start in range(0, self.n_classes, _BLOCK):
            block = self._matrix[:, start : start + _BLOCK].T.astype(np.float64, order="C")
            if self._total is not None:
                block /= self._total
            yield from block

    def problem(self, prediction: Vector, number: int) -> Rows:
        """Return the binary problem of one class against the rest, given its column."""
        label = (self.label == number).view(np.uint8)
        return Rows(label, prediction, self.weight)

    def problems(self) -> Iterator[Rows]:
        """Give the binary problem of each class against the rest."""
        for number, prediction in enumerate(self.columns()):
            yield self.problem(prediction, number)

    @cached_property
    def binary(self) -> Rows:
        """Two classes as the binary problem of the second."""
        *_, last = self.problems()
        return last

    def take(self, which: Integers) -> ClassRows:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[which]
        return ClassRows(self.label[which], self._matrix[which], self.names, weight)


class ClassJoints:
    """A joint for each class against the rest, all of the same rows.

    Attributes
    ----------
    names
        What the classes are called.
    joints
        Their joints.
    """

    def __init__(self, names: list[Any], joints: list[Joint]) -> None:
        self.names, self.joints = names, joints

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.joints)

    def problems(self) -> Iterator[Rows]:
        """Give the binary problem of each class against the rest."""
        for joint in self.joints:
            yield Rows.of(joint)

    @cached_property
    def binary(self) -> Rows:
        """Two classes as the binary problem of the second."""
        return Rows.of(self.joints[-1])

    @classmethod
    def of(cls, joints: Mapping[Any, Any] | Sequence[Any], classes: Classes | None) -> ClassJoints:
        """Check that the joints are those of all classes of the same rows."""
        if isinstance(joints, Mapping):
            if classes is not None:
                reason = "was given with a dict, whose keys are the classes"
                raise InvalidType(argument="classes", reason=reason, remedy="Leave it out.")
            names = list(joints)
            values = list(joints.values())
        else:
            values = list(joints)
            names = class_names(classes, len(values))
        for name, joint in zip(names, values, strict=True):
            if not isinstance(joint, Joint):
                raise InvalidType(
                    argument=f"y_true[{name!r}]",
                    reason=f"is of type {type(joint).__name__}, but in place of labels there must "
                    "be a caldist.Joint for each class",
                    remedy="multiclass.summarize_one_vs_rest returns them.",
                )
        if len(values) < 2:
            reason = f"has {len(values)} joint, but two or more are needed, one for each class"
            raise InvalidInput(argument="y_true", reason=reason)
        total = values[0].total
        for name, joint in zip(names, values, strict=True):
            if not abs(joint.total - total) <= _SAME * total:
                raise InvalidInput(
                    argument=f"y_true[{name!r}]",
                    reason=f"has mass {joint.total:.10g} and y_true[{names[0]!r}] has "
                    f"{total:.10g}, but they must be summaries of the same rows",
                )
        true = sum(float(joint.mass1.sum()) for joint in values)
        if not abs(true - total) <= _SAME * total:
            raise InvalidInput(
                argument="y_true",
                reason=f"has mass {true:.10g} of label 1 over all classes and {total:.10g} in "
                "all: each row has exactly one class, so these must be equal",
                remedy="Pass the joints of all classes.",
            )
        return cls(names, values)


def class_source(
    y_true: Any,
    y_prob: Any = None,
    *,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: Any = None,
) -> ClassRows | ClassJoints:
    """Check rows, or the joints that stand for them: a dict from class to joint, or a list."""
    if isinstance(y_true, ClassJoints):
        return y_true
    if not _are_summaries(y_true):
        return ClassRows.of(
            y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
        )
    given = {"y_prob": y_prob, "sample_weight": sample_weight, "normalize": normalize or None}
    for name, value in given.items():
        if value is not None:
            reason = "was given with a Joint for each class, which have it in them"
            raise InvalidType(argument=name, reason=reason, remedy="Leave it out.")
    return ClassJoints.of(y_true, classes)


def _are_summaries(y_true: object) -> bool:
    if isinstance(y_true, Mapping):
        return any(isinstance(item, Joint) for item in y_true.values())
    return isinstance(y_true, list | tuple) and any(isinstance(item, Joint) for item in y_true)


def sums_by(number: Integers, values: Vector, size: int) -> Vector:
    """Return the sum of the values of each number from 0 to ``size`` - 1."""
    return np.bincount(number, values, size).astype(np.float64, copy=False)


def class_names(classes: Classes | None, size: int) -> list[Any]:
    """Return what the columns are called."""
    if classes is None:
        return list(range(size))
    unordered = isinstance(classes, str | bytes | Mapping | AbstractSet)
    if unordered or not hasattr(classes, "__iter__"):
        reason = f"it must be a list of {size} classes, in the order of the columns of y_prob"
        raise InvalidType(argument="classes", value=classes, reason=reason)
    names = [item.item() if isinstance(item, np.generic) else item for item in classes]
    for at, name in enumerate(names):
        if not isinstance(name, Hashable):
            reason = "the name of a class must be hashable"
            raise InvalidType(argument="classes", index=at, value=name, reason=reason)
    if len(names) != size or len(set(names)) != size:
        reason = f"it must name {size} different classes, one for each column of y_prob"
        raise InvalidInput(argument="classes", value=names, reason=reason)
    return names


def labelled_matrix(
    y_true: object,
    y_prob: object,
    classes: Classes | None = None,
    hint: str = "",
    *,
    normalize: bool = False,
) -> tuple[Integers, NDArray[Any], list[Any]]:
    """Return the number of each row's class, the matrix and what its columns are called.

    ``hint`` says what to do where labels are no numbers and no names of columns.
    """
    normalize = validate.check_flag("normalize", normalize)
    matrix = _matrix_beside(y_true, y_prob, normalize=normalize)
    columns = [n.item() if isinstance(n, np.generic) else n for n in column_names(y_prob)]
    if classes is None and _name_classes(columns, y_true):
        classes = columns
    names = class_names(classes, matrix.shape[1])
    if columns:
        check_order("y_prob", columns, names)
    if classes is None:
        label = class_numbers(y_true, matrix.shape[0], matrix.shape[1], hint)
        return label, matrix, names
    return _named_numbers(y_true, matrix.shape[0], names), matrix, names


def _name_classes(columns: list[Any], y_true: object) -> bool:
    """Return whether the columns of a frame are called as the labels are.

    Of text one label will do, so that another is refused. Numbers may be names or positions: where
    some could be both, which labels occur must not decide.
    """
    positions = range(len(columns))
    if columns == list(positions):
        return False
    if 0 < len(set(columns) & set(positions)) < len(columns):
        raise InvalidInput(
            argument="y_prob",
            reason=f"has the columns {show(columns)}, of which some are also positions",
            remedy="Pass classes=[…], the labels in the order of the columns.",
        )
    label = np.asarray(y_true, dtype=object)
    if label.ndim != 1:
        return False
    try:
        labels = set(label.tolist())
        known = labels & set(columns)
    except TypeError:  # what cannot be hashed is no name; it is refused when it is read
        return False
    return bool(known) and (known == labels or any(isinstance(name, str) for name in known))


def check_order(name: str, columns: Sequence[Any], names: Sequence[Any]) -> None:
    """Raise for columns that are called as the classes, and stand in another order.

    What all columns begin or end with, as in p_cat and p_dog, is no part of their names.
    """
    called, wanted = (_told_apart(list(map(str, which))) for which in (columns, names))
    if called != wanted and sorted(called) == sorted(wanted):
        raise InvalidInput(
            argument=name,
            reason=f"has the columns {show(list(columns))} and the classes are "
            f"{show(list(names))}, the same names in another order",
            remedy="Columns are matched by position: reorder the columns or the classes.",
        )


def _told_apart(names: list[str]) -> list[str]:
    """Return names without what all of them begin with, and then without what all end with."""
    common = os.path.commonprefix  # of characters
    start = len(common(names))
    end = len(common([name[start:][::-1] for name in names]))
    return [name[start : len(name) - end] for name in names]


def class_numbers(y_true: object, size: int, count: int, hint: str = "") -> Integers:
    """Return labels that are the numbers of their classes."""
    try:
        array = validate.real_array(y_true, "y_true")
    except InvalidType as error:
        if isinstance(error.value, str | bytes):
            remedy = hint or "Pass for each row the number of its column."
            raise error.but(remedy=remedy) from None
        raise
    if array.ndim == 2 and 1 not in array.shape:
        raise InvalidInput(
            argument="y_true",
            reason=f"has shape {array.shape}, but it must be one-dimensional, a class per row",
            remedy="If it is 1 at the true class and 0 at the others, pass y_true.argmax(axis=1).",
        )
    array = validate.real_vector(array, "y_true")
    validate.check_size("y_true", array.size, "y_prob", size)
    bad = ~((array >= 0) & (array < count) & (np.floor(array) == array))
    if bad.any():
        why = f"with {count} columns a class is an integer from 0 to {count - 1}"
        validate.fail("y_true", array, bad, why, hint)
    label = array.astype(np.int64)
    if label.min() < 0 or label.max() >= count:  # kernels take them for indices
        validate.refuse_changed()
    return label


def _named_numbers(y_true: object, size: int, names: list[Any]) -> Integers:
    """Return the number of each row's class, labels being names of classes."""
    labels, code = number_labels(y_true, size, "y_true")
    number = {name: at for at, name in enumerate(names)}
    result = np.array([number.get(label, -1) for label in labels], dtype=np.int64)[code]
    if (result < 0).any():
        at = validate.first(result < 0)
        raise InvalidInput(
            argument="y_true",
            index=at,
            value=labels[code[at]],
            reason=f"it is none of classes, {show(names)}",
            remedy="Add it, with its column of y_prob, or drop those rows.",
        )
    return result


def _matrix_beside(y_true: object, y_prob: object, *, normalize: bool) -> NDArray[Any]:
    """Return the matrix of probabilities, or say that it stands in the place of the labels."""
    try:
        return probability_matrix(y_prob, normalize=normalize)
    except (TypeError, ValueError):
        fail_if_swapped(y_true, y_prob)
        if is_list_of_models(y_prob):
            refuse_several(y_prob, "y_prob")
        raise


def fail_if_swapped(
    y_true: object,
    y_prob: object,
    names: tuple[str, str] = ("y_true", "y_prob"),
    order: str = "(y_true, y_prob)",
) -> None:
    """Raise where the shapes are those of a matrix for labels and of labels for a matrix."""
    true, prob = _shape(y_true), _shape(y_prob)
    if len(true) == 2 and len(prob) == 1 and true[0] == prob[0]:
        raise InvalidInput(
            argument=names[0],
            reason=f"has shape {true} and {names[1]} has shape {prob}: they look swapped, as the "
            f"matrix, with a row per example and a column per class, is {names[1]}",
            remedy=f"The order is {order}.",
        )


def _shape(values: Any) -> tuple[int, ...]:
    """Return the shape of what may be no array; () where it has none."""
    try:
        return tuple(np.shape(values))
    except (TypeError, ValueError):  # rows of several lengths
        return ()


def probability_matrix(
    values: object,
    name: str = "y_prob",
    *,
    normalize: bool = False,
    remedy: str = "normalize=True divides rows by their sums",
) -> NDArray[Any]:
    """Return a matrix with a row per example and a column per class, rows summing to 1.

    It is not copied, and keeps its precision, unless rows are divided by their sums.
    """
    array = validate.real_array(values, name)
    if array.ndim != 2:
        raise InvalidInput(
            argument=name,
            reason=f"has shape {array.shape}, but a matrix is needed, with a row per example and "
            "a column per class",
            remedy=f"{_BINARY} The order is (y_true, y_prob).",
        )
    if array.size == 0:
        reason = f"is empty, of shape {array.shape}"
        raise InvalidInput(argument=name, reason=reason, remedy="Pass at least one row.")
    if array.shape[1] == 1:
        reason = "has 1 column, but two or more are needed, one for each class"
        raise InvalidInput(argument=name, reason=reason, remedy=_BINARY)
    if not (array.min() >= 0 and array.max() <= 1):  # NaN fails both
        bad = ~((array >= 0) & (array <= 1))
        row, column = divmod(validate.first(bad.ravel()), bad.shape[1])
        reason, advice = validate.why_no_probability(array[bad], "apply the softmax first")
        raise InvalidInput(
            argument=name,
            index=(row, column),
            value=array[row, column],
            reason=reason,
            remedy=advice,
        )
    total = _row_sums(array)
    if normalize:
        return divided_by_sums(array, total, name)
    off = np.abs(total - 1) > ROW_SUM_TOLERANCE
    if off.any():
        row = validate.first(off)
        raise InvalidInput(
            argument=name,
            index=row,
            reason=f"sums to {total[row]:.6g}, the first of {int(off.sum())} such rows: the "
            "probabilities of the classes sum to 1 in each row",
            remedy=f"If they were rounded, {remedy}. For independent labels use one binary measure "
            "per column; columns that are models go by their names, {name: column}, to "
            "caldist.inference.compare_all and caldist.report.",
        )
    return array


def divided_by_sums(matrix: NDArray[Any], total: Vector, name: str) -> Vector:
    """Return rows of nonnegative numbers divided by their sums."""
    if not total.all():
        raise InvalidInput(
            argument=name,
            index=validate.first(total == 0),
            reason="sums to 0, so it cannot be normalized",
            remedy="Correct or drop such rows.",
        )
    return np.asarray(matrix / total[:, None])


def _row_sums(matrix: NDArray[Any]) -> Vector:
    """Return the sum of each row; few columns are added up by themselves, which is faster."""
    if matrix.shape[1] > _BLOCK:
        return np.asarray(matrix.sum(axis=1, dtype=np.float64))
    total = matrix[:, 0].astype(np.float64)
    for column in range(1, matrix.shape[1]):
        total += matrix[:, column]
    return total
