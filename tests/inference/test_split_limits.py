"""Limits that need no replicates: cells for the distance, splitting for norms, and gates."""

import math
from itertools import combinations, pairwise, product
from statistics import NormalDist

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

import caldist
from caldist._util.numbers import least
from caldist.data.class_rows import ClassRows
from caldist.data.rows import Rows
from caldist.inference import cells as _cells
from caldist.inference import confidence_interval, gate
from caldist.inference import sample as data_units
from caldist.inference.cross_fit import split_mean
from caldist.inference.folds import FOLDS, Folds, deal, ordered_units
from caldist.inference.limits import Limits
from caldist.inference.resampling import Resampler
from caldist.inference.sample import units_of
from caldist.kernels import loader
from caldist.kernels import recalibration as plain
from caldist.multiclass import cells as class_cells

FAST = loader.COMPILED
SPLIT = [caldist.smooth_ce, caldist.kernel_ce, caldist.random_interval_ce, caldist.lower_distance]
few_rows = pytest.mark.filterwarnings("ignore:only .* fewer than 10:UserWarning")


def limits_of(rows, risk=0.1, method="cross_fit", seed=0):
    return Limits(ordered_units(rows), risk, Resampler.of(seed, n_resamples=99), method)


def sample(n, seed=0, power=1.0, decimals=None):
    rng = np.random.default_rng(seed)
    v = rng.random(n)
    y = (rng.random(n) < v**power).astype(int)
    return y, v if decimals is None else np.round(v, decimals)


# -- the cost of cells -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("v", "starts"),
    [
        ([0.2, 0.2, 0.7, 0.7], [0]),
        ([0.1, 0.3, 0.4, 0.8, 0.9], [0, 3]),
        ([0.05, 0.1, 0.5, 0.5, 0.6, 0.95], [0, 2]),
        ([0.3, 0.31, 0.32], [0]),
        ([0.4, 0.6], [0, 1]),  # alone in their cells
    ],
)
@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("clusters", [None, "two"])
def test_the_mean_cost_is_at_least_the_truth(v, starts, slope, clusters):
    """By enumeration of all labels, each weighed by its probability."""
    v = np.array(v)
    n, support = v.size, np.unique(v)
    rate = 0.3 + slope * (v - 0.3)
    # A cluster of two rows has one common label; their rate is that of the first.
    cluster = None if clusters is None else np.array([0, 0, *range(1, n - 1)])
    if cluster is not None:
        rate[1] = rate[0]
    start = np.searchsorted(support, v[np.array(starts)])
    cell = np.searchsorted(start, np.searchsorted(support, v), side="right") - 1
    mean_label = np.array([rate[cell == c].mean() for c in cell])
    truth = np.abs(v - mean_label).mean()
    total = found = 0.0
    for labels in product((0, 1), repeat=n):
        y = np.array(labels)
        if cluster is not None and y[0] != y[1]:
            continue
        chance = np.where(y == 1, rate, 1 - rate)
        weight = chance.prod() if cluster is None else chance[1:].prod()
        units = ordered_units(Rows.of(y, v, clusters=cluster))
        value, _ = _cells._cost(units, start, 1.645)
        total += weight
        found += weight * value
    assert total == pytest.approx(1)
    assert found >= truth - 1e-12


def test_a_row_alone_costs_the_most():
    units = units_of(Rows.of([1, 0], [0.3, 0.9]))
    value, _ = _cells._cost(units, np.array([0, 1]), 1.645)
    assert value == pytest.approx((0.7 + 0.9) / 2)


def test_an_atom_exactly_on_its_mean_has_an_error():
    """The cost rises with slope 1 on both sides of it."""
    y, v = np.arange(1000) % 10 < 3, np.full(1000, 0.3)
    value, error = _cells._cost(units_of(Rows.of(y, v)), np.array([0]), 1.645)
    assert value < 0.001
    assert error == pytest.approx(math.sqrt(0.21 / 1000), rel=0.01)


def means_of_cells(v, y, share, cell):
    """Return for each cell its rows, their part of its mass, their mean label and its floor."""
    for c in range(cell.max() + 1):
        inside = np.flatnonzero(cell == c)
        part = share[inside] / share[inside].sum()
        mean, rows = part @ y[inside], 1 / (part @ part)
        rate = (rows * mean + 1) / (rows + 2)  # one effective row of each label more
        yield inside, part, mean, rate * (1 - rate)


