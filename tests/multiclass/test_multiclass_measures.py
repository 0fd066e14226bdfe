"""Several classes: the measures against linear programs, brute force and their theorems."""

import importlib.util
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import caldist
import class_oracles as oracles
from caldist import multiclass
from caldist.engines import summarize_one_vs_rest
from caldist.kernels import loader

SEEDS = range(12) if loader.COMPILED else range(3)
TOL = 1e-6 if loader.COMPILED else 1e-3
SMALL = 200 if loader.COMPILED else 30
every = pytest.mark.parametrize("seed", SEEDS)
BINARY = oracles.softmax(200, 2, 1.5, 2.0, 0)


def cuts(k):
    return [s for size in range(1, k // 2 + 1) for s in combinations(range(k), size)]


def cut_distance(y, V, members):
    inside = np.isin(y, members).astype(int)
    return caldist.lower_distance(inside, V[:, list(members)].sum(axis=1).clip(0, 1), tol=TOL)


# -- two classes: the binary numbers ---------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, np.random.default_rng(1).exponential(size=200)])
def test_two_classes_are_the_binary_measures_to_the_bit(weight):
    y, V = BINARY
    p = V[:, 1]
    w = {"sample_weight": weight}
    tol = {"tol": TOL}
    assert multiclass.classwise_distance(y, V, **w, **tol) == caldist.lower_distance(
        y, p, **w, **tol
    )
    assert multiclass.smooth_ce(y, V, **w) == caldist.smooth_ce(y, p, **w)
    assert multiclass.worst_subset(y, V, **w).value == caldist.smooth_ce(y, p, **w)
    for options in ({}, {"bandwidth": 0.2}, {"squared": True}):
        expected = caldist.kernel_ce(y, p, **w, **options)
        for structure in ("full", "classwise"):
            found = multiclass.kernel_ce(y, V, structure=structure, **w, **options)
            assert found == pytest.approx(expected, rel=1e-12)


def test_two_classes_of_the_default_tolerance():
    y, V = BINARY
    if loader.COMPILED:
        assert multiclass.classwise_distance(y, V) == caldist.lower_distance(y, V[:, 1])


def test_two_classes_in_the_general_algorithms():
    y, V = oracles.instance(3, n=12, k=2)
    expected = caldist.smooth_ce(y, V[:, 1])
    assert oracles.smooth_lp(y, V) == pytest.approx(expected, abs=1e-9)
    unbiased = caldist.kernel_ce(y, V[:, 1], squared=True, unbiased=True)
    assert multiclass.kernel_ce(y, V, squared=True, unbiased=True) == pytest.approx(unbiased)


# -- against oracles -------------------------------------------------------------------------------


@every
def test_the_classwise_distance_is_half_the_sum_of_its_classes(seed):
    y, V = oracles.instance(seed)
    parts = [caldist.lower_distance(a, b, tol=TOL) for a, b in caldist.multiclass.one_vs_rest(y, V)]
    found = multiclass.classwise_distance(y, V, tol=TOL)
    assert found == pytest.approx(0.5 * sum(parts), abs=2 * TOL)
    table = multiclass.classwise_table(y, V, tol=TOL, confidence_level=None)
    assert table.value == pytest.approx(found, abs=1e-12)
    for line, (a, b) in zip(table.lines, caldist.multiclass.one_vs_rest(y, V), strict=True):
        assert line.smooth_ce == caldist.smooth_ce(a, b)
        assert line.mean_residual == pytest.approx(np.mean(a) - np.mean(b))


@every
def test_smooth_ce_is_its_linear_program(seed):
    y, V = oracles.instance(seed, n=9)
    weight = np.random.default_rng(seed).exponential(size=9) if seed % 2 else None
    expected = oracles.smooth_lp(y, V, weight)
    assert multiclass.smooth_ce(y, V, sample_weight=weight) == pytest.approx(expected, abs=1e-9)


@every
def test_landmarks_enclose_smooth_ce(seed):
    y, V = oracles.softmax(60, 4, 1.5, 2.0, seed)
    exact = multiclass.smooth_ce(y, V)
    with pytest.raises(caldist.errors.ToleranceError) as caught:
        multiclass.smooth_ce(y, V, method="landmarks", landmarks=20, rng=seed)
    assert caught.value.lower <= exact + 1e-12
    assert exact <= caught.value.upper + 1e-12
    assert "between" in str(caught.value)
    assert multiclass.smooth_ce(y, V, method="landmarks", landmarks=20, tol=1.0, rng=seed) > 0
    everywhere = multiclass.smooth_ce(y, V, method="landmarks", landmarks=60)
    assert everywhere == pytest.approx(exact, abs=1e-9)


def test_many_equal_rows_are_exact_beyond_the_limit(monkeypatch):
    monkeypatch.setattr("caldist.multiclass.smooth.EXACT_ROWS", 10)
    y, V = oracles.instance(5, n=8)
    expected = multiclass.smooth_ce(y, V)
    found = multiclass.smooth_ce(np.tile(y, 5), np.tile(V, (5, 1)))
    assert found == pytest.approx(expected, abs=1e-12)


def test_witnesses_are_lipschitz_and_attain_the_value():
    from caldist.data.class_rows import ClassRows
    from caldist.multiclass.smooth import smooth_bounds

    y, V = oracles.softmax(40, 3, 1.5, 2.0, 0)
    bounds = smooth_bounds(ClassRows.of(y, V), "exact")
    points = np.vstack((V, np.random.default_rng(0).dirichlet([1, 1, 1], 100), np.eye(3)))
    f = bounds.witnesses(points)
    assert np.abs(f).max() <= 1
    D = oracles.total_variation(points, points)
    assert (np.abs(f[:, None] - f[None]) <= D[..., None] + 1e-12).all()
    attained = ((oracles.one_hot(y, 3) - V) * f[:40]).mean(axis=0)
    assert attained == pytest.approx(bounds.lower, abs=1e-12)


@every
def test_kernel_ce_is_its_double_sum(seed):
    y, V = oracles.instance(seed, n=7)
    weight = np.random.default_rng(seed).exponential(size=7)
    expected = oracles.kernel_square(y, V, 0.3, weight)
    found = multiclass.kernel_ce(y, V, bandwidth=0.3, squared=True, sample_weight=weight)
    assert found == pytest.approx(expected, abs=1e-14)
    assert multiclass.kernel_ce(y, V, bandwidth=0.3, sample_weight=weight) == pytest.approx(
        math.sqrt(max(0, expected))
    )
    classwise = 0.5 * sum(
        caldist.kernel_ce(a, b, squared=True) for a, b in caldist.multiclass.one_vs_rest(y, V)
    )
    assert multiclass.kernel_ce(y, V, structure="classwise", squared=True) == pytest.approx(
        classwise
    )


def test_binning_is_unbiased():
    y, V = oracles.softmax(50, 3, 1.5, 2.0, 0)
    exact = multiclass.kernel_ce(y, V, bandwidth=0.3, squared=True)
    draws = [
        multiclass.kernel_ce(
            y, V, bandwidth=0.3, squared=True, method="binning", n_draws=10, rng=seed
        )
        for seed in range(40)
    ]
    assert abs(np.mean(draws) - exact) < 4 * np.std(draws) / math.sqrt(40)


def test_the_unbiased_square_leaves_out_pairs_of_a_row_with_itself():
    y, V = oracles.instance(2, n=5)
    c = oracles.one_hot(y, V.shape[1]) - V
    kernel = np.exp(-oracles.total_variation(V, V))
    pairs = [0.5 * kernel[i, l] * (c[i] @ c[l]) for i in range(5) for l in range(5) if i != l]
    found = multiclass.kernel_ce(y, V, squared=True, unbiased=True)
    assert found == pytest.approx(sum(pairs) / 20)


@every
def test_the_worst_subset_is_the_worst_of_all(seed):
    y, V = oracles.instance(seed, k=4, n=7)
    found = multiclass.worst_subset(y, V)
    values = {
        s: caldist.smooth_ce(np.isin(y, s).astype(int), V[:, list(s)].sum(axis=1).clip(0, 1))
        for s in cuts(4)
    }
    assert found.exhaustive
    assert found.value == pytest.approx(max(values.values()), abs=1e-12)
    assert values[found.classes] == pytest.approx(found.value, abs=1e-9)


def test_beyond_twelve_classes_subsets_are_searched():
    y, V = oracles.softmax(80, 14, 2.0, 2.0, 0)
    found = multiclass.worst_subset(y, V)
    assert not found.exhaustive
    assert len(found.classes) <= 7
    singles = [caldist.smooth_ce(a, b) for a, b in caldist.multiclass.one_vs_rest(y, V)]
    assert found.value >= max(singles) - 1e-12
    assert "that was found" in str(found)


# -- theorems --------------------------------------------------------------------------------------


@every
def test_the_sandwich(seed):
    """½ ldCE_k ≤ smCE_k ≤ 2 ldCE_k, for any number of classes."""
    y, V = oracles.instance(seed)
    smooth, distance = multiclass.smooth_ce(y, V), oracles.distance_lp(y, V)
    assert smooth <= 2 * distance + 1e-9
    assert smooth >= 0.5 * distance - 0.02  # the program is a little above ldCE_k


@every
def test_cuts_pack_below_the_distance(seed):
    """ldCE_k ≥ Σ α_S ldCE(v(S), 1[y ∈ S]) if no two classes are separated by more than 1 of α."""
    y, V = oracles.instance(seed)
    k = V.shape[1]
    distance = oracles.distance_lp(y, V)
    assert multiclass.classwise_distance(y, V, tol=TOL) <= distance + TOL  # α = ½ on single classes
    values = {s: cut_distance(y, V, s) for s in cuts(k)}
    assert max(values.values()) <= distance + TOL  # α = 1 on one cut
    rng = np.random.default_rng(seed)
    alpha = dict(zip(values, rng.exponential(size=len(values)), strict=True))
    separated = max(
        sum(alpha[s] for s in values if (i in s) != (j in s)) for i, j in combinations(range(k), 2)
    )
    packed = sum(alpha[s] * value for s, value in values.items()) / separated
    assert packed <= distance + TOL


@every
def test_transport_bounds_the_distance_below(seed):
    """max(½ Σ|T_j|, ⅙ Σ|T_j| + ⅓ Σ P_j) ≤ ldCE_k, |T_j| + P_j being the parts of smCE_k."""
    y, V = oracles.instance(seed)
    shift = np.abs((oracles.one_hot(y, V.shape[1]) - V).mean(axis=0)).sum()
    carried = 2 * multiclass.smooth_ce(y, V) - shift
    distance = oracles.distance_lp(y, V)
    assert max(shift / 2, shift / 6 + carried / 3) <= distance + 1e-9
    assert shift / 2 <= multiclass.classwise_distance(y, V, tol=TOL) + TOL


@every
def test_the_kernel_is_below_smooth_ce(seed):
    """kCE_k² ≤ max_j E|y_j - v_j| smCE_k ≤ 2 ldCE_k."""
    y, V = oracles.instance(seed)
    largest = np.abs(oracles.one_hot(y, V.shape[1]) - V).mean(axis=0).max()
    smooth = multiclass.smooth_ce(y, V)
    assert multiclass.kernel_ce(y, V, squared=True) <= largest * smooth + 1e-12
    assert largest * smooth <= 2 * oracles.distance_lp(y, V) + 1e-9


@every
def test_projections_are_below_the_whole(seed):
    """½ Σ_j smCE(v_j, y_j) ≤ smCE_k, and the worst subset is at most 2 ldCE_k."""
    y, V = oracles.instance(seed)
    parts = [caldist.smooth_ce(a, b) for a, b in caldist.multiclass.one_vs_rest(y, V)]
    assert 0.5 * sum(parts) <= multiclass.smooth_ce(y, V) + 1e-12
    assert multiclass.worst_subset(y, V).value <= 2 * oracles.distance_lp(y, V) + 1e-9


@every
def test_weights_of_classes_project_the_distance(seed):
    """For a ∈ [0, 1]^k the law (⟨a, v⟩, Bernoulli(a_y)) has ldCE ≤ (max a - min a) ldCE_k."""
    y, V = oracles.instance(seed)
    a = np.random.default_rng(seed).random(V.shape[1])
    label = np.tile([0, 1], y.size)
    chance = np.column_stack((1 - a[y], a[y])).ravel()
    found = caldist.lower_distance(label, np.repeat(V @ a, 2), sample_weight=chance, tol=TOL)
    assert found <= np.ptp(a) * oracles.distance_lp(y, V) + TOL


@every
def test_two_classes_of_the_right_frequency(seed):
    """ldCE ≥ max(|T|, ⅓|T| + ⅔(smCE - |T|)), so that E y = E v makes ldCE at least ⅔ smCE."""
    for n in (3, 10, 40):
        y, V = oracles.instance(seed, n=n, k=2)
        shift = abs(np.mean(y) - np.mean(V[:, 1]))
        smooth = caldist.smooth_ce(y, V[:, 1])
        distance = caldist.lower_distance(y, V[:, 1], tol=TOL)
        assert max(shift, shift / 3 + 2 / 3 * (smooth - shift)) <= distance + TOL


def test_confidence_calibration_bounds_nothing():
    """v = ½ ± ε with the other class always true: ldCE ≤ ε, and confidence is off by ½ + ε."""
    y, V = [1, 0], [[0.51, 0.49], [0.49, 0.51]]
    assert multiclass.classwise_distance(y, V, tol=TOL) <= 0.01 + TOL
    assert caldist.lower_distance(*caldist.multiclass.top_label(y, V), tol=TOL) == pytest.approx(
        0.51
    )


def test_the_ring():
    """Every class and every set of classes is calibrated, the whole is not."""
    y, V, weight = oracles.ring()
    w = {"sample_weight": weight}
    assert multiclass.classwise_distance(y, V, tol=TOL, **w) < 1e-9 + TOL
    assert multiclass.worst_subset(y, V, **w).value < 1e-9
    assert multiclass.kernel_ce(y, V, structure="classwise", **w) < 1e-6
    assert multiclass.smooth_ce(y, V, **w) == pytest.approx(0.0234, abs=5e-5)
    assert multiclass.kernel_ce(y, V, **w) == pytest.approx(0.035, abs=5e-4)
    assert oracles.distance_lp(y, V, weight) == pytest.approx(0.0468, abs=5e-4)
    # The left end of the sandwich is attained.
    assert oracles.distance_lp(y, V, weight) == pytest.approx(
        2 * multiclass.smooth_ce(y, V, **w), rel=0.002
    )
    assert caldist.smooth_ce(*caldist.multiclass.top_label(y, V), **w) < 1e-9
    away = oracles.total_variation(weight.reshape(-1, 3) * 36, V[::3]).diagonal()
    assert away == pytest.approx(away[0], rel=0.2)
    assert away.mean() == pytest.approx(0.141, abs=5e-4)


def test_the_figure_of_the_ring():
    """The guide's figure: points of the circle err, and the means at each probability do not."""
    pytest.importorskip("sphinx")
    path = Path(__file__).parents[2] / "docs" / "_ext" / "ring.py"
    spec = importlib.util.spec_from_file_location("ring_figure", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    point, frequency = script.ring()
    _, V, weight = oracles.ring()
    assert point == pytest.approx(V[::3])
    assert frequency == pytest.approx(weight.reshape(-1, 3) * 36)
    for number in range(3):
        value, often = script.given_the_class(point, frequency, number)
        assert value.size == 18
        assert often == pytest.approx(value)


# -- invariances -----------------------------------------------------------------------------------

MEASURES = {
    "classwise_distance": lambda y, V, **w: multiclass.classwise_distance(y, V, tol=TOL, **w),
    "smooth_ce": multiclass.smooth_ce,
    "kernel_ce": multiclass.kernel_ce,
    "classwise kernel": lambda y, V, **w: multiclass.kernel_ce(y, V, structure="classwise", **w),
    "worst_subset": lambda y, V, **w: multiclass.worst_subset(y, V, **w).value,
}


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("seed", [0, 1])
def test_invariances(name, seed):
    measure, rng = MEASURES[name], np.random.default_rng(seed)
    y, V = oracles.softmax(30, 3, 1.5, 2.0, seed)
    value, near = measure(y, V), {"abs": 2 * TOL if name == "classwise_distance" else 1e-11}
    turn = rng.permutation(3)
    assert measure(np.argsort(turn)[y], V[:, turn]) == pytest.approx(value, **near)  # classes
    order = rng.permutation(30)
    assert measure(y[order], V[order]) == pytest.approx(value, **near)  # rows
    twice = np.repeat(np.arange(30), 2)
    assert measure(y[twice], V[twice]) == pytest.approx(value, **near)  # repeated rows
    weight = rng.exponential(size=30)
    weighted = measure(y, V, sample_weight=weight)
    split = np.repeat(weight, 2) * np.tile([0.25, 0.75], 30)
    assert measure(y[twice], V[twice], sample_weight=split) == pytest.approx(weighted, **near)
    assert measure(y, V, sample_weight=5 * weight) == pytest.approx(weighted, **near)
    named = measure(np.array(list("abc"))[y], V, classes=["a", "b", "c"])
    assert named == value
    assert measure(y, V.astype(np.float32)) == pytest.approx(value, abs=1e-5)
    assert measure(y, np.asfortranarray(V)) == pytest.approx(value, **near)


def test_rows_are_divided_by_their_sum():
    y, V = oracles.softmax(30, 3, 1.5, 2.0, 0)
    off = V * np.linspace(0.993, 1.0, 30)[:, None]
    for measure in MEASURES.values():
        assert measure(y, off) == pytest.approx(measure(y, V), abs=2 * TOL + 1e-12)


# -- summaries -------------------------------------------------------------------------------------


def test_joints_stand_for_rows():
    y, V = oracles.softmax(SMALL, 3, 1.5, 2.0, 0)
    joints = [caldist.Joint.from_arrays(a, b) for a, b in caldist.multiclass.one_vs_rest(y, V)]
    expected = multiclass.classwise_distance(y, V, tol=TOL)
    assert multiclass.classwise_distance(joints, tol=TOL) == pytest.approx(expected, abs=TOL)
    named = dict(zip("abc", joints, strict=True))
    table = multiclass.classwise_table(named, tol=TOL)
    assert [line.name for line in table.lines] == ["a", "b", "c"]
    rows = multiclass.classwise_table(y, V, tol=TOL)
    for one, other in zip(table.lines, rows.lines, strict=True):
        assert one.lower == pytest.approx(other.lower, abs=1e-9)
        assert one.noise == pytest.approx(other.noise)
    assert list(table.to_frame("pandas")["class"]) == ["a", "b", "c"]
    assert table.to_dict()["value"] == table.value


def test_summaries_of_an_engine():
    y, V = oracles.softmax(SMALL, 3, 1.5, 2.0, 1)
    table = pd.DataFrame({"y": y, "a": V[:, 0], "b": V[:, 1], "c": V[:, 2]})
    joints = summarize_one_vs_rest(table, y_true="y", y_prob=["a", "b", "c"], bits=16)
    expected = multiclass.classwise_distance(y, V, tol=TOL)
    assert multiclass.classwise_distance(joints, tol=TOL) == pytest.approx(expected, abs=1e-4)
    lines = multiclass.classwise_table(joints, tol=TOL).lines
    assert all(0 <= line.lower <= line.share for line in lines)


def test_bad_summaries():
    y, V = oracles.softmax(40, 3, 1.5, 2.0, 0)
    a, b, c = (caldist.Joint.from_arrays(*pair) for pair in caldist.multiclass.one_vs_rest(y, V))
    with pytest.raises(ValueError, match="exactly one class"):
        multiclass.classwise_distance([a, b])
    with pytest.raises(ValueError, match="same rows"):
        multiclass.classwise_distance([a, b, c + c])
    with pytest.raises(TypeError, match=r"y_true\['x'\].*list"):
        multiclass.classwise_distance({"x": [1], "y": a})
    with pytest.raises(TypeError, match="sample_weight"):
        multiclass.classwise_distance([a, b, c], sample_weight=[1.0])
    with pytest.raises(TypeError, match="classes"):
        multiclass.classwise_distance({0: a, 1: b, 2: c}, classes="abc")
    with pytest.raises(TypeError, match="single rows"):
        multiclass.smooth_ce([a, b, c], V)
    masses = [caldist.Joint.from_masses(j.prediction, j.mass0, j.mass1) for j in (a, b, c)]
    table = multiclass.classwise_table(masses)
    assert table.noise is None
    assert table.lines[0].lower is None


def test_a_tolerance_that_is_not_reached_carries_bounds(monkeypatch):
    monkeypatch.setattr("caldist.measures.lower_solver.MAX_LEVELS", 0)
    y, V = oracles.softmax(60, 3, 1.5, 2.0, 0)
    with pytest.raises(caldist.errors.ToleranceError) as caught:
        multiclass.classwise_distance(y, V, tol=1e-6)
    assert 0 < caught.value.lower < caught.value.upper


NEED_ROWS = ["smooth_ce", "kernel_ce", "worst_subset", "distance_bracket", "certify"]


@pytest.mark.parametrize("function", [*NEED_ROWS, "confidence_interval", "calibration_test"])
def test_summaries_where_rows_are_needed_are_answered_with_what_takes_them(function):
    y = [0, 1, 2, 0]
    joints = [
        caldist.Joint.from_arrays(a, b) for a, b in caldist.multiclass.one_vs_rest(y, np.eye(3)[y])
    ]
    for summaries in (joints, dict(zip("abc", joints, strict=True))):
        with pytest.raises(TypeError, match=r"classwise_distance and .*classwise_table take"):
            getattr(multiclass, function)(summaries)
    with pytest.raises(TypeError, match=r"y_prob is None: .*Pass a matrix"):
        getattr(multiclass, function)(y)
