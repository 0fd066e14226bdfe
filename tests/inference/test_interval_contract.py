"""What intervals promise around their recipes: seeds, summaries, refusals; and the bracket."""

import math
from importlib import import_module
from statistics import NormalDist

import numpy as np
import pytest

import caldist
from caldist._util.numbers import least, most
from caldist.inference import confidence_interval, resampling
from caldist.kernels import loader
from caldist.measures.lower_distance import TOLERANCE
from interval_cases import FUNCTIONS, MEASURES, few_rows, interval, rows
from strategies import family

# -- seeds and threads -----------------------------------------------------------------------------


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_same_seed_same_interval_whatever_the_number_of_threads(measure, monkeypatch):
    y, p = rows(100)
    found = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(resampling, "_THREADED", 0)
        monkeypatch.setattr(resampling, "thread_count", lambda cores=cores: cores)
        found.append(interval(y, p, measure, rng=5))
        found.append(interval(y, p, measure, rng=np.random.default_rng(5)))
    assert all(other == found[0] for other in found)


def test_other_seeds_give_other_intervals():
    y, p = rows(100, power=3.0)
    assert interval(y, p, rng=1).lower != interval(y, p, rng=2).lower
    assert interval(y, p, rng=None).lower != interval(y, p, rng=None).lower


def test_an_interrupt_in_a_replicate_comes_through(monkeypatch):
    def interrupted(_self, _masses, _threshold):
        raise KeyboardInterrupt

    module = import_module("caldist.measures.smooth_ce")
    monkeypatch.setattr(module.SmoothNorm, "unless_below", interrupted)
    with pytest.raises(KeyboardInterrupt):
        interval(*rows())


# -- summaries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_the_interval_of_a_joint_is_that_of_its_rows(measure):
    y, p = rows(90)
    for predictions in (p, np.round(p, 1)):
        joint = caldist.Joint.from_arrays(y, predictions)
        found = confidence_interval(joint, measure=measure, n_resamples=99, rng=0)
        assert found == interval(y, predictions, measure)


@pytest.mark.parametrize("measure", ["smooth_ce", "kernel_ce", "lower_distance", "brier_score"])
def test_rounding_moves_both_ends_by_its_certified_effect(measure):
    grid = caldist.Joint.from_arrays(*rows(400, power=2.0)).coarsen(5)
    arrays = grid.prediction, grid.mass0, grid.mass1
    exact = caldist.Joint.from_masses(*arrays, n_rows=400)
    radius = caldist.Joint.from_masses(*arrays, n_rows=400, radius=0.01)
    still = confidence_interval(exact, measure=measure, n_resamples=99, rng=0)
    for rounded in (grid, radius):
        found = confidence_interval(rounded, measure=measure, n_resamples=99, rng=0)
        effect = caldist.evaluate(rounded, measures=[measure])[measure]
        assert found.value == effect.value
        high, low = (
            still.upper - still.value + effect.upper,
            still.lower - still.value + effect.lower,
        )
        assert found.upper == pytest.approx(high, abs=2 * TOLERANCE)
        assert found.lower == pytest.approx(max(0.0, low))


def test_rounding_widens_the_intervals_of_binned_measures():
    grid = caldist.Joint.from_arrays(*rows(400, power=2.0)).coarsen(10)
    exact = caldist.Joint.from_masses(grid.prediction, grid.mass0, grid.mass1, n_rows=400)
    for measure in ("random_interval_ce", "surrogate_interval_ce", "interval_ce"):
        still, found = (
            confidence_interval(joint, measure=measure, n_resamples=99, rng=0)
            for joint in (exact, grid)
        )
        assert found.value == pytest.approx(still.value, abs=1e-3)
        assert found.lower < still.lower
        assert found.upper > still.upper


