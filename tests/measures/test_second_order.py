"""Bounds of second order: they contain the exact value whatever the rows do inside the cells."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
from caldist import Joint
from caldist.data.accumulator import Accumulator
from caldist.data.within_cells import folding_excess
from caldist.kernels import loader
from caldist.measures import _second_order
from caldist.measures.lower_distance import certify_lower
from caldist.measures.registry import all_measures
from strategies import FAMILIES, examples, family, samples

slow = pytest.mark.skipif(not loader.COMPILED, reason="seconds a call as plain Python")
BOUNDED = [
    pytest.param(name, marks=slow if name == "lower_distance" else ())
    for name, measure in all_measures().items()
    if measure.facts.rounding is not None
]
SECOND_ORDER = [
    "smooth_ce",
    "kernel_ce",
    "random_interval_ce",
    "surrogate_interval_ce",
    "kernel_smoothed_ece",
    "averaged_two_bin_ce",
    "brier_score",
]


SHARP = [
    "smooth_ce",
    "kernel_ce",
    "averaged_two_bin_ce",
    "random_interval_ce",
    pytest.param("lower_distance", marks=slow),
]
N = 3000 if loader.COMPILED else 300


@st.composite
def against_the_grid(draw):
    """Draw rows at edges and just inside, clustered or alternating in a cell, and the bits."""
    bits = draw(st.integers(1, 16))
    size = draw(st.integers(1, 24))
    cells = st.one_of(st.integers(0, 2**bits), st.sampled_from([0, 2**bits - 1, 2**bits]))
    few = draw(st.lists(cells, min_size=1, max_size=4))
    fractions = st.one_of(
        st.sampled_from([0.0, 2.0**-36, 0.5, 1 - 2.0**-36]),
        st.floats(0, 1, exclude_max=True),
        st.floats(0, 1e-6).map(lambda x: 0.3 + x),
    )
    cell = np.array(draw(st.lists(st.sampled_from(few), min_size=size, max_size=size)))
    f = np.array(draw(st.lists(fractions, min_size=size, max_size=size)))
    p = np.minimum((cell + f) * 2.0**-bits, 1.0)
    labels = draw(st.sampled_from(["random", "alternating", "sorted", "reversed"]))
    if labels == "random":
        y = np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    else:
        p = np.sort(p)
        inside = p * 2.0**bits % 1
        y = {
            "alternating": np.arange(size) % 2,
            "sorted": (inside > 0.5).astype(int),
            "reversed": (inside <= 0.5).astype(int),
        }[labels]
    weight = None
    if draw(st.booleans()):
        exponents = draw(st.lists(st.floats(-6, 6), min_size=size, max_size=size))
        weight = 10.0 ** np.array(exponents)
    return y, p, weight, bits


def check(name, exact, rounded):
    found = caldist.evaluate(rounded, measures=[name])[name]
    truth = caldist.evaluate(exact, measures=[name])[name]
    if name == "lower_distance":  # its value is known to a tolerance
        truth = certify_lower(exact, tol=1e-8)
    assert found.lower - 1e-13 <= truth.upper
    assert truth.lower <= found.upper + 1e-13
    assert 0 <= found.lower <= found.value <= found.upper
    return found, truth.value


@pytest.mark.parametrize("name", BOUNDED)
@given(against_the_grid())
@examples(40)
def test_bounds_contain_the_exact_value(name, rows):
    y, p, weight, bits = rows
    exact = Joint.from_arrays(y, p, sample_weight=weight)
    check(name, exact, exact.coarsen(bits))


@pytest.mark.parametrize("name", BOUNDED)
@given(against_the_grid(), st.data())
@examples(15)
def test_bounds_hold_after_coarsening_a_summary(name, rows, data):
    y, p, weight, bits = rows
    exact = Joint.from_arrays(y, p, sample_weight=weight)
    check(name, exact, exact.coarsen(bits).coarsen(data.draw(st.integers(1, bits))))


@pytest.mark.parametrize("name", BOUNDED)
@given(samples(max_size=12), st.integers(1, 8))
@examples(15)
def test_bounds_hold_without_squares(name, sample, bits):
    y, p, weight = sample
    exact = Joint.from_arrays(y, p, sample_weight=weight)
    sums = list(exact.coarsen(bits).grid.arrays().values())[:5]
    check(name, exact, Joint.from_cells(*sums, bits=bits))


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("kind", FAMILIES)
def test_bounds_on_families(name, kind):
    size = 3000 if loader.COMPILED else 300
    y, p = family(kind, size, np.random.default_rng(5))
    exact = Joint.from_arrays(y, p)
    for bits in (2, 6, 11):
        check(name, exact, exact.coarsen(bits))


def _one_cell(rng):
    p = 0.3 + 1e-9 * rng.random(N)
    return (rng.random(N) < 0.6).astype(int), p


def _two_atoms(rng):
    p = np.where(rng.random(N) < 0.5, 0.5, np.nextafter(0.5, 0))
    return (p >= 0.5).astype(int), p


def _pairs_at_edges(rng):
    """Return labels that a cell's width tells apart, at the edges of many cells."""
    edge = rng.integers(1, 256, N) / 256
    label = rng.integers(0, 2, N)
    return label, np.where(label == 1, edge, np.nextafter(edge, 0))


