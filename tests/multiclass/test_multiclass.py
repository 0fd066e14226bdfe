"""From several classes to binary problems."""

import inspect
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import caldist
from caldist import multiclass, plots
from caldist.measures.registry import all_measures
from caldist.plots.display import MatrixDisplay
from public_names import public

RNG = np.random.default_rng(0)
MATRIX = RNG.dirichlet([1, 1, 1, 1], 200)
CLASSES = np.array([RNG.choice(4, p=row) for row in MATRIX])


def test_top_label_is_confidence_and_correctness():
    correct, confidence = caldist.multiclass.top_label(CLASSES, MATRIX)
    assert confidence == pytest.approx(MATRIX.max(axis=1))
    assert correct.tolist() == (MATRIX.argmax(axis=1) == CLASSES).astype(int).tolist()


def test_of_equal_probabilities_the_first_counts():
    correct, confidence = caldist.multiclass.top_label([1, 0], [[0.5, 0.5], [0.5, 0.5]])
    assert correct.tolist() == [0, 1]
    assert confidence.tolist() == [0.5, 0.5]


def test_one_vs_rest_has_one_pair_per_class():
    pairs = caldist.multiclass.one_vs_rest(CLASSES, MATRIX)
    assert len(pairs) == 4
    for k, (y, p) in enumerate(pairs):
        assert y.tolist() == (k == CLASSES).astype(int).tolist()
        assert p.tolist() == MATRIX[:, k].tolist()
        assert 0 <= caldist.smooth_ce(y, p) < 0.1


def test_two_columns_are_the_binary_problem():
    p = MATRIX[:, 0]
    y = (CLASSES == 0).astype(int)
    (y0, p0), (y1, p1) = caldist.multiclass.one_vs_rest(y, np.stack([1 - p, p], axis=1))
    assert caldist.smooth_ce(y1, p1) == caldist.smooth_ce(y, p)
    assert caldist.smooth_ce(y0, p0) == pytest.approx(caldist.smooth_ce(y, p))


def test_lists_floats_and_float32_are_taken():
    rows = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    expected = caldist.multiclass.top_label([0, 2], rows)
    for y, matrix in [([0.0, 2.0], rows), ((0, 2), np.array(rows, np.float32))]:
        correct, confidence = caldist.multiclass.top_label(y, matrix)
        assert correct.tolist() == expected[0].tolist()
        assert confidence.tolist() == expected[1].tolist()
        assert confidence.dtype == np.float64


def test_a_sum_of_rounded_probabilities_is_refused_or_taken_whatever_the_last_bit():
    """No sum of probabilities with two or three decimals is decided by rounding."""
    rng = np.random.default_rng(0)
    for decimals in (2, 3):
        matrix = np.round(rng.dirichlet(np.ones(12), 400), decimals)
        sums = np.round(matrix * 10**decimals).sum(axis=1) / 10**decimals
        for row, total in zip(matrix, sums, strict=True):
            if abs(total - 1) < 0.0075:
                caldist.multiclass.top_label([0], [row])
            else:
                with pytest.raises(
                    ValueError, match=r"y_prob\[0\] sums to .* If they were rounded"
                ):
                    caldist.multiclass.top_label([0], [row])


def test_rows_are_divided_by_their_sums_where_that_is_asked_for():
    rng = np.random.default_rng(1)
    y, matrix = rng.integers(0, 3, 60), np.round(rng.dirichlet(np.ones(3), 60), 1)
    whole = matrix / matrix.sum(axis=1, keepdims=True)
    with pytest.raises(ValueError, match="normalize=True divides rows by their sums"):
        multiclass.smooth_ce(y, matrix)
    for name, function in FUNCTIONS.items():
        found = function(y, matrix, normalize=True), function(y, whole)
        assert str(found[0]) == str(found[1]), name
    other = matrix[:, [1, 0, 2]]
    assert str(multiclass.compare(y, matrix, other, normalize=True)) == str(
        multiclass.compare(y, whole, whole[:, [1, 0, 2]])
    )
    for function in (caldist.multiclass.top_label, caldist.multiclass.one_vs_rest):
        assert np.array_equal(function(y, matrix, normalize=True), function(y, whole))
    pytest.importorskip("matplotlib")
    found = caldist.report(y, matrix, normalize=True, n_resamples=99, rng=0)
    expected = caldist.report(y, whole, n_resamples=99, rng=0)
    assert found.class_models[0].value == expected.class_models[0].value
    with pytest.raises(TypeError, match=r"normalize.*it divides rows of several classes"):
        caldist.report(y > 0, matrix[:, 0], normalize=True)


