"""Confidence intervals, and the population's bracket of the distance to calibration."""

import dataclasses
import math
from statistics import NormalDist

import numpy as np
import pytest

import caldist
from caldist.data.rows import Rows
from caldist.inference import (
    Interval,
    confidence_interval,
)
from caldist.inference import sample as units_module
from caldist.inference.folds import ordered_units
from caldist.inference.limits import Limits
from caldist.inference.resampling import Resampler, order_statistic
from caldist.inference.sample import FLIPS, LABELS, units_of
from caldist.kernels import loader
from caldist.measures.lower_distance import TOLERANCE
from clustered_rows import bursts
from interval_cases import MEASURES, few_rows, interval, rows

FAST = loader.COMPILED

METHODS = ["resampling", "cross_fit", "finite_sample"]

# -- what every interval is ------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_value_is_the_public_measures_and_ends_are_in_order(measure, method):
    rng = np.random.default_rng(1)
    y, p = rows(60)
    for weight in (None, rng.random(60) + 0.1):
        for predictions in (p, np.round(p, 1), p**3):
            found = interval(y, predictions, measure, method=method, sample_weight=weight)
            public = measure(y, predictions, sample_weight=weight)
            assert found.value == pytest.approx(public, rel=1e-14)  # another order of a sum
            assert 0 <= found.lower <= found.upper <= 1
            assert found.confidence_level == 0.95
            if measure.name not in {"surrogate_interval_ce", "interval_ce"}:
                assert found.lower <= found.value <= found.upper
            if method == "finite_sample":
                assert (found.method, found.n_resamples) == ("finite_sample", 0)
            elif measure.name == "brier_score":
                assert (found.method, found.n_resamples) == ("normal", 0)
            else:
                draws = 99 if method == "resampling" else 0
                assert (found.method, found.n_resamples) == (method, draws)


def test_auto_is_resampling_unless_rows_are_many():
    assert interval(*rows(), method="auto") == interval(*rows(), method="resampling")
    y = np.arange(100_000) % 4 > 0
    many = caldist.Joint.from_arrays(y, np.where(np.arange(100_000) % 8 > 3, 0.8, 0.7))
    found = confidence_interval(many, rng=0)
    assert (found.method, found.n_resamples) == ("cross_fit", 0)
    assert found == confidence_interval(many, method="cross_fit", rng=0)
    assert dataclasses.is_dataclass(Interval)
    with pytest.raises(dataclasses.FrozenInstanceError):
        interval(*rows()).lower = 0


def test_an_interval_in_words():
    found = Interval(0.12345678, 0.1, 0.2, 0.9, "resampling", 99, "smooth_ce")
    text = "0.1235, 90% confidence interval 0.1 to 0.2"
    assert str(found) == text
    rounded = dataclasses.replace(found, rounding=0.00012)
    moved = "moved outwards for the rounding of the predictions"
    assert str(rounded) == f"{text}, {moved}, by at most 0.00012"
    rounded = dataclasses.replace(found, rounding=0.0001201)
    assert str(rounded) == f"{text}, {moved}, by at most 0.00013"
    assert str(dataclasses.replace(found, rounding=None)) == f"{text}, {moved}"
    assert found.to_dict()["upper"] == 0.2
    nothing = Interval(0.5, -math.inf, math.inf, 0.9, note="too few rows")
    assert str(nothing) == "0.5 (no interval: too few rows)"
    assert nothing.to_dict()["lower"] is nothing.to_dict()["upper"] is None
    assert str(dataclasses.replace(nothing, value=None)) == "no value: too few rows"
    assert found.to_frame("polars").columns[:3] == ["value", "lower", "upper"]


@few_rows
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([1], [0.3]),
        ([0], [0.0]),
        ([1, 1, 1], [0.2, 0.5, 1.0]),
        ([0, 1, 0, 1], [0.5] * 4),
        ([0, 1], [1.0, 0.0]),
        ([0] * 30, [0.0] * 30),
    ],
)
def test_degenerate_samples(measure, method, y, p):
    found = interval(y, p, measure, method=method)
    assert all(math.isfinite(x) for x in (found.value, found.lower, found.upper))
    assert 0 <= found.lower <= found.upper <= (math.inf if measure.name == "weighted_ce" else 1)


