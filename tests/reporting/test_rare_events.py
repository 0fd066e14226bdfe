"""Rare events read right: digits, factors, words for under-predicted risk, axes that fit them."""

import math
from math import ceil, floor

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")  # before pyplot is imported

import matplotlib.pyplot as plt

import caldist
from caldist._util.numbers import chance, number, probability, rate
from caldist.clinical.rates import Rates, rates_of
from caldist.data.rows import Rows
from caldist.inference.intervals import Interval
from caldist.inference.regions import Region
from caldist.plots import (
    BinnedDisplay,
    DecisionCurveDisplay,
    MapDisplay,
    ReliabilityDisplay,
    WitnessDisplay,
    inputs,
)
from caldist.plots.inputs import Cells
from caldist.plots.scale import Scale, scale_of, seen, together
from caldist.reporting.figures import fitting_scale
from caldist.reporting.verdict import verdict
from command_lines import run

SCALED = (
    BinnedDisplay, DecisionCurveDisplay, MapDisplay, ReliabilityDisplay, WitnessDisplay,
)  # fmt: skip


@pytest.fixture(scope="module")
def rare():
    """Risks of about 1 in 700, twice as frequent as predicted."""
    rng = np.random.default_rng(1)
    risk = 1 / (1 + np.exp(-rng.normal(-7, 1, 12_000)))
    return (rng.random(risk.size) < 2 * risk).astype(int), risk


@pytest.fixture(scope="module")
def report(rare):
    return caldist.report(*rare, n_resamples=99)


@pytest.fixture(autouse=True)
def _no_figure_left():
    yield
    plt.close("all")


# -- digits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [5.49e-4, 1.16e-5, 3.3e-7, 0.0123, 0.987])
def test_every_number_has_three_digits(value):
    assert float(number(value)) == pytest.approx(value, rel=0.005)
    assert float(rate(value).rstrip("%")) == pytest.approx(100 * value, rel=0.005)


def test_rates_keep_their_digits_next_to_one():
    assert rate(1 - 5.49e-4) == "99.9451%"
    assert rate(0.0) == "0%"
    assert rate(1.0) == "100%"


@pytest.mark.slow
def test_no_place_that_prints_a_small_number_loses_it(rare, report):
    """Each text has the digits of 0.00055, not a power of ten nor three decimals."""
    y, p = rare
    half = y.size // 2
    groups = caldist.evaluate_groups(
        y, p, by=np.repeat(["a", "b"], half), measures=["smooth_ce"], n_resamples=39, rng=0
    )
    compared = caldist.inference.compare_all(y, {"a": p, "b": p / 2}, n_resamples=99, rng=0)
    value = caldist.smooth_ce(y, p)
    assert number(value).startswith("0.00")
    assert len(number(value)) == 7
    assert number(groups["a"].intervals["smooth_ce"].value) in str(groups)
    assert number(compared.values["a"]) in str(compared)
    for text in (str(report), report.to_html()):
        assert number(value) in text
        assert rate(float(p.mean())) in text
        assert rate(float(y.mean())) in text


def test_the_command_line_keeps_digits(tmp_path):
    path = tmp_path / "rows.csv"
    y, p = np.array([0, 0, 0, 0, 1] * 40), np.full(200, 0.2) + 1.2345e-7
    path.write_text("y,p\n" + "".join(f"{a},{b!r}\n" for a, b in zip(y, p.tolist(), strict=True)))
    done = run("measure", str(path), "--label", "y", "--score", "p", "--measure", "smooth_ce")
    assert "1.23e-07" in done.stdout


# -- p-values ------------------------------------------------------------------------------------


def test_a_least_pvalue_is_a_bound(rare):
    assert chance(0.001, 1 / 1000) == "p ≤ 0.001"
    assert chance(0.002, 1 / 1000) == "p = 0.002"
    assert chance(0.00103, 1 / 1000) == "p ≤ 0.0011"  # raised, as by rounding
    assert probability(1.0, 0.6) == "1.000"
    y, p = rare
    tested = caldist.calibration_test(y, p, n_resamples=99, rng=0)
    assert tested.pvalue == 0.01
    assert str(tested).startswith("p ≤ 0.01 for labels")
    compared = caldist.compare(y[:4000], p[:4000] * 9, p[:4000], n_resamples=299, rng=0)
    assert compared.pvalue == compared.least_pvalue == 0.01
    assert str(compared).endswith("p ≤ 0.01")
    assert caldist.compare(y, p, p / 4, measure="brier_score").least_pvalue == 0


