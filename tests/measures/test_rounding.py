"""The certified effect of rounding contains the exact value, on random and adversarial rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
from caldist import Joint
from caldist.kernels import loader
from caldist.measures.registry import all_measures, shown_in
from strategies import FAMILIES, family, samples

slow = pytest.mark.skipif(not loader.COMPILED, reason="seconds a call as plain Python")
MEASURES = all_measures().values()
BOUNDED = [
    pytest.param(measure, id=measure.name, marks=slow if "tol" in measure.option_names else ())
    for measure in MEASURES
    if measure.facts.rounding is not None
]
UNBOUNDED = [measure for measure in shown_in("evaluate") if measure.facts.rounding is None]
bounded = pytest.mark.parametrize("measure", BOUNDED)


def check(measure, exact, rounded):
    result = caldist.evaluate(rounded, measures=[measure])[measure.name]
    truth = caldist.evaluate(exact, measures=[measure])[measure.name]  # known to its tolerance
    assert result.lower - 1e-13 <= truth.upper
    assert truth.lower <= result.upper + 1e-13
    assert 0 <= result.lower <= result.value <= result.upper
    if rounded.radius > 0:  # predictions of 1 have a cell of their own, and do not move
        lower, upper = measure.rounding(rounded, measure(rounded))
        assert 0 <= lower <= upper
        assert (lower, upper) == (result.lower, result.upper)
    return result


@bounded
@given(samples(), st.integers(1, 16))
def test_gridded(measure, sample, bits):
    y, p, weight = sample
    exact = Joint.from_arrays(y, p, sample_weight=weight)
    check(measure, exact, exact.coarsen(bits))


@bounded
@pytest.mark.parametrize("label", [0, 1])
def test_one_row_that_is_nearly_certain(measure, label):
    exact = Joint.from_arrays([label], [abs(label - 2.0**-50)])
    check(measure, exact, exact.coarsen(1))


def test_multipliers_of_the_solver_that_vanish():
    """Uncompiled kernels must not divide by a multiplier that has become 0."""
    p = [0, 2.0**-30, 0.3 + 2.0**-30, 0.3, 0, 0.767]
    mass0 = np.array([4, 4, 328856, 999999, 139014, 878187])
    mass1 = np.array([0, 0, 0, 0, 181972 + 12, 0])
    exact = Joint.from_masses(p, mass0, mass1)
    check(caldist.lower_distance, exact, exact.coarsen(11))


@bounded
@given(samples(), st.integers(1, 12))
def test_rounded_predictions_with_a_radius(measure, sample, steps):
    y, p, weight = sample
    exact = Joint.from_arrays(y, p, sample_weight=weight)
    rounded = Joint.from_masses(
        np.round(exact.prediction * steps) / steps, exact.mass0, exact.mass1, radius=0.5 / steps
    )
    check(measure, exact, rounded)


@bounded
@pytest.mark.parametrize("kind", FAMILIES)
def test_families(measure, kind):
    for bits in (3, 8, 16):
        y, p = family(kind, 300, np.random.default_rng(bits))
        exact = Joint.from_arrays(y, p)
        check(measure, exact, exact.coarsen(bits))


@bounded
def test_residuals_arranged_against_the_grid(measure):
    """Within each cell all ones to the left and zeros to the right, or the other way round."""
    for order in (1, -1):
        place = np.tile([0.01, 0.3, 0.7, 0.99], 16)
        p = (np.repeat(np.arange(16), 4) + place) / 16
        y = np.tile([1, 1, 0, 0][::order], 16)
        exact = Joint.from_arrays(y, p)
        check(measure, exact, exact.coarsen(4))


@bounded
def test_sixteen_bits_are_nearly_exact(measure):
    y, p = family("beta3", 2000, np.random.default_rng(0))
    exact = Joint.from_arrays(y, p)
    result = check(measure, exact, exact.coarsen(16))
    known = caldist.evaluate(exact, measures=[measure])[measure.name]  # udCE: from ldCE upwards
    assert result.upper - result.lower < known.upper - known.lower + 2e-3


@pytest.mark.parametrize("measure", UNBOUNDED, ids=lambda measure: measure.name)
def test_no_bound_where_none_exists(measure):
    joint = Joint.from_arrays([0, 1, 1], [0.2, 0.3, 0.9])
    exact = caldist.evaluate(joint, measures=[measure])[measure.name]
    assert exact.lower == exact.upper == exact.value
    rounded = caldist.evaluate(joint.coarsen(8), measures=[measure])[measure.name]
    assert rounded.lower is None
    assert rounded.upper is None


def test_what_is_shown_by_default():
    y, p = [0, 1, 1], [0.2, 0.3, 0.9]
    result = caldist.evaluate(Joint.from_arrays(y, p))
    assert list(result) == [measure.name for measure in shown_in("evaluate")]
    for name, evaluation in result.items():
        assert evaluation.value == pytest.approx(getattr(caldist.measures, name)(y, p), abs=1e-9)


def test_what_binds_a_default_is_bounded_likewise():
    """An option that says what holds anyway does not make the kernel error another one."""
    y, p = family("beta3", 50, np.random.default_rng(0))
    rounded = Joint.from_arrays(y, p).coarsen(8)
    bare = caldist.evaluate(rounded, measures=["kernel_ce"])["kernel_ce"]
    for options in ({"squared": False, "unbiased": False}, {"bandwidth": 1.0}):
        bound = caldist.kernel_ce.using(**options)
        assert caldist.evaluate(rounded, measures=[bound])[str(bound)] == bare
        assert bound.norm(rounded.prediction)(rounded.residual()) == bare.value