def test_many_rows_in_few_cells():
    masses = [0.1, 0.5, 0.9], [9e8, 5e8, 1e8], [1e8, 5e8, 9e8]
    joint = caldist.Joint.from_masses(*masses, n_rows=3 * 10**9)
    found = confidence_interval(joint, n_resamples=199, rng=0)
    assert found.lower == 0
    assert found.upper < 1e-4


def test_joints_that_do_not_say_how_many_rows_they_have_are_refused():
    """Whole numbers are no exception: they may be weights."""
    for masses in (([0.5, 20], [30, 40]), ([5, 20], [30, 40])):
        joint = caldist.Joint.from_masses([0.1, 0.5], *masses)
        for statement in (confidence_interval, caldist.calibration_test):
            with pytest.raises(ValueError, match=r"do not say how many rows.*Pass n_rows"):
                statement(joint)
    with pytest.raises(ValueError, match="no rows"):
        confidence_interval(caldist.Joint.empty())


@pytest.mark.slow
@pytest.mark.parametrize("bits", [None, 12])
@pytest.mark.parametrize("kind", ["continuous", "whole", "large"])
def test_the_interval_of_a_weighted_summary_is_about_that_of_its_rows(kind, bits):
    rng = np.random.default_rng(2)
    y, p = rows(600, power=1.6)
    weight = {
        "continuous": rng.random(600) + 0.2,
        "whole": rng.integers(1, 5, 600).astype(float),
        "large": rng.integers(1, 5, 600) * 1e9,
    }[kind]
    joint = caldist.Joint.from_arrays(y, p, sample_weight=weight)
    joint = joint if bits is None else joint.coarsen(bits)
    assert joint.n_rows == 600
    for measure in MEASURES:
        if bits is not None and measure.name in {"weighted_ce", "kernel_ce"} and measure.options:
            continue  # what rounding does to them is not known
        of_rows = interval(y, p, measure, sample_weight=weight, n_resamples=399)
        found = confidence_interval(joint, measure=measure, n_resamples=399, rng=0)
        width = of_rows.upper - of_rows.lower
        assert found.value == pytest.approx(of_rows.value, abs=1e-3)
        assert found.upper == pytest.approx(of_rows.upper, abs=0.05 * width)
        assert found.lower == pytest.approx(of_rows.lower, abs=0.12 * width)


def test_ten_rows_of_weight_1000_are_ten_rows():
    y, p = [0, 1] * 5, np.linspace(0.05, 0.95, 10)
    weight = np.full(10, 1000.0)
    joint = caldist.Joint.from_arrays(y, p, sample_weight=weight).coarsen(16)
    with pytest.warns(UserWarning, match="of 10 effective rows have label 1"):
        found = confidence_interval(joint, rng=0)
    with pytest.warns(UserWarning, match="of 10 rows have label 1"):
        of_rows = confidence_interval(y, p, sample_weight=weight, rng=0)
    assert found.lower == of_rows.lower == 0
    assert found.upper == pytest.approx(of_rows.upper, abs=1e-3)


@pytest.mark.parametrize(
    "measure",
    [
        caldist.weighted_ce.using(functions=FUNCTIONS),
        caldist.kernel_ce.using(kernel="gaussian"),
        caldist.kernel_ce.using(bandwidth=0.5),
    ],
    ids=str,
)
def test_rounding_without_a_bound_is_refused(measure):
    joint = caldist.Joint.from_arrays(*rows(50)).coarsen(6)
    with pytest.raises(ValueError, match=rf"rounded.*{measure.name}.*not bounded\. Use"):
        confidence_interval(joint, measure=measure, n_resamples=99)


