"""Kernel errors against dense sums over rows or pairs of them."""

import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from caldist import Joint, kernel_ce
from caldist.data import sorting
from caldist.measures import mmce
from caldist.multiclass import top_label
from strategies import family, instances, samples


def close(value):
    return pytest.approx(value, abs=1e-12, rel=1e-12)


# -- kCE -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [1.0, 0.1, 0.003, 7.0])
def test_kernel_ce_equals_the_dense_sum(bandwidth):
    def laplace(a, b):
        return np.exp(-np.abs(a - b) / bandwidth)

    def gaussian(a, b):
        return np.exp(-(((a - b) / bandwidth) ** 2))

    for y, p, weight in instances(200, 4):
        v, g0, g1 = oracles.distribution(y, p, weight)
        c = oracles.residuals(v, g0, g1)
        for name, function in (("laplace", laplace), ("gaussian", gaussian)):
            dense = oracles.kernel_squared(v, c, function)
            options = {"sample_weight": weight, "squared": True}
            value = kernel_ce(y, p, kernel=name, bandwidth=bandwidth, **options)
            own = kernel_ce(y, p, kernel=function, **options)
            assert value == pytest.approx(dense, abs=1e-13)
            assert own == pytest.approx(dense, abs=1e-14)
            root = kernel_ce(y, p, kernel=name, bandwidth=bandwidth, sample_weight=weight)
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

    value = kernel_ce(y, p, kernel=kernel, bandwidth=bandwidth, squared=True)
    assert value == pytest.approx(oracles.kernel_squared(v, c, function), abs=1e-12)


def test_dense_kernels_are_evaluated_in_blocks(monkeypatch):
    y, p = family("beta3", 50, np.random.default_rng(0))
    whole = kernel_ce(y, p, kernel=np.minimum)
    monkeypatch.setattr(import_module("caldist.measures.kernel_ce"), "_BLOCK", 120)
    largest = []

    def kernel(a, b):
        largest.append(np.broadcast(a, b).size)
        return np.minimum(a, b)

    assert kernel_ce(y, p, kernel=kernel) == pytest.approx(whole, abs=1e-15)
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
    value = kernel_ce(y, p, kernel=kernel, unbiased=True, squared=True)
    assert value == pytest.approx(direct, abs=1e-15)


def test_a_negative_estimate_is_kept_squared_and_zero_as_a_root():
    y, p = [0, 1, 0, 1], [0.5] * 4
    assert kernel_ce(y, p, unbiased=True, squared=True) < 0
    assert kernel_ce(y, p, unbiased=True) == 0.0


# -- MMCE ----------------------------------------------------------------------------------------


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


@given(samples(max_size=20), st.sampled_from([0.4, 1.0, 0.05]))
def test_mmce(sample, bandwidth):
    y, p, weight = sample
    value = mmce(y, p, bandwidth=bandwidth, sample_weight=weight)
    assert value**2 == pytest.approx(
        mmce_by_rows(y, p, oracles.row_weights(y, weight), bandwidth) ** 2, abs=1e-13, rel=1e-10
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


@given(samples(max_size=14))
def test_exchanging_the_labels_does_not_matter_to_mmce_away_from_one_half(sample):
    y, p, weight = sample
    p = np.round(p * 2**20) / 2**20
    p[p == 0.5] = 0.25
    flipped = mmce(1 - y, 1 - p, sample_weight=weight)
    assert flipped == pytest.approx(mmce(y, p, sample_weight=weight), abs=1e-11)


# -- SKCE ----------------------------------------------------------------------------------------


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


@given(samples(max_size=12), st.sampled_from(["laplace", "gaussian"]), st.sampled_from([1.0, 0.2]))
def test_biased_skce_is_twice_the_square(sample, kernel, bandwidth):
    y, p, weight = sample
    expected = skce_by_rows(y, p, oracles.row_weights(y, weight), bandwidth, kernel, unbiased=False)
    options = {"kernel": kernel, "bandwidth": bandwidth, "sample_weight": weight}
    assert 2 * kernel_ce(y, p, squared=True, **options) == close(expected)
    assert 2 * kernel_ce(y, p, **options) ** 2 == close(expected)


@given(
    samples(min_size=2, max_size=12, weighted=False),
    st.sampled_from(["laplace", "gaussian"]),
    st.sampled_from([1.0, 0.2]),
)
def test_unbiased_skce_is_twice_the_unbiased_square(sample, kernel, bandwidth):
    y, p, _ = sample
    expected = skce_by_rows(y, p, np.ones(y.size), bandwidth, kernel, unbiased=True)
    value = kernel_ce(y, p, kernel=kernel, bandwidth=bandwidth, squared=True, unbiased=True)
    assert 2 * value == close(expected)


def test_mmce_merges_what_is_sorted(monkeypatch):
    """The support of a joint is sorted; folded at 1/2 it is two sorted runs."""
    rng = np.random.default_rng(0)
    v = np.concatenate((rng.random(200).round(2), [0, 0.5, 1, 1e-20, 1e-19]))
    y = rng.integers(0, 2, v.size)
    w = rng.random(v.size)
    joint = Joint.from_arrays(y, v, sample_weight=w)
    confidence, right = np.where(v <= 0.5, 1 - v, v), np.where(v <= 0.5, y == 0, y == 1)
    expected = kernel_ce(right, confidence, sample_weight=w, bandwidth=0.4)
    monkeypatch.setattr(sorting, "sorting_order", lambda _: pytest.fail("sorted once more"))
    assert mmce(joint) == pytest.approx(expected, rel=1e-12)
