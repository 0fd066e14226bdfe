"""The computations behind the errata: what each one shows as (quantity, value) pairs."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

import caldist
from caldist.paper import families, lemmas
from caldist.paper.common import SEED
from caldist.paper.estimators import estimate_kernel_ce, estimate_surrogate_interval_ce
from caldist.paper.witnesses import Domain, gaussian_wave, interval_jump, quadratic_gap

__all__ = [
    "Values",
    "between",
    "binning_factor",
    "cauchy",
    "completeness",
    "cutoff",
    "fixed_distribution",
    "four",
    "fourier_exponent",
    "gamma",
    "gaussian_norm",
    "gaussian_rate",
    "gaussian_weight",
    "kernel_constant",
    "laplace_norm",
    "maximal_width",
    "omitted_width",
    "rademacher",
    "roots",
    "smooth_above_kernel",
    "surrogate_name",
]

Values = list[tuple[str, float]]


def _flipped(low: float, high: float, mass: float) -> Domain:
    """Return two points that are each what the other should be, and certain zeros at 0."""
    return Domain(
        np.array([0.0, high, low]), np.array([0.0, low, high]),
        np.array([1 - 2 * mass, mass, mass]),
    )  # fmt: skip


def maximal_width(_: lemmas.Plan) -> Values:
    """Compare intCE with what the largest width in place of the average gives."""
    domain = Domain(
        np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.4, 0.6]), np.array([0.9, 0.05, 0.05])
    )
    v, residual = domain.y_prob, domain.mass * (domain.y_mean - domain.y_prob)
    values = []
    for cuts in ((0, 1, 2, 3), (0, 1, 3), (0, 2, 3), (0, 3)):  # all contiguous groups
        groups = list(pairwise(cuts))
        error = sum(abs(float(residual[i:j].sum())) for i, j in groups)
        values.append(error + max(float(v[j - 1] - v[i]) for i, j in groups))
    return [
        ("intCE with the average width", caldist.interval_ce(domain.joint)),
        ("the same with the largest width, by all partitions", min(values)),
    ]


def omitted_width(_: lemmas.Plan) -> Values:
    """Compare udCE with the binned ECE of one bin, with and without its width."""
    domain = _flipped(0.25, 0.75, 0.5)
    return [
        ("udCE", caldist.upper_distance(domain.joint)),
        ("binnedECE of one bin", caldist.binned_ece(domain.joint, n_bins=1)),
        ("binnedECE of one bin plus its width",
         caldist.binned_ece(domain.joint, n_bins=1, add_width=True)),
    ]  # fmt: skip


def _sample(plan: lemmas.Plan) -> tuple[families.Labels, families.Vector]:
    return families.sample(0.5, plan.n_rows, np.random.default_rng((SEED, 5, 0)))


def binning_factor(plan: lemmas.Plan) -> Values:
    """Average the binning algorithm as it is printed."""
    label, prediction = _sample(plan)
    rng = np.random.default_rng((SEED, 5, 1))
    printed = 0.0
    for _ in range(plan.draws):
        width = rng.gamma(2.0)
        into = np.floor((prediction + rng.uniform(0, width)) / width).astype(int)
        printed += float((np.bincount(into, prediction - label) ** 2).sum()) / plan.draws
    return [
        ("kCE²", caldist.kernel_ce(label, prediction, squared=True)),
        ("mean of the algorithm as printed", printed),
        ("the same divided by k²", printed / label.size**2),
    ]


def fourier_exponent(plan: lemmas.Plan) -> Values:
    """Evaluate the Fourier algorithm as it is printed, and as it should be."""
    label, prediction = _sample(plan)
    mean = float(np.mean(label - prediction)) ** 2
    features = estimate_kernel_ce(
        label, prediction, method="fourier", squared=True, n_features=plan.draws,
        rng=np.random.default_rng((SEED, 5, 2)),
    )  # fmt: skip
    return [
        ("kCE²", caldist.kernel_ce(label, prediction, squared=True)),
        ("mean of the algorithm as printed, for every ω", mean),
        ("mean of the algorithm with v_j", features),
    ]


def cauchy(_: lemmas.Plan) -> Values:
    """Integrate the density of the Cauchy distribution as it is printed."""
    from scipy.integrate import quad  # slow to import

    total = quad(lambda w: 1 / (1 + w * w), -math.inf, math.inf)[0]
    return [("∫ 1/(1 + ω²) dω", total), ("with the factor 1/π", total / math.pi)]


def gamma(plan: lemmas.Plan) -> Values:
    """Find how often a random bin is wider than 1."""
    width = np.random.default_rng((SEED, 5, 3)).gamma(2.0, size=plan.draws)
    return [
        ("probability that δ > 1, which is 2/e", 2 / math.e),
        ("share of draws with δ > 1", float(np.mean(width > 1))),
    ]


def laplace_norm(_: lemmas.Plan) -> Values:
    """Take the norm of the Laplace kernel's own function."""
    from scipy.integrate import quad  # slow to import

    # h = K(., 0) = exp(-|t|) has h² = h'² = exp(-2|t|).
    square = 2 * quad(lambda t: math.exp(-2 * t), 0, math.inf)[0]
    return [
        ("‖K(·, 0)‖², which must be K(0, 0)", 1.0),
        ("‖h‖² + ‖h′‖² for h = K(·, 0)", square + square),
        ("½ (‖h‖² + ‖h′‖²)", (square + square) / 2),
    ]


