"""Calls that almost work are answered with the call that does."""

import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import caldist
from caldist import multiclass, plots, sklearn
from caldist._util.warning import warn
from caldist.errors import answering
from caldist.measures.registry import all_measures
from caldist.plots.display import MatrixDisplay

RNG = np.random.default_rng(0)
P = RNG.random(60)
Y = (RNG.random(60) < P).astype(int)
WORDS = np.where(Y == 1, "yes", "no")
MODELS = {"a": P, "b": P**2}
MATRIX = np.column_stack((1 - P, P))
FRAMES = [pd.DataFrame(MODELS), pl.DataFrame(MODELS), pa.table(MODELS)]
TABLE = pd.DataFrame({"won": Y, "p": P})


def answer(function, *data, **options):
    with pytest.raises((TypeError, ValueError)) as caught:
        function(*data, **options)
    return str(caught.value)


# -- names of arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        (
            caldist.binned_ece,
            {"bins": 10},
            "binned_ece() has no argument 'bins': it is called n",
        ),
        (caldist.measures.t_cal, {"num_bins": 10}, "it is called n_bins."),
        (caldist.smooth_ce, {"weights": P}, "it is called sample_weight."),
        (caldist.report, {"weights": P}, "it is called sample_weight."),
        (caldist.confidence_interval, {"alpha": 0.1}, "pass confidence_level=0.9."),
        (caldist.compare, {"alpha": "5%"}, "pass confidence_level=1 - alpha."),
        (caldist.gate, {"alpha": 0.05, "tolerance": 0.1}, "pass confidence_level=0.95."),
        (caldist.gate, {"error": 0.1, "tolerance": 0.1}, "pass confidence_level=0.9."),
        (caldist.evaluate_groups, {"groups": WORDS}, "by= is for sub-groups, clusters= for rows"),
        (caldist.report, {"groups": WORDS}, "by= is for sub-groups, clusters= for rows"),
        (caldist.calibration_test, {"groups": WORDS}, "caldist.evaluate_groups takes sub-groups"),
        (caldist.calibration_test, {"seed": 0}, "it is called rng."),
        (caldist.recalibrate, {"random_state": 0}, "it is called rng."),
        (caldist.clinical.calibration_summary, {"n_bootstrap": 99}, "it is called n_resamples."),
        (caldist.confidence_interval, {"metric": "ece"}, "it is called measure."),
        (caldist.evaluate, {"metrics": ["ece"]}, "it is called measures."),
        (caldist.clinical.net_benefit, {"threshold": 0.1}, "it is called thresholds."),
        (caldist.gate, {"at_most": 0.1}, "it is called tolerance."),
        (caldist.gate, {"threshold": 0.1}, "it is called tolerance."),
        (caldist.measures.corp, {"sample_wieght": P}, "it is called sample_weight."),
        (
            caldist.measures.corp,
            {"nonsense": 1},
            "its options are score, sample_weight, pos_label.",
        ),
        (multiclass.compare, {"alpha": 0.05}, "pass confidence_level=0.95."),
        (multiclass.classwise_table, {"class_names": ["a", "b"]}, "it is called classes."),
    ],
)
def test_an_argument_of_another_name(function, given, expected):
    assert expected in answer(function, Y, P, **given)


def test_the_data_by_other_names():
    assert "it is called y_prob." in answer(caldist.smooth_ce, Y, y_pred=P)
    assert "it is called y_true." in answer(caldist.smooth_ce, y=Y, y_prob=P)
    assert "it is called y_prob_a." in answer(caldist.compare, Y, y_score=P)


def test_options_without_a_name():
    found = answer(caldist.binned_ece, Y, P, 10)
    assert "takes y_true, y_prob by position, the rest by name: n_bins=, strategy=" in found
    assert "takes everything by name: " in answer(caldist.inference.sample_size, 0.1)
    assert "takes y_true, y_prob by position" in answer(caldist.gate, Y, P, 0.1)


def test_every_public_function_of_labels_and_predictions_answers():
    others = {"top_label", "one_vs_rest", "summarize"}  # without options, or of names of columns
    for place in (caldist, multiclass):
        for name in set(place.__all__) - others:
            thing = getattr(place, name)
            if inspect.isfunction(thing) and "y_true" in inspect.signature(thing).parameters:
                found = answer(thing, Y, P, nonsense=1)
                assert "has no argument 'nonsense'" in found, name


