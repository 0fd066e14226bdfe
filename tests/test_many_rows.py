"""Many rows go onto a grid: what is said stays true of the rows, and costs what a summary costs."""

import numpy as np
import pytest

import caldist
from caldist.inference import _grid, confidence_interval

LAWS = {
    "spread": lambda rng: rng.random(4_000),
    "rare": lambda rng: rng.beta(0.5, 30, 4_000),
    "polarised": lambda rng: rng.beta(0.3, 0.3, 4_000),
}


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(_grid, "MANY", 3_000)


def sample(law, weighted=False):
    rng = np.random.default_rng(5)
    p = LAWS[law](rng)
    y = rng.random(p.size) < p**0.8
    return y, p, {"sample_weight": 0.5 + rng.random(p.size)} if weighted else {}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", ["smooth_ce", "kernel_ce", "lower_distance", "brier_score"])
@pytest.mark.parametrize("law", LAWS)
def test_intervals_are_those_of_the_summary_and_the_value_that_of_the_rows(
    law, measure, weighted, many
):
    y, p, weights = sample(law, weighted)
    options = {"measure": measure, "method": "split", "rng": 0}
    found = confidence_interval(y, p, **options, **weights)
    joint = caldist.Joint.from_arrays(y, p, **weights).coarsen(16)
    expected = confidence_interval(joint, **options)
    assert (found.lower, found.upper) == (expected.lower, expected.upper)
    assert found.value == pytest.approx(getattr(caldist, measure)(y, p, **weights), rel=1e-14)
    assert found.rounding <= 0.01 * (found.upper - found.lower)
    assert found.rounding > 0 or measure == "brier_score"


def test_a_bracket_is_that_of_the_summary(many):
    y, p, _ = sample("spread")
    found = caldist.distance_bracket(y, p, confidence_level=0.9, n_resamples=39, rng=0)
    joint = caldist.Joint.from_arrays(y, p)
    options = {"confidence_level": 0.9, "n_resamples": 39, "rng": 0}
    assert found == caldist.distance_bracket(joint.coarsen(16), **options)
    rows = caldist.distance_bracket(joint, grid=None, **options)
    assert rows.rounding == 0
    assert rows.lower == pytest.approx(found.lower, abs=5e-3)


def test_rows_are_used_where_rounding_would_show(many, monkeypatch):
    monkeypatch.setattr("caldist.inference.intervals.SHARE", 0.0)
    y, p, _ = sample("spread")
    options = {"n_resamples": 39, "rng": 0}
    found = confidence_interval(y, p, **options)
    assert found == confidence_interval(y, p, grid=None, **options)
    assert found.rounding == 0


def test_clusters_need_their_rows(many):
    y, p, _ = sample("spread")
    options = {"clusters": np.arange(p.size) // 4, "method": "split", "rng": 0}
    found = confidence_interval(y, p, **options)
    assert found == confidence_interval(y, p, grid=None, **options)


def test_a_few_different_predictions_are_their_own_grid(many):
    y, p, _ = sample("spread")
    found = confidence_interval(y, p.round(2), method="split", rng=0)
    assert found.rounding == 0


def test_a_report_of_many_rows_shows_the_rows_values(many):
    y, p, _ = sample("polarised")
    [model] = caldist.report(y, p, n_resamples=59, rng=0).models
    shown = {line.name: line.value for line in model.measures}
    assert shown["smooth_ce"] == caldist.smooth_ce(y, p)
    assert shown["binned_ece"] == caldist.binned_ece(y, p)


@pytest.mark.parametrize("call", [confidence_interval, caldist.distance_bracket])
def test_a_wrong_grid_is_named(call):
    with pytest.raises(ValueError, match=r"grid is 'fine'.*'auto', None"):
        call([0, 1, 1], [0.2, 0.5, 0.9], grid="fine")
