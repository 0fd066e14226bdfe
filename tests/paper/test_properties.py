"""The table of properties: against the paper's Table 1, its own evidence, and oracles."""

import dataclasses
import json
import math
import pickle
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
import oracles
from caldist.data.joint import Joint
from caldist.measures.binned_ece import binned_ece
from caldist.measures.brier_score import brier_score
from caldist.measures.ece import ece
from caldist.measures.log_loss import log_loss
from caldist.measures.registry import all_measures
from caldist.measures.smooth_ce import smooth_ce
from caldist.paper import evidence, witnesses
from caldist.paper.claims import Subject, of_joints
from caldist.paper.claims_by_measure import CLAIMS
from caldist.paper.properties import PropertyError, PropertyTable, properties
from caldist.paper.table import COLUMNS, format_number
from strategies import probability, samples

ROOT = Path(__file__).resolve().parents[2]
SLACK = 1e-12

TABLE_1 = {  # continuity, completeness, soundness, as the paper prints them
    "ece": (False, True, True),
    "ece (norm 2)": (False, True, True),
    "binned_ece (20 bins)": (False, True, False),
    "brier_score": (True, False, True),
    "log_loss": (True, False, True),
    "1 - normalized_cross_entropy": (True, False, True),
    "ecce_mad": (False, True, True),
    "kernel_ce (Laplace)": (True, True, True),  # "MMCE"
    "smooth_ce": (True, True, True),
}
CONSISTENT = {  # as the paper states them; those of RintCE and pGap are derived
    "true_distance": "(1, 1)",
    "lower_distance": "(1, 2)",
    "upper_distance": "(1/2, 1)",
    "smooth_ce": "(1, 2)",
    "kernel_ce (Laplace)": "(1/2, 2)",
    "interval_ce": "(1/2, 1)",
    "surrogate_interval_ce": "(1/2, 1)",
    "random_interval_ce (width 0.1)": "(1, 2)",
    "post_processing_gap": "(1, 4)",
}


@pytest.fixture(scope="module")
def table():
    return properties()


@pytest.mark.slow
def test_every_cell_is_borne_out(table):
    found = table.check()
    assert len(found) == len(table.rows)
    assert all(item.holds for item in found)


def test_it_is_table_1_but_for_the_unbounded_losses(table):
    differ = set()
    for measure, marks in TABLE_1.items():
        for column, mark in zip(COLUMNS[:3], marks, strict=True):
            cell = table[measure, column]
            assert cell.paper is mark
            if cell.holds is not mark:
                differ.add((measure, column))
    assert differ == {
        ("log_loss", "continuous"),
        ("1 - normalized_cross_entropy", "continuous"),
    }
    assert {row.measure for row in table.rows if row.paper is not None} == set(TABLE_1)


def test_the_exponents(table):
    for measure in table.measures:
        assert table[measure, "consistent"].holds == CONSISTENT.get(measure, False)
        upper, lower = (table[measure, f"robustly {name}"].holds for name in ("complete", "sound"))
        if measure in CONSISTENT:
            assert f"({upper}, {lower})" == CONSISTENT[measure]
            if measure != "true_distance":  # "Then s ≥ 2c"
                assert Fraction(lower) >= 2 * Fraction(upper)
        else:
            assert upper is False or lower is False
        # Robust implies plain: a bound by a power of dCE is 0 where dCE is, and the reverse.
        assert upper is False or table[measure, "complete"].holds is True
        assert lower is False or table[measure, "sound"].holds is True


def test_a_no_is_a_counter_example_and_a_yes_a_theorem(table):
    for row in table.rows:
        if row.property == "cost":
            assert row.kind == "computation"
        elif row.property == "predictions only":
            assert row.kind == ("computation" if row.holds else "counter-example")
        else:
            assert row.kind == ("counter-example" if row.holds is False else "theorem")


def test_the_table_is_what_the_measures_say(table):
    lines = [
        (measure.name, entry.subject.name)
        for measure in all_measures().values()
        for entry in CLAIMS.get(measure.name, tuple)()
    ]
    assert table.measures == ("true_distance", *(name for _, name in lines))
    assert len(table.rows) == len(COLUMNS) * len(table.measures)
    assert all(measure in name for measure, name in lines)