def kernel_constant(_: lemmas.Plan) -> Values:
    """Compare the largest ratio known with the constant that is proved."""
    domain = Domain(np.array([1.0]), np.array([0.0]), np.array([1.0]))
    kernel, lower = caldist.kernel_ce(domain.joint), caldist.lower_distance(domain.joint)
    return [
        ("kCE/√ldCE where the prediction is 0 and the label 1", kernel / math.sqrt(lower)),
        ("constant that the lemma proves, 2√2", 2 * math.sqrt(2)),
    ]


def four(_: lemmas.Plan) -> Values:
    """Compute the true distance of the quadratic gap."""
    alpha = 0.1
    first, _second = quadratic_gap(alpha)
    return [
        ("dCE(D¹) at α = 0.1, over all groupings", first.distance()),
        ("2α²", 2 * alpha**2),
        ("4α²", 4 * alpha**2),
    ]


def between(_: lemmas.Plan) -> Values:
    """Compute dCE and smCE where smCE is the larger."""
    domain = families.ratio_two(0.01, 0.01)
    return [
        ("dCE", domain.distance()),
        ("smCE", caldist.smooth_ce(domain.joint)),
        ("smCE/2", caldist.smooth_ce(domain.joint) / 2),
    ]


def rademacher(_: lemmas.Plan) -> Values:
    """Compute the Rademacher complexity of two constant functions."""

    def constant_signs(n: int) -> float:  # E|σ_1 + … + σ_n| for even n, the class {+1, -1}
        return float(n * math.comb(n, n // 2) / 2**n)

    return [
        ("class {+1, −1}, n = 100, as printed", constant_signs(100)),
        ("class {+1, −1}, n = 1,000, as printed", constant_signs(1000)),
        ("n = 100, with 1/n", constant_signs(100) / 100),
        ("n = 1,000, with 1/n", constant_signs(1000) / 1000),
    ]


def surrogate_name(plan: lemmas.Plan) -> Values:
    """Run the surrogate's estimator on predictions and labels."""
    label, prediction = _sample(plan)
    estimate = estimate_surrogate_interval_ce(
        label, prediction, n_shifts=1000,
        rng=np.random.default_rng((SEED, 5, 4)),
    )  # fmt: skip
    return [
        ("SintCE, exact", caldist.surrogate_interval_ce(label, prediction)),
        ("the estimator on (v_ℓ, y_ℓ)", estimate),
    ]


def gaussian_norm(_: lemmas.Plan) -> Values:
    """Compare the least norm of an approximation with both bounds."""
    return [
        ("least norm of w̃ within ε = ½ of w = 1, from |w̃(t)| ≤ ‖w̃‖", 0.5),
        ("exp(−ε⁻⁴)", math.exp(-(0.5**-4))),
        ("exp(+ε⁻⁴)", math.exp(0.5**-4)),
    ]


def cutoff(_: lemmas.Plan) -> Values:
    """Put both cut-off frequencies into the bound of the proof."""
    eps = 0.1
    return [
        ("6/√ω₀ for ω₀ = ε², at ε = 0.1", 6 / math.sqrt(eps**2)),
        ("6/√ω₀ for ω₀ = 36 ε⁻²", 6 / math.sqrt(36 * eps**-2)),
    ]


def gaussian_weight(_: lemmas.Plan) -> Values:
    """Compute the kernels that belong to two weights."""
    from scipy.integrate import quad  # slow to import

    def kernel(scale: float) -> float:  # at distance 1, of the weight exp(scale ω²)
        top = quad(lambda w: math.cos(w) * math.exp(-scale * w * w), 0, math.inf)[0]
        return float(top / quad(lambda w: math.exp(-scale * w * w), 0, math.inf)[0])

    return [
        ("K(0, 1) = exp(−1)", math.exp(-1)),
        ("kernel of the weight exp(ω²)", kernel(1.0)),
        ("kernel of the weight exp(ω²/4)", kernel(0.25)),
    ]


def roots(_: lemmas.Plan) -> Values:
    """Compare both forms of the inequality of Cauchy and Schwarz."""
    from scipy.integrate import quad  # slow to import

    square = 2 * quad(lambda t: (0.1 * math.exp(-t * t)) ** 2, 0, math.inf)[0]
    return [
        ("∫ a b for a = b = 0.1 exp(−t²)", square),
        ("(∫ a²)(∫ b²), as printed", square * square),
        ("(∫ a²)^½ (∫ b²)^½", math.sqrt(square) * math.sqrt(square)),
    ]


def gaussian_rate(plan: lemmas.Plan) -> Values:
    """Compute the exponent of the Gaussian kernel's instance."""
    values = []
    for eps in lemmas.GAUSSIAN_EPS:
        domain = gaussian_wave(eps, plan.nodes)
        kernel = caldist.kernel_ce(domain.joint, kernel="gaussian")
        values.append((f"−ε ln kCE at ε = {eps:g}", -eps * math.log(kernel)))
    return values


def smooth_above_kernel(_: lemmas.Plan) -> Values:
    """Compute smCE and kCE where smCE is the larger."""
    domain = Domain(np.array([0.2, 1.0]), np.array([0.0, 0.8]), np.full(2, 0.5))
    return [
        ("smCE", caldist.smooth_ce(domain.joint)),
        ("kCE", caldist.kernel_ce(domain.joint)),
    ]


def completeness(_: lemmas.Plan) -> Values:
    """Evaluate a complete measure that is not sound."""
    domain = _flipped(0.25, 0.75, 0.5)
    return [
        ("|E[y − v]|, complete and 1-Lipschitz", caldist.binned_ece(domain.joint, n_bins=1)),
        ("dCE", domain.distance()),
    ]


def fixed_distribution(_: lemmas.Plan) -> Values:
    """Compute the jump of intCE with one distribution for all ε."""
    limit = interval_jump(0.0)
    near = interval_jump(1e-6)
    return [
        ("β", 1 / 48),
        ("intCE(f₂) at ε = 10⁻⁶, E[y|x] kept at ε = 0", caldist.interval_ce(near.joint)),
        ("intCE(f₁), the limit's value", caldist.interval_ce(limit.joint)),
    ]
