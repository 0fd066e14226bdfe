"""What intervals promise around their recipes: seeds, summaries, refusals; and the bracket."""

import math
from statistics import NormalDist

import numpy as np
import pytest

import caldist
from caldist import _kernels
from caldist.inference import (
    PopulationBracket,
    _resampling,
    confidence_interval,
    confidence_interval_of,
    distance_bracket,
)
from caldist.measures.certification import sample_bracket
from caldist.measures.lower_distance import TOLERANCE
from strategies import family
from test_intervals import FUNCTIONS, MEASURES, few_rows, interval, rows

# -- seeds and threads -----------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "options"), MEASURES)
def test_same_seed_same_interval_whatever_the_number_of_threads(measure, options, monkeypatch):
    y, p = rows(100)
    found = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(_resampling, "_THREADED", 0)
        monkeypatch.setattr(_resampling, "_cores", lambda cores=cores: cores)
        found.append(interval(y, p, measure, rng=5, **options))
        found.append(interval(y, p, measure, rng=np.random.default_rng(5), **options))
    assert all(other == found[0] for other in found)


def test_other_seeds_give_other_intervals():
    y, p = rows(100, power=3.0)
    assert interval(y, p, rng=1).low != interval(y, p, rng=2).low
    assert interval(y, p, rng=None).low != interval(y, p, rng=None).low


def test_an_interrupt_in_a_replicate_comes_through(monkeypatch):
    def interrupted(_self, _masses, _threshold):
        raise KeyboardInterrupt

    monkeypatch.setattr("caldist.inference._norms.SmoothNorm.unless_below", interrupted)
    with pytest.raises(KeyboardInterrupt):
        interval(*rows())


# -- summaries -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "options"), MEASURES)
def test_the_interval_of_a_joint_is_that_of_its_rows(measure, options):
    y, p = rows(90)
    for predictions in (p, np.round(p, 1)):
        joint = caldist.Joint.from_arrays(y, predictions)
        found = confidence_interval_of(joint, measure=measure, n_resamples=99, rng=0, **options)
        assert found == interval(y, predictions, measure, **options)


@pytest.mark.parametrize("measure", ["smooth_ce", "kernel_ce", "lower_distance", "brier_score"])
def test_rounding_moves_both_ends_by_its_certified_effect(measure):
    grid = caldist.Joint.from_arrays(*rows(400, power=2.0)).coarsen(5)
    exact = caldist.Joint.from_masses(grid.prediction, grid.mass0, grid.mass1)
    radius = caldist.Joint.from_masses(exact.prediction, exact.mass0, exact.mass1, radius=0.01)
    still = confidence_interval_of(exact, measure=measure, n_resamples=99, rng=0)
    for rounded in (grid, radius):
        found = confidence_interval_of(rounded, measure=measure, n_resamples=99, rng=0)
        effect = caldist.evaluate(rounded, measures=[measure])[measure]
        assert found.value == effect.value
        high, low = still.high - still.value + effect.upper, still.low - still.value + effect.lower
        assert found.high == pytest.approx(high, abs=2 * TOLERANCE)
        assert found.low == pytest.approx(max(0.0, low))


def test_rounding_widens_the_intervals_of_binned_measures():
    grid = caldist.Joint.from_arrays(*rows(400, power=2.0)).coarsen(10)
    exact = caldist.Joint.from_masses(grid.prediction, grid.mass0, grid.mass1)
    for measure in ("random_interval_ce", "surrogate_interval_ce", "interval_ce"):
        still, found = (
            confidence_interval_of(joint, measure=measure, n_resamples=99, rng=0)
            for joint in (exact, grid)
        )
        assert found.value == pytest.approx(still.value, abs=1e-3)
        assert found.low < still.low
        assert found.high > still.high


def test_many_rows_in_few_cells():
    joint = caldist.Joint.from_masses([0.1, 0.5, 0.9], [9e8, 5e8, 1e8], [1e8, 5e8, 9e8])
    found = confidence_interval_of(joint, n_resamples=199, rng=0)
    assert found.low == 0
    assert found.high < 1e-4
    with pytest.raises(ValueError, match=r"masses of joint are weights.*sample_weight"):
        confidence_interval_of(caldist.Joint.from_masses([0.1, 0.5], [0.5, 20], [30, 40]))


