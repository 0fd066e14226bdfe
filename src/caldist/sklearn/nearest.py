"""The repair behind the upper distance as a scikit-learn transformer."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._near_misses import answering
from caldist._util.products import dot
from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.measures.upper_distance import best_map, nearest_known
from caldist.sklearn import _checks
from caldist.sklearn._columns import ColumnCalibrator


class NearestCalibrator(ColumnCalibrator):
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

    @answering
    def __init__(self, *, out_of_bounds: _checks.Bounds = "warn") -> None:
        self.out_of_bounds = out_of_bounds

    @answering
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
        matrix, label, weight = self._given(X, y, sample_weight)
        columns = [_map(label, column, weight) for column in matrix.T]
        self.prediction_ = [prediction for prediction, _, _, _ in columns]
        self.recalibrated_ = [recalibrated for _, recalibrated, _, _ in columns]
        self.distance_ = np.array([distance for _, _, distance, _ in columns])
        self.exact_ = np.array([exact for _, _, _, exact in columns])
        return self

    def _mapped(self, k: int, column: Vector) -> Vector:
        return np.asarray(self.recalibrated_[k][nearest_known(self.prediction_[k], column)])


def _map(
    label: NDArray[np.uint8], column: Vector, weight: Vector | None
) -> tuple[Vector, Vector, float, bool]:
    """Return distinct predictions, their values under κ, the distance, and whether κ is exact."""
    joint = Joint.from_arrays(label, column, sample_weight=weight)
    group, frequency, exact = best_map(joint)
    recalibrated = frequency[group]
    mass = (joint.mass0 + joint.mass1) / joint.total
    distance = dot(mass, np.abs(joint.prediction - recalibrated))
    return joint.prediction, recalibrated, distance, exact
