"""The displays: what they store against oracles, and that what they draw is legible and stays so.

``PYTHONPATH=src:tests/support python tests/plots/test_plots.py`` draws the stored pictures anew.
"""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")  # before pyplot is imported

import matplotlib.pyplot as plt
import pandas as pd
import polars as pl
from PIL import Image, ImageFilter
from scipy.stats import binom
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import caldist
import strategies
from caldist import inference
from caldist._util import frames as _frames
from caldist._util import optional as _optional
from caldist._util.numbers import least, most
from caldist.data.rows import Rows
from caldist.datasets import load_demo
from caldist.inference.regions import Region, miscalibrated_regions
from caldist.kernels.loader import COMPILED
from caldist.plots import (
    BinnedDisplay,
    DecisionCurveDisplay,
    DistanceDisplay,
    DistanceInterval,
    MapDisplay,
    MonitorCurve,
    MonitorDisplay,
    ReliabilityCurve,
    ReliabilityDisplay,
    WitnessCurve,
    WitnessDisplay,
    _histograms,
    _style,
    inputs,
    reliability,
    witness,
)
from caldist.plots.inputs import Cells
from caldist.plots.map import map_curve
from caldist.recalibration import CalibrationMap, evaluate_map

ROOT = Path(__file__).parents[2]
PICTURES = Path(__file__).parents[1] / "stored" / "plots"
DISPLAYS = (
    BinnedDisplay, DecisionCurveDisplay, DistanceDisplay, MapDisplay, ReliabilityDisplay,
    WitnessDisplay,
)  # fmt: skip
HOSTILE = (
    "_hidden", "$x^2$", "$", r"\$5", "a_b", "<b>&amp;</b>", "{}", "%s", "x" * 200, "two\nlines",
    "\x00\u202e", "", " ", r"$\frac{1}",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_figure_left():
    plt.close("all")
    yield
    plt.close("all")


def rows(n=80, seed=0, beta=2.0):
    rng = np.random.default_rng(seed)
    f = rng.random(n)
    return (rng.random(n) < f).astype(int), f**beta / (f**beta + (1 - f) ** beta)


def draw(display):
    display.figure_.canvas.draw()
    return display


def dense_kernel(v, t, width):
    """The reflected Gaussian as a sum over mirror images."""
    images = np.concatenate([side * v[None] + 2 * k for k in range(-9, 10) for side in (1, -1)])
    z = (t[:, None, None] - images[None]) / width
    return (np.exp(-(z**2) / 2) / (width * np.sqrt(2 * np.pi))).sum(axis=1)


# -- what is computed ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("family", strategies.FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_smooth_curve_is_a_moving_window(family, weighted):
    rng = np.random.default_rng(5)
    y, p = strategies.family(family, 60, rng)
    w = rng.exponential(size=60) if weighted else None
    [model] = ReliabilityDisplay.from_predictions(y, p, sample_weight=w).models
    near = ~np.isnan(model.prediction)
    weight = dense_kernel(p, inputs.GRID[near], model.width) * (1 if w is None else w)
    assert model.prediction[near] == pytest.approx(weight @ p / weight.sum(1), abs=1e-6)
    assert model.frequency[near] == pytest.approx(weight @ y / weight.sum(1), abs=1e-6)
    assert (np.diff(model.prediction[near]) >= -1e-9).all()
    apart = np.abs(inputs.GRID[:, None] - p[None]).min(axis=1)
    assert near.sum() >= 1
    assert (apart[near] <= 4 * model.width + 1e-12).all()


def test_the_distance_from_the_diagonal_is_the_smoothed_error():
    y, p = rows(200)
    [model] = ReliabilityDisplay.from_predictions(y, p).models
    t = np.linspace(0, 1, 2001)
    weight = dense_kernel(p, t, model.width)
    exact = np.abs((weight * (y - p)).mean(axis=1)).mean()
    gap = np.abs(model.frequency - model.prediction) * dense_kernel(
        p, inputs.GRID, model.width
    ).mean(1)
    assert np.trapezoid(gap, inputs.GRID) == pytest.approx(exact, rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("family", [name for name in strategies.FAMILIES if name != "clusters"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_isotonic_curve_against_scikit_learn(family, weighted):
    rng = np.random.default_rng(6)
    y, p = strategies.family(family, 60, rng)
    p = np.round(p, 9)  # scikit-learn takes predictions that are closer for equal
    w = rng.exponential(size=60) if weighted else None
    drawn = ReliabilityDisplay.from_predictions(y, p, sample_weight=w, confidence_level=None)
    x, value = drawn.models[0].isotonic_prediction, drawn.models[0].isotonic_frequency
    assert x.tolist() == np.unique(p).tolist()
    assert value == pytest.approx(IsotonicRegression().fit(p, y, w).predict(x), abs=1e-9)


def test_the_width_equals_the_deviation_by_chance():
    p = np.linspace(0.1, 0.9, 400)
    width = Cells.of(Rows.of(np.tile([0, 1], 200), p)).chance_width()
    weight = dense_kernel(p, np.linspace(0.1, 0.9, 101), width)
    weight /= weight.sum(axis=1, keepdims=True)
    deviation = np.sqrt(weight**2 @ (p * (1 - p))).mean()
    assert width == pytest.approx(deviation, rel=0.03)
    other = Cells.of(Rows.of(np.zeros(400, int), p))
    assert other.chance_width() == width  # labels have no part in it


def test_resampled_residuals_have_mean_and_variance_of_calibrated_ones():
    rng = np.random.default_rng(0)
    y, p = rows(300)
    w = rng.exponential(size=300)
    for weight in (None, w):
        cells = Cells.of(Rows.of(y, p, sample_weight=weight))
        share = np.ones(300) / 300 if weight is None else weight / weight.sum()
        total = cells.calibrated_residuals(4000, rng).sum(axis=1)
        deviation = np.sqrt((share**2) @ (p * (1 - p)))
        assert total.mean() == pytest.approx(0, abs=4 * deviation / np.sqrt(4000))
        assert total.std() == pytest.approx(deviation, rel=0.05)


def test_the_band_of_tied_predictions_is_binomial():
    y = np.arange(50) % 2
    [model] = ReliabilityDisplay.from_predictions(y, np.full(50, 0.3)).models
    near = ~np.isnan(model.frequency)
    low, high = binom.ppf([0.025, 0.975], 50, 0.3) / 50
    assert model.band_lower[near] == pytest.approx(low, abs=0.041)
    assert model.band_upper[near] == pytest.approx(high, abs=0.041)
    inside = binom.cdf(50 * model.band_upper[near], 50, 0.3) - binom.cdf(
        50 * model.band_lower[near] - 1, 50, 0.3
    )
    assert inside.min() > 0.93


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["uniform", "rare", "tied", "certain", "weighted", "rare, weighted", "clustered"]
)
def test_the_bands_hold_calibrated_curves_as_often_as_they_say(kind):
    smooth = 0
    trials = 40
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        p = rng.random(40)
        if kind == "rare":
            p = rng.beta(0.5, 8, 60)
        elif kind == "tied":
            p = np.round(p, 1)
        elif kind == "certain":
            p = rng.choice([0.0, 0.01, 0.5, 1.0], 60)
        elif kind == "rare, weighted":
            p = 1e-3 * np.exp(rng.normal(-0.5, 1, 300))
        w = 10 ** rng.uniform(0, 2, p.size) if "weighted" in kind else None
        clusters, chance = None, rng.random(p.size)
        if kind == "clustered":  # four rows each, which are decided together
            clusters = np.arange(160) // 4
            p = (p[clusters] + rng.uniform(-0.01, 0.01, 160)).clip(0, 1)
            chance = chance[clusters]
        y = (chance < p).astype(int)
        model = Rows.of(y, p, sample_weight=w, clusters=clusters)
        curve = reliability.reliability_curve("a", model, 0.8, rng)
        above = curve.frequency > curve.band_upper + 1e-9  # not a number is not above
        smooth += not (above | (curve.frequency < curve.band_lower - 1e-9)).any()
    assert smooth >= 25  # 80% of 40, less 2.8 standard deviations


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spread", "rare", "tied", "constant", "polarised"])
def test_many_rows_are_drawn_from_a_grid_as_they_are_from_themselves(kind, monkeypatch):
    """The grid is finer than what can be seen, on axes of every length; texts are the same."""
    rng = np.random.default_rng(5)
    p = rng.random(80_000)
    p = {
        "spread": p, "rare": 1e-4 * p**2, "tied": np.round(p, 2), "constant": np.full(p.size, 0.3),
        "polarised": rng.beta(0.05, 0.05, p.size),
    }[kind]  # fmt: skip
    y = rng.random(p.size) < p**1.1
    many = Rows.of(y, p)
    coarse = reliability.reliability_curve("a", many, 0.9, np.random.default_rng(0))
    assert "joint" not in vars(many)  # nothing was sorted
    monkeypatch.setattr(inputs, "_MANY", 10**9)
    exact = reliability.reliability_curve("a", Rows.of(y, p), 0.9, np.random.default_rng(0))
    assert (coarse.smallest, coarse.largest) == (exact.smallest, exact.largest)
    assert coarse.rates == exact.rates
    length = exact.largest - exact.smallest
    assert coarse.width == pytest.approx(exact.width, rel=0.03)
    apart = np.abs(coarse.deciles[:, None] - exact.deciles)  # those in one cell are one
    assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) <= 1e-4 * length
    for name in ("prediction", "frequency", "band_lower", "band_upper"):
        found, wanted = getattr(coarse, name) / length, getattr(exact, name) / length
        off = {"frequency": 2e-3, "band_lower": 0.02, "band_upper": 0.02}.get(name, 1e-4)
        np.testing.assert_allclose(found, wanted, atol=off)
    at = np.linspace(exact.smallest, exact.largest, 50)
    fits = [np.interp(at, c.isotonic_prediction, c.isotonic_frequency) for c in (coarse, exact)]
    assert np.mean(np.abs(fits[0] - fits[1])) <= 0.002 * length
    for mass in ("mass0", "mass1"):
        assert np.abs(getattr(coarse, mass) - getattr(exact, mass)).sum() <= 0.01


def test_the_witness_is_that_of_the_certificate():
    y, p = rows(150)
    w = np.random.default_rng(1).exponential(size=150)
    [model] = WitnessDisplay.from_predictions(y, p, sample_weight=w, rng=3).models
    proof = caldist.certify(y, p, measure="smooth_ce", sample_weight=w)
    assert model.value == proof.value == caldist.smooth_ce(y, p, sample_weight=w)
    at = np.searchsorted(model.prediction, p)
    assert (w / w.sum()) @ ((y - p) * model.height[at]) == pytest.approx(model.value)
    assert (np.abs(np.diff(model.height)) <= np.diff(model.prediction) + 1e-12).all()
    found = miscalibrated_regions(y, p, sample_weight=w, rng=np.random.default_rng(3))
    assert list(model.regions) == list(found)
    width = Cells.of(Rows.of(y, p, sample_weight=w)).chance_width()
    dense = dense_kernel(p, inputs.GRID, width) @ ((y - p) * w / w.sum())
    assert model.residual == pytest.approx(dense, abs=1e-9)


def test_the_distance_is_the_bracket():
    y, p = rows(40)
    group = np.arange(40) // 2
    display = DistanceDisplay.from_predictions(
        y, {"a": p, "b": 1 - p}, confidence_level=0.9, clusters=group, rng=7
    )
    first, second = display.models
    sample = caldist.distance_bracket(y, p)
    assert (first.lower, first.upper) == (sample.lower, sample.upper)
    population = inference.confidence_interval(
        y, p, measure="distance", confidence_level=0.9, clusters=group,
        rng=np.random.default_rng(7),
    )  # fmt: skip
    assert (first.population_lower, first.population_upper) == (population.lower, population.upper)
    assert first.confidence_level == 0.9
    assert second.lower > first.lower
    [alone] = DistanceDisplay.from_predictions(y, p).models
    assert alone.population_lower is alone.population_upper is alone.confidence_level is None
    with pytest.warns(UserWarning, match="only 0 of 40 rows have label 1") as caught:
        DistanceDisplay.from_predictions(0 * y, p, confidence_level=0.9)
    assert caught[0].filename == __file__


# -- clusters and joints -------------------------------------------------------------------------


def test_the_bands_of_clusters_are_those_of_their_draws():
    """Clusters of equal rows decide as one row does, so the band is that of the clusters alone."""
    y, p = rows(30)
    group = np.repeat(np.arange(30), 20)
    repeated = y[group], p[group]
    [wrong] = ReliabilityDisplay.from_predictions(*repeated).models
    [right] = ReliabilityDisplay.from_predictions(*repeated, clusters=group).models
    wide, narrow = (np.nanmean(one.band_upper - one.band_lower) for one in (right, wrong))
    assert wide > 2 * narrow


def test_the_curves_do_not_depend_on_clusters():
    y, p = rows(60)
    for display in (ReliabilityDisplay, WitnessDisplay):
        plain, clustered = (
            display.from_predictions(y, p, clusters=group).to_frame()
            for group in (None, np.arange(60) // 3)
        )
        free = [name for name in plain.columns if not name.startswith("band")]
        assert plain[free].equals(clustered[free])


def test_the_regions_take_clusters_level_and_draws():
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(60), 20)
    p = rng.random(60)[group]
    y = (rng.random(60)[group] < p).astype(int)
    options = {"confidence_level": 0.9, "n_resamples": 99, "rng": 0}
    [clustered] = WitnessDisplay.from_predictions(y, p, clusters=group, **options).models
    [independent] = WitnessDisplay.from_predictions(y, p, **options).models
    assert clustered.regions == tuple(miscalibrated_regions(y, p, clusters=group, **options)) == ()
    assert independent.regions == tuple(miscalibrated_regions(y, p, **options)) != ()
    assert clustered.confidence_level == 0.9


def test_clusters_of_rows_alone_are_refused():
    y, p = rows(5)
    with pytest.raises(ValueError, match=r"clusters matters for .* the population only"):
        DistanceDisplay.from_predictions(y, p, clusters=[0, 0, 1, 1, 1])


@pytest.mark.slow
@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_joint_shows_what_its_rows_show(display, weighted):
    y, p = rows(60)
    w = np.arange(1.0, 61.0) if weighted else None
    options = {"confidence_level": 0.9} if display is DistanceDisplay else {}
    joint = caldist.Joint.from_arrays(y, p, sample_weight=w)
    expected = display.from_predictions(y, p, sample_weight=w, **options).to_frame()
    found = display.from_predictions(joint, **options)
    assert [model.name for model in found.models] == ["predictions"]
    for name in expected.columns[1:]:
        ends = np.asarray(expected[name]), np.asarray(found.to_frame()[name])
        if name.startswith("population") and weighted:  # other draws of the same law
            assert ends[0] == pytest.approx(ends[1], abs=0.02)
        elif name.startswith("band") and weighted:
            assert ends[0] == pytest.approx(ends[1], abs=0.1, nan_ok=True)
        elif ends[0].dtype.kind == "f":
            assert ends[0] == pytest.approx(ends[1], abs=1e-12, nan_ok=True)
        else:
            assert (ends[0] == ends[1]).all()
    both = draw(display.from_predictions({"a": joint, "b": joint.coarsen(8)}))
    assert [model.name for model in both.models] == ["a", "b"]


@pytest.mark.parametrize("display", DISPLAYS)
def test_what_a_joint_leaves_no_room_for(display):
    y, p = rows(5)
    joint = caldist.Joint.from_arrays(y, p)
    with pytest.raises(TypeError, match=r"y_prob was given with a Joint"):
        display.from_predictions(joint, p)
    with pytest.raises(TypeError, match=r"sample_weight was given with a Joint"):
        display.from_predictions(joint, sample_weight=np.ones(5))
    with pytest.raises(ValueError, match=r"name is 'x': y_true is a dict"):
        display.from_predictions({"a": joint}, name="x")
    with pytest.raises(TypeError, match=r"clusters was given with a Joint"):
        display.from_predictions(joint, clusters=np.ones(5), confidence_level=0.9)
    assert plt.get_fignums() == []


@pytest.mark.slow
@pytest.mark.parametrize("bits", [3, 6, 16])
def test_what_cells_show_is_true_of_the_rows(bits):
    y, p = rows(400)
    cells = caldist.Joint.from_arrays(y, p).coarsen(bits)
    drawn = draw(WitnessDisplay.from_predictions(cells))
    [curve] = drawn.models
    assert abs(curve.value - caldist.smooth_ce(y, p)) <= curve.rounding
    words = drawn.ax_.get_legend().get_texts()[0].get_text()
    assert ("±" in words) == (bits < 16)
    [bracket] = DistanceDisplay.from_predictions(cells).models
    assert bracket.lower <= caldist.lower_distance(y, p)


def test_a_shown_rounding_covers_the_value():
    for value, rounding in ((0.0123456, 2.1e-4), (0.05, 0.0999), (0.0, 0.01), (0.5, 1e-3)):
        curve = WitnessCurve("a", *[np.zeros(2)] * 2, np.zeros(201), value, (), 0.95, rounding)
        shown, more = map(float, witness._amount(curve).split(" ± "))
        assert shown - more <= value - rounding + 1e-12
        assert shown + more >= value + rounding - 1e-12
        assert more <= 2.01 * rounding


def test_the_band_of_cells_allows_for_them_or_is_left_out():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    joint = caldist.Joint.from_arrays((rng.random(500) < p).astype(int), p)
    exact, fine, coarse = (
        ReliabilityDisplay.from_predictions(one).models[0]
        for one in (joint, joint.coarsen(8), joint.coarsen(2))
    )
    assert fine.confidence_level == 0.95
    assert np.nanmean(fine.band_upper) == pytest.approx(np.nanmean(exact.band_upper), abs=0.01)
    assert coarse.confidence_level is coarse.band_upper is None


def test_a_summary_without_rows_has_no_band():
    joint = caldist.Joint.from_masses([0.2, 0.7], [0.4, 0.1], [0.1, 0.4])
    for display in (ReliabilityDisplay, WitnessDisplay):
        with pytest.raises(ValueError, match=r"do not say how many rows there are"):
            display.from_predictions(joint)
    draw(DistanceDisplay.from_predictions(joint))


# -- thinning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["walk", "line", "spike", "level"])
def test_thinned_curves_look_the_same(kind):
    rng = np.random.default_rng(0)
    n = 50_000
    x = np.sort(rng.random(n))
    y = {"walk": rng.normal(size=n).cumsum(), "line": 2 * x, "level": np.zeros(n)}.get(kind, 0 * x)
    if kind == "spike":
        y = y + (np.arange(n) == 31_234)
    kept = inputs.thin(x, y)
    assert kept.size <= 1000
    assert kept[0] == 0
    assert kept[-1] == n - 1
    scale = max(np.ptp(y), 1.0)
    column = ((x - x[0]) / (x[-1] - x[0]) * 250).astype(int)
    thinned = np.interp(x, x[kept], y[kept])
    for at in range(250):
        inside = column == at
        assert thinned[inside].max() == pytest.approx(y[inside].max(), abs=0.015 * scale)
        assert thinned[inside].min() == pytest.approx(y[inside].min(), abs=0.015 * scale)
    assert y[kept].max() == y.max()
    if kind in {"line", "level"}:
        assert kept.size < 40


def test_short_curves_keep_every_corner():
    x = np.arange(10.0)
    assert (inputs.thin(x, x % 2) == np.arange(10)).all()
    assert inputs.thin(x[:1], x[:1]).tolist() == [0]


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="takes minutes with plain kernels")
@pytest.mark.parametrize("display", DISPLAYS)
def test_figures_of_many_rows_stay_small(display):
    y, p = rows(50_000, beta=1.3)
    drawn = display.from_predictions(y, p)
    assert all(np.size(line.get_xdata()) <= 1500 for line in drawn.ax_.lines)
    for options, limit in (({"format": "svg"}, 60_000), ({"format": "png", "dpi": 100}, 60_000)):
        file = io.BytesIO()
        drawn.figure_.savefig(file, **options)
        assert len(file.getvalue()) < limit


# -- drawing -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("display", DISPLAYS)
def test_given_axes_are_used_and_nothing_else_is_touched(display):
    y, p = rows(30)
    before = dict(mpl.rcParams)
    figure, (left, right) = plt.subplots(1, 2)
    drawn = draw(display.from_predictions(y, p, ax=right))
    assert drawn.ax_ is right
    assert drawn.figure_ is figure
    assert figure.axes == [left, right]
    assert not left.lines
    assert plt.get_fignums() == [figure.number]
    assert dict(mpl.rcParams) == before
    assert drawn.plot(ax=left) is drawn
    assert drawn.ax_ is left
    with pytest.raises(TypeError, match=r"ax is of type str, but it must be matplotlib axes"):
        drawn.plot(ax="left")


@pytest.mark.parametrize("display", DISPLAYS)
def test_without_axes_a_figure_is_made(display):
    drawn = draw(display.from_predictions(*rows(30)))
    assert plt.get_fignums() == [drawn.figure_.number]
    assert len(drawn.lines_) == 1
    assert display.__name__ in repr(drawn)


@pytest.mark.slow
@pytest.mark.parametrize("display", DISPLAYS)
def test_several_models_by_a_dict_or_one_by_one(display):
    y, p = rows(30)
    models = {"a": p, "b": p**2, "c": 1 - p}
    together = draw(display.from_predictions(y, models))
    _, ax = plt.subplots()
    for name, values in models.items():
        one = display.from_predictions(y, values, name=name, ax=ax)
    draw(one)
    lines = _style.drawn(ax)
    assert len(together.lines_) == len(lines) == 3
    for first, second in zip(together.lines_, lines, strict=True):
        assert first.get_label() == second.get_label()
        for of in ("get_color", "get_marker"):
            assert getattr(first, of)() == getattr(second, of)()
    looks = {(line.get_color(), line.get_marker()) for line in lines}
    assert len(looks) == (1 if display is DistanceDisplay else 3)


def test_models_are_told_apart_without_colour():
    looks = [_style.model_style(at) for at in range(6)]
    assert len({look["marker"] for look in looks}) == 6
    assert len({str(look["linestyle"]) for look in looks}) == 6
    assert _style.model_style(6) == looks[0]


@pytest.mark.slow
@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([1], [0.4]),
        ([0], [0.0]),
        ([1], [0.0]),
        ([0, 1, 1, 0], [0.3] * 4),
        ([0, 1] * 5, [0.2, 0.7] * 5),
        ([1] * 6, np.linspace(0, 1, 6)),
        ([0] * 6, np.linspace(0, 1, 6)),
        ([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0]),
        ([0, 1, 1], [5e-324, 0.5, 1 - 2**-53]),
        ([0, 1, 1], [0.5, 0.5 + 2**-53, 0.5 + 2**-52]),
    ],
    ids=["one", "zero", "impossible", "constant", "ties", "ones", "zeros", "sure", "ends", "near"],
)
def test_degenerate_rows(display, y, p):
    draw(display.from_predictions(y, p)).to_frame()
    draw(display.from_predictions(y, {"a": p, "b": p}))