def test_higher_levels_are_wider():
    y, p = rows(200, power=2.0)
    for measure in MEASURES:
        for method in METHODS:
            narrow, wide = (
                interval(y, p, measure, method=method, confidence_level=level)
                for level in (0.8, 0.97)
            )
            assert wide.lower <= narrow.lower
            assert wide.upper >= narrow.upper


# -- the recipes -----------------------------------------------------------------------------------


def test_the_recipe_for_smooth_ce_step_by_step():
    y, p = rows(300, power=1.5)
    n, delta, z = 300, 0.1, 1.6448536269514722
    found = interval(y, p, confidence_level=0.9, n_resamples=199)
    order = np.argsort(p)
    v, e = p[order], (y - p)[order]
    norm = caldist.smooth_ce.norm(v)
    w = norm.witness(e / n)
    resampler, sample = Resampler.of(0, n_resamples=199), units_of(Rows.of(y, p))
    q, m = (
        order_statistic(
            resampler.run(lambda rng, draw=draw: norm(draw(rng)), family=at, size=n), 0.95
        )
        for at, draw in enumerate((sample.flip, sample.draw))
    )
    split = interval(y, p, confidence_level=0.9, method="cross_fit")
    assert 0 < split.lower < found.value - max(q, m)  # the better one is by replicates
    assert found.lower == pytest.approx(found.value - max(q, m), abs=1e-15)
    far, far_split = (
        interval(y, p**3, confidence_level=0.9, method=method) for method in METHODS[:2]
    )
    assert far.lower == far_split.lower  # here by splitting
    r = np.empty(n)  # in each cell the frequency of label 1 with a row of each label more
    start, edges = 0, []
    for at in range(1, n + 1):
        width = at < n and (at + 1 - start) * (v[at] - v[start])
        if at == n or width > 3 * math.sqrt((v[start : at + 1] * (1 - v[start : at + 1])).sum()):
            inside = y[order][start:at]
            r[start:at] = (inside.sum() + 1) / (inside.size + 2)
            edges.append(start)
            start = at
    assert 5 < len(edges) < 15
    s = max(np.std(e * w) / math.sqrt(n), math.sqrt((r * (1 - r) * w**2).sum()) / n)
    assert found.upper == pytest.approx(found.value + z * s + math.log(2 / delta) / (3 * n))


