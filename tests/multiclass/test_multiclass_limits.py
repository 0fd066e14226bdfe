"""Limits of several classes: every term recomputed, row by row, from duals that are taken as given.

What duals attain is tested elsewhere; here it is what is made of them: means over folds, errors
that rare classes keep from vanishing, quantiles, and terms for finite samples.
"""

import math
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest

import class_oracles as oracles
from caldist import multiclass
from caldist.data.class_rows import ClassRows
from caldist.inference.cells import cells_of
from caldist.inference.resampling import Resampler
from caldist.inference.sample import FLIPS, units_of
from caldist.kernels import loader
from caldist.measures.lower_distance import lower_distance
from caldist.measures.smooth_ce import SmoothNorm
from caldist.multiclass import cells, classwise, intervals, smooth, subsets
from caldist.multiclass.smooth import smooth_bounds

LEVEL, SEED = 0.9, 3
Z, LOGARITHM = NormalDist().inv_cdf(0.95), math.log(20)  # each end may fail with 5%
FOLDS, DEALINGS = 5, 2


def rare_class(seed):
    """Return labels and probabilities of three classes, of which the last never occurs."""
    y, V = oracles.softmax(60, 3, 0.3, 1.0, seed)
    V[:, 2] /= 20
    return np.where(y == 2, 0, y), V / V.sum(axis=1, keepdims=True)


def flat(seed):
    """Return labels that are nearly all the same, and predictions that say so."""
    V = np.tile([0.96, 0.02, 0.02], (60, 1))
    y = np.zeros(60, dtype=int)
    y[seed % 60] = 1
    return y, V


def unrelated(seed):
    """Return labels that have nothing to do with predictions near certainty."""
    _, V = oracles.softmax(120, 3, 1.5, 9.0, seed)
    return np.random.default_rng(seed).integers(0, 3, 120), V


DATA = {
    "calibrated": lambda: oracles.softmax(60, 3, 1.5, 1.0, 1),
    "too sharp": lambda: oracles.softmax(120, 4, 1.5, 9.0, 0),
    "rare": lambda: rare_class(0),
    "flat": lambda: flat(0),
    "unrelated": lambda: unrelated(0),
}


def folds(rows):
    """Return each dealing's fold of each row, and each dealing's share of each fold."""
    fold = intervals.folds(rows, Resampler.of(SEED, n_resamples=1))
    assert fold.shape == (DEALINGS, rows.n_rows)
    return [
        (line == at, float(rows.share[line == at].sum()))
        for line in fold
        for at in range(FOLDS)
        if np.any(line == at)
    ]


def mean_and_error(share, score, chance, slope):
    """Return the mean of scores and its error, or that of labels with these chances if it is more.

    ``chance`` and ``slope`` are lists of classes: the slope is what a label of the class gives.
    """
    mean = sum(s * x for s, x in zip(share, score, strict=True))
    found = sum(s**2 * (x - mean) ** 2 for s, x in zip(share, score, strict=True))
    least = 0.0
    for s, p, d in zip(share, np.transpose(chance), np.transpose(slope), strict=True):
        middle = (p @ d) / p.sum()
        least += s**2 * sum(p * (d - middle) ** 2) / p.sum()
    return mean, math.sqrt(found), math.sqrt(least)


def crossing(k):
    return math.sqrt(1 + (1 - 2 / k) / 2)


def limits_of_distance(rows):
    """Return value, lower and upper limit of CW, and which of two errors were used."""
    share, label = rows.share, rows.label
    value = upper = noise = 0.0
    score, own = np.zeros(rows.n_rows), np.zeros(rows.n_rows)
    chance, slope, own_slope = [], [], []
    for j, (problem, proof) in enumerate(classwise.certificates(rows, None)):
        value, upper = value + proof.lower / 2, upper + proof.upper / 2
        v, true = problem.prediction, label == j
        support = np.unique(v)
        noise += 0.45 * math.sqrt(sum(share**2 * v * (1 - v)))
        chance.append(cells_of(units_of(problem)).rate[np.searchsorted(support, v)])
        change = np.zeros(rows.n_rows)
        for inside, mass in folds(rows):
            ones = np.array([share[inside & true & (v == x)].sum() for x in support])
            zeros = np.array([share[inside & ~true & (v == x)].sum() for x in support])
            dual = [
                dict(zip(support, r, strict=True))
                for r in lower_distance.dual(support, zeros, ones)
            ]
            part = 0.5 / (FOLDS * DEALINGS * (1 - mass))
            for i in np.flatnonzero(~inside):
                score[i] += part * dual[int(true[i])][v[i]]
                change[i] += part * (dual[1][v[i]] - dual[0][v[i]])
        slope.append(change)
        potential = [np.interp(v, proof.node, r) for r in (proof.potential0, proof.potential1)]
        own += np.where(true, potential[1], potential[0]) / 2
        own_slope.append((potential[1] - potential[0]) / 2)
    mean, found, least = mean_and_error(share, score, chance, slope)
    extra = LOGARITHM * share.max() / 3
    lower = mean - Z * crossing(rows.n_classes) * max(found, least) - extra
    worst = Z * math.sqrt(sum((s * (1 - p)) ** 2 for s, p in zip(share, rows.own, strict=True)))
    _, *errors = mean_and_error(share, own, chance, own_slope)
    stands_out = value > 2 * (noise + worst)
    above = min(worst, Z * max(errors)) if stands_out else worst
    return (value, lower, upper + above + extra), least > found, stands_out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", DATA)
