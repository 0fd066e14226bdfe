"""The paper's randomised estimators: unbiased, bounded, reproducible from their seed."""

import math
from importlib import import_module

import numpy as np
import pytest

import caldist
from caldist.kernels import loader
from strategies import family

DRAWS = 1000 if loader.COMPILED else 300


def data(kind="beta3", n=60):
    return family(kind, n, np.random.default_rng(7))


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("method", "kernel", "bandwidth", "options"),
    [
        ("subsample", "laplace", 1.0, {"n_terms": 20}),
        ("subsample", "gaussian", 0.5, {"n_terms": 20}),
        ("fourier", "laplace", 1.0, {}),
        ("fourier", "laplace", 0.2, {}),
        ("fourier", "gaussian", 0.5, {}),
        ("binning", "laplace", 1.0, {}),
        ("binning", "laplace", 0.2, {}),
    ],
)
def test_estimates_of_the_square_are_unbiased_and_bounded(
    method, kernel, bandwidth, options, weighted
):
    y, p = data()
    weight = np.arange(1, y.size + 1) if weighted else None
    fixed = {"kernel": kernel, "bandwidth": bandwidth, "squared": True, "sample_weight": weight}
    rng = np.random.default_rng(11)
    estimates = np.array(
        [caldist.kernel_ce(y, p, method=method, rng=rng, **fixed, **options) for _ in range(DRAWS)]
    )
    exact = caldist.kernel_ce(y, p, **fixed)
    error = estimates.std(ddof=1) / math.sqrt(DRAWS)
    assert abs(estimates.mean() - exact) <= 4 * error
    assert estimates.max() <= 1
    assert estimates.min() >= (-1 if method == "subsample" else 0)


def test_a_callable_kernel_can_be_subsampled():
    y, p = data()
    rng = np.random.default_rng(3)
    value = caldist.kernel_ce(
        y, p, kernel=np.minimum, method="subsample", n_terms=200_000, squared=True, rng=rng
    )
    exact = caldist.kernel_ce(y, p, kernel=np.minimum, squared=True)
    assert abs(value - exact) <= 4 / math.sqrt(200_000)


@pytest.mark.parametrize("method", ["subsample", "fourier", "binning"])
def test_the_same_seed_gives_the_same_estimate(method):
    y, p = data()
    first = caldist.kernel_ce(y, p, method=method, rng=5)
    assert caldist.kernel_ce(y, p, method=method, rng=5) == first
    assert caldist.kernel_ce(y, p, method=method, rng=np.random.default_rng(5)) == first
    assert caldist.kernel_ce(y, p, method=method, rng=6) != first


def test_estimators_do_not_touch_the_global_state():
    y, p = data()
    np.random.seed(0)  # noqa: NPY002 -- the global state is what is tested
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    caldist.kernel_ce(y, p, method="fourier")
    caldist.surrogate_interval_ce(y, p, method="monte_carlo", n_shifts=3)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_the_default_is_ten_pairs_a_row(monkeypatch):
    from caldist.measures import _kernel_estimators

    seen = []
    original = _kernel_estimators.subsample

    def spy(joint, function, n_terms, rng):
        seen.append(n_terms)
        return original(joint, function, n_terms, rng)

    monkeypatch.setattr(_kernel_estimators, "subsample", spy)
    y, p = data(n=60)
    caldist.kernel_ce(y, p, method="subsample", rng=0)
    assert seen == [600]


@pytest.mark.parametrize("method", ["subsample", "fourier", "binning"])
def test_the_promised_number_of_draws_reaches_the_precision(method):
    y, p = data()
    draws = caldist.kernel_ce_draws(precision=0.05, confidence_level=0.9)
    name = "n_terms" if method == "subsample" else "n_features"
    options = {name: getattr(draws, name)}
    exact = caldist.kernel_ce(y, p, squared=True)
    misses = 0
    for seed in range(40):
        value = caldist.kernel_ce(y, p, method=method, squared=True, rng=seed, **options)
        misses += abs(value - exact) > 0.05
    assert misses <= 4


@pytest.mark.parametrize("method", ["fourier", "binning"])
def test_the_default_is_one_draw_of_features(method):
    y, p = data()
    one = caldist.kernel_ce(y, p, method=method, n_features=1, rng=5)
    assert caldist.kernel_ce(y, p, method=method, rng=5) == one
    assert caldist.kernel_ce(y, p, method=method, n_features=2, rng=5) != one


def test_the_default_precision_is_one_percent():
    y, p = data()
    options = {"method": "monte_carlo", "n_shifts": 5, "rng": 5}
    one = caldist.surrogate_interval_ce(y, p, precision=0.01, **options)
    assert caldist.surrogate_interval_ce(y, p, **options) == one


@pytest.mark.parametrize("kind", ["beta3", "beta1", "tied", "extreme"])
@pytest.mark.parametrize("precision", [0.2, 0.05])
def test_monte_carlo_surrogate_is_within_its_precision(kind, precision):
    y, p = data(kind, 200 if loader.COMPILED else 50)
    exact = caldist.surrogate_interval_ce(y, p)
    options = {"method": "monte_carlo", "precision": precision}
    misses = sum(
        abs(caldist.surrogate_interval_ce(y, p, rng=seed, **options) - exact) > precision
        for seed in range(10)
    )
    assert misses <= 1


def test_monte_carlo_surrogate_is_unbiased_for_a_fixed_width():
    """Each average over shifts estimates RintCE(2^-k); here k* = 1, so widths 1 and 1/2."""
    module = import_module("caldist.measures.surrogate_interval_ce")

    y, p = data("beta3", 50)
    joint = caldist.Joint.from_arrays(y, p)
    sums = np.concatenate(([0.0], np.cumsum(joint.residual())))
    rng = np.random.default_rng(0)
    for width in (1.0, 0.5, 0.125):
        one = [module._mean_over_shifts(joint.prediction, sums, width, 1, rng) for _ in range(2000)]
        exact = caldist.random_interval_ce(y, p, width=width)
        error = np.std(one) / math.sqrt(2000)
        assert abs(np.mean(one) - exact) <= 4 * error + 1e-12


def test_monte_carlo_uses_the_papers_widths(monkeypatch):
    module = import_module("caldist.measures.surrogate_interval_ce")

    widths = []

    def spy(prediction, sums, width, n_shifts, rng):
        widths.append(width)
        return 1.0

    monkeypatch.setattr(module, "_mean_over_shifts", spy)
    for precision in (0.01, 0.24, 0.125):
        widths.clear()
        caldist.surrogate_interval_ce(
            [0, 1], [0.2, 0.7], method="monte_carlo", precision=precision, n_shifts=1
        )
        assert widths == [2.0**-k for k in range(len(widths))]
        assert precision / 4 < widths[-1] <= precision / 2
