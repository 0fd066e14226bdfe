"""recalibrate and evaluate_map: the statement, what it is made from, and what is refused."""

import copy
import dataclasses
import math
import pickle
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import caldist
from caldist import Joint, recalibrate
from caldist._util.numbers import down, up
from caldist.data.rows import Rows
from caldist.inference.folds import Folds, deal_evenly, ordered_units
from caldist.inference.noise import noise_of
from caldist.inference.resampling import Resampler
from caldist.inference.sample import FLIPS, LABELS, units_of
from caldist.measures.lower_distance import TOLERANCE
from caldist.measures.random_interval_ce import RandomIntervalNorm
from caldist.recalibration import CalibrationMap, _table, evaluate_map, statement
from caldist.recalibration._selection import CANDIDATES, Selection
from caldist.recalibration.recalibration import _FOLDS, FAMILIES
from strategies import family, fewer, samples

QUICK = {"n_resamples": 99, "rng": 0}
ALONE = {"confidence_level": None, "rng": 0}
FITTED = [method for method in FAMILIES if method != "auto"]
NAMES = ["smooth_ce", "lower_distance", "distance"]
flat = pytest.mark.filterwarnings("ignore:the map is constant|all rows have label:UserWarning")


def sample(n=600, seed=0, strength=2.0):
    rng = np.random.default_rng(seed)
    u = rng.random(n)
    return (rng.random(n) < u).astype(int), u**strength / (u**strength + (1 - u) ** strength)


# -- the theorem -----------------------------------------------------------------------------------


def kolmogorov(population, rows, labels, n):
    """Return D: of the empirical to the true law, label 1 by increasing v, then label 0."""
    mass0, mass1 = population
    line = np.concatenate((mass1, mass0))
    found = np.bincount(np.where(labels == 1, rows, rows + mass0.size), minlength=line.size) / n
    return np.abs(np.cumsum(found - line)).max()


