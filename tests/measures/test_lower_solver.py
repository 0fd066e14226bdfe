"""The certified solver of the lower distance: proofs, oracles, closed forms, random instances.

Set CALDIST_FUZZ to the number of random instances (20000 is a thorough run).
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from caldist.kernels import loader
from caldist.kernels.loader import COMPILED
from caldist.measures import lower_solver
from caldist.measures.lower_solver import LowerSolution, solve

FUZZ = int(os.environ.get("CALDIST_FUZZ", "400" if COMPILED else "12"))
TOL = 1e-6 if COMPILED else 1e-4
HIGHS_ERROR = 3e-8  # HiGHS works to feasibility tolerances of 1e-7 and is low by up to 1e-8


def joint(predictions, labels, weights=None):
    """Return distinct predictions and normalised label masses."""
    predictions, labels = np.asarray(predictions, float), np.asarray(labels)
    weights = np.ones(predictions.size) if weights is None else np.asarray(weights, float)
    distinct, index = np.unique(predictions, return_inverse=True)
    mass0 = np.bincount(index, weights * (labels == 0), distinct.size)
    mass1 = np.bincount(index, weights * (labels == 1), distinct.size)
    total = mass0.sum() + mass1.sum()
    return distinct, mass0 / total, mass1 / total


def verify(prediction, mass0, mass1, solution, tol=None):
    """Check both proofs with nothing but interpolation, inequalities and cumulative sums."""
    rounding = 1e-12
    node, r0, r1 = solution.node, solution.potential0, solution.potential1
    point, mass = solution.calibrated, solution.calibrated_mass
    for array in (node, r0, r1, point, mass):
        assert np.isfinite(array).all()

    gap = np.diff(node)
    assert node[0] == 0.0
    assert node[-1] == 1.0
    assert (gap > 0.0).all()
    assert (np.abs(np.diff(r0)) <= gap + rounding).all()
    assert (np.abs(np.diff(r1)) <= gap + rounding).all()
    # (1 - u) r0 + u r1 on a gap is start + linear t + square t^2 with t the distance from its left
    start = (1.0 - node) * r0 + node * r1
    slope0, slope1 = np.diff(r0) / gap, np.diff(r1) / gap
    square = slope1 - slope0
    linear = (1.0 - node[:-1]) * slope0 + node[:-1] * slope1 + r1[:-1] - r0[:-1]
    top = np.clip(-linear / (2.0 * np.minimum(square, -1e-300)), 0.0, gap)
    assert start.max() <= rounding
    assert (start[:-1] + linear * top + square * top**2).max() <= rounding
    lower = mass0 @ np.interp(prediction, node, r0) + mass1 @ np.interp(prediction, node, r1)
    assert solution.lower == pytest.approx(lower, abs=1e-9)

    assert (np.diff(point) > 0.0).all()
    assert point[0] >= 0.0
    assert point[-1] <= 1.0
    assert (mass >= 0.0).all()
    assert point @ mass == pytest.approx(mass1.sum(), abs=1e-11)
    assert (1.0 - point) @ mass == pytest.approx(mass0.sum(), abs=1e-11)
    place = np.concatenate([prediction, point])
    order = np.argsort(place, kind="stable")
    step = np.diff(place[order])
    upper = 0.0
    for data, target in ((mass0, (1.0 - point) * mass), (mass1, point * mass)):
        moved = np.cumsum(np.concatenate([data, -target])[order])
        upper += step @ np.abs(moved[:-1])
    assert solution.upper == pytest.approx(upper, abs=1e-9)

    assert solution.lower <= solution.upper
    if tol is not None:
        assert solution.upper - solution.lower <= tol


def solve_verified(prediction, mass0, mass1, tol=TOL) -> LowerSolution:
    solution = solve(prediction, mass0, mass1, tol)
    verify(prediction, mass0, mass1, solution, tol)
    return solution


def dual_oracle(prediction, mass0, mass1, step):
    """Solve the reduced dual on the predictions and a grid: at most step^2/2 above the truth."""
    node = np.union1d(prediction, np.linspace(0.0, 1.0, round(1.0 / step) + 1))
    count = node.size
    objective = np.zeros(2 * count)
    where = np.searchsorted(node, prediction)
    objective[where], objective[count + where] = mass0, mass1
    rise = sparse.diags([-1.0, 1.0], [0, 1], shape=(count - 1, count))
    rows = sparse.block_diag([sparse.vstack([rise, -rise])] * 2)
    calibration = sparse.hstack([sparse.diags(1.0 - node), sparse.diags(node)])
    result = linprog(
        -objective,
        A_ub=sparse.vstack([rows, calibration]),
        b_ub=np.concatenate([np.tile(np.diff(node), 4), np.zeros(count)]),
        bounds=(None, None),
        method="highs",
    )
    return -result.fun


def primal_oracle(prediction, mass0, mass1, step):
    """Solve the paper's linear program over couplings of (u, v, y), u on a grid."""
    point = np.union1d(prediction, np.linspace(0.0, 1.0, round(1.0 / step) + 1))
    n, count = prediction.size, point.size
    marginals = sparse.kron(sparse.identity(2 * n), np.ones((1, count)))
    calibration = sparse.hstack([-sparse.diags(point)] * n + [sparse.diags(1.0 - point)] * n)
    result = linprog(
        np.tile(np.abs(prediction[:, None] - point).ravel(), 2),
        A_eq=sparse.vstack([marginals, calibration]),
        b_eq=np.concatenate([mass0, mass1, np.zeros(count)]),
        method="highs",
    )
    return result.fun


