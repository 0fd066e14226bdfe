"""Joint: making, merging, rounding, saving."""

import copy
import dataclasses
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caldist import Joint
from caldist.data import sorting
from caldist.data.grid import ROWS_PER_CELL
from caldist.data.rows import Rows
from caldist.inference.sample import units_of
from strategies import family, samples


@given(samples())
def test_from_arrays_collects_equal_predictions(sample):
    y, p, weight = sample
    joint = Joint.from_arrays(y, p, sample_weight=weight)
    w = np.ones(y.size) if weight is None else weight
    assert (np.diff(joint.prediction) > 0).all()
    for v, m0, m1 in zip(joint.prediction, joint.mass0, joint.mass1, strict=True):
        assert m0 == pytest.approx(w[(p == v) & (y == 0)].sum())
        assert m1 == pytest.approx(w[(p == v) & (y == 1)].sum())
    assert joint.total == pytest.approx(w.sum())
    assert joint.n_rows == y.size
    assert joint.radius == 0


def test_large_inputs_are_sorted_in_two_threads_to_the_same_joint(monkeypatch):
    y, p = family("beta3", 2000, np.random.default_rng(0))
    small = Joint.from_arrays(y, p)
    monkeypatch.setattr(sorting, "_ROWS_PER_THREAD", 10)
    monkeypatch.setenv("CALDIST_NUM_THREADS", "2")
    assert Joint.from_arrays(y, p) == small


# -- rows and mass are two facts -------------------------------------------------------------


