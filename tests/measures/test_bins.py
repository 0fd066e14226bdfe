"""Bins of equal mass by their definition, in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
from caldist.measures.bins import equal_mass_starts


def starts_by_definition(mass, n_bins):
    """Bin k starts at the least point with at least the share k/n_bins of the mass below it."""
    parts = [Fraction(float(part)) for part in mass]
    total, starts = sum(parts), {0}
    for k in range(1, n_bins):
        reached = [i for i in range(len(parts)) if sum(parts[:i]) * n_bins >= k * total]
        starts.update(reached[:1])
    return sorted(starts)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(1, 60))
def test_whole_masses_are_compared_exactly(counts, n_bins):
    expected = starts_by_definition(counts, n_bins)
    for mass in (np.array(counts), np.array(counts, float)):
        assert equal_mass_starts(mass, n_bins).tolist() == expected


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
    st.integers(1, 60),
    st.sampled_from([2.0**-1074, 2.0**-60, 2.0**1000]),
)
def test_a_power_of_two_changes_nothing(counts, n_bins, scale):
    mass = scale * np.array(counts, float)
    assert equal_mass_starts(mass, n_bins).tolist() == starts_by_definition(counts, n_bins)


@given(st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=30), st.integers(1, 40))
def test_weights_are_binned_to_within_rounding(weights, n_bins):
    mass = np.array(weights)
    starts = equal_mass_starts(mass, n_bins)
    place = np.searchsorted(starts, np.arange(mass.size), side="right")
    share = n_bins * (np.cumsum(mass) - mass) / mass.sum()
    sure = np.abs(share - np.rint(share)) > 1e-9
    bins = np.floor(share)
    for i in np.flatnonzero(sure):
        for j in np.flatnonzero(sure):
            assert (place[i] == place[j]) == (bins[i] == bins[j])


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
    st.integers(1, 60),
    st.sampled_from([0.1, 1 / 3, 0.7, 1e-5]),
)
def test_equal_weights_make_the_bins_of_as_many_rows(counts, n_bins, weight):
    mass = weight * np.array(counts, float)
    assert equal_mass_starts(mass, n_bins).tolist() == starts_by_definition(counts, n_bins)


@pytest.mark.parametrize("n", [30, 50, 300])
@pytest.mark.parametrize("weight", [0.1, 1 / 3])
def test_the_scale_of_weights_does_not_move_bins_of_equal_mass(n, weight):
    rng = np.random.default_rng(n)
    p = rng.random(n)
    y = rng.random(n) < p
    bins = caldist.binned_ece.using(n_bins=10, strategy="quantile")
    assert bins(y, p, sample_weight=np.full(n, weight)) == pytest.approx(bins(y, p), rel=1e-12)


@pytest.mark.parametrize("n_bins", [3, 10**4, 10**12, 10**30])
def test_large_numbers_do_not_overflow(n_bins):
    counts = np.array([1, 10**15, 2, 10**15, 10**14])
    assert equal_mass_starts(counts, n_bins).tolist() == _starts(counts.tolist(), n_bins)


def _starts(counts, n_bins):
    place = [n_bins * sum(counts[:i]) // sum(counts) for i in range(len(counts))]
    return [0, *(i for i in range(1, len(counts)) if place[i] != place[i - 1])]


def test_more_bins_than_rows_is_a_bin_for_each_point():
    assert equal_mass_starts(np.array([2.0, 1.0, 3.0]), 10**9).tolist() == [0, 1, 2]


def test_predictions_of_exactly_1_are_a_bin_of_their_own_where_the_rule_says_so():
    y, p = [1, 0], [0.5, 1.0]
    assert caldist.binned_ece(y, p, n_bins=2, strategy="quantile") == 0.75
    width = caldist.binned_ece(y, p, n_bins=2, strategy="quantile", add_width=True) - 0.75
    assert width == 0.5  # half the mass in [0, 1), the other half in [1, 1]
