"""Replicates and the machinery that runs them: the ground that inference stands on."""

import inspect
import itertools
import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given

import caldist
import oracles
from caldist._util.threads import thread_count
from caldist.data.categories import cluster_codes
from caldist.data.rows import Rows
from caldist.inference import sample as units_module
from caldist.inference.folds import deal
from caldist.inference.limits import Limits
from caldist.inference.resampling import Resampler, order_statistic
from caldist.inference.sample import FLIPS, LABELS, Units, random_bits, units_of
from caldist.kernels import loader
from caldist.kernels.loader import replicates
from caldist.measures.lower_distance import certify_lower
from strategies import examples, samples


def rows(n, rng, *, ties=False):
    v = rng.random(n)
    v = np.round(v, 1) if ties else v
    return (rng.random(n) < v**2).astype(int), v


# -- samples and their replicates ------------------------------------------------------------------


@examples(60)
@given(data=samples())
def test_units_add_up_to_the_joint(data):
    y, p, w = data
    joint = caldist.Joint.from_arrays(y, p, sample_weight=w)
    for groups in (None, np.arange(y.size) % 3):
        sample = units_of(Rows.of(y, p, sample_weight=w, clusters=groups))
        size = joint.prediction.size
        np.testing.assert_array_equal(sample.prediction, joint.prediction)
        np.testing.assert_array_equal(sample.residual, joint.residual())
        mass = sample.count * sample.share
        for label, expected in enumerate(joint.normalized()):
            found = np.bincount(sample.place, mass * (sample.label == label), size)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
        assert sample.n_rows == (y.size if w is None else np.count_nonzero(w))


def all_bits(n):
    """Every pattern of n bits, packed as random_bits packs them, with its signs."""
    for pattern in itertools.product((0, 1), repeat=n):
        yield np.packbits(np.array(pattern, np.uint8), bitorder="little"), np.array(pattern)


@pytest.mark.parametrize("kind", ["plain", "ties", "weights", "clusters"])
def test_sign_flips_give_every_pattern_of_signs(kind, monkeypatch):
    rng = np.random.default_rng(1)
    n = 7
    y, p = rows(n, rng, ties=kind == "ties")
    weight = rng.integers(1, 4, n).astype(float) if kind == "weights" else None
    groups = np.array(list("abacbca")) if kind == "clusters" else None
    sample = units_of(Rows.of(y, p, sample_weight=weight, clusters=groups))
    bits = 3 if kind == "clusters" else n
    share = np.ones(n) / n if weight is None else weight / weight.sum()
    place = np.searchsorted(sample.prediction, p)
    flipped, expected = [], []
    for packed, pattern in all_bits(bits):
        monkeypatch.setattr(units_module, "random_bits", lambda _rng, _n, packed=packed: packed)
        flipped.append(sample.flip(rng))
        sign = 2 * pattern - 1
        sign = sign[cluster_codes(groups, n)[0]] if kind == "clusters" else sign
        expected.append(np.bincount(place, share * (y - p) * sign, sample.prediction.size))
        if kind == "clusters":
            np.testing.assert_allclose(sample.flip_clusters(packed), expected[-1], atol=1e-16)
    flipped, expected = np.round(flipped, 12) + 0.0, np.round(expected, 12) + 0.0
    # the same patterns, though units take the bits in an order of their own
    np.testing.assert_array_equal(flipped[np.lexsort(flipped.T)], expected[np.lexsort(expected.T)])


def enumerated(norm, sample, label_draws):
    """The values and probabilities of the norm over all signs or over all labels."""
    v = sample.prediction[sample.place]
    for pattern in map(np.array, itertools.product((0, 1), repeat=sample.n_rows)):
        if label_draws:
            probability = np.prod(np.where(pattern, v, 1 - v))
            unit = sample.share * (pattern - v)
        else:
            probability = 0.5**sample.n_rows
            unit = sample.share * sample.error * (2 * pattern - 1)
        yield norm(np.bincount(sample.place, unit, sample.prediction.size)), probability