def test_joints_that_do_not_count_rows_are_refused():
    y, p = rows(50)
    for weight in (np.full(50, 0.5), np.full(50, 2.0)):
        joint = caldist.Joint.from_arrays(y, p, sample_weight=weight)
        with pytest.raises(ValueError, match="weights, not numbers of rows"):
            confidence_interval_of(joint)
    with pytest.raises(TypeError, match=r"joint is \[0, 1\]; it must be a caldist.Joint"):
        confidence_interval_of([0, 1])
    with pytest.raises(ValueError, match="no rows"):
        confidence_interval_of(caldist.Joint.empty())


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        ("weighted_ce", {"functions": FUNCTIONS}),
        ("kernel_ce", {"kernel": "gaussian"}),
        ("kernel_ce", {"bandwidth": 0.5}),
    ],
)
def test_rounding_without_a_bound_is_refused(measure, options):
    joint = caldist.Joint.from_arrays(*rows(50)).coarsen(6)
    with pytest.raises(ValueError, match=f"rounded.*{measure}.*not bounded: use"):
        confidence_interval_of(joint, measure=measure, n_resamples=99, **options)


# -- refusals and warnings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        ("ece", "same samples but another value.*distance_bracket"),
        ("upper_distance", "same samples but another value.*distance_bracket"),
        ("true_distance", "depends on the domain.*distance_bracket"),
        ("binned_ece", "jumps.*random_interval_ce"),
        ("debiased_ece", "no recipe.*smooth_ce"),
        ("ecce_mad", "no recipe.*calibration_test"),
        ("kernel_smoothed_ece", "no recipe.*smooth_ce"),
        ("log_loss", "no recipe"),
    ],
)
def test_measures_without_an_interval_say_why_and_what_to_use(measure, reason):
    with pytest.raises(ValueError, match=f"measure is '{measure}', which has no valid .*{reason}"):
        confidence_interval(*rows(), measure=measure)
    joint = caldist.Joint.from_arrays(*rows())
    with pytest.raises(ValueError, match="no valid confidence interval"):
        confidence_interval_of(joint, measure=measure)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"measure": "nonsense"}, ValueError, "measure is 'nonsense'.*'smooth_ce'"),
        ({"measure": 3}, ValueError, "measure is 3"),
        ({"confidence_level": 1.0}, ValueError, "confidence_level is 1.0"),
        ({"confidence_level": 95}, ValueError, "confidence_level is 95"),
        ({"method": "bootstrap"}, ValueError, "method is 'bootstrap'.*'finite_sample'"),
        ({"n_resamples": 0}, ValueError, "n_resamples is 0"),
        ({"n_resamples": 38}, ValueError, "n_resamples is 38.*at least 39"),
        ({"n_resamples": 10**12}, ValueError, "n_resamples is 10{12}; it must be at most"),
        ({"confidence_level": 1 - 2**-53}, ValueError, "n_resamples is 999.*lower confidence_"),
        ({"rng": "seed"}, TypeError, "rng is 'seed'"),
        ({"progress": 1}, TypeError, "progress is 1"),
        ({"groups": [1, 2]}, ValueError, "groups has 2 values"),
        ({"width": 0.1}, TypeError, "width is not an option of smooth_ce"),
        ({"measure": "interval_ce", "tol": 0.1}, TypeError, "tol is not an option of interval_ce"),
        ({"measure": "lower_distance", "tol": -1}, ValueError, "tol is -1"),
        ({"measure": "kernel_ce", "squared": True}, TypeError, "squared is not an option"),
        ({"measure": "weighted_ce"}, TypeError, "functions"),
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
        interval(*rows(100), groups=rng.integers(0, 4, 100))
    y[:30] = 1  # thirty rows of label 1, but all in three clusters
    with pytest.warns(UserWarning, match="only 3 of 20 clusters have label 1: with fewer"):
        interval(y, p, groups=np.arange(200) // 10)
    y[3:] = 0
    with pytest.warns(UserWarning, match="only 3 of 200 rows have label 1"):
        distance_bracket(y, p, confidence_level=0.9, n_resamples=99)
    with pytest.warns(UserWarning, match="only 9 of 100 rows"):
        interval(*np.array([[1] * 9 + [0] * 91, [0.1] * 100]))
    # rows without weight are not there
    weight = np.ones(100)
    weight[:95] = 0
    with pytest.warns(UserWarning, match="of 5 rows"):
        interval(*rows(100), sample_weight=weight)


def test_what_is_proved_for_any_number_of_rows_does_not_warn():
    y, p = [1, 0, 0], [0.2, 0.4, 0.1]
    found = confidence_interval(y, p, method="finite_sample", groups=[1, 1, 2])
    assert (found.low, found.high) == (0, 1)
    joint = caldist.Joint.from_arrays(y, p)
    assert confidence_interval_of(joint, method="finite_sample").high == 1
    with pytest.warns(UserWarning, match="only 1 of 3 rows have label 1") as caught:
        confidence_interval_of(joint, n_resamples=99, rng=0)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("level", [1e-300, 1 - 2**-53])
def test_levels_next_to_0_and_1(level):
    """The Brier score and proved limits need no replicates, so every level has an interval."""
    y, p = rows(100)
    found = interval(y, p, "brier_score", confidence_level=level)
    assert 0 <= found.low < found.value < found.high < 1
    for measure in ("smooth_ce", "lower_distance", "surrogate_interval_ce"):
        found = interval(y, p, measure, confidence_level=level, method="finite_sample")
        assert 0 == found.low < found.high <= 1


# -- the bracket -----------------------------------------------------------------------------------


def test_the_bracket_without_a_level_speaks_of_the_rows():
    y, p = rows(40)
    found = distance_bracket(y, p)
    assert found == sample_bracket(caldist.Joint.from_arrays(y, p), tol=TOLERANCE)
    assert not isinstance(found, PopulationBracket)
    assert caldist.distance_bracket is distance_bracket
    with pytest.raises(ValueError, match="groups only matters"):
        distance_bracket(y, p, groups=np.arange(40))


def test_the_bracket_with_a_level_speaks_of_the_population():
    y, p = rows(300, power=2.0)
    found = distance_bracket(y, p, confidence_level=0.9, n_resamples=199, rng=0)
    assert isinstance(found, caldist.DistanceBracket)
    assert (found.lower_measure, found.upper_measure) == ("lower_distance", "random_interval_ce")
    assert found.confidence_level == 0.9
    lower = interval(y, p, "lower_distance", confidence_level=0.9, n_resamples=199)
    assert found.lower == lower.low
    sigma = math.sqrt(np.mean((y - p) ** 2) / 300)
    best = min(caldist.random_interval_ce(y, p, width=2.0**-k) + 2.0**-k / 2 for k in range(6))
    assert found.upper == pytest.approx(best + NormalDist().inv_cdf(1 - 0.1 / 12) * sigma)
    words = str(found)
    assert "With 90% confidence" in words
    assert f"at least {found.lower:.4g} and at most {found.upper:.4g}" in words
    assert found == distance_bracket(y, p, confidence_level=0.9, n_resamples=199, rng=0)
    wider = distance_bracket(
        y, p, confidence_level=0.9, n_resamples=199, rng=0, groups=np.arange(300) // 4
    )
    assert wider.upper > found.upper
    with pytest.raises(ValueError, match="confidence_level is 2"):
        distance_bracket(y, p, confidence_level=2)


@few_rows
def test_the_bracket_of_degenerate_samples():
    for y, p in (([1], [0.3]), ([0] * 5, [0.0] * 5), ([0, 1], [1.0, 0.0])):
        found = distance_bracket(y, p, confidence_level=0.9, n_resamples=99, rng=0)
        assert 0 <= found.lower <= found.upper <= 1


def test_the_bracket_holds_a_known_distance():
    """Predictions 0.1 too high everywhere: the distance is 0.1 whatever the domain."""
    rng = np.random.default_rng(1)
    missed = 0
    for trial in range(30 if _kernels.COMPILED else 5):
        f = rng.uniform(0.2, 0.8, 80)
        y = (rng.random(80) < f).astype(int)
        found = distance_bracket(
            y, f + 0.1, confidence_level=0.9, n_resamples=59, rng=trial, tol=1e-3
        )
        missed += not found.lower <= 0.1 <= found.upper
    assert missed <= 6


@few_rows
@pytest.mark.parametrize("name", ["beta3", "tied", "one class", "one sided"])
def test_intervals_on_every_family(name):
    y, p = family(name, 60, np.random.default_rng(0))
    for measure, options in MEASURES:
        found = interval(y, p, measure, **options)
        assert 0 <= found.low <= found.high <= 1