def _sorted_within_cells(rng):
    """Return cells in which all labels 1 come first: the worst order that sums allow."""
    cell, f = rng.integers(0, 1024, N), rng.random(N)
    return (f < 0.5).astype(int), (cell + f) / 1024


def _ends(rng):
    p = rng.choice([0.0, 5e-324, 1e-300, 1 - 2**-53, 1.0], N)
    return rng.integers(0, 2, N), p


def _rare(rng):
    p = 1e-6 * rng.random(N)
    return (rng.random(N) < 1e-3).astype(int), p


HARD = {
    "one cell": _one_cell,
    "two atoms": _two_atoms,
    "edges": _pairs_at_edges,
    "sorted": _sorted_within_cells,
    "ends": _ends,
    "rare": _rare,
}


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_on_hard_instances(name, kind, weighted):
    rng = np.random.default_rng(5)
    y, p = HARD[kind](rng)
    exact = Joint.from_arrays(
        y, p, sample_weight=rng.exponential(size=N) ** 3 if weighted else None
    )
    for bits in (8, 12):
        check(name, exact, exact.coarsen(bits))


@pytest.mark.parametrize("digits", [1, 2, 3])
@pytest.mark.parametrize("name", SHARP)
def test_predictions_of_few_digits_leave_little_open(name, digits):
    rng = np.random.default_rng(digits)
    p = np.round(rng.random(20_000), digits)
    y = (rng.random(p.size) < p**1.3).astype(int)
    exact = Joint.from_arrays(y, p)
    found, _ = check(name, exact, exact.coarsen(15))
    assert found.upper - found.lower <= (2e-4 if name == "kernel_ce" else 1e-5)


@given(sample=samples(max_size=40), bits=st.integers(1, 12))
def test_rows_are_no_further_from_their_means_than_is_said(sample, bits):
    y, p, w = sample
    w = np.ones(y.size) if w is None else w
    grid = Joint.from_arrays(y, p, sample_weight=w).coarsen(bits).grid
    place = np.searchsorted(grid.cell, np.minimum(np.floor(p * 2**bits), grid.cell[-1]))
    moved = w * np.abs(p - grid.centres()[np.minimum(place, grid.cell.size - 1)])
    for label, (spread, move) in enumerate(zip(grid.spreads, grid.moves, strict=True)):
        found = np.bincount(place, moved * (y == label), grid.cell.size)
        assert (found <= spread * (1 + 1e-9) + 1e-15 * w.sum()).all()
        assert (spread <= move).all()


