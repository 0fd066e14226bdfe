"""The contiguous grouping: kernel against brute force, search against the kernel on all cuts."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from caldist.data.joint import Joint
from caldist.kernels.loader import COMPILED, grouping, interval
from caldist.measures import _grouping_search
from caldist.measures.interval_ce import interval_ce, interval_groups_below
from caldist.measures.upper_distance import upper_distance

TOLERANCE = 1e-12
REPEATS = 12 if COMPILED else 2
SIZES = (1, 2, 3, 5, 15, 16, 17, 32, 33, 50) if COMPILED else (1, 2, 5, 17, 33)
LARGE = 300 if COMPILED else 80
SOME_AND_MANY_SIZES = pytest.mark.parametrize(
    "sizes",
    [SIZES, pytest.param((*SIZES * REPEATS, LARGE), marks=pytest.mark.slow)],
    ids=["some", "many"],
)


def group_cost(v, mass, mass1, start, stop):
    """Return the sum of mass |v - mean label| of one group."""
    total = mass[start:stop].sum()
    if total == 0:
        return 0.0
    return np.sum(mass[start:stop] * abs(v[start:stop] - mass1[start:stop].sum() / total))


def cost_of(instance, first):
    """Return the cost of the grouping with these first points."""
    return sum(group_cost(*instance, a, b) for a, b in pairwise([*first, instance[0].size]))


def best_by_program(instance, cut):
    """Return the least cost with boundaries in `cut`, by the quadratic dynamic program."""
    least = [0.0]
    for t in range(1, len(cut)):
        least.append(
            min(least[k] + group_cost(*instance, cut[k], cut[t]) for k in range(t)),
        )
    return least[-1]


def best_by_enumeration(instance):
    """Return the least cost over all 2^(n-1) contiguous groupings."""
    n = instance[0].size
    return min(
        cost_of(instance, (0, *inner))
        for size in range(n)
        for inner in combinations(range(1, n), size)
    )


def from_labels(v, y, weight=None):
    """Return (v, mass, mass1) of labelled points; equal predictions become one point."""
    weight = np.ones(v.size) if weight is None else weight
    v, group = np.unique(v, return_inverse=True)
    return (
        v,
        np.bincount(group, weight) / weight.sum(),
        np.bincount(group, weight * y) / weight.sum(),
    )


def drawn(chance, width=1.0):
    def make(n, rng):
        v = width * rng.random(n)
        return from_labels(v, rng.random(n) < chance(v))

    return make


def distorted(beta):
    def make(n, rng):
        f = rng.random(n)
        return from_labels(f**beta / (f**beta + (1 - f) ** beta), rng.random(n) < f)

    return make


def tied(n, rng):
    v = np.round(rng.random(n), 1)
    return from_labels(v, rng.random(n) < v)


def heavy_weights(n, rng):
    v = rng.random(n)
    return from_labels(v, rng.random(n) < v, 10.0 ** rng.uniform(-12, 0, n))


def zero_masses(n, rng):
    v = np.sort(rng.random(n))
    mass = rng.integers(0, 2, n).astype(float)
    mass[rng.integers(n)] = 1.0
    mass /= mass.sum()
    return v, mass, mass * rng.random(n)


def zero_residuals(n, rng):
    v = np.sort(rng.random(n))
    return v, np.full(n, 1 / n), v / n


def extreme(n, rng):
    near = (0.0, 5e-324, 1e-300, 1e-16, 0.5, 0.5 + 2**-53, 1 - 2**-53, 1.0)
    return from_labels(rng.choice(near, n), rng.integers(0, 2, n))


INSTANCES = {
    "underconfident": distorted(0.3),
    "calibrated": distorted(1.0),
    "overconfident": distorted(3.0),
    "one sided": drawn(lambda v: v / 2),
    "oscillating": drawn(lambda v: v + 0.6 * np.sin(40 * v) * v * (1 - v)),
    "narrow": drawn(lambda v: v, width=1e-2),
    "no signal": drawn(lambda v: 0.5 + 0 * v),
    "all ones": drawn(lambda v: 1 + v),
    "tied": tied,
    "heavy weights": heavy_weights,
    "zero masses": zero_masses,
    "zero residuals": zero_residuals,
    "extreme": extreme,
}


def solve(instance, cut, eps):
    """Run the kernel; check that value and groups agree; return the value."""
    v, mass, mass1 = instance
    sums = [np.concatenate(([0.0], np.cumsum(part))) for part in (mass, mass * v, mass1)]
    first = np.full(v.size, -1, dtype=np.int64)
    value, groups = grouping.best_grouping(v, *sums, cut, eps, first)
    starts = first[:groups]
    assert starts[0] == 0
    assert np.all(np.diff(starts) > 0)
    assert np.isin(starts, cut).all()
    assert value == pytest.approx(cost_of(instance, starts), abs=TOLERANCE)
    return value


@pytest.mark.parametrize("name", INSTANCES)
@SOME_AND_MANY_SIZES
def test_the_kernel_finds_the_best_grouping_of_given_cuts(name, sizes):
    rng = np.random.default_rng(sum(map(ord, name)))
    for size in sizes:
        instance = INSTANCES[name](size, rng)
        n = instance[0].size
        cut = np.arange(n + 1)
        if rng.random() < 0.5:
            cut = np.unique(np.append([0, n], rng.integers(0, n + 1, n)))
        best = best_by_program(instance, cut)
        assert solve(instance, cut, 0.0) == pytest.approx(best, abs=TOLERANCE), size
        for eps in (1e-3, 1e-1):
            assert best - TOLERANCE <= solve(instance, cut, eps) <= best + eps + TOLERANCE


@pytest.mark.parametrize("name", INSTANCES)
def test_no_contiguous_grouping_of_few_points_is_cheaper(name):
    rng = np.random.default_rng(1 + sum(map(ord, name)))
    for size in range(1, 10):
        instance = INSTANCES[name](size, rng)
        cut = np.arange(instance[0].size + 1)
        best = best_by_enumeration(instance)
        assert solve(instance, cut, 0.0) == pytest.approx(best, abs=TOLERANCE)


@pytest.mark.parametrize("name", INSTANCES)
def test_the_cost_is_at_most_the_interval_calibration_error(name):
    v, mass, mass1 = INSTANCES[name](300, np.random.default_rng(7))
    first = np.empty(v.size, dtype=np.int64)
    interval_ce, _ = interval.interval_partition(v, mass, mass1 - mass * v, np.inf, first)
    assert solve((v, mass, mass1), np.arange(v.size + 1), 0.0) <= interval_ce + TOLERANCE


def searched(instance):
    """Run the search; check the grouping it returns; return the value."""
    v, mass, mass1 = instance
    value, first = _grouping_search.search(v, mass - mass1, mass1)
    assert first[0] == 0
    assert np.all(np.diff(first) > 0)
    assert value == pytest.approx(cost_of(instance, first), abs=TOLERANCE)
    return value


@pytest.mark.parametrize("name", INSTANCES)
def test_the_search_is_exact_for_few_points(name):
    instance = INSTANCES[name](200, np.random.default_rng(9))
    best = solve(instance, np.arange(instance[0].size + 1), 0.0)
    assert searched(instance) == pytest.approx(best, abs=TOLERANCE)


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize(
    "size", [4200, *(pytest.param(size, marks=pytest.mark.slow) for size in (10_000, 20_000))]
)
@pytest.mark.skipif(not COMPILED, reason="takes minutes as plain Python")
def test_the_search_is_within_one_percent_for_many_points(name, size):
    instance = INSTANCES[name](size, np.random.default_rng(size))
    best = solve(instance, np.arange(instance[0].size + 1), 0.0)
    assert best - TOLERANCE <= searched(instance) <= 1.01 * best + TOLERANCE


@pytest.mark.parametrize("name", INSTANCES)
def test_every_level_of_the_search_yields_a_grouping(name, monkeypatch):
    """With small levels, bins of few points and of heavy points all occur."""
    monkeypatch.setattr(_grouping_search, "ALL_CUTS", 10)
    monkeypatch.setattr(_grouping_search, "MANY", 60)
    monkeypatch.setattr(_grouping_search, "LEVELS", ((2, 0.0), (8, 0.0), (16, 0.0), (40, 0.0)))
    rng = np.random.default_rng(11)
    for size in (11, 40, 60, 61, 120, 200):
        instance = INSTANCES[name](size, rng)
        best = solve(instance, np.arange(instance[0].size + 1), 0.0)
        assert best - TOLERANCE <= searched(instance) <= 1.5 * best + TOLERANCE


def test_the_search_does_not_depend_on_the_scale_of_the_masses():
    v, mass, mass1 = INSTANCES["calibrated"](500, np.random.default_rng(2))
    value, first = _grouping_search.search(v, mass - mass1, mass1)
    scaled, same = _grouping_search.search(v, 500 * (mass - mass1), 500 * mass1)
    assert scaled == pytest.approx(value, abs=TOLERANCE)
    np.testing.assert_array_equal(first, same)


@pytest.mark.parametrize("name", INSTANCES)
def test_the_upper_distance_is_at_most_the_interval_calibration_error(name, monkeypatch):
    """Also where the search is not exact, and the partition behind intCE may be left out."""
    monkeypatch.setattr(_grouping_search, "ALL_CUTS", 10)
    monkeypatch.setattr(_grouping_search, "MANY", 20)
    monkeypatch.setattr(_grouping_search, "LEVELS", ((2, 0.0), (4, 0.0)))
    rng = np.random.default_rng(12)
    for size in (320, 500, 800) if COMPILED else (320,):
        v, mass, mass1 = INSTANCES[name](size, rng)
        joint = Joint.from_masses(v, mass - mass1, mass1)
        value = upper_distance(joint)
        assert value <= interval_ce(joint) + TOLERANCE
        mass0, mass1 = joint.normalized()
        assert value <= searched((joint.prediction, mass0 + mass1, mass1)) + TOLERANCE
        assert interval_groups_below(joint, 2 * interval_ce(joint) + TOLERANCE) is not None


def test_the_partition_of_a_clearly_larger_interval_calibration_error_is_left_out():
    v, mass, mass1 = INSTANCES["calibrated"](1000, np.random.default_rng(13))
    joint = Joint.from_masses(v, mass - mass1, mass1)
    assert interval_groups_below(joint, interval_ce(joint) / 2) is None