@pytest.mark.slow
@pytest.mark.parametrize("display", DISPLAYS)
def test_weights_of_very_different_size(display):
    y, p = rows(12)
    for scale in (1e-49, 1e99):
        draw(display.from_predictions(y, p, sample_weight=scale * np.linspace(0, 1, 12)))
    draw(display.from_predictions(y, p, sample_weight=10.0 ** -np.linspace(0, 100, 12)))


@pytest.mark.slow
@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_and_nothing_else(display, name):
    drawn = draw(display.from_predictions(*rows(12), name=name))
    if display is DistanceDisplay:
        [words] = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    else:
        words = drawn.ax_.get_legend().get_texts()[0].get_text()
    assert words.startswith(_style.shown(name))
    assert len(_style.shown(name).replace(r"\$", "$")) <= 34
    assert mpl.cbook.is_math_text(words) is False
    assert drawn.to_frame()["model"][0] == name


@pytest.mark.slow
@pytest.mark.parametrize("display", DISPLAYS)
def test_several_hostile_names(display):
    y, p = rows(12)
    drawn = draw(display.from_predictions(y, dict.fromkeys(HOSTILE, p)))
    drawn.ax_.legend()  # a legend of the user's own
    draw(drawn)


def test_a_level_that_draws_cannot_reach():
    y, p = rows(60)
    ReliabilityDisplay.from_predictions(y, p, confidence_level=0.99)
    with pytest.raises(ValueError, match=r"confidence_level is 0.999999: that is too close to 1"):
        ReliabilityDisplay.from_predictions(y, p, confidence_level=0.999999)


