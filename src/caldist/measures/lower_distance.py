"""The lower distance to calibration, ldCE."""

from __future__ import annotations

from numpy.typing import ArrayLike

from caldist import _validate
from caldist._util.errors import ToleranceError
from caldist._util.progress import bounds_bar
from caldist.certificates import LowerCertificate
from caldist.data.joint import Joint
from caldist.measures import _lower_solver

__all__ = ["TOLERANCE", "certify_lower", "lower_distance", "lower_distance_of"]

TOLERANCE = 1e-6


def lower_distance(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    tol: float = TOLERANCE,
    sample_weight: ArrayLike | None = None,
    progress: bool = False,
) -> float:
    r"""Return the lower distance to calibration, within ``tol``.

    .. math:: \mathrm{ldCE} = \min E\,|u - v|

    over all couplings of the data's (v, y) with a u such that (u, y) is perfectly calibrated; u
    ranges over all of [0, 1].

    **What it means.** The least that the distance to calibration can be, given only predictions and
    labels: no domain and no predictor with these predictions and labels is closer. Always at least
    \|E[y - v]\|, and :math:`\tfrac12 \mathrm{ldCE} \le \mathrm{smCE} \le 2\,\mathrm{ldCE}`.

    **What it estimates.** The population's value, at rate 1/√n.

    **Cost.** A sort, and an interior-point solver on a few thousand nodes whatever n is. The value
    is the proved lower end of an interval no wider than ``tol``;
    :func:`caldist.certify` returns the interval with its proof.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    tol : float
        How wide the certified interval may be.
    sample_weight : array-like, optional
    progress : bool
        Show a progress bar after two seconds.

    Raises
    ------
    caldist.ToleranceError
        If the interval stays wider than ``tol``; it carries the valid bounds.

    Examples
    --------
    >>> import caldist
    >>> round(caldist.lower_distance([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]), 5)
    0.04167
    """
    tol = _validate.check_positive("tol", tol)
    progress = _validate.check_flag("progress", progress)
    joint = Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight)
    return lower_distance_of(joint, tol=tol, progress=progress)


def lower_distance_of(joint: Joint, *, tol: float = TOLERANCE, progress: bool = False) -> float:
    """Return ldCE of a joint distribution."""
    certificate = certify_lower(joint, tol=tol, progress=progress)
    if certificate.gap > tol:
        message = (
            f"the lower distance is between {certificate.lower!r} and {certificate.upper!r}, but "
            f"tol={tol!r} could not be reached: use a larger tol, or caldist.certify for the "
            "interval with its proof."
        )
        raise ToleranceError(message, certificate.lower, certificate.upper)
    return certificate.value


def certify_lower(joint: Joint, *, tol: float, progress: bool = False) -> LowerCertificate:
    """Enclose ldCE of a joint distribution."""
    mass0, mass1 = joint.normalized()
    with bounds_bar("lower distance", show=progress) as report:
        solution = _lower_solver.solve(joint.prediction, mass0, mass1, tol, report)
    # Rounding may put bounds that coincide an ulp apart in the wrong order, or below 0.
    lower = max(0.0, min(solution.lower, solution.upper))
    return LowerCertificate(
        joint=joint,
        value=lower,
        lower=lower,
        upper=max(lower, solution.upper),
        node=solution.node,
        potential0=solution.potential0,
        potential1=solution.potential1,
        calibrated=solution.calibrated,
        calibrated_mass=solution.calibrated_mass,
    )
