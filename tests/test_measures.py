"""Each measure against an independent oracle, on every family of instances."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
import oracles
from caldist import _kernels
from caldist.measures import _kernel_estimators
from strategies import FAMILIES, family, samples

LARGE = 400 if _kernels.COMPILED else 60
ROUNDS = 8 if _kernels.COMPILED else 2


def instances(n=LARGE, rounds=ROUNDS):
    """Yield instances of every family as (arguments, weight, v, g0, g1)."""
    for name in FAMILIES:
        for seed in range(rounds):
            rng = np.random.default_rng([seed, len(name)])
            size = 1 if seed == 0 else int(rng.integers(2, n))
            y, p = family(name, size, rng)
            weight = rng.exponential(size=size) ** 3 if seed % 2 else None
            yield (y, p), weight, *oracles.distribution(y, p, weight)


@given(samples())
def test_smooth_ce_equals_the_rational_optimum(sample):
    y, p, weight = sample
    v, g0, g1 = oracles.distribution(y, p, weight)
    exact = float(oracles.smooth_ce_rational(v, oracles.residuals(v, g0, g1)))
    assert caldist.smooth_ce(y, p, sample_weight=weight) == pytest.approx(exact, abs=1e-14)


def test_smooth_ce_equals_the_linear_program():
    for arguments, weight, v, g0, g1 in instances():
        value = caldist.smooth_ce(*arguments, sample_weight=weight)
        # HiGHS keeps its constraints to 1e-10, hence the tolerance; the rational test is tighter.
        program = oracles.smooth_ce_lp(v, oracles.residuals(v, g0, g1))
        assert value == pytest.approx(program, abs=2e-9)


@pytest.mark.parametrize("bandwidth", [1.0, 0.1, 0.003, 7.0])
def test_kernel_ce_equals_the_dense_sum(bandwidth):
    def laplace(a, b):
        return np.exp(-np.abs(a - b) / bandwidth)

    def gaussian(a, b):
        return np.exp(-(((a - b) / bandwidth) ** 2))

    for arguments, weight, v, g0, g1 in instances(200, 4):
        c = oracles.residuals(v, g0, g1)
        for name, function in (("laplace", laplace), ("gaussian", gaussian)):
            dense = oracles.kernel_squared(v, c, function)
            options = {"sample_weight": weight, "squared": True}
            value = caldist.kernel_ce(*arguments, kernel=name, bandwidth=bandwidth, **options)
            own = caldist.kernel_ce(*arguments, kernel=function, **options)
            assert value == pytest.approx(dense, abs=1e-13)
            assert own == pytest.approx(dense, abs=1e-14)
            root = caldist.kernel_ce(
                *arguments, kernel=name, bandwidth=bandwidth, sample_weight=weight
            )
            assert root == math.sqrt(max(0.0, value))


@pytest.mark.parametrize("bandwidth", [1e-3, 1e-8, 1e-200, 1e200])
@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
def test_kernel_ce_at_extreme_bandwidths(kernel, bandwidth):
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.1, 0.1 + 1e-4, 0.7, 1.0])
    v, g0, g1 = oracles.distribution(y, p)
    c = oracles.residuals(v, g0, g1)
    power = 1 if kernel == "laplace" else 2

    def function(a, b):
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(-((np.abs(a - b) / bandwidth) ** power))

    value = caldist.kernel_ce(y, p, kernel=kernel, bandwidth=bandwidth, squared=True)
    assert value == pytest.approx(oracles.kernel_squared(v, c, function), abs=1e-12)


def test_dense_kernels_are_evaluated_in_blocks(monkeypatch):
    y, p = family("beta3", 50, np.random.default_rng(0))
    whole = caldist.kernel_ce(y, p, kernel=np.minimum)
    monkeypatch.setattr(_kernel_estimators, "_BLOCK", 120)
    largest = []

    def kernel(a, b):
        largest.append(np.broadcast(a, b).size)
        return np.minimum(a, b)

    assert caldist.kernel_ce(y, p, kernel=kernel) == pytest.approx(whole, abs=1e-15)
    assert max(largest) <= 120


@pytest.mark.parametrize("kernel", ["laplace", "gaussian", lambda u, v: 0.5 * np.exp(-abs(u - v))])
def test_unbiased_kernel_ce_leaves_out_the_diagonal(kernel):
    y, p = family("tied", 40, np.random.default_rng(1))
    if kernel == "laplace":
        matrix = np.exp(-np.abs(p[:, None] - p))
    elif kernel == "gaussian":
        matrix = np.exp(-((p[:, None] - p) ** 2))
    else:
        matrix = kernel(p[:, None], p)
    np.fill_diagonal(matrix, 0.0)
    direct = (y - p) @ matrix @ (y - p) / (40 * 39)
    value = caldist.kernel_ce(y, p, kernel=kernel, unbiased=True, squared=True)
    assert value == pytest.approx(direct, abs=1e-15)


def test_a_negative_estimate_is_kept_squared_and_zero_as_a_root():
    y, p = [0, 1, 0, 1], [0.5] * 4
    assert caldist.kernel_ce(y, p, unbiased=True, squared=True) < 0
    assert caldist.kernel_ce(y, p, unbiased=True) == 0.0


@pytest.mark.parametrize("width", [0.1, 0.25, 0.03, 1.0, 2.5])
def test_random_interval_ce_equals_integration_over_the_shift(width):
    for arguments, weight, v, g0, g1 in instances(80, 4):
        value = caldist.random_interval_ce(*arguments, width=width, sample_weight=weight)
        exact = oracles.random_interval(v, oracles.residuals(v, g0, g1), width)
        assert value == pytest.approx(exact, abs=1e-12)
        added = caldist.random_interval_ce(
            *arguments, width=width, add_width=True, sample_weight=weight
        )
        assert added == value + width


@given(samples(), st.floats(1e-18, 1e-12))
def test_random_interval_ce_of_tiny_bins_is_the_ece(sample, width):
    y, p, weight = sample
    gaps = np.diff(np.unique(p))
    value = caldist.random_interval_ce(y, p, width=width, sample_weight=weight)
    whole = caldist.ece(y, p, sample_weight=weight)
    if gaps.size == 0 or gaps.min() >= width:
        assert value == pytest.approx(whole, abs=1e-13)
    assert value <= whole + 1e-13


def test_surrogate_interval_ce_is_the_infimum_over_dyadic_widths():
    for arguments, weight, v, g0, g1 in instances(60, 3):
        c = oracles.residuals(v, g0, g1)
        value = caldist.surrogate_interval_ce(*arguments, sample_weight=weight)
        widths = [2.0**-k for k in range(14)]
        best = min(oracles.random_interval(v, c, w) + w for w in widths)
        assert value == pytest.approx(min(best, np.abs(c).sum()), abs=2.0**-13)
        assert value <= min(best, np.abs(c).sum()) + 1e-14


def test_surrogate_interval_ce_does_not_stop_early_at_a_tiny_gap():
    # In floating point RintCE can stay an ulp below the ECE for all k; the result must be the ECE.
    v = np.array([1 / 3, 1 / 3 + 2**-52])
    assert caldist.surrogate_interval_ce([1, 1], v) == pytest.approx(2 / 3, abs=1e-15)


@given(samples(max_size=9))
def test_interval_ce_equals_brute_force(sample):
    y, p, weight = sample
    value = caldist.interval_ce(y, p, sample_weight=weight)
    exact = oracles.interval_brute(*oracles.distribution(y, p, weight))
    assert value == pytest.approx(exact, abs=1e-14)


def test_interval_ce_equals_the_quadratic_program():
    for arguments, weight, v, g0, g1 in instances():
        value = caldist.interval_ce(*arguments, sample_weight=weight)
        assert value == pytest.approx(oracles.interval_program(v, g0, g1), abs=1e-13)


@given(samples())
def test_the_optimal_partition_attains_the_interval_ce(sample):
    y, p, weight = sample
    edges = caldist.optimal_partition(y, p, sample_weight=weight)
    attained = caldist.binned_ece(y, p, edges=edges, add_width=True, sample_weight=weight)
    assert attained == pytest.approx(caldist.interval_ce(y, p, sample_weight=weight), abs=1e-13)
    assert edges[0] == 0
    assert edges[-1] >= 1


@given(samples())
def test_ece_in_every_norm(sample):
    y, p, weight = sample
    v, g0, g1 = oracles.distribution(y, p, weight)
    mass = g0 + g1
    gap = np.abs(g1 / mass - v)
    expected = {1: mass @ gap, 2: math.sqrt(mass @ gap**2), math.inf: gap.max()}
    for norm, value in expected.items():
        got = caldist.ece(y, p, norm=norm, sample_weight=weight)
        assert got == pytest.approx(value, abs=1e-12)


@given(samples(), st.integers(1, 30), st.booleans())
def test_binned_ece_of_uniform_bins(sample, n_bins, add_width):
    y, p, weight = sample
    v, g0, g1 = oracles.distribution(y, p, weight)
    c, mass = oracles.residuals(v, g0, g1), g0 + g1
    expected = add_width / n_bins
    for k in range(n_bins):
        inside = (k / n_bins <= v) & ((v < (k + 1) / n_bins) | (k == n_bins - 1))
        expected += abs(c[inside].sum())
    value = caldist.binned_ece(y, p, n_bins=n_bins, add_width=add_width, sample_weight=weight)
    assert value == pytest.approx(expected, abs=1e-13)
    assert mass.sum() == pytest.approx(1)


def test_binned_ece_of_quantile_bins_has_equal_masses():
    rng = np.random.default_rng(3)
    p = rng.permutation(np.arange(1, 13) / 13)
    y = rng.integers(0, 2, 12)
    order = np.argsort(p)
    expected = np.abs((y - p)[order].reshape(4, 3).sum(axis=1)).sum() / 12
    value = caldist.binned_ece(y, p, n_bins=4, strategy="quantile")
    assert value == pytest.approx(expected, abs=1e-15)


def test_quantile_bins_keep_ties_together():
    y, p = [0, 1, 1, 1], [0.5, 0.5, 0.5, 0.9]
    assert caldist.binned_ece(y, p, n_bins=4, strategy="quantile") == pytest.approx(
        caldist.ece(y, p)
    )


@given(samples())
def test_one_bin_is_accuracy_in_expectation(sample):
    y, p, weight = sample
    mean = np.average(y - p, weights=weight)
    for strategy in ("uniform", "quantile"):
        value = caldist.binned_ece(y, p, n_bins=1, strategy=strategy, sample_weight=weight)
        assert value == pytest.approx(abs(mean), abs=1e-12)


@given(samples())
def test_weighted_ce_is_the_largest_correlation(sample):
    y, p, weight = sample
    functions = [np.cos, lambda v: 1.0, lambda v: v > 0.5]
    expected = max(
        abs(np.average((y - p) * np.broadcast_to(w(p), p.shape), weights=weight)) for w in functions
    )
    value = caldist.weighted_ce(y, p, functions=functions, sample_weight=weight)
    assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weight", [[5e-324, 1, 1, 1], [1e308, 1e-300, 1e-300, 1e-10]])
@pytest.mark.parametrize("norm", [2, math.inf])
def test_ece_norms_of_weights_that_vanish_beside_others(norm, weight):
    value = caldist.ece([0, 1, 1, 0], [0.2, 0.7, 0.8, 0.9], norm=norm, sample_weight=weight)
    assert 0 < value <= 1


def test_quantile_bins_of_huge_weights():
    value = caldist.binned_ece([0, 1], [0.2, 0.7], strategy="quantile", sample_weight=[8e307] * 2)
    assert value == pytest.approx(0.25)


ALL = [
    name
    for name in caldist.__all__
    if inspect.isfunction(getattr(caldist, name))
    and inspect.signature(getattr(caldist, name)).return_annotation == "float"
    and "y_true" in inspect.signature(getattr(caldist, name)).parameters
    and name != "weighted_ce"
]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", ["beta0.3", "beta1", "beta3", "one sided", "oscillating"])
def test_every_measure_is_a_finite_float_on_ordinary_data(name, kind):
    y, p = family(kind, 200, np.random.default_rng(8))
    value = getattr(caldist, name)(y, p)
    assert type(value) is float
    assert math.isfinite(value)