def slope_to(end, v, part, mean):
    """Return the slope of the mean of |v - m| from the mean label to another number."""
    return part @ (np.abs(v - end) - np.abs(v - mean)) / (end - mean)


def error_of_rows(v, y, share, cell, z):
    """Return the error of the cost, cell by cell with the slope that makes it larger."""
    parts = list(means_of_cells(v, y, share, cell))
    whole = sum(share[inside] @ np.abs(v[inside] - mean) for inside, _, mean, _ in parts)
    total = 0.0
    for inside, part, mean, floor in parts:
        off = y[inside] - mean
        reach = z * math.sqrt(max(part**2 @ off**2, (part**2).sum() * floor))
        squares = []
        for end in (mean - reach, mean + reach):
            slope = slope_to(end, v[inside], part, mean)
            psi = np.abs(v[inside] - mean) - whole + slope * off
            more = slope**2 * max(0.0, floor - mean * (1 - mean))
            squares.append((share[inside] ** 2 * (psi**2 + more)).sum())
        total += max(squares)
    return math.sqrt(total)


@pytest.mark.parametrize("z", [0.5, 1.96])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_a_cost_by_hand(weighted, z):
    """Rare labels in one cell, an atom on its mean, predictions to one side, and a mixture."""
    rng = np.random.default_rng(1)
    v = np.repeat([0.01, 0.02, 0.3, 0.3, 0.45, 0.47, 0.6, 0.8, 0.95], 20)
    cell = np.repeat([0, 0, 1, 1, 2, 2, 3, 3, 3], 20)
    y = (rng.random(180) < np.where(cell == 2, 0.2, v)).astype(float)
    y[:40], y[40:80] = 0.0, np.arange(40) % 10 < 3
    weight = rng.choice([1.0, 2.0, 5.0], 180) if weighted else np.ones(180)
    units = ordered_units(Rows.of(y, v, sample_weight=weight))
    start = np.searchsorted(units.prediction, [0.01, 0.3, 0.45, 0.6])
    _, error = _cells._cost(units, start, z)
    assert error == pytest.approx(error_of_rows(v, y, weight / weight.sum(), cell, z), rel=1e-12)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("case", [0, 4, 13])
def test_the_error_of_a_cost_of_clusters_by_hand(monkeypatch, case, few):
    """Errors of cells go together: largest are those of slopes below, the steeper, those above."""
    monkeypatch.setattr(data_units, "_FEW_CLUSTERS", 1e9 if few else 0)
    rng, z, n = np.random.default_rng(case), 1.645, 120
    support = np.array([0.1, 0.12, 0.3, 0.34, 0.5, 0.53])
    support = 1 - support[::-1] if case % 2 else support
    v, edges = np.sort(rng.choice(support, n)), support[::2]
    cell = np.searchsorted(edges, v, side="right") - 1
    cluster = rng.permutation(n) // 4
    y = (np.where(rng.random(n) < 0.7, rng.random(n)[cluster], rng.random(n)) < v).astype(float)
    share = np.full(n, 1 / n)
    units = ordered_units(Rows.of(y, v, clusters=cluster))
    assert units.draws_labels == few
    _, error = _cells._cost(units, np.searchsorted(units.prediction, edges), z)

    def together(x):
        return (np.bincount(cluster, x) ** 2).sum()

    def frequent(deviation):  # a label as rare as seen may come at once, as much as labels depend
        alone = (deviation**2).sum()
        return alone + units.dependence * (together(deviation) - alone)

    away, off, floor, slopes = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((2, n))
    for inside, part, mean, rare in means_of_cells(v, y, share, cell):
        away[inside], off[inside] = np.abs(v[inside] - mean), y[inside] - mean
        floor[inside] = np.sqrt(np.maximum(rare, v[inside] * (1 - v[inside])))
        here = (cell == cell[inside[0]]) / inside.size
        variance = max(together(here * off), frequent(here * floor) if few else 0.0)
        for k, reach in enumerate((z * math.sqrt(variance), -z * math.sqrt(variance))):
            slopes[k, inside] = slope_to(mean + reach, v[inside], part, mean)
    away -= away.mean()
    steeper = np.where(np.abs(slopes[0]) > np.abs(slopes[1]), *slopes)
    errors = [math.sqrt(together((away + s * off) / n)) for s in (*slopes, steeper)]
    if few:
        errors.append(math.sqrt(frequent(np.abs(steeper) * floor / n)))
    assert error == pytest.approx(max(errors), rel=1e-12)


