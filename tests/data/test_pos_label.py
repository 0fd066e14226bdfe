"""pos_label: any two labels, everywhere, by one validator."""

import inspect

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

mpl.use("agg")

import matplotlib.pyplot as plt

import caldist
from caldist import Joint, plots
from caldist.measures.base import Measure
from measure_cases import complete
from public_names import public

QUICK = {"n_resamples": 99, "rng": 0}
RNG = np.random.default_rng(0)
P = RNG.random(60)
Y = (RNG.random(60) < P).astype(int)
PAIRS = {
    "text": (["no", "yes"], "yes"),
    "flipped text": (["yes", "no"], "no"),
    "bool": ([False, True], True),
    "1 and 2": ([1, 2], 2),
    "-1 and 1": ([-1, 1], 1),
    "0 and 1": ([0, 1], 1),
    "floats": ([0.5, 1.5], 1.5),
    "bytes": ([b"n", b"y"], b"y"),
}


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("holder", [list, np.array, pd.Series, pl.Series, pd.Categorical])
def test_any_two_labels(kind, holder):
    pair, positive = PAIRS[kind]
    labels = holder([pair[k] for k in Y])
    assert caldist.smooth_ce(labels, P, pos_label=positive) == caldist.smooth_ce(Y, P)
    other = caldist.smooth_ce(labels, P, pos_label=pair[0])
    assert other == caldist.smooth_ce(1 - Y, P)


def takes_pos_label(function):
    return "pos_label" in inspect.signature(function).parameters


WORDS = np.array(["healthy", "ill"])[Y]
NEEDED = {
    "evaluate_groups": {"by": ["a"] * 30 + ["b"] * 30},
    "gate": {"tolerance": 0.1},
    "evaluate_map": {"map": ([0, 1], [0, 1])},
    "net_benefit": {"thresholds": [0.5]},
}
FUNCTIONS = {
    name.rpartition(".")[2]: thing
    for name, thing in public(["inference", "clinical", "measures", "recalibration"]).items()
    if callable(thing)
    and not isinstance(thing, type)
    and next(iter(inspect.signature(thing).parameters), "") == "y_true"
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_labels_takes_it(name):
    function = FUNCTIONS[name]
    assert takes_pos_label(function), name
    if isinstance(function, Measure):
        function = complete(function)
    known = inspect.signature(function).parameters
    options = NEEDED.get(name, {}) | {key: QUICK[key] for key in QUICK if key in known}
    scores = {"compare": (P, P**2), "compare_all": ({"a": P, "b": P**2},)}.get(name, (P,))
    found = function(WORDS, *scores, pos_label="ill", **options)
    assert str(found) == str(function(Y, *scores, **options))
    with pytest.raises(ValueError, match=r"y_true\[0\].*pos_label, 'sick'"):
        function(WORDS, *scores, pos_label="sick", **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in plots.__all__ if name.endswith("Display")])
def test_every_display_of_labels_takes_it(name):
    display = getattr(plots, name)
    method = getattr(display, "from_predictions", None)
    if method is None or not takes_pos_label(method):
        assert name == "MonitorDisplay" or "class" in (method.__doc__ or "")
        return
    try:
        found = method(WORDS, P, pos_label="ill").to_dict()
        assert str(found) == str(method(Y, P).to_dict())
    finally:
        plt.close("all")


def test_summaries_take_it_where_they_are_made():
    joint = Joint.from_arrays(WORDS, P, pos_label="ill")
    assert caldist.smooth_ce(joint) == caldist.smooth_ce(Y, P)
    batch = caldist.Accumulator().update(WORDS, P, pos_label="ill").joint
    assert batch.n_rows == 60
    with pytest.raises(TypeError, match=r"pos_label was given with a Joint.*Leave it out"):
        caldist.smooth_ce(joint, pos_label=1)


@pytest.mark.parametrize(
    ("labels", "positive", "error", "words"),
    [
        (
            ["a", "b", "c"],
            "a",
            ValueError,
            r"y_true\[2\] is 'c': a third label next to 'a'.*and 'b'",
        ),
        (["a", "b", "a"], "c", ValueError, r"y_true\[0\] is 'a': no label is pos_label, 'c'"),
        ([1, 2, 1], "1", ValueError, "no label is pos_label, '1'"),
        (["1", "2", "1"], 1, ValueError, "no label is pos_label, 1"),
        (
            ["a", None, "b"],
            "a",
            ValueError,
            r"y_true\[1\] is None: .*Drop the rows without a label",
        ),
        ([1.0, float("nan"), 2.0], 1.0, ValueError, r"y_true\[1\] is nan"),
        ([], 1, ValueError, "y_true is empty"),
        ([[1, 2, 1]], 1, ValueError, "y_true has shape"),
        ([0, 1], 1, ValueError, "same length"),
        ([0, 1, 1], float("nan"), ValueError, "pos_label is nan"),
        (["no", "yes", "no"], None, TypeError, r"y_true\[0\] is .*no.*text"),
    ],
)
def test_what_is_refused(labels, positive, error, words):
    with pytest.raises(error, match=words):
        caldist.smooth_ce(labels, [0.2, 0.5, 0.7], pos_label=positive)


def test_one_label_alone():
    assert caldist.smooth_ce(["no"] * 3, [0.2, 0.5, 0.7], pos_label="yes") == caldist.smooth_ce(
        [0] * 3, [0.2, 0.5, 0.7]
    )
    assert caldist.smooth_ce(["yes"] * 3, [0.2, 0.5, 0.7], pos_label="yes") == caldist.smooth_ce(
        [1] * 3, [0.2, 0.5, 0.7]
    )


def test_monitors_take_it():
    plain, words = caldist.Monitor(), caldist.Monitor()
    assert words.update(WORDS, P, batch=1, pos_label="ill") == plain.update(Y, P, batch=1)
    with pytest.raises(TypeError, match=r"pos_label was given with a Joint.*Leave it out"):
        words.update(Joint.from_arrays(Y, P).coarsen(14), batch=2, pos_label="ill")
    with pytest.raises(ValueError, match="pos_label, 'sick'"):
        words.update(WORDS, P, batch=2, pos_label="sick")


def test_a_drawn_map_takes_it():
    found = caldist.recalibrate(Y, P, **QUICK)
    try:
        for draw, what in (
            (plots.MapDisplay.from_recalibration, found),
            (plots.MapDisplay.from_map, found.map),
        ):
            drawn = draw(what, WORDS, P, pos_label="ill").to_dict()
            assert str(drawn) == str(draw(what, Y, P).to_dict())
            with pytest.raises(ValueError, match="pos_label was given without y_true"):
                draw(what, pos_label="ill")
    finally:
        plt.close("all")
