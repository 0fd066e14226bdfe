"""Many rows go onto a grid: what is said stays true of the rows, and costs what a summary costs."""

import importlib
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import caldist
from caldist._kernels import COMPILED
from caldist.data.rows import Rows
from caldist.inference import _grid, confidence_interval
from caldist.inference._resampling import Resampler
from caldist.inference.calibration_summary import summary_of

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
    if weighted:  # rows know the largest weight, of which a summary knows a bound
        assert expected.lower <= found.lower < found.upper < expected.upper
        rows = confidence_interval(y, p, grid=None, **options, **weights)
        assert found.upper == pytest.approx(rows.upper, rel=2e-3)  # the lower end has other parts
    else:
        assert (found.lower, found.upper) == (expected.lower, expected.upper)
    assert found.value == pytest.approx(getattr(caldist, measure)(y, p, **weights), rel=1e-14)
    assert found.rounding <= 0.01 * (found.upper - found.lower)
    assert found.rounding > 0 or measure == "brier_score"


@pytest.mark.parametrize("measure", ["smooth_ce", "random_interval_ce"])
@pytest.mark.parametrize("law", [*LAWS, "close"])
def test_replicates_are_made_on_few_cells_where_that_changes_little(law, measure, many):
    """Predictions that lie close together get more bits, so that the rows are not needed."""
    y, p, _ = sample("spread" if law == "close" else law)
    p = 0.3 + p * 2.0**-20 if law == "close" else p
    options = {"measure": measure, "method": "resampling", "n_resamples": 99, "rng": 0}
    found = confidence_interval(y, p, **options)
    rows = confidence_interval(y, p, grid=None, **options)
    assert 0 < found.rounding <= 0.01 * (found.upper - found.lower)
    assert (rows.rounding, rows.value) == (0, found.value)
    wide = rows.upper - rows.lower
    assert (found.lower, found.upper) == pytest.approx((rows.lower, rows.upper), abs=0.35 * wide)


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


# -- memory ------------------------------------------------------------------------------------


def many_rows(n):
    rng = np.random.default_rng(3)
    p = rng.random(n)
    return (rng.random(n) < p).astype(np.uint8), p


@pytest.mark.skipif(not COMPILED, reason="plain kernels make numbers of every value")
def test_the_words_of_medicine_need_few_copies_of_the_rows():
    y, p = many_rows(400_000)
    rows = Rows.of(y, p)
    assert rows.joint.prediction.size == y.size
    resampler = Resampler.of(0, n_resamples=99)
    summary_of(Rows.of(*many_rows(500)), "loess", 0.95, resampler)  # loads what is loaded later
    tracemalloc.start()
    summary_of(rows, "loess", 0.95, resampler)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Three columns of units and seven of the smoother; there were twenty.
    assert peak <= 12 * 8 * y.size


def test_what_rows_have_in_common_is_not_written_out():
    units = Rows.of([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4]).units
    assert units.count.strides == units.share.strides == units.mass.strides == (0,)
    tied = Rows.of([0, 1, 1, 0], [0.1, 0.1, 0.1, 0.4]).units
    assert tied.count.tolist() == [2, 1, 1]
    assert tied.mass.tolist() == [0.5, 0.25, 0.25]


def test_parts_of_units_are_all_of_them(monkeypatch):
    monkeypatch.setattr("caldist.data.units._PART", 3)
    rng = np.random.default_rng(1)
    units = Rows.of(rng.integers(0, 2, 40), rng.random(40)).units
    parts = list(units.parts())
    assert len(parts) == 14
    for name in ("place", "label", "count", "share", "mass"):
        together = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(together, getattr(units, name))
    clustered = Rows.of([0, 1, 0, 1, 1], np.arange(5) / 5, clusters=[0, 0, 1, 1, 2]).units
    assert list(clustered.parts()) == [clustered]


@pytest.mark.parametrize("name", ["_logistic._PART", "calibration_summary._BLOCK"])
def test_parts_change_no_summary(name, monkeypatch):
    y, p = many_rows(3_000)
    whole = caldist.calibration_summary(y, p, n_resamples=99, rng=0)
    module = importlib.import_module(f"caldist.inference.{name.partition('.')[0]}")
    monkeypatch.setattr(module, name.partition(".")[2], 700)
    monkeypatch.setattr("caldist.data.units._PART", 700)
    parts = caldist.calibration_summary(y, p, n_resamples=99, rng=0)
    for key, estimate in whole.estimates.items():
        again = parts.estimates[key]
        for end in ("value", "lower", "upper"):
            assert getattr(again, end) == pytest.approx(getattr(estimate, end), rel=1e-11)
    assert parts.test.pvalue == pytest.approx(whole.test.pvalue, rel=1e-9)


@pytest.mark.slow
def test_a_report_needs_no_solver():
    """scipy.optimize takes 40 MB and half a second, and only few points need it."""
    code = (
        "import sys, numpy as np, caldist\n"
        "p = np.linspace(0.01, 0.99, 200)\n"
        "caldist.report((p * 997) % 1 < p, p, n_resamples=39)\n"
        "print(*(name for name in sys.modules if name.startswith('scipy.')))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"scipy.optimize", "scipy.special"} & set(done.stdout.split())


@pytest.mark.skipif(not COMPILED, reason="120,000 rows")
@pytest.mark.parametrize("measure", ["smooth_ce", "kernel_ce", "lower_distance"])
def test_a_grid_widens_no_interval_of_rare_labels_with_weights(measure):
    """Frequencies of labels are by weight, whatever the effective rows of cells."""
    rng = np.random.default_rng(0)
    p = np.minimum(5e-3 * np.exp(rng.normal(-0.5, 1, 120_000)), 0.5)
    y, weight = rng.random(p.size) < p, 10 ** rng.uniform(0, 4, p.size)
    settings = {"measure": measure, "sample_weight": weight, "method": "split", "rng": 0}
    of_rows = caldist.confidence_interval(y, p, grid=None, **settings)
    found = caldist.confidence_interval(y, p, **settings)
    assert found.rounding > 0
    assert found.upper - found.lower == pytest.approx(of_rows.upper - of_rows.lower, rel=0.01)
