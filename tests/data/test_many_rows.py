"""Many rows go onto a grid: what is said stays true of the rows, and costs what a summary costs."""

import dataclasses
import importlib
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import caldist
from caldist.clinical.calibration_summary import summary_of
from caldist.data.rows import Rows
from caldist.inference import _grid, confidence_interval
from caldist.inference.resampling import Resampler
from caldist.inference.sample import Units, units_of
from caldist.kernels.loader import COMPILED


def test_a_report_of_many_rows_shows_the_rows_values(monkeypatch):
    monkeypatch.setattr(_grid, "MANY", 3_000)
    rng = np.random.default_rng(5)
    p = rng.beta(0.3, 0.3, 4_000)
    y = rng.random(p.size) < p**0.8
    [model] = caldist.report(y, p, n_resamples=59, rng=0).models
    shown = {line.name: line.value for line in model.measures}
    assert shown["smooth_ce"] == caldist.smooth_ce(y, p)
    assert shown["binned_ece"] == pytest.approx(caldist.binned_ece(y, p), rel=1e-14)


# -- memory ------------------------------------------------------------------------------------


def many_rows(n):
    rng = np.random.default_rng(3)
    p = rng.random(n)
    return (rng.random(n) < p).astype(np.uint8), p


@pytest.mark.skipif(not COMPILED, reason="plain kernels make numbers of every value")
def test_clinical_measures_need_few_copies_of_the_rows():
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
    units = units_of(Rows.of([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4]))
    assert units.count.strides == units.share.strides == units.mass.strides == (0,)
    tied = units_of(Rows.of([0, 1, 1, 0], [0.1, 0.1, 0.1, 0.4]))
    assert tied.count.tolist() == [2, 1, 1]
    assert tied.mass.tolist() == [0.5, 0.25, 0.25]


def test_parts_of_units_are_all_of_them(monkeypatch):
    monkeypatch.setattr("caldist.inference.sample._PART", 3)
    rng = np.random.default_rng(1)
    units = units_of(Rows.of(rng.integers(0, 2, 40), rng.random(40)))
    parts = list(units.parts())
    assert len(parts) == 14
    for name in ("place", "label", "count", "share", "mass"):
        together = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(together, getattr(units, name))
    clustered = units_of(Rows.of([0, 1, 0, 1, 1], np.arange(5) / 5, clusters=[0, 0, 1, 1, 2]))
    assert list(clustered.parts()) == [clustered]


@pytest.mark.parametrize("name", ["logistic._PART", "calibration_summary._BLOCK"])
def test_parts_change_no_summary(name, monkeypatch):
    y, p = many_rows(3_000)
    whole = caldist.clinical.calibration_summary(y, p, n_resamples=99, rng=0)
    module = importlib.import_module(f"caldist.clinical.{name.partition('.')[0]}")
    monkeypatch.setattr(module, name.partition(".")[2], 700)
    monkeypatch.setattr("caldist.inference.sample._PART", 700)
    parts = caldist.clinical.calibration_summary(y, p, n_resamples=99, rng=0)
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
def test_many_rows_have_the_limits_of_a_fine_summary(measure):
    y, p = many_rows(120_000)
    found = confidence_interval(y, p, measure=measure, rng=0)
    summary = caldist.Joint.from_arrays(y, p).coarsen(20)
    expected = confidence_interval(summary, measure=measure, rng=0)
    assert (found.method, found.rounding) == ("cross_fit", 0)
    assert found.value == getattr(caldist.measures, measure)(y, p)
    # The upper end of a summary has the tolerance of the solver, 1e-6, in it.
    assert (found.lower, found.upper) == pytest.approx((expected.lower, expected.upper), abs=2e-6)


@pytest.mark.skipif(not COMPILED, reason="120,000 rows")
@pytest.mark.parametrize("measure", ["smooth_ce", "kernel_ce", "lower_distance"])
def test_a_summary_widens_no_interval_of_rare_labels_with_weights(measure):
    """Frequencies of labels are by weight, whatever the effective rows of cells."""
    rng = np.random.default_rng(0)
    p = np.minimum(5e-3 * np.exp(rng.normal(-0.5, 1, 120_000)), 0.5)
    y, weight = rng.random(p.size) < p, 10 ** rng.uniform(0, 4, p.size)
    settings = {"measure": measure, "method": "cross_fit", "rng": 0}
    rows = Rows.of(y, p, sample_weight=weight)
    of_rows = confidence_interval(rows, **settings)
    summary = Rows.of(rows.joint.coarsen(16))
    # A summary only knows a bound of the largest weight.
    summary.cache[Units] = dataclasses.replace(
        units_of(summary), heaviest=units_of(rows).largest_share
    )
    found = confidence_interval(summary, **settings)
    assert found.rounding > 0 == of_rows.rounding
    assert found.upper - found.lower == pytest.approx(of_rows.upper - of_rows.lower, rel=0.01)