DISPLAYS = [name for name in plots.__all__ if name.endswith("Display")]


@pytest.mark.parametrize("name", DISPLAYS)
def test_every_display_answers(name):
    display = getattr(plots, name)
    for method in ("from_predictions", "from_monitor"):
        if method in vars(display):
            data = (Y, MATRIX if issubclass(display, MatrixDisplay) else P)
            found = answer(getattr(display, method), *data[: 1 + (method[5] == "p")], nonsense=1)
            assert f"{name}.{method}() has no argument 'nonsense': its options are " in found
    assert "plot() has no argument 'axes': it is called ax." in answer(display.plot, None, axes=1)


def test_displays_answer_with_the_call_that_works():
    show = plots.ReliabilityDisplay.from_predictions
    assert "it is called y_prob." in answer(show, Y, y_score=P)
    assert "it is called sample_weight." in answer(show, Y, P, weights=P)
    assert "caldist.evaluate_groups takes sub-groups" in answer(show, Y, P, groups=WORDS)
    assert "it is called n_bins." in answer(plots.BinnedDisplay.from_predictions, Y, P, bins=5)
    assert "takes y_true, y_prob by position, the rest by name: " in answer(show, Y, P, 0.9)
    model = LogisticRegression().fit(P[:, None], Y)
    found = answer(plots.BinnedDisplay.from_estimator, model, P[:, None], Y, bins=5)
    assert "it is called n_bins." in found
    table = caldist.recalibration.CalibrationMap([0.0, 1.0], [0.1, 0.9])
    found = answer(plots.MapDisplay.from_map, table, Y, P, weights=P)
    assert "MapDisplay.from_map() has no argument 'weights': it is called sample_weight." in found


@pytest.mark.parametrize(
    ("make", "given", "expected"),
    [
        (
            sklearn.MonotoneCalibrator,
            {"rng": 0},
            "MonotoneCalibrator() has no argument 'rng': it is",
        ),
        (sklearn.MonotoneCalibrator, {"seed": 0}, "it is called random_state."),
        (sklearn.MonotoneCalibrator, {"bounds": 0}, "it is called out_of_bounds."),
        (sklearn.RecalibratedClassifier, {"base_estimator": 0}, "it is called estimator."),
        (
            sklearn.MonotoneCalibrator().fit,
            {"weights": P},
            "MonotoneCalibrator.fit() has no argument 'weights': it is called sample_weight.",
        ),
        (sklearn.MonotoneCalibrator().fit, {"groups": P}, "clusters= is for rows that depend on"),
    ],
)
def test_estimators_answer(make, given, expected):
    data = (P[:, None], Y) if "fit" in repr(make) else ()
    assert expected in answer(make, *data, **given)


@pytest.mark.parametrize("measure", all_measures().values(), ids=str)
def test_every_measure_answers(measure):
    assert "it is called sample_weight" in answer(measure, Y, P, weights=P)


def test_other_type_errors_pass_through():
    @answering
    def fails(y_true, *, option=None):
        return y_true + option

    assert fails(1, option=2) == 3
    with pytest.raises(TypeError, match="unsupported operand"):
        fails(1, option="2")
    with pytest.raises(TypeError, match="missing 1 required positional"):
        fails()
    assert fails.__name__ == "fails"
    assert list(inspect.signature(fails).parameters) == ["y_true", "option"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("ECE", "ece"), ("smCE", "smooth_ce"), ("brier", "brier_score"), ("logloss", "log_loss")],
)
def test_measures_by_their_symbols_and_almost_their_names(given, meant):
    found = answer(caldist.confidence_interval, Y, P, measure=given)
    assert found.endswith(f"Did you mean {meant!r}?")
    assert "Did you mean" not in answer(caldist.confidence_interval, Y, P, measure="nonsense")
    assert "Did you mean" not in answer(caldist.confidence_interval, Y, P, measure=5)


