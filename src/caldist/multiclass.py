"""From several classes to the binary measures, explicitly."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._util.types import Vector

__all__ = ["ROW_SUM_TOLERANCE", "one_vs_rest", "top_label"]

Labels = NDArray[np.int64]

# Rows of a probability matrix may miss a sum of 1 by this much: what half precision or a file with
# four decimals loses, far less than logits or independent scores do.
ROW_SUM_TOLERANCE = 1e-2


def top_label(y_true: ArrayLike, y_prob: ArrayLike) -> tuple[Labels, Vector]:
    """Reduce to confidence calibration: the most probable class, right or wrong.

    Parameters
    ----------
    y_true : array-like of class numbers 0, 1, …
    y_prob : matrix
        A row per example, a column per class, rows summing to 1.

    Returns
    -------
    (correct, confidence)
        Whether the most probable class is the true one, as 0 and 1, and its probability; of equally
        probable classes the first counts. Pass both to any measure.

    Examples
    --------
    >>> import caldist
    >>> correct, confidence = caldist.top_label([0, 2], [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    >>> correct, confidence
    (array([1, 0]), array([0.5, 0.5]))
    >>> caldist.smooth_ce(correct, confidence)
    0.0
    """
    classes, matrix = _class_inputs(y_true, y_prob)
    best = matrix.argmax(axis=1)
    return (best == classes).astype(np.int64), matrix[np.arange(best.size), best]


def one_vs_rest(y_true: ArrayLike, y_prob: ArrayLike) -> list[tuple[Labels, Vector]]:
    """Reduce to one binary problem per class: this class or any other.

    Parameters
    ----------
    y_true : array-like of class numbers 0, 1, …
    y_prob : matrix
        A row per example, a column per class, rows summing to 1.

    Returns
    -------
    list of (y_true, y_prob)
        One pair per class, in the order of the columns.

    Examples
    --------
    >>> import caldist
    >>> pairs = caldist.one_vs_rest([0, 2], [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    >>> [caldist.smooth_ce(y, p) for y, p in pairs]
    [0.15625, 0.375, 0.25]
    """
    classes, matrix = _class_inputs(y_true, y_prob)
    return [
        ((classes == k).astype(np.int64), np.ascontiguousarray(matrix[:, k]))
        for k in range(matrix.shape[1])
    ]


def _probability_matrix(values: object, name: str = "y_prob") -> Vector:
    """Return a matrix with a row per example and a column per class, rows summing to 1."""
    array = _validate.real_array(values, name)
    if array.ndim != 2:
        message = (
            f"{name} has shape {array.shape}; a matrix is needed, with a row per example and a "
            "column per class. For one column of probabilities use the binary measures directly."
        )
        raise ValueError(message)
    if array.shape[0] == 0:
        message = f"{name} is empty: at least one row is needed."
        raise ValueError(message)
    if array.shape[1] < 2:
        message = f"{name} has {array.shape[1]} columns; a column per class needs at least two."
        raise ValueError(message)
    matrix = np.ascontiguousarray(array, dtype=np.float64)
    bad = ~((array >= 0) & (array <= 1))
    if bad.any():
        row, column = divmod(_validate.first(bad.ravel()), bad.shape[1])
        message = (
            f"{name}[{row}, {column}] is {_validate.show(array[row, column])}: a probability lies "
            "between 0 and 1. If these are logits, apply the softmax first."
        )
        raise ValueError(message)
    off = np.abs(matrix.sum(axis=1) - 1) > ROW_SUM_TOLERANCE
    if off.any():
        row = _validate.first(off)
        message = (
            f"{name}[{row}] sums to {matrix[row].sum():.6g}: the probabilities of the classes sum "
            "to 1 in each row. For independent labels use one binary measure per column."
        )
        raise ValueError(message)
    return matrix


def _class_inputs(y_true: object, y_prob: object) -> tuple[NDArray[np.int64], Vector]:
    """Return class numbers and the probability matrix they index."""
    matrix = _probability_matrix(y_prob)
    array = _validate.real_vector(y_true, "y_true")
    _validate.check_size("y_true", array.size, "y_prob", matrix.shape[0])
    classes = matrix.shape[1]
    bad = ~((array >= 0) & (array < classes) & (np.floor(array) == array))
    if bad.any():
        _validate.fail(
            "y_true",
            array,
            bad,
            f"with {classes} columns a class is an integer from 0 to {classes - 1}.",
        )
    return array.astype(np.int64), matrix
