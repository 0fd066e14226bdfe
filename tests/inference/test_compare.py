"""Comparisons of models: against dense sums over all signs, and the promised properties."""

import dataclasses
import itertools
import math
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
import oracles
from caldist import random_interval_ce
from caldist.inference import differences
from caldist.inference.comparison import Comparisons, compare, compare_all
from caldist.kernels import loader
from caldist.measures import polynomials
from caldist.measures.registry import all_measures, find
from caldist.measures.smooth_ce import SmoothNorm
from strategies import examples

NORMS = tuple(name for name, measure in all_measures().items() if measure.is_norm)
COMPARED = (*NORMS, "brier_score")
WEIGHTED = caldist.weighted_ce.using(functions=polynomials(2))

few_rows = pytest.mark.filterwarnings("ignore:only .* fewer than 10:UserWarning")


def call(y, a, b, measure="smooth_ce", **options):
    bound = find(measure) if measure != "weighted_ce" else WEIGHTED
    return compare(y, a, b, measure=bound, **options)


def two_models(rng, n, kind="noise"):
    """Return labels and the predictions of a calibrated and of another model."""
    f = rng.random(n)
    y = (rng.random(n) < f).astype(int)
    if kind == "coarse":
        return y, f, np.floor(5 * f) / 5 + 0.1
    if kind == "tied":
        return y, np.round(f, 1), np.round(f**2, 1)
    return y, f, np.clip(f + 0.2 * rng.standard_normal(n), 0, 1)


# -- an independent implementation -------------------------------------------------------------
# Everything on rows, without supports: x_i at v_i, the norms as dense sums.


def merged(v, x):
    support = np.unique(v)
    return support, np.array([x[v == u].sum() for u in support])


def dense_norm(measure, v, x):
    if measure == "kernel_ce":
        return math.sqrt(max(0.0, oracles.kernel_squared(v, x, lambda s, t: np.exp(-abs(s - t)))))
    if measure == "weighted_ce":
        return max(abs(float(x @ v**k)) for k in range(3))
    support, masses = merged(v, x)
    if measure == "smooth_ce":
        return oracles.smooth_ce_lp(support, masses)
    return oracles.random_interval(support, masses, 0.1)


def dense_witness(measure, v, x, at):
    """Return w(at), w attaining the norm of x."""
    if measure == "kernel_ce":
        return np.exp(-np.abs(at[:, None] - v)) @ x / dense_norm(measure, v, x)
    if measure == "weighted_ce":
        sums = [float(x @ v**k) for k in range(3)]
        best = int(np.argmax(np.abs(sums)))
        return np.sign(sums[best]) * at**best
    w, width = np.zeros(at.size), 0.1
    jumps = np.unique(np.concatenate((v % width, [0.0, width])))
    for start, end in itertools.pairwise(jumps):
        own = np.floor((v - (start + end) / 2) / width)
        place = np.floor((at - (start + end) / 2) / width)
        sums = np.array([x[own == k].sum() for k in place])
        w += (end - start) / width * np.sign(np.where(np.abs(sums) < 1e-14, 0, sums))
    return w


def naive(y, a, b, share, part, measure, confidence_level, signs):
    """Return difference, low, high and p by the formulas, over the given signs of the parts."""
    ea, eb = share * (y - a), share * (y - b)
    norm, witness = partial(dense_norm, measure), partial(dense_witness, measure)
    difference = norm(a, ea) - norm(b, eb)
    wa, wb = witness(a, ea, a), witness(b, eb, b)
    down, up = [], []
    for sign in signs:
        s = np.array(sign)[part]
        down.append(norm(a, s * ea) - (s * eb) @ wb)
        up.append(norm(b, s * eb) - (s * ea) @ wa)
    level = 1 - (1 - confidence_level) / 3
    rank = math.ceil((len(signs) + 1) * level - 1e-9)
    both, change = np.concatenate((a, b)), np.concatenate((ea, -eb))
    w = witness(both, change, both)
    x = (y - a) * w[: y.size] - (y - b) * w[y.size :]
    groups = [part == g for g in range(part.max() + 1)]
    error = math.sqrt(sum((share * (x - share @ x))[g].sum() ** 2 for g in groups))
    largest = max(abs((share * x)[g].sum()) for g in groups)
    cap = norm(both, change) + NormalDist().inv_cdf(level) * error
    cap += math.log(1 / (1 - level)) * largest / 3
    low = max(difference - max(0, sorted(down)[rank - 1]), -cap)
    high = min(difference + max(0, sorted(up)[rank - 1]), cap)
    beyond = sum(d >= abs(difference) - 1e-13 for d in (down if difference > 0 else up))
    return difference, low, high, min(1.0, 3 * (1 + beyond) / (1 + len(signs)))


