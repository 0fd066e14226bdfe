"""Several classes: intervals, brackets of the population, tests and comparisons."""

import math

import numpy as np
import pytest

import caldist
import class_oracles as oracles
from caldist import multiclass
from caldist.data.class_rows import ClassRows
from caldist.inference.resampling import Resampler
from caldist.kernels import loader
from caldist.multiclass import cells as _cells
from caldist.multiclass import comparison, coupling, testing

needs_speed = pytest.mark.skipif(not loader.COMPILED, reason="takes minutes with plain kernels")
SMALL = 120 if loader.COMPILED else 40


def within(count, trials, level):
    """Whether so many of the trials are plausible at this level: 4 standard errors."""
    return count <= trials * level + 4 * math.sqrt(trials * level * (1 - level))


# -- intervals -------------------------------------------------------------------------------------


def test_two_classes_have_the_binary_interval():
    y, V = oracles.softmax(SMALL, 2, 1.5, 2.0, 0)
    for measure, twin in (
        ("classwise_distance", caldist.lower_distance),
        ("smooth_ce", caldist.smooth_ce),
        ("distance", "distance"),
    ):
        found = multiclass.confidence_interval(y, V, measure=measure, rng=5)
        expected = caldist.confidence_interval(y, V[:, 1], measure=twin, method="cross_fit", rng=5)
        assert (found.value, found.lower, found.upper) == (
            expected.value,
            expected.lower,
            expected.upper,
        )


@needs_speed
def test_limits_of_predictions_that_are_too_sharp():
    """The lower limit says much; how often limits miss is counted in ``studies/multiclass.py``."""
    y, V = oracles.softmax(100_000, 3, 1.5, 1.5, 99)
    truth = multiclass.classwise_distance(y, V, tol=1e-4)
    y, V = oracles.softmax(1000, 3, 1.5, 1.5, 0)
    interval = multiclass.confidence_interval(y, V, confidence_level=0.8)
    assert truth / 4 < interval.lower < truth < interval.upper


def test_the_order_of_rows_does_not_matter():
    y, V = oracles.softmax(SMALL, 3, 1.5, 9.0, 0)
    V = V[:, [1, 2, 0]]
    weight = np.random.default_rng(0).uniform(0.5, 1, SMALL)
    order = np.random.default_rng(1).permutation(SMALL)
    first = multiclass.confidence_interval(y, V, sample_weight=weight)
    second = multiclass.confidence_interval(y[order], V[order], sample_weight=weight[order])
    for name in ("value", "lower", "upper"):
        assert getattr(first, name) == pytest.approx(getattr(second, name), abs=1e-9)
    other = multiclass.confidence_interval(y, V, sample_weight=weight, rng=1)
    assert 0 < other.lower != first.lower


@needs_speed
def test_the_interval_of_smooth_ce_sees_the_ring():
    y, V, weight = oracles.ring(points=36, radius=0.3, turn=0.9)
    rng = np.random.default_rng(0)
    rows = rng.choice(y.size, 1500, p=np.maximum(weight, 0) / np.maximum(weight, 0).sum())
    found = multiclass.confidence_interval(y[rows], V[rows], measure="smooth_ce")
    assert found.lower > 0.005
    assert found.value <= found.upper
    assert multiclass.confidence_interval(y[rows], V[rows]).lower < 0.005


def test_few_rows_are_warned_of():
    V = np.full((12, 3), 1 / 3)
    with pytest.warns(UserWarning, match="only 0 of 12 rows"):
        multiclass.confidence_interval(np.zeros(12, int), V)


@pytest.mark.slow
@needs_speed
@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_the_bracket_of_the_population(beta):
    y, V = oracles.softmax(600, 3, 1.5, beta, 0)
    bracket = multiclass.confidence_interval(y, V, measure="distance")
    assert (bracket.value, bracket.measure) == (None, "distance")
    assert bracket.lower == multiclass.confidence_interval(y, V).lower
    y, V = oracles.softmax(3000, 3, 1.5, beta, 1)
    large = multiclass.distance_bracket(y, V, tol=1e-4)
    assert bracket.lower <= large.upper
    assert bracket.upper >= large.lower
    assert 0 <= bracket.lower < bracket.upper < 0.25
    assert "With 95% confidence" in str(bracket)


