"""Bad input is always an error with the argument, the value and its first position as fields.

Every case runs on two functions, a few telling ones on every other public function that takes
labels and predictions: they share one validator.
"""

import inspect
import math
from functools import partial
from unittest.mock import ANY

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import caldist
from caldist import plots
from caldist.data.class_rows import ClassRows
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, InvalidType
from caldist.measures import function_families
from caldist.measures.base import Measure
from caldist.measures.registry import all_measures
from caldist.plots.display import MatrixDisplay
from measure_cases import complete, counts_rows
from public_names import public

# Options without which a function cannot be called.
NEEDED = {
    "evaluate_groups": {"by": ["a", "b", "b"]},
    "gate": {"tolerance": 0.1},
    "evaluate_map": {"map": ([0, 1], [0, 1])},
    "net_benefit": {"thresholds": [0.5]},
}
# A matrix in place of a column, or several columns of predictions: these have tests of their own.
OTHERWISE = {"top_label", "one_vs_rest", "compare", "compare_all"} | {
    name for name in plots.__all__ if issubclass(getattr(plots, name), MatrixDisplay)
}


def takes_rows(function):
    return next(iter(inspect.signature(function).parameters), None) == "y_true"


def callable_form(function):
    """Bind the options without which it cannot be called."""
    if isinstance(function, Measure):
        return complete(function)
    return partial(function, **NEEDED.get(function.__name__, {}))


BY_NAME = {
    address.rpartition(".")[2]: thing
    for address, thing in public(
        ["inference", "clinical", "groups", "measures", "recalibration"]
    ).items()
}
FUNCTIONS = {
    name: callable_form(thing)
    for name, thing in BY_NAME.items()
    if name[0].islower() and name not in OTHERWISE and takes_rows(thing)
} | {
    f"{name}.from_predictions": getattr(plots, name).from_predictions
    for name in plots.__all__
    if hasattr(getattr(plots, name), "from_predictions") and name not in OTHERWISE
}
FUNCTIONS |= {
    "Joint.from_arrays": caldist.Joint.from_arrays,
    "Accumulator.update": caldist.Accumulator().update,
}
WHOLE = ("smooth_ce", "Joint.from_arrays")
OTHERS = [name for name in FUNCTIONS if name not in WHOLE]
NAN, INF = float("nan"), float("inf")
Y, P = [0, 1, 1], [0.2, 0.5, 0.9]


def bad(kind, argument, index=None, value=None, *words):
    """Return the fields that an error must have, and words of its reason or remedy."""
    return kind, argument, index, value, words


