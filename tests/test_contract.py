"""What every measure promises, read from the measures themselves."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import caldist
import oracles
from caldist.kernels import loader
from caldist.measures.registry import all_measures
from measure_cases import complete, counts_rows, sums_over_rows
from strategies import FAMILIES, family, samples

# Plain kernels need seconds for the default tolerance of the lower distance.
TOLERANCE = 1e-6 if loader.COMPILED else 1e-4


def prepared(measure):
    """Bind the options that it cannot do without, and a tolerance where it has one."""
    tolerance = {"tol": TOLERANCE} if "tol" in measure.option_names else {}
    return complete(measure).using(**tolerance)


VARIANTS = [
    caldist.binned_ece.using(strategy="quantile"),
    caldist.kernel_ce.using(kernel="gaussian"),
]
CASES = {name: prepared(measure) for name, measure in all_measures().items()} | {
    str(measure): measure for measure in VARIANTS
}


def each(cases):
    return pytest.mark.parametrize("measure", cases.values(), ids=cases)


EACH = each(CASES)
WEIGHTED = each({name: measure for name, measure in CASES.items() if not counts_rows(measure)})
FLIPS = each({name: measure for name, measure in CASES.items() if measure.facts.flips})
SMALL = 14  # rows, so that the upper distance is exact


def value_of(measure, y_true, y_prob, **options):
    """Return the value, or the reason for which it is not defined on one label or on one row.

    What :func:`caldist.evaluate` shows unasked is defined on every sample.
    """
    try:
        return measure(y_true, y_prob, **options)
    except ValueError as error:
        weight = options.get("sample_weight")
        counts = np.full(len(y_prob), True) if weight is None else np.asarray(weight, float) > 0
        several = np.unique(np.asarray(y_true, float)[counts]).size > 1
        if several or "evaluate" in measure.facts.shown_in:
            raise
        return str(error)


def must_be_finite(measure, y, p):
    """Whether no infinite value makes sense: not even for a certain prediction that fails."""
    within = measure.facts.ceiling < math.inf and measure.facts.floor > -math.inf
    return within or measure.is_norm or not (p == 1 - y).any()


def weights_for(measure, weight):
    return None if counts_rows(measure) else weight


def same(value, measure, abs=1e-12):
    """Equal up to rounding, and up to the tolerance of a measure that has one."""
    if isinstance(value, str):
        return value
    tolerance = 2 * measure.option("tol") if "tol" in measure.option_names else 0.0
    return pytest.approx(value, abs=max(abs, tolerance), rel=1e-12)


def exact(value, measure):
    """Equal to the bit, or up to rounding for a sum over rows in the order given."""
    by_rows = sums_over_rows(measure) and not isinstance(value, str)
    return pytest.approx(value, rel=1e-14, abs=1e-15) if by_rows else value


@EACH
@given(samples(max_size=SMALL), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(measure, sample, random):
    y, p, weight = sample
    weight = weights_for(measure, weight)
    if measure.options.get("strategy") == "quantile":
        weight = None  # the last bit of a sum of weights can move a bin edge
    order = list(range(y.size))
    random.shuffle(order)
    moved = None if weight is None else weight[order]
    before = value_of(measure, y, p, sample_weight=weight)
    after = value_of(measure, y[order], p[order], sample_weight=moved)
    assert after == (exact(before, measure) if weight is None else same(before, measure, 1e-11))


@EACH
def test_a_finite_float_that_does_not_depend_on_the_order_of_many_rows(measure):
    for kind in FAMILIES:
        rng = np.random.default_rng(8)
        y, p = family(kind, 200 if loader.COMPILED else 40, rng)
        value = value_of(measure, y, p)
        if not isinstance(value, str):
            assert type(value) is float, kind
            assert math.isfinite(value) or not must_be_finite(measure, y, p), kind
        for _ in range(3):
            order = rng.permutation(y.size)
            assert value_of(measure, y[order], p[order]) == exact(value, measure), kind


@WEIGHTED
@given(samples(max_size=12, weighted=False), st.data())
def test_an_integer_weight_is_a_repetition(measure, sample, data):
    y, p, _ = sample
    times = np.array(data.draw(st.lists(st.integers(0, 4), min_size=y.size, max_size=y.size)))
    assume(times.sum() > 0)
    repeated = value_of(measure, np.repeat(y, times), np.repeat(p, times))
    value = value_of(measure, y, p, sample_weight=times)
    assert value == same(repeated, measure)
    assert value_of(measure, y, p, sample_weight=times * 2.0**-20) == value


@WEIGHTED
@given(samples(max_size=SMALL, weighted=True), st.integers(-30, 30))
def test_the_scale_of_weights_does_not_matter(measure, sample, exponent):
    y, p, weight = sample
    value = value_of(measure, y, p, sample_weight=weight * 2.0**exponent)
    before = value_of(measure, y, p, sample_weight=weight)
    # Where a weight times the least positive double rounds to 0 the residual is lost.
    assert value == before or value == pytest.approx(before, rel=0, abs=1e-300)


@EACH
def test_a_joint_has_the_value_of_its_rows(measure):
    rng = np.random.default_rng(6)
    for _ in range(20):
        p = rng.choice([0.2, 0.3, 0.4, 0.6, 1 - 2**-53, 2**-53], rng.integers(5, 13))
        y = rng.integers(0, 2, p.size)
        value = value_of(measure, y, p)
        if not isinstance(value, str):
            assert measure(caldist.Joint.from_arrays(y, p)) == exact(value, measure), (y, p)


@EACH
@given(samples(min_size=2, max_size=SMALL), st.data())
def test_parts_merge_to_the_whole(measure, sample, data):
    y, p, weight = sample
    weight = weights_for(measure, weight)
    cut = data.draw(st.integers(1, y.size - 1))
    parts = []
    for part in (slice(None, cut), slice(cut, None)):
        w = None if weight is None else weight[part]
        assume(w is None or w.sum() > 0)
        parts.append(caldist.Joint.from_arrays(y[part], p[part], sample_weight=w))
    whole = value_of(measure, y, p, sample_weight=weight)
    assume(not isinstance(whole, str))
    merged = measure(parts[0] + parts[1])
    assert merged == (exact(whole, measure) if weight is None else same(whole, measure, 1e-11))


@FLIPS
@given(samples(max_size=SMALL))
def test_exchanging_the_labels_does_not_matter(measure, sample):
    y, p, weight = sample
    weight = weights_for(measure, weight)
    p = np.round(p * 2**20) / 2**20  # so that 1 - p is exact
    before = value_of(measure, y, p, sample_weight=weight)
    assume(not isinstance(before, str))
    assert measure(1 - y, 1 - p, sample_weight=weight) == same(before, measure)


@EACH
def test_every_real_dtype_of_predictions(measure):
    y, p = family("tied", 30, np.random.default_rng(0))
    p = np.round(p * 8) / 8  # exact in every dtype
    expected = measure(y, p)
    for dtype in ("f2", "f4", "f8", "g", ">f8", "<f4"):
        assert measure(y, p.astype(dtype)) == expected, dtype


@EACH
def test_every_real_dtype_of_labels_and_weights(measure):
    y, p = family("beta3", 30, np.random.default_rng(0))
    expected = measure(y, p)
    weight = weights_for(measure, y)
    weighted = value_of(measure, y, p, sample_weight=weight)
    for dtype in ("?", "i1", "u1", "i4", "u8", "f2", "f8", "g", ">i4"):
        assert measure(y.astype(dtype), p) == expected, dtype
        cast = None if weight is None else weight.astype(dtype)
        assert value_of(measure, y, p, sample_weight=cast) == weighted, dtype


@EACH
def test_certain_predictions_may_be_integers_or_booleans(measure):
    y = [0, 1, 1, 0]
    expected = measure(y, [0.0, 1.0, 0.0, 1.0])
    assert measure(y, [0, 1, 0, 1]) == expected
    assert measure(y, [False, True, False, True]) == expected


@EACH
def test_every_container(measure):
    y, p = family("beta3", 20, np.random.default_rng(2))
    expected = measure(y, p)
    backwards = pd.Series(p, index=range(20)[::-1])  # an index must not align anything
    for labels, predictions in [
        (y.tolist(), p.tolist()),
        (tuple(y.tolist()), tuple(p.tolist())),
        (pd.Series(y), backwards),
        (pd.array(y, dtype="Int64"), pd.array(p, dtype="Float64")),
        (pd.Index(y), pd.Index(p)),
        (pl.Series(y), pl.Series(p)),
        (pa.array(y), pa.chunked_array([p[:7], p[7:]])),
        (memoryview(y), memoryview(p)),
        (np.ma.array(y), np.ma.array(p)),
    ]:
        assert measure(labels, predictions) == expected
    if not counts_rows(measure):
        weighted = measure(y, p, sample_weight=p)
        assert measure(pd.Series(y), p, sample_weight=backwards) == weighted


@EACH
def test_read_only_and_strided_arrays_are_read_and_left_alone(measure):
    y, p = family("beta3", 40, np.random.default_rng(3))
    expected = measure(y[::2].copy(), p[::2].copy())
    y.flags.writeable = p.flags.writeable = False
    assert measure(y[::2], p[::2]) == expected
    assert measure(y[::-2], p[::-2]) == measure(y[::-2].copy(), p[::-2].copy())
    table = np.stack([y, p], axis=1)
    assert measure(table[::2, 0], table[::2, 1]) == expected


@EACH
def test_negative_zero_is_zero(measure):
    assert measure([1, 1, 0], [-0.0, 0.0, 0.5]) == measure([1, 1, 0], [0.0, 0.0, 0.5])


@EACH
@given(sample=samples(max_size=SMALL))
def test_the_value_is_a_float_in_its_range(measure, sample):
    y, p, weight = sample
    value = value_of(measure, y, p, sample_weight=weights_for(measure, weight))
    assume(not isinstance(value, str))
    assert type(value) is float
    assert measure.facts.floor <= value <= measure.facts.ceiling + 1e-12


@EACH
def test_one_row(measure):
    for label in (0, 1):
        for prediction in (0.0, 0.25, 0.5, 1.0):
            expected = oracles.one_row(measure, label, prediction)
            if isinstance(expected, str):
                with pytest.raises(ValueError, match=expected):
                    measure([label], [prediction])
            else:
                assert measure([label], [prediction]) == same(expected, measure), (
                    label,
                    prediction,
                )


@WEIGHTED
def test_rows_without_weight_do_not_count(measure):
    y, p = [0, 1, 1, 0], [0.25, 0.5, 0.75, 0.9]
    assert measure(y, p, sample_weight=[1, 1, 1, 0]) == same(measure(y[:3], p[:3]), measure)


@WEIGHTED
def test_weights_of_very_different_size(measure):
    for kind in FAMILIES:
        rng = np.random.default_rng(5)
        y, p = family(kind, 50, rng)
        y[0] = 1 - y[1]  # both labels
        value = measure(y, p, sample_weight=10.0 ** rng.uniform(-50, 49, 50))
        assert not math.isnan(value), kind
        assert math.isfinite(value) or not must_be_finite(measure, y, p), kind
        for tiny in (1e-50, 1e100):
            equal = measure(y, p, sample_weight=np.full(50, tiny))
            assert equal == same(measure(y, p), measure), (kind, tiny)
