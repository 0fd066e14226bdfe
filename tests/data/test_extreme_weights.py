"""Weights far from 1: only their ratios matter.

A weight is 0 or at least 1e-100 times the largest one. In a joint, which keeps the unit of its
weights to merge with others, the largest lies between 1e-50 and 1e100.
"""

import numpy as np
import pandas as pd
import pytest

import caldist
from caldist import Accumulator, Joint

RNG = np.random.default_rng(3)
V = RNG.random(60)
Y = (RNG.random(60) < V**2).astype(int)


@pytest.mark.parametrize("factor", [1e-300, 1e-60, 1e-49, 1e90, 1e110, 1e300])
def test_only_ratios_of_weights_matter(factor):
    """Whatever the unit of weights is, the values are the same; a joint may refuse the unit."""
    weight = RNG.uniform(0.1, 1, 60)
    usual = Joint.from_arrays(Y, V, sample_weight=weight)
    made = {
        "rows": lambda: caldist.evaluate(Y, V, sample_weight=factor * weight),
        "a joint": lambda: caldist.evaluate(Joint.from_arrays(Y, V, sample_weight=factor * weight)),
        "masses": lambda: caldist.evaluate(
            Joint.from_masses(usual.prediction, factor * usual.mass0, factor * usual.mass1)
        ),
        "a grid": lambda: caldist.evaluate(
            Joint.from_arrays(Y, V, sample_weight=factor * weight).coarsen(12).coarsen(3)
        ),
        "a sum": lambda: caldist.evaluate(
            sum(
                Joint.from_arrays(Y[part], V[part], sample_weight=factor * weight[part])
                for part in (slice(0, 7), slice(7, 60))
            )
        ),
    }
    for name, make in made.items():
        if name != "rows" and not 1e-50 <= factor <= 1e100:
            with pytest.raises(ValueError, match=r"between 1e-50 and 1e\+100 here\. Divide"):
                make()
            continue
        expected = caldist.evaluate(usual.coarsen(12).coarsen(3) if name == "a grid" else usual)
        for measure, found in make().items():
            for part in ("value", "lower", "upper"):
                number = getattr(expected[measure], part)
                number = None if number is None else pytest.approx(number, rel=1e-9, abs=1e-12)
                assert getattr(found, part) == number, (name, measure)


def test_the_level_of_a_test_does_not_depend_on_the_unit_of_the_weights():
    errors = []
    for weight in (1e-50, 1e100):
        joint = Joint.from_arrays(Y, V, sample_weight=np.full(60, weight)).coarsen(4)
        errors.append(joint.grid.drawing_error)
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)


def test_small_weights_keep_their_unit_and_merge():
    parts = [slice(0, 30), slice(30, 60)]
    weight = np.full(60, 2.0**-160)
    whole = Joint.from_arrays(Y, V, sample_weight=weight).coarsen(5)
    made = [Joint.from_arrays(Y[at], V[at], sample_weight=weight[at]).coarsen(5) for at in parts]
    assert made[0] + made[1] == whole
    assert whole.total == 60 * 2.0**-160
    filled = Accumulator(bits=5)
    filled.update(Y, V, sample_weight=weight)
    assert filled.joint == whole


SMALL = [1.0, 0.0, 1e-250, 0.25, 5e-324]
FIVE = [0, 1, 1, 0, 1], [0.125, 0.5, 0.75, 0.75, 0.9375]
CLASSES = [0, 1, 2, 0, 1], np.full((5, 4), 0.25)
ROWS = {
    "smooth_ce": lambda w: caldist.smooth_ce(*FIVE, sample_weight=w),
    "sums over rows": lambda w: caldist.brier_score(*FIVE, sample_weight=w),
    "sums over arrays": lambda w: caldist.log_loss(*map(np.array, FIVE), sample_weight=np.array(w)),
    "corp": lambda w: caldist.measures.corp(*FIVE, sample_weight=w, score="log"),
    "from_arrays": lambda w: Joint.from_arrays(*FIVE, sample_weight=w),
    "accumulator": lambda w: Accumulator(bits=4).update(*FIVE, sample_weight=w),
    "several classes": lambda w: caldist.multiclass.classwise_distance(*CLASSES, sample_weight=w),
    "monitor": lambda w: caldist.Monitor().update(*FIVE, batch=1, sample_weight=w),
}


