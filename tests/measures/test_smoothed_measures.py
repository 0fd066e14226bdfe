"""The smooth ECE of a reflected Gaussian kernel, against quadrature."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from scipy.integrate import quad
from scipy.special import ndtr

import oracles
from caldist import Joint, ece
from caldist.kernels import loader
from caldist.measures import kernel_smoothed_ece, reflected_gaussian
from strategies import family, fewer, instances, samples


def reflections(width):
    reach = int(6 * width) + 2
    return 2.0 * np.arange(-reach, reach + 1)


def smoothed(t, v, c, width):
    """Sum the images of every Gaussian."""
    t = np.atleast_1d(t)[:, None, None]
    image = np.stack([v, -v], axis=1)[:, :, None] + reflections(width)
    kernel = np.exp(-0.5 * ((t - image.reshape(1, v.size, -1)) / width) ** 2)
    return kernel.sum(axis=2) @ c / (width * math.sqrt(2 * math.pi))


def smoothed_norm(v, c, width):
    """Integrate the absolute value between zeros that a fine scan and bisection find."""
    scan = [np.linspace(0, 1, 301)] + [v + width * x for x in np.linspace(-9, 9, 181)]
    grid = np.unique(np.clip(np.concatenate(scan), 0, 1))
    positive = smoothed(grid, v, c, width) > 0
    at = np.flatnonzero(positive[1:] != positive[:-1])
    low, high = grid[at], grid[at + 1]
    for _ in range(50 if at.size else 0):
        middle = (low + high) / 2
        same = (smoothed(middle, v, c, width) > 0) == positive[at]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    ends = np.concatenate(([0.0], low, [1.0]))[:, None, None]
    image = (np.stack([v, -v], axis=1)[:, :, None] + reflections(width)).reshape(1, v.size, -1)
    primitive = ndtr((ends - image) / width).sum(axis=2) @ c
    return float(np.abs(np.diff(primitive)).sum())


def test_the_oracle_of_smoothed_norms_is_what_quadrature_gives():
    rng = np.random.default_rng(0)
    for width in (0.03, 0.2, 1.5):
        v, c = np.concatenate(([0.0], rng.random(4), [1.0])), rng.normal(size=6)
        points = np.clip(np.concatenate([v - width, v, v + width]), 0, 1)
        value, error = quad(
            lambda t, *data: abs(smoothed(t, *data)[0]),
            0,
            1,
            (v, c, width),
            points=points,
            limit=2000,
        )
        assert smoothed_norm(v, c, width) == pytest.approx(value, abs=10 * error + 1e-9)


def test_kernel_smoothed_ece_is_the_fixed_point():
    for y, p, weight in instances(30, 6 if loader.COMPILED else 3):
        v, g0, g1 = oracles.distribution(y, p, weight)
        value = kernel_smoothed_ece(y, p, sample_weight=weight)
        c = oracles.residuals(v, g0, g1)
        if value < 1e-12:
            assert np.abs(c).sum() < 1e-12
        else:
            # The norm does not increase with the width, so the fixed point lies in between.
            assert smoothed_norm(v, c, value) == pytest.approx(value, abs=1e-12)


@fewer
@given(samples(max_size=8))
def test_kernel_smoothed_ece_of_any_rows_is_the_fixed_point(sample):
    y, p, weight = sample
    v, g0, g1 = oracles.distribution(y, p, weight)
    c = oracles.residuals(v, g0, g1)
    value = kernel_smoothed_ece(y, p, sample_weight=weight)
    assert value <= np.abs(c).sum() + 1e-13
    assert value >= abs(c.sum()) - 1e-13
    if value > 1e-9:
        assert smoothed_norm(v, c, value) == pytest.approx(value, abs=1e-11)


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-9])
@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6, 1e-10])
def test_kernel_smoothed_ece_is_accurate_where_it_is_small(spread, noise):
    rng = np.random.default_rng(1)
    v = np.sort(0.3 + 0.4 * spread * rng.random(20))
    joint = Joint.from_masses(v, 1 - v, v * (1 + noise * rng.normal(size=20)))
    value = kernel_smoothed_ece(joint)
    assert 0 < value < noise
    norm = smoothed_norm(joint.prediction, joint.residual(), value)
    assert norm == pytest.approx(value, rel=1e-9)


def test_kernel_smoothed_ece_counts_the_whole_mass_of_certain_predictions():
    assert kernel_smoothed_ece([1, 1], [0.0, 0.0]) == 1
    assert kernel_smoothed_ece([0, 0], [1.0, 1.0]) == 1
    assert kernel_smoothed_ece([0, 1], [0.0, 1.0]) == 0
    # One half of each residual at 0, at 1 and at 1/2: all of it must be there at small widths.
    norm = reflected_gaussian.SmoothedNorm(
        np.array([0.0, 0.5, 1.0]), np.array([0.25, -0.5, 0.25]), 1e-3, 1e-2
    )
    assert norm(1e-3) == pytest.approx(1, abs=1e-13)


def test_smoothed_norm_over_several_tiles(monkeypatch):
    rng = np.random.default_rng(2)
    v, c = np.unique(np.concatenate(([0.0, 1.0], rng.random(60)))), rng.normal(size=62)
    widths = (0.004, 0.005, 0.006)
    whole = reflected_gaussian.SmoothedNorm(v, c, 0.004, 0.006)
    monkeypatch.setattr(reflected_gaussian, "_TILE", 16)
    tiled = reflected_gaussian.SmoothedNorm(v, c, 0.004, 0.006)
    assert len(whole._tiles) == 1
    assert len(tiled._tiles) > 3
    for width in widths:
        assert tiled(width) == pytest.approx(whole(width), rel=1e-12)
        assert whole(width) == pytest.approx(smoothed_norm(v, c, width), rel=1e-12)


def test_smoothed_norm_finds_two_zeros_within_a_cell():
    # f = S' touches 0 at 1/2 from above and dips below it by less and less.
    for depth in (0.2, 0.05, 1e-3, 0.0, -1e-3):
        points = np.array([0.0, 1.0])
        value = (points - 0.5) ** 2 - depth * np.abs(depth)
        slope = 2 * (points - 0.5)
        primitive = (points - 0.5) ** 3 / 3 - depth * np.abs(depth) * points
        expected, _ = quad(
            lambda x, d=depth: abs((x - 0.5) ** 2 - d * abs(d)),
            0,
            1,
            points=[0.5 - abs(depth), 0.5 + abs(depth)],
        )
        got = loader.crossings.absolute_integral(primitive, value, slope)
        assert got == pytest.approx(expected, abs=1e-14)


def test_smoothing_does_not_increase_the_norm():
    y, p = family("oscillating", 500, np.random.default_rng(3))
    joint = Joint.from_arrays(y, p)
    norm = reflected_gaussian.SmoothedNorm(joint.prediction, joint.residual(), 0.01, 1.0)
    values = [norm(width) for width in np.geomspace(0.01, 1, 12)]
    assert all(a >= b - 1e-14 for a, b in pairwise(values))
    assert values[0] <= ece(y, p)
    assert values[-1] >= abs(np.mean(y - p)) - 1e-14
