"""Limits that need no replicates: cells for the distance, splitting for norms, and gates."""

import math
from itertools import combinations, pairwise, product
from statistics import NormalDist

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

import caldist
from caldist import _kernels
from caldist._util.numbers import least
from caldist.data import units as data_units
from caldist.data.rows import Rows
from caldist.inference import _cells, confidence_interval, distance_bracket, gate
from caldist.inference._dealing import FOLDS, Dealt, deal, ordered_units
from caldist.inference._limits import Limits
from caldist.inference._resampling import Resampler
from caldist.inference._split import split_mean
from caldist.kernels import recalibration as plain

FAST = _kernels.COMPILED
SPLIT = [caldist.smooth_ce, caldist.kernel_ce, caldist.random_interval_ce, caldist.lower_distance]
few_rows = pytest.mark.filterwarnings("ignore:only .* fewer than 10:UserWarning")


def limits_of(rows, risk=0.1, method="split", seed=0):
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
        value, _ = _cells._cost(units, start)
        total += weight
        found += weight * value
    assert total == pytest.approx(1)
    assert found >= truth - 1e-12


def test_a_row_alone_costs_the_most():
    units = Rows.of([1, 0], [0.3, 0.9]).units
    value, _ = _cells._cost(units, np.array([0, 1]))
    assert value == pytest.approx((0.7 + 0.9) / 2)


def test_an_atom_exactly_on_its_mean_has_an_error():
    """The slope of the cost has two values there, and the steeper one counts."""
    y, v = np.arange(1000) % 10 < 3, np.full(1000, 0.3)
    value, error = _cells._cost(Rows.of(y, v).units, np.array([0]))
    assert value < 0.001
    assert error == pytest.approx(math.sqrt(0.21 / 1000), rel=0.01)