@pytest.mark.parametrize("family", [FLIPS, LABELS])
@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles_against_all_patterns(family, weighted):
    rng = np.random.default_rng(5)
    n = 8
    y, p = rows(n, rng)
    weight = rng.random(n) + 0.5 if weighted else None
    sample = units_of(Rows.of(y, p, sample_weight=weight))
    norm = caldist.smooth_ce.norm(sample.prediction)
    value, probability = np.array(list(enumerated(norm, sample, family == LABELS))).T
    assert probability.sum() == pytest.approx(1)
    draw = sample.draw if family == LABELS else sample.flip
    resampler = Resampler.of(0, n_resamples=1999)
    drawn = resampler.run(lambda rng: norm(draw(rng)), family=family, size=n)
    # the law of the replicates, to four standard errors
    for height in np.quantile(value, (0.1, 0.3, 0.5, 0.7, 0.9)) + 1e-9:
        exact = probability[value <= height].sum()
        error = 4 * np.sqrt(exact * (1 - exact) / drawn.size)
        assert abs(np.mean(drawn <= height) - exact) <= error
    # the quantile that skips the replicates which cannot matter is that of all of them
    quick = Limits(sample, 0.1, resampler).norm_quantile(norm, draw, family)
    assert quick == order_statistic(drawn, 0.95)


@pytest.mark.parametrize("times", [1, 10, 10**6])
def test_summaries_of_many_rows_have_the_moments_of_their_rows(times):
    """Units of many rows draw one number, binomial or normal, instead of a bit for each row."""
    masses = times * np.array([[800, 50, 30], [150, 70, 600]])
    joint = caldist.Joint.from_masses([0.2, 0.5, 0.9], *masses, n_rows=1700 * times)
    sample = Units.of_joint(joint)
    rng = np.random.default_rng(0)
    flips = np.array([sample.flip(rng) for _ in range(4000)])
    draws = np.array([sample.draw(rng) for _ in range(4000)])
    v, total = joint.prediction, joint.total
    variance = (joint.mass1 * (1 - v) ** 2 + joint.mass0 * v**2) / total**2
    calibrated = (joint.mass1 + joint.mass0) * v * (1 - v) / total**2
    for found, expected in ((flips, variance), (draws, calibrated)):
        assert np.abs(found.mean(axis=0)).max() <= 4 * np.sqrt(expected.max() / 4000)
        np.testing.assert_allclose(found.var(axis=0), expected, rtol=0.1)
        np.testing.assert_allclose(np.corrcoef(found.T), np.eye(3), atol=0.08)


class Counted:
    """A generator that counts the random numbers it is asked for."""

    def __init__(self):
        self.rng, self.numbers = np.random.default_rng(0), 0

    def __getattr__(self, name):
        def draw(*arguments):
            found = getattr(self.rng, name)(*arguments)
            self.numbers += len(found) if name == "bytes" else np.size(found)
            return found

        return draw


def test_what_a_summary_costs_does_not_depend_on_the_number_of_rows():
    """Random numbers of replicates and parts of folds, from 3e7 rows in 64 cells to 3e13."""
    rate = (np.arange(64) + 0.5) / 64
    numbers, parts = set(), set()
    for rows in (10**6, 10**9, 10**12):
        ones = np.rint(rate * rows / 2)
        sample = Units.of_joint(
            caldist.Joint.from_masses(rate, rows / 2 - ones, ones, n_rows=32 * rows)
        )
        rng = Counted()
        for replicate in (sample.flip, sample.draw, sample.flip_masses):
            replicate(rng)
        numbers.add(rng.numbers)
        folds = deal(sample, np.random.default_rng(0))
        (train, trained), (test, tested) = folds.halves((1, 3))
        parts.add((folds.units.place.size, train.place.size, test.place.size))
        assert train.count.sum() + test.count.sum() == sample.count.sum()
        assert trained == pytest.approx(folds.masses[0, [1, 3]].sum())
        assert tested == pytest.approx(1 - trained)
    assert numbers == {128 + 64 + 128}
    assert parts == {(25 * 128, 128, 128)}


def test_functions_draw_999_replicates_unless_another_number_is_passed():
    modules = (caldist, caldist.multiclass)
    functions = [getattr(module, name) for module in modules for name in module.__all__]
    defaults = [
        inspect.signature(function).parameters["n_resamples"].default
        for function in functions
        if inspect.isfunction(function) and "n_resamples" in inspect.signature(function).parameters
    ]
    assert len(defaults) > 5
    assert set(defaults) == {999}