def test_every_shown_pvalue_says_so(rare, report, tmp_path):
    assert report.models[0].pvalue == 0.01
    assert "(p ≤ 0.01)" in report.models[0].verdict
    for text in (str(report), report.to_html()):
        assert "≤ 0.01" in text
    y, p = rare
    path = tmp_path / "rows.csv"
    lines = zip(y.tolist(), (p / 3).tolist(), strict=True)
    path.write_text("y,p\n" + "".join(f"{a},{b!r}\n" for a, b in lines))
    command = ["test", str(path), "--label", "y", "--score", "p"]
    shown = run(*command)
    assert "≤ 0.01" in shown.stdout
    assert '"pvalue": 0.01' in run(*command, "--format", "json").stdout
    assert ",0.01\n" in run(*command, "--format", "csv").stdout


# -- the factor ----------------------------------------------------------------------------------


def ends(interval):
    return interval.value, interval.lower, interval.upper


def test_the_factor_is_observed_over_expected(rare):
    y, p = rare
    found = rates_of(Rows.of(y, p), 0.95)
    summary = caldist.clinical.calibration_summary(y, p, n_resamples=39, rng=0)
    expected = summary.observed_over_expected
    assert ends(found.ratio) == pytest.approx(ends(expected), rel=1e-12)
    assert (found.predicted, found.observed) == pytest.approx((p.mean(), y.mean()), rel=1e-12)
    assert found.ratio.lower > 1
    assert str(found) == (
        f"predicts {rate(p.mean())} on average, observed {rate(y.mean())}: too low by a factor of "
        f"{found.ratio.value:.2f} ({floor(100 * found.ratio.lower) / 100:.2f} to "
        f"{ceil(100 * found.ratio.upper) / 100:.2f})"
    )
    assert str(summary).startswith(str(found))


def test_weights_clusters_and_joints_are_in_the_interval():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 50, 2000)
    y = (rng.random(2000) < p).astype(int)
    once = rates_of(Rows.of(y, p), 0.9)
    both = np.tile(y, 2), np.tile(p, 2)
    twice = rates_of(Rows.of(*both, clusters=np.tile(np.arange(2000), 2)), 0.9)
    assert ends(twice.ratio) == pytest.approx(ends(once.ratio), rel=1e-9)
    weight = rng.integers(1, 4, 2000).astype(float)
    weighted = rates_of(Rows.of(y, p, sample_weight=weight), 0.9)
    assert weighted.ratio.value == pytest.approx((weight @ y) / (weight @ p), rel=1e-12)
    joint = caldist.Joint.from_arrays(y, p)
    assert rates_of(Rows.of(joint), 0.9).ratio.lower == pytest.approx(once.ratio.lower, rel=1e-9)
    coarse = rates_of(Rows.of(joint.coarsen(12)), 0.9)
    assert coarse.ratio.lower < once.ratio.lower < once.ratio.upper < coarse.ratio.upper
    rough = rates_of(Rows.of(joint.coarsen(3)), 0.9)  # cells know the mean of their rows
    assert rough.ratio.lower < coarse.ratio.lower
    assert coarse.ratio.upper < rough.ratio.upper
    assert rough.ratio.value == pytest.approx(once.ratio.value, rel=1e-6)
    masses = (joint.prediction, joint.mass0, joint.mass1)
    rough = rates_of(Rows.of(caldist.Joint.from_masses(*masses, n_rows=2000, radius=0.1)), 0.9)
    assert ends(rough.ratio)[1:] == (-math.inf, math.inf)
    assert rough.to_dict()["ratio"]["lower"] is None
    assert "no interval: rounding" in str(rough)