def test_options_of_the_reliability_diagram():
    y, p = rows(60)
    plain = ReliabilityDisplay.from_predictions(y, p, confidence_level=None, density=False)
    assert plain.models[0].band_lower is None
    assert plain.ax_.get_ylim()[0] == 0
    assert len(plain.ax_.get_legend().get_texts()) == 2
    isotonic = draw(ReliabilityDisplay.from_predictions(y, p, curve="isotonic"))
    assert np.isin(isotonic.lines_[0].get_xdata(), p).all()
    smooth = ReliabilityDisplay.from_predictions(y, p, curve="smooth")
    assert len(smooth.ax_.get_legend().get_texts()) == 2
    again = ReliabilityDisplay.from_predictions(y, p)
    other = ReliabilityDisplay.from_predictions(y, p, rng=1)
    assert np.array_equal(again.models[0].band_upper, smooth.models[0].band_upper, equal_nan=True)
    assert not np.array_equal(
        again.models[0].band_upper, other.models[0].band_upper, equal_nan=True
    )


# -- estimators ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("display", DISPLAYS)
def test_from_estimator(display):
    y, p = rows(60)
    classes = np.array(["no", "yes"])[y]
    model = LogisticRegression().fit(p[:, None], classes)
    drawn = display.from_estimator(model, p[:, None], classes)
    same = display.from_predictions(y, model.predict_proba(p[:, None])[:, 1])
    assert drawn.models[0].name == "LogisticRegression"
    for key, column in same._columns(same.models[0]).items():
        found = drawn._columns(drawn.models[0])[key]
        assert np.array_equal(found, column, equal_nan=np.asarray(column).dtype.kind == "f")
    both = display.from_estimator({"a": model, "b": model}, p[:, None], classes)
    assert [one.name for one in both.models] == ["a", "b"]
    assert display.from_estimator(model, p[:, None], classes, name="x").models[0].name == "x"