def random_instance(rng):
    """Draw a small instance of a random kind."""
    n = int(rng.integers(1, 40))
    kind = rng.integers(0, 12)
    f = rng.random(n)
    v = rng.random(n)
    y = rng.integers(0, 2, n)
    weights = np.ones(n)
    if kind == 0:  # calibrated
        v, y = f, rng.random(n) < f
    elif kind == 1:  # ties
        v = np.round(v, 1)
    elif kind == 2:  # weights over many orders of magnitude
        weights = 10.0 ** rng.uniform(-20.0, 0.0, n)
    elif kind == 3:  # gaps near the rounding error
        v = np.clip(rng.choice(rng.random(3), n) + 1e-15 * rng.integers(-5, 6, n), 0.0, 1.0)
    elif kind == 4:  # both ends
        v = rng.choice([0.0, 1.0, 0.5, 1e-300, 1.0 - 2.0**-53, 1e-9, 1.0 - 1e-9], n)
    elif kind == 5:  # one class, or nearly
        y = np.zeros(n, int)
        y[: rng.integers(0, 2)] = 1
        y = y if rng.random() < 0.5 else 1 - y
        weights[0] = 10.0 ** rng.uniform(-18.0, 0.0)
    elif kind == 6:  # clusters
        width = 10.0 ** rng.uniform(-12.0, -2.0)
        v = np.clip(rng.choice(rng.random(3), n) + width * rng.normal(size=n), 0.0, 1.0)
    elif kind == 7:  # crowded at zero
        v, y = f**5, rng.random(n) < f
    elif kind == 8:  # crowded at one, far smaller than any node spacing
        v = 1.0 - 10.0 ** rng.uniform(-17.0, 0.0, n)
    elif kind == 9:  # over- and underconfident
        b = 10.0 ** rng.uniform(-1.0, 1.0)
        v, y = f**b / (f**b + (1.0 - f) ** b), rng.random(n) < f
    elif kind == 10:  # labels against the predictions
        y = v < 0.5
    else:  # labels with the predictions
        y = v > 0.5
    return joint(v, y, weights)


@pytest.mark.parametrize("block", range(8))
def test_random_instances_are_enclosed_and_proved(block):
    for seed in range(block * FUZZ // 8, (block + 1) * FUZZ // 8):
        rng = np.random.default_rng([seed, 1])
        data = random_instance(rng)
        tol = TOL * 10.0 ** -int(rng.integers(-1, 2) if seed % 20 else 2 * COMPILED)
        try:
            solve_verified(*data, tol)
        except AssertionError as error:
            message = f"seed {seed}, tol {tol}"
            raise AssertionError(message) from error


@pytest.mark.parametrize("seed", range(60 if COMPILED else 4))
def test_agrees_with_the_dual_linear_program(seed):
    data = random_instance(np.random.default_rng([seed, 2]))
    step = 2e-3
    oracle = dual_oracle(*data, step)
    solution = solve_verified(*data)
    assert solution.lower <= oracle + HIGHS_ERROR
    assert solution.upper >= oracle - step**2 / 2 - HIGHS_ERROR


@pytest.mark.parametrize("seed", range(20 if COMPILED else 2))
def test_agrees_with_the_linear_program_over_couplings(seed):
    rng = np.random.default_rng([seed, 3])
    n = int(rng.integers(1, 9))
    data = joint(np.round(rng.random(n), 2), rng.integers(0, 2, n))
    step = 0.01
    oracle = primal_oracle(*data, step)
    solution = solve_verified(*data)
    assert solution.lower <= oracle + HIGHS_ERROR
    assert solution.upper >= oracle - step**2 / 2 - HIGHS_ERROR


@pytest.mark.parametrize("value", [0.0, 1e-300, 0.3, 0.5, 1.0 - 2.0**-53, 1.0])
@pytest.mark.parametrize("mean", [0.0, 1e-12, 0.25, 0.5, 1.0])
def test_single_value_is_the_distance_to_the_mean_label(value, mean):
    solution = solve_verified(np.array([value]), np.array([1.0 - mean]), np.array([mean]), 1e-14)
    assert solution.lower == pytest.approx(abs(value - mean), abs=1e-14)


@pytest.mark.parametrize("label", [0, 1])
def test_single_label_is_the_mean_distance_to_it(label):
    predictions = np.random.default_rng(4).random(50)
    solution = solve_verified(*joint(predictions, np.full(50, label)), 1e-13)
    assert solution.lower == pytest.approx(np.abs(predictions - label).mean(), abs=1e-13)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.2, 0.25])
