"""A classifier whose probabilities are recalibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import Bunch, assert_all_finite, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from caldist._util.invalid import show
from caldist._util.results import plain
from caldist._util.types import Vector
from caldist.data import validate
from caldist.errors import InvalidInput, InvalidType, answering
from caldist.multiclass.reductions import one_vs_rest, top_label
from caldist.recalibration.calibration_map import CalibrationMap
from caldist.recalibration.recalibration import (
    Family,
    Method,
    Recalibration,
    evaluate_map,
    recalibrate,
)
from caldist.sklearn import _checks

Multiclass = Literal["top_label", "one_vs_rest"]

_ABOVE = 1e-6  # by which a mapped confidence is above 1/K, relatively, so that it stays the largest
_BELOW = 1 - 1e-9  # times the confidence: the most that another class can have

OTHER_MODELS = (
    "the rows judged other models: each row was predicted by a model fitted without it, while "
    "predict_proba is that of one fitted to all rows. Pass FrozenEstimator(model) and rows that "
    "did not train it."
)
RENORMALISED = (
    "each class has a map of its own, and the statement about a map holds before the "
    "probabilities of the classes are divided by their sum: statements_ has a statement for each "
    "class before that. multiclass='top_label' has one for the predicted class."
)


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Recalibrate the probabilities of a classifier by monotone maps.

    **What it means.** ``predict_proba`` is that of the classifier, mapped by what
    :func:`caldist.recalibrate` finds. With a fitted classifier in a ``FrozenEstimator``, and rows
    that did not train it, ``statement_`` says how far from calibrated the probabilities of the
    population were at least, and are at most now. Otherwise the classifier is
    fitted too: the map is fitted to predictions out of folds, as
    ``CalibratedClassifierCV(ensemble=False)`` does, and the classifier to all rows. The rows then
    judged other models than the one that predicts, so there is no statement: ``statement_`` is
    None, and ``statement_reason_`` says why.

    **Two classes.** One map, of the probability of the second class.

    **Several classes.** With ``multiclass="top_label"`` one map, of the largest probability. The
    predicted class stays the same and has the mapped probability, at least 1/K for K classes; the
    other classes share the rest as before, unless one of them would then have more. The statement
    is about the probability of the predicted class, and says nothing about those of the others.
    With ``multiclass="one_vs_rest"`` each class has a map of its own, and the mapped probabilities
    are divided by their sum. Each of ``statements_`` is about one class *before* that division, and
    holds with the confidence level by itself, not all of them together.

    **Cost.** That of :func:`caldist.recalibrate` for each map; without a ``FrozenEstimator`` that
    of ``cv`` + 1 fits of the classifier, and no statement.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``. A ``FrozenEstimator`` is taken as it is.
    family : str, default="auto"
        The kind of map: "auto", "identity", "shift", "temperature", "sigmoid", "beta", "isotonic",
        or "monotone", whose slopes differ from those of a sigmoid by a factor of at most 2.
    cv : int, splitter or iterable, default=5
        The folds; not used with a ``FrozenEstimator``.
    multiclass : {"top_label", "one_vs_rest"}, default="top_label"
        For more than two classes.
    confidence_level : float or None, default=0.95
        That of the statement; None for none.
    method : {"resampling", "finite_sample"}, default="resampling"
        How the limits are made: see :func:`caldist.recalibrate`.
    n_resamples : int, default=999
        The number of replicates of a statement.
    n_jobs : int, optional
        How many folds are fitted at once.
    random_state : int, RandomState or None, default=0
        For the folds that "auto" compares maps on, and for replicates.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_ : classifier
        The one whose probabilities are mapped.
    map_ : CalibrationMap
        The map, if there is one only: ``to_sql`` and ``save`` take it elsewhere.
    maps_ : list of CalibrationMap
        That map, or with "one_vs_rest" one for each of more than two classes.
    recalibrations_ : list of Recalibration
        For each map how it was chosen, and how well it calibrates.
    statement_ : Recalibration or None
        The statement about ``predict_proba``.
    statement_reason_ : str
        Why there is none; empty if there is one.
    statements_ : list of Recalibration
        The statement about each map; empty if there are none.
    n_features_in_, feature_names_in_
        Those of ``estimator_``, where it has them.

    See Also
    --------
    MonotoneCalibrator : the same for columns of probabilities.
    sklearn.calibration.CalibratedClassifierCV : other maps, without a statement.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from caldist.sklearn import RecalibratedClassifier
    >>> X, y = make_classification(3000, n_informative=4, random_state=0)
    >>> model = GaussianNB().fit(X[:1000], y[:1000])
    >>> recalibrated = RecalibratedClassifier(FrozenEstimator(model), n_resamples=99)
    >>> recalibrated.fit(X[1000:], y[1000:]).statement_.after["smooth_ce"].upper < 0.05
    True
    >>> RecalibratedClassifier(GaussianNB()).fit(X, y).statement_reason_
    'the rows judged other models: ...'
    """

    @answering
    def __init__(
        self,
        estimator: Any,
        *,
        family: Family = "auto",
        cv: Any = 5,
        multiclass: Multiclass = "top_label",
        confidence_level: float | None = 0.95,
        method: Method = "resampling",
        n_resamples: int = 999,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.family = family
        self.cv = cv
        self.multiclass = multiclass
        self.confidence_level = confidence_level
        self.method = method
        self.n_resamples = n_resamples
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.input_tags = own.input_tags
        if own.classifier_tags is not None:
            tags.classifier_tags.multi_class = own.classifier_tags.multi_class
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata go where: to this estimator, the classifier's fit, the splitter."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def fit(
        self,
        X: Any,  # noqa: N803 - the name scikit-learn passes
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        **fit_params: Any,
    ) -> RecalibratedClassifier:
        """Fit the maps, and the classifier unless it is frozen.

        Parameters
        ----------
        X : the features of the rows
            With a ``FrozenEstimator``, of rows that did not train it.
        y : array-like of shape (n_samples,)
            The class of each row.
        sample_weight : array-like of shape (n_samples,), optional
            For the maps, and for the classifier if it takes weights.
        clusters : array-like of shape (n_samples,), optional
            Rows that depend on each other, for the maps and the statement. Folds that keep
            clusters together are ``cv``'s.
        **fit_params
            For the classifier's ``fit``, or where routing says.

        Returns
        -------
        self : RecalibratedClassifier
        """
        validate.check_choice("multiclass", self.multiclass, ("top_label", "one_vs_rest"))
        if y is None:
            # In the words that scikit-learn's checks look for.
            reason = "requires y to be passed, but the target y is None"
            raise InvalidInput(argument="y", reason=f"is missing: RecalibratedClassifier {reason}")
        label = column_or_1d(y, warn=True)
        if label.size == 0:
            remedy = "Pass at least one row of each class."
            raise InvalidInput(argument="y", reason="is empty, 0 samples", remedy=remedy)
        assert_all_finite(label, input_name="y")
        check_classification_targets(label)
        X, label = indexable(X, label)  # noqa: N806
        weight = _checks.weights(sample_weight, label.size)
        frozen = isinstance(self.estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            matrix = _probabilities(self.estimator, X)
        else:
            routed = self._routed(label, weight, fit_params)
            matrix = self._out_of_folds(X, label, routed)
            self.estimator_ = clone(self.estimator).fit(X, label, **routed.estimator.fit)
        self.classes_ = np.asarray(self.estimator_.classes_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        number = _numbers(label, self.classes_)
        options = {
            "sample_weight": weight,
            "clusters": clusters,
            "confidence_level": self.confidence_level if frozen else None,
            "method": self.method,
            "n_resamples": self.n_resamples,
            "rng": _checks.seed(self.random_state),
        }
        self.recalibrations_ = self._recalibrations(number, matrix, options)
        self.maps_ = [_checks.known(found.map) for found in self.recalibrations_]
        self.statements_ = [found for found in self.recalibrations_ if not found.reason]
        self.statement_ = None
        self.statement_reason_ = self.recalibrations_[0].reason if frozen else OTHER_MODELS
        if len(self.maps_) > 1 and self.statements_:
            self.statement_reason_ = RENORMALISED
        elif self.statements_:
            [self.statement_] = self.statements_
        return self

    def _routed(self, y: NDArray[Any], weight: Vector | None, fit_params: dict[str, Any]) -> Any:
        """Return the parameters of the classifier's fit and of the splitter."""
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=weight, **fit_params)
        else:
            own = dict(fit_params)
            if weight is not None and "sample_weight" in signature(self.estimator.fit).parameters:
                own["sample_weight"] = weight
            routed = Bunch(estimator=Bunch(fit=own), splitter=Bunch(split={}))
        sizes = np.unique(y, return_counts=True)
        if sizes[0].size < 2:
            reason = f"has one class only, {show(y[0])}, but at least two classes are needed"
            raise InvalidInput(argument="y", reason=reason)
        folds = self.cv if isinstance(self.cv, int) else getattr(self.cv, "n_splits", 0)
        if sizes[1].min() < folds:
            rare = sizes[0][sizes[1].argmin()]
            raise InvalidInput(
                argument="cv",
                reason=f"has {folds} folds, and the class {show(rare)} only {sizes[1].min()} rows, "
                "but each fold needs every class",
                remedy="Take fewer folds.",
            )
        return routed

    def _out_of_folds(self, X: Any, y: NDArray[Any], routed: Any) -> Vector:  # noqa: N803
        """Return the probabilities of each row by a classifier that was fitted without it."""
        _check_has_probabilities(self.estimator)
        found = cross_val_predict(
            clone(self.estimator),
            X,
            y,
            cv=check_cv(self.cv, y, classifier=True),
            method="predict_proba",
            n_jobs=self.n_jobs,
            params=routed.estimator.fit | routed.splitter.split,
        )
        return np.asarray(found, dtype=np.float64)

    def _recalibrations(
        self, number: NDArray[np.intp], matrix: Vector, options: dict[str, Any]
    ) -> list[Recalibration]:
        """Return the recalibration of each map."""
        if matrix.shape[1] == 2:
            return [recalibrate(number, matrix[:, 1], family=self.family, **options)]
        if self.multiclass == "one_vs_rest":
            pairs = one_vs_rest(number, matrix)
            return [
                recalibrate(one, column, family=self.family, **options) for one, column in pairs
            ]
        right, confidence = top_label(number, matrix)
        found = recalibrate(right, confidence, family=self.family, **options)
        return [_kept_largest(found, right, confidence, matrix.shape[1], options)]

    @property
    def map_(self) -> CalibrationMap:
        """The map, where there is one only."""
        check_is_fitted(self)
        if len(self.maps_) > 1:
            message = f"there are {len(self.maps_)} maps, one for each class: see maps_."
            raise AttributeError(message)
        return self.maps_[0]

    def predict_proba(self, X: Any) -> Vector:  # noqa: N803 - the name scikit-learn passes
        """Return the recalibrated probabilities of all classes.

        Parameters
        ----------
        X : the features of the rows

        Returns
        -------
        probability : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        matrix = _probabilities(self.estimator_, X)
        if matrix.shape[1] == 2:
            second = self.map_(matrix[:, 1])
            return np.stack((1 - second, second), axis=1)
        if len(self.maps_) == 1:
            return _with_confidence(matrix, self.map_)
        return _divided_by_sums(matrix, self.maps_)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803 - the name scikit-learn passes
        """Return the class with the largest recalibrated probability.

        Parameters
        ----------
        X : the features of the rows

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found


def _routing_enabled() -> bool:
    from sklearn import get_config  # read when asked, as it may change

    return bool(get_config().get("enable_metadata_routing", False))


def _check_has_probabilities(estimator: Any) -> None:
    if not hasattr(estimator, "predict_proba"):
        raise InvalidType(
            argument="estimator",
            reason=f"is of type {type(estimator).__name__}, without predict_proba",
            remedy="Pass a classifier with probabilities: it is these that are recalibrated.",
        )


def _probabilities(estimator: Any, X: Any) -> Vector:  # noqa: N803 - the name scikit-learn passes
    _check_has_probabilities(estimator)
    return np.asarray(estimator.predict_proba(X), dtype=np.float64)


def _numbers(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of each row's class."""
    at = np.searchsorted(classes, y).clip(max=classes.size - 1)
    unknown = classes[at] != y
    if unknown.any():
        row = validate.first(unknown)
        reason = f"it is not one of the classifier's classes {show(classes.tolist())}"
        raise InvalidInput(argument="y", index=row, value=y[row], reason=reason)
    return at


def _kept_largest(
    found: Recalibration,
    right: NDArray[np.int64],
    confidence: Vector,
    classes: int,
    options: dict[str, Any],
) -> Recalibration:
    """Return a recalibration of confidences that stays above 1/K: they can stay the largest."""
    least = (1 + _ABOVE) / classes
    table = _checks.known(found.map)
    if table(1 / classes) >= least:  # a confidence is at least 1/K
        return found
    start = 1.0 if least >= table.y[-1] else table.inverse(least)[1]
    above = table.x > start
    x = np.concatenate(([0.0, start], table.x[above]))
    y = np.concatenate(([least, least], table.y[above]))
    raised = CalibrationMap(x, y, provenance=table.provenance)
    if confidence.min() >= start:  # all rows are mapped as before, so all that was said holds
        return replace(found, map=raised)
    stated = evaluate_map(right, confidence, map=raised, **options)
    said = None
    if not stated.reason:
        said = {"confidence_level": stated.confidence_level, "method": stated.method}
        said |= {"before": plain(stated.before), "after": plain(stated.after)}
    provenance = dict(table.provenance) | {"statement": said}
    return replace(
        stated,
        map=CalibrationMap(x, y, provenance=provenance),
        family=found.family,
        slack=found.slack,
        candidates=found.candidates,
        loss=MappingProxyType({}),  # these rows made the map
    )


def _with_confidence(matrix: Vector, table: CalibrationMap) -> Vector:
    """Map the largest probability of each row; the other classes share the rest as before.

    None of them may get more than the predicted class has. Where one would, their shares are mixed
    with equal ones, as far as needed.
    """
    at = matrix.argmax(axis=1)[:, None]
    top = table(np.take_along_axis(matrix, at, axis=1))
    rest = matrix.copy()
    np.put_along_axis(rest, at, 0, axis=1)
    left = 1 - top
    equal = np.broadcast_to(left / (matrix.shape[1] - 1), rest.shape)
    total = rest.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = np.where(total > 0, rest * (left / total), equal)
        highest = shared.max(axis=1, keepdims=True)
        part = np.where(
            highest > top * _BELOW, (highest - top * _BELOW) / (highest - equal), 0.0
        ).clip(0, 1)
    found: Vector = (1 - part) * shared + part * equal
    np.put_along_axis(found, at, top, axis=1)
    return found


def _divided_by_sums(matrix: Vector, maps: Sequence[CalibrationMap]) -> Vector:
    columns = zip(maps, matrix.T, strict=True)
    mapped = np.stack([table(column) for table, column in columns], axis=1)
    total = mapped.sum(axis=1, keepdims=True)
    equal = np.full_like(mapped, 1 / mapped.shape[1])
    found: Vector = np.divide(mapped, total, out=equal, where=total > 0)
    return found