@few_rows
@pytest.mark.parametrize("measure", SPLIT, ids=str)
def test_no_positives_and_folds_without_rows(measure):
    for y, v in (([0] * 50, [0.01] * 50), ([0] * 4, [0.2] * 4), ([1], [0.4]), ([0], [0.0])):
        found = confidence_interval(y, v, measure=measure, method="split", rng=0)
        assert 0 <= found.lower <= found.value <= found.upper <= 1
        assert gate(y, v, at_most=1e-4).outcome != "pass"
    # No residual anywhere: no witness to be had, and none is needed.
    y = np.arange(60) % 2
    found = confidence_interval(y, y.astype(float), measure=measure, method="split", rng=0)
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
    assert _cells._cost(many, start) == pytest.approx(_cells._cost(one, start), rel=1e-12)
    assert cells.start[0] == others.start[0] == 0
    fold = rng.integers(0, FOLDS, (2, 150))
    # The same rows in the same folds: by the content of each, which is its prediction.
    split = [
        split_mean(
            caldist.smooth_ce,
            Dealt(units, fold[:, np.searchsorted(np.sort(v), units.prediction[units.place])]),
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
    best, back = _merge(_kernels.recalibration, v, y, w, edges)
    assert best[-1] == pytest.approx(_best_merge(v, y, w, edges), abs=1e-12)
    assert (back < np.arange(edges.size)).all() or back[0] == 0


def test_compiled_and_plain_agree():
    rng = np.random.default_rng(0)
    for _ in range(5):
        v = np.sort(rng.random(80))
        mass, variance = rng.random(80) / 80, rng.random(80) / 80**2
        starts = []
        for module in (plain, _kernels.recalibration):
            start = np.empty(80, dtype=np.int64)
            count = module.cells(v, mass, variance, 3.0, start)
            starts.append(start[:count].tolist())
        assert starts[0] == starts[1]
        edges = np.append(starts[0], 80)
        y = (rng.random(80) < v).astype(float)
        ours, theirs = (_merge(m, v, y, mass, edges) for m in (plain, _kernels.recalibration))
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
        for module in (plain, _kernels.recalibration):
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


@pytest.mark.parametrize(("method", "n"), [("split", 20_000), ("resampling", 4000)])
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
    assert upper == pytest.approx(proof.value + limits.extra + limits.z * error, abs=0.05 * error)
    assert upper < proof.value + limits.extra + 0.7 * limits.z * limits.sigma
    # Where the value does not stand out its dual may fit noise, and the error of no dual is larger.
    low = 1.99 * limits.distance_noise
    wide = low + limits.extra + limits.z * limits.sigma
    assert limits.distance_upper(rows.joint, low) == pytest.approx(wide, rel=1e-12)


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
        for method in ("split", "resampling"):
            settings = {"measure": measure, "method": method, "n_resamples": 39, "rng": 3}
            first = confidence_interval(y, v, **options, **settings)
            assert first == confidence_interval(y[order], v[order], **moved, **settings)
    if FAST:
        found = distance_bracket(y, v, confidence_level=0.9, n_resamples=39, rng=3, **options)
        assert found == distance_bracket(
            y[order], v[order], confidence_level=0.9, n_resamples=39, rng=3, **moved
        )


@pytest.mark.parametrize("measure", SPLIT, ids=str)
def test_a_joint_gives_what_its_rows_give(measure):
    y, v = sample(300, 5, 2.0, 1)
    joint = caldist.Joint.from_arrays(y, v)
    options = {"measure": measure, "method": "split", "rng": 1}
    assert confidence_interval(joint, **options) == confidence_interval(y, v, **options)
    assert gate(joint, at_most=0.1) == gate(y, v, at_most=0.1)


def test_folds_have_every_row_once_and_units_part():
    y, v = sample(500, 0, decimals=1)
    units = Rows.of(y, v).units
    dealt = deal(units, np.random.default_rng(0))
    assert dealt.fold.shape == (2, dealt.units.place.size)
    assert dealt.units.count.sum() == 500
    assert dealt.masses.sum(axis=1) == pytest.approx([1, 1])
    assert (np.abs(dealt.masses - 0.2) < 0.1).all()
    assert dealt.units.at_predictions(dealt.units.mass) == pytest.approx(
        units.at_predictions(units.mass)
    )


@pytest.mark.skipif(not FAST, reason="plain kernels are slow")
def test_the_bracket_is_much_narrower_than_by_bins_of_fixed_widths():
    """For six models, beside: ldCE less its noise, to RintCE of the best bins and its error."""
    from caldist._demo import load_demo

    y, models = load_demo()
    ratios = []
    for name, v in models.items():
        limits = limits_of(Rows.of(y, v), 0.05, "resampling")
        lower = max(0.0, caldist.lower_distance(y, v) - limits.distance_noise)
        widths = [2.0**-k for k in range(math.ceil(math.log2(y.size) / 2) + 1)]
        upper = min(caldist.random_interval_ce(y, v, width=w) + w / 2 for w in widths)
        upper += NormalDist().inv_cdf(1 - 0.025 / len(widths)) * limits.sigma
        found = distance_bracket(y, v, confidence_level=0.95, n_resamples=99, rng=0)
        ratios.append((found.upper - found.lower) / (upper - lower))
        assert ratios[-1] <= 0.8, name
    assert np.exp(np.mean(np.log(ratios))) <= 0.65


# -- gates -------------------------------------------------------------------------------------


def test_the_three_outcomes():
    y, v = sample(3000, 0)
    passed, open_, failed = (
        gate(y, v, at_most=0.1), gate(y, v, at_most=0.01), gate(y, v**3, at_most=0.1)
    )  # fmt: skip
    assert [x.outcome for x in (passed, open_, failed)] == ["pass", "undecided", "fail"]
    assert passed.upper < 0.1
    assert open_.lower <= 0.01 <= open_.upper
    assert failed.lower > 0.1
    assert (passed.measure, passed.error, passed.at_most) == ("distance to calibration", 0.05, 0.1)
    assert str(passed).startswith("pass: with 95% confidence the distance to calibration")
    assert "not enough rows" in str(open_)
    assert f"at least {least(failed.lower)}, above 0.1" in str(failed)
    assert passed == gate(y, v, at_most=0.1)  # nothing is drawn anew
    assert passed.to_dict()["outcome"] == "pass"


def test_a_gate_of_a_measure_uses_one_sided_limits():
    y, v = sample(2000, 1, 1.5)
    for measure in ("smooth_ce", caldist.kernel_ce, "brier_score"):
        found = gate(y, v, at_most=0.05, measure=measure)
        interval = confidence_interval(
            y, v, measure=measure, confidence_level=0.9, method="split", rng=0
        )
        assert (found.lower, found.upper) == (interval.lower, interval.upper)
        assert found.measure == str(measure)
    strict = gate(y, v, at_most=0.05, error=0.001)
    loose = gate(y, v, at_most=0.05, error=0.2)
    assert strict.lower <= loose.lower
    assert loose.upper <= strict.upper


def test_a_gate_of_cells_moves_outwards():
    y, v = sample(4000, 2)
    exact, rounded = gate(y, v, at_most=0.1), gate(Rows.of(y, v).on_grid(8), at_most=0.1)
    assert rounded.lower <= exact.lower
    assert exact.upper < rounded.upper < exact.upper + 0.01


def test_what_a_gate_refuses():
    y, v = sample(50)
    with pytest.raises(ValueError, match=r"'ece', which has no valid confidence interval"):
        gate(y, v, at_most=0.1, measure="ece")
    with pytest.raises(ValueError, match=r"error is 0\.5; it must be below 0\.5"):
        gate(y, v, at_most=0.1, error=0.5)
    for limit in (-1, 1, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"at_most is {limit}; it must be at least 0 and belo"):
            gate(y, v, at_most=limit)
    with pytest.raises(ValueError, match=r"at_most is 5; .*For 5% pass 0\.05\."):
        gate(y, v, at_most=5)
    assert gate(y, v, at_most=0).outcome in {"fail", "undecided"}
    scaled = caldist.weighted_ce.using(functions=[lambda v: 100 * v])
    assert gate(y, v, at_most=5, measure=scaled).outcome != "fail"  # its values have no ceiling
    with pytest.warns(UserWarning, match="1 of 3 rows have label 1"):
        assert gate([0, 1, 0], [0.1, 0.9, 0.2], at_most=0.1).outcome == "undecided"
