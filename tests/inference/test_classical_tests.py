"""The classical statistics by their formulas, and the laws they follow in large samples."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from caldist.inference.classical import chi_squared_tail
from caldist.inference.testing import calibration_test
from caldist.measures.ecce_mad import largest_tail
from caldist.measures.ecce_range import range_tail
from calibrated_labels import labels, spiegelhalter_z


@pytest.mark.parametrize("weighted", [False, True])
def test_spiegelhalter_by_its_formula(weighted):
    rng = np.random.default_rng(2)
    v = np.round(rng.random(300), 2)
    y = labels(rng, v)
    w = rng.random(300) if weighted else None
    result = calibration_test(y, v, measure="spiegelhalter", sample_weight=w, rng=0)
    z = spiegelhalter_z(y, v, w)
    assert result.statistic == pytest.approx(z)
    assert result.asymptotic_pvalue == pytest.approx(2 * stats.norm.sf(z))
    assert result.pvalue == pytest.approx(result.asymptotic_pvalue, abs=0.07)


def textbook_hosmer_lemeshow(y, v):
    """Sum (O - E)² / (E (1 - E/n)) over ten groups of equally many of the sorted rows."""
    total = 0.0
    for part in np.split(np.argsort(v), 10):
        n, observed, expected = part.size, y[part].sum(), v[part].sum()
        total += (observed - expected) ** 2 / (expected * (1 - expected / n))
    return total


def test_hosmer_lemeshow_by_its_formula():
    rng = np.random.default_rng(3)
    v = np.sort(rng.random(500))
    y = labels(rng, np.clip(v + 0.05, 0, 1))
    total = textbook_hosmer_lemeshow(y, v)
    order = rng.permutation(500)
    result = calibration_test(y[order], v[order], measure="hosmer_lemeshow", rng=0)
    assert result.statistic == pytest.approx(total)
    assert result.asymptotic_pvalue == pytest.approx(stats.chi2.sf(total, 10))
    assert result.pvalue == pytest.approx(result.asymptotic_pvalue, abs=0.06)


@pytest.mark.filterwarnings("ignore:only .* clusters have label:UserWarning")
@pytest.mark.parametrize("n", [50, 70, 300, 1230])
@pytest.mark.parametrize("seed", range(5))
def test_hosmer_lemeshow_groups_hold_equally_many_rows(n, seed):
    """Shares such as 3/10 of 50 rows are whole numbers of rows, whatever their quotients are."""
    rng = np.random.default_rng(seed)
    v = rng.random(n)
    y = labels(rng, np.clip(v + 0.1, 0, 1))
    expected = pytest.approx(textbook_hosmer_lemeshow(y, v))
    options = {"measure": "hosmer_lemeshow", "n_resamples": 19, "rng": 0}
    assert calibration_test(y, v, **options).statistic == expected
    for weight in (0.1, 3e9):
        equal = np.full(n, weight)
        assert calibration_test(y, v, sample_weight=equal, **options).statistic == expected
    clusters = calibration_test(y, v, clusters=np.arange(n), **options)
    assert clusters.statistic == expected


def test_chi_squared_tails_of_even_and_odd_degrees():
    for degrees in range(1, 21):
        for x in (0.0, 1e-9, 0.3, 2.0, 25.0, 400.0, 1e5, math.inf):
            expected = stats.chi2.sf(x, degrees)
            assert chi_squared_tail(x, degrees) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_hosmer_lemeshow_with_fewer_groups():
    # Three distinct predictions are at most three groups; the certain one has no freedom.
    y, v = [0, 0, 1, 0, 1, 1, 0, 1], [0, 0, 0.5, 0.5, 0.5, 0.75, 0.75, 0.75]
    result = calibration_test(y, v, measure="hosmer_lemeshow", n_resamples=99, rng=0)
    total = (2 - 1.5) ** 2 / (3 * 0.25) + (2 - 2.25) ** 2 / (3 * 0.75 * 0.25)
    assert result.statistic == pytest.approx(total)
    assert result.asymptotic_pvalue == pytest.approx(stats.chi2.sf(total, 2))


def test_the_law_of_the_largest_value():
    # Tables of sup |W|: 1.960, 2.241 and 2.807 at 10, 5 and 1 per cent.
    for x, p in ((1.960, 0.1), (2.2414, 0.05), (2.8070, 0.01)):
        assert largest_tail(x) == pytest.approx(p, rel=1e-3)
    assert largest_tail(0) == 1
    for x in (0.4, 0.8, 0.999, 1.0, 1.5, 3.0):
        by_eigenfunctions = 1 - 4 / math.pi * sum(
            (-1) ** k / (2 * k + 1) * math.exp(-((2 * k + 1) ** 2) * math.pi**2 / (8 * x * x))
            for k in range(40)
        )
        by_reflections = 4 * sum((-1) ** k * stats.norm.sf((2 * k + 1) * x) for k in range(40))
        assert largest_tail(x) == pytest.approx(by_eigenfunctions, abs=1e-12)
        assert largest_tail(x) == pytest.approx(by_reflections, abs=1e-12)


def test_the_law_of_the_range():
    def density(r):
        """Feller's series."""
        return 8 * sum(
            (-1) ** (k - 1) * k * k * math.exp(-((k * r) ** 2) / 2) / math.sqrt(2 * math.pi)
            for k in range(1, 12)
        )

    for x in (1.0, 1.5, 1.999, 2.0, 2.5, 4.0):
        tail = integrate.quad(density, x, 9, epsabs=1e-12)[0]
        assert range_tail(x) == pytest.approx(tail, abs=1e-9)
    assert range_tail(0) == 1
    assert range_tail(0.3) == pytest.approx(1, abs=1e-12)
    mean = integrate.quad(range_tail, 0, 20)[0]
    assert mean == pytest.approx(math.sqrt(8 / math.pi), abs=1e-6)


