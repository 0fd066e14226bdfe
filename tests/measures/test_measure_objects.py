"""A measure is one object: called like a function, asked for its facts, found everywhere."""

import copy
import dataclasses
import doctest
import importlib
import inspect
import os
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_validate

import caldist
import command_lines
from caldist import Joint
from caldist.measures import registry
from caldist.measures.base import Measure
from caldist.measures.registry import all_measures, shown_in
from measure_cases import complete, counts_rows, sums_over_rows
from strategies import family

MEASURES = all_measures()
each = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
Y, P = family("beta3", 40, np.random.default_rng(0))
W = np.random.default_rng(1).exponential(size=40)
# A value for each option that there is, and what has to go with it.
OPTIONS = {
    "add_width": {"add_width": True},
    "bandwidth": {"bandwidth": 0.3},
    "edges": {"edges": [0, 0.4, 1]},
    "functions": {"functions": [np.cos, np.sin]},
    "kernel": {"kernel": "gaussian"},
    "n_bins": {"n_bins": 7},
    "norm": {"norm": 2},
    "progress": {"progress": True},
    "squared": {"squared": True},
    "strategy": {"strategy": "quantile"},
    "temperature": {"temperature": 0.1},
    "tol": {"tol": 1e-3},
    "unbiased": {"unbiased": False},
    "width": {"width": 0.3},
}
METHODS = [
    caldist.measures.debiased_ece.using(strategy="uniform"),
    caldist.ece.using(norm=np.inf),
    caldist.kernel_ce.using(kernel=np.minimum),
]


def variants(measure):
    """Yield a measure as it is and with each of its options bound."""
    yield complete(measure)
    for name in measure.option_names:
        if name in OPTIONS:
            yield measure.using(**OPTIONS[name])
    yield from (other for other in METHODS if other.name == measure.name)


# -- as a function -------------------------------------------------------------------------------


@each
def test_it_looks_like_a_function(measure):
    signature = inspect.signature(measure)
    assert list(signature.parameters)[:2] == ["y_true", "y_prob"]
    assert signature.parameters["y_prob"].default is None
    assert signature.return_annotation == "float"
    for name in ("sample_weight", *measure.option_names):
        assert signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
    assert callable(measure)
    assert measure.__name__ == measure.name
    assert measure.__qualname__ == measure.name
    assert measure.__module__ == f"caldist.measures.{measure.name}"
    assert getattr(caldist.measures, measure.name) is measure
    assert "Parameters\n" in inspect.getdoc(measure)
    assert repr(measure) == f"<measure caldist.measures.{measure.name}>"
    assert str(measure) == measure.name


@each
def test_the_examples_in_its_docstring_are_found(measure):
    module = import_module(measure.__module__)
    found = {test.name: test for test in doctest.DocTestFinder().find(module)}
    assert found[f"{measure.__module__}.{measure.name}"].examples


def test_an_unknown_argument_is_an_error_that_names_it():
    with pytest.raises(TypeError, match=r"binned_ece\(\) has no argument 'n_bin'.*n_bins"):
        caldist.binned_ece(Y, P, n_bin=3)


@each
def test_it_is_pickled_and_copied_like_a_function(measure):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(measure, protocol)) is measure
    assert copy.copy(measure) is measure
    assert copy.deepcopy(measure) is measure


@each
def test_bound_options_are_pickled_and_copied_with_it(measure):
    for name in measure.option_names:
        if name not in OPTIONS:
            continue
        bound = measure.using(**OPTIONS[name])
        for again in (pickle.loads(pickle.dumps(bound)), copy.copy(bound), copy.deepcopy(bound)):
            assert again == bound
            assert hash(again) == hash(bound)
            assert again.options == bound.options
            assert again != measure
            assert again.facts is measure.facts
            assert again(Y, P) == bound(Y, P)


def test_equality_takes_arrays_as_a_whole():
    edges = np.array([0, 0.5, 1])
    some = caldist.binned_ece.using(edges=edges)
    assert some == caldist.binned_ece.using(edges=edges.copy())
    assert some == pickle.loads(pickle.dumps(some))
    assert some != caldist.binned_ece.using(edges=[0, 0.4, 1])
    assert some != caldist.binned_ece.using(edges=[0, 1])
    assert some != caldist.binned_ece.using(n_bins=2)
    assert some != caldist.binned_ece
    assert some != "binned_ece"
    assert caldist.measures.ecce_range != caldist.measures.ecce_mad


