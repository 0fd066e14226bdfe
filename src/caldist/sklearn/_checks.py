"""What the estimators check, in the words that scikit-learn's users know."""

from __future__ import annotations

from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from caldist._util.types import Vector
from caldist._util.warning import warn
from caldist.data import validate
from caldist.data.class_rows import ROW_SUM_TOLERANCE
from caldist.recalibration.calibration_map import CalibrationMap

Bounds = Literal["warn", "raise", "clip"]


def in_bounds(matrix: NDArray[Any], out_of_bounds: str) -> Vector:
    """Return predictions in [0, 1] as float64, or raise for the first that is not one."""
    validate.check_choice("out_of_bounds", out_of_bounds, ("warn", "raise", "clip"))
    if not np.isfinite(matrix).all():
        bad = ~np.isfinite(matrix)
        # NaN, not nan: scikit-learn's users, and its checks, look for this spelling.
        name = "NaN" if np.isnan(matrix[bad][0]) else None
        _fail(matrix, bad, "drop or fill the rows without a prediction.", name)
    outside = (matrix < 0) | (matrix > 1)
    if not outside.any():
        return matrix.astype(np.float64, copy=False)
    if out_of_bounds == "raise":
        _fail(
            matrix,
            outside,
            "a probability lies between 0 and 1. If these are logits, apply the sigmoid "
            'first; to move values to 0 or 1 pass out_of_bounds="clip".',
        )
    if out_of_bounds == "warn":
        warn(
            "X has values outside [0, 1], which are moved to 0 or 1. If these are logits, "
            'apply the sigmoid first; out_of_bounds="raise" makes this an error.',
            through="sklearn",  # which wraps transform
        )
    clipped: Vector = np.clip(matrix, 0, 1).astype(np.float64)
    return clipped


def two_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Return the two classes, and 1 for the rows of the second."""
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        at = int(np.argmax(y != np.floor(y)))
        message = (
            f"y[{at}] is {y[at]}: y must hold the labels of two classes, not numbers in between. "
            "The order is (X, y), predictions before labels."
        )
        raise ValueError(message)
    classes, label = np.unique(y, return_inverse=True)
    if classes.size > 2:
        at = int(np.argmax(label > 1))
        message = (
            f"y[{at}] is {y[at]}, one of {classes.size} classes: only two are supported. Fit one "
            "calibrator for each class against the rest."
        )
        raise ValueError(message)
    if classes.size < 2:
        message = (
            f"y has one class only, y[0] is {y[0]}: two classes are needed, as it cannot be "
            "known which of the two this is."
        )
        raise ValueError(message)
    return classes, label.astype(np.uint8)


def weights(sample_weight: ArrayLike | None, size: int) -> Vector | None:
    """Return weights that leave some row, if any are given."""
    if sample_weight is None:
        return None
    weight = validate.masses(sample_weight, "sample_weight", size, "X")
    if not weight.any():
        message = "sample_weight is zero everywhere, from sample_weight[0] on: no row would count."
        raise ValueError(message)
    validate.check_ratios("sample_weight", weight)
    return weight


def seed(random_state: Any) -> int:
    """Return a seed from what scikit-learn calls a random state."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def known(table: CalibrationMap | None) -> CalibrationMap:
    """Return the map of a recalibration, which is None for maps made elsewhere only."""
    assert table is not None  # noqa: S101
    return table


def fail_if_all_classes(matrix: NDArray[Any]) -> None:
    """Raise when the columns are those of predict_proba, one per class."""
    if matrix.shape[1] < 2 or not (matrix.min() >= 0 and matrix.max() <= 1):
        return
    sums = matrix.sum(axis=1, dtype=np.float64)
    if (np.abs(sums - 1) <= ROW_SUM_TOLERANCE).all():
        message = (
            f"X has {matrix.shape[1]} columns that sum to 1 in every row (X[0] to {sums[0]:.6g}): "
            "these look like the probabilities of all classes. Pass that of the second class, "
            "X[:, [1]]."
        )
        raise ValueError(message)


def _fail(
    matrix: NDArray[Any], bad: NDArray[np.bool_], why: str, name: str | None = None
) -> NoReturn:
    """Raise for the first value that ``bad`` marks."""
    row, column = (int(i) for i in np.argwhere(bad)[0])
    count = int(np.count_nonzero(bad))
    others = "" if count == 1 else f" (the first of {count} such values)"
    message = f"X[{row}, {column}] is {name or matrix[row, column]}{others}: {why}"
    raise ValueError(message)