@pytest.mark.parametrize("grouped", [False, True])
def test_the_recipe_for_the_lower_distance_step_by_step(grouped):
    """The integral of how many rows of label 1 are below t, and of label 0 above, by which noise
    changes them: the larger one of signs and of drawn labels."""
    n = 300
    y, p = rows(n, power=1.6)
    options = {"clusters": np.arange(n) // 3} if grouped else {}
    units = ordered_units(Rows.of(y, p, **options))
    step = np.diff(units.prediction, append=1.0)

    def changed(zero, one):
        above = np.append(np.cumsum(zero[::-1])[-2::-1], 0.0)  # of label 0, beyond each prediction
        return units.prediction[0] * abs(zero.sum()) + step @ (abs(np.cumsum(one)) + abs(above))

    def signs(rng):
        return changed(*units.flip_masses(rng).reshape(2, -1))

    def labels(rng):
        ones = units.draw(rng)
        return changed(-ones, ones)

    resampler = Resampler.of(0, n_resamples=99)
    noise = max(
        order_statistic(resampler.run(draw, family=family, size=n), 0.975)
        for family, draw in ((FLIPS, signs), (LABELS, labels))
    )
    found, split = (
        interval(y, p, "lower_distance", method=method, **options)
        for method in ("resampling", "cross_fit")
    )
    assert found.value < 2 * noise
    assert found.lower == pytest.approx(max(split.lower, found.value - noise), rel=1e-12)
    above = 1.959963984540054 * units.largest_error + math.log(40) / 3 * units.largest_share
    if grouped:
        assert noise < above  # which supposes the worst of clusters
        above = noise
    else:
        assert 0 < split.lower < found.value - noise
    assert found.upper == pytest.approx(found.value + TOLERANCE + above, rel=1e-12)


def test_the_upper_ends_that_use_the_standard_deviation_of_residuals():
    y, p = rows(300)
    n, delta, z = 300, 0.1, 1.6448536269514722
    sigma = math.sqrt(np.mean((y - p) ** 2) / n)
    extra = math.log(2 / delta) / (3 * n)
    for measure, tolerance in (
        ("kernel_ce", 0),
        ("random_interval_ce", 0),
        ("lower_distance", TOLERANCE),
    ):
        found = interval(y, p, measure, confidence_level=0.9)
        assert found.upper == pytest.approx(found.value + tolerance + z * sigma + extra, abs=1e-12)
    finest = math.ceil(math.log2(n) / 2)
    widths = [2.0**-k for k in range(finest + 1)]
    z = NormalDist().inv_cdf(1 - delta / 12)
    values = [caldist.random_interval_ce(y, p, width=width) for width in widths]
    expected = min(a + b for a, b in zip(values, widths, strict=True)) + z * sigma
    assert len(widths) == 6
    found = interval(y, p, "surrogate_interval_ce", confidence_level=0.9)
    assert found.upper == pytest.approx(expected, rel=1e-12)
    assert interval(y, p, "interval_ce", confidence_level=0.9).upper == found.upper
    lower = interval(y, p, "lower_distance", confidence_level=0.9)
    assert interval(y, p, "interval_ce", confidence_level=0.9).lower == lower.lower


def test_the_brier_score_is_a_mean():
    y, p = rows(250)
    terms = (y - p) ** 2
    half = 1.959963984540054 * np.std(terms) / math.sqrt(250) + math.log(40) / 750
    found = interval(y, p, "brier_score")
    assert found.lower == pytest.approx(terms.mean() - half)
    assert found.upper == pytest.approx(terms.mean() + half)
    half = math.sqrt(math.log(40) / 500)
    assert interval(y, p, "brier_score", method="finite_sample").upper == pytest.approx(
        terms.mean() + half
    )


def test_a_summary_does_not_hide_that_weights_differ():
    """Two rows of weights 1 and 3 in each cell have the effective shares of equal rows."""
    p = np.repeat((np.arange(64) + 0.5) / 64, 2)
    y = np.repeat(np.arange(64) * 7 % 64 < np.arange(64), 2).astype(int)
    weighted = caldist.Joint.from_arrays(y, p, sample_weight=np.tile([1.0, 3.0], 64)).coarsen(6)
    equal = caldist.Joint.from_arrays(y, p).coarsen(6)
    for joint, alike in ((weighted, False), (equal, True)):
        assert units_of(Rows.of(joint)).are_alike == alike
    found = caldist.confidence_interval(weighted, method="finite_sample")
    plain = caldist.confidence_interval(equal, method="finite_sample")
    assert found.lower < plain.lower or found.lower == 0
    assert found.upper > plain.upper


def test_the_finite_sample_bounds():
    y, p = rows(5000)
    n, log = 5000, math.log(2 / 0.05)
    # Of smCE and ldCE of equal, independent rows the noise is not paid for.
    pairs = np.arange(n) // 2
    noise = {
        "smooth_ce": (0.0, 1 + 1 / math.sqrt(2)),
        "kernel_ce": (1.0, 1.0),
        "lower_distance": (0.0, 1.0),
    }
    for measure, (factor, dependent) in noise.items():
        found = interval(y, p**4, measure, method="finite_sample")
        below = factor / math.sqrt(n) + math.sqrt(2 * log / n)
        assert found.lower == pytest.approx(found.value - below, abs=1e-12)
        other = interval(y, p**4, measure, method="finite_sample", clusters=pairs)
        below = (dependent + math.sqrt(2 * log)) / math.sqrt(n / 2)
        assert other.lower == pytest.approx(max(0.0, other.value - below), abs=1e-12)
        above = found.value + math.sqrt(2 * log / n)
        assert found.upper == pytest.approx(above, abs=2 * TOLERANCE)
    widths = [2.0**-k for k in range(math.ceil(math.log2(n) / 2) + 1)]
    best = min(caldist.random_interval_ce(y, p**4, width=width) + width for width in widths)
    found = interval(y, p**4, "surrogate_interval_ce", method="finite_sample")
    above = math.sqrt(2 * (log + math.log(len(widths))) / n)
    assert found.upper == pytest.approx(best + above)


def test_resampling_is_narrower_than_what_is_proved():
    y, p = rows(400, power=1.5)
    for measure in MEASURES:
        sharp, split, proved = (interval(y, p, measure, method=method) for method in METHODS)
        assert sharp.upper - sharp.lower < proved.upper - proved.lower
        assert split.upper - split.lower < proved.upper - proved.lower


# -- coverage --------------------------------------------------------------------------------------


@pytest.mark.slow
@few_rows
@pytest.mark.parametrize("law", ["uniform", "extreme", "constant"])
def test_coverage_at_perfect_calibration(law):
    """And the percentile bootstrap covers 0 in none of the samples without ties."""
    trials, n = (100, 60) if loader.COMPILED else (25, 30)
    missed = dict.fromkeys(("smooth_ce", "kernel_ce", "random_interval_ce"), 0)
    bootstrap = 0
    rng = np.random.default_rng(0)
    for trial in range(trials):
        v = {
            "uniform": rng.random(n),
            "extreme": rng.beta(0.3, 0.3, n),
            "constant": np.full(n, 0.4),
        }[law]
        y = (rng.random(n) < v).astype(int)
        for measure in missed:
            found = interval(y, v, measure, confidence_level=0.9, n_resamples=59, rng=trial)
            missed[measure] += found.lower > 0
        if law != "constant":
            again = [caldist.smooth_ce(y[k], v[k]) for k in rng.integers(0, n, (19, n))]
            bootstrap += min(again) <= 1e-9
    # misses are at most 5% here; three standard errors of a binomial share above
    allowed = trials * (0.05 + 3 * math.sqrt(0.05 * 0.95 / trials))
    assert max(missed.values()) <= allowed
    assert bootstrap == 0


@few_rows
def test_the_upper_end_where_the_residuals_add_up_to_0():
    """One prediction 0.5: the misses of the upper end are sums of binomial probabilities."""
    n, k = 20, np.arange(21)
    high = np.array(
        [interval(np.arange(n) < ones, np.full(n, 0.5), n_resamples=39).upper for ones in k]
    )
    ways = np.array([math.comb(n, ones) for ones in k])
    for p in np.linspace(0.5, 0.95, 19):
        assert (ways * p**k * (1 - p) ** (n - k))[high < p - 0.5 - 1e-12].sum() <= 0.025
    # two predictions: the difference of the heights is fixed, their height is not
    y, p = np.tile([0, 1, 1, 0], 25), np.tile([0.4, 0.4, 0.6, 0.6], 25)
    found = interval(y, p)
    moved = interval(np.append(y, 1), np.append(p, 0.6))
    assert found.upper - found.value == pytest.approx(moved.upper - moved.value, rel=0.1)


@few_rows
def test_coverage_of_a_known_distance():
    """All predictions 0.1 too high: every measure but the Brier score is 0.1."""
    trials, n = (100, 100) if loader.COMPILED else (20, 40)
    rng = np.random.default_rng(3)
    low = high = 0
    for trial in range(trials):
        f = rng.uniform(0.2, 0.8, n)
        found = interval((rng.random(n) < f).astype(int), f + 0.1, confidence_level=0.9, rng=trial)
        low += found.lower > 0.1
        high += found.upper < 0.1
    assert low + high <= trials * (0.1 + 3 * math.sqrt(0.09 / trials))


def test_clusters_that_repeat_rows_are_no_more_rows():
    """Ten copies of each row, told as clusters, give about the interval of the rows."""
    y, p = rows(150, power=1.6)
    once = interval(y, p, n_resamples=399)
    groups = np.repeat(np.arange(150), 10)
    copies = interval(np.repeat(y, 10), np.repeat(p, 10), clusters=groups, n_resamples=399)
    naive = interval(np.repeat(y, 10), np.repeat(p, 10), n_resamples=399)
    width = once.upper - once.lower
    assert copies.value == pytest.approx(once.value)
    assert copies.upper - copies.lower == pytest.approx(width, rel=0.12)
    assert naive.upper - naive.lower < 0.5 * width
    for measure in MEASURES:
        for method in METHODS:
            found = interval(
                np.repeat(y, 10), np.repeat(p, 10), measure, clusters=groups, method=method
            )
            single = interval(y, p, measure, method=method)
            assert found.upper - found.lower == pytest.approx(single.upper - single.lower, rel=0.35)


@pytest.mark.filterwarnings("ignore:only .* clusters have:UserWarning")
@pytest.mark.parametrize(
    ("number", "level", "rate"),
    [
        (20, 0.8, lambda v: np.minimum(1, v + 0.3)),
        (60, 0.95, lambda v: 0.1 + 0 * v),
        (400, 0.9, lambda v: 1 - v),
    ],
    ids=["too low", "rare", "many"],
)
def test_ends_with_clusters_by_hand(number, level, rate):
    """Signs of whole clusters, labels of rows that depend in them, errors of sums over them."""
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(number), rng.integers(1, 6, number))
    shared = rng.random(cluster.size) < 0.7
    uniform = np.where(shared, rng.random(number)[cluster], rng.random(cluster.size))
    v = rng.random(cluster.size)
    y = (uniform < rate(v)).astype(int)
    options = {"clusters": cluster, "confidence_level": level, "n_resamples": 99, "rng": 0}
    data = Rows.of(y, v, clusters=cluster)
    limits = Limits.of(data, 1 - level, Resampler.of(0, n_resamples=99), "resampling")
    units = limits.units
    y, cluster, place, size = units.label, units.cluster, units.place, units.prediction.size
    v, share, theta = units.prediction[place], 1 / units.label.size, units.dependence
    assert units.draws_labels == (number < 400)
    assert 0.1 < theta < 0.9
    masses = [np.bincount(cluster) * share, np.full(v.size, share)]
    z, log = NormalDist().inv_cdf((1 + level) / 2), math.log(2 / (1 - level))
    extra = log / 3 * max(share, math.sqrt(theta) * masses[0].max())
    root = math.sqrt(masses[0] @ masses[0])

    def error(values):  # of a mean
        sums = np.bincount(cluster, share * (values - values.mean()))
        return math.sqrt(sums @ sums)

    found = confidence_interval(data.label, data.prediction, measure="brier_score", **options)
    loss = (y - v) ** 2
    assert found.value == pytest.approx(loss.mean())
    assert found.lower == pytest.approx(loss.mean() - extra - z * error(loss))
    assert found.upper == pytest.approx(loss.mean() + extra + z * error(loss))

    norm = caldist.smooth_ce.norm(units.prediction)
    value = norm(units.residual)
    found = confidence_interval(data.label, data.prediction, method="finite_sample", **options)
    tail, noise = math.sqrt(2 * log) * root, norm.noise * root
    assert found.lower == pytest.approx(max(0.0, value - noise - tail))
    assert found.upper == pytest.approx(min(1.0, value + tail))

    order = np.argsort(place, kind="stable")  # in which rows draw numbers of their own

    def flipped(rng):
        sign = 2.0 * np.unpackbits(units_module.random_bits(rng, number), bitorder="little") - 1
        return norm(np.bincount(place, sign[cluster] * share * (y - v), size))

    def drawn(rng):
        common, own = rng.random(number)[cluster], np.empty(v.size)
        own[order] = rng.random(v.size)
        own -= math.sqrt(theta)
        label = np.where(own < 0, common, own / (1 - math.sqrt(theta))) < v
        return norm(np.bincount(place, share * (label - v), size))

    quantiles = []
    for family, draw, own in ((FLIPS, flipped, units.flip), (LABELS, drawn, units.draw)):
        values = limits.resampler.run(draw, family=family, size=v.size)
        quantiles.append(order_statistic(values, (1 + level) / 2))
        assert limits.norm_quantile(norm, own, family) == pytest.approx(quantiles[-1])
    if not units.draws_labels:
        quantiles.pop()
    split = confidence_interval(data.label, data.prediction, method="cross_fit", **options)
    found = confidence_interval(data.label, data.prediction, **options)
    assert found.lower == pytest.approx(max(split.lower, value - max(quantiles)))
    rate, ends = limits.cells.rate[place], []
    for function in norm.candidates(units.residual, quantiles[-1]):
        w = function[place]
        wide = error((y - v) * w)
        if units.draws_labels:
            deviation = share * np.sqrt(np.maximum(rate * (1 - rate), v * (1 - v))) * np.abs(w)
            alone, sums = deviation @ deviation, np.bincount(cluster, deviation)
            wide = max(wide, math.sqrt(alone + theta * (sums @ sums - alone)))
        ends.append(abs(units.residual @ function) + z * wide)
    assert found.upper == pytest.approx(extra + max(ends))
    assert 0 < found.lower < found.value < found.upper < 1


