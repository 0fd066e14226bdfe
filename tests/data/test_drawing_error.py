"""What labels drawn from the means of cells have to do with those drawn from the predictions.

The number of ones in a cell is Poisson-binomial under the predictions and binomial under their
mean; both laws are computed here outcome by outcome, and their distance compared with the bound.
"""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caldist import Joint
from strategies import probability, samples

ROUNDING = 1e-12  # of the laws themselves


def law_of_ones(p):
    """Return the law of the number of ones among independent labels."""
    return functools.reduce(np.convolve, ([1 - v, v] for v in p), np.ones(1))


def binomial(n, p):
    return np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


def distance(one, other):
    """Return the total variation distance of two laws."""
    return np.abs(one - other).sum() / 2


def laws(p, joint):
    """Return, for each cell, both laws of its number of ones."""
    cell = np.floor(p * 2.0**joint.grid.bits)
    for number, centre in zip(joint.grid.cell, joint.prediction, strict=True):
        inside = p[cell == number]
        yield law_of_ones(inside), binomial(inside.size, centre)


def without_squares(joint):
    return dataclasses.replace(joint.grid, square0=None, square1=None)


@st.composite
def cells(draw):
    """Draw bits and up to nine rows in few, mostly wide cells; some at 0, 1 and next to them."""
    bits = draw(st.one_of(st.integers(1, 4), st.integers(1, 30)))
    few = draw(st.lists(probability, min_size=1, max_size=2))
    ends = [0.0, 5e-324, 1e-300, 2.0**-53, 1 - 2.0**-53, 1.0]
    near = st.floats(0, 1).map(lambda f: f * 2.0**-bits)
    value = st.one_of(
        st.sampled_from(ends),
        st.builds(lambda start, step: min(start + step, 1.0), st.sampled_from(few), near),
        near,
        near.map(lambda x: 1 - x),
    )
    p = np.array(draw(st.lists(value, min_size=1, max_size=9)))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=p.size, max_size=p.size)))
    return y, p, bits


@given(cells())
def test_it_bounds_the_distance_of_the_laws(rows):
    y, p, bits = rows
    joint = Joint.from_arrays(y, p).coarsen(bits)
    pairs = list(laws(p, joint))
    # Over all cells: the laws of the vector of numbers.
    sides = zip(*pairs, strict=True)
    truth = distance(*(functools.reduce(np.multiply.outer, side) for side in sides))
    assert truth <= sum(distance(*pair) for pair in pairs) + ROUNDING
    sharp, wide = joint.grid.drawing_error, without_squares(joint).drawing_error
    assert truth <= sharp + ROUNDING
    assert sharp <= wide <= 1


@given(cells(), st.data())
def test_it_holds_after_coarsening_a_summary(rows, data):
    y, p, bits = rows
    joint = Joint.from_arrays(y, p).coarsen(bits).coarsen(data.draw(st.integers(1, bits)))
    truth = sum(distance(*pair) for pair in laws(p, joint))
    assert truth <= joint.grid.drawing_error + ROUNDING
    assert truth <= without_squares(joint).drawing_error + ROUNDING


@pytest.mark.parametrize("p", [0.0, 1.0, 0.5, 0.3, 1e-300, 5e-324, 2.0**-40, 1 - 2.0**-53])
@pytest.mark.parametrize("bits", [1, 8, 16, 30])
def test_equal_predictions_are_drawn_alike(p, bits):
    joint = Joint.from_arrays([0, 1] * 50, [p] * 100).coarsen(bits)
    ((exact, drawn),) = laws(np.full(100, p), joint)
    assert distance(exact, drawn) <= joint.grid.drawing_error + ROUNDING
    # Only flooring is left, and what the mean of squares cannot say because of it.
    assert joint.grid.drawing_error <= 100 * (2.0**-bits * 2.0**-29 + 2.0**-51)


@pytest.mark.parametrize("n", [2, 5, 12])
def test_it_is_nearly_attained_by_the_two_ends_of_a_cell(n):
    """Half of the rows at each end of [0, 1/2): that is what the cell allows without squares."""
    p = np.repeat([0.0, 0.5 - 2.0**-40], n // 2 + 1)
    joint = Joint.from_arrays(np.arange(p.size) % 2, p).coarsen(1)
    ((exact, drawn),) = laws(p, joint)
    for grid in (joint.grid, without_squares(joint)):
        assert distance(exact, drawn) <= grid.drawing_error <= 4 * distance(exact, drawn)


def test_it_shrinks_with_the_width():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 5000)
    exact = Joint.from_arrays((rng.random(5000) < p).astype(int), p)
    errors = [exact.coarsen(bits).grid.drawing_error for bits in (6, 8, 10)]
    assert errors[0] < 0.05
    for one, other in itertools.pairwise(errors):
        assert other < one / 3  # four times as many cells, with a sixteenth of the variance


def test_it_is_at_most_one():
    cell = np.arange(2**10)
    rows = np.full(cell.size, 2**30)
    place = rows << 30
    many = Joint.from_cells(cell, rows, rows, place, place, bits=10)
    assert many.grid.drawing_error == 1
    assert Joint.empty(8).grid.drawing_error == 0


@given(samples(weighted=True), st.integers(1, 12))
def test_weights_are_not_numbers_of_rows(sample, bits):
    y, p, weight = sample
    one, other = (
        Joint.from_arrays(y, p, sample_weight=weight * scale).coarsen(bits).grid.drawing_error
        for scale in (1.0, 2.0**12)
    )
    assert one == other <= 1


@given(samples(weighted=False), st.integers(1, 12))
def test_weight_one_is_no_weight(sample, bits):
    y, p, _ = sample
    bare, weighted = (
        Joint.from_arrays(y, p, sample_weight=weight).coarsen(bits).grid
        for weight in (None, np.full(y.size, 3.0))
    )
    assert weighted.drawing_error == pytest.approx(bare.drawing_error, rel=1e-12)


def test_nothing_is_certain_of_weights_that_are_not_known():
    joint = Joint.from_masses([0.2, 0.9], [1.5, 0], [1, 1]).coarsen(8)
    assert joint.grid.drawing_error == 1