def test_another_process_unpickles_it():
    bound = caldist.kernel_ce.using(bandwidth=0.1)
    text = pickle.dumps([caldist.smooth_ce, bound]).hex()
    code = f"""
import pickle
import caldist
first, second = pickle.loads(bytes.fromhex({text!r}))
assert first is caldist.smooth_ce
assert second == caldist.kernel_ce.using(bandwidth=0.1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_as_a_scorer_of_scikit_learn():
    X, y = make_classification(120, random_state=0)
    scoring = {
        str(measure): make_scorer(measure, response_method="predict_proba", greater_is_better=False)
        for measure in (caldist.smooth_ce, caldist.kernel_ce.using(bandwidth=0.1))
    }
    pickle.loads(pickle.dumps(scoring))
    model = LogisticRegression()
    found = cross_validate(model, X, y, scoring=scoring, cv=3, return_indices=True)
    train, test = found["indices"]["train"][0], found["indices"]["test"][0]
    p = model.fit(X[train], y[train]).predict_proba(X[test])[:, 1]
    assert found["test_smooth_ce"][0] == -caldist.smooth_ce(y[test], p)
    narrow = found["test_kernel_ce(bandwidth=0.1)"][0]
    assert narrow == -caldist.kernel_ce(y[test], p, bandwidth=0.1)
    assert "kernel_ce" in repr(scoring["kernel_ce(bandwidth=0.1)"])


# -- options -------------------------------------------------------------------------------------


def test_options_are_bound_and_can_still_be_given():
    narrow = caldist.kernel_ce.using(bandwidth=0.1)
    assert narrow(Y, P) == caldist.kernel_ce(Y, P, bandwidth=0.1)
    assert narrow(Y, P, bandwidth=2.0) == caldist.kernel_ce(Y, P, bandwidth=2.0)
    both = narrow.using(kernel="gaussian")
    assert both == caldist.kernel_ce.using(kernel="gaussian", bandwidth=0.1)
    assert both(Y, P) == caldist.kernel_ce(Y, P, kernel="gaussian", bandwidth=0.1)
    assert narrow.using(bandwidth=1.0) == caldist.kernel_ce.using(bandwidth=1.0)
    assert dict(narrow.options) == {"bandwidth": 0.1}
    assert dict(caldist.kernel_ce.options) == {}
    with pytest.raises(TypeError):
        narrow.options["bandwidth"] = 1.0


@pytest.mark.parametrize(
    ("measure", "options", "message"),
    [
        (
            caldist.measures.mmce,
            {"width": 1},
            "width is not an option of mmce, which takes bandwidth.",
        ),
        (
            caldist.random_interval_ce,
            {"width": 1, "widths": 2},
            "widths is not an option of random_interval_ce, which takes width, add_width.",
        ),
        (caldist.brier_score, {"tol": 1}, "tol is not an option of brier_score, which has none."),
        (caldist.ece, {"sample_weight": W}, "sample_weight is not an option of ece"),
    ],
)
def test_an_unknown_option_is_an_error_that_names_those_it_has(measure, options, message):
    with pytest.raises(TypeError) as caught:
        measure.using(**options)
    assert str(caught.value).startswith(message)


def test_an_iterator_is_kept_as_a_list():
    bound = caldist.weighted_ce.using(functions=iter([np.cos, np.sin]))
    assert bound.options["functions"] == [np.cos, np.sin]
    assert bound(Y, P) == bound(Y, P) == caldist.weighted_ce(Y, P, functions=[np.cos, np.sin])


def test_names_say_what_is_bound():
    wide = caldist.random_interval_ce.using(width=0.25)
    assert str(wide) == "random_interval_ce(width=0.25)"
    assert repr(wide) == "caldist.measures.random_interval_ce.using(width=0.25)"
    assert eval(repr(wide)) == wide
    assert wide.symbol == "RintCE(0.25)"
    assert "width 0.25" in wide.summary
    assert caldist.random_interval_ce.symbol == "RintCE(0.1)"
    assert caldist.binned_ece.using(n_bins=7).symbol == "binnedECE(7)"
    family = caldist.weighted_ce.using(functions=[np.cos] * 50)
    assert len(str(family)) < 60
    assert str(caldist.kernel_ce.using(kernel=np.minimum)) == "kernel_ce(kernel=minimum)"


def test_an_option_that_is_needed_is_asked_for():
    assert caldist.weighted_ce.missing_option == "functions"
    assert complete(caldist.weighted_ce).missing_option is None
    message = r"measures\[1\] is 'weighted_ce': .* needs functions\. Pass .*\.using\(functions=…\)"
    with pytest.raises(TypeError, match=message):
        caldist.evaluate(Y, P, measures=["ece", "weighted_ce"])


def test_evaluate_tells_bound_options_apart():
    narrow = caldist.kernel_ce.using(bandwidth=0.1)
    found = caldist.evaluate(Y, P, measures=["kernel_ce", caldist.kernel_ce, narrow])
    assert list(found) == ["kernel_ce", "kernel_ce(bandwidth=0.1)"]
    assert found["kernel_ce(bandwidth=0.1)"].value == narrow(Y, P)


@pytest.mark.parametrize("measure", METHODS, ids=str)
def test_an_estimate_is_not_certain(measure):
    [found] = caldist.evaluate(Y, P, measures=[measure]).values()
    certain = measure.options.get("method", "exact") == "exact"
    assert (found.lower, found.upper) == ((found.value,) * 2 if certain else (None, None))


# -- facts ---------------------------------------------------------------------------------------


def test_facts_are_complete_and_tell_measures_apart():
    measures = MEASURES.values()
    for measure in measures:
        assert measure.facts.symbol
        assert complete(measure).symbol
        assert complete(measure).summary
        assert "{" not in complete(measure).symbol + complete(measure).summary
        assert "\n" not in measure.summary
        assert not measure.summary.endswith(".")
        assert not (measure.missing_option and not measure.facts.example)
    for facts in zip(*((m.symbol, m.summary, m.facts.position) for m in measures), strict=True):
        assert len(set(facts)) == len(MEASURES)
    positions = [measure.facts.position for measure in measures]
    assert positions == sorted(positions)


# -- a joint in the place of labels and predictions ----------------------------------------------

JOINT, WEIGHTED_JOINT = Joint.from_arrays(Y, P), Joint.from_arrays(Y, P, sample_weight=W)


@each
def test_a_joint_gives_the_same_float_with_every_option(measure):
    by_rows = sums_over_rows(measure)  # whose last bits depend on the order of rows
    for variant in variants(measure):
        value = variant(Y, P)
        assert variant(y_true=Y, y_prob=P) == value, variant
        assert variant(y_true=JOINT) == variant(JOINT), variant
        assert variant(JOINT) == (pytest.approx(value, rel=1e-14) if by_rows else value), variant
        if not counts_rows(variant):
            value = variant(Y, P, sample_weight=W)
            wanted = pytest.approx(value, rel=1e-14) if by_rows else value
            assert variant(WEIGHTED_JOINT) == wanted, variant


def all_of(result):
    """Return a result with its arrays as lists."""
    if isinstance(result, np.ndarray):
        return result.tolist()
    if isinstance(result, dict):
        return {name: all_of(value) for name, value in result.items()}
    if dataclasses.is_dataclass(result):  # what it has computed since is no part of it
        names = [field.name for field in dataclasses.fields(result)]
        return {name: all_of(getattr(result, name)) for name in names}
    fields = getattr(result, "__dict__", None) or {}
    shown = {name: all_of(value) for name, value in fields.items()}
    return shown or result


OF_ROWS = {
    "evaluate": caldist.evaluate,
    "certify": caldist.certify,
    "certify smooth_ce": lambda *rows, **options: caldist.certify(
        *rows, measure=caldist.smooth_ce, **options
    ),
    "certify upper_distance": lambda *rows, **options: caldist.certify(
        *rows, measure="upper_distance", **options
    ),
    "nearest_calibrated": caldist.measures.nearest_calibrated,
    "optimal_partition": caldist.measures.optimal_partition,
    "corp": caldist.measures.corp,
    "t_cal": lambda *rows, **options: caldist.measures.t_cal(
        *rows, rng=1, n_resamples=9, **options
    ),
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_a_joint_gives_what_its_rows_give(name):
    function = OF_ROWS[name]
    for joint, weight in ((JOINT, None), (WEIGHTED_JOINT, W)):
        if name == "t_cal" and weight is not None:
            continue
        of_rows, of_joint = function(Y, P, sample_weight=weight), function(joint)
        if name == "nearest_calibrated":  # one for each prediction
            np.testing.assert_array_equal(of_joint[np.searchsorted(joint.prediction, P)], of_rows)
        else:
            assert repr(all_of(of_joint)) == repr(all_of(of_rows))


BESIDE = {measure.name: complete(measure) for measure in MEASURES.values()} | OF_ROWS


@pytest.mark.parametrize("name", BESIDE)
def test_nothing_stands_beside_a_joint(name):
    function = BESIDE[name]
    with pytest.raises(TypeError, match=r"^y_prob was given with a Joint, .*Pass the Joint alone"):
        function(JOINT, P)
    with pytest.raises(TypeError, match=r"^sample_weight was given with a Joint, .*Leave it out"):
        function(JOINT, sample_weight=W)
    with pytest.raises(TypeError, match=r"^y_prob is a Joint, .*Pass the Joint alone"):
        function(Y, JOINT)
    with pytest.raises(TypeError, match=r"^y_prob is None: .*a caldist\.Joint alone"):
        function(Y)
    with pytest.raises(ValueError, match=r"^joint has no rows"):
        function(Joint.empty())


COUNTED = {
    "kernel_ce": caldist.kernel_ce.using(unbiased=True),
    "debiased_ece": caldist.measures.debiased_ece,
    "sweep_ece": caldist.measures.sweep_ece,
    "t_cal": caldist.measures.t_cal,
}
NOT_COUNTED = {
    "whole weights": (
        Joint.from_arrays([0, 1], [0.2, 0.7], sample_weight=[1, 2]),
        r"^joint holds rows with weights, but .*Make it without sample_weight\.$",
    ),
    "weights of 1": (
        Joint.from_arrays([0, 1], [0.2, 0.7], sample_weight=[1, 1]),
        r"^joint holds rows with weights, but .*Make it without sample_weight\.$",
    ),
    "fractions": (
        Joint.from_arrays([0, 1], [0.2, 0.7], sample_weight=[1, 0.5]),
        r"^joint holds rows with weights, but .*Make it without sample_weight\.$",
    ),
    "a grid": (
        Joint.from_arrays([0, 1], [0.2, 0.7]).coarsen(8),
        r"^joint holds rounded predictions, but .*Pass labels and predictions, or a joint",
    ),
    "a radius": (
        Joint.from_masses([0.2, 0.7], [1, 0], [0, 1], n_rows=2, radius=0.1),
        r"^joint holds rounded predictions, but .*Pass labels and predictions, or a joint",
    ),
    "no number of rows": (
        Joint.from_masses([0.2, 0.7], [1, 0], [0, 1]),
        r"^joint has masses that are not known to be numbers of rows, but .*n_rows, their sum",
    ),
    "another number of rows": (
        Joint.from_masses([0.2, 0.7], [1, 0], [0, 1], n_rows=3),
        r"^joint has masses that are not known to be numbers of rows, but .*n_rows, their sum",
    ),
    "broken rows": (
        Joint.from_masses([0.2, 0.7], [1.5, 0], [0, 0.5], n_rows=2),
        r"^joint has masses that are not known to be numbers of rows, but .*n_rows, their sum",
    ),
}


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("case", NOT_COUNTED)
def test_what_counts_rows_refuses_a_joint_that_does_not(name, case):
    joint, message = NOT_COUNTED[case]
    with pytest.raises(ValueError, match=message):
        COUNTED[name](joint)


@pytest.mark.parametrize("name", COUNTED)
def test_what_counts_rows_takes_a_joint_that_does(name):
    counted = Joint.from_masses([0.2, 0.7], [2, 1], [1, 3], n_rows=7)
    y, p = [0, 0, 1, 0, 1, 1, 1], [0.2] * 3 + [0.7] * 4
    options = {"rng": 1} if name == "t_cal" else {}
    assert COUNTED[name](counted, **options) == COUNTED[name](y, p, **options)


# -- types ---------------------------------------------------------------------------------------

TYPED = """
import caldist