def test_claims_are_of_measures_that_there_are():
    assert {*CLAIMS} <= {"true_distance", *all_measures()}


@pytest.mark.parametrize("measure", all_measures().values(), ids=str)
def test_a_measure_can_be_shown(measure):
    shown = measure.shown
    assert shown.missing_option is None
    assert shown == measure or measure.missing_option is not None
    assert math.isfinite(shown([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]))
    assert shown.shown == shown


def test_bound_options_count_more_than_the_example():
    bound = caldist.weighted_ce.using(functions=[np.ones_like])
    assert bound.shown == bound


def test_every_registered_measure_of_the_paper_has_its_row(table):
    names = {measure.split(" ")[0] for measure in table.measures}
    assert {"ece", "binned_ece", "interval_ce", "smooth_ce", "kernel_ce", "weighted_ce"} <= names
    assert {"surrogate_interval_ce", "random_interval_ce", "mmce", "ecce_mad"} <= names
    assert {"lower_distance", "upper_distance", "true_distance", "brier_score"} <= names


# -- evidence can fail ---------------------------------------------------------------------------

ECE = of_joints("ece", ece)
SMOOTH = of_joints("smooth_ce", smooth_ce)
BRIER = of_joints("brier_score", brier_score)
ONE_BIN = of_joints("binned_ece", partial(binned_ece, n_bins=1))
NEAR = tuple(witnesses.two_points(eps) for eps in (1e-2, 1e-6))


@pytest.mark.parametrize(
    "false",
    [
        lambda: evidence.continuous(ECE, 2, 1),
        lambda: evidence.continuous(SMOOTH, 0.5, 1),
        lambda: evidence.complete(BRIER),
        lambda: evidence.sound(ONE_BIN),
        lambda: evidence.bounded_above(ECE, 100, 0.5),
        lambda: evidence.bounded_above(SMOOTH, 1, 1),
        lambda: evidence.bounded_below(ONE_BIN, 1e-3, 2),
        lambda: evidence.bounded_below(SMOOTH, 0.5, 1),
        lambda: evidence.both(evidence.complete(BRIER), evidence.complete(ECE)),
        lambda: evidence.jumps(SMOOTH, witnesses.two_points(0), NEAR),
        lambda: evidence.parity(ECE, ECE, witnesses.two_points(0), NEAR),
        lambda: evidence.taxes_calibrated(ECE, witnesses.fair_coin()),
        lambda: evidence.taxes_calibrated(BRIER, witnesses.cancelling_bin()),
        lambda: evidence.sees_nothing(ECE, witnesses.cancelling_bin()),
        lambda: evidence.sees_nothing(ECE, witnesses.fair_coin()),
        lambda: evidence.far_from_calibrated(SMOOTH, NEAR),
        lambda: evidence.vanishes(SMOOTH),
        lambda: evidence.predictions_suffice(Subject("dCE", witnesses.Domain.distance)),
        lambda: evidence.needs_domain(SMOOTH),
        lambda: evidence.runs(Subject("broken", lambda _: math.nan)),
        lambda: evidence.only_bounded(lambda _: (0.5, 0.5)),
    ],
)
def test_what_is_false_is_not_borne_out(false):
    shown = false()
    assert not shown.holds
    assert "does not hold" in str(shown)


def test_check_names_the_cells_that_fail(table):
    good, bad = table["ece", "complete"], table["ece", "sound"]
    broken = dataclasses.replace(bad, evidence=partial(evidence.sound, ONE_BIN))
    with pytest.raises(PropertyError, match=r"^ece, sound \(yes\): positive where") as caught:
        PropertyTable((good, broken)).check()
    assert "complete" not in str(caught.value)


# -- the instances are what they claim to be -----------------------------------------------------


def exact(domain):
    """Predictions to (mass, mass of ones), in rational numbers."""
    merged = {}
    for mean, value, mass in zip(domain.y_mean, domain.y_prob, domain.mass, strict=True):
        total, ones = merged.get(value, (0, 0))
        share = Fraction(float(mass))
        merged[value] = (total + share, ones + share * Fraction(float(mean)))
    return merged