def test_quadratic_gap_family(alpha):
    """Labels at 1/2 - alpha have mean 1/2 + alpha and vice versa."""
    prediction = np.array([0.5 - alpha, 0.5 + alpha])
    mass1 = np.array([0.25 + alpha / 2, 0.25 - alpha / 2])
    solution = solve_verified(prediction, 0.5 - mass1, mass1)
    truth = 4.0 * alpha**2 / (1.0 + 2.0 * alpha)
    assert solution.lower <= truth + 1e-12
    assert solution.upper >= truth - 1e-12


@pytest.mark.parametrize(("delta", "distance"), [(0.01, 0.02), (0.1, 0.1), (0.3, 0.2), (0.2, 0.6)])
def test_family_where_smooth_error_is_nearly_twice_the_distance(delta, distance):
    """Moving the ones onto the zeros calibrates: delta * distance; smCE is 2 - delta - distance
    times that.
    """
    prediction = np.array([delta, delta + distance])
    mass0, mass1 = np.array([1.0 - delta, 0.0]), np.array([0.0, delta])
    solution = solve_verified(prediction, mass0, mass1)
    residual = mass1 * (1.0 - prediction) - mass0 * prediction
    smooth = -residual.sum() + distance * residual[1]
    truth = smooth / (2.0 - delta - distance)
    assert truth == pytest.approx(delta * distance)
    assert solution.lower <= truth + 1e-12
    assert solution.upper >= truth - 1e-12


def large_instance(name, n):
    rng = np.random.default_rng(5)
    f = rng.random(n)
    y = rng.random(n) < f
    if name == "ties":
        return joint(np.round(f**1.3, 2), y)
    if name == "clusters":
        return joint(np.clip(rng.choice([0.1, 0.4, 0.45], n) + 1e-3 * f, 0.0, 1.0), y)
    if name == "rare":
        return joint(f**5, rng.random(n) < 0.01 * f)
    b = float(name)
    return joint(f**b / (f**b + (1.0 - f) ** b), y)


@pytest.mark.skipif(not COMPILED, reason="too slow in plain Python")
@pytest.mark.parametrize("n", [3_000, 100_000])
@pytest.mark.parametrize("name", ["0.1", "0.3", "1", "3", "10", "ties", "clusters", "rare"])
def test_large_instances(name, n):
    data = large_instance(name, n)
    for tol in (1e-3, 1e-6):
        solution = solve_verified(*data, tol)
        assert solution.levels <= 2
        assert solution.iterations <= 60


def test_reports_progress():
    calls = []
    prediction, mass0, mass1 = joint([0.1, 0.4, 0.8, 0.9], [0, 1, 0, 1])
    solution = solve(prediction, mass0, mass1, TOL, lambda *bounds: calls.append(bounds))
    assert calls[-1] == (solution.lower, solution.upper)


@pytest.mark.parametrize("iterations", [0, 1, 4])
def test_unfinished_ladders_still_give_valid_bounds(monkeypatch, iterations):
    data = large_instance("3", 500 if COMPILED else 40)
    truth = solve_verified(*data)
    monkeypatch.setattr(lower_solver, "MAX_ITERATIONS", iterations)
    monkeypatch.setattr(lower_solver, "MAX_LEVELS", 2)
    solution = solve(*data, TOL)
    verify(*data, solution)
    assert solution.lower <= truth.upper
    assert solution.upper >= truth.lower


def test_spoilt_directions_still_give_valid_bounds(monkeypatch):
    data = large_instance("3", 50)
    monkeypatch.setattr(lower_solver, "MAX_LEVELS", 2)
    monkeypatch.setattr(lower_solver, "START_DEPTH", 1e-310)  # by which masses are divided
    solution = solve(*data, TOL)
    assert solution.iterations == 0
    verify(*data, solution)


def test_tolerances_below_rounding_return_the_best_bounds():
    data = joint([0.2, 0.7], [1, 0])
    if not COMPILED:
        pytest.skip("too slow in plain Python")
    solution = solve(*data, 0.0)
    verify(*data, solution, lower_solver.FINEST_TOLERANCE)


@pytest.mark.skipif(not COMPILED, reason="nothing to compare")
@pytest.mark.parametrize("seed", range(8))
def test_compiled_and_plain_kernels_agree(monkeypatch, seed):
    data = random_instance(np.random.default_rng([seed, 6]))
    compiled = solve(*data, 1e-3)
    for name in ("ladder", "interior_point"):
        monkeypatch.setattr(lower_solver, name, loader.plain(name))
    plain = solve(*data, 1e-3)
    verify(*data, plain, 1e-3)
    assert plain.lower == pytest.approx(compiled.lower, abs=1e-12)
    assert plain.upper == pytest.approx(compiled.upper, abs=1e-12)
