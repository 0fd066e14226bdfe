"""The smooth calibration error, smCE."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caldist._kernels import smooth
from caldist.data.joint import Joint

__all__ = ["smooth_ce", "smooth_ce_of"]


def smooth_ce(
    y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Return the smooth calibration error, exactly.

    .. math:: \mathrm{smCE} = \sup_w E[(y - v)\,w(v)]

    over all 1-Lipschitz functions :math:`w : [0, 1] \to [-1, 1]`.

    **What it means.** Within a factor of two the lower distance to calibration, the least mean
    change of the predictions that could make them calibrated:
    :math:`\tfrac12 \mathrm{ldCE} \le \mathrm{smCE} \le 2\,\mathrm{ldCE}`. It is 0 if and only if
    the predictions are perfectly calibrated, and moves by at most 2 E\|u - v\| when predictions
    move from v to u.

    **What it estimates.** The population's value, at rate 1/√n. At perfect calibration a sample
    does not show 0 but, for uniform predictions, about 0.4/√n.

    **Cost.** O(n log n) in the worst case, with no solver: a sort and one pass.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional

    References
    ----------
    Kakade and Foster, "Deterministic calibration and Nash equilibrium", 2008. Błasiok, Gopalan, Hu
    and Nakkiran, "A Unifying Theory of Distance from Calibration", 2023, section 7.

    Examples
    --------
    >>> import caldist
    >>> caldist.smooth_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    0.03125
    """
    return smooth_ce_of(Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight))


def smooth_ce_of(joint: Joint) -> float:
    """Return the smCE of a joint distribution."""
    return float(smooth.smooth_ce(joint.prediction, joint.residual(), np.empty(0)))