def test_softmax_in_half_precision_is_taken():
    logits = RNG.normal(size=(50, 100)).astype(np.float16)
    matrix = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    caldist.multiclass.top_label(np.zeros(50, int), matrix.astype(np.float16))


# -- one reading of rows by all functions --------------------------------------------------------

GOOD = ([0, 1, 2, 1], [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.6, 0.2, 0.2]])
FUNCTIONS = {
    name: getattr(multiclass, name)
    for name in (
        "calibration_test",
        "certify",
        "classwise_distance",
        "classwise_table",
        "confidence_interval",
        "distance_bracket",
        "kernel_ce",
        "smooth_ce",
        "worst_subset",
    )
}
BAD = {
    "class beyond": ([0, 1, 3, 1], GOOD[1], {}, ValueError, ["y_true[2]", "3", "classes="]),
    "class below": ([0, -1, 2, 1], GOOD[1], {}, ValueError, ["y_true[1]", "-1"]),
    "part of a class": ([0, 0.5, 2, 1], GOOD[1], {}, ValueError, ["y_true[1]", "0.5"]),
    "no class": ([0, float("nan"), 2, 1], GOOD[1], {}, ValueError, ["y_true[1]", "nan"]),
    "text": (["a", "b", "c", "b"], GOOD[1], {}, TypeError, ["y_true[0]", "'a'", "classes="]),
    "text in a frame": (
        pd.Series(["a", "b", "c", "b"]),
        pd.DataFrame(GOOD[1]),
        {},
        TypeError,
        ["y_true[0]", "'a'", "classes="],
    ),
    "one of each class": (
        np.eye(3)[GOOD[0]],
        GOOD[1],
        {},
        ValueError,
        ["y_true", "argmax(axis=1)"],
    ),
    "label column": ([[0], [1], [2], [1]], GOOD[1], {}, ValueError, ["y_true", "ravel"]),
    "missing label": ([0, None, 2, 1], GOOD[1], {}, TypeError, ["y_true[1]", "None", "missing"]),
    "swapped": (GOOD[1], GOOD[0], {}, ValueError, ["y_prob", "(4,)", "order is (y_true, y_prob)"]),
    "no columns": ([0, 1], np.empty((2, 0)), {}, ValueError, ["y_prob", "empty", "(2, 0)"]),
    "transposed": (GOOD[0], np.transpose(GOOD[1]), {}, ValueError, ["y_prob[0]", "1.6"]),
    "inf": ([0, 1], [[0.5, 0.5], [np.inf, 0]], {}, ValueError, ["y_prob[1, 0]", "inf"]),
    "cube": (GOOD[0], [GOOD[1]], {}, ValueError, ["y_prob", "(1, 4, 3)"]),
    "objects": (GOOD[0], np.array(GOOD[1], object), {}, TypeError, ["y_prob", "object"]),
    "too few labels": ([0, 1], GOOD[1], {}, ValueError, ["y_true", "2", "y_prob", "4"]),
    "one column": ([0, 1], [0.5, 0.5], {}, ValueError, ["y_prob", "(2,)"]),
    "no matrix": ([0, 1], None, {}, TypeError, ["y_prob", "None"]),
    "one class": ([0, 0], [[1.0], [1.0]], {}, ValueError, ["y_prob", "1 column"]),
    "no rows": ([], np.empty((0, 3)), {}, ValueError, ["y_prob", "empty"]),
    "sum": ([0, 1], [[0.5, 0.5], [0.9, 0.9]], {}, ValueError, ["y_prob[1]", "1.8"]),
    "rounded sum": (
        [0, 1],
        [[0.5, 0.5], [0.33, 0.66]],
        {},
        ValueError,
        ["y_prob[1]", "0.99", "rounded", "normalize=True"],
    ),
    "rounded": (
        [0, 1],
        [[0.5, 0.5], [1.0000001, 0]],
        {},
        ValueError,
        ["[1, 0]", "rounding error: clip"],
    ),
    "nothing to divide by": (
        [0, 1],
        [[0.5, 0.5], [0, 0]],
        {"normalize": True},
        ValueError,
        ["y_prob[1]", "sums to 0"],
    ),
    "no flag": (*GOOD, {"normalize": 1}, TypeError, ["normalize", "1"]),
    "logits": ([0, 1], [[0.5, 0.5], [-1, 2]], {}, ValueError, ["y_prob[1, 0]", "-1", "softmax"]),
    "nan": ([0, 1], [[0.5, 0.5], [np.nan, 1]], {}, ValueError, ["y_prob[1, 0]", "nan", "Drop"]),
    "joint": (caldist.Joint.from_arrays([0], [0.5]), GOOD[1], {}, TypeError, ["y_true", "Joint"]),
    "weights": (*GOOD, {"sample_weight": [1, 2, 3]}, ValueError, ["sample_weight", "3", "4"]),
    "negative": (*GOOD, {"sample_weight": [1, 2, -3, 0]}, ValueError, ["sample_weight[2]", "-3"]),
    "no weight": (*GOOD, {"sample_weight": [0, 0, 0, 0]}, ValueError, ["sample_weight"]),
    "two names": (*GOOD, {"classes": ["a", "b"]}, ValueError, ["classes", "3 different"]),
    "same names": (*GOOD, {"classes": [0, 1, 1]}, ValueError, ["classes", "3 different"]),
    "one name": (*GOOD, {"classes": "abc"}, TypeError, ["classes", "'abc'"]),
    "names without order": (*GOOD, {"classes": {0, 1, 2}}, TypeError, ["classes", "order"]),
    "names of columns": (
        ["a", "b", "c", "b"],
        pd.DataFrame(GOOD[1], columns=["b", "a", "c"]),
        {"classes": ["a", "b", "c"]},
        ValueError,
        ["y_prob", "['b', 'a', 'c']", "['a', 'b', 'c']", "another order"],
    ),
    "names in columns": (
        ["a", "b", "c", "b"],
        pl.DataFrame(np.transpose(GOOD[1]).tolist(), schema=["p_b", "p_a", "p_c"]),
        {"classes": ["a", "b", "c"]},
        ValueError,
        ["y_prob", "['p_b', 'p_a', 'p_c']", "['a', 'b', 'c']", "another order"],
    ),
    "numbers in columns": (
        GOOD[0],
        pd.DataFrame(GOOD[1], columns=["1_of_3", "0_of_3", "2_of_3"]),
        {},
        ValueError,
        ["y_prob", "'1_of_3'", "[0, 1, 2]", "another order"],
    ),
    "numbers of columns": (
        GOOD[0],
        pd.DataFrame(GOOD[1], columns=[1, 0, 2]),
        {"classes": [0, 1, 2]},
        ValueError,
        ["y_prob", "[1, 0, 2]", "[0, 1, 2]", "another order"],
    ),
    "no column of that name": (
        ["a", "b", "c", "d"],
        pd.DataFrame(GOOD[1], columns=["a", "b", "c"]),
        {},
        ValueError,
        ["y_true[3]", "'d'", "['a', 'b', 'c']"],
    ),
    "lists": (*GOOD, {"classes": [[0], [1], [2]]}, TypeError, ["classes[0]", "hashable"]),
    "unknown": (*GOOD, {"classes": [0, 1, 5]}, ValueError, ["y_true[2]", "2", "classes"]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("case", BAD)
def test_bad_rows(name, case):
    y, matrix, options, error, parts = BAD[case]
    with pytest.raises(error) as caught:
        FUNCTIONS[name](y, matrix, **options)
    for part in parts:
        assert part in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("name", "options", "error", "part"),
    [
        ("classwise_distance", {"tol": 0}, ValueError, "tol is 0"),
        ("classwise_table", {"confidence_level": 1}, ValueError, "confidence_level is 1"),
        ("smooth_ce", {"method": "fast"}, ValueError, "method is 'fast'"),
        ("smooth_ce", {"landmarks": 0}, ValueError, "landmarks is 0"),
        ("smooth_ce", {"landmarks": 5, "method": "exact"}, ValueError, "landmarks is 5"),
        ("smooth_ce", {"tol": -1}, ValueError, "tol is -1"),
        ("kernel_ce", {"kernel": "gaussian"}, ValueError, "structure='classwise'"),
        ("kernel_ce", {"bandwidth": 0}, ValueError, "bandwidth is 0"),
        ("kernel_ce", {"structure": "half"}, ValueError, "structure is 'half'"),
        ("kernel_ce", {"n_draws": 5}, ValueError, "method='binning'"),
        ("kernel_ce", {"unbiased": True, "sample_weight": [1] * 4}, ValueError, "sample_weight"),
        (
            "kernel_ce",
            {"structure": "classwise", "method": "binning"},
            ValueError,
            "structure='full'",
        ),
        ("confidence_interval", {"measure": "ece"}, ValueError, "measure is 'ece'"),
        ("confidence_interval", {"method": "resampling"}, ValueError, "method is 'resampling'"),
        ("calibration_test", {"measure": "ece"}, ValueError, "measure is 'ece'"),
        ("calibration_test", {"n_resamples": 0}, ValueError, "n_resamples is 0"),
        ("certify", {"tol": "small"}, TypeError, "tol is 'small'"),
        (
            "distance_bracket",
            {"confidence_level": 0.9},
            TypeError,
            "caldist.confidence_interval",
        ),
        ("distance_bracket", {"rng": -1}, TypeError, "rng is -1"),
    ],
)
def test_bad_options(name, options, error, part):
    with pytest.raises(error, match=part):
        FUNCTIONS[name](*GOOD, **options)


@pytest.mark.parametrize("name", [*FUNCTIONS, "compare"])
def test_functions_are_documented_in_full(name):
    function = getattr(multiclass, name)
    doc = inspect.getdoc(function)
    for parameter in inspect.signature(function).parameters.values():
        assert re.search(rf"\b{parameter.name}\b( :|, )", doc), parameter
        is_data = parameter.name.startswith(("y_true", "y_prob"))
        assert (parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD) == is_data
    for heading in ("**What it means.**", "**Cost.**", "Examples\n----"):
        assert heading in doc


# These take matrices, or the names of columns. All others speak of one probability a row.
OTHERWISE = {"top_label", "one_vs_rest", "report", "summarize", "sample_size"}
# Options without which a function cannot be called.
NEEDED = {
    "evaluate_groups": {"by": ["a", "b", "b"]},
    "net_benefit": {"thresholds": [0.5]},
    "gate": {"tolerance": 0.1},
    "evaluate_map": {"map": ([0, 1], [0, 1])},
    "Monitor.update": {"batch": 1},
    "random_interval_ce": {"width": 0.1},
    "weighted_ce": {"functions": [abs]},
}


BINARY_MODULES = ["inference", "clinical", "groups", "measures", "recalibration"]


def binary_functions():
    """Give every public function that takes predictions, by name."""
    for address, function in public(BINARY_MODULES).items():
        name = address.rpartition(".")[2]
        if callable(function) and name[0].islower() and name not in OTHERWISE:
            parameters = inspect.signature(function).parameters
            if any(parameter.startswith("y_prob") for parameter in parameters):
                yield name, function
    for name in plots.__all__:
        display = getattr(plots, name)
        if hasattr(display, "from_predictions") and not issubclass(display, MatrixDisplay):
            yield f"{name}.from_predictions", display.from_predictions
    yield "Joint.from_arrays", caldist.Joint.from_arrays
    yield "Accumulator.update", caldist.Accumulator().update
    yield "Monitor.update", caldist.Monitor().update


BINARY = dict(binary_functions())


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_refuse_matrices_and_name_those_of_several_classes(name):
    matrix = np.array(GOOD[1][:3])
    columns = 2 if name == "compare" else 1
    predictions = [{"a": matrix, "b": matrix}] if name == "compare_all" else [matrix] * columns
    with pytest.raises(ValueError, match=r"caldist\.multiclass.*\bmulticlass\.classwise_distance"):
        BINARY[name]([0, 1, 1], *predictions, **NEEDED.get(name, {}))
    if not name.startswith("true_distance"):  # that one takes means of labels
        predictions = [{"a": [0.5] * 3, "b": [0.5] * 3}] if name == "compare_all" else [[0.5] * 3]
        with pytest.raises(ValueError, match=r"caldist\.multiclass"):
            BINARY[name]([0, 1, 2], *predictions * columns, **NEEDED.get(name, {}))


def test_no_binary_function_was_left_out():
    assert set(all_measures()) < set(BINARY)
    assert {"compare_all", "recalibrate", "true_distance", "miscalibrated_regions"} < set(BINARY)


def test_a_matrix_is_not_copied_without_need():
    from caldist.data.class_rows import ClassRows

    matrix = np.array(GOOD[1])
    assert ClassRows.of(GOOD[0], matrix).dense is matrix
    assert ClassRows.of(GOOD[0], matrix)._matrix is matrix
    single = matrix.astype(np.float32)
    assert ClassRows.of(GOOD[0], single)._matrix is single
    column = next(ClassRows.of(GOOD[0], single).columns())
    assert column.dtype == np.float64


def test_labels_of_any_kind():
    names = [("a", 1), None, 2.5]
    rows = [names[number] for number in (0, 2, 0, 2)]
    table = multiclass.classwise_table(rows, GOOD[1], classes=names, confidence_level=None)
    assert [line.name for line in table.lines] == names
    numbers = multiclass.classwise_table([0, 2, 0, 2], GOOD[1], confidence_level=None)
    assert table.value == numbers.value


def test_columns_of_frames_count_by_their_place():
    named = ["a", "b", "c", "b"]
    expected = multiclass.classwise_distance(*GOOD)
    for columns in (["a", "b", "c"], ["p_a", "p_b", "p_c"]):
        frame = pd.DataFrame(GOOD[1], columns=columns)
        for matrix in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            found = multiclass.classwise_distance(named, matrix, classes=["a", "b", "c"])
            assert found == expected
    for matrix in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        with pytest.raises(ValueError, match="another order"):
            multiclass.classwise_distance(named, matrix, classes=["p_b", "p_a", "p_c"])


def frames(matrix, columns):
    """Return a matrix as frames of three libraries."""
    frame = pd.DataFrame(np.asarray(matrix), columns=columns)
    text = frame.rename(columns=str)
    return [frame, pl.from_pandas(text), pa.Table.from_pandas(text)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FUNCTIONS, "top_label", "one_vs_rest"])
