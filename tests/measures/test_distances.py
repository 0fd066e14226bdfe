"""Lower, upper and true distance against linear programs, brute force and closed forms."""

import concurrent.futures
import math
import pickle
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import caldist
import oracles
from caldist import Joint
from caldist.kernels import loader
from caldist.measures import _grouping_search, _partitions, lower_solver
from caldist.measures.lower_distance import certify_lower
from caldist.measures.upper_distance import nearest_known
from strategies import FAMILIES, family, probability, samples

TOL = 1e-6 if loader.COMPILED else 1e-4  # plain kernels need seconds for 1e-6
FEW = 6 if not loader.COMPILED else 9


lower_distance = caldist.lower_distance.using(tol=TOL)


# -- lower distance ------------------------------------------------------------------------------


@given(samples(max_size=8))
def test_lower_distance_equals_the_papers_primal(sample):
    y, p, weight = sample
    v, g0, g1 = oracles.distribution(y, p, weight)
    grid = np.unique(np.concatenate((v, np.linspace(0, 1, 201))))
    program = oracles.lower_distance_lp(v, g0, g1, grid)
    value = lower_distance(y, p, sample_weight=weight)
    # Restricting u to a grid of spacing h raises the program by at most h²/2.
    assert program - 0.005**2 / 2 - TOL - 1e-7 <= value <= program + 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAMILIES)
def test_lower_distance_equals_the_reduced_dual(kind):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y, p = family(kind, 50, rng)
        weight = rng.exponential(size=50) ** 3 if seed % 2 else None
        v, g0, g1 = oracles.distribution(y, p, weight)
        grid = np.unique(np.concatenate((v, np.linspace(0, 1, 1001))))
        grid = grid[np.concatenate(([True], np.diff(grid) > 1e-13))]
        value = lower_distance(y, p, sample_weight=weight)
        program = oracles.lower_distance_dual_lp(v, g0, g1, np.union1d(grid, v))
        assert program - 0.001**2 / 2 - TOL - 2e-7 <= value <= program + 2e-7


@pytest.mark.parametrize("prediction", [0.0, 0.3, 1.0, 1e-300])
def test_a_single_value(prediction):
    for ones in range(5):
        y = [1] * ones + [0] * (4 - ones)
        value = lower_distance(y, [prediction] * 4)
        assert value == pytest.approx(abs(ones / 4 - prediction), abs=TOL)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only(label):
    p = np.linspace(0, 1, 20) ** 2
    value = lower_distance([label] * 20, p)
    assert value == pytest.approx(np.abs(label - p).mean(), abs=TOL)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.2, 0.25])
def test_quadratic_gap(alpha):
    """Two domains with the same predictions and labels: dCE = 4α² in one, α in the other.

    "ldCE = inf and udCE = sup over lifts": the same joint has ldCE = 4α²/(1+2α) and udCE = α.
    """
    f = np.array([0.5 + alpha, 0.5 + alpha, 0.5 - alpha, 0.5 - alpha])  # x = 00, 01, 10, 11
    mass = [alpha, 0.5 - alpha, 0.5 - alpha, alpha]
    first = [0.0, 0.5, 0.5, 1.0]
    second = [0.5 - alpha, 0.5 - alpha, 0.5 + alpha, 0.5 + alpha]
    assert caldist.measures.true_distance(first, f, mass=mass) == pytest.approx(4 * alpha**2)
    assert caldist.measures.true_distance(second, f, mass=mass) == pytest.approx(alpha)
    for mean in (first, second):
        joint = Joint.from_masses(
            f, np.multiply(mass, np.subtract(1, mean)), np.multiply(mass, mean)
        )
        lower = lower_distance(joint)
        assert lower == pytest.approx(4 * alpha**2 / (1 + 2 * alpha), abs=TOL)
        assert caldist.upper_distance(joint) == pytest.approx(alpha)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.2])