# name: (y_true, y_prob, fields of the error)
CASES = {
    "nan prediction": (Y, [0.2, NAN, 0.9], bad(InvalidInput, "y_prob", 1, NAN, "Drop")),
    "inf prediction": (Y, [0.2, 0.5, INF], bad(InvalidInput, "y_prob", 2, INF)),
    "prediction above 1": (
        Y,
        [0.2, 1.2, 1.3],
        bad(InvalidInput, "y_prob", 1, 1.2, "first of 2", "percentages"),
    ),
    "prediction just above 1": (
        Y,
        [0.2, 0.3, 1.0000002],
        bad(InvalidInput, "y_prob", 2, 1.0000002),
    ),
    "longdouble above 1": (
        Y,
        np.array([0.2, 0.5, 1], np.longdouble) + np.array([0, 0, 1e-18], np.longdouble),
        bad(InvalidInput, "y_prob", 2, np.longdouble(1) + np.longdouble(1e-18)),
    ),
    "1.2 before nan": (Y, [1.2, NAN, 0.5], bad(InvalidInput, "y_prob", 0, 1.2)),
    "negative prediction": (Y, [-0.1, 0.5, 0.9], bad(InvalidInput, "y_prob", 0, -0.1)),
    "logits": (Y, [-2.5, 0.1, 3.0], bad(InvalidInput, "y_prob", 0, -2.5, "logits", "sigmoid")),
    "rounding above 1": (
        Y,
        [0.2, 1.0000001, -1e-9],
        bad(InvalidInput, "y_prob", 1, 1.0000001, "rounding error", "numpy.clip"),
    ),
    "rounding and more": (
        Y,
        [0.2, 1.0000001, 1.1],
        bad(InvalidInput, "y_prob", 1, 1.0000001, "percentages"),
    ),
    "nan label": ([0.0, NAN, 1.0], P, bad(InvalidInput, "y_true", 1, NAN, "Drop")),
    "inf label": ([0.0, 1.0, INF], P, bad(InvalidInput, "y_true", 2, INF)),
    "label 2": ([0, 1, 2], P, bad(InvalidInput, "y_true", 2, 2, "top_label", "one_vs_rest")),
    "labels -1 and 1": ([-1, 1, 1], P, bad(InvalidInput, "y_true", 0, -1, "(y_true == 1)")),
    "fractional label": ([0, 0.3, 1], P, bad(InvalidInput, "y_true", 1, 0.3, "sample_weight")),
    "swapped": (P, Y, bad(InvalidInput, "y_true", 0, 0.2, "swapped", "(y_true, y_prob)")),
    "shorter labels": ([0, 1], P, bad(InvalidInput, "y_true", None, None, "2", "y_prob has 3")),
    "shorter predictions": (Y, [0.5], bad(InvalidInput, "y_true", None, None, "3", "y_prob has 1")),
    "empty": ([], [], bad(InvalidInput, "y_true", None, None, "empty")),
    "empty predictions": (Y, [], bad(InvalidInput, "y_prob", None, None, "empty")),
    "text predictions": (Y, ["0.2", "0.5", "0.9"], bad(InvalidType, "y_prob", 0, "0.2", "numbers")),
    "one text": (Y, [0.2, "0.5", 0.9], bad(InvalidType, "y_prob", 1, "0.5")),
    "text labels": (["no", "yes", "yes"], P, bad(InvalidType, "y_true", 0, "no", "pos_label")),
    "a single text": (Y, "0.5", bad(InvalidType, "y_prob", None, "0.5")),
    "bytes": (Y, [b"0.2", b"0.5", b"0.9"], bad(InvalidType, "y_prob", 0, b"0.2")),
    "complex": (Y, [0.2, 0.5 + 1j, 0.9], bad(InvalidType, "y_prob", 1, 0.5 + 1j, "real")),
    "complex array": (Y, np.array(P) + 0j, bad(InvalidType, "y_prob", 0, 0.2 + 0j, "real")),
    "None": (Y, None, bad(InvalidType, "y_prob")),
    "one None": (Y, [0.2, None, 0.9], bad(InvalidType, "y_prob", 1, None, "missing")),
    "None label": ([0, None, 1], P, bad(InvalidType, "y_true", 1, None, "missing")),
    "object array": (
        Y,
        np.array(P, dtype=object),
        bad(InvalidType, "y_prob", None, None, "0.2", "object", "numpy.asarray"),
    ),
    "nested object": (Y, [0.2, {}, 0.9], bad(InvalidType, "y_prob", 1, {})),
    "dictionary": (Y, {"a": 0.5}, bad(InvalidType, "y_prob", None, None, "dict")),
    "set": (Y, {0.5}, bad(InvalidType, "y_prob", None, {0.5}, "set")),
    "generator": (Y, (p for p in P), bad(InvalidType, "y_prob", None, ANY, "generator")),
    "scalar": (Y, 0.5, bad(InvalidInput, "y_prob", None, None, "()")),
    "ragged": (Y, [[0.1], [0.2, 0.3]], bad(InvalidInput, "y_prob")),
    "matrix": (
        Y,
        [[0.8, 0.2]] * 3,
        bad(InvalidInput, "y_prob", None, None, "(3, 2)", "top_label", "one_vs_rest"),
    ),
    "column matrix": (
        Y,
        np.array(P)[:, None],
        bad(InvalidInput, "y_prob", None, None, "(3, 1)", "ravel"),
    ),
    "label matrix": (np.eye(3, dtype=int), P, bad(InvalidInput, "y_true", None, None, "(3, 3)")),
    "cube": (Y, np.full((3, 1, 1), 0.5), bad(InvalidInput, "y_prob", None, None, "(3, 1, 1)")),
    "dates": (
        Y,
        np.array(["2020-01-01"] * 3, "M8[D]"),
        bad(InvalidType, "y_prob", 0, np.datetime64("2020-01-01")),
    ),
    "masked": (
        Y,
        np.ma.array(P, mask=[0, 1, 0]),
        bad(InvalidInput, "y_prob", 1, None, "masked", "compressed"),
    ),
    "pandas missing": (Y, pd.Series([0.2, None, 0.9]), bad(InvalidInput, "y_prob", 1, NAN)),
    "pandas NA": (
        Y,
        pd.array([0.2, None, 0.9], dtype="Float64"),
        bad((InvalidInput, InvalidType), "y_prob", 1, ANY),
    ),
    "pandas text": (Y, pd.Series(["a", "b", "c"]), bad(InvalidType, "y_prob", 0, "a")),
    "frame": (
        Y,
        pd.DataFrame({"a": P, "b": P}),
        bad(InvalidInput, "y_prob", None, None, "(3, 2)", "y_prob['a']"),
    ),
    "polars null": (Y, pl.Series([0.2, None, 0.9]), bad(InvalidInput, "y_prob", 1, NAN)),
    "polars label null": (pl.Series([0, None, 1]), P, bad(InvalidInput, "y_true", 1, NAN)),
    "pyarrow null": (Y, pa.array([0.2, None, 0.9]), bad(InvalidInput, "y_prob", 1, NAN)),
    "sparse": (Y, sparse.csr_matrix([P]), bad(InvalidType, "y_prob", None, ANY)),
}
WEIGHTS = {
    "negative": ([1, -2, 1], bad(InvalidInput, "sample_weight", 1, -2)),
    "nan": ([1, 1, NAN], bad(InvalidInput, "sample_weight", 2, NAN)),
    "inf": ([INF, 1, 1], bad(InvalidInput, "sample_weight", 0, INF)),
    "all zero": ([0, 0, 0], bad(InvalidInput, "sample_weight", 0, 0, "positive weight")),
    "vanishing": ([1e308, 1e200, 1e308], bad(InvalidInput, "sample_weight", 1, 1e200, "1e-100")),
    "short": ([1, 1], bad(InvalidInput, "sample_weight", None, None, "2", "3", "same length")),
    "empty": ([], bad(InvalidInput, "sample_weight", None, None, "empty")),
    "text": (["1", "1", "1"], bad(InvalidType, "sample_weight", 0, "1")),
    "None inside": ([1, None, 1], bad(InvalidType, "sample_weight", 1, None)),
    "scalar": (2.0, bad(InvalidInput, "sample_weight", None, None, "()")),
    "matrix": (np.ones((3, 2)), bad(InvalidInput, "sample_weight", None, None, "(3, 2)")),
    "complex": ([1, 1j, 1], bad(InvalidType, "sample_weight", 1, 1j)),
}


