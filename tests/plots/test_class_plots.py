"""The displays of several classes: what they store against oracles, and that they draw."""

import json

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")  # before pyplot is imported

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

import caldist
from caldist import multiclass
from caldist.multiclass.cells import leaves
from caldist.plots import (
    ClassReliabilityDisplay,
    ClassShares,
    ClasswiseDisplay,
    ReliabilityDisplay,
    TopLabelDisplay,
)

DISPLAYS = (ClassReliabilityDisplay, ClasswiseDisplay, TopLabelDisplay)
HOSTILE = ("$x^2$", "<b>&amp;</b>", "two\nlines\x1b[31m")
NAMES = ["cat", "dog", "owl"]


@pytest.fixture(autouse=True)
def _no_figure_left():
    plt.close("all")
    yield
    plt.close("all")


def rows(n=80, k=3, seed=0, power=2.0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(k), n)
    label = (truth.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(max=k - 1)
    return label, truth**power / (truth**power).sum(axis=1, keepdims=True)


def draw(display):
    display.figure_.canvas.draw()
    return display


def ring(n, turn=0.6, radius=0.3, seed=0):
    """Predictions on a circle, each class calibrated, the whole turned."""
    rng = np.random.default_rng(seed)
    angle = rng.random(n) * 2 * np.pi
    basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    away = radius * np.stack((np.cos(angle), np.sin(angle)), axis=1) @ basis
    turned = radius * np.stack((-np.sin(angle), np.cos(angle)), axis=1) @ basis
    truth = 1 / 3 + away + turn * turned
    label = (truth.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(max=2)
    return label, 1 / 3 + away


@pytest.mark.parametrize("display", DISPLAYS)
def test_given_axes_are_used_and_hostile_names_are_drawn(display):
    label, matrix = rows(40)
    figure, (left, right) = plt.subplots(1, 2)
    options = {"classes": HOSTILE, "name": "$\\frac{1}", "ax": right}
    drawn = draw(display.from_predictions([HOSTILE[at] for at in label], matrix, **options))
    assert drawn.ax_ is right
    assert not left.lines
    assert figure.axes == [left, right]
    assert display.__name__ in repr(drawn)
    json.dumps(drawn.to_dict(), allow_nan=False)
    assert len(drawn.to_frame("pandas")) >= 2
    with pytest.raises(TypeError, match="ax is of type str"):
        drawn.plot(ax="left")
    with pytest.raises(TypeError, match="name is 3"):
        display.from_predictions(label, matrix, name=3)


@pytest.mark.slow
@pytest.mark.parametrize("display", DISPLAYS)
def test_an_estimator_names_its_classes(display):
    label, matrix = rows(60)
    model = LogisticRegression().fit(matrix, np.array(NAMES)[label])
    drawn = display.from_estimator(model, matrix, np.array(NAMES)[label])
    same = display.from_predictions(
        np.array(NAMES)[label], model.predict_proba(matrix), classes=NAMES,
        name="LogisticRegression",
    )  # fmt: skip
    assert drawn.to_dict() == same.to_dict()
    with pytest.raises(TypeError, match="a fitted classifier"):
        display.from_estimator(object(), matrix, label)


@pytest.mark.parametrize("display", DISPLAYS)
def test_bad_rows_are_refused(display):
    label, matrix = rows(20)
    for data, message in (
        ((label, matrix[:, 0]), "a matrix is needed"),
        ((label, 2 * matrix), "softmax"),
        ((label + 5, matrix), r"y_true\[0\]"),
        ((label[:9], matrix), "9"),
    ):
        with pytest.raises(ValueError, match=message):
            display.from_predictions(*data)
    with pytest.raises(ValueError, match="confidence_level"):
        display.from_predictions(label, matrix, confidence_level=2)
    assert plt.get_fignums() == []


def test_bars_are_the_table_the_worst_first():
    label, matrix = rows(200, 5)
    drawn = draw(ClasswiseDisplay.from_predictions(label, matrix, most=3))
    table = multiclass.classwise_table(label, matrix)
    [model] = drawn.models
    assert model.share.tolist() == [line.share for line in table.lines]
    assert model.lower.tolist() == [line.lower for line in table.lines]
    assert (model.value, model.confidence_level) == (table.value, 0.95)
    worst = sorted(table.lines, key=lambda line: (-line.lower, -line.share))
    shown = [text.get_text() for text in drawn.ax_.get_yticklabels()]
    assert shown == [str(line.name) for line in worst[:3]]
    left = sum(line.share for line in worst[3:])
    assert f"the other 2 classes have {left:.3g} in all" in drawn.ax_.get_xlabel()
    ends = drawn.lines_[0].get_xdata()[1::3]
    assert ends == pytest.approx([line.share for line in worst[:3]])
    joints = [
        caldist.Joint.from_arrays(*pair) for pair in caldist.multiclass.one_vs_rest(label, matrix)
    ]
    summarised = ClasswiseDisplay.from_predictions(joints)
    assert summarised.models[0].share == pytest.approx(model.share, abs=1e-5)


def test_one_model_fills_the_axes():
    label, matrix = rows(40)
    drawn = ClasswiseDisplay.from_predictions(label, matrix, name="first")
    with pytest.raises(ValueError, match="ax shows 'first' already"):
        ClasswiseDisplay.from_predictions(label, matrix, ax=drawn.ax_)
    with pytest.raises(ValueError, match="models has 2 models"):
        ClasswiseDisplay([*drawn.models, *drawn.models]).plot()
    none = np.full(2, np.nan)
    bare = ClassShares("m", ("a", "b"), np.array([0.1, 0.0]), none, none, 0.1)
    draw(ClasswiseDisplay([bare]).plot())


def test_the_diagram_of_confidences_is_that_of_the_reduction():
    label, matrix = rows(100)
    top = TopLabelDisplay.from_predictions(label, matrix)
    plain = ReliabilityDisplay.from_predictions(*caldist.multiclass.top_label(label, matrix))
    np.testing.assert_array_equal(top.models[0].frequency, plain.models[0].frequency)
    np.testing.assert_array_equal(top.models[0].band_lower, plain.models[0].band_lower)
    assert top.ax_.get_ylabel() == "how often it is true"
    assert plain.ax_.get_ylabel() == "frequency of label 1"


def test_the_diagram_of_classes_is_that_of_each_against_the_rest():
    label, matrix = rows(100, 6)
    drawn = draw(ClassReliabilityDisplay.from_predictions(label, matrix, name="m"))
    order = ClasswiseDisplay.from_predictions(label, matrix).models[0].worst_first()[:4]
    assert [curve.name for curve in drawn.models] == [f"m, {at}" for at in order]
    pairs = caldist.multiclass.one_vs_rest(label, matrix)
    for at, curve in zip(order, drawn.models, strict=True):
        plain = ReliabilityDisplay.from_predictions(*pairs[at], confidence_level=None)
        np.testing.assert_allclose(curve.frequency, plain.models[0].frequency, atol=1e-12)


def test_predictions_that_are_all_alike_make_one_cell():
    # 1/3 is not its own mean in floating point, which once made empty cells for ever.
    assert leaves(np.full((150, 3), 1 / 3), 12).max() == 0
    mixed = np.repeat([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]], (30, 70), axis=0)
    assert np.unique(leaves(mixed, 12)).size == 2
    bracket = multiclass.confidence_interval(
        np.arange(150) % 3, np.full((150, 3), 1 / 3), measure="distance"
    )
    assert bracket.lower == 0