def test_tight_gap(alpha):
    """ "udCE ≤ 5α² and intCE ≥ α"; contiguous groups cannot show it."""
    f = np.array([0.5 + 1.5 * alpha, 0.5 + alpha, 0.5 - alpha, 0.5 - 1.5 * alpha])
    mass = np.array([alpha, 0.5 - alpha, 0.5 - alpha, alpha])
    mean = np.array([0.0, 0.5, 0.5, 1.0])
    joint = Joint.from_masses(f, mass * (1 - mean), mass * mean)
    assert caldist.upper_distance(joint) <= 5 * alpha**2 + 1e-15
    assert caldist.measures.true_distance(mean, f, mass=mass) <= 5 * alpha**2 + 1e-15
    if alpha == 0.05:
        assert caldist.upper_distance(joint) == pytest.approx(0.0125)


@pytest.mark.parametrize(("delta", "gap"), [(0.1, 0.1), (0.01, 0.02), (0.3, 0.5)])
def test_ratio_two(delta, gap):
    """SmCE/ldCE = 2 - δ - Δ: the constant 2 is tight."""
    joint = Joint.from_masses([delta, delta + gap], [1 - delta, 0.0], [0.0, delta])
    lower = lower_distance(joint, tol=TOL / 100)
    assert caldist.smooth_ce(joint) / lower == pytest.approx(
        2 - delta - gap, rel=TOL / (delta * gap)
    )


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-7, 1e-8] if loader.COMPILED else [1e-3])
def test_the_tolerance_is_reached(tol):
    for kind in FAMILIES:
        y, p = family(kind, 300 if loader.COMPILED else 20, np.random.default_rng(3))
        proof = caldist.certify(y, p, tol=tol)
        assert proof.gap <= tol
        proof.verify()


def test_an_unreachable_tolerance_is_an_error_that_quotes_the_interval(monkeypatch):
    monkeypatch.setattr(lower_solver, "MAX_LEVELS", 0)
    y, p = family("beta3", 50, np.random.default_rng(0))
    proof = caldist.certify(y, p)
    assert proof.gap > 1e-6
    proof.verify()
    with pytest.raises(caldist.errors.ToleranceError) as caught:
        caldist.lower_distance(y, p)
    assert repr(proof.lower) in str(caught.value)
    assert repr(proof.upper) in str(caught.value)
    assert (caught.value.lower, caught.value.upper) == (proof.lower, proof.upper)


def test_progress_is_reported(monkeypatch):
    seen = []

    class Bar:
        def __enter__(self):
            return lambda lower, upper: seen.append((lower, upper))

        def __exit__(self, *error):
            return None

    monkeypatch.setattr(
        import_module("caldist.measures.lower_distance"), "bounds_bar", lambda name, *, show: Bar()
    )
    y, p = family("beta3", 200, np.random.default_rng(0))
    caldist.lower_distance(y, p, progress=True, tol=1e-3)
    assert seen
    assert all(lower <= upper for lower, upper in seen)


def test_a_quick_call_shows_no_bar(capfd):
    y, p = family("beta3", 50, np.random.default_rng(0))
    caldist.lower_distance(y, p, progress=True, tol=1e-3)
    assert capfd.readouterr().err.strip() == ""


# -- upper and true distance ---------------------------------------------------------------------


@given(samples(max_size=FEW))
def test_upper_distance_equals_brute_force(sample):
    y, p, weight = sample
    v, g0, g1 = oracles.distribution(y, p, weight)
    brute = oracles.partition_brute(v, g0 + g1, g1, order=1)
    proof = caldist.certify(y, p, measure="upper_distance", sample_weight=weight)
    assert proof.exact
    assert proof.value == pytest.approx(brute, abs=1e-13)
    assert caldist.upper_distance(y, p, sample_weight=weight) == proof.value


@st.composite
def domains(draw, max_size=FEW):
    size = draw(st.integers(1, max_size))
    mean = draw(st.lists(probability, min_size=size, max_size=size))
    value = draw(st.lists(probability, min_size=size, max_size=size))
    mass = draw(st.lists(st.floats(0.01, 1), min_size=size, max_size=size))
    return np.array(mean), np.array(value), np.array(mass)


