"""What is said of label 1 and of v is said of label 0 and of 1 - v: too high becomes too low."""

import numpy as np
import pytest

import caldist

ERRORS = ("ici", "e50", "e90", "emax")


def sample(power, n=400):
    """Return labels and predictions that are too high if the power is above 1."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, n)
    return (rng.random(n) < p**power).astype(int), p


@pytest.mark.parametrize("smoother", ["loess", "lowess"])
@pytest.mark.parametrize("power", [1.0, 1.5])
def test_a_summary_of_calibration(power, smoother):
    y, p = sample(power)
    one, other = (
        caldist.clinical.calibration_summary(*rows, smoother=smoother)
        for rows in ((y, p), (1 - y, 1 - p))
    )
    for name in ERRORS:  # smoothers begin at the left, and limits are from random curves
        a, b = getattr(one, name), getattr(other, name)
        assert a.value == pytest.approx(b.value, abs=1e-3)
        assert (a.lower, a.upper) == pytest.approx((b.lower, b.upper), abs=0.012)
    for end, same in (("value", "value"), ("lower", "upper"), ("upper", "lower")):
        found = getattr(one.intercept, end)
        assert found == pytest.approx(-getattr(other.intercept, same), abs=1e-9)
        assert getattr(one.slope, end) == pytest.approx(getattr(other.slope, end), abs=1e-9)


@pytest.mark.parametrize("measure", ["smooth_ce", "lower_distance", "brier_score"])
@pytest.mark.parametrize("power", [1.0, 1.5])
def test_intervals(measure, power):
    y, p = sample(power)
    one, other = (
        caldist.confidence_interval(*rows, measure=measure, method="cross_fit", rng=0)
        for rows in ((y, p), (1 - y, 1 - p))
    )
    assert one.value == pytest.approx(other.value, abs=1e-6)
    assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), abs=0.01)
