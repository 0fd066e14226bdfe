"""Scores and cumulative and smoothed errors of earlier literature, against their definitions."""

import math
from itertools import pairwise

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import oracles
from caldist import Joint, _kernels
from caldist.measures.averaged_two_bin_ce import averaged_two_bin_ce, averaged_two_bin_ce_of
from caldist.measures.brier_score import brier_score, brier_score_of
from caldist.measures.corp import Corp, corp, corp_of
from caldist.measures.ecce_mad import ecce_mad, ecce_mad_of
from caldist.measures.ecce_range import ecce_range, ecce_range_of
from caldist.measures.ece import ece
from caldist.measures.kernel_smoothed_ece import kernel_smoothed_ece, kernel_smoothed_ece_of
from caldist.measures.ks_error import ks_error, ks_error_of
from caldist.measures.log_loss import log_loss, log_loss_of
from caldist.measures.normalized_cross_entropy import (
    normalized_cross_entropy,
    normalized_cross_entropy_of,
)
from strategies import FAMILIES, family, samples

# name: function, the same on a joint
MEASURES = {
    "brier_score": (brier_score, brier_score_of),
    "log_loss": (log_loss, log_loss_of),
    "normalized_cross_entropy": (normalized_cross_entropy, normalized_cross_entropy_of),
    "ecce_mad": (ecce_mad, ecce_mad_of),
    "ecce_range": (ecce_range, ecce_range_of),
    "ks_error": (ks_error, ks_error_of),
    "averaged_two_bin_ce": (averaged_two_bin_ce, averaged_two_bin_ce_of),
    "kernel_smoothed_ece": (kernel_smoothed_ece, kernel_smoothed_ece_of),
}
SCORES = ("log_loss", "normalized_cross_entropy")  # not between 0 and 1
each = pytest.mark.parametrize("name", MEASURES)
few = settings(max_examples=40 if _kernels.COMPILED else 8)


def both_labels(y, weight):
    mass = np.ones(y.size) if weight is None else weight
    return bool(mass @ y > 0 and mass @ (1 - y) > 0)


def run(name, y, p, weight=None):
    """Compute a measure, leaving out what it is not defined on."""
    if name == "normalized_cross_entropy" and not both_labels(np.asarray(y), weight):
        reject()
    return MEASURES[name][0](y, p, sample_weight=weight)


# -- scores ------------------------------------------------------------------------------------


@given(samples())
def test_brier_score_is_that_of_scikit_learn(sample):
    y, p, weight = sample
    expected = sklearn.metrics.brier_score_loss(y, p, sample_weight=weight)
    assert brier_score(y, p, sample_weight=weight) == pytest.approx(expected, abs=1e-14)


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
    # A failure of no weight, and one whose share of the weight is too small for a double.
    assert log_loss([1, 0], [0, 0.5], sample_weight=[0, 1]) == math.log(2)
    assert log_loss([1, 0], [0, 0.5], sample_weight=[1e-300, 1e300]) == math.inf


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


def test_normalized_cross_entropy_at_its_marks():
    assert normalized_cross_entropy([0, 1, 1], [0, 1, 1]) == 1
    assert normalized_cross_entropy([0, 1, 1, 1], [0.75] * 4) == pytest.approx(0, abs=1e-15)
    assert normalized_cross_entropy([0, 1], [0.9, 0.1]) < 0
    assert normalized_cross_entropy([0, 1], [1, 1]) == -math.inf


# -- cumulative differences --------------------------------------------------------------------


@given(samples())
def test_cumulative_differences_by_definition(sample):
    y, p, weight = sample
    weight = np.ones(y.size) if weight is None else weight
    share = weight / weight.sum()
    sums = [0.0] + [float(share[p <= t] @ (y - p)[p <= t]) for t in sorted(set(p.tolist()))]
    options = {"sample_weight": weight}
    largest = max(abs(s) for s in sums)
    assert ecce_mad(y, p, **options) == pytest.approx(largest, abs=1e-13)
    assert ks_error(y, p, **options) == ecce_mad(y, p, **options)
    width = max(sums) - min(sums)
    assert ecce_range(y, p, **options) == pytest.approx(width, abs=1e-13)
    assert largest <= width + 1e-15
    assert width <= min(2 * largest, ece(y, p, **options)) + 1e-13

    edges = [0.0, *sorted(set(p.tolist())), 1.0]
    mean = sums[-1]
    averaged = sum(
        (b - a) * (s**2 + (mean - s) ** 2) for (a, b), s in zip(pairwise(edges), sums, strict=True)
    )
    assert averaged_two_bin_ce(y, p, **options) == pytest.approx(averaged, abs=1e-13)


def test_the_order_of_ties_does_not_matter():
    # Row by row the prefix sums would reach 1 in one order and -1 in the other.
    assert ecce_mad([1, 1, 0, 0], [0.5] * 4) == ecce_range([0, 0, 1, 1], [0.5] * 4) == 0


