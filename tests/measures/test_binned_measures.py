"""Binned errors against their definitions, row by row."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import softmax

import oracles
from caldist import binned_ece, ece
from caldist.kernels import loader
from caldist.measures import debiased_ece, soft_binned_ece, sweep_ece
from strategies import FAMILIES, family, samples


def close(value):
    return pytest.approx(value, abs=1e-12, rel=1e-12)


# -- plain bins ----------------------------------------------------------------------------------


@given(samples(), st.integers(1, 30), st.booleans())
def test_binned_ece_of_uniform_bins(sample, n_bins, add_width):
    y, p, weight = sample
    v, g0, g1 = oracles.distribution(y, p, weight)
    c, mass = oracles.residuals(v, g0, g1), g0 + g1
    expected = add_width / n_bins
    for k in range(n_bins):
        inside = (k / n_bins <= v) & ((v < (k + 1) / n_bins) | (k == n_bins - 1))
        expected += abs(c[inside].sum())
    value = binned_ece(y, p, n_bins=n_bins, add_width=add_width, sample_weight=weight)
    assert value == pytest.approx(expected, abs=1e-13)
    assert mass.sum() == pytest.approx(1)


def test_binned_ece_of_quantile_bins_has_equal_masses():
    rng = np.random.default_rng(3)
    p = rng.permutation(np.arange(1, 13) / 13)
    y = rng.integers(0, 2, 12)
    order = np.argsort(p)
    expected = np.abs((y - p)[order].reshape(4, 3).sum(axis=1)).sum() / 12
    value = binned_ece(y, p, n_bins=4, strategy="quantile")
    assert value == pytest.approx(expected, abs=1e-15)


def test_quantile_bins_keep_ties_together():
    y, p = [0, 1, 1, 1], [0.5, 0.5, 0.5, 0.9]
    assert binned_ece(y, p, n_bins=4, strategy="quantile") == pytest.approx(ece(y, p))


@given(samples())
def test_one_bin_is_accuracy_in_expectation(sample):
    y, p, weight = sample
    mean = np.average(y - p, weights=weight)
    for strategy in ("uniform", "quantile"):
        value = binned_ece(y, p, n_bins=1, strategy=strategy, sample_weight=weight)
        assert value == pytest.approx(abs(mean), abs=1e-12)


def test_quantile_bins_of_huge_weights():
    value = binned_ece([0, 1], [0.2, 0.7], strategy="quantile", sample_weight=[8e307] * 2)
    assert value == pytest.approx(0.25)


# -- oracles: one row at a time, straight from the definitions -----------------------------------


def quantile_bins(p, n_bins):
    """A row's bin is that of the first row with its prediction; exact by whole numbers."""
    return [n_bins * int(np.sum(p < v)) // p.size for v in p]


def debiased_by_rows(y, p, bins):
    total = Fraction(0)
    for rows in oracles.groups(bins):
        size = len(rows)
        if size < 2:
            continue
        mean = Fraction(int(y[rows].sum()), size)
        gap = mean - sum(Fraction(float(v)) for v in p[rows]) / size
        total += Fraction(size, y.size) * (gap**2 - mean * (1 - mean) / (size - 1))
    return float(total)


def sweep_by_rows(y, p, norm):
    """Try every number of bins in turn until the exact bin means fall."""
    reached = [0] * y.size
    for n_bins in range(1, y.size + 1):
        bins = quantile_bins(p, n_bins)
        means = [Fraction(int(y[rows].sum()), len(rows)) for rows in oracles.groups(bins)]
        if any(a > b for a, b in pairwise(means)):
            break
        reached = bins
    parts = oracles.groups(reached)
    gaps = [abs(y[rows].mean() - p[rows].mean()) ** norm * len(rows) / y.size for rows in parts]
    return math.fsum(gaps) ** (1 / norm)


def soft_by_rows(y, p, weight, n_bins, temperature, norm):
    weight = weight / weight.sum()
    centre = np.array([(k + 0.5) / n_bins for k in range(n_bins)])
    member = np.array([softmax(-((v - centre) ** 2) / temperature) for v in p])
    total = 0.0
    for k in range(n_bins):
        mass = weight @ member[:, k]
        if mass > 0:
            accuracy = weight @ (member[:, k] * y) / mass
            confidence = weight @ (member[:, k] * p) / mass
            total += mass * abs(accuracy - confidence) ** norm
    return total ** (1 / norm)


# -- debiased ------------------------------------------------------------------------------------


@given(samples(max_size=25, weighted=False), st.integers(1, 30), st.booleans())
def test_debiased_ece(sample, n_bins, uniform):
    y, p, _ = sample
    strategy = "uniform" if uniform else "quantile"
    expected = debiased_by_rows(
        y, p, (oracles.uniform_bins if uniform else quantile_bins)(p, n_bins)
    )
    options = {"n_bins": n_bins, "strategy": strategy}
    assert debiased_ece(y, p, squared=True, **options) == close(expected)
    root = debiased_ece(y, p, **options)
    assert root**2 == close(max(0.0, expected))


def test_debiased_ece_defaults_and_single_rows():
    y, p = family("beta3", 200, np.random.default_rng(1))
    expected = debiased_by_rows(y, p, quantile_bins(p, 15))
    assert debiased_ece(y, p) == close(math.sqrt(expected))
    assert debiased_ece([1], [0.25]) == 0.0
    assert debiased_ece([0, 1], [0.25, 0.25], n_bins=2**53) == 0.0
    assert debiased_ece([1, 0, 1], [0.0, 0.5, 1.0], squared=True) == 0.0  # three single rows


def test_debiased_ece_is_unbiased_where_predictions_repeat():
    """Averaged over all labels of two groups of three rows, with their probabilities."""
    p = np.repeat([0.25, 0.75], 3)
    truth = np.repeat([0.5, 0.8], 3)
    mean = 0.0
    for code in range(64):
        y = np.array([code >> i & 1 for i in range(6)])
        chance = np.prod(np.where(y, truth, 1 - truth))
        mean += chance * debiased_ece(y, p, n_bins=2, strategy="uniform", squared=True)
    assert mean == close((0.25**2 + 0.05**2) / 2)


# -- swept ---------------------------------------------------------------------------------------


@given(samples(max_size=40, weighted=False), st.sampled_from([1, 2]))
def test_sweep_ece(sample, norm):
    y, p, _ = sample
    assert sweep_ece(y, p, norm=norm) == close(sweep_by_rows(y, p, norm))


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=12))
def test_sweep_ece_with_ties_of_every_size(masses):
    masses = np.array(masses)
    assume(masses.sum() > 0)
    place = np.arange(len(masses)) / 12
    p = np.concatenate([np.repeat(place, masses[:, label]) for label in (0, 1)])
    y = np.repeat([0, 1], masses.sum(axis=0))
    assert sweep_ece(y, p) == close(sweep_by_rows(y, p, 1))