@pytest.mark.parametrize("name", SECOND_ORDER)
def test_squares_narrow_the_bounds(name):
    y, p = family("beta3", 20_000 if loader.COMPILED else 2_000, np.random.default_rng(0))
    joint = Joint.from_arrays(y, p).coarsen(12)
    sums = list(joint.grid.arrays().values())[:5]
    without = caldist.evaluate(Joint.from_cells(*sums, bits=12), measures=[name])[name]
    found = caldist.evaluate(joint, measures=[name])[name]
    share = 0.6 if name == "surrogate_interval_ce" else 0.05
    assert found.upper - found.lower < share * (without.upper - without.lower)


@slow
def test_the_ends_of_the_lower_distance():
    """The lower one is of second order; the upper one allows for the spread of the rows."""
    y, p = family("beta3", 20_000, np.random.default_rng(0))
    exact = Joint.from_arrays(y, p)
    for bits in (6, 8, 10):
        found, truth = check("lower_distance", exact, exact.coarsen(bits))
        assert found.lower >= truth - 4.0**-bits - 2e-6
        assert found.upper <= truth + 0.3 * 2.0**-bits + 2e-6


def test_the_same_bits_from_any_partition():
    y, p = family("beta0.3", 400, np.random.default_rng(3))
    whole = caldist.evaluate(Joint.from_arrays(y, p).coarsen(10), measures=SECOND_ORDER)
    running = Accumulator(10)
    for start in range(0, 400, 37):
        running.update(y[start : start + 37], p[start : start + 37])
    assert caldist.evaluate(running.joint, measures=SECOND_ORDER) == whole


# -- the parts -------------------------------------------------------------------------------


@given(against_the_grid())
def test_the_profile_holds_the_mean_and_the_range_of_the_running_sum(rows):
    y, p, weight, bits = rows
    exact = Joint.from_arrays(y, p, sample_weight=weight)
    profile = exact.coarsen(bits).grid.within_cells
    v, sums = exact.prediction, exact.prefix_sums()
    for (a, b), mean, low, high in zip(
        itertools.pairwise(profile.node), profile.mean, profile.low, profile.high, strict=True
    ):
        inside = v[(v > a) & (v < b)]
        cuts = np.concatenate(([a], inside, [b]))
        levels = sums[np.searchsorted(v, cuts[:-1], side="right")]
        assert mean == pytest.approx(np.average(levels, weights=np.diff(cuts)), abs=1e-8)
        assert low - profile.slack <= levels.min()
        assert levels.max() <= high + profile.slack
    assert profile.deposit.sum() == pytest.approx(sums[-1], abs=1e-9)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8), st.floats(-1, 1), st.floats(0, 1))
def test_the_chord_bounds_the_mean_deviation(values, level, margin):
    x = np.array(values)
    low, high = x.min() - margin, x.max() + margin
    bound = folding_excess(*(np.array([t]) for t in (x.mean(), low, high, level)))[0]
    excess = np.abs(x - level).mean() - abs(x.mean() - level)
    assert 0 <= bound
    assert excess <= bound + 1e-12
    if not low < level < high:
        assert bound == 0


@given(against_the_grid(), st.integers(0, 16))
def test_dyadic_widths_are_bounded_below_by_the_deposit(rows, k):
    y, p, weight, bits = rows
    exact = Joint.from_arrays(y, p, sample_weight=weight)
    width = 2.0 ** -min(k, bits)
    value = caldist.random_interval_ce(y, p, sample_weight=weight, width=width)
    lower, _ = _second_order.dyadic_interval(exact.coarsen(bits).grid.within_cells, width)
    assert lower <= value + 1e-13


@given(against_the_grid(), st.floats(0.01, 1.0))
def test_windows_of_any_width(rows, width):
    y, p, weight, bits = rows
    exact = Joint.from_arrays(y, p, sample_weight=weight)
    lower, upper = _second_order.random_interval(exact.coarsen(bits).grid.within_cells, width)
    value = caldist.random_interval_ce(y, p, sample_weight=weight, width=width)
    assert lower - 1e-13 <= value <= upper + 1e-13