@pytest.mark.parametrize(("given", "meant"), [("ks_error", "ecce_mad"), ("skce", "kernel_ce")])
def test_measures_by_a_second_name_of_the_literature(given, meant):
    found = answer(caldist.confidence_interval, Y, P, measure=given)
    call = found.partition(f"Did you mean {meant!r}? The same number is ")[2].removesuffix(".")
    with pytest.raises(AttributeError, match="has no attribute") as refused:
        getattr(caldist, given)
    assert str(refused.value).endswith(f": the same number is {call}")
    value = eval(call, {"caldist": caldist, "y_true": Y, "y_prob": P})
    direct = {
        "ecce_mad": caldist.measures.ecce_mad(Y, P),
        "kernel_ce": 2 * caldist.kernel_ce(Y, P, squared=True, unbiased=True),
    }
    assert value == direct[meant]


def test_one_threshold_where_a_list_is_meant():
    found = answer(caldist.clinical.net_benefit, Y, P, thresholds=0.1)
    assert found == "thresholds is 0.1: a list of thresholds is needed. Pass [0.1]."


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: caldist.Joint.from_arrays(Y, P, weights=P), "Joint.from_arrays() has no argument"),
        (lambda: caldist.Joint.from_arrays(Y, y_pred=P), "it is called y_prob."),
        (lambda: caldist.Joint.from_arrays(Y, P, P), "takes y_true, y_prob by position, the rest"),
        (lambda: caldist.Accumulator(bins=4), "Accumulator() has no argument 'bins'"),
        (lambda: caldist.Accumulator().update(Y, P, weights=P), "it is called sample_weight."),
        (lambda: caldist.Monitor(alpha=0.05), "it is called false_alarm_rate."),
        (lambda: caldist.Monitor(groups=["a"]), "it is called by."),
        (lambda: caldist.Monitor().update(Y, P, weights=P), "Monitor.update() has no argument"),
        (lambda: caldist.summarize(TABLE, label="won", score="p"), "it is called y_true."),
        (lambda: caldist.summarize(TABLE, y_true="won", score="p"), "it is called y_prob."),
        (lambda: caldist.summarize(TABLE, "won", "p"), "takes table by position, the rest by name"),
        (lambda: caldist.multiclass.top_label(Y, y_pred=MATRIX), "it is called y_prob."),
        (
            lambda: caldist.multiclass.top_label(Y, MATRIX, P),
            "top_label() got 3 values without a name, and takes y_true, y_prob by position",
        ),
    ],
)
def test_summaries_and_monitors_answer(call, expected):
    assert expected in answer(call)


def test_a_curve_unpacked_as_scikit_learn_has_it():
    def call():
        prob_true, prob_pred = caldist.clinical.calibration_curve(Y, P)
        return prob_true, prob_pred

    assert "curve.prob_true, curve.prob_pred" in answer(call)


def test_labels_that_an_estimator_does_not_have():
    model = LogisticRegression().fit(P[:, None], Y)
    found = answer(plots.BinnedDisplay.from_estimator, model, P[:, None], WORDS)
    assert "y has one of the estimator's classes for each row, 0 or 1" in found


def test_a_label_that_does_not_occur():
    found = answer(caldist.smooth_ce, WORDS, P, pos_label="Yes")
    assert "no label is pos_label, 'Yes'; labels are, for example, " in found
    assert "'yes'" in found
    assert "'no'" in found


# -- several models where one is meant -------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [caldist.smooth_ce, caldist.brier_score, caldist.confidence_interval, caldist.calibration_test],
)
def test_models_where_one_is_meant(function):
    for models in (MODELS, *FRAMES[:2]):
        found = answer(function, Y, models)
        assert "('a', 'b'), but the predictions of one model are needed" in found
        assert (
            "Pass the probabilities of label 1, y_prob['a']. Several models go by their names"
            in found
        )
        assert "caldist.inference.compare_all" in found
    assert "a list of 2 arrays, but" in answer(function, Y, [P, P**2])
    assert "Pass the probabilities of label 1, y_prob[0]" in answer(function, Y, [P, P**2])


def test_a_matrix_of_two_columns():
    for matrix in (MATRIX, MATRIX.tolist()):
        assert "for example y_prob[:, 1]" in answer(caldist.smooth_ce, Y, matrix)


