"""The post-processing gap: oracles, its limits, its calibration statement, its certificate."""

import dataclasses

import clarabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import caldist
import oracles
from caldist.certificates import GapCertificate
from caldist.kernels import loader
from strategies import FAMILIES, family, samples

LARGE = 3000 if loader.COMPILED else 100
slopes = st.sampled_from([1.0, 1.5, 2.0, 3.0, 10.0, 1e6])


def solved(y, p, weight, max_slope):
    """Return the gap by an interior-point method, from its definition."""
    v, mass0, mass1 = oracles.distribution(y, p, weight)
    mass = mass0 + mass1
    n = v.size
    rise = sparse.diags([-1.0, 1.0], [0, 1], shape=(n - 1, n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    limits = np.concatenate([max_slope * np.diff(v), np.zeros(n - 1)])
    solver = clarabel.DefaultSolver(
        sparse.diags(mass).tocsc(),
        -mass1,
        sparse.vstack([rise, -rise]).tocsc(),
        limits,
        [clarabel.NonnegativeConeT(limits.size)] if n > 1 else [],
        settings,
    )
    x = np.array(solver.solve().x)
    before = mass0 @ v**2 + mass1 @ (1 - v) ** 2
    return before - (mass0 @ x**2 + mass1 @ (1 - x) ** 2)


# Steps of 1e-300 are nothing for an interior-point method.
@pytest.mark.parametrize("kind", sorted({*FAMILIES} - {"extreme"}))
@pytest.mark.parametrize("max_slope", [1.0, 2.0, 5.0])
def test_against_clarabel(kind, max_slope):
    rng = np.random.default_rng(len(kind))
    y, p = family(kind, 80, rng)
    for weight in (None, rng.exponential(size=80)):
        value = caldist.measures.post_processing_gap(
            y, p, max_slope=max_slope, sample_weight=weight
        )
        assert value == pytest.approx(solved(y, p, weight, max_slope), abs=1e-9)


def test_known_values():
    # All predictions are off by ε: the best map shifts them.
    v = np.repeat(np.arange(1, 9) / 10, 10)
    y = np.concatenate([np.arange(10) < 10 * t - 0.5 for t in np.arange(1, 9) / 10]).astype(int)
    assert caldist.measures.post_processing_gap(y, v) == pytest.approx(0, abs=1e-15)
    assert caldist.measures.post_processing_gap(y, v + 0.05) == pytest.approx(0.05**2)
    # Two labels, predictions 0.1 apart: slopes of 2 and of 5 bring them 0.2 and 0.5 apart.
    assert caldist.measures.post_processing_gap([0, 1], [0.45, 0.55]) == pytest.approx(
        0.45**2 - 0.4**2
    )
    wide = caldist.measures.post_processing_gap([0, 1], [0.45, 0.55], max_slope=5)
    assert wide == pytest.approx(0.45**2 - 0.25**2)
    # Labels in the wrong order: the best map is constant.
    assert caldist.measures.post_processing_gap([1, 0], [0.4, 0.6]) == pytest.approx(
        0.6**2 - 0.5**2
    )


@given(samples(), slopes, slopes)
def test_it_grows_with_the_slope_up_to_the_miscalibration(sample, one, other):
    y, p, weight = sample
    less, more = (
        caldist.measures.post_processing_gap(y, p, max_slope=slope, sample_weight=weight)
        for slope in sorted((one, other))
    )
    miscalibration = caldist.measures.corp(y, p, sample_weight=weight).miscalibration
    assert 0 <= less <= more + 1e-12
    assert more <= miscalibration + 1e-12


# In the two families left out predictions are too close for any finite slope.
@pytest.mark.parametrize("kind", sorted({*FAMILIES} - {"clusters", "extreme"}))
def test_steep_maps_reach_the_miscalibration(kind):
    y, p = family(kind, 200, np.random.default_rng(1))
    value = caldist.measures.post_processing_gap(y, p, max_slope=1e12)
    assert value == pytest.approx(caldist.measures.corp(y, p).miscalibration, abs=1e-12)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("max_slope", [1.0, 2.0, 4.0])
def test_what_the_best_map_leaves_is_known(kind, max_slope):
    """At the optimum the residuals of κ add up to 0, and smCE of κ is Σ |S_i| (κ_{i+1} - κ_i)."""
    y, p = family(kind, LARGE, np.random.default_rng(2))
    best = caldist.measures.post_processing_gap.using(max_slope=max_slope)
    proof = caldist.certify(y, p, measure=best)
    assert isinstance(proof, GapCertificate)
    recalibrated = proof.fitted[np.searchsorted(proof.joint.prediction, p)]
    mass0, mass1 = proof.joint.normalized()
    sums = np.cumsum(mass1 - (mass0 + mass1) * proof.fitted)
    assert sums[-1] == pytest.approx(0, abs=1e-12)
    left = np.abs(sums[:-1]) @ np.diff(proof.fitted)
    assert caldist.smooth_ce(y, recalibrated) == pytest.approx(left, abs=1e-10)
    change = caldist.brier_score(y, p) - caldist.brier_score(y, recalibrated)
    assert proof.value == pytest.approx(change, abs=1e-12)


@given(samples(), slopes)
def test_certificates_hold_and_are_tight(sample, max_slope):
    y, p, weight = sample
    best = caldist.measures.post_processing_gap.using(max_slope=max_slope)
    proof = caldist.certify(y, p, measure=best, sample_weight=weight)
    proof.verify()
    assert proof.gap <= 1e-12
    assert proof.max_slope == max_slope
    assert proof.value == best(y, p, sample_weight=weight)


def test_a_map_that_is_not_best_proves_less():
    y, p = family("beta3", 60, np.random.default_rng(3))
    proof = caldist.certify(y, p, measure="post_processing_gap")
    identity = dataclasses.replace(proof, fitted=proof.joint.prediction)
    lower, upper = identity._prove_lower(), identity._prove_upper()
    assert lower == pytest.approx(0, abs=1e-15)
    assert upper > proof.upper + 0.01
    with pytest.raises(caldist.errors.CertificateError, match="upper"):
        dataclasses.replace(identity, value=0.0, lower=0.0).verify()
    dataclasses.replace(identity, value=0.0, lower=0.0, upper=upper).verify()


def test_specific_lies_are_named():
    y, p = family("beta3", 60, np.random.default_rng(4))
    proof = caldist.certify(y, p, measure="post_processing_gap")
    with pytest.raises(caldist.errors.CertificateError, match="slope below 0 or above"):
        dataclasses.replace(proof, max_slope=1.5).verify()
    with pytest.raises(caldist.errors.CertificateError, match=r"max_slope is 0\.5"):
        dataclasses.replace(proof, max_slope=0.5).verify()
    with pytest.raises(caldist.errors.CertificateError, match=r"leaves \[0, 1\]"):
        dataclasses.replace(proof, fitted=proof.fitted + 0.5).verify()
    with pytest.raises(caldist.errors.CertificateError, match="60 numbers"):
        dataclasses.replace(proof, fitted=proof.fitted[1:]).verify()


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("max_slope", [1.0, 2.0, 6.0])
@pytest.mark.parametrize("kind", FAMILIES)
def test_the_effect_of_rounding_is_bounded(kind, max_slope, bits):
    y, p = family(kind, 300, np.random.default_rng(bits))
    best = caldist.measures.post_processing_gap.using(max_slope=max_slope)
    summary = caldist.Joint.from_arrays(y, p).coarsen(bits)
    _, lower, upper = best.enclosed(summary)
    assert lower - 1e-12 <= best(y, p) <= upper + 1e-12


def test_what_is_refused_says_what_to_use():
    y, p = family("beta3", 60, np.random.default_rng(5))
    with pytest.raises(ValueError, match=r"max_slope is 0\.5: it must be at least 1"):
        caldist.measures.post_processing_gap(y, p, max_slope=0.5)
    with pytest.raises(ValueError, match=r"smCE² and 2 smCE: use measure='smooth_ce'"):
        caldist.confidence_interval(y, p, measure="post_processing_gap")


def test_it_is_a_statistic_of_a_test():
    y, p = family("beta3", 300, np.random.default_rng(6))
    assert caldist.calibration_test(y, p, measure="post_processing_gap", rng=0).pvalue < 0.01
