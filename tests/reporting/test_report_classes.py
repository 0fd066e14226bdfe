"""Reports on several classes: numbers, words, figures, formats, seams, and a real browser."""

import copy
import json
import pickle
import re
from collections import Counter
from dataclasses import replace
from html import escape
from importlib.resources import files

import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pytest

import caldist
from caldist import Joint, multiclass
from caldist._util.numbers import down, up
from caldist.data import class_rows
from caldist.plots import (
    ClassReliabilityDisplay,
    ClasswiseDisplay,
    DistanceDisplay,
    TopLabelDisplay,
)
from caldist.reporting import build, classes
from caldist.reporting.class_verdict import CONFIDENCE, class_verdict
from caldist.reporting.model import ClassReport, ClassTestReport
from caldist.reporting.verdict import readable
from pages import PROBE, Page, browse

NAMES = ["cat", "dog", "owl"]
HOSTILE = "<script>alert('x')</script> $\\frac{1}{2}$ | `a` _b_ \"'&\x1b[31m\nend"


def drawn(n=120, k=3, seed=0, power=2.0):
    """Classes, the probabilities that they were drawn with, and those made too extreme."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(k), n)
    label = (truth.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(max=k - 1)
    sharp = truth**power / (truth**power).sum(axis=1, keepdims=True)
    return label, truth, sharp


@pytest.fixture(scope="module")
def rows():
    label, truth, sharp = drawn()
    return {
        "y_true": np.array(NAMES)[label],
        "y_prob": {"honest": truth, "over-confident": sharp},
        "classes": NAMES,
    }


@pytest.fixture(scope="module")
def report(rows):
    return caldist.report(**rows, n_resamples=99, rng=0)


@pytest.mark.slow
def test_numbers_are_those_of_the_functions(report, rows):
    y_true = rows["y_true"]
    assert report.models == ()
    for model in report.class_models:
        data = (y_true, rows["y_prob"][model.name])
        options = {"classes": NAMES}
        value = multiclass.classwise_distance(*data, **options)
        assert model.value == pytest.approx(value, abs=1e-12)
        sample = multiclass.distance_bracket(*data, **options)
        assert (model.lower, model.upper) == (sample.lower, sample.upper)
        population = multiclass.confidence_interval(*data, **options, measure="distance")
        found = (model.population_lower, model.population_upper)
        assert found == (population.lower, population.upper)
        interval = multiclass.confidence_interval(*data, **options)
        [distance, twin, top] = model.measures
        assert (distance.lower, distance.upper) == (interval.lower, interval.upper)
        test = multiclass.calibration_test(*data, **options, n_resamples=99, rng=0)
        assert model.pvalue == test.pvalue
        assert [(part.name, part.pvalue) for part in model.tests] == [
            (part.measure, part.pvalue) for part in test.components
        ]
        table = multiclass.classwise_table(*data, **options, confidence_level=1 - 0.05 / 3)
        assert model.noise == table.noise
        lines = {line.name: line for line in table.lines}
        for line in model.classes:
            for key in ("share", "lower", "noise", "smooth_ce", "frequency", "mean_residual"):
                assert getattr(line, key) == getattr(lines[line.name], key)
        assert twin.value == pytest.approx(sum(line.smooth_ce for line in lines.values()) / 2)
        number = [NAMES.index(name) for name in y_true]
        correct, confidence = caldist.multiclass.top_label(number, data[1])
        limits = caldist.confidence_interval(
            correct, confidence, measure="smooth_ce", n_resamples=99, rng=0
        )
        assert (top.value, top.lower, top.upper) == (limits.value, limits.lower, limits.upper)
        assert (model.accuracy, model.mean_confidence) == pytest.approx(
            (correct.mean(), confidence.mean())
        )
    [pair] = report.pairs
    compared = multiclass.compare(
        y_true, *rows["y_prob"].values(), classes=NAMES, n_resamples=99, rng=0
    )
    assert (pair.difference, pair.lower, pair.upper, pair.pvalue) == (
        compared.difference, compared.lower, compared.upper, compared.pvalue,
    )  # fmt: skip
    assert report.data.n_classes == 3


def test_pairs_of_three_models_hold_together(rows):
    models = {name: matrix[:50] for name, matrix in rows["y_prob"].items()}
    models["flat"] = np.full((50, 3), 1 / 3)
    label = rows["y_true"][:50]
    pairs = caldist.report(label, models, classes=NAMES, n_resamples=199, rng=0).pairs
    assert len(pairs) == 3
    one = multiclass.compare(
        label, models["honest"], models["flat"], classes=NAMES,
        confidence_level=1 - 0.05 / 3, n_resamples=199, rng=0,
    )  # fmt: skip
    assert (pairs[1].lower, pairs[1].upper) == (one.lower, one.upper)
    assert pairs[1].pvalue == pytest.approx(min(1, 3 * one.pvalue))


def test_the_worst_classes_come_first(report):
    for model in report.class_models:
        order = [(-line.lower, -line.share) for line in model.classes]
        assert order == sorted(order)


def test_the_words_have_the_numbers(report):
    text = str(report)
    page = " ".join(Page(report.to_html()).text.split())
    for model in report.class_models:
        words = model.verdict
        assert f"{model.value:.4f}; calibrated predictions would show about" in words
        assert f"{model.noise:.4f}" in words
        assert words in text
        assert words in page
        for line in model.classes:
            for shown in (text, page):
                assert f"{line.share:.4f}" in shown
                assert down(line.lower, 4) in shown
        ends = f"{down(model.population_lower)} to {up(model.population_upper)}"
        for shown in (text, page):
            assert ends in shown
    for shown in (text, page):
        assert CONFIDENCE in shown
        assert "bounds nothing" in shown


def test_figures_show_the_results_of_the_text(report):
    kinds = Counter(figure.display for figure in report.figures)
    assert kinds == {
        DistanceDisplay: 1, ClasswiseDisplay: 2, TopLabelDisplay: 1, ClassReliabilityDisplay: 2,
    }  # fmt: skip
    content = json.loads(report.to_json())
    distances, *_ = report.figures
    bars = [figure for figure in report.figures if figure.display is ClasswiseDisplay]
    for model, interval, bar in zip(content["class_models"], distances.models, bars, strict=True):
        assert interval.confidence_level == report.confidence_level
        assert interval.lower == float(down(model["lower"]))
        assert interval.population_upper == float(up(model["population_upper"]))
        [shares] = bar.models
        assert shares.value == pytest.approx(model["value"])
        assert shares.confidence_level == report.confidence_level
        order = shares.worst_first()
        assert [shares.classes[at] for at in order] == [line["name"] for line in model["classes"]]
        for key in ("share", "noise", "lower"):
            assert getattr(shares, key)[order].tolist() == [line[key] for line in model["classes"]]
    assert all(figure.alt and figure.caption for figure in report.figures)


def test_json_round_trips_and_follows_its_schema(report, tmp_path):
    schema = json.loads(files("caldist.reporting").joinpath("report.schema.json").read_text())
    content = json.loads(report.to_json(tmp_path / "report.json"))
    jsonschema.validate(content, schema)
    assert caldist.reporting.Report.from_json(tmp_path / "report.json") == report
    content["class_models"] = []
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))])
def test_copies_say_the_same(report, again):
    copied = again(report)
    assert copied == report
    assert str(copied) == str(report)


def test_a_frame_has_a_line_for_each_measure(report):
    frame = report.to_frame("pandas")
    assert frame["measure"].tolist() == 2 * [
        "classwise_distance",
        "classwise_smooth_ce",
        "top_label",
    ]


def test_two_classes_are_the_binary_numbers():
    label, truth, sharp = drawn(200, 2)
    found = caldist.report(label, sharp, n_resamples=99, rng=0)
    [model] = found.class_models
    binary = caldist.report(label, sharp[:, 1], n_resamples=99, rng=0).models[0]
    assert model.value == caldist.lower_distance(label, sharp[:, 1])
    assert (model.population_lower, model.population_upper) == (
        binary.population_lower, binary.population_upper,
    )  # fmt: skip
    assert model.lower == binary.lower
    for line in model.classes:
        assert line.smooth_ce == pytest.approx(caldist.smooth_ce(label, sharp[:, 1]))
    assert model.classes[0].lower == pytest.approx(model.classes[1].lower)
    del truth


def test_weights_are_those_of_the_functions():
    label, _, sharp = drawn(80)
    weight = np.random.default_rng(3).integers(1, 4, 80)
    found = caldist.report(label, sharp, sample_weight=weight, n_resamples=39, confidence_level=0.9)
    [model] = found.class_models
    assert found.data.weighted
    value = multiclass.classwise_distance(label, sharp, sample_weight=weight)
    assert model.value == pytest.approx(value)
    test = multiclass.calibration_test(label, sharp, sample_weight=weight, n_resamples=39, rng=0)
    assert model.pvalue == test.pvalue
    best = sharp.argmax(axis=1) == label
    assert model.accuracy == pytest.approx(np.average(best, weights=weight))
    assert "The rows have weights." in found.to_html()


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("by", ["a"] * 120, "Report each sub-group by itself"),
        ("clusters", np.arange(120) // 2, "Keep one row of each cluster"),
        ("monitor", caldist.Monitor(), "monitor_report"),
    ],
)
def test_what_there_is_not_is_refused_with_what_to_pass(rows, name, value, instead):
    with pytest.raises(TypeError, match=f"{name} was given with several classes: .*{instead}"):
        caldist.report(**rows, **{name: value})


LABEL, TRUTH, SHARP = drawn(20)


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        ((TRUTH, LABEL), {}, ValueError, r"y_true has shape \(20, 3\).*\(20,\).*look swapped"),
        ((LABEL, TRUTH[:, 0]), {"classes": NAMES}, ValueError, "a matrix is needed"),
        ((LABEL, {"a": TRUTH, "b": TRUTH[:, 0]}), {}, ValueError, r"y_prob\['b'\] has shape"),
        ((LABEL, {"a": TRUTH, 3: TRUTH}), {}, TypeError, "the key 3, but the name of a model"),
        ((LABEL, {"a": TRUTH, "b": TRUTH + 0.1}), {}, ValueError, r"y_prob\['b'\]\[0\] sums to"),
        ((LABEL, {}), {"classes": NAMES}, ValueError, "no model"),
        ((LABEL, 3 * TRUTH), {}, ValueError, r"y_prob\[\d+, \d+\] is .*apply the softmax"),
        ((LABEL + 7, TRUTH), {}, ValueError, r"y_true\[0\] is .*pass classes="),
        ((LABEL, TRUTH), {"confidence_level": 95}, ValueError, "confidence_level is 95"),
        (
            (LABEL, {"a": TRUTH, "b": np.full((20, 4), 0.25)}),
            {},
            ValueError,
            "models of one report have the same classes",
        ),
    ],
)
def test_bad_input_is_named(data, options, error, message):
    with pytest.raises(error, match=message):
        caldist.report(*data, **options)


# -- seams -------------------------------------------------------------------------------------


def test_a_class_that_is_never_true_and_one_without_mass():
    label, truth, _ = drawn(60)
    matrix = np.column_stack((truth, np.zeros(60)))  # the last has neither
    matrix[:, :3] *= 0.9
    matrix = np.column_stack((matrix, np.full(60, 0.1)))  # the last is never true
    found = caldist.report(label, matrix, classes=None, n_resamples=39, confidence_level=0.9)
    [model] = found.class_models
    lines = {line.name: line for line in model.classes}
    assert lines["3"].share == lines["3"].noise == 0
    assert lines["4"].share == pytest.approx(0.05)  # all of it is error
    assert any("Classes 4, 3 are true for no row" in note for note in found.data.notes)
    assert len(found.to_html().encode()) < 1_000_000


@pytest.mark.slow
def test_ties_and_very_few_rows_are_noted_and_not_warned_of():
    matrix = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    found = caldist.report([0, 2, 2], matrix, n_resamples=39, confidence_level=0.9)
    assert any("only 1 of 3 rows have another class" in note for note in found.data.notes)
    found.to_html()
    one = caldist.report([1], [[0.0, 1.0, 0.0]], n_resamples=19, confidence_level=0.9)
    assert one.class_models[0].value == pytest.approx(0, abs=1e-6)
    one.to_html()


def test_certain_predictions_that_fail_are_noted():
    label, truth, _ = drawn(40)
    matrix = np.eye(3)[truth.argmax(axis=1)]
    found = caldist.report(label, matrix, n_resamples=39, confidence_level=0.9)
    wrong = int((truth.argmax(axis=1) != label).sum())
    note = f"model gives probability 0 to the true class of {wrong} rows."
    assert note in found.data.notes


@pytest.mark.slow
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_are_the_classes(rows, frame):
    matrix = rows["y_prob"]["honest"][:60]
    table = frame(dict(zip(NAMES, matrix.T, strict=True)))
    options = {"n_resamples": 39, "confidence_level": 0.9}
    found = caldist.report(rows["y_true"][:60], table, **options)
    plain = caldist.report(rows["y_true"][:60], matrix, classes=NAMES, **options)
    assert found == plain
    numbers = [NAMES.index(name) for name in rows["y_true"][:60]]
    by_place = caldist.report(numbers, table, **options)
    assert {line.name for line in by_place.class_models[0].classes} == {"0", "1", "2"}


def test_the_same_seed_gives_the_same_report():
    label, _, sharp = drawn(40)
    first, second = (
        caldist.report(label, sharp, n_resamples=39, confidence_level=0.9, rng=7) for _ in range(2)
    )
    assert first == second


def test_rows_are_read_once_for_each_model(monkeypatch):
    label, truth, sharp = drawn(60)
    counts = Counter()
    for name in ("probability_matrix", "class_numbers"):
        function = getattr(class_rows, name)

        def counting(*args, _name=name, _function=function, **options):
            counts[_name] += 1
            return _function(*args, **options)

        monkeypatch.setattr(class_rows, name, counting)
    caldist.report(label, {"a": truth, "b": sharp}, n_resamples=99)
    assert counts == {"probability_matrix": 2, "class_numbers": 2}


def test_very_many_probabilities_have_less_made_of_them(rows, monkeypatch):
    monkeypatch.setattr(classes, "_BRACKET", 100)
    monkeypatch.setattr(classes, "_DRAWS", 100)
    monkeypatch.setattr(classes, "_LEAST_DRAWS", 19)
    found = caldist.report(rows["y_true"], rows["y_prob"]["honest"], classes=NAMES, n_resamples=99)
    [model] = found.class_models
    assert (model.upper, model.test_resamples) == (None, 19)
    assert model.lower == model.value
    assert any("no upper end of the distance" in note for note in found.data.notes)
    assert any("from 19 draws instead of 99" in note for note in found.data.notes)
    assert "at least" in found.to_html()


def test_too_many_pairs_are_left_out_and_said(rows, monkeypatch):
    monkeypatch.setattr(classes, "_MOST_RESAMPLES", 50)
    found = caldist.report(**rows, n_resamples=59)
    assert found.pairs == ()
    assert any("1 pairs of models are not compared" in note for note in found.data.notes)


# -- a joint for each class --------------------------------------------------------------------


def joints_of(label, matrix, bits=None):
    found = [Joint.from_arrays(*pair) for pair in caldist.multiclass.one_vs_rest(label, matrix)]
    return found if bits is None else [joint.coarsen(bits) for joint in found]


@pytest.mark.slow
def test_joints_say_what_their_rows_say_of_the_classes():
    label, _, sharp = drawn(300)
    joints = joints_of(label, sharp)
    found = caldist.report(joints, classes=NAMES)
    [model] = found.class_models
    table = multiclass.classwise_table(label, sharp, confidence_level=1 - 0.05 / 3)
    assert (model.value, model.noise) == pytest.approx((table.value, table.noise))
    assert model.population_lower == pytest.approx(sum(line.lower for line in table.lines))
    assert model.lower == pytest.approx(model.value, abs=1e-5)
    assert (model.upper, model.population_upper, model.pvalue, model.accuracy) == (None,) * 4
    assert {line.name for line in model.classes} == set(NAMES)
    [note] = [note for note in found.data.notes if "is a summary of each class" in note]
    assert "no test" in note
    assert "pass labels and a matrix" in note
    kinds = {figure.display for figure in found.figures}
    assert kinds == {ClasswiseDisplay, ClassReliabilityDisplay}
    schema = json.loads(files("caldist.reporting").joinpath("report.schema.json").read_text())
    jsonschema.validate(json.loads(found.to_json()), schema)
    found.to_html(), str(found)
    keyed = dict(zip(NAMES, joints, strict=True))
    assert caldist.report(keyed, classes=NAMES) == found
    assert caldist.report({"model": keyed}) == found
    several = caldist.report({"a": joints, "b": joints})
    assert [model.name for model in several.class_models] == ["a", "b"]
    assert any("are not compared" in note for note in several.data.notes)


def test_rounded_joints_keep_their_promises():
    label, _, sharp = drawn(300)
    exact = multiclass.classwise_distance(label, sharp)
    [model] = caldist.report(joints_of(label, sharp, bits=4)).class_models
    assert model.lower <= exact + 1e-5
    assert any(
        "rounded to cells" in note for note in caldist.report(joints_of(label, sharp, 4)).data.notes
    )


def test_a_dict_of_joints_that_looks_like_classes_is_said_to():
    label, _, sharp = drawn(60)
    keyed = dict(zip(NAMES, joints_of(label, sharp), strict=True))
    found = caldist.report(keyed, n_resamples=99)
    assert len(found.models) == 3
    assert any("pass classes=" in note for note in found.data.notes)
    with pytest.raises(ValueError, match="these must be the same"):
        caldist.report(keyed, classes=["cat", "dog"])
    with pytest.raises(TypeError, match=r"y_true\['b'\] is of type list"):
        caldist.report({"a": list(keyed.values()), "b": [1]})
    with pytest.raises(TypeError, match="the key 1, but a name must be a string"):
        caldist.report({1: list(keyed.values())})


# -- words -------------------------------------------------------------------------------------


def line(name="a", share=0.02, lower=0.01, residual=0.0):
    return ClassReport(name, share, lower, 0.001, 0.03, 0.3, 0.3, residual)


def test_verdicts_in_words():
    words = class_verdict(0.05, 0.01, (0.0, 0.2), 0.4, (), [line(lower=0.0)], 0.95)
    assert words == (
        "On these rows the classwise distance to calibration is 0.0500; calibrated predictions "
        "would show about 0.0100. With 95% confidence nothing shows that probability mass has to "
        "move in the population, and at most 0.200 has to. The data are compatible with perfect "
        "calibration (p = 0.400)."
    )
    found = [line(name, residual=0.03 if name == "b" else -0.03) for name in "abcde"]
    words = class_verdict(0.05, 0.01, (0.02, 0.2), 0.001, (), found, 0.9)
    assert "With 90% confidence at least 0.0200 and at most 0.200 of each row's" in words
    assert words.endswith(
        "Beyond chance are classes a (0.0200, at least 0.0100 in the population, predicted too "
        "often), b (0.0200, at least 0.0100 in the population, predicted too rarely) and c "
        "(0.0200, at least 0.0100 in the population, predicted too often); 2 more stand out."
    )
    assert "Beyond chance is class a (" in class_verdict(
        0.05, 0.01, (0.02, 0.2), 0.3, (), [line()], 0.9
    )


def test_errors_that_cancel_in_every_class_are_said_to():
    tests = [
        ClassTestReport("classwise_smooth_ce", "", 0.6),
        ClassTestReport("kernel_ce", "", 0.01),
    ]
    words = class_verdict(0.01, 0.01, (0.0, 0.2), 0.02, tests, [line(lower=0.0)], 0.95)
    assert words.endswith(
        "the errors may cancel in every class, as a rotation of the probabilities does."
    )
    words = class_verdict(0.01, 0.01, (0.0, 0.2), 0.02, tests[:1], [line(lower=0.0)], 0.95)
    assert words.endswith("The data do not show which classes err.")


# -- pages -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile_report(rows):
    names = [HOSTILE, "dog", "x" * 300]
    label = [names[NAMES.index(name)] for name in rows["y_true"][:60]]
    matrix = rows["y_prob"]["over-confident"][:60]
    return caldist.report(
        label, {HOSTILE: matrix[:, ::-1]}, classes=names, n_resamples=39, confidence_level=0.9
    )


@pytest.mark.slow
def test_names_from_the_data_are_escaped(hostile_report):
    page = Page(hostile_report.to_html())
    assert "script" not in page.tags
    assert "<script>alert('x')</script>" in page.text
    assert "\x1b" not in str(hostile_report)
    assert json.loads(hostile_report.to_json())["class_models"][0]["name"] == HOSTILE
    assert readable("x" * 300) == "x" * 39 + "…"
    for figure in hostile_report.figures:
        assert "<script>" not in figure.svg()


def test_many_classes_stay_small_and_readable(report):
    model = report.class_models[0]
    many = tuple(replace(model.classes[0], name=f"c{at}", share=1e-4) for at in range(1000))
    crowded = replace(report, class_models=(replace(model, classes=many),))
    page = crowded.to_html()
    assert len(page.encode()) < 1_000_000
    assert page.count("<details>") == 1
    assert "490 more classes; the other 500 have 0.0500 in all" in page
    assert ">c499<" in page
    assert ">c500<" not in page
    text = str(crowded)
    assert text.count("\n") < 40
    assert "the other 990 have 0.0990 in all" in text
    assert len(json.loads(crowded.to_json())["class_models"][0]["classes"]) == 1000


def test_the_page_is_one_small_file_with_every_figure_described(report):
    text = report.to_html()
    assert len(text.encode()) < 700_000
    page = Page(text)
    assert {"script", "iframe", "object", "embed"}.isdisjoint(page.tags)
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert len(page.images) == len(report.figures)
    assert all(image["alt"] for image in page.images)


def test_a_report_read_back_has_its_page_without_figures(report):
    again = caldist.reporting.Report.from_json(report.to_json())
    page = Page(again.to_html())
    assert page.images == []
    assert again.class_models[0].verdict in page.text


@pytest.mark.slow
def test_contents_and_overview_lead_to_every_section_and_model(report):
    page = report.to_html()
    anchors = re.findall(r'<li><a href="#([\w-]+)">', page)
    assert anchors == re.findall(r'<h2 id="([\w-]+)">', page)
    assert anchors[0] == "overview"
    assert {"verdict", "figures", "classes", "compared", "measures"} <= set(anchors)
    before, cards = page.split('<h2 id="verdict">')
    overview = Page(before).text
    for at, model in enumerate(report.class_models, 1):
        assert f'<a href="#model-{at}">{model.name}</a>' in before
        assert f'id="model-{at}" aria-label="{model.name}"' in cards
        ends = f"{down(model.population_lower)} to {up(model.population_upper)}"
        assert ends in overview
    alone = replace(report, class_models=report.class_models[:1], pairs=(), figures=()).to_html()
    assert 'id="overview"' not in alone
    anchors = re.findall(r'<li><a href="#([\w-]+)">', alone)
    assert anchors == re.findall(r'<h2 id="([\w-]+)">', alone)


def test_the_overview_says_what_is_not_known(report):
    unknown = {"population_lower": None, "population_upper": None, "noise": None, "pvalue": None}
    models = tuple(replace(model, **unknown) for model in report.class_models)
    page = replace(report, class_models=models, figures=()).to_html()
    assert page.split('id="verdict"')[0].count("—") == 3 * len(models)
    models = tuple(replace(model, population_upper=None) for model in report.class_models)
    page = replace(report, class_models=models, figures=()).to_html()
    assert "at least" in Page(page.split('id="verdict"')[0]).text


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1200, "light")])
def test_in_a_browser(browser, report, tmp_path, width, scheme):
    model = report.class_models[1]
    many = tuple(replace(model.classes[0], name=f"class {at}") for at in range(30))
    crowded = replace(report, class_models=(report.class_models[0], replace(model, classes=many)))
    page = crowded.to_html().replace("</body>", PROBE + "</body>")
    page = page.replace("<details>", "<details open>")
    if scheme == "dark":  # headless Chromium follows no desktop's preference
        page = page.replace("(prefers-color-scheme: dark)", "all")
    frame = f'<iframe srcdoc="{escape(page)}" style="width:{width}px;border:0"></iframe>'
    outside = f"<!DOCTYPE html><title>frame</title><body>{frame}</body>"
    done = browse(outside, tmp_path, 1300, "--dump-dom")
    assert "CONSOLE" not in done.stderr
    [found] = re.findall(r'<pre id="probe">(.*?)</pre>', done.stdout)
    probe = json.loads(found)
    assert len(probe["images"]) == len(report.figures)
    assert min(probe["images"]) > 100
    assert probe["width"] == width
    assert max(probe["overflow"], probe["beyond"]) <= 0
    assert probe["contrast"] >= 4.5
    assert probe["tip"] == "block"


@pytest.mark.slow
def test_hostile_names_run_nothing_in_a_browser(browser, hostile_report, tmp_path):
    done = browse(hostile_report.to_html(), tmp_path, 1000, "--dump-dom")
    assert "CONSOLE" not in done.stderr
    assert "alert('x')" in done.stdout
    assert "<script" not in done.stdout


def test_every_format_says_that_rows_are_taken_as_independent(report):
    words = "Rows are taken as independent: reports of several classes take no clusters."
    for text in (str(report), report.to_html(), report.to_json()):
        assert words in text


def test_binary_reports_do_not_speak_of_classes(rows):
    found = caldist.report(
        rows["y_true"] == "cat",
        rows["y_prob"]["honest"][:, 0],
        n_resamples=99,
    )
    assert found.class_models == ()
    assert found.data.n_classes is None
    assert build.report is caldist.report
