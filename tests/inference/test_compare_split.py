"""Comparisons by splitting: against a row by row recomputation, and the promised properties."""

import json
import math
from statistics import NormalDist

import numpy as np
import pytest
from click.testing import CliRunner

import caldist
from caldist.cli import main
from caldist.data.sorting import merged
from caldist.inference import _cross_fit_differences, comparison
from caldist.inference.comparison import compare, compare_all
from caldist.inference.resampling import Resampler
from caldist.measures import polynomials
from caldist.measures.registry import find

SPLIT = {"method": "cross_fit", "rng": 3}
WEIGHTED = caldist.weighted_ce.using(functions=polynomials(2))
MEASURES = {"smooth_ce": caldist.smooth_ce, "kernel_ce": caldist.kernel_ce, "weighted": WEIGHTED}


def two_models(seed, n=240, *, tied=False, strength=0.25):
    """Return labels, predictions that are too high, and such that are nearly right."""
    rng = np.random.default_rng(seed)
    f = rng.random(n)
    y = (rng.random(n) < f).astype(int)
    a, b = np.clip(f + strength, 0, 1), np.clip(f**1.3, 0, 1)
    return (y, a.round(1), b.round(1)) if tied else (y, a, b)


def by_hand(y, a, b, measure, level, weight=None):
    """Return the lower end as the docstring has it: every row by functions of other folds."""
    share = np.ones(y.size) if weight is None else np.asarray(weight, float)
    share = share / share.sum()
    fold = Resampler.of(3, n_resamples=999).stream(60).integers(0, 5, (2, y.size))

    def residual(v, support, rows):
        masses = np.zeros(support.size)
        np.add.at(masses, np.searchsorted(support, v[rows]), (share * (y - v))[rows])
        return masses

    support = np.unique(a)
    place = np.searchsorted(support, a)
    value = np.zeros(y.size)
    for dealing in fold:
        for k in range(5):
            own = dealing == k
            trained = residual(a, support, own)
            w = measure.norm(support).witness(trained)[place]
            others = ~own
            value[others] += ((y - a) * w)[others] / share[others].sum() / 5 / 2
    ends = []
    others = np.unique(b)
    masses = residual(b, others, np.ones(y.size, bool))
    for function in np.atleast_2d(measure.norm(others).candidates(masses, 0.0)):
        sign = math.copysign(1, masses @ function)
        row = value - (y - b) * sign * function[np.searchsorted(others, b)]
        mean = share @ row
        error = math.sqrt(((share * (row - mean)) ** 2).sum())
        delta = (1 - level) / 3
        margin = math.log(1 / delta) / 3 * np.abs(share * row).max()
        ends.append(mean - NormalDist().inv_cdf(1 - delta) * error - margin)
    return min(ends)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["smooth_ce", "weighted"])
def test_the_lower_end_row_by_row(name, weighted, tied, monkeypatch):
    # Without the floor for rare labels, which has a test of its own.
    monkeypatch.setattr(_cross_fit_differences, "_protected", lambda mean, *_others: mean)
    y, a, _ = two_models(0, tied=tied)
    b = 1 - a  # which stands out of the noise, so that its witness is trusted
    weight = np.random.default_rng(1).integers(1, 4, y.size) if weighted else None
    found = compare(y, a, b, measure=MEASURES[name], sample_weight=weight, **SPLIT)
    assert found.n_resamples == 0
    assert found.lower == pytest.approx(by_hand(y, a, b, MEASURES[name], 0.95, weight), abs=1e-12)


def test_a_model_that_does_not_stand_out_may_have_any_witness():
    """Even the sign of its error may be chance: the error is then that of any function."""
    rng = np.random.default_rng(13)
    b = rng.random(400)
    y, a = rng.random(400) < b, np.clip(b + 0.25, 0, 1)
    found = compare(y, a, b, **SPLIT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cross_fit_differences, "_CLEAR", -2.0)
        trusting = compare(y, a, b, **SPLIT)
    assert found.upper - found.lower > trusting.upper - trusting.lower