y, p = [0, 1], [0.2, 0.7]
joint = caldist.Joint.from_arrays(y, p)
reveal_type(caldist.smooth_ce(y, p))  # float
reveal_type(caldist.smooth_ce(joint))  # float
reveal_type(caldist.kernel_ce.using(bandwidth=0.1)(joint, sample_weight=None))  # float
reveal_type(caldist.smooth_ce)  # caldist.measures.base.Measure[...
reveal_type(caldist.kernel_ce.using(bandwidth=0.1))  # caldist.measures.base.Measure[...
reveal_type(caldist.evaluate(joint))  # caldist.measures.evaluation.Evaluations
reveal_type(caldist.evaluate(joint)["ece"])  # caldist.measures.evaluation.Evaluation
caldist.evaluate(y, p, measures=["ece", caldist.kernel_ce.using(bandwidth=0.1)])
caldist.binned_ece(y, p, n_bin=3)  # call-arg
caldist.binned_ece(y, p, n_bins="3")  # arg-type
caldist.smooth_ce(y, p, [1.0, 1.0])  # call-arg
caldist.binned_ece(y, p, strategy="equal")  # arg-type
caldist.measures.debiased_ece(y, p, sample_weight=[1, 1])  # arg-type
caldist.weighted_ce(y, p)  # call-arg
caldist.smooth_ce()  # call-arg
"""


@pytest.mark.slow
def test_the_type_checker_sees_signatures(tmp_path, pytestconfig):
    pytest.importorskip("mypy")
    (tmp_path / "typed.py").write_text(TYPED, "utf-8")
    cache = getattr(pytestconfig, "cache", None)  # the first run takes half a minute
    folder = tmp_path if cache is None else cache.mkdir("mypy")
    source = Path(caldist.__file__).parents[1]
    path = {} if source.name == "site-packages" else {"MYPYPATH": str(source)}
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--no-error-summary"]
    command += ["--follow-imports=silent", f"--cache-dir={folder}", "typed.py"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **path},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    found = {}
    for line in done.stdout.splitlines():
        _, number, kind, text = line.split(":", 3)
        if kind == " error":
            found[int(number)] = text.rpartition("[")[2].removesuffix("]")
        elif "Revealed type" in text:
            found[int(number)] = text.split('"', 1)[1].removesuffix('"')
    expected = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(TYPED.splitlines(), start=1)
        if "  # " in line
    }
    assert found.keys() == expected.keys()
    for number, text in expected.items():
        start = text.removesuffix("...")
        assert found[number].startswith(start) if start != text else found[number] == text, number


# -- a measure in one file -----------------------------------------------------------------------

TOY = '''
"""Calibration in the large."""

import numpy as np

from caldist.data.rows import Rows
from caldist.measures.base import Worst, measure
from caldist.measures.norms import Norm


class BiasNorm(Norm):
    """The functions 1 and -1."""

    noise = 1.0

    def __call__(self, masses):
        return abs(float(masses.sum()))

    def witness(self, masses):
        return np.full_like(masses, 1.0 if masses.sum() >= 0 else -1.0)


@measure(
    symbol="bias",
    summary="mean of the residuals",
    position=5,
    shown_in=("evaluate", "measure", "report", "groups", "test"),
    norm=BiasNorm,
    worst=Worst(bias=1.0, reach=2.0),
)
def mean_bias(y_true, y_prob=None, *, sample_weight=None):
    """Return the mean of the residuals."""
    return abs(float(Rows.of(y_true, y_prob, sample_weight=sample_weight).joint.residual().sum()))
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Add a measure by one file, and take it away again."""
    (tmp_path / "mean_bias.py").write_text(TOY, "utf-8")
    package = import_module("caldist.measures")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    yield all_measures()["mean_bias"]
    del sys.modules["caldist.measures.mean_bias"]
    del package.mean_bias