@pytest.mark.parametrize(
    ("lower", "ratio", "upper", "words"),
    [
        (1.6, 2.1, 2.7, ": too low by a factor of 2.1 (1.6 to 2.7)"),
        (0.37, 1 / 2.1, 0.63, ": too high by a factor of 2.1 (1.5 to 2.8)"),  # 1.59 to 2.71
        (0.9, 1.02, 1.15, ", 1.02 times as much (0.90 to 1.15)"),
        (1.0011, 1.0023, 1.0035, ": too low by a factor of 1.0023 (1.0011 to 1.0035)"),
        (900.0, 1234.0, 1700.0, ": too low by a factor of 1,234 (900 to 1,700)"),
    ],
)
def test_factors_in_words(lower, ratio, upper, words):
    found = Rates(1, 0.00055, 0.00116, Interval(ratio, lower, upper, 0.95))
    assert str(found) == f"predicts 0.0550% on average, observed 0.116%{words}"


def test_the_rare_label_is_spoken_of(rare):
    y, p = rare
    one, zero = rates_of(Rows.of(y, p), 0.95), rates_of(Rows.of(1 - y, 1 - p), 0.95)
    assert (one.label, zero.label) == (1, 0)
    assert ends(zero.ratio) == pytest.approx(ends(one.ratio), rel=1e-6)
    assert str(zero).startswith("predicts label 0 with 0.1")


def test_labels_that_never_occur_have_no_factor():
    never = rates_of(Rows.of([0] * 20, [0.01] * 20), 0.95)
    assert never.ratio.value is None
    assert str(never) == "predicts 1.00% on average, observed 0%, label 1 is never observed"
    assert (
        rates_of(Rows.of([1] + [0] * 19, [0.0] * 20), 0.95).ratio.note
        == "label 1 is never predicted"
    )


# -- words ---------------------------------------------------------------------------------------


def test_under_predicted_risk_is_not_called_over_confident(report):
    [model] = report.models
    assert "confident" not in model.verdict
    assert f"It {model.rates}." in model.verdict
    assert "it predicts too low between" in model.verdict


@pytest.mark.parametrize(
    ("regions", "both_sides", "words"),
    [
        ([Region(0.001, 0.01, 0.002, 0.5)], False, "it predicts too low between 0.001 and 0.01"),
        ([Region(0.99, 0.999, 0.002, 0.5)], False, "it predicts too low between 0.99 and 0.999"),
        ([Region(0.6, 0.9, -0.1, 0.5)], True, "it is over-confident between 0.6 and 0.9"),
        (
            [Region(0.1, 0.3, 0.1, 0.2), Region(0.7, 0.9, 0.1, 0.2)],
            True,
            "it predicts too low between 0.1 and 0.3 (by 0.1 on average) and between 0.7",
        ),
        (
            [Region(0.1, 0.3, 0.1, 0.2), Region(0.7, 0.9, -0.1, 0.2)],
            True,
            "it is over-confident between 0.1 and 0.3",
        ),
    ],
)
def test_confidence_is_a_matter_of_both_sides(regions, both_sides, words):
    assert words in verdict(0.01, 0.04, 0.001, regions, 0.95, both_sides=both_sides)


@pytest.mark.parametrize(
    ("label", "limits", "gap", "confident"),
    [
        (1, (1.2, 1.5), 0.1, False),  # risk that is predicted too low, there and on average
        (1, (0.9, 1.2), 0.1, True),
        (1, (0.6, 0.8), 0.1, True),
        (1, (0.6, 0.8), -0.1, False),
        (0, (1.2, 1.5), -0.1, False),
        (0, (1.2, 1.5), 0.1, True),
        (1, (-math.inf, math.inf), 0.1, True),
    ],
)
def test_an_error_in_level_is_not_one_of_confidence(label, limits, gap, confident):
    note = "" if math.isfinite(limits[0]) else "rounding"
    rates = Rates(label, 0.2, 0.3, Interval(1.0, *limits, 0.95, note=note))
    words = verdict(0.01, 0.04, 0.001, [Region(0.1, 0.3, gap, 0.2)], 0.95, rates=rates)
    assert ("-confident between" in words) == confident
    assert ("it predicts too" in words) != confident


@pytest.mark.slow
@pytest.mark.parametrize("flip", [False, True])
def test_risks_on_one_side_of_one_half(flip):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.3, 3000)
    y = (rng.random(3000) < p + 0.1).astype(int)
    y, p = (1 - y, 1 - p) if flip else (y, p)
    [model] = caldist.report(y, p, n_resamples=99).models
    assert "confident" not in model.verdict
    assert f"predicts too {'high' if flip else 'low'} between" in model.verdict


