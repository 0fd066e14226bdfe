"""The measures, what is known of each, and why.

Sections are those of the paper. "From" marks what follows from its statements but is not among
them. dCE is the true distance to calibration, c a residual E[(y - v) 1(v = t)], S its prefix sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from caldist._kernels import COMPILED
from caldist._properties import evidence, witnesses
from caldist._properties.claims import (
    TWO_POINTS,
    Claim,
    above,
    below,
    blind,
    complete,
    jump,
    jump_at_two_points,
    modulus,
    not_near_calibrated,
    positive,
    sound,
    together,
)
from caldist._properties.evidence import Subject, of_joints
from caldist._properties.table import COLUMNS, Property
from caldist._properties.witnesses import Domain
from caldist.data.joint import Joint
from caldist.measures.binned_ece import binned_ece_of
from caldist.measures.brier_score import brier_score_of
from caldist.measures.ecce_mad import ecce_mad_of
from caldist.measures.ece import ece_of
from caldist.measures.interval_ce import interval_ce_of
from caldist.measures.kernel_ce import kernel_ce_of
from caldist.measures.log_loss import log_loss_of
from caldist.measures.lower_distance import lower_distance_of
from caldist.measures.mmce import mmce_of
from caldist.measures.normalized_cross_entropy import normalized_cross_entropy_of
from caldist.measures.random_interval_ce import random_interval_ce_of
from caldist.measures.smooth_ce import smooth_ce_of
from caldist.measures.surrogate_interval_ce import surrogate_interval_ce_of
from caldist.measures.true_distance import true_distance_bounds
from caldist.measures.upper_distance import certify_upper, upper_distance_of
from caldist.measures.weighted_ce import weighted_ce_of
from caldist.weights import polynomials

__all__ = ["cells"]

_TOL = 1e-5 if COMPILED else 1e-4  # of the lower distance: plain kernels need seconds for less

_PREDICTIONS = Claim(
    True, "A function of the joint distribution of prediction and label.", "computation",
    evidence.predictions_suffice,
)  # fmt: skip
_RESIDUALS = complete("Calibrated predictions have E[y - v|v] = 0, so every sum is 0.")
_FINEST = complete("Calibrated predictions have error 0 in bins of any width, however small.")
_AT_ITSELF = complete("A calibrated predictor is at distance 0 from itself.")
_EDGE = "The binned error jumps as ½ ± ε leaves one bin for two."
_STAYS = "dCE ≤ ε at ½ ± ε with labels 0 and 1, while the value does not go to 0 (section 4)."
_LOSS_JUMP = jump(
    "Unbounded: on a domain of masses ½, ¼, … there are, arbitrarily near the constant ½, "
    "predictors that are certain and wrong on a rare x, with infinite loss. It is continuous for "
    "predictions kept away from 0 and 1 and, with infinity as a value, on a finite domain.",
    witnesses.rare_certainty(None),
    tuple(witnesses.rare_certainty(rank) for rank in (10, 20, 30)),
)
_WIDTH_TAX = "The width is added even where the binned error is 0."
_CALIBRATED = "A calibrated predictor has a positive value."


def _cost(text: str, reason: str) -> Claim:
    return Claim(text, reason, "computation", evidence.runs)


_SORT = _cost("O(n log n)", "A sort and one pass.")


@dataclass(frozen=True)
class _Entry:
    """A line of the table; ``paper`` is Table 1's: continuous, complete, sound."""

    subject: Subject
    continuous: Claim
    complete: Claim
    sound: Claim
    upper: Claim
    lower: Claim
    cost: Claim = _SORT
    access: Claim = _PREDICTIONS
    paper: tuple[bool, bool, bool] | None = None

    def cells(self) -> list[Property]:
        claims = (
            self.continuous, self.complete, self.sound, self.upper, self.lower,
            together(self.upper, self.lower), self.access, self.cost,
        )  # fmt: skip
        marks = (*(self.paper or (None,) * 3), *(None,) * 5)
        return [
            Property(
                self.subject.name, column, claim.holds, claim.reason, claim.kind,
                partial(claim.show, self.subject), mark,
            )
            for column, claim, mark in zip(COLUMNS, claims, marks, strict=True)
        ]  # fmt: skip


