"""The best partition of a few points: against all partitions, and when it is too hard to find."""

import numpy as np
import pytest
from scipy import optimize

from caldist._kernels import COMPILED
from caldist.data.joint import Joint
from caldist.measures import _partitions
from caldist.measures.upper_distance import best_map, certify_upper


def instance(n, seed, orders=0.0):
    """Return points with weights over so many orders of magnitude."""
    rng = np.random.default_rng([n, seed])
    p, y = np.sort(rng.random(n)), rng.integers(0, 2, n)
    weight = 10.0 ** rng.uniform(-orders, 0, n)
    return Joint.from_arrays(y, p, sample_weight=weight)


def cost_of(joint, group):
    mass = joint.mass0 + joint.mass1
    mean = np.bincount(group, joint.mass1) / np.bincount(group, mass)
    return float(mass @ np.abs(joint.prediction - mean[group])) / joint.total


def points(joint):
    mass0, mass1 = joint.normalized()
    return joint.prediction, mass0 + mass1, mass1


@pytest.mark.parametrize("orders", [0, 6, 20])
@pytest.mark.parametrize("seed", range(6))
def test_the_integer_program_finds_what_the_dynamic_one_does(seed, orders, monkeypatch):
    joint = instance(12 if COMPILED else 9, seed, orders)
    start = np.zeros(joint.prediction.size, dtype=np.int64)
    best, exact = _partitions.best_groups(*points(joint), start)
    assert exact
    expected = cost_of(joint, best)
    monkeypatch.setattr(_partitions, "DYNAMIC", 0)
    found, exact = _partitions.best_groups(*points(joint), start)
    assert exact
    assert cost_of(joint, found) == pytest.approx(expected, rel=1e-8)
    # The best partition to begin with is proved to be so.
    again, exact = _partitions.best_groups(*points(joint), best)
    assert exact
    assert cost_of(joint, again) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("orders", [0, 12, 20])
@pytest.mark.parametrize(("n", "seed"), [(18, 7), (19, 4), (19, 8), (20, 4)])
def test_weights_of_many_sizes_come_to_an_end(n, seed, orders, monkeypatch):
    """Prices finer than the solver's tolerance once took hundreds of linear programs, or all."""
    solved = []
    linprog = optimize.linprog

    def counted(*arguments, **options):
        solved.append(1)
        assert len(solved) <= 60
        return linprog(*arguments, **options)

    monkeypatch.setattr(optimize, "linprog", counted)
    joint = instance(n, seed, orders)
    group, _, _ = best_map(joint)
    assert 0 <= cost_of(joint, group) <= 1
    assert solved


def test_when_the_rounds_are_used_up_the_bound_that_is_known_is_returned(monkeypatch):
    monkeypatch.setattr(_partitions, "_ROUNDS", 1)
    joint = instance(18, 3, 20)
    certificate = certify_upper(joint, tol=1e-4)
    assert not certificate.exact
    assert certificate.lower <= certificate.value <= 1


def test_what_costs_nothing_is_the_best():
    prediction, mass = np.linspace(0.1, 0.9, 18), np.full(18, 1 / 18)
    apart = np.arange(18)
    group, exact = _partitions.best_groups(prediction, mass, mass * prediction, apart)
    assert exact
    assert np.array_equal(group, apart)