def same(found, value):
    return found == value or (value != value and found != found)  # noqa: PLR0124 -- or both are NaN


def check(function, arguments, options, expected):
    kind, argument, index, value, words = expected
    with pytest.raises(kind) as caught:
        function(*arguments, **options)
    error = caught.value
    assert (error.argument, error.index) == (argument, index), error
    assert same(error.value, value), error
    assert error.reason
    assert not error.reason.endswith(".")  # the sentence adds it
    assert error.remedy == "" or error.remedy.endswith((".", "?"))
    for word in words:
        assert word in f"{error.reason} {error.remedy}", error
    assert str(error).startswith(error.place)
    assert len(str(error)) < 450


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("case", CASES)
def test_bad_labels_and_predictions(name, case):
    y, p, expected = CASES[case]
    if case == "generator":
        p = (value for value in P)
    check(FUNCTIONS[name], (y, p), {}, expected)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("case", WEIGHTS)
def test_bad_weights(name, case):
    weight, expected = WEIGHTS[case]
    check(FUNCTIONS[name], (Y, P), {"sample_weight": weight}, expected)


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_function_validates_too(name):
    function = FUNCTIONS[name]
    for case in ("nan prediction", "label 2", "swapped", "shorter labels", "empty", "None"):
        y, p, expected = CASES[case]
        check(function, (y, p), {}, expected)
    for case in ("short", "negative"):
        weight, expected = WEIGHTS[case]
        if counts_rows(function):
            remedy = "Leave sample_weight out."
            expected = bad(InvalidInput, "sample_weight", None, None, "was given, but ", remedy)
        check(function, (Y, P), {"sample_weight": weight}, expected)