@pytest.mark.filterwarnings("ignore:only:UserWarning")
@pytest.mark.parametrize("larger", ["signs", "labels"])
def test_the_upper_end_of_clusters_is_the_larger_of_two_errors(larger):
    """That by signs of whole clusters and that by labels drawn from the predictions."""
    rng, n = np.random.default_rng(3), 400
    clusters = np.arange(n) // 10
    if larger == "signs":  # labels differ from sure predictions more often than those say
        v = rng.choice([0.05, 0.95], n)
        y = (rng.random(n) < 0.5).astype(int)
    else:  # calibrated, and labels of a cluster may depend more than they seem to
        v = rng.uniform(0.1, 0.9, n)
        y = (rng.random(n) < v).astype(int)
    found = interval(y, v, "random_interval_ce", clusters=clusters, n_resamples=199)
    units = ordered_units(Rows.of(y, v, clusters=clusters))
    norm, resampler = (
        caldist.random_interval_ce.norm(units.prediction),
        Resampler.of(0, n_resamples=199),
    )
    errors = [
        order_statistic(
            resampler.run(lambda rng, draw=draw: norm(draw(rng)), family=at, size=n), 0.975
        )
        for at, draw in enumerate((units.flip, units.draw))
    ]
    assert (errors[0] > errors[1]) == (larger == "signs")
    widest = 1.959963984540054 * units.largest_error + math.log(40) / 3 * units.largest_share
    assert max(errors) < widest
    assert found.upper == pytest.approx(found.value + max(errors), rel=1e-12)


