"""The sums of a gridded joint: places, squares and weights; no rows, rows left out, files."""

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
from caldist.data import grid
from caldist.data.accumulator import Accumulator
from caldist.data.rows import Rows
from caldist.inference.sample import units_of
from caldist.measures.registry import all_measures
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
    sums = Accumulator(bits).update(y, p).joint.grid
    found = {
        (cell, label): (int(count[at]), int(place[at]), int(square[at]))
        for label, (count, place, square) in enumerate(
            (
                (sums.count0, sums.place0, sums.square0),
                (sums.count1, sums.place1, sums.square1),
            )
        )
        for at, cell in enumerate(sums.cell.tolist())
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
    # The sums still belong together.
    assert Joint.from_cells(**mine.arrays(), bits=fewer, n_rows=mine.n_rows).grid == mine


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


# -- weights ---------------------------------------------------------------------------------


def weighted_sums(y, p, weight, bits):
    """Return what a GROUP BY would, row by row."""
    scaled = p * 2.0**bits
    cell = np.floor(scaled)
    f = scaled - cell
    values = {
        "count": weight,
        "place": weight * np.floor(f * 2.0**31),
        "square": weight * np.floor(f * f * 2.0**31),
        "weight_square": weight**2,
    }
    sums = {"cell": cell.astype(int)}
    for name, value in values.items():
        sums |= {f"{name}0": (1 - y) * value, f"{name}1": y * value}
    return sums


@given(samples(weighted=True), st.integers(1, 30), st.randoms())
def test_weighted_cells_made_elsewhere_are_read(sample, bits, random):
    y, p, weight = sample
    weight = np.array([random.choice([0, 0.5, 1, 2, 1000]) for _ in weight])
    weight[0] = 1.0
    sums = weighted_sums(y, p, weight, bits)
    joint = Joint.from_cells(**sums, bits=bits, n_rows=y.size)
    assert joint == Joint.from_arrays(y, p, sample_weight=weight).coarsen(bits)
    whole = {name: np.ceil(part).astype(int) for name, part in sums.items()}
    if all(np.array_equal(whole[name], part) for name, part in sums.items()):
        assert Joint.from_cells(**whole, bits=bits, n_rows=y.size) == joint  # as SQL has them


def test_whole_weights_may_add_up_to_more_than_a_cell_has_rows():
    sums = {"count0": [9 * 10**9], "count1": [0], "place0": [0], "place1": [0]}
    squares = {"weight_square0": [27e18], "weight_square1": [0]}
    joint = Joint.from_cells([3], **sums, **squares, n_rows=3, bits=8)
    assert (joint.n_rows, joint.total) == (3, 9e9)
    assert joint.grid.weight_square0.tolist() == [27e18]
    with pytest.raises(ValueError, match=r"count0\[0\] is 9000000000.*at most 4294967296 rows"):
        Joint.from_cells([3], **sums, bits=8)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"weight_square0": [9]}, "weight_square1 is None: it goes with weight_square0"),
        ({"weight_square0": [101], "weight_square1": [0]}, "weight_square0[0] is 101"),
        ({"weight_square0": [100], "weight_square1": [1]}, "weight_square1[0] is 1"),
        ({"weight_square0": [49], "weight_square1": [0], "n_rows": 2}, "weight_square0[0] is 49"),
        ({"weight_square0": [0], "weight_square1": [0], "n_rows": 9}, "weight_square0[0] is 0"),
        ({"weight_square0": [-1], "weight_square1": [0]}, "weight_square0[0] is -1"),
        ({"weight_square0": [np.inf], "weight_square1": [0]}, "weight_square0[0] is inf"),
        ({"weight_square0": [50, 1], "weight_square1": [0]}, "weight_square0"),
        ({"n_rows": 9}, "n_rows is 9: count0 and count1 add up to 10 rows"),
        ({"n_rows": 0}, "n_rows is 0"),
    ],
)
def test_bad_sums_of_weights_are_refused(options, part):
    with pytest.raises(ValueError) as caught:
        Joint.from_cells([3], [10], [0], [100], [0], bits=8, **options)
    assert part in str(caught.value)


def test_what_is_said_of_the_rows_behind_cells():
    counted = Joint.from_cells([3], [10], [0], [100], [0], bits=8)
    assert counted == Joint.from_cells([3], [10], [0], [100], [0], bits=8, n_rows=10)
    assert counted.counts_rows
    weights = Joint.from_cells([3], [10.0], [0], [100], [0], bits=8)
    assert weights.n_rows is None
    assert not weights.counts_rows
    rows = Joint.from_cells([3], [10.0], [0], [100], [0], bits=8, n_rows=10)
    assert rows.n_rows == 10
    assert rows != counted  # rows of unknown weights
    with pytest.raises(ValueError, match="weight_square0, weight_square1 where rows have weights"):
        units_of(Rows.of(rows))


