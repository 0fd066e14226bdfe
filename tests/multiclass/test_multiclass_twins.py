"""Several classes: with two of them every function is its binary twin, and what changes nothing."""

import numpy as np
import pytest

import caldist
import class_oracles as oracles
from caldist import multiclass
from caldist.kernels import loader

TOL = 1e-6 if loader.COMPILED else 1e-3
SIZE = 150 if loader.COMPILED else 40
Y, V = oracles.softmax(SIZE, 2, 1.5, 2.0, 0)
P = V[:, 1]
WEIGHTS = {"rows": None, "weights": np.random.default_rng(1).uniform(0.5, 1, SIZE)}
SPLIT = {"measure": "lower_distance", "method": "cross_fit", "rng": 0}

pytestmark = pytest.mark.filterwarnings("ignore:only .* rows have:UserWarning")


def ends(found):
    return found.lower, found.upper


def numbers(found):
    return found.value, found.lower, found.upper


def line(found):
    """Return what the table says of the second class, its halves doubled."""
    second = found.lines[1]
    return 2 * second.share, second.smooth_ce, second.mean_residual, 2 * second.lower


def binary_line(w):
    limit = caldist.confidence_interval(Y, P, confidence_level=0.9, **SPLIT, **w).lower
    residual = np.average(Y - P, weights=w["sample_weight"])
    distance = caldist.lower_distance(Y, P, tol=TOL, **w)
    return distance, caldist.smooth_ce(Y, P, **w), residual, limit


def statistics(w, **options):
    names = ("classwise_smooth_ce", "brier_score", "top_label")
    tests = (
        multiclass.calibration_test(Y, V, measure=name, n_resamples=1, rng=0, **options, **w)
        for name in names
    )
    return tuple(test.statistic for test in tests)


def binary_statistics(w):
    z = caldist.calibration_test(Y, P, measure="spiegelhalter", n_resamples=1, rng=0, **w)
    top = caldist.smooth_ce(*caldist.multiclass.top_label(Y, V), **w)
    return caldist.smooth_ce(Y, P, **w), abs(z.statistic), top


# name: (what it says, its twin, how near); with nothing said how near, to the bit
TWINS = {
    "classwise_distance": (
        lambda w: multiclass.classwise_distance(Y, V, tol=TOL, **w),
        lambda w: caldist.lower_distance(Y, P, tol=TOL, **w),
        None,
    ),
    "classwise_table": (
        lambda w: line(multiclass.classwise_table(Y, V, tol=TOL, **w)),
        binary_line,
        {"abs": 2 * TOL},
    ),
    "smooth_ce": (
        lambda w: multiclass.smooth_ce(Y, V, **w),
        lambda w: caldist.smooth_ce(Y, P, **w),
        None,
    ),
    "kernel_ce": (
        lambda w: tuple(
            multiclass.kernel_ce(Y, V, bandwidth=0.2, kernel=kernel, structure=structure, **w)
            for kernel, structure in (
                ("laplace", "full"),
                ("laplace", "classwise"),
                ("gaussian", "classwise"),
            )
        ),
        lambda w: tuple(
            caldist.kernel_ce(Y, P, bandwidth=0.2, kernel=kernel, **w)
            for kernel in ("laplace", "laplace", "gaussian")
        ),
        {"rel": 1e-12},
    ),
    "worst_subset": (
        lambda w: multiclass.worst_subset(Y, V, **w).value,
        lambda w: caldist.smooth_ce(Y, P, **w),
        None,
    ),
    "distance_bracket": (
        lambda w: ends(multiclass.distance_bracket(Y, V, tol=TOL, **w)),
        lambda w: ends(caldist.certify(Y, P, tol=TOL, **w)),
        None,
    ),
    "certify": (
        lambda w: ends(multiclass.certify(Y, V, tol=TOL, **w)),
        lambda w: ends(caldist.certify(Y, P, tol=TOL, **w)),
        {"abs": 3 * TOL},
    ),
    "confidence_interval": (
        lambda w: numbers(multiclass.confidence_interval(Y, V, **w)),
        lambda w: numbers(caldist.confidence_interval(Y, P, **SPLIT, **w)),
        None,
    ),
    "calibration_test": (statistics, binary_statistics, {"rel": 1e-12}),
    "compare": (
        lambda w: multiclass.compare(Y, V, V[::-1], n_resamples=99, rng=0, **w),
        lambda w: caldist.compare(Y, P, P[::-1], n_resamples=99, rng=0, **w),
        None,
    ),
}


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("name", TWINS)
def test_two_classes_are_the_binary_function(name, weight):
    found, twin, near = TWINS[name]
    w = {"sample_weight": WEIGHTS[weight]}
    expected = twin(w) if near is None else pytest.approx(twin(w), **near)
    assert found(w) == expected


def test_every_function_has_a_twin():
    functions = {name for name in multiclass.__all__ if name[0].islower()}
    assert functions - {"one_vs_rest", "top_label"} == set(TWINS)


# -- what changes nothing --------------------------------------------------------------------------

STATEMENTS = {
    "classwise_distance": lambda y, W, **w: multiclass.classwise_distance(y, W, tol=TOL, **w),
    "classwise_table": lambda y, W, **w: [
        (part.share, part.smooth_ce, part.noise, part.lower)
        for part in sorted(
            multiclass.classwise_table(y, W, tol=TOL, **w).lines,
            key=lambda part: part.mean_prediction,
        )
    ],
    "smooth_ce": multiclass.smooth_ce,
    "kernel_ce": multiclass.kernel_ce,
    "worst_subset": lambda y, W, **w: multiclass.worst_subset(y, W, **w).value,
    "distance_bracket": lambda y, W, **w: multiclass.distance_bracket(y, W, tol=TOL, **w).lower,
    "certify": lambda y, W, **w: multiclass.certify(y, W, tol=TOL, **w).lower,
    "confidence_interval": lambda y, W, **w: multiclass.confidence_interval(y, W, **w).value,
    "compare": lambda y, W, **w: (
        multiclass.compare(y, W, np.full(W.shape, 1 / 3), n_resamples=99, rng=0, **w).value_a
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_rows_of_weight_0_and_the_order_of_classes_change_nothing(name):
    statement = STATEMENTS[name]
    near = {"abs": 2 * TOL if TOL > 1e-6 else 1e-9}
    y, W = oracles.softmax(SIZE // 2, 3, 1.5, 2.0, 0)
    weight = np.random.default_rng(0).uniform(0.5, 1, y.size)
    expected = np.asarray(statement(y, W, sample_weight=weight))
    others, absent = oracles.softmax(20, 3, 1.5, 9.0, 5)
    found = statement(
        np.concatenate((y, others)),
        np.vstack((W, absent)),
        sample_weight=np.concatenate((weight, np.zeros(20))),
    )
    assert np.asarray(found) == pytest.approx(expected, **near)
    turn = np.array([2, 0, 1])
    found = statement(np.argsort(turn)[y], W[:, turn], sample_weight=weight)
    assert np.asarray(found) == pytest.approx(expected, **near)


@pytest.mark.parametrize("seed", range(4))
def test_an_absent_class_counts_with_its_mean_probability(seed):
    """ldCE of a class that never occurs is E v_j."""
    y, W = oracles.softmax(SIZE // 2, 3, 1.5, 2.0, seed)
    W = W[:, [0, 1, 2]] * 0.9
    W = np.column_stack((W, np.full(y.size, 0.1)))
    table = multiclass.classwise_table(y, W, tol=TOL, confidence_level=None)
    assert table.lines[3].share == pytest.approx(0.05, abs=2 * TOL)
    assert table.lines[3].frequency == 0