def test_labels_may_be_the_names_of_the_columns_of_a_frame_in_any_order(name):
    function = FUNCTIONS.get(name) or getattr(multiclass, name)
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet([1, 2, 3], 60)
    matrix[:, 2] = 1 - matrix[:, 0] - matrix[:, 1]
    label = rng.integers(0, 3, 60)
    order = [2, 0, 1]
    expected = function(np.argsort(order)[label], matrix[:, order])

    def figures(found):
        if isinstance(found, float | tuple | list):
            return repr(found)
        return [getattr(found, key, None) for key in ("value", "lower", "upper", "statistic")]

    for names in (["ant", "bee", "cow"], [0, 1, 2]):
        columns, named = [names[at] for at in order], [names[at] for at in label]
        for frame in frames(matrix[:, order], columns)[: 1 if names[0] == 0 else 3]:
            assert figures(function(named, frame)) == figures(expected)


def test_columns_that_may_be_names_or_positions_need_classes():
    """Which labels occur must not decide."""
    frame = pd.DataFrame(GOOD[1], columns=[1, 2, 3])
    for label in (GOOD[0], [1, 2, 2, 1]):
        with pytest.raises(ValueError, match=r"some are also positions\. Pass classes="):
            multiclass.smooth_ce(label, frame)
    for classes in ([0, 1, 2], [1, 2, 3]):
        label = [classes[at] for at in GOOD[0]]
        assert multiclass.smooth_ce(label, frame, classes=classes) == multiclass.smooth_ce(*GOOD)


