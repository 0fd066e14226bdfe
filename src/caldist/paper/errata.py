"""Errors of the published paper, each with the computation that shows it."""

from __future__ import annotations

from collections.abc import Callable

from caldist.paper import errata_checks as checks
from caldist.paper import lemmas
from caldist.paper.common import Card, Drawing, Section, Table, bar

__all__ = ["FULL", "QUICK", "compute", "draw"]

FULL, QUICK = lemmas.FULL, lemmas.QUICK

Erratum = tuple[str, str, str, str, Callable[[lemmas.Plan], checks.Values]]


_TEXT = """\
What an implementer has to know about the printed paper. None of these errors touches its main
results: constants, signs, normalisations and notation need correction. Sections are numbered as in
the arXiv version.
"""


def compute(plan: lemmas.Plan) -> Section:
    """Compute what shows each error."""
    cards, texts, numbers = [], [], []
    for at, (where, printed, correct, why, shows) in enumerate(bar(_ERRATA, "errata"), 1):
        values = shows(plan)
        described = (("Printed", printed), ("Should read", correct), ("What shows it", why))
        cards.append(Card(f"{at}. {where}", described, tuple(values)))
        texts.append((at, where, printed, correct, why))
        numbers += [(at, quantity, value) for quantity, value in values]
    return Section(
        text=_TEXT,
        tables=(
            Table("errata", "The errata", ("number", "where", "printed", "should read", "why"),
                  tuple(texts), shown=False),
            Table("errata_values", "What was computed for each", ("number", "quantity", "value"),
                  tuple(numbers), shown=False),
        ),
        cards=tuple(cards),
    )  # fmt: skip


def draw(_: Section) -> list[Drawing]:
    """Draw nothing: the entries are the page."""
    return []


