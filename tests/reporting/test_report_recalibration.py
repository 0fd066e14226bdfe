"""What a report says of recalibration, in every format."""

import json
import re
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import caldist
from caldist.plots import MapDisplay

TITLE = "What recalibration would do"
QUICK = {"n_resamples": 99, "rng": 0}


def rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.random(n)
    return (rng.random(n) < u).astype(int), u**2.5 / (u**2.5 + (1 - u) ** 2.5)


@pytest.fixture(scope="module")
def report():
    y, p = rows()
    return caldist.report(y, {"over-confident": p, "square": p**2}, **QUICK)


def valid(report):
    schema = json.loads(files("caldist.reporting").joinpath("report.schema.json").read_text())
    jsonschema.validate(json.loads(report.to_json()), schema)
    return caldist.reporting.Report.from_json(report.to_json()) == report


@pytest.mark.slow
def test_it_is_what_recalibration_finds(report):
    y, p = rows()
    for model, score in zip(report.models, (p, p**2), strict=True):
        expected = caldist.recalibrate(y, score, **QUICK)
        found = model.recalibration
        assert (found.family, found.reason, found.n_resamples) == (expected.family, "", 99)
        assert caldist.recalibration.CalibrationMap(found.x, found.y) == expected.map
        assert found.words == " ".join(str(expected).split("\n"))
        for bounds in found.bounds:
            before, after = expected.before[bounds.name], expected.after[bounds.name]
            assert (bounds.before_lower, bounds.before_upper) == (before.lower, before.upper)
            assert (bounds.after_lower, bounds.after_upper) == (after.lower, after.upper)
        assert [item.symbol for item in found.bounds] == ["smCE", "ldCE", "dCE"]
        for loss in found.losses:
            assert loss.change == expected.loss[loss.name].change
            assert loss.lower < loss.change < loss.upper
    assert valid(report)


@pytest.mark.slow
def test_every_format_has_the_section(report):
    words = report.models[0].recalibration.words
    assert TITLE in str(report)
    assert re.search(r"over-confident +\w+ +at least 0\.\d+ +at most 0\.\d+ +[+-]", str(report))
    page = report.to_html()
    assert f'<h2 id="recalibration">{TITLE}</h2>' in page
    assert words.replace("->", "-&gt;") in page
    assert page.count('<section class="card recalibration"') == 2
    assert (
        page.count("What recalibration would do to over-confident") == 2
    )  # in place of it, and below
    again = caldist.reporting.Report.from_json(report.to_json()).to_html()
    assert f'<h2 id="recalibration">{TITLE}</h2>' in again
    assert "What recalibration would do to" not in again


def test_its_figure_shows_what_is_said(report):
    maps = [figure for figure in report.figures if figure.display is MapDisplay]
    assert [figure.recalibration_of for figure in maps] == ["over-confident", "square"]
    for figure, model in zip(maps, report.models, strict=True):
        [curve] = figure.models
        assert curve.x.tolist() == list(model.recalibration.x)
        assert curve.upper_after == model.recalibration.bounds[0].after_upper
        assert curve.lower_before == model.recalibration.bounds[0].before_lower
        assert "frequency of label 1 after" in figure.svg()


@pytest.mark.slow
def test_level_clusters_and_weights_are_the_reports():
    y, p = rows(400)
    rng = np.random.default_rng(1)
    options = {"clusters": rng.integers(0, 50, 400), "sample_weight": rng.integers(1, 4, 400)}
    [model] = caldist.report(y, p, **options, confidence_level=0.9, **QUICK).models
    expected = caldist.recalibrate(y, p, **options, confidence_level=0.9, **QUICK)
    assert model.recalibration.bounds[0].after_upper == expected.after["smooth_ce"].upper
    [plain] = caldist.report(y, p, confidence_level=0.9, **QUICK).models
    assert plain.recalibration.bounds[0].after_upper != expected.after["smooth_ce"].upper


@pytest.mark.slow
@pytest.mark.parametrize(("level", "draws"), [(0.95, 199), (0.9, 99)])
def test_few_draws_are_enough_and_every_format_says_how_many(level, draws):
    y, p = rows(300)
    clusters = np.arange(300) // 2
    options = {"n_resamples": 299, "confidence_level": level, "clusters": clusters}
    found = caldist.report(y, p, **options, rng=0)
    [model] = found.models
    expected = caldist.recalibrate(y, p, **options | {"n_resamples": draws}, rng=0)
    assert model.recalibration.n_resamples == expected.n_resamples == draws
    assert model.recalibration.bounds[0].after_upper == expected.after["smooth_ce"].upper
    [figure] = [figure for figure in found.figures if figure.display is MapDisplay]
    [curve] = figure.models
    assert (curve.confidence_level, curve.upper_after) == (
        level,
        expected.after["smooth_ce"].upper,
    )
    assert json.loads(found.to_json())["models"][0]["recalibration"]["n_resamples"] == draws
    assert f"With {level:.0%} confidence" in model.recalibration.words
    for text in (str(found), found.to_html()):
        assert f"The limits after recalibration come from {draws} resamples." in text


@pytest.mark.slow
def test_nothing_is_said_of_draws_where_there_are_none():
    found = caldist.report(np.arange(30) % 15 == 0, np.linspace(0.1, 0.9, 30), **QUICK)
    assert "limits after recalibration" not in str(found) + found.to_html()


@pytest.mark.slow
def test_a_summary_is_recalibrated_too():
    y, p = rows(2000)
    exact = caldist.report(caldist.Joint.from_arrays(y, p), **QUICK)
    assert exact.models[0].recalibration.bounds
    accumulator = caldist.Accumulator(bits=8)
    accumulator.update(y, p)
    coarse = caldist.report(accumulator.joint, **QUICK)
    [bounds] = [item for item in coarse.models[0].recalibration.bounds if item.name == "smooth_ce"]
    expected = caldist.recalibrate(accumulator.joint, **QUICK)
    assert bounds.after_upper == expected.after["smooth_ce"].upper
    assert bounds.after_upper > exact.models[0].recalibration.bounds[0].after_upper
    assert valid(coarse)


@pytest.mark.slow
def test_few_events_have_a_reason_in_place_of_a_statement():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 200, 3000)
    y = np.zeros(3000, int)
    y[:7] = 1
    found = caldist.report(y, p, **QUICK)
    [model] = found.models
    reason = "only 7 of 3000 rows have label 1"
    assert model.recalibration.reason.startswith(reason)
    assert model.recalibration.bounds == model.recalibration.losses == ()
    assert f"No statement is made: {reason}" in str(found)
    assert f"No statement is made: {reason}" in found.to_html()
    assert valid(found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:only .* rows have:UserWarning")
def test_maps_that_are_constant_and_losses_that_are_infinite():
    y, p = rows(400)
    found = caldist.report(1 - y, p, **QUICK)
    assert "The map is constant: larger predictions do not have more labels 1" in str(
        found.models[0].recalibration.words
    )
    certain = caldist.report(y, (p > 0.5).astype(float), **QUICK)
    log_loss = certain.models[0].recalibration.losses[1]
    assert (log_loss.name, log_loss.before, log_loss.change) == ("log_loss", None, None)
    assert log_loss.after > 0
    assert valid(certain)
    assert ">—</td>" in certain.to_html()
    alone = caldist.report(np.ones(50, int), np.linspace(0.1, 0.9, 50), **QUICK)
    assert "have label 0" in alone.models[0].recalibration.reason