def test_models_with_columns_in_two_orders_are_not_compared():
    y, matrix = ["a", "b", "c", "b"], np.array(GOOD[1])
    one, other = (pd.DataFrame(matrix, columns=list(names)) for names in ("abc", "bca"))
    with pytest.raises(ValueError, match=r"y_prob_b has .* to the same order"):
        multiclass.compare(y, one, other)


def test_a_table_of_classes_as_a_frame():
    frame = pd.DataFrame(GOOD[1])
    table = multiclass.classwise_table(pd.Series(GOOD[0]), frame, confidence_level=None)
    assert isinstance(table.to_frame(), pd.DataFrame)
    assert table.to_frame().shape == (3, 8)
    assert "<table>" in table._repr_html_()


@pytest.mark.parametrize(
    "function",
    [
        function
        for name in multiclass.__all__
        if name != "compare" and inspect.isfunction(function := getattr(multiclass, name))
    ],
)
@pytest.mark.parametrize("kind", ["arrays", "lists", "frames", "names"])
def test_swapped_arguments_are_recognised(function, kind):
    y_true, y_prob = np.array([0, 2, 1]), np.full((3, 3), 1 / 3)
    if kind == "lists":
        y_true, y_prob = y_true.tolist(), y_prob.tolist()
    elif kind == "frames":
        y_true, y_prob = pd.Series(y_true), pd.DataFrame(y_prob)
    elif kind == "names":
        y_true = ["a", "c", "b"]
    with pytest.raises(ValueError, match=r"look swapped.* The order is \(y_true, y_prob\)"):
        function(y_prob, y_true)


def test_arguments_of_a_comparison_that_are_swapped():
    y_true, y_prob = np.array([0, 2, 1]), np.full((3, 3), 1 / 3)
    order = r"The order is \(y_true, y_prob_a, y_prob_b\)"
    with pytest.raises(ValueError, match=rf"y_true has .* y_prob_a has .*look swapped.* {order}"):
        multiclass.compare(y_prob, y_true, y_prob)
    with pytest.raises(ValueError, match=rf"y_true has .* y_prob_b has .*look swapped.* {order}"):
        multiclass.compare(y_prob, y_prob, y_true)