@pytest.mark.parametrize("wins", ["cells", "merged cells"])
def test_the_upper_end_of_the_distance_by_hand(wins):
    """The cost of cells made without labels, or of merged ones on the rows not merged on."""
    if wins == "cells":
        y, v = sample(120, 4)
    else:  # wide cells are best
        v = np.random.default_rng(0).random(400)
        y = (np.random.default_rng(1).random(400) < np.where(v < 0.5, 0.2, 0.8)).astype(int)
    rows, delta, z = Rows.of(y, v), 0.1, 1.6448536269514722
    limits = limits_of(rows, delta)
    cells, n = limits.cells, y.size
    v, y = np.sort(v), y[np.argsort(v)]
    cell = np.searchsorted(cells.start, np.arange(n), side="right") - 1
    cost = 0.0
    for i in range(n):
        others = (cell == cell[i]) & (np.arange(n) != i)
        cost += np.abs(v[i] - y[others].mean()) / n if others.any() else max(v[i], 1 - v[i]) / n
    share = np.full(n, 1 / n)
    one = cost + z * error_of_rows(v, y.astype(float), share, cell, z)
    costs, errors = [], []
    for pair in combinations(range(FOLDS), 2):
        train, test = limits.folds.halves(pair)
        found = _cells._cost(test[0], _cells._merge(train[0], np.append(cells.start, n)), z)
        costs.append(found[0])
        errors.append(found[1] * math.sqrt(test[0].n_rows / n))
    two = np.mean(costs) + z * np.mean(errors)
    assert (one < two) == (wins == "cells")
    assert limits.distance(rows.joint) == pytest.approx(
        min(one, two) + math.log(2 / delta) / (3 * n), rel=1e-12
    )


def near_one_label(kind, n, rng):
    """Draw two predictions 1.4 standard errors from 0.3, labels 1.9 below it, and its distance."""
    options, error = {}, math.sqrt(0.3 * 0.7 / n)
    if kind == "weights":
        weight = rng.choice([0.5, 1.0, 1.5], n)
        options["sample_weight"], error = weight, error * math.sqrt(1 + 1 / 6)
    elif kind == "clusters":
        options["clusters"] = np.arange(n) // 2  # of independent labels
    v = rng.choice([0.3 - 1.4 * error, 0.3 + 1.4 * error], n)
    y = (rng.random(n) < 0.3 - 1.9 * error).astype(int)
    if kind == "summary":
        return (caldist.Joint.from_arrays(y, v),), options, 1.9 * error
    return (y, v), options, 1.9 * error


@pytest.mark.slow
@pytest.mark.skipif(not FAST, reason="the lower distance of many samples, in plain Python")
@pytest.mark.parametrize("kind", ["rows", "summary", "weights", "clusters"])
def test_gates_pass_no_more_often_than_they_may_near_one_mean_label(kind):
    """The sample's mean label is often between the predictions, where the cost has no slope."""
    rng, trials, error = np.random.default_rng(0), 100, 0.05
    passed = 0
    for _ in range(trials):
        data, options, distance = near_one_label(kind, 400, rng)
        passed += (
            gate(*data, tolerance=distance, confidence_level=1 - error, **options).outcome == "pass"
        )
    assert passed <= error * trials + 3.1 * math.sqrt(error * (1 - error) * trials)


@few_rows
@pytest.mark.parametrize("measure", SPLIT, ids=str)
def test_no_positives_and_folds_without_rows(measure):
    for y, v in (([0] * 50, [0.01] * 50), ([0] * 4, [0.2] * 4), ([1], [0.4]), ([0], [0.0])):
        found = confidence_interval(y, v, measure=measure, method="cross_fit", rng=0)
        assert 0 <= found.lower <= found.value <= found.upper <= 1
        assert gate(y, v, tolerance=1e-4).outcome != "pass"
    # No residual anywhere: no witness to be had, and none is needed.
    y = np.arange(60) % 2
    found = confidence_interval(y, y.astype(float), measure=measure, method="cross_fit", rng=0)
    assert found.lower == 0