def test_no_function_is_left_out():
    assert set(all_measures()) < set(FUNCTIONS)
    assert {"miscalibrated_regions", "report", "WitnessDisplay.from_predictions"} < set(FUNCTIONS)
    counted = {name for name, function in FUNCTIONS.items() if counts_rows(function)}
    assert counted == {"debiased_ece", "sweep_ece", "t_cal"}


OPTIONS = {
    "ece": [{"norm": 3}, {"norm": "max"}, {"norm": None}, {"norm": True}],
    "binned_ece": [
        {"n_bins": 0},
        {"n_bins": 2.5},
        {"n_bins": True},
        {"n_bins": 10**10},
        {"n_bins": 10**30},
        {"edges": [0, float("inf")]},
        {"strategy": "equal"},
        {"edges": [0.5]},
        {"edges": [0, 0.5, 0.5, 1]},
        {"edges": [0, float("nan"), 1]},
        {"edges": [0.4, 1]},
        {"edges": [0, 0.4]},
        {"edges": "01"},
        {"n_bins": 2, "edges": [0, 0.5, 1]},
        {"strategy": "quantile", "edges": [0, 0.5, 1]},
        {"add_width": 1},
        {"norm": 3},
        {"norm": "l2"},
        {"norm": True},
        {"norm": 2, "add_width": True},
    ],
    "calibration_curve": [{"n_bins": 0}, {"strategy": "equal"}, {"confidence_level": 1}],
    "calibration_summary": [{"smoother": "gam"}, {"n_resamples": 0}, {"confidence_level": 0}],
    "kernel_ce": [
        {"kernel": "rbf"},
        {"kernel": lambda u, v: 1.0},
        {"kernel": lambda u, v: np.full(np.broadcast_shapes(u.shape, v.shape), np.nan)},
        {"bandwidth": 0},
        {"bandwidth": -1.0},
        {"bandwidth": float("inf")},
        {"bandwidth": "1"},
        {"bandwidth": 1e-310},
        {"bandwidth": 10**400},
        {"unbiased": True, "sample_weight": [1, 1, 1]},
        {"squared": "yes"},
        {"unbiased": None},
    ],
    "post_processing_gap": [
        {"max_slope": 0.99},
        {"max_slope": 0},
        {"max_slope": float("inf")},
        {"max_slope": float("nan")},
        {"max_slope": "2"},
        {"max_slope": None},
    ],
    "random_interval_ce": [
        {"width": 0},
        {"width": float("nan")},
        {"width": None},
        {"width": 5e-324},
        {"add_width": "no"},
    ],
    "mmce": [{"bandwidth": 0}, {"bandwidth": "1"}],
    "debiased_ece": [{"n_bins": 0}, {"n_bins": 2.5}, {"strategy": "equal"}, {"squared": 1}],
    "sweep_ece": [{"norm": 3}, {"norm": math.inf}],
    "soft_binned_ece": [
        {"n_bins": 0},
        {"temperature": 0.0},
        {"temperature": math.inf},
        {"norm": 3},
    ],
    "t_cal": [{"n_bins": 0}, {"n_resamples": 0}, {"n_resamples": 9.0}, {"rng": "seed"}],
    "lower_distance": [{"tol": 0}, {"tol": "fine"}, {"progress": 1}],
    "upper_distance": [{"progress": None}],
}
BAD_OPTIONS = [
    pytest.param(name, options, id=f"{name}-{'-'.join(options)}-{k}")
    for name, cases in OPTIONS.items()
    for k, options in enumerate(cases)
]


