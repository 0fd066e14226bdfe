"""The kernels of several classes: against linear programs, and compiled against plain."""

import numpy as np
import pytest
from scipy import sparse

import class_oracles as oracles
from caldist.kernels import loader
from oracles import solve_lp

BOTH = pytest.mark.parametrize(
    "load", [loader.plain, lambda name: getattr(loader, name)], ids=["plain", "used"]
)


def transport_lp(supply, demand, cost):
    ns, nt = cost.shape
    leave = sparse.kron(sparse.eye(ns), np.ones((1, nt)))
    arrive = sparse.kron(np.ones((1, ns)), sparse.eye(nt))
    return solve_lp(cost.ravel(), A_ub=leave, b_ub=supply, A_eq=arrive, b_eq=demand)


@BOTH
@pytest.mark.parametrize("seed", range(15))
def test_transport_is_its_linear_program(load, seed):
    rng = np.random.default_rng(seed)
    ns, nt = rng.integers(1, 8, 2)
    supply, demand = rng.integers(1, 4, ns) / 8, rng.integers(1, 4, nt) / 8  # degenerate
    supply *= max(1.0, demand.sum() / supply.sum())
    cost = rng.integers(0, 5, (ns, nt)) / 4 if seed % 2 else rng.random((ns, nt))
    potential = np.empty(nt)
    value = load("flow").transport(supply, demand, cost, 1e-12, potential)
    assert value == pytest.approx(transport_lp(supply, demand, cost), abs=1e-9)
    # The potentials prove it, with the least that they allow at the sources.
    source = np.maximum(0.0, (potential - cost).max(axis=1))
    assert demand @ potential - supply @ source == pytest.approx(value, abs=1e-9)


def test_transport_of_many_rows_is_proved_by_its_potentials():
    rng = np.random.default_rng(0)
    size = 300 if loader.COMPILED else 20
    first, second = rng.dirichlet([0.5] * 4, size), rng.dirichlet([0.5] * 4, 2 * size)
    cost = oracles.total_variation(first, second)
    supply, demand = rng.exponential(size=size), rng.exponential(size=2 * size)
    supply *= 1.01 * demand.sum() / supply.sum()
    potential = np.empty(2 * size)
    value = loader.flow.transport(supply, demand, cost, 1e-12, potential)
    source = np.maximum(0.0, (potential - cost).max(axis=1))
    assert demand @ potential - supply @ source == pytest.approx(value, abs=1e-8)


@BOTH
def test_nearest_centres(load):
    rng = np.random.default_rng(0)
    v, u = rng.dirichlet([1, 1, 1], 20), rng.dirichlet([1, 1, 1], 9)
    which, distance = np.empty((20, 4), dtype=np.int64), np.empty((20, 4))
    load("simplex").nearest(v, np.ascontiguousarray(u.T), which, distance)
    expected = oracles.total_variation(v, u)
    assert which.tolist() == np.argsort(expected, axis=1)[:, :4].tolist()
    assert distance == pytest.approx(np.sort(expected, axis=1)[:, :4])


@BOTH
def test_lipschitz_functions(load):
    rng = np.random.default_rng(0)
    v, u = rng.dirichlet([1, 1, 1], 20), rng.dirichlet([1, 1, 1], 9)
    height = rng.normal(size=(9, 2)) - 0.5
    values = np.empty((20, 2))
    load("simplex").lipschitz(v, np.ascontiguousarray(u.T), height, values)
    least = (height[None] + oracles.total_variation(v, u)[..., None]).min(axis=1)
    assert values == pytest.approx(np.clip(least, -1, 1))


@BOTH
def test_projection_makes_groups_receive_what_they_predict(load):
    """One projection and one row each: the shares of a group are then a multiple of u_m."""
    kernel = load("coupling")
    rng = np.random.default_rng(0)
    centre = rng.dirichlet([1, 1, 1], 2)
    received = rng.random((2, 3))
    multiplier = np.ones((2, 3))
    kernel.project(centre, received, 1e80, multiplier)
    after = multiplier * received
    assert after / after.sum(axis=1, keepdims=True) == pytest.approx(centre)
    divergence = (centre * np.log(received / centre)).sum(axis=1)
    assert after.sum(axis=1) == pytest.approx(np.exp(divergence))


@BOTH
def test_shares_of_a_row_add_up_to_one(load):
    kernel = load("coupling")
    rng = np.random.default_rng(0)
    v, u = rng.dirichlet([1, 1, 1], 6), rng.dirichlet([1, 1, 1], 4)
    y, weight = rng.integers(0, 3, 6), np.full(6, 1 / 6)
    arc = np.tile(np.arange(4), (6, 1))
    distance, affinity, share = np.empty((6, 4)), np.empty((6, 5)), np.empty((6, 5))
    received = np.empty((4, 3))
    kernel.arc_distances(v, u, arc, distance)
    assert distance == pytest.approx(oracles.total_variation(v, u))
    corner = 1 - v[np.arange(6), y]
    kernel.affinities(distance, corner, 0.1, affinity)
    assert affinity.max(axis=1) == pytest.approx(1)
    kernel.shares(y, weight, arc, affinity, np.ones((4, 3)), share, received)
    assert share.sum(axis=1) == pytest.approx(1)
    assert received.sum() == pytest.approx(weight @ share[:, :4].sum(axis=1))