def test_limits_of_the_classwise_distance(case, weighted):
    y, V = DATA[case]()
    weight = np.random.default_rng(0).integers(1, 4, y.size) if weighted else None
    rows = ClassRows.of(y, V, sample_weight=weight)
    expected, by_rates, stands_out = limits_of_distance(rows)
    found = intervals.distance_limits(rows, 1 - LEVEL, Resampler.of(SEED, n_resamples=1))
    assert found == pytest.approx(expected, abs=1e-12)
    if not weighted:  # each case is what it is for
        assert by_rates == (case in {"too sharp", "rare", "flat"})
        assert stands_out == (case == "unrelated")


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", DATA)
def test_limits_of_the_smooth_calibration_error(case, weighted):
    y, V = DATA[case]()
    weight = np.random.default_rng(0).integers(1, 4, y.size) if weighted else None
    rows = ClassRows.of(y, V, sample_weight=weight)
    resampler, k = Resampler.of(SEED, n_resamples=1), rows.n_classes
    stream = resampler.stream(intervals._LANDMARKS)
    witness = np.zeros(V.shape)
    for inside, mass in folds(rows):
        trained = smooth_bounds(rows.take(np.flatnonzero(inside)), "landmarks", 60, stream)
        away = [oracles.total_variation(V, trained.witnesses.centre)] * k
        height, sign = trained.witnesses.height.T, trained.witnesses.sign
        values = np.array(
            [
                s * np.clip((h + d).min(axis=1), -1, 1)
                for s, h, d in zip(sign, height, away, strict=True)
            ]
        ).T
        witness += np.where(inside[:, None], 0, values) / (2 * FOLDS * DEALINGS * (1 - mass))
    score = [w[label] - w @ v for w, label, v in zip(witness, y, V, strict=True)]
    mean, found, least = mean_and_error(rows.share, score, V.T, witness.T)
    extra = LOGARITHM * rows.share.max() / 3
    worst = Z * math.sqrt(float(rows.share**2 @ (1 - V[np.arange(y.size), y]) ** 2))
    value = oracles.smooth_lp(y, V, weight)
    lower = mean - Z * crossing(k) * max(found, least) - extra
    got = intervals.smooth_limits(rows, 1 - LEVEL, resampler)
    assert got == pytest.approx((value, lower, value + worst + extra), abs=1e-9)


@pytest.mark.filterwarnings("ignore:only 1 of 60 rows:UserWarning")
@pytest.mark.parametrize(
    ("measure", "limits"),
    [("classwise_distance", intervals.distance_limits), ("smooth_ce", intervals.smooth_limits)],
)
def test_intervals_are_the_limits_where_these_can_be(measure, limits):
    """Each limit has half the risk, and neither leaves what the measure can be."""
    ends = set()
    for draw in DATA.values():
        y, V = draw()
        rows, resampler = ClassRows.of(y, V), Resampler.of(SEED, n_resamples=1)
        value, lower, upper = limits(rows, 1 - LEVEL, resampler)
        found = multiclass.confidence_interval(
            y, V, measure=measure, confidence_level=LEVEL, rng=SEED
        )
        assert (found.value, found.lower, found.upper) == (value, max(0.0, lower), min(1.0, upper))
        ends.add(found.lower > 0)
    assert ends == {False, True}


@pytest.mark.skipif(not loader.COMPILED, reason="takes minutes with plain kernels")
def test_the_smooth_calibration_error_is_exact_beyond_the_number_of_landmarks():
    """ "auto" solves the transports of 801 to 5,000 different rows as they are."""
    y, V = oracles.softmax(830, 3, 1.5, 2.0, 0)
    found = multiclass.smooth_ce(y, V)
    assert found == multiclass.smooth_ce(y, V, method="exact")
    bounds = smooth_bounds(ClassRows.of(y, V), "landmarks")
    assert bounds.ends[0] <= found <= bounds.ends[1] - 1e-6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("power", [1.2, 3.0])