@few_rows
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("kind", ["noise", "tied"])
@pytest.mark.parametrize("measure", ["kernel_ce", "random_interval_ce", "weighted_ce"])
def test_against_dense_sums_over_all_signs(monkeypatch, measure, kind, clustered):
    rng = np.random.default_rng([len(measure), len(kind), clustered])
    for level in (0.6, 0.9):
        n, parts = (12, 6) if clustered else (7, 7)
        y, a, b = two_models(rng, n, kind)
        weight = rng.integers(1, 4, n) if clustered else None
        part = np.arange(n) % parts
        share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
        patterns = range(2**parts)
        signs = [[1 if bits >> g & 1 else -1 for g in range(parts)] for bits in patterns]
        source = iter(patterns)
        monkeypatch.setattr(
            differences,
            "random_bits",
            lambda rng, size, s=source: np.array([next(s)], dtype=np.uint8),
        )
        found = call(
            y, a, b, measure, confidence_level=level, n_resamples=len(patterns),
            sample_weight=weight, clusters=part if clustered else None,
        )  # fmt: skip
        expected = naive(y, a, b, share, part, measure, level, signs)
        got = (found.difference, found.lower, found.upper, found.pvalue)
        assert got == pytest.approx(expected, abs=1e-12)


@few_rows
def test_smooth_ce_against_linear_programs_over_all_signs(monkeypatch):
    """A Lipschitz witness is not unique: the one that is used is checked, then taken as given."""
    rng = np.random.default_rng(5)
    y, a, b = two_models(rng, 6)
    signs = list(itertools.product((-1, 1), repeat=6))
    used = {}

    class Checked(SmoothNorm):
        def solved(self, masses):
            v, (value, w) = self.prediction, super().solved(masses)
            assert np.abs(w).max() <= 1
            assert (np.abs(np.diff(w)) <= np.diff(v) + 1e-15).all()
            for found in (value, w @ masses):
                assert found == pytest.approx(oracles.smooth_ce_lp(v, masses), abs=1e-12)
            used[v.tobytes()] = w
            return value, w

    checked = dataclasses.replace(caldist.smooth_ce.facts, norm=Checked)
    monkeypatch.setattr(caldist.smooth_ce, "facts", checked)
    patterns = iter([sum((s > 0) << g for g, s in enumerate(sign)) for sign in signs])
    monkeypatch.setattr(
        differences, "random_bits", lambda rng, size: np.array([next(patterns)], dtype=np.uint8)
    )
    found = compare(y, a, b, confidence_level=0.8, n_resamples=64)

    def known(measure, v, x, at):
        support = np.unique(v)
        return used[support.tobytes()][np.searchsorted(support, at)]

    monkeypatch.setitem(globals(), "dense_witness", known)
    expected = naive(y, a, b, np.full(6, 1 / 6), np.arange(6), "smooth_ce", 0.8, signs)
    got = (found.difference, found.lower, found.upper, found.pvalue)
    assert got == pytest.approx(expected, abs=1e-10)


@few_rows
@pytest.mark.parametrize("clustered", [False, True])
def test_brier_against_paired_losses(clustered):
    rng = np.random.default_rng(3)
    y, a, b = two_models(rng, 60)
    groups = np.arange(60) // 3 if clustered else np.arange(60)
    found = compare(
        y, a, b, measure="brier_score", confidence_level=0.9, clusters=groups if clustered else None
    )
    loss = (y - a) ** 2 - (y - b) ** 2
    sums = np.array([(loss - loss.mean())[groups == g].sum() for g in np.unique(groups)])
    error = np.sqrt((sums**2).sum()) / 60
    largest = max(abs(loss[groups == g].sum()) for g in np.unique(groups)) / 60
    margin = NormalDist().inv_cdf(0.95) * error + math.log(2 / 0.1) * largest / 3
    ends = (loss.mean(), loss.mean() - margin, loss.mean() + margin)
    assert (found.difference, found.lower, found.upper) == pytest.approx(ends, abs=1e-14)
    touching = compare(
        y, a, b, measure="brier_score", confidence_level=1 - found.pvalue,
        clusters=groups if clustered else None,
    )  # fmt: skip
    assert min(abs(touching.lower), abs(touching.upper)) == pytest.approx(0, abs=1e-9)