def test_tiny_weights_keep_their_rows():
    y, p, weight = np.array([0, 1, 1]), np.array([0.2, 0.2, 0.9]), np.array([1e-149, 2e-149, 1e-49])
    joint = Joint.from_arrays(y, p, sample_weight=weight).coarsen(8)
    sums = joint.grid.arrays()
    assert Joint.from_cells(**sums, bits=8, n_rows=3) == joint
    assert joint.weight_square0.tolist() == [pytest.approx(1e-298), 0]


def test_a_joint_whose_rows_have_no_weight(tmp_path):
    some = Joint.from_arrays([0, 1], [0.2, 0.7], sample_weight=[0.5, 1.5]).coarsen(8)
    none = Joint._from_grid(grid.empty(8, 3))
    assert (none.total, none.n_rows, none.prediction.size, none.counts_rows) == (0, 3, 0, False)
    assert none != Joint.empty(8)
    assert none + none == Joint._from_grid(grid.empty(8, 6))
    assert none.coarsen(4) == Joint._from_grid(grid.empty(4, 3))
    both = none + some
    assert both == some + none == dataclasses.replace(both, n_rows=5)
    assert both.grid.square0 is not None
    for name, array in some.grid.arrays().items():
        assert np.array_equal(both.grid.arrays()[name], array)
    none.save(tmp_path / "none")
    assert Joint.load(tmp_path / "none") == none
    assert copy.deepcopy(none) == none
    for read in (none.residual, none.normalized, none.prefix_sums):
        with pytest.raises(ValueError, match="joint has 3 rows, all of weight 0"):
            read()


# -- no rows, rows left out ------------------------------------------------------------------


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
        with pytest.raises(ValueError, match="joint has no rows"):
            read()
    for name, measure in all_measures().items():
        if measure.missing_option is None:
            with pytest.raises(ValueError, match="joint has no rows"):
                caldist.evaluate(none, measures=[name])
            with pytest.raises(ValueError, match="joint has no rows"):
                measure(none)
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
    assert Accumulator(8).update([1], [0.3]).update(a).joint.invalid == {"bad label": 2}
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


@pytest.mark.parametrize("bits", [None, 8])
def test_files_keep_rows_and_squared_weights(tmp_path, bits):
    joint = Joint.from_arrays([0, 1, 1, 0], [0.2, 0.2, 0.9, 0.4], sample_weight=[0.5, 2, 3, 0])
    joint = joint if bits is None else joint.coarsen(bits)
    joint.save(tmp_path / "joint.npz")
    with np.load(tmp_path / "joint.npz") as archive:
        assert archive["n_rows"] == 4
        for name in ("weight_square0", "weight_square1"):
            assert np.array_equal(archive[name], getattr(joint, name))
    found = Joint.load(tmp_path / "joint.npz")
    assert found == joint
    assert units_of(Rows.of(found)).count.tolist() == units_of(Rows.of(joint)).count.tolist()


@pytest.mark.parametrize("bits", [None, 8])
def test_a_file_that_has_lost_its_number_of_rows_is_refused(tmp_path, bits):
    """A flipped bit in the list of an archive's members can hide the last of them."""
    joint = Joint.from_arrays([0, 1, 1], [0.2, 0.2, 0.9], sample_weight=[0.5, 2, 3])
    joint = joint if bits is None else joint.coarsen(bits)
    joint.save(tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as archive:
        members = {name: array for name, array in archive.items() if name != "n_rows"}
    np.savez(tmp_path / "part.npz", **members)
    with pytest.raises(ValueError, match=r"part\.npz.*n_rows"):
        Joint.load(tmp_path / "part.npz")


def test_a_file_whose_number_of_rows_is_not_that_of_its_cells_is_refused(tmp_path):
    joint = Joint.from_arrays([0, 1], [0.2, 0.7]).coarsen(8)
    joint.save(tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as archive:
        np.savez(tmp_path / "wrong.npz", **{**archive, "n_rows": 3})
    with pytest.raises(ValueError, match=r"wrong\.npz.* n_rows is 3: .* 2 rows"):
        Joint.load(tmp_path / "wrong.npz")


def test_a_mean_that_rounds_up_stays_in_its_cell():
    cell = 2**30 - 2
    last = np.nextafter((cell + 1) * 2.0**-30, 0)
    joint = Joint.from_arrays([0, 1, 1], [last, last, (cell + 1) * 2.0**-30]).coarsen(30)
    assert joint.grid.cell.tolist() == [cell, cell + 1]
