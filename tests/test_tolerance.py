"""Values within a tolerance: rows on a grid instead of a sort, with bounds that hold."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
from caldist import Joint
from caldist._kernels import COMPILED, plain, sums
from caldist.data import grid as grids
from caldist.data import joint as joints
from caldist.data.gridding import Layout
from caldist.data.rows import Rows
from caldist.measures import _lower_solver, _tolerance
from caldist.measures.registry import all_measures
from strategies import FAMILIES, family, fewer, samples

MEASURES = {name: measure for name, measure in all_measures().items() if measure.takes_tol}
each = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
N = 20_000
SOLVED = 1e-9 if COMPILED else 1e-4  # how far the lower distance itself is known
SHARP = ("smooth_ce", "kernel_ce", "lower_distance", "averaged_two_bin_ce")


def exact(measure, y, p, w=None):
    """Return the value from sorted rows, and how far it is known."""
    joint = Joint.from_arrays(y, p, sample_weight=w)
    if measure.name != "lower_distance":
        return measure(joint), 1e-13
    proof = caldist.certify(joint, tol=SOLVED)
    return proof.lower, proof.gap + 1e-13


def check(measure, rows, tol, value, slack):
    """Assert that what cells certify holds, if they certify anything; return how it was found."""
    found = measure.on_cells(rows, tol)
    if found is not None:
        middle, lower, upper = found
        assert upper - lower <= tol
        assert lower <= middle <= upper
        assert lower - slack <= value <= upper + slack
    return found


def test_which_measures_take_it():
    """Those that rounding moves by a bounded amount, and that would sort without it."""
    bounded = {name for name, measure in all_measures().items() if measure.facts.rounding}
    sums_over_rows = {"brier_score", "kernel_smoothed_ece"}
    bound_from_above = {"upper_distance"}
    assert MEASURES.keys() == bounded - sums_over_rows - bound_from_above
    for name, measure in MEASURES.items():
        assert measure.option("tol") == (1e-6 if name == "lower_distance" else 0.0)


# -- bounds hold ---------------------------------------------------------------------------------


@each
@fewer
@given(sample=samples(max_size=40), tol=st.sampled_from([0.3, 0.03, 1e-3, 1e-4]))
def test_the_value_lies_between_the_bounds(measure, sample, tol):
    y, p, w = sample
    value, slack = exact(measure, y, p, w)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_tolerance, "_ROWS_PER_CELL", 2.0**-16)  # few rows go onto a grid, too
        check(measure, Rows.as_given(y, p, sample_weight=w), tol, value, slack)
        assert abs(measure(y, p, sample_weight=w, tol=tol) - value) <= tol + slack


@each
@pytest.mark.parametrize("kind", FAMILIES)
def test_families(measure, kind):
    y, p = family(kind, N, np.random.default_rng(len(kind)))
    value, slack = exact(measure, y, p)
    for tol in (1e-2, 1e-3):
        check(measure, Rows.as_given(y, p), tol, value, slack)
        assert abs(measure(y, p, tol=tol) - value) <= tol + slack


def _one_cell(rng):
    p = 0.3 + 1e-9 * rng.random(N)
    return (rng.random(N) < 0.6).astype(int), p


def _two_atoms(rng):
    p = np.where(rng.random(N) < 0.5, 0.5, np.nextafter(0.5, 0))
    return (p >= 0.5).astype(int), p


def _pairs_at_edges(rng):
    """Return labels that a cell's width tells apart, at the edges of many cells."""
    edge = rng.integers(1, 256, N) / 256
    label = rng.integers(0, 2, N)
    return label, np.where(label == 1, edge, np.nextafter(edge, 0))


def _sorted_within_cells(rng):
    """Return cells in which all labels 1 come first: the worst order that sums allow."""
    cell, f = rng.integers(0, 1024, N), rng.random(N)
    return (f < 0.5).astype(int), (cell + f) / 1024


def _ends(rng):
    p = rng.choice([0.0, 5e-324, 1e-300, 1 - 2**-53, 1.0], N)
    return rng.integers(0, 2, N), p


def _rare(rng):
    p = 1e-6 * rng.random(N)
    return (rng.random(N) < 1e-3).astype(int), p


HARD = {
    "one cell": _one_cell,
    "two atoms": _two_atoms,
    "edges": _pairs_at_edges,
    "sorted": _sorted_within_cells,
    "ends": _ends,
    "rare": _rare,
}


