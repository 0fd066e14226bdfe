"""MMCE, debiased ECE, ECE_sweep, SB-ECE, T-Cal and SKCE against their definitions, row by row."""

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import softmax

from caldist import _kernels
from caldist.measures.binned_ece import binned_ece
from caldist.measures.debiased_ece import debiased_ece
from caldist.measures.ece import ece
from caldist.measures.kernel_ce import kernel_ce
from caldist.measures.mmce import mmce
from caldist.measures.skce import skce
from caldist.measures.soft_binned_ece import soft_binned_ece
from caldist.measures.sweep_ece import sweep_ece
from caldist.measures.t_cal import TCal, t_cal
from caldist.multiclass import top_label
from strategies import FAMILIES, family, samples


def close(value):
    return pytest.approx(value, abs=1e-12, rel=1e-12)


def biased_skce(y, p, **options):
    return skce(y, p, unbiased=False, **options)


def statistic(y, p, **options):
    return t_cal(y, p, n_resamples=1, rng=0, **options).statistic


# -- oracles: one row at a time, straight from the definitions ---------------------------------


def double_sum(residual, kernel, weight):
    weight = weight / weight.sum()
    return float((weight * residual) @ kernel @ (weight * residual))


def mmce_by_rows(y, p, weight, bandwidth):
    confidence = np.array([max(v, 1 - v) for v in p])
    correct = np.array(
        [float(label == (1 if v > 0.5 else 0)) for label, v in zip(y, p, strict=True)]
    )
    kernel = np.exp(-np.abs(confidence[:, None] - confidence[None, :]) / bandwidth)
    return math.sqrt(max(0.0, double_sum(correct - confidence, kernel, weight)))


def uniform_bins(p, n_bins):
    edges = [k / n_bins for k in range(n_bins)]
    return [sum(edge <= v for edge in edges) - 1 for v in p]


