"""From several classes to the binary measures, explicitly."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate

__all__ = ["one_vs_rest", "top_label"]

Vector = NDArray[np.float64]
Labels = NDArray[np.int64]


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
    classes, matrix = _validate.class_inputs(y_true, y_prob)
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
    classes, matrix = _validate.class_inputs(y_true, y_prob)
    return [
        ((classes == k).astype(np.int64), np.ascontiguousarray(matrix[:, k]))
        for k in range(matrix.shape[1])
    ]