@each
@pytest.mark.parametrize("kind", HARD)
def test_hard_instances(measure, kind):
    rng = np.random.default_rng(5)
    y, p = HARD[kind](rng)
    for w in (None, rng.exponential(size=N) ** 3):
        value, slack = exact(measure, y, p, w)
        for tol in (1e-2, 1e-3):
            check(measure, Rows.as_given(y, p, sample_weight=w), tol, value, slack)
            assert abs(measure(y, p, sample_weight=w, tol=tol) - value) <= tol + slack


@pytest.mark.skipif(not COMPILED, reason="plain kernels are slow on as many rows")
@pytest.mark.parametrize("seed", range(3))
def test_calibrated_predictions_are_solved_once(seed, monkeypatch):
    """Where rows of both labels stay, cells leave the most open; the solver is what costs."""
    rng = np.random.default_rng(seed)
    p = rng.random(1_000_000)
    y = (rng.random(p.size) < p).astype(np.int8)
    solved, solve = [], _lower_solver.interior_point.solve
    watched = SimpleNamespace(solve=lambda *given: solved.append(None) or solve(*given))
    monkeypatch.setattr(_lower_solver, "interior_point", watched)
    _, lower, upper = MEASURES["lower_distance"].on_cells(Rows.as_given(y, p), 1e-6)
    assert 0 < lower <= upper <= lower + 1e-6
    assert len(solved) == 1


def test_a_grid_refines_itself_where_predictions_lie_close():
    rng = np.random.default_rng(1)
    y, p = family("beta3", N, rng)
    p = 0.3 + 1e-5 * p
    rows = Rows.as_given(y, p)
    found = caldist.ecce_mad.on_cells(rows, 1e-2)
    bits = sorted(rows._cells)
    assert bits[0] < 16  # all rows are in one cell
    assert rows.cells(bits[0], N).prediction.size == 1
    assert rows.cells(bits[-1], N).prediction.size > 10
    assert len(bits) <= 3
    assert abs(found[0] - caldist.ecce_mad(y, p)) <= 1e-2


@given(sample=samples(max_size=40), bits=st.integers(1, 12))
def test_rows_are_no_further_from_their_means_than_is_said(sample, bits):
    y, p, w = sample
    w = np.ones(y.size) if w is None else w
    grid = Joint.from_arrays(y, p, sample_weight=w).coarsen(bits).grid
    place = np.searchsorted(grid.cell, np.minimum(np.floor(p * 2**bits), grid.cell[-1]))
    moved = w * np.abs(p - grid.centres()[np.minimum(place, grid.cell.size - 1)])
    for label, (spread, move) in enumerate(zip(grid.spreads, grid.moves, strict=True)):
        found = np.bincount(place, moved * (y == label), grid.cell.size)
        assert (found <= spread * (1 + 1e-9) + 1e-15 * w.sum()).all()
        assert (spread <= move).all()


@pytest.mark.parametrize("digits", [1, 2, 3])
@pytest.mark.parametrize("name", [*SHARP, "random_interval_ce"])
def test_predictions_of_few_digits_need_one_pass(name, digits):
    rng = np.random.default_rng(digits)
    p = np.round(rng.random(N), digits)
    y = (rng.random(N) < p**1.3).astype(int)
    value, slack = exact(MEASURES[name], y, p)
    rows = Rows.as_given(y, p)
    tol = 2e-4 if name == "kernel_ce" else 1e-5
    found = MEASURES[name].enclosed(rows.cells(15, 10**6))
    assert found[2] - found[1] <= tol
    assert found[1] - slack <= value <= found[2] + slack


@pytest.mark.parametrize("name", SHARP)
def test_many_rows_are_within_a_millionth_without_a_sort(name, monkeypatch):
    y, p = family("beta3", 600_000 if COMPILED else N, np.random.default_rng(0))
    tol = 1e-6 if COMPILED else 1e-3
    value, slack = exact(MEASURES[name], y, p)
    forbid_sorts(monkeypatch)
    assert abs(MEASURES[name](y, p, tol=tol) - value) <= tol + slack


def test_the_lower_distance_meets_its_default_without_a_sort(monkeypatch):
    if not COMPILED:
        pytest.skip("plain kernels take a minute")
    y, p = family("beta3", 600_000, np.random.default_rng(0))
    proof = caldist.certify(y, p, tol=1e-7)
    forbid_sorts(monkeypatch)
    value = caldist.lower_distance(y, p)
    assert value <= proof.upper
    assert proof.lower - value <= 1e-6


