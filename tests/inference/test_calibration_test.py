"""The tests of calibration: exact by enumeration, of the right size, and with the right laws."""

import dataclasses
import math
import warnings
from itertools import product

import numpy as np
import pytest
from scipy import stats

import caldist
from caldist.inference import _grid, confidence_interval, resampling, testing
from caldist.inference import sample as data_units
from caldist.inference.classical import CLASSICAL
from caldist.inference.null_distribution import ranks
from caldist.inference.testing import TestResult, calibration_test
from caldist.kernels import loader
from caldist.measures.registry import shown_in
from calibrated_labels import labels, spiegelhalter_z
from clustered_rows import bursts

FAST = loader.COMPILED
NAMES = [*(measure.name for measure in shown_in("evaluate")), *CLASSICAL]
CLUSTERED = [
    *(m.name for m in shown_in("evaluate") if m.takes_clusters),
    *CLASSICAL,
]
pytestmark = pytest.mark.filterwarnings("ignore:n_resamples is .* hardly:UserWarning")
SLOW_MEASURES = {"kernel_smoothed_ece", "lower_distance", "upper_distance"}


STATISTICS = {
    "smooth_ce": caldist.smooth_ce,
    "kernel_ce": caldist.kernel_ce,
    "random_interval_ce": caldist.random_interval_ce,
    "ecce_mad": caldist.measures.ecce_mad,
    "ecce_range": caldist.measures.ecce_range,
    "brier_score": caldist.brier_score,
    "interval_ce": caldist.interval_ce,
    "spiegelhalter": lambda y, v, sample_weight=None: spiegelhalter_z(y, v, sample_weight),
}
TINY = {
    "distinct": ([0.1, 0.35, 0.6, 0.8, 0.95], None),
    "tied": ([0.2, 0.2, 0.2, 0.7, 0.7, 0.9], None),
    "symmetric": ([0.25, 0.5, 0.5, 0.75], None),
    "weighted": ([0.1, 0.4, 0.4, 0.9], [1.0, 2.0, 0.5, 3.0]),
    "certain": ([0.0, 0.3, 0.6, 1.0], None),
    "one row": ([0.3], None),
}


def enumerate_labels(v):
    """Return all label patterns that are possible, with their probabilities under calibration."""
    patterns = [np.array(y) for y in product((0, 1), repeat=len(v))]
    chance = np.array(
        [math.prod(p if yi else 1 - p for yi, p in zip(y, v, strict=True)) for y in patterns]
    )
    return [y for y, p in zip(patterns, chance, strict=True) if p > 0], chance[chance > 0]


def exact_pvalues(values, chance):
    """Return P(T* >= T) for each pattern."""
    return np.minimum(1, [chance[values >= value - 1e-12].sum() for value in values])


