"""Weights near the least and the largest float: bounds stay bounds, and nothing warns."""

import numpy as np
import pytest

import caldist
from caldist import Accumulator, Joint

RNG = np.random.default_rng(3)
V = RNG.random(60)
Y = (RNG.random(60) < V**2).astype(int)
EXACT = caldist.evaluate(Joint.from_arrays(Y, V, sample_weight=np.ones(60)))


@pytest.mark.parametrize("weight", [5e-324, 1e-323, 1e-320, 1e-310, 1e-290, 1.0, 1e150])
@pytest.mark.parametrize("finest", [30, 3])
def test_bounds_after_coarsening_contain_the_value_on_the_rows(weight, finest):
    joint = Joint.from_arrays(Y, V, sample_weight=np.full(60, weight))
    coarse = joint.coarsen(finest).coarsen(3)
    usual = Joint.from_arrays(Y, V).coarsen(finest).coarsen(3)
    assert coarse.radius == pytest.approx(usual.radius, rel=1e-9)
    for name, found in caldist.evaluate(coarse).items():
        if found.lower is not None:
            assert found.lower - 1e-12 <= EXACT[name].value <= found.upper + 1e-12, name


def test_the_level_of_a_test_does_not_depend_on_the_unit_of_the_weights():
    errors = []
    for weight in (5e-324, 1e-200):  # the squares of both are 0
        joint = Joint.from_arrays(Y, V, sample_weight=np.full(60, weight)).coarsen(4)
        errors.append(joint.grid.drawing_error)
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)


def test_tiny_weights_keep_their_unit_and_merge():
    parts = [slice(0, 30), slice(30, 60)]
    weight = np.full(60, 5e-324)
    whole = Joint.from_arrays(Y, V, sample_weight=weight).coarsen(5)
    made = [Joint.from_arrays(Y[at], V[at], sample_weight=weight[at]).coarsen(5) for at in parts]
    assert made[0] + made[1] == whole
    assert whole.total == 60 * 5e-324
    filled = Accumulator(bits=5)
    filled.update(Y, V, sample_weight=weight)
    assert filled.joint == whole


@pytest.mark.parametrize(
    "mass",
    [[5e-324, 5e-324, 1.0], [1.0, 5e-324, 1e-310], [5e-324] * 3, [1e-310, 1e300, 1e-300]],
)
def test_masses_that_vanish_beside_others(mass):
    y, v = np.array([0.2, 0.5, 0.9]), np.array([0.3, 0.6, 0.1])
    kept = np.array(mass) / max(mass) > 1e-200
    unit = np.where(kept, 1.0, 0.0)
    assert caldist.true_distance(y, v, mass=mass) == caldist.true_distance(y, v, mass=unit)
    bounds = caldist.true_distance_bounds(y, v, mass=mass)
    assert bounds == caldist.true_distance_bounds(y, v, mass=unit)


@pytest.mark.parametrize("weight", [1e299, 1e305, 1e308])
def test_weights_that_are_too_large_are_refused_without_a_warning(weight):
    """Warnings are errors in these tests."""
    unknown = Joint.from_masses([0.25, 0.5], [weight, 0.0], [0.0, weight / 4])
    with pytest.raises(ValueError, match="divide them by their maximum"):
        unknown.coarsen(8).coarsen(1).coarsen(1)
    with pytest.raises(ValueError, match="maximum"):
        Joint.from_arrays([0, 1], [0.2, 0.7], sample_weight=[weight, weight]).coarsen(8)
    with pytest.raises(ValueError, match="maximum"):
        Accumulator(bits=8).update([0, 1], [0.2, 0.7], sample_weight=[weight, weight])
    assert Joint.from_cells([1], [weight], [0.0], [weight], [0.0], bits=1).total == weight


@pytest.mark.parametrize("weight", [1e299, 1e305, 1e307])
def test_large_weights_that_can_be_summed_have_values(weight):
    scaled = caldist.evaluate(Joint.from_arrays(Y[:5], V[:5], sample_weight=np.full(5, weight)))
    usual = caldist.evaluate(Joint.from_arrays(Y[:5], V[:5]))
    for name, found in scaled.items():
        assert found.value == pytest.approx(usual[name].value, abs=1e-9), name
