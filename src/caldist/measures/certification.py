"""Values with proofs, and the bracket that the paper is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from caldist._util.numbers import least, most
from caldist._util.results import Result
from caldist.certificates import JointCertificate
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, answering
from caldist.measures.base import Measure
from caldist.measures.lower_distance import TOLERANCE, certify_lower, lower_distance
from caldist.measures.registry import all_measures, find

DISTANCE = "distance"  # what the distance to calibration is called where measures have names


@answering
def certify(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    measure: str | Measure[Any] = "lower_distance",
    tol: float = TOLERANCE,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    progress: bool = False,
) -> JointCertificate:
    """Return a measure's value with bounds and a proof that anyone can re-check.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    measure : "lower_distance", "smooth_ce", "upper_distance" or "post_processing_gap"
        The proof of ``lower_distance`` is a pair of dual potentials and a calibrated distribution;
        that of ``smooth_ce`` a Lipschitz witness and a monotone curve; that of ``upper_distance`` a
        map to calibrated predictions, with the dual potentials below; that of
        ``post_processing_gap`` the best map with bounded slopes.
    tol : float
        How far apart the bounds of the lower distance may be. Where that cannot be reached, the
        certificate is valid all the same and its ``gap`` is larger.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    caldist.certificates.JointCertificate
        With ``value``, ``lower``, ``upper``, ``gap``, the distribution and the proof arrays. Its
        method ``verify()`` checks them with code of its own and raises ``CertificateError`` if
        they do not hold.

    Examples
    --------
    >>> import caldist
    >>> proof = caldist.certify([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75], measure="smooth_ce")
    >>> proof.verify()
    <SmoothCertificate: smooth_ce is 0.03125, at least 0.03125, at most 0.03125, of 4 rows>
    >>> proof.value, proof.witness([0.25, 0.75]).tolist()
    (0.03125, [-0.5, 0.0])
    """
    chosen = find(measure, among=[m.name for m in all_measures().values() if m.facts.certify])
    if chosen.facts.certify is None:
        able = ", ".join(m.name for m in all_measures().values() if m.facts.certify)
        reason, remedy = "no proof of this measure is known", f"Use one of {able}."
        raise InvalidInput(argument="measure", value=chosen.name, reason=reason, remedy=remedy)
    tol = validate.check_positive("tol", tol)
    progress = validate.check_flag("progress", progress)
    joint = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label).joint
    return chosen.facts.certify(joint, **{"tol": tol, "progress": progress, **chosen.options})


@dataclass(frozen=True)
class DistanceBracket(Result):
    """Certain bounds on the distance to calibration of the rows, and what proves each.

    Attributes
    ----------
    lower, upper
        The bounds.
    lower_measure, upper_measure
        The measure, or the coupling, that proves each.
    measure
        "distance" where both hold whatever is behind the predictions; "lower_distance" where they
        are bounds on the least distance that the rows allow, as those of several classes.
    rounding
        How far predictions were rounded, on average at most; the bounds allow for it.
    """

    lower: float
    upper: float
    lower_measure: str
    upper_measure: str
    measure: str = field(default=DISTANCE, kw_only=True)
    rounding: float = field(default=0.0, kw_only=True)

    def __str__(self) -> str:
        ends = f"is at least {least(self.lower)} and at most {most(self.upper)}"
        if self.measure != DISTANCE:
            return (
                f"The least distance to calibration that these rows allow {ends}, in total "
                "variation."
            )
        return (
            f"The distance to calibration of these rows {ends}, whatever is behind the "
            f"predictions.{rounding_in_words(self.rounding)}"
        )


def rounding_in_words(rounding: float | None) -> str:
    """Say that bounds of the distance allow for rounded predictions; nothing of exact ones."""
    if not rounding:
        return ""
    return f" This allows for their rounding, by {most(rounding, 2)} on average at most."


@answering
def distance_bracket(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    tol: float = TOLERANCE,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> DistanceBracket:
    """Return bounds on the distance to calibration, knowing predictions and labels only.

    **What it means.** Every domain and predictor with these predictions and labels has a true
    distance to calibration between ``lower`` and ``upper``, and without knowing the domain no
    smaller interval is certain, up to the tolerance of the lower end and the optimality of the
    upper one.

    **What it estimates.** Nothing: both ends describe the rows that are given. Limits for the
    population that the rows come from are those of
    ``caldist.confidence_interval(…, measure="distance")``.

    **Cost.** That of :func:`caldist.lower_distance` and :func:`caldist.upper_distance`.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    tol : float
        How precise the lower end shall be.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    Returns
    -------
    DistanceBracket

    Examples
    --------
    >>> import caldist
    >>> bracket = caldist.distance_bracket([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    >>> round(bracket.lower, 5), bracket.upper, bracket.upper_measure
    (0.04167, 0.125, 'upper_distance')
    """
    tol = validate.check_positive("tol", tol)
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return sample_bracket(rows.joint, tol=tol)


def sample_bracket(
    joint: Joint, *, tol: float, known: Mapping[Measure[Any], float] | None = None
) -> DistanceBracket:
    """Return certain bounds on the distance to calibration of the rows behind a joint.

    ``known`` are values of measures on it, which need not be found again.

    Where predictions were rounded, the distance of the unrounded ones is that of the rounded ones
    up to E|v - v'|: the triangle inequality.
    """
    values = {} if known is None else known
    above = {
        measure.name: (values[measure] if measure in values else measure(joint)) + joint.radius
        for measure in all_measures().values()
        if measure.facts.above_distance
    }
    best = min(above, key=lambda name: above[name])
    below = lower_distance.using(tol=tol)
    certain = certify_lower(joint, tol=tol).lower
    if joint.radius > 0:
        ends = below.rounding(joint, certain)
        certain = certain if ends is None else max(0.0, ends[0])
    lower, upper = min(certain, above[best]), above[best]
    return DistanceBracket(lower, upper, below.name, best, rounding=joint.radius)
