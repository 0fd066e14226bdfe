"""Tests and comparisons of rounded joints: what rounding may have done is charged in full.

The same cells with predictions of their own have the same random draws; what differs is the charge.
"""

import dataclasses

import numpy as np
import pytest

import caldist
from caldist.inference.testing import calibration_test
from caldist.measures.registry import find

NORMS = ["smooth_ce", "kernel_ce"]


def rounded(n, power, seed, bits):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p**power).astype(int)
    return caldist.Joint.from_arrays(y, p).coarsen(bits)


def own(joint):
    """Return the joint of predictions that are those of the cells."""
    return dataclasses.replace(joint, radius=0.0, grid=None)


def moves(measure, joint):
    """Return how far below and above the cells' value that of the rows may lie."""
    value = measure.of(joint)
    _, lower, upper = measure.enclosed(joint)
    return max(0.0, value - lower), max(0.0, upper - value)


@pytest.mark.parametrize("name", ["auto", "smooth_ce", "spiegelhalter"])
def test_drawn_labels_miss_their_level_by_what_is_added(name):
    joint = rounded(300, 1.3, 0, bits=7)
    missed = joint.grid.drawing_error
    options = {"measure": name, "n_resamples": 99, "rng": 1, "grid": None}
    found, plain = calibration_test(joint, **options), calibration_test(own(joint), **options)
    assert 0 < missed < 1 - plain.pvalue
    assert (found.rounding, plain.rounding) == (missed, 0)
    for one, other in zip((found, *found.components), (plain, *plain.components), strict=True):
        assert one.statistic == other.statistic
        assert one.pvalue == min(1.0, other.pvalue + missed)


@pytest.mark.parametrize("n", [60, 300])  # replicates are the better way, then splitting
@pytest.mark.parametrize("name", [*NORMS, "lower_distance"])
def test_a_tolerance_is_that_of_the_rows(name, n):
    """Rounding may have raised the value: that is tolerated, too. Sums of cells may lower it."""
    joint, measure = rounded(n, 2.0, 0, bits=4), find(name)
    raised = measure.of(joint) - measure.enclosed(joint)[1]
    assert abs(raised) > 1e-5
    found = []
    for tolerance in np.linspace(0.01, 0.2, 20):
        options = {"measure": name, "n_resamples": 39, "rng": 1}
        result = calibration_test(joint, tolerance=tolerance, **options)
        plain = calibration_test(own(joint), tolerance=tolerance + raised, **options)
        assert result.pvalue == pytest.approx(plain.pvalue, rel=1e-9)
        assert (result.rounding, result.tolerance) == (max(0.0, raised), tolerance)
        found.append(result.pvalue)
    assert len(set(found)) > 3


@pytest.mark.parametrize("name", [*NORMS, "brier_score"])
def test_a_comparison_moves_its_ends_and_shrinks_the_difference(name):
    a, b = rounded(300, 1.1, 0, bits=6), rounded(400, 1.5, 1, bits=5)
    measure = find(name)
    (below_a, above_a), (below_b, above_b) = moves(measure, a), moves(measure, b)
    rounding = max(below_a + above_b, above_a + below_b)
    options = {"measure": name, "n_resamples": 199, "rng": 1}

    def plain(risk):
        return caldist.compare(own(a), own(b), confidence_level=1 - risk, **options)

    found = caldist.compare(a, b, confidence_level=0.9, **options)
    assert 0 < rounding == pytest.approx(found.rounding)
    assert found.lower == pytest.approx(plain(0.1).lower - below_a - above_b)
    assert found.upper == pytest.approx(plain(0.1).upper + above_a + below_b)
    # Zero leaves the interval when its nearer end has passed what rounding may have hidden.
    p = found.pvalue
    assert plain(0.5).pvalue < p < 1
    step = 0 if name == "brier_score" else 3 / 200
    assert plain(p * (1 + 1e-7)).upper < -rounding <= plain(p * (1 - 1e-7) - step).upper