@given(samples(), st.sampled_from([None, 1, 8, 30]))
def test_weight_one_is_no_weight(sample, bits):
    """Σw = n = Σw² says that every weight is 1."""
    y, p, _ = sample
    bare, weighted = (
        Joint.from_arrays(y, p, sample_weight=weight) for weight in (None, np.ones(y.size))
    )
    if bits is not None:
        bare, weighted = bare.coarsen(bits), weighted.coarsen(bits)
    assert bare.counts_rows
    assert weighted.counts_rows
    assert weighted == bare
    one, other = units_of(Rows.of(bare)), units_of(Rows.of(weighted))
    for name in ("place", "label", "count", "mass"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert other.share == pytest.approx(one.share, rel=1e-15)


@given(
    samples(weighted=True), st.sampled_from([None, 1, 8, 30]), st.sampled_from([2.0**-40, 1024.0])
)
def test_the_number_of_rows_is_not_that_of_their_weights(sample, bits, scale):
    y, p, weight = sample
    one, other = (Joint.from_arrays(y, p, sample_weight=weight * factor) for factor in (1, scale))
    if bits is not None:
        one, other = one.coarsen(bits), other.coarsen(bits)
    assert one.n_rows == other.n_rows == y.size
    for label, square in enumerate(one._weight_squares()):
        assert square.sum() == pytest.approx((weight[y == label] ** 2).sum())
    mine, others = units_of(Rows.of(one)), units_of(Rows.of(other))
    assert mine.count.tolist() == others.count.tolist()
    assert others.share == pytest.approx(mine.share)
    assert mine.n_rows <= y.size


@pytest.mark.parametrize("weight", [1.0, 1000.0, 0.5, 3e9, 3e9 + 0.5])
def test_ten_rows_of_one_weight_are_ten_rows(weight):
    """Whole weights were taken for numbers of rows: 10,000 of them, or too many for a cell."""
    y, p = [0, 1] * 5, np.linspace(0.05, 0.95, 10)
    exact = Joint.from_arrays(y, p, sample_weight=np.full(10, weight))
    for joint in (exact, exact.coarsen(16), exact.coarsen(16).coarsen(2)):
        assert joint.n_rows == 10
        assert joint.total == 10 * weight
        units = units_of(Rows.of(joint))
        assert units.n_rows == 10
        assert units.share == pytest.approx(np.full(units.share.size, 0.1))
        assert units.standard_error(units.label.astype(float)) == pytest.approx(0.5 / 10**0.5)


def test_unequal_weights_have_the_standard_error_of_their_rows():
    rng = np.random.default_rng(0)
    y, p, weight = rng.integers(0, 2, 400), rng.integers(0, 8, 400) / 8, rng.gamma(0.5, size=400)
    rows = units_of(Rows.of(y, p, sample_weight=weight))
    found = units_of(Rows.of(Joint.from_arrays(y, p, sample_weight=weight).coarsen(3)))
    assert found.n_rows < 200
    function = rng.random(8)
    truth, close = (
        units.standard_error(function[units.place] + 0.3 * units.label) for units in (rows, found)
    )
    assert close == pytest.approx(truth, rel=1e-9)


@given(samples(weighted=True), st.integers(1, 30))
def test_rows_of_weight_zero_count_as_rows(sample, bits):
    y, p, weight = sample
    none = np.zeros(3)
    joint = Joint.from_arrays(y, p, sample_weight=weight)
    longer = Joint.from_arrays(
        np.r_[y, 0, 1, 1], np.r_[p, p[0], 0.123, 1.0], sample_weight=np.r_[weight, none]
    )
    for one, other in ((joint, longer), (joint.coarsen(bits), longer.coarsen(bits))):
        assert other.n_rows == one.n_rows + 3
        for name in ("prediction", "mass0", "mass1"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        for mine, others in zip(one._weight_squares(), other._weight_squares(), strict=True):
            assert np.array_equal(mine, others)


# -- a value ---------------------------------------------------------------------------------

WEIGHT = [0.5, 2, 3]
VALUES = {
    "exact": Joint.from_arrays([0, 1, 1], [0.2, 0.2, 0.9]),
    "weighted": Joint.from_arrays([0, 1, 1], [0.2, 0.2, 0.9], sample_weight=WEIGHT),
    "weight one": Joint.from_arrays([0, 1, 1], [0.2, 0.2, 0.9], sample_weight=[1, 1, 1]),
    "masses": Joint.from_masses([0.2, 0.9], [1, 0], [1, 1]),
    "masses of rows": Joint.from_masses([0.2, 0.9], [1, 0], [1, 1], n_rows=3),
    "radius": Joint.from_masses([0.2, 0.9], [1, 0], [1, 1], n_rows=3, radius=0.1),
}
VALUES |= {f"gridded {name}": VALUES[name].coarsen(8) for name in list(VALUES)[:5]}
VALUES |= {
    "without squares": Joint.from_cells([3, 7], [2, 0], [1, 1], [5, 0], [7, 9], bits=3),
    "with squares": Joint.from_cells(
        [3, 7], [2, 0], [1, 1], [5, 0], [7, 9], [0, 0], [0, 0], bits=3
    ),
    "other squares": Joint.from_cells(
        [3, 7], [2, 0], [1, 1], [5, 0], [7, 9], [1, 0], [2, 0], bits=3
    ),
    "floats": Joint.from_cells([3, 7], [2.0, 0], [1, 1], [5, 0], [7, 9], bits=3, n_rows=4),
    "unknown weights": Joint.from_cells([3, 7], [2.0, 0], [1, 1], [5, 0], [7, 9], bits=3),
    "no rows": Joint.empty(8),
    "no rows again": Joint.empty(8) + Joint.empty(8),
    "rows left out": dataclasses.replace(Joint.empty(8), invalid={"bad label": 1}),
}
each_value = pytest.mark.parametrize("joint", VALUES.values(), ids=VALUES)


def arrays_of(joint):
    names = ("prediction", "mass0", "mass1", "weight_square0", "weight_square1")
    found = {name: getattr(joint, name) for name in names}
    found |= {} if joint.grid is None else joint.grid.arrays()
    return {name: array for name, array in found.items() if array is not None}


@each_value
def test_nothing_changes_a_joint(joint):
    for part in (joint, copy.copy(joint), copy.deepcopy(joint), pickle.loads(pickle.dumps(joint))):
        for array in arrays_of(part).values():
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0
    with pytest.raises(AttributeError):
        joint.radius = 1.0
    assert not hasattr(joint, "update")
    before = copy.deepcopy(joint)
    same = joint
    if joint.grid is not None:
        same += joint
        assert same is not joint
    assert joint == before


@each_value
def test_copies_are_equal_and_keep_everything(joint):
    for other in (copy.copy(joint), copy.deepcopy(joint), pickle.loads(pickle.dumps(joint))):
        assert other == joint
        mine, others = arrays_of(joint), arrays_of(other)
        assert mine.keys() == others.keys()
        for name, array in mine.items():
            assert np.array_equal(array, others[name])
            assert array.dtype == others[name].dtype
        assert other.counts_rows == joint.counts_rows


def test_equality_is_an_equivalence():
    joints = list(VALUES.values())
    equal = np.array([[one == other for other in joints] for one in joints])
    assert equal.diagonal().all()
    assert np.array_equal(equal, equal.T)
    assert np.array_equal(equal @ equal, equal)  # transitive
    # Squares of places alone do not tell joints apart.
    classes = [
        sorted(name for name, row in zip(VALUES, equal[at], strict=True) if row)
        for at in range(len(joints))
    ]
    assert {tuple(c) for c in classes if len(c) > 1} == {
        ("other squares", "with squares", "without squares"),
        ("no rows", "no rows again"),
        ("exact", "masses of rows", "weight one"),  # no weights are weights of 1
        ("gridded exact", "gridded masses of rows", "gridded weight one"),
    }
    # Equal joints say the same of the rows behind them.
    for one, other in itertools.product(joints, joints):
        if one == other:
            assert one.counts_rows == other.counts_rows
            assert one + one == other + other


@given(samples(min_size=4), st.data())
def test_a_sum_is_the_joint_of_all_rows(sample, data):
    y, p, weight = sample
    weight = None if weight is None else np.minimum(np.ceil(weight), 100)  # whose sums are exact
    part = np.array(data.draw(st.lists(st.integers(0, 2), min_size=y.size, max_size=y.size)))
    bits = data.draw(st.sampled_from([None, 4]))

    def joint(rows):
        w = None if weight is None else weight[rows]
        made = Joint.from_arrays(y[rows], p[rows], sample_weight=w)
        return made if bits is None else made.coarsen(bits)

    parts = [part == number for number in set(part.tolist())]
    if weight is not None:
        parts = [rows for rows in parts if weight[rows].sum() > 0]
    whole = joint(np.any(parts, axis=0))
    assert sum(joint(rows) for rows in parts) == whole
    assert sum([whole]) is whole


def test_rows_with_and_without_weights_add_up():
    y, p = [0, 1, 1], [0.2, 0.2, 0.9]
    bare, weighted = Joint.from_arrays(y, p), Joint.from_arrays(y, p, sample_weight=WEIGHT)
    rows = Joint.from_arrays(y + y, p + p, sample_weight=[1, 1, 1, *WEIGHT])
    for one, other, both in (
        (bare, weighted, rows),
        (bare.coarsen(8), weighted.coarsen(8), rows.coarsen(8)),
    ):
        assert one + other == other + one == both
        assert (one + other).n_rows == 6
    unknown = Joint.from_masses(p[1:], [1, 0], [1, 1.5])
    for one, other in ((bare, unknown), (weighted, unknown)):
        assert (one + other).n_rows is None
        assert (one + other).weight_square0 is None
        assert (one.coarsen(8) + other.coarsen(8)).n_rows is None


def test_a_sum_starts_at_zero_only():
    joint = Joint.from_arrays([0, 1], [0.2, 0.7])
    for other in (1, 0.5, "a", None):
        with pytest.raises(TypeError):
            other + joint


def test_the_input_is_not_changed():
    y, p = np.array([1, 0, 1]), np.array([0.9, 0.1, 0.4])
    Joint.from_arrays(y, p)
    assert p.tolist() == [0.9, 0.1, 0.4]
    assert y.tolist() == [1, 0, 1]


def test_from_masses_sorts_merges_and_drops_empty_points():
    joint = Joint.from_masses([0.7, 0.2, 0.7, 0.5], [1, 2, 3, 0], [4, 0, 1, 0])
    assert joint.prediction.tolist() == [0.2, 0.7]
    assert joint.mass0.tolist() == [2, 4]
    assert joint.mass1.tolist() == [0, 5]
    assert joint.n_rows is None


@pytest.mark.parametrize(
    ("arguments", "options", "part"),
    [
        (([0.5, 1.5], [1, 1], [1, 1]), {}, "prediction[1]"),
        (([0.5], [-1], [1]), {}, "mass0[0]"),
        (([0.5], [1], [np.nan]), {}, "mass1[0]"),
        (([0.5], [1, 2], [1]), {}, "mass0"),
        (([0.5], [0], [0]), {}, "mass0 + mass1"),
        (([0.5], [1], [1]), {"radius": -1}, "radius"),
        (([0.5], [1], [1]), {"n_rows": 0}, "n_rows"),
        (([0.5], [1], [1]), {"n_rows": 1.5}, "n_rows"),
    ],
)
def test_from_masses_refuses_bad_input(arguments, options, part):
    with pytest.raises((TypeError, ValueError)) as caught:
        Joint.from_masses(*arguments, **options)
    assert part in str(caught.value)


@given(samples(min_size=3), st.data())
def test_addition_is_exact_in_any_order(sample, data):
    y, p, _ = sample
    whole = Joint.from_arrays(y, p)
    cuts = sorted(
        data.draw(st.lists(st.integers(1, y.size - 1), min_size=2, max_size=2, unique=True))
    )
    edges = [0, *cuts, y.size]
    parts = [Joint.from_arrays(y[a:b], p[a:b]) for a, b in itertools.pairwise(edges)]
    for order in itertools.permutations(parts):
        assert order[0] + order[1] + order[2] == whole
        assert order[0] + (order[1] + order[2]) == whole


@given(samples(min_size=3, weighted=False), st.data(), st.integers(1, 30))
def test_gridded_addition_is_exact_in_any_order(sample, data, bits):
    y, p, _ = sample
    whole = Joint.from_arrays(y, p).coarsen(bits)
    cut = data.draw(st.integers(1, y.size - 1))
    a, b = (Joint.from_arrays(y[s], p[s]).coarsen(bits) for s in (slice(cut), slice(cut, None)))
    assert a + b == whole
    assert b + a == whole
    assert all(array.dtype == np.int64 for array in (a + b).grid.arrays().values())


@given(samples(), st.integers(1, 20))
def test_the_radius_bounds_the_mean_move_on_a_grid(sample, bits):
    y, p, weight = sample
    exact = Joint.from_arrays(y, p, sample_weight=weight)
    rounded = exact.coarsen(bits)
    cell = np.floor(exact.prediction * 2.0**bits).astype(int)
    centre = dict(zip(rounded.grid.cell.tolist(), rounded.prediction, strict=True))
    move = np.abs(exact.prediction - [centre[k] for k in cell.tolist()])
    mass = exact.mass0 + exact.mass1
    assert mass @ move / exact.total <= rounded.radius * (1 + 1e-12) + 1e-300
    assert rounded.radius <= 2.0**-bits
    assert rounded.total == pytest.approx(exact.total)


@given(samples(), st.integers(2, 20), st.data())
def test_coarsening_twice_is_coarsening_once_up_to_the_last_place(sample, bits, data):
    y, p, weight = sample
    fewer = data.draw(st.integers(1, bits - 1))
    once = Joint.from_arrays(y, p, sample_weight=weight).coarsen(fewer)
    twice = Joint.from_arrays(y, p, sample_weight=weight).coarsen(bits).coarsen(fewer)
    assert np.array_equal(once.grid.cell, twice.grid.cell)
    assert twice.prediction == pytest.approx(once.prediction, abs=2.0 ** (1 - 31 - fewer))
    assert twice.mass1 == pytest.approx(once.mass1)
    assert twice.radius >= Joint.from_arrays(y, p, sample_weight=weight).radius


def test_different_grids_do_not_add_up():
    exact = Joint.from_arrays([0, 1], [0.2, 0.7])
    for a, b in [(exact, exact.coarsen(8)), (exact.coarsen(8), exact.coarsen(9))]:
        with pytest.raises(ValueError, match="coarsen"):
            a + b
    with pytest.raises(TypeError):
        exact + 1


def test_coarsening_refuses_what_it_cannot_do():
    exact = Joint.from_arrays([0, 1], [0.2, 0.7])
    for bits in (0, 31):
        with pytest.raises(ValueError, match="bits"):
            exact.coarsen(bits)
    with pytest.raises(ValueError, match="bits"):
        exact.coarsen(8).coarsen(9)
    with pytest.raises(ValueError, match="radius"):
        Joint.from_masses([0.5], [1], [1], radius=0.1).coarsen(8)


def test_a_radius_averages_under_addition():
    a = Joint.from_masses([0.5], [3], [0], radius=0.1)
    b = Joint.from_masses([0.25], [0], [1], radius=0.02)
    assert (a + b).radius == pytest.approx(0.08)


@given(samples(), st.integers(1, 30))
def test_cells_made_elsewhere_are_read(sample, bits):
    y, p, _ = sample
    cell = np.floor(p * 2.0**bits).astype(int)
    place = np.floor((p * 2.0**bits - cell) * 2.0**31).astype(int)
    fraction = p * 2.0**bits - cell
    square = np.floor(fraction * fraction * 2.0**31).astype(int)
    sums = [cell, 1 - y, y, (1 - y) * place, y * place, (1 - y) * square, y * square]
    joint = Joint.from_cells(*sums, bits=bits)
    assert joint == Joint.from_arrays(y, p).coarsen(bits)
    assert Joint.from_cells(*sums[:5], bits=bits).grid.square0 is None


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (([300], [1], [0], [0], [0]), "cell[0]"),
        (([-1], [1], [0], [0], [0]), "cell[0]"),
        (([0.5], [1], [0], [0], [0]), "cell[0]"),
        (([1], [-1], [0], [0], [0]), "count0[0]"),
        (([1], [1], [0], [2**40], [0]), "place0[0]"),
        (([1], [1], [0], [0], [5]), "place1[0]"),
        (([1], [0], [0], [0], [0]), "count0 + count1"),
        (([1, 2], [1], [0], [0], [0]), "count0"),
        (([1], [ROWS_PER_CELL + 1], [0], [0], [0]), "rows"),
        (([0, 0], [2**62] * 2, [0, 0], [0, 0], [0, 0]), "count0[0]"),
        (([0], np.array([2**63 + 5], np.uint64), [0], [0], [0]), "count0[0]"),
        (([0], [2**32], [0], np.array([2**63 + 1], np.uint64), [0]), "place0[0]"),
        (([256], [1], [0], [5], [0]), "place0[0]"),
        (([3], [1], [0], [2**31], [0]), "place0[0]"),
    ],
)
def test_bad_cells_are_refused(arguments, part):
    with pytest.raises(ValueError) as caught:
        Joint.from_cells(*arguments, bits=8)
    assert part in str(caught.value)


