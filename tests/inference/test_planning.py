"""Sample sizes from proved bounds: the inverse, the least number, and that the bounds hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
from caldist.inference import confidence_interval, planning
from caldist.inference.planning import guaranteed_width, sample_size
from caldist.kernels import loader

FAST = loader.COMPILED
MEASURES = ("smooth_ce", "kernel_ce", "lower_distance", "random_interval_ce", "brier_score")
measures = st.sampled_from(MEASURES)
levels = st.floats(0.01, 0.9999)


def proved(measure, width, confidence_level=0.95):
    """Return what sample_size calls proved, without the simulation."""
    return planning._proved(planning._worst(measure), width, confidence_level)


@given(measures, st.floats(1e-5, 0.999), levels)
def test_the_sample_size_is_the_least_that_does(measure, width, level):
    rows = proved(measure, width, level)
    assert isinstance(rows, int)
    assert guaranteed_width(measure=measure, n_rows=rows, confidence_level=level) <= width
    if rows > 1:
        before = guaranteed_width(measure=measure, n_rows=rows - 1, confidence_level=level)
        assert before > width


@given(measures, st.integers(1, 10**12), levels)
def test_the_width_is_the_inverse(measure, rows, level):
    width = guaranteed_width(measure=measure, n_rows=rows, confidence_level=level)
    assert 0 < width <= 1
    if width < 1:
        again = proved(measure, width, level)
        # Beyond 2^50 rows neighbouring numbers share a width.
        assert again <= rows
        assert guaranteed_width(measure=measure, n_rows=again, confidence_level=level) == width


@given(measures, st.integers(1, 10**9), levels)
def test_more_rows_and_less_confidence_make_it_narrower(measure, rows, level):
    width = guaranteed_width(measure=measure, n_rows=rows, confidence_level=level)
    assert guaranteed_width(measure=measure, n_rows=2 * rows, confidence_level=level) <= width
    assert guaranteed_width(measure=measure, n_rows=rows, confidence_level=level / 2) <= width


def test_known_values():
    # Hoeffding, two-sided: 2 √(ln 40 / 2n); McDiarmid twice and the noise's mean for the others.
    assert guaranteed_width(measure="brier_score", n_rows=5000) == pytest.approx(
        2 * math.sqrt(math.log(40) / 10_000)
    )
    assert guaranteed_width(measure="kernel_ce", n_rows=5000) == pytest.approx(
        (1 + 2 * math.sqrt(2 * math.log(40))) / math.sqrt(5000)
    )
    for measure in ("smooth_ce", "lower_distance"):  # Dvoretzky, Kiefer and Wolfowitz: no noise
        assert guaranteed_width(measure=measure, n_rows=5000) == pytest.approx(
            2 * math.sqrt(2 * math.log(40) / 5000)
        )
    found = sample_size(measure="brier_score", width=0.1)
    assert int(found) == len(range(found)) == found.practical
    assert found.proved == math.ceil(2 * math.log(40) / 0.01) == proved("brier_score", 0.1)


def noise_of_measures(n, rng):
    """Return the values of samples of n rows of a law whose population's values are 0."""
    v = rng.random(n)
    y = (rng.random(n) < v).astype(int)
    names = MEASURES[:-1] if FAST else ("smooth_ce", "kernel_ce", "random_interval_ce")
    return {name: getattr(caldist.measures, name)(y, v) for name in names}


def test_the_bias_is_within_its_bound():
    """At calibration the whole value is bias: the mean must not exceed a/√n."""
    n, times = 200, 60 if FAST else 10
    rng = np.random.default_rng(5)
    draws = [noise_of_measures(n, rng) for _ in range(times)]
    bias = {"smooth_ce": 1 + math.sqrt(0.5), "random_interval_ce": math.sqrt(11)}
    for name in draws[0]:
        mean = np.mean([draw[name] for draw in draws])
        assert 0 < mean <= bias.get(name, 1.0) / math.sqrt(n), name


@pytest.mark.parametrize("measure", MEASURES)
def test_the_interval_from_data_keeps_the_promise(measure):
    """Labels that are nearly all wrong keep the finite-sample interval away from 0 and 1."""
    n = 4000 if FAST else 300
    v = np.full(n, 0.4)
    y = np.arange(n) >= n // 20
    level = 0.5 if not FAST else 0.9
    found = confidence_interval(
        y, v, measure=measure, confidence_level=level, method="finite_sample"
    )
    assert 0 < found.lower < found.upper < 1
    planned = guaranteed_width(measure=measure, n_rows=n, confidence_level=level)
    assert found.upper - found.lower == pytest.approx(planned, abs=2e-6)


# -- in practice -----------------------------------------------------------------------------------


def share_within(width, measure, rows, seed, draw=np.random.Generator.random, times=40):
    """Return how many of fresh intervals are at most so wide, for the worse one of both laws."""
    rng = np.random.default_rng(seed)
    within = np.zeros(2)
    for _ in range(times):
        v = draw(rng, rows)
        for law, truth in enumerate((v, (v + v.mean()) / 2)):
            y = rng.random(rows) < truth
            found = confidence_interval(y, v, measure=measure, n_resamples=99, rng=rng)
            within[law] += found.upper - found.lower <= width
    return within.min() / times


