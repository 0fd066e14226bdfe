"""The scikit-learn door of the repair: its checks, its map, its place in pipelines, its errors."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import caldist
from caldist.sklearn import NearestCalibrator
from strategies import FAMILIES, family, probability, samples

CLIPPING = NearestCalibrator(out_of_bounds="clip")  # the checks feed any real numbers
Y, P = [0, 1, 0, 1, 1, 0], [0.1, 0.2, 0.2, 0.7, 0.9, 0.9]


def column(values):
    return np.asarray(values, float)[:, None]


@pytest.mark.filterwarnings("ignore:X has values outside")
@parametrize_with_checks([NearestCalibrator(), CLIPPING])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_checks_are_not_skipped():
    """Tags that rule out 2-D input would leave one check only."""
    assert sum(1 for _ in estimator_checks_generator(CLIPPING)) > 40


# -- the map -------------------------------------------------------------------------------------


@given(samples(min_size=2, max_size=14))
def test_training_rows_are_mapped_as_nearest_calibrated_maps_them(sample):
    y, p, weight = sample
    assume(0 < y.sum() < y.size)
    calibrator = NearestCalibrator().fit(column(p), y, sample_weight=weight)
    repaired = calibrator.transform(column(p))[:, 0]
    counts = np.full(y.size, True) if weight is None else weight > 0
    expected = caldist.nearest_calibrated(y, p, sample_weight=weight)
    np.testing.assert_array_equal(repaired[counts], expected[counts])
    assert calibrator.distance_[0] == caldist.upper_distance(y, p, sample_weight=weight)
    assert caldist.ece(y, repaired, sample_weight=weight) == pytest.approx(0, abs=1e-9)
    moved = np.average(np.abs(repaired - p), weights=weight)
    assert moved == pytest.approx(calibrator.distance_[0], abs=1e-12)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "one class"])
@pytest.mark.parametrize("n", [10, 400])
def test_columns_are_mapped_one_by_one(name, n):
    rng = np.random.default_rng(0)
    y, p = family(name, n, rng)
    y[:2] = 0, 1
    other = np.round(rng.random(n), 1)
    both = NearestCalibrator().fit(np.stack((p, other), axis=1), y)
    for k, single in enumerate((p, other)):
        alone = NearestCalibrator().fit(column(single), y)
        np.testing.assert_array_equal(both.prediction_[k], alone.prediction_[0])
        np.testing.assert_array_equal(both.recalibrated_[k], alone.recalibrated_[0])
        assert both.distance_[k] == alone.distance_[0]
        assert both.exact_[k] == alone.exact_[0]
        repaired = both.transform(np.stack((p, other), axis=1))[:, k]
        np.testing.assert_array_equal(repaired, caldist.nearest_calibrated(y, single))


@given(
    st.lists(probability, min_size=2, max_size=12),
    st.lists(probability, min_size=1, max_size=30),
    st.data(),
)
def test_new_predictions_follow_the_nearest_training_prediction(known, new, data):
    """Against all distances in rational arithmetic; close calls and floats next to them, too."""
    middle = (np.asarray(known[1:]) + known[:-1]) / 2
    new = np.concatenate((new, middle, np.nextafter(middle, 0), np.nextafter(middle, 1), known))
    y = data.draw(st.lists(st.integers(0, 1), min_size=len(known), max_size=len(known)))
    y[:2] = 0, 1
    calibrator = NearestCalibrator().fit(column(known), y)
    value = dict(zip(calibrator.prediction_[0], calibrator.recalibrated_[0], strict=True))
    assert set(value) == {v + 0.0 for v in known}
    for v, found in zip(new, calibrator.transform(column(new))[:, 0], strict=True):
        nearest = min(value, key=lambda u, v=v: (abs(Fraction(u) - Fraction(v)), u))
        assert found == value[nearest]


def test_neighbouring_floats_stay_apart():
    """The rounded midpoint of two neighbouring floats is one of them."""
    low = 0.5 + 2.0 ** -np.arange(30, 53)
    for a in np.concatenate((low, np.nextafter(low, 1))):
        b = np.nextafter(a, 1)
        calibrator = NearestCalibrator().fit(column([a, b]), [1, 0])
        calibrator.recalibrated_ = [np.array([0.25, 0.75])]
        assert calibrator.transform([[a], [b]]).tolist() == [[0.25], [0.75]]


def test_halfway_the_lower_one_decides():
    calibrator = NearestCalibrator().fit([[0.0], [0.5], [0.5]], [0, 1, 0])
    assert calibrator.recalibrated_[0].tolist() == [0, 0.5]
    found = calibrator.transform([[0.25], [np.nextafter(0.25, 1)]])
    assert found.tolist() == [[0], [0.5]]


def test_attributes():
    calibrator = NearestCalibrator().fit(column(P), Y)
    np.testing.assert_array_equal(calibrator.prediction_[0], np.unique(P))
    certificate = caldist.certify(Y, P, measure="upper_distance")
    np.testing.assert_array_equal(
        calibrator.recalibrated_[0], certificate.recalibrated[certificate.group]
    )
    assert calibrator.distance_.tolist() == [certificate.value]
    assert calibrator.exact_.tolist() == [True]
    rng = np.random.default_rng(0)
    many = NearestCalibrator().fit(rng.random((50, 2)), rng.integers(0, 2, 50))
    assert many.exact_.tolist() == [False, False]
    assert many.distance_.shape == (2,)


def test_weights_are_repetitions():
    weight = [2, 1, 3, 0, 1, 1]
    weighted = NearestCalibrator().fit(column(P), Y, sample_weight=weight)
    repeated = NearestCalibrator().fit(column(np.repeat(P, weight)), np.repeat(Y, weight))
    assert 0.7 not in weighted.prediction_[0]
    np.testing.assert_array_equal(weighted.prediction_[0], repeated.prediction_[0])
    np.testing.assert_allclose(weighted.recalibrated_[0], repeated.recalibrated_[0], rtol=1e-12)
    assert weighted.distance_ == pytest.approx(repeated.distance_)


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [False, True], [-1, 1], [1, 2], [0.0, 1.0], ["1", "2"]]
)
def test_the_second_class_is_label_one(labels):
    calibrator = NearestCalibrator().fit(column(P), np.array(labels)[Y])
    assert calibrator.classes_.tolist() == labels
    expected = caldist.nearest_calibrated(Y, P)
    np.testing.assert_array_equal(calibrator.transform(column(P))[:, 0], expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", "int8", "bool"])
@pytest.mark.parametrize("bounds", ["warn", "raise", "clip"])
def test_every_number_type_is_read_as_float64(dtype, bounds):
    p = column(P).astype(dtype)
    calibrator = NearestCalibrator(out_of_bounds=bounds).fit(p, Y)
    repaired = calibrator.transform(p)
    assert repaired.dtype == np.float64
    expected = caldist.nearest_calibrated(Y, p[:, 0].astype(float))
    np.testing.assert_array_equal(repaired[:, 0], expected)


def test_clipping_is_what_clipping_first_gives():
    logits = np.array([[-3.0], [0.25], [0.5], [1.5], [7.0], [0.75]])
    clipping = clone(CLIPPING).fit(logits, Y)
    strict = NearestCalibrator().fit(logits.clip(0, 1), Y)
    np.testing.assert_array_equal(clipping.transform(logits), strict.transform(logits.clip(0, 1)))
    with pytest.warns(UserWarning, match="outside"):
        warned = NearestCalibrator().fit(logits, Y)
    np.testing.assert_array_equal(warned.recalibrated_, clipping.recalibrated_)
    before = logits.copy()
    clipping.fit_transform(logits, Y)
    np.testing.assert_array_equal(logits, before)


# -- among scikit-learn's estimators -------------------------------------------------------------


def test_parameters_clones_and_pickles():
    calibrator = NearestCalibrator(out_of_bounds="clip").fit(column(P), Y)
    assert calibrator.get_params() == {"out_of_bounds": "clip"}
    assert NearestCalibrator().get_params() == {"out_of_bounds": "warn"}
    copy = clone(calibrator)
    assert copy.out_of_bounds == "clip"
    assert not hasattr(copy, "prediction_")
    assert calibrator.set_params(out_of_bounds="raise") is calibrator
    with pytest.raises(ValueError, match="out_of_bounds"):
        calibrator.transform([[1.5]])
    again = pickle.loads(pickle.dumps(calibrator))
    np.testing.assert_array_equal(again.transform(column(P)), calibrator.transform(column(P)))
    with pytest.raises(TypeError):
        NearestCalibrator("clip")


def test_in_a_pipeline():
    rng = np.random.default_rng(0)
    logits, y = rng.normal(size=(60, 1)), rng.integers(0, 2, 60)
    weight = rng.integers(0, 3, 60)
    pipeline = make_pipeline(FunctionTransformer(expit), NearestCalibrator())
    pipeline.fit(logits, y, nearestcalibrator__sample_weight=weight)
    expected = caldist.nearest_calibrated(y, expit(logits[:, 0]), sample_weight=weight)
    found = pipeline.transform(logits)
    np.testing.assert_array_equal(found[weight > 0, 0], expected[weight > 0])


def test_after_a_model():
    X, y = make_classification(200, random_state=0)
    p = cross_val_predict(GaussianNB(), X, y, method="predict_proba")[:, [1]]
    repaired = NearestCalibrator().fit_transform(p, y)
    assert repaired.shape == (200, 1)
    assert caldist.smooth_ce(y, repaired[:, 0]) < 1e-12 < caldist.smooth_ce(y, p[:, 0])


def test_columns_of_a_stack_of_models():
    X, y = make_classification(120, random_state=0)
    models = [("bayes", GaussianNB()), ("logistic", LogisticRegression())]
    last = make_pipeline(NearestCalibrator(), LogisticRegression())
    stack = StackingClassifier(models, last, cv=3).fit(X, y)
    assert stack.final_estimator_[0].n_features_in_ == 2
    assert stack.score(X, y) > 0.7


def test_columns_of_a_frame_keep_their_names():
    frame = pd.DataFrame({"model": P, "other": np.linspace(0, 1, 6), "age": range(6)})
    both = NearestCalibrator().fit(frame[["model", "other"]], Y)
    assert both.feature_names_in_.tolist() == ["model", "other"]
    assert both.get_feature_names_out().tolist() == ["model", "other"]
    with pytest.raises(ValueError, match="feature names"):
        both.transform(frame[["other", "model"]])
    with pytest.warns(UserWarning, match="valid feature names"):
        both.transform(frame[["model", "other"]].to_numpy())
    plain = NearestCalibrator().fit(column(P), Y)
    assert plain.get_feature_names_out().tolist() == ["x0"]

    chosen = make_column_transformer(
        (NearestCalibrator(), ["model"]), remainder="passthrough", verbose_feature_names_out=False
    )
    table = chosen.set_output(transform="pandas").fit_transform(frame, pd.Series(Y))
    assert table.columns.tolist() == ["model", "other", "age"]
    np.testing.assert_array_equal(table["model"], caldist.nearest_calibrated(Y, P))


def test_rows_of_a_frame_are_matched_by_position():
    order = [5, 3, 1, 0, 2, 4]
    frame = pd.DataFrame({"p": P}, index=order)
    found = NearestCalibrator().fit(frame, pd.Series(Y)).set_output(transform="pandas")
    repaired = found.transform(frame)
    assert repaired.index.tolist() == order
    np.testing.assert_array_equal(repaired["p"], caldist.nearest_calibrated(Y, P))


def test_polars_frames():
    frame = pl.DataFrame({"p": P})
    repaired = NearestCalibrator().fit(frame, pl.Series(Y)).transform(frame)
    np.testing.assert_array_equal(repaired[:, 0], caldist.nearest_calibrated(Y, P))


# -- bad input -----------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
T = [0, 1, 1]
BAD = {
    "above 1": ([[0.1], [1.5], [2.0]], T, ["X[1, 0] is 1.5", "first of 2", "sigmoid", "clip"]),
    "below 0": ([[0.1, 0.1], [0.2, -1], [0.3, 0.3]], T, ["X[1, 1] is -1.0", "sigmoid"]),
    "longdouble above 1": (1 + np.full((3, 1), 1e-18, np.longdouble), T, ["X[0, 0]"]),
    "nan": ([[0.1], [0.2], [NAN]], T, ["X[2, 0] is NaN", "drop or fill"]),
    "inf": ([[0.1], [INF], [NAN]], T, ["X[1, 0] is inf", "first of 2"]),
    "missing": (pd.DataFrame({"p": pd.array([0.1, None, 0.3])}), T, ["X[1, 0] is NaN"]),
    "one dimension": ([0.1, 0.2, 0.3], T, ["2D", "reshape(-1, 1)"]),
    "a series": (pd.Series([0.1, 0.2, 0.3]), T, ["2-dimensional", "Series"]),
    "all classes": ([[0.1, 0.9], [0.4, 0.6], [0, 1]], T, ["2 columns", "X[0] to 1", "X[:, [1]]"]),
    "text": (np.array([["0.1"], ["0.2"], ["0.3"]]), T, ["strings"]),
    "empty": (np.empty((0, 1)), [], ["0 sample"]),
    "shorter": ([[0.1], [0.2]], T, ["[2, 3]"]),
    "three classes": ([[0.1], [0.2], [0.3]], [5, 7, 6], ["y[1] is 7", "3 classes", "two"]),
    "one class": ([[0.1], [0.2], [0.3]], [1, 1, 1], ["one class", "y[0] is 1"]),
    "fractions": ([[0.0], [1.0], [1.0]], [0, 0.25, 1], ["y[1] is 0.25", "(X, y)"]),
    "label nan": ([[0.1], [0.2], [0.3]], [0, NAN, 1], ["y contains NaN"]),
    "no labels": ([[0.1], [0.2], [0.3]], None, ["requires y"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_named(case):
    X, y, parts = BAD[case]
    calibrator = NearestCalibrator(out_of_bounds="raise")
    with pytest.raises(ValueError) as caught:
        calibrator.fit(X, y)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


@pytest.mark.parametrize("case", ["above 1", "nan", "inf", "missing", "one dimension", "text"])
def test_bad_new_predictions_are_named(case):
    X, _, parts = BAD[case]
    calibrator = NearestCalibrator(out_of_bounds="raise").fit([[0.1], [0.2]], [0, 1])
    if case == "missing":
        calibrator = NearestCalibrator().fit(pd.DataFrame({"p": [0.1, 0.2]}), [0, 1])
    with pytest.raises(ValueError) as caught:
        calibrator.transform(X)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


@pytest.mark.parametrize("values", [[[NAN]], [[INF]], [[-INF]]])
def test_clipping_is_for_numbers_only(values):
    with pytest.raises(ValueError, match=r"X\[0, 0\] is"):
        clone(CLIPPING).fit(column(P), Y).transform(values)


@pytest.mark.parametrize(
    ("weight", "parts"),
    [
        ([1, -1, 1], ["sample_weight[1]", "-1"]),
        ([1, 1], ["sample_weight has 2", "X has 3"]),
        ([0, 0, 0], ["sample_weight is zero"]),
        ([1, NAN, 1], ["sample_weight[1]", "nan"]),
        ([[1], [1], [1]], ["sample_weight", "(3, 1)"]),
    ],
)
def test_bad_weights_are_named(weight, parts):
    with pytest.raises(ValueError) as caught:
        NearestCalibrator().fit([[0.1], [0.2], [0.3]], T, sample_weight=weight)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


@pytest.mark.parametrize("value", ["nan", None, True])
def test_bad_bounds_are_named_when_fitting(value):
    calibrator = NearestCalibrator(out_of_bounds=value)
    with pytest.raises(ValueError, match=r"out_of_bounds is .*'warn', 'raise', 'clip'"):
        calibrator.fit(column(P), Y)


def test_other_columns_and_no_fit():
    with pytest.raises(NotFittedError):
        NearestCalibrator().transform(column(P))
    with pytest.raises(ValueError, match=r"2 features.*1 feature"):
        NearestCalibrator().fit(column(P), Y).transform([[0.1, 0.2]])