@given(sample=samples(), bits=st.one_of(st.none(), st.integers(1, 30)))
def test_a_saved_joint_loads_to_the_same_bits(tmp_path_factory, sample, bits):
    y, p, weight = sample
    joint = Joint.from_arrays(y, p, sample_weight=weight)
    joint = joint if bits is None else joint.coarsen(bits)
    path = tmp_path_factory.mktemp("joint") / "part"
    joint.save(path)
    loaded = Joint.load(path)
    assert loaded == joint
    assert (loaded.grid is None) == (bits is None)
    assert [file.name for file in path.parent.iterdir()] == ["part"]


def test_a_damaged_or_foreign_file_is_refused(tmp_path):
    path = tmp_path / "joint.npz"
    Joint.from_arrays([0, 1], [0.2, 0.7]).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="damaged"):
        Joint.load(path)
    path.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="damaged"):
        Joint.load(path)
    np.savez(path, format="something else")
    with pytest.raises(ValueError, match="format"):
        Joint.load(path)
    np.savez(
        path,
        format="caldist-joint-1",
        prediction=[0.5],
        mass0=[-1.0],
        mass1=[1.0],
        n_rows=1,
        radius=0.0,
        invalid=[0] * 5,
    )
    with pytest.raises(ValueError, match="mass0"):
        Joint.load(path)
    np.savez(path, format="caldist-joint-1", prediction=[0.5])
    with pytest.raises(ValueError, match="valid"):
        Joint.load(path)
    with pytest.raises(FileNotFoundError):
        Joint.load(tmp_path / "missing.npz")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "joint.npz"
    old = Joint.from_arrays([0, 1], [0.2, 0.7])
    old.save(path)

    def fail(*_arguments, **_options):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        Joint.from_arrays([1], [0.5]).save(path)
    monkeypatch.undo()
    assert Joint.load(path) == old
    assert [file.name for file in tmp_path.iterdir()] == ["joint.npz"]


