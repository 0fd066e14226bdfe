"""Errors of cumulative differences against their definitions, threshold by threshold."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

import oracles
from caldist import ece
from caldist.measures import averaged_two_bin_ce, ecce_mad, ecce_range
from strategies import samples


@given(samples())
def test_cumulative_differences_by_definition(sample):
    y, p, weight = sample
    weight = np.ones(y.size) if weight is None else weight
    share = weight / weight.sum()
    sums = [0.0] + [float(share[p <= t] @ (y - p)[p <= t]) for t in sorted(set(p.tolist()))]
    options = {"sample_weight": weight}
    largest = max(abs(s) for s in sums)
    assert ecce_mad(y, p, **options) == pytest.approx(largest, abs=1e-13)
    width = max(sums) - min(sums)
    assert ecce_range(y, p, **options) == pytest.approx(width, abs=1e-13)
    assert largest <= width + 1e-15
    assert width <= min(2 * largest, ece(y, p, **options)) + 1e-13

    edges = [0.0, *sorted(set(p.tolist())), 1.0]
    mean = sums[-1]
    averaged = sum(
        (b - a) * (s**2 + (mean - s) ** 2) for (a, b), s in zip(pairwise(edges), sums, strict=True)
    )
    assert averaged_two_bin_ce(y, p, **options) == pytest.approx(averaged, abs=1e-13)


@given(samples())
def test_ecce_mad_is_the_kolmogorov_smirnov_calibration_error(sample):
    """By Gupta et al.: the largest distance of two cumulative curves over the sorted rows."""
    y, p, weight = sample
    order = np.argsort(p)
    share = oracles.row_weights(y, weight)[order]
    share /= share.sum()
    predicted, seen = np.cumsum(share * p[order]), np.cumsum(share * y[order])
    last = np.append(np.diff(p[order]) > 0, True)  # of equal predictions, the last row
    largest = np.abs(predicted - seen)[last].max()
    assert ecce_mad(y, p, sample_weight=weight) == pytest.approx(largest, abs=1e-13)


def test_the_order_of_ties_does_not_matter():
    # Row by row the prefix sums would reach 1 in one order and -1 in the other.
    assert ecce_mad([1, 1, 0, 0], [0.5] * 4) == ecce_range([0, 0, 1, 1], [0.5] * 4) == 0


def test_averaged_two_bin_ce_is_truthful_on_average():
    # For each threshold the variances of both bins add up to E[v(1 - v)]/n.
    p = np.array([0.1, 0.4, 0.4, 0.8])
    mean = 0.0
    for bits in range(16):
        y = np.array([bits >> i & 1 for i in range(4)])
        mean += np.prod(np.where(y == 1, p, 1 - p)) * averaged_two_bin_ce(y, p)
    assert mean == pytest.approx((p * (1 - p)).sum() / 16)