def quantile_bins(p, n_bins):
    """A row's bin is that of the first row with its prediction; exact by whole numbers."""
    return [n_bins * int(np.sum(p < v)) // p.size for v in p]


def groups(bins):
    bins = np.array(bins)
    return [np.flatnonzero(bins == k) for k in np.unique(bins)]


def debiased_by_rows(y, p, bins):
    total = Fraction(0)
    for rows in groups(bins):
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
        means = [Fraction(int(y[rows].sum()), len(rows)) for rows in groups(bins)]
        if any(a > b for a, b in pairwise(means)):
            break
        reached = bins
    parts = groups(reached)
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


def t_cal_by_rows(y, p, n_bins):
    residual, bins = y - p, uniform_bins(p, n_bins)
    total = 0.0
    for rows in groups(bins):
        own = sum(residual[i] * residual[j] for i in rows for j in rows if i != j)
        total += own / len(rows)
    return total / y.size


def skce_by_rows(y, p, weight, bandwidth, kernel, *, unbiased):
    """The double sum over two-class probability vectors, with a matrix for a kernel."""
    vectors = np.stack([1 - p, p], axis=1)
    unit = np.eye(2)[y]
    weight = weight / weight.sum()
    total = 0.0
    for i in range(y.size):
        for j in range(y.size):
            if unbiased and i == j:
                continue
            distance = np.abs(vectors[i] - vectors[j]).sum() / 2 / bandwidth  # total variation
            k = math.exp(-distance if kernel == "laplace" else -(distance**2))
            pair = (unit[i] - vectors[i]) @ (k * np.eye(2)) @ (unit[j] - vectors[j])
            total += pair * (1 / (y.size * (y.size - 1)) if unbiased else weight[i] * weight[j])
    return total


# -- each against its oracle ------------------------------------------------------------------


def ones(weight, y):
    return np.ones(y.size) if weight is None else weight


@given(samples(max_size=20), st.sampled_from([0.4, 1.0, 0.05]))
def test_mmce(sample, bandwidth):
    y, p, weight = sample
    value = mmce(y, p, bandwidth=bandwidth, sample_weight=weight)
    assert value**2 == pytest.approx(
        mmce_by_rows(y, p, ones(weight, y), bandwidth) ** 2, abs=1e-13, rel=1e-10
    )


@given(samples(max_size=20))
def test_mmce_is_the_kernel_error_of_the_top_label(sample):
    y, p, weight = sample
    correct, confidence = top_label(y, np.stack([1 - p, p], axis=1))
    expected = kernel_ce(correct, confidence, bandwidth=0.4, sample_weight=weight)
    assert mmce(y, p, sample_weight=weight) == pytest.approx(expected, abs=1e-8, rel=1e-10)


def test_mmce_at_one_half_expects_label_0():
    """Either way the residual is one half; only its sign tells which label was expected."""
    assert mmce([0], [0.5]) == mmce([1], [0.5]) == 0.5
    assert mmce([0, 1], [0.5, 0.625]) == pytest.approx(
        math.sqrt(0.25 + 0.375**2 + 2 * 0.5 * 0.375 * math.exp(-0.125 / 0.4)) / 2
    )


@given(samples(max_size=25, weighted=False), st.integers(1, 30), st.booleans())
def test_debiased_ece(sample, n_bins, uniform):
    y, p, _ = sample
    strategy = "uniform" if uniform else "quantile"
    expected = debiased_by_rows(y, p, (uniform_bins if uniform else quantile_bins)(p, n_bins))
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


def test_sweep_ece_in_small_chunks(monkeypatch):
    """The chunks in which numbers of bins are tried do not matter."""
    from caldist.measures import sweep_ece as module

    rng = np.random.default_rng(0)
    cases = [(nearly_sorted(400, 3, rng), np.sort(rng.random(400))) for _ in range(5)]
    cases += [family(kind, 400, rng) for kind in FAMILIES]
    before = [sweep_ece(y, p) for y, p in cases]
    monkeypatch.setattr(module, "_CHUNK", 1)
    assert [sweep_ece(y, p) for y, p in cases] == before


def test_both_ways_to_look_for_a_fall_agree():
    from caldist.measures.sweep_ece import Rows

    rng = np.random.default_rng(1)
    for _ in range(60):
        size = int(rng.integers(2, 15))
        count = rng.integers(1, 6, size)
        label = rng.binomial(count, rng.choice([0.0, 0.2, 0.5, 0.9, 1.0], size))
        falls = np.flatnonzero(label[:-1] * count[1:] > label[1:] * count[:-1])
        rows = Rows(*(np.concatenate(([0], np.cumsum(x))) for x in (count, label)))
        number = np.arange(1, count.sum() + 1)
        all_bins = rows.broken_between(number, 0, size - 1)
        assert set(all_bins) == (set(rows.broken_at(number, falls)) if falls.size else set())


def test_sorted_labels_end_at_single_predictions():
    y, p = np.array([0, 0, 0, 1, 1]), np.array([0.1, 0.2, 0.3, 0.3, 0.9])
    assert sweep_ece(y, p) == close(ece(y, p))
    n = 100_000 if _kernels.COMPILED else 1000
    p = np.random.default_rng(0).random(n)
    y = (p > 0.4).astype(int)
    assert sweep_ece(y, p) == close(np.abs(y - p).mean())
    assert sweep_ece(y, p, norm=2) == close(math.sqrt(np.mean((y - p) ** 2)))


@given(samples(max_size=20), st.integers(1, 20), st.sampled_from([0.01, 0.3, 1e-3]))
def test_soft_binned_ece(sample, n_bins, temperature):
    y, p, weight = sample
    options = {"n_bins": n_bins, "temperature": temperature}
    for norm in (1, 2):
        expected = soft_by_rows(y, p, ones(weight, y), n_bins, temperature, norm)
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


def test_soft_binned_ece_does_not_depend_on_chunks(monkeypatch):
    from caldist.measures import soft_binned_ece as module

    y, p = family("beta3", 100, np.random.default_rng(2))
    before = soft_binned_ece(y, p)
    monkeypatch.setattr(module, "_CHUNK", 1)
    assert soft_binned_ece(y, p) == close(before)


@given(samples(max_size=20, weighted=False), st.integers(1, 30))
def test_t_cal_statistic(sample, n_bins):
    y, p, _ = sample
    assert statistic(y, p, n_bins=n_bins) == close(t_cal_by_rows(y, p, n_bins))


def test_t_cal_number_of_bins():
    for n, expected in [(1, 1), (5, 1), (6, 2), (32, 4), (243, 9), (1000, 15), (3125, 25)]:
        y, p = family("beta1", n, np.random.default_rng(0))
        assert t_cal(y, p, n_resamples=1, rng=0).n_bins == expected
    result = t_cal([0, 1], [0.2, 0.7], n_bins=2**53, n_resamples=3, rng=0)
    assert result == TCal(0.0, 1.0, 2**53)


def exact_pvalue(y, p, n_bins):
    """P(T* >= T) over all labels, with their probabilities."""
    observed = t_cal_by_rows(y, p, n_bins)
    total = 0.0
    for code in range(2**y.size):
        drawn = np.array([code >> i & 1 for i in range(y.size)])
        if t_cal_by_rows(drawn, p, n_bins) >= observed - 1e-12:
            total += np.prod(np.where(drawn, p, 1 - p))
    return total


@pytest.mark.parametrize("p", [[0.2, 0.3, 0.6, 0.8, 0.9], [0.25, 0.25, 0.25, 0.25, 0.75, 0.75]])
def test_t_cal_draws_from_the_null_hypothesis(p):
    """With distinct and with repeated predictions."""
    p = np.array(p)
    draws = 20_000
    for code in (0, 5, 2**p.size - 1):
        y = np.array([code >> i & 1 for i in range(p.size)])
        exact = exact_pvalue(y, p, 2)
        value = t_cal(y, p, n_bins=2, n_resamples=draws, rng=1).pvalue
        assert abs(value - exact) <= 4 * math.sqrt(exact * (1 - exact) / draws) + 1 / draws


def test_t_cal_has_its_size_under_the_null_hypothesis():
    rng = np.random.default_rng(8)
    repetitions = 400
    rejected = 0
    for _ in range(repetitions):
        p = np.round(rng.random(40), 2)
        y = (rng.random(40) < p).astype(int)
        rejected += t_cal(y, p, n_resamples=19, rng=rng).pvalue <= 0.1
    low, high = stats.binom.interval(0.999, repetitions, 0.1)
    assert rejected <= high
    assert rejected >= low  # ties of the statistic are rare here


def test_t_cal_has_power():
    y, p = family("beta3", 400, np.random.default_rng(0))
    assert t_cal(y, p, n_resamples=199, rng=0).pvalue == 1 / 200


def test_t_cal_is_reproducible_and_frozen():
    y, p = family("beta1", 50, np.random.default_rng(0))
    first = t_cal(y, p, n_resamples=99, rng=3)
    assert t_cal(y, p, n_resamples=99, rng=3) == first
    assert t_cal(y, p, n_resamples=99, rng=np.random.default_rng(3)) == first
    assert all(type(x) is float for x in (first.statistic, first.pvalue))
    with pytest.raises(FrozenInstanceError):
        first.pvalue = 0.0


def test_certain_predictions_that_are_right_cannot_be_rejected():
    assert t_cal([0, 1, 1], [0.0, 1.0, 1.0], n_resamples=9, rng=0) == TCal(0.0, 1.0, 1)
    assert t_cal([1, 1], [0.0, 0.0], n_resamples=9, rng=0).pvalue == 0.1


@given(samples(max_size=12), st.sampled_from(["laplace", "gaussian"]), st.sampled_from([1.0, 0.2]))
def test_biased_skce(sample, kernel, bandwidth):
    y, p, weight = sample
    expected = skce_by_rows(y, p, ones(weight, y), bandwidth, kernel, unbiased=False)
    value = biased_skce(y, p, kernel=kernel, bandwidth=bandwidth, sample_weight=weight)
    assert value == close(expected)
    assert value >= 0


@given(
    samples(min_size=2, max_size=12, weighted=False),
    st.sampled_from(["laplace", "gaussian"]),
    st.sampled_from([1.0, 0.2]),
)
def test_unbiased_skce(sample, kernel, bandwidth):
    y, p, _ = sample
    expected = skce_by_rows(y, p, np.ones(y.size), bandwidth, kernel, unbiased=True)
    assert skce(y, p, kernel=kernel, bandwidth=bandwidth) == close(expected)