def test_clusters_of_identical_rows_are_one_row_of_more_weight(monkeypatch):
    """But for the floor of few clusters, in which rows count."""
    monkeypatch.setattr(data_units, "_FEW_CLUSTERS", 0)
    rng = np.random.default_rng(3)
    y, v = sample(150, 1, 2.0)
    times = rng.integers(1, 4, 150)
    cluster = np.repeat(np.arange(150), times)
    many = ordered_units(Rows.of(np.repeat(y, times), np.repeat(v, times), clusters=cluster))
    one = ordered_units(Rows.of(y, v, sample_weight=times, clusters=np.arange(150)))
    cells, others = (_cells.cells_of(units) for units in (many, one))
    start = np.arange(0, 150, 15)
    costs = [_cells._cost(units, start, 1.645) for units in (many, one)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)
    assert cells.start[0] == others.start[0] == 0
    fold = rng.integers(0, FOLDS, (2, 150))
    # The same rows in the same folds: by the content of each, which is its prediction.
    split = [
        split_mean(
            caldist.smooth_ce,
            Folds(units, fold[:, np.searchsorted(np.sort(v), units.prediction[units.place])]),
            np.full(150, 0.5),
        )
        for units in (many, one)
    ]
    assert split[0] == pytest.approx(split[1], rel=1e-12)


def test_cells_are_a_few_standard_errors_wide_and_keep_ties_together():
    y, v = sample(5000, 0, decimals=3)
    found = limits_of(Rows.of(y, v)).cells
    support, count = np.unique(v, return_counts=True)
    assert 10 < found.start.size < 60
    for a, b in pairwise(np.append(found.start, support.size)):
        inside = slice(a, b)
        noise = math.sqrt((count * support * (1 - support))[inside].sum())
        assert count[inside].sum() * (support[b - 1] - support[a]) <= 3 * noise + 1e-9
    assert (np.diff(found.rate) != 0).sum() <= found.start.size - 1


# -- several classes ---------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_error_of_a_cost_of_several_classes_by_hand(seed, weighted):
    """In each cell the largest over all choices of one slope for each class."""
    rng, z, n, k = np.random.default_rng(seed), 1.645, 90, 3
    base = np.array([[0.3, 0.3, 0.4], [0.6, 0.3, 0.1]])
    cell = rng.integers(0, 2, n)
    v = base[cell] + rng.choice([-0.05, 0.0, 0.05], (n, 1)) * np.array([1.0, -0.5, -0.5])
    y = (rng.random((n, 1)) > base[cell].cumsum(axis=1)).sum(axis=1)
    weight = rng.choice([1.0, 3.0], n) if weighted else np.ones(n)
    share = weight / weight.sum()
    _, error = class_cells.cell_cost(ClassRows.of(y, v, sample_weight=weight), cell, z)
    means = np.array([share[cell == c] @ np.eye(k)[y[cell == c]] for c in (0, 1)])
    means /= np.bincount(cell, share)[:, None]
    away = 0.5 * np.abs(v - means[cell]).sum(axis=1)
    away -= share @ away
    total = 0.0
    for c in (0, 1):
        inside, slopes = cell == c, []
        for j in range(k):
            ((_, part, mean, floor),) = means_of_cells(
                v[inside, j], y[inside] == j, share[inside], np.zeros(inside.sum(), dtype=int)
            )
            off = (y[inside] == j) - mean
            reach = z * math.sqrt(max(part**2 @ off**2, (part**2).sum() * floor))
            slopes.append(
                [slope_to(mean + end, v[inside, j], part, mean) / 2 for end in (reach, -reach)]
            )
        total += max(
            (share[inside] ** 2)
            @ (away[inside] + np.array(chosen)[y[inside]] - means[c] @ chosen) ** 2
            for chosen in product(*slopes)
        )
    if weighted:  # only nearly the largest
        assert 0.95 * math.sqrt(total) < error <= math.sqrt(total) + 1e-12
    else:
        assert error == pytest.approx(math.sqrt(total), rel=1e-12)


def test_two_classes_have_the_error_of_labels_0_and_1():
    y, v = sample(400, 3, 1.5)
    rows = Rows.of(y, v)
    start = limits_of(rows).cells.start
    cell = np.searchsorted(start, np.argsort(np.argsort(v)), side="right") - 1
    classes = class_cells.cell_cost(ClassRows.of(y, np.column_stack((1 - v, v))), cell, 1.645)
    both = _cells._cost(ordered_units(rows), start, 1.645)
    assert classes[0] == pytest.approx(both[0], rel=1e-9)
    assert classes[1] == pytest.approx(both[1], rel=0.02)  # but for what rare labels add to one