@pytest.mark.parametrize("door", ROWS.values(), ids=ROWS)
def test_a_weight_that_vanishes_next_to_the_largest_is_refused(door):
    with pytest.raises(ValueError, match=r"^sample_weight\[2\] is 1e-250: .*at least 1e-100 times"):
        door(SMALL)
    with pytest.raises(ValueError, match=r"^sample_weight\[1\] is .*largest one, which is 3e\+90"):
        door([3e90, 2.9e-10, 1.0, 1.0, 0.0])
    door([3e90, 3.1e-10, 0.0, 1e90, 3e90])


@pytest.mark.parametrize("door", ROWS)
def test_only_joints_refuse_a_unit_of_weights(door):
    units = [1e100, 1e10, 0.0, 2e100, 1e100], [1e-60, 0.0, 9e-51, 1e-70, 1e-60]
    for weight, at in zip(units, (3, 2), strict=True):
        if door in {"from_arrays", "accumulator"}:
            with pytest.raises(ValueError, match=rf"^sample_weight\[{at}\] is .*between 1e-50 and"):
                ROWS[door](weight)
        else:
            ROWS[door](weight)


def test_rows_in_any_unit_have_intervals_and_tests():
    weight = RNG.uniform(0.1, 1, 60)
    expected = caldist.confidence_interval(Y, V, sample_weight=weight, rng=0)
    for factor in (2.0**-900, 2.0**900):
        assert caldist.confidence_interval(Y, V, sample_weight=factor * weight, rng=0) == expected


def test_a_mass_that_vanishes_next_to_the_largest_is_refused():
    v = FIVE[1][:3]
    refused = pytest.raises(ValueError, match=r"\[1\] is 1e-250: a weight is 0 or at least 1e-100")
    with refused:
        Joint.from_cells([0, 1, 2], [1.0, 1e-250, 0], [0, 0, 1.0], [0.0] * 3, [0.0] * 3, bits=2)
    with refused:
        caldist.measures.true_distance([0.5, 1, 0], v, mass=[1.0, 1e-250, 1.0])
    # Masses of a law may be as small as probabilities are.
    assert Joint.from_masses(v, [1.0, 1e-250, 0], [0, 0, 1.0]).mass0[1] == 1e-250
    assert Joint.from_masses([0.5], [1.0], [1e-250]).mass1 == 1e-250


def test_parts_of_which_one_vanishes_next_to_the_other_do_not_add_up():
    small = Joint.from_arrays([0, 1], [0.25, 0.75], sample_weight=[1e-40, 2e-40])
    large = Joint.from_arrays([0, 1], [0.5, 0.875], sample_weight=[1e70, 1e70])
    for one, other in ((small, large), (small.coarsen(4), large.coarsen(4))):
        with pytest.raises(ValueError, match=r"1e-40: .*at least 1e-100 times"):
            one + other
    filled = Accumulator(bits=4).update(large)
    with pytest.raises(ValueError, match="at least 1e-100 times"):
        filled.update(small)
    assert filled.joint == large.coarsen(4)


def test_tensors_of_such_weights_are_refused_too():
    torch = pytest.importorskip("torch")
    from caldist import torch as measures

    y, v = map(torch.tensor, FIVE)
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is 1e-250: .*at least 1e-100 times"):
        measures.binned_ece(v, y, sample_weight=torch.tensor(SMALL, dtype=torch.float64))


def test_a_table_with_a_cell_that_vanishes_next_to_the_largest_is_refused():
    table = pd.DataFrame(dict(zip("yvw", (*FIVE, SMALL), strict=True)))
    with pytest.raises(ValueError, match="at least 1e-100 times"):
        caldist.summarize(table, y_true="y", y_prob="v", sample_weight="w")


@pytest.mark.parametrize("weight", [1e101, 1e200, 1e308])
def test_weights_that_are_too_large_are_refused_without_a_warning(weight):
    """Warnings are errors in these tests."""
    refused = pytest.raises(ValueError, match=r"between 1e-50 and 1e\+100 here.* by their maximum")
    with refused:
        Joint.from_masses([0.25, 0.5], [weight, 0.0], [0.0, weight / 4])
    with refused:
        Joint.from_arrays([0, 1], [0.2, 0.7], sample_weight=[weight, weight])
    with refused:
        Accumulator(bits=8).update([0, 1], [0.2, 0.7], sample_weight=[weight, weight])
    with refused:
        Joint.from_cells([1], [weight], [0.0], [weight], [0.0], bits=1)
    with refused:
        caldist.summarize(
            pd.DataFrame({"y": [0, 1], "v": [0.2, 0.7], "w": [weight, weight / 2]}),
            y_true="y", y_prob="v", sample_weight="w",
        )  # fmt: skip