@given(domains(), st.sampled_from([1, 1.5, 2, 3]))
def test_true_distance_equals_brute_force(domain, order):
    mean, value, mass = domain
    share = mass / mass.sum()
    brute = oracles.partition_brute(value, share, share * mean, order=order)
    distance = caldist.measures.true_distance(mean, value, mass=mass, order=order)
    assert distance == pytest.approx(brute ** (1 / order), abs=1e-9)


@pytest.mark.parametrize("orders", [6, 20])
@pytest.mark.parametrize("seed", range(4))
def test_masses_of_many_sizes_equal_brute_force(seed, orders):
    rng = np.random.default_rng(seed)
    p, y = np.sort(rng.random(FEW)), rng.integers(0, 2, FEW)
    weight = 10.0 ** rng.uniform(-orders, 0, FEW)
    v, g0, g1 = oracles.distribution(y, p, weight)
    brute = oracles.partition_brute(v, g0 + g1, g1, order=1)
    assert caldist.upper_distance(y, p, sample_weight=weight) == pytest.approx(brute, rel=1e-12)


@pytest.mark.skipif(not loader.COMPILED, reason="too slow as plain Python")
@pytest.mark.parametrize("kind", ["beta3", "beta1", "one sided"])
def test_up_to_seventeen_predictions_are_exact(kind):
    rng = np.random.default_rng(5)
    y, p = family(kind, 400, rng)
    proof = caldist.certify(y, np.round(p * 16) / 16, measure="upper_distance")
    assert proof.joint.prediction.size <= 17
    assert proof.exact
    proof.verify()
    proof = caldist.certify(y, np.round(p * 24) / 24, measure="upper_distance")
    assert proof.joint.prediction.size > 17
    assert not proof.exact
    proof.verify()


@pytest.mark.parametrize("seed", range(5))
def test_beyond_few_predictions_the_value_is_a_valid_bound(seed, monkeypatch):
    monkeypatch.setattr(_partitions, "DYNAMIC", 3)
    y, p = family("beta3", 8, np.random.default_rng(seed))
    proof = caldist.certify(y, p, measure="upper_distance")
    assert not proof.exact
    proof.verify()
    v, g0, g1 = oracles.distribution(y, p)
    brute = oracles.partition_brute(v, g0 + g1, g1, order=1)
    assert proof.lower - 1e-14 <= brute <= proof.value + 1e-14


@given(st.lists(st.tuples(probability, st.integers(0, 1)), min_size=1, max_size=8))
def test_the_lattice_path_is_the_true_distance_of_certain_labels(points):
    value = np.array([v for v, _ in points])
    label = np.array([y for _, y in points])
    lattice = loader.partition.lattice_distance(
        np.sort(value[label == 1]), np.sort(value[label == 0])
    )
    assert lattice / value.size == pytest.approx(
        caldist.measures.true_distance(label, value), abs=1e-13
    )


def test_certain_labels_up_to_two_hundred_points_are_exact():
    y, p = family("beta3", 200 if loader.COMPILED else 18, np.random.default_rng(4))
    bounds = caldist.measures.true_distance_bounds(y, p)
    assert bounds.exact
    assert bounds.lower == bounds.upper == caldist.measures.true_distance(y, p)
    assert lower_distance(y, p) <= bounds.upper <= caldist.upper_distance(y, p) + 1e-12


@pytest.mark.skipif(not loader.COMPILED, reason="too slow as plain Python")
@pytest.mark.parametrize("kind", ["beta1", "beta3", "one sided"])
def test_the_rounded_coupling_is_close_to_the_lower_distance(kind):
    y, p = family(kind, 4000, np.random.default_rng(4))
    bounds = caldist.measures.true_distance_bounds(y, p)
    assert not bounds.exact
    assert 0 <= bounds.upper - bounds.lower <= 3 / math.sqrt(4000)
    with pytest.raises(caldist.errors.ToleranceError, match=r"y_mean.*true_distance_bounds"):
        caldist.measures.true_distance(y, p)