# -- how it is done ------------------------------------------------------------------------------


def forbid_sorts(monkeypatch):
    def refuse(*_args, **_options):
        pytest.fail("rows were sorted")

    monkeypatch.setattr(joints, "sort_rows", refuse)
    monkeypatch.setattr("caldist.data.rows.sort_residuals", refuse)
    monkeypatch.setattr(Joint, "_of_rows", refuse)
    monkeypatch.setattr(Rows, "order", property(refuse))


@each
def test_a_tolerance_that_no_grid_meets_is_the_exact_value(measure):
    y, p = family("beta3", 3000, np.random.default_rng(0))
    if measure.name != "lower_distance":
        assert measure(y, p, tol=1e-12) == measure(y, p)
        assert measure(y, p, tol=0) == measure(y, p)
    assert measure.on_cells(Rows.as_given(y, p), 1e-6) is None


def test_options_without_a_bound_are_exact():
    y, p = family("beta3", N, np.random.default_rng(0))
    gaussian = caldist.kernel_ce.using(kernel="gaussian")
    assert gaussian(y, p, tol=0.1) == gaussian(y, p)
    assert caldist.kernel_ce(y, p, unbiased=True, tol=0.1) == caldist.kernel_ce(y, p, unbiased=True)
    for estimate in (
        caldist.kernel_ce.using(method="subsample", rng=1),
        caldist.surrogate_interval_ce.using(method="monte_carlo", rng=1),
    ):
        with pytest.raises(ValueError, match=r"^tol is 0\.1, which goes with method='exact' only"):
            estimate(y, p, tol=0.1)


