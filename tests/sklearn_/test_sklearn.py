"""MonotoneCalibrator among scikit-learn's estimators: frames, pipelines, number types, errors."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

import caldist
from caldist.sklearn import MonotoneCalibrator

ISOTONIC = MonotoneCalibrator(family="isotonic")
CLIPPING = clone(ISOTONIC).set_params(out_of_bounds="clip")
Y, P = [0, 1, 0, 1, 1, 0], [0.1, 0.2, 0.2, 0.7, 0.9, 0.9]


def column(values):
    return np.asarray(values, float)[:, None]


def isotonic(y, p, **options):
    """Return the predictions as the isotonic recalibration maps them."""
    return caldist.recalibrate(y, p, family="isotonic", confidence_level=None, **options).map(p)


def test_the_checks_are_not_skipped():
    """Tags that rule out 2-D input would leave one check only."""
    assert sum(1 for _ in estimator_checks_generator(CLIPPING)) > 40


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [False, True], [-1, 1], [1, 2], [0.0, 1.0], ["1", "2"]]
)
def test_the_second_class_is_label_one(labels):
    calibrator = clone(ISOTONIC).fit(column(P), np.array(labels)[Y])
    assert calibrator.classes_.tolist() == labels
    np.testing.assert_array_equal(calibrator.transform(column(P))[:, 0], isotonic(Y, P))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", "int8", "bool"])
@pytest.mark.parametrize("bounds", ["warn", "raise", "clip"])
def test_every_number_type_is_read_as_float64(dtype, bounds):
    p = column(P).astype(dtype)
    calibrator = clone(ISOTONIC).set_params(out_of_bounds=bounds).fit(p, Y)
    recalibrated = calibrator.transform(p)
    assert recalibrated.dtype == np.float64
    expected = isotonic(Y, p[:, 0].astype(float))
    np.testing.assert_array_equal(recalibrated[:, 0], expected)


def test_clipping_is_what_clipping_first_gives():
    logits = np.array([[-3.0], [0.25], [0.5], [1.5], [7.0], [0.75]])
    clipping = clone(CLIPPING).fit(logits, Y)
    strict = clone(ISOTONIC).fit(logits.clip(0, 1), Y)
    np.testing.assert_array_equal(clipping.transform(logits), strict.transform(logits.clip(0, 1)))
    with pytest.warns(UserWarning, match="outside"):
        warned = clone(ISOTONIC).fit(logits, Y)
    assert warned.maps_ == clipping.maps_
    before = logits.copy()
    clipping.fit_transform(logits, Y)
    np.testing.assert_array_equal(logits, before)


# -- among scikit-learn's estimators -------------------------------------------------------------


def test_parameters_clones_and_pickles():
    calibrator = clone(CLIPPING).fit(column(P), Y)
    assert calibrator.get_params()["out_of_bounds"] == "clip"
    assert MonotoneCalibrator().get_params()["out_of_bounds"] == "warn"
    copy = clone(calibrator)
    assert copy.out_of_bounds == "clip"
    assert not hasattr(copy, "maps_")
    assert calibrator.set_params(out_of_bounds="raise") is calibrator
    with pytest.raises(ValueError, match="out_of_bounds"):
        calibrator.transform([[1.5]])
    again = pickle.loads(pickle.dumps(calibrator))
    np.testing.assert_array_equal(again.transform(column(P)), calibrator.transform(column(P)))
    with pytest.raises(TypeError):
        MonotoneCalibrator("isotonic")


def test_in_a_pipeline():
    rng = np.random.default_rng(0)
    logits, y = rng.normal(size=(60, 1)), rng.integers(0, 2, 60)
    weight = rng.integers(0, 3, 60)
    pipeline = make_pipeline(FunctionTransformer(expit), clone(ISOTONIC))
    pipeline.fit(logits, y, monotonecalibrator__sample_weight=weight)
    expected = isotonic(y, expit(logits[:, 0]), sample_weight=weight)
    np.testing.assert_array_equal(pipeline.transform(logits)[:, 0], expected)


def test_columns_of_a_stack_of_models():
    X, y = make_classification(120, random_state=0)
    models = [("bayes", GaussianNB()), ("logistic", LogisticRegression())]
    last = make_pipeline(clone(ISOTONIC), LogisticRegression())
    stack = StackingClassifier(models, last, cv=3).fit(X, y)
    assert stack.final_estimator_[0].n_features_in_ == 2
    assert stack.score(X, y) > 0.7


def test_columns_of_a_frame_keep_their_names():
    frame = pd.DataFrame({"model": P, "other": np.linspace(0, 1, 6), "age": range(6)})
    both = clone(ISOTONIC).fit(frame[["model", "other"]], Y)
    assert both.feature_names_in_.tolist() == ["model", "other"]
    assert both.get_feature_names_out().tolist() == ["model", "other"]
    with pytest.raises(ValueError, match="feature names"):
        both.transform(frame[["other", "model"]])
    with pytest.warns(UserWarning, match="valid feature names"):
        both.transform(frame[["model", "other"]].to_numpy())
    plain = clone(ISOTONIC).fit(column(P), Y)
    assert plain.get_feature_names_out().tolist() == ["x0"]

    chosen = make_column_transformer(
        (clone(ISOTONIC), ["model"]), remainder="passthrough", verbose_feature_names_out=False
    )
    table = chosen.set_output(transform="pandas").fit_transform(frame, pd.Series(Y))
    assert table.columns.tolist() == ["model", "other", "age"]
    np.testing.assert_array_equal(table["model"], isotonic(Y, P))


def test_rows_of_a_frame_are_matched_by_position():
    order = [5, 3, 1, 0, 2, 4]
    frame = pd.DataFrame({"p": P}, index=order)
    found = clone(ISOTONIC).fit(frame, pd.Series(Y)).set_output(transform="pandas")
    recalibrated = found.transform(frame)
    assert recalibrated.index.tolist() == order
    np.testing.assert_array_equal(recalibrated["p"], isotonic(Y, P))


def test_polars_frames():
    frame = pl.DataFrame({"p": P})
    recalibrated = clone(ISOTONIC).fit(frame, pl.Series(Y)).transform(frame)
    np.testing.assert_array_equal(recalibrated[:, 0], isotonic(Y, P))


# -- bad input -----------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
T = [0, 1, 1]
BAD = {
    "above 1": ([[0.1], [1.5], [2.0]], T, ["X[1, 0] is 1.5", "first of 2", "sigmoid", "clip"]),
    "below 0": ([[0.1, 0.1], [0.2, -1], [0.3, 0.3]], T, ["X[1, 1] is -1.0", "sigmoid"]),
    "longdouble above 1": (1 + np.full((3, 1), 1e-18, np.longdouble), T, ["X[0, 0]"]),
    "nan": ([[0.1], [0.2], [NAN]], T, ["X[2, 0] is nan: NaN", "Drop or fill"]),
    "inf": ([[0.1], [INF], [NAN]], T, ["X[1, 0] is inf", "first of 2"]),
    "missing": (pd.DataFrame({"p": pd.array([0.1, None, 0.3])}), T, ["X[1, 0] is nan: NaN"]),
    "one dimension": ([0.1, 0.2, 0.3], T, ["2D", "reshape(-1, 1)"]),
    "a series": (pd.Series([0.1, 0.2, 0.3]), T, ["2-dimensional", "Series"]),
    "all classes": ([[0.1, 0.9], [0.4, 0.6], [0, 1]], T, ["2 columns", "X[0] to 1", "X[:, [1]]"]),
    "text": (np.array([["0.1"], ["0.2"], ["0.3"]]), T, ["strings"]),
    "empty": (np.empty((0, 1)), [], ["0 sample"]),
    "shorter": ([[0.1], [0.2]], T, ["[2, 3]"]),
    "three classes": ([[0.1], [0.2], [0.3]], [5, 7, 6], ["y[1] is 7", "3 classes", "two"]),
    "one class": ([[0.1], [0.2], [0.3]], [1, 1, 1], ["y has one class only, 1"]),
    "fractions": ([[0.0], [1.0], [1.0]], [0, 0.25, 1], ["y[1] is 0.25", "(X, y)"]),
    "label nan": ([[0.1], [0.2], [0.3]], [0, NAN, 1], ["y contains NaN"]),
    "no labels": ([[0.1], [0.2], [0.3]], None, ["requires y"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_named(case):
    X, y, parts = BAD[case]
    calibrator = clone(ISOTONIC).set_params(out_of_bounds="raise")
    with pytest.raises(ValueError) as caught:
        calibrator.fit(X, y)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


@pytest.mark.parametrize("case", ["above 1", "nan", "inf", "missing", "one dimension", "text"])
def test_bad_new_predictions_are_named(case):
    X, _, parts = BAD[case]
    calibrator = clone(ISOTONIC).set_params(out_of_bounds="raise").fit([[0.1], [0.2]], [0, 1])
    if case == "missing":
        calibrator = clone(ISOTONIC).fit(pd.DataFrame({"p": [0.1, 0.2]}), [0, 1])
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
        clone(ISOTONIC).fit([[0.1], [0.2], [0.3]], T, sample_weight=weight)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


@pytest.mark.parametrize("value", ["nan", None, True])
def test_bad_bounds_are_named_when_fitting(value):
    calibrator = clone(ISOTONIC).set_params(out_of_bounds=value)
    with pytest.raises(ValueError, match=r"out_of_bounds is .*'warn', 'raise', 'clip'"):
        calibrator.fit(column(P), Y)


def test_other_columns_and_no_fit():
    with pytest.raises(NotFittedError):
        clone(ISOTONIC).transform(column(P))
    with pytest.raises(ValueError, match=r"2 features.*1 feature"):
        clone(ISOTONIC).fit(column(P), Y).transform([[0.1, 0.2]])