@pytest.mark.skipif(not loader.COMPILED, reason="too slow as plain Python")
def test_bounds_contain_the_exact_distance(monkeypatch):
    module = import_module("caldist.measures.true_distance")

    for seed in range(5):
        y, p = family("beta3", 60, np.random.default_rng(seed))
        exact = caldist.measures.true_distance(y, p)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_LATTICE", 0)
            bounds = caldist.measures.true_distance_bounds(y, p)
        assert not bounds.exact
        assert bounds.lower - 1e-12 <= exact <= bounds.upper + 1e-12


def test_bounds_of_uncertain_labels_and_other_orders():
    rng = np.random.default_rng(0)
    mean, value = rng.random(40), rng.random(40)
    first = caldist.measures.true_distance_bounds(mean, value)
    second = caldist.measures.true_distance_bounds(mean, value, order=2)
    assert not first.exact
    assert first.lower <= first.upper
    assert second.upper == pytest.approx(math.sqrt(first.upper))


@pytest.mark.parametrize(
    ("arguments", "options", "part"),
    [
        (([0, 1.5], [0.5, 0.5]), {}, "y_mean[1]"),
        (([0, 1], [0.5, -0.5]), {}, "y_prob[1]"),
        (([0, 1], [0.5]), {}, "y_mean"),
        (([0, 1], [0.5, 0.5]), {"mass": [1, -1]}, "mass[1]"),
        (([0, 1], [0.5, 0.5]), {"mass": [0, 0]}, "mass"),
        (([0, 1], [0.5, 0.5]), {"order": 0.5}, "order"),
        (([0, 1], [0.5, 0.5]), {"order": float("inf")}, "order"),
        (([0, 1], [0.5, 0.5]), {"order": 400}, "order"),
        (([0, 1], [0.5, 0.5]), {"order": 10**400}, "order"),
        (([], []), {}, "empty"),
    ],
)
def test_bad_domains(arguments, options, part):
    for function in (caldist.measures.true_distance, caldist.measures.true_distance_bounds):
        with pytest.raises((TypeError, ValueError)) as caught:
            function(*arguments, **options)
        assert part in str(caught.value)


# -- the recalibration and the bracket
# ------------------------------------------------------------------


@given(samples())
def test_nearest_calibrated_predictions_are_calibrated_and_as_far_as_said(sample):
    y, p, weight = sample
    recalibrated = caldist.measures.nearest_calibrated(y, p, sample_weight=weight)
    assert recalibrated.shape == p.shape
    assert caldist.ece(y, recalibrated, sample_weight=weight) == pytest.approx(0, abs=1e-9)
    moved = float(np.average(np.abs(recalibrated - p), weights=weight))
    assert moved == pytest.approx(caldist.upper_distance(y, p, sample_weight=weight), abs=1e-12)


@given(
    st.lists(probability, min_size=2, max_size=12),
    st.lists(probability, min_size=1, max_size=30),
    st.data(),
)
def test_rows_without_weight_follow_the_nearest_prediction(known, new, data):
    """Against all distances in rational arithmetic; close calls and floats next to them, too."""
    middle = (np.asarray(known[1:]) + known[:-1]) / 2
    new = np.concatenate((new, middle, np.nextafter(middle, 0), np.nextafter(middle, 1), known))
    y = data.draw(st.lists(st.integers(0, 1), min_size=len(known), max_size=len(known)))
    weight = np.repeat([1.0, 0.0], [len(known), new.size])
    found = caldist.measures.nearest_calibrated(
        [*y, *[0] * new.size], [*known, *new], sample_weight=weight
    )
    value = {v + 0.0: k for v, k in zip(known, found[: len(known)], strict=True)}
    for v, mapped in zip(new, found[len(known) :], strict=True):
        nearest = min(value, key=lambda u, v=v: (abs(Fraction(u) - Fraction(v)), u))
        assert mapped == value[nearest]