# -- refusals and warnings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        ("ece", "same samples but another value.*measure='distance'"),
        ("upper_distance", "same samples but another value.*measure='distance'"),
        ("binned_ece", "jumps.*random_interval_ce"),
        ("debiased_ece", "no recipe.*smooth_ce"),
        ("ecce_mad", "no recipe.*calibration_test"),
        ("kernel_smoothed_ece", "no recipe.*smooth_ce"),
        ("log_loss", "no recipe"),
    ],
)
def test_measures_without_an_interval_say_why_and_what_to_use(measure, reason):
    with pytest.raises(ValueError, match=f"measure is '{measure}': it has no valid .*{reason}"):
        confidence_interval(*rows(), measure=measure)
    joint = caldist.Joint.from_arrays(*rows())
    with pytest.raises(ValueError, match="no valid confidence interval"):
        confidence_interval(joint, measure=measure)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"measure": "nonsense"}, ValueError, "measure is 'nonsense'.*one of the names distance"),
        ({"measure": "true_distance"}, ValueError, "measure is 'true_distance'.*brier_score"),
        ({"measure": 3}, ValueError, "measure is 3"),
        ({"confidence_level": 1.0}, ValueError, "confidence_level is 1.0"),
        ({"confidence_level": 95}, ValueError, "confidence_level is 95"),
        ({"method": "bootstrap"}, ValueError, "method is 'bootstrap'.*'finite_sample'"),
        ({"n_resamples": 0}, ValueError, "n_resamples is 0"),
        ({"n_resamples": 38}, ValueError, "n_resamples is 38.*at least 39"),
        ({"n_resamples": 10**12}, ValueError, "n_resamples is 10{12}: it must be at most"),
        ({"confidence_level": 1 - 2**-53}, ValueError, "n_resamples is 999.*Lower confidence_"),
        ({"rng": "seed"}, TypeError, "rng is 'seed'"),
        ({"progress": 1}, TypeError, "progress is 1"),
        ({"clusters": [1, 2]}, ValueError, "clusters has 2 values"),
        ({"measure": caldist.lower_distance.using(tol=-1)}, ValueError, "tol is -1"),
        ({"measure": caldist.kernel_ce.using(squared=True)}, ValueError, "squared is True"),
        ({"measure": caldist.random_interval_ce.using(add_width=True)}, ValueError, "add_width"),
        ({"measure": "weighted_ce"}, TypeError, r"needs functions. Pass .*using\(functions=…\)"),
    ],
)
def test_bad_options(options, error, match):
    with pytest.raises(error, match=match):
        confidence_interval(*rows(), **options)