@pytest.mark.parametrize("clusters", [None, 3])
@pytest.mark.parametrize("name", [*MEASURES, "random_interval_ce"])
def test_exchanging_the_models_mirrors_the_interval(name, clusters):
    y, a, b = two_models(2)
    clusters = None if clusters is None else np.arange(y.size) // clusters
    measure = MEASURES.get(name) or find(name)
    one = compare(y, a, b, measure=measure, clusters=clusters, **SPLIT)
    other = compare(y, b, a, measure=measure, clusters=clusters, **SPLIT)
    assert (one.lower, one.upper) == pytest.approx((-other.upper, -other.lower), abs=1e-15)
    assert one.pvalue == pytest.approx(other.pvalue)
    assert one.lower <= one.difference <= one.upper


def test_the_pvalue_is_the_level_at_which_0_leaves_the_interval():
    y, a, b = two_models(3, 1_000)
    found = compare(y, a, b, **SPLIT)
    assert 0 < found.pvalue < 0.01
    inside = compare(y, a, b, confidence_level=1 - found.pvalue * 0.999, **SPLIT)
    outside = compare(y, a, b, confidence_level=1 - found.pvalue * 1.001, **SPLIT)
    assert inside.lower <= 0 < outside.lower


def test_the_same_model_twice_does_not_differ():
    y, a, _ = two_models(4)
    found = compare(y, a, a, **SPLIT)
    assert (found.lower, found.upper, found.pvalue) == (0, 0, 1)


def test_common_errors_cancel():
    """Models that are wrong together are compared far more closely than each is known."""
    y, a, _ = two_models(5, 4000)
    b = np.clip(a + np.random.default_rng(0).normal(0, 0.02, a.size), 0, 1)
    found = compare(y, a, b, **SPLIT)
    alone = caldist.confidence_interval(y, a, method="cross_fit", rng=0)
    assert found.upper - found.lower < (alone.upper - alone.lower) / 3


def test_labels_that_are_rare_in_the_folds_still_count():
    """No row of label 1 by chance, yet the error is that of labels of the frequency nearby."""
    rng = np.random.default_rng(6)
    a, b = rng.beta(1, 60, 300), rng.beta(1, 30, 300)
    y = np.zeros(300, int)
    y[:12] = 1
    found = compare(y, a, b, **SPLIT)
    plain = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cross_fit_differences, "_protected", lambda mean, *_others: mean)
        plain = compare(y, a, b, **SPLIT)
    assert found.lower <= plain.lower
    assert found.upper >= plain.upper


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(comparison, "MANY", 3_000)


def test_many_rows_are_split(many):
    y, a, b = two_models(7, 4_000)
    b = np.clip(b, 1e-9, 1 - 1e-9)
    a = 0.2 + 0.7 * a + 1e-3 * np.random.default_rng(0).random(a.size)
    found = compare(y, a, b, rng=3)
    assert (found.n_resamples, found.rounding) == (0, 0)
    assert found.value_a == caldist.smooth_ce(y, a)
    assert found == compare(y, a, b, rng=3, method="cross_fit")
    signs = compare(y, a, b, rng=3, method="resampling", n_resamples=99)
    assert signs.n_resamples == 99


def test_independent_samples_are_split_likewise(many):
    first, second = two_models(9, 4_000, strength=0.0), two_models(10, 5_000)
    joints = [caldist.Joint.from_arrays(y, p) for y, p in (first[:2], second[:2])]
    found = compare(*joints, rng=3)
    assert (found.n_resamples, found.rounding) == (0, 0)
    assert found.upper < 0
    assert found.value_b == caldist.smooth_ce(*second[:2])
    cells = compare(*(joint.coarsen(16) for joint in joints), rng=3)
    assert 0 < cells.rounding <= 0.01 * (cells.upper - cells.lower)
    assert found.lower == pytest.approx(cells.lower, abs=2e-3)  # other folds
    mirrored = compare(*reversed(joints), rng=3)
    assert mirrored.lower == pytest.approx(-found.upper, abs=2e-3)


