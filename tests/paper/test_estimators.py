"""The paper's randomised estimators: unbiased, bounded, reproducible from their seed."""

import math

import numpy as np
import pytest

import caldist
from caldist.kernels import loader
from caldist.paper import estimators
from caldist.paper.estimators import (
    estimate_kernel_ce,
    estimate_surrogate_interval_ce,
    kernel_ce_draws,
)
from strategies import family

DRAWS = 1000 if loader.COMPILED else 300


def data(kind="beta3", n=60):
    return family(kind, n, np.random.default_rng(7))


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("method", "options"), [("subsample", {"n_terms": 20}), ("fourier", {}), ("binning", {})]
)
def test_estimates_of_the_square_are_unbiased_and_bounded(method, options, weighted):
    y, p = data()
    weight = np.arange(1, y.size + 1) if weighted else None
    joint = caldist.Joint.from_arrays(y, p, sample_weight=weight)
    options = options | {"method": method, "squared": True, "rng": np.random.default_rng(11)}
    estimates = np.array([estimate_kernel_ce(joint, **options) for _ in range(DRAWS)])
    exact = caldist.kernel_ce(joint, squared=True)
    error = estimates.std(ddof=1) / math.sqrt(DRAWS)
    assert abs(estimates.mean() - exact) <= 4 * error
    assert estimates.max() <= 1
    assert estimates.min() >= (-1 if method == "subsample" else 0)


@pytest.mark.parametrize("method", ["subsample", "fourier", "binning"])
def test_the_same_seed_gives_the_same_estimate(method):
    y, p = data()
    first = estimate_kernel_ce(y, p, method=method, rng=5)
    assert estimate_kernel_ce(y, p, method=method, rng=5) == first
    assert estimate_kernel_ce(y, p, method=method, rng=np.random.default_rng(5)) == first
    assert estimate_kernel_ce(y, p, method=method, rng=6) != first


def test_estimators_do_not_touch_the_global_state():
    y, p = data()
    np.random.seed(0)  # noqa: NPY002 -- the global state is what is tested
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    estimate_kernel_ce(y, p, method="fourier")
    estimate_surrogate_interval_ce(y, p, n_shifts=3)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_the_default_is_ten_pairs_a_row(monkeypatch):
    seen = []
    original = estimators._subsample

    def spy(joint, n_terms, rng):
        seen.append(n_terms)
        return original(joint, n_terms, rng)

    monkeypatch.setattr(estimators, "_subsample", spy)
    y, p = data(n=60)
    estimate_kernel_ce(y, p, method="subsample", rng=0)
    assert seen == [600]


@pytest.mark.parametrize("method", ["subsample", "fourier", "binning"])
def test_the_promised_number_of_draws_reaches_the_precision(method):
    y, p = data()
    draws = kernel_ce_draws(precision=0.05, confidence_level=0.9)
    name = "n_terms" if method == "subsample" else "n_features"
    options = {name: getattr(draws, name)}
    exact = caldist.kernel_ce(y, p, squared=True)
    misses = 0
    for seed in range(40):
        value = estimate_kernel_ce(y, p, method=method, squared=True, rng=seed, **options)
        misses += abs(value - exact) > 0.05
    assert misses <= 4


@pytest.mark.parametrize("method", ["fourier", "binning"])
def test_the_default_is_one_draw_of_features(method):
    y, p = data()
    one = estimate_kernel_ce(y, p, method=method, n_features=1, rng=5)
    assert estimate_kernel_ce(y, p, method=method, rng=5) == one
    assert estimate_kernel_ce(y, p, method=method, n_features=2, rng=5) != one


def test_the_default_precision_is_one_percent():
    y, p = data()
    one = estimate_surrogate_interval_ce(y, p, precision=0.01, n_shifts=5)
    assert estimate_surrogate_interval_ce(y, p, n_shifts=5) == one


@pytest.mark.parametrize("kind", ["beta3", "beta1", "tied", "extreme"])
@pytest.mark.parametrize("precision", [0.2, 0.05])
def test_monte_carlo_surrogate_is_within_its_precision(kind, precision):
    y, p = data(kind, 200 if loader.COMPILED else 50)
    exact = caldist.surrogate_interval_ce(y, p)
    misses = sum(
        abs(estimate_surrogate_interval_ce(y, p, precision=precision, rng=seed) - exact) > precision
        for seed in range(10)
    )
    assert misses <= 1


def test_monte_carlo_surrogate_is_unbiased_for_a_fixed_width():
    """Each average over shifts estimates RintCE(2^-k); here k* = 1, so widths 1 and 1/2."""
    y, p = data("beta3", 50)
    joint = caldist.Joint.from_arrays(y, p)
    sums = np.concatenate(([0.0], np.cumsum(joint.residual())))
    rng = np.random.default_rng(0)
    for width in (1.0, 0.5, 0.125):
        one = [
            estimators._mean_over_shifts(joint.prediction, sums, width, 1, rng) for _ in range(2000)
        ]
        exact = caldist.random_interval_ce(y, p, width=width)
        error = np.std(one) / math.sqrt(2000)
        assert abs(np.mean(one) - exact) <= 4 * error + 1e-12


def test_monte_carlo_uses_the_papers_widths(monkeypatch):
    widths = []

    def spy(prediction, sums, width, n_shifts, rng):
        widths.append(width)
        return 1.0

    monkeypatch.setattr(estimators, "_mean_over_shifts", spy)
    for precision in (0.01, 0.24, 0.125):
        widths.clear()
        estimate_surrogate_interval_ce([0, 1], [0.2, 0.7], precision=precision, n_shifts=1)
        assert widths == [2.0**-k for k in range(len(widths))]
        assert precision / 4 < widths[-1] <= precision / 2


@pytest.mark.parametrize(
    ("estimate", "options"),
    [
        (estimate_kernel_ce, {"method": "dense"}),
        (estimate_kernel_ce, {"n_terms": 0}),
        (estimate_kernel_ce, {"n_terms": 3, "method": "fourier"}),
        (estimate_kernel_ce, {"n_features": 0, "method": "fourier"}),
        (estimate_kernel_ce, {"n_features": 1.0}),
        (estimate_kernel_ce, {"n_features": 2, "method": "subsample"}),
        (estimate_kernel_ce, {"squared": "yes"}),
        (estimate_kernel_ce, {"rng": "seed"}),
        (estimate_surrogate_interval_ce, {"precision": 0}),
        (estimate_surrogate_interval_ce, {"precision": "fine"}),
        (estimate_surrogate_interval_ce, {"precision": 1e-12}),
        (estimate_surrogate_interval_ce, {"n_shifts": 0}),
        (estimate_surrogate_interval_ce, {"rng": object()}),
    ],
)
def test_wrong_options_are_named(estimate, options):
    with pytest.raises((TypeError, ValueError), match=next(iter(options))):
        estimate([0, 1], [0.2, 0.7], **options)


@pytest.mark.parametrize("options", [{"precision": 0}, {"precision": 1e-200}])
def test_draws_for_a_precision_that_there_is_not(options):
    with pytest.raises(ValueError, match="precision"):
        kernel_ce_draws(**options)
    with pytest.raises(ValueError, match="confidence_level"):
        kernel_ce_draws(precision=0.1, confidence_level=1)


def test_fresh_seeds_differ():
    y, p = data()
    found = {estimate_kernel_ce(y, p, method="fourier", rng=None) for _ in range(3)}
    assert len(found) == 3