def test_what_is_no_fitted_classifier_of_two_classes():
    y, p = rows(30)
    X = p[:, None]
    with pytest.raises(TypeError, match=r"estimator is of type LogisticRegression, but a fitted"):
        ReliabilityDisplay.from_estimator(LogisticRegression(), X, y)
    three = LogisticRegression().fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match=r"the classes \[0, 1, 2\], but only two"):
        ReliabilityDisplay.from_estimator(three, X, y)
    two = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"y\[3\] is 7: y has one of the estimator's classes"):
        ReliabilityDisplay.from_estimator(two, X, np.where(np.arange(30) == 3, 7, y))
    other = LogisticRegression().fit(X, 1 + y)
    with pytest.raises(ValueError, match=r"y\[\d+\] is 0: y has one of the estimator's classes"):
        ReliabilityDisplay.from_estimator({"a": two, "b": other}, X, y)


# -- wrong input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("display", DISPLAYS)
def test_wrong_input_is_refused_before_anything_is_drawn(display):
    y, p = rows(5)
    for error, words, arguments, options in (
        (ValueError, r"y_prob\[1\] is 1.5", (y, [0.5, 1.5, 0.5, 0.5, 0.5]), {}),
        (ValueError, r"y_prob\['b'\]\[0\] is nan", (y, {"a": p, "b": p * np.nan}), {}),
        (ValueError, r"y_prob is an empty dict", (y, {}), {}),
        (ValueError, r"name is 'x': y_prob is a dict", (y, {"a": p}), {"name": "x"}),
        (
            TypeError,
            r"y_prob has the key 3, but the name of a model must be a string",
            (y, {3: p}),
            {},
        ),
        (TypeError, r"name is 3: it must be a string", (y, p), {"name": 3}),
        (ValueError, r"sample_weight\[0\] is -1", (y, p), {"sample_weight": [-1, 1, 1, 1, 1]}),
    ):
        with pytest.raises(error, match=words):
            display.from_predictions(*arguments, **options)
    with pytest.raises(ValueError, match=r"confidence_level is 2"):
        display.from_predictions(y, p, confidence_level=2)
    with pytest.raises(ValueError, match=r"models is empty"):
        display([])
    assert plt.get_fignums() == []


