"""Least squares on a chain with bounded steps: proofs, oracles, limits, random instances.

Set CALDIST_FUZZ to the number of random instances (20000 is a thorough run).
"""

import itertools
import os
from fractions import Fraction

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import isotonic_regression

from caldist.kernels import loader

FUZZ = int(os.environ.get("CALDIST_FUZZ", "1000" if loader.COMPILED else "60"))
LARGE = 30_000 if loader.COMPILED else 2000


def fit(weight, target, low, high, kernel=loader.chain):
    fitted = np.empty(target.size)
    kernel.fit(weight, target, low, high, fitted)
    return fitted


def scale_of(target, low):
    return np.abs(target).max() + np.abs(low).sum()


def proved_gap(weight, target, low, high, fitted):
    """Return how far above the least loss this one may be, for a total weight of 1.

    By summation by parts, from the feasible x alone. A best x has steps within the range of the
    targets less the sums of the lower bounds, so that an infinite bound is no longer than that.
    """
    share = weight / weight.sum()
    sums = np.cumsum(share * (target - fitted))
    level = target - np.concatenate(([0.0], np.cumsum(low)))
    span = level.max() - level.min()
    step = np.diff(fitted)
    longest = np.minimum(high, low + span)
    room = np.where(sums[:-1] > 0, sums[:-1] * (step - low), sums[:-1] * (step - longest))
    return 2 * (np.maximum(room, 0).sum() + abs(sums[-1]) * span)


def check(weight, target, low, high, fitted, tolerance=1e-12):
    scale = scale_of(target, low) + 1e-300
    step = np.diff(fitted)
    assert np.isfinite(fitted).all()
    assert (step >= low - 1e-12 * scale).all()
    assert (step <= high + 1e-12 * scale).all()
    gap = proved_gap(weight, target, low, high, fitted)
    assert gap <= tolerance * scale**2, gap / scale**2


def random_chain(rng, n):
    """Return a chain with ties, extreme weights, steps without room or without an upper bound."""
    weight = (
        np.ones(n),
        rng.random(n) + 0.01,
        10.0 ** rng.uniform(-9, 9, n),
        rng.integers(1, 4, n).astype(float),
    )[rng.integers(4)]
    target = (
        rng.integers(0, 2, n).astype(float),
        rng.random(n),
        rng.normal(size=n) * 10.0 ** rng.integers(-3, 4),
        np.sort(rng.random(n)),
        np.round(rng.random(n), 1),
    )[rng.integers(5)]
    gap = rng.exponential(size=n - 1) * 10.0 ** rng.integers(-7, 2)
    gap[rng.random(n - 1) < rng.choice([0, 0.3])] = 0.0
    low = gap * rng.choice([0, 0, 0, 0.3, 1, -1])
    high = np.maximum(low, gap * rng.choice([0, 1, 2, 5, 1e3]))
    infinite = rng.random(n - 1) < rng.choice([0, 0, 0.2, 1])
    return weight, target, low, np.where(infinite, np.inf, high)


def test_random_instances():
    rng = np.random.default_rng(7)
    for k in range(FUZZ):
        n = int(rng.integers(1, 12)) if k % 4 else int(rng.integers(12, 120))
        chain = random_chain(rng, n)
        check(*chain, fit(*chain))


def test_long_random_instances():
    rng = np.random.default_rng(8)
    for _ in range(12):
        chain = random_chain(rng, LARGE // 10)
        check(*chain, fit(*chain), tolerance=1e-11)


@pytest.mark.skipif(not loader.COMPILED, reason="both are plain")
def test_compiled_and_plain_kernels_agree():
    rng = np.random.default_rng(9)
    plain = loader.plain("chain")
    for _ in range(200):
        chain = random_chain(rng, int(rng.integers(1, 200)))
        assert np.array_equal(fit(*chain), fit(*chain, kernel=plain))


def clarabel_fit(weight, target, low, high):
    """Solve the quadratic program by an interior-point method."""
    n = target.size
    rise = sparse.diags([-1.0, 1.0], [0, 1], shape=(n - 1, n)).tocsr()
    bounded = np.isfinite(high)
    rows = sparse.vstack([rise[bounded], -rise]).tocsc()
    limits = np.concatenate([high[bounded], -low])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sparse.diags(weight).tocsc(),
        -weight * target,
        rows,
        limits,
        [clarabel.NonnegativeConeT(limits.size)],
        settings,
    )
    return np.array(solver.solve().x)


@pytest.mark.parametrize("seed", range(30))
def test_no_worse_than_clarabel(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 500 if seed % 10 == 0 else 60))
    gap = np.diff(np.sort(rng.random(n)))
    slopes = rng.choice([0.0, 0.0, 0.2, -1.0]), rng.choice([0.5, 1, 2, 5, 20])
    weight = np.ones(n) if seed % 3 else rng.random(n) + 0.01
    target = rng.integers(0, 2, n).astype(float) if seed % 2 else rng.random(n)
    chain = weight, target, slopes[0] * gap, slopes[1] * gap
    ours, theirs = fit(*chain), clarabel_fit(*chain)
    assert weight @ (ours - target) ** 2 <= weight @ (theirs - target) ** 2 + 1e-11 * n
    assert ours == pytest.approx(theirs, abs=1e-4)