def test_the_upper_limit_of_several_classes_by_hand():
    """Cells for two weights of the noise, each with half the risk."""
    rng = np.random.default_rng(0)
    v = rng.dirichlet(np.ones(3), 200)
    y = (rng.random((200, 1)) > v.cumsum(axis=1)).sum(axis=1)
    weight = rng.choice([1.0, 4.0], 200)
    rows, risk = ClassRows.of(y, v, sample_weight=weight), 0.05
    z = NormalDist().inv_cdf(1 - risk / 2)
    ends = []
    for cell in class_cells.partitions(rows):
        cost, error = class_cells.cell_cost(rows, cell, z)
        ends.append(cost + z * error + math.log(2 / risk) / 3 * 4 / weight.sum())
    assert len(ends) == 2
    assert ends[0] != ends[1]
    assert class_cells.upper_limit(rows, risk) == pytest.approx(min(ends), rel=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_upper_limits_of_several_classes_miss_rarely_near_one_mean_label(k):
    rng, trials, n, risk = np.random.default_rng(1), 200, 1000, 0.05
    error = math.sqrt(0.3 * 0.7 / n)
    others = -np.ones(k) / (k - 1)
    others[0] = 1.0  # towards the first class, away from the others
    middle = np.full(k, 0.7 / (k - 1))
    middle[0] = 0.3
    missed = 0
    for _ in range(trials):
        v = middle + 1.4 * error * rng.choice([-1, 1], (n, 1)) * others
        y = (rng.random((n, 1)) > (middle - 1.9 * error * others).cumsum()).sum(axis=1)
        limit = class_cells.upper_limit(ClassRows.of(y.clip(0, k - 1), v), risk)
        missed += limit < 1.9 * error
    assert missed <= risk * trials + 3.1 * math.sqrt(risk * (1 - risk) * trials)


# -- merging -----------------------------------------------------------------------------------


def _best_merge(v, y, w, edges):
    """Return the least cost over all ways to merge neighbouring cells."""
    inner, best = edges[1:-1], math.inf
    for keep in range(len(inner) + 1):
        for chosen in combinations(inner, keep):
            cuts = [edges[0], *chosen, edges[-1]]
            cost = 0.0
            for a, b in pairwise(cuts):
                if w[a:b].sum() > 0:
                    mean = (w * y)[a:b].sum() / w[a:b].sum()
                    cost += (w[a:b] * np.abs(v[a:b] - mean)).sum()
            best = min(best, cost)
    return best


def _merge(module, v, y, w, edges):
    sums = [np.append(0.0, np.cumsum(part)) for part in (w, w * y, w * v)]
    best, back = np.empty(edges.size), np.empty(edges.size, dtype=np.int64)
    module.merge(v, *sums, edges, best, back)
    return best, back


@pytest.mark.parametrize("seed", range(8))
def test_merging_against_all_merges(seed):
    rng = np.random.default_rng(seed)
    v = np.sort(rng.random(30))
    y, w = rng.random(30), rng.random(30) * (rng.random(30) < 0.7)  # frequencies, some empty
    edges = np.array([0, *sorted(rng.choice(np.arange(1, 30), 7, replace=False)), 30])
    best, back = _merge(loader.recalibration, v, y, w, edges)
    assert best[-1] == pytest.approx(_best_merge(v, y, w, edges), abs=1e-12)
    assert (back < np.arange(edges.size)).all() or back[0] == 0


def test_compiled_and_plain_agree():
    rng = np.random.default_rng(0)
    for _ in range(5):
        v = np.sort(rng.random(80))
        mass, variance = rng.random(80) / 80, rng.random(80) / 80**2
        starts = []
        for module in (plain, loader.recalibration):
            start = np.empty(80, dtype=np.int64)
            count = module.cells(v, mass, variance, 3.0, start)
            starts.append(start[:count].tolist())
        assert starts[0] == starts[1]
        edges = np.append(starts[0], 80)
        y = (rng.random(80) < v).astype(float)
        ours, theirs = (_merge(m, v, y, mass, edges) for m in (plain, loader.recalibration))
        assert ours[0] == pytest.approx(theirs[0], abs=1e-15)
        assert np.array_equal(ours[1], theirs[1])


@pytest.mark.parametrize("kind", ["labels", "rates", "increasing"])
def test_pooled_blocks_are_those_of_isotonic_regression(kind):
    rng = np.random.default_rng(9)
    for n in (1, 2, 3, 50, 400):
        mean = {
            "labels": rng.integers(0, 2, n).astype(float),
            "rates": np.round(rng.random(n), 1),
            "increasing": np.arange(n) / n,
        }[kind]
        mass = rng.integers(1, 5, n).astype(float)
        expected = isotonic_regression(mean, weights=mass)
        for module in (plain, loader.recalibration):
            level, weight, start = mean.copy(), mass.copy(), np.empty(n, dtype=np.int64)
            count = module.pool(level, weight, start)
            assert np.array_equal(start[:count], expected.blocks[:-1])
            assert level[:count] == pytest.approx(expected.x[expected.blocks[:-1]], abs=1e-15)
            assert np.array_equal(weight[:count], np.add.reduceat(mass, start[:count]))


# -- splitting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", SPLIT, ids=str)
def test_duals_are_feasible(measure):
    """Whatever they were made from, their mean over a population is at most its value."""
    rng = np.random.default_rng(5)
    for _ in range(20 if FAST else 3):
        v = np.sort(rng.random(12))
        made, other = rng.dirichlet(np.ones(24), 2).reshape(2, 2, 12)
        zero, one = measure.dual(v, *made)
        for mass in (made, other):
            joint = caldist.Joint.from_masses(v, *mass)
            assert mass[0] @ zero + mass[1] @ one <= measure(joint) + 1e-4 + 1e-9
    zero, one = measure.dual(v, *made)
    joint = caldist.Joint.from_masses(v, *made)
    assert made[0] @ zero + made[1] @ one == pytest.approx(measure(joint), abs=2e-4)


@pytest.mark.parametrize("risk", [0.02, 0.1])
@pytest.mark.parametrize("measure", SPLIT, ids=str)
def test_the_lower_limit_by_splitting_by_hand(measure, risk):
    """The mean of duals less its error and what rare labels add, the logarithm over 3 n."""
    y, v = sample(150, 2, 3.0)
    limits = limits_of(Rows.of(y, v), risk)
    mean, error = split_mean(measure, limits.folds, limits.cells.rate)
    z = NormalDist().inv_cdf(1 - risk / 2)
    expected = mean - z * error - math.log(2 / risk) / (3 * 150)
    assert expected > 0.01
    assert limits.split_lower(measure) == pytest.approx(expected, rel=1e-12)
    level, settings = 1 - risk, {"method": "cross_fit", "rng": 0}
    found = confidence_interval(y, v, measure=measure, confidence_level=level, **settings)
    assert found.lower == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@few_rows
@pytest.mark.parametrize("bias", [0.0, 0.1])
def test_tied_witnesses_miss_no_more_often_than_they_may(bias):
    """Two atoms off by as much either way: every sample prefers one of several functions."""
    rng = np.random.default_rng(1)
    trials, n, error = (2000 if FAST else 40), 200, 0.05
    v = np.repeat([0.3, 0.7], n // 2)
    rate = v + np.repeat([bias, -bias], n // 2)
    population = caldist.Joint.from_masses(
        [0.3, 0.7], [0.7 - bias, 0.3 + bias], [0.3 + bias, 0.7 - bias]
    )
    for measure in (caldist.smooth_ce, caldist.kernel_ce):
        truth, missed = measure(population), 0
        for trial in range(trials):
            y = rng.random(n) < rate
            limits = limits_of(Rows.of(y, v), 2 * error, seed=trial)
            missed += limits.split_lower(measure) > truth + 1e-9
        assert missed <= error * trials + 3 * math.sqrt(error * (1 - error) * trials)


def overconfident(n, factor, rng):
    """Draw rows whose logits are too large by a factor, predictions in hundredths."""
    v = rng.choice(np.arange(1, 100) / 100, n)
    return (rng.random(n) < 1 / (1 + (1 / v - 1) ** (1 / factor))).astype(int), v


@pytest.mark.parametrize(("method", "n"), [("cross_fit", 20_000), ("resampling", 4000)])
@pytest.mark.skipif(not FAST, reason="the lower distance of each replicate, in plain Python")
def test_a_distance_that_stands_out_has_the_error_of_its_dual(method, n):
    """Of the potentials of an independent certificate, but for ties among them."""
    y, v = overconfident(n, 6.0, np.random.default_rng(3))
    rows = Rows.of(y, v)
    limits = limits_of(rows, method=method)
    proof = caldist.certify(y, v, measure="lower_distance", tol=1e-9)
    assert proof.value > 2 * limits.distance_noise
    potential = np.where(
        y == 1,
        np.interp(v, proof.node, proof.potential1),
        np.interp(v, proof.node, proof.potential0),
    )
    upper = limits.distance_upper(rows.joint, proof.value)
    error = potential.std() / math.sqrt(y.size)
    assert upper == pytest.approx(
        proof.value + limits.finite_sample_term + limits.z * error, abs=0.05 * error
    )
    assert upper < proof.value + limits.finite_sample_term + 0.7 * limits.z * limits.standard_error
    # Where the value does not stand out its dual may fit noise, and the error of no dual is larger.
    low = 1.99 * limits.distance_noise
    wide = low + limits.finite_sample_term + limits.z * limits.standard_error
    assert limits.distance_upper(rows.joint, low) == pytest.approx(wide, rel=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not FAST, reason="the lower distance of many samples, in plain Python")
def test_upper_ends_by_the_dual_miss_no_more_often_than_they_may():
    rng, trials, n, error = np.random.default_rng(8), 200, 1500, 0.05
    grid = np.arange(1, 100) / 100
    rate = 1 / (1 + (1 / grid - 1) ** (1 / 6.0))
    truth = caldist.lower_distance(caldist.Joint.from_masses(grid, 1 - rate, rate))
    missed = used = 0
    for _ in range(trials):
        rows = Rows.of(*overconfident(n, 6.0, rng))
        limits = limits_of(rows, 2 * error, "resampling")
        value = caldist.lower_distance(rows.joint)
        used += value > 2 * limits.distance_noise
        missed += limits.distance_upper(rows.joint, value) < truth
    assert used > 0.9 * trials  # it is this branch that is tried
    assert missed <= error * trials + 3 * math.sqrt(error * (1 - error) * trials)


@pytest.mark.filterwarnings("ignore:only:UserWarning")  # of two rows that have most of the weight
@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("kind", ["rows", "weights", "clusters", "both"])
def test_the_order_of_rows_changes_nothing(kind, decimals):
    rng = np.random.default_rng(4)
    y, v = sample(256, 2, 2.0, decimals)
    options = {}
    if kind in {"weights", "both"}:  # they add up to a power of two, so that sums are exact
        weight = rng.choice([0.5, 1.0, 1.5], 256)
        weight[-1] += 512.0 - weight.sum()
        weight[-1], weight[0] = weight[-1] / 2, weight[0] + weight[-1] / 2
        options["sample_weight"] = weight
    if kind in {"clusters", "both"}:
        options["clusters"] = rng.integers(0, 60, 256)
    order = rng.permutation(256)
    moved = {key: values[order] for key, values in options.items()}
    for measure in SPLIT[: None if FAST else 3]:
        for method in ("cross_fit", "resampling"):
            settings = {"measure": measure, "method": method, "n_resamples": 39, "rng": 3}
            first = confidence_interval(y, v, **options, **settings)
            assert first == confidence_interval(y[order], v[order], **moved, **settings)
    if FAST:
        settings = {"measure": "distance", "n_resamples": 39, "rng": 3}
        found = confidence_interval(y, v, **options, **settings)
        assert found == confidence_interval(y[order], v[order], **moved, **settings)


@pytest.mark.parametrize("measure", SPLIT, ids=str)
def test_a_joint_gives_what_its_rows_give(measure):
    y, v = sample(300, 5, 2.0, 1)
    joint = caldist.Joint.from_arrays(y, v)
    options = {"measure": measure, "method": "cross_fit", "rng": 1}
    assert confidence_interval(joint, **options) == confidence_interval(y, v, **options)
    assert gate(joint, tolerance=0.1) == gate(y, v, tolerance=0.1)


def test_folds_have_every_row_once_and_units_part():
    y, v = sample(500, 0, decimals=1)
    units = units_of(Rows.of(y, v))
    folds = deal(units, np.random.default_rng(0))
    assert folds.fold.shape == (2, folds.units.place.size)
    assert folds.units.count.sum() == 500
    assert folds.masses.sum(axis=1) == pytest.approx([1, 1])
    assert (np.abs(folds.masses - 0.2) < 0.1).all()
    assert folds.units.at_predictions(folds.units.mass) == pytest.approx(
        units.at_predictions(units.mass)
    )


@pytest.mark.skipif(not FAST, reason="plain kernels are slow")
def test_the_bracket_is_much_narrower_than_by_bins_of_fixed_widths():
    """For six models, beside: ldCE less its noise, to RintCE of the best bins and its error."""
    from caldist.datasets import load_demo

    demo = load_demo()
    y, models = demo.y_true, demo.y_prob
    ratios = []
    for name, v in models.items():
        limits = limits_of(Rows.of(y, v), 0.05, "resampling")
        lower = max(0.0, caldist.lower_distance(y, v) - limits.distance_noise)
        widths = [2.0**-k for k in range(math.ceil(math.log2(y.size) / 2) + 1)]
        upper = min(caldist.random_interval_ce(y, v, width=w) + w / 2 for w in widths)
        upper += NormalDist().inv_cdf(1 - 0.025 / len(widths)) * limits.standard_error
        found = confidence_interval(y, v, measure="distance", n_resamples=99, rng=0)
        ratios.append((found.upper - found.lower) / (upper - lower))
        assert ratios[-1] <= 0.8, name
    assert np.exp(np.mean(np.log(ratios))) <= 0.65


# -- gates -------------------------------------------------------------------------------------


def test_the_three_outcomes():
    y, v = sample(3000, 0)
    passed, open_, failed = (
        gate(y, v, tolerance=0.1), gate(y, v, tolerance=0.01), gate(y, v**3, tolerance=0.1)
    )  # fmt: skip
    assert [x.outcome for x in (passed, open_, failed)] == ["pass", "undecided", "fail"]
    assert passed.upper < 0.1
    assert open_.lower <= 0.01 <= open_.upper
    assert failed.lower > 0.1
    assert (passed.measure, passed.confidence_level, passed.tolerance) == ("distance", 0.95, 0.1)
    assert str(passed).startswith("pass: with 95% confidence the distance to calibration")
    assert "not enough rows" in str(open_)
    assert f"at least {least(failed.lower)}, above 0.1" in str(failed)
    assert passed == gate(y, v, tolerance=0.1)  # nothing is drawn anew
    assert passed.to_dict()["outcome"] == "pass"


def test_a_gate_of_a_measure_uses_one_sided_limits():
    y, v = sample(2000, 1, 1.5)
    for measure in ("smooth_ce", caldist.kernel_ce, "brier_score"):
        found = gate(y, v, tolerance=0.05, measure=measure)
        interval = confidence_interval(
            y, v, measure=measure, confidence_level=0.9, method="cross_fit", rng=0
        )
        limits = pytest.approx((interval.lower, interval.upper), rel=1e-12)
        assert (found.lower, found.upper) == limits
        assert found.measure == str(measure)
    strict = gate(y, v, tolerance=0.05, confidence_level=0.999)
    loose = gate(y, v, tolerance=0.05, confidence_level=0.8)
    assert strict.lower <= loose.lower
    assert loose.upper <= strict.upper


def test_a_gate_of_cells_moves_outwards():
    y, v = sample(4000, 2)
    exact, rounded = gate(y, v, tolerance=0.1), gate(Rows.of(y, v).round_to_grid(8), tolerance=0.1)
    assert rounded.lower <= exact.lower
    assert exact.upper < rounded.upper < exact.upper + 0.01


def test_a_gate_is_neither_true_nor_false():
    y, v = sample(50)
    with pytest.raises(TypeError, match=r"gate\.outcome == 'pass'"):
        bool(gate(y, v, tolerance=0.1))


def test_what_a_gate_refuses():
    y, v = sample(50)
    with pytest.raises(ValueError, match="'ece': it has no valid confidence interval"):
        gate(y, v, tolerance=0.1, measure="ece")
    with pytest.raises(ValueError, match=r"confidence_level is 0\.5: it must be above 0\.5"):
        gate(y, v, tolerance=0.1, confidence_level=0.5)
    for limit in (-1, 1, math.nan, math.inf):
        with pytest.raises(
            ValueError, match=f"tolerance is {limit}: it must be at least 0 and belo"
        ):
            gate(y, v, tolerance=limit)
    with pytest.raises(ValueError, match=r"tolerance is 5: .*For 5% pass 0\.05\."):
        gate(y, v, tolerance=5)
    assert gate(y, v, tolerance=0).outcome in {"fail", "undecided"}
    scaled = caldist.weighted_ce.using(functions=[lambda v: 100 * v])
    assert gate(y, v, tolerance=5, measure=scaled).outcome != "fail"  # its values have no ceiling
    with pytest.warns(UserWarning, match="1 of 3 rows have label 1"):
        assert gate([0, 1, 0], [0.1, 0.9, 0.2], tolerance=0.1).outcome == "undecided"
