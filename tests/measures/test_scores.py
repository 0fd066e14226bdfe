"""Scores against scikit-learn and their definitions, and the CORP decomposition of them."""

import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import oracles
from caldist import Joint, brier_score, log_loss
from caldist.measures import Corp, corp, normalized_cross_entropy
from strategies import family, samples


def both_labels(y, weight):
    mass = np.ones(y.size) if weight is None else weight
    return bool(mass @ y > 0 and mass @ (1 - y) > 0)


@given(samples())
def test_brier_score_is_that_of_scikit_learn(sample):
    y, p, weight = sample
    expected = sklearn.metrics.brier_score_loss(y, p, sample_weight=weight)
    assert brier_score(y, p, sample_weight=weight) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("most", [12, 60, 700])
def test_brier_score_where_the_sum_is_halfway_between_two_doubles(most):
    rng = np.random.default_rng(12)
    for _ in range(60):
        p = rng.choice([0.2, 0.3, 0.4, 0.6, 0.9, 1e-16, 1 - 2**-53], rng.integers(2, most))
        y = rng.integers(0, 2, p.size)
        expected = pytest.approx(math.fsum((y - p) ** 2) / p.size, rel=1e-14)
        assert brier_score(y, p) == expected
        assert brier_score(Joint.from_arrays(y, p)) == expected


@given(samples(), st.floats(1e-6, 0.5))
def test_log_loss_is_that_of_scikit_learn_inside(sample, margin):
    y, p, weight = sample
    p = margin + (1 - 2 * margin) * p
    expected = sklearn.metrics.log_loss(y, p, sample_weight=weight, labels=[0, 1])
    assert log_loss(y, p, sample_weight=weight) == pytest.approx(expected, rel=1e-12, abs=1e-13)


@given(samples())
def test_log_loss_is_infinite_exactly_where_a_certain_prediction_fails(sample):
    y, p, weight = sample
    counts = np.ones(y.size, bool) if weight is None else weight > 0
    fails = bool((counts & (p == 1 - y)).any())
    value = log_loss(y, p, sample_weight=weight)
    assert math.isinf(value) == fails
    assert value >= 0


def test_log_loss_of_tiny_predictions_is_not_clipped():
    assert log_loss([1], [1e-300]) == pytest.approx(300 * math.log(10))
    assert log_loss([0], [1e-300]) == 1e-300
    assert log_loss([0], [1 - 2**-53]) == pytest.approx(53 * math.log(2))
    assert log_loss([0, 1], [0, 1]) == 0
    assert math.copysign(1, log_loss([0, 1], [0, 1])) == 1
    # A failure of no weight, and one of hardly any.
    assert log_loss([1, 0], [0, 0.5], sample_weight=[0, 1]) == math.log(2)
    assert log_loss([1, 0], [0, 0.5], sample_weight=[1e-50, 1e49]) == math.inf