# -- what is promised --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("measure", COMPARED)
def test_zero_is_outside_if_and_only_if_the_pvalue_is_small(measure):
    rng = np.random.default_rng(1)
    seen = set()
    for power, seed in itertools.product((1.0, 1.2, 1.5, 2.5), range(2)):
        f = rng.random(120)
        y, other = rng.random(120) < f, f**power
        for level in (0.5, 0.7, 0.8, 0.9, 0.94, 0.95, 0.97):
            found = call(y, f, other, measure, confidence_level=level, n_resamples=99, rng=seed)
            outside = not found.lower <= 0 <= found.upper
            assert outside == (found.pvalue <= 1 - level + 1e-12)
            assert found.lower <= found.difference <= found.upper
            seen.add(outside)
    assert seen == {True, False}


def test_the_interval_grows_with_the_level():
    y, a, b = two_models(np.random.default_rng(2), 150)
    for measure in COMPARED:
        found = [
            call(y, a, b, measure, confidence_level=level, n_resamples=199, rng=1)
            for level in (0.5, 0.8, 0.9, 0.95)
        ]
        assert len({result.pvalue for result in found}) == 1
        for narrow, wide in itertools.pairwise(found):
            assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper


predictions = st.lists(
    st.one_of(st.sampled_from((0.0, 0.25, 0.5, 1.0)), st.floats(0, 1)), min_size=8, max_size=8
)


@few_rows
@examples(60 if loader.COMPILED else 8)
@given(st.lists(st.integers(0, 1), min_size=8, max_size=8), predictions, predictions,
       st.sampled_from(COMPARED), st.integers(0, 9))  # fmt: skip
def test_exchanging_the_models_mirrors_the_result(y, a, b, measure, seed):
    options = {"confidence_level": 0.8, "n_resamples": 29, "rng": seed}
    found, swapped = call(y, a, b, measure, **options), call(y, b, a, measure, **options)
    assert (swapped.difference, swapped.lower, swapped.upper) == (
        -found.difference,
        -found.upper,
        -found.lower,
    )
    assert swapped.pvalue == found.pvalue
    assert (swapped.value_a, swapped.value_b) == (found.value_b, found.value_a)
    assert found.lower <= found.difference <= found.upper


@few_rows
@pytest.mark.parametrize("measure", COMPARED)
def test_equal_models_do_not_differ(measure):
    rng = np.random.default_rng(4)
    for n in (1, 2, 50):
        y, a, _ = two_models(rng, n)
        found = call(y, a, list(a), measure, n_resamples=99, rng=0)
        assert (found.difference, found.lower, found.upper, found.pvalue) == (0, 0, 0, 1)


@few_rows
def test_different_models_with_equal_residuals_are_not_called_equal():
    """Both residual masses vanish by chance: the interval must not shrink to a point."""
    y, a, b = [0, 1, 0, 1], [0.5] * 4, [0.0, 1.0, 0.0, 1.0]
    for measure in NORMS:
        found = call(y, a, b, measure, n_resamples=99, rng=0)
        assert found.difference == 0
        assert found.lower < 0 < found.upper


@pytest.mark.parametrize("measure", COMPARED)
def test_values_are_those_of_the_measures(measure):
    rng = np.random.default_rng(6)
    y, a, b = two_models(rng, 80, "tied")
    weight = rng.random(80)
    found = call(y, a, b, measure, sample_weight=weight, n_resamples=99)
    assert found.difference == found.value_a - found.value_b
    if measure != "weighted_ce":
        values = [find(measure)(y, v, sample_weight=weight) for v in (a, b)]
        assert [found.value_a, found.value_b] == pytest.approx(values, abs=1e-14)
    assert found.measure.partition("(")[0] == measure
    assert found.confidence_level == 0.95
    assert found.n_resamples == (0 if measure == "brier_score" else 99)


def test_seeds():
    y, a, _ = two_models(np.random.default_rng(7), 100)
    b = a**2
    found = compare(y, a, b, n_resamples=99, rng=5)
    assert compare(y, a, b, n_resamples=99, rng=5) == found
    assert compare(y, a, b, n_resamples=99, rng=np.random.default_rng(5)) == found
    assert compare(y, a, b, n_resamples=99, rng=6) != found