BIAS = abs(np.mean(Y - P))


def test_a_file_is_all_it_takes(toy):
    assert isinstance(toy, Measure)
    assert list(all_measures()) == ["mean_bias", *MEASURES]
    assert registry.shown_in("report")[0] is toy
    assert registry.find("mean_bias") is toy
    found = caldist.evaluate(Y, P)
    assert next(iter(found)) == "mean_bias"
    assert found["mean_bias"].value == found["mean_bias"].lower == pytest.approx(BIAS)
    assert list(caldist.evaluate(JOINT, measures=["mean_bias"])) == ["mean_bias"]
    assert pickle.loads(pickle.dumps(toy)) is toy


def test_it_is_gone_again():
    assert list(all_measures()) == list(MEASURES)
    with pytest.raises(ValueError, match=r"measures\[0\] is 'mean_bias': .* smooth_ce, kernel_ce"):
        caldist.evaluate(Y, P, measures=["mean_bias"])


def test_inference_finds_it(toy):
    options = {"n_resamples": 99, "rng": 0}
    interval = caldist.confidence_interval(Y, P, measure="mean_bias", **options)
    assert interval.lower <= BIAS <= interval.upper
    assert interval.value == pytest.approx(BIAS)
    assert caldist.confidence_interval(JOINT, measure=toy, **options) == interval
    test = caldist.calibration_test(Y, P, measure="mean_bias", **options)
    assert test.statistic == pytest.approx(BIAS)
    assert test.measure == "mean_bias"
    compared = caldist.compare(Y, P, P**2, measure="mean_bias", **options)
    assert compared.value_a == pytest.approx(BIAS)
    assert compared.value_b == pytest.approx(abs(np.mean(Y - P**2)))
    groups = caldist.evaluate_groups(Y, P, by=np.repeat(["a", "b"], 20), **options)
    assert "mean_bias" in groups.to_frame()
    assert caldist.inference.sample_size(width=0.1, measure="mean_bias").proved > 100