def test_few_rows_of_a_label_or_few_clusters_warn():
    rng = np.random.default_rng(0)
    p = np.full(200, 0.02)
    y = np.zeros(200, dtype=int)
    y[:3] = 1
    with pytest.warns(UserWarning, match="only 3 of 200 rows have label 1.*less often") as caught:
        confidence_interval(y, p, n_resamples=99, rng=0)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="only 3 of 200 rows have label 0"):
        interval(1 - y, 1 - p, "brier_score")
    with pytest.warns(UserWarning, match="only 4 clusters"):
        interval(*rows(100), clusters=rng.integers(0, 4, 100))
    y[:30] = 1  # thirty rows of label 1, but all in three clusters
    with pytest.warns(UserWarning, match="only 3 of 20 clusters have label 1: with fewer"):
        interval(y, p, clusters=np.arange(200) // 10)
    y[3:] = 0
    with pytest.warns(UserWarning, match="only 3 of 200 rows have label 1"):
        confidence_interval(y, p, measure="distance", n_resamples=99)
    with pytest.warns(UserWarning, match="only 9 of 100 rows"):
        interval(*np.array([[1] * 9 + [0] * 91, [0.1] * 100]))
    # rows without weight are not there
    weight = np.ones(100)
    weight[:95] = 0
    with pytest.warns(UserWarning, match="of 5 rows"):
        interval(*rows(100), sample_weight=weight)


def test_what_is_proved_for_any_number_of_rows_does_not_warn():
    y, p = [1, 0, 0], [0.2, 0.4, 0.1]
    found = confidence_interval(y, p, method="finite_sample", clusters=[1, 1, 2])
    assert (found.lower, found.upper) == (0, 1)
    joint = caldist.Joint.from_arrays(y, p)
    assert confidence_interval(joint, method="finite_sample").upper == 1
    with pytest.warns(UserWarning, match="only 1 of 3 rows have label 1") as caught:
        confidence_interval(joint, n_resamples=99, rng=0)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("level", [1e-300, 1 - 2**-53])
def test_levels_next_to_0_and_1(level):
    """The Brier score and proved limits need no replicates, so every level has an interval."""
    y, p = rows(100)
    found = interval(y, p, "brier_score", confidence_level=level)
    assert 0 <= found.lower < found.value < found.upper < 1
    for measure in ("smooth_ce", "lower_distance", "surrogate_interval_ce"):
        found = interval(y, p, measure, confidence_level=level, method="finite_sample")
        assert 0 == found.lower < found.upper <= 1


# -- the distance itself ---------------------------------------------------------------------------


def test_the_distance_has_limits_where_measures_have_them():
    y, p = rows(40)
    assert interval(y, p, "distance").value is None
    with pytest.raises(caldist.InvalidInput, match="Use measure='lower_distance'") as caught:
        confidence_interval(y, p, measure="distance", method="finite_sample")
    assert (caught.value.argument, caught.value.value) == ("method", "finite_sample")


def _coarse_upper(y, p):
    """Return an upper limit of the distance by bins of fixed widths, at level 90%."""
    sigma = math.sqrt(np.mean((y - p) ** 2) / y.size)
    best = min(caldist.random_interval_ce(y, p, width=2.0**-k) + 2.0**-k / 2 for k in range(6))
    return best + NormalDist().inv_cdf(1 - 0.1 / 12) * sigma


def test_the_distance_of_the_population():
    y, p = rows(300, power=2.0)
    options = {"measure": "distance", "confidence_level": 0.9, "n_resamples": 199, "rng": 0}
    found = confidence_interval(y, p, **options)
    assert (found.measure, found.value, found.confidence_level) == ("distance", None, 0.9)
    assert (found.method, found.n_resamples) == ("resampling", 199)
    lower = interval(y, p, "lower_distance", confidence_level=0.9, n_resamples=199)
    assert found.lower == lower.lower
    assert caldist.upper_distance(y, p) < found.upper < 0.9 * _coarse_upper(y, p)
    words = str(found)
    assert "With 90% confidence" in words
    assert f"at least {least(found.lower)} and at most {most(found.upper)}" in words
    assert found == confidence_interval(y, p, **options)
    wider = confidence_interval(y, p, **options, clusters=np.arange(300) // 4)
    assert wider.upper > found.upper


@few_rows
def test_the_distance_of_degenerate_samples():
    for y, p in (([1], [0.3]), ([0] * 5, [0.0] * 5), ([0, 1], [1.0, 0.0])):
        found = interval(y, p, "distance", confidence_level=0.9)
        assert 0 <= found.lower <= found.upper <= 1


def test_the_interval_holds_a_known_distance():
    """Predictions 0.1 too high everywhere: the distance is 0.1 whatever the domain."""
    rng = np.random.default_rng(1)
    missed = 0
    for trial in range(30 if loader.COMPILED else 5):
        f = rng.uniform(0.2, 0.8, 80)
        y = (rng.random(80) < f).astype(int)
        found = confidence_interval(
            y, f + 0.1, measure="distance", confidence_level=0.9, n_resamples=59, rng=trial
        )
        missed += not found.lower <= 0.1 <= found.upper
    assert missed <= 6


@few_rows
@pytest.mark.parametrize("name", ["beta3", "tied", "one class", "one sided"])
def test_intervals_on_every_family(name):
    y, p = family(name, 60, np.random.default_rng(0))
    for measure in MEASURES:
        found = interval(y, p, measure)
        assert 0 <= found.lower <= found.upper <= 1