@pytest.mark.parametrize("measure", COMPARED)
def test_equal_weights_are_none_and_repeated_rows_are_a_cluster(measure):
    y, a, b = two_models(np.random.default_rng(8), 40)
    found = call(y, a, b, measure, n_resamples=99, rng=1)
    for other in (
        call(y, a, b, measure, n_resamples=99, rng=1, sample_weight=np.full(40, 2.5)),
        call(
            *(np.repeat(x, 3) for x in (y, a, b)), measure, n_resamples=99, rng=1,
            clusters=np.repeat([f"patient {k}" for k in range(40)], 3),
        ),
    ):  # fmt: skip
        for name in ("difference", "lower", "upper", "pvalue"):
            assert getattr(other, name) == pytest.approx(getattr(found, name), abs=1e-12)


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(9)
    y, a, b = (np.repeat(x, 10) for x in two_models(rng, 60))
    alone = compare(y, a, b, n_resamples=99, rng=1)
    clustered = compare(y, a, b, n_resamples=99, rng=1, clusters=np.arange(600) // 10)
    assert clustered.upper - clustered.lower > 1.5 * (alone.upper - alone.lower)


def test_options_reach_the_measure():
    y, a, b = two_models(np.random.default_rng(10), 60)
    measure = random_interval_ce.using(width=0.3)
    found = compare(y, a, b, measure=measure, n_resamples=59)
    assert found.value_a == pytest.approx(random_interval_ce(y, a, width=0.3))
    gaussian = caldist.kernel_ce.using(kernel="gaussian", bandwidth=0.5)
    assert compare(y, a, b, measure=gaussian, n_resamples=59).value_a == gaussian(y, a)
    weighted = caldist.weighted_ce.using(functions=iter(polynomials(2)))  # gone through twice
    found = compare(y, a, b, measure=weighted, n_resamples=59, rng=0)
    expected = call(y, a, b, "weighted_ce", n_resamples=59, rng=0)
    assert (found.lower, found.upper) == (expected.lower, expected.upper)


@pytest.mark.slow
def test_misses_near_zero_are_as_rare_as_promised():
    """Both models calibrated: bootstrapped differences miss most of the time, these do not."""
    sets, level = (150, 0.9) if loader.COMPILED else (12, 0.9)
    rng = np.random.default_rng(11)
    half = np.full(200, 0.5)
    missed = bootstrapped = 0
    for seed in range(sets):
        y, a, _ = two_models(rng, 200)
        found = call(
            y, a, half, "random_interval_ce", confidence_level=level, n_resamples=59, rng=seed
        )
        missed += not found.lower <= 0 <= found.upper
        draws = []
        for _ in range(39):
            row = rng.integers(0, 200, 200)
            draws.append(random_interval_ce(y[row], a[row]) - random_interval_ce(y[row], half))
        bootstrapped += not np.quantile(draws, 0.05) <= 0 <= np.quantile(draws, 0.95)
    assert missed / sets <= 1 - level + 3 * math.sqrt(level * (1 - level) / sets)
    assert bootstrapped / sets > 0.5


# -- several models ----------------------------------------------------------------------------


@pytest.mark.parametrize("measure", COMPARED)
def test_all_pairs_are_single_comparisons_at_a_higher_level(measure):
    rng = np.random.default_rng(12)
    y, a, b = two_models(rng, 120)
    models = {"first": a, "second": b, "third": a**2}
    bound = find(measure) if measure != "weighted_ce" else WEIGHTED
    options = {"measure": bound, "n_resamples": 199, "rng": 3}
    found = compare_all(y, models, confidence_level=0.94, **options)
    assert list(found.pairs) == [("first", "second"), ("first", "third"), ("second", "third")]
    for (one, two), pair in found.pairs.items():
        single = compare(y, models[one], models[two], confidence_level=0.98, **options)
        ends = (single.difference, single.lower, single.upper)
        assert (pair.difference, pair.lower, pair.upper) == pytest.approx(ends, abs=1e-12)
        assert pair.pvalue == pytest.approx(min(1.0, 3 * single.pvalue))
        assert (pair.value_a, pair.value_b) == (found.values[one], found.values[two])
        assert pair.confidence_level == found.confidence_level == 0.94
    both = compare_all(y, {"a": a, "b": b}, **options)
    assert both.pairs["a", "b"] == compare(y, a, b, **options)


def test_the_table_is_aligned_and_the_rows_are_flat():
    y, a, b = two_models(np.random.default_rng(13), 100)
    found = compare_all(y, {"net": a, "a longer name": b, "half": a / 2}, n_resamples=199, rng=0)
    assert isinstance(found, Comparisons)
    lines = str(found).splitlines()
    assert lines[0].split() == ["smooth_ce", "difference", "lower", "upper", "p"]
    assert lines[-1] == "All intervals hold together with 95% confidence."
    assert len({len(line) for line in lines[4:-1]}) == 1
    frame = found.to_frame("polars")
    assert len(frame) == 3
    names = ["model_a", "model_b", "difference", "lower", "upper", "pvalue"]
    assert frame.columns == names
    assert frame["model_b"][1] == "half"


def test_all_intervals_hold_together():
    """Three calibrated models: any interval without 0 is a miss of the whole statement."""
    sets, level = (100, 0.9) if loader.COMPILED else (8, 0.9)
    rng = np.random.default_rng(14)
    missed = 0
    for seed in range(sets):
        y, a, b = two_models(rng, 150, "coarse")
        models = {"a": a, "b": b, "c": np.full(150, 0.5)}
        found = compare_all(y, models, confidence_level=level, n_resamples=99, rng=seed)
        missed += any(not pair.lower <= 0 <= pair.upper for pair in found.pairs.values())
    assert missed / sets <= 1 - level + 3 * math.sqrt(level * (1 - level) / sets)


# -- bad input ---------------------------------------------------------------------------------

Y, A, B = [0, 1] * 10, [0.25, 0.75] * 10, [0.5, 0.25] * 10


@pytest.mark.parametrize("measure", sorted(set(all_measures()) - set(COMPARED)))
def test_measures_without_a_valid_comparison_are_refused(measure):
    with pytest.raises(ValueError, match=f"measure is '{measure}': it .*Use 'smooth_ce'"):
        compare(Y, A, B, measure=measure)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"measure": "nothing"}, ValueError, "measure is 'nothing': it must be a measure"),
        ({"confidence_level": 95}, ValueError, "confidence_level is 95"),
        ({"n_resamples": 20}, ValueError, "n_resamples is 20: .* at least 59"),
        ({"rng": "seed"}, TypeError, "rng is 'seed'"),
        ({"progress": 1}, TypeError, "progress is 1"),
        ({"y_prob_b": [*B[:-1], 1.5]}, ValueError, r"y_prob_b\[19\] is 1.5"),
        ({"y_prob_b": B[:-1]}, ValueError, "y_true has 20 values and y_prob_b has 19"),
        ({"y_true": [2, *Y[1:]]}, ValueError, r"y_true\[0\] is 2"),
        ({"sample_weight": [-1.0] * 20}, ValueError, r"sample_weight\[0\] is -1.0"),
        ({"clusters": [1, 2]}, ValueError, "clusters has 2 values"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        compare(**{"y_true": Y, "y_prob_a": A, "y_prob_b": B} | arguments)


def test_bad_models():
    with pytest.raises(TypeError, match=r"y_prob is of type list, .*Pass a dict"):
        compare_all(Y, [A, B])
    with pytest.raises(TypeError, match="y_prob has the key 1, but the name of a model"):
        compare_all(Y, {1: A, "1": B})
    with pytest.raises(ValueError, match="y_prob has only one model, but at least two"):
        compare_all(Y, {"a": A})
    with pytest.raises(ValueError, match=r"y_prob\['b'\]\[0\] is nan"):
        compare_all(Y, {"a": A, "b": [float("nan"), *B[1:]]})
    with pytest.raises(ValueError, match=r"n_resamples is 99: .* at least 179"):
        compare_all(Y, {"a": A, "b": B, "c": A}, n_resamples=99)


def test_few_rows_of_a_label_are_a_warning():
    with pytest.warns(
        UserWarning, match=r"only 9 of 29 rows have label 1: .* rough guide"
    ) as caught:
        compare([0] * 20 + [1] * 9, [0.3] * 29, [0.2] * 29, n_resamples=59)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="only 4 clusters"):
        compare(Y, A, B, n_resamples=59, clusters=np.arange(20) // 5)


def test_residuals_that_add_up_to_0_do_not_hide_the_error_of_the_mean():
    """A constant prediction equal to the frequency has a flat witness, whose height is free."""
    y = np.r_[np.zeros(60, int), np.ones(40, int)]
    a, b = np.full(100, 0.4), np.full(100, 0.5)
    b[::2] = 0.3
    found = compare(y, a, b, n_resamples=199, rng=0)
    assert found.upper - found.lower > 0.05


def test_ends_stay_where_differences_can_be():
    y = np.zeros(30, int)
    with pytest.warns(UserWarning, match="only 0 of 30 rows have label 1"):
        found = compare(y, np.zeros(30), np.ones(30), n_resamples=199, rng=0)
    assert found.lower >= -1
    assert found.difference == -1


def test_swapped_arguments_are_recognised():
    with pytest.raises(ValueError, match="look swapped"):
        compare([0.2, 0.5, 0.9], [0, 1, 1], [0, 1, 1])