def _distances() -> list[_Entry]:
    def enclose_true(domain: Domain) -> tuple[float, float]:
        bounds = true_distance_bounds(domain.y_mean, domain.y_prob, mass=domain.mass)
        return bounds.lower, bounds.upper

    def enclose_upper(domain: Domain) -> tuple[float, float]:
        proof = certify_upper(domain.joint(), tol=1e-3)
        return (proof.value if proof.exact else proof.lower), proof.upper

    hard = "NP-hard in general; exact up to 17 points, proved bounds beyond."
    return [
        _Entry(
            Subject("true_distance", Domain.distance),
            modulus("1-Lipschitz: the triangle inequality (section 4).", 1),
            _AT_ITSELF,
            sound("0 is attained only by a calibrated predictor."),
            above("1", "It is dCE.", 1),
            below("1", "It is dCE.", 1),
            Claim("NP-hard", hard, "computation",
                  lambda _: evidence.only_bounded(enclose_true)),
            Claim(False, "Two domains with the same predictions and labels have distances 4α² and "
                  "α (section 4; the paper prints 2α²).", "counter-example",
                  evidence.needs_domain),
        ),
        _Entry(
            of_joints("lower_distance", partial(lower_distance_of, tol=_TOL), _TOL),
            modulus("1-Lipschitz: from its definition, by composing couplings.", 1),
            _AT_ITSELF,
            sound("From dCE ≤ 4√ldCE."),
            above("1", "ldCE ≤ dCE (section 5).", 1),
            below("2", "dCE ≤ 4√ldCE (section 6).", 1 / 16),
            _cost("O(n log n) and a solver",
                  "A sort, and an interior-point solver whose size depends on the tolerance only."),
        ),
        _Entry(
            of_joints("upper_distance", upper_distance_of),
            jump("The quadratic gap's predictor, its rare predictions moved by β: equal "
                 "predictions come apart, and a map may treat them differently.",
                 witnesses.tight_gap(0.1, 0),
                 tuple(witnesses.tight_gap(0.1, beta) for beta in (1e-2, 1e-4, 1e-6))),
            _AT_ITSELF,
            sound("From udCE ≥ dCE."),
            above("1/2", "udCE ≤ 4√dCE (section 6).", 4),
            below("1", "udCE ≥ dCE (section 5).", 1),
            Claim("NP-hard", hard, "computation",
                  lambda _: evidence.only_bounded(enclose_upper)),
        ),
    ]  # fmt: skip


