"""The smooth calibration error, smCE."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.products import dot
from caldist._util.types import Vector
from caldist.certificates import SmoothCertificate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.kernels.loader import smooth
from caldist.measures import _passes, _second_order
from caldist.measures._rounding import (
    around,
    better_of,
    residual_moves,
    residual_rounding,
    within_cells_of,
)
from caldist.measures.base import Worst, measure
from caldist.measures.norms import Norm

_ROUNDING = 1 + 1e-9  # makes a bound certain in spite of rounding
_AT_ONE = 1 - 1e-9  # a witness that reaches higher is at 1 somewhere


class SmoothNorm(Norm):
    """smCE: functions that are 1-Lipschitz and between -1 and 1."""

    noise = 1 + math.sqrt(0.5)

    def __call__(self, masses: Vector) -> float:
        """Return the norm of masses on the support."""
        return _passes.smooth_ce(self.prediction, masses)

    def unless_below(self, masses: Vector, threshold: float) -> float:
        """Return a bound that is a tenth of the work, and on noise a few percent above."""
        bound = _ROUNDING * float(smooth.smooth_ce_bound(self.prediction, masses))
        return bound if bound < threshold else self(masses)

    def witness(self, masses: Vector) -> Vector:
        """Return a Lipschitz function that attains the norm."""
        return self.solved(masses)[1]

    def solved(self, masses: Vector) -> tuple[float, Vector]:
        """Return the norm and a witness, from one pass."""
        curve, height = np.empty_like(masses), np.empty_like(masses)
        value = smooth.smooth_ce(self.prediction, masses, curve)
        smooth.witness(self.prediction, masses, curve, height)
        return float(value), height

    def attained(self, masses: Vector) -> tuple[float, Vector]:
        """Return the norm and all extreme functions that attain it, from one pass."""
        value, height = self.solved(masses)
        return value, self._extremes(height)

    def witnesses(self, masses: Vector) -> Vector:
        """Return the witness, or both extremes where masses that add up to 0 leave its height free.

        Any other sum pushes the witness up to 1 or down to -1 somewhere. At 0 it may be all 0, and
        its error too, as if the mean of the residuals were known.
        """
        return self._extremes(self.witness(masses))

    @staticmethod
    def _extremes(height: Vector) -> Vector:
        if np.abs(height).max() > _AT_ONE:
            return height[None, :]
        return np.array([height + (1 - height.max()), height - (1 + height.min())])


def _rounding_bounds(joint: Joint, value: float) -> tuple[float, float]:
    """Bound smCE: a 1-Lipschitz w changes by at most |v - v'| at a residual |e|."""
    moved = joint.radius if joint.grid is None else residual_moves(joint)
    bounds = around(value, moved + residual_rounding(joint))
    within = within_cells_of(joint)
    return bounds if within is None else better_of(bounds, _second_order.smooth_ce(within))


def certify_smooth(joint: Joint, **_: object) -> SmoothCertificate:
    """Prove smCE of a joint distribution."""
    residual = joint.residual()
    curve, height = np.empty_like(residual), np.empty_like(residual)
    value = smooth.smooth_ce(joint.prediction, residual, curve)
    smooth.witness(joint.prediction, residual, curve, height)
    attained = dot(residual, height)
    return SmoothCertificate.of(
        joint,
        value=value,
        lower=min(attained, value),
        upper=value,
        knot=joint.prediction,
        height=height,
        curve=curve,
    )


@measure(
    symbol="smCE",
    summary="largest correlation of the residuals with a Lipschitz function",
    position=10,
    shown_in=("evaluate", "measure", "report", "report table", "groups", "test"),
    rounding=_rounding_bounds,
    norm=SmoothNorm,
    worst=Worst(bias=0.0, reach=2.0),
    certify=certify_smooth,
)
def smooth_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
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
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

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
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return _passes.smooth_ce(*rows.residuals)
