"""The certificate of pGap: a map whose slopes are bounded, and the room that it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from caldist._util.types import Vector
from caldist.certificates._base import SLACK, JointCertificate, fail, vector


@dataclass(frozen=True, eq=False)
class GapCertificate(JointCertificate):
    r"""A proof of the post-processing gap.

    Attributes
    ----------
    max_slope
        The largest slope L that a map may have.
    fitted
        The map κ: the prediction ``prediction[i]`` goes to ``fitted[i]``. It increases, by at
        most L times as much as the predictions do, so what it takes off the mean squared error is
        at most the gap: the ``lower`` bound.

        The ``upper`` bound needs no other array. With c the residual masses of κ and S their prefix
        sums, every other such map κ' into [0, 1] has, as squares are convex and by summation by
        parts,

        loss(κ) - loss(κ') ≤ 2 Σ c_i (κ'_i - κ_i) ≤ 2 [\|S_n\| max(κ_n, 1 - κ_n)
        + Σ S_i⁺ (κ_{i+1} - κ_i) + S_i⁻ (h_i - κ_{i+1} + κ_i)]

        with h_i = min(1, L (v_{i+1} - v_i)). A map that leaves [0, 1] is no better than itself cut
        off there.
    """

    measure: ClassVar[str] = "post_processing_gap"

    max_slope: float
    fitted: Vector

    def _prove_lower(self) -> float:
        gain, step, most, _ = self._parts()
        excess = float((np.maximum(-step, 0.0) + np.maximum(step - most, 0.0)).sum())
        if not excess <= SLACK:
            fail("fitted has a slope below 0 or above max_slope")
        # Made feasible it moves nowhere by more than the excess, and a squared error by twice that.
        return gain - 2 * excess * (1 + excess)

    def _prove_upper(self) -> float:
        gain, step, most, sums = self._parts()
        last = float(self.fitted[-1])
        room = np.maximum(sums, 0.0)[:-1] * step + np.maximum(-sums, 0.0)[:-1] * (most - step)
        return gain + 2 * (abs(float(sums[-1])) * max(abs(last), abs(1 - last)) + float(room.sum()))

    def _parts(self) -> tuple[float, Vector, Vector, Vector]:
        """Return what κ takes off the loss, its steps, the most they may be, and its sums."""
        v, mass0, mass1 = self._distribution()
        if not isinstance(self.max_slope, float) or not 1 <= self.max_slope < np.inf:
            fail(f"max_slope is {self.max_slope!r}, not a finite number from 1 on")
        fitted = vector("fitted", self.fitted, v.size)
        if fitted.min() < -SLACK or fitted.max() > 1 + SLACK:
            fail("fitted leaves [0, 1]")
        gain = float(((fitted - v) * (mass1 * (2 - v - fitted) - mass0 * (v + fitted))).sum())
        most = np.minimum(self.max_slope * np.diff(v), 1.0)
        return gain, np.diff(fitted), most, np.cumsum(mass1 * (1 - fitted) - mass0 * fitted)