def _consistent() -> list[_Entry]:
    return [
        _Entry(
            of_joints("smooth_ce", smooth_ce_of),
            modulus("2-Lipschitz (section 7).", 2),
            _RESIDUALS,
            sound("From smCE ≥ ½ ldCE."),
            above("1", "smCE ≤ 2 ldCE ≤ 2 dCE (section 7).", 2),
            below("2", "smCE ≥ ½ ldCE (section 7) and dCE ≤ 4√ldCE (section 6).", 1 / 32),
            paper=(True, True, True),
        ),
        _Entry(
            of_joints("kernel_ce (Laplace)", kernel_ce_of),
            modulus("It moves by at most 2√(2 E|f - g|) (section 8).", math.sqrt(8), 0.5),
            _RESIDUALS,
            sound("From kCE ≥ ⅓ smCE."),
            above("1/2", "kCE ≤ 2√(2 ldCE): the constant that section 8 proves; it states 1.",
                  math.sqrt(8)),
            below("2", "kCE ≥ ⅓ smCE (section 8), smCE ≥ ½ ldCE and dCE ≤ 4√ldCE.", 1 / 96),
            paper=(True, True, True),
        ),
        _Entry(
            of_joints("interval_ce", interval_ce_of),
            jump("Four points, two of them at ½ ± ε, at intCE's discontinuity (section 6); E[y|x] "
                 "is held fixed.", witnesses.interval_jump(0),
                 tuple(witnesses.interval_jump(eps) for eps in (1e-3, 1e-5, 1e-7))),
            _FINEST,
            sound("From intCE ≥ udCE."),
            above("1/2", "intCE ≤ 4√ldCE (section 6).", 4),
            below("1", "intCE ≥ udCE ≥ dCE (section 6).", 1),
            _cost("O(n log² n)", "A sort, a multi-level search, and an exact fallback."),
        ),
        _Entry(
            of_joints("surrogate_interval_ce", surrogate_interval_ce_of),
            modulus("From RintCE(ε) being (1 + 2/ε)-Lipschitz and monotone over dyadic ε "
                    "(section 6): it moves by at most 6√E|f - g|.", 6, 0.5),
            _FINEST,
            sound("From SintCE ≥ udCE."),
            above("1/2", "SintCE ≤ 6√ldCE (section 6).", 6),
            below("1", "SintCE ≥ intCE ≥ udCE ≥ dCE (section 6).", 1),
            _cost("O(n log n)", "A sort and one pass for each dyadic width, about a dozen."),
        ),
        _Entry(
            of_joints("random_interval_ce (width 0.1)", random_interval_ce_of),
            modulus("(1 + 2/ε)-Lipschitz: from the proof of RintCE ≤ (1 + 2/ε) ldCE.", 21),
            _RESIDUALS,
            sound("From smCE ≤ 2 RintCE."),
            above("1", "RintCE(ε) ≤ (1 + 2/ε) ldCE (section 6).", 21),
            below("2", "From smCE ≤ |S(1)| + ∫|S| and S(t) being a sum of at most 1/ε windows of "
                  "width ε, for whole 1/ε: smCE ≤ 2 RintCE(ε), then as for smCE. The constant "
                  "above grows as 1/ε.", 1 / 64),
        ),
    ]  # fmt: skip


def _scores() -> list[_Entry]:
    def nce_error(joint: Joint) -> float:
        return 1 - normalized_cross_entropy_of(joint)

    return [
        _Entry(
            of_joints("brier_score", brier_score_of),
            modulus("2-Lipschitz: from |(y - u)² - (y - v)²| ≤ 2|u - v|.", 2),
            positive("A fair coin, predicted as such (section 3)."),
            sound("From Brier ≥ ECE²."),
            positive(_CALIBRATED),
            below("2", "From Brier ≥ (E|y - v|)² ≥ ECE² ≥ dCE².", 1),
            paper=(True, False, True),
        ),
        _Entry(
            of_joints("log_loss", log_loss_of),
            _LOSS_JUMP,
            positive("A fair coin, predicted as such (section 3)."),
            sound("From log loss ≥ ECE."),
            positive(_CALIBRATED),
            below("1", "From -ln(1 - x) ≥ x: log loss ≥ E|y - v| ≥ ECE ≥ dCE.", 1),
            paper=(True, False, True),
        ),
        _Entry(
            of_joints("1 - normalized_cross_entropy", nce_error),
            _LOSS_JUMP,
            positive("A fair coin, predicted as such (section 3)."),
            sound("From its being at least the log loss."),
            positive(_CALIBRATED),
            below("1", "From the log loss, divided by an entropy of at most ln 2.", 1),
            paper=(True, False, True),
        ),
    ]


def _binned() -> list[_Entry]:
    odd = of_joints("21 bins", partial(binned_ece_of, n_bins=21))
    bins_jump = Claim(
        False, f"{_EDGE} With 20 bins ½ is an edge, with 21 it is not, so the value is ½ or 0 by "
        "the parity of the number of bins.", "counter-example",
        partial(evidence.parity, odd=odd, limit=witnesses.two_points(0), near=TWO_POINTS),
    )  # fmt: skip
    cancel = "Two predictions in one bin with opposite errors."
    return [
        _Entry(
            of_joints("binned_ece (20 bins)", binned_ece_of),
            bins_jump,
            _RESIDUALS,
            blind(cancel, witnesses.cancelling_bin()),
            not_near_calibrated(_STAYS),
            blind(cancel, witnesses.cancelling_bin()),
            paper=(False, True, False),
        ),
        _Entry(
            of_joints("binned_ece + width (20 bins)", partial(binned_ece_of, add_width=True)),
            jump_at_two_points(_EDGE),
            positive(_WIDTH_TAX),
            sound("From its being at least udCE."),
            positive(_CALIBRATED),
            below("1", "binnedECE + average width ≥ udCE ≥ dCE (sections 2 and 6).", 1),
        ),
        _Entry(
            of_joints("random_interval_ce + width 0.1",
                      partial(random_interval_ce_of, add_width=True)),
            modulus("(1 + 2/ε)-Lipschitz, as without the width.", 21),
            positive(_WIDTH_TAX),
            sound("From its being at least intCE."),
            positive(_CALIBRATED),
            below("1", "RintCE(ε) + ε ≥ intCE ≥ dCE (section 6).", 1),
        ),
    ]  # fmt: skip