def test_the_cost_of_cells_is_at_least_that_of_the_map():
    """E TV(v, mean label without the row) ≥ E TV(v, E[y | cell]), for every law."""
    from caldist.data.class_rows import ClassRows
    from caldist.multiclass.cells import cell_cost

    rng = np.random.default_rng(0)
    v = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    truth = np.array([[0.5, 0.4, 0.1], [0.3, 0.1, 0.6]])
    cost = 0.5 * np.abs(v - truth).sum(axis=1).mean()
    found = []
    for _ in range(200):
        cell = np.repeat([0, 1], 10)
        y = np.array([rng.choice(3, p=truth[c]) for c in cell])
        found.append(cell_cost(ClassRows.of(y, v[cell]), cell, 1.645)[0])
    assert np.mean(found) > cost - 4 * np.std(found) / math.sqrt(200)


def test_cells_of_rows_without_weight_cost_nothing():
    y, V = oracles.softmax(60, 3, 1.5, 1.0, 0)
    cell = np.repeat([0, 1, 2], 20)
    weight = np.repeat([1.0, 0.0, 1.0], 20)
    found = _cells.cell_cost(ClassRows.of(y, V, sample_weight=weight), cell, 1.645)
    some = weight > 0
    rest = ClassRows.of(y[some], V[some])
    assert found == pytest.approx(_cells.cell_cost(rest, cell[some] // 2, 1.645), rel=1e-12)


def test_equal_rows_are_one_cell():
    from caldist.multiclass.cells import leaves

    equal = np.tile([0.1, 0.2, 0.7], (100, 1))  # their mean is not 0.1, 0.2, 0.7 to the last bit
    assert leaves(equal, 32).tolist() == [0] * 100
    two = np.vstack((equal, np.tile([0.2, 0.1, 0.7], (3, 1))))
    cell = leaves(two, 32)
    assert len(set(cell[:100])) == len(set(cell[100:])) == 1
    assert cell[0] != cell[100]
    V = np.full((100, 3), 1 / 3)
    bracket = multiclass.confidence_interval(np.arange(100) % 3, V, measure="distance")
    assert bracket.upper < 0.25


def test_cells_tell_peaked_predictions_apart():
    """Most probabilities of a class are near 0: cells are cut between these and the others."""
    from caldist.data.class_rows import ClassRows
    from caldist.multiclass.cells import leaves, upper_limit

    rng = np.random.default_rng(0)
    V = 0.98 * np.eye(10)[rng.integers(0, 10, 1000)] + 0.02 * rng.dirichlet(np.ones(10), 1000)
    cell, best = leaves(V, 32), V.argmax(axis=1)
    assert all(len(set(best[cell == number])) == 1 for number in set(cell))
    assert np.bincount(cell).min() >= 32
    y = (rng.random(1000)[:, None] > V.cumsum(axis=1)).sum(axis=1)
    assert upper_limit(ClassRows.of(y, V), 0.05) < 0.06


def test_what_noise_alone_would_show():
    y, V = oracles.softmax(SMALL, 3, 1.5, 1.0, 0)
    table = multiclass.classwise_table(y, V, confidence_level=None)
    expected = [0.45 * math.sqrt(sum(v * (1 - v))) / SMALL for v in V.T]
    assert [line.noise for line in table.lines] == pytest.approx(expected)
    assert table.noise == pytest.approx(sum(expected))


# -- tests -----------------------------------------------------------------------------------------

STATISTICS = ["auto", "classwise_smooth_ce", "kernel_ce", "brier_score", "top_label"]


@pytest.mark.slow
@pytest.mark.parametrize("measure", STATISTICS)
@pytest.mark.parametrize(("k", "scale"), [(3, 1.5), (10, 4.0)])
def test_the_size_of_the_test(measure, k, scale):
    trials, rejected = 60, 0
    for seed in range(trials):
        y, V = oracles.softmax(30, k, scale, 1.0, seed)
        result = multiclass.calibration_test(y, V, measure=measure, n_resamples=39, rng=seed)
        rejected += result.pvalue <= 0.1
    assert within(rejected, trials, 0.1)


def statistics_by_hand(y, V, share):
    """Return three statistics by their definitions, with the functions for two labels."""
    k, square = V.shape[1], (V**2).sum(axis=1)
    weight = {"sample_weight": share}
    classwise = sum(caldist.smooth_ce(y == j, V[:, j], **weight) for j in range(k)) / 2
    loss = ((np.eye(k)[y] - V) ** 2).sum(axis=1)
    variance = 4 * sum(share**2 * ((V**3).sum(axis=1) - square**2))
    brier = abs(sum(share * (loss - (1 - square)))) / math.sqrt(variance)
    top = caldist.smooth_ce(y == V.argmax(axis=1), V.max(axis=1), **weight)
    return {"classwise_smooth_ce": classwise, "brier_score": brier, "top_label": top}


@pytest.mark.parametrize("weighted", [False, True])
def test_pvalues_are_ranks_among_the_values_of_drawn_labels(weighted):
    y, V = oracles.softmax(40, 3, 1.5, 1.6, 2)
    weight = np.random.default_rng(0).integers(1, 4, 40) if weighted else None
    resampler = Resampler.of(5, n_resamples=39)

    def replicate(rng):
        label = np.array(
            [np.searchsorted(v.cumsum(), u) for v, u in zip(V, rng.random(40), strict=True)]
        )
        return list(statistics_by_hand(label, V, oracles.shares(y, weight)).values())

    drawn = resampler.run(replicate, family=testing._FAMILY, size=40)
    observed = statistics_by_hand(y, V, oracles.shares(y, weight))
    options = {"n_resamples": 39, "rng": 5, "sample_weight": weight}
    result = multiclass.calibration_test(y, V, **options)
    parts = {part.measure: part for part in result.components}
    for (name, value), values in zip(observed.items(), drawn.T, strict=True):
        found = multiclass.calibration_test(y, V, measure=name, **options)
        assert found == parts[name]
        assert found.statistic == pytest.approx(value, abs=1e-9)
        assert found.pvalue == (1 + np.count_nonzero(values >= value)) / 40
    least = min(part.pvalue for part in result.components)
    assert result.statistic == least <= result.pvalue <= 4 * least


@pytest.mark.parametrize("measure", STATISTICS)
def test_the_test_finds_predictions_that_are_too_sharp(measure):
    y, V = oracles.softmax(400, 3, 1.5, 4.0, 0)
    result = multiclass.calibration_test(y, V, measure=measure, n_resamples=99, rng=0)
    assert result.pvalue <= 0.04
    assert result.measure == measure
    assert result == multiclass.calibration_test(y, V, measure=measure, n_resamples=99, rng=0)


def test_the_kernel_sees_the_ring_and_projections_do_not():
    y, V, weight = oracles.ring(turn=0.9)
    rng = np.random.default_rng(0)
    rows = rng.choice(y.size, 1000, p=np.maximum(weight, 0) / np.maximum(weight, 0).sum())
    result = multiclass.calibration_test(y[rows], V[rows], n_resamples=99, rng=0)
    p = {part.measure: part.pvalue for part in result.components}
    assert p["kernel_ce"] == 0.01
    assert min(p["classwise_smooth_ce"], p["brier_score"]) > 0.02


def test_statistics_with_two_classes():
    y, V = oracles.softmax(80, 2, 1.5, 2.0, 0)
    smooth = multiclass.calibration_test(y, V, measure="classwise_smooth_ce", n_resamples=9, rng=0)
    assert smooth.statistic == pytest.approx(caldist.smooth_ce(y, V[:, 1]))
    brier = multiclass.calibration_test(y, V, measure="brier_score", n_resamples=9, rng=0)
    twin = caldist.calibration_test(y, V[:, 1], measure="spiegelhalter", n_resamples=9, rng=0)
    assert brier.statistic == pytest.approx(abs(twin.statistic))


def test_labels_are_drawn_with_their_probabilities():
    from caldist.kernels.loader import simplex

    V = np.array([[0.2, 0.0, 0.8], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    label = np.empty(3, dtype=np.int64)
    for uniform, expected in (
        ([0.1, 0.0, 0.4], [0, 1, 0]),
        ([0.2, 0.999, 0.5], [2, 1, 1]),
        ([1.0, 1.0, 1.0], [2, 1, 1]),
    ):
        simplex.draw(V, np.array(uniform), label)
        assert label.tolist() == expected


# -- comparisons -----------------------------------------------------------------------------------


def test_two_classes_are_compared_as_binary_models():
    y, V = oracles.softmax(SMALL, 2, 1.5, 1.0, 0)
    W = V**3 / (V**3).sum(axis=1, keepdims=True)
    found = multiclass.compare(y, V, W, n_resamples=99, rng=0)
    assert found == caldist.compare(y, V[:, 1], W[:, 1], n_resamples=99, rng=0)


def test_a_comparison_and_its_mirror():
    y, V = oracles.softmax(2000, 3, 1.5, 1.0, 0)
    W = V**4 / (V**4).sum(axis=1, keepdims=True)
    one = multiclass.compare(y, V, W, n_resamples=99, rng=0)
    other = multiclass.compare(y, W, V, n_resamples=99, rng=0)
    assert one.upper < 0 < other.lower
    assert one.pvalue == other.pvalue <= 0.05
    assert (one.lower, one.upper) == pytest.approx((-other.upper, -other.lower))
    parts = [0.5 * caldist.smooth_ce(a, b) for a, b in caldist.multiclass.one_vs_rest(y, V)]
    assert one.value_a == pytest.approx(sum(parts))
    same = multiclass.compare(y, V, V, n_resamples=99, rng=0)
    assert (same.difference, same.lower, same.upper) == (0, 0, 0)


def test_too_few_resamples_for_several_models_are_refused_before_they_are_made(monkeypatch):
    y, V = oracles.softmax(40, 3, 1.5, 1.0, 0)
    models = {name: ClassRows.of(y, np.roll(V, at, axis=1)) for at, name in enumerate("abc")}
    monkeypatch.setattr(Resampler, "run", None)  # three pairs, and three parts of each
    with pytest.raises(ValueError, match=r"n_resamples is 178: .* at least 179"):
        comparison.paired_models(models, 0.95, Resampler.of(0, n_resamples=178))
    with pytest.raises(TypeError, match="not callable"):
        comparison.paired_models(models, 0.95, Resampler.of(0, n_resamples=179))


def test_several_models_are_compared_in_one_statement():
    """As each pair alone, at a third of the error; its p-value counts three times."""
    y, V = oracles.softmax(60, 3, 1.5, 1.0, 0)
    models = {name: ClassRows.of(y, np.roll(V, at, axis=1)) for at, name in enumerate("abc")}
    resampler = Resampler.of(0, n_resamples=199)
    found = comparison.paired_models(models, 0.85, resampler)
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    for (a, b), pair in found.items():
        alone = comparison.paired(models[a], models[b], 0.95, resampler)
        assert (pair.lower, pair.upper) == pytest.approx((alone.lower, alone.upper), abs=1e-12)
        assert pair.pvalue == pytest.approx(min(1.0, 3 * alone.pvalue))
        assert pair.least_pvalue == pytest.approx(3 * alone.least_pvalue) == pytest.approx(9 / 200)


def test_bad_comparisons():
    y, V = oracles.softmax(40, 3, 1.5, 1.0, 0)
    with pytest.raises(ValueError, match=r"y_prob_b\[0, 0\] is 2"):
        multiclass.compare(y, V, np.full(V.shape, 2.0))
    with pytest.raises(ValueError, match="y_prob_b has 4 columns, but y_prob_a has 3"):
        multiclass.compare(y, V, np.full((40, 4), 0.25))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_upper_limit_of_peaked_predictions(weighted):
    """Cells tell predictions that are nearly sure of a class from the others."""
    y, V = oracles.softmax(600, 10, 8.0, 1.0, 0)
    weight = np.repeat([1.0, 2.0], 300) if weighted else None
    options = {"measure": "distance", "confidence_level": 0.9, "sample_weight": weight}
    bracket = multiclass.confidence_interval(y, V, **options)
    assert bracket.upper < 0.2
    assert bracket.upper > multiclass.distance_bracket(y, V).lower


def test_centres_that_no_row_comes_to_are_probabilities_of_the_classes_brought():
    brought = np.array([[True, True, False], [True, False, True], [False, False, False]])
    found = coupling._normalised(np.array([[0.0, 0, 0], [1, 0, 3], [0, 0, 0]]), brought)
    assert found.tolist() == [[0.5, 0.5, 0], [0.25, 0, 0.75], [1, 0, 0]]


@pytest.mark.parametrize(
    ("values", "least", "cut"),
    [
        ([0, 0, 0, 0, 0, 1], 2, 1.0),  # equal values stay together, though a part is small
        ([0.1, 0.2, 0.8, 0.9], 1, 0.8),
        ([0.1, 0.8, 0.85, 0.9], 1, 0.8),
        ([0.1, 0.8, 0.85, 0.9], 2, 0.85),
    ],
)
def test_where_a_column_is_cut(values, least, cut):
    """Where two parts vary least, of at least so many rows each if ties allow that."""
    assert _cells._cut(np.array(values, dtype=float), least) == cut


def test_cells_are_made_of_the_predictions_alone():
    y, V = oracles.softmax(300, 4, 1.5, 2.0, 0)
    weight = np.r_[np.zeros(20), np.ones(280)]
    for sample_weight in (None, weight):
        one, other = (
            _cells.partitions(ClassRows.of(label, V, sample_weight=sample_weight))
            for label in (y, np.roll(y, 1))
        )
        for cells, same in zip(one, other, strict=True):
            assert np.array_equal(cells, same)
            assert cells.max() > 3
    some = _cells.partitions(ClassRows.of(y, np.full((300, 4), 0.25)))
    assert not np.any(some)
