"""What every registered measure promises, in one place."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import caldist
from caldist import _kernels, weights
from caldist.measures.lower_distance import lower_distance_of
from caldist.measures.registry import MEASURES
from strategies import FAMILIES, family, samples

# Plain kernels need seconds for the default tolerance of the lower distance.
TOLERANCE = 1e-6 if _kernels.COMPILED else 1e-4


def lower_distance(y, p, **options):
    return caldist.lower_distance(y, p, tol=TOLERANCE, **options)


# name: function, measure of a joint, invariant under exchanging the labels
CONTRACT = {
    name: (measure.function, measure.of_joint, measure.flips) for name, measure in MEASURES.items()
} | {
    "gaussian": (
        lambda y, p, **options: caldist.kernel_ce(y, p, kernel="gaussian", **options),
        None,
        True,
    ),
    "binned_ece, quantile": (
        lambda y, p, **options: caldist.binned_ece(y, p, strategy="quantile", **options),
        None,
        False,
    ),
    "weighted_ce": (
        lambda y, p, **options: caldist.weighted_ce(
            y, p, functions=weights.polynomials(3), **options
        ),
        None,
        False,
    ),
}
CONTRACT["lower_distance"] = (
    lower_distance,
    lambda joint: lower_distance_of(joint, tol=TOLERANCE),
    True,
)
FUNCTIONS = {name: function for name, (function, _, _) in CONTRACT.items()}
each = pytest.mark.parametrize("measure", FUNCTIONS.values(), ids=FUNCTIONS)
SMALL = 14  # rows, so that the upper distance is exact


def same(value, measure=None, abs=1e-12):
    """Equal up to rounding, and for the lower distance up to its tolerance."""
    tolerance = 2 * TOLERANCE if measure is lower_distance else 0.0
    return pytest.approx(value, abs=max(abs, tolerance), rel=1e-12)


@each
@given(samples(max_size=SMALL), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(measure, sample, random):
    y, p, weight = sample
    if measure is FUNCTIONS["binned_ece, quantile"]:
        weight = None  # the last bit of a sum of weights can move a bin edge
    order = list(range(y.size))
    random.shuffle(order)
    moved = None if weight is None else weight[order]
    before = measure(y, p, sample_weight=weight)
    after = measure(y[order], p[order], sample_weight=moved)
    assert after == (before if weight is None else same(before, measure, 1e-11))


@each
@given(samples(max_size=12, weighted=False), st.data())
def test_an_integer_weight_is_a_repetition(measure, sample, data):
    y, p, _ = sample
    times = np.array(data.draw(st.lists(st.integers(0, 4), min_size=y.size, max_size=y.size)))
    assume(times.sum() > 0)
    repeated = measure(np.repeat(y, times), np.repeat(p, times))
    assert measure(y, p, sample_weight=times) == same(repeated, measure)


@each
@given(samples(max_size=SMALL, weighted=True), st.integers(-30, 30))
def test_the_scale_of_weights_does_not_matter(measure, sample, exponent):
    y, p, weight = sample
    value = measure(y, p, sample_weight=weight * 2.0**exponent)
    # Where a weight times the least positive double rounds to 0 the residual is lost.
    assert value == pytest.approx(measure(y, p, sample_weight=weight), rel=0, abs=1e-300)


@pytest.mark.parametrize("name", [name for name, (_, of, _) in CONTRACT.items() if of is not None])
@given(samples(min_size=2, max_size=SMALL), st.data())
def test_parts_merge_to_the_whole(name, sample, data):
    y, p, weight = sample
    cut = data.draw(st.integers(1, y.size - 1))
    parts = []
    for part in (slice(None, cut), slice(cut, None)):
        w = None if weight is None else weight[part]
        assume(w is None or w.sum() > 0)
        parts.append(caldist.Joint.from_arrays(y[part], p[part], sample_weight=w))
    function, of_joint, _ = CONTRACT[name]
    value = of_joint(parts[0] + parts[1])
    assert value == same(function(y, p, sample_weight=weight), function, 1e-11)


@pytest.mark.parametrize("name", [name for name, (_, _, flips) in CONTRACT.items() if flips])
@given(samples(max_size=SMALL))
def test_exchanging_the_labels_does_not_matter(name, sample):
    y, p, weight = sample
    p = np.round(p * 2**20) / 2**20  # so that 1 - p is exact
    measure = FUNCTIONS[name]
    flipped = measure(1 - y, 1 - p, sample_weight=weight)
    assert flipped == same(measure(y, p, sample_weight=weight), measure)


@each
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", ">f8", "<f4"])
def test_every_real_dtype_of_predictions(measure, dtype):
    y, p = family("tied", 30, np.random.default_rng(0))
    p = np.round(p * 8) / 8  # exact in every dtype
    assert measure(y, p.astype(dtype)) == measure(y, p)


@each
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "u8", "f2", "f8", "g", ">i4"])
def test_every_real_dtype_of_labels(measure, dtype):
    y, p = family("beta3", 30, np.random.default_rng(0))
    assert measure(y.astype(dtype), p) == measure(y, p)
    assert measure(y, p, sample_weight=y.astype(dtype)) == measure(y, p, sample_weight=y)


@each
def test_certain_predictions_may_be_integers_or_booleans(measure):
    y = [0, 1, 1, 0]
    expected = measure(y, [0.0, 1.0, 0.0, 1.0])
    assert measure(y, [0, 1, 0, 1]) == expected
    assert measure(y, [False, True, False, True]) == expected


@each
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
    weighted = measure(y, p, sample_weight=p)
    assert measure(pd.Series(y), p, sample_weight=backwards) == weighted


@each
def test_read_only_and_strided_arrays_are_read_and_left_alone(measure):
    y, p = family("beta3", 40, np.random.default_rng(3))
    expected = measure(y[::2].copy(), p[::2].copy())
    y.flags.writeable = p.flags.writeable = False
    assert measure(y[::2], p[::2]) == expected
    assert measure(y[::-2], p[::-2]) == measure(y[1::2].copy(), p[1::2].copy())
    table = np.stack([y, p], axis=1)
    assert measure(table[::2, 0], table[::2, 1]) == expected


@each
def test_negative_zero_is_zero(measure):
    assert measure([1, 1, 0], [-0.0, 0.0, 0.5]) == measure([1, 1, 0], [0.0, 0.0, 0.5])


@each
@given(sample=samples(max_size=SMALL))
def test_the_value_is_a_float_between_0_and_1(measure, sample):
    y, p, weight = sample
    value = measure(y, p, sample_weight=weight)
    assert type(value) is float
    assert 0 <= value <= 1 + 1e-12


@each
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("prediction", [0.0, 0.25, 0.5, 1.0])
def test_one_row(measure, label, prediction):
    value = measure([label], [prediction])
    if label == prediction:
        assert value == 0
    elif prediction == 0 and label == 1:
        assert value > 0


@each
def test_rows_without_weight_do_not_count(measure):
    y, p = [0, 1, 1, 0], [0.25, 0.5, 0.75, 0.9]
    assert measure(y, p, sample_weight=[1, 1, 1, 0]) == same(measure(y[:3], p[:3]), measure)


@each
@pytest.mark.parametrize("kind", FAMILIES)
def test_weights_of_very_different_size(measure, kind):
    rng = np.random.default_rng(5)
    y, p = family(kind, 50, rng)
    weight = 10.0 ** rng.uniform(-150, 150, 50)
    value = measure(y, p, sample_weight=weight)
    assert np.isfinite(value)
    tiny = measure(y, p, sample_weight=np.full(50, 5e-324))
    assert tiny == same(measure(y, p), measure)