def _others() -> list[_Entry]:
    low_degree = partial(weighted_ce_of, functions=polynomials(2))
    cubic = "Four equally spaced predictions with errors in proportion 1, -3, 3, -1."
    sides = "Errors at v and 1 - v share one confidence and cancel."
    two = "½ ± ε with labels 0 and 1 (section 4)"
    gauss = 1 + math.sqrt(2)
    ece_rows = [
        _Entry(
            of_joints(name, partial(ece_of, norm=norm)),
            jump_at_two_points(f"{two}: ½ - ε for every ε > 0, and 0 at ε = 0."),
            _RESIDUALS,
            sound("From its being at least dCE."),
            not_near_calibrated(_STAYS),
            below("1", reason, 1),
            paper=(False, True, True),
        )
        for name, norm, reason in (
            ("ece", 1, "ECE ≥ dCE: recalibrate each level set (section 4)."),
            ("ece (norm 2)", 2, "ℓ2-ECE ≥ ECE (Jensen) and ECE ≥ dCE (section 4)."),
        )
    ]
    return [
        *ece_rows,
        *_binned(),
        _Entry(
            of_joints("ecce_mad", ecce_mad_of),
            jump_at_two_points(f"{two}: about ¼ for every ε > 0, and 0 at ε = 0."),
            _RESIDUALS,
            sound("S = 0 everywhere only if every residual is 0."),
            not_near_calibrated(_STAYS),
            below("2", "From smCE ≤ |S(1)| + ∫|S| ≤ 2 max|S|, then as for smCE.", 1 / 64),
            paper=(False, True, True),
        ),
        _Entry(
            of_joints("mmce", mmce_of),
            jump_at_two_points(f"{two}: both confidences are ½ + ε and both labels right, so "
                               "½ - ε for every ε > 0, and 0 at ε = 0."),
            complete("The confidence of calibrated predictions is calibrated."),
            blind(sides, witnesses.cancelling_sides()),
            not_near_calibrated(_STAYS),
            blind(sides, witnesses.cancelling_sides()),
        ),
        _Entry(
            of_joints("kernel_ce (Gaussian)", partial(kernel_ce_of, kernel="gaussian")),
            modulus("(1 + √2)-Lipschitz: from ‖φ(u) - φ(v)‖ ≤ √2|u - v|. Appendix C states "
                    "O(√E|f - g|).", gauss),
            _RESIDUALS,
            sound("kCE ≥ exp(-O(smCE^-4)) > 0 (appendix C)."),
            above("1", "From its being (1 + √2)-Lipschitz in every coupling, ldCE's included.",
                  gauss),
            Claim(False, "Exponentially small at polynomially large smCE (section 8, appendix C).",
                  "counter-example", evidence.vanishes),
        ),
        _Entry(
            of_joints("weighted_ce (degree 2)", low_degree),
            modulus("3-Lipschitz: from |w| ≤ 1 and |w'| ≤ 2.", 3),
            _RESIDUALS,
            blind(cubic, witnesses.cancelling_cubic()),
            above("1", "From its being 3-Lipschitz in every coupling, ldCE's included.", 3),
            blind(cubic, witnesses.cancelling_cubic()),
        ),
        *_scores(),
    ]  # fmt: skip


def cells() -> tuple[Property, ...]:
    """Return all cells, measure by measure."""
    entries = [*_distances(), *_consistent(), *_others()]
    return tuple(cell for entry in entries for cell in entry.cells())
