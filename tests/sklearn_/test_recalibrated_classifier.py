"""MonotoneCalibrator and RecalibratedClassifier: recalibration by estimators of scikit-learn."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import caldist
from caldist.recalibration import evaluate_map
from caldist.sklearn import MonotoneCalibrator, RecalibratedClassifier

WEIGHTS = "a row of weight 2 is one row that counts twice, not two rows that agree"
NOT_REPEATED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:X has values outside|the map is constant|all rows have label:UserWarning"
)
@parametrize_with_checks(
    [
        MonotoneCalibrator(out_of_bounds="clip"),
        MonotoneCalibrator(family="isotonic", confidence_level=0.9, n_resamples=19),
        RecalibratedClassifier(LogisticRegression(), cv=2),
        RecalibratedClassifier(LogisticRegression(), cv=2, multiclass="one_vs_rest"),
    ],
    expected_failed_checks=lambda estimator: NOT_REPEATED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def overconfident(n, rng):
    """Return labels and predictions whose logits are twice too large."""
    u = rng.random(n)
    return (rng.random(n) < u).astype(int), u**2 / (u**2 + (1 - u) ** 2)


class Softmax(ClassifierMixin, BaseEstimator):
    """A fitted classifier: the softmax of the features times a factor."""

    def __init__(self, factor=1.0, classes=(0, 1, 2)):
        self.factor, self.classes = factor, classes

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    @property
    def classes_(self):
        return np.array(self.classes)

    def predict_proba(self, X):
        return softmax(self.factor * np.asarray(X), axis=1)

    def predict(self, X):
        return self.classes_[np.argmax(X, axis=1)]


def several_classes(n, rng, classes=3):
    """Return features whose softmax is calibrated, and classes."""
    X = 2 * rng.normal(size=(n, classes))
    share = softmax(X, axis=1).cumsum(axis=1)
    return X, (rng.random((n, 1)) > share).sum(axis=1).clip(max=classes - 1)


# -- the transformer -----------------------------------------------------------------------------


def test_columns_are_what_recalibration_finds():
    rng = np.random.default_rng(0)
    y, p = overconfident(600, rng)
    X = np.stack((p, np.sqrt(p)), axis=1)
    found = MonotoneCalibrator(confidence_level=0.9, n_resamples=99).fit(X, y)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    for k, column in enumerate(X.T):
        one = caldist.recalibrate(y, column, confidence_level=0.9, n_resamples=99, rng=seed)
        assert found.recalibrations_[k] == one
        assert found.maps_[k] == one.map
        np.testing.assert_array_equal(found.transform(X)[:, k], one.map(column))


def test_no_statement_unless_asked_for():
    y, p = overconfident(300, np.random.default_rng(0))
    [found] = MonotoneCalibrator(family="monotone").fit(p[:, None], y).recalibrations_
    assert found.slack == 2
    assert not found.after
    assert "confidence_level" in found.reason


def test_weights_and_clusters_reach_the_recalibration():
    rng = np.random.default_rng(0)
    y, p = overconfident(400, rng)
    weight, clusters = rng.integers(0, 3, 400), rng.integers(0, 60, 400)
    options = {"sample_weight": weight, "clusters": clusters}
    found = MonotoneCalibrator(confidence_level=0.9, n_resamples=99).fit(p[:, None], y, **options)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    expected = caldist.recalibrate(y, p, confidence_level=0.9, n_resamples=99, rng=seed, **options)
    assert found.recalibrations_[0] == expected


def test_in_a_pipeline_with_names():
    rng = np.random.default_rng(0)
    y, p = overconfident(400, rng)
    pipeline = make_pipeline(FunctionTransformer(expit), MonotoneCalibrator(family="temperature"))
    mapped = pipeline.fit_transform(np.log(p / (1 - p))[:, None], y)
    assert caldist.smooth_ce(y, mapped[:, 0]) < caldist.smooth_ce(y, p)
    frame = pd.DataFrame({"score": p})
    named = MonotoneCalibrator().set_output(transform="pandas").fit(frame, y)
    assert named.transform(frame).columns.tolist() == ["score"]


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[0.1], [1.5], [2.0]], [0, 1, 1], r"X\[1, 0\] is 1.5.*sigmoid"),
        ([[0.1], [0.2], [np.nan]], [0, 1, 1], r"X\[2, 0\] is nan: NaN"),
        ([[0.1, 0.9], [0.4, 0.6]], [0, 1], r"2 columns that sum to 1"),
        ([[0.1], [0.2], [0.3]], [0, 1, 2], r"y\[2\] is 2: this is one of 3 classes"),
    ],
)
def test_bad_rows_are_named(X, y, words):
    with pytest.raises(ValueError, match=words):
        MonotoneCalibrator(out_of_bounds="raise").fit(X, y)


# -- the classifier, two classes -----------------------------------------------------------------


def test_a_frozen_model_has_a_statement():
    X, y = make_classification(1500, n_informative=4, random_state=0)
    model = GaussianNB().fit(X[:500], y[:500])
    X, y = X[500:], y[500:]
    found = RecalibratedClassifier(FrozenEstimator(model), n_resamples=99).fit(X, y)
    p = model.predict_proba(X)[:, 1]
    seed = np.random.RandomState(0).randint(2**31 - 1)
    expected = caldist.recalibrate(y, p, n_resamples=99, rng=seed)
    assert found.statement_ == expected
    assert found.statements_ == found.recalibrations_ == [expected]
    assert found.statement_reason_ == ""
    np.testing.assert_array_equal(found.predict_proba(X)[:, 1], expected.map(p))
    np.testing.assert_array_equal(found.predict_proba(X).sum(axis=1), 1)
    assert found.estimator_.estimator is model
    assert found.map_ == found.maps_[0] == expected.map


def test_otherwise_rows_judge_other_models():
    X, y = make_classification(600, n_informative=4, random_state=0)
    found = RecalibratedClassifier(GaussianNB(), cv=3, family="sigmoid").fit(X, y)
    p = cross_val_predict(GaussianNB(), X, y, cv=3, method="predict_proba")[:, 1]
    assert found.map_ == caldist.recalibrate(y, p, family="sigmoid", confidence_level=None).map
    assert found.statement_ is None
    assert found.statements_ == []
    assert "other models" in found.statement_reason_
    assert "FrozenEstimator" in found.statement_reason_
    whole = GaussianNB().fit(X, y).predict_proba(X)[:, 1]
    np.testing.assert_array_equal(found.predict_proba(X)[:, 1], found.map_(whole))


def test_it_is_near_scikit_learns_isotonic():
    X, y = make_classification(2000, n_informative=4, random_state=1)
    ours = RecalibratedClassifier(GaussianNB(), family="isotonic").fit(X, y)
    theirs = CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=5, ensemble=False)
    p, q = ours.predict_proba(X)[:, 1], theirs.fit(X, y).predict_proba(X)[:, 1]
    assert np.abs(p - q).mean() < 0.01


def test_few_events_have_a_map_and_a_reason():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.zeros(300, int)
    y[:5] = 1
    frozen = FrozenEstimator(Softmax(classes=(0, 1)))
    found = RecalibratedClassifier(frozen, family="shift").fit(X, y)
    assert found.statement_ is None
    assert found.statements_ == []
    assert "5 of 300 rows have label 1" in found.statement_reason_
    sure = RecalibratedClassifier(frozen, family="shift", method="finite_sample").fit(X, y)
    assert sure.statement_.method == "finite_sample"
    none = RecalibratedClassifier(frozen, confidence_level=None).fit(X, y)
    assert "confidence_level is None" in none.statement_reason_


def test_names_of_classes():
    X, y = make_classification(300, random_state=0)
    names = np.array(["no", "yes"])[y]
    found = RecalibratedClassifier(LogisticRegression(), cv=2).fit(X, names)
    assert found.classes_.tolist() == ["no", "yes"]
    assert set(found.predict(X)) == {"no", "yes"}
    assert found.score(X, names) > 0.8


@pytest.mark.slow
def test_pipelines_searches_copies_and_pickles():
    X, y = make_classification(300, random_state=0)
    frame = pd.DataFrame(X).add_prefix("x")
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    found = RecalibratedClassifier(inner, cv=2).fit(frame, y)
    assert found.feature_names_in_.tolist() == frame.columns.tolist()
    assert found.n_features_in_ == 20
    outer = make_pipeline(StandardScaler(), RecalibratedClassifier(LogisticRegression(), cv=2))
    assert cross_val_score(outer, X, y, cv=2, scoring="neg_log_loss").mean() > -0.6
    grid = {"family": ["identity", "sigmoid"], "estimator__C": [0.1, 1.0]}
    search = GridSearchCV(RecalibratedClassifier(LogisticRegression(), cv=2), grid, cv=2).fit(X, y)
    assert set(search.best_params_) == set(grid)
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        np.testing.assert_array_equal(again.predict_proba(frame), found.predict_proba(frame))
    assert not hasattr(clone(found), "maps_")
    with pytest.raises(NotFittedError):
        clone(found).predict_proba(frame)


# -- weights, clusters, metadata -----------------------------------------------------------------


class Recording(LogisticRegression):
    """Remembers the weights of its last fit."""

    def fit(self, X, y, sample_weight=None):
        self.weight_ = sample_weight
        return super().fit(X, y, sample_weight=sample_weight)


def test_weights_reach_classifier_and_map():
    rng = np.random.default_rng(0)
    X, y = make_classification(400, random_state=0)
    weight = rng.integers(1, 4, 400)
    found = RecalibratedClassifier(Recording(), cv=2, family="sigmoid").fit(
        X, y, sample_weight=weight
    )
    np.testing.assert_array_equal(found.estimator_.weight_, weight)
    plain = RecalibratedClassifier(Recording(), cv=2, family="sigmoid").fit(X, y)
    assert plain.estimator_.weight_ is None
    assert plain.map_ != found.map_
    # A classifier without weights: they are the map's alone.
    alone = FrozenEstimator(LogisticRegression().fit(X, y))
    clusters = rng.integers(0, 50, 400)
    stated = RecalibratedClassifier(alone, n_resamples=99)
    stated.fit(X, y, sample_weight=weight, clusters=clusters)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    expected = caldist.recalibrate(
        y,
        alone.predict_proba(X)[:, 1],
        sample_weight=weight,
        clusters=clusters,
        n_resamples=99,
        rng=seed,
    )
    assert stated.statement_ == expected


def test_metadata_go_where_they_are_asked_for():
    rng = np.random.default_rng(0)
    X, y = make_classification(400, random_state=0)
    weight, groups = rng.integers(1, 4, 400), rng.integers(0, 40, 400)
    with config_context(enable_metadata_routing=True):
        inner = Recording().set_fit_request(sample_weight=True)
        cv = GroupKFold(4).set_split_request(groups=True)
        model = RecalibratedClassifier(inner, cv=cv, family="sigmoid")
        found = model.fit(X, y, sample_weight=weight, groups=groups)
        np.testing.assert_array_equal(found.estimator_.weight_, weight)
        p = cross_val_predict(
            inner,
            X,
            y,
            cv=cv,
            method="predict_proba",
            params={"sample_weight": weight.astype(float), "groups": groups},
        )[:, 1]
        expected = caldist.recalibrate(
            y, p, family="sigmoid", sample_weight=weight, confidence_level=None
        )
        assert found.map_ == expected.map
        unasked = RecalibratedClassifier(Recording().set_fit_request(sample_weight=False), cv=2)
        assert unasked.fit(X, y, sample_weight=weight).estimator_.weight_ is None
        step = RecalibratedClassifier(inner, cv=2).set_fit_request(
            sample_weight=True, clusters=True
        )
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, step)
        pipeline.fit(X, y, sample_weight=weight, clusters=groups)
        np.testing.assert_array_equal(pipeline[-1].estimator_.weight_, weight)


# -- several classes -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.3, 2.5])
@pytest.mark.parametrize("classes", [3, 7])
def test_top_label_maps_the_confidence_alone(factor, classes):
    rng = np.random.default_rng(0)
    X, y = several_classes(2000, rng, classes)
    model = Softmax(factor, tuple(range(classes)))
    found = RecalibratedClassifier(FrozenEstimator(model), n_resamples=99).fit(X, y)
    before, after = model.predict_proba(X), found.predict_proba(X)
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-12)
    assert (after >= 0).all()
    top = before.argmax(axis=1)[:, None]
    confidence = np.take_along_axis(before, top, axis=1)
    np.testing.assert_array_equal(np.take_along_axis(after, top, axis=1), found.map_(confidence))
    right, confidence = caldist.multiclass.top_label(y, before)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    expected = caldist.recalibrate(right, confidence, n_resamples=99, rng=seed)
    mapped = np.maximum(expected.map(confidence), 1 / classes)
    np.testing.assert_allclose(found.map_(confidence), mapped, atol=2e-6)
    bounds = found.statement_.after["smooth_ce"]
    assert bounds.value == pytest.approx(caldist.smooth_ce(right, mapped), abs=2e-6)
    assert bounds.value < bounds.upper < 0.05
    assert found.map_(1 / classes) > 1 / classes
    assert caldist.smooth_ce(right, after.max(axis=1)) < caldist.smooth_ce(right, confidence)
    order = np.argsort(np.where(before == before.max(axis=1, keepdims=True), -1, before), axis=1)
    assert (np.diff(np.take_along_axis(after, order, axis=1)[:, 1:], axis=1) >= -1e-12).all()


def test_a_confidence_below_chance_stays_the_largest():
    """Two thirds of the confident rows are wrong: no class may have less than the others."""
    rng = np.random.default_rng(0)
    X, y = several_classes(3000, rng)
    y = np.where(rng.random(3000) < 0.9, (X.argmax(axis=1) + 1) % 3, y)
    model = Softmax()
    found = RecalibratedClassifier(FrozenEstimator(model), n_resamples=99).fit(X, y)
    after = found.predict_proba(X)
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_allclose(after, 1 / 3, atol=1e-6)
    np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-12)
    right, confidence = caldist.multiclass.top_label(y, model.predict_proba(X))
    seed = np.random.RandomState(0).randint(2**31 - 1)
    expected = evaluate_map(right, confidence, map=found.map_, n_resamples=99, rng=seed)
    assert found.statement_.after == expected.after
    assert found.statement_.loss == {}
    said = found.map_.provenance["statement"]["after"]["smooth_ce"]["upper"]
    assert said == expected.after["smooth_ce"].upper
    assert found.statement_.after["smooth_ce"].lower > 0.1  # and it says how far off that is


def test_certain_rows_and_ties():
    rng = np.random.default_rng(0)
    X, y = several_classes(500, rng)
    found = RecalibratedClassifier(FrozenEstimator(Softmax(3.0)), confidence_level=None).fit(X, y)
    far = np.array([[900.0, 0, 0], [0, 0, 900.0], [0, 0, 0], [0, 5.0, 5.0]])
    after = found.predict_proba(far)
    assert after.argmax(axis=1).tolist() == [0, 2, 0, 1]
    np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-12)
    assert after[0, 1] == after[0, 2] > 0


@pytest.mark.slow
def test_one_vs_rest_is_stated_before_the_division():
    rng = np.random.default_rng(0)
    X, y = several_classes(1500, rng)
    model = Softmax(2.5)
    frozen = FrozenEstimator(model)
    found = RecalibratedClassifier(frozen, multiclass="one_vs_rest", n_resamples=99).fit(X, y)
    before = model.predict_proba(X)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    pairs = caldist.multiclass.one_vs_rest(y, before)
    assert found.statements_ == [caldist.recalibrate(*p, n_resamples=99, rng=seed) for p in pairs]
    assert found.statement_ is None
    assert "divided by their sum" in found.statement_reason_
    mapped = np.stack([f(p) for f, p in zip(found.maps_, before.T, strict=True)], axis=1)
    expected = mapped / mapped.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.predict_proba(X), expected, rtol=1e-12)
    with pytest.raises(AttributeError, match="3 maps"):
        _ = found.map_


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "y", "error", "words"),
    [
        (LinearSVC(), None, TypeError, "LinearSVC, without predict_proba"),
        (LogisticRegression(), [0] * 40, ValueError, "one class only"),
        (LogisticRegression(), [0] * 39 + [1], ValueError, "5 folds.*only 1 rows"),
        (
            FrozenEstimator(Softmax(classes=(0, 1))),
            [0, 7] * 20,
            ValueError,
            r"y\[1\] is 7.*classes",
        ),
        (FrozenEstimator(GaussianNB()), None, NotFittedError, "not fitted"),
    ],
)
def test_bad_input_is_named(model, y, error, words):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = [0, 1] * 20 if y is None else y
    with pytest.raises(error, match=words):
        RecalibratedClassifier(model).fit(X, y)


def test_bad_options_are_named():
    X, y = make_classification(40, random_state=0)
    with pytest.raises(ValueError, match="multiclass is 'softmax'"):
        RecalibratedClassifier(GaussianNB(), multiclass="softmax").fit(X, y)
    with pytest.raises(ValueError, match="family is 'platt'"):
        RecalibratedClassifier(GaussianNB(), family="platt").fit(X, y)


def test_values_out_of_bounds_are_warned_of_where_they_are_passed():
    calibrator = MonotoneCalibrator()
    x, y = np.array([[0.1], [0.4], [0.6], [1.2]]), [0, 1, 0, 1]
    with pytest.warns(UserWarning, match="outside") as fitted:
        calibrator.fit(x, y)
    with pytest.warns(UserWarning, match="outside") as mapped:
        calibrator.transform(x)
    for found in (*fitted, *mapped):
        if "outside" in str(found.message):
            assert found.filename == __file__
