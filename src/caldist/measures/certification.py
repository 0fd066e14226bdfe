"""Values with proofs, and the bracket that the paper is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from caldist import _validate
from caldist._kernels import smooth
from caldist.certificates import Certificate, SmoothCertificate
from caldist.data.joint import Joint
from caldist.measures.interval_ce import interval_ce_of
from caldist.measures.lower_distance import TOLERANCE, certify_lower
from caldist.measures.surrogate_interval_ce import surrogate_interval_ce_of
from caldist.measures.upper_distance import certify_upper, upper_distance_of

__all__ = ["DistanceBracket", "certify", "sample_bracket"]

CertifiedMeasure = Literal["lower_distance", "smooth_ce", "upper_distance"]


def certify(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    measure: CertifiedMeasure = "lower_distance",
    tol: float = TOLERANCE,
    sample_weight: ArrayLike | None = None,
    progress: bool = False,
) -> Certificate:
    """Return a measure's value with bounds and a proof that anyone can re-check.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    measure : "lower_distance", "smooth_ce" or "upper_distance"
        The proof of ``lower_distance`` is a pair of dual potentials and a calibrated distribution;
        that of ``smooth_ce`` a Lipschitz witness and a monotone curve; that of ``upper_distance`` a
        map to calibrated predictions, with the dual potentials below.
    tol : float
        How far apart the bounds of the lower distance may be. Where that cannot be reached, the
        certificate is valid all the same and its ``gap`` is larger.
    sample_weight : array-like, optional
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    Certificate
        With ``value``, ``lower``, ``upper``, ``gap``, ``joint`` and the proof arrays. Its method
        ``verify()`` checks them with code of its own and raises ``CertificateError`` if they do
        not hold.

    Examples
    --------
    >>> import caldist
    >>> proof = caldist.certify([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75], measure="smooth_ce")
    >>> proof.verify()
    >>> proof.value, proof.witness([0.25, 0.75]).tolist()
    (0.03125, [-0.5, 0.0])
    """
    _validate.check_choice("measure", measure, ("lower_distance", "smooth_ce", "upper_distance"))
    tol = _validate.check_positive("tol", tol)
    progress = _validate.check_flag("progress", progress)
    joint = Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight)
    if measure == "smooth_ce":
        return certify_smooth(joint)
    if measure == "upper_distance":
        return certify_upper(joint, tol=tol, progress=progress)
    return certify_lower(joint, tol=tol, progress=progress)


def certify_smooth(joint: Joint) -> SmoothCertificate:
    """Prove smCE of a joint distribution."""
    residual = joint.residual()
    curve, height = np.empty_like(residual), np.empty_like(residual)
    value = smooth.smooth_ce(joint.prediction, residual, curve)
    smooth.witness(joint.prediction, residual, curve, height)
    attained = float(residual @ height)
    return SmoothCertificate(
        joint=joint,
        value=value,
        lower=min(attained, value),
        upper=value,
        knot=joint.prediction,
        height=height,
        curve=curve,
    )


@dataclass(frozen=True)
class DistanceBracket:
    """Certain bounds on the distance to calibration, and the measure that proves each."""

    lower: float
    upper: float
    lower_measure: str
    upper_measure: str


def sample_bracket(joint: Joint, *, tol: float) -> DistanceBracket:
    """Return certain bounds on the distance to calibration, knowing a joint distribution only."""
    above = {
        "upper_distance": upper_distance_of(joint),
        "interval_ce": interval_ce_of(joint),
        "surrogate_interval_ce": surrogate_interval_ce_of(joint),
    }
    best = min(above, key=lambda name: above[name])
    lower = certify_lower(joint, tol=tol).lower
    return DistanceBracket(min(lower, above[best]), above[best], "lower_distance", best)
