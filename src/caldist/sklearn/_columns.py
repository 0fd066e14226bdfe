"""What transformers of columns of probabilities have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted, validate_data

from caldist._util.types import Vector
from caldist.sklearn import _checks


class ColumnCalibrator(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A map for each column of probabilities of the second class."""

    out_of_bounds: _checks.Bounds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # what y may be: two classes
        return tags

    def _given(
        self,
        X: ArrayLike,  # noqa: N803 - the name scikit-learn passes
        y: ArrayLike,
        sample_weight: ArrayLike | None,
    ) -> tuple[Vector, NDArray[np.uint8], Vector | None]:
        """Return what ``fit`` was given, checked, and keep the classes."""
        matrix, target = validate_data(self, X, y, dtype="numeric", ensure_all_finite=False)
        _checks.fail_if_all_classes(matrix)
        matrix = _checks.in_bounds(matrix, self.out_of_bounds)
        self.classes_, label = _checks.two_classes(target)
        return matrix, label, _checks.weights(sample_weight, label.size)

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
        return np.stack([self._mapped(k, column) for k, column in enumerate(matrix.T)], axis=1)

    @abstractmethod
    def _mapped(self, k: int, column: Vector) -> Vector:
        """Return the values of column k under its map."""
