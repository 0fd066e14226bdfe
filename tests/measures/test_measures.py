"""The paper's measures against independent oracles, on every family of instances.

The distances, the kernel error and the binned errors have files of their own.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
import oracles
from caldist.kernels import loader
from caldist.measures import function_families
from strategies import instances, samples

LARGE = 400 if loader.COMPILED else 60
ROUNDS = 8 if loader.COMPILED else 2


@given(samples())
def test_smooth_ce_equals_the_rational_optimum(sample):
    y, p, weight = sample
    v, g0, g1 = oracles.distribution(y, p, weight)
    exact = float(oracles.smooth_ce_rational(v, oracles.residuals(v, g0, g1)))
    assert caldist.smooth_ce(y, p, sample_weight=weight) == pytest.approx(exact, abs=1e-14)


def test_smooth_ce_equals_the_linear_program():
    for y, p, weight in instances(LARGE, ROUNDS):
        v, g0, g1 = oracles.distribution(y, p, weight)
        value = caldist.smooth_ce(y, p, sample_weight=weight)
        # HiGHS keeps its constraints to 1e-10, hence the tolerance; the rational test is tighter.
        program = oracles.smooth_ce_lp(v, oracles.residuals(v, g0, g1))
        assert value == pytest.approx(program, abs=2e-9)


@pytest.mark.parametrize("width", [0.1, 0.25, 0.03, 1.0, 2.5])
def test_random_interval_ce_equals_integration_over_the_shift(width):
    for y, p, weight in instances(80, 4):
        v, g0, g1 = oracles.distribution(y, p, weight)
        value = caldist.random_interval_ce(y, p, width=width, sample_weight=weight)
        exact = oracles.random_interval(v, oracles.residuals(v, g0, g1), width)
        assert value == pytest.approx(exact, abs=1e-12)
        added = caldist.random_interval_ce(y, p, width=width, add_width=True, sample_weight=weight)
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
    for y, p, weight in instances(60, 3):
        v, g0, g1 = oracles.distribution(y, p, weight)
        c = oracles.residuals(v, g0, g1)
        value = caldist.surrogate_interval_ce(y, p, sample_weight=weight)
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
    for y, p, weight in instances(LARGE, ROUNDS):
        v, g0, g1 = oracles.distribution(y, p, weight)
        value = caldist.interval_ce(y, p, sample_weight=weight)
        assert value == pytest.approx(oracles.interval_program(v, g0, g1), abs=1e-13)


@given(samples())
def test_the_optimal_partition_attains_the_interval_ce(sample):
    y, p, weight = sample
    edges = caldist.measures.optimal_partition(y, p, sample_weight=weight)
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


@given(samples())
def test_weighted_ce_is_the_largest_correlation(sample):
    y, p, weight = sample
    functions = [np.cos, lambda v: 1.0, lambda v: v > 0.5]
    expected = max(
        abs(np.average((y - p) * np.broadcast_to(w(p), p.shape), weights=weight)) for w in functions
    )
    value = caldist.weighted_ce(y, p, functions=functions, sample_weight=weight)
    assert value == pytest.approx(expected, abs=1e-12)


@given(samples())
def test_weighted_ce_of_functions_into_the_unit_interval_is_at_most_1(sample):
    y, p, weight = sample
    functions = function_families.polynomials(3)
    assert 0 <= caldist.weighted_ce(y, p, functions=functions, sample_weight=weight) <= 1 + 1e-12


@pytest.mark.parametrize("weight", [[1e-100, 1, 1, 1], [1e99, 1e-1, 1e-1, 1e12]])
@pytest.mark.parametrize("norm", [2, math.inf])
def test_ece_norms_of_weights_of_very_different_size(norm, weight):
    value = caldist.ece([0, 1, 1, 0], [0.2, 0.7, 0.8, 0.9], norm=norm, sample_weight=weight)
    assert 0 < value <= 1