def test_labels_of_clusters_are_as_frequent_as_predicted_or_as_seen():
    """What a mean is missed by: alone, and together as much as labels of a cluster depend."""
    rng = np.random.default_rng(0)
    v, clusters = np.sort(rng.uniform(0.1, 0.9, 60)), rng.integers(0, 15, 60)
    y = (rng.random(15)[clusters] < v).astype(int)
    units = units_of(Rows.of(y, v, clusters=clusters))
    slope, own = rng.normal(size=60), units.prediction[units.place]
    assert 0 < units.dependence
    for rate in (np.full(60, 0.01), np.full(60, 0.5)):  # less than predicted, and more
        deviation = np.sqrt(np.maximum(rate * (1 - rate), own * (1 - own)))
        term = np.abs(slope) * deviation / 60
        together = (np.bincount(units.cluster, term) ** 2).sum()
        alone = (term**2).sum()
        expected = math.sqrt(alone + units.dependence * (together - alone))
        assert units.label_error(slope, rate) == pytest.approx(expected, rel=1e-12)


def test_clusters_of_one_row_are_rows():
    y, p = rows(200, power=2.0)
    alone = {"clusters": [f"row {k}" for k in range(200)]}
    found, plain = interval(y, p, **alone), interval(y, p)
    assert units_of(Rows.of(y, p, **alone)).dependence == 0
    # Of clusters labels are as frequent as predicted, if that is more.
    assert plain.upper <= found.upper < plain.upper + 0.01
    assert found.lower == pytest.approx(plain.lower, abs=0.02)