def test_places_next_to_the_ends_are_told_apart():
    words = verdict(0.1, 0.2, 0.001, [Region(0.0001234, 0.00045, 0.1, 0.2)], 0.95)
    assert "between 0.000123 and 0.00045 (" in words
    words = verdict(0.1, 0.2, 0.001, [Region(0.99951, 0.99987, -0.1, 0.2)], 0.95)
    assert "between 0.99951 and 0.99987 (" in words


# -- axes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [Scale(), Scale("linear", 0, 0.02), Scale("logit", 1e-5, 0.2)])
def test_places_and_predictions_are_inverse(scale):
    place = np.linspace(0, 1, 11)
    np.testing.assert_allclose(scale.place(scale.prediction(place)), place, atol=1e-9)
    middle = place[1:-1]
    step = 1e-6
    change = scale.prediction(middle + step) - scale.prediction(middle - step)
    np.testing.assert_allclose(scale.slope(middle), 2 * step / change, rtol=1e-4)
    assert scale.place(np.array([0.0, 1.0])).tolist() == [0, 1]


def test_axes_fit_the_predictions():
    v, mass = np.linspace(0.001, 0.017, 50), np.ones(50)
    assert scale_of("linear", v, mass) == Scale("linear", 0.0, 0.02)
    high = scale_of("linear", 1 - v[::-1], mass)
    assert (high.lower, high.upper) == (0.98, 1)
    assert scale_of("linear", np.linspace(0.1, 0.9, 50), mass) == Scale()
    found = scale_of("logit", v, mass)
    assert (found.lower, found.upper) == pytest.approx((0.001, 0.02))
    outlier = np.append(np.linspace(0.001, 0.017, 9999), 0.9)
    assert scale_of("linear", outlier, np.ones(10_000)).upper == 0.02
    assert scale_of("logit", outlier, np.ones(10_000)).upper == pytest.approx(0.02)
    for at in (0.0, 1.0, 1e-12):
        one = scale_of("logit", np.array([at]), np.ones(1))
        assert 0 < one.lower < one.upper < 1


@pytest.mark.parametrize("share", [0.004, 0.06])
def test_a_long_tail_that_tells_nothing_does_not_stretch_the_logit_axis(share):
    rng = np.random.default_rng(0)
    odds = rng.normal(-4, 1, 20_000)
    odds[: int(share * odds.size)] = rng.normal(-16, 2, int(share * odds.size))
    p = np.sort(1 / (1 + np.exp(-odds)))
    found = scale_of("logit", p, np.ones(p.size))
    assert 1e-5 <= found.lower <= 1e-3  # and not 1e-8, as far as a thousandth of the rows
    turned = scale_of("logit", 1 - p[::-1], np.ones(p.size))
    assert (1 - turned.upper, 1 - turned.lower) == pytest.approx((found.lower, found.upper))
    y = (rng.random(p.size) < p).astype(int)
    shown = ReliabilityDisplay.from_predictions(y, p, scale="logit", confidence_level=None)
    [model] = shown.models
    place = Scale("logit", *shown.ax_.get_xlim()).place(model.prediction)
    assert np.nanmax(place) - np.nanmin(place) > 0.7  # of the axis, and not a sixth of it


def test_a_tail_of_many_rows_stays_on_the_logit_axis():
    p = np.concatenate((np.full(300, 1e-7), np.linspace(0.01, 0.1, 700)))
    assert scale_of("logit", p, np.ones(1000)).lower <= 1e-7


def test_axes_have_room_for_curves_beyond_the_predictions():
    assert seen("linear", 0.0, 0.01, [np.array([0.012, np.nan])]).upper == 0.02
    assert seen("linear", 0.0, 0.01, [np.array([0.9])]).upper == 0.02
    assert seen("linear", 0.99, 1.0, [np.array([0.985])]).lower == 0.98
    assert seen("logit", 1e-4, 1e-2, [np.array([0.0, 0.04])]).upper == pytest.approx(0.05)
    assert together([Scale("linear", 0, 0.1), Scale("linear", 0, 0.5)]).upper == 0.5
    with pytest.raises(ValueError, match="different scales"):
        together([Scale(), Scale("logit", 0.1, 0.5)])


