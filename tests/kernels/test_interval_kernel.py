"""The exact interval kernel against the quadratic dynamic program and against all partitions."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from caldist.kernels.loader import COMPILED, interval

TOLERANCE = 1e-12
REPEATS = 25 if COMPILED else 5
SIZES = (1, 2, 3, 7, 31, 32, 33, 64, 65, 97, 128, 200, 333) if COMPILED else (1, 2, 7, 33, 70)
LARGE = 1500 if COMPILED else 300
SOME_AND_MANY_SIZES = pytest.mark.parametrize(
    "sizes",
    [SIZES, pytest.param((*SIZES * REPEATS, LARGE), marks=pytest.mark.slow)],
    ids=["some", "many"],
)
# By how many evaluations of the cost a point the search may take: its share, all, its first block.
METHODS = (300.0, np.inf, -1.0)


def best_by_program(v, mass, residual):
    """Return the least cost by the O(n²) dynamic program."""
    S = np.concatenate(([0.0], np.cumsum(residual)))
    P = np.concatenate(([0.0], np.cumsum(mass)))
    D = np.zeros(v.size + 1)
    for j in range(1, v.size + 1):
        D[j] = np.min(D[:j] + abs(S[j] - S[:j]) + (P[j] - P[:j]) * (v[j - 1] - v[:j]))
    return D[-1]


def cost_of(v, mass, residual, first):
    """Return the cost of the grouping with these first points."""
    return sum(
        abs(residual[a:b].sum()) + mass[a:b].sum() * (v[b - 1] - v[a])
        for a, b in pairwise([*first, v.size])
    )


def best_by_enumeration(v, mass, residual):
    """Return the least cost over all 2^(n-1) contiguous groupings."""
    return min(
        cost_of(v, mass, residual, (0, *cuts))
        for size in range(v.size)
        for cuts in combinations(range(1, v.size), size)
    )


def from_labels(v, y, weight=None):
    """Return (v, mass, residual) of labelled points; equal predictions become one point."""
    weight = np.ones(v.size) if weight is None else weight
    v, group = np.unique(v, return_inverse=True)
    mass = np.bincount(group, weight) / weight.sum()
    ones = np.bincount(group, weight * y) / weight.sum()
    return v, mass, ones - mass * v


def labelled(prediction, chance, rng, weight=None):
    return from_labels(prediction, rng.random(prediction.size) < chance, weight)


def distorted(beta):
    def make(n, rng):
        f = rng.random(n)
        return labelled(f**beta / (f**beta + (1 - f) ** beta), f, rng)

    return make


def drawn(predictions, share=1.0):
    """Make labels that are 1 with `share` times the predicted probability."""

    def make(n, rng):
        v = predictions(n, rng)
        return labelled(v, share * v, rng)

    return make


def with_residual(v, mass, share):
    """Return an instance whose residuals are these shares of the masses."""
    mass = mass / mass.sum()
    return v, mass, mass * share


def increasing(n, rng):
    return np.sort(rng.permutation(4 * n)[:n] + rng.random(n)) / (4 * n)


def oscillating(n, rng):
    v = rng.random(n)
    return labelled(v, v + 0.6 * np.sin(40 * v) * v * (1 - v), rng)


def clusters(n, rng):
    centre = rng.random(max(1, round(n**0.5)))
    v = np.clip(rng.choice(centre, n) + 1e-6 * rng.random(n), 0, 1)
    return labelled(v, v, rng)


def heavy_weights(n, rng):
    v = rng.random(n)
    return labelled(v, v, rng, 10.0 ** rng.uniform(-12, 0, n))


def tied_masses(n, rng):
    mass = rng.integers(0, 3, n).astype(float)
    mass[rng.integers(n)] = 1.0
    return with_residual(increasing(n, rng), mass, rng.choice([-0.5, 0.0, 0.5], n))


def one_class(n, rng):
    return from_labels(rng.random(n), np.full(n, rng.integers(2)))


def zigzag(n, rng):
    sign = (-1.0) ** np.arange(n)
    return with_residual(increasing(n, rng), 10.0 ** rng.uniform(-6, 0, n), sign * rng.random(n))


def drifting_zigzag(n, rng):
    v = increasing(n, rng)
    return with_residual(v, np.ones(n), v * rng.choice([-1, 1]) + 0.05 * (-1.0) ** np.arange(n))


def wave(n, rng):
    phase = np.arange(n) * np.pi / max(1.0, n**0.5)
    return with_residual(increasing(n, rng) * 1e-2, np.ones(n), np.sin(phase))


def geometric(n, rng):
    share = rng.uniform(-1, 1, n)
    return with_residual(increasing(n, rng), 0.5 ** np.minimum(np.arange(n), 400.0), share)


def extreme(n, rng):
    near = (0.0, 5e-324, 1e-300, 1e-16, 0.5, 0.5 + 2**-53, 1 - 2**-53, 1.0)
    return from_labels(rng.choice(near, n), rng.integers(0, 2, n))


INSTANCES = {
    "underconfident": distorted(0.3),
    "calibrated": distorted(1.0),
    "overconfident": distorted(3.0),
    "one sided": drawn(lambda n, rng: rng.random(n), share=0.5),
    "narrow": drawn(lambda n, rng: 0.5 + 1e-2 * rng.random(n)),
    "very narrow": drawn(lambda n, rng: 0.5 + 1e-4 * rng.random(n)),
    "tied": drawn(lambda n, rng: np.round(rng.random(n), 1)),
    "any residual": lambda n, rng: with_residual(
        increasing(n, rng), rng.random(n), rng.uniform(-1, 1, n)
    ),
    "oscillating": oscillating,
    "clusters": clusters,
    "heavy weights": heavy_weights,
    "tied masses": tied_masses,
    "one class": one_class,
    "zigzag": zigzag,
    "drifting zigzag": drifting_zigzag,
    "wave": wave,
    "geometric": geometric,
    "extreme": extreme,
}


def partition(allowance, instance, *, limit=np.inf):
    """Run the kernel; check that value and groups agree; return the value."""
    v, mass, residual = instance
    first = np.full(v.size, -1, dtype=np.int64)
    value, groups = interval._partition(v, mass, residual, allowance, limit, first)
    if value == np.inf:
        assert groups == 0
        return value
    starts = first[:groups]
    assert starts[0] == 0
    assert np.all(np.diff(starts) > 0)
    assert starts[-1] < v.size
    assert value == pytest.approx(cost_of(v, mass, residual, starts), abs=TOLERANCE)
    return value


def test_the_kernel_is_called_with_the_first_method():
    v, mass, residual = INSTANCES["calibrated"](LARGE, np.random.default_rng(8))
    first = np.empty(v.size, dtype=np.int64)
    value, _ = interval.interval_partition(v, mass, residual, np.inf, first)
    assert value == partition(METHODS[0], (v, mass, residual))


@pytest.mark.parametrize("name", INSTANCES)
@SOME_AND_MANY_SIZES
def test_all_methods_agree_with_the_quadratic_program(name, sizes):
    rng = np.random.default_rng(sum(map(ord, name)))
    for size in sizes:
        instance = INSTANCES[name](size, rng)
        best = best_by_program(*instance)
        for method in METHODS:
            assert partition(method, instance) == pytest.approx(best, abs=TOLERANCE), (method, size)


@pytest.mark.parametrize("name", INSTANCES)
def test_no_partition_of_few_points_is_cheaper(name):
    rng = np.random.default_rng(1 + sum(map(ord, name)))
    for size in range(1, 9):
        instance = INSTANCES[name](size, rng)
        best = best_by_enumeration(*instance)
        for method in METHODS:
            assert partition(method, instance) == pytest.approx(best, abs=TOLERANCE), (method, size)
    instance = INSTANCES[name](10, rng)
    assert partition(METHODS[0], instance) == pytest.approx(
        best_by_enumeration(*instance), abs=TOLERANCE
    )


@pytest.mark.skipif(not COMPILED, reason="takes minutes as plain Python")
@pytest.mark.parametrize("name", ["calibrated", "very narrow", "wave", "zigzag", "one sided"])
def test_the_methods_agree_on_many_points(name):
    instance = INSTANCES[name](60_000, np.random.default_rng(5))
    values = [partition(method, instance) for method in METHODS]
    assert max(values) - min(values) <= TOLERANCE


@pytest.mark.parametrize("allowance", [0.02, 0.2, 1.0, 4.0, 16.0])
@pytest.mark.parametrize("name", ["calibrated", "very narrow", "zigzag", "any residual"])
def test_the_search_may_hand_over_anywhere(name, allowance):
    instance = INSTANCES[name](LARGE, np.random.default_rng(4))
    value = partition(allowance, instance)
    assert value == pytest.approx(best_by_program(*instance), abs=TOLERANCE)


@pytest.mark.parametrize("name", INSTANCES)
def test_only_a_cost_that_reaches_the_limit_is_left_out(name):
    rng = np.random.default_rng(2 + sum(map(ord, name)))
    for size in SIZES:
        instance = INSTANCES[name](size, rng)
        best = best_by_program(*instance)
        for method in METHODS:
            for share in (0.0, 0.1, 0.5, 0.9, 1 - 1e-6, 1 + 1e-6, 2.0):
                value = partition(method, instance, limit=share * best)
                if share > 1 or value < np.inf:
                    assert value == pytest.approx(best, abs=TOLERANCE), (method, size, share)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["underconfident", "calibrated", "oscillating", "any residual"])
def test_a_limit_far_below_the_cost_leaves_it_out(name, method):
    instance = INSTANCES[name](LARGE, np.random.default_rng(6))
    limit = best_by_program(*instance) / 2
    assert partition(method, instance, limit=limit) == np.inf


def test_inputs_may_be_read_only_and_stay_as_they_are():
    instance = INSTANCES["calibrated"](100, np.random.default_rng(3))
    copies = [array.copy() for array in instance]
    for array in instance:
        array.flags.writeable = False
    for method in METHODS:
        partition(method, instance)
    for array, copy in zip(instance, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