def test_repr_and_equality():
    joint = Joint.from_arrays([0, 1], [0.2, 0.7])
    assert repr(joint) == "Joint(2 predictions, total=2, n_rows=2)"
    assert "radius" in repr(joint.coarsen(4))
    assert joint != Joint.from_arrays([1, 1], [0.2, 0.7])
    assert joint != "joint"
    with pytest.raises(TypeError):
        hash(joint)


def test_sums_that_are_too_large_are_refused():
    huge = Joint.from_masses([0.5], [8e99], [0])
    with pytest.raises(ValueError, match=r"sum of both joints\[0\] is 1.6e\+100: .*their maximum"):
        huge + huge


@pytest.mark.parametrize(
    "arguments",
    [
        ([0.5], [1.0], [0.0]),
        (np.array([0.9, 0.1]), np.ones(2), np.ones(2)),
        (np.array([np.nan]), np.ones(1), np.ones(1)),
        (np.array([0.5]), np.ones(2), np.ones(1)),
        (np.array([0.5]), -np.ones(1), np.ones(1)),
        (np.empty(0), np.empty(0), np.empty(0)),
    ],
)
def test_the_bare_constructor_checks_too(arguments):
    with pytest.raises((TypeError, ValueError), match="from_masses"):
        Joint(*arguments)