def test_wrong_options():
    y, p = rows(5)
    with pytest.raises(ValueError, match=r"curve is 'x'"):
        ReliabilityDisplay.from_predictions(y, p, curve="x")
    with pytest.raises(TypeError, match=r"density is 1"):
        ReliabilityDisplay.from_predictions(y, p, density=1)


# -- frames and optional packages ----------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_hold_what_is_stored(library):
    y, p = rows(25)
    display = DecisionCurveDisplay.from_predictions(y, {"a": p, "b": p**2})
    table = display.to_frame(library)
    assert type(table).__module__.split(".")[0] == library
    read = {k: list(table[k]) for k in table.columns}
    parts = ["threshold", "treated", "model_benefit", "treat_all", "lower", "upper"]
    assert list(read) == ["model", *parts]
    size = display.models[0].threshold.size
    assert read["model"] == ["a"] * size + ["b"] * size
    for name in parts:
        stored = [getattr(model, name.removesuffix("_benefit")) for model in display.models]
        assert read[name] == np.concatenate(stored).tolist()


def test_the_columns_of_every_frame():
    y, p = rows(25)
    for display, columns in (
        (ReliabilityDisplay, "curve prediction frequency band_lower band_upper"),
        (WitnessDisplay, "part prediction value"),
        (MapDisplay, "curve prediction value"),
        (DistanceDisplay, "lower upper population_lower population_upper confidence_level"),
    ):
        drawn = display.from_predictions(y, p)
        table = drawn.to_frame()
        assert list(table.columns) == ["model", *columns.split()]
        table.iloc[:, -1] = 0  # a copy: the display keeps its own
        assert not drawn.to_frame().equals(table)
    reliability = ReliabilityDisplay.from_predictions(y, p, confidence_level=None).to_frame()
    assert reliability["band_lower"].isna().all()
    assert (reliability["curve"] == "isotonic").sum() == np.unique(p).size