def test_halfway_and_among_neighbouring_floats_the_nearest_prediction_is_found():
    """The rounded midpoint of two neighbouring floats is one of them."""
    new = np.array([0.25, np.nextafter(0.25, 1)])
    assert nearest_known(np.array([0, 0.5]), new).tolist() == [0, 1]
    low = 0.5 + 2.0 ** -np.arange(30, 53)
    for a in np.concatenate((low, np.nextafter(low, 1))):
        known = np.array([a, np.nextafter(a, 1)])
        assert nearest_known(known, known).tolist() == [0, 1]


@given(samples(max_size=14))
def test_the_bracket_contains_every_distance(sample):
    y, p, weight = sample
    bracket = caldist.distance_bracket(y, p, tol=TOL, sample_weight=weight)
    assert bracket.lower_measure == "lower_distance"
    assert bracket.upper_measure in {"upper_distance", "interval_ce", "surrogate_interval_ce"}
    assert bracket.lower <= bracket.upper
    assert bracket.upper <= caldist.interval_ce(y, p, sample_weight=weight) + 1e-12
    if weight is None:
        # The rows themselves, each an x of its own, are one of the domains it speaks of.
        assert bracket.lower - 1e-9 <= caldist.measures.true_distance(y, p) <= bracket.upper + 1e-9


# -- theorems ------------------------------------------------------------------------------------


@given(samples())
def test_the_chain(sample):
    """ "½ ldCE ≤ smCE ≤ 2 ldCE" and "ldCE ≤ dCE ≤ udCE ≤ intCE ≤ 4√ldCE", SintCE ≤ 6√ldCE."""
    y, p, weight = sample
    lower = lower_distance(y, p, sample_weight=weight)
    upper = caldist.upper_distance(y, p, sample_weight=weight)
    smooth = caldist.smooth_ce(y, p, sample_weight=weight)
    interval = caldist.interval_ce(y, p, sample_weight=weight)
    top = lower + TOL
    assert lower / 2 <= smooth + 1e-12
    assert smooth <= 2 * top
    assert lower <= upper + 1e-12
    assert upper <= interval + 1e-12
    assert interval <= 4 * math.sqrt(top)
    assert caldist.surrogate_interval_ce(y, p, sample_weight=weight) <= 6 * math.sqrt(top)
    kernel = caldist.kernel_ce(y, p, sample_weight=weight)
    assert kernel <= 2 * math.sqrt(2 * top)
    assert kernel**2 <= top * min(2, 1 + 2 * top)
    mean = abs(float(np.average(y - p, weights=weight)))
    assert mean <= top


@given(samples(), st.sampled_from([0.05, 0.1, 0.5, 1.0]))
def test_random_interval_ce_is_bounded_by_the_lower_distance(sample, width):
    """Lemma: "RintCE(Γ, ε) ≤ (1 + 2/ε) ldCE(Γ)"."""
    y, p, weight = sample
    lower = lower_distance(y, p, sample_weight=weight)
    value = caldist.random_interval_ce(y, p, width=width, sample_weight=weight)
    assert value <= (1 + 2 / width) * (lower + TOL)


@given(samples(max_size=14), st.integers(1, 30))
def test_upper_distance_is_below_every_binned_ece_with_half_its_width(sample, n_bins):
    """ "udCE(f) ≤ binnedECE(f, I) + w(I)" for every I; half the width suffices."""
    y, p, weight = sample
    options = {"n_bins": n_bins, "sample_weight": weight}
    plain = caldist.binned_ece(y, p, **options)
    wide = caldist.binned_ece(y, p, add_width=True, **options)
    upper = caldist.upper_distance(y, p, sample_weight=weight)
    assert upper <= (plain + wide) / 2 + 1e-12
    assert upper <= caldist.ece(y, p, sample_weight=weight) + 1e-12


