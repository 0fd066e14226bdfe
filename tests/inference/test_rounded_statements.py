"""Statements about rounded joints: what rounding may have done is charged in full.

The same cells with predictions of their own have the same random draws; what differs is the charge.
"""

import dataclasses

import numpy as np
import pytest

import caldist
import class_oracles
from caldist import multiclass
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
    options = {"measure": name, "n_resamples": 99, "rng": 1}
    found, plain = calibration_test(joint, **options), calibration_test(own(joint), **options)
    assert 0 < missed < 1 - plain.pvalue
    assert (found.rounding, plain.rounding) == (missed, 0)
    for one, other in zip((found, *found.components), (plain, *plain.components), strict=True):
        assert one.statistic == other.statistic
        assert one.pvalue == min(1.0, other.pvalue + missed)


def test_every_row_may_have_another_label_where_cells_are_unknown():
    """A label changes with probability E|v - v'| at most, row by row."""
    exact = own(rounded(300, 1.3, 0, bits=7))
    options = {"measure": "smooth_ce", "n_resamples": 99, "rng": 1}
    plain = calibration_test(exact, **options)
    found = calibration_test(dataclasses.replace(exact, radius=1e-4), **options)
    assert found.rounding == pytest.approx(0.03)
    assert found.pvalue == pytest.approx(plain.pvalue + 0.03)
    assert calibration_test(dataclasses.replace(exact, radius=0.01), **options).pvalue == 1


@pytest.mark.slow
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


def test_regions_go_to_the_edges_of_their_cells():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = (rng.random(3000) < np.where((p > 0.5) & (p < 0.75) | (p > 0.9), 0.7, p)).astype(int)
    joint = caldist.Joint.from_arrays(y, p).coarsen(4)
    found, plain = (
        caldist.inference.miscalibrated_regions(one, rng=0) for one in (joint, own(joint))
    )
    assert len(found) == 2
    for one in found:
        [other] = [region for region in plain if region.gap == one.gap]
        assert one.lower == np.floor(16 * other.lower) / 16
        assert one.upper == np.floor(16 * other.upper) / 16 + 1 / 16
    assert found[-1].upper == 1


def test_the_net_benefit_at_the_mean_of_a_cell():
    """All its rows are counted as treated, and all with label 1 or all with label 0 may not be."""
    p = np.repeat([0.125, 0.375, 0.875], [30, 40, 30])
    y = np.r_[np.arange(30) < 6, np.arange(40) < 10, np.arange(30) < 20].astype(int)
    joint = caldist.Joint.from_arrays(y, p).coarsen(2)
    found, plain = (
        caldist.clinical.net_benefit(one, thresholds=[0.375]) for one in (joint, own(joint))
    )
    odds = 0.375 / 0.625
    assert found.model == plain.model == pytest.approx(30 / 100 - odds * 40 / 100)
    assert found.lower == pytest.approx(plain.lower - 10 / 100)
    assert found.upper == pytest.approx(plain.upper + odds * 30 / 100)


def test_the_share_of_a_class_in_rows_behind_a_summary():
    y, V = class_oracles.softmax(400, 3, 1.5, 4.0, 0)
    joints = [caldist.Joint.from_arrays(y == j, V[:, j]).coarsen(4) for j in range(3)]
    found, plain = (
        multiclass.classwise_table(parts, confidence_level=0.9)
        for parts in (joints, [own(joint) for joint in joints])
    )
    charged = 0
    for joint, one, other in zip(joints, found.lines, plain.lines, strict=True):
        raised = caldist.lower_distance.of(joint) - caldist.lower_distance.enclosed(joint)[1]
        assert raised > 1e-4
        assert one.lower == pytest.approx(max(0.0, other.lower - raised / 2), abs=1e-5)
        charged += one.lower > 0
    assert charged > 1


@pytest.mark.filterwarnings("ignore:only 1 of 2 rows have label 1:UserWarning")
def test_nothing_is_farther_from_calibration_than_1():
    joint = caldist.Joint.from_arrays([1, 0], [0.1, 0.9]).coarsen(2)
    assert joint.radius > 0
    assert caldist.confidence_interval(joint, measure="distance").upper == 1