def test_frames_are_of_pandas_unless_polars_is_asked_for():
    y, p = rows(25)
    display = ReliabilityDisplay.from_predictions(y, pl.Series(p))
    assert isinstance(display.to_frame(), pd.DataFrame)
    assert isinstance(display.to_frame("polars"), pl.DataFrame)
    with pytest.raises(ValueError, match=r"library is 'numpy': .* one of 'pandas', 'polars'"):
        display.to_frame("numpy")


@pytest.mark.parametrize("display", DISPLAYS)
def test_displays_as_dicts(display):
    y, p = rows(25, beta=8)
    found = display.from_predictions(y, {"a": p, "b": p**2})
    read = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [model["name"] for model in read["models"]] == ["a", "b"]
    [model, _] = found.models
    for key, value in read["models"][0].items():
        stored = getattr(model, key)
        if isinstance(stored, np.ndarray):
            assert np.array_equal(np.array(value, float), stored, equal_nan=True)
        elif key != "regions":
            assert value == stored


def test_without_any_frame_library(monkeypatch):
    monkeypatch.setattr(_frames, "find_spec", lambda _: None)
    with pytest.raises(
        ImportError, match="needs pandas, which is not installed: pip install pandas"
    ):
        _frames.frame({"a": [1]})


def test_a_missing_package_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib.*pip install \"caldist\[report\]\""):
        ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7])


def test_a_broken_package_keeps_its_own_error(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        _optional.require("broken_package", extra="report")


def test_importing_the_displays_needs_no_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None; import caldist.plots, caldist.paper;"
        "print(sorted({'scipy', 'pandas', 'sklearn'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


# -- the monitor ---------------------------------------------------------------------------------


def watched(days=20, drift=10, by=None, **settings):
    rng = np.random.default_rng(0)
    monitor = caldist.Monitor(by=by, **settings)
    for day in range(days):
        p = rng.beta(2, 3, 300)
        moved = 0.2 if day >= drift else 0.0
        groups = rng.choice(by, 300) if by else None
        y = rng.random(300) < np.clip(p + moved, 0, 1)
        monitor.update(y, p, batch=f"day {day:02}", by=groups)
    return monitor


def test_the_monitor_shows_its_steps_and_what_errs_since_the_onset():
    monitor = watched(tolerance=0.02)
    display = draw(MonitorDisplay.from_monitor(monitor))
    [shown] = display.models
    assert shown.batch == tuple(str(step.batch) for step in monitor.steps)
    for key in ("log_e_value", "value", "lower", "upper"):
        assert getattr(shown, key).tolist() == [getattr(step, key) for step in monitor.steps]
    assert shown.batch[shown.onset] == monitor.steps[-1].onset
    assert (shown.log_threshold, shown.tolerance) == (pytest.approx(np.log(20)), 0.02)
    assert float(shown.error @ shown.share) == pytest.approx(0.2, abs=0.04)
    top, middle, bottom = display.axes_
    assert display.lines_[0].get_ydata()[-1] == pytest.approx(shown.log_e_value[-1] / np.log(10))
    thresholds = [line.get_ydata()[0] for line in top.lines if len(set(line.get_ydata())) == 1]
    assert pytest.approx(np.log10(20)) in thresholds
    assert 0.02 in [line.get_ydata()[0] for line in middle.lines]
    texts = [text.get_text() for ax in (top, middle, bottom) for text in ax.get_legend().texts]
    assert "predicted too low" in texts
    assert f"first alarm: {next(step.batch for step in monitor.steps if step.alarm)}" in texts
    assert "onset" in [text.get_text() for text in top.texts]


def test_a_monitor_without_an_alarm_claims_nothing():
    display = draw(MonitorDisplay.from_monitor(watched(drift=99, tolerance=0.05)))
    bottom = display.axes_[2]
    texts = [text.get_text() for text in bottom.get_legend().texts]
    assert "no alarm: it may be chance" in texts
    assert not display.axes_[0].texts


def test_a_monitor_of_sub_groups():
    monitor = watched(by=("a", "b", "c", "d", "e"), tolerance=0.02)
    display = draw(MonitorDisplay.from_monitor(monitor))
    assert [model.name for model in display.models] == ["all rows", "a", "b", "c"]
    chosen = MonitorDisplay.from_monitor(monitor, groups=["e"], name="everybody")
    assert [model.name for model in chosen.models] == ["everybody", "e"]
    assert np.isnan(chosen.models[1].log_threshold)
    with pytest.raises(ValueError, match=r"groups\[0\] is 'x': the monitor has 'a', 'b'"):
        MonitorDisplay.from_monitor(monitor, groups=["x"])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"dependence": "batches"}, {"run_length": 50}])
def test_monitors_of_other_settings(settings):
    display = draw(MonitorDisplay.from_monitor(watched(**settings)))
    [shown] = display.models
    assert np.isnan(shown.upper).all() == ("dependence" in settings)
    assert shown.log_threshold == pytest.approx(np.log(settings.get("run_length", 20)))


def test_monitors_of_few_rows():
    monitor = caldist.Monitor()
    with pytest.raises(ValueError, match="no batches yet"):
        MonitorDisplay.from_monitor(monitor)
    monitor.update([], [], batch=1)
    [nothing] = draw(MonitorDisplay.from_monitor(monitor)).models
    assert nothing.onset is None
    assert nothing.prediction.size == 0
    monitor.update([1], [0.3], batch=2)
    monitor.update([1, 1], [0.0, 1.0], batch=3)
    [some] = draw(MonitorDisplay.from_monitor(monitor)).models
    assert np.isnan(some.value[0])
    assert some.prediction.size == 3
    added = caldist.Monitor().update([1], [0.3], batch=1)
    assert added.n_rows == 1


def test_hostile_names_of_batches():
    monitor = caldist.Monitor(by=HOSTILE)
    for at, name in enumerate(sorted(HOSTILE)):
        monitor.update([0, 1], [0.2, 0.7], batch=f"{name} {at}" if at else name, by=[name, "$"])
    display = MonitorDisplay.from_monitor(monitor, groups=HOSTILE[:4], name=HOSTILE[1])
    draw(display)
    file = io.StringIO()
    display.figure_.savefig(file, format="svg")
    assert "<b>" not in file.getvalue()