@pytest.mark.skipif(not FAST, reason="plain kernels are slow")
@pytest.mark.filterwarnings("ignore:only:UserWarning")
@pytest.mark.parametrize("measure", ["smooth_ce", "lower_distance"])
@pytest.mark.parametrize("spread", [0.0, 1.5])
def test_lower_ends_hold_with_unequal_clusters_of_rare_labels(spread, measure):
    """By signs of clusters alone, up to a third of calibrated samples would be told they are not.

    A lower end may be above 0 in one sample of 40.
    """
    settings = {"measure": measure, "n_resamples": 99}
    missed = 0
    for seed in range(100):
        y, v, clusters = bursts(np.random.default_rng(seed), 60, spread)
        missed += confidence_interval(y, v, clusters=clusters, rng=seed, **settings).lower > 0
    assert missed <= 9  # binomial, with 1/40 in fewer than one of a thousand


@pytest.mark.filterwarnings("ignore:only:UserWarning")
def test_one_cluster_says_nothing():
    """Its labels may have come at once, so that any distance is possible; and few say little."""
    y, p = rows(200)
    ends = [interval(y, p, clusters=np.arange(200) % few).upper for few in (1, 3, 9, 200)]
    assert ends[0] == 1
    assert ends == sorted(ends, reverse=True)