def test_the_bare_constructor_leaves_its_arrays_writeable():
    v = np.array([0.5])
    Joint(v, np.ones(1), np.ones(1))
    v[0] = 0.25


@given(samples())
def test_prefix_sums_start_at_zero_and_end_at_the_mean_residual(sample):
    y, p, weight = sample
    joint = Joint.from_arrays(y, p, sample_weight=weight)
    sums = joint.prefix_sums()
    assert sums[0] == 0
    assert np.diff(sums) == pytest.approx(joint.residual(), abs=1e-15)
    assert sums[-1] == pytest.approx(float(np.average(y - p, weights=weight)), abs=1e-12)


@pytest.mark.slow
def test_more_rows_than_can_be_counted_are_refused_when_the_joint_is_made(tmp_path):
    most = Joint.from_masses([0.5], [2.0**53 - 1], [1.0], n_rows=2**53)
    most.save(tmp_path / "most.npz")
    assert Joint.load(tmp_path / "most.npz") == most
    with pytest.raises(ValueError, match="n_rows is 18014398509481984"):
        most + most
    cells = np.arange(2**21)
    full, none = np.full(cells.size, 2**32), np.zeros(cells.size, np.int64)
    half = Joint.from_cells(cells, full, none, none, none, bits=21)
    assert half.n_rows == 2**53
    with pytest.raises(ValueError, match="n_rows is 9007199254740993"):
        half + Joint.from_cells([2**21], [1], [0], [0], [0], bits=21)