def test_the_monitor_on_given_axes():
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 8), layout="constrained")
    display = MonitorDisplay.from_monitor(watched(days=3), ax=right)
    draw(display)
    assert display.figure_ is figure
    assert left.axison
    edge = right.get_position().x0 - 0.02
    assert all(ax.get_position().x0 > edge for ax in display.axes_)
    with pytest.raises(ValueError, match="not in a grid of subplots"):
        MonitorDisplay.from_monitor(watched(days=3), ax=figure.add_axes((0, 0, 1, 1)))


def test_monitors_of_different_batches_do_not_share_axes():
    one, other = (MonitorDisplay.from_monitor(watched(days=n)).models[0] for n in (3, 4))
    with pytest.raises(ValueError, match="different batches"):
        MonitorDisplay([one, other])
    with pytest.raises(TypeError, match="monitor is of type Joint"):
        MonitorDisplay.from_monitor(caldist.Joint.empty(4))


def test_the_frame_and_the_dict_of_a_monitor():
    display = MonitorDisplay.from_monitor(watched(days=3))
    found = display.to_frame("pandas")
    steps, errors = found[found["part"] == "step"], found[found["part"] == "error"]
    [shown] = display.models
    assert steps["batch"].tolist() == list(shown.batch)
    assert steps["lower"].tolist() == shown.lower.tolist()
    assert errors["error"].tolist() == shown.error.tolist()
    assert json.loads(json.dumps(display.to_dict()))["models"][0]["batch"] == list(shown.batch)


# -- pictures ------------------------------------------------------------------------------------


def scene(name):
    """Draw one of the stored pictures."""
    if name.endswith("_rare"):
        return rare_scene(name.removesuffix("_rare"))
    demo = load_demo()
    label, predictions = demo.y_true, demo.y_prob
    forest, tree = predictions["random_forest"], predictions["decision_tree"]
    if name == "reliability":
        return ReliabilityDisplay.from_predictions(label, forest, name="forest")
    if name == "reliability_models":
        return ReliabilityDisplay.from_predictions(label, {"forest": forest, "tree": tree})
    if name == "witness":
        curve = WitnessCurve(
            "model", np.array([0.1, 0.6, 0.9]), np.array([0.2, 0.7, 0.4]),
            np.sin(5 * inputs.GRID), 0.1, (Region(0.1, 0.5, 0.2, 0.4), Region(0.8, 0.9, -0.1, 0.2)),
            0.95,
        )  # fmt: skip
        return WitnessDisplay([curve]).plot()
    if name == "witness_models":
        return WitnessDisplay.from_predictions(label, {"forest": forest, "tree": tree})
    if name == "distance":
        return DistanceDisplay([
            DistanceInterval("one", 0.02, 0.08),
            DistanceInterval("another", 0.05, 0.05, 0.03, 0.11, 0.95),
        ]).plot()  # fmt: skip
    if name == "map":
        u = (np.arange(4000) + 0.5) / 4000
        y, p = np.random.default_rng(0).random(4000) < u, u**2 / (u**2 + (1 - u) ** 2)
        bounds = caldist.inference.Interval
        stated = replace(
            evaluate_map(y, p, map=CalibrationMap(p[::40], u[::40]), confidence_level=None),
            before={"smooth_ce": bounds(0.06, 0.05, 0.07, 0.95)},
            after={"smooth_ce": bounds(0.0, 0.0, 0.02, 0.95)},
        )
        return MapDisplay.from_recalibration(stated, y, p, name="model")
    if name == "map_models":
        halved, other = CalibrationMap([0, 1], [0.1, 0.5]), CalibrationMap([0.2, 0.8], [0, 1])
        return MapDisplay(
            [map_curve("halved", halved, None), map_curve("other", other, None)]
        ).plot()
    if name == "monitor":
        x = np.linspace(0, 1, 30)
        days = tuple(f"2026-11-{day + 1:02}" for day in range(30))
        shown = MonitorCurve(
            "all rows", days, 40 * (x - 0.6).clip(0), np.log(20), 0.01 + 0.05 * x, 0.04 * x,
            0.03 + 0.05 * x, x > 0.75, 0.02, 18, x, 0.1 * np.sin(6 * x), np.full(30, 1 / 30),
        )  # fmt: skip
        return MonitorDisplay([shown]).plot()
    if name == "binned":
        return BinnedDisplay.from_predictions(label, forest, name="forest")
    if name == "binned_models":
        return BinnedDisplay.from_predictions(label, {"forest": forest, "tree": tree})
    if name == "decision":
        return DecisionCurveDisplay.from_predictions(label, forest, name="forest")
    return DecisionCurveDisplay.from_predictions(
        label, {"forest": forest, "tree": tree}, thresholds=np.arange(20, 80) / 100
    )


SCENES = (
    "reliability", "reliability_models", "witness", "witness_models", "distance",
    "map", "map_models", "monitor",
    "decision", "decision_models", "binned", "binned_models", "reliability_rare",
    "reliability_even_rare", "reliability_high_rare", "reliability_models_rare", "witness_rare",
    "map_rare", "binned_rare", "decision_rare",
)  # fmt: skip


def rare_rows():
    """Risks of about 1 in 1,000, twice as frequent as predicted."""
    rng = np.random.default_rng(0)
    risk = 1 / (1 + np.exp(-rng.normal(-7, 1, 20_000)))
    return (rng.random(risk.size) < 2 * risk).astype(int), risk


def rare_scene(name):
    y, p = rare_rows()
    if name == "reliability_even":
        return ReliabilityDisplay.from_predictions(y, p, name="risk")
    options = {"scale": "logit", "name": "risk"}
    if name == "reliability_high":
        return ReliabilityDisplay.from_predictions(1 - y, 1 - p, **options)
    if name == "reliability_models":
        return ReliabilityDisplay.from_predictions(y, {"risk": p, "half": p / 2}, scale="logit")
    if name == "map":
        table = CalibrationMap(np.linspace(0, 0.1, 9), np.linspace(0, 0.2, 9))
        return MapDisplay.from_map(table, y, p, **options)
    if name == "binned":
        return BinnedDisplay.from_predictions(y, p, strategy="quantile", n_bins=6, **options)
    display = {
        "reliability": ReliabilityDisplay, "witness": WitnessDisplay,
        "decision": DecisionCurveDisplay,
    }[name]  # fmt: skip
    return display.from_predictions(y, p, **options)


