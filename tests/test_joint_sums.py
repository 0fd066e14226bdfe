"""The sums of a gridded joint: places and squares, batches, no rows, rows left out."""

import copy
import dataclasses
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
from caldist import Joint
from caldist.data.grid import ROWS_PER_CELL
from caldist.measures.registry import MEASURES
from strategies import samples


def sums_of(y, p, weight, bits):
    """Return what a cell of each label should hold, row by row, in exact arithmetic."""
    cells = {}
    for label, v, w in zip(y.tolist(), p.tolist(), weight, strict=True):
        scaled = Fraction(v) * 2**bits
        cell = math.floor(scaled)
        f = float(scaled - cell)
        row = (w, w * math.floor(f * 2.0**31), w * math.floor(f * f * 2.0**31))
        old = cells.setdefault((cell, label), (0, 0, 0))
        cells[cell, label] = tuple(a + b for a, b in zip(old, row, strict=True))
    return cells


@given(samples(weighted=False), st.integers(1, 30))
def test_cells_hold_integer_sums_of_places_and_squares(sample, bits):
    y, p, _ = sample
    grid = Joint.empty(bits).update(y, p).grid
    found = {
        (cell, label): (int(count[at]), int(place[at]), int(square[at]))
        for label, (count, place, square) in enumerate(
            (
                (grid.count0, grid.place0, grid.square0),
                (grid.count1, grid.place1, grid.square1),
            )
        )
        for at, cell in enumerate(grid.cell.tolist())
        if count[at]
    }
    assert found == sums_of(y, p, [1] * y.size, bits)


@given(samples(min_size=2), st.integers(1, 20), st.data())
def test_coarsened_squares_are_too_small_by_at_most_two_units_a_row(sample, bits, data):
    y, p, weight = sample
    fewer = data.draw(st.integers(1, bits))
    exact = Joint.from_arrays(y, p, sample_weight=weight)
    mine, rows = exact.coarsen(bits).coarsen(fewer).grid, exact.coarsen(fewer).grid
    for label in "01":
        count = getattr(rows, "count" + label)
        for name, units in (("place", 1), ("square", 2)):
            got, want = (getattr(grid, name + label) for grid in (mine, rows))
            slack = 1e-5 * count + 1e-9 * want  # of the product, and of sums of weights
            assert (got <= want + count + slack).all()
            assert (got >= want - units * count - slack).all()
    Joint.from_cells(*mine.arrays().values(), bits=fewer)  # the sums still belong together


def test_squares_stay_only_where_both_have_them():
    a = Joint.from_arrays([0, 1], [0.2, 0.7]).coarsen(8)
    b = Joint.from_cells([3], [1], [0], [7], [0], bits=8)
    assert (a + a).grid.square0 is not None
    assert (a + b).grid.square0 is None
    assert (b + a) == (a + b)
    assert a == Joint.from_cells(*list(a.grid.arrays().values())[:5], bits=8)


@pytest.mark.parametrize(
    ("squares", "part"),
    [
        (([2], None), "square1"),
        (([101], [0]), "square0[0]"),
        (([0], [1]), "square1[0]"),
        (([0], [0]), "square0[0]"),
        (([-1], [0]), "square0[0]"),
        (([1, 2], [0]), "square0"),
    ],
)
def test_bad_squares_are_refused(squares, part):
    place = 100 if part != "square0[0]" or squares[0] != [0] else 2**30
    with pytest.raises(ValueError) as caught:
        Joint.from_cells([3], [1], [0], [place], [0], *squares, bits=8)
    assert part in str(caught.value)


@given(samples(min_size=4, weighted=False), st.integers(1, 30), st.data())
def test_batches_in_any_order_give_the_bits_of_one_pass(sample, bits, data):
    y, p, _ = sample
    whole = Joint.from_arrays(y, p).coarsen(bits)
    batch = np.array(data.draw(st.lists(st.integers(0, 4), min_size=y.size, max_size=y.size)))
    order = data.draw(st.permutations(sorted(set(batch.tolist()))))
    running = Joint.empty(bits)
    parts = []
    for number in order:
        rows = batch == number
        assert running.update(y[rows], p[rows]) is running
        parts.append(Joint.empty(bits).update(y[rows], p[rows]))
    assert running == whole
    while len(parts) > 1:  # merge neighbours in a drawn order
        at = data.draw(st.integers(0, len(parts) - 2))
        parts[at : at + 2] = [parts[at + 1] + parts[at]]
    assert parts[0] == whole


@given(samples(min_size=2, weighted=True), st.integers(1, 20))
def test_weighted_batches_agree_to_rounding(sample, bits):
    y, p, weight = sample
    weight = weight + 0.3
    whole = Joint.from_arrays(y, p, sample_weight=weight).coarsen(bits).grid.arrays()
    running = Joint.empty(bits)
    for at in range(y.size):
        running.update(y[at : at + 1], p[at : at + 1], sample_weight=weight[at : at + 1])
    for name, array in running.grid.arrays().items():
        assert array == pytest.approx(whole[name], rel=1e-12)


@given(samples(min_size=2), st.data())
def test_an_exact_joint_takes_batches_too(sample, data):
    y, p, weight = sample
    cut = data.draw(st.integers(1, y.size - 1))
    parts = [slice(cut), slice(cut, None)]
    weights = [None if weight is None else weight[rows] + 0.5 for rows in parts]
    joint, other = (
        Joint.from_arrays(y[rows], p[rows], sample_weight=w)
        for rows, w in zip(parts, weights, strict=True)
    )
    whole = joint + other
    assert joint.update(y[parts[1]], p[parts[1]], sample_weight=weights[1]) is joint
    assert joint == whole


