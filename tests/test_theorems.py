"""Every statement of the paper that relates these measures, quoted, as a property test.

Constants are the proved ones. "The paper" is Błasiok, Gopalan, Hu, Nakkiran, "A Unifying Theory of
Distance from Calibration".
"""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import caldist
from strategies import probability, samples

SLACK = 1e-12
widths = st.one_of(st.floats(0.01, 1), st.integers(0, 8).map(lambda k: 2.0**-k))


@st.composite
def moved(draw):
    """Draw a sample and other predictions for the same rows."""
    y, v, weight = draw(samples())
    u = np.array(draw(st.lists(probability, min_size=y.size, max_size=y.size)))
    share = draw(st.sampled_from([1.0, 0.1, 1e-3, 1e-6]))
    return y, v, (1 - share) * v + share * u, weight


def distance(u, v, weight):
    return float(np.average(np.abs(u - v), weights=weight))


@given(moved())
def test_smooth_ce_is_lipschitz(case):
    """Smooth calibration "is Lipschitz in f with respect to the ℓ1 distance": it moves by at most
    2 E|u - v|."""
    y, v, u, weight = case
    before = caldist.smooth_ce(y, v, sample_weight=weight)
    after = caldist.smooth_ce(y, u, sample_weight=weight)
    assert abs(before - after) <= 2 * distance(u, v, weight) + SLACK


@given(moved())
def test_laplace_kernel_ce_is_continuous(case):
    """Lemma (Laplace kernel, continuity): kCE moves by at most 2√(2ε), ε = E|u - v|."""
    y, v, u, weight = case
    before = caldist.kernel_ce(y, v, sample_weight=weight)
    after = caldist.kernel_ce(y, u, sample_weight=weight)
    assert abs(before - after) <= 2 * math.sqrt(2 * distance(u, v, weight)) + SLACK


@given(samples())
def test_post_processing_gap_and_smooth_ce(sample):
    """Błasiok, Gopalan, Hu, Nakkiran, "When does optimizing a proper loss yield calibration?", for
    the squared loss: smCE(f)² ≤ pGap(f) ≤ 2 smCE(f)."""
    y, p, weight = sample
    gap = caldist.measures.post_processing_gap(y, p, sample_weight=weight)
    smooth = caldist.smooth_ce(y, p, sample_weight=weight)
    assert smooth**2 <= gap + SLACK
    assert gap <= 2 * smooth + SLACK


@given(samples(), st.floats(1, 5))
def test_post_processing_gap_and_smooth_ce_for_any_slope(sample, slope):
    """The same proof, with αw or η/M in place of w and η: min(1, L - 1)² smCE² ≤ pGap ≤ 2 M smCE,
    M = max(1, L - 1)."""
    y, p, weight = sample
    gap = caldist.measures.post_processing_gap(y, p, max_slope=slope, sample_weight=weight)
    smooth = caldist.smooth_ce(y, p, sample_weight=weight)
    assert (min(1, slope - 1) * smooth) ** 2 <= gap + SLACK
    assert gap <= 2 * max(1, slope - 1) * smooth + SLACK


@given(samples())
def test_calibrated_rows_have_no_post_processing_gap(sample):
    """From the two sides: pGap is 0 if and only if smCE is."""
    y, p, weight = sample
    v, index = np.unique(p, return_inverse=True)
    mass = np.bincount(index, weight, v.size)
    ones = np.bincount(index, y if weight is None else y * weight, v.size)
    kept = mass > 0
    target = np.unique(ones[kept] / mass[kept], return_inverse=True)
    calibrated = np.zeros(v.size)
    calibrated[kept] = target[0][target[1]]
    assert caldist.measures.post_processing_gap(y, calibrated[index], sample_weight=weight) <= SLACK


@given(moved())
def test_post_processing_gap_is_lipschitz(case):
    """(y - v)² - (y - κ(v))² has slopes of at most 4: pGap moves by at most 4 E|u - v|."""
    y, v, u, weight = case
    before = caldist.measures.post_processing_gap(y, v, sample_weight=weight)
    after = caldist.measures.post_processing_gap(y, u, sample_weight=weight)
    assert abs(before - after) <= 4 * distance(u, v, weight) + SLACK


@given(samples(), st.floats(0.01, 0.5))
def test_random_interval_ce_is_monotone_under_halving(sample, width):
    """Claim: RintCE(Γ, 2ε) ≤ RintCE(Γ, ε)."""
    y, p, weight = sample
    wide = caldist.random_interval_ce(y, p, width=2 * width, sample_weight=weight)
    narrow = caldist.random_interval_ce(y, p, width=width, sample_weight=weight)
    assert wide <= narrow + SLACK


@given(samples(), widths)
def test_interval_ce_is_at_most_random_interval_ce_plus_width(sample, width):
    """Claim: "intCE(Γ) ≤ RintCE(Γ, ε) + ε"."""
    y, p, weight = sample
    bound = caldist.random_interval_ce(y, p, width=width, add_width=True, sample_weight=weight)
    assert caldist.interval_ce(y, p, sample_weight=weight) <= bound + SLACK


@given(samples(), widths)
def test_surrogate_is_between_interval_ce_and_every_dyadic_width(sample, width):
    """Theorem: "intCE(Γ) ≤ SintCE(Γ)", and SintCE is the infimum over dyadic widths."""
    y, p, weight = sample
    surrogate = caldist.surrogate_interval_ce(y, p, sample_weight=weight)
    assert caldist.interval_ce(y, p, sample_weight=weight) <= surrogate + SLACK
    dyadic = 2.0 ** round(math.log2(width))
    if dyadic <= 1:
        bound = caldist.random_interval_ce(y, p, width=dyadic, add_width=True, sample_weight=weight)
        assert surrogate <= bound + SLACK