@given(domains(), st.data(), st.sampled_from([1, 2]))
def test_true_distance_is_lipschitz_in_the_predictor(domain, data, order):
    """DCE is 1-Lipschitz: |dCE(f) - dCE(f')| ≤ ℓ_p(f, f')."""
    mean, value, mass = domain
    other = np.array(data.draw(st.lists(probability, min_size=mean.size, max_size=mean.size)))
    far = float(np.average(np.abs(value - other) ** order, weights=mass)) ** (1 / order)
    before = caldist.measures.true_distance(mean, value, mass=mass, order=order)
    after = caldist.measures.true_distance(mean, other, mass=mass, order=order)
    assert abs(before - after) <= far + 1e-9


@given(domains(), st.sampled_from([1.5, 2, 4]))
def test_orders_are_polynomially_related(domain, order):
    """Lemma: "(dCE_p)^p ≤ dCE_1 ≤ dCE_p"."""
    mean, value, mass = domain
    first = caldist.measures.true_distance(mean, value, mass=mass)
    higher = caldist.measures.true_distance(mean, value, mass=mass, order=order)
    assert higher**order <= first + 1e-12
    assert first <= higher + 1e-9


@given(domains())
def test_a_complete_lipschitz_measure_is_at_most_its_constant_times_the_distance(domain):
    """Lemma: any complete measure that is L-Lipschitz is at most L·dCE: smCE with L = 2, and
    E|·|-Lipschitz ldCE with L = 1."""
    mean, value, mass = domain
    joint = Joint.from_masses(value, mass * (1 - mean), mass * mean)
    distance = caldist.measures.true_distance(mean, value, mass=mass)
    assert caldist.smooth_ce(joint) <= 2 * distance + 1e-9
    assert lower_distance(joint) <= distance + 1e-9
    assert distance <= caldist.upper_distance(joint) + 1e-9


@given(samples(max_size=10), st.data())
def test_lower_distance_moves_at_most_by_the_wasserstein_distance(sample, data):
    """Lemma: "|ldCE(Γ) - ldCE(Γ')| ≤ W1(Γ, Γ')", here for predictions that move."""
    y, p, weight = sample
    other = np.array(data.draw(st.lists(probability, min_size=y.size, max_size=y.size)))
    far = float(np.average(np.abs(p - other), weights=weight))
    before = lower_distance(y, p, sample_weight=weight)
    after = lower_distance(y, other, sample_weight=weight)
    assert abs(before - after) <= far + TOL


@given(samples(max_size=10), st.data())
def test_lower_distance_under_changed_labels(sample, data):
    """|ldCE(P) - ldCE(Q)| ≤ ∫|ΔP(y=1, v≤t)|dt + ∫|ΔP(y=0, v>t)|dt."""
    y, p, _ = sample
    other = np.array(data.draw(st.lists(st.integers(0, 1), min_size=y.size, max_size=y.size)))
    assume((other != y).any())
    order = np.argsort(p, kind="stable")
    v = np.concatenate(([0.0], p[order], [1.0]))
    step = np.concatenate(([0.0], (other - y)[order], [0.0])) / y.size
    below = np.cumsum(step)[:-1]  # of ones up to v
    above = -(step.sum() - np.cumsum(step))[:-1]  # of zeros beyond v
    bound = float(np.diff(v) @ (np.abs(below) + np.abs(above)))
    change = lower_distance(other, p) - lower_distance(y, p)
    assert abs(change) <= bound + TOL


def test_large_upper_distance_is_between_its_bounds():
    y, p = family("beta3", 5000 if loader.COMPILED else 100, np.random.default_rng(0))
    lower, upper = lower_distance(y, p), caldist.upper_distance(y, p)
    assert lower <= upper <= caldist.interval_ce(y, p)