@pytest.mark.parametrize("case", TINY)
@pytest.mark.parametrize("name", STATISTICS)
def test_pvalues_agree_with_all_label_patterns(name, case):
    v, weight = TINY[case]
    patterns, chance = enumerate_labels(v)
    values = np.array([STATISTICS[name](y, v, sample_weight=weight) for y in patterns])
    exact = exact_pvalues(values, chance)
    # The exact p-value is superuniform: P(p <= p0) <= p0 at each of its values.
    for level in exact:
        assert chance[exact <= level + 1e-12].sum() <= level + 1e-9
    draws = 799
    for at in np.argsort(values)[:: max(1, len(patterns) // 6)]:
        result = calibration_test(
            patterns[at], v, measure=name, sample_weight=weight, n_resamples=draws, rng=int(at)
        )
        assert result.statistic == pytest.approx(values[at], abs=1e-12)
        error = math.sqrt(exact[at] * (1 - exact[at]) / draws)
        assert abs(result.pvalue - exact[at]) <= 5 * error + 1 / (draws + 1)


def test_the_combination_agrees_with_all_label_patterns():
    v = [0.1, 0.35, 0.6, 0.8, 0.95]
    patterns, chance = enumerate_labels(v)
    names = ("smooth_ce", "random_interval_ce", "spiegelhalter")
    parts = np.array(
        [exact_pvalues(np.array([STATISTICS[k](y, v) for y in patterns]), chance) for k in names]
    )
    least = parts.min(axis=0)
    exact = np.array([chance[least <= value + 1e-12].sum() for value in least])
    for at in range(0, len(patterns), 3):
        result = calibration_test(patterns[at], v, n_resamples=1999, rng=at)
        for part, name, p in zip(result.components, names, parts[:, at], strict=True):
            assert part.measure == name
            assert part.pvalue == pytest.approx(p, abs=0.06)
        assert result.statistic == min(part.pvalue for part in result.components)
        # Draws may reverse the order of patterns whose least p-values are within their error.
        near = [chance[least <= least[at] + shift].sum() for shift in (-0.03, 0.03)]
        assert near[0] - 0.05 <= result.pvalue <= near[1] + 0.05
        assert near[0] <= exact[at] <= near[1]


def test_components_are_the_tests_by_themselves():
    rng = np.random.default_rng(0)
    v = rng.random(60)
    y = labels(rng, v)
    for part in calibration_test(y, v, n_resamples=99, rng=3).components:
        assert part == calibration_test(y, v, measure=part.measure, n_resamples=99, rng=3)


@pytest.mark.parametrize("name", sorted(set(NAMES) - SLOW_MEASURES))
def test_statistics_are_the_public_measures(name):
    if name not in {"spiegelhalter", "hosmer_lemeshow"}:
        rng = np.random.default_rng(1)
        v = np.round(rng.random(40), 1)
        y, weight = labels(rng, v), rng.random(40)
        for w in (None, weight):
            found = calibration_test(y, v, measure=name, sample_weight=w, n_resamples=1, rng=0)
            value = getattr(caldist.measures, name)(y, v, sample_weight=w)
            assert found.statistic == pytest.approx(value, abs=1e-12)


def test_exact_by_the_binomial_law_for_one_prediction():
    """Equal predictions: the statistic is |mean - v|, and their labels are drawn as one."""
    n, v = 100, 0.3
    for ones in (22, 30, 38, 45):
        y = np.arange(n) < ones
        deviation = abs(ones - n * v)
        exact = sum(
            stats.binom.pmf(k, n, v) for k in range(n + 1) if abs(k - n * v) >= deviation - 1e-9
        )
        result = calibration_test(y, np.full(n, v), measure="smooth_ce", n_resamples=1999, rng=ones)
        assert abs(result.pvalue - exact) < 5 * math.sqrt(exact * (1 - exact) / 1999) + 0.001


# -- size and power ---------------------------------------------------------------------------


def rejection_rates(draw, times, levels, **options):
    rng = np.random.default_rng(11)
    p = np.array([calibration_test(*draw(rng), rng=rng, **options).pvalue for _ in range(times)])
    return [float(np.mean(p <= level)) for level in levels]


@pytest.mark.slow
@pytest.mark.parametrize("law", ["uniform", "rare", "tied", "constant", "three rows"])
@pytest.mark.parametrize("name", ["auto", "smooth_ce", "hosmer_lemeshow"])
def test_the_size_is_nominal(law, name):
    def draw(rng):
        n = 3 if law == "three rows" else 60
        v = {
            "uniform": rng.random(n),
            "rare": rng.beta(1, 30, n),
            "tied": np.round(rng.random(n), 1),
            "constant": np.full(n, 0.37),
            "three rows": rng.random(n),
        }[law]
        return labels(rng, v), v

    times = 300 if FAST else 40
    levels = (0.1, 0.3)
    rates = rejection_rates(draw, times, levels, measure=name, n_resamples=19)
    for level, rate in zip(levels, rates, strict=True):
        assert rate <= level + 4 * math.sqrt(level * (1 - level) / times)
        if law == "uniform":  # without ties the p-value is uniform on 1/20, 2/20, …
            assert rate >= level - 4 * math.sqrt(level * (1 - level) / times)


def clustered(rng, clusters=60, size=5):
    """Rows that are calibrated, but within a cluster share how their labels come out."""
    v = rng.random(clusters * size)
    shared = np.repeat(rng.random(clusters), size)
    alone = rng.random(clusters * size)
    return (np.where(rng.random(v.size) < 0.7, shared, alone) < v).astype(int), v


@pytest.mark.slow
def test_clusters_need_the_sign_flips():
    group = np.repeat(np.arange(60), 5)
    times = 300 if FAST else 20
    bound = 4 * math.sqrt(0.1 * 0.9 / times)
    options = {"measure": "smooth_ce", "n_resamples": 39}
    (right,) = rejection_rates(clustered, times, [0.1], clusters=group, **options)
    assert right <= 0.1 + bound
    if FAST:
        (wrong,) = rejection_rates(clustered, times, [0.1], **options)
        assert wrong > 0.15


@pytest.mark.parametrize("name", ["auto", *CLUSTERED])
def test_cluster_pvalues_agree_with_all_sign_patterns(name, monkeypatch):
    monkeypatch.setattr(data_units, "_FEW_CLUSTERS", 0)
    rng = np.random.default_rng(8)
    v = np.round(rng.random(18), 1)
    y, group = labels(rng, v), np.repeat(list("abcdef"), 3)
    result = calibration_test(y, v, measure=name, clusters=group, n_resamples=1999, rng=1)
    assert result.asymptotic_pvalue is None
    if name not in {"smooth_ce", "kernel_ce"}:
        return
    place, support = np.unique(v, return_inverse=True)
    values = []
    for signs in product((-1, 1), repeat=6):
        c = np.bincount(support, (y - v) * np.repeat(signs, 3) / 18)
        # Any masses are the residuals of some joint, up to scale: put them on label 1 or 0.
        if name == "kernel_ce":
            kernel = np.exp(-np.abs(place[:, None] - place))
            values.append(math.sqrt(max(0.0, c @ kernel @ c)))
        else:
            from oracles import smooth_ce_lp

            values.append(smooth_ce_lp(place, c))
    values = np.array(values)
    exact = np.mean(values >= result.statistic - 1e-7)
    assert abs(result.pvalue - exact) < 5 * math.sqrt(exact * (1 - exact) / 1999) + 0.001


@pytest.mark.skipif(not FAST, reason="plain kernels are slow")
def test_what_each_statistic_sees():
    """A temperature is seen by Spiegelhalter's z, a shift by smCE, and both by the combination."""

    def temperature(rng):
        logit = rng.normal(0, 1.5, 500)
        return labels(rng, 1 / (1 + np.exp(-logit / 1.4))), 1 / (1 + np.exp(-logit))

    def shift(rng):
        logit = rng.normal(0, 1.5, 500)
        return labels(rng, 1 / (1 + np.exp(-logit - 0.35))), 1 / (1 + np.exp(-logit))

    power = {
        (law.__name__, name): rejection_rates(law, 60, [0.05], measure=name, n_resamples=99)[0]
        for law in (temperature, shift)
        for name in ("auto", "smooth_ce", "spiegelhalter")
    }
    assert power["temperature", "spiegelhalter"] > power["temperature", "smooth_ce"] + 0.2
    assert power["temperature", "auto"] > power["temperature", "smooth_ce"] + 0.1
    assert power["shift", "smooth_ce"] > power["shift", "spiegelhalter"] + 0.2
    assert power["shift", "auto"] > power["shift", "spiegelhalter"] + 0.2


# -- a tolerance ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lower_distance", "smooth_ce", "kernel_ce", "random_interval_ce"])
@pytest.mark.parametrize("clusters", [False, True])
def test_a_tolerance_inverts_the_interval(name, clusters):
    if name == "lower_distance" and not FAST:
        pytest.skip("plain kernels are slow")
    rng = np.random.default_rng(6)
    v = rng.random(120)
    y = labels(rng, np.clip(v + 0.2, 0, 1))
    options = {"measure": name, "n_resamples": 99, "rng": 9}
    if clusters:
        options["clusters"] = np.arange(120) // 3
    for level in (0.05, 0.2):
        low = confidence_interval(y, v, confidence_level=1 - 2 * level, **options).lower
        assert low > 0
        assert calibration_test(y, v, tolerance=low * 0.9999, **options).pvalue <= level
        assert calibration_test(y, v, tolerance=low * 1.0001, **options).pvalue > level
    p = [calibration_test(y, v, tolerance=e, **options).pvalue for e in np.linspace(0, 0.3, 13)]
    assert p == sorted(p)
    assert p[-1] == 1


def test_auto_with_a_tolerance_is_the_lower_distance():
    y, v = [1] * 30 + [0] * 20, [0.4] * 50
    result = calibration_test(y, v, tolerance=0.1, rng=0)
    assert result.measure == "lower_distance"
    assert result.tolerance == 0.1
    assert result.statistic == pytest.approx(0.2, abs=2e-6)


@pytest.mark.skipif(not FAST, reason="plain kernels are slow")
@pytest.mark.parametrize("name", ["auto", "smooth_ce"])
def test_the_size_on_the_boundary_of_a_tolerance(name):
    """One prediction 0.5 and frequency 0.6: every distance is exactly 0.1."""
    rng = np.random.default_rng(12)
    p = []
    for _ in range(150):
        y = rng.random(200) < 0.6
        options = {"measure": name, "n_resamples": 99}
        p.append(calibration_test(y, np.full(200, 0.5), tolerance=0.1, rng=rng, **options).pvalue)
    assert np.mean(np.array(p) <= 0.1) <= 0.1 + 4 * math.sqrt(0.09 / 150)


def test_few_rows_of_a_label_warn_only_where_it_matters():
    v = np.full(40, 0.1)
    y = np.arange(40) < 3
    with pytest.warns(UserWarning, match="3 of 40 rows have label 1"):
        calibration_test(y, v, tolerance=0.01, n_resamples=19, rng=0)
    calibration_test(y, v, n_resamples=19, rng=0)


def test_few_draws_for_three_statistics_are_said():
    rng = np.random.default_rng(0)
    v = rng.random(40)
    y = labels(rng, v)
    with pytest.warns(UserWarning, match=r"n_resamples is 58: .* below 3/59.* at least 59"):
        calibration_test(y, v, n_resamples=58, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibration_test(y, v, n_resamples=59, rng=0)
        calibration_test(y, v, measure="smooth_ce", n_resamples=19, rng=0)


def test_few_clusters_with_a_label_get_the_larger_pvalue(monkeypatch):
    """By signs alone, clusters of which few have a positive are rejected too often."""
    rng = np.random.default_rng(2)
    v = rng.beta(0.5, 30, 300)
    clusters = np.arange(300) // 5
    y = (np.repeat(rng.random(60), 5) < v).astype(int)
    with pytest.warns(
        UserWarning,
        match=r"only \d+ of 60 clusters have label 1, worth [\d.]+ equal ones: with fewer than 10",
    ):
        found = calibration_test(y, v, clusters=clusters, n_resamples=199, rng=0)
    monkeypatch.setattr(data_units, "_FEW_CLUSTERS", 0)
    signs = calibration_test(y, v, clusters=clusters, n_resamples=199, rng=0)
    assert found.pvalue >= signs.pvalue
    for ours, theirs in zip(found.components, signs.components, strict=True):
        assert ours.pvalue >= theirs.pvalue


@pytest.mark.skipif(not FAST, reason="plain kernels are slow")
@pytest.mark.filterwarnings("ignore:only:UserWarning")
def test_the_size_with_few_clusters_of_a_label():
    """200 clusters of five, of which about six have a positive: signs reject 12% at 1%."""

    def draw(rng):
        v = rng.beta(0.5, 49.5, 1000)
        return (np.repeat(rng.random(200), 5) < v).astype(int), v

    rates = rejection_rates(
        draw, 200, (0.01, 0.1), measure="smooth_ce", n_resamples=199, clusters=np.arange(1000) // 5
    )
    assert rates[0] <= 0.01 + 4 * math.sqrt(0.01 / 200)
    assert rates[1] <= 0.1 + 4 * math.sqrt(0.09 / 200)


@pytest.mark.skipif(not FAST, reason="plain kernels are slow")
@pytest.mark.filterwarnings("ignore:only:UserWarning")
@pytest.mark.parametrize("spread", [0.0, 1.5])
def test_the_size_with_unequal_clusters_of_rare_labels(spread):
    """60 clusters, 20 of them with a positive: what comes at once in a large one is rarely seen."""
    rejected = 0
    for seed in range(200):
        y, v, clusters = bursts(np.random.default_rng(seed), 60, spread)
        found = calibration_test(y, v, clusters=clusters, n_resamples=99, rng=seed)
        rejected += found.pvalue <= 0.05
    assert rejected <= stats.binom.ppf(0.9999, 200, 0.05)


@pytest.mark.skipif(not FAST, reason="plain kernels are slow")
def test_the_power_with_clusters_whose_labels_hardly_depend():
    """15 clusters of 200, a third too much predicted: by labels that depend fully, none is seen."""
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        v = rng.uniform(0.1, 0.5, 3000)
        y = (rng.random(3000) < v).astype(int)
        clusters = np.arange(3000) // 200
        test = calibration_test(y, v * 1.33, clusters=clusters, n_resamples=99, rng=seed)
        found += test.pvalue <= 0.05
    assert found >= 35


# -- edges ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["auto", *sorted(NAMES)])
def test_certain_predictions(name):
    """With predictions 0 and 1 nothing is random: all is well, or one label is impossible."""
    v = [0.0, 0.0, 1.0, 1.0]
    fine = calibration_test([0, 0, 1, 1], v, measure=name, n_resamples=19, rng=0)
    assert fine.pvalue == 1
    assert name == "auto" or fine.statistic == 0
    wrong = calibration_test([0, 1, 1, 1], v, measure=name, n_resamples=19, rng=0)
    assert wrong.pvalue == 1 / 20
    for result in (fine, wrong):
        if result.asymptotic_pvalue is not None:
            assert result.asymptotic_pvalue == (1 if result is fine else 0)


@pytest.mark.parametrize("name", ["auto", *sorted(set(NAMES) - SLOW_MEASURES)])
@pytest.mark.parametrize(
    ("y", "v"), [([1], [0.5]), ([0], [0.3]), ([1, 1, 1], [0.2, 0.2, 0.9]), ([0, 0], [0.5, 0.5])]
)
def test_few_rows_and_one_class(name, y, v):
    result = calibration_test(y, v, measure=name, n_resamples=19, rng=0)
    assert 1 / 20 <= result.pvalue <= 1
    assert math.isfinite(result.statistic)


def test_ranks_take_rounding_for_equality():
    assert ranks(np.array([0.3, 0.1 + 0.2, 0.1, 0.5])).tolist() == [3, 3, 4, 1]
    assert ranks(np.array([np.inf, 1.0, np.inf])).tolist() == [2, 3, 2]
    assert ranks(np.zeros(5)).tolist() == [5] * 5


def test_the_same_seed_gives_the_same_result(monkeypatch):
    rng = np.random.default_rng(7)
    v = rng.random(2500 if FAST else 60)
    y = labels(rng, v)
    results = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(resampling, "thread_count", lambda cores=cores: cores)
        results.append(calibration_test(y, v, n_resamples=39, rng=5))
    results.append(calibration_test(y, v, n_resamples=39, rng=np.random.default_rng(5)))
    assert all(result == results[0] for result in results)
    order = rng.permutation(v.size)
    assert calibration_test(y[order], v[order], n_resamples=39, rng=5) == results[0]


def test_a_generator_moves_on():
    rng = np.random.default_rng(0)
    v = rng.random(50)
    y = labels(rng, v)
    first, second = (calibration_test(y, v, n_resamples=199, rng=rng).pvalue for _ in range(2))
    assert first != second


def of_rows(function, *data, **options):
    """Return what a function says of the rows themselves, however many there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_grid, "MANY", math.inf)
        return function(*data, **options)


@pytest.mark.parametrize("measure", ["auto", "smooth_ce", "spiegelhalter"])
def test_many_rows_are_drawn_on_a_grid_whose_effect_is_added(measure, monkeypatch):
    monkeypatch.setattr(_grid, "MANY", 3_000)
    rng = np.random.default_rng(2)
    p = rng.random(4_000)
    y = labels(rng, p)
    options = {"measure": measure, "n_resamples": 99, "rng": 0}
    found = calibration_test(y, p, **options)
    joint = caldist.Joint.from_arrays(y, p).coarsen(12)
    cells, rows = calibration_test(joint, **options), of_rows(calibration_test, y, p, **options)
    assert 0 < found.rounding == cells.rounding <= 5e-4
    assert found.pvalue == cells.pvalue
    assert rows.rounding == 0
    if measure != "auto":
        assert found.statistic == rows.statistic
    # From a summary of exact predictions likewise.
    assert calibration_test(caldist.Joint.from_arrays(y, p), **options) == found


def test_a_grid_is_made_finer_until_its_effect_is_small(monkeypatch):
    monkeypatch.setattr(_grid, "MANY", 3_000)
    monkeypatch.setattr(testing, "_EFFECT", 1e-6)
    rng = np.random.default_rng(3)
    p = rng.random(4_000)
    joint = caldist.Joint.from_arrays(labels(rng, p), p)
    found = calibration_test(joint, measure="spiegelhalter", n_resamples=9, rng=0)
    errors = [joint.coarsen(bits).grid.drawing_error for bits in range(12, 17)]
    assert errors[0] > 1e-6
    assert found.rounding == next(error for error in errors if error <= 1e-6)


def test_a_summary_of_many_cells_is_drawn_on_fewer(monkeypatch):
    """On the first grid whose effect is small; the statistic is that of the summary."""
    rng = np.random.default_rng(3)
    p = rng.random(4_000)
    joint = caldist.Joint.from_arrays(labels(rng, p), p).coarsen(16)
    options = {"measure": "smooth_ce", "n_resamples": 99, "rng": 0}
    whole = calibration_test(joint, **options)
    assert whole.rounding == joint.grid.drawing_error
    monkeypatch.setattr(testing, "_MANY_CELLS", 3_000)
    found = calibration_test(joint, **options)
    cells = joint.coarsen(12)
    assert found.statistic == whole.statistic
    assert whole.rounding < found.rounding == cells.grid.drawing_error <= 5e-4
    assert found.pvalue == calibration_test(cells, **options).pvalue
    monkeypatch.setattr(testing, "_EFFECT", 0.0)  # none is fine enough
    assert calibration_test(joint, **options) == whole
    assert calibration_test(cells, **options).rounding == cells.grid.drawing_error


def test_where_only_rows_are_exact_they_are_drawn(monkeypatch):
    monkeypatch.setattr(_grid, "MANY", 300)
    rng = np.random.default_rng(4)
    p = rng.random(400)
    y, options = labels(rng, p), {"n_resamples": 19, "rng": 0}
    for measure in ("hosmer_lemeshow", "binned_ece"):
        found = calibration_test(y, p, measure=measure, **options)
        assert found == of_rows(calibration_test, y, p, measure=measure, **options)
        assert found.rounding == 0


OF_THEIR_OWN = {
    "weights": lambda rng, n: {"sample_weight": rng.exponential(size=n) ** 2},
    "clusters": lambda rng, n: {"clusters": np.arange(n) // 4},
    "both": lambda rng, n: {"sample_weight": rng.random(n), "clusters": np.arange(n) // 4},
    "few clusters": lambda rng, n: {"clusters": np.arange(n) % 15},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", OF_THEIR_OWN)
@pytest.mark.parametrize("cells", [8, 2**13])
@pytest.mark.filterwarnings("ignore:only .* clusters have label")
def test_rows_with_weights_or_clusters_are_drawn_and_added_up_in_cells(monkeypatch, kind, cells):
    monkeypatch.setattr(_grid, "MANY", 300)
    monkeypatch.setattr(testing, "_CELLS", cells)
    rng = np.random.default_rng(4)
    p = rng.random(400)
    more = OF_THEIR_OWN[kind](rng, p.size)
    for y in (labels(rng, p), labels(rng, p**2)):
        found = calibration_test(y, p, n_resamples=499, rng=0, **more)
        rows = of_rows(calibration_test, y, p, n_resamples=499, rng=0, **more)
        assert found.rounding == rows.rounding == 0
        for mine, other in zip(found.components, rows.components, strict=True):
            assert mine.statistic == other.statistic  # of the rows, whatever it is compared on
            assert mine.pvalue == pytest.approx(other.pvalue, abs=0.1 if cells > 8 else 0.25)
            if cells > 8 and "clusters" in more:  # the same draws
                assert mine.pvalue == other.pvalue


def test_labels_of_a_weighted_summary_that_come_out_as_seen_are_as_far():
    """No label 1 where next to none is expected is what calibrated predictions show."""
    p, weight = [0.001, 0.0010001, 0.0009999, 0.001], [1, 2, 3, 4.5]
    joint = caldist.Joint.from_arrays([0] * 4, p, sample_weight=weight).coarsen(bits=8)
    assert calibration_test([0] * 4, p, sample_weight=weight, rng=0).pvalue == 1
    assert calibration_test(joint, rng=0).pvalue == 1
    assert caldist.evaluate_groups({"a": joint}, rng=0).pvalue == 1


@pytest.mark.slow
@pytest.mark.skipif(not FAST, reason="thousands of statistics")
@pytest.mark.parametrize(("mean", "n"), [(1e-4, 200), (1e-3, 20), (0.02, 100), (None, 5)])
def test_the_level_is_kept_from_weighted_summaries_of_rare_labels(mean, n):
    found = []
    for seed in range(200):
        rng = np.random.default_rng([seed, n])
        spread = np.exp(rng.normal(-0.5, 1, n))
        p = rng.beta(0.1, 0.1, n) if mean is None else np.minimum(mean * spread, 1)
        joint = caldist.Joint.from_arrays(
            labels(rng, p), p, sample_weight=10 ** rng.uniform(0, 2, n)
        )
        options = {"n_resamples": 199, "rng": seed}
        found.append(calibration_test(joint.coarsen(bits=16), **options).pvalue)
    for level in (0.05, 0.1):
        most = stats.binom.ppf(1 - 1e-4, len(found), level)
        assert np.count_nonzero(np.array(found) <= level) <= most


@pytest.mark.skipif(not FAST, reason="thousands of statistics")
def test_the_level_is_kept_on_cells_however_few(monkeypatch):
    monkeypatch.setattr(_grid, "MANY", 100)
    monkeypatch.setattr(testing, "_CELLS", 5)
    found = []
    for seed in range(500):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.5, 2, 120)
        weight = rng.exponential(size=p.size) ** 2
        options = {"measure": "smooth_ce", "n_resamples": 39, "rng": seed}
        found.append(calibration_test(labels(rng, p), p, sample_weight=weight, **options).pvalue)
    for level in (0.05, 0.1, 0.25, 0.5):
        few, many = stats.binom.ppf([1e-4, 1 - 1e-4], len(found), level)
        assert few <= np.count_nonzero(np.array(found) <= level + 1e-9) <= many


def test_results_are_frozen_and_no_test_case():
    result = calibration_test([0, 1], [0.2, 0.7], n_resamples=9, rng=0)
    assert TestResult.__test__ is False
    assert result.n_resamples == 9
    assert result.measure == "auto"
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.pvalue = 0.5


@pytest.mark.parametrize(
    ("options", "expected", "parts"),
    [
        ({"measure": "smCE"}, ValueError, ["measure", "'smCE'", "smooth_ce"]),
        ({"measure": None}, ValueError, ["measure", "None"]),
        ({"n_resamples": 0}, ValueError, ["n_resamples", "0"]),
        ({"n_resamples": 9.5}, TypeError, ["n_resamples", "9.5"]),
        ({"tolerance": -0.1}, ValueError, ["tolerance", "-0.1"]),
        ({"tolerance": "small"}, TypeError, ["tolerance", "'small'"]),
        ({"tolerance": float("nan")}, ValueError, ["tolerance", "nan"]),
        ({"tolerance": 1}, ValueError, ["tolerance is 1:", "at least 0 and below 1"]),
        ({"tolerance": 5}, ValueError, ["tolerance is 5:", "For 5% pass 0.05."]),
        ({"tolerance": 0.1, "measure": "ece"}, ValueError, ["tolerance", "'ece'", "smooth_ce"]),
        ({"clusters": [0, 0, 1], "measure": "ece"}, ValueError, ["clusters", "'ece'", "smooth_ce"]),
        ({"clusters": [0, 1]}, ValueError, ["clusters", "2", "3"]),
        ({"clusters": [0, None, 1]}, ValueError, ["clusters[1]", "None"]),
        ({"clusters": 3}, TypeError, ["clusters", "3"]),
        ({"rng": "seed"}, TypeError, ["rng", "'seed'"]),
        ({"progress": "yes"}, TypeError, ["progress", "'yes'"]),
        ({"sample_weight": [1, -1, 1]}, ValueError, ["sample_weight[1]", "-1"]),
    ],
)
def test_bad_options_are_named(options, expected, parts):
    with pytest.raises(expected) as caught:
        calibration_test([0, 1, 1], [0.2, 0.5, 0.9], **options)
    for part in parts:
        assert part in str(caught.value), str(caught.value)
