"""What MMCE, debiased ECE, ECE_sweep, SB-ECE, T-Cal and SKCE promise, and their errors."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from caldist import Joint
from caldist.measures.debiased_ece import debiased_ece, debiased_ece_of
from caldist.measures.mmce import mmce, mmce_of
from caldist.measures.skce import skce, skce_of
from caldist.measures.soft_binned_ece import soft_binned_ece, soft_binned_ece_of
from caldist.measures.sweep_ece import sweep_ece, sweep_ece_of
from caldist.measures.t_cal import t_cal, t_cal_of
from strategies import FAMILIES, family, samples


def close(value):
    return pytest.approx(value, abs=1e-12, rel=1e-12)


def biased_skce(y, p, **options):
    return skce(y, p, unbiased=False, **options)


WEIGHTED = {"mmce": mmce, "soft_binned_ece": soft_binned_ece, "biased skce": biased_skce}
COUNTED = {
    "debiased_ece": debiased_ece,
    "sweep_ece": sweep_ece,
    "skce": skce,
    "t_cal": t_cal,
}
OF_JOINT = {
    "mmce": (mmce, mmce_of),
    "debiased_ece": (debiased_ece, debiased_ece_of),
    "sweep_ece": (sweep_ece, sweep_ece_of),
    "soft_binned_ece": (soft_binned_ece, soft_binned_ece_of),
    "skce": (skce, skce_of),
    "t_cal": (
        lambda y, p: t_cal(y, p, n_resamples=9, rng=0),
        lambda joint: t_cal_of(joint, n_resamples=9, rng=0),
    ),
}
ALL = WEIGHTED | COUNTED | {"t_cal": lambda y, p: t_cal(y, p, n_resamples=9, rng=0)}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", FAMILIES)
def test_a_finite_float_that_does_not_depend_on_the_order_of_rows(name, kind):
    rng = np.random.default_rng(3)
    y, p = family(kind, 200, rng)
    value = ALL[name](y, p)
    if name != "t_cal":
        assert type(value) is float
        assert math.isfinite(value)
    for _ in range(3):
        order = rng.permutation(200)
        assert ALL[name](y[order], p[order]) == value


@pytest.mark.parametrize("name", OF_JOINT)
@given(samples(min_size=4, max_size=20, weighted=False))
def test_of_a_joint_made_of_parts(name, sample):
    y, p, _ = sample
    of_rows, of_joint = OF_JOINT[name]
    joint = Joint.from_arrays(y[:2], p[:2]) + Joint.from_arrays(y[2:], p[2:])
    assert of_joint(joint) == of_rows(y, p)


@pytest.mark.parametrize("name", WEIGHTED)
@given(samples(max_size=12, weighted=False), st.data())
def test_an_integer_weight_is_a_repetition(name, sample, data):
    y, p, _ = sample
    times = np.array(data.draw(st.lists(st.integers(0, 4), min_size=y.size, max_size=y.size)))
    assume(times.sum() > 0)
    measure = WEIGHTED[name]
    repeated = measure(np.repeat(y, times), np.repeat(p, times))
    assert measure(y, p, sample_weight=times) == close(repeated)
    assert measure(y, p, sample_weight=times * 2.0**-20) == measure(y, p, sample_weight=times)


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("kind", FAMILIES)
def test_weights_of_very_different_size(name, kind):
    rng = np.random.default_rng(5)
    y, p = family(kind, 50, rng)
    assert math.isfinite(WEIGHTED[name](y, p, sample_weight=10.0 ** rng.uniform(-150, 150, 50)))
    tiny = WEIGHTED[name](y, p, sample_weight=np.full(50, 1e-320))
    assert tiny == pytest.approx(WEIGHTED[name](y, p), abs=1e-3)


@pytest.mark.parametrize("measure", [soft_binned_ece, biased_skce])
@given(samples(max_size=14))
def test_exchanging_the_labels_does_not_matter(measure, sample):
    y, p, weight = sample
    p = np.round(p * 2**20) / 2**20  # so that 1 - p is exact
    flipped = measure(1 - y, 1 - p, sample_weight=weight)
    assert flipped == pytest.approx(measure(y, p, sample_weight=weight), abs=1e-11)


@given(samples(max_size=14))
def test_exchanging_the_labels_does_not_matter_to_mmce_away_from_one_half(sample):
    y, p, weight = sample
    p = np.round(p * 2**20) / 2**20
    p[p == 0.5] = 0.25
    flipped = mmce(1 - y, 1 - p, sample_weight=weight)
    assert flipped == pytest.approx(mmce(y, p, sample_weight=weight), abs=1e-11)


@pytest.mark.parametrize("measure", [mmce, soft_binned_ece, sweep_ece, biased_skce])
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("prediction", [0.0, 0.25, 0.5, 1.0])
def test_one_row(measure, label, prediction):
    gap = abs(label - prediction)
    value = measure([label], [prediction])
    if measure is mmce:  # the confidence is 1 - v where v is at most one half
        assert value == abs((label == (prediction > 0.5)) - max(prediction, 1 - prediction))
    else:
        assert value == close(2 * gap**2 if measure is biased_skce else gap)


@given(samples(max_size=14))
def test_values_between_0_and_1(sample):
    y, p, weight = sample
    for measure in (mmce, soft_binned_ece):
        assert 0 <= measure(y, p, sample_weight=weight) <= 1 + 1e-12
    assert 0 <= sweep_ece(y, p) <= 1 + 1e-12
    assert 0 <= debiased_ece(y, p) <= 1 + 1e-12


# -- errors -----------------------------------------------------------------------------------

Y, P = [0, 1, 1], [0.2, 0.5, 0.9]


@pytest.mark.parametrize("measure", COUNTED.values(), ids=COUNTED)
def test_no_weights_where_rows_count(measure):
    with pytest.raises(ValueError, match=r"sample_weight was given, but .*leave sample_weight out"):
        measure(Y, P, sample_weight=[1, 1, 1])


@pytest.mark.parametrize("of_joint", [debiased_ece_of, sweep_ece_of, skce_of, t_cal_of])
def test_no_joint_with_fractions_of_rows(of_joint):
    joint = Joint.from_arrays(Y, P, sample_weight=[1, 1, 0.5])
    with pytest.raises(ValueError, match=r"joint\.mass1\[2\] is 0\.5: .*whole numbers"):
        of_joint(joint)


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        (mmce, {"bandwidth": 0}),
        (mmce, {"bandwidth": "1"}),
        (debiased_ece, {"n_bins": 0}),
        (debiased_ece, {"n_bins": 2.5}),
        (debiased_ece, {"strategy": "equal"}),
        (debiased_ece, {"squared": 1}),
        (sweep_ece, {"norm": 3}),
        (sweep_ece, {"norm": math.inf}),
        (soft_binned_ece, {"n_bins": 0}),
        (soft_binned_ece, {"temperature": 0.0}),
        (soft_binned_ece, {"temperature": math.inf}),
        (soft_binned_ece, {"norm": 3}),
        (t_cal, {"n_bins": 0}),
        (t_cal, {"n_resamples": 0}),
        (t_cal, {"n_resamples": 9.0}),
        (t_cal, {"rng": "seed"}),
        (skce, {"kernel": "rbf"}),
        (skce, {"kernel": np.minimum}),
        (skce, {"bandwidth": -1.0}),
        (skce, {"unbiased": 1}),
    ],
)
def test_bad_options_are_named(measure, options):
    (name,) = options
    with pytest.raises((TypeError, ValueError), match=name):
        measure(Y, P, **options)


@pytest.mark.parametrize("name", ALL)
def test_bad_rows_are_named(name):
    for y, p, part in [
        (Y, [0.2, math.nan, 0.9], r"y_prob\[1\] is nan"),
        (Y, [0.2, 0.5, 1.5], r"y_prob\[2\] is 1\.5"),
        ([0, 1, 2], P, r"y_true\[2\] is 2"),
        ([0, 1], P, "y_true has 2 values"),
        ([], [], "y_true is empty"),
    ]:
        with pytest.raises(ValueError, match=part):
            ALL[name](y, p)


def test_unbiased_skce_needs_two_rows():
    with pytest.raises(ValueError, match="unbiased=True needs at least two rows"):
        skce([1], [0.5])