def test_averaged_two_bin_ce_is_truthful_on_average():
    # For each threshold the variances of both bins add up to E[v(1 - v)]/n.
    p = np.array([0.1, 0.4, 0.4, 0.8])
    mean = 0.0
    for bits in range(16):
        y = np.array([bits >> i & 1 for i in range(4)])
        mean += np.prod(np.where(y == 1, p, 1 - p)) * averaged_two_bin_ce(y, p)
    assert mean == pytest.approx((p * (1 - p)).sum() / 16)


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
    uncertainty = direct_score(y, np.full(y.size, share @ y), share, rule)
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
    result = corp([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], sample_weight=[1e-300, 1e300, 1, 1e-320])
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
        assert repr(corp_of(parts, score=rule)) == repr(corp(y, p, score=rule))


# -- what every measure promises -----------------------------------------------------------------


@each
@few
@given(sample=samples(max_size=14), random=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(name, sample, random):
    y, p, weight = sample
    order = list(range(y.size))
    random.shuffle(order)
    moved = None if weight is None else weight[order]
    before, after = run(name, y, p, weight), run(name, y[order], p[order], moved)
    assert after == (before if weight is None else pytest.approx(before, abs=1e-11, rel=1e-11))


@each
@few
@given(sample=samples(max_size=12, weighted=False), data=st.data())
def test_an_integer_weight_is_a_repetition(name, sample, data):
    y, p, _ = sample
    times = np.array(data.draw(st.lists(st.integers(0, 4), min_size=y.size, max_size=y.size)))
    assume(times.sum() > 0)
    repeated = run(name, np.repeat(y, times), np.repeat(p, times))
    assert run(name, y, p, times) == pytest.approx(repeated, abs=1e-12, rel=1e-12)


@each
@few
@given(sample=samples(max_size=14, weighted=True), exponent=st.integers(-30, 30))
def test_the_scale_of_weights_does_not_matter(name, sample, exponent):
    y, p, weight = sample
    value = run(name, y, p, weight * 2.0**exponent)
    # 1e-300 for the smallest predictions of all, whose product with a weight is rounded.
    assert value == pytest.approx(run(name, y, p, weight), rel=0, abs=1e-300)


@each
@few
@given(sample=samples(min_size=2, max_size=14), data=st.data())
def test_parts_merge_to_the_whole(name, sample, data):
    y, p, weight = sample
    whole = run(name, y, p, weight)
    cut = data.draw(st.integers(1, y.size - 1))
    parts = []
    for part in (slice(None, cut), slice(cut, None)):
        w = None if weight is None else weight[part]
        assume(w is None or w.sum() > 0)
        parts.append(Joint.from_arrays(y[part], p[part], sample_weight=w))
    merged = MEASURES[name][1](parts[0] + parts[1])
    assert merged == pytest.approx(whole, abs=1e-11, rel=1e-11)


@pytest.mark.parametrize(
    "name", [name for name in MEASURES if name not in ("ecce_mad", "ks_error")]
)
@few
@given(sample=samples(max_size=14))
def test_exchanging_the_labels_does_not_matter(name, sample):
    y, p, weight = sample
    p = np.round(p * 2**20) / 2**20  # so that 1 - p is exact
    flipped = run(name, 1 - y, 1 - p, weight)
    assert flipped == pytest.approx(run(name, y, p, weight), abs=1e-12, rel=1e-11)


@each
def test_every_real_dtype(name):
    y, p = family("tied", 30, np.random.default_rng(0))
    p = np.round(0.1 + 0.8 * p * 8) / 8  # exact in every dtype
    expected = run(name, y, p)
    for dtype in ("f2", "f4", "f8", "g", ">f8"):
        assert run(name, y, p.astype(dtype)) == expected
    for dtype in ("?", "i1", "u8", "f2", "g"):
        assert run(name, y.astype(dtype), p) == expected


@each
@few
@given(sample=samples(max_size=14))
def test_the_value_is_a_float_in_its_range(name, sample):
    y, p, weight = sample
    value = run(name, y, p, weight)
    assert type(value) is float
    assert not math.isnan(value)
    if name not in SCORES:
        assert 0 <= value <= 1 + 1e-12


@each
@pytest.mark.parametrize("kind", FAMILIES)
def test_weights_of_very_different_size(name, kind):
    rng = np.random.default_rng(5)
    y, p = family(kind, 50, rng)
    if kind == "one class":
        y[0] = 1 - y[0]
    weight = 10.0 ** rng.uniform(-150, 150, 50)
    value = MEASURES[name][0](y, p, sample_weight=weight)
    assert not math.isnan(value)
    tiny = MEASURES[name][0](y, p, sample_weight=np.full(50, 1e-320))
    assert tiny == pytest.approx(MEASURES[name][0](y, p), abs=1e-3, rel=1e-3)


@each
def test_bad_input_is_named(name):
    function = MEASURES[name][0]
    with pytest.raises(ValueError, match=r"y_prob\[1\]"):
        function([0, 1], [0.5, float("nan")])
    with pytest.raises(ValueError, match=r"sample_weight\[0\]"):
        function([0, 1], [0.5, 0.5], sample_weight=[-1, 1])