@pytest.mark.parametrize("kind", ["rows", "ties", "joint", "weights", "clusters"])
def test_halves_are_the_rows_of_some_folds(kind):
    """Whether rows are counted or picked: the same masses, squares and numbers of rows."""
    rng = np.random.default_rng(0)
    y, v = rng.integers(0, 2, 300), rng.random(300)
    v = v if kind in {"rows", "weights"} else np.round(v, 1)
    options = {"weights": {"sample_weight": rng.random(300)}, "clusters": {"clusters": v * 10}}
    rows = Rows.of(y, v, **options.get(kind, {}))
    units = units_of(Rows.of(rows.joint) if kind == "joint" else rows)
    folds = deal(units, np.random.default_rng(1))
    inside = np.isin(folds.fold[0], (0, 2))
    for (half, share), chosen in zip(folds.halves((0, 2)), (inside, ~inside), strict=True):
        mass = folds.units.mass[chosen]
        assert share == pytest.approx(mass.sum())
        key = folds.units.place[chosen] * 2 + folds.units.label[chosen]
        size = 2 * units.prediction.size
        expected = np.bincount(key, mass / mass.sum(), size)
        assert np.bincount(half.place * 2 + half.label, half.mass, size) == pytest.approx(expected)
        assert half.count.sum() == folds.units.count[chosen].sum()
        squares = (folds.units.count * folds.units.share**2)[chosen].sum() / mass.sum() ** 2
        assert half.squares.sum() == pytest.approx(squares)
    assert folds.halves(range(5))[1] is None


def test_tied_rows_are_as_many_rows_with_equal_predictions():
    y, p = np.array([0, 1, 1, 0, 1, 0, 0, 0]), np.array([0.3] * 5 + [0.6] * 3)
    sample = units_of(Rows.of(y, p))
    assert sample.count.tolist() == [3, 2, 3]
    rng = np.random.default_rng(0)
    draws = np.array([sample.draw(rng) for _ in range(2000)])
    assert np.unique(np.round(draws[:, 1] * 8 + 1.8, 9)).tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(draws.var(axis=0) * 64, [5 * 0.21, 3 * 0.24], rtol=0.12)


# -- the lower distance ----------------------------------------------------------------------------


def deviation_integral(v, d0, d1):
    """The integral of |D1(v <= t)| + |D0(v > t)| over [0, 1], one piece after the other."""
    edge = np.unique(np.concatenate(([0.0, 1.0], v)))
    return sum(
        (b - a) * (abs(d1[v <= (a + b) / 2].sum()) + abs(d0[v > (a + b) / 2].sum()))
        for a, b in itertools.pairwise(edge)
    )


@pytest.mark.slow
def test_the_deviation_bounds_the_change_of_the_lower_distance():
    rng = np.random.default_rng(8)
    tightest, tol = 0.0, 1e-7 if loader.COMPILED else 1e-3
    for trial in range(60 if loader.COMPILED else 12):
        n = int(rng.integers(1, 9))
        v = np.unique(np.round(rng.random(n), 2) if trial % 2 else rng.beta(0.3, 0.3, n))
        first, second = rng.dirichlet(np.full(2 * v.size, 0.4), size=2)
        if trial % 3 == 0:  # a few labels flipped
            second = first.copy()
            k, share = int(rng.integers(v.size)), rng.random()
            second[k], second[v.size + k] = (
                (1 - share) * first[k],
                first[v.size + k] + share * first[k],
            )
        change = np.ascontiguousarray(second - first)
        bound = replicates.label_deviation(v, change)
        expected = deviation_integral(v, change[: v.size], change[v.size :])
        assert bound == pytest.approx(expected, abs=1e-14)
        values = [
            certify_lower(caldist.Joint.from_masses(v, m[: v.size], m[v.size :]), tol=tol)
            for m in (first, second)
        ]
        apart = max(values[0].lower - values[1].upper, values[1].lower - values[0].upper)
        assert apart <= bound + 1e-12
        tightest = max(tightest, apart / bound if bound > 1e-9 else 0.0)
        if trial < 6:  # and by a linear program that shares no code
            grid = np.unique(np.concatenate(([0, 1], v, np.linspace(0, 1, 201))))
            lp = [
                oracles.lower_distance_dual_lp(v, m[: v.size], m[v.size :], grid)
                for m in (first, second)
            ]
            assert abs(lp[0] - lp[1]) <= bound + 2e-5
    assert tightest > (0.99 if loader.COMPILED else 0.8)  # it is attained