def test_true_distances_equal_brute_force():
    # Partitions of eight points are 4,140; a few dozen domains are enough.
    cases = list(zip(witnesses.domains(), witnesses.distances(), strict=True))[:40]
    for domain, distance in cases:
        assert domain.mass.sum() == pytest.approx(1)
        brute = oracles.partition_brute(
            domain.y_prob, domain.mass, domain.mass * domain.y_mean, order=1
        )
        assert distance == pytest.approx(brute, abs=1e-13)


def test_calibrated_predictors_are():
    for domain in witnesses.calibrated():
        for value, (mass, ones) in exact(domain).items():
            assert abs(ones - mass * Fraction(float(value))) < 1e-15


def test_pairs_share_a_domain():
    for f, g in witnesses.pairs():
        assert f.y_mean is g.y_mean or np.array_equal(f.y_mean, g.y_mean)
        assert np.array_equal(f.mass, g.mass)
        assert f.distance_to(g) == pytest.approx(
            np.average(abs(f.y_prob - g.y_prob), weights=f.mass)
        )


def test_the_jump_of_intce_moves_the_predictor_only():
    far, limit = witnesses.interval_jump(1e-6), witnesses.interval_jump(0)
    assert np.array_equal(far.y_mean, limit.y_mean)
    for domain, bound in ((far, 1 / 48), (limit, 2 / 48)):
        joint = domain.joint
        value = oracles.interval_brute(joint.prediction, *joint.normalized())
        assert value == pytest.approx(bound, abs=1e-5)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_the_cubic_pattern_is_orthogonal_to_lower_degrees(degree):
    total = sum(
        (ones - mass * Fraction(float(v))) * Fraction(float(v)) ** degree
        for v, (mass, ones) in exact(witnesses.cancelling_cubic()).items()
    )
    assert (total == 0) == (degree < 3)


def test_cancelling_pairs_cancel_exactly():
    for domain, sign in ((witnesses.cancelling_bin(), 1), (witnesses.cancelling_sides(), -1)):
        (v, (m, p)), (u, (n, q)) = exact(domain).items()
        assert p - m * Fraction(v) == -sign * (q - n * Fraction(u)) != 0
    in_bin = witnesses.cancelling_bin().y_prob
    assert ((in_bin >= 0.4) & (in_bin < 0.45)).all()


def test_the_quadratic_gap_has_one_joint():
    first, second = (exact(domain) for domain in witnesses.quadratic_gap(0.125))
    assert first == second
    low, high = (domain.distance() for domain in witnesses.quadratic_gap(0.125))
    assert (low, high) == (pytest.approx(4 * 0.125**2), pytest.approx(0.125))


@pytest.mark.parametrize("rank", [1, 10, 39])
def test_rare_certainty(rank):
    domain, limit = witnesses.rare_certainty(rank), witnesses.rare_certainty(None)
    assert domain.mass.sum() == 1
    assert domain.distance_to(limit) == 2.0**-rank / 2


# -- what the table derives beyond the paper -----------------------------------------------------


@st.composite
def moved(draw):
    y, v, _ = draw(samples(weighted=False))
    u = np.array(draw(st.lists(probability, min_size=y.size, max_size=y.size)))
    share = draw(st.sampled_from([1.0, 0.1, 1e-3, 1e-6]))
    return y, v, (1 - share) * v + share * u


@given(moved(), st.sampled_from([0.03, 0.1, 0.5, 1.0]))
def test_rintce_is_lipschitz(case, width):
    y, v, u = case
    change = caldist.random_interval_ce(y, u, width=width)
    change -= caldist.random_interval_ce(y, v, width=width)
    assert abs(change) <= (1 + 2 / width) * np.abs(u - v).mean() + SLACK


@given(moved())
def test_sintce_is_continuous(case):
    y, v, u = case
    change = caldist.surrogate_interval_ce(y, u) - caldist.surrogate_interval_ce(y, v)
    assert abs(change) <= 6 * math.sqrt(np.abs(u - v).mean()) + SLACK


@given(moved())
def test_the_gaussian_kernel_is_lipschitz(case):
    y, v, u = case
    change = caldist.kernel_ce(y, u, kernel="gaussian") - caldist.kernel_ce(y, v, kernel="gaussian")
    assert abs(change) <= (1 + math.sqrt(2)) * np.abs(u - v).mean() + SLACK