def test_a_comparison_from_signs_and_witnesses(power, weighted):
    """Norms and their witnesses are taken as given, the rest is done class by class."""
    y, a = oracles.softmax(40, 3, 1.5, 1.0, 0)
    b = a**power / (a**power).sum(axis=1, keepdims=True)
    weight = np.random.default_rng(0).integers(1, 4, 40) if weighted else None
    share, risk = oracles.shares(y, weight), 0.2
    errors = [(share[:, None] * (oracles.one_hot(y, 3) - V)).T for V in (a, b)]

    def on_support(v, e):
        support = np.unique(v)
        return SmoothNorm(support), np.array([e[v == x].sum() for x in support])

    def along(sign):
        found = []
        for V, model in zip((a, b), errors, strict=True):
            parts = []
            for v, e in zip(V.T, model, strict=True):
                norm, masses = on_support(v, e)
                _, drawn = on_support(v, sign * e)
                parts.append((norm(masses), norm(drawn), (norm.witnesses(masses) @ drawn).min()))
            found.append(np.sum(parts, axis=0) / 2)
        return found

    resampler = Resampler.of(SEED, n_resamples=59)
    draws = resampler.run(lambda rng: along(rng.choice([-1.0, 1.0], 40)), family=FLIPS, size=1)
    (value_a, *_), (value_b, *_) = draws[0]
    difference = value_a - value_b
    down, up = (draws[:, one, 1] - draws[:, other, 2] for one, other in ((0, 1), (1, 0)))
    rank = math.ceil(60 * (1 - risk / 3) - 1e-9) - 1
    most, score = 0.0, np.zeros(40)
    for v, w, e, f in zip(a.T, b.T, *errors, strict=True):
        norm, masses = on_support(np.concatenate((v, w)), np.concatenate((e, -f)))
        witness = dict(zip(norm.prediction, norm.witness(masses), strict=True))
        most += norm(masses) / 2
        score += np.array([e * witness[x] for e, x in zip(e, v, strict=True)]) / 2
        score -= np.array([f * witness[x] for f, x in zip(f, w, strict=True)]) / 2
    deviation = score - share * score.sum()
    most += NormalDist().inv_cdf(1 - risk / 3) * math.sqrt(deviation @ deviation)
    most += math.log(3 / risk) / 3 * np.abs(score).max()
    excess = down if difference > 0 else up
    expected = (
        difference,
        max(difference - max(0, np.sort(down)[rank]), -most),
        min(difference + max(0, np.sort(up)[rank]), most),
        min(1.0, 3 * (1 + np.count_nonzero(excess >= abs(difference))) / 60),
    )
    options = {"confidence_level": 1 - risk, "n_resamples": 59, "rng": SEED}
    found = multiclass.compare(y, a, b, sample_weight=weight, **options)
    ends = (found.difference, found.lower, found.upper, found.pvalue)
    assert ends == pytest.approx(expected, abs=1e-12)
    assert found.least_pvalue == pytest.approx(3 / 60)


def test_an_exact_value_of_many_rows_is_exact(monkeypatch):
    monkeypatch.setattr(smooth, "EXACT_ROWS", 10)
    y, V = oracles.softmax(25, 3, 1.5, 2.0, 0)
    assert multiclass.smooth_ce(y, V, method="exact") == pytest.approx(oracles.smooth_lp(y, V))


def test_the_search_for_the_worst_subset_starts_with_what_is_too_low_on_average():
    y, V = oracles.softmax(40, 14, 1.5, 2.0, 0)
    rows = ClassRows.of(y, V)
    single, too_low, *_ = subsets._starts(rows, subsets._Search(rows))
    assert single.sum() == 1
    assert too_low.tolist() == [np.mean(y == j) > V[:, j].mean() for j in range(14)]


@pytest.mark.parametrize(("k", "expected"), [(2, 1e-6), (3, 3e-5), (10, 1e-4), (200, 1e-3)])
def test_the_tolerance_that_nobody_asked_for(k, expected):
    rows = ClassRows.of(np.arange(k), np.full((k, k), 1 / k))
    assert classwise.default_tolerance(rows, None) == pytest.approx(expected)
    assert classwise.default_tolerance(rows, 0.5) == 0.5


@pytest.mark.parametrize("k", [2, 3, 6, 7, 10])
def test_slopes_that_make_the_error_largest(k):
    """Against all choices of one slope for each class; of many classes they are looked for."""
    rng = np.random.default_rng(k)
    for spread in (0.3, 1.0, 3.0):
        mean = rng.dirichlet(np.ones(k) * spread, 40)
        above = rng.uniform(-0.5, 0.5, (40, k))
        below = above - rng.uniform(0, 0.7, (40, k))
        own, square = rng.normal(0, 0.1, (40, k)), mean / 50
        sums = [square, square * own, square * (own**2 + 0.01)]
        expected = np.zeros(40)
        for choice in product([False, True], repeat=k):
            slope = np.where(choice, above, below)
            psi = own + slope - (mean * slope).sum(axis=1)[:, None]  # of each label
            expected = np.maximum(expected, (square * (psi**2 + 0.01)).sum(axis=1))
        found = cells.largest_squares(above, below, mean, sums)
        assert found == pytest.approx(expected, rel=1e-9)