def test_the_logit_curve_is_a_moving_window_in_log_odds(rare):
    y, p = rare
    y, p = y[:3000], p[:3000]
    [model] = ReliabilityDisplay.from_predictions(y, p, scale="logit").models
    scale = Scale("logit", model.smallest, model.largest)
    near = ~np.isnan(model.prediction)
    t, u = inputs.GRID[near], scale.place(p)
    images = np.concatenate([side * u[None] + 2 * k for k in range(-3, 4) for side in (1, -1)])
    weight = np.zeros((t.size, u.size))
    for image in images.reshape(-1, u.size):
        weight += np.exp(-0.5 * ((t[:, None] - image) / model.width) ** 2)
    weight /= weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.prediction[near], weight @ p, rtol=1e-6)
    np.testing.assert_allclose(model.frequency[near], weight @ y, rtol=1e-6, atol=1e-12)


def test_the_width_on_log_odds_is_the_deviation_seen_there(rare):
    cells = Cells.of(Rows.of(*rare), scale=Scale("logit", 1e-5, 0.02))
    width = cells.chance_width()
    assert 0.01 < width < 0.2
    assert cells.at.min() >= 0
    assert cells.at.max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("display", SCALED)
def test_every_display_of_predictions_has_both_scales(display, rare):
    y, p = (part[:4000] for part in rare)
    options = {"family": "shift"} if display is MapDisplay else {}
    for scale in ("linear", "logit"):
        shown = display.from_predictions(y, p, scale=scale, **options)
        shown.figure_.canvas.draw()
        assert shown.ax_.get_xscale() == ("linear" if scale == "linear" else "function")
        assert shown.ax_.get_xlim()[1] < 0.2
        assert shown.to_dict()["models"][0]["scale"] == scale
    with pytest.raises(ValueError, match="scale is 'log'"):
        display.from_predictions(y, p, scale="log", **options)


def test_axes_of_another_scale_are_refused(rare):
    y, p = (part[:2000] for part in rare)
    first = ReliabilityDisplay.from_predictions(y, p, scale="logit")
    with pytest.raises(ValueError, match="ax has another scale than 'linear'"):
        ReliabilityDisplay.from_predictions(y, p, ax=first.ax_)


@pytest.mark.slow
def test_figures_name_both_rates_and_the_factor(rare, report):
    y, p = rare
    found = rates_of(Rows.of(y, p), 0.95)
    shown = ReliabilityDisplay.from_predictions(y, p, scale="logit")
    texts = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert "\n".join(found.lines) in texts
    assert found.lines[0] == f"predicted {rate(p.mean())}, observed {rate(y.mean())}"
    assert found.lines[1].startswith("too low by a factor of ")
    figure = next(one for one in report.figures if one.display is ReliabilityDisplay)
    assert figure.models[0].scale == "logit"
    assert found.lines[0] in figure.alt
    assert "log odds" in figure.caption


def test_reports_choose_the_scale(rare):
    y, p = rare
    assert fitting_scale([Rows.of(y, p)]) == "logit"
    assert fitting_scale([Rows.of(1 - y, 1 - p)]) == "logit"
    assert fitting_scale([Rows.of([0, 1, 1], [0.2, 0.6, 0.8])]) == "linear"
    assert fitting_scale([Rows.of(y, p), Rows.of(y, np.linspace(0, 1, y.size))]) == "linear"


def test_default_thresholds_are_where_the_predictions_are(rare):
    y, p = rare
    even = DecisionCurveDisplay.from_predictions(y, p).models[0]
    assert even.threshold.size == 99
    assert even.threshold.max() < 0.1
    odds = DecisionCurveDisplay.from_predictions(y, p, scale="logit").models[0]
    assert odds.threshold.min() < 1e-4
    found = caldist.clinical.net_benefit(y, p, thresholds=odds.threshold)
    np.testing.assert_allclose(odds.model, found.model)
    whole = DecisionCurveDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.9]).models[0]
    np.testing.assert_allclose(whole.threshold, np.arange(1, 100) / 100)