def picture(name):
    with mpl.rc_context(mpl.rcParamsDefault | {"backend": "agg", "font.family": "DejaVu Sans"}):
        display = scene(name)
        file = io.BytesIO()
        display.figure_.savefig(file, format="png", dpi=55, metadata={"Software": None})
    plt.close(display.figure_)
    return Image.open(file)


def difference(first, second):
    """The root mean square difference of blurred grey pictures, of 255."""
    arrays = [
        np.asarray(image.convert("L").filter(ImageFilter.GaussianBlur(2)), float)
        for image in (first, second)
    ]
    return np.sqrt(np.mean((arrays[0] - arrays[1]) ** 2))


@pytest.mark.slow
@pytest.mark.skipif(
    tuple(map(int, mpl.__version__.split(".")[:2])) < (3, 11),
    reason="the pictures were drawn by a matplotlib that sets letters otherwise",
)
@pytest.mark.parametrize("name", SCENES)
def test_pictures_are_the_stored_ones(name):
    with Image.open(PICTURES / f"{name}.png") as stored:
        found = picture(name)
        assert found.size == stored.size
        assert difference(found, stored) < 4


def test_the_comparison_sees_a_changed_curve():
    y, p = load_demo().y_true, load_demo().y_prob["gradient_boosting"]
    with mpl.rc_context(mpl.rcParamsDefault | {"backend": "agg"}):
        other = DecisionCurveDisplay.from_predictions(y, p, name="forest")
        file = io.BytesIO()
        other.figure_.savefig(file, format="png", dpi=55)
    with Image.open(PICTURES / "decision.png") as stored:
        assert difference(Image.open(file), stored) > 6


def test_a_map_with_its_rows():
    y, p = rows(400)
    found = caldist.recalibrate(y, p, n_resamples=99, rng=0)
    drawn = draw(MapDisplay.from_recalibration(found, y, p, name="m"))
    [model] = drawn.models
    assert model.x is found.map.x
    assert model.mass_before.sum() == pytest.approx(1)
    assert model.mass_after == pytest.approx(
        _histograms.histogram(found.map(p), np.full(400, 1 / 400))
    )
    before = ReliabilityDisplay.from_predictions(y, p, confidence_level=None).models[0]
    after = ReliabilityDisplay.from_predictions(y, found.map(p), confidence_level=None).models[0]
    for when, curve in (("before", before), ("after", after)):
        for part in ("prediction", "frequency"):
            shown = getattr(model, f"{when}_{part}")
            np.testing.assert_allclose(shown, getattr(curve, part), atol=1e-9)
    line = drawn.lines_[0]
    np.testing.assert_allclose(line.get_ydata(), found.map(line.get_xdata()), atol=1e-12)
    texts = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    low, high = found.before["smooth_ce"].lower, found.after["smooth_ce"].upper
    assert texts[0] == f"m: smCE ≥ {least(low, 2)}, then ≤ {most(high, 2)}"
    assert len(texts) == 3
    same = MapDisplay.from_predictions(y, p, confidence_level=0.95, n_resamples=99).models[0]
    assert (same.lower_before, same.upper_after) == (low, high)
    summary = caldist.Joint.from_arrays(y, p)
    again = MapDisplay.from_recalibration(found, summary).models[0]
    np.testing.assert_allclose(again.mass_after, model.mass_after)


def test_a_map_of_rare_events_fills_the_axes():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 200, 3000)
    drawn = draw(MapDisplay.from_predictions(rng.random(3000) < 0.4 * p, p, family="shift"))
    [model] = drawn.models
    assert model.largest == 0.05
    assert drawn.ax_.get_xlim() == (0, 0.05)
    assert drawn.lines_[0].get_xdata().max() == 0.05
    assert model.mass_before.sum() == pytest.approx(1)
    assert (model.mass_before > 0).sum() > 10
    assert [text.get_text() for text in drawn.ax_.get_xticklabels()][-1] == "0.05"
    other = draw(MapDisplay.from_map(CalibrationMap([0, 1], [0, 0.5])).plot(ax=drawn.ax_))
    assert other.ax_.get_xlim() == (0, 0.05)


def test_a_map_alone():
    table = CalibrationMap([0.2, 0.8], [0.1, 0.5])
    drawn = draw(MapDisplay.from_map(table, name="m"))
    assert drawn.lines_[0].get_xdata().tolist() == [0, 0.2, 0.8, 1]
    assert drawn.lines_[0].get_ydata().tolist() == [0.1, 0.1, 0.5, 0.5]
    assert drawn.ax_.get_ylabel() == "mapped prediction"
    assert drawn.ax_.get_ylim()[0] == 0
    y, p = rows(30)
    assert MapDisplay.from_map(table, y, p).models[0].name == "map"
    plt.close("all")
    wrong = evaluate_map(y, p, map=lambda v: 1 - v, confidence_level=None)
    for error, words, call in (
        (TypeError, "table is of type dict", lambda: MapDisplay.from_map({})),
        (
            TypeError,
            "found is of type CalibrationMap",
            lambda: MapDisplay.from_recalibration(table),
        ),
        (
            ValueError,
            "found has no map: .*not monotone",
            lambda: MapDisplay.from_recalibration(wrong),
        ),
        (
            ValueError,
            "y_prob was given without y_true",
            lambda: MapDisplay.from_map(table, None, p),
        ),
        (TypeError, "name is 3", lambda: MapDisplay.from_map(table, name=3)),
        (
            ValueError,
            "rows of 2 models",
            lambda: MapDisplay.from_map(table, y, {"a": p, "b": p}),
        ),
    ):
        with pytest.raises(error, match=words):
            call()
    assert plt.get_fignums() == []


def test_a_curve_may_be_given_by_its_arrays():
    x = np.linspace(0, 1, 9)
    curve = ReliabilityCurve("exact", x, x**2, np.ones(4), np.ones(4))
    drawn = draw(ReliabilityDisplay([curve]).plot())
    assert drawn.lines_[0].get_ydata() == pytest.approx(x**2)


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    for scene_name in SCENES:
        picture(scene_name).save(PICTURES / f"{scene_name}.png", optimize=True)