@pytest.mark.parametrize(("name", "options"), BAD_OPTIONS)
def test_bad_options_are_named(name, options):
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        BY_NAME[name](Y, P, **options)
    assert caught.value.argument in options, caught.value


@pytest.mark.parametrize(
    ("functions", "expected"),
    [
        (np.cos, bad(InvalidType, "functions", None, None, "functions=[…]")),
        (3, bad(InvalidType, "functions", None, 3)),
        ([], bad(InvalidInput, "functions", None, None, "empty")),
        ([np.cos, 2], bad(InvalidType, "functions", 1, 2)),
        ([lambda v: v[:1]], bad(InvalidInput, "functions", 0, None, "shape (1,)")),
        ([lambda v: v * 1j], bad(InvalidInput, "functions", 0, None, "complex128")),
        ([lambda v: v / 0 if v.size else v], bad(InvalidInput, "functions", 0, None, "inf")),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_function_families(functions, expected):
    check(caldist.weighted_ce, (Y, P), {"functions": functions}, expected)


JOINT = caldist.Joint.from_arrays(Y, P)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: function_families.polynomials(-1), bad(InvalidInput, "degree", None, -1)),
        (lambda: function_families.region(0.5, 0.2), bad(InvalidInput, "high", None, 0.2, "low")),
        (lambda: function_families.region(0.5, 1.2), bad(InvalidInput, "high", None, 1.2)),
        (lambda: caldist.evaluate(JOINT, measures=5), bad(InvalidType, "measures", None, 5)),
        (
            lambda: caldist.evaluate(JOINT, measures="ece"),
            bad(InvalidType, "measures", None, "ece", "['ece']"),
        ),
        (
            lambda: caldist.evaluate(JOINT, measures=[["x"]]),
            bad(InvalidInput, "measures", 0, ["x"], "smooth_ce"),
        ),
        (
            lambda: caldist.evaluate(JOINT, measures=["ece", "x"]),
            bad(InvalidInput, "measures", 1, "x", "smooth_ce"),
        ),
        (
            lambda: caldist.Joint.from_masses([0.5], [1], [1], radius=1e200),
            bad(InvalidInput, "radius", None, 1e200),
        ),
        (lambda: caldist.evaluate([0.5]), bad(InvalidType, "y_prob", None, None, "Joint")),
        (
            lambda: caldist.kernel_ce([1], [0.5], unbiased=True),
            bad(InvalidInput, "y_prob", None, None, "unbiased=True"),
        ),
    ],
)
def test_other_bad_arguments(make, expected):
    check(make, (), {}, expected)


MATRIX = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
HALVES = [0.5, 0.5]


