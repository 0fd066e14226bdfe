"""T-Cal against its definition, row by row, and its test against all labels."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import oracles
from caldist import Joint
from caldist.measures import TCal, t_cal
from strategies import FAMILIES, family, samples


def close(value):
    return pytest.approx(value, abs=1e-12, rel=1e-12)


def statistic(y, p, **options):
    return t_cal(y, p, n_resamples=1, rng=0, **options).statistic


def t_cal_by_rows(y, p, n_bins):
    residual, bins = y - p, oracles.uniform_bins(p, n_bins)
    total = 0.0
    for rows in oracles.groups(bins):
        own = sum(residual[i] * residual[j] for i in rows for j in rows if i != j)
        total += own / len(rows)
    return total / y.size


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


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_order_of_rows_does_not_matter(kind):
    rng = np.random.default_rng(3)
    y, p = family(kind, 200, rng)
    result = t_cal(y, p, n_resamples=9, rng=0)
    for _ in range(3):
        order = rng.permutation(200)
        assert t_cal(y[order], p[order], n_resamples=9, rng=0) == result


@given(samples(min_size=4, max_size=20, weighted=False))
def test_of_a_joint_made_of_parts(sample):
    y, p, _ = sample
    joint = Joint.from_arrays(y[:2], p[:2]) + Joint.from_arrays(y[2:], p[2:])
    assert t_cal(joint, n_resamples=9, rng=0) == t_cal(y, p, n_resamples=9, rng=0)