def best_by_enumeration(weight, target, low, high):
    """Try every choice of steps at their lower bound, at their upper one, and in between."""
    n = target.size
    best, least = None, np.inf
    for choice in itertools.product((0, 1, 2), repeat=n - 1):
        step = np.where(np.equal(choice, 0), low, np.where(np.equal(choice, 1), high, 0.0))
        if not np.isfinite(step).all():
            continue
        block = np.concatenate(([0], np.cumsum(np.equal(choice, 2))))
        offset = np.zeros(n)
        for i in range(1, n):
            offset[i] = 0.0 if choice[i - 1] == 2 else offset[i - 1] + step[i - 1]
        mean = np.bincount(block, weight * (target - offset)) / np.bincount(block, weight)
        x = mean[block] + offset
        loss = weight @ (x - target) ** 2
        rise = np.diff(x)
        if (rise >= low - 1e-9).all() and (rise <= high + 1e-9).all() and loss < least:
            best, least = x, loss
    return best


def test_brute_force():
    rng = np.random.default_rng(3)
    for _ in range(60):
        n = int(rng.integers(1, 7))
        weight, target = rng.random(n) + 0.1, rng.random(n)
        gap = rng.random(n - 1)
        high = np.where(rng.random(n - 1) < 0.2, np.inf, gap)
        chain = weight, target, gap * rng.choice([0, 0.5]), high
        assert fit(*chain) == pytest.approx(best_by_enumeration(*chain), abs=1e-8)


def test_without_upper_bounds_it_is_isotonic_regression():
    rng = np.random.default_rng(4)
    for k in range(100):
        n = int(rng.integers(1, 300))
        target = rng.random(n) if k % 2 else rng.integers(0, 2, n).astype(float)
        weight = rng.random(n) + 0.01
        found = fit(weight, target, np.zeros(n - 1), np.full(n - 1, np.inf))
        expected = isotonic_regression(target, weights=weight).x
        assert found == pytest.approx(expected, abs=1e-12)


def exact_isotonic(weight, target):
    """Pool adjacent violators, in rational numbers."""
    blocks = []
    for t, w in zip(map(Fraction, target.tolist()), map(Fraction, weight.tolist()), strict=True):
        blocks.append((t, w, 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (t1, w1, n1), (t2, w2, n2) = blocks[-2:]
            blocks[-2:] = [((t1 * w1 + t2 * w2) / (w1 + w2), w1 + w2, n1 + n2)]
    return np.repeat([float(t) for t, _, _ in blocks], [n for _, _, n in blocks])


def test_isotonic_regression_with_extreme_weights():
    rng = np.random.default_rng(5)
    for _ in range(100):
        n = int(rng.integers(1, 40))
        weight, target = 10.0 ** rng.uniform(-9, 9, n), rng.normal(size=n)
        found = fit(weight, target, np.zeros(n - 1), np.full(n - 1, np.inf))
        assert found == pytest.approx(exact_isotonic(weight, target), abs=1e-12)


def test_steps_without_room_leave_the_mean():
    rng = np.random.default_rng(6)
    weight, target, step = rng.random(50) + 0.1, rng.random(50), rng.random(49)
    offset = np.concatenate(([0.0], np.cumsum(step)))
    mean = np.average(target - offset, weights=weight)
    assert fit(weight, target, step, step) == pytest.approx(mean + offset, abs=1e-12)


def test_targets_that_are_feasible_stay():
    target = np.cumsum(np.random.default_rng(7).random(100))
    step = np.diff(target)
    assert np.array_equal(fit(np.ones(100), target, 0.5 * step, 2 * step), target)


def all_bends_at_every_step(n):
    """Lay many bends within a short range, then pull from one end of it to the other."""
    near = n // 2
    rng = np.random.default_rng(10)
    target = np.concatenate((0.5 + 1e-9 * (rng.random(near) - 0.5), np.arange(n - near) % 2))
    high = np.full(n - 1, 1e-12 / n)
    return np.ones(n), target, np.zeros(n - 1), high


def narrow(n):
    rng = np.random.default_rng(11)
    v = np.sort(0.5 + 1e-2 * rng.random(n))
    target = (rng.random(n) < v).astype(float)
    return np.ones(n), target, np.zeros(n - 1), 2 * np.diff(v)


def long_steps(n):
    """Sums of the upper bounds that are many times the range of the targets."""
    rng = np.random.default_rng(12)
    return np.ones(n), rng.random(n), np.zeros(n - 1), rng.random(n - 1) * 0.3


@pytest.mark.parametrize("make", [all_bends_at_every_step, narrow, long_steps])
def test_chunks_of_many_bends(make):
    chain = make(LARGE)
    check(*chain, fit(*chain))
    backwards = fit(chain[0], -chain[1][::-1], chain[2][::-1].copy(), chain[3][::-1].copy())
    assert -backwards[::-1] == pytest.approx(fit(*chain), abs=1e-9)