# Nine of ten, within three standard errors of both simulations.
ENOUGH = 0.9 - 3 * math.sqrt(0.09 / 40 + 0.09 / 30)
simulated = pytest.mark.skipif(not FAST, reason="hundreds of intervals")


@pytest.mark.slow
@simulated
@pytest.mark.filterwarnings("ignore:only .* rows have:UserWarning")
@pytest.mark.parametrize("measure", [name for name in MEASURES if name != "lower_distance"])
def test_the_practical_size_is_enough_and_not_far_more(measure):
    found = sample_size(measure=measure, width=0.15)
    assert share_within(0.15, measure, found.practical, 7) >= ENOUGH
    assert share_within(0.15, measure, found.practical // 3, 8) < 0.5
    assert 3 * found.practical < found.proved


@simulated
@pytest.mark.filterwarnings("ignore:only .* rows have:UserWarning")
def test_predictions_without_labels_make_it_their_own():
    pool = np.random.default_rng(0).beta(1, 15, 500)
    found = sample_size(width=0.05, y_prob=pool)
    assert found.practical < sample_size(width=0.05).practical / 2

    def draw(rng, rows):
        return rng.choice(pool, rows)

    assert share_within(0.05, "smooth_ce", found.practical, 9, draw) >= ENOUGH
    assert "for predictions like those given" in str(found)


@pytest.mark.slow
@simulated
def test_beyond_what_is_simulated_the_width_falls_like_the_root():
    """Four times the rows for half the width, up to the two digits that are shown."""
    half, whole = (sample_size(width=width).practical for width in (0.005, 0.01))
    assert half == pytest.approx(4 * whole, rel=0.2)
    rng = np.random.default_rng(3)
    v = rng.random(whole)
    found = confidence_interval(rng.random(whole) < v, v, n_resamples=99, rng=0)
    assert found.upper - found.lower <= 0.01


@simulated
@pytest.mark.parametrize(
    ("measure", "width", "level", "given"),
    [
        ("smooth_ce", 0.01, 0.95, False),
        ("brier_score", 0.1, 0.8, True),
        ("kernel_ce", 0.2, 0.95, 0),
    ],
)
def test_the_practical_size_by_hand(measure, width, level, given):
    """Three times 30 samples of both laws; the ninth of ten widths; two digits, rounded up."""
    pool = np.random.default_rng(1).beta(2, 5, 300) if given else None
    options = {"measure": measure, "confidence_level": level}
    found = sample_size(width=width, y_prob=pool, rng=4, **options)
    rng, rows = np.random.default_rng(4), 1000
    for _ in range(3):
        widths = np.empty((2, 30))
        for sample in range(30):
            v = rng.choice(pool, rows) if given else rng.random(rows)
            chance = rng.random(rows)
            for law, truth in enumerate((v, (v + v.mean()) / 2)):
                one = confidence_interval(chance < truth, v, method="cross_fit", rng=0, **options)
                widths[law, sample] = one.upper - one.lower
        # The quantile of 0.9 lies between the 27th and the 28th width, near the former.
        first, second = np.sort(widths)[:, 26:28].T
        needed = rows * (max(0.9 * first + 0.1 * second) / width) ** 2
        rows = min(max(math.ceil(needed), 100), 4000)
    digits = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    assert found.practical == math.ceil(needed / digits) * digits


def test_the_result_says_what_it_speaks_of():
    measure = caldist.kernel_ce.using(bandwidth=0.5)
    found = sample_size(measure=measure, width=0.3)
    assert found == sample_size(measure=measure, width=0.3)
    assert 1 <= found.practical <= found.proved
    assert found.measure == "kernel_ce(bandwidth=0.5)"
    assert "spread evenly over [0, 1], calibrated or twice as far from their mean" in str(found)
    assert f"{found.proved:,} rows for a width that is proved for all data" in str(found)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"measure": "ece", "width": 0.1}, "measure"),
        ({"measure": None, "width": 0.1}, "measure"),
        ({"measure": ["smooth_ce"], "width": 0.1}, "measure"),
        ({"width": 0}, "width"),
        ({"width": 1}, "width"),
        ({"width": "small"}, "width"),
        ({"width": float("nan")}, "width"),
        ({"width": 1e-12}, "larger width"),
        ({"width": 1e-300}, "larger width"),
        ({"width": 0.1, "confidence_level": 1}, "confidence_level"),
        ({"width": 0.1, "confidence_level": 95}, "confidence_level"),
        ({"width": 0.1, "y_prob": [0.5, 1.5]}, "y_prob[1]"),
        ({"width": 0.1, "y_prob": []}, "y_prob is empty"),
        ({"width": 0.1, "rng": "seed"}, "rng"),
        ({"n_rows": 0}, "n_rows"),
        ({"n_rows": 10.0}, "n_rows"),
        ({"n_rows": 10, "confidence_level": 0}, "confidence_level"),
        ({"n_rows": 10, "measure": "upper_distance"}, "measure"),
    ],
)
def test_bad_options_are_named(options, part):
    function = guaranteed_width if "n_rows" in options else sample_size
    with pytest.raises((TypeError, ValueError)) as caught:
        function(**options)
    assert part in str(caught.value)