@pytest.mark.parametrize("bits", [None, 8])
def test_an_update_leaves_what_was_handed_out(bits):
    joint = Joint.from_arrays([0, 1], [0.2, 0.7])
    joint = joint if bits is None else joint.coarsen(bits)
    handed_out = joint.prediction, joint.mass0, joint.mass1
    before = copy.deepcopy(joint)
    joint.update([1, 1], [0.7, 0.9])
    assert joint.n_rows == 4
    assert joint != before
    for mine, theirs in zip(
        handed_out, (before.prediction, before.mass0, before.mass1), strict=True
    ):
        assert np.array_equal(mine, theirs)
    with pytest.raises(AttributeError):
        joint.n_rows = 5


@pytest.mark.parametrize(
    ("y", "p", "weight"),
    [
        ([0, 2], [0.1, 0.2], None),
        ([0, 1], [0.1, np.nan], None),
        ([0, 1], [0.1, 0.2], [1, -1]),
        ([0, 1], [0.1, 0.2], [1e308, 1e308]),
        ([0], [0.2], [ROWS_PER_CELL]),
        ([], [], None),
    ],
)
def test_a_failed_update_changes_nothing(y, p, weight):
    joint = Joint.empty(8).update([0, 1], [0.2, 0.7])
    before = copy.deepcopy(joint)
    with pytest.raises(ValueError):
        joint.update(y, p, sample_weight=weight)
    assert joint == before


def test_a_joint_without_rows(tmp_path):
    none = Joint.empty(8)
    assert (none.total, none.n_rows, none.radius, none.prediction.size) == (0, 0, 0, 0)
    assert none + none == none
    assert none.coarsen(4) == Joint.empty(4)
    some = Joint.from_arrays([0, 1], [0.2, 0.7]).coarsen(8)
    assert none + some == some + none == some
    weighted = Joint.from_arrays([0, 1], [0.2, 0.7], sample_weight=[0.5, 1.5]).coarsen(8)
    assert none + weighted == weighted
    none.save(tmp_path / "none")
    assert Joint.load(tmp_path / "none") == none
    for read in (none.residual, none.normalized, none.prefix_sums):
        with pytest.raises(ValueError, match="the joint has no rows"):
            read()
    for name, measure in MEASURES.items():
        with pytest.raises(ValueError, match="the joint has no rows"):
            caldist.evaluate(none, measures=[name])
        with pytest.raises(ValueError, match=r"no rows|empty"):
            measure.of_joint(none)
    with pytest.raises(ValueError, match="bits"):
        Joint.empty(31)


def test_rows_left_out_are_counted_through_everything(tmp_path):
    joint = Joint.from_arrays([0, 1], [0.2, 0.7]).coarsen(8)
    a = dataclasses.replace(joint, invalid={"bad label": 2, "bad weight": 0})
    b = dataclasses.replace(joint, invalid={"bad label": 1, "missing prediction": 3})
    assert dict(a.invalid) == {"bad label": 2}
    assert dict((a + b).invalid) == {"bad label": 3, "missing prediction": 3}
    assert a + b == b + a
    assert a != joint
    assert joint.invalid == {}
    assert a.coarsen(4).invalid == a.invalid
    assert "invalid={'bad label': 2}" in repr(a)
    a.save(tmp_path / "a")
    assert Joint.load(tmp_path / "a") == a
    assert copy.deepcopy(a) == pickle.loads(pickle.dumps(a)) == a
    assert a.update([1], [0.3]).invalid == {"bad label": 2}
    exact = dataclasses.replace(Joint.from_arrays([0, 1], [0.2, 0.7]), invalid={"bad label": 1})
    assert dict((exact + exact).invalid) == {"bad label": 2}
    assert exact.coarsen(8).invalid == exact.invalid
    with pytest.raises(TypeError):
        a.invalid["bad label"] = 5
    for wrong in ({"bad lable": 1}, {"bad label": -1}):
        with pytest.raises(ValueError, match="invalid"):
            dataclasses.replace(joint, invalid=wrong)


def test_copies_are_read_only_too():
    joint = pickle.loads(pickle.dumps(Joint.from_arrays([0, 1], [0.2, 0.7]).coarsen(8)))
    for array in (joint.prediction, joint.mass1, joint.grid.place0):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_files_of_the_first_format_are_read(tmp_path):
    grid = Joint.from_arrays([0, 1], [0.2, 0.7]).coarsen(8).grid.arrays()
    old = {name: array for name, array in grid.items() if not name.startswith("square")}
    np.savez(tmp_path / "old.npz", format="caldist-joint-1", bits=8, **old)
    loaded = Joint.load(tmp_path / "old.npz")
    assert loaded == Joint.from_cells(*old.values(), bits=8)
    np.savez(tmp_path / "new.npz", format="caldist-joint-3", bits=8, **old)
    with pytest.raises(ValueError, match="caldist-joint-3"):
        Joint.load(tmp_path / "new.npz")


def test_a_mean_that_rounds_up_stays_in_its_cell():
    cell = 2**30 - 2
    last = np.nextafter((cell + 1) * 2.0**-30, 0)
    joint = Joint.empty(30).update([0, 1, 1], [last, last, (cell + 1) * 2.0**-30])
    assert joint.grid.cell.tolist() == [cell, cell + 1]
