"""Measures as norms of residual masses, against the public measures and dense oracles."""

import numpy as np
import pytest
from hypothesis import given

import caldist
import oracles
from caldist.data.rows import Rows
from caldist.inference.sample import units_of
from caldist.kernels.loader import smooth
from caldist.measures import polynomials, region
from caldist.measures.registry import all_measures
from strategies import examples, samples

MEASURES = [
    caldist.smooth_ce,
    caldist.kernel_ce,
    caldist.kernel_ce.using(bandwidth=0.05),
    caldist.kernel_ce.using(kernel="gaussian"),
    caldist.kernel_ce.using(kernel="gaussian", bandwidth=0.05),
    caldist.random_interval_ce,
    caldist.random_interval_ce.using(width=0.37),
    caldist.weighted_ce.using(functions=[*polynomials(2), region(0.2, 0.4)]),
]
NORMS = MEASURES + [
    measure
    for measure in all_measures().values()
    if measure.is_norm and measure.name not in {known.name for known in MEASURES}
]


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@examples(60)
@given(data=samples())
def test_a_norm_of_the_residuals_is_the_public_measure(measure, data):
    y, p, w = data
    sample = units_of(Rows.of(y, p, sample_weight=w))
    norm = measure.norm(sample.prediction)
    public = measure(y, p, sample_weight=w)
    assert norm(sample.residual) == public
    witness = norm.witness(sample.residual)
    assert witness @ sample.residual == pytest.approx(public, abs=1e-12)
    if public > 1e-9:
        assert np.abs(witness).max() <= norm.bound * (1 + 1e-9)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_norms_of_any_masses_against_dense_oracles(measure):
    rng = np.random.default_rng(3)
    for n in (1, 2, 7, 30):
        v, c = np.sort(rng.random(n)), rng.standard_normal(n)
        norm = measure.norm(v)
        if measure.name == "smooth_ce":
            expected = oracles.smooth_ce_lp(v, c)
        elif measure.name == "random_interval_ce":
            expected = oracles.random_interval(v, c, norm.width)
        elif measure.name == "weighted_ce":
            expected = max(abs(c @ function(v)) for function in measure.options["functions"])
        else:
            power = 2 if norm.kernel == "gaussian" else 1

            def kernel(u, w, h=norm.bandwidth, power=power):
                return np.exp(-((np.abs(u - w) / h) ** power))

            expected = np.sqrt(oracles.kernel_squared(v, c, kernel))
            dense = kernel(v[:, None], v) @ c / expected
            np.testing.assert_allclose(norm.witness(c), dense, rtol=0, atol=1e-12)
        assert norm(c) == pytest.approx(expected, rel=1e-9)
        # a norm: homogeneous, symmetric, with the triangle inequality
        d = rng.standard_normal(n)
        assert norm(-2 * c) == pytest.approx(2 * norm(c), rel=1e-12)
        assert norm(c + d) <= norm(c) + norm(d) + 1e-12


@examples(100)
@given(data=samples())
def test_the_quick_bound_on_smooth_ce_is_above_it_and_used_only_below_the_threshold(data):
    y, p, w = data
    sample = units_of(Rows.of(y, p, sample_weight=w))
    norm = caldist.smooth_ce.norm(sample.prediction)
    value = norm(sample.residual)
    bound = smooth.smooth_ce_bound(sample.prediction, sample.residual)
    assert bound >= value - 1e-15
    assert norm.unless_below(sample.residual, value) == value
    assert norm.unless_below(sample.residual, -1.0) == value
    assert value <= norm.unless_below(sample.residual, 2.0) <= bound + 1e-8


def test_expected_noise_is_below_its_bound():
    rng = np.random.default_rng(0)
    n = 40
    for measure in NORMS:
        draws = []
        for _ in range(60):
            v = np.round(rng.beta(0.5, 0.5, n), 2)
            sample = units_of(Rows.of(rng.random(n) < v, v))
            draws.append(measure.norm(sample.prediction)(sample.residual))
        norm = measure.norm(np.linspace(0, 1, 5))
        assert np.mean(draws) <= norm.noise / np.sqrt(n), measure


def test_options_that_make_a_measure_something_else_are_refused():
    v = np.array([0.2, 0.4])
    for measure, match in (
        (caldist.kernel_ce.using(squared=True), "squared is True"),
        (caldist.kernel_ce.using(bandwidth=0), "bandwidth is 0"),
        (caldist.kernel_ce.using(kernel=lambda u, w: u * w), "kernel='laplace'"),
        (caldist.random_interval_ce.using(width=-1), "width is -1"),
        (caldist.random_interval_ce.using(add_width=True), "add_width is True"),
    ):
        with pytest.raises(ValueError, match=match):
            measure.norm(v)