@pytest.mark.slow
def test_one_bound_for_all_monotone_maps_fitted_ones_included():
    """For all nondecreasing κ: [0, 1] → [0, 1] simultaneously,

    |smCE_n(κ∘f) − smCE(κ∘f)| ≤ 2 D_n and |ldCE_n(κ∘f) − ldCE(κ∘f)| ≤ 2 D_n.
    """
    closest = 0.0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        atoms, n = int(rng.integers(2, 12)), int(rng.integers(3, 60))
        v = np.sort(rng.choice(np.linspace(0, 1, 101), atoms, replace=False))
        mass0, mass1 = rng.dirichlet(np.full(2 * atoms, 0.5)).reshape(2, atoms)
        drawn = rng.choice(2 * atoms, n, p=np.concatenate((mass0, mass1)))
        rows, labels = drawn % atoms, drawn // atoms
        bound = 2 * kolmogorov((mass0, mass1), rows, labels, n)
        free = np.sort(rng.random(atoms))
        maps = [v, free, (free > 0.5).astype(float)]
        if 0 < labels.sum() < n:
            for method in ("isotonic", "monotone", "sigmoid"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    maps.append(recalibrate(labels, v[rows], family=method, **ALONE).map(v))
        for kappa in maps:
            truth = Joint.from_masses(kappa, mass0, mass1)
            smooth = caldist.smooth_ce(labels, kappa[rows]) - caldist.smooth_ce(truth)
            assert abs(smooth) <= bound + 1e-12
            # As a norm of the difference it is nearer to the bound, which is not idle.
            support, place = np.unique(kappa, return_inverse=True)
            change = np.bincount(rows, labels - kappa[rows], atoms) / n
            change -= mass1 - (mass0 + mass1) * kappa
            norm = caldist.smooth_ce.norm(support)(np.bincount(place, change))
            assert norm <= bound + 1e-12
            closest = max(closest, norm / bound if bound else 0.0)
            if seed < 40:
                lower = caldist.lower_distance(labels, kappa[rows]) - caldist.lower_distance(truth)
                assert abs(lower) <= bound + 2e-6
    assert closest > 0.8


def test_bins_vary_by_two_for_each_edge_and_two_more():
    """|RintCE_n(ε) − RintCE(ε)| ≤ (2 + 2⌈1/ε⌉) D_n for all monotone maps."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        atoms, n = int(rng.integers(2, 30)), int(rng.integers(3, 60))
        v = np.sort(rng.random(atoms))
        mass0, mass1 = rng.dirichlet(np.full(2 * atoms, 0.5)).reshape(2, atoms)
        drawn = rng.choice(2 * atoms, n, p=np.concatenate((mass0, mass1)))
        rows, labels = drawn % atoms, drawn // atoms
        distance = kolmogorov((mass0, mass1), rows, labels, n)
        for width in (1.0, 0.5, 0.125, 0.3):
            options = {"width": width}
            truth = caldist.random_interval_ce(Joint.from_masses(v, mass0, mass1), **options)
            found = caldist.random_interval_ce(labels, v[rows], **options)
            assert abs(found - truth) <= (2 + 2 * math.ceil(1 / width)) * distance + 1e-12


def test_the_finite_sample_statement_is_the_theorem():
    y, p = sample(900)
    found = recalibrate(y, p, method="finite_sample", **QUICK)
    width = math.sqrt(2 * math.log(2 / 0.05) / 900)
    q = found.map(p)
    assert found.after["smooth_ce"].value == pytest.approx(caldist.smooth_ce(y, q), abs=1e-12)
    for name, measure in (("smooth_ce", caldist.smooth_ce), ("lower_distance", None)):
        slack = 0 if measure else 1e-6
        after, before = found.after[name], found.before[name]
        assert after.upper == pytest.approx(after.value + slack + width, abs=1e-12)
        assert before.lower == pytest.approx(max(0, before.value - width), abs=1e-12)
    assert found.n_resamples == 0
    assert "for every population" in str(found)


# -- the statement by replicates -------------------------------------------------------------------


def test_the_statement_is_about_the_table(monkeypatch):
    y, p = sample()
    with monkeypatch.context() as coarse:
        coarse.setattr(_table, "KNOTS", 3)
        found = recalibrate(y, p, family="beta", **QUICK)
    q = found.map(p)
    assert found.map.x.size <= 3
    assert found.after["smooth_ce"].value == pytest.approx(caldist.smooth_ce(y, q), abs=1e-12)
    value = caldist.lower_distance(y, q)
    assert found.after["lower_distance"].value == pytest.approx(value, abs=2e-6)
    assert found.resolution.score == pytest.approx(brier_score_loss(y, q))
    # A table so coarse is worse than the fit, and its statement says so.
    fine = recalibrate(y, p, family="beta", **QUICK)
    assert fine.after["smooth_ce"].value < found.after["smooth_ce"].value


def test_limits_before_are_those_of_the_library():
    y, p = sample()
    found = recalibrate(y, p, family="sigmoid", **QUICK)
    interval = caldist.confidence_interval(y, p, **QUICK)
    before = found.before["smooth_ce"]
    assert (before.value, before.lower) == (interval.value, interval.lower)
    bracket = caldist.confidence_interval(y, p, measure="distance", **QUICK)
    assert found.before["distance"].lower == pytest.approx(bracket.lower)
    assert found.before["distance"].upper == pytest.approx(bracket.upper)


@pytest.mark.parametrize("method", FITTED)
def test_values_and_ends_are_in_order(method):
    y, p = sample()
    found = recalibrate(y, p, family=method, **QUICK)
    assert list(found.before) == list(found.after) == NAMES
    for bounds in (*found.before.values(), *found.after.values()):
        assert 0 <= bounds.lower <= bounds.upper <= 1
        assert bounds.lower <= bounds.value
    for part in (found.before, found.after):
        assert part["distance"].upper >= part["lower_distance"].lower
    assert found.after["smooth_ce"].upper > found.after["smooth_ce"].value
    assert found.family == method


@pytest.mark.parametrize("method", ["resampling", "finite_sample"])
def test_what_the_identity_leaves_is_what_there_was(method):
    """No label has moved it, so nothing is paid for, and what is said before holds after."""
    y, p = sample(strength=1.0)
    found = recalibrate(y, p, family="identity", method=method, **QUICK)
    assert found.map.is_identity
    assert found.after == found.before
    given = evaluate_map(y, p, map=([0, 0.5, 1], [0, 0.5, 1]), method=method, **QUICK)
    assert given.after == given.before == found.before
    other = evaluate_map(y, p, map=([0, 0.5, 1], [0, 0.6, 1]), method=method, **QUICK)
    assert not other.map.is_identity
    assert other.after != other.before


def test_the_remainder_is_a_row_for_each_block_and_parameter():
    """b = Σ κ(1 − κ)/n over blocks, and E[κ(1 − κ)]/n for each parameter."""
    y, p = sample(200)
    units = ordered_units(Rows.of(y, p))
    value = np.full(units.prediction.size, 0.25)
    spread = 0.25 * 0.75 / 200
    assert statement.penalty(units, value, None, 3) == pytest.approx(3 * spread)
    starts = units.prediction[[0, 50, 120]]
    assert statement.penalty(units, value, starts, 2) == pytest.approx(5 * spread)
    # Rows that come twice in a cluster count as one of twice the weight.
    twice = np.repeat(np.arange(200), 2)
    pairs = Rows.of(y[twice], p[twice], clusters=twice)
    assert statement.penalty(ordered_units(pairs), value, starts, 2) == pytest.approx(5 * spread)
    weighted = Rows.of(y, p, sample_weight=np.full(200, 3.0))
    assert statement.penalty(ordered_units(weighted), value, starts, 2) == pytest.approx(5 * spread)


def test_more_confidence_needs_a_larger_bound():
    y, p = sample()
    uppers = [
        recalibrate(y, p, family="sigmoid", confidence_level=level, **QUICK)
        .after["smooth_ce"]
        .upper
        for level in (0.5, 0.8, 0.95)
    ]
    assert uppers == sorted(uppers)
    with pytest.raises(ValueError, match="n_resamples is 9: at this confidence level"):
        recalibrate(y, p, n_resamples=9)


# -- the ranking -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [m for m in FAMILIES if m != "isotonic"])
@pytest.mark.parametrize("name", ["beta2.0", "beta0.5", "one sided", "tied", "oscillating"])
def test_the_auc_is_unchanged_to_the_last_bit(method, name):
    y, p = family(name, 2000, np.random.default_rng(5))
    found = recalibrate(y, p, family=method, **ALONE)
    assert found.map.is_strict
    assert roc_auc_score(y, found.map(p)) == roc_auc_score(y, p)
    assert found.auc_before == found.auc_after == pytest.approx(roc_auc_score(y, p), abs=1e-12)


def test_isotonic_regression_makes_ties_and_says_so():
    y, p = sample()
    found = recalibrate(y, p, family="isotonic", **QUICK)
    assert found.auc_after == pytest.approx(roc_auc_score(y, found.map(p)))
    assert found.auc_before != found.auc_after
    assert "makes ties" in str(found)


# -- losses ----------------------------------------------------------------------------------------


def test_losses_are_those_of_other_rows():
    y, p = sample(300)
    found = recalibrate(y, p, family="isotonic", **QUICK)
    for name, measure in (("brier_score", brier_score_loss), ("log_loss", log_loss)):
        change = found.loss[name]
        assert change.before == pytest.approx(measure(y, p))
        assert change.change == pytest.approx(change.after - change.before)
        assert change.lower < change.change < change.upper
        assert change.after > measure(y, found.map(p)) + 0.001  # that of the rows fitted


def test_losses_of_folds_by_hand():
    y, p = sample(400)
    found = recalibrate(y, p, family="temperature", **QUICK)
    units = ordered_units(Rows.of(y, p))
    asked = caldist.inference.resampling.Resampler.of(0, n_resamples=99)
    folds = deal_evenly(units, asked.stream(_FOLDS))
    label, place = folds.units.label, folds.units.place
    v = units.prediction[place]
    mapped = np.empty(v.size)
    for k in range(5):
        own = folds.fold[0] == k
        table = recalibrate(label[~own], v[~own], family="temperature", **ALONE).map
        mapped[own] = table(v[own])
    assert found.loss["log_loss"].after == pytest.approx(log_loss(label, mapped), rel=1e-9)
    difference = (mapped - label) ** 2 - (v - label) ** 2
    half = 1.959964 * difference.std() / 20
    assert found.loss["brier_score"].upper == pytest.approx(difference.mean() + half, rel=1e-5)


def test_the_identity_changes_no_loss():
    found = recalibrate(*sample(), family="identity", **QUICK)
    for change in found.loss.values():
        assert (change.change, change.lower, change.upper) == (0, 0, 0)
        assert change.before == pytest.approx(change.after)


def test_a_certain_prediction_that_failed_costs_infinitely_much_before():
    y, p = sample()
    p[0], y[0] = 0.0, 1
    change = recalibrate(y, p, family="sigmoid", **QUICK).loss["log_loss"]
    assert change.before == math.inf
    assert change.after < 1
    assert change.change == change.lower == change.upper == -math.inf
    same = recalibrate(y, p, family="identity", **QUICK).loss["log_loss"]
    assert (same.before, same.after, same.change) == (math.inf, math.inf, 0)


def test_folds_are_even_in_size_and_labels():
    y, p = sample(103)
    units = ordered_units(Rows.of(y, np.round(p, 1)))
    for data in (units, ordered_units(Rows.of(y, p, clusters=np.arange(103)))):
        folds = deal_evenly(data, np.random.default_rng(0))
        for label in (0, 1):
            own = folds.units.label == label
            found = np.bincount(folds.fold[0][own], folds.units.count[own], 5)
            assert np.ptp(found) <= 1
        assert folds.units.mass.sum() == pytest.approx(1)
    clustered = ordered_units(Rows.of(y, p, clusters=np.arange(103) // 4))
    folds = deal_evenly(clustered, np.random.default_rng(0))
    for cluster in range(26):
        assert np.unique(folds.fold[0][clustered.cluster == cluster]).size == 1


@pytest.mark.parametrize("clustered", [False, True])
def test_labels_of_a_fold_have_no_part_in_what_maps_it(clustered):
    """Neither in the fit nor in the choice, though folds are shared."""
    y, p = sample(500)
    clusters = np.arange(500) // 2 if clustered else None
    units = ordered_units(Rows.of(y, p, clusters=clusters))
    first = Selection(units, CANDIDATES, np.random.default_rng(0))
    folds = first.folds
    for k in range(5):
        label = np.where(folds.fold[0] == k, 1 - folds.units.label, folds.units.label)
        second = Selection(units, CANDIDATES, np.random.default_rng(0))
        second.__dict__["folds"] = Folds(dataclasses.replace(folds.units, label=label), folds.fold)
        ours, theirs = first.chosen(without=k), second.chosen(without=k)
        assert ours.candidates == theirs.candidates
        assert len(ours.candidates) == len(CANDIDATES)
        assert np.array_equal(ours.fit(p), theirs.fit(p))
    assert first.chosen().candidates != second.chosen().candidates


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_clusters_leave_folds_empty(count):
    """One cannot be compared on rows of another, so nothing is selected."""
    y, p = sample(400)
    found = recalibrate(y, p, clusters=np.arange(400) % count, **QUICK)
    assert (not found.candidates) == (count == 1)
    assert found.map is not None
    words = "1 cluster is given" if count == 1 else f"{count} clusters are given"
    assert f"only {words}" in found.reason


# -- selection -------------------------------------------------------------------------------------


def test_auto_finds_the_simplest_that_does():
    rng = np.random.default_rng(0)
    u = rng.random(5000)
    y = (rng.random(5000) < u).astype(int)
    logit = np.log(u / (1 - u))
    for scores, method in ((u, "identity"), (logit - 1, "shift"), (2 * logit, "temperature")):
        p = scores if method == "identity" else 1 / (1 + np.exp(-scores))
        found = recalibrate(y, p, **ALONE)
        assert found.family == method
        assert list(found.candidates) == [candidate.name for candidate in CANDIDATES]
        least = min(found.candidates.values(), key=lambda c: c.log_loss)
        assert least.excess == 0
        chosen = found.candidates[method]
        assert chosen.excess <= 0.5 * chosen.standard_error
        for name in list(found.candidates)[: list(found.candidates).index(method)]:
            other = found.candidates[name]
            assert other.excess > 0.5 * other.standard_error
    step = recalibrate(rng.random(5000) < np.where(u < 0.5, 0.2, 0.8), u, **ALONE)
    assert step.family in {"monotone", "isotonic"}


def test_few_rows_get_a_sigmoid():
    y, p = sample(74)
    found = recalibrate(y, p, **ALONE)
    assert (found.family, found.candidates) == ("sigmoid", {})
    assert found.map == recalibrate(y, p, family="sigmoid", **ALONE).map
    assert recalibrate(*sample(75), **ALONE).candidates


def test_a_calibrated_model_mostly_stays_as_it_is():
    kept = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.random(1000)
        kept += (
            recalibrate(rng.random(1000) < p, p, confidence_level=None, rng=0).family == "identity"
        )
    assert kept >= 10


# -- rows in other forms ---------------------------------------------------------------------------


def said(found):
    content = found.to_dict()
    return {key: content[key] for key in ("method", "before", "after", "loss", "candidates")}


@pytest.mark.parametrize("method", ["auto", "isotonic"])
def test_a_joint_says_what_its_rows_say(method):
    y, p = sample()
    p = np.round(p, 2)
    of_rows = recalibrate(y, p, family=method, **QUICK)
    joint = Joint.from_arrays(y, p)
    assert recalibrate(joint, family=method, **QUICK) == of_rows
    halves = Joint.from_arrays(y[::2], p[::2]) + Joint.from_arrays(y[1::2], p[1::2])
    assert recalibrate(halves, family=method, **QUICK) == of_rows
    table = of_rows.map
    assert evaluate_map(joint, map=table, **QUICK) == evaluate_map(y, p, map=table, **QUICK)


def test_cells_allow_for_where_rows_lie_in_them():
    y, p = sample(3000)
    joint = Joint.from_arrays(y, p)
    exact = recalibrate(joint, family="beta", **QUICK)
    last = None
    for bits in (4, 8, 16):
        coarse = joint.coarsen(bits)
        found = recalibrate(coarse, family="beta", **QUICK)
        cell = coarse.grid.cell * 2.0**-bits
        mass = (coarse.mass0 + coarse.mass1) / coarse.total
        added = 2 * float(mass @ (found.map(cell + 2.0**-bits) - found.map(cell)))
        assert statement.rounding_of(coarse, found.map) == pytest.approx(added)
        # The map itself, on the rows it has not seen one by one.
        own = evaluate_map(y, p, map=found.map, **QUICK)
        for name in NAMES:
            assert found.after[name].upper >= own.after[name].value - 1e-6
        assert last is None or added < last
        last = added
    assert last < 3e-4
    assert found.after["smooth_ce"].upper == pytest.approx(exact.after["smooth_ce"].upper, abs=2e-3)


@pytest.mark.slow
def test_the_rows_of_a_summary_do_not_matter_for_its_size():
    y, p = sample(3000)
    joint = Joint.from_arrays(y, p).coarsen(16)
    many = sum([joint] * 4000)  # 12 million rows
    found = recalibrate(many, **QUICK)
    assert found.n_rows == 12_000_000
    assert found.after["smooth_ce"].upper < 1e-3


def test_equal_weights_change_nothing_and_repeated_rows_are_clusters():
    y, p = sample(300)
    plain = recalibrate(y, p, family="beta", **QUICK)
    weighted = recalibrate(y, p, family="beta", sample_weight=np.full(300, 7.0), **QUICK)
    np.testing.assert_allclose(weighted.map(p), plain.map(p), atol=1e-9)
    for name in NAMES:
        assert weighted.after[name].value == pytest.approx(plain.after[name].value, abs=1e-5)
        assert weighted.after[name].upper == pytest.approx(plain.after[name].upper, rel=0.15)
    twice = np.repeat(np.arange(300), 2)
    pairs = recalibrate(y[twice], p[twice], clusters=twice, family="identity", **QUICK)
    alone = recalibrate(y, p, family="identity", **QUICK)
    doubled = recalibrate(y[twice], p[twice], family="identity", **QUICK)
    upper = [found.after["smooth_ce"].upper for found in (pairs, alone, doubled)]
    assert upper[0] == pytest.approx(upper[1], rel=0.1)
    assert upper[2] < upper[0]  # as if there were twice as many
    loss = [found.loss["brier_score"] for found in (pairs, alone)]
    assert loss[0].change == pytest.approx(loss[1].change, abs=1e-9)


def test_weights_stand_for_the_population():
    """Rows of label 0 kept with probability 1/5, and weighted by 5."""
    rng = np.random.default_rng(0)
    u = rng.random(20_000)
    y = rng.random(u.size) < u
    kept = y | (rng.random(u.size) < 0.2)
    p = u / (u + 0.2 * (1 - u))
    weight = np.where(y, 1.0, 5.0)[kept]
    found = recalibrate(y[kept], p[kept], family="shift", sample_weight=weight, **QUICK)
    assert abs(found.map(p) - u).max() < 0.03
    assert found.after["smooth_ce"].upper < found.before["smooth_ce"].lower


@pytest.mark.slow
def test_the_order_of_rows_and_the_threads_change_nothing(monkeypatch):
    y, p = sample(500)
    p = np.round(p, 3)
    weight, clusters = np.linspace(1, 2, 500), np.arange(500) // 3
    order = np.random.default_rng(7).permutation(500)
    for more in ({}, {"sample_weight": weight}, {"clusters": clusters}):
        first = recalibrate(y, p, **more, **QUICK)
        shuffled = {name: values[order] for name, values in more.items()}
        second = recalibrate(y[order], p[order], **shuffled, **QUICK)
        assert second.map == first.map
        assert said(second) == said(first) or "sample_weight" in more
        assert second.after["smooth_ce"].upper == pytest.approx(first.after["smooth_ce"].upper)
    expected = recalibrate(y, p, **QUICK)
    for threads in ("1", "3"):
        monkeypatch.setenv("CALDIST_NUM_THREADS", threads)
        assert recalibrate(y, p, **QUICK) == expected


def test_the_seed_makes_it_the_same_again():
    y, p = sample()
    first, second = (recalibrate(y, p, n_resamples=99, rng=5) for _ in range(2))
    assert first == second
    assert recalibrate(y, p, n_resamples=99, rng=np.random.default_rng(5)) == first
    assert recalibrate(y, p, n_resamples=99, rng=6) != first


# -- what is hard ----------------------------------------------------------------------------------


@flat
@fewer
@given(samples(min_size=1, max_size=25))
def test_any_rows_get_a_map(rows):
    y, p, weight = rows
    for method in FAMILIES:
        found = recalibrate(y, p, family=method, sample_weight=weight, confidence_level=None, rng=0)
        assert found.map is not None
        values = found.map(p)
        assert ((values >= 0) & (values <= 1)).all()
        assert found.reason.startswith("none was asked for")
        assert str(found)


@pytest.mark.parametrize("method", ["auto", *FITTED])
@pytest.mark.parametrize("label", [0, 1])
def test_one_label_alone_gets_a_constant_of_platts_targets(method, label):
    rng = np.random.default_rng(0)
    y, p = np.full(300, label), rng.random(300)
    with pytest.warns(UserWarning, match=f"all rows have label {label}"):
        found = recalibrate(y, p, family=method, **QUICK)
    assert "0 of 300 rows have label" in found.reason
    assert found.before == found.after == found.loss == {}
    if method in {"auto", "sigmoid", "beta", "isotonic", "monotone"}:
        rate = 1 / 302 if label == 0 else 301 / 302
        np.testing.assert_allclose(found.map(p), rate)
    assert "one label is missing" in str(found)


@pytest.mark.parametrize("method", ["sigmoid", "beta", "monotone"])
def test_a_ranking_that_says_nothing_gets_a_constant_and_a_warning(method):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = rng.random(400) < 1 - p
    with pytest.warns(UserWarning, match="the map is constant, because the ranking"):
        found = recalibrate(y, p, family=method, **QUICK)
    assert np.ptp(found.map(p)) == 0
    assert found.auc_after == 0.5
    assert found.map(0.3) == pytest.approx(y.mean(), abs=0.01)


def test_exact_zeros_and_ones_that_fail_are_softened():
    rng = np.random.default_rng(0)
    u = rng.random(2000)
    p = np.where(u < 0.2, 0.0, np.where(u > 0.8, 1.0, u))
    y = rng.random(2000) < 0.1 + 0.8 * u
    for method in FAMILIES[2:]:
        found = recalibrate(y, p, family=method, **ALONE)
        assert 0 < found.map(0.0) < found.map(1.0) < 1
    found = recalibrate(y, p, **QUICK)
    assert found.loss["log_loss"].before == math.inf
    assert 0.1 < found.map(0.0) < 0.3
    assert found.after["smooth_ce"].upper < found.before["smooth_ce"].lower


def test_rare_labels():
    rng = np.random.default_rng(0)
    u = rng.random(20_000) ** 4 * 0.05
    y = rng.random(u.size) < u
    found = recalibrate(y, np.minimum(3 * u, 1), **QUICK)
    assert found.family != "identity"
    assert found.after["smooth_ce"].upper < found.before["smooth_ce"].lower


def test_scores_of_all_sizes():
    rng = np.random.default_rng(0)
    p = 10.0 ** rng.uniform(-300, -1, 3000)
    y = rng.random(3000) < 0.5 + np.log10(p) / 700
    for method in FAMILIES:
        found = recalibrate(y, p, family=method, **ALONE)
        assert (np.diff(found.map(np.sort(p))) >= 0).all()
        assert found.map.x.size <= 256
    assert roc_auc_score(y, recalibrate(y, p, family="temperature", **ALONE).map(p)) > 0.5


def quantile_by_hand(resampler, risk, noise):
    """Return the largest order statistic of the replicates of each kind."""
    rank = math.ceil((resampler.n_resamples + 1) * (1 - risk / 2) - 1e-9)
    return max(
        np.sort(resampler.run(replicate, family=family, size=1))[rank - 1]
        for family, replicate in noise.items()
    )


@pytest.mark.parametrize("kind", ["many rows", "weights", "clusters", "one label is rare"])
def test_limits_after_a_map_by_hand(kind):
    """Each formula written out: by replicates with a remainder, and for every n."""
    rng, risk, b, rounding = np.random.default_rng(1), 0.1, 0.004, 0.002
    v = np.round(rng.random(900), 2)
    y = (rng.random(900) < (0.05 * v if "rare" in kind else v**1.5)).astype(int)
    rows = Rows.of(y, v)
    if kind == "weights":
        rows = Rows.of(y, v, sample_weight=rng.random(900) + 0.1)
    elif kind == "clusters":
        rows = Rows.of(y, v, clusters=np.arange(900) // 3)
    elif kind == "many rows":
        rows = Rows.of(Joint.from_arrays(np.tile(y, 100), np.tile(v, 100)))
    units, resampler = units_of(rows), Resampler.of(0, n_resamples=99)
    terms = {"remainder": b, "rounding": rounding}
    found = statement.bounds_after(units, risk, "resampling", resampler, **terms)

    squares = units.part_shares() ** 2
    root = math.sqrt(np.sum(squares if kind == "clusters" else units.count * squares))
    exponents = {max(0, round(-math.log2(f * root ** (2 / 3)))) for f in (4, 2, 1, 0.5)}
    norms = [RandomIntervalNorm(units.prediction, width=2.0**-k) for k in exponents]
    errors = [norm(units.residual) for norm in norms]
    smooth = caldist.smooth_ce.norm(units.prediction)
    draws = {FLIPS: units.flip} | ({LABELS: units.draw} if units.draws_labels else {})

    def ends(value, width, tolerance=0.0):
        return pytest.approx((value, max(0, value - width), value + width + tolerance), abs=1e-12)

    noise = {family: lambda rng, draw=draw: smooth(draw(rng)) for family, draw in draws.items()}
    wide = b + quantile_by_hand(resampler, risk, noise) + rounding
    value = smooth(units.residual)
    assert dataclasses.astuple(found["smooth_ce"])[:3] == ends(value, wide)
    noise = noise_of(caldist.lower_distance, units, -math.inf)
    wide = 2 * b + quantile_by_hand(resampler, risk, noise) + rounding
    lowest = caldist.lower_distance(rows.joint)
    assert dataclasses.astuple(found["lower_distance"])[:3] == ends(lowest, wide, TOLERANCE)
    noise = {
        family: lambda rng, draw=draw: max(
            norm(c) / norm.noise for c in [draw(rng)] for norm in norms
        )
        for family, draw in draws.items()
    }
    scaled = quantile_by_hand(resampler, risk, noise)
    upper = rounding + min(
        error + scaled * norm.noise + norm.width / 2 + 2 / norm.width * b
        for error, norm in zip(errors, norms, strict=True)
    )
    assert found["distance"].upper == pytest.approx(upper)
    assert found["distance"].lower == found["lower_distance"].lower

    found = statement.bounds_after(units, risk, "finite_sample", resampler, **terms)
    logarithm = math.log(2 / risk)
    wide = math.sqrt(2 * logarithm) * root + rounding
    assert dataclasses.astuple(found["smooth_ce"])[:3] == ends(value, wide)
    assert dataclasses.astuple(found["lower_distance"])[:3] == ends(lowest, wide, TOLERANCE)
    kolmogorov = math.sqrt(logarithm / 2) * root
    upper = rounding + min(
        error + norm.width / 2 + (2 + 2 / norm.width) * kolmogorov
        for error, norm in zip(errors, norms, strict=True)
    )
    assert found["distance"].upper == pytest.approx(min(1, upper))
    assert upper < 1


# -- what is not said ------------------------------------------------------------------------------


def test_fewer_than_ten_of_a_label_get_a_map_and_the_reason():
    y, p = sample(300)
    y[:] = 0
    y[np.argsort(p)[-9:]] = 1
    found = recalibrate(y, p, **QUICK)
    assert found.map is not None
    assert found.reason.startswith("only 9 of 300 rows have label 1, and with fewer than 10")
    assert found.before == found.after == found.loss == {}
    assert "No statement is made: only 9 of 300" in str(found)
    assert found.map.provenance["statement"] is None
    proved = recalibrate(y, p, method="finite_sample", **QUICK)
    assert proved.after["smooth_ce"].upper < 1
    y[np.argsort(p)[-10:]] = 1
    assert recalibrate(y, p, **QUICK).after
    few = recalibrate(*sample(300), clusters=np.arange(300) % 9, **QUICK)
    assert "only 9 clusters are given" in few.reason


def test_what_is_not_proved_is_refused():
    y, p = sample(100)
    for more in ({"sample_weight": np.linspace(1, 2, 100)}, {"clusters": np.arange(100) // 2}):
        with pytest.raises(ValueError, match="proved for independent rows of equal weight"):
            recalibrate(y, p, method="finite_sample", **more)
        with pytest.raises(ValueError, match="proved for independent rows of equal weight"):
            evaluate_map(y, p, map=np.sqrt, method="finite_sample", **more)


def test_sums_of_weights_hide_whether_they_are_equal():
    y, p = np.array([0, 1] * 50), np.repeat([0.2, 0.8], 50)
    joint = Joint.from_arrays(y, p, sample_weight=np.tile([1.0, 3.0, 3.0, 1.0], 25))
    with pytest.raises(ValueError, match="proved for independent rows of equal weight"):
        recalibrate(joint, method="finite_sample")


def test_masses_without_rows_say_nothing_of_a_population():
    joint = Joint.from_masses([0.2, 0.7], [3.5, 1.25], [1.0, 4.0])
    with pytest.raises(ValueError, match="do not say how many rows there are"):
        recalibrate(joint)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"family": "platt"}, "family is 'platt': it must be one of 'auto', 'identity'"),
        ({"method": "none"}, "method is 'none'"),
        ({"confidence_level": 95}, "confidence_level is 95"),
        ({"confidence_level": True}, "confidence_level is True"),
        ({"n_resamples": 0}, "n_resamples is 0"),
        ({"rng": "seed"}, "rng is 'seed'"),
        ({"progress": 1}, "progress is 1"),
    ],
)
def test_bad_options_are_named(options, match):
    with pytest.raises((TypeError, ValueError), match=match):
        recalibrate(*sample(50), **options)


# -- maps made elsewhere ---------------------------------------------------------------------------


def test_maps_from_elsewhere_in_all_forms():
    y, p = sample(800)
    logit = np.log(p / (1 - p))[:, None]
    platt = LogisticRegression().fit(p[:, None], y)
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(p, y)
    temperature = LogisticRegression(fit_intercept=False).fit(logit, y)

    def scaled(v):
        v = np.clip(v, 1e-9, 1 - 1e-9)
        return temperature.predict_proba(np.log(v / (1 - v))[:, None])[:, 1]

    given = {
        "predict_proba": (platt, platt.predict_proba(p[:, None])[:, 1]),
        "predict": (isotonic, isotonic.predict(p)),
        "callable": (scaled, scaled(p)),
        "table": (([0, 1], [0.1, 0.9]), 0.1 + 0.8 * p),
        "mapping": ({"x": [0, 1], "y": [0.1, 0.9]}, 0.1 + 0.8 * p),
        "map": (CalibrationMap([0, 1], [0.1, 0.9]), 0.1 + 0.8 * p),
    }
    for name, (form, expected) in given.items():
        found = evaluate_map(y, p, map=form, **QUICK)
        assert found.family == "given"
        assert found.reason == ""
        tolerance = 0.03 if name == "predict" else 2e-3
        assert abs(found.map(p) - expected).max() < tolerance, name
        assert found.after["smooth_ce"].value == pytest.approx(
            caldist.smooth_ce(y, found.map(p)), abs=1e-9
        )
        assert "made elsewhere" in str(found)
    assert evaluate_map(y, p, map=given["map"][0], **QUICK).map is given["map"][0]


def test_what_recalibration_says_of_its_own_map_is_nearly_what_evaluate_map_says():
    y, p = sample()
    own = recalibrate(y, p, family="isotonic", **QUICK)
    found = evaluate_map(y, p, map=own.map, **QUICK)
    assert found.before == own.before
    for name in NAMES:
        assert found.after[name].value == own.after[name].value
        # The parameters of the base are not known from outside.
        assert own.after[name].upper - 0.03 < found.after[name].upper <= own.after[name].upper


def test_a_map_that_falls_gets_no_statement_and_the_place():
    y, p = sample()
    found = evaluate_map(y, p, map=lambda v: 4 * (v - 0.5) ** 2, **QUICK)
    assert found.map is None
    assert found.reason.startswith("the map is not monotone: it falls from ")
    assert found.before == found.after == found.loss == {}
    assert found.to_dict()["map"] is None
    assert "No statement is made: the map is not monotone" in str(found)
    # Rounding is no fall.
    assert evaluate_map(y, p, map=lambda v: v * 0.1 * 3, **ALONE).map is not None


@pytest.mark.parametrize(
    ("form", "match"),
    [
        (None, "map is None"),
        (3, "map is 3: .* type int"),
        (lambda v: v + 0.5, r"map\(0\.\d+\) is 1\.\d*: .* for every score"),
        (lambda v: v[:3], r"map\(y_prob\) has 3 values"),
        (lambda v: np.full(v.size, np.nan), r"map\(0\) is nan"),
        (lambda v: ["a"] * v.size, r"map\(y_prob\)\[0\] is 'a'"),
        (IsotonicRegression().fit([0.3, 0.5, 0.6], [0, 0, 1]), "out_of_bounds='clip'"),
        (([0, 1], [1, 0]), r"y\[1\] is 0.0: it comes after 1.0"),
    ],
)
def test_bad_maps_are_named(form, match):
    with pytest.raises((TypeError, ValueError), match=match):
        evaluate_map(*sample(50), map=form)


# -- results ---------------------------------------------------------------------------------------


def test_the_words():
    rng = np.random.default_rng(0)
    u = rng.random(5000)
    y = rng.random(5000) < u
    found = recalibrate(y, u**2 / (u**2 + (1 - u) ** 2), **QUICK)
    before, after = found.before["smooth_ce"].lower, found.after["smooth_ce"].upper
    text = " ".join(str(found).split())
    for part in (
        f"Recalibrated by a temperature, as a table of {found.map.x.size} points.",
        f"With 95% confidence the smooth calibration error was at least {down(before, 4)} before",
        f"and is at most {up(after, 4)} after, for rows drawn like these 5,000",
        "Brier score ",
        "cross-validated).",
        f"The ranking is unchanged (AUC {found.auc_before:.3f}).",
        f"takes off more than {up(found.resolution.miscalibration, 4)} on these rows.",
        "Other features or another model may; recalibration cannot.",
    ):
        assert part in text
    kept = recalibrate(y, u, **QUICK)
    assert kept.family == "identity"
    assert str(kept).startswith(
        "The predictions stay as they are: these rows support no map that makes them better."
    )
    worse = recalibrate(y[:300], u[:300], family="beta", **QUICK)
    assert worse.loss["log_loss"].lower > 0
    assert "Recalibration makes the predictions worse: leave them as they are." in str(worse)
    stiff = recalibrate(rng.random(5000) < (u > 0.5), u, family="shift", **QUICK)
    left = stiff.after["smooth_ce"].lower
    said = float(re.search(r"At least (\S+) is left: another family may", str(stiff))[1])
    assert left - 1e-4 < said <= left
    weak = recalibrate(y[:500], u[:500], family="shift", **QUICK)
    assert "do not show that recalibration makes the predictions better or worse" in str(weak)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_results_as_dicts_and_frames(library):
    y, p = sample(200)
    found = recalibrate(y, p, **QUICK)
    frame = found.to_frame(library)
    assert type(frame).__module__.startswith(library)
    assert list(frame["when"]) == ["before", "after"] * 3 + ["change"] * 2
    content = found.to_dict()
    assert content["map"]["x"] == found.map.x.tolist()
    assert content["after"]["smooth_ce"]["upper"] == found.after["smooth_ce"].upper
    assert "<table>" in found._repr_html_()
    assert len(recalibrate(y, p, confidence_level=None).to_frame(library)) == 1
    with pytest.raises(AttributeError):
        found.family = "other"
    with pytest.raises(TypeError):
        found.after["smooth_ce"] = 1


def test_a_recalibration_is_pickled_and_copied():
    rng = np.random.default_rng(0)
    u = rng.random(300)
    found = caldist.recalibrate(rng.random(300) < u, u**2, n_resamples=99, rng=0)
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert again == found
        with pytest.raises(TypeError):
            again.after["smooth_ce"] = None
