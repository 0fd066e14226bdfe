"""The repair behind the upper distance as a scikit-learn transformer.

Needs scikit-learn 1.6 or later. Nothing else in the package imports this module.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted, validate_data

from caldist import _validate
from caldist._util.types import Vector
from caldist.data.class_rows import ROW_SUM_TOLERANCE
from caldist.data.joint import Joint
from caldist.measures.upper_distance import best_map, nearest_known

__all__ = ["NearestCalibrator"]


class NearestCalibrator(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Recalibrate predicted probabilities by the map that changes them least.

    .. math:: \kappa = \operatorname*{argmin}_\kappa E\,|v - \kappa(v)|

    over all maps κ of the training predictions v such that (κ(v), y) is perfectly calibrated on
    the training rows. It puts the training predictions into groups and replaces each by its
    group's frequency of label 1. On the training rows it is :func:`caldist.nearest_calibrated`.
    A new prediction takes the value of the nearest training prediction; halfway between two it
    takes that of the lower one.

    **What it means.** The repair whose size is :func:`caldist.upper_distance`. κ need not be
    monotone: it may change the ranking of the predictions.

    **What it estimates.** The sample only. New rows need not be calibrated: with few training
    rows the repair can do more harm than good. Fit it to rows that did not train the model, and
    judge it on yet other rows.

    **Cost.** That of :func:`caldist.upper_distance` for each column; a binary search for each new
    prediction.

    Each column of X holds the probability of the second class as one model predicts it, such as
    ``predict_proba(...)[:, [1]]``. Several columns, as a stack of models gives, are recalibrated
    one by one. X always has two dimensions: pass one column as ``prediction.reshape(-1, 1)``.

    Parameters
    ----------
    out_of_bounds : {"warn", "raise", "clip"}, default="warn"
        What to do with values outside [0, 1], in ``fit`` and in ``transform``: move them to 0 or 1
        with a warning, refuse them, or move them silently. Values in [0, 1] beyond the training
        predictions are never refused. The default is as lenient as scikit-learn's conventions ask
        of an estimator; the functions of caldist itself always refuse.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes, sorted. The second is label 1.
    prediction_ : list of ndarray
        For each column its distinct training predictions, increasing. Rows of weight 0 are out.
    recalibrated_ : list of ndarray
        For each column the values κ(v) of ``prediction_``.
    distance_ : ndarray of shape (n_features,)
        For each column E|v - κ(v)|, which is :func:`caldist.upper_distance`.
    exact_ : ndarray of bool of shape (n_features,)
        For each column whether κ is known to be the best map; if not, the best one found.
    n_features_in_ : int
    feature_names_in_ : ndarray
        The column names; only where X had them.

    See Also
    --------
    caldist.nearest_calibrated : the same on the training rows, without scikit-learn.
    sklearn.isotonic.IsotonicRegression : the best monotone map in squared error.

    References
    ----------
    Błasiok, Gopalan, Hu and Nakkiran, "A Unifying Theory of Distance from Calibration", 2023,
    section 5.

    Examples
    --------
    >>> from caldist.sklearn import NearestCalibrator
    >>> prediction = [[0.1], [0.1], [0.7], [0.7], [0.8], [0.8]]
    >>> calibrator = NearestCalibrator().fit(prediction, [0, 0, 1, 0, 1, 1])
    >>> calibrator.transform([[0.3], [0.6]])
    array([[0.  ],
           [0.75]])
    >>> calibrator.distance_.round(3)
    array([0.067])
    """

    def __init__(self, *, out_of_bounds: Literal["warn", "raise", "clip"] = "warn") -> None:
        self.out_of_bounds = out_of_bounds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # what y may be: two classes
        return tags

    def fit(
        self,
        X: ArrayLike,  # noqa: N803 - the name scikit-learn passes
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> NearestCalibrator:
        """Find the map κ of each column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Predicted probabilities of the second class, a column per model.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : NearestCalibrator
        """
        matrix, target = validate_data(self, X, y, dtype="numeric", ensure_all_finite=False)
        _fail_if_all_classes(matrix)
        matrix = self._in_bounds(matrix)
        self.classes_, label = _two_classes(target)
        weight = None if sample_weight is None else _weights(sample_weight, label.size)

        columns = [_map(label, column, weight) for column in matrix.T]
        self.prediction_ = [prediction for prediction, _, _, _ in columns]
        self.recalibrated_ = [recalibrated for _, recalibrated, _, _ in columns]
        self.distance_ = np.array([distance for _, _, distance, _ in columns])
        self.exact_ = np.array([exact for _, _, _, exact in columns])
        return self

    def transform(self, X: ArrayLike) -> Vector:  # noqa: N803 - the name scikit-learn passes
        """Return the recalibrated predictions, as float64.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Predicted probabilities, in the columns that ``fit`` saw.

        Returns
        -------
        recalibrated : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        matrix = validate_data(self, X, dtype="numeric", ensure_all_finite=False, reset=False)
        matrix = self._in_bounds(matrix)
        out = np.empty(matrix.shape)
        for k, (known, value) in enumerate(zip(self.prediction_, self.recalibrated_, strict=True)):
            out[:, k] = value[nearest_known(known, matrix[:, k])]
        return out

    def _in_bounds(self, matrix: NDArray[Any]) -> Vector:
        """Return predictions in [0, 1] as float64, or raise for the first that is not one."""
        _validate.check_choice("out_of_bounds", self.out_of_bounds, ("warn", "raise", "clip"))
        if not np.isfinite(matrix).all():
            bad = ~np.isfinite(matrix)
            # NaN, not nan: scikit-learn's users, and its checks, look for this spelling.
            name = "NaN" if np.isnan(matrix[bad][0]) else None
            _fail(matrix, bad, "drop or fill the rows without a prediction.", name)
        outside = (matrix < 0) | (matrix > 1)
        if not outside.any():
            return matrix.astype(np.float64, copy=False)
        if self.out_of_bounds == "raise":
            _fail(
                matrix,
                outside,
                "a probability lies between 0 and 1. If these are logits, apply the sigmoid "
                'first; to move values to 0 or 1 pass out_of_bounds="clip".',
            )
        if self.out_of_bounds == "warn":
            warnings.warn(
                "X has values outside [0, 1], which are moved to 0 or 1. If these are logits, "
                'apply the sigmoid first; out_of_bounds="raise" makes this an error.',
                UserWarning,
                stacklevel=3,
            )
        clipped: Vector = np.clip(matrix, 0, 1).astype(np.float64)
        return clipped


def _map(
    label: NDArray[np.uint8], column: Vector, weight: Vector | None
) -> tuple[Vector, Vector, float, bool]:
    """Return distinct predictions, their values under κ, the distance, and whether κ is exact."""
    joint = Joint.from_arrays(label, column, sample_weight=weight)
    group, frequency, exact = best_map(joint)
    recalibrated = frequency[group]
    mass = (joint.mass0 + joint.mass1) / joint.total
    distance = float(mass @ np.abs(joint.prediction - recalibrated))
    return joint.prediction, recalibrated, distance, exact


def _two_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint8]]:
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


def _weights(sample_weight: ArrayLike, size: int) -> Vector:
    weight = _validate.masses(sample_weight, "sample_weight", size, "X")
    if not weight.any():
        message = "sample_weight is zero everywhere, from sample_weight[0] on: no row would count."
        raise ValueError(message)
    return weight


def _fail_if_all_classes(matrix: NDArray[Any]) -> None:
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