def test_options_are_heard_on_a_grid():
    y, p = family("beta3", N, np.random.default_rng(0))
    for width in (0.05, 0.3):
        options = {"width": width, "add_width": True}
        value = caldist.random_interval_ce(y, p, **options)
        assert abs(caldist.random_interval_ce(y, p, tol=1e-3, **options) - value) <= 1e-3
    with pytest.raises(ValueError, match=r"^width is -1"):
        caldist.random_interval_ce(y, p, width=-1, tol=1e-3)
    with pytest.raises(TypeError, match=r"^progress is 1"):
        caldist.lower_distance(y, p, tol=1e-3, progress=1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bits", [1, 7, 13])
def test_the_pass_gives_the_sums_of_a_grid(bits, weighted):
    rng = np.random.default_rng(bits)
    y, p = family("extreme" if bits == 7 else "beta1", 5000, rng)
    w = rng.integers(0, 9, 5000) / 8 if weighted else None
    rows = Rows.as_given(y, p, sample_weight=w)
    joint = rows.cells(bits, 10**9)
    known = grids.from_rows(y.astype(np.uint8), p, w, bits)
    scale = 1.0 if w is None else rows._scale[0]
    for name, part in joint.grid.arrays().items():
        expected = getattr(known, name)
        np.testing.assert_array_equal(part, expected if name == "cell" else expected * scale)
    finer = rows.cells(bits + 5, 10**9)  # within the cells that have rows
    again = Rows.as_given(y, p, sample_weight=w).cells(bits + 5, 10**9)
    for name, part in finer.grid.arrays().items():
        np.testing.assert_array_equal(part, getattr(again.grid, name))
    assert finer.n_rows == joint.n_rows == 5000


def test_a_finer_grid_has_room_where_rows_are():
    y, p = _one_cell(np.random.default_rng(0))
    rows = Rows.as_given(y, p)
    coarse = rows.cells(10, 10**4).grid
    assert Layout.of(25, None).size == 2**25 + 1
    assert Layout.of(25, coarse).size == 2**15
    assert rows.cells(25, 2**15 - 1) is None
    assert rows.cells(25, 2**15).grid.bits == 25
    ends = Rows.as_given([0, 1, 1], [0.0, 1.0, 0.7])
    assert Layout.of(12, ends.cells(10, 10**4).grid).size == 4 + 4 + 1


@pytest.mark.skipif(not COMPILED, reason="compares with compiled kernels")
def test_compiled_and_plain_kernels_give_the_same_bits():
    rng = np.random.default_rng(0)
    y, p = family("extreme", 700, rng)
    w = rng.exponential(size=700)
    start = np.array([0, 2**9])
    found = []
    for kernel in (sums, plain("sums")):
        counts, masses = np.zeros(6 * (2**9 + 1), np.int64), np.zeros(6 * (2**9 + 1))
        for weight, scale in ((None, 1.0), (w, 0.5)):
            reader = kernel.Reader(2, y, p, weight, scale, False)
            assert kernel.cells(reader, 9, 9, start, counts, masses)
        found.append((counts, masses))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.skipif(not COMPILED, reason="needs many rows")
def test_the_number_of_threads_changes_nothing(monkeypatch):
    y, p = family("beta3", 700_001, np.random.default_rng(0))
    values = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("CALDIST_NUM_THREADS", threads)
        values.append(caldist.smooth_ce(y, p, tol=1e-5))
    assert len(set(values)) == 1


def test_types_and_strides():
    y, p = family("beta3", N, np.random.default_rng(0))
    p = p.astype(np.float32).astype(float)
    value = caldist.smooth_ce(y, p, tol=1e-3)
    for label in (y.astype(bool), y.astype(np.int8), y.astype(float), y.astype(np.uint16)):
        assert caldist.smooth_ce(label, p, tol=1e-3) == value
    assert caldist.smooth_ce(y, p.astype(np.float32), tol=1e-3) == value
    assert caldist.smooth_ce(np.repeat(y, 2)[::2], np.repeat(p, 2)[::2], tol=1e-3) == value
    assert caldist.smooth_ce(y.tolist(), p.tolist(), tol=1e-3) == value
    words = np.where(y == 1, "yes", "no")
    assert caldist.smooth_ce(words, p, pos_label="yes", tol=1e-3) == value


@pytest.mark.parametrize("weights", [(1e99, 1.0), (1e-40, 1e-139)])
def test_weights_of_any_size(weights):
    rng = np.random.default_rng(0)
    y, p = family("beta3", N, rng)
    w = rng.choice(weights, N) / N
    value = caldist.smooth_ce(y, p, sample_weight=w)
    assert abs(caldist.smooth_ce(y, p, sample_weight=w, tol=1e-3) - value) <= 1e-3


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [-1, np.nan, np.inf, "fine", None, [1e-3], True])
@each
def test_what_is_no_tolerance(measure, tol):
    y, p = [0, 1], [0.2, 0.7]
    for call in (
        lambda: measure(y, p, tol=tol),
        lambda: measure.using(tol=tol)(y, p),
        lambda: caldist.evaluate(y, p, measures=[measure.using(tol=tol)]),
        lambda: caldist.evaluate(y, p, measures=[measure], tol=tol),
    ):
        with pytest.raises((TypeError, ValueError), match=r"^tol is "):
            call()


def _wrong(at):
    y, p = family("beta3", N, np.random.default_rng(0))
    w = np.ones(N)
    for change in (
        {"p": (at, np.nan)},
        {"p": (at, 1.5)},
        {"p": (at, -1e-9)},
        {"p": (at, np.inf)},
        {"y": (at, 2)},
        {"y": (at, -1)},
        {"w": (at, -1.0)},
        {"w": (at, np.nan)},
        {"w": (slice(None), 0.0)},
    ):
        columns = {"y": y.copy(), "p": p.copy(), "w": w.copy()}
        for name, (place, value) in change.items():
            columns[name][place] = value
        yield columns["y"], columns["p"], columns["w"]
    yield y[:-1], p, None
    yield y, p[:-1], None
    yield y, p, w[:-1]
    yield y.astype(str), p, None
    yield y, p[:, None], None
    yield y, p.astype(complex), None
    yield [], [], None
    yield y, None, None


@pytest.mark.parametrize("at", [0, N - 1])
@pytest.mark.parametrize("measure", [caldist.smooth_ce, caldist.lower_distance], ids=str)
def test_what_is_wrong_is_said_as_without_it(measure, at):
    usual = caldist.smooth_ce
    for y, p, w in _wrong(at):
        with pytest.raises((TypeError, ValueError)) as expected:
            usual(y, p, sample_weight=w)
        with pytest.raises((TypeError, ValueError)) as found:
            measure(y, p, sample_weight=w, tol=1e-3)
        assert (type(found.value), str(found.value)) == (type(expected.value), str(expected.value))


# -- joints, options, evaluate -------------------------------------------------------------------