def test_two_models_as_one_argument():
    for models in (MODELS, *FRAMES):
        found = answer(caldist.compare, Y, models)
        assert "caldist.inference.compare_all(y_true, models) compares all pairs" in found
        assert "Two of them are compare(y_true, models['a'], models['b'])" in found
    assert "compare(y_true, models[0], models[1])" in answer(caldist.compare, Y, [P, P**2])
    assert "y_prob_b is None: two models are compared" in answer(caldist.compare, Y, P)
    assert list(caldist.inference.compare_all(Y, MODELS, measure="brier_score").pairs) == [
        ("a", "b")
    ]


def test_two_matrices_as_one_argument():
    found = answer(multiclass.compare, Y, {"a": MATRIX, "b": MATRIX})
    assert "caldist.report(y_true, models) compares all pairs" in found
    assert "y_prob_b is None" in answer(multiclass.compare, Y, MATRIX)
    assert "y_prob_b is None" in answer(multiclass.compare, Y, pd.DataFrame(MATRIX))


def test_models_without_names():
    assert "{'a': y_prob[0], 'b': y_prob[1]}" in answer(caldist.inference.compare_all, Y, [P, P**2])
    for models in FRAMES[:2]:
        found = answer(caldist.inference.compare_all, Y, models)
        assert "{name: y_prob[name] for name in y_prob.columns}" in found
        named = {name: models[name] for name in models.columns}  # as it says
        assert caldist.inference.compare_all(Y, named, measure="brier_score").pairs
    assert "Several models go by their names" in answer(caldist.report, Y, [P, P**2])
    assert "models go by their names" in answer(caldist.report, Y, FRAMES[0])


# -- data in another place or form -----------------------------------------------------------------


def test_swapped_data():
    assert "y_true and y_prob look swapped" in answer(caldist.smooth_ce, P, Y)
    assert "look swapped, since y_prob holds text" in answer(caldist.smooth_ce, P, WORDS)
    assert "look swapped" in answer(caldist.compare, P, Y, P)
    assert "look swapped" in answer(multiclass.smooth_ce, MATRIX, Y)


def test_logits_and_labels_that_are_text():
    assert "If these are logits, apply the sigmoid" in answer(caldist.smooth_ce, Y, 8 * P - 4)
    assert "say with pos_label which label counts as 1" in answer(caldist.smooth_ce, WORDS, P)
    assert caldist.smooth_ce(WORDS, P, pos_label="yes") == caldist.smooth_ce(Y, P)


@pytest.mark.parametrize("table", [TABLE, pl.DataFrame(TABLE), pa.Table.from_pandas(TABLE)])
def test_a_table_in_the_place_of_labels(table):
    found = answer(caldist.smooth_ce, table)
    assert "(table['won'], table['p'])" in found
    assert "caldist.summarize(table, y_true='won', y_prob='p')" in found
    summary = caldist.summarize(table, y_true="won", y_prob="p")  # as it says
    assert caldist.smooth_ce(summary) == pytest.approx(caldist.smooth_ce(Y, P), abs=1e-4)
    assert "caldist.summarize(table, " in answer(caldist.confidence_interval, table, "p")


def test_the_name_of_a_file_in_the_place_of_labels():
    found = answer(caldist.smooth_ce, "scores.parquet")
    assert "caldist.summarize('scores.parquet', y_true='label', y_prob='score')" in found


def test_a_column_of_a_frame_that_is_a_frame():
    column = TABLE[["won"]]
    assert "Flatten it with numpy.ravel(y_true)" in answer(caldist.smooth_ce, column, P)
    assert caldist.smooth_ce(np.ravel(column), P) == caldist.smooth_ce(Y, P)


def test_a_level_in_percent():
    found = answer(caldist.confidence_interval, Y, P, confidence_level=95)
    assert "For 95% pass 0.95." in found


# -- warnings point at the caller ------------------------------------------------------------------


def test_warnings_of_decorated_functions_point_here():
    few = np.arange(60) < 3
    for function in (
        caldist.confidence_interval,
        caldist.clinical.calibration_summary,
        caldist.recalibrate,
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(few, P, n_resamples=99, rng=0)
        assert {item.filename for item in caught} <= {__file__}, function
    with pytest.warns(UserWarning, match="here") as caught:
        warn("here")
    assert caught[0].filename == __file__
