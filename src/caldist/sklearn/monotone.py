"""Monotone maps, fitted to columns of probabilities, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted, validate_data

from caldist._util.types import Vector
from caldist.errors import answering
from caldist.recalibration.recalibration import Family, recalibrate
from caldist.sklearn import _checks


class MonotoneCalibrator(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Recalibrate predicted probabilities by a monotone map whose slopes are bounded.

    .. math:: \kappa = \sigma \circ g, \qquad
              \frac{d_i}{\rho} \le g(v_{i+1}) - g(v_i) \le \rho\, d_i,

    where d are the steps of a parametric map's logits and ρ is the slack: 1 is that map itself,
    infinity is isotonic regression. :func:`caldist.recalibrate` says how the map is chosen.

    **What it means.** A map of predictions for new rows. It increases strictly, but for "isotonic",
    so that the ranking of the predictions stays as it is.
    :func:`caldist.measures.nearest_calibrated` changes these rows less, but neither keeps their
    ranking nor knows of other rows.

    **What it estimates.** With a ``confidence_level`` each of ``recalibrations_`` states how well
    its map calibrates the population, from the very rows that were given. They must not have
    trained the model. The confidence level holds for each column by itself.

    **Cost.** A sort for each column and some hundred fits on at most 4,096 cells; with a statement
    that of :func:`caldist.recalibrate`.

    Each column of X holds the probability of the second class as one model predicts it, such as
    ``predict_proba(...)[:, [1]]``. Several columns, as a stack of models gives, are recalibrated
    one by one. :class:`RecalibratedClassifier` does it for a whole classifier.

    Parameters
    ----------
    family : str, default="auto"
        The kind of map: "auto", "identity", "shift", "temperature", "sigmoid", "beta", "isotonic",
        or "monotone", whose slopes differ from those of a sigmoid by a factor of at most 2.
    confidence_level : float, optional
        That of the statements; none are made by default.
    n_resamples : int, default=999
        The number of replicates of a statement.
    out_of_bounds : {"warn", "raise", "clip"}, default="warn"
        What to do with values outside [0, 1], in ``fit`` and in ``transform``: move them to 0 or 1
        with a warning, refuse them, or move them silently. The default is as lenient as
        scikit-learn's conventions ask of an estimator; the functions of caldist itself always
        refuse.
    random_state : int, RandomState or None, default=0
        For the folds that "auto" compares maps on. The same seed gives the same maps.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes, sorted. The second is label 1.
    maps_ : list of CalibrationMap
        For each column its map: ``to_sql`` and ``save`` take it elsewhere.
    recalibrations_ : list of Recalibration
        For each column which map was chosen, and how well it calibrates.
    n_features_in_ : int
    feature_names_in_ : ndarray
        The column names; only where X had them.

    See Also
    --------
    caldist.recalibrate : the same for one column, without scikit-learn.

    Examples
    --------
    >>> import caldist
    >>> from caldist.sklearn import MonotoneCalibrator
    >>> demo = caldist.datasets.load_demo()
    >>> column = demo.y_prob["random_forest"][:, None]
    >>> calibrator = MonotoneCalibrator().fit(column, demo.y_true)
    >>> calibrator.recalibrations_[0].family
    'temperature'
    >>> calibrator.transform([[0.25], [0.75]]).round(2)
    array([[0.02],
           [0.98]])
    """

    @answering
    def __init__(
        self,
        *,
        family: Family = "auto",
        confidence_level: float | None = None,
        n_resamples: int = 999,
        out_of_bounds: _checks.Bounds = "warn",
        random_state: Any = 0,
    ) -> None:
        self.family = family
        self.confidence_level = confidence_level
        self.n_resamples = n_resamples
        self.out_of_bounds = out_of_bounds
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # what y may be: two classes
        return tags

    @answering
    def fit(
        self,
        X: ArrayLike,  # noqa: N803 - the name scikit-learn passes
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> MonotoneCalibrator:
        """Find the map of each column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Predicted probabilities of the second class, a column per model, on rows that did not
            train it.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), optional
        clusters : array-like of shape (n_samples,), optional
            Rows that depend on each other.

        Returns
        -------
        self : MonotoneCalibrator
        """
        matrix, target = validate_data(self, X, y, dtype="numeric", ensure_all_finite=False)
        _checks.fail_if_all_classes(matrix)
        matrix = _checks.in_bounds(matrix, self.out_of_bounds)
        self.classes_, label = _checks.two_classes(target)
        weight = _checks.weights(sample_weight, label.size)
        seed = _checks.seed(self.random_state)
        self.recalibrations_ = [
            recalibrate(
                label,
                column,
                family=self.family,
                sample_weight=weight,
                clusters=clusters,
                confidence_level=self.confidence_level,
                n_resamples=self.n_resamples,
                rng=seed,
            )
            for column in np.ascontiguousarray(matrix.T)
        ]
        self.maps_ = [_checks.known(found.map) for found in self.recalibrations_]
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
        matrix = _checks.in_bounds(matrix, self.out_of_bounds)
        mapped = [
            calibration_map(column)
            for calibration_map, column in zip(self.maps_, matrix.T, strict=True)
        ]
        return np.stack(mapped, axis=1)