@given(samples(), st.sampled_from([1, 2, 5, 10, 64]))
def test_smce_is_at_most_twice_rintce_and_twice_ecce(sample, bins):
    y, p, weight = sample
    v, g0, g1 = oracles.distribution(y, p, weight)
    smooth = oracles.smooth_ce_lp(v, oracles.residuals(v, g0, g1))
    joint = Joint.from_arrays(y, p, sample_weight=weight)
    random = caldist.random_interval_ce(y, p, width=1 / bins, sample_weight=weight)
    sums = np.cumsum(joint.residual())
    assert smooth <= 2 * random + 1e-7
    assert smooth <= 2 * np.abs(sums).max() + 1e-7


@pytest.mark.parametrize("width", [0.5, 0.1])
def test_errors_with_the_period_of_the_bins_show_at_the_ends(width):
    """Windows of one period see nothing of a wave inside, so this is rintCE's worst case."""
    v = (np.arange(2000) + 0.5) / 2000
    mean = v + 0.9 * v * (1 - v) * np.cos(2 * np.pi * v / width)
    label, weight = np.repeat([0, 1], 2000), np.concatenate((1 - mean, mean))
    rows_twice = np.tile(v, 2)
    smooth = caldist.smooth_ce(label, rows_twice, sample_weight=weight)
    random = caldist.random_interval_ce(label, rows_twice, width=width, sample_weight=weight)
    assert 0 < smooth <= 2 * random


@given(samples())
def test_the_losses_bound_the_ece(sample):
    y, p, weight = sample
    error = caldist.ece(y, p, sample_weight=weight)
    joint = Joint.from_arrays(y, p, sample_weight=weight)
    assert brier_score(joint) >= error**2 - SLACK
    assert log_loss(joint) >= error - SLACK


def test_ldce_takes_the_tolerance_it_is_checked_with():
    (entry,) = CLAIMS["lower_distance"]()
    value = entry.subject.value(witnesses.quadratic_gap(0.1)[0])
    assert value <= 0.04 / 1.2 <= value + entry.subject.tolerance + 1e-15


# -- how it prints -------------------------------------------------------------------------------


def test_the_text_is_aligned(table):
    lines = str(table).splitlines()
    assert len(lines) == 2 + len(table.measures)
    starts = [lines[0].index(column) for column in COLUMNS]
    for line in lines:
        assert line == line.rstrip()
        assert all(line[start - 1] == " " != line[start] for start in starts)


def test_it_is_read_like_every_result(table):
    cell = table.to_dict()["rows"][0]
    assert list(cell) == ["measure", "property", "holds", "reason", "kind", "paper"]
    json.dumps(table.to_dict())
    frame = table.to_frame("pandas")
    assert list(frame.columns) == ["measure", *COLUMNS]
    assert frame["consistent"].tolist() == [
        table[name, "consistent"].text() for name in table.measures
    ]
    assert caldist.measures.true_distance_bounds([0, 1], [0.25, 0.75]).to_dict() == {
        "lower": 0.25, "upper": 0.25, "exact": True,
    }  # fmt: skip


def test_the_markdown_has_one_line_per_measure(table):
    lines = table.to_markdown().splitlines()
    assert len(lines) == 2 + len(table.measures)
    assert {line.count("|") for line in lines} == {len(COLUMNS) + 2}


def test_an_unknown_cell_is_named(table):
    with pytest.raises(KeyError, match=r"no cell \('brier', 'sound'\): the measures are true_dist"):
        table["brier", "sound"]


def test_numbers_are_short():
    assert [format_number(x) for x in (0.0, 1e-17, 2.1e-12, 1 / 48, math.inf)] == [
        "0", "0", "2.1e-12", "0.0208", "inf",
    ]  # fmt: skip


def test_the_table_and_its_evidence_survive_pickling():
    table = properties()
    again = pickle.loads(pickle.dumps(table))
    assert again == table
    assert str(again) == str(table)
    for cell in (("ece", "continuous"), ("smooth_ce", "consistent"), ("true_distance", "cost")):
        assert again[cell].evidence() == table[cell].evidence()
