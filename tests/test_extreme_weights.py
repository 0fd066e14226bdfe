"""Weights near the least and the largest float: bounds stay bounds, and nothing warns.

Only ratios of weights matter. A weight that vanishes next to the largest one is refused.
"""

import numpy as np
import pandas as pd
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


SMALL = [1.0, 0.0, 1e-250, 0.25, 5e-324]
FIVE = [0, 1, 1, 0, 1], [0.125, 0.5, 0.75, 0.75, 0.9375]
CLASSES = [0, 1, 2, 0, 1], np.full((5, 4), 0.25)
ROWS = {
    "smooth_ce": lambda w: caldist.smooth_ce(*FIVE, sample_weight=w),
    "sums over rows": lambda w: caldist.brier_score(*FIVE, sample_weight=w),
    "sums over arrays": lambda w: caldist.log_loss(*map(np.array, FIVE), sample_weight=np.array(w)),
    "corp": lambda w: caldist.corp(*FIVE, sample_weight=w, score="log"),
    "from_arrays": lambda w: Joint.from_arrays(*FIVE, sample_weight=w),
    "accumulator": lambda w: Accumulator(bits=4).update(*FIVE, sample_weight=w),
    "several classes": lambda w: caldist.multiclass.classwise_distance(*CLASSES, sample_weight=w),
    "monitor": lambda w: caldist.Monitor().update(*FIVE, label=1, sample_weight=w),
}


@pytest.mark.parametrize("door", ROWS.values(), ids=ROWS)
def test_a_weight_that_vanishes_next_to_the_largest_is_refused(door):
    with pytest.raises(ValueError, match=r"^sample_weight\[2\] is 1e-250 .*at least 1e-100 times"):
        door(SMALL)
    with pytest.raises(ValueError, match=r"^sample_weight\[1\] is .*largest one, which is 3e\+100"):
        door([3e100, 2.9, 1.0, 1.0, 0.0])
    door([3e100, 3.1, 0.0, 1e100, 3e100])


def test_a_mass_that_vanishes_next_to_the_largest_is_refused():
    v = FIVE[1][:3]
    refused = pytest.raises(ValueError, match=r"\[1\] is 1e-250: a weight is 0 or at least 1e-100")
    with refused:
        Joint.from_cells([0, 1, 2], [1.0, 1e-250, 0], [0, 0, 1.0], [0.0] * 3, [0.0] * 3, bits=2)
    with refused:
        caldist.true_distance([0.5, 1, 0], v, mass=[1.0, 1e-250, 1.0])
    # Masses of a law may be as small as probabilities are.
    assert Joint.from_masses(v, [1.0, 1e-250, 0], [0, 0, 1.0]).mass0[1] == 1e-250
    assert Joint.from_masses([0.5], [1.0], [1e-250]).mass1 == 1e-250


def test_parts_of_which_one_vanishes_next_to_the_other_do_not_add_up():
    tiny = Joint.from_arrays([0, 1], [0.25, 0.75], sample_weight=[1e-250, 2e-250])
    usual = Joint.from_arrays([0, 1], [0.5, 0.875])
    for one, other in ((tiny, usual), (tiny.coarsen(4), usual.coarsen(4))):
        with pytest.raises(ValueError, match=r"1e-250 .*at least 1e-100 times"):
            one + other
    filled = Accumulator(bits=4).update(usual)
    with pytest.raises(ValueError, match="at least 1e-100 times"):
        filled.update(tiny)
    assert filled.joint == usual.coarsen(4)


def test_tensors_of_such_weights_are_refused_too():
    torch = pytest.importorskip("torch")
    from caldist import torch as measures

    y, v = map(torch.tensor, FIVE)
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is 1e-250 .*at least 1e-100 times"):
        measures.binned_ece(v, y, sample_weight=torch.tensor(SMALL, dtype=torch.float64))


def test_a_table_with_a_cell_that_vanishes_next_to_the_largest_is_refused():
    table = pd.DataFrame(dict(zip("yvw", (*FIVE, SMALL), strict=True)))
    with pytest.raises(ValueError, match="at least 1e-100 times"):
        caldist.summarize(table, y_true="y", y_prob="v", sample_weight="w")


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