@pytest.mark.parametrize("function", [caldist.multiclass.top_label, caldist.multiclass.one_vs_rest])
@pytest.mark.parametrize(
    ("y", "matrix", "expected"),
    [
        ([0, 3], MATRIX, bad(InvalidInput, "y_true", 1, 3)),
        ([0, -1], MATRIX, bad(InvalidInput, "y_true", 1, -1)),
        ([0, 0.5], MATRIX, bad(InvalidInput, "y_true", 1, 0.5)),
        ([0, NAN], MATRIX, bad(InvalidInput, "y_true", 1, NAN)),
        ([0], MATRIX, bad(InvalidInput, "y_true", None, None, "has 1 values", "has 2")),
        (["a", "b"], MATRIX, bad(InvalidType, "y_true", 0, "a", "number of its column")),
        ([0, 1], HALVES, bad(InvalidInput, "y_prob", None, None, "(2,)")),
        ([0, 1], [[1.0], [1.0]], bad(InvalidInput, "y_prob", None, None, "1 column")),
        ([0, 1], [HALVES, [0.9, 0.9]], bad(InvalidInput, "y_prob", 1, None, "1.8", "normalize")),
        ([0, 1], [HALVES, [2.0, -1.0]], bad(InvalidInput, "y_prob", (1, 0), 2.0, "softmax")),
        ([0, 1], [[0.5, NAN], HALVES], bad(InvalidInput, "y_prob", (0, 1), NAN)),
        ([], np.empty((0, 3)), bad(InvalidInput, "y_prob", None, None, "empty")),
        ([0, 1], [["a", "b"], ["c", "d"]], bad(InvalidType, "y_prob", ANY, ANY)),
    ],
)
def test_bad_multiclass_input(function, y, matrix, expected):
    check(function, (y, matrix), {}, expected)


def misaligned(values):
    """Return the same numbers one byte after an address where they may be."""
    array = np.ascontiguousarray(values)
    raw = b" " + array.tobytes()
    found = np.frombuffer(raw, array.dtype, offset=1).reshape(array.shape)
    assert not found.flags.aligned
    return found


MANY = np.random.default_rng(0)
LABEL, SCORE, WEIGHT = MANY.integers(0, 2, 300), np.sort(MANY.random(300)), MANY.random(300)
MATRIX = MANY.dirichlet([1, 1, 1], 300)


def doors(label, score, weight, matrix, cluster):
    """Return the arrays that kernels are given, whichever way the rows came."""
    rows = Rows.of(label, score, sample_weight=weight, clusters=cluster)
    classes = ClassRows.of(cluster, matrix, sample_weight=weight)
    joint = caldist.Joint.from_masses(score, weight, weight)
    cells = caldist.Joint.from_cells(cluster, weight, weight, weight / 2, weight / 2, bits=4)
    bare = caldist.Joint(score, weight, weight)
    given = [
        *(rows.label, rows.prediction, rows.weight, rows.cluster),
        *(classes.label, classes._matrix, classes.weight, classes.dense),
    ]
    for made in (joint, cells, bare):
        given += [made.prediction, made.mass0, made.mass1]
    given += cells.grid.arrays().values()
    return given


def test_misaligned_numbers_are_copied_to_where_compiled_code_may_read_them():
    cluster = np.arange(300) % 3
    columns = LABEL.astype(float), SCORE, WEIGHT, MATRIX, cluster
    expected = doors(*columns)
    found = doors(*map(misaligned, columns))
    for number, (array, usual) in enumerate(zip(found, expected, strict=True)):
        assert array.flags.aligned, number
        np.testing.assert_array_equal(array, usual)
    label, score, weight, _, _ = map(misaligned, columns)
    for measure in (caldist.smooth_ce, caldist.brier_score, caldist.binned_ece):
        assert measure(label, score) == measure(LABEL, SCORE)
        assert measure(label, score, sample_weight=weight) == measure(
            LABEL, SCORE, sample_weight=WEIGHT
        )


def test_a_memory_map_that_begins_at_an_odd_byte_is_read_like_any_array(tmp_path):
    path = tmp_path / "scores"
    path.write_bytes(b" " + SCORE.tobytes())
    mapped = np.memmap(path, np.float64, "r", offset=1)
    assert Rows.of(LABEL, mapped).prediction.flags.aligned
    assert caldist.smooth_ce(LABEL, mapped) == caldist.smooth_ce(LABEL, SCORE)
    assert (
        caldist.Accumulator().update(LABEL, mapped).joint
        == caldist.Accumulator().update(LABEL, SCORE).joint
    )