def test_flipped_masses_are_changes_of_a_probability():
    rng = np.random.default_rng(2)
    for groups in (None, np.arange(50) % 12):
        sample = units_of(Rows.of(*rows(50, rng, ties=True), clusters=groups))
        change = sample.flip_masses(rng)
        assert change.size == 2 * sample.prediction.size
        assert abs(change.sum()) < 1e-15
        assert np.abs(change).sum() > 0


# -- running replicates ----------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_values_whatever_the_number_of_threads():
    sample = units_of(Rows.of(*rows(60, np.random.default_rng(0))))
    norm = caldist.smooth_ce.norm(sample.prediction)

    def run(rng, threads, family=0):
        resampler = Resampler.of(rng, n_resamples=50)
        resampler = Resampler(resampler.entropy, 50, threads=threads)
        return resampler.run(lambda rng: norm(sample.flip(rng)), family=family, size=60)

    one = run(11, 1)
    for threads in (2, 3, 8):
        np.testing.assert_array_equal(one, run(11, threads))
    np.testing.assert_array_equal(one, run(np.random.default_rng(11), 2))
    assert (one != run(12, 1)).any()
    assert (one != run(11, 1, family=1)).any()
    assert (run(None, 1) != run(None, 1)).any()
    generator = np.random.default_rng(11)
    assert (run(generator, 1) != run(generator, 1)).any()  # a generator goes on


def test_more_resamples_keep_the_first_ones():
    few, many = (
        Resampler(7, count).run(lambda rng: rng.random(), family=0, size=1) for count in (20, 70)
    )
    np.testing.assert_array_equal(few, many[:20])
    assert np.unique(many).size == 70


def test_values_may_be_vectors():
    values = Resampler(7, 33, threads=2).run(lambda rng: rng.random(3), family=0, size=1)
    assert values.shape == (33, 3)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupt_stops_all_threads_and_comes_through(threads, error):
    calls = []

    def replicate(rng):
        calls.append(None)
        if len(calls) == 30:
            raise error
        return rng.random()

    before = threading.active_count()
    with pytest.raises(error):
        Resampler(1, 100_000, threads=threads).run(replicate, family=0, size=1)
    assert len(calls) < 100
    assert threading.active_count() == before


def test_an_interrupt_of_the_waiting_thread_stops_the_others_within_a_replicate(monkeypatch):
    first, started, interrupted, calls = [], threading.Event(), threading.Event(), []

    def replicate(rng):
        first.append(threading.get_ident())
        if threading.get_ident() == first[0]:
            started.wait()
            return rng.random()
        started.set()
        calls.append(None)
        interrupted.wait()
        time.sleep(0.05)
        return rng.random()

    def advance(_done):
        interrupted.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(Resampler, "_bar", lambda _: nullcontext(advance))
    with pytest.raises(KeyboardInterrupt):
        Resampler(1, 1_000, threads=2).run(replicate, family=0, size=1)
    assert 0 < len(calls) < 16  # of the block that another thread is at


def test_the_number_of_threads_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("CALDIST_NUM_THREADS", " 71 ")
    assert thread_count() == 71
    monkeypatch.setenv("CALDIST_NUM_THREADS", "")
    assert thread_count() != 71
    for wrong in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv("CALDIST_NUM_THREADS", wrong)
        with pytest.raises(ValueError, match=f"CALDIST_NUM_THREADS is '{wrong}': it must be"):
            thread_count()


def test_there_is_no_progress_bar_unless_one_is_asked_for():
    assert not Resampler.of(0, n_resamples=1).progress
    assert Resampler.of(0, n_resamples=1, progress=True).progress


def test_progress_goes_to_stderr(capsys, monkeypatch):
    import functools

    import tqdm.auto

    slow = functools.partial(tqdm.auto.tqdm)
    monkeypatch.setattr(tqdm.auto, "tqdm", lambda **options: slow(**{**options, "delay": 0}))
    Resampler(1, 20, progress=True).run(lambda rng: rng.random(), family=0, size=1)
    shown = capsys.readouterr()
    assert "20/20" in shown.err
    assert shown.out == ""