def test_a_bracket_takes_it_where_it_bounds_the_distance(toy, monkeypatch):
    before = caldist.distance_bracket(Y, P)
    facts = dataclasses.replace(toy.facts, above_distance=True)
    monkeypatch.setattr(toy, "facts", facts)
    found = caldist.distance_bracket(Y, P)
    assert BIAS < before.upper
    assert (found.upper, found.upper_measure) == (pytest.approx(BIAS), "mean_bias")


def test_a_report_shows_it(toy):
    report = caldist.report(Y, P, n_resamples=99, rng=0)
    [found] = [line for line in report.models[0].measures if line.name == "mean_bias"]
    assert found.value == pytest.approx(BIAS)


def test_the_command_line_finds_it(toy, tmp_path):
    file = command_lines.write_csv(tmp_path / "rows.csv", {"won": Y, "score": P})
    rows = (file, "--label", "won", "--score", "score")
    done = command_lines.run("measure", *rows, "--format", "csv")
    assert done.exit_code == 0, done.stderr
    header, values = done.stdout.splitlines()[:2]
    shown = dict(zip(header.split(","), values.split(","), strict=True))
    assert float(shown["mean_bias"]) == pytest.approx(BIAS)
    done = command_lines.run("test", *rows, "--measure", "mean_bias")
    assert done.exit_code == 0, done.stderr
    assert "mean_bias" in done.stdout


def test_what_reports_and_recalibrations_show_stands_in_the_facts():
    """The tables of a report and the sentences of a recalibration ask the measures."""
    assert [one.name for one in shown_in("report table")] == ["smooth_ce", "brier_score"]
    assert [one.facts.called for one in shown_in("recalibration")] == ["Brier score", "log loss"]
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p**2
    recalibrated = caldist.recalibrate(y, p, n_resamples=99, rng=0)
    assert list(recalibrated.loss) == [one.name for one in shown_in("recalibration")]
    assert "\nBrier score " in str(recalibrated)
    assert "\nLog loss " in str(recalibrated)
    head = str(caldist.report(y, p, n_resamples=99)).splitlines()[0]
    assert head.split()[-3:] == ["smCE", "Brier", "p-value"]