def test_rows_of_unequal_weight_are_warned_of():
    """A hundred rows of label 1, three of which have all but a thousandth of the weight."""
    y, p = np.repeat([0, 1], 100), np.full(200, 0.5)
    weight = np.ones(200)
    weight[100:103] = 1e5
    words = r"only 100 of 200 rows have label 1, worth 3\.0 equal ones"
    with pytest.warns(UserWarning, match=words):
        found = interval(y, p, sample_weight=weight)
    joint = caldist.Joint.from_arrays(y, p, sample_weight=weight)
    with pytest.warns(UserWarning, match="effective rows have label 1"):
        assert confidence_interval(joint, measure="smooth_ce", rng=0).upper >= found.value


def test_many_clusters_of_one_row_have_the_error_of_the_witness():
    n = 2000
    y, p = rows(n, power=2.0)
    found = interval(y, p, clusters=np.arange(n))
    order = np.argsort(p)
    e = (y - p)[order]
    s = np.std(e * caldist.smooth_ce.norm(p[order]).witness(e / n)) / math.sqrt(n)
    expected = found.value + 1.959963984540054 * s + math.log(40) / 3 / n
    assert found.upper == pytest.approx(expected, rel=1e-9)


def test_equal_weights_change_nothing_and_rows_without_weight_do_not_count():
    y, p = rows(80)
    plain = interval(y, p)
    seven = interval(y, p, sample_weight=np.full(80, 7.0))
    assert seven.value == pytest.approx(plain.value, rel=1e-12)
    assert seven.upper == pytest.approx(plain.upper, rel=1e-9)
    padded = interval(
        np.append(y, [1, 0]), np.append(p, [0.1, 0.9]), sample_weight=[1.0] * 80 + [0.0] * 2
    )
    once = interval(y, p, sample_weight=np.ones(80))
    assert (padded.lower, padded.upper) == pytest.approx((once.lower, once.upper), rel=1e-12)


def test_weights_are_repetitions_for_the_value_and_not_for_the_uncertainty():
    y, p = rows(60)
    weight = np.random.default_rng(0).integers(1, 4, 60)
    weighted = interval(y, p, sample_weight=weight)
    repeated = interval(np.repeat(y, weight), np.repeat(p, weight))
    assert weighted.value == pytest.approx(repeated.value, rel=1e-12)
    assert weighted.upper > repeated.upper