_ERRATA: tuple[Erratum, ...] = (
    (
        "Section 2.3, interval calibration: the width",
        "intCE is regularised by the maximum bin width w(I).",
        "The average width, weighted by mass, as in the definition of Section 6.",
        (
            "The two differ: 90% of the mass is certain zeros at 0, the rest are two wrong points "
            "at 0.4 and 0.6, and merging these is cheap on average but not at the maximum."
        ),
        checks.maximal_width,
    ),
    (
        "Section 6, proof of udCE ≤ intCE: first line",
        "It suffices to show udCE ≤ binnedECE(I) for every partition I.",
        "udCE ≤ binnedECE(I) + w(I), which is what the proof goes on to show.",
        "Two points, at ¼ and ¾, each with the other's frequency, in one bin.",
        checks.omitted_width,
    ),
    (
        "Section 8.3, the binning algorithm: the returned value",
        "Return the sum of the squared bins.",
        "Divide it by k², k the number of rows.",
        "The mean over random bins is k² times kCE², and not bounded by 1.",
        checks.binning_factor,
    ),
    (
        "Section 8.3, the Fourier algorithm: the exponent",
        "The sum over j has exp(−iω v_i).",
        "exp(−iω v_j).",
        (
            "With an exponent that does not depend on j the modulus is that of the plain sum: the "
            "square of the mean residual, whatever ω is."
        ),
        checks.fourier_exponent,
    ),
    (
        "Section B.3, proof for Fourier features: the Cauchy density",
        "1/(1 + ω²).",
        "1/(π (1 + ω²)).",
        "A density integrates to 1.",
        checks.cauchy,
    ),
    (
        "Section B.3, proof for random bins: the range of δ",
        "For fixed δ in (0, 1).",
        "For fixed δ > 0: Gamma(2, 1) is not confined to (0, 1). The proof does not need it.",
        "Most bins are wider than 1.",
        checks.gamma,
    ),
    (
        "Section 8.1, the Laplace kernel: the norm of its space",
        "‖h‖² + ‖h′‖².",
        "½ (‖h‖² + ‖h′‖²).",
        "The norm of K(·, 0) is K(0, 0) = 1 by the reproducing property.",
        checks.laplace_norm,
    ),
    (
        "Section 8.2, theorem on the Laplace kernel: the constant",
        "kCE ≤ √ldCE.",
        "kCE ≤ 2√2 √ldCE is what the continuity lemma proves.",
        (
            "No instance above √ldCE is known, and the table of statements has the largest ratio "
            "found: the printed bound may be true, but it is not proved."
        ),
        checks.kernel_constant,
    ),
    (
        "Section 4.2, the quadratic gap: the constant (also in Section 5)",
        "dCE(D¹) ≤ 2α².",
        "4α²: the two points that move have mass 2α together and move by 2α.",
        "The exact distance over all groupings of the four points, for α up to ¼.",
        checks.four,
    ),
    (
        "Section 10.3: where the distance lies",
        "dCE lies between smCE and intCE.",
        "Between smCE/2 and intCE: smCE can be nearly twice dCE.",
        "Mass 0.99 at 0.01 with label 0, mass 0.01 at 0.02 with label 1.",
        checks.between,
    ),
    (
        "Section 9.1, definition of the Rademacher complexity",
        "The expected supremum of Σ σ_i a_i.",
        "Of (1/n) Σ σ_i a_i; only so is it O(1/√n) for the classes named.",
        "For the two constant functions ±1 the printed quantity grows like √n.",
        checks.rademacher,
    ),
    (
        "Section 6.2, the estimator of SintCE: notation",
        "(y_ℓ − f_ℓ) 1(f_ℓ ∈ I).",
        "(y_ℓ − v_ℓ) 1(v_ℓ ∈ I): the sample consists of pairs (v_ℓ, y_ℓ).",
        "Read so, the estimator gives SintCE.",
        checks.surrogate_name,
    ),
    (
        "Section C.2, approximation in the Gaussian space: the norm",
        "‖w̃‖ ≤ exp(−ε⁻⁴).",
        "exp(+ε⁻⁴), up to constants: the norm grows as ε shrinks.",
        "Whatever is within ε of the constant 1 has norm at least 1 − ε.",
        checks.gaussian_norm,
    ),
    (
        "Section C.2, the same proof: the cut-off frequency",
        "ω₀ = ε².",
        "ω₀ of order ε⁻², for example 36 ε⁻²: the error bound 6/√ω₀ must be at most ε.",
        "Both put into the proof's bound.",
        checks.cutoff,
    ),
    (
        "Section C, the Gaussian kernel: the weight of its space",
        "∫ ĥ(ω)² exp(ω²) dω for the kernel exp(−(u − v)²).",
        "The weight is exp(ω²/4), up to normalisation.",
        "The kernel of a weight is the Fourier transform of its inverse; here at distance 1.",
        checks.gaussian_weight,
    ),
    (
        "Section C.1, the Gaussian lower bound: Cauchy–Schwarz",
        "∫ a b ≤ (∫ a²)(∫ b²).",
        "(∫ a²)^½ (∫ b²)^½.",
        "A function with a small integral of its square.",
        checks.roots,
    ),
    (
        "Section C.1 and 8.2, the Gaussian lower bound: the rate",
        "kCE ≤ O(exp(−1/ε)) for the instance with parameter ε.",
        (
            "exp(−Ω(1/ε)). Cutting the residual off at ¼ and ¾ alone leaves about exp(−1/(16ε)); "
            "the theorem holds with ε/16 or less in place of ε in the instance."
        ),
        "The exponent, computed, is well below 1 and falls towards 1/16.",
        checks.gaussian_rate,
    ),
    (
        "Section 8.2, proof of the theorem on the Laplace kernel: first line",
        "smCE ≤ kCE.",
        "smCE ≤ 3 kCE, as the theorem and the rest of the proof say.",
        "Two underestimates of the same size, at 0 and 0.8.",
        checks.smooth_above_kernel,
    ),
    (
        "Sections 4.1 and B.1: soundness for completeness",
        "μ(g) = 0 for a calibrated g “by soundness”; robust soundness makes μ(fₙ) → 0 as fₙ → g.",
        "By completeness, and by robust completeness.",
        (
            "A measure that is complete but not sound obeys the lemma all the same: it is 0 for "
            "two flipped points, so at most dCE."
        ),
        checks.completeness,
    ),
    (
        "Section B.2, discontinuity of intCE: one distribution",
        "A fixed distribution D; the table's E[y|x] depend on ε.",
        "Take E[y|x] at ε = 0. Then intCE(f₂) is still at most β, and the lemma holds.",
        "The instance with its distribution kept fixed.",
        checks.fixed_distribution,
    ),
)
