"""From several classes to the binary measures, explicitly."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.types import Vector
from caldist.data.class_rows import labelled_matrix
from caldist.errors import answering

Labels = NDArray[np.int64]


@answering
def top_label(
    y_true: ArrayLike, y_prob: ArrayLike, *, normalize: bool = False
) -> tuple[Labels, Vector]:
    r"""Reduce to confidence calibration: the most probable class, right or wrong.

    **What it means.** Whether confidences can be taken as they are is a question of its own.
    Its answer bounds no distance to calibration of the probabilities: the most probable class
    jumps where two are almost equal. Predictions 0.5 ± 0.01 of which the other class is always
    true are 0.01 from calibrated, and the confidence is off by 0.51, as the second example shows.
    For the probabilities themselves use :func:`caldist.multiclass.classwise_distance`.

    Parameters
    ----------
    y_true : array-like of class numbers 0, 1, …, or of names of the columns of a frame
    y_prob : matrix
        A row per example, a column per class, rows summing to 1.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.

    Returns
    -------
    (correct, confidence)
        Whether the most probable class is the true one, as 0 and 1, and its probability; of equally
        probable classes the first counts. Pass both to any measure.

    Examples
    --------
    >>> import caldist
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    >>> correct, confidence = caldist.multiclass.top_label([0, 2], y_prob)
    >>> correct, confidence
    (array([1, 0]), array([0.5, 0.5]))
    >>> caldist.smooth_ce(correct, confidence)
    0.0
    >>> y_true, y_prob = [1, 0], [[0.51, 0.49], [0.49, 0.51]]
    >>> round(caldist.lower_distance(*caldist.multiclass.top_label(y_true, y_prob)), 4)
    0.51
    >>> round(caldist.multiclass.classwise_distance(y_true, y_prob), 4)
    0.01
    """
    label, matrix, _ = labelled_matrix(y_true, y_prob, normalize=normalize)
    matrix = np.asarray(matrix, dtype=np.float64)
    best = matrix.argmax(axis=1)
    return (best == label).astype(np.int64), matrix[np.arange(best.size), best]


@answering
def one_vs_rest(
    y_true: ArrayLike, y_prob: ArrayLike, *, normalize: bool = False
) -> list[tuple[Labels, Vector]]:
    """Reduce to one binary problem per class: this class or any other.

    Parameters
    ----------
    y_true : array-like of class numbers 0, 1, …, or of names of the columns of a frame
    y_prob : matrix
        A row per example, a column per class, rows summing to 1.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.

    Returns
    -------
    list of (y_true, y_prob)
        One pair per class, in the order of the columns.

    Examples
    --------
    >>> import caldist
    >>> pairs = caldist.multiclass.one_vs_rest([0, 2], [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    >>> [caldist.smooth_ce(y, p) for y, p in pairs]
    [0.15625, 0.375, 0.25]
    """
    label, matrix, _ = labelled_matrix(y_true, y_prob, normalize=normalize)
    return [
        ((label == k).astype(np.int64), np.ascontiguousarray(matrix[:, k], dtype=np.float64))
        for k in range(matrix.shape[1])
    ]
