"""The paper's instances with known answers."""

import math

import numpy as np
import pytest

import caldist
from caldist import Joint


@pytest.mark.parametrize("eps", [0.1, 1e-3, 1e-9])
def test_two_points(eps):
    """Predictions ½ ± ε with labels 0 and 1: ECE = ½ - ε, binned ECE 0 or ½ - ε by parity, while
    the consistent measures go to 0 with ε."""
    y, p = [0, 1], [0.5 - eps, 0.5 + eps]
    assert caldist.ece(y, p) == pytest.approx(0.5 - eps)
    assert caldist.binned_ece(y, p, n_bins=2) == pytest.approx(0.5 - eps)
    assert caldist.binned_ece(y, p, n_bins=3) == pytest.approx(0.0, abs=1e-15)
    assert caldist.smooth_ce(y, p) == pytest.approx(2 * eps * (0.5 - eps) / 2)
    assert caldist.interval_ce(y, p) <= 2 * eps + 1e-15
    assert caldist.kernel_ce(y, p) <= math.sqrt(2 * eps)


def tight_gap(alpha):
    """The joint of the tight-gap lemma, with β = α/2."""
    beta = alpha / 2
    rows = [  # prediction, mass, E[y|x]
        (0.5 + alpha + beta, alpha, 0.0),
        (0.5 + alpha, 0.5 - alpha, 0.5),
        (0.5 - alpha, 0.5 - alpha, 0.5),
        (0.5 - alpha - beta, alpha, 1.0),
    ]
    v, mass, mean = np.array(rows).T
    return Joint.from_masses(v, mass * (1 - mean), mass * mean)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.2])
def test_tight_gap(alpha):
    """ "udCE ≤ 5α² and intCE ≥ α"; at α = .05 intCE is .1025."""
    value = caldist.interval_ce(tight_gap(alpha))
    assert value >= alpha
    if alpha == 0.05:
        assert value == pytest.approx(0.1025)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.25])
def test_quadratic_gap(alpha):
    """The joint of the quadratic-gap lemma has ldCE = 4α²/(1+2α), so smCE within a factor of 2."""
    joint = Joint.from_masses(
        [0.5 - alpha, 0.5 + alpha],
        [0.5 * (0.5 - alpha), 0.5 * (0.5 + alpha)],
        [0.5 * (0.5 + alpha), 0.5 * (0.5 - alpha)],
    )
    lower_distance = 4 * alpha**2 / (1 + 2 * alpha)
    assert lower_distance / 2 <= caldist.smooth_ce(joint) <= 2 * lower_distance
    assert caldist.smooth_ce(joint) == pytest.approx(2 * alpha**2)


def discontinuity(eps):
    """The paper's table with α = 1/6, β = 1/48: four equally likely points; f₂, or f₁ at ε = 0."""
    alpha, beta = 1 / 6, 1 / 48
    v = 0.5 + np.array([-beta, -eps, eps, beta])
    mean = v + np.array([alpha, -alpha, 2 * alpha, -2 * alpha])
    return Joint.from_masses(v, (1 - mean) / 4, mean / 4)


def test_interval_ce_is_discontinuous():
    """ "intCE(f₂) ≤ β" and "intCE(f₁) ≥ 2β", though f₂ converges to f₁."""
    for eps in (1e-3, 1e-6, 1e-12):
        assert caldist.interval_ce(discontinuity(eps)) <= 1 / 48 + 1e-12
    assert caldist.interval_ce(discontinuity(0.0)) >= 2 / 48 - 1e-12


@pytest.mark.parametrize(("delta", "gap"), [(0.1, 0.1), (0.01, 0.01), (1e-3, 1e-4)])
def test_ratio_two(delta, gap):
    """Mass 1-δ at (δ, y=0) and δ at (δ+Δ, y=1): smCE/ldCE = 2 - δ - Δ, so [½, 2] is tight."""
    joint = Joint.from_masses([delta, delta + gap], [1 - delta, 0.0], [0.0, delta])
    mean = -(1 - delta) * delta + delta * (1 - delta - gap)
    value = caldist.smooth_ce(joint)
    # |T| = δΔ and the one prefix sum is -(1-δ)δ, on a gap of Δ.
    assert value == pytest.approx(abs(mean) + gap * (1 - delta) * delta - gap * abs(mean))
    assert value / (delta * gap) == pytest.approx(2 - delta - gap)


def gaussian_instance(eps, nodes=20_000):
    """v ~ U[¼, ¾] with E[y - v | v] = h(v - ½)/4, h(t) = cos(t/ε) exp(-t²/ε)."""
    t = ((np.arange(nodes) + 0.5) / nodes - 0.5) / 2
    v = 0.5 + t
    mean = v + np.cos(t / eps) * np.exp(-(t**2) / eps) / 4
    return Joint.from_masses(v, 1 - mean, mean)


def test_the_gaussian_kernel_is_not_sound():
    """Theorem: the Gaussian kCE can be exponentially small where smCE is polynomially large."""
    for eps in (0.02, 0.01, 0.005, 0.003):
        joint = gaussian_instance(eps)
        assert caldist.smooth_ce(joint) > eps**1.5 / 2
        # The tails that are cut off at ±¼ alone leave about exp(-1/(16ε)).
        assert caldist.kernel_ce(joint, kernel="gaussian") < math.exp(-1 / (16 * eps)) / 50
        assert caldist.kernel_ce(joint) > caldist.smooth_ce(joint)  # the Laplace kernel sees it


@pytest.mark.parametrize("beta", [0.3, 1.0, 3.0])
def test_temperature_family_on_a_fine_grid(beta):
    """D_β: calibrated at β = 1 only; all consistent measures see the rest."""
    f = (np.arange(4000) + 0.5) / 4000
    joint = Joint.from_masses(f**beta / (f**beta + (1 - f) ** beta), 1 - f, f)
    value = caldist.smooth_ce(joint)
    if beta == 1:
        assert value == pytest.approx(0, abs=1e-12)
    else:
        assert value > 0.01
