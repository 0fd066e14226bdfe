"""The certified effect of rounding contains the exact value, on random and adversarial rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
from caldist import _kernels
from caldist.measures.registry import MEASURES
from strategies import FAMILIES, family, samples

slow = pytest.mark.skipif(not _kernels.COMPILED, reason="seconds a call as plain Python")
BOUNDED = [
    pytest.param(name, marks=slow if name == "lower_distance" else ())
    for name, measure in MEASURES.items()
    if measure.rounding is not None
]
UNBOUNDED = [name for name, measure in MEASURES.items() if measure.rounding is None]


def check(name, exact, rounded):
    result = caldist.evaluate(rounded, measures=[name])[name]
    truth = caldist.evaluate(exact, measures=[name])[name]  # known to its tolerance
    assert result.lower - 1e-13 <= truth.upper
    assert truth.lower <= result.upper + 1e-13
    assert 0 <= result.lower <= result.value <= result.upper
    return result


@pytest.mark.parametrize("name", BOUNDED)
@given(samples(), st.integers(1, 16))
def test_gridded(name, sample, bits):
    y, p, weight = sample
    exact = caldist.Joint.from_arrays(y, p, sample_weight=weight)
    check(name, exact, exact.coarsen(bits))


@pytest.mark.parametrize("name", BOUNDED)
@given(samples(), st.integers(1, 12))
def test_rounded_predictions_with_a_radius(name, sample, steps):
    y, p, weight = sample
    exact = caldist.Joint.from_arrays(y, p, sample_weight=weight)
    rounded = caldist.Joint.from_masses(
        np.round(exact.prediction * steps) / steps, exact.mass0, exact.mass1, radius=0.5 / steps
    )
    check(name, exact, rounded)


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("bits", [3, 8, 16])
def test_families(name, kind, bits):
    y, p = family(kind, 300, np.random.default_rng(bits))
    exact = caldist.Joint.from_arrays(y, p)
    check(name, exact, exact.coarsen(bits))


@pytest.mark.parametrize("name", BOUNDED)
def test_residuals_arranged_against_the_grid(name):
    """Within each cell all ones to the left and zeros to the right, or the other way round."""
    for order in (1, -1):
        place = np.tile([0.01, 0.3, 0.7, 0.99], 16)
        p = (np.repeat(np.arange(16), 4) + place) / 16
        y = np.tile([1, 1, 0, 0][::order], 16)
        exact = caldist.Joint.from_arrays(y, p)
        check(name, exact, exact.coarsen(4))


@pytest.mark.parametrize("name", BOUNDED)
def test_sixteen_bits_are_nearly_exact(name):
    y, p = family("beta3", 2000, np.random.default_rng(0))
    result = caldist.evaluate(caldist.Joint.from_arrays(y, p).coarsen(16), measures=[name])[name]
    assert result.upper - result.lower < 2e-3


@pytest.mark.parametrize("name", UNBOUNDED)
def test_no_bound_where_none_exists(name):
    joint = caldist.Joint.from_arrays([0, 1, 1], [0.2, 0.3, 0.9])
    exact = caldist.evaluate(joint, measures=[name])[name]
    assert exact.lower == exact.upper == exact.value
    rounded = caldist.evaluate(joint.coarsen(8), measures=[name])[name]
    assert rounded.lower is None
    assert rounded.upper is None


def test_all_measures_by_default():
    joint = caldist.Joint.from_arrays([0, 1, 1], [0.2, 0.3, 0.9])
    result = caldist.evaluate(joint)
    assert list(result) == list(MEASURES)
    for name, evaluation in result.items():
        function = MEASURES[name].function
        assert evaluation.value == pytest.approx(function([0, 1, 1], [0.2, 0.3, 0.9]), abs=1e-9)