@each
def test_an_exact_joint_is_exact(measure):
    y, p = family("beta3", N, np.random.default_rng(0))
    joint = Joint.from_arrays(y, p)
    assert measure(joint, tol=1e-3) == measure.using(tol=1e-3).of(joint)
    if measure.name != "lower_distance":
        assert measure(joint, tol=1e-3) == measure(joint)


@each
def test_a_rounded_joint_says_what_it_leaves_open(measure):
    y, p = family("beta3", N, np.random.default_rng(0))
    value, slack = exact(measure, y, p)
    rounded = Joint.from_arrays(y, p).coarsen(12)
    assert abs(measure(rounded, tol=0.1) - value) <= 0.1
    with pytest.raises(caldist.ToleranceError, match=r"tol=1e-12: use a larger tol") as caught:
        measure(rounded, tol=1e-12)
    assert caught.value.lower - slack <= value <= caught.value.upper + slack
    assert measure(rounded) == measure.of(rounded)  # of the cells, as ever
    known = Joint.from_masses([0.2, 0.7], [1, 2], [2, 1], radius=0.01)
    with pytest.raises(caldist.ToleranceError):
        measure(known, tol=1e-12)


def test_a_rounded_joint_without_a_bound():
    rounded = Joint.from_arrays([0, 1], [0.2, 0.7]).coarsen(3)
    with pytest.raises(ValueError, match=r"^tol is 0\.1, but the predictions .* is not bounded"):
        caldist.kernel_ce(rounded, kernel="gaussian", tol=0.1)


@each
def test_it_is_an_option_like_others(measure):
    y, p = family("beta3", N, np.random.default_rng(0))
    bound = measure.using(tol=1e-3)
    assert bound(y, p) == measure(y, p, tol=1e-3)
    assert str(bound) == f"{measure.name}(tol=0.001)"
    assert pickle.loads(pickle.dumps(bound)) == bound
    [found] = caldist.evaluate(y, p, measures=[bound]).values()
    assert found.value == bound(y, p)
    if measure.is_norm:
        a = caldist.confidence_interval(y[:200], p[:200], measure=bound, rng=1)
        b = caldist.confidence_interval(y[:200], p[:200], measure=measure, rng=1)
        assert (a.value, a.lower, a.upper) == (b.value, b.lower, b.upper)
        joint = Joint.from_arrays(y, p).coarsen(8)  # which leaves more open than that
        strict = measure.using(tol=1e-9)
        assert caldist.confidence_interval(joint, measure=strict, rng=1).value >= 0


def test_evaluate_returns_the_bounds(monkeypatch):
    y, p = family("beta1", 300_000 if COMPILED else N, np.random.default_rng(0))
    tol = 1e-5 if COMPILED else 1e-3
    names = ["smooth_ce", "kernel_ce", "lower_distance", "brier_score", "log_loss", "binned_ece"]
    known = {name: exact(all_measures()[name], y, p) for name in names}
    forbid_sorts(monkeypatch)
    found = caldist.evaluate(y, p, measures=names, tol=tol)
    assert list(found) == names
    for name, (value, slack) in known.items():
        one = found[name]
        assert one.lower <= one.value <= one.upper
        assert one.upper - one.lower <= tol
        assert one.lower - slack <= value <= one.upper + slack
    assert found["brier_score"].lower == found["brier_score"].upper
    assert found["smooth_ce"].lower < found["smooth_ce"].upper


def test_evaluate_of_a_joint_does_not_depend_on_it():
    y, p = family("beta3", N, np.random.default_rng(0))
    for joint in (Joint.from_arrays(y, p), Joint.from_arrays(y, p).coarsen(8)):
        assert caldist.evaluate(joint, tol=1e-4) == caldist.evaluate(joint)


def test_evaluate_takes_all_measures():
    y, p = family("beta3", N, np.random.default_rng(0))
    exactly, closely = caldist.evaluate(y, p), caldist.evaluate(y, p, tol=1e-2)
    assert exactly.keys() == closely.keys()
    for name, one in exactly.items():
        assert closely[name].value == pytest.approx(one.value, abs=1e-2 + 1e-6)


def test_doubts_are_said_with_it():
    y, p = family("beta3", N, np.random.default_rng(0))
    with pytest.warns(UserWarning, match="rank backwards"):
        caldist.evaluate(y, 1 - p, measures=["smooth_ce"], tol=1e-3)