def tight_gaps(slope, filler):
    """Four tight-gap instances side by side: 16 distinct predictions, more than contiguous groups
    can repair, since an extreme one belongs to the far one of the two in the middle. As many
    others as wanted, which are calibrated, stand beside them. Return the joint and the cost of that
    map.
    """
    alpha, centre = 0.02, np.array([0.2, 0.4, 0.6, 0.8])
    v = (centre[:, None] + np.array([1.5, 1, -1, -1.5]) * alpha).ravel()
    mass = np.tile([alpha, 0.5 - alpha, 0.5 - alpha, alpha], 4)
    mean = (centre[:, None] + np.array([-1.0, 0, 0, 1.0]) * slope).ravel()
    group = np.tile([1, 0, 1, 0], 4) + np.repeat(np.arange(4), 4) * 2
    target = (np.bincount(group, mass * mean) / np.bincount(group, mass))[group]
    cost = float(mass @ np.abs(v - target)) / (mass.sum() + 1e-3 * filler)
    rest = np.linspace(0.9, 1, filler)
    v, mean = np.concatenate((v, rest)), np.concatenate((mean, rest))
    mass = np.concatenate((mass, np.full(filler, 1e-3)))
    return Joint.from_masses(v, mass * (1 - mean), mass * mean), cost


def test_the_local_search_improves_on_contiguous_groups():
    joint, _ = tight_gaps(0.2, 60)
    contiguous, _ = _grouping_search.search(joint.prediction, *joint.normalized())
    assert caldist.upper_distance(joint) < contiguous - 1e-4


@pytest.mark.skipif(not loader.COMPILED, reason="too slow as plain Python")
def test_a_bound_from_above_is_not_shown_as_certain():
    """Beyond 300 predictions none is moved between groups: a cheaper map exists."""
    joint, cheaper = tight_gaps(0.1, 320)
    found = caldist.evaluate(joint, measures=["upper_distance"])["upper_distance"]
    assert found.value == found.upper == caldist.upper_distance(joint)
    assert found.lower <= cheaper < found.upper - 1e-3
    assert found.lower == pytest.approx(caldist.lower_distance(joint), abs=1e-6)


@pytest.mark.parametrize("kind", ["beta1", "beta3"])
def test_what_is_certain_of_the_upper_distance(kind):
    """The lower distance bounds it from below, and it is certain itself where it is exact."""
    y, p = family(kind, 30, np.random.default_rng(2))
    found = caldist.evaluate(y, p, measures=["upper_distance"])["upper_distance"]
    proof = caldist.certify(y, p, measure="upper_distance")
    assert not proof.exact
    assert (found.value, found.lower, found.upper) == (proof.value, proof.lower, proof.upper)
    assert found.lower < found.upper
    few = caldist.evaluate(y[:9], p[:9], measures=["upper_distance"])["upper_distance"]
    assert few.lower == few.value == few.upper


def test_few_predictions_need_no_threads(monkeypatch):
    """They would take many times as long as the search itself."""

    def refuse(*arguments, **options):
        raise AssertionError

    many = 300 if loader.COMPILED else 60
    y, p = family("beta3", many, np.random.default_rng(0))
    samples = [(y[:n], p[:n]) for n in (1, 4, 30, many)]
    with monkeypatch.context() as patch:
        patch.setattr(concurrent.futures, "ThreadPoolExecutor", refuse)
        in_line = [caldist.measures.nearest_calibrated(*sample).tolist() for sample in samples]
        values = [caldist.upper_distance(*sample) for sample in samples]
    # The same through a second core, to the bit.
    monkeypatch.setattr(_grouping_search, "ALL_CUTS", 0)
    monkeypatch.setattr(
        _grouping_search, "_nested_cuts", lambda weight, _: [np.arange(weight.size + 1)]
    )
    assert [caldist.measures.nearest_calibrated(*sample).tolist() for sample in samples] == in_line
    assert [caldist.upper_distance(*sample) for sample in samples] == values


def test_certify_lower_of_a_joint():
    joint = Joint.from_masses([0.2, 0.6], [1, 2], [3, 4])
    certify_lower(joint, tol=TOL).verify()


def test_tolerance_errors_can_be_pickled():
    error = caldist.errors.ToleranceError("message", 0.1, 0.2)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.lower, again.upper) == ("message", 0.1, 0.2)