@given(samples(), st.integers(1, 40), st.sampled_from(["uniform", "quantile"]))
def test_interval_ce_is_the_least_binned_ece_with_width(sample, n_bins, strategy):
    """Definition: intCE(Γ) := min over interval partitions of binnedECE(Γ, I) + w_Γ(I)."""
    y, p, weight = sample
    bound = caldist.binned_ece(
        y, p, n_bins=n_bins, strategy=strategy, add_width=True, sample_weight=weight
    )
    assert caldist.interval_ce(y, p, sample_weight=weight) <= bound + SLACK


@given(samples())
def test_interval_ce_is_at_most_the_ece(sample):
    """ "The extreme case of width 0 buckets corresponds to ECE"."""
    y, p, weight = sample
    whole = caldist.ece(y, p, sample_weight=weight)
    assert caldist.interval_ce(y, p, sample_weight=weight) <= whole + SLACK
    assert caldist.surrogate_interval_ce(y, p, sample_weight=weight) <= whole + SLACK


@given(samples(), st.integers(1, 40), widths)
def test_binning_never_exceeds_the_ece(sample, n_bins, width):
    """Residuals of opposite sign cancel within a bin, they never add."""
    y, p, weight = sample
    whole = caldist.ece(y, p, sample_weight=weight) + SLACK
    assert caldist.binned_ece(y, p, n_bins=n_bins, sample_weight=weight) <= whole
    assert caldist.random_interval_ce(y, p, width=width, sample_weight=weight) <= whole


@given(samples())
def test_smooth_ce_lies_between_the_mean_and_the_ece(sample):
    """Constants are Lipschitz; "without the Lipschitz condition … equivalent to ECE(f)"."""
    y, p, weight = sample
    value = caldist.smooth_ce(y, p, sample_weight=weight)
    mean = abs(float(np.average(y - p, weights=weight)))
    assert mean - SLACK <= value <= caldist.ece(y, p, sample_weight=weight) + SLACK


@given(samples())
def test_laplace_kernel_ce_bounds_smooth_ce(sample):
    """Theorem: "1/3 smCE ≤ kCE^Lap"; with the norm ½(‖h‖² + ‖h'‖²) the constant is 1/√2."""
    y, p, weight = sample
    smooth = caldist.smooth_ce(y, p, sample_weight=weight)
    kernel = caldist.kernel_ce(y, p, sample_weight=weight)
    assert smooth / 3 <= kernel + SLACK
    assert smooth / math.sqrt(2) <= kernel + SLACK


@given(samples())
def test_squared_kernel_ce_is_at_most_ece_times_smooth_ce(sample):
    """The embedding of the residuals is Lipschitz with constant ECE and bounded by it."""
    y, p, weight = sample
    square = caldist.kernel_ce(y, p, squared=True, sample_weight=weight)
    whole = caldist.ece(y, p, sample_weight=weight)
    assert square <= whole * caldist.smooth_ce(y, p, sample_weight=weight) + SLACK


@given(samples())
def test_smooth_ce_bounds_every_lipschitz_function(sample):
    """Definition: smCE is the supremum over 1-Lipschitz functions into [-1, 1]."""
    y, p, weight = sample
    value = caldist.weighted_ce(
        y,
        p,
        functions=[np.sin, np.cos, lambda v: v, lambda v: np.abs(v - 0.5), lambda v: 1 - v],
        sample_weight=weight,
    )
    assert value <= caldist.smooth_ce(y, p, sample_weight=weight) + SLACK


@given(samples(), widths)
def test_random_interval_ce_is_bounded_by_smooth_ce(sample, width):
    """Lemma: "RintCE(Γ, ε) ≤ (1 + 2/ε) ldCE(Γ)", and ldCE ≤ 2 smCE; likewise intCE ≤ 4√ldCE and
    SintCE ≤ 6√ldCE."""
    y, p, weight = sample
    upper = 2 * caldist.smooth_ce(y, p, sample_weight=weight)
    assert (
        caldist.random_interval_ce(y, p, width=width, sample_weight=weight)
        <= (1 + 2 / width) * upper + SLACK
    )
    root = math.sqrt(upper)
    assert caldist.interval_ce(y, p, sample_weight=weight) <= 4 * root + SLACK
    assert caldist.surrogate_interval_ce(y, p, sample_weight=weight) <= 6 * root + SLACK


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 5)), min_size=1, max_size=8))
def test_perfectly_calibrated_predictions_have_value_zero(groups):
    """Completeness: if E[y | v] = v, every measure that sees only residuals is 0."""
    y, p, weight = [], [], []
    for eighths, mass in groups:
        for label, share in ((1, eighths / 8), (0, 1 - eighths / 8)):
            y.append(label)
            p.append(eighths / 8)
            weight.append(mass * share)
    for measure in (
        caldist.smooth_ce,
        caldist.kernel_ce,
        caldist.interval_ce,
        caldist.surrogate_interval_ce,
        caldist.random_interval_ce,
        caldist.binned_ece,
        caldist.ece,
        caldist.measures.kernel_smoothed_ece,
        caldist.measures.ecce_mad,
        caldist.measures.ecce_range,
        caldist.measures.averaged_two_bin_ce,
    ):
        assert measure(y, p, sample_weight=weight) <= 1e-15
