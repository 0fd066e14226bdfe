"""What the estimators check, in the words that scikit-learn's users know."""

from __future__ import annotations

from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from caldist._util.invalid import show
from caldist._util.types import Vector
from caldist._util.warning import warn
from caldist.data import validate
from caldist.data.class_rows import ROW_SUM_TOLERANCE
from caldist.errors import InvalidInput
from caldist.recalibration.calibration_map import CalibrationMap

Bounds = Literal["warn", "raise", "clip"]


def in_bounds(matrix: NDArray[Any], out_of_bounds: str) -> Vector:
    """Return predictions in [0, 1] as float64, or raise for the first that is not one."""
    validate.check_choice("out_of_bounds", out_of_bounds, ("warn", "raise", "clip"))
    if not np.isfinite(matrix).all():
        # NaN, not nan: scikit-learn's users, and its checks, look for this spelling.
        reason, remedy = "NaN and inf are no predictions", "Drop or fill the rows without one."
        _fail(matrix, ~np.isfinite(matrix), reason, remedy)
    outside = (matrix < 0) | (matrix > 1)
    if not outside.any():
        return matrix.astype(np.float64, copy=False)
    if out_of_bounds == "raise":
        _fail(
            matrix,
            outside,
            "a probability lies between 0 and 1",
            "If these are logits, apply the sigmoid first; to move values to 0 or 1 pass "
            'out_of_bounds="clip".',
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
        at = validate.first(y != np.floor(y))
        raise InvalidInput(
            argument="y",
            index=at,
            value=y[at],
            reason="y must hold the labels of two classes, not numbers in between",
            remedy="The order is (X, y), predictions before labels.",
        )
    classes, label = np.unique(y, return_inverse=True)
    if classes.size > 2:
        at = validate.first(label > 1)
        raise InvalidInput(
            argument="y",
            index=at,
            value=y[at],
            reason=f"this is one of {classes.size} classes, and only two are supported",
            remedy="Fit one calibrator for each class against the rest.",
        )
    if classes.size < 2:
        raise InvalidInput(
            argument="y",
            reason=f"has one class only, {show(classes[0])}, which may be either of two",
            remedy="Pass rows of two classes.",
        )
    return classes, label.astype(np.uint8)


def weights(sample_weight: ArrayLike | None, size: int) -> Vector | None:
    """Return weights that leave some row, if any are given."""
    if sample_weight is None:
        return None
    weight = validate.masses(sample_weight, "sample_weight", size, "X")
    if not weight.any():
        remedy = "Leave it out, or give some row a weight."
        raise InvalidInput(
            argument="sample_weight", reason="is zero everywhere: no row would count", remedy=remedy
        )
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
        raise InvalidInput(
            argument="X",
            reason=f"has {matrix.shape[1]} columns that sum to 1 in every row (X[0] to "
            f"{sums[0]:.6g}), as the probabilities of all classes do",
            remedy="Pass the probability of the second class, X[:, [1]].",
        )


def _fail(matrix: NDArray[Any], bad: NDArray[np.bool_], reason: str, remedy: str) -> NoReturn:
    """Raise for the first value that ``bad`` marks."""
    row, column = (int(i) for i in np.argwhere(bad)[0])
    if (count := int(np.count_nonzero(bad))) > 1:
        reason += f" (the first of {count} such values)"
    raise InvalidInput(
        argument="X",
        index=(row, column),
        value=matrix[row, column],
        reason=reason,
        remedy=remedy,
    )
