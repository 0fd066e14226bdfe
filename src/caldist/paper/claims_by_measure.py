"""What is claimed of each measure: its lines in the table of properties."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from caldist.data.joint import Joint
from caldist.kernels.loader import COMPILED
from caldist.measures.binned_ece import binned_ece
from caldist.measures.brier_score import brier_score
from caldist.measures.ecce_mad import ecce_mad
from caldist.measures.ece import ece
from caldist.measures.interval_ce import interval_ce
from caldist.measures.kernel_ce import kernel_ce
from caldist.measures.log_loss import log_loss
from caldist.measures.lower_distance import lower_distance
from caldist.measures.mmce import mmce
from caldist.measures.normalized_cross_entropy import normalized_cross_entropy
from caldist.measures.post_processing_gap import post_processing_gap
from caldist.measures.random_interval_ce import random_interval_ce
from caldist.measures.smooth_ce import smooth_ce
from caldist.measures.surrogate_interval_ce import surrogate_interval_ce
from caldist.measures.true_distance import true_distance_bounds
from caldist.measures.upper_distance import certify_upper, upper_distance
from caldist.measures.weighted_ce import weighted_ce
from caldist.paper import claims, evidence, witnesses
from caldist.paper.claims import Entry
from caldist.paper.witnesses import Domain

Entries = Iterator[Entry]


def _binned_ece() -> Entries:
    edge = "The binned error jumps as ½ ± ε leaves one bin for two."
    cancel = claims.blind(
        "Two predictions in one bin with opposite errors.", witnesses.cancelling_bin()
    )
    yield claims.Entry(
        claims.of_joints("binned_ece (20 bins)", binned_ece),
        claims.refuted(
            f"{edge} With 20 bins ½ is an edge, with 21 it is not, so the value is ½ or 0 by the "
            "parity of the number of bins.",
            evidence.parity,
            odd=claims.of_joints("21 bins", binned_ece.using(n_bins=21)),
            limit=witnesses.two_points(0),
            near=claims.TWO_POINTS,
        ),
        claims.complete(),
        cancel,
        claims.NOT_NEAR_CALIBRATED,
        cancel,
        paper=(False, True, False),
    )
    yield claims.Entry(
        claims.of_joints("binned_ece + width (20 bins)", binned_ece.using(add_width=True)),
        claims.jump_at_two_points(edge),
        claims.positive("The width is added even where the binned error is 0."),
        claims.sound("From its being at least udCE."),
        claims.positive(),
        claims.below("1", "binnedECE + average width ≥ udCE ≥ dCE (sections 2 and 6).", 1),
    )


def _brier_score() -> Entries:
    yield claims.Entry(
        claims.of_joints("brier_score", brier_score),
        claims.modulus("2-Lipschitz: from |(y - u)² - (y - v)²| ≤ 2|u - v|.", 2),
        claims.positive("A fair coin, predicted as such (section 3)."),
        claims.sound("From Brier ≥ ECE²."),
        claims.positive(),
        claims.below("2", "From Brier ≥ (E|y - v|)² ≥ ECE² ≥ dCE².", 1),
        paper=(True, False, True),
    )


def _ecce_mad() -> Entries:
    yield claims.Entry(
        claims.of_joints("ecce_mad", ecce_mad),
        claims.jump_at_two_points(
            "½ ± ε with labels 0 and 1 (section 4): about ¼ for every ε > 0, and 0 at ε = 0."
        ),
        claims.complete(),
        claims.sound("S = 0 everywhere only if every residual is 0."),
        claims.NOT_NEAR_CALIBRATED,
        claims.below("2", "From smCE ≤ |S(1)| + ∫|S| ≤ 2 max|S|, then as for smCE.", 1 / 64),
        paper=(False, True, True),
    )


def _ece() -> Entries:
    for name, norm, reason in (
        ("ece", 1, "ECE ≥ dCE: recalibrate each level set (section 4)."),
        ("ece (norm 2)", 2, "ℓ2-ECE ≥ ECE (Jensen) and ECE ≥ dCE (section 4)."),
    ):
        yield claims.Entry(
            claims.of_joints(name, ece.using(norm=norm)),
            claims.jump_at_two_points(
                "½ ± ε with labels 0 and 1 (section 4): ½ - ε for every ε > 0, and 0 at ε = 0."
            ),
            claims.complete(),
            claims.sound("From its being at least dCE."),
            claims.NOT_NEAR_CALIBRATED,
            claims.below("1", reason, 1),
            paper=(False, True, True),
        )


def _interval_ce() -> Entries:
    yield claims.Entry(
        claims.of_joints("interval_ce", interval_ce),
        claims.jump(
            "Four points, two of them at ½ ± ε, at intCE's discontinuity (section 6); E[y|x] "
            "is held fixed.",
            witnesses.interval_jump(0),
            tuple(witnesses.interval_jump(eps) for eps in (1e-3, 1e-5, 1e-7)),
        ),
        claims.complete("Calibrated predictions have error 0 in bins of any width, however small."),
        claims.sound("From intCE ≥ udCE."),
        claims.above("1/2", "intCE ≤ 4√ldCE (section 6).", 4),
        claims.below("1", "intCE ≥ udCE ≥ dCE (section 6).", 1),
        cost=claims.cost("O(n log² n)", "A sort, a multi-level search, and an exact fallback."),
    )


def _kernel_ce() -> Entries:
    of_laplace, of_gaussian = math.sqrt(8), 1 + math.sqrt(2)
    yield claims.Entry(
        claims.of_joints("kernel_ce (Laplace)", kernel_ce),
        claims.modulus("It moves by at most 2√(2 E|f - g|) (section 8).", of_laplace, 0.5),
        claims.complete(),
        claims.sound("From kCE ≥ ⅓ smCE."),
        claims.above(
            "1/2", "kCE ≤ 2√(2 ldCE): the constant that section 8 proves; it states 1.", of_laplace
        ),
        claims.below("2", "kCE ≥ ⅓ smCE (section 8), smCE ≥ ½ ldCE and dCE ≤ 4√ldCE.", 1 / 96),
        paper=(True, True, True),
    )
    yield claims.Entry(
        claims.of_joints("kernel_ce (Gaussian)", kernel_ce.using(kernel="gaussian")),
        claims.modulus(
            "(1 + √2)-Lipschitz: from ‖φ(u) - φ(v)‖ ≤ √2|u - v|. Appendix C states O(√E|f - g|).",
            of_gaussian,
        ),
        claims.complete(),
        claims.sound("kCE ≥ exp(-O(smCE^-4)) > 0 (appendix C)."),
        claims.above(
            "1",
            "From its being (1 + √2)-Lipschitz in every coupling, ldCE's included.",
            of_gaussian,
        ),
        claims.refuted(
            "Exponentially small at polynomially large smCE (section 8, appendix C).",
            evidence.vanishes,
        ),
    )


def _log_loss() -> Entries:
    yield claims.Entry(
        claims.of_joints("log_loss", log_loss),
        claims.jump(
            "Unbounded: on a domain of masses ½, ¼, … there are, arbitrarily near the constant "
            "½, predictors that are certain and wrong on a rare x, with infinite loss. It is "
            "continuous for predictions kept away from 0 and 1 and, with infinity as a value, "
            "on a finite domain.",
            witnesses.rare_certainty(None),
            tuple(witnesses.rare_certainty(rank) for rank in (10, 20, 30)),
        ),
        claims.positive("A fair coin, predicted as such (section 3)."),
        claims.sound("From log loss ≥ ECE."),
        claims.positive(),
        claims.below("1", "From -ln(1 - x) ≥ x: log loss ≥ E|y - v| ≥ ECE ≥ dCE.", 1),
        paper=(True, False, True),
    )


def _lower_distance() -> Entries:
    tol = 1e-5 if COMPILED else 1e-4  # plain kernels need seconds for less
    yield claims.Entry(
        claims.of_joints("lower_distance", lower_distance.using(tol=tol), tol),
        claims.modulus("1-Lipschitz: from its definition, by composing couplings.", 1),
        claims.complete("A calibrated predictor is at distance 0 from itself."),
        claims.sound("From dCE ≤ 4√ldCE."),
        claims.above("1", "ldCE ≤ dCE (section 5).", 1),
        claims.below("2", "dCE ≤ 4√ldCE (section 6).", 1 / 16),
        cost=claims.cost(
            "O(n log n) and a solver",
            "A sort, and an interior-point solver whose size depends on the tolerance only.",
        ),
    )


def _mmce() -> Entries:
    cancel = claims.blind(
        "Errors at v and 1 - v share one confidence and cancel.", witnesses.cancelling_sides()
    )
    yield claims.Entry(
        claims.of_joints("mmce", mmce),
        claims.jump_at_two_points(
            "½ ± ε with labels 0 and 1 (section 4): both confidences are ½ + ε and both labels "
            "right, so ½ - ε for every ε > 0, and 0 at ε = 0."
        ),
        claims.complete("The confidence of calibrated predictions is calibrated."),
        cancel,
        claims.NOT_NEAR_CALIBRATED,
        cancel,
    )


def _unexplained(joint: Joint) -> float:
    return 1 - normalized_cross_entropy(joint)


def _normalized_cross_entropy() -> Entries:
    subject = claims.of_joints("1 - normalized_cross_entropy", _unexplained)
    sound = claims.sound("From its being at least the log loss.")
    lower = claims.below("1", "From the log loss, divided by an entropy of at most ln 2.", 1)
    for entry in _log_loss():
        yield replace(entry, subject=subject, sound=sound, lower=lower)


def _post_processing_gap() -> Entries:
    yield claims.Entry(
        claims.of_joints("post_processing_gap", post_processing_gap),
        claims.modulus("From slopes of (y - v)² - (y - κ(v))², which are at most 4.", 4),
        claims.complete("Where E[y|v] = v, no map lowers the mean squared error."),
        claims.sound("From pGap ≥ smCE²."),
        claims.above("1", "From pGap ≤ 2 smCE and smCE ≤ 2 dCE.", 4),
        claims.below("4", "From pGap ≥ smCE² and smCE ≥ dCE²/32.", 1 / 1024),
        cost=claims.cost("O(n√n)", "A sort, a pass forward and one back; as a rule about a sort."),
    )


def _random_interval_ce() -> Entries:
    yield claims.Entry(
        claims.of_joints("random_interval_ce (width 0.1)", random_interval_ce),
        claims.modulus("(1 + 2/ε)-Lipschitz: from the proof of RintCE ≤ (1 + 2/ε) ldCE.", 21),
        claims.complete(),
        claims.sound("From smCE ≤ 2 RintCE."),
        claims.above("1", "RintCE(ε) ≤ (1 + 2/ε) ldCE (section 6).", 21),
        claims.below(
            "2",
            "From smCE ≤ |S(1)| + ∫|S| and S(t) being a sum of at most 1/ε windows of "
            "width ε, for whole 1/ε: smCE ≤ 2 RintCE(ε), then as for smCE. The constant "
            "above grows as 1/ε.",
            1 / 64,
        ),
    )
    yield claims.Entry(
        claims.of_joints(
            "random_interval_ce + width 0.1", random_interval_ce.using(add_width=True)
        ),
        claims.modulus("(1 + 2/ε)-Lipschitz, as without the width.", 21),
        claims.positive("The width is added even where the binned error is 0."),
        claims.sound("From its being at least intCE."),
        claims.positive(),
        claims.below("1", "RintCE(ε) + ε ≥ intCE ≥ dCE (section 6).", 1),
    )


def _smooth_ce() -> Entries:
    yield claims.Entry(
        claims.of_joints("smooth_ce", smooth_ce),
        claims.modulus("2-Lipschitz (section 7).", 2),
        claims.complete(),
        claims.sound("From smCE ≥ ½ ldCE."),
        claims.above("1", "smCE ≤ 2 ldCE ≤ 2 dCE (section 7).", 2),
        claims.below("2", "smCE ≥ ½ ldCE (section 7) and dCE ≤ 4√ldCE (section 6).", 1 / 32),
        paper=(True, True, True),
    )


def _surrogate_interval_ce() -> Entries:
    yield claims.Entry(
        claims.of_joints("surrogate_interval_ce", surrogate_interval_ce),
        claims.modulus(
            "From RintCE(ε) being (1 + 2/ε)-Lipschitz and monotone over dyadic ε "
            "(section 6): it moves by at most 6√E|f - g|.",
            6,
            0.5,
        ),
        claims.complete("Calibrated predictions have error 0 in bins of any width, however small."),
        claims.sound("From SintCE ≥ udCE."),
        claims.above("1/2", "SintCE ≤ 6√ldCE (section 6).", 6),
        claims.below("1", "SintCE ≥ intCE ≥ udCE ≥ dCE (section 6).", 1),
        cost=claims.cost("O(n log n)", "A sort and a pass for each of about six dyadic widths."),
    )


def _enclose_true(domain: Domain) -> tuple[float, float]:
    bounds = true_distance_bounds(domain.y_mean, domain.y_prob, mass=domain.mass)
    return bounds.lower, bounds.upper


def _true_distance() -> Entries:
    yield claims.Entry(
        claims.Subject("true_distance", witnesses.Domain.distance),
        claims.modulus("1-Lipschitz: the triangle inequality (section 4).", 1),
        claims.complete("A calibrated predictor is at distance 0 from itself."),
        claims.sound("0 is attained only by a calibrated predictor."),
        claims.above("1", "It is dCE.", 1),
        claims.below("1", "It is dCE.", 1),
        cost=claims.np_hard(_enclose_true),
        access=claims.refuted(
            "Two domains with the same predictions and labels have distances 4α² and α (section 4; "
            "the paper prints 2α²).",
            evidence.needs_domain,
        ),
    )


def _enclose_upper(domain: Domain) -> tuple[float, float]:
    proof = certify_upper(domain.joint, tol=1e-3)
    return (proof.value if proof.exact else proof.lower), proof.upper


def _upper_distance() -> Entries:
    yield claims.Entry(
        claims.of_joints("upper_distance", upper_distance),
        claims.jump(
            "The quadratic gap's predictor, its rare predictions moved by β: equal predictions "
            "come apart, and a map may treat them differently.",
            witnesses.tight_gap(0.1, 0),
            tuple(witnesses.tight_gap(0.1, beta) for beta in (1e-2, 1e-4, 1e-6)),
        ),
        claims.complete("A calibrated predictor is at distance 0 from itself."),
        claims.sound("From udCE ≥ dCE."),
        claims.above("1/2", "udCE ≤ 4√dCE (section 6).", 4),
        claims.below("1", "udCE ≥ dCE (section 5).", 1),
        cost=claims.np_hard(_enclose_upper),
    )


def _weighted_ce() -> Entries:
    cancel = claims.blind(
        "Four equally spaced predictions with errors in proportion 1, -3, 3, -1.",
        witnesses.cancelling_cubic(),
    )
    yield claims.Entry(
        claims.of_joints("weighted_ce (degree 2)", weighted_ce.shown),
        claims.modulus("3-Lipschitz: from |w| ≤ 1 and |w'| ≤ 2.", 3),
        claims.complete(),
        cancel,
        claims.above("1", "From its being 3-Lipschitz in every coupling, ldCE's included.", 3),
        cancel,
    )


# By the name of the measure; the true distance is no measure of predictions and labels.
CLAIMS: Mapping[str, Callable[[], Entries]] = {
    "binned_ece": _binned_ece,
    "brier_score": _brier_score,
    "ecce_mad": _ecce_mad,
    "ece": _ece,
    "interval_ce": _interval_ce,
    "kernel_ce": _kernel_ce,
    "log_loss": _log_loss,
    "lower_distance": _lower_distance,
    "mmce": _mmce,
    "normalized_cross_entropy": _normalized_cross_entropy,
    "post_processing_gap": _post_processing_gap,
    "random_interval_ce": _random_interval_ce,
    "smooth_ce": _smooth_ce,
    "surrogate_interval_ce": _surrogate_interval_ce,
    "true_distance": _true_distance,
    "upper_distance": _upper_distance,
    "weighted_ce": _weighted_ce,
}