def test_the_command_line_says_that_no_resamples_were_made(many, tmp_path):
    y, a, b = two_models(14, 4_000)
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack((y, a, b)), "%.17g", ",", header="y,a,b", comments="")
    options = ["--label", "y", "--score", "a", "--score", "b", "--format", "json"]
    result = CliRunner().invoke(main, ["compare", str(path), *options], catch_exceptions=False)
    found = json.loads(result.stdout)
    library = compare(y, a, b, rng=0)
    assert found["n_resamples"] == library.n_resamples == 0
    assert found["results"][0]["lower"] == library.lower
    assert found["results"][0]["rounding"] == library.rounding


def test_several_models_share_the_confidence():
    y, a, b = two_models(11)
    together = compare_all(y, {"a": a, "b": b, "c": a**2}, **SPLIT)
    alone = compare(y, a, b, confidence_level=1 - 0.05 / 3, **SPLIT)
    pair = together.pairs["a", "b"]
    assert (pair.lower, pair.upper) == pytest.approx((alone.lower, alone.upper), abs=1e-12)
    assert pair.pvalue == pytest.approx(min(1, 3 * alone.pvalue))


PAIRS = {
    "calibrated": (lambda f: f, lambda f: np.floor(5 * f) / 5 + 0.1),
    "one": (lambda f: f, lambda f: 0.5 + (f - 0.5) * 0.4),
    "both": (lambda f: np.clip(f + 0.1, 0, 1), lambda f: np.clip(f - 0.1, 0, 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAIRS)
def test_coverage(kind):
    """At 80% no more than a fifth of the intervals may miss; 240 data sets."""
    first, second = PAIRS[kind]
    grid = (np.arange(20_000) + 0.5) / 20_000
    values = [
        caldist.smooth_ce(
            np.tile([0, 1], grid.size),
            model(grid).repeat(2),
            sample_weight=np.column_stack((1 - grid, grid)).ravel(),
        )
        for model in (first, second)
    ]
    true, missed = values[0] - values[1], 0
    for seed in range(240):
        rng = np.random.default_rng([seed, 99])
        f = rng.random(500)
        y = rng.random(500) < f
        found = compare(y, first(f), second(f), confidence_level=0.8, method="cross_fit", rng=seed)
        missed += not found.lower - 1e-6 <= true <= found.upper + 1e-6
    assert missed / 240 <= 0.2 + 2 * math.sqrt(0.2 * 0.8 / 240)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"method": "bootstrap"}, "method is 'bootstrap': it must be one of 'auto', 'resampling'"),
        ({"method": None}, "method is None"),
    ],
)
def test_bad_options_are_named(options, expected):
    y, a, b = two_models(12, 40)
    with pytest.raises(ValueError, match=expected):
        compare(y, a, b, **options)
    with pytest.raises(ValueError, match=expected):
        compare_all(y, {"a": a, "b": b}, **options)


def test_many_models_share_what_belongs_to_one_of_them(monkeypatch):
    """The witnesses and rates of a model are found once, however many pairs it is in."""
    rng = np.random.default_rng(8)
    p = rng.random(2_000)
    y = rng.random(2_000) < p**2
    models = {f"m{at}": np.clip(p + 0.03 * rng.standard_normal(2_000), 0, 1) for at in range(5)}
    calls = {"_candidates": [], "cells_of": []}
    found = _cross_fit_differences._Splits._candidates
    cells_of = _cross_fit_differences.cells_of
    monkeypatch.setattr(
        _cross_fit_differences._Splits,
        "_candidates",
        lambda self, b: calls["_candidates"].append(b) or found(self, b),
    )
    monkeypatch.setattr(
        _cross_fit_differences,
        "cells_of",
        lambda units: calls["cells_of"].append(units) or cells_of(units),
    )
    together = compare_all(y, models, method="cross_fit", rng=0)
    assert sorted(calls["_candidates"]) == list(range(5))
    assert len(calls["cells_of"]) == 5
    alone = compare(y, models["m1"], models["m3"], method="cross_fit", rng=0)
    assert together.pairs["m1", "m3"].difference == alone.difference


def test_merging_two_supports():
    first, second = np.array([0.1, 0.2, 0.5]), np.array([0.0, 0.2, 0.7])
    support, of_first, of_second = merged(first, second)
    assert support.tolist() == [0.0, 0.1, 0.2, 0.5, 0.7]
    assert of_first.tolist() == [1, 2, 3]
    assert of_second.tolist() == [0, 2, 4]