def test_the_laws_by_simulation():
    rng = np.random.default_rng(4)
    steps, times = 1000, 4000
    walk = np.cumsum(rng.standard_normal((times, steps)) / math.sqrt(steps), axis=1)
    # A walk misses the peaks between its steps, by 0.5826/√steps on average at each end.
    missed = 0.5826 / math.sqrt(steps)
    high, low = np.maximum(walk.max(axis=1), 0) + missed, np.minimum(walk.min(axis=1), 0) - missed
    for x in (1.0, 1.5, 2.0, 2.5, 3.0):
        for tail, drawn in (
            (largest_tail(x), np.maximum(high, -low)),
            (range_tail(x), high - low),
        ):
            assert (
                abs(np.mean(drawn >= x) - tail) < 4 * math.sqrt(tail * (1 - tail) / times) + 0.005
            )


@pytest.mark.parametrize("name", ["ecce_mad", "ecce_range"])
@pytest.mark.parametrize("weighted", [False, True])
def test_limit_laws_agree_with_the_draws(name, weighted):
    rng = np.random.default_rng(5)
    v = rng.random(1500)
    w = 0.5 + rng.random(1500) if weighted else None
    for bias in (0.0, 0.02):
        y = labels(rng, np.clip(v + bias, 0, 1))
        result = calibration_test(y, v, measure=name, sample_weight=w, n_resamples=499, rng=0)
        assert result.asymptotic_pvalue == pytest.approx(result.pvalue, abs=0.08)


@pytest.mark.parametrize("measure", ["ecce_mad", "ecce_range"])
def test_statistics_close_to_zero_have_the_pvalue_1(measure):
    found = calibration_test([0] * 17, [2.2e-308] * 17, measure=measure)
    assert (found.pvalue, found.asymptotic_pvalue) == (1, 1)


def test_the_limit_laws_are_continuous_where_they_become_1():
    for x in (0.04, 0.041, 0.05, 0.1):
        assert range_tail(x) == 1
    for x in (0.04, 0.041, 0.05):
        assert largest_tail(x) == 1
    assert largest_tail(5e-324) == range_tail(5e-324) == 1