def test_order_statistics():
    values = np.arange(1.0, 1000.0)
    assert order_statistic(values, 0.975) == 975
    assert order_statistic(values, 0.95) == 950
    assert order_statistic(values[::-1], 0.9) == 900
    with pytest.raises(ValueError, match=r"n_resamples is 999.*at least 1999"):
        order_statistic(values, 0.9995)
    with pytest.raises(ValueError, match=r"n_resamples is 999.*Lower confidence_level"):
        order_statistic(values, 1.0)
    assert order_statistic(np.arange(1.0, 2000.0), 0.9995) == 1999


def test_random_bits_are_packed_from_the_lowest():
    bits = random_bits(np.random.default_rng(0), 20_000)
    assert bits.size == 2500
    share = np.unpackbits(bits, bitorder="little").mean()
    assert abs(share - 0.5) < 0.02


def test_cluster_labels_of_any_kind():
    code, count = cluster_codes(["b", "a", "b"], 3)
    assert (code.tolist(), count) == ([0, 1, 0], 2)
    assert cluster_codes(np.array([5, 5, 2]), 3)[0].tolist() == [0, 0, 1]
    assert cluster_codes([(1, 2), (1, 3), (1, 2)], 3)[0].tolist() == [0, 1, 0]
    assert cluster_codes([2, "2", 2.0], 3)[0].tolist() == [0, 1, 0]


def test_cluster_labels_of_other_libraries():
    torch = pytest.importorskip("torch")
    assert cluster_codes(torch.tensor([7, 3, 7]), 3)[0].tolist() == [0, 1, 0]
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"clusters\[1\] is None"):
        cluster_codes(pyarrow.array(["a", None, None]), 3)


@pytest.mark.parametrize(
    ("clusters", "error", "match"),
    [
        ("abc", TypeError, "clusters is 'abc'"),
        (7, TypeError, "clusters is 7"),
        ({"a": 1}, TypeError, "clusters is"),
        ([1, 2], ValueError, "clusters has 2 values and y_prob has 3"),
        ([1, None, 2], ValueError, r"clusters\[1\] is None"),
        ([1, 2, float("nan")], ValueError, r"clusters\[2\] is nan"),
        ([[1], [2], [3]], TypeError, r"clusters\[0\] is \[1\]: a label must be hashable"),
        (np.array(["2020", "NaT", "NaT"], "M8[ns]"), ValueError, r"clusters\[1\] is NaT"),
        (np.ma.array([1, 2, 3], mask=[0, 0, 1]), ValueError, r"clusters\[2\] is masked"),
        (np.eye(3), ValueError, r"clusters has shape \(3, 3\)"),
        (np.array(3), TypeError, "clusters is array"),
    ],
)
def test_bad_cluster_labels(clusters, error, match):
    with pytest.raises(error, match=match):
        cluster_codes(clusters, 3)


def test_missing_cluster_labels_of_pandas():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"clusters\[1\] is (<NA>|nan)"):
        cluster_codes(pandas.array([1, None, 2], dtype="Int64"), 3)


# -- kernels, compiled and plain -------------------------------------------------------------------


def test_compiled_and_plain_replicates_agree_to_the_bit():
    compiled, plain = replicates, loader.plain("replicates")
    rng = np.random.default_rng(4)
    n, units = 20, 50
    v = np.sort(rng.random(n))
    place, count = np.sort(rng.integers(0, n, units)), rng.integers(1, 5, units)
    size, group = rng.standard_normal(units), rng.integers(0, 9, units)
    bits, uniform = random_bits(rng, count.sum()), rng.random(count.sum())
    masses = rng.standard_normal(n)
    results = []
    for kernel in (compiled, plain):
        out = [np.full(n, np.nan) for _ in range(4)]
        kernel.flip_rows(bits, place, size, count, out[0])
        kernel.flip_clusters(bits, place, size, group, out[1])
        kernel.collect(size, place, size, out[2])
        kernel.draw_labels(uniform, place, size, count, v, out[3])
        results.append([part.tolist() for part in out])
        results[-1].append(kernel.label_deviation(v, np.tile(masses, 2)))
    assert results[0] == results[1]