@given(samples(min_size=2))
def test_normalized_cross_entropy_is_one_minus_a_ratio_in_any_base(sample):
    y, p, weight = sample
    assume(both_labels(y, weight))
    base = np.average(y, weights=weight)
    assume(1e-5 < base < 1 - 1e-5)
    entropy = -base * math.log2(base) - (1 - base) * math.log2(1 - base)
    with np.errstate(divide="ignore"):
        bits = np.where(y == 1, -np.log2(p), -np.log1p(-p) / math.log(2))
    counts = slice(None) if weight is None else weight > 0
    cross = np.average(bits[counts], weights=None if weight is None else weight[counts])
    value = normalized_cross_entropy(y, p, sample_weight=weight)
    assert value <= 1
    if math.isinf(cross):
        assert value == -math.inf
    else:
        assert value == pytest.approx(1 - cross / entropy, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_normalized_cross_entropy_needs_both_labels(label):
    with pytest.raises(ValueError, match=rf"y_true is {label} .*log_loss"):
        normalized_cross_entropy([label, label], [0.25, 0.5])
    with pytest.raises(ValueError, match=rf"y_true is {label} "):
        normalized_cross_entropy([label, 1 - label], [0.25, 0.5], sample_weight=[1, 0])


@pytest.mark.parametrize("rare", [1e-6, 1e-12])
def test_normalized_cross_entropy_of_a_rare_label_keeps_its_digits(rare):
    weight = [1, rare]
    share = rare / (1 + rare)
    entropy = -share * math.log(share) - (1 - share) * math.log1p(-share)
    expected = 1 - math.log(2) / entropy
    for label in (0, 1):
        y = [label, 1 - label]
        value = normalized_cross_entropy(y, [0.5, 0.5], sample_weight=weight)
        assert value == pytest.approx(expected, rel=1e-14)


def test_normalized_cross_entropy_at_its_marks():
    assert normalized_cross_entropy([0, 1, 1], [0, 1, 1]) == 1
    assert normalized_cross_entropy([0, 1, 1, 1], [0.75] * 4) == pytest.approx(0, abs=1e-15)
    assert normalized_cross_entropy([0, 1], [0.9, 0.1]) < 0
    assert normalized_cross_entropy([0, 1], [1, 1]) == -math.inf


# -- CORP --------------------------------------------------------------------------------------


def direct_score(y, p, share, rule):
    if rule == "brier":
        return float(share @ (y - p) ** 2)
    with np.errstate(divide="ignore"):
        loss = np.where(y == 1, -np.log(p), -np.log1p(-p))
    return float(share[share > 0] @ loss[share > 0])


@pytest.mark.parametrize("rule", ["brier", "log"])
@given(sample=samples())
def test_corp_is_the_difference_of_three_scores(rule, sample):
    y, p, weight = sample
    weight = np.ones(y.size) if weight is None else weight
    share = weight / weight.sum()
    keep = share > 0
    y, p, share = y[keep], p[keep], share[keep]
    _, rank = np.unique(p, return_inverse=True)  # scikit-learn merges nearly equal predictions
    fit = IsotonicRegression().fit_transform(rank, y, sample_weight=share)
    score = direct_score(y, p, share, rule)
    uncertainty = direct_score(y, np.full(y.size, min(share @ y, 1.0)), share, rule)
    # Where scikit-learn's fit misses 0 or 1 by rounding, its logarithm says nothing.
    fit = np.where(np.abs(y - fit) > 1 - 1e-12, y, fit)
    recalibrated = direct_score(y, fit, share, rule)
    assume(math.isfinite(uncertainty))  # a share of 1 - 1e-17
    result = corp(y, p, score=rule, sample_weight=share)
    assert isinstance(result, Corp)
    assert result.score == pytest.approx(score, rel=1e-12, abs=1e-13)
    assert result.uncertainty == pytest.approx(uncertainty, abs=1e-10)
    assert result.discrimination == pytest.approx(uncertainty - recalibrated, abs=1e-9)
    assert result.miscalibration == pytest.approx(score - recalibrated, rel=1e-9, abs=1e-9)
    assert result.miscalibration >= 0
    assert result.discrimination >= 0
    parts = result.miscalibration - result.discrimination + result.uncertainty
    assert result.score == pytest.approx(parts, rel=1e-13, abs=1e-14)
    assert math.isfinite(result.discrimination)
    assert math.isfinite(result.uncertainty)
    assert math.isinf(result.miscalibration) == math.isinf(score)


@given(samples())
def test_the_curve_of_corp_is_the_isotonic_fit(sample):
    y, p, weight = sample
    result = corp(y, p, sample_weight=weight)
    v, g0, g1 = oracles.distribution(y, p, weight)
    np.testing.assert_array_equal(result.curve_prediction, v)
    mass, mean = g0 + g1, g1 / (g0 + g1)
    # The minimax formula: the least over ends of the largest over starts of the block means.
    for i in range(v.size):
        value = max(
            min(np.average(mean[a : b + 1], weights=mass[a : b + 1]) for b in range(i, v.size))
            for a in range(i + 1)
        )
        assert result.curve_value[i] == pytest.approx(value, abs=1e-9)
    assert (np.diff(result.curve_value) >= -1e-15).all()


@pytest.mark.parametrize("rule", ["brier", "log"])
def test_corp_of_an_isotonic_fit_has_no_miscalibration(rule):
    y = [0, 0, 0, 1, 0, 1, 1, 1]
    p = [0, 0, 0.25, 0.25, 0.25, 0.25, 1, 1]
    p = np.where(np.array(p) == 0.25, 0.5, p)
    result = corp(y, p, score=rule)
    assert result.miscalibration == 0
    again = corp(y, corp(y, np.arange(8) / 8).curve_value, score=rule)
    assert again.miscalibration == pytest.approx(0, abs=1e-15)
    backwards = corp([1, 1, 0, 0], [0.1, 0.2, 0.3, 0.4], score=rule)
    assert backwards.discrimination == 0
    assert (backwards.curve_value == 0.5).all()


def test_corp_of_weights_of_very_different_size():
    result = corp([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], sample_weight=[1e-50, 1e49, 1, 1e-30])
    assert result.score == pytest.approx(0.64)
    assert result.uncertainty == pytest.approx(0, abs=1e-15)
    assert np.isfinite(result.curve_value).all()


def test_corp_of_one_class_and_one_row():
    for rule in ("brier", "log"):
        result = corp([1, 1], [0.5, 0.75], score=rule)
        assert (result.discrimination, result.uncertainty) == (0, 0)
        assert result.miscalibration == result.score
        assert corp([1], [1.0], score=rule).score == 0


def test_corp_refuses_other_scores():
    with pytest.raises(ValueError, match="score is 'crps'"):
        corp([0, 1], [0.2, 0.7], score="crps")


def test_corp_of_a_joint_is_that_of_its_rows():
    y, p = family("beta3", 60, np.random.default_rng(4))
    parts = Joint.from_arrays(y[:20], p[:20]) + Joint.from_arrays(y[20:], p[20:])
    for rule in ("brier", "log"):
        assert repr(corp(parts, score=rule)) == repr(corp(y, p, score=rule))