def nearly_sorted(n, swaps, rng):
    y = (np.arange(n) >= n // 2).astype(int)
    for _ in range(swaps):
        i = rng.integers(0, n - 1)
        y[i], y[i + 1] = y[i + 1], y[i]
    return y


@pytest.mark.parametrize("swaps", [0, 1, 2, 8])
@pytest.mark.parametrize("seed", range(4))
def test_sweeps_that_last(swaps, seed):
    """Few falls near the middle, and a rising density: the sweep goes on for long."""
    rng = np.random.default_rng(seed)
    n = 120
    p = np.sort(rng.random(n))
    y = nearly_sorted(n, swaps, rng)
    y[55:65] = np.sort(y[55:65])
    assert sweep_ece(y, p) == close(sweep_by_rows(y, p, 1))
    j = np.arange(n + 1)
    rising = np.diff(j * j // (2 * n))
    assert sweep_ece(rising, p) == close(sweep_by_rows(rising, p, 1))


@pytest.mark.parametrize("kind", FAMILIES)
def test_sweep_ece_of_every_family(kind):
    y, p = family(kind, 150, np.random.default_rng(0))
    assert sweep_ece(y, p) == close(sweep_by_rows(y, p, 1))


def test_one_swap_at_either_end_keeps_the_sweep_going():
    """Predictions of two rows, half of label 1, after or before two single rows that fall."""
    half = np.tile([0, 1], 30)
    p = np.repeat(np.arange(1, 31) / 40, 2)
    for y, v in (
        (np.append([1, 0], half), np.append([0.001, 0.002], p)),
        (np.append(half, [1, 0]), np.append(p, [0.9, 0.95])),
    ):
        assert sweep_ece(y, v) == close(sweep_by_rows(y, v, 1))


def test_sorted_labels_end_at_single_predictions():
    y, p = np.array([0, 0, 0, 1, 1]), np.array([0.1, 0.2, 0.3, 0.3, 0.9])
    assert sweep_ece(y, p) == close(ece(y, p))
    n = 100_000 if loader.COMPILED else 1000
    p = np.random.default_rng(0).random(n)
    y = (p > 0.4).astype(int)
    assert sweep_ece(y, p) == close(np.abs(y - p).mean())
    assert sweep_ece(y, p, norm=2) == close(math.sqrt(np.mean((y - p) ** 2)))


# -- soft ----------------------------------------------------------------------------------------


@given(samples(max_size=20), st.integers(1, 20), st.sampled_from([0.01, 0.3, 1e-3]))
def test_soft_binned_ece(sample, n_bins, temperature):
    y, p, weight = sample
    options = {"n_bins": n_bins, "temperature": temperature}
    for norm in (1, 2):
        expected = soft_by_rows(y, p, oracles.row_weights(y, weight), n_bins, temperature, norm)
        value = soft_binned_ece(y, p, norm=norm, sample_weight=weight, **options)
        assert value == pytest.approx(expected, abs=1e-9, rel=1e-9)


def test_soft_binned_ece_defaults_and_limits():
    y, p = family("beta3", 300, np.random.default_rng(2))
    assert soft_binned_ece(y, p) == close(soft_by_rows(y, p, np.ones(300), 15, 0.01, 2))
    cold = soft_binned_ece(y, p, temperature=1e-200, norm=1)
    assert cold == close(binned_ece(y, p, n_bins=15))
    hot = soft_binned_ece(y, p, temperature=1e200)
    assert hot == close(abs((y - p).mean()))
    assert soft_binned_ece(y, p, n_bins=1) == close(abs((y - p).mean()))


def test_soft_binned_ece_of_several_blocks_of_rows():
    y, p = family("beta3", 1300, np.random.default_rng(2))
    assert soft_binned_ece(y, p) == close(soft_by_rows(y, p, np.ones(1300), 15, 0.01, 2))
