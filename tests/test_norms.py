"""Measures as norms of residual masses, against the public measures and dense oracles."""

import numpy as np
import pytest
from hypothesis import given, settings

import caldist
import oracles
from caldist._kernels import replicates
from caldist.inference._norms import NORMS, make_norm
from caldist.inference._resampling import Sample
from caldist.weights import polynomials, region
from strategies import samples

MEASURES = [
    ("smooth_ce", {}),
    ("kernel_ce", {}),
    ("kernel_ce", {"bandwidth": 0.05}),
    ("kernel_ce", {"kernel": "gaussian"}),
    ("kernel_ce", {"kernel": "gaussian", "bandwidth": 0.05}),
    ("random_interval_ce", {}),
    ("random_interval_ce", {"width": 0.37}),
    ("weighted_ce", {"functions": [*polynomials(2), region(0.2, 0.4)]}),
]


@pytest.mark.parametrize(("name", "options"), MEASURES)
@settings(max_examples=60, deadline=None)
@given(data=samples())
def test_a_norm_of_the_residuals_is_the_public_measure(name, options, data):
    y, p, w = data
    sample = Sample.from_arrays(y, p, sample_weight=w)
    norm = make_norm(name, sample.prediction, **options)
    public = getattr(caldist, name)(y, p, sample_weight=w, **options)
    assert norm(sample.residual) == public
    witness = norm.witness(sample.residual)
    assert witness @ sample.residual == pytest.approx(public, abs=1e-12)
    if public > 1e-9:
        assert np.abs(witness).max() <= norm.bound * (1 + 1e-9)


@pytest.mark.parametrize(("name", "options"), MEASURES)
def test_norms_of_any_masses_against_dense_oracles(name, options):
    rng = np.random.default_rng(3)
    for n in (1, 2, 7, 30):
        v, c = np.sort(rng.random(n)), rng.standard_normal(n)
        norm = make_norm(name, v, **options)
        if name == "smooth_ce":
            expected = oracles.smooth_ce_lp(v, c)
        elif name == "random_interval_ce":
            expected = oracles.random_interval(v, c, norm.width)
        elif name == "weighted_ce":
            expected = max(abs(c @ function(v)) for function in options["functions"])
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


@settings(max_examples=100, deadline=None)
@given(data=samples())
def test_the_quick_bound_on_smooth_ce_is_above_it_and_used_only_below_the_threshold(data):
    y, p, w = data
    sample = Sample.from_arrays(y, p, sample_weight=w)
    norm = make_norm("smooth_ce", sample.prediction)
    value = norm(sample.residual)
    bound = replicates.smooth_ce_bound(sample.prediction, sample.residual)
    assert bound >= value - 1e-15
    assert norm.unless_below(sample.residual, value) == value
    assert norm.unless_below(sample.residual, -1.0) == value
    assert value <= norm.unless_below(sample.residual, 2.0) <= bound + 1e-8


def test_expected_noise_is_below_its_bound():
    rng = np.random.default_rng(0)
    n = 40
    for name, options in MEASURES:
        draws = []
        for _ in range(60):
            v = np.round(rng.beta(0.5, 0.5, n), 2)
            sample = Sample.from_arrays(rng.random(n) < v, v)
            draws.append(make_norm(name, sample.prediction, **options)(sample.residual))
        norm = make_norm(name, np.linspace(0, 1, 5), **options)
        assert np.mean(draws) <= norm.noise / np.sqrt(n), name


def test_norms_refuse_foreign_options():
    v = np.array([0.2, 0.4])
    with pytest.raises(TypeError, match=r"squared is not an option of kernel_ce here.*bandwidth"):
        make_norm("kernel_ce", v, squared=True)
    with pytest.raises(TypeError, match="functions"):
        make_norm("weighted_ce", v)
    with pytest.raises(ValueError, match="bandwidth is 0"):
        make_norm("kernel_ce", v, bandwidth=0)
    with pytest.raises(ValueError, match="kernel='laplace'"):
        make_norm("kernel_ce", v, kernel=lambda u, w: u * w)
    with pytest.raises(ValueError, match="width is -1"):
        make_norm("random_interval_ce", v, width=-1)
    assert set(NORMS) == {"smooth_ce", "kernel_ce", "random_interval_ce", "weighted_ce"}
